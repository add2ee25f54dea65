"""Algorithm 1 of Qiao & Wang 2022 in plain loops, compiled by Numba: one cell, one step, and whole passes in a batch.

The agent and the auditors' batch run the same `cell`, so they are the same algorithm. No function here reads data: the
inputs are noisy counts from a billboard. Line numbers are those of Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit

Array = NDArray[np.float64]

TIES = 1e-10  # times H: values that differ by no more are equal up to rounding, and the lowest action is taken


class Constants(NamedTuple):
    """Constants of line 1 of Algorithm 1 and those derived from them, and whether rewards are released.

    Attributes:
        H: Number of steps of an episode.
        E: E_ρ, twice the bound on the noise of a count; 0 without noise.
        C1: Factor of the Bernstein term.
        C2: Factor of the noise term.
        C: Factor of the penalty C·H of unknown cells.
        scale: Factor of Γ of the known cells; 1 in the paper.
        iota: ι = ln(HSA/δ).
        released: Whether noisy reward sums replace a public reward function.
    """

    H: int
    E: float
    C1: float
    C2: float
    C: float
    scale: float
    iota: float
    released: bool


@njit(cache=True, nogil=True)
def private_total(pair: float, following: Array, E: float) -> float:
    """Count ñ(s, a), the sum of eq. (3)'s minimiser, without the minimiser.

    The sum differs from T = Σ n′(s, a, s′) only as far as the constraint |Σx − n′(s, a)| ≤ E/2 requires (eq. (3)).

    Args:
        pair: n′(s, a), before the clip at 0 of eq. (2).
        following: (S,) n′(s, a, ·), before the clip.
        E: E_ρ.
    """
    T = 0.0
    for count in following:
        T += max(count, 0.0)
    m = max(pair, 0.0)
    return min(max(T, m - E / 2), m + E / 2)


@njit(cache=True, nogil=True)
def private_counts(following: Array, total: float, x: Array) -> None:
    """Write eq. (3)'s minimiser into x: of all x ≥ 0 with the given sum, the nearest in ℓ∞ to y.

    y is `following` clipped at 0 (eq. (2)). If y sums to less, every entry rises by the same amount; if to more,
    x = max(y − t, 0) with the only t that gives the sum. In both cases any other x of that sum is further from y
    in some entry, so the minimiser is unique. t is found by repeatedly dropping the entries of at most t (Michelot
    1986): a pass drops at least one, so at most S passes, and t is exact up to the rounding of a sum.

    Args:
        following: (S,) n′(s, a, ·), before the clip.
        total: ñ(s, a) from `private_total`.
        x: (S,) ñ(s, a, ·), overwritten.
    """
    S = following.size
    T = 0.0
    for s in range(S):
        x[s] = max(following[s], 0.0)
        T += x[s]
    if total >= T:
        for s in range(S):
            x[s] += (total - T) / S
        return
    if total <= 0.0:
        x[:] = 0.0
        return
    t, kept = (T - total) / S, S
    while True:
        above, rest = 0, 0.0
        for s in range(S):
            if x[s] > t:
                above += 1
                rest += x[s]
        if above in (kept, 0):
            break
        kept, t = above, max(t, (rest - total) / above)
    for s in range(S):
        x[s] = max(x[s] - t, 0.0)


@njit(cache=True, nogil=True)
def cell(  # noqa: PLR0917 - Numba's functions take positional arguments
    pair: float,
    following: Array,
    summed: float,
    reward: Array,
    after: Array,
    left: int,
    c: Constants,
    x: Array,
) -> tuple[float, float, float]:
    """Values Q̄, ñ and Γ of one state–action pair at one step (section 3 and Algorithm 1).

    Args:
        pair: n′(s, a).
        following: (S,) n′(s, a, ·).
        summed: The cell's noisy reward sum; not read if the reward function is public.
        reward: (S,) r(s, a, ·); 0 if it is not public.
        after: (S,) Ṽ of the next step.
        left: H − h + 1, the number of remaining steps.
        c: The constants.
        x: (S,) scratch.
    """
    S = following.size
    n = private_total(pair, following, c.E)
    known = n > c.E
    if known:  # eq. (5)
        private_counts(following, n, x)
        for s in range(S):
            x[s] /= n
    else:
        x[:] = 1.0 / S
    mean = 0.0  # line 4: r + P̃Ṽ, as the mean of r(s, a, s′) + Ṽ(s′)
    for s in range(S):
        mean += x[s] * (reward[s] + after[s])
    if known:  # line 5
        variance = 0.0
        for s in range(S):
            variance += x[s] * ((reward[s] + after[s]) - mean) ** 2
        penalty = c.C1 * np.sqrt(variance * c.iota / (n - c.E)) + c.C2 * S * c.H * c.E * c.iota / n
        if c.released:  # README, "Rewards that are not public"
            mean += min(max(summed / n, 0.0), 1.0)
            penalty += 1.5 * c.E / n + np.sqrt(c.iota / (2 * (n - c.E)))
        penalty *= c.scale
    else:
        penalty = c.C * c.H
    return max(min(mean - penalty, float(left)), 0.0), n, penalty  # lines 6 and 7


@njit(cache=True, nogil=True)
def step(  # noqa: PLR0917 - as above
    visits: Array,
    transitions: Array,
    rewards: Array,
    reward: Array,
    after: Array,
    left: int,
    c: Constants,
    actions: NDArray[np.int64],
    value: Array,
) -> tuple[int, int, int, float]:
    """Plan one step (lines 4 to 8).

    Returns the number of known cells (ñ > E), the number of these with a vacuous penalty (at least H − h + 1, the
    largest possible value), the number of states in which every action has value 0, and the noisy visits to known
    cells.

    Args:
        visits: (S, A) noisy n′(s, a).
        transitions: (S, A, S) noisy n′(s, a, s′).
        rewards: (S, A) noisy reward sums, or shape (0, 0) if the reward function is public.
        reward: (S, A, S) r(s, a, s′); 0 if it is not public.
        after: (S,) Ṽ of the next step.
        left: H − h + 1, the number of remaining steps.
        c: The constants.
        actions: (S,) the greedy action of each state, overwritten.
        value: (S,) Ṽ of this step, overwritten.
    """
    S, A = visits.shape
    x, quality = np.empty(S), np.empty(A)
    known, vacuous, worthless, seen = 0, 0, 0, 0.0
    for s in range(S):
        best = 0.0  # Q̄ ≥ 0
        for a in range(A):
            quality[a], n, penalty = cell(
                visits[s, a],
                transitions[s, a],
                rewards[s, a] if c.released else 0.0,
                reward[s, a],
                after,
                left,
                c,
                x,
            )
            best = max(best, quality[a])
            if n > c.E:
                known += 1
                seen += visits[s, a]
                if penalty >= left:
                    vacuous += 1
        if best <= TIES * c.H:
            worthless += 1
        for a in range(A):  # line 8; the lowest action of those that tie up to rounding
            if quality[a] >= best - TIES * c.H:
                actions[s], value[s] = a, quality[a]
                break
    return known, vacuous, worthless, seen


@njit(cache=True, nogil=True)
def passes(
    visits: Array, transitions: Array, rewards: Array, reward: Array, c: Constants
) -> tuple[NDArray[np.int64], Array]:
    """Greedy actions and values, each (B, H, S), of B whole passes over noisy counts.

    Args:
        visits: (B, H, S, A) noisy visit counts.
        transitions: (B, H, S, A, S) noisy transition counts.
        rewards: (B, H, S, A) noisy reward sums, or (B, H, 0, 0) if the reward function is public.
        reward: (S, A, S) r(s, a, s′); 0 if it is not public.
        c: The constants.
    """
    B, H, S, _ = visits.shape
    actions, values = np.empty((B, H, S), dtype=np.int64), np.empty((B, H, S))
    for b in range(B):
        after = np.zeros(S)
        for h in range(H - 1, -1, -1):  # line 3
            step(visits[b, h], transitions[b, h], rewards[b, h], reward, after, H - h, c, actions[b, h], values[b, h])
            after = values[b, h]
    return actions, values
