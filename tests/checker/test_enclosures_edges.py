"""The steps of the enclosures at the working scale: each within the error that its comment proves, and no wider."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from privcheck_check import enclosures
from privcheck_check.enclosures import BITS, GUARD, LARGEST, ONE, UNITY, WORK

F = Fraction
Real = Any  # mpmath has no types


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(110):
        yield


def real(x: Fraction | int) -> Real:
    return mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator


def test_scales() -> None:
    assert (BITS, ONE, GUARD, WORK, UNITY) == (192, 2**192, 32, 224, 2**224)


# ── Arithmetic ──


def test_fractions_are_enclosed_by_the_next_units() -> None:
    for x in (F(0), F(1), F(-1), F(1, 3), F(-1, 3), F(7, 2**192), F(-7, 2**193), F(5**99, 3)):
        assert enclosures.enclose(x) == (math.floor(x * ONE), math.ceil(x * ONE))
        assert enclosures.fractions(enclosures.enclose(x))[0] == F(math.floor(x * ONE), ONE)
        assert enclosures.fractions(enclosures.enclose(x))[1] == F(math.ceil(x * ONE), ONE)


def test_products_and_quotients_are_the_next_units_about_all_values() -> None:
    ends = [-3 * ONE - 1, -ONE, -1, 0, 1, ONE // 3, 2 * ONE + 1]
    for left in itertools.combinations_with_replacement(ends, 2):
        for right in itertools.combinations_with_replacement(ends, 2):
            values = [F(a * b, ONE) for a in left for b in right]
            assert enclosures.multiply(left, right) == (math.floor(min(values)), math.ceil(max(values)))
            if right[0] > 0:
                values = [F(a * ONE, b) for a in left for b in right]
                assert enclosures.divide(left, right) == (math.floor(min(values)), math.ceil(max(values)))
            else:
                with pytest.raises(ValueError, match="divisor"):
                    enclosures.divide(left, right)


def test_square_roots_are_the_next_units() -> None:
    for x in (0, 1, 2, ONE, 4 * ONE, 2 * ONE, 9 * ONE + 1, 9 * ONE - 1, ONE // 9):
        low, high = enclosures.sqrt((x, x))
        assert low**2 <= x * ONE <= high**2
        assert high - low == (low**2 != x * ONE)
    assert enclosures.sqrt((ONE, 4 * ONE)) == (ONE, 2 * ONE)
    for low in (-1, -ONE):
        with pytest.raises(ValueError, match="negative"):
            enclosures.sqrt((low, ONE))


def test_outward_shifts() -> None:
    for value in (-(5 << 31), -1, 0, 1, 1 << 32, (1 << 32) + 1, 12345 << 40):
        assert enclosures._outward(value, value) == (math.floor(F(value, 2**32)), math.ceil(F(value, 2**32)))
        assert enclosures._constant(value, 7) == (math.floor(F(value - 7, 2**32)), math.ceil(F(value + 7, 2**32)))
        for by in (-33, -1, 0, 1, 5):
            assert enclosures._shift(value, by) == math.floor(value * F(2) ** by)


# ── Constants ──


def test_arcus_and_area_series_are_within_256_units() -> None:
    for base in (3, 5, 239):
        for alternate, exact in ((True, mpmath.atan(real(F(1, base)))), (False, mpmath.atanh(real(F(1, base))))):
            assert abs(enclosures._inverse_series(base, alternate=alternate) - exact * UNITY) <= 256
    for (low, high), exact in ((enclosures.PI, mpmath.pi), (enclosures.LN2, mpmath.log(2))):
        assert low < exact * ONE < high
        assert high - low == 1


# ── Exponential ──


def test_the_exponential_of_small_numbers_is_four_units_below_at_most() -> None:
    rng = random.Random(1)
    for x in (0, 1, UNITY >> 6, (UNITY >> 6) - 1, *(rng.randrange(UNITY >> 6) for _ in range(40))):
        assert 0 <= mpmath.exp(real(F(x, UNITY))) * UNITY - enclosures._exp_small(x) <= 4


def test_the_table_of_the_exponential_is_two_to_the_tenth_units_below_at_most() -> None:
    table = enclosures._exp_table()
    assert len(table) == 64
    assert table[0] == UNITY
    for j, value in enumerate(table):
        assert 0 <= mpmath.exp(real(F(j, 64))) * UNITY - value <= 2**10


def test_the_exponential_at_the_working_scale() -> None:
    """Between the ends, which are 2¹³ units apart and 2¹³ more for each power of two."""
    rng = random.Random(2)
    log2 = int(mpmath.log(2) * UNITY)
    points = [F(rng.randrange(-900, 900)) + F(rng.randrange(UNITY), UNITY) for _ in range(40)]
    points += [F(j, 64) + F(d, UNITY) for j in (-64, -1, 0, 1, 31, 44, 45, 63) for d in (-1, 0, 1)]
    for x in [int(point * UNITY) for point in points] + [log2 + d for d in (-5, 0, 5)] + [7 * log2, -7 * log2]:
        low, high, k = enclosures._exp(x)
        assert low <= mpmath.exp(real(F(x, UNITY))) / mpmath.mpf(2) ** k * UNITY <= high
        assert high - low == (abs(k) + 1) << 13
        assert UNITY * F(99, 100) < low < high < UNITY * F(201, 100)


def test_exponents_are_limited() -> None:
    assert LARGEST == 1024
    high = LARGEST * ONE
    low, above = enclosures._exp_point(high)
    assert low < mpmath.exp(1024) * ONE < above
    assert (above - low) >> 1100 < 2**400
    with pytest.raises(ValueError, match="1024"):
        enclosures._exp_point(high + 1)
    for x in (-high, -high - 1, -(10**9) * ONE, -500 * ONE):
        assert enclosures._exp_point(x) == (0, 1)
    assert enclosures._exp_point(-130 * ONE) == (int(mpmath.exp(-130) * ONE), int(mpmath.exp(-130) * ONE) + 1)


def test_the_exponential_is_narrow() -> None:
    for x in (0, ONE // 3, ONE, 2 * ONE, -ONE, -ONE // 7, -20 * ONE):
        low, high = enclosures.exp((x, x))
        exact = mpmath.exp(real(F(x, ONE))) * ONE
        assert low <= exact <= high
        assert high - low <= max(2, 2 * int(exact / ONE))
    assert enclosures.exp((-ONE, ONE)) == (enclosures.exp((-ONE, -ONE))[0], enclosures.exp((ONE, ONE))[1])


# ── Logarithm ──


def test_the_logarithm_at_the_working_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the last rounding: between the ends, which are 2⁻²²⁰ apart, and more for each power of two."""
    monkeypatch.setattr(enclosures, "_outward", lambda low, high: (low, high))
    rng = random.Random(3)
    points = [rng.randrange(ONE, 2 * ONE) for _ in range(60)]
    points += [rng.randrange(1, 1 << rng.randrange(2, 700)) for _ in range(60)]
    for y in [*points, 1, 2, ONE - 1, ONE, ONE + 1, 2 * ONE, 2 * ONE - 1, 3 * ONE, ONE // 2, ONE << 400]:
        low, high = enclosures._log_point(y)
        assert low <= mpmath.log(real(F(y, ONE))) * UNITY <= high
        assert high - low <= 2**16 + (abs(y.bit_length() - 193) << 12)


def test_a_wrong_hint_of_a_logarithm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints up to 2⁻³⁹ off give the logarithm, those 2⁻³⁵ off are refused, above and below."""
    monkeypatch.setattr(enclosures, "_outward", lambda low, high: (low, high))
    exact = enclosures.float_log
    for off in (2.0**-39, -(2.0**-39), 2.0**-38, -(2.0**-38)):
        monkeypatch.setattr(enclosures, "float_log", lambda x, by=off: exact(x) + by)
        for y in (3 * ONE // 2, 5 * ONE // 4):
            low, high = enclosures._log_point(y)
            assert low <= mpmath.log(real(F(y, ONE))) * UNITY <= high
    for off in (2.0**-35, -(2.0**-35), 0.1, -0.1, 2.0**-36, -(2.0**-36)):
        monkeypatch.setattr(enclosures, "float_log", lambda x, by=off: exact(x) + by)
        with pytest.raises(ValueError, match="hint"):
            enclosures._log_point(3 * ONE // 2)


def test_the_logarithm_of_an_interval() -> None:
    assert enclosures.log((ONE, 2 * ONE)) == (enclosures.log((ONE, ONE))[0], enclosures.log((2 * ONE, 2 * ONE))[1])
    low, high = enclosures.log((1, 1))
    assert low < mpmath.log(2) * -192 * ONE < high
    for nothing in (0, -1):
        with pytest.raises(ValueError, match="not positive"):
            enclosures.log((nothing, ONE))


# ── Normal distribution ──


def test_the_table_of_the_normal_distribution() -> None:
    """Φ(j/16) within 2¹⁰ units a step, the density within 2¹³, coefficients in proportion; highest first."""
    table = enclosures._normal_table()
    assert len(table) == 257
    for j in (0, 1, 2, 3, 8, 16, 50, 128, 255, 256):
        value, coefficients = table[j]
        centre = real(F(j, 16))
        assert abs(value - mpmath.ncdf(centre) * UNITY) <= 2**10 * j
        assert len(coefficients) == 32
        exact = [mpmath.npdf(centre), -centre * mpmath.npdf(centre)]  # Taylor: (n + 1)·c_(n + 1) = −x·c_n − c_(n − 1)
        for n in range(1, 31):
            exact.append((-centre * exact[n] - exact[n - 1]) / (n + 1))
        for n, found in enumerate(reversed(coefficients)):
            assert abs(found - exact[n] / (n + 1) * UNITY) <= 2**13 * abs(exact[n] / exact[0]) / (n + 1) + 1


def test_an_increase_of_the_normal_distribution_is_within_two_to_the_ninth_units() -> None:
    table = enclosures._normal_table()
    for j in (0, 1, 5, 40, 120, 256):
        for part in (F(1, 32), F(-1, 32), F(1, 77), F(-1, 1000), F(0)):
            d = int(part * UNITY)
            exact = mpmath.ncdf(real(F(j, 16) + F(d, UNITY))) - mpmath.ncdf(real(F(j, 16)))
            assert abs(enclosures._increase(table[j][1], d) - exact * UNITY) <= 2**9


def test_one_value_of_the_normal_distribution_is_within_four_units() -> None:
    rng = random.Random(4)
    points = [rng.randrange(-16 * ONE, 16 * ONE) for _ in range(60)] + [j * ONE // 32 for j in range(-70, 71, 3)]
    for x in [*points, 0, 1, -1, 16 * ONE, -16 * ONE, 16 * ONE + ONE // 33, -16 * ONE - ONE // 31, 30 * ONE, -30 * ONE]:
        assert abs(enclosures._normal_point(x) - mpmath.ncdf(real(F(x, ONE))) * ONE) <= 4
    assert enclosures._normal_point(17 * ONE) == ONE
    assert enclosures._normal_point(-17 * ONE) == 0


def test_the_normal_distribution_of_an_interval() -> None:
    """One evaluation at the low end; half the width more above, cut to [0, 1]."""
    value = enclosures._normal_point(ONE)
    assert enclosures.normal((ONE, ONE)) == (value - 8, value + 8)
    assert enclosures.normal((ONE, ONE + 5)) == (value - 8, value + 8 + 3)
    assert enclosures.normal((ONE, ONE + 6)) == (value - 8, value + 8 + 3)
    assert enclosures.normal((-40 * ONE, -40 * ONE)) == (0, 8)
    assert enclosures.normal((40 * ONE, 40 * ONE)) == (ONE - 8, ONE)
    assert enclosures.normal((0, 9 * ONE))[1] == ONE
