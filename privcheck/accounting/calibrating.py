"""Calibration: the least spread for which a family of jobs keeps a target (ε, δ), re-verified by the accountant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from privcheck.accounting.curve import Curve, Figure, compose
from privcheck.accounting.events import Event
from privcheck.accounting.parameters import Real, real
from privcheck.errors import ParameterError
from privcheck.guarantees import ApproxDP, Guarantee, PureDP

_TOLERANCE: Final = 1e-9  # relative, on the spread
_SMALLEST, _LARGEST = 1e-12, 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The least spread found, and what it gives.

    Attributes:
        scale: The spread, in the unit of the family's argument.
        epsilon: Certified ε of the family there, at most the target's.
        delta: δ of the target.
        figure: The accountant's answer there.
        tolerance: By how much, relatively, a smaller spread might still have done; beyond it the target is missed.
    """

    scale: float
    epsilon: float
    delta: float
    figure: Figure
    tolerance: float


def calibrate(
    target: tuple[Real, Real] | Guarantee, family: Callable[[float], Event | Curve], *, start: float = 1.0
) -> Calibrated:
    """Returns the least scale for which family(scale) is (ε, δ)-DP.

    The family's ε must fall as its scale grows. The root is sought on the tight value; the scale that is returned has
    its certified upper bound at most the target.

    Args:
        target: (ε, δ), or a guarantee whose numbers are known: `PureDP` or `ApproxDP`.
        family: From a scale to an event or a curve.
        start: Where to begin.

    Raises:
        ParameterError: The target is out of range, or no scale between 1e-12 and 1e15 meets it.

    >>> from privcheck import accounting as acc
    >>> found = acc.calibrate((1.0, 1e-6), lambda s: acc.gaussian(std=s, count=1000))
    >>> round(found.scale, 4), found.epsilon <= 1.0
    (133.5961, True)
    """
    epsilon, delta = _target(target)

    def figure(scale: float) -> Figure:
        made = family(scale)
        return (made if isinstance(made, Curve) else compose(made)).epsilon(delta=delta)

    low, high = _bracket(lambda s: figure(s).value <= epsilon, real("start", start))
    scale = _root(lambda s: figure(s).value, epsilon, low, high) if low > 0 else high
    # certified: step outwards, by as little as does, until the upper bound meets the target
    step = _TOLERANCE / 4
    found = figure(scale)
    while found.upper > epsilon:
        excess = found.upper / epsilon - 1 if epsilon > 0 else 1.0
        step = max(2 * step, min(excess, 1.0))
        scale *= 1 + step
        if scale > _LARGEST:
            raise ParameterError(
                f"no scale up to {_LARGEST:g} certifies ε = {epsilon:g} at δ = {delta:g}", name="target"
            )
        found = figure(scale)
    return Calibrated(scale=scale, epsilon=found.upper, delta=delta, figure=found, tolerance=max(step, _TOLERANCE))


def _target(target: tuple[Real, Real] | Guarantee) -> tuple[float, float]:
    """Returns (ε, δ), ε rounded down and δ too."""
    if isinstance(target, PureDP):
        return target.epsilon.number({}, rounding="down"), 0.0
    if isinstance(target, ApproxDP):
        return target.epsilon.number({}, rounding="down"), target.delta.number({}, rounding="down")
    if not isinstance(target, tuple) or len(target) != 2:
        message = f"expected target as (epsilon, delta), PureDP or ApproxDP, got {target!r}"
        raise ParameterError(message, name="target", given=target)
    epsilon, delta = real("epsilon", target[0]), real("delta", target[1], strict=False, most=1)
    if delta == 1:
        raise ParameterError("expected delta below 1, got 1: every mechanism meets it", name="delta", given=target)
    return epsilon, delta


def _bracket(meets: Callable[[float], bool], start: float) -> tuple[float, float]:
    """Returns (too little, enough); 0 for too little where even the smallest scale is enough."""
    scale = start
    if meets(scale):
        while meets(scale / 4):
            scale /= 4
            if scale < _SMALLEST:
                return 0.0, scale
        return scale / 4, scale
    while not meets(4 * scale):
        scale *= 4
        if scale > _LARGEST:
            raise ParameterError(
                f"no scale up to {_LARGEST:g} meets the target: does ε fall as it grows?", name="family"
            )
    return scale, 4 * scale


def _root(value: Callable[[float], float], epsilon: float, low: float, high: float) -> float:
    """Returns a scale that meets the target, at most a tolerance above one that does not: brackets, on log scales."""
    from scipy.optimize import brentq

    def excess(log_scale: float) -> float:
        found = value(math.exp(log_scale))
        return min(50.0, math.log(found / epsilon)) if found > 0 else -50.0

    root = math.exp(float(brentq(excess, math.log(low), math.log(high), xtol=_TOLERANCE / 8, rtol=1e-15)))
    step = _TOLERANCE / 8
    while value(root) > epsilon and root < high:
        root, step = root * (1 + step), 2 * step
    return min(root, high)
