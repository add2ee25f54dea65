"""The LOCAL-PRIVATIZER: every user sends its own bits with noise, and the sums are of what was sent.

Section 5.2, lines 246 to 248 of the text. A message σ + Lap enters the sums in two additions: the bits by
`privcheck_algorithms.online.tables.count`, the channel's noise here; nobody sees the sums between the two.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck_algorithms.privatizers import noise

Array = NDArray[np.float64]


@njit(cache=True, nogil=True)
def publish(  # noqa: PLR0917 - Numba's functions take positional arguments
    law: int, scale: float, streams: NDArray[np.uint64], rng: np.random.Generator, raw: NDArray[np.uint64], noisy: Array
) -> None:
    """Lets the channel add one user's own fresh noise to the sums of all messages.

    Args:
        law: As for `noise.add`, with the next four.
        scale: Of the noise.
        streams: Of Laplace noise.
        rng: Of Gaussian noise.
        raw: (3, piece) scratch.
        noisy: (M,) the sums, kept from user to user.
    """
    piece, fresh = raw.shape[1], raw[2].view(np.float64)
    for first in range(0, noisy.size, piece):
        sums = noisy[first : first + piece]
        noise.add(law, scale, streams, rng, raw, sums, fresh[: sums.size])
        for i in range(sums.size):
            sums[i] = fresh[i]
