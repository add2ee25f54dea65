"""The CENTRAL-PRIVATIZER where the tree does not fit into memory: nodes' noise is drawn again whenever it is needed.

A node's noise is a function of where the channel's streams stood when the node closed. Of each open node that alone is
kept, once for every part of a step's tables, and what users did is kept as trajectories. The noisy tables exist one
step at a time, while that step is planned. They are those of `tree`, bit by bit: the same draws, added in the same
order. An episode costs a draw for every counter and every bit of t that is set, in place of one for every counter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck_algorithms.privatizers import noise

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]
PARTS = 3  # a step's tables lie in three places of a release: visits, costs, transitions


@njit(cache=True, nogil=True)
def begins(part: int, h: int, H: int, S: int, A: int) -> int:
    """Returns where a step's visits (0), costs (1) or transitions (2) begin in a release, laid out as in `tables`."""
    cells = S * A
    return (part * H + h) * cells if part < PARTS - 1 else 2 * H * cells + h * S * cells


@njit(cache=True, nogil=True)
def close(  # noqa: PLR0917 - Numba's functions take positional arguments
    t: int, H: int, S: int, A: int, streams: Words, raw: Words, marks: Words
) -> None:
    """Notes where the streams stand at every part of the release after episode t, and leaves them at its end.

    Args:
        t: Episodes counted so far, at least 1: the node of its lowest bit closes.
        H: Steps.
        S: States.
        A: Actions.
        streams: (4, 16) of Laplace noise.
        raw: (piece,) scratch; a multiple of sixteen long.
        marks: (levels, 3, H, 4, 16) streams at the block of sixteen draws in which a part begins; row of the node's
            level is overwritten.
    """
    level, done, size = 0, 0, H * S * A * (S + 2)
    while (t >> level) & 1 == 0:
        level += 1
    for part in range(PARTS):  # in the order in which they lie in the release
        for h in range(H):
            done = _skip(streams, raw, done, begins(part, h, H, S, A) // noise.LANES)
            marks[level, part, h] = streams
    _skip(streams, raw, done, noise.padded(size) // noise.LANES)


@njit(cache=True, nogil=True)
def _skip(streams: Words, raw: Words, done: int, until: int) -> int:
    """Draws blocks of sixteen words and forgets them; returns `until`, how many are done then."""
    while done < until:
        blocks = min(until - done, raw.size // noise.LANES)
        noise.words(streams, raw[: blocks * noise.LANES])
        done += blocks
    return until


@njit(cache=True, nogil=True)
def tables(  # noqa: PLR0917 - as above
    t: int, h: int, H: int, S: int, A: int, law: int, scale: float, marks: Words, rng: np.random.Generator, raw: Words,
    paths: Indices, taken: Indices, costs: Array, exact: Array, noisy: Array,
) -> None:  # fmt: skip
    """Writes one step's noisy tables after episode t, as `tree.publish` would.

    Args:
        t: Episodes counted so far.
        h: The step, from 0.
        H: Steps.
        S: States.
        A: Actions.
        law: `noise.LAPLACE` or `noise.NONE`.
        scale: b.
        marks: As in `close`.
        rng: Not read: no Gaussian noise is drawn again.
        raw: (4, piece) scratch.
        paths: (K, H + 1) users' states.
        taken: (K, H) their actions.
        costs: (K, H) their costs.
        exact: (S·A·(S + 2),) zeros; zeros again afterwards.
        noisy: (S·A·(S + 2),) overwritten: visits (SA,), costs (SA,), transitions (S, SA).
    """
    cells = S * A
    noisy[:] = 0.0
    level = 0
    while t >> level != 0:
        level += 1
    while level > 0 and law == noise.LAPLACE:  # from the oldest node on, as the tree's prefixes are summed
        level -= 1
        if (t >> level) & 1 != 0:
            for part in range(PARTS):
                first, last = part * cells, (part + 1) * cells if part < PARTS - 1 else noisy.size
                skip = begins(part, h, H, S, A) % noise.LANES
                _grow(marks[level, part, h].copy(), skip, scale, rng, raw, noisy[first:last])
    for user in range(t):
        cell = paths[user, h] * A + taken[user, h]
        exact[cell] += 1.0
        exact[cells + cell] += costs[user, h]
        exact[(2 + paths[user, h + 1]) * cells + cell] += 1.0
    for user in range(t):
        cell = paths[user, h] * A + taken[user, h]
        for place in (cell, cells + cell, (2 + paths[user, h + 1]) * cells + cell):
            noisy[place] += exact[place]
            exact[place] = 0.0


@njit(cache=True, nogil=True)
def _grow(  # noqa: PLR0917 - as above
    streams: Words, skip: int, scale: float, rng: np.random.Generator, raw: Words, sums: Array
) -> None:
    """Adds a node's noise to a part of a step's tables; the part begins `skip` draws after the streams."""
    piece = raw.shape[1]
    fresh, base = raw[2].view(np.float64), raw[3].view(np.float64)
    for at in range(-skip, sums.size, piece):
        first, last = max(at, 0), min(at + piece, sums.size)
        for i in range(first, last):
            base[i - at] = sums[i]
        noise.add(noise.LAPLACE, scale, streams, rng, raw, base[: last - at], fresh[: last - at])
        for i in range(first, last):
            sums[i] = fresh[i - at]
