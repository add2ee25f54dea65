"""Repeat and select: run a private mechanism a random number of times and release the best run, as in tuning.

The number of runs must be drawn from one of these laws, independently of the runs' outputs; a fixed number costs the
composition of all runs. The release is one run's whole output, chosen by a score that is part of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal

from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.events import Event, Piece
from privcheck.accounting.events.base import event, join_notes
from privcheck.accounting.reals import Real, real
from privcheck.errors import ParameterError

Repeats = Literal["geometric", "logarithmic", "negative binomial", "poisson"]
_SHAPES: Final = {"geometric": 1.0, "logarithmic": 0.0}
_UP: Final = 1 + 1e-12
_LOOKS: Final = [1 + 10 ** (i / 12 - 2) for i in range(61)]  # orders for the second term, from 1.01 to 1 001
_EPSILONS: Final = [10 ** (i / 10 - 4) for i in range(51)]  # ε̂ of the first theorem for Poisson, from 1e-4 to 10


def repeat_and_select(
    what: Event | Curve, *, mean: Real, law: Repeats = "logarithmic", shape: Real | None = None
) -> Event:
    """Event of the best of K runs of a mechanism, K random of the given mean.

    Lemma repeat-and-select: With D_α of one run, the best of truncated negative binomial K runs of shape η > −1 and
    probability γ has at most D_α + (1 + η)·min over λ ≥ 1 of [(1 − 1/λ)D_λ + ln(1/γ)/λ] + ln E[K]/(α − 1). Source:
    Papernot & Steinke 2022, Theorem 2.

    η = 1 is the geometric law (Liu & Talwar 2019), 0 the logarithmic one; ε-DP becomes (2 + η)ε-DP. For Poisson K
    (ibid., Theorem 6) ln(e^{−E[K]} + E[K]·e^{(α − 1)(D_α + E[K]δ)})/(α − 1) with δ of one run at ε = ln(1 + 1/(α − 1));
    the outcome without any run has a separate output. Only Rényi orders compose the result.

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
        bound = PoissonBound(curve, average, tuple((e, curve.delta(epsilon=e).upper) for e in _EPSILONS))
        piece: Piece = RenyiLaw(bound, drawn=drawn)
        return event(
            "repeat_and_select", [(piece, 1)], 1, note, run=run, law=law, mean=average, relation=curve.relation
        )
    average = real("mean", mean, least=1)
    log_gamma = -math.log(_gamma(average, eta)) * _UP
    second = min([log_gamma, *((1 - 1 / a) * _divergence(curve, a) + log_gamma / a for a in _LOOKS)]) * _UP
    pure = curve.epsilon(delta=0).upper
    whole = SelectionBound(curve, (1 + eta) * second, math.log(average) + 1e-11)
    made: Piece = RenyiLaw(whole, (2 + eta) * pure * _UP, drawn)
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
    """

    run: Curve
    constant: float
    log_mean: float

    def __call__(self, z: float) -> float:
        """Evaluate the bound, rounded up."""
        return (z * (_divergence(self.run, 1 + z) + self.constant) + self.log_mean) * _UP


@dataclass(frozen=True, slots=True)
class PoissonBound:
    """K(z) of the best of a Poisson number of runs, ln(e^{−E[K]} + E[K]·e^{z(D + E[K]δ)}); the first term is no run.

    Attributes:
        run: Curve of one run.
        mean: E[K].
        profile: ε and certified δ of one run.
    """

    run: Curve
    mean: float
    profile: tuple[tuple[float, float], ...] = field(repr=False)

    def __call__(self, z: float) -> float:
        """Evaluate the bound, rounded up; δ is bounded at the next smaller ε of the table."""
        epsilon = math.log1p(1 / z) * (1 - 1e-15)
        delta = min((d for e, d in self.profile if e <= epsilon), default=1.0)
        some = z * (_divergence(self.run, 1 + z) + self.mean * delta) + math.log(self.mean)
        none = -self.mean
        bound = max(some, none) + math.log1p(math.exp(-abs(some - none)))
        return bound + 1e-12 * (1 + abs(some) + abs(none))


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


def _divergence(curve: Curve, order: float) -> float:
    return curve.renyi_divergence(max(order, 1 + 1e-9)).value  # D grows with its order
