"""Trade-off functions in exact arithmetic: piecewise linear lower bounds, and their privacy profiles.

A trade-off function f is convex and falls, f(α) ≤ 1 − α: the least type II error of a test of level α.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.engine.profiles import Point
from privcheck.errors import ParameterError

Knots = list[tuple[Fraction, Fraction]]
_ULP: Final = Fraction(8, 1 << 53)  # relative: what a function's value may be off by
_BEND: Final = 1e-9  # relative: how far from convex rounding can make it look


def profile_points(knots: Knots) -> list[Point]:
    """(x, h(x)) with h(x) = sup_α 1 − f(α) − xα at the slopes −x of the lower convex hull of the knots.

    Args:
        knots: (α, a lower bound on f(α)) from 0 to 1; between two of them f is above their straight line.
    """
    hull = _hull(knots)
    points = []
    for (a0, b0), (a1, b1) in itertools.pairwise(hull):
        x = (b0 - b1) / (a1 - a0)
        if x > 0:
            points.append((x, max(1 - b0 - x * a0, 1 - x, Fraction(0))))  # f rounded may be above 1 − α
    return points


def _hull(knots: Knots) -> Knots:
    kept: Knots = []
    for a, b in sorted(knots):
        if kept and a == kept[-1][0]:
            continue  # sorted: the lower of the two is there
        while len(kept) >= 2:
            (a0, b0), (a1, b1) = kept[-2], kept[-1]
            if (b1 - b0) * (a - a0) < (b - b0) * (a1 - a0):
                break
            kept.pop()
        kept.append((a, b))
    return kept


def below_lines(known: Knots) -> Knots:
    """Knots of the function that is linear between these values, down to f(1) = 0."""
    return [(Fraction(0), known[0][1]), *known, (Fraction(1), Fraction(0))]


def below_steps(known: Knots) -> Knots:
    """Knots below every falling function with these values: left of a point it is at least as high as there."""
    lefts = [Fraction(0), *(a for a, _ in known)]
    values = [*(b for _, b in known), Fraction(0)]
    return [*zip(lefts, values, strict=True), (Fraction(1), Fraction(0))]


def below_convex(known: Knots, *, slack: Fraction = Fraction(0)) -> Knots:
    """Knots below every convex, falling function with these values.

    Lemma convex-from-below: Between two points a convex function is above the line through the two before it and above
    the line through the two after it. Proof: on either side of two of its points it is above their line.

    Args:
        known: (α, f(α)), α increasing.
        slack: Relative error of a value.

    Raises:
        ParameterError: The values are further from convex than rounding explains.
    """
    _check_convex(known)
    points = known if known[-1][0] == 1 else [*known, (Fraction(1), Fraction(0))]
    if points[0][0] > 0:
        points = [(Fraction(0), Fraction(1)), *points]  # f(0) is at most 1: all that is needed of the first point
    knots: Knots = []
    for i, ((a0, b0), (a1, b1)) in enumerate(itertools.pairwise(points)):
        low0, low1, width, after = b0 * (1 - slack), b1 * (1 - slack), a1 - a0, Fraction(0)
        if i + 2 < len(points):  # it falls by no less than this after a1 …
            after = max(after, (low1 - points[i + 2][1] * (1 + slack)) / (points[i + 2][0] - a1))
        at_left = low1 + after * width
        if i == 0:
            knots += [(a0, at_left), (a1, low1)]
            continue
        before = (points[i - 1][1] * (1 + slack) - low0) / (a0 - points[i - 1][0])  # … and by no more after a0
        knots += [(a0, max(low0, at_left)), (a1, max(low1, low0 - before * width))]
        if at_left < low0 and before > after and (step := (low0 - at_left) / (before - after)) < width:
            knots.append((a0 + step, low0 - before * step))
    return knots


def _check_convex(known: Knots) -> None:
    floats = [(float(a), float(b)) for a, b in known]
    for (a0, b0), (a1, b1), (a2, b2) in zip(floats[:-2], floats[1:-1], floats[2:], strict=True):
        chord = b0 + (b2 - b0) * ((a1 - a0) / (a2 - a0))
        if b1 > chord * (1 + _BEND) + 1e-14:
            message = f"expected a convex f, got f({a1:g}) = {b1:g} above the line between its neighbours, {chord:g}"
            raise ParameterError(f"{message}; its points as between='steps' hold for any f", name="curve", given=b1)


def below_function(function: Callable[[float], float]) -> Knots:
    """Knots below a convex, falling function, from its values at 1 200 levels."""
    tail = np.geomspace(1e-24, 0.5, 760)
    right = 1 - np.geomspace(1e-15, 0.5, 441)
    levels = sorted({0.0, *tail.tolist(), *right.tolist(), 1.0})
    known = []
    least = math.inf
    for a in levels:
        least = min(least, function(a))
        known.append((Fraction(a), Fraction(least)))
    return below_convex(known, slack=_ULP)
