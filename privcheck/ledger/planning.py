"""Plans of the ledger: their lines are written as JSON; which event is which, `privcheck.accounting.Plan` says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from privcheck.accounting.plans import Plan
from privcheck.errors import BudgetError, ParameterError
from privcheck.ledger.exact import canonical
from privcheck.ledger.wire import Part, Spending, parse_event

Lines = Sequence[Mapping[str, Any]]


def join_lines(spending: Spending) -> tuple[dict[str, Any], ...]:
    """Returns the lines of a plan: every event once, with its count, in an order that does not depend on the given."""
    parts = sorted(spending.parts, key=_text)
    plan = Plan.of(part.event() for part in parts)
    first: dict[int, Part] = {}
    for part in parts:
        first.setdefault(plan.place(part.event()), part)
    return tuple({**part.to_dict(), "count": plan.events[place].count} for place, part in first.items())


def plan_of(lines: Lines) -> Plan:
    """Returns the plan of which these are the lines, nothing of it used."""
    return _read(canonical(list(lines)))[0]


def count_lines(lines: Lines, spending: Spending) -> tuple[int, ...]:
    """Returns how often the event of each line is released, however it is written.

    Raises:
        ParameterError: One is not in the plan with exactly these parameters.
    """
    plan, line_of = _read(canonical(list(lines)))
    counts = [0] * len(lines)
    for part in spending.parts:
        try:
            counts[line_of[plan.place(part.event())]] += part.count
        except BudgetError:
            message = f"expected an event of the plan, with exactly its parameters, got {part.to_dict()}"
            raise ParameterError(message, name="event", given=part.to_dict()) from None
    return tuple(counts)


@lru_cache(maxsize=16)
def _read(text: str) -> tuple[Plan, dict[int, int]]:
    """Returns the plan of lines, and the line of each of its events."""
    events = [parse_event(line).events()[0] for line in json.loads(text)]
    plan = Plan.of(events)
    return plan, {plan.place(event): line for line, event in reversed(list(enumerate(events)))}


def _text(part: Part) -> str:
    return canonical({**part.to_dict(), "count": 1})
