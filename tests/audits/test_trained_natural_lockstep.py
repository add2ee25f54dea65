"""Lockstep of natural gradients: the honest training is consistent, and every mutant is found."""

import dataclasses
import math

import numpy as np
import pytest

from privcheck_algorithms.trained import (
    CART_POLE,
    PRIVATE_NATURAL_GRADIENT,
    NaturalGradient,
    SimulatedUsers,
    TanhPolicy,
    train,
)
from privcheck_algorithms.trained.policy_gradient import VECTORS, policy_gradients, weigh
from privcheck_algorithms.trained.training import clipped_sums
from privcheck_audits.lockstep.training import audit_lockstep, extreme_pairs, leaving

DECLARED = PRIVATE_NATURAL_GRADIENT.declare({})
AGENT = NaturalGradient(task=CART_POLE, policy=TanhPolicy(inputs=4, actions=2, units=4), references=16)
VALUES = DECLARED.values({"K": 240, "B": 40, "mu": 20})  # little noise: parameters follow the sums
USER = 1


def honest(agent):
    def procedure(users, noise):
        return leaving(train(agent, users, declaration=DECLARED, values=VALUES, noise=noise))

    return procedure


def audit(procedure, *, user=USER):
    pairs = extreme_pairs(SimulatedUsers(task=CART_POLE, seed=0), user)
    return audit_lockstep(procedure, pairs, declaration=DECLARED, values=VALUES)


@pytest.mark.parametrize("user", [0, USER, 47, 239])
def test_the_training_is_consistent(user):
    """Opposite actions have opposite gradients, 2C·√(1 − q) apart if both are of full length."""
    found = audit(honest(AGENT), user=user)
    assert found.findings == ()
    assert found.allowed == {VECTORS: 6.0}
    assert 1 < found.moved[VECTORS] <= 6
    if user < 40:  # of the first batch, whose policy is uniform
        assert found.moved[VECTORS] == pytest.approx(6 * math.sqrt(0.85), rel=0.01)


class Altered:
    """An agent that does one thing otherwise."""

    def __init__(self):
        self.kept = {}
        self.blocks, self.choose, self.result = AGENT.blocks, AGENT.choose, AGENT.result

    def begin(self, plan):
        self.kept.clear()
        return AGENT.begin(plan)

    def per_user_vector(self, state, episodes):
        return AGENT.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        return AGENT.update(state, sums, plan)


def seen_scores(state, episodes):
    """Scores at the users' own observations, one row a step."""
    steps = episodes.observations[:, :1]  # the first of each user
    return AGENT.policy.gradients(state.parameters, steps, np.ones((len(steps), 1, 1)))


class FisherOfUsers(Altered):
    """Fisher's information of the batch's observations, as everybody's natural gradient has it."""

    def per_user_vector(self, state, episodes):
        _, sizes, vectors = np.linalg.svd(seen_scores(state, episodes), full_matrices=False)
        mine = vectors[:5].T / (0.1 + sizes[:5] / len(episodes.users) ** 0.5)
        return AGENT.per_user_vector(dataclasses.replace(state, directions=mine), episodes)


class NextDirectionsOfUsers(Altered):
    """The next batch's directions are of this batch's observations."""

    def per_user_vector(self, state, episodes):
        self.kept["scores"] = seen_scores(state, episodes)
        return AGENT.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        _, _, vectors = np.linalg.svd(self.kept["scores"], full_matrices=False)
        return dataclasses.replace(AGENT.update(state, sums, plan), directions=vectors[:5].T)


class StepByExactLength(Altered):
    """The step is divided by the length of the exact gradient: a trust region that sees data."""

    def per_user_vector(self, state, episodes):
        rows = AGENT.per_user_vector(state, episodes)
        self.kept["length"] = float(np.linalg.norm(rows.mean(axis=0)))
        return rows

    def update(self, state, sums, plan):
        return dataclasses.replace(AGENT, rate=0.1 / (1 + self.kept["length"])).update(state, sums, plan)


class LineSearch(Altered):
    """A step is taken back if exact returns were lower than before, as in TRPO."""

    def per_user_vector(self, state, episodes):
        self.kept["best"] = max(self.kept.get("now", 0.0), self.kept.get("best", 0.0))
        self.kept["now"] = float(episodes.returns.mean())
        return AGENT.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        after = AGENT.update(state, sums, plan)
        return (
            after if self.kept["now"] >= self.kept["best"] else dataclasses.replace(after, parameters=state.parameters)
        )


class StandardAdvantages(Altered):
    """Vectors over their deviation in the batch."""

    def per_user_vector(self, state, episodes):
        rows = AGENT.per_user_vector(state, episodes)
        return rows / (rows.std(axis=0) + 1e-8)


@pytest.mark.parametrize(
    ("mutant", "says"),
    [
        (FisherOfUsers, "one user moves"),
        (StandardAdvantages, "one user moves"),
        (NextDirectionsOfUsers, "computed from data"),
        (StepByExactLength, "computed from data"),
        (LineSearch, "computed from data"),
    ],
)
def test_agents_that_leak_are_found(mutant, says):
    found = [one for user in (USER, 39, 79) for one in audit(honest(mutant()), user=user).findings]
    assert any(says in one for one in found)


def test_the_wrapper_itself_is_innocent():
    assert audit(honest(Altered())).consistent


def test_directions_after_clipping_are_found(monkeypatch):
    """Clipped to C in the parameters' space and then stretched by W, a vector is as long as W makes it."""

    class Stretched(Altered):
        def per_user_vector(self, state, episodes):
            gradients, means = policy_gradients(
                CART_POLE, AGENT.policy, state.parameters, episodes, discount=0.98, baseline=state.baseline
            )
            rows = weigh(gradients, means, norm=3.0, share=0.15)
            return np.concatenate([rows[:, :-1] @ state.directions, rows[:, -1:]], axis=1)

    def summed(vectors, plan):
        return {VECTORS: vectors.sum(axis=0)}

    assert audit(honest(Stretched())).consistent  # the training clips again
    monkeypatch.setattr("privcheck_algorithms.trained.training.clipped_sums", summed)
    assert any("one user moves" in one for one in audit(honest(Stretched())).findings)
    assert clipped_sums is not summed
