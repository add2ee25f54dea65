"""PRIVATE-UCB-VI with the CENTRAL-PRIVATIZER where its counters do not fit into memory: the same episodes, slowly.

Planning goes backwards, and step h needs the tables of step h alone, so those are the ones that exist
(`privcheck_algorithms.privatizers.regrown`). Policies, values and regret are those of `kernels.play`, bit by bit.
`w` is the model that users answer by, a `SparseMDP`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck.online.recording import DONE, SWITCHES, VALUE, note
from privcheck_algorithms.online.optimism import Bonus, backup, choose, weigh
from privcheck_algorithms.online.sparse_mdp import SparseMDP, roll_greedy, value_anew
from privcheck_algorithms.online.tables import split
from privcheck_algorithms.privatizers import regrown

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]
PIECE = 1024  # draws at a time


@njit(cache=True, nogil=True)
def play(  # noqa: PLR0917 - Numba's functions take positional arguments
    until: int, K: int, law: int, scale: float, w: SparseMDP, bonus: Bonus, optimal: float, users: np.random.Generator,
    noise: np.random.Generator, streams: Words, marks: Words, paths: Indices, taken: Indices, costs: Array,
    actions: Indices, values: Array, truth: Array, grid: Indices, curves: Array, totals: Array,
) -> None:  # fmt: skip
    """Plays episodes up to and with the given one; arguments as for `kernels.play`, but for the privatizer's.

    Args:
        until: The last episode of this block.
        K: The last of all; its counts are not released.
        law: Of the noise: Laplace or none.
        scale: Of the noise.
        w: Where users act.
        bonus: The bonus's numbers.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        noise: Not read.
        streams: The channel's.
        marks: (levels, 3, H, 4, 16) where the channel's streams stood, as in `regrown.close`.
        paths: (K, H + 1) users' states: what the privatizer keeps in place of counts.
        taken: (K, H) their actions.
        costs: (K, H) their costs.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
        truth: (H + 1, S) V^π.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    H, S, A = w.H, w.S, w.A
    inverse, beta, quality = np.empty(S * A), np.empty(S * A), np.empty(S * A)
    exact, noisy = np.zeros(S * A * (S + 2)), np.zeros(S * A * (S + 2))
    raw = np.empty((4, PIECE), np.uint64)
    visits, sums, transitions = split(noisy, 1, S, A)
    while totals[DONE] < until:  # line 3
        changed, t = False, int(totals[DONE])
        values[H, :] = 0.0  # line 4
        for h in range(H - 1, -1, -1):  # lines 5 to 10
            regrown.tables(t, h, H, S, A, law, scale, marks, noise, raw, paths, taken, costs, exact, noisy)
            weigh(visits, 0, bonus, inverse, beta)
            backup(sums, transitions, 0, inverse, beta, values, h + 1, float(H - h), quality)
            changed |= choose(quality, h, actions, values)
        if changed or t == 0:
            totals[SWITCHES] += 1.0 if t > 0 else 0.0
            totals[VALUE] = value_anew(w, actions, truth)
        roll_greedy(w, actions, users, paths[t], taken[t], costs[t])  # line 11
        note(totals, grid, curves, optimal)
        if t + 1 == K:
            return
        regrown.close(t + 1, H, S, A, streams, raw[0], marks)  # line 12
