"""Probabilities of the answers of a threshold with Gaussian noise, by the trapezoidal rule with a proved error.

Given the threshold at z, queries are above or below it independently, so that a pattern of answers has the probability
∫ φ(z/s₁)/s₁ · Π Φ(±(z − qᵢ)/s₂) dz, one integral over the shared noise.

Lemma trapezoid-of-answers: With n queries, K = 1/s₁² + n/s₂² and step h = π/√(20K) the trapezoidal rule on all of ℝ is
exact up to a factor 1 ± 2e^{−40}/(1 − e^{−40}) < 1 ± 10⁻¹⁶, whatever the pattern. Proof: the integrand f is entire, and
|f(x + iy)| ≤ e^{Ky²/2} f(x), because |φ(u + iy)| = e^{y²/2}φ(u) and Φ(x + iy), as well as a difference of two values of
Φ on a horizontal line, is an integral of φ along that line. The rule errs by at most 2 sup_{|y| = d} ∫|f(x + iy)| dx /
(e^{2πd/h} − 1) (Trefethen & Weideman 2014, Theorem 5.1), with d = 2π/(hK) by 2e^{−40}/(1 − e^{−80})·∫f.

The rule is cut off at 25 s₁, beyond which the threshold is with probability below e^{−315}: of a probability above
e^{−270} nothing is missing; those below it are raised to it (`outcomes_of`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Outcomes
from privcheck.declare.procedures.threshold import log_sum
from privcheck.declare.statistics.base import Sensitivity
from privcheck.terms.symbols import Expr, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_REACH: Final = 25.0  # standard deviations of the threshold
_RARE: Final = -270.0  # ln of the least probability that is used
MOST_EPSILON: Final = 300.0  # at which pairs are chosen
_ROWS: Final = 256  # patterns that are summed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThreshold:
    """A threshold at 0 with Gaussian noise, compared with queries that have fresh Gaussian noise.

    Attributes:
        threshold_std: s₁, standard deviation of the noise on the threshold.
        query_std: s₂, standard deviation of the noise on every query.
    """

    threshold_std: float
    query_std: float

    def log_counts(self, levels: tuple[float, float], counts: NDArray[np.int64]) -> Array:
        """Compute ln P of patterns of answers to queries of two values.

        Args:
            levels: The two values.
            counts: (m, 4) numbers of queries of the first value below and above, and of the second value below and
                above.
        """
        z, weights = self._nodes(int(counts.sum(axis=1).max()))
        tails = np.stack([log_cdf(sign * (z - level) / self.query_std) for level in levels for sign in (1, -1)])
        return _log_sums(counts.astype(np.float64), tails, weights)

    def log_first(self, queries: Array, edges: Array, *, gap: bool) -> tuple[Array, float]:
        """Compute ln P of the index of the first query above, with the cell of its gap.

        Args:
            queries: (m,) values.
            edges: (k − 1,) inner edges, ascending and above 0, of the k cells of the noisy query less the noisy
                threshold; empty where only the index is seen.
            gap: Whether the gap is seen at all.

        Returns:
            (m, k) ln P, and ln P that no query is above.
        """
        z, weights = self._nodes(queries.size)
        levels, places = np.unique(queries, return_inverse=True)
        scaled = (z - levels[:, np.newaxis]) / self.query_std
        until = np.concatenate([np.zeros((1, z.size)), np.cumsum(log_cdf(scaled)[places], axis=0)])
        ends = np.concatenate([[0.0], edges, [math.inf]]) / self.query_std if gap else np.array([0.0, math.inf])
        cells = np.stack([log_interval(scaled + low, scaled + high) for low, high in itertools.pairwise(ends.tolist())])
        logs = log_sum(until[:-1] + cells[:, places] + weights)
        return np.ascontiguousarray(logs.T), float(log_sum(until[-1] + weights))

    def nodes_for(self, queries: int) -> int:
        """Number of nodes of the rule for patterns of at most `queries` answers."""
        return 2 * math.ceil(_REACH * self.threshold_std / self._step(queries)) + 1

    def _step(self, queries: int) -> float:
        return math.pi / math.sqrt(20 * (1 / self.threshold_std**2 + queries / self.query_std**2))

    def _nodes(self, queries: int) -> tuple[Array, Array]:
        """Nodes with ln of weight times density of the threshold, for patterns of at most `queries` answers."""
        step = self._step(queries)
        count = math.ceil(_REACH * self.threshold_std / step)
        z: Array = step * np.arange(-count, count + 1, dtype=np.float64)
        u = z / self.threshold_std
        weights: Array = math.log(step / self.threshold_std) - 0.5 * math.log(2 * math.pi) - u * u / 2
        return z, weights


def cost_of_all(what: str, count: Expr, moved: Expr, squared: Expr, *, monotone: bool, theorem: str) -> Cost:
    """Price as a post-processing of all noisy numbers, exact; the sharper price of the accountant is in `events`.

    Args:
        what: The noun for one number.
        count: m.
        moved: Δ of a user.
        squared: μ² of all of them together.
        monotone: Whether all change in one direction.
        theorem: Source of the price.
    """
    reason = f"each of {count} {what} moves by at most {moved}" + (", one way only" if monotone else "")
    return Cost(
        sensitivity=Sensitivity(l1=count * moved, l2=sqrt(count) * moved, linf=moved, reason=reason),
        charged=moved,
        rho=squared / 2,
        pure=None,
        mu_squared=None,
        dominating_mu_squared=squared,
        theorem=theorem,
    )


def epsilon_at(points: Mapping[float, float], delta: float, part: float) -> float:
    """Part of the least ε with a bound of at most δ, at most `MOST_EPSILON`: at which pairs are chosen."""
    return min(MOST_EPSILON, part * next((e for e, d in points.items() if d <= delta), max(points)))


def larger_delta(p: Array, q: Array, epsilon: float) -> float:
    """δ(ε) of two laws, the larger of both directions; approximate, to choose pairs by."""
    ratio = math.exp(epsilon)
    return max(float(np.maximum(a - ratio * b, 0).sum()) for a, b in ((p, q), (q, p)))


def events_of(points: Mapping[float, float]) -> tuple[Event, ...]:
    """Event of a curve known at points (ε, δ); empty without points, where no user changes anything."""
    from privcheck.accounting.events import non_private, privacy_profile

    if not points:
        return ()
    return (non_private(),) if min(points.values()) >= 1 else (privacy_profile(points.items()),)


def log_winner(ahead: float, first: int, second: int) -> Array:
    """Compute ln P that the largest of n + k noisy scores is one of the first n, and one of the other k.

    The winner's noise is shared by all comparisons: n∫φ(z)Φ(z)ⁿ⁻¹Φ(z + a)ᵏ dz, by `trapezoid-of-answers`.

    Args:
        ahead: a, by how many standard deviations of the noise the first scores are above the others.
        first: n.
        second: k.
    """
    step = math.pi / math.sqrt(20 * (first + second))
    z = step * np.arange(-math.ceil(_REACH / step), math.ceil(_REACH / step) + 1, dtype=np.float64)
    weights = math.log(step) - 0.5 * math.log(2 * math.pi) - z * z / 2
    own, up, down = log_cdf(z), log_cdf(z + ahead), log_cdf(z - ahead)
    rows = np.stack([(first - 1) * own + second * up, (second - 1) * own + first * down]) + weights
    logs: Array = log_sum(rows) + np.log([float(first), float(second)])
    return logs


def log_cdf(t: Array) -> Array:
    """Compute ln Φ(t)."""
    from scipy.special import log_ndtr

    result: Array = log_ndtr(t)
    return result


def log_interval(low: Array, high: Array) -> Array:
    """Compute ln(Φ(high) − Φ(low)), low < high, from the tail that contains the interval."""
    flip = low > 0
    first, second = np.where(flip, -high, low), np.where(flip, -low, high)
    upper, lower = log_cdf(second), log_cdf(first)
    with np.errstate(divide="ignore"):
        result: Array = upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))
    return result


def outcomes_of(log_p: Array, log_q: Array) -> Outcomes:
    """Laws of outcomes, with probabilities below e^{−270} raised to it.

    No loss grows by that: of p and q the one that is raised is at most the other, so that p′ − xq′ ≤ max(0, p − xq) for
    x ≥ 1.
    """
    return Outcomes(log_p=np.maximum(log_p, _RARE), log_q=np.maximum(log_q, _RARE))


def _log_sums(counts: Array, tails: Array, weights: Array) -> Array:
    parts = [
        log_sum(counts[start : start + _ROWS] @ np.maximum(tails, -1e300) + weights)
        for start in range(0, len(counts), _ROWS)
    ]
    return np.concatenate(parts)
