"""Certified bounds: a dominating law of the loss on a grid, composed by FFT in tilted form.

Every law is replaced by one on the grid that dominates it (`Law.cells`), so the computed δ(ε) of the composition is
never below the truth. Tilting by e^{cl} before the transform (Esscher's device) puts the bulk of the computed law where
δ(ε) is determined: the error of the transform is then relative to the result, not to 1, and small δ keep their digits.

Floating-point errors are bounded and added: the rounding of the transforms (`convolution`, a proved bound under a named
assumption), the rounding of tilting (at most u for every unit of the exponent), and mass beyond the window.

Lemma grid-window: The mass that the transform wraps around from above the window is at most Chernoff's bound on the
grid's own law, and with it counted as lost δ(ε) is not below the truth. Proof: mass wrapped around from below only
adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.below import log_sum
from privcheck.accounting.engine.convolution import convolve
from privcheck.accounting.engine.job import Job, saddle_at
from privcheck.accounting.engine.laws import DIRECTIONS, UNIT, Cells, Direction, Floats, as_floats

_SIZE: Final = 1 << 17  # grid points of the composed law
_LARGEST: Final = 1 << 20
_ENOUGH: Final = 3e-7  # of ε: what the grid may add …
_ENOUGH_LOG: Final = 1e-5  # … and of ln δ
_LONGEST: Final = 1 << 18  # grid points of the positive losses of one law of bounded loss
_BULK: Final = 32  # … of the smallest largest loss
_TAIL: Final = 1e-9  # of δ, moved to ∞
_MARGIN: Final = 1.15  # of the window
_WRAPPED: Final = 36.0  # −ln of what the window leaves out, relative to the tilted mass
_LEAST: Final = 1e-280  # of a tilted law: what underflows is below 1e-36 of it
_FACTORS: Final = np.array([0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
_RANGE: Final = 500.0  # −ln of the least number beside the greatest in one sum
_RETREATS: Final = 20
_MOST_GRIDS: Final = 16  # for vectorised queries, each of which gets the best bound that one of them gives
_ELSEWHERE: Final = (0.5, 0.2)  # of ε, where a grid is made if that at ε is not tight
_HARDLY: Final = 1e-2  # of ln δ, or of cε if that is less: what a fine grid adds at most
_FAR_BELOW: Final = 2.0  # of ln δ
_TIGHT: Final = 1e-3  # by how much a bound on ln δ may lie above what was computed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composed:
    """Composed dominating law near the point for which it was made.

    All sums are relative to e^scale, so that no term of those that count leaves the floats' range.

    Attributes:
        losses: (n,) grid points, rounded up.
        at_points: (n,) δ at every grid point, without what is lost outright.
        gains: (n,) Q(L ≥ l)·e^l at every grid point l: between two points δ grows by this times 1 − e^{ε − l}.
        scale: ln of the unit.
        slack: A bound on the rounding of ln δ.
        infinite: Mass lost outright, mass above the window included.
        floored: (ln at the first point, fall per nat) of the δ that is due to bounds on errors of masses alone.
        added: Mass above the window that is not the laws' own.
    """

    losses: Floats
    at_points: Floats
    gains: Floats
    scale: float
    slack: float
    infinite: float
    floored: tuple[float, float]
    added: float

    @property
    def lowest(self) -> float:
        """Lower end; nothing is known below it."""
        return float(self.losses[0])

    @property
    def highest(self) -> float:
        """Upper end of the window."""
        return float(self.losses[-1])

    def log_deltas(self, epsilons: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(m,) bounds on ln δ, 0 below the window, and whether they are tight."""
        index = np.searchsorted(self.losses, epsilons, side="left")  # the first loss ≥ ε
        inside = np.minimum(index, len(self.losses) - 1)
        with np.errstate(divide="ignore"):
            part = self.gains[inside] * -np.expm1(np.minimum(epsilons - self.losses[inside], 0.0))
            logs = np.log(np.where(index < len(self.losses), self.at_points[inside] + part, 0.0)) + self.scale
            logs = np.logaddexp(logs, math.log(self.infinite) if self.infinite > 0 else -np.inf)
        slack = self.slack + 8 * UNIT * np.abs(np.where(logs > -np.inf, logs, 0.0))
        known = epsilons >= self.lowest
        values = np.where(known, np.minimum(logs + slack, 0.0), 0.0)
        first, fall = self.floored
        added = math.log(self.added) if self.added > 0 else -math.inf
        floor = np.logaddexp(first - fall * (np.clip(epsilons, self.lowest, self.highest) - self.lowest), added)
        tight = known & ((floor - values <= math.log(_TIGHT / 2)) | (values == -np.inf))
        return values, tight & (slack <= _TIGHT / 2)

    def epsilons(self, log_deltas: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(m,) certified ε with δ(ε) ≤ δ, ∞ where there is none, and whether they are tight."""
        safe = log_deltas - (self.slack + 8 * UNIT * np.abs(log_deltas))
        log_infinite = math.log(self.infinite) if self.infinite > 0 else -math.inf
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # what may be lost above the mass at ∞
            targets = np.exp(safe - self.scale + np.log(-np.expm1(np.minimum(log_infinite - safe, 0.0))))
            index = len(self.losses) - np.searchsorted(self.at_points[::-1], targets, side="right")
            inside = np.minimum(index, len(self.losses) - 1)  # δ(l) > target just below losses[inside]
            share = np.maximum(targets - self.at_points[inside], 0.0) / self.gains[inside]
            values = self.losses[inside] + np.log1p(-np.minimum(share, 1.0))
        values = np.where(targets > 0, values + 4 * UNIT * max(abs(self.lowest), abs(self.highest)), self.highest)
        values = np.where(log_infinite > safe, np.inf, np.maximum(np.minimum(values, self.highest), 0.0))
        tight = self.log_deltas(np.minimum(values, self.highest))[1]
        return np.maximum(values, max(self.lowest, 0.0)), tight & (values > self.lowest)


def compose(job: Job, epsilon: float, log_delta: float, direction: Direction) -> Composed | None:
    """Build the dominating law for δ(ε) near the given ε and δ, or None where no grid of bounded size works.

    Args:
        job: A composition without zCDP parts; the caller accounts for the δ lost outright.
        epsilon: The approximate ε at which the bound will be evaluated.
        log_delta: The approximate ln δ there.
        direction: Direction of the asymmetric pairs.
    """
    frame = _frame(job, epsilon, direction)
    if frame is None:
        return None
    tail = _TAIL * math.exp(max(log_delta, -650)) / max(1, sum(n for _, n in job.all_laws))
    parts = [(law.cells(frame.mesh, tail, direction), count) for law, count in job.all_laws]
    return _transform(parts, frame, lost=job.infinite(direction))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Grid on which a composition is computed, near one ε.

    Attributes:
        c: Tilt.
        mesh: Distance of the grid points.
        size: Number of them.
        window: Lower and upper end, and the best η above, see `_window`.
        epsilon: The ε.
    """

    c: float
    mesh: float
    size: int
    window: tuple[float, float, float]
    epsilon: float


def _frame(job: Job, epsilon: float, direction: Direction) -> Frame | None:
    largest, exact, job = job.largest(direction), job, job.sketch(direction)
    c = saddle_at(job, min(epsilon, largest * (1 - 1e-3)), direction)
    c = min(c, 2e4 / largest) if math.isfinite(largest) else c
    low, high, eta = _window(job, c, direction)
    for _ in range(
        _RETREATS
    ):  # where rare large losses meet a bulk of small ones, a hair more tilt skips what is asked
        if low <= max(epsilon, 0.0):
            break
        c *= 1 - 2e-2
        low, high, eta = _window(job, c, direction)
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return None
    mesh, size = _mesh(exact, high - low, (c, min(_ENOUGH * c * max(epsilon, 0.0), _ENOUGH_LOG)), direction)
    if size > _LARGEST or mesh * max(c, 1) > 1:
        return None
    return Frame(c=c, mesh=mesh, size=size, window=(low, high, eta), epsilon=epsilon)


def is_fine(job: Job, epsilon: float, direction: Direction, tilt: Callable[[], float]) -> bool:
    """Whether the grid adds hardly anything to ln δ(ε) and to ε, to leading order, where δ falls as e^{−cε}.

    Splitting a loss over both ends of its cell keeps P and Q, and multiplies E[e^{cL}] by at most about
    1 + c(c + 1)·mesh²/8.

    Args:
        job: The composition.
        epsilon: ε.
        direction: Direction of the asymmetric pairs.
        tilt: Computes a c that rare large losses may hide from the job's cumulants; 0 where there are none.
    """
    frame = _frame(job, epsilon, direction)
    if frame is None:
        return False
    mesh, count = frame.mesh, sum(n for _, n in job.all_laws)

    def adds(c: float, most: float) -> bool:
        added = count * c * (c + 1) * mesh**2 / 8 * math.exp(min(c * mesh, 700.0))
        return added > most * (min(1.0, c * epsilon) if epsilon > 0 else 1.0)

    if adds(frame.c, _HARDLY):
        return False
    hidden = tilt()
    return hidden == 0 or not adds(max(frame.c, hidden), _HARDLY / 10)


def _window(job: Job, c: float, direction: Direction) -> tuple[float, float, float]:
    """Interval outside of which the tilted composition has about e^{−36} of its mass, and the best η above.

    Chernoff: P(L > x) ≤ E[e^{η(L − x)}] for every η > 0. The mass of the grid's law above the interval is bounded
    separately.
    """
    k, _, k2 = (float(x[0]) for x in job.moments(np.array([c]), direction))
    etas = _FACTORS * math.sqrt(2 * _WRAPPED / max(k2, 1e-300))
    downs = np.minimum(etas, c * (1 - 1e-6))
    others = job.moments(np.concatenate([c + etas, c - downs]), direction)[0]
    low, high, best = -job.largest(_other(direction)), job.largest(direction), float(etas[4])
    above = (others[: len(etas)] - k + _WRAPPED) / etas
    if float(np.nanmin(above)) < high:
        high, best = float(np.nanmin(above)), float(etas[int(np.nanargmin(above))])
    low = max(low, float(np.nanmax(-(others[len(etas) :] - k + _WRAPPED) / downs)))
    # below −1 the cumulant mirrors: E_P[e^{zL}] of (P, Q) is E_Q[e^{−(z+1)L′}] of (Q, P)
    wide = etas[etas > c + 1]
    if len(wide):
        mirrored = job.moments(wide - c - 1, _other(direction))[0]
        low = max(low, float(np.nanmax(-(mirrored - k + _WRAPPED) / wide)))
    return low, high, best


def _other(direction: Direction) -> Direction:
    return "add" if direction == "remove" else "remove"


def _mesh(job: Job, width: float, aim: tuple[float, float], direction: Direction) -> tuple[float, int]:
    """Step of the grid and size of the transform.

    One law's mass splits over a cell, which adds up to mesh²/4 to its variance: many events need a finer grid. It is
    no finer than needed, see `is_fine`.

    Args:
        job: The composition.
        width: Width of the window.
        aim: Tilt, and what the grid may add to ln δ.
        direction: Direction of the asymmetric pairs.
    """
    c, enough = aim
    k2 = float(job.sketch(direction).moments(np.array([c]), direction)[2][0])
    count = sum(n for _, n in job.all_laws)
    single = math.sqrt(max(k2, 1e-300) / count)
    spans = [(law.span(direction), math.isfinite(law.largest(direction))) for law, _ in job.all_laws]
    least = max(span / (_LONGEST if bounded else 4 * _LONGEST) for span, bounded in spans)
    needed = math.sqrt(8 * enough / (count * c * (c + 1)))
    mesh = max(min(max(width / (0.75 * _SIZE), needed), single / 16), least)
    size = 1 << max(4, round(math.log2(_MARGIN * width / mesh)))  # near enough, and all of it used
    mesh = max(_MARGIN * width / (size - 4) * (1 + 1e-12), least)
    ends = [law.largest(d) for law, _ in job.all_laws for d in DIRECTIONS if math.isfinite(law.largest(d))]
    if ends:  # rare large losses beside a bulk of small ones: it is the bulk's that the grid has to tell apart
        mesh = min(mesh, max(min(ends) / _BULK, least))
    steps = [law.largest(direction) for law, _ in job.all_laws if math.isfinite(law.largest(direction))]
    if steps and min(steps) > mesh:  # atoms of the smallest law sit on grid points
        mesh = min(steps) / math.floor(min(steps) / mesh)
    mesh = max(mesh, width / (0.75 * _LARGEST))
    return mesh, 1 << math.ceil(math.log2(_MARGIN * width / mesh + 4))


def _transform(parts: list[tuple[Cells, int]], frame: Frame, *, lost: float) -> Composed | None:
    laws: list[tuple[Floats, int]] = []
    scale, offset, log_kept, largest, above = 0.0, 0, 0.0, 0.0, 0.0
    c, mesh, size, (low, high, eta) = frame.c, frame.mesh, frame.size, frame.window
    for cells, times in parts:
        if cells.infinite >= 1 or len(cells.masses) > 16 * _LONGEST:
            return None
        losses = (cells.start + np.arange(len(cells.masses))) * mesh
        exponents = c * losses
        top = float(np.max(exponents))
        tilted = cells.masses * np.exp(exponents - top)
        total = float(tilted.sum())
        if not total > _LEAST:
            return None
        tilted /= total
        # up, by what tilting rounds: exponents by 5u a unit, the exponential and three more operations by 16u
        rounded = UNIT * (5 * float(np.max(np.abs(exponents))) + 16)
        scale += times * (math.log(total) + top + rounded + 4 * UNIT * (1 + abs(top) + abs(math.log(total))))
        offset += times * cells.start
        log_kept += times * math.log1p(-cells.infinite)
        largest += times * float(losses[-1])
        under = eta * (losses - losses[-1])
        with np.errstate(divide="ignore"):
            moment = log_sum(as_floats(np.log(tilted) + under))
        above += times * (moment + 1e-13 - 4 * UNIT * float(under[0]))
        laws.append((as_floats(np.bincount(np.arange(len(tilted)) % size, weights=tilted, minlength=size)), times))
    masses, floor = convolve(laws, size)
    if math.isinf(floor):
        return None
    # position i of the array holds the losses (offset + i + size·anything)·mesh: choose those around the centre
    first = round((low + high) / 2 / mesh) - size // 2
    masses = np.roll(masses, -((first - offset) % size))
    losses = as_floats((float(first) + np.arange(size)) * mesh)
    edge = float(losses[-1])
    # Chernoff: of the tilted law Σ times·ln E[e^{η(L − edge)}] lies above the edge; untilted e^{−c·edge} of that
    beyond = above + eta * (largest - edge) + 1e-13 * (abs(above) + eta * (abs(largest) + abs(edge)))
    beyond = -math.inf if largest * (1 + 1e-14) < edge else beyond - c * max(edge, 0.0)
    kept = -math.expm1(log_kept)
    added = math.exp(min(0.0, scale + beyond))
    infinite = min(1.0, kept * (1 + 1e-12) + added)
    slack = 1e-13 * (1 + abs(scale) + c * max(abs(float(losses[0])), abs(edge)))
    return _sum_up(
        as_floats(masses + floor),
        floor,
        frame,
        first,
        scale=scale,
        slack=slack,
        infinite=infinite,
        added=max(infinite - lost, 0.0),
    )


def _sum_up(
    masses: Floats, floor: float, frame: Frame, first: int, *, scale: float, slack: float, infinite: float, added: float
) -> Composed:
    """Sum up a tilted law from the top: all terms are positive.

    Args:
        masses: (n,) tilted masses, bounds on their errors included.
        floor: These bounds.
        frame: The grid.
        first: Index of the first grid point.
        scale: ln of what tilting took out.
        slack: Bound on the rounding of ln of the masses.
        infinite: Mass lost outright.
        added: Part of it that is not the laws' own.
    """
    c, mesh = frame.c, frame.mesh
    # the unit is taken at ε; from there on down as far as the floats reach
    middle = round(min(max(0.0, frame.epsilon / mesh - first), len(masses) - 1.0))
    start = max(0, middle - int(min(_RANGE / max(c * mesh, 1e-300), len(masses))))
    count = len(masses) - start
    with np.errstate(under="ignore"):  # what underflows is made up for by the last term
        gains = _fading_sums(masses[start:] * _exponentials(-c * mesh, start - middle, count), mesh) + 1e-300
        at_points = np.append((np.cumsum(gains[:0:-1])[::-1]) * -math.expm1(-mesh), 0.0)
    losses = as_floats((float(first + start) + np.arange(count)) * mesh)
    unit = scale - c * (first + middle) * mesh
    span = max(abs(float(losses[0])), abs(float(losses[-1])))
    # Σ e^{−c·mesh·i}(1 − e^{−mesh·i}) over i ≥ 0
    geometric = math.log(-math.expm1(-mesh)) - math.log(-math.expm1(-c * mesh)) - math.log(-math.expm1(-(c + 1) * mesh))
    floored = math.log(max(floor, 1e-300)) + geometric - c * mesh + unit - c * mesh * (start - middle)
    return Composed(
        losses=losses + 8 * UNIT * span,  # grid points are rounded products
        at_points=as_floats(at_points),
        gains=as_floats(gains),
        scale=unit,
        slack=slack + UNIT * (4 * count + 300 + 8 * span + 8 * _RANGE),
        infinite=infinite,
        floored=(floored, c),
        added=added,
    )


def _fading_sums(masses: Floats, mesh: float) -> Floats:
    """Σ_{j ≥ i} p_j·e^{−mesh(j − i)}, in blocks on which the exponentials are within the floats' range."""
    result, above = np.empty(len(masses)), 0.0
    block = max(1, int(min(_RANGE / 4 / mesh, len(masses))))
    for stop in range(len(masses), 0, -block):
        part = masses[max(0, stop - block) : stop]
        faded = _exponentials(-mesh, -(len(part) // 2), len(part))
        sums = np.cumsum((part * faded)[::-1])[::-1] / faded
        sums += above * _exponentials(mesh, -len(part), len(part))
        result[max(0, stop - block) : stop], above = sums, float(sums[0])
    return result


def _exponentials(each: float, first: int, count: int) -> Floats:
    """e^{each·i} from i = first on, as products of few exponentials."""
    some = 1 << max(1, count.bit_length() // 2)
    rough = np.exp(each * (first + some * np.arange(-(-count // some))))
    return as_floats(np.multiply.outer(rough, np.exp(each * np.arange(some))).ravel()[:count])


def grid_epsilons(job: Job, log_deltas: Floats, near: Floats, direction: Direction) -> tuple[Floats, NDArray[np.bool_]]:
    """Compute (m,) certified ε with δ(ε) ≤ δ, ∞ where the grid gives none; and whether they are tight.

    Args:
        job: The composition.
        log_deltas: (m,) ln δ.
        near: (m,) estimates of ε, around which grids are made.
        direction: Direction of the asymmetric pairs.
    """
    values, made = np.full(len(near), np.inf), 0
    tight = np.zeros(len(near), dtype=bool)
    for i in from_the_middle(near):
        if tight[i] or (made >= _MOST_GRIDS and math.isfinite(values[i])):
            continue
        made += 1
        at = float(near[i])
        for _ in range(3 if made <= _MOST_GRIDS else 1):  # around the estimate, then around what it gave
            law = compose(job, at, float(log_deltas[i]), direction)
            if law is None:
                break
            epsilons, good = law.epsilons(log_deltas)
            values, tight = np.minimum(values, epsilons), tight | good
            if tight[i] or not math.isfinite(values[i]):
                break
            at = float(values[i])
        for share in _ELSEWHERE if made <= _MOST_GRIDS else ():  # rare large losses may have taken the tilt too far
            law = None if tight[i] else compose(job, share * float(near[i]), float(log_deltas[i]), direction)
            if law is not None:
                epsilons, good = law.epsilons(log_deltas)
                values, tight = np.minimum(values, epsilons), tight | good
    return values, tight


def grid_log_deltas(job: Job, epsilons: Floats, near: Floats, direction: Direction) -> tuple[Floats, NDArray[np.bool_]]:
    """Compute (m,) certified bounds on ln δ(ε), 0 where the grid gives none; and whether they are tight.

    Args:
        job: The composition.
        epsilons: (m,) ε.
        near: (m,) estimates of ln δ.
        direction: Direction of the asymmetric pairs.
    """
    values, made = np.zeros(len(epsilons)), 0
    tight = np.zeros(len(epsilons), dtype=bool)
    for i in from_the_middle(epsilons):
        if tight[i] or (made >= _MOST_GRIDS and values[i] < 0):
            continue
        made += 1
        used = math.inf
        for share in (1.0, 1.0, *_ELSEWHERE) if made <= _MOST_GRIDS else (1.0,):
            at = min(float(near[i]), float(values[i]))
            if tight[i] or (share == 1 and at > used - _FAR_BELOW):  # again where the estimate was far too large
                continue
            law, used = compose(job, share * float(epsilons[i]), at, direction), at
            if law is not None:
                bounds, good = law.log_deltas(epsilons)
                values, tight = np.minimum(values, bounds), tight | good
    return values, tight


def from_the_middle(values: Floats) -> list[int]:
    """Order in which few grids serve all values: the middles of successive halves of the sorted values."""
    order = np.argsort(values)
    result: list[int] = []
    ranges = [(0, len(order))]
    while ranges:
        low, high = ranges.pop(0)
        if low < high:
            middle = (low + high) // 2
            result.append(int(order[middle]))
            ranges += [(low, middle), (middle + 1, high)]
    return result
