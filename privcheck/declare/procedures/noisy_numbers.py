"""Joint laws of noisy numbers, each shifted by a given multiple of its noise."""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Outcomes

_CELLS: Final = 2**13  # of a Gaussian number
_REACH: Final = 9.0  # standard deviations beyond both values
_FAR: Final = 1e8  # … that cells in a geometric progression cover: no ε bounds the loss of a Gaussian number
_RATIO: Final = 1.05  # of them
_INNER: Final = 24  # cells between both values of a Laplace number
LOOKED: Final = 200  # Laplace numbers that are told up to cells, the likeliest to tell; an attacker may stop there
_BINS: Final = 2**11  # of the loss, into which outcomes of several numbers are merged

Law = tuple[Array, Array]  # ln of the probabilities of the same outcomes in D and in D′


def gaussian_outcomes(mu: float) -> Outcomes:
    """Laws of the cell that contains a number with law N(μ, 1) in D and N(0, 1) in D′."""
    far = _REACH * _RATIO ** np.arange(1, math.ceil(math.log(_FAR / _REACH) / math.log(_RATIO)))
    edges = np.concatenate([-far[::-1], np.linspace(-_REACH, mu + _REACH, _CELLS), mu + far])
    return Outcomes(log_p=_log_cells(edges - mu), log_q=_log_cells(edges))


def laplace_outcomes(moves: Array) -> Outcomes:
    """Joint laws of independent Laplace numbers, each observed up to cells.

    Outcomes with adjacent losses are merged as numbers are added, which can only reduce the loss. The largest and the
    smallest loss, ±Σ moves, are kept exactly. If there are more numbers than `LOOKED`, those with the smallest shifts
    are distinguished only if all of them are above both of their values, or all below.

    Args:
        moves: (m,) shift of each number in units of its scale, positive.
    """
    ordered = np.sort(moves)[::-1]
    joint = _together(tuple(ordered[:LOOKED].tolist()))
    if (rest := ordered[LOOKED:]).size:
        joint = _merge(joint, _all_beyond(rest))
    return Outcomes(log_p=joint[0], log_q=joint[1])


@functools.lru_cache(maxsize=16)  # the extreme pairs of a table move as many numbers as far
def _together(moves: tuple[float, ...]) -> Law:
    joint: Law = (np.zeros(1), np.zeros(1))
    for move in moves:
        joint = _merge(joint, _laplace_cells(move))
    return joint


def _all_beyond(moves: Array) -> Law:
    """Laws of three outcomes: all numbers above both of their values, neither, all below; D has the larger values."""
    likely = -moves.size * math.log(2)
    rare = likely - float(moves.sum())
    neither = math.log1p(-math.exp(likely) - math.exp(rare))
    p = np.array([likely, neither, rare])
    return p, p[::-1]


def _log_cells(edges: Array) -> Array:
    """Compute ln of the masses of N(0, 1) in the cells between the edges and beyond them, without underflow."""
    from scipy.special import log_ndtr

    low, high = np.append(-np.inf, edges), np.append(edges, np.inf)
    right = low > 0  # each from the tail in which it lies
    near, far = np.where(right, -low, high), np.where(right, -high, low)
    logs: Array = log_ndtr(near) + np.log1p(-np.exp(log_ndtr(far) - log_ndtr(near)))
    return logs


def _laplace_cells(move: float) -> Law:
    """Laws of the cell: above both values, cells between them, below both; D has the larger value."""
    at = np.linspace(0.0, move, _INNER + 1)
    width = math.log(-math.expm1(-move / _INNER) / 2)
    q = np.concatenate([[-math.log(2)], width - at[:-1], [-move - math.log(2)]])
    return q[::-1], q


def _merge(one: Law, other: Law) -> Law:
    """Joint laws of two independent outcomes, merged into bins of the loss; the two extreme losses stay separate."""
    p, q = ((a[:, np.newaxis] + b).ravel() for a, b in zip(one, other, strict=True))
    if p.size <= _BINS:
        return p, q
    losses = p - q
    low, high = float(losses.min()), float(losses.max())
    bins = 1 + np.minimum(((losses - low) * (_BINS / (high - low))).astype(np.int64), _BINS - 1)
    bins[int(losses.argmin())], bins[int(losses.argmax())] = 0, _BINS + 1
    order = np.argsort(bins, kind="stable")
    first = np.flatnonzero(np.diff(bins[order], prepend=-1))
    sizes = np.diff(first, append=order.size)
    return _sums(p[order], first, sizes), _sums(q[order], first, sizes)


def _sums(logs: Array, first: NDArray[np.int64], sizes: NDArray[np.int64]) -> Array:
    """Compute ln Σ e^x of consecutive groups."""
    top = np.maximum.reduceat(logs, first)
    summed: Array = top + np.log(np.add.reduceat(np.exp(logs - np.repeat(top, sizes)), first))
    return summed
