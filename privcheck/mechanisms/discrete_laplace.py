"""Discrete Laplace noise: Laplace noise on the integers, for statistics that are whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from privcheck.charges import Charge
from privcheck.fields import number
from privcheck.mechanisms.base import Array, Noise, positive_scale
from privcheck.statistics.base import Sensitivity, SparseDifference
from privcheck.symbols import Exact, Expr, exp, expression, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_UP: Final = 1 + 1e-12  # covers the roundings of a few dozen operations
_MOST_MOVED: Final = 500_000  # of one cell, up to which a law of its own is computed


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceNoise(Noise):
    """P(x) ∝ exp(−|x|/scale) on the integers, in every coordinate: the difference of two geometric numbers."""

    name: ClassVar[str] = "discrete laplace"
    whole: ClassVar[bool] = True
    rule: ClassVar[str] = "discrete Laplace mechanism"
    theorem: ClassVar[str] = "Ghosh, Roughgarden & Sundararajan 2009: ε = Δ₁/b on whole numbers"
    symbol: ClassVar[str] = "b"
    spread_words: ClassVar[str] = "scale b of the discrete Laplace noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Returns fresh noise of the shape, whole numbers as floats."""
        p = -math.expm1(-1 / self.scale)
        noise: Array = (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(np.float64)
        return noise

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Returns Σ (|x + Δ| − |x|)/b."""
        summed: Array = (np.abs(noise + change) - np.abs(noise)).sum(axis=-1) / self.scale
        return summed

    def separation(self, change: Array) -> tuple[float, float]:
        """Returns 0 and ‖Δ‖₁/b."""
        return 0.0, float(np.abs(change / self.scale).sum())

    def moved_law(self, change: int) -> tuple[Array, Array] | None:
        """Returns ln P of the outputs that are told apart where one coordinate is `change` and where it is 0.

        All outputs up to 0 have one loss, and all from `change` on: no tail is left out.

        Args:
            change: At least 1.
        """
        if change > _MOST_MOVED:
            return None
        inner = math.log(math.tanh(0.5 / self.scale))
        tail = -math.log1p(math.exp(-1 / self.scale))  # ln P(X ≤ 0)
        away = np.arange(1, change, dtype=np.float64) / self.scale
        far = tail - change / self.scale
        q = np.concatenate([[tail], inner - away, [far]])
        return q[::-1].copy(), q

    @property
    def std(self) -> float:
        """Returns 1/(√2 sinh(1/2b))."""
        return 1 / (math.sqrt(2) * math.sinh(0.5 / self.scale)) if self.scale > 1e-3 else 0.0

    def of_std(self, std: float) -> Self:
        """Returns noise of this standard deviation."""
        return replace(self, scale=0.5 / math.asinh(1 / (math.sqrt(2) * std)))

    def spread_cdf(self, x: Array) -> Array:
        """Returns the distribution function of the noise plus a uniform number in [−½, ½].

        P(X < k) = a^(1−k)/(1 + a) for whole k ≤ 0, a = e^(−1/b), and P(X = k) = (1 − a)/(1 + a)·a^|k|.
        """
        below = np.floor(0.5 - np.abs(x))  # of −|x|, by symmetry
        part = 0.5 - np.abs(x) - below
        a = math.exp(-1 / self.scale)
        left = np.exp((below - 1) / self.scale) / (1 + a) + part * (1 - a) / (1 + a) * np.exp(below / self.scale)
        distribution: Array = np.where(x > 0, 1 - left, left)
        return distribution

    def largest(self, numbers: int, failure: float) -> float:
        """Returns b·ln(2n/δ): P(|X| > t) ≤ 2e^(−t/b), over n draws."""
        return self.scale * math.log(2 * numbers / failure)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Returns Δ₁/Δ∞ scalar releases of a table whose cells move by 0 or ±Δ∞, else any (Δ₁/b)-DP mechanism."""
        from privcheck.accounting.events import discrete_laplace, pure

        if stepwise and cost.linf == int(cost.linf) and 0 < cost.linf <= _MOST_MOVED:
            count = max(1, math.ceil(cost.l1 / cost.linf))
            return (discrete_laplace(scale=self.scale, sensitivity=int(cost.linf), count=count),)
        return (pure(epsilon=cost.l1 / self.scale * (1 + 1e-15)),)

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Returns (Δ₁/b)·tanh(Δ∞/2b), Δ₁/b and NaN."""
        epsilon = cost.l1 / self.scale
        return epsilon * math.tanh(cost.linf / self.scale / 2), epsilon, math.nan

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Returns ‖Δ‖₁/b, or Σ (|Δ| − 2a(1 − a^|Δ|)/(1 − a²))/b with a = e^(−1/b), the Kullback–Leibler divergence."""
        if pure:
            return sum((k * c for c, k in changes), Fraction(0)) / spread
        b = float(spread)
        told = sum(k * _divergence(float(c), b) for c, k in changes)
        return Fraction(max(0.0, told * (2 - _UP)))

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Returns 1/b, or tanh(1/2b)/b."""
        return 1 / spread if pure else Fraction(math.tanh(0.5 / float(spread)) / float(spread) * _UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Independent noise P(x) ∝ exp(−|x|/b) on the integers in every coordinate of a statistic of whole numbers.

    Attributes:
        scale: b, exact.
    """

    scale: Expr

    law = DiscreteLaplaceNoise  # a ClassVar is not the protocol's property to every type checker

    def __init__(self, *, scale: Exact | Expr) -> None:
        object.__setattr__(self, "scale", number("scale, of DiscreteLaplace", scale))

    @property
    def words(self) -> str:
        """Returns the mechanism in words with its spread."""
        return f"discrete Laplace, scale b = {self.scale}"

    @property
    def latex(self) -> str:
        """Returns the noise's law as a formula."""
        return rf"\mathrm{{Lap}}_{{\mathbb{{Z}}}}\left({self.scale.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """Returns b."""
        return self.scale

    def with_spread(self, spread: Expr) -> DiscreteLaplace:
        """Returns the mechanism with another scale."""
        return replace(self, scale=spread)

    @property
    def std(self) -> Expr:
        """Returns √(2a)/(1 − a) with a = e^(−1/b)."""
        a = exp(-1 / self.scale)
        return sqrt(2 * a) / (1 - a)

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns it as it is: the noise is independent in every coordinate."""
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Returns it with every entry of a matrix for itself."""
        return difference.every_entry()

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Returns (Δ₁/b)·tanh(Δ∞/2b).

        A coordinate that moves by t is (t/b)-DP, which is (t/b)·tanh(t/2b)-zCDP; t·tanh(t/2b) over t rises, so that
        coordinates at Δ∞ are dearest. Exact where they move by 1: the law is then that of randomised response.
        """
        if sensitivity.l1 == expression(0):
            return expression(0)
        a = exp(-1 * sensitivity.linf / self.scale)
        return (sensitivity.l1 / self.scale * (1 - a) / (1 + a)).simplified()

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns Δ₁/b; exact for the worst pair."""
        return (sensitivity.l1 / self.scale).simplified()

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns None: not Gaussian."""
        return None

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Returns discrete Laplace noise whose scale is rounded up."""
        return DiscreteLaplaceNoise(scale=positive_scale(self.scale, values))


def _divergence(change: float, scale: float) -> float:
    """Returns the Kullback–Leibler divergence of discrete Laplace noise that moves by a whole number.

    E|X + c| − E|X| = c − 2a(1 − a^c)/(1 − a²): it rises by 1 − 2P(X > j) with every step from j to j + 1.
    """
    y = 1 / scale
    told = change + 2 * math.exp(-y) * math.expm1(-change * y) / -math.expm1(-2 * y)
    return max(0.0, told - 4e-15 * change) / scale
