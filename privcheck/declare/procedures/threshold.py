"""Probabilities of the answers of a noisy threshold, by an integral over the threshold's noise.

Given the threshold at z, queries are above or below it independently of each other, so the probability of a pattern of
answers is one integral of a product of Laplace tails. The logarithm of the integrand is concave in z and analytic
between few points: Gauss–Legendre quadrature between them is exact up to rounding. A logarithm of size l is a sum of
terms of one sign, with an error of at most 2⁻⁵¹·l + 10⁻¹³: less than the margin that
`privcheck.verification.outcome_loss` subtracts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array

_NODES: Final = 16  # of a panel on which no integrand changes by more than a few e-folds: an error below 1e-16
_FOLDS: Final = 4.0  # e-folds by which a pattern changes at most from one node's panel to the next
_X, _W = np.polynomial.legendre.leggauss(_NODES)
_FAR: Final = 60.0  # scales from a point beyond which a Laplace tail is nothing
_DROP: Final = 50  # e-folds below its largest value at which a concave integrand is left off: below 1e-21 of it
_HALVINGS: Final = 80

_Concave = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyThreshold:
    """A threshold at 0 with Laplace noise, compared with queries that have fresh Laplace noise.

    Attributes:
        threshold_scale: Scale of the noise on the threshold.
        query_scale: Scale of the noise on every query; 0 for queries without noise.
    """

    threshold_scale: float
    query_scale: float

    def log_counts(self, levels: tuple[float, float], counts: NDArray[np.int64]) -> Array:
        """Compute ln P of patterns of answers to queries of two values, for a small number of queries each.

        Args:
            levels: The two values.
            counts: (m, 4) numbers of queries of the first value below and above, and of the second value below and
                above.
        """
        z, weights = self.nodes(levels, int(counts.sum(axis=1).max()))
        tails = np.stack([sign * (z - level) / self.query_scale for level in levels for sign in (1, -1)])
        exponents = counts.astype(np.float64) @ log_cdf(tails) + weights
        return log_sum(exponents)

    def log_runs(self, levels: Sequence[float]) -> tuple[Array, Array]:
        """Compute ln P of which query is the first above a threshold drawn before query i.

        Args:
            levels: (m,) the queries.

        Returns:
            (m, m) ln P that j is the first query above, from query i on (−∞ for j < i), and (m + 1,) ln P that none is,
                from i on.
        """
        size = len(levels)
        if not self.query_scale:
            cut = [
                [self.log_between(levels[i:j], levels[j]) if j >= i else -math.inf for j in range(size)]
                for i in range(size)
            ]
            return np.array(cut), np.array([self.log_between(levels[i:], math.inf) for i in range(size + 1)])
        z, weights = self.nodes(levels, size)
        below = log_cdf((z - np.array(levels)[:, np.newaxis]) / self.query_scale)
        above = log_cdf((np.array(levels)[:, np.newaxis] - z) / self.query_scale)
        sums = np.concatenate([np.zeros((1, z.size)), np.cumsum(below, axis=0)])
        first = np.full((size, size), -np.inf)
        for i in range(size):
            first[i, i:] = log_sum(sums[i:-1] - sums[i] + above[i:] + weights)
        return first, log_sum(sums[-1] - sums + weights)

    def log_between(self, below: Sequence[float], above: float) -> float:
        """Compute ln P that the queries `below`, without noise, are below one threshold, and the lowest other above."""
        low = max(below, default=-math.inf) / self.threshold_scale
        high = above / self.threshold_scale
        return float(_log_interval(np.array([low]), np.array([high]), np.array([high - low]))[0])

    def log_values(self, level: float, edges: Sequence[float], counts: NDArray[np.int64]) -> Array:
        """Compute ln P of patterns of answers to queries of one value, where the noisy values above are released.

        Args:
            level: Value of the queries.
            edges: Edges of k intervals of noisy values, ascending, from −∞ to ∞.
            counts: (m, 1 + k) number of queries below, and number above with a noisy value in each interval.
        """
        finite = [edge for edge in edges if math.isfinite(edge)]
        z, weights = self.nodes((level,), int(counts.sum(axis=1).max()), ends=finite)
        tails = [log_cdf((z - level) / self.query_scale)]
        for low, high in itertools.pairwise(edges):
            start, end = np.maximum(z, low), np.full(z.shape, high)
            scaled = (x / self.query_scale for x in (start - level, end - level, end - start))
            tails.append(_log_interval(*scaled))
        finite_tails = np.maximum(np.stack(tails), -1e300)  # so that 0 times what cannot happen is 0
        distinct, places = np.unique(counts, axis=0, return_inverse=True)
        logs: Array = log_sum(distinct.astype(np.float64) @ finite_tails + weights)[places.ravel()]
        return logs

    def log_pattern(self, groups: Sequence[tuple[float, int, int]]) -> float:
        """Compute ln P of one pattern of answers, for any number of queries and any probability.

        Args:
            groups: (value, number of queries of that value below, number above).
        """
        return self.log_mixed_pattern([(level, self.query_scale, below, above) for level, below, above in groups])

    def log_mixed_pattern(self, groups: Sequence[tuple[float, float, int, int]]) -> float:
        """As `log_pattern`, for queries with noise of several scales.

        Args:
            groups: (value, scale of the noise, number of queries of that value below, number above).
        """
        points = np.array([0.0, *(level for level, _, _, _ in groups)])
        largest = max(self.threshold_scale, *(scale for _, scale, _, _ in groups))

        def exponent(z: Array) -> Array:
            total: Array = -np.abs(z) / self.threshold_scale
            for level, scale, below, above in groups:
                t = (z - level) / scale
                total = total + below * log_cdf(t) + above * log_cdf(-t)
            return total

        reach = _FAR * largest * (1 + sum(b + a for _, _, b, a in groups))
        top = _find_top(exponent, points.min() - reach, points.max() + reach)
        highest = float(exponent(np.array([top]))[0])
        drops = np.arange(1.0, _DROP + 1)
        limits = (points.min() - 2 * reach, points.max() + 2 * reach)
        left, right = (_find_levels(exponent, top, limit, highest - drops) for limit in limits)
        scales = np.array([self.threshold_scale, *(scale for _, scale, _, _ in groups)])
        near = (points[:, np.newaxis] + np.outer(scales, np.arange(-_FAR, _FAR + 1)).ravel()).ravel()
        edges = np.concatenate([left, [top], right, points, near])
        z, log_weights = _panels(np.unique(np.clip(edges, left.min(), right.max())))
        return float(log_sum((exponent(z) + log_weights)[np.newaxis])[0]) - math.log(2 * self.threshold_scale)

    def nodes(self, levels: Sequence[float], queries: int, ends: Sequence[float] = ()) -> tuple[Array, Array]:
        """Nodes with ln of weight times density, spaced so that no pattern changes by much between panels.

        Args:
            levels: Values of the queries.
            queries: Largest number of tails that are multiplied.
            ends: Bounds that a pattern may put on the threshold; beyond them the integrand may fall as fast as the
                density does from 0.
        """
        first, second = self.threshold_scale, self.query_scale
        rough = first * min(1.0, _FOLDS / (1 + queries * first / second)) if second >= first else first
        fine = second * min(1.0, _FOLDS / queries)
        kinks = np.array([0.0, *levels, *ends])
        edges = [kinks, _near([0.0, *ends], rough, _FAR * first), _near([*levels, *ends], fine, _FAR * second)]
        z, log_weights = _panels(np.unique(np.concatenate(edges)))
        return z, log_weights - np.abs(z) / first - math.log(2 * first)


def log_cdf(t: Array) -> Array:
    """Compute ln P(X ≤ t) for Laplace noise of scale 1."""
    half = np.exp(-np.abs(t)) / 2
    result: Array = np.where(t < 0, -np.abs(t) - math.log(2), np.log1p(-half))
    return result


def _log_interval(low: Array, high: Array, width: Array) -> Array:
    """Compute ln P(low < X ≤ high) for Laplace noise of scale 1, from the tail that contains it.

    The width is a separate argument, because the difference of two ends far from 0 and close together is inexact.
    """
    wide = width > 0
    low, high, width = np.where(wide, low, 0.0), np.where(wide, high, 1.0), np.where(wide, width, 1.0)
    left = high <= 0
    near = np.where(left, -high, np.maximum(low, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = -near - math.log(2) + np.log(-np.expm1(-width))
        across = np.log1p(-np.exp(np.minimum(low, 0.0)) / 2 - np.exp(-np.maximum(high, 0.0)) / 2)
    result: Array = np.where(wide, np.where((low < 0) & ~left, across, tail), -np.inf)
    return result


def _near(points: Sequence[float], step: float, reach: float) -> Array:
    """Multiples of `step` within `reach` of any of the points, each once."""
    count = math.ceil(reach / step)
    multiples = np.rint(np.array(points) / step)[:, np.newaxis] + np.arange(-count, count + 1, dtype=np.float64)
    found: Array = np.unique(multiples) * step
    return found


def _panels(edges: Array) -> tuple[Array, Array]:
    """Nodes between the edges and the logarithms of their weights."""
    half = np.diff(edges) / 2
    kept = half > 0
    half, middle = half[kept], (edges[:-1] + np.diff(edges) / 2)[kept]
    z: Array = (middle[:, np.newaxis] + half[:, np.newaxis] * _X).ravel()
    return z, np.log((half[:, np.newaxis] * _W).ravel())


def _find_top(of: _Concave, low: float, high: float) -> float:
    """Approximate argument of the maximum of a concave function."""
    for _ in range(_HALVINGS):
        grid = np.linspace(low, high, 9)
        best = int(of(grid).argmax())
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 8)])
    return (low + high) / 2


def _find_levels(of: _Concave, top: float, limit: float, levels: Array) -> Array:
    """Points between the top and `limit` where a concave function falls to the levels; `limit` if it does not."""
    near, far = np.full(levels.shape, top), np.full(levels.shape, limit)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        above = of(middle) > levels
        near, far = np.where(above, middle, near), np.where(above, far, middle)
    return far


def log_sum(rows: Array) -> Array:
    """Compute ln of the sum of the exponentials of each row, the last axis."""
    top = rows.max(axis=-1)
    result: Array = top + np.log(np.exp(rows - top[..., np.newaxis]).sum(axis=-1))
    return result
