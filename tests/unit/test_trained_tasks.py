"""The vectorised tasks against Gymnasium's own, step by step, and batched episodes against one user at a time."""

import gymnasium
import numpy as np
import pytest

from privcheck.errors import UnknownNameError
from privcheck_algorithms.trained import policies, tasks
from privcheck_algorithms.trained.policy_gradient import draw_rows

TASKS = list(tasks.TASKS.values())
WIDE = {
    "cart-pole": ([-2.5, -3, -0.25, -3], [2.5, 3, 0.25, 3]),
    "acrobot": ([-np.pi, -np.pi, -13, -29], [np.pi, np.pi, 13, 29]),
    "mountain-car": ([-1.2, -0.07], [0.6, 0.07]),
    "pendulum": ([-9.0, -8.0], [9.0, 8.0]),
}


def as_gymnasium(task, action):
    """Pendulum's torque is a vector."""
    return np.array([float(action)]) if task.name == "pendulum" else int(action)


@pytest.mark.parametrize("task", TASKS, ids=lambda one: one.name)
def test_one_step_is_gymnasium_s(task):
    own = gymnasium.make(task.gymnasium).unwrapped
    rng = np.random.default_rng(0)
    states = rng.uniform(*WIDE[task.name], size=(1500, len(task.low)))
    actions = np.array(task.actions)[rng.integers(len(task.actions), size=1500)]
    after, rewards, ended = task.step(states, actions)
    seen = task.observe(after)
    for state, action, following, given, end, shown in zip(states, actions, after, rewards, ended, seen, strict=True):
        own.reset()
        own.state = state.copy()
        observed, reward, terminated, _, _ = own.step(as_gymnasium(task, action))
        apart = np.abs(np.asarray(own.state) - following)
        if task.name == "acrobot":  # π and −π are one angle
            apart[:2] = np.minimum(apart[:2], 2 * np.pi - apart[:2])
        assert apart.max() < 1e-9
        np.testing.assert_allclose(observed, shown, rtol=0, atol=1e-6 * max(1, np.abs(shown).max()))
        assert terminated == end
        assert reward == pytest.approx(given, rel=1e-12, abs=1e-12)
        assert task.rewards[0] <= given <= task.rewards[1]
    if task.signal != "rewards":
        assert 5 < ended.sum() < 1495  # both cases were compared


@pytest.mark.parametrize("task", TASKS, ids=lambda one: one.name)
def test_whole_episodes_are_gymnasium_s(task):
    """The same starts and actions for whole episodes: 500 steps do not drift apart by 10⁻⁶."""
    own = gymnasium.make(task.gymnasium)
    starts, uniforms = draw_rows(task, 5, range(6))
    states = task.start(starts)

    def run(choose):
        return tasks.play(task, choose, users=range(6), starts=starts, uniforms=uniforms)

    if task.name == "mountain-car":  # pushing with the speed reaches the goal
        first = tasks.play(
            task, lambda seen, *_: (seen[:, 1] >= 0) * 1, users=range(6), starts=starts, uniforms=uniforms
        )
    elif task.name == "acrobot":  # and so does pushing against the second link's turn
        first = tasks.play(
            task, lambda seen, *_: (seen[:, 5] >= 0) * 1, users=range(6), starts=starts, uniforms=uniforms
        )
    else:
        first = run(lambda _, u, __: (u >= 0.5) * 1)
    for user in range(6):
        own.reset()
        own.unwrapped.state = states[user].copy()
        total, ends, t = 0.0, False, 0
        while not ends:
            action = task.actions[first.actions[user, t]]
            observed, reward, terminated, truncated, _ = own.step(as_gymnasium(task, action))
            total, ends, t = total + reward, terminated or truncated, t + 1
            if not ends:
                shown = first.observations[user, t] * np.array(task.scale) + task.centre
                np.testing.assert_allclose(observed, shown, rtol=0, atol=1e-6 * max(1, np.abs(shown).max()))
        assert t == first.lengths[user]
        assert total == pytest.approx(first.returns[user])
        assert terminated == first.terminated[user]
    assert first.terminated.any() == (task.signal != "rewards")


@pytest.mark.parametrize("task", TASKS, ids=lambda one: one.name)
def test_the_limits_are_gymnasium_s(task):
    assert gymnasium.spec(task.gymnasium).max_episode_steps == task.limit
    own = gymnasium.make(task.gymnasium)
    if task.name == "pendulum":
        assert (float(own.action_space.low[0]), float(own.action_space.high[0])) == (
            min(task.actions),
            max(task.actions),
        )
    else:
        assert set(task.actions) <= set(range(own.action_space.n))
    assert own.observation_space.shape == (task.inputs,)
    starts = np.stack([own.unwrapped.reset(seed=i) and own.unwrapped.state for i in range(200)])
    assert (starts >= np.array(task.low) - 1e-7).all()
    assert (starts <= np.array(task.high) + 1e-7).all()
    assert starts.max(axis=0) == pytest.approx(task.high, abs=0.02)  # not a part of the range


@pytest.mark.parametrize("task", TASKS, ids=lambda one: one.name)
def test_a_user_plays_the_same_episode_alone_and_in_a_batch(task):
    policy = policies.TanhPolicy(inputs=task.inputs, actions=len(task.actions), units=4)
    parameters = np.random.default_rng(1).normal(size=policy.dimension)

    def choose(seen, uniforms, _):
        return policies.sampled(policy.logits(parameters, seen), uniforms)

    starts, uniforms = draw_rows(task, 2, range(20))
    whole = tasks.play(task, choose, users=range(20), starts=starts, uniforms=uniforms)
    for user in (0, 7, 19):
        mine = slice(user, user + 1)
        alone = tasks.play(task, choose, users=range(user, user + 1), starts=starts[mine], uniforms=uniforms[mine])
        n = alone.lengths[0]
        assert n == whole.lengths[user]
        np.testing.assert_array_equal(alone.actions[0], whole.actions[user, :n])
        np.testing.assert_allclose(alone.observations[0], whole.observations[user, :n], rtol=0, atol=1e-9)
        for part in (whole.observations, whole.actions, whole.rewards):
            assert not part[user, n:].any()


def test_users_have_their_own_streams_whatever_the_batch():
    one, two = draw_rows(tasks.CART_POLE, 3, range(10, 20)), draw_rows(tasks.CART_POLE, 3, range(15, 17))
    np.testing.assert_array_equal(one[1][5:7], two[1])
    np.testing.assert_array_equal(one[0][5:7], two[0])
    assert len(np.unique(one[1])) == one[1].size


def test_unknown_task():
    assert tasks.task("acrobot") is tasks.ACROBOT
    with pytest.raises(UnknownNameError, match="cart-pole"):
        tasks.task("cartpole")


def test_pendulum_is_the_same_in_a_mirror():
    """What `MirrorPolicy` is for: the mirror turns the angle, the speed and the torque over, and no reward."""
    task, rng = tasks.PENDULUM, np.random.default_rng(6)
    states, actions = rng.uniform(*WIDE["pendulum"], size=(500, 2)), rng.choice(task.actions, size=500)
    after, rewards, _ = task.step(states, actions)
    mirrored, same, _ = task.step(-states, -actions)
    np.testing.assert_allclose(mirrored, -after, rtol=0, atol=1e-12)
    np.testing.assert_allclose(same, rewards, rtol=0, atol=1e-9)
    np.testing.assert_allclose(task.scaled(mirrored), task.scaled(after) * [1, -1, -1], rtol=0, atol=1e-12)
