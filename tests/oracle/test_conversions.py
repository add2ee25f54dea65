"""Every conversion to (ε, δ) against 60-digit arithmetic that shares no code: never below the truth, hardly above it.

Deterministic: seeds are fixed.
"""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from privcheck import accounting as acc
from privcheck.accounting.engine.zcdp import classical_epsilon
from privcheck.errors import ParameterError

HARD_RHOS = (1e-30, 1e-28, 1e-16, 1e-9, 1e-5, 0.1, 1.0, 30.0, 1e6)
HARD_DELTAS = (1e-300, 1e-100, 1e-15, 1e-6, 0.01, 0.5, 0.999, 1 - 2**-53)


def bisected(rising, low, high):
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(mp.exp(middle)) <= 0 else (low, middle)
    return mp.exp(low)


def slow_zcdp_epsilon(rho, delta):
    """The infimum over α itself: its derivative changes sign once."""
    r, level = mp.mpf(rho), -mp.log(mp.mpf(delta))
    a = bisected(lambda x: r * x * x + mp.log1p(x) - level, mp.mpf(-900), mp.mpf(900))
    return max(mp.mpf(0), r * (1 + a) + (level - mp.log1p(a)) / a - mp.log1p(1 / a))


def slow_zcdp_log_delta(rho, epsilon):
    r, e = mp.mpf(rho), mp.mpf(epsilon)
    a = bisected(lambda x: r * (1 + 2 * x) - e - mp.log1p(1 / x), mp.mpf(-2000), mp.mpf(2000))
    return min(mp.mpf(0), a * (r * (1 + a) - e - mp.log1p(1 / a)) - mp.log1p(a))


def slow_gdp_log_delta(mu, epsilon):
    m, e = mp.mpf(mu), mp.mpf(epsilon)
    x = e / m - m / 2
    return mp.log(mp.erfc(x / mp.sqrt(2)) - mp.exp(e) * mp.erfc((x + m) / mp.sqrt(2))) - mp.log(2)


def generated(seed, count):
    draw = np.random.default_rng(seed)
    for i in range(count):
        rho, mu = 10 ** draw.uniform(-30, 6), 10 ** draw.uniform(-12, 6)
        if i % 4 == 0:
            delta = draw.choice(HARD_DELTAS)
        elif i % 4 == 1:
            delta = 1 - 10 ** draw.uniform(-15, -0.001)
        else:
            delta = 10 ** draw.uniform(-300 if i % 2 else -16, -0.0005)
        yield (
            rho,
            mu,
            float(delta),
            draw.choice([0.0, 1.0, 10 ** draw.uniform(-12, 4), math.sqrt(rho) * draw.uniform(0, 30)]),
        )


CASES = [*generated(11, 400), *((r, 1.0, d, r) for r in HARD_RHOS for d in HARD_DELTAS)]


# [lemma best-order]
def test_zcdp_is_never_below_its_infimum_and_at_most_a_billionth_above():
    with mp.workdps(60):
        for rho, _, delta, _ in CASES:
            value, truth = acc.zcdp_to_epsilon(rho, delta).upper, slow_zcdp_epsilon(rho, delta)
            assert truth <= value <= truth * (1 + 1e-9) + 1e-13, (rho, delta)
            assert value <= acc.zcdp_to_epsilon(rho, delta, method="classical").upper
            level = -mp.log(mp.mpf(delta))
            assert acc.zcdp_to_epsilon(rho, delta, method="classical").upper >= rho + 2 * mp.sqrt(mp.mpf(rho) * level)


def test_delta_of_zcdp_is_never_below_its_infimum_and_at_most_a_billionth_above():
    with mp.workdps(60):
        for rho, _, _, epsilon in CASES:
            truth = slow_zcdp_log_delta(rho, epsilon)
            value = acc.zcdp_delta(rho, epsilon).upper
            assert mp.log(value) >= truth, (rho, epsilon)
            if truth > -690:
                assert mp.log(value) <= truth + 1e-9 * (1 + abs(truth)), (rho, epsilon)


@pytest.mark.parametrize(
    ("rho", "delta"),
    [
        (3.324031347098628e-228, 1.2192638040906306e-114), (4.8779090023718165e-119, 2.6067286354358224e-60),
        (8.798505756074385e-121, 7.296785097447243e-61), (33.59809905937675, 0.9999999999999959),
        (34.433802328519654, 0.9999999999999986), (33.119865378427505, 0.9999999999999941),
    ],
)  # fmt: skip
def test_epsilon_of_zcdp_where_without_its_slack_it_is_below_the_truth(rho, delta):
    with mp.workdps(60):
        assert acc.zcdp_to_epsilon(rho, delta).upper >= slow_zcdp_epsilon(rho, delta)


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [
        (0.002047419489586535, 0.5012744861733255), (0.008417130054491474, 0.4887641873621951),
        (0.0002944842014141298, 0.026421747401367917), (1.7500518581778897e-05, 0.0),
    ],
)  # fmt: skip
def test_delta_of_zcdp_where_without_its_slack_it_is_below_the_truth(rho, epsilon):
    with mp.workdps(60):
        assert mp.log(acc.zcdp_delta(rho, epsilon).upper) >= slow_zcdp_log_delta(rho, epsilon)


def test_delta_of_zcdp_over_all_floats():
    """Numbers of every size: no order is lost to an overflow."""
    draw = np.random.default_rng(17)
    with mp.workdps(60):
        for i in range(240):
            rho = 10 ** draw.uniform(-323, 308)
            size = (10 ** draw.uniform(-323, 308), rho, math.sqrt(rho))[i % 3]
            epsilon = min(size * 10 ** draw.uniform(-3, 3 if i % 3 == 1 else 2), 1e308)
            truth, value = slow_zcdp_log_delta(rho, epsilon), mp.log(acc.zcdp_delta(rho, epsilon).upper)
            assert truth <= value <= max(truth * (1 - mp.mpf("1e-12")), mp.mpf(-744)) + 1e-12, (rho, epsilon)
    assert acc.zcdp_delta(1e-200, 1e100).upper < 1e-300


@pytest.mark.parametrize("epsilon", [0, 5e-324, 1.0, math.inf])
def test_nothing_is_lost_without_a_loss(epsilon):
    assert acc.zcdp_delta(0, epsilon).upper == acc.pure_delta(0, epsilon).upper == 0.0
    assert acc.gdp_delta(0, epsilon).upper == 0.0


def test_epsilon_of_a_gaussian_encloses_the_root():
    with mp.workdps(80):
        for _, mu, delta, _ in CASES:
            target = mp.log(mp.mpf(delta))
            up, down = acc.gdp_epsilon(mu, delta), acc.gdp_epsilon(mu, delta, rounding="down")
            assert (up.direction, down.direction) == ("exact", "lower")
            nearest = acc.gdp_epsilon(mu, delta, rounding="nearest")
            assert nearest.direction == "estimate"
            assert slow_gdp_log_delta(mu, nearest.upper) <= target, (mu, delta)
            assert down.lower <= nearest.value <= nearest.upper
            assert slow_gdp_log_delta(mu, up.upper) <= target, (mu, delta)
            if down.lower > 0:
                assert slow_gdp_log_delta(mu, down.lower) >= target, (mu, delta)
            elif up.upper > 0:  # 0 is a lower bound, and no worse than rounding where the curve starts
                assert up.upper <= 1e-11 * mu * (1 + mu), (mu, delta)
            assert up.upper - down.lower <= 1e-8 * up.upper + 1e-11 * mu * (1 + mu)


def test_delta_of_a_gaussian_encloses_the_truth():
    draw = np.random.default_rng(5)
    with mp.workdps(80):
        for _, mu, _, _ in CASES:
            x = draw.uniform(-8, 38)
            for epsilon in (0.0, max(0.0, mu * (x + mu / 2)), mu * mu / 2):
                truth = mp.exp(slow_gdp_log_delta(mu, epsilon))
                assert acc.gdp_delta(mu, epsilon, rounding="down").lower <= truth, (mu, epsilon)
                assert acc.gdp_delta(mu, epsilon).upper >= truth, (mu, epsilon)
                nearest = acc.gdp_delta(mu, epsilon, rounding="nearest")
                assert nearest.upper >= truth
                if truth > 1e-300:
                    assert abs(nearest.value - truth) <= 1e-11 * truth


def test_randomised_response_is_rounded_up():
    draw = np.random.default_rng(6)
    with mp.workdps(60):
        for _ in range(2000):
            epsilon = 10 ** draw.uniform(-300 if draw.random() < 0.2 else -15, 2.9)
            at = epsilon * draw.choice([0.0, draw.random(), 1 - 10 ** draw.uniform(-16, 0)])
            e, a = mp.mpf(epsilon), mp.mpf(at)
            truth = max(mp.mpf(0), -mp.expm1(a - e) / (1 + mp.exp(-e)))
            assert truth <= acc.pure_delta(epsilon, at).upper <= truth * (1 + 1e-13) + 5e-324


@pytest.mark.parametrize("rho", [5e-324, 1e-320, 1e-300, 1e300, 1.7e308])
@pytest.mark.parametrize("other", [5e-324, 1e-300, 1.0 - 2**-53])
def test_the_ends_of_the_floats_are_answers(rho, other):
    for figure in (
        acc.zcdp_to_epsilon(rho, other),
        acc.zcdp_delta(rho, 1 / other if other > 1e-308 else 1e308),
        acc.zcdp_delta(rho, other),
        acc.gdp_epsilon(rho, other),
        acc.gdp_delta(rho, other),
        acc.gdp_delta(rho, 1e308),
    ):
        assert figure.upper >= figure.value >= 0
    assert acc.gdp_epsilon(rho, other, rounding="down").lower < math.inf  # never above the truth, which is finite


def test_infinity_is_an_answer():
    inf = math.inf
    assert acc.gdp_epsilon(inf, 1e-5).value == acc.zcdp_to_epsilon(inf, 1e-5).value == inf
    assert acc.gdp_epsilon(1, 0).reason == "no pure DP: δ = 0"
    assert acc.gdp_epsilon(inf, 1e-5).reason == "the noise is too small to bound the loss"
    assert acc.gdp_epsilon(1, 1e-5).reason == ""
    assert acc.gdp_delta(inf, 1).value == acc.zcdp_delta(inf, 1).value == acc.pure_delta(inf, 3).value == 1.0
    assert acc.gdp_delta(1, inf).value == acc.zcdp_delta(1, inf).value == acc.pure_delta(inf, inf).value == 0.0


@pytest.mark.parametrize("half", [0.5, "0.5", "1/2", Fraction(1, 2), np.float64(0.5), np.float32(0.5)])
def test_a_number_is_the_same_however_it_is_written(half):
    """The field's own point ρ = δ = ½ in every spelling."""
    assert acc.zcdp_to_epsilon(half, half) == acc.zcdp_to_epsilon(0.5, 0.5)
    assert acc.zcdp_delta(half, half) == acc.zcdp_delta(0.5, 0.5)
    assert acc.gdp_epsilon(half, half) == acc.gdp_epsilon(0.5, 0.5)
    assert acc.gdp_delta(half, half) == acc.gdp_delta(0.5, 0.5)
    assert acc.pure_delta(1, half) == acc.pure_delta(1.0, 0.5) == acc.pure_delta(np.int64(1), half)


@pytest.mark.parametrize("call", [acc.gdp_epsilon, acc.gdp_delta, acc.zcdp_to_epsilon, acc.zcdp_delta, acc.pure_delta])
@pytest.mark.parametrize(
    "bad", [math.nan, -1, -1e-300, "much", None, True, [0.5], "nan", -math.inf, np.float64("nan"), Decimal("Infinity")]
)
def test_what_is_not_a_number_is_refused_by_name(call, bad):
    for arguments in ((bad, 0.5), (0.5, bad)):
        with pytest.raises(ParameterError) as caught:
            call(*arguments)
        assert caught.value.name in {"mu", "rho", "epsilon", "delta", "at"}


def test_a_delta_of_one_and_unknown_words_are_refused():
    for call in (acc.gdp_epsilon, acc.zcdp_to_epsilon):
        with pytest.raises(ParameterError, match="got 1"):
            call(1.0, 1.0)
        with pytest.raises(ParameterError) as caught:
            call(1.0, 1.5)
        assert caught.value.name == "delta"
    with pytest.raises(ParameterError, match="method"):
        acc.zcdp_to_epsilon(1, 0.1, method="best")
    with pytest.raises(ParameterError, match="rounding"):
        acc.gdp_delta(1, 0.1, rounding="sideways")


def test_a_figure_as_a_float_is_its_bound():
    assert float(acc.zcdp_to_epsilon(0.1, 1e-6)) == acc.zcdp_to_epsilon(0.1, 1e-6).upper
    assert acc.zcdp_to_epsilon(0.1, 1e-6).direction == "upper"
    assert "papers" in acc.zcdp_to_epsilon(0.1, 1e-6, method="classical").method


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [
        (0, 1e-6, 0.0), (0, 0, 0.0), (0, 1 - 2**-53, 0.0),  # nothing is told
        (1e-30, 0, math.inf), (1, 0, math.inf), (math.inf, 0.5, math.inf), (math.inf, 0, math.inf),
    ],
)  # fmt: skip
def test_the_papers_conversion_at_its_ends(rho, delta, epsilon):
    assert classical_epsilon(rho, delta) == epsilon
    assert acc.zcdp_to_epsilon(rho, delta, method="classical").value == epsilon
    assert acc.zcdp_to_epsilon(rho, delta).value == epsilon


# [lemma papers-conversion]
@pytest.mark.parametrize("rho", HARD_RHOS)
@pytest.mark.parametrize("delta", HARD_DELTAS)
def test_the_papers_conversion_is_its_formula_rounded_up(rho, delta):
    with mp.workdps(60):
        exact = mp.mpf(rho) + 2 * mp.sqrt(-mp.mpf(rho) * mp.log(mp.mpf(delta)))
        assert exact < classical_epsilon(rho, delta) <= exact * (1 + mp.mpf("1e-12")) + mp.mpf("1e-300")
