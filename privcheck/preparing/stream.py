"""The preparation itself: the raw table is read in chunks, and what comes out is written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from privcheck.brief import Brief
from privcheck.errors import FileFormatError, ParameterError, TrajectoryError
from privcheck.preparing.codebooks import FILE_NAME, Codebook
from privcheck.preparing.episodes import Dense, shape_episodes
from privcheck.preparing.plan import PreparationPlan
from privcheck.preparing.raw import Change, Chunk, read_chunks, refuse_unknown_users
from privcheck.progress import Progress, silent
from privcheck.reading.users import DEPENDS, METADATA, RECIPE, unit_of_table
from privcheck.unit import Unit
from privcheck.whole_files import whole_file

_ENDINGS: Final = (".parquet", ".csv")
_COLUMNS: Final = pa.schema(
    [("episode", pa.int64()), ("step", pa.int32()), ("state", pa.int32()), ("action", pa.int32()),
     ("reward", pa.float64()), ("next_state", pa.int32())]
)  # fmt: skip
ENDED: Final = "(ended)"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prepared(Brief):
    """What a preparation did.

    Attributes:
        data: The file that was written.
        rows: Of the raw table.
        episodes: That were written.
        steps: H.
        changed: How often each thing was done.
        changes: The file with every change, by the row of the raw table; as private as the data.
        unit: Who the users are, and at most how many episodes one has.
        codebook: The file with the labels; None where the raw table holds codes.
        depends_on_data: Choices that looked at the data.
        recipe: The digest of the recipe; empty without one.
    """

    data: str
    rows: int
    episodes: int
    steps: int
    changed: dict[str, int]
    changes: str
    unit: Unit
    codebook: str | None
    depends_on_data: tuple[str, ...]
    recipe: str = ""


def prepare(
    raw: Path, out: Path, plan: PreparationPlan, *, recipe: str = "", progress: Progress = silent
) -> Prepared:  # fmt: skip
    """Writes trajectories made of a raw table, with the codebook and the list of changes beside them.

    Args:
        raw: A table that pyarrow reads, a row a step.
        out: Where the trajectories go: .parquet or .csv.
        plan: What is asked for.
        recipe: The digest of the recipe that says so, which the written file keeps; empty without one.
        progress: Called with (rows, rows) after each chunk; nobody knows how many there will be.

    Raises:
        FileFormatError: A file cannot be read or written, or ends in something else.
        TrajectoryError: A value that the plan does not say what to do with; nothing is written.
        ParameterError: Nothing is left.
    """
    if out.suffix.lower() not in _ENDINGS:
        raise FileFormatError(f"--out {out}: expected a file that ends in {', '.join(_ENDINGS)}")
    if out.resolve() == raw.resolve():
        raise FileFormatError(f"--out {out} is the raw table itself: choose another name")
    refuse_unknown_users(raw, plan)
    chosen = _choose_episodes(raw, plan)
    changed: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    log = out.with_name(out.stem + ".changes.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    sizes = _Sizes()
    try:
        as_csv = out.suffix.lower() == ".csv"
        with whole_file(out) as file, whole_file(log) as notes, _Writer(file, plan, recipe, as_csv=as_csv) as writer:
            notes.write(b"row,what,how\n")
            for dense, rows in _shape(raw, plan, chosen):
                changed.update(what for _, what, _ in dense.changes)
                dropped.update(how for _, what, how in dense.changes if what in ("episode dropped", "row left out"))
                notes.write("".join(map(_line, dense.changes)).encode())
                sizes.add(dense, rows)
                writer.write(dense)
                progress(sizes.rows, sizes.rows)
            if not sizes.episodes:
                why = ", ".join(f"{how} ({count:,})" for how, count in dropped.most_common())
                raise ParameterError(f"no episode of {raw} is left; left out: {why or 'nothing, it has no rows'}")
    except OSError as error:
        raise FileFormatError(f"{out}: cannot be written: {error.strerror or error}") from error
    book = None if plan.codebook is None else out.with_name(FILE_NAME)
    if plan.codebook is not None and book is not None:
        _with_ended(plan.codebook, out.name).save(book)
    return Prepared(
        data=str(out),
        rows=sizes.rows,
        episodes=sizes.episodes,
        steps=sizes.steps,
        changed=dict(changed),
        changes=str(log),
        unit=_unit_of(plan, sizes.steps, named=writer.named),
        codebook=None if book is None else str(book),
        depends_on_data=plan.depends_on_data,
        recipe=recipe,
    )


@dataclass(slots=True, kw_only=True)
class _Sizes:
    """What has gone through so far."""

    rows: int = 0
    episodes: int = 0
    steps: int = 0

    def add(self, dense: Dense, rows: int) -> None:
        self.rows += rows
        self.episodes += len(dense.rows)
        self.steps = dense.actions.shape[1]


def find_labels(raw: Path, plan: PreparationPlan) -> tuple[set[str], set[str]]:
    """Returns the states and the actions that occur in a raw table, as texts: they are private until confirmed.

    Args:
        raw: The table.
        plan: How it is read; its codebook and codes do not count.
    """
    states: set[str] = set()
    actions: set[str] = set()
    texts = Codebook(states=("?",), actions=("?",))
    for chunk in read_chunks(raw, replace(plan, codebook=texts, states=None)):
        for name, found in (("state", states), ("next_state", states), ("action", actions)):
            if name in chunk.columns:
                texts = pc.unique(chunk.columns[name].cast(pa.string())).to_pylist()
                found.update(text for text in texts if text is not None)
    return states, actions


def _shape(raw: Path, plan: PreparationPlan, chosen: set[int] | None) -> Iterator[tuple[Dense, int]]:
    horizon = plan.horizon
    for chunk in read_chunks(raw, plan):
        if horizon is None:
            horizon = int(chunk.starts[1] - chunk.starts[0]) if chunk.starts.size > 1 else chunk.rows
        wanted = None
        if chosen is not None:
            wanted = np.isin(chunk.numbers[chunk.starts], list(chosen))
        yield shape_episodes(chunk, plan, horizon, wanted), chunk.rows


def _choose_episodes(raw: Path, plan: PreparationPlan) -> set[int] | None:
    """Returns the first rows of the episodes that are kept, at most `plan.most` a user; None for all.

    Random ones have the least hashes of seed, user and number, so that they depend on their own user's rows alone.

    Raises:
        FileFormatError: A row has no user, or an episode has rows of two.
        TrajectoryError: A user has too many episodes, and the plan does not say which to keep.
    """
    if plan.users.one_episode_is_one_user:
        return None
    best: dict[Any, list[tuple[bytes, int]]] = {}
    seen: Counter[Any] = Counter()
    for chunk in read_chunks(raw, plan):
        users = chunk.columns["user"]
        _refuse_two_users(chunk, users)
        for start, user in zip(chunk.starts.tolist(), users.take(pa.array(chunk.starts)).to_pylist(), strict=True):
            row = int(chunk.numbers[start])
            if plan.keep == "random":
                rank = hashlib.blake2b(f"{plan.seed}|{user!r}|{seen[user]}".encode(), digest_size=16).digest()
            else:
                rank = seen[user].to_bytes(8)
            seen[user] += 1
            kept = best.setdefault(user, [])
            kept.append((rank, row))
            if len(kept) > plan.most:
                if plan.keep == "refuse":
                    _refuse_too_many(plan, row)
                kept.remove(max(kept))
    return None if plan.keep == "refuse" else {row for kept in best.values() for _, row in kept}


def _refuse_too_many(plan: PreparationPlan, row: int) -> NoReturn:
    number = f"episode {plan.most + 1} of its user begins in row {row}"
    said = f"--max-trajectories {plan.most}" if plan.users.max_trajectories else "no --max-trajectories, that is 1"
    message = (
        f"a user has more episodes than stated: {number}, and {said} was given. State the most that one has with "
        "--max-trajectories M, which costs more, or keep that many of each: --keep first, or --keep random with --seed"
    )
    raise TrajectoryError(message)


def _unit_of(plan: PreparationPlan, steps: int, *, named: bool) -> Unit:
    users = plan.users if plan.users.one_episode_is_one_user else replace(plan.users, column=plan.find("user"))
    return unit_of_table(users, None, named=named, steps=steps)


def _refuse_two_users(chunk: Chunk, users: pa.Array) -> None:
    codes: NDArray[np.int64] = (
        pc.fill_null(pc.dictionary_encode(users).indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    lengths = np.diff(np.append(chunk.starts, chunk.rows))
    other = np.flatnonzero((codes != np.repeat(codes[chunk.starts], lengths)) | (codes < 0))
    if other.size:
        row = chunk.numbers[other[0]]
        raise FileFormatError(f"row {row}: no user, or another one than in the rows of its episode before it")


def _with_ended(codebook: Codebook, name: str) -> Codebook:
    """Returns the codebook with the state of ended episodes, which has the last code."""
    return replace(codebook, states=(*codebook.states, ENDED), data=name)


def _line(change: Change) -> str:
    row, what, how = change
    return f'{row},{what},"{how}"\n'


class _Writer:
    """Trajectories to a file, as `read_trajectories` reads them: episodes from 0, steps from 1."""

    def __init__(self, file: BinaryIO, plan: PreparationPlan, recipe: str, *, as_csv: bool) -> None:
        self._file, self._plan, self._recipe, self._csv = file, plan, recipe, as_csv
        self._writer: Any = None
        self.named = False
        self._episode = 0

    def write(self, dense: Dense) -> None:
        count, steps = dense.actions.shape
        columns = [
            np.repeat(np.arange(self._episode, self._episode + count), steps),
            np.tile(np.arange(1, steps + 1, dtype=np.int32), count),
            dense.states[:, :-1].ravel().astype(np.int32),
            dense.actions.ravel().astype(np.int32),
            dense.rewards.ravel(),
            dense.states[:, 1:].ravel().astype(np.int32),
        ]
        table = pa.table(columns, schema=_COLUMNS)
        if dense.users is not None:
            user = pa.array([str(user) for user in dense.users], pa.string())
            table = table.append_column("user", user.take(pa.array(np.repeat(np.arange(count), steps))))
        self._episode += count
        if self._writer is None:
            self.named = dense.users is not None
            unit = _unit_of(self._plan, steps, named=self.named)
            said = {METADATA: json.dumps(unit.to_dict())}
            if self._plan.depends_on_data:
                said[DEPENDS] = json.dumps(self._plan.depends_on_data)
            table = table.replace_schema_metadata(said | ({RECIPE: self._recipe} if self._recipe else {}))
            made = csv.CSVWriter if self._csv else pq.ParquetWriter
            self._writer = made(self._file, table.schema)
        self._writer.write_table(table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
