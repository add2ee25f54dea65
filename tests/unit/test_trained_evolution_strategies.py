"""Evolution strategies: directions, scores and sums against loops over users; what is refused; that it learns."""

import dataclasses
import math

import numpy as np
import pytest

from privcheck.errors import ParameterError
from privcheck.pricing import account
from privcheck.verification import verify
from privcheck_algorithms.trained import (
    ACROBOT,
    CART_POLE,
    MOUNTAIN_CAR,
    PENDULUM,
    PRIVATE_EVOLUTION_STRATEGIES,
    EvolutionStrategies,
    LinearPolicy,
    MirrorPolicy,
    SimulatedUsers,
    TanhPolicy,
    greedy_returns,
    no_noise,
    read_plan,
    simulated_noise,
    train,
)
from privcheck_algorithms.trained.evolution_strategies import VECTORS, directions, scores

DECLARED = PRIVATE_EVOLUTION_STRATEGIES.declare({})
LINEAR = LinearPolicy(inputs=4, actions=2, constant=False)
AGENT = EvolutionStrategies(task=CART_POLE, policy=LINEAR)


def values(**given):
    return DECLARED.values({"K": 40, "B": 10, "d": 4} | given)


@pytest.mark.parametrize("given", [{}, {"epsilon": "1/2"}, {"C": 7, "d": 3}], ids=str)
def test_it_is_as_private_as_claimed_and_hardly_more(given):
    at = DECLARED.values(given)
    claimed = float(at["epsilon"])
    assert 0.9999 * claimed < account(DECLARED).at(at).epsilon(1e-5) <= claimed


def test_the_verdict_is_that_it_holds_as_joint_dp():
    found = verify(DECLARED, DECLARED.values({}))
    assert (found.verdict, found.joint) == ("holds", "follows")
    assert 0.9999 < found.lower_ratio <= found.upper_ratio <= 1


def test_directions_are_opposite_in_pairs_of_length_one_and_of_users_alone():
    found = directions(3, np.arange(10, 410), 5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(found[::2], -found[1::2])
    np.testing.assert_array_equal(directions(3, np.array([17]), 5)[0], found[7])
    assert len(np.unique(found[:, 0])) == 400
    assert (directions(4, np.arange(10), 5) != directions(3, np.arange(10), 5)).all()


def test_directions_have_no_preferred_axis():
    """The mean of uᵢ² over 4 000 directions in 5 dimensions is ⅕ ± .004, six standard errors: below 10⁻⁸."""
    found = directions(0, 2 * np.arange(4000), 5)
    np.testing.assert_allclose((found**2).mean(axis=0), 0.2, rtol=0, atol=6 * math.sqrt(0.0457 / 4000))
    np.testing.assert_allclose(found.mean(axis=0), 0, rtol=0, atol=6 * math.sqrt(0.2 / 4000))


def naive_score(task, episodes, user):
    """One user's score, by a loop over the steps."""
    n = int(episodes.lengths[user])
    if task.name == "pendulum":
        return 2 * sum(max(1 + r / math.pi**2, 0) for r in episodes.rewards[user, :n]) / n - 1
    ended = bool(episodes.terminated[user])
    if task.name == "cart-pole":
        return 2 * n / 500 - 1 if ended else 1.0
    if task.name == "acrobot":
        return 1 - 2 * n / 500 if ended else -1.0
    if ended:
        return 1 - n / 200
    best = 0.0
    for place, speed in episodes.observations[user, :n] * [1.2, 0.07] + [-0.5, 0]:
        energy = 0.0025 / 3 * math.sin(3 * place) + speed**2 / 2
        best = max(best, (energy + 0.0025 / 3) / (0.0025 / 3 * (1 + math.sin(1.5))))
    return min(best, 1.0) - 1


@pytest.mark.parametrize("task", [CART_POLE, ACROBOT, MOUNTAIN_CAR, PENDULUM], ids=lambda one: one.name)
def test_a_user_s_vector_is_their_direction_times_their_own_score(task):
    policy = TanhPolicy(inputs=task.inputs, actions=len(task.actions), units=3)
    agent = EvolutionStrategies(task=task, policy=policy, spread=2.0)
    plan = read_plan(DECLARED, values(d=policy.dimension, C=3))
    state = dataclasses.replace(agent.begin(plan), parameters=np.random.default_rng(1).normal(size=policy.dimension))
    users = SimulatedUsers(task=task, seed=4)
    episodes = users.play(agent.choose(state), range(20, 32))
    if task.signal != "rewards":
        episodes = dataclasses.replace(episodes, terminated=np.arange(12) % 3 > 0)  # both cases
    found = agent.per_user_vector(state, episodes)
    for row, user in enumerate(range(20, 32)):
        score = naive_score(task, episodes, row)
        assert -1 <= score <= 1
        np.testing.assert_allclose(
            found[row], 3 * score * directions(0, np.array([user]), policy.dimension)[0], atol=1e-9
        )


def test_users_act_by_their_own_parameters():
    """The same episodes, one user at a time, by the most likely action of θ ± s·√d·u."""
    state = dataclasses.replace(AGENT.begin(read_plan(DECLARED, values())), parameters=np.array([0.1, 0.2, 0.3, 0.4]))
    users = SimulatedUsers(task=CART_POLE, seed=2)
    together = users.play(AGENT.choose(state), range(6, 12))
    assert together.users.tolist() == [6, 7, 8, 9, 10, 11]
    for row, user in enumerate(range(6, 12)):
        mine = state.parameters + 0.5 * 2 * directions(0, np.array([user]), 4)[0]
        alone = users.play(lambda seen, _, __, mine=mine: (seen @ mine > 0) * 1, range(user, user + 1))
        assert alone.lengths[0] == together.lengths[row]
        np.testing.assert_array_equal(alone.actions[0], together.actions[row, : alone.lengths[0]])


def test_one_policy_serves_users_of_several_calls():
    """A user who is asked for again, or with others, acts as before."""
    choose = AGENT.choose(AGENT.begin(read_plan(DECLARED, values())))
    users, seen = np.array([4, 5, 9, 12]), np.random.default_rng(0).normal(size=(4, 4))
    whole = choose(seen, np.zeros(4), users)
    np.testing.assert_array_equal(choose(seen[1:3], np.zeros(2), users[1:3]), whole[1:3])
    np.testing.assert_array_equal(choose(seen[:1], np.zeros(1), np.array([4])), whole[:1])
    np.testing.assert_array_equal(choose(seen[[0, 3]], np.zeros(2), np.array([4, 12])), whole[[0, 3]])


def test_without_noise_the_sum_is_that_of_a_loop():
    found = train(AGENT, SimulatedUsers(task=CART_POLE, seed=0), declaration=DECLARED, values=values(), noise=no_noise)
    for batch, state in enumerate(found.states[:-1]):
        episodes = SimulatedUsers(task=CART_POLE, seed=0).play(AGENT.choose(state), range(10 * batch, 10 * batch + 10))
        total = np.zeros(4)
        for row in range(10):
            total += naive_score(CART_POLE, episodes, row) * directions(0, episodes.users[row : row + 1], 4)[0]
        np.testing.assert_allclose(found.sums[batch][VECTORS], total, rtol=0, atol=1e-12)


def test_the_update_is_adam_with_averages_over_the_public_batch():
    plan = read_plan(DECLARED, values(C=2))
    state, rng = AGENT.begin(plan), np.random.default_rng(0)
    theta, m, v, kept = np.zeros(4), np.zeros(4), np.zeros(4), []
    for batch in range(4):
        sums = rng.normal(size=4) * 5
        state = AGENT.update(state, {VECTORS: sums}, plan)
        for j in range(4):
            g = sums[j] / (10 * 2)
            m[j], v[j] = 0.9 * m[j] + 0.1 * g, 0.999 * v[j] + 0.001 * g * g
            rate = 0.5 * (1 - batch / 4)
            theta[j] += rate * (m[j] / (1 - 0.9 ** (batch + 1))) / (math.sqrt(v[j] / (1 - 0.999 ** (batch + 1))) + 1e-8)
        kept.append(theta.copy())
    np.testing.assert_allclose(AGENT.result(state), kept[-1], rtol=1e-12)


def test_scores_of_the_extremes():
    episodes = SimulatedUsers(task=CART_POLE, seed=1).play(lambda _, u, __: (u >= 0.5) * 1, range(3))
    whole = dataclasses.replace(episodes, terminated=np.zeros(3, bool))
    np.testing.assert_array_equal(scores(CART_POLE, whole), 1)
    np.testing.assert_array_equal(scores(ACROBOT, whole), -1)


def test_an_odd_batch_and_numbers_out_of_range_are_refused():
    with pytest.raises(ParameterError, match="even"):
        AGENT.begin(read_plan(DECLARED, values(B=5)))
    for given in ({"rate": 0}, {"spread": math.inf}, {"tail": 1.5}):
        with pytest.raises(ParameterError, match=next(iter(given))):
            EvolutionStrategies(task=CART_POLE, policy=LINEAR, **given)


@pytest.mark.parametrize(
    ("task", "least"), [(CART_POLE, 475), (ACROBOT, -100), (MOUNTAIN_CAR, -125), (PENDULUM, -200)], ids="camp"
)
def test_it_learns_from_10000_users_at_epsilon_1(task, least):
    form = LinearPolicy(inputs=task.inputs, actions=2, constant=False)
    if task is PENDULUM:
        form = MirrorPolicy(turned=(False, True, True))
    agent = EvolutionStrategies(task=task, policy=form)
    at = DECLARED.values({"d": form.dimension})
    found = train(agent, SimulatedUsers(task=task, seed=0), declaration=DECLARED, values=at, noise=simulated_noise(0))
    assert greedy_returns(task, form, found.parameters, seed=900, episodes=50).mean() >= least
