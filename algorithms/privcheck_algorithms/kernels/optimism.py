"""Optimistic planning from counters, noisy or exact.

Equation (1), Lemmas 3.1 and 4.1, and the backup of a step in Algorithms 1 and 2. The bonus
of the two lemmas has one form, β = root·√(1/n) + linear·(1/n) with n = max(1, Ñ + E).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Parameter
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.tables import Counters

FAILURE = Parameter(name="failure", default="0.1", kind="probability", meaning="failure probability of the bonus")
BONUS_SCALE = Parameter(
    name="bonus_scale", default="0.003", kind="real", meaning="factor of the whole exploration bonus; the paper's: 1"
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_AT_LIMIT = 1e-9  # steps of reward, by which a value may miss the largest one
_ROUND = 6755399441055744.0  # 1.5·2⁵²: what is added to it loses its fraction
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # ln 2 in two parts; the first has trailing zeros


class Bonus(NamedTuple):
    """Coefficients of the exploration bonus.

    Attributes:
        E: E_{ε,δ,1}, added to every noisy visit count (equation (1)); 0 without noise.
        root: Factor of 1/√n.
        linear: Factor of 1/n; 0 without noise.
    """

    E: float
    root: float
    linear: float


def value_bonus(*, H: int, S: int, A: int, K: int, failure: float, E1: float, E2: float, scale: float) -> Bonus:
    """Bonus β^c + β^pv of Lemma 4.1, times `scale`.

    β^c = L_c/√n + 3E₁/n and β^pv = H·L_c/√n + H(S·E₂ + 2E₁)/n with L_c = √(2 ln(4SAT/δ)), T = KH (Lemma 3.1).
    """
    L_c = math.sqrt(2 * math.log(4 * S * A * K * H / failure))
    return Bonus(E=E1, root=scale * (1 + H) * L_c, linear=scale * (3 * E1 + H * (S * E2 + 2 * E1)))


def policy_bonus(*, H: int, S: int, A: int, K: int, failure: float, E1: float, E2: float, scale: float) -> Bonus:
    """Bonus β^c + H·β^p of Lemma 3.1, times `scale`.

    β^p = L_p/√n + (S·E₂ + 2E₁)/n with L_p = √(4S ln(6SAT/δ)).
    """
    L_c = math.sqrt(2 * math.log(4 * S * A * K * H / failure))
    L_p = math.sqrt(4 * S * math.log(6 * S * A * K * H / failure))
    return Bonus(E=E1, root=scale * (L_c + H * L_p), linear=scale * (3 * E1 + H * (S * E2 + 2 * E1)))


def share_at_limit(values: Array, *, costs: bool) -> float:
    """Share of all steps and states with an optimistic value at its largest possible.

    Args:
        values: (H + 1, S) Ṽ, after the last plan.
        costs: Whether values are of costs, with least value 0; otherwise of rewards, with largest value H − h + 1 for
            the papers' h.
    """
    H = values.shape[0] - 1
    limit = np.zeros((H, 1)) if costs else np.arange(H, 0, -1.0)[:, None]
    distance = values[:H] - limit if costs else limit - values[:H]
    return float((distance <= _AT_LIMIT).mean())


class PlanningBuffers(NamedTuple):
    """Planning buffers of an agent: the billboard's tables, and arrays for the cells of one step.

    Attributes:
        tables: Ñ, C̃ and Ñ(·, ·, s′).
        inverse: (SA,) 1/max(1, Ñ + E) of each cell.
        beta: (SA,) β.
        quality: (SA,) Q̃.
    """

    tables: Counters
    inverse: Array
    beta: Array
    quality: Array


@njit(cache=True, nogil=True, forceinline=True)
def lay_out(tables: Counters) -> PlanningBuffers:
    """Planning buffers for given tables."""
    cells = tables.visits.shape[1]
    return PlanningBuffers(tables, np.empty(cells), np.empty(cells), np.empty(cells))


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def weigh(desk: PlanningBuffers, at: int, bonus: Bonus) -> None:
    """Compute 1/max(1, Ñ + E) and β of each cell of a step (equation (1), and line 7 of Algorithm 2).

    Args:
        desk: Buffers; `inverse` and `beta` are overwritten.
        at: Index of the step's table.
        bonus: Coefficients of the bonus.
    """
    visits, inverse, beta = desk.tables.visits, desk.inverse, desk.beta
    for cell in range(inverse.size):
        inverse[cell] = 1.0 / max(1.0, visits[at, cell] + bonus.E)
        beta[cell] = bonus.root * math.sqrt(inverse[cell]) + bonus.linear * inverse[cell]


@njit(cache=True, nogil=True, forceinline=True)
def backup(desk: PlanningBuffers, at: int, values: Array, h: int) -> None:
    """Compute Q̃_h of every cell of a step (line 8 of Algorithm 2).

    c̃ + Σ Ṽ(s′)·P̃(s′) = (C̃ + Σ Ṽ(s′)·Ñ(s, a, s′))/max(1, Ñ + E): one division per cell. Clipped at H − h + 1 for the
    paper's h, the largest possible value.

    Args:
        desk: Buffers; `quality` is overwritten.
        at: Index of the step's table.
        values: (H + 1, S) Ṽ, from step h + 1 on.
        h: The step, from 0.
    """
    costs, transitions, inverse, beta, quality = (
        desk.tables.sums, desk.tables.transitions, desk.inverse, desk.beta, desk.quality
    )  # fmt: skip
    cells, top = quality.size, float(values.shape[0] - 1 - h)
    for cell in range(cells):
        quality[cell] = costs[at, cell]
    for successor in range(transitions.shape[1]):
        value = values[h + 1, successor]
        for cell in range(cells):
            quality[cell] += transitions[at, successor, cell] * value
    for cell in range(cells):
        quality[cell] = min(top, max(0.0, quality[cell] * inverse[cell] - beta[cell]))


@njit(cache=True, nogil=True, forceinline=True)
def choose(quality: Array, h: int, actions: Indices, values: Array) -> bool:
    """Write a step's least Q̃ and its lowest action (lines 9 and 10); returns whether an action changed.

    Args:
        quality: (SA,) Q̃.
        h: The step, from 0.
        actions: (H, S) the policy; row h is overwritten.
        values: (H + 1, S) Ṽ; row h is overwritten.
    """
    S, changed = actions.shape[1], False
    A = quality.size // S
    for s in range(S):
        best, which = quality[s * A], 0
        for a in range(1, A):
            if quality[s * A + a] < best:
                best, which = quality[s * A + a], a
        changed |= actions[h, s] != which
        values[h, s], actions[h, s] = best, which
    return changed


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def exponentials(x: Array, bits: NDArray[np.uint64]) -> None:
    """Overwrite each x ≤ 0 by e^x, in vectorisable loops; below −708 by e^−708, about 10^−307.

    x = n·ln 2 + r with |r| ≤ ln(2)/2, and the series of e^r is cut after r¹³: a relative error below 10⁻¹⁵. e⁰ is 1.

    Args:
        x: Overwritten.
        bits: Scratch array of the same length.
    """
    y = bits.view(np.float64)
    for i in range(x.size):  # the integer nearest to x/ln 2 stands in the lowest bits of the sum
        y[i] = max(x[i], -708.0) * 1.4426950408889634 + _ROUND
    for i in range(x.size):
        n = y[i] - _ROUND
        r = (max(x[i], -708.0) - n * _LN2_HIGH) - n * _LN2_LOW
        series = 1.0 / 6227020800
        series = series * r + 1.0 / 479001600
        series = series * r + 1.0 / 39916800
        series = series * r + 1.0 / 3628800
        series = series * r + 1.0 / 362880
        series = series * r + 1.0 / 40320
        series = series * r + 1.0 / 5040
        series = series * r + 1.0 / 720
        series = series * r + 1.0 / 120
        series = series * r + 1.0 / 24
        series = series * r + 1.0 / 6
        series = series * r + 1.0 / 2
        x[i] = 1.0 + (r + r * r * series)
    for i in range(x.size):
        bits[i] = (bits[i] + np.uint64(1023)) << np.uint64(52)  # 2ⁿ
    for i in range(x.size):
        x[i] *= y[i]
