"""Tests of one instance of the releases view: from likelihood ratios at one pair of neighbours to a result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.terms.guarantees import ZCDP
from privcheck_audits.bounds import (
    CurveFlip,
    GuessPlan,
    bound_at_ranks,
    group_delta,
    user_epsilon,
)
from privcheck_audits.engine.blocks import BLOCK, Tally, Work, blocks, tally
from privcheck_audits.engine.scores import Told, likelihood_trials
from privcheck_audits.engine.sequential import Counted, Prefixes
from privcheck_audits.plan.pictures import pilot_marks
from privcheck_audits.plan.reachable import LossLaw, best_plan, loss_law, reachable_curve, reachable_guesses
from privcheck_audits.plan.requests import Evidence, Limits, place_blocks
from privcheck_audits.plan.runner import Outcome, run_test
from privcheck_audits.releases.canaries import Canary

_POINTS: Final = 61  # of a plotted curve

A = TypeVar("A", bound=Counted)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttackedInstance:
    """One instance under attack.

    Attributes:
        request: Request with this attack's share of the runs and of α, at the instance's parameters.
        canary: The pair; with several changed users, the change of all of them together.
        bound: The claim's and the accountant's ε for one user.
        users: k, the number of users who differ.
        stream: Stream of the blocks; one per attack.
    """

    request: AuditRequest
    canary: Canary
    bound: Limits
    users: int = 1
    stream: int = 0

    @property
    def alpha(self) -> float:
        """Error probability available to the attack."""
        return 1 - self.request.confidence


RunAttack = Callable[[AttackedInstance], AuditResult]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guesses:
    """A block of trials; importable by worker processes."""

    groups: tuple[Told, ...]
    plan: GuessPlan | None
    seed: int
    thresholds: tuple[float, ...] = ()

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        """Counts of a block."""
        scored = likelihood_trials(self.groups, rng, runs)
        return tally(scored, self.plan, first=first, seed=self.seed, thresholds=self.thresholds)


def run_attack(
    target: AttackedInstance,
    work: Work[A],
    read: Callable[[A], Outcome],
    *kinds: type,
    block: int = BLOCK,
    runs: int = 0,
) -> AuditResult:
    """Run a test of likelihood ratios and return its result.

    Args:
        target: The instance; its request gives the number of runs and where they run.
        work: Counts a block.
        read: Interprets the counts.
        kinds: The dataclasses that `work` returns; `Tally` if none is given.
        block: Number of runs per block.
        runs: Number of runs under both neighbours together; 0 for the requested number.
    """
    likelihood_trials(target.canary.groups, np.random.default_rng(0), 1)  # Numba compiles before the clock starts
    place = place_attack(target, *kinds)

    def count(seen: Prefixes[A]) -> A:
        return seen.total(blocks(work, runs or 2 * target.request.trials, block=block, **place))

    return run_test(target.request, count, lambda counted: name_pair(target, read(counted)), bound=target.bound)


def name_pair(target: AttackedInstance, outcome: Outcome) -> Outcome:
    """Add the pair, and the number of users changed at once, to an outcome."""
    users = target.users
    moved = f"{users} users at once: each " if users > 1 else ""
    return replace(
        outcome,
        method=outcome.method + (f"; {users} users moved at once, {users}·ε tested" if users > 1 else ""),
        witness=outcome.witness or moved + target.canary.words,
        evidence=outcome.evidence | ({"users_moved": users} if users > 1 else {}),
        pair=target.canary.pair,
    )


def curve(target: AttackedInstance) -> AuditResult:
    """Bound on μ, and on the exact curve ε(δ), from a guess in every run; with k users, μ is divided by k."""
    request, bound, users = target.request, target.bound, target.users
    declared = request.priced.numbers.mu or 0.0

    def bound_epsilon(counted: Tally) -> float:
        return gdp_epsilon(_mu_of_one(target, counted), request.delta, rounding="down")

    def limit(runs: int) -> float:
        return reachable_curve(declared, runs, alpha=target.alpha, delta=request.delta, users=users)

    def read(counted: Tally) -> Outcome:
        mu, lower = _mu_of_one(target, counted), bound_epsilon(counted)
        flip, refuted = CurveFlip(errors=counted.errors, runs=counted.runs), bound.name_refuted(lower)
        evidence: Evidence = {
            "errors": counted.errors,
            "guesses": counted.runs,
            "error_rate": counted.errors / counted.runs,
            "mu_lower": mu,
            "mu_declared": declared,
            "rho_lower": mu**2 / 2,
            **find_claimed_rho(request),
            "p_value_declared": flip.p_value(users * declared),
            "refuted": refuted,
            "curve": curve_below(mu, lower, bound),
        }
        return Outcome(
            violated=refuted != "nothing",
            lower=lower,
            evidence=evidence,
            method="coin flip on the Gaussian curve: a hidden fair bit guessed in every run by the sign of the "
            "log-likelihood ratio; the errors bound μ, and the exact curve gives ε(δ). About the declared Gaussian "
            "releases; ρ-zCDP alone does not imply the curve",
            reachable=limit(counted.runs),
            runs=counted.runs,
            tally=counted,
            bound=bound_epsilon,
            limit=limit,
        )

    return run_attack(target, guesses(target, None, choose_thresholds(target)), read)


def _mu_of_one(target: AttackedInstance, counted: Tally) -> float:
    """Lower bound on one user's μ, rounded down."""
    flip = CurveFlip(errors=counted.errors, runs=counted.runs)
    return math.nextafter(flip.mu(alpha=target.alpha) / target.users, 0.0)


def coin_flip(target: AttackedInstance) -> AuditResult:
    """Bound on ε from guesses on the runs with the largest likelihood ratios, at ranks fixed in advance."""
    law = loss_law(target.canary.groups)
    plan = best_plan(law, 2 * target.request.trials, alpha=target.alpha, delta=charge_delta(target))
    work = guesses(target, plan, choose_thresholds(target))
    return run_attack(target, work, lambda counted: read_ranks(target, counted, law, plan))


def read_ranks(target: AttackedInstance, counted: Tally, law: LossLaw, plan: GuessPlan) -> Outcome:
    """Interpret guesses at ranks as a bound on one user's ε."""
    lower, evidence = bound_from_ranks(target, counted, plan)
    limit = partial(reachable_at_ranks, target, law, plan)
    return Outcome(
        violated=evidence["refuted"] != "nothing",
        lower=lower,
        evidence=evidence,
        method=describe_ranks(target, plan),
        reachable=limit(counted.runs),
        runs=counted.runs,
        tally=counted,
        bound=lambda some: bound_from_ranks(target, some, plan)[0],
        limit=limit,
    )


def bound_from_ranks(target: AttackedInstance, counted: Tally, plan: GuessPlan) -> tuple[float, Evidence]:
    """Lower bound on one user's ε from guesses at ranks, with its evidence."""
    users, bound = target.users, target.bound

    def best(delta: float) -> float:
        return bound_at_ranks(
            counted.ranked_errors, counted.ranked_guesses, plan, runs=counted.runs, alpha=target.alpha, delta=delta
        ).epsilon

    strongest = bound_at_ranks(
        counted.ranked_errors,
        counted.ranked_guesses,
        plan,
        runs=counted.runs,
        alpha=target.alpha,
        delta=charge_delta(target),
    )
    lower = strongest.epsilon if users == 1 else user_epsilon(best, users=users, delta=target.request.delta)
    evidence: Evidence = {
        "errors": strongest.flip.errors,
        "guesses": strongest.flip.guesses,
        "error_rate": strongest.flip.errors / strongest.flip.guesses,
        "revealed": strongest.flip.coins * strongest.flip.delta,
        "attempts": len(plan.shares),
        "alpha_of_the_attempt": strongest.alpha,
        "p_value_claimed": 1.0 if bound.claimed is None else strongest.flip.p_value(users * bound.claimed),
        "refuted": bound.name_refuted(lower),
    }
    return lower, evidence


def describe_ranks(target: AttackedInstance, plan: GuessPlan) -> str:
    """Description of the test."""
    return (
        f"coin flip: a hidden fair bit guessed by the log-likelihood ratio on the {len(plan.shares)} shares of runs "
        f"with the largest ratio, fixed in advance, α divided among them{describe_size(target)}"
    )


def reachable_at_ranks(target: AttackedInstance, law: LossLaw, plan: GuessPlan, runs: int) -> float:
    """Bound on one user's ε from the ranks' expected counts under the declared law."""
    return user_epsilon(
        lambda delta: reachable_guesses(law, plan, runs, alpha=target.alpha, delta=delta),
        users=target.users,
        delta=target.request.delta,
    )


def guesses(target: AttackedInstance, plan: GuessPlan | None, thresholds: tuple[float, ...] = ()) -> Guesses:
    """Work of a block of trials."""
    return Guesses(groups=target.canary.groups, plan=plan, seed=target.request.seed, thresholds=thresholds)


def choose_thresholds(target: AttackedInstance) -> tuple[float, ...]:
    """Thresholds of the trade-off curve; empty if several users differ, since claims are about one user."""
    sample = partial(likelihood_trials, target.canary.groups)
    return pilot_marks(sample, seed=target.request.seed) if target.users == 1 else ()


def charge_delta(target: AttackedInstance) -> float:
    """Joint δ of the users who differ, if the smaller limit on one user's ε is true."""
    if target.users == 1 or target.request.delta == 0:
        return target.request.delta
    return min(0.5, group_delta(min(target.bound.least, 1.0), target.request.delta, users=target.users))


def find_claimed_rho(request: AuditRequest) -> dict[str, float]:
    """Evidence with the claim's ρ; empty if the claim is not ρ-zCDP."""
    guarantee = request.declaration.claim.guarantee
    return {"rho_claimed": guarantee.rho.number(request.values, rounding="up")} if isinstance(guarantee, ZCDP) else {}


def curve_below(mu: float, lower: float, bound: Limits) -> dict[str, list[float]]:
    """Curve δ(ε) of the lower bound on μ, for plots."""
    grid = np.linspace(0.0, 1.25 * max(lower, bound.upper or 0.0, bound.claimed or 0.0, 0.1), _POINTS)
    return {
        "epsilon": [float(e) for e in grid],
        "delta_lower": [gdp_delta(mu, float(e), rounding="down") if mu > 0 else 0.0 for e in grid],
    }


def describe_size(target: AttackedInstance) -> str:
    """The instance's H in words; empty if it has none."""
    return f"; H = {target.request.values['H']}" if "H" in target.request.values else ""


def place_attack(target: AttackedInstance, *kinds: type) -> dict[str, Any]:
    """Arguments for the target's blocks: seed, stream and place; they return `Tally` unless other kinds are given."""
    return {"stream": target.stream, **place_blocks(target.request, *(kinds or (Tally,)))}
