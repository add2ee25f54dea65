"""Coverage by simulation: whole audits of correct mechanisms, with everything they try, at α = .05.

The number of alarms in R audits is at most Bin(R, α); each test fails a correct bound with probability below 1e-9.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from privcheck.declare.mechanisms import LAWS
from privcheck_audits.bounds import (
    OneRun,
    anytime_epsilon,
    bound_at_ranks,
    clopper_pearson_pair,
    count_vectors,
    divergence_plan,
    e_process_plan,
    exact_epsilon,
    guess_plan,
    key_score,
    log_ratios,
    moments,
    rho_at_least,
    user_epsilon,
)
from privcheck_audits.engine.blocks import Tally, blocks, tally
from privcheck_audits.engine.kernels import count_errors_by_rank
from privcheck_audits.engine.scores import MovedGroup, Scored, draw_hidden_bits, likelihood_trials
from privcheck_audits.engine.sequential import sequential, sequential_on_the_curve

ALPHA = 0.05
GRID = 2.0**30
pytestmark = pytest.mark.nightly


def limit(audits: int) -> int:
    return int(binom.isf(1e-9, audits, ALPHA))


def one(law: str, scale: float) -> tuple[MovedGroup, ...]:
    return (MovedGroup(releases=("a",), noise=LAWS[law](scale=scale), change=np.ones(1)),)


@pytest.mark.parametrize("rho", [0.125, 1.0])
def test_donsker_varadhan_accuses_a_gaussian_at_most_with_alpha(rho):
    audits, plan, groups = 1_000, divergence_plan(rho), one("gaussian", 1 / math.sqrt(2 * rho))

    def audit(rng, number, first):
        found = []
        for _ in range(number):
            trial = likelihood_trials(groups, rng, 4_000)
            found.append(rho_at_least(moments(trial.score, trial.secret, plan), plan, alpha=ALPHA))
        return found

    bounds = [bound for part in blocks(audit, audits, seed=1, block=250) for bound in part]
    assert sum(bound > rho for bound in bounds) <= limit(audits)
    assert np.median(bounds) > 0.2 * rho


def canaries(rng, delta=0.0, number=400, epsilon=1.0):
    """Returns scores and bits of one run: a count cell a canary, Laplace noise; told outright with probability δ."""
    secret = draw_hidden_bits(rng, number)
    output = rng.laplace(0, 1 / epsilon, size=number) + secret
    score = np.rint(epsilon * (np.abs(output) - np.abs(output - 1)) * GRID) / GRID
    told = rng.random(number) < delta
    score[told] = np.where(secret[told], 9.0, -9.0)
    return np.abs(score), (score > 0) != secret


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_one_run_bound_accuses_count_cells_at_most_with_alpha(delta):
    audits, plan, rng = 800, guess_plan(0.68), np.random.default_rng(2)
    alarms = 0
    for _ in range(audits):
        size, wrong = canaries(rng, delta)
        ranks = plan.ranks(size.size)
        alarms += any(
            OneRun(canaries=size.size, guesses=rank, errors=error).p_value(1.0, delta=delta) <= ALPHA * weight
            for rank, error, weight in zip(ranks, count_errors_by_rank(size, wrong, ranks), plan.weights, strict=True)
        )
    assert alarms <= limit(audits)
    assert alarms > 0 or delta > 0
    unpaid = sum(
        OneRun(canaries=400, guesses=20, errors=error).p_value(1.0, delta=0.0) <= ALPHA
        for error in (count_errors_by_rank(*canaries(rng, 0.1), (20,))[0] for _ in range(200))
    )
    assert unpaid > limit(200)  # δ has to be paid for


# [lemma e-process]
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_an_e_process_looked_at_after_every_block_accuses_at_most_with_alpha(delta):
    # the extreme (ε, δ) mechanism, and a score that puts the runs that tell the bit first
    audits, plan, epsilon = 500, e_process_plan(), 0.5

    def work(rng: np.random.Generator, runs: int, first: int) -> Tally:
        secret = draw_hidden_bits(rng, runs)
        told, right = rng.random(runs) < delta, rng.random(runs) < expit(epsilon)
        sure = rng.random(runs)  # randomised response says nothing more; any order is as good
        score = np.where(told, 9.0, sure) * np.where((told | right) == secret, 1.0, -1.0)
        return tally(Scored(score=score, secret=secret), plan, first=first, seed=0)

    alarms = sum(
        sequential(work, 4_000, epsilon=epsilon, delta=delta, alpha=ALPHA, plan=plan, seed=seed).verdict == "violation"
        for seed in range(audits)
    )
    assert alarms <= limit(audits)
    assert alarms > 0 or delta > 0


def test_stopping_a_fixed_bound_when_it_looks_good_would_accuse_too_often():
    # what the e-process is for: the same looks with the coin flip's own p-value
    audits, alarms = 200, 0
    rng = np.random.default_rng(3)
    for _ in range(audits):
        errors = np.cumsum(rng.random(4_000) < expit(-0.5))
        looks = np.arange(20, 4_001, 20)
        alarms += bool((binom.cdf(errors[looks - 1], looks, expit(-0.5)) <= ALPHA).any())
    assert alarms > limit(audits)


def test_the_anytime_bound_covers_the_truth_at_the_end_of_any_audit():
    audits, plan, groups = 500, e_process_plan(0.68), one("laplace", 1.0)
    rng = np.random.default_rng(4)
    alarms = 0
    for _ in range(audits):
        found = tally(likelihood_trials(groups, rng, 500), plan, first=0, seed=0)
        alarms += anytime_epsilon(found.ranked_errors, found.ranked_guesses, 500, plan=plan, alpha=ALPHA, delta=0.0) > 1
    assert alarms <= limit(audits)


def test_an_e_process_on_the_curve_accuses_a_gaussian_at_most_with_alpha():
    audits, groups = 500, one("gaussian", 2.0)

    def work(rng: np.random.Generator, runs: int, first: int) -> Tally:
        return tally(likelihood_trials(groups, rng, runs), None, first=first, seed=0)

    found = [sequential_on_the_curve(work, 4_000, mu=0.5, alpha=ALPHA, seed=seed) for seed in range(audits)]
    assert 0 < sum(audit.verdict == "violation" for audit in found) <= limit(audits)
    assert sum(audit.lower > 0.5 for audit in found) == sum(audit.verdict == "violation" for audit in found)


def test_exact_scores_of_shuffled_bits_accuse_at_most_with_alpha():
    # 3 users answer with probability 3/4 truly; D: (1, 0, 0), D′: (0, 0, 0); the counts are all that is seen
    truth = Fraction(3, 4)

    def law(ones: int) -> dict[tuple[int, int], Fraction]:
        found: dict[tuple[int, int], Fraction] = {}
        for bits in np.ndindex(2, 2, 2):
            chance = math.prod(truth if bit == (user < ones) else 1 - truth for user, bit in enumerate(bits))
            key = (3 - sum(bits), sum(bits))
            found[key] = found.get(key, Fraction(0)) + chance
        return found

    epsilon = exact_epsilon(law(1), law(0), delta=0.0)
    score, plan, audits, runs = key_score(log_ratios(law(1), law(0))), guess_plan(), 1_000, 800
    rng = np.random.default_rng(5)
    alarms, largest = 0, 0.0
    for _ in range(audits):
        secret = draw_hidden_bits(rng, runs)
        data = np.zeros((runs, 3), dtype=np.int64)
        data[:, 0] = secret
        messages = np.where(rng.random((runs, 3)) < 0.75, data, 1 - data)
        scores = score(count_vectors(messages, 2))
        found = tally(Scored(score=scores, secret=secret), plan, first=0, seed=0)
        bound = bound_at_ranks(
            found.ranked_errors, found.ranked_guesses, plan, runs=runs, alpha=ALPHA, delta=0.0
        ).epsilon
        alarms += bound > epsilon
        largest = max(largest, bound)
    assert alarms <= limit(audits)
    assert largest > 0.8 * epsilon


# [lemma group-bound]
def test_groups_of_users_accuse_at_most_with_alpha():
    # ε = 0.1 a user, ten at once
    audits, plan, groups = 1_000, guess_plan(0.68), one("laplace", 1.0)
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(audits):
        found = tally(likelihood_trials(groups, rng, 2_000), plan, first=0, seed=0)

        def bound(delta, found=found):
            return bound_at_ranks(
                found.ranked_errors, found.ranked_guesses, plan, runs=2_000, alpha=ALPHA, delta=delta
            ).epsilon

        alarms += user_epsilon(bound, users=10, delta=0.0) > 0.1
    assert 0 < alarms <= limit(audits)


def test_the_pair_bound_accuses_laplace_noise_at_most_with_alpha():
    audits, runs = 20_000, 500
    rng = np.random.default_rng(7)
    above = [rng.binomial(runs, 0.5 if arm else 0.5 * math.exp(-1), size=audits) for arm in (True, False)]  # y > 1
    alarms = sum(
        clopper_pearson_pair((int(a), int(b)), (runs, runs), alpha=ALPHA, delta=0.0) > 1
        for a, b in zip(*above, strict=True)
    )
    assert 0 < alarms <= limit(audits)
