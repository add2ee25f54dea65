"""A pair of laws from a curve: the greatest convex curve below given points, and its losses.

δ as a function of α = e^ε is convex, falls from 1 at α = 0 with a slope of at least −1, and every such curve belongs to
a pair [lemma profile-pair]: between two knots it is linear, and a knot α carries the P-mass α·(change of slope). In
floats, slopes between knots that are an ulp apart have no digits left. Here the points are treated as exact rational
numbers: hull, slopes and masses are quotients of exact integers, rounded once, at the end.

Lemma hull-of-points: The lower hull of points at or above a convex curve is at or above the curve. Proof: it is at
every knot, and so between two knots, as a chord.

So upper bounds remain upper bounds, and rounding noise, which is not convex, is smoothed away instead of becoming mass.
"""

from __future__ import annotations

import math

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, tidy
from privcheck.accounting.engine.laws import Floats
from privcheck.accounting.engine.mass import MassError

_LEAST = 1e-290  # of a δ below the last knot, to which smaller ones are rounded up


def law_above(losses: Floats, log_deltas: Floats, *, infinite: float = 0.0) -> Atoms:
    """Build the law with δ the lower convex hull of points, a bound on every convex curve below them.

    Args:
        losses: (n,) increasing values of ε.
        log_deltas: (n,) ln δ there, rounded up. The last one counts as ln `infinite`: the curve's largest loss.
        infinite: δ at the last loss and above, lost outright.

    Raises:
        MassError: A point is not a number.
    """
    if not np.isfinite(losses).all() or np.isnan(log_deltas[:-1]).any() or np.any(np.diff(losses) <= 0):
        raise MassError(f"expected increasing losses with their δ, got {losses!r} and {log_deltas!r}")
    above = np.expm1(losses)  # α − 1 keeps the digits of small losses
    keep = np.append(True, np.diff(above) > 0)
    deltas = np.exp(np.minimum(log_deltas, 0.0))
    deltas = np.append(np.maximum(deltas[:-1], max(_LEAST, infinite)), infinite)
    x, x_unit = _integers([-1.0, *above[keep].tolist()])
    y, y_unit = _integers([1.0, *deltas[keep].tolist()])
    corners = _lower_hull(x, y)
    kept = np.flatnonzero(keep)[[i - 1 for i in corners[1:]]]
    masses = _masses(x, y, corners, one=1 << x_unit, unit=1 << y_unit)
    return tidy(losses[kept], np.log(masses), infinite)


def _integers(values: list[float]) -> tuple[list[int], int]:
    """Convert floats to integers and the power of 2 by which all of them were multiplied."""
    ratios = [value.as_integer_ratio() for value in values]
    bits = max(below.bit_length() - 1 for _, below in ratios)
    return [above << (bits - below.bit_length() + 1) for above, below in ratios], bits


def _lower_hull(x: list[int], y: list[int]) -> list[int]:
    """Indices of the corners of the lower hull, x increasing (Andrew 1979)."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return kept


def _masses(x: list[int], y: list[int], corners: list[int], *, one: int, unit: int) -> Floats:
    """(m − 1,) P-masses of all corners but the first: α·(slope after − slope before), 0 after the last."""
    masses = np.empty(len(corners) - 1)
    for k in range(1, len(corners)):
        a, b = corners[k - 1], corners[k]
        wide, down = x[b] - x[a], y[b] - y[a]
        top, bottom = -down, wide
        if k + 1 < len(corners):
            c = corners[k + 1]
            top, bottom = (y[c] - y[b]) * wide - down * (x[c] - x[b]), wide * (x[c] - x[b])
        masses[k - 1] = max((top * (x[b] + one)) / (bottom * unit), math.ulp(0.0))
    return masses
