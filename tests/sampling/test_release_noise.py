"""Release noise follows the exact law of the integers that is charged; five percent of scale would be noticed.

It has no seed, so that every run of these tests draws anew. A correct sampler is rejected with probability at most
10⁻¹⁰ by each of the eleven p-values; a scale five percent off, or the continuous law rounded where that differs, passes
with probability below 10⁻⁹. The laws are summed here from their definition.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from privcheck.declare.mechanisms import DiscreteGaussianNoise, DiscreteLaplaceNoise
from privcheck.runtime.noise import ReleaseNoise

REJECTED = 1e-10
DRAWS = 120_000
LAWS = {
    "discrete gaussian": (DiscreteGaussianNoise, lambda x, s: -(x**2) / (2 * s**2)),
    "discrete laplace": (DiscreteLaplaceNoise, lambda x, s: -np.abs(x) / s),
}


def draw(law, scale, size=DRAWS):
    return ReleaseNoise().add(LAWS[law][0](scale=scale), np.zeros(size), release=0, part=0)


def masses(law, scale):
    """Returns the integers within 60 scales and their probabilities."""
    x = np.arange(-math.ceil(60 * scale), math.ceil(60 * scale) + 1, dtype=np.float64)
    weights = np.exp(LAWS[law][1](x, scale))
    return x, weights / weights.sum()


def goodness_of_fit(sample, law, scale, bins=24):
    """Returns the p-value of χ² on intervals of integers of about the same probability."""
    x, p = masses(law, scale)
    edges = np.unique(np.searchsorted(np.cumsum(p), np.arange(1, bins) / bins))
    expected = np.add.reduceat(p, [0, *(edges + 1)]) * len(sample)
    counted = np.bincount(np.searchsorted(x[edges], sample, side="left"), minlength=len(expected))
    return stats.chisquare(counted, expected).pvalue


@pytest.mark.parametrize(
    ("law", "scale"), [("discrete gaussian", 6.3), ("discrete gaussian", 0.6), ("discrete laplace", 2.5)]
)
def test_the_law_is_the_one_that_is_charged_and_no_other_scale(law, scale):
    sample = draw(law, scale)
    assert (sample == np.rint(sample)).all()
    assert goodness_of_fit(sample, law, scale) > REJECTED
    if scale > 1:  # fewer than twenty values tell less of the scale
        assert goodness_of_fit(sample, law, 1.05 * scale) < REJECTED
        assert goodness_of_fit(sample, law, 0.95 * scale) < REJECTED
    together = np.corrcoef(sample[:-1], sample[1:])[0, 1] * math.sqrt(DRAWS)
    assert 2 * stats.norm.sf(abs(together)) > REJECTED  # a sum of very many: normal


def test_small_noise_is_not_the_continuous_law_rounded():
    """At σ = 0.6 rounded Gaussian noise is 0 with probability 0.595, discrete noise with 0.664."""
    x, p = masses("discrete gaussian", 0.6)
    rounded = np.rint(np.random.default_rng(1).normal(0, 0.6, DRAWS))
    assert goodness_of_fit(rounded, "discrete gaussian", 0.6) < REJECTED
    assert p[x == 0] == pytest.approx(0.664, abs=5e-4)


def test_on_a_grid_far_below_the_noise_it_is_the_continuous_law():
    scale = 1.3 * 2**28
    sample = draw("discrete gaussian", scale, 20_000)
    assert stats.kstest(sample / scale, "norm").pvalue > REJECTED
    square = stats.chi2(len(sample))
    off = np.square(sample / scale).sum()
    assert min(square.cdf(off), square.sf(off)) > REJECTED
    assert square.cdf(off / 1.05**2) < 1e-9  # a scale that is five percent more
    assert len(np.unique(sample % 1024)) > 900  # the low bits are drawn, too: missed below 10⁻³⁰⁰


def test_draws_differ_between_slices_and_runs():
    noise, zeros = DiscreteGaussianNoise(scale=2.0**30), np.zeros(200)
    source = ReleaseNoise()
    parts = [source.add(noise, zeros, release=r, part=h) for r, h in ((0, 0), (0, 1), (1, 0))]
    parts.append(ReleaseNoise().add(noise, zeros, release=0, part=0))
    assert len(np.unique(np.concatenate(parts))) > 790  # ten pairs of 800 agree with probability below 10⁻⁴⁰
