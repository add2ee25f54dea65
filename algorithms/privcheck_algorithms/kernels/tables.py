"""Memory layout of an episode's counters: one vector per replicate, so that noise is one draw and one add per counter.

With c = s·A + a: visits (H, SA), then costs (H, SA), then transitions (H, S, SA), successor before cell, so that loops
over cells are contiguous in memory. `as_declared` gives the tables their declared shapes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import Walk

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
LINE = 64  # bytes


class Layout(NamedTuple):
    """Layout of counters.

    Attributes:
        T: Number of tables: H, or 1 if steps are pooled.
        S: Number of states.
        A: Number of actions.
        rewards: Whether sums are of rewards 1 − c; otherwise of costs c.
    """

    T: int
    S: int
    A: int
    rewards: bool


class Counters(NamedTuple):
    """Views of a vector of counters, with c = s·A + a.

    Attributes:
        visits: (T, SA) visits.
        sums: (T, SA) sums of costs, or of rewards.
        transitions: (T, S, SA) transitions, successor before cell.
    """

    visits: Array
    sums: Array
    transitions: Array


def size(H: int, S: int, A: int) -> int:
    """Number of counters: H·S·A·(S + 2)."""
    return H * S * A * (S + 2)


def aligned(*shape: int) -> Array:
    """Zeros aligned to a cache line: vector loads that straddle two lines cost a fifth of the speed.

    >>> aligned(3, 5).ctypes.data % 64, aligned(3, 5).shape
    (0, (3, 5))
    """
    numbers = math.prod(shape)
    found = np.zeros(numbers + LINE // 8)
    first = -found.ctypes.data % LINE // 8
    return found[first : first + numbers].reshape(shape)


@njit(cache=True, nogil=True, forceinline=True)
def split(flat: Array, H: int, S: int, A: int) -> Counters:
    """Views of visits (H, SA), costs (H, SA) and transitions (H, S, SA)."""
    cells = H * S * A
    return Counters(
        flat[:cells].reshape(H, S * A),
        flat[cells : 2 * cells].reshape(H, S * A),
        flat[2 * cells : (2 + S) * cells].reshape(H, S, S * A),
    )


@njit(cache=True, nogil=True, forceinline=True)
def count(flat: Array, layout: Layout, walk: Walk) -> None:
    """Add one trajectory to a vector of counters (section 3)."""
    T, S, A, rewards = layout
    path, taken, costs = walk
    for h in range(taken.size):
        t, pair = h if T > 1 else 0, path[h] * A + taken[h]
        cell = t * S * A + pair
        flat[cell] += 1.0
        flat[T * S * A + cell] += 1.0 - costs[h] if rewards else costs[h]
        flat[2 * T * S * A + (t * S + path[h + 1]) * S * A + pair] += 1.0


def as_declared(flat: Array, H: int, S: int, A: int) -> dict[str, Array]:
    """Copies in the declared shapes: visits and costs (H, S, A), transitions (H, S, A, S)."""
    cells = H * S * A
    return {
        "visits": flat[:cells].reshape(H, S, A).copy(),
        "costs": flat[cells : 2 * cells].reshape(H, S, A).copy(),
        "transitions": np.ascontiguousarray(
            flat[2 * cells : (2 + S) * cells].reshape(H, S, S, A).transpose(0, 2, 3, 1)
        ),
    }


def as_vector(visits: Array, costs: Array, transitions: Array) -> Array:
    """Tables of the declared shapes as one vector, the inverse of `as_declared`."""
    return np.concatenate([visits.ravel(), costs.ravel(), transitions.transpose(0, 3, 1, 2).ravel()])
