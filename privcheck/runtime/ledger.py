"""The ledger: an append-only record of every release, as JSON Lines with a hash chain.

The first line names the declaration, its parameters and the noise source; then one line per slice; the last line closes
it. Every line carries a BLAKE2b digest over itself and the line before, so the reader finds a line that was changed,
dropped, inserted or reordered, by number; a ledger without its closing line was cut short. It contains no data and no
exact value. A file is written under `<name>.partial`, line by line, and gets its name when it is closed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TextIO

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms.base import Charge
from privcheck.errors import LedgerError
from privcheck.support.files import partial_path
from privcheck.terms.unit import Unit

VERSION = 2  # since 2 `protects` is true of release noise alone
FILE_NAME = "ledger.jsonl"
PLANNED = "before the run: a plan of spending, from the declaration"
RECORDED = "release by release, as they left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One slice that the channel released.

    Attributes:
        release: The release's name.
        part: Index of the slice.
        charge: The cost of the whole release, on its first slice; None on the others.
        output: The digest of the published array.
    """

    release: str
    part: int
    charge: Charge | None
    output: str


class Records(Protocol):
    """Where a channel records its releases: a `Ledger`, or nowhere for what another ledger records."""

    def record(self, release: str, part: int, *, charge: Charge | None, output: str) -> None:
        """Append one slice."""
        ...

    def close(self) -> None:
        """Declare the record complete."""
        ...


class Ledger:
    """The record of one run.

    Args:
        declaration: The declaration of the permitted releases.
        values: Its parameters.
        noise: The noise source in words.
        as_declared: Whether that source draws fresh noise of the declared law; else the run has no finite cost.
        protects: Whether the outputs may be published; simulated noise follows the declared law but protects no user.
        path: Where the ledger is written; None keeps it in memory.
        planned: Whether it is a plan of spending, written from the declaration before anything was drawn; otherwise
            each line is written by the release that it records.
        unit: Who is protected in the data of the run; None for the declaration's own unit.

    Attributes:
        header: Declaration, parameters and noise source, as written in the first line.
        entries: The slices released so far.
        closed: Whether the closing line was written.
    """

    def __init__(
        self,
        declaration: Declaration,
        values: Mapping[str, Fraction],
        *,
        noise: str,
        as_declared: bool = True,
        protects: bool = False,
        path: Path | None = None,
        planned: bool = False,
        unit: Unit | None = None,
    ) -> None:
        self.header: dict[str, Any] = {
            "ledger": VERSION,
            "algorithm": declaration.name,
            "parameters": {name: str(value) for name, value in sorted(values.items())},
            "relation": declaration.relation.words,
            "unit": (unit or declaration.unit(values)).to_dict(),
            "noise": noise,
            "as_declared": as_declared,
            "protects": protects,
            "written": PLANNED if planned else RECORDED,
        }
        self.entries: list[Entry] = []
        self.closed = False
        self._abandoned = False
        self._path = path
        self._chain = ""
        self._file: TextIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = partial_path(path).open("w", encoding="utf-8")
        self._write(self.header)

    def record(self, release: str, part: int, *, charge: Charge | None, output: str) -> None:
        """Append one slice.

        Raises:
            LedgerError: The ledger is closed or abandoned.
        """
        if self.closed or self._abandoned:
            state = "closed" if self.closed else "abandoned"
            raise LedgerError(f"the ledger is {state}; a new run needs a new ledger")
        entry = Entry(release=release, part=part, charge=charge, output=output)
        self.entries.append(entry)
        self._write(_as_json(entry))

    def close(self) -> None:
        """Write the closing line and give the file its final name.

        Raises:
            LedgerError: The ledger was abandoned.
        """
        if self.closed:
            return
        if self._abandoned:
            raise LedgerError("the ledger was abandoned and stays without a closing line; a new run needs a new ledger")
        self._write({"closed": len(self.entries)})
        self.closed = True
        if self._file is not None and self._path is not None:
            self._file.close()
            partial_path(self._path).replace(self._path)

    def abandon(self) -> None:
        """End the ledger of a failed run without its closing line: the file stays as `<name>.partial`."""
        self._abandoned = not self.closed
        if self._file is not None:
            self._file.close()

    @property
    def digest(self) -> str:
        """Last link of the hash chain, which identifies the whole ledger."""
        return self._chain

    def _write(self, line: dict[str, Any]) -> None:
        self._chain = _link(self._chain, line)
        if self._file is not None:
            self._file.write(json.dumps({**line, "chain": self._chain}) + "\n")
            self._file.flush()


def read_ledger(path: Path) -> tuple[dict[str, Any], list[Entry]]:
    """Read header and entries of a complete ledger.

    Raises:
        LedgerError: The file cannot be read, or a line was changed, dropped, added or cut off; the message has its
            number.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()  # bad bytes break their line's hash
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    chain, parsed = "", []
    for number, text in enumerate(lines, start=1):
        try:
            line = json.loads(text)
            claimed = line.pop("chain")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LedgerError(
                f"{path.name}, line {number}: not a ledger line; truncated or edited", line=number
            ) from None
        chain = _link(chain, line)
        if claimed != chain or text != json.dumps({**line, "chain": chain}):
            message = (
                f"{path.name}, line {number}: the hash chain breaks; this line was edited, or an earlier one is missing"
            )
            raise LedgerError(message, line=number)
        parsed.append(line)
    if len(parsed) < 2 or parsed[-1].get("closed") != len(parsed) - 2:
        raise LedgerError(f"{path.name}: cut short after line {len(lines)}: no closing line", line=len(lines))
    if parsed[0].get("ledger") != VERSION:
        raise LedgerError(f"{path.name}, line 1: expected the header of a ledger of version {VERSION}", line=1)
    return parsed[0], [_entry(line, number) for number, line in enumerate(parsed[1:-1], start=2)]


def _link(chain: str, line: dict[str, Any]) -> str:
    text = chain + json.dumps(line, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _as_json(entry: Entry) -> dict[str, Any]:
    charged = None if entry.charge is None else {s: getattr(entry.charge, s) for s in Charge.__slots__}
    return {"release": entry.release, "part": entry.part, "charge": charged, "output": entry.output}


def _entry(line: dict[str, Any], number: int) -> Entry:
    try:
        charged = line["charge"]
        return Entry(
            release=line["release"],
            part=line["part"],
            charge=None if charged is None else Charge(**charged),
            output=line["output"],
        )
    except (KeyError, TypeError):
        raise LedgerError(f"line {number}: not a release", line=number) from None
