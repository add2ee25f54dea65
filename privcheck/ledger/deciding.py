"""Whether a request fits, and what the rows about a charge say: from values alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from privcheck.accounting.currencies import Cost
from privcheck.errors import UnknownNameError
from privcheck.ledger import rows
from privcheck.ledger.answers import Charge, Quote
from privcheck.ledger.balances import Balance, balance_of, less
from privcheck.ledger.describing import describe_balance
from privcheck.ledger.exact import canonical
from privcheck.ledger.planning import count_lines
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import WHOLE, Entry, Grant, Policy, complete_event, read_cost
from privcheck.ledger.wire import Spending
from privcheck.unit import Unit

SKEW: Final = timedelta(minutes=5)  # by which the clocks of machines that write differ without a word
_MOST_TIMES: Final = 10**18


def quote_of(
    transaction: Transaction, grant: Grant, policy: Policy, spending: Spending, unit: Unit, *,
    blocks: Sequence[str], at: str,
) -> Quote:  # fmt: skip
    """Returns what a charge would cost, and whether it would fit now, on blocks; none: on the dataset as a whole.

    Raises:
        ParameterError: It has no finite cost in the grant's currency.
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


def explain_refusal(grant: Grant, policy: Policy, balance: Balance, after: Balance, *, now: str) -> str | None:
    """Returns why nothing is charged that would lead to a balance, None where it may be.

    Args:
        grant: What is charged.
        policy: Of its dataset.
        balance: The grant's, as it is.
        after: As it would be.
        now: The time, in UTC.
    """
    if balance.frozen:
        return f"grant {grant.name!r} is frozen; an officer has to look at it"
    if policy.until is not None and policy.until <= now:
        return f"the policy of {policy.dataset!r} ended at {policy.until}"
    for place in after.sums:
        reason = _explain_place(grant, balance, after, place)
        if reason is not None:
            return f"on block {place}: {reason}" if place else reason
    return None


def _explain_place(grant: Grant, balance: Balance, after: Balance, place: str) -> str | None:
    """Returns why a balance does not fit into a grant in one place."""
    was, will = balance.at(grant, place), after.at(grant, place)
    free, cost = balance.free(grant, place), less(will.held(grant.cap), was.held(grant.cap))
    for used, before, line in zip(will.used, was.used, grant.plan, strict=True):
        if used > line["count"]:
            return f"the plan has {line['count'] - before} of {line['count']} left, of {canonical(line)}"
    if grant.recorded and cost.amount > free.amount:
        most = f"{float(grant.cap):.12g} is the most that one may cost"
        return f"it costs {grant.currency} = {float(cost.amount):.12g} a message, and {most}"
    if cost.amount > free.amount:
        return f"it costs {grant.currency} = {float(cost.amount):.12g}, and {float(free.amount):.12g} is left"
    if cost.lost > free.lost:
        return f"it loses δ = {float(cost.lost):.6g} outright, and {float(free.lost):.6g} of that is left"
    return None


def read_charge(history: Sequence[Entry], name: str, *, now: str, at: str) -> Charge:
    """Returns a charge as the rows about it say, in order.

    Args:
        history: The rows.
        name: Of the charge.
        now: The time of its dataset, in UTC.
        at: That of the machine's clock.

    Raises:
        UnknownNameError: There are none.
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
    """Returns whether a machine's clock is behind a dataset's time by more than clocks differ."""
    return datetime.fromisoformat(now) - datetime.fromisoformat(at) > SKEW


def explain_clock(dataset: str, newest: str, *, at: str) -> str | None:
    """Returns what it means that a dataset's newest row is ahead of a machine's clock; None where it is not.

    Args:
        dataset: Its name.
        newest: When its newest row was written, in UTC; empty where it has none.
        at: The time by the machine's clock.
    """
    if not newest or not is_behind(at, newest):
        return None
    ahead = datetime.fromisoformat(newest) - datetime.fromisoformat(at)
    far = f"{ahead.days} days" if ahead.days > 1 else f"{ahead.total_seconds() / 3600:.1f} hours"
    return (
        f"{dataset}: its newest row, of {newest[:19]}, is {far} ahead of this machine's clock, {at[:19]}: one of the "
        "clocks that have written is wrong. Until this clock is there the dataset's time stands still: what has ended "
        "stays ended, and a reservation ends by whichever clock is first"
    )


def _is_over(opened: Entry, *, now: str, at: str) -> bool:
    """Returns whether a reservation has ended, by the dataset's time or by the machine's: nobody knows which is right.

    One that was opened ahead of the machine's clock may have run for any time.
    """
    if opened.body["expires"] is None:
        return False
    if opened.body["expires"] <= now:
        return True
    clock, began = datetime.fromisoformat(at), datetime.fromisoformat(opened.body.get("clock", opened.at))
    lasts = datetime.fromisoformat(opened.body["expires"]) - datetime.fromisoformat(opened.at)
    return began + lasts <= clock or clock < began - SKEW


def lines_of(grant: Grant, spending: Spending) -> tuple[int, ...]:
    """Returns how often each event of a plan is released; nothing for an adaptive grant."""
    return count_lines(grant.plan, spending) if grant.kind == "plan" else ()


def how_often(grant: Grant, balance: Balance, place: str, lines: Sequence[int], cost: Cost) -> int | None:
    """Returns how often a cost fits in a place; None where it is nothing, or nothing is added."""
    free = balance.free(grant, place)
    if grant.recorded:
        return None if cost.amount <= free.amount and cost.lost <= free.lost else 0
    fits = [left // part for left, part in ((free.amount, cost.amount), (free.lost, cost.lost)) if part]
    for line, used, more in zip(grant.plan, balance.at(grant, place).used, lines, strict=True):
        if more:
            fits.append((line["count"] - used) // more)
    return min(*fits, _MOST_TIMES) if fits else None
