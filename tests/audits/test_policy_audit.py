"""The policy view: the batched agent is the agent, peeking is caught, correct agents are not accused.

Audits of correct agents run at confidence 1 − 1e-9; with 8 of them a reseed fails with probability below 1e-8.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import mutants
from privcheck.declare.declaration import resolve
from privcheck.errors import AuditError, ParameterError
from privcheck.runtime import Billboard
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE, OPTIONS
from privcheck_algorithms.dp_apvi.agent import plan, prepare
from privcheck_audits.bounds import bound_at_ranks, guess_plan
from privcheck_audits.policy.offline import instance, instance_setting
from privcheck_audits.policy.view import policy_trials, whole_runs
from privcheck_audits.releases.canaries import sizes
from registered import DP_APVI, DP_APVI_LAPLACE

DEFAULTS = resolve(OPTIONS, {}, owner="test")
SURE = 1 - 1e-9
BOTH = pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])


def ask(algorithm, **asked):
    declaration = asked.pop("declaration", None) or algorithm.declare(asked.pop("readings", {}))
    values = {
        "setting": Setting(
            declaration=declaration,
            values=declaration.values(asked.pop("sets", {"H": 2, "S": 2, "A": 2})),
            options=DEFAULTS,
        ),
        "view": "policy",
        "delta": 1e-5 if algorithm is GAUSSIAN else 0.0,
        "trials": 20_000,
        "confidence": SURE,
        "seed": 5,
    }
    return AuditRequest(**{**values, **asked})


def small(declaration, values):
    algorithm = LAPLACE if "laplace" in declaration.name else GAUSSIAN
    return instance(Setting(declaration=declaration, values=values, options=DEFAULTS), algorithm)


def bound(whole, *, trials, delta, seed=0):
    counted = policy_trials(whole, guess_plan(), trials=trials, seed=seed).tested
    return bound_at_ranks(
        counted.ranked_errors, counted.ranked_guesses, guess_plan(), runs=counted.runs, alpha=1 - SURE, delta=delta
    )


@BOTH
@pytest.mark.parametrize("rewards", ["known", "released"])
def test_a_trial_is_the_agent_behind_its_billboard(algorithm, rewards):
    declaration = algorithm.declare({"rewards": rewards})
    values = declaration.values({"H": 3, "S": 3, "A": 3})
    whole = small(declaration, values)
    outputs = whole_runs(whole, np.random.default_rng(9), 40)
    H, S, A = sizes(values)
    stay = np.broadcast_to(np.eye(S)[:, None, :], (S, A, S))
    given = prepare(declaration, values, DEFAULTS, reward=stay)
    rng = np.random.default_rng(9)
    assert np.array_equal(outputs.secret, rng.integers(0, 2, size=40, dtype=np.uint8) == 1)
    drawn = {name: noise.draw(rng, (40, *whole.exact[0][name].shape)) for name, noise in whole.noise.items()}
    for run in range(40):
        billboard = Billboard()
        for name, noise in drawn.items():
            for step in range(H):
                exact = whole.exact[0 if outputs.secret[run] else 1][name][step]
                billboard.publish(name, step, exact + noise[run, step])
        learnt = plan(billboard, lambda _: None, given, keep=True)
        np.testing.assert_array_equal(outputs.features[run, : H * S * (A - 1)], learnt.policy[..., 1:].ravel())
        np.testing.assert_allclose(outputs.features[run, H * S * (A - 1) :], learnt.values.ravel(), atol=1e-12)


@BOTH
def test_both_datasets_are_neighbours(algorithm):
    declaration = algorithm.declare({})
    values = declaration.values({"H": 3, "S": 2, "A": 2})
    first, second = small(declaration, values).exact
    assert all(np.abs(first[name] - second[name]).sum() == 2 * 3 for name in first)


@pytest.mark.parametrize("readings", [{}, {"rewards": "released"}], ids=str)
@BOTH
def test_a_correct_agent_is_not_accused(algorithm, readings):
    for seed in range(2):
        result = DP_APVI.audit(ask(algorithm, seed=seed, readings=readings))
        assert result.verdict == "consistent"
        assert result.epsilon_lower <= result.epsilon_upper
        assert result.reachable < result.epsilon_upper


def test_the_score_learns_something_of_a_gaussian_agent():
    result = DP_APVI.audit(ask(GAUSSIAN, trials=50_000, confidence=0.99))
    assert result.epsilon_lower > 0.3  # expected about 1; 0.3 is 6 standard deviations away
    assert result.evidence["error_rate_of_all_guesses"] < 0.45


@BOTH
def test_an_agent_that_peeks_at_the_counts_is_caught(algorithm):
    declaration = algorithm.declare({})
    whole = small(declaration, declaration.values({"H": 2, "S": 2, "A": 2}))
    peeks = mutants.peeking(mutants.peeking(whole, "visits"), "transitions")
    delta = 1e-5 if algorithm is GAUSSIAN else 0.0
    # it plans from exact counts, so its output differs with certainty: 84 000 right guesses refute the claim's ε = 7.08
    assert bound(peeks, trials=60_000, delta=delta).epsilon > 7.08
    assert bound(whole, trials=20_000, delta=delta).epsilon < (6.6 if delta else 1)


def test_a_small_fraction_of_the_laplace_noise_is_caught():
    declaration = mutants.rescaled_noise(LAPLACE.declare({}), 0.1)
    honest = LAPLACE.declare({})
    values = honest.values({"H": 1, "S": 2, "A": 2})
    whole = dataclasses.replace(
        small(honest, values),
        noise={release.name: release.mechanism.at(values) for release in declaration.releases},
    )
    assert bound(whole, trials=50_000, delta=0.0).epsilon > 1


@BOTH
def test_any_number_of_workers_gives_the_same_counts(algorithm):
    asked = ask(algorithm, trials=5_000)
    whole = small(asked.declaration, asked.values)
    alone = policy_trials(whole, guess_plan(), trials=5_000, seed=1)
    assert policy_trials(whole, guess_plan(), trials=5_000, seed=1, workers=3) == alone
    assert alone.learned + alone.tested.runs == 10_000
    assert alone.learned == 3_000


def test_large_instances_are_replaced_by_one_where_a_violation_would_be_visible():
    def shrunk(algorithm, **given):
        declaration = algorithm.declare({})
        setting = Setting(declaration=declaration, values=declaration.values(given))
        return setting.values, instance_setting(setting, algorithm).values

    given, kept = shrunk(GAUSSIAN, H=20, S=6, A=2)
    assert kept == given
    _, small_values = shrunk(GAUSSIAN, rho="1/2")
    assert [small_values[name] for name in ("H", "S", "A", "rho")] == [2, 2, 2, Fraction(1, 2)]
    assert shrunk(LAPLACE)[1]["H"] == 1
    result = DP_APVI_LAPLACE.audit(ask(LAPLACE, sets={}, trials=2_000))
    assert result.evidence["instance"] == "H = 1, S = 2, A = 2"


def test_a_value_that_is_not_a_number_is_refused():
    declaration = GAUSSIAN.declare({})
    whole = small(declaration, declaration.values({"H": 2, "S": 2, "A": 2}))
    calls = []

    def breaks(noisy):
        actions, values = whole.agent(noisy)
        calls.append(len(actions))
        if sum(calls) > 1_500:  # after the score has been learned on 1 200 runs
            values[0, 0, 0] = math.nan
        return actions, values

    with pytest.raises(AuditError, match="seed 7"):
        policy_trials(dataclasses.replace(whole, agent=breaks), guess_plan(), trials=2_000, seed=7)


def test_too_few_trials_to_learn_from_are_refused():
    with pytest.raises(ParameterError, match="at least 100 trials"):
        DP_APVI.audit(ask(GAUSSIAN, trials=99))
