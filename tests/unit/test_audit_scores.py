"""Likelihood-ratio trials, bulk noise, canaries, reachable limits and learned scores against slow twins."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import laplace as laplace_law
from scipy.stats import norm

from privcheck.data.trajectories import concatenate
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noiseless
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE
from privcheck_audits.bounds import GuessPlan, guess_plan
from privcheck_audits.engine import kernels
from privcheck_audits.engine.scores import (
    MovedGroup,
    draw_hidden_bits,
    find_moved_groups,
    learn_score,
    likelihood_trials,
)
from privcheck_audits.lockstep.streams import canaries
from privcheck_audits.lockstep.users import random_pair
from privcheck_audits.plan.reachable import best_plan, loss_law, reachable_curve, reachable_guesses
from privcheck_audits.releases.canaries import canary, describe, random_users, sizes, worst_canary

BOTH = pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])


def declared(algorithm, **readings) -> Declaration:
    return algorithm.declare(readings)


@pytest.mark.parametrize("law", [GaussianNoise, LaplaceNoise, Noiseless])
def test_bulk_noise_is_the_channel_s_noise_digit_for_digit(law):
    noise = law(scale=0.7)
    ours = kernels.draw(noise, np.random.default_rng(5), (50, 3, 4))
    assert np.array_equal(ours, noise.draw(np.random.default_rng(5), (50, 3, 4)))


def test_scores_are_the_log_ratio_of_densities():
    groups = (
        MovedGroup(releases=("a",), noise=GaussianNoise(scale=2.0), change=np.array([1.0, -1.0, 0.5])),
        MovedGroup(releases=("b",), noise=LaplaceNoise(scale=3.0), change=np.array([1.0, -2.0])),
    )
    scored = likelihood_trials(groups, np.random.default_rng(8), 400)
    rng = np.random.default_rng(8)
    secret = draw_hidden_bits(rng, 400)
    expected = np.zeros(400)
    for group, law in zip(groups, (norm, laplace_law), strict=True):
        drawn = group.noise.draw(rng, (400, group.change.size))
        for run in range(400):
            output = 10.0 + drawn[run] - (0 if secret[run] else group.change)  # f(D) = 10 everywhere
            under_d = law.logpdf(output, 10.0, group.noise.scale).sum()
            under_other = law.logpdf(output, 10.0 - group.change, group.noise.scale).sum()
            expected[run] += under_d - under_other
    assert np.array_equal(scored.secret, secret)
    np.testing.assert_allclose(scored.score, expected, atol=2e-9)
    assert 150 < secret.sum() < 250


def test_equal_likelihood_ratios_are_equal_scores_in_both_arms():
    group = MovedGroup(releases=("a",), noise=LaplaceNoise(scale=1 / 0.3), change=np.array([1.0]))
    scored = likelihood_trials((group,), np.random.default_rng(0), 20_000)
    atoms = [{s for s in scored.score[scored.secret == arm] if abs(abs(s) - 0.3) < 1e-6} for arm in (True, False)]
    assert len(atoms[0]) == 2
    assert atoms[0] == atoms[1]


@BOTH
def test_only_coordinates_that_differ_carry_information(algorithm):
    declaration = declared(algorithm, rewards="released")
    values = declaration.values({"H": 2, "S": 3, "A": 2})
    worst = worst_canary(Priced(declaration, values))
    base = random_users(4, values, np.random.default_rng(1))
    whole = []
    for release in declaration.releases:
        first, second = (release.statistic.compute(concatenate([base, user])) for user in worst.pair)
        whole.append((first - second).ravel())
    cells = np.sort(np.concatenate([group.change for group in worst.groups]))
    everywhere = np.concatenate(whole)
    np.testing.assert_allclose(np.sort(everywhere[everywhere != 0]), cells)


@BOTH
def test_the_worst_canary_costs_what_the_accountant_says(algorithm):
    declaration = declared(algorithm)
    values = declaration.values({"H": 7, "S": 3, "A": 2})
    worst = worst_canary(Priced(declaration, values))
    if algorithm is GAUSSIAN:
        assert worst.gaussian
        assert worst.mu == pytest.approx(math.sqrt(2), rel=1e-12)  # ρ = 1
    else:
        assert not worst.gaussian
        assert worst.pure == pytest.approx(1.0, rel=1e-12)
    assert "throughout" in worst.words


def test_releases_with_one_noise_are_drawn_together():
    declaration = declared(GAUSSIAN)
    groups = worst_canary(Priced(declaration, declaration.values({"H": 20}))).groups
    assert [(group.releases, group.change.size) for group in groups] == [(("visits", "transitions"), 80)]


@pytest.mark.parametrize("relation", [ReplaceOne(initial="fixed"), AddRemoveOne()])
def test_pairs_are_neighbours_under_the_relation(relation):
    declaration = dataclasses.replace(declared(GAUSSIAN), relation=relation)
    values = declaration.values({"H": 3, "S": 2, "A": 2})
    rng = np.random.default_rng(0)
    found = [pair for _, pair in canaries(Priced(declaration, values))]
    found += [random_pair(declaration, values, rng, first=bool(number % 2)) for number in range(20)]
    for first, second in found:
        if isinstance(relation, AddRemoveOne):
            assert (first is None) != (second is None)
        else:
            assert first.states[0, 0] == second.states[0, 0]
            assert first.actions[0, 0] == second.actions[0, 0]
    assert "is absent" in describe((found[0][0], None))


def test_random_users_have_corner_rewards():
    values = declared(GAUSSIAN).values({"H": 50, "S": 3, "A": 2})
    rewards = random_users(20, values, np.random.default_rng(0)).rewards
    assert {0.0, 1.0} < set(rewards.ravel())
    assert 0.4 < np.isin(rewards, (0, 1)).mean() < 0.6
    with pytest.raises(ParameterError, match="H, S and A"):
        sizes({"H": 3})


MIXED = (
    MovedGroup(releases=("a",), noise=LaplaceNoise(scale=2.0), change=np.array([1.0, -1.0, 0.3])),
    MovedGroup(releases=("b",), noise=GaussianNoise(scale=3.0), change=np.array([1.0, 2.0])),
)


@pytest.mark.parametrize("groups", [MIXED, MIXED[:1], MIXED[1:]], ids=["mixed", "laplace", "gaussian"])
def test_the_loss_law_agrees_with_simulation(groups):
    law = loss_law(groups)
    scored = likelihood_trials(groups, np.random.default_rng(2), 200_000)
    assert law.share[-1] == pytest.approx(1, abs=1e-9)
    order = np.argsort(-np.abs(scored.score), kind="stable")
    wrong = ((scored.score > 0) != scored.secret)[order]
    for share in (0.01, 0.1, 0.5, 1.0):
        number = round(share * wrong.size)
        seen, rate = wrong[:number].mean(), law.error_rate(share)
        assert abs(seen - rate) < 7 * math.sqrt(rate / number) + 1e-4  # 8 numbers a law, each off with P < 1e-11


@pytest.mark.parametrize(
    ("epsilon", "published"),
    [(0.5, (0.475, 0.492, 0.497)), (1, (0.971, 0.990, 0.997)), (2, (1.957, 1.985, 1.995)), (4, (3.876, 3.960, 3.987))],
)
def test_reachable_with_one_laplace_coordinate(epsilon, published):
    law = loss_law([MovedGroup(releases=("a",), noise=LaplaceNoise(scale=1 / epsilon), change=np.ones(1))])
    for trials, expected in zip((10**4, 10**5, 10**6), published, strict=True):
        plans = (GuessPlan(shares=(float(s),), weights=(1.0,)) for s in np.geomspace(0.05, 1, 60))
        best = max(reachable_guesses(law, plan, 2 * trials, alpha=0.05, delta=0.0) for plan in plans)
        assert best == pytest.approx(expected, rel=0.008)
        paid = reachable_guesses(
            law, best_plan(law, 2 * trials, alpha=0.05, delta=0.0), 2 * trials, alpha=0.05, delta=0.0
        )
        equal = reachable_guesses(law, guess_plan(), 2 * trials, alpha=0.05, delta=0.0)
        assert best >= paid > equal  # what several attempts cost, and what half of α on the best one saves


@pytest.mark.parametrize(
    ("mu", "published", "point"),
    [
        (0.142211, (0.47, 0.49, 0.484), 0.39),
        (0.268051, (0.96, 0.99, 0.983), 0.82),
        (0.501552, (1.96, 1.99, 1.982), 1.66),
    ],
)
def test_reachable_with_gaussian_releases(mu, published, point):
    for (trials, alpha), expected in zip(((10**5, 0.05), (10**6, 0.05), (10**6, 0.01)), published, strict=True):
        assert reachable_curve(mu, 2 * trials, alpha=alpha, delta=1e-5) == pytest.approx(expected, rel=0.015)
    law = loss_law([MovedGroup(releases=("a",), noise=GaussianNoise(scale=1.0), change=np.array([mu]))])
    plan = best_plan(law, 2_000_000, alpha=0.01, delta=1e-5)
    assert reachable_guesses(law, plan, 2_000_000, alpha=0.01, delta=1e-5) == pytest.approx(point, rel=0.03)


def test_without_a_difference_nothing_is_reachable():
    law = loss_law([])
    assert law.error_rate(1.0) == 0.5
    assert reachable_guesses(law, guess_plan(), 1000, alpha=0.05, delta=0.0) == 0


def test_a_learned_score_finds_what_separates_and_ignores_constants():
    rng = np.random.default_rng(4)
    secret = rng.random(4000) < 0.5
    features = rng.standard_normal((4000, 5))
    features[:, 1] += secret
    features[:, 3] = 7.0
    score = learn_score(features, secret)
    assert ((score(features) > 0) == secret).mean() == pytest.approx(norm.cdf(0.5), abs=0.03)
    assert score.weights[3] == pytest.approx(0, abs=1e-6)
    z = (features[:, 1] - features[:, 1].mean()) / features[:, 1].std()
    gradient = (secret - 1 / (1 + np.exp(-score(features)))) @ z
    assert gradient == pytest.approx(score.weights[1], abs=0.05)  # the optimum of likelihood less ridge


def test_separable_features_are_learned_without_overflow():
    secret = np.arange(100) < 50
    score = learn_score(secret[:, None].astype(float), secret)
    assert np.isfinite(score.weights).all()
    assert ((score(secret[:, None].astype(float)) > 0) == secret).all()
    with pytest.raises(ParameterError, match="finite"):
        learn_score(np.array([[np.nan]]), np.array([True]))


def test_a_pair_without_noise_cannot_be_scored():
    declaration = declared(GAUSSIAN)
    values = declaration.values({"H": 2, "S": 2, "A": 2})
    found = canary(declaration, values, worst_canary(Priced(declaration, values)).pair)
    assert found.groups[0].change.size == find_moved_groups(declaration, values, found.pair)[0].change.size
    silent = MovedGroup(releases=("a",), noise=Noiseless(), change=np.ones(2))
    with pytest.raises(ParameterError, match="without noise"):
        likelihood_trials((silent,), np.random.default_rng(0), 5)
