"""PRIVATE-AWR: advantage-weighted regression on logged episodes (Peng et al. 2019, arXiv:1910.00177), with noise.

A policy is fitted to logged actions, each weighted by exp(A/β) with the advantage A = G − V(s) of what followed: what
went well is imitated more. With equal weights it is behaviour cloning, the baseline.

A user's vector has two parts. The first is the mean over their steps of w·∇log π(a | s), w = min(exp(A/β), w̄). The
second has the moments that the critic V needs (`moments`): V is a ridge regression of the signals G
(`policy_gradient.discounted_signals`) on features of s, from the noisy moments of all rounds so far. Of the vector's
squared norm C² the critic has a public share q. The first round has no critic, and moves no parameter.

Rounds use Poisson samples of the logged users. Ours: the cap w̄ and the critic are public functions of released sums,
never of the batch; nothing is divided by the batch's weights or its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Poisson
from privcheck.declare.statements import Origin, public
from privcheck.declare.statistics import ClippedSums
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, symbol
from privcheck_algorithms.privatizers.declaration import MU, LeastNoise
from privcheck_algorithms.trained.moments import Moments, squares
from privcheck_algorithms.trained.policies import Policy, drawing, probabilities
from privcheck_algorithms.trained.policy_gradient import SOURCE, VECTORS, discounted_signals, limited
from privcheck_algorithms.trained.rules import Adam
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes, Flags, Task
from privcheck_algorithms.trained.training import Plan, Sums

NAME: Final = "private-awr"
TITLE: Final = "PRIVATE-AWR: advantage-weighted regression on logged episodes, one a user, in Poisson batches"

_PUBLIC: Final = (
    Parameter(name="K", default=10_000, kind="count", meaning="users, one logged episode each"),
    Parameter(name="rate", default="1/20", kind="probability", meaning="chance of each user to be in a round"),
    Parameter(name="T", default=60, kind="count", meaning="rounds, each with a fresh sample"),
    Parameter(name="d", default=23, kind="count", meaning="coordinates of a vector: the policy's and the critic's"),
    Parameter(name="C", default=1, kind="positive", meaning="norm to which a user's vector is clipped"),
    Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
    Parameter(name="delta", default="0.00001", kind="probability", meaning="δ of the claim"),
)


def _declare(parameters: tuple[Parameter, ...]) -> Declaration:
    C, rate, T = symbol("C", "positive"), symbol("rate", "positive"), symbol("T", "positive")
    why = "a number fixed before anyone's data is looked at"
    return Declaration(
        name=NAME,
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="own", text="README of trained"),
        relation=ReplaceOne("user"),
        releases=(
            Release(
                VECTORS,
                ClippedSums(dimension=d, norm=C, of="a user's weighted gradient and moments"),
                Gaussian(variance=(2 * C / MU) ** 2),
                schedule=Poisson(rate=public(rate, why=why), rounds=public(T, why=why)),
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="README, “Logged episodes”"),
        parameters=parameters,
    )


def _noise(follows: Callable[[Mapping[str, Fraction]], Fraction] | None) -> Parameter:
    return Parameter(
        name="mu",
        default="0.69055",
        kind="positive",
        meaning="the noise: a round is μ-GDP for a user who is in it; for another ε, δ, rate or T the largest that "
        "keeps the claim",
        follows=follows,
    )


PARAMETERS: Final = (
    *_PUBLIC,
    _noise(
        LeastNoise(
            name="mu",
            declare=lambda _: _declare((*_PUBLIC, _noise(None))),
            readings=(),
            usual=_PUBLIC,
            claim=("epsilon", "delta"),
            sizes=("rate", "T"),
        )
    ),
)


def declare(_: Mapping[str, str]) -> Declaration:
    """(ε, δ)-DP by T noisy sums over Poisson samples of the users, one clipped vector a user."""
    return _declare(PARAMETERS)


PRIVATE_AWR: Final = Algorithm(name=NAME, title=TITLE, source=SOURCE, declare=declare)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """State of the learner between two rounds, from noisy sums and public numbers.

    Attributes:
        rounds: Rounds so far.
        parameters: Of the policy.
        memory: Adam's.
        moments: Noisy average of the critic's moments, of all rounds so far.
        critic: (features + 1,) the critic's coefficients, the constant's last.
        norm: C, as declared.
        total: Sum of the parameters that the result averages.
        averaged: Number of them.
    """

    rounds: int
    parameters: Array
    memory: Array
    moments: Array
    critic: Array
    norm: float
    total: Array
    averaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageWeighted:
    """The agent (`privcheck_algorithms.trained.training.Agent`). All of its numbers are public.

    Attributes:
        task: The task.
        policy: The policy's form.
        temperature: β; None for behaviour cloning, whose weights are 1 and which needs no critic.
        features: The critic's, from observations (…, inputs) to (…, features).
        rate: Adam's first learning rate; it falls linearly to 0 with the last round.
        discount: γ of the signals.
        most: w̄, the largest weight.
        critic_share: q, the critic's share of the vector's squared norm.
        ridge: Of the critic's regression.
        tail: Share of the rounds, the last ones, whose parameters are averaged into the result.

    Raises:
        ParameterError: A number is out of range.
    """

    task: Task
    policy: Policy
    temperature: float | None
    features: Callable[[Array], Array] = squares
    rate: float = 0.2
    discount: float = 0.98
    most: float = 20.0
    critic_share: float = 0.3
    ridge: float = 0.01
    tail: float = 0.25

    def __post_init__(self) -> None:
        beta = 1.0 if self.temperature is None else self.temperature
        sizes = (("temperature", beta), ("rate", self.rate), ("most", self.most), ("ridge", self.ridge))
        for name, value in sizes:
            if not 0 < value < math.inf:
                raise ParameterError(f"{name}: expected a finite number above 0, got {value}", name=name, given=value)
        for name, value in (("discount", self.discount), ("tail", self.tail), ("critic_share", self.critic_share)):
            if not 0 < value <= 1 or (name == "critic_share" and value == 1):
                raise ParameterError(f"{name}: expected a share above 0, got {value}", name=name, given=value)

    @property
    def moments(self) -> Moments:
        """Of the critic's regression: signals on features and a constant."""
        found = self.features(np.zeros((1, self.task.inputs)))
        return Moments(inputs=found.shape[-1] + 1, targets=1, constant=True)

    @property
    def blocks(self) -> Mapping[str, int]:
        """The policy's parameters, and the critic's moments if there is one."""
        return {VECTORS: self.policy.dimension + (0 if self.temperature is None else self.moments.dimension)}

    def begin(self, plan: Plan) -> Fit:
        """State before any user."""
        zeros, moments = np.zeros(self.policy.dimension), self.moments
        return Fit(
            rounds=0,
            parameters=self.policy.initial(),
            memory=Adam().begin(self.policy.dimension),
            moments=np.zeros(moments.dimension),
            critic=np.zeros(moments.inputs),
            norm=plan.blocks[0].norm,
            total=zeros,
            averaged=0,
        )

    def choose(self, state: Fit) -> Choose:
        """Actions drawn from the policy so far, which logged users do not follow."""
        return drawing(self.policy, state.parameters)

    def per_user_vector(self, state: Fit, episodes: Episodes) -> Array:
        """Weighted gradient of each user's own episode, limited in length, and the critic's moments, (B, d)."""
        signals, live = discounted_signals(self.task, episodes, discount=self.discount)
        weights = np.where(live, 1.0, 0.0)
        if self.temperature is not None:
            values = self.features(episodes.observations) @ state.critic[:-1] + state.critic[-1]
            capped = np.minimum((signals - values) / self.temperature, math.log(self.most))
            weights = np.where(live, np.exp(capped), 0.0)
        chances = probabilities(self.policy.logits(state.parameters, episodes.observations))
        taken = episodes.actions[..., np.newaxis] == np.arange(1, chances.shape[-1])
        slopes = (taken - chances[..., 1:]) * weights[..., np.newaxis]
        gradients = self.policy.gradients(state.parameters, episodes.observations, slopes)
        gradients /= np.maximum(episodes.lengths, 1)[:, np.newaxis]
        if self.temperature is None:
            return gradients
        moments = self.moments.vectors(episodes, self._rows)
        share = self.critic_share
        return np.concatenate(
            [limited(gradients, state.norm * (1 - share) ** 0.5), limited(moments, state.norm * share**0.5)], axis=1
        )

    def _rows(self, episodes: Episodes) -> tuple[Array, Flags]:
        """Features, 1 and the signal of every step."""
        signals, live = discounted_signals(self.task, episodes, discount=self.discount)
        ones = np.ones((*signals.shape, 1))
        return np.concatenate([self.features(episodes.observations), ones, signals[..., np.newaxis]], axis=-1), live

    def update(self, state: Fit, sums: Sums, plan: Plan) -> Fit:
        """One step of Adam, uphill, and a new critic; after the first round, which had no critic, a critic alone."""
        average, size, number = sums[VECTORS] / plan.batch, self.policy.dimension, state.rounds
        last = number + 1 == plan.batches
        if self.temperature is not None:
            moments = state.moments + (average[size:] - state.moments) / (number + 1)
            critic = self.moments.solve(moments, ridge=self.ridge)[:, 0]
            state = replace(state, moments=moments, critic=critic)
            if number == 0 and not last:
                return replace(state, rounds=1)
        number += self.temperature is None or number == 0
        memory, step = Adam().step(state.memory, average[:size], number=number)
        parameters = state.parameters + self.rate * (1 - state.rounds / plan.batches) * step
        kept = state.rounds >= (1 - self.tail) * plan.batches or last
        return replace(
            state,
            rounds=state.rounds + 1,
            parameters=parameters,
            memory=memory,
            total=state.total + parameters if kept else state.total,
            averaged=state.averaged + kept,
        )

    def result(self, state: Fit) -> Array:
        """The averaged parameters."""
        return np.asarray(state.total / max(state.averaged, 1))
