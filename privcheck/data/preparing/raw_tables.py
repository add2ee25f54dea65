"""Raw tables in chunks of whole episodes: any format that pyarrow reads, with columns renamed to ours.

Messages give the row in the file and the expected value; they never repeat pyarrow's quotes of private values.
"""

from __future__ import annotations

import re
from codecs import lookup
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from csv import reader
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, dataset

from privcheck.data.preparing.recipes import COLUMNS, PreparationPlan, name_bins, read_seconds
from privcheck.data.reading.tables import Problems, require_file
from privcheck.data.reading.users import refuse_unknown
from privcheck.errors import FileFormatError, TrajectoryError

FORMATS: Final = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".feather": "feather", ".arrow": "ipc", ".ipc": "ipc",
    ".orc": "orc", ".json": "json", ".jsonl": "json",
    ".txt": "csv",
}  # fmt: skip
_BATCH: Final = 2**18  # rows of a chunk, about
_BLOCK: Final = 1 << 20  # characters of a block of lines, about
_TEXT: Final = ("state", "action", "next_state")
_ROW: Final = "\0row"  # the column with the rows' numbers in the file
_SHOWN: Final = 5  # malformed lines that a message lists
_WHOLE: Final = r"^(0|[1-9]\d{0,17})$"  # the only spelling of a number
_NUMBER: Final = r"^[-+]?(\d+(D\d*)?|D\d+)([eE][-+]?\d+)?$"  # D: the decimal mark
_ISO: Final = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[-+]\d{2}:?\d{2})?)?$"
_ZONE: Final = r":\d{2}.*(Z|[-+]\d{2}:?\d{2})$"
_NUMERIC: Final = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
)  # fmt: skip
Change = tuple[int, str, str]  # row of the file, what was done, with what


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """Rows of whole episodes, in the order of reading.

    Attributes:
        numbers: Row numbers in the file, shape (rows,), from 1: those of a text file's lines, header included.
        columns: Arrow arrays by our names, for the columns in the file.
        starts: Index of each episode's first row.
        changes: Changes to rows before episodes were formed.
    """

    numbers: NDArray[np.int64]
    columns: dict[str, pa.Array]
    starts: NDArray[np.intp]
    changes: tuple[Change, ...] = field(default=())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns["episode"])


def read_chunks(path: Path, plan: PreparationPlan, *, but: str = "") -> Iterator[Chunk]:
    """Yield the file's episodes, some hundred thousand rows at a time, without the column `but` of ours.

    Raises:
        FileFormatError: The file cannot be read, lacks a column, or the rows of an episode are not contiguous.
        TrajectoryError: There are several rows of one step, or invalid times, and the plan has no rule for them.
    """
    source = open_table(path, plan)
    names = {name: theirs for name, theirs in _find_columns(path, source.schema.names, plan).items() if name != but}
    rest: pa.Table | None = None
    ended = set[Any]()
    changes: list[Change] = []
    try:
        for table in _tables(source, names, plan, changes):
            whole = table if rest is None else pa.concat_tables([rest, table])
            change = _changes(whole.column("episode"))
            keep = int(change[-1]) if change.size else 0  # the last episode may go on in the next chunk
            rest = whole.slice(keep)
            if keep:
                yield _chunk(whole.slice(0, keep), change[:-1], ended, changes)
        if rest is not None and rest.num_rows:
            yield _chunk(rest, _changes(rest.column("episode")), ended, changes)
    except pa.ArrowException as error:
        _explain(path, plan, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An opened file.

    Attributes:
        schema: Schema of the file.
        read: Function that yields columns as tables, each with the row numbers in the file.
        dropped: Unreadable rows that are left out.
        text: Whether all columns are of texts, as those of text files.
    """

    schema: pa.Schema
    read: Callable[[Sequence[str]], Iterator[tuple[NDArray[np.int64], pa.Table]]]
    dropped: tuple[Change, ...] = ()
    text: bool = False


def open_table(path: Path, plan: PreparationPlan) -> Source:
    """Open a raw table.

    Raises:
        FileFormatError: The file cannot be read, or text options are given for another format.
    """
    path = require_file(path, tuple(FORMATS))
    kind: Any = FORMATS[path.suffix.lower()]
    if kind != "csv" and (plan.encoding, plan.decimal, plan.malformed) != ("utf-8", ".", "refuse"):
        about_text = "--encoding, --decimal and --malformed"
        message = f"{path}: {about_text} are for text files, but this is {path.suffix}: leave them out"
        raise FileFormatError(message)
    if kind == "csv":
        return _with_made_columns(_open_text(path, plan), plan)
    try:
        source = dataset.dataset(path, format=kind)
    except (pa.ArrowException, OSError) as error:
        said = "" if "Row #" in str(error) else f": {str(error).splitlines()[0]}"
        raise FileFormatError(f"{path}: cannot be read as {kind}{said}") from None

    def read(columns: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:
        first = 1
        for batch in source.to_batches(columns=list(columns), batch_size=_BATCH, use_threads=True):
            if batch.num_rows:
                yield np.arange(first, first + batch.num_rows), pa.Table.from_batches([batch])
                first += batch.num_rows

    return _with_made_columns(Source(schema=source.schema, read=read), plan)


def _with_made_columns(source: Source, plan: PreparationPlan) -> Source:
    """The file with numbers in bins as the bins' labels, and columns that a plan makes of several: "age + lab"."""
    there = source.schema.names
    made = {name: split_name(name, there) for name in plan.columns.values()}
    made = {name: parts for name, parts in made.items() if len(parts) > 1}
    if not made and not plan.bins:
        return source
    kinds = [pa.field(f.name, pa.string() if f.name in plan.bins else f.type) for f in source.schema]
    schema = pa.schema([*kinds, *(pa.field(name, pa.string()) for name in made)])

    def read(columns: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:
        wanted = list(dict.fromkeys(part for name in columns for part in made.get(name, (name,))))
        for numbers, table in source.read(wanted):
            found = {part: _bins_of(table.column(part), part, numbers, plan) for part in wanted}
            yield (
                numbers,
                pa.table({name: _joined([found[p] for p in made.get(name, (name,))], plan) for name in columns}),
            )

    return replace(source, schema=schema, read=read)


def split_name(name: str, there: Sequence[str]) -> tuple[str, ...]:
    """The file's columns of which "age + lab" is made; the name alone if the file has such a column."""
    parts = tuple(name.split(" + "))
    return parts if name not in there and set(parts) <= set(there) else (name,)


def _bins_of(column: pa.ChunkedArray, name: str, numbers: NDArray[np.int64], plan: PreparationPlan) -> Any:
    """A column as the labels of its bins, if it has any."""
    if name not in plan.bins:
        return column
    values, odd = as_numbers(column, plan.decimal)
    _refuse_rows(name, plan, numbers, odd, "a number, as the column is binned")
    labels = np.array(name_bins(plan.bins[name]))[np.searchsorted(plan.bins[name], values, side="right")]
    return pa.array(labels, pa.string(), mask=np.isnan(values))


def _joined(parts: Sequence[Any], plan: PreparationPlan) -> Any:
    """One column as it is; several as texts with the labels of all, missing where one is."""
    if len(parts) == 1:
        return parts[0]
    texts = [pc.utf8_trim_whitespace(part.cast(pa.string())) for part in parts]
    aliases = plan.aliases.get("state", {})
    if aliases:
        known, meant = (pa.array(list(each), pa.string()) for each in (aliases, aliases.values()))
        places = [pc.index_in(text, value_set=known) for text in texts]
        texts = [
            pc.coalesce(meant.take(_whole_array(at)), _whole_array(text))
            for text, at in zip(texts, places, strict=True)
        ]
    return pc.binary_join_element_wise(*texts, " + ")


def _whole_array(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _delimiter(path: Path, plan: PreparationPlan) -> str:
    return plan.delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")


def open_lines(path: Path, plan: PreparationPlan) -> TextIO:
    """Open a text file after the lines to skip.

    Raises:
        FileFormatError: There is no such encoding.
    """
    try:
        name = lookup(plan.encoding).name
    except LookupError:
        message = f"--encoding {plan.encoding}: no such encoding; try utf-8, utf-16, latin-1 or cp1252"
        raise FileFormatError(message) from None
    file = path.open(encoding="utf-8-sig" if name == "utf-8" else name, newline="")
    for _ in range(plan.skip):
        file.readline()
    return file


def _open_text(path: Path, plan: PreparationPlan) -> Source:
    """Open a text file: all values are texts, so that no identifier is taken for a number and no value for a type."""
    try:
        names, _ = _read_header(path, plan)
        torn = find_torn(path, plan) if plan.malformed == "drop" else []
    except UnicodeError as error:
        _explain(path, plan, error)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FileFormatError(f"{path}: two columns are called {twice[0]!r}: rename one")
    changes = tuple((row, "row left out", f"{count} values") for row, count in torn)
    schema = pa.schema([(name, pa.string()) for name in names])
    return Source(schema=schema, read=partial(_read_blocks, path, plan), dropped=changes, text=True)


def _read_header(path: Path, plan: PreparationPlan) -> tuple[list[str], int]:
    """Column names of a text file, and the number of lines before its first row."""
    lines = plan.skip
    with open_lines(path, plan) as file:
        for line in file:
            lines += 1
            if line.strip("\r\n"):
                return next(reader([line], delimiter=_delimiter(path, plan))), lines
    return [], lines


def _read_blocks(
    path: Path, plan: PreparationPlan, columns: Sequence[str]
) -> Iterator[tuple[NDArray[np.int64], pa.Table]]:  # fmt: skip
    """Yield a text file's rows in blocks of whole lines: no value has a line break, as pyarrow reads it by default.

    pyarrow would call Python for malformed rows from threads of its own. They go on for a while after a refusal, and
    abort the process if the interpreter has ended by then: each block is read in this thread.
    """
    names, done = _read_header(path, plan)
    torn: list[int] = []

    def drop(row: csv.InvalidRow) -> str:
        torn.append(row.number - 1)
        return "skip"

    parse = csv.ParseOptions(delimiter=_delimiter(path, plan))
    if plan.malformed == "drop":
        parse.invalid_row_handler = drop
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=list(dict.fromkeys(columns)),
        strings_can_be_null=True,
    )
    with open_lines(path, plan) as file:
        for _ in range(done - plan.skip):
            file.readline()
        while lines := _some_lines(path, plan, file):
            # pyarrow leaves out empty lines
            numbers = np.flatnonzero([bool(line.strip("\r\n")) for line in lines]) + done + 1
            block = "".join(lines).encode()
            options = csv.ReadOptions(column_names=names, use_threads=False, block_size=max(_BLOCK, len(block) + 1))
            torn.clear()
            table = csv.read_csv(pa.BufferReader(block), options, parse, convert)
            numbers = np.delete(numbers, torn)
            done += len(lines)
            if table.num_rows:
                yield numbers, _without(table, plan.empty)


def _some_lines(path: Path, plan: PreparationPlan, file: TextIO) -> list[str]:
    try:
        return file.readlines(_BLOCK)
    except UnicodeError as error:
        _explain(path, plan, error)


def _without(table: pa.Table, empty: Sequence[str]) -> pa.Table:
    """The table of texts with those that mean a missing value removed, and blanks."""
    for index, name in enumerate(table.column_names):
        trimmed = pc.utf8_trim_whitespace(table.column(index))
        missing = pc.is_in(trimmed, value_set=pa.array(["", *empty], pa.string()))
        if pc.any(missing).as_py():
            table = table.set_column(index, name, pc.if_else(missing, None, table.column(index)))
    return table


def find_torn(path: Path, plan: PreparationPlan) -> list[tuple[int, int]]:
    """The rows of a text file with another number of values than its header, with that number."""
    names, before = _read_header(path, plan)
    with open_lines(path, plan) as file:
        for _ in range(before - plan.skip):
            file.readline()
        lines = reader(file, delimiter=_delimiter(path, plan))
        return [
            (row, len(line)) for row, line in enumerate(lines, start=before + 1) if line and len(line) != len(names)
        ]


def _explain(path: Path, plan: PreparationPlan, error: Exception) -> NoReturn:
    """Report the problem of a file and its place, without quoting values.

    Raises:
        FileFormatError: Always.
    """
    text = str(error)
    if isinstance(error, UnicodeError):
        message = f"{path}: not {plan.encoding} text; say its encoding: --encoding latin-1, cp1252 or utf-16"
        raise FileFormatError(message) from None
    if "CSV parse error" in text and (torn := find_torn(path, plan)):
        shown = "; ".join(f"row {row} has {count}" for row, count in torn[:_SHOWN])
        more = f"; and {len(torn) - _SHOWN:,} more" if len(torn) > _SHOWN else ""
        message = f"{path}: rows with another number of values than the header: {shown}{more}"
        remedy = 'Correct them, or leave them out: --malformed drop, malformed = "drop" under [file] of a recipe'
        raise FileFormatError(f"{message}. {remedy}") from None
    kind = FORMATS[path.suffix.lower()]
    raise FileFormatError(f"{path}: cannot be read as {kind} ({type(error).__name__})") from None


def refuse_unknown_users(path: Path, plan: PreparationPlan) -> None:
    """Refuse a raw table of unknown users; errors as of `privcheck.data.reading.users.refuse_unknown`."""
    source = open_table(path, plan)
    names = _find_columns(path, source.schema.names, plan)

    def look(wanted: Sequence[str]) -> Mapping[str, Any]:
        episode = "episode" if "episode" in names else "terminal"
        columns = {name: names[episode] if name == "episode" else name for name in wanted}
        read = read_whole(source, list(dict.fromkeys(columns.values())))[1]
        found = {name: read.column(theirs) for name, theirs in columns.items()}
        if episode == "terminal":
            ends = pa.table({"terminal": found["episode"]})
            found["episode"] = count_episodes(ends, 0)[0].column("episode")
        return found

    ours = {theirs: name for name, theirs in names.items()}
    others = [name for name in source.schema.names if ours.get(name, "user") == "user"]
    users = plan.users
    refuse_unknown(str(path), replace(users, column=None), None, [ours.get(name, name) for name in others], look)


def _find_columns(path: Path, there: Sequence[str], plan: PreparationPlan) -> dict[str, str]:
    """The file's name of each of our columns that it has."""
    missing = [name for name in {*plan.needed, *plan.columns} if plan.find(name) not in there]
    if missing:
        lacks = ", ".join(plan.find(name) for name in COLUMNS if name in missing)
        message = f"{path}: no column {lacks}; it has {', '.join(there)}"
        raise FileFormatError(
            f"{message}. Name them: {' '.join(f'--column {name}=…' for name in COLUMNS if name in missing)}"
        )
    found = {name: plan.find(name) for name in COLUMNS if plan.find(name) in there}
    return found if "terminal" in plan.columns else {name: find for name, find in found.items() if name != "terminal"}


def read_whole(source: Source, columns: Sequence[str]) -> tuple[NDArray[np.int64], pa.Table]:
    """Columns of all rows, with their row numbers in the file."""
    read = [(numbers, _plain(table.select(list(columns)))) for numbers, table in source.read(columns)]
    if not read:
        return np.zeros(0, np.int64), source.schema.empty_table().select(list(columns))
    return np.concatenate([numbers for numbers, _ in read]), pa.concat_tables([table for _, table in read])


def _tables(
    source: Source, names: dict[str, str], plan: PreparationPlan, changes: list[Change]
) -> Iterator[pa.Table]:  # fmt: skip
    """Yield the rows by our names, with their row numbers in the column `_ROW`; changes are recorded."""
    columns = list(names.values())
    changes.extend(source.dropped)
    finished = 0
    if not plan.sort:
        for numbers, batch in source.read(columns):
            table = _with_steps(_plain(batch.select(columns).rename_columns(list(names))), numbers, plan)
            if "episode" not in names:
                table, finished = count_episodes(table, finished)
            yield table.append_column(_ROW, pa.array(numbers))
        return
    numbers, whole = read_whole(source, columns)
    whole = _with_steps(_in_order(whole.rename_columns(list(names))), numbers, plan)
    whole = whole.append_column(_ROW, pa.array(numbers))
    # by the row as well: pyarrow's sort is free to turn rows with equal keys around
    whole = whole.sort_by([(name, "ascending") for name in ("episode", "step", _ROW) if name in whole.column_names])
    whole = _place(whole, plan, changes)
    yield from (whole.slice(k, _BATCH) for k in range(0, whole.num_rows, _BATCH))


def _in_order(table: pa.Table) -> pa.Table:
    """The table with episodes as numbers if their names are, so that 9 stands before 10; 007 is a name of its own."""
    at = table.column_names.index("episode")
    episode = table.column("episode")
    if pa.types.is_string(episode.type) and pc.all(pc.match_substring_regex(episode, _WHOLE)).as_py():
        return table.set_column(at, "episode", episode.cast(pa.int64()))
    return table


def _with_steps(table: pa.Table, numbers: NDArray[np.int64], plan: PreparationPlan) -> pa.Table:
    """The table with texts in the column of steps read as numbers or times.

    Raises:
        TrajectoryError: A value is neither; the message has the rows.
    """
    if "step" not in table.column_names or not pa.types.is_string(table.column("step").type):
        return table
    step = pc.utf8_trim_whitespace(table.column("step"))
    expected = "a whole number, or times with --sort --times order (a recipe: sort and times under [steps])"
    values, odd = as_numbers(step, plan.decimal)
    read = pa.array(values, mask=np.isnan(values))
    if plan.time_format is not None:
        read = pc.strptime(step, format=plan.time_format, unit="us", error_is_null=True)
        odd, expected = _nulls(read) & ~_nulls(step), f"a time such as {plan.time_format}, its --time-format"
    elif plan.sort and odd.sum() > odd.size / 2:
        read, odd = as_times(step)
        expected = "a time such as 2150-01-31 04:00:00, or a number; --time-format tells another form of times"
    elif plan.sort and pc.all(pc.match_substring_regex(step, _WHOLE)).as_py():
        read = step.cast(pa.int64())  # as times in nanoseconds, which no float holds
    _refuse_rows("step", plan, numbers, odd, expected)
    return table.set_column(table.column_names.index("step"), "step", read)


def _refuse_rows(
    name: str, plan: PreparationPlan, numbers: NDArray[np.int64], odd: NDArray[np.bool_], expected: str
) -> None:
    if odd.any():
        problems = Problems()
        problems.add(f"column {plan.find(name)}: expected {expected}", odd, lambda i: f"row {numbers[i]}")
        raise TrajectoryError("the raw table cannot be prepared:", problems=problems.lines)


def as_numbers(column: pa.Array | pa.ChunkedArray, decimal: str = ".") -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column as floats, NaN for missing values; and a mask of the values that are no numbers."""
    if pa.types.is_string(column.type):
        text = pc.utf8_trim_whitespace(column)
        fits = pc.match_substring_regex(text, _NUMBER.replace("D", re.escape(decimal)))
        odd = ~pc.fill_null(fits, True).to_numpy(zero_copy_only=False)
        column = pc.replace_substring(pc.if_else(fits, text, None), decimal, ".")
    elif any(kind(column.type) for kind in _NUMERIC):
        odd = np.zeros(len(column), bool)
    else:
        odd = ~_nulls(column)
        column = pa.nulls(len(column))
    values: NDArray[np.float64] = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
    return values, odd


def as_times(text: pa.ChunkedArray) -> tuple[pa.ChunkedArray, NDArray[np.bool_]]:
    """A column of texts as times (ISO 8601, with time zones or without), and a mask of the values that are none."""
    fits = pc.match_substring_regex(text, _ISO)
    odd = ~pc.fill_null(fits, True).to_numpy(zero_copy_only=False)
    zoned = pc.any(pc.match_substring_regex(text, _ZONE)).as_py()
    try:
        return pc.if_else(fits, text, None).cast(pa.timestamp("us", "UTC" if zoned else None)), odd
    except pa.ArrowException:  # a month 13, or a zone in some rows only
        return pa.chunked_array([pa.nulls(len(text), pa.timestamp("us"))]), ~_nulls(text)


def _nulls(column: Any) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = pc.is_null(column).to_numpy(zero_copy_only=False)
    return nulls


def _place(table: pa.Table, plan: PreparationPlan, changes: list[Change]) -> pa.Table:
    """The sorted table with one row per step, and step numbers in place of times.

    Raises:
        TrajectoryError: There are several rows of one step, and the plan does not say which to keep.
    """
    if "step" not in table.column_names or not table.num_rows:
        return table
    starts = _changes(table.column("episode"))
    lengths = np.diff(np.append(starts, table.num_rows))
    step = table.column("step")
    if plan.times is not None:
        step = _bin(step, starts, lengths, read_seconds(plan.times), together=plan.several != "refuse")
        at = table.column_names.index("step")
        table = table.set_column(at, "step", step)
    codes = number_values(step if isinstance(step, pa.ChunkedArray) else pa.chunked_array([step]))
    same = np.zeros(table.num_rows, bool)  # as the row before it
    same[1:] = (codes[1:] == codes[:-1]) & (codes[1:] >= 0)
    same[starts] = False
    if not same.any() or plan.several == "refuse":
        if same.any():
            rows = table.column(_ROW).to_numpy()[np.flatnonzero(same)]
            shown = ", ".join(map(str, rows[:_SHOWN].tolist()))
            message = f"{same.sum():,} rows repeat a step of their episode: rows {shown}"
            raise TrajectoryError(f"{message}. Choose one: --several first, or --several last")
        return table
    out = same if plan.several == "first" else np.append(same[1:], False)
    left = table.column(_ROW).to_numpy()[out].tolist()
    changes.extend((row, "row left out", "another row of its step is kept") for row in left)
    return table.filter(pa.array(~out))


def _bin(
    step: pa.ChunkedArray, starts: NDArray[np.intp], lengths: NDArray[np.intp], times: float, *, together: bool
) -> pa.Array:
    """Step number of each row: its time after the first of its episode, in bins of `times` seconds.

    With bins of 0 seconds, rows are numbered 0, 1, 2, … in the order of their times; rows with equal times are one step
    if `together`.

    Raises:
        TrajectoryError: The column does not contain times or numbers.
    """
    values: Any
    width: float
    if pa.types.is_temporal(step.type):  # in whole microseconds, so that bins end where they say
        values, width = pc.fill_null(step.cast(pa.timestamp("us")).cast(pa.int64()), 0).to_numpy(), round(times * 1e6)
    elif pa.types.is_integer(step.type) or pa.types.is_floating(step.type):
        values, width = pc.fill_null(step.cast(pa.float64()), np.nan).to_numpy(), times
    else:
        message = f"column step holds {step.type}, not times: expected such as 2150-01-31 04:00:00, or numbers; "
        message += "without the column, --sort keeps the rows of an episode in the file's order"
        raise TrajectoryError(message)
    missing = pc.is_null(step).to_numpy() | np.isnan(values)
    if width > 0:
        bins = np.where(missing, 0, values - np.repeat(values[starts], lengths)) // width
    else:
        later = np.append(0, values[1:] != values[:-1]) if together else np.ones(values.size, np.int64)
        later[starts] = 0
        counted = np.cumsum(later)
        bins = counted - np.repeat(counted[starts], lengths)
    return pa.array(np.where(missing, 0, bins).astype(np.int64), mask=missing)


def count_episodes(batch: pa.Table, finished: int) -> tuple[pa.Table, int]:
    """Add episode numbers to rows, where an episode ends if `terminal` is true; also return the number of ended ones.

    Raises:
        TrajectoryError: A value is neither true nor false.
    """
    column = batch.column("terminal")
    if pa.types.is_string(column.type):
        text = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        known = pc.is_in(text, value_set=pa.array(["true", "1", "false", "0"]))
        column = pc.if_else(known, pc.is_in(text, value_set=pa.array(["true", "1"])), None)
    ends = pc.fill_null(column, False) if pa.types.is_boolean(column.type) else None
    if ends is None and pa.types.is_integer(column.type):
        ends = pc.not_equal(pc.fill_null(column, 0), 0)
    if ends is None or column.null_count:
        raise TrajectoryError("column terminal: expected true or false, or 1 or 0, in every row")
    # so many episodes have ended before each row, and after the last one: one more number than rows, also of none
    ended = finished + np.concatenate([[0], np.cumsum(ends.to_numpy(zero_copy_only=False))]).astype(np.int64)
    at = batch.column_names.index("terminal")
    return batch.set_column(at, "episode", pa.array(ended[:-1])), int(ended[-1])


def _plain(table: pa.Table) -> pa.Table:
    """The table with dictionaries decoded: those of two chunks may number values differently."""
    for index, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(column.type.value_type))
    return table


def _changes(episode: pa.ChunkedArray) -> NDArray[np.intp]:
    """Index of each episode's first row."""
    codes = number_values(episode)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])) if codes.size else np.zeros(0, np.intp)


def number_values(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A number for each distinct value; −1 for missing ones."""
    encoded = pc.dictionary_encode(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    codes: NDArray[np.int64] = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _chunk(table: pa.Table, starts: NDArray[np.intp], ended: set[Any], changes: list[Change]) -> Chunk:
    numbers = table.column(_ROW).to_numpy()
    columns = {name: table.column(name).combine_chunks() for name in table.column_names if name != _ROW}
    columns = {name: pa.concat_arrays(c.chunks) if isinstance(c, pa.ChunkedArray) else c for name, c in columns.items()}
    episode = columns["episode"]
    if episode.null_count:
        row = numbers[np.flatnonzero(pc.is_null(episode).to_numpy(zero_copy_only=False))[0]]
        raise FileFormatError(f"row {row} has no episode: expected a name or a number in every row")
    names = episode.take(pa.array(starts)).to_pylist()
    here = set(names)
    if len(here) < len(names) or not ended.isdisjoint(here):
        _refuse_again(names, ended, numbers[starts])
    ended |= here
    told = tuple(changes)
    changes.clear()
    return Chunk(numbers=numbers, columns=columns, starts=starts, changes=told)


def _refuse_again(names: list[Any], ended: set[Any], rows: NDArray[np.intp]) -> None:
    before = set(ended)
    for name, row in zip(names, rows.tolist(), strict=True):
        if name in before:
            message = f"row {row}: its episode began earlier and had ended"
            raise FileFormatError(f"{message}; rows of an episode must be adjacent: --sort (needs memory)")
        before.add(name)
