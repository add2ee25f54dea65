"""Plans, visits and plans under one constraint, in a model whose rows may sum to less than 1 (Definition 5).

What a row lacks goes to the absorbing state x†, where nothing is worth anything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_STEPS = 200  # of the search for the multiplier; each finds another vertex of a finite polygon
_EQUAL = 1e-13  # relative: two values of a Lagrangian that are one


@njit(cache=True, nogil=True)
def plan(P: Array, reward: Array, initial: Array, actions: Indices) -> float:
    """Writes an optimal policy, of actions that tie the lowest; returns its value.

    Args:
        P: (H, S, A, S) transitions.
        reward: (H, S, A).
        initial: (S,) law of the first state.
        actions: (H, S) overwritten.
    """
    H, S, A = reward.shape
    after, value = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, which = -np.inf, 0
            for a in range(A):
                quality = reward[h, s, a]
                for following in range(S):
                    quality += P[h, s, a, following] * after[following]
                if quality > best:
                    best, which = quality, a
            actions[h, s], value[s] = which, best
        for s in range(S):
            after[s] = value[s]
    total = 0.0
    for s in range(S):
        total += initial[s] * after[s]
    return total


@njit(cache=True, nogil=True)
def add_visits(P: Array, initial: Array, actions: Indices, weight: float, visits: Array) -> None:
    """Adds a weight times how likely a policy visits each pair at each step.

    Args:
        P: (H, S, A, S) transitions.
        initial: (S,) law of the first state.
        actions: (H, S).
        weight: Of the policy.
        visits: (H, S, A) added to.
    """
    H, S = actions.shape
    law, following = initial.copy(), np.empty(S)
    for h in range(H):
        following[:] = 0.0
        for s in range(S):
            if law[s] > 0.0:
                a = actions[h, s]
                visits[h, s, a] += weight * law[s]
                for after in range(S):
                    following[after] += law[s] * P[h, s, a, after]
        for s in range(S):
            law[s] = following[s]


@njit(cache=True, nogil=True)
def total(visits: Array, reward: Array) -> float:
    """Returns Σ visits·reward."""
    found, one, other = 0.0, visits.reshape(-1), reward.reshape(-1)
    for i in range(one.size):
        found += one[i] * other[i]
    return found


@njit(cache=True, nogil=True)
def plan_above(  # noqa: PLR0917 - Numba's functions take positional arguments
    P: Array, reward: Array, worth: Array, least: float, initial: Array, pair: Indices
) -> float:
    """Writes two policies that, mixed, have the largest reward of all worth `least`; returns the second's share.

    The Lagrangian max_π ⟨q_π, reward + λ·worth⟩ − λ·least is convex and piecewise linear in λ ≥ 0, and each piece is a
    deterministic policy's. At the minimum two of them meet, one on each side of the constraint, and their mixture
    that meets it is optimal (strong duality of a linear programme). The search puts λ where the two best pieces so far
    meet, until the policy planned there is no better than they are.

    Args:
        P: (H, S, A, S) transitions, for reward and constraint alike.
        reward: (H, S, A).
        worth: (H, S, A).
        least: What the mixture has to be worth; at most what a policy can be, else the best there is stays.
        initial: (S,) law of the first state.
        pair: (2, H, S) overwritten: too little worth, and enough; the first counts 1 − share.
    """
    low, high = np.zeros(reward.shape), np.zeros(reward.shape)
    plan(P, reward, initial, pair[0])
    add_visits(P, initial, pair[0], 1.0, low)
    if total(low, worth) >= least:
        pair[1] = pair[0]
        return 1.0
    plan(P, worth, initial, pair[1])
    add_visits(P, initial, pair[1], 1.0, high)
    if total(high, worth) <= least:
        pair[0] = pair[1]
        return 1.0
    between, visits = np.empty(pair[0].shape, np.int64), np.empty(reward.shape)
    for _ in range(_STEPS):
        apart = total(high, worth) - total(low, worth)
        multiplier = (total(low, reward) - total(high, reward)) / apart
        plan(P, reward + multiplier * worth, initial, between)
        visits[...] = 0.0
        add_visits(P, initial, between, 1.0, visits)
        here = total(visits, reward) + multiplier * total(visits, worth)
        known = total(low, reward) + multiplier * total(low, worth)
        if here <= known + _EQUAL * (1.0 + abs(known)):
            break
        if total(visits, worth) < least:
            low[...], pair[0] = visits, between
        else:
            high[...], pair[1] = visits, between
    return (least - total(low, worth)) / (total(high, worth) - total(low, worth))
