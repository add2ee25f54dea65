"""From a ledger to its cost, and the check that it is the declared cost, release by release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from privcheck.accounting.currencies import Name
from privcheck.accounting.filters import Filter
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import LAWS, Noise
from privcheck.errors import LedgerError
from privcheck.pricing.priced import Priced
from privcheck.runtime.ledger import Entry
from privcheck.terms.symbols import to_float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Cost of a run for its users, rounded up.

    Attributes:
        rho: Cost in zCDP; ∞ where the noise source does not draw the declared noise.
        pure_epsilon: Cost in pure DP; ∞ where a release is not pure.
        mu: μ of the exact Gaussian curve; None where a release is not Gaussian.
    """

    rho: float
    pure_epsilon: float
    mu: float | None


Laws = Mapping[str, type[Noise]]
Prices = Mapping[Name, Fraction | None]  # in each currency; None where there is no finite one
_FREE: Final[Prices] = {"zcdp": Fraction(0), "pure": Fraction(0), "gdp": Fraction(0)}  # in the order of `price_charge`
_UP: Final = Fraction(2**45 + 1, 2**45)  # outward rounding of what a law computes of a charge
_FAINT: Final = 1e-290  # what a law computes below it may have lost its digits, or all of itself
_LEAST: Final = Fraction(1, 2**960)


def laws_of(declaration: Declaration | None) -> Laws:
    """Laws that a ledger may name: the built-in ones, and those of the declaration's mechanisms."""
    own = [] if declaration is None else [release.mechanism.law for release in declaration.noisy]
    return {law.name: law for law in own} | LAWS


def price_ledger(header: Mapping[str, Any], entries: Sequence[Entry], *, laws: Laws = LAWS) -> Spent:
    """Compute the cost of a ledger from its figures: every charge, whether or not all its slices were released.

    Gaussian: ρ = Δ₂²/2σ². Laplace: Δ₁/b in pure DP, and in zCDP the worst split over coordinates (see
    `privcheck.declare.mechanisms.Laplace.zcdp`). Over a partition of the users the dearest group counts. The cost of a
    law that is not among `laws` is ∞.

    Args:
        header: Header of the ledger.
        entries: Entries of the ledger.
        laws: Noise laws, by their name in ledgers (`laws_of`).
    """
    return follow_ledger(header, entries, [{}], laws=laws)[0]


def follow_ledger(
    header: Mapping[str, Any], entries: Sequence[Entry], shares: Sequence[Mapping[str, Fraction]], *, laws: Laws = LAWS
) -> list[Spent]:
    """Compute the spending at several times, for a ledger with charges that fall due share by share.

    A release's ρ, ε and μ² are sums over outputs, so a share of the outputs costs that share. Every group of users has
    a `Filter` in each currency, with the total charge of the ledger as its cap: the spending never exceeds the cap, and
    equals it once everything has fallen due. The releases are fixed in advance, hence so is the cap, and its guarantee
    holds at any stopping time; an earlier amount of spending is not a guarantee at a time chosen from the answers.

    Args:
        header: Header of the ledger.
        entries: Entries of the ledger.
        shares: At each time the share of every release by name, in [0, 1] and nondecreasing; 1 where it is missing.
        laws: As in `price_ledger`.
    """
    if not header.get("as_declared", False) and entries:
        return [Spent(rho=math.inf, pure_epsilon=math.inf, mu=None)] * len(shares)
    paid = [
        [_follow(currency, group, shares) for currency in ("zcdp", "pure", "gdp")] for group in _groups(entries, laws)
    ]
    rhos, pures, squares = (
        [max(amounts) for amounts in zip(*(of[i] for of in paid), strict=True)] for i in range(3)
    )  # of the dearest group, at each time
    return [
        Spent(rho=rho, pure_epsilon=pure, mu=None if math.isinf(square) else _root(square))
        for rho, pure, square in zip(rhos, pures, squares, strict=True)
    ]


def _groups(entries: Sequence[Entry], laws: Laws) -> list[list[tuple[str, Prices]]]:
    """Charges of each group of a partition of the users: releases by name, each with its price."""
    prices: dict[tuple[str, str], Prices] = {}
    for entry in entries:
        if (cost := entry.charge) is not None:
            key, one = (entry.release, cost.users), laws.get(cost.law, Noise).of(cost).price_charge(cost)
            before = prices.get(key, _FREE)
            least = _LEAST if cost.l1 > 0 else Fraction(0)
            prices[key] = {name: _add(before[name], more, least) for name, more in zip(before, one, strict=True)}
    groups: dict[str, list[tuple[str, Prices]]] = {}
    for (release, users), price in prices.items():
        groups.setdefault(users, []).append((release, price))
    everybody = groups.pop("", [])
    return [[*everybody, *own] for own in groups.values()] or [everybody]


def _add(before: Fraction | None, price: float, least: Fraction) -> Fraction | None:
    if before is None or not math.isfinite(price):
        return None
    return before + (Fraction(price) * _UP if price > _FAINT else Fraction(price) + least)


def _follow(
    currency: Name, group: Sequence[tuple[str, Prices]], shares: Sequence[Mapping[str, Fraction]]
) -> list[float]:
    """Spending of a group in a currency at each time, rounded up; ∞ once a charge without a price has fallen due.

    Sums are exact until they are rounded up to a float, which the grids of the filter represent exactly.
    """
    prices = [price[currency] for _, price in group]
    cap = _round(prices, [Fraction(1)] * len(prices))
    if math.isinf(cap):
        return [math.inf] * len(shares)
    budget, readings = Filter(currency, cap=Fraction(cap)), list[float]()
    last: list[Fraction] | None = None
    for share in shares:
        due = [Fraction(share.get(release, 1)) for release, _ in group]
        if due == last:
            readings.append(readings[-1])
            continue
        budget.spend(max(Fraction(_round(prices, due)) - budget.spent.amount, Fraction(0)))
        endless = any(price is None and part > 0 for price, part in zip(prices, due, strict=True))
        readings.append(math.inf if endless else to_float(budget.spent.amount, rounding="up"))
        last = due
    return readings


def _round(prices: Sequence[Fraction | None], parts: Sequence[Fraction]) -> float:
    """Sum of parts of prices, rounded up; missing prices are left out."""
    some = [(price, part) for price, part in zip(prices, parts, strict=True) if price is not None]
    return to_float(sum((price * part for price, part in some), Fraction(0)), rounding="up")


def _root(square: float) -> float:
    return math.nextafter(math.sqrt(square), math.inf) if square else 0.0


def check_ledger(
    header: Mapping[str, Any], entries: Sequence[Entry], declaration: Declaration, values: Mapping[str, Fraction]
) -> None:
    """Check that a ledger records exactly the declared names, slices and charges.

    Raises:
        LedgerError: Ledger and declaration disagree; the line is named (line 1 is the header).
    """
    check_entries(header, entries, Priced(declaration, values))


def check_entries(header: Mapping[str, Any], entries: Sequence[Entry], priced: Priced) -> None:
    """As `check_ledger`, against a priced declaration."""
    declaration, values = priced.declaration, priced.values
    wanted = {
        "algorithm": declaration.name,
        "parameters": {name: str(value) for name, value in sorted(values.items())},
        "relation": declaration.relation.words,
        "as_declared": not declaration.shared_draws,
    }
    for field, declared in wanted.items():
        if (written := header.get(field)) != declared or type(written) is not type(declared):
            message = f"line 1: the ledger's {field} is {written!r}, the declaration's {declared!r}"
            raise LedgerError(message, line=1)
    if (protects := header.get("protects")) and not all(r.mechanism.law.whole for r in declaration.noisy):
        message = f"line 1: the ledger's protects is {protects!r}, and only discrete noise may be published"
        raise LedgerError(message, line=1)
    charges = priced.charges
    expected = {r.name: (charges[r.name], r.statistic.shape(values)[0]) for r in declaration.noisy}
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
            raise LedgerError(
                f"line {line}: {entry.release} was charged {entry.charge}, but {due} is declared", line=line
            )
        seen[entry.release].add(entry.part)
    for name, parts in seen.items():
        if len(parts) != expected[name][1]:
            message = f"{name}: {len(parts)} of {expected[name][1]} declared slices are in the ledger"
            raise LedgerError(message, line=len(entries) + 1)
