"""Laplace noise, continuous and on the integers, independent in every coordinate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from privcheck.declare.mechanisms.base import Array, Charge, Independent, Noise
from privcheck.declare.statistics.base import Sensitivity
from privcheck.terms.symbols import Exact, Expr, exp, expression, sqrt, to_float

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_UP: Final = 1 + 1e-12  # covers the roundings of a few dozen operations
_NEAR: Final = 1e-12  # relative, by which norms that are rounded up may miss a whole number of moves
_MOST_MOVED: Final = 500_000  # of one cell, up to which a discrete law of its own is computed


@dataclass(frozen=True, slots=True, kw_only=True)
class _LinearLoss(Noise):
    """Density or mass ∝ exp(−|x|/scale), with loss ‖Δ‖₁/b in pure DP on the reals and on the integers."""

    symbol: ClassVar[str] = "b"

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Compute Σ (|x + Δ| − |x|)/b."""
        terms = np.abs(noise + change)
        terms -= np.abs(noise)
        summed: Array = terms.sum(axis=-1) / self.scale
        return summed

    def separation(self, change: Array) -> tuple[float, float]:
        """Return 0 and ‖Δ‖₁/b."""
        return 0.0, float(np.abs(change / self.scale).sum())

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Return the ρ of the worst split (see the mechanism's `zcdp`), Δ₁/b and NaN."""
        return self._rho(cost) if cost.l1 else 0.0, cost.l1 / self.scale, math.nan

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Compute ‖Δ‖₁/b, or in zCDP the sum of the coordinates' Kullback–Leibler divergences."""
        if pure:
            return sum((k * c for c, k in changes), Fraction(0)) / spread
        return cls._divergence(changes, spread)

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Compute 1/b, or in zCDP an upper bound on the ρ of a change by 1."""
        return 1 / spread if pure else cls._unit_rho(spread)

    def _rho(self, cost: Charge) -> float:
        raise NotImplementedError

    @classmethod
    def _divergence(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction) -> Fraction:
        raise NotImplementedError

    @classmethod
    def _unit_rho(cls, spread: Fraction) -> Fraction:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise(_LinearLoss):
    """Density exp(−|x|/scale)/2·scale in every coordinate."""

    name: ClassVar[str] = "laplace"
    rule: ClassVar[str] = "Laplace mechanism"
    theorem: ClassVar[str] = "Dwork, McSherry, Nissim & Smith 2006: ε = Δ₁/b"
    spread_words: ClassVar[str] = "scale b of the Laplace noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw noise of the shape."""
        return rng.laplace(0.0, self.scale, shape)

    def loss_steps(self, change: Array) -> Array:
        """Compute |Δ|/b."""
        return np.abs(change) / self.scale

    @classmethod
    def loss_masses(cls, step: float, cell: float) -> Array:
        """Law of (|x + Δ| − |x|)/b for x ~ Lap(b), Δ/b = step.

        Half of the mass is an atom at +step, e^(−step)/2 one at −step; between them the density is e^((y − step)/2)/4.
        """
        reach = max(1, round(step / cell))
        edges = (np.arange(-reach, reach) + 0.5) * (step / reach)
        below = np.concatenate([[-step], edges, [step]])
        inner: Array = np.diff(np.exp((below - step) / 2)) / 2  # the density integrated over each cell
        inner[-1] += 0.5
        inner[0] += 0.5 * np.exp(-step)
        return inner

    def of_std(self, std: float) -> Self:
        """Noise of scale std/√2."""
        return replace(self, scale=std / math.sqrt(2))

    def cdf(self, x: Array) -> Array:
        """Compute e^(x/b)/2 below 0, 1 − e^(−x/b)/2 above."""
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.where(x < 0, tail, 1 - tail)

    def size(self, numbers: Array) -> float:
        """Compute Σ|x|."""
        return float(np.abs(numbers).sum())

    def scale_statistic(self, number: int, size: float) -> tuple[float, int]:
        """Compute 2Σ|x|/b, which is χ²(2n)."""
        return 2 * size / self.scale, 2 * number

    def largest(self, numbers: int, failure: float) -> float:
        """Compute b·ln(n/δ): P(|Lap(b)| > t) = exp(−t/b), over n draws."""
        return self.scale * math.log(numbers / failure)

    @property
    def std(self) -> float:
        """Return √2·b."""
        return self.scale * math.sqrt(2)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Scalar releases: Δ₁/Δ∞ of sensitivity Δ∞, and one of the remainder of Δ₁.

        Lemma laplace-vector: Δ₁/Δ∞ scalar releases of sensitivity Δ∞, and one of the remainder, dominate every change
        with norms of at most Δ₁ and Δ∞. Proof: they weakly majorise it, so their δ(ε) is nowhere smaller [lemma
        laplace-majorisation]. A table with cells that change by 0 or ±Δ∞ attains it.
        """
        from privcheck.accounting.events import laplace, pure

        if not cost.linf > 0:
            return (pure(epsilon=cost.l1 / self.scale * (1 + 1e-15)),)
        if stepwise:
            return (laplace(scale=self.scale, sensitivity=cost.linf, count=max(1, math.ceil(cost.l1 / cost.linf))),)
        whole, l1 = round(cost.l1 / cost.linf), cost.l1 * (1 + 1e-15)
        if (
            whole and abs(cost.l1 / cost.linf - whole) < _NEAR * whole
        ):  # so many moves of one size: what is left is none
            return (laplace(scale=self.scale, sensitivity=max(cost.linf, l1 / whole), count=whole),)
        whole = int(cost.l1 / cost.linf)
        rest = l1 - whole * cost.linf
        moves = [laplace(scale=self.scale, sensitivity=cost.linf, count=whole)] if whole else []
        moves += [laplace(scale=self.scale, sensitivity=rest)] if rest > 0 else []
        return tuple(moves)

    def _rho(self, cost: Charge) -> float:
        return cost.l1 / cost.linf * _divergence(cost.linf / self.scale)

    @classmethod
    def _divergence(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction) -> Fraction:
        """Compute Σ g(|Δ|/b) with g(x) = x + e^(−x) − 1, rounded down."""
        steps = [(to_float(c / spread, rounding="down"), k) for c, k in changes]
        return sum((k * Fraction(_divergence_down(x)) for x, k in steps), Fraction(0))

    @classmethod
    def _unit_rho(cls, spread: Fraction) -> Fraction:
        """Compute g(1/b), rounded up."""
        x = to_float(1 / spread, rounding="up")
        return Fraction(min(x * x / 2 * _UP, (x + math.expm1(-x)) * _UP + 1e-15 * x))  # terms cancel for small x


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceNoise(_LinearLoss):
    """Noise with P(x) ∝ exp(−|x|/scale) on the integers: the difference of two geometric numbers."""

    name: ClassVar[str] = "discrete laplace"
    whole: ClassVar[bool] = True
    rule: ClassVar[str] = "discrete Laplace mechanism"
    theorem: ClassVar[str] = "Ghosh, Roughgarden & Sundararajan 2009: ε = Δ₁/b on whole numbers"
    spread_words: ClassVar[str] = "scale b of the discrete Laplace noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw noise of the shape: whole numbers as floats."""
        p = -math.expm1(-1 / self.scale)
        noise: Array = (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(np.float64)
        return noise

    def moved_law(self, change: int) -> tuple[Array, Array] | None:
        """Compute ln P of the distinguished outputs, where one coordinate is `change` and where it is 0.

        All outputs up to 0 have the same loss, and so have all from `change` on: no tail is left out. None if `change`
        is too large to compute.

        Args:
            change: Change of the coordinate, at least 1.
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
        """Compute 1/(√2 sinh(1/2b))."""
        return 1 / (math.sqrt(2) * math.sinh(0.5 / self.scale)) if self.scale > 1e-3 else 0.0

    def of_std(self, std: float) -> Self:
        """Noise with standard deviation `std`."""
        return replace(self, scale=0.5 / math.asinh(1 / (math.sqrt(2) * std)))

    def spread_cdf(self, x: Array) -> Array:
        """Distribution function of the noise plus a uniform number in [−½, ½].

        P(X < k) = a^(1−k)/(1 + a) for whole k ≤ 0, a = e^(−1/b), and P(X = k) = (1 − a)/(1 + a)·a^|k|.
        """
        below = np.floor(0.5 - np.abs(x))  # of −|x|, by symmetry
        part = 0.5 - np.abs(x) - below
        a = math.exp(-1 / self.scale)
        left = np.exp((below - 1) / self.scale) / (1 + a) + part * (1 - a) / (1 + a) * np.exp(below / self.scale)
        distribution: Array = np.where(x > 0, 1 - left, left)
        return distribution

    def largest(self, numbers: int, failure: float) -> float:
        """Compute b·ln(2n/δ): P(|X| > t) ≤ 2e^(−t/b), over n draws."""
        return self.scale * math.log(2 * numbers / failure)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Δ₁/Δ∞ scalar releases if every cell changes by 0 or ±Δ∞, otherwise any (Δ₁/b)-DP mechanism."""
        from privcheck.accounting.events import discrete_laplace, pure

        if stepwise and cost.linf == int(cost.linf) and 0 < cost.linf <= _MOST_MOVED:
            count = max(1, math.ceil(cost.l1 / cost.linf))
            return (discrete_laplace(scale=self.scale, sensitivity=int(cost.linf), count=count),)
        return (pure(epsilon=cost.l1 / self.scale * (1 + 1e-15)),)

    def _rho(self, cost: Charge) -> float:
        return cost.l1 / self.scale * math.tanh(cost.linf / self.scale / 2)

    @classmethod
    def _divergence(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction) -> Fraction:
        """Compute Σ (|Δ| − 2a(1 − a^|Δ|)/(1 − a²))/b with a = e^(−1/b), rounded down."""
        b = float(spread)
        told = sum(k * _whole_divergence(float(c), b) for c, k in changes)
        return Fraction(max(0.0, told * (2 - _UP)))

    @classmethod
    def _unit_rho(cls, spread: Fraction) -> Fraction:
        """Compute tanh(1/2b)/b, rounded up."""
        return Fraction(math.tanh(0.5 / float(spread)) / float(spread) * _UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithScale(Independent):
    """Mechanism with spread b."""

    scale: Expr

    def __init__(self, *, scale: Exact | Expr) -> None:
        self._set_spread(scale)

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Δ₁/b (Dwork, McSherry, Nissim & Smith 2006); exact for the worst pair."""
        return (sensitivity.l1 / self.scale).simplified()

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Noise with its scale rounded up."""
        return self._noise(self.scale, values)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Laplace(_WithScale):
    """Independent Laplace noise with density exp(−|x|/b)/2b in every coordinate.

    Attributes:
        scale: b, exact.
    """

    law = LaplaceNoise
    title: ClassVar[str] = "Laplace, scale b ="
    formula: ClassVar[str] = r"\mathrm{Lap}\left("

    @property
    def std(self) -> Expr:
        """√2·b."""
        return sqrt(expression(2)) * self.scale

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """ρ of the worst split of Δ₁ over coordinates that change by at most Δ∞ each.

        Lemma laplace-rho: No change with norms of at most Δ₁ and Δ∞ costs more than Δ₁/Δ∞·g(Δ∞/b) in ρ, g(x) = x +
        e^(−x) − 1. Proof: a coordinate that changes by t costs g(t/b) (ACCOUNTING: tight for one Laplace release; the
        classical value is x²/2), and those of independent noise add up. g is convex with g(0) = 0, so the costliest
        split has every changed coordinate at Δ∞: at most Δ₁/Δ∞ of them.
        """
        if sensitivity.l1 == expression(0):
            return expression(0)  # nobody moves it
        step = sensitivity.linf / self.scale
        return (sensitivity.l1 / sensitivity.linf * (step + exp(-1 * step) - 1)).simplified()


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class DiscreteLaplace(_WithScale):
    """Independent noise with P(x) ∝ exp(−|x|/b) on the integers, for a statistic of whole numbers.

    Attributes:
        scale: b, exact.
    """

    law = DiscreteLaplaceNoise
    title: ClassVar[str] = "discrete Laplace, scale b ="
    formula: ClassVar[str] = r"\mathrm{Lap}_{\mathbb{Z}}\left("

    @property
    def std(self) -> Expr:
        """√(2a)/(1 − a) with a = e^(−1/b)."""
        a = exp(-1 / self.scale)
        return sqrt(2 * a) / (1 - a)

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """(Δ₁/b)·tanh(Δ∞/2b).

        Lemma discrete-laplace-rho: No change of whole numbers with norms of at most Δ₁ and Δ∞ costs more than
        (Δ₁/b)·tanh(Δ∞/2b) in ρ. Proof: a coordinate that changes by t is (t/b)-DP, hence (t/b)·tanh(t/2b)-zCDP;
        t·tanh(t/2b) over t increases in t, so coordinates at Δ∞ cost most. Exact for changes by 1: the law is then that
        of randomised response.
        """
        if sensitivity.l1 == expression(0):
            return expression(0)
        a = exp(-1 * sensitivity.linf / self.scale)
        return (sensitivity.l1 / self.scale * (1 - a) / (1 + a)).simplified()


def _divergence(step: float) -> float:
    """Compute x + e^(−x) − 1; where its terms cancel, by its series, truncated so as not to be below it."""
    if step >= 0.5:
        return step + math.expm1(-step)
    series = 0.0
    for k in range(14, 1, -1):  # x²/2 − x³/6 + … + x¹⁴/14!: terms alternate and fall, and the last one is added
        series = 1 / math.factorial(k) - step * series
    return step * step * series


def _divergence_down(x: float) -> float:
    """Compute x + e^(−x) − 1 ≥ 0, rounded down; by its series where the terms cancel."""
    if x < 1e-3:
        return max(0.0, x * x / 2 - x**3 / 6) * (1 - 1e-14)
    return (x + math.expm1(-x)) * (1 - 1e-12)


def _whole_divergence(change: float, scale: float) -> float:
    """Kullback–Leibler divergence of discrete Laplace noise shifted by a whole number, rounded down.

    E|X + c| − E|X| = c − 2a(1 − a^c)/(1 − a²): it increases by 1 − 2P(X > j) with every step from j to j + 1.
    """
    y = 1 / scale
    told = change + 2 * math.exp(-y) * math.expm1(-change * y) / -math.expm1(-2 * y)
    return max(0.0, told - 4e-15 * change) / scale
