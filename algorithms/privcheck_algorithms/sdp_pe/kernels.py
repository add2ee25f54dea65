"""Kernels of policy elimination, compiled by Numba: users of a segment, plans in a model, estimates from counters.

* Users: each gets a policy, follows it, and encodes the trajectory in bits.
* Plans, visits and plans under one constraint, in a model with rows that may sum to less than 1 (Definition 5): the
  missing mass of a row goes to the absorbing state x†, with value 0.
* Estimates of a model from counters: equations (3) and (7), tuples that are too rare, and the width of an elimination.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, VALUE, Record, note
from privcheck.support.kernels import njit
from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Dealt(NamedTuple):
    """Policies for the users of a segment.

    Attributes:
        policies: (M, H, S) actions.
        until: (M,) cumulative shares.
        worth: (M,) true expected returns, for the record.
        told: (H, S) overwritten by the policy of the last user.
    """

    policies: Indices
    until: Array
    worth: Array
    told: Indices


class Counted(NamedTuple):
    """Counters of the users' bits: a vector of sums, and each user's bits if messages are sent.

    Attributes:
        step: The one counted step, from 0; −1 for all, with rewards; −2 for none.
        sums: Visits (S, A) and transitions (S, A, S) of one step; or of all steps, followed by rewards (H, S, A).
        bits: (n, as many as sums) bits of each user; without rows if only sums are kept.
        begun: Number of users before this batch.
    """

    step: int
    sums: Array
    bits: NDArray[np.uint8]
    begun: int


@njit(cache=True, nogil=True)
def serve(  # noqa: PLR0917 - Numba's functions take positional arguments
    w: SparseMDP,
    users: np.random.Generator,
    deal: np.random.Generator,
    dealt: Dealt,
    counted: Counted,
    record: Record,
) -> None:
    """Run users up to the record's `until`, and count their data.

    Args:
        w: The model.
        users: Generator of users: one uniform per step, one for the reward's bit if it is neither 0 nor 1, and one for
            a random first state.
        deal: Generator of the users' policies: one uniform each.
        dealt: The policies.
        counted: Overwritten.
        record: The record.
    """
    policies, until, sums, bits, totals = dealt.policies, dealt.until, counted.sums, counted.bits, record.totals
    H, S, A = w.H, w.S, w.A
    steps = 1 if counted.step >= 0 else H
    pairs, told = S * A, dealt.told
    while totals[DONE] < record.until:
        u, which = deal.random(), 0
        while which < until.size - 1 and u >= until[which]:
            which += 1
        for h in range(H):
            for s in range(S):
                told[h, s] = policies[which, h, s]
        row = int(totals[DONE]) - counted.begun
        s = draw_first(w, users)
        for h in range(H):
            a = told[h, s]
            i = draw_next(w, users, h * w.stride + s * A + a)
            r = w.reward[i]
            bit = r >= 1.0 or (r > 0.0 and users.random() < r)
            after = w.successor[i]
            if counted.step in (h, -1):
                at, cell = (h if steps > 1 else 0), s * A + a
                visit, follow = at * pairs + cell, steps * pairs + (at * pairs + cell) * S + after
                sums[visit] += 1.0
                sums[follow] += 1.0
                if bits.shape[0]:
                    bits[row, visit] = 1
                    bits[row, follow] = 1
                if counted.step == -1 and bit:
                    reward = H * pairs * (1 + S) + visit
                    sums[reward] += 1.0
                    if bits.shape[0]:
                        bits[row, reward] = 1
            s = after
        totals[VALUE] = dealt.worth[which]
        note(record)


_STEPS = 200  # of the search for the multiplier; each finds another vertex of a finite polygon
_EQUAL = 1e-13  # relative: two values of a Lagrangian that are one


@njit(cache=True, nogil=True)
def plan(P: Array, reward: Array, initial: Array, actions: Indices) -> float:
    """Write an optimal policy, with ties going to the lowest action; returns its value.

    Args:
        P: (H, S, A, S) transitions.
        reward: (H, S, A) rewards.
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
    """Add a weight times a policy's visit probabilities of each pair at each step.

    Args:
        P: (H, S, A, S) transitions.
        initial: (S,) law of the first state.
        actions: (H, S) the policy.
        weight: Weight of the policy.
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
    """Inner product Σ visits·reward."""
    found, one, other = 0.0, visits.reshape(-1), reward.reshape(-1)
    for i in range(one.size):
        found += one[i] * other[i]
    return found


@njit(cache=True, nogil=True)
def plan_above(  # noqa: PLR0917 - Numba's functions take positional arguments
    P: Array, reward: Array, worth: Array, least: float, initial: Array, pair: Indices
) -> float:
    """Write two policies with the best mixture of worth at least `least`; returns the second's share.

    The Lagrangian max_π ⟨q_π, reward + λ·worth⟩ − λ·least is convex and piecewise linear in λ ≥ 0, and each piece is a
    deterministic policy's. At the minimum two of them meet, one on each side of the constraint, and their mixture on
    the constraint is optimal (strong duality of a linear programme). The search sets λ to the intersection of the two
    best pieces so far, until the policy planned there is no better.

    Args:
        P: (H, S, A, S) transitions, for reward and constraint alike.
        reward: (H, S, A) rewards.
        worth: (H, S, A) rewards of the constraint.
        least: Least worth of the mixture; if no policy reaches it, the policy with the largest worth is used.
        initial: (S,) law of the first state.
        pair: (2, H, S) overwritten: a policy with too little worth and one with enough; the first has weight 1 − share.
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


class Constants(NamedTuple):
    """Constants of estimates and eliminations.

    Attributes:
        H: Number of steps.
        S: Number of states, X in the paper.
        A: Number of actions.
        iota: ι = ln(2HAK/δ).
        precision: E_{ε,δ} as printed: 4 times the bound on all counters' errors at probability 1 − δ; 0 if scaled.
        rare: Noisy counts up to this are of tuples that are too rare, 𝒲 (Algorithm 2, line 9).
        width: C.
        noise_width: Factor of the noise's part, if it is scaled.
        std: Standard deviation of a counter's noise in the largest fine batch.
        printed: Whether the width is that of Algorithm 1, line 9, and 𝒲 that of crude exploration throughout; otherwise
            the noise's part is scaled, and fine counts decide on 𝒲 anew.
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
    """Gap to the best value at which policies are eliminated after a stage of 3·L users.

    2C(√(XAH³ι/L) + X³AH⁵·E·ι/L) as printed (Algorithm 1, line 9); else 2C·√(XAH³ι/L) + 2D·√(XAH)·XA·std/L, with the
    effect of noise of that spread on a value with independent counters as the second part.

    Args:
        c: The constants.
        L: L_b of the stage.
    """
    X, A, H = c.S, c.A, c.H
    chance = math.sqrt(X * A * H**3 * c.iota / L)
    if c.printed:
        return 2 * c.width * (chance + X**3 * A * H**5 * c.precision * c.iota / L)
    return 2 * c.width * chance + 2 * c.noise_width * math.sqrt(X * A * H) * X * A * c.std / L


UNDECIDED = np.zeros((0, 0, 0), np.bool_)  # no 𝒲 yet: the counts decide


@njit(cache=True, nogil=True)
def estimate(visits: Array, following: Array, c: Constants, frequent: NDArray[np.bool_], P: Array) -> Array:
    """Write one step's transitions, without too rare tuples (Definition 5); returns Ñ(x, a).

    Noisy counts are first clipped at 0, since equation (7) has no solution if m + e < 0; of its many minimisers the
    nearest one is used (`dp_apvi.kernels.private_counts`).

    Args:
        visits: (S, A) noisy N̈(x, a).
        following: (S, A, S) noisy N̈(x, a, x′).
        c: The constants.
        frequent: (S, A, S) tuples that are not in 𝒲; `UNDECIDED` if these counts decide it, and then Ñ(x, a) of too
            rare pairs is 0.
        P: (S, A, S) overwritten; the missing mass of a row goes to the absorbing state.
    """
    S, A = visits.shape
    decided = frequent.size > 0
    known, x = np.zeros((S, A)), np.empty(S)
    for s in range(S):
        for a in range(A):
            # |Σn − N̈(x, a)| ≤ E/4; `private_total` takes twice that
            whole = private_total(visits[s, a], following[s, a], c.precision / 2)
            private_counts(following[s, a], whole, x)
            count = whole + c.precision / 2
            known[s, a] = count if decided or count > c.rare else 0.0
            for after in range(S):
                tuple_ = x[after] + c.precision / (2 * S)
                kept = frequent[s, a, after] if decided else tuple_ > c.rare
                P[s, a, after] = tuple_ / count if kept and count > 0.0 else 0.0
    return known


@njit(cache=True, nogil=True)
def estimate_rewards(sums: Array, known: Array, reward: Array) -> None:
    """Write one step's mean rewards R̃/Ñ (equation (3)), clipped to [0, 1]; 0 where Ñ is 0.

    Args:
        sums: (S, A) noisy reward sums.
        known: (S, A) Ñ(x, a) from `estimate`.
        reward: (S, A) overwritten.
    """
    for s in range(known.shape[0]):
        for a in range(known.shape[1]):
            n = known[s, a]
            reward[s, a] = min(1.0, max(0.0, sums[s, a] / n)) if n > 0.0 else 0.0
