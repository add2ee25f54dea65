"""The grid on which outputs are put before anything is learned: so that what is found is the design and not the floats.

In double precision it is 2³⁰ times finer than the spread of a column. Numbers of less precision lie on grids of their
own that are finer around 0, and noise added to them leaves a fingerprint that is coarser than that: there the grid is
four times as coarse as the numbers are at the largest magnitude. What precision numbers have is seen in their last
bits, whatever type they were returned as; numbers on one even grid (counts, multiples of ¼) are left alone. All of this
is decided on the training runs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from privcheck_audits.blackbox.learners import Array, Bits

_BITS: Final = 30  # of the fine grid
_PRECISIONS: Final = (8, 11, 24)  # bfloat16, float16, float32
_GUARD: Final = 2  # bits by which the grid is coarser than the numbers
_LOOK: Final = 4_000  # runs on which the precision is seen
_MEDIANS: Final = 8_000  # runs that the spread is taken from
_FEWEST: Final = 32  # different numbers that a precision is read from
_SHARE: Final = 0.5  # of them that have no more bits
_EVEN: Final = 0.4  # of them that are odd multiples of the finest step: half, on one even grid
_TOP: Final = 0.999  # quantile of the magnitudes
_DIGITS: Final = 53


def grid_steps(rows: Array, secret: Bits, *, fine: bool = False) -> Array:
    """Returns the step of each column's grid (width,): a power of two; 0 for integers.

    Args:
        rows: (runs, width) training runs.
        secret: (runs,) whether each was on D; the precision of either neighbour's numbers counts.
        fine: As for double precision, whatever the numbers are.
    """
    steps = np.zeros(rows.shape[1])
    for column, values in enumerate(rows.T):
        finite = values[np.isfinite(values)]
        if finite.size == 0 or (finite == np.rint(finite)).all():
            continue
        few = finite[:_MEDIANS]
        away = np.abs(few - np.median(few))
        spread = float(np.median(away[away > 0])) if away.any() else float(np.abs(few[0]))
        steps[column] = 2.0 ** max(-1000, np.floor(np.log2(spread)) - _BITS)
        if not fine:
            look = slice(0, _LOOK)
            arms = (values[look][secret[look]], values[look][~secret[look]])
            steps[column] = max(steps[column], *(own_step(arm) for arm in arms))
    return steps


def on_grid(rows: Array, steps: Array) -> Array:
    """Returns the rows rounded to the grid, halves upwards; −0 becomes 0.

    Every cell has as many points of a finer grid as any other: rounding halves to even would make every second cell
    larger where numbers are coarse.
    """
    moving = steps > 0
    unit = np.where(moving, steps, 1.0)
    with np.errstate(over="ignore"):  # what is too large for the grid becomes infinite, an atom of its own
        rounded: Array = rows / unit  # by a power of two: exact
        rounded += 0.5
        np.floor(rounded, out=rounded)
        rounded *= unit
    if not moving.all():
        np.copyto(rounded, rows, where=~moving)
    rounded += 0.0
    return rounded


def own_step(values: Array) -> float:
    """Returns the step that hides the grid of numbers of low precision; 0 for double precision and even grids.

    >>> noise = np.random.default_rng(0).laplace(0, 1, 1_000)
    >>> own_step(noise), own_step(noise.astype(np.float32).astype(float)), own_step(np.rint(4 * noise) / 4)
    (0.0, 1.9073486328125e-06, 0.0)
    """
    shown = np.unique(np.abs(values[np.isfinite(values) & (values != 0)]))
    if shown.size < _FEWEST:
        return 0.0
    fraction, power = np.frexp(shown)
    digits = np.ldexp(fraction, _DIGITS).astype(np.int64)
    bits = _DIGITS - np.log2(digits & -digits).astype(np.int64)  # that the number needs
    for precision in _PRECISIONS:
        low = bits <= precision
        if low.mean() >= _SHARE:
            last = (power - bits)[low]
            if (last == last.min()).mean() >= _EVEN:
                return 0.0
            top = np.frexp(np.quantile(shown[low], _TOP, method="lower"))[1]
            return float(2.0 ** (int(top) - precision + _GUARD))
    return 0.0
