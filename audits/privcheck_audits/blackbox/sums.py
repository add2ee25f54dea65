"""Sums over columns of what each tells: leaks spread so thin that no column alone is worth a look.

Columns that are independent add up their log likelihood ratios. Four laws are tried: normal noise that is moved
(linear), Laplace noise that is moved (differences of distances), normal noise and Laplace noise of another scale
(squares and distances). Each is summed over all columns, over those with a difference that is no rarity, and over the
clear ones: a leak in all columns wants the first sum, a leak in a few the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SUMS: Final = 12
_RUNS: Final = 20_000
_LIMITS: Final = 4_000  # runs that limits and medians are taken from
_SURE: Final = (0.0, 1.5, 3.0)  # standard errors by which a column must differ to be added up
_TINY: Final = 1e-300

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """From whole outputs (runs, width) to sums over columns (runs, 12).

    Attributes:
        low: (width,) least value that is told apart from lower ones.
        high: (width,) largest.
        middle: (width,) what squares and distances are counted from.
        moved: (width, 3) weights of the values.
        bends: (2, width) medians on D and on D′.
        bent: (width, 3) weights of the difference of the distances from those.
        squares: (width, 3) weights of the squared distances from the middle.
        sizes: (width, 3) weights of the distances.
    """

    low: Array
    high: Array
    middle: Array
    moved: Array
    bends: Array
    bent: Array
    squares: Array
    sizes: Array

    def __call__(self, whole: Array, wanted: NDArray[np.int64]) -> Array:
        """Returns those of the sums that are wanted, ascending; only columns that they weigh are looked at."""
        laws = (
            (self.moved, _values),
            (self.bent, self._bent),
            (self.squares, self._squares),
            (self.sizes, self._sizes),
        )
        parts = []
        for law, (weights, of) in enumerate(laws):
            mine = weights[:, wanted[wanted // len(_SURE) == law] % len(_SURE)]
            used = np.flatnonzero(mine.any(axis=1))
            parts.append(of(whole if used.size == weights.shape[0] else whole[:, used], used) @ mine[used])
        return np.concatenate(parts, axis=1)

    def _bent(self, x: Array, used: NDArray[np.int64]) -> Array:
        bent: Array = np.abs(x - self.bends[0, used])
        bent -= np.abs(x - self.bends[1, used])
        return bent

    def _squares(self, x: Array, used: NDArray[np.int64]) -> Array:
        away: Array = np.clip(x, self.low[used], self.high[used])
        away -= self.middle[used]
        away *= away
        return away

    def _sizes(self, x: Array, used: NDArray[np.int64]) -> Array:
        away: Array = np.abs(x - self.middle[used])
        return away


def _values(x: Array, _used: NDArray[np.int64]) -> Array:
    return x


def learn_sums(whole: Array, secret: Bits) -> Sums:
    """Returns weights for outputs like these.

    Args:
        whole: (runs, width) training runs, finite.
        secret: (runs,) whether each was on D.
    """
    whole, known = whole[:_RUNS], secret[:_RUNS]
    few = whole[:_LIMITS]
    low, middle, high = np.quantile(few, [0.001, 0.5, 0.999], axis=0)
    body = np.clip(whole, low, high)
    arms = [body[which] if which.any() else body for which in (known, ~known)]
    runs = [arm.shape[0] for arm in arms]
    means, variances = np.stack([arm.mean(axis=0) for arm in arms]), np.stack([arm.var(axis=0) for arm in arms])
    distances = [np.abs(arm - middle) for arm in arms]
    sizes, errors = np.stack([d.mean(axis=0) for d in distances]), np.stack([d.var(axis=0) for d in distances])
    varying = (variances > 0).all(axis=0) & (sizes > 0).all(axis=0)
    variances, sizes = np.where(varying, variances, 1.0), np.where(varying, sizes, 1.0)

    def chosen(difference: Array, spread: Array) -> Array:
        """Returns for each limit (width, 3) whether a column differs by so much; none where it is one column."""
        error = np.sqrt(spread[0] / runs[0] + spread[1] / runs[1])
        far = np.where(varying, np.abs(difference) / np.maximum(error, _TINY), 0.0)
        sure = np.stack([far > limit for limit in _SURE], axis=1)
        return np.where(sure.sum(axis=0) > 1, sure, False).astype(np.float64)

    moved = means[0] - means[1]
    by_mean = chosen(moved, variances)
    squared = (1 / variances[1] - 1 / variances[0]) / 2
    by_variance = chosen(np.log(variances[0]) - np.log(variances[1]), np.stack([_log_error(arm) for arm in arms]))
    sized = 1 / sizes[1] - 1 / sizes[0]
    return Sums(
        low=low,
        high=high,
        middle=middle,
        moved=_tame((moved / variances.mean(axis=0))[:, None] * by_mean),
        bends=np.stack([np.median(arm[:_LIMITS], axis=0) for arm in (arms[1], arms[0])]),
        bent=_tame((1 / sizes.mean(axis=0))[:, None] * by_mean),
        squares=_tame(squared[:, None] * by_variance),
        sizes=_tame(sized[:, None] * chosen(sizes[0] - sizes[1], errors)),
    )


def _log_error(arm: Array) -> Array:
    """Returns the variance of ln of the sample variance, times the runs: kurtosis − 1 (delta method)."""
    away = arm - arm.mean(axis=0)
    size = away.std(axis=0)
    square = (away / np.where(size > 0, size, 1.0)) ** 2
    error: Array = np.maximum((square * square).mean(axis=0) - 1, 0.0)
    return error


def _tame(weights: Array) -> Array:
    """Returns the weights over the largest: sums of finite values stay finite."""
    largest = np.abs(weights).max(axis=0, initial=0.0)
    tame: Array = weights / np.where(largest > 0, largest, 1.0)
    return tame
