"""Rules on sensitivities: what the paper states against what is derived for the declared relation."""

from __future__ import annotations

from collections.abc import Iterator

from privcheck.accounting import ReleaseCost
from privcheck.declaration import L1, L2
from privcheck.symbols import at_most
from privcheck.verification.claim import NEAR, Case
from privcheck.verification.findings import Finding, Severity
from privcheck.verification.witness import Witness


def stated_sensitivities(case: Case) -> Iterator[Finding]:
    """Yields a finding for every stated sensitivity that is not the derived one."""
    for cost in case.account.costs:
        stated = cost.release.stated
        if stated is None:
            continue
        derived = stated.true(cost.sensitivity)
        # squares: neither is negative, and a root often hides what SymPy could decide
        enough, loose = at_most(derived**2, stated.value**2), at_most(stated.value**2, derived**2)
        ratio = derived.number(case.values) / stated.value.number(case.values)
        figures = {"stated": str(stated.value), "derived": str(derived), "derived/stated": f"{ratio:.6g}"}
        if enough is None:
            enough = ratio <= 1 + NEAR
            if ratio != 1:
                yield _undecided(cost, figures)
        if loose is None:
            loose = ratio >= 1 - NEAR
        if enough and loose:
            continue
        if enough:
            yield _slack(cost, figures, ratio)
        else:
            yield _refuted(case, cost, stated, figures, ratio)


def _norm(stated: L1 | L2) -> str:
    return "ℓ₁" if isinstance(stated, L1) else "ℓ₂"


def _refuted(case: Case, cost: ReleaseCost, stated: L1 | L2, figures: dict[str, str], ratio: float) -> Finding:
    witness, shown = case.witness, ""
    if witness is not None and cost.release.name in witness.changes:
        l1, l2_squared = witness.changes[cost.release.name]
        moved = l1 if isinstance(stated, L1) else l2_squared**0.5
        shown = f"; the witness moves it by {moved:.6g}"
    paid = case.verdict == "holds"
    message = (
        f"stated {_norm(stated)} sensitivity {figures['stated']} is too small by a factor of {ratio:.6g}: "
        f"the derived one is {figures['derived']} ({cost.sensitivity.reason}){shown}. The derived one is charged"
        + (", and the claim holds all the same: other steps are loose enough to pay for it" if paid else "")
    )
    return _finding(
        "stated-sensitivity-refuted", "theoretical" if paid else "critical", cost, message, figures, witness=witness
    )


def _slack(cost: ReleaseCost, figures: dict[str, str], ratio: float) -> Finding:
    needed = f"{1 / ratio:.6g}" if ratio > 0 else "infinitely many"
    message = (
        f"stated sensitivity {figures['stated']} is larger than any pair of neighbours shows, {figures['derived']} "
        f"(derived/stated {ratio:.6g}): noise calibrated to it is {needed} times what is needed"
    )
    return _finding("stated-sensitivity-slack", "negligible", cost, message, figures)


def _undecided(cost: ReleaseCost, figures: dict[str, str]) -> Finding:
    message = f"whether {figures['stated']} bounds {figures['derived']} could be checked at these parameters only"
    return _finding("stated-sensitivity-undecided", "theoretical", cost, message, figures)


def _finding(
    code: str,
    severity: Severity,
    cost: ReleaseCost,
    message: str,
    figures: dict[str, str],
    *,
    witness: Witness | None = None,
) -> Finding:
    return Finding(
        code=code, severity=severity, where=cost.release.name, message=message, evidence=figures, witness=witness
    )
