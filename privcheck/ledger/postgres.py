"""Store for several machines: one PostgreSQL database, with the same tables as SQLite's.

A dataset's row in `dataset` is its lock (`SELECT … FOR UPDATE`), taken in the order of names, so that no two writers
deadlock; every statement after it sees the commits of the previous writer. Other failures (a deadlock with foreign
statements, a lost server) roll the transaction back and are raised as a `StoreError`: the same request may be asked
again with the same key.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from privcheck.errors import StoreError, hide_passwords
from privcheck.ledger.marks import COMPARE, IDENTITY, Identity, Memory, explain_lost
from privcheck.ledger.schema import VERSION, migrate, read_version
from privcheck.ledger.sqlite import make_copy, tables_of
from privcheck.ledger.store import Field, Row, Transaction, Waiting
from privcheck.ledger.values import Entry

if TYPE_CHECKING:
    import sqlite3

    import psycopg

_WAIT: Final = 30  # seconds for another writer to finish, and for a server that does not answer
_STREAMED: Final = 2000  # rows at a time
_IDLE: Final = 8  # connections that are kept
_SCHEMA_LOCK: Final = 4_611_686_018  # of the advisory lock under which tables are made
_WRITE_LOCK: Final = 4_611_686_019  # … that every write shares, and an acceptance has alone
_CHANGING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_WRITING: Final = f"{_CHANGING}; SELECT pg_advisory_xact_lock_shared({_WRITE_LOCK})"
_ACCEPTING: Final = f"{_CHANGING}; SELECT pg_advisory_xact_lock({_WRITE_LOCK})"
_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# what the ledger says is committed has to be on the disk, whatever the server's default is
_SESSION: Final = (
    "SET synchronous_commit = on",
    f"SET lock_timeout = '{_WAIT}s'",
    f"SET statement_timeout = '{2 * _WAIT}s'",
    f"SET idle_in_transaction_session_timeout = '{2 * _WAIT}s'",
)
_GUARDS: Final = (
    """CREATE FUNCTION entry_only_added() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'rows of the ledger are only added'; END $$""",
    """CREATE TRIGGER entry_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON entry
       FOR EACH STATEMENT EXECUTE FUNCTION entry_only_added()""",
)
_OTHERS: Final = (
    "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND application_name = 'privcheck'"
)
_SECRET: Final = ("password", "sslpassword")  # of a URL's options
_AGAIN: Final = "ask again with the same key"
# SQLSTATE: disk full, I/O, corrupted data or index, read-only server
_LASTING: Final = ("53100", "58030", "XX001", "XX002", "25006")
# serialisation, deadlock, lock not had in time; a row in the same place, of a writer that is of an earlier version
_BUSY: Final = ("40001", "40P01", "55P03", "23505")


class PostgresTransaction:
    """One transaction on a PostgreSQL connection."""

    __slots__ = ("_claimed", "_connection", "_locked", "_waiting", "heads", "holders", "keys")

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._locked: set[str] = set()
        self._waiting = Waiting(self._run_many)
        self.heads: dict[tuple[str, str], Entry] = {}
        self.keys: dict[tuple[str, str], list[tuple[str, Entry | None]]] = {}
        self.holders: dict[str, bool] = {}
        self._claimed: set[str] = set()

    def run(self, statement: str, parameters: Sequence[Field] = ()) -> None:
        """Run a statement."""
        self.flush()
        self._connection.execute(_marked(statement), parameters)

    def later(self, statement: str, parameters: Sequence[Field]) -> None:
        """Run a statement before the next query, or when the transaction ends."""
        self._waiting.add(statement, parameters)

    def flush(self) -> None:
        """Run the queued statements, in one round trip."""
        self._waiting.flush()

    def _run_many(self, statement: str, parameters: Sequence[Sequence[Field]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_marked(statement), parameters)

    def one(self, statement: str, parameters: Sequence[Field] = ()) -> Row | None:
        """First row of a result, or None if it is empty."""
        self.flush()
        row: Row | None = self._connection.execute(_marked(statement), parameters).fetchone()
        return row

    def all(self, statement: str, parameters: Sequence[Field] = ()) -> list[Row]:
        """All rows of a result."""
        self.flush()
        return self._connection.execute(_marked(statement), parameters).fetchall()

    def stream(self, statement: str) -> Iterator[list[Row]]:
        """Iterate over the rows of a result, some thousands at a time, with a server-side cursor."""
        with self._connection.cursor(name="stream") as cursor:
            cursor.execute(statement)
            while rows := cursor.fetchmany(_STREAMED):
                yield rows

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Load rows into a table as a stream."""
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def claim(self, what: str, names: Sequence[str]) -> None:
        """Lock names exclusively until the transaction ends, whether they exist or not."""
        new = sorted({f"{what} {name}" for name in names} - self._claimed)
        if new:
            self._connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest(%s::text[]) AS name", (new,)
            )
            self._claimed |= set(new)

    def share(self, what: str, names: Sequence[str]) -> None:
        """Lock names against `claim` by other writers until the transaction ends."""
        self._connection.execute(
            "SELECT pg_advisory_xact_lock_shared(hashtextextended(name, 0)) FROM unnest(%s::text[]) AS name",
            (sorted(f"{what} {name}" for name in names),),
        )

    def lock(self, dataset: str) -> None:
        """Lock a dataset against other writers until the transaction ends."""
        if dataset not in self._locked:
            row = self._connection.execute("SELECT 1 FROM dataset WHERE name = %s FOR UPDATE", (dataset,)).fetchone()
            self._locked |= set() if row is None else {dataset}


class PostgresStore:
    """A ledger in a separate PostgreSQL database.

    Args:
        url: `postgresql://user@host/database`, or any other URI of libpq; a password is best left to `PGPASSWORD` or
            `~/.pgpass`.
        create: Whether to create the tables, which must not exist; otherwise they must exist.
        connect: Whether to open the tables at all; False for a restoration.

    Attributes:
        url: Its URL, without a password.
        read_only: The reason why the store is read-only; empty if it is writable.
        doubt: The reason why it may be an older copy of itself, which is read-only until it has been compared; else
            empty.

    Raises:
        StoreError: psycopg is not installed, the database cannot be reached, or has a ledger with `create` or none
            without.
    """

    def __init__(self, url: str, *, create: bool = False, connect: bool = True) -> None:
        try:
            import psycopg
        except ImportError:
            message = "a ledger in PostgreSQL needs psycopg: pip install 'privcheck[postgres]'"
            raise StoreError(message) from None
        self.url = without_password(url)
        self.read_only = self.doubt = ""
        self._psycopg = psycopg
        self._target = url
        self._idle: list[psycopg.Connection[Any]] = []
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._memory = Memory()
        self._place = ""
        weakref.finalize(self, _close_all, self._idle, self._process)
        if not connect:
            return
        if create:
            with self._transaction(_CHANGING) as transaction:
                self._make_tables(transaction)
        else:
            self._bring_up_to_date()

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        """Open a write transaction; each of its statements sees all earlier commits."""
        if reason := self.read_only or self.doubt:
            raise StoreError(f"{self.url}: read-only: {reason}", read_only=True)
        with self._transaction(_WRITING) as transaction:
            reason, lost = self._explain(transaction)
            if lost:  # said to every process
                transaction.run("UPDATE meta SET value = '' WHERE name = 'place'")
            if not reason:
                yield transaction
        if reason:
            self.doubt = reason
            raise StoreError(f"{self.url}: read-only: {reason}", read_only=True)
        self._memory.keep(transaction.heads)

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """Open a read transaction, with one consistent state."""
        with self._transaction(_READING) as transaction:
            yield transaction

    def stop_writing(self, reason: str) -> None:
        """Make the store read-only from now on."""
        self.read_only = reason

    def accept(self, decide: Callable[[PostgresTransaction, Mapping[str, bool]], bool]) -> None:
        """Make a store in doubt writable again; one commit freezes lost data and ends the doubt."""
        if self.read_only:
            raise StoreError(f"{self.url}: read-only: {self.read_only}", read_only=True)
        with self._transaction(_ACCEPTING) as transaction:
            lost = self._memory.lost(transaction)
            accepted = decide(transaction, dict.fromkeys(lost, False))
            identity = Identity.of(transaction)
            here = self._find_place(transaction)
            if accepted and (self.doubt or lost or identity.place != here):
                identity = replace(identity, epoch=secrets.token_hex(16), place=here)
                for name in ("epoch", "place"):
                    transaction.run("UPDATE meta SET value = ? WHERE name = ?", (getattr(identity, name), name))
        if accepted:
            self._memory.begin(identity)
            self.doubt = ""

    def copy_to(self, path: Path) -> None:
        """Write all committed rows, as of one moment, into an empty file, some thousands at a time."""
        with self.read() as transaction:

            def fill(target: sqlite3.Connection) -> None:
                for name, columns in tables_of(target):
                    for rows in transaction.stream(f"SELECT {', '.join(columns)} FROM {name}"):  # noqa: S608 - ours
                        marks = ", ".join("?" * len(columns))
                        target.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608 - names of tables, and marks

            make_copy(path, fill)

    @classmethod
    def put_back(
        cls, url: str, source: sqlite3.Connection, *, explain: Callable[[Transaction | None], None], stamp: str
    ) -> str:  # fmt: skip
        """Load the tables of a SQLite ledger into a database, in one transaction.

        Args:
            url: URL of the database.
            source: The file.
            explain: Refuses if the present tables must not be replaced; called with None if they are unreadable or in
                use.
            stamp: Suffix of the schema to which the present tables are moved.

        Returns:
            That schema; empty if there were no tables.

        Raises:
            StoreError: The database cannot be written, or `explain` refuses.
        """
        store = cls(url, connect=False)
        try:
            with store._transaction(_ACCEPTING) as transaction:
                return store._put_back(transaction, source, explain, stamp)
        finally:
            store.close()

    def _put_back(
        self,
        transaction: PostgresTransaction,
        source: sqlite3.Connection,
        explain: Callable[[Transaction | None], None],
        stamp: str,
    ) -> str:
        self._check_server(transaction)
        transaction.run("SET LOCAL statement_timeout = 0")
        transaction.run(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
        tables, kept = tables_of(source), ""
        there = [name for name, _ in tables if transaction.one("SELECT to_regclass(?)", (name,)) != (None,)]
        if there:
            if transaction.one(_OTHERS) != (0,):
                self._refuse_used(explain)
            whole = _find_tables(transaction) == (True, True) and read_version(transaction) == VERSION
            explain(transaction if whole else None)
            kept = f"replaced_{stamp}"
            self._move_away(transaction, there, kept)
        migrate(transaction, version=0)
        for name, _ in reversed(tables):  # what a new ledger has
            transaction.run(f"DELETE FROM {name}")  # noqa: S608 - names of tables
        for name, columns in tables:
            transaction.load(name, columns, source.execute(f"SELECT {', '.join(columns)} FROM {name}"))  # noqa: S608 - names of tables, and marks
        for statement in _GUARDS:
            transaction.run(statement)
        return kept

    def _refuse_used(self, explain: Callable[[Transaction | None], None]) -> None:
        try:
            explain(None)
        except StoreError:
            message = (
                f"{self.url}: it is open in another process: stop the service and all programs that charge it, or give "
                "--replace"
            )
            raise StoreError(message) from None

    def _move_away(self, transaction: PostgresTransaction, tables: Sequence[str], schema: str) -> None:
        """Move tables, and the functions of their triggers, to a new schema."""
        transaction.run(f"CREATE SCHEMA {schema}")
        marks = ", ".join("?" * len(tables))
        functions = transaction.all(
            "SELECT DISTINCT tgfoid::regprocedure::text FROM pg_trigger "  # noqa: S608 - marks alone
            f"WHERE NOT tgisinternal AND tgrelid IN (SELECT to_regclass(n) FROM unnest(ARRAY[{marks}]) AS n)",
            tables,
        )
        for kind, names in (("TABLE", tables), ("FUNCTION", [str(function) for (function,) in functions])):
            for name in names:
                transaction.run(f"ALTER {kind} {name} SET SCHEMA {schema}")

    def close(self) -> None:
        """Close the idle connections."""
        with self._guard:
            _close_all(self._idle, self._process)

    def _make_tables(self, transaction: PostgresTransaction) -> None:
        self._check_server(transaction)
        transaction.run(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
        if _find_tables(transaction) != (False, False):
            message = f"{self.url}: the database already has a ledger; use it, or give an empty database"
            raise StoreError(message)
        migrate(transaction, version=0)
        for statement in _GUARDS:
            transaction.run(statement)
        transaction.run("UPDATE meta SET value = ? WHERE name = 'place'", (self._find_place(transaction),))
        self._memory.begin(Identity.of(transaction))

    def _bring_up_to_date(self) -> None:
        """Open existing tables; migrating them does not change which copy of the store they are."""
        with self.read() as transaction:
            self._check_server(transaction)
            version = read_version(transaction) if _find_tables(transaction) == (True, True) else None
        if version is None:
            message = f"{self.url}: a database, but not a ledger; make one with: privcheck ledger init"
            raise StoreError(message)
        if version < VERSION:
            with self._transaction(_CHANGING) as transaction:  # two who do so at once wait for each other
                transaction.run(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
                migrate(transaction, version=read_version(transaction) or 0)
        with self.read() as transaction:
            self._memory.begin(Identity.of(transaction))
            self.doubt, _ = self._explain(transaction)

    def _check_server(self, transaction: PostgresTransaction) -> None:
        settings = transaction.one("SELECT current_setting('server_encoding'), current_setting('fsync')")
        if settings != ("UTF8", "on"):
            message = f"{self.url}: expected a database in UTF8 on a server with fsync = on, got {settings}"
            raise StoreError(f"{message}: committed charges could be lost")

    def _explain(self, transaction: PostgresTransaction) -> tuple[str, bool]:
        """Reason why this is not the opened store, and whether rows written by this process are lost."""
        newest = self._memory.newest()
        marks = ", ".join("?" * len(newest)) or "NULL"
        statement = (
            f"{IDENTITY} UNION ALL SELECT 'here', {self._say_place(transaction)} "  # noqa: S608 - all of it is ours
            f"UNION ALL SELECT 'row', hash FROM entry WHERE hash IN ({marks})"
        )
        # in one round trip
        rows = transaction.all(statement, [value for _, value in newest.values()])
        there = {row[1] for row in rows if row[0] in ("row", "here")}
        identity = Identity.parse(rows)
        if identity.place not in there:
            return f"it was restored from a backup, or its server was restored or promoted; {COMPARE}", False
        if reason := self._memory.explain(identity):
            return reason, False
        lost = {name: head for name, head in newest.items() if head[1] not in there}
        return (explain_lost(lost), True) if lost else ("", False)

    def _find_place(self, transaction: PostgresTransaction) -> str:
        """Server, timeline, database and table: a loaded dump differs at least in the table."""
        row = transaction.one(f"SELECT {self._say_place(transaction)}")
        assert row is not None
        return str(row[0])

    def _say_place(self, transaction: PostgresTransaction) -> str:
        """SQL expression of the place, without the parts that this user is not permitted to read."""
        if not self._place:
            functions = ("pg_control_system()", "pg_walfile_name(pg_lsn)")
            may = transaction.one(
                "SELECT has_function_privilege(?, 'execute'), has_function_privilege(?, 'execute')", functions
            )
            server, line = may or (None, None)
            parts = [
                "(SELECT system_identifier::text FROM pg_control_system())" if server else "''",
                # a server that follows another has no log that it writes
                "CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
                if line
                else "''",
                "(SELECT oid::text FROM pg_database WHERE datname = current_database())",
                "COALESCE(to_regclass('entry')::oid::text, '')",
            ]
            self._place = " || '/' || ".join(parts)
        return self._place

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresTransaction]:
        with self._translating():
            connection = self._begin(begin)
            try:
                transaction = PostgresTransaction(connection)
                yield transaction
                transaction.flush()
                connection.execute("COMMIT")
            except BaseException:
                with suppress(self._psycopg.Error):
                    connection.execute("ROLLBACK")
                self._give_back(connection)
                raise
            self._give_back(connection)

    def _begin(self, begin: str) -> psycopg.Connection[Any]:
        """Connection in a transaction: an idle one, or a new one if the server closed the idle ones."""
        while (connection := self._take()) is not None:
            try:
                connection.execute(begin, prepare=False)
            except self._psycopg.OperationalError as error:
                _close(connection)
                if error.sqlstate in _BUSY:  # a copy is being accepted
                    raise
            else:
                return connection
        connection = self._psycopg.connect(
            self._target, autocommit=True, connect_timeout=_WAIT, application_name="privcheck", prepare_threshold=2
        )
        try:
            for statement in (*_SESSION, begin):
                connection.execute(statement, prepare=False)
        except BaseException:
            _close(connection)
            raise
        return connection

    def _take(self) -> psycopg.Connection[Any] | None:
        with self._guard:
            if self._process != os.getpid():  # a process that was forked must not speak on its parent's connections
                self._idle.clear()
                self._process = os.getpid()
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        usable = not connection.closed and connection.info.transaction_status == 0  # idle
        with self._guard:
            if usable and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        _close(connection)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Convert PostgreSQL's errors to `StoreError`; lasting ones make the store read-only."""
        try:
            yield
        except self._psycopg.Error as error:
            said = " ".join((error.diag.message_primary or str(error)).split())[:300] or type(error).__name__
            said = _without_parts(said, self._target)
            if error.sqlstate in _LASTING:
                self.stop_writing(said)
                raise StoreError(f"{self.url}: read-only from now on: {said}", read_only=True) from error
            if error.sqlstate in _BUSY:
                raise StoreError(f"{self.url}: another writer is at it; {_AGAIN}") from error
            if isinstance(error, self._psycopg.OperationalError):
                raise StoreError(f"{self.url}: cannot be reached; {_AGAIN}: {said}") from error
            raise StoreError(f"{self.url}: {said}") from error


def without_password(url: str) -> str:
    """URL without its password, to be shown.

    >>> without_password("postgresql://ann:secret@host:5432/budget?sslmode=require&password=secret")
    'postgresql://ann@host:5432/budget?sslmode=require'
    """
    parts = urlsplit(hide_passwords(url))
    shown = [(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET]
    query = f"?{urlencode(shown, safe='/')}" if shown else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{query}"


def _without_parts(said: str, url: str) -> str:
    """Message of libpq without quoted parts of a password that was parsed as something else."""
    secret = re.search(r"://[^\s:/@]*:(\S*)@", url)
    parts = [] if secret is None else [part for part in re.split(r"[/?#:@]", secret[1]) if part]

    def show(quoted: re.Match[str]) -> str:
        return "…" if any(part in quoted[1] or quoted[1] in part for part in parts) else quoted[0]

    return re.sub(r"\"([^\"]*)\"", show, said)


def _marked(statement: str) -> str:
    """Statement with PostgreSQL's parameter marks; no statement of the ledger has a `?` in a text."""
    return statement.replace("%", "%%").replace("?", "%s")


def _find_tables(transaction: PostgresTransaction) -> Row | None:
    return transaction.one("SELECT to_regclass('meta') IS NOT NULL, to_regclass('entry') IS NOT NULL")


def _close_all(connections: list[psycopg.Connection[Any]], process: int) -> None:
    """Close connections; a forked process only forgets its parent's."""
    if process == os.getpid():
        for connection in connections:
            _close(connection)
    connections.clear()


def _close(connection: psycopg.Connection[Any]) -> None:
    with suppress(Exception):  # it is of no use any more, whatever it says
        connection.close()
