"""Accuracy of additive noise: error bound of an answer, and the largest spread that keeps the error within a bound."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final

from privcheck.accounting.events import Event
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real, real, whole
from privcheck.errors import ParameterError

_SPREADS: Final = {"gaussian": "std", "laplace": "scale", "discrete_gaussian": "std", "discrete_laplace": "scale"}
_UP: Final = 1 + 1e-12  # rounding of a quantile
_MOST_STD: Final = 1e6  # of discrete Gaussian noise whose tail is summed


def error_bound(event: Event, *, probability: Real, answers: Real = 1) -> Figure:
    """Compute the least t with P(|noise| > t) ≤ β for one release, rounded up.

    Laplace: b ln 1/β; Gaussian: σΦ⁻¹(1 − β/2); on the integers, whole t, from the tails themselves. For several answers
    with independent noise, P(max |noise| > t) ≤ β.

    Args:
        event: Gaussian, Laplace, discrete Gaussian or discrete Laplace noise.
        probability: β, with which the error may be larger, in (0, 1).
        answers: Number of answers.

    Raises:
        ParameterError: The event is of another kind, or a number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.error_bound(acc.laplace(scale=2), probability=0.05).value, 4)
    5.9915
    """
    spread = _spread_name(event.kind) if isinstance(event, Event) else _spread_name(repr(event))
    quantile = _quantile(event.kind, event.parameter(spread), _single(probability, answers))
    return Figure(
        value=quantile, method=f"quantile of {event.kind} noise", direction="exact", _certify=lambda: quantile
    )


def spread_for_error(kind: str | Callable[..., Event], *, error: Real, probability: Real, answers: Real = 1) -> float:
    """Compute the largest spread with P(|noise| > t) ≤ β, rounded down: std of Gaussian, b of Laplace noise.

    Args:
        kind: "gaussian", "laplace", "discrete_gaussian", "discrete_laplace", or the function of that name.
        error: t; on the integers the least error above it is ⌊t⌋ + 1.
        probability: β, with which the error may be larger, in (0, 1).
        answers: Number of answers with independent noise.

    Raises:
        ParameterError: The kind is unknown, or a number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.spread_for_error(acc.laplace, error=10, probability=0.05), 4)
    3.3381
    """
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", repr(kind))
    _spread_name(name)
    t, single = real("error", error), _single(probability, answers)
    if name in ("gaussian", "laplace"):
        return t / _quantile(name, 1.0, single) / _UP
    low, high = 1e-2, max(4.0, 4 * (t + 1) / -math.log(single) + 4 * (t + 1))
    if _tail(name, low, t) > single:
        message = f"no {name} noise of spread {low:g} or more is within {t:g} so often; expected a larger error"
        raise ParameterError(message, name="error", given=error)
    while _tail(name, high, t) <= single:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(name, middle, t) <= single else (low, middle)
    return low


def _single(probability: Real, answers: Real) -> float:
    """β of one answer: 1 − (1 − β)^{1/n}, rounded down."""
    beta, n = real("probability", probability, most=1), whole("answers", answers)
    if beta == 1:
        raise ParameterError("expected probability below 1, got 1: every noise meets it", name="probability", given=1)
    return -math.expm1(math.log1p(-beta) / n) / _UP


def _spread_name(kind: str) -> str:
    if kind not in _SPREADS:
        message = f"expected additive noise ({', '.join(_SPREADS)}), got {kind}"
        raise ParameterError(message, name="event", given=kind)
    return _SPREADS[kind]


def _quantile(kind: str, spread: float, beta: float) -> float:
    from scipy.special import ndtri, ndtri_exp

    if kind == "laplace":
        return spread * -math.log(beta) * _UP
    if kind == "gaussian":
        return spread * -float(ndtri_exp(math.log(beta / 2)) if beta < 1e-3 else ndtri(beta / 2)) * _UP
    low, high = -1, 1  # whole numbers: the tail beyond low is too heavy
    while _tail(kind, spread, high) > beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _tail(kind, spread, middle) > beta else (low, middle)
    return float(high)


def _tail(kind: str, spread: float, t: float) -> float:
    """P(|X| > t) of noise on the integers, rounded up."""
    first = math.floor(t) + 1
    if kind == "discrete_laplace":  # Σ_{x ≥ m} of (1 − a)/(1 + a)·a^x, a = e^{−1/b}, on both sides
        return min(1.0, 2 * math.exp(-first / spread) / (1 + math.exp(-1 / spread)) * _UP)
    if spread > _MOST_STD:
        message = f"expected std at most {_MOST_STD:g} for sums over the integers, got {spread:g}"
        raise ParameterError(f"{message}; ask for Gaussian noise of that std", name="std", given=spread)
    total, above = _gaussian_sums(spread, first)
    return min(1.0, 2 * above / total * _UP)


@functools.lru_cache(maxsize=64)
def _gaussian_sums(spread: float, first: int) -> tuple[float, float]:
    """Sums of e^{−x²/2σ²} over all integers, and over the integers from `first` on."""
    import numpy as np

    reach = math.ceil(40 * spread) + 1
    inner = np.arange(1, reach, dtype=np.float64) / spread
    total = 1 + 2 * float(np.exp(-inner * inner / 2).sum())
    outer = np.arange(first, first + reach, dtype=np.float64) / spread
    return total, float(np.exp(-outer * outer / 2).sum()) + 5e-324
