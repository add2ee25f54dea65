"""Joint information of columns: pairs that share noise, parities of signs and bits, and sums of thin leaks.

* `Dependence`: pairs of columns, linear discriminants, and directions with little noise.
* `Parities`: products of signs, or sums of bits modulo 2, that distinguish the neighbours when no single column does.
* `Sums` over columns, for leaks spread so thinly that no single column shows them.

Each is learned from training runs, and candidates within the range of the largest chance value are ignored.
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
    """Features of whole outputs (runs, width) that depend on several columns at once.

    Attributes:
        pairs: (p, 2) columns that share noise.
        slopes: (p,) slopes of the second column on the first.
        lines: (width, k) weights of linear discriminants.
        waves: (width, v) weights of directions that vary more under one neighbour, or hardly at all.
        middle: (v,) means along those directions.
    """

    pairs: Indices
    slopes: Array
    lines: Array
    waves: Array
    middle: Array

    def __call__(self, whole: Array) -> Array:
        """(runs, features): residuals, discriminants, and directions with the logarithms of their magnitudes."""
        rests = whole[:, self.pairs[:, 1]] - whole[:, self.pairs[:, 0]] * self.slopes
        waves = whole @ self.waves - self.middle
        return np.concatenate([rests, whole @ self.lines, waves, np.log(np.abs(waves) + _TINY)], axis=1)

    @property
    def discriminants(self) -> Indices:
        """Indices of the features that are discriminants."""
        return len(self.pairs) + np.arange(self.lines.shape[1])

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.pairs) + int(self.lines.shape[1]) + 2 * int(self.waves.shape[1])


def learn_dependence(whole: Array, secret: Bits) -> Dependence:
    """Learn the most informative pairs and directions.

    Every pair is examined through the correlations under both neighbours (one matrix product each). For a pair whose
    means differ by a and b, in standard deviations, with correlation c, the squared Mahalanobis distance of the two
    neighbours is (a² + b² − 2cab)/(1 − c²): its excess over a² + b² is the information in the pair alone. Of whole
    outputs the same distance gives the linear discriminant, and the generalised eigenvectors of the two covariances
    give the directions that vary more under one neighbour. Pairs within the range of the largest chance value are
    ignored.

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
    """Runs of both neighbours, centred at their own means, in units of the columns' standard deviations.

    Attributes:
        arms: Runs on D and on D′, each (runs, width); single precision.
        moved: (width,) difference of the means.
        spread: (width,) standard deviations; 1 where a column is constant.
    """

    arms: tuple[NDArray[np.float32], NDArray[np.float32]]
    moved: Array
    spread: Array

    @property
    def runs(self) -> tuple[int, int]:
        """Number of runs on D and on D′, at least 1."""
        return max(1, self.arms[0].shape[0]), max(1, self.arms[1].shape[0])

    def correlations(self, part: Indices) -> tuple[Array, Array]:
        """Covariances, in standard deviations, of some columns with all columns, on D and on D′."""
        first, other = (
            (arm[:, part].T @ arm).astype(np.float64) / runs for arm, runs in zip(self.arms, self.runs, strict=True)
        )
        return first, other


def standardise(body: Array, secret: Bits) -> Standard:
    """Runs centred at the mean of their neighbour."""
    body = body - body[:1]  # exact where values are close: the mean of equal large values is not one of them
    arms = [body[secret], body[~secret]]
    means = [arm.mean(axis=0) if arm.shape[0] else np.zeros(body.shape[1]) for arm in arms]
    arms = [arm - mean for arm, mean in zip(arms, means, strict=True)]
    squares = sum(np.einsum("ij,ij->j", arm, arm) for arm in arms)
    spread = np.sqrt(squares / max(1, body.shape[0]))
    spread[spread <= _TINY * np.abs(means).max(axis=0)] = 1.0
    first, other = (np.divide(arm, spread, out=arm).astype(np.float32) for arm in arms)
    return Standard(arms=(first, other), moved=(means[0] - means[1]) / spread, spread=spread)


def pick_pairs(standard: Standard, *, each: int = _EACH) -> Indices:
    """Most informative pairs of columns, (p, 2) with i < j: by means, correlations and similarity."""
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
    """Columns, ascending, with those that share noise with one of them: a sum of three columns needs the third."""
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
    """Smallest correlation of a pair that is not explained by chance."""
    return min(_ALIKE, _LUCK * math.sqrt(_lucky(standard.moved.size) / sum(standard.runs)))


def _lucky(width: int) -> float:
    """Square of the largest of as many normal numbers as there are pairs."""
    return 2 * math.log(max(2.0, width * width / 2))


def _slope(one: Array, other: Array, secret: Bits) -> float:
    """Slope of the second column on the first, within either neighbour's runs."""
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
    """Weights of the linear discriminants (width, k): the inverse covariance times the difference of the means."""
    first, other = standard.correlations(np.arange(standard.moved.size))
    on_first, on_other = standard.runs
    sizes, axes = np.linalg.eigh((on_first * first + on_other * other) / (on_first + on_other))
    sizes = np.maximum(sizes, 0.0)
    lines = np.stack([axes @ ((axes.T @ standard.moved) / (sizes + ridge)) for ridge in _RIDGES], axis=1)
    size = np.abs(lines).max(axis=0)
    weights: Array = lines / np.where(size > 0, size, 1.0) / standard.spread[:, None]
    return weights


def _waves(standard: Standard) -> Array:
    """Weights (width, v) of the directions that vary least overall, and most differently under the two neighbours."""
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


_WHOLE: Final = 18  # bits of which every subset is tried
_DIGITS: Final = 16  # of an integer
PARITIES: Final = 3  # that become features
_LOOK: Final = 20_000  # runs
_TRIPLES: Final = 8_000  # runs that pairs and triples are searched on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parities:
    """Map from outputs (runs, m) to a few parities (runs, 3).

    Attributes:
        columns: (bits,) column of each bit.
        digits: (bits,) binary digit of an integer; −1 if the bit says whether the value is above the limit.
        limits: (bits,) limit of each bit.
        chosen: (3, bits) bits that each parity adds up; all zero for unused parities.
    """

    columns: NDArray[np.int64]
    digits: NDArray[np.int64]
    limits: Array
    chosen: NDArray[np.int64]

    def __call__(self, x: Array) -> Array:
        """Each parity, 0 or 1."""
        used = np.flatnonzero(self.chosen.any(axis=0))
        parities: Array = ((self.bits(x, used).astype(np.int64) @ self.chosen[:, used].T) % 2).astype(np.float64)
        return parities

    def bits(self, x: Array, used: NDArray[np.int64]) -> Bits:
        """Selected bits, (runs, used)."""
        bits = np.empty((x.shape[0], used.size), dtype=np.bool_)
        for at, bit in enumerate(used):
            values = x[:, self.columns[bit]]
            digit = self.digits[bit]
            bits[:, at] = values > self.limits[bit] if digit < 0 else np.floor(np.ldexp(values, -int(digit))) % 2 == 1
        return bits


def learn_parities(x: Array, secret: Bits) -> Parities:
    """Learn the most informative parities.

    Noise that hides every number but not their joint sign, a secret shared over several bits and a linear hash with a
    public seed leak through parities, and learners that work column by column miss them. Of up to 18 bits all 2¹⁸
    subsets are tried at once by the fast Walsh–Hadamard transform; of more, all pairs and triples. Parities within the
    range of the largest chance value are dropped: a parity that was only lucky would mislead later learners.

    Args:
        x: (runs, m) training runs.
        secret: (runs,) whether each was on D.
    """
    part = slice(0, _LOOK)
    x, known = x[part], secret[part]
    wide = x.shape[1]
    low, high = x.min(axis=0), x.max(axis=0)
    middle = np.median(x, axis=0)
    of_two = ((x == low) | (x == high)).all(axis=0)
    limits = np.where(of_two, (low + high) / 2, middle)
    columns, digits = list(range(wide)), [-1] * wide
    whole = np.flatnonzero((x == np.rint(x)).all(axis=0) & ~of_two)
    for digit in range(_DIGITS):  # the last digits of all integers first
        for column in whole:
            if len(columns) < _WHOLE and 2.0**digit <= high[column] - low[column]:
                columns.append(int(column))
                digits.append(digit)
    every = Parities(
        columns=np.array(columns),
        digits=np.array(digits),
        limits=limits[columns],
        chosen=np.zeros((PARITIES, len(columns)), dtype=np.int64),
    )
    bits = every.bits(x, np.arange(len(columns)))
    chosen = _all_subsets(bits, known) if len(columns) <= _WHOLE else _small_subsets(bits, known)
    return Parities(columns=every.columns, digits=every.digits, limits=every.limits, chosen=chosen)


def _all_subsets(bits: Bits, secret: Bits) -> NDArray[np.int64]:
    """Subsets whose parity correlates most with the hidden bit: the largest Walsh–Hadamard terms."""
    number = bits.shape[1]
    cell = bits.astype(np.int64) @ (1 << np.arange(number))
    weight = np.where(secret, 1 / max(1, secret.sum()), -1 / max(1, (~secret).sum()))
    table = np.bincount(cell, weights=weight, minlength=1 << number)
    for bit in range(number):
        halves = table.reshape(-1, 2, 1 << bit)
        table = np.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1).reshape(-1)
    size = np.abs(table)
    size[0] = -1.0
    best = np.argsort(-size, kind="stable")[:PARITIES]
    best = best[size[best] > _luck(table.size, secret)]
    subsets = (best[:, None] >> np.arange(number)) & 1
    return np.concatenate([subsets, np.zeros((PARITIES - subsets.shape[0], number), dtype=np.int64)])


def _small_subsets(bits: Bits, secret: Bits) -> NDArray[np.int64]:
    """Pairs and triples whose parity correlates most with the hidden bit."""
    part = slice(0, _TRIPLES)
    signs = np.where(bits[part], 1.0, -1.0)
    weight = np.where(secret[part], 1 / max(1, secret[part].sum()), -1 / max(1, (~secret[part]).sum()))
    number = signs.shape[1]
    ranked: list[tuple[float, tuple[int, ...]]] = []
    pairs = np.abs((signs * weight[:, None]).T @ signs)
    for first in range(number):
        later = np.triu(np.abs((signs * (weight * signs[:, first])[:, None]).T @ signs), 1)
        later[: first + 1] = 0.0
        second, third = np.unravel_index(int(later.argmax()), later.shape)
        ranked.append((float(later[second, third]), (first, int(second), int(third))))
        if first + 1 < number:
            other = first + 1 + int(pairs[first, first + 1 :].argmax())
            ranked.append((float(pairs[first, other]), (first, other)))
    chosen = np.zeros((PARITIES, number), dtype=np.int64)
    least = _luck(number**3, secret[part])
    for row, (size, subset) in enumerate(sorted(ranked, reverse=True)[:PARITIES]):
        if size > least:
            chosen[row, list(subset)] = 1
    return chosen


def _luck(subsets: int, secret: Bits) -> float:
    """Largest chance difference of the means of a sign on D and on D′ among uninformative subsets."""
    error = math.sqrt(1 / max(1, secret.sum()) + 1 / max(1, (~secret).sum()))
    return _LUCK * error * math.sqrt(2 * math.log(2 * subsets))


SUMS: Final = 12
_SUM_RUNS: Final = 20_000
_SUM_LIMITS: Final = 4_000  # runs that limits and medians are taken from
_SURE: Final = (0.0, 1.5, 3.0)  # standard errors by which a column must differ to be added up
_SMALLEST: Final = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Map from whole outputs (runs, width) to sums over columns (runs, 12).

    Attributes:
        low: (width,) lower clipping limit.
        high: (width,) upper clipping limit.
        middle: (width,) centre of the squares and distances.
        moved: (width, 3) weights of the values.
        bends: (2, width) medians on D and on D′.
        bent: (width, 3) weights of the difference of the distances from those medians.
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
        """The sums with the given indices, ascending; only columns with weight in them are read."""
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
    """Learn the weights for outputs like the training runs.

    The log-likelihood ratios of independent columns add up. Four laws are tried: shifted normal noise (linear), shifted
    Laplace noise (differences of distances), and normal and Laplace noise of another scale (squares and distances).
    Each is summed over all columns, over those with a not too rare difference, and over those with a clear one: a leak
    in all columns shows in the first sum, a leak in a few columns in the last.

    Args:
        whole: (runs, width) training runs, finite.
        secret: (runs,) whether each was on D.
    """
    whole, known = whole[:_SUM_RUNS], secret[:_SUM_RUNS]
    few = whole[:_SUM_LIMITS]
    low, middle, high = np.quantile(few, [0.001, 0.5, 0.999], axis=0)
    body = np.clip(whole, low, high) - middle  # exact where values are close
    arms = [body[which] if which.any() else body for which in (known, ~known)]
    runs = [arm.shape[0] for arm in arms]
    means, variances = np.stack([arm.mean(axis=0) for arm in arms]), np.stack([arm.var(axis=0) for arm in arms])
    distances = [np.abs(arm) for arm in arms]
    sizes, errors = np.stack([d.mean(axis=0) for d in distances]), np.stack([d.var(axis=0) for d in distances])
    varying = (variances > 0).all(axis=0) & (sizes > 0).all(axis=0)
    variances, sizes = np.where(varying, variances, 1.0), np.where(varying, sizes, 1.0)

    def chosen(difference: Array, spread: Array) -> Array:
        """Whether each column's difference exceeds each limit, (width, 3); all zero if only one column does."""
        error = np.sqrt(spread[0] / runs[0] + spread[1] / runs[1])
        far = np.where(varying, np.abs(difference) / np.maximum(error, _SMALLEST), 0.0)
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
        bends=np.stack([np.median(arm[:_SUM_LIMITS], axis=0) + middle for arm in (arms[1], arms[0])]),
        bent=_tame((1 / sizes.mean(axis=0))[:, None] * by_mean),
        squares=_tame(squared[:, None] * by_variance),
        sizes=_tame(sized[:, None] * chosen(sizes[0] - sizes[1], errors)),
    )


def _log_error(arm: Array) -> Array:
    """Variance of the logarithm of the sample variance, times the runs: kurtosis − 1 (delta method)."""
    away = arm - arm.mean(axis=0)
    size = away.std(axis=0)
    square = (away / np.where(size > 0, size, 1.0)) ** 2
    error: Array = np.maximum((square * square).mean(axis=0) - 1, 0.0)
    return error


def _tame(weights: Array) -> Array:
    """Weights divided by the largest, so that sums of finite values stay finite."""
    largest = np.abs(weights).max(axis=0, initial=0.0)
    tame: Array = weights / np.where(largest > 0, largest, 1.0)
    return tame
