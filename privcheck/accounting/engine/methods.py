"""Choice of method for a composition, and its ε or δ in one direction, at any number of points.

| composition | method | direction |
| --- | --- | --- |
| Gaussian only | the exact Gaussian curve | exact |
| many mechanisms of bounded range | a Gaussian above them, composed with the others | upper |
| losses with few values (randomised response, shuffled bits, …) | sums over their values | exact |
| Laplace of one scale only | closed-form sum, contour for its rest | exact |
| one Poisson-subsampled Gaussian | closed form | exact |
| anything with a smooth part | contour integral with a bound on its error | exact |
| small losses beside rare large ones, huge counts | contour integral of trimmed laws | upper |
| anything else, and where the bounds of the last leave a gap: the least | dominating law on a grid | upper |
| anything with a part known only by Rényi orders or zCDP | best Rényi order | upper |

"exact" is exact up to rounding, and rounded up: like "upper" it is never below the truth.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.atoms import Atoms, power, product
from privcheck.accounting.engine.bounded import BoundedRange
from privcheck.accounting.engine.brackets import GAP, bracket_epsilons, bracket_log_deltas, trimmed_tilt
from privcheck.accounting.engine.contour import contour_epsilons, contour_log_deltas
from privcheck.accounting.engine.discrete import AtomicLaw, DiscreteGaussian
from privcheck.accounting.engine.gdp import gdp_epsilon, gdp_log_delta
from privcheck.accounting.engine.grid import grid_epsilons, grid_log_deltas, is_fine
from privcheck.accounting.engine.job import Job, saddle_for
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laplace_sum import LaplaceSum, laplace_epsilon, laplace_log_delta
from privcheck.accounting.engine.laws import Direction, Floats
from privcheck.accounting.engine.renyi import renyi_epsilons, renyi_log_deltas
from privcheck.accounting.engine.replaced import MirroredGaussian
from privcheck.accounting.engine.sampled import SampledGaussian

Errs = Literal["exact", "estimate", "upper", "lower"]  # "lower" for an attacker's error: not of a method here
_MOST_LAPLACE: Final = 600.0  # Σε up to which the closed form stays within the floats' range
_STEP_UP: Final = 1 + 1e-15  # Δ/b was rounded, and near its end δ falls linearly to 0
_MANY_RANGES: Final = 1000  # releases of bounded range, for which a Gaussian alone is asked
_TURNS: Final = 3  # of an estimate
_NEAR: Final = 0.1  # of ε, to which an estimate has to be right for a grid that was made for it to count as fine
_CLOSED: Final = 1e-12  # of ln δ, relatively: rounding in closed forms


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """Method of a value and direction of its error.

    Attributes:
        name: Name of the method.
        errs: "exact" (up to rounding, rounded up) or "upper".
    """

    name: str
    errs: Errs


SUMMED: Final = How(name="pure DP, summed", errs="exact")
GAUSSIAN: Final = How(name="Gaussian curve", errs="exact")
VALUES: Final = How(name="sum over the losses' values", errs="exact")
JOINED: Final = How(name="sum over the losses' values", errs="upper")
LAPLACE: Final = How(name="sum over Laplace atoms", errs="exact")
CLOSED: Final = How(name="closed form", errs="exact")
CONTOUR: Final = How(name="contour integral", errs="exact")
BRACKET: Final = How(name="contour integral of trimmed laws", errs="upper")
GRID: Final = How(name="dominating law on a grid", errs="upper")
RENYI: Final = How(name="Rényi, best order", errs="upper")
HOW: Final = (SUMMED, GAUSSIAN, VALUES, JOINED, LAPLACE, CLOSED, CONTOUR, BRACKET, GRID, RENYI)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointValues:
    """Values at many points.

    Attributes:
        values: (m,) ε, or ln δ.
        how: (m,) index into `HOW`.
    """

    values: Floats
    how: NDArray[np.intp]


def epsilons_of(job: Job, log_deltas: Floats, direction: Direction) -> PointValues:
    """Compute (m,) ε with δ(ε) = δ, without the job's (ε, δ)-parts.

    Args:
        job: The composition.
        log_deltas: (m,) ln δ, finite.
        direction: Direction of the asymmetric pairs.
    """
    order = np.argsort(-log_deltas, kind="stable")
    asked = log_deltas[order]
    first, *others = _jobs(job)
    known = _solve_epsilons(first, asked, direction)
    for other in others:
        known = _lesser(known, _solve_epsilons(other, asked, direction))
    if job.ranged:
        _improve(known, RENYI, _renyi_epsilons(job, asked, direction))
    return _back(known, order)


def log_deltas_of(job: Job, epsilons: Floats, direction: Direction) -> PointValues:
    """Compute (m,) ln δ(ε), without the job's (ε, δ)-parts."""
    order = np.argsort(epsilons, kind="stable")
    asked = epsilons[order]
    first, *others = _jobs(job)
    known = _solve_log_deltas(first, asked, direction)
    for other in others:
        known = _lesser(known, _solve_log_deltas(other, asked, direction))
    if job.ranged:
        _improve(known, RENYI, _renyi_log_deltas(job, asked, direction))
    beyond = asked >= job.largest(direction)
    summed = np.where(beyond, HOW.index(SUMMED), known.how)
    return _back(PointValues(values=np.where(beyond, -np.inf, known.values), how=summed), order)


def _jobs(job: Job) -> tuple[Job, ...]:
    """The job, or jobs that dominate it: with many mechanisms of bounded range a Gaussian is tight, with few a pair."""
    above = job.with_gaussian_ranges
    if above is None:
        return (job,)
    many = sum(count for law, count in job.laws if isinstance(law, BoundedRange)) > _MANY_RANGES
    return (above,) if many else (above, job)


def atoms_of(job: Job, direction: Direction) -> Atoms | None:
    """Composed loss where it has few enough values to be enumerated, None otherwise."""
    return _enumerate(job.laws, direction) if _has_values_only(job) else None


def _has_values_only(job: Job) -> bool:
    atomic = all(isinstance(law, AtomicLaw | DiscreteGaussian) for law, _ in job.laws)
    return atomic and job.mu_squared == 0 and bool(job.laws)


@functools.lru_cache(maxsize=32)
def _enumerate(laws: tuple[tuple[AtomicLaw | DiscreteGaussian, int], ...], direction: Direction) -> Atoms | None:
    total: Atoms | None = None
    for law, count in laws:
        one = power(law.atoms(direction), count)
        if one is None:
            return None
        total = one if total is None else product(total, one)
        if total is None:
            return None
    return total


def _solve_epsilons(job: Job, log_deltas: Floats, direction: Direction) -> PointValues:
    if job.orders_only:
        return _all(RENYI, _renyi_epsilons(job, log_deltas, direction))
    if not job.laws:
        mu = math.sqrt(job.mu_squared)
        return _all(GAUSSIAN, np.array([_gaussian_epsilon(mu, float(x)) for x in log_deltas]))
    if (atoms := atoms_of(job, direction)) is not None:
        return _all(_values(job), atoms.epsilons(log_deltas))
    if (sum_ := _laplace_sum(job)) is not None:
        roots = [laplace_epsilon(sum_, x) for x in log_deltas.tolist()]
        if (known := [r for r in roots if r is not None]) and len(known) == len(roots):
            return _all(LAPLACE, np.array(known))
    if (single := _single_sample(job)) is not None:
        return _all(CLOSED, np.array([_bisect(single, x, direction) for x in log_deltas.tolist()]))
    rest = _less(log_deltas, job.infinite(direction))
    values, possible = np.full(len(rest), np.inf), rest > -np.inf
    # the characteristic function of such a loss does not fall: there is no line
    values[possible] = np.nan if _has_values_only(job) else contour_epsilons(job, rest[possible], direction)
    return _complete(values, log_deltas, lambda ld: _bound_epsilons(job, ld, direction))


def _solve_log_deltas(job: Job, epsilons: Floats, direction: Direction) -> PointValues:
    if job.orders_only:
        return _all(RENYI, _renyi_log_deltas(job, epsilons, direction))
    if not job.laws:
        mu = math.sqrt(job.mu_squared)
        values = np.array([gdp_log_delta(mu, e) for e in epsilons.tolist()])
        return _all(GAUSSIAN, _up(values))
    if (atoms := atoms_of(job, direction)) is not None:
        return _all(_values(job), atoms.log_deltas(epsilons))
    if (sum_ := _laplace_sum(job)) is not None:
        logs = [laplace_log_delta(sum_, e) for e in epsilons.tolist()]
        if (known := [x for x in logs if x is not None]) and len(known) == len(logs):
            return _all(LAPLACE, np.array(known))
    if (single := _single_sample(job)) is not None:
        return _all(CLOSED, _up(np.array([single.log_delta(e, direction) for e in epsilons.tolist()])))
    lines = not _has_values_only(job)
    values = contour_log_deltas(job, epsilons, direction) if lines else np.full(len(epsilons), np.nan)
    values = _or(values, job.infinite(direction))
    return _complete(values, epsilons, lambda e: _bound_log_deltas(job, e, direction))


def _all(how: How, values: Floats) -> PointValues:
    return PointValues(values=values, how=np.full(len(values), HOW.index(how)))


def _complete(values: Floats, asked: Floats, rest: Callable[[Floats], PointValues]) -> PointValues:
    """Fill the points without a contour value (NaN) by `rest`."""
    open_ = np.isnan(values)
    how = np.full(len(values), HOW.index(CONTOUR))
    if open_.any():
        values, found = values.copy(), rest(asked[open_])
        values[open_], how[open_] = found.values, found.how
    return PointValues(values=values, how=how)


def _lesser(one: PointValues, other: PointValues) -> PointValues:
    """Take the lesser of two methods' values."""
    better = one.values <= other.values
    values = np.where(better, one.values, other.values)
    return PointValues(values=values, how=np.where(better, one.how, other.how))


def _back(known: PointValues, order: NDArray[np.intp]) -> PointValues:
    """Restore the order of the questions."""
    values, how = np.empty(len(order)), np.empty(len(order), dtype=np.intp)
    values[order], how[order] = known.values, known.how
    return PointValues(values=values, how=how)


def _values(job: Job) -> How:
    return JOINED if any(isinstance(law, AtomicLaw) and law.rounded for law, _ in job.laws) else VALUES


def _up(log_deltas: Floats) -> Floats:
    """Round ln δ up by the rounding error of closed forms."""
    with np.errstate(invalid="ignore"):
        moved = np.minimum(log_deltas + _CLOSED * (1 + np.abs(log_deltas)), 0.0)
    return np.where(np.isfinite(log_deltas), moved, log_deltas)


def _gaussian_epsilon(mu: float, log_delta: float) -> float:
    delta = math.exp(log_delta)
    return gdp_epsilon(mu, delta) if 0 < delta < 1 else (0.0 if delta >= 1 else math.inf)


def _renyi_epsilons(job: Job, log_deltas: Floats, direction: Direction, *, looks: int | None = None) -> Floats:
    return renyi_epsilons(job, _less(log_deltas, job.infinite(direction)), direction, looks=looks)


def _renyi_log_deltas(job: Job, epsilons: Floats, direction: Direction, *, looks: int | None = None) -> Floats:
    logs = renyi_log_deltas(job, epsilons, direction, looks=looks)
    return np.minimum(_or(logs, job.infinite(direction)), 0.0)


def _bound_epsilons(job: Job, log_deltas: Floats, direction: Direction) -> PointValues:
    """Bound ε by trimmed laws, by the grid where these leave a gap, by the best Rényi order where both are loose.

    Where the grid moves losses by too little to matter, near a first estimate of ε, it is asked alone; where ε is
    elsewhere, it is asked again near what was found.
    """
    sketch, few = job.sketch(direction), _few(log_deltas)
    near = np.array([saddle_for(sketch, x, direction)[1] for x in few.tolist()])
    near = np.interp(-log_deltas, -few, near) if len(log_deltas) > len(near) else near
    near = np.minimum(np.maximum(near, 0.0), job.largest(direction))

    @functools.cache
    def trimmed() -> tuple[Floats, Floats] | None:
        return bracket_epsilons(job, log_deltas, direction)

    known, sure, moved = _all(GRID, np.full(len(near), np.inf)), np.zeros(len(near), dtype=bool), np.ones_like(near) > 0
    orders = np.full(len(near), np.inf)
    for turn in range(_TURNS):
        if not (open_ := moved & ~sure & (known.values > 0)).any():
            break
        if turn == 1:  # rare large losses hide the bulk, and where it puts ε, from what the estimate is made of
            orders[open_] = _renyi_epsilons(sketch, log_deltas[open_], direction, looks=0)
        near[open_] = np.minimum(near if turn == 0 else orders, known.values)[open_]
        fine = _is_fine(job, near[open_], log_deltas[open_], direction)
        if not fine and (bounds := trimmed()) is not None:
            _improve(known, BRACKET, bounds[0])
            sure |= bounds[1] > log_deltas - GAP
            near[open_] = np.minimum(near, known.values)[open_]
            open_ &= ~sure
        if open_.any():
            grids, tight = grid_epsilons(job, log_deltas[open_], near[open_], direction)
            sure[open_] = tight & fine & (np.abs(grids - near[open_]) <= _NEAR * grids)
            _improve(known, GRID, grids, open_)
        moved = np.abs(known.values - near) > _NEAR * known.values
    if (open_ := ~sure & (known.values > 0)).any():
        _improve(known, RENYI, _renyi_epsilons(job, log_deltas[open_], direction), open_)
    return known


def _improve(known: PointValues, how: How, values: Floats, at: NDArray[np.bool_] | None = None) -> None:
    """Take another method's values where they are less."""
    place = np.ones(len(known.values), dtype=bool) if at is None else at
    better = values < known.values[place]
    known.how[place] = np.where(better, HOW.index(how), known.how[place])
    known.values[place] = np.where(better, values, known.values[place])


def _bound_log_deltas(job: Job, epsilons: Floats, direction: Direction) -> PointValues:
    near = _renyi_log_deltas(job.sketch(direction), epsilons, direction, looks=0)
    known, sure = _all(GRID, np.zeros(len(near))), np.zeros(len(near), dtype=bool)
    fine = _is_fine(job, epsilons, near, direction)
    if not fine and (bounds := bracket_log_deltas(job, epsilons, near, direction)) is not None:
        _improve(known, BRACKET, bounds[0])
        sure = bounds[1] > bounds[0] - GAP
    if (open_ := ~sure).any():
        at = np.minimum(near, known.values)[open_]
        grids, tight = grid_log_deltas(job, epsilons[open_], at, direction)
        sure[open_] = tight & fine
        _improve(known, GRID, grids, open_)
    if (open_ := ~sure & (known.values > -np.inf)).any():
        _improve(known, RENYI, _renyi_log_deltas(job, epsilons[open_], direction), open_)
    return known


def _is_fine(job: Job, epsilons: Floats, log_deltas: Floats, direction: Direction) -> bool:
    """Whether a grid adds hardly anything to ln δ, at the least, middle and largest ε."""
    known = np.flatnonzero(np.isfinite(epsilons))
    order = known[np.argsort(epsilons[known])]
    asked = dict.fromkeys(order[[0, len(order) // 2, -1]].tolist() if len(order) else ())

    def is_at(i: int) -> bool:
        epsilon, log_delta = float(epsilons[i]), float(log_deltas[i])
        tilt = functools.partial(trimmed_tilt, job, epsilon, log_delta, direction)
        return is_fine(job, epsilon, direction, tilt)

    return bool(asked) and all(is_at(i) for i in asked)


def _few(sorted_: Floats) -> Floats:
    """At most 65 of many sorted points, including the ends."""
    return sorted_ if len(sorted_) <= 65 else sorted_[np.linspace(0, len(sorted_) - 1, 65).astype(np.intp)]


def _single_sample(job: Job) -> SampledGaussian | MirroredGaussian | None:
    if job.mu_squared == 0 and len(job.laws) == 1 and job.laws[0][1] == 1:
        law = job.laws[0][0]
        return law if isinstance(law, SampledGaussian | MirroredGaussian) else None
    return None


def _laplace_sum(job: Job) -> LaplaceSum | None:
    if job.mu_squared == 0 and len(job.laws) == 1 and isinstance(law := job.laws[0][0], LaplaceLaw):
        if job.laws[0][1] * law.step > _MOST_LAPLACE:
            return None
        return LaplaceSum(step=law.step * _STEP_UP, count=job.laws[0][1])
    return None


def _bisect(single: SampledGaussian | MirroredGaussian, log_delta: float, direction: Direction) -> float:
    """ε of one sampled release, rounded up: at the returned ε the computed δ is not above the target."""

    def meets(epsilon: float) -> bool:
        there = single.log_delta(epsilon, direction)
        return there + _CLOSED * (1 + abs(there)) <= log_delta if there > -math.inf else True

    if meets(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not meets(high):
        low, high = high, 2 * high
        if high > 1e15:
            return math.inf
    while low < (middle := (low + high) / 2) < high and high - low > 1e-15 * high:
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _less(log_deltas: Floats, infinite: float) -> Floats:
    """Logarithm ln(δ − infinite), −∞ where nothing is left."""
    if infinite == 0:
        return log_deltas
    with np.errstate(divide="ignore", invalid="ignore"):
        left = math.log(infinite) * (1 - 1e-15) - log_deltas
        rest = log_deltas + np.log(-np.expm1(np.minimum(left, 0.0)))
    return np.where(left < 0, rest, -np.inf)


def _or(log_deltas: Floats, infinite: float) -> Floats:
    """Logarithm ln(δ + infinite)."""
    if infinite == 0:
        return log_deltas
    with np.errstate(invalid="ignore"):  # NaN stays: the contour found nothing there
        result: Floats = np.logaddexp(log_deltas, math.log(infinite)) * (1 - 1e-15)
    return result
