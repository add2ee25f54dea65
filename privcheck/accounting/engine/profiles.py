"""Dominating pairs of privacy profiles known at points: exact arithmetic on rational numbers.

Lemma profile-pair: The profile of a pair, h(x) = sup_S P(S) − xQ(S), x = e^ε > 0, is convex and falls, h(0) = 1, h(x) ≥
(1 − x)₊, and every such h is the profile of one law of the loss. If h bounds a mechanism's profile at every x > 0, that
pair dominates it, in adaptive compositions too. Source: Zhu, Dong & Wang 2022, Proposition 8 and Theorem 10.

For a piecewise linear h it is the law with Q-mass h′(x+) − h′(x−) and P-mass x times that at loss ln x, and P-mass h(∞)
at ∞. Bounds at points on a convex and falling function imply exactly the lower convex hull of these points and (0, 1),
level to the right.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, tidy
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats

Point = tuple[Fraction, Fraction]
_LEAST_LOSS: Final = 1e-300  # a loss below all floats is no 0
_LARGEST_EXPONENT: Final = 600.0  # of floats
_ROUNDED: Final = 2.0**-50  # what is missing of a total below it is rounding, and scaled up


@dataclass(frozen=True, slots=True)
class Content:
    """Many numbers as one argument of a law: equal where their digests are equal.

    Attributes:
        digest: Digest of the numbers, used for comparison.
        data: The numbers.
    """

    digest: str
    data: Any = field(compare=False, repr=False)


def content(data: Any, *parts: Iterable[object]) -> Content:
    """Wrap data with a digest of their parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(list(part)).encode())
    return Content(digest=digest.hexdigest()[:16], data=data)


def exponential_up(epsilon: float) -> Fraction:
    """Rational number at e^ε or a few ulps above it; some hundred for each 600 of an ε beyond the floats' range."""
    parts = max(1, math.ceil(abs(epsilon) / _LARGEST_EXPONENT))
    off = 4 if parts == 1 else 4 + int(_LARGEST_EXPONENT)  # where the exponent was rounded as well
    return (Fraction(math.exp(epsilon / parts)) * (1 + Fraction(off, 1 << 53))) ** parts if epsilon else Fraction(1)


def mirror(points: Iterable[Point]) -> list[Point]:
    """Bounds on the profile of (Q, P) from bounds on that of (P, Q): h′(1/x) = 1 − (1 − h(x))/x."""
    return [(1 / x, 1 - (1 - h) / x) for x, h in points]


def convex_profile(points: Iterable[Point]) -> list[Point]:
    """Knots x > 0 of the lower convex hull of the points and (0, 1), up to its least value."""
    kept: list[Point] = [(Fraction(0), Fraction(1))]
    for x, h in sorted(points):
        if h >= kept[-1][1]:
            continue
        while len(kept) >= 2:
            (x0, h0), (x1, h1) = kept[-2], kept[-1]
            if (h1 - h0) * (x - x0) < (h - h0) * (x1 - x0):
                break
            kept.pop()
        if x == kept[-1][0]:
            kept.pop()
        kept.append((x, h))
    return kept[1:]


def tangent_profile(known: list[tuple[Fraction, Fraction, Fraction]]) -> list[Point]:
    """Knots of a convex function below every convex profile with values between bounds at some x.

    Between two x a convex function lies above the chords of its neighbours on either side, extended; before the first x
    above 1 − x, and after the last above 0.

    Args:
        known: x, lower bound and upper bound, by increasing x.
    """
    start = (Fraction(0), Fraction(1), Fraction(1))
    # what holds to the right of each x, and to the left of the next: a slope and a point
    right = [(-Fraction(1), start)]
    right += [((b[1] - a[2]) / (b[0] - a[0]), b) for a, b in itertools.pairwise([start, *known[:-1]])]
    left = [((b[2] - a[1]) / (b[0] - a[0]), a) for a, b in itertools.pairwise(known)]
    vertices = list[Point]()
    for (rise, (x0, y0, _)), (other, (x1, y1, _)) in zip(right, left, strict=False):
        x = (y0 - y1 + other * x1 - rise * x0) / (other - rise) if rise < other else x0
        vertices += [(x0, y0), (x, y0 + rise * (x - x0))] if x0 < x < x1 else [(x0, y1 + other * (x0 - x1))]
    rise, (x0, y0, _) = right[-1]
    return convex_profile([*vertices, (x0, y0), (x0 - y0 / rise, Fraction(0))])


def profile_content(knots: list[Point]) -> Content:
    """Wrap knots with their digest."""
    return content(knots, (n for point in knots for x in point for n in x.as_integer_ratio()))


def profile_law(points: list[Point], opposite: list[Point] | None = None) -> AtomicLaw:
    """Build the law of a profile that is known at points.

    Args:
        points: (e^ε, bound on δ) of "remove", and of "add" if `opposite` is None.
        opposite: The points of "add".
    """
    knots = convex_profile([*points, *mirror(points if opposite is None else opposite)])
    arguments = (profile_content(knots),)
    there, back = profile_atoms(*arguments, "remove"), profile_atoms(*arguments, "add")
    return AtomicLaw(
        build=profile_atoms, arguments=arguments, bound=_largest([there, back]), symmetric=opposite is None
    )


def profile_atoms(knots: Content, direction: Direction) -> Atoms:
    """Loss of the pair with the profile of these knots."""
    points: list[Point] = knots.data if direction == "remove" else convex_profile(mirror(knots.data))
    if not points:
        return Atoms(losses=np.zeros(1), logs=np.array([-np.inf]), infinite=1.0)
    full = [(Fraction(0), Fraction(1)), *points]
    slopes = [(h1 - h0) / (x1 - x0) for (x0, h0), (x1, h1) in itertools.pairwise(full)]
    masses = [
        x * (after - before) for (x, _), before, after in zip(points, slopes, [*slopes[1:], Fraction(0)], strict=True)
    ]
    losses = np.array([_log_up(x) for x, _ in points])
    logs = np.array([min(0.0, _log_up(m)) for m in masses])
    return tidy(losses, logs, _float_up(points[-1][1]))


def _log_up(value: Fraction) -> float:
    """Logarithm of a positive number, rounded up."""
    if 0.5 < value < 2:
        log_value = math.log1p(float(value - 1))
        return log_value + 4 * UNIT * abs(log_value)
    if not 1e-300 < value < 1e300:  # the difference of two large logarithms
        top, bottom = math.log(value.numerator), math.log(value.denominator)
        return top - bottom + 4 * UNIT * (top + bottom)
    log_value = math.log(float(value))
    return log_value + UNIT * (2 + 4 * abs(log_value))


def _float_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def pair_law(p: Floats, q: Floats, exactly: Mapping[int, tuple[Fraction, Fraction]] | None = None) -> AtomicLaw:
    """Build the law of two mass functions on the same outcomes: P has the user.

    Args:
        p: (n,) masses.
        q: (n,) masses.
        exactly: Both exact masses of the outcomes with a mass that is not a float.
    """
    pairs = dict(exactly or {})
    both = np.stack([p, q], axis=1)
    swapped = both[:, ::-1]
    symmetric = bool(np.array_equal(both[np.lexsort(both.T)], swapped[np.lexsort(swapped.T)]))
    symmetric = symmetric and sorted(pairs.values()) == sorted((b, a) for a, b in pairs.values())
    digest = hashlib.sha256(np.ascontiguousarray(both).tobytes())
    for index, (a, b) in sorted(pairs.items()):
        digest.update(f" {index}: {a} {b}".encode())
    arguments = (Content(digest=digest.hexdigest()[:16], data=(p, q, pairs)),)
    bound = _largest([_pair_atoms(*arguments, "remove"), _pair_atoms(*arguments, "add")])
    return AtomicLaw(build=_pair_atoms, arguments=arguments, bound=bound, symmetric=symmetric)


def _pair_atoms(masses: Content, direction: Direction) -> Atoms:
    p, q, pairs = masses.data
    if direction == "add":
        p, q, pairs = q, p, {index: (b, a) for index, (a, b) in pairs.items()}
    missing, excess = total_defect(p), max(0.0, -total_defect(q))
    both = (p > 0) & (q > 0)
    losses = np.zeros(len(p))
    losses[both] = _log_ratios_up(p[both], q[both])
    for index, (a, b) in pairs.items():
        if both[index]:
            losses[index] = max(_log_up(a / b), _LEAST_LOSS if a > b else -math.inf)
    infinite = math.fsum(p[(p > 0) & (q == 0)].tolist())
    scaled = math.log1p(missing) if 0 < missing <= _ROUNDED else 0.0
    infinite += missing if missing > _ROUNDED else 0.0
    if not both.any():
        return Atoms(losses=np.zeros(1), logs=np.array([-np.inf]), infinite=1.0)
    return tidy(as_floats(losses[both] + math.log1p(excess)), as_floats(np.log(p[both]) + scaled), min(1.0, infinite))


def _log_ratios_up(over: Floats, under: Floats) -> Floats:
    """Logarithm of quotients of positive floats, rounded up.

    The difference of two logarithms errs in proportion to their size, for masses near 1e-300 by 1e-13 for a loss of 1:
    it is used only where the quotient leaves the range in which floats have all their digits, and the loss is large as
    well.
    """
    with np.errstate(over="ignore", under="ignore"):
        quotients = over / under
    normal = (quotients > 1e-300) & (quotients < 1e300)
    near = normal & (quotients > 0.5) & (quotients < 2)  # there the difference is exact
    far = ~normal
    losses = np.empty(len(over))
    losses[normal] = np.log(quotients[normal])
    losses[near] = np.log1p((over[near] - under[near]) / under[near])
    losses[far] = np.log(over[far]) - np.log(under[far])
    return as_floats(losses + 8 * UNIT * np.abs(losses))


def total_defect(masses: Floats) -> float:
    """1 − Σ masses, correctly rounded."""
    return math.fsum([1.0, *(-masses).tolist()])


def _largest(both: list[Atoms]) -> float:
    return math.inf if any(a.infinite > 0 for a in both) else max(float(a.losses[-1]) for a in both)
