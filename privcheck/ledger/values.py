"""The values of the ledger: budget policies, grants, rows, answers; `to_dict()` is what is written and sent.

What the ledger holds, as values: policies, grants, rows; `to_dict()` is what is written and sent.

What the ledger answers, as values; `to_dict()` is what is printed and sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal

from privcheck.accounting.currencies import CONCURRENCY, THEOREMS, Cost, Currency, Name
from privcheck.errors import ParameterError
from privcheck.ledger.exact import is_plain, write_number
from privcheck.terms.unit import Unit

CurrencyName = Literal["epsilon", "rho", "mu2", "events"]  # events: of a plan, which are counted down
WHOLE: Final = ("",)  # what is spent on where a dataset is not divided into blocks
PLANNED: Final = "composition of dominating pairs, of events fixed in advance"
_PLANNED: Final = "releases in any order, whose parameters are fixed in advance"
CURRENCIES: Final[dict[CurrencyName, Currency]] = {  # in which spending may depend on what was released before
    "epsilon": Currency(name="pure"),
    "rho": Currency(name="zcdp"),
    "mu2": Currency(name="gdp"),
}
_ALIASES: Final[dict[str, CurrencyName]] = {"pure": "epsilon", "zcdp": "rho", "gdp": "mu2", "mu_squared": "mu2"}
_FORMERLY: Final = "add-remove"  # the relation of a sampled event in a store from before events had to name theirs


def read_currency(value: object) -> CurrencyName:
    """Returns the currency of a grant.

    Raises:
        ParameterError: It is not epsilon, rho or mu2 (or pure, zcdp, gdp).
    """
    for name in CURRENCIES:
        if value == name or (isinstance(value, str) and _ALIASES.get(value) == name):
            return name
    message = f"expected currency epsilon, rho or mu2, got {str(value)[:40]!r}"
    raise ParameterError(message, name="currency", given=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldUnit:
    """The unit of a policy from before units were one value: three texts, and no number of trajectories.

    Attributes:
        who: The noun for one protected person.
        relation: Which data are neighbours.
        trust: Where the noise is drawn.
    """

    who: str
    relation: str
    trust: str

    @property
    def words(self) -> str:
        """The texts in one line."""
        return f"{self.who}, {self.relation}, {self.trust}"

    def to_dict(self) -> dict[str, str]:
        """The fields as JSON."""
        return {"who": self.who, "relation": self.relation, "trust": self.trust}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPolicy:
    """The guarantee of all grants of a dataset together.

    Attributes:
        dataset: Its name.
        epsilon: ε of the whole, in nats.
        delta: δ of the whole.
        unit: Who is protected, as an officer states it, complete; None in a store from before units.
        old_unit: There, the texts in its place.
        asserted_units: Whether runs are charged whose unit somebody asserted and no column showed.
        remainder: The currency of what is granted after the first charge.
        until: When charges end, in UTC; None: never.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction
    unit: Unit | None
    old_unit: OldUnit | None = None
    asserted_units: bool = False
    remainder: CurrencyName
    until: str | None = None

    @property
    def who(self) -> str:
        """The noun for one protected person."""
        return self._either(lambda unit: unit.who, lambda old: old.who)

    @property
    def relation(self) -> str:
        """Which data are neighbours."""
        return self._either(lambda unit: str(unit.relation), lambda old: old.relation)

    @property
    def trust(self) -> str:
        """The model of trust: central, joint, shuffle or local."""
        return self._either(lambda unit: str(unit.model), lambda old: old.trust)

    @property
    def unit_words(self) -> str:
        """The unit in words, and who stated it."""
        return self._either(
            lambda unit: f"{unit.words}; stated by {unit.stated_by}",
            lambda old: f"{old.words}; how many trajectories each may have was never stated",
        )

    def _either(self, new: Callable[[Unit], str], old: Callable[[OldUnit], str]) -> str:
        if self.unit is not None:
            return new(self.unit)
        assert self.old_unit is not None
        return old(self.old_unit)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text; `old_unit` where it takes the place of `unit`."""
        old = {} if self.old_unit is None else {"old_unit": self.old_unit.to_dict()}
        return {
            "dataset": self.dataset,
            "epsilon": write_number(self.epsilon),
            "delta": write_number(self.delta),
            "unit": None if self.unit is None else self.unit.to_dict(),
            **old,
            "asserted_units": self.asserted_units,
            "remainder": self.remainder,
            "until": self.until,
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> BudgetPolicy:
        """Returns the policy of its own fields, or of a row from before units."""
        unit, old = data["unit"], data.get("old_unit")
        if isinstance(unit, str):
            old = {"who": unit, "relation": data["relation"], "trust": data["trust"]}
        return BudgetPolicy(
            dataset=data["dataset"],
            epsilon=Fraction(data["epsilon"]),
            delta=Fraction(data["delta"]),
            unit=None if old is not None else Unit.of(unit),
            old_unit=None if old is None else OldUnit(**old),
            asserted_units=data.get("asserted_units", False),
            remainder=data["remainder"],
            until=data["until"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A part of a dataset's budget, with a cap that is fixed.

    Attributes:
        name: Its name.
        dataset: The dataset whose budget it is part of.
        kind: "adaptive": what is charged may depend on everything released before; "plan": events fixed in advance.
        currency: What an adaptive grant is summed in; "events" of a plan.
        cap: The most that may be spent.
        lost: The most δ that may be lost outright.
        delta: δ at which its ε is reported.
        epsilon: ε of all that the grant will ever admit, at that δ; rounded up.
        theorem: Why the sum is a filter, or the plan's curve is one.
        late: It was made after the first charge to its data.
        plan: The events of a plan, in their canonical form, with counts.
        blocks: Of a dataset that is divided: which of its blocks it covers, each up to the cap; in order.
        recorded: Of the local model: the cap is that of one charge, and charges are not added.
        unit: Of a plan: the unit of privacy for which its events were priced; None in a store from before units.
    """

    name: str
    dataset: str
    kind: Literal["adaptive", "plan"]
    currency: CurrencyName
    cap: Fraction
    lost: Fraction
    delta: Fraction
    epsilon: float
    theorem: str
    late: bool = False
    plan: tuple[dict[str, Any], ...] = ()
    blocks: tuple[str, ...] = ()
    recorded: bool = False
    unit: Unit | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """Returns what it is spent on: its blocks, or the dataset as a whole."""
        return self.blocks or WHOLE

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "kind": self.kind,
            "currency": self.currency,
            "cap": write_number(self.cap),
            "lost": write_number(self.lost),
            "delta": write_number(self.delta),
            "epsilon": repr(self.epsilon),
            "theorem": self.theorem,
            "late": self.late,
            "plan": list(self.plan),
            "blocks": list(self.blocks),
            "recorded": self.recorded,
            "unit": None if self.unit is None else self.unit.to_dict(),
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Grant:
        """Returns the grant of its own fields."""
        exact = {name: Fraction(data[name]) for name in ("cap", "lost", "delta")}
        plan = tuple(complete_event(line) for line in data.get("plan", ()))
        unit = None if data.get("unit") is None else Unit.of(data["unit"])
        parts = {"plan": plan, "blocks": tuple(data.get("blocks", ())), "unit": unit}
        return Grant(**{**data, **exact, **parts, "epsilon": float(data["epsilon"])})


def complete_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Writes out the relation of a stored event that was priced before events had to name theirs.

    >>> complete_event({"type": "poisson_gaussian", "std": "1", "rate": "0.5", "count": 1})["relation"]
    'add-remove'
    """
    if event.get("type") == "compose":
        return {**event, "events": [complete_event(part) for part in event["events"]]}
    if event.get("type") == "poisson_gaussian" and "relation" not in event:
        return {**event, "relation": _FORMERLY}
    return dict(event)


def theorem_of(currency: CurrencyName) -> str:
    """Returns why a sum in a currency is a filter, or a plan's curve its guarantee."""
    if currency == "events":
        return PLANNED
    name: Name = CURRENCIES[currency].name
    return THEOREMS[name]


def concurrency_of(grant: Grant) -> str:
    """Which interleaving of a grant's charges the theorem covers by which they compose."""
    if grant.recorded:
        return "any: charges are recorded, not added"
    return _PLANNED if grant.currency == "events" else CONCURRENCY[CURRENCIES[grant.currency].name]


def concurrency_between(policy: BudgetPolicy, grants: Sequence[Grant]) -> str:
    """Which interleaving of charges to different grants of a dataset the theorem covers by which grants compose.

    Caps that were fixed before anything was released compose as mechanisms do. What is late may have been chosen from
    answers: it is a part of the remainder, which is a filter in one currency. Of approximate zCDP nothing is cited
    for interactions that overlap.
    """
    fixed = "releases and interactions that overlap too, where caps were fixed before any release (Vadhan & Zhang 2023)"
    apart = [
        grant.name
        for grant in grants
        if (grant.currency == "rho" and grant.lost) or (grant.late and policy.remainder == "rho")
    ]
    return f"{fixed}; interactions with {', '.join(apart)} one after the other" if apart else fixed


def write_cost(cost: Cost) -> dict[str, str]:
    """Returns a cost as text."""
    return {"amount": write_number(cost.amount), "lost": write_number(cost.lost)}


def read_cost(data: dict[str, str]) -> Cost:
    """Returns a cost from its text."""
    return Cost(amount=_read_exact(data["amount"]), lost=_read_exact(data["lost"]))


@lru_cache(maxsize=4096)
def _read_exact(text: str) -> Fraction:
    return Fraction(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a dataset's chain.

    Attributes:
        dataset: Whose chain.
        seq: Its place, from 1.
        kind: policy, blocks, grant, charge, commit, release, freeze or evidence.
        grant: The grant that it is about, or None.
        charge: The charge that it is about, or None.
        actor: Who wrote it.
        key: The idempotency key, or None.
        held: What then counted as spent of the grant's cap, in 2⁻⁶²ths, rounded up.
        lost: The same of the δ that may be lost.
        body: Everything else.
        at: When, in UTC.
        prev: The hash of the row before, or empty.
        hash: BLAKE2b-256 over all of this.
    """

    dataset: str
    seq: int
    kind: str
    grant: str | None
    charge: str | None
    actor: str
    key: str | None
    held: int
    lost: int
    body: dict[str, Any]
    at: str
    prev: str
    hash: str


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
