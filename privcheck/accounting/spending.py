"""From a ledger to its cost, and the check that it is the declared one, release by release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from privcheck.accounting.account import shared_draws
from privcheck.accounting.currencies import Name
from privcheck.accounting.odometers import Odometer
from privcheck.charges import Charge, charge
from privcheck.declaration import Declaration
from privcheck.errors import LedgerError
from privcheck.mechanisms import LAWS, Noise
from privcheck.runtime.ledger import Entry
from privcheck.symbols import to_float

_ROUNDED: Final = 1 + Fraction(1, 10**14)  # more than what floats lose in the price of one charge
_NO_MATTER: Final = Fraction(1, 2)  # δ of readings in ε, which are not asked for: what is asked for are the sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has cost its users, rounded up.

    Attributes:
        rho: In zCDP; ∞ where the noise source does not draw what is declared.
        pure_epsilon: In pure DP; ∞ where a release is not pure.
        mu: μ of the exact Gaussian curve; None where a release is not Gaussian.
    """

    rho: float
    pure_epsilon: float
    mu: float | None


Laws = Mapping[str, type[Noise]]


def laws_of(declaration: Declaration | None) -> Laws:
    """Returns the laws that a ledger may name: ours, and those of the declaration's own mechanisms."""
    own = [] if declaration is None else [release.mechanism.law for release in declaration.releases]
    return {law.name: law for law in own} | LAWS


def price_ledger(header: Mapping[str, Any], entries: Sequence[Entry], *, laws: Laws = LAWS) -> Spent:
    """Returns the cost of a ledger from its own figures: every charge, whether or not all its slices left.

    Gaussian: ρ = Δ₂²/2σ². Laplace: Δ₁/b in pure DP, and in zCDP the worst split over coordinates (see
    `privcheck.mechanisms.Laplace.zcdp`). Over a partition of the users the dearest group counts. Of a law that is not
    among `laws` the cost is ∞.

    Args:
        header: The ledger's.
        entries: Its entries.
        laws: Of noise, by the name that ledgers give them (`laws_of`).
    """
    return price_shares(header, entries, [{}], laws=laws)[0]


def price_shares(
    header: Mapping[str, Any], entries: Sequence[Entry], shares: Sequence[Mapping[str, Fraction]], *, laws: Laws = LAWS
) -> list[Spent]:
    """Returns the cost of a ledger of which only a share of every release has fallen due, for many such shares.

    A release's ρ, ε and μ² are sums over outputs, so that a share of the outputs costs that share. They are added by
    `privcheck.accounting.Odometer`, exactly, whose theorems hold for charges chosen as one goes. The ledger is read
    once, however many shares are asked for.

    Args:
        header: The ledger's.
        entries: Its entries.
        shares: The share of every release by its name, in [0, 1]; 1 where it is left out.
        laws: As in `price_ledger`.
    """
    if not header.get("as_declared", False) and entries:
        return [Spent(rho=math.inf, pure_epsilon=math.inf, mu=None)] * len(shares)
    charges: dict[tuple[str, str], list[Charge]] = {}
    for entry in entries:
        if entry.charge is not None:
            charges.setdefault((entry.release, entry.charge.users), []).append(entry.charge)
    groups = {users for _, users in charges if users} or {""}
    paid = [
        {release: _prices(one, laws) for (release, users), one in charges.items() if users in ("", group)}
        for group in groups
    ]
    return [_dearest([_meters(releases, share) for releases in paid]) for share in shares]


def _prices(charges: Sequence[Charge], laws: Laws) -> list[tuple[float, float, float]]:
    """Returns ρ, ε of pure DP and μ² of every charge; μ² is NaN where it is not Gaussian, ∞ stands for no bound."""
    return [laws.get(cost.law, Noise).of(cost).price_charge(cost) for cost in charges]  # ∞ where the law is unknown


def _meters(
    releases: Mapping[str, Sequence[tuple[float, float, float]]], shares: Mapping[str, Fraction]
) -> tuple[float, float, float]:
    """Returns what one group of users pays in each currency, by the odometer of the currency."""
    return (_read("zcdp", 0, releases, shares), _read("pure", 1, releases, shares), _read("gdp", 2, releases, shares))


def _read(
    currency: Name,
    place: int,
    releases: Mapping[str, Sequence[tuple[float, float, float]]],
    shares: Mapping[str, Fraction],
) -> float:
    meter = Odometer(currency, delta=_NO_MATTER)
    for name, prices in releases.items():
        share = shares.get(name, Fraction(1))
        for price in prices if share > 0 else ():
            if not math.isfinite(price[place]):
                return price[place]
            meter.spend(Fraction(price[place]) * share * _ROUNDED)
    return to_float(meter.spent.amount, rounding="up")


def _dearest(groups: Sequence[tuple[float, float, float]]) -> Spent:
    rho, pure, mu_squared = (max(group[place] for group in groups) for place in range(3))
    curved = any(math.isnan(group[2]) for group in groups)
    mu = None if curved else math.nextafter(math.sqrt(mu_squared), math.inf if mu_squared else 0.0)
    return Spent(rho=rho, pure_epsilon=pure, mu=mu)


def check_ledger(
    header: Mapping[str, Any], entries: Sequence[Entry], declaration: Declaration, values: Mapping[str, Fraction]
) -> None:
    """Checks that a ledger records exactly what the declaration declares: names, slices, charges.

    Raises:
        LedgerError: They disagree; the line is named (line 1 is the header).
    """
    wanted = {
        "algorithm": declaration.name,
        "parameters": {name: str(value) for name, value in sorted(values.items())},
        "relation": declaration.relation.words,
        "as_declared": not shared_draws(declaration),
    }
    for field, declared in wanted.items():
        if (written := header.get(field)) != declared or type(written) is not type(declared):
            message = f"line 1: the ledger's {field} is {written!r}, the declaration's {declared!r}"
            raise LedgerError(message, line=1)
    if (protects := header.get("protects")) and not all(r.mechanism.law.whole for r in declaration.releases):
        message = f"line 1: the ledger's protects is {protects!r}, and only discrete noise may be published"
        raise LedgerError(message, line=1)
    expected = {
        r.name: (charge(r, declaration.relation, values), r.statistic.shape(values)[0]) for r in declaration.releases
    }
    seen: dict[str, set[int]] = {name: set() for name in expected}
    for line, entry in enumerate(entries, start=2):
        if entry.release not in expected:
            raise LedgerError(f"line {line}: undeclared release {entry.release!r}", line=line)
        cost, slices = expected[entry.release]
        if type(entry.part) is not int:
            raise LedgerError(f"line {line}: {entry.release}, slice {entry.part!r} is not a number", line=line)
        if entry.part in seen[entry.release] or not 0 <= entry.part < slices:
            raise LedgerError(f"line {line}: {entry.release}, slice {entry.part} is repeated or undeclared", line=line)
        due = None if seen[entry.release] else cost
        if entry.charge != due:
            raise LedgerError(f"line {line}: {entry.release} was charged {entry.charge}, declared is {due}", line=line)
        seen[entry.release].add(entry.part)
    for name, parts in seen.items():
        if len(parts) != expected[name][1]:
            message = f"{name}: {len(parts)} of {expected[name][1]} declared slices are in the ledger"
            raise LedgerError(message, line=len(entries) + 1)
