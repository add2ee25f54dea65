"""Adaptively chosen spending without a cap: an odometer; see `privcheck.accounting.filters`."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Final

from privcheck.accounting.currencies import THEOREMS, UNITS, Cost, Name
from privcheck.accounting.curve import Curve
from privcheck.accounting.events import Event
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real, exactly, probability
from privcheck.accounting.sums import (
    add_up,
    bound_figure,
    charge_of,
    currency_of,
    epsilon_at,
    say,
    shorten,
)
from privcheck.errors import ParameterError
from privcheck.terms.symbols import to_float
from privcheck.terms.unit import RelationName

_LEVELS: Final = 100_000  # of an odometer


class Odometer:
    """Reading of the spending so far, valid at any stopping time, without a cap fixed in advance.

    Levels cⱼ = first·growthʲ are caps fixed in advance, level j with its share δⱼ = δ/((j + 1)(j + 2)), Σδⱼ = δ. The
    reading is ε(cⱼ; δⱼ) of the lowest level that holds the sum.

    Lemma odometer-levels: At any stopping time T, which may depend on the outputs, E[(1 − e^{ε_J − L_T})₊] ≤ Σⱼδⱼ = δ,
    J the level read there: an ex-post (ε_J, δ) guarantee. Source: Rogers, Roth, Ullman & Vadhan 2016 for odometers,
    Ligett et al. 2017 for ex-post privacy. Proof: it is at most Σⱼ E[(1 − e^{εⱼ − L})₊ of the run cut off at level j],
    and a filter with cap cⱼ admits each such run.

    An odometer costs more than a filter, necessarily (Rogers et al.): where a cap can be fixed, use a filter. In "pure"
    the sum itself is the reading, at no cost.

    Attributes:
        currency: Currency of the sum.
        spent: Cost spent so far.
        theorem: Theorem by which the sum bounds the leakage.

    >>> from privcheck import accounting as acc
    >>> meter = acc.Odometer("zcdp", delta=1e-6, first="0.01")
    >>> for _ in range(10):
    ...     cost = meter.spend(acc.gaussian(std=10))
    >>> meter.spent.amount, round(meter.epsilon().value, 3)
    (Fraction(1, 20), 2.135)
    """

    __slots__ = ("_delta", "_first", "_growth", "_index", "_level", "_lock", "_lost", "currency", "spent", "theorem")

    def __init__(
        self,
        currency: Name,
        *,
        delta: Real,
        first: Real = "0.01",
        growth: Real = 2,
        lost: Real = 0,
        order: Real | None = None,
    ) -> None:
        """Make an odometer.

        Args:
            currency: "pure", "zcdp", "gdp" or "renyi".
            delta: δ of every reading.
            first: The lowest level; about the least amount that will be spent.
            growth: Ratio of a level to the one before, at least 1.01.
            lost: The part of δ set aside for releases that lose some outright.
            order: α above 1, for "renyi".

        Raises:
            ParameterError: A number is out of range.
        """
        self.currency = currency_of(currency, order)
        self._first, self._growth = exactly("first", first), exactly("growth", growth)
        self._delta, self._lost = probability("delta", delta), probability("lost", lost)
        if self._growth < Fraction(101, 100):
            raise ParameterError(f"expected growth at least 1.01, got {growth!r}", name="growth", given=growth)
        if self._first == 0:
            raise ParameterError("expected first above 0, got 0", name="first", given=first)
        if self._lost > self._delta:
            raise ParameterError(f"expected lost at most delta, got {lost!r}", name="lost", given=lost)
        self.spent = Cost(amount=Fraction(0))
        self.theorem = THEOREMS[self.currency.name]
        self._index, self._level = 0, self._first
        self._lock = threading.Lock()

    def spend(self, event: Event | Curve | Cost | Real) -> Cost:
        """Charge an event, a curve, a cost or an amount of the currency, and return its cost.

        Raises:
            ParameterError: The event has no finite cost in the currency, or is priced under another relation than
                earlier spending; nothing has changed.
        """
        cost = charge_of(event, self.currency)
        with self._lock:
            self.spent = add_up(self.spent, cost, self._first)
            while self._level < self.spent.amount and self._index < _LEVELS:
                self._index, self._level = self._index + 1, shorten(self._level * self._growth, self._first)
        return cost

    @property
    def relation(self) -> RelationName | None:
        """Relation fixed by the first event that names one, for all later events; None before."""
        return self.spent.relation

    def epsilon(self) -> Figure:
        """ε at the odometer's δ, for all spending so far."""
        how = f"odometer, {self.theorem}"
        with self._lock:
            spent, index, reached = self.spent, self._index, self._level
        if spent.lost > self._lost:
            reason = f"δ = {float(spent.lost):g} is lost outright, above the {float(self._lost):g} set aside"
            return bound_figure(math.inf, how, spent.relation, reason)
        if spent.amount == 0 or self.currency.name == "pure":
            return bound_figure(to_float(spent.amount, rounding="up"), how, spent.relation)
        if reached < spent.amount:
            return bound_figure(
                math.inf, how, spent.relation, f"beyond {_LEVELS} levels: expected a larger first or growth"
            )
        j, level = index, to_float(reached, rounding="up")
        share = (self._delta - self._lost) / ((j + 1) * (j + 2))
        value = epsilon_at(self.currency, level, to_float(share, rounding="down"))
        words = f"level {j + 1}, {UNITS[self.currency.name]} ≤ {level:.6g}"
        return bound_figure(value, f"odometer, {words}, {self.theorem}", spent.relation)

    def __getstate__(self) -> dict[str, object]:
        """Copy everything except the lock: a copy is an independent odometer, unaffected by spending on the other."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore a copy, with a new lock."""
        for name, value in state.items():
            setattr(self, name, value)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Odometer({self.currency}: spent {say(self.spent, self.currency)})"
