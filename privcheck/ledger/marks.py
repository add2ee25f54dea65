"""Whether a store is the newest copy of itself: heads of its chains kept beside it, or where its tables are.

A backup that was put back is whole in itself, and what was charged since then would be charged again. Beside a SQLite
file, in `FILE.heads`, are the newest heads that were written to it: after a commit, at most once a second, by an atomic
rename, so that a crash leaves them older than the file and never newer. A PostgreSQL database says itself in which
server, timeline, database and table it was made: a dump that was loaded has others, as has a server that was restored
to a moment, or promoted.
Either opens read-only until an officer has compared it with kept receipts (`Book.accept`). What is put back together
with its marks, file and heads or a snapshot of a whole disk, is not noticed: only receipts kept elsewhere show that.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from privcheck.ledger.exact import canonical
from privcheck.ledger.store import Transaction

Heads = Mapping[str, tuple[int, str]]  # by dataset: place and hash
COMPARE: Final = "compare it with kept receipts: privcheck ledger verify --receipts FILE --accept"


def heads_path(path: Path) -> Path:
    """Returns the file with the heads of a SQLite file's chains."""
    return Path(f"{path}.heads")


def read_heads(path: Path) -> dict[str, tuple[int, str]] | None:
    """Returns the heads that are kept beside a SQLite file; None where there are none, or they cannot be read."""
    try:
        found = json.loads(heads_path(path).read_text(encoding="utf-8"))
        return {str(name): (int(seq), str(value)) for name, (seq, value) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def write_heads(path: Path, heads: Heads) -> None:
    """Keeps heads beside a SQLite file, in place of all that were there; where the disk is full, older ones stay."""
    file = heads_path(path)
    part = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        try:
            descriptor = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(canonical({name: list(head) for name, head in heads.items()}))
            part.replace(file)
        except OSError:
            part.unlink(missing_ok=True)


def add_heads(path: Path, heads: Heads) -> None:
    """Keeps newer heads of some datasets beside a SQLite file."""
    known = read_heads(path) or {}
    write_heads(path, {**known, **{name: max(head, known.get(name, (0, ""))) for name, head in heads.items()}})


def find_heads(transaction: Transaction) -> dict[str, tuple[int, str]]:
    """Returns the heads of all chains in a store."""
    newest = "SELECT dataset, MAX(seq) AS seq FROM entry GROUP BY dataset"
    found = transaction.all(
        f"SELECT entry.dataset, entry.seq, hash FROM entry JOIN ({newest}) AS newest "  # noqa: S608 - constants
        "ON entry.dataset = newest.dataset AND entry.seq = newest.seq"
    )
    return {str(name): (int(seq or 0), str(value)) for name, seq, value in found}


def find_lost(transaction: Transaction, heads: Heads) -> list[str]:
    """Returns the datasets whose heads a store no longer has."""
    return [
        name
        for name, (seq, value) in sorted(heads.items())
        if transaction.one("SELECT hash FROM entry WHERE dataset = ? AND seq = ?", (name, seq)) != (value,)
    ]


def explain_doubt(transaction: Transaction, heads: Heads | None) -> str:
    """Returns why a SQLite file may be an older copy; empty where it is not, by what is kept beside it."""
    if heads is None:
        any_row = transaction.one("SELECT 1 FROM entry LIMIT 1")
        return "" if any_row is None else f"its heads, kept beside it in FILE.heads, are not there; {COMPARE}"
    lost = find_lost(transaction, heads)
    if not lost:
        return ""
    rows = ", ".join(f"row {heads[name][0]} of {name!r}" for name in lost)
    return f"it is an older copy: {rows} was written, and is not there; {COMPARE}"
