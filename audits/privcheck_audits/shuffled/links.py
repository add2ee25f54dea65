"""Whether the messages of different counters can be linked: a shuffler that uses one order for all of them.

A declaration composes counters whose messages are shuffled each by itself: then the orders are independent, and given
the counters' numbers of ones nothing else can be learnt. With one order for all counters a place is one sender: the
places of users' own bits have at most a few ones among all counters, those of fair bits half of them, and
whole trajectories can be read off.

The test is a bet. Counter c is given the weight w = ½ − (its own ones)/users, and every place the score
v = Σ w·(x − k/M) over the counters before. Shuffled independently, the k places of the next counter's ones are drawn
without replacement, and the mean of exp(λ·w·Σ(v − v̄)) over them is at most that with replacement,
(mean of exp(λ·w·(v − v̄)))^k (Hoeffding 1963, Theorem 4). So what is bet on them has expectation at most 1, given all
counters before: an e-value, whose product over counters, outputs and runs is at least 1/p with probability at most p
(Ville), whenever one stops.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BETS: Final = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # λ; their e-values are averaged


def bet_on_links(bits: Array, shares: Array) -> Array:
    """Returns the logarithm of the e-value of every bet against independent orders.

    Args:
        bits: (counters, M) messages in the order in which they left, 0 or 1.
        shares: (counters,) users' own ones over the number of users; chosen without looking at any order.

    >>> rng = np.random.default_rng(0)
    >>> alone = rng.permuted(np.repeat([[0.0, 1.0]], 40, axis=0).repeat(50, axis=1), axis=1)
    >>> bool(bet_on_links(alone, np.zeros(40)).max() < 5)
    True
    """
    bets, won = np.array(BETS)[:, None], np.zeros(len(BETS))
    scores = np.zeros(bits.shape[1])
    for row, weight in zip(bits, 0.5 - shares, strict=True):
        ones = row > 0.5
        apart = bets * (weight * (scores - scores.mean()))
        largest = apart.max(axis=1)
        means = largest + np.log(np.exp(apart - largest[:, None]).mean(axis=1))
        won += apart[:, ones].sum(axis=1) - ones.sum() * means
        scores += weight * (row - row.mean())
    return won
