"""Agents as users write them, in plain NumPy, for `privcheck.audit_agent`; worker processes import them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STATES, ARMS = 2, 2
LEVELS = 4  # of a tree over eight users


@dataclass(frozen=True)
class TreeBandit:
    """Learns which arm is best in each state from rewards in [0, 1] that reach it through trees.

    A user (state, reward) sees nothing but the policy; all noisy sums are public. Replacing a user moves a node of one
    tree, or of two, by one: noise of scale 2·LEVELS/ε for each node is ε-DP.
    """

    epsilon: float = 1.0
    forgotten: tuple[int, int] | None = None  # level and index of the node that has no noise

    def __call__(self, users: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
        noise = rng.laplace(0, 2 * LEVELS / self.epsilon, (LEVELS, len(users), STATES, ARMS))
        if self.forgotten is not None:
            noise[self.forgotten] = 0.0
        sums, shown, policies = np.zeros((STATES, ARMS)), np.zeros((STATES, ARMS)), []
        public = []
        for t, (state, reward) in enumerate(users, start=1):
            explored = t % ARMS  # everybody knows when
            policies.append(shown.argmax(axis=1))
            sums[int(state), explored] += reward
            shown = sums + self.nodes(t, noise)
            public.append(shown)
        return {"sums": np.round(public, 6), "policies": np.array(policies)}

    @staticmethod
    def nodes(t: int, noise: np.ndarray) -> np.ndarray:
        """Returns the noise of the nodes that the sum over the first t users is made of."""
        total, start = np.zeros(noise.shape[2:]), 0
        for level in range(LEVELS - 1, -1, -1):
            if t & (1 << level):
                total = total + noise[level, start >> level]
                start += 1 << level
        return total


def own_rewards(users: Any, rng: np.random.Generator) -> np.ndarray:
    """Tells each user the user's own reward, and nobody else anything of it: jointly private at every ε."""
    return np.asarray(users, dtype=float)


def rewards_of_the_one_before(users: Any, rng: np.random.Generator) -> np.ndarray:
    """Tells each user the reward of the one before, the first that of the last."""
    return np.roll(np.asarray(users, dtype=float), 1)


def add_own_rewards(users: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Tells each user the user's own reward, and everybody a noisy sum."""
    return {"of each": np.asarray(users, dtype=float), "for all": np.sum(users) + rng.laplace(0, 1)}
