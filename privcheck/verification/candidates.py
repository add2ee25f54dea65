"""Pairs of one user's data that are tried as witnesses: each is a concrete pair whose loss is then computed exactly.

Tabular statistics are moved furthest by the extreme pairs of `relations`. Linear ones pull against each other: Gram
matrices move most for orthogonal vectors, feature sums for opposite ones, so the angle at each step is chosen for all
releases together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Declaration, Release
from privcheck.errors import ParameterError
from privcheck.regressors import Regressors
from privcheck.relations import LARGEST, LONGEST, ReplaceOne, extreme_pairs
from privcheck.statistics import Column, FeatureSums, GramMatrices
from privcheck.statistics.linear import step_bounds

_MOST_NUMBERS = 20_000_000  # of one user's vectors
_GRID = 2.0**-26  # entries of the vectors are multiples of it, rounded towards 0: products are exact, norms at most 1

UserPair = tuple[Any, Any]


def candidate_pairs(declaration: Declaration, values: Mapping[str, Fraction], group: str) -> Iterator[UserPair]:
    """Yields pairs of one user's data for a user of the group; none where they would be too long to be written out.

    Args:
        declaration: What is attacked.
        values: Its parameters.
        group: Of the partition of the users.

    Raises:
        ParameterError: A tabular declaration has no H, S or A.
    """
    if declaration.candidates is not None:
        yield from declaration.candidates(values)
        return
    linear = [r for r in declaration.seen_by(group) if isinstance(r.statistic, GramMatrices | FeatureSums)]
    if linear:
        if len(linear) < len(declaration.seen_by(group)):
            message = f"{declaration.name} mixes linear and other statistics: give the declaration its own `candidates`"
            raise ParameterError(message)
        yield from _linear_pairs(declaration, linear, values)
        return
    missing = [name for name in ("H", "S", "A") if name not in values]
    if missing:
        raise ParameterError(f"{declaration.name} has no {', '.join(missing)}: no trajectories to search for a witness")
    sizes = (int(values["H"]), int(values["S"]), int(values["A"]))
    if sizes[0] <= LONGEST and max(sizes) <= LARGEST:
        yield from extreme_pairs(declaration.relation, *sizes)


def _linear_pairs(
    declaration: Declaration, releases: Sequence[Release], values: Mapping[str, Fraction]
) -> Iterator[UserPair]:
    shape = releases[0].statistic.shape(values)
    horizon, d = int(shape[0]), int(shape[-1])
    if horizon * d > _MOST_NUMBERS:
        return
    if not isinstance(declaration.relation, ReplaceOne):
        on_an_axis = {_statistic(r).vector.name: np.zeros(horizon) for r in releases}  # a diagonal change
        user = _users(releases, values, horizon, d, on_an_axis)[0]
        yield user, None
        yield None, user
        return
    best = {c.name: _best_cosines(releases, c, values, horizon, d) for c in _vectors(releases)}
    if declaration.relation.initial == "fixed":
        for cosines in best.values():
            cosines[0] = 1.0  # step 1's pair, and with it every vector, is common to both
    yield _users(releases, values, horizon, d, best)


def _statistic(release: Release) -> GramMatrices | FeatureSums:
    statistic = release.statistic
    assert isinstance(statistic, GramMatrices | FeatureSums)
    return statistic


def _vectors(releases: Sequence[Release]) -> list[Column]:
    return list({_statistic(r).vector.name: _statistic(r).vector for r in releases}.values())


def _best_cosines(
    releases: Sequence[Release], vector: Column, values: Mapping[str, Fraction], horizon: int, d: int
) -> NDArray[np.float64]:
    """Returns ⟨x, z⟩/(‖x‖‖z‖) at each step that maximises the Gaussian loss of all releases of one vector together.

    With everything at its bound a Gram matrix moves by 2·size²(1 − c²) and a feature sum by 2·size²(1 − c) in squares:
    the sum is a parabola in c, with its top at c = −v/2g.
    """
    if d == 1:
        return np.full(horizon, -1.0)
    gram, sums = np.zeros(horizon), np.zeros(horizon)
    for release in releases:
        statistic = _statistic(release)
        if statistic.vector.name != vector.name:
            continue
        spread = release.mechanism.std.number(values) ** 2
        halved = 2.0 if getattr(release.mechanism, "kind", "") == "goe" else 1.0
        times = release.schedule.times.number(values)
        pull = step_bounds(statistic.size, values, horizon) ** 2 * (times / (spread * halved))
        if isinstance(statistic, GramMatrices):
            gram += pull
        else:
            sums += pull
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.where(gram > 0, -sums / (2 * gram), -1.0)
    return np.clip(top, -1.0, 0.0)


def _users(
    releases: Sequence[Release],
    values: Mapping[str, Fraction],
    horizon: int,
    d: int,
    cosines: Mapping[str, NDArray[np.float64]],
) -> tuple[Regressors, Regressors]:
    """Returns two users at all bounds whose vectors meet at the given cosines.

    x = (a, b) and z = ±(b, a) with a² + b² = 1, 2ab = |c|: the Gram matrices then differ by a diagonal matrix, which is
    where noise on and above the diagonal protects least.
    """
    lengths, targets, weights = column_bounds(releases, values, horizon)
    first, second = {}, {}
    for name, length in lengths.items():
        c = cosines[name]
        x, z = np.zeros((1, horizon, d)), np.zeros((1, horizon, d))
        if d == 1:
            x[0, :, 0], z[0, :, 0] = length, np.where(c < 0, -length, length)
        else:
            side = np.sqrt(np.clip(1 - c * c, 0.0, 1.0))
            a, b = np.sqrt((1 + side) / 2), np.sqrt((1 - side) / 2)
            a, b = np.floor(a / _GRID) * _GRID, np.floor(b / _GRID) * _GRID
            opposite = c <= -1.0  # exactly, on one axis
            a, b = np.where(opposite, 1.0, a), np.where(opposite, 0.0, b)
            x[0, :, 0], x[0, :, 1] = a * length, b * length
            z[0, :, 0] = np.where(opposite, -a, np.where(c < 0, -b, b)) * length
            z[0, :, 1] = np.where(opposite, 0.0, np.where(c < 0, -a, a)) * length
        first[name], second[name] = x, z
    one = Regressors(vectors=first, targets=targets, weights=weights)
    return one, Regressors(vectors=second, targets=targets, weights=weights)


def column_bounds(
    releases: Sequence[Release], values: Mapping[str, Fraction], horizon: int
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Returns every column at its bound; where two statistics bound a column differently, at the smaller one."""
    lengths: dict[str, NDArray[np.float64]] = {}
    targets: dict[str, NDArray[np.float64]] = {}
    weights: dict[str, NDArray[np.float64]] = {}
    for release in releases:
        statistic = _statistic(release)
        target = statistic.target if isinstance(statistic, FeatureSums) else None
        for found, column in ((lengths, statistic.vector), (targets, target), (weights, statistic.weight)):
            if column is not None:
                bound = step_bounds(column.bound, values, horizon)
                found[column.name] = np.minimum(found.get(column.name, np.full(horizon, math.inf)), bound)
    return lengths, _rows(targets), _rows(weights)


def _rows(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {name: column[np.newaxis] for name, column in columns.items()}
