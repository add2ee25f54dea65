"""Release noise: exact discrete samples from system entropy, for what is published (extra `[release]`).

The samplers are OpenDP's, of Canonne, Kamath & Steinke (2020): integer and rational arithmetic throughout, random bits
from the operating system, no seed. They draw P(x) ∝ exp(−x²/2σ²) and P(x) ∝ exp(−|x|/b) on the integers, of which σ and
b are floats taken as the exact numbers that they are. What is drawn is added to whole numbers; statistics of other
numbers are put on a grid first (`privcheck.drawn`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ChannelError, ParameterError
from privcheck.mechanisms import DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise

OLDEST: Final = (0, 14)  # of OpenDP, whose discrete samplers take any float as their scale
INSTALL: Final = "pip install 'privcheck[release]'"
_LARGEST: Final = 2.0**53  # whole numbers up to it are floats
_MOST: Final = 2.0**51  # of an exact sum and of a spread: what leaves then stays below 2⁵³, but for e^(−2⁴) at worst
_BLOCK: Final = 1 << 16  # numbers at a time, as Python integers

Sampler = Callable[[list[int]], list[int]]


class ReleaseNoise:
    """Exact discrete noise from system entropy, for a release to the public. It has no seed and cannot be repeated.

    A source serves one run: it refuses to draw twice for the same slice of the same release, so that no statistic
    leaves with two draws. Like other sources it refuses to be copied to another process.

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
        """Returns value + fresh noise, whole numbers below 2⁵³ in absolute terms; beyond it is 2⁵³.

        Args:
            noise: Discrete Gaussian or discrete Laplace noise.
            value: The exact statistic, whole numbers.
            release: The release's position in the declaration.
            part: Which slice of it.

        Raises:
            ChannelError: The law is another one, a value is no whole number of at most 2⁵¹, noise was drawn for this
                slice before, or the process is a fork. Nothing is drawn then.
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
    """Returns which OpenDP is installed.

    Raises:
        ParameterError: None is, or one that is too old.
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
    """Returns the sampler of a law.

    Raises:
        ChannelError: It has none, or its spread is too large.
    """
    if type(noise) not in {DiscreteGaussianNoise, DiscreteLaplaceNoise}:
        message = f"release noise is discrete Gaussian or discrete Laplace; {noise.name!r} is neither"
        raise ChannelError(f"{message}: draw the declaration of `privcheck.drawn.as_drawn`")
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
