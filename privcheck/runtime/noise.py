"""Where noise comes from. The channel asks a source; nothing else draws."""

from __future__ import annotations

import os
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ChannelError, ParameterError
from privcheck.mechanisms import Noise


class NoiseSource(Protocol):
    """Adds fresh noise of the declared law to one slice of one release."""

    @property
    def words(self) -> str:
        """Returns what the source is, for ledgers and reports."""
        ...

    @property
    def as_declared(self) -> bool:
        """Returns whether the noise is fresh and follows the declared law, up to floating point: what a run costs."""
        ...

    @property
    def protects(self) -> bool:
        """Returns whether its outputs may be published: exact noise of the declared law, from system entropy."""
        ...

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Returns value + noise.

        Args:
            noise: The law and scale.
            value: The exact statistic.
            release: The release's position in the declaration.
            part: Which slice of it.
        """
        ...


class SimulatedNoise:
    """Floating-point noise from a seed: for simulations and audits, never for a release to the public.

    Every (release, slice) has a stream of its own, spawned from the seed, so a result depends neither on the order of
    the releases nor on the number of workers. The source refuses to be copied to another process: two workers that
    share a generator would draw the same noise and learn the difference of their data.
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
        """Returns value + noise; the same arguments give the same noise."""
        if os.getpid() != self._process:
            raise ChannelError(
                "a noise source was used in a forked process: give each worker a source with its own seed"
            )
        stream = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(release, part)))
        return noise.add(value, stream)

    def __reduce__(self) -> NoReturn:
        raise ChannelError("a noise source cannot be pickled or copied: give each worker a source with its own seed")


class NoNoise:
    """Adds nothing: for non-private twins and tests. A ledger written with it states that nothing is protected."""

    words = "none: the exact statistics are published, no privacy"
    as_declared = False
    protects = False

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Returns a copy of the exact value."""
        return value.copy()
