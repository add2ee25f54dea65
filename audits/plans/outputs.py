"""The policy view's verdict, whatever the agent: a learned score of what it puts out, and a coin flip or bets on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from audits.bounds import RankedBound, guess_plan, ranked_bound, wealth_plan
from audits.canaries import worst_canary
from audits.engine import Tally
from audits.pictures import pictured
from audits.plans.common import Evidence, check, checkpoint, limits
from audits.plans.early import bets, ended_words, stopped
from audits.plans.methods import nothing_claimed, refuse_unfit
from audits.policy import Outputs, Runs, policy_trials, policy_until_refuted
from audits.prefixes import Prefixes
from audits.reach import LossLaw, loss_law, reachable_anytime, reachable_guesses
from privcheck.accounting.account import shared_draws
from privcheck.results import AuditMethod, AuditRequest, AuditResult

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
    if why := nothing_claimed(request, limits(request, values)):
        refuse_unfit(request, {"sequential": why}, METHODS)


def judged(
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

    Raises:
        ParameterError: Too few trials to learn from.
        AuditError: A trial's score is not finite.
    """
    began = time.perf_counter()
    bound, alpha = limits(request, values), 1 - request.confidence
    law = _law(request, values)
    how: dict[str, Any] = {
        "trials": request.trials,
        "seed": request.seed,
        "workers": request.workers,
        "executor": request.executor,
        "checkpoint": checkpoint(request, Outputs, Tally) if keep else None,
        "progress": request.progress,
    }
    evidence: Evidence
    prefixes = Prefixes[Tally]()

    def guessing(tested: Tally) -> RankedBound:
        return ranked_bound(
            tested.ranked_errors, tested.ranked_guesses, plan, runs=tested.runs, alpha=alpha, delta=request.delta
        )

    if request.method == "sequential":
        plan = wealth_plan()
        learned, found = policy_until_refuted(
            whole, plan, epsilon=bound.least, delta=request.delta, alpha=alpha, seen=prefixes, **how
        )
        lower, evidence = stopped(found, found.lower, bound, most=2 * request.trials - learned)
        tested = found.tally
        reachable = reachable_anytime(law, plan, tested.runs, alpha=alpha, delta=request.delta)
        test = f"bets on the others, looked at after every block: {ended_words(found)}"
    else:
        plan = guess_plan()
        counted = policy_trials(whole, plan, seen=prefixes, **how)
        learned, tested = counted.learned, counted.tested
        best = guessing(tested)
        lower = best.epsilon
        evidence = {
            "errors": best.flip.errors,
            "guesses": best.flip.guesses,
            "revealed": best.flip.revealed,
            "attempts": len(plan.shares),
            "p_value_claimed": 1.0 if bound.claimed is None else best.flip.p_value(bound.claimed),
            "refuted": bound.refuted(lower),
        }
        reachable = reachable_guesses(law, plan, tested.runs, alpha=alpha, delta=request.delta)
        test = f"coin flip on the others at {len(plan.shares)} shares fixed in advance"
    refuted = str(evidence["refuted"])
    seconds = time.perf_counter() - began
    evidence |= {
        "error_rate_of_all_guesses": tested.errors / tested.runs,
        "learned_on": learned,
        "tested_on": tested.runs,
        "instance": instance,
        **({} if meaning is None else {"meaning": meaning(refuted)}),
        "trials_per_second": (learned + tested.runs) / seconds,
    }
    result = AuditResult(
        view="policy",
        verdict="consistent" if refuted == "nothing" else "violation",
        trials=-(-(learned + tested.runs) // 2),
        confidence=request.confidence,
        delta=request.delta,
        epsilon_lower=lower,
        epsilon_upper=bound.upper,
        epsilon_claimed=bound.claimed,
        reachable=reachable,
        method=f"whole agent: a score of {seen} learned on {learned} runs, {test}; valid against any mechanism",
        witness=witness,
        evidence=evidence,
        seconds=seconds,
    )
    anytime = request.method == "sequential"
    reach = reachable_anytime if anytime else reachable_guesses
    return pictured(
        result,
        request,
        values=values,
        counted=None if anytime else tested,  # the band's intervals are of a number of runs fixed in advance
        seen=prefixes,
        before=learned,
        bound=partial(bets, plan=plan, alpha=alpha, delta=request.delta)
        if anytime
        else lambda some: guessing(some).epsilon,
        limit=lambda runs: reach(law, plan, runs, alpha=alpha, delta=request.delta),
        anytime=anytime,
        pair=pair,
    )


def _law(request: AuditRequest, values: Mapping[str, Fraction]) -> LossLaw:
    """Returns the law of the loss for a test that sees the releases: certainty where outputs share their noise."""
    if shared_draws(request.declaration):
        return LossLaw(share=np.array([0.0, 1.0]), errors=np.zeros(2))
    return loss_law(worst_canary(request.declaration, values).groups)
