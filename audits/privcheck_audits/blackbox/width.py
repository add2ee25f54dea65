"""Narrowing of very wide outputs as they are returned: the most informative columns, and figures of the whole row.

The columns are picked from separate runs, of which only sums are kept (`Spread`); narrowing is post-processing, so the
claim covers the narrowed outputs whatever was learned. With ten million numbers per run, one run at a time is in
memory.

The figures of whole outputs are sums, gaps, order (`shape`), and repetition within an output (`echoes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.dependence import Standard, partners, pick_pairs

_SHAPE: Final = (2, 14)  # least width that has figures, and their number
_ECHOES: Final = (4, 9)
_LARGEST: Final = 1e100  # squares and sums of what is larger overflow; such values keep their order no longer
_MOST_SQUARED: Final = 1e45
_TINY: Final = 1e-12

Array = NDArray[np.float64]


def figure_sizes(width: int) -> tuple[int, int]:
    """Number of features that `shape` and `echoes` compute for outputs of a width."""
    shaped, echoed = (number if width >= least else 0 for least, number in (_SHAPE, _ECHOES))
    return shaped, echoed


def rest(values: Array, step: float) -> Array:
    """Remainder modulo the step, in steps; multiples stay together however they were rounded."""
    at = values / step
    left: Array = at - np.floor(at + 0.25)
    return left


def shape(rows: Array) -> Array:
    """Features of whole outputs: (runs, 14), or (runs, 0) for single numbers."""
    if rows.shape[1] < _SHAPE[0]:
        return np.zeros((rows.shape[0], 0))
    x = np.clip(rows, -_LARGEST, _LARGEST)
    ordered = np.sort(x, axis=1)
    gaps = np.diff(ordered, axis=1)
    total = x.sum(axis=1)
    columns = (
        total,
        rest(total, 100.0),
        rest(total, 2.0),
        np.abs(x).sum(axis=1),
        np.square(np.clip(x, -_MOST_SQUARED, _MOST_SQUARED)).sum(axis=1),
        ordered[:, -1] - ordered[:, 0],
        gaps[:, -1],
        x.argmax(axis=1),
        x.argmin(axis=1),
        (x == 0).sum(axis=1),
        (x > 0).sum(axis=1),
        (gaps == 0).sum(axis=1),
        (x != 0).argmax(axis=1),
        (x[:, 1:] != x[:, :-1]).sum(axis=1),
    )
    return np.stack(columns, axis=1).astype(np.float64)


def echoes(rows: Array) -> Array:
    """Repetition within outputs: (runs, 9), or (runs, 0) for fewer than four numbers.

    The number of values with the same fraction as another one, their largest distance and the sum of the distances; the
    spread of the differences and of the sums of the two sorted halves, in logarithms, and their means; the largest
    autocorrelation at a distance, and the distance.

    Columns that are copies of each other are found by their correlation. Copies at a position drawn afresh in every run
    are not: a permuted or shifted block is uncorrelated with the first one, column by column. Such copies show within
    the row: values that recur, values with the same fraction (a copy with whole numbers added), halves that are equal
    once sorted, an output that matches a shifted copy of itself.
    """
    runs, width = rows.shape
    if width < _ECHOES[0]:
        return np.zeros((runs, 0))
    x = np.clip(rows, -_MOST_SQUARED, _MOST_SQUARED)
    fraction = x - np.floor(x)
    by_fraction = np.argsort(fraction, axis=1)
    ordered = np.take_along_axis(fraction, by_fraction, axis=1)
    same = (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] > 0)  # whole numbers have no fraction to be told by
    apart = np.abs(np.diff(np.take_along_axis(x, by_fraction, axis=1), axis=1)) * same
    half = width // 2
    one, other = np.sort(x[:, :half], axis=1), np.sort(x[:, half : 2 * half], axis=1)
    shifted, mirrored = other - one, other + one[:, ::-1]
    away = x - x.mean(axis=1, keepdims=True)
    size = np.abs(away).max(axis=1, keepdims=True)
    away = away / np.where(size > 0, size, 1.0)
    waves = np.fft.rfft(away, axis=1)
    alike = np.fft.irfft(waves.real**2 + waves.imag**2, n=width, axis=1)[:, 1 : half + 1]
    power = np.maximum(_TINY, np.einsum("ij,ij->i", away, away))
    columns = (
        same.sum(axis=1),
        apart.max(axis=1),
        apart.sum(axis=1),
        np.log(shifted.std(axis=1) + _TINY),
        np.log(mirrored.std(axis=1) + _TINY),
        shifted.mean(axis=1),
        mirrored.mean(axis=1),
        alike.max(axis=1) / power,
        alike.argmax(axis=1),
    )
    return np.stack(columns, axis=1).astype(np.float64)


WIDEST: Final = 500  # columns that are kept; outputs of more are narrowed
PILOT: Final = 400  # runs that columns are picked on, at least
_MOST_PILOT: Final = 1_000  # where outputs are not too wide
_PILOT_NUMBERS: Final = 2_000_000
_FIGURES: Final = 8
_SKETCH: Final = 4_000_000  # numbers of the sketch of either neighbour, unless a single bucket is more
_LINKED: Final = 24  # pairs of either kind that are kept
_SURE: Final = (0.0, 1.5, 3.0)  # standard errors by which a column's mean must differ to be added up
_ECHOED: Final = 20_000  # wider outputs are not searched for repetitions, which takes sorting
_TELLING: Final = 5.0  # standard errors by which a figure must differ to be kept

Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Narrow:
    """Map from whole outputs to a few columns.

    Attributes:
        columns: (kept,) kept columns, ascending.
        lines: (whole, 3) weights of all columns for sums of the mean differences: over all columns, and over those with
            clear differences.
        echoed: Whether figures of repetition within the output are included.
    """

    columns: NDArray[np.int64]
    lines: Array
    echoed: bool

    @property
    def width(self) -> int:
        """Number of columns after narrowing."""
        whole, sums = self.lines.shape
        return int(self.columns.size + sums + _FIGURES + self.echoed * figure_sizes(whole)[1])

    def __call__(self, rows: Array) -> Array:
        """Kept columns and figures of each row, (runs, `width`)."""
        size = np.abs(rows)
        whole = rows
        if float(size.max(initial=0.0)) > _LARGEST:
            whole, size = np.clip(rows, -_LARGEST, _LARGEST), np.minimum(size, _LARGEST)
        top, bottom = whole.argmax(axis=1), whole.argmin(axis=1)
        run = np.arange(rows.shape[0])
        figures = (
            whole.sum(axis=1),
            size.sum(axis=1),
            np.einsum("ij,ij->i", whole, whole),
            whole[run, top],
            whole[run, bottom],
            top,
            bottom,
            np.count_nonzero(whole, axis=1),
        )
        parts = [rows[:, self.columns], whole @ self.lines, np.stack(figures, axis=1).astype(np.float64)]
        return np.concatenate([*parts, echoes(rows)] if self.echoed else parts, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Sums of each column over some runs.

    Columns that share noise are found by their correlations, from a count sketch of the runs (Charikar, Chen &
    Farach-Colton 2002): each run is added, with a random sign, to one of a few buckets of its neighbour, so that a
    column needs one number per bucket. Up to thousands of columns there are as many buckets as runs, and the sketch is
    exact.

    Attributes:
        runs: (2,) number of runs on D and on D′.
        sums: (2, whole) sums.
        squares: (2, whole) sums of squares.
        echo_sums: (2, figures) sums of `echoes`; no figures if outputs are too wide.
        echo_squares: (2, figures) sums of squares of `echoes`.
        buckets: (b,) non-empty buckets of the sketch, ascending; even ones hold runs on D, odd ones runs on D′.
        sketch: (b, whole) signed sums of each bucket.
        signs: (2, b) sum of the signs, and number of runs, in each bucket.
    """

    runs: NDArray[np.int64]
    sums: Array
    squares: Array
    echo_sums: Array
    echo_squares: Array
    buckets: NDArray[np.int64]
    sketch: Array
    signs: NDArray[np.int64]

    def __add__(self, other: Spread) -> Spread:
        buckets, place = np.unique(np.concatenate([self.buckets, other.buckets]), return_inverse=True)
        sketch = np.zeros((buckets.size, self.sums.shape[1]))
        signs = np.zeros((2, buckets.size), dtype=np.int64)
        mine = self.buckets.size
        for part, at in ((self, place[:mine]), (other, place[mine:])):  # no bucket comes twice in a part
            sketch[at] += part.sketch
            signs[:, at] += part.signs
        return Spread(
            runs=self.runs + other.runs,
            sums=self.sums + other.sums,
            squares=self.squares + other.squares,
            echo_sums=self.echo_sums + other.echo_sums,
            echo_squares=self.echo_squares + other.echo_squares,
            buckets=buckets,
            sketch=sketch,
            signs=signs,
        )


def pilot_runs(whole: int) -> int:
    """Number of runs to pick columns on, for outputs of a width, if there are enough."""
    return min(_MOST_PILOT, max(PILOT, _PILOT_NUMBERS // whole))


def sum_columns(rows: Array, secret: Bits, first: int) -> Spread:
    """Sum whole outputs, leaving out very large and infinite values.

    Args:
        rows: (runs, whole) outputs.
        secret: (runs,) whether each was on D.
        first: Index of the first run, which selects its bucket of the sketch.
    """
    body = np.where(np.abs(rows) < _LARGEST**0.4, rows, 0.0)
    repeats = echoes(body) if rows.shape[1] <= _ECHOED else np.zeros((rows.shape[0], 0))
    arms = [body[secret], body[~secret]]
    run = first + np.arange(rows.shape[0])
    sign = _signs()[run % _MOST_PILOT]
    halves = max(1, min(_MOST_PILOT, _SKETCH // rows.shape[1]))
    bucket = 2 * (run % halves) + ~secret
    buckets, place = np.unique(bucket, return_inverse=True)
    sketch = np.zeros((buckets.size, rows.shape[1]))
    np.add.at(sketch, place, body * sign[:, None])
    return Spread(
        runs=np.array([arm.shape[0] for arm in arms]),
        sums=np.stack([arm.sum(axis=0) for arm in arms]),
        squares=np.stack([np.square(arm).sum(axis=0) for arm in arms]),
        echo_sums=np.stack([repeats[arm].sum(axis=0) for arm in (secret, ~secret)]),
        echo_squares=np.stack([np.square(repeats[arm]).sum(axis=0) for arm in (secret, ~secret)]),
        buckets=buckets,
        sketch=sketch,
        signs=np.stack([np.bincount(place, weights=sign).astype(np.int64), np.bincount(place)]),
    )


def pick_columns(spread: Spread) -> Narrow:
    """Pick the columns whose means or spreads differ most, in standard errors, and those that share noise."""
    runs = np.maximum(2, spread.runs)[:, None]
    moved, variance, by_mean, by_spread = _compare(spread.sums, spread.squares, runs)
    standard = _standard(spread, runs)
    linked = partners(standard, np.unique(pick_pairs(standard, each=_LINKED)))[: WIDEST // 2]
    ranked = np.argsort(-np.maximum(by_mean, by_spread), kind="stable")
    chosen = np.concatenate([linked, ranked[~np.isin(ranked, linked)]])[:WIDEST]
    lines = np.stack([np.where(by_mean > limit, moved / variance, 0.0) for limit in _SURE], axis=1)
    largest = np.abs(lines).max(axis=0)
    _, _, *echoed = _compare(spread.echo_sums, spread.echo_squares, runs)
    return Narrow(
        columns=np.sort(chosen),
        lines=lines / np.where(largest > 0, largest, 1.0),
        echoed=bool((np.maximum(*echoed) > _TELLING).any()),
    )


def _compare(sums: Array, squares: Array, runs: NDArray[np.int64]) -> tuple[Array, Array, Array, Array]:
    """Differences of the means, variances, and differences of means and of spreads in standard errors."""
    mean = sums / runs
    variance = np.maximum(0.0, squares / runs - mean**2) + 1e-12 * (squares / runs) + 1e-300
    moved = mean[0] - mean[1]
    wider = np.abs(np.log(variance[0]) - np.log(variance[1])) / np.sqrt((2 / runs).sum())
    return moved, variance.mean(axis=0), np.abs(moved) / np.sqrt((variance / runs).sum(axis=0)), wider


def _standard(spread: Spread, runs: NDArray[np.int64]) -> Standard:
    """Buckets treated as runs, centred at their neighbour's mean."""
    means = spread.sums / runs
    arm = spread.buckets % 2
    centred = (spread.sketch - spread.signs[0][:, None] * means[arm]) / np.sqrt(spread.signs[1])[:, None]
    size = np.sqrt(np.square(centred).mean(axis=0))
    size[size <= 1e-9 * np.abs(means).max(axis=0)] = np.inf  # constant: no correlation with anything
    first, other = ((centred[arm == which] / size).astype(np.float32) for which in (0, 1))
    return Standard(arms=(first, other), moved=(means[0] - means[1]) / size, spread=size)


@cache
def _signs() -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, 2, _MOST_PILOT) * 2 - 1
