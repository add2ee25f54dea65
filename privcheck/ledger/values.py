"""What the ledger holds, as values: policies, grants, rows; `to_dict()` is what is written and sent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal

from privcheck.accounting.currencies import THEOREMS, Cost, Currency, Name
from privcheck.errors import ParameterError
from privcheck.ledger.exact import write_number

Unit = Literal["epsilon", "rho", "mu2", "events"]  # events: of a plan, which are counted down
WHOLE: Final = ("",)  # what is spent on where a dataset is not divided into blocks
PLANNED: Final = "composition of dominating pairs, of events fixed in advance"
CURRENCIES: Final[dict[Unit, Currency]] = {  # in which spending may depend on what was released before
    "epsilon": Currency(name="pure"),
    "rho": Currency(name="zcdp"),
    "mu2": Currency(name="gdp"),
}
_ALIASES: Final[dict[str, Unit]] = {"pure": "epsilon", "zcdp": "rho", "gdp": "mu2", "mu_squared": "mu2"}


def read_unit(value: object) -> Unit:
    """Returns the currency of a grant.

    Raises:
        ParameterError: It is not epsilon, rho or mu2 (or pure, zcdp, gdp).
    """
    for unit in CURRENCIES:
        if value == unit or (isinstance(value, str) and _ALIASES.get(value) == unit):
            return unit
    message = f"expected currency epsilon, rho or mu2, got {str(value)[:40]!r}"
    raise ParameterError(message, name="currency", given=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What all grants of a dataset together keep.

    Attributes:
        dataset: Its name.
        epsilon: ε of the whole, in nats.
        delta: δ of the whole.
        relation: Which data are neighbours.
        unit: Whose data neighbours differ in.
        trust: Where the noise is drawn: central, joint, shuffle or local.
        remainder: The currency of what is granted after the first charge.
        until: When charges end, in UTC; None: never.
        implied: It was not set by itself, but by the dataset's first grant.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction
    relation: str
    unit: str
    trust: str
    remainder: Unit
    until: str | None = None
    implied: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, exact numbers as text."""
        return {
            "dataset": self.dataset,
            "epsilon": write_number(self.epsilon),
            "delta": write_number(self.delta),
            "relation": self.relation,
            "unit": self.unit,
            "trust": self.trust,
            "remainder": self.remainder,
            "until": self.until,
            "implied": self.implied,
        }

    @staticmethod
    def of(data: dict[str, Any]) -> Policy:
        """Returns the policy of its own fields."""
        exact = {name: Fraction(data[name]) for name in ("epsilon", "delta")}
        return Policy(**{**data, **exact})


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
    """

    name: str
    dataset: str
    kind: Literal["adaptive", "plan"]
    currency: Unit
    cap: Fraction
    lost: Fraction
    delta: Fraction
    epsilon: float
    theorem: str
    late: bool = False
    plan: tuple[dict[str, Any], ...] = ()
    blocks: tuple[str, ...] = ()
    recorded: bool = False

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
        }

    @staticmethod
    def of(data: dict[str, Any]) -> Grant:
        """Returns the grant of its own fields."""
        exact = {name: Fraction(data[name]) for name in ("cap", "lost", "delta")}
        several = {name: tuple(data.get(name, ())) for name in ("plan", "blocks")}
        return Grant(**{**data, **exact, **several, "epsilon": float(data["epsilon"])})


def theorem_of(unit: Unit) -> str:
    """Returns why a sum in a currency is a filter, or a plan's curve its guarantee."""
    if unit == "events":
        return PLANNED
    name: Name = CURRENCIES[unit].name
    return THEOREMS[name]


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
