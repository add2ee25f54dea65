"""Exact numbers: nothing is rounded before the bridge, and the bridge rounds to the safe side."""

from __future__ import annotations

import math
import pickle  # noqa: TID251 - as an executor of processes sends them
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.errors import InexactNumberError, ParameterError
from privcheck.terms.symbols import (
    INFINITE,
    A,
    Expr,
    H,
    K,
    S,
    at_most,
    computed,
    delta,
    epsilon,
    exact,
    exp,
    expression,
    log,
    maximum,
    rho,
    same,
    sqrt,
    to_float,
    total,
)

fractions = st.fractions().filter(bool) | st.fractions(max_denominator=10**30).map(lambda q: q / 10**25)
positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (20, Fraction(20)),
        ("1/2", Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
        (" 1e-5 ", Fraction(1, 100_000)),
        ("1e5", Fraction(100_000)),
        (Fraction(2, 3), Fraction(2, 3)),
        (np.int64(7), Fraction(7)),
        ("-3", Fraction(-3)),
    ],
)
def test_exact_numbers_stay_exact(given, value):
    assert exact(given) == value


@pytest.mark.parametrize("given", [0.1, 1.0, np.float64(0.5)])
def test_floats_are_refused_with_the_string_to_write(given):
    with pytest.raises(InexactNumberError, match="write it as a string") as caught:
        exact(given)
    assert str(given) in str(caught.value)


@pytest.mark.parametrize("given", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_floats_that_are_no_numbers_are_refused_without_a_string_that_would_be_refused_too(given):
    with pytest.raises(InexactNumberError, match=r"expected a finite number, got .*; give an int") as caught:
        exact(given)
    assert "write it as a string" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [None, True, False, np.True_, "", "nan", "inf", "1/0", "0x10", "one", "1 2", 1j, [1], np.float32(1), np.array([1])],
)
def test_what_is_no_number_is_refused(given):
    with pytest.raises(ParameterError):
        exact(given)


@pytest.mark.parametrize("given", ["1e999999999", "1e-999999999", "1e9_999_999", "9" * 5_000])
def test_numbers_that_would_fill_the_memory_are_refused(given):
    with pytest.raises(ParameterError) as caught:
        exact(given)
    assert len(str(caught.value)) < 200


def test_a_float_cannot_enter_an_expression():
    for build in (lambda: H + 0.1, lambda: 0.1 * H, lambda: H**0.5, lambda: sqrt(0.5), lambda: expression(0.5)):
        with pytest.raises(InexactNumberError):
            build()


@given(fractions)
def test_directed_rounding_encloses_a_fraction_in_one_step(value):
    down, up = to_float(value, rounding="down"), to_float(value, rounding="up")
    assert Fraction(down) <= value <= Fraction(up)
    assert up in {down, math.nextafter(down, math.inf)}
    assert to_float(value, rounding="nearest") in {down, up}


@pytest.mark.parametrize("sign", [1, -1])
def test_directed_rounding_beyond_the_floats(sign):
    huge, tiny = Fraction(10) ** 400 * sign, Fraction(1, 10**400) * sign
    largest, least = math.nextafter(math.inf, 0), 5e-324
    assert to_float(huge, rounding="up") == (math.inf if sign > 0 else -largest)
    assert to_float(huge, rounding="down") == (largest if sign > 0 else -math.inf)
    assert to_float(tiny, rounding="up") == (least if sign > 0 else 0.0)
    assert to_float(tiny, rounding="down") == (0.0 if sign > 0 else -least)


def test_digits_beyond_those_that_are_computed_do_not_turn_the_rounding():
    little = Fraction(2, 10**62)  # lost among 60 digits: both come out as 1
    assert sqrt(1 + little).number(rounding="up") == math.nextafter(1.0, 2.0)
    assert sqrt(1 - little).number(rounding="down") == math.nextafter(1.0, 0.0)


@given(positive)
def test_square_roots_round_to_the_side_that_was_asked_for(value):
    down, up = (sqrt(value).number(rounding=side) for side in ("down", "up"))
    assert Fraction(down) ** 2 <= value <= Fraction(up) ** 2
    assert up <= math.nextafter(down, math.inf)


@settings(max_examples=50)
@given(st.fractions(min_value=-300, max_value=300))
def test_exponentials_round_to_the_side_that_was_asked_for(value):
    down, up = (exp(value).number(rounding=side) for side in ("down", "up"))
    with mpmath.workdps(120):
        true = mpmath.exp(mpmath.mpf(value.numerator) / value.denominator)
        assert mpmath.mpf(down) <= true <= mpmath.mpf(up)
    assert up <= math.nextafter(down, math.inf)


@pytest.mark.parametrize("power", [1, 10, 20, 40, 100, 300])
def test_cancellation_does_not_turn_the_direction(power):
    # x + e^(−x) − 1 = x²/2 − x³/6 + …: all digits cancel down to the square
    x = Fraction(1, 10**power)
    cost = x + exp(-x) - 1
    low, high = x**2 / 2 - x**3 / 6, x**2 / 2 - x**3 / 6 + x**4 / 24
    down, up = cost.number(rounding="down"), cost.number(rounding="up")
    assert Fraction(down) <= high
    assert Fraction(up) >= low
    assert up <= math.nextafter(down, math.inf)


def test_huge_exponents_neither_hang_nor_lose_their_direction():
    largest = math.nextafter(math.inf, 0)
    assert (exp(10**30).number(rounding="down"), exp(10**30).number(rounding="up")) == (largest, math.inf)
    assert (exp(-(10**30)).number(rounding="down"), exp(-(10**30)).number(rounding="up")) == (0.0, 5e-324)
    assert (-1 * exp(10**30)).number(rounding="up") == -largest


def test_what_is_not_a_real_number_is_refused():
    for expr in (sqrt("-1"), log(0), 1 / (H - 1)):
        with pytest.raises(ParameterError, match="not a real number"):
            expr.number({"H": Fraction(1)})
    with pytest.raises(ParameterError, match="no value given for H"):
        (H + S).number({"S": Fraction(1)})


def test_an_expression_that_is_zero_in_disguise_has_a_number():
    disguised = (sqrt(2) + sqrt(3)) ** 2 - 5 - 2 * sqrt(6)
    assert disguised.number(rounding="up") == 0.0


def test_rational_says_none_where_a_root_stays():
    assert sqrt(2 * H).rational({"H": Fraction(8)}) == 4
    assert sqrt(2 * H).rational({"H": Fraction(3)}) is None
    assert (sqrt(2 * H) ** 2).rational({"H": Fraction(3)}) == 6


def test_order_for_all_parameters():
    assert at_most(H, 2 * H) is True
    assert at_most(2 * H, H) is False
    assert at_most(sqrt(2 * H), sqrt(3 * H)) is True
    assert at_most(expression(0), H - 1) is True  # a count is at least 1
    assert at_most(S, A) is None
    assert at_most(H**2, H) is None  # equal at 1, more above: SymPy cannot say
    assert same(sqrt(4 * H), 2 * sqrt(H)) is True
    assert same(log(2 * H), log(2) + log(H)) is True
    assert same(H, H + 1) is False
    assert same(S, A) is None
    assert same(INFINITE, INFINITE) is None  # ∞ − ∞ says nothing; it was said to differ


atoms = st.sampled_from([H, S, rho, epsilon]) | st.fractions(Fraction(1, 9), 9, max_denominator=9).map(expression)
expressions = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(inner, inner).map(lambda p: p[0] + p[1])
        | st.tuples(inner, inner).map(lambda p: p[0] * p[1])
        | st.tuples(inner, inner).map(lambda p: p[0] / p[1])
        | inner.map(sqrt)
        | st.tuples(inner, inner).map(lambda p: maximum(*p))
    ),
    max_leaves=4,
)
settings_of_parameters = st.fixed_dictionaries(
    {
        "H": st.integers(1, 9).map(Fraction),
        "S": st.integers(1, 9).map(Fraction),
        "rho": st.fractions(Fraction(1, 9), 9, max_denominator=9),
        "epsilon": st.fractions(Fraction(1, 9), 9, max_denominator=9),
    }
)


@settings(max_examples=60)
@given(expressions, expressions, st.lists(settings_of_parameters, min_size=1, max_size=5))
def test_a_decision_for_all_parameters_holds_at_every_one(left, right, points):
    order, equal = at_most(left, right), same(left, right)
    for values in points:
        if order is True or equal is True:
            assert left.number(values, rounding="down") <= right.number(values, rounding="up")
        if order is False or equal is True:
            assert left.number(values, rounding="up") >= right.number(values, rounding="down")
        simple = left.simplified()
        assert math.isclose(simple.number(values), left.number(values), rel_tol=1e-12)


def test_an_expression_is_a_value():
    assert H + 1 == 1 + H
    assert hash(2 * H) == hash(H * 2)
    assert H != S
    assert H != "H"
    assert (3 - H, 6 / H) == (-1 * (H - 3), 6 * H**-1)
    assert (H * S / A).symbols == {"H", "S", "A"}
    assert total([H, H, S]) == 2 * H + S
    assert total([]) == expression(0)
    assert str(2 * H / rho) == "2*H/rho"
    assert (2 * H / rho).latex() == r"\frac{2 H}{\rho}"
    assert (2 * H / rho).mathml().startswith("<mrow>") or "<mfrac>" in (2 * H / rho).mathml()
    with pytest.raises(AttributeError):
        H.node = None  # type: ignore[misc]


def test_parameters_are_replaced_exactly():
    assert isinstance((H / delta).at({"H": Fraction(3), "delta": Fraction(1, 10**30)}), Expr)
    assert (H / delta).rational({"H": Fraction(3), "delta": Fraction(1, 10**30)}) == 3 * 10**30


def test_computed_functions_can_be_sent_to_other_processes():
    levels = computed("gcd", math.gcd, H, K)
    again = pickle.loads(pickle.dumps(1 + 2 * levels))  # noqa: S301
    assert again == 1 + 2 * levels
    assert again.at({"H": Fraction(12), "K": Fraction(18)}) == expression(13)
