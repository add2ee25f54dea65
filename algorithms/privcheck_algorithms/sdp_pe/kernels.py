"""Users of a segment, compiled by Numba: each is dealt a policy, follows it, and makes bits of what they did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit
from privcheck.online.recording import DONE, VALUE, Record, note
from privcheck_algorithms.online.sparse_mdp import SparseMDP, draw_first, draw_next

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Dealt(NamedTuple):
    """What the users of a segment are dealt.

    Attributes:
        policies: (M, H, S) actions.
        until: (M,) cumulated shares.
        worth: (M,) true expected returns, for the record.
        told: (H, S) overwritten by what the last user was told.
    """

    policies: Indices
    until: Array
    worth: Array
    told: Indices


class Counted(NamedTuple):
    """Where the users' bits are counted: a vector of counters, and, where messages are sent, each user's own bits.

    Attributes:
        step: The one step that is counted, from 0; −1 for all, with rewards; −2 for none.
        sums: Of a step visits (S, A) and transitions (S, A, S); else of all steps, and then rewards (H, S, A).
        bits: (n, as many as sums) each user's own; without rows where sums are all that is kept.
        begun: Users before this batch.
    """

    step: int
    sums: Array
    bits: NDArray[np.uint8]
    begun: int


@njit(cache=True, nogil=True)
def serve(  # noqa: PLR0917 - Numba's functions take positional arguments
    w: SparseMDP,
    users: np.random.Generator,
    deal: np.random.Generator,
    dealt: Dealt,
    counted: Counted,
    record: Record,
) -> None:
    """Lets users act up to the record's `until`, and counts what they did.

    Args:
        w: The model.
        users: What users do: one uniform a step, one for the reward's bit where it is neither 0 nor 1, and one for a
            random first state.
        deal: Which policy a user gets: one uniform each.
        dealt: The policies.
        counted: Overwritten.
        record: The record.
    """
    policies, until, sums, bits, totals = dealt.policies, dealt.until, counted.sums, counted.bits, record.totals
    H, S, A = w.H, w.S, w.A
    steps = 1 if counted.step >= 0 else H
    pairs, told = S * A, dealt.told
    while totals[DONE] < record.until:
        u, which = deal.random(), 0
        while which < until.size - 1 and u >= until[which]:
            which += 1
        for h in range(H):
            for s in range(S):
                told[h, s] = policies[which, h, s]
        row = int(totals[DONE]) - counted.begun
        s = draw_first(w, users)
        for h in range(H):
            a = told[h, s]
            i = draw_next(w, users, h * w.stride + s * A + a)
            r = w.reward[i]
            bit = r >= 1.0 or (r > 0.0 and users.random() < r)
            after = w.successor[i]
            if counted.step in (h, -1):
                at, cell = (h if steps > 1 else 0), s * A + a
                visit, follow = at * pairs + cell, steps * pairs + (at * pairs + cell) * S + after
                sums[visit] += 1.0
                sums[follow] += 1.0
                if bits.shape[0]:
                    bits[row, visit] = 1
                    bits[row, follow] = 1
                if counted.step == -1 and bit:
                    reward = H * pairs * (1 + S) + visit
                    sums[reward] += 1.0
                    if bits.shape[0]:
                        bits[row, reward] = 1
            s = after
        totals[VALUE] = dealt.worth[which]
        note(record)
