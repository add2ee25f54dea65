"""What the ledger answers, as values; `to_dict()` is what is printed and sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from privcheck.accounting.currencies import Cost
from privcheck.errors import ParameterError
from privcheck.ledger.exact import is_plain
from privcheck.ledger.values import write_cost
from privcheck.unit import Unit

State = Literal["reserved", "committed", "released"]
HEXADECIMAL: Final = re.compile(r"[0-9a-f]{64}")  # of 32 bytes
_UNNAMED: Final = {"store": "", "key": ""}  # in a receipt from before Ed25519


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A row of a dataset's chain when it was written, signed: whoever keeps it can show a cut tail.

    Attributes:
        dataset: Whose chain.
        seq: The row's place.
        hash: Its hash.
        at: When it was written, in UTC.
        store: The number of the store that signed it; empty in a receipt from before Ed25519, or of nobody yet.
        key: The fingerprint of the public key, for whoever has several; it vouches for nothing.
        signature: Ed25519, in base64, of `signing.receipt_text`; HMAC-SHA256 in hexadecimal before; empty: not signed.
    """

    dataset: str
    seq: int
    hash: str
    at: str
    store: str = ""
    key: str = ""
    signature: str = ""

    @staticmethod
    def parse(data: object) -> Receipt:
        """Read a receipt from outside: JSON as `to_dict` gives it, or as a charge printed it before Ed25519.

        Raises:
            ParameterError: It is none.
        """
        fields = {**_UNNAMED, **{n: v for n, v in data.items() if v is not None}} if isinstance(data, Mapping) else {}
        texts = [fields.get(name) for name in ("dataset", "at", "store", "key", "signature", "hash")]
        seq = fields.get("seq")
        if (
            not all(isinstance(one, str) and is_plain(one) for one in texts)
            or type(seq) is not int
            or seq < 1
            or not HEXADECIMAL.fullmatch(str(fields["hash"]))
        ):
            raise ParameterError("expected a receipt as a charge printed it", name="receipt", given=str(data)[:80])
        return Receipt(**{name: fields[name] for name in Receipt.__slots__})

    def signed(self, *, store: str, key: str, signature: str) -> Receipt:
        """The receipt with who signed it."""
        return replace(self, store=store, key=key, signature=signature)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields; where it is not signed, None for who signed it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if value == "" else value for name, value in fields.items()}


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
        row: The receipt of its row, unsigned; None where it was refused, which writes nothing.
        sign: Signs that; only who reads `receipt` waits for a signature, and no transaction does.
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
    row: Receipt | None = None
    sign: Callable[[Receipt], Receipt] | None = field(default=None, repr=False, compare=False)
    reason: str | None = None
    expires: str | None = None
    blocks: tuple[str, ...] = ()
    conditions: tuple[dict[str, Any], ...] = ()

    @property
    def receipt(self) -> Receipt | None:
        """The signed receipt; None where it was refused. Of one row it is always the same."""
        return None if self.row is None or self.sign is None else self.sign(self.row)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text; `remaining` is what is free, in the grant's currency."""
        receipt = self.receipt
        return {
            "state": self.state,
            "grant": self.grant,
            "id": self.charge,
            "cost": write_cost(self.cost),
            "receipt": None if receipt is None else receipt.to_dict(),
            "remaining": self.balance["free"],
            "balance": self.balance,
            "reason": self.reason,
            "expires": self.expires,
            "blocks": list(self.blocks),
            "conditions": list(self.conditions),
        }
