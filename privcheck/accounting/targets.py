"""Targets of a calibration: (ε, δ), or a bound on an attacker's success."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from privcheck.accounting.curve import Curve
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real, real
from privcheck.errors import ParameterError
from privcheck.terms.guarantees import ApproxDP, Guarantee, PureDP

FAR: Final = 50.0  # by how much a target is missed or kept at most, where a figure is 0, 1 or ∞


class Target(Protocol):
    """Bound on a figure about a curve."""

    def figure(self, curve: Curve) -> Figure:
        """Compute the bounded figure."""
        ...

    def is_met(self, figure: Figure) -> bool:
        """Whether the figure, certified, keeps the bound."""
        ...

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified figure to the bound."""
        ...

    def miss(self, curve: Curve) -> float:
        """Distance of the tight value beyond the target, above 0 where it misses it: nearly linear in ln σ."""
        ...


@dataclass(frozen=True, slots=True)
class Advantage:
    """Upper bound on the excess of an attacker's true-positive rate over the false-positive rate: δ(0).

    Attributes:
        most: The bound, in (0, 1).
    """

    most: float

    def __init__(self, most: Real) -> None:
        object.__setattr__(self, "most", _open("most", most))

    def figure(self, curve: Curve) -> Figure:
        """Compute the advantage."""
        return curve.advantage()

    def is_met(self, figure: Figure) -> bool:
        """Whether the certified advantage is at most the target."""
        return figure.upper <= self.most

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified advantage to the target."""
        return math.log(figure.upper / self.most)

    def miss(self, curve: Curve) -> float:
        """Distance of the advantage beyond the target."""
        return _quantile(self.most) - _quantile(curve.advantage().value)


@dataclass(frozen=True, slots=True)
class TruePositiveRate:
    """Upper bound on the true-positive rate of every test of the given false-positive rate.

    Attributes:
        at: False-positive rate, in (0, 1).
        most: The bound, above `at` and below 1.
    """

    at: float
    most: float

    def __init__(self, *, at: Real, most: Real) -> None:
        object.__setattr__(self, "at", _open("at", at))
        object.__setattr__(self, "most", _open("most", most))
        if not self.most > self.at:
            message = f"expected most above at = {self.at:g}: guessing alone has that power; got {self.most:g}"
            raise ParameterError(message, name="most", given=most)

    def figure(self, curve: Curve) -> Figure:
        """Compute the true-positive rate."""
        return curve.true_positive_rate(self.at)

    def is_met(self, figure: Figure) -> bool:
        """Whether the certified rate is at most the target."""
        return figure.upper <= self.most

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified rate to the target."""
        return math.log(figure.upper / self.most)

    def miss(self, curve: Curve) -> float:
        """Distance of the rate beyond the target: as μ of Gaussian tests, on a logarithmic scale."""
        start = _normal(self.at)
        mu, most = (max(_normal(t) - start, 1e-12) for t in (self.figure(curve).value, self.most))
        return math.log(mu / most)


@dataclass(frozen=True, slots=True)
class Posterior:
    """Upper bound on the probability that the user is in after a positive test of that false-positive rate or more.

    Attributes:
        prior: Probability before the test, in (0, 1).
        at: False-positive rate, in (0, 1); 0 for every output, which requires ε-DP.
        most: The bound, above `prior` and below 1.
    """

    prior: float
    at: float
    most: float

    def __init__(self, *, prior: Real, at: Real, most: Real) -> None:
        object.__setattr__(self, "prior", _open("prior", prior))
        object.__setattr__(self, "at", real("at", at, strict=False, most=1))
        object.__setattr__(self, "most", _open("most", most))
        if not self.most > self.prior:
            message = f"expected most above prior = {self.prior:g}: this is known before the test; got {self.most:g}"
            raise ParameterError(message, name="most", given=most)
        if self.at > 0 and self._rate() >= 1:
            message = f"every mechanism keeps it: a test of level {self.at:g} cannot convince more than that"
            raise ParameterError(f"{message}; expected most below {self._all():g}", name="most", given=most)

    def _rate(self) -> float:
        """True-positive rate at which the posterior is reached."""
        return self.at * (self.most / (1 - self.most)) * ((1 - self.prior) / self.prior)

    def _all(self) -> float:
        return self.prior / (self.prior + (1 - self.prior) * self.at)

    def figure(self, curve: Curve) -> Figure:
        """Compute the posterior probability."""
        return curve.posterior(self.prior, false_positive_rate=self.at)

    def is_met(self, figure: Figure) -> bool:
        """Whether the certified probability is at most the target."""
        return figure.upper <= self.most

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified probability to the target."""
        return math.log(figure.upper / self.most)

    def miss(self, curve: Curve) -> float:
        """Distance of the posterior beyond the target."""
        if self.at > 0:
            return TruePositiveRate(at=self.at, most=self._rate()).miss(curve)
        odds = math.log(self.most / (1 - self.most)) - math.log(self.prior / (1 - self.prior))
        return _log_ratio(curve.epsilon(delta=0).value, odds)


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """Upper bound on the probability of reconstructing a user's data.

    Attributes:
        prior: Success probability of a guess made without any output, in (0, 1).
        most: The bound, above `prior` and below 1.
    """

    prior: float
    most: float

    def __init__(self, *, prior: Real, most: Real) -> None:
        same = TruePositiveRate(at=prior, most=most)
        object.__setattr__(self, "prior", same.at)
        object.__setattr__(self, "most", same.most)

    def figure(self, curve: Curve) -> Figure:
        """Compute the probability of reconstruction."""
        return curve.reconstruction_rate(self.prior)

    def is_met(self, figure: Figure) -> bool:
        """Whether the certified probability is at most the target."""
        return figure.upper <= self.most

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified probability to the target."""
        return math.log(figure.upper / self.most)

    def miss(self, curve: Curve) -> float:
        """Distance of the probability beyond the target."""
        return TruePositiveRate(at=self.prior, most=self.most).miss(curve)


@dataclass(frozen=True, slots=True)
class BayesRisk:
    """Lower bound on the error probability of the best guess whether a user is in.

    Attributes:
        prior: Probability that the user is in, in (0, 1).
        least: The bound, above 0 and below min(prior, 1 − prior), which a guess without any output attains.
    """

    prior: float
    least: float

    def __init__(self, *, prior: Real, least: Real) -> None:
        object.__setattr__(self, "prior", _open("prior", prior))
        object.__setattr__(self, "least", _open("least", least))
        if not self.least < min(self.prior, 1 - self.prior):
            message = f"expected least below min(prior, 1 − prior) = {min(self.prior, 1 - self.prior):g}, got {least!r}"
            raise ParameterError(f"{message}: a guess without any output is that good", name="least", given=least)

    def figure(self, curve: Curve) -> Figure:
        """Compute the risk."""
        return curve.bayes_risk(self.prior)

    def is_met(self, figure: Figure) -> bool:
        """Whether the certified risk is at least the target."""
        return figure.lower >= self.least

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified gain of a guess over a blind guess to the target's gain."""
        blind = min(self.prior, 1 - self.prior)
        return math.log((1 - figure.lower / blind) / (1 - self.least / blind))

    def miss(self, curve: Curve) -> float:
        """Distance of the risk beyond the target."""
        blind = min(self.prior, 1 - self.prior)
        share = max(0.0, 1 - self.figure(curve).value / blind)
        return _quantile(1 - self.least / blind) - _quantile(share)


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """Target (ε, δ)-DP.

    Attributes:
        epsilon: ε, in nats.
        delta: δ, below 1; 0 for ε-DP.
    """

    epsilon: float
    delta: float

    def figure(self, curve: Curve) -> Figure:
        """Compute ε at δ."""
        return curve.epsilon(delta=self.delta)

    def is_met(self, figure: Figure) -> bool:
        """Whether the certified ε is at most the target."""
        return figure.upper <= self.epsilon

    def excess(self, figure: Figure) -> float:
        """Logarithm of the ratio of the certified ε to the target."""
        return math.log(figure.upper / self.epsilon)

    def miss(self, curve: Curve) -> float:
        """Distance of δ at ε beyond the target; of ε itself for pure DP."""
        if self.delta == 0:
            return _log_ratio(curve.epsilon(delta=0).value, self.epsilon)
        return _quantile(self.delta) - _quantile(curve.delta(epsilon=self.epsilon).value)


def target_of(given: object) -> Target:
    """Check a target: (ε, δ), a guarantee with known numbers, or one of the classes here.

    Raises:
        ParameterError: The target is of another kind, or out of range.
    """
    if isinstance(given, Advantage | TruePositiveRate | Posterior | Reconstruction | BayesRisk):
        return given
    if isinstance(given, PureDP):
        return EpsilonDelta(given.epsilon.number({}, rounding="down"), 0.0)
    if isinstance(given, ApproxDP):
        return EpsilonDelta(given.epsilon.number({}, rounding="down"), given.delta.number({}, rounding="down"))
    if not isinstance(given, tuple) or len(given) != 2:
        message = f"expected target as (epsilon, delta), PureDP, ApproxDP or an attacker's Advantage(…), got {given!r}"
        raise ParameterError(message, name="target", given=given)
    epsilon, delta = real("epsilon", given[0]), real("delta", given[1], strict=False, most=1)
    if delta == 1:
        raise ParameterError("expected delta below 1, got 1: every mechanism meets it", name="delta", given=given)
    return EpsilonDelta(epsilon, delta)


TargetLike = tuple[Real, Real] | Guarantee | Advantage | TruePositiveRate | Posterior | Reconstruction | BayesRisk


def _open(name: str, value: Real) -> float:
    number = real(name, value, most=1)
    if number == 1:
        raise ParameterError(f"expected {name} below 1, got {value!r}", name=name, given=value)
    return number


def _quantile(delta: float) -> float:
    """asinh(−Φ⁻¹(δ)): for Gaussian noise nearly linear in ln σ, at large and small δ alike."""
    return max(-FAR, min(FAR, math.asinh(-_normal(delta))))


def _normal(p: float) -> float:
    """Φ⁻¹(p)."""
    from scipy.special import ndtri, ndtri_exp

    if p <= 0:
        return -math.inf
    return float(ndtri_exp(math.log(p))) if p < 0.5 else float(ndtri(p))


def _log_ratio(given: float, wanted: float) -> float:
    if given <= 0 or math.isinf(given):
        return -FAR if given <= 0 else FAR
    return max(-FAR, min(FAR, math.log(given / wanted)))
