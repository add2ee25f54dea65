"""What pages show of the ledger beyond the JSON API: the course of spending, the newest charges, histories, queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from privcheck.ledger import rows
from privcheck.ledger.answers import Charge, Receipt
from privcheck.ledger.balances import SHARES
from privcheck.ledger.showing import charges_at, find_history, show_datasets
from privcheck.ledger.signing import Signer, unsigned
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry

_POINTS: Final = 80  # of a line
_QUEUED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How what counts as spent of a grant's cap has gone.

    Attributes:
        grant: Its name.
        points: Moments, in UTC, with the share of the cap from then on; at most 80, the first and the last among them.
    """

    grant: str
    points: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A charge with everything that is written about it.

    Attributes:
        charge: As it stands.
        rows: About it, in order.
        evidence: What audits found of it.
        receipt: Of its last row.
    """

    charge: Charge
    rows: tuple[Entry, ...]
    evidence: tuple[Entry, ...]
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What waits for an officer.

    Attributes:
        expired: Reservations of which nobody knows what became.
        running: Reservations that still run.
        frozen: Grants with their datasets, and why they are frozen.
        violations: What audits found, with the charges.
    """

    expired: tuple[Charge, ...]
    running: tuple[Charge, ...]
    frozen: tuple[dict[str, Any], ...]
    violations: tuple[Entry, ...]


def course_of(transaction: Transaction, grant: str) -> Course:
    """Returns how a grant was spent: a bounded number of look-ups, however long its history."""
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
    """Returns a dataset's charges as they stand, the newest first.

    Args:
        transaction: Reads.
        dataset: Whose charges.
        before: Only those that were opened before this row.
        most: How many.
        now: The time, in UTC.
    """
    found = transaction.all(
        "SELECT charge FROM entry WHERE dataset = ? AND kind = 'charge' AND seq < ? ORDER BY seq DESC LIMIT ?",
        (dataset, before if before is not None else 2**62, most),
    )
    return charges_at(transaction, dataset, [str(row[0]) for row in found], at=now)


def history_of(transaction: Transaction, charge: str, *, now: str) -> History:
    """Returns all that is written about a charge.

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
    """Returns what waits for an officer, of all datasets."""
    shown = show_datasets(transaction, None)["datasets"]
    grants = [(one["name"], grant) for one in shown for grant in one["grants"]]
    reserved = [
        charge
        for name, grant in grants
        if _is_reserved(grant)
        for charge in _reservations(transaction, name, grant["name"], now=now)
    ]
    violations = [
        row
        for one in shown
        for row in rows.rows_of_kind(transaction, one["name"], "evidence")
        if row.body["verdict"] == "violation"
    ]
    frozen = [
        {"dataset": name, "grant": grant["name"], "why": _why(transaction, name, grant["name"])}
        for name, grant in grants
        if grant["balance"]["state"] == "frozen"
    ]
    return Queue(
        expired=tuple(charge for charge in reserved if charge.expired),
        running=tuple(charge for charge in reserved if not charge.expired),
        frozen=tuple(frozen),
        violations=tuple(violations),
    )


def _is_reserved(grant: Mapping[str, Any]) -> bool:
    """Returns whether anything of a grant may be reserved, on any block; of a local one nothing is added up."""
    sums = [grant["balance"], *grant["balance"]["blocks"].values()]
    return bool(grant["recorded"]) or any(one["reserved"] != "0" for one in sums)


def _reservations(transaction: Transaction, dataset: str, grant: str, *, now: str) -> list[Charge]:
    """Returns the reservations of a grant that were neither committed nor released, the oldest first."""
    found = transaction.all(
        "SELECT charge FROM entry AS e WHERE budget = ? AND kind = 'charge' AND body LIKE ? AND NOT EXISTS ("
        "SELECT 1 FROM entry AS f WHERE f.charge = e.charge AND f.seq > e.seq) ORDER BY seq LIMIT ?",
        (grant, '%"state":"reserved"%', _QUEUED),
    )
    charges = charges_at(transaction, dataset, [str(row[0]) for row in found], at=now)
    return [charge for charge in charges if charge.state == "reserved"]


def _why(transaction: Transaction, dataset: str, grant: str) -> Sequence[Entry]:
    return [row for row in rows.rows_of_kind(transaction, dataset, "freeze") if row.grant == grant]
