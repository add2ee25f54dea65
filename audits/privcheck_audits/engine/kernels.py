"""Compiled loops: wrong guesses at many ranks and at many thresholds, and noise in bulk.

The ranks are counted without sorting the runs by rank. The noise is that of `Noise.draw`, digit for digit, drawn three
times as fast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noise
from privcheck.support.kernels import njit


def count_errors_by_rank(
    size: NDArray[np.float64], wrong: NDArray[np.bool_], ranks: tuple[int, ...]
) -> tuple[int, ...]:
    """Number of wrong guesses among the runs with the largest sizes, for each rank; ties go to the earlier run.

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
    """Number of runs on D with a score at most each threshold, and of runs on D′ with a score above it.

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
    """One pass per threshold over scores in the cache: without branches, five times as fast as a search."""
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
    """Number of wrong runs at each rank.

    Args:
        size: (runs,) sizes.
        wrong: (runs,) whether the guess is wrong.
        values: (groups,) distinct sizes at the ranks, descending.
        group: (ranks,) index of the size at each rank, ascending.
        quota: (ranks,) number of runs of exactly that size that belong to the rank; ascending in a group.
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


def draw(noise: Noise, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Draw noise of a shape; the same stream gives the same numbers as `noise.draw(rng, shape)`.

    Numba inlines NumPy's own ziggurat for normals and releases the interpreter lock. Other laws gain little.
    """
    if type(noise) is not GaussianNoise:
        return noise.draw(rng, shape)
    out = np.empty(shape)
    _normals(rng, noise.scale, out.reshape(-1))
    return out


def add_log_ratio(
    noise: Noise,
    rng: np.random.Generator,
    change: NDArray[np.float64],
    on_first: NDArray[np.bool_],
    score: NDArray[np.float64],
) -> None:
    """Draw noise for each run and add ln p(output | D) − ln p(output | D′) to its score, in place.

    The noise is that of `draw(noise, rng, (runs, m))`; the run's bit selects D or D′. The added value is
    `noise.log_ratio`, up to rounding, without the outputs being written to memory.

    Args:
        noise: Noise of each coordinate.
        rng: Generator of the noise.
        change: (m,) f(D) − f(D′).
        on_first: (runs,) whether the run is on D.
        score: (runs,) scores, changed in place.
    """
    if type(noise) is GaussianNoise:
        weight = change / noise.scale
        _add_gaussian(rng, weight, float(weight @ weight) / 2, on_first, score)
    elif type(noise) is LaplaceNoise:
        _add_laplace(rng, change / noise.scale, on_first, score)
    else:
        output = draw(noise, rng, (score.size, change.size))
        np.subtract(output, change, out=output, where=~on_first[:, None])  # less f(D): on D′ the outputs sit at −change
        score += noise.log_ratio(output, change)


def add_exact(
    noise: NDArray[np.float64],
    on_first: NDArray[np.bool_],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> None:
    """Add the exact statistic to each run's noise, in place.

    Args:
        noise: (runs, …) noise, changed in place.
        on_first: (runs,) whether the run is on D.
        first: (…) the statistic of D.
        second: (…) the statistic of D′.
    """
    flat = noise.reshape(on_first.size, -1)
    _add(flat, on_first, np.ascontiguousarray(first).reshape(-1), np.ascontiguousarray(second).reshape(-1))


@njit(cache=True, nogil=True)
def _normals(rng: np.random.Generator, std: float, out: NDArray[np.float64]) -> None:
    for i in range(out.size):
        out[i] = rng.standard_normal() * std


@njit(cache=True, nogil=True)
def _add_gaussian(
    rng: np.random.Generator,
    weight: NDArray[np.float64],
    half: float,
    on_first: NDArray[np.bool_],
    score: NDArray[np.float64],
) -> None:
    """Add (‖x + Δ‖² − ‖x‖²)/2σ², linear in x: x·Δ/σ², and ‖Δ/σ‖²/2 with the sign of the arm."""
    for run in range(score.size):
        ratio = half if on_first[run] else -half
        for i in range(weight.size):
            ratio += rng.standard_normal() * weight[i]
        score[run] += ratio


@njit(cache=True, nogil=True)
def _add_laplace(
    rng: np.random.Generator, step: NDArray[np.float64], on_first: NDArray[np.bool_], score: NDArray[np.float64]
) -> None:
    """Add |x + Δ| − |x| on D, |x| − |x − Δ| on D′, in units of b."""
    for run in range(score.size):
        shift = 1.0 if on_first[run] else -1.0
        ratio = 0.0
        for i in range(step.size):
            x = rng.laplace(0.0, 1.0)
            ratio += shift * (abs(x + shift * step[i]) - abs(x))
        score[run] += ratio


@njit(cache=True, nogil=True)
def _add(
    noise: NDArray[np.float64],
    on_first: NDArray[np.bool_],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> None:
    for run in range(noise.shape[0]):
        exact = first if on_first[run] else second
        for i in range(exact.size):  # `noise[run] += exact` would compile Python's strings, for a message on shapes
            noise[run, i] += exact[i]
