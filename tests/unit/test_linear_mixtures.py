"""Agents of linear mixtures: what they refuse, what their face says, that they learn, and what the private ones do."""

import dataclasses
import math

import numpy as np
import pytest

from privcheck.commands.online_runs import load_world, online_settings, run_online
from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import evaluate, uniform
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Laplace
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.replicates import ready
from privcheck.runtime.results import OnlineRequest, World
from privcheck_algorithms.environments.finite import random_mdp
from privcheck_algorithms.kernels.mixtures import integrate, mixture, reach, regressors
from privcheck_algorithms.private_linopt.agent import as_table, numbers

PRIVATE = ["private-linopt-vi", "private-linopt-po"]
NAMES = [*PRIVATE, "ucrl-vtr", "linear-oppo"]


def world_of(kernels, phi, *, H=3, name="mine"):
    S, A, _ = phi.shape
    mdp = random_mdp(S=S, A=A, H=H, seed=1, stationary=True)
    return World(name=name, description="", mdp=mdp, features=FeatureMap(phi=phi, kernels=kernels))


def drawn(seed=0, *, S=3, A=2, d1=2, d2=2):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(S), size=(d1, S, A)), rng.random((S, A, d2)) / d2


def asked(name, world, *, K=20, **given):
    setting = online_settings([name], {"K": str(K), **{k: str(v) for k, v in given.items()}}, world)[0]
    return OnlineRequest(setting=setting.setting, world=world, episodes=K, seed=3)


def make(name, request):
    return registry.algorithm(name).online(request)


@pytest.mark.parametrize("name", NAMES)
def test_a_world_without_kernels_is_refused_by_the_names_of_some_that_have_them(name):
    world = dataclasses.replace(load_world("riverswim", {}, seed=0)[0], name="plain")
    with pytest.raises(ParameterError, match="plain has no known kernels") as refused:
        make(name, asked(name, world))
    named = [env for env in registry.names("environments") if env in str(refused.value)]
    assert named == ["linear-hypercube", "linear-mixture"]
    for env in named:
        assert load_world(env, {}, seed=0)[0].features.kernels is not None


@pytest.mark.parametrize("name", NAMES)
def test_kernels_that_are_too_large_are_refused(name):
    kernels, phi = drawn()
    with pytest.raises(ParameterError, match=r"divide all kernels by 1\.5"):
        make(name, asked(name, world_of(1.5 * kernels, phi)))
    make(name, asked(name, world_of(kernels * np.array([1.0, -1.0])[:, None, None, None], phi)))


def test_how_long_integrals_get_bounds_every_value_function():
    rng = np.random.default_rng(2)
    for seed in range(20):
        S, A, d = (int(rng.integers(1, 5)) for _ in range(3))
        kernels = np.random.default_rng(seed).normal(size=(d, S, A, S))
        corners = (np.arange(2**S)[:, None] >> np.arange(S)) & 1
        longest = np.linalg.norm(np.einsum("isat,vt->vsai", kernels, corners), axis=-1).max()
        assert longest <= reach(kernels) * (1 + 1e-12)
        if d == 1:
            assert longest == pytest.approx(reach(kernels))


@pytest.mark.parametrize("name", NAMES)
def test_a_ridge_of_nothing_is_refused(name):
    more = {"noise_scale": 0} if name in PRIVATE else {}
    with pytest.raises(ParameterError, match="no inverse"):
        make(name, asked(name, world_of(*drawn()), ridge=0, **more))


def test_noise_that_the_kernel_does_not_draw_is_refused():
    request = asked("private-linopt-vi", world_of(*drawn()))
    declaration = request.declaration
    assert isinstance(declaration, Declaration)
    last = dataclasses.replace(declaration.releases[-1], mechanism=Laplace(scale=3))
    for releases, words in (
        ((*declaration.releases[:-1], last), "only Gaussian noise"),
        (declaration.releases[:-1], "four|trees"),
    ):
        other = dataclasses.replace(declaration, releases=releases)
        with pytest.raises(ParameterError, match=words):
            make(
                "private-linopt-vi",
                dataclasses.replace(request, setting=dataclasses.replace(request.setting, declaration=other)),
            )


def test_counters_beyond_memory_are_refused():
    request = dataclasses.replace(asked("private-linopt-vi", world_of(*drawn()), K=1000), replicates=10**7)
    with pytest.raises(ParameterError, match="GB"):
        make("private-linopt-vi", request)


def test_integrals_and_regressors_are_the_definition():
    kernels, phi = drawn(4, S=4, A=3, d1=3, d2=2)
    world = world_of(kernels, phi)
    known = mixture(asked("ucrl-vtr", world))
    rng = np.random.default_rng(5)
    values = np.vstack([rng.random((3, 4)), np.zeros((1, 4))])
    out = np.empty((3, 12))
    integrate(known.kernels, values[1], out)
    np.testing.assert_allclose(out.T.reshape(4, 3, 3), np.einsum("isat,t->sai", kernels, values[1]))
    users = Trajectories(
        states=rng.integers(0, 4, (5, 4), dtype=np.int32), actions=rng.integers(0, 3, (5, 3), dtype=np.int32),
        rewards=rng.random((5, 3)), num_states=4, num_actions=3,
    )  # fmt: skip
    found = regressors(known, values, users)
    for u in range(5):
        for h in range(3):
            s, a, following = users.states[u, h], users.actions[u, h], users.states[u, h + 1]
            np.testing.assert_allclose(found.vectors["phi of V"][u, h], kernels[:, s, a] @ values[h + 1])
            np.testing.assert_allclose(found.vectors["phi of r"][u, h], phi[s, a])
            assert found.targets["V"][u, h] == values[h + 1, following]
            assert found.targets["r"][u, h] == users.rewards[u, h]


@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 1, 1), (3, 5)])
def test_a_counter_s_table_is_symmetric_and_whole(shape):
    flat = np.arange(float(numbers(shape)))
    table = as_table(flat, shape)
    assert table.shape == shape
    assert set(table.ravel()) == set(flat)
    if len(shape) == 3:
        assert np.array_equal(table, table.transpose(0, 2, 1))
        rows, columns = np.triu_indices(shape[1])
        assert np.array_equal(table[:, rows, columns].ravel(), flat)


@pytest.mark.parametrize("name", PRIVATE)
def test_the_face_says_when_the_billboard_holds_more(name):
    player = ready(registry.algorithm(name).online, asked(name, world_of(*drawn())))
    one = player.start(0)
    assert player.face.undeclared(one) == 0
    longer = dataclasses.replace(one, arrays={**one.arrays, "noisy": np.zeros(one.arrays["noisy"].size + 7)})
    assert player.face.undeclared(longer) == 7
    assert player.face.output(19) == 19
    assert player.face.output(20) is None


def share(name, env, seed, *, K=3_000, **given):
    world, _ = load_world(env, {}, seed=0)
    found = registry.algorithm(name).play(dataclasses.replace(asked(name, world, K=K, **given), seed=seed))
    mdp = world.mdp
    most = K * (found.optimal - evaluate(mdp, uniform(mdp.horizon, mdp.states, mdp.actions)))
    return float(found.regret[0, -1]) / most


@pytest.mark.parametrize(("name", "most"), [("ucrl-vtr", 0.1), ("linear-oppo", 0.15)])
def test_the_baselines_learn(name, most):
    assert max(share(name, "linear-hypercube", seed) for seed in range(3)) < most
    assert max(share(name, "linear-mixture", seed, known_rewards=1) for seed in range(2)) < most


@pytest.mark.parametrize("name", PRIVATE)
def test_the_private_ones_learn_nothing_at_their_noise_and_something_at_far_less(name):
    """20 standard deviations of 30 seeds apart: shares of .9 to 1.1 here, below .3 there."""
    assert share(name, "linear-hypercube", 0) > 0.6
    assert share(name, "linear-hypercube", 0, epsilon=10**7, noise_scale=1) < 0.5


@pytest.mark.parametrize("name", PRIVATE)
def test_a_run_by_command_has_its_twin_and_its_ledger(name):
    world, _ = load_world("linear-hypercube", {"H": "3"}, seed=0)
    setting = online_settings([name], {"K": "30"}, world)[0]
    found = run_online(setting, world, replicates=2)
    assert found.regret.twin == registry.algorithm(name).twin
    assert found.regret.baseline is not None
    assert math.isfinite(found.regret.mean)
    assert set(found.diagnostics) >= {"ridge_p", "ridge_r", "beta_p", "beta_r", "std reward sums"}
