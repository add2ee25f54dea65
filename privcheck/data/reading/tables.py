"""CSV, Parquet and NPZ files as named columns, with the place of every row and a list of all problems."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.reading.users import DEPENDS, METADATA, RECIPE
from privcheck.errors import FileFormatError, ParameterError

SHOWN = 5  # places of one kind that a message lists


class Problems:
    """A list of problems, collected while a file is checked.

    Attributes:
        lines: One line per kind of problem.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, what: str, bad: NDArray[np.bool_] | NDArray[np.intp], show: Callable[[int], str]) -> None:
        """Add one kind of problem, unless it does not occur.

        Args:
            what: The problem, the expected value and what to do.
            bad: Mask or indices of the bad rows.
            show: Text of an index: its place in the file, never a private value, as a message may reach a log.
        """
        where = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        if not len(where):
            return
        shown = "; ".join(show(int(i)) for i in where[:SHOWN])
        more = f"; and {len(where) - SHOWN:,} more" if len(where) > SHOWN else ""
        self.lines.append(f"{what}: {shown}{more}")

    def say(self, line: str) -> None:
        """Add a problem without a place."""
        self.lines.append(line)


CONVENTIONS = {"line": "lines count the header as line 1", "row": "rows count from 1"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A file's columns, not yet checked.

    Attributes:
        format: "CSV" or "Parquet".
        unit: Unit of places: "line" of a text file or "row".
        lines: Place of every row, in file order.
        columns: Arrow columns by name; CSV columns are text. They are removed one by one, to free memory.
        ignored: Columns of the file that were not requested.
        stored: The unit of privacy in a Parquet file's metadata, as JSON; None if there is none.
        recipe: Digest of its recipe in the same metadata; empty without one.
        depends_on_data: Choices of its preparation that depend on the data, in the same metadata, in words; or empty.
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
        """Number of rows."""
        return len(self.lines)

    def place(self, row: int) -> str:
        """Place of a row in the file, in words."""
        return f"{self.unit} {self.lines[row]}"


def require_file(path: Path | str, extensions: Sequence[str]) -> Path:
    """Check that the path is a non-empty file with one of the extensions, and return it.

    Raises:
        FileFormatError: The file is missing, a directory, empty, or has another extension.
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
    """Read the needed columns, and the optional ones that exist.

    Args:
        path: A .csv or .parquet file.
        needed: Required columns.
        optional: Columns that are read if they exist.
        problems: List to which lines with too few or too many values are added.

    Raises:
        FileFormatError: The content does not match the extension, a needed column is missing, a column occurs twice, or
            there are no rows.
    """
    try:
        if path.suffix.lower() == ".csv":
            table = _read_csv(path, needed, optional, problems)
        else:
            table = _read_parquet(path, needed, optional)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error}") from None
    if not table.rows and not problems.lines:
        raise FileFormatError(f"{path} has a header but no rows: expected one row per step")
    return table


def as_table(held: Any, *, needed: Sequence[str], optional: Sequence[str]) -> Table:
    """The columns of a table in memory, as `read_table` gives those of a file.

    Args:
        held: A pandas frame, a pyarrow table, or any other with the Arrow interface (`__arrow_c_stream__`): polars,
            DuckDB.
        needed: Required columns.
        optional: Columns that are read if they exist.

    Raises:
        FileFormatError: The table has no rows, a needed column is missing, a column occurs twice, or Arrow cannot
            represent one.
        ParameterError: The value is not such a table.
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
        raise FileFormatError(f"{kind} has no rows: expected one row per step")
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
            f"{path}: expected one row per line, but a value runs over the end of line {_open_quote(path)} "
            "(a quotation mark that is not closed, or a line break within quotes)"
        )
    lines = np.arange(2, lines_in_file + 1)
    lines = np.delete(lines, np.array([number - 2 for number, _ in torn], dtype=np.intp))
    values = dict(torn)
    problems.add(
        f"expected {len(names)} values per line, as in the header",
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
        if "episode" in needed:
            hint += f". A table of another form becomes one: privcheck prepare {path} --draft recipe.toml"
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


_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:nan|inf|infinity)$"  # what Arrow's own parser takes
_LARGEST = 2**53  # whole numbers up to here are exact as floats

Show = Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """A column of whole numbers.

    Attributes:
        values: The numbers, shape (rows,); 0 where `valid` is False.
        valid: Whether there is a whole number of at least 0, shape (rows,).
    """

    values: NDArray[np.int64]
    valid: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Identifiers:
    """A column of names of episodes or users.

    Attributes:
        codes: Position of each row's name in `names`, shape (rows,); −1 where it is missing.
        names: The distinct names in ascending order.
    """

    codes: NDArray[np.int64]
    names: NDArray[Any]


def real_numbers(table: Table, name: str, problems: Problems) -> NDArray[np.float64]:
    """A column as floats; values that are not finite numbers become NaN and a problem with its place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decode(table.columns.pop(name))
    kind = column.type
    if pa.types.is_string(kind) and table.format == "CSV":
        text = pc.utf8_trim_whitespace(column)
        column, broken = _parse(pc.if_else(pc.equal(text, ""), None, text))
        problems.add(f"{name}: expected a number", broken, table.place)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        if not pa.types.is_null(kind):
            problems.say(f"{name}: expected a column of numbers, got one of type {kind}")
            return np.full(table.rows, np.nan)
        broken = np.zeros(table.rows, dtype=np.bool_)
    else:
        broken = np.zeros(table.rows, dtype=np.bool_)
    empty = column.is_null().to_numpy() & ~broken
    values: NDArray[np.float64] = np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    problems.add(f"{name}: empty", empty, table.place)
    problems.add(f"{name}: not finite", ~(np.isfinite(values) | empty | broken), table.place)
    values[~np.isfinite(values)] = np.nan
    return values


def whole_numbers(table: Table, name: str, problems: Problems) -> Whole:
    """A column of ids or steps; values that are not whole numbers of at least 0 are problems with their places."""
    return as_whole(name, real_numbers(table, name, problems), table.place, problems)


def as_whole(name: str, values: NDArray[np.float64], place: Show, problems: Problems) -> Whole:
    """Convert finite floats to whole numbers (3.0 is one, 3.5 is not); NaN is invalid without a further problem."""
    valid = np.isfinite(values)
    fraction = valid & (values != np.floor(values))
    problems.add(f"{name}: expected a whole number", fraction, place)
    negative = valid & ~fraction & (values < 0)
    problems.add(f"{name}: expected a number of at least 0", negative, place)
    valid &= ~fraction & ~negative
    # a float above 2⁵³ may have been another number; cut to 2⁶², it is out of every range that follows
    exact = np.minimum(np.where(valid, values, 0.0), 2.0**62).astype(np.int64)
    return Whole(values=exact, valid=valid)


def check_range(name: str, column: Whole, size: int, place: Show, problems: Problems) -> NDArray[np.bool_]:
    """Mask of the ids in [0, size); the others are a problem."""
    beyond = column.valid & (column.values >= size)
    problems.add(f"{name}: expected an id in 0..{size - 1}", beyond, place)
    return column.valid & ~beyond


def check_unit_interval(name: str, values: NDArray[np.float64], place: Show, problems: Problems) -> None:
    """Report finite values outside [0, 1]."""
    outside = np.isfinite(values) & ~((values >= 0) & (values <= 1))
    what = f"{name}: expected a value in [0, 1] (rescale by bounds that are publicly known, not by the data's own)"
    problems.add(what, outside, place)


def identifiers(table: Table, name: str, problems: Problems) -> Identifiers:
    """A column of names, either whole numbers (sorted as numbers) or text; missing names are a problem."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decode(table.columns.pop(name))
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        problems.say(f"{name}: expected a column of whole numbers or text, got one of type {kind}")
        return Identifiers(codes=np.full(table.rows, -1), names=np.empty(0, dtype=np.int64))
    if pa.types.is_string(kind):
        text = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(text, ""), None, text)
    elif pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)
    problems.add(f"{name}: empty", column.is_null().to_numpy(), table.place)
    if pa.types.is_integer(kind):
        return _number(column, name, table, problems)
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    names = _as_integers(encoded.dictionary)
    if names is None and pa.types.is_floating(kind):
        problems.say(f"{name}: expected whole numbers or text, got numbers with a fraction")
        return Identifiers(codes=np.full(table.rows, -1), names=np.empty(0, dtype=np.int64))
    if names is None:
        names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    ordered, position = np.unique(names, return_inverse=True)
    codes = np.where(codes < 0, -1, np.append(position, -1)[codes])
    return _without_negative(codes, ordered, name, table, problems)


def _number(column: Any, name: str, table: Table, problems: Problems) -> Identifiers:
    import pyarrow.compute as pc

    empty = column.is_null().to_numpy()
    values = pc.fill_null(column, 0).to_numpy()
    steps = values[1:] != values[:-1]
    if len(values) and bool(np.all(values[1:] >= values[:-1])):  # sorted already, as most files are: no second sort
        codes = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
        names = values[np.concatenate([[True], steps])]
    else:
        names, codes = np.unique(values, return_inverse=True)
    return _without_negative(np.where(empty, -1, codes), names, name, table, problems)


def _without_negative(
    codes: NDArray[np.int64], names: NDArray[Any], name: str, table: Table, problems: Problems
) -> Identifiers:
    if np.issubdtype(names.dtype, np.signedinteger) and len(names) and names[0] < 0:
        negative = (codes >= 0) & (names[codes] < 0)
        what = f"{name}: expected a number of at least 0 (−1 often means a missing value)"
        problems.add(what, negative, table.place)
        codes = np.where(negative, -1, codes)
    return Identifiers(codes=codes, names=names)


def _as_integers(distinct: Any) -> NDArray[np.int64] | None:
    import pyarrow as pa

    if pa.types.is_string(distinct.type):
        parsed, broken = _parse(pa.chunked_array([distinct]))
        values = np.array(parsed.to_numpy(), dtype=np.float64)
    else:
        values = np.array(distinct.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        broken = np.zeros(len(values), dtype=np.bool_)
    whole = ~broken & np.isfinite(values) & (np.abs(values) < _LARGEST) & (values == np.floor(values))
    return values.astype(np.int64) if bool(whole.all()) else None


def _parse(text: Any) -> tuple[Any, NDArray[np.bool_]]:
    """A column of text as floats, null if missing or not a number, and a mask of the texts that are not numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(text, pa.float64()), np.zeros(len(text), dtype=np.bool_)
    except pa.ArrowInvalid:
        number = pc.match_substring_regex(text, _NUMBER)
        broken = pc.fill_null(pc.invert(number), False).to_numpy()
        return pc.cast(pc.if_else(number, text, None), pa.float64()), broken


def _decode(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or str(column.type) == "string_view":
        column = column.cast(pa.string())
    return column


def load_arrays(
    path: Path, *, needed: Sequence[str], optional: Sequence[str] = ()
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Load the needed arrays and the optional ones that exist; also return the names of all others.

    Raises:
        FileFormatError: The file is not such an archive, or a needed array is missing.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            names = list(file.files)
            arrays = {name: file[name] for name in (*needed, *optional) if name in names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise FileFormatError(
            f"{path}: expected an NPZ archive of plain arrays as numpy.savez writes it; got another or damaged file, "
            "or pickled objects, which are never loaded"
        ) from None
    missing = [name for name in needed if name not in arrays]
    if missing:
        message = f"no array {', '.join(missing)}; expected {', '.join(needed)}, found {', '.join(names) or 'none'}"
        raise FileFormatError(f"{path}: {message}")
    return arrays, [name for name in names if name not in arrays]
