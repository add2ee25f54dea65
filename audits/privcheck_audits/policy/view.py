"""The policy view's verdict, whatever the agent: a learned score of what it puts out, and a coin flip or bets on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from privcheck.results import AuditMethod, AuditRequest, AuditResult
from privcheck_audits.bounds import RankedBound, bound_at_ranks, e_process_plan, guess_plan
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.plan.anytime import bound_from_bets, describe_ending, read_bound
from privcheck_audits.plan.common import Evidence, Limits, check, limits, place_blocks
from privcheck_audits.plan.methods import refuse_unfit, why_no_claim
from privcheck_audits.plan.runner import Outcome, run_test
from privcheck_audits.policy.runs import Outputs, Runs, audit_policy_until_refuted, policy_trials
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.reachable_limit import LossLaw, loss_law, reachable_anytime, reachable_guesses

_RAN: Final = "whole agent"
_PROCESSED: Final = "the declared noise, then the paper's steps"
METHODS: Final[tuple[AuditMethod, ...]] = ("auto", "coin-flip", "sequential")


def check_policy(request: AuditRequest, values: Mapping[str, Fraction]) -> None:
    """Refuses a request for the policy view that cannot be carried out, before anything is drawn.

    Args:
        request: What is asked.
        values: The parameters of the instance that is audited.

    Raises:
        ParameterError: A number is out of its range, or the method does not fit.
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
    """Returns the lower bound on ε from what whole runs put out; valid against any mechanism, and weak.

    δ > 0 is paid for by taking off as many right guesses as an (ε, δ) mechanism may reveal; in bets, by their price.

    Args:
        request: What is asked; `check_policy` has seen it.
        whole: Fresh runs; called once before, so that Numba has compiled.
        values: The instance's parameters.
        seen: What the score looks at, in words.
        witness: The pair in words.
        instance: The instance in words.
        keep: Whether finished blocks may be kept: not those of another agent than the registered one.
        meaning: From what is refuted to what that means, in words.
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
    """Returns the law of the loss for a test that sees the releases: certainty where outputs share their noise."""
    if request.declaration.shared_draws:
        return LossLaw(share=np.array([0.0, 1.0]), errors=np.zeros(2))
    return loss_law(worst_canary(request.priced.at(values)).groups)
