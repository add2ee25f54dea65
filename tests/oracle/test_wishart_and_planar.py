"""Wishart noise and planar Laplace noise against draws and integrals done here."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.accounting import compose
from privcheck.declare.procedures import PlanarLaplace, WishartNoise
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import PrivcheckError
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import epsilon
from privcheck.verification.outcome_loss import pair_delta, pure_loss, rho_loss
from privcheck_audits.releases.view import audit_releases
from small_declarations import request

SURE = 1 - 1e-9
ADDED, REPLACED = AddRemoveOne("user"), ReplaceOne("user")
EPSILON = Parameter(name="epsilon", default=1, kind="positive", meaning="ε")


def judged(one, claim, relation=ADDED, *, model="central", audit=False):
    declaration = Declaration(
        name="own", title="", source="", relation=relation, releases=(), procedures=(one,), model=model,
        claim=Claim(claim, source="here"), parameters=(EPSILON,),
    )  # fmt: skip
    if audit:
        return audit_releases(request(declaration, trials=50_000, confidence=SURE))
    return verify(declaration, declaration.values())


# [lemma wishart-loss]
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("s", [0.05, 0.7])
def test_a_wishart_matrix_is_above_a_users_matrix_as_often_as_derived(d, s):
    """P(W ⪰ xxᵀ) = e^(−‖x‖²/2c) by 10⁵ draws of SciPy's: within 6 standard errors, but with probability 2e-9."""
    runs, c = 100_000, 3.0
    drawn = stats.wishart(df=d + 1, scale=c * np.eye(d)).rvs(runs, random_state=7).reshape(runs, d, d)
    x = np.full(d, math.sqrt(2 * c * s / d))
    above = np.linalg.eigvalsh(drawn - np.outer(x, x))[:, 0] >= 0
    p = math.exp(-s)
    assert abs(above.mean() - p) < 6 * math.sqrt(p * (1 - p) / runs)
    one = WishartNoise("w", variance=3, dimension=d, bound=Fraction(math.sqrt(6 * s)).limit_denominator(10**9))
    for pair, swapped in zip(one.pairs(ADDED, {}), (False, True), strict=True):
        scores = pair.sampler(np.random.default_rng(1), np.full(runs, swapped))  # the data without the user
        assert abs(np.isinf(scores).mean() - (1 - p)) < 6 * math.sqrt(p * (1 - p) / runs)
        assert np.isfinite(pair.sampler(np.random.default_rng(2), np.full(1000, not swapped))).all()
        assert pair.sampler.numbers == d * (d + 1)


@pytest.mark.parametrize("c", [0.5, 3.0, 40.0])
def test_in_one_dimension_it_is_one_sided_exponential_noise(c):
    one = WishartNoise("w", variance=Fraction(c), dimension=1)
    curve = compose(*one.events(ADDED, {}))
    first, second = stats.expon(loc=1, scale=2 * c), stats.expon(loc=0, scale=2 * c)
    for e in (0.0, 0.1 / c, 0.6 / c, 2.0):

        def gain(x, one, other, e=e):
            return max(0.0, one.pdf(x) - math.exp(e) * other.pdf(x))

        true = max(
            math.fsum(quad(gain, a, b, args=pair, epsabs=1e-12)[0] for a, b in ((0, 1), (1, 80 * c)))
            for pair in ((first, second), (second, first))
        )
        assert true * (1 - 1e-6) - 1e-9 <= curve.delta(epsilon=e).upper <= true * (1 + 1e-5) + 1e-8
        known = max(pair_delta(pair.outcomes, 1, e) for pair in one.pairs(ADDED, {}))
        assert true * (1 - 1e-6) - 1e-8 <= known <= true * (1 + 1e-6) + 1e-9


def test_the_published_claim_is_refuted_and_the_right_one_holds():
    """Jiang, Xie & Zhang's scale 3/2ε is claimed to be ε-DP; a user is told apart with probability 1 − e^(−ε/3)."""
    one = WishartNoise("gram", variance=3 / (2 * epsilon), dimension=5)
    found = judged(one, PureDP(epsilon))
    assert (found.verdict, math.isinf(found.lower_ratio)) == ("fails", True)
    assert "above the longer sum" in found.witness.words
    lost = 1 - math.exp(-1 / 3)
    assert judged(one, ApproxDP(epsilon / 3, Fraction(lost + 1e-6))).verdict == "holds"
    assert judged(one, ApproxDP(epsilon / 3, Fraction(lost - 1e-6))).verdict == "fails"
    assert judged(one, ApproxDP(epsilon / 2, Fraction(lost + 1e-6)), REPLACED).verdict == "holds"
    assert judged(one, PureDP(epsilon), ZeroOut("user")).verdict == "fails"
    assert judged(one, PureDP(epsilon), audit=True).verdict == "violation"
    assert judged(one, ApproxDP(epsilon, Fraction(lost + 1e-3)), audit=True).verdict == "consistent"


# [lemma wishart-replaced]
@pytest.mark.parametrize("seed", range(6))
def test_replacing_costs_no_more_than_is_charged(seed):
    """The mass that D leaves outside D′'s support, by draws, is at most the charge; within 6 standard errors."""
    rng, d, c = np.random.default_rng(seed), 3, 2.0
    x, z = (v / np.linalg.norm(v) for v in rng.normal(size=(2, d)))
    drawn = stats.wishart(df=d + 1, scale=c * np.eye(d)).rvs(40_000, random_state=seed)
    outside = float((np.linalg.eigvalsh(drawn + np.outer(x, x) - np.outer(z, z))[:, 0] < 0).mean())
    charged = WishartNoise("w", variance=2, dimension=d).events(REPLACED, {})[0].parameter("delta")
    assert outside <= charged + 6 * math.sqrt(charged / 40_000)


# [lemma planar-loss]
@pytest.mark.parametrize(("scale", "diameter"), [("1", "1"), ("1/2", "3"), ("10", "1/3")])
def test_planar_noise_loses_what_the_plane_says(scale, diameter):
    b, apart = float(Fraction(scale)), float(Fraction(diameter))
    one = PlanarLaplace("place", scale=scale, diameter=diameter)
    (pair,) = one.pairs(REPLACED, {})
    e = one.cost(REPLACED).pure.number(rounding="up")
    assert e == pytest.approx(apart / b, rel=1e-12)
    assert 0.999 * e <= pure_loss(pair.outcomes, 1) <= e
    assert rho_loss(pair.outcomes, 1) <= one.cost(REPLACED).rho.number()

    def over(y, x, level):
        first, second = math.hypot(x, y), math.hypot(x - apart, y)
        return max(0.0, math.exp(-first / b) - math.exp(level - second / b)) / (2 * math.pi * b * b)

    for level in (0.0, 0.5 * e):
        true = 2 * dblquad(over, -25 * b, apart / 2 + 25 * b, 0, 25 * b, args=(level,), epsabs=1e-7)[0]
        known = pair_delta(pair.outcomes, 1, level)
        assert known == pytest.approx(true, rel=2e-4, abs=2e-6)
        assert known <= compose(*one.events(REPLACED, {})).delta(epsilon=level).upper


def test_planar_runs_follow_the_law():
    """The share of losses below each of nine levels, of 10⁵ runs, within 6 standard errors: 2e-9 each."""
    (pair,), runs = PlanarLaplace("place", scale=1, diameter=2).pairs(REPLACED, {}), 100_000
    losses = pair.outcomes.log_p - pair.outcomes.log_q
    for on_first, logs in ((True, pair.outcomes.log_p), (False, pair.outcomes.log_q)):
        scores = pair.sampler(np.random.default_rng(3), np.full(runs, on_first))
        assert np.abs(scores).max() <= 2 + 1e-12
        for level in np.linspace(-1.8, 1.8, 9):
            p = float(np.exp(logs)[losses <= level].sum())
            assert abs(float((scores <= level).mean()) - p) < 6 * math.sqrt(p * (1 - p) / runs) + 4e-3
    assert pair.sampler.numbers == 2


def test_geo_indistinguishability_is_a_claim_for_a_diameter():
    one = PlanarLaplace("place", scale=2 / epsilon, diameter=2)
    found = judged(one, PureDP(epsilon), REPLACED, model="local")
    assert (found.verdict, found.upper_ratio) == ("holds", 1)
    assert found.lower_ratio > 0.999
    quieter = judged(one.with_std(Fraction(19, 20)), PureDP(epsilon), REPLACED, model="local")
    assert quieter.verdict == "fails"
    assert quieter.lower_ratio == pytest.approx(20 / 19, rel=1e-3)
    assert judged(one, PureDP(epsilon), REPLACED, model="local", audit=True).verdict == "consistent"
    half = one.with_std(Fraction(1, 2))
    assert judged(half, PureDP(epsilon), REPLACED, model="local", audit=True).verdict == "violation"
    assert judged(one, ZCDP(epsilon / 2), REPLACED, model="local").verdict == "holds"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: PlanarLaplace("place", scale=1), "without a largest distance there is no ε"),
        (lambda: PlanarLaplace("place", scale=0, diameter=1), "above 0"),
        (lambda: PlanarLaplace("place", scale=1, diameter=0), "above 0"),
        (lambda: WishartNoise("w", variance=0, dimension=2), "above 0"),
        (lambda: WishartNoise("w", variance=1, dimension="1/2"), "whole"),
        (lambda: WishartNoise("w", variance=1, dimension=2, bound=-1), "above 0"),
        (lambda: WishartNoise("w", variance=0.5, dimension=2), "float"),
    ],
)
def test_nonsense_is_refused(make, why):
    with pytest.raises(PrivcheckError, match=why):
        judged(make(), PureDP(epsilon), REPLACED, model="local" if "planar" in make().facts.words else "central")


def test_relations_that_make_no_sense_are_refused():
    with pytest.raises(PrivcheckError, match="a user answers once"):
        PlanarLaplace("place", scale=1, diameter=1).cost(ADDED)
    with pytest.raises(PrivcheckError, match="a user has only one vector"):
        WishartNoise("w", variance=1, dimension=1).cost(AddRemoveOne("user", trajectories=2))
    with pytest.raises(PrivcheckError, match="model"):
        judged(WishartNoise("w", variance=1, dimension=1), PureDP(epsilon), REPLACED, model="local")
