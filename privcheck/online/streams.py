"""Streams of releases: what a plain agent's users contribute, through the channel, as the declared schedules say.

A tree's outputs are its P-sums, each released once through the channel with noise of its own; the board shows the sums
over all users that follow from them. Users' own releases and batches leave as they are, and the board shows their sum;
what leaves after every episode anew is on the board as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.charges import charge
from privcheck.declaration import Release
from privcheck.errors import ChannelError, ParameterError
from privcheck.mechanisms import Noise
from privcheck.online.player import Replicate, Tables
from privcheck.results import NoiseKind
from privcheck.runtime import Billboard, Channel
from privcheck.runtime.counters import lowest_bit
from privcheck.runtime.ledger import Ledger
from privcheck.runtime.noise import NoiseSource
from privcheck.runtime.release_noise import ReleaseNoise
from privcheck.schedules import Batches, EveryEpisode, PerUser, Tree
from privcheck.setting import Setting
from privcheck.statistics.on_grid import OnGrid
from privcheck.trajectories import Trajectories

Array = NDArray[np.float64]
MESSAGES: Final = "messages"  # the generator of a replicate from which every user's own generator is seeded
TOLD = "told"  # the array of a replicate that holds what the last user was told to do
_DIGEST = 32  # hexadecimal digits of an output's digest
_SEED = 4  # words of 32 bits that seed a user's generator


class Contribute(Protocol):
    """The privatizer half: what one user adds to every release, as a local randomiser computes it."""

    def __call__(self, user: Trajectories, rng: np.random.Generator, /) -> Mapping[str, Array]:
        """Returns the user's part of every release, by name, in its declared shape.

        Args:
            user: One trajectory.
            rng: The user's own generator: all randomness of the contribution comes from it, such as the coin that
                rounds a reward to a bit. Other users' generators do not depend on how much is drawn from it, and audits
                hand the user who differs the same one on D and on D′.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """Noise from a replicate's own generator; without one, none."""

    rng: np.random.Generator | None
    words: str = "simulated: NumPy PCG64 floating-point noise, seeded; not for a public release"

    protects: bool = False

    @property
    def as_declared(self) -> bool:
        return self.rng is not None

    def add(self, noise: Noise, value: Array, *, release: int, part: int) -> Array:
        return value.copy() if self.rng is None else noise.add(value, self.rng)


class Streams:
    """The releases of a plain agent over K users: the channel's side, and the face that auditors see.

    What changes lies in the replicate: for every release NAME `exact/NAME` and `noisy/NAME`, of a tree a P-sum for
    every level, else the last output; `sum/NAME`, what the board shows; `digest/NAME`, of the first output.

    Args:
        setting: Declaration, parameters, options and readings.
        episodes: K.
        contribute: What a user contributes; None for the declared statistics.
        ends: The last user of each batch.
        noiseless: Nothing is drawn.
        noise: Where it comes from; "release" draws anew whatever the replicate's generators say.
        remembered: The arrays of a replicate in which the agent half keeps functions of past boards.

    Raises:
        ParameterError: Releases leave once, or by schedules of several kinds; batches without their ends; or release
            noise for contributions of the agent's own that would have to be rounded.
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
            message = f"{self._declaration.name} computes contributions of its own, which nobody rounds to a grid"
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
        """Returns whether users' contributions are the agent's own, which get a generator for each user."""
        return self._contribute is not None

    @property
    def policy(self) -> tuple[str, ...]:
        """Returns the arrays that are computed from the billboards alone."""
        return (TOLD, *self._remembered)

    @property
    def board(self) -> tuple[str, ...]:
        """Returns the arrays that are the billboard."""
        return tuple(f"{kind}/{name}" for name in self._shapes for kind in ("noisy", "sum"))

    def output(self, episode: int) -> int | None:
        """Returns which output leaves with an episode, counted from 1; None where none does."""
        if self._kind is Batches:  # nobody comes after the last batch
            return self._ends.index(episode) + 1 if episode in self._ends[:-1] else None
        return episode if episode <= self._last else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Returns copies of what the last output's noise was added to; of a tree the sum of its P-sums."""
        return {name: self._read(one.arrays[f"exact/{name}"], output) for name in self._shapes}

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns copies of the last output; of a tree the sum of its P-sums."""
        return {name: self._read(one.arrays[f"noisy/{name}"], output) for name in self._shapes}

    def batches(self, output: int) -> Mapping[str, tuple[int, ...]]:
        """Returns how many users are in a batch, by release; nothing where no noise depends on that."""
        return {name: (self._size(output),) for name in self._shapes} if self._sized else {}

    def undeclared(self, one: Replicate) -> int:
        """Returns 0: what stands on the billboard went through the channel."""
        return 0

    def sums(self, one: Replicate) -> Mapping[str, Array]:
        """Returns what the board shows, by release: read-only views of the noisy sums over the users so far."""
        shown = {}
        for name in self._shapes:
            view = one.arrays[f"sum/{name}"].view()
            view.flags.writeable = False
            shown[name] = view
        return MappingProxyType(shown)

    def blank(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays of a replicate before its first episode."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, shape in self._shapes.items():
            kept = (max(1, self._last.bit_length()), *shape) if self._kind is Tree else shape
            board = self._shown[name]
            arrays |= {f"exact/{name}": np.zeros(kept), f"noisy/{name}": np.zeros((*kept[: -len(shape)], *board))}
            arrays[f"sum/{name}"] = np.zeros(board)
            arrays[f"digest/{name}"] = np.zeros((shape[0], _DIGEST), np.uint8)
        return arrays

    def release(self, one: Replicate, user: Trajectories, episode: int, *, ledger: Ledger | None) -> None:
        """Takes a user's contribution in, and lets the channel release what leaves with their episode.

        Args:
            one: The replicate.
            user: The trajectory, which stays here.
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
        for release in self._releases:
            value = self._take(one, release.name, np.asarray(given[release.name]), episode)
            if output is not None:
                noisy = self._draw(one, release.name, value, source, output)
                self._post(one, release.name, noisy, output)
                if output == 1 and ledger is not None:
                    self._record_first(one, release, ledger)

    def record_past(self, one: Replicate, ledger: Ledger) -> None:
        """Records what has left a replicate already; where nothing ever will, that it is charged all the same."""
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
        """Returns what the channel is given, if something leaves: a P-sum, a message, a batch's or the whole sum."""
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

    def _draw(self, one: Replicate, name: str, value: Array, source: NoiseSource, output: int) -> Array:
        """Returns an output, fresh from the channel; keeps the digests of the first."""
        billboard, first = Billboard(), not one.arrays[f"digest/{name}"].any()
        channel = self._channels[self._size(output) if self._sized else 0].again(
            noise=source, billboard=billboard, ledger=self._make_silent_ledger()
        )
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
        """Returns a copy of the last output; of a tree the sum of the P-sums of the output's bits, longest first."""
        if self._kind is not Tree:
            return kept.copy()
        levels = [level for level in reversed(range(len(kept))) if output >> level & 1]
        total: Array = sum((kept[level] for level in levels), np.zeros(kept.shape[1:]))
        return total

    def _record_first(self, one: Replicate, release: Release, ledger: Ledger) -> None:
        """Records the first output of a release, with which the whole stream is charged."""
        for part, digest in enumerate(one.arrays[f"digest/{release.name}"]):
            due = charge(release, self._declaration.relation, self._values) if part == 0 else None
            left = bytes(digest).decode().strip("\0") or "nothing left"
            ledger.record(release.name, part, charge=due, output=left)

    def _make_channel(self, size: int) -> Channel:
        """Returns the channel of batches of a size; of all outputs where no noise depends on a size."""
        return Channel(
            self._declaration,
            {**self._values, "n": Fraction(size)} if self._sized else self._values,
            noise=_Drawn(rng=None),
            billboard=Billboard(),
            ledger=self._make_silent_ledger(),
        )

    def _size(self, output: int) -> int:
        """Returns how many users are in the batch that leaves with an output."""
        return self._ends[output - 1] - (self._ends[output - 2] if output > 1 else 0)

    def _refuse_other_sizes(self) -> set[int]:
        """Returns the sizes of the batches that leave, which the last does not; {0} where no noise depends on them.

        Raises:
            ParameterError: For some of them no noise is declared.
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

    def _make_silent_ledger(self) -> Ledger:
        return Ledger(self._declaration, self._values, noise="")


def on_grid(release: Release) -> bool:
    """Returns whether a release's statistic is rounded to a grid, user by user."""
    return isinstance(release.statistic, OnGrid)


def _shape_on_board(release: Release, values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """Returns the shape in which a release stands on the board."""
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
    """Returns the last output of a stream: as declared, and none after the last user, whom nobody comes after."""
    schedule = release.schedule
    if isinstance(schedule, Tree):
        return min(int(schedule.leaves.number(setting.values)), episodes)
    if isinstance(schedule, EveryEpisode):
        return min(int(schedule.outputs.number(setting.values)), episodes)
    return episodes - 1
