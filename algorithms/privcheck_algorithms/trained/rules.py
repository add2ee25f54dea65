"""Update rules: from noisy averages to the step that a learning rate multiplies. A rule sees nothing else of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privcheck_algorithms.trained.adam import adam_step
from privcheck_algorithms.trained.tasks import Array


class Rule(Protocol):
    """An update rule, uphill. Its memory is one flat array, so that it is compared, kept and restored like a state."""

    def begin(self, dimension: int) -> Array:
        """Memory before the first update, (m,): public."""
        ...

    def step(self, memory: Array, average: Array, *, number: int) -> tuple[Array, Array]:
        """Memory (m,) after an update, and the step (d,) that a learning rate multiplies.

        Args:
            memory: (m,) before it.
            average: (d,) noisy average of the batch.
            number: Of this update, from 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam (Kingma & Ba 2015, Algorithm 1). Its memory is the running mean, and then the running mean of squares."""

    def begin(self, dimension: int) -> Array:
        """Zeros, (2d,)."""
        return np.zeros(2 * dimension)

    def step(self, memory: Array, average: Array, *, number: int) -> tuple[Array, Array]:
        """One step of Adam."""
        mean, square = np.split(memory, 2)
        mean, square, step = adam_step(mean, square, average, number=number)
        return np.concatenate([mean, square]), step
