"""Online agents, driven stepwise: what runs, what audits drive and see by name, and the record of a run.

An agent is registered as a function that makes a `Player` (`MakePlayer`). A player starts replicates and plays them up
to an episode; everything that changes lies in the replicate's arrays and generators, so that a run can be stopped,
copied, put behind another billboard and continued. What auditors see of it they ask the player's `Face` for.

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
        arrays: Everything that changes, by name; the record (`privcheck.runtime.online.blank`) among them.
        generators: Where its randomness stands, by name; "users" draws what users do, and nothing else.
    """

    arrays: Mapping[str, NDArray[Any]]
    generators: Mapping[str, np.random.Generator]


class Face(Protocol):
    """What auditors see of a replicate, each by the name of its release.

    A release's tables have the shape of its statistic. Under a tree they are sums over all users so far; under batches
    the batch's own; under users' own releases the message of the user who came last, or, where nobody holds it, noisy
    sums of messages. Where releases have different schedules, an output has those that left with it. More things
    are asked for where an agent's releases need them: `Replays`, `Regresses`, `Shuffles` and `CountsUsers`.
    """

    @property
    def policy(self) -> tuple[str, ...]:
        """Returns all arrays that are computed from the billboard alone: what was told, values, whole policies."""
        ...

    @property
    def board(self) -> tuple[str, ...]:
        """Returns the arrays that are the billboard: all that policies are computed from."""
        ...

    def output(self, episode: int) -> int | None:
        """Returns which output leaves with an episode, counted from 1; None where none does."""
        ...

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Returns copies of what the last output's noise was added to.

        None where nobody has it, under users' own releases of which only noisy sums are kept: `noisy` are these sums,
        and auditors play the noiseless twin to know a message.
        """
        ...

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns copies of the last output."""
        ...

    def undeclared(self, one: Replicate) -> int:
        """Returns how many numbers stand on the billboard that no release declares."""
        ...


@runtime_checkable
class Replays(Protocol):
    """A face whose agent can be played with the outputs of another run.

    An agent of whose output one slice depends on another's noise, as a sum over V_{h+1} does that was learned from the
    slice of step h + 1 of the same output, cannot be put behind a billboard between two episodes. Auditors put the
    board after an episode into the replicate before it plays that episode, and set the array `replay` to 1: exact
    values are then computed as ever, and outputs are taken from the board as they stand; nothing is drawn. The policy
    of the episode's own user was made at the end of the episode before.
    """

    @property
    def replay(self) -> str:
        """Returns the name of the array (1,) that is 1 where outputs are taken from the board, and else 0."""
        ...


@runtime_checkable
class Regresses(Protocol):
    """A face whose releases are of regressors, such as features and values of a user's own episode."""

    def regressors(self, one: Replicate, user: Trajectories) -> Regressors:
        """Returns what the declared statistics take of the user of the episode that was played last.

        Args:
            one: The replicate after that episode.
            user: What they did.
        """
        ...


class Sent(NamedTuple):
    """The messages of one release's output, as they left a shuffler.

    Attributes:
        release: Its name.
        messages: (counters, M) each counter's messages in the order in which they left; −1 where there is none.
        due: How many messages of a counter the declaration has: a bit of every user's own, and the noise bits.
        users: n, how many of them are users' own.
        part: Which slice of the release it is; None where it is all of them.
        largest: What a message can be at most: 1 of bits.
        mean: Of a counter's noise bits, which the analyser takes off; None for half of their number.
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
    """A face whose agent sends every message through a shuffler, where that is feasible."""

    def messages(self, one: Replicate, output: int) -> tuple[Sent, ...]:
        """Returns copies of the last output's messages by release; nothing where only the law of sums was drawn."""
        ...


@runtime_checkable
class CountsUsers(Protocol):
    """A face of releases whose noise depends on n, the users behind a shuffler: batches are of several sizes."""

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Returns how many users every slice of an output is of, by release, or one number for all its slices.

        0 where nobody is: nothing leaves then.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Player:
    """An agent in its world, ready to play: what runs and audits drive.

    Attributes:
        start: Makes a replicate before its first episode, by its number.
        play: Plays a replicate up to and with an episode.
        label: Which kernel this is; part of a run's fingerprint.
        told: The array that the last user was told to act by: (H, S) actions, or (H, S, A) probabilities.
        optimal: V*₁, against which regret is counted.
        face: What auditors see; None for an agent that declares nothing.
        noise: Where its noise comes from, in words; goes into the ledger.
        protects: Whether that is release noise, which `OnlineRequest.noise` asks for.
        keep_ledger: Lets the releases of a replicate write the ledger themselves; None for an agent whose ledger is a
            plan of spending, written from the declaration before anything is drawn.
        diagnostics: The privatizer's numbers, by name.
        at_limit: Says of a replicate at which share of all steps and states the agent's optimistic value is the largest
            there can be, so that nothing is learned from it; None for an agent without such values.
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
    """How an online agent is registered."""

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Returns the agent in the request's world.

        Args:
            request: What is asked.
            noiseless: Draws no noise, and is otherwise the same agent: behind the same billboard it plays the same
                policies.

        Raises:
            ParameterError: The agent cannot do what is asked.
        """
        ...


Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DONE, AT, REGRET, VALUE, SWITCHES = range(5)  # places in `totals`
POINTS = 400  # of the grid, at most


class Record(NamedTuple):
    """The record of a run as kernels write it, a block of episodes long.

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
    """Returns the episodes after which figures are taken: evenly spaced, K the last, at most 400."""
    return np.unique(np.ceil(np.linspace(0, K, min(K, POINTS) + 1)[1:]).astype(np.int64))


def blank(K: int) -> dict[str, Array]:
    """Returns a fresh record of K episodes: `totals`, the sums, and `curves`."""
    return {"totals": np.zeros(5), "curves": np.zeros((3, grid(K).size))}


@njit(cache=True, nogil=True)
def differ(policy: Array, before: Array) -> bool:
    """Returns whether a policy (H, S, A) of action probabilities is not the one before."""
    one, other = policy.reshape(-1), before.reshape(-1)
    for i in range(one.size):  # noqa: SIM110 - Numba has no any()
        if one[i] != other[i]:
            return True
    return False


@njit(cache=True, nogil=True, forceinline=True)
def note(record: Record) -> None:
    """Counts one episode that was played with the policy whose value stands in totals[VALUE]."""
    totals, curves, grid = record.totals, record.curves, record.grid
    totals[DONE] += 1.0
    totals[REGRET] += record.optimal - totals[VALUE]
    at = int(totals[AT])
    if totals[DONE] == grid[at]:
        curves[0, at] = totals[REGRET]
        curves[1, at] = totals[VALUE]
        curves[2, at] = totals[SWITCHES]
        totals[AT] = at + 1.0 if at + 1 < grid.size else float(at)
