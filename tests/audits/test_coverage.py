"""False alarms of correct mechanisms, counted: whole audits with every attempt they make, at α = .05.

The number of alarms in R audits is at most Bin(R, α); each test fails a correct auditor with probability below 1e-9.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from privcheck.declare.declaration import resolve
from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE, OPTIONS
from privcheck_audits.bounds import CurveFlip, GuessPlan, bound_at_ranks, guess_plan
from privcheck_audits.engine.blocks import blocks, tally, total
from privcheck_audits.engine.scores import MovedGroup, Scored, draw_hidden_bits, likelihood_trials
from privcheck_audits.plan.reachable import best_plan, loss_law
from registered import DP_APVI

ALPHA = 0.05
pytestmark = pytest.mark.nightly


def limit(audits: int) -> int:
    return int(binom.isf(1e-9, audits, ALPHA))


@pytest.mark.parametrize("runs", [40, 1_000])
@pytest.mark.parametrize("coordinates", [1, 4])
def test_all_attempts_together_accuse_correct_laplace_noise_at_most_with_alpha(runs, coordinates):
    epsilon, audits = 1.0, 4_000
    change = np.ones(coordinates)
    group = MovedGroup(releases=("a",), noise=LaplaceNoise(scale=coordinates / epsilon), change=change)
    plan = best_plan(loss_law([group]), runs, alpha=ALPHA, delta=0.0)

    def audit(rng, number, first):
        found = [tally(likelihood_trials([group], rng, runs), plan, first=0, seed=0) for _ in range(number)]
        return sum(
            bound_at_ranks(t.ranked_errors, t.ranked_guesses, plan, runs=runs, alpha=ALPHA, delta=0.0).epsilon > epsilon
            for t in found
        )

    alarms = sum(blocks(audit, audits, seed=1, block=500, workers=2))
    assert alarms <= limit(audits)
    assert alarms > 0 or runs == 40  # exact tests, not empty ones


def test_choosing_the_attempt_without_paying_would_accuse_too_often():
    # what dividing α is for: the same audits with α = .05 for each of 20 attempts
    runs, audits, epsilon = 1_000, 1_000, 1.0
    group = MovedGroup(releases=("a",), noise=LaplaceNoise(scale=1 / epsilon), change=np.ones(1))
    plan = guess_plan()
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(audits):
        found = tally(likelihood_trials([group], rng, runs), plan, first=0, seed=0)
        best = max(
            bound_at_ranks(
                (e,), (g,), GuessPlan(shares=(s,), weights=(1.0,)), runs=runs, alpha=ALPHA, delta=0.0
            ).epsilon
            for e, g, s in zip(found.ranked_errors, found.ranked_guesses, plan.shares, strict=True)
        )
        alarms += best > epsilon
    assert alarms > limit(audits)


def test_an_extreme_approximate_mechanism_is_accused_at_most_with_alpha():
    # with probability δ the output tells the bit, and the score knows it; otherwise randomised response at ε
    epsilon, delta, runs, audits = 0.5, 0.01, 500, 3_000
    plan = guess_plan(1.0)
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(audits):
        secret = draw_hidden_bits(rng, runs)
        told = rng.random(runs) < delta
        answer = np.where(rng.random(runs) < 1 / (1 + np.exp(-epsilon)), secret, ~secret)
        score = np.where(told, np.where(secret, 9.0, -9.0), np.where(answer, 1.0, -1.0))
        found = tally(Scored(score=score, secret=secret), plan, first=0, seed=0)
        best = bound_at_ranks(found.ranked_errors, found.ranked_guesses, plan, runs=runs, alpha=ALPHA, delta=delta)
        alarms += best.epsilon > epsilon
    assert alarms <= limit(audits)


@pytest.mark.parametrize("view", ["releases", "noise", "policy"])
@pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_whole_audits_of_the_honest_algorithm_raise_false_alarms_at_most_with_alpha(algorithm, view):
    declaration = algorithm.declare({})
    audits = {"releases": 200, "noise": 200, "policy": 60}[view]
    alarms = 0
    for seed in range(audits):
        result = DP_APVI.audit(
            AuditRequest(
                setting=Setting(
                    declaration=declaration,
                    values=declaration.values({"H": 2, "S": 2, "A": 2}),
                    options=resolve(OPTIONS, {}, owner="test"),
                ),
                view=view,
                delta=1e-5 if algorithm is GAUSSIAN else 0.0,
                trials={"releases": 1_000, "noise": 10, "policy": 1_000}[view],
                confidence=1 - ALPHA,
                seed=seed,
            )
        )
        alarms += result.verdict == "violation"
    assert alarms <= limit(audits)


def test_the_curve_bound_covers_the_truth_as_often_as_it_says():
    # 2 000 audits of N(0, 1) against N(1, 1): the bound on μ is above 1 in at most α of them, and not in far fewer
    group = MovedGroup(releases=("a",), noise=GaussianNoise(scale=1.0), change=np.ones(1))

    def audit(rng, number, first):
        return tally(likelihood_trials([group], rng, number), None, first=first, seed=0)

    alarms = 0
    for seed in range(2_000):
        found = total(blocks(audit, 1_000, seed=seed, block=1_000))
        alarms += CurveFlip(errors=found.errors, runs=found.runs).mu(alpha=ALPHA) > 1
    assert limit(2_000) >= alarms >= binom.ppf(1e-9, 2_000, ALPHA / 2)
