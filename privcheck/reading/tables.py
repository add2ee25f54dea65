"""CSV and Parquet files as named columns, with the place of every row in the file."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reading.problems import Problems
from privcheck.reading.users import DEPENDS, METADATA, RECIPE

CONVENTIONS = {"line": "lines count the header as line 1", "row": "rows count from 1"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A file's columns, not yet looked at.

    Attributes:
        format: "CSV" or "Parquet".
        unit: What places count: "line" of a text file or "row".
        lines: The place of every row, in file order.
        columns: Arrow columns by name; CSV columns are text. Taken out one by one, to free memory.
        ignored: The columns of the file that were not asked for.
        stored: The unit of privacy in a Parquet file's metadata, as JSON; None where there is none.
        recipe: There too: the digest of the recipe that it was prepared by; empty without one.
        depends_on_data: There too: the choices of its preparation that looked at the data, in words; empty without one.
    """

    format: str
    unit: str
    lines: NDArray[np.int64]
    columns: dict[str, Any]
    ignored: tuple[str, ...]
    stored: bytes | None = None
    recipe: str = ""
    depends_on_data: str = ""

    @property
    def rows(self) -> int:
        """Returns the number of rows."""
        return len(self.lines)

    def place(self, row: int) -> str:
        """Returns where a row stands in the file, in words."""
        return f"{self.unit} {self.lines[row]}"


def require_file(path: Path | str, extensions: Sequence[str]) -> Path:
    """Returns the path if it is a file with one of the extensions.

    Raises:
        FileFormatError: It is missing, a directory, empty, or ends differently.
    """
    path = Path(path)
    wanted = ", ".join(extensions)
    if path.is_dir():
        raise FileFormatError(f"{path} is a directory: expected one file ({wanted})")
    if path.suffix.lower() not in extensions:
        raise FileFormatError(f"{path}: expected a file that ends in {wanted}, got {path.suffix or 'no ending'}")
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise FileFormatError(f"{path} is empty: expected rows")
    return path


def read_table(path: Path, *, needed: Sequence[str], optional: Sequence[str], problems: Problems) -> Table:
    """Returns the needed columns, and the optional ones that are there.

    Args:
        path: A .csv or .parquet file.
        needed: Columns that must be there.
        optional: Columns that are read if they are there.
        problems: Lines with too few or too many values are added here.

    Raises:
        FileFormatError: The file is not what its name says, a needed column is missing, one occurs twice, or there are
            no rows.
    """
    try:
        if path.suffix.lower() == ".csv":
            table = _read_csv(path, needed, optional, problems)
        else:
            table = _read_parquet(path, needed, optional)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error}") from None
    if not table.rows and not problems.lines:
        raise FileFormatError(f"{path} has a header and no rows: expected a row a step")
    return table


def as_table(held: Any, *, needed: Sequence[str], optional: Sequence[str]) -> Table:
    """Returns the columns of a table in memory, as `read_table` does of one in a file.

    Args:
        held: A pandas frame, a pyarrow table, or any other that speaks Arrow (`__arrow_c_stream__`): polars, DuckDB.
        needed: Columns that must be there.
        optional: Columns that are read if they are there.

    Raises:
        FileFormatError: It has no rows, a needed column is missing, one occurs twice, or Arrow has no form for one.
        ParameterError: It is neither.
    """
    import pyarrow as pa

    kind, path = type(held).__name__, Path(type(held).__name__)
    frame = hasattr(held, "iloc")  # pandas'; columns that are not asked for may hold what Arrow has no form for
    try:
        if not frame and not isinstance(held, pa.Table):
            if not hasattr(held, "__arrow_c_stream__"):
                message = (
                    f"expected a file, a pandas frame, a pyarrow table or Trajectories; got a value of type {kind}"
                )
                raise ParameterError(message, name="data")
            held = pa.table(held)
        names = list(map(str, held.columns if frame else held.column_names))
        chosen = _choose(path, names, needed, optional)
        read = pa.Table.from_pandas(held[chosen], preserve_index=False) if frame else held.select(chosen)
    except pa.ArrowException as error:
        raise FileFormatError(f"{kind}: a column cannot be read: {_first_line(error)}") from None
    if not read.num_rows:
        raise FileFormatError(f"{kind} has no rows: expected a row a step")
    return Table(
        format=kind,
        unit="row",
        lines=np.arange(1, read.num_rows + 1),
        columns={name: read.column(name) for name in chosen},
        ignored=tuple(name for name in names if name not in chosen),
    )


def _read_parquet(path: Path, needed: Sequence[str], optional: Sequence[str]) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            metadata = file.schema_arrow.metadata or {}
            chosen = _choose(path, names, needed, optional)
            read = file.read(columns=chosen)
    except pa.ArrowException as error:
        raise FileFormatError(f"{path}: cannot be read as Parquet: {_first_line(error)}") from None
    return Table(
        format="Parquet",
        unit="row",
        lines=np.arange(1, read.num_rows + 1),
        columns={name: read.column(name) for name in chosen},
        ignored=tuple(n for n in names if n not in chosen),
        stored=metadata.get(METADATA),
        recipe=metadata.get(RECIPE, b"").decode("ascii", "replace"),
        depends_on_data=_read_choices(path, metadata.get(DEPENDS, b"[]")),
    )


def _read_choices(path: Path, given: bytes) -> str:
    try:
        choices = json.loads(given)
        return "; ".join(choices)
    except (TypeError, ValueError):
        raise FileFormatError(
            f"{path}: {DEPENDS.decode()} in its metadata is damaged; prepare the file again"
        ) from None


def _read_csv(path: Path, needed: Sequence[str], optional: Sequence[str], problems: Problems) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = _header(path)
    chosen = _choose(path, names, needed, optional)
    lines_in_file = _count_lines(path)
    torn: list[tuple[int, int]] = []

    def note(row: Any) -> str:
        torn.append((int(row.number), int(row.actual_columns)))
        return "skip"

    if lines_in_file == 1:
        return _as_csv(
            chosen, names, {name: pa.chunked_array([], pa.string()) for name in chosen}, np.empty(0, np.int64)
        )
    try:
        read = arrow_csv.read_csv(
            path,
            # one thread: only then a torn line knows its number
            read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False, block_size=1 << 22),
            parse_options=arrow_csv.ParseOptions(ignore_empty_lines=False, invalid_row_handler=note),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=chosen, column_types=dict.fromkeys(chosen, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        raise FileFormatError(f"{path}: cannot be read as CSV: {_first_line(error)}") from None
    if read.num_rows + len(torn) + 1 != lines_in_file:
        raise FileFormatError(
            f"{path}: expected one row a line, but a value runs over the end of line {_open_quote(path)} "
            "(a quotation mark that is not closed, or a line break within quotes)"
        )
    lines = np.arange(2, lines_in_file + 1)
    lines = np.delete(lines, np.array([number - 2 for number, _ in torn], dtype=np.intp))
    values = dict(torn)
    problems.add(
        f"expected {len(names)} values a line, as in the header",
        np.array([number for number, _ in torn], dtype=np.intp),
        lambda number: f"line {number} has {values[number]}",
    )
    return _without_blank_lines(_as_csv(chosen, names, {name: read.column(name) for name in chosen}, lines))


def _as_csv(chosen: list[str], names: list[str], columns: dict[str, Any], lines: NDArray[np.int64]) -> Table:
    ignored = tuple(name for name in names if name not in chosen)
    return Table(format="CSV", unit="line", lines=lines, columns=columns, ignored=ignored)


def _without_blank_lines(table: Table) -> Table:
    import pyarrow.compute as pc

    blank = np.ones(table.rows, dtype=np.bool_)
    for column in table.columns.values():
        if not blank.any():
            return table
        blank &= pc.equal(pc.binary_length(column), 0).to_numpy()
    return Table(
        format=table.format,
        unit=table.unit,
        lines=table.lines[~blank],
        columns={name: column.filter(~blank) for name, column in table.columns.items()},
        ignored=table.ignored,
        stored=table.stored,
    )


def _header(path: Path) -> list[str]:
    with path.open("rb") as file:
        first = file.readline(1 << 16)
    try:
        text = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise FileFormatError(f"{path}: expected a text file (UTF-8) with comma-separated values, got something else")
    return [name.strip() for name in next(csv.reader([text]), [])]


def _choose(path: Path, names: list[str], needed: Sequence[str], optional: Sequence[str]) -> list[str]:
    missing = [name for name in needed if name not in names]
    choices = ", ".join(names)[:200] or "none"
    if missing:
        hint = "; separate the values by commas" if len(names) == 1 and {";", "\t", "|"} & set(names[0]) else ""
        raise FileFormatError(
            f"{path}: no column {', '.join(missing)}; expected columns {', '.join(needed)}, found: {choices}{hint}"
        )
    chosen = [*needed, *(name for name in optional if name in names)]
    twice = [name for name in chosen if names.count(name) > 1]
    if twice:
        raise FileFormatError(f"{path}: column {', '.join(twice)} occurs more than once; keep one of each")
    return chosen


def _count_lines(path: Path) -> int:
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def _open_quote(path: Path) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.count(b'"') % 2:
                return str(number)
    return "1"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0]
