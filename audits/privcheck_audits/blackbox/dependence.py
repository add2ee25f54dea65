"""Dependence between columns: pairs that share their noise, whatever each says alone, and directions with little of it.

Every pair is looked at, through the correlations under both neighbours (one matrix product each). For a pair with means
moved by a and b, in standard deviations, and correlation c, the squared distance of the two neighbours (Mahalanobis) is
(a² + b² − 2cab)/(1 − c²): what that is beyond a² + b² is what only the pair tells. Of whole outputs the same distance
gives the linear discriminant, and the generalised eigenvectors of the two covariances the directions that vary more
under one neighbour. What the luckiest of so many pairs would show by chance is left alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_RUNS: Final = 8_000  # that correlations are taken from
_LIMITS: Final = 1_000  # runs that limits are taken from
_WIDER: Final = 3.0  # times the distance of the 1st from the 99th percentile: further out values are drawn in
_EACH: Final = 6  # pairs of each kind
_LUCK: Final = 1.2  # times what the luckiest of all pairs shows by chance
_STEP: Final = 256  # columns that are compared with all others at a time
_COMPARED: Final = 4_500_000  # pairs, at most
_NEAR: Final = 1e-6  # 1 − c² is taken to be at least so much: float32 knows no better
_ALIKE: Final = 0.9  # correlation of near-duplicates
_EXACT: Final = 0.99  # correlation from which the slope is that of most pairs of runs, to the last bit
_RIDGES: Final = (1e-9, 0.03, 0.5)  # added to the correlations before they are inverted
_EXTREMES: Final = 2  # directions of either kind
_WIDEST: Final = 600  # columns of which directions are sought
_TINY: Final = 1e-12

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependence:
    """From whole outputs (runs, width) to what only several columns together tell.

    Attributes:
        pairs: (p, 2) columns that share noise.
        slopes: (p,) of the second on the first.
        lines: (width, k) weights of linear discriminants.
        waves: (width, v) weights of directions that vary more under one neighbour, or hardly at all.
        middle: (v,) where those lie.
    """

    pairs: Indices
    slopes: Array
    lines: Array
    waves: Array
    middle: Array

    def __call__(self, whole: Array) -> Array:
        """Returns (runs, features): residuals, discriminants, and directions with the logarithms of their size."""
        rests = whole[:, self.pairs[:, 1]] - whole[:, self.pairs[:, 0]] * self.slopes
        waves = whole @ self.waves - self.middle
        return np.concatenate([rests, whole @ self.lines, waves, np.log(np.abs(waves) + _TINY)], axis=1)

    @property
    def discriminants(self) -> Indices:
        """Returns which of the features are discriminants."""
        return len(self.pairs) + np.arange(self.lines.shape[1])

    @property
    def features(self) -> int:
        """Returns the number of features."""
        return len(self.pairs) + int(self.lines.shape[1]) + 2 * int(self.waves.shape[1])


def learn_dependence(whole: Array, secret: Bits) -> Dependence:
    """Returns the pairs and directions that tell most.

    Args:
        whole: (runs, width) training runs, finite.
        secret: (runs,) whether each was on D.
    """
    known = secret[:_RUNS]
    low, high = np.quantile(whole[:_LIMITS], [0.01, 0.99], axis=0)
    limits = (low - _WIDER * (high - low), high + _WIDER * (high - low))
    body = np.clip(whole[:_RUNS], *limits)
    standard = standardise(body, known)
    pairs = pick_pairs(standard)
    slopes = np.array([_slope(body[:, i], body[:, j], known) for i, j in pairs])
    if not 2 < whole.shape[1] <= _WIDEST or min(known.sum(), (~known).sum()) < 2:
        nothing = np.zeros((whole.shape[1], 0))
        return Dependence(pairs=pairs, slopes=slopes, lines=nothing, waves=nothing, middle=np.zeros(0))
    later = slice(secret.size // 2, secret.size // 2 + _RUNS)  # the others say what discriminants are worth
    lines = _lines(standardise(np.clip(whole[later], *limits), secret[later]))
    waves = _waves(standard)
    middle = body.mean(axis=0) @ waves
    return Dependence(pairs=pairs, slopes=slopes, lines=lines, waves=waves, middle=middle)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standard:
    """Runs of both neighbours, counted from their own means in the columns' standard deviations.

    Attributes:
        arms: On D and on D′, each (runs, width); single precision.
        moved: (width,) difference of the means.
        spread: (width,) standard deviations; 1 where a column is constant.
    """

    arms: tuple[NDArray[np.float32], NDArray[np.float32]]
    moved: Array
    spread: Array

    @property
    def runs(self) -> tuple[int, int]:
        """Returns the runs on D and on D′."""
        return max(1, self.arms[0].shape[0]), max(1, self.arms[1].shape[0])

    def correlations(self, part: Indices) -> tuple[Array, Array]:
        """Returns the covariances, in standard deviations, of some columns with all, on D and on D′."""
        first, other = (
            (arm[:, part].T @ arm).astype(np.float64) / runs for arm, runs in zip(self.arms, self.runs, strict=True)
        )
        return first, other


def standardise(body: Array, secret: Bits) -> Standard:
    """Returns the runs counted from the mean of their neighbour's."""
    arms = [body[secret], body[~secret]]
    means = [arm.mean(axis=0) if arm.shape[0] else np.zeros(body.shape[1]) for arm in arms]
    arms = [arm - mean for arm, mean in zip(arms, means, strict=True)]
    squares = sum(np.einsum("ij,ij->j", arm, arm) for arm in arms)
    spread = np.sqrt(squares / max(1, body.shape[0]))
    spread[spread <= _TINY * np.abs(means).max(axis=0)] = 1.0
    first, other = (np.divide(arm, spread, out=arm).astype(np.float32) for arm in arms)
    return Standard(arms=(first, other), moved=(means[0] - means[1]) / spread, spread=spread)


def pick_pairs(standard: Standard, *, each: int = _EACH) -> Indices:
    """Returns (p, 2) pairs of columns, i < j, that tell most: by means, correlations, likeness."""
    width = standard.moved.size
    on_first, on_other = standard.runs
    runs = on_first + on_other
    lucky = _lucky(width)
    least = (
        _LUCK * lucky * runs / (on_first * on_other),  # of distances that only noise makes
        _LUCK * math.sqrt(lucky * runs / (on_first * on_other)),
        _ALIKE,
    )
    real = _real(standard)
    found: list[list[tuple[float, int, int]]] = [[], [], []]
    asked = np.arange(width)
    if width * width > _COMPARED:  # those that are moved most, with all others
        asked = np.sort(np.argsort(-np.abs(standard.moved), kind="stable")[: max(1, _COMPARED // width)])
    compared = np.isin(np.arange(width), asked)
    step = max(1, min(_STEP, _STEP * _STEP * 64 // width))
    for start in range(0, asked.size, step):
        part = asked[start : start + step]
        first, other = standard.correlations(part)
        both = (on_first * first + on_other * other) / runs
        one, two = standard.moved[part, None], standard.moved[None, :]
        drawn = np.clip(both, -1.0, 1.0)
        gain = drawn * (drawn * (one**2 + two**2) - 2 * one * two) / np.maximum(_NEAR, 1 - drawn**2)
        gain[np.abs(both) < real] = 0.0
        bounded = [np.arctanh(np.clip(each, -1 + _NEAR, 1 - _NEAR)) for each in (first, other)]
        once = ~compared | (np.arange(width) > part[:, None])  # each pair once, none of a column with itself
        for kept, score, limit in zip(found, (gain, np.abs(bounded[0] - bounded[1]), np.abs(both)), least, strict=True):
            ranked = np.where(once, score, -1.0).reshape(-1)
            top = np.argpartition(-ranked, min(each, ranked.size - 1))[:each]
            kept += [(float(ranked[at]), int(part[at // width]), int(at) % width) for at in top if ranked[at] > limit]
    chosen = {(min(i, j), max(i, j)) for kept in found for _, i, j in sorted(kept, reverse=True)[:each]}
    return np.array(sorted(chosen), dtype=np.int64).reshape(-1, 2)


def partners(standard: Standard, columns: Indices, *, each: int = 2) -> Indices:
    """Returns the columns, ascending, with those that share noise with one of them: a sum of three needs the third."""
    runs = sum(standard.runs)
    found = [columns]
    for column in columns:
        first, other = standard.correlations(columns[columns == column])
        both = np.abs(standard.runs[0] * first + standard.runs[1] * other)[0] / runs
        both[column] = 0.0
        top = np.argpartition(-both, min(each, both.size - 1))[:each]
        found.append(top[both[top] > _real(standard)])
    return np.unique(np.concatenate(found))


def _real(standard: Standard) -> float:
    """Returns the correlation from which on a pair is no luck."""
    return min(_ALIKE, _LUCK * math.sqrt(_lucky(standard.moved.size) / sum(standard.runs)))


def _lucky(width: int) -> float:
    """Returns the square of the luckiest of as many normal numbers as there are pairs."""
    return 2 * math.log(max(2.0, width * width / 2))


def _slope(one: Array, other: Array, secret: Bits) -> float:
    """Returns the slope of the other column on the one, whichever neighbour the runs are on."""
    products = squares = others = 0.0
    steps = []
    for arm in (secret, ~secret):
        if arm.sum() < 2:
            continue
        x, y = one[arm] - one[arm].mean(), other[arm] - other[arm].mean()
        products, squares, others = products + float(x @ y), squares + float(x @ x), others + float(y @ y)
        steps.append((np.diff(one[arm]), np.diff(other[arm])))
    if products**2 > (_EXACT * squares) * (_EXACT * others) > 0:
        x, y = (np.concatenate(each) for each in zip(*steps, strict=True))
        return float(np.median(y[x != 0] / x[x != 0]))
    return products / squares if squares > 0 else 0.0


def _lines(standard: Standard) -> Array:
    """Returns weights of the linear discriminants (width, k), the inverse of the covariance times the moved means."""
    first, other = standard.correlations(np.arange(standard.moved.size))
    on_first, on_other = standard.runs
    sizes, axes = np.linalg.eigh((on_first * first + on_other * other) / (on_first + on_other))
    sizes = np.maximum(sizes, 0.0)
    lines = np.stack([axes @ ((axes.T @ standard.moved) / (sizes + ridge)) for ridge in _RIDGES], axis=1)
    size = np.abs(lines).max(axis=0)
    weights: Array = lines / np.where(size > 0, size, 1.0) / standard.spread[:, None]
    return weights


def _waves(standard: Standard) -> Array:
    """Returns weights of the directions (width, v) that vary least of all, and most unlike under the two neighbours."""
    from scipy.linalg import eigh

    width = standard.moved.size
    first, other = standard.correlations(np.arange(width))
    both = sum(standard.runs)
    least = eigh(first * (standard.runs[0] / both) + other * (standard.runs[1] / both), subset_by_index=(0, 1))[1]
    drawn = (_RIDGES[0] + width / both) * np.eye(width)
    _, tilted = eigh(first + drawn, other + drawn)
    ends = [*range(_EXTREMES), *range(width - _EXTREMES, width)]
    weights: Array = np.concatenate([least, tilted[:, ends]], axis=1) / standard.spread[:, None]
    return weights
