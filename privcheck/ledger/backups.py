"""Backups of a ledger while others write, their restoration, and the acceptance of a restored copy for writing.

A backup is one SQLite file, of either kind of store: the committed state of one moment, its chains checked, marked as a
copy so that nobody writes to it by mistake. A restored backup is treated as any other copy, by
`privcheck.ledger.marks`: if rows may have been acknowledged after it, it is in doubt until an officer has compared it
with receipts (`accept`). The store that it replaces is kept beside it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from privcheck.errors import LedgerError, ParameterError, StoreError
from privcheck.ledger import grants, registry, rows, transitions
from privcheck.ledger.chains import Checked, check_chains
from privcheck.ledger.grants import Known
from privcheck.ledger.marks import Identity, find_heads, find_lost, read_marks
from privcheck.ledger.registry import Actor
from privcheck.ledger.schema import VERSION, migrate, read_version
from privcheck.ledger.signing import Signer
from privcheck.ledger.sqlite import BACKUP, SqliteTransaction, is_backup, tables_of
from privcheck.ledger.store import Store, Transaction
from privcheck.ledger.urls import is_postgres, open_store, read_path
from privcheck.ledger.values import Receipt
from privcheck.support.files import write_through

_MADE: Final = "backup"  # the row of `meta` that says when a backup was made
_PUT_BACK: Final = "put back"
_USED: Final = "it is open in another process: stop the service and all programs that charge it"
_ANYWAY: Final = "restore a newer backup, or give --replace, which keeps the present file beside it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """Contents of a backup.

    Attributes:
        file: Its path.
        at: When it was made, in UTC.
        store: The number of its ledger.
        rows: Number of rows of each table.
        datasets: The head of every chain, by dataset: its position and hash.
        doubt: The reason why the ledger was in doubt when the backup was made; else empty.
    """

    file: str
    at: str
    store: str
    rows: dict[str, int]
    datasets: dict[str, dict[str, Any]]
    doubt: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Result of a restoration.

    Attributes:
        store: URL of the store, without secrets.
        backup: Contents of the backup.
        doubt: The reason why it is read-only until an officer has compared it; empty if nothing came after the backup.
        kept: The new place of the store that was replaced; empty if there was none.
    """

    store: str
    backup: Backup
    doubt: str
    kept: str

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {"store": self.store, "backup": self.backup.to_dict(), "doubt": self.doubt, "kept": self.kept}


def back_up(store: Store, file: Path, *, at: str) -> Backup:
    """Write the committed state of one moment into a new file, which is complete and checked, or is not created.

    Raises:
        LedgerError: A chain of the ledger is inconsistent; there is no backup.
        StoreError: The file exists already, or cannot be written.
    """
    try:
        with _new_file(file) as part:
            store.copy_to(part)
            with _writing(part) as transaction:
                transaction.run(f"PRAGMA application_id = {BACKUP}")
                transaction.run("INSERT INTO meta (name, value) VALUES (?, ?)", (_MADE, at))
            return replace(_inspect(part), file=str(file), doubt=store.doubt)
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error.strerror}") from error


def restore(url: str, file: Path, *, replace_newer: bool, stamp: str) -> Restored:
    """Restore a backup in place of a ledger that was lost, is broken, or is no newer than the backup.

    Args:
        url: URL of the store, as of `open_store`.
        file: The backup.
        replace_newer: Whether to replace also a ledger that is in use, newer, another one, or unreadable.
        stamp: Letters and digits for the name of the kept copy of the replaced store.

    Raises:
        LedgerError: The backup's chains are inconsistent.
        ParameterError: The URL is not that of a store.
        StoreError: The file is not a backup, or the present ledger is in use, newer, another one or broken.
    """
    if not is_backup(file):
        raise StoreError(f"{file}: not a backup; expected one made by: privcheck ledger backup {file}")
    if is_postgres(url):
        from privcheck.ledger.postgres import PostgresStore

        with tempfile.TemporaryDirectory() as folder:
            found = _unmark(file, Path(folder) / "part.db")
            with closing(sqlite3.connect(Path(folder) / "part.db")) as source:
                kept = PostgresStore.put_back(
                    url, source, explain=_explain(source, replace_newer=replace_newer), stamp=stamp
                )
    else:
        found, kept = _put_back_file(read_path(url), file, replace_newer=replace_newer, stamp=stamp)
    store = open_store(url)
    try:
        return Restored(store=store.url, backup=replace(found, file=str(file)), doubt=store.doubt, kept=kept)
    finally:
        store.close()


def _put_back_file(path: Path, file: Path, *, replace_newer: bool, stamp: str) -> tuple[Backup, str]:
    """Restore a backup at a path; returns its contents, and the new place of the replaced file."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        found = _unmark(file, part)
        with closing(sqlite3.connect(part)) as source, _holding(path, replace_newer=replace_newer) as there:
            if there is not None:
                _explain(source, replace_newer=replace_newer)(there)
            _stay_in_doubt(source, path)
            source.close()
            return found, _exchange(part, path, stamp)
    except OSError as error:
        raise StoreError(f"{path}: cannot be restored: {error.strerror}") from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{part}{suffix}").unlink(missing_ok=True)


def _explain(source: sqlite3.Connection, *, replace_newer: bool) -> Any:
    """Check that refuses to replace another ledger, or a newer state of the same."""

    def refuse(there: Transaction | None) -> None:
        """Refuse to replace the present ledger; None: it exists and cannot be read."""
        if replace_newer:
            return
        if there is None:
            raise StoreError(f"the present file cannot be read and may be newer: {_ANYWAY}")
        mine, theirs = Identity.of(SqliteTransaction(source)), Identity.of(there)
        if mine.store != theirs.store:
            raise StoreError(f"another ledger is there: {_ANYWAY}")
        newer = find_lost(SqliteTransaction(source), find_heads(there))
        if newer or theirs.turn > mine.turn:
            of = f", in {', '.join(newer)}" if newer else ""
            raise StoreError(f"the present file is newer than the backup{of}: {_ANYWAY}")

    return refuse


@contextmanager
def _holding(path: Path, *, replace_newer: bool) -> Iterator[SqliteTransaction | None]:
    """Lock a file exclusively while it is compared and replaced; yields None if there is none.

    Leaving write-ahead logging needs exclusive access to the file, and writes its log into it.

    Raises:
        StoreError: The file is in use, or is not a readable ledger; not with `replace_newer`.
    """
    if not path.exists():
        yield None
        return
    with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            version = read_version(SqliteTransaction(connection))
            there = None if version is None or version < VERSION else SqliteTransaction(connection)
        except sqlite3.Error as error:
            if not replace_newer:
                used = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                why = _USED if used else f"the present file cannot be read ({error}): {_ANYWAY}"
                raise StoreError(f"{path}: {why}") from error
            there = None
        else:
            if there is None and not replace_newer:
                raise StoreError(f"{path}: the present file has another version, or is not a ledger: {_ANYWAY}")
        yield there


def _stay_in_doubt(source: sqlite3.Connection, path: Path) -> None:
    """Record in the copy that it was restored, unless the marks beside it are as new as the copy."""
    identity, marks = Identity.of(SqliteTransaction(source)), read_marks(path)
    if marks is None or marks.store != identity.store or marks.turn < identity.turn:
        source.execute("UPDATE meta SET value = ? WHERE name = 'place'", (_PUT_BACK,))
        source.commit()


def _exchange(part: Path, path: Path, stamp: str) -> str:
    """Move a file to a path; returns the new place of the replaced file, moved away together with its log."""
    kept = Path(f"{path}.replaced-{stamp}") if path.exists() else None
    write_through(part)
    if kept is not None:
        with suppress(FileExistsError):
            os.link(path, kept)
    for suffix in ("-wal", "-shm", "-journal"):  # of another file they would be taken for this one's
        left = Path(f"{path}{suffix}")
        if left.exists():
            left.rename(f"{path}.replaced-{stamp}{suffix}")
    part.replace(path)
    write_through(path.parent)
    return "" if kept is None else str(kept)


@contextmanager
def _new_file(file: Path) -> Iterator[Path]:
    """Create a file atomically: yields a temporary path, which becomes the file once it is on the disk.

    Raises:
        StoreError: The file exists already.
    """
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise StoreError(f"{file}: the file already exists; give a new path") from None
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield part
        write_through(part)
        part.replace(file)
        write_through(file.parent)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{part}{suffix}").unlink(missing_ok=True)


@contextmanager
def _writing(part: Path) -> Iterator[SqliteTransaction]:
    """Open a transaction on a file that no other process uses; the file has no separate log afterwards."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN IMMEDIATE")
        transaction = SqliteTransaction(connection)
        yield transaction
        transaction.flush()
        connection.execute("COMMIT")


def _unmark(file: Path, part: Path) -> Backup:
    """Copy a backup, unmark it and migrate it to the newest version; returns its checked contents."""
    made = _inspect(file, check=False)
    with part.open("xb") as target, file.open("rb") as source:
        part.chmod(0o600)
        shutil.copyfileobj(source, target)
    with _writing(part) as transaction:
        transaction.run("PRAGMA application_id = 0")
        transaction.run("DELETE FROM meta WHERE name = ?", (_MADE,))
        migrate(transaction, version=read_version(transaction) or 0)
    return replace(_inspect(part), at=made.at)


def _inspect(file: Path, *, check: bool = True) -> Backup:
    """Contents of a file that no process writes.

    Raises:
        LedgerError: A chain is inconsistent.
        StoreError: The file is not a ledger.
    """
    url = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(url, uri=True, isolation_level=None)) as connection:
            transaction = SqliteTransaction(connection)
            if check and not (found := check_chains(transaction)).ok:
                raise LedgerError(f"{file}: its chains do not fit together: {'; '.join(found.problems[:3])}")
            heads = {name: {"seq": seq, "hash": value} for name, (seq, value) in find_heads(transaction).items()}
            tables = [name for name, _ in tables_of(connection)]
            rows = {name: int(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]) for name in tables}  # noqa: S608 - names of tables
            at = transaction.one("SELECT value FROM meta WHERE name = ?", (_MADE,))
            identity = Identity.of(transaction)
    except sqlite3.Error as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error
    return Backup(file=str(file), at=str(at[0]) if at else "", store=identity.store, rows=rows, datasets=heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Result of comparing a store with kept receipts, to accept it as its newest copy.

    Attributes:
        accepted: Whether the store is writable again.
        checked: Result of verifying its chains.
        lost: Datasets with rows that were written and are missing.
        uncompared: Datasets with charges and without a record as new as the last of them.
        frozen: Grants that were frozen, because charges to them may be lost.
        revoked: Tokens that were ended, because rows of the registry are lost: any of them may have been revoked since.
    """

    accepted: bool
    checked: Checked
    lost: tuple[str, ...]
    uncompared: tuple[str, ...]
    frozen: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON."""
        several = {name: list(getattr(self, name)) for name in ("lost", "uncompared", "frozen", "revoked")}
        return {**self.checked.to_dict(), "accepted": self.accepted, **several}


def accept(store: Store, known: Known, actor: Actor, receipts: Sequence[Receipt], *, freeze: bool, at: str) -> Accepted:
    """Make a store writable again if no rows are lost, or after freezing the affected grants: all in one transaction.

    Charges after a lost row are unknown: the grants of its dataset count as spent, and are frozen. The same holds for
    datasets without anything to compare them with, or with receipts only from before the copy's own last charge: those
    are not the newest receipts, so that they say nothing about rows after the copy.

    Raises:
        AuthorityError: The actor's token has ended.
        ParameterError: A receipt was not signed by this store.
        StoreError: The store cannot be written now; the doubt stays.
    """
    answers: list[Accepted] = []

    def decide(transaction: Transaction, kept: Mapping[str, bool]) -> bool:
        registry.check_holder(transaction, actor, now=at)
        known.forget()  # it may have been read before another copy came in its place
        found = _compare(transaction, kept, receipts)
        if found.checked.ok and (freeze or not (found.lost or found.uncompared)):
            ended = _revoke(transaction, actor, at=at) if rows.REGISTRY in found.lost else ()
            frozen = _freeze(transaction, known, actor, found, at=at)
            found = replace(found, accepted=True, frozen=frozen, revoked=ended)
            told = {name: list(getattr(found, name)) for name in ("lost", "uncompared", "frozen", "revoked")}
            closed = sorted({*found.lost, *found.uncompared} - {rows.REGISTRY})
            registry.note(transaction, "accept", {**told, "closed": closed}, actor=actor.name, at=at)
        answers.append(found)
        return found.accepted

    store.accept(decide)
    return answers[-1]


def _compare(transaction: Transaction, seen: Mapping[str, bool], receipts: Sequence[Receipt]) -> Accepted:
    """Lost and uncompared datasets, from the known newest rows and the kept receipts."""
    kept = dict(seen)
    signer = Signer.of(transaction) if receipts else None
    newest: set[str] = set()
    for receipt in receipts:
        where = f"{receipt.dataset}, row {receipt.seq}"
        if signer is None or not signer.is_signed(receipt):
            raise ParameterError(f"the receipt of {where} was not signed by this store", name="receipt", given=where)
        row = rows.find_hash(transaction, receipt.hash)
        there = row is not None and (row.dataset, row.seq) == (receipt.dataset, receipt.seq)
        last = rows.last_of_charges(transaction, receipt.dataset)
        if not there:
            kept[receipt.dataset] = False
        elif last is not None and last.hash == receipt.hash:
            newest.add(receipt.dataset)
    charged = [name for name in rows.datasets(transaction) if rows.is_charged(transaction, name)]
    return Accepted(
        accepted=False,
        checked=check_chains(transaction),
        lost=tuple(name for name, there in sorted(kept.items()) if not there),
        uncompared=tuple(name for name in charged if name not in kept and name not in newest),
    )


def _freeze(transaction: Transaction, known: Known, actor: Actor, found: Accepted, *, at: str) -> tuple[str, ...]:
    """Freeze the grants of datasets with lost rows, or without a comparison; returns the names of the grants.

    These datasets are closed to new grants too: a lost grant is missing from the sum of the policy.
    """
    frozen, gone = [], sorted({*found.lost, *found.uncompared} - {rows.REGISTRY})
    grants.close_datasets(transaction, gone)
    for dataset in sorted(set(gone) & set(rows.datasets(transaction))):
        why = "rows of its dataset are lost" if dataset in found.lost else "no receipt was given for comparison"
        for grant in grants.grants_of(transaction, dataset):
            reason = {"reason": f"an older copy of the ledger was restored, and {why}"}
            transitions.note(transaction, known, actor, grant.name, kind="freeze", body=reason, at=at)
            frozen.append(grant.name)
    return tuple(frozen)


def _revoke(transaction: Transaction, actor: Actor, *, at: str) -> tuple[str, ...]:
    """Revoke all tokens but the officer's own, because later revocations may be lost; returns their names."""
    valid = [one["name"] for one in registry.list_tokens(transaction) if one["revoked"] is None]
    ended = tuple(name for name in valid if name != actor.name)
    for name in ended:
        registry.revoke_token(transaction, name, by=actor.name, now=at)
    return ended
