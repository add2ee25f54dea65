"""Encoder, shuffler and analyser of one batch: every bit a message of its own (Cheu et al. 2019).

Small runs send messages: for every counter each user sends one bit of their own and the fair bits that are dealt to
them, the shuffler puts them in random order, and the analyser counts ones. In large runs the number of ones is drawn by
its law, the users' own plus Bin(N, ½), which is all that anybody learns from a shuffled multiset of bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit
from privcheck_algorithms.online.policy_runs import Reports

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Bits = NDArray[np.int8]

NONE = -1  # where no message is


class Shuffler(NamedTuple):
    """Who sends noise bits in a batch.

    Attributes:
        senders: n, users of this batch.
        decoys: N, fair bits a counter, of which user i draws ⌊N/n⌋, and one more where i < N mod n.
        rng: The users' noise bits, and the shuffler's order.
    """

    senders: int
    decoys: int
    rng: np.random.Generator


@njit(cache=True, nogil=True)
def send_transitions(held: Reports, through: Shuffler, left: Bits) -> None:
    """Writes what leaves the shuffler of every transition counter.

    Args:
        held: What the users hold.
        through: Who sends noise bits.
        left: (H′, S, S, M) messages in the order in which they leave, then −1.
    """
    steps, S, _ = held.transitions.shape
    for h in range(steps):
        for s in range(S):
            for following in range(S):
                out, at = left[h, s, following], 0
                for user in range(through.senders):
                    mine = held.paths[user, h] == s and held.paths[user, h + 1] == following
                    out[at] = 1 if mine else 0
                    at = _add_fair_bits(through, user, out, at + 1)
                shuffle(out, at, through.rng)


@njit(cache=True, nogil=True)
def send_rewards(held: Reports, through: Shuffler, left: Bits) -> None:
    """Writes what leaves the shuffler of every reward counter, (H, S, M); as `send_transitions`."""
    H, S = held.rewards.shape
    for h in range(H):
        for s in range(S):
            out, at = left[h, s], 0
            for user in range(through.senders):
                out[at] = 1 if held.paths[user, h] == s and held.bits[user, h] == 1 else 0
                at = _add_fair_bits(through, user, out, at + 1)
            shuffle(out, at, through.rng)


@njit(cache=True, nogil=True)
def _add_fair_bits(through: Shuffler, user: int, out: Bits, at: int) -> int:
    """Writes the fair bits that a user draws for one counter; returns where the next user's messages begin."""
    drawn = through.decoys // through.senders + (1 if user < through.decoys % through.senders else 0)
    for j in range(drawn):
        out[at + j] = 1 if through.rng.random() < 0.5 else 0
    return at + drawn


@njit(cache=True, nogil=True)
def shuffle(out: Bits, number: int, rng: np.random.Generator) -> None:
    """Puts a counter's messages in random order (Fisher & Yates); what stands behind them becomes −1."""
    for i in range(number - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        out[i], out[j] = out[j], out[i]
    for i in range(number, out.size):
        out[i] = NONE


def count_ones(left: Bits, decoys: int) -> Array:
    """Returns the analyser's estimates: ones of every counter less the fair bits' mean N/2."""
    return np.asarray((left == 1).sum(axis=-1) - decoys / 2)


def draw_ones(exact: Array, decoys: int, rng: np.random.Generator) -> Array:
    """Returns the same by its exact law: the users' own ones plus Bin(N, ½), less N/2."""
    return np.asarray(exact + rng.binomial(decoys, 0.5, exact.shape) - decoys / 2)
