"""The gallery's bandits against closed forms that are written out here, and pairs that are searched for here."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from privcheck.commands.settings import resolve_setting
from privcheck.verification import verify


def judge(name, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values)


def gaussian_epsilon(mu, delta):
    """ε of N(0, 1) against N(μ, 1) at δ (Balle & Wang 2018, Theorem 8)."""

    def excess(e):
        return norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta

    return brentq(excess, 0, 1000 * mu + 10) if excess(0) > 0 else 0.0


@pytest.mark.parametrize("name", ["dp-se", "lazy-ucb", "adap-ucb", "dp-exp3-lap", "ldp-ucb"])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "7"])
def test_forgetful_and_local_bandits_cost_exactly_their_claim(name, epsilon):
    verdict = judge(name, epsilon=epsilon)
    assert (verdict.verdict, verdict.method) == ("holds", "proved")
    assert (verdict.upper_ratio, verdict.lower_ratio) == (1.0, 1.0)


@pytest.mark.parametrize("users", [2, 7, 8, 1000, 1024, 10**6])
@pytest.mark.parametrize("arms", [2, 9])
def test_a_tree_an_arm_costs_its_levels_over_what_is_counted(users, arms):
    levels = len(bin(users)) - 2
    for split, share in (("arms", arms), ("none", 1)):
        verdict = judge("dp-ucb", K=users, arms=arms, split=split)
        expected = levels / (share * math.log2(users))
        assert verdict.upper_ratio == pytest.approx(expected, rel=1e-12)
        assert verdict.lower_ratio == pytest.approx(expected, rel=1e-12)
        assert verdict.verdict == ("holds" if expected <= 1 else "fails")


@pytest.mark.parametrize(("epsilon", "delta", "users", "bound"), [(1, "1e-5", 1000, 1), ("1/2", "1e-6", 4096, 2)])
def test_private_lin_ucb_costs_what_its_gaussian_curve_says(epsilon, delta, users, bound):
    verdict = judge("shariff-sheffet", epsilon=epsilon, delta=delta, K=users, L=bound)
    e, d = float(Fraction(epsilon)), float(delta)
    m, size = math.ceil(math.log2(users)) + 1, bound**2 + 1
    std = math.sqrt(16 * m) * size * math.log(4 / d) / e
    nodes = len(bin(users)) - 2
    # orthogonal (x, y): the Gram matrices differ by √2·L̃² in Frobenius norm, of which GOE noise sees L̃²
    mu = math.sqrt(nodes) * size / std
    expected = gaussian_epsilon(mu, d) / e
    assert verdict.verdict == "holds"
    assert verdict.upper_ratio == pytest.approx(expected, rel=1e-6)
    assert verdict.lower_ratio == pytest.approx(expected, rel=1e-6)


def test_the_federated_version_has_no_joint_guarantee_to_stand_on():
    verdict = judge("federated-linear-bandit")
    assert verdict.joint == "unproved"
    assert "joint-precondition" in {finding.code for finding in verdict.findings}
    assert judge("shariff-sheffet").joint == "follows"


@pytest.mark.parametrize("noise", ["formula", "published-code"])
def test_no_pair_of_local_linear_users_loses_more_than_is_charged_and_one_does(noise):
    verdict = judge("ldp-linear-bandit", noise=noise)
    delta = 1e-5
    std = 4 * math.sqrt((2 if noise == "formula" else 1) * math.log(1.25 / delta))
    rng = np.random.default_rng(3)
    worst, rows = 0.0, np.triu_indices(3)
    for _ in range(20_000):
        x, z = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 3)))
        y, w = rng.integers(0, 2, 2)
        change = np.outer(x, x) - np.outer(z, z)
        worst = max(worst, float((change[rows] ** 2).sum() + ((y * x - w * z) ** 2).sum()))
    assert verdict.verdict == "holds"
    assert gaussian_epsilon(math.sqrt(worst) / std, delta) <= verdict.upper_ratio * (1 + 1e-9)
    assert verdict.lower_ratio == pytest.approx(verdict.upper_ratio, rel=1e-6)
    assert verdict.lower_ratio == pytest.approx(gaussian_epsilon(math.sqrt(4.5) / std, delta), rel=1e-6)
