"""What counts as spent, for others: a statement's lines, events that are joined, one event of dp-accounting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from privcheck.accounting.curve import compose
from privcheck.accounting.to_dp_events import to_dp_event
from privcheck.ledger.exact import canonical
from privcheck.ledger.values import Entry, complete_event
from privcheck.ledger.wire import parse_event
from privcheck.unit import Unit

_NOT_NOISE: Final = frozenset({"type", "count", "sensitivity", "relation"})
_GUARANTEES: Final = frozenset({"pure", "approximate", "zcdp", "gdp", "bounded_range"})  # whatever draws them
_SPREADS: Final = frozenset({"std", "scale", "threshold_scale"})  # in the units of the sensitivity


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


def state_charges(charges: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns what counts as spent as the lines of a statement, equal charges together, in the order of the first.

    Every line has what somebody who signs it has to be able to ask about: what noise was drawn, how much one person
    could change what it was added to, between which neighbours, on whose word, and at what cost.

    Args:
        charges: Each with grant, state, event, unit, cost, claim and blocks, as JSON; what was released is left out.

    Returns:
        Of each line: grant, state, times (how many charges), noise, sensitivity, relation, unit, stated_by, about (the
        algorithm, or None), given (what its author states), cost (of one), blocks, event.
    """
    lines: dict[str, dict[str, Any]] = {}
    for one in charges:
        if one["state"] == "released":
            continue
        unit = None if one["unit"] is None else Unit.of(one["unit"])
        event, claim = complete_event(one["event"]), one["claim"] or {}
        line = {
            "grant": one["grant"],
            "state": one["state"],
            "noise": _join(_say_noise(part) for part in event.get("events", [event])),
            "sensitivity": _join(_say_sensitivity(part) for part in event.get("events", [event])),
            "relation": _say_relation(event, unit),
            "unit": "never stated" if unit is None else unit.text,
            "stated_by": None if unit is None else unit.stated_by,
            "about": claim.get("algorithm"),
            "given": list(claim.get("given", ())),
            "cost": dict(one["cost"]),
            "blocks": list(one["blocks"]),
            "event": dict(one["event"]),
        }
        lines.setdefault(canonical(line), {**line, "times": 0})["times"] += 1
    return list(lines.values())


def charges_of_rows(rows: Iterable[Entry]) -> list[dict[str, Any]]:
    """Returns the charges of a dataset's rows as `state_charges` reads them."""
    opened: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.charge is None:
            continue
        if row.kind == "charge":
            told = {name: row.body.get(name) for name in ("event", "unit", "cost", "claim")}
            opened[row.charge] = {"grant": row.grant, **told, "blocks": row.body.get("blocks", ())}
        opened[row.charge]["state"] = row.body["state"]
    return list(opened.values())


def _join(said: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(said))


def _say_noise(part: Mapping[str, Any]) -> str:
    """What an event says of its noise, or that it is only a guarantee."""
    numbers = [f"{name.replace('_', ' ')} {value}" for name, value in part.items() if name not in _NOT_NOISE]
    drawn = "" if part["type"] not in _GUARANTEES else " (a guarantee: the noise is not stated)"
    times = f"{part['count']} × " if part["count"] > 1 else ""
    return f"{times}{part['type'].replace('_', ' ')}, {', '.join(numbers)}{drawn}"


def _say_sensitivity(part: Mapping[str, Any]) -> str:
    """How much one person changes what noise is added to, as the event says it."""
    if "sensitivity" in part:
        return str(part["sensitivity"])
    if any(name in part for name in _SPREADS):
        return "1"  # the accountant's own, where an event names none
    return "in the cost: not stated apart from the noise"


def _say_relation(event: Mapping[str, Any], unit: Unit | None) -> str:
    named = _join(part["relation"] for part in event.get("events", [event]) if "relation" in part)
    return named or (unit is not None and unit.relation) or "never stated"


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
