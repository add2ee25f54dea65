"""Exact planning in tabular models: the true value of a policy, the optimum, and simulated users.

Everything here sees a known model and no data; it is the ground truth that runs and reports compare with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.trajectories import Trajectories

_SLACK = 1e-9  # by which probabilities may miss a sum of 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TabularMDP:
    """A finite model with stationary transitions and rewards in [0, 1].

    Attributes:
        transition: (S, A, S) probabilities P(s′ | s, a); not copied.
        reward: r(s, a, s′) in [0, 1], broadcastable to (S, A, S).
        initial: (S,) law of the first state.
        expected_reward: (S, A) mean of r(s, a, s′) over s′, computed.

    Raises:
        ParameterError: A shape is wrong, rows are not probabilities, or a reward is not in [0, 1].
    """

    transition: NDArray[np.float64]
    reward: NDArray[np.float64]
    initial: NDArray[np.float64]
    expected_reward: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        shape = self.transition.shape
        if len(shape) != 3 or shape[0] != shape[2] or 0 in shape:
            raise ParameterError(f"expected transition of shape (S, A, S), got {shape}", name="transition")
        _refuse_unless_probabilities("transition", self.transition)
        if self.initial.shape != shape[:1]:
            raise ParameterError(f"expected initial of shape {shape[:1]}, got {self.initial.shape}", name="initial")
        _refuse_unless_probabilities("initial", self.initial)
        table = reward_table(self.reward, *shape[:2])
        for name in ("transition", "reward", "initial"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        expected = np.einsum("ijk,ijk->ij", self.transition, table)
        object.__setattr__(self, "expected_reward", _frozen(np.clip(expected, 0.0, 1.0)))

    @property
    def states(self) -> int:
        """Returns S."""
        return int(self.transition.shape[0])

    @property
    def actions(self) -> int:
        """Returns A."""
        return int(self.transition.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """The best policy of a model at a horizon.

    Attributes:
        value: Its expected return from the initial law.
        policy: (H, S, A) action probabilities, one 1 a state; the lowest action among equals.
        values: (H + 1, S) optimal value from each step on; the last row is 0.
    """

    value: float
    policy: NDArray[np.float64]
    values: NDArray[np.float64]


def finite(mdp: TabularMDP, H: int) -> FiniteMDP:
    """Returns the model as one of H steps, for agents that learn as they act."""
    reward = np.broadcast_to(mdp.reward, mdp.transition.shape)
    return FiniteMDP(horizon=H, transition=mdp.transition[None], reward=reward[None], initial=mdp.initial)


def reward_table(reward: NDArray[np.float64], states: int, actions: int) -> NDArray[np.float64]:
    """Returns r(s, a, s′) as a read-only view (S, A, S), without copying.

    Raises:
        ParameterError: It cannot be broadcast to (S, A, S), or a value is not in [0, 1].
    """
    try:
        table = np.broadcast_to(reward, (states, actions, states))
    except ValueError:
        message = (
            f"expected rewards that broadcast to (S, A, S) = {(states, actions, states)}, got shape {reward.shape}"
        )
        raise ParameterError(message, name="reward") from None
    if not ((reward >= 0) & (reward <= 1)).all():
        raise ParameterError("expected rewards in [0, 1]", name="reward")
    return table


def one_hot(actions: NDArray[np.integer[Any]], num_actions: int) -> NDArray[np.float64]:
    """Returns the deterministic policy (H, S, A) that takes the given actions (H, S)."""
    policy: NDArray[np.float64] = np.eye(num_actions)[actions]
    return policy


def uniform(H: int, S: int, A: int) -> NDArray[np.float64]:
    """Returns the policy (H, S, A) that takes every action with probability 1/A."""
    return np.full((H, S, A), 1.0 / A)


def evaluate(mdp: TabularMDP, policy: NDArray[np.float64]) -> float:
    """Returns the exact expected return of a policy over its H steps, up to floating point.

    Carries the law of the state forward, over the state–action pairs that occur: a deterministic policy touches one row
    of the transition table a state.

    Args:
        mdp: The model.
        policy: (H, S, A) action probabilities.

    Raises:
        ParameterError: The policy has another shape, or its rows are not probabilities.
    """
    _refuse_policy(mdp, policy)
    rows = mdp.transition.reshape(-1, mdp.states)
    law, value = mdp.initial, 0.0
    for step in policy:
        pairs = (law[:, None] * step).ravel()  # the law of (s, a)
        value += float(pairs @ mdp.expected_reward.ravel())
        occur = np.flatnonzero(pairs)
        law = pairs @ rows if 2 * occur.size > pairs.size else pairs[occur] @ rows[occur]
    return value


def optimal(mdp: TabularMDP, H: int) -> Optimum:
    """Returns the optimum over H steps by backward induction, exact up to floating point."""
    if H < 1:
        raise ParameterError(f"expected H of at least 1, got {H}", name="H", given=H)
    rows = mdp.transition.reshape(-1, mdp.states)
    values = np.zeros((H + 1, mdp.states))
    actions = np.zeros((H, mdp.states), dtype=np.intp)
    for h in reversed(range(H)):
        quality = mdp.expected_reward + (rows @ values[h + 1]).reshape(mdp.expected_reward.shape)
        actions[h] = quality.argmax(axis=1)
        values[h] = quality.max(axis=1)
    return Optimum(value=float(mdp.initial @ values[0]), policy=one_hot(actions, mdp.actions), values=values)


def sample_trajectories(
    mdp: TabularMDP, policy: NDArray[np.float64], *, users: int, rng: np.random.Generator
) -> Trajectories:
    """Returns independent users who follow the policy for H steps.

    Inverse distribution functions, all users at once: three uniforms a user and step decide the first state, each
    action and each next state.

    Args:
        mdp: The model.
        policy: (H, S, A) action probabilities.
        users: How many.
        rng: The randomness.

    Raises:
        ParameterError: The policy does not fit the model, or there is no user.
    """
    _refuse_policy(mdp, policy)
    if users < 1:
        raise ParameterError(f"expected at least 1 user, got {users}", name="users", given=users)
    H = policy.shape[0]
    refuse_size(users, H)
    rows = mdp.transition.reshape(-1, mdp.states)
    table = np.broadcast_to(mdp.reward, mdp.transition.shape)
    states = np.empty((users, H + 1), dtype=np.int32)
    actions = np.empty((users, H), dtype=np.int32)
    rewards = np.empty((users, H))
    states[:, 0] = _draw(mdp.initial[None, :], np.zeros(users, dtype=np.intp), rng)
    for h in range(H):
        now = states[:, h].astype(np.intp)
        actions[:, h] = _draw(policy[h], now, rng)
        pair, inverse = np.unique(now * mdp.actions + actions[:, h], return_inverse=True)  # only rows that occur
        states[:, h + 1] = _draw(rows[pair], inverse, rng)
        rewards[:, h] = table[now, actions[:, h], states[:, h + 1]]
    return Trajectories(states=states, actions=actions, rewards=rewards, num_states=mdp.states, num_actions=mdp.actions)


def refuse_size(users: int, H: int) -> None:
    """Refuses more steps than fit into memory.

    Raises:
        ParameterError: More than 2·10⁸ steps in all, at 16 bytes each.
    """
    if users * H > 200_000_000:
        message = f"n = {users} users of H = {H} steps are {users * H} steps; at most 200000000 are sampled"
        raise ParameterError(message + ": make n or H smaller", name="H", given=H)


def _draw(rows: NDArray[np.float64], which: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[np.intp]:
    """Returns one index a user, drawn from that user's row: the first whose cumulated probability exceeds a uniform."""
    cumulated = rows.cumsum(axis=1)
    # below the total, also when rounded (a uniform is at most 1 − 2⁻⁵³), so an index of probability 0 is never reached
    uniforms = rng.random(which.size) * cumulated[which, -1]
    low = np.zeros(which.size, dtype=np.intp)
    high = np.full(which.size, rows.shape[1] - 1, dtype=np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        beyond = cumulated[which, middle] > uniforms
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, middle + 1)
    return low


def _refuse_policy(mdp: TabularMDP, policy: NDArray[np.float64]) -> None:
    if policy.ndim != 3 or policy.shape[0] < 1 or policy.shape[1:] != (mdp.states, mdp.actions):
        expected = f"(H, {mdp.states}, {mdp.actions})"
        raise ParameterError(f"expected a policy of shape {expected}, got {policy.shape}", name="policy")
    _refuse_unless_probabilities("policy", policy)


def _refuse_unless_probabilities(name: str, array: NDArray[np.float64]) -> None:
    # written so that NaN fails
    if not (array.min() >= 0 and np.abs(array.sum(axis=-1) - 1).max() <= _SLACK):
        raise ParameterError(f"expected {name} with rows of probabilities that sum to 1", name=name)


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    view = array.view()
    view.flags.writeable = False
    return view
