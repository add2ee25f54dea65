"""What counts as spent, as events for others: joined, and as one event of dp-accounting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from privcheck.accounting.curve import compose
from privcheck.accounting.to_dp_events import to_dp_event
from privcheck.ledger.exact import canonical
from privcheck.ledger.values import Entry, complete_event
from privcheck.ledger.wire import parse_event


def join_charged(charges: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Returns the events that count as spent, equal ones together, in an order that does not depend on that of charges.

    Args:
        charges: The state of each and its event, in its canonical form; what was released is left out.
    """
    counts: Counter[str] = Counter()
    for state, event in charges:
        if state != "released":
            for part in complete_event(event).get("events", [complete_event(event)]):
                counts[canonical({**part, "count": 1})] += part["count"]
    return [{**json.loads(text), "count": count} for text, count in sorted(counts.items())]


def charges_of_rows(found: Iterable[Entry]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the state of every charge with its event, from the rows of a chain; what is kept are open reservations."""
    reserved: dict[str, Mapping[str, Any]] = {}
    for row in found:
        if row.charge is None:
            continue
        state = row.body["state"]
        event = row.body["event"] if row.kind == "charge" else reserved.pop(row.charge)
        if state == "reserved":
            reserved[row.charge] = event
        else:
            yield state, event
    yield from (("reserved", event) for event in reserved.values())


def write_dp_event(events: Sequence[Mapping[str, Any]]) -> str:
    """Returns events, one after another, as one event of dp-accounting for its add/remove accountants, as Python.

    Where charges were chosen from earlier answers its composition is no guarantee: that is the caps'. What was charged
    to different blocks is composed too, which is more than any user has paid.

    Raises:
        ParameterError: dp-accounting has no such event.

    >>> write_dp_event([{"type": "laplace", "scale": "2", "count": 3}])
    'ComposedDpEvent(events=[SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=2.0), count=3)])'
    >>> write_dp_event([])
    'NoOpDpEvent()'
    """
    parts = [one * event["count"] for event in events for one in parse_event({**event, "count": 1}).events()]
    return repr(to_dp_event(compose(parts))) if parts else "NoOpDpEvent()"
