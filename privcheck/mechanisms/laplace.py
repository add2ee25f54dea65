"""Laplace noise, independent in every coordinate."""

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
from privcheck.symbols import Exact, Expr, exp, expression, sqrt, to_float

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_UP: Final = 1 + 1e-12  # covers the roundings of a few dozen operations
_NEAR: Final = 1e-12  # relative, by which norms that are rounded up may miss a whole number of moves


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise(Noise):
    """Density exp(−|x|/scale)/2·scale in every coordinate."""

    name: ClassVar[str] = "laplace"
    rule: ClassVar[str] = "Laplace mechanism"
    theorem: ClassVar[str] = "Dwork, McSherry, Nissim & Smith 2006: ε = Δ₁/b"
    symbol: ClassVar[str] = "b"
    spread_words: ClassVar[str] = "scale b of the Laplace noise"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Returns fresh noise of the shape."""
        return rng.laplace(0.0, self.scale, shape)

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Returns Σ (|x + Δ| − |x|)/b."""
        terms = np.abs(noise + change)
        terms -= np.abs(noise)
        summed: Array = terms.sum(axis=-1) / self.scale
        return summed

    def separation(self, change: Array) -> tuple[float, float]:
        """Returns 0 and ‖Δ‖₁/b."""
        return 0.0, float(np.abs(change / self.scale).sum())

    def loss_steps(self, change: Array) -> Array:
        """Returns |Δ|/b."""
        return np.abs(change) / self.scale

    @classmethod
    def loss_masses(cls, step: float, cell: float) -> Array:
        """Returns the law of (|x + Δ| − |x|)/b for x ~ Lap(b), Δ/b = step.

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
        """Returns noise of scale std/√2."""
        return replace(self, scale=std / math.sqrt(2))

    def cdf(self, x: Array) -> Array:
        """Returns e^(x/b)/2 below 0, 1 − e^(−x/b)/2 above."""
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.where(x < 0, tail, 1 - tail)

    def size(self, numbers: Array) -> float:
        """Returns Σ|x|."""
        return float(np.abs(numbers).sum())

    def scale_statistic(self, number: int, size: float) -> tuple[float, int]:
        """Returns 2Σ|x|/b, which is χ²(2n)."""
        return 2 * size / self.scale, 2 * number

    def largest(self, numbers: int, failure: float) -> float:
        """Returns b·ln(n/δ): P(|Lap(b)| > t) = exp(−t/b), over n draws."""
        return self.scale * math.log(numbers / failure)

    @property
    def std(self) -> float:
        """Returns √2·b."""
        return self.scale * math.sqrt(2)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Returns Δ₁/Δ∞ scalar releases that move by Δ∞, and one that moves by what is left of Δ₁.

        They weakly majorise every change of these norms, and their δ(ε) is then nowhere smaller (the proof stands in
        `privcheck.accounting.engine.trees`). A table whose cells move by 0 or ±Δ∞ attains it.
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

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Returns the ρ of the worst split (`Laplace.zcdp`), Δ₁/b and NaN."""
        rho = cost.l1 / cost.linf * _divergence(cost.linf / self.scale) if cost.l1 else 0.0
        return rho, cost.l1 / self.scale, math.nan

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Returns ‖Δ‖₁/b, or Σ g(|Δ|/b) with g(x) = x + e^(−x) − 1, the Kullback–Leibler divergence."""
        if pure:
            return sum((k * c for c, k in changes), Fraction(0)) / spread
        steps = [(to_float(c / spread, rounding="down"), k) for c, k in changes]
        return sum((k * Fraction(_divergence_down(x)) for x, k in steps), Fraction(0))

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Returns 1/b, or g(1/b)."""
        if pure:
            return 1 / spread
        x = to_float(1 / spread, rounding="up")
        return Fraction(min(x * x / 2 * _UP, (x + math.expm1(-x)) * _UP + 1e-15 * x))  # terms cancel for small x


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Independent Laplace noise of density exp(−|x|/b)/2b in every coordinate.

    Attributes:
        scale: b, exact.
    """

    scale: Expr

    law = LaplaceNoise  # a ClassVar is not the protocol's property to every type checker

    def __init__(self, *, scale: Exact | Expr) -> None:
        object.__setattr__(self, "scale", number("scale, of Laplace", scale))

    @property
    def words(self) -> str:
        """Returns the mechanism in words with its spread."""
        return f"Laplace, scale b = {self.scale}"

    @property
    def latex(self) -> str:
        """Returns the noise's law as a formula."""
        return rf"\mathrm{{Lap}}\left({self.scale.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """Returns b."""
        return self.scale

    def with_spread(self, spread: Expr) -> Laplace:
        """Returns the mechanism with another scale."""
        return replace(self, scale=spread)

    @property
    def std(self) -> Expr:
        """Returns √2·b."""
        return sqrt(expression(2)) * self.scale

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns it as it is: the noise is independent in every coordinate."""
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Returns it with every entry of a matrix for itself."""
        return difference.every_entry()

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Returns ρ of the worst split of Δ₁ over coordinates that move by at most Δ∞ each.

        A coordinate that moves by t costs g(t/b), g(x) = x + e^(−x) − 1 (ACCOUNTING: tight for one Laplace release; the
        classical value is x²/2). g is convex with g(0) = 0, so the dearest split has every moving coordinate at Δ∞: at
        most Δ₁/Δ∞ of them. Costs of the coordinates, which have independent noise, add up.
        """
        if sensitivity.l1 == expression(0):
            return expression(0)  # nobody moves it
        step = sensitivity.linf / self.scale
        return (sensitivity.l1 / sensitivity.linf * (step + exp(-1 * step) - 1)).simplified()

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns Δ₁/b (Dwork, McSherry, Nissim & Smith 2006); exact for the worst pair."""
        return (sensitivity.l1 / self.scale).simplified()

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns None: not Gaussian."""
        return None

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Returns Laplace noise whose scale is rounded up."""
        return LaplaceNoise(scale=positive_scale(self.scale, values))


def _divergence(step: float) -> float:
    """Returns x + e^(−x) − 1; its series, not below it, where the terms cancel."""
    if step >= 0.5:
        return step + math.expm1(-step)
    series = 0.0
    for k in range(14, 1, -1):  # x²/2 − x³/6 + … + x¹⁴/14!: terms alternate and fall, and the last one is added
        series = 1 / math.factorial(k) - step * series
    return step * step * series


def _divergence_down(x: float) -> float:
    """Returns x + e^(−x) − 1 ≥ 0, rounded down; its series where the terms cancel."""
    if x < 1e-3:
        return max(0.0, x * x / 2 - x**3 / 6) * (1 - 1e-14)
    return (x + math.expm1(-x)) * (1 - 1e-12)
