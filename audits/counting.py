"""Wrong guesses at many ranks, without ordering the runs: one sort of numbers and one pass over the runs."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def ranked_errors(size: NDArray[np.float64], wrong: NDArray[np.bool_], ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Returns, for each rank, how many of the runs with the largest sizes are wrong; ties go to the earlier run.

    Args:
        size: (runs,) |score|, finite.
        wrong: (runs,) whether the guess by the score's sign is wrong.
        ranks: Numbers of runs to guess on, each from 1 to runs, in any order.
    """
    ordered = np.sort(size)
    distinct, inverse = np.unique(np.array(ranks), return_inverse=True)
    least = ordered[size.size - distinct]  # descending: the size at each rank
    values, group = np.unique(-least, return_inverse=True)
    above = size.size - np.searchsorted(ordered, -values, side="right")
    found = _count(size, wrong, -values, group, distinct - above[group])
    return tuple(int(count) for count in found[inverse])


@njit(cache=True, nogil=True)
def _count(
    size: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    values: NDArray[np.float64],
    group: NDArray[np.int64],
    quota: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Returns the wrong runs at each rank.

    Args:
        size: (runs,).
        wrong: (runs,).
        values: (groups,) descending: the distinct sizes that stand at a rank.
        group: (ranks,) ascending: which of them stands at each rank.
        quota: (ranks,) how many of the runs of exactly that size still belong to the rank; ascending in a group.
    """
    groups, ranks = values.size, group.size
    larger = np.zeros(groups + 1, dtype=np.int64)  # wrong runs that are larger than a value but not than the one before
    tied = np.zeros(groups, dtype=np.int64)  # runs seen of exactly that value
    tied_wrong = np.zeros(groups, dtype=np.int64)
    found = np.zeros(ranks, dtype=np.int64)
    pointer = np.searchsorted(group, np.arange(groups))  # the next rank in each group whose quota is not yet full
    for run in range(size.size):
        low, high = 0, groups
        while low < high:  # the first value that is at most this size
            middle = (low + high) // 2
            if values[middle] > size[run]:
                low = middle + 1
            else:
                high = middle
        if low < groups and values[low] == size[run]:
            tied[low] += 1
            tied_wrong[low] += wrong[run]
            at = pointer[low]
            while at < ranks and group[at] == low and quota[at] == tied[low]:
                found[at] = tied_wrong[low]
                at += 1
            pointer[low] = at
        else:
            larger[low] += wrong[run]
    before = 0
    at = 0
    for index in range(groups):
        before += larger[index]
        while at < ranks and group[at] == index:
            found[at] += before
            at += 1
        before += tied_wrong[index]
    return found
