"""Exact planning against brute force, and the simulator against the model."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from privcheck.data.finite_models import FiniteMDP, evaluate, one_hot, reward_table, sample_trajectories, solve, uniform
from privcheck.errors import ParameterError
from twins.planning import best_backward, value_backward


def random_mdp(
    seed: int, S: int = 3, A: int = 2, *, H: int = 3, sparse: bool = False, stationary: bool = True
) -> FiniteMDP:
    rng = np.random.default_rng(seed)
    steps = 1 if stationary else H
    transition = rng.dirichlet(np.full(S, 0.5), (steps, S, A))
    if sparse:
        transition = np.eye(S)[rng.integers(S, size=(steps, S, A))]
    reward, initial = rng.random((steps, S, A, S)), rng.dirichlet(np.ones(S))
    return FiniteMDP(horizon=H, transition=transition, reward=reward, initial=initial)


def random_policy(seed: int, H: int, S: int, A: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(A), (H, S))


def value_over_all_paths(mdp: FiniteMDP, policy: np.ndarray) -> float:
    """Sums probability × return over every path: the definition, nothing shared with `evaluate`."""
    H, S, A = policy.shape
    total = 0.0
    for states in itertools.product(range(S), repeat=H + 1):
        for actions in itertools.product(range(A), repeat=H):
            chance, gain = mdp.initial[states[0]], 0.0
            for h, a in enumerate(actions):
                s, following = states[h], states[h + 1]
                chance *= policy[h, s, a] * mdp.transition[mdp.part(h), s, a, following]
                gain += mdp.reward[mdp.part(h), s, a, following]
            total += chance * gain
    return total


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_the_value_is_the_sum_over_all_paths(seed, sparse, stationary) -> None:
    mdp, policy = random_mdp(seed, sparse=sparse, stationary=stationary), random_policy(seed, 3, 3, 2)
    assert evaluate(mdp, policy) == pytest.approx(value_over_all_paths(mdp, policy), abs=1e-12)
    assert value_backward(mdp, policy) == pytest.approx(value_over_all_paths(mdp, policy), abs=1e-12)
    greedy = one_hot(policy.argmax(axis=2), 2)  # takes the branch over pairs that occur
    assert evaluate(mdp, greedy) == pytest.approx(value_over_all_paths(mdp, greedy), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=15, deadline=None)
def test_the_optimum_is_the_best_deterministic_policy(seed, stationary) -> None:
    mdp = random_mdp(seed, S=2, stationary=stationary)
    best = max(
        evaluate(mdp, one_hot(np.array(choice).reshape(3, 2), 2)) for choice in itertools.product(range(2), repeat=6)
    )
    found = solve(mdp)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert best_backward(mdp) == pytest.approx(best, abs=1e-12)
    assert evaluate(mdp, one_hot(found.actions, 2)) == pytest.approx(best, abs=1e-12)
    assert found.values[0] @ mdp.initial == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("stationary", [True, False])
def test_samples_follow_the_model(stationary) -> None:
    """Pooled χ² of initial states, actions and transitions over 3 steps; false alarms below 1e-9."""
    mdp, policy = random_mdp(1, stationary=stationary), random_policy(2, 3, 3, 2)
    data = sample_trajectories(mdp, policy, users=40_000, rng=np.random.default_rng(3))
    statistic, freedom = 0.0, 0

    def pool(drawn: np.ndarray, expected: np.ndarray) -> None:
        nonlocal statistic, freedom
        observed = np.bincount(drawn, minlength=expected.size)
        statistic += ((observed - expected * observed.sum()) ** 2 / (expected * observed.sum())).sum()
        freedom += expected.size - 1

    pool(data.states[:, 0], mdp.initial)
    for h, s in itertools.product(range(3), range(3)):
        here = data.states[:, h] == s
        pool(data.actions[here, h], policy[h, s])
        for a in range(2):
            both = here & (data.actions[:, h] == a)
            pool(data.states[both, h + 1], mdp.transition[mdp.part(h), s, a])
    assert chi2.sf(statistic, freedom) > 1e-9
    assert chi2.cdf(statistic, freedom) > 1e-9
    rows = np.arange(data.users)
    for h in range(3):
        reward = mdp.reward[mdp.part(h)]
        assert (data.rewards[rows, h] == reward[data.states[:, h], data.actions[:, h], data.states[:, h + 1]]).all()


def test_what_has_probability_zero_is_never_drawn() -> None:
    mdp = random_mdp(5, S=4, H=4, sparse=True)
    data = sample_trajectories(mdp, uniform(4, 4, 2), users=5_000, rng=np.random.default_rng(6))
    for h in range(4):
        assert (mdp.transition[0, data.states[:, h], data.actions[:, h], data.states[:, h + 1]] == 1).all()


@pytest.mark.parametrize("slack", [0.0, -3e-10, 3e-10, 2.0**-52, -(2.0**-53)])
@pytest.mark.parametrize(("uniform_drawn", "state"), [(np.nextafter(1.0, 0.0), 3), (0.0, 1)])
@pytest.mark.parametrize("users", [3, 30])  # compared as a whole, and searched for
def test_extreme_uniforms_draw_the_last_and_first_possible_state(uniform_drawn, state, slack, users) -> None:
    class Extreme:
        def random(self, size: int) -> np.ndarray:
            return np.full(size, uniform_drawn)

    law = np.array([0.0, 0.1, 0.2, 0.7 + slack, 0.0])  # the first and the last state are impossible
    transition = np.broadcast_to(law, (5, 1, 5)).copy()
    mdp = FiniteMDP(horizon=2, transition=transition[None], reward=np.zeros(1), initial=law)
    data = sample_trajectories(mdp, np.ones((2, 5, 1)), users=users, rng=Extreme())  # type: ignore[arg-type] # draws as one
    assert (data.states == state).all()


def first_beyond(law: np.ndarray, drawn: float) -> int:
    sums = list(itertools.accumulate(law))
    return next(i for i, part in enumerate(sums) if part > drawn * sums[-1])


@pytest.mark.parametrize("users", [1, 2, 16, 17, 60])
@pytest.mark.parametrize("sparse", [False, True])
def test_users_are_those_of_a_walk_one_by_one(users, sparse) -> None:
    mdp, policy = random_mdp(3, S=5, H=4, sparse=sparse, stationary=False), random_policy(4, 4, 5, 2)
    rng = np.random.default_rng(users)
    data = sample_trajectories(mdp, policy, users=users, rng=np.random.default_rng(users))
    states = [first_beyond(mdp.initial, drawn) for drawn in rng.random(users)]
    for h in range(4):
        actions = [first_beyond(policy[h, s], drawn) for s, drawn in zip(states, rng.random(users), strict=True)]
        assert (data.states[:, h].tolist(), data.actions[:, h].tolist()) == (states, actions)
        rows = [mdp.transition[h, s, a] for s, a in zip(states, actions, strict=True)]
        states = [first_beyond(row, drawn) for row, drawn in zip(rows, rng.random(users), strict=True)]
    assert data.states[:, 4].tolist() == states


def test_the_same_seed_gives_the_same_users() -> None:
    mdp, policy = random_mdp(1), random_policy(2, 3, 3, 2)
    first, second = (sample_trajectories(mdp, policy, users=50, rng=np.random.default_rng(9)) for _ in range(2))
    assert (first.states == second.states).all()
    assert (first.actions == second.actions).all()


@pytest.mark.parametrize("shape", [(1,), (3, 2, 1), (3, 1, 3), (1, 1, 3), (3, 2, 3)])
def test_rewards_broadcast(shape: tuple[int, ...]) -> None:
    table = reward_table(np.full(shape, 0.5), 3, 2)
    assert table.shape == (3, 2, 3)
    assert not table.flags.writeable


def good() -> dict[str, np.ndarray | int]:
    transition, initial = np.full((1, 2, 1, 2), 0.5), np.array([1.0, 0.0])
    return {"horizon": 1, "transition": transition, "reward": np.zeros((1, 2, 1, 1)), "initial": initial}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transition", np.full((1, 2, 1, 3), 1 / 3)),
        ("transition", np.full((2, 1, 2), 0.5)),
        ("transition", np.full((1, 2, 1, 2), 0.6)),
        ("transition", np.array([[[[1.5, -0.5]], [[1.0, 0.0]]]])),
        ("transition", np.full((1, 2, 1, 2), np.nan)),
        ("initial", np.array([1.0])),
        ("initial", np.array([0.5, 0.4])),
        ("reward", np.full((1, 2, 1, 1), 1.5)),
        ("reward", np.full((1, 2, 1, 1), np.nan)),
        ("reward", np.zeros((1, 3, 1, 1))),
    ],
)
def test_a_bad_model_is_refused(name: str, value: np.ndarray) -> None:
    named = {"transition": r"expected P", "initial": "law of the first state", "reward": "rewards"}[name]
    with pytest.raises(ParameterError, match=named):
        FiniteMDP(**{**good(), name: value})


@pytest.mark.parametrize(
    "policy",
    [np.ones((2, 1)), np.ones((2, 2, 1)), np.ones((1, 2, 2)) / 2, np.full((1, 2, 1), 0.9), np.full((1, 2, 1), np.nan)],
)
def test_a_bad_policy_is_refused(policy: np.ndarray) -> None:
    mdp = FiniteMDP(**good())
    with pytest.raises(ParameterError, match="policy"):
        evaluate(mdp, policy)
    with pytest.raises(ParameterError, match="policy"):
        sample_trajectories(mdp, policy, users=1, rng=np.random.default_rng(0))


def test_no_user_is_refused() -> None:
    mdp = FiniteMDP(**good())
    with pytest.raises(ParameterError, match="user"):
        sample_trajectories(mdp, np.ones((1, 2, 1)), users=0, rng=np.random.default_rng(0))
