"""PRIVATE-MODEL-PLANNING: a model of the task from noisy moments of logged episodes, and a policy found inside it.

The change of a step's observation is regressed on public features of observation and action, from moments that are
released once (`moments`). The learnt model is a task as any other (`tasks.Task`), in which a policy is found by
evolution strategies on imagined users, as many as one likes: whatever is computed from released sums costs no privacy
(Abbeel & Ng 2005 plan in learnt linear models; the parametrisation of the planner is Salimans et al. 2017).

What the regression does not learn is public, and stated in `Rules`: when an episode ends, what a step pays, where
episodes start, in which features a change is linear. Agents that need less of that are `advantage_weighted` and
`fitted_q`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.declare.declaration import Declaration, Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.trained.evolution_strategies import EvolutionStrategies
from privcheck_algorithms.trained.evolution_strategies import declare as declare_planner
from privcheck_algorithms.trained.moments import Moments
from privcheck_algorithms.trained.policies import Policy, action_codes, most_likely
from privcheck_algorithms.trained.policy_gradient import (
    SOURCE,
    VECTORS,
    SimulatedUsers,
    declare_vectors,
    vector_parameters,
)
from privcheck_algorithms.trained.tasks import CART_POLE, PENDULUM, Array, Choose, Episodes, Flags, Indices, Task
from privcheck_algorithms.trained.training import Plan, Sums, no_noise, train

NAME: Final = "private-model-planning"
TITLE: Final = "PRIVATE-MODEL-PLANNING: a linear model from noisy moments of logged episodes, and planning inside it"

PARAMETERS: Final = vector_parameters(
    Parameter(name="B", default=10_000, kind="count", meaning="users whose moments are released, all at once"),
    Parameter(name="d", default=35, kind="count", meaning="coordinates of a vector: the moments of the regression"),
    norm=2,
)


def declare(_: Mapping[str, str]) -> Declaration:
    """The declaration: the moments of the model's regression, of one episode a user."""
    of = "moments of a user's steps"
    return declare_vectors(name=NAME, title=TITLE, of=of, parameters=PARAMETERS, joint=None)


PRIVATE_MODEL_PLANNING: Final = Algorithm(name=NAME, title=TITLE, source=SOURCE, declare=declare)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is known of a task beforehand, on scaled observations.

    Attributes:
        features: From observations (…, inputs) and action codes (…, n − 1) to features (…, k) in which the change of
            an observation over a step is nearly linear.
        change: (inputs,) sizes of a step's change: targets are divided by them.
        bounds: (inputs,) the largest size of each coordinate.
        ended: From observations (…, inputs) to whether they are terminal.
        pays: From observations to the rewards of steps that start there.
        project: From predicted observations to ones that can be.
    """

    features: Callable[[Array, Array], Array]
    change: tuple[float, ...]
    bounds: tuple[float, ...]
    ended: Callable[[Array], Flags]
    pays: Callable[[Array], Array]
    project: Callable[[Array], Array] = np.asarray


def _plain(seen: Array, codes: Array) -> Array:
    return np.concatenate([2.0 * seen, 2.0 * codes], axis=-1)


def _fallen(seen: Array) -> Flags:
    """A cart beyond 2.4 m, or a pole beyond 12°."""
    return np.asarray((np.abs(seen[..., 0]) > 1.0) | (np.abs(seen[..., 2]) > np.pi / 15 / 0.2))


def _one(seen: Array) -> Array:
    return np.ones(seen.shape[:-1])


def _turning(seen: Array, codes: Array) -> Array:
    """A point on a circle moves across its own direction."""
    cos, sin, turn = seen[..., :1], seen[..., 1:2], seen[..., 2:]
    return np.concatenate([sin, turn, turn * cos, turn * sin, 2.0 * codes], axis=-1)


def _never(seen: Array) -> Flags:
    return np.zeros(seen.shape[:-1], np.bool_)


def _pendulum_pays(seen: Array) -> Array:
    angle = np.arctan2(seen[..., 1], seen[..., 0])
    return np.asarray(-(angle**2 + 0.1 * (4.0 * seen[..., 2]) ** 2 + 0.004))


def _on_circle(seen: Array) -> Array:
    found = seen.copy()
    found[..., :2] /= np.maximum(np.linalg.norm(found[..., :2], axis=-1, keepdims=True), 1e-9)
    return found


RULES: Final[Mapping[str, Rules]] = {
    CART_POLE.name: Rules(
        features=_plain, change=(0.01, 0.1, 0.1, 0.15), bounds=(2.0, 5.0, 3.0, 5.0), ended=_fallen, pays=_one
    ),
    PENDULUM.name: Rules(
        features=_turning,
        change=(0.2, 0.2, 0.2),
        bounds=(1.0, 1.0, 2.0),
        ended=_never,
        pays=_pendulum_pays,
        project=_on_circle,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Modelled:
    """State of the learner: before the release, and after it.

    Attributes:
        batches: Batches so far.
        moments: Noisy average of all batches so far.
        coefficients: (k, inputs) of a step's change, over its size.
        parameters: Of the policy, planned after the last batch.
    """

    batches: int
    moments: Array
    coefficients: Array
    parameters: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlanning:
    """The agent (`privcheck_algorithms.trained.training.Agent`). All of its numbers are public.

    Attributes:
        task: The task: its start and the number of its actions are used; its dynamics are what is learnt.
        policy: The form of the greedy policy.
        rules: What is known beforehand.
        ridge: Of the regression.
        imagined: Users of the planner, in batches of 500.
        rate: Of the planner, as `EvolutionStrategies.rate`.
        seed: Of the imagined users: public.

    Raises:
        ParameterError: A number is out of range.
    """

    task: Task
    policy: Policy
    rules: Rules
    ridge: float = 0.003
    imagined: int = 10_000
    rate: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("ridge", self.ridge), ("rate", self.rate)):
            if not 0 < value < math.inf:
                raise ParameterError(f"{name}: expected a finite number above 0, got {value}", name=name, given=value)

    @property
    def moments(self) -> Moments:
        """Of the regression of an observation's change on features."""
        codes = np.zeros((1, len(self.task.actions) - 1))
        found = self.rules.features(np.zeros((1, self.task.inputs)), codes)
        return Moments(inputs=found.shape[-1], targets=self.task.inputs, constant=False)

    @property
    def blocks(self) -> Mapping[str, int]:
        """The moments."""
        return {VECTORS: self.moments.dimension}

    def begin(self, plan: Plan) -> Modelled:
        """State before any user."""
        moments = self.moments
        return Modelled(
            batches=0,
            moments=np.zeros(moments.dimension),
            coefficients=np.zeros((moments.inputs, moments.targets)),
            parameters=self.policy.initial(),
        )

    def choose(self, state: Modelled) -> Choose:
        """Most likely actions of the policy so far, which logged users do not follow."""
        return most_likely(self.policy, state.parameters)

    def per_user_vector(self, state: Modelled, episodes: Episodes) -> Array:
        """Moments of each user's own steps, (B, d): all but the last, after which nothing was observed."""

        def rows(some: Episodes) -> tuple[Array, Flags]:
            seen, number = some.observations, len(self.task.actions)
            codes = action_codes(some.actions[:, :-1], number=number)
            changes = (seen[:, 1:] - seen[:, :-1]) / np.array(self.rules.change)
            counts = np.arange(seen.shape[1] - 1) < some.lengths[:, np.newaxis] - 1
            return np.concatenate([self.rules.features(seen[:, :-1], codes), changes], axis=-1), counts

        return self.moments.vectors(episodes, rows)

    def update(self, state: Modelled, sums: Sums, plan: Plan) -> Modelled:
        """A new model; after the last batch, a policy for it."""
        number = state.batches + 1
        moments = state.moments + (sums[VECTORS] / plan.batch - state.moments) / number
        state = replace(state, batches=number, moments=moments)
        state = replace(state, coefficients=self.moments.solve(moments, ridge=self.ridge))
        return replace(state, parameters=self._planned(state)) if number == plan.batches else state

    def result(self, state: Modelled) -> Array:
        """The planned policy's parameters."""
        return state.parameters

    def learnt(self, state: Modelled) -> Task:
        """The model as a task, whose states are scaled observations."""
        task, rules = self.task, self.rules
        change, bounds, numbers = np.array(rules.change), np.array(rules.bounds), np.array(task.actions)

        def step(seen: Array, actions: Indices) -> tuple[Array, Array, Flags]:
            codes = action_codes(np.searchsorted(numbers, actions), number=len(numbers))
            after = seen + (rules.features(seen, codes) @ state.coefficients) * change
            after = rules.project(np.clip(after, -bounds, bounds))
            return after, rules.pays(seen), rules.ended(after)

        def begin(uniforms: Array) -> Array:
            return task.scaled(task.start(uniforms))

        return replace(
            task,
            gymnasium="",
            step=step,
            observe=np.asarray,
            centre=(0.0,) * task.inputs,
            scale=(1.0,) * task.inputs,
            begin=begin,
        )

    def _planned(self, state: Modelled) -> Array:
        """Parameters that evolution strategies find on imagined users of the model, without noise: it is released."""
        model = self.learnt(state)
        planner = EvolutionStrategies(task=model, policy=self.policy, rate=self.rate)
        declared = declare_planner({})
        values = declared.values({"K": self.imagined, "B": 500, "d": self.policy.dimension})
        users = SimulatedUsers(task=model, seed=self.seed)
        return train(planner, users, declaration=declared, values=values, noise=no_noise).parameters
