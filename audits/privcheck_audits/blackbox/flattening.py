"""Outputs of any kind as rows of numbers, for ranking pairs of neighbours: nothing is proved by these rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.forms import Form
from privcheck_audits.blackbox.narrowing import WIDEST, pick_columns, sum_columns

_NAN: Final = -7.25e30  # stands for NaN: a number that nobody returns
_LARGEST: Final = 1e30
_MOST_STEPS: Final = 20_000  # numbers of an array whose steps are looked at

Array = NDArray[np.float64]


def flatten(outputs: Sequence[Form], secret: NDArray[np.bool_]) -> Array:
    """Returns a row of numbers for each output (outputs, width), the last of which is how many it has.

    Args:
        outputs: In their canonical form.
        secret: (outputs,) whether each was on D, by which columns are picked where there are too many.
    """
    rows = [_numbers(output) for output in outputs]
    width = max(row.size for row in rows)
    table = np.zeros((len(rows), width + 1))
    for line, row in zip(table, rows, strict=True):
        line[: row.size], line[-1] = row, row.size
    return pick_columns(sum_columns(table, secret, 0))(table) if width >= WIDEST else table


def _numbers(output: Form) -> Array:
    """Returns a code of each place and what stands there, with the steps from each array to the next of its size."""
    parts: list[Array] = []
    arrays: list[Array] = []
    for leaf in output.leaves:
        parts.append(np.array([zlib.crc32(repr((leaf.path, leaf.kind, leaf.shape)).encode())], dtype=np.float64))
        if isinstance(leaf.value, np.ndarray):
            values = _finite(leaf.value)
            arrays.append(values)
            parts.append(_with_steps(values.reshape(leaf.shape) if _fits(leaf.shape, values.size) else values))
        elif isinstance(leaf.value, bool | int | float):
            parts.append(_finite(np.array([leaf.value], dtype=np.float64)))
        else:
            parts.append(np.array([zlib.crc32(repr(leaf.value).encode())], dtype=np.float64))
    parts += [later - earlier for earlier, later in pairwise(arrays) if earlier.size == later.size]
    return np.concatenate(parts)


def _fits(shape: Any, size: int) -> bool:
    return shape is not None and int(np.prod(shape)) == size


def _finite(values: NDArray[Any]) -> Array:
    numbers = np.clip(values.astype(np.float64), -_LARGEST, _LARGEST)
    return np.where(np.isnan(numbers), _NAN, numbers)


def _with_steps(values: Array) -> Array:
    """Returns the numbers and their steps along each axis, from one user to the next for example."""
    if values.size > _MOST_STEPS:
        return values.ravel()
    return np.concatenate([values.ravel(), *(np.diff(values, axis=axis).ravel() for axis in range(values.ndim))])


def largest_gap(table: Array, secret: NDArray[np.bool_]) -> float:
    """Returns the largest distance between the distributions of any column on D and on D′ (Kolmogorov & Smirnov)."""
    order = np.argsort(table, axis=0, kind="stable")
    ordered = np.take_along_axis(table, order, axis=0)
    ours = np.cumsum(secret[order], axis=0) / secret.sum()
    others = np.cumsum(~secret[order], axis=0) / (~secret).sum()
    last = np.ones(table.shape, dtype=np.bool_)  # of equal values
    last[:-1] = ordered[1:] != ordered[:-1]
    return float(np.abs(ours - others)[last].max())
