"""What the catalogue says of reported bugs' losses, against laws worked out in another way.

Densities on fine grids, binomial convolutions and enumerations; nothing here is drawn.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from mutants.catalogue import REPORTED

KNOWN = {given.name: given for given in REPORTED}
LAPLACE = stats.laplace.pdf


def pure(first, second):
    """Returns the largest |ln p/q| of two laws on the same points."""
    return float(np.abs(np.log(first) - np.log(second)).max())


def redrawn(scale, low, high):
    """Returns the loss of noise that is drawn again until 0 or 1 with it lies inside the bounds."""
    y = np.linspace(low, min(high, 40), 4_001)
    laws = []
    for x in (0, 1):
        law = stats.laplace(x, scale)
        laws.append(law.pdf(y) / (law.cdf(high) - law.cdf(low)))
    return pure(*laws)


def nearest_of_three():
    z = np.linspace(-10, 10, 2_001)
    nearer = lambda y, x: 3 * LAPLACE(y - x) * (2 * stats.laplace.sf(np.abs(y - x))) ** 2  # noqa: E731
    return pure(nearer(z, 0), nearer(z, 1))


def one_stream():
    y = np.linspace(-5, 5, 10_001)[1::2]
    told = LAPLACE(y - 1) * (y < 1) + LAPLACE(y) * (y >= 0)
    return pure(told, LAPLACE(y))


def two_zeros():
    k, share = np.arange(-30, 31), 1 - math.exp(-1)
    law = lambda k: np.where(k == 0, 1.0, 0.5) * share * np.exp(-np.abs(k))  # noqa: E731
    return pure(law(k), law(k - 1))


def wrapped(modulus=16):
    noise = np.zeros(modulus)
    for k in range(-400, 401):
        noise[k % modulus] += math.exp(-abs(k)) * (1 - math.exp(-1)) / (1 + math.exp(-1))
    return pure(noise, np.roll(noise, 1))


def below(x):
    """Returns P(x + Laplace(1) < 1 + Laplace(½))."""
    return integrate.quad(lambda t: stats.laplace.pdf(t, scale=0.5) * stats.laplace.cdf(1 + t - x), -30, 30)[0]


def sparse_vector():
    law = lambda p: np.array([*(p**k * (1 - p) for k in range(12)), p**12])  # noqa: E731
    return pure(law(below(0)), law(below(1)))


def renyi(first, second):
    """Returns the largest D_α/α of two laws of two outcomes, either way round."""
    orders = np.linspace(1.001, 40, 40_000)[:, None]
    both = []
    for p, q in ((first, second), (second, first)):
        moments = (np.array(p) ** orders * np.array(q) ** (1 - orders)).sum(axis=1)
        both.append(float((np.log(moments) / (orders[:, 0] - 1) / orders[:, 0]).max()))
    return max(both)


def permute_and_flip():
    """Enumerates both orders: the better one is taken when it comes, the other with probability e⁻²."""
    worse = 0.5 * math.exp(-2)
    return renyi((0.5, 0.5), (1 - worse, worse))


def ten_actions():
    ones = np.arange(11)
    laws = [(1 - 0.5 / math.sqrt(n)) ** ones * (0.5 / math.sqrt(n)) ** (10 - ones) for n in (1, 2)]
    return pure(*laws)


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("bounded noise without its normaliser", redrawn(1, 0, 2)),
        ("bounded noise without its normaliser, mended", redrawn(2, 0, 2)),
        ("redrawn until not negative", redrawn(1, 0, math.inf)),
        ("best of three answers", nearest_of_three()),
        ("sample and noise from one stream", one_stream()),
        ("geometric noise with two zeros", two_zeros()),
        ("noise after the modulus, mended", wrapped()),
        ("sparse vector, threshold redrawn for each query", sparse_vector()),
        ("permute and flip charged as exponential", permute_and_flip()),
        ("permute and flip charged as exponential, mended",
         renyi((0.5, 0.5), (1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))))),
        ("exploration by exact visits", ten_actions()),
    ],
)  # fmt: skip
def test_stated_losses_are_those_of_the_laws(name, loss):
    assert KNOWN[name].loss == pytest.approx(loss, rel=2e-3)


def test_twenty_shuffled_reports_are_private_whatever_the_others_say():
    truth, epsilon, delta = 1 / (1 + math.exp(-2)), 1.0, 0.05
    laws = [
        np.convolve(stats.binom.pmf(np.arange(k + 1), k, truth), stats.binom.pmf(np.arange(21 - k), 20 - k, 1 - truth))
        for k in range(21)
    ]
    for fewer, more in itertools.pairwise(laws):
        for p, q in ((fewer, more), (more, fewer)):
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta


@pytest.mark.parametrize(("least", "fits"), [(3, False), (4, True)])
def test_rounded_thresholds_release_a_lonely_user_as_often_as_stated(least, fits):
    noise = np.exp(-np.abs(np.arange(-60, 61))) * math.tanh(0.5)
    assert noise.sum() == pytest.approx(1)
    assert (noise[np.arange(-60, 61) + 1 >= least].sum() <= 0.0365) == fits


@pytest.mark.parametrize(("threshold", "fits"), [(1 + math.log(100), False), (7.0, True)])
def test_gaussian_counts_above_a_threshold_keep_their_delta(threshold, fits):
    std = 2.3
    of_counts = stats.norm.cdf(0.5 / std - std) - math.e * stats.norm.cdf(-0.5 / std - std)  # Balle & Wang 2018
    assert (of_counts + stats.norm.sf((threshold - 1) / std) <= 0.01) == fits
