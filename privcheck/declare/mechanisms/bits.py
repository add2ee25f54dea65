"""The shuffled binary sum: the messages of n users about one bit each, and the shuffler's output (Cheu et al. 2019).

Every user draws m = ⌈τ/n⌉ noise bits, each 1 with probability p = min(½, τ/2n), so that together their mean is at least
that of τ fair bits: with fewer than τ users the bits are fair, with τ or more each user draws one rarer bit. If each
bit is a separate message, n(m + 1) bits leave the shuffler, and only the number of ones carries information. If each
user sends one integer z = bit + Σy, the multiset of integers leaves the shuffler.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError


def noise_bits(senders: int, threshold: float) -> tuple[int, float]:
    """Return (m, p): number of noise bits that each user draws, and the probability of a 1.

    Args:
        senders: n, number of users behind the shuffler.
        threshold: τ.

    >>> noise_bits(5, 12.0), noise_bits(24, 12.0)
    ((3, 0.5), (1, 0.25))
    """
    return max(1, math.ceil(threshold / senders)), min(0.5, threshold / (2 * senders))


def draw_ones(
    rng: np.random.Generator, senders: int, threshold: float, shape: int | tuple[int, ...]
) -> NDArray[np.float64]:
    """Draw the number of noise bits that are 1, minus their mean nmp: the error of the analyser's estimate."""
    m, p = noise_bits(senders, threshold)
    ones = rng.binomial(senders * m, p, shape).astype(np.float64)
    ones -= senders * m * p
    return ones


def draw_messages(
    rng: np.random.Generator, bits: NDArray[np.int64], senders: int, threshold: float
) -> NDArray[np.int64]:
    """Draw the multiset of integer messages that leaves the shuffler: number of users sending 0, 1, …, m + 1.

    Args:
        rng: Source of the noise.
        bits: (…) number of users who hold a 1, for every counter.
        senders: n.
        threshold: τ.

    Returns:
        (…, m + 2) counts, which sum to n over the last axis.

    Raises:
        ParameterError: A count is not in 0..n.
    """
    ones = np.asarray(bits)
    if not np.issubdtype(ones.dtype, np.integer) or ones.min(initial=0) < 0 or ones.max(initial=0) > senders:
        raise ParameterError(f"expected whole numbers of users from 0 to {senders}, got {bits!r}", given=bits)
    m, p = noise_bits(senders, threshold)
    law = _binomial(m, p)
    counts = np.zeros((*ones.shape, m + 2), dtype=np.int64)
    counts[..., :-1] = rng.multinomial(senders - ones, law)
    counts[..., 1:] += rng.multinomial(ones, law)
    return counts


def ones_log_ratio(
    noise: NDArray[np.float64], change: NDArray[np.float64], senders: int, threshold: float
) -> NDArray[np.float64]:
    """Compute ln p(ones | D) − ln p(ones | D′), summed over the last axis; ±∞ if one law cannot produce them.

    Args:
        noise: (…, k) `draw_ones` under D.
        change: (k,) number of ones that the users hold in D minus that in D′, whole numbers.
        senders: n.
        threshold: τ.
    """
    from scipy.special import gammaln

    m, p = noise_bits(senders, threshold)
    trials = senders * m

    def log_mass(ones: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.clip(ones, 0, trials)
        logs = ones * (math.log(p) - math.log1p(-p)) - gammaln(inside + 1) - gammaln(trials - inside + 1)
        log_masses: NDArray[np.float64] = np.where(inside == ones, logs, -np.inf)
        return log_masses

    ones = np.rint(noise + trials * p)
    summed: NDArray[np.float64] = (log_mass(ones) - log_mass(ones + change)).sum(axis=-1)
    return summed


def ones_cdf(x: NDArray[np.float64], senders: int, threshold: float) -> NDArray[np.float64]:
    """Distribution function of `draw_ones`."""
    from scipy.special import bdtr

    m, p = noise_bits(senders, threshold)
    at = np.floor(np.asarray(x, dtype=np.float64) + senders * m * p + 1e-9)
    inside = np.clip(at, 0, senders * m)
    shares: NDArray[np.float64] = np.where(at < 0, 0.0, bdtr(inside, senders * m, p))
    return shares


def _binomial(trials: int, probability: float) -> NDArray[np.float64]:
    k = range(trials + 1)
    logs = [math.lgamma(trials + 1) - math.lgamma(y + 1) - math.lgamma(trials - y + 1) for y in k]
    odds = math.log(probability) - math.log1p(-probability)
    masses: NDArray[np.float64] = np.exp(np.array(logs) + np.array(k) * odds + trials * math.log1p(-probability))
    masses /= masses.sum()
    return masses
