"""Update rules: from noisy averages to the step that a learning rate multiplies. A rule sees nothing else of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from privcheck_algorithms.trained.tasks import Array

_FIRST: Final = 0.9  # decay of the mean
_SECOND: Final = 0.999  # decay of the square
_TINY: Final = 1e-8  # added to the root


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
        mean = _FIRST * mean + (1 - _FIRST) * average
        square = _SECOND * square + (1 - _SECOND) * average**2
        step = (mean / (1 - _FIRST**number)) / (np.sqrt(square / (1 - _SECOND**number)) + _TINY)
        return np.concatenate([mean, square]), step
