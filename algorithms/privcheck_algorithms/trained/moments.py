"""Second moments of users' steps, from which regressions follow: sums that serve every target, released once.

A step has a row z of inputs and targets. A user's vector is the mean over the user's own steps of the products that a
regression of the targets on the inputs needs: inputs by inputs, and inputs by targets. What is public is left out: the
square of a constant. Every user counts as one, however long the episode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privcheck_algorithms.trained.tasks import Array, Episodes, Flags, Indices

_USERS = 250  # at a time: their rows fit in memory
Rows = Callable[[Episodes], tuple[Array, Flags]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Which products of a row's entries are summed, and how a vector is read back.

    Attributes:
        inputs: Number of inputs, the row's first entries.
        targets: Number of targets, its last ones.
        constant: Whether the last input is 1.
    """

    inputs: int
    targets: int
    constant: bool

    @property
    def dimension(self) -> int:
        """Coordinates of a user's vector."""
        return self.inputs * (self.inputs + 1) // 2 - self.constant + self.inputs * self.targets

    def vectors(self, episodes: Episodes, rows: Rows) -> Array:
        """Mean products of each user's own steps, (B, dimension), unclipped; 0 of a user without steps.

        Products of two different inputs are multiplied by √2, so that a vector is as long as its matrices are.

        Args:
            episodes: The episodes.
            rows: From some of the users' episodes to their rows (users, T, inputs + targets), and which steps count.
        """
        found = np.empty((len(episodes.users), self.dimension))
        first, second, weights = self._pairs()
        for start in range(0, len(found), _USERS):
            part = slice(start, start + _USERS)
            z, live = rows(episodes.of(np.arange(start, min(start + _USERS, len(found)))))
            z = np.where(live[..., np.newaxis], z, 0.0)
            products = np.swapaxes(z[..., : self.inputs], 1, 2) @ z
            products /= np.maximum(live.sum(axis=1), 1)[:, np.newaxis, np.newaxis]
            cross = products[..., self.inputs :].reshape(len(z), -1)
            found[part] = np.concatenate([products[:, first, second] * weights, cross], axis=1)
        return found

    def solve(self, average: Array, *, ridge: float) -> Array:
        """Coefficients (inputs, targets) of the ridge regression, from a noisy average of users' vectors.

        Noise can make the matrix indefinite: eigenvalues below 0 count as 0, before the ridge is added.

        Args:
            average: (dimension,) noisy sum over the number of users.
            ridge: Added to every eigenvalue, above 0: public.
        """
        first, second, weights = self._pairs()
        gram = np.zeros((self.inputs, self.inputs))
        gram[first, second] = average[: len(first)] / weights
        gram = gram + gram.T - np.diag(np.diag(gram))
        if self.constant:
            gram[-1, -1] = 1.0
        values, directions = np.linalg.eigh(gram)
        cross = average[len(first) :].reshape(self.inputs, self.targets)
        return np.asarray((directions / (np.maximum(values, 0.0) + ridge)) @ (directions.T @ cross))

    def _pairs(self) -> tuple[Indices, Indices, Array]:
        """Pairs of inputs whose products are summed, and what they are multiplied by."""
        first, second = np.triu_indices(self.inputs)
        kept = slice(0, len(first) - self.constant)  # the constant's square is the last
        weights = np.where(first == second, 1.0, np.sqrt(2.0))
        return first[kept], second[kept], weights[kept]


def squares(observations: Array) -> Array:
    """Squares of observations, (…, inputs): what a value looks like where left and right are alike."""
    return np.asarray(observations**2)


def products(observations: Array) -> Array:
    """Products of two coordinates of observations, (…, inputs·(inputs + 1)/2)."""
    first, second = np.triu_indices(observations.shape[-1])
    return np.asarray(observations[..., first] * observations[..., second])


def with_products(observations: Array) -> Array:
    """Observations and products of two of their coordinates."""
    return np.concatenate([observations, products(observations)], axis=-1)
