"""Lockstep replay and noise as declared: exact about sensitivities, two-sided about noise.

Lockstep has no error probability. The noise audits of correct channels run at α = 1e-9 each; with 10 of them here a
reseed fails with probability below 1e-8.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import mutants
from privcheck.data.trajectories import Trajectories, concatenate
from privcheck.declare.declaration import resolve
from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise
from privcheck.pricing import Priced
from privcheck.runtime import SimulatedNoise
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE
from privcheck_audits.lockstep.noise import noise_tests
from privcheck_audits.lockstep.replay import publish, replay, worst
from privcheck_audits.releases.canaries import random_users, worst_canary
from registered import DP_APVI

SMALL = {"H": 4, "S": 3, "A": 2}
ALPHA = 1e-9
BOTH = pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])


def each(data):
    """Returns the users one by one."""
    return [data.user(index) for index in range(data.users)]


def audit(declaration, view, **asked):
    values = {
        "setting": Setting(
            declaration=declaration,
            values=declaration.values(asked.pop("sets", SMALL)),
            options=resolve(GAUSSIAN.options, {}, owner="test"),
        ),
        "delta": 1e-5,
        "trials": 30,
        "confidence": 1 - ALPHA,
        "seed": 3,
    }
    return DP_APVI.audit(AuditRequest(view=view, **{**values, **asked}))


@BOTH
@pytest.mark.parametrize("rewards", ["known", "released"])
def test_lockstep_finds_the_charge_exactly_attained(algorithm, rewards):
    result = audit(algorithm.declare({"rewards": rewards}), "lockstep")
    assert result.verdict == "consistent"
    ratios = [value for name, value in result.evidence.items() if name.endswith("moved_over_charged")]
    assert len(ratios) == (9 if rewards == "released" else 6)
    assert ratios == pytest.approx([1.0] * len(ratios), rel=1e-15)
    assert result.epsilon_lower is None


@BOTH
@pytest.mark.parametrize("factor", ["19/20", "999999/1000000"])
def test_lockstep_catches_a_sensitivity_that_is_short(algorithm, factor):
    result = audit(mutants.short_sensitivity(algorithm.declare({}), factor), "lockstep")
    assert result.verdict == "violation"
    assert result.evidence["moved"] > result.evidence["charged"]
    assert "throughout" in result.witness


@pytest.mark.parametrize("stated", ["1", "999999999/1000000000"])
def test_rounding_of_sums_is_allowed_for_and_hides_nothing_larger(stated):
    declaration = mutants.short_sensitivity(GAUSSIAN.declare({"rewards": "released"}), stated)
    values = declaration.values(SMALL)
    pair = worst_canary(Priced(declaration, values)).pair
    other = Trajectories(
        states=pair[0].states,
        actions=pair[0].actions,
        rewards=np.full((1, 4), 0.9951),
        num_states=3,
        num_actions=2,
    )
    base = concatenate([other] * 64)
    sums = declaration.release("rewards").statistic.compute(base, step=0)
    assert (sums[0, 0] + 1) - sums[0, 0] > 1  # what one user with reward 1 moves it by
    found = replay(declaration, values, each(base), pair, seed=0, position=64)
    rewards = [distance for distance in found if distance.release == "rewards"]
    assert all(distance.ratio > 1 for distance in rewards)
    assert [distance.exceeds for distance in rewards] == [stated != "1"] * 3


@BOTH
def test_lockstep_catches_a_step_that_is_counted_twice(algorithm):
    result = audit(mutants.counted_twice(algorithm.declare({})), "lockstep")
    assert result.verdict == "violation"
    assert result.evidence["release"] == "visits"
    assert result.evidence["visits_l1_moved_over_charged"] == pytest.approx((2 * 4 + 2) / (2 * 4))
    assert result.evidence["visits_l2_moved_over_charged"] == pytest.approx(math.sqrt((2 * 4 + 6) / (2 * 4)))
    assert result.evidence["transitions_l1_moved_over_charged"] == 1


def test_random_users_alone_would_not_reach_the_supremum_but_never_exceed_it():
    declaration = GAUSSIAN.declare({})
    values = declaration.values({"H": 6, "S": 2, "A": 1})
    rng = np.random.default_rng(0)
    base = each(random_users(5, values, rng))
    found = [
        d
        for _ in range(20)
        for d in replay(declaration, values, base, (random_users(1, values, rng), random_users(1, values, rng)), seed=0)
    ]
    assert not any(distance.exceeds for distance in found)
    assert len(worst(found)) == 6


def test_a_run_that_releases_other_slices_on_the_other_dataset_is_caught():
    declaration = GAUSSIAN.declare({})
    values = declaration.values(SMALL)
    worst_pair = worst_canary(Priced(declaration, values)).pair

    def data_dependent(users, given, at, opened):
        steps = publish(users, given, at, opened)
        for _ in range(given.releases[0].statistic.shape(at)[0] if users[0].states[0, 0] == 0 else 1):
            yield next(steps)

    base = each(random_users(5, values, np.random.default_rng(0)))
    for pair, rule in ((worst_pair, all), (worst_pair[::-1], any)):
        found = replay(declaration, values, base, pair, seed=0, execute=data_dependent)
        assert rule(distance.exceeds and distance.measured == math.inf for distance in found)


def test_statistics_of_many_cells_are_replayed_with_fewer_states():
    result = audit(GAUSSIAN.declare({}), "lockstep", sets={"H": 2, "S": 716, "A": 25}, trials=2)
    assert result.verdict == "consistent"
    assert result.evidence["audited_at"] == "S = 39 (asked: 716)"


@BOTH
def test_declared_noise_is_found_as_declared(algorithm):
    for seed in range(3):
        result = audit(algorithm.declare({}), "noise", seed=seed)
        assert result.verdict == "consistent"
        assert result.evidence["drawn_over_declared_scale_visits"] == pytest.approx(1, abs=0.2)
        assert result.evidence["tests"] == 13


@BOTH
@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1])
def test_noise_of_another_scale_is_rejected(algorithm, factor):
    # 10 000 numbers: ten percent are more than 10 standard deviations, the threshold is 6.5
    declaration = mutants.rescaled_noise(algorithm.declare({}), factor)
    result = audit(declaration, "noise", trials=100, sets={"H": 5, "S": 3, "A": 2})
    assert result.verdict == "violation"
    assert "scale of transitions" in result.witness
    assert result.evidence["drawn_over_declared_scale_transitions"] == pytest.approx(factor, rel=0.1)


class OtherLaw:
    """Noise of the declared standard deviation, and of the other law."""

    words = "the wrong law"
    as_declared, protects = True, False

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def add(self, noise, value, **_):
        if noise.gaussian:
            return LaplaceNoise(scale=noise.scale / math.sqrt(2)).add(value, self._rng)
        return GaussianNoise(scale=noise.scale * math.sqrt(2)).add(value, self._rng)


class OneNumberASlice:
    """One number for a whole slice, as a published experiment code draws it."""

    words = "one number a slice"
    as_declared, protects = True, False

    def __init__(self, seed):
        self._honest = SimulatedNoise(seed)

    def add(self, noise, value, *, release, part):
        return value + self._honest.add(noise, np.zeros(1), release=release, part=part)


class SameEveryStep:
    """The same noise at every step."""

    words = "one draw for all steps"
    as_declared, protects = True, False

    def __init__(self, seed):
        self._honest = SimulatedNoise(seed)

    def add(self, noise, value, *, release, **_):
        return self._honest.add(noise, value, release=release, part=0)


@BOTH
@pytest.mark.parametrize(
    ("source", "name"),
    [
        (OtherLaw, "law"),
        (mutants.SharedNoise, "independence: the same position"),
        (OneNumberASlice, "independence: neighbouring coordinates"),
        (SameEveryStep, "independence: successive steps"),
        (lambda _: SimulatedNoise(0), "independence: runs"),
    ],
    ids=["other law", "shared by releases", "one number a slice", "same every step", "same every run"],
)
def test_noise_that_is_not_independent_or_of_another_law_is_rejected(algorithm, source, name):
    declaration = algorithm.declare({})
    values = declaration.values({"H": 5, "S": 4, "A": 3})
    data = each(random_users(10, values, np.random.default_rng(1)))
    found = noise_tests(declaration, values, data, runs=60, seed=1, source=source)
    assert min(test.p_value for test in found if test.name == name) < ALPHA / len(found)
    honest = noise_tests(declaration, values, data, runs=60, seed=1)
    assert min(test.p_value for test in honest) > ALPHA / len(honest)


def test_half_of_the_noise_in_common_is_rejected():
    class Common:
        words = "correlated"
        as_declared, protects = True, False

        def __init__(self, seed):
            self._honest = SimulatedNoise(seed)

        def add(self, noise, value, *, release, part):
            own = self._honest.add(noise, np.zeros(value.shape), release=release, part=part)
            size = min(value.size, 12)
            shared = self._honest.add(noise, np.zeros(size), release=9, part=part)
            own.ravel()[:size] = (own.ravel()[:size] + shared) / math.sqrt(2)
            return value + own

    declaration = GAUSSIAN.declare({})
    values = declaration.values({"H": 5, "S": 4, "A": 3})
    data = each(random_users(10, values, np.random.default_rng(1)))
    found = noise_tests(declaration, values, data, runs=60, seed=1, source=Common)
    shared = next(test for test in found if test.name == "independence: the same position")
    assert shared.p_value < ALPHA / len(found)
    assert shared.figure == pytest.approx(0.5 + math.asin(0.5) / math.pi, abs=0.05)  # Sheppard
