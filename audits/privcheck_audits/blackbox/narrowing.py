"""Very wide outputs, narrowed where they are returned: the columns that tell most, and figures of the whole row.

Which columns those are is learned on runs of their own, of which only sums are kept; narrowing is post-processing, so
whatever was learned, the claim covers what is left. Of ten million numbers a run, one run at a time is held in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

WIDEST: Final = 500  # columns that are kept; outputs of more are narrowed
PILOT: Final = 400  # runs that columns are picked on
_FIGURES: Final = 9
_LARGEST: Final = 1e100

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Narrow:
    """From whole outputs to a few columns.

    Attributes:
        columns: (kept,) ascending.
        line: (whole,) weights on all columns that add up differences of the means.
    """

    columns: NDArray[np.int64]
    line: Array

    @property
    def width(self) -> int:
        """Returns the number of columns that are left."""
        return self.columns.size + _FIGURES

    def __call__(self, rows: Array) -> Array:
        """Returns the kept columns and nine figures of each row (runs, kept + 9)."""
        size = np.abs(rows)
        whole = rows
        if float(size.max(initial=0.0)) > _LARGEST:
            whole, size = np.clip(rows, -_LARGEST, _LARGEST), np.minimum(size, _LARGEST)
        top, bottom = whole.argmax(axis=1), whole.argmin(axis=1)
        run = np.arange(rows.shape[0])
        figures = (
            whole @ self.line,
            whole.sum(axis=1),
            size.sum(axis=1),
            np.einsum("ij,ij->i", whole, whole),
            whole[run, top],
            whole[run, bottom],
            top,
            bottom,
            np.count_nonzero(whole, axis=1),
        )
        return np.concatenate([rows[:, self.columns], np.stack(figures, axis=1).astype(np.float64)], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Sums of each column over some runs.

    Attributes:
        runs: (2,) on D and on D′.
        sums: (2, whole).
        squares: (2, whole).
    """

    runs: NDArray[np.int64]
    sums: Array
    squares: Array

    def __add__(self, other: Spread) -> Spread:
        return Spread(runs=self.runs + other.runs, sums=self.sums + other.sums, squares=self.squares + other.squares)


def sum_columns(rows: Array, secret: Bits) -> Spread:
    """Returns the sums of whole outputs (runs, whole), infinite ones left out."""
    body = np.where(np.abs(rows) < _LARGEST**0.4, rows, 0.0)
    arms = [body[secret], body[~secret]]
    return Spread(
        runs=np.array([arm.shape[0] for arm in arms]),
        sums=np.stack([arm.sum(axis=0) for arm in arms]),
        squares=np.stack([np.square(arm).sum(axis=0) for arm in arms]),
    )


def pick_columns(spread: Spread) -> Narrow:
    """Returns the columns whose means or spreads differ most, by their standard errors."""
    runs = np.maximum(2, spread.runs)[:, None]
    mean = spread.sums / runs
    variance = np.maximum(0.0, spread.squares / runs - mean**2) + 1e-12 * (spread.squares / runs) + 1e-300
    error = np.sqrt((variance / runs).sum(axis=0))
    moved = mean[0] - mean[1]
    wider = np.abs(np.log(variance[0]) - np.log(variance[1])) / np.sqrt((2 / runs).sum())
    tells = np.maximum(np.abs(moved) / error, wider)
    chosen = np.sort(np.argsort(-tells, kind="stable")[:WIDEST])
    line = moved / variance.mean(axis=0)
    largest = float(np.abs(line).max())
    return Narrow(columns=chosen, line=line / largest if largest > 0 else line)
