"""Enclosures against 60-digit arithmetic: each contains the value, and is narrow."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import pytest

from privcheck_check import enclosures
from privcheck_check.enclosures import BITS, ONE, Interval


def _real(value: Fraction | int) -> mpmath.mpf:
    fraction = Fraction(value)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def _contains(interval: Interval, value: mpmath.mpf, *, width: mpmath.mpf) -> None:
    """mpmath works with 100 digits here: 10^-90 is far below an interval's unit of 10^-58."""
    low, high = (_real(end) for end in enclosures.fractions(interval))
    error = mpmath.mpf(10) ** -90 * (1 + abs(value))
    assert low <= value + error
    assert value <= high + error
    assert high - low <= width * 2 ** mpmath.mpf(-BITS), mpmath.log(high - low, 2)


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(100):
        yield


def _points(seed: int, count: int, largest: int) -> list[Fraction]:
    """Points of many sizes, exact at the scale of the enclosures, among them 0, both ends and multiples of 1/64."""
    rng = random.Random(seed)
    spread = [Fraction(rng.randrange(-largest * ONE, largest * ONE + 1), ONE) for _ in range(count)]
    small = [Fraction(rng.randrange(-ONE, ONE), ONE << rng.randrange(60)) for _ in range(count)]
    steps = [Fraction(rng.randrange(-64 * largest, 64 * largest), 64) for _ in range(count)]
    small = [Fraction(int(point * ONE), ONE) for point in small]
    return [*spread, *small, *steps, Fraction(0), Fraction(largest), Fraction(-largest), Fraction(1, ONE)]


def test_the_exponential_contains_the_value() -> None:
    for x in [*_points(1, 400, 40), *_points(2, 50, 1024)]:
        value = mpmath.exp(_real(x))
        _contains(enclosures.exp(enclosures.enclose(x)), value, width=2 + value)


def test_the_exponential_of_an_interval_and_of_what_is_too_large() -> None:
    low, high = enclosures.exp((-ONE, ONE))
    assert enclosures.exp((-ONE, -ONE))[0] == low
    assert enclosures.exp((ONE, ONE))[1] == high
    assert enclosures.exp((-(10**9) * ONE, -(10**9) * ONE)) == (0, 1)
    with pytest.raises(ValueError, match="exponent above"):
        enclosures.exp((0, 1025 * ONE))


def test_the_logarithm_contains_the_value() -> None:
    rng = random.Random(3)
    large = [Fraction(rng.randrange(1, 1 << rng.randrange(1, 700)), ONE) for _ in range(400)]
    near_one = [1 + Fraction(rng.randrange(-ONE // 2, ONE), ONE << rng.randrange(100)) for _ in range(200)]
    for y in [*large, *(Fraction(int(y * ONE), ONE) for y in near_one), Fraction(1), Fraction(2), Fraction(1, 2)]:
        _contains(enclosures.log(enclosures.enclose(y)), mpmath.log(_real(y)), width=mpmath.mpf(3))
    for nothing in (0, -1):
        with pytest.raises(ValueError, match="not positive"):
            enclosures.log((nothing, ONE))


def test_the_normal_distribution_contains_the_value() -> None:
    for x in [*_points(4, 500, 6), *_points(5, 100, 20), *(Fraction(j, 32) for j in range(-520, 520, 7))]:
        _contains(enclosures.normal(enclosures.enclose(x)), mpmath.ncdf(_real(x)), width=mpmath.mpf(18))
    low, high = enclosures.normal((-ONE, ONE))
    assert _real(Fraction(low, ONE)) <= mpmath.ncdf(-1)
    assert _real(Fraction(high, ONE)) >= mpmath.ncdf(1)


def test_functions_of_an_interval_contain_the_values_at_both_ends() -> None:
    rng = random.Random(7)
    for _ in range(100):
        low, high = sorted(rng.randrange(1, 5 * ONE) for _ in range(2))
        for function, exact in (
            (enclosures.exp, mpmath.exp),
            (enclosures.log, mpmath.log),
            (enclosures.sqrt, mpmath.sqrt),
            (enclosures.normal, mpmath.ncdf),
        ):
            found = function((low, high))
            assert _real(Fraction(found[0], ONE)) <= exact(_real(Fraction(low, ONE)))
            assert _real(Fraction(found[1], ONE)) >= exact(_real(Fraction(high, ONE)))


def test_square_roots_quotients_products_and_pi() -> None:
    rng = random.Random(6)
    for _ in range(300):
        x = Fraction(rng.randrange(1, 1 << rng.randrange(1, 300)), rng.randrange(1, 1 << rng.randrange(1, 90)))
        interval = enclosures.enclose(x)
        root = mpmath.sqrt(_real(x))
        _contains(enclosures.sqrt(interval), root, width=3 + 1 / root)
        a, b, c, d = sorted(rng.randrange(-3 * ONE, 3 * ONE) for _ in range(4))
        left, right = ((a, b), (c, d)) if rng.random() < 0.5 else ((a, c), (b, d))
        products = [Fraction(i * j, ONE * ONE) for i in left for j in right]
        found = enclosures.fractions(enclosures.multiply(left, right))
        assert 0 <= min(products) - found[0] < Fraction(1, ONE)
        assert 0 <= found[1] - max(products) < Fraction(1, ONE)
        if right[0] > 0:
            quotients = [Fraction(i, j) for i in left for j in right]
            found = enclosures.fractions(enclosures.divide(left, right))
            assert 0 <= min(quotients) - found[0] < Fraction(1, ONE)
            assert 0 <= found[1] - max(quotients) < Fraction(1, ONE)
    _contains(enclosures.PI, mpmath.pi, width=mpmath.mpf(2))
    _contains(enclosures.LN2, mpmath.log(2), width=mpmath.mpf(2))
    assert enclosures.sqrt((0, 0)) == (0, 0)
    with pytest.raises(ValueError, match="negative"):
        enclosures.sqrt((-1, 1))
    with pytest.raises(ValueError, match="not positive"):
        enclosures.divide((1, 1), (0, 1))
