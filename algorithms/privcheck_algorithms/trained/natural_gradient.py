"""PRIVATE-NATURAL-GRADIENT: policy gradients in the few directions that change the policy most.

Fisher's information F(θ) = E ∇log π(a | s)·∇log π(a | s)ᵀ says by how much a small step changes the policy:
stepᵀ·F·step is twice the Kullback-Leibler divergence, averaged over observations. Here these are *public*: Gaussian
numbers from a seed, in the task's scaled coordinates, each with its negative, and actions are the policy's own. So F(θ)
follows from θ and costs nothing. Of its eigenvectors V the k with the largest eigenvalues Λ make W = V·Λ^½·(Λ + λ)⁻¹,
(d, k); where λ is much above an eigenvalue, the direction is left out.

A user's vector is Wᵀ times their own policy gradient, limited to length C·√(1 − q), and the signal, as in
`private-policy-gradient`. So noise has k + 1 coordinates in place of d + 1, and moves the policy about equally far in
each of the k. A momentum m of W·(noisy average)/C, divided by 1 − β^n, is the step that a learning rate multiplies. But
for clipping and λ it is the natural gradient within these directions, W·Wᵀ·g (Amari 1998; Kakade 2001, A Natural Policy
Gradient); gradients in a public subspace are an idea of Zhou, Wu & Banerjee 2021 and Yu et al. 2021.

Rates are in units of policy change: with rate r, a batch of users whose vectors are one vector of full length moves the
policy by a divergence of about r²/2. All numbers are public, and were found on simulated users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.declare.declaration import Declaration, Joint, Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck_algorithms.trained.policies import Policy, drawing, probabilities
from privcheck_algorithms.trained.policy_gradient import (
    FORMS,
    SIGNALS,
    SOURCE,
    VECTORS,
    declare_vectors,
    policy_gradients,
    read_baseline,
    vector_parameters,
    weigh,
)
from privcheck_algorithms.trained.running import SMALL, UNITS, Trained
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes, Task
from privcheck_algorithms.trained.training import Plan, Sums

NAME: Final = "private-natural-gradient"
TITLE: Final = "PRIVATE-NATURAL-GRADIENT: policy gradients in the directions that change the policy most"

PARAMETERS: Final = vector_parameters(
    Parameter(name="B", default=250, kind="count", meaning="users of a batch; a rest that fills none takes no part"),
    Parameter(name="d", default=6, kind="count", meaning="coordinates of a vector: directions of the policy, and one"),
    norm=3,
)


def declare(_: Mapping[str, str]) -> Declaration:
    """The declaration: one gradient in k directions, with its signal, a user."""
    of = "a user's policy gradient in public directions, and mean signal"
    return declare_vectors(name=NAME, title=TITLE, of=of, parameters=PARAMETERS, joint=Joint())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walk:
    """State of the learner between two batches, from noisy sums and public numbers.

    Attributes:
        batches: Batches so far.
        parameters: (d,) of the policy.
        directions: W, (d, k).
        momentum: (d,) m.
        baseline: b.
        norm: C, as declared.
        total: (d,) sum of the parameters that the result averages.
        averaged: Number of them.
    """

    batches: int
    parameters: Array
    directions: Array
    momentum: Array
    baseline: float
    norm: float
    total: Array
    averaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalGradient:
    """The agent (`privcheck_algorithms.trained.Agent`). All of its numbers are public.

    Attributes:
        task: The task.
        policy: The policy's form.
        rank: k, number of directions.
        rate: The first learning rate; it falls linearly to 0 with the last batch.
        momentum: β, the share of the last m in the next.
        discount: γ.
        tail: Share of the batches, the last ones, whose parameters are averaged into the result.
        signal_share: q, the signal's share of the vector's squared norm.
        damping: λ.
        reach: Standard deviation of the public observations, in scaled coordinates.
        references: Number of the public observations; each counts with its negative.
        seed: Their public seed.

    Raises:
        ParameterError: A number is out of range.
    """

    task: Task
    policy: Policy
    rank: int = 5
    rate: float = 0.45
    momentum: float = 0.9
    discount: float = 0.98
    tail: float = 0.25
    signal_share: float = 0.15
    damping: float = 0.01
    reach: float = 0.5
    references: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rate", "damping", "reach"):
            given = getattr(self, name)
            if not 0 < given < np.inf:
                raise ParameterError(f"{name}: expected a number above 0, got {given}", name=name, given=given)
        for name, most in (("momentum", 0.999), ("discount", 1), ("tail", 1), ("signal_share", 0.999)):
            given = getattr(self, name)
            if not 0 <= given <= most or (given == 0 and name != "momentum"):
                raise ParameterError(f"{name}: expected a share, at most {most}, got {given}", name=name, given=given)
        if not 1 <= self.rank <= self.policy.dimension or self.references < 1:
            message = f"rank: expected 1 to {self.policy.dimension} directions, and references, got {self.rank}"
            raise ParameterError(message, name="rank", given=self.rank)

    @property
    def blocks(self) -> Mapping[str, int]:
        """The directions, and one signal."""
        return {VECTORS: self.rank + 1}

    def begin(self, plan: Plan) -> Walk:
        """State before any user."""
        zeros, first = np.zeros(self.policy.dimension), self.policy.initial()
        return Walk(
            batches=0,
            parameters=first,
            directions=self.directions(first),
            momentum=zeros,
            baseline=0.0,
            norm=plan.blocks[0].norm,
            total=zeros,
            averaged=0,
        )

    def choose(self, state: Walk) -> Choose:
        """Actions drawn from the policy."""
        return drawing(self.policy, state.parameters)

    def per_user_vector(self, state: Walk, episodes: Episodes) -> Array:
        """Gradient in the k directions, and mean signal, of each user's own episode, (B, k + 1)."""
        gradients, means = policy_gradients(
            self.task, self.policy, state.parameters, episodes, discount=self.discount, baseline=state.baseline
        )
        return weigh(gradients @ state.directions, means, norm=state.norm, share=self.signal_share)

    def update(self, state: Walk, sums: Sums, plan: Plan) -> Walk:
        """One step of the momentum, uphill; none after the first batch, whose gradients had no baseline."""
        baseline = read_baseline(sums[VECTORS][-1], plan.batch, norm=state.norm, share=self.signal_share)
        number, last = state.batches, state.batches + 1 == plan.batches
        if number == 0 and not last:
            return replace(state, batches=1, baseline=baseline)
        average = state.directions @ (sums[VECTORS][:-1] / (plan.batch * state.norm))
        momentum = self.momentum * state.momentum + (1 - self.momentum) * average
        step = momentum / (1 - self.momentum ** max(number, 1))
        parameters = state.parameters + self.rate * (1 - number / plan.batches) * step
        kept = number >= (1 - self.tail) * plan.batches or last
        return replace(
            state,
            batches=number + 1,
            parameters=parameters,
            directions=self.directions(parameters),
            momentum=momentum,
            baseline=baseline,
            total=state.total + parameters if kept else state.total,
            averaged=state.averaged + kept,
        )

    def result(self, state: Walk) -> Array:
        """The averaged parameters."""
        return np.asarray(state.total / max(state.averaged, 1))

    def directions(self, parameters: Array) -> Array:
        """W, (d, k), at these parameters: public, as the observations and the parameters are."""
        inputs, actions = self.task.inputs, len(self.task.actions)
        drawn = np.random.default_rng(self.seed).standard_normal((self.references, 1, inputs)) * self.reach
        seen = np.concatenate([drawn, -drawn])
        chances = probabilities(self.policy.logits(parameters, seen))
        scores = [  # √π(a | s)·∇log π(a | s), so that squares add up to F
            self.policy.gradients(
                parameters, seen, np.sqrt(chances[..., [a]]) * ((np.arange(1, actions) == a) - chances[..., 1:])
            )
            for a in range(actions)
        ]
        _, roots, vectors = np.linalg.svd(np.concatenate(scores) / len(seen) ** 0.5, full_matrices=False)
        kept = min(self.rank, len(roots))
        found = np.zeros((len(parameters), self.rank))
        found[:, :kept] = vectors[:kept].T * (roots[:kept] / (roots[:kept] ** 2 + self.damping))
        return found


def make_agent(task: Task, policy: Policy, options: Mapping[str, Fraction]) -> NaturalGradient:
    """The agent with the registered options.

    Raises:
        ParameterError: An option is out of range.
    """
    return NaturalGradient(
        task=task,
        policy=policy,
        rank=int(options["rank"]),
        rate=float(options["rate"]),
        momentum=float(options["momentum"]),
        discount=float(options["discount"]),
        tail=float(options["tail"]),
        signal_share=float(options["signal_share"]),
        damping=float(options["damping"]),
    )


OPTIONS: Final = (
    UNITS,
    Parameter(name="rank", default=5, kind="count", meaning="directions, k"),
    Parameter(name="rate", default="0.45", kind="positive", meaning="first learning rate"),
    Parameter(name="momentum", default="0.9", kind="probability", meaning="share of the last step in the next"),
    *SIGNALS,
    Parameter(name="damping", default="0.01", kind="positive", meaning="λ, below which eigenvalues are left out"),
)
PRIVATE_NATURAL_GRADIENT: Final = Algorithm(
    name=NAME,
    title=TITLE,
    source=SOURCE,
    declare=declare,
    readings=(FORMS,),
    options=OPTIONS,
    trained=Trained(make=make_agent),
    instance=SMALL,
)
