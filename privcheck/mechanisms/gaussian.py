"""Gaussian noise, independent in every coordinate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from privcheck.charges import Charge
from privcheck.errors import ParameterError
from privcheck.fields import number
from privcheck.mechanisms.base import Array, Noise, positive_scale
from privcheck.statistics.base import Sensitivity, SparseDifference
from privcheck.symbols import Exact, Expr, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(Noise):
    """N(0, scale²) in every coordinate."""

    name: ClassVar[str] = "gaussian"
    gaussian: ClassVar[bool] = True
    unbounded: ClassVar[bool] = True
    norm: ClassVar[Literal["l1", "l2"]] = "l2"
    rule: ClassVar[str] = "Gaussian mechanism"
    theorem: ClassVar[str] = "Bun & Steinke 2016, Proposition 1.6: ρ = Δ₂²/(2σ²)"
    symbol: ClassVar[str] = r"\sigma^2"
    spread_words: ClassVar[str] = "variance of the Gaussian noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Returns fresh noise of the shape."""
        noise: Array = rng.standard_normal(shape)
        noise *= self.scale
        return noise

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Returns Σ ((x + Δ)² − x²)/2σ², which is linear in x: one matrix–vector product."""
        variance = self.scale**2
        linear: Array = noise @ (change / variance)
        return linear + float(change @ change) / (2 * variance)

    def separation(self, change: Array) -> tuple[float, float]:
        """Returns ‖Δ‖²/σ² and 0."""
        return float(np.square(change / self.scale).sum()), 0.0

    def of_std(self, std: float) -> Self:
        """Returns noise of this standard deviation."""
        return replace(self, scale=std)

    def cdf(self, x: Array) -> Array:
        """Returns Φ(x/σ)."""
        from scipy.special import ndtr

        gaussian: Array = ndtr(x / self.scale)
        return gaussian

    def size(self, numbers: Array) -> float:
        """Returns Σx²."""
        return float(numbers @ numbers)

    def scale_statistic(self, number: int, size: float) -> tuple[float, int]:
        """Returns Σx²/σ², which is χ²(n)."""
        return size / self.scale**2, number

    def scale_ratio(self, per_degree: float) -> float:
        """Returns the standard deviation drawn over σ."""
        return math.sqrt(per_degree)

    def largest(self, numbers: int, failure: float) -> float:
        """Returns σ√(2 ln(2n/δ)): P(|N(0, σ²)| > t) ≤ 2·exp(−t²/2σ²), over n draws."""
        return math.sqrt(2) * self.scale * math.sqrt(math.log(2 * numbers / failure))

    @property
    def std(self) -> float:
        """Returns σ."""
        return self.scale

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Returns one Gaussian of Δ₂."""
        from privcheck.accounting.events import gaussian

        return (gaussian(std=self.scale, sensitivity=cost.l2),)

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Returns Δ₂²/2σ², ∞ and Δ₂²/σ²."""
        ratio = cost.l2 / self.scale
        return ratio * ratio / 2, math.inf, ratio * ratio  # ∞ where it overflows, as it should be

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Returns ‖Δ‖²/2σ².

        Raises:
            ParameterError: The loss in pure DP is asked for, which is ∞.
        """
        if pure:
            raise ParameterError("Gaussian tails bound no ε", name="mechanism", given=cls.name)
        return sum((k * c * c for c, k in changes), Fraction(0)) / (2 * spread)

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Returns 1/2σ²; refused in pure DP as in `loss`."""
        return cls.loss([(Fraction(1), 1)], spread, pure=pure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Independent N(0, variance) in every coordinate.

    Attributes:
        variance: σ², exact.
    """

    variance: Expr

    law = GaussianNoise  # a ClassVar is not the protocol's property to every type checker

    def __init__(self, *, variance: Exact | Expr) -> None:
        object.__setattr__(self, "variance", number("variance, of Gaussian", variance))

    @property
    def words(self) -> str:
        """Returns the mechanism in words with its spread."""
        return f"Gaussian, variance {self.variance}"

    @property
    def latex(self) -> str:
        """Returns the noise's law as a formula."""
        return rf"\mathcal{{N}}\left(0,\ {self.variance.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """Returns the variance."""
        return self.variance

    def with_spread(self, spread: Expr) -> Gaussian:
        """Returns the mechanism with another variance."""
        return replace(self, variance=spread)

    @property
    def std(self) -> Expr:
        """Returns σ."""
        return sqrt(self.variance)

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns it as it is: the noise is independent in every coordinate."""
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Returns it with every entry of a matrix for itself."""
        return difference.every_entry()

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Returns Δ₂²/(2σ²) (Bun & Steinke 2016, Proposition 1.6); exact, not a bound, for the worst pair."""
        return (sensitivity.l2**2 / (2 * self.variance)).simplified()

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns None: Gaussian noise is not ε-DP for any ε."""
        return None

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns Δ₂²/σ² (Dong, Roth & Su 2022, Theorem 2.7)."""
        return (sensitivity.l2**2 / self.variance).simplified()

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Returns Gaussian noise whose std is rounded up."""
        return GaussianNoise(scale=positive_scale(self.std, values))
