"""The vectorised linear agents are the papers' agents on the declared statistics, with the declared noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import linear_reference as reference
from privcheck import registry
from privcheck.commands.setting import resolve_setting
from privcheck.mechanisms import SymmetricGaussianNoise
from privcheck.regressors import Regressors
from privcheck.statistics import FeatureSums, GramMatrices
from privcheck_algorithms.dp_lsvi_ucb.agent import LsviUcbPlusPlus
from privcheck_algorithms.linear.noise import Stream, streams
from privcheck_algorithms.linear.ruler import CROWD, PROBE, make_ruler
from privcheck_algorithms.private_lsvi_ucb.agent import LsviUcb
from privcheck_audits.engine.sampling import draw
from privcheck_audits.engine.scores import draw_hidden_bits
from privcheck_audits.policy.post_processing import HiddenRuns, instance
from privcheck_audits.releases.instance_sizes import small

TWINS = {
    LsviUcbPlusPlus: reference.lsvi_plus_plus,
    LsviUcb: reference.lsvi,
}
AGENTS = [name for name in registry.names("algorithms") if registry.algorithm(name).policies]
RUNS = 10


def runs_of(name, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    values = small(setting.values, setting.algorithm)
    return setting.declared, values, instance(setting.setting, setting.algorithm).draw


def taller(declaration, values, runs, horizon):
    """The same agent on episodes of several steps."""
    values = {**values, "H": Fraction(horizon)}
    outputs = next(iter(runs.streams.values())).outputs
    ruler = make_ruler(horizon=horizon, dimension=runs.ruler.phi.shape[-1], norm=runs.ruler.norm)
    return values, replace(runs, ruler=ruler, streams=streams(declaration, values, outputs))


@pytest.mark.parametrize("horizon", [1, 2, 3])
@pytest.mark.parametrize("name", AGENTS)
def test_a_trial_is_the_paper_s_agent_on_the_declared_statistics(name, horizon):
    declaration, values, runs = runs_of(name, rho=100)
    values, runs = taller(declaration, values, runs, horizon)
    if isinstance(runs.agent, LsviUcbPlusPlus):  # place 2 of 4: one policy before, one dropped, two after
        runs = replace(runs, agent=replace(runs.agent, place=2))
    outputs = HiddenRuns(draw=runs)(np.random.default_rng(4), RUNS)
    rng = np.random.default_rng(4)
    secret = draw_hidden_bits(rng, RUNS)
    assert np.array_equal(outputs.secret, secret)
    assert 0 < secret.sum() < RUNS
    noise = {n: stream.draw(rng, RUNS) for n, stream in runs.streams.items()}
    for run in range(RUNS):
        released = reference.Released(declaration, values, {n: each[run] for n, each in noise.items()})
        expected = TWINS[type(runs.agent)](runs.agent, runs.ruler, released, 0 if secret[run] else 1)
        np.testing.assert_allclose(outputs.features[run], expected, atol=1e-9)
    assert outputs.features.std(axis=0).max() > 0  # the noise moves some of it


def test_weights_follow_the_estimated_variance():
    """σ̄ is H where V̂'s variance is at most H²/4: only noise lifts it, so it is looked at by itself."""
    _, _, runs = runs_of("dp-lsvi-ucb-pp")
    ruler, agent, rng = make_ruler(horizon=2, dimension=2, norm=1.0), runs.agent, np.random.default_rng(3)
    weighted = rng.integers(5, 9, size=(8, 2, 2, 2)).astype(float)
    value = rng.uniform(0.2, 0.8, size=(8, ruler.phi.shape[0]))
    drawn = {
        "gram": np.zeros((8, 2, 2)),
        "optimistic values": np.zeros((8, 2)),
        "squared values": rng.uniform(0, 6 * agent.ridge, size=(8, 2)),
    }
    spread, _ = agent._regress(ruler, weighted, drawn, value)
    for run in range(8):
        pairs = [(s, a, t) for s in range(2) for a in range(2) for t in range(2)]
        phi = ruler.phi[PROBE:]
        gram = sum(weighted[run][p] * np.outer(phi[p[:2]], phi[p[:2]]) for p in pairs) + agent.ridge * np.eye(2)
        mean, square = (
            reference.solved(
                gram, sum(weighted[run][p] * phi[p[:2]] * value[run, PROBE + p[2]] ** k for p in pairs) + noise[run]
            )
            for k, noise in ((1, drawn["optimistic values"]), (2, drawn["squared values"]))
        )
        for s, a, _ in pairs:
            estimate = min(max(phi[s, a] @ square, 0), 4) - min(max(phi[s, a] @ mean, 0), 4) ** 2
            assert spread[run, s, a] == pytest.approx(max(np.sqrt(max(estimate + 2, 0)), 2))
    assert spread.max() > 2 == spread.min()


@pytest.mark.parametrize("name", AGENTS)
def test_every_release_draws_the_declared_noise(name):
    declaration, values, runs = runs_of(name)
    assert set(runs.streams) == {release.name for release in declaration.releases}
    for release in declaration.releases:
        stream = runs.streams[release.name]
        assert stream.noise == release.mechanism.at(values)
        assert stream.shape == release.statistic.shape(values)
        shared = "outputs" in release.draw.across
        assert (stream.kind == "one draw") == shared
        assert (stream.kind == "tree") == ("tree" in release.schedule.words)


def test_outputs_share_noise_as_their_kind_says():
    noise = SymmetricGaussianNoise(scale=2.0, kind="goe")
    shape, outputs = (2, 3, 3), 7
    fresh, one, tree = (
        Stream(noise=noise, shape=shape, outputs=outputs, kind=kind).draw(np.random.default_rng(1), 5)
        for kind in ("fresh", "one draw", "tree")
    )
    drawn = noise.draw(np.random.default_rng(1), (5, outputs, *shape))
    np.testing.assert_array_equal(fresh, drawn)
    assert (one == one[:, :1]).all()
    node = [drawn[:, t] for t in range(outputs)]  # of the node that ends at t + 1 users
    covers = [[0], [1], [1, 2], [3], [3, 4], [3, 5], [3, 5, 6]]  # 1, 1–2, 1–2 3, 1–4, 1–4 5, 1–4 5–6, 1–4 5–6 7
    for t, nodes in enumerate(covers):
        np.testing.assert_allclose(tree[:, t], sum(node[i] for i in nodes))
    assert max(map(len, covers)) == Stream(noise=noise, shape=shape, outputs=outputs, kind="tree").nodes
    np.testing.assert_array_equal(draw(noise, np.random.default_rng(1), drawn.shape), drawn)
    for each in (fresh, one, tree):
        np.testing.assert_array_equal(each, np.swapaxes(each, -1, -2))


@pytest.mark.parametrize("name", AGENTS)
def test_the_pair_moves_gram_matrices_as_far_as_any(name):
    declaration, values, runs = runs_of(name)
    users = [runs.ruler.user(np.array([arm]), differs=True) for arm in (0, 1)]
    vectors = [runs.ruler.homes[states[:, :1], actions][0] for states, actions, _ in users]
    assert vectors[0].shape == (1, runs.ruler.phi.shape[-1])
    seen = 0
    for release in declaration.releases:
        statistic = release.statistic
        assert isinstance(statistic, GramMatrices | FeatureSums)
        if not isinstance(statistic, GramMatrices) or "transition" in release.name:
            continue
        weight = statistic.weight.bound.number(values, rounding="down") if statistic.weight else 1.0
        pair = tuple(
            Regressors(
                vectors={statistic.vector.name: x[None]},
                targets={},
                weights={"1/variance": np.full((1, 1), weight)},
            )
            for x in vectors
        )
        moved = statistic.difference(pair).l2_squared ** 0.5
        charged = statistic.sensitivity(declaration.relation).l2.number(values)
        assert moved == pytest.approx(charged, rel=1e-9)
        seen += 1
    assert seen


def test_the_others_lean_to_neither_direction():
    ruler = make_ruler(horizon=1, dimension=3, norm=2.0)
    assert (ruler.phi[CROWD] == [1.0, 1.0, 0.0]).all()
    assert (ruler.phi[PROBE] == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]).all()
    marks = ruler.phi[:PROBE]
    assert (np.diff(marks[:, 1, 1]) > 0).all()
    np.testing.assert_allclose(marks[:, 1, 1] + marks[::-1, 1, 1], 2 * marks[:, 0, 0])
    assert np.linalg.norm(ruler.phi, axis=-1).max() == 2.0
