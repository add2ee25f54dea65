"""The samplers draw the declared law, at the declared scale: and three percent more or less would be noticed.

A correct sampler is rejected with probability at most 10⁻¹⁰ by each p-value, before its seed was fixed: about seventy
of them, 10⁻⁸ together. A wrong one is missed with probability below 10⁻⁹ each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import LAWS as NOISES
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import VisitCounts
from privcheck.runtime import Billboard, Channel, Ledger, SimulatedNoise
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import A, H, S, expression, rho, sqrt

REJECTED = 1e-10
DRAWS = 200_000
LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}

each_law = pytest.mark.parametrize("law", LAWS)
each_scale = pytest.mark.parametrize("scale", [1e-6, 0.5, 1.0, 6.324555320336759, 1e9])


def _p_values(sample, law, scale):
    """Returns p-values of the law (Kolmogorov–Smirnov), the scale (exact in its family), the mean and the signs."""
    frozen = LAWS[law](scale=scale)
    if law == "gaussian":
        summed, total = np.square(sample / scale).sum(), stats.chi2(len(sample))
    else:
        summed, total = np.abs(sample / scale).sum(), stats.gamma(len(sample))
    return {
        "law": stats.kstest(sample, frozen.cdf).pvalue,
        "scale": 2 * min(total.cdf(summed), total.sf(summed)),
        "mean": 2 * stats.norm.sf(abs(sample.mean()) / (frozen.std() / math.sqrt(len(sample)))),
        "signs": stats.binomtest(int((sample > 0).sum()), len(sample)).pvalue,
    }


@each_scale
@each_law
def test_the_sampler_draws_its_law(law, scale):
    sample = NOISES[law](scale=scale).draw(np.random.default_rng(20), DRAWS)
    p = _p_values(sample, law, scale)
    assert min(p.values()) > REJECTED, p


@pytest.mark.parametrize("factor", [0.9, 0.97, 1.03, 1.1])
@each_law
def test_a_scale_that_is_off_is_rejected(law, factor):
    sample = NOISES[law](scale=factor * 3.0).draw(np.random.default_rng(21), DRAWS)
    p = _p_values(sample, law, 3.0)
    assert p["scale"] < REJECTED
    if abs(factor - 1) > 0.05:
        assert p["law"] < REJECTED


@pytest.mark.parametrize("law", LAWS)
def test_another_law_of_the_same_variance_is_rejected(law):
    other = "laplace" if law == "gaussian" else "gaussian"
    std = LAWS[law](scale=1.0).std()
    sample = NOISES[other](scale=std / LAWS[other](scale=1.0).std()).draw(np.random.default_rng(22), DRAWS)
    assert _p_values(sample, law, 1.0)["law"] < REJECTED


@pytest.mark.parametrize("shift", [-0.05, 0.05])
@each_law
def test_a_mean_that_is_off_is_rejected(law, shift):
    sample = NOISES[law](scale=1.0).draw(np.random.default_rng(23), DRAWS) + shift
    assert _p_values(sample, law, 1.0)["mean"] < REJECTED


@pytest.mark.parametrize(
    ("mechanism", "law", "scale"),
    [
        (Gaussian(variance=40), "gaussian", math.sqrt(40)),  # a std where the variance is meant would be 40 or 2.5
        (Gaussian(variance="1/4"), "gaussian", 0.5),
        (Laplace(scale=80), "laplace", 80.0),
        (Laplace(scale="1/4"), "laplace", 0.25),
        (Laplace(scale=sqrt(expression(2))), "laplace", math.sqrt(2)),
    ],
)
def test_what_is_declared_is_what_is_drawn(mechanism, law, scale):
    noise = mechanism.at({})
    assert noise.name == law
    assert math.isclose(noise.scale, scale, rel_tol=1e-15)
    sample = noise.draw(np.random.default_rng(24), DRAWS)
    assert min(_p_values(sample, law, scale).values()) > REJECTED
    std = mechanism.std.number()
    kurtosis = 3 if law == "gaussian" else 6
    assert abs(sample.var() / std**2 - 1) < 7 * math.sqrt((kurtosis - 1) / DRAWS)  # seven standard errors: 10⁻¹¹


@pytest.mark.parametrize("power", [1, 2, 3, 5, 7])
def test_a_spread_is_never_rounded_down(power):
    variance = Fraction(1, 3) ** power
    assert Fraction(Gaussian(variance=variance).at({}).scale) ** 2 >= variance
    assert Fraction(Laplace(scale=variance).at({}).scale) >= variance


@pytest.mark.parametrize("law", LAWS)
def test_the_distribution_function_is_that_of_the_draws(law):
    x = np.linspace(-30, 30, 121)
    noise = NOISES[law](scale=2.5)
    assert np.allclose(noise.cdf(x), LAWS[law](scale=2.5).cdf(x), rtol=1e-12, atol=1e-300)


@pytest.fixture(scope="module")
def published():
    """Returns what a channel adds to zero: (seeds, releases, slices, cells) over 64 seeds."""
    release = [Release(name, VisitCounts(H, S, A), Gaussian(variance=2 * H / rho)) for name in ("one", "two")]
    parameters = [Parameter(name=n, default=v, kind="count", meaning=n) for n, v in (("H", 3), ("S", 16), ("A", 16))]
    declaration = Declaration(
        name="noise",
        title="noise alone",
        source="a test",
        relation=ReplaceOne(),
        releases=tuple(release),
        claim=Claim(ZCDP(rho), source="a test"),
        parameters=(*parameters, Parameter(name="rho", default=1, kind="positive", meaning="budget")),
    )
    values = declaration.values()
    noise = np.empty((64, 2, 3, 256))
    for seed in range(64):
        ledger = Ledger(declaration, values, noise="a test")
        channel = Channel(declaration, values, noise=SimulatedNoise(seed), billboard=Billboard(), ledger=ledger)
        for i, name in enumerate(("one", "two")):
            for part in range(3):
                noise[seed, i, part] = channel.release(name, np.zeros((16, 16)), part=part).ravel()
    return noise


def test_the_channel_adds_the_declared_noise(published):
    # variance 2H/ρ = 6
    assert min(_p_values(published.ravel(), "gaussian", math.sqrt(6)).values()) > REJECTED


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((slice(None), 0), (slice(None), 1)),  # releases
        ((slice(None), slice(None), 0), (slice(None), slice(None), 1)),  # slices
        ((slice(None), slice(None), 1), (slice(None), slice(None), 2)),
        ((slice(0, 63),), (slice(1, 64),)),  # seeds
        ((..., slice(0, 255)), (..., slice(1, 256))),  # cells
    ],
)
def test_noise_is_uncorrelated_between_releases_slices_runs_and_cells(published, one, other):
    x, y = published[one].ravel() / math.sqrt(6), published[other].ravel() / math.sqrt(6)
    # Σ x y has variance n for independent standard normals; nearly normal for n ≥ 16 000
    z = (x @ y) / math.sqrt(len(x))
    assert abs(z) < 7  # 2.6·10⁻¹² if independent; shared noise gives √n
    # and the squares: shared noise with signs of its own. Their products have heavier tails, hence 12
    squared = ((x**2 - 1) @ (y**2 - 1)) / (2 * math.sqrt(len(x)))
    assert abs(squared) < 12
    assert (x != y).all()
