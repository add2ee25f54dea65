"""Gymnasium's CartPole-v1, Acrobot-v1, MountainCar-v0 and Pendulum-v1 for many users at a time.

The dynamics, time limits and rewards are Gymnasium's, in double precision; `tests/unit/test_trained_tasks.py` compares
them step by step. Two things are ours, both public and neither a function of data: actions are restricted to pushing
left or right with full force (and to none, where that is said), and observations are shifted and divided by fixed
numbers. `hiv.py` and `cancer.py` have tasks that are not in Gymnasium.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Final, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError, UnknownNameError
from privcheck.support.kernels import njit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
Step = Callable[[Array, Indices], tuple[Array, Array, Flags]]
Choose = Callable[[Array, Array, Indices], Indices]


def _elsewhere(*_: object) -> NoReturn:
    """Refuse to simulate: the task's users play elsewhere."""
    raise ParameterError("the task has no dynamics here: it is played by its own users", name="task")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An episodic task with continuous states, for many users at a time.

    A task that is played elsewhere, as in Gymnasium, has no dynamics: `low`, `high`, `step` and `observe` are left out.

    Attributes:
        name: The name that users type.
        gymnasium: Name of the same task in Gymnasium; empty if it has none.
        limit: Largest number of steps of an episode.
        low: (n,) the start is uniform between this state …
        high: … and this one.
        step: From states (users, n) and Gymnasium's actions (users,) to the next states, the rewards, and whether each
            next state is terminal.
        observe: From states (users, n) to Gymnasium's observations (users, inputs).
        centre: (inputs,) public numbers that are subtracted from observations before a policy sees them …
        scale: (inputs,) … and that they are then divided by.
        actions: Gymnasium's numbers of the actions that policies choose from.
        rewards: Public bounds of a step's reward.
        signal: What a user's signal is made of: the "goal" or the "failure" that a terminal state is, or the "rewards"
            of all steps, by `worth`.
        worth: From rewards to numbers in [0, 1], larger for larger rewards: public, and read for "rewards" alone.
        progress: From scaled observations (…, inputs) to numbers in [0, 1], 1 at the goal: public, and what tells
            episodes apart that do not reach it.
        begin: From uniform numbers (users, n) to starting states, where these are not uniform between `low` and `high`.
    """

    name: str
    gymnasium: str
    limit: int
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    step: Step = _elsewhere
    observe: Callable[[Array], Array] = _elsewhere
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    actions: tuple[int, ...]
    rewards: tuple[float, float]
    signal: Literal["goal", "failure", "rewards"]
    worth: Callable[[Array], Array] | None = None
    progress: Callable[[Array], Array] | None = None
    begin: Callable[[Array], Array] | None = None

    @property
    def inputs(self) -> int:
        """Number of coordinates of an observation."""
        return len(self.scale)

    def start(self, uniforms: Array) -> Array:
        """Starting states from uniform numbers (users, n) in [0, 1)."""
        if self.begin is not None:
            return self.begin(uniforms)
        low, high = np.array(self.low), np.array(self.high)
        return np.asarray(low + uniforms * (high - low))

    def scaled(self, states: Array) -> Array:
        """Observations as policies see them, (users, inputs)."""
        return np.asarray((self.observe(states) - np.array(self.centre)) / np.array(self.scale))


_ANGLE: Final = 12 * 2 * np.pi / 360  # CartPole's largest angle, radians


def _cart_pole(states: Array, actions: Indices) -> tuple[Array, Array, Flags]:
    """Euler step of .02 s: cart of 1 kg, pole of .1 kg and 2 × .5 m, force of ±10 N (Barto, Sutton & Anderson 1983)."""
    x, speed, angle, turn = states.T
    cos, sin = np.cos(angle), np.sin(angle)
    pushed = (np.where(actions == 1, 10.0, -10.0) + 0.05 * turn * turn * sin) / 1.1
    bends = (9.8 * sin - cos * pushed) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
    after = np.empty_like(states)
    after[:, 0] = x + 0.02 * speed
    after[:, 1] = speed + 0.02 * (pushed - 0.05 * bends * cos / 1.1)
    after[:, 2] = angle + 0.02 * turn
    after[:, 3] = turn + 0.02 * bends
    return after, np.ones(len(after)), (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > _ANGLE)


@njit(cache=True, nogil=True, error_model="numpy")
def _acrobot_slopes(
    first: float, second: float, turn1: float, turn2: float, torque: float
) -> tuple[float, float, float, float]:
    """Time derivatives of (θ₁, θ₂, θ̇₁, θ̇₂): Sutton & Barto's book, links of 1 kg and 1 m."""
    cos, sin = np.cos(second), np.sin(second)
    d1, d2 = 3.5 + cos, 1.25 + 0.5 * cos
    phi2 = 4.9 * np.sin(first + second)
    phi1 = -0.5 * turn2 * sin * (turn2 + 2.0 * turn1) + 14.7 * np.sin(first) + phi2
    speeds2 = (torque + d2 / d1 * phi1 - 0.5 * turn1 * turn1 * sin - phi2) / (1.25 - d2 * d2 / d1)
    return turn1, turn2, -(d2 * speeds2 + phi1) / d1, speeds2


@njit(cache=True, nogil=True, error_model="numpy")
def _acrobot_steps(states: Array, torques: Array) -> tuple[Array, Flags]:
    """Next states by a Runge-Kutta step of fourth order over .2 s, and whether the tip is at the goal's height."""
    after, high = np.empty_like(states), np.empty(len(states), np.bool_)
    for user in range(len(states)):
        a, b, c, d, u = states[user, 0], states[user, 1], states[user, 2], states[user, 3], torques[user]
        a1, b1, c1, d1 = _acrobot_slopes(a, b, c, d, u)
        a2, b2, c2, d2 = _acrobot_slopes(a + 0.1 * a1, b + 0.1 * b1, c + 0.1 * c1, d + 0.1 * d1, u)
        a3, b3, c3, d3 = _acrobot_slopes(a + 0.1 * a2, b + 0.1 * b2, c + 0.1 * c2, d + 0.1 * d2, u)
        a4, b4, c4, d4 = _acrobot_slopes(a + 0.2 * a3, b + 0.2 * b3, c + 0.2 * c3, d + 0.2 * d3, u)
        first = a + 0.1 / 3.0 * (a1 + 2.0 * (a2 + a3) + a4)
        second = b + 0.1 / 3.0 * (b1 + 2.0 * (b2 + b3) + b4)
        turn1 = c + 0.1 / 3.0 * (c1 + 2.0 * (c2 + c3) + c4)
        turn2 = d + 0.1 / 3.0 * (d1 + 2.0 * (d2 + d3) + d4)
        after[user, 0] = first - 2.0 * np.pi * np.floor(first / (2.0 * np.pi) + 0.5)  # to [−π, π]
        after[user, 1] = second - 2.0 * np.pi * np.floor(second / (2.0 * np.pi) + 0.5)
        after[user, 2] = min(max(turn1, -4.0 * np.pi), 4.0 * np.pi)
        after[user, 3] = min(max(turn2, -9.0 * np.pi), 9.0 * np.pi)
        high[user] = -np.cos(first) - np.cos(first + second) > 1.0
    return after, high


def _acrobot(states: Array, actions: Indices) -> tuple[Array, Array, Flags]:
    """One step with the torque −1, 0 or 1 on the joint."""
    after, high = _acrobot_steps(states, actions.astype(np.float64) - 1.0)
    return after, np.where(high, 0.0, -1.0), high


def _acrobot_observation(states: Array) -> Array:
    seen = np.empty((len(states), 6))
    np.cos(states[:, :2], out=seen[:, 0:4:2])
    np.sin(states[:, :2], out=seen[:, 1:4:2])
    seen[:, 4:] = states[:, 2:]
    return seen


def _mountain_car(states: Array, actions: Indices) -> tuple[Array, Array, Flags]:
    """Force of .001 against gravity of .0025 (Moore 1990)."""
    place, speed = states.T
    speed = np.clip(speed + (actions - 1) * 0.001 - 0.0025 * np.cos(3 * place), -0.07, 0.07)
    place = np.clip(place + speed, -1.2, 0.6)
    speed = np.where((place == -1.2) & (speed < 0), 0.0, speed)
    return np.stack([place, speed], axis=1), np.full(len(place), -1.0), (place >= 0.5) & (speed >= 0)


def _mountain_car_energy(seen: Array) -> Array:
    """Potential and kinetic energy, 0 at rest in the valley and 1 at rest at the goal."""
    place, speed = 1.2 * seen[..., 0] - 0.5, 0.07 * seen[..., 1]
    energy = 0.0025 / 3 * np.sin(3 * place) + 0.5 * speed * speed
    least, goal = -0.0025 / 3, 0.0025 / 3 * np.sin(1.5)
    return np.asarray(np.clip((energy - least) / (goal - least), 0.0, 1.0))


_HANGING: Final = np.pi**2  # cost of a step at rest below
_MOST_COST: Final = _HANGING + 0.1 * 8.0**2 + 0.001 * 2.0**2  # of a step of Pendulum


def _pendulum(states: Array, actions: Indices) -> tuple[Array, Array, Flags]:
    """Semi-implicit Euler step of .05 s of a rod of 1 kg and 1 m, g = 10, with the torque −2 or 2."""
    angle, turn = states.T
    torque = actions.astype(np.float64)
    upright = np.mod(angle + np.pi, 2 * np.pi) - np.pi
    cost = upright**2 + 0.1 * turn**2 + 0.001 * torque**2
    turn = np.clip(turn + 0.05 * (15.0 * np.sin(angle) + 3.0 * torque), -8.0, 8.0)
    return np.stack([angle + 0.05 * turn, turn], axis=1), -cost, np.zeros(len(angle), np.bool_)


def _pendulum_observation(states: Array) -> Array:
    return np.stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1]], axis=1)


def _pendulum_worth(rewards: Array) -> Array:
    """0 at rest below, and for all that costs more; 1 at rest above."""
    return np.asarray(np.clip(1.0 + rewards / _HANGING, 0.0, 1.0))


def _unchanged(states: Array) -> Array:
    return states


CART_POLE = Task(
    name="cart-pole",
    gymnasium="CartPole-v1",
    limit=500,
    low=(-0.05,) * 4,
    high=(0.05,) * 4,
    step=_cart_pole,
    observe=_unchanged,
    centre=(0.0,) * 4,
    scale=(2.4, 2.0, 0.2, 2.0),
    actions=(0, 1),
    rewards=(1.0, 1.0),
    signal="failure",
)
ACROBOT = Task(
    name="acrobot",
    gymnasium="Acrobot-v1",
    limit=500,
    low=(-0.1,) * 4,
    high=(0.1,) * 4,
    step=_acrobot,
    observe=_acrobot_observation,
    centre=(1.0, 0.0, 1.0, 0.0, 0.0, 0.0),  # at rest all inputs are 0
    scale=(1.0, 1.0, 1.0, 1.0, 1.0, 2.0),
    actions=(0, 2),
    rewards=(-1.0, 0.0),
    signal="goal",
)
MOUNTAIN_CAR = Task(
    name="mountain-car",
    gymnasium="MountainCar-v0",
    limit=200,
    low=(-0.6, 0.0),
    high=(-0.4, 0.0),
    step=_mountain_car,
    observe=_unchanged,
    centre=(-0.5, 0.0),
    scale=(1.2, 0.07),
    actions=(0, 2),
    rewards=(-1.0, -1.0),
    signal="goal",
    progress=_mountain_car_energy,
)
PENDULUM = Task(
    name="pendulum",
    gymnasium="Pendulum-v1",
    limit=200,
    low=(-np.pi, -1.0),
    high=(np.pi, 1.0),
    step=_pendulum,
    observe=_pendulum_observation,
    centre=(0.0, 0.0, 0.0),
    scale=(1.0, 1.0, 4.0),
    actions=(-2, 2),
    rewards=(-_MOST_COST, 0.0),
    signal="rewards",
    worth=_pendulum_worth,
)
TASKS: Final = {one.name: one for one in (CART_POLE, ACROBOT, MOUNTAIN_CAR, PENDULUM)}


def task(name: str) -> Task:
    """The task of that name, of Gymnasium's.

    Raises:
        UnknownNameError: There is no such task.
    """
    if name not in TASKS:
        raise UnknownNameError("task", name, list(TASKS))
    return TASKS[name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Episodes:
    """One episode of each of B users; what lies after an episode's end is 0.

    Attributes:
        observations: (B, T, inputs) scaled, before each step.
        actions: (B, T) places in the task's `actions`.
        rewards: (B, T).
        users: (B,) numbers of the users: public.
        lengths: (B,) number of steps.
        terminated: (B,) whether the episode reached a terminal state; otherwise the time limit ended it.
    """

    observations: Array
    actions: Indices
    rewards: Array
    users: Indices
    lengths: Indices
    terminated: Flags

    @property
    def returns(self) -> Array:
        """Sum of each user's rewards, (B,)."""
        return np.asarray(self.rewards.sum(axis=1))

    def padded(self, steps: int) -> Episodes:
        """The episodes with empty steps at the end, T = `steps` in all.

        Sums of floats depend in their last bits on how many numbers there are, zeros included: with a public number of
        steps, nothing computed from one user's row depends on how long others' episodes are.

        Raises:
            ParameterError: An episode is longer.
        """
        more = steps - self.actions.shape[1]
        if more < 0:
            message = f"an episode of {self.actions.shape[1]} steps, where at most {steps} are stated"
            raise ParameterError(f"{message}: state the true limit", name="steps", given=steps)
        wide = ((0, 0), (0, more))
        return replace(
            self,
            observations=np.pad(self.observations, (*wide, (0, 0))),
            actions=np.pad(self.actions, wide),
            rewards=np.pad(self.rewards, wide),
        )

    def rewards_to(self, limit: int) -> Array:
        """Rewards up to the time limit, (B, limit), 0 after an episode's end."""
        return np.pad(self.rewards, ((0, 0), (0, limit - self.rewards.shape[1])))

    def of(self, rows: Indices) -> Episodes:
        """The episodes of these rows, in their order."""
        return Episodes(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


def play(task: Task, choose: Choose, *, users: range, starts: Array, uniforms: Array) -> Episodes:
    """Let each user play one episode. A user's episode depends on their own row of random numbers and on `choose`.

    Args:
        task: The task.
        choose: From scaled observations (users, inputs), one uniform number each and the users' numbers to places in
            `task.actions`. It must treat every row by itself.
        users: The users' numbers, B of them.
        starts: (B, n) uniform numbers in [0, 1), for the starting states.
        uniforms: (B, limit) uniform numbers in [0, 1), for the actions.
    """
    states = task.start(starts)

    def step(_: Indices, numbers: Indices) -> tuple[Array, Array, Flags]:
        nonlocal states
        states, given, ended = task.step(states, numbers)
        states = states[~ended]
        return task.scaled(states), given, ended

    return record(task, choose, users=users, uniforms=uniforms, first=task.scaled(states), step=step)


Played = Callable[[Indices, Indices], tuple[Array, Array, Flags]]


def record(task: Task, choose: Choose, *, users: range, uniforms: Array, first: Array, step: Played) -> Episodes:
    """Let each user play one episode in some world, and record it.

    Args:
        task: The task's public facts.
        choose: As for `play`.
        users: The users' numbers, B of them.
        uniforms: (B, limit) uniform numbers in [0, 1), for the actions.
        first: (B, inputs) the first scaled observations.
        step: From the places of the users that are playing, and the numbers of their actions, to the scaled
            observations of those that go on, the rewards of all that are playing, and whether each has ended.
    """
    B = len(first)
    observations, actions = np.zeros((B, task.limit, task.inputs)), np.zeros((B, task.limit), np.int64)
    rewards, lengths, terminated = np.zeros((B, task.limit)), np.full(B, task.limit), np.zeros(B, np.bool_)
    numbers, playing, seen = np.array(task.actions), np.arange(B), first
    named = np.arange(users.start, users.stop, users.step)
    for t in range(task.limit):
        chosen = choose(seen, uniforms[playing, t], named[playing])
        observations[playing, t], actions[playing, t] = seen, chosen
        seen, given, ended = step(playing, numbers[chosen])
        rewards[playing, t] = given
        if ended.any():
            lengths[playing[ended]], terminated[playing[ended]] = t + 1, True
            playing = playing[~ended]
            if not playing.size:
                break
    last = int(lengths.max(initial=0))
    return Episodes(
        observations=observations[:, :last],
        actions=actions[:, :last],
        rewards=rewards[:, :last],
        users=named,
        lengths=lengths,
        terminated=terminated,
    )
