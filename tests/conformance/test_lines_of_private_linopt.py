"""Private-LinOpt-VI and -PO as Zhou 2022 prints them, line by line, beside the agents with `preset=paper`.

Under the printed constants every Q is clipped at the largest value; with an ε of 10⁸ and a hundredth of the bonuses the
other lines show too.
"""

import math

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from transcribed import transcribes

H, S, A, D1, D2, K, ALPHA = 3, 3, 2, 2, 3, 13, 0.025
VI, PO = "private-linopt-vi", "private-linopt-po"
FAINT = {"epsilon": "1e8", "bonus_p": "0.01", "bonus_r": "0.01"}
GRAM, VALUES, REWARDS, SUMS = "transition gram", "transition values", "reward gram", "reward sums"


def make_world(seed):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(S, A, D2))
    phi /= np.linalg.norm(phi, axis=-1, keepdims=True) * rng.uniform(1, 2, (S, A, 1))
    mdp = FiniteMDP(
        horizon=H,
        transition=rng.dirichlet(np.ones(S), size=(H, S, A)),
        reward=rng.random((H, S, A, S)),
        initial=np.eye(S)[0],
    )
    kernels = rng.dirichlet(np.ones(S), size=(D1, S, A))
    return World(name="drawn", description="", mdp=mdp, features=FeatureMap(phi=phi, kernels=kernels))


class Run:
    """A run with `preset=paper`, episode by episode: the counters it was planned from, and what came of it."""

    def __init__(self, name, seed=2, **given):
        self.world = make_world(seed)
        sets = {"K": str(K), "dimensions": "own", "preset": "paper", **given}
        chosen = online_settings([name], sets, self.world)[0]
        self.request = OnlineRequest(setting=chosen.setting, world=self.world, episodes=K, seed=seed)
        self.player, self.options = ready(chosen.algorithm.online, self.request), chosen.setting.options
        self.one = self.player.start(0)
        self.start = {name: table.copy() for name, table in self.one.arrays.items()}
        self.before, self.after = [], []
        for k in range(1, K + 1):
            self.before.append(self.player.face.noisy(self.one, k))
            self.player.play(self.one, k)
            exact = self.player.face.exact(self.one, k)
            self.after.append({name: table.copy() for name, table in self.one.arrays.items()} | {"sums": exact})
        self.kernels, self.phi = np.asarray(self.world.features.kernels), self.world.features.phi

    def constants(self, transition):
        """γ and β: Lemma 3.1 with λ_min = Σ, λ_max = 3Σ and ν of Theorem 6.5's proof."""
        d, (gram, sums) = (D1, (GRAM, VALUES)) if transition else (D2, (REWARDS, SUMS))
        sigma, other = (
            self.request.declaration.release(one).mechanism.at(self.request.values).scale for one in (gram, sums)
        )
        m = math.ceil(math.log2(K))
        least = sigma * math.sqrt(m) * (4 * math.sqrt(d) + math.sqrt(8 * math.log(8 * K * H / ALPHA)))
        nu = other * math.sqrt(m) * (math.sqrt(d) + math.sqrt(2 * math.log(4 * K * H / ALPHA))) / math.sqrt(least)
        inside = K * H**2 / least if transition else K / (d * least)
        chance = math.sqrt(2 * math.log(H / ALPHA) + d * math.log(1 + inside)) / 2
        return 2 * least, (H if transition else 1) * chance + math.sqrt(d * 3 * least) + nu

    def plan(self, k, policy=None):
        """Lines θ̂_p to V of Algorithms 1 and 2 in episode k; Q (H, S, A), V (H + 1, S) and φ (H, S, A, d₁)."""
        board, Q, V, phis = self.before[k - 1], np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros((H, S, A, D1))
        scale = {True: float(self.options["bonus_p"]), False: float(self.options["bonus_r"])}
        for h in reversed(range(H)):
            phis[h] = np.einsum("isat,t->sai", self.kernels, V[h + 1])
            for transition, x, (gram, sums) in ((True, phis[h], (GRAM, VALUES)), (False, self.phi, (REWARDS, SUMS))):
                gamma, beta = self.constants(transition)
                inverse = np.linalg.inv(board[gram][h] + gamma * np.eye(x.shape[-1]))
                theta = inverse @ board[sums][h]
                Q[h] += x @ theta + scale[transition] * beta * np.sqrt(np.einsum("sai,ij,saj->sa", x, inverse, x))
            Q[h] = np.maximum(0, np.minimum(H - h, Q[h]))
            V[h] = Q[h].max(axis=1) if policy is None else (Q[h] * policy[h]).sum(axis=1)
        return Q, V, phis


@transcribes("private_linopt", "Lemma 3.1", "Theorem 6.5's proof")
@pytest.mark.parametrize("name", [VI, PO])
def test_constants_are_those_of_the_lemma_and_the_theorem(name):
    run = Run(name)
    for transition, at in ((True, "p"), (False, "r")):
        found = [run.player.diagnostics[f"{one}_{at}"] for one in ("ridge", "beta")]
        assert found == pytest.approx(run.constants(transition))


@transcribes(
    "private_linopt",
    "Algorithm 1, 2", "Algorithm 1, 3–4", "Algorithm 1, 5–6", "Algorithm 1, 7", "Algorithm 1, 8–9", "Algorithm 1, 10",
    "Algorithm 1, 11", "Algorithm 1, 12", "Algorithm 1, 13",
)  # fmt: skip
@pytest.mark.parametrize("given", [{}, FAINT], ids=["printed", "faint"])
@pytest.mark.parametrize("seed", range(3))
def test_an_episode_of_value_iteration(seed, given):
    run, inside = Run(VI, seed, **given), 0
    for k in range(1, K + 1):
        Q, V, _ = run.plan(k)
        now = run.after[k - 1]
        np.testing.assert_allclose(now["quality"].reshape(H, S, A), Q, atol=1e-6)
        np.testing.assert_allclose(now["values"], V, atol=1e-6)
        for h in range(H):
            assert Q[h][np.arange(S), now["actions"][h]] == pytest.approx(V[h], abs=1e-6)
            assert now["taken"][h] == now["actions"][h, now["path"][h]]
        inside += int(((Q > 0) & (np.arange(H, 0, -1)[:, None, None] > Q)).sum())
    assert (inside > 0) == bool(given)


@transcribes(
    "private_linopt",
    "Algorithm 2, 2", "Algorithm 2, 3", "Algorithm 2, 4–5", "Algorithm 2, 6–7", "Algorithm 2, 8", "Algorithm 2, 9–10",
    "Algorithm 2, 11", "Algorithm 2, 12", "Algorithm 2, 13", "Algorithm 2, 15",
)  # fmt: skip
@pytest.mark.parametrize("given", [{}, FAINT], ids=["printed", "faint"])
@pytest.mark.parametrize("seed", range(3))
def test_an_episode_of_policy_optimisation(seed, given):
    run, policy = Run(PO, seed, **given), np.full((H, S, A), 1 / A)
    assert np.array_equal(run.start["policy"], policy)
    eta = math.sqrt(2 * math.log(A) / (H * K * H))
    for k in range(1, K + 1):
        Q, V, _ = run.plan(k, policy)
        now = run.after[k - 1]
        np.testing.assert_allclose(now["last"], policy, atol=1e-6)
        np.testing.assert_allclose(now["quality"].reshape(H, S, A), Q, atol=1e-6)
        np.testing.assert_allclose(now["values"], V, atol=1e-6)
        assert all(policy[h, now["path"][h], now["taken"][h]] > 0 for h in range(H))
        policy = policy * np.exp(eta * Q)
        policy /= policy.sum(axis=2, keepdims=True)
    assert (np.abs(policy - 1 / A).max() > 1e-3) == bool(given)


@pytest.mark.parametrize("name", [VI, PO])
def test_counters_sum_users_and_the_noise_of_covering_nodes(name):
    """The noise after t users is that of the nodes that cover [1, t]: a fresh one and those of t & (t − 1)."""
    run = Run(name, **FAINT)
    total = {
        GRAM: np.zeros((H, D1, D1)),
        VALUES: np.zeros((H, D1)),
        REWARDS: np.zeros((H, D2, D2)),
        SUMS: np.zeros((H, D2)),
    }
    noise, nodes = {0: {one: np.zeros_like(table) for one, table in total.items()}}, []
    for k in range(1, K):
        now = run.after[k - 1]
        for h in range(H):
            s, a, after = now["path"][h], now["taken"][h], now["path"][h + 1]
            phi = run.kernels[:, s, a] @ now["values"][h + 1]
            total[GRAM][h] += np.outer(phi, phi)
            total[VALUES][h] += phi * now["values"][h + 1, after]
            total[REWARDS][h] += np.outer(run.phi[s, a], run.phi[s, a])
            total[SUMS][h] += run.phi[s, a] * (1 - now["costs"][h])
        noisy = run.player.face.tables(now["noisy"])
        for one, table in total.items():
            np.testing.assert_allclose(now["sums"][one], table, atol=1e-9)
        noise[k] = {one: noisy[one] - table for one, table in total.items()}
        node = {one: noise[k][one] - noise[k & (k - 1)][one] for one in total}
        nodes.append(node[SUMS][0])
        for one in (GRAM, REWARDS):
            np.testing.assert_allclose(node[one], node[one].transpose(0, 2, 1), atol=1e-9)
    spread = run.request.declaration.release(SUMS).mechanism.at(run.request.values).scale
    drawn = np.array(nodes) / spread
    assert 0.6 < drawn.std() < 1.5  # 36 normals with this seed: within one node's law, not two nodes'
    assert len(np.unique(drawn.round(9))) == drawn.size
