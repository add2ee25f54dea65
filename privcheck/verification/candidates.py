"""Pairs of one user's data tried as witnesses, and the kind of data that a declaration allows to build.

The extreme pairs of `relations` have the largest change of tabular statistics. Linear statistics conflict: the change
of Gram matrices is largest for orthogonal vectors, that of feature sums for opposite ones, so the angle at each step is
chosen for all releases together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import LARGEST, LONGEST, ReplaceOne, extreme_pairs, most_trajectories
from privcheck.declare.releases import Release, repeat_rows
from privcheck.declare.schedules import load_of
from privcheck.declare.statistics import ClippedSums, Column, FeatureSums, GramMatrices, SmallestEigenvalue, Stated
from privcheck.declare.statistics.linear import step_bounds
from privcheck.declare.statistics.records import corner_records
from privcheck.declare.statistics.sensitivities import tabular_sizes
from privcheck.errors import DeclarationError, PrivcheckError
from privcheck.pricing import Priced, once
from privcheck.verification.joint_worst_case import MOST_WEIGHTS, WorstWeights, pulls_by_weight, shorter, worst_weights
from privcheck.verification.neighbours import fault

_MOST_NUMBERS = 20_000_000  # of one user's vectors
_RECORDS = 40  # users of whom all pairs are compared
_GRID = 2.0**-26  # entries of the vectors are multiples of it, rounded towards 0: products are exact, norms at most 1

UserPair = tuple[Any, Any]


@once
def candidate_pairs(priced: Priced, group: str) -> tuple[UserPair, ...]:
    """The pairs of `find_pairs`, as a cached tuple for verification and audits."""
    return tuple(find_pairs(priced.declaration, priced.values, group))


def find_pairs(declaration: Declaration, values: Mapping[str, Fraction], group: str) -> Iterator[UserPair]:
    """Yield pairs of one user's data for a user of the group.

    None are yielded if they would be too long to write out, or if the kind of data is unknown. Every pair is a pair of
    neighbours with data that meets the releases' preconditions (`fault`), whatever its origin: a declaration's own
    candidates that do not are left out, and a finding says why (`refused_candidates`).

    Args:
        declaration: The declaration under attack.
        values: Its parameters.
        group: Of the partition of the users.

    Raises:
        DeclarationError: The declaration's own candidates or records cannot be made, or its tables are of trajectories
            of different sizes.
    """
    releases = declaration.seen_by(group)
    for pair in _propose(declaration, releases, values):
        if not fault(declaration.relation, releases, pair, values):
            yield pair


def refused_candidates(declaration: Declaration, values: Mapping[str, Fraction]) -> list[str]:
    """Reasons why the declaration's own candidates are not pairs of neighbours, in words."""
    if declaration.candidates is None:
        return []
    reasons = []
    for group in declaration.groups:
        for number, pair in enumerate(_own(declaration, values), start=1):
            if why := fault(declaration.relation, declaration.seen_by(group), pair, values):
                reasons.append(f"pair {number}: {why}")
    return list(dict.fromkeys(reasons))


def _propose(
    declaration: Declaration, releases: Sequence[Release], values: Mapping[str, Fraction]
) -> Iterator[UserPair]:
    if declaration.candidates is not None:
        yield from _own(declaration, values)
        return
    linear = [r for r in releases if isinstance(r.statistic, GramMatrices | FeatureSums)]
    if linear:
        if len(linear) == len(releases):  # else no data is known that has both
            rows = most_trajectories(declaration.relation, values)  # all alike: D − D′ is so many times that of one
            for first, second in _linear_pairs(declaration, linear, values):
                yield repeat_rows(first, rows), repeat_rows(second, rows)
        return
    if declaration.records is not None:
        yield from recorded_pairs(declaration, values)
        yield from corner_pairs(declaration, values)
        return
    clipped = [r.statistic for r in releases if isinstance(r.statistic, ClippedSums)]
    if clipped:
        if len(clipped) == len(releases):
            for statistic in dict.fromkeys(clipped):
                yield from statistic.extreme_pairs(declaration.relation, values)
        return
    own = [r.statistic for r in releases if isinstance(r.statistic, Stated)]
    if own:
        if len(own) == len(releases):  # else no data is known that has both
            yield from own[0].extreme_pairs(declaration.relation, values)
        return
    sizes, rows = trajectory_sizes(declaration, values), most_trajectories(declaration.relation, values)
    if sizes is not None and sizes[0] * rows <= LONGEST and max(sizes) <= LARGEST:
        yield from extreme_pairs(declaration.relation, *sizes, trajectories=rows)


def recorded_pairs(declaration: Declaration, values: Mapping[str, Fraction]) -> list[UserPair]:
    """Neighbours among users that the declaration draws; none if only the declaration knows which share step 1.

    Raises:
        DeclarationError: It cannot draw any.
    """
    rng = np.random.default_rng(0)
    return _pairs_among(declaration, [draw_record(declaration, values, rng) for _ in range(_RECORDS)])


def corner_pairs(declaration: Declaration, values: Mapping[str, Fraction]) -> list[UserPair]:
    """Neighbours among users at corners of the declaration's records; releases may not know all of them."""
    records = declaration.records
    if records is None:
        return []
    return _pairs_among(declaration, corner_records(lambda rng: records(values, rng)))


def _pairs_among(declaration: Declaration, users: Sequence[Any]) -> list[UserPair]:
    """The neighbours among users; none if only the declaration knows which share step 1."""
    if not isinstance(declaration.relation, ReplaceOne):
        return [pair for user in users for pair in ((user, None), (None, user))]
    return list(itertools.combinations(users, 2)) if declaration.relation.initial == "any" else []


def draw_record(declaration: Declaration, values: Mapping[str, Fraction], rng: np.random.Generator) -> Any:
    """Draw one user's data from the declaration's own `records`.

    Raises:
        DeclarationError: They raise an exception, or draw None.
    """
    assert declaration.records is not None
    asked = "write records=lambda values, rng: …, one user's data"
    try:
        user = declaration.records(values, rng)
    except Exception as error:  # the author's own code
        message = f"{declaration.name}: its records raised {type(error).__name__}: {error}; expected one user's data"
        raise DeclarationError(f"{message}; {asked}") from error
    if user is None:
        raise DeclarationError(f"{declaration.name}: its records drew None, which means an absent user; {asked}")
    return user


def _own(declaration: Declaration, values: Mapping[str, Fraction]) -> list[UserPair]:
    """The declaration's own candidates."""
    assert declaration.candidates is not None
    try:
        pairs = [(first, second) for first, second in declaration.candidates(values)]
    except PrivcheckError:
        raise
    except Exception as error:  # the author's own code
        message = f"{declaration.name}: its candidates raised {type(error).__name__}: {error}; expected pairs of users"
        remedy = "write candidates=lambda values: [(first, second), …], None where the user is absent"
        raise DeclarationError(f"{message}; {remedy}") from error
    return pairs


def trajectory_sizes(declaration: Declaration, values: Mapping[str, Fraction]) -> tuple[int, int, int] | None:
    """(H, S, A) of the trajectories that the tables count, else of the parameters of these names, or None.

    Raises:
        DeclarationError: Two tables count trajectories of different sizes.
    """
    counted = {r.name: tabular_sizes(r.statistic, values) for r in declaration.noisy}
    sizes = {name: size for name, size in counted.items() if size is not None}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        message = f"{declaration.name}: its tables count trajectories of different (H, S, A), {told}; a user has one"
        raise DeclarationError(message)
    if sizes:
        return next(iter(sizes.values()))
    if not {"H", "S", "A"} <= values.keys():
        return None
    return int(values["H"]), int(values["S"]), int(values["A"])


def _linear_pairs(
    declaration: Declaration, releases: Sequence[Release], values: Mapping[str, Fraction]
) -> Iterator[UserPair]:
    shape = releases[0].statistic.shape(values)
    horizon, d = int(shape[0]), int(shape[-1])
    numbers = horizon * d * most_trajectories(declaration.relation, values)
    if numbers > _MOST_NUMBERS or any(r.statistic.shape(values)[-1] != d for r in releases):
        return
    vectors, laplace = _vectors(releases), any(r.mechanism.law.norm == "l1" for r in releases)
    if not isinstance(declaration.relation, ReplaceOne):
        on_an_axis = {c.name: np.zeros(horizon) for c in vectors}  # a diagonal change
        alone = [_users(releases, values, horizon, d, on_an_axis)[0]]
        alone += [_with(alone[0], flat_vectors(d)[0])] if laplace else []
        for user in alone:
            yield user, None
            yield None, user
        return
    best = {c.name: _best_cosines(releases, c, values, horizon, d) for c in vectors}
    pairs = [_users(releases, values, horizon, d, best)]
    pairs += _unweighted(releases, values, horizon, vectors) if d > 1 else []
    if laplace and d > 1 and horizon * d * d <= _MOST_NUMBERS:
        flat, other = flat_vectors(d)
        one, two = pairs[0]
        x, z = turn(flat, other)
        pairs += [(_with(one, flat), _with(two, -flat)), (_with(one, x), _with(two, z))]
    for first, second in pairs:
        yield first, _sharing(first, second) if declaration.relation.initial == "fixed" else second


def _unweighted(
    releases: Sequence[Release], values: Mapping[str, Fraction], horizon: int, vectors: Sequence[Column]
) -> list[tuple[Regressors, Regressors]]:
    """Users with the largest Gaussian loss over all weights, if one of them has a weight of 0 at some step."""
    worst, d = dict[str, WorstWeights](), int(releases[0].statistic.shape(values)[-1])
    for vector in vectors:
        own = [r for r in releases if _statistic(r).vector.name == vector.name]
        pulls = pulls_by_weight(own, values, horizon, rounding="down")
        if len(pulls) > MOST_WEIGHTS:
            return []
        worst[vector.name] = worst_weights(pulls)
    weights = [name for one in worst.values() for name in one.kept[0]]
    if len(set(weights)) < len(weights) or all(k.all() for one in worst.values() for s in one.kept for k in s.values()):
        return []  # a weight of several vectors has one value, and what is at its bounds is tried already
    users = _users(releases, values, horizon, d, {name: one.cosines for name, one in worst.items()})
    kept = [{name: k for one in worst.values() for name, k in one.kept[side].items()} for side in (0, 1)]
    first, second = (
        replace(user, weights={name: column * here[name] for name, column in user.weights.items()})
        for user, here in zip(users, kept, strict=True)
    )
    return [(first, second)]


def flat_vectors(d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two orthogonal unit vectors with entries ±1/√d, with a last entry of 0 for odd d > 1; for d = 1, 1 and 0."""
    even = d if d == 1 else d - d % 2
    first, second = np.zeros(d), np.zeros(d)
    first[:even] = 1 / math.sqrt(even)
    second[:even:2], second[1:even:2] = first[0], -first[0]
    return first, second if d > 1 else np.zeros(d)


def turn(first: NDArray[np.float64], second: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Two orthogonal unit vectors x, z in their plane for which ‖xxᵀ − zzᵀ‖₁ is largest: d·√2 for even d."""
    c, s = math.cos(math.pi / 8), math.sin(math.pi / 8)
    return [c * first + s * second, c * second - s * first]


def _with(user: Regressors, vector: NDArray[np.float64]) -> Regressors:
    """The user with every vector turned to another direction, at the same length."""
    lengths = {name: np.linalg.norm(column, axis=2, keepdims=True) for name, column in user.vectors.items()}
    return replace(user, vectors={name: length * vector for name, length in lengths.items()})


def _sharing(first: Regressors, second: Regressors) -> Regressors:
    """The second user with the first one's vectors and weights at step 1, and targets of 0 there."""
    columns: dict[str, Any] = {"vectors": {}, "weights": {}, "targets": {}}
    for kind, copies in columns.items():
        for name, column in getattr(second, kind).items():
            copies[name] = column.copy()
            copies[name][:, 0] = 0.0 if kind == "targets" else getattr(first, kind)[name][:, 0]
    return Regressors(**columns)


def _statistic(release: Release) -> GramMatrices | FeatureSums:
    statistic = release.statistic
    assert isinstance(statistic, GramMatrices | FeatureSums)
    return statistic


def _vectors(releases: Sequence[Release]) -> list[Column]:
    return list({_statistic(r).vector.name: _statistic(r).vector for r in releases}.values())


def _best_cosines(
    releases: Sequence[Release], vector: Column, values: Mapping[str, Fraction], horizon: int, d: int
) -> NDArray[np.float64]:
    """⟨x, z⟩/(‖x‖‖z‖) at each step that maximises the Gaussian loss of all releases of one vector together.

    With everything at its bound the squared change of a Gram matrix is 2·size²(1 − c²) and that of a feature sum
    2·size²(1 − c): the sum is a parabola in c, with its maximum at c = −v/2g.
    """
    gram, sums = np.zeros(horizon), np.zeros(horizon)
    for release in releases:
        statistic = _statistic(release)
        if statistic.vector.name != vector.name:
            continue
        spread = release.mechanism.std.number(values) ** 2
        halved = 2.0 if getattr(release.mechanism, "kind", "") == "goe" else 1.0
        times = load_of(release.schedule).squares.number(values)
        pull = step_bounds(statistic.size, values, horizon) ** 2 * (times / (spread * halved))
        if isinstance(statistic, GramMatrices):
            gram += pull
        else:
            sums += pull
    if d == 1:  # the second number is the first one's opposite, and shorter
        return -shorter(gram, sums)
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
    """Two users at all bounds with vectors at the given cosines.

    x = (a, b) and z = ±(b, a) with a² + b² = 1, 2ab = |c|: the Gram matrices then differ by a diagonal matrix, for
    which noise on and above the diagonal protects least.
    """
    lengths, targets, weights = column_bounds(releases, values, horizon)
    first, second = {}, {}
    for name, length in lengths.items():
        c = cosines[name]
        x, z = np.zeros((1, horizon, d)), np.zeros((1, horizon, d))
        if d == 1:
            x[0, :, 0], z[0, :, 0] = length, c * length
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
    """Every column at its bound; if two statistics bound a column differently, at the smaller bound."""
    lengths: dict[str, NDArray[np.float64]] = {}
    targets: dict[str, NDArray[np.float64]] = {}
    weights: dict[str, NDArray[np.float64]] = {}
    for release in releases:
        statistic = _statistic(release)
        target = statistic.target if isinstance(statistic, FeatureSums) else None
        for known, column in ((lengths, statistic.vector), (targets, target), (weights, statistic.weight)):
            if column is not None:
                bound = step_bounds(column.bound, values, horizon)
                known[column.name] = np.minimum(known.get(column.name, np.full(horizon, math.inf)), bound)
    return lengths, _rows(targets), _rows(weights)


def _rows(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {name: column[np.newaxis] for name, column in columns.items()}


_BALLS: Final = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞"}
_SHOWN: Final = 3  # reasons that a message lists
_REMEDY: Final = "give the declaration `records=lambda values, rng: …`, which draws one user's data, or `candidates`"


def kinds_of_data(releases: Sequence[Release]) -> tuple[str, ...]:
    """Kinds of data of the releases' statistics, in words, each once; an author's own may be of any kind."""
    kinds: dict[str, None] = {}
    for release in releases:
        statistic: Any = release.statistic
        if isinstance(statistic, GramMatrices | FeatureSums | SmallestEigenvalue):
            kinds["regressors"] = None
        elif isinstance(statistic, ClippedSums):
            kinds[f"vectors, one a {statistic.per}, in an {_BALLS[statistic.ball]} ball"] = None
        else:
            kinds["records" if isinstance(statistic, Stated) else "trajectories or custom data"] = None
    return tuple(kinds)


def explain_unknown_data(declaration: Declaration) -> str:
    """Reason why no user's data can be drawn, and the remedy; empty if some can, at some sizes."""
    if declaration.candidates is not None or declaration.records is not None or not declaration.noisy:
        return ""
    kinds = [kinds_of_data(declaration.seen_by(group)) for group in declaration.groups]
    if mixed := next((several for several in kinds if len(several) > 1), ()):
        message = (
            f"its releases read different kinds of data ({'; '.join(mixed)}), and no user with all of them is known"
        )
        return f"{message}; declare each kind separately, or {_REMEDY}"
    values = declaration.values()
    if any("trajectories" in several[0] for several in kinds if several) and not trajectory_sizes(declaration, values):
        return f"the declaration does not describe one user's data: {_REMEDY}"
    return ""


def explain_no_pair(declaration: Declaration, values: Mapping[str, Fraction]) -> str:
    """Reason why a search found no pair of neighbours, and the remedy."""
    if declaration.candidates is not None:
        refused = refused_candidates(declaration, values)
        said = f"none of its `candidates` are neighbours ({_first(refused)})" if refused else "it has no `candidates`"
        return f"{said}; return pairs (first, second) of one user's data, None where the user is absent"
    if why := explain_unknown_data(declaration):
        return why
    return _explain_records(declaration, values) if declaration.records is not None else _too_long(declaration, values)


def _explain_records(declaration: Declaration, values: Mapping[str, Fraction]) -> str:
    reasons = [_fault(declaration, pair, values) for pair in recorded_pairs(declaration, values)]
    if not reasons:
        return f"it is not stated which of its `records` share step 1 ({declaration.relation.words}): give `candidates`"
    return f"no two of its `records` are neighbours ({_first(reasons)}); draw one user's data as `compute` takes it"


def _too_long(declaration: Declaration, values: Mapping[str, Fraction]) -> str:
    """Reason why no trajectories or vectors are tested."""
    if any("regressors" in kinds_of_data(declaration.seen_by(group)) for group in declaration.groups):
        return "one user's vectors do not fit in memory, or have two dimensions; audit smaller sizes"
    sizes, rows = trajectory_sizes(declaration, values), most_trajectories(declaration.relation, values)
    if sizes is not None and sizes[0] * rows <= LONGEST and max(sizes) <= LARGEST:
        pairs = extreme_pairs(declaration.relation, *sizes, trajectories=rows)
        reasons = [_fault(declaration, pair, values) for pair in pairs]
        return f"its statistics refuse trajectories ({_first(reasons)}): {_REMEDY}"
    return (
        f"no pair of neighbours fits in memory: trajectories have at most {LONGEST} steps, codes of states and actions "
        f"are at most {LARGEST}; audit smaller sizes"
    )


def _fault(declaration: Declaration, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> str:
    faults = (fault(declaration.relation, declaration.seen_by(g), pair, values) for g in declaration.groups)
    return next((why for why in faults if why), "")


def _first(reasons: Sequence[str]) -> str:
    different = [why for why in dict.fromkeys(reasons) if why]
    return "; ".join(different[:_SHOWN])
