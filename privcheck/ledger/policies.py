"""Proof that a dataset's grants together keep its (ε, δ): one certified composition of their caps.

A grant is a filter (`privcheck.accounting.filters`), and a filter as a whole is one mechanism, which is as private as
its cap: ε-DP, ρ-zCDP or μ-GDP, beside an additive δ. Grants with caps fixed before the first release compose as
mechanisms do, however their charges interleave (Vadhan & Zhang 2023), so that the whole privacy curve may be used. A
later grant may depend on earlier releases; it draws on the remainder, the largest cap in one ordered currency that fits
beside the first grants, of which it is a part as every charge is of a grant. Where the dataset is divided into blocks
without a common user, the policy is checked on every block separately.

Plans are written as JSON lines; `privcheck.accounting.Plan` decides which events are equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privcheck.accounting import compose
from privcheck.accounting import events as acc
from privcheck.accounting.currencies import Cost, pure_to_mu, pure_to_rho
from privcheck.accounting.events import Event
from privcheck.accounting.plans import Plan
from privcheck.accounting.reals import decimal
from privcheck.accounting.sums import bound_epsilon
from privcheck.errors import BudgetError, ParameterError
from privcheck.ledger.exact import canonical
from privcheck.ledger.values import CURRENCIES, BudgetPolicy, CurrencyName, Grant
from privcheck.ledger.wire import Part, Spending, parse_event
from privcheck.terms.symbols import to_float

Lines = Sequence[Mapping[str, Any]]


def join_lines(spending: Spending) -> tuple[dict[str, Any], ...]:
    """Lines of a plan: every event once, with its count, in an order independent of the input's."""
    parts = sorted(spending.parts, key=_text)
    plan = Plan.of(part.event() for part in parts)
    first: dict[int, Part] = {}
    for part in parts:
        first.setdefault(plan.place(part.event()), part)
    return tuple({**part.to_dict(), "count": plan.events[place].count} for place, part in first.items())


def plan_of(lines: Lines) -> Plan:
    """Unused plan with the given lines."""
    return _read(canonical(list(lines)))[0]


def count_lines(lines: Lines, spending: Spending) -> tuple[int, ...]:
    """Number of releases of each line's event, however it is written.

    Raises:
        ParameterError: An event is not in the plan with exactly these parameters.
    """
    plan, line_of = _read(canonical(list(lines)))
    counts = [0] * len(lines)
    for part in spending.parts:
        try:
            counts[line_of[plan.place(part.event())]] += part.count
        except BudgetError:
            message = f"expected an event of the plan, with exactly its parameters, got {part.to_dict()}"
            raise ParameterError(message, name="event", given=part.to_dict()) from None
    return tuple(counts)


@lru_cache(maxsize=16)
def _read(text: str) -> tuple[Plan, dict[int, int]]:
    """Plan of the lines, and the line of each of its events."""
    events = [parse_event(line).events()[0] for line in json.loads(text)]
    plan = Plan.of(events)
    return plan, {plan.place(event): line for line, event in reversed(list(enumerate(events)))}


def _text(part: Part) -> str:
    return canonical({**part.to_dict(), "count": 1})


def bound_grants(grants: Sequence[Grant], *, delta: Fraction) -> float:
    """Upper bound on ε at δ of all that the grants will ever admit together; ∞ if no finite ε holds at δ.

    Args:
        grants: Grants with caps fixed before the first release.
        delta: δ of the whole.
    """
    if not grants:
        return 0.0
    currencies = {grant.currency for grant in grants if grant.kind == "adaptive"}
    if all(grant.kind == "adaptive" for grant in grants) and len(currencies) == 1:
        total = Cost(amount=sum((g.cap for g in grants), Fraction(0)), lost=sum((g.lost for g in grants), Fraction(0)))
        return bound_epsilon(CURRENCIES[currencies.pop()], total, delta)
    events = [event for grant in grants for event in _events(grant)]
    return compose(events).epsilon(delta=to_float(delta, rounding="down")).upper


def bound_whole(policy: BudgetPolicy, grants: Sequence[Grant], *, blocks: Collection[str] | None = None) -> float:
    """Upper bound on ε at the policy's δ of all that the grants of its dataset will ever admit, on the worst block.

    Args:
        policy: Policy of the dataset.
        grants: All grants of the dataset.
        blocks: The blocks to consider; None: all.

    Raises:
        BudgetError: A late grant has no price in the currency of the remainder.
    """
    places = {place for grant in grants for place in grant.blocks} if blocks is None else set(blocks)
    on = [tuple(g for g in grants if not g.blocks or place in g.blocks) for place in sorted(places)] or [tuple(grants)]
    several = {
        tuple(grant.name for grant in some): some for some in on
    }  # blocks under the same grants are one question
    return max(_bound_place(policy, some) for some in several.values())


def _bound_place(policy: BudgetPolicy, grants: Sequence[Grant]) -> float:
    if policy.trust == "local":  # the policy is that of one message
        return max((bound_grants([one], delta=policy.delta) for one in grants), default=0.0)
    late = _as_remainder(policy, [one for one in grants if one.late])
    return bound_grants([*(one for one in grants if not one.late), *late], delta=policy.delta)


def above(value: float) -> Fraction:
    """Decimal form of a bound, or of the next float where that decimal is below the bound."""
    short = decimal(value)
    return short if short >= Fraction(value) else decimal(math.nextafter(value, math.inf))


def restate(grant: Grant, currency: CurrencyName) -> Fraction | None:
    """Cap of a grant in another currency, exact or rounded up; None if there is no conversion."""
    if grant.currency == currency:
        return grant.cap
    if grant.currency == "epsilon":
        return (
            pure_to_rho(grant.cap) if currency == "rho" else pure_to_mu(grant.cap) ** 2 if currency == "mu2" else None
        )
    return grant.cap / 2 if (grant.currency, currency) == ("mu2", "rho") else None


def _as_remainder(policy: BudgetPolicy, late: list[Grant]) -> list[Grant]:
    """The single filter in the remainder's currency that contains all late grants."""
    if not late:
        return []
    total = Fraction(0)
    for one in late:
        cap = restate(one, policy.remainder)
        if cap is None or one.lost:
            what = "with a δ of outright loss" if one.lost else f"in {one.currency}"
            message = (
                f"dataset {policy.dataset!r} was charged before, so a new grant may depend on earlier releases: "
                f"expected a cap with a price in {policy.remainder}, got one {what}"
            )
            raise BudgetError(message, cost=None, remaining=None)
        total += cap
    return [replace(late[0], currency=policy.remainder, cap=total)]


def _events(grant: Grant) -> list[Event]:
    """Accounting events of a grant as a whole, rounded up."""
    if grant.kind == "plan":
        return list(plan_of(grant.plan).events)
    cap = to_float(grant.cap, rounding="up")
    whole = {
        "epsilon": lambda: acc.pure(epsilon=cap),
        "rho": lambda: acc.zcdp(rho=cap),
        "mu2": lambda: acc.gaussian(std=(1 / math.sqrt(cap)) * (1 - 1e-15)),
    }[str(grant.currency)]()
    return [whole, acc.approximate(epsilon=0, delta=to_float(grant.lost, rounding="up"))] if grant.lost else [whole]
