"""The store's tables, as numbered steps that only go forward; one place for every kind of store.

The SQL is what SQLite and PostgreSQL share, with `?` for parameters. `entry` is the ledger: rows are only added, a
change of state is a new row, and two guards hold even if a lock were forgotten: `PRIMARY KEY (dataset, seq)`, so that
two writers cannot both follow the same row, and the CHECKs, so that no row can say that more than a cap was spent.
"""

from __future__ import annotations

from typing import Final

from privcheck.errors import StoreError
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
)
MARKED: Final = 2  # the step from which a store has a mark


def migrate(transaction: Transaction, *, version: int) -> None:
    """Brings a store's tables to the newest step.

    Args:
        transaction: To write in.
        version: The step that the store is at; 0 is an empty one.

    Raises:
        StoreError: The store is newer than this program.
    """
    if version > len(MIGRATIONS):
        message = f"the ledger has tables of version {version}, this program knows {len(MIGRATIONS)}; update privcheck"
        raise StoreError(message, read_only=True)
    for step in MIGRATIONS[version:]:
        for statement in step:
            transaction.run(statement)
    if version < len(MIGRATIONS):
        transaction.run("DELETE FROM meta WHERE name = 'version'")
        transaction.run("INSERT INTO meta (name, value) VALUES ('version', ?)", (str(len(MIGRATIONS)),))
