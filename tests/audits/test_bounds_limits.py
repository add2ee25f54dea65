"""How close the bounds come: the table of what is possible, less two percent, and how few runs catch a violation.

The table is compared with the bound at the expected counts of the exact law, and simulated counts with that law within
six standard deviations. Everything is seeded; a reseed would fail the file with probability below 1e-6, nearly all of
it the 250 comparisons of counts; the medians have at least six standard deviations to spare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.declare.mechanisms import LAWS
from privcheck_audits.bounds import (
    CurveFlip,
    GuessPlan,
    OneRun,
    divergence_plan,
    e_process_plan,
    guess_plan,
    moments,
    rho_at_least,
    user_epsilon,
)
from privcheck_audits.engine.blocks import Tally, blocks, tally, total
from privcheck_audits.engine.kernels import count_errors_by_rank
from privcheck_audits.engine.scores import MovedGroup, draw_hidden_bits, likelihood_trials
from privcheck_audits.engine.sequential import sequential, sequential_on_the_curve
from privcheck_audits.plan.reachable import best_plan, loss_law, reachable_curve, reachable_guesses

DELTA = 1e-5
pytestmark = pytest.mark.nightly


def one(law: str, scale: float) -> tuple[MovedGroup, ...]:
    return (MovedGroup(releases=("a",), noise=LAWS[law](scale=scale), change=np.ones(1)),)


@dataclass(frozen=True)
class Guesses:
    """Guesses by the declared likelihood ratio, of noise that is drawn at another scale."""

    groups: tuple[MovedGroup, ...]
    plan: GuessPlan | None
    drawn: float = 1.0

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        groups = tuple(replace(g, noise=replace(g.noise, scale=g.noise.scale * self.drawn)) for g in self.groups)
        return tally(likelihood_trials(groups, rng, runs), self.plan, first=first, seed=0)


def reached(work: Guesses, trials: int, *, alpha: float, delta: float) -> float:
    """Returns the bound at the expected counts of the exact law, after a look that trials come to those counts."""
    law, runs = loss_law(work.groups), 2 * trials
    found = total(blocks(work, 1_000_000, seed=1))
    for share, errors, guesses in zip(work.plan.shares, found.ranked_errors, found.ranked_guesses, strict=True):
        rate = law.error_rate(guesses / found.runs)
        spread = np.sqrt(rate * (1 - rate) / guesses)
        assert abs(errors / guesses - rate) < 6 * spread + 0.02 * rate, share  # blocks rank among themselves
    return reachable_guesses(law, work.plan, runs, alpha=alpha, delta=delta)


@pytest.mark.parametrize(
    ("epsilon", "possible"),
    [
        (0.5, (0.475, 0.492, 0.497)), (1.0, (0.971, 0.990, 0.997)), (2.0, (1.957, 1.985, 1.995)),
        (4.0, (3.876, 3.960, 3.987)),
    ],
)  # fmt: skip
def test_laplace_is_certified_as_closely_as_is_possible(epsilon, possible):
    groups = one("laplace", 1 / epsilon)
    for trials, target in zip((10**4, 10**5, 10**6), possible, strict=True):
        plan = best_plan(loss_law(groups), 2 * trials, alpha=0.05, delta=0.0)
        bound = reached(Guesses(groups, plan), trials, alpha=0.05, delta=0.0)
        assert 0.98 * target <= bound <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "at"),
    [
        (0.5, ((10**5, 0.05, 0.33, 0.47), (10**6, 0.05, 0.41, 0.49), (10**6, 0.01, 0.39, 0.484))),
        (1.0, ((10**5, 0.05, 0.71, 0.96), (10**6, 0.05, 0.85, 0.99), (10**6, 0.01, 0.82, 0.983))),
        (2.0, ((10**5, 0.05, 1.48, 1.96), (10**6, 0.05, 1.71, 1.99), (10**6, 0.01, 1.66, 1.982))),
        (4.0, ((10**5, 0.05, 2.86, 3.95), (10**6, 0.05, 3.31, 3.98), (10**6, 0.01, 3.20, 3.979))),
    ],
)
def test_a_gaussian_is_certified_as_closely_as_is_possible_at_a_point_and_on_the_curve(epsilon, at):
    mu = brentq(lambda m: gdp_epsilon(m, DELTA) - epsilon, 0.01, 5)
    groups = one("gaussian", 1 / mu)
    for trials, alpha, point, curve in at:
        plan = best_plan(loss_law(groups), 2 * trials, alpha=alpha, delta=DELTA)
        bound = reached(Guesses(groups, plan), trials, alpha=alpha, delta=DELTA)
        assert 0.98 * point <= bound <= epsilon
        assert 0.98 * curve <= reachable_curve(mu, 2 * trials, alpha=alpha, delta=DELTA) <= epsilon
    found = total(blocks(Guesses(groups, None), 2 * 10**6, seed=2))
    flip = CurveFlip(errors=found.errors, runs=found.runs)
    assert 0.97 * at[1][3] <= flip.epsilon(alpha=0.05, delta=DELTA) <= 1.02 * epsilon  # one audit, six deviations


@pytest.mark.parametrize(("trials", "share"), [(10**5, 0.91), (10**6, 0.97)])
def test_donsker_varadhan_reaches_what_is_possible_for_zcdp(trials, share):
    rho, groups = 0.125, one("gaussian", 2.0)
    plan = divergence_plan(rho)

    def work(rng, runs, first):
        trial = likelihood_trials(groups, rng, runs)
        return moments(trial.score, trial.secret, plan)

    bounds = [
        rho_at_least(total(blocks(work, 2 * trials, seed=s)), plan, alpha=0.05)
        for s in range(15 if trials < 10**6 else 7)
    ]
    assert 0.98 * share * rho <= np.median(bounds) <= rho


def test_a_thousand_canaries_in_one_run_certify_85_percent():
    plan, found = guess_plan(0.684), []
    for seed in range(1_000):
        rng = np.random.default_rng(seed)
        secret = draw_hidden_bits(rng, 1_000)
        output = rng.laplace(size=1_000) + secret
        score = np.rint((np.abs(output) - np.abs(output - 1)) * 2**30)
        ranks = plan.ranks(1_000)
        errors = count_errors_by_rank(np.abs(score), (score > 0) != secret, ranks)
        found.append(
            max(
                OneRun(canaries=1_000, guesses=r, errors=e).epsilon(alpha=0.05 * w, delta=0.0)
                for r, e, w in zip(ranks, errors, plan.weights, strict=True)
            )
        )
    assert 0.98 * 0.85 <= np.median(found) <= 1


def test_moving_ten_users_certifies_a_small_epsilon():
    groups, trials = one("laplace", 1.0), 10**4  # ε = 0.1 a user
    plan = best_plan(loss_law(groups), 2 * trials, alpha=0.05, delta=0.0)
    group = partial(reachable_guesses, loss_law(groups), plan, 2 * trials, alpha=0.05)
    assert 0.98 * 0.095 <= user_epsilon(lambda delta: group(delta=delta), users=10, delta=0.0) <= 0.1
    single = loss_law(one("laplace", 10.0))
    best = best_plan(single, 2 * trials, alpha=0.05, delta=0.0)
    assert reachable_guesses(single, best, 2 * trials, alpha=0.05, delta=0.0) < 0.08  # one user at a time


@pytest.mark.parametrize("favourite", [None, 0.68])
def test_half_noise_laplace_is_caught_in_200_runs_in_all(favourite):
    plan = e_process_plan(favourite)
    work = Guesses(one("laplace", 1.0), plan, drawn=0.5)
    found = [sequential(work, 20_000, epsilon=1.0, alpha=0.01, plan=plan, seed=seed, delta=0.0) for seed in range(200)]
    assert all(audit.verdict == "violation" and audit.ended == "stopped" for audit in found)
    assert np.median([audit.runs for audit in found]) <= 200
    assert all(audit.lower >= 1 for audit in found)


def test_half_std_gaussian_is_caught_in_1500_runs_in_all():
    mu = brentq(lambda m: gdp_epsilon(m, DELTA) - 1.0, 0.01, 5)
    work = Guesses(one("gaussian", 1 / mu), None, drawn=0.5)
    found = [sequential_on_the_curve(work, 50_000, mu=mu, alpha=0.01, seed=seed) for seed in range(200)]
    assert all(audit.verdict == "violation" for audit in found)
    assert np.median([audit.runs for audit in found]) <= 1_500


def test_a_correct_mechanism_is_never_caught_however_long_one_looks():
    plan = e_process_plan(0.68)
    found = sequential(
        Guesses(one("laplace", 1.0), plan), 10**7, epsilon=1.0, alpha=1e-9, plan=plan, seed=1, workers=2, delta=0.0
    )
    assert found.verdict == "consistent"
    assert found.ended == "done"
    assert 0.98 < found.lower <= 1
