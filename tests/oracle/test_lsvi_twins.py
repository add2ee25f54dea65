"""The linear online agents against naive twins: what leaves, user by user, and what the next one is told.

Worlds are random, so that two actions tie only where both are clipped; the twins are handed the noisy sums.
"""

import math

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.data.features import FeatureMap
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp
from twins.paper_001 import Lsvi, Weighted

H, S, A, D, K = 3, 4, 3, 4, 14


def made_world(seed, *, S=S, A=A, d=D, H=H):
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((S, A, d))
    phi /= np.maximum(np.linalg.norm(phi, axis=2, keepdims=True), rng.uniform(0.7, 1.5, (S, A, 1)))
    phi /= max(1, np.linalg.norm(phi, axis=2).max())
    mdp = random_mdp(S=S, A=A, H=H, seed=seed)
    return World(name="test", description="", mdp=mdp, features=FeatureMap(phi=phi))


def asked(name, world, *, K=K, seed=3, **given):
    chosen = online_settings([name], {"K": str(K)} | {key: str(value) for key, value in given.items()}, world)[0]
    return chosen.algorithm.online, OnlineRequest(setting=chosen.setting, world=world, episodes=K, seed=seed)


def user_of(one):
    a = one.arrays
    return a["path"].copy(), a["taken"].copy(), 1 - a["costs"]


class Posted:
    """What leaves for an exact sum: what stands in the agent's array, after a look at whether its exact one is it."""

    def __init__(self, exact, noisy):
        self.exact, self.noisy, self.seen = exact, noisy, []

    def __call__(self, name, h, table):
        np.testing.assert_allclose(self.exact[name][h], table, rtol=1e-9, atol=1e-9)
        self.seen.append(name)
        return self.noisy[name][h]


def nothing_added(name, h, table):
    return table


SCHEDULES = [
    ("luyo-lsvi-ucb", {"B": 7}), ("luyo-lsvi-ucb", {"B": 99, "gram": "cumulative"}), ("luyo-lsvi-ucb", {"B": 1}),
    ("ngo-lsvi-ucb", {"growth": "1.2"}), ("ngo-lsvi-ucb", {"N": 3, "growth": "0.001", "noise_ridge": "0.5"}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("centred", ["off", "on"])
@pytest.mark.parametrize("rho", [50, 10**6])
@pytest.mark.parametrize(("name", "given"), SCHEDULES, ids=str)
def test_private_lsvi_ucb_is_its_twin_on_what_left(name, given, rho, centred):
    world = made_world(rho % 7)
    make, request = asked(name, world, rho=rho, centred=centred, **given)
    player = ready(make, request)
    one, face = player.start(0), player.face
    gains = request.setting.declared.release("gains").mechanism.at(request.values).scale
    ridge = player.diagnostics["ridge"]
    twin = Lsvi(world.features.phi, H, ridge, ridge / 2, 0.5, 0.1 * gains / math.sqrt(ridge), centred == "on")
    told, last, plans, outputs = np.zeros((H, S), int), np.full(H, D * math.log(ridge)), 0, 0
    for k in range(1, K + 1):
        player.play(one, k)
        assert np.array_equal(one.arrays["told"], told)
        twin.users.append(user_of(one))
        output = face.output(k)
        if output is None:
            continue
        outputs += 1
        posted = Posted(face.exact(one, output), face.noisy(one, output))
        due = True
        if name.startswith("ngo"):
            logs = twin.log_determinants(posted)
            due = plans < int(request.values["N"]) and (logs >= last + math.log(float(given["growth"]))).any()
            last = logs if due else last
        assert ("gains" in posted.exact) == due
        if due:
            told, plans = twin.plan(posted), plans + 1
            assert posted.seen.count("gains") == H
    assert outputs == (min(given.get("B", K), K) - 1 if name.startswith("luyo") else K - 1)
    assert plans == one.arrays["plans"][0]
    assert plans > 1 or given.get("B") == 1


@pytest.mark.parametrize("centred", ["off", "on"])
@pytest.mark.parametrize("given", [{"growth": 2}, {"growth": 1, "batches": 5}, {"growth": 1, "batches": 99}], ids=str)
def test_lsvi_ucb_is_its_twin(given, centred):
    world, users = made_world(5), 40
    make, request = asked("lsvi-ucb", world, K=users, centred=centred, bonus="0.2", ridge="0.5", **given)
    player = ready(make, request)
    one = player.start(0)
    twin = Lsvi(world.features.phi, H, 0.5, 0.0, 0.2, 0.0, centred == "on")
    told, last, batches = np.zeros((H, S), int), np.full(H, D * math.log(0.5)), min(given.get("batches", 0), users)
    ends = {j * users // batches for j in range(1, batches)} if batches else set()
    for k in range(1, users + 1):
        player.play(one, k)
        assert np.array_equal(one.arrays["told"], told)
        twin.users.append(user_of(one))
        logs = twin.log_determinants(nothing_added)
        if k in ends or (given["growth"] == 2 and (logs >= last + math.log(2)).any()):
            told, last = twin.plan(nothing_added), logs
    assert one.arrays["plans"][0] > 3


PLUS = ["dp-lsvi-ucb-pp", "dp-lsvi-ucb-pp-as-printed", "published-lsvi-ucb-pp"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", [{}, {"growth": "1.05", "doubt": "0.01"}, {"growth": "0.001", "noise_ridge": "0.5"}], ids=str
)
@pytest.mark.parametrize("rho", [10**4, 10**9])
@pytest.mark.parametrize("name", PLUS)
def test_dp_lsvi_ucb_pp_is_its_twin_on_what_left(name, rho, given):
    world = made_world(11)
    make, request = asked(name, world, rho=rho, **given)
    player = ready(make, request)
    one, face = player.start(0), player.face
    ridge, bonus = player.diagnostics["ridge"], player.diagnostics["bonus"]
    published = name.startswith("published")
    twin = Weighted(
        phi=(3 if published else 1) * world.features.phi, H=H, reward=world.mdp.mean_reward, ridge=ridge,
        least=ridge / 2, bonus=bonus, doubt=float(given.get("doubt", 0)), weighted=not published,
        growth=float(given.get("growth", 2)),
    )  # fmt: skip
    told, noises = np.zeros((H, S), int), []
    for k in range(1, K + 1):
        player.play(one, k)
        assert np.array_equal(one.arrays["told"], told)
        path, actions, _ = user_of(one)
        twin.take(path, actions)
        if face.output(k) is None:
            continue
        posted = Posted(face.exact(one, k), face.noisy(one, k))
        told = twin.advance(posted)
        assert len(posted.seen) == 4 * H
        noises.append(posted.noisy["gram"] - posted.exact["gram"])
    assert twin.plans == one.arrays["plans"][0]
    apart = np.abs(noises[1] - noises[0]).max() / np.abs(noises[0]).max()
    assert (apart > 1e-3) == (name == "dp-lsvi-ucb-pp")


@pytest.mark.parametrize("centred", ["off", "on"])
@pytest.mark.parametrize("doubt", ["0", "0.003"])
def test_lsvi_ucb_pp_is_its_twin(centred, doubt):
    world, users = made_world(13), 40
    make, request = asked("lsvi-ucb-pp", world, K=users, centred=centred, growth="1.3", doubt=doubt, bonus="0.1")
    player = ready(make, request)
    one = player.start(0)
    twin = Weighted(
        phi=world.features.phi, H=H, reward=world.mdp.mean_reward, ridge=1 / H**2, bonus=0.1, doubt=float(doubt),
        centred=centred == "on", growth=1.3,
    )  # fmt: skip
    told = np.zeros((H, S), int)
    for k in range(1, users + 1):
        player.play(one, k)
        assert np.array_equal(one.arrays["told"], told)
        path, actions, _ = user_of(one)
        twin.take(path, actions)
        told = twin.advance(nothing_added)
    np.testing.assert_allclose(
        one.arrays["exact_gram"][0],
        sum(w[0] * np.outer(twin.phi[p[0], a[0]], twin.phi[p[0], a[0]]) for p, a, w in twin.users),
        rtol=1e-9, atol=1e-12,
    )  # fmt: skip
    assert one.arrays["plans"][0] > 1


@pytest.mark.parametrize("centred", ["off", "on"])
@pytest.mark.parametrize(
    ("name", "given", "twin"),
    [
        ("luyo-lsvi-ucb", {"B": 9}, {"growth": 1, "batches": 9}),
        ("ngo-lsvi-ucb", {"growth": "1.3"}, {"growth": "1.3"}),
        ("dp-lsvi-ucb-pp", {"growth": "1.3"}, {"growth": "1.3"}),
        ("dp-lsvi-ucb-pp-as-printed", {"doubt": "0.003", "growth": "1.2"}, {"doubt": "0.003", "growth": "1.2"}),
    ],
    ids=str,
)  # fmt: skip
def test_without_noise_a_private_agent_is_its_baseline(name, given, twin, centred):
    other = {"bonus": "0.05" if centred == "on" else "0.3"}  # of those that have no such reading
    change = other if name.startswith("dp-") else {"centred": centred}
    more = {"N": 60} if name.startswith("ngo") else {}
    world, users = made_world(17), 60
    make, request = asked(name, world, K=users, noise_ridge=0, noise_bonus=0, **given, **change, **more)
    change |= {"centred": "off"} if name.startswith("dp-") else {}  # which its twin has, on by default
    exact, plain = asked("lsvi-ucb-pp" if name.startswith("dp") else "lsvi-ucb", world, K=users, **twin, **change)
    player, baseline = ready(make, request, noiseless=True), ready(exact, plain)
    one, other = player.start(0), baseline.start(0)
    for k in range(1, users + 1):
        player.play(one, k)
        baseline.play(other, k)
        assert np.array_equal(one.arrays["told"], other.arrays["told"])
        for table in ("exact_gram", "nexts"):
            np.testing.assert_allclose(one.arrays[table], other.arrays[table], rtol=1e-9, atol=1e-12)
    assert np.array_equal(one.arrays["totals"], other.arrays["totals"])
    assert one.arrays["plans"][0] == other.arrays["plans"][0] > 1
