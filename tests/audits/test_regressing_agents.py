"""Agents that regress on a dataset are audited whole, in a world of their own: mutants are found, honest ones are not.

Lockstep has no error probability. Noise audits of honest agents run at α = 1e-9, policy audits at confidence
1 − 1e-9: 6 of them, so that a reseed fails with probability below 1e-8. An agent that plans from exact sums is told
apart in every run: 980 right guesses refute ε = .60 (ρ = 1/100) with certainty.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mutants import regressing as mutants
from privcheck.commands.settings import resolve_setting
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.errors import ChannelError, ParameterError
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_algorithms.dp_vapvi.declaration import VARIANCE_HALF
from privcheck_algorithms.linear.audit_worlds import two_ends
from privcheck_audits.lockstep.regression import place_agent
from privcheck_audits.policy.regression import instance, place_small
from structures import over_registry

ALPHA = 1e-9
NAMES = over_registry("regressing")
VAPVI = ["dp-vapvi", "dp-vapvi-unsplit"]
HALF = {"weighted gram": VARIANCE_HALF, "gains": VARIANCE_HALF}


def audit(name, view, trials, *, mutant=None, declaration=None, confidence=1 - ALPHA, **given):
    algorithm = registry.algorithm(name)
    if mutant is not None:
        algorithm = replace(algorithm, offline=mutant(algorithm.offline))
    setting = resolve_setting(name, {"H": "3", "d": "3", **given}).setting
    if declaration is not None:
        setting = replace(setting, declaration=declaration(setting.declared))
    request = AuditRequest(
        setting=setting, view=view, delta=1e-5, trials=trials, confidence=confidence, seed=4, workers=1
    )
    return registry.plan_for(algorithm).audit(request)


@pytest.mark.parametrize("name", NAMES)
def test_the_registered_halves_are_what_runs(name):
    found = audit(name, "lockstep", 24)
    assert found.verdict == "consistent"
    assert found.agent_ran
    assert found.evidence["policies"] == 48
    assert found.evidence["departures"] == 0


@pytest.mark.parametrize("name", VAPVI)
def test_gram_matrices_are_moved_as_far_as_is_charged_and_sums_at_a_step(name):
    found = audit(name, "lockstep", 24).evidence
    assert found["gram_l2_moved_over_charged"] == pytest.approx(1, rel=1e-9)
    for release in ("gram", "weighted gram", "gains"):  # where V = 0 and σ̃ = 1
        assert found[f"{release}_step_moved_over_charged"] == pytest.approx(1, rel=1e-9)
    assert all(value <= 1 + 1e-9 for name, value in found.items() if name.endswith("moved_over_charged"))
    assert found["values_step_moved_over_charged"] > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_honest_agents_draw_the_declared_noise_and_are_not_accused(name):
    heard = audit(name, "noise", 12)
    assert (heard.verdict, heard.agent_ran) == ("consistent", True)
    seen = audit(name, "policy", 200)
    assert (seen.verdict, seen.agent_ran) == ("consistent", True)
    assert "far apart" in seen.evidence["instance"]


@pytest.mark.parametrize("name", VAPVI)
@pytest.mark.parametrize(
    ("mutant", "release"),
    [
        (mutants.plans_from_exact, None),
        (mutants.counts_twice, "gram"),
        (lambda agent: mutants.forgets_noise(agent, "gram"), "gram"),
        (lambda agent: mutants.forgets_noise(agent, "gains"), "gains"),
    ],
    ids=["plans from exact", "counts twice", "quiet gram", "quiet gains"],
)
def test_lockstep_finds_what_is_not_as_declared(name, mutant, release):
    found = audit(name, "lockstep", 18, mutant=mutant, rho="100")
    assert found.verdict == "violation"
    if release is None:
        assert found.evidence["departures"] > 0
        assert "another policy" in found.witness
    else:
        ratios = [value for key, value in found.evidence.items() if key.startswith(release) and key.endswith("charged")]
        assert any(ratio == "slices differ" or ratio > 1 + 1e-6 for ratio in ratios)


def test_values_from_exact_sums_move_the_other_half_too():
    # unsplit, an average that all users share moves by about what the user's own row does, and the charge has room
    found = audit("dp-vapvi", "lockstep", 18, mutant=mutants.weighs_by_exact)
    assert found.verdict == "violation"
    assert found.evidence["charged"] == 0.0


@pytest.mark.parametrize(
    "halves", [dict.fromkeys(["squared values", "values", "gram", *HALF], ""), HALF], ids=["both", "the other"]
)
def test_a_user_in_both_halves_is_found(halves):
    found = audit("dp-vapvi", "lockstep", 18, mutant=lambda agent: mutants.shares_users(agent, halves))
    assert found.verdict == "violation"
    assert found.evidence["charged"] == 0.0


def test_a_step_that_exceeds_its_share_is_found_where_the_others_leave_room():
    found = audit("dp-vapvi-unsplit", "lockstep", 18, mutant=lambda agent: mutants.louder(agent, "gains", 2, 1.5))
    assert found.verdict == "violation"
    assert found.evidence["gains_step_moved_over_charged"] == pytest.approx(1.5)
    assert found.evidence["gains_l2_moved_over_charged"] < 1
    assert (found.evidence["release"], found.evidence["norm"]) == ("gains", "step")


def test_an_agent_that_skips_the_channel_has_no_noise_to_test():
    with pytest.raises(ChannelError, match="gram"):
        audit("dp-vapvi", "noise", 2, mutant=lambda agent: mutants.forgets_noise(agent, "gram"))


@pytest.mark.parametrize("name", VAPVI)
def test_policies_tell_an_agent_apart_that_plans_from_exact_sums(name):
    found = audit(name, "policy", 700, mutant=mutants.plans_from_exact, rho="1/100")
    assert found.verdict == "violation"
    assert found.evidence["error_rate_of_all_guesses"] < 0.01
    assert found.epsilon_lower > found.epsilon_claimed


def test_other_relations_are_audited_too():
    for relation in (AddRemoveOne(), ReplaceOne("trajectory", initial="fixed")):
        found = audit("dp-vapvi-unsplit", "lockstep", 24, declaration=lambda d, r=relation: replace(d, relation=r))
        assert found.verdict == "consistent"


def test_printed_features_have_their_own_dimension():
    algorithm = registry.algorithm("dp-vapvi")
    placed = place_agent(algorithm, resolve_setting("dp-vapvi", {"features": "printed", "H": "2"}).setting)
    assert placed.setting.features.dimension == 10


def test_the_ends_are_orthogonal_and_opposite():
    phi = two_ends({"H": 2, "d": 4}).features.phi
    assert [float(phi[0, a] @ phi[2, a]) for a in (0, 1)] == [0.0, -1.0]
    assert np.linalg.norm(phi, axis=-1).max() == 1.0
    assert two_ends({"H": 2, "d": 1}).features.phi.shape == (3, 2, 1)


@pytest.mark.parametrize("name", VAPVI)
def test_fresh_runs_are_the_same_whatever_the_block(name):
    whole = instance(place_small(resolve_setting(name, {}).setting, registry.algorithm(name)))
    first, again = (whole(np.random.default_rng(1), 5) for _ in range(2))
    assert np.array_equal(first.features, again.features)
    assert first.features.std(axis=0).max() > 0


def test_algorithms_without_a_world_are_refused():
    with pytest.raises(ParameterError, match="regresses on features"):
        place_agent(registry.algorithm("dp-apvi"), resolve_setting("dp-apvi", {}).setting)
