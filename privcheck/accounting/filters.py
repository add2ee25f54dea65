"""Spending that is chosen as one goes: a filter with its cap fixed in advance.

"Compose everything so far exactly, add this one, compare with (ε, δ)" is *not* a filter where parameters depend on
earlier answers: a Gaussian first, then randomised response or a second Gaussian after seeing its output. Each branch
composed exactly keeps (ε, δ), the true δ of the whole is up to twice the allowed one, because each branch spends the
same δ on other outputs. A sum in a totally ordered currency is a filter (`privcheck.accounting.currencies` says by
which theorem): whichever way the answers lead, the sum is bounded, and so is what the whole leaks. Interleaved
interactive mechanisms may share one (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu & Zhang 2023).

δ's that lose everything outright are summed beside the currency, up to an allowance of their own. On outputs where
nothing was lost both neighbours' densities are the product of the rest's times ∏(1 − δᵢ), and the probability that
something was lost is at most E[Σδᵢ], so that the whole keeps (ε, δ + lost) where the rest keeps (ε, δ).
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
from privcheck.accounting.reals import Real, real
from privcheck.accounting.sums import (
    add_lost,
    add_up,
    amount_of,
    bound_epsilon,
    bound_figure,
    charge_of,
    currency_of,
    delta_at,
    epsilon_at,
    probability,
    say,
)
from privcheck.errors import BudgetError, ParameterError
from privcheck.terms.symbols import to_float
from privcheck.terms.unit import RelationName


class Filter:
    """A budget for releases whose parameters may depend on everything released before; its cap is fixed in advance.

    What it admits keeps the guarantee of the cap at whichever point one stops, for whichever reason. Sums are exact
    (rounded up where a cost is irrational), every question is answered in constant time, and a release that is refused
    changes nothing. Several threads may spend from one; between `can_afford` and `spend` another may have spent.

    Attributes:
        currency: What is summed.
        cap: The most that may be spent, and the most δ that may be lost outright.
        spent: What has been.
        theorem: Why the sum is a filter.

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
        """Makes a filter.

        Args:
            currency: "pure" (Σε), "zcdp" (Σρ), "gdp" (Σμ²) or "renyi" (ΣD_α at a fixed order).
            cap: Of the sum; exact, a float being read as the decimal it prints as.
            lost: Of the sum of δ's that are lost outright; 0 refuses every release that has one.
            order: α above 1, for "renyi".

        Raises:
            ParameterError: A number is out of range, or the order is missing or has no use.
        """
        self.currency = currency_of(currency, order)
        self.cap = Cost(amount=amount_of("cap", cap), lost=probability("lost", lost))
        self.spent = Cost(amount=Fraction(0))
        self.theorem = THEOREMS[self.currency.name]
        self._room = (self.spent, self._surely_left())
        self._lock = threading.Lock()

    @classmethod
    def within(
        cls, *, epsilon: Real, delta: Real, currency: Name, lost: Real | None = None, order: Real | None = None
    ) -> Filter:
        """Returns the filter with the largest cap that keeps (ε, δ).

        Args:
            epsilon: ε of the whole.
            delta: δ of the whole.
            currency: As above.
            lost: The part of δ set aside for releases that lose some outright; in "pure" all of it, elsewhere none.
            order: α, for "renyi".

        Raises:
            ParameterError: A number is out of range, or no cap keeps the target.

        >>> from privcheck import accounting as acc
        >>> budget = acc.Filter.within(epsilon=1, delta=1e-6, currency="gdp")
        >>> budget.epsilon(delta=1e-6).upper <= 1
        True
        """
        target, whole = amount_of("epsilon", epsilon), probability("delta", delta)
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
        """Returns whether `spend` would admit it.

        Raises:
            ParameterError: It has no finite cost in the currency, or is priced under another relation.
        """
        cost = charge_of(event, self.currency)
        one_relation((self.spent, cost))
        if self._room[0] is not self.spent:
            self._room = (self.spent, self._surely_left())
        if not cost.lost and to_float(cost.amount, rounding="nearest") < self._room[1]:
            return True
        return self._fits(self._after(cost))

    def spend(self, event: Event | Curve | Cost | Real) -> Cost:
        """Charges an event, a curve, a cost or an amount of the currency; returns its cost.

        Spend first, release afterwards.

        Raises:
            BudgetError: It does not fit; nothing has changed.
            ParameterError: It has no finite cost in the currency, or is priced under another relation than what was
                spent; nothing has changed.
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
        """Returns what is left, exactly."""
        spent = self.spent
        left = self.cap.amount - spent.amount
        return Cost(amount=left, lost=self.cap.lost - spent.lost, relation=spent.relation)

    @property
    def relation(self) -> RelationName | None:
        """The relation that the first naming event fixed for all later ones; None before."""
        return self.spent.relation

    def epsilon(self, *, delta: Real) -> Figure:
        """Returns the ε at δ of all that the filter will ever admit: that of the cap.

        Raises:
            ParameterError: δ is out of range.
        """
        d = probability("delta", delta)
        value = bound_epsilon(self.currency, self.cap, d)
        reason = "" if value < math.inf else f"δ is not above the {float(self.cap.lost):g} that may be lost outright"
        return bound_figure(value, f"filter, {self.theorem}", self.relation, reason)

    def delta(self, *, epsilon: Real) -> Figure:
        """Returns the δ at ε of all that the filter will ever admit: that of the cap.

        Raises:
            ParameterError: ε is out of range.
        """
        at = real("epsilon", epsilon, strict=False)
        delta = delta_at(self.currency, to_float(self.cap.amount, rounding="up"), at)
        return bound_figure(min(1.0, add_lost(delta, self.cap.lost)), f"filter, {self.theorem}", self.relation)

    def _surely_left(self) -> float:
        """Returns less than what is left: most questions need no long fractions."""
        left, whole = (to_float(f, rounding="nearest") for f in (self.remaining.amount, self.cap.amount))
        return left * (1 - 1e-9) if left > 1e-9 * whole else 0.0

    def _after(self, cost: Cost) -> Cost:
        return add_up(self.spent, cost, self.cap.amount)

    def _fits(self, after: Cost) -> bool:
        return after.amount <= self.cap.amount and after.lost <= self.cap.lost

    def __getstate__(self) -> dict[str, object]:
        """Returns all but the lock: a copy is a budget of its own, which knows nothing of what the other spends."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restores a copy, with a lock of its own."""
        for name, value in state.items():
            setattr(self, name, value)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        spent, cap = (say(cost, self.currency) for cost in (self.spent, self.cap))
        return f"Filter({self.currency}: spent {spent} of {cap})"


def _largest(keeps: Callable[[float], bool]) -> float:
    """Returns the largest amount that keeps the target, 0 where none does: keeps(x) is falling in x."""
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
