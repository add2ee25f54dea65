"""Cascades: means of independent products of lognormal factors along a tree, bounded in the convex order.

A leaf is 1; a level multiplies each of its nodes by an independent e^{√v·g − v/2}, g ~ N(0, 1), and takes the mean of n
independent copies of that. All numbers have mean 1.

Lemma cascade-order: Call a measure μ on numbers ≥ 0 above a law if ∫f dμ ≥ E f(V) for every convex f ≥ 0, and below it
if ≤. Measures above independent laws have products above, with sums and with products of the numbers; so have measures
below. A measure stays above if a mass is split over two points around it that keep its mean, or if masses are added,
and below if masses are joined at their mean, or left out. Proof: y ↦ f(x + y) and y ↦ f(xy) are convex and ≥ 0, so that
one factor after the other is exchanged; a split is Jensen's inequality, and so is a joint; f ≥ 0.

The numbers are kept at a few hundred points, their masses as sums of positive terms, so that every tail has its digits.
What is above the last point is cut off to it, and E(V − V′) is counted as lost: E(V − x)₊ ≤ E(V′ − x)₊ + E(V − V′), and
E(x − V)₊ ≤ E(x − V′)₊. Every product and sum is rounded by UNIT at most; as V is increasing and homogeneous in all of
them, all these roundings together are one factor.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.accounting.engine.laws import UNIT, Floats, as_floats

_REACH: Final = 13.0  # standard deviations of a factor's exponent: 6e-39 lies beyond
_STEP: Final = 0.05  # between points, in standard deviations of the normal law with as much mass beyond …
_NEAR: Final = 7.0  # … up to here; from there on steps double
_FURTHEST: Final = 30.0  # … up to here
_LEFT_OUT: Final = 1e-32  # mass beyond the last points
_CLOSE: Final = 1e-9  # relative gap of points
_TAIL: Final = 1e-13  # relative error of the normal distribution's values

Levels = tuple[tuple[float, int], ...]  # variance of the exponent and number of copies of each, from the leaves up


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """A measure above or below the law of a number V.

    Attributes:
        values: (n,) increasing, at least 0.
        masses: (n,) their masses.
        up: Whether it is above the law.
        lost: Bound on what was cut off from V, in the mean; 0 of a measure below.
        off: Bound on the relative error of all values.
    """

    values: Floats
    masses: Floats
    up: bool
    lost: float = 0.0
    off: float = 0.0

    def excesses(self, x: Floats) -> Floats:
        """(m,) upper bounds on E(V − x)₊, or lower ones."""
        sign = 1 if self.up else -1
        return self._sums(np.subtract.outer(-x, -self.values * (1 + sign * self.off))) + self.lost

    def shortfalls(self, x: Floats) -> Floats:
        """(m,) upper bounds on E(x − V)₊, or lower ones."""
        sign = 1 if self.up else -1
        return self._sums(np.subtract.outer(x, self.values * (1 - sign * self.off)))

    def _sums(self, beyond: Floats) -> Floats:
        slack = UNIT * (len(self.values) + 16)
        return as_floats(np.maximum(beyond, 0.0) @ self.masses * (1 + slack if self.up else 1 - slack))


def cascade(levels: Levels, *, up: bool) -> Spread:
    """Measure above, or below, the law of a cascade."""
    law = Spread(values=np.ones(1), masses=np.ones(1), up=up)
    for variance, copies in levels:
        if variance > 0:
            law = _combine(law, _factor(variance, up=up), np.multiply)
        law = _mean(law, copies)
    return law


def shrink(law: Spread, share: float) -> Spread:
    """Law of share·V + 1 − share."""
    return replace(law, values=as_floats(1 + share * (law.values - 1)), off=law.off + 8 * UNIT)


def _factor(variance: float, *, up: bool) -> Spread:
    """Law of e^{√v·g − v/2}."""
    from scipy.special import ndtr

    a = math.sqrt(variance)
    inner = np.arange(-_NEAR, _NEAR + a + _STEP, _STEP)
    count = math.ceil((_REACH - _NEAR) / (2 * _STEP))
    outer = np.arange(1, count + 1) * (2 * _STEP)
    g = np.concatenate([inner[0] - outer[::-1], inner, inner[-1] + outer])
    ends = np.exp(a * g - variance / 2)

    def between(y: Floats) -> Floats:
        lower, higher = ndtr(y), ndtr(-y)
        return as_floats(np.where(y[:-1] > 0, higher[:-1] - higher[1:], lower[1:] - lower[:-1]))

    q, p = between(as_floats(g)), between(as_floats(g - a))  # masses, and E[V] on the cells
    off = _TAIL / _STEP + 8 * UNIT * (32 + a * _REACH + variance)  # of both, relatively
    if not up:
        return Spread(values=as_floats(p / q), masses=as_floats(q * (1 - off)), up=up, off=3 * off)
    widths = np.diff(ends)
    raised = np.clip((p - ends[:-1] * q) / (widths * q), 0.0, 1.0)
    slack = 4 * off * ends[1:] / widths
    values, masses = np.append(0.0, ends), np.zeros(len(ends) + 1)
    masses[2:] += q * np.minimum(raised + slack, 1.0) * (1 + off)
    masses[1:-1] += q * np.minimum(1 - raised + slack, 1.0) * (1 + off)
    rest = float(ndtr(g[0])) * (1 + off)
    masses[:2] += rest  # below the first point: at both ends, as f is at most the larger
    masses[-1] += float(ndtr(-g[-1])) * (1 + off)
    lost = float(ndtr(a - g[-1])) * (1 + off)
    return Spread(values=values, masses=masses, up=up, lost=lost, off=off)


def _mean(law: Spread, copies: int) -> Spread:
    """Law of the mean of independent copies."""
    total: Spread | None = None
    power, left = law, copies
    while left:
        if left & 1:
            total = power if total is None else _combine(total, power, np.add)
        left >>= 1
        if left:
            power = _combine(power, power, np.add)
    assert total is not None
    return replace(total, values=total.values / copies, lost=total.lost / copies, off=total.off + 2 * UNIT)


def _combine(one: Spread, other: Spread, how: np.ufunc) -> Spread:
    """Law of the sum or of the product of two independent numbers, at fewer points.

    What was cut off of them is lost of a sum, and at most that of a product of numbers of mean 1 or less.
    """
    values = how.outer(one.values, other.values).ravel()
    masses = np.multiply.outer(one.masses, other.masses).ravel()
    off = one.off + other.off + 4 * UNIT if how is np.multiply else max(one.off, other.off) + 4 * UNIT
    order = np.argsort(values)
    values, masses = values[order], masses[order]
    kept = masses > 0
    law = Spread(values=values[kept], masses=masses[kept], up=one.up, lost=one.lost + other.lost, off=off)
    return _fewer(law)


@functools.cache
def _levels() -> Floats:
    """Masses beyond a point of the normal law at its steps."""
    from scipy.special import ndtr

    near = np.arange(0.0, _NEAR, _STEP)
    return as_floats(ndtr(-np.concatenate([near, np.arange(_NEAR, _FURTHEST, 2 * _STEP)])))


def _fewer(law: Spread) -> Spread:
    """A measure above, or below, at a few hundred points, near ones where there is much mass."""
    v, q = law.values, law.masses
    below, above = np.cumsum(q), np.cumsum(q[::-1])[::-1]
    gain = np.cumsum((q * v)[::-1])[::-1]
    middle = int(np.searchsorted(below, 0.5 * below[-1]))
    first = min(int(np.searchsorted(below, _LEFT_OUT)), middle)
    last = max(int(np.searchsorted(-gain, -_LEFT_OUT, side="right")) - 1, middle)
    lower = np.searchsorted(below[:middle], _levels())
    upper = np.searchsorted(-above[middle:], -_levels(), side="right") + middle
    at = np.unique(np.clip(np.concatenate([lower, upper, [first, middle, last]]), first, last))
    ends = v[at]
    ends = ends[np.append(True, np.diff(ends) > _CLOSE * ends[1:])]
    slack = 1 + UNIT * (len(v) + 16)
    if not law.up:
        inside = slice(first, last + 1)
        cell = np.searchsorted(ends, v[inside], side="right") - 1
        inner = as_floats(np.bincount(cell, weights=q[inside], minlength=len(ends)))
        means = as_floats(np.bincount(cell, weights=(q * v)[inside], minlength=len(ends)))
        full = inner > 0
        joint = as_floats(inner[full] / slack)
        return replace(law, values=as_floats(means[full] / inner[full]), masses=joint, off=law.off + 4 * (slack - 1))
    if len(ends) < 2:  # all of one size
        ends = np.array([v[first] * (1 - 2 * _CLOSE), max(v[last], v[first] * (1 + 2 * _CLOSE))])
    cut = np.minimum(v, ends[-1])
    cell = np.clip(np.searchsorted(ends, cut, side="right") - 1, 0, len(ends) - 2)
    held = cut >= ends[0]
    raised = np.bincount(cell[held], weights=(q * (cut - ends[cell]))[held], minlength=len(ends) - 1)
    lowered = np.bincount(cell[held], weights=(q * (ends[cell + 1] - cut))[held], minlength=len(ends) - 1)
    values, masses = np.append(0.0, ends), np.zeros(len(ends) + 1)
    masses[2:] += raised / np.diff(ends)
    masses[1:-1] += lowered / np.diff(ends)
    masses[:2] += float(q[~held].sum())  # below the first point: at both ends
    lost = law.lost + float(np.maximum(v - ends[-1], 0.0) @ q) * slack
    if ends[0] == 0:
        values, masses = values[1:], np.append(masses[0] + masses[1], masses[2:])
    return replace(law, values=values, masses=masses * slack, lost=lost)
