"""The linear environments: linear exactly in their public features, within the assumptions of the papers' agents."""

import numpy as np
import pytest

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import evaluate, solve
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck_algorithms.dp_vapvi.declaration import make_printed_features

LINEAR = ("linear-signs", "linear-synthetic")
MIXTURES = ("linear-hypercube", "linear-mixture")
EXACT = 1e-12


def world(name, **given):
    environment = registry.environment(name)
    values = {p.name: int(p.default) for p in environment.parameters}
    return environment.model(values | given, 0)


def data(name, **given):
    environment = registry.environment(name)
    values = {p.name: int(p.default) for p in environment.parameters}
    return environment.sample(values | given, 3)


def residual(columns, target):
    """The largest residual of a regression of target (rows, outputs) on columns (rows, d)."""
    found = np.linalg.lstsq(columns, target, rcond=None)[0]
    return float(np.abs(columns @ found - target).max())


@pytest.mark.parametrize("name", LINEAR)
def test_next_states_and_rewards_of_a_linear_mdp_are_linear_in_its_features(name):
    for number in (1, 2, 3):
        one = world(name, H=7, model=number)
        phi = one.features.phi.reshape(-1, one.sizes["d"])
        for h in range(7):
            P, r = one.mdp.transition[h], one.mdp.mean_reward[one.mdp.part(h)]
            assert residual(phi, P.reshape(len(phi), -1)) < EXACT
            assert residual(phi, r.reshape(-1, 1)) < EXACT


@pytest.mark.parametrize("name", MIXTURES)
def test_next_states_of_a_mixture_are_linear_in_its_kernels_and_rewards_in_its_features(name):
    one = world(name, H=5)
    kernels = one.features.kernels.reshape(one.sizes["d1"], -1).T
    phi = one.features.phi.reshape(-1, one.sizes["d"])
    assert one.sizes["d"] == one.sizes["d1"]
    for h in range(5):
        assert residual(kernels, one.mdp.transition[one.mdp.part(h)].reshape(-1, 1)) < EXACT
        assert residual(phi, one.mdp.mean_reward[one.mdp.part(h)].reshape(-1, 1)) < EXACT


@pytest.mark.parametrize("name", MIXTURES)
def test_assumption_1_of_paper_004(name):
    one = world(name, H=4)
    S, d = one.mdp.states, one.sizes["d1"]
    kernels = one.features.kernels
    for corner in np.ndindex(*(2,) * S):  # the norm is convex in V: its largest lies at a corner of [0, H]^S
        assert np.linalg.norm(kernels @ (4.0 * np.array(corner)), axis=0).max() <= np.sqrt(d) * 4 + EXACT
    for h in range(4):
        target = one.mdp.transition[one.mdp.part(h)].ravel()
        theta = np.linalg.lstsq(kernels.reshape(d, -1).T, target, rcond=None)[0]
        assert np.linalg.norm(theta) <= np.sqrt(d) + EXACT
        if name == "linear-mixture":
            assert theta == pytest.approx([0.35, 0.6, 0.05], abs=EXACT)


@pytest.mark.parametrize(("name", "longest"), [
    ("linear-signs", 1.0), ("linear-synthetic", 1.0), ("linear-hypercube", 1.0), ("linear-mixture", 1.0),
])  # fmt: skip
def test_features_are_as_long_as_they_may_be_and_no_longer(name, longest):
    norms = np.linalg.norm(world(name).features.phi, axis=-1)
    assert norms.max() == pytest.approx(longest, rel=1e-15)


def test_the_printed_features_are_refused_with_what_to_divide_them_by():
    with pytest.raises(ParameterError, match=r"expected at most 1, and \d+ features are longer: divide .* by 2.64575"):
        FeatureMap(phi=make_printed_features())


def test_the_synthetic_model_is_the_printed_one():
    mdp = world("linear-synthetic", H=3, model=5).mdp
    for h in range(3):
        to_zero = mdp.transition[h, :, :, 0]
        assert np.ptp(to_zero[0, 1:]) == np.ptp([*to_zero[1, 1:], to_zero[0, 0]]) == 0.0
        assert to_zero[1, 0] == to_zero[0, 1] != to_zero[0, 0]
        r = 2 * mdp.mean_reward[h, 0, 0]  # δ = 1 and no bit: r_h/2
        for a, bits in ((2 + 8, 2), (4, 0), (32 + 16 + 2, 2)):  # θ weighs the bits 128, 32, 8, 2 by r/8, 16 by ½ − r/2
            expected = r * bits / 8 + (0.5 - r / 2) * (a & 16 > 0) + (0.5 - r / 2)
            assert mdp.mean_reward[h, 0, a] == pytest.approx(expected, abs=EXACT)
    assert mdp.initial.tolist() == [0.5, 0.5]


def test_rewards_of_many_synthetic_models_lie_within_0_and_1_without_clipping():
    for number in range(1, 200):
        mdp = world("linear-synthetic", H=2, model=number).mdp
        assert 0 <= mdp.reward.min() <= mdp.reward.max() < 1


@pytest.mark.parametrize("name", ["linear-signs", "linear-hypercube"])
def test_the_right_signs_are_the_optimum_and_other_models_have_others(name):
    first, second = world(name, H=8, model=1).mdp, world(name, H=8, model=2).mdp
    best = solve(first)
    assert first.transition[np.arange(7), 0, best.actions[:7, 0], 1] == pytest.approx([0.65] * 7, abs=EXACT)
    assert (best.actions[:7] != solve(second).actions[:7]).any()
    assert first.transition.min() == pytest.approx(0.05)


def test_neither_signs_nor_draws_are_seen_from_outside():
    for name in (*LINEAR, *MIXTURES):
        one, other = world(name, H=4), world(name, H=4, **({} if name == "linear-mixture" else {"model": 2}))
        assert np.array_equal(one.features.phi, other.features.phi)
        if one.features.kernels is not None:
            assert np.array_equal(one.features.kernels, other.features.kernels)


@pytest.mark.parametrize("name", [*LINEAR, *MIXTURES])
def test_datasets_bring_the_features_and_exact_values(name):
    sampled, one = data(name, n=50, H=4), world(name, H=4)
    assert sampled.trajectories.users == 50
    assert np.array_equal(sampled.feature_map.phi, one.features.phi)
    assert sampled.references["optimum"] == solve(one.mdp).value
    assert sampled.references["random"] < sampled.references["optimum"]
    assert (sampled.reward is None) == (name == "linear-synthetic")  # rewards that change with the step are released
    if sampled.reward is not None:
        users = sampled.trajectories
        table = np.broadcast_to(sampled.reward, (one.mdp.states, one.mdp.actions, one.mdp.states))
        assert np.array_equal(users.rewards, table[users.states[:, :-1], users.actions, users.states[:, 1:]])


def test_the_printed_behaviour_takes_action_0_six_times_in_ten():
    users = data("linear-synthetic", n=4000, H=5, behaviour=2)
    share = (users.trajectories.actions == 0).mean()
    assert abs(share - 0.6) < 0.025  # 20,000 draws: seven standard deviations, probability below 1e-11
    one = world("linear-synthetic", H=5)
    policy = np.full((5, 2, 100), 0.4 / 99)
    policy[..., 0] = 0.6
    assert users.references["behaviour"] == pytest.approx(evaluate(one.mdp, policy), rel=EXACT)
    with pytest.raises(ParameterError, match=r"behaviour: expected 1 .* or 2 .*, got 3"):
        data("linear-synthetic", behaviour=3)
