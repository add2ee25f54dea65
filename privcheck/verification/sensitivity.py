"""Rules on sensitivities: what the paper states against what is derived for the declared relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from privcheck.accounting import Account, ReleaseCost
from privcheck.declaration import L1, L2
from privcheck.symbols import at_most
from privcheck.verification.findings import Finding, Severity
from privcheck.verification.witness import Witness


def stated_sensitivities(
    account: Account, values: Mapping[str, Fraction], witness: Witness | None
) -> Iterator[Finding]:
    """Returns a finding for every stated sensitivity that is not the derived one."""
    for cost in account.costs:
        stated = cost.release.stated
        if stated is None:
            continue
        derived = stated.true(cost.sensitivity)
        enough, loose = at_most(derived, stated.value), at_most(stated.value, derived)
        ratio = derived.number(values) / stated.value.number(values)
        figures = {"stated": str(stated.value), "derived": str(derived), "derived/stated": f"{ratio:.6g}"}
        if enough is None or (enough and loose is None):
            enough, loose = ratio <= 1 + 1e-12, ratio >= 1 - 1e-12
            if enough != loose:
                yield _undecided(cost, figures)
        if enough and loose:
            continue
        if enough:
            yield _slack(cost, figures, ratio)
        else:
            yield _refuted(cost, stated, figures, ratio, witness)


def _norm(stated: L1 | L2) -> str:
    return "ℓ₁" if isinstance(stated, L1) else "ℓ₂"


def _refuted(
    cost: ReleaseCost, stated: L1 | L2, figures: dict[str, str], ratio: float, witness: Witness | None
) -> Finding:
    shown = ""
    if witness is not None:
        l1, l2_squared = witness.changes[cost.release.name]
        moved = l1 if isinstance(stated, L1) else l2_squared**0.5
        shown = f"; the witness moves it by {moved:.6g}"
    message = (
        f"stated {_norm(stated)} sensitivity {figures['stated']} is too small by a factor of {ratio:.6g}: "
        f"the derived one is {figures['derived']} ({cost.sensitivity.reason}){shown}. The derived one is charged"
    )
    return _finding("stated-sensitivity-refuted", "critical", cost, message, figures, witness=witness)


def _slack(cost: ReleaseCost, figures: dict[str, str], ratio: float) -> Finding:
    message = (
        f"stated sensitivity {figures['stated']} is larger than any pair of neighbours shows, {figures['derived']} "
        f"(derived/stated {ratio:.6g}): noise calibrated to it is {1 / ratio:.6g} times what is needed"
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
