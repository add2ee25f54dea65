"""The store's tables, as numbered steps that only go forward; one place for every kind of store.

The SQL is what SQLite and PostgreSQL share, with `?` for parameters. `entry` is the ledger: rows are only added, a
change of state is a new row, and two guards hold even if a lock were forgotten: `PRIMARY KEY (dataset, seq)`, so that
two writers cannot both follow the same row, and the CHECKs, so that no row can say that more than a cap was spent.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Final

from privcheck.errors import StoreError
from privcheck.ledger import projections, registry
from privcheck.ledger.exact import write_time
from privcheck.ledger.rows import RARE
from privcheck.ledger.store import Transaction

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
        # what is read in place of whole chains: `privcheck.ledger.projections`
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
    """Brings a store's tables to the newest step.

    That says nothing about which copy it is: what was in doubt stays so. A store from before registries gets one, whose
    first row says what there is now; a new one gets it with its first officer.

    Args:
        transaction: To write in, which keeps out whoever else would do so.
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
        projections.rebuild(transaction)
    if version < VERSION:
        transaction.run("DELETE FROM meta WHERE name = 'version'")
        transaction.run("INSERT INTO meta (name, value) VALUES ('version', ?)", (str(VERSION),))


def read_version(transaction: Transaction) -> int | None:
    """The step that a store's tables are at; None where they do not say.

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
        StoreError: They are.
    """
    if version > VERSION:
        message = f"the ledger has tables of version {version}, this program knows {VERSION}; update privcheck"
        raise StoreError(message, read_only=True)
