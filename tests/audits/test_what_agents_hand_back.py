"""Lockstep of all that an agent hands back, behind the same history of billboards.

Nothing here has an error probability: what depends on the data is found on the first pairs, honest agents repeat.
"""

from __future__ import annotations

import itertools
import logging
import math
import re
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import resolve
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.offline import Learnt
from privcheck.runtime.plain_agents import PlainAgent
from privcheck.runtime.results import AuditRequest, OnlineRequest, Remark, World
from privcheck.runtime.setting import Setting
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_audits.engine.outputs import Said, find_differences, list_fields, read_outputs
from privcheck_audits.lockstep.noise_tests import NoiseRecorder, judge, list_declared_noise
from privcheck_audits.lockstep.replay import Replayed, add_until_departure

PAGE = Path(__file__).parents[2] / "docs/how-to-add.md"
BLOCK = next(b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "SMALL" in b)
MODULE: dict = {}
exec(compile(BLOCK, str(PAGE), "exec"), MODULE)  # noqa: S102 - our own documents
SMALL = MODULE["SMALL"]


SAID = "printed lines, log records, shown warnings, written files"


def test_one_departure_is_a_proof_and_ends_the_replay():
    """Each further pair of an agent that leaks was replayed four times: a third of the seconds of its check."""
    words = ("", "a", "b")
    parts = iter([Replayed(pairs=1, distances=(), departures=len(word), departure=word) for word in words])
    found = add_until_departure(parts)
    assert (found.pairs, found.departures, found.departure) == (2, 1, "a")
    assert [part.departure for part in parts] == ["b"]
    assert add_until_departure([Replayed(pairs=2, distances=())] * 3).pairs == 6


# ---- what an agent that learns from a dataset hands back


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fuller(Learnt):
    """What an agent hands back, with a field that no view has ever heard of."""

    users: int = 0


def handing_back(alter):
    """DP-APVI, which knows its exact data and alters by them what it hands back."""
    honest, seen = registry.algorithm("dp-apvi").offline, {}

    def hold(data, declaration, channel):
        seen["data"] = data
        return honest.privatizer(data, declaration, channel)

    def make(setting, *, reward):
        prepared = honest.make(setting, reward=reward)

        def learn(billboard, publish, *, done=lambda: None):
            return alter(prepared(billboard, publish, done=done), seen["data"])

        return learn

    return replace(honest, make=make, privatizer=hold)


def fuller(learnt, users):
    known = {name: getattr(learnt, name) for name in ("policy", "values", "claimed", "diagnostics", "remarks")}
    return Fuller(**known, users=users)


LEAKS = {
    "claimed": lambda learnt, data: replace(learnt, claimed=float(data.rewards.sum() / data.users)),
    "diagnostics['visits']": lambda learnt, data: replace(
        learnt, diagnostics={**learnt.diagnostics, "visits": float((data.states[:, :-1] == 0).sum())}
    ),
    "diagnostics": lambda learnt, data: replace(
        learnt, diagnostics=dict(sorted(learnt.diagnostics.items(), reverse=bool((data.states == 0).sum() % 2)))
        | ({"zero": 0.0} if (data.states == 0).sum() % 2 else {"one": 0.0})
    ),
    "remarks[0].text": lambda learnt, data: replace(
        learnt, remarks=(Remark(title="Rewards", text=f"{data.rewards.sum():.3f} in all"),)
    ),
    "policy": lambda learnt, data: replace(
        learnt, policy=learnt.policy[..., ::-1] if (data.states == 0).sum() % 2 else learnt.policy
    ),
    "values": lambda learnt, data: replace(
        learnt, values=learnt.values * (-0.0 if (data.states == 0).sum() % 2 else 0.0)
    ),
    "users": lambda learnt, data: fuller(learnt, int((data.states == 0).sum())),
}  # fmt: skip


def replayed(agent, trials=4):
    algorithm = replace(registry.algorithm("dp-apvi"), offline=agent)
    setting = resolve_setting("dp-apvi", {"H": "2", "S": "3", "A": "2"}).setting
    request = AuditRequest(setting=setting, view="lockstep", delta=1e-5, trials=trials, confidence=0.99, seed=4)
    return registry.plan_for(algorithm).audit(request)


def test_every_field_of_an_honest_agent_is_compared():
    found = replayed(handing_back(lambda learnt, _data: learnt))
    assert found.verdict == "consistent"
    assert found.evidence["compared"] == f"policy, values, claimed, diagnostics, remarks, {SAID}"


@pytest.mark.parametrize("place", LEAKS)
def test_exact_data_are_found_wherever_they_are_handed_back(place):
    found = replayed(handing_back(LEAKS[place]))
    assert found.verdict == "violation"
    assert place in found.witness.partition("returns other figures: ")[2]
    assert found.evidence["moved"] == "slices differ" or found.evidence["moved"] <= found.evidence["charged"]


@pytest.mark.parametrize("users", [0.5, 1.5, 20.5, 37.5, 49.5])
def test_a_threshold_on_an_exact_sum_is_found_wherever_it_is(users):
    """Of pairs among random users only those find it whose sums are on either side of it: here between 0 and 100."""
    steps = 2  # H, and a reward of 1 in each
    found = replayed(
        handing_back(lambda learnt, data: replace(learnt, claimed=float(data.rewards.sum() > steps * users)))
    )
    assert found.verdict == "violation"
    assert "returns other figures: claimed" in found.witness
    many = re.search(r"of the other users ([0-9]+) have the data of D, ([0-9]+) those of D′", found.witness)
    if many is not None:  # none, where the first pair among random users crosses it by chance
        assert int(many[1]) + int(many[2]) == 49
        assert {int(many[1]), int(many[2])} == {math.floor(users), 49 - math.floor(users)}


def test_an_agent_that_counts_its_runs_is_not_accused():
    """It returns other figures from its third run on, whatever its data: on the crowds, not on the pair before."""
    runs = itertools.count()
    found = replayed(handing_back(lambda learnt, _data: replace(learnt, claimed=float(next(runs) > 2))), trials=1)
    assert found.verdict != "violation"


def test_a_field_that_is_added_is_compared_from_then_on():
    found = replayed(handing_back(lambda learnt, _data: fuller(learnt, 3)))
    assert found.verdict == "consistent"
    assert found.evidence["compared"].endswith(f"remarks, users, {SAID}")


@pytest.mark.parametrize(
    "handed", [lambda: np.random.default_rng().random(), object], ids=["unseeded", "of an unreadable type"]
)
def test_what_does_not_repeat_is_undecided_and_never_consistent(handed):
    found = replayed(handing_back(lambda learnt, _data: replace(learnt, diagnostics={"spread": handed()})))
    assert found.verdict == "undecided"
    assert "does not repeat diagnostics['spread']" in found.evidence["doubt"]
    both = LEAKS["claimed"]
    found = replayed(handing_back(lambda learnt, data: replace(both(learnt, data), diagnostics={"spread": handed()})))
    assert found.verdict == "violation"
    assert found.witness.endswith("returns other figures: claimed")


def test_outputs_are_read_to_the_last_bit():
    values = [0.0, -0.0, 0, False, None, "0", b"0", float("nan"), (0,), [0], {"a": 0}, {"b": 0}, np.zeros(1),
              np.zeros((1, 1)), np.zeros(1, np.float32), np.float64(0), np.array(["0"])]  # fmt: skip
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert bool(find_differences(read_outputs({"x": one}), read_outputs({"x": other}))) == (i != j)
    assert find_differences(read_outputs({"a": 1, "b": 2}), read_outputs({"b": 2, "a": 1}))
    unread = read_outputs({"a": object(), "b": np.array([object()])})
    assert find_differences(unread, unread) == {"a", "b"}
    assert list_fields(read_outputs({"a": {"c": [1]}, "b": 2})) == ("a", "b")


# ---- noise that runs have in common


@pytest.mark.parametrize("shared", [False, True])
def test_noise_that_two_runs_share_at_one_step_is_found(shared):
    """A seed made of exact values is the same where no noise came before: at one step of twelve. Error below 10⁻⁹."""
    setting = resolve_setting("dp-apvi-laplace", {"H": "12", "S": "3", "A": "2"}).setting
    declared = list_declared_noise(setting.declared, setting.values)
    shapes = {r.name: r.statistic.shape(setting.values)[1:] for r in setting.declared.noisy}
    recorder, rng = NoiseRecorder(setting.declared, setting.values, seed=0), np.random.default_rng(3)
    for run in range(4):
        for part in range(12):
            own = np.random.default_rng(1) if shared and part == 5 else rng
            noises = {name: law.add(np.zeros((1, *shapes[name])), own) for name, law in declared.items()}
            recorder.record(noises, run=run, output=1, part=part, largest=1.0)
    repeats = next(test for test in judge(recorder.sums(), declared) if test.name == "repeats")
    assert repeats.p_value < 1e-6 if shared else repeats.p_value == 1.0


# ---- what an agent says beside that


def say(place, text):
    """Says something at a place, as an agent's author would."""
    if place == "printed lines":
        print(text)  # noqa: T201 - what is tested
    elif place == "log records":
        logger = logging.getLogger("own.agent")
        logger.propagate = False
        logger.debug("so far %s", text)
    elif place == "shown warnings":
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    elif place == "written files":
        Path("notes.txt").write_text(text, encoding="utf-8")
    elif place == "appended files":
        with Path("notes.txt").open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        Path("part.tmp").write_text(text, encoding="utf-8")
        Path("part.tmp").rename("notes.txt")


SAYINGS = ("printed lines", "log records", "shown warnings", "written files", "appended files", "renamed files")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own, and a Python whose warnings are shown."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield tmp_path


def saying(place, text):
    def alter(learnt, data):
        say(place, text(data))
        return learnt

    return handing_back(alter)


@pytest.mark.parametrize("place", SAYINGS)
def test_what_an_offline_agent_says_is_compared(place, elsewhere):
    found = replayed(saying(place, lambda data: f"{data.rewards.sum()} {data.states.sum()}"))
    assert found.verdict == "violation"
    assert "output depends on data that no release covers" in found.witness
    where = {"printed lines": "printed lines['standard output']"}.get(place, place)
    assert (where if "files" not in place else "written files") in found.witness.partition("covers: ")[2]


@pytest.mark.parametrize("place", SAYINGS)
def test_what_is_said_of_the_billboard_is_consistent(place, elsewhere, capsys):
    found = replayed(saying(place, lambda data: f"learnt in {data.horizon} steps"))
    assert found.verdict == "consistent"
    assert not any(capsys.readouterr())  # an audit says nothing of its agents'


def test_what_never_repeats_is_undecided(elsewhere):
    found = replayed(saying("printed lines", lambda _data: str(time.perf_counter_ns())))
    assert found.verdict == "undecided"
    assert "do not print, log or write times or addresses" in found.evidence["doubt"]


@pytest.mark.parametrize("place", ["log records", "appended files"])
def test_what_an_online_agent_says_is_compared(place, elsewhere):
    def into(setting, sizes, seen):
        plan = greedy(setting, sizes)

        def act(board, _memory):
            say(place, f"{seen['last']}")
            return plan(board)

        return act

    found = look(leaking(into)(), trials=2)
    assert found.verdict == "violation"
    assert "output depends on data that no release covers" in found.witness


@pytest.mark.parametrize("place", ["shown warnings", "appended files"])
def test_what_an_online_agent_says_of_its_plans_is_consistent(place, elsewhere):
    def make(setting, sizes):
        plan = greedy(setting, sizes)

        def act(board):
            policy = plan(board)
            say(place, f"{policy.tolist()}")
            return policy

        return act

    assert look(PlainAgent(agent=make), trials=2).verdict == "consistent"


def test_what_is_said_once_a_process_is_no_accusation(elsewhere):
    """A module that announces itself where it is imported says so on D alone."""
    announced = []

    def make(setting, sizes):
        plan = greedy(setting, sizes)

        def act(board):
            if not announced:
                announced.append(print("own agent 1.0"))  # noqa: T201 - what is tested
            return plan(board)

        return act

    assert look(PlainAgent(agent=make), trials=2).verdict == "consistent"


def test_listening_leaves_loggers_and_streams_as_they_were(capsys):
    root, made = logging.getLogger(), []
    before = (root.level, list(root.handlers), logging.getLogRecordFactory(), sys.stdout)
    said = Said()

    def speak_and_fail():
        with said.listen():
            print("x")  # noqa: T201 - what is tested
            logging.getLogger("own").warning("%s", "y")
            made.append(1 / 0)

    with pytest.raises(ZeroDivisionError):
        speak_and_fail()
    assert (root.level, list(root.handlers), logging.getLogRecordFactory(), sys.stdout) == before
    assert not any(capsys.readouterr())
    alone = Said()
    assert {place for place in said.read() if said.read()[place] != alone.read()[place]} == {
        "printed lines", "log records",
    }  # fmt: skip


# ---- what an agent that learns as it acts remembers


def greedy(setting, sizes):
    return MODULE["agent"](setting, sizes)


def zeros(_setting, sizes):
    return {"policy": np.zeros((sizes.H, sizes.S), np.int64), "planned": np.full(1, -np.inf),
            "sums": np.zeros((sizes.H, sizes.S, sizes.A))}  # fmt: skip


def lazy(setting, sizes):
    plan = greedy(setting, sizes)

    def act(board, memory):
        if not 0.0 <= memory["planned"][0] < 4.0:  # −∞ before the first episode
            memory["policy"][...], memory["planned"][...] = plan(board), 0.0
        memory["planned"] += 1.0
        return memory["policy"].copy()

    return act


def when_grown(measure):
    """Plans anew once a figure of the noisy counts has doubled."""

    def make(setting, sizes):
        plan = greedy(setting, sizes)

        def act(board, memory):
            now = measure(board["transitions"])
            if now > memory["planned"][0] + np.log(2) or memory["planned"][0] == -np.inf:
                memory["policy"][...], memory["planned"][...] = plan(board), now
            return memory["policy"].copy()

        return act

    return make


def count(transitions):
    return float(np.log(max(transitions.sum(), 1.0)))


def determinant(transitions):
    return float(np.linalg.slogdet(np.diag(np.maximum(transitions.sum(axis=-1), 1.0).ravel()))[1])


def momentum(setting, sizes):
    plan = greedy(setting, sizes)

    def act(board, memory):
        memory["sums"][...] = 0.9 * memory["sums"] + 0.1 * board["rewards"]
        return plan({"rewards": memory["sums"], "transitions": board["transitions"]})

    return act


def random_ties(_setting, _sizes):
    def act(board, memory):
        return (np.round(board["rewards"]) + memory.rng.random(board["rewards"].shape)).argmax(axis=-1)

    return act


def mixed(setting, sizes):
    plan = greedy(setting, sizes)

    def act(board, memory):
        share = 0.1 + 0.8 * memory.rng.random()
        return share * np.eye(sizes.A)[plan(board)] + (1 - share) / sizes.A

    return act


HONEST = {
    "lazy": lazy,
    "doubling": when_grown(count),
    "determinant": when_grown(determinant),
    "momentum": momentum,
    "random ties": random_ties,
    "mixed": mixed,
}


def request_of(K=24, **more):
    declaration = SMALL.declare({})
    setting = Setting(
        declaration=declaration,
        values=declaration.values({"K": K}),
        options=resolve(SMALL.options, {}, owner="test"),
    )
    world = World(name="test", description="", mdp=random_mdp(S=3, A=2, H=4, seed=3))
    return OnlineRequest(setting=setting, world=world, episodes=K, seed=5, **more)


def look(online, trials=4):
    algorithm = replace(SMALL, online=online)
    setting = request_of().setting
    request = AuditRequest(setting=setting, view="lockstep", delta=0.0, trials=trials, confidence=0.99, seed=2)
    return registry.plan_for(algorithm).audit(request)


@pytest.mark.parametrize("name", HONEST)
def test_functions_of_past_boards_are_consistent(name):
    found = look(PlainAgent(agent=HONEST[name], memory=zeros))
    assert (found.verdict, found.evidence["departures"], found.evidence["unrepeated"]) == ("consistent", 0, 0)
    assert "memory/policy" in found.evidence["compared"]
    assert found.evidence["policies_that_moved"] > 0  # a policy that never moves shows nothing


def test_a_memory_goes_on_where_a_killed_run_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)
    agent = replace(SMALL, online=PlainAgent(agent=random_ties, memory=zeros))
    straight = agent.play(request_of(150))

    def kill(done, _):
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent.play(request_of(150, directory=tmp_path, progress=kill))
    assert np.array_equal(agent.play(request_of(150, directory=tmp_path)).regret, straight.regret)


def test_a_memory_is_asked_once_an_episode():
    calls = []

    def counting(_setting, sizes):
        def act(_board, memory):
            memory["calls"] += 1
            calls.append(int(memory["calls"][0]))
            return np.zeros((sizes.H, sizes.S), np.int64)

        return act

    online = PlainAgent(agent=counting, memory=lambda _setting, _sizes: {"calls": np.zeros(1)})
    player = online(request_of(6))
    one = player.start(0)
    for until in (1, 4, 6):
        player.play(one, until)
    assert calls == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ParameterError, match="expected an array of numbers, got <U1"):
        PlainAgent(agent=counting, memory=lambda _setting, _sizes: {"calls": np.array(["a"])})(request_of(6))


def test_a_memory_outside_of_the_replicate_is_undecided_and_not_an_accusation():
    """Re-planning once the noisy count has doubled is lawful; only one's own attributes are no place to keep it in."""

    def make(setting, sizes):
        plan, kept = greedy(setting, sizes), {}

        def act(board):
            now = count(board["transitions"])
            if "policy" not in kept or now > kept["planned"] + np.log(2):
                kept.update(policy=plan(board), planned=now)
            return kept["policy"]

        return act

    found = look(PlainAgent(agent=make))
    assert (found.verdict, found.evidence["departures"]) == ("undecided", 0)
    assert "PlainAgent's `memory`" in found.evidence["doubt"]


def test_an_agent_that_draws_unseeded_is_undecided():
    rng = np.random.default_rng()
    found = look(PlainAgent(agent=lambda _setting, _sizes: lambda board: rng.random(board["rewards"].shape).argmax(-1)))
    assert (found.verdict, found.evidence["departures"]) == ("undecided", 0)


def leaking(into):
    """An agent half that is told by its privatizer half what no release says."""

    def make():
        seen = {"count": 0.0, "last": 0.0}

        def contribute(setting):
            releases = {release.name: release.statistic for release in setting.declared.releases}

            def add(user, _rng):
                seen["count"] += float((user.states == 0).sum())
                seen["last"] = float(user.rewards.sum() + user.states.sum())
                return {name: statistic.compute(user) for name, statistic in releases.items()}

            return add

        def agent(setting, sizes):
            seen["count"] = 0.0
            return into(setting, sizes, seen)

        return PlainAgent(agent=agent, contribute=contribute, memory=zeros)

    return make


def in_a_bonus(_setting, _sizes, seen):
    def act(board, memory):
        memory["sums"][...] += seen["last"]  # an exact count, where only functions of boards belong
        return (board["rewards"] + memory["sums"].sum() * np.array([-0.1, 0.1])).argmax(axis=-1)

    return act


def in_a_closure(_setting, _sizes, seen):
    return lambda board, _memory: (board["rewards"] + seen["count"] * np.array([-0.1, 0.1])).argmax(axis=-1)


def in_a_memory(setting, sizes, seen):
    plan = greedy(setting, sizes)

    def act(board, memory):
        memory["sums"][...] = seen["last"]
        return plan(board)

    return act


def in_ties(_setting, _sizes, seen):
    return lambda board, _memory: np.full(board["rewards"].shape[:2], int(seen["last"]) % 2)


@pytest.mark.parametrize("into", [in_a_bonus, in_a_memory, in_ties])
def test_data_that_an_agent_keeps_are_found(into):
    found = look(leaking(into)())
    assert found.verdict == "violation"
    assert "behind the same billboards" in found.witness


def test_an_exact_count_that_goes_on_from_run_to_run_is_not_consistent():
    """It adds up outside of the replicate: the agent does not repeat, so that nobody can say what moved it."""
    found = look(leaking(in_a_closure)())
    assert found.verdict == "undecided"
    assert found.evidence["doubt"]


def test_figures_beside_an_online_policy_are_compared():
    honest = PlainAgent(agent=greedy)

    def make(request, *, noiseless=False):
        player = honest(request, noiseless=noiseless)
        figures = {"rewards": 0.0}

        def play(one, until):
            player.play(one, until)
            figures["rewards"] = float(one.arrays["exact/rewards"].sum())

        return replace(player, play=play, diagnostics=figures)

    found = look(make)
    assert found.verdict == "violation"
    assert "diagnostics" in found.witness
