"""The gallery's shuffled bandits against hockey-stick divergences of binomial laws that are summed here."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from privcheck.commands.settings import resolve_setting
from privcheck.declare.statistics import Stated
from privcheck.declare.statistics.records import Records
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.terms.symbols import sqrt
from privcheck.verification import verify
from privcheck_algorithms.gallery.shuffled_bandits import doubling


def judge(name, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values), setting


def sent(users, threshold):
    """How many noise bits all users draw, and the probability of a 1, as the protocol says it."""
    return (users * math.ceil(threshold / users), 0.5) if users <= threshold else (users, threshold / (2 * users))


def counter_epsilon(bits, probability, delta):
    """ε at δ of Bin(N, p) + 1 against Bin(N, p), of both orders the larger, every mass added up."""
    k = np.arange(bits + 2)
    p, q = binom.pmf(k - 1, bits, probability), binom.pmf(k, bits, probability)

    def excess(e, a, b):
        return math.fsum(np.maximum(a - math.exp(e) * b, 0)) - delta

    return max(brentq(excess, 0, 30, args=(a, b), xtol=1e-12) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize(("epsilon", "users"), [(1, 20_000), ("1/2", 6), (3, 3000)])
def test_the_shuffled_bandit_costs_its_dearest_counter(epsilon, users):
    verdict, _ = judge("shuffled-bandit", epsilon=epsilon, K=users)
    claimed = float(Fraction(epsilon))
    threshold = 96 * math.log(2e5) / claimed**2
    sizes, left = [], users
    while left:
        sizes.append(min(left, 2 ** (len(sizes) + 1)))
        left -= sizes[-1]
    true = max(counter_epsilon(*sent(n, threshold), 1e-5) for n in sizes)
    assert verdict.verdict == "holds"
    assert verdict.lower_ratio * claimed <= true * (1 + 1e-9)
    assert true <= verdict.upper_ratio * claimed * (1 + 1e-9)
    assert verdict.upper_ratio * claimed <= math.sqrt(2) * true  # of rarer bits half are lost to the proof


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_the_shuffled_linear_bandit_costs_its_coordinates_together(dimension):
    """N is near 10⁶ and more: the sum of as many binomials as there are coordinates is Gaussian to a thousandth."""
    verdict, _ = judge("shuffled-linear-bandit", d=dimension)
    m = dimension + dimension * (dimension + 1) // 2
    share = 1 / math.sqrt(8 * m * math.log(2e5))
    threshold = 96 * math.log(4 * m * 1e5) / share**2
    bits = min(sent(n, threshold)[0] for n in doubling({"K": 20_000}))
    mu = math.sqrt(m) * 2 / math.sqrt(bits)

    def excess(e):
        return norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - 1e-5

    expected = brentq(excess, 0, 10)
    assert verdict.verdict == "holds"
    assert verdict.upper_ratio == pytest.approx(expected, rel=2e-3)
    assert verdict.lower_ratio == pytest.approx(expected, rel=2e-3)
    assert verdict.lower_ratio <= verdict.upper_ratio


def test_a_coordinate_that_is_no_bit_is_refused():
    _, setting = judge("shuffled-linear-bandit")
    statistic = setting.declared.releases[0].statistic
    bits = np.array([0.0, 1, 1, 0, 1])
    assert statistic.compute(Records(rows=(bits, bits))).tolist() == [[0, 2, 2, 0, 2]]
    with pytest.raises(TrajectoryError, match="0 or 1"):
        statistic.compute(Records(rows=(bits / 2,)))


def test_a_sum_that_moves_by_a_part_of_its_largest_move_is_not_stepwise():
    _, setting = judge("shuffled-linear-bandit")
    (release,) = setting.declared.releases
    thirds = Stated(
        "thirds of bits", l1=5, l2=sqrt(5), linf=1, shape=(5,), stepwise=True,
        compute=lambda rows: np.sum(rows, axis=0), records=lambda _, rng: rng.integers(0, 4, 5) / 3,
    )  # fmt: skip
    false = replace(setting.declared, releases=(replace(release, statistic=thirds),))
    with pytest.raises(DeclarationError, match="not `stepwise`"):
        verify(false, setting.values)


def test_batches_double_until_the_users_are_dealt_out():
    for users in (2, 3, 20, 30, 1000):
        sizes = doubling({"K": users})
        assert max(sizes) <= 2 * users
        assert set(sizes) <= {2**b for b in range(1, 11)} | {users - (2**b - 2) for b in range(1, 11)}
