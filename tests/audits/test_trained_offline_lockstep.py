"""Lockstep of agents on logged episodes: the honest ones are consistent, and every mutant is found."""

import dataclasses

import numpy as np
import pytest

from privcheck_algorithms.trained import (
    CART_POLE,
    PRIVATE_AWR,
    PRIVATE_FITTED_Q,
    PRIVATE_MODEL_PLANNING,
    RULES,
    AdvantageWeighted,
    FittedQ,
    LinearPolicy,
    LoggedUsers,
    ModelPlanning,
    SimulatedUsers,
    advantage_weighted,
    simulated_sample,
    train,
)
from privcheck_algorithms.trained import training as module
from privcheck_algorithms.trained.policies import sampled
from privcheck_algorithms.trained.training import Plan
from privcheck_audits.lockstep.training import ExtremeUser, audit_lockstep, extreme_pairs, leaving

LINEAR = LinearPolicy(inputs=4, actions=2, constant=False)
BEHAVIOUR = np.array([-1.0, -1.0, 1.0, 1.0])
AWR = AdvantageWeighted(task=CART_POLE, policy=LINEAR, temperature=0.05)
Q = FittedQ(task=CART_POLE, policy=LINEAR)
MODEL = ModelPlanning(task=CART_POLE, policy=LINEAR, rules=RULES["cart-pole"], imagined=500)
# little noise, so that what is learnt follows the sums
CASES = {
    "awr": (AWR, PRIVATE_AWR, {"K": 120, "rate": "1/3", "T": 8, "mu": 20}),
    "cloning": (dataclasses.replace(AWR, temperature=None), PRIVATE_AWR, {"K": 120, "rate": "1/3", "T": 8, "mu": 20}),
    "q": (Q, PRIVATE_FITTED_Q, {"K": 120, "B": 40, "mu": 20}),
    "model": (MODEL, PRIVATE_MODEL_PLANNING, {"K": 120, "B": 60, "mu": 20}),
}


def logged(seed=0):
    def drawn(seen, uniforms, _):
        return sampled(LINEAR.logits(BEHAVIOUR, seen), uniforms)

    return LoggedUsers(episodes=SimulatedUsers(task=CART_POLE, seed=seed).play(drawn, range(120)))


def audit(case, *, agent=None, user=1, sample_seed=lambda _: 3, pairs=None):
    usual, algorithm, given = CASES[case]
    agent, declared = agent or usual, algorithm.declare({})
    at = declared.values(given | {"d": sum(usual.blocks.values())})

    def procedure(users, noise):
        sample = simulated_sample(sample_seed(users)) if declared.others else None
        return leaving(train(agent, users, declaration=declared, values=at, noise=noise, sample=sample))

    if pairs is None:
        short = ExtremeUser(of=logged(), user=user, action=0, steps=1)
        long = dataclasses.replace(short, action=1, steps=500, terminated=False)
        pairs = [*extreme_pairs(logged(), user), (short, long)]
    return audit_lockstep(procedure, pairs, declaration=declared, values=at)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("user", [1, 119])
def test_trainings_are_consistent(case, user):
    found = audit(case, user=user)
    assert found.findings == ()
    ((name, moved),) = found.moved.items()
    assert 0 < moved <= found.allowed[name] * (1 + 1e-9)


def test_opposite_users_attain_most_of_what_is_declared():
    """Opposite gradients of full length and equal moments: 2C·√(1 − q); of a huge user and an empty one, C."""
    found = audit("awr")
    assert found.allowed == {"vectors": 2.0}
    assert found.moved["vectors"] >= 2 * 0.7**0.5 * (1 - 1e-9)
    assert audit("q").moved["vectors"] >= 0.25 * (1 - 1e-9)


def test_a_user_in_no_sample_moves_nothing_and_one_in_several_moves_each_by_2C_at_most():
    found = audit("awr", pairs=[(logged(), logged())])
    assert found.consistent
    assert found.moved == {"vectors": 0.0}
    taken = [simulated_sample(3)(number).random(120) < 1 / 3 for number in range(8)]
    assert 2 <= sum(bool(one[1]) for one in taken) <= 7  # user 1 is in several rounds, not in all


class Altered:
    """An agent that does one thing otherwise."""

    def __init__(self, of):
        self.of, self.kept = of, {}
        self.blocks, self.choose, self.result = of.blocks, of.choose, of.result

    def begin(self, plan):
        self.kept.clear()
        return self.of.begin(plan)

    def per_user_vector(self, state, episodes):
        return self.of.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        return self.of.update(state, sums, plan)


class NormalisesWeights(Altered):
    """Weights of users by their returns, over the batch's mean weight, as advantage-weighted code often has it."""

    def per_user_vector(self, state, episodes):
        weights = np.exp(episodes.lengths / 500 / 0.05)
        return self.of.per_user_vector(state, episodes) * (weights / weights.mean())[:, np.newaxis]


class NormalisesAdvantages(Altered):
    """Signals less the batch's mean, over its deviation."""

    def per_user_vector(self, state, episodes):
        rewards = episodes.rewards.sum(axis=1)
        scaled = (rewards - rewards.mean()) / (rewards.std() + 1e-8)
        return self.of.per_user_vector(state, episodes) * scaled[:, np.newaxis]


class CriticFromData(Altered):
    """The critic's regression on exact moments."""

    def per_user_vector(self, state, episodes):
        moments = self.of.moments.vectors(episodes, self.of._rows).mean(axis=0)
        self.kept["critic"] = self.of.moments.solve(moments, ridge=0.01)[:, 0]
        return self.of.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        return dataclasses.replace(self.of.update(state, sums, plan), critic=self.kept["critic"])


class RealisedBatch(Altered):
    """The sample's own size in place of rate·K, when the training ends."""

    def per_user_vector(self, state, episodes):
        self.kept["size"] = int((episodes.lengths > 15).sum())
        return self.of.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        return self.of.update(state, sums, dataclasses.replace(plan, batch=max(1, self.kept["size"])))


class BestReturn(Altered):
    """Parameters are kept only while logged returns of the round rise."""

    def per_user_vector(self, state, episodes):
        self.kept["rises"] = float(episodes.returns.mean()) >= self.kept.get("best", -np.inf)
        self.kept["best"] = max(self.kept.get("best", -np.inf), float(episodes.returns.mean()))
        return self.of.per_user_vector(state, episodes)

    def update(self, state, sums, plan):
        after = self.of.update(state, sums, plan)
        return after if self.kept["rises"] else dataclasses.replace(after, parameters=state.parameters)


class CentresChanges(Altered):
    """Moments around the batch's mean."""

    def per_user_vector(self, state, episodes):
        rows = self.of.per_user_vector(state, episodes)
        return rows - rows.mean(axis=0)


class ScalesFeatures(Altered):
    """Observations over the batch's largest."""

    def per_user_vector(self, state, episodes):
        scale = np.abs(episodes.observations).max(axis=(0, 1)) + 1e-8
        return self.of.per_user_vector(state, dataclasses.replace(episodes, observations=episodes.observations / scale))


class PooledSteps(Altered):
    """Means over all steps of the batch, so that long episodes weigh more, times the number of users."""

    def per_user_vector(self, state, episodes):
        rows = self.of.per_user_vector(state, episodes)
        return rows * (episodes.lengths / episodes.lengths.mean())[:, np.newaxis]


@pytest.mark.parametrize(
    ("case", "mutant", "says"),
    [
        ("awr", NormalisesWeights, "one user moves"),
        ("awr", NormalisesAdvantages, "one user moves"),
        ("awr", CriticFromData, "computed from data"),
        ("awr", RealisedBatch, "computed from data"),
        ("cloning", RealisedBatch, "computed from data"),
        ("awr", BestReturn, "computed from data"),
        ("q", CentresChanges, "one user moves"),
        ("q", ScalesFeatures, "one user moves"),
        ("model", CentresChanges, "one user moves"),
        ("model", ScalesFeatures, "one user moves"),
        ("model", PooledSteps, "one user moves"),
    ],
)
def test_agents_that_leak_are_found(case, mutant, says):
    agent = CASES[case][0]
    assert audit(case, agent=Altered(agent)).consistent  # the wrapper itself is innocent
    assert any(says in one for one in audit(case, agent=mutant(agent)).findings)


def test_weights_without_a_cap_are_clipped_all_the_same_and_found_without_clipping(monkeypatch):
    free = dataclasses.replace(AWR, most=1e30)
    monkeypatch.setattr(advantage_weighted, "limited", lambda rows, _: rows)
    assert audit("awr", agent=free).consistent
    monkeypatch.setattr(module, "clipped_sums", lambda rows, plan: {plan.blocks[0].name: rows.sum(axis=0)})
    assert any("vectors: one user moves" in one for one in audit("awr", agent=free).findings)


def test_a_user_in_two_batches_is_found(monkeypatch):
    monkeypatch.setattr(Plan, "members", lambda plan: (range(38 * i, 38 * i + 40) for i in range(plan.batches)))
    assert any("play more than one episode" in one for one in audit("q", user=39).findings)


def test_a_sample_that_depends_on_data_is_found():
    """Another sample for other data: the sums differ by more than one user's vector."""
    found = audit("awr", sample_seed=lambda users: int(users.play(None, range(120)).actions.sum()))
    assert any("one user moves" in one for one in found.findings)
