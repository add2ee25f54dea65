"""State machine of a charge: quoted → reserved → committed / released; requests are validated, priced and written.

| state | written when | may become |
| --- | --- | --- |
| quoted | never | |
| reserved | budget is set aside for a run that is about to start | committed, released |
| committed | before the first draw of noise | nothing: never refunded |
| released | no noise was drawn: its author says so while it runs; later an officer, with evidence | |

A reservation that has expired still counts as spent. A request with an idempotency key that was answered before gets
the same answer; refusals write nothing and are decided anew. A refusal depends on costs, caps and states alone, never
on data. `prepare` finds every error of a request alone, before its transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Required, TypedDict

from privcheck.accounting.currencies import Cost
from privcheck.errors import AuthorityError, IdempotencyError, ParameterError, StateError
from privcheck.ledger import rows
from privcheck.ledger.balances import Balance, balance_of, choose_blocks, describe_balance, describe_message
from privcheck.ledger.exact import canonical, digest, read_text, write_time
from privcheck.ledger.grants import Known
from privcheck.ledger.limits import (
    check_joint,
    check_unit,
    conditions_of,
    explain_refusal,
    is_behind,
    lines_of,
    read_charge,
)
from privcheck.ledger.registry import Actor, require
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import WHOLE, BudgetPolicy, Charge, Decision, Entry, Grant, write_cost
from privcheck.ledger.wire import Spending, parse_event
from privcheck.terms.unit import Unit

SECONDS: Final = 3600  # of a reservation, unless told
_MOST_SECONDS: Final = 30 * 24 * 3600

Action = Literal["charge", "reserve"]


class Asked(TypedDict, total=False):
    """Fields of a request to spend.

    Attributes:
        grant: The grant's name.
        event: The planned release: JSON, its text, or a `Spending`.
        unit: The unit for which it was priced: a `Unit`, its text or JSON, or "dataset"; required unless the claim has
            one.
        key: The idempotency key; by default none.
        claim: The privacy claim of the run that is charged; by default none.
        blocks: The grant's blocks with the data of the release; by default all.
    """

    grant: Required[str]
    event: Required[object]
    unit: object
    key: str | None
    claim: dict[str, Any] | None
    blocks: Sequence[str] | None


class AskedFor(Asked, total=False):
    """Fields of a request to reserve budget.

    Attributes:
        seconds: Duration of the reservation; by default `SECONDS`.
    """

    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A validated, authorised and priced request to spend; the remaining question is whether it fits.

    Attributes:
        actor: The author of the request.
        grant: The grant to be charged.
        policy: Policy of its dataset.
        spending: The planned release.
        unit: The unit for which it was priced.
        cost: Its cost.
        lines: Number of releases of each event of a plan.
        key: The idempotency key, or None.
        state: The state of the new charge.
        seconds: Duration of a reservation.
        claim: The privacy claim of the run that is charged, or None.
        blocks: The blocks to be charged; empty if the dataset is not divided.
        request: The digest of the request without its key.
    """

    actor: Actor
    grant: Grant
    policy: BudgetPolicy
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
    """Read the duration of a reservation.

    Raises:
        ParameterError: The value is not a whole number of seconds, at least 1 and at most 30 days.
    """
    if type(seconds) is not int or not 1 <= seconds <= _MOST_SECONDS:
        message = f"expected seconds of a reservation from 1 to {_MOST_SECONDS}, got {seconds!r}"
        raise ParameterError(message, name="seconds", given=seconds)
    return seconds


def check_names(action: Action, asked: AskedFor) -> None:
    """Refuse unknown and missing fields: a misspelt `key` would permit a second charge.

    Raises:
        TypeError: A field is missing, or is not in `Asked`, or for a reservation in `AskedFor`.
    """
    known = AskedFor if action == "reserve" else Asked
    unknown, missing = set(asked) - set(known.__annotations__), {"grant", "event"} - set(asked)
    if unknown or missing:
        expected = ", ".join(sorted(known.__annotations__))
        message = f"{action}: expected {expected}; got {', '.join(sorted(asked)) or 'nothing'}"
        raise TypeError(message)


def prepare(actor: Actor, action: Action, asked: AskedFor, *, grant: Grant, policy: BudgetPolicy) -> Prepared:
    """Validate a request, and price it in its grant's currency.

    Raises:
        BudgetError: It is a claim of joint DP, and a condition of the billboard lemma is not met.
        ParameterError: The event is invalid, has no finite cost in the grant's currency, or was priced for another unit
            than the dataset's, or its unit is missing; the grant does not cover a block; or the key is not a text.
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
    """Take the unit of a request: from the claim, from which it is removed, or from the request's own field.

    Raises:
        ParameterError: There are both.
    """
    given, own = asked.get("unit"), told.pop("unit", None)
    if given is not None and own is not None:
        message = f"the claim has its own unit, {str(own)[:200]}; expected no other unit beside it"
        raise ParameterError(message, name="unit", given=given)
    return own if given is None else given


def apply(transaction: Transaction, known: Known, prepared: Prepared, *, at: str) -> Decision:
    """Write a prepared request, or refuse it.

    Raises:
        IdempotencyError: The key was used for another request.
    """
    grant, key = prepared.grant, prepared.key
    if key is not None and (earlier := rows.earlier_requests(transaction, prepared.actor.name, key)):
        same = next((row for request, row in earlier if request == prepared.request), None)
        if same is None:
            raise IdempotencyError(f"the key {key!r} was used for another request; expected a new key")
        return known.decide(transaction, grant, same)
    transaction.lock(grant.dataset)
    now = rows.read_clock(transaction, grant.dataset, at)
    balance = known.balance_of(transaction, grant.name)
    after = balance.spend(grant, prepared.blocks or WHOLE, prepared.cost, prepared.lines, prepared.state)
    reason = explain_refusal(grant, prepared.policy, balance, after, now=now)
    if reason is not None:
        return Decision(
            state="refused",
            grant=grant.name,
            charge=None,
            cost=prepared.cost,
            balance=describe_balance(grant, balance),
            reason=reason,
            blocks=prepared.blocks,
        )
    seconds = timedelta(seconds=prepared.seconds)
    ends = write_time(datetime.fromisoformat(now) + seconds) if prepared.state == "reserved" else None
    body = {
        "state": prepared.state,
        "event": prepared.spending.to_dict(),
        "unit": prepared.unit.to_dict(),
        "cost": write_cost(prepared.cost),
        "claim": prepared.claim,
        "expires": ends,
        **({"clock": at} if ends is not None and is_behind(at, now) else {}),  # by which it ends, too
        "request": prepared.request,
        **_carry(prepared.blocks, prepared.claim),
        **({"message": describe_message(grant, prepared.cost)} if grant.recorded else {}),
    }
    identity = f"c-{secrets.token_hex(8)}"
    actor = prepared.actor
    row = _append(transaction, grant, after, body, actor=actor, kind="charge", at=now, charge=identity, key=key)
    known.keep(row, after)
    return known.decide(transaction, grant, row, after)


def commit(transaction: Transaction, known: Known, actor: Actor, charge: str, *, at: str) -> Decision:
    """Commit a reservation.

    Raises:
        AuthorityError: The reservation belongs to another actor.
        StateError: The reservation was released.
        UnknownNameError: There is no such charge.
    """
    found, history, now = _own(transaction, actor, "commit", charge, at=at)
    grant, policy = known.find(transaction, found.grant)
    if found.state == "committed":
        return known.decide(transaction, grant, history[-1])
    if found.state == "released":
        raise StateError(f"charge {charge} was released; expected a new one", state=found.state)
    balance = balance_of(transaction, grant.name)
    after = balance.commit(grant, found.blocks or WHOLE, found.cost)
    reason = explain_refusal(grant, policy, balance, after, now=now)
    if reason is not None:
        shown = describe_balance(grant, balance)
        return Decision(
            state="refused", grant=grant.name, charge=charge, cost=found.cost, balance=shown, reason=reason,
            blocks=found.blocks,
        )  # fmt: skip
    body = {"state": "committed", "cost": write_cost(found.cost), **_carry(found.blocks, found.claim)}
    row = _append(transaction, grant, after, body, actor=actor, kind="commit", at=now, charge=charge)
    return known.decide(transaction, grant, row, after)


def release(transaction: Transaction, known: Known, actor: Actor, charge: str, *, evidence: str, at: str) -> Decision:
    """Release a reservation of which no noise was drawn.

    Raises:
        AuthorityError: The actor is not permitted to release it.
        StateError: The charge was committed, which is never refunded.
        UnknownNameError: There is no such charge.
    """
    found, history, now = _own(transaction, actor, "release", charge, at=at)
    grant, _ = known.find(transaction, found.grant)
    if found.state == "released":
        return known.decide(transaction, grant, history[-1])
    if found.state == "committed":
        message = f"charge {charge} is committed: noise may have been drawn, and is never refunded"
        raise StateError(message, state=found.state)
    if found.expired or actor.name != found.actor:
        require(actor, "attest")
        if actor.name == found.actor:
            message = f"reservation {charge} has expired: another officer than {actor.name} has to attest"
            raise AuthorityError(message, action="attest")
    balance = balance_of(transaction, grant.name)
    lines = lines_of(grant, parse_event(found.event))
    after = balance.release(grant, found.blocks or WHOLE, found.cost, lines)
    more = _carry(found.blocks, found.claim)
    body = {"state": "released", "cost": write_cost(found.cost), "evidence": evidence, **more}
    row = _append(transaction, grant, after, body, actor=actor, kind="release", at=now, charge=charge)
    return known.decide(transaction, grant, row, after)


def read_finding(verdict: object, report: object) -> dict[str, str]:
    """Read an audit's finding.

    Raises:
        ParameterError: The verdict is invalid, or the report is not a text.
    """
    if verdict not in ("consistent", "violation"):
        message = f"expected verdict consistent or violation, got {str(verdict)[:40]!r}"
        raise ParameterError(message, name="verdict", given=verdict)
    return {"verdict": str(verdict), "report": read_text("report", report, most=2000)}


def add_evidence(
    transaction: Transaction, known: Known, actor: Actor, charge: str, finding: dict[str, str], *, at: str
) -> str:
    """Record an audit's finding on a charge, and return the row's hash; a violation freezes the grant.

    Raises:
        AuthorityError: The actor is not permitted to add evidence.
        UnknownNameError: There is no such charge.
    """
    found, _, at = _own(transaction, actor, "evidence", charge, at=at)
    row = note(transaction, known, actor, found.grant, kind="evidence", body={**finding, "of": charge}, at=at)
    if finding["verdict"] == "violation":
        why = {"reason": f"an audit found a violation: charge {charge}"}
        row = note(transaction, known, actor, found.grant, kind="freeze", body=why, at=at)
    return row.hash


def note(
    transaction: Transaction, known: Known, actor: Actor, grant: str, *, kind: str, body: dict[str, Any], at: str
) -> Entry:
    """Append a row about a grant that spends nothing; the kind "freeze" stops further spending."""
    found, _ = known.find(transaction, grant)
    transaction.lock(found.dataset)
    balance = balance_of(transaction, grant)
    after = replace(balance, frozen=balance.frozen or kind == "freeze")
    return _append(transaction, found, after, body, actor=actor, kind=kind, at=at)


def _own(
    transaction: Transaction, actor: Actor, action: Literal["commit", "release", "evidence"], charge: str, *, at: str
) -> tuple[Charge, list[Entry], str]:
    """Look up a charge for an action, with its rows and the dataset's time; the dataset is then locked.

    Raises:
        AuthorityError: The charge belongs to another actor, or the role does not permit the action.
        UnknownNameError: There is no such charge.
    """
    found = read_charge(rows.rows_of_charge(transaction, charge), charge, now=at, at=at)
    require(actor, action, grant=found.grant)
    if actor.name != found.actor and actor.role != "officer":
        message = f"{actor.name} may not {action} a charge or reservation of {found.actor}"
        raise AuthorityError(message, action=action)
    transaction.lock(found.dataset)
    history = rows.rows_of_charge(transaction, charge)  # what was read before the lock may be over
    now = rows.read_clock(transaction, found.dataset, at)
    return read_charge(history, charge, now=now, at=at), history, now


def _append(
    transaction: Transaction, grant: Grant, after: Balance, body: dict[str, Any], *, actor: Actor, kind: str, at: str,
    charge: str | None = None, key: str | None = None,
) -> Entry:  # fmt: skip
    """Append a row about a grant, with the balance after it."""
    return rows.append(
        transaction,
        dataset=grant.dataset,
        kind=kind,
        actor=actor.name,
        body={**body, "balance": after.to_dict()},
        at=at,
        grant=grant.name,
        charge=charge,
        key=key,
        shares=after.shares(grant),
    )


def _carry(blocks: tuple[str, ...], claim: dict[str, Any] | None) -> dict[str, Any]:
    """Fields repeated in every row about a charge: its blocks, and the conditions of a joint-DP claim."""
    conditions = conditions_of(claim)
    return {**({"blocks": list(blocks)} if blocks else {}), **({"conditions": conditions} if conditions else {})}
