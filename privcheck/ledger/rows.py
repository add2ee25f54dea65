"""Rows of the ledger: read, checked against their hash, and appended to a dataset's chain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from privcheck.errors import LedgerError
from privcheck.ledger.exact import canonical, digest
from privcheck.ledger.store import Row, Transaction
from privcheck.ledger.values import Entry

REGISTRY: Final = "(registry)"  # the chain of the store itself, under a name that no dataset can have
_COLUMNS: Final = "dataset, seq, kind, budget, charge, actor, request_key, held, lost, body, written_at, prev, hash"
_SELECT: Final = f"SELECT {_COLUMNS} FROM entry"  # noqa: S608 - a constant
# in the same columns: the digest of the request in place of the body
_ANSWERED: Final = "SELECT '', 0, 'answer', NULL, NULL, actor, request_key, 0, 0, request, '', '', '' FROM answer"
_PAGE: Final = 1000


def append(
    transaction: Transaction,
    *,
    dataset: str,
    kind: str,
    actor: str,
    body: dict[str, Any],
    at: str,
    grant: str | None = None,
    charge: str | None = None,
    key: str | None = None,
    shares: tuple[int, int] = (0, 0),
) -> Entry:
    """Appends a row to a dataset's chain; returns it.

    Raises:
        LedgerError: The last row does not have the hash that it says.
        StoreError: A guard of the store refuses it.
    """
    last = last_of_dataset(transaction, dataset)
    text = canonical(body)
    entry = _seal(
        text,
        dataset=dataset,
        seq=1 if last is None else last.seq + 1,
        kind=kind,
        grant=grant,
        charge=charge,
        actor=actor,
        key=key,
        held=shares[0],
        lost=shares[1],
        body=body,
        at=at if last is None else max(at, last.at),
        prev="" if last is None else last.hash,
    )
    fields = (
        entry.dataset, entry.seq, entry.kind, entry.grant, entry.charge, entry.actor, entry.key, entry.held,
        entry.lost, text, entry.at, entry.prev, entry.hash,
    )  # fmt: skip
    marks = ", ".join("?" * len(fields))
    transaction.later(f"INSERT INTO entry ({_COLUMNS}) VALUES ({marks})", fields)  # noqa: S608 - marks are constants
    transaction.heads["dataset", dataset] = entry
    if grant is not None:
        transaction.heads["grant", grant] = entry
    if key is not None:
        transaction.keys[actor, key] = [(str(body["request"]), entry)]
    return entry


def seal(**fields: Any) -> Entry:
    """Returns the row of its fields, with its hash."""
    return _seal(canonical(fields["body"]), **fields)


def _seal(text: str, **fields: Any) -> Entry:
    """Returns the row, given its body's canonical form, which is not made twice: fields are hashed in their order."""
    before = canonical({n: fields[n] for n in fields if n < "body"})
    after = canonical({n: fields[n] for n in fields if n > "body" and n != "prev"})
    return Entry(**fields, hash=digest(fields["prev"], f'{before[:-1]},"body":{text},{after[1:]}'))


def last_of_dataset(transaction: Transaction, dataset: str) -> Entry | None:
    """Returns the head of a dataset's chain."""
    if (own := transaction.heads.get(("dataset", dataset))) is not None:
        return own
    return _read(transaction.one(f"{_SELECT} WHERE dataset = ? ORDER BY seq DESC LIMIT 1", (dataset,)))


def read_clock(transaction: Transaction, dataset: str, at: str) -> str:
    """Returns what time it is for a dataset: where a machine's clock was set back, that of its last row.

    What has ended with a row to show for it, a reservation or a policy, is not open again.

    Args:
        transaction: In which the dataset is locked, where something is decided.
        dataset: Whose rows count.
        at: The machine's time, in UTC, as `granting.write_time` writes it.
    """
    if (own := transaction.heads.get(("dataset", dataset))) is not None:
        return max(at, own.at)
    # one column, unchecked: what is decided by it is written by `append`, which checks the row
    last = transaction.one("SELECT written_at FROM entry WHERE dataset = ? ORDER BY seq DESC LIMIT 1", (dataset,))
    return at if last is None else max(at, str(last[0]))


def last_of_grant(transaction: Transaction, grant: str) -> Entry | None:
    """Returns the last row about a grant, which has its balance."""
    if (own := transaction.heads.get(("grant", grant))) is not None:
        return own
    return _read(transaction.one(f"{_SELECT} WHERE budget = ? ORDER BY seq DESC LIMIT 1", (grant,)))


def last_of_charges(transaction: Transaction, dataset: str) -> Entry | None:
    """Returns the last row of a dataset that a receipt was given for."""
    where = "WHERE dataset = ? AND charge IS NOT NULL ORDER BY seq DESC LIMIT 1"
    return _read(transaction.one(f"{_SELECT} {where}", (dataset,)))


def first_of_grant(transaction: Transaction, grant: str) -> Entry | None:
    """Returns the row that made a grant."""
    return _read(transaction.one(f"{_SELECT} WHERE budget = ? ORDER BY seq LIMIT 1", (grant,)))


def find_requests(transaction: Transaction, actor: str, keys: Sequence[str]) -> None:
    """Looks up the earlier requests with an actor's keys, for `earlier_requests`; keeps others from using the keys.

    A key is its actor's, whatever the request was about: of charges and reservations it is in their rows, of everything
    else in `answer`. Older stores may have one for several grants.
    """
    new = [key for key in dict.fromkeys(keys) if (actor, key) not in transaction.keys]
    if not new:
        return
    transaction.claim("key", [f"{actor} {key}" for key in new])
    transaction.keys.update({(actor, key): [] for key in new})
    where = f"WHERE actor = ? AND request_key IN ({', '.join('?' * len(new))})"
    for row in transaction.all(f"{_SELECT} {where} UNION ALL {_ANSWERED} {where}", (actor, *new, actor, *new)):
        entry = None if row[2] == "answer" else _sure(row)
        request = str(row[9]) if entry is None else str(entry.body["request"])
        transaction.keys[actor, str(row[6])].append((request, entry))


def earlier_requests(transaction: Transaction, actor: str, key: str) -> list[tuple[str, Entry | None]]:
    """Returns the digests of the requests that had an actor's key, each with its row where it was one to spend."""
    find_requests(transaction, actor, [key])
    return transaction.keys[actor, key]


def rows_of_charge(transaction: Transaction, charge: str) -> list[Entry]:
    """Returns the rows about a charge, in order."""
    return [_sure(row) for row in transaction.all(f"{_SELECT} WHERE charge = ? ORDER BY seq", (charge,))]


def find_hash(transaction: Transaction, value: str) -> Entry | None:
    """Returns the row with a hash."""
    return _read(transaction.one(f"{_SELECT} WHERE hash = ?", (value,)))


def rows_of_dataset(transaction: Transaction, dataset: str, *, after: int = 0) -> Iterator[Entry]:
    """Yields the rows of a dataset's chain, in order, unchecked."""
    while True:
        page = transaction.all(f"{_SELECT} WHERE dataset = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}", (dataset, after))
        for row in page:
            yield parse_row(row)
        if len(page) < _PAGE:
            return
        after = int(page[-1][1] or 0)


def rows_of_kind(transaction: Transaction, dataset: str, kind: str) -> list[Entry]:
    """Returns the rows of one kind of a dataset, in order."""
    return [_sure(row) for row in transaction.all(f"{_SELECT} WHERE dataset = ? AND kind = ? ORDER BY seq",
                                                  (dataset, kind))]  # fmt: skip


def charges_of(transaction: Transaction, dataset: str, *, after: int, most: int) -> list[str]:
    """Returns the names of a dataset's charges, in order."""
    found = transaction.all(
        "SELECT charge FROM entry WHERE dataset = ? AND kind = 'charge' AND seq > ? ORDER BY seq LIMIT ?",
        (dataset, after, most),
    )
    return [str(row[0]) for row in found]


def is_charged(transaction: Transaction, dataset: str) -> bool:
    """Returns whether anything was ever charged to a dataset."""
    return transaction.one("SELECT 1 FROM entry WHERE dataset = ? AND kind = 'charge' LIMIT 1", (dataset,)) is not None


def datasets(transaction: Transaction) -> list[str]:
    """Returns the names of all datasets."""
    found = transaction.all("SELECT name FROM dataset WHERE name <> ? ORDER BY name", (REGISTRY,))
    return [str(row[0]) for row in found]


def grants(transaction: Transaction, dataset: str | None = None) -> list[str]:
    """Returns the names of all grants, or of a dataset's."""
    if dataset is None:
        return [str(row[0]) for row in transaction.all("SELECT name FROM budget ORDER BY name")]
    return [str(r[0]) for r in transaction.all("SELECT name FROM budget WHERE dataset = ? ORDER BY name", (dataset,))]


def parse_row(row: Row) -> Entry:
    """Returns a row as it is, whether or not its hash is right.

    Raises:
        LedgerError: It is no row of a ledger.
    """
    names = (
        "dataset", "seq", "kind", "grant", "charge", "actor", "key", "held", "lost", "body", "at", "prev", "hash",
    )  # fmt: skip
    fields: dict[str, Any] = dict(zip(names, row, strict=True))
    try:
        fields["body"] = json.loads(fields["body"])
    except (ValueError, TypeError):
        raise LedgerError(f"{row[0]}, row {row[1]}: not a row of a ledger") from None
    return Entry(**fields)


def is_sealed(entry: Entry) -> bool:
    """Returns whether a row has the hash of its fields."""
    fields = {name: getattr(entry, name) for name in entry.__slots__ if name != "hash"}
    return seal(**fields).hash == entry.hash


def _read(row: Row | None) -> Entry | None:
    return None if row is None else _sure(row)


def _sure(row: Row) -> Entry:
    entry = parse_row(row)
    if not is_sealed(entry):
        message = f"{entry.dataset}, row {entry.seq}: it was changed after it was written: its hash does not fit"
        raise LedgerError(message, line=entry.seq)
    return entry
