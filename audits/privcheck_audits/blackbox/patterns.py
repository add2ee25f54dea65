"""What may be discrete in an output, and 64-bit keys by which equal ones are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.learners import Array


def row_keys(rows: Array) -> NDArray[np.uint64]:
    """Returns a 64-bit key of each row (runs,): equal rows have equal keys, others differ but with probability 2⁻⁶⁴."""
    words = np.ascontiguousarray(rows).view(np.uint64)
    key = np.full(rows.shape[0], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in range(rows.shape[1]):
        key ^= words[:, column]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64's finaliser
            key ^= key >> np.uint64(shift)
            key *= np.uint64(factor)
        key ^= key >> np.uint64(31)
    return key


PATTERNS: Final = ("equal outputs", "signs and round numbers", "equal outputs in any order", "order of the values")


def patterns(rows: Array, wanted: Sequence[int]) -> tuple[Array | None, ...]:
    """Returns what may be discrete in an output: itself, signs and round numbers; sorted, the order with its ties.

    Args:
        rows: (runs, width).
        wanted: Indices of `PATTERNS`; the others are None. Single numbers have only the first two.
    """
    views: list[Array | None] = [None] * len(PATTERNS)
    if 0 in wanted:
        views[0] = rows
    if 1 in wanted:
        views[1] = np.sign(rows) + 3.0 * (rows == np.rint(rows)) + 7.0 * np.isinf(rows)
    if 2 in wanted and 3 not in wanted:
        views[2] = np.sort(rows, axis=1)
    if 3 in wanted:
        order = np.argsort(rows, axis=1, kind="stable")
        ranked = np.take_along_axis(rows, order, axis=1)
        new = np.zeros(rows.shape)
        new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
        dense = np.empty_like(rows)
        np.put_along_axis(dense, order, np.cumsum(new, axis=1), axis=1)
        views[2:] = [ranked if 2 in wanted else None, dense]
    return tuple(views if rows.shape[1] > 1 else views[:2])
