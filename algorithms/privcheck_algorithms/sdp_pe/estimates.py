"""From counters to a model: equations (3) and (7), the tuples that are too rare, and the width of an elimination."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit
from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total

Array = NDArray[np.float64]


class Constants(NamedTuple):
    """What estimates and eliminations depend on.

    Attributes:
        H: Steps.
        S: States, X in the paper.
        A: Actions.
        iota: ι = ln(2HAK/δ).
        precision: E_{ε,δ} as printed: 4 times what no counter is off by, with probability 1 − δ; 0 where scaled.
        rare: Noisy counts up to this are of tuples that are too rare, 𝒲 (Algorithm 2, line 9).
        width: C.
        noise_width: The factor of the noise's own part, where it is scaled.
        std: Of a counter's noise in the largest fine batch.
        printed: The width is Algorithm 1's, line 9; else with the noise's own part scaled.
    """

    H: int
    S: int
    A: int
    iota: float
    precision: float
    rare: float
    width: float
    noise_width: float
    std: float
    printed: bool


def compute_width(c: Constants, L: int) -> float:
    """Returns by how much less than the best a policy of a stage of 3·L users is eliminated.

    2C(√(XAH³ι/L) + X³AH⁵·E·ι/L) as printed (Algorithm 1, line 9); else 2C·√(XAH³ι/L) + 2D·√(XAH)·XA·std/L, of which
    the second part is what noise of that spread does to a value when all counters are independent.

    Args:
        c: The constants.
        L: Users of the stage's fine exploration.
    """
    X, A, H = c.S, c.A, c.H
    chance = math.sqrt(X * A * H**3 * c.iota / L)
    if c.printed:
        return 2 * c.width * (chance + X**3 * A * H**5 * c.precision * c.iota / L)
    return 2 * c.width * chance + 2 * c.noise_width * math.sqrt(X * A * H) * X * A * c.std / L


@njit(cache=True, nogil=True)
def estimate(visits: Array, following: Array, c: Constants, P: Array) -> Array:
    """Writes one step's transitions, without the tuples that are too rare (Definition 5); returns Ñ(x, a).

    Noisy counts are clipped at 0 first, without which equation (7) has no solution where m + e < 0; of its many
    minimisers the one nearest to them is taken (`dp_apvi.kernels.private_counts`).

    Args:
        visits: (S, A) noisy N̈(x, a).
        following: (S, A, S) noisy N̈(x, a, x′).
        c: The constants.
        P: (S, A, S) overwritten; what a row lacks goes to the absorbing state.
    """
    S, A = visits.shape
    known, x = np.zeros((S, A)), np.empty(S)
    for s in range(S):
        for a in range(A):
            # |Σn − N̈(x, a)| ≤ E/4; `private_total` takes twice that
            whole = private_total(visits[s, a], following[s, a], c.precision / 2)
            private_counts(following[s, a], whole, x)
            count = whole + c.precision / 2
            known[s, a] = count if count > c.rare else 0.0
            for after in range(S):
                tuple_ = x[after] + c.precision / (2 * S)
                P[s, a, after] = tuple_ / count if tuple_ > c.rare and count > 0.0 else 0.0
    return known


@njit(cache=True, nogil=True)
def estimate_rewards(sums: Array, known: Array, reward: Array) -> None:
    """Writes one step's mean rewards R̃/Ñ (equation (3)), between 0 and 1; 0 of pairs that are too rare.

    Args:
        sums: (S, A) noisy reward sums.
        known: (S, A) Ñ(x, a); 0 of those pairs.
        reward: (S, A) overwritten.
    """
    for s in range(known.shape[0]):
        for a in range(known.shape[1]):
            n = known[s, a]
            reward[s, a] = min(1.0, max(0.0, sums[s, a] / n)) if n > 0.0 else 0.0
