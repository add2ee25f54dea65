"""Mutants of a tree's counter: noise that comes back, a level that is missing, a user who is counted twice.

Each is called like `privcheck.runtime.TreeCounter`, with the shape of a contribution, the noise of a P-sum and the
number of users, and stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime import TreeCounter
from privcheck.runtime.noise import Fresh

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlteredCounter:
    """A counter that does something else whenever a user comes.

    Attributes:
        honest: The counter.
        alter: Releases the next sum, by means of the honest counter.
    """

    honest: TreeCounter
    alter: Callable[[TreeCounter, Array, np.random.Generator], Array]

    def release(self, increment: Array, rng: np.random.Generator) -> Array:
        """Returns what it takes for the noisy sum."""
        return self.alter(self.honest, increment, rng)


def ReusedNodes(shape: tuple[int, ...], noise: Fresh, *, leaves: int) -> AlteredCounter:
    """Returns a counter whose P-sums all carry the same noise; the true loss is ∞: some sums differ exactly."""
    first: list[Any] = []

    def alter(honest: TreeCounter, increment: Array, rng: np.random.Generator) -> Array:
        first.append(rng.bit_generator.state)
        rng.bit_generator.state = first[0]
        return honest.release(increment, rng)

    return AlteredCounter(honest=TreeCounter(shape, noise, leaves=leaves), alter=alter)


def LevelTooFew(shape: tuple[int, ...], noise: Fresh, *, leaves: int) -> AlteredCounter:
    """Returns a counter whose longest P-sum has no noise; the true loss is ∞: the sum that ends with it is exact."""
    exact, lost = np.zeros(shape), np.zeros(shape)
    top = 1 << (leaves.bit_length() - 1)

    def alter(honest: TreeCounter, increment: Array, rng: np.random.Generator) -> Array:
        released = honest.release(increment, rng)
        exact[...] += increment
        if honest.users == top:
            lost[...] = released - exact
        without: Array = released - lost
        return without

    return AlteredCounter(honest=TreeCounter(shape, noise, leaves=leaves), alter=alter)


def CountsTwice(shape: tuple[int, ...], noise: Fresh, *, leaves: int) -> AlteredCounter:
    """Returns a counter that counts its first user twice; true loss of pure DP: twice the charged."""

    def alter(honest: TreeCounter, increment: Array, rng: np.random.Generator) -> Array:
        return honest.release(increment if honest.users else 2 * increment, rng)

    return AlteredCounter(honest=TreeCounter(shape, noise, leaves=leaves), alter=alter)
