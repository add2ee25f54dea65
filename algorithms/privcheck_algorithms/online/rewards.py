"""The private baselines that plan with rewards: PUCB, LDP-OBI and DP-UCBVI. One kernel, three ways to plan.

Counters are by step (T = H tables) or pooled (T = 1), and lie in memory as in `online.tables` with T in the
place of H. The papers here describe these algorithms in a few lines; each folder's README says what was filled in.
`w` is the model that users answer by, a `SparseMDP`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck.online.recording import DONE, SWITCHES, VALUE, note
from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total
from privcheck_algorithms.online.sparse_mdp import SparseMDP, roll_greedy, value_greedy
from privcheck_algorithms.online.tables import split
from privcheck_algorithms.privatizers import local, tree
from privcheck_algorithms.privatizers.noise import chunk

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]

PUCB, OBI, BERNSTEIN = range(3)


class PlanningRule(NamedTuple):
    """How an agent plans.

    Attributes:
        kind: `PUCB`, `OBI` or `BERNSTEIN`.
        E1: Precision level of visits and rewards.
        E2: Of transitions.
        log: The logarithm in the bonus.
        root: Factor of 1/√n in the bonus of `OBI`.
        linear: Factor of 1/n there.
        scale: Multiplies the bonus.
    """

    kind: int
    E1: float
    E2: float
    log: float
    root: float
    linear: float
    scale: float


@njit(cache=True, nogil=True, error_model="numpy")
def quality(  # noqa: PLR0917 - Numba's functions take positional arguments
    visits: Array, sums: Array, transitions: Array, t: int, cell: int, after: Array, H: int, top: float,
    rule: PlanningRule, x: Array,
) -> float:  # fmt: skip
    """Returns the optimistic value of one pair at one step, in [0, top].

    PUCB (Vietri et al. 2020, as reconstructed in its README): known from ñ ≥ 2E on, and then the bonus is
    (H + 1)·√(2L/max(ñ − E, 1)) + (1 + SH)(3E/ñ + 2E²/ñ²).
    OBI: Lemma 3.1's bonus of paper 002, with n = max(1, ñ + E).
    BERNSTEIN (Qiao & Wang 2023, as reconstructed): counts by equation (3) of paper 000, then
    2·√(Var_P̃(Ṽ)·L/n) + √(2L/n) + 20·S·H·E·L/n.

    Args:
        visits: (T, SA).
        sums: (T, SA) of rewards.
        transitions: (T, S, SA).
        t: The table.
        cell: s·A + a.
        after: (S,) Ṽ of the next step.
        H: Steps.
        top: H − h + 1, the largest value there can be.
        rule: The numbers.
        x: (S,) scratch.
    """
    S = after.size
    n = visits[t, cell]
    if rule.kind == BERNSTEIN:
        for s in range(S):
            x[s] = transitions[t, s, cell]
        total = private_total(n, x.copy(), rule.E1 / 2)
        private_counts(x.copy(), total, x)
        n = total + rule.E1 / 2
        if n <= rule.E1:
            return top
        mean, square = 0.0, 0.0
        for s in range(S):
            p = (x[s] + rule.E1 / (2 * S)) / n
            mean += p * after[s]
            square += p * after[s] * after[s]
        variance = max(0.0, square - mean * mean)
        bonus = 2 * math.sqrt(variance * rule.log / n) + math.sqrt(2 * rule.log / n)
        bonus += 20 * S * H * rule.E1 * rule.log / n
        return float(max(0.0, min(top, sums[t, cell] / n + mean + rule.scale * bonus)))
    total = sums[t, cell]
    for s in range(S):
        total += transitions[t, s, cell] * after[s]
    if rule.kind == PUCB:
        if n < max(2 * rule.E1, 1.0):
            return top
        bonus = (H + 1) * math.sqrt(2 * rule.log / max(n - rule.E1, 1.0))
        share = rule.E1 / n
        bonus += (1 + S * H) * (3 * share + 2 * share * share)
        return float(max(0.0, min(top, total / n + rule.scale * bonus)))
    n = max(1.0, n + rule.E1)
    return float(max(0.0, min(top, total / n + rule.root / math.sqrt(n) + rule.linear / n)))


@njit(cache=True, nogil=True, error_model="numpy")
def plan(  # noqa: PLR0917 - as above
    visits: Array,
    sums: Array,
    transitions: Array,
    A: int,
    rule: PlanningRule,
    actions: Indices,
    values: Array,
    x: Array,
) -> bool:
    """Plans an episode from noisy counters; returns whether the policy changed. The lowest action of those that tie."""
    H, S = actions.shape
    T = visits.shape[0]
    changed = False
    for s in range(S):
        values[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, which = -1.0, 0
            for a in range(A):
                q = quality(
                    visits, sums, transitions, h if T > 1 else 0, s * A + a, values[h + 1], H, float(H - h), rule, x
                )
                if q > best:
                    best, which = q, a
            changed = changed or actions[h, s] != which
            values[h, s], actions[h, s] = best, which
    return changed


@njit(cache=True, nogil=True)
def add(  # noqa: PLR0917 - as above
    flat: Array, T: int, S: int, A: int, path: Indices, taken: Indices, costs: Array
) -> None:
    """Adds one trajectory's visits, rewards 1 − c and transitions to a vector of counters."""
    visits, sums, transitions = split(flat, T, S, A)
    for h in range(taken.size):
        t, cell = h if T > 1 else 0, path[h] * A + taken[h]
        visits[t, cell] += 1.0
        sums[t, cell] += 1.0 - costs[h]
        transitions[t, path[h + 1], cell] += 1.0


@njit(cache=True, nogil=True)
def play(  # noqa: PLR0917 - as above
    until: int, K: int, central: bool, law: int, scale: float, w: SparseMDP, T: int, rule: PlanningRule, optimal: float,  # noqa: FBT001
    users: np.random.Generator, noise: np.random.Generator, streams: Words, exact: Array, prefix: Array, noisy: Array,
    actions: Indices, values: Array, judged: Indices, truth: Array, grid: Indices, curves: Array, totals: Array,
) -> None:  # fmt: skip
    """Plays episodes up to and with the given one; arguments as for PRIVATE-UCB-VI's kernel.

    Args:
        until: The last episode of this block.
        K: The last of all; its counts are not released.
        central: A tree at the curator; else every user adds noise.
        law: Of the noise.
        scale: Of the noise.
        w: Where users act.
        T: Tables: H, or 1 where they are pooled.
        rule: How to plan.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        noise: The channel's, where it is Gaussian.
        streams: The channel's, where it is Laplace.
        exact: (M,) the exact counters; (0,) under local privacy.
        prefix: (levels, M) the tree's noise; (0, 0) under local privacy.
        noisy: (M,) the noisy counters: the billboard.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
        judged: As in `value_greedy`.
        truth: (H + 1, S) V^π.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    path, taken, costs = np.empty(w.H + 1, np.int64), np.empty(w.H, np.int64), np.empty(w.H)
    raw = np.empty((3, chunk(noisy.size)), np.uint64)
    x = np.empty(w.S)
    visits, sums, transitions = split(noisy, T, w.S, w.A)
    while totals[DONE] < until:
        changed = plan(visits, sums, transitions, w.A, rule, actions, values, x)
        if changed or totals[DONE] == 0.0:
            totals[SWITCHES] += 1.0 if totals[DONE] > 0.0 else 0.0
            totals[VALUE] = value_greedy(w, actions, judged, truth)
        roll_greedy(w, actions, users, path, taken, costs)
        note(totals, grid, curves, optimal)
        t = int(totals[DONE])
        if t == K:
            return
        add(exact if central else noisy, T, w.S, w.A, path, taken, costs)
        if central:
            tree.publish(t, law, scale, streams, noise, raw, exact, prefix, noisy)
        else:
            local.publish(law, scale, streams, noise, raw, noisy)
