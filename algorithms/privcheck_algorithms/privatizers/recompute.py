"""The CENTRAL-PRIVATIZER if the tree does not fit into memory: nodes' noise is recomputed whenever it is needed.

A node's noise is a function of the states of the channel's streams when the node closed. For each open node only these
are kept, once for every part of a step's tables, and users' data are kept as trajectories. The noisy tables exist one
step at a time, while that step is planned. They equal those of the tree in `counters`, bit by bit: the same draws,
added
in the same order. An episode costs a draw per counter and set bit of t, in place of one per counter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import Walk
from privcheck_algorithms.privatizers import noise
from privcheck_algorithms.privatizers.noise import NoiseStream

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]
PARTS = 3  # a step's tables lie in three places of a release: visits, costs, transitions


class RecomputedTree(NamedTuple):
    """State for recomputing a tree's noise: stream states of the nodes, and users' trajectories.

    Attributes:
        S: Number of states.
        A: Number of actions.
        marks: (levels, 3, H, 4, 16) stream states at the block of sixteen draws in which a part begins, for the open
            node of each level.
        paths: (K, H + 1) users' states.
        taken: (K, H) their actions.
        costs: (K, H) their costs.
        exact: (S·A·(S + 2),) scratch: zeros between two calls.
    """

    S: int
    A: int
    marks: Words
    paths: Indices
    taken: Indices
    costs: Array
    exact: Array


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def begins(past: RecomputedTree, part: int, h: int) -> int:
    """Offset of a step's visits (0), costs (1) or transitions (2) in a release, in the layout of `tables`."""
    cells, H = past.S * past.A, int(past.taken.shape[1])
    return (part * H + h) * cells if part < PARTS - 1 else 2 * H * cells + h * past.S * cells


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def remember(past: RecomputedTree, channel: NoiseStream, t: int, walk: Walk) -> None:
    """Store the trajectory of episode t, at least 1, and close the node of t's lowest bit.

    Stores the stream states at every part of the release after the episode, and advances the streams to its end.
    """
    H, level, done = past.taken.shape[1], 0, int(np.int64(0))  # a literal would compile `_skip` for itself
    for h in range(H):  # array by array would compile Python's strings, for a message on shapes
        past.paths[t - 1, h], past.taken[t - 1, h], past.costs[t - 1, h] = walk.path[h], walk.taken[h], walk.costs[h]
    past.paths[t - 1, H] = walk.path[H]
    while (t >> level) & 1 == 0:
        level += 1
    for part in range(PARTS):  # in the order in which they lie in the release
        for h in range(H):
            done = _skip(channel, done, begins(past, part, h) // noise.LANES)
            for word in range(channel.streams.shape[0]):
                for lane in range(channel.streams.shape[1]):
                    past.marks[level, part, h, word, lane] = channel.streams[word, lane]
    _skip(channel, done, noise.padded(H * past.exact.size) // noise.LANES)


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _skip(channel: NoiseStream, done: int, until: int) -> int:
    """Draw and discard blocks of sixteen words; returns `until`, the number of blocks then drawn."""
    streams, raw = channel.streams, channel.raw
    while done < until:
        blocks = min(until - done, raw.size // noise.LANES)
        noise.words(streams, raw[: blocks * noise.LANES])
        done += blocks
    return until


@njit(cache=True, nogil=True)
def write(past: RecomputedTree, channel: NoiseStream, t: int, h: int, noisy: Array) -> None:
    """Write one step's noisy tables after t episodes, equal to those of a stored tree.

    Args:
        past: The stored state.
        channel: The channel; its noise is Laplace, or none.
        t: Number of episodes counted so far.
        h: The step, from 0.
        noisy: (S·A·(S + 2),) overwritten: visits (SA,), costs (SA,), transitions (S, SA).
    """
    cells, exact = past.S * past.A, past.exact
    noisy[:] = 0.0
    level = 0
    while t >> level != 0:
        level += 1
    while level > 0 and channel.law == noise.LAPLACE:  # from the oldest node on, as the tree's prefixes are summed
        level -= 1
        if (t >> level) & 1 != 0:
            for part in range(PARTS):
                first, last = part * cells, (part + 1) * cells if part < PARTS - 1 else noisy.size
                skip = begins(past, part, h) % noise.LANES
                streams = past.marks[level, part, h].copy()
                node = NoiseStream(channel.law, channel.scale, streams, channel.rng, channel.raw, channel.room)
                _grow(node, skip, noisy[first:last])
    for user in range(t):
        cell = past.paths[user, h] * past.A + past.taken[user, h]
        exact[cell] += 1.0
        exact[cells + cell] += past.costs[user, h]
        exact[(2 + past.paths[user, h + 1]) * cells + cell] += 1.0
    for user in range(t):
        cell = past.paths[user, h] * past.A + past.taken[user, h]
        for place in (cell, cells + cell, (2 + past.paths[user, h + 1]) * cells + cell):
            noisy[place] += exact[place]
            exact[place] = 0.0


@njit(cache=True, nogil=True)
def _grow(channel: NoiseStream, skip: int, sums: Array) -> None:
    """Add a node's noise to a part of a step's tables; the part begins `skip` draws after the channel's streams."""
    piece, fresh, base = channel.raw.size, channel.room[0], channel.room[1]
    for at in range(-skip, sums.size, piece):
        first, last = max(at, 0), min(at + piece, sums.size)
        for i in range(first, last):
            base[i - at] = sums[i]
        noise.add(channel, base[: last - at], fresh[: last - at])
        for i in range(first, last):
            sums[i] = fresh[i - at]
