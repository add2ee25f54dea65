"""Bounds on ρ-zCDP in its own unit: a lower bound on the Kullback–Leibler divergence, which is at most ρ.

For comparison with other testers, also a bound from the count of one event under each neighbour (`clopper_pearson`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.runtime.results import AuditResult
from privcheck_audits.bounds import (
    DivergencePlan,
    GuessPlan,
    Moments,
    clopper_pearson_pair,
    divergence_plan,
    moments,
    pure_epsilon_at_least,
    rho_at_least,
)
from privcheck_audits.engine.blocks import Tally, tally
from privcheck_audits.engine.scores import Told, likelihood_trials
from privcheck_audits.plan.reachable import best_plan, loss_law
from privcheck_audits.plan.requests import Evidence
from privcheck_audits.plan.runner import Outcome
from privcheck_audits.releases.attacks import (
    AttackedInstance,
    bound_from_ranks,
    choose_thresholds,
    describe_size,
    find_claimed_rho,
    guesses,
    read_ranks,
    run_attack,
)

_PILOT: Final = 65_536  # runs of the declared law, from which the reachable limit is estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Counts of a block for the divergence and for the coin flip: the same runs serve both.

    Attributes:
        tally: Counts of guesses.
        moments: Sums of the clipped score.
    """

    tally: Tally
    moments: Moments

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.tally.runs

    def __add__(self, other: Both) -> Both:
        return Both(tally=self.tally + other.tally, moments=self.moments + other.moments)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """A block of trials; importable by worker processes."""

    groups: tuple[Told, ...]
    plan: GuessPlan | None
    clipped: DivergencePlan
    seed: int
    thresholds: tuple[float, ...] = ()

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Both:
        scored = likelihood_trials(self.groups, rng, runs)
        # refuses scores that are not finite
        counted = tally(scored, self.plan, first=first, seed=self.seed, thresholds=self.thresholds)
        return Both(tally=counted, moments=moments(scored.score, scored.secret, self.clipped))


def divergence(target: AttackedInstance) -> AuditResult:
    """Bound on ρ from a clipped score; valid against any mechanism."""
    clipped, pure = _clip(target), target.request.delta == 0

    def read(counted: Both) -> Outcome:
        rho, evidence = _bound_rho(target, counted.moments, clipped)
        return Outcome(
            violated=evidence["refuted"] != "nothing",
            lower=pure_epsilon_at_least(rho) if pure else None,
            evidence=evidence,
            method=_describe(clipped),
            reachable=pure_epsilon_at_least(_reachable(target, counted.moments.pairs, clipped)) if pure else None,
            runs=counted.runs,
            tally=counted.tally,
        )

    return run_attack(target, _block(target, None, clipped), read, Both, Tally, Moments)


def with_coin_flip(target: AttackedInstance) -> AuditResult:
    """Bounds on ε and on ρ from the same runs, each at half of α."""
    half = replace(target, request=replace(target.request, confidence=1 - target.alpha / 2))
    law, clipped = loss_law(half.canary.groups), _clip(half)
    plan = best_plan(law, 2 * half.request.trials, alpha=half.alpha, delta=half.request.delta)

    def read(counted: Both) -> Outcome:
        of_epsilon = read_ranks(half, counted.tally, law, plan)
        _, of_rho = _bound_rho(half, counted.moments, clipped)
        refuted = {str(of_epsilon.evidence["refuted"]), str(of_rho["refuted"])} - {"nothing"}
        parts = [name for name in ("claim", "declaration") if any(name in words for words in refuted)]
        return replace(
            of_epsilon,
            violated=bool(parts),
            evidence=of_epsilon.evidence | of_rho | {"refuted": " and ".join(parts) or "nothing"},
            method=f"two tests at half of α each. {of_epsilon.method}. {_describe(clipped)}",
            bound=lambda some: bound_from_ranks(half, some.tally, plan)[0],
        )

    return run_attack(target, _block(half, plan, clipped), read, Both, Tally, Moments)


def _clip(target: AttackedInstance) -> DivergencePlan:
    return divergence_plan(find_claimed_rho(target.request)["rho_claimed"])


def _block(target: AttackedInstance, plan: GuessPlan | None, clipped: DivergencePlan) -> _Block:
    return _Block(
        groups=target.canary.groups,
        plan=plan,
        clipped=clipped,
        seed=target.request.seed,
        thresholds=choose_thresholds(target),
    )


def _bound_rho(target: AttackedInstance, counted: Moments, clipped: DivergencePlan) -> tuple[float, Evidence]:
    request = target.request
    rho = rho_at_least(counted, clipped, alpha=target.alpha)
    claimed = find_claimed_rho(request)["rho_claimed"]
    accounted = request.priced.numbers.rho
    refuted = [name for name, limit in (("claim", claimed), ("declaration", accounted)) if rho > limit]
    implied = f"no ρ below {_down(rho)} holds, so no ε below {_down(pure_epsilon_at_least(rho))} at δ = 0"
    return rho, {
        "rho_lower": rho,
        "rho_claimed": claimed,
        "rho_upper": accounted if math.isfinite(accounted) else "inf",
        "rho_reachable": _reachable(target, counted.pairs, clipped),
        "implied": implied,
        "refuted": " and ".join(refuted) or "nothing",
    }


def _reachable(target: AttackedInstance, pairs: int, clipped: DivergencePlan) -> float:
    """Bound from a number of pairs of runs of the declared law, estimated from a few runs scaled up."""
    pilot = likelihood_trials(target.canary.groups, np.random.default_rng(0), _PILOT)
    few = moments(pilot.score, pilot.secret, clipped)
    up = pairs / few.pairs
    many = Moments(pairs=pairs, sums=tuple(up * s for s in few.sums), squares=tuple(up * s for s in few.squares))
    return rho_at_least(many, clipped, alpha=target.alpha)


def _describe(clipped: DivergencePlan) -> str:
    return (
        f"Donsker–Varadhan: KL from the mean of the log-likelihood ratio clipped at ±{clipped.clip:.3g}, "
        f"{len(clipped.scales)} attempts, empirical Bernstein; ρ-zCDP has KL ≤ ρ whatever the mechanism"
    )


def _down(value: float) -> str:
    return f"{math.floor(value * 1e4) / 1e4:.4f}"


_STREAM: Final = 1_000  # first word of its spawn key
_EVENTS: Final = np.linspace(0.002, 0.6, 300)  # candidates: how often the event happens on D


def clopper_pearson(target: AttackedInstance) -> AuditResult:
    """Bound from the frequency of one event under D and under D′, for comparison with other testers.

    The event is a likelihood ratio above a threshold, chosen on separate runs that are not counted.
    """
    request = target.request
    pilot = likelihood_trials(
        target.canary.groups,
        np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(_STREAM, target.stream))),
        _PILOT,
    )
    first, second = pilot.score[pilot.secret], pilot.score[~pilot.secret]

    def expect(threshold: float) -> float:
        hits = (
            round(request.trials * float((first > threshold).mean())),
            round(request.trials * float((second > threshold).mean())),
        )
        return clopper_pearson_pair(hits, (request.trials,) * 2, alpha=target.alpha, delta=request.delta)

    candidates = np.unique(np.nextafter(np.quantile(first, 1 - _EVENTS, method="lower"), -np.inf))
    threshold = float(max(candidates, key=expect))
    method = (
        f"Clopper–Pearson pair: how often the log-likelihood ratio is above {threshold:.4g} under each neighbour, a "
        f"threshold chosen on {_PILOT:,} other runs; four one-sided intervals share α{describe_size(target)}. For "
        "comparison: the coin flip needs one interval"
    )

    def read(counted: Tally) -> Outcome:
        runs = counted.on_first, counted.runs - counted.on_first
        hits = runs[0] - counted.false_second[0], counted.false_first[0]
        lower = clopper_pearson_pair(hits, runs, alpha=target.alpha, delta=request.delta) if min(runs) else 0.0
        refuted = target.bound.name_refuted(lower)
        evidence: Evidence = {
            "hits_on_first": hits[0],
            "runs_on_first": runs[0],
            "hits_on_second": hits[1],
            "runs_on_second": runs[1],
            "threshold": threshold,
            "pilot": _PILOT,
            "refuted": refuted,
        }
        return Outcome(
            violated=refuted != "nothing",
            lower=lower,
            evidence=evidence,
            method=method,
            reachable=expect(threshold),
            runs=counted.runs,
        )

    return run_attack(target, guesses(target, None, (threshold,)), read)
