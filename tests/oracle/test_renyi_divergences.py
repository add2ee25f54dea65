"""Costs of Gaussian and Laplace noise against Rényi divergences by 30-digit quadrature of the densities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.declare.mechanisms import Gaussian, Laplace, LaplaceNoise
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import RewardSums, Sensitivity, TransitionCounts, VisitCounts
from privcheck.terms.symbols import expression, sqrt

pytestmark = pytest.mark.slow

ALPHAS = ["1.000001", "1.01", "1.1", "1.5", "2", "3", "5", "10", "40", "200", "1000"]
SHIFTS = ["1/1000", "1/20", "1/4", "1/2", "1", "2", "4", "9", "30"]
TOLERANCE = 1e-12  # of the quadrature, relative; it agrees with the closed form to 1e-18


def _sensitivity(l1, l2, linf):
    return Sensitivity(l1=expression(l1), l2=expression(l2), linf=expression(linf), reason="a test")


def _divergence(log_density, alpha, shift):
    """Returns D_α(P‖Q) in nats of P = noise around 0 and Q = noise around `shift`."""
    with mp.workdps(30):
        # the integrand p^α q^(1−α) peaks at −(α − 1)·shift for Gaussians, has corners at 0 and `shift` for Laplace
        breaks = sorted({mp.mpf(0), shift, (1 - alpha) * shift})
        edges = [breaks[0] - 60, *breaks, breaks[-1] + 60]
        moment = mp.quad(
            lambda x: mp.exp(alpha * log_density(x) + (1 - alpha) * log_density(x - shift)), edges, maxdegree=9
        )
        return mp.log(moment) / (alpha - 1)


def _gaussian(x):
    return -(x**2) / 2 - mp.log(2 * mp.pi) / 2


def _laplace(x):
    return -abs(x) - mp.log(2)


def _mpf(text):
    value = Fraction(text)
    return mp.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("shift", ["1/1000", "1/4", "1", "3"])
@pytest.mark.parametrize("alpha", ALPHAS[:8])
def test_the_gaussian_cost_is_the_divergence_at_every_order(alpha, shift):
    with mp.workdps(30):
        rho = Gaussian(variance=1).zcdp(_sensitivity(shift, shift, shift)).number()
        divergence = _divergence(_gaussian, _mpf(alpha), _mpf(shift))
        assert abs(divergence / (_mpf(alpha) * rho) - 1) < TOLERANCE


# [lemma laplace-rho]
@pytest.mark.parametrize("shift", SHIFTS)
def test_the_laplace_cost_bounds_the_divergence_at_every_order(shift):
    with mp.workdps(30):
        rho = Laplace(scale=1).zcdp(_sensitivity(shift, shift, shift)).number(rounding="up")
        ratios = [_divergence(_laplace, _mpf(a), _mpf(shift)) / (_mpf(a) * rho) for a in ALPHAS]
        assert all(ratio <= 1 for ratio in ratios)
        # the supremum is the limit α → 1, where D_α is the Kullback–Leibler divergence: the bound is tight
        assert ratios[0] > 1 - 2e-6
        assert all(later <= earlier * (1 + TOLERANCE) for earlier, later in itertools.pairwise(ratios))


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_laplace_cost_is_the_kullback_leibler_divergence(shift):
    with mp.workdps(30):
        x = _mpf(shift)
        kl = mp.quad(
            lambda y: mp.exp(_laplace(y)) * (_laplace(y) - _laplace(y - x)), [-mp.inf, 0, x, x + 60], maxdegree=9
        )
        rho = Laplace(scale=1).zcdp(_sensitivity(shift, shift, shift)).number()
        assert abs(kl / rho - 1) < TOLERANCE


def test_a_cost_five_percent_lower_would_be_refuted():
    with mp.workdps(30):
        rho = Laplace(scale=1).zcdp(_sensitivity(1, 1, 1)) * "0.95"
        assert _divergence(_laplace, _mpf("1.01"), mp.mpf(1)) > _mpf("1.01") * rho.number(rounding="up")


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("alpha", [1.25, 2.0, 5.0])
def test_independent_coordinates_add_up(law, alpha):
    # D_α of the joint law on a plane (Gauss–Legendre between the corners), against the sum over the coordinates
    log_density = {
        "gaussian": lambda x: -(x**2) / 2 - np.log(2 * np.pi) / 2,
        "laplace": lambda x: -np.abs(x) - np.log(2),
    }
    shifts = (1.0, 0.5)
    nodes, weights = np.polynomial.legendre.leggauss(120)
    axes = []
    for shift in shifts:
        edges = np.array([-45.0, -15.0, 0.0, shift, 15.0, 45.0])
        centre, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        axes.append(((centre[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()))
    (x, wx), (y, wy) = axes
    p = log_density[law](x)[:, None] + log_density[law](y)
    q = log_density[law](x - shifts[0])[:, None] + log_density[law](y - shifts[1])
    joint = math.log(wx @ np.exp(alpha * p + (1 - alpha) * q) @ wy) / (alpha - 1)
    exact = {"gaussian": _gaussian, "laplace": _laplace}[law]
    assert math.isclose(joint, sum(_divergence(exact, mp.mpf(alpha), mp.mpf(s)) for s in shifts), rel_tol=1e-9)
    mechanism = Gaussian(variance=1) if law == "gaussian" else Laplace(scale=1)
    costs = [mechanism.zcdp(_sensitivity(s, s, s)).number() for s in ("1", "1/2")]
    assert joint <= alpha * sum(costs) * (1 + 1e-9)


def _cost(change):
    """Returns the sum of x + e^(−x) − 1 over the coordinates, without cancellation for small ones."""
    return float(sum(x + math.expm1(-x) for x in change))


# [lemma laplace-rho]
@given(
    st.integers(1, 6),
    st.fractions(Fraction(1, 50), 20, max_denominator=50),
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_no_split_of_a_vector_costs_more_than_full_steps(steps, linf, parts):
    # any split of Δ₁ = steps·Δ∞ into parts of at most Δ∞
    bound = Laplace(scale=1).zcdp(_sensitivity(steps * linf, linf, linf)).number(rounding="up")
    change = np.array(parts) * float(linf)
    change *= min(1.0, steps * float(linf) / max(change.sum(), 1e-300))
    assert _cost(change) <= bound * (1 + 1e-12)
    assert math.isclose(_cost([float(linf)] * steps), bound, rel_tol=1e-12)  # attained by full steps


@pytest.mark.parametrize("relation", [ReplaceOne(), ReplaceOne(initial="fixed"), AddRemoveOne()])
@pytest.mark.parametrize("make", [VisitCounts, TransitionCounts, RewardSums])
def test_the_cost_of_a_table_is_that_of_its_unit_changes(make, relation):
    sensitivity = make(5, 3, 2).sensitivity(relation)
    changes = int(sensitivity.l1.number())
    scale = Fraction(7, 2)
    rho = Laplace(scale=scale).zcdp(sensitivity).number()
    assert math.isclose(rho, _cost([1 / float(scale)] * changes), rel_tol=1e-12)
    # and never more than the general bounds: ε²/2 of pure DP, and the cost of one jump of the same ℓ₁ size
    epsilon = Laplace(scale=scale).pure(sensitivity).number()
    assert rho <= epsilon**2 / 2
    assert rho <= _cost([epsilon])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.floats(0.25, 20))
def test_the_pure_cost_is_the_largest_log_ratio(change, scale):
    change, noise = np.array(change), LaplaceNoise(scale=scale)
    exact = Fraction(scale)
    l1 = sum(abs(Fraction(c)) for c in change)
    epsilon = Laplace(scale=exact).pure(_sensitivity(l1, l1, 1)).number()
    outputs = np.random.default_rng(0).laplace(0, 3 * scale, (200, len(change)))
    far = 1e3 * np.where(change > 0, 1.0, -1.0)  # beyond both values in every coordinate: attained
    assert np.abs(noise.log_ratio(outputs, change)).max() <= epsilon + 1e-12
    assert math.isclose(noise.log_ratio(far, change), epsilon, rel_tol=1e-9, abs_tol=1e-11)


def test_gaussian_noise_is_never_pure_and_laplace_noise_no_gaussian():
    sensitivity = _sensitivity(4, 2, 1)
    assert Gaussian(variance=3).pure(sensitivity) is None
    assert Laplace(scale=3).gdp_squared(sensitivity) is None
    # μ² = Δ₂²/σ² and ρ = μ²/2
    assert Gaussian(variance=3).gdp_squared(sensitivity) == expression("4/3")
    assert Gaussian(variance=3).zcdp(sensitivity) == expression("2/3")
    assert Laplace(scale=3).pure(sensitivity) == expression("4/3")
    assert Laplace(scale=3).std == 3 * sqrt(2)
