"""Users of a batch, and optimistic planning from noisy tables, compiled by Numba. T = 1 table, or T = H, one a step.

`w` is the model that users answer by, a `SparseMDP`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck.online.recording import DONE, SWITCHES, VALUE, note
from privcheck_algorithms.online.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def serve(  # noqa: PLR0917 - Numba's functions take positional arguments
    until: int, begun: int, w: SparseMDP, policies: Indices, worth: Array, changes: Flags, optimal: float,
    users: np.random.Generator, cap: int,
    transitions: Array, rewards: Array, grid: Indices, curves: Array, totals: Array,
) -> None:  # fmt: skip
    """Lets users act, the k-th after the k-th policy in turn, and counts their first visits; the privatizer's side.

    Args:
        until: The last user of this block.
        begun: Users before this batch.
        w: Where they act.
        policies: (G, H, S) actions; G policies take turns.
        worth: (G,) their true expected returns, for the record.
        changes: (G,) which of them differ from the one whose turn was before, for the record.
        optimal: V*₁.
        users: The users' randomness.
        cap: m: visits of a user to a pair that are counted.
        transitions: (T, S, A, S) exact counts of this batch.
        rewards: (T, S, A) exact reward sums of this batch.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    T, G = transitions.shape[0], policies.shape[0]
    seen = np.zeros((T, w.S, w.A), np.int64)
    path, pairs = np.empty(w.H, np.int64), np.empty(w.H, np.int64)
    while totals[DONE] < until:
        turn = int(totals[DONE]) % G
        s = draw_first(w, users)
        for h in range(w.H):
            a, t = policies[turn, h, s], h if T > 1 else 0
            i = draw_next(w, users, h * w.stride + s * w.A + a)
            path[h], pairs[h] = s, a
            if seen[t, s, a] < cap:
                seen[t, s, a] += 1
                transitions[t, s, a, w.successor[i]] += 1.0
                rewards[t, s, a] += w.reward[i]
            s = w.successor[i]
        for h in range(w.H):
            seen[h if T > 1 else 0, path[h], pairs[h]] = 0
        totals[VALUE] = worth[turn]
        if totals[DONE] > begun and changes[turn]:
            totals[SWITCHES] += 1.0
        note(totals, grid, curves, optimal)


@njit(cache=True, nogil=True)
def plan(  # noqa: PLR0917 - as above
    P: Array, reward: Array, bonus: Array, known: Flags, first: Array, H: int, actions: Indices
) -> None:
    """Writes the optimistic policy: what is not known is worth the most there can be.

    Args:
        P: (T, S, A, S) estimated transitions.
        reward: (T, S, A) estimated mean rewards.
        bonus: (T, S, A).
        known: (T, S, A) pairs with enough noisy visits.
        first: (S, A) in which order pairs that tie are taken, the largest first.
        H: Steps.
        actions: (H, S) overwritten.
    """
    T, S, A = reward.shape
    after, value = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        t, top = h if T > 1 else 0, float(H - h)
        for s in range(S):
            best, which = -1.0, 0
            for a in range(A):
                quality = top
                if known[t, s, a]:
                    quality = reward[t, s, a] + bonus[t, s, a]
                    for following in range(S):
                        quality += P[t, s, a, following] * after[following]
                    quality = max(0.0, min(top, quality))
                if quality > best or (quality == best and first[s, a] > first[s, which]):
                    best, which = quality, a
            actions[h, s], value[s] = which, best
        after[:] = value


@njit(cache=True, nogil=True)
def expected_visits(P: Array, initial: Array, policies: Indices, visits: Array) -> None:
    """Adds how often a user visits each pair in the estimated model, on average over the policies.

    Args:
        P: (T, S, A, S) estimated transitions.
        initial: (S,) law of the first state.
        policies: (G, H, S) actions.
        visits: (T, S, A) added to.
    """
    T, S = P.shape[0], initial.size
    G, H, _ = policies.shape
    law, following = np.empty(S), np.empty(S)
    for g in range(G):
        law[:] = initial
        for h in range(H):
            t = h if T > 1 else 0
            following[:] = 0.0
            for s in range(S):
                if law[s] > 0.0:
                    a = policies[g, h, s]
                    visits[t, s, a] += law[s] / G
                    for after in range(S):
                        following[after] += law[s] * P[t, s, a, after]
            law[:] = following
