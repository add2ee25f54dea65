"""Adaptively chosen spending: a filter with its cap fixed in advance.

Lemma exact-is-no-filter: "Compose everything so far exactly, add this one, compare with (ε, δ)" is *not* a filter where
parameters depend on earlier answers: the true δ of the whole may be up to twice the allowed δ. Proof: a Gaussian first,
then randomised response or a second Gaussian after seeing its output. Each branch composed exactly keeps (ε, δ), but
spends the same δ on other outputs.

A sum in a totally ordered currency is a filter [lemma filter-sum]: on every path of answers the sum is bounded, and so
is the total leakage. Interleaved interactive mechanisms may share one filter (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu
& Zhang 2023).

Lemma filter-lost: If the δ's that lose everything outright are summed separately, up to an allowance `lost`, the whole
keeps (ε, δ + lost) where the rest keeps (ε, δ). Proof: on outputs where nothing was lost both neighbours' densities are
the product of the densities of the rest times ∏(1 − δᵢ), and the probability that something was lost is at most E[Σδᵢ].
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction

from privcheck.accounting.currencies import THEOREMS, Cost, Name
from privcheck.accounting.curve import Curve
from privcheck.accounting.events import Event
from privcheck.accounting.events.base import one_relation
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real, exactly, probability, real
from privcheck.accounting.sums import (
    add_lost,
    add_up,
    bound_epsilon,
    bound_figure,
    charge_of,
    currency_of,
    delta_at,
    epsilon_at,
    say,
)
from privcheck.errors import BudgetError, ParameterError
from privcheck.terms.symbols import to_float
from privcheck.terms.unit import RelationName


class Filter:
    """Budget for releases with parameters that may depend on all earlier releases; its cap is fixed in advance.

    The admitted releases keep the guarantee of the cap at any stopping time, for any reason of stopping. Sums are exact
    (rounded up where a cost is irrational), every question is answered in constant time, and a refused release changes
    nothing. Several threads may spend from one filter; between `can_afford` and `spend` another thread may have spent.

    Attributes:
        currency: Currency of the sum.
        cap: The most that may be spent, and the most δ that may be lost outright.
        spent: Cost spent so far.
        theorem: Theorem by which the sum is a filter.

    >>> from privcheck import accounting as acc
    >>> budget = acc.Filter("zcdp", cap="0.5")
    >>> budget.spend(acc.gaussian(std=2)).amount
    Fraction(1, 8)
    >>> budget.can_afford(acc.gaussian(std=1)), budget.remaining.amount
    (False, Fraction(3, 8))
    >>> round(budget.epsilon(delta=1e-6).value, 3)  # of the cap
    5.222
    """

    __slots__ = ("_lock", "_room", "cap", "currency", "spent", "theorem")

    def __init__(self, currency: Name, *, cap: Real, lost: Real = 0, order: Real | None = None) -> None:
        """Make a filter.

        Args:
            currency: "pure" (Σε), "zcdp" (Σρ), "gdp" (Σμ²) or "renyi" (ΣD_α at a fixed order).
            cap: Cap of the sum; exact, with a float read as the decimal it prints as.
            lost: Cap of the sum of δ's that are lost outright; 0 refuses every release with such a δ.
            order: α above 1, for "renyi".

        Raises:
            ParameterError: A number is out of range, or the order is missing, or given for another currency.
        """
        self.currency = currency_of(currency, order)
        self.cap = Cost(amount=exactly("cap", cap), lost=probability("lost", lost))
        self.spent = Cost(amount=Fraction(0))
        self.theorem = THEOREMS[self.currency.name]
        self._room = (self.spent, self._surely_left())
        self._lock = threading.Lock()

    @classmethod
    def within(
        cls, *, epsilon: Real, delta: Real, currency: Name, lost: Real | None = None, order: Real | None = None
    ) -> Filter:
        """Make the filter with the largest cap that keeps (ε, δ).

        Args:
            epsilon: ε of the whole.
            delta: δ of the whole.
            currency: As in `Filter`.
            lost: The part of δ set aside for releases that lose some outright; if None, all of it in "pure" and none
                elsewhere.
            order: α, for "renyi".

        Raises:
            ParameterError: A number is out of range, or no cap keeps the target.

        >>> from privcheck import accounting as acc
        >>> budget = acc.Filter.within(epsilon=1, delta=1e-6, currency="gdp")
        >>> budget.epsilon(delta=1e-6).upper <= 1
        True
        """
        target, whole = exactly("epsilon", epsilon), probability("delta", delta)
        kind = currency_of(currency, order)
        aside = probability("lost", lost) if lost is not None else whole if kind.name == "pure" else Fraction(0)
        if aside > whole:
            message = f"expected lost at most delta = {float(whole):g}, got {float(aside):g}"
            raise ParameterError(message, name="lost", given=lost)
        if kind.name == "pure":
            cap = target
        else:
            e, d = to_float(target, rounding="down"), to_float(whole - aside, rounding="down")
            cap = Fraction(_largest(lambda amount: epsilon_at(kind, amount, d) <= e))
        if cap == 0:
            message = f"no spending in {kind} keeps ({float(target):g}, {float(whole):g})"
            raise ParameterError(f"{message}; a larger delta, less of it lost, or another order may", name="epsilon")
        return cls(kind.name, cap=cap, lost=aside, order=kind.order)

    def can_afford(self, event: Event | Curve | Cost | Real) -> bool:
        """Whether `spend` would admit the event.

        Raises:
            ParameterError: The event has no finite cost in the currency, or is priced under another relation.
        """
        cost = charge_of(event, self.currency)
        one_relation((self.spent, cost))
        if self._room[0] is not self.spent:
            self._room = (self.spent, self._surely_left())
        if not cost.lost and to_float(cost.amount, rounding="nearest") < self._room[1]:
            return True
        return self._fits(self._after(cost))

    def spend(self, event: Event | Curve | Cost | Real) -> Cost:
        """Charge an event, a curve, a cost or an amount of the currency, and return its cost.

        Spend first, release afterwards.

        Raises:
            BudgetError: The cost does not fit; nothing has changed.
            ParameterError: The event has no finite cost in the currency, or is priced under another relation than
                earlier spending; nothing has changed.
        """
        cost = charge_of(event, self.currency)
        with self._lock:
            after = self._after(cost)
            if self._fits(after):
                self.spent = after
                return cost
            left = self.remaining
        message = f"{event} costs {say(cost, self.currency)}, and {say(left, self.currency)} is left"
        message += "; ask can_afford() first, or release with more noise"
        raise BudgetError(message, cost=cost, remaining=left)

    @property
    def remaining(self) -> Cost:
        """Remaining budget, exactly."""
        spent = self.spent
        left = self.cap.amount - spent.amount
        return Cost(amount=left, lost=self.cap.lost - spent.lost, relation=spent.relation)

    @property
    def relation(self) -> RelationName | None:
        """Relation fixed by the first event that names one, for all later events; None before."""
        return self.spent.relation

    def epsilon(self, *, delta: Real) -> Figure:
        """ε at δ of everything that the filter will ever admit: that of the cap.

        Raises:
            ParameterError: δ is out of range.
        """
        d = probability("delta", delta)
        value = bound_epsilon(self.currency, self.cap, d)
        reason = "" if value < math.inf else f"δ is not above the {float(self.cap.lost):g} that may be lost outright"
        return bound_figure(value, f"filter, {self.theorem}", self.relation, reason)

    def delta(self, *, epsilon: Real) -> Figure:
        """δ at ε of everything that the filter will ever admit: that of the cap.

        Raises:
            ParameterError: ε is out of range.
        """
        at = real("epsilon", epsilon, strict=False)
        delta = delta_at(self.currency, to_float(self.cap.amount, rounding="up"), at)
        return bound_figure(min(1.0, add_lost(delta, self.cap.lost)), f"filter, {self.theorem}", self.relation)

    def _surely_left(self) -> float:
        """Lower bound on the remaining amount: most questions need no long fractions."""
        left, whole = (to_float(f, rounding="nearest") for f in (self.remaining.amount, self.cap.amount))
        return left * (1 - 1e-9) if left > 1e-9 * whole else 0.0

    def _after(self, cost: Cost) -> Cost:
        return add_up(self.spent, cost, self.cap.amount)

    def _fits(self, after: Cost) -> bool:
        return after.amount <= self.cap.amount and after.lost <= self.cap.lost

    def __getstate__(self) -> dict[str, object]:
        """Copy everything except the lock: a copy is an independent budget, unaffected by spending from the other."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore a copy, with a new lock."""
        for name, value in state.items():
            setattr(self, name, value)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        spent, cap = (say(cost, self.currency) for cost in (self.spent, self.cap))
        return f"Filter({self.currency}: spent {spent} of {cap})"


def _largest(keeps: Callable[[float], bool]) -> float:
    """Largest amount that keeps the target, 0 where none does: keeps(x) is falling in x."""
    low, high = 0.0, 1.0
    while keeps(high) and high < 1e300:
        low, high = high, 4 * high
    least = 1e-300
    if low == 0.0:
        if not keeps(least):
            return 0.0
        low = least
    while low < (middle := math.sqrt(low) * math.sqrt(high)) < high and high > low * (1 + 1e-15):
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
