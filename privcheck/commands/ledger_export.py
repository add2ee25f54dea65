"""All charges to a dataset for others, however many: a statement to read and keep, or one event for dp_accounting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Any, Final

from privcheck.commands.desks import Desk
from privcheck.commands.ledger_words import describe_charges, describe_dataset, describe_lines
from privcheck.ledger.exporting import join_charged, state_charges, write_dp_event
from privcheck.reports.values import document

_PAGE: Final = 1000  # charges that are held at the same time


def export_event(desk: Desk, dataset: str) -> dict[str, Any]:
    """Returns the events that count as spent as one DpEvent in words.

    It is what was charged, one after another. Where charges were chosen from earlier answers its composition is no
    guarantee: that is the caps'.

    Raises:
        ParameterError: An event has no form in dp_accounting.
        UnknownNameError: There is no such dataset.
    """
    shown = desk.show(dataset)["datasets"][0]
    events = join_charged((c["state"], c["event"]) for c in _charges(desk, shown))
    return {
        "form": "dp-event",
        "dataset": dataset,
        "unit": shown["policy"]["unit"],
        "event": write_dp_event(events),
        "events": sum(e["count"] for e in events),
    }


def write_statement(desk: Desk, dataset: str, *, as_json: bool) -> Iterator[str]:
    """Yields a statement in pieces: the dataset, its charges up to the head that it names, and that head.

    Raises:
        UnknownNameError: There is no such dataset.
    """
    shown = desk.show(dataset)["datasets"][0]
    lines = state_charges(_charges(desk, shown))  # a first way through; the second one lists them
    yield from (_write_json if as_json else _write_words)(shown, lines, _pages(_charges(desk, shown)))


def _write_json(
    shown: dict[str, Any], lines: list[dict[str, Any]], pages: Iterator[list[dict[str, Any]]]
) -> Iterator[str]:  # fmt: skip
    first = json.dumps(document({"form": "statement", "dataset": shown, "lines": lines}), allow_nan=False)
    yield f'{first.removesuffix("}")}, "charges": ['
    comma = ""
    for page in pages:
        for charge in document({"charges": page})["charges"]:
            yield comma + json.dumps(charge, allow_nan=False)
            comma = ", "
    head = json.dumps(document({"head": shown["head"]})["head"], allow_nan=False)
    yield f'], "head": {head}}}\n'


def _write_words(
    shown: dict[str, Any], stated: list[dict[str, Any]], pages: Iterator[list[dict[str, Any]]]
) -> Iterator[str]:  # fmt: skip
    yield f"{describe_dataset(shown)}\n\n{describe_lines(shown, stated)}\n\n"
    for lines in describe_charges(pages):
        yield f"{lines}\n"
    head = shown["head"]
    yield f"\nhead: row {head['seq']} of {head['at']}, {head['hash']}\nsignature: {head['signature']}\n"


def _charges(desk: Desk, shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a dataset's charges up to the head that is shown: what comes in meanwhile is not on it."""
    last = shown["head"]["seq"]
    return takewhile(lambda charge: charge["seq"] <= last, desk.charges(shown["name"]))


def _pages(charges: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while page := list(islice(charges, _PAGE)):
        yield page
