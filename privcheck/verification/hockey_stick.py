"""The privacy curve of one concrete pair from below: Laplace and Gaussian noise on what the pair moves.

A coordinate that moves by a times its Laplace scale has the loss a where the output lies beyond both values, −a on the
other side, and between them a density that is even around 0 once it is weighted by e^(−l/2). Whoever is told the output
there only to within cells of the loss of one width sees a loss at the middle of the cell, exactly: a post-processing,
whose δ is at most the truth. All losses then lie on a lattice, and independent coordinates are convolved. A move that
is rounded down to the lattice loses no more than the move itself. What Gaussian coordinates add is integrated exactly:
with the loss l of the others known, δ(ε) is that of the Gaussian pair at ε − l.

Everything is rounded down: coordinates that are too many or too small are left out, as an attacker may.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_POINTS: Final = 2**13  # of the lattice
_MOST: Final = _POINTS // 4  # coordinates; each takes at least four points of it
_DOWN: Final = 1 - 1e-9  # covers the roundings of sums of so many positive terms
_ROUNDED: Final = 1e-14  # of each of the two terms of a Gaussian pair's δ
_HALVINGS: Final = 60

Floats = NDArray[np.float64]


def noisy_delta(mu: float, moves: Mapping[float, int], epsilon: float) -> float:
    """Returns δ(ε) of the pair, rounded down.

    Args:
        mu: ‖Δ‖₂/σ of its Gaussian coordinates, rounded down.
        moves: How many Laplace coordinates move by how many of their scales, rounded down.
        epsilon: In nats, at least 0.
    """
    losses, masses = _law(tuple(sorted(moves.items(), reverse=True)))
    return max(0.0, float(masses @ _gaussian_delta(mu, epsilon - losses)) * _DOWN)


def noisy_epsilon(mu: float, moves: Mapping[float, int], delta: float) -> float:
    """Returns an ε at which the pair's δ(ε) is above δ, so that no smaller ε holds at δ; 0 where none is found.

    Args:
        mu: As in `noisy_delta`.
        moves: Likewise.
        delta: In (0, 1), rounded up.
    """
    if not noisy_delta(mu, moves, 0.0) > delta:
        return 0.0
    low, high = 0.0, 1.0
    while noisy_delta(mu, moves, high) > delta and high < 1e6:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if noisy_delta(mu, moves, middle) > delta else (low, middle)
    return low


@functools.lru_cache(maxsize=32)
def _law(moves: tuple[tuple[float, int], ...]) -> tuple[Floats, Floats]:
    """Returns the losses of all Laplace coordinates together and their probabilities under D; 0 for certain of none."""
    kept, left = [], _MOST
    for move, count in moves:
        if move > 0 and left > 0 and math.isfinite(move):
            kept.append((move, min(count, left)))
            left -= kept[-1][1]
    if not kept:
        return np.zeros(1), np.ones(1)
    largest, whole = kept[0][0], math.fsum(move * count for move, count in kept)
    half = max(1, int(_POINTS * largest / (4 * whole)))  # cells of the largest move on either side of 0
    unit = largest / (2 * half)
    masses, reach = np.ones(1), 0
    for move, count in kept:
        cells = half if move == largest else int(move / (2 * unit) * (1 - 1e-15))
        if cells == 0:
            continue
        masses = np.convolve(masses, _power(_coordinate(cells, unit), count))
        reach += 2 * cells * count
    lattice = np.arange(-reach, reach + 1, dtype=np.float64)
    return lattice * unit - np.abs(lattice) * (unit * 1e-15), masses


def _coordinate(cells: int, unit: float) -> Floats:
    """Returns the masses of the losses −2m·u, …, 2m·u of one coordinate of which the move is 2m·u: P is the first law.

    Atoms at the ends; between them cells of width 2u, whose losses are the odd multiples of u.
    """
    move = 2 * cells * unit
    masses = np.zeros(4 * cells + 1)
    masses[-1], masses[0] = 0.5, 0.5 * math.exp(-move)
    ends = np.exp(-np.arange(cells * 2 + 1) * unit)  # e^(−x/b) where the loss falls from the move by 2u a cell
    masses[1::2] = (0.5 * -np.diff(ends))[::-1]
    return masses


def _power(masses: Floats, times: int) -> Floats:
    raised, square = np.ones(1), masses
    while times:
        if times & 1:
            raised = np.convolve(raised, square)
        times >>= 1
        if times:
            square = np.convolve(square, square)
    return raised


def _gaussian_delta(mu: float, epsilon: Any) -> Floats:
    """Returns Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) at any ε, negative ones too, rounded down; (1 − e^ε)₊ for μ = 0."""
    from scipy.special import log_ndtr

    if mu == 0:
        sure: Floats = np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)
        return sure
    with np.errstate(over="ignore"):
        first = np.exp(log_ndtr(mu / 2 - epsilon / mu))
        second = np.exp(np.minimum(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0))
    delta: Floats = np.maximum(first * (1 - _ROUNDED) - second * (1 + _ROUNDED), 0.0)
    return delta
