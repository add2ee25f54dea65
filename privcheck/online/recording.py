"""The record of a run: cumulative regret, the policy's true value and its switches, at a grid of episodes.

Every episode counts: regret is summed over all of them, whatever the grid.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DONE, AT, REGRET, VALUE, SWITCHES = range(5)  # places in `totals`
POINTS = 400  # of the grid, at most


class Record(NamedTuple):
    """The record of a run as kernels write it, a block of episodes long.

    Attributes:
        until: The last episode of this block.
        totals: (5,) episodes done, place in the grid, regret, value, switches.
        curves: (3, G) regret, value, switches.
        grid: (G,) the episodes after which these are taken.
        optimal: V*₁, for the regret.
    """

    until: int
    totals: Array
    curves: Array
    grid: Indices
    optimal: float


@functools.lru_cache(maxsize=64)  # a policy audit starts tens of thousands of runs; nobody writes into it
def grid(K: int) -> Indices:
    """Returns the episodes after which figures are taken: evenly spaced, K the last, at most 400."""
    return np.unique(np.ceil(np.linspace(0, K, min(K, POINTS) + 1)[1:]).astype(np.int64))


def blank(K: int) -> dict[str, Array]:
    """Returns a fresh record of K episodes: `totals`, the sums, and `curves`."""
    return {"totals": np.zeros(5), "curves": np.zeros((3, grid(K).size))}


@njit(cache=True, nogil=True)
def differ(policy: Array, before: Array) -> bool:
    """Returns whether a policy (H, S, A) of action probabilities is not the one before."""
    one, other = policy.reshape(-1), before.reshape(-1)
    for i in range(one.size):  # noqa: SIM110 - Numba has no any()
        if one[i] != other[i]:
            return True
    return False


@njit(cache=True, nogil=True, forceinline=True)
def note(record: Record) -> None:
    """Counts one episode that was played with the policy whose value stands in totals[VALUE]."""
    totals, curves, grid = record.totals, record.curves, record.grid
    totals[DONE] += 1.0
    totals[REGRET] += record.optimal - totals[VALUE]
    at = int(totals[AT])
    if totals[DONE] == grid[at]:
        curves[0, at] = totals[REGRET]
        curves[1, at] = totals[VALUE]
        curves[2, at] = totals[SWITCHES]
        totals[AT] = at + 1.0 if at + 1 < grid.size else float(at)
