"""Simulated users of tasks as environments: `--env cart-pole`, `--env gym:CartPole-v1`.

The tasks of `tasks.py` and `hiv.py` are played in their own dynamics. `gym:ID` is played in Gymnasium itself, through
its vector API, for every task with a box of observations and discrete actions; each user has a random stream of their
own. What Gymnasium does not say is stated by the user, as a public fact that each episode is checked against: the time
limit, and the bounds of a step's reward. An observation that is not finite is refused too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from privcheck.errors import ParameterError, TrajectoryError
from privcheck.runtime.registry import Environment
from privcheck.runtime.trained import Simulated
from privcheck.terms.parameters import Parameter
from privcheck_algorithms.environments import tables
from privcheck_algorithms.trained.cancer import CANCER
from privcheck_algorithms.trained.hiv import HIV
from privcheck_algorithms.trained.policy_gradient import SimulatedUsers
from privcheck_algorithms.trained.tasks import (
    ACROBOT,
    CART_POLE,
    MOUNTAIN_CAR,
    PENDULUM,
    TASKS,
    Array,
    Choose,
    Episodes,
    Flags,
    Indices,
    Task,
    record,
)


def environment_of(task: Task, *, title: str, source: str, usual: bool = False) -> Environment:
    """A task with dynamics of its own as an environment."""

    def simulate(_: Mapping[str, Fraction]) -> Simulated:
        return Simulated(
            name=task.name,
            description=f"{title}: {_sizes(task)}",
            task=task,
            users=lambda seed: SimulatedUsers(task=task, seed=seed),
            steps=task.limit,
            facts=_facts(task),
        )

    return Environment(
        name=task.name,
        title=title,
        source=source,
        parameters=(),
        task=simulate,
        usual_for=("tasks",) if usual else (),
    )


def _sizes(task: Task) -> str:
    return f"{task.inputs} observed numbers, {len(task.actions)} actions, at most {task.limit} steps"


def _facts(task: Task) -> dict[str, str | int | float]:
    least, most = task.rewards
    return {"observed numbers": task.inputs, "actions": len(task.actions), "rewards": f"{least:g} to {most:g} a step"}


_OWN: Final = "the same dynamics as Gymnasium's"
CART_POLE_USERS: Final = environment_of(CART_POLE, title="CartPole", source=f"{_OWN} CartPole-v1", usual=True)
ACROBOT_USERS: Final = environment_of(ACROBOT, title="Acrobot with two torques", source=f"{_OWN} Acrobot-v1")
MOUNTAIN_CAR_USERS: Final = environment_of(
    MOUNTAIN_CAR, title="MountainCar with two pushes", source=f"{_OWN} MountainCar-v0"
)
PENDULUM_USERS: Final = environment_of(PENDULUM, title="Pendulum with two torques", source=f"{_OWN} Pendulum-v1")
CANCER_USERS: Final = environment_of(CANCER, title="Chemotherapy in five doses", source="Zhao, Kosorok & Zeng 2009")
HIV_USERS: Final = environment_of(HIV, title="Treatment of HIV patients", source="Adams et al. 2004")


def gym_environment(identity: str) -> Environment:
    """Gymnasium environment with an id such as CartPole-v1 or my_module:MyEnv-v0.

    Raises:
        PrivcheckError: Gymnasium is not installed.
        ParameterError: There is no such id, or the module that registers it cannot be imported.
    """
    table = tables.gym_environment(identity)
    return replace(
        table,
        task=lambda values: _simulate(identity, values),
        task_parameters=(
            Parameter(
                name="limit",
                default=1000,
                kind="count",
                meaning="largest number of steps of an episode, if it states none",
            ),
            Parameter(name="gain", default=1, kind="real", meaning="largest reward of a step"),
            Parameter(name="penalty", default=0, kind="real", meaning="largest cost of a step, minus its least reward"),
        ),
    )


def _simulate(identity: str, values: Mapping[str, Fraction]) -> Simulated:
    task = gym_task(identity, limit=int(values["limit"]), rewards=(-float(values["penalty"]), float(values["gain"])))
    return Simulated(
        name=f"gym:{identity}",
        description=f"Gymnasium's {identity}: {_sizes(task)}",
        task=task,
        users=lambda seed: GymUsers(task=task, identity=identity, seed=seed),
        steps=task.limit,
        facts=_facts(task),
    )


def gym_task(identity: str, *, limit: int, rewards: tuple[float, float]) -> Task:
    """Public facts of a task in Gymnasium: known ones as `tasks.py` states them, others from their spaces.

    Coordinates of other tasks with finite bounds are moved to [−1, 1]. Their signal is the mean worth of rewards, which
    are moved from their bounds to [0, 1].

    Args:
        identity: Its id.
        limit: Largest number of steps, if the environment states none.
        rewards: Bounds of a step's reward.

    Raises:
        ParameterError: Its spaces are not a box of numbers and finitely many actions.
    """
    for known in TASKS.values():
        if known.gymnasium == identity and known is not PENDULUM:  # whose actions are a box in Gymnasium
            return replace(known, name=f"gym:{identity}")
    env = tables.load_gymnasium().make(identity)
    try:
        box, actions, stated = env.observation_space, env.action_space, env.spec.max_episode_steps
    finally:
        env.close()
    vectors = type(box).__name__ == "Box" and len(box.shape) == 1
    if not vectors or type(actions).__name__ != "Discrete":
        message = f"gym:{identity}: its observations are {box} and its actions {actions}"
        raise ParameterError(
            f"{message}; expected a box of numbers (n,) and Discrete actions: wrap it, and register the wrapped one",
            name="env",
            given=identity,
        )
    least, most = rewards
    if not least < most:
        message = f"gym:{identity}: rewards from {least:g} to {most:g} tell nothing apart"
        raise ParameterError(f"{message}: set gain or penalty above 0", name="gain", given=most)
    low, high = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    bounded = (np.abs(low) < _HUGE) & (np.abs(high) < _HUGE) & (high > low)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    first = int(actions.start)
    return Task(
        name=f"gym:{identity}",
        gymnasium=identity,
        limit=limit if stated is None else int(stated),
        centre=tuple(((low + high) / 2).tolist()),
        scale=tuple(((high - low) / 2).tolist()),
        actions=tuple(range(first, first + int(actions.n))),
        rewards=rewards,
        signal="rewards",
        worth=lambda given: np.asarray(np.clip((given - least) / (most - least), 0.0, 1.0)),
    )


_HUGE: Final = 1e6  # of a box: wider ones state no scale


@dataclass(frozen=True, slots=True, kw_only=True)
class GymUsers:
    """Users of a task who play in Gymnasium. A user's randomness depends on the seed and on the user's number alone.

    Attributes:
        task: Its public facts.
        identity: Its id.
        seed: The seed.
    """

    task: Task
    identity: str
    seed: int

    def play(self, choose: Choose, users: range) -> Episodes:
        """Let these users play one episode each.

        Raises:
            TrajectoryError: An observation is not finite, or a reward is outside its stated bounds.
        """
        gymnasium = tables.load_gymnasium()
        streams = [np.random.SeedSequence((self.seed, user)) for user in users]
        seeds = [int(one.generate_state(1)[0]) for one in streams]
        uniforms = np.stack([np.random.default_rng(one.spawn(1)[0]).random(self.task.limit) for one in streams])
        several = gymnasium.make_vec(self.identity, num_envs=len(users), vectorization_mode="sync")
        every, (least, most) = np.full(len(users), self.task.actions[0], np.int64), self.task.rewards

        def step(playing: Indices, numbers: Indices) -> tuple[Array, Array, Flags]:
            every[playing] = numbers  # who has ended is reset, and not looked at again
            seen, rewards, ended, _, _ = several.step(every)
            given, over = np.asarray(rewards, np.float64)[playing], np.asarray(ended, np.bool_)[playing]
            outside = ~((given >= least) & (given <= most))
            if outside.any():
                message = f"{self.task.name}: a reward of {given[outside][0]:g}, stated are {least:g} to {most:g}"
                raise TrajectoryError(f"{message}: state its true bounds, --set penalty=… and --set gain=…")
            return self._scaled(np.asarray(seen)[playing[~over]]), given, over

        try:
            first = self._scaled(several.reset(seed=seeds)[0])
            return record(self.task, choose, users=users, uniforms=uniforms, first=first, step=step)
        finally:
            several.close()

    def _scaled(self, seen: Any) -> Array:
        given = np.asarray(seen, np.float64)
        if not np.isfinite(given).all():
            raise TrajectoryError(f"{self.task.name}: an observation is not finite, which no policy can see")
        return np.asarray((given - np.array(self.task.centre)) / np.array(self.task.scale))
