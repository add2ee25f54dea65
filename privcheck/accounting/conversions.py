"""From one guarantee to (ε, δ): Gaussian curve, zCDP, pure DP; each with its method and its direction of error.

1. Lemma papers-conversion: A ρ-zCDP mechanism is (ρ + 2√(ρ ln 1/δ), δ)-DP. Source: Bun & Steinke 2016, Proposition 1.3.
2. The best order: inf over α > 1 of ρα + ln(1 − 1/α) − ln(δα)/(α − 1) [lemma best-order]. Every α gives a valid bound,
   so the minimiser's accuracy affects tightness only; α is continuous, never a grid.
3. The curve itself, where every release is Gaussian.

The same numbers as plain floats are in `privcheck.accounting.engine`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from privcheck.accounting.engine import gdp, zcdp
from privcheck.accounting.engine.methods import Errs
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real, real
from privcheck.errors import ParameterError
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PrivacyProfile, PureDP, RenyiDP
from privcheck.terms.symbols import Rounding

_ERRS: Final[Mapping[Rounding, Errs]] = {"up": "exact", "nearest": "estimate", "down": "lower"}


def gdp_epsilon(mu: Real, delta: Real, *, rounding: Rounding = "up") -> Figure:
    """Compute the ε at which N(0, 1) against N(μ, 1) has δ(ε) = δ; 0 where δ(0) ≤ δ already.

    Balle & Wang 2018, Theorem 8; μ² = Σ(Δ/std)² for a composition of Gaussian releases (Dong, Roth & Su 2022).

    Args:
        mu: μ, at least 0; may be ∞.
        delta: In [0, 1); δ = 0 gives ∞, because Gaussian noise is not pure DP.
        rounding: "up" is never below the truth, "down" never above.

    Raises:
        ParameterError: An argument is out of range or not a number.

    >>> round(float(gdp_epsilon("0.5", 1e-6)), 4)
    2.2541
    """
    m, d = _level("mu", mu), _delta(delta)
    value = gdp.gdp_epsilon(m, d, rounding=_check(rounding))
    reason = "" if value < math.inf else "no pure DP: δ = 0" if d == 0 else "the noise is too small to bound the loss"
    safe = gdp.gdp_epsilon(m, d) if rounding == "nearest" else value
    return _figure(value, "Gaussian curve", _ERRS[rounding], reason, safe)


def gdp_delta(mu: Real, epsilon: Real, *, rounding: Rounding = "up") -> Figure:
    """Compute δ(ε) of N(0, 1) against N(μ, 1).

    Args:
        mu: μ, at least 0; may be ∞.
        epsilon: In nats, at least 0; may be ∞.
        rounding: "up" is never below the truth, "down" never above.

    Raises:
        ParameterError: An argument is out of range or not a number.
    """
    m, e = _level("mu", mu), _level("epsilon", epsilon)
    value = gdp.gdp_delta(m, e, rounding=_check(rounding))
    safe = gdp.gdp_delta(m, e) if rounding == "nearest" else value
    return _figure(value, "Gaussian curve", _ERRS[rounding], "", safe)


def zcdp_to_epsilon(rho: Real, delta: Real, *, method: Literal["classical", "optimal"] = "optimal") -> Figure:
    """Compute an ε for which every ρ-zCDP mechanism is (ε, δ)-DP, rounded up.

    Args:
        rho: ρ in nats, at least 0; may be ∞.
        delta: In [0, 1); δ = 0 gives ∞ unless ρ = 0.
        method: "classical" is the papers' formula, "optimal" the best order α; never more than the classical.

    Raises:
        ParameterError: An argument is out of range or not a number.

    >>> [round(zcdp_to_epsilon(0.1, 1e-6, method=m).value, 4) for m in ("classical", "optimal")]
    [2.4508, 2.1419]
    """
    if method == "optimal":
        return _figure(zcdp.zcdp_epsilon(_level("rho", rho), _delta(delta)), "zCDP, best order", "upper")
    if method == "classical":
        value = zcdp.classical_epsilon(_level("rho", rho), _delta(delta))
        return _figure(value, "zCDP, the papers' formula", "upper")
    raise ParameterError(f"expected method 'optimal' or 'classical', got {method!r}", name="method", given=method)


def zcdp_delta(rho: Real, epsilon: Real) -> Figure:
    """Compute a δ for which every ρ-zCDP mechanism is (ε, δ)-DP, rounded up.

    δ = inf over α > 1 of exp((α − 1)(αρ − ε))·(1 − 1/α)^α/(α − 1) (Canonne, Kamath & Steinke 2020, Proposition 12).

    Args:
        rho: ρ in nats, at least 0; may be ∞.
        epsilon: In nats, at least 0; may be ∞.

    Raises:
        ParameterError: An argument is out of range or not a number.
    """
    return _figure(zcdp.zcdp_delta(_level("rho", rho), _level("epsilon", epsilon)), "zCDP, best order", "upper")


def pure_delta(epsilon: Real, at: Real) -> Figure:
    """Compute δ(at) of the worst ε-DP mechanism, randomised response: (e^ε − e^at)₊/(e^ε + 1), rounded up.

    Every ε-DP mechanism is a post-processing of it [lemma response-dominates].

    Args:
        epsilon: ε of the mechanism, at least 0; may be ∞.
        at: The ε at which δ is evaluated, at least 0; may be ∞.

    Raises:
        ParameterError: An argument is out of range or not a number.

    >>> float(pure_delta(1.0, 1.0))
    0.0
    """
    value = zcdp.pure_delta(_level("epsilon", epsilon), _level("at", at))
    return _figure(value, "pure DP, randomised response", "exact")


def claim_epsilon(claim: Guarantee, values: Mapping[str, Fraction], delta: float) -> float:
    """Compute the ε that the claim implies at δ for every mechanism that satisfies it, rounded up.

    For ZCDP the best-order conversion, for RenyiDP the conversion at its order (Canonne, Kamath & Steinke 2020,
    Proposition 12); for GaussianDP its curve; for PureDP its ε; for ApproxDP its ε where δ is at least the claimed δ, ∞
    below it; for PrivacyProfile the least of its points.
    """
    if isinstance(claim, PrivacyProfile):
        return min(claim_epsilon(point, values, delta) for point in claim.points)
    if isinstance(claim, ZCDP):
        return zcdp.zcdp_epsilon(claim.rho.number(values, rounding="up"), _delta(delta))
    if isinstance(claim, GaussianDP):
        return gdp.gdp_epsilon(claim.mu.number(values, rounding="up"), _delta(delta))
    if isinstance(claim, RenyiDP):
        return _renyi_epsilon(claim, values, _delta(delta))
    epsilon = claim.epsilon.number(values, rounding="up")
    if isinstance(claim, PureDP):
        return epsilon
    assert isinstance(claim, ApproxDP)
    return epsilon if delta >= claim.delta.number(values, rounding="down") else math.inf


def claim_delta(claim: Guarantee, values: Mapping[str, Fraction], epsilon: float) -> float:
    """Compute the least δ that the claim implies at ε for every mechanism that satisfies it, rounded up."""
    if isinstance(claim, PrivacyProfile):
        return min(claim_delta(point, values, epsilon) for point in claim.points)
    if isinstance(claim, ZCDP):
        return zcdp.zcdp_delta(claim.rho.number(values, rounding="up"), _level("epsilon", epsilon))
    if isinstance(claim, GaussianDP):
        return gdp.gdp_delta(claim.mu.number(values, rounding="up"), _level("epsilon", epsilon))
    if isinstance(claim, RenyiDP):
        return _renyi_delta(claim, values, _level("epsilon", epsilon))
    pure = zcdp.pure_delta(claim.epsilon.number(values, rounding="up"), _level("epsilon", epsilon))
    if isinstance(claim, PureDP):
        return pure
    assert isinstance(claim, ApproxDP)
    given_up = claim.delta.number(values, rounding="up")
    return min(1.0, (given_up + (1 - given_up) * pure) * (1 + 1e-15))


def _renyi_epsilon(claim: RenyiDP, values: Mapping[str, Fraction], delta: float) -> float:
    """D_α + ln(1 − 1/α) − ln(δα)/(α − 1), rounded up."""
    order, divergence = claim.order.number(values, rounding="down"), claim.epsilon.number(values, rounding="up")
    rest = order - 1
    if delta == 0 or math.isinf(divergence):
        return math.inf
    if rest == 0:  # an order next to 1 implies nothing that floats could tell
        return math.inf
    # log1p: the logarithm of a quotient next to 1 has lost the digits that count at a high order
    terms = (divergence, -math.log1p(1 / rest), -math.log(delta) / rest, -math.log(order) / rest)
    return max(0.0, math.fsum(terms) + 1e-14 * math.fsum(map(abs, terms)))


def _renyi_delta(claim: RenyiDP, values: Mapping[str, Fraction], epsilon: float) -> float:
    """exp((α − 1)(D_α − ε))·(1 − 1/α)^α/(α − 1), at most 1, rounded up."""
    order, divergence = claim.order.number(values, rounding="down"), claim.epsilon.number(values, rounding="up")
    rest = order - 1
    if math.isinf(epsilon):
        return 0.0 if math.isfinite(divergence) else 1.0
    if rest == 0 or math.isinf(divergence):
        return 1.0
    terms = (rest * divergence, -rest * epsilon, -order * math.log1p(1 / rest), -math.log(rest))
    exponent = math.fsum(terms) + 1e-14 * math.fsum(map(abs, terms))
    return min(1.0, math.nextafter(math.exp(min(exponent, 0.0)) * (1 + 1e-15), math.inf))


def _level(name: str, value: Real) -> float:
    """Check a number that may be ∞ (a parameter of ∞ is no guarantee at all)."""
    if isinstance(value, (float, np.floating)) and value == math.inf:
        return math.inf
    return real(name, value, strict=False)


def _delta(value: Real) -> float:
    delta = real("delta", value, strict=False, most=1)
    if delta == 1:
        raise ParameterError("expected delta in [0, 1), got 1: every mechanism meets it", name="delta", given=value)
    return delta


def _check(rounding: Rounding) -> Rounding:
    if rounding not in _ERRS:
        message = f"expected rounding 'up', 'nearest' or 'down', got {rounding!r}"
        raise ParameterError(message, name="rounding", given=rounding)
    return rounding


def _figure(value: float, method: str, direction: Errs, reason: str = "", safe: float | None = None) -> Figure:
    bound = value if safe is None else safe
    return Figure(
        value=value,
        method=method,
        direction=direction,
        reason=reason,
        _certify=lambda: bound,
        _below=direction == "lower",
    )
