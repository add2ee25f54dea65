"""Identity of a store's copies: the states of a store, and the marks by which a wrong copy is detected.

| state | how it is known | written? | then |
| --- | --- | --- | --- |
| fresh | no row of a dataset, no marks | yes, which makes the marks | ours |
| ours | the marks have the store's own number, turn and tag | yes | any other |
| newer copy | every head of the marks is there, and more: a crash after a commit | yes, and the marks | ours |
| older copy | a head of the marks or of this process, or a turn of the marks, is missing | no | in doubt |
| foreign | another number, another file at the path, tables in another place (PostgreSQL) | no | in doubt |
| unmarked | rows, and no readable marks | no | in doubt |
| restored | from a backup, and no marks beside it are as new | no | in doubt |
| in doubt | one of these four was noticed, at opening or by a write | no | being accepted |
| being accepted | one transaction without other writers: it compares, freezes, marks | by it | ours, or in doubt |
| accepted elsewhere | its epoch is not the one that this process opened | not by this one | ours, opened again |

Every write checks this inside its own transaction, before it decides anything. A store has a random number for life,
and a random epoch that changes whenever a copy is accepted. Beside a SQLite file, in `FILE.heads`, are its number, turn
(each writing transaction is one, with a random tag) and the newest head of every chain. They are written after the
commit and before it is acknowledged: a crash between the two leaves marks that are older than the file, never newer,
and so causes no false alarm. A PostgreSQL database records in which server, timeline, database and table it was made: a
loaded dump has others, as has a server that was restored to a moment, or promoted. Of either store an open process also
remembers the heads that it has written itself.

A copy that is restored together with its marks, file and heads or a snapshot of a whole disk, is detected by processes
that have written since, and by receipts that were kept elsewhere; by nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from privcheck.ledger.exact import canonical
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.store import Row, Transaction
from privcheck.ledger.values import Entry

Heads = Mapping[str, tuple[int, str]]  # by dataset: place and hash
COMPARE: Final = "compare it with kept receipts: privcheck ledger verify --receipts FILE --accept"
IDENTITY: Final = "SELECT name, value FROM meta WHERE name IN ('store', 'epoch', 'turn', 'forgone', 'place')"
_LINE: Final = 512  # bytes: a sector of a disk, which is written whole
_KEPT: Final = 32  # chains whose heads a process remembers: as many as it may be writing at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A store's own record of its identity.

    Attributes:
        store: The store's number.
        epoch: Random text that changes with every acceptance of a copy.
        turn: Number of transactions that have written to it (SQLite).
        tag: Tag of the last of them.
        forgone: The tag of marks that an officer has given up (SQLite).
        place: Where its tables were made (PostgreSQL); for a SQLite file not empty if it was restored.
    """

    store: str
    epoch: str
    turn: int
    tag: str
    forgone: str
    place: str

    @staticmethod
    def of(transaction: Transaction) -> Identity:
        """Read the identity in a transaction."""
        return Identity.parse(transaction.all(IDENTITY))

    @staticmethod
    def parse(rows: Sequence[Row]) -> Identity:
        """Parse the result of `IDENTITY`."""
        found = {str(name): str(value) for name, value in rows}
        turn, _, tag = found.get("turn", "").partition(" ")
        return Identity(
            store=found.get("store", ""),
            epoch=found.get("epoch", ""),
            turn=int(turn or 0),
            tag=tag,
            forgone=found.get("forgone", ""),
            place=found.get("place", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Contents of the file beside a SQLite file.

    Attributes:
        store: The number of the store; empty in marks of an earlier version, which have heads alone.
        turn: The last acknowledged transaction.
        tag: Its tag.
        heads: The newest acknowledged head of every chain.
    """

    store: str = ""
    turn: int = -1
    tag: str = ""
    heads: Heads = field(default_factory=dict)

    def add(self, heads: Heads) -> Marks:
        """Copy of the marks with newer heads of some chains."""
        newer = {name: max(head, self.heads.get(name, (0, ""))) for name, head in heads.items()}
        return replace(self, heads={**self.heads, **newer})


class Memory:
    """Identity of an open store, as far as this process knows it: number, epoch, and the heads that it has written."""

    def __init__(self) -> None:
        self._store = self._epoch = ""
        self._heads: OrderedDict[str, tuple[int, str]] = OrderedDict()
        self._guard = threading.Lock()

    def begin(self, identity: Identity) -> None:
        """Reset the memory for a store that was opened, or accepted."""
        with self._guard:
            self._store, self._epoch = identity.store, identity.epoch
            self._heads.clear()

    def keep(self, heads: Mapping[tuple[str, str], Entry]) -> Heads:
        """Remember the heads of a committed transaction, and return those of datasets."""
        mine = {name: (row.seq, row.hash) for (kind, name), row in heads.items() if kind == "dataset"}
        with self._guard:
            for name, head in mine.items():
                self._heads[name] = max(head, self._heads.get(name, (0, "")))
                self._heads.move_to_end(name)
            while len(self._heads) > _KEPT:
                self._heads.popitem(last=False)
        return mine

    def newest(self) -> dict[str, tuple[int, str]]:
        """Heads that this process has written, up to the `_KEPT` newest chains."""
        with self._guard:
            return dict(self._heads)

    def lost(self, transaction: Transaction) -> dict[str, tuple[int, str]]:
        """Heads that this process has written and that are missing from the store."""
        newest = self.newest()
        if not newest:
            return {}
        marks = ", ".join("?" * len(newest))
        asked = [value for _, value in newest.values()]
        found = transaction.all(f"SELECT hash FROM entry WHERE hash IN ({marks})", asked)  # noqa: S608 - constants
        there = {row[0] for row in found}
        return {name: head for name, head in newest.items() if head[1] not in there}

    def explain(self, identity: Identity) -> str:
        """Reason why this is not the store that was opened; empty if it is."""
        if identity.store != self._store:
            return f"it was replaced by another ledger after it was opened; {COMPARE}"
        if identity.epoch != self._epoch:
            return "an officer accepted a copy of it after it was opened: open it again (restart the service)"
        return ""


def explain_lost(lost: Heads) -> str:
    """Message that a store is an older copy, with the rows that are missing."""
    rows = ", ".join(f"row {lost[name][0]} of {name!r}" for name in sorted(lost))
    return f"it is an older copy: {rows} was written, but is missing; {COMPARE}"


def explain_marks(transaction: Transaction, identity: Identity, marks: Marks | None) -> str:
    """Reason why a SQLite file is not the newest copy of itself, by its marks; empty if there is none."""
    if marks is None or identity.place:
        return _explain_unmarked(transaction, identity)
    if marks.store not in ("", identity.store):
        return f"its heads, kept beside it in FILE.heads, belong to another ledger; {COMPARE}"
    if marks.tag and marks.tag == identity.forgone:  # given up in the transaction that accepted this copy
        return ""
    if lost := find_lost(transaction, marks.heads):
        return explain_lost({name: marks.heads[name] for name in lost})
    if identity.turn < marks.turn or (identity.turn == marks.turn and identity.tag != marks.tag):
        return f"it is an older copy: {marks.turn} transactions were acknowledged, but some are missing; {COMPARE}"
    return ""


def _explain_unmarked(transaction: Transaction, identity: Identity) -> str:
    if identity.place:
        return f"it was restored from a backup; {COMPARE}"
    # a ledger with names and tokens alone has nothing that could be spent twice
    any_row = transaction.one("SELECT 1 FROM entry WHERE dataset <> ? LIMIT 1", (REGISTRY,))
    return "" if any_row is None else f"its heads, kept beside it in FILE.heads, are missing; {COMPARE}"


def heads_path(path: Path) -> Path:
    """Path of the marks of a SQLite file."""
    return Path(f"{path}.heads")


def read_marks(path: Path) -> Marks | None:
    """Marks beside a SQLite file; None if they are missing or unreadable."""
    try:
        return _parse(heads_path(path).read_bytes())
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None


def agree(path: Path, identity: Identity) -> bool:
    """Whether the marks beside a SQLite file are those of its own last transaction, by their first line."""
    try:
        descriptor = os.open(f"{path}.heads", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.read(descriptor, _LINE) == _first(identity.store, identity.turn, identity.tag)
    finally:
        os.close(descriptor)


def replace_marks(path: Path, marks: Marks) -> None:
    """Write new marks in place of all earlier ones, by an atomic rename.

    Raises:
        OSError: They cannot be written.
    """
    file = heads_path(path)
    part = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(_first(marks.store, marks.turn, marks.tag))
            out.writelines(_line(name, head) for name, head in marks.heads.items())
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def advance_marks(path: Path, identity: Identity, heads: Heads) -> None:
    """Update the marks after a committed transaction; those of a later one stay.

    Lines that change are written in place: a rename would make the disk write a new file through with every commit.

    Raises:
        OSError: They cannot be written.
    """
    try:
        descriptor = os.open(f"{path}.heads", os.O_RDWR)
    except FileNotFoundError:
        replace_marks(path, Marks(store=identity.store, turn=identity.turn, tag=identity.tag, heads=heads))
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        if b'"turn":' not in data[:_LINE]:  # of an earlier version, or not to be read
            old = read_marks(path) or Marks()
            replace_marks(path, replace(old.add(heads), store=identity.store, turn=identity.turn, tag=identity.tag))
            return
        if json.loads(data[:_LINE])["turn"] < identity.turn:
            os.pwrite(descriptor, _first(identity.store, identity.turn, identity.tag), 0)
        end = len(data)
        for name, head in heads.items():
            place = data.find(b'\n{"dataset":' + canonical(name).encode() + b",") + 1
            if not place:
                place, end = end, end + _LINE
            elif json.loads(data[place : place + _LINE])["seq"] >= head[0]:
                continue
            os.pwrite(descriptor, _line(name, head), place)
    finally:
        os.close(descriptor)


def accuse(path: Path, lost: Heads) -> None:
    """Record lost heads of this process in the marks beside a SQLite file, so that every process sees the loss."""
    marks = read_marks(path) or Marks()
    with contextlib.suppress(OSError):
        replace_marks(path, replace(marks.add(lost), tag=f"lost {secrets.token_hex(8)}"))


def find_heads(transaction: Transaction) -> dict[str, tuple[int, str]]:
    """Heads of all chains in a store."""
    newest = "SELECT MAX(seq) FROM entry WHERE dataset = dataset.name"
    found = transaction.all(
        f"SELECT dataset.name, seq, hash FROM dataset JOIN entry ON dataset = dataset.name AND seq = ({newest})"  # noqa: S608 - constants
    )
    return {str(name): (int(seq or 0), str(value)) for name, seq, value in found}


def find_lost(transaction: Transaction, heads: Heads) -> list[str]:
    """Datasets with heads that are missing from a store."""
    return [
        name
        for name, (seq, value) in sorted(heads.items())
        if transaction.one("SELECT hash FROM entry WHERE dataset = ? AND seq = ?", (name, seq)) != (value,)
    ]


def _first(store: str, turn: int, tag: str) -> bytes:
    """First line of the marks: the store."""
    return f'{{"store":"{store}","tag":"{tag}","turn":{turn}}}'.encode().ljust(_LINE - 1) + b"\n"


def _line(name: str, head: tuple[int, str]) -> bytes:
    """Line of the marks for a chain."""
    text = canonical({"dataset": name, "seq": head[0], "hash": head[1]})
    return text.encode().ljust(_LINE - 1) + b"\n"


def _parse(data: bytes) -> Marks:
    """Parse the content of a file of marks.

    Raises:
        ValueError: The content is invalid; also `TypeError`, `AttributeError` and `KeyError`.
    """
    first, *rest = [json.loads(line) for line in data.decode().splitlines()]
    if "turn" not in first:  # of an earlier version: heads alone, by dataset
        return Marks(heads={str(name): (int(seq), str(value)) for name, (seq, value) in first.items()})
    return Marks(
        store=str(first["store"]),
        turn=int(first["turn"]),
        tag=str(first["tag"]),
        heads={str(one["dataset"]): (int(one["seq"]), str(one["hash"])) for one in rest},
    )
