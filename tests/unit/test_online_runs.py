"""Online runs: threads, checkpoints, refusals, the ledger and what it says over time."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings, run_online
from privcheck.commands.run_outputs import odometer
from privcheck.commands.settings import resolve_setting
from privcheck.errors import LedgerError, ParameterError, PrivcheckError, UnknownNameError
from privcheck.pricing import account
from privcheck.reports.values import to_json
from privcheck.runtime import read_ledger
from privcheck.runtime.online import POINTS, grid
from privcheck.runtime.replicates import BLOCKS, CHECKPOINT
from privcheck.runtime.results import OnlineRequest, World
from privcheck.runtime.spending import check_ledger, price_ledger
from privcheck.support.display import silent
from privcheck_algorithms.environments.finite import bandit, random_mdp, riverswim
from registered import with_features
from structures import over_registry

CASES = over_registry("online", fast=3)

BANDITS = ["shuffled-arms"]  # whose world has one state and one step
MIXTURES = ["calibrated-linopt", "linear-oppo", "private-linopt-po", "private-linopt-vi", "ucrl-vtr"]


def without_sizes(request, **more):
    return dataclasses.replace(request, setting=dataclasses.replace(request.setting, values={}), **more)


def asked(name, *, K=200, S=3, H=3, replicates=2, mdp=None, directory=None, workers=1, progress=silent, **given):
    usual = bandit(3, seed=1) if name in BANDITS else riverswim(S, H=H)
    world = World(name="test", description="test", mdp=mdp or usual)
    if name in MIXTURES:
        world = with_features(world)
    setting = online_settings([name], {"K": str(K)} | {k: str(v) for k, v in given.items()}, world)[0]
    return setting, OnlineRequest(
        setting=setting.setting,
        world=world, episodes=K, replicates=replicates, seed=4, directory=directory, workers=workers, progress=progress,
    )  # fmt: skip


# at their defaults the agents do not learn in 200 episodes, and play one policy whatever users answer
LIVELY = {
    "bonus_scale": "0.02", "precision_scale": "0.01", "epsilon": "3000", "eta_scale": "5", "mu": "9",
    "first_batch": "20", "noise_scale": "0.01", "bonus_p": "1", "bonus_r": "1", "rho": "1000000",
    "noise_ridge": "0.1",
}  # fmt: skip


def lively(name):
    setting = resolve_setting(name, {})
    options = {p.name for p in setting.algorithm.options}
    declared = {p.name for p in setting.declaration.parameters} if setting.declaration else set()
    return {key: value for key, value in LIVELY.items() if key in options | declared}


def fewest_states(name):
    declaration = resolve_setting(name, {}).declaration
    return {p.name: p.least for p in declaration.parameters}.get("S", 1) if declaration else 1


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("regret", "value", "switches"))


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads_and_of_replicates_changes_nothing(name):
    setting, request = asked(name, replicates=3, **lively(name))
    once = setting.algorithm.play(request)
    assert same(once, setting.algorithm.play(dataclasses.replace(request, workers=3)))
    fewer = setting.algorithm.play(dataclasses.replace(request, replicates=1))
    assert np.array_equal(once.regret[:1], fewer.regret)
    assert once.regret.shape == (3, 200)
    assert (np.diff(once.regret, axis=1, prepend=0) >= -1e-12).all()
    assert once.regret == pytest.approx(np.cumsum(once.optimal - once.value, axis=1), abs=1e-9)
    mdp = request.world.mdp
    assert once.policy.shape == (mdp.horizon, mdp.states, mdp.actions)
    other = setting.algorithm.play(dataclasses.replace(request, seed=5))
    assert not np.array_equal(other.regret, once.regret)
    assert not np.array_equal(once.regret[0], once.regret[1])


class Killed(BaseException):
    """An interrupt."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("block", [1, 20])
def test_a_killed_run_continues_as_if_nothing_had_happened(name, block, tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)
    setting, request = asked(name, directory=tmp_path, **lively(name))
    calls = []

    def kill(done, total):
        calls.append(done)
        if len(calls) == block:
            raise Killed

    with pytest.raises(Killed):
        setting.algorithm.play(dataclasses.replace(request, progress=kill))
    assert (tmp_path / CHECKPOINT).exists()
    if setting.declaration is not None:
        assert (tmp_path / "ledger.jsonl.partial").exists()
        assert not (tmp_path / "ledger.jsonl").exists()
    rest = []
    resumed = setting.algorithm.play(dataclasses.replace(request, progress=lambda done, _: rest.append(done)))
    assert len(calls) + len(rest) == -(-200 // -(-200 // BLOCKS))  # not one block was played twice
    straight = setting.algorithm.play(dataclasses.replace(request, directory=None))
    assert same(resumed, straight)
    if setting.declaration is not None:
        header, entries = read_ledger(tmp_path / "ledger.jsonl")
        check_ledger(header, entries, setting.declaration, setting.values)
        assert entries == straight.ledger.entries


def test_a_checkpoint_of_another_run_or_a_torn_one_is_refused(tmp_path):
    setting, request = asked("private-ucb-vi-central", directory=tmp_path)
    setting.algorithm.play(request)
    other = dataclasses.replace(request.setting, options={**request.options, "bonus_scale": 2})
    known = dataclasses.replace(request.world, features=request.world.feature_map)
    for change in ({"seed": 9}, {"replicates": 3}, {"setting": other}, {"world": known}):
        with pytest.raises(ParameterError, match="another run"):
            setting.algorithm.play(dataclasses.replace(request, **change))
    assert not (tmp_path / "ledger.jsonl.partial").exists()  # refused before anything is written
    path = tmp_path / CHECKPOINT
    whole = path.read_bytes()
    for torn in (whole[: len(whole) // 2], b"", b"nonsense"):
        path.write_bytes(torn)
        with pytest.raises(PrivcheckError, match="not a readable checkpoint"):
            setting.algorithm.play(request)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_ends_the_run_and_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)
    setting, request = asked("private-ucb-vi-central", directory=tmp_path, **lively("private-ucb-vi-central"))
    straight = setting.algorithm.play(dataclasses.replace(request, directory=None))
    before = []

    def fill(done, total):
        before.append((tmp_path / CHECKPOINT).read_bytes())
        if len(before) == 3:
            (tmp_path / "checkpoint.npz.partial").symlink_to("/dev/full")

    with pytest.raises(PrivcheckError, match=r"No space left.*the one before is kept"):
        setting.algorithm.play(dataclasses.replace(request, progress=fill))
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT, "ledger.jsonl.partial"]
    assert (tmp_path / CHECKPOINT).read_bytes() == before[-1]
    assert same(setting.algorithm.play(request), straight)


@pytest.mark.parametrize("name", over_registry("online"))
def test_no_episode_is_refused_and_one_is_played(name):
    with pytest.raises(ParameterError, match="K"):
        asked(name, K=0)
    setting, request = asked(name, K=1)
    with pytest.raises(ParameterError, match="episodes"):
        setting.algorithm.play(without_sizes(request, episodes=0))
    with pytest.raises(ParameterError, match="replicates"):
        setting.algorithm.play(dataclasses.replace(request, replicates=0))
    with pytest.raises(ParameterError, match="counted exactly"):
        setting.algorithm.play(without_sizes(request, episodes=2**53 + 1))
    assert setting.algorithm.play(request).regret.shape == (2, 1)


@pytest.mark.parametrize("name", CASES)
def test_one_step_one_action_and_states_that_nobody_reaches(name):
    for mdp in (
        riverswim(3, H=1),
        random_mdp(S=3, A=1, H=3, seed=0, stationary=True),
        random_mdp(S=1, A=2, H=2, seed=0, stationary=True),
        dataclasses.replace(
            random_mdp(S=3, A=2, H=2, seed=0, stationary=True),
            transition=np.eye(3)[None, :, None, :].repeat(2, axis=2),  # every user stays where it starts
        ),
    ):
        if mdp.states < fewest_states(name):
            with pytest.raises(ParameterError, match="states"):
                asked(name, mdp=mdp, K=60)
            continue
        setting, request = asked(name, mdp=mdp, K=60)
        if name in BANDITS:
            with pytest.raises(ParameterError, match="expected a bandit"):
                setting.algorithm.play(request)
            continue
        found = setting.algorithm.play(request)
        assert np.isfinite(found.regret).all()
        assert (found.value <= found.optimal + 1e-12).all()
        if mdp.actions == 1:
            assert np.abs(found.regret).max() < 1e-9


@pytest.mark.parametrize("name", over_registry("online", "declared"))
def test_the_ledger_is_what_was_declared_and_edits_are_refused_by_line(name, tmp_path):
    setting, request = asked(name, directory=tmp_path)
    found = setting.algorithm.play(request)
    path = tmp_path / "ledger.jsonl"
    header, entries = read_ledger(path)
    check_ledger(header, entries, setting.declaration, setting.values)
    cost, numbers = price_ledger(header, entries), account(setting.declaration).at(setting.values)
    if np.isfinite(numbers.pure):
        assert cost.pure_epsilon == pytest.approx(numbers.pure, rel=1e-9)
    assert cost.rho == pytest.approx(numbers.rho, rel=1e-9)
    assert found.ledger.digest
    other = {("K" if "K" in setting.values else "B"): 201}  # luyo-lsvi-ucb declares its batches alone
    with pytest.raises(LedgerError, match="line 1"):
        check_ledger(header, entries, setting.declaration, {**setting.values, **other})
    with pytest.raises(LedgerError):
        check_ledger(header, entries[:-1], setting.declaration, setting.values)
    lines = path.read_text().splitlines()
    edited = json.loads(lines[1])
    edited["charge"]["l1"] = 0.5
    path.write_text("\n".join([lines[0], json.dumps(edited), *lines[2:]]) + "\n")
    with pytest.raises(LedgerError, match="line 2"):
        read_ledger(path)
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(LedgerError, match="cut short"):
        read_ledger(path)


def test_a_directory_with_a_ledger_that_was_changed_or_is_anothers_is_left_as_it_is(tmp_path):
    setting, request = asked("private-ucb-vi-central", K=40)
    run_online(setting, request.world, out=tmp_path)
    path = tmp_path / "ledger.jsonl"
    whole = path.read_text()
    lines = whole.splitlines()
    run_online(setting, request.world, out=tmp_path)  # as it was: continued
    assert path.read_text() == whole
    for changed, line in (
        (lines[:-1], 1 + len(lines[:-2])), ([*lines[:3], *lines[4:]], 4),
        ([*lines[:2], lines[2].replace("0", "1", 1), *lines[3:]], 3), ([], 0),
    ):  # fmt: skip
        path.write_text("".join(f"{one}\n" for one in changed))
        with pytest.raises(LedgerError, match=f"line {line}.*choose another --out"):
            run_online(setting, request.world, out=tmp_path)
        assert path.read_text() == "".join(f"{one}\n" for one in changed)
    path.write_text(whole)
    other, _ = asked("private-ucb-vi-local", K=40)
    with pytest.raises(LedgerError, match="line 1: the ledger's algorithm is 'private-ucb-vi-central'"):
        run_online(other, request.world, out=tmp_path)
    assert path.read_text() == whole
    assert not (tmp_path / "ledger.jsonl.partial").exists()


def test_the_odometer_counts_nodes_by_the_paths_of_users():
    """Against a count: the most nodes, released after k episodes, that hold one user (its Laplace costs add up)."""
    setting, request = asked("private-ucb-vi-central", K=20)
    ledger = setting.algorithm.play(request).ledger
    steps = odometer(ledger, setting, list(range(1, 21)))
    whole = price_ledger(ledger.header, ledger.entries).pure_epsilon
    most = {
        k: max(sum(t - (t & -t) < user <= t for t in range(1, min(k, 19) + 1)) for user in range(1, 20))
        for k in range(1, 21)
    }
    for k in range(1, 21):
        due = [step for step in steps if step.episode <= k][-1]
        assert due.pure_epsilon == pytest.approx(whole * most[k] / most[19], rel=1e-9)
    assert [step.episode for step in steps] == [1, 2, 4, 8, 16]
    local, request = asked("private-ucb-vi-local", K=20)
    assert len(odometer(local.algorithm.play(request).ledger, local, list(range(1, 21)))) == 1


def test_first_states_that_differ_are_the_users_own():
    mdp = dataclasses.replace(riverswim(3, H=3), initial=np.array([0.5, 0.5, 0.0]))
    setting, request = asked("private-ucb-vi-central", mdp=mdp)
    with pytest.raises(ParameterError, match="initial=any"):
        setting.algorithm.play(request)
    setting, request = asked("private-ucb-vi-central", mdp=mdp, initial="any")
    assert setting.algorithm.play(request).regret.shape == (2, 200)


@pytest.mark.parametrize("name", ["private-ucb-vi-local", "private-ucb-po-local", "ldp-obi", "dp-ucbvi-local"])
def test_local_agents_run_where_first_states_differ_unless_the_weaker_claim_is_asked_for(name):
    """Their claims are of all trajectories: each message pays for a first state of its own."""
    mdp = dataclasses.replace(riverswim(3, H=3), initial=np.array([0.5, 0.5, 0.0]))
    setting, request = asked(name, mdp=mdp)
    played = setting.algorithm.play(request)
    noise = 6 if name in ("ldp-obi", "dp-ucbvi-local") else 3
    assert price_ledger(played.ledger.header, played.ledger.entries).pure_epsilon == pytest.approx(6 / noise)  # ε = 1
    setting, request = asked(name, mdp=mdp, initial="fixed")
    with pytest.raises(ParameterError, match="initial=fixed"):
        setting.algorithm.play(request)


def test_more_counters_than_memory_are_refused_before_anything_is_written(tmp_path):
    setting, request = asked("private-ucb-po-central", S=500, H=20, replicates=20, directory=tmp_path / "new")
    with pytest.raises(ParameterError, match="GB"):
        setting.algorithm.play(request)
    assert not (tmp_path / "new").exists()


def test_settings_of_several_agents():
    world = World(name="river", description="", mdp=riverswim(4, H=6))
    settings = online_settings(["ucb-vi", "private-ucb-vi-central"], {"K": "9", "epsilon": "2"}, world)
    assert [int(s.options.get("K", s.values.get("K", 0))) for s in settings] == [9, 9]
    assert settings[1].values["S"] == 4
    with pytest.raises(UnknownNameError, match="epsilom"):
        online_settings(["ucb-vi", "private-ucb-vi-central"], {"epsilom": "2"}, world)
    with pytest.raises(ParameterError, match="once"):
        online_settings(["ucb-vi", "ucb-vi"], {}, world)
    with pytest.raises(ParameterError, match="contradicts"):
        online_settings(["ucb-vi"], {"S": "9"}, world)


def test_a_run_as_the_command_reports_it(tmp_path):
    setting, request = asked("private-ucb-po-local", K=40)
    found = run_online(setting, request.world, replicates=3, seed=1, out=tmp_path)
    json.dumps(to_json(found), allow_nan=False)
    assert found.regret.mean == pytest.approx(found.curves.regret.mean[-1])
    assert found.regret.maximum == pytest.approx(40 * found.optimal_value)
    assert found.episodes == found.curves.episodes[-1] == 40
    assert found.spent.pure_epsilon > 0
    one = run_online(setting, request.world, replicates=1, seed=1)
    assert one.regret.std is None
    assert one.curves.regret.std is None


@pytest.mark.parametrize(("name", "twin"), [("private-ucb-vi-local", "ucb-vi"), ("private-ucb-po-central", "oppo")])
def test_the_baseline_is_the_twins_own_run(name, twin, monkeypatch):
    world = asked(name)[1].world
    given = {"K": "90", "bonus_scale": "0.03", "failure": "0.2"} | ({"eta_scale": "3"} if twin == "oppo" else {})
    private, alone = online_settings([name, twin], given, world)
    found = run_online(private, world, replicates=3, seed=7).regret
    assert found.twin == twin
    assert found.baseline == run_online(alone, world, replicates=3, seed=7).regret.mean
    assert found.baseline != found.mean
    monkeypatch.setattr("privcheck.commands.online_runs._CHEAP", 0)
    assert run_online(private, world, replicates=3, seed=7).regret == dataclasses.replace(
        found, baseline=None, baseline_value=None
    )
    assert run_online(alone, world, replicates=1).regret.twin is None
    assert run_online(alone, world, replicates=1).regret.baseline is None


@pytest.mark.parametrize("K", [1, 2, POINTS - 1, POINTS, POINTS + 1, 12_345])
def test_the_grid_ends_with_the_last_episode(K):
    points = grid(K)
    assert points[-1] == K
    assert points[0] >= 1
    assert len(points) == min(K, POINTS)
    assert (np.diff(points) > 0).all()
