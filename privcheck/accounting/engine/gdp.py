"""Exact privacy curve of Gaussian releases: N(0, 1) against N(μ, 1).

Lemma gaussian-curve: N(0, 1) against N(μ, 1) has δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). Source: Balle & Wang 2018,
Theorem 8; Dong, Roth & Su 2022, Corollary 2.13.

Lemma gaussian-composition: Adaptive composition of Gaussian releases with data-independent spreads adds μ², so that it
stays on this curve. Source: Dong, Roth & Su 2022, Corollary 3.3.

With x = ε/μ − μ/2 the two terms share a factor, δ = φ(x)·(R(x) − R(x + μ)), R the Mills ratio. Where the ratios are
close, their difference is the odd half of a Taylor series around the middle, whose terms are positive moments ∫uᵏ
e^(−u²/2 − mu) du: no digits cancel, neither for tiny μ nor far in the tail.

Plain `math`, no arrays: one value takes a few microseconds. ln δ is concave in ε, because the loss has a log-concave
density and (1 − e^(ε − l))₊ is log-concave in both (Prékopa): Newton's steps towards a root approach it from the safe
side, and the returned value has been checked by evaluating δ there.
"""

from __future__ import annotations

import math
import sys
from typing import Final

from privcheck.errors import ParameterError
from privcheck.terms.symbols import Rounding

SMALLEST: Final = 5e-324  # the least positive float: what a positive δ that underflows is rounded up to
_FAR: Final = 1e150  # x beyond which x² overflows
_SLACK: Final = 1e-14  # of ln δ, relative to 1 + |ln δ|; the oracle tests see 1.1e-15
_ROOT_2: Final = math.sqrt(2)
_ROOT_HALF_PI: Final = math.sqrt(math.pi / 2)
_LOG_2: Final = math.log(2)
_HALF_LOG_2_PI: Final = 0.5 * math.log(2 * math.pi)
_SPLIT: Final = 134217729.0  # 2²⁷ + 1: halves the digits of a float
_STEPS: Final = 100  # of Newton's method, at most; it takes 3 to 6 where δ is below a half


def gdp_log_delta(mu: float, epsilon: float) -> float:
    """Compute ln δ(ε) of N(0, 1) against N(μ, 1); −∞ for μ = 0.

    Args:
        mu: Δ/std of all releases together, at least 0.
        epsilon: In nats, at least 0.

    Raises:
        ParameterError: An argument is negative or not a number.
    """
    _require("mu", mu)
    _require("epsilon", epsilon)
    if mu == 0 or math.isinf(epsilon):
        return -math.inf
    if math.isinf(mu):
        return 0.0
    return _log_delta(mu, _standard(mu, epsilon))[0]


def gdp_tangent(mu: float, epsilon: float) -> tuple[float, float]:
    """Logarithm ln δ(ε) and −d ln δ/dε: the tangent of δ over e^ε, which lies below the curve since δ is convex in e^ε.

    Args:
        mu: Δ/std, above 0 and finite.
        epsilon: In nats, at least 0 and finite.
    """
    log_delta, slope = _log_delta(mu, _standard(mu, epsilon))
    return log_delta, slope / mu


def gdp_delta(mu: float, epsilon: float, *, rounding: Rounding = "up") -> float:
    """Compute δ(ε) of N(0, 1) against N(μ, 1).

    Args:
        mu: Δ/std of all releases together.
        epsilon: In nats.
        rounding: "up" is never below the truth, "down" never above.

    Raises:
        ParameterError: An argument is negative or not a number.
    """
    log_delta = gdp_log_delta(mu, epsilon)
    if log_delta == -math.inf:
        return 0.0
    if rounding == "nearest":
        return math.exp(log_delta)
    slack = _slack(log_delta)
    if rounding == "up":  # one float more, because the exponential rounds as well
        return min(1.0, math.nextafter(math.exp(min(0.0, log_delta + slack)), math.inf))
    return max(0.0, math.nextafter(math.exp(log_delta - slack), -math.inf))


def gdp_epsilon(mu: float, delta: float, *, rounding: Rounding = "up") -> float:
    """Compute the ε at which N(0, 1) against N(μ, 1) has δ(ε) = δ; 0 where δ(0) ≤ δ already.

    Solved on ln δ over x = ε/μ − μ/2, where nothing cancels or overflows; the root is then moved outwards until δ
    there, with its rounding, is on the right side.

    Args:
        mu: Δ/std of all releases together.
        delta: In [0, 1); δ = 0 gives ∞, because Gaussian noise is not pure DP.
        rounding: "up" is never below the truth, "down" never above.

    Raises:
        ParameterError: An argument is negative or not a number, or δ ≥ 1.

    >>> round(gdp_epsilon(math.sqrt(0.2), 1e-6), 4)
    1.9945
    """
    _require("mu", mu)
    if not 0 <= delta < 1:
        raise ParameterError(f"expected delta in [0, 1), got {delta!r}", name="delta", given=delta)
    if mu == 0:
        return 0.0
    if delta == 0 or math.isinf(mu):
        return math.inf
    target = math.log(delta)
    x, slope = _root(mu, target)
    if rounding == "nearest":
        return max(0.0, mu * (x + mu / 2))
    if mu > _FAR:  # x is nothing beside μ/2, and μ² may overflow
        most = mu * (abs(x) + mu / 2) * (1 + 1e-15)
        return most if rounding == "up" else min(mu * (mu / 2) * (1 - 1e-15), sys.float_info.max)
    sign = 1.0 if rounding == "up" else -1.0
    shift = 0.0 if x == -mu / 2 else 2 * _slack(target) / slope if slope > 0 else 1e-10
    while True:
        epsilon = max(0.0, mu * (x + sign * shift + mu / 2) * (1 + sign * 5e-16))
        if rounding == "down" and epsilon == 0:
            return 0.0
        log_delta_here = _log_delta(mu, _standard(mu, epsilon))[0]
        if sign * (log_delta_here - target) <= -_slack(log_delta_here):
            return epsilon
        shift = max(2 * shift, 1e-16 * (abs(x) + mu))


def _root(mu: float, target: float) -> tuple[float, float]:
    """(x, −d ln δ/dx) at which ln δ meets the target; x is the lower end −μ/2 where δ(0) is below it."""
    x, lowest = _near_root(mu, target), -mu / 2
    if not x > lowest:
        x = lowest
    for _ in range(_STEPS):
        value, slope = _log_delta(mu, x)
        step = (target - value) / slope if slope > 0 else math.inf
        if x == lowest and step >= 0:
            return lowest, slope
        x = max(x - step, lowest)
        if abs(step) <= 1e-7 * (1 + abs(x)):  # what is left is its square
            break
    return x, slope


def _near_root(mu: float, target: float) -> float:
    """Approximate x at which ln δ meets the target: δ = φ(x)(R(x) − R(x + μ)) with an elementary R, iterated."""
    # δ ≤ ½exp(−x²/2) and δ ≤ μφ(x) for x ≥ 0
    most = min(-target - _LOG_2, math.log(mu) - _HALF_LOG_2_PI - target)
    if most <= 0:
        return 0.0
    x = math.sqrt(2 * most)
    for _ in range(3):
        y = x + mu
        gap = 4 / (3 * x + math.sqrt(x * x + 8)) - 4 / (3 * y + math.sqrt(y * y + 8))  # Sampford's bounds
        left = (math.log(gap) if gap > 1e-12 else math.log(mu / (1 + x * x))) - _HALF_LOG_2_PI - target
        x = math.sqrt(2 * left) if left > 0 else 0.0
    return x


def _slack(log_delta: float) -> float:
    """Bound on the rounding error of ln δ: relative to 1 − δ where δ is near 1, since 1 − δ is computed there."""
    return _SLACK * (1 - log_delta if log_delta < -0.1 else -8 * log_delta)


def _standard(mu: float, epsilon: float) -> float:
    """Point x = ε/μ − μ/2 to the last digits: where both terms are large and close, with the rounding of μ²."""
    if mu < 1 or mu > _FAR:
        return epsilon / mu - mu / 2
    square, large = mu * mu, _SPLIT * mu
    high = large - (large - mu)
    low = mu - high
    lost = ((high * high - square) + 2 * high * low) + low * low  # μ² = square + lost exactly (Dekker 1971)
    return ((epsilon - square / 2) - lost / 2) / mu


def _log_delta(mu: float, x: float) -> tuple[float, float]:
    """Logarithm ln δ and −d ln δ/dx at ε = μ(x + μ/2) ≥ 0, that is x ≥ −μ/2."""
    if x < -1:  # then μ ≥ 2, and 1 − δ = Φ(x) + φ(x)R(x + μ)
        density = math.exp(-x * x / 2 - _HALF_LOG_2_PI)
        ratio = _mills(x + mu)
        kept = 0.5 * math.erfc(-x / _ROOT_2) + density * ratio
        return math.log1p(-kept), mu * density * ratio / (1 - kept)
    if x > _FAR:
        return -(_FAR**2) / 2, 1.0  # far above the truth, which leaves the floats' range
    log_density = -x * x / 2 - _HALF_LOG_2_PI
    if mu <= 0.25 * max(1.0, x):
        mean, last = _close_ratios(mu, x)
        return log_density + math.log(mu) + math.log(mean), last / mean
    last = _mills(x + mu)
    gap = _mills(x) - last
    return log_density + math.log(gap), mu * last / gap


def _mills(x: float) -> float:
    """Mills ratio R(x) = (1 − Φ(x))/φ(x) at x ≥ −1."""
    if x < 8:
        return _ROOT_HALF_PI * math.exp(x * x / 2) * math.erfc(x / _ROOT_2)
    terms = _terms(x)
    fraction = _tail(x, terms)
    for k in range(terms, 0, -1):
        fraction = x + k / fraction
    return 1 / fraction


def _terms(x: float) -> int:
    """Number of terms of Laplace's continued fraction x + 1/(x + 2/(x + …)) for full precision at x ≥ 3."""
    return int(380 / (x * x)) + 7


def _tail(x: float, terms: int) -> float:
    """Approximate value of the continued fraction from a late term on: t = x + n/t."""
    return (x + math.sqrt(x * x + 4 * terms + 4)) / 2 if x < _FAR else x


def _close_ratios(mu: float, x: float) -> tuple[float, float]:
    """(R(x) − R(x + μ))/μ and R(x + μ), for μ at most a quarter of max(1, x).

    With h = μ/2, m = x + h and cₖ = hᵏ/k!·∫uᵏ e^(−u²/2 − mu) du, R(m ± h) = Σ(∓1)ᵏcₖ. The ratios of the moments are a
    continued fraction for m ≥ 3; below, their recurrence loses fewer digits forwards than the terms decline by.
    """
    h = mu / 2
    m = x + h
    whole, odd = _series_far(h, m) if m >= 3 else _series_near(h, m)
    return odd, whole


def _series_far(h: float, m: float) -> tuple[float, float]:
    """Σ(−1)ᵏcₖ, and Σcₖ/h over odd k, for k up to where the terms are negligible."""
    orders = min(20, int(40 / math.log(m / max(h, 1e-300))) + 3)
    ratios, terms = [0.0] * orders, _terms(m) + orders
    fraction = _tail(m, terms)
    for k in range(terms, 0, -1):
        if k <= orders:
            ratios[k - 1] = 1 / fraction  # cₖ/(h·cₖ₋₁)
        fraction = m + k / fraction
    whole, odd, term = 1 / fraction, 0.0, ratios[0] / fraction  # R(m), and c₁/h
    for k in range(1, orders):
        if k % 2:
            odd += term
            whole -= term * h
        else:
            whole += term * h
        term *= h * ratios[k]
    return whole, odd


def _series_near(h: float, m: float) -> tuple[float, float]:
    """The same sums by cₖ₊₁ = (hcₖ₋₁ − mcₖ)h/(k + 1)."""
    whole = before = _mills(m)  # h·cₖ₋₁/h
    odd, term = 0.0, 1 - m * before  # c₁/h
    for k in range(1, 30):
        if k % 2:
            odd += term
            whole -= term * h
        else:
            whole += term * h
        before, term = term * h, (before - m * term) * h / (k + 1)
        if before + abs(term) <= 1e-18 * odd:
            break
    return whole, odd


def _require(name: str, value: float) -> None:
    if not value >= 0:  # also refuses NaN
        raise ParameterError(f"expected {name} at least 0, got {value!r}", name=name, given=value)
