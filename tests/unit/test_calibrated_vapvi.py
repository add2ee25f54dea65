"""CALIBRATED-VAPVI: its planning against plain loops, rounded features, its halves, and what it refuses."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.data.features import FeatureMap
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.offline import run
from privcheck.runtime.results import RunRequest
from privcheck_algorithms.calibrated_vapvi.agent import AGENT, PublicInputs, TablesBatch, TablesPass, plan, prepare
from privcheck_algorithms.linear.tables import LinearSteps, LinearTables, round_features, simplex

SYNTHETIC = registry.environment("linear-synthetic")


def sample(users, model=1, seed=0, H=20):
    return SYNTHETIC.sample({"n": users, "H": H, "model": model, "behaviour": 1}, seed)


def asked(data, *, replicates=1, **given):
    sizes = {"H": data.trajectories.horizon, "S": data.trajectories.num_states, "d": data.feature_map.dimension}
    chosen = resolve_setting("calibrated-vapvi", {k: str(v) for k, v in given.items()}, sizes=sizes)
    return RunRequest(setting=chosen.setting, data=data, replicates=replicates, seed=3)


def gaps(result, data):
    return (data.references["optimum"] - result.returns) / (data.references["optimum"] - data.references["random"])


def random_public(rng, *, known):
    S, A, k = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    phi = rng.normal(size=(S, A, k))
    phi /= np.linalg.norm(phi, axis=-1).max()
    return PublicInputs(
        phi=phi, dimension=k + int(rng.integers(0, 2)), horizon=4,
        weights=(float(rng.uniform(0.5, 2)), 1.0, 0.0 if known else float(rng.uniform(0.5, 2))),
        std=float(rng.uniform(0, 2)), ridge=float(rng.uniform(0.5, 2)), pessimism=float(rng.uniform(0, 1)),
        reward=rng.random((S, A, S)) if known else None,
    )  # fmt: skip


def naive_quality(vector, after, public):
    """Q̂ of every pair, from the vector's layout as it is documented, with a matrix inverse in place of eigenvectors."""
    S, A, k = public.phi.shape
    d, (g, b, w) = public.dimension, public.weights
    entries = iter(vector)
    gram = np.zeros((d, d))
    for i in range(d):
        for j in range(i, d):
            gram[i, j] = gram[j, i] = next(entries) / math.sqrt(g) / (1 if i == j else math.sqrt(2))
    moved = np.array([[next(entries) / math.sqrt(b) for _ in range(S - 1)] for _ in range(d)])
    gained = np.array([next(entries) / math.sqrt(w) for _ in range(d)]) if w else np.zeros(d)
    gram, moved, gained = gram[:k, :k], moved[:k], gained[:k]
    values, axes = np.linalg.eigh(gram)
    least = public.ridge / 2 - public.ridge  # of an eigenvalue, before the ridge
    raised = sum(max(v, least) * np.outer(x, x) for v, x in zip(values, axes.T, strict=True))
    seen = sum(max(v, 0.0) * np.outer(x, x) for v, x in zip(values, axes.T, strict=True))
    inverse = np.linalg.inv(raised + public.ridge * np.eye(k))
    quality, x = np.zeros((S, A)), simplex(S)
    most = 0.0 if public.reward is None else max(
        float(((r + after) @ x) @ ((r + after) @ x)) for r in public.reward.reshape(-1, S)
    )  # fmt: skip
    for s in range(S):
        for a in range(A):
            phi = public.phi[s, a]
            law = 1 / S + phi @ inverse @ moved @ x.T  # of the next state, not clipped
            if public.reward is None:
                mean = 0.5 + phi @ inverse @ gained + law @ after + (1 - law.sum()) * after.mean()
                noise = public.std**2 * (1 / w + ((after @ x) ** 2).sum() / b)
                span = 1 + after.max() - after.min()
            else:
                mean = law @ (public.reward[s, a] + after)
                noise = public.std**2 * most / b
                span = max(float(np.ptp(r + after)) for r in public.reward.reshape(-1, S))
            load = inverse @ phi
            variance = noise * (load @ load) + load @ seen @ load * span**2 / 4
            quality[s, a] = mean - public.pessimism * math.sqrt(variance)
    return quality


@pytest.mark.parametrize("known", [False, True])
def test_a_step_is_planned_as_loops_say(known):
    rng = np.random.default_rng(0)
    for _ in range(60):
        public = random_public(rng, known=known)
        S = public.states
        numbers = LinearTables(1, public.dimension, S, gram=1, successors=1, rewards=None if known else 1).shape({})[1]
        vectors, after = rng.normal(size=(3, numbers)) * 3, rng.uniform(0, 2, (3, S))
        planned = plan(vectors, after, 1, public)
        for one in range(3):
            quality = naive_quality(vectors[one], after[one], public)
            np.testing.assert_allclose(planned.values[one], np.clip(quality.max(axis=1), 0, 3), rtol=1e-9, atol=1e-9)
            taken = quality[np.arange(S), planned.actions[one]]
            np.testing.assert_allclose(taken, quality.max(axis=1), rtol=1e-9, atol=1e-9)


def test_many_passes_are_as_many_single_ones():
    request = asked(sample(500, H=3))
    setting = replace(request.setting, features=request.data.features)
    public = prepare(setting, reward=None)
    vectors = np.random.default_rng(0).normal(size=(4, 3, 55 + 10 + 10)) * 100
    actions, values = TablesBatch(public=public)({"tables": vectors})

    class Board:
        def __init__(self, tables):
            self.tables = tables

        def read(self, name, *, part):
            assert name == "tables"
            return self.tables[part]

        def retire(self, part):
            pass

    for one in range(4):
        learnt = TablesPass(public=public)(Board(vectors[one]), lambda _: None)
        np.testing.assert_array_equal(learnt.policy.argmax(axis=-1), actions[one])
        np.testing.assert_allclose(learnt.values, values[one], rtol=1e-9, atol=1e-9)


def test_rounded_features_are_in_the_unit_ball_and_do_not_depend_on_coordinates():
    rng = np.random.default_rng(1)
    for _ in range(20):
        d = int(rng.integers(1, 6))
        phi = rng.normal(size=(3, 4, d)) * np.geomspace(1, 0.01, d)
        rounded = round_features(phi)
        norms = np.linalg.norm(rounded, axis=-1)
        assert rounded.shape == (3, 4, d)
        assert 1 - 1e-9 < norms.max() <= 1
        other = round_features(phi @ (rng.normal(size=(d, d)) + 2 * np.eye(d)))
        flat, turned = rounded.reshape(12, d), other.reshape(12, d)
        np.testing.assert_allclose(flat @ flat.T, turned @ turned.T, atol=0.01)


def test_no_other_map_into_the_unit_ball_has_a_larger_determinant():
    rng = np.random.default_rng(2)
    phi = rng.normal(size=(2, 6, 3)) * [1.0, 0.1, 0.3]
    flat, rounded = phi.reshape(-1, 3), round_features(phi).reshape(-1, 3)
    own = np.linalg.lstsq(flat, rounded, rcond=None)[0]
    for _ in range(300):
        other = own @ (np.eye(3) + 0.1 * rng.normal(size=(3, 3)))
        other /= np.linalg.norm(flat @ other, axis=1).max()
        assert abs(np.linalg.det(other)) <= abs(np.linalg.det(own)) * 1.01


def test_rounded_features_of_the_benchmark_have_the_rank_that_its_features_have():
    rounded = round_features(SYNTHETIC.sample({"n": 1, "H": 1, "model": 1, "behaviour": 1}, 0).features.phi)
    assert rounded.shape == (2, 100, 9)  # bit 128 never occurs
    spread = np.linalg.eigvalsh(np.einsum("sai,saj->ij", rounded, rounded) / 200)
    assert spread[0] > 0.06  # 0.0066 of the features themselves
    assert round_features(np.zeros((1, 2, 3))).shape == (1, 2, 1)


def test_what_is_released_is_the_declared_statistic_of_the_rounded_features():
    data = sample(40, H=2)
    setting = replace(asked(data).setting, features=data.features)
    seen = {}

    class Kept:
        def release(self, name, value, *, part):
            seen[part] = value
            return value

    holder = AGENT.hold(data.trajectories, setting, Kept(), None)
    holder.publish(1)
    holder.publish(0)
    users, phi = data.trajectories, np.zeros((2, 100, 10))
    phi[..., :9] = round_features(data.features.phi)
    whole = LinearSteps(
        phi=phi[users.states[:, :2], users.actions], following=users.states[:, 1:].astype(np.int64),
        rewards=users.rewards, states=2, weights=(1.0, 1.0, 4.0),
    )  # fmt: skip
    expected = LinearTables(2, 10, 2, gram=1, successors=1, rewards=4).compute(whole)
    np.testing.assert_allclose(np.stack([seen[0], seen[1]]), expected, rtol=1e-12)


def test_the_gap_on_the_benchmark_is_a_few_percent_of_uniform_play():
    for users, most in ((1000, 0.10), (10_000, 0.01)):
        found = [
            gaps(run(AGENT, asked(data, replicates=3)), data).mean()
            for data in (sample(users, model=m) for m in (2001, 2002))
        ]
        assert max(found) < most


def test_without_noise_to_speak_of_it_is_its_twin():
    data = sample(3000)
    result = run(AGENT, asked(data, rho="1e18", replicates=2))
    np.testing.assert_allclose(result.returns, result.baseline, rtol=1e-9)


def test_names_of_actions_do_not_matter():
    data = sample(1500, H=4)
    order = np.random.default_rng(0).permutation(100)
    users = data.trajectories
    renamed = replace(
        data, trajectories=replace(users, actions=np.argsort(order)[users.actions].astype(np.int32)),
        features=FeatureMap(phi=data.features.phi[:, order]), evaluate=None, public=False,
    )  # fmt: skip
    ours, theirs = (run(AGENT, asked(one)).policy for one in (data, renamed))
    np.testing.assert_array_equal(ours[:, :, order], theirs)


def test_public_rewards_cost_nothing_and_are_planned_with():
    data = sample(300, H=5)
    reward = np.random.default_rng(0).random((2, 100, 1))
    request = asked(replace(data, reward=reward), rewards="known")
    assert run(AGENT, request).policy.shape == (5, 2, 100)
    with pytest.raises(ParameterError, match=r"not public.*rewards=released"):
        run(AGENT, asked(data, rewards="known"))


def test_features_that_are_missing_or_of_other_sizes_are_refused():
    data = sample(10, H=2)
    setting = asked(data).setting
    with pytest.raises(ParameterError, match=r"none were given.*--features FILE"):
        prepare(setting, reward=None)
    with pytest.raises(ParameterError, match=r"declared with d = 10, the features are of d = 3"):
        prepare(replace(setting, features=FeatureMap(phi=np.zeros((2, 100, 3)))), reward=None)
    narrow = replace(setting, features=data.features, values={**setting.values, "opposed": Fraction(1, 100)})
    with pytest.raises(ParameterError, match=r"inner product of -0\.\d+, and none below κ = -0.01"):
        prepare(narrow, reward=None)


def test_little_data_is_said_to_be_little():
    data = sample(50)
    result = run(AGENT, asked(data))
    assert result.diagnostics["share_of_directions_above_noise"] < 0.5
    assert [remark.title for remark in result.remarks] == ["Learned mostly from noise"]
    assert not run(AGENT, asked(sample(10_000))).remarks
