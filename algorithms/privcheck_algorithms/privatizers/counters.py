"""Privatizers of an agent's counters: a trajectory in, noisy counters out, all through `publish`.

*Tree* (the CENTRAL-PRIVATIZER, section 5.1): a binary tree of noisy partial sums for
every counter. The noisy count after t episodes is the exact count plus the noise of the nodes that cover [1, t], one
for each bit of t. From t − 1 to t one node closes, that of t's lowest bit; the nodes of its higher bits stay. So the
sums over the nodes of the higher bits are kept, one vector per level: an episode costs one draw and one addition per
counter, and ⌊log₂(K − 1)⌋ + 1 vectors of memory. *Recomputed*: the same if these do not fit, see `recompute`.

*Local* (the LOCAL-PRIVATIZER, section 5.2): every user sends its own bits with noise, and the messages are summed. A
message σ + Lap enters the sums in two additions; the sums between the two are never visible.

*Doubling*: after f, 2f, 4f, … users the newest batch is released, as large as all earlier ones together. Every user is
in one output, so that only the noise of one output protects them; the noisy count after j outputs is their sum, with j
noises, j ≤ ⌊log₂((K − 1)/f)⌋ + 1. Between two outputs nothing is released, and the policy does not change. Users after
the last output are never counted.

*Exact*: no privatizer; for the agents that are not private.

Episode K's counts are never released: no episode comes after it.

Numba counts references to arrays atomically whenever one is passed on: half of a cheap episode's time. It drops a pair
of counts between which nothing can raise, if both are on every path. Hence functions called in an episode are
force-inlined, steps through memory are `while` loops (a `range` refuses the step 0), no array is viewed as another one,
loops that do not apply run zero times, and arguments are read before branches, or once more after them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import Walk
from privcheck_algorithms.kernels.tables import Layout, count
from privcheck_algorithms.privatizers import recompute
from privcheck_algorithms.privatizers.noise import NoiseStream, add
from privcheck_algorithms.privatizers.recompute import RecomputedTree

Array = NDArray[np.float64]

TREE, RECOMPUTED, LOCAL, DOUBLING, EXACT = range(5)


class Privatizer(NamedTuple):
    """A privatizer and its state from episode to episode; arrays that its kind does not use are empty.

    Attributes:
        kind: `TREE`, `RECOMPUTED`, `LOCAL`, `DOUBLING` or `EXACT`.
        K: The last episode, after which nothing is released.
        first: f, the number of users of the first batch.
        layout: Layout of counters in a vector of M.
        channel: Source of the noise.
        exact: (M,) exact counters of a curator; for batches those of the current batch, or of the last one until the
            next batch has a user.
        noisy: (M,) noisy counters, the billboard; if noise is recomputed, those of one step, (M/H,).
        rows: Tree: (levels, M) the noise of the nodes of t's bits from each level up; batches: (outputs, M) the noisy
            counters of each, whose sum `noisy` is.
        past: If noise is recomputed: the state kept in place of `exact` and `rows`.
    """

    kind: int
    K: int
    first: int
    layout: Layout
    channel: NoiseStream
    exact: Array
    noisy: Array
    rows: Array
    past: RecomputedTree


def levels(K: int) -> int:
    """Largest number of tree nodes that contain one user's episode: ⌊log₂(K − 1)⌋ + 1; 0 for K = 1."""
    return (K - 1).bit_length()


def outputs(K: int, first: int) -> int:
    """Number of batches released before the last of K episodes, the first after `first` users.

    >>> outputs(20_000, 1), outputs(20_000, 10_000), outputs(20_000, 20_000)
    (15, 1, 0)
    """
    return ((K - 1) // first).bit_length()


@njit(cache=True, nogil=True, forceinline=True)
def begins(t: int, first: int) -> bool:
    """Whether a batch begins after t users: t is 0 or f·2ʲ."""
    times = t // first
    return t == times * first and (times & (times - 1)) == 0


@njit(cache=True, nogil=True, forceinline=True)
def renews(p: Privatizer, t: int) -> bool:
    """Whether the noisy counters after t episodes are new, or the first."""
    kind, first = p.kind, p.first
    return kind != DOUBLING or begins(t, first)


@njit(cache=True, nogil=True, forceinline=True)
def publish(p: Privatizer, t: int, walk: Walk) -> bool:
    """Count the trajectory of episode t, from 1, and write the noisy counters after it; nothing after episode K.

    Returns whether the noisy counters are new.
    """
    if t < p.K:
        if p.kind == TREE:
            count(p.exact, p.layout, walk)
            close_node(p.channel, t, p.exact, p.rows, p.noisy)
        elif p.kind == LOCAL:
            count(p.noisy, p.layout, walk)
            _send(p.channel, p.noisy)
        elif p.kind == DOUBLING:
            if begins(t - 1, p.first):
                p.exact[:] = 0.0
            count(p.exact, p.layout, walk)
            if begins(t, p.first):
                close_batch(p.channel, t // p.first, p.exact, p.rows, p.noisy)
        elif p.kind == RECOMPUTED:
            recompute.remember(p.past, p.channel, t, walk)
        else:
            count(p.noisy, p.layout, walk)
    return renews(p, t)


@njit(cache=True, nogil=True, forceinline=True)
def close_node(channel: NoiseStream, t: int, exact: Array, prefix: Array, noisy: Array) -> None:
    """Write the noisy counters after t episodes: the channel adds noise to the node that closes with t.

    Args:
        channel: The channel.
        t: Number of episodes counted so far, at least 1.
        exact: (M,) the exact counters.
        prefix: (levels, M) the noise of the nodes of t's bits from each level up; kept from episode to episode.
        noisy: (M,) overwritten.
    """
    level, first, piece, nothing = 0, 0, channel.raw.size, channel.room[0]
    while (t >> level) & 1 == 0:
        level += 1
    above = level + 1
    while t >> above != 0 and (t >> above) & 1 == 0:
        above += 1
    leaf, highest = level == 0 and t > 1, t >> above == 0  # the highest node covers everything
    nothing[: piece if highest else 0] = 0.0
    while first < noisy.size:
        stop = min(first + piece, noisy.size)
        counts, sums = exact[first:stop], noisy[first:stop]
        node = sums if leaf else prefix[level, first:stop]  # no later sum is over a leaf: its noise need not be kept
        add(channel, nothing[: sums.size] if highest else prefix[above, first:stop], node)
        for i in range(sums.size if leaf else 0):
            sums[i] += counts[i]
        for i in range(0 if leaf else sums.size):
            sums[i] = counts[i] + node[i]
        first = stop


@njit(cache=True, nogil=True, forceinline=True)
def _send(channel: NoiseStream, noisy: Array) -> None:
    """Add one user's fresh noise to the sums of all messages, (M,), by the channel."""
    first, fresh = 0, channel.room[0]
    while first < noisy.size:
        sums = noisy[first : first + fresh.size]
        add(channel, sums, fresh[: sums.size])
        for i in range(sums.size):
            sums[i] = fresh[i]
        first += fresh.size


@njit(cache=True, nogil=True, forceinline=True)
def close_batch(channel: NoiseStream, times: int, exact: Array, board: Array, noisy: Array) -> None:
    """Write the noisy counters of the batch that ends after 2ʲ·f users, and add them to those of all batches.

    Args:
        channel: The channel.
        times: 2ʲ.
        exact: (M,) the batch's exact counters.
        board: (outputs, M) the batches' noisy counters; row j is overwritten.
        noisy: (M,) their sum, kept from batch to batch.
    """
    j, first, piece = 0, 0, channel.raw.size
    while 1 << j != times:
        j += 1
    while first < noisy.size:
        stop = min(first + piece, noisy.size)
        sums, batch = noisy[first:stop], board[j, first:stop]
        add(channel, exact[first:stop], batch)
        for i in range(sums.size):
            sums[i] += batch[i]
        first = stop
