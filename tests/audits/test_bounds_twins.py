"""Every bound beside a slow twin, and exact false-alarm probabilities where they can be enumerated.

Random inputs are Hypothesis's; nothing here is a statistical test.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import beta, binom

from privcheck.declare.mechanisms import LAWS as NOISES
from privcheck.errors import AuditError, ParameterError
from privcheck_audits.bounds import (
    CoinFlip,
    DivergencePlan,
    GuessPlan,
    Moments,
    clopper_pearson_pair,
    count_vectors,
    divergence_plan,
    exact_epsilon,
    guess_plan,
    impossible_epsilon,
    key_score,
    log_ratios,
    moments,
    rho_at_least,
)
from privcheck_audits.engine.kernels import count_errors_by_rank
from privcheck_audits.engine.scores import MovedGroup
from privcheck_audits.plan.reachable import best_plan, loss_law, reachable_guesses

ALPHA = st.sampled_from([0.1, 0.05, 1e-3])


# --- ranks ---


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=60), st.data())
def test_errors_at_ranks_are_those_of_an_ordered_list(runs, data):
    ranks = tuple(data.draw(st.lists(st.integers(1, len(runs)), min_size=1, max_size=8)))
    size, wrong = np.array([float(s) for s, _ in runs]), np.array([w for _, w in runs])
    order = sorted(range(len(runs)), key=lambda i: (-runs[i][0], i))
    assert count_errors_by_rank(size, wrong, ranks) == tuple(sum(runs[i][1] for i in order[:rank]) for rank in ranks)


@given(st.integers(1, 3_000), st.integers(0, 5))
def test_errors_at_ranks_of_numbers_without_ties(runs, seed):
    rng = np.random.default_rng(seed)
    size, wrong = rng.random(runs), rng.random(runs) < 0.4
    ranks = guess_plan(0.6).ranks(runs)
    missed = np.cumsum(wrong[np.argsort(-size, kind="stable")])
    assert count_errors_by_rank(size, wrong, ranks) == tuple(int(missed[rank - 1]) for rank in ranks)


@pytest.mark.parametrize("weight", [0.0, 1.0, math.nan])
def test_a_favourite_gets_a_part_of_alpha(weight):
    assert guess_plan(0.3, weight=0.25).weights[0] == 0.25
    assert math.fsum(guess_plan(0.3).weights) == pytest.approx(1)
    with pytest.raises(ParameterError, match="weight"):
        guess_plan(0.3, weight=weight)


# --- Clopper–Pearson pair ---


@given(st.integers(1, 40), st.integers(1, 40), st.data(), ALPHA)
def test_the_pair_bound_is_the_best_of_four_ratios(n, m, data, alpha):
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))

    def low(k, of):
        return 0.0 if k == 0 else beta.ppf(alpha / 4, k, of - k + 1)

    def high(k, of):
        return 1.0 if k == of else beta.ppf(1 - alpha / 4, k + 1, of - k)

    pairs = ((low(a, n), high(b, m)), (low(b, m), high(a, n)), (low(n - a, n), high(m - b, m)),
             (low(m - b, m), high(n - a, n)))  # fmt: skip
    best = max([0.0, *(math.log(p / q) for p, q in pairs if p > 0)])
    assert clopper_pearson_pair((a, b), (n, m), alpha=alpha, delta=0.0) == pytest.approx(best, rel=1e-8, abs=1e-8)


# [lemma clopper-pearson-pair]
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_pair_bound_accuses_a_correct_mechanism_with_probability_at_most_alpha(delta):
    n, alpha, epsilon = 40, 0.05, 0.8
    q = 0.2
    p = math.exp(epsilon) * q + delta
    chance = 0.0
    for a, b in product(range(n + 1), repeat=2):
        if clopper_pearson_pair((a, b), (n, n), alpha=alpha, delta=delta) > epsilon:
            chance += binom.pmf(a, n, p) * binom.pmf(b, n, q)
    assert 0 < chance <= alpha


def test_the_coin_flip_has_half_the_gap_of_a_pair():
    hits = round(20_000 * expit(1.0) / 2)
    pair = clopper_pearson_pair((hits, 10_000 - hits), (10_000, 10_000), alpha=0.05, delta=0.0)
    flip = CoinFlip(errors=2 * (10_000 - hits), guesses=20_000).epsilon(alpha=0.05)
    assert 0.4 < (1 - flip) / (1 - pair) < 0.6


# --- Donsker–Varadhan ---


@given(st.lists(st.tuples(st.floats(-4, 4), st.booleans()), min_size=1, max_size=30), ALPHA)
def test_moments_and_bound_agree_with_a_loop(runs, alpha):
    plan = DivergencePlan(
        clip=1.5, scales=(1.0, 2.0, 0.5), directions=("first", "second", "both"), weights=(0.5, 0.25, 0.25)
    )
    score, secret = np.array([s for s, _ in runs]), np.array([b for _, b in runs])
    found = moments(score, secret, plan)
    on_d, on_other = [s for s, b in runs if b], [s for s, b in runs if not b]
    best = 0.0
    for k, (scale, direction, weight) in enumerate(zip(plan.scales, plan.directions, plan.weights, strict=True)):
        values = []
        for x, y in zip(on_d, on_other, strict=False):
            g, h = (max(-1.5, min(1.5, scale * s)) for s in (x, y))
            one, other = g + 1 - math.exp(h), -h + 1 - math.exp(-g)
            values.append({"first": one, "second": other, "both": (one + other) / 2}[direction])
            assert -0.51 - math.exp(1.5) < values[-1] < 2.5 - math.exp(-1.5) + 1e-9
        assert found.sums[k] == pytest.approx(sum(values), abs=1e-9)
        if len(values) > 1:
            mean, log = np.mean(values), math.log(2 / (alpha * weight))
            slack = math.sqrt(2 * np.var(values, ddof=1) * log / len(values))
            width = 2 * 1.5 + math.exp(1.5) - math.exp(-1.5)
            best = max(best, mean - slack - 7 * width * log / (3 * (len(values) - 1)))
    assert found.pairs == min(len(on_d), len(on_other))
    assert rho_at_least(found, plan, alpha=alpha) == pytest.approx(best, abs=1e-7)


# [lemma donsker-varadhan]
@given(st.floats(0.01, 3), st.floats(-3, 3), st.floats(0.1, 3))
def test_the_variational_value_is_never_above_the_divergence(mu, shift, scale):
    # any clipped g, even one that is no likelihood ratio, by integration over N(mu, 1) against N(0, 1)
    grid = np.linspace(-12, 15, 20_001)
    p, q = (np.exp(-((grid - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (mu, 0.0))
    g = np.clip(scale * (mu * grid - mu**2 / 2) + shift, -2, 2)
    step = grid[1] - grid[0]
    first = ((g * p).sum() - ((np.exp(g) - 1) * q).sum()) * step
    second = ((-g * q).sum() - ((np.exp(-g) - 1) * p).sum()) * step
    assert max(first, second) <= mu**2 / 2 + 1e-9


def test_the_plan_for_a_claim_spends_alpha_once():
    for rho in (0.01, 0.125, 5.0):
        plan = divergence_plan(rho)
        assert math.fsum(plan.weights) == pytest.approx(1)
        assert plan.clip <= 4.5


@pytest.mark.parametrize("rho", [0.0, -1.0, math.inf, math.nan])
def test_a_rho_that_claims_nothing_is_refused(rho):
    with pytest.raises(ParameterError, match="rho"):
        divergence_plan(rho)


def test_scores_that_are_not_numbers_are_refused():
    with pytest.raises(AuditError, match="score nan"):
        moments(np.array([0.0, np.nan]), np.array([True, False]), divergence_plan(1.0))


def test_no_pairs_prove_nothing():
    plan = divergence_plan(1.0)
    assert rho_at_least(moments(np.ones(5), np.ones(5, dtype=bool), plan), plan, alpha=0.05) == 0
    two = moments(np.ones(5), np.ones(5, dtype=bool), plan) + Moments(pairs=1, sums=(9.0,) * 6, squares=(81.0,) * 6)
    assert rho_at_least(two, plan, alpha=0.05) == 0
    with pytest.raises(ParameterError, match="alpha"):
        rho_at_least(two, plan, alpha=0.0)


# --- discrete ---

LAWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=6).filter(
    lambda rows: sum(p for p, _ in rows) and sum(q for _, q in rows)
)


@given(LAWS, st.sampled_from([0.0, 0.01, 0.125]))
def test_the_exact_loss_is_found_by_bisection_too(rows, delta):
    sums = [sum(column) for column in zip(*rows, strict=True)]
    first, second = ({(k,): Fraction(row[arm], sums[arm]) for k, row in enumerate(rows)} for arm in (0, 1))

    def excess(epsilon):
        return max(
            math.fsum(max(0.0, float(one[k]) - math.exp(epsilon) * float(other[k])) for k in one)
            for one, other in ((first, second), (second, first))
        )

    found = exact_epsilon(first, second, delta=delta)
    if excess(50.0) > delta + 1e-12:
        assert found == math.inf
        return
    low, high = 0.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > delta + 1e-15 else (low, middle)
    assert found == pytest.approx(low, abs=1e-8)


def test_shuffled_bits_have_the_exact_loss_of_their_counts():
    # two users with randomised response (3/4 true): counts of ones for (0, 0) against (1, 0)
    keep, flip = Fraction(3, 4), Fraction(1, 4)
    first = {(2, 0): keep * keep, (1, 1): 2 * keep * flip, (0, 2): flip * flip}
    second = {(2, 0): flip * keep, (1, 1): keep * keep + flip * flip, (0, 2): keep * flip}
    assert exact_epsilon(first, second, delta=0.0) == pytest.approx(math.log(3))
    assert log_ratios(first, second)[1, 1] == pytest.approx(math.log(3 / 5))
    score = key_score(log_ratios(first, second))
    messages = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_allclose(score(count_vectors(messages, 2)), np.log([3, 3 / 5, 3 / 5, 1 / 3]))


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=9), st.randoms())
def test_the_order_of_messages_does_not_reach_the_key(rows, random):
    shuffled = [random.sample(row, len(row)) for row in rows]
    ours = count_vectors(np.array(rows), 4)
    assert np.array_equal(ours, count_vectors(np.array(shuffled), 4))
    assert ours.tolist() == [[row.count(message) for message in range(4)] for row in rows]


def test_certain_keys_come_first_and_unknown_ones_last():
    score = key_score({(0,): math.inf, (1,): -2.0, (2,): -math.inf, (3,): 0.5})
    assert score(np.array([[0], [1], [2], [3], [9]])).tolist() == [3.0, -2.0, -3.0, 0.5, 0.0]


@pytest.mark.parametrize(("delta", "hits", "runs"), [(0.0, 1, 10**6), (1e-3, 30, 10_000), (0.1, 200, 1_000)])
def test_an_impossible_event_refutes_every_epsilon(delta, hits, runs):
    assert impossible_epsilon(hits, runs, alpha=0.01, delta=delta) == math.inf
    assert impossible_epsilon(0, runs, alpha=0.01, delta=delta) == 0
    assert impossible_epsilon(int(delta * runs), runs, alpha=0.01, delta=delta) == 0


# [lemma impossible-event]
def test_an_event_that_delta_pays_for_is_accused_with_probability_at_most_alpha():
    runs, delta, alpha = 400, 0.02, 0.05
    chance = sum(
        binom.pmf(k, runs, delta)
        for k in range(runs + 1)
        if impossible_epsilon(k, runs, alpha=alpha, delta=delta) == math.inf
    )
    assert 0.01 < chance <= alpha


def test_laws_and_messages_that_are_none_are_refused():
    half = {(0,): Fraction(1, 2)}
    with pytest.raises(ParameterError, match="add up to 1"):
        exact_epsilon(half, half, delta=0.0)
    with pytest.raises(ParameterError, match="messages 0 … 1"):
        count_vectors(np.array([[0, 2]]), 2)


# --- where to guess ---


@pytest.mark.parametrize(("law", "scale"), [("laplace", 1.0), ("laplace", 0.2), ("gaussian", 0.5)])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
@pytest.mark.parametrize("runs", [50, 1_000, 10**6])
def test_the_favourite_share_is_the_one_that_is_certified_best(law, scale, delta, runs):
    of = loss_law((MovedGroup(releases=("y",), noise=NOISES[law](scale=scale), change=np.ones(1)),))
    shares = np.geomspace(1 / 4096, 1.0, 241)
    found = [
        reachable_guesses(of, GuessPlan(shares=(share,), weights=(0.9,)), runs, alpha=0.05, delta=delta)
        for share in shares.tolist()
    ]
    assert best_plan(of, runs, alpha=0.05, delta=delta).shares[0] == shares[int(np.argmax(found))]
