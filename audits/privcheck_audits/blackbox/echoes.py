"""Figures of whole outputs: sums, gaps, order, and whether an output repeats within itself.

Columns that are copies of each other are found by their correlation. Copies whose place is drawn afresh in every run
are not: a permuted or shifted block has no correlation with the first one, column by column. What tells it is the row
itself: values that come back, values with the same fraction (a copy with whole numbers added), halves that are the
same once they are sorted, an output that looks like itself some places on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_SHAPE: Final = (2, 14)  # least width that has figures, and their number
_ECHOES: Final = (4, 9)
_LARGEST: Final = 1e100  # squares and sums of what is larger overflow; such values keep their order no longer
_MOST_SQUARED: Final = 1e45
_TINY: Final = 1e-12

Array = NDArray[np.float64]


def figure_sizes(width: int) -> tuple[int, int]:
    """Returns how many figures `shape` and `echoes` give of outputs of that width."""
    shaped, echoed = (number if width >= least else 0 for least, number in (_SHAPE, _ECHOES))
    return shaped, echoed


def rest(values: Array, step: float) -> Array:
    """Returns what is left beyond multiples of the step, which stay together whichever way they were rounded."""
    at = values / step
    left: Array = at - np.floor(at + 0.25)
    return left


def shape(rows: Array) -> Array:
    """Returns figures of whole outputs: (runs, 14); nothing, (runs, 0), of single numbers."""
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
    """Returns how an output repeats within itself: (runs, 9); nothing, (runs, 0), of fewer than four numbers.

    The number of values that have the fraction of another one, their farthest distance and the sum of the distances;
    the spread of the differences and of the sums of the two sorted halves, in logarithms, and their means; the largest
    autocorrelation at a distance, and the distance.
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
