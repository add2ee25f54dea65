"""Balances: the spending of a grant, block by block, the rest of its cap, and their display.

Sums are exact, on every block that a grant covers, or on the dataset as a whole. A dataset may be divided into blocks
without a common user (`Block`), each with the whole budget of the policy. Users of a local dataset draw their own
noise: their loss is shown separately and does not count against any cap (`describe_all_taken`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal

from privcheck.accounting.currencies import NOT_A_GUARANTEE, Cost
from privcheck.accounting.sums import add_up, bound_epsilon
from privcheck.errors import ParameterError
from privcheck.ledger import rows
from privcheck.ledger.exact import read_name, read_text, write_number
from privcheck.ledger.policies import above
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import CURRENCIES, WHOLE, BudgetPolicy, Entry, Grant, read_cost, write_cost

SHARES: Final = 2**62  # of a cap: what the store's CHECK counts in
Spent = Literal["reserved", "committed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Committed and reserved sums in one place; both count as spent.

    Attributes:
        committed: Cost of all that may have been released.
        reserved: Cost of all that may still be released, expired reservations included.
        used: Number of charges of each event of a plan.
    """

    committed: Cost = field(default_factory=lambda: Cost(amount=Fraction(0)))
    reserved: Cost = field(default_factory=lambda: Cost(amount=Fraction(0)))
    used: tuple[int, ...] = ()

    def add(self, cap: Fraction, cost: Cost, state: Spent) -> Sums:
        """Add a cost to the committed or the reserved sum."""
        if state == "reserved":
            return Sums(committed=self.committed, reserved=add_up(self.reserved, cost, cap), used=self.used)
        return Sums(committed=add_up(self.committed, cost, cap), reserved=self.reserved, used=self.used)

    def count(self, lines: Sequence[int], *, sign: int = 1) -> Sums:
        """Add to (or, with `sign=-1`, subtract from) the number of uses of each event of a plan."""
        if not lines:
            return self
        return replace(self, used=tuple(n + sign * more for n, more in zip(self.used, lines, strict=True)))

    def held(self, cap: Fraction) -> Cost:
        """Total that counts as spent: committed and reserved."""
        if self.reserved.amount == 0 == self.reserved.lost:
            return self.committed
        if not (self.reserved.amount or self.reserved.lost):
            return self.committed
        return add_up(self.committed, self.reserved, cap)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, exact numbers as text."""
        return {
            "committed": write_cost(self.committed),
            "reserved": write_cost(self.reserved),
            "used": list(self.used),
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Sums:
        """Read the sums from their `to_dict` form."""
        committed, reserved = read_cost(data["committed"]), read_cost(data["reserved"])
        return Sums(committed=committed, reserved=reserved, used=tuple(data["used"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Spending of a grant, in every place that was ever charged.

    Attributes:
        sums: Sums by block; under "" if the dataset is not divided.
        frozen: Whether further charges are refused.
    """

    sums: Mapping[str, Sums]
    frozen: bool = False

    @staticmethod
    def new(grant: Grant) -> Balance:
        """Balance of a grant before its first charge."""
        return Balance(sums={} if grant.blocks else {WHOLE[0]: empty(grant)})

    def at(self, grant: Grant, place: str) -> Sums:
        """Sums in a place."""
        return self.sums.get(place) or empty(grant)

    def spend(self, grant: Grant, places: Sequence[str], cost: Cost, lines: Sequence[int], state: Spent) -> Balance:
        """Balance after a further charge in every one of its places."""
        return self._change(grant, places, lambda sums: sums.add(grant.cap, cost, state).count(lines))

    def commit(self, grant: Grant, places: Sequence[str], cost: Cost) -> Balance:
        """Balance after a reservation is committed."""
        return self._change(
            grant, places, lambda s: replace(s, reserved=less(s.reserved, cost)).add(grant.cap, cost, "committed")
        )

    def release(self, grant: Grant, places: Sequence[str], cost: Cost, lines: Sequence[int]) -> Balance:
        """Balance after a reservation is released."""
        return self._change(grant, places, lambda s: replace(s, reserved=less(s.reserved, cost)).count(lines, sign=-1))

    def free(self, grant: Grant, place: str) -> Cost:
        """Amount left in a place; the whole cap if charges are recorded, not added."""
        if grant.recorded:
            return Cost(amount=grant.cap, lost=grant.lost)
        held = self.at(grant, place).held(grant.cap)
        return less(Cost(amount=grant.cap, lost=grant.lost), held)

    def shares(self, grant: Grant) -> tuple[int, int]:
        """Shares of the cap and of the additive δ that are spent in the fullest place, in 2⁻⁶²ths, rounded up.

        For a plan the first share is the largest over its events.
        """
        amounts, losses = [0], [0]
        for sums in () if grant.recorded else self.sums.values():
            held = sums.held(grant.cap)
            amounts.append(_share(held.amount, grant.cap))
            amounts += [_share(Fraction(n), Fraction(e["count"])) for n, e in zip(sums.used, grant.plan, strict=True)]
            losses.append(_share(held.lost, grant.lost))
        return max(amounts), max(losses)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, exact numbers as text."""
        if WHOLE[0] in self.sums:
            return {**self.sums[WHOLE[0]].to_dict(), "frozen": self.frozen}
        return {"blocks": {name: sums.to_dict() for name, sums in self.sums.items()}, "frozen": self.frozen}

    @staticmethod
    def of(data: Mapping[str, Any]) -> Balance:
        """Read a balance from its `to_dict` form."""
        parts = data["blocks"] if "blocks" in data else {WHOLE[0]: data}
        return Balance(sums={name: Sums.of(part) for name, part in parts.items()}, frozen=data["frozen"])

    def _change(self, grant: Grant, places: Sequence[str], change: Callable[[Sums], Sums]) -> Balance:
        changed = {place: change(self.at(grant, place)) for place in places}
        return Balance(sums={**self.sums, **changed}, frozen=self.frozen)


def balance_of(transaction: Transaction, grant: str) -> Balance:
    """Balance of a grant, read from its last row."""
    last = rows.last_of_grant(transaction, grant)
    assert last is not None
    return Balance.of(last.body["balance"])


def less(cost: Cost, part: Cost) -> Cost:
    """Cost minus a part of it."""
    return Cost(amount=cost.amount - part.amount, lost=cost.lost - part.lost if part.lost else cost.lost)


def empty(grant: Grant) -> Sums:
    """Sums of a place before its first charge."""
    return Sums(used=(0,) * len(grant.plan))


def _share(amount: Fraction, cap: Fraction) -> int:
    if not cap:
        return 0 if amount == 0 else SHARES + 1
    return -(-amount.numerator * SHARES * cap.denominator // (amount.denominator * cap.numerator))


_REPORT: Final = 300  # characters of an audit's report that a sentence quotes


def describe_balance(grant: Grant, balance: Balance) -> dict[str, Any]:
    """Describe a grant's balance: cap, committed, reserved and free amounts.

    Where it covers several blocks the numbers are those of the fullest, on which a charge to all of them would fail
    first; `blocks` has each. Where charges are recorded, not added, nothing of the cap is committed; `recorded` has
    the loss of a user who took part in all of them.
    """
    places = {place: balance.at(grant, place) for place in grant.places}
    fullest = max(places, key=lambda place: places[place].held(grant.cap).amount)
    lost = min(balance.free(grant, place).lost for place in places)
    return {
        "currency": grant.currency,
        "cap": write_number(grant.cap),
        **_describe(grant, balance, fullest),
        "lost": {"cap": write_number(grant.lost), "free": write_number(lost)},
        "used": [max(uses) for uses in zip(*(sums.used for sums in places.values()), strict=True)],
        "state": "frozen" if balance.frozen else "open",
        "blocks": {block: _describe(grant, balance, block) for block in grant.blocks},
        "recorded": _describe_recorded(grant, balance),
    }


def _describe(grant: Grant, balance: Balance, place: str) -> dict[str, Any]:
    sums = empty(grant) if grant.recorded else balance.at(grant, place)
    return {
        "committed": write_number(sums.committed.amount),
        "reserved": write_number(sums.reserved.amount),
        "free": write_number(balance.free(grant, place).amount),
        "used": list(sums.used),
    }


def describe_message(grant: Grant, cost: Cost) -> dict[str, str | None]:
    """(ε, δ) of one message of a local charge."""
    epsilon = bound_epsilon(CURRENCIES[grant.currency], cost, grant.delta)
    return {"epsilon": _write(epsilon), "delta": write_number(grant.delta)}


def _describe_recorded(grant: Grant, balance: Balance) -> dict[str, Any] | None:
    """Loss of a user who took part in all of a local grant's charges, on the worst block.

    None for a grant that adds its charges.
    """
    if not grant.recorded:
        return None
    sums = [balance.at(grant, place).held(grant.cap) for place in grant.places]
    most = Cost(amount=max(one.amount for one in sums), lost=max(one.lost for one in sums))
    told = {"amount": write_number(most.amount), "lost": write_number(most.lost)}
    return {**told, **describe_message(grant, most), "note": NOT_A_GUARANTEE}


def describe_all_taken(policy: BudgetPolicy, found: Sequence[tuple[Grant, Balance]]) -> dict[str, Any] | None:
    """(ε, δ) of a user who took part in all charges to a local dataset, on the worst block.

    None in other models, where a cap bounds the loss of every user.

    The loss of such a user is the sum over the charges, which is shown by itself: it takes nothing from any cap.
    """
    if policy.trust != "local":
        return None
    places = {place for grant, _ in found for place in grant.places}
    epsilon = max((_bound_place(policy, found, place) for place in places), default=0.0)
    told = {"epsilon": _write(epsilon), "delta": write_number(policy.delta)}
    return {**told, "note": f"a user who took part in every charge; {NOT_A_GUARANTEE}"}


def _bound_place(policy: BudgetPolicy, found: Sequence[tuple[Grant, Balance]], place: str) -> float:
    """ε of all charges recorded in a place: at their sum for one currency, else the sum of the ε's."""
    here = [(grant, balance.at(grant, place).held(grant.cap)) for grant, balance in found if place in grant.places]
    totals: dict[str, Cost] = {}
    for grant, cost in here:
        was = totals.get(grant.currency, Cost(amount=Fraction(0)))
        totals[grant.currency] = Cost(amount=was.amount + cost.amount, lost=was.lost + cost.lost)
    spent = {name: cost for name, cost in totals.items() if cost.amount or cost.lost}
    delta = policy.delta / max(len(spent), 1)
    bounds = (bound_epsilon(currency, spent[name], delta) for name, currency in CURRENCIES.items() if name in spent)
    return math.fsum(bounds) * (1 + 1e-15) if len(spent) > 1 else next(bounds, 0.0)


def _write(epsilon: float) -> str | None:
    return write_number(above(epsilon)) if math.isfinite(epsilon) else None


def describe_support(policy: BudgetPolicy, evidence: Sequence[Entry]) -> dict[str, Any]:
    """Describe whether a dataset's rows support its guarantee: the sentence of every page, export and statement.

    The ledger adds up the declared costs of charges. Once an audit has found that a charge lost more, the sum bounds
    nothing, whatever was frozen afterwards.

    Args:
        policy: Policy of the dataset.
        evidence: Its rows of evidence, in order.
    """
    found = [row for row in evidence if row.body["verdict"] == "violation"]
    if not found:
        audited = "no recorded audit of a charge contradicts it" if evidence else "no audit of a charge is recorded"
        sentence = f"The guarantee stands as declared; {audited}. Unit: {policy.unit_words}."
        return {"state": "as declared", "since": None, "charges": [], "sentence": sentence}
    charges = list(dict.fromkeys(str(row.body["of"]) for row in found))
    first = found[0]
    more = f" Violations were found of {len(charges)} charges." if len(charges) > 1 else ""
    sentence = (
        f"Not supported since {first.at[:10]}: an audit of charge {first.body['of']} found a violation "
        f"({first.body['report'][:_REPORT]}).{more} Unit: {policy.unit_words}."
    )
    return {"state": "not supported", "since": first.at, "charges": charges, "sentence": sentence}


MOST: Final = 64  # of a grant, whose rows have the sums of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a dataset.

    A release from one block depends on no user of another, so that no user loses more than the grants over the user's
    own block admit, however the charges to all blocks depend on each other's answers (parallel composition with a
    filter a block: Lécuyer, Spahn, Vodrahalli, Geambasu & Hsu 2019). That needs every user in one block only; where
    users can be in several their losses add up, and the ledger cannot see which is the case. So an officer has to say
    how the disjointness is known, block by block, and the chain records it.

    Attributes:
        name: Name of the block.
        disjoint_users: How it is known that no user of this block is in another.
        by: The author of that statement.
        at: The time of that statement, in UTC.
    """

    name: str
    disjoint_users: str
    by: str
    at: str

    def to_dict(self) -> dict[str, str]:
        """Fields as JSON."""
        return {"name": self.name, "disjoint_users": self.disjoint_users, "by": self.by, "at": self.at}


def find_blocks(transaction: Transaction, dataset: str) -> list[Block]:
    """Blocks of a dataset, in the order of their creation; empty if it is not divided."""
    return [
        Block(name=name, disjoint_users=row.body["disjoint_users"], by=row.actor, at=row.at)
        for row in rows.rows_of_kind(transaction, dataset, "blocks")
        for name in row.body["blocks"]
    ]


def read_blocks(names: object) -> tuple[str, ...]:
    """Read names of blocks, and sort them.

    Raises:
        ParameterError: The value is not a list of different names, or has too many.
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ParameterError(f"expected blocks as a list of names, got {str(names)[:60]!r}", name="blocks")
    read = sorted(read_name("block", name) for name in names)
    if len(set(read)) < len(read):
        raise ParameterError(f"expected every block once, got {', '.join(read)[:200]}", name="blocks", given=names)
    if len(read) > MOST:
        raise ParameterError(f"expected at most {MOST} blocks, got {len(read)}", name="blocks")
    return tuple(read)


def read_statement(policy: BudgetPolicy, value: object) -> str:
    """Read the statement of how it is known that no user is in two blocks.

    Raises:
        ParameterError: The statement is missing.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        message = (
            f"expected disjoint_users: how it is known that each {policy.who} of {policy.dataset!r} is in one block "
            "only. If one can be in several, the losses add up over them: charge the dataset as a whole, without "
            "blocks, or divide it without overlap"
        )
        raise ParameterError(message, name="disjoint_users", given=value)
    return read_text("disjoint_users", value, most=2000)


def choose_blocks(grant: Grant, names: object) -> tuple[str, ...]:
    """Blocks of a grant that a charge is to: the named ones, or all.

    Raises:
        ParameterError: The grant does not cover a block, or the dataset is not divided.
    """
    if names is None:
        return grant.blocks
    read = read_blocks(names)
    if not grant.blocks and read:
        message = f"{grant.dataset!r} has no blocks; expected a charge to all of it, got {', '.join(read)[:200]}"
        raise ParameterError(message, name="blocks", given=names)
    if grant.blocks and (not read or not set(read) <= set(grant.blocks)):
        message = f"grant {grant.name!r} covers {', '.join(grant.blocks)}; expected some of these, or none for all"
        raise ParameterError(f"{message}; got {', '.join(read)[:200] or 'none'}", name="blocks", given=names)
    return read


def check_cover(grant: Grant, known: Collection[str]) -> None:
    """Refuse a grant with blocks that do not match its dataset's.

    Raises:
        ParameterError: A block is unknown, or a divided dataset's grant has no blocks.
    """
    unknown = sorted(set(grant.blocks) - set(known))
    if unknown:
        message = f"{grant.dataset!r} has no block {unknown[0]!r}; expected one of: {', '.join(known) or 'none'}"
        raise ParameterError(f"{message}; blocks are made by: privcheck ledger block", name="blocks", given=unknown)
    if known and not grant.blocks:
        message = f"{grant.dataset!r} is divided; expected the blocks of the grant, out of: {', '.join(known)}"
        raise ParameterError(message, name="blocks", given=())
