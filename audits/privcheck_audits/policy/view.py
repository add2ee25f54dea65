"""The policy view: the whole agent runs in every trial, and only its output is observed.

The loss of a policy has no formula, so a score is learned on three tenths of the runs, and the coin flip, or bets,
decide on the others. The verdict is valid against any mechanism; what it can find depends on the score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import Noise
from privcheck.errors import ParameterError
from privcheck.runtime.offline import Batch
from privcheck.runtime.online import Tables
from privcheck.runtime.results import AuditMethod, AuditRequest, AuditResult
from privcheck.support.display import Progress, silent
from privcheck_audits.bounds import GuessPlan, RankedBound, bound_at_ranks, e_process_plan, guess_plan
from privcheck_audits.engine.blocks import Tally, Work, blocks, tally, total
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.kernels import add_exact, draw
from privcheck_audits.engine.scores import LinearScore, Scored, draw_hidden_bits, learn_score
from privcheck_audits.engine.sequential import Prefixes, Sequential, sequential
from privcheck_audits.plan.pictures import marks
from privcheck_audits.plan.reachable import LossLaw, loss_law, reachable_anytime, reachable_guesses
from privcheck_audits.plan.requests import Evidence, Limits, check, limits, place_blocks, refuse_unfit, why_no_claim
from privcheck_audits.plan.runner import Outcome, run_test
from privcheck_audits.releases.anytime import bound_from_bets, describe_ending, read_bound
from privcheck_audits.releases.canaries import worst_canary

LEARNED: Final = 0.3  # the share of the runs on which the score is learned
BLOCK: Final = 2_048  # runs
_MOST_LEARNED: Final = 20_000  # runs that the score is learned on, so that memory does not grow with N
_LEAST: Final = 100  # runs under each neighbour
_FIRST: Final = 64  # runs of the first block of those that are judged, where the audit may stop early
_CHUNK: Final = 130_000  # numbers drawn at a time

Array = NDArray[np.float64]
Runs = Callable[[np.random.Generator, int], "Outputs"]  # fresh runs, each on D or D′ by a hidden bit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WholeAgent:
    """A whole agent on a pair of neighbouring datasets.

    Attributes:
        exact: The exact statistics of D and of D′ by release, each (H, …).
        noise: Noise of each release.
        agent: Map from noisy statistics of B runs by release, each (B, H, …), to greedy actions and values, (B, H, S)
            each.
        actions: A.
    """

    exact: tuple[Tables, Tables]
    noise: Mapping[str, Noise]
    agent: Batch
    actions: int

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Outputs of fresh runs."""
        return whole_runs(self, rng, runs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outputs:
    """Outputs of the agents of one block.

    Attributes:
        features: (runs, features) features for the score: policies, one indicator for each action but the first, and
            values if they are output.
        secret: (runs,) whether each run was on D.
    """

    features: Array
    secret: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTally:
    """Counts of the trials.

    Attributes:
        learned: Number of runs that the score was learned on.
        tested: The counts of the other runs.
    """

    learned: int
    tested: Tally


def whole_runs(whole: WholeAgent, rng: np.random.Generator, runs: int) -> Outputs:
    """Outputs of fresh runs of the whole agent, each on D or D′ by a hidden bit.

    Args:
        whole: Data, noise and agent.
        rng: The block's generator.
        runs: Number of runs.
    """
    secret = draw_hidden_bits(rng, runs)
    step = max(1, _CHUNK // sum(table.size for table in whole.exact[0].values()))
    features = np.empty((runs, 0))
    for start in range(0, runs, step):
        on_first = secret[start : start + step]
        noisy = {}
        for name, first in whole.exact[0].items():
            table = draw(whole.noise[name], rng, (on_first.size, *first.shape))
            add_exact(table, on_first, first, whole.exact[1][name])
            noisy[name] = table
        greedy, values = whole.agent(noisy)
        chosen = (greedy[..., None] == np.arange(1, whole.actions)).reshape(on_first.size, -1)
        if start == 0:
            features = np.empty((runs, chosen.shape[1] + values[0].size))
        features[start : start + step, : chosen.shape[1]] = chosen
        features[start : start + step, chosen.shape[1] :] = values.reshape(on_first.size, -1)
    return Outputs(features=features, secret=secret)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Produced:
    """A block of training runs."""

    whole: Runs

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Outputs:
        return self.whole(rng, runs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judged:
    """A block of tested runs."""

    whole: Runs
    score: LinearScore
    plan: GuessPlan
    seed: int
    thresholds: tuple[float, ...]

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        outputs = self.whole(rng, runs)
        scored = Scored(score=self.score(outputs.features), secret=outputs.secret)
        return tally(scored, self.plan, first=first, seed=self.seed, thresholds=self.thresholds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """A learned score, ready to judge the remaining runs.

    Attributes:
        runs: Number of runs that the score was learned on.
        tested: Largest number of remaining runs.
        judge: The work of a block of remaining runs.
        how: Arguments of `privcheck_audits.engine.blocks.blocks` for these blocks.
    """

    runs: int
    tested: int
    judge: Work[Tally]
    how: dict[str, Any]


def learn(
    whole: Runs,
    plan: GuessPlan,
    *,
    trials: int,
    seed: int,
    workers: int = 1,
    executor: Executor | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress = silent,
) -> Learned:
    """Learn a score on three tenths of 2·trials runs (at most 20 000), ready to judge the others.

    Args:
        whole: Makes runs; importable, so that blocks can run in any process.
        plan: Numbers of runs to guess on.
        trials: N, the runs under each neighbour.
        seed: The audit's seed.
        workers: Number of threads; the result does not depend on it.
        executor: Executor used in place of threads; the result does not depend on it.
        checkpoint: Store of finished blocks; its kinds must include `Outputs` and `Tally`.
        progress: Called after each block.

    Raises:
        ParameterError: Too few trials to learn from.
    """
    if trials < _LEAST:
        raise ParameterError(
            f"the policy view learns a score: expected at least {_LEAST} trials, got {trials}", given=trials
        )
    learned = min(_MOST_LEARNED, round(LEARNED * 2 * trials))
    how: dict[str, Any] = {
        "seed": seed,
        "block": BLOCK,
        "workers": workers,
        "executor": executor,
        "checkpoint": checkpoint,
    }
    training = list(
        blocks(_Produced(whole=whole), learned, stream=1, progress=lambda done, _: progress(done, 2 * trials), **how)
    )
    features, secret = (np.concatenate([getattr(part, name) for part in training]) for name in ("features", "secret"))
    score = learn_score(features, secret)
    thresholds = marks(Scored(score=score(features), secret=secret))
    return Learned(
        runs=learned,
        tested=2 * trials - learned,
        judge=_Judged(whole=whole, score=score, plan=plan, seed=seed, thresholds=thresholds),
        how={**how, "stream": 2, "progress": lambda done, _: progress(learned + done, 2 * trials)},
    )


def policy_trials(
    whole: Runs, plan: GuessPlan, *, trials: int, seed: int, seen: Prefixes[Tally] | None = None, **how: Any
) -> PolicyTally:
    """Counts of 2·trials runs, of which three tenths (at most 20 000) train the score and are not counted.

    Args:
        whole: Makes runs; importable, so that blocks can run in any process.
        plan: Numbers of runs to guess on.
        trials: N, the runs under each neighbour.
        seed: The audit's seed.
        seen: Keeps the sums of the first blocks.
        how: Workers, executor, checkpoint and progress, as for `learn`.

    Raises:
        ParameterError: Too few trials to learn from.
        AuditError: A score is not finite.
    """
    ready = learn(whole, plan, trials=trials, seed=seed, **how)
    parts = blocks(ready.judge, ready.tested, **ready.how)
    return PolicyTally(learned=ready.runs, tested=total(parts) if seen is None else seen.total(parts))


def audit_policy_until_refuted(
    whole: Runs,
    plan: GuessPlan,
    *,
    trials: int,
    seed: int,
    epsilon: float,
    delta: float,
    alpha: float,
    seen: Prefixes[Tally] | None = None,
    **how: Any,
) -> tuple[int, Sequential]:
    """Learn a score, then audit the remaining runs until ε is refuted; returns the number of training runs too.

    Args:
        whole: Makes runs; importable, so that blocks can run in any process.
        plan: Numbers of runs to guess on, with weights.
        trials: N, the runs under each neighbour, at most.
        seed: The audit's seed.
        epsilon: The ε to refute.
        delta: The δ of the claim.
        alpha: Upper bound on the probability of ever refuting a true claim.
        seen: Keeps the sums of the first blocks.
        how: Workers, executor, checkpoint and progress, as for `learn`.

    Raises:
        ParameterError: Too few trials to learn from.
        AuditError: A score is not finite.
    """
    ready = learn(whole, plan, trials=trials, seed=seed, **how)
    audit = sequential(
        ready.judge,
        ready.tested,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        plan=plan,
        grow=_FIRST,
        seen=seen,
        **ready.how,
    )
    return ready.runs, audit


_RAN: Final = "whole agent"
_PROCESSED: Final = "the declared noise, then the paper's steps"
METHODS: Final[tuple[AuditMethod, ...]] = ("auto", "coin-flip", "sequential")


def check_policy(request: AuditRequest, values: Mapping[str, Fraction]) -> None:
    """Raise an error for a request for the policy view that cannot be carried out, before any run.

    Args:
        request: The request.
        values: Parameters of the audited instance.

    Raises:
        ParameterError: A number is out of range, or the method does not fit.
    """
    check(request, METHODS)
    if why := why_no_claim(request, limits(request, values)):
        refuse_unfit(request, {"sequential": why}, METHODS)


def bound_policies(
    request: AuditRequest,
    whole: Runs,
    *,
    values: Mapping[str, Fraction],
    seen: str,
    witness: str,
    instance: str,
    keep: bool = True,
    meaning: Callable[[str], str] | None = None,
    pair: tuple[Any, Any] | None = None,
    agent_ran: bool = True,
) -> AuditResult:
    """Lower bound on ε from outputs of whole runs; valid against any mechanism, and weak.

    For δ > 0 the coin flip subtracts the right guesses that an (ε, δ) mechanism may reveal; bets include δ in their
    price.

    Args:
        request: The request, checked by `check_policy`.
        whole: Fresh runs; called once before, so that Numba has compiled.
        values: The instance's parameters.
        seen: Observed output, in words.
        witness: The pair in words.
        instance: The instance in words.
        keep: Whether finished blocks may be stored: not those of an agent other than the registered one.
        meaning: Map from the refuted limits to their meaning, in words.
        pair: The two users, for the report.
        agent_ran: Whether the registered agent was run.

    Raises:
        ParameterError: Too few trials to learn from.
        AuditError: A trial's score is not finite.
    """
    began = time.perf_counter()
    bound, law = limits(request, values), _law(request, values)
    how = {**place_blocks(request, Outputs, Tally, keep=keep), "trials": request.trials}
    test = _bet if request.method == "sequential" else _guess

    def describe(found: Outcome) -> Outcome:
        what = {} if meaning is None else {"meaning": meaning(str(found.evidence["refuted"]))}
        return replace(
            found,
            method=f"{_RAN if agent_ran else _PROCESSED}: a score of {seen} learned on {found.before} runs, "
            f"{found.method}; valid against any mechanism",
            witness=witness,
            evidence=found.evidence | {"instance": instance, **what},
            pair=pair,
        )

    return run_test(
        request,
        lambda sums: test(request, whole, bound, law, {**how, "seen": sums}),
        describe,
        bound=bound,
        values=values,
        began=began,
        agent_ran=agent_ran,
    )


def _guess(request: AuditRequest, whole: Runs, bound: Limits, law: LossLaw, how: Mapping[str, Any]) -> Outcome:
    alpha, delta, plan = 1 - request.confidence, request.delta, guess_plan()

    def best(tested: Tally) -> RankedBound:
        return bound_at_ranks(
            tested.ranked_errors, tested.ranked_guesses, plan, runs=tested.runs, alpha=alpha, delta=delta
        )

    counted = policy_trials(whole, plan, **how)
    strongest = best(counted.tested)
    evidence: Evidence = {
        "errors": strongest.flip.errors,
        "guesses": strongest.flip.guesses,
        "revealed": strongest.flip.coins * strongest.flip.delta,
        "attempts": len(plan.shares),
        "p_value_claimed": 1.0 if bound.claimed is None else strongest.flip.p_value(bound.claimed),
        "refuted": bound.name_refuted(strongest.epsilon),
    }
    outcome = _read(
        (strongest.epsilon, evidence),
        learned=counted.learned,
        tested=counted.tested,
        method=f"coin flip on the others at {len(plan.shares)} shares fixed in advance",
        bound=lambda some: best(some).epsilon,
        limit=lambda runs: reachable_guesses(law, plan, runs, alpha=alpha, delta=delta),
    )
    return replace(outcome, tally=counted.tested)


def _bet(request: AuditRequest, whole: Runs, bound: Limits, law: LossLaw, how: Mapping[str, Any]) -> Outcome:
    alpha, delta, plan = 1 - request.confidence, request.delta, e_process_plan()
    learned, audit = audit_policy_until_refuted(whole, plan, epsilon=bound.least, delta=delta, alpha=alpha, **how)
    outcome = _read(
        read_bound(audit, audit.lower, bound, most=2 * request.trials - learned),
        learned=learned,
        tested=audit.tally,
        method=f"bets on the others, checked after every block: {describe_ending(audit)}",
        bound=partial(bound_from_bets, plan=plan, alpha=alpha, delta=delta),
        limit=lambda runs: reachable_anytime(law, plan, runs, alpha=alpha, delta=delta),
    )
    # no trade-off curve: its intervals are of a number of runs fixed in advance
    return replace(outcome, anytime=True)


def _read(
    bounded: tuple[float, Evidence],
    *,
    learned: int,
    tested: Tally,
    method: str,
    bound: Callable[[Tally], float],
    limit: Callable[[int], float],
) -> Outcome:
    lower, evidence = bounded
    return Outcome(
        violated=evidence["refuted"] != "nothing",
        lower=lower,
        evidence=evidence
        | {
            "error_rate_of_all_guesses": tested.errors / tested.runs,
            "learned_on": learned,
            "tested_on": tested.runs,
        },
        method=method,
        reachable=limit(tested.runs),
        runs=learned + tested.runs,
        bound=bound,
        limit=limit,
        before=learned,
    )


def _law(request: AuditRequest, values: Mapping[str, Fraction]) -> LossLaw:
    """Law of the loss for a test that sees the releases: certainty if outputs share their noise."""
    if request.declaration.shared_draws:
        return LossLaw(share=np.array([0.0, 1.0]), errors=np.zeros(2))
    return loss_law(worst_canary(request.priced.at(values)).groups)
