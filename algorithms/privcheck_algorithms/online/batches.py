"""Runs of agents that learn from disjoint batches of users: the walk over the batches, and what all of them share.

The users of a batch act by policies from the releases of the batches before it. At its end the agent releases the
tables of the batch, through a curator's channel or a shuffler; those of the last batch have no later user to help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, SWITCHES, Face, Player, Record, Replicate, blank, grid
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.sparse_mdp import compress, value_greedy
from privcheck_algorithms.online.agent_env import BatchFace
from privcheck_algorithms.online.private import NOISE

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]

_MOST: Final = 100_000  # each is a plan


def schedule(K: int, *, first: int, growth: float) -> Indices:
    """Last user of each batch; a last batch below half the size of the batch before joins it.

    Raises:
        ParameterError: More than 10⁵ batches.

    >>> schedule(1000, first=300, growth=1.0).tolist()
    [300, 600, 1000]
    """
    ends, size = [0], float(first)
    while ends[-1] < K:
        ends.append(min(K, ends[-1] + max(1, int(size))))
        size = min(size * growth, float(K))
        if len(ends) > _MOST:
            message = f"K = {K}: more than {_MOST} batches; make first_batch = {first} or growth = {growth:g} larger"
            raise ParameterError(message, name="first_batch", given=first)
    if len(ends) > 2 and 2 * (ends[-1] - ends[-2]) < ends[-2] - ends[-3]:
        del ends[-2]
    return np.array(ends[1:], dtype=np.int64)


def release(exact: Array, sigma: float, noise: np.random.Generator) -> Array:
    """Exact value plus fresh Gaussian noise: the channel's side, once per batch and table."""
    return np.asarray(exact + sigma * noise.standard_normal(exact.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch of users.

    Attributes:
        number: Index of the batch, from 0.
        begun: Number of users before it.
        end: Number of its last user.
    """

    number: int
    begun: int
    end: int

    @property
    def users(self) -> int:
        """Number of its users."""
        return self.end - self.begun


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchAgent:
    """An agent's own part of a run, as functions of a replicate and a batch.

    Attributes:
        blank: Makes its arrays before the first user, `actions` among them, the policy shown to the last user.
        begin: Plans the batch from the billboard, before its first user.
        serve: Runs users of the batch, up to the record's `until`.
        leave: Releases the finished batch's tables.
    """

    blank: Callable[[], Arrays]
    begin: Callable[[Replicate, Batch], None]
    serve: Callable[[Replicate, Batch, Record], None]
    leave: Callable[[Replicate, Batch], None]


class BatchRuns:
    """The batches of a request's users, and the walk of a replicate over them.

    Args:
        request: The request, with sizes that fit (`online.private.refuse`) and the option `growth`.
        first: Number of users of the first batch.

    Raises:
        ParameterError: A growth below 1, or too many batches.
    """

    def __init__(self, request: OnlineRequest, *, first: int) -> None:
        growth = request.options["growth"]
        if growth < 1:
            message = f"growth (each batch is so much larger): expected at least 1, got {growth}"
            raise ParameterError(message, name="growth", given=growth)
        self.request = request
        self.ends = schedule(request.episodes, first=first, growth=float(growth))
        self.sizes = np.diff(self.ends, prepend=0)
        self.w = compress(request.world.mdp)
        self._points = grid(request.episodes)

    @cached_property
    def optimal(self) -> float:
        """Value of the best policy, computed when an agent plays: agents refuse sizes beyond their memory before."""
        return solve(self.request.world.mdp).value

    def start(self, number: int, *, agent: BatchAgent, draws: str) -> Replicate:
        """Make a replicate before its first user; `draws` names the stream of the agent's public randomness."""
        own = seeds(self.request.seed, number, "users", "noise", draws)
        generators = {name: np.random.default_rng(seed) for name, seed in own.items()}
        return Replicate(arrays={**agent.blank(), **blank(self.request.episodes)}, generators=generators)

    def play(self, one: Replicate, until: int, *, agent: BatchAgent) -> None:
        """Play a replicate up to and including a user."""
        totals = one.arrays["totals"]
        while (done := int(totals[DONE])) < until:
            number = int(np.searchsorted(self.ends, done, side="right"))
            begun = int(self.ends[number - 1]) if number else 0
            batch = Batch(number=number, begun=begun, end=int(self.ends[number]))
            if done == begun:
                agent.begin(one, batch)
            record = Record(min(until, batch.end), totals, one.arrays["curves"], self._points, self.optimal)
            agent.serve(one, batch, record)
            if totals[DONE] == batch.end and number + 1 < len(self.ends):
                agent.leave(one, batch)

    def take_turns(self, one: Replicate, batch: Batch, chosen: Indices, *, turns: tuple[int, int]) -> None:
        """Note the policies that take turns in a batch, with their worth and changes, for the record.

        Args:
            one: The replicate, with `played`, `worth` and `changes` of `blank_turns`.
            batch: The batch.
            chosen: (G, H, S) its policies.
            turns: Numbers of the policies of its first user and of the user before.
        """
        a, w = one.arrays, self.w
        a["played"][batch.number] = chosen
        for turn in range(len(chosen)):
            judged, values = np.full(chosen.shape[1:], -1), np.zeros((w.H + 1, w.S))
            a["worth"][turn] = value_greedy(w, chosen[turn], judged, values)
        a["changes"][...] = (chosen != np.roll(chosen, 1, axis=0)).any(axis=(1, 2))
        first, last = turns
        if batch.number and (chosen[first] != a["played"][batch.number - 1, last]).any():
            a["totals"][SWITCHES] += 1.0

    def blank_turns(self, turns: int) -> Arrays:
        """Arrays of the policies that take turns, before the first user."""
        H, S = self.w.H, self.w.S
        return {
            "played": np.zeros((len(self.ends), turns, H, S), np.int64),
            "actions": np.zeros((H, S), np.int64),
            "worth": np.zeros(turns),
            "changes": np.zeros(turns, np.bool_),
        }

    def player(
        self,
        name: str,
        agent: BatchAgent,
        *,
        noiseless: bool,
        names: tuple[str, ...],
        policy: tuple[str, ...] = ("actions", "played"),
        face: Callable[[BatchFace], Face] | None = None,
        draws: str = "ties",
        noise: str = NOISE,
        protects: bool = False,
        diagnostics: Mapping[str, float],
    ) -> Player:
        """Player of an agent.

        Args:
            name: Name of the agent.
            agent: Its own part.
            noiseless: Whether no noise is drawn.
            names: As in `BatchFace`.
            policy: As in `Face`.
            face: Makes the audit adapter of the tables'; None for the tables' own.
            draws: As in `start`.
            noise: As in `Player`.
            protects: As in `Player`.
            diagnostics: Further diagnostics.
        """
        tables = BatchFace(names=names, ends=tuple(self.ends.tolist()), policy=policy)
        return Player(
            start=partial(self.start, agent=agent, draws=draws),
            play=partial(self.play, agent=agent),
            label=f"{name}, noiseless" if noiseless else name,
            told="actions",
            optimal=self.optimal,
            face=tables if face is None else face(tables),
            noise=noise,
            protects=protects,
            diagnostics={"batches": float(len(self.ends)), **diagnostics},
        )
