"""The CENTRAL-PRIVATIZER: a binary tree of noisy partial sums for every counter (section 5.1, lines 226 to 230).

The noisy count after t episodes is the exact count plus the noise of the nodes that cover [1, t], one for each bit of
t. From t − 1 to t one node closes, that of t's lowest bit; the nodes of its higher bits stay. So the sums over the
nodes of the higher bits are kept, one vector a level: an episode costs one draw and one addition a counter, and
⌊log₂(K − 1)⌋ + 1 vectors of memory. Episode K's counts are never released: no episode comes after it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck_algorithms.privatizers import noise

Array = NDArray[np.float64]


def levels(K: int) -> int:
    """Returns the nodes that one user's episode lies in at most: ⌊log₂(K − 1)⌋ + 1; 0 for K = 1."""
    return (K - 1).bit_length()


@njit(cache=True, nogil=True)
def publish(  # noqa: PLR0917 - Numba's functions take positional arguments
    t: int, law: int, scale: float, streams: NDArray[np.uint64], rng: np.random.Generator, raw: NDArray[np.uint64],
    exact: Array, prefix: Array, noisy: Array,
) -> None:  # fmt: skip
    """Writes the noisy counters after episode t: the node which closes with it gets its noise from the channel.

    Args:
        t: Episodes counted so far, at least 1.
        law: As for `noise.add`, with the next four.
        scale: Of the noise.
        streams: Of Laplace noise.
        rng: Of Gaussian noise.
        raw: (3, piece) scratch.
        exact: (M,) the exact counters.
        prefix: (levels, M) the noise of the nodes of t's bits from each level up; kept from episode to episode.
        noisy: (M,) overwritten.
    """
    level, piece = 0, raw.shape[1]
    while (t >> level) & 1 == 0:
        level += 1
    above = level + 1
    while t >> above != 0 and (t >> above) & 1 == 0:
        above += 1
    fresh = raw[2].view(np.float64)
    for first in range(0, noisy.size, piece):
        stop = min(first + piece, noisy.size)
        counts, sums = exact[first:stop], noisy[first:stop]
        if level == 0 and t > 1:  # no later sum is over a leaf: its noise need not be kept
            noise.add(law, scale, streams, rng, raw, prefix[above, first:stop], sums)
            for i in range(sums.size):
                sums[i] += counts[i]
            continue
        node = prefix[level, first:stop]
        if t >> above == 0:  # no higher bit: the node covers everything
            fresh[:] = 0.0
            noise.add(law, scale, streams, rng, raw, fresh[: sums.size], node)
        else:
            noise.add(law, scale, streams, rng, raw, prefix[above, first:stop], node)
        for i in range(sums.size):
            sums[i] = counts[i] + node[i]
