"""The releases view of any declaration with additive noise: a lower bound on ε from the noisy statistics themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from privcheck.guarantees import ZCDP
from privcheck.results import AuditMethod, AuditRequest, AuditResult
from privcheck_audits.engine.scores import MovedGroup
from privcheck_audits.plan.anytime import audit_until_refuted
from privcheck_audits.plan.common import Evidence, Limits, check, limits, shares, size_note
from privcheck_audits.plan.meanings import releases_meaning
from privcheck_audits.plan.methods import METHODS, on_curve, refuse_unfit, unfit
from privcheck_audits.plan.pictures import of_parts
from privcheck_audits.releases.attacks import AttackedInstance, RunAttack, coin_flip, curve
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.divergences import divergence, with_coin_flip
from privcheck_audits.releases.events import clopper_pearson
from privcheck_audits.releases.groups import group, one_run

_MANY: Final = 200  # Laplace coordinates, whose extreme has probability 2^−many
_ONE_INSTANCE: Final[Mapping[AuditMethod, RunAttack]] = {
    "clopper-pearson": clopper_pearson,
    "sequential": audit_until_refuted,
    "one-run": one_run,
    "group": group,
}


def releases(request: AuditRequest) -> AuditResult:
    """Returns the lower bound on the loss of the releases, from likelihood ratios at the worst canary.

    The method "auto" judges all-Gaussian releases at δ > 0 by the coin flip on the curve; anything else by the coin
    flip at fixed ranks, for which a small instance is audited too, with half of the runs and half of α: over many
    Laplace coordinates the extreme of the likelihood ratio is too rare to be met, whatever the loss. A claim of ρ-zCDP
    that is not judged on the curve is judged in its own unit too, from the same runs, and α is halved once more. On the
    curve that would add nothing: there the coin flip bounds ρ more sharply than the divergence does.

    Raises:
        ParameterError: A number of the request is out of its range, or the method does not fit.
        AuditError: A trial's score is not finite.
    """
    check(request, METHODS)
    refuse_unfit(request, unfit(request, limits(request, request.values)))
    began = time.perf_counter()
    attack, attacked = _plan(request)
    parts = [
        attack(
            AttackedInstance(
                request=asked,
                canary=worst_canary(asked.priced),
                bound=limits(request, asked.values),
                stream=number,
            )
        )
        for number, asked in enumerate(shares(request, attacked))
    ]
    used, best = max(zip(attacked, parts, strict=True), key=lambda one: _strength(one[1]))
    runs = sum(_runs(result) for result in parts)
    spent = sum(result.seconds for result in parts)
    evidence: Evidence = {**best.evidence, **size_note(request.values, used), "runs": runs}
    evidence["trials_per_second"] = runs / spent
    refuted = str(best.evidence["refuted"])
    evidence["meaning"] = releases_meaning(refuted, request.declaration, reachable=best.reachable)
    for values, result in zip(attacked, parts, strict=True) if len(parts) > 1 else ():
        evidence[f"epsilon_lower_at_H_{values['H']}"] = result.epsilon_lower or 0.0
    return replace(
        best,
        trials=request.trials if len(parts) > 1 else best.trials,
        confidence=request.confidence,
        evidence=evidence,
        seconds=time.perf_counter() - began,
        history=of_parts(best.history, len(parts)),
    )


def _plan(request: AuditRequest) -> tuple[RunAttack, list[Mapping[str, Fraction]]]:
    """Returns the test, and the instances on which it is made: runs and α are divided among them."""
    method = request.method
    if method == "curve" or (method == "auto" and on_curve(request)):
        return curve, [request.values]
    if method == "divergence":
        return divergence, [request.values]  # divergences add up over coordinates: many hide nothing
    attacked = instances(request)
    if method in _ONE_INSTANCE:
        return _ONE_INSTANCE[method], attacked[-1:]
    zcdp = method == "auto" and isinstance(request.declaration.claim.guarantee, ZCDP)
    return with_coin_flip if zcdp else coin_flip, attacked[: request.trials]


def instances(request: AuditRequest) -> list[Mapping[str, Fraction]]:
    """Returns the parameters to attack: the given ones, unless they have too many coordinates, and a small instance.

    The small one has H = 1 or 2 (the one with the larger loss over the claim) and two episodes, so that a tree has one
    node and a violation is not hidden behind coordinates that must all be extreme at once. Gaussian coordinates hide
    nothing: their likelihood ratio is that of one number.
    """
    if (
        "H" not in request.values
        or request.declaration.others
        or all(r.mechanism.law.gaussian for r in request.declaration.noisy)
    ):
        return [request.values]
    short = {"K": Fraction(2)} if "K" in request.values else {}
    small = [{**request.values, **short, "H": Fraction(h)} for h in (1, 2) if h <= request.values["H"]]
    best = max(small, key=lambda v: (round(_share(request, v), 9), -v["H"]))
    whole = worst_canary(request.priced)
    if (
        sum(group.change.size for group in whole.groups if isinstance(group, MovedGroup)) > _MANY
        or best == request.values
    ):
        return [best]
    return [request.values, best]


def _share(request: AuditRequest, values: Mapping[str, Fraction]) -> float:
    claimed = limits(request, values).claimed
    return worst_canary(request.priced.at(values)).pure / claimed if claimed else 0.0


def _strength(result: AuditResult) -> tuple[bool, float]:
    """Returns how much a result says: a violation first, then the bound over what it is compared with."""
    least = Limits(upper=result.epsilon_upper, claimed=result.epsilon_claimed).least
    return result.verdict == "violation", (result.epsilon_lower or 0.0) / max(1e-300, least)


def _runs(result: AuditResult) -> int:
    runs = result.evidence.get("runs")
    return runs if isinstance(runs, int) else 2 * result.trials
