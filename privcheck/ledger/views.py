"""Views of the ledger: datasets with their grants and balances, charges, receipts; and exports for other programs.

The exports have the spending that counts: a statement's lines, joined events, one event of dp-accounting.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from privcheck.accounting.currencies import NOT_A_GUARANTEE
from privcheck.accounting.curve import compose
from privcheck.accounting.to_dp_events import to_dp_event
from privcheck.errors import UnknownNameError
from privcheck.ledger import grants, rows
from privcheck.ledger.balances import (
    Balance,
    balance_of,
    describe_all_taken,
    describe_balance,
    describe_support,
    find_blocks,
)
from privcheck.ledger.exact import canonical
from privcheck.ledger.forecasts import Forecast, forecast_of
from privcheck.ledger.limits import explain_clock, read_charge
from privcheck.ledger.signing import Signer, is_installed, unsigned
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Charge, Entry, Grant, Receipt, complete_event, concurrency_between, concurrency_of
from privcheck.ledger.wire import parse_event
from privcheck.terms.unit import Unit


def show_dataset(transaction: Transaction, name: str, *, at: str) -> dict[str, Any]:
    """Describe a dataset: its policy, blocks, grants with their balances, and the head of its chain.

    Args:
        transaction: A read transaction.
        name: Name of the dataset.
        at: The time by this machine's clock, in UTC, for comparison with that of the newest row.

    Raises:
        UnknownNameError: There is no dataset of the name.
    """
    policy = grants.find_policy(transaction, name)
    if policy is None:
        raise UnknownNameError("dataset", name, rows.datasets(transaction))
    head = rows.last_of_dataset(transaction, name)
    assert head is not None
    found = [(grant, balance_of(transaction, grant.name)) for grant in grants.grants_of(transaction, name)]
    blocks = [block.to_dict() for block in find_blocks(transaction, name)]
    return {
        "name": name,
        "policy": policy.to_dict(),
        "blocks": blocks,
        "grants": [
            _show_grant(grant, balance, forecast_of(transaction, grant, balance, at=at)) for grant, balance in found
        ],
        "between_grants": concurrency_between(policy, [grant for grant, _ in found]),
        "taken_part_in_all": describe_all_taken(policy, found),
        "support": describe_support(policy, rows.rows_of_kind(transaction, name, "evidence")),
        "head": _receipt_of(transaction, head).to_dict(),
        "clock": explain_clock(name, head.at, at=at),
    }


def show_datasets(transaction: Transaction, dataset: str | None, *, at: str) -> dict[str, Any]:
    """Describe a dataset, or all, as `show_dataset` does.

    Raises:
        UnknownNameError: There is no dataset of the name.
    """
    names = rows.datasets(transaction) if dataset is None else [dataset]
    return {"datasets": [show_dataset(transaction, name, at=at) for name in names]}


def list_charges(transaction: Transaction, dataset: str, *, after: int, most: int, at: str) -> list[Charge]:
    """Charges of a dataset in their current state, up to `most` after row `after`, in the order of their creation.

    Raises:
        UnknownNameError: There is no such dataset.
    """
    if grants.find_policy(transaction, dataset) is None:
        raise UnknownNameError("dataset", dataset, rows.datasets(transaction))
    return charges_at(transaction, dataset, rows.charges_of(transaction, dataset, after=after, most=most), at=at)


def charges_at(transaction: Transaction, dataset: str, names: Sequence[str], *, at: str) -> list[Charge]:
    """Current state of some charges of one dataset, at most a page of them."""
    now = rows.read_clock(transaction, dataset, at)
    found = rows.rows_of_charges(transaction, names)
    return [read_charge(found[name], name, now=now, at=at) for name in names]


def find_charge(transaction: Transaction, charge: str, *, at: str) -> Charge:
    """Current state of a charge.

    Raises:
        UnknownNameError: There is no such charge.
    """
    return find_history(transaction, charge, at=at)[0]


def find_history(transaction: Transaction, charge: str, *, at: str) -> tuple[Charge, list[Entry]]:
    """Current state of a charge, and the rows about it.

    Raises:
        UnknownNameError: There is no such charge.
    """
    history = rows.rows_of_charge(transaction, charge)
    now = rows.read_clock(transaction, history[0].dataset, at) if history else at
    return read_charge(history, charge, now=now, at=at), history


def find_receipt(transaction: Transaction, value: str) -> Receipt:
    """Receipt of the row with a hash, signed where the packages for signing are installed.

    Raises:
        UnknownNameError: There is no such row.
    """
    row = rows.find_hash(transaction, value)
    if row is None:
        raise UnknownNameError("receipt", value[:80], ())
    return _receipt_of(transaction, row)


def _receipt_of(transaction: Transaction, row: Entry) -> Receipt:
    """Receipt of a row to be shown; unsigned if the packages for signing are not installed."""
    return Signer.of(transaction).sign_receipt(unsigned(row)) if is_installed() else unsigned(row)


def _show_grant(grant: Grant, balance: Balance, forecast: Forecast | None) -> dict[str, Any]:
    shown = describe_balance(grant, balance)
    told = {"concurrency": concurrency_of(grant), "balance": shown, "remaining": shown["free"]}
    told["forecast"] = None if forecast is None else forecast.to_dict()
    return {**grant.to_dict(), **told, "note": NOT_A_GUARANTEE}


_NOT_NOISE: Final = frozenset({"type", "count", "sensitivity", "relation"})
_GUARANTEES: Final = frozenset({"pure", "approximate", "zcdp", "gdp", "bounded_range"})  # whatever draws them
_SPREADS: Final = frozenset({"std", "scale", "threshold_scale"})  # in the units of the sensitivity


def join_charged(charges: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Join the events that count as spent, equal ones together, in an order independent of the charges'.

    Args:
        charges: The state of each charge and its event, in its canonical form; released charges are left out.
    """
    counts: Counter[str] = Counter()
    for state, event in charges:
        if state != "released":
            for part in complete_event(event).get("events", [complete_event(event)]):
                counts[canonical({**part, "count": 1})] += part["count"]
    return [{**json.loads(text), "count": count} for text, count in sorted(counts.items())]


def state_charges(charges: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List the charges that count as spent as lines of a statement, equal ones together, by first occurrence.

    Every line has the facts that its signatory has to be able to check: the noise, the sensitivity to one person, the
    neighbouring relation, the author of the unit, and the cost.

    Args:
        charges: Each with grant, state, event, unit, cost, claim and blocks, as JSON; released charges are left out.

    Returns:
        Of each line: grant, state, times (number of charges), noise, sensitivity, relation, unit, stated_by, about (the
        algorithm, or None), given (its author's statements), certificate (digest of its verdict's, or None), cost (of
        one), blocks, event.
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
            "certificate": claim.get("certificate"),
            "cost": dict(one["cost"]),
            "blocks": list(one["blocks"]),
            "event": dict(one["event"]),
        }
        lines.setdefault(canonical(line), {**line, "times": 0})["times"] += 1
    return list(lines.values())


def charges_of_rows(rows: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    """Iterate over the charges of a chain's rows, for `state_charges`; only open reservations are kept in memory."""
    reserved: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.charge is None:
            continue
        if row.kind == "charge":
            told = {name: row.body.get(name) for name in ("event", "unit", "cost", "claim")}
            one = {"grant": row.grant, **told, "blocks": row.body.get("blocks", ())}
        else:
            one = reserved.pop(row.charge)
        one["state"] = row.body["state"]
        if one["state"] == "reserved":
            reserved[row.charge] = one
        else:
            yield one
    yield from reserved.values()


def _join(said: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(said))


def _say_noise(part: Mapping[str, Any]) -> str:
    """Description of an event's noise, or the note that it is only a guarantee."""
    numbers = [f"{name.replace('_', ' ')} {value}" for name, value in part.items() if name not in _NOT_NOISE]
    drawn = "" if part["type"] not in _GUARANTEES else " (a guarantee: the noise is not stated)"
    times = f"{part['count']} × " if part["count"] > 1 else ""
    return f"{times}{part['type'].replace('_', ' ')}, {', '.join(numbers)}{drawn}"


def _say_sensitivity(part: Mapping[str, Any]) -> str:
    """Sensitivity of an event to one person, as the event states it."""
    if "sensitivity" in part:
        return str(part["sensitivity"])
    if any(name in part for name in _SPREADS):
        return "1"  # the accountant's own, where an event names none
    return "in the cost: not stated separately from the noise"


def _say_relation(event: Mapping[str, Any], unit: Unit | None) -> str:
    named = _join(part["relation"] for part in event.get("events", [event]) if "relation" in part)
    return named or (unit is not None and unit.relation) or "never stated"


def write_dp_event(events: Sequence[Mapping[str, Any]]) -> str:
    """Python expression of one dp-accounting event that composes the events, for its add/remove accountants.

    Where charges depended on earlier answers this composition is not a guarantee; the caps are. Charges to different
    blocks are composed too, which is more than the loss of any user.

    Raises:
        ParameterError: dp-accounting has no event for one of them.

    >>> write_dp_event([{"type": "laplace", "scale": "2", "count": 3}])
    'ComposedDpEvent(events=[SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=2.0), count=3)])'
    >>> write_dp_event([])
    'NoOpDpEvent()'
    """
    parts = [one * event["count"] for event in events for one in parse_event({**event, "count": 1}).events()]
    return repr(to_dp_event(compose(parts))) if parts else "NoOpDpEvent()"
