"""Kernels of CALIBRATED-LINOPT, compiled by Numba: a mixture's free weights, users of a batch, value iteration.

P_h(· | s, a) = Σ_i θ_{h,i}·ψ_i(· | s, a), and P·1 = 1 says Σ_i θ_i·m_i(s, a) = 1 with the masses m_i = ∫ψ_i. These
equations are public. θ = θ₀ + Bη with θ₀ their shortest solution and B an orthonormal basis of the free directions:
only η is learned. For signed perturbations of one base kernel, η are the perturbations' weights; for d probability
kernels one of d directions is known.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record, note
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]

_SLACK: Final = 1e-9  # by which kernels that are floats may miss a sum of 1, or a direction be fixed


class Mixture(NamedTuple):
    """Public knowledge of a mixture.

    Attributes:
        fixed: (S, A, S) Σ_i θ₀_i·ψ_i(s′ | s, a).
        open: (q, S, A, S) Σ_i B_ij·ψ_i(s′ | s, a); q may be 0.
        basis: (d₁, q) B.
        initial: (S,) law of the first state.
    """

    fixed: Array
    open: Array
    basis: Array
    initial: Array


class Design(NamedTuple):
    """Regression targets and features of users' next values within a batch.

    Attributes:
        targets: (H − 1, S) y of every next state, in [−½, ½]; 0 if all next values are equal.
        x: (H − 1, S, A, q) features, of length at most 1.
        known: (H − 1, S, A) the mean of y under θ₀ alone: E[y | s, a] = known + length·⟨x, η⟩.
        length: (H − 1,) length of the longest feature before scaling; 0 if y does not depend on features.
    """

    targets: Array
    x: Array
    known: Array
    length: Array


def mixture(kernels: Array, initial: Array) -> Mixture:
    """Public knowledge of a mixture, from its kernels.

    Args:
        kernels: (d₁, S, A, S) kernels ψ.
        initial: (S,) law of the first state.

    Raises:
        ParameterError: No weights make the kernels sum to 1.
    """
    d1, S, A, _ = kernels.shape
    masses = kernels.sum(axis=-1).reshape(d1, -1).T
    shortest = np.linalg.lstsq(masses, np.ones(S * A), rcond=None)[0]
    missed = float(np.abs(masses @ shortest - 1).max())
    if missed > _SLACK * max(1.0, float(np.abs(masses).max())):
        message = (
            f"kernels: no weights make them probabilities at every state and action (the best sums of weighted masses "
            f"miss 1 by {missed:.3g}); expected weights θ with Σ θ_i·Σ_s′ ψ_i(s′ | s, a) = 1"
        )
        raise ParameterError(message, name="kernels", given=missed)
    _, sizes, rows = np.linalg.svd(masses, full_matrices=True)
    basis = rows[int((sizes > _SLACK * sizes.max()).sum()) :].T
    return Mixture(
        fixed=np.einsum("i,isat->sat", shortest, kernels),
        open=np.ascontiguousarray(np.einsum("ij,isat->jsat", basis, kernels)),
        basis=np.ascontiguousarray(basis),
        initial=initial,
    )


def design(known: Mixture, values: Array) -> Design:
    """Targets and features of a batch with public values V.

    y = (V(s′) − c)/span lies in [−½, ½] for every next state, and x is scaled by the longest feature of any state and
    action: the sensitivity of Σx·y does not depend on V.

    Args:
        known: The mixture.
        values: (H + 1, S) values V.
    """
    after = values[1:-1]
    low, high = after.min(axis=1, keepdims=True), after.max(axis=1, keepdims=True)
    span = high - low
    moved = span > _SLACK * np.maximum(1.0, np.abs(high))
    targets = np.where(moved, (after - low) / np.where(moved, span, 1.0) - 0.5, 0.0)
    long = np.einsum("jsat,ht->hsaj", known.open, targets)
    length = np.sqrt((long**2).sum(axis=-1)).max(axis=(1, 2))
    x = long / np.where(length > 0, length, 1.0)[:, None, None, None]
    return Design(targets=targets, x=x, known=np.einsum("sat,ht->hsa", known.fixed, targets), length=length)


def transitions(known: Mixture, weights: Array) -> Array:
    """Transitions P (S, A, S) under weights η (q,): negative numbers are set to 0, and rows are normalised."""
    P = np.maximum(known.fixed + np.tensordot(weights, known.open, axes=1), 0.0)
    return np.asarray(P / P.sum(axis=-1, keepdims=True))  # at least 1: it is 1 with the negative numbers


Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Users(NamedTuple):
    """The users of a batch: their policies in turn, and their sums; the privatizer's side.

    The policies are public; nothing else of it reaches the agent before the sums are noisy.

    Attributes:
        begun: Number of users before this batch.
        policies: (G, H, S) actions; the policies take turns, the k-th user acts by the k-th in turn.
        worth: (G,) their true expected returns, for the record.
        changes: (G,) whether each differs from the policy before it, for the record.
        targets: (H − 1, S) y of each next state.
        x: (H − 1, S, A, d₁) features, in the coordinates of the kernels.
        values: (H − 1, d₁) exact sums of x·y of this batch.
        phi: (S, A, d₂) features of rewards.
        rewards: (H, d₂) exact sums of φ·(r − ½) of this batch; (0, d₂) if rewards are known.
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
def serve(w: SparseMDP, users: np.random.Generator, batch: Users, record: Record) -> None:
    """Run users of a batch and sum up their data, up to the record's `until`."""
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
    """Write the best policy under weights η, and its values; ties go to the first action.

    Negative probabilities are set to 0, and rows are normalised to 1, as in `transitions`.

    Args:
        known: The mixture.
        weights: (H, q) weights η.
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
    """Mean probability, over the policies of each batch, that a user is in (s, a) at a step, (B, S, A).

    Args:
        laws: (B, G, S) laws of the state under each policy.
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
    """Laws of the next state, (B, G, S).

    Args:
        P: (S, A, S) transitions.
        told: (B, G, S) actions.
        laws: (B, G, S) laws of the state.
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
