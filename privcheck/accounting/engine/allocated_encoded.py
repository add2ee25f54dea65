"""Random allocation with correlated noise: a user takes part in the steps of one of b bins, each equally likely.

Lemma encoded-allocation: Let the output be C·G + Z, with Z of variance 1, and let a user of the bin S contribute
vectors of norm s at most to its steps; they may depend on all rows before the first that encodes them. Then P, the mean
over the bins of N(m_S, I), m_S = s·Σ_{t ∈ S}|C_t|, and Q = N(0, I) dominate the outputs with and without the user, in
both directions; equal contributions attain it where C ≥ 0. Source: for C ≥ 0 Choquette-Choo, Ganesh, Haque, Steinke &
Thakurta 2025. Proof: given the rows before, row r has Gaussian noise, and bin S moves it by u_S with ⟨u_S, u_T⟩ ≤
w_S·w_T, w_S ≥ 0 being entry r of m_S. Go from the last row to the first, the later ones having the pair's numbers
whatever the past. Given the past, a convex function of the likelihood ratio has a mean of the kind of [lemma
allocation-order], with weights that the past determines, and u_S in place of w_S only makes products smaller.

Lemma allocation-order: With r = Σᵢ pᵢ·e^{Xᵢ − E Xᵢ²/2}, pᵢ ≥ 0, X Gaussian with covariance K, and f convex, E f(r) does
not fall if H is added to K with xᵀHx ≥ 0 for all x ≥ 0: a matrix without negative entries, a positive semidefinite one,
or a sum of both. Source: Kahane 1986 for H without negative entries. Proof: along K + λH the derivative is ½ΣᵢⱼHᵢⱼ·E[
f″(r)YᵢYⱼ], Yᵢ ≥ 0 the terms of r: the mean of a quadratic form at vectors without negative entries.

δ(ε) is E(r − e^ε)₊ and E(1 − e^ε·r)₊, with p = 1/b and K = ⟨mᵢ, mⱼ⟩: an integral in as many dimensions as K has. Where
K is constant along a tree r is a cascade (`cascades`), and such K are above and below the given one:

Lemma allocation-tree: Let n·u bins, n groups of u alike, be laid out on the circle of all b bins, and K″ have any
constant for two that part at one level of the tree, and in the diagonal the largest Kᵢᵢ of all bins plus the largest
Σ_{j ≠ i}(Kᵢⱼ − K″ᵢⱼ)₊ of one, for any turn of the layout. Then the cascade of K″ is an upper bound. Proof: let an
attacker know by how much the layout is turned so that it has the bin (hockey-sticks are jointly convex). For the bins
that are left K″ − K is a matrix without negative entries plus a diagonally dominant one.

Lemma allocation-below: Let bins be cut into blocks of 2ᵏ, these into halves, and so on, and K″ have for two that part
at one level the least K of any as far apart or nearer than bins of such a part may be. The cascade of K″ is a lower
bound, bins without a block counting as 1. So is the law of the number ⟨x, Σmᵢ⟩. Proof: K″ ≤ K, with 0 in place of
whatever is left out; data processing.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from privcheck.accounting.engine.allocated import allocated_law, known_round
from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.cascades import Levels, Spread, cascade, shrink
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats
from privcheck.accounting.engine.profiles import (
    Content,
    Point,
    content,
    convex_profile,
    mirror,
    profile_atoms,
    profile_content,
)

_SAME: Final = 1e-12  # relative, of norms
_WEIGHTS: Final = (1.0, 2.0, 4.0)  # factors on K with which trees are compared: larger ones for small δ
_SIZES: Final = 8  # distances that are tried in a layout
_COPIES: Final = (1, 2, 3, 4, 6, 8, 12, 16)
_MOST_LEAVES: Final = 24  # of a group
_BEST: Final = 6  # layouts of which several are put together
_CONSTANTS: Final = 5  # of one level
_STEEP: Final = 200.0  # exponents at which comparisons are cut off
_LARGEST: Final = 60.0  # variance of a cascade's exponent
_LOUD: Final = 30.0  # … from which on the bin counts as known
_CUTS: Final = 8  # numbers of last bins that a lower bound may leave out
_ALONE: Final = 200  # losses at which it does, up to …
_FURTHEST: Final = 600.0
_CELLS: Final = 512  # of a projection
_REACH: Final = 9.0  # standard deviations of it
_ROUNDED: Final = 1e-9  # relative, of its masses in the cells
_DOWN: Final = 1 - 1e-12  # covers the roundings of sums of K


class Layout(NamedTuple):
    """Bins of a tree: `inner` of them `spacing` apart, `outer` such groups `pitch` apart, and all that every `period`.

    Attributes:
        spacing: Distance of bins in a group.
        inner: Number of bins in a group.
        pitch: Distance of groups.
        outer: Number of groups.
        period: Distance of these.
    """

    spacing: int
    inner: int
    pitch: int
    outer: int
    period: int


def encoded_allocation_law(largest: Floats, gram: Floats) -> AtomicLaw:
    """Law that dominates the outputs with and without a user who is in one of b ≥ 2 bins, drawn once.

    Args:
        largest: (b,) bounds on the inner products of the means of two bins, by their distance on the circle of bins.
        gram: (b, b) inner products that some user attains.
    """
    least = float(np.min(np.diag(gram)))
    if not np.any(largest[1:] > 0) and least >= float(largest[0]) * (1 - _SAME):
        return allocated_law(math.sqrt(float(largest[0])) * (1 + 4 * UNIT), len(largest))
    digests = (array.tobytes().hex() for array in (largest, gram))
    return _law(content((largest, gram), digests), 1)


def _law(known: Content, times: int) -> AtomicLaw:
    return AtomicLaw(
        build=_encoded,
        arguments=(known, times),
        bound=math.inf,
        symmetric=False,
        rounded=True,
        repeat=_repeat,
        below=_encoded_below,
    )


def _repeat(times: int, known: Content, before: int) -> AtomicLaw:
    """Law of n releases with the drawn bin, each with its own noise: inner products add up."""
    return _law(known, before * times)


def _encoded(known: Content, times: int, direction: Direction) -> Atoms:
    return profile_atoms(_above(known, times), direction)


def _encoded_below(known: Content, times: int, direction: Direction) -> Atoms:
    return profile_atoms(_below(known, times), direction)


@functools.lru_cache(maxsize=16)
def _above(known: Content, times: int) -> Content:
    """Knots of an upper bound on the profile of "remove", x ↦ E(r − x)₊."""
    largest = as_floats(known.data[0] * times)
    shift = math.sqrt(float(largest[0])) * (1 + 4 * UNIT)
    losses = np.geomspace(shift / 16, min(_FURTHEST, shift * (shift / 2 + 38)), _ALONE)
    points = [known_round(shift, loss) for loss in [0.0, *losses.tolist()]]
    points += mirror(points)
    if largest[0] > _LOUD:
        return profile_content(convex_profile(points))
    for levels in trees_above(largest):
        law = cascade(levels, up=True)
        x = as_floats(law.values[law.values > 0])
        for at, over, under in zip(*(y.tolist() for y in (x, law.excesses(x), law.shortfalls(x))), strict=True):
            points.append((Fraction(at), Fraction(over) if at >= 1 else 1 - Fraction(at) + Fraction(under)))
    return profile_content(convex_profile(points))


@functools.lru_cache(maxsize=16)
def _below(known: Content, times: int) -> Content:
    """Knots of a lower bound on the profile of "remove"."""
    gram = as_floats(known.data[1] * times)
    if float(np.max(np.diag(gram))) > _LOUD:  # nothing is known
        return profile_content([(Fraction(1), Fraction(0))])
    laws = [shrink(cascade(levels, up=False), share) for levels, share in trees_below(gram)]
    return profile_content(_largest_below([*laws, projection(gram)]))


def trees_above(largest: Floats) -> list[Levels]:
    """Trees with a K″ as in [lemma allocation-tree], chosen for a small variance of r.

    Args:
        largest: (b,) bounds on the inner products of the means of two bins, by their distance on the circle.
    """
    b = len(largest)
    around = np.minimum(np.arange(b), b - np.arange(b))
    far = max(1, int(around[largest > 0].max(initial=1)))
    sizes = sorted({*np.geomspace(1, far, _SIZES).astype(int).tolist(), far + 1})
    scored = dict[Layout, list[tuple[float, Levels]]]()

    def look(layout: Layout) -> None:
        if layout.period <= b and layout not in scored:
            scored[layout] = _best(largest, layout)

    for spacing, inner, gap in itertools.product(sizes, _COPIES, sizes):
        if gap >= spacing and (inner > 1 or spacing == 1):
            pitch = (inner - 1) * spacing + gap
            look(Layout(spacing, inner, pitch, 1, pitch))
    for k in range(len(_WEIGHTS)):
        groups = [layout for layout in scored if layout.outer == 1 and layout.inner > 1]
        for one in sorted(groups, key=lambda layout: scored[layout][k][0])[:_BEST]:
            for outer, between, gap in itertools.product((2, 3, 4), sizes, sizes):
                if one.spacing <= between <= gap and outer * one.inner <= _MOST_LEAVES:
                    span = (one.inner - 1) * one.spacing
                    period = (outer - 1) * (span + between) + span + gap
                    look(Layout(one.spacing, one.inner, span + between, outer, period))
    chosen = [min((score[k] for score in scored.values()), key=lambda each: each[0])[1] for k in range(len(_WEIGHTS))]
    return list(dict.fromkeys(chosen))


def _best(largest: Floats, layout: Layout) -> list[tuple[float, Levels]]:
    """The best constants of a layout with their variance of r, for each weight."""
    b = len(largest)
    spacing, inner, pitch, outer, period = layout
    count = b // period
    place = np.add.outer(np.arange(outer) * pitch, np.arange(inner) * spacing).ravel()
    group, leaves = np.repeat(np.arange(outer), inner), outer * inner
    own = largest[np.subtract.outer(place, place) % b]
    near = np.equal.outer(group, group) & ~np.eye(leaves, dtype=bool)
    wide = np.not_equal.outer(group, group)
    others = np.add.outer(np.arange(1, count) * period, place).ravel()
    across = largest[np.subtract.outer(others, place).T % b]
    across = across[:, (across > 0).any(axis=0)]
    # constants, ascending, and for each and every bin the sum of what is above it
    near_c, wide_c, across_c = (_constants(x) for x in (own[near], own[wide], across.ravel()))
    near_r = (np.maximum(own - near_c[:, None, None], 0.0) * near).sum(axis=2)
    wide_r = (np.maximum(own - wide_c[:, None, None], 0.0) * wide).sum(axis=2)
    across_r = np.maximum(across - across_c[:, None, None], 0.0).sum(axis=2)
    rest = (near_r[:, None, None] + wide_r[None, :, None] + across_r[None, None]).max(axis=3)
    leaf = (largest[0] + rest) / _DOWN
    c0 = np.broadcast_to(across_c[None, None, :], leaf.shape)
    c2 = np.broadcast_to(wide_c[None, :, None], leaf.shape) if outer > 1 else c0
    c1 = np.broadcast_to(near_c[:, None, None], leaf.shape) if inner > 1 else leaf
    valid = (c0 <= c2) & (c2 <= c1) & (c1 <= leaf) & (leaf <= _LARGEST)
    steps = ((leaf - c1, inner), (c1 - c2, outer), (c2 - c0, count), (c0, 1))
    found = list[tuple[float, Levels]]()
    for weight in _WEIGHTS:
        moment = np.where(valid, _variance(steps, weight), np.inf)
        at = np.unravel_index(int(np.argmin(moment)), moment.shape)
        found.append((float(moment[at]), _levels((float(v[at]), n) for v, n in steps)))
    return found


def _constants(values: Floats) -> Floats:
    """A few constants for pairs with these products, 0 among them."""
    few = np.quantile(values, np.linspace(0, 1, _CONSTANTS)) if values.size else np.zeros(1)
    return as_floats(np.unique(np.append(0.0, few)))


def _variance(steps: Iterable[tuple[Floats, int]], weight: float) -> Floats:
    """E(r − 1)² of a cascade with a weight on all variances."""
    moment = np.zeros(1)
    for variance, copies in steps:
        grown = np.expm1(np.clip(weight * variance, 0.0, _STEEP))
        moment = (grown * (1 + moment) + moment) / copies
    return as_floats(moment)


def _levels(pairs: Iterable[tuple[float, int]]) -> Levels:
    return tuple((max(v, 0.0), n) for v, n in pairs if v > 0 or n > 1)


def trees_below(gram: Floats) -> list[tuple[Levels, float]]:
    """Trees with a K″ as in [lemma allocation-below], each with the share of the bins in it.

    Args:
        gram: (b, b) inner products of the bins' means.
    """
    b = len(gram)
    tried = list[tuple[Levels, float]]()
    for left_out in sorted({0, *np.geomspace(1, max(b / 2, 1), _CUTS).astype(int).tolist()}):
        kept = b - left_out
        if kept < 2:
            continue
        least = np.minimum.accumulate([np.diagonal(gram, d)[: kept - d].min() for d in range(kept)]) * _DOWN
        for depth in range(kept.bit_length()):
            joined = [float(least[(1 << k) - 1]) for k in range(depth + 1)]  # of bins in a block of 2^k
            count = kept >> depth
            rest = float(least[-1]) if count > 1 else joined[-1]
            pairs = [*((x - y, 2) for x, y in itertools.pairwise(joined)), (joined[-1] - rest, count), (rest, 1)]
            tried.append((_levels(pairs), (count << depth) / b))

    def spread(one: tuple[Levels, float], weight: float) -> float:
        return one[1] ** 2 * float(_variance([(np.array(v), n) for v, n in one[0]], weight)[0])

    return list(dict.fromkeys(max(tried, key=lambda one: spread(one, weight)) for weight in _WEIGHTS))


def projection(gram: Floats) -> Spread:
    """Measure below the likelihood ratio of ⟨x, Σmᵢ⟩: the mean of N(sᵢ, 1) against N(0, 1), merged to cells."""
    from scipy.special import ndtr

    rows = gram.sum(axis=1)
    shifts = rows / math.sqrt(float(rows.sum()))
    edges = np.linspace(-_REACH, _REACH + float(shifts.max()), _CELLS + 1)

    def masses(centre: float) -> Floats:
        y = edges - centre
        lower, higher = ndtr(y), ndtr(-y)
        return as_floats(np.where(y[:-1] > 0, higher[:-1] - higher[1:], lower[1:] - lower[:-1]))

    q, p = masses(0.0), np.mean([masses(s) for s in shifts.tolist()], axis=0)
    order = np.argsort(p / q)
    values, kept = as_floats((p / q)[order]), as_floats(q[order] * (1 - _ROUNDED))
    return Spread(values=values, masses=kept, up=False, off=_ROUNDED)


def _largest_below(laws: list[Spread]) -> list[Point]:
    """Knots of a function below the profile: the largest of the laws' bounds, 1 − x + E(x − r)₊ up to 1, E(r − x)₊ on.

    All are linear between the laws' values, moved by their errors.
    """
    moved = [(law.values * (1 + law.off), law.values * (1 - law.off)) for law in laws]
    low = as_floats(np.unique(np.concatenate([[1.0], *(up[(up > 0) & (up < 1)] for up, _ in moved)])))
    high = as_floats(np.unique(np.concatenate([[1.0], *(down[down > 1] for _, down in moved)])))
    left = [(x, 1 - x + y) for x, y in _lead(low, np.stack([law.shortfalls(low) for law in laws]))]
    right = _lead(high, np.stack([law.excesses(high) for law in laws]))
    return convex_profile([*left[:-1], min(left[-1], right[0]), *right[1:]])


def _lead(x: Floats, curves: Floats) -> list[Point]:
    """Points of the largest of (k, m) piecewise linear curves, those where another one leads among them."""
    places, leads = [Fraction(at) for at in x.tolist()], curves.argmax(axis=0).tolist()
    points = list[Point]()
    for i, (at, one) in enumerate(zip(places, leads, strict=True)):
        height = Fraction(float(curves[one, i]))
        points.append((at, height))
        if i + 1 < len(places) and (two := leads[i + 1]) != one:
            end = Fraction(float(curves[one, i + 1]))
            gap, other = height - Fraction(float(curves[two, i])), Fraction(float(curves[two, i + 1])) - end
            if gap > 0 and other > 0:
                share = gap / (gap + other)
                points.append((at + share * (places[i + 1] - at), height + share * (end - height)))
    return points
