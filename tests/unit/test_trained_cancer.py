"""Cancer dosing against a loop over patients, its law of death, and its public bounds."""

import itertools
import math

import numpy as np
import pytest

from privcheck_algorithms.trained import CANCER, DosePolicy, EvolutionStrategies, PolicyGradient, SimulatedUsers
from privcheck_algorithms.trained.evolution_strategies import scores
from privcheck_algorithms.trained.policies import sampled
from privcheck_algorithms.trained.policy_gradient import discounted_signals
from privcheck_algorithms.trained.tasks import play

DOSES = [0, 0.25, 0.5, 0.75, 1]


def naive_episode(w0, m0, fate, doses):
    """Rewards of a patient until death or the sixth month, by the published equations."""
    w, m, borne, rewards = w0, m0, 0.0, []
    for dose in doses:
        nw = w + 0.1 * max(m, m0) + 1.2 * (dose - 0.5)
        nm = max(0.0, m + (0.15 * max(w, w0) - 1.2 * (dose - 0.5)) * (m > 0))
        borne += (math.exp(-4 + w + m) + math.exp(-4 + nw + nm)) / 2
        if math.exp(-borne) <= fate:
            return [*rewards, -60]
        reward = 5 if nw - w <= -0.5 else -5 if nw - w >= 0.5 else 0
        reward += 15 if nm == 0 else 5 if nm - m <= -0.5 else -5 if nm - m >= 0.5 else 0
        rewards.append(reward)
        w, m = nw, nm
    return rewards


def test_episodes_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    starts, plans = rng.random((400, 7)), rng.integers(5, size=(400, 6))
    month = itertools.count()

    def planned(_, __, users):
        return plans[users, next(month)]

    episodes = play(CANCER, planned, users=range(400), starts=starts, uniforms=np.zeros((400, 6)))
    died = 0
    for user in range(400):
        fate = starts[user, 5]
        wanted = naive_episode(2 * starts[user, 2], 2 * starts[user, 3], fate, [DOSES[a] for a in plans[user]])
        n = episodes.lengths[user]
        assert episodes.rewards[user, :n].tolist() == wanted
        assert episodes.terminated[user] == (wanted[-1] == -60)
        died += wanted[-1] == -60
    assert 100 < died < 390


def test_death_has_the_law_of_a_draw_every_month():
    """One patient's months under no treatment: P(alive after t) = exp(−Λ_t), 5 standard errors of 20 000 fates."""
    fates = np.random.default_rng(2).random(20_000)
    starts = np.full((20_000, 7), 0.4)
    starts[:, 5] = fates
    lengths = play(
        CANCER, lambda seen, _, __: np.zeros(len(seen), int), users=range(20_000), starts=starts,
        uniforms=np.zeros((20_000, 6)),
    ).lengths  # fmt: skip
    w = m = 0.8
    alive = 1.0
    for t in range(5):
        nw, nm = w + 0.1 * max(m, 0.8) - 0.6, m + 0.15 * max(w, 0.8) + 0.6
        alive *= math.exp(-(math.exp(w + m - 4) + math.exp(nw + nm - 4)) / 2)
        assert (lengths > t + 1).mean() == pytest.approx(alive, abs=5 * 0.5 / 20_000**0.5)
        w, m = nw, nm


def test_rewards_and_observations_are_within_public_bounds():
    users, policy = SimulatedUsers(task=CANCER, seed=3), DosePolicy(inputs=3, doses=tuple(DOSES))
    episodes = users.play(lambda seen, u, _: sampled(policy.logits(np.zeros(4), seen), u), range(3000))
    low, high = CANCER.rewards
    assert (low, high) == (-60, 20)
    assert episodes.rewards.min() == low
    assert episodes.rewards.max() == high
    raw = episodes.observations * np.array(CANCER.scale) + CANCER.centre
    assert raw.min() > -5
    assert raw.max() < 10
    lived = episodes.lengths.argmax()
    assert raw[lived, :, 2].tolist() == [0, 1, 2, 3, 4, 5]
    assert CANCER.worth(np.array([-60, -30, 0, 20])).tolist() == [0, 0, 0.6, 1]


@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_months_after_death_count_as_rewards_of_nothing(discount):
    """A score is the mean worth of six months, and a signal that of the months that are left, dead or alive."""
    users, policy = SimulatedUsers(task=CANCER, seed=4), DosePolicy(inputs=3, doses=tuple(DOSES))
    search = EvolutionStrategies(task=CANCER, policy=policy)
    episodes = users.play(lambda seen, u, _: sampled(policy.logits(np.zeros(4), seen), u), range(60))
    signals, live = discounted_signals(CANCER, episodes, discount=discount)
    found = scores(search.task, episodes)
    for user in range(60):
        n = episodes.lengths[user]
        worth = [min(max((r + 30) / 50, 0), 1) for r in [*episodes.rewards[user, :n], *[0] * (6 - n)]]
        assert found[user] == pytest.approx(2 * sum(worth) / 6 - 1)
        for t in range(n):
            weights = [discount**k for k in range(6 - t)]
            wanted = sum(w * x for w, x in zip(weights, worth[t:], strict=True)) / sum(weights)
            assert signals[user, t] == pytest.approx(wanted)
        assert live[user].tolist() == [t < n for t in range(live.shape[1])]
        assert (signals[user, n:] == 0).all()


def test_an_agent_takes_it():
    agent = PolicyGradient(task=CANCER, policy=DosePolicy(inputs=3, doses=tuple(DOSES)))
    assert dict(agent.blocks) == {"vectors": 5}
