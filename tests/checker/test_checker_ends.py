"""Ends of enclosures: every operation on wide ones, and every function against 90 digits of mpmath.

A low end that is a rounding too high, or a high end that is one too low, proves something false by that much: floats
do not see it. On wide intervals an end that is mistaken for the other is seen at once.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import pytest

from certificate_verdicts import refused
from privcheck_check import terms
from privcheck_check.counts import _power, _up, tail
from privcheck_check.curves import gaussian_delta, normal, order_epsilon
from privcheck_check.terms import Ends, _root, evaluate, exponential, invert, logarithm, multiply, square_root, whole
from privcheck_check.values import Rejected

F = Fraction
DIGITS = 90


def precise(number: Fraction) -> Any:
    return mpmath.mpf(number.numerator) / number.denominator


def around(ends: Ends, true: Any) -> None:
    """The ends are on either side of a number known to 90 digits, and near."""
    assert precise(ends[0]) <= true + mpmath.mpf(10) ** -85 * abs(true)
    assert true <= precise(ends[1]) + mpmath.mpf(10) ** -85 * abs(true)
    assert ends[1] - ends[0] <= F(1, 10**45) * (1 + abs(ends[1]))


def point(x: Fraction) -> Ends:
    return x, x


FUNCTIONS: list[tuple[str, Callable[[Ends], Ends], Callable[[Any], Any], Fraction, Fraction]] = [
    ("normal", normal, mpmath.ncdf, F(-9), F(9)),
    ("exponential", exponential, mpmath.exp, F(-60), F(60)),
    ("logarithm", logarithm, mpmath.log, F(1, 10**6), F(10**6)),
    ("square_root", square_root, mpmath.sqrt, F(0), F(10**6)),
]


@pytest.mark.parametrize(
    ("call", "true", "low", "high"), [each[1:] for each in FUNCTIONS], ids=[each[0] for each in FUNCTIONS]
)
def test_functions_against_ninety_digits(call: Any, true: Any, low: Fraction, high: Fraction) -> None:
    rng = random.Random(4)
    with mpmath.workdps(DIGITS):
        for _ in range(200):
            x = low + (high - low) * F(rng.randrange(1, 10**9), 10**9)
            around(call(point(x)), true(precise(x)))
            y = x + (high - x) * F(rng.randrange(1, 10**9), 10**9)
            assert call((x, y)) == (call(point(x))[0], call(point(y))[1])


def test_far_ends_of_functions() -> None:
    for x in (F(1000), F(41), F(40), F(39)):
        assert normal(point(x))[1] == 1
        assert 1 - normal(point(x))[0] < F(1, 10**50)
        assert normal(point(-x))[0] == 0
        assert normal(point(-x))[1] < F(1, 10**50)
    assert exponential(point(F(1024)))[0] > 1
    for x in (F(1025), F(-1025)):
        with pytest.raises(Rejected, match="exponent"):
            exponential(point(x))
    for x in (F(0), F(-1)):
        with pytest.raises(Rejected, match="logarithm"):
            logarithm(point(x))
    assert logarithm(point(F(1))) == (0, 0)
    with pytest.raises(Rejected, match="square root"):
        square_root((F(-1), F(1)))
    assert square_root((F(0), F(1))) == (0, 1)


def test_roots_are_exact_or_rounded_outward() -> None:
    rng = random.Random(5)
    for _ in range(300):
        x = F(rng.randrange(1, 10**12), rng.randrange(1, 10**6))
        low, high = _root(x, up=False), _root(x, up=True)
        assert low**2 <= x <= high**2
        assert (low == high) == (low**2 == x)
        assert square_root(point(x * x)) == point(x)


SIGNS = [F(-3), F(-1), F(0), F(2), F(5)]
INTERVALS = [(a, b) for a, b in itertools.product(SIGNS, SIGNS) if a <= b]


def test_products_and_quotients_of_intervals_of_any_sign() -> None:
    for left, right in itertools.product(INTERVALS, INTERVALS):
        products = [a * b for a in left for b in right]
        assert multiply(left, right) == (min(products), max(products))
        if right[0] <= 0 <= right[1]:
            with pytest.raises(Rejected):
                invert(right)
        else:
            assert invert(right) == (1 / right[1], 1 / right[0])


def test_operations_take_the_right_ends() -> None:
    """√2 is irrational: a term made of it has two ends, and those of the whole enclose its value to 90 digits."""
    root: Any = ("sqrt", F(2))
    with mpmath.workdps(DIGITS):
        r = mpmath.sqrt(2)
        for term, true in (
            (("+", root, root, F(1)), 2 * r + 1), (("-", F(1), root), 1 - r), (("-", root, F(1)), r - 1),
            (("*", root, ("-", F(1), root), F(3)), 3 * r * (1 - r)), (("/", ("-", F(1), root), root), (1 - r) / r),
            (("/", F(1), root), 1 / r), (("^", ("-", F(1), root), F(2)), (1 - r) ** 2),
            (("^", ("-", F(1), root), F(3)), (1 - r) ** 3), (("^", root, F(-3)), r**-3),
            (("^", root, F(1, 2)), mpmath.sqrt(r)), (("^", root, F(-1, 2)), 1 / mpmath.sqrt(r)),
            (("exp", ("-", F(1), root)), mpmath.exp(1 - r)), (("log", root), mpmath.log(r)),
            (("max", root, F(1)), r), (("min", root, F(2)), r), (("max", root, F(2)), 2), (("min", root, F(1)), 1),
            (("^", ("^", root, F(1, 2)), F(2)), r), (("^", ("^", ("-", F(2), root), F(1, 2)), F(2)), 2 - r),
            (("sum", F(3), ("*", "h", root)), 6 * r), (("sum", F(0), root), 0),
        ):  # fmt: skip
            around(evaluate(term, {}), true)
            if term not in ((("max", root, F(2))), ("min", root, F(1)), ("sum", F(0), root)):
                ends = evaluate(term, {})
                assert ends[0] < ends[1]


def test_even_powers_of_an_interval_around_zero() -> None:
    """√2·√2 − 2 encloses 0 from both sides; its square begins at 0 and its cube below."""
    zero: Any = ("-", ("*", ("sqrt", F(2)), ("sqrt", F(2))), F(2))
    low, high = evaluate(zero, {})
    assert low < 0 < high
    assert evaluate(("^", zero, F(2)), {}) == (0, max(low * low, high * high))
    assert evaluate(("^", zero, F(3)), {}) == (low**3, high**3)
    assert evaluate(("^", zero, F(0)), {}) == (1, 1)
    with pytest.raises(Rejected, match="zero"):
        evaluate(("/", F(1), zero), {})
    negative: Any = ("-", zero, F(1))
    low, high = evaluate(negative, {})
    assert evaluate(("^", negative, F(2)), {}) == (high**2, low**2)


def test_whole_numbers_are_exact() -> None:
    assert whole((F(3), F(3))) == 3
    assert whole((F(0), F(0))) == 0
    for ends in ((F(3), F(4)), (F(1, 2), F(1, 2)), (F(-1), F(-1))):
        with pytest.raises(Rejected):
            whole(ends)
    for n in (0, 1, 2, 3, 4, 7, 8, 1023, 1024):
        assert evaluate(("bit_length", F(n)), {}) == point(F(n.bit_length()))


def gaussian(mu2: Any, epsilon: Any) -> Any:
    mu = mpmath.sqrt(mu2)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def test_the_gaussian_curve_on_points_and_intervals() -> None:
    rng = random.Random(6)
    with mpmath.workdps(DIGITS):
        for _ in range(100):
            square, epsilon = F(rng.randrange(1, 2000), 100), F(rng.randrange(0, 500), 100)
            around(gaussian_delta(point(square), point(epsilon)), gaussian(precise(square), precise(epsilon)))
            square, epsilon = (square, square + F(1, 10)), (epsilon, epsilon + F(1, 10))
            found = gaussian_delta(square, epsilon)
            for s, e in itertools.product(square, epsilon):
                at = gaussian_delta(point(s), point(e))
                assert found[0] <= at[0]
                assert at[1] <= found[1]
            least, most = (gaussian_delta(point(s), epsilon) for s in square)
            assert found == (least[0], most[1])
            assert found[0] < gaussian_delta(point(square[0]), point(epsilon[1]))[0] or not found[0]
    assert gaussian_delta((F(0), F(0)), point(F(1))) == (0, 0)
    assert gaussian_delta((F(0), F(1)), point(F(1)))[0] == 0


def test_the_order_of_divergences_on_points_and_intervals() -> None:
    rng = random.Random(7)
    with mpmath.workdps(DIGITS):
        for _ in range(100):
            rho, delta = F(rng.randrange(1, 1000), 100), F(rng.randrange(1, 1000), 10**5)
            order = 1 + F(rng.randrange(1, 1000), 10)
            a = precise(order)
            true = precise(rho) * a + mpmath.log(1 - 1 / a) - mpmath.log(precise(delta) * a) / (a - 1)
            around(order_epsilon(point(rho), point(delta), order), true)
            rhos, deltas = (rho, rho + 1), (delta, 2 * delta)
            low = order_epsilon(point(rho), point(2 * delta), order)[0]
            high = order_epsilon(point(rho + 1), point(delta), order)[1]
            assert order_epsilon(rhos, deltas, order) == (low, high)


def test_probabilities_are_rounded_up() -> None:
    rng = random.Random(8)
    for _ in range(300):
        x = F(rng.randrange(1, 10**9), rng.randrange(1, 10**9)) ** rng.randrange(1, 40)
        assert x <= _up(x) <= x * (1 + F(1, 2**190))
        n, p = rng.randrange(0, 200), F(rng.randrange(1, 1000), 1000)
        assert p**n <= _power(p, n) <= p**n * (1 + F(1, 2**150))
    assert _power(F(1, 2), 0) == 1
    assert _up(F(1, 3)) > F(1, 3)


def test_tails_at_their_ends() -> None:
    half = F(1, 2)
    assert tail(5, 0, half) == tail(5, -1, half) == tail(5, 3, F(1)) == tail(5, 3, F(2)) == 1
    assert tail(5, 6, half) == 0
    assert tail(5, 5, F(0)) == 0
    assert tail(1, 1, half) >= half
    for n, k in ((2000, 1100), (1000, 450)):
        exact = F(sum(comb(n, j) for j in range(k, n + 1)), 2**n)
        assert exact <= tail(n, k, half) <= exact * (1 + F(1, 10**12))


# ── Limits: what a hostile certificate may ask for ──


@pytest.fixture
def _allowed() -> Iterator[None]:
    terms.allow()
    yield
    terms.allow()


@pytest.mark.usefixtures("_allowed")
def test_numbers_have_twenty_thousand_bits_at_most() -> None:
    for fits, beyond in (
        (F(2**19_998), F(2**19_999)), (F(1, 2**19_998), F(1, 2**19_999)), (F(2**10_000, 3), F(2**15_000, 3**6_000)),
    ):  # fmt: skip
        assert terms.bounded(fits) == fits
        assert refused(terms.bounded, beyond)


def test_work_is_half_a_million_steps() -> None:
    terms.allow()
    terms.spend(500_000)
    assert refused(terms.spend, 1)
    terms.allow()
    assert refused(terms.spend, 500_001)
    for bits, work in ((198, 1), (199, 1), (200, 2), (399, 2), (400, 3), (19_999, 100)):
        terms.allow()
        terms.bounded(F(2 ** (bits - 2)))  # and one bit below the line
        terms.spend(500_000 - work)
        assert refused(terms.spend, 1), bits
        terms.allow()


@pytest.mark.usefixtures("_allowed")
def test_a_power_that_would_be_too_long_is_not_computed() -> None:
    big = F(2**312)  # 314 bits with the one below the line: 64 times that is too much, though the power would fit
    assert refused(evaluate, ("^", big, F(64)), {})
    assert refused(terms._power, (F(1), big), F(64))
    assert evaluate(("^", F(2**398), F(50)), {})[0] == F(2**398) ** 50  # 400 bits times 50


@pytest.mark.parametrize("exponent", [F(-1), F(-2), F(-3)])
def test_a_negative_power_of_zero_is_refused(exponent: Fraction) -> None:
    assert refused(evaluate, ("^", F(0), exponent), {})
    assert evaluate(("^", F(2), exponent), {}) == point(F(1, 2 ** -int(exponent)))


def test_only_a_root_squared_is_what_it_was() -> None:
    half = F(1, 2)
    assert evaluate(("^", ("*", F(6), half), F(2)), {}) == point(F(9))
    assert evaluate(("^", ("^", F(9), half), F(4)), {}) == point(F(81))
    assert evaluate(("^", ("^", F(3), F(2)), F(2)), {}) == point(F(81))
    assert evaluate(("^", ("^", F(2), half), F(2)), {}) == point(F(2))


def test_a_sum_has_four_thousand_steps_at_most() -> None:
    terms.allow()
    assert refused(evaluate, ("sum", F(4_001), F(1)), {})
    assert evaluate(("sum", F(4_000), F(1)), {}) == point(F(4_000))
