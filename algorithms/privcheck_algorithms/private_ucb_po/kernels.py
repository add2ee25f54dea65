"""PRIVATE-UCB-PO (Algorithm 1 of paper 002, lines 105 to 122 of the text) in plain loops, compiled by Numba.

An episode: the agent evaluates and improves its policy from noisy counters, a user answers, the privatizer turns exact
counters and the channel's fresh noise into the next noisy counters. `evaluate_and_improve` is the agent, and reads
nothing that is exact.
`w` is the model that users answer by, a `SparseMDP`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck.online.recording import DONE, SWITCHES, VALUE, differ, note
from privcheck_algorithms.online.optimism import Bonus, evaluate_and_improve
from privcheck_algorithms.online.sparse_mdp import SparseMDP, roll_mixed, value_mixed
from privcheck_algorithms.online.tables import count, split
from privcheck_algorithms.privatizers import local, tree
from privcheck_algorithms.privatizers.noise import chunk

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]


@njit(cache=True, nogil=True)
def play(  # noqa: PLR0917 - Numba's functions take positional arguments
    until: int, K: int, central: bool, law: int, scale: float, w: SparseMDP, bonus: Bonus, eta: float, optimal: float,  # noqa: FBT001
    users: np.random.Generator, noise: np.random.Generator, streams: Words, exact: Array, prefix: Array, noisy: Array,
    policy: Array, logits: Array, values: Array, last: Array, truth: Array, grid: Indices, curves: Array, totals: Array,
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
        eta: η.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        noise: The channel's, where it is Gaussian.
        streams: The channel's, where it is Laplace.
        exact: (M,) the exact counters; (0,) under the local privatizer, where nobody has them.
        prefix: (levels, M) the tree's noise; (0, 0) under the local privatizer.
        noisy: (M,) the noisy counters: the billboard.
        policy: (H, S, A) π of the next episode.
        logits: As in `evaluate_and_improve`.
        values: (H + 1, S) Ṽ.
        last: (H, S, A) π of this episode.
        truth: (H + 1, S) V^π.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    H, S, A = w.H, w.S, w.A
    path, taken, costs = np.empty(H + 1, np.int64), np.empty(H, np.int64), np.empty(H)
    scratch = (np.empty(S * A), np.empty(S * A), np.empty(S * A))
    bits = np.empty(H * S * A, np.uint64)
    raw = np.empty((3, chunk(noisy.size)), np.uint64)
    visits, sums, transitions = split(noisy, H, S, A)
    held = split(exact if central else noisy, H, S, A)  # where the privatizer counts
    while totals[DONE] < until:  # line 4
        totals[SWITCHES] += 1.0 if totals[DONE] > 0.0 and differ(policy, last) else 0.0
        # lines 5 to 10 and 13
        evaluate_and_improve(visits, sums, transitions, bonus, eta, policy, logits, values, scratch, bits, last)
        totals[VALUE] = value_mixed(w, last, truth)
        roll_mixed(w, last, users, path, taken, costs)  # line 11
        note(totals, grid, curves, optimal)
        t = int(totals[DONE])
        if t == K:
            return
        count(held[0], held[1], held[2], A, path, taken, costs)  # line 12
        if central:
            tree.publish(t, law, scale, streams, noise, raw, exact, prefix, noisy)
        else:
            local.publish(law, scale, streams, noise, raw, noisy)
