"""E(V₁ + … + Vₜ − c)₊ of independent numbers with one law, from both sides: the law on a grid, and one transform.

Lemma excess-above: If the mass between two grid points is split over both so that its mean is kept, E(ΣV − c)₊ is not
smaller for any c. Proof: a split is a mean-preserving spread, and w ↦ E(w + the others − c)₊ is convex; exchange one of
the V after the other.

Lemma excess-below: Let s(i) be the split mass at point i, exact atoms of the law left out. The signed measure that is
the split law less the second differences of ½s has no larger integral of any convex function than V. Proof: the
integral function φ(x) = E(V − x)₊ is convex, so that between points i and i + 1, at i + u, its chord lies above it by
at most the least of u·s(i) and (1 − u)·s(i + 1), in units of the step: the chords of the neighbours, extended, lie
below φ. That is at most ½(1 − u)s(i) + ½u·s(i + 1): it is enough to compare at u = s(i + 1)/(s(i) + s(i + 1)), where
s(i)s(i + 1)/(s(i) + s(i + 1)) ≤ ½(s(i)² + s(i + 1)²)/(s(i) + s(i + 1)). So φ less ½s at the points, and linear between
them, is below φ. At the two ends nothing is taken away, and next to them s of the end as well: u·s(0) ≤ u·(½s(1) +
s(0)).

Negative masses of that measure are moved to the nearest points on both sides that keep theirs, so that the mean is
kept: the integral of a convex function does not grow. Negative mass at the least point moves up, for w ↦ E(w + the
others − c)₊ grows. At the greatest point none may be negative: the law is cut off there, V replaced by min(V, point),
at the greatest point at which it is not. Where V has a mass below the least point it is left out of the lower law and
raised to that point in the upper one.

The sum's law is the t-fold convolution of the tilted masses, with the proved bound of `convolution`. With θ the tilt,
M the factor that it was normed by, and ω what Chernoff's bound says of the tilted mass outside the window, the
transform, which wraps that mass around, errs by at most M·e^{−θc}·ω/(eθ): e^{−θ(x − c)}(x − c)₊ ≤ 1/(eθ). For E(e^{ΣV −
c} − 1)₊ and θ ≥ 1 that is M·e^{−θc}·ω.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from privcheck.accounting.engine.convolution import convolve
from privcheck.accounting.engine.laws import UNIT, Floats, as_floats

_GROUPS: Final = 400  # of points, of which a tilt is chosen
_OUTSIDE: Final = 24.0  # −ln of the tilted mass that the window may leave out
_FACTORS: Final = (1.0, 0.5, 0.25, 0.1, 0.03)  # of the η that is best for a normal law; less for heavy tails
_WIDE: Final = 1.3  # times what a normal law needs: good enough
_LARGEST: Final = 1 << 19  # points of the sum's law
_STEPS: Final = 60  # of a bisection
_CUTS: Final = 8
_MASS: Final = 1e-13  # relative, of masses


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binned:
    """A law by its masses at the points of a grid and between them.

    Attributes:
        first: The least point.
        step: Distance of the points.
        inside: (n,) masses between neighbouring points.
        raised: (n,) the part of each that goes to the upper point where the mean is kept.
        off: (n,) bounds on the error of these.
        lacking: (n,) bounds on the absolute error of the masses.
        atoms: (n + 1,) masses at points, exactly there.
        under: Mass below the least point.
    """

    first: float
    step: float
    inside: Floats
    raised: Floats
    off: Floats
    lacking: Floats
    atoms: Floats
    under: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnGrid:
    """A measure on a grid.

    Attributes:
        first: The least point.
        step: Distance of the points.
        masses: (n,) masses.
    """

    first: float
    step: float
    masses: Floats


def grid_above(binned: Binned) -> OnGrid:
    """Measure with an E(ΣV − c)₊ that is nowhere smaller [lemma excess-above]."""
    inside = binned.inside * (1 + _MASS)
    up = np.clip(binned.raised + binned.off, 0.0, inside)
    masses = binned.atoms * (1 + _MASS)
    masses[1:] += up + binned.lacking
    masses[:-1] += inside - up
    masses[0] += binned.under * (1 + _MASS)
    return OnGrid(first=binned.first, step=binned.step, masses=masses)


def grid_below(binned: Binned) -> OnGrid | None:
    """Measure with an E(ΣV − c)₊ that is nowhere larger [lemma excess-below]; None where nothing is left."""
    inside = np.maximum(binned.inside * (1 - _MASS) - binned.lacking, 0.0)
    up = np.clip(binned.raised - binned.off - binned.lacking, 0.0, inside)
    down, atoms = inside - up, binned.atoms * (1 - _MASS)
    split = np.append(down, 0.0) + np.append(0.0, up)
    split = split * (1 + 4 * UNIT)
    above = np.append(np.cumsum((inside + atoms[1:])[::-1])[::-1], 0.0) * (1 - len(inside) * UNIT)
    enough = above + atoms >= np.append(0.0, split[:-1] / 2) * (1 + 16 * UNIT) + 16 * UNIT * np.append(0.0, up)
    ends = np.flatnonzero(enough[3:]) + 3
    for i in range(_CUTS if len(ends) else 0):
        last = int(ends[(len(ends) - 1) >> i])
        masses = (atoms + np.append(down, 0.0) + np.append(0.0, up))[: last + 1]
        masses[last] = atoms[last] + up[last - 1] + above[last]
        gaps = split[: last + 1] / 2
        gaps[last], gaps[last - 1] = 0.0, gaps[last - 1] + up[last - 1] * (1 + 4 * UNIT)
        gaps[1], gaps[0] = gaps[1] + split[0], 0.0
        around = np.append(0.0, gaps[:-1]) + np.append(gaps[1:], 0.0)
        signed = (masses + 2 * gaps) - around - 4 * UNIT * (masses + 2 * gaps + around)
        swept = _sweep(as_floats(signed))
        if swept is not None:
            return OnGrid(first=binned.first, step=binned.step, masses=swept)
    return None


def _sweep(signed: Floats) -> Floats | None:
    """Move negative masses to the nearest kept points on both sides, with the mean kept; None if the last is one."""
    masses = signed.copy()
    kept = np.arange(len(masses))
    while True:
        bad = masses[kept] < 0
        if not bad.any():
            return masses
        if bad[-1]:
            return None
        rest, gone = kept[~bad], kept[bad]
        right = np.searchsorted(rest, gone)
        left = np.maximum(right - 1, 0)
        over, under = rest[right], rest[left]
        share = np.where(right > 0, (gone - under) / np.maximum(over - under, 1), 1.0)
        moved = masses[gone] * (1 + 8 * UNIT)
        masses[gone] = 0.0
        np.add.at(masses, over, moved * share)
        np.add.at(masses, under, moved * (1 - share))
        kept = rest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summed:
    """Tilted law of the sum of t numbers on a grid.

    Attributes:
        first: Least value of the window.
        step: Distance of the values.
        tilt: θ, above 0, in units of 1/step.
        scale: ln of the factor that the tilted masses have to be multiplied by.
        slack: Bound on its rounding error.
        masses: (n,) tilted masses, the window's first value with exponent 0.
        floor: Bound on the error of each.
        outside: Bound on the tilted mass outside the window.
    """

    first: float
    step: float
    tilt: float
    scale: float
    slack: float
    masses: Floats
    floor: float
    outside: float

    def excess(self, threshold: float) -> tuple[float, float]:
        """Lower and upper bounds on E(ΣV − c)₊."""
        values = self.first + np.arange(len(self.masses)) * self.step
        rounding = 16 * UNIT * (abs(self.first) + len(self.masses) * self.step + abs(threshold))
        start = max(0, math.ceil((threshold - self.first) / self.step) - 1)
        near = as_floats(np.maximum(values[start:] - threshold, 0.0) / self.step)
        # e^{−θ(x − c)}, x and c in units of the step
        from_here = (values[start:] - threshold) * (self.tilt / self.step)
        with np.errstate(under="ignore"):
            weights = near * np.exp(-np.maximum(from_here, 0.0))
        total, size = float(weights @ self.masses[start:]), float(weights.sum())
        error = self.floor * size * (1 + 1e-9) + self.outside / (math.e * self.tilt)
        # what rounding of the values may do: E(ΣV − c)₊ moves by no more than c, and by less than the tilt says
        moved = float(self.masses[start:].sum()) + self.outside
        error += (rounding / self.step) * moved + 1e-13 * total + UNIT * len(weights) * total
        log = self.scale - self.tilt * (threshold - self.first) / self.step
        log_off = self.slack + 8 * UNIT * (abs(self.scale) + self.tilt * abs(threshold - self.first) / self.step + 8)
        log_off += 2 * self.tilt * rounding / self.step
        lower, upper = max(total - error, 0.0), total + error
        return _times(lower, log - log_off) * self.step, _times(upper, log + log_off) * self.step

    def log_exponential_excess(self, threshold: float) -> float:
        """Bound from above on ln E(e^{ΣV − c} − 1)₊, for a tilt of at least 1 for 1: no term is above its mass."""
        values = self.first + np.arange(len(self.masses)) * self.step
        rounding = 16 * UNIT * (abs(self.first) + len(self.masses) * self.step + abs(threshold))
        start = max(0, math.ceil((threshold - self.first) / self.step) - 1)
        over = np.maximum(values[start:] - threshold, 0.0)
        with np.errstate(under="ignore"):
            weights = -np.expm1(-over) * np.exp(-(self.tilt / self.step - 1) * over)
        total, size = float(weights @ self.masses[start:]), float(weights.sum())
        moved = float(self.masses[start:].sum()) + self.outside
        error = self.floor * size * (1 + 1e-9) + self.outside + rounding * moved + 1e-13 * total
        error += UNIT * len(weights) * total
        log = self.scale - self.tilt * (threshold - self.first) / self.step
        slack = self.slack + 8 * UNIT * (abs(self.scale) + self.tilt * abs(threshold - self.first) / self.step + 8)
        slack += 2 * self.tilt * rounding / self.step
        return log + slack + math.log(max(total + error, 1e-300))


def _times(value: float, log: float) -> float:
    """Value times e^log."""
    return math.exp(min(math.log(value) + log, 700.0)) if value > 0 else 0.0


def best_tilt(law: OnGrid, count: int, threshold: float) -> float:
    """Saddle point of E(ΣV − c)₊, in units of 1/step: any is valid, this one is accurate."""
    n = len(law.masses)
    # groups of one width, and of one mass where that is finer
    sums = np.cumsum(law.masses)
    levels = np.searchsorted(sums, np.linspace(0, float(sums[-1]), _GROUPS))
    starts = np.unique(np.append(np.linspace(0, n - 1, min(n, _GROUPS)).astype(np.int64), np.minimum(levels, n - 1)))
    weights = as_floats(np.add.reduceat(law.masses, starts))
    centres = (np.add.reduceat(law.masses * np.arange(n), starts) / np.maximum(weights, 1e-300))[weights > 0]
    logs = np.log(weights[weights > 0])
    aim = (threshold / count - law.first) / law.step

    def slope(theta: float) -> float:
        exponents = logs + theta * centres
        tilted = np.exp(exponents - float(exponents.max()))
        return float(tilted @ centres) / float(tilted.sum()) - aim - 2 / (theta * count)

    low, high = 1e-12, 1.0
    while slope(high) < 0 and high < 1e6:
        high *= 2
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        if high < low * 1.001:
            break
    return low  # beyond it rare large terms may outweigh all others


def bulk_std(law: OnGrid, tilt: float) -> float:
    """Standard deviation of the tilted law without its largest values, which the step has to resolve."""
    points = np.arange(len(law.masses))
    value = law.first + law.step * points
    kept = value <= max(float(value[-1]) / 8, float(value[len(value) // 2]))
    with np.errstate(under="ignore", divide="ignore"):
        logs = np.log(law.masses[kept]) + tilt * points[kept]
        weights = np.exp(logs - max(float(logs.max()), -1e300))
    total = max(float(weights.sum()), 1e-300)
    mean = float(weights @ points[kept]) / total
    return law.step * math.sqrt(float(weights @ (points[kept] - mean) ** 2) / total)


def add_up(law: OnGrid, count: int, tilt: float) -> Summed | None:
    """Law of the sum of `count` independent numbers; None where it has too many points.

    Args:
        law: Law of one, total mass at most about 1.
        count: t.
        tilt: θ, above 0, in units of 1/step.
    """
    n = len(law.masses)
    points = np.arange(n)
    with np.errstate(divide="ignore", under="ignore"):
        exponents = tilt * points
        logs = np.log(law.masses) + exponents
        top = float(logs.max())
        tilted = np.exp(logs - top)
        total = float(tilted.sum())
        tilted /= total
        mean = float(tilted @ points)
        variance = max(float(tilted @ (points - mean) ** 2), 1e-12)
        rounded = UNIT * (8 * float(np.max(np.abs(logs[np.isfinite(logs)]))) + 8 * abs(top) + 64) + n * UNIT
        ends, outside = list[float](), 0.0
        for sign in (-1, 1):
            best, its = math.inf, 0.0
            for factor in _FACTORS:
                eta = factor * math.sqrt(2 * _OUTSIDE / (count * variance))
                moved = sign * (points - mean)
                furthest = float(max(moved[0], moved[-1]))
                log_moment = math.log(float(tilted @ np.exp(eta * (moved - furthest))) + 1e-300) + eta * furthest
                width = (_OUTSIDE + count * log_moment) / eta
                if width < best:
                    rounding = count * (UNIT * (n + 64) + 1e-12 * eta * abs(furthest))
                    best, its = width, math.exp(-_OUTSIDE + 1e-6 + rounding)
                if best < _WIDE * math.sqrt(2 * _OUTSIDE * count * variance):
                    break
            ends.append(best)
            outside += its
    low = max(math.floor(count * mean - ends[0]) - 2, 0)
    high = min(math.ceil(count * mean + ends[1]) + 2, count * (n - 1))
    size = 1 << max(4, math.ceil(math.log2(high - low + 2)))
    if size > _LARGEST:
        return None
    folded = as_floats(np.bincount(points % size, weights=tilted, minlength=size))
    masses, floor = convolve([(folded, count)], size)
    if math.isinf(floor):
        return None
    masses = np.roll(masses, -(low % size))
    return Summed(
        first=count * law.first + low * law.step,
        step=law.step,
        tilt=tilt,
        scale=count * (math.log(total) + top) - tilt * low,
        slack=count * rounded + 8 * UNIT * tilt * low,
        masses=masses,
        floor=floor,
        outside=outside,
    )
