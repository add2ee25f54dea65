"""Rows of the ledger: reading, checking their hash, and appending to a dataset's chain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
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
OPENED: Final = "INSERT INTO reservation (charge, dataset, expires) VALUES (?, ?, ?)"
_PAGE: Final = 1000
# Rows that rules are read from: few, beside one or two a charge. Whoever asks for them repeats these words, by which a
# store knows that the index `entry_rare` has them all; it has no row of a charge, and so costs a charge nothing.
RARE: Final = "kind NOT IN ('charge', 'commit', 'release')"


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
    """Append a row to a dataset's chain, and return it.

    Raises:
        LedgerError: The stored hash of the last row is wrong.
        StoreError: A constraint of the store refuses the row.
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
    _follow_reservation(transaction, entry)
    transaction.heads["dataset", dataset] = entry
    if grant is not None:
        transaction.heads["grant", grant] = entry
    if key is not None:
        transaction.keys[actor, key] = [(str(body["request"]), entry)]
    return entry


def seal(**fields: Any) -> Entry:
    """Row of the given fields, with its hash."""
    return _seal(canonical(fields["body"]), **fields)


def _seal(text: str, **fields: Any) -> Entry:
    """Row of the given fields, with the canonical form of its body passed in, so as not to compute it twice."""
    return Entry(**fields, hash=_hash(text, **{name: fields[name] for name in fields if name != "body"}))


def _hash(
    text: str, *, dataset: str, seq: int, kind: str, grant: str | None, charge: str | None, actor: str,
    key: str | None, held: int, lost: int, at: str, prev: str,
) -> str:  # fmt: skip
    """Hash of a row: of the previous hash, and of the row's fields in their order, as `canonical` writes them."""
    return digest(
        prev,
        f'{{"actor":{_plain(actor)},"at":{_plain(at)},"body":{text},"charge":{_plain(charge)},'
        f'"dataset":{_plain(dataset)},"grant":{_plain(grant)},"held":{_plain(held)},"key":{_plain(key)},'
        f'"kind":{_plain(kind)},"lost":{_plain(lost)},"seq":{_plain(seq)}}}',
    )


def _plain(value: str | int | None) -> str:
    """Canonical form of a scalar, in a third of the time of `canonical`."""
    if isinstance(value, str):
        return encode_basestring(value)
    return "null" if value is None else str(value) if type(value) is int else canonical(value)


def _follow_reservation(transaction: Transaction, entry: Entry) -> None:
    """Update the table of open reservations: `privcheck.ledger.schema`."""
    if entry.kind == "charge" and entry.body["state"] == "reserved":
        transaction.later(OPENED, (entry.charge, entry.dataset, entry.body["expires"]))
    elif entry.kind in {"commit", "release"}:
        transaction.later("DELETE FROM reservation WHERE charge = ?", (entry.charge,))


def last_of_dataset(transaction: Transaction, dataset: str) -> Entry | None:
    """Last row of a dataset's chain."""
    if (own := transaction.heads.get(("dataset", dataset))) is not None:
        return own
    return _read(transaction.one(f"{_SELECT} WHERE dataset = ? ORDER BY seq DESC LIMIT 1", (dataset,)))


def read_clock(transaction: Transaction, dataset: str, at: str) -> str:
    """Current time of a dataset: the machine's, or that of the last row where the machine's clock was set back.

    So a reservation or a policy that has ended, with a row to show for it, does not reopen.

    Args:
        transaction: The transaction; the dataset must be locked in it if a decision depends on the result.
        dataset: Name of the dataset.
        at: The machine's time, in UTC, as `exact.write_time` writes it.
    """
    if (own := transaction.heads.get(("dataset", dataset))) is not None:
        return max(at, own.at)
    # one column, unchecked: what is decided by it is written by `append`, which checks the row
    last = transaction.one("SELECT written_at FROM entry WHERE dataset = ? ORDER BY seq DESC LIMIT 1", (dataset,))
    return at if last is None else max(at, str(last[0]))


def last_of_grant(transaction: Transaction, grant: str, *, until: int | None = None) -> Entry | None:
    """Last row about a grant, which has its balance; or the last up to a place of its chain."""
    if until is not None:
        where = "WHERE budget = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
        return _read(transaction.one(f"{_SELECT} {where}", (grant, until)))
    if (own := transaction.heads.get(("grant", grant))) is not None:
        return own
    return _read(transaction.one(f"{_SELECT} WHERE budget = ? ORDER BY seq DESC LIMIT 1", (grant,)))


def newest_charge(transaction: Transaction, grant: str) -> Entry | None:
    """The row that opened a grant's newest charge."""
    where = "WHERE budget = ? AND kind = 'charge' ORDER BY seq DESC LIMIT 1"
    return _read(transaction.one(f"{_SELECT} {where}", (grant,)))


def last_of_charges(transaction: Transaction, dataset: str) -> Entry | None:
    """Last row of a dataset for which a receipt was given."""
    where = "WHERE dataset = ? AND charge IS NOT NULL ORDER BY seq DESC LIMIT 1"
    return _read(transaction.one(f"{_SELECT} {where}", (dataset,)))


def first_of_grant(transaction: Transaction, grant: str) -> Entry | None:
    """The row that made a grant."""
    return _read(transaction.one(f"{_SELECT} WHERE budget = ? ORDER BY seq LIMIT 1", (grant,)))


def find_requests(transaction: Transaction, actor: str, keys: Sequence[str]) -> None:
    """Look up earlier requests with an actor's keys, for `earlier_requests`, and lock the keys against concurrent use.

    A key belongs to its actor, whatever the request was about: the keys of charges and reservations are in their rows,
    all others in `answer`. Older stores may have one key for several grants.
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
    """Digests of the earlier requests with an actor's key, each with its row if it was a request to spend."""
    find_requests(transaction, actor, [key])
    return transaction.keys[actor, key]


def rows_of_charge(transaction: Transaction, charge: str) -> list[Entry]:
    """Rows about a charge, in order."""
    return rows_of_charges(transaction, [charge])[charge]


def rows_of_charges(transaction: Transaction, charges: Sequence[str]) -> dict[str, list[Entry]]:
    """Rows about each of several charges, in order; at most a page of charges."""
    found: dict[str, list[Entry]] = {charge: [] for charge in charges}
    if found:
        marks = ", ".join("?" * len(found))
        for row in transaction.all(f"{_SELECT} WHERE charge IN ({marks}) ORDER BY charge, seq", list(found)):
            found[str(row[4])].append(_sure(row))
    return found


def find_hash(transaction: Transaction, value: str) -> Entry | None:
    """Row with a hash."""
    return _read(transaction.one(f"{_SELECT} WHERE hash = ?", (value,)))


def pages_of_dataset(transaction: Transaction, dataset: str, *, after: int = 0) -> Iterator[list[Row]]:
    """Iterate over the rows of a dataset's chain as stored, in order, one page at a time."""
    while True:
        page = transaction.all(f"{_SELECT} WHERE dataset = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}", (dataset, after))
        if page:
            yield page
        if len(page) < _PAGE:
            return
        after = int(page[-1][1] or 0)


def rows_of_dataset(transaction: Transaction, dataset: str, *, after: int = 0) -> Iterator[Entry]:
    """Iterate over the rows of a dataset's chain, in order, without checking their hashes."""
    for page in pages_of_dataset(transaction, dataset, after=after):
        for row in page:
            yield parse_row(row)


def row_at(transaction: Transaction, dataset: str, seq: int) -> Entry | None:
    """Row at a position of a dataset's chain."""
    return _read(transaction.one(f"{_SELECT} WHERE dataset = ? AND seq = ?", (dataset, seq)))


def find_begun(transaction: Transaction, page: Sequence[Row]) -> dict[str, int]:
    """Position of the first row about each charge that a page of rows mentions."""
    names = list(dict.fromkeys(str(row[4]) for row in page if row[4] is not None))
    if not names:
        return {}
    marks = ", ".join("?" * len(names))
    found = transaction.all(f"SELECT charge, MIN(seq) FROM entry WHERE charge IN ({marks}) GROUP BY charge", names)  # noqa: S608 - marks
    return {str(charge): int(seq or 0) for charge, seq in found}


def rows_of_kind(transaction: Transaction, dataset: str, kind: str) -> list[Entry]:
    """Rows of one rare kind of a dataset, in order; the kind is not charge, commit or release."""
    assert kind not in {"charge", "commit", "release"}
    return [_sure(row) for row in transaction.all(f"{_SELECT} WHERE dataset = ? AND kind = ? AND {RARE} ORDER BY seq",
                                                  (dataset, kind))]  # fmt: skip


def charges_of(transaction: Transaction, dataset: str, *, after: int, most: int) -> list[str]:
    """Up to `most` names of a dataset's charges, in order, after row `after`."""
    found = transaction.all(
        "SELECT charge FROM entry WHERE dataset = ? AND kind = 'charge' AND seq > ? ORDER BY seq LIMIT ?",
        (dataset, after, most),
    )
    return [str(row[0]) for row in found]


def is_charged(transaction: Transaction, dataset: str) -> bool:
    """Whether a dataset was ever charged."""
    return transaction.one("SELECT 1 FROM entry WHERE dataset = ? AND kind = 'charge' LIMIT 1", (dataset,)) is not None


def datasets(transaction: Transaction) -> list[str]:
    """Names of all datasets."""
    found = transaction.all("SELECT name FROM dataset WHERE name <> ? ORDER BY name", (REGISTRY,))
    return [str(row[0]) for row in found]


def grants(transaction: Transaction, dataset: str | None = None) -> list[str]:
    """Names of all grants, or of a dataset's."""
    if dataset is None:
        return [str(row[0]) for row in transaction.all("SELECT name FROM budget ORDER BY name")]
    return [str(r[0]) for r in transaction.all("SELECT name FROM budget WHERE dataset = ? ORDER BY name", (dataset,))]


def parse_row(row: Row) -> Entry:
    """Parse a row as stored, without checking its hash.

    Raises:
        LedgerError: The body is not JSON.
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


def is_sealed(row: Row) -> bool:
    """Whether a stored row has the hash of its fields."""
    dataset, seq, kind, grant, charge, actor, key, held, lost, body, at, prev, told = row
    fields: Any = {
        "dataset": dataset, "seq": seq, "kind": kind, "grant": grant, "charge": charge, "actor": actor, "key": key,
        "held": held, "lost": lost, "at": at, "prev": prev,
    }  # fmt: skip
    try:
        return _hash(str(body), **fields) == told
    except (TypeError, AttributeError):  # a column has what none of ours has
        return False


def _read(row: Row | None) -> Entry | None:
    return None if row is None else _sure(row)


def _sure(row: Row) -> Entry:
    entry = parse_row(row)
    if not is_sealed(row):
        message = f"{entry.dataset}, row {entry.seq}: it was changed after it was written: its hash does not match"
        raise LedgerError(message, line=entry.seq)
    return entry
