"""PRIVATE-FITTED-Q: Q regressed on logged episodes from noisy moments, and the greedy policy of it.

Q(s, a) = x(s, a)·w + ψ(s)·v. x are the policy's compatible features, Σ_j (1{a = j} − 1/n)·∂logit_j/∂θ, so that the
greedy policy of Q is the policy with parameters w (Sutton et al. 2000); ψ are features of the state, and a constant.
The moments of (x, ψ, y) are released, with targets y: in the first batch the signals G that followed, so that Q is the
behaviour's and its greedy policy one improvement of it (Brandfonbrener et al. 2021, arXiv:2106.08909); in later ones
r + γ·max_a Q(s′, a) with Q of the batch before (Ernst, Geurts & Wehenkel 2005). The matrix of (x, ψ) has no targets in
it, and is averaged over all batches; the targets' moments are of the last batch.

One batch of all users is the default: a batch more is an iteration more, with noise on fewer users.
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
from privcheck_algorithms.trained.moments import Moments, products
from privcheck_algorithms.trained.policies import Policy, action_codes, drawing
from privcheck_algorithms.trained.policy_gradient import (
    SOURCE,
    VECTORS,
    declare_vectors,
    discounted_signals,
    vector_parameters,
)
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes, Flags, Indices, Task
from privcheck_algorithms.trained.training import Plan, Sums

NAME: Final = "private-fitted-q"
TITLE: Final = "PRIVATE-FITTED-Q: Q by regression on noisy moments of logged episodes, one a user"

PARAMETERS: Final = vector_parameters(
    Parameter(name="B", default=10_000, kind="count", meaning="users of a batch, each an iteration of Q"),
    Parameter(name="d", default=134, kind="count", meaning="coordinates of a vector: the moments of Q's regression"),
    norm="1/4",
)


def declare(_: Mapping[str, str]) -> Declaration:
    """The declaration: the moments of Q's regression, of one episode a user."""
    of = "moments of a user's steps"
    return declare_vectors(name=NAME, title=TITLE, of=of, parameters=PARAMETERS, joint=None)


PRIVATE_FITTED_Q: Final = Algorithm(name=NAME, title=TITLE, source=SOURCE, declare=declare)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """State of the learner between two batches, from noisy sums and public numbers.

    Attributes:
        batches: Batches so far.
        moments: Noisy average: the inputs' of all batches so far, the targets' of the last.
        coefficients: (policy's + features + 1,) of Q: w, v and the constant's.
    """

    batches: int
    moments: Array
    coefficients: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedQ:
    """The agent (`privcheck_algorithms.trained.training.Agent`). All of its numbers are public.

    Attributes:
        task: The task.
        policy: The form of the greedy policy, linear in its parameters.
        features: Those of the state, from observations (…, inputs) to (…, features).
        discount: γ.
        ridge: Of the regression.

    Raises:
        ParameterError: A number is out of range.
    """

    task: Task
    policy: Policy
    features: Callable[[Array], Array] = products
    discount: float = 0.9
    ridge: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.ridge < math.inf:
            message = f"ridge: expected a finite number above 0, got {self.ridge}"
            raise ParameterError(message, name="ridge", given=self.ridge)
        if not 0 < self.discount <= 1:
            message = f"discount: expected a share above 0, got {self.discount}"
            raise ParameterError(message, name="discount", given=self.discount)

    @property
    def moments(self) -> Moments:
        """Of the regression of y on x, ψ and a constant."""
        features = self.features(np.zeros((1, self.task.inputs))).shape[-1]
        return Moments(inputs=self.policy.dimension + features + 1, targets=1, constant=True)

    @property
    def blocks(self) -> Mapping[str, int]:
        """The moments."""
        return {VECTORS: self.moments.dimension}

    def begin(self, plan: Plan) -> Fitted:
        """State before any user: Q is 0."""
        moments = self.moments
        return Fitted(batches=0, moments=np.zeros(moments.dimension), coefficients=np.zeros(moments.inputs))

    def choose(self, state: Fitted) -> Choose:
        """Actions drawn from the softmax of Q so far, which logged users do not follow."""
        return drawing(self.policy, self.result(state))

    def per_user_vector(self, state: Fitted, episodes: Episodes) -> Array:
        """Moments of each user's own steps, (B, d)."""

        def rows(some: Episodes) -> tuple[Array, Flags]:
            targets, counts = self._targets(state, some)
            x = compatible(self.policy, some.observations, some.actions, number=len(self.task.actions))
            ones = np.ones((*targets.shape, 1))
            return np.concatenate(
                [x, self.features(some.observations), ones, targets[..., np.newaxis]], axis=-1
            ), counts

        return self.moments.vectors(episodes, rows)

    def _targets(self, state: Fitted, episodes: Episodes) -> tuple[Array, Flags]:
        """Targets of every step in [−1, 1], and which steps have one; after a time limit nothing is known."""
        if state.batches == 0:
            return discounted_signals(self.task, episodes, discount=self.discount)
        steps = np.arange(episodes.actions.shape[1])
        live = steps < episodes.lengths[:, np.newaxis]
        last = steps == episodes.lengths[:, np.newaxis] - 1
        paid = self._paid(episodes, last & episodes.terminated[:, np.newaxis])
        after = np.zeros(paid.shape)
        after[:, :-1] = self.values(state, episodes.observations)[:, 1:]
        goes_on = live & ~last
        found = np.clip(paid + self.discount * np.where(goes_on, after, 0.0), -1.0, 1.0)
        return found, np.asarray(goes_on | (last & episodes.terminated[:, np.newaxis]))

    def _paid(self, episodes: Episodes, ended: Flags) -> Array:
        """What a step itself is worth, on the scale of the signals."""
        if self.task.worth is not None:
            return np.asarray((1 - self.discount) * self.task.worth(episodes.rewards))
        return np.where(ended, 1.0 if self.task.signal == "goal" else -1.0, 0.0)

    def values(self, state: Fitted, observations: Array) -> Array:
        """max_a Q(s, a) of observations (…, inputs), within [−1, 1]."""
        w, v = np.split(state.coefficients, [self.policy.dimension])
        logits = self.policy.logits(w, observations)
        best = np.maximum(logits.max(axis=-1), 0.0) - logits.sum(axis=-1) / len(self.task.actions)
        found = np.clip(best + self.features(observations) @ v[:-1] + v[-1], -1.0, 1.0)
        return np.asarray(found)

    def update(self, state: Fitted, sums: Sums, plan: Plan) -> Fitted:
        """Regress again: inputs' moments averaged over all batches, targets' of this one."""
        average, moments = sums[VECTORS] / plan.batch, self.moments
        inputs = moments.dimension - moments.inputs  # products of two inputs
        shared = state.moments[:inputs] + (average[:inputs] - state.moments[:inputs]) / (state.batches + 1)
        known = np.concatenate([shared, average[inputs:]])
        coefficients = moments.solve(known, ridge=self.ridge)[:, 0]
        return replace(state, batches=state.batches + 1, moments=known, coefficients=coefficients)

    def result(self, state: Fitted) -> Array:
        """w, the greedy policy's parameters."""
        return state.coefficients[: self.policy.dimension].copy()


def compatible(policy: Policy, observations: Array, actions: Indices, *, number: int) -> Array:
    """x(s, a) = Σ_j (1{a = j} − 1/n)·∂logit_j/∂θ at the first parameters, (users, T, d); logit 0 is always 0.

    Args:
        policy: Linear in its parameters.
        observations: (users, T, inputs).
        actions: (users, T).
        number: n, of actions.
    """
    codes = action_codes(actions, number=number)
    steps = observations.reshape(-1, 1, observations.shape[-1])
    found = policy.gradients(policy.initial(), steps, codes.reshape(-1, 1, number - 1))
    return found.reshape(*actions.shape, policy.dimension)
