"""Noise that follows from the claim: the least for its (ε, β) by the exact curve, where nobody states another."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from privcheck.accounting import Curve, calibrate, calibrate_whole, gaussian
from privcheck.declaration import Declaration, Parameter
from privcheck.pricing import account

Declare = Callable[[Mapping[str, str]], Declaration]

_DIGITS = 5  # of μ, rounded down: at most 10⁻⁴ more noise than the least


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastNoise:
    """`Parameter(follows=…)` of a parameter that sets all of a declaration's noise.

    At the default claim it is the parameter's own default, which stands beside its figure in a README.

    Attributes:
        name: The parameter.
        declare: From readings to the declaration.
        readings: The chosen ones.
        usual: The declaration's other parameters, at whose defaults the parameter has its own.
        claim: Names of the claim's parameters, ε and its failure probability.
        bits: The parameter is the number of noise bits; otherwise the noise's std is inverse to it.
    """

    name: str
    declare: Declare
    readings: tuple[tuple[str, str], ...]
    usual: tuple[Parameter, ...]
    claim: tuple[str, str] = ("epsilon", "beta")
    bits: bool = False

    def __call__(self, values: Mapping[str, Fraction]) -> Fraction:
        """Returns the value with which the releases keep the claim at the least noise.

        Raises:
            ParameterError: No amount of the noise is enough.
        """
        defaults = {one.name: one.check(one.default) for one in self.usual if one.name in self.claim}
        if all(values[name] == default for name, default in defaults.items()):
            return values[self.name]
        return _find(self, tuple(sorted(values.items())))


def follow_gaussian(values: Mapping[str, Fraction]) -> Fraction:
    """Returns the largest μ with which N(0, 1) against N(μ, 1) is (ε, δ)-DP; at ε = 1, δ = 10⁻⁵ the default.

    Args:
        values: `epsilon`, `delta` and `mu`, the default.
    """
    if values["epsilon"] == 1 and values["delta"] == Fraction(1, 100_000):
        return values["mu"]
    return _find_gaussian(float(values["epsilon"]), float(values["delta"]))


@functools.lru_cache(maxsize=256)
def _find_gaussian(epsilon: float, delta: float) -> Fraction:
    return _round_down(1 / Fraction(calibrate((epsilon, delta), lambda std: gaussian(std=std)).scale))


@functools.lru_cache(maxsize=256)
def _find(least: LeastNoise, given: tuple[tuple[str, Fraction], ...]) -> Fraction:
    values, declaration = dict(given), least.declare(dict(least.readings))
    target = tuple(float(values[name]) for name in least.claim)
    composed, start = account(declaration), float(values[least.name])

    def price(value: float) -> Curve:
        return composed.at({**values, least.name: Fraction(value)}).curve

    if least.bits:
        return Fraction(calibrate_whole((target[0], target[1]), price, seek="least", start=start).value)
    return _round_down(Fraction(calibrate((target[0], target[1]), price, seek="largest", start=start).scale))


def _round_down(value: Fraction) -> Fraction:
    """Returns a positive number to five significant digits, not above it."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - _DIGITS + 1)
    return math.floor(value / unit) * unit
