"""Adam (Kingma & Ba 2015, Algorithm 1), uphill, on noisy averages."""

from __future__ import annotations

from typing import Final

import numpy as np

from privcheck_algorithms.trained.tasks import Array

_FIRST: Final = 0.9  # decay of the mean
_SECOND: Final = 0.999  # decay of the square
_TINY: Final = 1e-8  # added to the root


def adam_step(mean: Array, square: Array, average: Array, *, number: int) -> tuple[Array, Array, Array]:
    """Running mean, running square, and the step that a learning rate multiplies, each (d,).

    Args:
        mean: (d,) running mean before this update …
        square: (d,) … and running mean of squares.
        average: (d,) of this batch.
        number: Of this update, from 1.
    """
    mean = _FIRST * mean + (1 - _FIRST) * average
    square = _SECOND * square + (1 - _SECOND) * average**2
    step = (mean / (1 - _FIRST**number)) / (np.sqrt(square / (1 - _SECOND**number)) + _TINY)
    return mean, square, np.asarray(step)
