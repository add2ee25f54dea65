"""Values of the ledger: policies, grants and rows, and its answers; `to_dict()` is the form that is stored and sent."""

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
    """Read the currency of a grant.

    Raises:
        ParameterError: The value is not epsilon, rho or mu2 (or pure, zcdp, gdp).
    """
    for name in CURRENCIES:
        if value == name or (isinstance(value, str) and _ALIASES.get(value) == name):
            return name
    message = f"expected currency epsilon, rho or mu2, got {str(value)[:40]!r}"
    raise ParameterError(message, name="currency", given=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldUnit:
    """Unit of privacy in stores older than `Unit`: three texts, without a number of trajectories.

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
    """Guarantee of all grants of a dataset together.

    Attributes:
        dataset: Name of the dataset.
        epsilon: ε of the whole, in nats.
        delta: δ of the whole.
        unit: The complete unit of privacy, as an officer states it; None in a store older than `Unit`.
        old_unit: The texts that take its place in such a store.
        asserted_units: Whether charges are accepted for runs with a unit that was asserted and not read from a column.
        remainder: The currency of grants made after the first charge.
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
            lambda old: f"{old.words}; the most trajectories of each was never stated",
        )

    def _either(self, new: Callable[[Unit], str], old: Callable[[OldUnit], str]) -> str:
        if self.unit is not None:
            return new(self.unit)
        assert self.old_unit is not None
        return old(self.old_unit)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, exact numbers as text; `old_unit` is present only where it replaces `unit`."""
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
        """Read a policy from its `to_dict` form, or from a row older than `Unit`."""
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
        name: Name of the grant.
        dataset: The dataset that the budget belongs to.
        kind: "adaptive": charges may depend on everything released before; "plan": events fixed in advance.
        currency: Currency of the sum of an adaptive grant; "events" for a plan.
        cap: The most that may be spent.
        lost: The largest additive δ that may be lost outright.
        delta: δ at which `epsilon` is reported.
        epsilon: ε at `delta` of all that the grant will ever admit; rounded up.
        theorem: The theorem by which the sum is a filter, or the plan's curve a guarantee.
        late: Whether the grant was made after the first charge to its dataset.
        plan: The events of a plan, in their canonical form, with counts.
        blocks: The blocks that the grant covers, in order, each up to the cap; empty if the dataset is not divided.
        recorded: In the local model: the cap is that of one charge, and charges are not added.
        unit: The unit of privacy for which a plan's events were priced; None for other grants and in older stores.
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
        """Places where the grant is spent: its blocks, or the dataset as a whole."""
        return self.blocks or WHOLE

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, exact numbers as text."""
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
        """Read a grant from its `to_dict` form."""
        exact = {name: Fraction(data[name]) for name in ("cap", "lost", "delta")}
        plan = tuple(complete_event(line) for line in data.get("plan", ()))
        unit = None if data.get("unit") is None else Unit.of(data["unit"])
        parts = {"plan": plan, "blocks": tuple(data.get("blocks", ())), "unit": unit}
        return Grant(**{**data, **exact, **parts, "epsilon": float(data["epsilon"])})


def complete_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Add the relation to a stored event from before events had to name theirs.

    >>> complete_event({"type": "poisson_gaussian", "std": "1", "rate": "0.5", "count": 1})["relation"]
    'add-remove'
    """
    if event.get("type") == "compose":
        return {**event, "events": [complete_event(part) for part in event["events"]]}
    if event.get("type") == "poisson_gaussian" and "relation" not in event:
        return {**event, "relation": _FORMERLY}
    return dict(event)


def theorem_of(currency: CurrencyName) -> str:
    """Theorem by which a sum in a currency is a privacy filter, or a plan's curve a guarantee."""
    if currency == "events":
        return PLANNED
    name: Name = CURRENCIES[currency].name
    return THEOREMS[name]


def concurrency_of(grant: Grant) -> str:
    """Interleavings of a grant's charges that its composition theorem covers."""
    if grant.recorded:
        return "any: charges are recorded, not added"
    return _PLANNED if grant.currency == "events" else CONCURRENCY[CURRENCIES[grant.currency].name]


def concurrency_between(policy: BudgetPolicy, grants: Sequence[Grant]) -> str:
    """Interleavings of charges to different grants of a dataset that the composition theorem covers.

    Caps fixed before the first release compose as mechanisms do. A late grant may depend on earlier answers: it is a
    part of the remainder, which is a filter in one currency. No theorem is cited for overlapping interactions under
    approximate zCDP.
    """
    fixed = "overlapping releases and interactions, if caps were fixed before any release (Vadhan & Zhang 2023)"
    apart = [
        grant.name
        for grant in grants
        if (grant.currency == "rho" and grant.lost) or (grant.late and policy.remainder == "rho")
    ]
    return f"{fixed}; interactions with {', '.join(apart)} one after the other" if apart else fixed


def write_cost(cost: Cost) -> dict[str, str]:
    """Cost as JSON, exact numbers as text."""
    return {"amount": write_number(cost.amount), "lost": write_number(cost.lost)}


def read_cost(data: dict[str, str]) -> Cost:
    """Read a cost from the form of `write_cost`."""
    return Cost(amount=_read_exact(data["amount"]), lost=_read_exact(data["lost"]))


@lru_cache(maxsize=4096)
def _read_exact(text: str) -> Fraction:
    return Fraction(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a dataset's chain.

    Attributes:
        dataset: Name of the dataset, or of another chain.
        seq: Position in the chain, from 1.
        kind: policy, blocks, grant, charge, commit, release, freeze or evidence; or a kind of
            `privcheck.ledger.registry`.
        grant: The grant that the row is about, or None.
        charge: The charge that the row is about, or None.
        actor: The author of the row.
        key: The idempotency key, or None.
        held: Amount then counted as spent of the grant's cap, in 2⁻⁶²ths of the cap, rounded up.
        lost: The same for the additive δ.
        body: All other fields.
        at: Time of writing, in UTC.
        prev: The hash of the previous row, or empty.
        hash: BLAKE2b-256 over all other fields.
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
    """Signed record of a row of a dataset's chain: a kept receipt proves that a chain was cut or rewritten.

    Attributes:
        dataset: Name of the dataset.
        seq: The row's position.
        hash: The row's hash.
        at: When the row was written, in UTC.
        store: The number of the store that signed it; empty in a receipt from before Ed25519, or before signing.
        key: The fingerprint of the public key, to choose among several; it proves nothing.
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
        """Parse a receipt from outside: JSON in the form of `to_dict`, or the form printed before Ed25519.

        Raises:
            ParameterError: The data are not a receipt.
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
            raise ParameterError("expected a receipt as printed by a charge", name="receipt", given=str(data)[:80])
        return Receipt(**{name: fields[name] for name in Receipt.__slots__})

    def signed(self, *, store: str, key: str, signature: str) -> Receipt:
        """Copy of the receipt with its signature and signer."""
        return replace(self, store=store, key=key, signature=signature)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON; None for each empty field, such as the signature of an unsigned receipt."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if value == "" else value for name, value in fields.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Current state of one charge.

    Attributes:
        id: Name of the charge.
        dataset: Dataset of its grant.
        grant: The grant that is charged.
        seq: Position of the charge's first row.
        key: The idempotency key, or None.
        actor: The author of the charge.
        event: The release, in its canonical form.
        unit: The unit for which it was priced, as JSON; None in stores older than `Unit`.
        cost: Its cost.
        state: reserved, committed or released.
        expires: When a reservation ends, in UTC; None if it was committed at once.
        expired: Whether it is reserved and has expired: only an officer may release it.
        claim: The privacy claim of the run that is charged, or None.
        blocks: The blocks with the data of the release; empty if the dataset is not divided.
        message: (ε, δ) of one user's message, if charges are recorded and not added; else None.
        evidence: The reason for its release, or None.
        prev: The hash before its last row.
        hash: The hash of its last row.
        at: When its last row was written, in UTC.
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
        """Fields as JSON, exact numbers as text."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "cost": write_cost(self.cost), "blocks": list(self.blocks)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Cost of a charge that is not made; nothing is written.

    Attributes:
        grant: Name of the grant.
        event: The planned release, in its canonical form.
        unit: The unit for which it was priced.
        cost: Its cost.
        fits: Whether it would be admitted now.
        reason: The reason for a refusal; None if it fits.
        times: Number of times it fits into the free budget now; None if that is unlimited.
        balance: The grant's present balance, as `describe_balance`.
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
        """Fields as JSON, exact numbers as text."""
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
    """Outcome of a request to spend.

    Attributes:
        state: reserved, committed, released or refused.
        grant: Name of the grant.
        charge: The charge's name; None if a new request was refused.
        cost: Its cost.
        balance: The grant's balance after it, as `describe_balance`.
        row: The receipt of its row, unsigned; None after a refusal, which writes nothing.
        sign: Signs the receipt, when `receipt` is read: no transaction waits for a signature.
        reason: The reason for a refusal; else None.
        expires: When a reservation ends, in UTC.
        blocks: The blocks with the data of the release; empty if the dataset is not divided.
        conditions: For joint DP: the conditions of the billboard lemma, with the evidence for each; else empty.
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
        """Signed receipt; None after a refusal. A row always has the same receipt."""
        return None if self.row is None or self.sign is None else self.sign(self.row)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON, exact numbers as text; `remaining` is the free amount, in the grant's currency."""
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
