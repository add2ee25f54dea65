"""Users of a batch, policies of sampled models, and laws of states under public policies, compiled by Numba.

Features are stored as (d, S·A), a column per pair, for contiguous loops over pairs in plans. A model of a step is its
*effect*
E = M·Xᵀ, (d, S): P(· | s, a) = 1/S + φ(s, a)ᵀE, and E·1 = 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record, note
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Users(NamedTuple):
    """The users of a batch: their policies in turn, and their sums; the privatizer's side.

    The policies are public; nothing else of it reaches the agent before the sums are noisy.

    Attributes:
        begun: Number of users before this batch.
        policies: (G, H, S) actions; the policies take turns, the k-th user of the batch acts by the k-th in turn.
        worth: (G,) their true expected returns, for the record.
        changes: (G,) whether each differs from the policy before it, for the record.
        phi: (S, A, d) the features.
        reached: (T, S, d) Σφ by the state reached.
        visits: (T, S, A) visits, for exact Gram matrices; T = 0 if none are released.
        gains: (T, d) Σφ·(r − ½); T = 0 if rewards are public.
    """

    begun: int
    policies: Indices
    worth: Array
    changes: Flags
    phi: Array
    reached: Array
    visits: Array
    gains: Array


class Model(NamedTuple):
    """The model learned from the billboard: means and spreads of the unknowns.

    Attributes:
        effect: (T, d, S) mean of E.
        root: (T, d, d) R with RRᵀ the covariance of each column of M.
        reward: (H, S·A) public mean rewards; no steps if they are learned.
        theta: (T, d) mean of the rewards' weights θ, r = ½ + φᵀθ; no steps if rewards are public.
        spread: (T, d, d) their covariance's root.
    """

    effect: Array
    root: Array
    reward: Array
    theta: Array
    spread: Array


@njit(cache=True, nogil=True, error_model="numpy")
def serve(w: SparseMDP, users: np.random.Generator, batch: Users, record: Record) -> None:
    """Run users of a batch and sum up their data, up to the record's `until`."""
    policies, phi, totals = batch.policies, batch.phi, record.totals
    reached, visits, gains = batch.reached, batch.visits, batch.gains
    G, d = policies.shape[0], phi.shape[2]
    while totals[DONE] < record.until:
        turn = (int(totals[DONE]) - batch.begun) % G
        s = draw_first(w, users)
        for h in range(w.H):
            a = policies[turn, h, s]
            i = draw_next(w, users, h * w.stride + s * w.A + a)
            after = w.successor[i]
            if h < reached.shape[0]:
                for k in range(d):
                    reached[h, after, k] += phi[s, a, k]
            if h < visits.shape[0]:
                visits[h, s, a] += 1.0
            if h < gains.shape[0]:
                for k in range(d):
                    gains[h, k] += (w.reward[i] - 0.5) * phi[s, a, k]
            s = after
        totals[VALUE] = batch.worth[turn]
        if totals[DONE] > batch.begun and batch.changes[turn]:
            totals[SWITCHES] += 1.0
        note(record)


@njit(cache=True, nogil=True, error_model="numpy")
def plan(columns: Array, model: Model, draws: Array, gains: Array, actions: Indices) -> None:
    """Write the best policy of one sampled model: Q = r + mean(V) + φᵀw within V's range, w ~ N(E·V, ‖XᵀV‖²·RRᵀ).

    The columns of M are independent with the same covariance, so that w = M·XᵀV of a sampled M has this law, with one
    draw for all pairs of a step. The first of several best actions is taken.

    Args:
        columns: (d, S·A) the features.
        model: Means and spreads.
        draws: (T, d) independent draws of N(0, 1), times the factor of the perturbation.
        gains: (T, d) the same for rewards; no steps if they are public.
        actions: (H, S) overwritten.
    """
    H, S = actions.shape
    d, pairs = columns.shape
    A = pairs // S
    value, quality, weights = np.zeros(S), np.empty(pairs), np.empty(d)
    for h in range(H - 1, -1, -1):
        if model.theta.shape[0] > 0:
            for i in range(d):
                weights[i] = model.theta[h, i]
                for j in range(d):
                    weights[i] += model.spread[h, i, j] * gains[h, j]
            _predict(columns, weights, 0.5, quality)
            for p in range(pairs):
                quality[p] = min(1.0, max(0.0, quality[p]))
        else:
            for p in range(pairs):
                quality[p] = model.reward[h, p]
        if h < H - 1:
            _add_next_value(columns, (model.effect[h], model.root[h], draws[h]), value, quality)
        for s in range(S):
            best = s * A
            for p in range(s * A + 1, (s + 1) * A):
                if quality[p] > quality[best]:
                    best = p
            actions[h, s], value[s] = best - s * A, quality[best]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_next_value(columns: Array, sampled: tuple[Array, Array, Array], value: Array, quality: Array) -> None:
    """Add the sampled model's mean of V at the next step to every pair's quality; sampled: E, R and a draw."""
    effect, root, draw = sampled
    S, d = value.size, columns.shape[0]
    mean, low, high, square = 0.0, value[0], value[0], 0.0
    for s in range(S):
        mean += value[s] / S
        low, high = min(low, value[s]), max(high, value[s])
    for s in range(S):
        square += (value[s] - mean) ** 2
    length = math.sqrt(square)  # of XᵀV
    weights, following = np.zeros(d), np.empty(quality.size)
    for i in range(d):
        for s in range(S):
            weights[i] += effect[i, s] * value[s]
        for j in range(d):
            weights[i] += length * root[i, j] * draw[j]
    _predict(columns, weights, mean, following)
    for p in range(quality.size):
        quality[p] += min(high, max(low, following[p]))


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _predict(columns: Array, weights: Array, base: float, into: Array) -> None:
    for p in range(into.size):
        into[p] = base
    for i in range(weights.size):
        scale = weights[i]
        for p in range(into.size):
            into[p] += scale * columns[i, p]


@njit(cache=True, nogil=True, error_model="numpy")
def project(rows: Array) -> None:
    """Replace every row by the nearest probability vector (in the Euclidean norm): max(p − t, 0) with sum 1.

    Args:
        rows: (rows, S) overwritten.
    """
    S = rows.shape[1]
    for r in range(rows.shape[0]):
        falling = np.sort(rows[r])[::-1]
        total, threshold = 0.0, 0.0
        for i in range(S):
            total += falling[i]
            if falling[i] * (i + 1) > total - 1.0:
                threshold = (total - 1.0) / (i + 1)
        for i in range(S):
            rows[r, i] = max(0.0, rows[r, i] - threshold)


@njit(cache=True, nogil=True, error_model="numpy")
def count_visits(law: Array, actions: Indices, users: Array, visits: Array) -> None:
    """Add expected visits to each pair at one step.

    Args:
        law: (B, G, S) law of the state under each policy.
        actions: (B, G, S) the policies at this step.
        users: (B, G) number of users of each policy.
        visits: (B, S, A) added to.
    """
    B, G, S = law.shape
    for b in range(B):
        for g in range(G):
            for s in range(S):
                visits[b, s, actions[b, g, s]] += users[b, g] * law[b, g, s]


@njit(cache=True, nogil=True, error_model="numpy")
def advance(law: Array, actions: Indices, P: Array) -> None:
    """Replace the law of the state under each policy by that at the next step.

    Args:
        law: (B, G, S) overwritten.
        actions: (B, G, S) the policies at this step.
        P: (S, A, S) the model at this step.
    """
    B, G, S = law.shape
    following = np.empty(S)
    for b in range(B):
        for g in range(G):
            following[:] = 0.0
            for s in range(S):
                if law[b, g, s] > 0.0:
                    for after in range(S):
                        following[after] += law[b, g, s] * P[s, actions[b, g, s], after]
            for s in range(S):
                law[b, g, s] = following[s]
