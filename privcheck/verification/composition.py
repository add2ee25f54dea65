"""Rules on how the paper adds up: budgets of the releases against their cost, their sum, and the claim."""

from __future__ import annotations

import math
from collections.abc import Iterator

from privcheck.accounting import compose
from privcheck.guarantees import ZCDP, ApproxDP, Budget, PureDP
from privcheck.procedures.additive import release_branches
from privcheck.releases import Release
from privcheck.verification.claim import NEAR, Case, over
from privcheck.verification.findings import Finding


def check_budgets(case: Case) -> Iterator[Finding]:
    """Yields a finding for every release that costs more than the paper gives it."""
    for cost in case.account.costs:
        budget = cost.release.budget
        if budget is None:
            continue
        spent, given = _cost(case, cost.release), _size(case, budget)
        if spent > given * (1 + NEAR):
            times = over(spent, given)
            figures = {"budget": str(budget), "cost/budget": f"{times:.6g}"}
            message = f"this release costs {times:.6g} times the {budget} that the paper gives it"
            yield Finding(
                code="budget-exceeded",
                severity=case.unpaid,
                where=cost.release.name,
                message=message + case.paid_words,
                evidence=figures,
            )


def budgets_add_up(case: Case) -> Iterator[Finding]:
    """Yields where the releases' budgets do not add up to the claim by basic composition: in ε (or ρ), and in δ."""
    claim = case.declaration.claim.guarantee
    if not isinstance(claim, Budget):
        return
    sums = [_sum(case, case.declaration.seen_by(group)) for group in case.declaration.groups]
    if any(s is None for s in sums) or case.declaration.claim.composition == "advanced":
        return
    size, delta = (max(s[i] for s in sums if s is not None) for i in (0, 1))
    claimed = _size(case, claim)
    claimed_delta = claim.delta.number(case.values) if isinstance(claim, ApproxDP) else 0.0
    unit = "ρ" if isinstance(claim, ZCDP) else "ε"
    for code, name, total, allowed in (
        ("epsilon-sum", unit, size, claimed),
        ("delta-sum", "δ", delta, claimed_delta),
    ):
        if total > allowed * (1 + NEAR):
            message = f"the releases' budgets add up to {name} = {total:.6g}, the claim says {allowed:.6g}"
            yield Finding(
                code=code,
                severity=case.unpaid,
                where="claim",
                message=message + case.paid_words,
                evidence={"sum": f"{total:.9g}", "claim": f"{allowed:.9g}"},
            )


def tighter_composition(case: Case) -> Iterator[Finding]:
    """Yields what exact composition of the same releases saves where the paper's proof composes basically."""
    claim = case.declaration.claim
    if claim.composition not in ("basic", "advanced") or not isinstance(claim.guarantee, ApproxDP | PureDP):
        return
    delta = claim.guarantee.delta.number(case.values) if isinstance(claim.guarantee, ApproxDP) else 0.0
    if delta == 0.0:
        return
    together = case.priced.epsilon(delta)
    alone = [_summed_costs(case, case.declaration.seen_by(group), delta) for group in case.declaration.groups]
    apart = max(alone)
    if math.isfinite(apart) and together < apart * (1 - NEAR):
        message = (
            f"{claim.composition} composition of the releases gives ε = {apart:.6g} at δ = {delta:g}; composed exactly "
            f"they cost {together:.6g}, {together / apart:.4g} of it, for free"
        )
        yield Finding(
            code="basic-composition",
            severity="negligible",
            where="claim",
            message=message,
            evidence={"basic": f"{apart:.9g}", "exact": f"{together:.9g}"},
        )


def _sum(case: Case, releases: tuple[Release, ...]) -> tuple[float, float] | None:
    """Returns Σε (or Σρ) and Σδ of the budgets; None where one has none or is of another kind than the claim."""
    kind = ZCDP if isinstance(case.declaration.claim.guarantee, ZCDP) else PureDP | ApproxDP
    if not all(isinstance(r.budget, kind) for r in releases):
        return None
    budgets = [r.budget for r in releases if r.budget is not None]
    deltas = [b.delta.number(case.values) for b in budgets if isinstance(b, ApproxDP)]
    return math.fsum(_size(case, b) for b in budgets), math.fsum(deltas)


def _summed_costs(case: Case, releases: tuple[Release, ...], delta: float) -> float:
    """Returns Σε of the releases, each at an equal share of δ."""
    return math.fsum(_epsilon(case, r, delta / len(releases)) for r in releases)


def _cost(case: Case, release: Release) -> float:
    """Returns what a release costs in its budget's unit."""
    cost = next(c for c in case.account.costs if c.release is release)
    if isinstance(release.budget, ZCDP):
        return cost.rho.number(case.values)
    if isinstance(release.budget, ApproxDP):
        return _epsilon(case, release, release.budget.delta.number(case.values))
    return math.inf if cost.pure is None else cost.pure.number(case.values)


def _epsilon(case: Case, release: Release, delta: float) -> float:
    cost = next(c for c in case.account.costs if c.release is release)
    if cost.rho.infinite and cost.mu_squared is None and case.priced.numbers.unbounded:
        return math.inf
    branches = release_branches([(release, cost.charged)], case.values)
    return max((compose(*branch).epsilon(delta=delta).value for branch in branches), default=0.0)


def _size(case: Case, guarantee: Budget) -> float:
    return (guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon).number(case.values)
