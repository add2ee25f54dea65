"""Noise sources: simulated, or exact discrete samples from system entropy; binary-tree counters over streams.

The samplers of `ReleaseNoise` are OpenDP's, of Canonne, Kamath & Steinke (2020): integer and rational arithmetic
throughout, random bits from the operating system, no seed. The counter (`TreeCounter`) is Algorithm 2 of Chan, Shi &
Song (2011): every P-sum is released once, with independent noise.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise
from privcheck.errors import ChannelError, ParameterError


class NoiseSource(Protocol):
    """Adds fresh noise of the declared law to one slice of one release."""

    @property
    def words(self) -> str:
        """The source in words, for ledgers and reports."""
        ...

    @property
    def as_declared(self) -> bool:
        """Whether the noise is fresh and of the declared law, up to floating point; it sets the cost of a run."""
        ...

    @property
    def protects(self) -> bool:
        """Whether its outputs may be published: exact noise of the declared law, from system entropy."""
        ...

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Add noise to a value.

        Args:
            noise: The law and scale.
            value: The exact statistic.
            release: The release's position in the declaration.
            part: Index of the slice.
        """
        ...


class SimulatedNoise:
    """Floating-point noise from a seed: for simulations and audits, never for a release to the public.

    Every (release, slice) has its own stream, spawned from the seed, so a result depends neither on the order of the
    releases nor on the number of workers. The source refuses to be copied to another process: two workers that share a
    generator would draw the same noise and reveal the difference of their data.
    """

    words = "simulated: NumPy PCG64 floating-point noise, seeded; not for a public release"
    as_declared = True
    protects = False

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ParameterError(f"expected a seed that is a whole number, at least 0, got {seed!r}", given=seed)
        self.seed = seed
        self._process = os.getpid()

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Add noise to a value; the same arguments give the same noise."""
        if os.getpid() != self._process:
            raise ChannelError(
                "a noise source was used in a forked process: give each worker a source with its own seed"
            )
        stream = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(release, part)))
        return noise.add(value, stream)

    def __reduce__(self) -> NoReturn:
        raise ChannelError("a noise source cannot be pickled or copied: give each worker a source with its own seed")


class NoNoise:
    """No noise: for non-private twins and tests. A ledger written with it states that nothing is protected."""

    words = "none: the exact statistics are published, no privacy"
    as_declared = False
    protects = False

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Copy the exact value."""
        return value.copy()


OLDEST: Final = (0, 14)  # of OpenDP, whose discrete samplers take any float as their scale
INSTALL: Final = "pip install 'privcheck[release]'"
_LARGEST: Final = 2.0**53  # whole numbers up to it are floats
_MOST: Final = 2.0**51  # of an exact sum and of a spread: what leaves then stays below 2⁵³, but for e^(−2⁴) at worst
_BLOCK: Final = 1 << 16  # numbers at a time, as Python integers

Sampler = Callable[[list[int]], list[int]]


class ReleaseNoise:
    """Exact discrete noise from system entropy, for a release to the public. It has no seed and cannot be repeated.

    A source serves one run: it refuses to draw twice for the same slice of the same release, so that no statistic is
    released with two draws. Like other sources it refuses to be copied to another process.

    The samplers draw P(x) ∝ exp(−x²/2σ²) and P(x) ∝ exp(−|x|/b) on the integers; σ and b are floats, taken as exact
    numbers. The noise is added to whole numbers; other statistics are put on a grid first
    (`privcheck.runtime.discretisation`).

    Raises:
        ParameterError: OpenDP is not installed, or is older than 0.14.
    """

    as_declared = True
    protects = True

    def __init__(self) -> None:
        self.words = f"release: exact discrete noise from system entropy, OpenDP {opendp_version()}"
        self._process = os.getpid()
        self._drawn: set[tuple[int, int]] = set()

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Add fresh noise to a value: whole numbers, clipped to ±2⁵³.

        Args:
            noise: Discrete Gaussian or discrete Laplace noise.
            value: The exact statistic, whole numbers.
            release: The release's position in the declaration.
            part: Index of the slice.

        Raises:
            ChannelError: The law is another one, a value is not a whole number of at most 2⁵¹ in absolute value, noise
                was drawn for this slice before, or the process is a fork. Nothing is drawn then.
        """
        if os.getpid() != self._process:
            raise ChannelError("release noise was used in a forked process: a release is made in one process")
        if (release, part) in self._drawn:
            message = f"slice {part} of release {release} has been drawn: a second draw would be a second release"
            raise ChannelError(f"{message}; charge it as one")
        sample = _sampler_of(noise)
        if not (np.isfinite(value).all() and (np.rint(value) == value).all() and (np.abs(value) <= _MOST).all()):
            raise ChannelError("release noise is added to whole numbers of at most 2⁵¹; got others, nothing was drawn")
        self._drawn.add((release, part))
        flat = value.astype(np.int64).ravel()
        noisy = np.empty(flat.size)
        for start in range(0, flat.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            noisy[block] = np.array(sample(flat[block].tolist()), dtype=np.int64)
        return np.clip(noisy, -_LARGEST, _LARGEST).reshape(value.shape)

    def __reduce__(self) -> NoReturn:
        raise ChannelError("a noise source cannot be pickled or copied: a release is made in one process")


def opendp_version() -> str:
    """Installed version of OpenDP.

    Raises:
        ParameterError: OpenDP is not installed, or is too old.
    """
    oldest = ".".join(map(str, OLDEST))
    try:
        found = version("opendp")
    except PackageNotFoundError:
        message = f"release noise is drawn by OpenDP, at least {oldest}, which is not installed: {INSTALL}"
        raise ParameterError(message, name="noise", given="release") from None
    if tuple(int(digits) for digits in found.split(".")[:2]) < OLDEST:
        message = f"release noise is drawn by OpenDP, at least {oldest}; {found} is installed: {INSTALL}"
        raise ParameterError(message, name="noise", given="release")
    return found


def _sampler_of(noise: Noise) -> Sampler:
    """Sampler of a law.

    Raises:
        ChannelError: The law has no sampler, or its spread is not positive or too large.
    """
    if type(noise) not in {DiscreteGaussianNoise, DiscreteLaplaceNoise}:
        message = f"release noise is discrete Gaussian or discrete Laplace; {noise.name!r} is neither"
        raise ChannelError(f"{message}: draw the declaration of `privcheck.runtime.discretisation.as_drawn`")
    if not 0 < noise.scale <= _MOST / 2**6:
        raise ChannelError(f"release noise has a spread above 0 and of at most 2⁴⁵, got {noise.scale:g}")
    return _sampler(noise.name, noise.scale)


@functools.lru_cache(maxsize=64)
def _sampler(law: str, scale: float) -> Sampler:
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    integers = domains.vector_domain(domains.atom_domain(T="i64"))
    if law == DiscreteGaussianNoise.name:
        sampler: Sampler = measurements.make_gaussian(integers, metrics.l2_distance(T="i64"), scale=scale)
    else:
        sampler = measurements.make_laplace(integers, metrics.l1_distance(T="i64"), scale=scale)
    return sampler


Array = NDArray[np.float64]
_ASYMMETRY: Final = 1e-12  # relative; x xᵀ computed in floats is symmetric up to the order of its sums


class Fresh(Protocol):
    """Fresh noise of one law: `privcheck.declare.mechanisms.Noise`."""

    @property
    def symmetric(self) -> str:
        """How symmetric matrices are drawn; empty for noise that is independent in every cell."""
        ...

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw fresh noise of the shape."""
        ...


class TreeCounter:
    """Sums over the users so far: exact inside, noisy outside.

    The P-sum (t − 2^l, t], with l the lowest bit of t, is released once, when user t closes it, with independent noise;
    the sum of the first t users is the sum of the P-sums of t's bits. User i is in those P-sums that end at t ≥ i and
    begin before it: ⌊log₂ T⌋ + 1 for the first user, never more (`privcheck.declare.schedules.Tree`).

    From t − 1 to t one P-sum closes, and those of t's higher bits stay. So the running noise is kept once for every
    bit, as the total of the bits from it upwards: a user costs one draw and two additions per cell, and the memory is
    ⌊log₂ T⌋ + 1 arrays, whatever has been released before.

    Attributes:
        shape: Shape of one user's contribution; leading axes may count replicates, steps or counters, each with
            independent noise. With symmetric noise the last two are the matrices.
        leaves: T, the largest number of users; more would need another level, which has not been charged.
        users: Number of users so far.
    """

    def __init__(self, shape: tuple[int, ...], noise: Fresh, *, leaves: int) -> None:
        if leaves < 1:
            raise ParameterError(f"expected at least one user in the tree, got {leaves}", name="leaves", given=leaves)
        if noise.symmetric and (len(shape) < 2 or shape[-1] != shape[-2]):
            raise ParameterError(f"expected square matrices for symmetric noise, got shape {shape}", given=shape)
        self.shape = shape
        self.leaves = leaves
        self.users = 0
        self._noise = noise
        self._sum: Array = np.zeros(shape)
        self._live: list[Array | None] = [None] * leaves.bit_length()  # noise of t's bits from each upwards

    def release(self, increment: Array, rng: np.random.Generator) -> Array:
        """Add the next user's contribution, and return the noisy sum over all users so far as a new array.

        Args:
            increment: Contribution of the next user, of the counter's shape.
            rng: Generator for the noise of the P-sum that closes.

        Raises:
            ParameterError: The contribution has another shape, is not finite or not symmetric although the noise is, or
                the counter has all its users already; nothing is drawn then.
        """
        self._check(increment)
        self.users += 1
        self._sum += increment
        fresh = self._noise.draw(rng, self.shape)
        level = lowest_bit(self.users)
        rest = self.users >> (level + 1)
        if rest:
            above = self._live[level + 1 + lowest_bit(rest)]
            assert above is not None
            fresh += above
        self._live[level] = fresh
        self._live[:level] = [None] * level  # their P-sums lie inside the one that has closed
        released: Array = self._sum + fresh
        return released

    def _check(self, increment: Array) -> None:
        if self.users == self.leaves:
            message = (
                f"the tree is declared for {self.leaves} users, and all of them have come: declare the actual number"
            )
            raise ParameterError(message, name="leaves", given=self.leaves)
        if np.shape(increment) != self.shape:
            raise ParameterError(f"expected a contribution of shape {self.shape}, got {np.shape(increment)}")
        if not np.isfinite(increment).all():
            raise ParameterError("expected a finite contribution: it has a NaN or infinite cell")
        if self._noise.symmetric:
            apart = np.abs(increment - np.swapaxes(increment, -1, -2)).max(initial=0.0)
            if apart > _ASYMMETRY * np.abs(increment).max(initial=0.0):
                raise ParameterError(f"symmetric noise protects symmetric matrices: entries differ by {apart:g}")


def lowest_bit(number: int) -> int:
    """The l with number = 2^l·odd, for number ≥ 1."""
    return (number & -number).bit_length() - 1
