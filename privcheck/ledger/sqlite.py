"""The store without a server: one SQLite file, written through to the disk."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from privcheck.errors import StoreError
from privcheck.hiding import hide_passwords
from privcheck.ledger.marks import add_heads, explain_doubt, find_heads, find_lost, read_heads, write_heads
from privcheck.ledger.schema import MARKED, migrate
from privcheck.ledger.store import Field, Row, Waiting
from privcheck.ledger.values import Entry

_WAIT: Final = 30.0  # seconds for another writer to finish
_PAUSE: Final = 1.0  # seconds between two times that heads are kept beside the file
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_GUARDS: Final = tuple(
    f"CREATE TRIGGER entry_no_{verb.lower()} BEFORE {verb} ON entry "
    "BEGIN SELECT RAISE(ABORT, 'rows of the ledger are only added'); END"
    for verb in ("UPDATE", "DELETE")
)


class SqliteTransaction:
    """One transaction on a SQLite connection."""

    __slots__ = ("_connection", "_waiting", "heads", "keys")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waiting = Waiting(connection.executemany)
        self.heads: dict[tuple[str, str], Entry] = {}
        self.keys: dict[tuple[str, str, str], Entry | None] = {}

    def run(self, statement: str, parameters: Sequence[Field] = ()) -> None:
        """Runs a statement."""
        self.flush()
        self._connection.execute(statement, parameters)

    def later(self, statement: str, parameters: Sequence[Field]) -> None:
        """Runs a statement before the next one that is another, or when the transaction ends."""
        self._waiting.add(statement, parameters)

    def flush(self) -> None:
        """Runs what waits."""
        self._waiting.flush()

    def one(self, statement: str, parameters: Sequence[Field] = ()) -> Row | None:
        """Returns the first row of an answer, None where there is none."""
        self.flush()
        row: Row | None = self._connection.execute(statement, parameters).fetchone()
        return row

    def all(self, statement: str, parameters: Sequence[Field] = ()) -> list[Row]:
        """Returns the rows of an answer."""
        self.flush()
        return self._connection.execute(statement, parameters).fetchall()

    def lock(self, dataset: str) -> None:
        """Does nothing: a SQLite file has one writer at a time."""


class SqliteStore:
    """A ledger in a SQLite file: write-ahead log, every commit on the disk before it is acknowledged.

    Args:
        path: The file.
        create: Whether it is to be made; it must not be there yet. Otherwise it has to be there.

    Attributes:
        url: The file, as `sqlite:///path`.
        read_only: Why nothing can be written any more; empty where it can.
        doubt: Why it may be an older copy of itself, which is not written until somebody has compared it; else empty.

    Raises:
        StoreError: It is there and should not be, is not there and should be, or is no ledger.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.url = f"sqlite:///{path}"
        self.read_only = self.doubt = ""
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        weakref.finalize(self, _close, self._opened, os.getpid())  # who drops a store unclosed leaves no file open
        self._heads: dict[str, tuple[int, str]] = {}  # that are not kept beside the file yet
        self._due = 0.0
        if create:
            self._create()
        elif not path.is_file():
            shown = hide_passwords(str(path))  # it may have been meant as PostgreSQL's connection string
            raise StoreError(f"{shown}: no ledger there; expected one made by: privcheck ledger init --store {shown}")
        else:
            self._bring_up_to_date()

    @contextmanager
    def write(self) -> Iterator[SqliteTransaction]:
        """Yields a transaction that may write."""
        if reason := self.read_only or self.doubt:
            raise StoreError(f"{self._path}: read-only: {reason}", read_only=True)
        with self._translating():
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                transaction = SqliteTransaction(connection)
                yield transaction
                transaction.flush()
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # where the disk is full, SQLite has rolled back already
                    connection.execute("ROLLBACK")
                raise
        with self._guard:
            for (kind, name), row in transaction.heads.items():
                if kind == "dataset":
                    self._heads[name] = max((row.seq, row.hash), self._heads.get(name, (0, "")))
            if time.monotonic() >= self._due:
                self._keep_heads()

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        """Yields a transaction that sees one state."""
        with self._translating():
            connection = self._connect()
            connection.execute("BEGIN")
            try:
                yield SqliteTransaction(connection)
            finally:
                connection.execute("ROLLBACK")

    def stop_writing(self, reason: str) -> None:
        """Makes the store read-only from now on."""
        self.read_only = reason

    def compare(self) -> dict[str, bool]:
        """Returns by dataset whether the newest row that is known to have been written is there."""
        heads = read_heads(self._path) or {}
        with self.read() as transaction:
            lost = find_lost(transaction, heads)
        return {name: name not in lost for name in heads}

    def accept(self) -> None:
        """Keeps the file's own heads beside it; ends the doubt."""
        with self.read() as transaction:
            write_heads(self._path, find_heads(transaction))
        self.doubt = ""

    def close(self) -> None:
        """Closes the connections of all threads."""
        with self._guard:
            self._keep_heads()
            _close(self._opened, os.getpid())
            self._local = threading.local()

    def _keep_heads(self) -> None:
        if self._heads:
            heads, self._heads = self._heads, {}
            add_heads(self._path, heads)
            self._due = time.monotonic() + _PAUSE

    def _create(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            message = f"{self._path}: the file already exists; use that ledger, or give a new path"
            raise StoreError(message) from None
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be made: {error.strerror}") from error
        try:
            with self.write() as transaction:
                migrate(transaction, version=0)
                for statement in _GUARDS:
                    transaction.run(statement)
        except BaseException:
            self.close()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            raise

    def _bring_up_to_date(self) -> None:
        with self.read() as transaction:
            table = transaction.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'")
            row = None if table is None else transaction.one("SELECT value FROM meta WHERE name = 'version'")
        if row is None:
            message = f"{self._path}: a database, but no ledger; expected one made by: privcheck ledger init"
            raise StoreError(message)
        version = int(row[0] or 0)
        with self.write() as transaction:
            migrate(transaction, version=version)
        if version < MARKED:
            self.accept()
        with self.read() as transaction:
            self.doubt = explain_doubt(transaction, read_heads(self._path))

    def _connect(self) -> sqlite3.Connection:
        """Returns this thread's connection; a process that was forked gets one of its own."""
        known: tuple[int, sqlite3.Connection] | None = getattr(self._local, "connection", None)
        if known is not None and known[0] == os.getpid():
            return known[1]
        connection = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:  # it is no database
            connection.close()
            raise
        with self._guard:
            self._opened.append(connection)
        self._local.connection = (os.getpid(), connection)
        return connection

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Tells what SQLite says as an error of ours; what does not go away makes the store read-only."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _BUSY:
                message = f"{self._path}: another writer is at it; ask again with the same key"
                raise StoreError(message) from error
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY):
                self.stop_writing(str(error))
                raise StoreError(f"{self._path}: read-only from now on: {error}", read_only=True) from error
            raise StoreError(f"{self._path}: {error}") from error


def _close(connections: list[sqlite3.Connection], process: int) -> None:
    """Closes connections, but for those that a process that was forked has from its parent."""
    if os.getpid() == process:
        for connection in connections:
            with suppress(sqlite3.Error):
                connection.close()
        connections.clear()
