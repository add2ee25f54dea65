"""Lockstep of evolution strategies: the honest training attains what is declared, and every mutant is found."""

import dataclasses

import numpy as np
import pytest

from privcheck_algorithms.trained import (
    CART_POLE,
    PRIVATE_EVOLUTION_STRATEGIES,
    EvolutionStrategies,
    LinearPolicy,
    SimulatedUsers,
    evolution_strategies,
    train,
)
from privcheck_algorithms.trained.evolution_strategies import VECTORS, directions, scores
from privcheck_audits.lockstep.training import audit_lockstep, extreme_pairs, leaving

DECLARED = PRIVATE_EVOLUTION_STRATEGIES.declare({})
AGENT = EvolutionStrategies(task=CART_POLE, policy=LinearPolicy(inputs=4, actions=2, constant=False))
VALUES = DECLARED.values({"K": 240, "B": 40, "d": 4, "mu": 20})  # little noise: parameters follow the sums
USER = 1


def honest(agent):
    def procedure(users, noise):
        return leaving(train(agent, users, declaration=DECLARED, values=VALUES, noise=noise))

    return procedure


def audit(procedure, *, user=USER):
    pairs = extreme_pairs(SimulatedUsers(task=CART_POLE, seed=0), user)
    return audit_lockstep(procedure, pairs, declaration=DECLARED, values=VALUES)


@pytest.mark.parametrize("user", [0, USER, 47, 239])
def test_the_training_is_consistent_and_attains_the_sensitivity(user):
    """A user who falls at once and one who never falls have scores −.996 and 1."""
    found = audit(honest(AGENT), user=user)
    assert found.findings == ()
    assert found.allowed == {VECTORS: 2.0}
    assert found.moved[VECTORS] == pytest.approx(1.996, rel=1e-9)


class Altered:
    """An agent that does one thing otherwise."""

    def __init__(self):
        self.kept = {}
        self.blocks, self.choose, self.update, self.result = AGENT.blocks, AGENT.choose, AGENT.update, AGENT.result

    def begin(self, plan):
        self.kept.clear()
        return AGENT.begin(plan)

    def per_user_vector(self, state, episodes):
        return AGENT.per_user_vector(state, episodes)


class RanksScores(Altered):
    """Ranks within the batch in place of scores, as evolution strategies are often written."""

    def per_user_vector(self, state, episodes):
        found = scores(CART_POLE, episodes)
        ranks = 2 * found.argsort(kind="stable").argsort() / (len(found) - 1) - 1
        return ranks[:, np.newaxis] * directions(0, episodes.users, 4)


class StandardisesScores(Altered):
    """Scores less their mean, over their deviation in the batch."""

    def per_user_vector(self, state, episodes):
        found = scores(CART_POLE, episodes)
        return ((found - found.mean()) / (found.std() + 1e-8))[:, np.newaxis] * directions(0, episodes.users, 4)


class DifferencesOfPairs(Altered):
    """Half the pair's difference in the vector of either: a user is in two vectors, each as long as allowed."""

    def per_user_vector(self, state, episodes):
        found = scores(CART_POLE, episodes)
        apart = np.repeat(found[::2] - found[1::2], 2) * np.tile([1.0, -1.0], len(found) // 2)
        return apart[:, np.newaxis] * directions(0, episodes.users, 4)


class EliteUsers(Altered):
    """The next parameters are the mean of users above the batch's mean score, as in cross-entropy search."""

    def per_user_vector(self, state, episodes):
        found = scores(CART_POLE, episodes)
        self.kept["elite"] = episodes.users[found >= found.mean()]
        return AGENT.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        after = AGENT.update(state, sums, plan)
        return dataclasses.replace(after, parameters=directions(0, self.kept["elite"], 4).mean(axis=0))


class SpreadByReturns(Altered):
    """The rate follows the share of users who never fell."""

    def per_user_vector(self, state, episodes):
        self.kept["share"] = float((~episodes.terminated).mean())
        return AGENT.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        return dataclasses.replace(AGENT, rate=0.5 / (1 + self.kept["share"])).update(state, sums, plan)


class SecretDirections(Altered):
    """Directions by what users played: a user moves the others' parts of the sum by nothing, and their own by 2."""

    def per_user_vector(self, state, episodes):
        seed = int(episodes.actions.sum()) % 2**32  # of the whole batch
        return scores(CART_POLE, episodes)[:, np.newaxis] * directions(seed, episodes.users, 4)


@pytest.mark.parametrize(
    ("mutant", "says"),
    [
        (RanksScores, "one user moves"),
        (StandardisesScores, "one user moves"),
        (DifferencesOfPairs, "one user moves"),
        (SecretDirections, "one user moves"),
        (EliteUsers, "computed from data"),
        (SpreadByReturns, "computed from data"),
    ],
)
def test_agents_that_leak_are_found(mutant, says):
    agent = mutant()
    if mutant is EliteUsers or mutant is SpreadByReturns:
        agent.update = mutant.update.__get__(agent)
    found = [one for user in (USER, 39, 79) for one in audit(honest(agent), user=user).findings]
    assert any(says in one for one in found)
    assert audit(honest(Altered())).consistent  # the wrapper itself is innocent


def test_scores_without_bounds_are_clipped_and_the_sum_stays_within_what_is_declared(monkeypatch):
    """Scores of any size: the training clips every vector to C again, so that the price holds."""
    monkeypatch.setattr(evolution_strategies, "scores", lambda _, episodes: episodes.lengths - 250.0)
    found = audit(honest(AGENT))
    assert found.consistent
    assert found.moved[VECTORS] <= 2 * (1 + 1e-9)
