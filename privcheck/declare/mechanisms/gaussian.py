"""Gaussian noise, continuous and on the integers, independent in every coordinate."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

import numpy as np

from privcheck.declare.mechanisms.base import Array, Charge, Independent, Noise
from privcheck.declare.mechanisms.laplace import DiscreteLaplaceNoise
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import ParameterError
from privcheck.terms.symbols import Exact, Expr, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_MOST_POINTS: Final = 2**20  # of a law
_SUMMED: Final = 1e4  # σ up to which its masses are summed for the distribution function …
_REACH_BELOW: Final = 38.0  # … from so many σ below 0, where 1e-313 is left
_REACH: Final = (9.0, 40.0)  # standard deviations: cells of their own, and all that is summed


@dataclass(frozen=True, slots=True, kw_only=True)
class _SquaredLoss(Noise):
    """Density or mass ∝ exp(−x²/2·scale²), with loss ‖Δ‖²/2σ² on the reals and on the integers."""

    unbounded: ClassVar[bool] = True
    norm: ClassVar[Literal["l1", "l2"]] = "l2"
    symbol: ClassVar[str] = r"\sigma^2"

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Compute Σ ((x + Δ)² − x²)/2σ², which is linear in x: one matrix–vector product."""
        variance = self.scale**2
        linear: Array = noise @ (change / variance)
        return linear + float(change @ change) / (2 * variance)

    def separation(self, change: Array) -> tuple[float, float]:
        """Return ‖Δ‖²/σ² and 0; the discrete law is only nearly on the Gaussian curve, enough to rank changes."""
        return float(np.square(change / self.scale).sum()), 0.0

    def of_std(self, std: float) -> Self:
        """Noise with σ = `std`."""
        return replace(self, scale=std)

    def largest(self, numbers: int, failure: float) -> float:
        """Compute σ√(2 ln(2n/δ)): P(|X| > t) ≤ 2·exp(−t²/2σ²) for both laws, over n draws."""
        return math.sqrt(2) * self.scale * math.sqrt(math.log(2 * numbers / failure))

    @property
    def std(self) -> float:
        """σ, which the discrete law's deviation does not exceed (Canonne, Kamath & Steinke 2020, Corollary 9)."""
        return self.scale

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Return Δ₂²/2σ², ∞, and Δ₂²/σ² on the Gaussian curve or NaN off it."""
        ratio = cost.l2 / self.scale
        square = ratio * ratio  # ∞ where it overflows, as it should be
        return square / 2, math.inf, square if self.gaussian else math.nan

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Compute ‖Δ‖²/2σ², exact for whole changes of the discrete law too: D_α = α‖Δ‖²/2σ² at whole orders α.

        Raises:
            ParameterError: `pure` is set: the loss in pure DP is ∞.
        """
        if pure:
            message = f"{cls.rule.removesuffix(' mechanism')} tails bound no ε"
            raise ParameterError(message, name="mechanism", given=cls.name)
        return sum((k * c * c for c, k in changes), Fraction(0)) / (2 * spread)

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Compute 1/2σ²; refused in pure DP as in `loss`."""
        return cls.loss([(Fraction(1), 1)], spread, pure=pure)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(_SquaredLoss):
    """N(0, scale²) in every coordinate."""

    name: ClassVar[str] = "gaussian"
    gaussian: ClassVar[bool] = True
    rule: ClassVar[str] = "Gaussian mechanism"
    theorem: ClassVar[str] = "Bun & Steinke 2016, Proposition 1.6: ρ = Δ₂²/(2σ²)"
    spread_words: ClassVar[str] = "variance of the Gaussian noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw noise of the shape."""
        noise: Array = rng.standard_normal(shape)
        noise *= self.scale
        return noise

    def cdf(self, x: Array) -> Array:
        """Compute Φ(x/σ)."""
        from scipy.special import ndtr

        gaussian: Array = ndtr(x / self.scale)
        return gaussian

    def size(self, numbers: Array) -> float:
        """Compute Σx²."""
        return float(numbers @ numbers)

    def scale_statistic(self, number: int, size: float) -> tuple[float, int]:
        """Compute Σx²/σ², which is χ²(n)."""
        return size / self.scale**2, number

    def scale_ratio(self, per_degree: float) -> float:
        """Ratio of the drawn standard deviation to σ."""
        return math.sqrt(per_degree)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """One Gaussian event of sensitivity Δ₂."""
        from privcheck.accounting.events import gaussian

        return (gaussian(std=self.scale, sensitivity=cost.l2),)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianNoise(_SquaredLoss):
    """Noise with P(x) ∝ exp(−x²/2·scale²) on the integers, in every coordinate.

    `scale` is σ, the law's parameter; the standard deviation is at most σ.
    """

    name: ClassVar[str] = "discrete gaussian"
    whole: ClassVar[bool] = True
    rule: ClassVar[str] = "discrete Gaussian mechanism"
    theorem: ClassVar[str] = "Canonne, Kamath & Steinke 2020, Theorem 4: ρ = Δ₂²/(2σ²) on whole numbers"
    spread_words: ClassVar[str] = "σ² of the discrete Gaussian noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw noise of the shape: whole numbers as floats.

        Discrete Laplace numbers of scale t = ⌊σ⌋ + 1, each kept with probability exp(−(|y| − σ²/t)²/2σ²) (Canonne,
        Kamath & Steinke 2020, Algorithm 3).
        """
        size = int(np.prod(shape))
        t = math.floor(self.scale) + 1
        proposal, drawn = DiscreteLaplaceNoise(scale=t), np.empty(size)
        filled = 0
        while filled < size:
            tried = proposal.draw(rng, max(16, 2 * (size - filled)))
            z = (np.abs(tried) - self.scale**2 / t) / self.scale
            kept = tried[rng.random(tried.size) < np.exp(-z * z / 2)][: size - filled]
            drawn[filled : filled + kept.size] = kept
            filled += kept.size
        return drawn.reshape(shape)

    def moved_law(self, change: int) -> tuple[Array, Array] | None:
        """Compute ln P of the distinguished outputs, where one coordinate is `change` and where it is 0.

        Outputs far from both values count as one, on either side; None if there are too many outputs between them.

        Args:
            change: Change of the coordinate, at least 1.
        """
        near, far = (math.ceil(reach * self.scale) + 2 for reach in _REACH)
        if change + 2 * far > _MOST_POINTS:
            return None
        x = np.arange(-far, change + far + 1, dtype=np.float64)
        noise = np.exp(-0.5 * (np.arange(-far - change, far + change + 1) / self.scale) ** 2)
        total = float(noise.sum())
        laws = []
        for at in (change, 0):
            law = np.exp(-0.5 * ((x - at) / self.scale) ** 2) / total
            ends = law[: far - near].sum(), law[law.size - (far - near) :].sum()
            laws.append(np.concatenate([[ends[0]], law[far - near : law.size - (far - near)], [ends[1]]]))
        kept = np.minimum(*laws) > 1e-290  # else digits are lost, or all
        least = int(np.argmax(np.minimum(*laws)))
        kept[least] = False
        told = [np.append(law[kept], max(0.0, 1 - float(law[kept].sum()))) for law in laws]
        return np.log(told[0]), np.log(told[1])

    def spread_cdf(self, x: Array) -> Array:
        """Distribution function of the noise plus a uniform number in [−½, ½].

        Above σ = 10⁴ it is computed as Φ(x/σ), which is exact up to 1/24σ² (the trapezoidal rule): too little for the
        tests to detect.
        """
        if self.scale > _SUMMED:
            from scipy.special import ndtr

            smooth: Array = ndtr(x / self.scale)
            return smooth
        before, masses = _left_half(self.scale)
        below = np.clip(np.floor(0.5 - np.abs(x)), 1.0 - masses.size, 0.0)  # of −|x|, by symmetry
        part = np.clip(0.5 - np.abs(x) - below, 0.0, 1.0)
        index = (below + masses.size - 1).astype(np.int64)
        left = before[index] + part * masses[index]
        distribution: Array = np.where(x > 0, 1 - left, left)
        return distribution

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Δ₁/Δ∞ scalar releases if every cell changes by 0 or ±Δ∞, otherwise one of an integer vector."""
        from privcheck.accounting.events import discrete_gaussian

        if stepwise and cost.linf == int(cost.linf) and cost.linf > 0:
            count = max(1, math.ceil(cost.l1 / cost.linf))
            return (discrete_gaussian(std=self.scale, sensitivity=int(cost.linf), count=count),)
        length = cost.l2 if cost.l2 != int(cost.l2) else math.nextafter(cost.l2, math.inf)  # of a vector, not a scalar
        return (discrete_gaussian(std=self.scale, sensitivity=length),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithVariance(Independent):
    """Mechanism with spread σ²."""

    variance: Expr

    def __init__(self, *, variance: Exact | Expr) -> None:
        self._set_spread(variance)

    @property
    def std(self) -> Expr:
        """σ; the discrete law's standard deviation is at most σ."""
        return sqrt(self.variance)

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Δ₂²/(2σ²), exact for the worst pair.

        Bun & Steinke 2016, Proposition 1.6; on whole numbers Canonne, Kamath & Steinke 2020, Theorem 4.
        """
        return (sensitivity.l2**2 / (2 * self.variance)).simplified()

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Return None: Gaussian tails are not ε-DP for any ε."""
        return None

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Noise with σ rounded up."""
        return self._noise(self.std, values)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Gaussian(_WithVariance):
    """Independent N(0, variance) in every coordinate.

    Attributes:
        variance: σ², exact.
    """

    law = GaussianNoise
    title: ClassVar[str] = "Gaussian, variance"
    formula: ClassVar[str] = r"\mathcal{N}\left(0,\ "

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Δ₂²/σ² (Dong, Roth & Su 2022, Theorem 2.7)."""
        return (sensitivity.l2**2 / self.variance).simplified()


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class DiscreteGaussian(_WithVariance):
    """Independent noise with P(x) ∝ exp(−x²/2σ²) on the integers, for a statistic of whole numbers.

    Its privacy curve is not Gaussian, but close to it for large σ.

    Attributes:
        variance: σ², the law's parameter, exact; its variance is a little less where σ is below 1.
    """

    law = DiscreteGaussianNoise
    title: ClassVar[str] = "discrete Gaussian, σ² ="
    formula: ClassVar[str] = r"\mathrm{N}_{\mathbb{Z}}\left(0,\ "


@functools.lru_cache(maxsize=16)
def _left_half(sigma: float) -> tuple[Array, Array]:
    """P(X < k) and P(X = k) of a discrete Gaussian at k = −38σ, …, 0."""
    k = np.arange(-math.ceil(_REACH_BELOW * sigma) - 1, 1, dtype=np.float64)
    weights = np.exp(-0.5 * (k / sigma) ** 2)
    masses = weights / (2 * weights[:-1].sum() + 1)
    return np.concatenate([[0.0], np.cumsum(masses)[:-1]]), masses
