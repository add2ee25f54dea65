"""Trajectories that are in memory already: frames and tables with a row a step go through the same door as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from privcheck.errors import ParameterError, TrajectoryError
from privcheck.reading.door import NEEDED
from privcheck.reading.problems import Problems
from privcheck.reading.tables import as_table
from privcheck.reading.trajectories import FileTrajectories, admit_table, gather_facts, refuse_sizes
from privcheck.reading.users import NO_STATEMENT, SAY_SO, Users, unit_of_table
from privcheck.trajectories import Trajectories
from privcheck.unit import Unit


class ArrowTable(Protocol):
    """A table that speaks Arrow, as frames of pandas and polars and tables of pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns its rows as an Arrow stream."""
        ...


Held: TypeAlias = Trajectories | FileTrajectories | ArrowTable


def hold_trajectories(
    held: Held, *, num_states: int | None = None, num_actions: int | None = None, users: Users = NO_STATEMENT
) -> FileTrajectories:
    """Returns the trajectories in a table in memory, after looking at every row; as `read_trajectories` of a file.

    Trajectories are taken as they are: with the S, A and unit of privacy that they were made with.

    Args:
        held: A pandas frame, a pyarrow table or another that speaks Arrow, with a row a step; or trajectories.
        num_states: S, publicly known.
        num_actions: A, publicly known.
        users: What the person who hands them over says about the users.

    Raises:
        ParameterError: S or A is not a positive whole number, this is no table, or two statements about the users
            contradict each other.
        FileFormatError: The table has no rows, or lacks a column.
        TrajectoryError: The users are unknown, rows are wrong, or trajectories are of other sizes than those given.
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
    """Returns the unit of trajectories, which a reader made, or who hands them over states.

    Raises:
        ParameterError: Two statements contradict each other.
        TrajectoryError: The users are unknown.
    """
    if data.unit is None and not users.one_episode_is_one_user:
        message = (
            f"these trajectories were refused: they do not say who their users are. If each of the {data.users:,} is "
            f"another user's, say so: {SAY_SO}; else hand over a table with a column user"
        )
        raise TrajectoryError(message)
    if data.unit is None:
        return unit_of_table(users, None, named=False, steps=data.horizon)
    if users != NO_STATEMENT:
        message = f"these trajectories have a unit already ({data.unit.words}): state it where they are read"
        raise ParameterError(message, name="data")
    return data.unit
