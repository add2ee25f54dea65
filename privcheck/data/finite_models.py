"""Finite models with known transitions and rewards: exact values, optimal and trivial policies, simulated users.

Indices are 0-based; a model may change with the step (transition and reward of shape (H, …)) or not (first axis 1).

Everything here uses a known model and no data; it is the ground truth that runs and reports compare with.

*Uniform* takes every action equally often. *Myopic* takes an action of the largest known mean reward. *Prior-only*
plans with the true mean rewards and the public prior: in a linear mixture the θ of least norm under which the rows of
Σ_i θ_i·ψ_i sum to 1 (1/d₁ each if all kernels are probabilities, the base kernel alone if the others perturb it);
elsewhere next states are uniform. Planning with next states that do not depend on the action is myopic, so that the two
are one policy in models without kernels. Equally good actions are taken equally often: taking the lowest would favour a
labelling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.trajectories import Trajectories
from privcheck.errors import ParameterError

_SLACK = 1e-9  # by which probabilities may miss a sum of 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FiniteMDP:
    """An episodic model with S states, A actions, H steps and rewards in [0, 1].

    Attributes:
        horizon: H, steps of an episode.
        transition: (H or 1, S, A, S) probabilities P_h(s′ | s, a); a first axis of 1 is the same law at every step.
        reward: r_h(s, a, s′) in [0, 1], broadcastable to the transitions' shape.
        initial: (S,) law of the first state.
        mean_reward: (H or 1, S, A) mean of r_h(s, a, s′) over s′, computed.

    Raises:
        ParameterError: A shape is wrong, rows are not probabilities, or a reward is not in [0, 1].
    """

    horizon: int
    transition: NDArray[np.float64]
    reward: NDArray[np.float64]
    initial: NDArray[np.float64]
    mean_reward: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.horizon, int) or isinstance(self.horizon, bool) or self.horizon < 1:
            raise ParameterError(f"H: expected a whole number of steps, at least 1, got {self.horizon!r}", name="H")
        for name in ("transition", "reward", "initial"):
            object.__setattr__(self, name, _table(name, getattr(self, name)))
        shape = self.transition.shape
        if len(shape) != 4 or shape[0] not in (1, self.horizon) or shape[1] != shape[3] or 0 in shape:
            message = f"expected P of shape (S, A, S), or (H, S, A, S) with H = {self.horizon}, got {_show(shape)}"
            raise ParameterError(message, name="transition")
        _refuse_rows("P(· | s, a)", self.transition)
        if self.initial.shape != shape[1:2]:
            message = f"expected a law of the first state of shape ({shape[1]},), got {self.initial.shape}"
            raise ParameterError(message, name="initial")
        _refuse_rows("the law of the first state", self.initial)
        object.__setattr__(self, "reward", _rewards(self.reward, shape))
        mean = np.einsum("hijk,hijk->hij", self.transition, self.reward)
        object.__setattr__(self, "mean_reward", _freeze(np.clip(mean, 0.0, 1.0)))

    @property
    def states(self) -> int:
        """The number of states S."""
        return int(self.transition.shape[1])

    @property
    def actions(self) -> int:
        """The number of actions A."""
        return int(self.transition.shape[2])

    def part(self, h: int) -> int:
        """Index of step h, counted from 0, on the first axis of transition and rewards."""
        return h if self.transition.shape[0] > 1 else 0

    @property
    def fixed_start(self) -> bool:
        """Whether every user starts in the same state."""
        return bool(self.initial.max() == 1.0)


def _table(name: str, array: object) -> NDArray[np.float64]:
    if not isinstance(array, np.ndarray) or not (
        np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
    ):
        got = getattr(array, "dtype", type(array).__name__)
        raise ParameterError(f"{name}: expected an array of numbers, got {got}", name=name)
    return _freeze(array.astype(np.float64, copy=array.flags.writeable))


def _rewards(reward: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        table = np.broadcast_to(reward, shape)
    except ValueError:
        message = f"expected rewards that broadcast to {_show(shape)}, got shape {reward.shape}"
        raise ParameterError(message, name="reward") from None
    bad = ~((reward >= 0) & (reward <= 1))  # NaN is bad
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        message = (
            f"expected rewards in [0, 1], got {reward[where]:g} at {where}, and {int(bad.sum()) - 1} more: rescale "
            "them with public bounds, (r - least)/(largest - least), before learning"
        )
        raise ParameterError(message, name="reward")
    return _freeze(table)


def _refuse_rows(name: str, array: NDArray[np.float64]) -> None:
    missed = np.abs(array.sum(axis=-1) - 1)
    bad = ~((array >= 0).all(axis=-1) & (missed <= _SLACK))  # NaN is bad
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
        row = np.asarray(array[where])
        message = (
            f"expected {name} to be probabilities, at least 0 with sum 1; got sum {row.sum():.12g}, least "
            f"{row.min():g} at {where or 'the only row'}"
        )
        raise ParameterError(message, name=name)


def _show(shape: tuple[int, ...]) -> str:
    return str(shape[1:] if len(shape) == 4 and shape[0] == 1 else shape)


def _freeze(array: NDArray[np.float64]) -> NDArray[np.float64]:
    view = array.view()
    view.flags.writeable = False
    return view


_FEW = 16  # users whose rows are compared as a whole: the calls of a binary search take longer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """The best policy of a model.

    Attributes:
        value: V*₁ from the law of the first state.
        values: (H + 1, S) V*_h; the last row is 0.
        actions: (H, S) an optimal action; the lowest of equally good ones.
    """

    value: float
    values: NDArray[np.float64]
    actions: NDArray[np.int64]


def reward_table(reward: NDArray[np.float64], states: int, actions: int) -> NDArray[np.float64]:
    """r(s, a, s′) as a read-only view (S, A, S), without copying.

    Raises:
        ParameterError: The rewards cannot be broadcast to (S, A, S), or a value is not in [0, 1].
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
    """The deterministic policy (H, S, A) that takes the given actions (H, S)."""
    policy: NDArray[np.float64] = np.eye(num_actions)[actions]
    return policy


def uniform(H: int, S: int, A: int) -> NDArray[np.float64]:
    """The policy (H, S, A) that takes every action with probability 1/A."""
    return np.full((H, S, A), 1.0 / A)


def evaluate(mdp: FiniteMDP, policy: NDArray[np.float64]) -> float:
    """Exact expected return of a policy, up to floating point.

    Propagates the law of the state forward, over the state–action pairs that occur: for a deterministic policy that is
    one row of the transition table per state.

    Args:
        mdp: The model.
        policy: (H, S, A) action probabilities.

    Raises:
        ParameterError: The policy has another shape, or its rows are not probabilities.
    """
    _refuse_policy(mdp, policy)
    law, value = mdp.initial, 0.0
    for h in range(mdp.horizon):
        rows = mdp.transition[mdp.part(h)].reshape(-1, mdp.states)
        pairs = (law[:, None] * policy[h]).ravel()  # the law of (s, a)
        value += float(pairs @ mdp.mean_reward[mdp.part(h)].ravel())
        occur = np.flatnonzero(pairs)
        law = pairs @ rows if 2 * occur.size > pairs.size else pairs[occur] @ rows[occur]
    return value


def solve(mdp: FiniteMDP) -> Optimum:
    """Compute the optimum by backward induction, exact up to floating point.

    >>> stay = np.eye(2)[None, :, None]  # (1, 2, 1, 2): the second state pays 1/4 a step
    >>> pays = np.array([0.0, 0.25])[None, :, None, None]
    >>> solve(FiniteMDP(horizon=3, transition=stay, reward=pays, initial=np.array([0.5, 0.5]))).value
    0.375
    """
    H, S = mdp.horizon, mdp.states
    values, actions = np.zeros((H + 1, S)), np.zeros((H, S), dtype=np.int64)
    for h in reversed(range(H)):
        mean = mdp.mean_reward[mdp.part(h)]
        quality = mean + (mdp.transition[mdp.part(h)].reshape(-1, S) @ values[h + 1]).reshape(mean.shape)
        actions[h] = quality.argmax(axis=1)
        values[h] = quality.max(axis=1)
    return Optimum(value=float(mdp.initial @ values[0]), values=values, actions=actions)


def sample_trajectories(
    mdp: FiniteMDP, policy: NDArray[np.float64], *, users: int, rng: np.random.Generator
) -> Trajectories:
    """Sample independent users who follow the policy.

    Inverse distribution functions, all users at once: uniforms for each user and step decide the first state, each
    action and each next state.

    Args:
        mdp: The model.
        policy: (H, S, A) action probabilities.
        users: Number of users.
        rng: The random generator.

    Raises:
        ParameterError: The policy does not fit the model, or there is no user.
    """
    _refuse_policy(mdp, policy)
    if users < 1:
        raise ParameterError(f"expected at least 1 user, got {users}", name="users", given=users)
    H = mdp.horizon
    refuse_size(users, H)
    states = np.empty((users, H + 1), dtype=np.int32)
    actions = np.empty((users, H), dtype=np.int32)
    rewards = np.empty((users, H))
    states[:, 0] = _draw(mdp.initial[None, :], np.zeros(users, dtype=np.intp), rng)
    for h in range(H):
        now, rows = states[:, h].astype(np.intp), mdp.transition[mdp.part(h)].reshape(-1, mdp.states)
        actions[:, h] = _draw(policy[h], now, rng)
        pairs = now * mdp.actions + actions[:, h]
        each = users <= _FEW  # a row a user; of many users only the rows that occur
        pair, which = (pairs, np.arange(users)) if each else np.unique(pairs, return_inverse=True)
        states[:, h + 1] = _draw(rows[pair], which, rng)
        rewards[:, h] = mdp.reward[mdp.part(h)][now, actions[:, h], states[:, h + 1]]
    return Trajectories(states=states, actions=actions, rewards=rewards, num_states=mdp.states, num_actions=mdp.actions)


def refuse_size(users: int, H: int) -> None:
    """Refuse more steps than fit into memory.

    Raises:
        ParameterError: More than 2·10⁸ steps in all, at 16 bytes each.
    """
    if users * H > 200_000_000:
        message = f"n = {users} users of H = {H} steps are {users * H} steps; at most 200000000 are sampled"
        raise ParameterError(message + ": make n or H smaller", name="H", given=H)


def _draw(rows: NDArray[np.float64], which: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw one index per user from that user's row: the first with a cumulated probability above a uniform."""
    cumulated = rows.cumsum(axis=1)
    # below the total, also when rounded (a uniform is at most 1 − 2⁻⁵³), so an index of probability 0 is never reached
    uniforms = rng.random(which.size) * cumulated[which, -1]
    if which.size <= _FEW:
        few: NDArray[np.intp] = (cumulated[which, :-1] <= uniforms[:, None]).sum(axis=1)
        return few
    low = np.zeros(which.size, dtype=np.intp)
    high = np.full(which.size, rows.shape[1] - 1, dtype=np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        beyond = cumulated[which, middle] > uniforms
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, middle + 1)
    return low


def _refuse_policy(mdp: FiniteMDP, policy: NDArray[np.float64]) -> None:
    expected = (mdp.horizon, mdp.states, mdp.actions)
    if policy.shape != expected:
        raise ParameterError(f"expected a policy of shape {expected}, got {policy.shape}", name="policy")
    # written so that NaN fails
    if not (policy.min() >= 0 and np.abs(policy.sum(axis=-1) - 1).max() <= _SLACK):
        raise ParameterError("expected policy with rows of probabilities that sum to 1", name="policy")


Array = NDArray[np.float64]
_EQUAL = 1e-9  # absolute, per step to go: actions whose returns differ by less are taken equally often


@dataclass(frozen=True, slots=True, kw_only=True)
class TrivialValues:
    """Exact expected returns of the policies that learn nothing, and of the optimum.

    Attributes:
        optimum: V*₁.
        uniform: Of the policy that takes every action equally often.
        myopic: Of the one that takes an action of the largest mean reward.
        prior_only: Of the one that plans with the true mean rewards and the public prior.
    """

    optimum: float
    uniform: float
    myopic: float
    prior_only: float

    @property
    def regret(self) -> dict[str, float]:
        """Regret of an episode by policy: uniform, myopic and prior-only."""
        values = {"uniform": self.uniform, "myopic": self.myopic, "prior-only": self.prior_only}
        return {name: max(self.optimum - value, 0.0) for name, value in values.items()}


def judge_trivial_policies(mdp: FiniteMDP, features: FeatureMap | None = None) -> TrivialValues:
    """Values of the trivial policies.

    Args:
        mdp: The model.
        features: Public features; only the kernels of a linear mixture are used.
    """
    equally = np.broadcast_to(uniform(1, mdp.states, mdp.actions), (mdp.horizon, mdp.states, mdp.actions))
    policies = {"uniform": equally, "myopic": make_myopic(mdp)}
    values = {name: evaluate(mdp, policy) for name, policy in policies.items()}
    kernels = None if features is None else features.kernels
    prior = values["myopic"] if kernels is None else evaluate(mdp, plan_with_prior(mdp, kernels))
    return TrivialValues(optimum=solve(mdp).value, prior_only=prior, **values)


def share_of_uniform(regret: float, uniform: float) -> float | None:
    """A regret as a share of the uniform policy's; None if that is 0: then nothing is left to learn.

    Args:
        regret: Regret of the judged policy.
        uniform: Regret of the uniform policy, over as many episodes.
    """
    return regret / uniform if uniform > _EQUAL else None


def state_trivial_regret(values: TrivialValues) -> dict[str, float]:
    """Facts about an environment: the regret of the other trivial policies as a share of the uniform policy's.

    Empty if the uniform policy is optimal.
    """
    regret = values.regret
    shares = {name: share_of_uniform(regret[name], regret["uniform"]) for name in ("myopic", "prior-only")}
    return {
        f"regret of the {name} policy, share of the uniform policy's": round(share, 6)
        for name, share in shares.items()
        if share is not None
    }


def make_myopic(mdp: FiniteMDP) -> Array:
    """The policy (H, S, A) that is greedy for the mean reward of the step."""
    best = _take_best(mdp.mean_reward, 1)
    return np.broadcast_to(best, (mdp.horizon, mdp.states, mdp.actions))


def plan_with_prior(mdp: FiniteMDP, kernels: Array) -> Array:
    """The policy (H, S, A) that is optimal for the true mean rewards and the prior's next states.

    Args:
        mdp: The model; only its mean rewards and number of steps are used.
        kernels: (d₁, S, A, S) known kernels ψ.
    """
    prior = mix_without_data(kernels)
    policy, after = np.empty((mdp.horizon, mdp.states, mdp.actions)), np.zeros(mdp.states)
    for h in reversed(range(mdp.horizon)):
        quality = mdp.mean_reward[mdp.part(h)] + prior @ after
        policy[h], after = _take_best(quality, mdp.horizon - h), quality.max(axis=1)
    return policy


def mix_without_data(kernels: Array) -> Array:
    """Σ_i θ_i·ψ_i (S, A, S) for the θ of least norm under which its rows come closest to a sum of 1."""
    sums = kernels.sum(axis=-1).reshape(len(kernels), -1).T
    theta = np.linalg.lstsq(sums, np.ones(len(sums)), rcond=None)[0]
    mixed: Array = np.tensordot(theta, kernels, axes=1)
    return mixed


def _take_best(quality: Array, steps: int) -> Array:
    best = (quality >= quality.max(axis=-1, keepdims=True) - _EQUAL * steps).astype(np.float64)
    shares: Array = best / best.sum(axis=-1, keepdims=True)
    return shares
