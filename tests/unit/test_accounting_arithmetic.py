"""Events and curves added, multiplied and summed; figures as floats; (ξ, ρ)-zCDP."""

import math
from dataclasses import replace

import dp_accounting as dp
import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import ParameterError

A, B, C = acc.gaussian(std=3), acc.laplace(scale=4, count=2), acc.pure(epsilon=0.1)


def test_sums_and_products_are_compositions():
    assert acc.compose([A, [B, C]], A) == A + B + C + A == sum([A, B, C, A]) == 2 * A + B + C
    assert 3 * A == A * 3 == acc.gaussian(std=3, count=3)
    assert acc.compose(3 * A, 3 * B) == 3 * (A + B)
    assert sum([A]) == acc.compose(A)
    assert acc.compose([]) == acc.compose()


def test_repeated_groups_stay_the_same_users():
    assert 2 * acc.parallel(A, B) == acc.parallel(2 * A, 2 * B)


@pytest.mark.parametrize(
    "make", [lambda: 0 * A, lambda: 2.5 * A, lambda: A * -1, lambda: A + 3, lambda: 1 + A, lambda: acc.compose("ab")]
)
def test_other_arithmetic_is_refused(make):
    with pytest.raises(ParameterError, match="expected"):
        make()


def test_a_float_is_the_certified_bound():
    for figure in (acc.compose(A).epsilon(delta=1e-5), (A + B).epsilon(delta=1e-5), (A + B).delta(epsilon=1)):
        assert float(figure) == figure.upper >= figure.value
    bounded = acc.compose(acc.bounded_range(epsilon=1, count=2)).epsilon(delta=1e-5)
    with pytest.raises(ParameterError, match="upper"):
        bounded.lower  # noqa: B018 - the property refuses


@given(st.floats(1e-4, 2), st.floats(0, 2), st.integers(1, 20), st.sampled_from([1e-3, 1e-6, 1e-12]))
@settings(max_examples=40, deadline=None)
def test_xi_is_charged_once_an_event(rho, xi, count, delta):
    """ε of (ξ, ρ)-zCDP is ξ more than that of ρ-zCDP, order by order."""
    plain = acc.compose(acc.zcdp(rho=rho, count=count)).epsilon(delta=delta).value
    found = acc.compose(acc.zcdp(rho=rho, xi=xi, count=count)).epsilon(delta=delta)
    assert found.value == pytest.approx(plain + xi * count, rel=1e-8)
    assert found.value >= (plain + xi * count) * (1 - 1e-8)


def test_no_rho_leaves_pure_dp():
    assert 0.5 <= acc.compose(acc.zcdp(rho=0, xi=0.5)).epsilon(delta=0).value <= 0.5 * (1 + 1e-14)
    assert acc.compose(acc.zcdp(rho=0)).epsilon(delta=0).value == 0
    with pytest.raises(ParameterError, match="expected xi"):
        acc.zcdp(rho=1, xi=-1)


def test_xi_travels_through_the_bridge():
    event = dp.dp_event.ZCDpEvent(0.1, 5.0)
    curve = acc.from_dp_event(event, relation="add-remove")
    assert curve == acc.compose(replace(acc.zcdp(rho=0.1, xi=5), relation="add-remove"))
    assert acc.to_dp_event(acc.zcdp(rho=0.1, xi=5)) == event
    assert math.isfinite(curve.epsilon(delta=1e-6).value)


@pytest.mark.parametrize("short", [1e-15, 1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize(("scale", "moved"), [("0.7", "0.012"), ("1.2", "9.2"), ("3", "1"), ("0.183856", "0.0926")])
def test_next_to_the_end_of_laplace_losses_delta_is_not_below_the_truth(scale, moved, short):
    with mpmath.workdps(50):
        step = mpmath.mpf(moved) / mpmath.mpf(scale)
        epsilon = float(step * (1 - mpmath.mpf(short)))
        true = max(mpmath.mpf(0), -mpmath.expm1((mpmath.mpf(epsilon) - step) / 2))
        found = acc.compose(acc.laplace(scale=scale, sensitivity=moved)).delta(epsilon=epsilon)
        assert true <= mpmath.mpf(found.value) <= true * (1 + 1e-11) + 4e-15 * step
