"""The LOCAL-PRIVATIZER: every user sends its own bits with noise, and the sums are of what was sent.

Section 5.2, lines 246 to 248 of the text.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@njit(cache=True, nogil=True)
def publish(  # noqa: PLR0917 - Numba's functions take positional arguments
    path: Indices, taken: Indices, costs: Array, H: int, S: int, A: int, fresh: Array, noisy: Array
) -> None:
    """Adds one user's noisy message, σ + Lap in each of the counters, to the sums of all messages.

    Args:
        path: (H + 1,) the user's states.
        taken: (H,) its actions.
        costs: (H,) its costs.
        H: Steps.
        S: States.
        A: Actions.
        fresh: (at least M,) the user's own fresh noise; becomes its message.
        noisy: (M,) the sums, kept from user to user.
    """
    cells = H * S * A
    for h in range(H):
        cell = path[h] * A + taken[h]
        fresh[h * S * A + cell] += 1.0
        fresh[cells + h * S * A + cell] += costs[h]
        fresh[2 * cells + (h * S + path[h + 1]) * S * A + cell] += 1.0
    for i in range(noisy.size):
        noisy[i] += fresh[i]
