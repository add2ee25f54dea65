"""HIV treatment against a naive integration with SciPy, the published steady state, and its public bounds."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from privcheck_algorithms.trained import HIV, EvolutionStrategies, LinearPolicy, SimulatedUsers
from privcheck_algorithms.trained.hiv import UNHEALTHY
from privcheck_algorithms.trained.policies import sampled
from privcheck_algorithms.trained.tasks import play


def slopes(_, s, e1, e2):
    """Adams et al. 2004, equations (1), with their constants by name."""
    t1, t2, i1, i2, v, e = s
    lambda1, lambda2, d1, d2, k1, k2, delta, f = 10_000, 31.98, 0.01, 0.01, 8.0e-7, 1e-4, 0.7, 0.34
    m1, m2, burst, c, rho1, rho2 = 1e-5, 1e-5, 100, 13, 1, 1
    lambda_e, b_e, k_b, d_e, k_d, delta_e = 1, 0.3, 100, 0.25, 500, 0.1
    return [
        lambda1 - d1 * t1 - (1 - e1) * k1 * v * t1,
        lambda2 - d2 * t2 - (1 - f * e1) * k2 * v * t2,
        (1 - e1) * k1 * v * t1 - delta * i1 - m1 * e * i1,
        (1 - f * e1) * k2 * v * t2 - delta * i2 - m2 * e * i2,
        (1 - e2) * burst * delta * (i1 + i2) - c * v - ((1 - e1) * rho1 * k1 * t1 + (1 - f * e1) * rho2 * k2 * t2) * v,
        lambda_e + b_e * (i1 + i2) / (i1 + i2 + k_b) * e - d_e * (i1 + i2) / (i1 + i2 + k_d) * e - delta_e * e,
    ]


TREATMENTS = [(0, 0), (0.7, 0), (0, 0.3), (0.7, 0.3)]


def naive(state, action):
    """Five days by an implicit method, to 10⁻⁹."""
    found = solve_ivp(slopes, (0, 5), state, args=TREATMENTS[action], method="LSODA", rtol=1e-9, atol=1e-9)
    return found.y[:, -1]


@pytest.mark.parametrize("rule", ["random", "treat, then stop", "interrupt"])
def test_every_step_is_scipy_s(rule):
    """A patient's 100 decisions, each from the compiled state: within 10⁻⁵ of every coordinate."""
    rng = np.random.default_rng(1)
    state = HIV.start(rng.random((1, 6)))
    for t in range(100):
        action = {"random": int(rng.integers(4)), "treat, then stop": 3 * (t < 40), "interrupt": 3 * (t % 8 < 5)}[rule]
        after, reward, ended = HIV.step(state, np.array([action]))
        wanted = naive(state[0], action)
        np.testing.assert_allclose(after[0], wanted, rtol=1e-5, atol=1e-3)
        e1, e2 = TREATMENTS[action]
        assert reward[0] == pytest.approx(
            1000 * wanted[5] - 0.1 * wanted[4] - 20_000 * e1**2 - 2000 * e2**2, rel=1e-4, abs=1
        )
        assert not ended[0]
        state = after


def test_random_states_far_from_any_steady_one():
    """Orders of magnitude apart: where the equations are stiff, steps become shorter, not wrong."""
    rng = np.random.default_rng(2)
    states = 10 ** rng.uniform([4, 0, 0, 0, 0, 1], [6, 3, 4.5, 2.5, 6.3, 5.5], size=(60, 6))
    actions = rng.integers(4, size=60)
    after, _, _ = HIV.step(states, actions)
    for state, action, found in zip(states, actions, after, strict=True):
        np.testing.assert_allclose(found, naive(state, action), rtol=2e-5, atol=1e-2)


def test_the_published_untreated_state_is_steady_and_attracts():
    """Within rounding of its printed digits: users who start 20 % off are there after 1 000 days without drugs."""
    states = HIV.start(np.random.default_rng(0).random((30, 6)))
    for _ in range(200):
        states, rewards, _ = HIV.step(states, np.zeros(30, int))
    np.testing.assert_allclose(states, np.tile(UNHEALTHY, (30, 1)), rtol=0.02)
    assert rewards == pytest.approx(1000 * 23.54 - 6391.9, rel=1e-3)
    steady = np.array(slopes(0, UNHEALTHY, 0, 0)) / UNHEALTHY
    assert np.abs(steady).max() < 0.02


def test_the_published_healthy_state_is_steady_too():
    """Adams et al.: without drugs, the effectors control the virus at T₁ = 967 839, V = 415, E = 353 108."""
    healthy = np.array([[967839.0, 621.0, 76.0, 6.0, 415.0, 353108.0]])
    states = healthy
    for _ in range(20):
        states, rewards, _ = HIV.step(states, np.zeros(1, int))
    np.testing.assert_allclose(states, healthy, rtol=0.03)
    assert rewards[0] == pytest.approx(3.53e8, rel=0.01)


def test_observations_and_rewards_are_within_public_bounds_and_hardly_ever_at_them():
    policy = LinearPolicy(inputs=6, actions=4)
    users = SimulatedUsers(task=HIV, seed=3)
    episodes = users.play(lambda seen, u, _: sampled(policy.logits(np.zeros(21), seen), u), range(40))
    assert episodes.lengths.tolist() == [200] * 40
    assert not episodes.terminated.any()
    raw = episodes.observations * np.array(HIV.scale) + HIV.centre
    assert raw.min() > -5
    assert raw.max() < 8
    assert HIV.rewards[0] < episodes.rewards.min()
    assert episodes.rewards.max() < HIV.rewards[1]
    far = np.array([[1e6, 1e3, 1e9, 1e3, 1e9, 1e12], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    _, rewards, _ = HIV.step(far, np.array([0, 3]))
    assert (rewards >= HIV.rewards[0]).all()
    assert (rewards <= HIV.rewards[1]).all()
    seen = HIV.scaled(far) * np.array(HIV.scale) + HIV.centre
    assert seen.min() == pytest.approx(-5)
    assert seen.max() == pytest.approx(8)
    worth = HIV.worth(np.array([-1e6, 0, 1.6e4, 1e9, np.inf]))
    assert worth.tolist() == [0, 0, 0, 1, 1]
    assert HIV.worth(np.array([1.6e6]))[0] == pytest.approx((2 / 4.4) ** 0.5)


def test_a_patient_is_treated_alone_as_among_others():
    users, agent = (
        SimulatedUsers(task=HIV, seed=5),
        EvolutionStrategies(task=HIV, policy=LinearPolicy(inputs=6, actions=4)),
    )
    from privcheck_algorithms.trained import PRIVATE_EVOLUTION_STRATEGIES, read_plan

    declared = PRIVATE_EVOLUTION_STRATEGIES.declare({})
    state = agent.begin(read_plan(declared, declared.values({"K": 40, "B": 10, "d": 21})))
    whole = users.play(agent.choose(state), range(4))
    alone = users.play(agent.choose(state), range(2, 3))
    np.testing.assert_array_equal(alone.actions[0], whole.actions[2])
    np.testing.assert_allclose(alone.observations[0], whole.observations[2], rtol=0, atol=1e-9)


def test_treatments_differ_and_both_help():
    starts = np.full((4, 6), 0.5)
    found = play(
        HIV, lambda _, __, users: users.copy(), users=range(4), starts=starts, uniforms=np.zeros((4, 200))
    ).returns
    assert len(np.unique(found)) == 4
    assert found.argmax() == 3
