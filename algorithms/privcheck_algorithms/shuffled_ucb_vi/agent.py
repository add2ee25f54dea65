"""The agent of SHUFFLED-UCB-VI. README: the budget, the learner, what was tried.

`learn` and `plan` (online/policy_batches.py) are the agent, and read what the analyser made of messages alone; `serve`
(online/policy_runs.py) is where users are, and shuffler.py what stands between the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.mechanisms import shuffled_noise
from privcheck.online.player import Player, Replicate, Sent
from privcheck.results import OnlineRequest
from privcheck_algorithms.online.faces import BatchFace
from privcheck_algorithms.online.policy_runs import LEARNER, Batch, PolicyRuns, tune
from privcheck_algorithms.online.private import NOISE, declared
from privcheck_algorithms.online.sizes import refuse
from privcheck_algorithms.shuffled_ucb_vi.shuffler import (
    NONE,
    Shuffler,
    count_ones,
    draw_ones,
    send_rewards,
    send_transitions,
)

Array = NDArray[np.float64]

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
    """The face of batches behind a shuffler: tables as in `BatchFace`, and the messages where they are sent.

    Attributes:
        tables: Noisy and exact tables.
        decoys: N of every release.
        ends: The last user of each batch.
        sent: Whether messages are sent.
    """

    tables: BatchFace
    decoys: tuple[int, ...]
    ends: tuple[int, ...]
    sent: bool

    @property
    def policy(self) -> tuple[str, ...]:
        """Returns the arrays that are computed from the billboard alone."""
        return self.tables.policy

    @property
    def board(self) -> tuple[str, ...]:
        """Returns the arrays that are the billboard: what leaves the shuffler, and what the analyser makes of it."""
        left = tuple(f"left_{name}" for name in self.tables.names) if self.sent else ()
        return (*self.tables.board, *left)

    def output(self, episode: int) -> int | None:
        """Returns the batch that ends with the episode; None where none does, and for the last."""
        return self.tables.output(episode)

    def exact(self, one: Replicate, output: int) -> dict[str, Array]:
        """Returns the users' own ones in every counter."""
        return {name: one.arrays[f"exact_{name}"].copy() for name in self.tables.names}

    def noisy(self, one: Replicate, output: int) -> dict[str, Array]:
        """Returns the analyser's estimates."""
        return {name: one.arrays[name][output - 1].copy() for name in self.tables.names}

    def undeclared(self, one: Replicate) -> int:
        """Returns how many tables' entries or messages are more than what is declared."""
        return self.tables.undeclared(one)

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Returns the messages of the batch that ended last, as they left; nothing where the sums' law was drawn."""
        if not self.sent:
            return ()
        users = self.ends[output - 1] - (self.ends[output - 2] if output > 1 else 0)
        return tuple(
            Sent(name, left.reshape(-1, left.shape[-1]).copy(), users + decoys, users)
            for name, decoys in zip(self.tables.names, self.decoys, strict=True)
            for left in (one.arrays[f"left_{name}"],)
        )


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns SHUFFLED-UCB-VI in its world, ready to play.

    Args:
        request: What is asked.
        noiseless: No noise bits are drawn; the agent plans as with noise.

    Raises:
        ParameterError: Sizes that are not the environment's, no episode, tables beyond 8 GB, or a refused option.
    """
    refuse(request, vectors=0)
    releases = declared(request).noisy
    noise = {release.name: shuffled_noise(release.mechanism.at(request.values)) for release in releases}
    decoys = {name: law.bits[0] for name, law in noise.items()}
    shapes = {release.name: release.statistic.shape(request.values) for release in releases}
    tuning = tune(request, sigma=noise["transitions"].std, sigma_rewards=noise["rewards"].std, centre=0.0)
    runs = PolicyRuns(request, tuning=tuning, shapes=shapes, rounded=True)
    counters = {name: math.prod(shape) for name, shape in shapes.items()}
    fair = sum(number * decoys[name] for name, number in counters.items()) * (len(runs.ends) - 1)
    sent = not noiseless and fair + sum(counters.values()) * request.episodes <= int(request.options["messages"])
    channel = _Channel(runs=runs, decoys=decoys, sent=sent, noiseless=noiseless)
    tables = BatchFace(names=tuple(shapes), ends=tuple(runs.ends.tolist()), policy=("actions", "played"))
    return Player(
        start=channel.start,
        play=partial(runs.play, leave=channel.leave),
        label="shuffled-ucb-vi, noiseless" if noiseless else "shuffled-ucb-vi",
        told="actions",
        optimal=runs.optimal,
        face=ShuffleFace(tables=tables, decoys=tuple(decoys.values()), ends=tables.ends, sent=sent),
        noise=NOISE,
        diagnostics={
            "batches": float(len(runs.ends)),
            **{f"noise_bits_{name}": float(number) for name, number in decoys.items()},
            "every_bit_sent": float(sent),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Channel:
    """The shuffler's side of a run.

    Attributes:
        runs: The users and the agent.
        decoys: N by release.
        sent: Whether messages are sent.
        noiseless: Whether no noise bits are drawn.
    """

    runs: PolicyRuns
    decoys: dict[str, int]
    sent: bool
    noiseless: bool

    def start(self, number: int) -> Replicate:
        """Returns a replicate before its first episode, with room for the messages of the largest batch."""
        if not self.sent:
            return self.runs.start(number)
        most = int(self.runs.sizes.max())
        left = {
            f"left_{name}": np.full((*shape, most + self.decoys[name]), NONE, dtype=np.int8)
            for name, shape in self.runs.shapes.items()
        }
        return self.runs.start(number, kept=True, more=left)

    def leave(self, one: Replicate, batch: Batch) -> None:
        """Lets a batch's messages, or their sums, leave the shuffler."""
        a, rng = one.arrays, one.generators["noise"]
        for name, decoys in self.decoys.items():
            exact, table = a[f"exact_{name}"], a[name][batch.number]
            if self.noiseless:
                table[...] = exact
            elif not self.sent:
                table[...] = draw_ones(exact, decoys, rng)
            else:
                send = send_transitions if name == "transitions" else send_rewards
                send(self.runs.held(one, batch.begun), Shuffler(batch.users, decoys, rng), a[f"left_{name}"])
                table[...] = count_ones(a[f"left_{name}"], decoys)
