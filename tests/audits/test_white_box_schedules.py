"""Lockstep and noise of any declaration: trees, streams, users' own releases, batches, halves, linear statistics.

Lockstep has no error probability. The noise audits of correct declarations run at α = 1e-9 each; with 25 of them here a
reseed fails with probability below 3e-8. What the mutants lose is so much that missing one is rarer still.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from mutants import SharedNoise, counted_twice, rescaled_noise
from mutants.trees import CountsTwice, LevelTooFew, ReusedNodes
from privcheck.commands.settings import resolve_setting
from privcheck.data.trajectories import Regressors
from privcheck.declare.relations import AddRemoveOne, ZeroOut
from privcheck.declare.statistics import Column, GramMatrices
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck.runtime import SimulatedNoise
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_audits.lockstep import views as inside
from privcheck_audits.lockstep.noise import noise_tests
from privcheck_audits.lockstep.noise_tests import NoiseTest
from privcheck_audits.lockstep.offline_agents import shrink
from privcheck_audits.lockstep.replay import publish, replay
from privcheck_audits.lockstep.streams import TreeNodes, audience, canaries, list_related_nodes, tractable
from privcheck_audits.lockstep.users import join, others, random_pair
from structures import over_registry
from twins.streams import psums_holding

ALPHA = 1e-9
DECLARED = over_registry("declared", fast=5)
FEW = {"H": "3", "S": "3", "A": "2", "d": "3", "d1": "3", "d2": "2", "K": "9", "B": "6", "N": "4"}
LINEAR = ["dp-vapvi", "dp-lsvi-ucb-pp", "private-linopt-vi", "luyo-lsvi-ucb"]


def setting_of(name, sets=FEW):
    known = {p.name for p in resolve_setting(name, {}).declared.parameters}
    return resolve_setting(name, {key: value for key, value in sets.items() if key in known})


def asked(name, view, trials, *, declaration=None, sets=FEW, **more):
    setting = setting_of(name, sets)
    return AuditRequest(
        setting=Setting(declaration=declaration or setting.declared, values=setting.values), view=view, delta=1e-5,
        trials=trials, confidence=1 - ALPHA, **{"seed": 6, **more},
    )  # fmt: skip


@pytest.mark.parametrize("name", DECLARED)
def test_lockstep_attains_every_charge_and_accuses_nobody(name):
    if setting_of(name).declared.others:
        with pytest.raises(ParameterError, match="not a value plus noise"):
            inside.lockstep(asked(name, "lockstep", 14))
        return
    found = inside.lockstep(asked(name, "lockstep", 14))
    assert found.verdict == "consistent"
    assert found.epsilon_lower is None
    norm = "l2" if {r.mechanism.law.name for r in setting_of(name).declared.releases} == {"gaussian"} else "l1"
    ratios = [v for key, v in found.evidence.items() if key.endswith(f"_{norm}_moved_over_charged")]
    assert len(ratios) == len(setting_of(name).declared.releases)
    if name not in {"calibrated-ucb-vi", "adassp"}:  # charged by a bound; an eigenvalue moves so far of few data only
        assert ratios == pytest.approx([1.0] * len(ratios), rel=1e-6)


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_drawn_is_declared_or_a_reason_is_given(name):
    request = asked(name, "noise", 12)
    if why := inside.blind(request.declaration, "noise"):
        assert any(words in why for words in ("shared", "shuffle", "not added", "not a value plus noise"))
        with pytest.raises(ParameterError, match="noise"):
            inside.noise(request)
    else:
        found = inside.noise(request)
        assert found.verdict == "consistent", found.evidence
        apart = 7 if len(request.declaration.releases) > 1 else 6  # a single one has fewer tests, and so has one step
        assert found.evidence["tests"] >= (apart if setting_of(name).values.get("H", 1) > 1 else 5)


@pytest.mark.parametrize("position", [0, 2, 4, 7])
@pytest.mark.parametrize(
    ("name", "held"),
    [
        (
            "published-ucb-vi-central",
            lambda position: max(0, 7 - position),
        ),  # K = 8: seven outputs, of all users so far
        ("private-ucb-vi-central", lambda position: len(psums_holding(position + 1, 7))),
        ("private-ucb-vi-local", lambda _: 1),
        ("dp-apvi", lambda _: 1),
    ],
)
def test_a_user_is_in_the_outputs_that_the_schedule_says(name, held, position):
    setting = setting_of(name)
    values = tractable(setting.declared, setting.values)
    base = others(setting.declared, values, np.random.default_rng(0), 7)
    _, pair = canaries(Priced(setting.declared, values))[0]
    found = replay(setting.declared, values, base, pair, seed=0, position=position)
    moved = {d.release: d.measured for d in found if d.norm == "l1"}
    once = {r.name: r.statistic.difference(pair).l1 for r in setting.declared.releases}
    assert moved == pytest.approx({name: held(position) * size for name, size in once.items()})


@pytest.mark.parametrize("name", LINEAR)
def test_lockstep_catches_vectors_that_are_longer_than_is_charged_for(name):
    honest, given = setting_of(name).declared, setting_of(name).values
    values = tractable(honest, given)
    base = others(honest, values, np.random.default_rng(0), audience(honest, values) - 1)
    caught = 0
    for seen, pair in canaries(Priced(honest, values)):
        for release in seen.releases if len(seen.releases) == 1 else ():
            vector = release.statistic.vector
            shorter = Column(vector.name, vector.bound * Fraction(19, 20), vector.latex)
            broken = replace(release, statistic=replace(release.statistic, vector=shorter))
            found = replay(replace(seen, releases=(broken,)), values, base, pair, seed=1)
            power = 2 if isinstance(release.statistic, GramMatrices) else 1
            moved = next(d for d in found if d.norm == "l2")
            assert moved.exceeds
            assert moved.ratio == pytest.approx((20 / 19) ** power, rel=1e-6)
            caught += 1
    assert caught > 1


@pytest.mark.parametrize(
    ("name", "factor", "runs"),  # twenty percent: more than ten standard deviations of what is drawn
    [
        ("dp-vapvi", 0.5, 24), ("dp-vapvi", 0.8, 200), ("private-linopt-vi", 0.5, 12), ("private-linopt-vi", 1.2, 24),
        ("published-ucb-vi-central", 0.5, 24), ("ldp-obi", 0.5, 24), ("ldp-obi", 0.8, 60),
    ],
)  # fmt: skip
def test_noise_at_another_scale_is_found(name, factor, runs):
    declaration = rescaled_noise(setting_of(name).declared, factor)
    found = inside.noise(asked(name, "noise", runs, declaration=declaration))
    assert found.verdict == "violation"
    scales = [v for key, v in found.evidence.items() if key.startswith("drawn_over") and "level" not in key]
    assert scales == pytest.approx([factor] * len(scales), rel=0.1)


@pytest.mark.parametrize("name", ["private-ucb-vi-central", "private-linopt-vi", "ngo-lsvi-ucb"])
@pytest.mark.parametrize(
    ("counter", "seen"),
    [(ReusedNodes, "independence: successive P-sums"), (LevelTooFew, "scale"), (CountsTwice, "")],
)
def test_a_broken_tree_is_found_by_the_view_that_sees_it(name, counter, seen):
    setting = setting_of(name)
    declaration = setting.declared
    values = tractable(declaration, setting.values)
    users = others(declaration, values, np.random.default_rng(0), audience(declaration, values))
    found = noise_tests(declaration, values, users, runs=16, seed=1, counter=counter)
    worst: NoiseTest = min(found, key=lambda test: test.p_value)
    assert (worst.p_value < ALPHA / len(found)) == bool(seen)
    assert worst.name.startswith(seen)
    moved = [
        d
        for _, pair in canaries(Priced(declaration, values))[:1]
        for d in replay(declaration, values, users[1:], pair, seed=1, execute=partial(publish, counter=counter))
    ]
    assert any(d.exceeds for d in moved) == (counter is CountsTwice)


@pytest.mark.parametrize("name", ["private-ucb-vi-local", "dp-lsvi-ucb-pp", "dp-vapvi"])
def test_noise_shared_between_tables_is_found(name):
    setting = setting_of(name)
    values = tractable(setting.declared, setting.values)
    users = others(setting.declared, values, np.random.default_rng(0), audience(setting.declared, values))
    found = noise_tests(setting.declared, values, users, runs=20, seed=1, source=SharedNoise)
    worst = min(found, key=lambda test: test.p_value)
    assert worst.p_value < ALPHA / len(found)
    assert worst.name == "independence: the same position"


def test_a_matrix_of_noise_that_is_not_symmetric_is_found():
    class Square:
        words = "every entry for itself"
        as_declared, protects = True, False

        def __init__(self, seed):
            self._rng = np.random.default_rng(seed)

        def add(self, noise, value, **_):
            return noise.coordinates().add(value, self._rng)

    setting = setting_of("dp-vapvi")
    users = others(setting.declared, setting.values, np.random.default_rng(0), 5)
    found = noise_tests(setting.declared, setting.values, users, runs=2, seed=1, source=Square)
    assert {t.where for t in found if t.name == "symmetry" and t.p_value == 0} == {"gram", "weighted gram"}
    honest = noise_tests(setting.declared, setting.values, users, runs=2, seed=1, source=SimulatedNoise)
    assert {t.p_value for t in honest if t.name == "symmetry"} == {1.0}


def test_nodes_are_the_p_sums():
    rng = np.random.default_rng(2)
    steps = rng.random((40, 3))
    nodes = TreeNodes()
    found = [nodes.close(user, steps[:user].sum(axis=0)) for user in range(1, 41)]
    for user in range(1, 41):
        for first, last in psums_holding(user, 40):
            assert found[last - 1] == pytest.approx(steps[first - 1 : last].sum(axis=0))


def test_the_comparisons_of_p_sums_are_forests():
    for kind in list_related_nodes(4) | list_related_nodes(6):
        edges = [(user, list_related_nodes(user)[kind]) for user in range(1, 200) if kind in list_related_nodes(user)]
        assert all(other < user for user, other in edges)  # one edge each to an earlier one: no cycle
        assert len({user for user, _ in edges}) == len(edges)


def test_the_pair_that_shows_a_violation_is_made_plain():
    declaration = counted_twice(setting_of("dp-apvi").declared)
    values = setting_of("dp-apvi", {**FEW, "H": "6"}).values
    rng = np.random.default_rng(3)
    base = others(declaration, values, rng, 4)

    def exceeds(pair):
        return any(d.norm == "linf" and d.exceeds for d in replay(declaration, values, base, pair, seed=0))

    drawn = (random_pair(declaration, values, rng, first=True) for _ in range(20))
    first, other = next(pair for pair in drawn if exceeds(pair))
    same, plain = shrink((first, other), exceeds)
    assert same is first
    assert (plain.states[0, 1:] == first.states[0, 1:]).all()
    assert (plain.actions[0, 1:] == first.actions[0, 1:]).all()
    assert exceeds((same, plain))
    broken = inside.lockstep(asked("dp-apvi", "lockstep", 8, declaration=declaration, sets={**FEW, "H": "6"}))
    assert "throughout" in broken.witness
    assert "D′" in broken.evidence["plainest_pair"]


def test_regressors_are_joined_by_the_columns_they_share_and_shrunk_step_by_step():
    def user(x, more):
        return Regressors(vectors={"phi": np.full((1, 3, 2), x), **more}, targets={}, weights={})

    one, two = user(0.1, {"psi": np.zeros((1, 3, 2))}), user(0.2, {})
    assert join([one, two]).vectors.keys() == {"phi"}
    _, plain = shrink((two, user(0.3, {})), lambda pair: bool((pair[0].vectors["phi"] != pair[1].vectors["phi"]).any()))
    assert (plain.vectors["phi"] != 0.2).any(axis=2).tolist() == [[True, False, False]]


@pytest.mark.parametrize("relation", [AddRemoveOne(), ZeroOut()])
def test_a_user_who_is_not_there_adds_nothing(relation):
    honest = setting_of("dp-vapvi").declared
    declaration = replace(honest, relation=relation)
    found = inside.lockstep(asked("dp-vapvi", "lockstep", 14, declaration=declaration))
    assert found.verdict == "consistent"
    ratios = [v for key, v in found.evidence.items() if key.endswith("_l2_moved_over_charged")]
    assert ratios == pytest.approx([1.0] * 5, rel=1e-6)
    dealt = replace(setting_of("sdp-pe").declared, relation=ZeroOut())
    with pytest.raises(ParameterError, match="assigned in order"):
        inside.lockstep(asked("sdp-pe", "lockstep", 2, declaration=dealt))


@pytest.mark.parametrize("view", ["lockstep", "noise"])
def test_a_killed_audit_resumes_to_the_same_result(tmp_path, view):
    whole = getattr(inside, view)(asked("private-linopt-vi", view, 18))
    stop = iter([False, True])

    def kill(done, total):
        if next(stop):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        getattr(inside, view)(asked("private-linopt-vi", view, 18, directory=tmp_path, progress=kill))
    assert len(list(tmp_path.rglob("0*.npz"))) == 2
    resumed = getattr(inside, view)(asked("private-linopt-vi", view, 18, directory=tmp_path, workers=2))
    assert (resumed.evidence, resumed.witness, resumed.verdict) == (whole.evidence, whole.witness, whole.verdict)


def test_sizes_that_cannot_be_run_are_made_smaller():
    values = setting_of("private-linopt-vi", {"H": "20", "d": "600", "K": "1000000"}).values
    at = tractable(setting_of("private-linopt-vi").declared, values)
    assert at["K"] == 8
    assert at["d"] < 600
    assert at["H"] == 20
