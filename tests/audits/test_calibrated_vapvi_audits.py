"""CALIBRATED-VAPVI is audited whole: what looks at data, halves the sensitivity or has other features is found.

Lockstep has no error probability, but for the pair that breaks κ, which has to be drawn: four random pairs in 27 are
it, and two pairs in three are random, so that 250 pairs miss it with probability (1 − 8/81)^250 < 1e-11. An agent that
plans from exact sums is told apart in every run: 700 right guesses refute ε = .60 (ρ = 1/100) with certainty.
"""

from dataclasses import replace

import numpy as np
import pytest

from mutants import regressing as mutants
from privcheck.commands.settings import resolve_setting
from privcheck.data.features import FeatureMap
from privcheck.errors import ChannelError, DeclarationError, ParameterError
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck.verification import verify
from privcheck_algorithms.calibrated_vapvi import agent as planning
from privcheck_algorithms.calibrated_vapvi.declaration import declare_calibrated
from privcheck_algorithms.linear import tables
from privcheck_algorithms.linear.audit_worlds import two_ends

NAME = "calibrated-vapvi"


def audit(view, trials, *, mutant=None, confidence=0.99, world=two_ends, **given):
    algorithm = registry.algorithm(NAME)
    algorithm = replace(algorithm, instance=replace(algorithm.instance, world=world))
    if mutant is not None:
        algorithm = replace(algorithm, offline=mutant(algorithm.offline))
    setting = resolve_setting(NAME, {"H": "3", "d": "3", **given}).setting
    request = AuditRequest(
        setting=setting, view=view, delta=1e-5, trials=trials, confidence=confidence, seed=4, workers=1
    )
    return registry.plan_for(algorithm).audit(request)


def opposite(sizes):
    """Returns the two ends with features e₁, −e₁ and e₁ of the three states."""
    world = two_ends(sizes)
    phi = np.zeros_like(world.features.phi)
    phi[:, :, 0] = np.array([1.0, -1.0, 1.0])[:, np.newaxis]
    return replace(world, features=FeatureMap(phi=phi))


@pytest.mark.parametrize("rewards", ["released", "known"])
def test_the_worst_pair_of_the_world_is_nearly_as_far_apart_as_is_charged(rewards):
    found = audit("lockstep", 24, rewards=rewards).evidence
    assert 0.85 < found["tables_l2_moved_over_charged"] <= 1


@pytest.mark.parametrize(
    ("rewards", "given"),
    [("released", {}), ("released", {"S": "5", "opposed": "1/3"}), ("known", {"gram_weight": "1/10"})],
)
def test_the_claim_holds_and_the_witness_pair_loses_all_of_it(rewards, given):
    declared = declare_calibrated({"rewards": rewards})
    verdict = verify(declared, declared.values(given))
    assert verdict.verdict == "holds"
    assert 1 - 1e-6 < verdict.lower_ratio <= verdict.upper_ratio == 1


@pytest.mark.parametrize(
    "mutant", [mutants.counts_twice, lambda agent: mutants.forgets_noise(agent, "tables")], ids=["twice", "quiet"]
)
def test_lockstep_finds_tables_that_are_not_as_declared(mutant):
    found = audit("lockstep", 18, mutant=mutant)
    assert found.verdict == "violation"
    assert found.evidence["tables_l2_moved_over_charged"] > 1.5 or found.evidence["departures"] > 0


def test_lockstep_and_policies_find_an_agent_that_plans_from_exact_tables():
    found = audit("lockstep", 18, mutant=mutants.plans_from_exact, rho="100")
    assert found.verdict == "violation"
    assert found.evidence["departures"] > 0
    seen = audit("policy", 700, mutant=one_by_one, rho="1/100", confidence=1 - 1e-9)
    assert seen.verdict == "violation"
    assert seen.epsilon_lower > seen.epsilon_claimed


def test_half_of_the_sensitivity_is_found_by_verification_and_by_lockstep(monkeypatch):
    true = tables.move_at_most
    monkeypatch.setattr(tables, "move_at_most", lambda *given: true(*given) / 2)
    with pytest.raises(DeclarationError, match="moves further than its stated sensitivity"):
        verify(declare_calibrated({}), declare_calibrated({}).values())
    found = audit("lockstep", 18)
    assert found.verdict == "violation"
    assert found.evidence["tables_l2_moved_over_charged"] > 1.2


def test_features_that_break_the_declared_angle_are_refused_and_found_where_nobody_refuses_them(monkeypatch):
    given = {"H": "1", "d": "2", "rewards": "known", "gram_weight": "1/100", "opposed": "1/100"}
    with pytest.raises(ParameterError, match=r"inner product of -1, and none below κ = -0\.01"):
        audit("lockstep", 18, world=opposite, **given)
    monkeypatch.setattr(planning, "refuse_angles", lambda phi, least: None)  # noqa: ARG005 - the mutant's door is open
    found = audit("lockstep", 250, world=opposite, **given)
    assert found.verdict == "violation"
    assert 1.1 < found.evidence["tables_l2_moved_over_charged"] < 1.2


def test_a_statistic_that_says_that_features_are_acute_is_refuted_by_opposite_ones():
    declared = declare_calibrated({"rewards": "known"})
    honest = declared.release("tables").statistic
    acute = replace_least(honest, 0)
    wrong = replace(declared, releases=(replace(declared.release("tables"), statistic=acute),))
    with pytest.raises(DeclarationError, match="moves further than its stated sensitivity"):
        verify(wrong, wrong.values({"S": 6, "gram_weight": "1/10"}))


def one_by_one(agent):
    """The mutant makes its passes one at a time: many at a time would be the honest ones."""
    return replace(mutants.plans_from_exact(agent), batch=None)


def replace_least(statistic, least):
    return tables.LinearTables(
        statistic.steps, statistic.dimension, statistic.states, gram=statistic.gram, successors=statistic.successors,
        rewards=statistic.rewards, least=least,
    )  # fmt: skip


def test_a_channel_that_is_skipped_has_no_noise_to_test():
    with pytest.raises(ChannelError, match="tables"):
        audit("noise", 2, mutant=lambda agent: mutants.forgets_noise(agent, "tables"))
