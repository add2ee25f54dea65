"""Exact sums in a currency, for input and output: shared by filter and odometer."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from privcheck.accounting.currencies import UNITS, Cost, Currency, cost_of
from privcheck.accounting.curve import Curve
from privcheck.accounting.engine.gdp import SMALLEST, gdp_delta, gdp_epsilon
from privcheck.accounting.engine.zcdp import pure_delta, zcdp_delta, zcdp_epsilon
from privcheck.accounting.events import Event
from privcheck.accounting.events.base import one_relation
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import exactly
from privcheck.errors import ParameterError
from privcheck.terms.symbols import to_float
from privcheck.terms.unit import RelationName

_UP: Final = 2e-15
_DIGITS: Final = 512  # of a sum's denominator, in bits; longer ones are rounded up to fewer


def currency_of(name: object, order: object) -> Currency:
    """Make a currency from its name and order; invalid ones are refused."""
    if name not in UNITS:
        expected = ", ".join(repr(known) for known in UNITS)
        raise ParameterError(f"expected currency one of {expected}, got {name!r}", name="currency", given=name)
    if name != "renyi":
        if order is not None:
            raise ParameterError(f"expected no order in {name}, got {order!r}", name="order", given=order)
        return Currency(name=name)
    if order is None:
        raise ParameterError("expected an order above 1 for currency 'renyi', got none", name="order")
    alpha = exactly("order", order)
    if not alpha > 1:
        raise ParameterError(f"expected order above 1, got {order!r}", name="order", given=order)
    return Currency(name="renyi", order=alpha)


def charge_of(event: object, currency: Currency) -> Cost:
    """Cost of an event, a curve or an amount; a checked cost is returned unchanged."""
    if isinstance(event, Cost):
        if not all(type(part) is Fraction and part >= 0 for part in (event.amount, event.lost)):
            message = f"expected a cost of fractions of at least 0, such as cost_of returns, got {event}"
            raise ParameterError(f"{message}: spending is never refunded", name="event", given=event)
        return event
    if isinstance(event, Event | Curve):
        return cost_of(event, currency)
    return Cost(amount=exactly("event", event))


def add_up(spent: Cost, cost: Cost, unit: Fraction) -> Cost:
    """Add a cost to the spending: exactly, or rounded up by a negligible part of a unit.

    Raises:
        ParameterError: The cost is priced under another relation.
    """
    lost = shorten(spent.lost + cost.lost, Fraction(1)) if cost.lost else spent.lost
    relation = one_relation((spent, cost))
    return Cost(amount=shorten(spent.amount + cost.amount, unit), lost=lost, relation=relation)


def shorten(total: Fraction, unit: Fraction) -> Fraction:
    """Round the sum up by at most 2⁻⁴⁰⁰ of a unit where its denominator has become long."""
    if total.denominator.bit_length() <= _DIGITS:
        return total
    grid = 1 << (400 + (math.ceil(1 / unit).bit_length() if unit else 0))
    return Fraction(-(-total.numerator * grid // total.denominator), grid)


def bound_epsilon(currency: Currency, cost: Cost, delta: Fraction) -> float:
    """ε at δ of a cost, with the δ lost outright, rounded up; ∞ where δ is too small for the lost mass."""
    amount = to_float(cost.amount, rounding="up")
    if currency.name == "pure":
        return amount if delta >= cost.lost else math.inf
    return math.inf if delta <= cost.lost else epsilon_at(currency, amount, round_down(delta - cost.lost))


def epsilon_at(currency: Currency, amount: float, delta: float) -> float:
    """ε at δ of releases whose costs sum to an amount, rounded up."""
    if amount == 0:
        return 0.0
    if delta <= 0:
        return amount if currency.name == "pure" else math.inf
    if currency.name == "pure":
        return amount
    if currency.name == "zcdp":
        return zcdp_epsilon(amount, delta)
    if currency.name == "gdp":
        return gdp_epsilon(math.nextafter(math.sqrt(amount), math.inf), delta)
    z = _less_one(currency)
    shape, level = z * math.log(z) - (z + 1) * math.log1p(z), -math.log(delta)
    value = amount + (level + shape) / z
    return max(0.0, value + _UP * (amount + (level + abs(z * math.log(z)) + (z + 1) * math.log1p(z)) / z))


def delta_at(currency: Currency, amount: float, epsilon: float) -> float:
    """δ at ε of releases whose costs sum to an amount, rounded up."""
    if amount == 0:
        return 0.0
    if currency.name == "pure":
        return pure_delta(amount, epsilon)
    if currency.name == "zcdp":
        return zcdp_delta(amount, epsilon)
    if currency.name == "gdp":
        return gdp_delta(math.nextafter(math.sqrt(amount), math.inf), epsilon)
    z = _less_one(currency)
    shape = z * math.log(z) - (z + 1) * math.log1p(z)
    log_delta = z * (amount - epsilon) + shape
    log_delta += _UP * (z * (amount + epsilon) + abs(z * math.log(z)) + (z + 1) * math.log1p(z))
    return 1.0 if log_delta >= 0 else max(SMALLEST, math.nextafter(math.exp(log_delta), 1.0))


def _less_one(currency: Currency) -> float:
    """α − 1, rounded to nearest; the error in a bound is below the rounding added there."""
    assert currency.order is not None
    return to_float(currency.order - 1, rounding="nearest")


def add_lost(value: float, lost: Fraction) -> float:
    """Sum, rounded up."""
    return to_float(Fraction(value) + lost, rounding="up") if lost else value


def round_down(value: Fraction) -> float:
    """Largest float at or below the value."""
    return to_float(value, rounding="down")


def say(cost: Cost, currency: Currency) -> str:
    """Write a cost in words."""
    words = f"{UNITS[currency.name]} = {float(cost.amount):.12g}"
    return f"{words} and δ = {float(cost.lost):.6g}" if cost.lost else words


def bound_figure(value: float, method: str, relation: RelationName | None, reason: str = "") -> Figure:
    """Figure of a bound."""
    return Figure(
        value=value, method=method, direction="upper", reason=reason, relation=relation, _certify=lambda: value
    )
