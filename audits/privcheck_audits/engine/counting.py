"""Wrong guesses at many ranks, and at many thresholds, without ordering the runs: one pass over them each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit


def count_errors_by_rank(
    size: NDArray[np.float64], wrong: NDArray[np.bool_], ranks: tuple[int, ...]
) -> tuple[int, ...]:
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
    errors = _count(size, wrong, -values, group, distinct - above[group])
    return tuple(int(count) for count in errors[inverse])


def threshold_errors(
    score: NDArray[np.float64], on_first: NDArray[np.bool_], thresholds: tuple[float, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns, for each threshold, the runs on D with a score of at most it, and the runs on D′ with one above it.

    Args:
        score: (runs,), finite.
        on_first: (runs,) whether the run is on D.
        thresholds: Ascending.
    """
    if not thresholds:
        return (), ()
    below, above = _count_each(score, on_first, np.array(thresholds))
    return tuple(below.tolist()), tuple(above.tolist())


@njit(cache=True, nogil=True)
def _count_each(
    score: NDArray[np.float64], on_first: NDArray[np.bool_], thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One pass a threshold over scores that are in the cache: without branches five times as fast as a search."""
    first, second = np.empty(score.size), np.empty(score.size)
    here = there = 0
    for run in range(score.size):
        first[here] = second[there] = score[run]
        here += on_first[run]
        there += 1 - on_first[run]
    below, above = np.empty(thresholds.size, dtype=np.int64), np.empty(thresholds.size, dtype=np.int64)
    for at in range(thresholds.size):
        fewer = more = 0
        for run in range(here):
            fewer += first[run] <= thresholds[at]
        for run in range(there):
            more += second[run] > thresholds[at]
        below[at], above[at] = fewer, more
    return below, above


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
    errors = np.zeros(ranks, dtype=np.int64)
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
                errors[at] = tied_wrong[low]
                at += 1
            pointer[low] = at
        else:
            larger[low] += wrong[run]
    before = 0
    at = 0
    for index in range(groups):
        before += larger[index]
        while at < ranks and group[at] == index:
            errors[at] += before
            at += 1
        before += tied_wrong[index]
    return errors
