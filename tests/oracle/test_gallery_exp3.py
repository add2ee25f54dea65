"""EXP3's price against sequences of arms and gains that are all enumerated here, by a recursion of its own."""

import itertools
import math
from fractions import Fraction

import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.verification import verify


def judge(**given):
    setting = resolve_setting("exp3", {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values)


def law(gains, gamma):
    """Every sequence of arms with its probability: EXP3 as Auer et al. 2002 print it, weights w ← w·exp(γ·ĝ/K)."""
    arms = len(gains[0])

    def play(drawn, weights, probability):
        if len(drawn) == len(gains):
            yield drawn, probability
            return
        for arm in range(arms):
            p = (1 - gamma) * weights[arm] / sum(weights) + gamma / arms
            grown = list(weights)
            grown[arm] *= math.exp(gamma * gains[len(drawn)][arm] / p / arms)
            yield from play((*drawn, arm), grown, probability * p)

    return dict(play((), [1.0] * arms, 1.0))


def loss(first, second, gamma):
    p, q = law(first, gamma), law(second, gamma)
    return max(abs(math.log(p[arms] / q[arms])) for arms in p)


# [lemma exp3]
@pytest.mark.parametrize("odds", ["1/9", "1", "1/100"])
def test_no_gains_of_four_rounds_lose_more_than_the_price_and_the_known_pair_is_one_of_them(odds):
    s = float(Fraction(odds))
    gamma, rounds, arms = s / (1 + s), 4, 2
    worst = 0.0
    rows = list(itertools.product((0, 1), repeat=arms))
    for later in itertools.product(rows, repeat=rounds - 1):
        for one, two in itertools.combinations(rows, 2):
            worst = max(worst, loss([one, *later], [two, *later], gamma))
    verdict = judge(odds=odds, rounds=rounds, rate=Fraction(odds) / (1 + Fraction(odds)) / arms)
    claimed = rounds * math.log(1 + arms / s)
    assert verdict.verdict == "holds"
    assert verdict.upper_ratio == pytest.approx((rounds - 1) / rounds, rel=1e-12)
    known = max(
        loss([(0, 0), *[(later, later)] * (rounds - 1)], [(1, 0), *[(later, later)] * (rounds - 1)], gamma)
        for later in (0, 1)
    )
    assert verdict.lower_ratio * claimed == pytest.approx(known, rel=2e-3)
    assert verdict.lower_ratio * claimed <= known * (1 + 1e-12)
    assert known <= worst <= (rounds - 1) / rounds * claimed


def test_more_sequences_than_are_enumerated_are_refused():
    with pytest.raises(ParameterError, match="fewer rounds"):
        judge(rounds=40)
