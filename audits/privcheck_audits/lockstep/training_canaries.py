"""Canary users of a training, for `privcheck.audit_one_run`: what one run at full size shows of its noise.

Canaries are users of the training, spread evenly over its batches. A fair coin decides which of two opposite episodes
each of them plays, so that the two sets of users are neighbours under replace-one. The score of a canary is the best
linear estimate of its coin from the published noisy sum of its batch: the two vectors that each canary may have follow
from the published state and the episodes, both of which the auditor knows. Other users are noise on top.

Of μ-GDP the score has the drift μ in units of the noise if the two vectors are opposite and of full length; other
users, and canaries in the same batch whose directions are not orthogonal to it, make it less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes, Flags, Indices
from privcheck_algorithms.trained.training import (
    Agent,
    Training,
    Users,
    clipped_sums,
    read_plan,
    simulated_noise,
    train,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryUsers:
    """Users of whom some play one of two extreme episodes, in which nothing is observed.

    If a canary is included, it takes the second action once and is at a terminal state; if not, it takes the first
    action until the time limit. So does the user after each canary, whatever the coin: in agents with antithetic
    pairs that user's vector is along the canary's, and would be noise if it was not known.

    Attributes:
        of: The users.
        canaries: (n,) numbers of the canaries, rising.
        included: (n,) their coins.
        limit: Steps of the long episode.
    """

    of: Users
    canaries: Indices
    included: Flags
    limit: int

    def play(self, choose: Choose, users: range) -> Episodes:
        """The users' episodes, with the canaries' in their places."""
        episodes = self.of.play(choose, users)
        rows = np.flatnonzero(np.isin(episodes.users, self.canaries))
        coins = self.included[np.searchsorted(self.canaries, episodes.users[rows])]
        after = np.flatnonzero(np.isin(episodes.users, self.canaries + 1))
        long = np.zeros(len(after), np.bool_)
        return self.with_sides(episodes, np.concatenate([rows, after]), np.concatenate([coins, long]))

    def with_sides(self, episodes: Episodes, rows: Indices, sides: Flags) -> Episodes:
        """The episodes, where these rows play the one or the other extreme episode."""
        wide = max(0, self.limit - episodes.actions.shape[1]) if len(rows) else 0
        seen = np.pad(episodes.observations, ((0, 0), (0, wide), (0, 0)))
        actions = np.pad(episodes.actions, ((0, 0), (0, wide)))
        rewards = np.pad(episodes.rewards, ((0, 0), (0, wide)))
        lengths, terminated = episodes.lengths.copy(), episodes.terminated.copy()
        seen[rows], actions[rows], rewards[rows] = 0.0, 0, 0.0
        actions[rows, 0], lengths[rows], terminated[rows] = sides, np.where(sides, 1, self.limit), sides
        return replace(
            episodes, observations=seen, actions=actions, rewards=rewards, lengths=lengths, terminated=terminated
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingCanaries:
    """A training as `privcheck.audit_one_run` asks for it: from coins and a generator to a score of each canary.

    Attributes:
        agent: The agent.
        users: The users, of whom some become canaries.
        declaration: The declaration.
        values: Its parameters. The number of canaries must divide K, by an even quotient, so that the user after a
            canary is none, and in the same batch if B is even.
        inputs: Coordinates of an observation.
        limit: Steps of a long episode (`CanaryUsers`).

    Raises:
        ParameterError: When called, if the number of canaries does not divide K by an even quotient.
    """

    agent: Agent[Any]
    users: Users
    declaration: Declaration
    values: Mapping[str, Fraction]
    inputs: int
    limit: int

    def __call__(self, included: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
        """Train once with these coins, and score every canary; the larger, the likelier it was included."""
        plan = read_plan(self.declaration, self.values)
        count = len(included)
        if plan.users % (2 * count):
            message = f"{count} canaries of {plan.users} users: expected a number whose double divides that of users"
            raise ParameterError(message, name="canaries", given=count)
        mixed = CanaryUsers(
            of=self.users,
            canaries=np.arange(count) * (plan.users // count),
            included=np.asarray(included, np.bool_),
            limit=self.limit,
        )
        noise = simulated_noise(int(rng.integers(2**31)))
        training = train(self.agent, mixed, declaration=self.declaration, values=self.values, noise=noise)
        scores = np.zeros(count)
        for batch, members in enumerate(training.plan.members()):
            here = np.flatnonzero((mixed.canaries >= members.start) & (mixed.canaries < members.stop))
            scores[here] = self._scores(training, batch, mixed, here)
        return scores

    def _scores(self, training: Training[Any], batch: int, mixed: CanaryUsers, here: Indices) -> Array:
        """Best linear estimates of a batch's coins, as ±1: from what is public, and the canaries' own episodes."""
        canaries = mixed.canaries[here]
        high, low = (self._vectors(training, batch, mixed, canaries, side=side) for side in (True, False))
        known = self._vectors(training, batch, mixed, canaries + 1, side=False).sum(axis=0)
        half, middle = (high - low) / 2, (high + low) / 2
        within = half @ half.T + np.eye(len(half))  # coins of variance 1, and noise of variance 1
        noisy = np.concatenate(list(self._scaled(training.sums[batch]).values()))
        return np.asarray(np.linalg.solve(within, half @ (noisy - known - middle.sum(axis=0))))

    def _vectors(self, training: Training[Any], batch: int, mixed: CanaryUsers, users: Indices, *, side: bool) -> Array:
        """Clipped vectors of users on one side, in units of the noise, (users, d)."""
        blank = _blank(users, limit=self.limit, inputs=self.inputs)
        played = mixed.with_sides(blank, np.arange(len(users)), np.full(len(users), side))
        rows = self.agent.per_user_vector(training.states[batch], played)
        alone = [self._scaled(clipped_sums(row[np.newaxis], training.plan)) for row in rows]
        return np.array([np.concatenate(list(one.values())) for one in alone])

    def _scaled(self, sums: Mapping[str, Array]) -> dict[str, Array]:
        """Sums in units of their noise."""
        scales = {r.name: r.mechanism.at(self.values).scale for r in self.declaration.noisy}
        return {name: value / scales[name] for name, value in sums.items()}


def _blank(users: Indices, *, limit: int, inputs: int) -> Episodes:
    """Empty episodes of some canaries, for their two sides to be written into."""
    n = len(users)
    return Episodes(
        observations=np.zeros((n, limit, inputs)),
        actions=np.zeros((n, limit), np.int64),
        rewards=np.zeros((n, limit)),
        users=users,
        lengths=np.zeros(n, np.int64),
        terminated=np.zeros(n, np.bool_),
    )
