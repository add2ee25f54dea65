"""Limits: whether a request fits into its grant, its unit of privacy and its model of trust.

Everything but a quote is computed from values, without access to the store. In this order: quotes, refusals and the
state of a charge, from the rows about it; the unit of privacy (`check_unit`), the one check of everything that is
priced, planned, reserved or charged; the conditions of joint DP (`check_joint`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from privcheck.accounting.billboard_lemma import PRECONDITIONS
from privcheck.accounting.currencies import Cost
from privcheck.errors import BudgetError, ParameterError, UnknownNameError
from privcheck.ledger import rows
from privcheck.ledger.balances import Balance, balance_of, describe_balance, less
from privcheck.ledger.exact import canonical
from privcheck.ledger.policies import count_lines
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import WHOLE, BudgetPolicy, Charge, Entry, Grant, Quote, complete_event, read_cost
from privcheck.ledger.wire import Spending, read_json
from privcheck.terms.unit import Unit, explain_mismatch, parse_unit

SKEW: Final = timedelta(minutes=5)  # by which the clocks of machines that write differ without a word
_MOST_TIMES: Final = 10**18


def quote_of(
    transaction: Transaction, grant: Grant, policy: BudgetPolicy, spending: Spending, unit: Unit, *,
    blocks: Sequence[str], at: str,
) -> Quote:  # fmt: skip
    """Quote the cost of a charge to blocks, or to the dataset as a whole if `blocks` is empty, and whether it fits now.

    Raises:
        ParameterError: The event has no finite cost in the grant's currency.
    """
    cost, balance = spending.cost(grant.currency), balance_of(transaction, grant.name)
    places, lines = blocks or WHOLE, lines_of(grant, spending)
    after = balance.spend(grant, places, cost, lines, "committed")
    now = rows.read_clock(transaction, grant.dataset, at)
    reason = explain_refusal(grant, policy, balance, after, now=now)
    times = [how_often(grant, balance, place, lines, cost) for place in places]
    return Quote(
        grant=grant.name,
        event=spending.to_dict(),
        unit=unit,
        cost=cost,
        fits=reason is None,
        reason=reason,
        times=min((n for n in times if n is not None), default=None),
        balance=describe_balance(grant, balance),
    )


def explain_refusal(grant: Grant, policy: BudgetPolicy, balance: Balance, after: Balance, *, now: str) -> str | None:
    """Reason why a charge is refused, or None if it fits.

    Args:
        grant: The grant to be charged.
        policy: Policy of its dataset.
        balance: The grant's present balance.
        after: The balance after the charge.
        now: The time, in UTC.
    """
    if balance.frozen:
        return f"grant {grant.name!r} is frozen; an officer has to decide"
    if policy.until is not None and policy.until <= now:
        return f"the policy of {policy.dataset!r} ended at {policy.until}"
    for place in after.sums:
        reason = _explain_place(grant, balance, after, place)
        if reason is not None:
            return f"on block {place}: {reason}" if place else reason
    return None


def _explain_place(grant: Grant, balance: Balance, after: Balance, place: str) -> str | None:
    """Reason why a balance does not fit into a grant in one place, or None if it does."""
    was, will = balance.at(grant, place), after.at(grant, place)
    free, cost = balance.free(grant, place), less(will.held(grant.cap), was.held(grant.cap))
    for used, before, line in zip(will.used, was.used, grant.plan, strict=True):
        if used > line["count"]:
            return f"the plan has {line['count'] - before} of {line['count']} left, of {canonical(line)}"
    if grant.recorded and cost.amount > free.amount:
        most = f"{float(grant.cap):.12g} is the most for one message"
        return f"it costs {grant.currency} = {float(cost.amount):.12g} a message, and {most}"
    if cost.amount > free.amount:
        return f"it costs {grant.currency} = {float(cost.amount):.12g}, and {float(free.amount):.12g} is left"
    if cost.lost > free.lost:
        return f"it loses δ = {float(cost.lost):.6g} outright, and {float(free.lost):.6g} is left of the δ set aside"
    return None


def read_charge(history: Sequence[Entry], name: str, *, now: str, at: str) -> Charge:
    """Current state of a charge, from the rows about it.

    Args:
        history: The rows, in order.
        name: Name of the charge.
        now: The time of its dataset, in UTC.
        at: The time by the machine's clock.

    Raises:
        UnknownNameError: There are no rows.
    """
    if not history:
        raise UnknownNameError("charge", name[:80], ())
    first, last = history[0], history[-1]
    state = last.body["state"]
    return Charge(
        id=name,
        dataset=first.dataset,
        grant=str(first.grant),
        seq=first.seq,
        key=first.key,
        actor=first.actor,
        event=complete_event(first.body["event"]),
        unit=first.body.get("unit"),
        cost=read_cost(first.body["cost"]),
        state=state,
        expires=first.body["expires"],
        expired=state == "reserved" and _is_over(first, now=now, at=at),
        claim=first.body["claim"],
        blocks=tuple(first.body.get("blocks", ())),
        message=first.body.get("message"),
        evidence=last.body.get("evidence"),
        prev=last.prev,
        hash=last.hash,
        at=last.at,
    )


def is_behind(at: str, now: str) -> bool:
    """Whether a machine's clock is behind a dataset's time by more than the tolerance `SKEW`."""
    return datetime.fromisoformat(now) - datetime.fromisoformat(at) > SKEW


def explain_clock(dataset: str, newest: str, *, at: str) -> str | None:
    """Warning that a dataset's newest row is ahead of the machine's clock, or None if it is not.

    Args:
        dataset: Name of the dataset.
        newest: When its newest row was written, in UTC; empty if it has none.
        at: The time by the machine's clock.
    """
    if not newest or not is_behind(at, newest):
        return None
    ahead = datetime.fromisoformat(newest) - datetime.fromisoformat(at)
    far = f"{ahead.days} days" if ahead.days > 1 else f"{ahead.total_seconds() / 3600:.1f} hours"
    return (
        f"{dataset}: its newest row, of {newest[:19]}, is {far} ahead of this machine's clock, {at[:19]}: one of the "
        "writers' clocks is wrong. Until this clock catches up, time stands still for the dataset: expired items stay "
        "expired, and a reservation ends by the earlier clock"
    )


def _is_over(opened: Entry, *, now: str, at: str) -> bool:
    """Whether a reservation has ended, by the dataset's time or by the machine's: either clock may be the right one.

    A reservation that was opened ahead of the machine's clock counts as ended, because its duration is unknown.
    """
    if opened.body["expires"] is None:
        return False
    if opened.body["expires"] <= now:
        return True
    clock, began = datetime.fromisoformat(at), datetime.fromisoformat(opened.body.get("clock", opened.at))
    lasts = datetime.fromisoformat(opened.body["expires"]) - datetime.fromisoformat(opened.at)
    return began + lasts <= clock or clock < began - SKEW


def lines_of(grant: Grant, spending: Spending) -> tuple[int, ...]:
    """Number of releases of each event of a plan; empty for an adaptive grant."""
    return count_lines(grant.plan, spending) if grant.kind == "plan" else ()


def how_often(grant: Grant, balance: Balance, place: str, lines: Sequence[int], cost: Cost) -> int | None:
    """Number of times a cost fits in a place; None if it is unlimited."""
    free = balance.free(grant, place)
    if grant.recorded:
        return None if cost.amount <= free.amount and cost.lost <= free.lost else 0
    fits = [left // part for left, part in ((free.amount, cost.amount), (free.lost, cost.lost)) if part]
    for line, used, more in zip(grant.plan, balance.at(grant, place).used, lines, strict=True):
        if more:
            fits.append((line["count"] - used) // more)
    return min(*fits, _MOST_TIMES) if fits else None


DATASET: Final = "dataset"  # in place of a unit: who charges states that it was priced for the dataset's
_EXAMPLE: Final = "'patient, 8 trajectories, replace-one, central'"
_LONGEST: Final = 2000  # characters of a unit


def state_unit(given: object, *, by: str) -> Unit:
    """The complete unit that a person states for a dataset, with that person as its source.

    Args:
        given: A `Unit`, its JSON as a mapping or text, or the text that `parse_unit` reads.
        by: The author of the statement.

    Raises:
        ParameterError: The value is not a unit, or its relation or model is missing.
    """
    unit = _read(given, by=by)
    if unit.relation is None or unit.model is None:
        message = f"expected a unit with its relation and its model of trust, as {_EXAMPLE}; got {unit.words}"
        raise ParameterError(message, name="unit", given=unit.words)
    return replace(unit, basis="statement", stated_by=by)


def check_unit(policy: BudgetPolicy, given: object, *, by: str, relations: Iterable[str] = ()) -> Unit:
    """The unit for which an event was priced, after checking that it covers the dataset's.

    A dataset's policy states whom it protects, and a charge must have been priced for at least that: a request carries
    its own unit, and the two are compared here, before the store is accessed. There is no default: a request without a
    unit is refused.

    Args:
        policy: Policy of the dataset.
        given: A `Unit`, its JSON, its text, or "dataset": the caller states that it was priced for the dataset's unit.
        by: The author of the statement, if the unit has no other source.
        relations: The neighbouring relations that the events name.

    Raises:
        ParameterError: The unit is missing, or does not cover the dataset's; an event names another relation; the unit
            was asserted, and the policy does not accept that; or the policy has no unit.
    """
    needed, taken = needed_unit(policy), (policy.dataset, policy.asserted_units)
    if isinstance(given, (str, Unit)):
        return _check_again(needed, taken, given, by, tuple(relations))
    return _check(needed, taken, given, by, tuple(relations))


def _check(needed: Unit, taken: tuple[str, bool], given: object, by: str, relations: tuple[str, ...]) -> Unit:
    dataset, takes_asserted = taken
    whose = f"dataset {dataset!r}"
    if given is None:
        message = (
            f"expected a unit (--unit), for which it was priced, as {_EXAMPLE}, or the word {DATASET!r} (--unit "
            f"{DATASET}), by which you state that it was priced for the unit of {whose}, {needed.text!r}"
        )
        raise ParameterError(message, name="unit")
    offered = replace(needed, basis="statement", stated_by=by) if given == DATASET else _read(given, by=by)
    mismatch = explain_mismatch(offered, needed, whose=whose)
    if mismatch is not None:
        raise ParameterError(mismatch, name="unit", given=offered.text)
    for relation in relations:
        named: Any = relation
        mismatch = explain_mismatch(replace(offered, relation=named), needed, whose=whose)
        if mismatch is not None:
            message = f"an event names the relation {relation}: {mismatch}"
            raise ParameterError(message, name="relation", given=relation)
    if offered.basis == "assertion" and not takes_asserted:
        message = (
            f"the unit of this is only asserted ({offered.words}; stated by: {offered.stated_by}), and the policy of "
            f"{whose} takes no asserted units: name the column of users (--column user=…), or open "
            "another dataset with privcheck ledger policy … --allow-asserted-unit"
        )
        raise ParameterError(message, name="unit", given=offered.text)
    return offered


_check_again = lru_cache(maxsize=1024)(_check)  # most requests are like one that came before


def needed_unit(policy: BudgetPolicy) -> Unit:
    """The unit of a dataset, for which everything has to be priced.

    Raises:
        ParameterError: The policy is of a store older than `Unit`.
    """
    if policy.unit is None:
        assert policy.old_unit is not None
        message = (
            f"dataset {policy.dataset!r} is of an earlier version: its policy does not say how many trajectories a "
            f"user has ({policy.old_unit.words}), so no more grants, quotes or charges are possible; open another "
            f"dataset with --unit, as {_EXAMPLE}"
        )
        raise ParameterError(message, name="unit")
    return policy.unit


def _read(given: object, *, by: str) -> Unit:
    if isinstance(given, str) and len(given) <= _LONGEST:
        return _read_text(given, by)
    unit = given if isinstance(given, Unit) else _read_fields(given, by=by)
    return replace(unit, stated_by=by) if unit.basis == "statement" else unit  # whoever hands it in states it


def _read_text(text: str, by: str) -> Unit:
    if text.lstrip().startswith("{"):
        return _read(read_json(text), by=by)
    return parse_unit(text, stated_by=by)


def _read_fields(given: object, *, by: str) -> Unit:
    if not isinstance(given, Mapping):
        message = f"expected a unit of privacy as {_EXAMPLE}, or its JSON; got {str(given)[:200]!r}"
        raise ParameterError(message, name="unit", given=given)
    return Unit.of({"basis": "statement", "stated_by": by, **given})


RECORDED: Final = "local DP of every message; charges are recorded, not added"
LEMMA: Final = "billboard lemma, Hsu, Huang, Roth, Roughgarden & Wu 2014"
STATED: Final = "stated by who charges"


def check_joint(policy: BudgetPolicy, unit: Unit, claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """Complete a claim with the conditions of joint DP, if its unit is of that model; None if the claim is empty.

    Joint DP follows from a private billboard if every output to a user is computed from the billboard and that user's
    own data alone (Hsu, Huang, Roth, Roughgarden & Wu 2014). The store sees the billboard's cost, not that; so a charge
    of joint DP carries the lemma's conditions by name, with the evidence for each.

    In the local model a charge is one message of each participating user, and the ledger does not know the
    participants: charges are recorded, not added, and a grant's cap is that of one message.

    Args:
        policy: Policy of the dataset.
        unit: The unit for which the event was priced.
        claim: The claim; `joint` has the evidence for each condition of the lemma.

    Raises:
        BudgetError: The unit is of joint DP, and a condition of the billboard lemma is false, or missing.
        ParameterError: The claim has such conditions, and the unit is of another model.
    """
    told = dict(claim)
    if unit.model == "joint":
        told["joint"] = {"lemma": LEMMA, "conditions": _spell_out(policy, told.get("joint") or {})}
    elif told.pop("joint", None):
        message = (
            f"conditions of the billboard lemma are those of joint DP, and this was priced for the {unit.model} model "
            f"({unit.text!r}): expected a unit of the joint model, or no conditions"
        )
        raise ParameterError(message, name="conditions")
    return told or None


def conditions_of(claim: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Conditions of an accepted claim of joint DP; empty for any other claim."""
    return [] if claim is None else list(claim.get("joint", {}).get("conditions", ()))


def _spell_out(policy: BudgetPolicy, met: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """List the conditions of the billboard lemma, each with its evidence.

    Raises:
        BudgetError: A condition is false, or was not checked.
        ParameterError: A condition is unknown.
    """
    unknown = sorted(set(met) - set(PRECONDITIONS))
    if unknown:
        message = f"expected conditions of {', '.join(PRECONDITIONS)}; got {unknown[0][:40]!r}"
        raise ParameterError(message, name="conditions", given=unknown[0])
    missing = [f"{name}: {words}" for name, words in PRECONDITIONS.items() if not met.get(name)]
    if missing:
        message = (
            "joint DP does not follow from the billboard lemma, because this was not found to hold: "
            f"{'; '.join(missing)}. A charge to {policy.dataset!r} needs a claim whose actions are computed from the "
            "billboard and the user's own data, or an event with the checked conditions"
        )
        raise BudgetError(message, cost=None, remaining=None)
    return [{"name": n, "statement": s, "holds": True, "how": met[n]} for n, s in PRECONDITIONS.items()]
