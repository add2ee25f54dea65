"""The policy view: the whole agent in every trial, and only what it outputs is looked at.

The loss of a policy has no formula, so a score is learned on three tenths of the runs and the coin flip decides on the
others. It is valid against any mechanism; what it can find depends on the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.mechanisms import Noise
from privcheck.offline import Batch
from privcheck.online.player import Tables
from privcheck.progress import Progress, silent
from privcheck_audits.bounds import GuessPlan
from privcheck_audits.engine.blocks import Tally, Work, blocks, tally, total
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.prefixes import Prefixes
from privcheck_audits.engine.sampling import add_exact, draw
from privcheck_audits.engine.scores import Scored, draw_hidden_bits
from privcheck_audits.engine.sequential import Sequential, sequential
from privcheck_audits.plan.trade_offs import marks
from privcheck_audits.policy.linear_score import LinearScore, learn_score

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
        noise: What the channel adds to each release.
        agent: From noisy statistics of B runs by release, each (B, H, …), to greedy actions and values, (B, H, S) each.
        actions: A.
    """

    exact: tuple[Tables, Tables]
    noise: Mapping[str, Noise]
    agent: Batch
    actions: int

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Returns so many fresh runs."""
        return whole_runs(self, rng, runs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outputs:
    """What the agents of one block put out.

    Attributes:
        features: (runs, features) what the score looks at: policies, one indicator for each action but the first, and
            values where they are put out.
        secret: (runs,) whether the run was on D.
    """

    features: Array
    secret: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTally:
    """What the trials came to.

    Attributes:
        learned: Runs on which the score was learned.
        tested: The counts of the other runs.
    """

    learned: int
    tested: Tally


def whole_runs(whole: WholeAgent, rng: np.random.Generator, runs: int) -> Outputs:
    """Returns the outputs of fresh runs of the whole agent, each on D or D′ by a hidden bit.

    Args:
        whole: Data, noise and agent.
        rng: The block's generator.
        runs: How many.
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
    """A block of runs to learn from."""

    whole: Runs

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Outputs:
        return self.whole(rng, runs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judged:
    """A block of runs that is tested."""

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
    """What is left to do once the score is learned.

    Attributes:
        runs: On which the score was learned.
        tested: Runs that are left, at most.
        judge: The work of a block of them.
        how: Where their blocks run, as `privcheck_audits.engine.blocks.blocks` takes it.
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
    """Returns the score learned on three tenths of 2·trials runs (at most 20 000), ready to judge the others.

    Args:
        whole: Makes runs; importable, so that blocks can run in any process.
        plan: On how many runs to guess.
        trials: N, the runs under each neighbour.
        seed: The audit's seed.
        workers: Threads; the result does not depend on it.
        executor: Where blocks run instead; nor does it depend on that.
        checkpoint: Where finished blocks are kept; it must know `Outputs` and `Tally`.
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
    """Returns the counts of 2·trials runs, of which three tenths (at most 20 000) train the score and are not counted.

    Args:
        whole: Makes runs; importable, so that blocks can run in any process.
        plan: On how many runs to guess.
        trials: N, the runs under each neighbour.
        seed: The audit's seed.
        seen: Keeps what the first blocks came to.
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
    """Returns on how many runs the score was learned, and the audit of the others, stopped as soon as ε is refuted.

    Args:
        whole: Makes runs; importable, so that blocks can run in any process.
        plan: On how many runs to guess, with each attempt's weight.
        trials: N, the runs under each neighbour, at most.
        seed: The audit's seed.
        epsilon: What is to be refuted.
        delta: With this δ.
        alpha: The probability with which a true claim is ever refuted, at most.
        seen: Keeps what the first blocks came to.
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
