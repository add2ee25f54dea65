"""Best Rényi order: a certified bound for every composition, and the only one where only zCDP is known.

Lemma best-order: For every α = 1 + z > 1, δ(ε) ≤ exp(K(z) − zε)·z^z/(z + 1)^{z+1} with K(z) = z·D_α. Source: Canonne,
Kamath & Steinke 2020, Proposition 12.

Every order is a valid bound, so the accuracy of the minimiser affects tightness only; z is continuous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laws import UNIT, Direction, Floats

_RANGE: Final = (-60.0, 90.0)  # ln z
_COARSE: Final = 0.5  # … in steps of this
_FINER: Final = 16  # by how much every further look is finer
_FEW: Final = 65  # questions that get a third look of their own: beyond, ε is up to 1e-6 of it too high
_MOST: Final = 1e200  # of a bound
_BLOCK: Final = 1 << 20

DivergenceBound = Callable[[Floats, Floats, Floats], Floats]


def renyi_epsilons(job: Job, log_deltas: Floats, direction: Direction, *, looks: int | None = None) -> Floats:
    """Compute (m,) ε with δ(ε) ≤ δ, rounded up.

    Args:
        job: The composition; the caller accounts for the δ lost outright.
        log_deltas: (m,) ln δ.
        direction: Direction of the asymmetric pairs.
        looks: Number of refinements of the orders; None for the default number.
    """

    def bound(fixed: Floats, z: Floats, log_delta: Floats) -> Floats:
        return (fixed - log_delta * (1 - 4 * UNIT)) / z * (1 + 4 * UNIT)

    epsilons = _least(job, direction, bound, log_deltas, looks)
    return np.where(log_deltas == -np.inf, np.inf, np.where(log_deltas >= 0, 0.0, np.maximum(epsilons, 0.0)))


def renyi_log_deltas(job: Job, epsilons: Floats, direction: Direction, *, looks: int | None = None) -> Floats:
    """Compute (m,) bounds on ln δ(ε), rounded up; see `renyi_epsilons`."""

    def bound(fixed: Floats, z: Floats, epsilon: Floats) -> Floats:
        result: Floats = fixed - z * epsilon * (1 - 4 * UNIT)
        return result

    return np.minimum(_least(job, direction, bound, epsilons, looks), 0.0)


def _least(job: Job, direction: Direction, bound: DivergenceBound, asked: Floats, looks: int | None) -> Floats:
    """Compute (m,) the least bounds over z; ∞ where no order gives a finite one.

    A coarse scan of all orders is followed by finer ones around the orders that were best for some question; every
    scanned order bounds every question.
    """
    corners = np.log([z for law, _ in job.bounds for z in law.corners])
    s = np.union1d(np.arange(_RANGE[0], _RANGE[1], _COARSE), corners[(corners > _RANGE[0]) & (corners < _RANGE[1])])
    least, best = _look(job, direction, bound, asked, s)
    width = _COARSE
    for _ in range(looks if looks is not None else 2 if len(asked) > _FEW else 4):
        parts = [np.linspace(at - width, at + width, 2 * _FINER + 1) for at in np.unique(best)]
        s = np.unique(np.concatenate(parts))
        bounds, at = _look(job, direction, bound, asked, s)
        best = np.where(bounds <= least, at, best)
        least, width = np.minimum(least, bounds), width / _FINER
    return np.where(least < _MOST, least, np.inf)


def _look(job: Job, direction: Direction, bound: DivergenceBound, asked: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Compute (m,) the least bounds over the orders 1 + e^s, and the s at which they are least."""
    fixed, z = _fix(job, s, direction), np.exp(s)
    least, best = np.empty(len(asked)), np.empty(len(asked))
    block = max(1, _BLOCK // len(s))
    for i in range(0, len(asked), block):
        with np.errstate(over="ignore", invalid="ignore"):
            values = bound(fixed, z, asked[i : i + block, None])
        # what overflowed is moved up into a range in which the search can compare
        values = np.where(np.isnan(values), _MOST, np.clip(values, -_MOST, _MOST))
        where = values.argmin(axis=1)
        least[i : i + block], best[i : i + block] = values[np.arange(len(where)), where], s[where]
    return least, best


def _fix(job: Job, s: Floats, direction: Direction) -> Floats:
    """K(z) + z·ln z − (z + 1)·ln(z + 1) at z = e^s, rounded up: the part of the bound fixed by the order."""
    z = np.exp(s)
    with np.errstate(over="ignore", invalid="ignore"):
        k = job.divergences(z, direction)
        off = job.bound_rounding(z, direction)
        # z·ln z − (z + 1)·ln(z + 1) = −z·ln(1 + 1/z) − ln(1 + z), in which nothing cancels
        shape = -z * np.log1p(1 / z) - np.log1p(z)
        result: Floats = k + off + shape + 16 * UNIT * (np.abs(k) - shape)
    return result
