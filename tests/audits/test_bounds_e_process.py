"""Anytime-valid and group bounds beside slow twins.

Random inputs are Hypothesis's; nothing here is a statistical test.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom

from privcheck.errors import ParameterError
from privcheck_audits.bounds import (
    BETS,
    CoinFlip,
    GuessPlan,
    anytime_epsilon,
    anytime_mu,
    e_process_plan,
    group_delta,
    group_size,
    log_average,
    log_e_value,
    log_e_value_on_the_curve,
    user_epsilon,
)
from privcheck_audits.engine.sequential import sequential

ALPHA = st.sampled_from([0.1, 0.05, 1e-3])


# --- e-processes ---


@given(
    st.lists(st.sampled_from(["right", "wrong", "withheld"]), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.7, 3.0]),
    st.sampled_from([0.0, 0.01]),
)
def test_the_e_value_is_the_average_of_products_of_bets(runs, epsilon, delta):
    plan = GuessPlan(shares=(1.0, 0.5), weights=(0.6, 0.4))
    made, wrong = (sum(r in kinds for r in runs) for kinds in (("right", "wrong"), ("wrong",)))
    if made == 0:
        return
    expected = 0.0
    for weight in plan.weights:
        for bet in BETS:
            size = bet / (math.exp(epsilon) + delta)
            e_value = 1.0
            for run in runs:
                gain = {"right": 1.0, "wrong": -math.exp(epsilon), "withheld": 0.0}[run]
                e_value *= 1 + size * (gain - delta) if run != "withheld" else 1 - bet * delta / (1 + delta)
                assert run != "withheld" or 1 - bet * delta / (1 + delta) <= 1 - size * delta
            expected += weight * e_value / len(BETS)
    found = log_e_value((wrong, wrong), (made, made), len(runs), plan=plan, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(math.log(expected), abs=1e-6)
    assert found <= math.log(expected)


# [lemma e-process]
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.05)])
def test_expected_e_value_of_a_true_claim_is_at_most_one(epsilon, delta):
    # the extreme mechanism: tells the bit with probability δ, else answers with odds e^ε; every run is guessed
    plan = GuessPlan(shares=(1.0,), weights=(1.0,))
    right = delta + (1 - delta) * expit(epsilon)
    for runs in (1, 7, 60):
        e_values = [
            math.exp(log_e_value((k,), (runs,), runs, plan=plan, epsilon=epsilon, delta=delta)) for k in range(runs + 1)
        ]
        mean = math.fsum(binom.pmf(k, runs, 1 - right) * w for k, w in enumerate(e_values))
        assert mean <= 1
        assert mean > 0.9 or delta > 0


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, 500))), ALPHA)
def test_the_anytime_bound_is_where_the_e_value_reaches_one_over_alpha(counts, alpha):
    made, wrong, withheld = counts
    plan = GuessPlan(shares=(1.0,), weights=(1.0,))
    for delta in (0.0, 1e-3):
        bound = anytime_epsilon((wrong,), (made,), made + withheld, plan=plan, alpha=alpha, delta=delta)
        at = [
            log_e_value((wrong,), (made,), made + withheld, plan=plan, epsilon=e, delta=delta)
            for e in (bound, bound + 1e-6, bound + 1)
        ]
        if bound > 0:
            assert at[0] >= -math.log(alpha) > at[1]
        assert at[0] >= at[1] >= at[2]  # the e-value falls as the claim weakens


def test_the_e_value_on_the_curve_is_that_of_the_same_odds():
    from scipy.stats import norm

    mu = 0.8
    odds = math.log(norm.cdf(mu / 2) / norm.cdf(-mu / 2))
    plan = GuessPlan(shares=(1.0,), weights=(1.0,))
    assert log_e_value_on_the_curve(30, 100, mu=mu) == pytest.approx(
        log_e_value((30,), (100,), 100, plan=plan, epsilon=odds, delta=0.0)
    )
    bound = anytime_mu(300, 1_000, alpha=0.05)
    assert log_e_value_on_the_curve(300, 1_000, mu=bound) >= -math.log(0.05)
    assert log_e_value_on_the_curve(300, 1_000, mu=bound + 1e-6) < -math.log(0.05)
    assert bound < -2 * norm.ppf(0.3)


def test_pairs_are_averaged():
    assert log_average([math.log(3), math.log(1)]) == pytest.approx(math.log(2))
    assert (
        math.fsum(e_process_plan(0.3).weights) == pytest.approx(1) == pytest.approx(math.fsum(e_process_plan().weights))
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": 1.0, "delta": 1.0}, {"epsilon": 1.0, "bets": (1.0,)},
        {"epsilon": 1.0, "bets": ()},
    ],
    ids=str,
)  # fmt: skip
def test_claims_that_cannot_be_bet_against_are_refused(bad):
    with pytest.raises(ParameterError):
        log_e_value((1,), (2,), 3, plan=GuessPlan(shares=(1.0,), weights=(1.0,)), **{"delta": 0.0, **bad})


def test_more_guesses_than_runs_and_bad_levels_are_refused():
    plan = GuessPlan(shares=(1.0,), weights=(1.0,))
    with pytest.raises(ParameterError, match="at most one guess a run"):
        log_e_value((1,), (4,), 3, plan=plan, epsilon=1.0, delta=0.0)
    with pytest.raises(ParameterError, match="alpha"):
        anytime_epsilon((1,), (2,), 3, plan=plan, alpha=math.nan, delta=0.0)
    with pytest.raises(ParameterError, match="alpha"):
        sequential(lambda *_: None, 10, epsilon=1.0, alpha=0.0, seed=0, delta=0.0)


# --- groups ---


@given(st.floats(0, 1.0), st.sampled_from([1e-9, 1e-6, 1e-3]), st.integers(1, 12))
def test_group_delta_is_k_steps(epsilon, delta, users):
    expected = sum(delta * math.exp(i * epsilon) for i in range(users))
    assert group_delta(epsilon, delta, users=users) == pytest.approx(expected, rel=1e-8)
    assert group_delta(epsilon, delta, users=users) >= expected * (1 - 1e-12)


# [lemma group-bound]
def test_a_bound_about_a_group_is_one_about_its_users():
    flip = CoinFlip(errors=2_800, guesses=10_000)
    assert user_epsilon(lambda _: flip.epsilon(alpha=0.05), users=10, delta=0.0) == pytest.approx(
        flip.epsilon(alpha=0.05) / 10
    )

    def bound(delta):
        return max(0.0, 1.0 - 100 * delta)  # some bound that falls as δ grows

    found = user_epsilon(bound, users=10, delta=1e-4)
    assert bound(group_delta(found, 1e-4, users=10)) == pytest.approx(10 * found, abs=1e-6)
    assert user_epsilon(bound, users=1, delta=1e-4) == bound(1e-4)


def test_group_sizes_aim_between_one_and_two():
    for epsilon in (0.01, 0.1, 0.5, 0.9):
        assert 1 <= group_size(epsilon) * epsilon <= 2
    assert group_size(3.0) == 1
    for bad in (0.0, math.nan, -1.0):
        with pytest.raises(ParameterError, match="epsilon"):
            group_size(bad)
    with pytest.raises(ParameterError, match="at least one user"):
        group_delta(1.0, 0.1, users=0)
    with pytest.raises(ParameterError, match="delta"):
        user_epsilon(lambda _: 1.0, users=2, delta=1.0)
