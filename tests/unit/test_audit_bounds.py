"""The coin flip's bounds against slow twins: enumeration, bisection in 40 digits, published figures."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.errors import ParameterError
from privcheck_audits.bounds import (
    CoinFlip,
    CurveFlip,
    GuessPlan,
    OneRun,
    bound_at_ranks,
    error_rate_at_most,
    few_errors_p_value,
    guess_plan,
    user_epsilon,
)
from privcheck_audits.bounds.discrete import exact_epsilon, impossible_epsilon
from privcheck_audits.bounds.e_process import anytime_epsilon, log_e_value
from privcheck_audits.bounds.tails import clopper_pearson_pair
from privcheck_audits.engine.sequential import sequential

COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
ALPHA = st.sampled_from([0.5, 0.05, 0.01, 1e-4, 1e-9])


def tail_40_digits(errors: int, runs: int, rate: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        rate = mpmath.mpf(rate)
        return mpmath.betainc(runs - errors, errors + 1, 0, 1 - rate, regularized=True)


@given(COUNTS, ALPHA)
def test_the_error_rate_is_rejected_just_above_the_bound(counts, alpha):
    errors, runs = counts
    bound = error_rate_at_most(errors, runs, alpha=alpha)
    if errors == runs:
        assert bound == 1
        return
    assert tail_40_digits(errors, runs, bound) <= alpha
    assert tail_40_digits(errors, runs, bound * (1 - 1e-9)) > alpha


@given(COUNTS, st.floats(0.001, 0.999))
def test_the_p_value_is_the_binomial_tail_rounded_up(counts, rate):
    errors, runs = counts
    found = few_errors_p_value(errors, runs, rate=rate)
    exact = 1 if errors == runs else tail_40_digits(errors, runs, rate)
    assert found >= exact
    assert found <= max(exact * (1 + 1e-9), 1e-200)


@given(COUNTS, ALPHA)
def test_bound_and_test_are_two_sides_of_one_inequality(counts, alpha):
    flip = CoinFlip(errors=counts[0], guesses=counts[1])
    bound = flip.epsilon(alpha=alpha)
    if bound > 0:
        assert flip.p_value(bound * (1 - 1e-6)) <= alpha
        assert flip.p_value(bound * (1 + 1e-6) + 1e-9) > alpha
    else:
        assert flip.p_value(1e-9) > alpha * (1 - 1e-6)


@given(st.integers(1, 10**7), ALPHA)
def test_bounds_of_no_error_are_their_closed_form_rounded_down(runs, alpha):
    with mpmath.workdps(40):
        rate = -mpmath.expm1(mpmath.log(mpmath.mpf(alpha)) / runs)  # at which no error has probability α
        epsilon = max(mpmath.mpf(0), mpmath.log((1 - rate) / rate))
        mu = max(mpmath.mpf(0), 2 * mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * rate))
        assert (
            epsilon * (1 - mpmath.mpf(1e-9)) - 1e-9 <= CoinFlip(errors=0, guesses=runs).epsilon(alpha=alpha) <= epsilon
        )
        assert mu * (1 - mpmath.mpf(1e-9)) - 1e-9 <= CurveFlip(errors=0, runs=runs).mu(alpha=alpha) <= mu


# [lemma coin-flip]
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_a_correct_mechanism_is_accused_with_probability_at_most_alpha(epsilon, alpha):
    guesses = 300
    rate = 1 / (1 + math.exp(epsilon))
    chance = [binom.pmf(e, guesses, rate) for e in range(guesses + 1)]
    accused = [CoinFlip(errors=e, guesses=guesses).epsilon(alpha=alpha) > epsilon for e in range(guesses + 1)]
    assert math.fsum(p for p, bad in zip(chance, accused, strict=True) if bad) <= alpha


# [lemma gaussian-flip]
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 2.5])
def test_a_gaussian_is_accused_with_probability_at_most_alpha(mu):
    runs, alpha = 300, 0.05
    chance = [binom.pmf(e, runs, norm.cdf(-mu / 2)) for e in range(runs + 1)]
    accused = [CurveFlip(errors=e, runs=runs).mu(alpha=alpha) > mu for e in range(runs + 1)]
    assert math.fsum(p for p, bad in zip(chance, accused, strict=True) if bad) <= alpha


def likeliest_success(runs: int, guesses: int, least: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns how likely at least so many right guesses are, at most: an adversary decides run by run, exactly.

    It knows what was revealed and guessed rightly before, and chooses whether to guess this run; guesses that are still
    owed at the end are lost.
    """
    odds = epsilon / (1 + epsilon)  # of e^ε, given as a fraction

    @cache
    def value(left: int, owed: int, wanted: int) -> Fraction:
        if wanted <= 0:
            return Fraction(1)
        if left == 0 or owed == 0:
            return Fraction(0)
        asked = odds * value(left - 1, owed - 1, wanted - 1) + (1 - odds) * value(left - 1, owed - 1, wanted)
        passed = value(left - 1, owed, wanted)
        revealed = max(value(left - 1, owed - 1, wanted - 1), passed)
        return delta * revealed + (1 - delta) * max(asked, passed)

    return value(runs, guesses, least)


# [lemma revealed-bits]
@given(st.integers(1, 9), st.data(), st.sampled_from([0, 1, 3]), st.sampled_from([Fraction(1, 50), Fraction(1, 3)]))
def test_no_strategy_beats_the_law_of_revealed_bits(runs, data, log_odds, delta):
    guesses = data.draw(st.integers(1, runs))
    errors = data.draw(st.integers(0, guesses))
    odds = Fraction(math.exp(log_odds)).limit_denominator(10**6)
    epsilon = math.log(odds)
    found = CoinFlip(errors=errors, guesses=guesses, coins=runs, delta=float(delta)).p_value(epsilon)
    best = float(likeliest_success(runs, guesses, guesses - errors, odds, delta))
    assert best <= found * (1 + 1e-9)
    if guesses == runs:  # randomised response that reveals its bit with probability δ attains it
        exact = math.fsum(
            binom.pmf(e, runs, (1 - float(delta)) / (1 + float(odds))) for e in range(errors + 1)
        )  # every run is wrong with probability (1 − δ)/(1 + e^ε)
        assert found == pytest.approx(exact, rel=1e-9)


@given(st.integers(1, 100), st.data(), st.sampled_from([1e-5, 0.01, 0.3]), st.floats(0, 4))
def test_the_law_of_revealed_bits_is_a_plain_double_sum(coins, data, delta, epsilon):
    guesses = data.draw(st.integers(1, coins))
    errors = data.draw(st.integers(0, guesses))
    plain = math.fsum(
        binom.pmf(shown, coins, delta)
        * (binom.cdf(errors, guesses - shown, 1 / (1 + math.exp(epsilon))) if shown < guesses else 1)
        for shown in range(coins + 1)
    )
    found = CoinFlip(errors=errors, guesses=guesses, coins=coins, delta=delta).p_value(epsilon)
    assert plain * (1 - 1e-9) <= found <= plain * (1 + 1e-8) + 1e-25


def test_very_many_revealed_bits_are_counted_upwards():
    # 200 000 of 2 000 000, told apart in 200 steps: guessed everywhere, errors are Bin(coins, (1 − δ)/(1 + e^ε))
    coins, delta, rate = 2_000_000, 0.1, 0.9 / (1 + math.e)
    errors = int(binom.ppf(1e-3, coins, rate))
    found = CoinFlip(errors=errors, guesses=coins, coins=coins, delta=delta).p_value(1.0)
    exact = binom.cdf(errors, coins, rate)
    assert exact <= found < 1.1 * exact


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_an_approximate_mechanism_that_reveals_the_bit_is_not_accused(epsilon):
    # the extreme (ε, δ) mechanism: with probability δ it tells the bit, otherwise it answers with odds e^ε
    runs, delta, alpha = 200, 0.05, 0.1
    plan = GuessPlan(shares=(1.0,), weights=(1.0,))
    rate = (1 - delta) / (1 + math.exp(epsilon))

    def accused(delta: float) -> float:
        bounds = [bound_at_ranks((e,), (runs,), plan, runs=runs, alpha=alpha, delta=delta) for e in range(runs + 1)]
        return sum(binom.pmf(e, runs, rate) for e, bound in enumerate(bounds) if bound.epsilon > epsilon)

    assert alpha / 2 < accused(delta) <= alpha  # the law is that of this mechanism: nothing is lost but the steps
    assert accused(0.0) > alpha  # δ has to be paid for: without it the mechanism is accused too often


@given(COUNTS, ALPHA, st.sampled_from([1e-5, 0.01]))
def test_bound_and_test_agree_where_bits_are_revealed(counts, alpha, delta):
    flip = CoinFlip(errors=counts[0], guesses=counts[1], coins=2 * counts[1], delta=delta)
    bound = flip.epsilon(alpha=alpha)
    assert bound <= CoinFlip(errors=counts[0], guesses=counts[1]).epsilon(alpha=alpha)
    if bound > 0:
        assert flip.p_value(bound) <= alpha < flip.p_value(bound * (1 + 1e-6) + 1e-9)
    else:
        assert flip.p_value(1e-9) > alpha * (1 - 1e-6)


@given(COUNTS, ALPHA)
def test_the_curve_is_read_at_the_bound(counts, alpha):
    flip = CurveFlip(errors=counts[0], runs=counts[1])
    mu = flip.mu(alpha=alpha)
    assert flip.epsilon(alpha=alpha, delta=1e-5) <= gdp_epsilon(mu, 1e-5)
    if mu > 0:
        assert flip.p_value(mu * (1 - 1e-6)) <= alpha


@pytest.mark.parametrize(("factor", "published"), [(0.5, 719), (0.8, 11_900), (0.9, 53_500), (0.95, 250_000)])
def test_runs_that_catch_too_little_noise(factor, published):
    # μ of ε = 1 at δ = 1e-5; α = .01 and power .95, by exact binomial tails
    mu = 0.268051

    def power(trials: int) -> float:
        runs, rate = 2 * trials, norm.cdf(-mu / 2)
        critical = int(binom.ppf(0.01, runs, rate)) - 1
        assert (
            CurveFlip(errors=critical, runs=runs).mu(alpha=0.01)
            > mu
            >= CurveFlip(errors=critical + 2, runs=runs).mu(alpha=0.01)
        )
        return float(binom.cdf(critical, runs, norm.cdf(-mu / factor / 2)))

    assert power(int(published * 1.08)) >= 0.95 >= power(int(published * 0.9))


def test_the_plan_spends_no_more_than_alpha():
    for plan in (guess_plan(), guess_plan(0.68)):
        assert math.fsum(plan.weights) == pytest.approx(1)
        assert plan.ranks(1) == (1,) * len(plan.shares)
        assert max(plan.ranks(16_384)) == 16_384
        assert min(plan.ranks(16_384)) == 4


def test_the_best_attempt_is_reported_with_its_own_share_of_alpha():
    plan = GuessPlan(shares=(1.0, 0.1), weights=(0.5, 0.5))
    found = bound_at_ranks((450, 5), (1000, 100), plan, runs=1000, alpha=0.05, delta=0.0)
    assert found.share == 0.1
    assert found.epsilon == CoinFlip(errors=5, guesses=100).epsilon(alpha=0.025)


def test_guesses_that_delta_could_have_bought_prove_nothing():
    flip = CoinFlip(errors=0, guesses=10, coins=1_000, delta=0.02)
    assert flip.epsilon(alpha=0.05) == 0
    assert flip.p_value(1.0) > 0.9


@pytest.mark.parametrize(
    "bad",
    [
        lambda: error_rate_at_most(1, 0, alpha=0.05),
        lambda: error_rate_at_most(3, 2, alpha=0.05),
        lambda: error_rate_at_most(1, 2, alpha=math.nan),
        lambda: error_rate_at_most(1, 2, alpha=0.0),
        lambda: few_errors_p_value(1, 2, rate=math.nan),
        lambda: few_errors_p_value(1, 2, rate=0.5, coins=2, delta=math.nan),
        lambda: CoinFlip(errors=1, guesses=3, coins=2, delta=0.1),
        lambda: CoinFlip(errors=1, guesses=3, coins=3, delta=math.nan),
        lambda: CoinFlip(errors=-1, guesses=3),
        lambda: CurveFlip(errors=4, runs=3),
        lambda: CurveFlip(errors=1, runs=3).epsilon(alpha=0.05, delta=0.0),
        lambda: GuessPlan(shares=(1.0,), weights=(1.1,)),
        lambda: GuessPlan(shares=(0.0,), weights=(1.0,)),
        lambda: GuessPlan(shares=(), weights=()),
    ],
)
def test_misuse_is_refused(bad):
    with pytest.raises(ParameterError):
        bad()


def test_hopeless_odds_do_not_overflow():
    assert CoinFlip(errors=0, guesses=10**9).p_value(1e6) == 1.0
    assert np.isfinite(CoinFlip(errors=0, guesses=10**9).epsilon(alpha=1e-12))


@pytest.mark.parametrize(
    "bound",
    [
        exact_epsilon, impossible_epsilon, clopper_pearson_pair, user_epsilon, sequential, anytime_epsilon, log_e_value,
        OneRun.p_value, OneRun.epsilon,
    ],
    ids=lambda bound: bound.__qualname__,
)  # fmt: skip
def test_a_lower_bound_on_epsilon_is_told_its_delta(bound):
    """At δ = 0 an (ε, δ)-DP mechanism may be refuted that keeps its claim: no δ is taken for granted."""
    assert inspect.signature(bound).parameters["delta"].default is inspect.Parameter.empty
