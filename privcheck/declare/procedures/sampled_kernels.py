"""Compiled runs of sampled rounds: one number per round, and the logarithm of a product of likelihood ratios.

The number of rounds, of T, that sample the user has the law Bin(T, q), and the score is a sum over rounds in any order:
so the number is drawn once per run, and the first rounds of the run, that many, contain the user.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit

Array = NDArray[np.float64]


class Moves(NamedTuple):
    """Shifts and law shared by the rounds of all runs.

    Attributes:
        first: a, change of the number by the user in D, in units of the noise.
        second: b, the same in D′.
        laplace: Whether the noise is Laplace of scale 1; otherwise N(0, 1).
    """

    first: float
    second: float
    laplace: bool


_LARGE = 30.0  # exponents up to which factors are multiplied up before a logarithm is taken
_FEW = 8  # factors: between (1 − q)⁸ ≥ 2⁻⁴²⁴ and e²⁴⁰, far within a double


@njit(cache=True, nogil=True)
def add_rounds(
    rng: np.random.Generator,
    moves: Moves,
    chances: tuple[int, float],
    held: tuple[NDArray[np.bool_], NDArray[np.int64]],
    score: Array,
) -> None:
    """Add Σ ln((1 − q) + q·p(x − a)/p(x)) − ln((1 − q) + q·p(x − b)/p(x)) over fresh rounds to each run's score.

    Args:
        rng: Source of randomness.
        moves: Changes of the number by the user.
        chances: Number of rounds, and q, below 1.
        held: (runs,) whether a run is on D, and the number of its rounds that contain the user.
        score: (runs,) scores, updated in place.
    """
    first, second, laplace = moves
    rounds, rate = chances
    on_first, sampled = held
    for run in range(score.size):
        total, top, bottom = 0.0, 1.0, 1.0
        moved = first if on_first[run] else second
        for i in range(rounds):
            x = rng.laplace(0.0, 1.0) if laplace else rng.standard_normal()
            if i < sampled[run]:
                x += moved
            if first != 0.0:
                t = abs(x) - abs(x - first) if laplace else first * (x - first / 2)
                if t < _LARGE:
                    top *= 1 + rate * (math.exp(t) - 1)
                else:
                    total += t + math.log(rate + (1 - rate) * math.exp(-t))
            if second != 0.0:
                t = abs(x) - abs(x - second) if laplace else second * (x - second / 2)
                if t < _LARGE:
                    bottom *= 1 + rate * (math.exp(t) - 1)
                else:
                    total -= t + math.log(rate + (1 - rate) * math.exp(-t))
            if i % _FEW == _FEW - 1:
                total += math.log(top / bottom)
                top = bottom = 1.0
        score[run] += total + math.log(top / bottom)


@njit(cache=True, nogil=True)
def add_certain(
    rng: np.random.Generator,
    moves: Moves,
    rounds: int,
    on_first: NDArray[np.bool_],
    score: Array,
) -> None:
    """Add the log-likelihood ratio of fresh rounds that all contain the user to each run's score."""
    first, second, laplace = moves
    for run in range(score.size):
        total = 0.0
        moved = first if on_first[run] else second
        for _ in range(rounds):
            if laplace:
                x = rng.laplace(0.0, 1.0) + moved
                total += abs(x - second) - abs(x - first)
            else:
                x = rng.standard_normal() + moved
                total += (first - second) * (x - (first + second) / 2)
        score[run] += total


@njit(cache=True, nogil=True)
def add_epochs(
    rng: np.random.Generator,
    moves: Moves,
    sizes: tuple[int, int],
    on_first: NDArray[np.bool_],
    score: Array,
) -> None:
    """Add ln Σ p(x − a)/p(x) − ln Σ p(x − b)/p(x), summed over an epoch's numbers, to each score, over fresh epochs.

    A sum does not depend on which number contains the user: it is the first.

    Args:
        rng: Source of randomness.
        moves: Changes of the number of the user's batch.
        sizes: Number of epochs, and T.
        on_first: (runs,) whether a run is on D.
        score: (runs,) scores, updated in place.
    """
    laplace = moves.laplace
    shifts = (moves.first, moves.second)
    epochs, batches = sizes
    for run in range(score.size):
        moved = shifts[0] if on_first[run] else shifts[1]
        for _ in range(epochs):
            highest, sums = np.full(2, -np.inf), np.zeros(2)  # ln Σ = highest + ln(sums)
            for i in range(batches):
                x = rng.laplace(0.0, 1.0) if laplace else rng.standard_normal()
                if i == 0:
                    x += moved
                for arm in range(2):
                    shift = shifts[arm]
                    t = abs(x) - abs(x - shift) if laplace else shift * (x - shift / 2)
                    if shift == 0.0:
                        sums[arm] += 1.0
                        highest[arm] = 0.0
                    elif t <= highest[arm]:
                        sums[arm] += math.exp(t - highest[arm])
                    else:
                        sums[arm] = sums[arm] * math.exp(highest[arm] - t) + 1.0
                        highest[arm] = t
            score[run] += highest[0] - highest[1] + math.log(sums[0] / sums[1])
