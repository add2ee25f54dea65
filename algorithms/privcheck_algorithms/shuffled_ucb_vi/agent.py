"""The agent of SHUFFLED-UCB-VI: encoder, shuffler and analyser of a batch, audit adapter and player.

`kernels.policy_batches` learns and plans from the analyser's estimates alone; `online.policy_runs` runs the users; the
shuffler here separates the two. Every bit is a separate message (Cheu et al. 2019). Small runs send messages: for every
counter each user sends one true bit and the fair bits allocated to them, the shuffler puts them in random order, and
the analyser counts ones. In large runs the number of ones is drawn by its law (`draw_ones`), which is all the
information in a shuffled multiset of bits. README: the budget, the learner, and alternatives that were tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Parameter
from privcheck.declare.mechanisms import shuffled_noise
from privcheck.runtime.online import Player, Replicate, Sent
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.online.agent_env import BatchFace
from privcheck_algorithms.online.batches import Batch
from privcheck_algorithms.online.policy_runs import LEARNER, PolicyRuns, Reports, tune
from privcheck_algorithms.online.private import declared, refuse

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Bits = NDArray[np.int8]

NONE = -1  # where no message is


class Shuffler(NamedTuple):
    """Senders of noise bits in a batch.

    Attributes:
        senders: n, the number of users in this batch.
        decoys: N, fair bits a counter: user i draws ⌊N/n⌋, and one more if i < N mod n.
        rng: Generator of the users' noise bits and the shuffler's order.
    """

    senders: int
    decoys: int
    rng: np.random.Generator


@njit(cache=True, nogil=True)
def send_transitions(held: Reports, through: Shuffler, left: Bits) -> None:
    """Write the shuffled messages of every transition counter.

    Args:
        held: The users' data.
        through: Senders of noise bits.
        left: (H′, S, S, M) messages in the order of release, then −1.
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
    """Write the shuffled messages of every reward counter, (H, S, M); as `send_transitions`."""
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
    """Write the fair bits that a user draws for one counter; returns the position of the next user's messages."""
    drawn = through.decoys // through.senders + (1 if user < through.decoys % through.senders else 0)
    for j in range(drawn):
        out[at + j] = 1 if through.rng.random() < 0.5 else 0
    return at + drawn


@njit(cache=True, nogil=True)
def shuffle(out: Bits, number: int, rng: np.random.Generator) -> None:
    """Put a counter's messages in random order (Fisher & Yates); later entries become −1."""
    for i in range(number - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        out[i], out[j] = out[j], out[i]
    for i in range(number, out.size):
        out[i] = NONE


def count_ones(left: Bits, decoys: int) -> Array:
    """Analyser's estimates: number of ones in every counter minus the fair bits' mean N/2."""
    return np.asarray((left == 1).sum(axis=-1) - decoys / 2)


def draw_ones(exact: Array, decoys: int, rng: np.random.Generator) -> Array:
    """The same estimates by their exact law: the users' own ones plus Bin(N, ½), minus N/2."""
    return np.asarray(exact + rng.binomial(decoys, 0.5, exact.shape) - decoys / 2)


OPTIONS = (
    Parameter(name="first_batch", default=256, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.05", kind="positive", meaning="each batch is so much larger; at least 1"),
    *LEARNER,
    Parameter(
        name="messages",
        default=1_000_000,
        kind="count",
        meaning="up to so many messages of a run every bit passes the shuffler; beyond, the law of the sums is drawn",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleFace:
    """The face of batches behind a shuffler: tables as in `BatchFace`, and the messages if they are sent.

    Attributes:
        tables: Noisy and exact tables.
        decoys: N of every release.
        sent: Whether messages are sent.
    """

    tables: BatchFace
    decoys: tuple[int, ...]
    sent: bool

    @property
    def policy(self) -> tuple[str, ...]:
        """Arrays computed from the billboard alone."""
        return self.tables.policy

    @property
    def board(self) -> tuple[str, ...]:
        """Arrays of the billboard: shuffled messages and the analyser's estimates."""
        left = tuple(f"left_{name}" for name in self.tables.names) if self.sent else ()
        return (*self.tables.board, *left)

    def output(self, episode: int) -> int | None:
        """Batch that ends with the episode; None if none ends or it is the last."""
        return self.tables.output(episode)

    def exact(self, one: Replicate, output: int) -> dict[str, Array]:
        """Users' true number of ones in every counter."""
        return {name: one.arrays[f"exact_{name}"].copy() for name in self.tables.names}

    def noisy(self, one: Replicate, output: int) -> dict[str, Array]:
        """Analyser's estimates."""
        return {name: one.arrays[name][output - 1].copy() for name in self.tables.names}

    def undeclared(self, one: Replicate) -> int:
        """Number of tables' entries or messages in excess of the declared ones."""
        return self.tables.undeclared(one)

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Messages of the last completed batch, as released; empty if the sums were drawn by their law."""
        if not self.sent:
            return ()
        ends = self.tables.ends
        users = ends[output - 1] - (ends[output - 2] if output > 1 else 0)
        return tuple(
            Sent(name, left.reshape(-1, left.shape[-1]).copy(), users + decoys, users)
            for name, decoys in zip(self.tables.names, self.decoys, strict=True)
            for left in (one.arrays[f"left_{name}"],)
        )


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """SHUFFLED-UCB-VI in its world, ready to play.

    Args:
        request: The request.
        noiseless: Whether to draw no noise bits; the agent plans as with noise.

    Raises:
        ParameterError: The sizes are not the environment's, there is no episode, tables exceed 8 GB, or an option is
            refused.
    """
    refuse(request, vectors=0)
    releases = declared(request).noisy
    values = {**request.values, "n": Fraction(request.episodes)}  # read where the noise is off: no bits are dealt out
    noise = {release.name: shuffled_noise(release.mechanism.at(values)) for release in releases}
    decoys = {name: law.bits[0] for name, law in noise.items()}
    shapes = {release.name: release.statistic.shape(request.values) for release in releases}
    tuning = tune(request, sigma=noise["transitions"].std, sigma_rewards=noise["rewards"].std, centre=0.0)
    runs = PolicyRuns(request, tuning=tuning, shapes=shapes, rounded=True)
    counters = {name: math.prod(shape) for name, shape in shapes.items()}
    fair = sum(number * decoys[name] for name, number in counters.items()) * (len(runs.batches.ends) - 1)
    sent = not noiseless and fair + sum(counters.values()) * request.episodes <= int(request.options["messages"])

    def more() -> dict[str, Bits]:
        most = int(runs.batches.sizes.max())  # messages of the largest batch
        return {
            f"left_{name}": np.full((*shape, most + decoys[name]), NONE, dtype=np.int8)
            for name, shape in (shapes if sent else {}).items()
        }

    def leave(one: Replicate, batch: Batch) -> None:
        a, rng = one.arrays, one.generators["noise"]
        for name, number in decoys.items():
            exact, table = a[f"exact_{name}"], a[name][batch.number]
            if noiseless:
                table[...] = exact
            elif not sent:
                table[...] = draw_ones(exact, number, rng)
            else:
                send = send_transitions if name == "transitions" else send_rewards
                send(runs.held(one, batch.begun), Shuffler(batch.users, number, rng), a[f"left_{name}"])
                table[...] = count_ones(a[f"left_{name}"], number)

    return runs.batches.player(
        "shuffled-ucb-vi",
        runs.agent(leave, kept=sent, more=more),
        noiseless=noiseless,
        names=tuple(shapes),
        face=lambda tables: ShuffleFace(tables=tables, decoys=tuple(decoys.values()), sent=sent),
        diagnostics={
            **{f"noise_bits_{name}": float(number) for name, number in decoys.items()},
            "every_bit_sent": float(sent),
        },
    )
