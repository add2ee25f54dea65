"""Batches of SDP-PE (Bai et al. 2024): encoder, shuffler and analyser of bits, segments of users, constants.

In this order: messages about counters of bits, their shuffling, and the estimates (section V); the segments of the
users of every stage, in their order (Algorithms 1 to 3); the noise of a batch by its size, its release, and the
constants that follow from it.

A `Protocol` is two functions, so that an audit can run a wrong one. The messages of each counter have a separate
shuffler: messages of different counters cannot be linked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import ShuffledNoise, shuffled_noise
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.sdp_pe.declaration import stages
from privcheck_algorithms.sdp_pe.kernels import Constants

Array = NDArray[np.float64]
Bits = NDArray[np.uint8]
Messages = NDArray[np.int8]

LARGEST = 127  # integer that a message can hold
NOTHING = -1  # where no message is


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The encoder ℰ of all users and the shuffler ℱ of section II-B.

    Attributes:
        encode: Map from users' bits (n, C), their noise and a generator to messages (C, M) in the users' order.
        shuffle: Map from messages (C, M) and a generator to shuffled messages (C, M).
    """

    encode: Callable[[Bits, ShuffledNoise, np.random.Generator], Messages]
    shuffle: Callable[[Messages, np.random.Generator], Messages]


def encode(bits: Bits, noise: ShuffledNoise, rng: np.random.Generator) -> Messages:
    """Messages of n users about C counters, in their order: each user's bit, then the user's noise bits.

    For integers, one message per user: the sum of these bits (section V). Publicly allocated noise bits differ by at
    most one between users.

    Args:
        bits: (n, C) bits of each user.
        noise: Number of noise bits and their probability of a 1.
        rng: Generator of the users.
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
    """Shuffle the messages of every counter in a separate random order."""
    return rng.permuted(messages, axis=1)


def analyse(left: Messages, noise: ShuffledNoise) -> Array:
    """Estimates of the sums of the users' bits, (C,): sums less the noise bits' mean (section V).

    Args:
        left: (C, M) shuffled messages.
        noise: Noise of the users' bits.
    """
    return np.asarray(left.sum(axis=1, dtype=np.int64) - mean_of(noise), dtype=np.float64)


def mean_of(noise: ShuffledNoise) -> float:
    """Mean of a counter's noise bits."""
    m, p = noise.bits
    return noise.senders * m * p


def count_messages(noise: ShuffledNoise, users: int) -> int:
    """Number of messages per counter: a bit of each user and the noise bits, or one integer each."""
    return users if noise.integers else users + noise.senders * noise.bits[0]


HONEST = Protocol(encode=encode, shuffle=shuffle)


Part = Literal["crude", "fine", "auxiliary", "rest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive users with policies from one mixture.

    Attributes:
        part: "crude" (Algorithm 2, line 6), "fine" and "auxiliary" (Algorithm 3, line 2: π^ref and π₀), or the "rest",
            users who send nothing.
        stage: b, from 0.
        step: h of crude exploration, from 0; else 0.
        first: Index of the first user, from 0.
        last: Number of the last user, from 1.
        batch: Number of users behind their shuffler.
    """

    part: Part
    stage: int
    step: int
    first: int
    last: int
    batch: int

    @property
    def leaves(self) -> bool:
        """Whether a shuffler releases messages after these users."""
        return self.part in {"crude", "auxiliary"}


def list_segments(K: int, H: int, *, remainder: str) -> tuple[Segment, ...]:
    """Segments of all users; empty segments are left out.

    Args:
        K: Number of users.
        H: Number of steps; the users of crude exploration are divided over them in order, as by `OneStepEach`.
        remainder: As in `stages`.

    >>> found = list_segments(10, 3, remainder="last")
    >>> [(s.part, s.step, s.last) for s in found[:4]]
    [('crude', 0, 1), ('crude', 1, 2), ('fine', 0, 4), ('auxiliary', 0, 6)]
    >>> [(s.part, s.step, s.last) for s in found[4:]]
    [('crude', 0, 7), ('fine', 0, 8), ('auxiliary', 0, 9), ('rest', 0, 10)]
    """
    segments: list[Segment] = []
    done, b = 0, 0

    def add(part: Part, users: int, *, batch: int, step: int = 0) -> None:
        nonlocal done
        if users:
            segments.append(Segment(part=part, stage=b, step=step, first=done, last=done + users, batch=batch))
            done += users

    for b, L in enumerate(stages(K, remainder=remainder)):  # noqa: B007 - `add` reads it
        share, more = divmod(L, H)
        for h in range(H):
            add("crude", share + (h < more), batch=share + (h < more), step=h)
        add("fine", L, batch=2 * L)
        add("auxiliary", L, batch=2 * L)
    add("rest", K - done, batch=0)
    return tuple(segments)


_C1 = 6  # Algorithm 2's initialisation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shuffled:
    """The shuffler's side: the noise of a batch by its size, and whether every message is actually sent.

    Attributes:
        request: The request.
        protocol: Protocol of the users and the shuffler.
        limit: Largest number of messages that are actually sent.
        draws: Whether to draw noise; false for the noiseless twin.
    """

    request: OnlineRequest
    protocol: Protocol
    limit: float
    draws: bool
    known: dict[int, ShuffledNoise] = field(default_factory=dict)

    def noise(self, users: int) -> ShuffledNoise:
        """Declared noise behind a shuffler with a number of users."""
        if users not in self.known:
            declared = self.request.setting.declared.noisy[0].mechanism
            self.known[users] = shuffled_noise(declared.at({**self.request.values, "n": Fraction(users)}))
        return self.known[users]

    def sends(self, now: Segment, counters: int) -> bool:
        """Whether the batch of a segment is sent message by message."""
        if not self.draws or now.batch == 0:
            return False
        noise = self.noise(now.batch)
        bits = count_messages(noise, now.batch) * (1.0 + noise.bits[0] * noise.integers)
        return bits * counters <= self.limit and not (noise.integers and noise.bits[0] >= LARGEST)

    def release(
        self, exact: Array, bits: NDArray[np.uint8], users: int, rng: np.random.Generator
    ) -> tuple[Array, Messages | None]:
        """The analyser's estimates of a batch's sums, and the messages if they are sent.

        Args:
            exact: (C,) the sums of the users' own bits.
            bits: (n, C) these bits if messages are sent; else no rows.
            users: Number of users of the batch.
            rng: Generator of users' noise bits and of the shuffler.
        """
        if not self.draws:
            return exact.copy(), None
        noise = self.noise(users)
        if not len(bits):
            return np.asarray(exact + noise.draw(rng, exact.shape)), None
        left = self.protocol.shuffle(self.protocol.encode(bits, noise, rng), rng)
        return analyse(left, noise), left


def bound_noise(request: OnlineRequest, lengths: tuple[int, ...], shuffled: Shuffled | None) -> float:
    """Value E: four times the bound on all counters' errors at probability 1 − δ; 0 without noise.

    By Chernoff's bound, as in the proof of Lemma 10.
    """
    if shuffled is None or not lengths:
        return 0.0
    mdp, failure = request.world.mdp, float(request.options["failure"])
    counters = mdp.horizon * mdp.states * mdp.actions * (mdp.states + 2) * len(lengths)
    logs = math.log(2 * counters / failure)
    return 4 * max(math.sqrt(3 * mean_of(shuffled.noise(2 * max(lengths))) * logs), 3 * logs)


def settle(request: OnlineRequest, lengths: tuple[int, ...], shuffled: Shuffled | None) -> Constants:
    """Constants of the agent; those of the non-private variant without a shuffler."""
    mdp, option = request.world.mdp, {name: float(value) for name, value in request.options.items()}
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    printed = request.readings.get("constants", "scaled") == "printed"
    iota = math.log(2 * H * A * request.episodes / option["failure"])
    std, E = 0.0, bound_noise(request, lengths, shuffled)
    if shuffled is not None and lengths:
        std = shuffled.noise(2 * max(lengths)).std
    return Constants(
        H=H, S=S, A=A, iota=iota, precision=E if printed else 0.0,
        rare=option["cut"] * (_C1 * E * H**2 * iota if printed else std),
        width=option["width"], noise_width=option.get("noise_width", 0.0), std=std, printed=printed,
    )  # fmt: skip
