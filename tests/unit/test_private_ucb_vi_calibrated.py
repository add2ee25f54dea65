"""PRIVATE-UCB-VI with calibrated noise: what it costs, batches that double, precision levels, runs that are resumed."""

import dataclasses
import math

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings, run_online
from privcheck.commands.settings import resolve_setting
from privcheck.declare.mechanisms import Laplace
from privcheck.errors import ParameterError
from privcheck.pricing import account
from privcheck.pricing.calibration import least_noise
from privcheck.runtime.replicates import run, seeds
from privcheck.runtime.results import OnlineRequest, World
from privcheck.verification import verify
from privcheck_algorithms.environments.finite import random_mdp, riverswim
from privcheck_algorithms.kernels.optimism import lay_out, value_bonus
from privcheck_algorithms.kernels.sparse_mdp import compress, empty_walk, roll_greedy
from privcheck_algorithms.kernels.tables import Layout, count, size, split
from privcheck_algorithms.online.private import privatizer_config
from privcheck_algorithms.private_ucb_po.agent import player as po_player
from privcheck_algorithms.private_ucb_vi.agent import Agent, plan, player
from privcheck_algorithms.privatizers.counters import DOUBLING, LOCAL, TREE, begins, levels, outputs
from twins.planning import best_backward, value_backward

NAME = "private-ucb-vi-calibrated"
LIVELY = {"bonus_scale": "0.02", "precision_scale": "0.01", "mu": "20"}


def asked(mdp, *, K=200, replicates=2, seed=4, name=NAME, **given):
    where = World(name="test", description="", mdp=mdp)
    setting = online_settings([name], {"K": str(K)} | {k: str(v) for k, v in given.items()}, where)[0]
    return OnlineRequest(
        setting=setting.setting,
        world=where, episodes=K, replicates=replicates, seed=seed,
    )  # fmt: skip


@pytest.mark.parametrize("K", ["1", "2", "20000", "2000000"])
@pytest.mark.parametrize("initial", ["fixed", "any"])
@pytest.mark.parametrize("releases", ["tree", "doubling"])
def test_every_reading_is_as_private_as_claimed_and_hardly_more(releases, initial, K):
    setting = resolve_setting(NAME, {"releases": releases, "initial": initial, "K": K})
    assert verify(setting.declared, setting.values).verdict == "holds"
    if K != "1" or releases == "doubling":
        assert 0.9999 < account(setting.declared).at(setting.values).epsilon(1e-5) <= 1


@pytest.mark.parametrize("K", ["20000", "200000"])
def test_the_noise_is_what_calibrate_proposes_for_the_paper_s_trees(K):
    paper = resolve_setting("private-ucb-vi-central", {"K": K})
    proposed = least_noise(paper.declared, paper.values, epsilon=1, delta=1e-5).gaussian
    for releases, outputs_of_a_user in (("tree", levels(int(K))), ("doubling", 1)):
        setting = resolve_setting(NAME, {"K": K, "releases": releases})
        for release, noise in zip(setting.declared.releases, proposed, strict=True):
            std = noise.needed_std * math.sqrt(outputs_of_a_user / levels(int(K)))
            assert release.mechanism.at(setting.values).scale == pytest.approx(std, rel=1e-5)


@pytest.mark.parametrize("first", [1, 3, 10, 64])
@pytest.mark.parametrize("K", [1, 2, 3, 10, 65, 200])
def test_batches_double_and_none_leaves_after_the_last_episode(K, first):
    ends = [t for t in range(1, K) if t in {first * 2**j for j in range(20)}]
    assert [t for t in range(1, K) if begins(t, first)] == ends
    assert begins(0, first)
    assert outputs(K, first) == len(ends)


def naive(request, number=0):
    """The agent without noise: it plans from the exact counts of all users up to the last batch that has ended."""
    mdp, K, first = request.world.mdp, request.episodes, int(request.options["first_batch"])
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    users, w = np.random.default_rng(seeds(request.seed, number, "users")["users"]), compress(mdp)
    failure, scale = (float(request.options[name]) for name in ("failure", "bonus_scale"))
    bonus = value_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=0.0, E2=0.0, scale=scale)
    counts, actions, values = np.zeros(size(H, S, A)), np.zeros((H, S), np.int64), np.zeros((H + 1, S))
    walk, worth = empty_walk(H), []
    for episode in range(K):
        if episode in {0, *(first * 2**j for j in range(20))}:
            plan(Agent(bonus, actions, values), lay_out(split(counts, H, S, A)))
        worth.append(value_backward(mdp, np.eye(A)[actions]))
        roll_greedy(w, actions, users, walk)
        count(counts, Layout(H, S, A, False), walk)
    return np.cumsum(best_backward(mdp) - np.array(worth))


@pytest.mark.parametrize("first", [1, 5])
def test_without_noise_it_plans_from_all_batches_that_have_ended(first):
    request = asked(
        random_mdp(S=4, A=2, H=3, seed=2), K=150, releases="doubling", bonus_scale="0.02", first_batch=first,
        precision_scale=0,
    )  # fmt: skip
    found = run(player, request, noiseless=True)
    for number in range(2):
        assert found.regret[number] == pytest.approx(naive(request, number), abs=1e-9)
    assert found.switches[:, -1].min() >= 3


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_billboard_is_the_sum_of_batches_each_with_fresh_noise_of_its_own(law):
    """Var of 4 · 1 440 draws within 8 standard deviations (Laplace: kurtosis 6): error below 1e-9."""
    request = asked(riverswim(6, H=15), K=20, replicates=1, releases="doubling", mu="0.001", first_batch=2)
    if law == "laplace":
        changed = tuple(
            dataclasses.replace(release, mechanism=Laplace(scale=5000)) for release in request.declaration.releases
        )
        request = dataclasses.replace(
            request,
            setting=dataclasses.replace(
                request.setting, declaration=dataclasses.replace(request.declaration, releases=changed)
            ),
        )  # fmt: skip
    made = player(request)
    one = made.start(0)
    made.play(one, 1)
    assert not one.arrays["noisy"].any()
    seen = 0
    for episode in range(2, 21):
        before, counted = one.arrays["noisy"].copy(), one.arrays["exact"].sum()
        made.play(one, episode)
        ends = episode in {2, 4, 8, 16}
        seen += ends
        assert np.array_equal(before, one.arrays["noisy"]) == (not ends)
        assert one.arrays["noisy"] == pytest.approx(one.arrays["board"][:seen].sum(axis=0))
        assert counted > 0
    board = one.arrays["board"]
    assert board.shape == (4, size(15, 6, 2))
    std = 5000 * math.sqrt(2) if law == "laplace" else math.sqrt(6 * 15 - 3) / 0.001
    spread = math.sqrt((5 if law == "laplace" else 2) / board.size)
    assert (board**2).mean() / std**2 == pytest.approx(1, abs=8 * spread)
    assert np.abs(np.corrcoef(board) - np.eye(4)).max() < 8 / math.sqrt(board.shape[1])


def test_precision_levels_follow_from_the_noise():
    river = riverswim(6, H=20)
    cells = math.log(6 * 6 * 2 * 20_000 * 20 / 0.05)
    for given, terms in (
        ({}, 15),
        ({"releases": "doubling"}, 15),
        ({"releases": "doubling", "first_batch": "1000"}, 5),
    ):
        request = asked(river, K=20_000, failure="0.05", preset="paper", **given)
        std = request.declaration.releases[0].mechanism.at(request.values).scale
        reach = std * math.sqrt(2 * terms * cells)
        assert reach == pytest.approx(privatizer_config(request, kinds=(TREE, DOUBLING, LOCAL)).E1)


def test_users_of_batches_pay_once_and_those_of_a_tree_at_every_power_of_two():
    where = World(name="test", description="", mdp=riverswim(3, H=3))
    paid = {}
    for releases in ("tree", "doubling"):
        given = {"K": "200", "releases": releases}
        paid[releases] = run_online(online_settings([NAME], given, where)[0], where).odometer
    assert [entry.episode for entry in paid["tree"]] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert len(paid["doubling"]) == 1
    assert paid["doubling"][0].mu == pytest.approx(paid["tree"][-1].mu, rel=1e-9)


@pytest.mark.parametrize("first", [1, 7, 10**30])
def test_a_killed_run_with_batches_continues_as_if_nothing_had_happened(first, tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.runtime.replicates._SAVE_EVERY", 0.0)
    monkeypatch.setattr("privcheck.runtime.replicates._WORK", 0)
    request = asked(riverswim(3, H=3), releases="doubling", first_batch=first, **LIVELY)
    straight = run(player, request)
    kept = dataclasses.replace(request, directory=tmp_path)

    def kill(done, total):
        if done >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(player, dataclasses.replace(kept, progress=kill))
    resumed = run(player, kept)
    assert np.array_equal(resumed.regret, straight.regret)
    assert np.array_equal(resumed.switches, straight.switches)
    assert resumed.ledger.entries == straight.ledger.entries
    assert (straight.switches[:, -1].max() > 1) == (first < 200)


def test_agents_that_know_no_batches_refuse_them():
    request = asked(riverswim(3, H=3), name="private-ucb-po-central")
    batched = asked(riverswim(3, H=3), releases="doubling").declaration.releases[0].schedule
    changed = tuple(dataclasses.replace(release, schedule=batched) for release in request.declaration.releases)
    declaration = dataclasses.replace(request.declaration, releases=changed)
    with pytest.raises(ParameterError, match="expected trees or users' own releases"):
        po_player(dataclasses.replace(request, setting=dataclasses.replace(request.setting, declaration=declaration)))
