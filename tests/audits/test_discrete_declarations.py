"""Declarations with noise on the integers through every view of an audit, and the noise view's mutants.

The seeds are fixed. Each audit is wrong with probability at most 1 %, the noise tests at 10⁻⁶ (both were run once with
these seeds: no draw is left to chance).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from privcheck.commands.declarations import calibrate_noise, verify_claim
from privcheck.commands.runs import audit
from privcheck.commands.settings import settle
from privcheck.declare.declaration import Claim, Declaration, Release
from privcheck.declare.mechanisms import DiscreteGaussian, DiscreteGaussianNoise, DiscreteLaplace, DiscreteLaplaceNoise
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import TransitionCounts, VisitCounts
from privcheck.runtime import SimulatedNoise, registry
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ZCDP, PureDP
from privcheck.terms.symbols import A, H, S, epsilon, rho
from privcheck_algorithms.dp_apvi import EPSILON, RHO, SIZES
from privcheck_algorithms.dp_apvi.agent import AGENT, OPTIONS
from privcheck_audits.lockstep.noise import noise_tests
from privcheck_audits.lockstep.users import others

KINDS = {
    "gaussian": (DiscreteGaussian(variance=2 * H / rho), ZCDP(rho), RHO),
    "laplace": (DiscreteLaplace(scale=4 * H / epsilon), PureDP(epsilon), EPSILON),
}
ALPHA = 1e-6


def agent(kind):
    """DP-APVI with noise on the integers, declared as such."""
    mechanism, claim, budget = KINDS[kind]

    def declare(_):
        return Declaration(
            name="discrete", title="x", source="x", relation=ReplaceOne("trajectory"),
            releases=(
                Release("visits", VisitCounts(H, S, A), mechanism),
                Release("transitions", TransitionCounts(H, S, A), mechanism),
            ),
            claim=Claim(claim, source="x"), parameters=(*SIZES, budget),
        )  # fmt: skip

    return Algorithm(name="discrete", title="x", source="x", declare=declare, offline=AGENT, options=OPTIONS)


@pytest.fixture(scope="module", params=KINDS)
def setting(request):
    return settle(agent(request.param), {"H": "2", "S": "2", "A": "2"})


def test_it_is_verified_and_calibrated(setting):
    assert verify_claim(setting).verdict == "holds"
    assert calibrate_noise(setting, epsilon=1.0, delta=1e-5) is not None


@pytest.mark.parametrize(("view", "trials"), [("releases", 2000), ("lockstep", None), ("noise", None), ("policy", 500)])
def test_every_view_audits_it(setting, view, trials):
    plan = registry.plan_for(setting.algorithm)
    assert not plan.lacks(setting.declared, view)
    assert audit(setting, view=view, trials=trials, workers=1).verdict == "consistent"


class Wrong:
    """Simulated noise with something wrong."""

    words, as_declared, protects = "wrong", True, False

    def __init__(self, seed, change):
        self._honest, self._change = SimulatedNoise(seed), change

    def add(self, noise, value, *, release, part):
        return self._change(self._honest, noise, value, release, part)


def louder(honest, noise, value, release, part):
    return honest.add(type(noise)(scale=1.2 * noise.scale), value, release=release, part=part)


def shared(honest, noise, value, release, part):
    del release
    return honest.add(noise, value, release=0, part=part)


@pytest.mark.parametrize(("change", "name"), [(louder, "scale"), (shared, "independence")])
def test_noise_on_the_integers_that_is_not_as_declared_is_found(setting, change, name):
    users = others(setting.declared, setting.values, np.random.default_rng(0), 5)
    how = {"runs": 150, "seed": 3}
    found = noise_tests(setting.declared, setting.values, users, source=lambda seed: Wrong(seed, change), **how)
    worst = min(found, key=lambda test: test.p_value)
    assert worst.p_value < ALPHA / len(found)
    assert name in worst.name
    if change is shared:  # once for both
        honest = noise_tests(setting.declared, setting.values, users, **how)
        assert min(test.p_value for test in honest) > ALPHA / len(honest)


@pytest.mark.parametrize("scale", [0.05, 0.7, 6.3, 40.0])
@pytest.mark.parametrize("law", [DiscreteGaussianNoise, DiscreteLaplaceNoise])
def test_the_distribution_function_that_is_tested_is_that_of_the_masses(law, scale):
    k = np.arange(-math.ceil(60 * scale) - 2, math.ceil(60 * scale) + 3)
    weights = np.exp(-np.abs(k) / scale if law is DiscreteLaplaceNoise else -0.5 * (k / scale) ** 2)
    masses = weights / weights.sum()
    edges = np.concatenate([[0.0], np.cumsum(masses)])
    x = np.linspace(-8 * scale - 2, 8 * scale + 2, 501)
    naive = np.interp(x, np.concatenate([[k[0] - 0.5], k + 0.5]), edges)  # a uniform number makes it piecewise linear
    assert law(scale=scale).spread_cdf(x) == pytest.approx(naive, abs=1e-12)


def test_far_above_one_it_is_the_continuous_law():
    x = np.linspace(-5, 5, 41) * 2e4
    assert DiscreteGaussianNoise(scale=2e4).spread_cdf(x) == pytest.approx(stats.norm.cdf(x / 2e4), abs=1e-15)
    below = DiscreteGaussianNoise(scale=9_999.0).spread_cdf(x / 2)
    assert below == pytest.approx(stats.norm.cdf(x / 2 / 9_999), abs=1e-9)
