"""The releases view of any declaration with additive noise: a lower bound on ε from the noisy statistics themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from audits.bounds import CurveFlip, GuessPlan, ranked_bound
from audits.canaries import Canary, worst_canary
from audits.engine import BLOCK, Tally, blocks, tally, total
from audits.plans.common import Evidence, Limits, check, checkpoint, limits
from audits.reach import best_plan, loss_law, reachable_curve, reachable_guesses
from audits.scores import Moved, likelihood_trials
from privcheck.accounting import account, gdp_delta
from privcheck.guarantees import ZCDP
from privcheck.results import AuditRequest, AuditResult, Progress

_POINTS: Final = 61  # of a plotted curve
_MANY: Final = 200  # Laplace coordinates, whose extreme has probability 2^−many


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Guesses:
    """A block of trials: importable, so that it can run in any process."""

    groups: tuple[Moved, ...]
    plan: GuessPlan | None
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        return tally(likelihood_trials(self.groups, rng, runs), self.plan, first=first, seed=self.seed)


def releases(request: AuditRequest) -> AuditResult:
    """Returns the lower bound on the loss of the releases, from likelihood ratios at the worst canary.

    All-Gaussian releases at δ > 0 are judged by the coin flip on the curve; anything else by the coin flip at fixed
    ranks, for which a small instance is audited too, with half of the runs and half of α: over many Laplace coordinates
    the extreme of the likelihood ratio is too rare to be met, whatever the loss.
    """
    check(request)
    began = time.perf_counter()
    gaussian = all(release.mechanism.law == "gaussian" for release in request.declaration.releases)
    on_curve = gaussian and request.delta > 0
    attacks = [request.values] if on_curve or request.trials == 1 else instances(request)
    share = replace(
        request,
        trials=request.trials // len(attacks),
        confidence=1 - (1 - request.confidence) / len(attacks),
    )
    found = []
    for number, values in enumerate(attacks):
        progress = _part(request.progress, number, len(attacks))
        attack = _on_the_curve if on_curve else _at_ranks
        found.append(attack(replace(share, values=values, progress=progress), stream=number))
    best = max(found, key=lambda result: (result.epsilon_lower or 0.0) / _least(result))
    runs = 2 * share.trials * len(attacks)
    spent = sum(result.seconds for result in found)
    evidence = {**best.evidence, "runs": runs, "trials_per_second": runs / spent}
    for values, result in zip(attacks, found, strict=True) if len(found) > 1 else ():
        evidence[f"epsilon_lower_at_H_{values['H']}"] = result.epsilon_lower or 0.0
    return replace(
        best,
        trials=request.trials,
        confidence=request.confidence,
        evidence=evidence,
        seconds=time.perf_counter() - began,
    )


def instances(request: AuditRequest) -> list[Mapping[str, Fraction]]:
    """Returns the parameters to attack: the given ones, unless they have too many coordinates, and a small instance.

    The small one has H = 1 or 2 (the one with the larger loss over the claim) and two episodes, so that a tree has one
    node and a violation is not hidden behind coordinates that must all be extreme at once.
    """
    short = {"K": Fraction(2)} if "K" in request.values else {}
    small = [{**request.values, **short, "H": Fraction(h)} for h in (1, 2) if h <= request.values["H"]]
    best = max(small, key=lambda v: (round(_share(request, v), 9), -v["H"]))
    whole = worst_canary(request.declaration, request.values)
    if sum(group.change.size for group in whole.groups) > _MANY or best == request.values:
        return [best]
    return [request.values, best]


def _share(request: AuditRequest, values: Mapping[str, Fraction]) -> float:
    claimed = limits(request, values).claimed
    return worst_canary(request.declaration, values).pure / claimed if claimed else 0.0


def _on_the_curve(request: AuditRequest, *, stream: int) -> AuditResult:
    canary = worst_canary(request.declaration, request.values)
    bound, alpha = limits(request, request.values), 1 - request.confidence
    counted, seconds = _trials(request, canary, None, stream)
    flip = CurveFlip(errors=counted.errors, runs=counted.runs)
    mu, lower = flip.mu(alpha=alpha), flip.epsilon(alpha=alpha, delta=request.delta)
    declared = account(request.declaration).at(request.values).mu or 0.0
    grid = np.linspace(0.0, 1.25 * max(lower, bound.upper or 0.0, bound.claimed or 0.0, 0.1), _POINTS)
    evidence: Evidence = {
        "errors": counted.errors,
        "guesses": counted.runs,
        "error_rate": counted.errors / counted.runs,
        "mu_lower": mu,
        "mu_declared": declared,
        "rho_lower": mu**2 / 2,
        "p_value_declared": flip.p_value(declared),
        "refuted": bound.refuted(lower),
        "curve": {
            "epsilon": [float(e) for e in grid],
            "delta_lower": [gdp_delta(mu, float(e), rounding="down") if mu > 0 else 0.0 for e in grid],
        },
    }
    guarantee = request.declaration.claim.guarantee
    if isinstance(guarantee, ZCDP):
        evidence["rho_claimed"] = guarantee.rho.number(request.values, rounding="up")
    method = (
        "coin flip on the Gaussian curve: a hidden fair bit guessed in every run by the sign of the log-likelihood "
        "ratio; the errors bound μ, and the exact curve gives ε(δ). About the declared Gaussian releases; ρ-zCDP alone "
        "does not imply the curve"
    )
    return _result(
        request,
        canary,
        bound,
        lower=lower,
        evidence=evidence,
        method=method,
        seconds=seconds,
        reachable=reachable_curve(declared, counted.runs, alpha=alpha, delta=request.delta),
    )


def _at_ranks(request: AuditRequest, *, stream: int) -> AuditResult:
    canary = worst_canary(request.declaration, request.values)
    bound, alpha, delta = limits(request, request.values), 1 - request.confidence, request.delta
    law = loss_law(canary.groups)
    plan = best_plan(law, 2 * request.trials, alpha=alpha, delta=delta)
    counted, seconds = _trials(request, canary, plan, stream)
    best = ranked_bound(
        counted.ranked_errors, counted.ranked_guesses, plan, runs=counted.runs, alpha=alpha, delta=delta
    )
    evidence: Evidence = {
        "errors": best.flip.errors,
        "guesses": best.flip.guesses,
        "error_rate": best.flip.errors / best.flip.guesses,
        "revealed": best.flip.revealed,
        "attempts": len(plan.shares),
        "alpha_of_the_attempt": best.alpha,
        "p_value_claimed": 1.0 if bound.claimed is None else best.flip.p_value(bound.claimed),
        "refuted": bound.refuted(best.epsilon),
    }
    method = (
        f"coin flip: a hidden fair bit guessed by the log-likelihood ratio on the {len(plan.shares)} shares of runs "
        f"with the largest ratio, fixed in advance, α divided among them; H = {request.values['H']}"
    )
    return _result(
        request,
        canary,
        bound,
        lower=best.epsilon,
        evidence=evidence,
        method=method,
        seconds=seconds,
        reachable=reachable_guesses(law, plan, counted.runs, alpha=alpha, delta=delta),
    )


def _trials(request: AuditRequest, canary: Canary, plan: GuessPlan | None, stream: int) -> tuple[Tally, float]:
    likelihood_trials(canary.groups, np.random.default_rng(0), 1)  # Numba compiles before the clock starts
    began = time.perf_counter()

    counted = total(
        blocks(
            _Guesses(groups=canary.groups, plan=plan, seed=request.seed),
            2 * request.trials,
            seed=request.seed,
            stream=stream,
            block=BLOCK,
            workers=request.workers,
            executor=request.executor,
            checkpoint=checkpoint(request, Tally),
            progress=request.progress,
        )
    )
    return counted, time.perf_counter() - began


def _result(
    request: AuditRequest,
    canary: Canary,
    bound: Limits,
    *,
    lower: float,
    evidence: Evidence,
    method: str,
    seconds: float,
    reachable: float,
) -> AuditResult:
    return AuditResult(
        view="releases",
        verdict="consistent" if bound.refuted(lower) == "nothing" else "violation",
        trials=request.trials,
        confidence=request.confidence,
        delta=request.delta,
        epsilon_lower=lower,
        epsilon_upper=bound.upper,
        epsilon_claimed=bound.claimed,
        reachable=reachable,
        method=method,
        witness=canary.words,
        evidence=evidence,
        seconds=seconds,
    )


def _least(result: AuditResult) -> float:
    return max(1e-300, Limits(upper=result.epsilon_upper, claimed=result.epsilon_claimed).least)


def _part(progress: Progress, number: int, parts: int) -> Progress:
    return partial(_report, progress, number, parts)


def _report(progress: Progress, number: int, parts: int, done: int, of: int) -> None:
    progress(number * of + done, parts * of)
