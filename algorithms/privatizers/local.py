"""The LOCAL-PRIVATIZER: every user sends its own bits with noise, and the sums are of what was sent.

Section 5.2, lines 246 to 248 of the text. A message σ + Lap enters the sums in two additions: the noise here, piece by
piece, the bits by `algorithms.online.tables.count`; nobody sees the sums between the two.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]


@njit(cache=True, nogil=True)
def publish(start: int, fresh: Array, noisy: Array) -> None:
    """Adds one user's fresh noise to a piece of the sums of all messages.

    Args:
        start: Where the piece begins.
        fresh: The user's own fresh noise for the piece.
        noisy: (M,) the sums, kept from user to user.
    """
    for i in range(min(fresh.size, noisy.size - start)):
        noisy[start + i] += fresh[i]
