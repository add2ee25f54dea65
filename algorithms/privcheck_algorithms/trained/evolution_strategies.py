"""PRIVATE-EVOLUTION-STRATEGIES: antithetic perturbations of a policy's parameters, weighted by scores of episodes.

Every user plays one episode greedily with parameters of their own, θ ± s·√d·u: two users in a row have opposite signs
of one direction u, which is uniform on the unit sphere and follows from a public seed and the users' numbers. A user's
vector is ±C·f·u, where f in [−1, 1] is the score of their own episode. So no vector is longer than C, and nothing
is lost to clipping. The noisy sum over B, over C, points uphill on average; what two users of a pair have in
common cancels. Adam goes that way, and the last parameters are averaged (Salimans et al. 2017, arXiv:1703.03864, with
noise; ours: scores by a public scale in place of ranks, which depend on other users).

Only scores touch data, one number a user: the policy need not be differentiable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.declare.declaration import Declaration, Joint, Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.trained.policies import Policy, greedy
from privcheck_algorithms.trained.policy_gradient import SOURCE, VECTORS, declare_vectors, vector_parameters
from privcheck_algorithms.trained.rules import Adam, Rule
from privcheck_algorithms.trained.running import SMALL, UNITS, Trained, policy_reading
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes, Indices, Task
from privcheck_algorithms.trained.training import Plan, Sums

NAME: Final = "private-evolution-strategies"
TITLE: Final = "PRIVATE-EVOLUTION-STRATEGIES: noisy sums of perturbations, weighted by scores of one episode a user"

PARAMETERS: Final = vector_parameters(
    Parameter(name="B", default=500, kind="count", meaning="users of a batch, an even number; a rest takes no part"),
    Parameter(name="d", default=5, kind="count", meaning="coordinates of a vector: the policy's parameters"),
    norm=1,
)


def declare(_: Mapping[str, str]) -> Declaration:
    """The declaration: one perturbation, weighted by a score, a user."""
    of = "a user's perturbation times the score of their episode"
    return declare_vectors(name=NAME, title=TITLE, of=of, parameters=PARAMETERS, joint=Joint())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Search:
    """State of the learner between two batches, from noisy sums and public numbers.

    Attributes:
        batches: Batches so far.
        parameters: (d,) around which users' parameters are.
        memory: (m,) of the update rule.
        norm: C, as declared.
        total: (d,) sum of the parameters that the result averages.
        averaged: Number of them.
    """

    batches: int
    parameters: Array
    memory: Array
    norm: float
    total: Array
    averaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionStrategies:
    """The agent (`privcheck_algorithms.trained.training.Agent`). All of its numbers are public.

    Attributes:
        task: The task.
        policy: The policy's form.
        rate: The first learning rate; it falls linearly to 0 with the last batch.
        spread: s, typical size of a perturbation's coordinates.
        tail: Share of the batches, the last ones, whose parameters are averaged into the result.
        seed: Public seed of the directions.
        rule: The update rule, which sees noisy averages.

    Raises:
        ParameterError: A number is out of range.
    """

    task: Task
    policy: Policy
    rate: float = 0.5
    spread: float = 0.5
    tail: float = 0.25
    seed: int = 0
    rule: Rule = field(default_factory=Adam)

    def __post_init__(self) -> None:
        for name, value, most in (("rate", self.rate, np.inf), ("spread", self.spread, np.inf), ("tail", self.tail, 1)):
            if not 0 < value <= most or value == np.inf:
                raise ParameterError(f"{name}: expected a finite number above 0, a share at most 1, got {value}",
                                     name=name, given=value)  # fmt: skip

    @property
    def blocks(self) -> Mapping[str, int]:
        """The policy's parameters."""
        return {VECTORS: self.policy.dimension}

    def begin(self, plan: Plan) -> Search:
        """State before any user.

        Raises:
            ParameterError: B is odd: a pair of opposite directions would be in two batches.
        """
        if plan.batch % 2:
            message = f"B = {plan.batch}: expected an even number, so that pairs of users are in one batch"
            raise ParameterError(message, name="B", given=plan.batch)
        zeros = np.zeros(self.policy.dimension)
        norm = plan.blocks[0].norm
        first = self.policy.initial()
        memory = self.rule.begin(self.policy.dimension)
        return Search(batches=0, parameters=first, memory=memory, norm=norm, total=zeros, averaged=0)

    def choose(self, state: Search) -> Choose:
        """Most likely actions, by every user's own parameters."""
        known, rows = np.empty(0, np.int64), np.empty((0, self.policy.dimension))
        size = self.spread * self.policy.dimension**0.5

        def chosen(observations: Array, _: Array, users: Indices) -> Indices:
            nonlocal known, rows
            places = np.minimum(np.searchsorted(known, users), max(len(known) - 1, 0))
            if not known.size or (known[places] != users).any():  # the first step of a batch
                known, places = users, np.arange(len(users))
                rows = state.parameters + size * directions(self.seed, users, self.policy.dimension)
            return greedy(self.policy.logits_apart(rows[places], observations))

        return chosen

    def per_user_vector(self, state: Search, episodes: Episodes) -> Array:
        """Each user's direction times the score of their own episode, (B, d)."""
        found = scores(self.task, episodes)[:, np.newaxis] * state.norm
        return found * directions(self.seed, episodes.users, self.policy.dimension)

    def update(self, state: Search, sums: Sums, plan: Plan) -> Search:
        """One step of the rule, uphill."""
        number = state.batches + 1
        average = sums[VECTORS] / (plan.batch * state.norm)
        memory, step = self.rule.step(state.memory, average, number=number)
        parameters = state.parameters + self.rate * (1 - state.batches / plan.batches) * step
        kept = state.batches >= (1 - self.tail) * plan.batches or number == plan.batches
        return replace(
            state,
            batches=number,
            parameters=parameters,
            memory=memory,
            total=state.total + parameters if kept else state.total,
            averaged=state.averaged + kept,
        )

    def result(self, state: Search) -> Array:
        """The averaged parameters."""
        return np.asarray(state.total / max(state.averaged, 1))


def make_agent(task: Task, policy: Policy, options: Mapping[str, Fraction]) -> EvolutionStrategies:
    """The agent with the registered options.

    Raises:
        ParameterError: An option is out of range.
    """
    return EvolutionStrategies(
        task=task,
        policy=policy,
        rate=float(options["rate"]),
        spread=float(options["spread"]),
        tail=float(options["tail"]),
    )


OPTIONS: Final = (
    UNITS,
    Parameter(name="rate", default="0.5", kind="positive", meaning="Adam's first learning rate"),
    Parameter(name="spread", default="0.5", kind="positive", meaning="typical size of a perturbation's coordinates, s"),
    Parameter(name="tail", default="0.25", kind="probability", meaning="share of the last batches that is averaged"),
)
PRIVATE_EVOLUTION_STRATEGIES: Final = Algorithm(
    name=NAME,
    title=TITLE,
    source=SOURCE,
    declare=declare,
    readings=(policy_reading("linear", "linear-without-constant", "tanh"),),
    options=OPTIONS,
    trained=Trained(make=make_agent),
    instance=SMALL,
)


def directions(seed: int, users: Indices, d: int) -> Array:
    """Unit vectors of users, (users, d): that of user 2j + 1 is opposite to that of user 2j.

    Args:
        seed: Public seed.
        users: Numbers of the users.
        d: Coordinates.
    """
    pairs, places = np.unique(users // 2, return_inverse=True)
    drawn = np.stack([np.random.default_rng((seed, pair)).standard_normal(d) for pair in pairs.tolist()])
    signs = 1.0 - 2.0 * (users % 2)
    return np.asarray((drawn / np.linalg.norm(drawn, axis=1, keepdims=True))[places] * signs[:, np.newaxis])


def scores(task: Task, episodes: Episodes) -> Array:
    """Scores f in [−1, 1] of users' own episodes, (B,).

    With rewards as signals, the mean of their worth up to the time limit, with rewards of 0 after an end. With a
    failure, the share of the time limit until it. With a goal, the share of the time limit that is left when it is
    reached, and below all of those, with the task's `progress`, the largest progress of an episode that does not reach
    it.
    """
    share = episodes.lengths / task.limit
    if task.worth is not None:
        found = task.worth(episodes.rewards_to(task.limit)).mean(axis=1)
    elif task.signal == "failure":
        found = np.where(episodes.terminated, share, 1.0)
    elif task.progress is None:
        found = np.where(episodes.terminated, 1.0 - share, 0.0)
    else:
        live = np.arange(episodes.actions.shape[1]) < episodes.lengths[:, np.newaxis]
        most = (task.progress(episodes.observations) * live).max(axis=1, initial=0.0)
        found = np.where(episodes.terminated, 1.0 - 0.5 * share, 0.5 * most)
    return np.asarray(np.clip(2.0 * found - 1.0, -1.0, 1.0))
