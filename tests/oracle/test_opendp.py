"""Privacy maps and conversions against OpenDP, whose figures are rounded up and never below the truth.

Where both state the same exact quantity they agree to a few roundings; where OpenDP bounds what is exact here, ours
lies below its figure, and above the truth by direct summation. Every test says which side each errs on.
"""

import math

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.combining import job_of
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.statistics import Sensitivity
from privcheck.terms.symbols import expression

dp.enable_features("contrib")
REAL = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float))
WHOLE = (dp.atom_domain(T=int), dp.absolute_distance(T=int))
ROUNDED = 4e-15  # a handful of outward roundings on their side
scales = st.floats(-1.5, 4).map(lambda t: 10.0**t)
deltas = st.floats(-14, -0.5).map(lambda t: 10.0**t)


def profile(rho):
    """Their (ε, δ)-curve of a ρ-zCDP mechanism, and ρ as they have it."""
    made = dp.m.make_gaussian(*REAL, scale=math.sqrt(0.5 / rho))
    return dp.c.make_zCDP_to_approxDP(made).map(1.0), made.map(1.0)


@given(st.floats(-6, 2).map(lambda t: 10.0**t), deltas)
@settings(max_examples=60)
def test_zcdp_to_epsilon(rho, delta):
    """The same infimum over orders; both above it: theirs by its bisection, ours by 1e-13."""
    curve, rho = profile(rho)
    ours, theirs = acc.zcdp_to_epsilon(rho, delta).value, curve.epsilon(delta=delta)
    assert ours <= theirs * (1 + 1e-9) + 1e-12
    assert theirs <= ours * (1 + 1e-6) + 1e-9
    gaussian = dp.m.make_gaussian(*REAL, scale=math.sqrt(0.5 / rho))
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta).map(1.0)
    assert fixed[0] >= ours * (1 - 1e-6) - 1e-9
    # and never below the curve of a mechanism that is ρ-zCDP, the Gaussian
    assert ours >= acc.gdp_epsilon(math.sqrt(2 * rho), delta, rounding="down").value


@given(st.floats(-4, 1).map(lambda t: 10.0**t), st.floats(0, 20))
@settings(max_examples=60)
def test_zcdp_to_delta(rho, epsilon):
    """The same infimum from the other side; both above it."""
    curve, rho = profile(rho)
    ours, theirs = acc.zcdp_delta(rho, epsilon).value, curve.delta(epsilon=epsilon)
    assert ours >= acc.gdp_delta(math.sqrt(2 * rho), epsilon, rounding="down").value
    assert ours <= theirs * (1 + 1e-8) or theirs < 1e-280
    if 1e-280 < theirs < 0.5:  # theirs ends at 1 before the infimum does
        assert theirs <= ours * (1 + 1e-6)


@given(scales, st.integers(1, 50))
@settings(max_examples=40)
def test_gaussian_map(std, moved):
    """ρ = Δ²/2σ²: ours to the nearest float, or up where it is a bound; theirs up."""
    theirs = dp.m.make_gaussian(*REAL, scale=std).map(float(moved))
    ours = job_of([acc.gaussian(std=std, sensitivity=moved)]).mu_squared / 2
    assert ours == pytest.approx(theirs, rel=ROUNDED)
    exact = Gaussian(variance=expression(f"{int(std * 1000) + 1}/1000") ** 2).zcdp(_moved(moved))
    mapped = dp.m.make_gaussian(*REAL, scale=(int(std * 1000) + 1) / 1000).map(float(moved))
    assert exact.number(rounding="down") * (1 - ROUNDED) <= mapped <= exact.number(rounding="up") * (1 + ROUNDED)


@given(scales, st.integers(1, 50), st.integers(1, 20))
@settings(max_examples=40)
def test_laplace_map_and_pure_composition(scale, moved, count):
    """ε = kΔ/b: both up. At δ > 0 ours is the curve itself, below their sum."""
    one = dp.m.make_laplace(*REAL, scale=scale)
    theirs = dp.c.make_composition([one] * count).map(float(moved))
    curve = acc.compose(acc.laplace(scale=scale, sensitivity=moved, count=count))
    pure = curve.epsilon(delta=0)
    assert pure.value >= count * (moved / scale) * (1 - 2**-52)
    assert pure.value == pytest.approx(theirs, rel=ROUNDED * (1 + count))
    assert curve.epsilon(delta=1e-9).value <= theirs * (1 + 1e-12)
    exact = Laplace(scale=f"{int(scale * 1000) + 1}/1000").pure(_moved(moved))
    mapped = dp.m.make_laplace(*REAL, scale=(int(scale * 1000) + 1) / 1000).map(float(moved))
    assert exact.number(rounding="down") * (1 - ROUNDED) <= mapped <= exact.number(rounding="up") * (1 + ROUNDED)


@given(st.floats(0.3, 30), st.integers(1, 6), st.sampled_from([1e-3, 1e-6, 1e-12]))
@settings(max_examples=40)
def test_discrete_gaussian(std, moved, delta):
    """Theirs knows only ρ = Δ²/2σ² and lies above; ours is the sum over integers, never below it digit by digit."""
    made = dp.m.make_gaussian(*WHOLE, scale=std)
    assert made.map(moved) == pytest.approx(moved**2 / (2 * std**2), rel=ROUNDED)
    theirs = dp.c.make_zCDP_to_approxDP(made).map(moved).epsilon(delta=delta)
    found = acc.compose(acc.discrete_gaussian(std=std, sensitivity=moved)).epsilon(delta=delta)
    assert found.value <= theirs * (1 + 1e-9)
    x = np.arange(-math.ceil(39 * std), math.ceil(39 * std) + 1)
    p = np.exp(-(x**2) / (2 * std**2))
    p /= p.sum()
    loss = (moved**2 - 2 * moved * x) / (2 * std**2)
    at = np.sum(p * np.maximum(0, -np.expm1(np.minimum(found.upper - loss, 0))))
    assert at <= delta * (1 + 1e-9)


@given(st.floats(0.3, 30), st.integers(1, 6), st.integers(1, 5))
@settings(max_examples=40)
def test_discrete_laplace(scale, moved, count):
    """ε = kΔ/b: both up; at δ > 0 ours lies below."""
    one = dp.m.make_geometric(*WHOLE, scale=scale)
    theirs = dp.c.make_composition([one] * count).map(moved)
    curve = acc.compose(acc.discrete_laplace(scale=scale, sensitivity=moved, count=count))
    assert curve.epsilon(delta=0).value == pytest.approx(theirs, rel=ROUNDED * (1 + count))
    assert curve.epsilon(delta=1e-3).value <= theirs * (1 + 1e-12)


@given(st.floats(0.01, 5), st.integers(2, 8), st.integers(1, 6))
@settings(max_examples=40)
def test_randomized_response(epsilon, categories, count):
    """ε from the probability of truth: theirs up; the probability itself is rounded, which 1 − p multiplies."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    one = (
        dp.m.make_randomized_response_bool(prob=truth)
        if categories == 2
        else dp.m.make_randomized_response(list(range(categories)), prob=truth)
    )
    slack = 4 * 2**-53 / (1 - truth) + 4 * 2**-53 / truth
    curve = acc.compose(acc.randomized_response(epsilon=epsilon, categories=categories, count=count))
    assert one.map(1) == pytest.approx(epsilon, rel=1e-15, abs=slack)
    pure = curve.epsilon(delta=0).value
    assert pure >= epsilon * count * (1 - 2**-52)
    assert pure == pytest.approx(dp.c.make_composition([one] * count).map(1), rel=1e-14, abs=count * slack)
    assert curve.epsilon(delta=1e-6).value <= pure


@given(st.lists(st.floats(1, 50), min_size=1, max_size=5), deltas)
@settings(max_examples=30)
def test_zcdp_composition(stds, delta):
    """Gaussians composed: their ρ adds up and is converted; ours is the exact curve, below; μ² is twice their ρ."""
    made = dp.c.make_composition([dp.m.make_gaussian(*REAL, scale=s) for s in stds])
    curve = acc.compose(*(acc.gaussian(std=s) for s in stds))
    assert job_of(curve.branches[0]).mu_squared == pytest.approx(2 * made.map(1.0), rel=1e-14)
    theirs = dp.c.make_zCDP_to_approxDP(made).map(1.0).epsilon(delta=delta)
    assert curve.epsilon(delta=delta).value <= theirs * (1 + 1e-9) + 1e-12


def _moved(size):
    return Sensitivity(l1=expression(size), l2=expression(size), linf=expression(size), reason="a test")
