"""Users, shuffler, analyser: what is sent about counters of bits, what leaves, and what is made of it (section V).

A `Protocol` is two functions, so that an audit can be shown one that is wrong. The messages of each counter have a
shuffler of their own: who sent two messages of different counters is no more known than who sent one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.mechanisms import ShuffledNoise

Array = NDArray[np.float64]
Bits = NDArray[np.uint8]
Messages = NDArray[np.int8]

LARGEST = 127  # integer that a message can hold
NOTHING = -1  # where no message is


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The encoder ℰ of all users and the shuffler ℱ of section II-B.

    Attributes:
        encode: From users' bits (n, C), their noise and a generator to messages (C, M) in the users' order.
        shuffle: From messages (C, M) and a generator to what leaves, (C, M).
    """

    encode: Callable[[Bits, ShuffledNoise, np.random.Generator], Messages]
    shuffle: Callable[[Messages, np.random.Generator], Messages]


def encode(bits: Bits, noise: ShuffledNoise, rng: np.random.Generator) -> Messages:
    """Returns what n users send about C counters, in their order: each their own bit, then their noise bits.

    Of integers one message a user: the sum of these (section V). Noise bits that are dealt out are as many for every
    user, or one more.

    Args:
        bits: (n, C) each user's own.
        noise: How many noise bits there are, and with which probability of a 1.
        rng: The users' randomness.
    """
    n, C = bits.shape
    m, p = noise.bits
    number = noise.senders * m
    drawn = rng.random((C, number)) < p
    if noise.integers:
        sums = bits.T + drawn.reshape(C, n, m).sum(axis=2)
        return np.asarray(sums, dtype=np.int8)
    whose = np.concatenate([np.arange(n), np.arange(number) * n // max(1, number)])
    sent = np.concatenate([bits.T, drawn], axis=1)[:, np.argsort(whose, kind="stable")]
    return np.asarray(sent, dtype=np.int8)


def shuffle(messages: Messages, rng: np.random.Generator) -> Messages:
    """Returns the messages of every counter in an order drawn for it alone."""
    return rng.permuted(messages, axis=1)


def analyse(left: Messages, noise: ShuffledNoise) -> Array:
    """Returns the estimates of the sums of the users' own bits, (C,): sums less the noise bits' mean (section V).

    Args:
        left: (C, M) what left the shuffler.
        noise: Of the users' bits.
    """
    return np.asarray(left.sum(axis=1, dtype=np.int64) - mean_of(noise), dtype=np.float64)


def mean_of(noise: ShuffledNoise) -> float:
    """Returns the mean of a counter's noise bits."""
    m, p = noise.bits
    return noise.senders * m * p


def count_messages(noise: ShuffledNoise, users: int) -> int:
    """Returns how many messages a counter has: a bit of each user's own and the noise bits, or one integer each."""
    return users if noise.integers else users + noise.senders * noise.bits[0]


HONEST = Protocol(encode=encode, shuffle=shuffle)
