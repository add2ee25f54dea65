"""Canary users of a training: found out where there is hardly any noise, and consistent with the declared noise."""

import dataclasses

import numpy as np
import pytest

from privcheck import GaussianDP, audit_one_run
from privcheck.errors import ParameterError
from privcheck_algorithms.trained import (
    CART_POLE,
    PRIVATE_EVOLUTION_STRATEGIES,
    EvolutionStrategies,
    SimulatedUsers,
    TanhPolicy,
)
from privcheck_algorithms.trained.evolution_strategies import directions, scores
from privcheck_audits.lockstep.training_canaries import CanaryUsers, TrainingCanaries

DECLARED = PRIVATE_EVOLUTION_STRATEGIES.declare({})
AGENT = EvolutionStrategies(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=16))


def canaries(**given):
    values = DECLARED.values({"K": 1000, "B": 250, "d": 97} | given)
    users = SimulatedUsers(task=CART_POLE, seed=1)
    return TrainingCanaries(agent=AGENT, users=users, declaration=DECLARED, values=values, inputs=4, limit=500)


def test_canaries_play_one_of_two_extreme_episodes_and_others_their_own():
    users, coins = SimulatedUsers(task=CART_POLE, seed=1), np.array([True, False, True])
    mixed = CanaryUsers(of=users, canaries=np.array([0, 10, 20]), included=coins, limit=500)

    def choose(_, uniforms, __):
        return (uniforms >= 0.5) * 1

    found, usual = mixed.play(choose, range(5, 25)), users.play(choose, range(5, 25))
    assert scores(CART_POLE, found)[[5, 15]].tolist() == [1.0, 2 / 500 - 1]  # users 10 and 20
    assert scores(CART_POLE, found)[[6, 16]].tolist() == [1.0, 1.0]  # and those after them
    rest = np.setdiff1d(np.arange(20), [5, 6, 15, 16])
    np.testing.assert_array_equal(found.lengths[rest], usual.lengths[rest])
    np.testing.assert_array_equal(found.actions[rest, : usual.actions.shape[1]], usual.actions[rest])
    np.testing.assert_array_equal(found.users, usual.users)


def test_with_hardly_any_noise_scores_are_the_best_linear_estimates_and_most_coins_are_seen():
    """μ = 20, 25 canaries of a batch in 97 dimensions. The estimate by the covariance of the sum, not of the coins."""
    agent, included = canaries(mu=20), np.random.default_rng(0).random(100) < 0.5
    found = agent(included, np.random.default_rng(1))
    guessed = np.argsort(-found)[: included.sum()]
    assert included[guessed].mean() > 0.85  # at random about half
    training = _trained(agent, included, np.random.default_rng(1))
    scale = DECLARED.noisy[0].mechanism.at(agent.values).scale
    for batch in range(4):
        own = [directions(0, np.array([user]), 97)[0] / scale for user in range(250 * batch, 250 * batch + 250, 10)]
        low, high = 1.0, 2 / 500 - 1
        covariance, rest = np.eye(97), training.sums[batch]["vectors"] / scale
        for u in own:
            covariance += np.outer(u, u) * ((high - low) / 2) ** 2
            rest = rest - u * (high + low) / 2 + u * low  # the user after it has the opposite direction
        wanted = [(high - low) / 2 * u @ np.linalg.inv(covariance) @ rest for u in own]
        np.testing.assert_allclose(found[25 * batch : 25 * batch + 25], wanted, rtol=0, atol=1e-9)


def _trained(agent, included, rng):
    from privcheck_algorithms.trained import simulated_noise, train

    mixed = CanaryUsers(of=agent.users, canaries=10 * np.arange(100), included=included, limit=500)
    noise = simulated_noise(int(rng.integers(2**31)))
    return train(AGENT, mixed, declaration=DECLARED, values=agent.values, noise=noise)


def test_a_training_with_a_sixth_of_the_noise_is_a_violation():
    """It draws the noise of μ = 2.4 and claims .4; at the claim the audit is consistent. α = .01."""
    claim = GaussianDP("0.4")
    assert audit_one_run(canaries(K=2000, mu="2.4"), claim, canaries=200, seed=0).verdict == "violation"
    found = audit_one_run(canaries(K=2000, mu="0.4"), claim, canaries=200, seed=0)
    assert found.verdict == "consistent"
    assert found.lower <= 0.4


def test_a_number_of_canaries_that_would_make_pairs_is_refused():
    for number in (300, 1000):
        with pytest.raises(ParameterError, match="double divides"):
            canaries()(np.zeros(number, bool), np.random.default_rng(0))


def test_scores_do_not_depend_on_the_coins_but_through_the_noisy_sums():
    """The same sums, whatever the coins say: the same scores."""

    @dataclasses.dataclass(frozen=True)
    class Deaf:
        of: EvolutionStrategies
        blocks = property(lambda self: self.of.blocks)

        def __getattr__(self, name):
            return getattr(self.of, name)

        def per_user_vector(self, state, episodes):
            rows = self.of.per_user_vector(state, episodes)
            return rows if len(rows) < 250 else 0 * rows  # the auditor's own calls are of canaries alone

    agent = dataclasses.replace(canaries(), agent=Deaf(AGENT))
    one = agent(np.zeros(100, bool), np.random.default_rng(3))
    two = agent(np.ones(100, bool), np.random.default_rng(3))
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) == 100
