"""DP-VAPVI as Qiao & Wang 2022 print it, line by line, beside the agent with `preset=paper`, with recorded noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.data.features import FeatureMap
from privcheck.data.trajectories import Trajectories
from privcheck.runtime import Billboard, Channel, Ledger, SimulatedNoise
from privcheck_algorithms.dp_vapvi.agent import AGENT, HALVES, VapviPrivatizer, estimate_variance, plan, prepare
from transcribed import transcribes

H, S, A, D, N = 3, 4, 3, 3, 24
NAMES = ("dp-vapvi", "dp-vapvi-unsplit")
# at the second ρ noise and ridge are small beside the data; the third has less ridge than any noise needs, and no noise
CASES = [("10", {}), ("1e6", {}), ("1e6", {"ridge": "0.001", "C": "0.01"})]


class Recorded:
    """A noise source that keeps what it adds, by name of the release and step."""

    words, as_declared, protects = "recorded", True, False

    def __init__(self, names):
        self.names, self.source, self.drawn = names, SimulatedNoise(5), {}

    def add(self, noise, value, *, release, part):
        noisy = self.source.add(noise, value, release=release, part=part)
        self.drawn[self.names[release], part] = noisy - value
        return noisy


class Run:
    """All releases of an agent with `preset=paper`, step by step from the last."""

    def __init__(self, name, rho, seed, **given):
        rng = np.random.default_rng(seed)
        phi = rng.normal(size=(S, A, D))
        self.phi = phi / np.maximum(1, np.linalg.norm(phi, axis=-1, keepdims=True))
        self.data = Trajectories(
            states=rng.integers(0, S, (N, H + 1)), actions=rng.integers(0, A, (N, H)), rewards=rng.random((N, H)),
            num_states=S, num_actions=A,
        )  # fmt: skip
        sets = {"H": str(H), "d": str(D), "rho": rho, "preset": "paper", **given}
        self.setting = replace(resolve_setting(name, sets).setting, features=FeatureMap(phi=self.phi))
        self.options = {option: float(value) for option, value in self.setting.options.items()}
        declaration = self.setting.declared
        self.noise, self.board = Recorded([one.name for one in declaration.releases]), Billboard()
        ledger = Ledger(declaration, self.setting.values, noise=self.noise.words)
        channel = Channel(declaration, self.setting.values, noise=self.noise, billboard=self.board, ledger=ledger)
        privatizer, self.planned = VapviPrivatizer(self.data, self.setting, channel, self.board), {}
        self.public, self.spreads = prepare(self.setting), {}
        for h in reversed(range(H)):
            privatizer.publish(h)
            self.spreads[h] = estimate_variance(self.board, h, self.public)
            self.planned[h] = plan(self.board, h, self.public)
        half = dict(zip(("gram", "gains"), ("D′", "D"), strict=True))
        self.users = {half[one]: HALVES[declaration.release(one).users] for one in half}

    @property
    def ridge(self):
        """λ + E/2."""
        v = 5 * H / (4 * float(self.setting.values["rho"]))
        bound = math.sqrt(v) * (2 * math.sqrt(D) + 2 * math.sqrt(math.log(4 * H / self.options["failure"])))
        return self.options["ridge"] + bound

    def visits(self, half, h):
        """Features, rewards and next states of a half's users at step h, from 0."""
        rows = self.users[half]
        s, a = self.data.states[rows, h], self.data.actions[rows, h]
        return self.phi[s, a], self.data.rewards[rows, h], self.data.states[rows, h + 1], (s, a)

    def values(self, h):
        """Ṽ_{h+1}."""
        return self.planned[h + 1].values if h + 1 < H else np.zeros(S)


def runs(test):
    test = pytest.mark.parametrize("name", NAMES)(test)
    test = pytest.mark.parametrize(("rho", "given"), CASES, ids=str)(test)
    return pytest.mark.parametrize("seed", range(2))(test)


@transcribes("dp_vapvi", "Algorithm 2, 1")
def test_the_halves_are_disjoint_and_all_users():
    users = np.arange(N)
    halves = Run("dp-vapvi", "10", 0).users
    assert sorted([*users[halves["D"]], *users[halves["D′"]]]) == users.tolist()
    assert len(users[halves["D"]]) == len(users[halves["D′"]])
    same = Run("dp-vapvi-unsplit", "10", 0).users
    assert users[same["D"]].tolist() == users[same["D′"]].tolist() == users.tolist()


@transcribes("dp_vapvi", "Algorithm 2, 2", "Algorithm 2, 3, 15")
@runs
def test_noise_is_an_own_draw_for_each_step(name, rho, given, seed):
    run = Run(name, rho, seed, **given)
    assert run.public.ridge == pytest.approx(run.ridge)
    assert run.options["E_scale"] == 1
    rho0 = float(run.setting.values["rho"]) / (5 * H)
    laws = {one.name: one.mechanism.at(run.setting.values) for one in run.setting.declared.releases}
    assert laws["squared values"].scale == pytest.approx(math.sqrt(2 * H**4 / rho0))
    assert laws["values"].scale == laws["gains"].scale == pytest.approx(math.sqrt(2 * H**2 / rho0))
    for one in ("gram", "weighted gram"):
        assert laws[one].scale == pytest.approx(math.sqrt(1 / (4 * rho0)))
        drawn = [run.noise.drawn[one, h] for h in range(H)]
        assert not np.array_equal(drawn[0], drawn[1])
        assert all(np.allclose(K, K.T) for K in drawn)
    assert set(run.noise.drawn) == {(one, h) for one in laws for h in range(H)}


@transcribes("dp_vapvi", "Algorithm 2, 5", "Algorithm 2, 6", "Algorithm 2, 7", "Algorithm 2, 8")
@runs
def test_variances_come_from_the_first_half(name, rho, given, seed):
    run, above = Run(name, rho, seed, **given), 0
    for h in range(H):
        phi, _, after, _ = run.visits("D′", h)
        V, noise = run.values(h), run.noise.drawn
        Sigma = phi.T @ phi + run.ridge * np.eye(D) + noise["gram", h]  # line 4
        beta = np.linalg.solve(Sigma, phi.T @ V[after] ** 2 + noise["squared values", h])  # line 5
        theta = np.linalg.solve(Sigma, phi.T @ V[after] + noise["values", h])  # line 6
        most = H - h  # H − h + 1 for the printed h
        variance = np.clip(run.phi @ beta, 0, most**2) - np.clip(run.phi @ theta, 0, most) ** 2  # line 7
        np.testing.assert_allclose(run.spreads[h], np.maximum(1, variance), rtol=1e-7)  # line 8
        above += int((variance > 1).sum())
    assert above > 0 or rho != "10"


@transcribes("dp_vapvi", "Algorithm 2, 10", "Algorithm 2, 12", "Algorithm 2, 13", "Algorithm 2, 14")
@runs
def test_values_come_from_the_second_half(name, rho, given, seed):
    run, inside = Run(name, rho, seed, **given), 0
    for h in range(H):
        phi, rewards, after, pairs = run.visits("D", h)
        V, noise, spread = run.values(h), run.noise.drawn, run.spreads[h][pairs]
        Lambda = (phi / spread[:, None]).T @ phi + run.ridge * np.eye(D) + noise["weighted gram", h]  # line 9
        w = np.linalg.solve(Lambda, phi.T @ ((rewards + V[after]) / spread) + noise["gains", h])  # line 10
        length = np.sqrt(np.einsum("sai,ij,saj->sa", run.phi, np.linalg.inv(Lambda), run.phi))
        penalty = run.options["C"] * math.sqrt(D) * length  # line 11, without D/K
        Q = np.maximum(np.minimum(run.phi @ w - penalty, H - h), 0)  # lines 12 and 13
        np.testing.assert_allclose(run.planned[h].q, Q, atol=1e-8)
        np.testing.assert_allclose(run.planned[h].values, Q.max(axis=1), atol=1e-8)  # line 14
        assert Q[np.arange(S), run.planned[h].actions] == pytest.approx(Q.max(axis=1), abs=1e-8)
        inside += int(((Q > 0) & (H - h > Q)).sum())
    assert inside > 0


@transcribes("dp_vapvi", "Algorithm 2, 16")
def test_the_output_is_the_greedy_policy_of_every_step():
    run = Run("dp-vapvi", "1e6", 0)
    learnt = AGENT.make(run.setting, reward=None)(run.board, lambda _: None)
    for h in range(H):
        assert learnt.policy[h].argmax(axis=1).tolist() == run.planned[h].actions.tolist()
