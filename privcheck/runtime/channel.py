"""The channel, the only way from exact statistics to the billboard of public outputs, and its variants for replay.

Only auditors and tests use `RecordingChannel` and `ReplayChannel`: unlike `Channel` they expose exact values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import copy
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures.charges import charge
from privcheck.declare.statistics.grid import OnGrid
from privcheck.errors import ChannelError, UnknownNameError
from privcheck.runtime.ledger import Records
from privcheck.runtime.noise import NoiseSource


class Billboard:
    """Published noisy statistics, frozen as they arrive; only a channel publishes.

    Reading never changes it. `retire` drops the arrays of a step that every reader is done with, so that a table larger
    than memory can be released one step at a time; the digests stay.
    """

    def __init__(self) -> None:
        self._slices: dict[tuple[str, int], NDArray[np.float64] | None] = {}
        self._digests: dict[tuple[str, int], str] = {}

    def publish(self, name: str, part: int, value: NDArray[np.float64], *, known_digest: str | None = None) -> str:
        """Freeze the array (the caller's too), publish it and return its digest.

        Args:
            name: The release.
            part: Index of the slice.
            value: The noisy slice.
            known_digest: Its digest, if the caller has it: a large table is hashed once.

        Raises:
            ChannelError: This slice is already on the billboard.
        """
        if (name, part) in self._slices:
            raise ChannelError(f"{name}, part {part} is already on the billboard", release=name)
        value.flags.writeable = False
        frozen = value.view()  # of a frozen array: its flag cannot be set back
        self._slices[name, part] = frozen
        self._digests[name, part] = known_digest or digest(frozen)
        return self._digests[name, part]

    def read(self, name: str, *, part: int) -> NDArray[np.float64]:
        """Read one published slice, read-only.

        Raises:
            UnknownNameError: It has not been published.
            ChannelError: It was retired.
        """
        if (name, part) not in self._slices:
            raise UnknownNameError("slice on the billboard", f"{name}[{part}]", [f"{n}[{p}]" for n, p in self._slices])
        value = self._slices[name, part]
        if value is None:
            raise ChannelError(f"{name}, part {part} was retired from the billboard", release=name)
        return value

    def retire(self, part: int) -> None:
        """Drop the arrays of one part; their digests stay."""
        for key in self._slices:
            if key[1] == part:
                self._slices[key] = None

    @property
    def digests(self) -> dict[tuple[str, int], str]:
        """Digest of every published slice by (release, part)."""
        return dict(self._digests)


def digest(array: NDArray[np.float64]) -> str:
    """BLAKE2b digest of shape and content, as 32 hexadecimal digits."""
    h = hashlib.blake2b(str((array.shape, array.dtype.str)).encode(), digest_size=16)
    h.update(np.ascontiguousarray(array).data.cast("B"))
    return h.hexdigest()


class ReleaseChannel(Protocol):
    """The channel interface that a privatizer uses."""

    def release(self, name: str, value: NDArray[np.float64], *, part: int) -> NDArray[np.float64]:
        """Release a value, and return the noisy value that is now on the billboard."""
        ...


class Channel:
    """Draws the declared noise, publishes the result and writes the ledger, slice by slice along the step axis.

    The whole release is charged with its first slice, and every slice is in the ledger before it is on the billboard:
    the recorded cost of a killed run is never understated.

    Args:
        declaration: The declaration of the permitted releases.
        values: Its parameters.
        noise: The noise source.
        billboard: Where outputs are published.
        ledger: Where they are recorded.

    Raises:
        ParameterError: A value is not of its parameter's kind, or the declaration is not defined there.
        ChannelError: Releases are declared to share their noise, while a channel draws and charges fresh noise; or a
            release is not a value plus noise.
    """

    def __init__(
        self,
        declaration: Declaration,
        values: Mapping[str, Fraction],
        *,
        noise: NoiseSource,
        billboard: Billboard,
        ledger: Records,
    ) -> None:
        sized = {"n"} if any(r.batch_sizes is not None for r in declaration.noisy) else set()
        values = {**values, **declaration.values({name: values[name] for name in values if name not in sized})}
        for one in declaration.others:
            message = f"{one.name}: {one.facts.output} is not a value plus noise, and a channel draws only these"
            raise ChannelError(f"{message}: run it yourself, and charge it by `account`", release=one.name)
        named = [release.draw.name for release in declaration.noisy if release.draw.name]
        for release in declaration.noisy:
            if release.draw.across or named.count(release.draw.name) > 1:
                message = f"{release.name}: declared with noise that is shared, which a channel does not draw"
                raise ChannelError(f"{message}: declare fresh draws", release=release.name)
        self._declaration = declaration
        self._noise = noise
        self._billboard = billboard
        self._ledger = ledger
        self._position = {release.name: i for i, release in enumerate(declaration.noisy)}
        self._statistic = {r.name: r.statistic for r in declaration.noisy}
        self._shape = {r.name: r.statistic.shape(values) for r in declaration.noisy}
        self._law = {r.name: r.mechanism.at(values) for r in declaration.noisy}
        self._charge = {r.name: charge(r, declaration.relation, values) for r in declaration.noisy}
        self._released: dict[str, set[int]] = {name: set() for name in self._position}

    def again(self, *, noise: NoiseSource, billboard: Billboard, ledger: Records) -> Channel:
        """Copy the channel for another output of the same declaration, with its own noise source and records.

        Args:
            noise: The noise source.
            billboard: Where outputs are published.
            ledger: Where they are recorded.
        """
        other = copy(self)  # laws and charges are the same for every output, and slow to evaluate
        vars(other).update(
            _noise=noise, _billboard=billboard, _ledger=ledger, _released={n: set() for n in self._position}
        )
        return other

    def release(self, name: str, value: NDArray[np.float64], *, part: int) -> NDArray[np.float64]:
        """Add fresh declared noise to a value, record and publish the sum, and return it.

        Args:
            name: The release, as declared.
            value: The exact slice of the statistic.
            part: Its index on the statistic's first axis.

        Raises:
            ChannelError: The declaration has no such release, the slice was released before, its shape or type is not
                the declared one, or it is not finite. Nothing has been drawn or charged then.
            LedgerError: The ledger is closed. Nothing has been published then.
        """
        self._refuse(name, value, part)
        noisy = self._noise.add(self._law[name], value, release=self._position[name], part=part)
        statistic = self._statistic[name]
        if isinstance(statistic, OnGrid):  # whole numbers of its unit leave; readers know it in its own
            noisy = statistic.shown(noisy)
        first = not self._released[name]
        self._released[name].add(part)
        output = digest(noisy)
        self._ledger.record(name, part, charge=self._charge[name] if first else None, output=output)
        self._billboard.publish(name, part, noisy, known_digest=output)
        return self._billboard.read(name, part=part)

    def close(self) -> None:
        """Close the ledger.

        Raises:
            ChannelError: A declared slice was never released.
        """
        for name, parts in self._released.items():
            missing = sorted(set(range(self._shape[name][0])) - parts)
            if missing:
                raise ChannelError(
                    f"{self._declaration.name} declares {name} with {self._shape[name][0]} slices, but {len(missing)} "
                    f"of them were not released (first: {missing[0]})",
                    release=name,
                )
        self._ledger.close()

    def _refuse(self, name: str, value: NDArray[np.float64], part: int) -> None:
        if name not in self._position:
            declared = ", ".join(self._position)
            message = f"undeclared release {name!r}: {self._declaration.name} declares only {declared}"
            raise ChannelError(message, release=name)
        steps, *shape = self._shape[name]
        if not isinstance(part, int) or isinstance(part, bool):
            raise ChannelError(f"{name}: expected the number of a slice, got {part!r}", release=name)
        if not 0 <= part < steps or part in self._released[name]:
            state = "was already released" if part in self._released[name] else f"is not in 0..{steps - 1}"
            raise ChannelError(f"{name}: slice {part} {state}; each slice is released once", release=name)
        if not isinstance(value, np.ndarray) or value.shape != tuple(shape) or value.dtype != np.float64:
            got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            message = f"{name}: expected float64 {tuple(shape)}, got {got}"
            raise ChannelError(message, release=name)
        if not np.isfinite(value).all():
            raise ChannelError(f"{name}, slice {part}: not finite; nothing was released", release=name)


class Privatizer:
    """Computes the declared statistics of its data and releases them through a channel.

    It has no method that returns data or exact statistics, and it draws no noise.

    Args:
        data: The users' trajectories.
        declaration: The declared statistics.
        channel: The channel that releases them.
    """

    def __init__(self, data: Trajectories, declaration: Declaration, channel: ReleaseChannel) -> None:
        self.__data = data
        self._declaration = declaration
        self._channel = channel

    def publish(self, step: int) -> None:
        """Release every declared statistic's slice at one step, counted from 0."""
        for release in self._declaration.noisy:
            self._channel.release(release.name, release.statistic.compute(self.__data, step=step), part=step)


class RecordingChannel:
    """Channel that passes releases on and keeps the exact values.

    Args:
        channel: The channel that releases.

    Attributes:
        exact: The exact value of every slice by (release, part), in the order of release.
    """

    def __init__(self, channel: ReleaseChannel) -> None:
        self._channel = channel
        self.exact: dict[tuple[str, int], NDArray[np.float64]] = {}

    def release(self, name: str, value: NDArray[np.float64], *, part: int) -> NDArray[np.float64]:
        """Release a value and keep the exact one; returns the noisy value."""
        noisy = self._channel.release(name, value, part=part)
        self.exact[name, part] = value.copy()
        return noisy


class ReplayChannel:
    """Channel that replays outputs from a recorded billboard, and keeps the exact values.

    Args:
        billboard: The billboard of the run on D.

    Attributes:
        exact: The exact value of every slice by (release, part), in the order of release.
    """

    def __init__(self, billboard: Billboard) -> None:
        self._billboard = billboard
        self.exact: dict[tuple[str, int], NDArray[np.float64]] = {}

    def release(self, name: str, value: NDArray[np.float64], *, part: int) -> NDArray[np.float64]:
        """Return D's noisy value and keep the exact one of D′.

        Raises:
            ChannelError: The slice was requested twice.
        """
        if (name, part) in self.exact:
            raise ChannelError(f"{name}: slice {part} was already released; each slice is released once", release=name)
        self.exact[name, part] = value.copy()
        return self._billboard.read(name, part=part)
