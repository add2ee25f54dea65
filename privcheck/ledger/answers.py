"""What the ledger answers, as values; `to_dict()` is what is printed and sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from privcheck.accounting.currencies import Cost
from privcheck.ledger.values import write_cost
from privcheck.unit import Unit

State = Literal["reserved", "committed", "released"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The head of a dataset's chain when something was written, signed: whoever keeps it can show a cut tail.

    Attributes:
        dataset: Whose chain.
        seq: The place of the head.
        hash: Its hash.
        at: When it was written, in UTC.
        signature: HMAC-SHA256 of the four by the store's key, which shows that this store gave it.
    """

    dataset: str
    seq: int
    hash: str
    at: str
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields."""
        return {
            "dataset": self.dataset, "seq": self.seq, "hash": self.hash, "at": self.at, "signature": self.signature,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge, as it stands now.

    Attributes:
        id: Its name.
        dataset: Of its grant.
        grant: What it is charged to.
        seq: Of the row that opened it.
        key: The idempotency key, or None.
        actor: Who asked for it.
        event: What is released, in its canonical form.
        unit: For whom it was priced, as JSON; None in a store from before units.
        cost: What it costs.
        state: reserved, committed or released.
        expires: When a reservation ends, in UTC; None where it was committed at once.
        expired: It is reserved and that time is over: only an officer may release it.
        claim: What it is charged for, or None.
        blocks: Which blocks' data it is released from; empty where the dataset is not divided.
        message: (ε, δ) of one user's message, where that is recorded and not added; else None.
        evidence: Why it was released, or None.
        prev: The hash before its last row.
        hash: Of its last row.
        at: When that was written, in UTC.
    """

    id: str
    dataset: str
    grant: str
    seq: int
    key: str | None
    actor: str
    event: dict[str, Any]
    unit: dict[str, Any] | None
    cost: Cost
    state: State
    expires: str | None
    expired: bool
    claim: dict[str, Any] | None
    blocks: tuple[str, ...]
    message: dict[str, str | None] | None
    evidence: str | None
    prev: str
    hash: str
    at: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "cost": write_cost(self.cost), "blocks": list(self.blocks)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a charge would cost; nothing is written.

    Attributes:
        grant: Of which grant.
        event: What would be released, in its canonical form.
        unit: For whom it was priced.
        cost: What it would cost.
        fits: Whether it would be admitted now.
        reason: Why not; None where it would.
        times: How often it fits into what is free now; None where it costs nothing.
        balance: The grant's, now, as `describe_balance`.
    """

    grant: str
    event: dict[str, Any]
    unit: Unit
    cost: Cost
    fits: bool
    reason: str | None
    times: int | None
    balance: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text."""
        return {
            "state": "quoted" if self.fits else "refused",
            "grant": self.grant,
            "event": self.event,
            "unit": self.unit.to_dict(),
            "cost": write_cost(self.cost),
            "times": self.times,
            "reason": self.reason,
            "remaining": self.balance["free"],
            "balance": self.balance,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a request to spend.

    Attributes:
        state: reserved, committed, released or refused.
        grant: Of which grant.
        charge: The charge's name; None where it was refused.
        cost: What it costs.
        balance: The grant's, after it, as `describe_balance`.
        receipt: The signed head; None where it was refused, which writes nothing.
        reason: Why it was refused; None where it was not.
        expires: When a reservation ends, in UTC.
        blocks: Which blocks' data it is about; empty where the dataset is not divided.
        conditions: Of joint DP: those of the billboard lemma, with how each is known; else none.
    """

    state: Literal["reserved", "committed", "released", "refused"]
    grant: str
    charge: str | None
    cost: Cost
    balance: dict[str, Any]
    receipt: Receipt | None = None
    reason: str | None = None
    expires: str | None = None
    blocks: tuple[str, ...] = ()
    conditions: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text; `remaining` is what is free, in the grant's currency."""
        return {
            "state": self.state,
            "grant": self.grant,
            "id": self.charge,
            "cost": write_cost(self.cost),
            "receipt": None if self.receipt is None else self.receipt.to_dict(),
            "remaining": self.balance["free"],
            "balance": self.balance,
            "reason": self.reason,
            "expires": self.expires,
            "blocks": list(self.blocks),
            "conditions": list(self.conditions),
        }
