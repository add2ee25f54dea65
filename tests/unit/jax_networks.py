"""Networks of JAX against the same network in NumPy: logits, gradients of users, whole trainings, the audits.

`test_trained_networks.py` runs these tests in a process of their own: after JAX has run, a process that forks warns.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from privcheck.errors import ParameterError
from privcheck_algorithms.trained import (
    ACROBOT,
    CART_POLE,
    PRIVATE_EVOLUTION_STRATEGIES,
    PRIVATE_POLICY_GRADIENT,
    EvolutionStrategies,
    Network,
    OptaxRule,
    PolicyGradient,
    SimulatedUsers,
    TanhPolicy,
    greedy_returns,
    simulated_noise,
    train,
)
from privcheck_algorithms.trained.policies import probabilities
from privcheck_algorithms.trained.policy_gradient import VECTORS
from privcheck_algorithms.trained.rules import Adam
from privcheck_audits.lockstep.training import audit_lockstep, extreme_pairs, leaving
from privcheck_audits.lockstep.training_canaries import TrainingCanaries

GRADIENT = PRIVATE_POLICY_GRADIENT.declare({})
SEARCH = PRIVATE_EVOLUTION_STRATEGIES.declare({})


def one_layer(parameters, seen):
    first, bias, second, last = parameters
    return jnp.tanh(seen @ first + bias) @ second + last


def two_layers(parameters, seen):
    hidden = jnp.tanh(seen @ parameters["a"])
    logits = jax.nn.relu(hidden @ parameters["b"]) @ parameters["c"]
    return logits[1:] - logits[0]


def twin(policy):
    """The same network in JAX: the flat vector has the layers in the same order."""
    n, m, outs = policy.inputs, policy.units, policy.actions - 1
    flat = policy.initial()
    parts = np.split(flat, np.cumsum([n * m, m, m * outs]))
    shapes = [(n, m), (m,), (m, outs), (outs,)]
    first = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    return Network(apply=one_layer, first=first, inputs=n, actions=policy.actions)


SMALL = TanhPolicy(inputs=4, actions=2, units=5)
SIXTEEN = TanhPolicy(inputs=4, actions=2, units=16)


@pytest.mark.parametrize("policy", [SIXTEEN, TanhPolicy(inputs=3, actions=4, units=3)], ids=str)
def test_it_equals_the_network_in_numpy(policy):
    network, rng = twin(policy), np.random.default_rng(0)
    assert network.dimension == policy.dimension
    np.testing.assert_array_equal(network.initial(), policy.initial())
    for users, steps in ((1, 1), (32, 32), (33, 7)):  # fewer than a compiled call has at least, as many, and more
        parameters = rng.normal(size=policy.dimension) * 2
        seen = rng.normal(size=(users, steps, policy.inputs)) * 3
        slopes = rng.normal(size=(users, steps, policy.actions - 1))
        apart = rng.normal(size=(users, policy.dimension))
        for found, wanted in (
            (network.logits(parameters, seen), policy.logits(parameters, seen)),
            (network.logits(parameters, seen[:, 0]), policy.logits(parameters, seen[:, 0])),
            (network.logits_apart(apart, seen[:, 0]), policy.logits_apart(apart, seen[:, 0])),
            (network.gradients(parameters, seen, slopes), policy.gradients(parameters, seen, slopes)),
        ):
            assert found.dtype == np.float64
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
    assert np.abs(policy.gradients(parameters, seen, slopes)).max() > 1


@pytest.mark.parametrize("agent", [PolicyGradient, EvolutionStrategies])
def test_the_same_training_comes_out(agent):
    """Actions are the same as long as no uniform number is within 10⁻¹² of a chance: so are parameters."""
    found = []
    declared = GRADIENT if agent is PolicyGradient else SEARCH
    for policy in (SMALL, twin(SMALL)):
        made = agent(task=CART_POLE, policy=policy)
        at = declared.values({"K": 160, "B": 32, "d": made.blocks[VECTORS]})
        users = SimulatedUsers(task=CART_POLE, seed=3)
        found.append(train(made, users, declaration=declared, values=at, noise=simulated_noise(2)))
    assert np.abs(found[0].parameters).max() > 0.1
    np.testing.assert_allclose(found[1].parameters, found[0].parameters, rtol=0, atol=1e-9)
    for one, other in zip(found[0].sums, found[1].sums, strict=True):
        np.testing.assert_allclose(other[VECTORS], one[VECTORS], rtol=0, atol=1e-8)


def deep():
    rng = np.random.default_rng(1)
    shapes = {"a": (6, 8), "b": (8, 5), "c": (5, 3)}
    first = {name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    return Network(apply=two_layers, first=first, inputs=6, actions=3)


def test_gradients_of_two_layers_are_finite_differences_of_each_user_s_steps():
    """Central differences of 10⁻⁶, by loops in NumPy over the flat vector."""
    network, rng = deep(), np.random.default_rng(2)
    seen, slopes = rng.normal(size=(3, 4, 6)), rng.normal(size=(3, 4, 2))

    def weighed(flat, user):
        a, b, c = flat[:48].reshape(6, 8), flat[48:88].reshape(8, 5), flat[88:].reshape(5, 3)
        total = 0.0
        for x, s in zip(seen[user], slopes[user], strict=True):
            logits = np.maximum(np.tanh(x @ a) @ b, 0) @ c
            total += float(s @ (logits[1:] - logits[0]))
        return total

    parameters = network.initial() + rng.normal(size=network.dimension) * 0.1
    found = network.gradients(parameters, seen, slopes)
    for user in range(3):
        for j in range(0, network.dimension, 7):
            step = np.zeros(network.dimension)
            step[j] = 1e-6
            slope = (weighed(parameters + step, user) - weighed(parameters - step, user)) / 2e-6
            assert found[user, j] == pytest.approx(slope, abs=1e-6)
    chances = probabilities(network.logits(parameters, seen))
    np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-12)


def test_a_row_does_not_depend_on_the_others():
    network, rng = twin(SMALL), np.random.default_rng(4)
    parameters, seen = rng.normal(size=network.dimension), rng.normal(size=(32, 30, 4))
    slopes = rng.normal(size=(32, 30, 1))
    together = network.gradients(parameters, seen, slopes)
    for user in (0, 30, 31):
        alone = network.gradients(parameters, seen[user : user + 1], slopes[user : user + 1])
        np.testing.assert_allclose(alone[0], together[user], rtol=0, atol=1e-12)


def test_the_lockstep_audit_takes_it():
    """Two users with opposite actions: 2C·√(1 − q) of 2C, as of the network in NumPy."""
    agent = PolicyGradient(task=CART_POLE, policy=twin(SMALL), rule=OptaxRule(transformation=optax.scale_by_adam()))
    at = GRADIENT.values({"K": 64, "B": 32, "d": SMALL.dimension + 1, "mu": 20})

    def training(users, noise):
        return leaving(train(agent, users, declaration=GRADIENT, values=at, noise=noise))

    users = SimulatedUsers(task=CART_POLE, seed=1)
    found = audit_lockstep(training, extreme_pairs(users, user=1), declaration=GRADIENT, values=at)
    assert found.consistent
    assert found.moved[VECTORS] == pytest.approx(6 * math.sqrt(0.85), rel=1e-6)


def test_canaries_of_one_run_have_the_scores_of_the_network_in_numpy():
    found, included = [], np.arange(16) % 3 == 0
    at = SEARCH.values({"K": 64, "B": 32, "d": SMALL.dimension, "mu": 20})
    for policy in (SMALL, twin(SMALL)):
        agent, users = EvolutionStrategies(task=CART_POLE, policy=policy), SimulatedUsers(task=CART_POLE, seed=1)
        made = TrainingCanaries(agent=agent, users=users, declaration=SEARCH, values=at, inputs=4, limit=500)
        found.append(made(included, np.random.default_rng(0)))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-8)
    assert np.ptp(found[0]) > 1


def test_optax_s_adam_is_adam():
    rule, own, rng = OptaxRule(transformation=optax.scale_by_adam()), Adam(), np.random.default_rng(0)
    memory, mine = rule.begin(7), own.begin(7)
    for number in range(1, 9):
        average = rng.normal(size=7) * 10.0 ** rng.integers(-3, 3)
        memory, step = rule.step(memory, average, number=number)
        mine, wanted = own.step(mine, average, number=number)
        np.testing.assert_allclose(step, wanted, rtol=1e-9)
        assert (memory.dtype, step.dtype, memory.shape) == (np.float64, np.float64, (15,))


def test_other_transformations_are_rules_too():
    """Heavy-ball momentum by hand; a chain without a state; one that reads the parameters is refused."""
    rule = OptaxRule(transformation=optax.trace(decay=0.5))
    memory, sums = rule.begin(2), np.zeros(2)
    for number in range(1, 4):
        average = np.array([1.0, -number])
        memory, step = rule.step(memory, average, number=number)
        sums = 0.5 * sums + average
        np.testing.assert_allclose(step, sums, rtol=1e-12)
    clipped = OptaxRule(transformation=optax.chain(optax.clip_by_global_norm(1.0), optax.scale(3.0)))
    memory, step = clipped.step(clipped.begin(2), np.array([3.0, 4.0]), number=1)
    np.testing.assert_allclose(step, [1.8, 2.4], rtol=1e-9)
    assert memory.shape == (0,)
    with pytest.raises(ValueError, match="params"):
        OptaxRule(transformation=optax.add_decayed_weights(0.1)).step(np.zeros(0), np.ones(2), number=1)


def test_a_network_of_another_shape_is_refused():
    with pytest.raises(ParameterError, match=r"logits\[1:\] - logits\[0\]"):
        Network(apply=lambda p, x: x @ p, first=np.zeros((4, 2)), inputs=4, actions=2)
    with pytest.raises(ParameterError, match="finite"):
        Network(apply=lambda p, x: x @ p, first=np.full((4, 1), np.nan), inputs=4, actions=2)


def test_the_precision_of_other_code_is_left_alone():
    network = twin(SMALL)
    network.logits(network.initial(), np.zeros((3, 4)))
    OptaxRule(transformation=optax.scale_by_adam()).begin(3)
    assert jnp.zeros(2).dtype == jnp.float32


def test_three_actions_and_two_layers_go_through_a_training():
    task = dataclasses.replace(ACROBOT, actions=(0, 1, 2), limit=30)
    agent = PolicyGradient(task=task, policy=deep(), discount=0.99)
    at = GRADIENT.values({"K": 40, "B": 20, "d": agent.policy.dimension + 1})
    found = train(agent, SimulatedUsers(task=task, seed=0), declaration=GRADIENT, values=at, noise=simulated_noise(0))
    assert len(found.sums) == 2
    assert found.parameters.shape == (agent.policy.dimension,)
    assert np.isfinite(found.parameters).all()


@pytest.mark.nightly
def test_cart_pole_is_learned_from_4000_users_at_epsilon_1():
    agent = PolicyGradient(
        task=CART_POLE, policy=twin(SIXTEEN), rule=OptaxRule(transformation=optax.scale_by_adam()), rate=0.2
    )
    at = GRADIENT.values({"K": 4000, "B": 200, "d": 98})
    users = SimulatedUsers(task=CART_POLE, seed=0)
    found = train(agent, users, declaration=GRADIENT, values=at, noise=simulated_noise(0))
    assert greedy_returns(CART_POLE, agent.policy, found.parameters, seed=900, episodes=50).mean() >= 475
