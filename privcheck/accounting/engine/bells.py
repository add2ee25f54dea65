"""Two Gaussian components, (1 − q)N(0, 1) + qN(s, 1): densities, masses, inverses, accurate at any s and q."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from privcheck.accounting.engine.laws import UNIT, Cells, Floats, as_floats

_UNIFORM: Final = 400.0  # in standard deviations, up to which a density is looked at everywhere
_LARGEST: Final = 1e250
_HIDDEN: Final = 1e-14
TAIL: Final = 1e-13  # relative error of the normal distribution's values
_HALF_LOG: Final = 0.5 * math.log(2 * math.pi)


def far_bound(shift: float, rate: float, c: Floats) -> Floats:
    """Logarithm ln(1 − q + q·e^{c(c + 1)s²/2}), never below K(c) of "remove": r ↦ r^{c+1} is convex."""
    with np.errstate(over="ignore"):
        bound = np.logaddexp(math.log1p(-rate), math.log(rate) + c * (c + 1) * (shift**2 / 2))
    return as_floats(np.where(bound < _LARGEST, bound, np.inf))  # which counts may multiply


def plain(x: Floats) -> Floats:
    """Logarithm ln φ(x)."""
    return as_floats(-x * x / 2 - _HALF_LOG)


def _exponents(shift: float, rate: float, x: Floats) -> tuple[Floats, float]:
    """Exponent sx − s²/2, and ln((1 − q)/q), at which the two parts of r are equal."""
    return as_floats(shift * x - shift * shift / 2), math.log1p(-rate) - math.log(rate)


def log_mixture(shift: float, rate: float, x: Floats) -> Floats:
    """Logarithm ln r(x)."""
    exponents, _ = _exponents(shift, rate, x)
    gain = rate * np.expm1(np.minimum(exponents, 30.0))  # of small losses it keeps the digits
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + exponents)
    return as_floats(np.where(np.abs(gain) < 0.5, np.log1p(np.maximum(gain, -0.5)), far))


def log_mix(shift: float, rate: float, x: Floats) -> Floats:
    """Logarithm ln φ(x)r(x), each of its two bumps around its own centre."""
    exponents, middle = _exponents(shift, rate, x)
    over = exponents - middle
    share = np.log1p(np.exp(-np.abs(over)))
    left, right = math.log1p(-rate) + plain(x), math.log(rate) + plain(as_floats(x - shift))
    return as_floats(np.where(over > 0, right, left) + share)


def slope(shift: float, rate: float, x: Floats) -> Floats:
    """σ, the fraction of r(x) due to e^{sx − s²/2}: d ln r/dx is sσ, and its derivative s²σ(1 − σ)."""
    from scipy.special import expit

    exponents, middle = _exponents(shift, rate, x)
    return as_floats(expit(exponents - middle))


def branch(shift: float, rate: float) -> tuple[float, float]:
    """Zeros of r: sx − s²/2 = ln((1 − q)/q) ± iπ, as the real part of x and the size of its imaginary part."""
    return shift / 2 + (math.log1p(-rate) - math.log(rate)) / shift, math.pi / shift


def bumps(near: float, far: float) -> tuple[tuple[float, float], ...]:
    """Intervals where the density may have bumps: between 0 and the farthest bump, at both ends where that is far."""
    low, high = min(0.0, far), max(0.0, far)
    return ((low, high),) if high - low <= _UNIFORM else ((0.0, 0.0), (min(near, far), max(near, far)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masses:
    """Masses of a law between points: below the first, inside, above the last."""

    under: float
    inside: Floats
    over: float

    def times(self, factor: float) -> Masses:
        """Multiply the masses."""
        return Masses(under=self.under * factor, inside=self.inside * factor, over=self.over * factor)

    def plus(self, other: Masses) -> Masses:
        """Add two laws' masses."""
        return Masses(under=self.under + other.under, inside=self.inside + other.inside, over=self.over + other.over)


def below(x: Floats, centre: float) -> Masses:
    """Masses of N(m, 1) between points; differences are taken in the tail where they keep their digits."""
    from scipy.special import ndtr

    y = x - centre
    under, over = ndtr(y), ndtr(-y)
    inside = np.where(y[:-1] > 0, over[:-1] - over[1:], under[1:] - under[:-1])
    return Masses(under=float(under[0]), inside=as_floats(inside), over=float(over[-1]))


def between(x: Floats, centre: float) -> tuple[Floats, Floats, Floats]:
    """Masses of N(m, 1) between points and bounds on their errors; and the mass beyond each point, away from m.

    Args:
        x: (…, n) increasing points, which may be infinite and are taken as exact.
        centre: m.
    """
    from scipy.special import ndtr

    y = x - centre
    tails = as_floats(ndtr(-np.abs(y)))
    low, high = tails[..., :-1], tails[..., 1:]
    masses = np.where(y[..., :-1] > 0, low - high, high - low)
    masses = np.where((y[..., :-1] <= 0) & (y[..., 1:] > 0), 1 - low - high, masses)
    return as_floats(np.maximum(masses, 0.0)), as_floats(TAIL * np.maximum(low, high)), tails


def mix(x: Floats, shift: float, rate: float) -> Masses:
    """Masses of (1 − q)N(0, 1) + qN(s, 1) between points."""
    return below(x, 0.0).times(1 - rate).plus(below(x, shift).times(rate))


def reach(tail: float) -> float:
    """Number of standard deviations with a mass of `tail` beyond them."""
    from scipy.special import ndtri

    return -float(ndtri(max(tail, 1e-300))) if tail < 0.5 else 1.0


def inverse(shift: float, rate: float, losses: Floats) -> Floats:
    """Point x with ln r(x) = l; −∞ for l ≤ ln(1 − q)."""
    with np.errstate(divide="ignore", over="ignore"):
        gain = np.where(losses > math.log1p(-rate), np.expm1(np.minimum(losses, 600.0)) + rate, 0.0) / rate
        x = np.where(losses > 500, losses - math.log(rate), np.log(np.maximum(gain, 0.0))) / shift + shift / 2
    return as_floats(x)


def raise_cells(cells: Cells, steepness: float, x: Floats, mesh: float) -> Cells:
    """Move up by one grid point the mass that rounding of x may have put too low.

    A loss of slope at most `steepness` errs by that times the rounding of x, up to 8u|x|; errors below 1e-14 are
    accounted for by `spread`.
    """
    size = np.where(np.isfinite(x), np.abs(x), 0.0)
    size[1:] = np.maximum(size[1:], size[:-1])
    size[:-1] = np.maximum(size[:-1], size[1:])
    off = 8 * UNIT * steepness * size
    if float(off.max()) < _HIDDEN:
        return cells
    moved = cells.masses * np.minimum(1.0, off / mesh)
    masses = np.append(cells.masses - moved, 0.0)
    masses[1:] += moved
    return Cells(start=cells.start, masses=masses, infinite=cells.infinite)
