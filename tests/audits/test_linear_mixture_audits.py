"""Lockstep, noise and policy view of the agents of linear mixtures: each mutant is found by the view that can see it.

Lockstep has no error probability; noise audits run at α = 1e-9 each, and what the mutants change is far beyond that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mutants
from mutants.agents import Altered, counts_twice, forgets_level, plans_from_exact
from privcheck.commands.settings import resolve_setting
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_algorithms.kernels.mixtures import reach
from privcheck_algorithms.linear.audit_worlds import mixture_audit_world
from privcheck_audits.lockstep import agent_views
from privcheck_audits.policy.online import audit_policies, instance

NAMES = ["private-linopt-vi", "private-linopt-po"]
SMALL = {"H": "4", "d": "3", "K": "24"}
OWN = {"H": "4", "d1": "2", "d2": "3", "K": "24", "dimensions": "own", "values": "crude"}


def look(name, view, trials, *, make=None, declaration=None, sets=SMALL, **more):
    setting = resolve_setting(name, sets).setting
    algorithm = registry.algorithm(name)
    request = AuditRequest(
        setting=setting if declaration is None else replace(setting, declaration=declaration),
        view=view, delta=1e-5, trials=trials, confidence=1 - 1e-9, seed=4, **more,
    )  # fmt: skip
    return getattr(agent_views, view)(request, algorithm if make is None else replace(algorithm, online=make))


def alter(name, change):
    """The agent, to whose arrays something is done before or after every episode."""
    return Altered(honest=registry.algorithm(name).online, alter=change)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sets", [SMALL, OWN], ids=["common", "own"])
def test_an_honest_agent_moves_what_it_is_charged_at_most(name, sets):
    found = look(name, "lockstep", 16, sets=sets)
    assert found.verdict == "consistent"
    assert found.evidence["departures"] == 0
    assert found.evidence["policies_that_moved"] > 300
    assert found.evidence["reward gram_l2_moved_over_charged"] == pytest.approx(1)
    least = 0.6 if sets is SMALL else 0.2  # of H⁴ a step has no more than (H − h)⁴ under `crude`
    assert found.evidence["transition gram_l2_moved_over_charged"] > least


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mutant", [counts_twice, plans_from_exact])
def test_lockstep_catches_a_user_counted_twice_and_plans_from_exact_sums(name, mutant):
    found = look(name, "lockstep", 4, make=mutant(registry.algorithm(name).online))
    assert found.verdict == "violation"
    assert (found.evidence["departures"] > 0) == (mutant is plans_from_exact)


def forgets_to_clip(_request, play, one, episode):
    """The first user's transition counters are of a V twice as large, as if Q were not clipped."""
    before = one.arrays["exact"].copy()
    play(one, episode)
    if episode == 1:
        more = one.arrays["exact"] - before
        more[4 * (6 + 3) :] = 0.0
        one.arrays["exact"] += 3 * more
        one.arrays["noisy"] += 3 * more


def remembers_the_last_user(_request, play, one, episode):
    """The policy leans to where the user before went: that passes the channel by."""
    one.arrays["noisy"] += 1e4 * one.arrays["path"].sum()  # a tree's sums are written anew in every episode
    play(one, episode)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [forgets_to_clip, remembers_the_last_user])
def test_lockstep_catches_values_that_are_too_large_and_what_passes_the_channel_by(name, change):
    found = look(name, "lockstep", 8, make=alter(name, change))
    assert found.verdict == "violation"


@pytest.mark.parametrize("name", NAMES)
def test_the_noise_view_catches_less_noise_and_a_level_too_few(name):
    assert look(name, "noise", 6).verdict == "consistent"
    short = look(name, "noise", 6, make=forgets_level(registry.algorithm(name).online))
    assert short.verdict == "violation"
    assert "level 4" in short.witness
    half = mutants.rescaled_noise(resolve_setting(name, SMALL).declared, 0.5)
    assert look(name, "noise", 6, declaration=half).verdict == "violation"


@pytest.mark.slow  # under the default readings `test_online_plans` does the same
@pytest.mark.parametrize("name", NAMES)
def test_the_policy_view_catches_an_agent_that_peeks_under_other_readings(name):
    readings = {"dimensions": "own", "values": "crude", "log": "ln"}
    setting, algorithm = resolve_setting(name, readings).setting, registry.algorithm(name)
    request = AuditRequest(setting=setting, view="policy", delta=1e-5, trials=400, confidence=1 - 1e-9, seed=3)
    runs = instance(setting, algorithm)
    assert audit_policies(request, algorithm).verdict == "consistent"
    found = audit_policies(request, algorithm, mutants.peeking_online(runs))
    assert found.verdict == "violation"
    assert found.evidence["errors"] == 0


@pytest.mark.parametrize(("d1", "d2"), [(2, 2), (4, 3), (5, 1), (1, 4)])
def test_the_two_users_of_the_audits_world_are_as_far_apart_as_can_be(d1, d2):
    world = mixture_audit_world({"H": 3, "S": 6, "d1": d1, "d2": d2})
    assert world.sizes == {"H": 3, "S": 6, "A": 2, "d": d2, "d2": d2, "d1": d1}
    kernels, phi = world.features.kernels, world.features.phi
    assert reach(kernels) == pytest.approx(np.sqrt(d1))
    first, last = (kernels[:, s, 0] @ np.ones(6) for s in (0, 5))
    assert np.linalg.norm(first) == np.linalg.norm(last) == pytest.approx(np.sqrt(d1))
    assert abs(first @ last) == d1 % 2
    if d2 > 1:
        assert phi[0, 0] @ phi[5, 0] == 0
        assert np.linalg.norm(phi[0, 0]) == np.linalg.norm(phi[5, 1]) == 1
