"""Online agents, driven stepwise: the interface for runs and audits, and the record of a run.

An agent is registered as a function that makes a `Player` (`MakePlayer`). A player starts replicates and plays them up
to an episode; all state is in the replicate's arrays and generators, so that a run can be stopped, copied, put behind
another billboard and continued. Auditors read a replicate through the player's `Face`.

Every episode counts: regret is summed over all of them, whatever the grid.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit

Tables = Mapping[str, NDArray[np.float64]]

SIMULATED = "simulated: seeded floating-point noise; not for a public release"
NOISELESS = "none: the exact statistics are published, no privacy"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicate:
    """One repetition of a run, between two episodes.

    Attributes:
        arrays: All changing state, by name, including the record (`privcheck.runtime.online.blank`).
        generators: Its random generators, by name; "users" draws the users' behaviour, and nothing else.
    """

    arrays: Mapping[str, NDArray[Any]]
    generators: Mapping[str, np.random.Generator]


class Face(Protocol):
    """Auditors' view of a replicate, with tables by the name of their release.

    A release's tables have the shape of its statistic. Under a tree they are sums over all users so far; under batches
    the batch's own; under users' own releases the message of the last user, or, if it is not kept, noisy sums of
    messages. If releases have different schedules, an output contains those released with it. Further protocols apply
    if an agent's releases need them: `Replays`, `Regresses`, `Shuffles` and `CountsUsers`.
    """

    @property
    def policy(self) -> tuple[str, ...]:
        """All arrays that are computed from the billboard alone: recommended actions, values, whole policies."""
        ...

    @property
    def board(self) -> tuple[str, ...]:
        """The arrays that form the billboard: all inputs of policies."""
        ...

    def output(self, episode: int) -> int | None:
        """Number of the output released after an episode, counted from 1; None if there is none."""
        ...

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Copies of the exact values under the last output's noise.

        None if they are not kept, under users' own releases of which only noisy sums are kept: `noisy` are these sums,
        and auditors play the noiseless twin to obtain a message.
        """
        ...

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Copies of the last output."""
        ...

    def undeclared(self, one: Replicate) -> int:
        """Number of values on the billboard that no release declares."""
        ...


@runtime_checkable
class Replays(Protocol):
    """Interface of an agent that can be played with the outputs of another run.

    An agent with outputs in which one slice depends on another's noise, as with a sum over V_{h+1} that was learned
    from the slice of step h + 1 of the same output, cannot be put behind a billboard between two episodes. Auditors put
    the board after an episode into the replicate before it plays that episode, and set the array `replay` to 1: exact
    values are then computed as usual, and outputs are taken from the board unchanged; nothing is drawn. The policy of
    the episode's own user was made at the end of the episode before.
    """

    @property
    def replay(self) -> str:
        """Name of the array (1,) that is 1 if outputs are taken from the board, and 0 otherwise."""
        ...


@runtime_checkable
class Regresses(Protocol):
    """Interface of an agent with releases of regressors, such as features and values of a user's own episode."""

    def regressors(self, one: Replicate, user: Trajectories) -> Regressors:
        """Input of the declared statistics from the user of the last episode played.

        Args:
            one: The replicate after that episode.
            user: The user's trajectory.
        """
        ...


class Sent(NamedTuple):
    """The messages of one release's output, as a shuffler output them.

    Attributes:
        release: Its name.
        messages: (counters, M) each counter's messages in the order of output; −1 where there is none.
        due: Number of messages of a counter by the declaration: one bit of every user, and the noise bits.
        users: n, the number of them that are users' own.
        part: Slice of the release; None for all slices.
        largest: Largest possible message: 1 for bits.
        mean: Mean of a counter's noise bits, which the analyser subtracts; None for half of their number.
    """

    release: str
    messages: NDArray[np.int8]
    due: int
    users: int
    part: int | None = None
    largest: int = 1
    mean: float | None = None


@runtime_checkable
class Shuffles(Protocol):
    """Interface of an agent that sends every message through a shuffler, if that is feasible."""

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Copies of the last output's messages by release; empty if only the law of sums was drawn."""
        ...


@runtime_checkable
class CountsUsers(Protocol):
    """Interface of an agent with noise that depends on n, the users behind a shuffler: batches have several sizes."""

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Number of users of every slice of an output, by release, or one number for all its slices.

        0 for a slice without users: nothing is output then.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Player:
    """An agent in its world, ready to play, for runs and audits.

    Attributes:
        start: Makes a replicate before its first episode, by its number.
        play: Plays a replicate up to and including an episode.
        label: The kernel in use; part of a run's fingerprint.
        told: The array of the last user's policy: (H, S) actions, or (H, S, A) probabilities.
        optimal: V*₁, the reference for regret.
        face: The auditors' view; None for an agent that declares nothing.
        noise: The noise source in words; goes into the ledger.
        protects: Whether that is release noise, which `OnlineRequest.noise` asks for.
        keep_ledger: Lets the releases of a replicate write the ledger themselves; None for an agent with a ledger that
            is a plan of spending, written from the declaration before anything is drawn.
        diagnostics: The privatizer's numbers, by name.
        at_limit: Share of a replicate's steps and states at which the agent's optimistic value is at its maximum, so
            that nothing is learned from it; None for an agent without such values.
    """

    start: Callable[[int], Replicate]
    play: Callable[[Replicate, int], None]
    label: str
    told: str
    optimal: float
    face: Face | None = None
    noise: str = SIMULATED
    protects: bool = False
    keep_ledger: Callable[[Ledger, Replicate], None] | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    at_limit: Callable[[Replicate], float] | None = None


class MakePlayer(Protocol):
    """Interface of a registered online agent."""

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Make the agent in the request's world.

        Args:
            request: The requested run.
            noiseless: Whether to draw no noise; otherwise it is the same agent: behind the same billboard it plays the
                same policies.

        Raises:
            ParameterError: The agent cannot run the request.
        """
        ...


Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DONE, AT, REGRET, VALUE, SWITCHES = range(5)  # places in `totals`
POINTS = 400  # of the grid, at most


class Record(NamedTuple):
    """The record of a run as kernels write it, for a block of episodes.

    Attributes:
        until: The last episode of this block.
        totals: (5,) episodes done, place in the grid, regret, value, switches.
        curves: (3, G) regret, value, switches.
        grid: (G,) the episodes after which these are taken.
        optimal: V*₁, for the regret.
    """

    until: int
    totals: Array
    curves: Array
    grid: Indices
    optimal: float


@functools.lru_cache(maxsize=64)  # a policy audit starts tens of thousands of runs; nobody writes into it
def grid(K: int) -> Indices:
    """Episodes after which figures are taken: evenly spaced, K the last, at most 400."""
    return np.unique(np.ceil(np.linspace(0, K, min(K, POINTS) + 1)[1:]).astype(np.int64))


def blank(K: int) -> dict[str, Array]:
    """A fresh record of K episodes: `totals`, the sums, and `curves`."""
    return {"totals": np.zeros(5), "curves": np.zeros((3, grid(K).size))}


@njit(cache=True, nogil=True)
def differ(policy: Array, before: Array) -> bool:
    """Whether a policy (H, S, A) of action probabilities differs from the one before."""
    one, other = policy.reshape(-1), before.reshape(-1)
    for i in range(one.size):  # noqa: SIM110 - Numba has no any()
        if one[i] != other[i]:
            return True
    return False


@njit(cache=True, nogil=True, forceinline=True)
def note(record: Record) -> None:
    """Record one episode played with the policy of value totals[VALUE]."""
    totals, curves, grid = record.totals, record.curves, record.grid
    totals[DONE] += 1.0
    totals[REGRET] += record.optimal - totals[VALUE]
    at = int(totals[AT])
    if totals[DONE] == grid[at]:
        curves[0, at] = totals[REGRET]
        curves[1, at] = totals[VALUE]
        curves[2, at] = totals[SWITCHES]
        totals[AT] = at + 1.0 if at + 1 < grid.size else float(at)
