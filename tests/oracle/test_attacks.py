"""What an attacker can do, against every test there is between two laws on a few outcomes."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privcheck import accounting as acc
from privcheck.errors import ParameterError

LEVELS = (0.0, 1e-9, 0.001, 0.1, 0.37, 0.5, 0.8, 0.999, 1.0)
CASES = range(20)


def masses(rng, n, *, zeros):
    p, q = (rng.integers(1, 60, n).tolist() for _ in range(2))
    if zeros:
        p[0] = q[-1] = 0
    return [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]


def symmetric(p, q):
    half = Fraction(1, 2)
    return [half * x for x in (*p, *q)], [half * x for x in (*q, *p)]


def naive_power(p, q, level):
    """Neyman and Pearson: outcomes in the order of their likelihood ratio until the level is used up."""
    left, power = Fraction(level), Fraction(0)
    for a, b in sorted(zip(p, q, strict=True), key=lambda x: -(x[0] / x[1]) if x[1] else -math.inf):
        share = min(Fraction(1), left / b) if b else Fraction(1)
        power, left = power + share * a, left - share * b
    return power


# [lemma largest-power]
@pytest.mark.parametrize("seed", CASES)
def test_power_and_error_are_those_of_the_best_test(seed):
    rng = np.random.default_rng(seed)
    p, q = symmetric(*masses(rng, int(rng.integers(3, 6)), zeros=seed % 3 == 0))
    curve = acc.compose(acc.loss_distribution(p, q))
    for level in LEVELS:
        truth = naive_power(p, q, level)
        found, error = curve.true_positive_rate(level), curve.trade_off(level)
        assert found.value == pytest.approx(float(truth), rel=1e-5, abs=1e-12)
        assert found.value >= float(truth) * (1 - 1e-15)
        assert found.upper >= found.value
        assert error.value == pytest.approx(float(1 - truth), rel=1e-5, abs=1e-5)
        assert error.lower <= error.value
        assert Fraction(error.lower) <= 1 - truth
        assert Fraction(found.upper) >= truth


@pytest.mark.parametrize("seed", CASES)
def test_asymmetric_pairs_are_bounded_in_both_directions(seed):
    rng = np.random.default_rng(500 + seed)
    p, q = masses(rng, int(rng.integers(2, 5)), zeros=False)
    curve = acc.compose(acc.loss_distribution(p, q))
    for level in LEVELS:
        truth = max(naive_power(p, q, level), naive_power(q, p, level))
        assert Fraction(curve.true_positive_rate(level).upper) >= truth
        assert Fraction(curve.trade_off(level).lower) <= 1 - truth


# [lemma bayes-risk] [lemma posterior]
@pytest.mark.parametrize("seed", CASES)
def test_bayes_risk_and_predictive_value(seed):
    rng = np.random.default_rng(900 + seed)
    p, q = masses(rng, int(rng.integers(3, 5)), zeros=seed % 4 == 0)
    curve = acc.compose(acc.loss_distribution(p, q))
    for prior in (1e-6, 0.1, 0.5, 0.77, 1 - 1e-6):
        pi = Fraction(prior)
        risk = min(sum(min(pi * a, (1 - pi) * b) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))
        found = curve.bayes_risk(prior)
        assert Fraction(found.lower) <= risk
        assert found.lower == pytest.approx(float(risk), rel=1e-9, abs=1e-300)
        for level in (0.01, 0.3):
            tests = [x for n in range(1, len(p) + 1) for x in itertools.combinations(range(len(p)), n)]
            rates = [(sum(a[i] for i in t), sum(b[i] for i in t)) for t in tests for a, b in ((p, q), (q, p))]
            value = max((pi * hit / (pi * hit + (1 - pi) * alarm) for hit, alarm in rates if alarm >= level), default=0)
            assert Fraction(curve.posterior(prior, false_positive_rate=level).upper) >= value


# [lemma posterior]
def test_beliefs_after_any_output():
    """ε-DP moves the odds by e^ε at most; without pure DP some output may tell all."""
    response = acc.compose(acc.randomized_response(epsilon=1.5))
    odds = 0.2 / 0.8 * math.exp(1.5)
    assert response.posterior(0.2, false_positive_rate=0).value == pytest.approx(odds / (1 + odds), rel=1e-12)
    assert acc.compose(acc.gaussian(std=1)).posterior(0.2, false_positive_rate=0).value == 1
    assert response.posterior(0.2, false_positive_rate=1).value == pytest.approx(0.2)


@pytest.mark.parametrize("mu", [1e-6, 0.3, 1.0, 6.0])
def test_gaussian_tests_are_in_closed_form(mu):
    mpmath.mp.dps = 50
    curve = acc.compose(acc.gaussian(std=2 / mu, count=4))
    for level in LEVELS:
        inside = mpmath.mpf(level)
        t = mpmath.sqrt(2) * mpmath.erfinv(2 * inside - 1) if 0 < level < 1 else mpmath.mpf("inf") * (2 * level - 1)
        truth, error = mpmath.ncdf(t + mu), mpmath.ncdf(-t - mu)
        found, missed = curve.true_positive_rate(level), curve.trade_off(level)
        assert (found.direction, missed.direction) == ("exact", "exact")
        assert truth <= found.value <= truth * (1 + 1e-11)
        assert error * (1 - 1e-11) <= missed.value <= error


@pytest.mark.parametrize("level", [1e-6, 0.02, 0.5, 0.9])
def test_the_search_over_epsilon_finds_the_closed_form(level):
    """A Laplace event of next to no loss takes the general way around the Gaussian formula."""
    exact = acc.compose(acc.gaussian(std=1.3)).true_positive_rate(level).value
    mixed = acc.compose(acc.gaussian(std=1.3), acc.laplace(scale=1e9))
    assert exact * (1 - 1e-12) <= mixed.true_positive_rate(level).upper <= exact * (1 + 1e-6)
    assert mixed.true_positive_rate(level).direction == "upper"
    assert mixed.trade_off(level).lower <= 1 - exact * (1 - 1e-12)


# [lemma reconstruction]
def test_reconstruction_is_as_likely_as_the_bound_where_it_is_attained():
    """Uniform data of m values; the output is the value with probability p₀, any other one with less."""
    for m, first in ((4, 0.7), (10, 0.3)):
        rest = (1 - first) / (m - 1)
        curve = acc.compose(acc.loss_distribution([first, *([rest] * (m - 1))], [1 / m] * m))
        found = curve.reconstruction_rate(1 / m)
        assert found.upper >= first * (1 - 1e-12)
        assert found.value == pytest.approx(
            max(first, float(naive_power([Fraction(1, m)] * m, [Fraction(first), *[Fraction(rest)] * (m - 1)], 1 / m))),
            rel=1e-4,
        )


def test_a_partition_counts_its_worst_group():
    one, other = acc.compose(acc.gaussian(std=1)), acc.compose(acc.laplace(scale=0.5))
    both = acc.parallel(one, other)
    for level in (0.001, 0.3, 0.9):
        assert both.true_positive_rate(level).upper == max(x.true_positive_rate(level).upper for x in (one, other))
        assert both.trade_off(level).lower == min(x.trade_off(level).lower for x in (one, other))


def test_figures_of_errors_have_a_lower_bound_only():
    error = acc.compose(acc.gaussian(std=1)).trade_off(0.1)
    assert float(error) == error.lower
    with pytest.raises(ParameterError, match="lower bound"):
        error.upper  # noqa: B018 - the property refuses


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "x"])
def test_rates_and_priors_are_probabilities(bad):
    curve = acc.compose(acc.gaussian(std=1))
    for ask in (
        curve.true_positive_rate,
        curve.trade_off,
        curve.bayes_risk,
        curve.reconstruction_rate,
        lambda x: curve.posterior(x, false_positive_rate=0.1),
        lambda x: curve.posterior(0.5, false_positive_rate=x),
    ):
        with pytest.raises(ParameterError, match="expected"):
            ask(bad)
    for ask in (curve.bayes_risk, lambda x: curve.posterior(x, false_positive_rate=0.1)):
        for edge in (0, 1):
            with pytest.raises(ParameterError, match="expected prior"):
                ask(edge)


@pytest.mark.parametrize("order", [1.2, 2.0, 7.5])
def test_renyi_divergences_of_compositions(order):
    p, q = [0.2, 0.5, 0.3], [0.4, 0.35, 0.25]
    truth = max(
        math.log(sum(a**order * b ** (1 - order) for a, b in zip(*x, strict=True))) / (order - 1)
        for x in ((p, q), (q, p))
    )
    found = acc.compose(acc.loss_distribution(p, q), acc.gaussian(std=3)).renyi_divergence(order).value
    assert found == pytest.approx(truth + order / 18, rel=1e-9)
    assert found >= truth + order / 18
    assert acc.compose(acc.approximate(epsilon=1, delta=1e-9)).renyi_divergence(2).value == math.inf


@pytest.mark.parametrize("prior", [1, "1", 1.0, 0, 2])
def test_a_prior_that_leaves_nothing_to_guess_is_refused_as_it_was_given(prior):
    with pytest.raises(ParameterError, match=f"prior above 0 and .*got '?{prior}"):
        acc.compose(acc.gaussian(std=1)).bayes_risk(prior)
