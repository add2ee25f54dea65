"""DP-LSVI-UCB++ as Sahu 2025 prints it, line by line, beside both agents with `preset=paper`.

The agents run user by user in small random worlds; every line is computed again from what stood on the billboard.
Under the printed constants every Q̂ is H and no weight differs much from another; where a line would be hidden by that,
the same settings run with a smaller factor of O(·).
"""

import math

import numpy as np
import pytest

from privcheck.commands.online_runs import online_settings
from privcheck.data.features import FeatureMap
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.linear.players import printed_constants
from transcribed import transcribes

H, S, A, D, K, DELTA = 3, 4, 3, 3, 12, 0.1
NAMES = ("dp-lsvi-ucb-pp", "dp-lsvi-ucb-pp-as-printed")
# a factor of β under which not everything is clipped, a plan after nearly every user, noise beside which users count
SMALL = {"bonus": "0.0001", "growth": "1.0001", "rho": "1e12"}
WIDE = {"doubt": "0", "ridge": "0.1", "rho": "10"}  # so little ridge that noise takes ŵᵀφ beyond H


class Run:
    """A run of an agent with `preset=paper`, user by user, with what stood on the board before each user."""

    def __init__(self, name, *, seed=1, rho="1e7", **given):
        rng = np.random.default_rng(seed)
        phi = rng.standard_normal((S, A, D))
        phi /= np.linalg.norm(phi, axis=2, keepdims=True) * rng.uniform(1.0, 1.6, (S, A, 1))
        world = World(
            name="test", description="", mdp=random_mdp(S=S, A=A, H=H, seed=seed), features=FeatureMap(phi=phi)
        )
        sets = {"K": str(K), "rho": rho, "preset": "paper", **given}
        chosen = online_settings([name], sets, world)[0]
        request = OnlineRequest(setting=chosen.setting, world=world, episodes=K, seed=seed)
        self.player, self.phi, self.reward = ready(chosen.algorithm.online, request), phi, world.mdp.mean_reward
        self.options = {option: float(value) for option, value in chosen.setting.options.items()}
        self.constants = printed_constants(H=H, d=D, K=K, rho=float(rho), failure=DELTA)
        one = self.player.start(0)
        self.after, self.weights = [self.snapshot(one)], []
        for k in range(1, K + 1):
            self.player.play(one, k)
            self.after.append(self.snapshot(one))

    @staticmethod
    def snapshot(one):
        return {name: table.copy() for name, table in one.arrays.items()}

    @property
    def ridge(self):
        return self.options["ridge"] * self.constants.ridge

    @property
    def beta(self):
        return self.options["bonus"] * self.constants.bonus

    def matrix(self, k, h):
        """Λ̃ of step h after k users: what is on the board, and 2λ̃I; eigenvalues below half of that are raised to it."""
        values, vectors = np.linalg.eigh(self.after[k]["gram"][h] + self.ridge * np.eye(D))
        return (vectors * np.maximum(values, self.options["floor"] * self.ridge)) @ vectors.T

    def length(self, k, h, x):
        inverse = np.linalg.inv(self.matrix(k, h))
        return np.sqrt(np.einsum("...i,ij,...j->...", x, inverse, x))

    def pair(self, k, h):
        """Features of the pair that user k visits at step h."""
        return self.phi[self.after[k]["path"][h], self.after[k]["taken"][h]]

    def weight(self, k, h):
        """σ̄⁻² of user k at step h, by the exact sums before and after them."""
        x = self.pair(k, h)
        grown = self.after[k]["exact_gram"][h] - self.after[k - 1]["exact_gram"][h]
        return float(x @ grown @ x / (x @ x) ** 2)


def lemma_a_1(H, d, K, rho, delta):
    """L and λ̃, with c₁ = c₂ = 1."""
    L = 4 * H * math.sqrt(d * H * K / rho * math.log(10 * d * K * H / delta))
    return L, math.sqrt(8 * d * H * K / rho) * (2 + (math.log(5 * H / delta) / d) ** (2 / 3))


def theorem_3_2(H, d, K, L, lam, delta):  # noqa: PLR0917 - as the theorem names them
    """β̂ = β̌, and β̄, with constants 1."""
    inside = math.log(H * K**4 * L**2 * d / (delta * lam)) ** 2
    hat = H * L * math.sqrt(d * lam) + math.sqrt(d**3 * H**2 * inside)
    return hat, H**2 * L**2 * math.sqrt(d * lam) + math.sqrt(d**3 * H**4 * inside)


@transcribes("dp_lsvi_ucb", "Lemma A.1", "Theorem 3.2")
@pytest.mark.parametrize(("sizes", "rho"), [((3, 10, 50), 1.0), ((20, 10, 1000), 1.0), ((2, 3, 9), 1e6)])
def test_the_constants_are_those_of_lemma_a_1_and_theorem_3_2(sizes, rho):
    steps, d, users = sizes
    L, lam = lemma_a_1(steps, d, users, rho, DELTA)
    hat, bar = theorem_3_2(steps, d, users, L, lam, DELTA)
    found = printed_constants(H=steps, d=d, K=users, rho=rho, failure=DELTA)
    assert (found.ridge, found.bonus, found.square_bonus) == pytest.approx((2 * lam, hat, bar))
    if sizes == (3, 10, 50):  # the figures of the README
        assert round(found.ridge) == 576
        assert round(found.bonus) == 261_293


@pytest.mark.parametrize("name", NAMES)
def test_the_preset_paper_sets_every_printed_constant(name):
    run = Run(name, rho="1")
    assert run.player.diagnostics["ridge"] == pytest.approx(run.constants.ridge)
    assert run.player.diagnostics["bonus"] == pytest.approx(run.constants.bonus)
    assert run.player.diagnostics["square_bonus"] == pytest.approx(run.constants.square_bonus)


@transcribes("dp_lsvi_ucb", "Algorithm 1, 2")
@pytest.mark.parametrize("name", NAMES)
def test_values_begin_at_the_largest_and_the_least(name):
    first = Run(name).after[1]  # user 1 acts before any plan; a plan of growth 2 does not follow at once
    assert (first["values"][0, :H] == H).all()
    assert (first["lower"] == 0).all()


@transcribes("dp_lsvi_ucb", "Algorithm 1, 5", "Algorithm 1, 6", "Algorithm 1, 7")
@pytest.mark.parametrize("given", [{}, SMALL], ids=["printed", "small"])
@pytest.mark.parametrize("name", NAMES)
def test_weights_solve_the_noisy_sums_over_the_values_of_the_step_after(name, given):
    run = Run(name, **given)
    for k in range(1, K):
        now = run.after[k]
        for h in range(H):
            high, low = (now["values"][which, h + 1] for which in (0, 1))
            for which, of in ((0, high), (1, low), (2, high**2)):
                exact = sum(
                    run.weight(i, h) * run.pair(i, h) * of[run.after[i]["path"][h + 1]] for i in range(1, k + 1)
                )
                np.testing.assert_allclose(now["exact_sums"][which, h], exact, rtol=1e-6, atol=1e-12)
                noise = now["noise_sums"][which, h]
                w = np.linalg.solve(run.matrix(k, h), exact + noise)
                np.testing.assert_allclose(now["weights"][which, h], w, rtol=1e-5, atol=1e-9 * np.abs(w).max())


def sigma(run, k, h):
    """Lines 8, 24 and 25 for user k, from what stood on the board before them; and how much of σ² is E + D."""
    x, before = run.pair(k, h), run.after[k - 1]
    hat, check, bar = (before["weights"][which, h] @ x for which in range(3))
    length = run.length(k - 1, h, x)
    square_bonus = run.options["bonus"] * run.constants.square_bonus
    variance = np.clip(bar, 0, H**2) - np.clip(hat, 0, H**2) ** 2  # line 8
    E = min(square_bonus * length, H**2) + min(2 * H * run.beta * length, H**2)  # Lemma B.3
    D_ = min(4 * D**3 * H**2 * (hat - check + 2 * run.beta * length), D**3 * H**3)
    root = math.sqrt(max(0.0, variance + E + D_ + H))  # line 24; where there is no root, H below is the larger
    return max(root, H, 2 * D**3 * H**2 * math.sqrt(length)), root, E + D_, hat


@transcribes("dp_lsvi_ucb", "Algorithm 1, 8", "Algorithm 1, 24", "Algorithm 1, 25")
@pytest.mark.parametrize("given", [{}, {"doubt": "0"}, {**SMALL, "doubt": "0"}, SMALL, WIDE], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_user_is_weighted_by_variance_doubts_and_length(name, given):
    run, seen = Run(name, **given), []
    for k in range(1, K + 1):
        for h in range(H):
            whole, root, doubts, hat = sigma(run, k, h)
            expected = max(root, H) if given.get("doubt") == "0" else whole
            assert run.weight(k, h) == pytest.approx(expected**-2, rel=1e-6)
            seen.append((root > H, doubts > 0, H < hat < H**2))
    shown = np.array(seen).any(axis=0)
    assert shown[2] or given != WIDE  # the clip at H² is not one at H
    assert shown[1]
    assert shown[0] or given.get("doubt") != "0"


@transcribes("dp_lsvi_ucb", "Algorithm 1, 9", "Algorithm 1, 13–17")
@pytest.mark.parametrize("growth", ["2", "1.0001"])
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_follows_a_determinant_that_has_doubled_since_the_last(name, growth):
    run, plans = Run(name, **{**SMALL, "doubt": "0", "growth": growth}), 0
    last = [run.ridge**D] * H
    for k in range(1, K):
        now, before = run.after[k], run.after[k - 1]
        grown = [np.linalg.det(run.matrix(k, h)) for h in range(H)]
        due = any(one >= float(growth) * other for one, other in zip(grown, last, strict=True))
        assert (now["plans"] > before["plans"]).all() == due
        if due:
            last, plans = grown, plans + 1
        else:
            for kept in ("upper", "lower", "values", "actions"):
                assert k == 1 or np.array_equal(now[kept], before[kept])
    assert 0 < plans < K - 1 or growth != "2"


@transcribes("dp_lsvi_ucb", "Algorithm 1, 18–19", "Algorithm 1, 20", "Algorithm 1, 22–23", "Algorithm 1, 27")
@pytest.mark.parametrize("name", NAMES)
def test_values_are_largest_over_actions_and_users_take_the_best(name):
    run = Run(name, **{**SMALL, "doubt": "0"})
    for k in range(1, K):
        now, following = run.after[k], run.after[k + 1]
        upper, lower = now["upper"].reshape(H, S, A), now["lower"].reshape(H, S, A)
        if now["plans"][0]:
            np.testing.assert_array_equal(now["values"][0, :H], upper.max(axis=2))
            np.testing.assert_array_equal(now["values"][1, :H], lower.max(axis=2))
        path, taken = following["path"], following["taken"]
        for h in range(H):
            assert upper[h, path[h], taken[h]] == upper[h, path[h]].max()
            assert 0 <= path[h + 1] < S
    assert run.after[K - 1]["plans"][0] > 2


@pytest.mark.parametrize("name", NAMES)
def test_clipped_at_0_from_below_the_optimistic_values_are_line_10s(name):
    """What deviates and how: max{0, ·} around the printed minimum; Q̌ by the signs of Lemma B.5."""
    run, clipped = Run(name, **{**SMALL, "doubt": "0", "rho": "1e5"}), 0
    for k in range(1, K):
        now, before = run.after[k], run.after[k - 1]
        if now["plans"][0] == before["plans"][0]:
            continue
        for h in range(H):
            assert np.linalg.eigvalsh(run.matrix(k, h)).min() > run.constants.ridge / 2  # as Lemma A.1 says
            bonus = run.beta * run.length(k, h, run.phi)
            old_high, old_low = (before[one][h].reshape(S, A) for one in ("upper", "lower"))
            if k == 1:
                old_high = np.full((S, A), float(H))
            up = run.reward[h] + run.phi @ now["weights"][0, h] + bonus
            printed = np.minimum(np.minimum(up, old_high), H)
            clipped += int((printed < 0).sum())
            np.testing.assert_allclose(now["upper"][h].reshape(S, A), np.maximum(0, printed), atol=1e-9)
            under = run.reward[h] + run.phi @ now["weights"][1, h] - bonus
            np.testing.assert_allclose(
                now["lower"][h].reshape(S, A), np.minimum(H, np.maximum(np.maximum(under, old_low), 0)), atol=1e-9
            )
    assert clipped > 0
