"""Raw tables in chunks of whole episodes: whatever pyarrow reads, with columns by our names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, dataset

from privcheck.errors import FileFormatError
from privcheck.preparing.plan import COLUMNS, NEEDED, PreparationPlan
from privcheck.reading.tables import require_file
from privcheck.reading.users import refuse_unknown

FORMATS: Final = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".feather": "feather", ".arrow": "ipc", ".ipc": "ipc",
    ".orc": "orc", ".json": "json", ".jsonl": "json",
}  # fmt: skip
_BATCH: Final = 2**18  # rows of a chunk, about
_TEXT: Final = ("state", "action", "next_state")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """Rows of whole episodes, in the file's order.

    Attributes:
        first: The number of the first row, from 1; a header is no row.
        columns: Arrow arrays by our names; only those that the file has.
        starts: Where each episode begins.
    """

    first: int
    columns: dict[str, pa.Array]
    starts: NDArray[np.intp]

    @property
    def rows(self) -> int:
        """Returns the number of rows."""
        return len(self.columns["episode"])


def read_chunks(path: Path, plan: PreparationPlan) -> Iterator[Chunk]:
    """Yields the file's episodes, some hundred thousand rows at a time.

    Raises:
        FileFormatError: The file cannot be read, lacks a column, or the rows of an episode do not stand together.
    """
    source = _open(path, plan)
    names = _find_columns(path, source, plan)
    rest: pa.Table | None = None
    first, ended = 1, set[Any]()
    try:
        for table in _tables(source, names, plan):
            whole = table if rest is None else pa.concat_tables([rest, table])
            change = _changes(whole.column("episode"))
            keep = int(change[-1]) if change.size else 0  # the last episode may go on in the next chunk
            rest = whole.slice(keep)
            if keep:
                yield _chunk(whole.slice(0, keep), change[:-1], first, ended)
                first += keep
        if rest is not None and rest.num_rows:
            yield _chunk(rest, _changes(rest.column("episode")), first, ended)
    except pa.ArrowException as error:
        message = str(error).splitlines()[0]
        raise FileFormatError(f"{path}: cannot be read: {message}") from None


def _open(path: Path, plan: PreparationPlan) -> dataset.Dataset:
    path = require_file(path, tuple(FORMATS))
    kind: Any = FORMATS[path.suffix.lower()]
    if kind == "csv":
        texts = {plan.find(name): pa.string() for name in _TEXT} if plan.codebook is not None else {}
        kind = dataset.CsvFileFormat(
            parse_options=csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ","),
            convert_options=csv.ConvertOptions(column_types=texts, strings_can_be_null=True),
        )
    try:
        return dataset.dataset(path, format=kind)
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


def refuse_unknown_users(path: Path, plan: PreparationPlan) -> None:
    """Refuses a raw table of unknown users; errors as of `privcheck.reading.users.refuse_unknown`."""
    source = _open(path, plan)
    names = _find_columns(path, source, plan)

    def look(wanted: Sequence[str]) -> Mapping[str, Any]:
        columns = {name: names["episode"] if name == "episode" else name for name in wanted}
        read = _plain(source.to_table(columns=list(dict.fromkeys(columns.values()))))
        return {name: read.column(theirs) for name, theirs in columns.items()}

    ours = {theirs: name for name, theirs in names.items()}
    others = [name for name in source.schema.names if ours.get(name, "user") == "user"]
    users = plan.users
    refuse_unknown(str(path), replace(users, column=None), None, [ours.get(name, name) for name in others], look)


def _find_columns(path: Path, source: dataset.Dataset, plan: PreparationPlan) -> dict[str, str]:
    """Returns what the file calls each of our columns that it has."""
    there = source.schema.names
    missing = [name for name in {*NEEDED, *plan.columns} if plan.find(name) not in there]
    if missing:
        lacks = ", ".join(plan.find(name) for name in COLUMNS if name in missing)
        message = f"{path}: no column {lacks}; it has {', '.join(there)}"
        raise FileFormatError(f"{message}. Say what is what: --column episode=patient_id --column state=sofa …")
    return {name: plan.find(name) for name in COLUMNS if plan.find(name) in there}


def _tables(source: dataset.Dataset, names: dict[str, str], plan: PreparationPlan) -> Iterator[pa.Table]:
    columns = list(names.values())
    if plan.sort:
        whole = _plain(source.to_table(columns=columns).rename_columns(list(names)))
        whole = whole.sort_by([(name, "ascending") for name in ("episode", "step") if name in names])
        yield from (whole.slice(k, _BATCH) for k in range(0, whole.num_rows, _BATCH))
        return
    for batch in source.to_batches(columns=columns, batch_size=_BATCH, use_threads=True):
        if batch.num_rows:
            yield _plain(pa.Table.from_batches([batch]).rename_columns(list(names)))


def _plain(table: pa.Table) -> pa.Table:
    """Returns the table with dictionaries written out: those of two chunks may number values differently."""
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(field.type.value_type))
    return table


def _changes(episode: pa.ChunkedArray) -> NDArray[np.intp]:
    """Returns where an episode begins, the first row included."""
    codes = _codes(episode)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])) if codes.size else np.zeros(0, np.intp)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Returns a number for each distinct value; −1 for missing ones."""
    encoded = pc.dictionary_encode(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    codes: NDArray[np.int64] = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _chunk(table: pa.Table, starts: NDArray[np.intp], first: int, ended: set[Any]) -> Chunk:
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    columns = {name: pa.concat_arrays(c.chunks) if isinstance(c, pa.ChunkedArray) else c for name, c in columns.items()}
    episode = columns["episode"]
    if episode.null_count:
        row = first + int(np.flatnonzero(pc.is_null(episode).to_numpy(zero_copy_only=False))[0])
        raise FileFormatError(f"row {row} belongs to no episode: expected a name or a number in every row")
    names = episode.take(pa.array(starts)).to_pylist()
    here = set(names)
    if len(here) < len(names) or not ended.isdisjoint(here):
        _refuse_again(names, ended, first + starts)
    ended |= here
    return Chunk(first=first, columns=columns, starts=starts)


def _refuse_again(names: list[Any], ended: set[Any], rows: NDArray[np.intp]) -> None:
    before = set(ended)
    for name, row in zip(names, rows.tolist(), strict=True):
        if name in before:
            message = f"row {row}: episode {name} began before and ended"
            raise FileFormatError(f"{message}; rows of an episode have to stand together: --sort (needs memory)")
        before.add(name)
