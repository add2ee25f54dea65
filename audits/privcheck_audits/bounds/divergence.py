"""Lower bound on ρ of any mechanism by the Kullback–Leibler divergence of a clipped score.

ρ-zCDP bounds every Rényi divergence D_a ≤ ρ·a (Bun & Steinke 2016, Definition 1.1), so KL ≤ ρ in both directions.

Lemma donsker-varadhan: For any bounded g, KL(P‖Q) ≥ E_P g + 1 − E_Q e^g. Source: Donsker & Varadhan 1983. Proof: it is
at least E_P g − ln E_Q e^g, and ln m ≤ m − 1.

The last is the mean of one bounded variable of a run on D and a run on D′, so one empirical Bernstein bound suffices,
and nothing is lost if g is the log-likelihood ratio, for which E_Q e^g = 1.

The score, clip, scale and direction are fixed in advance, and α is divided among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import AuditError, ParameterError
from privcheck_audits.bounds.tails import OUT

Direction = Literal["first", "second", "both"]

_STEPS: Final = 3.0  # standard deviations of the claimed ratio that the clip lets through
_HALVINGS: Final = 80
_LARGEST_CLIP: Final = 4.5  # nats; the range of e^g is what the bound pays for


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergencePlan:
    """Attempts at a divergence bound: the score times a scale, clipped, in a direction.

    Attributes:
        clip: Largest absolute value of g, in nats.
        scales: Factors on the score, one per attempt.
        directions: KL(D‖D′) ("first"), KL(D′‖D) ("second"), or the mean of both.
        weights: Shares of α, adding up to at most 1.

    Raises:
        ParameterError: Lengths differ, or a number is out of range.
    """

    clip: float
    scales: tuple[float, ...]
    directions: tuple[Direction, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = {len(self.scales), len(self.directions), len(self.weights)}
        good = all(s > 0 and math.isfinite(s) for s in self.scales) and all(w > 0 for w in self.weights)
        if not (good and len(lengths) == 1 and self.scales and 0 < self.clip <= 50 and sum(self.weights) <= 1 + 1e-12):
            raise ParameterError(f"expected a clip in (0, 50], positive scales and weights adding up to 1, got {self}")

    @property
    def width(self) -> float:
        """Length of an interval that contains every value of the bounded variable."""
        return 2 * self.clip + 2 * math.sinh(self.clip)


def divergence_plan(rho: float) -> DivergencePlan:
    """Plan for a claim of ρ-zCDP: both directions at once with half of α, and five other attempts.

    The clip suits a Gaussian with that ρ, of which the log-ratio has mean ±ρ and variance 2ρ. Larger scales serve
    mechanisms whose true ratio is a multiple of the declared one.

    Raises:
        ParameterError: ρ is not positive and finite.
    """
    if not 0 < rho < math.inf:
        raise ParameterError(f"expected a positive, finite rho, got {rho!r}", name="rho", given=rho)
    return DivergencePlan(
        clip=min(_LARGEST_CLIP, rho + _STEPS * math.sqrt(2 * rho)),
        scales=(1.0, 1.0, 1.0, 2.0, 4.0, 0.5),
        directions=("both", "first", "second", "both", "both", "both"),
        weights=(0.5, 0.1, 0.1, 0.1, 0.1, 0.1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Sums over pairs of runs, one on D and one on D′, of one block or of all blocks.

    Attributes:
        pairs: Number of pairs.
        sums: Sum of each attempt's values.
        squares: Sum of their squares.
    """

    pairs: int
    sums: tuple[float, ...]
    squares: tuple[float, ...]

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            pairs=self.pairs + other.pairs,
            sums=tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            squares=tuple(a + b for a, b in zip(self.squares, other.squares, strict=True)),
        )


def moments(score: NDArray[np.float64], secret: NDArray[np.bool_], plan: DivergencePlan) -> Moments:
    """Sum one block: the i-th run on D is paired with the i-th run on D′, and unpaired runs are left out.

    Which runs are paired depends on the hidden bits alone, so the pairs are independent and identically distributed.

    Args:
        score: (runs,) estimate of ln p(output | D) − ln p(output | D′).
        secret: (runs,) whether the run was on D.
        plan: The attempts.

    Raises:
        AuditError: A score is not finite.
    """
    if not np.isfinite(score).all():
        worst = int(np.argmin(np.isfinite(score)))
        raise AuditError(f"run {worst} of a block has the score {score[worst]}: expected a number", trial=worst, seed=0)
    first, second = score[secret], score[~secret]
    pairs = min(first.size, second.size)
    values = [
        _values(np.clip(scale * first[:pairs], -plan.clip, plan.clip), np.clip(scale * second[:pairs], -plan.clip,
                plan.clip), direction)
        for scale, direction in zip(plan.scales, plan.directions, strict=True)
    ]  # fmt: skip
    return Moments(
        pairs=pairs,
        sums=tuple(float(v.sum()) for v in values),
        squares=tuple(float(v @ v) for v in values),
    )


def rho_at_least(counted: Moments, plan: DivergencePlan, *, alpha: float) -> float:
    """Largest lower bound on ρ among the attempts, rounded down; all hold jointly at confidence 1 − α.

    Empirical Bernstein (Maurer & Pontil 2009, Theorem 4), on values in an interval of length `plan.width`.

    Args:
        counted: The sums.
        plan: The attempts.
        alpha: One minus the confidence.

    Raises:
        ParameterError: α is not in (0, 1).
    """
    if not 0 < alpha < 1:
        raise ParameterError(f"expected alpha in (0, 1), got {alpha!r}", name="alpha", given=alpha)
    n = counted.pairs
    if n < 2:
        return 0.0
    best = 0.0
    for total, square, weight in zip(counted.sums, counted.squares, plan.weights, strict=True):
        mean, log = total / n, math.log(2 / (alpha * weight))
        spread = max(0.0, square / n - mean**2) + 1e-12 * (square / n)  # rounding of the difference
        deviation = math.sqrt(2 * spread * log / (n - 1)) + 7 * plan.width * log / (3 * (n - 1))
        best = max(best, mean - 1e-12 * (1 + abs(mean)) - deviation * OUT)
    return best


def pure_epsilon_at_least(divergence: float) -> float:
    """Least ε of pure DP that allows a KL divergence, rounded down.

    Lemma pure-divergence: The KL divergence of an ε-DP mechanism is at most ε·tanh(ε/2). Source: Kairouz, Oh &
    Viswanath 2015, Theorem 3.1. Proof: on a pair it is simulated by randomised response, whose divergence that is.

    No (ε, δ) with δ > 0 follows: δ allows any divergence.

    Args:
        divergence: A lower bound on KL, in nats.

    >>> round(pure_epsilon_at_least(0.1), 4)
    0.451
    """
    low, high = 0.0, 2.0 + 2 * max(0.0, divergence)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) * OUT < divergence else (low, middle)
    return low


def _values(first: NDArray[np.float64], second: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
    """Values g(X) + 1 − e^{g(Y)} for X on D and Y on D′, with the roles exchanged and −g, or the mean of the two."""
    forward: NDArray[np.float64] = first - np.expm1(second)
    if direction == "first":
        return forward
    backward: NDArray[np.float64] = -second - np.expm1(-first)
    return backward if direction == "second" else (forward + backward) / 2
