"""Lockstep and noise of the running online agents: the view that can see a mutant finds it, no agent is accused.

Lockstep has no error probability. The noise audits of correct agents run at α = 1e-9 each; with 25 of them here a
reseed fails with probability below 3e-8. What the mutants lose is so much that missing one is rarer still.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from mutants import rescaled_noise
from mutants.agents import (
    Talkative,
    counts_twice,
    forgets_level,
    plans_from_exact,
    reuses_nodes,
    shares_noise,
)
from privcheck.commands.settings import resolve_setting
from privcheck.data.finite_models import FiniteMDP
from privcheck.errors import AuditError, ParameterError
from privcheck.runtime.results import AuditRequest
from privcheck_audits.lockstep import agent_views
from privcheck_audits.lockstep.agents import watch
from privcheck_audits.lockstep.online_agents import replay_agent, response_pairs
from registered import ALGORITHMS
from structures import over_registry
from twins.streams import psums_holding

ALPHA = 1e-9
SMALL = {"H": "4", "S": "3", "A": "2", "K": "24"}
LINEAR_MIXTURES = {"private-linopt-vi", "private-linopt-po"}
CENTRAL, LOCAL = "private-ucb-vi-central", "private-ucb-vi-local"


def sizes_of(name):
    """Small sizes, of those that the algorithm declares."""
    declared = {parameter.name for parameter in resolve_setting(name, {}).declared.parameters}
    return {size: value for size, value in {**SMALL, "d": "3"}.items() if size in declared}


def asked(name, view, trials, *, declaration=None, sets=None, **more):
    setting = resolve_setting(name, sets or sizes_of(name))
    given = declaration or setting.declared
    return AuditRequest(
        setting=replace(setting.setting, declaration=given), view=view, delta=1e-5,
        trials=trials, confidence=1 - ALPHA, **{"seed": 4, **more},
    )  # fmt: skip


def look(request, make=None):
    view = agent_views.lockstep if request.view == "lockstep" else agent_views.noise
    return view(request, with_agent(request.declaration.name, make))


def with_agent(name, make=None):
    algorithm = ALGORITHMS[name]
    return algorithm if make is None else replace(algorithm, online=make)


def agent_of(name, make=None, sets=None):
    request = asked(name, "lockstep", 1, sets=sets)
    return watch(with_agent(name, make), request.setting)[0][0]


@pytest.mark.parametrize("name", over_registry("online", "declared"))
def test_a_correct_agent_attains_its_charge_and_shows_the_same_policies(name):
    found = look(asked(name, "lockstep", 8))
    assert found.verdict == "consistent"
    assert found.evidence["departures"] == 0
    assert found.evidence["policies_that_moved"] > 8
    ratios = [v for key, v in found.evidence.items() if key.endswith("_l1_moved_over_charged")]
    assert max(ratios) <= 1 + 1e-9
    if "gram_l2_moved_over_charged" in found.evidence:  # values are seldom at their bounds: test_lsvi_audits
        assert found.evidence["gram_l2_moved_over_charged"] == pytest.approx(1, rel=1e-9)
    elif name in LINEAR_MIXTURES:  # no user moves all releases most; V is not quite as large as it may be
        euclidean = {key: v for key, v in found.evidence.items() if key.endswith("_l2_moved_over_charged")}
        assert [round(v, 2) for v in euclidean.values()] == pytest.approx([0.66, 0.57, 1.0, 1.0], abs=0.04)
    elif name.startswith("sdp-pe"):  # the worst pairs come first, and the first users are of crude exploration
        assert min(ratios) >= 0.4
        assert sorted(ratios)[1:] == pytest.approx([1.0] * 4)
    elif name not in {"calibrated-ucb-vi", "calibrated-lsvi-ucb", "calibrated-linopt"}:  # their ‖·‖₁ are upper bounds
        assert ratios == pytest.approx([1.0] * len(ratios), rel=1e-9)


@pytest.mark.parametrize("name", over_registry("online", "fresh noise"))
def test_a_correct_agent_draws_what_it_declares(name):
    found = look(asked(name, "noise", 6))
    assert found.verdict == "consistent", found.evidence
    assert found.evidence["refuted"] == "nothing"
    scales = [v for key, v in found.evidence.items() if key.startswith("drawn_over_declared_scale")]
    assert len(scales) >= min(2, len(asked(name, "noise", 6).declaration.releases))


@pytest.mark.parametrize("position", [1, 2, 3, 8, 12, 23, 24])
@pytest.mark.parametrize("name", [CENTRAL, LOCAL])
def test_a_user_moves_exactly_the_p_sums_that_hold_them(name, position):
    agent = agent_of(name)
    one, other, _ = next(response_pairs(agent.declaration, agent.request.world))
    found = replay_agent(agent, (one, other), position, seed=3, words="")
    K, H = (int(agent.request.values[size]) for size in ("K", "H"))
    held = len(psums_holding(position, K - 1)) if name == CENTRAL else int(position < K)
    moved = {d.release: d.measured for d in found.distances if d.norm == "l1"}
    apart = H - 1 if name == CENTRAL else H  # steps in which the neighbours' pairs differ: all of them under local DP
    assert moved["visits"] == pytest.approx(held * 2 * apart, rel=1e-9)
    assert moved["transitions"] == pytest.approx(held * 2 * H, rel=1e-9)
    assert found.departures == 0


def test_later_users_answer_alike_whatever_one_user_drew():
    """A user whose first state is random draws a number more than one whose first state is fixed."""
    agent = agent_of(CENTRAL, sets={**SMALL, "initial": "any"})
    mdp = agent.request.world.mdp
    one, other, _ = next(response_pairs(agent.declaration, agent.request.world))
    anywhere = FiniteMDP(
        horizon=mdp.horizon,
        transition=other.transition,
        reward=other.reward,
        initial=np.full(mdp.states, 1 / mdp.states),
    )
    found = replay_agent(agent, (one, anywhere), 3, seed=3, words="")
    assert not any(d.exceeds for d in found.distances)
    assert found.departures == 0


@pytest.mark.parametrize("name", [LOCAL, "private-ucb-po-local", "ldp-obi"])
def test_a_message_is_not_taken_for_noise(name):
    found = look(asked(name, "noise", 6, sets={**SMALL, "epsilon": "10000"}))
    assert found.verdict == "consistent", found.evidence


def test_a_tree_that_is_charged_for_a_level_less_is_caught():
    honest = resolve_setting(CENTRAL, SMALL).declared
    short = replace(
        honest,
        releases=tuple(
            replace(r, schedule=replace_leaves(r.schedule, 12)) if r.name == "visits" else r for r in honest.releases
        ),
    )
    found = look(asked(CENTRAL, "lockstep", 4, declaration=short))
    assert found.verdict == "violation"
    assert found.evidence["release"] == "visits"
    assert found.evidence["visits_l1_moved_over_charged"] == pytest.approx(5 / 4)


def replace_leaves(schedule, leaves):
    return type(schedule)(leaves=leaves, counted=schedule.counted)


@pytest.mark.parametrize("name", [CENTRAL, "private-ucb-po-central", "pucb", "dp-ucbvi-central"])
def test_lockstep_catches_a_user_who_is_counted_twice(name):
    found = look(asked(name, "lockstep", 2), counts_twice(ALGORITHMS[name].online))
    assert found.verdict == "violation"
    assert found.evidence["visits_l1_moved_over_charged"] == pytest.approx(2)


def test_lockstep_catches_it_wherever_the_user_comes():
    agent = agent_of(CENTRAL, make=counts_twice(ALGORITHMS[CENTRAL].online, user=7))
    one, other, _ = next(response_pairs(agent.declaration, agent.request.world))
    for position in (6, 7, 8):
        found = replay_agent(agent, (one, other), position, seed=3, words="")
        largest = {d.release: d.measured for d in found.distances if d.norm == "linf"}
        assert largest["visits"] == (2 if position == 7 else 1)
        assert any(d.exceeds for d in found.distances) == (position == 7)


@pytest.mark.parametrize("name", [CENTRAL, "private-ucb-po-central", "dp-ucbvi-central"])
def test_lockstep_catches_an_agent_that_plans_from_what_it_does_not_release(name):
    found = look(asked(name, "lockstep", 4), plans_from_exact(ALGORITHMS[name].online))
    assert found.verdict == "violation"
    assert found.evidence["departures"] > 0
    assert "another policy" in found.witness


def test_lockstep_catches_numbers_that_no_release_declares():
    found = look(asked(CENTRAL, "lockstep", 2), Talkative(honest=ALGORITHMS[CENTRAL].online))
    assert found.verdict == "violation"
    assert "24 more numbers than declared" in found.witness


@pytest.mark.parametrize(
    ("mutant", "name", "seen"),
    [
        (shares_noise, CENTRAL, "independence: the same position of visits and costs"),
        (reuses_nodes, CENTRAL, "independence: successive P-sums of visits"),
        (reuses_nodes, LOCAL, "independence: successive outputs of visits"),
        (forgets_level, CENTRAL, "scale of visits, level 4"),
        (forgets_level, "private-ucb-po-central", "scale of transitions, level 4"),
        (shares_noise, "pucb", "independence: the same position of visits and rewards"),
    ],
)
def test_noise_that_is_not_as_declared_is_found(mutant, name, seen):
    found = look(asked(name, "noise", 6), mutant(ALGORITHMS[name].online))
    assert found.verdict == "violation"
    assert seen in found.witness
    lockstep = look(asked(name, "lockstep", 2), mutant(ALGORITHMS[name].online))
    assert lockstep.verdict == "consistent"  # the noise is not what it looks at


@pytest.mark.parametrize("name", [CENTRAL, LOCAL, "ldp-obi", "calibrated-ucb-vi"])
@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_noise_at_another_scale_is_found(name, factor):
    declaration = rescaled_noise(resolve_setting(name, SMALL).declared, factor)
    runs = {0.5: 16, 0.9: 60 if name != "calibrated-ucb-vi" else 400}[factor]  # ten percent: ten standard deviations
    found = look(asked(name, "noise", runs, declaration=declaration))
    assert found.verdict == "violation"
    assert "scale of transitions" in found.witness
    assert found.evidence["drawn_over_declared_scale_transitions"] == pytest.approx(factor, rel=0.05)


def test_an_agent_without_noise_is_found():
    class Silent:
        def __call__(self, request, *, noiseless=False):
            return ALGORITHMS[CENTRAL].online(request, noiseless=True)

    found = look(asked(CENTRAL, "noise", 2), Silent())
    assert found.verdict == "violation"
    assert found.evidence["drawn_over_declared_scale_visits"] == 0


@pytest.mark.parametrize(("name", "view"), [(CENTRAL, "lockstep"), (LOCAL, "noise"), ("calibrated-ucb-vi", "noise")])
def test_a_killed_audit_resumes_and_threads_change_nothing(tmp_path, name, view):
    trials = {"lockstep": 10, "noise": 24}[view]
    whole = look(asked(name, view, trials))
    stopped = []

    def kill(done, total):
        stopped.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        look(asked(name, view, trials, directory=tmp_path, progress=kill))
    kept = list(tmp_path.rglob("0*.npz"))
    assert len(kept) == 1
    stamp = kept[0].stat().st_mtime_ns
    resumed = look(asked(name, view, trials, directory=tmp_path, workers=2))
    assert resumed.evidence == whole.evidence
    assert resumed.witness == whole.witness
    assert kept[0].stat().st_mtime_ns == stamp
    with pytest.raises(ParameterError, match="another audit"):
        look(asked(name, view, trials, directory=tmp_path, seed=5))


def test_large_models_are_audited_smaller_and_short_runs_are_not_refused():
    large = asked(CENTRAL, "lockstep", 2, sets={"S": "716", "A": "25", "H": "20", "K": "1000"})
    found = look(large)
    assert found.verdict == "consistent"
    assert "K = 64 (asked: 1000)" in found.evidence["audited_at"]
    for K in ("1", "2"):
        for name in (CENTRAL, LOCAL, "calibrated-ucb-vi"):
            for view in ("lockstep", "noise"):
                short = look(asked(name, view, 2, sets={**SMALL, "K": K}))
                assert short.verdict == "consistent"


def test_an_agent_that_plays_otherwise_without_noise_is_refused():
    class Moody:
        def __call__(self, request, *, noiseless=False):
            options = {**request.options, "precision_scale": 0 if noiseless else 1}
            return ALGORITHMS[LOCAL].online(
                replace(request, setting=replace(request.setting, options=options)), noiseless=noiseless
            )

    with pytest.raises(AuditError, match="another policy without noise"):
        look(asked(LOCAL, "noise", 2), Moody())


@pytest.mark.nightly
@pytest.mark.parametrize("name", [CENTRAL, "ldp-obi", "calibrated-ucb-vi"])
def test_correct_agents_are_accused_no_more_often_than_the_confidence_allows(name):
    """At 99 % over 300 audits; more than the limit has probability below 1e-9."""
    sets = {"H": "3", "S": "3", "A": "2", "K": "16"}
    request = replace(asked(name, "noise", 3, sets=sets), confidence=0.99)
    found = (look(replace(request, seed=seed)) for seed in range(300))
    assert sum(result.verdict == "violation" for result in found) <= binom.isf(1e-9, 300, 0.01)
