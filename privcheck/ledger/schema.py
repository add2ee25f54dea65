"""Tables of the store, as numbered steps that only go forward, and projections that are read in place of whole chains.

The SQL is the subset that SQLite and PostgreSQL share, with `?` for parameters. `entry` is the ledger: rows are only
added, a change of state is a new row, and two constraints hold even if a lock were forgotten: `PRIMARY KEY
(dataset, seq)`, so that two writers cannot both follow the same row, and the CHECKs, so that no row can record more
than the cap as spent.

The projections are an index and three tables (`compare` lists them). Nothing is decided from them alone: they have the
positions of rows, and each row from which a rule is decided is checked against its hash. The danger is a row that a
projection lacks. So the database maintains the index itself, the tables are written in the transaction of their row,
and `verify` walks every chain without them and compares.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from privcheck.errors import StoreError
from privcheck.ledger import registry, rows
from privcheck.ledger.exact import write_time
from privcheck.ledger.rows import RARE
from privcheck.ledger.store import Row, Transaction


def find_reserved(transaction: Transaction, *, most: int) -> tuple[dict[str, str], int]:
    """Up to `most` open reservations with their datasets, by the time they end, and the number of all."""
    found = transaction.all("SELECT charge, dataset FROM reservation ORDER BY expires, charge LIMIT ?", (most,))
    count = transaction.one("SELECT COUNT(*) FROM reservation")
    assert count is not None
    return {str(charge): str(dataset) for charge, dataset in found}, int(count[0] or 0)


def rebuild(transaction: Transaction) -> None:
    """Rewrite the table of reservations from the rows, with all datasets locked."""
    names = sorted(rows.datasets(transaction))
    for dataset in names:
        transaction.lock(dataset)
    transaction.run("DELETE FROM reservation")
    for dataset in names:
        for charge, expires in _reserved(transaction, dataset):
            transaction.later(rows.OPENED, (charge, dataset, expires))


def compare(
    transaction: Transaction, dataset: str, *, rare: Mapping[str, Collection[int]], reserved: Mapping[str, str]
) -> list[str]:
    """Differences between a chain and its rows in the index and in the table of reservations.

    | projection | it has | consequence of a missing row |
    | --- | --- | --- |
    | `entry_rare`, an index | where rows other than charge, commit and release are: policies, grants, … | is not seen |
    | `reservation` | reservations that were neither committed nor released | is not shown to officers |
    | `budget` | every grant with its dataset | is not listed |
    | `dataset` | every dataset | is not listed |

    They do not contain the spending: a balance is in the last row about its grant, which counts reservations, whether
    or not a table lists them. A missing freeze is harmless (it is in the balance too), but a grant that is not seen is
    in no sum of the policy.

    Args:
        transaction: A read transaction.
        dataset: Name of the dataset.
        rare: Positions of its rows other than charge, commit and release, by kind.
        reserved: Expiry of its open reservations, by charge.
    """
    statement = f"SELECT kind, seq FROM entry WHERE dataset = ? AND {rows.RARE} ORDER BY kind, seq"  # noqa: S608 - a constant
    indexed = set(transaction.all(statement, (dataset,)))
    walked: set[Row] = {(kind, seq) for kind, places in rare.items() for seq in places}
    problems = [
        f"{dataset}, row {seq}: the index entry_rare lacks it, or has it under another kind: rebuild it (REINDEX)"
        for _, seq in sorted(walked ^ indexed, key=str)
    ]
    kept = transaction.all("SELECT charge, expires FROM reservation WHERE dataset = ?", (dataset,))
    listed = {str(charge): expires for charge, expires in kept}
    for charge in sorted({*listed, *reserved}):
        if listed.get(charge) != reserved.get(charge):
            there, is_open = charge in listed, charge in reserved
            wrong = "lacks it" if not there else "has another end time" if is_open else "lists it, but it is not open"
            problems.append(
                f"{dataset}, charge {charge}: the table of reservations {wrong}: rebuild it (verify --rebuild)"
            )
    return problems


def compare_names(transaction: Transaction, grants: Mapping[str, str]) -> list[str]:
    """Differences between the tables of datasets and grants and the rows.

    Args:
        transaction: A read transaction.
        grants: The dataset of every grant that a row of a chain has made.
    """
    named = set(rows.datasets(transaction))
    chains = {str(row[0]) for row in transaction.all("SELECT DISTINCT dataset FROM entry")}
    problems = [
        f"{name}: it has rows, but the table of datasets lacks it" for name in sorted(chains - named - {rows.REGISTRY})
    ]
    listed = {str(name): str(of) for name, of in transaction.all("SELECT name, dataset FROM budget")}
    for name in sorted({*listed, *grants}):
        if name not in grants:
            problems.append(f"grant {name}: the row that made it is missing")
        elif name not in listed:
            problems.append(f"grant {name}: the table of grants lacks it")
        elif listed[name] != grants[name]:
            problems.append(f"grant {name}: it belongs to {grants[name]}, but the table of grants says {listed[name]}")
    return problems


def _reserved(transaction: Transaction, dataset: str) -> Iterator[tuple[str, str]]:
    """Iterate over a dataset's open reservations with their expiry, from its rows, without checking the rows."""
    begun = (
        "SELECT seq, charge, body FROM entry AS e WHERE dataset = ? AND kind = 'charge' AND seq > ? AND body LIKE ? "
        "AND NOT EXISTS (SELECT 1 FROM entry AS f WHERE f.charge = e.charge AND f.seq > e.seq) ORDER BY seq LIMIT 1000"
    )
    after = 0
    while page := transaction.all(begun, (dataset, after, '%"state":"reserved"%')):
        after = int(page[-1][0] or 0)
        for _, charge, text in page:
            with suppress(ValueError, TypeError, KeyError):  # no row of a ledger, which a migration does not judge
                body = json.loads(str(text))
                if body["state"] == "reserved":
                    yield str(charge), str(body["expires"])


MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE dataset (name TEXT PRIMARY KEY)",
        "CREATE TABLE budget (name TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES dataset (name))",
        """CREATE TABLE entry (
            dataset TEXT NOT NULL REFERENCES dataset (name),
            seq BIGINT NOT NULL CHECK (seq >= 1),
            kind TEXT NOT NULL,
            budget TEXT REFERENCES budget (name),
            charge TEXT,
            actor TEXT NOT NULL,
            request_key TEXT,
            held BIGINT NOT NULL CHECK (held >= 0 AND held <= 4611686018427387904),
            lost BIGINT NOT NULL CHECK (lost >= 0 AND lost <= 4611686018427387904),
            body TEXT NOT NULL,
            written_at TEXT NOT NULL,
            prev TEXT NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (dataset, seq)
        )""",
        "CREATE UNIQUE INDEX entry_hash ON entry (hash)",
        "CREATE UNIQUE INDEX entry_key ON entry (budget, actor, request_key)",
        "CREATE INDEX entry_budget ON entry (budget, seq)",
        "CREATE INDEX entry_charge ON entry (charge, seq)",
        """CREATE TABLE token (
            hash TEXT PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            role TEXT NOT NULL,
            grants TEXT NOT NULL,
            expires TEXT,
            revoked TEXT,
            made_by TEXT NOT NULL,
            made_at TEXT NOT NULL
        )""",
    ),
    ("INSERT INTO meta (name, value) VALUES ('place', '')",),  # where it is: `privcheck.ledger.marks`
    (
        """CREATE TABLE answer (
            actor TEXT NOT NULL,
            request_key TEXT NOT NULL,
            request TEXT NOT NULL,
            body TEXT NOT NULL,
            written_at TEXT NOT NULL,
            PRIMARY KEY (actor, request_key)
        )""",
        "CREATE TABLE claim (name TEXT PRIMARY KEY, about TEXT NOT NULL)",
    ),
    (
        # a key is its actor's, whatever the grant; older stores may have one for several grants
        "DROP INDEX entry_key",
        "CREATE UNIQUE INDEX entry_key ON entry (actor, request_key, budget)",
        # which copy of itself it is: `privcheck.ledger.marks`
        "INSERT INTO meta (name, value) VALUES ('turn', ''), ('forgone', ''), ('store', ''), ('epoch', '')",
        "INSERT INTO meta (name, value) VALUES ('lost', '[]')",  # datasets on which nothing more is granted
    ),
    (
        # the chain of names and tokens: `privcheck.ledger.registry`, which writes its first row
        "INSERT INTO dataset (name) VALUES ('(registry)')",
        # complete subtrees of the datasets' Merkle trees: `privcheck.ledger.trees`
        """CREATE TABLE tree (
            dataset TEXT NOT NULL REFERENCES dataset (name),
            level BIGINT NOT NULL,
            place BIGINT NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (dataset, level, place)
        )""",
    ),
    (
        # what is read in place of whole chains: `privcheck.ledger.schema`
        f"CREATE INDEX entry_rare ON entry (dataset, kind, seq) WHERE {RARE}",
        "CREATE TABLE reservation (charge TEXT PRIMARY KEY, dataset TEXT NOT NULL, expires TEXT NOT NULL)",
        "CREATE INDEX reservation_expires ON reservation (expires, charge)",
    ),
)
VERSION: Final = len(MIGRATIONS)
_NUMBERED: Final = 4  # the step from which a store has a number and an epoch
_REGISTERED: Final = 5  # … and a registry
_RESERVED: Final = 6  # … a table of what is reserved


def migrate(transaction: Transaction, *, version: int) -> None:
    """Bring a store's tables to the newest step.

    A migration does not change which copy it is: a store in doubt stays in doubt. A store from before registries gets
    one, with a first row of the present names and tokens; a new store gets it with its first officer.

    Args:
        transaction: A write transaction, which locks out other migrations.
        version: The step that the store is at; 0 is an empty one.

    Raises:
        StoreError: The store is newer than this program.
    """
    check_version(version)
    for step in MIGRATIONS[version:]:
        for statement in step:
            transaction.run(statement)
    if version < _NUMBERED:
        for name in ("store", "epoch"):
            transaction.run("UPDATE meta SET value = ? WHERE name = ?", (secrets.token_hex(16), name))
    if 0 < version < _REGISTERED and transaction.one("SELECT 1 FROM meta WHERE name = 'key'") is not None:
        registry.begin(transaction, actor="migration", at=write_time(datetime.now(UTC)))
    if version < _RESERVED:
        rebuild(transaction)
    if version < VERSION:
        transaction.run("DELETE FROM meta WHERE name = 'version'")
        transaction.run("INSERT INTO meta (name, value) VALUES ('version', ?)", (str(VERSION),))


def read_version(transaction: Transaction) -> int | None:
    """Step that a store's tables are at; None if it is not recorded.

    Raises:
        StoreError: The store is newer than this program.
    """
    row = transaction.one("SELECT value FROM meta WHERE name = 'version'")
    if row is None:
        return None
    check_version(int(row[0] or 0))
    return int(row[0] or 0)


def check_version(version: int) -> None:
    """Refuse tables of a newer program.

    Raises:
        StoreError: The tables are newer than this program.
    """
    if version > VERSION:
        message = (
            f"the ledger has tables of version {version}, but this program knows versions up to {VERSION}; update "
            "privcheck"
        )
        raise StoreError(message, read_only=True)
