"""Plain agents: the one of the documents, against a naive twin that recomputes every P-sum, and what is refused.

The noise audits of honest agents run at α = 1e-9: a reseed fails with probability below 1e-8.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from privcheck import verify
from privcheck.data.finite_models import evaluate, one_hot, solve
from privcheck.declare.declaration import resolve
from privcheck.declare.schedules import Batches, EveryEpisode, Once, PerUser
from privcheck.errors import ChannelError, ParameterError
from privcheck.runtime import read_ledger, registry
from privcheck.runtime.plain_agents import PlainAgent
from privcheck.runtime.results import AuditRequest, OnlineRequest, World
from privcheck.runtime.setting import Setting
from privcheck.runtime.spending import check_ledger
from privcheck.support.display import silent
from privcheck_algorithms.environments.finite import random_mdp

PAGE = Path(__file__).parents[2] / "docs/how-to-add.md"
BLOCK = next(b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "SMALL" in b)
MODULE: dict = {}
exec(compile(BLOCK, str(PAGE), "exec"), MODULE)  # noqa: S102 - our own documents
SMALL = MODULE["SMALL"]


def setting_of(*, schedule=None, algorithm=SMALL, **values):
    declaration = algorithm.declare({})
    if schedule is not None:
        releases = tuple(dataclasses.replace(r, schedule=schedule, source="test") for r in declaration.releases)
        model = "local" if isinstance(schedule, PerUser) else "central"
        claim = dataclasses.replace(declaration.claim, joint=None) if model == "local" else declaration.claim
        declaration = dataclasses.replace(declaration, releases=releases, model=model, claim=claim)
    return Setting(
        declaration=declaration,
        values=declaration.values(values),
        options=resolve(algorithm.options, {}, owner="test"),
    )


def asked(K=20, *, directory=None, progress=silent, replicates=1, **given):
    world = World(name="test", description="", mdp=random_mdp(S=3, A=2, H=4, seed=3))
    return OnlineRequest(
        setting=setting_of(K=K, **given), world=world, episodes=K, replicates=replicates, seed=5, directory=directory,
        progress=progress,
    )  # fmt: skip


def test_it_has_at_most_forty_lines_and_holds():
    assert len([line for line in BLOCK.splitlines() if line.strip()]) <= 40
    setting = setting_of()
    assert verify(setting.declared, setting.values).verdict == "holds"


@pytest.mark.parametrize("view", ["lockstep", "noise"])
def test_it_is_run_and_consistent(view):
    plan = registry.plan_for(SMALL)
    result = plan.audit(
        AuditRequest(setting=setting_of(), view=view, delta=0.0, trials=plan.trials[view], confidence=1 - 1e-9)
    )
    assert result.agent_ran
    assert result.verdict == "consistent"


def play_naively(request):
    """Returns the cumulated regret and the noisy sums: every P-sum summed anew from the list of all users."""
    player = SMALL.online(request)
    one, setting, mdp = player.start(0), request.setting, request.world.mdp
    agent = MODULE["agent"](setting, type("Sizes", (), {"H": 4, "S": 3, "A": 2}))
    users = [dict.fromkeys(("rewards", "transitions"))]
    laws = {r.name: r.mechanism.at(setting.values) for r in setting.declared.releases}
    board = {r.name: np.zeros(r.statistic.shape(setting.values)) for r in setting.declared.releases}
    nodes, regret, drawing = {}, 0.0, np.random.default_rng()
    drawing.bit_generator.state = one.generators["noise"].bit_generator.state
    for t in range(1, request.episodes + 1):
        policy = agent(board)
        regret += solve(mdp).value - evaluate(mdp, one_hot(policy, 2))
        before = {name: one.arrays[f"exact/{name}"].copy() for name in board}
        player.play(one, t)
        assert np.array_equal(one.arrays["told"], policy)
        if t == request.episodes:
            break
        low = (t & -t).bit_length() - 1
        users.append({n: one.arrays[f"exact/{n}"][low] - before[n][:low].sum(axis=0) for n in board})
        for name, law in laws.items():
            psum = sum(users[k][name] for k in range(t - (t & -t) + 1, t + 1))
            nodes[name, t] = np.stack([law.add(part, drawing) for part in psum])
            ends, rest = [], t
            while rest:
                ends.append(rest)
                rest &= rest - 1
            board[name] = sum(nodes[name, end] for end in reversed(ends))
            np.testing.assert_allclose(one.arrays[f"sum/{name}"], board[name], rtol=0, atol=1e-9)
            board[name] = one.arrays[f"sum/{name}"].copy()  # equal up to rounding; ties are not to depend on it
    return regret


@pytest.mark.parametrize("K", [1, 2, 21])
def test_trees_are_those_of_the_naive_twin(K):
    request = asked(K)
    assert SMALL.play(request).regret[0, -1] == pytest.approx(play_naively(request), rel=1e-12)


def ends(_setting, K):
    return tuple(sorted({min(4, K), K}))


SCHEDULES = {
    "local": (PerUser(), {}),
    "batches": (Batches(size="four"), {"ends": ends}),
    "every episode": (EveryEpisode(outputs=19), {}),
}


@pytest.mark.parametrize("kind", SCHEDULES)
def test_other_schedules_run_and_are_audited_by_what_they_release(kind):
    schedule, more = SCHEDULES[kind]
    algorithm = dataclasses.replace(SMALL, online=PlainAgent(agent=MODULE["agent"], **more))
    result = algorithm.play(asked(20, schedule=schedule))
    setting = asked(20, schedule=schedule).setting
    check_ledger(result.ledger.header, result.ledger.entries, setting.declared, setting.values)
    plan = registry.plan_for(algorithm)
    for view in ("lockstep", "noise"):
        request = AuditRequest(setting=setting, view=view, delta=0.0, trials=12, confidence=1 - 1e-9)
        audited = plan.audit(request)
        assert audited.verdict == "consistent", (view, audited.witness)
    ratios = [v for n, v in plan.audit(dataclasses.replace(request, view="lockstep")).evidence.items() if "l1_mo" in n]
    assert max(ratios) == pytest.approx(1.0, rel=1e-9)  # the charge is attained


def test_a_killed_run_goes_on_to_the_same_result_and_the_same_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)
    straight = SMALL.play(asked(150, replicates=2))

    def kill(done, _):
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SMALL.play(asked(150, replicates=2, directory=tmp_path, progress=kill))
    resumed = SMALL.play(asked(150, replicates=2, directory=tmp_path))
    assert np.array_equal(resumed.regret, straight.regret)
    assert resumed.ledger.entries == straight.ledger.entries
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert entries == straight.ledger.entries
    check_ledger(header, entries, asked(150).setting.declared, asked(150).setting.values)


@pytest.mark.parametrize(
    ("agent", "wrong"),
    [
        (lambda _s, _z: lambda _b: np.zeros((4, 3)), "float64 \\(4, 3\\)"),
        (lambda _s, _z: lambda _b: np.full((4, 3), 2), "from 2 to 2"),
        (lambda _s, _z: lambda _b: np.full((4, 3, 2), 0.4), "probabilities"),
        (lambda _s, _z: lambda _b: np.full((4, 3, 2), np.nan), "probabilities"),
        (lambda _s, _z: lambda _b: None, "the agent half must return"),
    ],
)
def test_what_is_no_policy_is_refused(agent, wrong):
    with pytest.raises(ParameterError, match=wrong):
        dataclasses.replace(SMALL, online=PlainAgent(agent=agent)).play(asked())


def test_what_is_not_declared_does_not_pass_the_channel():
    def contribute(_setting):
        return lambda user, _rng: {"rewards": np.zeros((4, 3, 2)), "gossip": user.rewards}

    cheat = dataclasses.replace(SMALL, online=PlainAgent(agent=MODULE["agent"], contribute=contribute))
    with pytest.raises(ChannelError, match=r"transitions: expected a contribution of shape \(4, 3, 2, 3\), got only"):
        cheat.play(asked())


@pytest.mark.parametrize("schedule", [Once(), Batches(size="some")])
def test_schedules_that_no_stream_has_are_refused(schedule):
    with pytest.raises(ParameterError, match=r"one kind of schedule|give its PlainAgent `ends`"):
        SMALL.play(asked(schedule=schedule))


def test_sizes_that_are_not_the_world_s_are_refused():
    with pytest.raises(ParameterError, match="H = 5 but 4"):
        SMALL.play(asked(H=5))


def test_what_is_registered_must_make_a_player():
    broken = dataclasses.replace(SMALL, online=lambda _request, *, noiseless=False: noiseless)
    with pytest.raises(ParameterError, match="expected the agent to make a Player"):
        broken.play(asked())
