"""Checks on pairs: they must be neighbours with data that meets the releases' preconditions; applied to all witnesses.

Independent of how a pair was found: it uses only the relation, the statistics' own preconditions, and `compute`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.relations import Relation, ReplaceOne, ZeroOut, most_trajectories
from privcheck.declare.releases import Release
from privcheck.declare.statistics import (
    ClippedSums,
    FeatureSums,
    GramMatrices,
    Records,
    SmallestEigenvalue,
    SparseDifference,
    Vectors,
)
from privcheck.declare.statistics.linear import step_bounds
from privcheck.declare.statistics.records import not_neighbours
from privcheck.declare.statistics.sensitivities import is_derived, tabular_sizes

_OVER = 1 + 1e-13  # a norm of 1 comes out as 1 + a few roundings; losses are rounded down by more than that
_MOST_CELLS = 20_000_000  # of a statistic that is computed to see whether its `difference` is one
_ROUNDED = 1e-9  # relative to the largest entry: sums of floats in another order


def fault(
    relation: Relation, releases: Sequence[Release], pair: tuple[Any, Any], values: Mapping[str, Fraction]
) -> str:
    """Reason why a pair is not a pair of neighbours that the releases allow; empty if it is one.

    Args:
        relation: Which pairs are neighbours.
        releases: Releases that contain the user.
        pair: One user's data in D and in D′; None where the user is absent.
        values: The parameters.
    """
    users = [user for user in pair if user is not None]
    if users and all(isinstance(user, Records) for user in users):
        return not_neighbours(relation, *pair) or _of_releases(releases, pair, values)
    present = 2 if isinstance(relation, ReplaceOne) else 1
    if len(users) != present:
        return f"{len(users)} of the two hold the user, but the relation is: {relation.words}"
    for user in users:
        several = not (isinstance(user, Vectors) and user.per == "user")
        most = most_trajectories(relation, values) if several else 1
        if isinstance(user, Trajectories | Regressors | Vectors) and not 1 <= user.users <= most:
            return f"expected the data of one user on each side, 1 to {most} rows, got {user.users}"
    return _find_not_shared(relation, users) or _of_releases(releases, pair, values)


def _of_releases(releases: Sequence[Release], pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> str:
    """First precondition of a release that a pair violates, in words; empty if there is none."""
    for release in releases:
        for user in (user for user in pair if user is not None):
            if why := _find_broken(release, user, values):
                return f"{release.name}: {why}"
        if not is_derived(release.statistic) and (why := not_a_difference(release, pair, values)):
            return f"{release.name}: {why}"
    return ""


def _find_not_shared(relation: Relation, users: Sequence[Any]) -> str:
    """Where the users differ at step 1 although the relation fixes its state and action; empty if nowhere."""
    if not isinstance(relation, ReplaceOne) or relation.initial != "fixed":
        return ""
    first, second = users
    if isinstance(first, Trajectories) and isinstance(second, Trajectories):
        alike = first.states[0, 0] == second.states[0, 0] and first.actions[0, 0] == second.actions[0, 0]
        return "" if alike else "step 1's state and action differ, which the relation says are in common"
    if isinstance(first, Regressors) and isinstance(second, Regressors):
        for kind in ("vectors", "weights"):  # functions of the state and action of a step
            ours, theirs = getattr(first, kind), getattr(second, kind)
            if apart := [n for n in ours if n in theirs and not np.array_equal(ours[n][:, 0], theirs[n][:, 0])]:
                return f"{apart[0]} differs at step 1, whose state and action are in common"
        return ""
    return "step 1's state and action must be in common, but custom data do not show them"


def _find_broken(release: Release, user: Any, values: Mapping[str, Fraction]) -> str:
    """Precondition of the statistic that the data violates, in words; empty if there is none."""
    statistic, sizes = release.statistic, tabular_sizes(release.statistic, values)
    if isinstance(statistic, GramMatrices | FeatureSums | SmallestEigenvalue):
        return _beyond_bounds(statistic, user, values)
    if isinstance(statistic, ClippedSums):
        return _longer_than_clipped(statistic, user, values)
    if sizes is not None and (why := _of_other_sizes(user, sizes)):
        return why
    if sizes is not None and is_derived(statistic) and not statistic.sensitivity(ZeroOut()).stepwise:
        return ""  # `Trajectories` are states, actions and rewards in range; only bits are fewer
    try:
        if sizes is None:
            compute_one(release.statistic, user)
        else:
            statistic.difference((user, None))  # reads every weight, and makes no table
    except Exception as error:  # noqa: BLE001 - the author's own code: whatever it raises says why
        return f"{type(error).__name__}: {error}"
    return ""


def _beyond_bounds(
    statistic: GramMatrices | FeatureSums | SmallestEigenvalue, user: Any, values: Mapping[str, Fraction]
) -> str:
    if not isinstance(user, Regressors):
        return f"expected regressors, got {type(user).__name__}"
    steps, dimension = (int(size.number(values)) for size in (statistic.steps, statistic.dimension))
    named = [("vectors", statistic.vector)]
    if isinstance(statistic, FeatureSums):
        named.append(("targets", statistic.target))
    if statistic.weight is not None:
        named.append(("weights", statistic.weight))
    for kind, column in named:
        if column.name not in getattr(user, kind):
            return f"no {kind} called {column.name!r}"
        column_values = user.column(kind, column.name)
        if kind == "vectors" and column_values.shape[2] != dimension:
            return f"{column.name} has {column_values.shape[2]} dimensions, expected {dimension}"
        if column_values.shape[1] != steps:
            return f"{column.name} has {column_values.shape[1]} steps, expected {steps}"
        size = np.linalg.norm(column_values, axis=2) if kind == "vectors" else column_values
        bounds = step_bounds(column.bound, values, steps)
        if (wrong := (size < 0) | (size > bounds * _OVER)).any():
            row, step = (int(i) for i in np.argwhere(wrong)[0])
            what = "the norm of " if kind == "vectors" else ""
            return (
                f"{what}{column.name} is {size[row, step]:.6g} at step {step + 1}, "
                f"expected 0 to {bounds[step]:.6g} ({column.bound})"
            )
    return ""


def _of_other_sizes(user: Any, sizes: tuple[int, int, int]) -> str:
    if not isinstance(user, Trajectories):
        return f"expected a trajectory, got {type(user).__name__}"
    given = (user.horizon, user.num_states, user.num_actions)
    return "" if given == sizes else f"expected a trajectory with (H, S, A) = {sizes}, got {given}"


def _longer_than_clipped(statistic: ClippedSums, user: Any, values: Mapping[str, Fraction]) -> str:
    if not isinstance(user, Vectors):
        return f"expected vectors, got {type(user).__name__}"
    if user.per != statistic.per:
        return f"expected one row a {statistic.per}, got one row a {user.per}"
    if user.ball != statistic.ball:
        return f"expected vectors clipped in {statistic.ball}, got {user.ball}"
    if user.rows.shape[1] != statistic.shape(values)[-1]:
        return f"its vectors have {user.rows.shape[1]} dimensions, expected {statistic.shape(values)[-1]}"
    longest, norm = float(user.lengths.max()), statistic.norm.number(values)
    return f"a vector has norm {longest:.6g}, expected {norm:.6g} at most" if longest > norm * _OVER else ""


def not_a_difference(release: Release, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> str:
    """Reason why a statistic's `difference` does not match what it computes; empty if it matches."""
    statistic = release.statistic
    try:
        if np.prod(statistic.shape(values), dtype=float) > _MOST_CELLS:
            return f"more than {_MOST_CELLS:,} cells, too many to compare its difference with what it computes"
        first, second = (None if user is None else compute_one(statistic, user) for user in pair)
        change = dense(statistic.difference(pair), (first if first is not None else second).shape)  # type: ignore[union-attr] # one is there
    except Exception as error:  # noqa: BLE001 - the author's own code: whatever it raises says why
        return f"{type(error).__name__}: {error}"
    true = (0 if first is None else first) - (0 if second is None else second)
    largest = max(1e-300, float(np.abs(true).max(initial=0.0)))
    if not np.allclose(change, true, rtol=0, atol=_ROUNDED * largest):
        return "its `difference` is not that of what it computes for the two users"
    return ""


def compute_one(statistic: Any, user: Any) -> NDArray[np.float64]:
    """Compute a statistic on the data of one user.

    Raises:
        ValueError: A value is not finite.
    """
    value = np.asarray(statistic.compute(user), dtype=np.float64)
    if not np.isfinite(value).all():
        raise ValueError("a value is not finite")
    return value


def dense(change: SparseDifference, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Expand a sparse change to an array of the given shape, with both entries of every mirrored pair.

    Raises:
        ValueError: A cell lies outside the shape.
    """
    cells = np.asarray(change.cells)
    if cells.size and not (cells.min() >= 0 and cells.max() < np.prod(shape, dtype=float)):
        raise ValueError("its `difference` names cells that do not exist")
    whole = np.zeros(int(np.prod(shape)))
    whole[cells] = change.change
    if change.mirrored is not None:
        above = cells[change.mirrored]
        d = shape[-1]
        matrix, row, column = above // (d * d), above // d % d, above % d
        whole[matrix * d * d + column * d + row] = change.change[change.mirrored]
    return whole.reshape(shape)
