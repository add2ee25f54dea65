"""Trajectories that are in memory already: frames and tables with a row a step go through the same door as files."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeAlias

from privcheck.errors import TrajectoryError
from privcheck.reading.door import NEEDED, OPTIONAL
from privcheck.reading.problems import Problems
from privcheck.reading.tables import as_table
from privcheck.reading.trajectories import FileTrajectories, admit_table, gather_facts, refuse_sizes
from privcheck.trajectories import Trajectories


class ArrowTable(Protocol):
    """A table that speaks Arrow, as frames of pandas and polars and tables of pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns its rows as an Arrow stream."""
        ...


Held: TypeAlias = Trajectories | FileTrajectories | ArrowTable


def hold_trajectories(
    held: Held, *, num_states: int | None = None, num_actions: int | None = None, trajectories: int = 1
) -> FileTrajectories:
    """Returns the trajectories in a table in memory, after looking at every row; as `read_trajectories` of a file.

    Trajectories are taken as they are: with the S and A that they were made with, one a user.

    Args:
        held: A pandas frame, a pyarrow table or another that speaks Arrow, with a row a step; or trajectories.
        num_states: S, publicly known.
        num_actions: A, publicly known.
        trajectories: How many episodes a user has at most, as the relation says.

    Raises:
        ParameterError: S, A or how many episodes a user has is no positive whole number, or this is no table.
        FileFormatError: The table has no rows, or lacks a column.
        TrajectoryError: Rows are wrong, or trajectories are of other sizes than those given.
    """
    refuse_sizes(num_states, num_actions, trajectories)
    known = (num_states, num_actions)
    if isinstance(held, Trajectories | FileTrajectories):
        users = held if isinstance(held, Trajectories) else held.trajectories
        own = (users.num_states, users.num_actions)
        for name, size, made in zip("SA", known, own, strict=True):
            if size is not None and size != made:
                raise TrajectoryError(f"these trajectories were made with {name} = {made}: expected {name} = {size}")
        if isinstance(held, FileTrajectories) and None in known:
            return held  # with its warning, where S or A was taken from the data
        facts: dict[str, str | int] = {"format": "Trajectories", "rows": users.actions.size}
        return gather_facts(users, facts, own, rows="users" if trajectories == 1 else "episodes")
    table = as_table(held, needed=NEEDED, optional=OPTIONAL)
    return admit_table(table, Path(type(held).__name__), known, trajectories, Problems())
