"""Reading of episodes with observations, vectors of numbers, from a user's own Parquet file or from memory.

One row per step, in any order, with the columns episode, step, observation (a list of numbers), action, reward and
terminated, and user; other columns are ignored and named in the facts. Steps count from 0 or from 1, the same for all,
and episodes may have different lengths.

The number of coordinates and of actions, the longest episode, and the bounds of observations and rewards are public
facts: the caller states them, and every row is checked against them. Bounds taken from the data would be a release that
no noise covers, so there is no way to infer them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.reading.row_checks import Order, check_users, order_rows
from privcheck.data.reading.tables import (
    CONVENTIONS,
    Problems,
    Table,
    as_table,
    check_range,
    identifiers,
    read_table,
    real_numbers,
    require_file,
    whole_numbers,
)
from privcheck.data.reading.trajectories import ArrowTable, read_stored, refusal
from privcheck.data.reading.users import (
    DEPENDS_ON_DATA,
    METADATA,
    NO_STATEMENT,
    Users,
    most_of,
    refuse_unknown,
    unit_of_table,
)
from privcheck.errors import FileFormatError, ParameterError
from privcheck.support.display import Brief
from privcheck.support.files import whole_file
from privcheck.terms.unit import Unit

NEEDED: Final = ("episode", "step", "observation", "action", "reward", "terminated")
_LONGEST: Final = 100_000  # steps
_WIDEST: Final = 10_000  # coordinates

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Public facts about episodes with observations, stated by a person who has not looked at the data.

    Attributes:
        low: (n,) the least value of each coordinate of an observation …
        high: … and the largest.
        actions: Number of actions, whose codes count from 0.
        rewards: The least and the largest reward of a step.
        limit: Largest number of steps of an episode.

    Raises:
        ParameterError: A bound is not finite, above its counterpart, or a number is not whole and positive.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    actions: int
    rewards: tuple[float, float]
    limit: int

    def __post_init__(self) -> None:
        pairs = [*zip(self.low, self.high, strict=False), self.rewards]
        lengths = len(self.low) == len(self.high) and 1 <= len(self.low) <= _WIDEST
        if not lengths or not all(np.isfinite(low) and np.isfinite(high) and low <= high for low, high in pairs):
            message = "expected finite bounds of each coordinate and of rewards, no lower one above the upper one"
            raise ParameterError(f"{message}, got {self.low}, {self.high} and {self.rewards}"[:300], name="bounds")
        for name, number, most in (("actions", self.actions, _WIDEST), ("limit", self.limit, _LONGEST)):
            if type(number) is not int or not 1 <= number <= most:
                message = f"{name}: expected a whole number from 1 to {most:,}, got {number!r}"
                raise ParameterError(message, name=name, given=number)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ObservedEpisodes(Brief):
    """Episodes with observations, one row per episode, sorted by episode name; what lies after an end is 0.

    Attributes:
        observations: (episodes, T, n) before each step, as the file has them.
        actions: (episodes, T) codes.
        rewards: (episodes, T).
        lengths: (episodes,) number of steps.
        terminated: (episodes,) whether the episode ended in a terminal state, and not at a time limit.
        unit: Who the users are, and on whose word.
        facts: Name, format, rows, users and sizes, for a report.
    """

    observations: Array
    actions: NDArray[np.int64]
    rewards: Array
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    unit: Unit
    facts: Mapping[str, str | int]


def read_observations(
    given: Path | str | ArrowTable, *, bounds: Bounds, users: Users = NO_STATEMENT
) -> ObservedEpisodes:
    """Read episodes with observations, checking every row.

    Args:
        given: A .parquet file; or a pandas frame, a pyarrow table or another with the Arrow interface.
        bounds: The public facts.
        users: Statement about the users, as for `read_trajectories`.

    Raises:
        ParameterError: Two statements about the users contradict each other, or the value is not a table.
        FileFormatError: The file is missing, empty, not Parquet, or lacks a column.
        TrajectoryError: The users are unknown, or rows are invalid. One message has all kinds of problems, with their
            first places, counted from row 1.
    """
    problems = Problems()
    if isinstance(given, str | Path):
        path = require_file(given, (".parquet",))
        table = read_table(path, needed=NEEDED, optional=(users.name,), problems=problems)
    else:
        path = Path(type(given).__name__)
        table = as_table(given, needed=NEEDED, optional=(users.name,))

    def look(names: Sequence[str]) -> Mapping[str, Any]:
        asked = {"needed": ("episode",), "optional": names[1:]}
        if isinstance(given, str | Path):
            return read_table(path, problems=Problems(), **asked).columns
        return as_table(given, **asked).columns

    return admit_observations(table, path, bounds=bounds, users=users, problems=problems, look=look)


def admit_observations(
    table: Table,
    path: Path,
    *,
    bounds: Bounds,
    users: Users,
    problems: Problems,
    look: Callable[[Sequence[str]], Mapping[str, Any]],
) -> ObservedEpisodes:
    """Check a table's rows and return its episodes.

    Args:
        table: The columns `NEEDED`, and that of the users if there is one.
        path: Name of the table in messages.
        bounds: The public facts.
        users: Statement of the reader about its users.
        problems: Problems found so far.
        look: Reads more of its columns, for a refusal that suggests columns of users.

    Raises:
        ParameterError: Two statements about the users contradict each other.
        TrajectoryError: The users are unknown, or rows are invalid.
    """
    stored = read_stored(table, path)
    named = users.name in table.columns
    refuse_unknown(str(path), users, stored, [*table.columns, *table.ignored], look)
    if named:
        table.columns["user"] = table.columns.pop(users.name)
    facts: dict[str, str | int] = {"file": path.name, "format": table.format, "rows": table.rows}
    if table.ignored:
        facts["ignored columns"] = ", ".join(table.ignored)
    if table.depends_on_data:
        facts[DEPENDS_ON_DATA] = table.depends_on_data
    read = _admit(table, bounds, most_of(users, stored), problems)
    if read is None:
        raise refusal(path, f"{table.rows:,} rows; {CONVENTIONS[table.unit]}", problems)
    unit = unit_of_table(users, stored, named=named, steps=bounds.limit)
    facts |= {"protected": unit.words, "stated by": unit.stated_by}
    facts |= {"users" if unit.trajectories == 1 else "episodes": len(read["lengths"])}
    facts |= {"observed numbers": len(bounds.low), "actions": bounds.actions, "steps at most": bounds.limit}
    return ObservedEpisodes(**read, unit=unit, facts=facts)


def _admit(table: Table, bounds: Bounds, most: int, problems: Problems) -> dict[str, Any] | None:
    """The arrays of the episodes by name; None if there are problems."""
    episode = identifiers(table, "episode", problems)
    user = identifiers(table, "user", problems) if "user" in table.columns else None
    step = whole_numbers(table, "step", problems)
    observation = _vectors(table, bounds, problems)
    action = whole_numbers(table, "action", problems)
    check_range("action", action, bounds.actions, table.place, problems)
    reward = real_numbers(table, "reward", problems)
    least, largest = bounds.rewards
    outside = np.isfinite(reward) & ~((reward >= least) & (reward <= largest))
    problems.add(
        f"reward: expected a number from {least:g} to {largest:g}, the stated public bounds (clip rewards to bounds "
        "that are publicly known, or state wider ones)",
        outside,
        table.place,
    )
    ended = _flags(table, problems)
    order = order_rows(table, episode, step, problems)
    if order is None:
        problems.say("no row has an episode and a step")
        return None
    ends = np.append(order.starts[1:], len(order.rows))
    lengths = (ends - order.starts).astype(np.int64)
    _check_steps(table, order, lengths, bounds.limit, problems)
    early = ended[order.rows]
    early[ends - 1] = False
    problems.add("terminated: expected no step of the episode after it", order.rows[early], table.place)
    if user is not None:
        check_users(table, order, user, problems, most=most)
    if problems.lines:
        return None
    places = np.repeat(np.arange(len(lengths)), lengths), order.step - order.base
    return {
        "observations": _spread(observation[order.rows], places, lengths),
        "actions": _spread(action.values[order.rows], places, lengths),
        "rewards": _spread(reward[order.rows], places, lengths),
        "lengths": lengths,
        "terminated": ended[order.rows[ends - 1]],
    }


def _spread(rows: NDArray[Any], places: tuple[NDArray[Any], NDArray[Any]], lengths: NDArray[np.int64]) -> NDArray[Any]:
    """Rows at their episodes and steps, 0 elsewhere."""
    found = np.zeros((len(lengths), int(lengths.max()), *rows.shape[1:]), rows.dtype)
    found[places] = rows
    return found


def _check_steps(table: Table, order: Order, lengths: NDArray[np.int64], limit: int, problems: Problems) -> None:
    """Report episodes with a gap, and steps beyond the limit."""
    position = np.arange(len(order.rows)) - np.repeat(order.starts, lengths)
    gaps = order.step - order.base != position
    first = gaps & ~np.concatenate([[False], gaps[:-1] & (np.diff(order.episode) == 0)])
    problems.add(
        f"missing steps: expected every episode to count from {order.base} without a gap",
        order.rows[first],
        table.place,
    )
    problems.add(
        f"steps beyond the stated limit of {limit} an episode (state the true one, or cut longer episodes)",
        order.rows[~gaps & (position == limit)],
        table.place,
    )


def _flags(table: Table, problems: Problems) -> NDArray[np.bool_]:
    """The column of ends: true and false, or 1 and 0."""
    import pyarrow as pa

    if pa.types.is_boolean(table.columns["terminated"].type):
        column = table.columns.pop("terminated")
        problems.add("terminated: empty", column.is_null().to_numpy(), table.place)
        flags: NDArray[np.bool_] = column.fill_null(False).to_numpy().astype(np.bool_)
        return flags
    numbers = whole_numbers(table, "terminated", problems)
    check_range("terminated", numbers, 2, table.place, problems)
    ones: NDArray[np.bool_] = numbers.values == 1
    return ones


def _vectors(table: Table, bounds: Bounds, problems: Problems) -> Array:
    """The column of observations, (rows, n); what is not as stated is a problem with its place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n, column = len(bounds.low), table.columns.pop("observation")
    blank, kind = np.zeros((table.rows, n)), column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    numbers = lists and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))
    if not numbers:
        problems.say(
            f"observation: expected a column of lists of {n} numbers, got one of type {kind} (separate columns become "
            "one: `privcheck prepare RAW --observe NAME,NAME`)"
        )
        return blank
    counts = pc.fill_null(pc.list_value_length(column), -1).to_numpy()
    wrong = counts != n
    problems.add(f"observation: expected {n} numbers", wrong, table.place)
    if wrong.any():
        return blank
    flat = pc.list_flatten(column).cast(pa.float64(), safe=False)
    values: Array = np.array(flat.to_numpy(), dtype=np.float64).reshape(-1, n)
    finite = np.isfinite(values)
    problems.add("observation: not finite", np.asarray(~finite.all(axis=1)), table.place)
    outside = finite & ~((values >= np.array(bounds.low)) & (values <= np.array(bounds.high)))
    for coordinate, (low, high, bad) in enumerate(zip(bounds.low, bounds.high, outside.T, strict=True)):
        problems.add(
            f"observation: expected coordinate {coordinate} from {low:g} to {high:g}, the stated public bounds (clip "
            "it to bounds that are publicly known, or state wider ones)",
            bad,
            table.place,
        )
    return values


def write_observations(path: Path, episodes: ObservedEpisodes) -> None:
    """Write Parquet that `read_observations` reads, under a temporary name first: never half a file.

    Episodes are numbered from 0, and steps from 1. The unit of privacy is in the metadata.

    Raises:
        FileFormatError: The path does not end in .parquet, or the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix.lower() != ".parquet":
        raise FileFormatError(f"{path}: expected a name that ends in .parquet, which has columns of vectors")
    lengths, n = episodes.lengths, episodes.observations.shape[2]
    live = np.arange(episodes.actions.shape[1]) < lengths[:, np.newaxis]
    episode, step = np.nonzero(live)
    flat = pa.array(episodes.observations[live].ravel())
    table = pa.table(
        {
            "episode": episode,
            "step": step + 1,
            "observation": pa.FixedSizeListArray.from_arrays(flat, n).cast(pa.list_(pa.float64())),
            "action": episodes.actions[live],
            "reward": episodes.rewards[live],
            "terminated": episodes.terminated[episode] & (step + 1 == lengths[episode]),
        }
    ).replace_schema_metadata({METADATA: json.dumps(episodes.unit.to_dict())})
    try:
        with whole_file(path) as file:
            pq.write_table(table, file)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {error}") from error
