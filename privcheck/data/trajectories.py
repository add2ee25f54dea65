"""Users' data as arrays, one row per user: trajectories, and the input of linear regressions.

`privcheck.data.reading` makes them from Parquet, CSV and NPZ files.

Features φ(s, a) are public functions of a user's own state and action; targets such as V(s′) and weights such as 1/σ²
are functions of the user's own data and of the billboard. Conditional on the billboard, one user's row is the only
difference between neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import TrajectoryError
from privcheck.support.display import Brief

if TYPE_CHECKING:
    from privcheck.terms.unit import Unit


_SHOWN = 5  # problems of one kind that a message lists
_REWARDS = (
    "in [0, 1]: map them by public bounds, (reward − low)/(high − low), as `privcheck prepare --reward-range LOW HIGH`"
    " does for a table"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Trajectories(Brief):
    """Episodes of equal length, one per row: one per user, or several of a user under a relation that says so.

    Attributes:
        states: (users, H + 1) integers in [0, num_states); the last column is the state after the last step.
        actions: (users, H) integers in [0, num_actions).
        rewards: (users, H) floats in [0, 1].
        num_states: S.
        num_actions: A.
        unit: Who the users are, as given to the reader; None for trajectories that no reader made.

    Raises:
        TrajectoryError: Shapes disagree, a value is out of its range or not finite.
    """

    states: NDArray[np.int32]
    actions: NDArray[np.int32]
    rewards: NDArray[np.float64]
    num_states: int
    num_actions: int
    unit: Unit | None = None

    def __post_init__(self) -> None:
        users, steps = _shape(self.actions, "actions", None)
        _shape(self.states, "states", (users, steps + 1))
        _shape(self.rewards, "rewards", (users, steps))
        _refuse_indices("states", self.states, self.num_states)
        _refuse_indices("actions", self.actions, self.num_actions)
        _refuse("rewards", _REWARDS, ~((self.rewards >= 0) & (self.rewards <= 1)))
        object.__setattr__(self, "states", _freeze(self.states, np.int32))
        object.__setattr__(self, "actions", _freeze(self.actions, np.int32))
        object.__setattr__(self, "rewards", _freeze(self.rewards, np.float64))

    @property
    def users(self) -> int:
        """The number of users."""
        return int(self.actions.shape[0])

    @property
    def horizon(self) -> int:
        """The number of steps H of each episode."""
        return int(self.actions.shape[1])

    def user(self, index: int) -> Trajectories:
        """One user's trajectory as a dataset."""
        return take(self, slice(index, index + 1))


def concatenate(parts: Iterable[Trajectories]) -> Trajectories:
    """Concatenate the users of all parts, in order.

    Raises:
        TrajectoryError: The parts differ in H, S, A or unit of privacy, or there are no parts.
    """
    items = list(parts)
    shapes = {(p.horizon, p.num_states, p.num_actions) for p in items}
    if len(shapes) != 1:
        raise TrajectoryError(f"expected trajectories of one (H, S, A), got {sorted(shapes)}")
    units = list(dict.fromkeys(p.unit for p in items))
    if len(stated := [unit for unit in units if unit is not None]) > 1:
        shown = "; ".join(f"{unit.words}, stated by {unit.stated_by}" for unit in stated)
        raise TrajectoryError(f"expected trajectories of one unit of privacy, got {shown}")
    return Trajectories(
        states=np.concatenate([p.states for p in items]),
        actions=np.concatenate([p.actions for p in items]),
        rewards=np.concatenate([p.rewards for p in items]),
        num_states=items[0].num_states,
        num_actions=items[0].num_actions,
        unit=units[0] if len(units) == 1 else None,  # a part of unknown users makes the whole one
    )


def repeat(user: Trajectories, times: int) -> Trajectories:
    """`times` copies of the same rows."""
    return user if times == 1 else take(user, np.tile(np.arange(user.users), times))


def take(data: Trajectories, users: slice | NDArray[np.intp]) -> Trajectories:
    """The chosen users."""
    return Trajectories(
        states=data.states[users],
        actions=data.actions[users],
        rewards=data.rewards[users],
        num_states=data.num_states,
        num_actions=data.num_actions,
        unit=data.unit,
    )


def _shape(array: object, name: str, expected: tuple[int, int] | None) -> tuple[int, int]:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or 0 in array.shape:
        got = getattr(array, "shape", type(array).__name__)
        raise TrajectoryError(f"expected {name} as a non-empty array (users, steps), got {got}")
    if expected is not None and array.shape != expected:
        raise TrajectoryError(f"expected {name} of shape {expected}, got {array.shape}")
    return int(array.shape[0]), int(array.shape[1])


def _freeze(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    # what the caller could still change is copied: it was checked once
    own = np.array(array, dtype=dtype, order="C", copy=True if array.flags.writeable else None)
    own.flags.writeable = False
    return own


def _refuse_indices(name: str, array: NDArray[np.int32], size: int) -> None:
    if not np.issubdtype(array.dtype, np.integer):
        raise TrajectoryError(f"expected integer {name}, got an array of {array.dtype}")
    _refuse(name, f"in [0, {size})", (array < 0) | (array >= size))


def _refuse(name: str, expected: str, bad: NDArray[np.bool_]) -> None:
    if bad.any():
        where = np.argwhere(bad)
        # where, and not what: an error may reach a log, and values of users are private
        problems = [f"user {u}, step {h + 1}" for u, h in where[:_SHOWN]]
        if len(where) > _SHOWN:
            problems.append(f"and {len(where) - _SHOWN} more")
        raise TrajectoryError(f"expected {name} {expected}", problems=problems)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regressors(Brief):
    """Columns of floats, frozen.

    Attributes:
        vectors: By name, (users, H, d).
        targets: By name, (users, H).
        weights: By name, (users, H), at least 0.

    Raises:
        TrajectoryError: Shapes disagree, there is no vector, a value is not finite or a weight is negative.
    """

    vectors: Mapping[str, NDArray[np.float64]]
    targets: Mapping[str, NDArray[np.float64]]
    weights: Mapping[str, NDArray[np.float64]]

    def __post_init__(self) -> None:
        if not self.vectors:
            raise TrajectoryError("expected at least one column of vectors, got none")
        shape = next(iter(self.vectors.values())).shape[:2]
        for kind, dimensions in (("vectors", 3), ("targets", 2), ("weights", 2)):
            columns = {}
            for name, column in getattr(self, kind).items():
                columns[name] = _freeze_column(f"{kind} {name!r}", column, dimensions, shape)
                if kind == "weights" and (columns[name] < 0).any():
                    raise TrajectoryError(f"weights {name!r}: expected at least 0, got {columns[name].min():g}")
            object.__setattr__(self, kind, columns)

    @property
    def users(self) -> int:
        """The number of users."""
        return int(next(iter(self.vectors.values())).shape[0])

    @property
    def horizon(self) -> int:
        """The number of steps H."""
        return int(next(iter(self.vectors.values())).shape[1])

    def column(self, kind: str, name: str) -> NDArray[np.float64]:
        """The column of that kind and name.

        Raises:
            TrajectoryError: There is no such column; the message names the existing ones.
        """
        columns: Mapping[str, NDArray[np.float64]] = getattr(self, kind)
        if name not in columns:
            raise TrajectoryError(f"no {kind} called {name!r}; expected one of {', '.join(columns) or '(none)'}")
        return columns[name]


def choose_rows(user: Regressors, rows: NDArray[np.intp]) -> Regressors:
    """The chosen rows, in that order."""
    kinds = ("vectors", "targets", "weights")
    return replace(user, **{kind: {n: c[rows] for n, c in getattr(user, kind).items()} for kind in kinds})


def _freeze_column(
    name: str, column: NDArray[np.float64], dimensions: int, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    array = np.array(column, dtype=np.float64)
    if array.ndim != dimensions or array.shape[:2] != shape:
        wanted = "(users, H, d)" if dimensions == 3 else "(users, H)"
        raise TrajectoryError(f"{name}: expected shape {wanted} with (users, H) = {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise TrajectoryError(f"{name}: a value is not finite")
    array.flags.writeable = False
    return array
