"""PRIVATE-UCB-VI and -PO as Chowdhury & Zhou 2022 print them, line by line, beside the agents with `preset=paper`.

One step of planning runs on random noisy tables; whole runs pass every P-sum through a channel of its own
(`twins.paper_002`).
"""

import math

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.kernels.optimism import lay_out, policy_bonus, value_bonus
from privcheck_algorithms.kernels.tables import as_declared, as_vector, split
from privcheck_algorithms.online.private import privatizer_config
from privcheck_algorithms.private_ucb_po.agent import Agent as PolicyAgent
from privcheck_algorithms.private_ucb_po.agent import evaluate_and_improve
from privcheck_algorithms.private_ucb_vi.agent import Agent as ValueAgent
from privcheck_algorithms.private_ucb_vi.agent import plan
from transcribed import transcribes
from twins.paper_002 import trace

H, S, A, K, DELTA = 3, 4, 2, 21, 0.1
WORLD = World(name="test", description="", mdp=random_mdp(S=S, A=A, H=H, seed=3))
PLACES = ("central", "local")
SEEDS = range(8)


def asked(name, **given):
    chosen = online_settings([name], {"K": str(K), "preset": "paper", **given}, WORLD)[0]
    return chosen.algorithm.online, OnlineRequest(setting=chosen.setting, world=WORLD, episodes=K, seed=6)


def levels(place, epsilon):
    """E₁ and E₂ of Lemma 5.1 with ⌈log₂ K⌉ for log K, and of Lemma 5.4."""
    T, grown = K * H, math.ceil(math.log2(K)) ** 3 if place == "central" else K
    inside = [8 * grown * math.log(6 * n * A * T / DELTA) for n in (S, S**2)]
    return [3 * H / epsilon * math.sqrt(one) for one in inside]


@transcribes("private_ucb_vi", "Algorithm 2, 2")
@transcribes("private_ucb_po", "Algorithm 1, 3")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["vi", "po"])
def test_precision_levels_are_the_lemmas(kind, place):
    _, request = asked(f"private-ucb-{kind}-{place}", epsilon="7")
    given = privatizer_config(request)
    for found, expected in zip((given.E1, given.E2), levels(place, 7.0), strict=True):
        assert found == pytest.approx(expected)


def random_tables(seed):
    """Noisy visits, costs (H, S, A) and transitions (H, S, A, S): some are negative, most rows are no distributions."""
    rng = np.random.default_rng(seed)
    return rng.normal(40, 40, (H, S, A)), rng.normal(9, 12, (H, S, A)), rng.normal(8, 8, (H, S, A, S))


def equation_1(tables, E1):
    n = np.maximum(1, tables[0] + E1)
    return n, tables[1] / n, tables[2] / n[..., None]


def cost_bonus(n, E1):
    """β^c of Lemma 3.1."""
    return math.sqrt(2 * math.log(4 * S * A * K * H / DELTA)) / np.sqrt(n) + 3 * E1 / n


def lemma_4_1(n, E1, E2):
    """β^c + β^pv."""
    L_c = math.sqrt(2 * math.log(4 * S * A * K * H / DELTA))
    return cost_bonus(n, E1) + H * L_c / np.sqrt(n) + H * (S * E2 + 2 * E1) / n


def lemma_3_1(n, E1, E2):
    """β^c + H·β^p."""
    L_p = math.sqrt(4 * S * math.log(6 * S * A * K * H / DELTA))
    return cost_bonus(n, E1) + H * (L_p / np.sqrt(n) + (S * E2 + 2 * E1) / n)


def backup(cost, P, beta, following, h):
    """Q̃ of step h, from 0."""
    return np.minimum(H - h, np.maximum(0, cost[h] + P[h] @ following - beta[h]))


E1, E2 = 0.4, 0.6  # so small that the bonus does not hide the costs


@transcribes(
    "private_ucb_vi",
    "Algorithm 2, 4–5", "Algorithm 2, 6", "Algorithm 2, 7", "Algorithm 2, 8", "Algorithm 2, 9", "Algorithm 2, 10",
)  # fmt: skip
@pytest.mark.parametrize("shrunk", [1.0, 0.02])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_of_value_iteration(seed, shrunk):
    tables = random_tables(seed)
    bonus = value_bonus(H=H, S=S, A=A, K=K, failure=DELTA, E1=E1, E2=E2, scale=1.0)
    bonus = bonus._replace(root=shrunk * bonus.root, linear=shrunk * bonus.linear)
    agent = ValueAgent(bonus, np.zeros((H, S), np.int64), np.zeros((H + 1, S)))
    plan(agent, lay_out(split(as_vector(*tables), H, S, A)))
    n, cost, P = equation_1(tables, E1)
    beta, V = shrunk * lemma_4_1(n, E1, E2), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        Q = backup(cost, P, beta, V[h + 1], h)
        V[h] = Q.min(axis=1)
        assert Q[np.arange(S), agent.actions[h]] == pytest.approx(V[h], abs=1e-9)
    np.testing.assert_allclose(agent.values, V, atol=1e-9)
    assert shrunk == 1.0 or 0 < np.abs(V[0]).max() < H


@transcribes(
    "private_ucb_po",
    "Algorithm 1, 5–6", "Algorithm 1, 7", "Algorithm 1, 8", "Algorithm 1, 9", "Algorithm 1, 10", "Algorithm 1, 13",
)  # fmt: skip
@pytest.mark.parametrize("shrunk", [1.0, 0.02])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_of_policy_optimisation(seed, shrunk):
    tables, eta = random_tables(seed), math.sqrt(2 * math.log(A) / (H**2 * K))
    bonus = policy_bonus(H=H, S=S, A=A, K=K, failure=DELTA, E1=E1, E2=E2, scale=1.0)
    bonus = bonus._replace(root=shrunk * bonus.root, linear=shrunk * bonus.linear)
    logits = np.random.default_rng(seed).normal(0, 1, (H, S, A))
    policy = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    agent = PolicyAgent(bonus, eta, policy.copy(), logits.copy(), np.zeros((H + 1, S)), np.zeros((H, S, A)))
    evaluate_and_improve(agent, lay_out(split(as_vector(*tables), H, S, A)), np.empty(H * S * A, np.uint64))
    n, cost, P = equation_1(tables, E1)
    beta, V = shrunk * lemma_3_1(n, E1, E2), np.zeros((H + 1, S))
    following = np.zeros((H, S, A))
    for h in reversed(range(H)):
        Q = backup(cost, P, beta, V[h + 1], h)
        V[h] = (Q * policy[h]).sum(axis=1)
        following[h] = policy[h] * np.exp(-eta * Q)
    np.testing.assert_allclose(agent.last, policy, atol=1e-12)
    np.testing.assert_allclose(agent.values, V, atol=1e-9)
    np.testing.assert_allclose(agent.policy, following / following.sum(axis=2, keepdims=True), atol=1e-9)
    assert shrunk == 1.0 or np.abs(agent.policy - policy).max() > 1e-4


@transcribes("private_ucb_vi", "Algorithm 2, 1", "Algorithm 2, 3", "Algorithm 2, 11", "Algorithm 2, 12")
@transcribes(
    "private_ucb_po", "Algorithm 1, 1", "Algorithm 1, 2", "Algorithm 1, 4", "Algorithm 1, 11", "Algorithm 1, 12"
)
@pytest.mark.parametrize("epsilon", ["3", "3000"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["vi", "po"])
def test_a_run_episode_by_episode(kind, place, epsilon):
    make, request = asked(f"private-ucb-{kind}-{place}", epsilon=epsilon)
    found, player = trace(request, kind=kind), ready(make, request)
    one = player.start(0)
    assert not one.arrays["noisy"].any()
    if kind == "po":
        assert (one.arrays["policy"] == 1 / A).all()
    for k in range(1, K + 1):
        for name, table in as_declared(one.arrays["noisy"], H, S, A).items():
            np.testing.assert_allclose(table, found.tables[k - 1][name], rtol=1e-9, atol=1e-9)
        player.play(one, k)
        told = one.arrays[player.told]
        policy = np.eye(A)[told] if kind == "vi" else told
        np.testing.assert_allclose(policy, found.policies[k - 1], atol=1e-9)
