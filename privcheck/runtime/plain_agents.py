"""Plain online agents: a privatizer half and an agent half in NumPy, connected by channel and billboard only.

The agent half is a function of the billboard; it never sees data, and draws no noise. The privatizer half turns one
user's trajectory into values for the channel. Everything between them is here: users, channel, schedules, the ledger,
which is written by the releases themselves, and the interface for audits.

    ALGORITHM = Algorithm(name=…, declare=declare, online=PlainAgent(agent=make_agent))

A tree's outputs are its P-sums, each released once through the channel with independent noise; the board shows the sums
over all users computed from them. Users' own releases and batches are released unchanged, and the board shows their
sum; a release that is output anew after every episode is on the board unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP, evaluate, one_hot, solve
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Release
from privcheck.declare.mechanisms import Noise
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.procedures.charges import charge
from privcheck.declare.schedules import Batches, EveryEpisode, PerUser, Tree
from privcheck.declare.statistics.grid import OnGrid
from privcheck.errors import ChannelError, ParameterError
from privcheck.runtime import Billboard, Channel
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.noise import NoiseSource, ReleaseNoise, lowest_bit
from privcheck.runtime.online import (
    DONE,
    SIMULATED,
    SWITCHES,
    VALUE,
    Player,
    Record,
    Replicate,
    Tables,
    blank,
    grid,
    note,
)
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import NoiseKind, OnlineRequest
from privcheck.runtime.setting import Setting

Array = NDArray[np.float64]
MESSAGES: Final = "messages"  # the generator of a replicate from which every user's own generator is seeded
TOLD = "told"  # the array of a replicate that holds what the last user was told to do
_DIGEST = 32  # hexadecimal digits of an output's digest
_SEED = 4  # words of 32 bits that seed a user's generator


class Contribute(Protocol):
    """Privatizer half of an agent: one user's contribution to every release, as a local randomiser computes it."""

    def __call__(self, user: Trajectories, rng: np.random.Generator, /) -> Mapping[str, Array]:
        """The user's contribution to every release, by name, in its declared shape.

        Args:
            user: One trajectory.
            rng: The user's own generator: all randomness of the contribution comes from it, such as the coin that
                rounds a reward to a bit. Other users' generators do not depend on the number of draws from it, and
                audits give the user who differs the same one on D and on D′.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """Noise from a replicate's own generator; no noise without one."""

    rng: np.random.Generator | None
    words: str = "simulated: NumPy PCG64 floating-point noise, seeded; not for a public release"

    protects: bool = False

    @property
    def as_declared(self) -> bool:
        return self.rng is not None

    def add(self, noise: Noise, value: Array, *, release: int, part: int) -> Array:
        return value.copy() if self.rng is None else noise.add(value, self.rng)


class _Elsewhere:
    """Records nothing: a stream is charged once, with its first output, in the run's own ledger.

    A whole ledger for every output would take a fifth of an agent's time, for its header and its hash chain.
    """

    def record(self, release: str, part: int, *, charge: Charge | None, output: str) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Nothing is open."""


class Streams:
    """Releases of a plain agent over K users: the channel's side, and the interface that auditors see.

    All state is in the replicate: for every release NAME `exact/NAME` and `noisy/NAME`, for a tree a P-sum for every
    level, else the last output; `sum/NAME`, which the board shows; `digest/NAME`, of the first output.

    Args:
        setting: Declaration, parameters, options and readings.
        episodes: K.
        contribute: A user's contribution; None for the declared statistics.
        ends: The last user of each batch.
        noiseless: Whether nothing is drawn.
        noise: The noise source; "release" draws anew whatever the replicate's generators are.
        remembered: The arrays of a replicate in which the agent half keeps functions of past boards.

    Raises:
        ParameterError: Releases are output once, or by schedules of several kinds; batches come without their ends; or
            release noise is requested for the agent's own contributions, which would have to be rounded.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        episodes: int,
        contribute: Contribute | None = None,
        ends: tuple[int, ...] = (),
        noiseless: bool = False,
        noise: NoiseKind = "simulated",
        remembered: tuple[str, ...] = (),
    ) -> None:
        self._remembered = remembered
        self._declaration, self._values = setting.released, setting.values
        self._released = noise == "release" and not noiseless
        if self._released and contribute is not None and any(on_grid(r) for r in self._declaration.noisy):
            message = f"{self._declaration.name} computes its own contributions, which are not rounded to a grid"
            raise ParameterError(f"{message}: release noise is for declared statistics", name="noise", given=noise)
        self._releases: tuple[Release, ...] = self._declaration.noisy
        self._kind = _schedule(self._releases, self._declaration.name)
        self._ends, self._noiseless, self._contribute = ends, noiseless, contribute
        if self._kind is Batches and (not ends or list(ends) != sorted(set(ends)) or ends[-1] != episodes):
            message = (
                f"{self._declaration.name} releases in batches: give its PlainAgent `ends`, the last user of each, "
                f"ascending and the last of them K = {episodes}; got {ends}"
            )
            raise ParameterError(message, name="ends", given=ends)
        self._last = _last_output(self._releases[0], setting, episodes)
        self._shapes = {r.name: r.statistic.shape(self._values) for r in self._releases}
        self._shown = {r.name: _shape_on_board(r, self._values) for r in self._releases}
        self._sized = any(release.batch_sizes is not None for release in self._releases)
        self._channels = {size: self._make_channel(size) for size in self._refuse_other_sizes()}

    @property
    def randomises(self) -> bool:
        """Whether contributions are computed by the agent, which gets a generator for each user."""
        return self._contribute is not None

    @property
    def policy(self) -> tuple[str, ...]:
        """The arrays that are computed from the billboards alone."""
        return (TOLD, *self._remembered)

    @property
    def board(self) -> tuple[str, ...]:
        """The arrays that form the billboard."""
        return tuple(f"{kind}/{name}" for name in self._shapes for kind in ("noisy", "sum"))

    def output(self, episode: int) -> int | None:
        """Number of the output released after an episode, both counted from 1; None if there is none."""
        if self._kind is Batches:  # nobody comes after the last batch
            return self._ends.index(episode) + 1 if episode in self._ends[:-1] else None
        return episode if episode <= self._last else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Copies of the exact values under the last output's noise; for a tree the sum of its P-sums."""
        return {name: self._read(one.arrays[f"exact/{name}"], output) for name in self._shapes}

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Copies of the last output; for a tree the sum of its P-sums."""
        return {name: self._read(one.arrays[f"noisy/{name}"], output) for name in self._shapes}

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Number of users in a batch, by release; empty if no noise depends on it."""
        return {name: (self._size(output),) for name in self._shapes} if self._sized else {}

    def undeclared(self, one: Replicate) -> int:
        """The number 0: everything on the billboard went through the channel."""
        return 0

    def sums(self, one: Replicate) -> Mapping[str, Array]:
        """The board's values by release: read-only views of the noisy sums over the users so far."""
        shown = {}
        for name in self._shapes:
            view = one.arrays[f"sum/{name}"].view()
            view.flags.writeable = False
            shown[name] = view
        return MappingProxyType(shown)

    def blank(self) -> dict[str, NDArray[Any]]:
        """The arrays of a replicate before its first episode."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, shape in self._shapes.items():
            kept = (max(1, self._last.bit_length()), *shape) if self._kind is Tree else shape
            board = self._shown[name]
            arrays |= {f"exact/{name}": np.zeros(kept), f"noisy/{name}": np.zeros((*kept[: -len(shape)], *board))}
            arrays[f"sum/{name}"] = np.zeros(board)
            arrays[f"digest/{name}"] = np.zeros((shape[0], _DIGEST), np.uint8)
        return arrays

    def release(self, one: Replicate, user: Trajectories, episode: int, *, ledger: Ledger | None) -> None:
        """Add a user's contribution, and let the channel release the output due after their episode.

        Args:
            one: The replicate.
            user: The trajectory, which is not passed on.
            episode: Its number, counted from 1.
            ledger: Where the first output of every release is recorded, or None.

        Raises:
            ChannelError: The contribution has another shape than is declared, or is not finite.
        """
        output = self.output(episode)
        if output is None and self._kind is not Batches:
            return
        given = self._compute_contribution(one, user)
        if self._kind is Batches and (episode == 1 or episode - 1 in self._ends):
            for name in self._shapes:
                one.arrays[f"exact/{name}"][...] = 0.0
        source: NoiseSource = _Drawn(rng=None if self._noiseless else one.generators["noise"])
        if self._released:
            source = ReleaseNoise()  # of this output, whose slices it draws once each
        billboard, channel = Billboard(), None
        if output is not None:
            sized = self._channels[self._size(output) if self._sized else 0]
            channel = sized.again(noise=source, billboard=billboard, ledger=_Elsewhere())
        for release in self._releases:
            value = self._take(one, release.name, np.asarray(given[release.name]), episode)
            if output is not None and channel is not None:
                noisy = self._draw(one, release.name, value, channel, billboard)
                self._post(one, release.name, noisy, output)
                if output == 1 and ledger is not None:
                    self._record_first(one, release, ledger)

    def record_past(self, one: Replicate, ledger: Ledger) -> None:
        """Record the outputs released so far; a release that never has an output is charged all the same."""
        for release in self._releases:
            if one.arrays[f"digest/{release.name}"].any() or self._last < 1:
                self._record_first(one, release, ledger)

    def _compute_contribution(self, one: Replicate, user: Trajectories) -> Mapping[str, Array]:
        if self._contribute is None:
            return {release.name: release.statistic.compute(user) for release in self._releases}
        # a generator a user: were one shared, a user who draws once more would change the messages of all after them
        seed = one.generators[MESSAGES].integers(2**32, size=_SEED, dtype=np.uint32)
        given = self._contribute(user, np.random.default_rng(None if self._released else seed))
        for name, shape in self._shapes.items():
            if name not in given or np.shape(given[name]) != shape:
                got = f"shape {np.shape(given[name])}" if name in given else f"only {', '.join(given) or 'nothing'}"
                raise ChannelError(f"{name}: expected a contribution of shape {shape}, got {got}", release=name)
        if undeclared := sorted(given.keys() - self._shapes.keys()):
            raise ChannelError(f"undeclared release {undeclared[0]!r}", release=undeclared[0])
        return given

    def _take(self, one: Replicate, name: str, value: Array, episode: int) -> Array:
        """Value for the channel, if an output is due: a P-sum, a message, a batch's or the whole sum."""
        exact = one.arrays[f"exact/{name}"]
        if self._kind is Tree:
            level = lowest_bit(episode)
            closed: Array = value + exact[:level].sum(axis=0)
            exact[:level] = 0.0
            exact[level] = closed
            return closed
        if self._kind is PerUser:
            exact[...] = value
        else:
            exact += value
        return exact

    def _draw(self, one: Replicate, name: str, value: Array, channel: Channel, billboard: Billboard) -> Array:
        """Draw an output through the output's own channel; keeps the digests of the first."""
        first = not one.arrays[f"digest/{name}"].any()
        noisy = np.stack([channel.release(name, np.array(value[part]), part=part) for part in range(len(value))])
        for part in range(len(value)) if first else ():
            one.arrays[f"digest/{name}"][part] = np.frombuffer(billboard.digests[name, part].encode(), np.uint8)
        return noisy

    def _post(self, one: Replicate, name: str, noisy: Array, output: int) -> None:
        kept, shown = one.arrays[f"noisy/{name}"], one.arrays[f"sum/{name}"]
        if self._kind is Tree:
            level = lowest_bit(output)
            kept[:level] = 0.0
            kept[level] = noisy
            shown[...] = self._read(kept, output)
        else:
            kept[...] = noisy
            shown[...] = noisy if self._kind is EveryEpisode else shown + noisy

    def _read(self, kept: Array, output: int) -> Array:
        """Copy of the last output; for a tree the sum of the P-sums of the output's bits, longest first."""
        if self._kind is not Tree:
            return kept.copy()
        levels = [level for level in reversed(range(len(kept))) if output >> level & 1]
        total: Array = sum((kept[level] for level in levels), np.zeros(kept.shape[1:]))
        return total

    def _record_first(self, one: Replicate, release: Release, ledger: Ledger) -> None:
        """Record the first output of a release, with which the whole stream is charged."""
        for part, digest in enumerate(one.arrays[f"digest/{release.name}"]):
            due = charge(release, self._declaration.relation, self._values) if part == 0 else None
            left = bytes(digest).decode().strip("\0") or "nothing left"
            ledger.record(release.name, part, charge=due, output=left)

    def _make_channel(self, size: int) -> Channel:
        """Make the channel for batches of a size, or for all outputs if no noise depends on a size."""
        return Channel(
            self._declaration,
            {**self._values, "n": Fraction(size)} if self._sized else self._values,
            noise=_Drawn(rng=None),
            billboard=Billboard(),
            ledger=_Elsewhere(),
        )

    def _size(self, output: int) -> int:
        """Number of users in the batch released with an output."""
        return self._ends[output - 1] - (self._ends[output - 2] if output > 1 else 0)

    def _refuse_other_sizes(self) -> set[int]:
        """Sizes of the released batches, all but the last; {0} if no noise depends on them.

        Raises:
            ParameterError: No noise is declared for some of them.
        """
        if not self._sized:
            return {0}
        sizes = {self._size(output) for output in range(1, len(self._ends))}
        for release in self._releases:
            declared = sizes if release.batch_sizes is None else set(release.batch_sizes(self._values))
            if other := sorted(sizes - declared):
                message = (
                    f"{release.name}: a batch of {other[0]} users, where Batches(sizes=…) declares "
                    f"{', '.join(map(str, sorted(declared))) or 'none'}; let its PlainAgent's `ends` keep to the sizes"
                )
                raise ParameterError(message, name="ends", given=self._ends)
        return sizes


def on_grid(release: Release) -> bool:
    """Whether a release's statistic is rounded to a grid, user by user."""
    return isinstance(release.statistic, OnGrid)


def _shape_on_board(release: Release, values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """Shape of a release on the board."""
    statistic = release.statistic.of if isinstance(release.statistic, OnGrid) else release.statistic
    return statistic.shape(values)


def _schedule(releases: tuple[Release, ...], name: str) -> type:
    kinds = {type(release.schedule) for release in releases}
    if len(kinds) != 1 or not kinds <= {Tree, PerUser, Batches, EveryEpisode}:
        words = ", ".join(f"{release.name}: {release.schedule.words}" for release in releases)
        message = f"{name}: a plain online agent needs one kind of schedule for all releases, and a stream; got {words}"
        raise ParameterError(message, name=name)
    return next(iter(kinds))


def _last_output(release: Release, setting: Setting, episodes: int) -> int:
    """Last output of a stream: as declared, and none after the last user, as no user follows."""
    schedule = release.schedule
    if isinstance(schedule, Tree):
        return min(int(schedule.leaves.number(setting.values)), episodes)
    if isinstance(schedule, EveryEpisode):
        return min(int(schedule.outputs.number(setting.values)), episodes)
    return episodes - 1


_MEMORY: Final = "memory/"  # before the names of a memory's arrays in a replicate
_AGENT: Final = "agent"  # the generator of a memory
_SLACK: Final = 1e-9  # by which probabilities may miss a sum of 1
_KEPT: Final = 4_096  # policies whose values are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the world that an agent half knows.

    Attributes:
        H: Steps of an episode.
        S: States.
        A: Actions.
        K: Episodes, one user each.
    """

    H: int
    S: int
    A: int
    K: int


Board = Mapping[str, Array]  # noisy sums over the users so far by release, in their declared shapes; 0 before the first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """State that an agent half keeps from one episode to the next: functions of the boards so far, and randomness.

    It is in the replicate: a checkpoint holds it, and audits feed it the same boards on D and on D′ and compare it bit
    for bit. State kept anywhere else is lost if a run is continued, and leaves lockstep undecided.

    Attributes:
        arrays: By name, as `PlainAgent.memory` made them; written in place.
        rng: For ties and other random choices of the agent; no user's data and no noise is drawn from it.
    """

    arrays: Mapping[str, NDArray[Any]]
    rng: np.random.Generator

    def __getitem__(self, name: str) -> NDArray[Any]:
        """One of the arrays, to be read or written in place."""
        return self.arrays[name]

    def __setitem__(self, name: str, value: object) -> None:
        """Write into one of the arrays, which keeps its shape and type."""
        self.arrays[name][...] = value


# from the board, and the memory where the agent has one, to (H, S) actions or (H, S, A) probabilities
AgentHalf = Callable[..., NDArray[Any]]
MakeAgentHalf = Callable[[Setting, Sizes], AgentHalf]
MakeMemory = Callable[[Setting, Sizes], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAgent:
    """An online agent in two halves, as it is registered (a `MakePlayer`).

    Attributes:
        agent: Makes the agent half from setting and sizes: a function from noisy sums to the next user's policy,
            `agent(board)`, or with a memory `agent(board, memory)`. It is called once before every episode and must
            depend on nothing else.
        memory: Makes the arrays that the agent half may write in place and reads again in the next episode, such as the
            policy and the noisy counts used for its plan: arrays of numbers by name, as they are before the first
            episode. None for an agent half that is a function of the last board.
        contribute: Makes the privatizer half, `contribute(user, rng)`: a function from one user's trajectory, and that
            user's own generator, to the channel's input, by release. A local randomiser, such as one that rounds
            rewards to bits, draws from `rng` alone. None for the declared statistics.
        ends: The last user of each batch, ascending, from setting and K, if releases are in batches.
    """

    agent: MakeAgentHalf
    memory: MakeMemory | None = None
    contribute: Callable[[Setting], Contribute] | None = None
    ends: Callable[[Setting, int], tuple[int, ...]] | None = None

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Make the agent in the request's world, ready to play.

        Raises:
            ParameterError: Sizes that are not the environment's, no episode, schedules that differ or output once, or
                an agent half that does not return a policy.
        """
        setting, mdp = request.setting, request.world.mdp
        sizes = Sizes(H=mdp.horizon, S=mdp.states, A=mdp.actions, K=request.episodes)
        _refuse(request, sizes)
        blank_memory = None if self.memory is None else _check_memory(self.memory(setting, sizes))
        streams = Streams(
            setting,
            episodes=sizes.K,
            contribute=None if self.contribute is None else _check_contribute(self.contribute(setting)),
            ends=() if self.ends is None else self.ends(setting, sizes.K),
            noiseless=noiseless,
            noise=request.noise,
            remembered=tuple(f"{_MEMORY}{name}" for name in blank_memory or ()),
        )
        agent = self.agent(setting, sizes)
        run = _Run(request=request, sizes=sizes, streams=streams, agent=agent, memory=blank_memory, users=_Users(mdp))
        name = setting.declared.name
        return Player(
            start=run.start,
            play=run.play,
            label=f"{name}, plain" + (", noiseless" if noiseless else ""),
            told=TOLD,
            optimal=run.optimal,
            face=streams,
            noise=SIMULATED if request.noise == "simulated" else ReleaseNoise().words,
            protects=request.noise == "release" and not noiseless,
            keep_ledger=run.keep_ledger,
        )


class _Run:
    """A plain agent in a world: the functions of its player."""

    def __init__(
        self,
        *,
        request: OnlineRequest,
        sizes: Sizes,
        streams: Streams,
        agent: AgentHalf,
        memory: Mapping[str, NDArray[Any]] | None,
        users: _Users,
    ) -> None:
        self._memory = memory
        self._request, self._sizes, self._streams, self._agent, self._users = request, sizes, streams, agent, users
        self._ledger: Ledger | None = None
        self.optimal = solve(request.world.mdp).value
        self._values: dict[bytes, float] = {}

    def start(self, number: int) -> Replicate:
        """Make a replicate before its first episode."""
        drawn = {"users": True, "noise": True, _AGENT: self._memory is not None, MESSAGES: self._streams.randomises}
        own = seeds(self._request.seed, number, *(name for name, needed in drawn.items() if needed))
        arrays = {"number": np.array([number]), **self._streams.blank(), **blank(self._sizes.K)}
        arrays |= {f"{_MEMORY}{name}": array.copy() for name, array in (self._memory or {}).items()}
        one = Replicate(arrays=arrays, generators={name: np.random.default_rng(seed) for name, seed in own.items()})
        arrays[TOLD] = self._policy(one)
        return one

    def play(self, one: Replicate, until: int) -> None:
        """Play a replicate up to and including an episode."""
        totals, told = one.arrays["totals"], one.arrays[TOLD]
        curves = one.arrays["curves"]
        record = Record(until=until, totals=totals, curves=curves, grid=grid(self._sizes.K), optimal=self.optimal)
        while (done := int(totals[DONE])) < until:
            policy = self._policy(one) if done else told  # once an episode: a memory counts the calls
            if done == 0 or not np.array_equal(policy, told):
                totals[SWITCHES] += 1.0 if done else 0.0
                totals[VALUE] = self._evaluate(policy)
                told[...] = policy
            user = self._users.act(told, one.generators["users"])
            note(record)
            ledger = self._ledger if one.arrays["number"][0] == 0 else None
            self._streams.release(one, user, done + 1, ledger=ledger)

    def _evaluate(self, policy: NDArray[Any]) -> float:
        """Exact return of a policy; those of a small model come back, in audits hundreds of times."""
        if policy.ndim == 3:
            return evaluate(self._request.world.mdp, policy)
        key = policy.tobytes()
        value = self._values.get(key)
        if value is None:
            value = evaluate(self._request.world.mdp, one_hot(policy, self._sizes.A))
            if len(self._values) < _KEPT:
                self._values[key] = value
        return value

    def keep_ledger(self, ledger: Ledger, one: Replicate) -> None:
        """Let the first replicate's releases write the ledger; past outputs are written now."""
        self._ledger = ledger
        self._streams.record_past(one, ledger)

    def _policy(self, one: Replicate) -> NDArray[Any]:
        policy = np.asarray(self._agent(self._streams.sums(one), *self._recall(one)))
        H, S, A = self._sizes.H, self._sizes.S, self._sizes.A
        whole = policy.shape == (H, S) and np.issubdtype(policy.dtype, np.integer)
        if whole and policy.min() >= 0 and policy.max() < A:
            return policy.astype(np.int64)
        mixed = policy.shape == (H, S, A) and np.issubdtype(policy.dtype, np.floating)
        if mixed and policy.min() >= 0 and np.abs(policy.sum(axis=-1) - 1).max() <= _SLACK:  # NaN fails
            return policy.astype(np.float64)
        got = f"{policy.dtype} {policy.shape}" + (f" from {policy.min()} to {policy.max()}" if policy.size else "")
        wanted = f"actions ({H}, {S}) below {A}, or probabilities ({H}, {S}, {A})"
        raise ParameterError(f"the agent half must return {wanted}; got {got}", name="agent", given=got)

    def _recall(self, one: Replicate) -> tuple[Memory, ...]:
        if self._memory is None:
            return ()
        arrays = {name: one.arrays[f"{_MEMORY}{name}"] for name in self._memory}
        return (Memory(arrays=MappingProxyType(arrays), rng=one.generators[_AGENT]),)


def _check_contribute(given: Contribute) -> Contribute:
    """Check that a privatizer half takes a user and their generator.

    Raises:
        ParameterError: The function takes other arguments, such as the user alone.
    """
    try:
        inspect.signature(given).bind(None, None)
    except ValueError:  # a built-in that does not say what it takes
        return given
    except TypeError as error:
        message = f"contribute: expected a function of (user, rng), got {given!r:.100}: {error}"
        remedy = "take `rng`, the user's own generator, as the second argument, even if unused"
        raise ParameterError(f"{message}; {remedy}", name="contribute", given=repr(given)) from error
    return given


def _check_memory(given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a memory before the first episode.

    Raises:
        ParameterError: An array holds something other than numbers.
    """
    arrays = {name: np.asarray(value) for name, value in given.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            message = f"memory {name!r}: expected an array of numbers, got {array.dtype}"
            raise ParameterError(message, name="memory", given=str(array.dtype))
    return arrays


class _Users:
    """Users of a model, one after the other, sampled by inverse distribution functions."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self._mdp = mdp
        self._first = mdp.initial.cumsum()
        self._next = mdp.transition.cumsum(axis=-1)

    def act(self, told: NDArray[Any], rng: np.random.Generator) -> Trajectories:
        """Sample one user's trajectory under the given policy."""
        mdp, uniforms = self._mdp, rng.random((self._mdp.horizon, 2))
        states, actions = np.empty((1, mdp.horizon + 1), np.int32), np.empty((1, mdp.horizon), np.int32)
        rewards = np.empty((1, mdp.horizon))
        state = _draw(self._first, rng.random())
        for h, (for_action, for_state) in enumerate(uniforms):
            part = mdp.part(h)
            action = int(told[h, state]) if told.ndim == 2 else _draw(told[h, state].cumsum(), for_action)
            following = _draw(self._next[part, state, action], for_state)
            states[0, h], actions[0, h] = state, action
            rewards[0, h] = mdp.reward[part, state, action, following]
            state = following
        states[0, -1] = state
        return Trajectories(
            states=states, actions=actions, rewards=rewards, num_states=mdp.states, num_actions=mdp.actions
        )


def _draw(cumulated: Array, uniform: float) -> int:
    """Draw an index: the first with a cumulated probability above the given share of the total."""
    return int(np.searchsorted(cumulated, uniform * cumulated[-1], side="right"))


def _refuse(request: OnlineRequest, sizes: Sizes) -> None:
    for name, least in (("episodes", request.episodes), ("replicates", request.replicates)):
        if least < 1:
            raise ParameterError(f"expected at least 1 of {name}, got {least}", name=name, given=least)
    actual = {"H": sizes.H, "S": sizes.S, "A": sizes.A, "K": sizes.K}
    wrong = [
        f"{name} = {request.values[name]} but {size} in {request.world.name}"
        for name, size in actual.items()
        if name in request.values and request.values[name] != size
    ]
    if wrong:
        raise ParameterError(f"the declaration does not fit the environment: {'; '.join(wrong)}", name=wrong[0][0])
