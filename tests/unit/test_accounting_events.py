"""Events, curves, billboard, calibration and dp-accounting's events: what they are and what they refuse."""

import dataclasses
import math

import numpy as np
import pytest
import sympy  # noqa: TID251 - numbers that an author has from SymPy
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import ParameterError
from privcheck.terms.guarantees import ApproxDP, PureDP


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.gaussian(std=0),
        lambda: acc.gaussian(std=-1),
        lambda: acc.gaussian(std=math.nan),
        lambda: acc.gaussian(std=math.inf),
        lambda: acc.gaussian(std="three"),
        lambda: acc.gaussian(std=True),
        lambda: acc.gaussian(std=None),
        lambda: acc.gaussian(std=1, sensitivity=-1),
        lambda: acc.gaussian(std=1, count=0),
        lambda: acc.gaussian(std=1, count=2.5),
        lambda: acc.gaussian(std=1e-300, sensitivity=1e300),
        lambda: acc.laplace(scale=0),
        lambda: acc.discrete_laplace(scale=1, sensitivity=0.5),
        lambda: acc.discrete_gaussian(std=0),
        lambda: acc.symmetric_gaussian(variance=1, kind="full", sensitivity=1),
        lambda: acc.symmetric_gaussian(variance=1, sensitivity=np.array([[0.0, 1.0], [0.0, 0.0]])),
        lambda: acc.symmetric_gaussian(variance=1, sensitivity=np.ones(3)),
        lambda: acc.pure(epsilon=-0.1),
        lambda: acc.approximate(epsilon=1, delta=1),
        lambda: acc.approximate(epsilon=1, delta=-1e-9),
        lambda: acc.zcdp(rho=math.nan),
        lambda: acc.randomized_response(epsilon=1, categories=1),
        lambda: acc.poisson_gaussian(std=1, rate=0, relation="add-remove"),
        lambda: acc.poisson_gaussian(std=1, rate=1.1, relation="add-remove"),
        lambda: acc.tree(node=acc.gaussian(std=1, count=2), leaves=8, participations=1),
        lambda: acc.tree(node=acc.gaussian(std=1), leaves=8, participations=9),
        lambda: acc.tree(node=acc.gaussian(std=1), leaves=8, participations=3, separation=4),
        lambda: acc.tree(node=acc.pure(epsilon=1), leaves=8, participations=2),
        lambda: acc.shuffled_bits(users=10, probability=1),
        lambda: acc.shuffled_bits(users=10**9, probability=0.5),
        lambda: acc.shuffled(local_epsilon=-1, users=10, relation="replace-one"),
        lambda: acc.shuffled_randomized_response(epsilon=1, users=0, relation="replace-one"),
        lambda: acc.compose(3),
        lambda: acc.parallel(*()),
        lambda: acc.compose(acc.gaussian(std=1)).epsilon(delta=1.1),
        lambda: acc.gaussian(std=sympy.sqrt(2)),
        lambda: acc.compose(acc.gaussian(std=1)).epsilon(delta=math.nan),
        lambda: acc.compose(acc.gaussian(std=1)).delta(epsilon=-1),
        lambda: acc.compose(acc.gaussian(std=1)).epsilons([0.1, 2.0]),
        lambda: acc.compose(acc.gaussian(std=1)).deltas([math.nan]),
        lambda: acc.compose(acc.gaussian(std=1)).true_positive_rate(1.5),
        lambda: acc.calibrate((0.0, 1e-5), lambda s: acc.gaussian(std=s)),
        lambda: acc.calibrate((1.0, 0), lambda s: acc.gaussian(std=s)),
        lambda: acc.calibrate(1.0, lambda s: acc.gaussian(std=s)),
    ],
)
def test_nonsense_is_refused_with_a_message(make):
    with pytest.raises(ParameterError, match=r"expected|do not fit|no scale|out of range"):
        make()


def test_events_are_frozen_values():
    event = acc.gaussian(std=3, count=4)
    assert event == acc.gaussian(std="3", count=4.0)
    assert str(event) == "4 × gaussian(std=3.0, sensitivity=1.0)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.count = 5


def test_nothing_costs_nothing():
    for curve in (acc.compose(), acc.compose(acc.gaussian(std=1, sensitivity=0)), acc.compose(acc.pure(epsilon=0))):
        assert curve.epsilon(delta=0).value == 0
        assert curve.delta(epsilon=0).value == 0
        assert curve.advantage().value == 0


def test_symmetric_matrices():
    """ACCOUNTING: GOE ρ = ‖D‖_F²/4v; independent entries ρ = Σ_{i≤j} D_ij²/2v, worst for diagonal D."""

    def mu_squared(event):
        return event.pieces[0][0].mu_squared

    d = np.array([[0.5, 0.5], [0.5, 0.5]])  # φφᵀ with φ = (1, 1)/√2
    assert mu_squared(acc.symmetric_gaussian(variance=2, sensitivity=d)) == pytest.approx(2 * 1 / (4 * 2))
    assert mu_squared(acc.symmetric_gaussian(variance=2, sensitivity=1)) == pytest.approx(2 * 1 / (4 * 2))
    assert mu_squared(acc.symmetric_gaussian(variance=2, kind="upper", sensitivity=d)) == pytest.approx(
        2 * 0.75 / (2 * 2)
    )
    assert mu_squared(acc.symmetric_gaussian(variance=2, kind="upper", sensitivity=1)) == pytest.approx(2 * 1 / (2 * 2))


def test_approximate_parts_lose_their_delta_outright():
    curve = acc.compose(acc.approximate(epsilon=0.2, delta=1e-6, count=3))
    lost = 1 - (1 - 1e-6) ** 3
    assert curve.delta(epsilon=10).value == pytest.approx(lost, rel=1e-9)
    assert curve.epsilon(delta=1e-6).value == math.inf
    assert "lost outright" in curve.epsilon(delta=1e-6).reason
    rest = acc.compose(acc.pure(epsilon=0.2, count=3)).delta(epsilon=0.3).value
    assert curve.delta(epsilon=0.3).value == pytest.approx(lost + (1 - lost) * rest, rel=1e-9)
    assert curve.epsilon(delta=curve.delta(epsilon=0.3).value).value == pytest.approx(0.3, rel=1e-6)


def test_infinity_has_a_reason():
    assert acc.compose(acc.gaussian(std=1)).epsilon(delta=0).reason == "no pure DP: δ = 0"
    found = acc.compose(acc.gaussian(std=1e-200)).epsilon(delta=1e-5)
    assert found.value == found.upper == math.inf
    assert "overflows" in found.reason


def test_parallel_is_the_largest_not_the_sum():
    a, b, c = acc.gaussian(std=5, count=3), acc.laplace(scale=4), acc.pure(epsilon=0.1)
    both = acc.parallel(a, b)
    single = [acc.compose(x).epsilon(delta=1e-6).value for x in (a, b)]
    assert both.epsilon(delta=1e-6).value == max(single)
    for first, second in ((a, b), (acc.gaussian(std=500), b)):  # either may be the dearer one
        together = acc.compose(acc.parallel(first, second), c).epsilon(delta=1e-6).value
        assert together == max(acc.compose(x, c).epsilon(delta=1e-6).value for x in (first, second))
    assert acc.parallel(a, a) == acc.compose(a)
    assert both.epsilons([1e-6]).values[0] == max(single)


def test_billboard_follows_only_from_both_preconditions():
    board = acc.compose(acc.gaussian(std=10))
    claim = acc.joint(board, preconditions={"outputs": True, "billboard": True})
    assert claim.follows
    assert claim.guarantee(delta=1e-6) == (board.epsilon(delta=1e-6).upper, 1e-6)
    refused = acc.joint(board, preconditions={"outputs": False, "billboard": True})
    assert not refused.follows
    assert [c.name for c in refused.checks if not c.holds] == ["outputs"]
    with pytest.raises(ParameterError, match="own data"):
        refused.guarantee(delta=1e-6)
    for bad in ({"outputs": True}, {"outputs": 1, "billboard": True}, {"outputs": True, "billboard": True, "x": True}):
        with pytest.raises(ParameterError):
            acc.joint(board, preconditions=bad)


FAMILIES = {
    "gaussian": lambda s: acc.gaussian(std=s, count=100),
    "laplace": lambda s: acc.laplace(scale=s, count=20),
    "mixed": lambda s: acc.compose(acc.gaussian(std=s, count=10), acc.laplace(scale=3 * s, count=10)),
    "tree": lambda s: acc.tree(node=acc.gaussian(std=s), leaves=1000, participations=3),
    "discrete": lambda s: acc.discrete_gaussian(std=s, count=4),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_calibration_is_safe_and_least(name):
    family = FAMILIES[name]
    found = acc.calibrate((1.0, 1e-6), family)
    at, less = (acc.compose(family(found.scale * f)).epsilon(delta=1e-6) for f in (1.0, 1 - 1e-4))
    assert at.upper <= 1.0
    assert less.value > 1.0
    assert found.tolerance < 1e-4


@given(st.floats(0.01, 10), st.sampled_from([1e-3, 1e-6, 1e-12]), st.integers(1, 10**6))
@settings(max_examples=30)
def test_gaussian_calibration_is_tight(epsilon, delta, count):
    found = acc.calibrate((epsilon, delta), lambda s: acc.gaussian(std=s, count=count))
    assert acc.gdp_epsilon(math.sqrt(count) / found.scale, delta).value <= epsilon * (1 + 1e-14)
    assert acc.gdp_epsilon(math.sqrt(count) / found.scale * (1 + 1e-8), delta).value > epsilon


def test_calibration_takes_guarantees():
    pure = acc.calibrate(PureDP("1/2"), lambda s: acc.laplace(scale=s, count=3))
    assert pure.scale == pytest.approx(6, rel=1e-8)
    assert pure.scale >= 6
    both = acc.calibrate(ApproxDP(1, "1e-6"), lambda s: acc.gaussian(std=s))
    assert both.scale == pytest.approx(acc.calibrate((1, 1e-6), lambda s: acc.gaussian(std=s)).scale, rel=1e-8)


def test_numbers_of_sympy_and_numpy_and_a_delta_of_one_are_answered():
    plain = acc.compose(acc.gaussian(std=30)).epsilon(delta=1e-6)
    assert acc.gaussian(std=sympy.sqrt(900)).epsilon(delta=sympy.Rational(1, 10**6)) == plain
    assert acc.gaussian(std=np.int64(30)).epsilon(delta=np.float64(1e-6)) == plain
    assert acc.gaussian(std=30).delta(epsilon=sympy.Rational(1, 10)) == acc.compose(acc.gaussian(std=30)).delta(
        epsilon=0.1
    )
    for event in (acc.gaussian(std=1), acc.poisson_gaussian(std=1, rate=0.1, relation="add-remove")):
        assert (event.epsilon(delta=1).value, event.epsilon(delta=1).upper) == (0, 0)
