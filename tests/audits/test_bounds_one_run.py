"""Bounds from many hidden bits of one run: beside linear programs, the published sum, and the truth.

Random inputs are Hypothesis's, the same every time in CI; the two statistical tests fail a correct bound with
probability below 1e-9 each.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import logsumexp, ndtr
from scipy.stats import binom, norm

from privcheck.accounting.engine.gdp import gdp_delta
from privcheck.errors import ParameterError
from privcheck_audits.bounds import Neighbouring, OneRun, RunBets

ALPHA = st.sampled_from([0.1, 0.05, 1e-3])
SURE = 1e-9


def counts(most):
    """Draws r, the wrong ones of them, and m."""
    return st.integers(1, most).flatmap(
        lambda r: st.tuples(st.just(r), st.integers(0, r - 1), st.integers(r, r + most))
    )


def all_of(pairs) -> Neighbouring:
    """What several (ε, δ) say together."""
    y = np.unique(np.concatenate([Neighbouring.approximate(*pair).chances for pair in pairs]))
    each = [
        np.maximum((y - delta) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * (1 - y))
        for epsilon, delta in pairs
    ]
    return Neighbouring(chances=y, least=np.maximum(0, np.max(each, axis=0)))


def by_the_inequalities(r, right, m, pairs, *, beyond=0) -> float:
    """Largest P(W ≥ right) under g(R(t)) ≤ H(t − 1) and, for t > beyond, g(H(t − 1)) ≤ R(t), by a linear program."""
    return largest_mean(np.arange(r + 1) >= right, m, pairs, beyond=beyond)


def largest_mean(of, m, pairs, *, beyond=0) -> float:
    """Largest mean of a function of W, given at 0, 1, …, r."""
    r = len(of) - 1
    number = np.arange(r + 1)
    rows, most = [], []
    for t, (epsilon, delta) in itertools.product(range(1, r + 1), pairs):
        above, below = number * (number >= t) / m, (r - number) * (number >= t - 1) / m
        for y, x in ((above, below), (below, above))[: 2 if t > beyond else 1]:
            rows.append(y - math.exp(epsilon) * x)
            most.append(delta)
            rows.append(math.exp(epsilon) * y - x)  # 1 − x ≤ e^ε(1 − y) + δ
            most.append(math.exp(epsilon) - 1 + delta)
    found = linprog(-1.0 * of, A_ub=rows, b_ub=most, A_eq=[np.ones(r + 1)], b_eq=[1], bounds=(0, 1), method="highs")
    return -found.fun


# [lemma one-run-start] [lemma one-run-recursion]
@given(counts(9), st.sampled_from([0.0, 1e-3, 0.05]), st.sampled_from([0.0, 0.3, 1.0, 2.5]))
def test_the_recursion_is_the_largest_probability_of_its_inequalities(drawn, delta, epsilon):
    (r, wrong, m), pairs = drawn, [(epsilon, delta), (2 * epsilon + 0.1, delta / 3)]
    run, claim = OneRun(canaries=m, guesses=r, errors=wrong), all_of(pairs)
    assert not run.refutes(claim, alpha=by_the_inequalities(r, r - wrong, m, pairs) * (1 - 1e-6))
    largest = by_the_inequalities(r, r - wrong, m, pairs, beyond=r - wrong)  # those that the recursion uses
    assert not run.refutes(claim, alpha=largest * (1 - 1e-6))
    assert largest > 1 - 1e-6 or run.refutes(claim, alpha=largest * (1 + 1e-3) + 1e-7)


@pytest.mark.parametrize(("m", "r", "right"), [(300, 99, 59), (100, 40, 30), (60, 60, 34), (40, 20, 8), (50, 20, 20)])
def test_the_recursion_of_many_guesses_is_that_of_a_linear_program(m, r, right):
    pairs = [(epsilon, gdp_delta(0.3, epsilon)) for epsilon in (0.01, 0.2, 0.5, 1.0)]
    largest = by_the_inequalities(r, right, m, pairs, beyond=right)
    run = OneRun(canaries=m, guesses=r, errors=r - right)
    assert run.most_likely(all_of(pairs)) == pytest.approx(largest, rel=1e-4)
    alone = by_the_inequalities(r, right, m, pairs, beyond=r)  # by the published inequality
    assert largest < 0.99 * alone or largest > 0.9 or right == r


def by_all_mechanisms(r, right, m, pairs) -> float:
    """Largest P(W ≥ right) of any mechanism of m bits that is (ε, δ)-DP for all pairs, by a linear program."""
    bits = list(itertools.product((-1, 1), repeat=m))
    guesses = [v for v in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, v)) == r]
    place = {(u, v): i for i, (u, v) in enumerate(itertools.product(bits, guesses))}
    wins = np.zeros(len(place))
    for (u, v), i in place.items():
        wins[i] = (sum(a == b for a, b in zip(u, v, strict=True)) >= right) / len(bits)
    near = [(u, (*u[:i], -u[i], *u[i + 1 :])) for u in bits for i in range(m)]
    blocks = list(itertools.product(near, pairs))
    size = len(place) + len(blocks) * len(guesses)  # and the part of each output above e^ε times its neighbour's
    rows, most = [], []
    for number, ((u, other), (epsilon, delta)) in enumerate(blocks):
        first = len(place) + number * len(guesses)
        for j, v in enumerate(guesses):
            row = np.zeros(size)
            row[place[u, v]], row[place[other, v]], row[first + j] = 1, -math.exp(epsilon), -1
            rows.append(row)
            most.append(0)
        total = np.zeros(size)
        total[first : first + len(guesses)] = 1
        rows.append(total)
        most.append(delta)
    sums = np.zeros((len(bits), size))
    for (u, _), i in place.items():
        sums[bits.index(u), i] = 1
    score = np.concatenate([-wins, np.zeros(size - len(place))])
    found = linprog(score, A_ub=rows, b_ub=most, A_eq=sums, b_eq=np.ones(len(bits)), method="highs")
    return -found.fun


# [lemma one-run-inequalities] [lemma one-run-pure]
@pytest.mark.parametrize(("m", "r"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("pairs", [[(0.5, 0.0)], [(1.0, 0.02)], [(0.2, 0.1), (1.0, 0.01)]], ids=str)
def test_no_mechanism_is_right_more_often(m, r, pairs):
    for right in range(1, r + 1):
        truth = by_all_mechanisms(r, right, m, pairs)
        run = OneRun(canaries=m, guesses=r, errors=r - right)
        assert not run.refutes(all_of(pairs), alpha=truth * (1 - 1e-7))
        if len(pairs) == 1:
            assert run.p_value(pairs[0][0], delta=pairs[0][1]) >= truth * (1 - 1e-7)
        if r == right == 1:  # there the bound is the truth
            assert truth > 1 - 1e-7 or run.refutes(all_of(pairs), alpha=truth * (1 + 1e-3))


def published(r, v, m, epsilon, delta) -> float:
    """The p-value of Steinke, Nasr & Jagielski 2023, Appendix D, line by line."""
    q = 1 / (1 + math.exp(-epsilon))
    gain = total = 0.0
    for i in range(1, v + 1):
        total += binom.pmf(v - i, r, q)
        gain = max(gain, total / i)
    return min(1.0, binom.sf(v - 1, r, q) + gain * delta * 2 * m)


def test_the_published_p_value_of_two_bits_is_below_the_truth():
    epsilon, delta = 1.0, 0.02
    truth = by_all_mechanisms(2, 1, 2, [(epsilon, delta)])
    none = (1 - (math.e + 2) * delta) / (1 + math.e * (math.e + 2))  # by hand
    assert truth == pytest.approx(1 - none, abs=1e-9)
    assert published(2, 1, 2, epsilon, delta) < truth - 0.001
    assert OneRun(canaries=2, guesses=2, errors=1).p_value(epsilon, delta=delta) >= truth


@given(counts(60), st.sampled_from([0.0, 1e-5, 0.01]), st.sampled_from([0.0, 0.5, 2.0]))
def test_the_p_value_of_pure_dp_is_the_published_one_and_others_are_near(drawn, delta, epsilon):
    r, wrong, m = drawn
    v, q = r - wrong, 1 / (1 + math.exp(-epsilon))
    found = OneRun(canaries=m, guesses=r, errors=wrong).p_value(epsilon, delta=delta)
    told = binom.sf(v - 1 - np.arange(v + 1), r - np.arange(v + 1), q) @ binom.pmf(np.arange(v + 1), r, delta)
    assert found >= told * (1 - 1e-9)  # of randomised response that tells some of its guessed bits
    if delta == 0:
        assert found == pytest.approx(published(r, v, m, epsilon, 0.0), rel=1e-8)
    else:
        assert found <= 4 * published(r, v, m, epsilon, delta) + 1e-12


@given(counts(300), ALPHA)
def test_bound_and_test_are_two_sides_of_one_inequality(drawn, alpha):
    r, wrong, m = drawn
    run = OneRun(canaries=m, guesses=r, errors=wrong)
    for delta in (0.0, 1e-6, 0.01):
        bound = run.epsilon(alpha=alpha, delta=delta)
        if bound > 0:
            assert run.p_value(bound * (1 - 1e-6), delta=delta) <= alpha * (1 + 1e-9)
            assert run.p_value(bound * (1 + 1e-6) + 1e-9, delta=delta) > alpha
        assert run.epsilon(alpha=alpha, delta=delta) <= run.epsilon(alpha=alpha, delta=0.0) + 1e-9
        assert delta == 0 or run.epsilon(alpha=alpha, delta=delta, above=bound * 1.01 + 0.1) == 0
    mu = run.mu(alpha=alpha)
    if mu > 0:
        assert run.refutes(Neighbouring.gaussian(mu * (1 - 1e-6)), alpha=alpha)
        assert not run.refutes(Neighbouring.gaussian(mu * (1 + 1e-6) + 1e-9), alpha=alpha)


@pytest.mark.parametrize(("m", "r", "wrong"), [(1_000, 150, 21), (400, 100, 30), (20, 20, 0)])
def test_the_bound_on_rho_is_below_that_on_mu_and_refuted_itself(m, r, wrong):
    run = OneRun(canaries=m, guesses=r, errors=wrong)
    rho = run.rho(alpha=0.05)
    assert 0.2 * run.mu(alpha=0.05) ** 2 / 2 < rho <= run.mu(alpha=0.05) ** 2 / 2  # μ-GDP implies (μ²/2)-zCDP
    assert run.refutes(Neighbouring.concentrated(rho * (1 - 1e-6)), alpha=0.05)
    assert not run.refutes(Neighbouring.concentrated(rho * (1 + 1e-6)), alpha=0.05)


# [lemma convex-from-below]
@pytest.mark.parametrize("mu", [0.0, 0.1, 0.5, 1.0, 3.0, 8.0])
def test_curves_are_convex_and_below_what_they_stand_for(mu):
    gaussian, concentrated = Neighbouring.gaussian(mu), Neighbouring.concentrated(mu**2 / 2)
    assert (gaussian.least <= norm.cdf(norm.ppf(gaussian.chances) - mu)).all()
    assert np.allclose(gaussian.least, norm.cdf(norm.ppf(gaussian.chances) - mu), rtol=1e-6)
    approximate = [Neighbouring.approximate(e, gdp_delta(mu, e)) for e in (0.0, 0.5, 2.0)] if mu else []
    for weaker in (concentrated, *approximate):
        exact = norm.cdf(norm.ppf(weaker.chances) - mu)
        assert (weaker.least <= exact * (1 + 1e-9)).all()
    for curve in (gaussian, concentrated, *approximate):
        gap = np.diff(curve.chances, prepend=0)  # beyond, differences of rounded figures
        inner = (curve.chances > 1e-4) & (curve.chances < 1 - 1e-4) & (gap > 1e-6)
        slopes = np.diff(curve.least[inner]) / np.diff(curve.chances[inner])
        assert (np.diff(slopes) >= -1e-6 * (1 + np.abs(slopes[1:]))).all()


@pytest.mark.parametrize("delta", [0.0, 1e-17, 1e-16, 1e-15, 1e-13, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5 / 3, 5.0])
def test_a_bend_beside_a_chance_has_no_slope_of_its_rounding(epsilon, delta):
    curve = Neighbouring.approximate(epsilon, delta)  # odds of e^ε are among the chances
    slopes = np.diff(curve.least) / np.diff(curve.chances)
    ends = curve.least[1:-1] + slopes[:-1] * np.diff(curve.chances)[1:]  # each chord drawn on to the next chance
    assert (ends <= curve.least[2:] + 1e-14).all()


# [lemma concentrated-event]
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-3, 4.0))
def test_an_event_of_zcdp_has_at_least_that_probability_under_a_neighbour(y, rho):
    # a root of each order alone, by a search over a grid of x
    curve = Neighbouring.concentrated(rho)
    k = int(np.searchsorted(curve.chances, y))
    y = float(curve.chances[min(k, curve.chances.size - 1)])
    x = np.exp(np.linspace(math.log(y) - 60, math.log(y), 4_001))
    good = np.ones(x.size, dtype=bool)
    for a in (1.02, 1.3, 2.0, 4.0, 16.0, 100.0):
        for p, q in ((y, x), (x, y)):
            inside = [a * np.log(p) + (1 - a) * np.log(q), a * np.log1p(-p) + (1 - a) * np.log1p(-q)]
            good &= logsumexp(np.broadcast_arrays(*inside), axis=0) <= a * (a - 1) * rho + 1e-12
    assert good[-1]
    first = x[int(np.argmax(good))]
    least = curve.least[min(k, curve.chances.size - 1)]
    assert least >= first * (1 - 0.1) or first < 1e-20  # more orders than here: not below, but for the grid
    assert least <= y


def test_more_guesses_than_canaries_are_refused():
    with pytest.raises(ParameterError, match="at most one guess a canary"):
        OneRun(canaries=5, guesses=6, errors=0)
    with pytest.raises(ParameterError, match="delta"):
        OneRun(canaries=5, guesses=5, errors=0).p_value(1.0, delta=math.nan)


def gaussians(rng, mu, m, *, shared):
    """Draws the guesses of m bits, surest first, and whether they are right; with one noise for all if shared."""
    secret = rng.random(m) < 0.5
    if shared:  # the sum of all bits is N(Σ ±μ/2, 1): every guess is the same
        guess = np.full(m, mu * (secret.sum() - m / 2) + rng.normal() > 0)
        return guess == secret
    score = np.where(secret, mu / 2, -mu / 2) + rng.normal(size=m)
    order = np.argsort(-np.abs(score))
    return ((score > 0) == secret)[order]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("mu", "m", "r"), [(0.27, 1_000, 300), (1.0, 300, 40), (3.0, 40, 40), (0.5, 1, 1)])
def test_gaussian_noise_at_its_claim_is_accused_at_most_with_alpha(mu, m, r, shared):
    runs, alpha = 1_000, 0.05
    rng, claims = np.random.default_rng(5), [Neighbouring.gaussian(mu), Neighbouring.concentrated(mu**2 / 2)]
    alarms = np.zeros(2)
    seen: dict[int, list[bool]] = {}
    for _ in range(runs):
        wrong = r - int(gaussians(rng, mu, m, shared=shared)[:r].sum())
        if wrong not in seen:
            run = OneRun(canaries=m, guesses=r, errors=wrong)
            seen[wrong] = [run.refutes(claim, alpha=alpha) for claim in claims]
        alarms += seen[wrong]
    assert (alarms <= binom.isf(SURE, runs, alpha)).all()


def test_a_single_guess_of_a_single_bit_is_tested_at_its_exact_probability():
    for mu in (0.3, 1.0, 2.0):
        run, exact = OneRun(canaries=1, guesses=1, errors=0), float(ndtr(mu / 2))  # Dong, Roth & Su: the fixed point
        assert not run.refutes(Neighbouring.gaussian(mu), alpha=exact - 1e-9)
        assert run.refutes(Neighbouring.gaussian(mu), alpha=exact + 1e-4)


# [lemma one-run-bets]
@pytest.mark.parametrize(("m", "r"), [(3, 2), (60, 40), (200, 60)])
@pytest.mark.parametrize("pairs", [[(0.5, 0.0)], [(1.0, 0.02)], [(0.2, 0.1), (1.0, 0.01)]], ids=str)
def test_bets_have_mean_at_most_one_whatever_keeps_the_claim(m, r, pairs):
    bets = RunBets.against(all_of(pairs), canaries=m, guesses=r)
    e_values = np.exp([bets.log_e_value([right]) for right in range(r + 1)])
    largest = largest_mean(np.minimum(e_values, 100), m, pairs)  # beyond, the program's tolerance counts
    assert largest <= 1 + 1e-6
    assert r < 40 or largest > 0.3
    assert r < 40 or e_values[-1] > 5


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_bets_on_a_pure_claim_have_mean_one_on_its_worst_case_and_multiply(epsilon):
    r, q = 50, 1 / (1 + math.exp(-epsilon))
    bets = RunBets.against(epsilon, canaries=60, guesses=r)
    chance = binom.pmf(np.arange(r + 1), r, q)
    one = np.exp([bets.log_e_value([right]) for right in range(r + 1)])
    assert 0.3 < chance @ one <= 1
    both = np.exp([[bets.log_e_value([a, b]) for a in range(r + 1)] for b in range(r + 1)])
    assert 0.1 < chance @ both @ chance <= 1
    assert (np.diff(one) >= 0).all()
    assert RunBets.against(epsilon + 0.5, canaries=60, guesses=r).log_e_value([r, r]) < bets.log_e_value([r, r])


@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_bets_are_those_of_a_loop(mu):
    r, m, claim = 30, 50, Neighbouring.gaussian(mu)
    bets = RunBets.against(claim, canaries=m, guesses=r)
    for level, most in zip(bets.levels[1:], bets.most[1:], strict=True):
        exact = OneRun(canaries=m, guesses=r, errors=r - int(level)).most_likely(claim)
        assert exact <= most <= exact * (1 + 1e-3)
    seen, total = [18, 25, 30], 0.0
    for bet in (0.5, 1.0, 2.0, 4.0, 8.0):
        product = 1.0
        for right in seen:
            weights = [math.exp(bet / math.sqrt(r) * level) for level in bets.levels]
            mean = sum(w * (p - q) for w, p, q in zip(weights, bets.most, [*bets.most[1:], 0.0], strict=True))
            product *= max(w for w, level in zip(weights, bets.levels, strict=True) if level <= right) / mean
        total += product / 5
    assert bets.log_e_value(seen) == pytest.approx(math.log(total), rel=1e-6)
