"""Repeat and select: run a private mechanism a random number of times and release the best run, as in tuning.

The number of runs must be drawn from one of these laws, independently of the runs' outputs; a fixed number costs the
composition of all runs. The release is one run's whole output, chosen by a score that is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from privcheck.accounting.curve import Curve, compose, cumulants_of
from privcheck.accounting.engine.laws import Floats
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.events import Event, Piece
from privcheck.accounting.events.base import event, join_notes
from privcheck.accounting.reals import Real, real
from privcheck.errors import ParameterError

Repeats = Literal["geometric", "logarithmic", "negative binomial", "poisson"]
_SHAPES: Final = {"geometric": 1.0, "logarithmic": 0.0}
_UP: Final = 1 + 1e-12
# e^ε̂ of the theorem for Poisson at which δ is looked up; closer together at the usual orders, α = 1 + 1/(e^ε̂ − 1)
_RATIOS: Final = (1.0, *(1 + 2.0**i for i in (-9, *np.arange(-7.25, 1.5, 0.75), 2.25, 3.5, 6)))
_LOOKS: Final = (-20.0, 40.0, 0.5)  # ln z of the orders looked at: from, to, in steps of
_FINER: Final = 16  # by how much each further look is finer


def repeat_and_select(
    what: Event | Curve, *, mean: Real, law: Repeats = "logarithmic", shape: Real | None = None
) -> Event:
    """Event of the best of K runs of a mechanism, K random of the given mean.

    Lemma repeat-and-select: With D_α of one run, the best of truncated negative binomial K runs of shape η > −1 and
    probability γ has at most D_α + (1 + η)·min over λ ≥ 1 of [(1 − 1/λ)D_λ + ln(1/γ)/λ] + ln E[K]/(α − 1). Source:
    Papernot & Steinke 2022, Theorem 2.

    η = 1 is the geometric law (Liu & Talwar 2019), 0 the logarithmic one; ε-DP becomes (2 + η)ε-DP. For Poisson K
    (ibid., Theorem 6) ln(e^{−E[K]} + E[K]·e^{(α − 1)(D_α + E[K]δ)})/(α − 1) with δ of one run at ε = ln(1 + 1/(α − 1));
    the outcome without any run has a separate output. Only Rényi orders compose the result. Divergences grow with their
    order, so that of a smaller order is at most that of a larger one, without its large share of ln E[K]/(α − 1).

    Args:
        what: One run, with everything that it releases; the event takes its relation.
        mean: E[K]; above 1 for the truncated laws, above 0 for Poisson.
        law: Law of K.
        shape: η of a negative binomial law, above −1.

    Raises:
        ParameterError: A number is out of range, or one run has no Rényi divergences.

    >>> from privcheck import accounting as acc
    >>> best = acc.repeat_and_select(acc.gaussian(std=20), mean=100)
    >>> round(acc.compose(best).epsilon(delta=1e-6).value, 3)
    0.433
    >>> tuned = acc.repeat_and_select(acc.pure(epsilon=0.1), mean=50)
    >>> round(acc.compose(tuned).epsilon(delta=0).value, 9)
    0.2
    """
    if not isinstance(what, Event | Curve):
        raise ParameterError(f"expected an event or a curve, got {what!r}", name="what", given=what)
    curve = what if isinstance(what, Curve) else compose(what)
    if not math.isfinite(curve.renyi_divergence(1 + 1e-6).value):
        message = "expected runs with Rényi divergences; outright losses of a run have none"
        raise ParameterError(f"{message}: charge a number of runs instead", name="what", given=what)
    eta = _shape(law, shape)
    run = "; ".join(str(e) for branch in curve.branches for e in branch)
    runs = [e for branch in curve.branches for e in branch]
    note = join_notes(*(e.note for e in runs))
    drawn = any(piece.on_one_draw is not None for e in runs for piece, _ in e.pieces)
    if law == "poisson":
        average = real("mean", mean)
        deltas = curve.deltas([math.log(x) * (1 - 1e-15) for x in _RATIOS]).values.tolist()  # never below the truth
        piece: Piece = RenyiLaw(_make_monotone(PoissonBound(curve, average, tuple(deltas))), drawn=drawn)
        return event(
            "repeat_and_select", [(piece, 1)], 1, note, run=run, law=law, mean=average, relation=curve.relation
        )
    average = real("mean", mean, least=1)
    pure = curve.epsilon(delta=0).upper
    second = _second_term(curve, -math.log(_gamma(average, eta)) * _UP, pure)
    bound = SelectionBound(curve, (1 + eta) * second, math.log(average) + 1e-11, pure)
    made: Piece = RenyiLaw(_make_monotone(bound), (pure + bound.constant) * _UP, drawn)
    return event(
        "repeat_and_select", [(made, 1)], 1, note, run=run, law=law, mean=average, shape=eta, relation=curve.relation
    )


@dataclass(frozen=True, slots=True)
class SelectionBound:
    """K(z) of the best of a truncated negative binomial number of runs.

    Attributes:
        run: Curve of one run.
        constant: (1 + η) times the minimum over λ.
        log_mean: ln E[K].
        pure: ε of one run, ∞ where there is none.
    """

    run: Curve
    constant: float
    log_mean: float
    pure: float

    def __call__(self, z: Floats) -> Floats:
        """(m,) bounds at (m,) z, rounded up."""
        k = (_cumulants(self.run, z) + z * self.constant + self.log_mean) * _UP
        return np.minimum(k, z * ((self.pure + self.constant) * _UP))


@dataclass(frozen=True, slots=True)
class PoissonBound:
    """K(z) of the best of a Poisson number of runs, ln(e^{−E[K]} + E[K]·e^{z(D + E[K]δ)}); the first term is no run.

    Attributes:
        run: Curve of one run.
        mean: E[K].
        deltas: δ of one run at the ε of `_RATIOS`.
    """

    run: Curve
    mean: float
    deltas: tuple[float, ...] = field(repr=False)

    def __call__(self, z: Floats) -> Floats:
        """(m,) bounds at (m,) z, rounded up; δ is convex in e^ε = 1 + 1/z, so chords of what is known bound it."""
        delta = np.interp(1 + 1 / z, _RATIOS, self.deltas) + 1e-15 * self.deltas[0]
        some = _cumulants(self.run, z) + z * (self.mean * delta) + math.log(self.mean)
        none = -self.mean
        bound = np.maximum(some, none) + np.log1p(np.exp(-np.abs(some - none)))
        result: Floats = bound + 1e-12 * (1 + np.abs(some) + abs(none))
        return result


@dataclass(frozen=True, slots=True)
class Tangent:
    """K(z) made monotone: D grows with its order, so up to z₁ it is at most K(z₁)/z₁.

    The line is the tangent from the origin: K is convex and 0 at 0, which a bound with ln E[K] at 0 does not know.

    Attributes:
        bound: K(z).
        until: z₁.
        slope: K(z₁)/z₁.
    """

    bound: SelectionBound | PoissonBound
    until: float
    slope: float

    def __call__(self, z: Floats) -> Floats:
        """(m,) bounds at (m,) z, rounded up."""
        k = self.bound(z)
        return np.where(z <= self.until, np.minimum(k, z * self.slope), k)


def _shape(law: str, shape: Real | None) -> float:
    if law == "negative binomial":
        if shape is None:
            raise ParameterError("expected shape above -1 with law='negative binomial', got none", name="shape")
        return real("shape", shape, least=-1)
    if law not in ("geometric", "logarithmic", "poisson"):
        message = f"expected law as 'geometric', 'logarithmic', 'negative binomial' or 'poisson', got {law!r}"
        raise ParameterError(message, name="law", given=law)
    if shape is not None:
        raise ParameterError(f"expected no shape with law={law!r}, got {shape!r}", name="shape", given=shape)
    return _SHAPES.get(law, 0.0)


def _gamma(mean: float, eta: float) -> float:
    """γ at which the truncated negative binomial law has at most that mean, within 1e-9 of it."""
    low, high = 1e-300, 1.0
    while high / low > 1 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if truncated_mean(middle, eta) > mean else (low, middle)
    return low


def truncated_mean(gamma: float, eta: float) -> float:
    """E[K] of the truncated negative binomial law: η(1 − γ)/(γ(1 − γ^η)), (1/γ − 1)/ln(1/γ) at η = 0."""
    log_gamma = math.log(gamma)
    if abs(eta * log_gamma) < 1e-8:
        return (1 / gamma - 1) / -log_gamma / (1 + eta * log_gamma / 2) if gamma < 1 else 1.0
    return eta * (1 / gamma - 1) / -math.expm1(eta * log_gamma)


def _second_term(curve: Curve, log_gamma: float, pure: float) -> float:
    """Min over λ ≥ 1 of (1 − 1/λ)D_λ + ln(1/γ)/λ, in λ = 1 + z: (K(z) + ln(1/γ))/(1 + z); ln(1/γ) at 1, ε at ∞."""

    def at(z: Floats) -> Floats:
        result: Floats = (_cumulants(curve, z) + log_gamma) / (1 + z)
        return result

    return min(log_gamma, pure, _least(at)[1]) * _UP


def _make_monotone(bound: SelectionBound | PoissonBound) -> Tangent:
    z, slope = _least(lambda z: bound(z) / z)
    return Tangent(bound, z, slope * _UP)


def _least(function: Callable[[Floats], Floats]) -> tuple[float, float]:
    """(z, value) of the least of a function of z > 0 among orders that are looked at ever more closely."""
    low, high, width = _LOOKS
    s = np.arange(low, high, width)
    best, least = 0.0, math.inf
    for _ in range(4):
        values = function(np.exp(s))
        i = int(np.argmin(values))
        if values[i] < least:
            best, least = float(s[i]), float(values[i])
        s = np.linspace(best - width, best + width, 2 * _FINER + 1)
        width /= _FINER
    return math.exp(best), least


def _cumulants(curve: Curve, z: Floats) -> Floats:
    """K of one run, at least 1e-9 times K(1e-9)/1e-9 where z is smaller: D grows with its order."""
    at = np.maximum(z, 1e-9)
    result: Floats = cumulants_of(curve, at) * (z / at)
    return result
