"""Success of attackers against a curve: tests between two neighbours, guesses at a prior, reconstruction.

All follow from δ(ε) in both directions.

Lemma largest-power: The largest power of a test at level x is inf_ε δ(ε) + e^ε x over all real ε, with δ(−ε) = 1 −
e^{−ε}(1 − δ(ε)) of the other direction. Source: Dong, Roth & Su 2022, Proposition 2.12.

Every ε gives a bound, so the accuracy of the minimiser affects tightness only. An attacker's success is rounded up, the
error down.

The curve's relation says which two neighbours are told apart: a user present or absent ("add-remove"), contributing or
contributing nothing ("zero-out"), or one user's data or another's ("replace-one"); "the user is in" below is read
accordingly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from privcheck.accounting.answers import fetch_job
from privcheck.accounting.engine.laws import UNIT, Floats, as_floats
from privcheck.accounting.engine.methods import Errs, atoms_of
from privcheck.accounting.reals import Real, real
from privcheck.errors import ParameterError

if TYPE_CHECKING:
    from privcheck.accounting.curve import Curve
    from privcheck.accounting.figures import Figure

_FARTHEST: Final = 700.0  # ε of a search
_POINTS: Final = 49  # ε of one look of a search
_LOOKS: Final = 4  # … of which each is 24 times as fine as the one before
_EDGE: Final = 1e-3  # of the smaller error: δ beyond which no ε is looked at


def true_positive_rate(curve: Curve, false_positive_rate: Real) -> Figure:
    """Largest power of a test of the given level, over all groups of users, rounded up.

    Args:
        curve: Curve under attack.
        false_positive_rate: Level x, in [0, 1].

    Raises:
        ParameterError: x is out of range.
    """
    x = real("false_positive_rate", false_positive_rate, strict=False, most=1)
    rates = [_power(branch, x) for branch in _groups(curve)]
    worst = max(rates, key=lambda f: f.value)
    return replace(worst, _certify=functools.cache(lambda: max(f.upper for f in rates)))


def trade_off(curve: Curve, false_positive_rate: Real) -> Figure:
    """Trade-off function: the least type II error of a test of the given level, rounded down.

    Args:
        curve: Curve under attack.
        false_positive_rate: Level x, in [0, 1].

    Raises:
        ParameterError: x is out of range.
    """
    x = real("false_positive_rate", false_positive_rate, strict=False, most=1)
    errors = [_error(branch, x) for branch in _groups(curve)]
    worst = min(errors, key=lambda f: f.value)
    return replace(worst, _certify=functools.cache(lambda: min(f.lower for f in errors)))


def bayes_risk(curve: Curve, prior: Real) -> Figure:
    """Least probability of a wrong guess whether the user is in, at a prior; rounded down.

    Lemma bayes-risk: The least risk at a prior π is min(π, 1 − π)·(1 − δ(|ln((1 − π)/π)|)). Proof: a guess is a test,
    of risk (1 − π)·x + π·(1 − power), and the least over all tests is π(1 − δ(ε)) at e^ε = (1 − π)/π.

    Args:
        curve: Curve under attack.
        prior: π, the probability that the user is in, in (0, 1).

    Raises:
        ParameterError: π is out of range.
    """
    likely = _prior(prior)
    rarer = min(likely, 1 - likely)
    epsilon = abs(math.log1p(-likely) - math.log(likely))
    figure = curve.delta(epsilon=max(0.0, epsilon - 8 * UNIT * (1 + epsilon)))  # δ falls: further left is a bound

    def risk(delta: float) -> float:
        return _down(rarer * (1 - min(1.0, delta)))

    return _below(figure, risk(figure.value), "least Bayes risk", lambda: risk(figure.upper))


def posterior(curve: Curve, prior: Real, *, false_positive_rate: Real) -> Figure:
    """Largest probability that a user is in after a positive test (its predictive value), rounded up.

    Lemma posterior: After a positive test of level x or above, a user of prior π is in with probability at most πT/(πT
    + (1 − π)x), T the largest power at level x. Proof: T/x falls as x grows. At x = 0 it is the bound of ε-DP,
    πe^ε/(πe^ε + 1 − π), and holds for every output.

    Args:
        curve: Curve under attack.
        prior: π, the probability that the user is in, in (0, 1).
        false_positive_rate: x, in [0, 1].

    Raises:
        ParameterError: π or x is out of range.
    """
    likely = _prior(prior)
    x = real("false_positive_rate", false_positive_rate, strict=False, most=1)
    figure = curve.epsilon(delta=0) if x == 0 else true_positive_rate(curve, x)

    def belief(prior_belief: float) -> float:
        against = (1 - likely) * (math.exp(-prior_belief) if x == 0 else x / prior_belief)
        return min(
            1.0,
            likely / (likely + against) * (1 + 16 * UNIT * (1 + (prior_belief if prior_belief < _FARTHEST else 0.0))),
        )

    return _above(figure, belief(figure.value), "predictive value", lambda: belief(figure.upper))


def reconstruction_rate(curve: Curve, prior: Real) -> Figure:
    """Largest probability of reconstructing a user's data, rounded up.

    Lemma reconstruction: A user's data is reconstructed with at most the largest power at level κ, κ the largest
    probability of success without them. Source: Hayes, Mahloujifar & Balle 2023, Theorem 2. Proof: success is an event
    with probability at most κ on the neighbouring data, averaged over the possible data of the user, and power is
    concave in it. That holds under every relation, since the neighbour's output does not depend on the user's data:
    they are absent, zeroed out, or replaced by those of another user, drawn independently.

    Args:
        curve: Curve under attack.
        prior: κ, the largest success probability of a guess made without any output, in [0, 1].

    Raises:
        ParameterError: κ is out of range.
    """
    level = real("prior", prior, strict=False, most=1)
    figure = true_positive_rate(curve, level)
    return replace(figure, method=f"{figure.method}, as reconstruction")


def _power(branch: Curve, x: float) -> Figure:
    if x == 1:
        return _exactly(1.0, "level 1")
    if (mu := _gaussian(branch)) is not None:
        value = min(1.0, _gaussian_side(x, mu) * (1 + _gaussian_slack(x, mu)))
        return _exactly(value, "Gaussian trade-off function")
    e = _place(branch, x)
    figure = branch.delta(epsilon=abs(e))

    def power(delta: float) -> float:
        if e >= 0:
            bound = (delta + math.exp(e) * x) * (1 + 8 * UNIT * (1 + e)) if x > 0 else delta
        else:
            bound = 1 - _bound_type_two(delta, x, -e) + 2 * UNIT
        return min(1.0, max(bound, x))

    return _above(figure, power(figure.value), f"{figure.method}, least over ε", lambda: power(figure.upper))


def _error(branch: Curve, x: float) -> Figure:
    if x == 1:
        return _exactly(0.0, "level 1", below=True)
    if (mu := _gaussian(branch)) is not None:
        value = 1.0 if x == 0 else _gaussian_side(x, mu, error=True) * (1 - _gaussian_slack(x, mu))
        return _exactly(value, "Gaussian trade-off function", below=True)
    e = _place(branch, x)
    figure = branch.delta(epsilon=abs(e))

    def error(delta: float) -> float:
        if e < 0:
            return max(0.0, _bound_type_two(delta, x, -e))
        grown = math.exp(e) * x * (1 + 8 * UNIT * (1 + e)) if x > 0 else 0.0
        return max(0.0, _down(math.fsum([1.0, -min(1.0, delta), -grown])))

    return _below(figure, error(figure.value), f"{figure.method}, least over ε", lambda: error(figure.upper))


def _bound_type_two(delta: float, x: float, e: float) -> float:
    """e^{−e}(1 − δ(e) − x), a bound on the type II error from ε = −e, rounded down."""
    return math.exp(-e) * max(0.0, math.fsum([1.0, -delta, -x])) * (1 - 8 * UNIT * (1 + e))


def _place(branch: Curve, x: float) -> float:
    """Find a real ε near the minimum of the bound on the power at level x; far out at level 0."""
    if x == 0:
        return _FARTHEST
    reach = branch.epsilon(delta=_EDGE * min(x, 1 - x)).value
    reach = min(reach, _FARTHEST) if math.isfinite(reach) else 40.0
    far = min(reach, -math.log(x))

    def bounds(e: Floats) -> Floats:
        deltas = branch.deltas(np.abs(e)).values
        return as_floats(np.where(e >= 0, deltas + np.exp(e) * x, 1 - np.exp(np.minimum(e, 0.0)) * (1 - deltas - x)))

    low, high, best = -reach, far, 0.0
    for _ in range(_LOOKS):
        points = np.append(np.linspace(low, high, _POINTS), best)
        best = float(points[bounds(points).argmin()])
        wide = (high - low) / (_POINTS - 1)
        low, high = max(-reach, best - wide), min(far, best + wide)
    last = np.array([best, 0.0, far, -reach, *_corners(branch, best)])
    return float(last[bounds(last).argmin()])


def _corners(branch: Curve, near: float) -> list[float]:
    """Losses nearest to ε of a discrete loss: δ is linear in e^ε between losses, so the least is at one of them."""
    job = fetch_job(branch.branches[0])
    largest = job.largest()
    corners = [largest, -largest] if largest <= _FARTHEST else []
    for direction in () if job.orders_only else job.directions:
        if (atoms := atoms_of(job, direction)) is not None:
            losses = np.concatenate([-atoms.losses[::-1], atoms.losses])
            corners += losses[np.argsort(np.abs(losses - near))[:6]].tolist()
    return [e for e in corners if abs(e) <= _FARTHEST]


def _gaussian(branch: Curve) -> float | None:
    """μ of a composition of Gaussians, None for any other composition."""
    job = fetch_job(branch.branches[0])
    plain = not job.laws and not job.orders_only and job.lost == 0 and not any(e.note for e in branch.branches[0])
    return math.sqrt(job.mu_squared) if plain and job.mu_squared < _FARTHEST**2 else None


def _gaussian_side(x: float, mu: float, *, error: bool = False) -> float:
    """Φ(Φ⁻¹(x) + μ), the power at level x, or 1 minus it (Dong, Roth & Su 2022, equation 6)."""
    from scipy.special import ndtr, ndtri

    if x == 0:
        return 0.0
    t = float(ndtri(x)) + mu
    return float(ndtr(-t if error else t))


def _gaussian_slack(x: float, mu: float) -> float:
    from scipy.special import ndtri

    t = abs(float(ndtri(x))) + mu if x > 0 else 0.0
    return 1e-14 * (1 + t * t)


def _prior(value: Real) -> float:
    prior = real("prior", value, most=1)
    if prior == 1:
        raise ParameterError(f"expected prior above 0 and below 1, got {value!r}", name="prior", given=value)
    return prior


def _groups(curve: Curve) -> list[Curve]:
    """Curves of the groups of users that see only some of the events, one per branch."""
    return [replace(curve, branches=(branch,)) for branch in curve.branches]


def _down(value: float) -> float:
    return value * (1 - 4 * UNIT)


def _above(figure: Figure, value: float, method: str, certify: Callable[[], float]) -> Figure:
    errs: Errs = "estimate" if figure.direction == "estimate" else "upper"
    return _make(figure, value, method, errs, certify)


def _below(figure: Figure, value: float, method: str, certify: Callable[[], float]) -> Figure:
    errs: Errs = "estimate" if figure.direction == "estimate" else "lower"
    return _make(figure, value, method, errs, certify, below=True)


def _make(
    figure: Figure, value: float, method: str, errs: Errs, certify: Callable[[], float], *, below: bool = False
) -> Figure:
    return replace(figure, value=value, method=method, direction=errs, _certify=functools.cache(certify), _below=below)


def _exactly(value: float, method: str, *, below: bool = False) -> Figure:
    from privcheck.accounting.figures import Figure

    return Figure(value=value, method=method, direction="exact", _certify=lambda: value, _below=below)
