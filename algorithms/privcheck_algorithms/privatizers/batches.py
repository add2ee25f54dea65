"""Disjoint batches that double: after f, 2f, 4f, … users the newest batch leaves, as large as all before it together.

Every user is in one output, so that the noise of one output is all that hides them; the noisy count after j outputs is
their sum, with j noises, j ≤ ⌊log₂((K − 1)/f)⌋ + 1. Between two outputs nothing leaves, and nobody plans anew. Users
after the last output are never counted.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck_algorithms.privatizers import noise

Array = NDArray[np.float64]


def outputs(K: int, first: int) -> int:
    """Returns how many batches leave before the last of K episodes, the first of them after so many users.

    >>> outputs(20_000, 1), outputs(20_000, 10_000), outputs(20_000, 20_000)
    (15, 1, 0)
    """
    return ((K - 1) // first).bit_length()


@njit(cache=True, nogil=True, forceinline=True)
def begins(t: int, first: int) -> bool:
    """Returns whether a batch begins after t users: none have come yet, or f·2ʲ."""
    times = t // first
    return t == times * first and (times & (times - 1)) == 0


@njit(cache=True, nogil=True)
def publish(  # noqa: PLR0917 - Numba's functions take positional arguments
    t: int, first: int, law: int, scale: float, streams: NDArray[np.uint64], rng: np.random.Generator,
    raw: NDArray[np.uint64], exact: Array, board: Array, noisy: Array,
) -> None:  # fmt: skip
    """Writes the noisy counters of the batch that ends with user t, and adds them to those of all batches.

    Args:
        t: Users so far: f·2ʲ.
        first: f, the users of the first batch.
        law: As for `noise.add`, with the next four.
        scale: Of the noise.
        streams: Of Laplace noise.
        rng: Of Gaussian noise.
        raw: (2, piece) scratch.
        exact: (M,) the batch's exact counters.
        board: (outputs, M) the batches' noisy counters; row j is overwritten.
        noisy: (M,) their sum, kept from batch to batch.
    """
    j, piece = 0, raw.shape[1]
    while first << j != t:
        j += 1
    for begin in range(0, noisy.size, piece):
        end = min(begin + piece, noisy.size)
        noise.add(law, scale, streams, rng, raw, exact[begin:end], board[j, begin:end])
    for i in range(noisy.size):
        noisy[i] += board[j, i]
