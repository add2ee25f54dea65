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

Array = NDArray[np.float64]


def levels(K: int) -> int:
    """Returns the nodes that one user's episode lies in at most: ⌊log₂(K − 1)⌋ + 1; 0 for K = 1."""
    return (K - 1).bit_length()


@njit(cache=True, nogil=True)
def publish(t: int, start: int, exact: Array, fresh: Array, prefix: Array, noisy: Array) -> None:  # noqa: PLR0917 - Numba
    """Writes a piece of the noisy counters after episode t.

    Args:
        t: Episodes counted so far, at least 1.
        start: Where the piece begins.
        exact: (M,) the exact counters.
        fresh: Fresh noise for the piece: that of the node which closes with episode t.
        prefix: (levels, M) the noise of the nodes of t's bits from each level up; kept from episode to episode.
        noisy: (M,) overwritten from `start` on, as far as the piece reaches.
    """
    level = 0
    while (t >> level) & 1 == 0:
        level += 1
    above = level + 1
    while t >> above != 0 and (t >> above) & 1 == 0:
        above += 1
    stop = min(start + fresh.size, exact.size)
    counts, sums, node = exact[start:stop], noisy[start:stop], prefix[level, start:stop]
    if t >> above == 0:  # no higher bit: the node covers everything
        for i in range(counts.size):
            node[i] = fresh[i]
            sums[i] = counts[i] + fresh[i]
        return
    covered = prefix[above, start:stop]
    if level == 0:  # no later sum is over a leaf: its noise need not be kept
        for i in range(counts.size):
            sums[i] = counts[i] + (covered[i] + fresh[i])
        return
    for i in range(counts.size):
        node[i] = covered[i] + fresh[i]
    for i in range(counts.size):
        sums[i] = counts[i] + node[i]
