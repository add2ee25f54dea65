"""Laws of selections with Gaussian noise: integrals over one shared draw, by the trapezoidal rule with a proved error.

L-LEVELS of docs/certificates.md: with nodes j/d, K (1/d)^2 <= 49/100, the rule errs by a share of at most 2^-56, where
K is the number of factors exp(-u^2/2), Phi(r u - q) of the integrand, those of Phi counted r^2 times.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt

from privcheck_check.enclosures import ONE, Interval, divide, enclose, exp, fractions, multiply, normal
from privcheck_check.terms import Ends, spend

REACH = 17  # nodes up to 17 spreads of the shared draw; beyond are less than 2^-200 of its law
SLACK = ONE >> 54  # three shares of 2^-56, and some
OUTSIDE = 4  # units of 2^-192 that are more than all terms beyond the last node
Groups = list[tuple[int, Interval]]  # so many numbers at one level, in spreads of their noise


def _nodes(times: Fraction, work: int) -> Iterator[tuple[Interval, Interval]]:
    """Nodes u with exp(-u^2/2), fine enough for `times` factors; `work` steps a node are paid."""
    top, bottom = times.as_integer_ratio()
    d = isqrt(100 * top // (49 * bottom)) + 1
    spend((2 * REACH * d + 1) * work)
    for j in range(-REACH * d, REACH * d + 1):
        u = Fraction(j, d)
        yield enclose(u), exp(enclose(-u * u / 2))


def _power(x: Interval, count: int) -> Interval:
    """x^count of an interval in [0, 1]."""
    result = (ONE, ONE)
    for bit in f"{count:b}" if count else "":
        result = multiply(result, result)
        result = multiply(result, x) if bit == "1" else result
    return result


def _moved(u: Interval, by: Interval) -> Interval:
    """Phi at u - by."""
    return normal((u[0] - by[1], u[1] - by[0]))


def _shares(sums: list[Interval], total: Interval) -> list[Ends]:
    """The integrals as shares of that of the shared draw alone: L-LEVELS."""
    found = []
    for each in sums:
        low, high = divide(each, total)
        found.append(fractions((max(0, low - SLACK), high + SLACK + OUTSIDE)))
    return [(low, min(Fraction(1), high)) for low, high in found]


def first_above(ratio: Interval, groups: Groups) -> list[Ends]:
    """Probabilities that no query is above the threshold, and that the first of each group, and so on, is the first.

    Args:
        ratio: The threshold's spread in spreads of a query's noise.
        groups: Queries in the order in which they are asked, above the threshold by so many spreads of their noise.
    """
    size = sum(count for count, _ in groups)
    times = 1 + size * fractions(multiply(ratio, ratio))[1]
    sums, total = [(0, 0)] * (size + 1), (0, 0)
    for u, weight in _nodes(times, 10 * len(groups) + size // 4):
        total = total[0] + weight[0], total[1] + weight[1]
        left, place, z = weight, 1, multiply(ratio, u)
        for count, level in groups:
            below = _moved(z, level)
            above = ONE - below[1], ONE - below[0]
            for i in range(place, place + count):
                term = multiply(left, above)
                sums[i] = sums[i][0] + term[0], sums[i][1] + term[1]
                left = multiply(left, below)
            place += count
        sums[0] = sums[0][0] + left[0], sums[0][1] + left[1]
    return _shares(sums, total)


def winners(groups: Groups) -> list[Ends]:
    """Probabilities that the largest noisy score is one of each group, at these levels in spreads of their noise."""
    size, found = sum(count for count, _ in groups), []
    for g, (own, level) in enumerate(groups):
        total = value = (0, 0)
        for u, weight in _nodes(Fraction(size), 20 * len(groups)):
            total, term = (total[0] + weight[0], total[1] + weight[1]), weight
            for h, (count, other) in enumerate(groups):
                behind = _moved(u, (other[0] - level[1], other[1] - level[0]))
                term = multiply(term, _power(behind, count - (g == h)))
            value = value[0] + own * term[0], value[1] + own * term[1]
        found += _shares([value], total)
    return found
