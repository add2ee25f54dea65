"""Tasks as environments: Gymnasium's own through its vector API, each user with a stream of their own."""

import dataclasses
from fractions import Fraction

import gymnasium
import numpy as np
import pytest

from privcheck.errors import ParameterError, PrivcheckError, TrajectoryError
from privcheck.runtime import registry
from privcheck_algorithms.trained.simulated import GymUsers, gym_environment, gym_task
from privcheck_algorithms.trained.tasks import ACROBOT, CART_POLE, TASKS, play

BOUNDS = {"limit": Fraction(30), "gain": Fraction(1), "penalty": Fraction(2)}


class Walk(gymnasium.Env):
    """A number that goes up or down by 1, or stays; 3 is the end. The reward is minus its size, halved."""

    observation_space = gymnasium.spaces.Box(np.array([-4.0, -np.inf]), np.array([4.0, np.inf]), dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(3, start=5)
    worst = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = float(self.np_random.integers(-2, 2)), 0.0
        return self._seen(), {}

    def step(self, action):
        assert action in (5, 6, 7)
        self.at, self.time = max(self.at + action - 6, -4.0), self.time + 1
        return self._seen(), -abs(self.at) / 2 + self.worst, self.at >= 3, False, {}

    def _seen(self):
        return np.array([self.at, self.time])


class Worse(Walk):
    worst = -1.0


class Blind(Walk):
    def _seen(self):
        return np.array([np.nan, 0.0])


for name, made in {"Walk-v0": Walk, "Worse-v0": Worse, "Blind-v0": Blind}.items():
    gymnasium.register(f"privcheck-tests/{name}", entry_point=made, max_episode_steps=30, disable_env_checker=True)


def simulate(name, **given):
    return gym_environment(name).task({**BOUNDS, **given})


def left_or_right(_, uniforms, __):
    return (uniforms > 0.5) * 1


def up_and_down(_, uniforms, __):
    return np.minimum((uniforms * 3).astype(np.int64), 2)


def test_spaces_become_public_facts():
    task = simulate("privcheck-tests/Walk-v0").task
    assert (task.inputs, task.actions, task.limit) == (2, (5, 6, 7), 30)
    assert (task.centre, task.scale) == ((0.0, 0.0), (4.0, 1.0))  # the second coordinate has no bounds
    assert (task.rewards, task.signal) == ((-2.0, 1.0), "rewards")
    assert task.worth(np.array([-3.0, -2.0, 1.0])).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ParameterError, match="own users"):
        task.step(np.zeros((1, 2)), np.zeros(1, np.int64))


def test_episodes_are_those_of_single_environments():
    """Every user alone, in an environment of their own, by a plain loop."""
    users = GymUsers(task=simulate("privcheck-tests/Walk-v0").task, identity="privcheck-tests/Walk-v0", seed=3)
    found = users.play(up_and_down, range(4, 12))
    assert found.users.tolist() == list(range(4, 12))
    assert found.terminated.any()
    assert not found.terminated.all()
    for row, user in enumerate(range(4, 12)):
        stream = np.random.SeedSequence((3, user))
        env = gymnasium.make("privcheck-tests/Walk-v0")
        seen, _ = env.reset(seed=int(stream.generate_state(1)[0]))
        uniforms = np.random.default_rng(stream.spawn(1)[0]).random(30)
        for t in range(30):
            action = min(int(uniforms[t] * 3), 2)
            assert found.observations[row, t].tolist() == [seen[0] / 4, seen[1]]
            assert found.actions[row, t] == action
            seen, reward, ended, _, _ = env.step(5 + action)
            assert found.rewards[row, t] == reward
            if ended:
                break
        assert (found.lengths[row], found.terminated[row]) == (t + 1, ended)
        assert not found.rewards[row, t + 1 :].any()


def test_a_user_s_episode_does_not_depend_on_the_others():
    users = GymUsers(task=gym_task("CartPole-v1", limit=1, rewards=(0, 1)), identity="CartPole-v1", seed=0)
    several, alone = (users.play(left_or_right, asked) for asked in (range(6), range(2, 3)))
    n = int(alone.lengths[0])
    assert np.array_equal(several.observations[2, :n], alone.observations[0, :n])
    assert several.lengths[2] == n


@pytest.mark.parametrize("task", [CART_POLE, ACROBOT])
def test_known_tasks_keep_their_facts_and_agree_with_our_own_dynamics(task):
    """Gymnasium's users, whose starts our own dynamics are given, play the same episode."""
    found = gym_task(task.gymnasium, limit=7, rewards=(0, 1))
    assert dataclasses.replace(found, name=task.name) == task
    users = GymUsers(task=found, identity=task.gymnasium, seed=1)
    asked = range(3)
    theirs = users.play(left_or_right, asked)
    env = gymnasium.make(task.gymnasium)
    starts = []
    for user in asked:
        env.reset(seed=int(np.random.SeedSequence((1, user)).generate_state(1)[0]))
        starts.append(np.array(env.unwrapped.state))
    low, high = np.array(task.low), np.array(task.high)
    streams = [np.random.default_rng(np.random.SeedSequence((1, user)).spawn(1)[0]) for user in asked]
    rows, places = np.stack([one.random(task.limit) for one in streams]), (np.array(starts) - low) / (high - low)
    ours = play(task, left_or_right, users=asked, starts=places, uniforms=rows)
    n = int(min(ours.lengths.min(), 20))
    np.testing.assert_allclose(theirs.observations[:, :n], ours.observations[:, :n], rtol=0, atol=1e-5)
    if task is CART_POLE:
        assert theirs.lengths.tolist() == ours.lengths.tolist()


@pytest.mark.parametrize(
    ("name", "given", "error", "says"),
    [
        ("privcheck-tests/Worse-v0", {}, TrajectoryError, "--set penalty"),
        ("privcheck-tests/Walk-v0", {"penalty": Fraction(1, 10)}, TrajectoryError, "are -0.1 to 1"),
        ("privcheck-tests/Blind-v0", {}, TrajectoryError, "not finite"),
        ("privcheck-tests/Walk-v0", dict.fromkeys(["penalty", "gain"], Fraction(0)), ParameterError, "nothing apart"),
        ("Pendulum-v1", {}, ParameterError, "register the wrapped one"),
        ("FrozenLake-v1", {}, ParameterError, "box of numbers"),
        ("No-v1", {}, PrivcheckError, "no environment with this id"),
    ],
    ids=str,
)
def test_what_is_not_as_stated_is_refused(name, given, error, says):
    with pytest.raises(error, match=says):
        simulate(name, **given).users(0).play(up_and_down, range(8))


def test_tasks_are_registered():
    for name in [*TASKS, "hiv", "cancer"]:
        found = registry.environment(name).task({})
        assert found.name == found.task.name == name
        assert found.users(0).task is found.task
        assert found.steps == found.task.limit
    assert registry.usual_environment("tasks") == "cart-pole"
    assert registry.environment("gym:CartPole-v1").task(BOUNDS).task.signal == "failure"
