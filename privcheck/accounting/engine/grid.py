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
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.convolution import convolve
from privcheck.accounting.engine.job import Job, saddle_at
from privcheck.accounting.engine.laws import DIRECTIONS, UNIT, Cells, Direction, Floats, as_floats

_SIZE: Final = 1 << 17  # grid points of the composed law
_LARGEST: Final = 1 << 20
_LONGEST: Final = 1 << 18  # grid points of the positive losses of one law of bounded loss
_BULK: Final = 32  # … of the smallest largest loss
_TAIL: Final = 1e-9  # of δ, moved to ∞
_WRAPPED: Final = 40.0  # −ln of what the window leaves out, relative to the tilted mass
_LEAST: Final = 1e-280  # of a tilted law: what underflows is below 1e-36 of it
_FACTORS: Final = np.array([0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
_RETREATS: Final = 20
_MOST_GRIDS: Final = 16  # for vectorised queries, each of which gets the best bound that one of them gives
_TIGHT: Final = 1e-3  # by how much a bound on ln δ may lie above what was computed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composed:
    """Composed dominating law near the point for which it was made.

    Attributes:
        bound: The law with the errors of rounding, tails and the window added.
        plain: The law as computed; its distance from `bound` measures tightness.
        lowest: Lower end of the window; nothing is known below it.
    """

    bound: Atoms
    plain: Atoms
    lowest: float

    def log_deltas(self, epsilons: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(m,) bounds on ln δ, 0 below the window, and whether they are tight."""
        inside = epsilons >= self.lowest
        values, plain = self.bound.log_deltas(epsilons), self.plain.log_deltas(epsilons)
        tight = inside & (values <= np.where(plain > -np.inf, plain + _TIGHT, -np.inf))
        return np.where(inside, values, 0.0), tight

    def epsilons(self, log_deltas: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(m,) certified ε with δ(ε) ≤ δ, ∞ where there is none, and whether they are tight."""
        values = self.bound.epsilons(log_deltas)
        tight = self.log_deltas(np.minimum(values, float(self.bound.losses[-1])))[1]
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
    """

    c: float
    mesh: float
    size: int
    window: tuple[float, float, float]


def _frame(job: Job, epsilon: float, direction: Direction) -> Frame | None:
    largest = job.largest(direction)
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
    mesh, size = _mesh(job, high - low, c, direction)
    if size > _LARGEST or mesh * max(c, 1) > 1:
        return None
    return Frame(c=c, mesh=mesh, size=size, window=(low, high, eta))


def bound_excess(job: Job, epsilon: float, tilt: float, direction: Direction) -> float:
    """Bound, to leading order, on what the grid adds to ln δ(ε), where δ falls as e^{−cε}.

    Splitting a loss over both ends of its cell keeps P and Q, and multiplies E[e^{cL}] by at most about
    1 + c(c + 1)·mesh²/8.

    Args:
        job: The composition.
        epsilon: ε.
        tilt: c, which rare large losses may hide from the job's cumulants.
        direction: Direction of the asymmetric pairs.
    """
    frame = _frame(job, epsilon, direction)
    if frame is None:
        return math.inf
    c, count = max(frame.c, tilt), sum(n for _, n in job.all_laws)
    return count * c * (c + 1) * frame.mesh**2 / 8 * math.exp(min(c * frame.mesh, 700.0))


def _window(job: Job, c: float, direction: Direction) -> tuple[float, float, float]:
    """Interval outside of which the tilted composition has about e^{−40} of its mass, and the best η above.

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


def _mesh(job: Job, width: float, c: float, direction: Direction) -> tuple[float, int]:
    """Step of the grid and size of the transform.

    One law's mass splits over a cell, which adds up to mesh²/4 to its variance: many events need a finer grid.
    """
    k2 = float(job.moments(np.array([c]), direction)[2][0])
    count = sum(n for _, n in job.all_laws)
    single = math.sqrt(max(k2, 1e-300) / count)
    spans = [(law.span(direction), math.isfinite(law.largest(direction))) for law, _ in job.all_laws]
    least = max(span / (_LONGEST if bounded else 4 * _LONGEST) for span, bounded in spans)
    mesh = max(min(width / (0.75 * _SIZE), single / 16), least)
    ends = [law.largest(d) for law, _ in job.all_laws for d in DIRECTIONS if math.isfinite(law.largest(d))]
    if ends:  # rare large losses beside a bulk of small ones: it is the bulk's that the grid has to tell apart
        mesh = min(mesh, max(min(ends) / _BULK, least))
    steps = [law.largest(direction) for law, _ in job.all_laws if math.isfinite(law.largest(direction))]
    if steps and min(steps) > mesh:  # atoms of the smallest law sit on grid points
        mesh = min(steps) / math.floor(min(steps) / mesh)
    mesh = max(mesh, width / (0.75 * _LARGEST))
    return mesh, 1 << math.ceil(math.log2(1.25 * width / mesh + 4))


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
        above += times * (math.log(float(np.sum(tilted * np.exp(under))) + 1e-300) + 1e-14 - 2 * UNIT * under[0])
        laws.append((as_floats(np.bincount(np.arange(len(tilted)) % size, weights=tilted, minlength=size)), times))
    masses, floor = convolve(laws, size)
    if math.isinf(floor):
        return None
    # position i of the array holds the losses (offset + i + size·anything)·mesh: choose those around the centre
    first = round((low + high) / 2 / mesh) - size // 2
    masses = np.roll(masses, -((first - offset) % size))
    losses = as_floats((first + np.arange(size)) * mesh)
    edge = float(losses[-1])
    # Chernoff: of the tilted law Σ times·ln E[e^{η(L − edge)}] lies above the edge; untilted e^{−c·edge} of that
    beyond = above + eta * (largest - edge) + 1e-13 * (abs(above) + eta * (abs(largest) + abs(edge)))
    beyond = -math.inf if largest * (1 + 1e-14) < edge else beyond - c * max(edge, 0.0)
    kept = -math.expm1(log_kept)
    infinite = min(1.0, kept * (1 + 1e-12) + math.exp(min(0.0, scale + beyond)))
    slack = 1e-13 * (1 + abs(scale) + c * max(abs(float(losses[0])), abs(edge)))
    off = 4 * UNIT * max(abs(float(losses[0])), abs(edge))  # grid points are rounded products
    with np.errstate(divide="ignore"):
        plain = np.log(masses) + scale - c * losses
        bound = np.log(masses + floor) + scale - c * losses + slack
    known = plain > -np.inf
    return Composed(
        bound=Atoms(losses=losses + off, logs=bound, infinite=infinite),
        plain=Atoms(losses=losses[known], logs=plain[known], infinite=lost),
        lowest=float(losses[0]) + off,
    )


def grid_epsilons(job: Job, log_deltas: Floats, near: Floats, direction: Direction) -> Floats:
    """Compute (m,) certified ε with δ(ε) ≤ δ; ∞ where the grid gives none.

    Args:
        job: The composition.
        log_deltas: (m,) ln δ.
        near: (m,) estimates of ε, around which grids are made.
        direction: Direction of the asymmetric pairs.
    """
    values, tight, made = np.full(len(near), np.inf), np.zeros(len(near), dtype=bool), 0
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
        tight[i] = True
    return values


def grid_log_deltas(job: Job, epsilons: Floats, near: Floats, direction: Direction) -> Floats:
    """Compute (m,) certified bounds on ln δ(ε); 0 where the grid gives none.

    Args:
        job: The composition.
        epsilons: (m,) ε.
        near: (m,) estimates of ln δ.
        direction: Direction of the asymmetric pairs.
    """
    values, tight, made = np.zeros(len(epsilons)), np.zeros(len(epsilons), dtype=bool), 0
    for i in from_the_middle(epsilons):
        if tight[i] or (made >= _MOST_GRIDS and values[i] < 0):
            continue
        made += 1
        law = compose(job, float(epsilons[i]), float(near[i]), direction)
        if law is not None:
            bounds, good = law.log_deltas(epsilons)
            values, tight = np.minimum(values, bounds), tight | good
        tight[i] = True
    return values


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
