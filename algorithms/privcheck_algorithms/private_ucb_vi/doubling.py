"""Algorithm 2 of paper 002 with disjoint batches, which double, in the place of the CENTRAL-PRIVATIZER's trees.

The agent is that of `kernels`: counters by step, the bonus, planning from the noisy counters alone. It plans anew where
these change, which is after a batch.
`w` is the model that users answer by, a `SparseMDP`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck.online.recording import DONE, SWITCHES, VALUE, note
from privcheck_algorithms.online.optimism import Bonus, plan
from privcheck_algorithms.online.sparse_mdp import SparseMDP, roll_greedy, value_anew
from privcheck_algorithms.online.tables import count, split
from privcheck_algorithms.privatizers import batches
from privcheck_algorithms.privatizers.noise import chunk

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]


@njit(cache=True, nogil=True)
def play(  # noqa: PLR0917 - Numba's functions take positional arguments
    until: int, K: int, first: int, law: int, scale: float, w: SparseMDP, bonus: Bonus, optimal: float,
    users: np.random.Generator, noise: np.random.Generator, streams: Words, exact: Array, board: Array, noisy: Array,
    actions: Indices, values: Array, truth: Array, grid: Indices, curves: Array, totals: Array,
) -> None:  # fmt: skip
    """Plays episodes up to and with the given one; arguments as for `kernels.play`, but for the privatizer's.

    Args:
        until: The last episode of this block.
        K: The last of all; no batch leaves after it.
        first: Users of the first batch.
        law: Of the noise.
        scale: Of the noise: b, or the standard deviation.
        w: Where users act.
        bonus: The bonus's numbers.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        noise: The channel's, where it is Gaussian.
        streams: The channel's, where it is Laplace.
        exact: (M,) the exact counters of the batch under way, or of the last one until the next one has a user.
        board: (outputs, M) the batches' noisy counters: the billboard.
        noisy: (M,) their sum.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
        truth: (H + 1, S) V^π.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    H, S, A = w.H, w.S, w.A
    path, taken, costs = np.empty(H + 1, np.int64), np.empty(H, np.int64), np.empty(H)
    scratch = (np.empty(S * A), np.empty(S * A), np.empty(S * A))
    raw = np.empty((2, chunk(noisy.size)), np.uint64)
    visits, sums, transitions = split(noisy, H, S, A)
    held = split(exact, H, S, A)
    while totals[DONE] < until:
        t = int(totals[DONE])
        fresh = batches.begins(t, first)
        if fresh:
            changed = plan(visits, sums, transitions, bonus, actions, values, scratch)  # lines 4 to 10
            if changed or t == 0:
                totals[SWITCHES] += 1.0 if t > 0 else 0.0
                totals[VALUE] = value_anew(w, actions, truth)
        roll_greedy(w, actions, users, path, taken, costs)  # line 11
        note(totals, grid, curves, optimal)
        if t + 1 == K:
            return
        if fresh:
            exact[:] = 0.0
        count(held[0], held[1], held[2], A, path, taken, costs)  # line 12
        if batches.begins(t + 1, first):
            batches.publish(t + 1, first, law, scale, streams, noise, raw, exact, board, noisy)
