"""Queries of the pages beyond the JSON API: spending over time, the newest charges, histories, queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from privcheck.ledger import rows, schema
from privcheck.ledger.balances import SHARES
from privcheck.ledger.signing import Signer, unsigned
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Charge, Entry, Receipt
from privcheck.ledger.views import charges_at, find_history, show_datasets

_POINTS: Final = 80  # of a line
_QUEUED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Spending of a grant over time.

    Attributes:
        grant: Name of the grant.
        points: Moments, in UTC, with the spent share of the cap from then on; at most 80, with the first and the last.
    """

    grant: str
    points: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A charge with all rows about it.

    Attributes:
        charge: Current state of the charge.
        rows: The rows about it, in order.
        evidence: Audits' findings on it.
        receipt: The receipt of its last row.
    """

    charge: Charge
    rows: tuple[Entry, ...]
    evidence: tuple[Entry, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Work of officers.

    Attributes:
        expired: Expired reservations; it is unknown whether their noise was drawn.
        running: Reservations that still run.
        left_out: Number of further open reservations, which end later than these.
        frozen: Grants with their datasets, and the reason why they are frozen.
        violations: Audits' findings of violations, with the charges.
        clocks: Warnings about datasets with a newest row ahead of this machine's clock.
    """

    expired: tuple[Charge, ...]
    running: tuple[Charge, ...]
    left_out: int
    frozen: tuple[dict[str, Any], ...]
    violations: tuple[Entry, ...]
    clocks: tuple[str, ...]


def course_of(transaction: Transaction, grant: str) -> Course:
    """Spending of a grant over time, from a bounded number of look-ups."""
    ends = transaction.one("SELECT MIN(seq), MAX(seq) FROM entry WHERE budget = ?", (grant,))
    assert ends is not None
    first, last = int(ends[0] or 0), int(ends[1] or 0)
    wanted = {first + (last - first) * step // (_POINTS - 1) for step in range(_POINTS)}
    found: dict[int, tuple[str, float]] = {}
    for place in sorted(wanted):
        row = transaction.one(
            "SELECT seq, written_at, held FROM entry WHERE budget = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
            (grant, place),
        )
        assert row is not None
        found[int(row[0] or 0)] = (str(row[1]), int(row[2] or 0) / SHARES)
    return Course(grant=grant, points=tuple(found.values()))


def newest_charges(
    transaction: Transaction, dataset: str, *, before: int | None, most: int, now: str
) -> list[Charge]:  # fmt: skip
    """Charges of a dataset in their current state, the newest first.

    Args:
        transaction: A read transaction.
        dataset: Name of the dataset.
        before: Only charges with the first row before this one; None: all.
        most: Maximum number of charges.
        now: The time, in UTC.
    """
    found = transaction.all(
        "SELECT charge FROM entry WHERE dataset = ? AND kind = 'charge' AND seq < ? ORDER BY seq DESC LIMIT ?",
        (dataset, before if before is not None else 2**62, most),
    )
    return charges_at(transaction, dataset, [str(row[0]) for row in found], at=now)


def history_of(transaction: Transaction, charge: str, *, now: str) -> History:
    """Charge with all rows about it.

    Raises:
        UnknownNameError: There is no such charge.
    """
    found, about = find_history(transaction, charge, at=now)
    audits = rows.rows_of_kind(transaction, found.dataset, "evidence")
    return History(
        charge=found,
        rows=tuple(about),
        evidence=tuple(row for row in audits if row.body["of"] == charge),
        receipt=Signer.of(transaction).sign_receipt(unsigned(about[-1])),
    )


def queue_of(transaction: Transaction, *, now: str) -> Queue:
    """Work of officers, of all datasets."""
    shown = show_datasets(transaction, None, at=now)["datasets"]
    waiting, count = schema.find_reserved(transaction, most=_QUEUED)
    of: dict[str, list[str]] = {}
    for name, dataset in waiting.items():
        of.setdefault(dataset, []).append(name)
    found = {one.id: one for dataset, names in of.items() for one in charges_at(transaction, dataset, names, at=now)}
    reserved = [found[name] for name in waiting]
    violations = [
        row
        for one in shown
        for row in rows.rows_of_kind(transaction, one["name"], "evidence")
        if row.body["verdict"] == "violation"
    ]
    frozen = [
        {"dataset": one["name"], "grant": grant, "why": why}
        for one in shown
        for grant, why in _frozen(transaction, one).items()
    ]
    return Queue(
        expired=tuple(charge for charge in reserved if charge.expired),
        running=tuple(charge for charge in reserved if not charge.expired),
        left_out=count - len(reserved),
        frozen=tuple(frozen),
        violations=tuple(violations),
        clocks=tuple(one["clock"] for one in shown if one["clock"] is not None),
    )


def _frozen(transaction: Transaction, shown: Mapping[str, Any]) -> dict[str, list[Entry]]:
    """Rows that have frozen grants of a dataset, by grant."""
    frozen: dict[str, list[Entry]] = {
        grant["name"]: [] for grant in shown["grants"] if grant["balance"]["state"] == "frozen"
    }
    for row in rows.rows_of_kind(transaction, shown["name"], "freeze") if frozen else ():
        frozen[str(row.grant)].append(row)
    return frozen
