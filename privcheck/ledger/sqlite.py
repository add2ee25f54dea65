"""Store without a server: one SQLite file, written through to the disk."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from privcheck.errors import StoreError, hide_passwords
from privcheck.ledger.marks import (
    COMPARE,
    Identity,
    Marks,
    Memory,
    accuse,
    advance_marks,
    agree,
    explain_lost,
    explain_marks,
    find_heads,
    find_lost,
    read_marks,
    replace_marks,
)
from privcheck.ledger.schema import VERSION, migrate, read_version
from privcheck.ledger.store import Field, Row, Waiting
from privcheck.ledger.values import Entry

_WAIT: Final = 30.0  # seconds for another writer to finish
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
BACKUP: Final = 0x70766362  # what the header of a backup's file says: `privcheck.ledger.backups`
_PLACE: Final = 68  # of those four bytes
_GUARDS: Final = tuple(
    f"CREATE TRIGGER entry_no_{verb.lower()} BEFORE {verb} ON entry "
    "BEGIN SELECT RAISE(ABORT, 'rows of the ledger are only added'); END"
    for verb in ("UPDATE", "DELETE")
)


class SqliteTransaction:
    """One transaction on a SQLite connection."""

    __slots__ = ("_connection", "_waiting", "heads", "holders", "keys")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waiting = Waiting(connection.executemany)
        self.heads: dict[tuple[str, str], Entry] = {}
        self.keys: dict[tuple[str, str], list[tuple[str, Entry | None]]] = {}
        self.holders: dict[str, bool] = {}

    def run(self, statement: str, parameters: Sequence[Field] = ()) -> None:
        """Run a statement."""
        self.flush()
        self._connection.execute(statement, parameters)

    def later(self, statement: str, parameters: Sequence[Field]) -> None:
        """Run a statement before the next query, or when the transaction ends."""
        self._waiting.add(statement, parameters)

    def flush(self) -> None:
        """Run the queued statements."""
        self._waiting.flush()

    def one(self, statement: str, parameters: Sequence[Field] = ()) -> Row | None:
        """First row of a result, or None if it is empty."""
        self.flush()
        row: Row | None = self._connection.execute(statement, parameters).fetchone()
        return row

    def all(self, statement: str, parameters: Sequence[Field] = ()) -> list[Row]:
        """All rows of a result."""
        self.flush()
        return self._connection.execute(statement, parameters).fetchall()

    def changes(self) -> int:
        """Number of rows that the connection has ever changed."""
        self.flush()
        return self._connection.total_changes

    def claim(self, what: str, names: Sequence[str]) -> None:
        """No-op: a SQLite file has one writer at a time."""

    def share(self, what: str, names: Sequence[str]) -> None:
        """No-op: a SQLite file has one writer at a time."""

    def lock(self, dataset: str) -> None:
        """No-op: a SQLite file has one writer at a time."""


class SqliteStore:
    """A ledger in a SQLite file: write-ahead log, every commit on the disk before it is acknowledged.

    Args:
        path: The file.
        create: Whether to create the file, which must not exist; otherwise it must exist.

    Attributes:
        url: The file, as `sqlite:///path`.
        read_only: The reason why the store is read-only; empty if it is writable.
        doubt: The reason why it may be an older copy of itself, which is read-only until it has been compared; else
            empty.

    Raises:
        StoreError: The file exists with `create`, is missing without, or is not a ledger.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.url = f"sqlite:///{path}"
        self.read_only = self.doubt = ""
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._memory = Memory()
        self._mode = "rw"  # of connections: see `_open`
        weakref.finalize(self, _close, self._opened, os.getpid())  # who drops a store unclosed leaves no file open
        if create:
            self._make_file()
        elif not path.is_file():
            shown = hide_passwords(str(path))  # it may have been meant as PostgreSQL's connection string
            raise StoreError(f"{shown}: no such ledger; make one with: privcheck ledger init --store {shown}")
        self._file = _identify(path)
        if create:
            self._create()
        else:
            self._bring_up_to_date()

    @contextmanager
    def write(self) -> Iterator[SqliteTransaction]:
        """Open a write transaction; the marks are updated before its commit is acknowledged."""
        if reason := self.read_only or self.doubt:
            raise StoreError(f"{self._path}: read-only: {reason}", read_only=True)
        with self._exclusively() as (transaction, before):
            identity = Identity.of(transaction)
            self._check(transaction, identity)
            lagging = not agree(self._path, identity)
            yield transaction
            transaction.flush()
            if wrote := transaction.changes() != before:
                identity = _take_turn(transaction, identity)
            heads = find_heads(transaction) if lagging else {}
        mine = self._memory.keep(transaction.heads)
        if wrote or lagging:
            self._acknowledge(identity, {**heads, **mine})

    @contextmanager
    def read(self) -> Iterator[SqliteTransaction]:
        """Open a read transaction, with one consistent state."""
        with self._translating():
            connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield SqliteTransaction(connection)
            finally:
                with suppress(sqlite3.Error):  # where the BEGIN was refused
                    connection.execute("ROLLBACK")
                if self._mode == "ro":  # whether it changes is asked anew
                    self._forget(connection)

    def stop_writing(self, reason: str) -> None:
        """Make the store read-only from now on."""
        self.read_only = reason

    def accept(self, decide: Callable[[SqliteTransaction, Mapping[str, bool]], bool]) -> None:
        """Make a store in doubt writable again; one commit freezes lost data and ends the doubt."""
        if self.read_only:
            raise StoreError(f"{self._path}: read-only: {self.read_only}", read_only=True)
        with self._exclusively() as (transaction, _):
            if reason := self._explain_file():
                raise StoreError(f"{self._path}: {reason}", read_only=True)
            marks, identity = read_marks(self._path) or Marks(), Identity.of(transaction)
            told = marks.heads if marks.store in ("", identity.store) and marks.tag != identity.forgone else {}
            lost = {*find_lost(transaction, told), *self._memory.lost(transaction)}
            accepted = decide(transaction, {name: name not in lost for name in {*told, *lost}})
            if accepted:
                if self.doubt or lost:
                    identity = replace(identity, epoch=secrets.token_hex(16), forgone=marks.tag, place="")
                    for name in ("epoch", "forgone", "place"):
                        value = str(getattr(identity, name))
                        transaction.run("UPDATE meta SET value = ? WHERE name = ?", (value, name))
                identity = _take_turn(transaction, replace(identity, turn=max(identity.turn, marks.turn)))
                heads = find_heads(transaction)
        if accepted:
            self._memory.begin(identity)
            self.doubt = ""
            kept = Marks(store=identity.store, turn=identity.turn, tag=identity.tag, heads=heads)
            self._mark(lambda: replace_marks(self._path, kept))

    def copy_to(self, path: Path) -> None:
        """Write all committed rows, as of one moment, into an empty file, without blocking writers."""
        with self._translating(), closing(sqlite3.connect(path)) as target:
            self._connect().backup(target)  # in one step: another writer would start it anew between two

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._guard:
            _close(self._opened, os.getpid())
            self._local = threading.local()

    @contextmanager
    def _exclusively(self) -> Iterator[tuple[SqliteTransaction, int]]:
        """Open the exclusive write transaction, with the connection's number of changed rows before it."""
        with self._translating():
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                transaction = SqliteTransaction(connection)
                yield transaction, transaction.changes()
                transaction.flush()
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # where the disk is full, SQLite has rolled back already
                    connection.execute("ROLLBACK")
                raise

    def _check(self, transaction: SqliteTransaction, identity: Identity) -> None:
        """Check that this is the store that was opened, with all rows that are known to have been written.

        Raises:
            StoreError: It is not: it is in doubt from now on.
        """
        reason = self._explain_file() or self._memory.explain(identity)
        if not reason and (lost := self._memory.lost(transaction)):
            reason = explain_lost(lost)
            accuse(self._path, lost)
        if not reason and not agree(self._path, identity):
            reason = explain_marks(transaction, identity, read_marks(self._path))
        if reason:
            self.doubt = reason
            raise StoreError(f"{self._path}: read-only: {reason}", read_only=True)

    def _explain_file(self) -> str:
        """Reason why the file at the path is not the one that was opened; empty if it is."""
        if _identify(self._path) == self._file:
            return ""
        return f"its file was replaced or removed after it was opened: open it again; {COMPARE}"

    def _acknowledge(self, identity: Identity, heads: Mapping[str, tuple[int, str]]) -> None:
        """Update the marks beside the file after a commit, before it is acknowledged.

        Raises:
            StoreError: The marks cannot be written, or the file was moved away: the commit may not last.
        """
        if reason := self._explain_file():
            self.doubt = reason
            raise StoreError(f"{self._path}: read-only: {reason}", read_only=True)
        self._mark(lambda: advance_marks(self._path, identity, heads))

    def _mark(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self.stop_writing(f"its heads cannot be kept beside it: {error.strerror}")
            raise StoreError(f"{self._path}: read-only from now on: {self.read_only}", read_only=True) from error

    def _make_file(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            message = f"{self._path}: the file already exists; use that ledger, or give a new path"
            raise StoreError(message) from None
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be made: {error.strerror}") from error

    def _create(self) -> None:
        try:
            with self._exclusively() as (transaction, _):
                migrate(transaction, version=0)
                for statement in _GUARDS:
                    transaction.run(statement)
                identity = Identity.of(transaction)
            self._memory.begin(identity)
            kept = Marks(store=identity.store, turn=identity.turn, tag=identity.tag)
            self._mark(lambda: replace_marks(self._path, kept))  # also of a ledger that was there before
        except BaseException:
            self.close()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            raise

    def _bring_up_to_date(self) -> None:
        """Open an existing file; migrating its tables does not change which copy it is."""
        if is_backup(self._path):
            self.stop_writing("it is a backup, not a ledger: privcheck ledger restore FILE --store URL restores it")
            self._mode = "ro"
        elif not os.access(self._path, os.W_OK) or not os.access(self._path.parent, os.W_OK):
            self.stop_writing("the file or its folder is not writable, for this user or at all")
            self._mode = "ro"
        with self.read() as transaction:
            table = transaction.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'")
            version = None if table is None else read_version(transaction)
        if version is None:
            message = f"{self._path}: a database, but not a ledger; make one with: privcheck ledger init"
            raise StoreError(message)
        if version < VERSION:
            if self.read_only:
                message = f"its tables are of version {version} and must be upgraded to {VERSION}, but"
                raise StoreError(f"{self._path}: {message} {self.read_only}", read_only=True)
            with self._exclusively() as (transaction, _):
                migrate(transaction, version=read_version(transaction) or 0)  # somebody else may have done so
        marks = read_marks(self._path)  # before the file is looked at: what they say was committed then
        with self.read() as transaction:
            identity = Identity.of(transaction)
            self.doubt = explain_marks(transaction, identity, marks)
            lagging = bool(identity.turn) and not agree(self._path, identity)
            heads = find_heads(transaction) if lagging else {}
        self._memory.begin(identity)
        if lagging and not self.doubt and not self.read_only:
            if marks is not None and marks.tag == identity.forgone != "":
                kept = Marks(store=identity.store, turn=identity.turn, tag=identity.tag, heads=heads)
                self._mark(lambda: replace_marks(self._path, kept))
            else:
                self._mark(lambda: advance_marks(self._path, identity, heads))

    def _connect(self) -> sqlite3.Connection:
        """This thread's connection; a forked process gets a new one."""
        known: tuple[int, sqlite3.Connection] | None = getattr(self._local, "connection", None)
        if known is not None and known[0] == os.getpid():
            return known[1]
        connection = self._open(self._mode)
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:  # it is no database
            connection.close()
            raise
        if reason := self._explain_file():
            connection.close()
            self.doubt = reason
            raise StoreError(f"{self._path}: {reason}", read_only=True)
        with self._guard:
            self._opened.append(connection)
        self._local.connection = (os.getpid(), connection)
        return connection

    def _forget(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            self._opened.remove(connection)
        del self._local.connection
        connection.close()

    def _open(self, mode: str) -> sqlite3.Connection:
        """Open a connection, which never creates a missing file.

        A read-only file is read with its log if there is one. Without a log the file is complete and not open
        elsewhere: SQLite, which would have to create a log, is told that the file is immutable.
        """
        whole = mode == "ro" and not Path(f"{self._path}-wal").exists()
        url = f"{self._path.absolute().as_uri()}?mode={mode}{'&immutable=1' if whole else ''}"
        return sqlite3.connect(url, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Convert SQLite's errors to `StoreError`; lasting ones make the store read-only."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _BUSY:
                message = f"{self._path}: another process is writing; ask again with the same key"
                raise StoreError(message) from error
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY):
                self.stop_writing(str(error))
                raise StoreError(f"{self._path}: read-only from now on: {error}", read_only=True) from error
            raise StoreError(f"{self._path}: {error}") from error


def is_backup(path: Path) -> bool:
    """Whether a file's header marks it as a backup, which is read-only."""
    try:
        with path.open("rb") as file:
            file.seek(_PLACE)
            return file.read(4) == BACKUP.to_bytes(4, "big")
    except OSError:
        return False


def tables_of(connection: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    """Tables of a file with their columns, in the order of their creation: none refers to a later one."""
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY rowid"
    ).fetchall()
    return [(name, [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]) for (name,) in names]


def make_copy(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Create a ledger's tables in an empty file, and fill them with a function."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        transaction = SqliteTransaction(connection)
        migrate(transaction, version=0)
        for name, _ in tables_of(connection):  # what a new ledger has
            connection.execute(f"DELETE FROM {name}")  # noqa: S608 - names of tables
        fill(connection)
        for statement in _GUARDS:
            connection.execute(statement)
        connection.execute("COMMIT")


def _take_turn(transaction: SqliteTransaction, identity: Identity) -> Identity:
    """Count a write transaction, as its last statement."""
    identity = replace(identity, turn=identity.turn + 1, tag=secrets.token_hex(8))
    transaction.run("UPDATE meta SET value = ? WHERE name = 'turn'", (f"{identity.turn} {identity.tag}",))
    return identity


def _identify(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _close(connections: list[sqlite3.Connection], process: int) -> None:
    """Close connections; a forked process leaves its parent's alone."""
    if os.getpid() == process:
        for connection in connections:
            with suppress(sqlite3.Error):
                connection.close()
        connections.clear()
