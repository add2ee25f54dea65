"""From ρ-zCDP and from pure DP to (ε, δ), on plain floats, rounded up.

For every a = α − 1 > 0 a ρ-zCDP mechanism has (Canonne, Kamath & Steinke 2020, Proposition 12)

    ε ≤ ρ(1 + a) + (ln 1/δ − ln(1 + a))/a − ln(1 + 1/a)            at δ,
    ln δ ≤ a(ρ(1 + a) − ε − ln(1 + 1/a)) − ln(1 + a)               at ε.

Every a gives a valid bound, so Newton's steps towards the best a affect tightness only; the single evaluation at the
end is rounded outwards. The bounds' derivatives vanish where ρa² + ln(1 + a) = ln 1/δ, and where ρ(1 + 2a) = ε + ln(1 +
1/a); both sides are monotone in a, so each has one minimum.
"""

from __future__ import annotations

import math
from typing import Final

from privcheck.accounting.engine.gdp import SMALLEST

_UP: Final = 2e-15  # outward rounding, relative to the terms of a sum of some ten operations
_MOST_LOG: Final = 650.0  # of 1 + a
_LEAST, _LARGEST = 1e-290, 1e280  # of a


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Compute an ε for which every ρ-zCDP mechanism is (ε, δ)-DP, by the best order, rounded up.

    Args:
        rho: ρ, at least 0; may be ∞.
        delta: In [0, 1).
    """
    if rho == 0:
        return 0.0
    if delta == 0 or rho == math.inf:
        return math.inf
    level = -math.log(delta)
    # with s = ln(1 + a), ρ(e^s − 1)² + s is convex and grows: Newton's steps fall onto the root from the right
    s = math.log1p(math.sqrt(level / rho))
    s = math.log1p(math.sqrt((level - s) / rho)) if s < level else level
    s = min(s, _MOST_LOG)
    for _ in range(40):
        a = math.expm1(s)
        step = (rho * a * a + s - level) / (2 * rho * a * (1 + a) + 1)
        s -= step
        if -1e-4 * s < step < 1e-4 * s:  # what is left is its square, and the bound is flat there
            break
    a = math.expm1(s) if s > 0 else 0.0
    if not a > 0:
        return classical_epsilon(rho, delta)
    grown, rest, gain = rho * (1 + a), math.log1p(a), math.log1p(1 / a)
    value = grown + (level - rest) / a - gain + _UP * (grown + (level + rest) / a + gain)
    return min(classical_epsilon(rho, delta), value) if value > 0 else 0.0


def classical_epsilon(rho: float, delta: float) -> float:
    """ρ + 2√(ρ ln 1/δ), rounded up (Bun & Steinke 2016, Proposition 1.3)."""
    if rho == 0:
        return 0.0
    if delta == 0 or rho == math.inf:
        return math.inf
    root = math.sqrt(rho) * math.sqrt(-math.log(delta))  # apart: the product of tiny numbers underflows
    return math.nextafter((rho + 2 * root) * (1 + _UP), math.inf)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Compute a δ for which every ρ-zCDP mechanism is (ε, δ)-DP, by the best order, rounded up.

    Args:
        rho: ρ, at least 0; may be ∞.
        epsilon: At least 0; may be ∞.
    """
    if rho == 0 or epsilon == math.inf:
        return 0.0
    if rho == math.inf:
        return 1.0
    a = min(_best_order(rho, epsilon), 1e300 / (1 + epsilon))  # no product overflows
    grown, gain, rest = rho * (1 + a), math.log1p(1 / a), math.log1p(a)
    slack = _UP * (a * (grown + epsilon + gain) + rest)
    log_delta = a * (grown - epsilon - gain) - rest + slack
    if not log_delta < 0:  # also where it overflows
        return 1.0
    return min(1.0, max(math.nextafter(math.exp(log_delta), 1.0), SMALLEST))


def _best_order(rho: float, epsilon: float) -> float:
    """Approximate a with ρ(1 + 2a) = ε + ln(1 + 1/a): Newton on ln a, kept between bounds of the root."""
    # the logarithm lies between nothing and 1/a
    high = min(max(_positive_root(rho, epsilon), _LEAST), _LARGEST)
    low = min(max((epsilon - rho) / 2 / rho, _LEAST), high)
    a = high
    for _ in range(60):
        excess = rho * (1 + 2 * a) - epsilon - math.log1p(1 / a)
        low, high = (a, high) if excess < 0 else (low, a)
        step = excess / (2 * rho * a + 1 / (1 + a))  # on ln a
        if not abs(step) > 1e-7:
            break
        moved = a * math.exp(-max(-30.0, min(step, 30.0)))
        a = moved if low < moved < high else math.sqrt(low) * math.sqrt(high)
    return a


def _positive_root(rho: float, epsilon: float) -> float:
    """Positive root of 2ρa² + (ρ − ε)a − 1, above which ρ(1 + 2a) exceeds ε + 1/a."""
    if rho >= epsilon:
        return 2 / ((rho - epsilon) + math.hypot(rho - epsilon, math.sqrt(8 * rho))) if rho < 1e300 else 1 / rho
    return ((epsilon - rho) + math.hypot(epsilon - rho, math.sqrt(8 * rho))) / 4 / rho


def pure_delta(epsilon: float, at: float) -> float:
    """δ(at) of binary randomised response at ε, (e^ε − e^at)₊/(e^ε + 1), rounded up.

    Args:
        epsilon: ε of the mechanism, at least 0; may be ∞.
        at: The ε at which δ is evaluated, at least 0.
    """
    if at >= epsilon:
        return 0.0
    difference = -math.expm1(at - epsilon) / (
        1 + math.exp(-epsilon)
    )  # the difference is correctly rounded: no digits lost
    return min(1.0, math.nextafter(difference * (1 + _UP), math.inf))
