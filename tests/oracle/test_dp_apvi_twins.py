"""DP-APVI against independent twins: APVI where there is no noise, Algorithm 1 in naive NumPy where there is."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import resolve
from privcheck.runtime import NoNoise
from privcheck.runtime.offline import run_once
from privcheck.runtime.results import Dataset
from privcheck.runtime.setting import Setting
from privcheck_algorithms.baselines.apvi import apvi
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE
from privcheck_algorithms.dp_apvi.agent import AGENT, ApviPass, plan_batch, prepare

sizes = st.tuples(st.integers(1, 5), st.integers(1, 10), st.integers(1, 4))
scales = st.sampled_from(["0", "1e-6", "1/100", "1/10", "1"])
seeds = st.integers(0, 2**32 - 1)
readings = st.sampled_from(["known", "released"])


def options(scale: str, C2: str = "16") -> dict[str, Fraction]:
    return resolve(GAUSSIAN.options, {"bonus_scale": scale, "C2": C2}, owner="test")


def random_users(rng: np.random.Generator, H: int, S: int, A: int, *, users: int, coarse: bool) -> Trajectories:
    rewards = rng.integers(0, 3, (users, H)) / 2 if coarse else rng.random((users, H))
    return Trajectories(
        states=rng.integers(S, size=(users, H + 1)).astype(np.int32),
        actions=rng.integers(A, size=(users, H)).astype(np.int32),
        rewards=rewards,
        num_states=S,
        num_actions=A,
    )


@given(size=sizes, users=st.integers(1, 60), scale=scales, reading=readings, coarse=st.booleans(), seed=seeds)
@settings(max_examples=300, deadline=None)
def test_without_noise_the_policy_is_apvis(*, size, users, scale, reading, coarse, seed) -> None:
    """Exactly, ties included: `coarse` makes datasets full of them."""
    H, S, A = size
    rng = np.random.default_rng(seed)
    shape = [(S, A, S), (S, A, 1), (1, 1, S)][seed % 3]
    reward = rng.integers(0, 3, shape) / 2 if coarse else rng.random(shape)
    declaration = GAUSSIAN.declare({"rewards": reading})
    values = declaration.values({"H": H, "S": S, "A": A})
    users_data = random_users(rng, H, S, A, users=users, coarse=coarse)
    data = Dataset(
        name="t", description="", trajectories=users_data, reward=reward, evaluate=None, references={}, public=True
    )
    given_setting = prepare(declaration, values, options(scale), reward=reward, noisy=False)
    learnt, _ = run_once(
        AGENT,
        ApviPass(given=given_setting),
        Setting(declaration=declaration, values=values),
        data.trajectories,
        noise=NoNoise(),
    )
    twin = apvi(users_data, reward=reward if reading == "known" else None, options=options(scale))
    assert (learnt.policy == twin.policy).all()
    assert learnt.values == pytest.approx(twin.values, abs=1e-9)
    assert learnt.claimed == pytest.approx(twin.claimed, abs=1e-9)


def naive(n_pair, n_next, sums, reward, *, H: int, E: float, failure: float, scale: float, C2: float):
    """Algorithm 1 line by line, eq. (3) by sorting; nothing shared with the kernels."""
    _, S, A = n_pair.shape
    iota = math.log(H * S * A / failure)
    V, qualities = np.zeros(S), np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        Q = np.zeros((S, A))
        for s in range(S):
            for a in range(A):
                y, m, e = np.maximum(n_next[h, s, a], 0), max(n_pair[h, s, a], 0), E / 2
                if y.sum() < m - e:
                    x = y + (m - e - y.sum()) / S
                elif y.sum() <= m + e:
                    x = y
                else:
                    down = np.sort(y)[::-1]
                    levels = (down.cumsum() - (m + e)) / np.arange(1, S + 1)
                    t = levels[np.flatnonzero(down > levels)[-1]] if m + e > 0 else down[0]
                    x = np.maximum(y - t, 0)
                n = x.sum()
                known = n > E
                P = x / n if known else np.full(S, 1 / S)
                f = V if sums is not None else reward[s, a] + V
                value = P @ f
                if known:
                    variance = P @ (f - value) ** 2
                    bonus = math.sqrt(2) * math.sqrt(variance * iota / (n - E)) + C2 * S * H * E * iota / n
                    if sums is not None:
                        value += np.clip(sums[h, s, a] / n, 0, 1)
                        bonus += 1.5 * E / n + math.sqrt(iota / (2 * (n - E)))
                    value -= scale * bonus
                else:
                    value -= 2 * H
                Q[s, a] = max(min(value, H - h), 0)
        qualities[h], V = Q, Q.max(axis=1)
    return qualities


@given(
    size=sizes,
    algorithm=st.sampled_from([GAUSSIAN, LAPLACE]),
    reading=readings,
    scale=scales,
    C2=st.sampled_from(["0", "1/100", "16"]),
    seed=seeds,
)
@settings(max_examples=150, deadline=None)
def test_with_noise_the_values_are_the_naive_twins(*, size, algorithm, reading, scale, C2, seed) -> None:
    H, S, A = size
    rng = np.random.default_rng(seed)
    declaration = algorithm.declare({"rewards": reading})
    values = declaration.values({"H": H, "S": S, "A": A})
    reward = rng.random((S, A, S))
    given_setting = prepare(declaration, values, options(scale, C2), reward=reward)
    E = given_setting.constants.E
    # counts around E, so that known, unknown, too small and too large sums all occur
    visits = rng.uniform(-0.5 * E, 6 * E, (1, H, S, A))
    transitions = visits[..., None] * rng.dirichlet(np.ones(S), (1, H, S, A)) + rng.normal(0, E / 3, (1, H, S, A, S))
    sums = rng.uniform(-E, 3 * E, (1, H, S, A)) if reading == "released" else None
    actions, found = plan_batch(visits, transitions, given_setting, rewards=sums)
    qualities = naive(
        visits[0],
        transitions[0],
        None if sums is None else sums[0],
        reward,
        H=H,
        E=E,
        failure=0.1,
        scale=float(Fraction(scale)),
        C2=float(Fraction(C2)),
    )
    assert found[0] == pytest.approx(qualities.max(axis=2), abs=1e-8)
    chosen = np.take_along_axis(qualities, actions[0][..., None], axis=2)[..., 0]
    assert chosen == pytest.approx(qualities.max(axis=2), abs=1e-8)  # the naive argmax has no rule for rounding
