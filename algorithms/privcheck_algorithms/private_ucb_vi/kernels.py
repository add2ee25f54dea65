"""PRIVATE-UCB-VI (Algorithm 2 of paper 002, lines 198 to 214 of the text) in plain loops, compiled by Numba.

An episode: the agent plans from noisy counters, a user answers, the privatizer turns exact counters and the channel's
fresh noise into the next noisy counters. `plan` is the agent, and reads nothing that is exact.
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
from privcheck_algorithms.privatizers import local, tree
from privcheck_algorithms.privatizers.noise import chunk

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]


@njit(cache=True, nogil=True)
def play(  # noqa: PLR0917 - Numba's functions take positional arguments
    until: int, K: int, central: bool, law: int, scale: float, w: SparseMDP, bonus: Bonus, optimal: float,  # noqa: FBT001
    users: np.random.Generator, noise: np.random.Generator, streams: Words, exact: Array, prefix: Array, noisy: Array,
    actions: Indices, values: Array, truth: Array, grid: Indices, curves: Array, totals: Array,
) -> None:  # fmt: skip
    """Plays episodes up to and with the given one.

    Args:
        until: The last episode of this block.
        K: The last of all; its counts are not released.
        central: CENTRAL-PRIVATIZER; else LOCAL-PRIVATIZER.
        law: Of the noise.
        scale: Of the noise: b, or the standard deviation.
        w: Where users act.
        bonus: The bonus's numbers.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        noise: The channel's, where it is Gaussian.
        streams: The channel's, where it is Laplace.
        exact: (M,) the exact counters; (0,) under the local privatizer, where nobody has them.
        prefix: (levels, M) the tree's noise; (0, 0) under the local privatizer.
        noisy: (M,) the noisy counters: the billboard.
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
    raw = np.empty((3, chunk(noisy.size)), np.uint64)
    visits, sums, transitions = split(noisy, H, S, A)
    held = split(exact if central else noisy, H, S, A)  # where the privatizer counts
    while totals[DONE] < until:  # line 3
        changed = plan(visits, sums, transitions, bonus, actions, values, scratch)  # lines 4 to 10
        if changed or totals[DONE] == 0.0:
            totals[SWITCHES] += 1.0 if totals[DONE] > 0.0 else 0.0
            totals[VALUE] = value_anew(w, actions, truth)
        roll_greedy(w, actions, users, path, taken, costs)  # line 11
        note(totals, grid, curves, optimal)
        t = int(totals[DONE])
        if t == K:
            return
        count(held[0], held[1], held[2], A, path, taken, costs)  # line 12
        if central:
            tree.publish(t, law, scale, streams, noise, raw, exact, prefix, noisy)
        else:
            local.publish(law, scale, streams, noise, raw, noisy)
