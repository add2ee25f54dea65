"""Natural gradients: directions against Fisher's information by loops, vectors and updates by hand, that it learns."""

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
    PRIVATE_NATURAL_GRADIENT,
    LinearPolicy,
    NaturalGradient,
    SimulatedUsers,
    TanhPolicy,
    greedy_returns,
    no_noise,
    read_plan,
    simulated_noise,
    train,
)
from privcheck_algorithms.trained.policy_gradient import VECTORS

DECLARED = PRIVATE_NATURAL_GRADIENT.declare({})
SMALL = TanhPolicy(inputs=4, actions=2, units=3)
AGENT = NaturalGradient(task=CART_POLE, policy=SMALL, references=9)
THREE = dataclasses.replace(ACROBOT, actions=(0, 1, 2))
FORMS = [
    AGENT,
    NaturalGradient(task=CART_POLE, policy=LinearPolicy(inputs=4, actions=2), references=7, damping=0.2),
    NaturalGradient(task=THREE, policy=TanhPolicy(inputs=6, actions=3, units=2), rank=3, references=5, reach=1.5),
]


def values(**given):
    return DECLARED.values({"K": 40, "B": 10, "d": 6} | given)


@pytest.mark.parametrize("given", [{}, {"epsilon": "1/2"}, {"C": 7, "d": 3}], ids=str)
def test_it_is_as_private_as_claimed_and_hardly_more(given):
    at = DECLARED.values(given)
    claimed = float(at["epsilon"])
    assert 0.9999 * claimed < account(DECLARED).at(at).epsilon(1e-5) <= claimed


def test_the_verdict_is_that_it_holds_as_joint_dp():
    found = verify(DECLARED, DECLARED.values({}))
    assert (found.verdict, found.joint) == ("holds", "follows")
    assert 0.9999 < found.lower_ratio <= found.upper_ratio <= 1


def log_chances(agent, parameters, seen):
    """Of all actions at one observation, by the definition."""
    logits = [0.0, *agent.policy.logits(parameters, seen[np.newaxis])[0].tolist()]
    total = math.log(sum(math.exp(one) for one in logits))
    return np.array([one - total for one in logits])


def observations(agent):
    """The public observations: Gaussian, from the seed, and their negatives."""
    rows = np.random.default_rng(0).standard_normal((agent.references, agent.task.inputs)) * agent.reach
    return [sign * row for row in rows for sign in (1, -1)]


def naive_fisher(agent, parameters):
    """E ∇log π·∇log πᵀ by central differences, in a loop over observations and actions."""
    d, total = len(parameters), np.zeros((len(parameters), len(parameters)))
    for seen in observations(agent):
        slopes = np.zeros((d, len(agent.task.actions)))
        for j in range(d):
            step = np.zeros(d)
            step[j] = 1e-5
            up, down = (log_chances(agent, parameters + sign * step, seen) for sign in (1, -1))
            slopes[j] = (up - down) / 2e-5
        for a, chance in enumerate(np.exp(log_chances(agent, parameters, seen))):
            total += chance * np.outer(slopes[:, a], slopes[:, a]) / (2 * agent.references)
    return total


@pytest.mark.parametrize("agent", FORMS, ids=lambda one: type(one.policy).__name__ + one.task.name)
def test_directions_are_the_largest_eigenvectors_of_fisher_s_information(agent):
    """WᵀFW is diagonal with (λᵢ/(λᵢ + λ))², and W has no part outside of those eigenvectors."""
    parameters = np.random.default_rng(1).normal(size=agent.policy.dimension)
    found, fisher = agent.directions(parameters), naive_fisher(agent, parameters)
    sizes, vectors = np.linalg.eigh(fisher)
    most, among = sizes[::-1][: agent.rank], vectors[:, ::-1][:, : agent.rank]
    np.testing.assert_allclose(
        found.T @ fisher @ found, np.diag((most / (most + agent.damping)) ** 2), rtol=0, atol=1e-6
    )
    weights = most / (most + agent.damping) ** 2
    np.testing.assert_allclose(found @ found.T, among * weights @ among.T, rtol=0, atol=1e-5 * weights.max())


@pytest.mark.parametrize("agent", FORMS, ids=lambda one: type(one.policy).__name__ + one.task.name)
def test_a_step_s_divergence_is_half_its_square(agent):
    """Of the policies before and after it, over the public observations: to third order in the step."""
    rng = np.random.default_rng(2)
    agent = dataclasses.replace(agent, damping=1e-9)
    parameters, along = rng.normal(size=agent.policy.dimension), rng.normal(size=agent.rank)
    for h in (1e-2, 1e-3):
        after, total = parameters + h * agent.directions(parameters) @ (along / np.linalg.norm(along)), 0.0
        for seen in observations(agent):
            before = log_chances(agent, parameters, seen)
            total += float(np.exp(before) @ (before - log_chances(agent, after, seen))) / (2 * agent.references)
        assert total == pytest.approx(h * h / 2, rel=60 * h)


def test_directions_without_information_are_left_out():
    """At first only the second layer of a network changes the policy: of 19 parameters 4 have information."""
    found = dataclasses.replace(AGENT, rank=7).directions(SMALL.initial())
    assert found.shape == (19, 7)
    assert np.abs(found[:15]).max() < 1e-6
    assert np.abs(found[:, 4:]).max() < 1e-6
    few = dataclasses.replace(AGENT, references=1, rank=6).directions(SMALL.initial())  # of four scores
    assert np.isfinite(few).all()
    assert not few[:, 4:].any()


@pytest.mark.parametrize("task", [CART_POLE, ACROBOT], ids=lambda one: one.name)
def test_a_user_s_vector_is_the_slope_of_their_own_episode_along_the_directions(task):
    """Against differences of Σ_t (G_t − b)·log π(a_t | s_t) along each direction, in a loop over one user's steps."""
    form = TanhPolicy(inputs=task.inputs, actions=2, units=3)
    agent = NaturalGradient(task=task, policy=form, discount=0.9, rank=3, damping=0.1)
    rng = np.random.default_rng(4)
    parameters = rng.normal(size=form.dimension)
    state = dataclasses.replace(
        agent.begin(read_plan(DECLARED, values(d=4, C=10_000))),  # nothing is limited
        parameters=parameters,
        directions=agent.directions(parameters),
        baseline=-0.3,
    )
    users = SimulatedUsers(task=task, seed=1)
    episodes = users.play(agent.choose(state), range(4))
    episodes = dataclasses.replace(episodes, terminated=np.array([True, True, False, True]))
    found = agent.per_user_vector(state, episodes)
    for user in range(4):
        n = int(episodes.lengths[user])
        worth = (1 if task.signal == "goal" else -1) * bool(episodes.terminated[user])
        signals = [worth * 0.9 ** (n - 1 - t) for t in range(n)]

        def objective(at, user=user, n=n, signals=signals):
            total = 0.0
            for t in range(n):
                chances = log_chances(agent, at, episodes.observations[user, t])
                total += (signals[t] + 0.3) * chances[episodes.actions[user, t]]
            return total

        for i in range(3):
            step = 1e-5 * state.directions[:, i]
            slope = (objective(parameters + step) - objective(parameters - step)) / 2e-5
            assert found[user, i] == pytest.approx(slope, rel=1e-4, abs=1e-4)
        assert found[user, -1] == pytest.approx(10_000 * math.sqrt(0.15) * sum(signals) / n, abs=1e-8)
    alone = agent.per_user_vector(state, users.play(agent.choose(state), range(2, 3)))
    again = agent.per_user_vector(state, users.play(agent.choose(state), range(4)))
    np.testing.assert_allclose(alone[0], again[2], rtol=1e-9, atol=1e-9)


def test_vectors_are_no_longer_than_the_norm():
    state = AGENT.begin(read_plan(DECLARED, values()))
    rows = AGENT.per_user_vector(state, SimulatedUsers(task=CART_POLE, seed=1).play(AGENT.choose(state), range(40)))
    assert 2.5 < np.linalg.norm(rows, axis=1).max() <= 3 * (1 + 1e-12)


def test_the_update_is_momentum_along_the_directions():
    """θ + r·(1 − n/N)·m/(1 − β^n), m of W·(noisy sum)/(B·C), in loops; the first batch gives the baseline alone."""
    agent = dataclasses.replace(AGENT, rate=0.7, momentum=0.8)
    plan = read_plan(DECLARED, values(K=60, C=2))
    state, rng = agent.begin(plan), np.random.default_rng(0)
    theta, m, kept = SMALL.initial(), np.zeros(19), []
    for batch in range(6):
        sums, along = rng.normal(size=6) * 20, agent.directions(theta)
        np.testing.assert_array_equal(state.directions, along)
        state = agent.update(state, {VECTORS: sums}, plan)
        signal = sums[-1] / (10 * 2 * math.sqrt(0.15))
        assert state.baseline == pytest.approx(max(-1, min(1, signal)), rel=1e-12)
        if batch:
            for j in range(19):
                average = sum(along[j, i] * sums[i] for i in range(5)) / (10 * 2)
                m[j] = 0.8 * m[j] + 0.2 * average
            theta = theta + 0.7 * (1 - batch / 6) * m / (1 - 0.8**batch)
            kept.append(theta.copy())
        np.testing.assert_allclose(state.parameters, theta, rtol=1e-9, atol=1e-12)
        theta = state.parameters.copy()
    np.testing.assert_allclose(agent.result(state), np.mean(kept[-1:], axis=0), rtol=1e-9)


@pytest.mark.parametrize("batches", [1, 2])
def test_few_batches_end_with_the_parameters_of_the_last(batches):
    plan, state = read_plan(DECLARED, values(K=10 * batches)), None
    state = AGENT.begin(plan)
    for _ in range(batches):
        state = AGENT.update(state, {VECTORS: np.ones(6)}, plan)
    np.testing.assert_array_equal(AGENT.result(state), state.parameters)
    assert (AGENT.result(state) != SMALL.initial()).any()


def test_a_training_without_noise_is_that_of_its_vectors():
    users = SimulatedUsers(task=CART_POLE, seed=0)
    found = train(AGENT, users, declaration=DECLARED, values=values(), noise=no_noise)
    for batch, state in enumerate(found.states[:-1]):
        episodes = users.play(AGENT.choose(state), range(10 * batch, 10 * batch + 10))
        total = sum(AGENT.per_user_vector(state, episodes))
        np.testing.assert_allclose(found.sums[batch][VECTORS], total, rtol=0, atol=1e-9)


def test_numbers_out_of_range_are_refused():
    for given in (
        {"rate": 0}, {"rate": math.inf}, {"damping": 0}, {"reach": math.nan}, {"momentum": 1}, {"momentum": -0.1},
        {"discount": 0}, {"tail": 1.5}, {"signal_share": 1}, {"signal_share": 0}, {"rank": 0}, {"rank": 20},
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=next(iter(given))):
            dataclasses.replace(AGENT, **given)
    with pytest.raises(ParameterError, match="references"):
        dataclasses.replace(AGENT, references=0)
    assert dataclasses.replace(AGENT, momentum=0).momentum == 0


def test_a_network_learns_cart_pole_from_3000_users_at_epsilon_1():
    form = TanhPolicy(inputs=4, actions=2, units=16)
    agent = NaturalGradient(task=CART_POLE, policy=form)
    users, at = SimulatedUsers(task=CART_POLE, seed=0), DECLARED.values({"K": 3000, "B": 150})
    found = train(agent, users, declaration=DECLARED, values=at, noise=simulated_noise(0))
    assert greedy_returns(CART_POLE, form, found.parameters, seed=900, episodes=50).mean() >= 475
