"""Policies that learn nothing: against all policies that they may be, enumerated, and in models solved by hand."""

import itertools

import numpy as np
import pytest

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import (
    FiniteMDP,
    judge_trivial_policies,
    make_myopic,
    mix_without_data,
    plan_with_prior,
    share_of_uniform,
    state_trivial_regret,
)
from privcheck_algorithms.environments.finite import random_mdp, riverswim
from privcheck_algorithms.environments.linear import make_hypercube_kernels as hypercube_kernels
from privcheck_algorithms.environments.linear import make_river_kernels as river_kernels

H, S, A = 2, 2, 2
DETERMINISTIC = [np.array(c).reshape(H, S) for c in itertools.product(range(A), repeat=H * S)]


def value(transition, reward, actions, h=0, s=0):
    """The return of a deterministic policy from a state and step on, by recursion over all that may happen."""
    if h == H:
        return 0.0
    a = actions[h][s]
    after = [value(transition, reward, actions, h + 1, t) for t in range(S)]
    return reward[h][s][a] + sum(p * later for p, later in zip(transition[h][s][a], after, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_trivial_values_are_those_of_enumerated_policies(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(S=S, A=A, H=H, seed=seed)
    P, r = mdp.transition.tolist(), mdp.mean_reward.tolist()
    true = [value(P, r, actions) for actions in DETERMINISTIC]
    kernels = rng.dirichlet(np.ones(S), size=(3, S, A))
    prior = [[[list(sum(kernels[i, s, a] for i in range(3)) / 3) for a in range(A)] for s in range(S)]] * H
    planned = [value(prior, r, actions) for actions in DETERMINISTIC]
    alike = [[[[0.5] * S] * A] * S] * H
    no_kernels = [value(alike, r, actions) for actions in DETERMINISTIC]
    found = judge_trivial_policies(mdp, FeatureMap(phi=np.ones((S, A, 1)), kernels=kernels))
    assert found.optimum == pytest.approx(max(true), rel=1e-12)
    # the mean over all deterministic policies acts uniformly where every state and step is met at most once
    assert found.uniform == pytest.approx(np.mean(true), rel=1e-12)
    # policies that differ only in states not reached (h = 0, s = 1) tie; their true values are the same
    assert found.prior_only == pytest.approx(true[int(np.argmax(planned))], rel=1e-12)
    assert found.myopic == pytest.approx(true[int(np.argmax(no_kernels))], rel=1e-12)
    assert judge_trivial_policies(mdp).prior_only == found.myopic


def test_equal_actions_are_taken_equally_often():
    mdp = riverswim(4, H=3)
    policy = make_myopic(mdp)
    assert policy[:, 0].tolist() == [[1.0, 0.0]] * 3
    assert policy[:, 1:3].tolist() == [[[0.5, 0.5]] * 2] * 3
    assert policy[:, 3].tolist() == [[0.0, 1.0]] * 3


def test_the_order_of_actions_changes_no_value():
    mdp = random_mdp(S=3, A=4, H=5, seed=11)
    mdp = FiniteMDP(
        horizon=5, transition=mdp.transition, reward=np.round(2 * mdp.reward[:, :, :, :1]) / 2, initial=mdp.initial
    )  # rewards 0, ½ and 1: many actions are equal
    turned = FiniteMDP(
        horizon=5, transition=mdp.transition[:, :, ::-1], reward=mdp.reward[:, :, ::-1], initial=mdp.initial
    )
    one, other = judge_trivial_policies(mdp), judge_trivial_policies(turned)
    assert one.myopic == pytest.approx(other.myopic, rel=1e-12)
    assert one.uniform == pytest.approx(other.uniform, rel=1e-12)


def test_the_prior_of_kernels():
    river = river_kernels(5)
    assert mix_without_data(river) == pytest.approx(river.sum(axis=0) / 3, abs=1e-12)
    cube = hypercube_kernels()
    assert mix_without_data(cube) == pytest.approx(cube[0], abs=1e-12)


def test_structure_and_prior_solve_riverswim():
    mdp = riverswim(6, H=20)
    found = judge_trivial_policies(mdp, FeatureMap(phi=np.ones((6, 2, 1)), kernels=river_kernels(6)))
    assert found.prior_only == pytest.approx(found.optimum, rel=1e-12)
    assert found.regret["uniform"] > 3.3
    assert plan_with_prior(mdp, river_kernels(6)).shape == (20, 6, 2)


def test_a_share_of_nothing_is_none():
    one_action = FiniteMDP(
        horizon=2, transition=np.full((1, 2, 1, 2), 0.5), reward=np.full((1, 2, 1, 1), 0.5), initial=np.eye(2)[0]
    )
    found = judge_trivial_policies(one_action)
    assert found.regret == {"uniform": 0.0, "myopic": 0.0, "prior-only": 0.0}
    assert state_trivial_regret(found) == {}
    assert share_of_uniform(0.0, 0.0) is None
    assert share_of_uniform(1.0, 4.0) == 0.25
