"""Fresh noise in bulk: the channel's side of the kernels. Simulated and seeded, never for a public release.

Laplace noise limits the speed of these agents, so it has its own generator: sixteen xoshiro256++ streams
(Blackman & Vigna 2021) side by side, whose loops the compiler turns into vector instructions, and −ln u by a series;
about twice as many draws a second as a NumPy Generator gives. Gaussian noise comes from the replicate's Generator.

A value is ±b·(−ln u) with u on the grid of 2⁻⁵² in (0, 1], so |noise| ≤ 37·b: the tail beyond, of probability
2⁻⁵², is missing. That is enough for simulations; tests compare the law with SciPy's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noise, Noiseless
from privcheck.errors import ParameterError
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.tables import aligned

Array = NDArray[np.float64]
Words = NDArray[np.uint64]

LANES = 16
SHAPE = (4, LANES)  # of the streams' state
LAPLACE, GAUSSIAN, NONE = 0, 1, 2  # laws, as the kernels know them
LAWS: Final[dict[type[Noise], int]] = {
    LaplaceNoise: LAPLACE,
    GaussianNoise: GAUSSIAN,
    Noiseless: NONE,
}  # those with a kernel here

_LN2 = 0.6931471805599453
_SQRT2 = 1.4142135623730951


class NoiseStream(NamedTuple):
    """The channel's side of a kernel: the noise it adds, and its source.

    Attributes:
        law: `LAPLACE`, `GAUSSIAN` or `NONE`.
        scale: b of the Laplace law, the standard deviation of the Gaussian.
        streams: (4, 16) the source of Laplace noise.
        rng: The source of Gaussian noise.
        raw: (piece,) scratch; every piece takes this number of draws, whatever its length.
        room: (2, piece) scratch of callers.
    """

    law: int
    scale: float
    streams: Words
    rng: np.random.Generator
    raw: Words
    room: Array


def open_channel(law: int, scale: float, *, streams: Words, rng: np.random.Generator, piece: int) -> NoiseStream:
    """Channel for values in pieces of a length that is a multiple of sixteen."""
    return NoiseStream(law, scale, streams, rng, aligned(piece).view(np.uint64), aligned(2, piece))


def code(noise: Noise) -> int:
    """Code of a noise's law in the kernels.

    Raises:
        ParameterError: No kernel draws the law.
    """
    if type(noise) not in LAWS:
        names = ", ".join(law.name for law in LAWS)
        message = f"noise of the law {noise.name!r} has no kernel here, which draw {names}"
        raise ParameterError(f"{message}: declare one of these, or write an agent on `NoiseStream`", given=noise.name)
    return LAWS[type(noise)]


def lanes(seed: np.random.SeedSequence) -> Words:
    """State (4, 16) of sixteen streams, from 64 words of the seed."""
    state = aligned(*SHAPE).view(np.uint64)
    state[...] = seed.generate_state(4 * LANES, np.uint64).reshape(SHAPE)
    return state


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def chunk(size: int) -> int:
    """Length of the pieces in which a number of counters get noise: at most about 1024, which stay in the L1 cache.

    A multiple of sixteen; the last piece wastes as little as that allows.
    """
    pieces = (size + 1023) // 1024
    return (size + pieces * LANES - 1) // (pieces * LANES) * LANES


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def padded(size: int) -> int:
    """Number of draws for a number of counters: whole pieces."""
    return -(-size // chunk(size)) * chunk(size)


@njit(cache=True, nogil=True, forceinline=True)
def words(state: Words, raw: Words) -> None:
    """Fill `raw` (with a multiple of 16 entries) with fresh 64-bit words: xoshiro256++, one stream per lane."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for block in range(raw.size // LANES):
        for lane in range(LANES):
            a, b, c, d = s0[lane], s1[lane], s2[lane], s3[lane]
            total = a + d
            raw[block * LANES + lane] = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
            shifted = b << np.uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= shifted
            s0[lane], s1[lane], s2[lane], s3[lane] = a, b, c, (d << np.uint64(45)) | (d >> np.uint64(19))


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def laplace(raw: Words, scale: float, base: Array, out: Array) -> None:
    """Turn each word into one Laplace variable of scale b: the upper 52 bits are u, another bit is the sign.

    −ln u: u = m·2^e with m in [√½, √2), ln m = 2·artanh((m − 1)/(m + 1)), whose series is cut after z¹⁵: a relative
    error below 10⁻¹³.

    Args:
        raw: Fresh words.
        scale: b.
        base: Values to add noise to, as long as out.
        out: At most as long as raw; overwritten by base + noise. Must not overlap base.
    """
    for i in range(out.size):
        from_one = np.uint64((raw[i] >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64)  # in [1, 2)
        bits = np.float64(from_one - 0.9999999999999998).view(np.uint64)  # u, in (0, 1]
        exponent = np.float64(np.int64(bits >> np.uint64(52)) - 1023)
        m = np.uint64((bits & np.uint64(0x000FFFFFFFFFFFFF)) | np.uint64(0x3FF0000000000000)).view(np.float64)
        big = m > _SQRT2
        m = m * 0.5 if big else m
        exponent = exponent + 1.0 if big else exponent
        z = (m - 1.0) / (m + 1.0)
        q = z * z
        series = 2.0 / 15
        series = series * q + 2.0 / 13
        series = series * q + 2.0 / 11
        series = series * q + 2.0 / 9
        series = series * q + 2.0 / 7
        series = series * q + 2.0 / 5
        series = series * q + 2.0 / 3
        magnitude = -scale * (exponent * _LN2 + (2.0 * z + z * q * series))
        out[i] = base[i] + (magnitude if (raw[i] & np.uint64(0x800)) != 0 else -magnitude)


@njit(cache=True, nogil=True, forceinline=True)
def add(channel: NoiseStream, base: Array, out: Array) -> int:
    """Write values with fresh noise of the declared law, as a channel does for a piece of a release.

    Args:
        channel: The channel; its scratch array `raw` is overwritten.
        base: The values, at most one piece.
        out: As long as base, overwritten; must not overlap it.

    Returns:
        Number of values that got noise.
    """
    if channel.law == LAPLACE:
        words(channel.streams, channel.raw)
        laplace(channel.raw, channel.scale, base, out)
    elif channel.law == GAUSSIAN:
        for i in range(channel.raw.size):
            draw = channel.scale * channel.rng.standard_normal()
            if i < out.size:
                out[i] = base[i] + draw
    else:
        for i in range(out.size):  # `out[:] = base` would compile Python's strings, for a message on shapes
            out[i] = base[i]
    return min(out.size, base.size, channel.raw.size)  # all arguments, see `counters`
