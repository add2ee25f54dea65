"""Enclosures of exp, log, square root, pi and the normal distribution, in integers.

An ``Interval`` (low, high) of integers stands for the real numbers between low/2^192 and high/2^192. Every function
takes intervals and gives an interval that contains its value at every point of theirs: low is rounded down, high up.
Work is done with 32 further bits; the slacks are proved where they are added. The one float is the hint of ``log``,
which is checked.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial, isqrt
from math import log as float_log

BITS = 192
ONE = 1 << BITS
Interval = tuple[int, int]

GUARD = 32
WORK = BITS + GUARD  # "a unit" in the comments below is 2^-224
UNITY = 1 << WORK
LARGEST = 1024  # exponents beyond are refused
EXP_TERMS = 25  # (1/64)^25 / 25! < 2^-233
STEP = 16  # the normal distribution is expanded about multiples of 1/16
FARTHEST = 16 * STEP  # 1 - Phi(16) < 2^-190
NORMAL_TERMS = 32


def enclose(value: Fraction) -> Interval:
    """The tightest interval about a fraction."""
    low, rest = divmod(value.numerator << BITS, value.denominator)
    return low, low + (rest > 0)


def fractions(interval: Interval) -> tuple[Fraction, Fraction]:
    """The two ends of an interval as fractions."""
    return Fraction(interval[0], ONE), Fraction(interval[1], ONE)


def multiply(left: Interval, right: Interval) -> Interval:
    """The products of two intervals, whatever their signs."""
    products = [a * b for a in left for b in right]
    return min(products) >> BITS, -(-max(products) >> BITS)


def divide(left: Interval, right: Interval) -> Interval:
    """The quotients of two intervals; ValueError unless the divisor is positive."""
    if right[0] <= 0:
        raise ValueError("a divisor is not positive")
    low, high = left
    # a negative numerator is smallest over the smallest divisor, a positive one over the largest
    bottom = (low << BITS) // right[low >= 0]
    return bottom, -((-high << BITS) // right[high < 0])


def sqrt(value: Interval) -> Interval:
    """Square roots; ValueError below zero."""
    if value[0] < 0:
        raise ValueError("a square root of a negative number")
    low, high = (isqrt(end << BITS) for end in value)
    return low, high + (high * high != value[1] << BITS)


def _inverse_series(base: int, *, alternate: bool) -> int:
    """Floor sum of 1/((2k+1) base^(2k+1)), signs alternating for atan, equal for atanh; at most 256 units off.

    At most 128 terms for base >= 3, each at most two units off; what is left out is below one unit.
    """
    total, power, k = 0, UNITY // base, 0
    while power:
        total += (-1 if alternate and k % 2 else 1) * (power // (2 * k + 1))
        power //= base * base
        k += 1
    return total


def _outward(low: int, high: int) -> Interval:
    """From the working scale to 2^-192."""
    return low >> GUARD, -(-high >> GUARD)


def _constant(value: int, slack: int) -> Interval:
    return _outward(value - slack, value + slack)


# Machin: pi = 16 atan(1/5) - 4 atan(1/239); ln 2 = 2 atanh(1/3). 20 * 256 < 2^13 units, 512 < 2^10 units.
_PI = 16 * _inverse_series(5, alternate=True) - 4 * _inverse_series(239, alternate=True)
_LN2 = 2 * _inverse_series(3, alternate=False)
PI: Interval = _constant(_PI, 1 << 13)
LN2: Interval = _constant(_LN2, 1 << 10)

_EXP_COEFFICIENTS = [UNITY // factorial(n) for n in reversed(range(EXP_TERMS))]


def _exp_small(x: int) -> int:
    """e^x from below, 0 <= x <= 1/64, at the working scale; at most 4 units below.

    Coefficients and products are rounded down, each by less than a unit, and the later ones are multiplied by further
    powers of x: less than 2 / (1 - 1/64) units; the terms left out are below 2^-9 units.
    """
    total = 0
    for coefficient in _EXP_COEFFICIENTS:
        total = coefficient + (total * x >> WORK)
    return total


@cache
def _exp_table() -> list[int]:
    """e^(j/64) from below for j < 64, at the working scale; at most 2^10 units below.

    Each step multiplies the relative error by (1 + 4 units) and floors: 64 steps at values below e, < 64 (4e + 1).
    """
    step, table = _exp_small(UNITY >> 6), [UNITY]
    for _ in range(63):
        table.append(table[-1] * step >> WORK)
    return table


def _exp(x: int) -> tuple[int, int, int]:
    """(low, high, k), e^x between low 2^k and high 2^k units, x at the working scale, low and high near [1, 2).

    x = k ln 2 + r with an error of at most 2^10 |k| units in r, so of at most 2^12 |k| units in e^r < 2.1; the product
    of table and series is at most 2 * 2^10 + 8 + 1 units below. Together less than (|k| + 1) 2^12 units.
    """
    k, rest = divmod(x, _LN2)
    index = rest >> (WORK - 6)
    value = _exp_table()[index] * _exp_small(rest - (index << (WORK - 6))) >> WORK
    slack = (abs(k) + 1) << 12
    return value - slack, value + slack, k


def _shift(value: int, by: int) -> int:
    """Floor of value * 2^by."""
    return value << by if by >= 0 else value >> -by


def _exp_point(x: int) -> Interval:
    """e^x for one number at the scale 2^-192."""
    if x > LARGEST * ONE:
        raise ValueError(f"an exponent above {LARGEST}")
    if x < -LARGEST * ONE:
        return 0, 1
    low, high, k = _exp(x << GUARD)
    return max(0, _shift(low, k - GUARD)), -_shift(-high, k - GUARD)


def exp(x: Interval) -> Interval:
    """The exponential; relative width near 2^-200 |x| above one, 2^-191 below; ValueError above e^1024."""
    low, high = _exp_point(x[0])
    return low, high if x[0] == x[1] else _exp_point(x[1])[1]


def _log_point(y: int) -> Interval:
    """The logarithm of one positive number at the scale 2^-192.

    y = 2^e m, m in [1, 2) cut to 224 bits (by at most a unit), log y = e ln 2 + hint + log(1 + u) with
    u = m exp(-hint) - 1. Whatever the hint, |u| <= 2^-37 is tested; then |u|^6 / 6 is below one unit, the floors of
    five terms below 15, and the derivative of log at 1 + u below 1.01.
    """
    exponent = y.bit_length() - 1
    mantissa = _shift(y, WORK - exponent)
    hint = int(float_log((mantissa >> (WORK - 52)) / 2**52) * 2**40) << (WORK - 40)
    low, high, k = _exp(-hint)
    u, above = _shift(mantissa * low >> WORK, k) - UNITY, -_shift(-(mantissa + 1) * high >> WORK, k) - UNITY
    if max(abs(u), abs(above)) >> (WORK - 37):
        raise ValueError("the hint of a logarithm is wrong")
    total, power = 0, UNITY
    for n in range(1, 6):
        power = power * u >> WORK
        total += (power if n % 2 else -power) // n
    total += hint + (exponent - BITS) * _LN2
    slack = 16 + abs(exponent - BITS) * 2**10
    return _outward(total - slack, total + slack + 2 * (above - u))


def log(y: Interval) -> Interval:
    """The natural logarithm; width some 2^-198 times 1 + |log y|; ValueError unless positive."""
    if y[0] <= 0:
        raise ValueError("a logarithm of a number that is not positive")
    low, high = _log_point(y[0])
    return low, high if y[0] == y[1] else _log_point(y[1])[1]


def _increase(coefficients: list[int], d: int) -> int:
    """Phi(centre + d) - Phi(centre) at the working scale, |d| <= 1/32, from Taylor coefficients, highest first."""
    total = 0
    for coefficient in coefficients:
        total = coefficient + (total * d >> WORK)
    return total * d >> WORK


@cache
def _normal_table() -> list[tuple[int, list[int]]]:
    """Phi and the Taylor coefficients of Phi at j/16, j = 0 to 256, at the working scale.

    phi(x0 + d) = sum of c_n d^n, c_0 = phi(x0), (n+1) c_(n+1) = -x0 c_n - c_(n-1): with x0 = j/16 the integers
    h_n = 16^n n! c_n / c_0 obey h_(n+1) = -j h_n - 256 n h_(n-1). Phi(x0 + d) - Phi(x0) = sum of c_n d^(n+1) / (n+1).

    One increase, |d| <= 1/32: c_0 is within 2^13 units, and sum |c_n / c_0| |d|^(n+1) <= |d| e^(x0 |d| + d d/2)
    < .052; floors of coefficients (times |d|) and of products are below 3 units; terms left out: |phi(z)| <=
    e^8 / sqrt(2 pi) < 1190 on the circle of radius 4, so |c_n| <= 1190 / 4^n (Cauchy), and those from n = 32 are below
    1190 / (32 * 33) 2^-224 * 1.01 < 2 units. Together below 2^9 units. Phi(0) = 1/2; a step of the table adds two
    increases: at most 2^10 units a step, 2^18 units at the last.
    """
    root = isqrt(2 * _PI << WORK)
    table: list[tuple[int, list[int]]] = []
    value, half = UNITY >> 1, UNITY // (2 * STEP)
    for j in range(FARTHEST + 1):
        low, _, k = _exp(-(j * j << WORK) // (2 * STEP * STEP))
        density = (_shift(low, k) << WORK) // root
        hermite, before = 1, 0
        coefficients = []
        for n in range(NORMAL_TERMS):
            coefficients.append(density * hermite // (STEP**n * factorial(n + 1)))
            hermite, before = -j * hermite - STEP * STEP * n * before, hermite
        coefficients.reverse()
        if j:
            value += _increase(table[-1][1], half) - _increase(coefficients, -half)
        table.append((value, coefficients))
    return table


def _normal_point(x: int) -> int:
    """Phi of one number at the scale 2^-192, within one of its units; 2^18 + 2^9 + 2 units are far below 2^32."""
    size = abs(x)
    index = (size * STEP + (ONE >> 1)) >> BITS
    if index > FARTHEST:
        value = UNITY  # 1 - Phi(16) < 2^-190 < 4 * 2^-192; the caller's slack of 8 covers it
    else:
        centre, coefficients = _normal_table()[index]
        value = centre + _increase(coefficients, (size << GUARD) - (index << WORK) // STEP)
    return (value if x >= 0 else UNITY - value) >> GUARD


def normal(x: Interval) -> Interval:
    """The distribution function of the standard normal law; absolute width 2^-188 for a point.

    One evaluation at the lower end: the density is below 1/2. The slack 8 covers ``_normal_point``'s error of at most
    four of its units, floors included.
    """
    value = _normal_point(x[0])
    return max(0, value - 8), min(ONE, value + 8 + (x[1] - x[0] + 1) // 2)
