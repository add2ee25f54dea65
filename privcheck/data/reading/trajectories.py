"""Reading of trajectories from a user's own file or from memory, and writing them to a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privcheck.data.reading.row_checks import NEEDED, admit, largest_id, refuse_too_large
from privcheck.data.reading.tables import (
    CONVENTIONS,
    Problems,
    Table,
    as_table,
    as_whole,
    check_range,
    check_unit_interval,
    load_arrays,
    read_table,
    require_file,
)
from privcheck.data.reading.users import (
    DEPENDS_ON_DATA,
    METADATA,
    NO_STATEMENT,
    SAY_SO,
    Users,
    most_of,
    refuse_unknown,
    unit_of_table,
)
from privcheck.data.trajectories import Trajectories
from privcheck.errors import FileFormatError, ParameterError, TrajectoryError
from privcheck.support.display import Brief
from privcheck.support.files import whole_file
from privcheck.terms.unit import Unit

EXTENSIONS = (".parquet", ".csv", ".npz")
_ARRAYS = ("states", "actions", "rewards")
_SIZES = ("num_states", "num_actions")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FileTrajectories(Brief):
    """Trajectories from a file, with facts about them.

    Attributes:
        trajectories: The users' data, one row per episode, sorted by episode name.
        facts: Name, format, rows, users (or episodes, if a user may have several), H, S and A by name, for a report;
            the protected unit and who stated it, "ignored columns" if there are any, and "warning" if S or A was taken
            from the data.
    """

    trajectories: Trajectories
    facts: Mapping[str, str | int]

    @property
    def warning(self) -> str:
        """Warning to read before trusting a guarantee; empty if there is none."""
        return str(self.facts.get("warning", ""))


def read_trajectories(
    path: Path | str,
    *,
    num_states: int | None = None,
    num_actions: int | None = None,
    users: Users = NO_STATEMENT,
) -> FileTrajectories:
    """Read the trajectories in a file, checking every row.

    Parquet and CSV files have one row per step, in any order, with the columns episode, step, state, action, reward and
    next_state, and user; other columns are ignored and named in the facts. Steps count from 0 or from 1, the same for
    all. NPZ files have the arrays states (users, H + 1), actions and rewards (users, H), and optionally num_states and
    num_actions. The users are those of the column `user`, or those that `prepare` wrote into a Parquet file's metadata;
    else the caller must state that each episode is another user's.

    If S or A is neither given nor in an NPZ file, the largest id + 1 is used. That is a property of the data that no
    noise covers, so that the facts then contain a warning.

    Args:
        path: A .parquet, .csv or .npz file.
        num_states: S, publicly known.
        num_actions: A, publicly known.
        users: Statement about the users: the file's name of their column, the largest number of episodes of one, or
            that each episode is another user's.

    Raises:
        ParameterError: S, A or the number of episodes is not a positive whole number, or two statements about the users
            contradict each other.
        FileFormatError: The file is missing, empty, does not match its extension, or lacks a column.
        TrajectoryError: The users are unknown, or rows are invalid. One message has all kinds of problems, with their
            first places: lines of a CSV file count the header as line 1, rows of a Parquet file count from 1.
    """
    sizes = (num_states, num_actions)
    refuse_sizes(sizes)
    path = require_file(path, EXTENSIONS)
    if path.suffix.lower() == ".npz":
        return _read_npz(path, sizes, users)
    problems = Problems()
    table = read_table(path, needed=NEEDED, optional=(users.name,), problems=problems)

    def look(names: Sequence[str]) -> Mapping[str, Any]:
        return read_table(path, needed=("episode",), optional=names[1:], problems=Problems()).columns

    return admit_table(table, path, sizes=sizes, users=users, problems=problems, look=look)


def refuse_sizes(sizes: tuple[int | None, int | None]) -> None:
    """Refuse a given S or A that is not a positive whole number.

    Raises:
        ParameterError: S or A is not a positive whole number.
    """
    for name, size in zip(_SIZES, sizes, strict=True):
        if size is not None and not (isinstance(size, int) and not isinstance(size, bool) and size >= 1):
            raise ParameterError(f"{name}: expected a whole number, at least 1, got {size!r}", name=name, given=size)


def admit_table(
    table: Table,
    path: Path,
    *,
    sizes: tuple[int | None, int | None],
    users: Users,
    problems: Problems,
    look: Callable[[Sequence[str]], Mapping[str, Any]],
) -> FileTrajectories:
    """Check a table's rows and return its trajectories.

    Args:
        table: The columns.
        path: Name of the table in messages.
        sizes: S and A, each None if unknown.
        users: Statement of the reader about its users.
        problems: Problems found so far.
        look: Reads more of its columns, for a refusal that suggests columns of users.

    Raises:
        ParameterError: Two statements about the users contradict each other.
        TrajectoryError: The users are unknown, or rows are invalid.
    """
    num_states, num_actions = sizes
    stored = read_stored(table, path)
    named = users.name in table.columns
    refuse_unknown(str(path), users, stored, [*table.columns, *table.ignored], look)
    if named:
        table.columns["user"] = table.columns.pop(users.name)
    most = most_of(users, stored)
    admitted = admit(table, num_states=num_states, num_actions=num_actions, trajectories=most, problems=problems)
    if admitted is None:
        raise refusal(path, f"{table.rows:,} rows; {CONVENTIONS[table.unit]}", problems)
    facts: dict[str, str | int] = {"file": path.name, "format": table.format, "rows": table.rows}
    if table.ignored:
        facts["ignored columns"] = ", ".join(table.ignored)
    if table.recipe:
        facts["recipe"] = table.recipe
    if table.depends_on_data:
        facts[DEPENDS_ON_DATA] = table.depends_on_data
    unit = unit_of_table(users, stored, named=named, steps=admitted.horizon)
    return gather_facts(replace(admitted, unit=unit), facts, sizes)


def gather_facts(
    data: Trajectories, facts: dict[str, str | int], given: tuple[int | None, int | None]
) -> FileTrajectories:
    """Trajectories with their sizes among the facts, and a warning if S or A was taken from the data.

    Args:
        data: The trajectories, with the unit of privacy.
        facts: Facts about their origin.
        given: S and A, each None if not given.
    """
    unit = data.unit
    assert unit is not None  # every way to trajectories states it
    facts |= {"protected": unit.words, "stated by": unit.stated_by}
    rows = "users" if unit.trajectories == 1 else "episodes"
    facts |= {rows: data.users, "H": data.horizon, "S": data.num_states, "A": data.num_actions}
    inferred = [
        f"{name}={size}"
        for name, size, known in zip("SA", (data.num_states, data.num_actions), given, strict=True)
        if known is None
    ]
    if inferred:
        facts["warning"] = (
            f"{' and '.join(inferred)} taken from the largest ids in the data, which a single user can change: no "
            f"noise covers that. Give the public values: {' '.join(f'--set {text}' for text in inferred)}"
        )
    return FileTrajectories(trajectories=data, facts=facts)


def refusal(path: Path, size: str, problems: Problems) -> TrajectoryError:
    """The refusal of a table, with all its problems."""
    kinds = "1 kind of problem" if len(problems.lines) == 1 else f"{len(problems.lines)} kinds of problems"
    return TrajectoryError(f"{path} was refused: {kinds} ({size})", problems=problems.lines)


def read_stored(table: Table, path: Path) -> Unit | None:
    """The unit of privacy in a Parquet file's metadata; None if there is none.

    Raises:
        FileFormatError: The unit is damaged.
    """
    if table.stored is None:
        return None
    try:
        return Unit.of(json.loads(table.stored))
    except (ValueError, TypeError) as error:
        message = f"{path}: the unit of privacy in its metadata cannot be read ({str(error)[:200]}); prepare it again"
        raise FileFormatError(message) from None


def _read_npz(path: Path, sizes: tuple[int | None, int | None], users: Users) -> FileTrajectories:
    num_states, num_actions = sizes
    arrays, ignored = load_arrays(path, needed=_ARRAYS, optional=_SIZES)
    if not users.one_episode_is_one_user:
        rows = arrays["actions"].shape[0] if arrays["actions"].ndim else 0
        message = (
            f"{path} was refused: an NPZ file does not identify its users. If each of its {rows:,} rows belongs to a "
            f"different user, state it: {SAY_SO}; else write a Parquet or CSV file with a column user"
        )
        raise TrajectoryError(message)
    shape = arrays["actions"].shape
    problems = Problems()
    if len(shape) != 2 or 0 in shape:
        problems.say(f"actions: expected a non-empty array of shape (users, H), got {shape}")
    else:
        for name, expected in (("states", (shape[0], shape[1] + 1)), ("rewards", shape)):
            if arrays[name].shape != expected:
                problems.say(f"{name}: expected shape {expected} beside actions of {shape}, got {arrays[name].shape}")
    for name in _ARRAYS:
        if not (np.issubdtype(arrays[name].dtype, np.integer) or np.issubdtype(arrays[name].dtype, np.floating)):
            problems.say(f"{name}: expected an array of numbers, got one of type {arrays[name].dtype}")
    in_file = tuple(_size_in(arrays, name, problems) for name in _SIZES)
    given = (num_states or in_file[0], num_actions or in_file[1])
    data = None if problems.lines else _from_arrays(arrays, given, problems)
    if data is None:
        raise refusal(path, "users count from 1, as steps do", problems)
    facts: dict[str, str | int] = {"file": path.name, "format": "NPZ", "rows": int(np.prod(shape))}
    if ignored:
        facts["ignored columns"] = ", ".join(ignored)
    unit = unit_of_table(users, None, named=False, steps=data.horizon)
    return gather_facts(replace(data, unit=unit), facts, given)


def _from_arrays(
    arrays: Mapping[str, NDArray[Any]], given: tuple[int | None, int | None], problems: Problems
) -> Trajectories | None:
    ids, sizes, inferred = {}, [], []
    for name, size in zip(("states", "actions"), given, strict=True):
        values, place = _finite(name, arrays[name], problems)
        column = as_whole(name, values, place, problems)
        if size is not None:
            check_range(name, column, size, place, problems)
        else:
            inferred.append(largest_id(name, column, place))
        sizes.append(size or 1 + int(column.values.max()))
        ids[name] = column.values.reshape(arrays[name].shape)
    rewards, place = _finite("rewards", arrays["rewards"], problems)
    check_unit_interval("rewards", rewards, place, problems)
    refuse_too_large(sizes[0], sizes[1], inferred, problems)
    if problems.lines:
        return None
    return Trajectories(
        states=ids["states"].astype(np.int32),
        actions=ids["actions"].astype(np.int32),
        rewards=rewards.reshape(arrays["rewards"].shape),
        num_states=sizes[0],
        num_actions=sizes[1],
    )


def _finite(name: str, array: NDArray[Any], problems: Problems) -> tuple[NDArray[np.float64], _Place]:
    values, place = array.astype(np.float64).ravel(), _Place(array.shape[1])
    problems.add(f"{name}: not finite", ~np.isfinite(values), place)
    return values, place


@dataclass(frozen=True, slots=True)
class _Place:
    """Place of a flat index of an array of shape (users, width), in words."""

    width: int

    def __call__(self, index: int) -> str:
        return f"user {index // self.width + 1}, step {index % self.width + 1}"


def _size_in(arrays: Mapping[str, NDArray[Any]], name: str, problems: Problems) -> int | None:
    if name not in arrays:
        return None
    value = arrays[name]
    if value.size != 1 or not np.issubdtype(value.dtype, np.integer) or value.item() < 1:
        problems.say(f"{name}: expected one whole number, at least 1, got {value.tolist()!r}"[:200])
        return None
    return int(value.item())


class ArrowTable(Protocol):
    """A table with the Arrow interface, such as frames of pandas and polars and tables of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return its rows as an Arrow stream."""
        ...


Held: TypeAlias = Trajectories | FileTrajectories | ArrowTable


def hold_trajectories(
    held: Held, *, num_states: int | None = None, num_actions: int | None = None, users: Users = NO_STATEMENT
) -> FileTrajectories:
    """Read the trajectories in a table in memory, checking every row; as `read_trajectories` for a file.

    `Trajectories` are taken as they are, with their S, A and unit of privacy.

    Args:
        held: A pandas frame, a pyarrow table or another with the Arrow interface, with one row per step; or
            trajectories.
        num_states: S, publicly known.
        num_actions: A, publicly known.
        users: Statement of the caller about the users.

    Raises:
        ParameterError: S or A is not a positive whole number, the value is not a table, or two statements about the
            users contradict each other.
        FileFormatError: The table has no rows, or lacks a column.
        TrajectoryError: The users are unknown, rows are invalid, or trajectories have other sizes than those given.
    """
    sizes = (num_states, num_actions)
    refuse_sizes(sizes)
    if isinstance(held, Trajectories | FileTrajectories):
        data = held if isinstance(held, Trajectories) else held.trajectories
        own = (data.num_states, data.num_actions)
        for name, size, made in zip("SA", sizes, own, strict=True):
            if size is not None and size != made:
                raise TrajectoryError(f"these trajectories were made with {name} = {made}: expected {name} = {size}")
        data = replace(data, unit=_unit_of_held(data, users))
        if isinstance(held, FileTrajectories) and None in sizes:
            return replace(held, trajectories=data)  # with its warning, where S or A was taken from the data
        facts: dict[str, str | int] = {"format": "Trajectories", "rows": data.actions.size}
        return gather_facts(data, facts, own)
    table = as_table(held, needed=NEEDED, optional=(users.name,))

    def look(names: Sequence[str]) -> Mapping[str, Any]:
        return as_table(held, needed=("episode",), optional=names[1:]).columns

    return admit_table(table, Path(type(held).__name__), sizes=sizes, users=users, problems=Problems(), look=look)


def _unit_of_held(data: Trajectories, users: Users) -> Unit:
    """The unit of trajectories: their own, or that stated by the caller.

    Raises:
        ParameterError: The trajectories have a unit, and the caller states another.
        TrajectoryError: The users are unknown.
    """
    if data.unit is None and not users.one_episode_is_one_user:
        message = (
            f"these trajectories were refused: they do not identify their users. If each of the {data.users:,} belongs "
            f"to a different user, state it: {SAY_SO}; else hand over a table with a column user"
        )
        raise TrajectoryError(message)
    if data.unit is None:
        return unit_of_table(users, None, named=False, steps=data.horizon)
    if users != NO_STATEMENT:
        message = f"these trajectories already have a unit ({data.unit.words}): state it where they are read"
        raise ParameterError(message, name="data")
    return data.unit


def write_trajectories(path: Path | str, trajectories: Trajectories) -> None:
    """Write Parquet, CSV or NPZ by the path's ending, under a temporary name first: never half a file.

    Parquet and CSV have the columns episode (from 0), step (from 1), state, action, reward and next_state; they do not
    contain S and A, unlike an NPZ file. Parquet has the unit of privacy in its metadata; for the other formats it must
    be stated again when reading.

    Raises:
        FileFormatError: The path has another ending, or the file cannot be written.
    """
    path = Path(path)
    writers: dict[str, Callable[[BinaryIO, Trajectories], None]] = {
        ".parquet": _write_parquet,
        ".csv": _write_csv,
        ".npz": _write_npz,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise FileFormatError(f"{path}: expected a file that ends in {', '.join(writers)}")
    try:
        with whole_file(path) as file:
            write(file, trajectories)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {error}") from error


def _write_parquet(file: BinaryIO, data: Trajectories) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(_columns(data))
    if data.unit is not None:
        table = table.replace_schema_metadata({METADATA: json.dumps(data.unit.to_dict())})
    pq.write_table(table, file)


def _write_csv(file: BinaryIO, data: Trajectories) -> None:
    import pyarrow as pa
    from pyarrow import csv

    csv.write_csv(pa.table(_columns(data)), file)


def _write_npz(file: BinaryIO, data: Trajectories) -> None:
    np.savez(
        file,
        states=data.states,
        actions=data.actions,
        rewards=data.rewards,
        num_states=np.int64(data.num_states),
        num_actions=np.int64(data.num_actions),
    )


def _columns(data: Trajectories) -> dict[str, np.ndarray]:
    return {
        "episode": np.repeat(np.arange(data.users), data.horizon),
        "step": np.tile(np.arange(1, data.horizon + 1), data.users),
        "state": data.states[:, :-1].ravel(),
        "action": data.actions.ravel(),
        "reward": data.rewards.ravel(),
        "next_state": data.states[:, 1:].ravel(),
    }
