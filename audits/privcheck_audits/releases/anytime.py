"""Audits that stop as soon as the claim is refuted; the requested trials are an upper limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.runtime.results import AuditResult
from privcheck_audits.bounds import GuessPlan, anytime_epsilon, anytime_mu, e_process_plan
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.engine.sequential import Sequential, sequential, sequential_on_the_curve
from privcheck_audits.plan.reachable import LossLaw, best_plan, loss_law, reachable_anytime, reachable_anytime_curve
from privcheck_audits.plan.requests import Evidence, Limits, on_curve
from privcheck_audits.plan.runner import Outcome, run_test
from privcheck_audits.releases.attacks import (
    AttackedInstance,
    describe_size,
    find_claimed_rho,
    guesses,
    name_pair,
    place_attack,
)

_SHORT: Final = 1_000  # runs for which it is decided where to guess: a large violation is found early
_HALVINGS: Final = 80
_LARGEST_MU: Final = 60.0


def audit_until_refuted(target: AttackedInstance) -> AuditResult:
    """Audit that stops as soon as the smaller of the claim and the accountant's bound is refuted."""
    request, alpha, bound = target.request, target.alpha, target.bound
    curved = on_curve(request)
    bound_at: Callable[[Tally], float]
    limit: Callable[[int], float]
    audit_blocks: Callable[..., Sequential]
    if curved:
        work, mu = guesses(target, None), _mu_above(bound.least, request.delta)
        audit_blocks = partial(sequential_on_the_curve, work, 2 * request.trials, mu=mu, alpha=alpha)
        declared = request.priced.numbers.mu or 0.0
        limit = partial(_reachable_on_the_curve, mu=declared, alpha=alpha, delta=request.delta)
        bound_at = partial(_bound_on_the_curve, alpha=alpha, delta=request.delta)
    else:
        law = loss_law(target.canary.groups)
        favourite = best_plan(law, min(2 * request.trials, _SHORT), alpha=alpha, delta=request.delta).shares[0]
        plan = e_process_plan(favourite)
        audit_blocks = partial(
            sequential, guesses(target, plan), 2 * request.trials, epsilon=bound.least, delta=request.delta,
            alpha=alpha, plan=plan,
        )  # fmt: skip
        limit = partial(_reachable, law=law, plan=plan, alpha=alpha, delta=request.delta)
        bound_at = partial(bound_from_bets, plan=plan, alpha=alpha, delta=request.delta)

    def read(audit: Sequential) -> Outcome:
        largest = gdp_epsilon(audit.lower, request.delta, rounding="down") if curved else audit.lower
        lower, evidence = read_bound(audit, largest, bound, most=2 * request.trials)
        if curved:
            evidence |= {"mu_lower": audit.lower, "rho_lower": audit.lower**2 / 2, **find_claimed_rho(request)}
        outcome = Outcome(
            violated=evidence["refuted"] != "nothing",
            lower=lower,
            evidence=evidence,
            method="bets on a hidden fair bit guessed by the log-likelihood ratio"
            f"{', on the Gaussian curve' if curved else ''}, checked after every block: {describe_ending(audit)}"
            f"{describe_size(target)}; valid at any stopping time",
            reachable=limit(audit.runs),
            runs=audit.runs,
            bound=bound_at,
            limit=limit,
            anytime=True,  # no trade-off curve: its intervals are of a number of runs fixed in advance
        )
        return name_pair(target, outcome)

    place = place_attack(target)
    return run_test(request, lambda seen: audit_blocks(seen=seen, **place), read, bound=bound)


def _reachable_on_the_curve(runs: int, *, mu: float, alpha: float, delta: float) -> float:
    return reachable_anytime_curve(mu, runs, alpha=alpha, delta=delta)


def _bound_on_the_curve(counted: Tally, *, alpha: float, delta: float) -> float:
    return gdp_epsilon(anytime_mu(counted.errors, counted.runs, alpha=alpha), delta, rounding="down")


def _reachable(runs: int, *, law: LossLaw, plan: GuessPlan, alpha: float, delta: float) -> float:
    return reachable_anytime(law, plan, runs, alpha=alpha, delta=delta)


def bound_from_bets(counted: Tally, *, plan: GuessPlan, alpha: float, delta: float) -> float:
    """Anytime-valid lower bound on ε from bets at a plan's ranks."""
    return anytime_epsilon(
        counted.ranked_errors, counted.ranked_guesses, counted.runs, plan=plan, alpha=alpha, delta=delta
    )


def read_bound(audit: Sequential, lower: float, bound: Limits, *, most: int) -> tuple[float, Evidence]:
    """Lower bound of an audit that may have stopped early, with its evidence.

    The e-value decides: if it reached 1/α, the smaller limit is refuted and the bound is above it.
    """
    violated = audit.verdict == "violation"
    shown = max(lower, math.nextafter(bound.least, math.inf)) if violated else min(lower, bound.least)
    return shown, {
        "runs": audit.runs,
        "most_runs": most,
        "ended": audit.ended,
        "log_wealth": audit.log_e_value,
        "errors": audit.tally.errors,
        "guesses": audit.tally.runs,
        "refuted": bound.name_refuted(shown),
    }


def describe_ending(audit: Sequential) -> str:
    """Description of the end of an audit: number of runs and reason."""
    why = {"stopped": "the claim was refuted", "done": "nothing was refuted", "interrupted": "it was interrupted"}
    return f"ended after {audit.runs:,} runs in all, {why[audit.ended]}"


def _mu_above(epsilon: float, delta: float) -> float:
    """Least μ, up to rounding, with a larger ε at δ on its exact curve: refuting it refutes ε."""
    low, high = 0.0, _LARGEST_MU
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if gdp_epsilon(middle, delta, rounding="down") > epsilon else (middle, high)
    return high
