"""The Gaussian curve and the zCDP conversions against 60-digit arithmetic, dp-accounting and each other."""

import math

import mpmath as mp
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import example, given
from hypothesis import strategies as st

from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon, gdp_log_delta
from privcheck.accounting.engine.zcdp import classical_epsilon, pure_delta, zcdp_delta, zcdp_epsilon
from privcheck.errors import ParameterError

mus = st.floats(-8, 2).map(lambda t: 10.0**t)
deltas = st.floats(-300, -0.31).map(lambda t: 10.0**t)
rhos = st.floats(-10, 4).map(lambda t: 10.0**t)


def slow_log_delta(mu, epsilon):
    """The textbook formula, with enough digits for its cancellation."""
    with mp.workdps(60 + int(epsilon) + int((epsilon / mu) ** 2 / 2)):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return float(mp.log(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)))


# [lemma gaussian-curve]
@given(mus, st.floats(-3, 30))
@example(1e-8, 8.0)
@example(100.0, -2.0)
def test_log_delta_has_12_digits(mu, x):
    epsilon = max(0.0, mu * (x + mu / 2))
    if epsilon > 300:
        return
    expected = slow_log_delta(mu, epsilon)
    assert abs(gdp_log_delta(mu, epsilon) - expected) <= 1e-13 * (1 + abs(expected))


@given(mus, deltas)
def test_delta_and_epsilon_invert_each_other(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    if epsilon > 0 and math.isfinite(epsilon):
        assert gdp_log_delta(mu, epsilon) <= math.log(delta) + 1e-12 * abs(math.log(delta))
        low = gdp_epsilon(mu, delta, rounding="down")
        assert low <= gdp_epsilon(mu, delta, rounding="nearest") <= epsilon
        assert epsilon - low <= 1e-9 * (1 + epsilon)


@given(mus, st.floats(0, 50))
def test_rounding_encloses_the_truth(mu, epsilon):
    up, low = gdp_delta(mu, epsilon), gdp_delta(mu, epsilon, rounding="down")
    assert 0 <= low <= up <= 1
    assert up > 0


def test_the_three_conversions_at_the_published_point():
    # ACCOUNTING: at ρ = 0.1, δ = 1e-6
    papers, best = classical_epsilon(0.1, 1e-6), zcdp_epsilon(0.1, 1e-6)
    assert [round(e, 4) for e in (papers, best, gdp_epsilon(math.sqrt(0.2), 1e-6))] == [2.4508, 2.1419, 1.9945]


@given(rhos, deltas)
def test_the_conversions_are_ordered(rho, delta):
    curve = gdp_epsilon(math.sqrt(2 * rho), delta, rounding="down")
    best, papers = zcdp_epsilon(rho, delta), classical_epsilon(rho, delta)
    assert curve <= best <= papers


# [lemma best-order]
@given(rhos, st.floats(-15, -0.31).map(lambda t: 10.0**t))
def test_the_best_order_is_the_best_of_a_dense_grid(rho, delta):
    best = zcdp_epsilon(rho, delta)
    centre = math.sqrt(math.log(1 / delta) / rho)
    for i in range(-400, 401):
        less = centre * math.exp(i / 40)
        alpha = 1 + less
        bound = rho * alpha + math.log(less / alpha) - math.log(delta * alpha) / less
        assert best <= max(bound, 0.0) * (1 + 1e-9) + 1e-12


# [lemma best-order]
@given(st.floats(-6, 2).map(lambda t: 10.0**t), st.floats(0, 40))
def test_zcdp_delta_bounds_the_gaussian_and_inverts(rho, epsilon):
    delta = zcdp_delta(rho, epsilon)
    assert delta >= gdp_delta(math.sqrt(2 * rho), epsilon, rounding="down")
    if 1e-300 < delta < 0.5:
        assert zcdp_epsilon(rho, delta) <= epsilon + 1e-6 * (1 + epsilon)


@given(st.floats(0.05, 20), st.integers(1, 50), st.sampled_from([1e-5, 1e-8]))
def test_agrees_with_dp_accounting(std, count, delta):
    """Two accountants: its PLD is pessimistic within its grid, its RDP never below the exact curve."""
    mu = math.sqrt(count) / std
    if mu > 8:
        return
    exact = gdp_epsilon(mu, delta)
    event = SelfComposedDpEvent(GaussianDpEvent(float(std)), count)  # a float: other types can drop it
    rdp = RdpAccountant().compose(event).get_epsilon(delta)
    assert exact <= rdp * (1 + 1e-9)
    assert zcdp_epsilon(mu * mu / 2, delta) <= rdp * (1 + 1e-9)  # a grid of orders never beats the best order


def test_agrees_with_the_pld_of_dp_accounting():
    for std, count in ((1.0, 1), (10.0, 100), (3.0, 4)):
        pld = PLDAccountant().compose(SelfComposedDpEvent(GaussianDpEvent(std), count)).get_epsilon(1e-5)
        exact = gdp_epsilon(math.sqrt(count) / std, 1e-5)
        assert exact <= pld * (1 + 1e-6)
        assert pld <= exact * (1 + 1e-2)


def test_extremes_end_in_infinity_or_zero():
    assert gdp_epsilon(1.0, 0.0) == math.inf
    assert gdp_epsilon(0.0, 0.0) == 0.0
    assert gdp_epsilon(math.inf, 1e-5) == math.inf
    assert zcdp_epsilon(0.0, 0.0) == 0.0
    assert zcdp_epsilon(1.0, 0.0) == math.inf
    assert zcdp_delta(1e-3, 1e3) > 0  # underflow is rounded up
    assert gdp_delta(1e-3, 50.0) > 0
    assert gdp_delta(1e-3, 50.0, rounding="down") == 0.0
    assert pure_delta(math.inf, 3.0) == 1.0
    assert abs(pure_delta(1.0, 0.0) - math.tanh(0.5)) < 1e-12
    assert math.isfinite(gdp_epsilon(1e-9, 1e-15))
    assert math.isfinite(gdp_epsilon(1e6, 1e-15))
    assert math.isfinite(gdp_epsilon(1e150, 1e-15))
    assert gdp_epsilon(1e-150, 1e-15) < 1e-148
    assert zcdp_epsilon(1e-320, 1e-5) < 1e-150
    assert math.isfinite(zcdp_epsilon(1e300, 1e-5))
    assert 0 < zcdp_delta(1e-320, 1.0) < 1e-300
    assert zcdp_delta(1e300, 1.0) == 1.0


@pytest.mark.parametrize("bad", [math.nan, -1.0])
def test_nonsense_is_refused(bad):
    for call in (
        lambda: gdp_epsilon(bad, 1e-5),
        lambda: gdp_epsilon(1.0, bad),
        lambda: gdp_delta(1.0, bad),
        lambda: gdp_delta(bad, 1.0),
    ):
        with pytest.raises(ParameterError):
            call()
