"""What of a grant is spent: exact sums on every block that it covers, or on the dataset as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal

from privcheck.accounting.currencies import Cost
from privcheck.accounting.sums import add_up
from privcheck.ledger import rows
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import WHOLE, Grant, read_cost, write_cost

SHARES: Final = 2**62  # of a cap: what the store's CHECK counts in
Spent = Literal["reserved", "committed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What is committed and what is reserved in one place; both count as spent.

    Attributes:
        committed: What may have been released.
        reserved: What may still be, expired reservations included.
        used: Of a plan: how often each of its events has been charged.
    """

    committed: Cost = field(default_factory=lambda: Cost(amount=Fraction(0)))
    reserved: Cost = field(default_factory=lambda: Cost(amount=Fraction(0)))
    used: tuple[int, ...] = ()

    def add(self, cap: Fraction, cost: Cost, state: Spent) -> Sums:
        """Returns the sums with a cost more."""
        if state == "reserved":
            return Sums(committed=self.committed, reserved=add_up(self.reserved, cost, cap), used=self.used)
        return Sums(committed=add_up(self.committed, cost, cap), reserved=self.reserved, used=self.used)

    def count(self, lines: Sequence[int], *, sign: int = 1) -> Sums:
        """Returns the sums with so many more of each event of a plan used."""
        if not lines:
            return self
        return replace(self, used=tuple(n + sign * more for n, more in zip(self.used, lines, strict=True)))

    def held(self, cap: Fraction) -> Cost:
        """Returns what counts as spent."""
        if self.reserved.amount == 0 == self.reserved.lost:
            return self.committed
        if not (self.reserved.amount or self.reserved.lost):
            return self.committed
        return add_up(self.committed, self.reserved, cap)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text."""
        return {
            "committed": write_cost(self.committed),
            "reserved": write_cost(self.reserved),
            "used": list(self.used),
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Sums:
        """Returns the sums of their own fields."""
        committed, reserved = read_cost(data["committed"]), read_cost(data["reserved"])
        return Sums(committed=committed, reserved=reserved, used=tuple(data["used"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What of a grant is spent, in every place that was ever charged.

    Attributes:
        sums: By block; by "" where the dataset is not divided.
        frozen: Nothing more may be charged.
    """

    sums: Mapping[str, Sums]
    frozen: bool = False

    @staticmethod
    def new(grant: Grant) -> Balance:
        """Returns the balance of a grant of which nothing is spent."""
        return Balance(sums={} if grant.blocks else {WHOLE[0]: empty(grant)})

    def at(self, grant: Grant, place: str) -> Sums:
        """Returns the sums in a place."""
        return self.sums.get(place) or empty(grant)

    def spend(self, grant: Grant, places: Sequence[str], cost: Cost, lines: Sequence[int], state: Spent) -> Balance:
        """Returns the balance with a charge more, in every one of its places."""
        return self._change(grant, places, lambda sums: sums.add(grant.cap, cost, state).count(lines))

    def commit(self, grant: Grant, places: Sequence[str], cost: Cost) -> Balance:
        """Returns the balance with what was reserved committed."""
        return self._change(
            grant, places, lambda s: replace(s, reserved=less(s.reserved, cost)).add(grant.cap, cost, "committed")
        )

    def release(self, grant: Grant, places: Sequence[str], cost: Cost, lines: Sequence[int]) -> Balance:
        """Returns the balance without what was reserved."""
        return self._change(grant, places, lambda s: replace(s, reserved=less(s.reserved, cost)).count(lines, sign=-1))

    def free(self, grant: Grant, place: str) -> Cost:
        """Returns what is left in a place; all of the cap where charges are recorded, not added."""
        if grant.recorded:
            return Cost(amount=grant.cap, lost=grant.lost)
        held = self.at(grant, place).held(grant.cap)
        return less(Cost(amount=grant.cap, lost=grant.lost), held)

    def shares(self, grant: Grant) -> tuple[int, int]:
        """Returns what counts as spent of the cap and of the δ, in 2⁻⁶²ths of them, rounded up; in the fullest place.

        Of a plan it is the most of all its events.
        """
        amounts, losses = [0], [0]
        for sums in () if grant.recorded else self.sums.values():
            held = sums.held(grant.cap)
            amounts.append(_share(held.amount, grant.cap))
            amounts += [_share(Fraction(n), Fraction(e["count"])) for n, e in zip(sums.used, grant.plan, strict=True)]
            losses.append(_share(held.lost, grant.lost))
        return max(amounts), max(losses)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text."""
        if WHOLE[0] in self.sums:
            return {**self.sums[WHOLE[0]].to_dict(), "frozen": self.frozen}
        return {"blocks": {name: sums.to_dict() for name, sums in self.sums.items()}, "frozen": self.frozen}

    @staticmethod
    def of(data: Mapping[str, Any]) -> Balance:
        """Returns the balance of its own fields."""
        parts = data["blocks"] if "blocks" in data else {WHOLE[0]: data}
        return Balance(sums={name: Sums.of(part) for name, part in parts.items()}, frozen=data["frozen"])

    def _change(self, grant: Grant, places: Sequence[str], change: Callable[[Sums], Sums]) -> Balance:
        changed = {place: change(self.at(grant, place)) for place in places}
        return Balance(sums={**self.sums, **changed}, frozen=self.frozen)


def balance_of(transaction: Transaction, grant: str) -> Balance:
    """Returns a grant's balance, which its last row has."""
    last = rows.last_of_grant(transaction, grant)
    assert last is not None
    return Balance.of(last.body["balance"])


def less(cost: Cost, part: Cost) -> Cost:
    """Returns a cost without a part of it."""
    return Cost(amount=cost.amount - part.amount, lost=cost.lost - part.lost if part.lost else cost.lost)


def empty(grant: Grant) -> Sums:
    """Returns the sums of a place where nothing was charged."""
    return Sums(used=(0,) * len(grant.plan))


def _share(amount: Fraction, cap: Fraction) -> int:
    if not cap:
        return 0 if amount == 0 else SHARES + 1
    return -(-amount.numerator * SHARES * cap.denominator // (amount.denominator * cap.numerator))
