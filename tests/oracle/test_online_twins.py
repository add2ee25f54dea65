"""The online kernels against their twins: the paper's text step by step, and the non-private algorithms."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.runtime.replicates import run
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.baselines import OPPO, UCB_VI
from privcheck_algorithms.environments.finite import random_mdp, riverswim
from privcheck_algorithms.kernels.optimism import Bonus, exponentials, lay_out, value_bonus
from privcheck_algorithms.kernels.sparse_mdp import (
    compress,
    empty_walk,
    roll_greedy,
    roll_mixed,
    value_anew,
    value_greedy,
    value_mixed,
)
from privcheck_algorithms.kernels.tables import Counters, as_declared, as_vector, size, split
from privcheck_algorithms.private_ucb_po.agent import player as po_player
from privcheck_algorithms.private_ucb_vi.agent import Agent, plan
from privcheck_algorithms.private_ucb_vi.agent import player as vi_player
from privcheck_algorithms.privatizers import noise
from privcheck_algorithms.privatizers.counters import close_node, levels
from twins.paper_002 import trace
from twins.planning import best_backward, value_backward

PRIVATE = [
    ("private-ucb-vi-central", "vi", vi_player), ("private-ucb-vi-local", "vi", vi_player),
    ("private-ucb-po-central", "po", po_player), ("private-ucb-po-local", "po", po_player),
]  # fmt: skip


def asked(name, mdp, *, K, replicates=1, seed=0, **given):
    world_ = World(name="test", description="test", mdp=mdp)
    setting = online_settings([name], {"K": str(K)} | {k: str(v) for k, v in given.items()}, world_)[0]
    return OnlineRequest(
        setting=setting.setting,
        world=world_, episodes=K, replicates=replicates, seed=seed,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "player"), PRIVATE)
@pytest.mark.parametrize(("epsilon", "precision"), [(300, 0.1), (3000, 1), (3, 0.001)])
def test_kernels_equal_the_papers_text(name, kind, player, epsilon, precision):
    more = {"eta_scale": 3} if kind == "po" else {}
    mdp = random_mdp(S=3, A=2, H=3, seed=2)
    request = asked(
        name, mdp, K=37, replicates=2, seed=5, epsilon=epsilon, precision_scale=precision, bonus_scale="0.02", **more
    )
    result = run(player, request)
    for number in range(2):
        slow = trace(request, kind=kind, number=number)
        assert result.regret[number] == pytest.approx(slow.regret, rel=1e-12)  # the grid is every episode
        assert result.value[number] == pytest.approx([value_backward(mdp, p) for p in slow.policies], rel=1e-12)
    assert np.allclose(result.policy, trace(request, kind=kind).policies[-1], rtol=1e-9)
    assert result.switches[0, -1] > 5


@pytest.mark.parametrize("mdp", [riverswim(4, H=6), random_mdp(S=5, A=3, H=4, seed=8)], ids=["river", "random"])
@pytest.mark.parametrize("place", ["central", "local"])
def test_without_noise_the_private_agents_are_their_twins_exactly(mdp, place):
    for name, player, twin in (("private-ucb-vi", vi_player, UCB_VI), ("private-ucb-po", po_player, OPPO)):
        given = {"bonus_scale": "0.02"} | ({"eta_scale": "1"} if twin is OPPO else {})
        request = asked(f"{name}-{place}", mdp, K=1500, replicates=2, seed=3, precision_scale=0, **given)
        ours = run(player, request, noiseless=True)
        theirs = twin.play(asked(twin.name, mdp, K=1500, replicates=2, seed=3, **given))
        assert np.array_equal(ours.regret, theirs.regret)
        assert np.array_equal(ours.value, theirs.value)
        assert np.array_equal(ours.switches, theirs.switches)
        assert len(set(ours.value[0].tolist())) > 20
        assert not ours.ledger.header["as_declared"]


def test_a_mixed_policy_that_changes_is_a_switch_where_its_value_does_not():
    """In a world without rewards every policy is worth 0, and the exploration bonus moves them all the same."""
    mdp = dataclasses.replace(random_mdp(S=3, A=2, H=2, seed=1), reward=np.zeros(1))
    given = {"K": 60, "seed": 2, "bonus_scale": "0.02", "eta_scale": "5"}
    request = asked("private-ucb-po-central", mdp, epsilon=3000, precision_scale="0.01", **given)
    policies = trace(request, kind="po").policies
    changed = [(now != before).any() for before, now in pairwise(policies)]
    assert sum(changed) > 5
    assert run(po_player, request).switches[0].tolist() == [0, *np.cumsum(changed)]
    assert OPPO.play(asked("oppo", mdp, **given)).switches[0, -1] > 5


def naive_ucb_vi(request, number=0):
    """UCB-VI in NumPy, planning from scratch after every episode, with the same users."""
    from privcheck.runtime.replicates import seeds

    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    rng = np.random.default_rng(seeds(request.seed, number, "users")["users"])
    failure, scale = float(request.options["failure"]), float(request.options["bonus_scale"])
    L_c = np.sqrt(2 * np.log(4 * S * A * K * H / failure))
    N, C, M = np.zeros((H, S, A)), np.zeros((H, S, A)), np.zeros((H, S, A, S))
    best = best_backward(mdp)
    regret, w, walk = [], compress(mdp), empty_walk(H)
    for _ in range(K):
        n, value, actions = np.maximum(1, N), np.zeros(S), np.zeros((H, S), np.int64)
        for h in reversed(range(H)):
            quality = C[h] / n[h] + (M[h] / n[h][..., None]) @ value - scale * (1 + H) * L_c / np.sqrt(n[h])
            quality = np.clip(quality, 0, H - h)
            value, actions[h] = quality.min(axis=1), quality.argmin(axis=1)
        regret.append(best - value_backward(mdp, np.eye(A)[actions]))
        roll_greedy(w, actions, rng, walk)
        (path, taken, costs), steps = walk, np.arange(H)
        N[steps, path[:-1], taken] += 1
        C[steps, path[:-1], taken] += costs
        M[steps, path[:-1], taken, path[1:]] += 1
    return np.cumsum(regret)


@pytest.mark.parametrize("mdp", [riverswim(4, H=6), random_mdp(S=5, A=3, H=4, seed=8)], ids=["river", "random"])
def test_incremental_planning_equals_planning_from_scratch(mdp):
    request = asked("ucb-vi", mdp, K=400, seed=1, bonus_scale="0.02")
    found = UCB_VI.play(request)
    assert found.regret[0] == pytest.approx(naive_ucb_vi(request), rel=1e-10)


def test_many_states_go_the_other_way_and_agree():
    mdp = random_mdp(S=70, A=2, H=2, seed=3)  # more than 64: sets of states are no word
    request = asked("ucb-vi", mdp, K=120, seed=1, bonus_scale="0.001")
    assert UCB_VI.play(request).regret[0] == pytest.approx(naive_ucb_vi(request), rel=1e-10)


@pytest.mark.parametrize("S", [4, 5])  # rows of few successors are walked in their own way
def test_incremental_values_equal_a_full_pass(S):
    rng = np.random.default_rng(0)
    mdp = random_mdp(S=S, A=3, H=5, seed=1)
    w, actions = compress(mdp), np.zeros((5, S), np.int64)
    judged, values, anew = np.full((5, S), -1), np.zeros((6, S)), np.zeros((6, S))
    assert w.narrow == (S == 4)
    for _ in range(200):
        actions[rng.integers(5), rng.integers(S)] = rng.integers(3)
        exact = value_backward(mdp, np.eye(3)[actions])
        assert value_greedy(w, actions, judged, values) == pytest.approx(exact, rel=1e-14)
        assert value_anew(w, actions, anew) == value_greedy(w, actions, judged, values)
        assert np.array_equal(anew, values)
        assert value_mixed(w, np.eye(3)[actions], np.zeros((6, S))) == pytest.approx(exact, rel=1e-14)


def test_the_trees_prefix_noise_is_the_sum_of_the_covering_nodes():
    rng, M = np.random.default_rng(3), 37
    for K in (2, 3, 8, 9, 100):
        prefix, noisy, nodes = np.zeros((levels(K), M)), np.zeros(M), {}
        ours, theirs = (
            noise.open_channel(noise.LAPLACE, 50.0, streams=noise.lanes(np.random.SeedSequence(K)), rng=rng, piece=16)
            for _ in range(2)
        )  # pieces of sixteen, the last one of five
        fresh = np.zeros(16)
        for t in range(1, K):
            exact = rng.integers(0, 9, M).astype(float)
            close_node(ours, t, exact, prefix, noisy)
            pieces = []
            for _ in range(3):
                noise.add(theirs, np.zeros(16), fresh)
                pieces.append(fresh.copy())
            nodes[t] = np.concatenate(pieces)[:M]
            cover, rest = [], t
            while rest:
                cover.append(rest)
                rest &= rest - 1
            assert noisy == pytest.approx(exact + sum(nodes[c] for c in cover), rel=1e-13, abs=1e-11)
        most = max(sum(1 for t in nodes if t - (t & -t) < user <= t) for user in range(1, K))
        assert most <= levels(K)  # in how many released nodes a user lies


def test_exponentials_are_exact_to_fifteen_digits_and_one_at_zero():
    x = np.concatenate([[0.0, -0.0, -708.0], -np.geomspace(1e-300, 708, 20_000), np.linspace(-40, 0, 20_001)])
    found = x.copy()
    exponentials(found, np.zeros(x.size, np.uint64))
    assert found == pytest.approx(np.exp(x), rel=1e-15, abs=0)
    assert (found[:2] == 1).all()
    below = np.array([-708.5, -1e5, -np.inf])
    exponentials(below, np.zeros(3, np.uint64))
    assert ((below > 0) & (below < 1e-307)).all()


def test_users_follow_the_model():
    """Frequencies of first states, successors and random actions within 5 standard deviations: error below 1e-4."""
    P = np.array([[[0.2, 0.8], [0.5, 0.5]], [[0.0, 1.0], [0.9, 0.1]]])[None]
    mdp = dataclasses.replace(
        random_mdp(S=2, A=2, H=1, seed=0), transition=P, reward=np.zeros(1), initial=np.array([0.3, 0.7])
    )
    w, rng, n = compress(mdp), np.random.default_rng(11), 40_000
    walk = empty_walk(1)
    (path, taken, costs) = walk
    policy, seen = np.array([[[0.25, 0.75], [0.6, 0.4]]]), np.zeros((2, 2, 2))
    for _ in range(n):
        roll_mixed(w, policy, rng, walk)
        seen[path[0], taken[0], path[1]] += 1
    p = mdp.initial[:, None, None] * policy[0][:, :, None] * P[0]
    assert (np.abs(seen - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()
    assert (costs == 1).all()


def test_tables_keep_their_places():
    flat = np.arange(size(2, 3, 2), dtype=float)
    tables = as_declared(flat, 2, 3, 2)
    assert np.array_equal(as_vector(**tables), flat)
    visits, sums, transitions = split(flat, 2, 3, 2)
    assert visits[1, 2 * 2 + 1] == tables["visits"][1, 2, 1]
    assert sums[1, 1 * 2 + 0] == tables["costs"][1, 1, 0]
    assert transitions[1, 2, 1 * 2 + 1] == tables["transitions"][1, 1, 1, 2]


def test_bonuses_are_the_lemmas():
    """Lemma 4.1 at one point, by hand: S = 2, A = 3, H = 4, K = 5, δ = 1/10, E₁ = 7, E₂ = 9, n = max(1, 13 + 7)."""
    bonus = value_bonus(H=4, S=2, A=3, K=5, failure=0.1, E1=7.0, E2=9.0, scale=1.0)
    L_c, n = np.sqrt(2 * np.log(4 * 2 * 3 * 20 / 0.1)), 20
    by_hand = L_c / np.sqrt(n) + 3 * 7 / n + 4 * L_c / np.sqrt(n) + 4 * (2 * 9 + 2 * 7) / n
    assert bonus.root / np.sqrt(n) + bonus.linear / n == pytest.approx(by_hand, rel=1e-14)
    assert bonus.E == 7


def test_ties_go_to_the_lowest_action_and_values_stay_within_the_horizon():
    visits, costs, transitions = np.zeros((2, 4)), np.array([[9.0, 9, -9, -9]] * 2), np.zeros((2, 2, 4))
    actions, values = np.ones((2, 2), np.int64), np.zeros((3, 2))
    agent = Agent(Bonus(E=0.0, root=0.0, linear=0.0), actions, values)
    assert plan(agent, lay_out(Counters(visits, costs, transitions)))
    assert not actions.any()
    assert values.tolist() == [[2, 0], [1, 0], [0, 0]]
