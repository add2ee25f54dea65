"""How an episode's counters lie in memory: one vector a replicate, so that noise is one draw and one add a counter.

With c = s·A + a: visits (H, SA), then costs (H, SA), then transitions (H, S, SA), successor before cell, so that the
loops over cells run along memory. `as_declared` gives the tables the shapes that declarations know.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
LINE = 64  # bytes


def size(H: int, S: int, A: int) -> int:
    """Returns the number of counters: H·S·A·(S + 2)."""
    return H * S * A * (S + 2)


def aligned(*shape: int) -> Array:
    """Returns zeros that begin where a cache line does: vector loads that straddle two lines cost a fifth of the speed.

    >>> aligned(3, 5).ctypes.data % 64, aligned(3, 5).shape
    (0, (3, 5))
    """
    numbers = math.prod(shape)
    found = np.zeros(numbers + LINE // 8)
    first = -found.ctypes.data % LINE // 8
    return found[first : first + numbers].reshape(shape)


@njit(cache=True, nogil=True, forceinline=True)
def split(flat: Array, H: int, S: int, A: int) -> tuple[Array, Array, Array]:
    """Returns views of visits (H, SA), costs (H, SA) and transitions (H, S, SA)."""
    cells = H * S * A
    return (
        flat[:cells].reshape(H, S * A),
        flat[cells : 2 * cells].reshape(H, S * A),
        flat[2 * cells : (2 + S) * cells].reshape(H, S, S * A),
    )


@njit(cache=True, nogil=True, forceinline=True)
def count(  # noqa: PLR0917 - Numba's functions take positional arguments
    visits: Array, sums: Array, transitions: Array, A: int, path: Indices, taken: Indices, costs: Array
) -> None:
    """Adds one trajectory to the exact counters (section 3, line 126 of the text).

    Args:
        visits: (H, SA).
        sums: (H, SA) of costs.
        transitions: (H, S, SA).
        A: Actions.
        path: (H + 1,) the states.
        taken: (H,) the actions.
        costs: (H,) the costs.
    """
    for h in range(taken.size):
        cell = path[h] * A + taken[h]
        visits[h, cell] += 1.0
        sums[h, cell] += costs[h]
        transitions[h, path[h + 1], cell] += 1.0


def as_declared(flat: Array, H: int, S: int, A: int) -> dict[str, Array]:
    """Returns copies in the declared shapes: visits and costs (H, S, A), transitions (H, S, A, S)."""
    cells = H * S * A
    return {
        "visits": flat[:cells].reshape(H, S, A).copy(),
        "costs": flat[cells : 2 * cells].reshape(H, S, A).copy(),
        "transitions": np.ascontiguousarray(
            flat[2 * cells : (2 + S) * cells].reshape(H, S, S, A).transpose(0, 2, 3, 1)
        ),
    }


def as_vector(visits: Array, costs: Array, transitions: Array) -> Array:
    """Returns tables of the declared shapes as one vector, the inverse of `as_declared`."""
    return np.concatenate([visits.ravel(), costs.ravel(), transitions.transpose(0, 3, 1, 2).ravel()])
