"""Users of a batch, and optimistic planning from noisy tables, compiled by Numba. T is 1, or H: a table per step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record, note
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Batch(NamedTuple):
    """A batch of users: their policies in turn, and their counts; the privatizer's side.

    Attributes:
        begun: Number of users before this batch.
        cap: m, the number of a user's visits to a pair that are counted.
        policies: (G, H, S) actions; the policies take turns, the k-th user acts by the k-th in turn.
        worth: (G,) their true expected returns, for the record.
        changes: (G,) whether each differs from the policy before it, for the record.
        transitions: (T, S, A, S) exact counts of this batch.
        rewards: (T, S, A) exact reward sums of this batch.
    """

    begun: int
    cap: int
    policies: Indices
    worth: Array
    changes: Flags
    transitions: Array
    rewards: Array


class Estimate(NamedTuple):
    """Estimates of the agent, computed from the billboard.

    Attributes:
        P: (T, S, A, S) estimated transitions.
        reward: (T, S, A) estimated mean rewards.
        bonus: (T, S, A) exploration bonus.
        known: (T, S, A) pairs with enough noisy visits.
    """

    P: Array
    reward: Array
    bonus: Array
    known: Flags


@njit(cache=True, nogil=True)
def serve(w: SparseMDP, users: np.random.Generator, batch: Batch, record: Record) -> None:
    """Run users of a batch and count their first visits, up to the record's `until`."""
    policies, transitions, rewards, totals = batch.policies, batch.transitions, batch.rewards, record.totals
    T, G = transitions.shape[0], policies.shape[0]
    seen = np.zeros((T, w.S, w.A), np.int64)
    path, pairs = np.empty(w.H, np.int64), np.empty(w.H, np.int64)
    while totals[DONE] < record.until:
        turn = int(totals[DONE]) % G
        s = draw_first(w, users)
        for h in range(w.H):
            a, t = policies[turn, h, s], h if T > 1 else 0
            i = draw_next(w, users, h * w.stride + s * w.A + a)
            path[h], pairs[h] = s, a
            if seen[t, s, a] < batch.cap:
                seen[t, s, a] += 1
                transitions[t, s, a, w.successor[i]] += 1.0
                rewards[t, s, a] += w.reward[i]
            s = w.successor[i]
        for h in range(w.H):
            seen[h if T > 1 else 0, path[h], pairs[h]] = 0
        totals[VALUE] = batch.worth[turn]
        if totals[DONE] > batch.begun and batch.changes[turn]:
            totals[SWITCHES] += 1.0
        note(record)


@njit(cache=True, nogil=True)
def plan(estimate: Estimate, first: Array, actions: Indices) -> None:
    """Write the optimistic policy; unknown pairs have the largest possible value.

    Args:
        estimate: Estimates of the agent.
        first: (S, A) priorities among tied pairs, largest first.
        actions: (H, S) overwritten.
    """
    P, reward, bonus, known = estimate
    H = actions.shape[0]
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
        for s in range(S):  # `after[:] = value` would compile Python's strings, for a message on shapes
            after[s] = value[s]


@njit(cache=True, nogil=True)
def add_expected_visits(P: Array, initial: Array, policies: Indices, visits: Array) -> None:
    """Add the expected visits of a user to each pair in the estimated model, averaged over the policies.

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
        for s in range(S):  # as above
            law[s] = initial[s]
        for h in range(H):
            t = h if T > 1 else 0
            following[:] = 0.0
            for s in range(S):
                if law[s] > 0.0:
                    a = policies[g, h, s]
                    visits[t, s, a] += law[s] / G
                    for after in range(S):
                        following[after] += law[s] * P[t, s, a, after]
            for s in range(S):
                law[s] = following[s]
