"""Random users with the kind of data of a declaration, and their joint data.

One user is a `Trajectories`, a `Regressors`, the `Vectors` of clipped gradients, `Records` or a record drawn by the
declaration's `records`; None is an absent user, or one with zeroed-out data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors, Trajectories, concatenate
from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.relations import ReplaceOne, most_trajectories
from privcheck.declare.schedules import EveryEpisode, PerUser, Tree, load_of
from privcheck.declare.statistics import ClippedSums, FeatureSums, GramMatrices, Records, Stated, Vectors
from privcheck.errors import ParameterError
from privcheck.terms.symbols import expression
from privcheck.verification.candidates import (
    UserPair,
    column_bounds,
    draw_record,
    find_pairs,
    kinds_of_data,
    trajectory_sizes,
)
from privcheck.verification.neighbours import fault
from privcheck_audits.releases.canaries import random_users

Array = NDArray[np.float64]
Users = Sequence[Any]
_DrawUsers = Callable[[np.random.Generator, int], list[Any]]

_NUMBERS: Final = 400_000  # of a random user's vectors, at most
_ROWS: Final = 64  # records of a random user, at most
_CROWDS: Final = (1, 2, 3, 8, 40)  # others beside whom a statistic of one's own, which need be no sum, is tried
_JOINED: Final = (Trajectories, Regressors, Vectors, Records)


def others(declaration: Declaration, values: Mapping[str, Fraction], rng: np.random.Generator, number: int) -> Users:
    """Random users who keep every bound; none if the declaration's kind of data is unknown.

    Users with data that cannot be joined are absent if several would be in one output. Users with `Records` in one
    output come with the pair (`random_pair`), in different numbers.
    """
    draw = _drawing(declaration, values)
    if draw is None:
        return []
    apart = all(isinstance(release.schedule, Tree | PerUser) for release in declaration.noisy)
    if _stated(declaration) is not None and not _stream(declaration):
        return []
    users = draw(rng, number)
    return users if apart or all(isinstance(user, _JOINED) for user in users) else [None] * number


def gather_users(
    declaration: Declaration, values: Mapping[str, Fraction], rng: np.random.Generator, number: int
) -> Users:
    """Users whose data get noise; None throughout if the kind of data is unknown.

    If the data cannot be joined and all users would be in one output, one user is present.
    """
    users = others(declaration, values, rng, number)
    if any(user is not None for user in users):
        return users
    draw = _drawing(declaration, values)
    return [None] * number if draw is None else [*draw(rng, 1), *[None] * (number - 1)]


def random_pair(
    declaration: Declaration, values: Mapping[str, Fraction], rng: np.random.Generator, *, first: bool
) -> UserPair | None:
    """Two random neighbours; None if the declaration's kind of data is unknown.

    Args:
        declaration: The declaration, with its relation.
        values: Values of its parameters.
        rng: Generator of the users.
        first: Under relations of absence, whether the user is present in D.
    """
    draw = _drawing(declaration, values)
    if draw is None:
        return None
    one, other = draw(rng, 2)
    relation = declaration.relation
    if _stated(declaration) is not None:
        size = 0 if _stream(declaration) else int(rng.choice(_CROWDS))
        crowd = join(draw(rng, size)) if size else Records(rows=())
        one, other = join([crowd, one]), join([crowd, other])
        absent: Records | None = crowd
    else:
        absent = None
    pair: UserPair
    if not isinstance(relation, ReplaceOne):
        pair = (one, absent) if first else (absent, one)
    elif relation.initial == "fixed" and isinstance(one, Regressors):
        pair = one, _share_start(one, other)
    else:
        pair = one, other
    return None if fault(relation, declaration.noisy, pair, values) else pair


def join(users: Users) -> Any:
    """Join all users into one dataset; for regressors, the columns that all of them have.

    Raises:
        ParameterError: There are several users with data that cannot be joined.
    """
    if len(users) == 1:
        return users[0]
    if isinstance(users[0], Trajectories):
        return concatenate(users)
    if isinstance(users[0], Vectors):
        return replace(users[0], rows=np.concatenate([user.rows for user in users]))
    if isinstance(users[0], Records):
        return Records(rows=tuple(row for user in users for row in user.rows))
    if isinstance(users[0], Regressors):
        columns: dict[str, Any] = {}
        for kind in ("vectors", "targets", "weights"):
            names = [name for name in getattr(users[0], kind) if all(name in getattr(user, kind) for user in users)]
            columns[kind] = {name: np.concatenate([user.column(kind, name) for user in users]) for name in names}
        return Regressors(**columns)
    raise ParameterError(f"users' data of type {type(users[0]).__name__} cannot be concatenated", given=users[0])


def _drawing(declaration: Declaration, values: Mapping[str, Fraction]) -> _DrawUsers | None:
    """Function that draws users; None if their kind of data is unknown, or no user has the data of all releases."""
    releases, records = declaration.noisy, declaration.records
    linear = [r for r in releases if isinstance(r.statistic, GramMatrices | FeatureSums)]
    clipped = [r.statistic for r in releases if isinstance(r.statistic, ClippedSums)]
    stated = _stated(declaration)
    if records is None and len(kinds_of_data(releases)) > 1:
        return None
    one_a_leaf = any(load_of(release.schedule).most != expression(1) for release in releases)
    rows = 1 if one_a_leaf else min(_ROWS, most_trajectories(declaration.relation, values))
    one: Callable[[np.random.Generator], Any]
    if linear:
        shape = linear[0].statistic.shape(values)
        if shape[0] * shape[-1] > _NUMBERS:
            return None
        one = partial(_regressors, linear, values)
    elif records is not None:
        one = partial(draw_record, declaration, values)
    elif clipped:
        one = partial(_vectors, clipped, values, most=rows)
    elif stated is not None:
        one = partial(_record, stated, values)
    else:
        sizes = trajectory_sizes(declaration, values)
        if sizes is None or not _candidates_are_trajectories(declaration, values):
            return None
        return partial(_trajectories, declaration, sizes)
    return lambda rng, number: [one(rng) for _ in range(number)]


def _record(statistic: Stated, values: Mapping[str, Fraction], rng: np.random.Generator) -> Records:
    return Records(rows=(statistic.record(values, rng),))


def _candidates_are_trajectories(declaration: Declaration, values: Mapping[str, Fraction]) -> bool:
    """Whether the declaration's candidates are trajectories, if it has any: users with other data cannot be drawn."""
    if declaration.candidates is None:
        return True
    pairs = (pair for group in declaration.groups for pair in find_pairs(declaration, values, group))
    users = (user for pair in pairs for user in pair if user is not None)
    return isinstance(next(users, None), Trajectories)


def _stated(declaration: Declaration) -> Stated | None:
    """Statistic of records, for which users come in crowds; None if there is none."""
    statistic: Any = declaration.noisy[0].statistic
    return statistic if isinstance(statistic, Stated) and declaration.records is None else None


def _stream(declaration: Declaration) -> bool:
    return any(isinstance(release.schedule, Tree | EveryEpisode | PerUser) for release in declaration.noisy)


def _trajectories(
    declaration: Declaration, sizes: tuple[int, int, int], rng: np.random.Generator, number: int
) -> list[Trajectories]:
    at = {name: Fraction(size) for name, size in zip("HSA", sizes, strict=True)}
    drawn = random_users(number, at, rng, first=_first(declaration))
    if any(_bits(release) for release in declaration.noisy):
        drawn = replace(drawn, rewards=np.rint(drawn.rewards))
    return [drawn.user(index) for index in range(number)]


def _first(declaration: Declaration) -> tuple[int, int] | None:
    fixed = isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed"
    return (0, 0) if fixed else None


def _bits(release: Release) -> bool:
    return bool(getattr(getattr(release.statistic, "table", release.statistic), "bits", False))


def _vectors(
    statistics: Sequence[ClippedSums], values: Mapping[str, Fraction], rng: np.random.Generator, *, most: int
) -> Vectors:
    """Vectors of one user: along an axis, with entries of one size, or anywhere; of norm 0, C, or between."""
    d, per, ball = int(statistics[0].shape(values)[-1]), statistics[0].per, statistics[0].ball
    norm = min(statistic.norm.number(values, rounding="down") for statistic in statistics)
    number = 1 if per == "user" else (1, most, int(rng.integers(1, most + 1)))[int(rng.integers(3))]
    kind = rng.random()
    directions = np.eye(d)[rng.integers(0, d, number)] if kind < 1 / 3 else np.ones((number, d))
    if kind > 2 / 3:
        directions = rng.standard_normal((number, d))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[ball]
    directions = directions / np.linalg.norm(directions, ord=order, axis=1, keepdims=True)
    lengths = norm * _share(rng, number) * rng.choice([-1.0, 1.0], number)
    return Vectors(rows=directions * lengths[:, np.newaxis], norm=norm, per=per, ball=ball)


def _regressors(releases: Sequence[Release], values: Mapping[str, Fraction], rng: np.random.Generator) -> Regressors:
    """One user with vectors in any direction and numbers that are 0, at their bound, or between."""
    shape = releases[0].statistic.shape(values)
    lengths, targets, weights = column_bounds(releases, values, int(shape[0]))
    statistics = [r.statistic for r in releases if isinstance(r.statistic, GramMatrices | FeatureSums)]
    vectors = {}
    for name, bound in lengths.items():
        d = next(s.shape(values)[-1] for s in statistics if s.vector.name == name)
        direction = rng.standard_normal((1, bound.size, d))
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        vectors[name] = direction * (bound * _share(rng, bound.size) * (1 - 1e-12))[np.newaxis, :, np.newaxis]
    return Regressors(
        vectors=vectors,
        targets={name: bound * _share(rng, bound.size) for name, bound in targets.items()},
        weights={name: bound * _share(rng, bound.size) for name, bound in weights.items()},
    )


def _share(rng: np.random.Generator, size: int) -> Array:
    """Shares of a bound, half of them 0 or 1: extreme values matter, and uniform numbers alone miss them."""
    return np.where(rng.random(size) < 0.5, rng.integers(0, 2, size=size), rng.random(size))


def _share_start(first: Regressors, other: Regressors) -> Regressors:
    columns: dict[str, dict[str, Array]] = {}
    for kind in ("vectors", "targets", "weights"):
        columns[kind] = {name: column.copy() for name, column in getattr(other, kind).items()}
        if kind != "targets":  # functions of state and action alone, which step 1 has in common
            for name, column in columns[kind].items():
                column[:, 0] = first.column(kind, name)[:, 0]
    return Regressors(**columns)
