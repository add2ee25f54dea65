"""All charges to a dataset for others: a statement to read and keep, or one event for dp_accounting."""

from __future__ import annotations

from typing import Any

from privcheck.commands.desks import Desk
from privcheck.ledger.exporting import join_charged, state_charges, write_dp_event


def export_dataset(desk: Desk, dataset: str, form: str) -> dict[str, Any]:
    """Returns a dataset's charges: a statement, or the events that count as spent as one DpEvent in words.

    The event is what was charged, one after another. Where charges were chosen from earlier answers its composition is
    no guarantee: that is the caps'.

    Raises:
        ParameterError: An event has no form in dp_accounting.
        UnknownNameError: There is no such dataset.
    """
    charges = desk.charges(dataset)
    shown = desk.show(dataset)["datasets"][0]
    if form == "statement":
        head = shown["head"]
        lines = state_charges(charges)
        return {"form": form, "dataset": shown, "lines": lines, "charges": charges, "head": head}
    events = join_charged((c["state"], c["event"]) for c in charges)
    return {
        "form": form,
        "dataset": dataset,
        "unit": shown["policy"]["unit"],
        "event": write_dp_event(events),
        "events": sum(e["count"] for e in events),
    }
