"""Requests to spend, read and priced before they come to a transaction: all that can be wrong with one alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Required, TypedDict

from privcheck.accounting.currencies import Cost
from privcheck.errors import ParameterError
from privcheck.ledger.blocks import choose_blocks
from privcheck.ledger.deciding import lines_of
from privcheck.ledger.exact import canonical, digest, read_text
from privcheck.ledger.roles import Actor
from privcheck.ledger.trust import check_joint
from privcheck.ledger.units import check_unit
from privcheck.ledger.values import Grant, Policy
from privcheck.ledger.wire import Spending, parse_event
from privcheck.unit import Unit

SECONDS: Final = 3600  # of a reservation, unless told
_MOST_SECONDS: Final = 30 * 24 * 3600

Action = Literal["charge", "reserve"]


class Asked(TypedDict, total=False):
    """What a request to spend says.

    Attributes:
        grant: The grant's name.
        event: What is to be released: JSON, its text, or a `Spending`.
        unit: For whom it was priced: a `Unit`, its text or JSON, or "dataset"; needed unless the claim has one.
        key: The idempotency key; none unless told.
        claim: What it is charged for; nothing unless told.
        blocks: Which of the grant's blocks it is released from; by default all.
    """

    grant: Required[str]
    event: Required[object]
    unit: object
    key: str | None
    claim: dict[str, Any] | None
    blocks: Sequence[str] | None


class AskedFor(Asked, total=False):
    """What a request to set budget aside says.

    Attributes:
        seconds: How long the reservation runs; `SECONDS` unless told.
    """

    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request to spend that was read, allowed and priced; what is left to ask is whether it fits.

    Attributes:
        actor: Who asks.
        grant: To which grant it is charged.
        policy: Of its dataset.
        spending: What is to be released.
        unit: For whom that was priced.
        cost: What that costs.
        lines: Of a plan: how many of each event.
        key: The idempotency key, or None.
        state: Which state it is to have.
        seconds: How long a reservation runs.
        claim: What it is charged for, or None.
        blocks: Which blocks it is charged to; empty where the dataset is not divided.
        request: The digest of all of this but the key.
    """

    actor: Actor
    grant: Grant
    policy: Policy
    spending: Spending
    unit: Unit
    cost: Cost
    lines: tuple[int, ...]
    key: str | None
    state: Literal["reserved", "committed"]
    seconds: int
    claim: dict[str, Any] | None
    blocks: tuple[str, ...]
    request: str


def read_seconds(seconds: object) -> int:
    """Returns how long a reservation runs.

    Raises:
        ParameterError: It is not a whole number of seconds, at least 1 and at most 30 days.
    """
    if type(seconds) is not int or not 1 <= seconds <= _MOST_SECONDS:
        message = f"expected seconds of a reservation from 1 to {_MOST_SECONDS}, got {seconds!r}"
        raise ParameterError(message, name="seconds", given=seconds)
    return seconds


def check_names(action: Action, asked: AskedFor) -> None:
    """Refuses what a request does not say: a misspelt `key` would let it be charged twice.

    Raises:
        TypeError: A name is missing, or is none of `Asked`, or for a reservation of `AskedFor`.
    """
    known = AskedFor if action == "reserve" else Asked
    unknown, missing = set(asked) - set(known.__annotations__), {"grant", "event"} - set(asked)
    if unknown or missing:
        expected = ", ".join(sorted(known.__annotations__))
        message = f"{action}: expected {expected}; got {', '.join(sorted(asked)) or 'nothing'}"
        raise TypeError(message)


def prepare(actor: Actor, action: Action, asked: AskedFor, *, grant: Grant, policy: Policy) -> Prepared:
    """Returns a request that was read, and priced in its grant's currency.

    Raises:
        BudgetError: It is of joint DP, and a condition of the billboard lemma is not met.
        ParameterError: The event is none, has no finite cost in the grant's currency, or was priced for another unit
            than the dataset's, or for none that anybody stated; the grant does not cover a block; or the key is no
            text.
    """
    seconds = read_seconds(asked.get("seconds", SECONDS))
    spending, key, told = parse_event(asked["event"]), asked.get("key"), dict(asked.get("claim") or {})
    unit = check_unit(policy, _choose_unit(asked, told), by=f"{actor.name}, who charges", relations=spending.relations)
    claim = check_joint(policy, unit, told)
    about: dict[str, Any] = {
        "action": action, "grant": grant.name, "event": spending.to_dict(), "claim": claim, "unit": unit.to_dict(),
    }  # fmt: skip
    if action == "reserve":
        about["seconds"] = seconds
    if blocks := choose_blocks(grant, asked.get("blocks")):
        about["blocks"] = blocks
    return Prepared(
        actor=actor,
        grant=grant,
        policy=policy,
        spending=spending,
        unit=unit,
        cost=spending.cost(grant.currency),
        lines=lines_of(grant, spending),
        key=None if key is None else read_text("key", key),
        state="committed" if action == "charge" else "reserved",
        seconds=seconds,
        claim=claim,
        blocks=blocks,
        request=digest(canonical(about)),
    )


def _choose_unit(asked: AskedFor, told: dict[str, Any]) -> object:
    """Takes the unit of a request: the claim's, which is taken out of it, or the one beside it.

    Raises:
        ParameterError: There are both.
    """
    given, own = asked.get("unit"), told.pop("unit", None)
    if given is not None and own is not None:
        message = f"the claim has a unit of its own, {str(own)[:200]}; expected no other beside it"
        raise ParameterError(message, name="unit", given=given)
    return own if given is None else given
