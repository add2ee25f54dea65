"""Every private agent beside its twin: with its noise off it plays the same policies, or the reader is told why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privcheck import Claim, Declaration, Joint, Laplace, Parameter, PlainAgent, PureDP, Release, ReplaceOne
from privcheck.commands.online_runs import (
    episodes_of,
    online_settings,
    run_online,
    run_twin,
    settle_together,
    settle_twin,
    twin_of,
)
from privcheck.commands.settings import settle
from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.schedules import Tree
from privcheck.declare.statistics import RewardSums
from privcheck.runtime import registry
from privcheck.runtime.offline import run
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import learn, read_result, ready
from privcheck.runtime.results import OnlineRequest, RunRequest, World
from privcheck.terms.symbols import A, H, S, epsilon
from privcheck.terms.symbols import K as EPISODES
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.shuffled_arms import small_world
from registered import ALGORITHMS, with_features

K = 700
PRIVATE = [name for name, one in ALGORITHMS.items() if one.online is not None and one.declare is not None]
CASES = [
    *((name, {}) for name in PRIVATE),
    *(
        pytest.param(name, {one.name: way}, marks=pytest.mark.slow)
        for name in PRIVATE
        for one in ALGORITHMS[name].readings
        for way in one.ways[1:]
    ),
]


def small():
    """Returns a random world without ties; with one first state and the same law at every step, as some require."""
    mdp = random_mdp(S=3, A=2, H=3, seed=5)
    always = FiniteMDP(horizon=3, transition=mdp.transition[:1], reward=mdp.reward[:1], initial=np.eye(3)[0])
    return with_features(World(name="random", description="", mdp=always))


def asked(name, given):
    world = small_world({"A": 3}) if name == "shuffled-arms" else small()
    if "lsvi" in name:  # one step's features of unequal lengths: no determinant grows by the very factor of a plan
        world = replace(world, features=replace(world.features, kernels=None))
    if any(option.name == "bonus_scale" for option in ALGORITHMS[name].options):
        given = {**given, "bonus_scale": "1/1000"}  # or some never change their policy
    setting = online_settings([name], {"K": str(K), **given}, world)[0]
    return setting, OnlineRequest(setting=setting.setting, world=world, episodes=episodes_of(setting), seed=2)


def played(make, request, *, noiseless):
    player = ready(make, request, noiseless=noiseless)
    return read_result(request, player, *learn(request, player)[:1], seconds=0.0, ledger=None)


def same(ours, theirs):
    """Returns whether two runs of the same users had the same policies throughout; values agree up to roundings."""
    return np.allclose(ours.value, theirs.value, rtol=1e-9) and np.allclose(ours.policy, theirs.policy, atol=1e-9)


STILL = [(name, {"constants": "printed"}) for name in ("dp-lsvi-ucb-pp", "dp-lsvi-ucb-pp-as-printed")]


def test_every_private_agent_has_a_twin_that_is_registered():
    for name in PRIVATE:
        one = ALGORITHMS[name]
        assert one.twin is not None, name
        twin = registry.algorithm(one.twin)
        assert twin.online is not None, name
        assert twin.name == name or twin.declare is None, name
        known = {o.name for o in twin.options} | {r.name for r in twin.readings}
        assert one.twin_settings.keys() <= known, name


@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_without_noise_an_agent_is_its_twin(name, given):
    setting, request = asked(name, given)
    algorithm, twin = setting.algorithm, twin_of(setting)
    quiet = replace(request, setting=request.setting.without_noise())
    theirs = twin.play_without_noise(replace(request, setting=settle_twin(twin, algorithm, request)))
    dealt = algorithm.name in {"shuffled-arms", "shuffled-ucb-vi"}  # a counter has at least one fair bit
    ours = played(algorithm.online, quiet, noiseless=dealt)  # else noise is drawn, but shows in no float
    told = run_twin(setting, request, Algorithm.play_without_noise).differs
    assert same(ours, theirs) == (told == "")
    # LDP-OBI plays its first policy throughout here, and so does whoever has the printed constants of DP-LSVI-UCB++
    assert ours.switches[0, -1] > 0 or name == "ldp-obi" or (name, given) in STILL


@pytest.mark.parametrize("name", [name for name, one in ALGORITHMS.items() if one.offline and one.offline.baseline])
def test_without_noise_an_agent_that_learns_from_data_is_its_twin(name):
    regresses = ALGORITHMS[name].offline.regressing is not None
    environment = registry.environment(registry.usual_environment("features" if regresses else "datasets"))
    given = {p.name: int(p.default) for p in environment.parameters} | {"n": 4000, "H": 3}
    data = environment.sample(given, 1)
    users = data.trajectories
    sizes = {"H": 3, "S": users.num_states, "A": users.num_actions, **(data.features.sizes if regresses else {})}
    setting = settle(ALGORITHMS[name], {}, sizes=sizes).setting
    found = run(ALGORITHMS[name].offline, RunRequest(setting=setting.without_noise(), data=data, replicates=1, seed=1))
    assert found.worthless < 1
    np.testing.assert_allclose(found.returns, found.baseline, rtol=1e-9)


@pytest.mark.parametrize("name", ["ucb-vi", "lsvi-ucb", "policy-elimination"])
def test_a_twin_by_itself_has_none(name):
    setting, request = asked(name, {})
    assert run_online(setting, request.world).regret.twin is None


def test_the_noise_that_is_off_is_in_every_release():
    for name in PRIVATE:
        setting, request = asked(name, {})
        declaration = setting.setting.without_noise().declared
        for one in declaration.noisy:
            values = {**request.values, "n": K}
            assert 0 < one.mechanism.at(values).scale < 1e-25, (name, one.name)


def test_a_plain_agent_of_an_author_is_its_own_twin():
    """The agent takes the action with the largest noisy sum; what its twin does cannot depend on ε."""

    def declare(readings):
        sums = Release(
            "rewards", RewardSums(H, S, A), Laplace(scale=12 * H / epsilon), schedule=Tree(leaves=EPISODES - 1)
        )
        return Declaration(
            name="own", title="own", source="ours", relation=ReplaceOne("trajectory"), releases=(sums,),
            claim=Claim(PureDP(epsilon), source="ours", joint=Joint()),
            parameters=tuple(
                Parameter(name=name, default=size, kind=kind, meaning=name)
                for name, size, kind in (*((n, 3, "count") for n in "HSAK"), ("epsilon", 1, "positive"))
            ),
        )  # fmt: skip

    def agent(_setting, _sizes):
        return lambda board: np.round(board["rewards"], 3).argmax(axis=2)  # or noise decides between zeros

    own = Algorithm(name="own", title="own", source="ours", declare=declare, online=PlainAgent(agent=agent), twin="own")
    world = small()
    found = []
    for given in ("1/10", "1", "1000000000000"):
        setting = settle_together([own], {"K": "60", "epsilon": given}, world)[0]
        found.append(run_online(setting, world, replicates=2, seed=3).regret)
    assert {one.twin for one in found} == {"own without noise"}
    assert len({one.baseline for one in found}) == 1
    assert found[2].mean == found[2].baseline
    assert found[0].mean != found[0].baseline
