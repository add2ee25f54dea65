"""A law of one's own in one file: the double exponential, which is Laplace's under another name, and one that is mute.

What `DoubleExponentialNoise` leaves out is derived (the scale's test, from the distribution function) or simulated (the
law of the loss); the tests compare both with what Laplace noise has in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from privcheck.accounting import Event, pure
from privcheck.declare.mechanisms import Noise
from privcheck.declare.mechanisms.base import Array, Charge, positive_scale
from privcheck.declare.statistics import Sensitivity, SparseDifference
from privcheck.terms.symbols import Expr, sqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteNoise(Noise):
    """Laplace noise that answers nothing but its name and what it draws."""

    name: ClassVar[str] = "mute"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        return rng.laplace(0.0, self.scale, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleExponentialNoise(MuteNoise):
    """The same with what the accountant and the audits ask."""

    name: ClassVar[str] = "double exponential"

    def log_ratio(self, noise: Array, change: Array) -> Array:
        return (np.abs(noise + change) - np.abs(noise)).sum(axis=-1) / self.scale

    def separation(self, change: Array) -> tuple[float, float]:
        return 0.0, float(np.abs(change).sum()) / self.scale

    def cdf(self, x: Array) -> Array:
        return 0.5 * (1 - np.sign(x) * np.expm1(-np.abs(x) / self.scale))

    def of_std(self, std: float) -> Self:
        return replace(self, scale=std / math.sqrt(2))

    @property
    def std(self) -> float:
        return self.scale * math.sqrt(2)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        return (pure(epsilon=cost.l1 / self.scale),)

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        return (cost.l1 / self.scale) ** 2 / 2, cost.l1 / self.scale, math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNoise:
    """The mechanism: noise of one's own law and scale b, priced Δ₁/b in pure DP."""

    scale: Expr
    law: type[Noise] = DoubleExponentialNoise

    @property
    def words(self) -> str:
        return f"noise of one's own, scale {self.scale}"

    @property
    def latex(self) -> str:
        return self.scale.latex()

    @property
    def spread(self) -> Expr:
        return self.scale

    @property
    def std(self) -> Expr:
        return sqrt(2) * self.scale

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        return difference.every_entry()

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        return (sensitivity.l1 / self.scale) ** 2 / 2

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        return (sensitivity.l1 / self.scale).simplified()

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        return None

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        return self.law(scale=positive_scale(self.scale, values))
