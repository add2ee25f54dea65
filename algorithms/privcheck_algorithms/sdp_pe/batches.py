"""The shuffler's side: the noise of a batch by its size, what leaves of it, and the constants that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.mechanisms import ShuffledNoise, shuffled_noise
from privcheck.results import OnlineRequest
from privcheck_algorithms.sdp_pe.estimates import Constants
from privcheck_algorithms.sdp_pe.shuffler import LARGEST, Messages, Protocol, analyse, count_messages, mean_of
from privcheck_algorithms.sdp_pe.stages import Segment

Array = NDArray[np.float64]

_C1 = 6  # Algorithm 2's initialisation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shuffled:
    """The shuffler's side: the noise of a batch by its size, and whether every message of it is really sent.

    Attributes:
        request: What is asked.
        protocol: What users send and what leaves.
        limit: Messages up to which they are really sent.
        draws: Noise is drawn; not of the noiseless twin.
    """

    request: OnlineRequest
    protocol: Protocol
    limit: float
    draws: bool
    known: dict[int, ShuffledNoise] = field(default_factory=dict)

    def noise(self, users: int) -> ShuffledNoise:
        """Returns the declared noise behind a shuffler with so many users."""
        if users not in self.known:
            declared = self.request.setting.declared.noisy[0].mechanism
            self.known[users] = shuffled_noise(declared.at({**self.request.values, "n": Fraction(users)}))
        return self.known[users]

    def sends(self, now: Segment, counters: int) -> bool:
        """Returns whether the batch of a segment is sent message by message."""
        if not self.draws or now.batch == 0:
            return False
        noise = self.noise(now.batch)
        bits = count_messages(noise, now.batch) * (1.0 + noise.bits[0] * noise.integers)
        return bits * counters <= self.limit and not (noise.integers and noise.bits[0] >= LARGEST)

    def release(
        self, exact: Array, bits: NDArray[np.uint8], users: int, rng: np.random.Generator
    ) -> tuple[Array, Messages | None]:
        """Returns the analyser's estimates of a batch's sums, and the messages where they are sent.

        Args:
            exact: (C,) the sums of the users' own bits.
            bits: (n, C) these bits, where messages are sent; else no rows.
            users: Of the batch.
            rng: Of users' noise bits and of the shuffler.
        """
        if not self.draws:
            return exact.copy(), None
        noise = self.noise(users)
        if not len(bits):
            return np.asarray(exact + noise.draw(rng, exact.shape)), None
        left = self.protocol.shuffle(self.protocol.encode(bits, noise, rng), rng)
        return analyse(left, noise), left


def bound_noise(request: OnlineRequest, lengths: tuple[int, ...], shuffled: Shuffled | None) -> float:
    """Returns E: four times what no counter of any stage is off by, with probability 1 − δ; 0 without noise.

    By Chernoff's bound, as in the proof of Lemma 10.
    """
    if shuffled is None or not lengths:
        return 0.0
    mdp, failure = request.world.mdp, float(request.options["failure"])
    counters = mdp.horizon * mdp.states * mdp.actions * (mdp.states + 2) * len(lengths)
    logs = math.log(2 * counters / failure)
    return 4 * max(math.sqrt(3 * mean_of(shuffled.noise(2 * max(lengths))) * logs), 3 * logs)


def settle(request: OnlineRequest, lengths: tuple[int, ...], shuffled: Shuffled | None) -> Constants:
    """Returns the constants, of the agent without privacy where nothing is shuffled."""
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
