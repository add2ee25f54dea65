"""The agent of SHUFFLED-UCB-VI. README: the budget, the learner, what was tried.

`learn` and `plan` (online/policy_batches.py) are the agent, and read what the analyser made of messages alone; `serve`
and what sends messages (shuffler.py) is where users and shuffler are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.mechanisms import shuffled_noise
from privcheck.online.driver import seeds
from privcheck.online.player import Player, Replicate
from privcheck.online.recording import DONE, SWITCHES, VALUE, Record, blank, grid
from privcheck.planning import solve
from privcheck.relations import ReplaceOne
from privcheck.results import OnlineRequest
from privcheck_algorithms.online.batches import schedule
from privcheck_algorithms.online.faces import BatchFace
from privcheck_algorithms.online.policy_batches import Heard, Tuning, blank_model, learn, plan
from privcheck_algorithms.online.private import NOISE, declared
from privcheck_algorithms.online.sizes import MEMORY, refuse
from privcheck_algorithms.online.sparse_mdp import compress, value_greedy
from privcheck_algorithms.shuffled_ucb_vi.shuffler import (
    NONE,
    Reports,
    Shuffler,
    count_ones,
    draw_ones,
    send_rewards,
    send_transitions,
    serve,
)

Array = NDArray[np.float64]

LEARNER = (
    Parameter(name="bonus", default="0.2", kind="real", meaning="standard deviations of the next value that are added"),
    Parameter(name="bonus_rewards", default="0.6", kind="real", meaning="and of the mean reward"),
    Parameter(name="guess", default="0.3", kind="real", meaning="mean reward of what nobody has seen"),
    Parameter(name="prior", default="2.5", kind="positive", meaning="precision of the prior 1/S of a probability"),
    Parameter(name="prior_rewards", default="1", kind="positive", meaning="precision of the prior `guess`"),
    Parameter(
        name="shared",
        default="250",
        kind="real",
        meaning="precision with which other steps' data are a step's prior; 0: every step learns for itself",
    ),
    Parameter(name="thin", default="1.3", kind="real", meaning="probabilities below so many σ are taken for noise"),
)
OPTIONS = (
    Parameter(name="first_batch", default=224, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.15", kind="positive", meaning="each batch is so much larger; at least 1"),
    *LEARNER,
    Parameter(
        name="messages",
        default=1_000_000,
        kind="count",
        meaning="up to so many messages of a run every bit passes the shuffler; beyond, the law of the sums is drawn",
    ),
)
_CHANCE = 0.2  # variance of one user's entry, roughly p(1 − p)
_SWEEPS = 3


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

    def messages(self, one: Replicate, output: int) -> tuple[tuple[str, NDArray[np.int8], int], ...]:
        """Returns release, (counters, M) messages in the order in which they left (then −1), and how many are due."""
        if not self.sent:
            return ()
        begun = self.ends[output - 2] if output > 1 else 0
        users = self.ends[output - 1] - begun
        return tuple(
            (name, one.arrays[f"left_{name}"].reshape(-1, one.arrays[f"left_{name}"].shape[-1]).copy(), users + number)
            for name, number in zip(self.tables.names, self.decoys, strict=True)
        )


def tune(request: OnlineRequest, *, sigma: float, sigma_rewards: float, centre: float = 0.0) -> Tuning:
    """Returns the learner's numbers from the request's options.

    Args:
        request: What is asked.
        sigma: Standard deviation of a transition count's noise.
        sigma_rewards: Of a reward sum's.
        centre: What is taken off every reward.

    Raises:
        ParameterError: A growth below 1, or a guess that is no mean reward.
    """
    option = {name: float(value) for name, value in request.options.items()}
    if option["growth"] < 1:
        message = f"growth (each batch is so much larger): expected at least 1, got {option['growth']:g}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    if not 0 <= option["guess"] <= 1:
        message = f"guess (a mean reward): expected a number from 0 to 1, got {option['guess']:g}"
        raise ParameterError(message, name="guess", given=request.options["guess"])
    return Tuning(
        sigma=sigma,
        sigma_rewards=sigma_rewards,
        centre=centre,
        prior=option["prior"],
        prior_rewards=option["prior_rewards"],
        guess=option["guess"],
        shared=option["shared"],
        chance=_CHANCE,
        thin=option["thin"],
        bonus=option["bonus"],
        bonus_rewards=option["bonus_rewards"],
        sweeps=_SWEEPS,
    )


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns SHUFFLED-UCB-VI in its world, ready to play.

    Args:
        request: What is asked.
        noiseless: No noise bits are drawn; the agent plans as with noise.

    Raises:
        ParameterError: Sizes that are not the environment's, no episode, tables beyond 8 GB, or a refused option.
    """
    run = _Run(request, noiseless=noiseless)
    tables = BatchFace(names=run.names, ends=tuple(run.ends.tolist()), policy=("actions", "played"))
    return Player(
        start=run.start,
        play=run.play,
        label="shuffled-ucb-vi, noiseless" if noiseless else "shuffled-ucb-vi",
        told="actions",
        optimal=run.optimal,
        face=ShuffleFace(tables=tables, decoys=run.decoys, ends=tables.ends, sent=run.sent),
        noise=NOISE,
        diagnostics={
            "batches": float(len(run.ends)),
            "noise_bits_transitions": float(run.decoys[0]),
            "noise_bits_rewards": float(run.decoys[1]),
            "every_bit_sent": float(run.sent),
        },
    )


class _Run:
    """The agent in a world: what its player's functions do."""

    def __init__(self, request: OnlineRequest, *, noiseless: bool) -> None:
        refuse(request, vectors=0)
        mdp, declaration = request.world.mdp, declared(request)
        _refuse_start(request)
        self._request, self._mdp, self._noiseless = request, mdp, noiseless
        self.names = tuple(release.name for release in declaration.releases)
        noise = [shuffled_noise(release.mechanism.at(request.values)) for release in declaration.releases]
        self.decoys = tuple(one.bits[0] for one in noise)
        self._tuning = tune(request, sigma=noise[0].std, sigma_rewards=noise[1].std)
        first, growth = int(request.options["first_batch"]), float(request.options["growth"])
        self.ends = schedule(request.episodes, first=first, growth=growth)
        self._sizes = np.diff(self.ends, prepend=0).astype(np.float64)
        self._shapes = {r.name: r.statistic.shape(request.values) for r in declaration.releases}
        counters = [math.prod(shape) for shape in self._shapes.values()]
        fair = sum(count * number for count, number in zip(counters, self.decoys, strict=True))
        messages = fair * (len(self.ends) - 1) + sum(counters) * request.episodes
        self.sent = not noiseless and messages <= int(request.options["messages"])
        refuse_tables(request, counters=sum(counters), batches=len(self.ends))
        self._w, truth, self._points = compress(mdp), solve(mdp), grid(request.episodes)
        self.optimal = truth.value

    def start(self, number: int) -> Replicate:
        """Returns a replicate before its first episode."""
        H, S, batches = self._mdp.horizon, self._mdp.states, len(self.ends)
        own = seeds(self._request.seed, number, "users", "noise", "ties")
        arrays: dict[str, NDArray[Any]] = {name: np.zeros((batches, *shape)) for name, shape in self._shapes.items()}
        arrays |= {f"exact_{name}": np.zeros(shape) for name, shape in self._shapes.items()}
        rows = int(self._sizes.max()) if self.sent else 0
        for (name, shape), number_of_bits in zip(self._shapes.items(), self.decoys, strict=True):
            if self.sent:
                arrays[f"left_{name}"] = np.full((*shape, rows + number_of_bits), NONE, dtype=np.int8)
        arrays |= {"paths": np.zeros((rows, H + 1), np.int64), "bits": np.zeros((rows, H), np.int64)}
        arrays |= {"actions": np.zeros((H, S), np.int64), "played": np.zeros((batches, H, S), np.int64)}
        arrays |= blank(self._request.episodes)
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(seed) for name, seed in own.items()})

    def play(self, one: Replicate, until: int) -> None:
        """Plays a replicate up to and with an episode."""
        totals = one.arrays["totals"]
        while (done := int(totals[DONE])) < until:
            batch = int(np.searchsorted(self.ends, done, side="right"))
            begun = int(self.ends[batch - 1]) if batch else 0
            if done == begun:
                self._begin(one, batch)
            end = int(self.ends[batch])
            record = Record(min(until, end), totals, one.arrays["curves"], self._points, self.optimal)
            serve(self._w, one.generators["users"], one.arrays["played"][batch], _held(one, begun), record)
            if totals[DONE] == end and batch + 1 < len(self.ends):  # nobody comes after the last batch
                self._leave(one, batch, begun)

    def _begin(self, one: Replicate, batch: int) -> None:
        """Plans from the billboard what the next batch is told."""
        a, H, S = one.arrays, self._mdp.horizon, self._mdp.states
        learned, before = blank_model(H, S, self._mdp.actions), a["actions"].copy()
        heard = Heard(
            transitions=a["transitions"][:batch],
            rewards=a["rewards"][:batch],
            played=a["played"][:batch],
            sizes=self._sizes[:batch],
            initial=self._mdp.initial,
        )
        learn(heard, self._tuning, learned)
        plan(learned, self._tuning, one.generators["ties"].random((H, S, self._mdp.actions)), a["actions"])
        a["played"][batch] = a["actions"]
        a["totals"][VALUE] = value_greedy(self._w, a["actions"], np.full((H, S), -1), np.zeros((H + 1, S)))
        a["totals"][SWITCHES] += float(batch > 0 and (before != a["actions"]).any())
        a["exact_transitions"][...] = a["exact_rewards"][...] = 0.0

    def _leave(self, one: Replicate, batch: int, begun: int) -> None:
        """Lets a batch's messages, or their sums, leave the shuffler."""
        a, rng = one.arrays, one.generators["noise"]
        for name, decoys in zip(self.names, self.decoys, strict=True):
            if self._noiseless:
                a[name][batch] = a[f"exact_{name}"]
            elif not self.sent:
                a[name][batch] = draw_ones(a[f"exact_{name}"], decoys, rng)
            else:
                send = send_transitions if name == "transitions" else send_rewards
                send(_held(one, begun), Shuffler(int(self._sizes[batch]), decoys, rng), a[f"left_{name}"])
                a[name][batch] = count_ones(a[f"left_{name}"], decoys)


def _held(one: Replicate, begun: int) -> Reports:
    a = one.arrays
    return Reports(a["exact_transitions"], a["exact_rewards"], a["paths"], a["bits"], begun)


def _refuse_start(request: OnlineRequest) -> None:
    relation = declared(request).relation
    if isinstance(relation, ReplaceOne) and relation.initial == "fixed" and not request.world.mdp.fixed_start:
        message = f"initial=fixed: in {request.world.name} the first state is drawn; use --set initial=any"
        raise ParameterError(message, name="initial", given="fixed")


def refuse_tables(request: OnlineRequest, *, counters: int, batches: int) -> None:
    """Refuses tables and policies beyond 8 GB.

    Raises:
        ParameterError: They need more.
    """
    mdp = request.world.mdp
    needed = 8.0 * request.replicates * (batches + 2) * (counters + 2 * mdp.horizon * mdp.states)
    if needed > MEMORY:
        message = (
            f"{batches} batches of {counters} counters in {request.replicates} replicates need {needed / 1e9:.1f} GB, "
            f"at most {MEMORY / 1e9:g} GB are taken: fewer --replicates, or a larger growth or first_batch"
        )
        raise ParameterError(message, name="replicates", given=request.replicates)
