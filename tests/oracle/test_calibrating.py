"""Calibration against closed forms and counting: what is returned keeps its target, the next one does not."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import norm

from privcheck import accounting as acc
from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.errors import ParameterError


def gaussian(s):
    return acc.gaussian(std=s)


@given(st.floats(1e-4, 0.9))
@settings(max_examples=30, deadline=None)
def test_the_least_noise_for_an_advantage(most):
    """δ(0) = 2Φ(μ/2) − 1 of Gaussian noise."""
    found = acc.calibrate(acc.Advantage(most), gaussian)
    assert found.scale == pytest.approx(1 / (2 * ndtri((1 + most) / 2)), rel=1e-7)
    assert found.figure.upper <= most


@given(st.floats(1e-8, 0.8), st.floats(0.001, 0.99))
@settings(max_examples=30, deadline=None)
def test_the_least_noise_for_a_true_positive_rate(at, share):
    """Power Φ(Φ⁻¹(x) + μ) at level x."""
    most = at + share * (1 - at)
    found = acc.calibrate(acc.TruePositiveRate(at=at, most=most), gaussian)
    assert found.scale == pytest.approx(1 / (ndtri(most) - ndtri(at)), rel=1e-6)
    assert found.figure.upper <= most
    same = acc.calibrate(acc.Reconstruction(prior=at, most=most), gaussian)
    assert same.scale == found.scale


@given(st.floats(0.01, 0.9), st.floats(1e-6, 0.3), st.floats(0.05, 0.9))
@settings(max_examples=30, deadline=None)
def test_the_least_noise_for_a_posterior(prior, at, share):
    highest = prior / (prior + (1 - prior) * at)
    most = prior + share * (highest - prior)
    found = acc.calibrate(acc.Posterior(prior=prior, at=at, most=most), gaussian)
    rate = norm.cdf(norm.ppf(at) + 1 / found.scale)
    assert prior * rate / (prior * rate + (1 - prior) * at) == pytest.approx(most, rel=1e-6)
    assert found.figure.upper <= most


def test_a_posterior_after_any_output_asks_for_pure_dp():
    found = acc.calibrate(acc.Posterior(prior=0.1, at=0, most=0.5), lambda s: acc.laplace(scale=s, count=2))
    assert found.scale == pytest.approx(2 / math.log(9), rel=1e-7)
    assert found.figure.upper <= 0.5


@given(st.floats(0.01, 0.99), st.floats(0.05, 0.95))
@settings(max_examples=30, deadline=None)
def test_the_least_noise_for_a_bayes_risk(prior, share):
    least = share * min(prior, 1 - prior)
    found = acc.calibrate(acc.BayesRisk(prior=prior, least=least), gaussian)
    mu = 1 / found.scale
    cut = mu / 2 + math.log((1 - prior) / prior) / mu  # guess "in" above it
    risk = (1 - prior) * norm.sf(cut) + prior * norm.cdf(cut - mu)
    assert risk == pytest.approx(least, rel=1e-6)
    assert found.figure.lower >= least


FAMILIES = {
    "gaussian": lambda s: acc.gaussian(std=s, count=100),
    "laplace": lambda s: acc.laplace(scale=s, count=20),
    "mixed": lambda s: acc.compose(acc.gaussian(std=s, count=10), acc.laplace(scale=3 * s, count=10)),
    "response": lambda s: acc.randomized_response(epsilon=1 / s, count=30),
    "zcdp": lambda s: acc.zcdp(rho=1 / s**2),
    "renyi": lambda s: acc.renyi_curve(lambda a: a / s),
    "groups": lambda s: acc.parallel(acc.gaussian(std=s), acc.laplace(scale=s)),
}
TARGETS = {
    "strict": (0.1, 1e-9),
    "loose": (5.0, 1e-3),
    "advantage": acc.Advantage(0.05),
    "rate": acc.TruePositiveRate(at=0.01, most=0.03),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_returned_keeps_its_target_and_less_does_not(family, name):
    make, target = FAMILIES[family], TARGETS[name]
    found = acc.calibrate(target, make)
    at = found.target.figure(acc.compose(make(found.scale)))
    less = found.target.figure(acc.compose(make(found.scale * (1 - 1e-3))))
    assert found.target.is_met(at)
    assert not found.target.is_met(less)
    assert found.tolerance < 1e-3


@pytest.mark.parametrize("start", [1e-6, 0.3, 1.0, 1e5])
def test_the_start_does_not_matter(start):
    found = acc.calibrate((1.0, 1e-6), FAMILIES["gaussian"], start=start)
    assert found.scale == pytest.approx(42.2468, rel=1e-5)


def test_the_largest_sampling_rate():
    def family(rate):
        return acc.poisson_gaussian(std=0.8, rate=rate, relation="add-remove")

    found = acc.calibrate((1.0, 1e-5), family, seek="largest", start=0.1, within=(1e-6, 1))
    assert acc.compose(family(found.scale)).epsilon(delta=1e-5).upper <= 1.0
    assert acc.compose(family(found.scale * (1 + 1e-3))).epsilon(delta=1e-5).value > 1.0
    whole = acc.calibrate(
        (9.0, 1e-5),
        lambda q: acc.poisson_gaussian(std=30, rate=q, relation="add-remove"),
        seek="largest",
        within=(1e-6, 1),
    )
    assert whole.scale == 1.0


COUNTED = {
    "gaussian": (lambda n: acc.gaussian(std=20, count=n), "largest", 300),
    "laplace": (lambda n: acc.laplace(scale=20, count=n), "largest", 100),
    "batch": (lambda n: acc.poisson_gaussian(std=1.2, rate=n / 500, relation="add-remove"), "largest", 499),
    "group": (lambda n: acc.gaussian(std=20, sensitivity=n), "largest", 30),
    "users": (lambda n: acc.shuffled(local_epsilon=2.0, users=n, relation="replace-one"), "least", 3000),
    "categories": (lambda n: acc.gaussian(std=n), "least", 100),
}


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("target", [(1.0, 1e-5), acc.Advantage(0.2)], ids=str)
@pytest.mark.parametrize("start", [1, 20, 10**6])
def test_whole_numbers_against_counting(name, target, start):
    """Counted up or down by bisection over all numbers with nothing but the certified figure."""
    family, seek, high = COUNTED[name]
    found = acc.calibrate_whole(target, family, seek=seek, within=(1, high), start=start)

    def is_met(n):
        return found.target.is_met(found.target.figure(acc.compose(family(n))))

    bad, good = (high + 1, 1) if seek == "largest" else (0, high)
    assert is_met(good)
    while abs(bad - good) > 1:
        middle = (bad + good) // 2
        bad, good = (bad, middle) if is_met(middle) else (middle, good)
    assert found.value == good
    assert found.target.is_met(found.figure)
    assert (found.beyond is None) == (good in (1, high) and bad in (0, high + 1))
    assert found.beyond is None or not found.target.is_met(found.beyond)


def test_the_most_steps_of_many():
    found = acc.calibrate_whole((1.0, 1e-6), lambda n: acc.gaussian(std=1e4, count=n), within=(1, 10**12))
    mu = math.sqrt(found.value) / 1e4
    assert gdp_epsilon(mu, 1e-6) <= 1.0
    assert gdp_epsilon(mu * math.sqrt(1 + 2 / found.value), 1e-6) > 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.calibrate((1.0, 1e-6), lambda s: acc.gaussian(std=1 / s)),
        lambda: acc.calibrate((1.0, 1e-6), gaussian, seek="largest"),
        lambda: acc.calibrate((1.0, 1e-6), lambda _: acc.gaussian(std=0.1)),
        lambda: acc.calibrate((1.0, 1e-6), gaussian, seek="more"),
        lambda: acc.calibrate((1.0, 1e-6), gaussian, within=(2, 1)),
        lambda: acc.calibrate((1.0, 0), gaussian),
        lambda: acc.calibrate((1.0, 1e-6), lambda s: acc.gaussian(std=-s)),
        lambda: acc.calibrate_whole((1.0, 1e-6), lambda n: acc.gaussian(std=1, count=n)),
        lambda: acc.calibrate_whole((1.0, 1e-6), lambda n: acc.gaussian(std=n)),
        lambda: acc.calibrate_whole((1.0, 1e-6), lambda n: acc.gaussian(std=9, count=n), within=(5, 5)),
        lambda: acc.Advantage(0),
        lambda: acc.Advantage(1),
        lambda: acc.TruePositiveRate(at=0.2, most=0.1),
        lambda: acc.Posterior(prior=0.5, at=0.1, most=0.4),
        lambda: acc.Posterior(prior=0.5, at=0.5, most=0.9),
        lambda: acc.BayesRisk(prior=0.3, least=0.3),
        lambda: acc.Reconstruction(prior=0, most=0.3),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(make):
    with pytest.raises(ParameterError, match=r"expected|no scale|every mechanism"):
        make()


def test_a_family_that_turns_around_is_refused():
    """More steps with the same total budget of noise, then fewer: no number is the largest."""
    turning = lambda n: acc.gaussian(std=1 + abs(n - 40), count=1)  # noqa: E731 - one line says it
    with pytest.raises(ParameterError, match="vary one parameter alone"):
        acc.calibrate((1.0, 1e-6), turning, start=1, within=(1, 1000), seek="largest")


def test_only_epsilon_targets_tell_an_epsilon():
    found = acc.calibrate(acc.Advantage(0.1), gaussian)
    for name in ("epsilon", "delta"):
        with pytest.raises(ParameterError, match="see figure"):
            getattr(found, name)


def discrete(kind, spread, t):
    """P(|X| > t) by summing the law itself."""
    mpmath.mp.dps = 30
    reach = int(80 * spread) + t + 50
    weight = (
        (lambda x: mpmath.exp(-abs(x) / mpmath.mpf(spread)))
        if kind == "discrete_laplace"
        else (lambda x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(spread) ** 2)))
    )
    total = mpmath.fsum(weight(x) for x in range(-reach, reach + 1))
    return mpmath.fsum(weight(x) for x in range(-reach, reach + 1) if abs(x) > t) / total


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("spread", [0.3, 2.0, 7.5])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-6])
def test_errors_of_noise_on_the_integers(kind, spread, beta):
    event = acc.discrete_laplace(scale=spread) if kind == "discrete_laplace" else acc.discrete_gaussian(std=spread)
    t = acc.error_bound(event, probability=beta).value
    assert t == int(t)
    assert discrete(kind, spread, int(t)) <= beta
    assert t == 0 or discrete(kind, spread, int(t) - 1) > beta
    found = acc.spread_for_error(kind, error=5, probability=beta)
    assert discrete(kind, found, 5) <= beta
    assert discrete(kind, found * (1 + 1e-6), 5) > beta


@given(st.floats(1e-3, 1e3), st.floats(1e-12, 0.99), st.integers(1, 1000))
@settings(max_examples=60, deadline=None)
def test_errors_of_continuous_noise(spread, beta, answers):
    """Of n independent answers 1 − (1 − tail(t))^n ≤ β, and no smaller t does."""
    for event, tail in (
        (acc.gaussian(std=spread), lambda t: mpmath.erfc(t / spread / mpmath.sqrt(2))),
        (acc.laplace(scale=spread), lambda t: mpmath.exp(-t / mpmath.mpf(spread))),
    ):
        mpmath.mp.dps = 40
        t = acc.error_bound(event, probability=beta, answers=answers).value
        assert 1 - (1 - tail(t)) ** answers <= beta
        assert 1 - (1 - tail(t * (1 - 1e-9) - 1e-12 * spread)) ** answers > beta
        back = acc.spread_for_error(event.kind, error=t, probability=beta, answers=answers)
        assert spread * (1 - 1e-9) <= back <= spread


def test_errors_of_other_events_are_refused():
    for make in (
        lambda: acc.error_bound(acc.pure(epsilon=1), probability=0.1),
        lambda: acc.error_bound(3, probability=0.1),
        lambda: acc.error_bound(acc.gaussian(std=1), probability=1),
        lambda: acc.spread_for_error(acc.pure, error=1, probability=0.1),
        lambda: acc.spread_for_error("discrete_laplace", error=0.5, probability=1e-50),
    ):
        with pytest.raises(ParameterError, match="expected"):
            make()


def test_evaluations_are_few():
    """DP-SGD is dear: its σ has to come from a dozen curves."""
    asked = []

    def family(std):
        asked.append(std)
        return acc.gaussian(std=std, count=100)

    acc.calibrate((1.0, 1e-5), family)
    assert len(asked) <= 14
    assert all(a != b for a, b in pairwise(sorted(set(asked))))
    assert np.isfinite(asked).all()


def test_a_part_that_exceeds_the_target_alone_is_named_and_not_the_other_end():
    fixed = lambda s: acc.compose(acc.gaussian(std=s), acc.pure(epsilon=2))  # noqa: E731
    with pytest.raises(ParameterError, match="where it costs least, the figure is 2; a part that does not depend"):
        acc.calibrate((1, 1e-6), fixed)
    with pytest.raises(ParameterError, match=r"at 1, where it costs least, .* a single release, exceeds"):
        acc.calibrate_whole((1, 1e-6), lambda n: acc.gaussian(std=0.1, count=n))
