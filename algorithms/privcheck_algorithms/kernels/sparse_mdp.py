"""A finite model in the form that kernels read, with exact values of policies: the reference for regret.

Costs are 1 − reward in Chowdhury & Zhou 2022 (section 2.1); values here are of rewards. Only the world and the
reference values are in this file; no agent or privatizer reads it. The optimum comes from
`privcheck.data.finite_models.solve`.

Functions called in an episode are force-inlined, here and in the neighbouring files: a compiled call would copy the
hundred words of a world. This saves a tenth of the time of PRIVATE-UCB-VI.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record
from privcheck.support.kernels import njit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
BITS = 64  # up to so many states, sets of states are bits of a word
FEW = 4  # up to so many successors a row, rows are kept at this length too, and walked without a branch


class SparseMDP(NamedTuple):
    """The model in compressed rows: only successors with positive probability.

    Attributes:
        H: Number of steps.
        S: Number of states.
        A: Number of actions.
        stride: S·A if the law changes with the step, else 0.
        first: (rows + 1,) where each row (h, s, a) starts.
        successor: (nnz,) s′.
        probability: (nnz,) P(s′ | s, a).
        reward: (nnz,) r(s, a, s′).
        mean_reward: (rows,) mean reward of each row.
        initial: (S,) law of the first state.
        start: The first state if it is fixed, else −1.
        mask: (rows,) bits of the successor states of a row; all bits if S > 64, a superset.
        narrow: Whether no row has more than four successors; otherwise the next two are empty.
        after: (rows · 4,) s′, then 0; unsigned, so that no index is tested for its sign.
        chance: (rows · 4,) P(s′ | s, a), then 0.
    """

    H: int
    S: int
    A: int
    stride: int
    first: Indices
    successor: Indices
    probability: Array
    reward: Array
    mean_reward: Array
    initial: Array
    start: int
    mask: NDArray[np.uint64]
    narrow: bool
    after: NDArray[np.uint64]
    chance: Array


class Walk(NamedTuple):
    """One user's trajectory.

    Attributes:
        path: (H + 1,) the states.
        taken: (H,) the actions.
        costs: (H,) the costs 1 − r.
    """

    path: Indices
    taken: Indices
    costs: Array


def compress(mdp: FiniteMDP) -> SparseMDP:
    """Convert a model to the form that kernels read."""
    steps, S, A, _ = mdp.transition.shape
    rows = mdp.transition.reshape(steps * S * A, S)
    row, successor = np.nonzero(rows)
    mask = np.zeros(rows.shape[0], dtype=np.uint64)
    if S <= BITS:
        np.bitwise_or.at(mask, row, np.uint64(1) << successor.astype(np.uint64))
    first = np.searchsorted(row, np.arange(rows.shape[0] + 1)).astype(np.int64)
    counts = np.diff(first)
    narrow = bool(counts.max() <= FEW)
    after, chance = np.zeros((rows.shape[0], FEW * narrow), np.uint64), np.zeros((rows.shape[0], FEW * narrow))
    if narrow:
        place = np.arange(row.size) - first[row]
        after[row, place], chance[row, place] = successor, rows[row, successor]
    return SparseMDP(
        H=mdp.horizon,
        S=S,
        A=A,
        stride=0 if steps == 1 else S * A,
        first=first,
        successor=successor.astype(np.int64),
        probability=rows[row, successor],
        reward=np.ascontiguousarray(mdp.reward[row // (S * A), row // A % S, row % A, successor]),
        mean_reward=mdp.mean_reward.reshape(-1).copy(),
        initial=mdp.initial.copy(),
        start=int(mdp.initial.argmax()) if mdp.fixed_start else -1,
        mask=mask if S <= BITS else ~mask,
        narrow=narrow,
        after=after.reshape(-1),
        chance=chance.reshape(-1),
    )


@njit(cache=True, nogil=True)
def value_greedy(w: SparseMDP, actions: Indices, judged: Indices, values: Array) -> float:
    """Exact expected return of a deterministic policy, updated from the values of the policy judged before.

    A state's value is recomputed only if its action changed, or the value of a successor: the numbers are
    those of a full backward pass, bit by bit.

    Args:
        w: The model.
        actions: (H, S) the action taken.
        judged: (H, S) the actions of `values`, −1 before the first; overwritten.
        values: (H + 1, S) V^π, last row 0; overwritten.
    """
    moved = np.uint64(0)  # the states at h + 1 whose value changed, as bits
    for h in range(w.H - 1, -1, -1):
        now = np.uint64(0)
        for s in range(w.S):
            row = h * w.stride + s * w.A + actions[h, s]
            if actions[h, s] != judged[h, s] or (w.mask[row] & moved) != 0:
                judged[h, s] = actions[h, s]
                total = w.mean_reward[row]
                for i in range(w.first[row], w.first[row + 1]):
                    total += w.probability[i] * values[h + 1, w.successor[i]]
                if total != values[h, s]:
                    values[h, s] = total
                    now |= np.uint64(1) << np.uint64(s % BITS)
        moved = now
    return _mean_first(w, values)


@njit(cache=True, nogil=True, forceinline=True)
def value_anew(w: SparseMDP, actions: Indices, values: Array) -> float:
    """Exact expected return of a deterministic policy from scratch, for large changes.

    Args:
        w: The model.
        actions: (H, S) the action taken.
        values: (H + 1, S) V^π, last row 0; overwritten.
    """
    mean_reward = w.mean_reward
    for h in range(w.H - 1, -1, -1):
        for s in range(w.S):
            row = h * w.stride + s * w.A + actions[h, s]
            total = mean_reward[row]
            if w.narrow:
                total = _follow(w, total, row, values[h + 1])
            else:
                for i in range(w.first[row], w.first[row + 1]):
                    total += w.probability[i] * values[h + 1, w.successor[i]]
            values[h, s] = total
    return _mean_first(w, values)


@njit(cache=True, nogil=True, forceinline=True)
def judge(w: SparseMDP, actions: Indices, values: Array, record: Record) -> None:
    """Record a new deterministic policy: its exact value, and a switch if there was a policy before.

    Args:
        w: The model.
        actions: (H, S) the action taken.
        values: (H + 1, S) V^π, last row 0; overwritten.
        record: The record.
    """
    record.totals[SWITCHES] += 1.0 if record.totals[DONE] > 0.0 else 0.0
    record.totals[VALUE] = value_anew(w, actions, values)


@njit(cache=True, nogil=True, forceinline=True)
def value_mixed(w: SparseMDP, policy: Array, values: Array) -> float:
    """Exact expected return of a policy of action probabilities.

    Args:
        w: The model.
        policy: (H, S, A) action probabilities.
        values: (H + 1, S) V^π, last row 0; overwritten.
    """
    mean_reward = w.mean_reward
    for h in range(w.H - 1, -1, -1):
        for s in range(w.S):
            mean = 0.0
            for a in range(w.A):
                row = h * w.stride + s * w.A + a
                total = mean_reward[row]
                if w.narrow:
                    total = _follow(w, total, row, values[h + 1])
                else:
                    for i in range(w.first[row], w.first[row + 1]):
                        total += w.probability[i] * values[h + 1, w.successor[i]]
                mean += policy[h, s, a] * total
            values[h, s] = mean
    return _mean_first(w, values)


@njit(cache=True, nogil=True, forceinline=True)
def _follow(w: SparseMDP, total: float, row: int, values: Array) -> float:
    """Total plus ΣP(s′)·V(s′) for a row of four: the same order of addition; the padding adds 0."""
    chance, after = w.chance, w.after
    total += chance[4 * row] * values[after[4 * row]]
    total += chance[4 * row + 1] * values[after[4 * row + 1]]
    total += chance[4 * row + 2] * values[after[4 * row + 2]]
    return total + float(chance[4 * row + 3] * values[after[4 * row + 3]])


@njit(cache=True, nogil=True, forceinline=True)
def _mean_first(w: SparseMDP, values: Array) -> float:
    """Mean of V₁ over the law of the first state."""
    mean = 0.0
    for s in range(w.S):
        if w.initial[s] > 0.0:
            mean += w.initial[s] * values[0, s]
    return mean


@njit(cache=True, nogil=True, forceinline=True)
def draw_first(w: SparseMDP, rng: np.random.Generator) -> int:
    """First state of a user; no random draw if it is fixed."""
    start, initial = w.start, w.initial
    return start if start >= 0 else _draw_state(initial, rng)


@njit(cache=True, nogil=True, forceinline=True)
def _draw_state(law: Array, rng: np.random.Generator) -> int:
    """Random state: the first with cumulative probability above u."""
    u, total, last = rng.random(), 0.0, 0
    for s in range(law.size):
        total += law[s]
        last = s if law[s] > 0.0 else last
        if u < total:
            return s
    return last


@njit(cache=True, nogil=True, forceinline=True)
def draw_next(w: SparseMDP, rng: np.random.Generator, row: int) -> int:
    """Position of a successor in the compressed row (h, s, a): the first with cumulative probability above u."""
    u, total = rng.random(), 0.0
    last = w.first[row + 1] - 1
    for i in range(w.first[row], last):
        total += w.probability[i]
        if u < total:
            return i
    return int(last)


@njit(cache=True, nogil=True, forceinline=True)
def empty_walk(H: int) -> Walk:
    """Uninitialised trajectory."""
    return Walk(np.empty(H + 1, np.int64), np.empty(H, np.int64), np.empty(H, np.float64))


@njit(cache=True, nogil=True, forceinline=True)
def roll_greedy(w: SparseMDP, actions: Indices, rng: np.random.Generator, walk: Walk) -> None:
    """Run one user under a deterministic policy (line 11 of Algorithm 2).

    Args:
        w: The model.
        actions: (H, S) the action taken.
        rng: The user's generator; one uniform per step, and one for a random first state.
        walk: Overwritten.
    """
    path, taken, costs = walk.path, walk.taken, walk.costs
    s = draw_first(w, rng)
    for h in range(w.H):
        path[h] = s
        a = actions[h, s]
        i = draw_next(w, rng, h * w.stride + s * w.A + a)
        taken[h] = a
        costs[h] = 1.0 - w.reward[i]
        s = w.successor[i]
    path[w.H] = s


@njit(cache=True, nogil=True, forceinline=True)
def roll_mixed(w: SparseMDP, policy: Array, rng: np.random.Generator, walk: Walk) -> None:
    """Run one user under a policy of action probabilities (line 11 of Algorithm 1).

    Args:
        w: The model.
        policy: (H, S, A) action probabilities.
        rng: The user's generator; two uniforms per step.
        walk: Overwritten.
    """
    path, taken, costs = walk.path, walk.taken, walk.costs
    s = draw_first(w, rng)
    for h in range(w.H):
        path[h] = s
        u, total, a = rng.random(), policy[h, s, 0], 0
        while u >= total and a < w.A - 1:
            a += 1
            total += policy[h, s, a]
        i = draw_next(w, rng, h * w.stride + s * w.A + a)
        taken[h] = a
        costs[h] = 1.0 - w.reward[i]
        s = w.successor[i]
    path[w.H] = s
