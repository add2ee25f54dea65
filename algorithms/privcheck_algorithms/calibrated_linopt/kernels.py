"""Users of a batch, and value iteration in a mixture, compiled by Numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit
from privcheck.online.recording import DONE, SWITCHES, VALUE, Record, note
from privcheck_algorithms.calibrated_linopt.mixture import Mixture
from privcheck_algorithms.online.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Batch(NamedTuple):
    """A batch of users: whose turn comes with which policy, and what they are summed up in; the privatizer's side.

    Attributes:
        begun: Users before this batch.
        policies: (G, H, S) actions; G policies take turns, the k-th user acts by the k-th in turn.
        worth: (G,) their true expected returns, for the record.
        changes: (G,) which of them differ from the one whose turn was before, for the record.
        targets: (H − 1, S) y of each next state.
        x: (H − 1, S, A, d₁) features, in the coordinates of the kernels.
        values: (H − 1, d₁) exact sums of x·y of this batch.
        phi: (S, A, d₂) features of rewards.
        rewards: (H, d₂) exact sums of φ·(r − ½) of this batch; (0, d₂) where rewards are known.
    """

    begun: int
    policies: Indices
    worth: Array
    changes: Flags
    targets: Array
    x: Array
    values: Array
    phi: Array
    rewards: Array


@njit(cache=True, nogil=True, error_model="numpy")
def serve(w: SparseMDP, users: np.random.Generator, batch: Batch, record: Record) -> None:
    """Lets users of a batch act and sums up what they did, up to the record's `until`."""
    policies, targets, x, values, totals = batch.policies, batch.targets, batch.x, batch.values, record.totals
    phi, rewards = batch.phi, batch.rewards
    G, H, d1, d2 = policies.shape[0], w.H, values.shape[1], rewards.shape[1]
    released = rewards.shape[0] > 0
    while totals[DONE] < record.until:
        turn = int(totals[DONE]) % G
        s = draw_first(w, users)
        for h in range(H):
            a = policies[turn, h, s]
            at = draw_next(w, users, h * w.stride + s * w.A + a)
            following = w.successor[at]
            if h + 1 < H:
                y = targets[h, following]
                for i in range(d1):
                    values[h, i] += x[h, s, a, i] * y
            if released:
                centred = w.reward[at] - 0.5
                for i in range(d2):
                    rewards[h, i] += phi[s, a, i] * centred
            s = following
        totals[VALUE] = batch.worth[turn]
        if totals[DONE] > batch.begun and batch.changes[turn]:
            totals[SWITCHES] += 1.0
        note(record)


@njit(cache=True, nogil=True, error_model="numpy")
def plan(known: Mixture, weights: Array, reward: Array, actions: Indices, values: Array) -> None:
    """Writes the best policy under weights η, and its values; of actions that tie the first.

    Negative probabilities are taken for 0, and rows sum to 1, as in `mixture.transitions`.

    Args:
        known: The mixture.
        weights: (H, q) η.
        reward: (H, S, A) mean rewards.
        actions: (H, S) overwritten.
        values: (H + 1, S) overwritten.
    """
    fixed, free = known.fixed, known.open
    H, S, A = reward.shape
    q = free.shape[0]
    for s in range(S):
        values[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, which = -np.inf, 0
            for a in range(A):
                total, mean = 0.0, 0.0
                for following in range(S):
                    p = fixed[s, a, following]
                    for j in range(q):
                        p += weights[h, j] * free[j, s, a, following]
                    if p > 0.0:
                        total += p
                        mean += p * values[h + 1, following]
                quality = reward[h, s, a] + mean / total
                if quality > best:
                    best, which = quality, a
            actions[h, s], values[h, s] = which, best


@njit(cache=True, nogil=True, error_model="numpy")
def mean_visits(laws: Array, told: Indices, actions: int) -> Array:
    """Returns how often a user of each batch is in (s, a) at a step, on average over its policies, (B, S, A).

    Args:
        laws: (B, G, S) of the state under each policy.
        told: (B, G, S) actions.
        actions: A.
    """
    B, G, S = laws.shape
    visits = np.zeros((B, S, actions))
    for b in range(B):
        for g in range(G):
            for s in range(S):
                visits[b, s, told[b, g, s]] += laws[b, g, s] / G
    return visits


@njit(cache=True, nogil=True, error_model="numpy")
def follow(P: Array, told: Indices, laws: Array) -> Array:
    """Returns the laws of the next state, (B, G, S).

    Args:
        P: (S, A, S).
        told: (B, G, S) actions.
        laws: (B, G, S) of the state.
    """
    B, G, S = laws.shape
    after = np.zeros((B, G, S))
    for b in range(B):
        for g in range(G):
            for s in range(S):
                if laws[b, g, s] > 0.0:
                    a = told[b, g, s]
                    for following in range(S):
                        after[b, g, following] += laws[b, g, s] * P[s, a, following]
    return after
