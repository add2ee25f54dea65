"""Claims of Gaussian DP, Rényi DP and profiles, against roots, integrals and enumerations made here with SciPy."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, norm

from privcheck import verify
from privcheck.accounting import (
    claim_delta,
    claim_epsilon,
    compose,
    gdp_delta,
    gdp_epsilon,
    pure_delta,
    zcdp_delta,
    zcdp_to_epsilon,
)
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace, ShuffledBits
from privcheck.declare.procedures import NoisyMax
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import DeclarationError
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
from privcheck.terms.symbols import A, H, S, exp, rho, sqrt
from privcheck_audits.plan import pictures


def declared(guarantee, *mechanisms, procedures=(), relation=None, model="central", defaults=("1", "1")):
    """One step, so that an added user moves one count by 1."""
    releases = [Release(f"counts {i}", VisitCounts(H, S, A), noise) for i, noise in enumerate(mechanisms)]
    return Declaration(
        name="claimed",
        title="claimed",
        source="a test",
        relation=relation or AddRemoveOne("trajectory"),
        releases=tuple(releases),
        claim=Claim(guarantee, source="a test"),
        parameters=(
            Parameter(name="H", default=1, kind="count", meaning="steps"),
            Parameter(name="S", default=2, kind="count", meaning="states"),
            Parameter(name="A", default=2, kind="count", meaning="actions"),
            Parameter(name="rho", default="1", kind="positive", meaning="budget"),
        ),
        procedures=tuple(procedures),
        model=model,
    )


def gaussian_delta(mu, epsilon):
    if mu == 0:
        return max(0.0, 1 - math.exp(min(epsilon, 0.0)))
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def mixed_delta(mu, move, epsilon):
    """δ of an N(μ, 1) pair and a Laplace pair that moves by so many scales: over the Laplace loss by integration."""
    if mu == 0:
        return max(0.0, -math.expm1((epsilon - move) / 2))
    ends = gaussian_delta(mu, epsilon - move) / 2 + math.exp(-move) * gaussian_delta(mu, epsilon + move) / 2
    inside = quad(lambda x: math.exp(-x) / 2 * gaussian_delta(mu, epsilon - move + 2 * x), 0, move, limit=200)[0]
    return ends + inside


def least_mu(delta, last):
    """The largest μ that a point of the curve asks for, on a fine grid: a little below the truth."""
    asked = [(float(e), delta(float(e))) for e in np.linspace(0, last, 400, endpoint=False)]
    return max(brentq(lambda m, e=e, d=d: gaussian_delta(m, e) - d, 1e-9, 60) for e, d in asked if d > 1e-11)


@settings(max_examples=6, deadline=None)
@given(st.floats(0, 1.5), st.floats(0.05, 2.5))
def test_the_mu_of_gaussian_and_laplace_noise_together(mu, move):
    mechanisms = [Laplace(scale=Fraction(1 / move).limit_denominator(10**6))]
    exact_move = float(1 / mechanisms[0].scale.number({}))
    if mu >= 0.05:
        mechanisms.append(Gaussian(variance=Fraction(1 / mu**2).limit_denominator(10**6)))
        mu = 1 / math.sqrt(mechanisms[1].variance.number({}))
    else:
        mu = 0.0
    verdict = verify(declared(GaussianDP(1), *mechanisms), {})
    truth = least_mu(lambda e: mixed_delta(mu, exact_move, e), exact_move if mu == 0 else exact_move + mu * (mu + 5))
    assert verdict.lower_ratio <= truth * (1 + 1e-4)
    assert truth <= verdict.upper_ratio * (1 + 1e-9)
    assert verdict.upper_ratio <= truth * 1.002
    assert verdict.lower_ratio >= truth * 0.998


# [lemma gaussian-by-profile] [lemma mu-between-knots] [lemma mu-tail]
@settings(max_examples=10, deadline=None)
@given(st.sampled_from(["laplace", "exponential", "gumbel"]), st.integers(1, 6))
def test_a_mu_that_holds_lies_above_the_curve_everywhere(noise, tenths):
    procedure = NoisyMax("winner", noise=noise, scale=Fraction(tenths, 2), candidates=5)
    judged = declared(GaussianDP(1), procedures=[procedure])
    mu = verify(judged, {}).upper_ratio
    curve = compose(*procedure.events(judged.relation, judged.values()))
    for epsilon in np.random.default_rng(3).uniform(0, float(curve.epsilon(delta=0).value), 60):
        assert curve.delta(epsilon=epsilon).value <= gaussian_delta(mu, epsilon) * (1 + 1e-9) + 1e-15
    if noise != "gumbel":  # priced as one Laplace value, which asks for its total variation at ε = 0
        pure = float(curve.epsilon(delta=0).value)
        assert mu == pytest.approx(2 * norm.ppf((1 - math.expm1(-pure / 2)) / 2), rel=1e-3)


def test_gaussian_noise_is_judged_on_mu_for_all_parameters():
    exact = declared(GaussianDP(sqrt(2 * rho)), Gaussian(variance=H / (2 * rho)))
    assert (verify(exact, {}).verdict, verify(exact, {}).method, verify(exact, {}).upper_ratio) == (
        "holds",
        "proved",
        1,
    )
    mutant = declared(GaussianDP(sqrt(2 * rho)), Gaussian(variance=Fraction("0.9025") * H / (2 * rho)))
    verdict = verify(mutant, {})
    assert (verdict.verdict, verdict.repair) == (
        "fails",
        "multiply every noise's standard deviation by 1.05264 and the claim holds",
    )
    assert verdict.lower_ratio == pytest.approx(1 / 0.95)


@pytest.mark.slow
def test_a_sampled_gaussian_is_at_most_as_gaussian_as_the_whole_and_refuted_where_it_is_not():
    setting = resolve_setting("dp-sgd", {})
    mu = 1000**0.5 / 1.1  # all rounds, every user in each

    def verdict(m):
        claim = Claim(GaussianDP(Fraction(m)), source="a test")
        return verify(replace(setting.declared, claim=claim), setting.values)

    assert verdict(mu * 1.000001).verdict == "holds"
    small = verdict("0.1")
    assert small.verdict == "fails"
    # Bu et al. 2020, Corollary 2: μ ≈ q√(T(e^(1/σ²) − 1)) as rounds grow
    limit = 0.01 * math.sqrt(1000 * math.expm1(1 / 1.1**2))
    assert 0.9 * limit < small.lower_ratio * 0.1
    assert verdict("2").verdict == "undecided"


@settings(max_examples=30, deadline=None)
@given(st.floats(1.01, 40), st.floats(0.02, 6))
def test_renyi_divergences_of_laplace_noise_by_integration(order, scale):
    b = Fraction(scale).limit_denominator(1000)
    alpha = Fraction(order).limit_denominator(1000)
    a, x = float(alpha), float(1 / b)
    top = max(0.0, (a - 1) * x)  # of the exponent, taken out
    integral = quad(
        lambda t: 0.5 * math.exp(a * -abs(t) - (a - 1) * -abs(t - x) - top), -60, 60, points=[0, x], limit=400
    )[0]
    truth = (math.log(integral) + top) / (a - 1)
    verdict = verify(declared(RenyiDP(alpha, 1), Laplace(scale=b)), {})
    assert verdict.lower_ratio <= truth * (1 + 1e-7) + 1e-12
    assert verdict.lower_ratio == pytest.approx(truth, rel=1e-6)
    assert truth * (1 - 1e-7) <= verdict.upper_ratio <= truth * (1 + 1e-5) + 1e-9


def test_renyi_claims_of_gaussian_noise_and_selections():
    exact = declared(RenyiDP(4, 4 * rho), Gaussian(variance=H / (2 * rho)))
    assert (verify(exact, {}).verdict, verify(exact, {}).method) == ("holds", "proved")
    assert (
        verify(declared(RenyiDP(4, 4 * rho), Gaussian(variance=Fraction("0.9025") * H / (2 * rho))), {}).verdict
        == "fails"
    )
    judged = declared(RenyiDP(8, 1), procedures=[NoisyMax("winner", noise="gumbel", scale=1, candidates=2)])
    p = [1 / (1 + math.exp(g)) for g in (0.0, 2.0)]  # two candidates that tie in D and are 2 apart in D′
    pairs = [([q, 1 - q], [r, 1 - r]) for q, r in (p, p[::-1])]
    known = max(math.log(sum(u**8 * v**-7 for u, v in zip(*pair, strict=True))) / 7 for pair in pairs)
    verdict = verify(judged, {})
    assert known * (1 - 1e-6) <= verdict.lower_ratio <= verdict.upper_ratio <= 2


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 60)), min_size=1, max_size=4), st.integers(1, 40))
def test_a_profile_is_judged_at_every_point(points, variance):
    pairs = [(Fraction(e, 10), Fraction(1, 2 ** (d % 30 + 1))) for e, d in points]
    mechanism = Gaussian(variance=Fraction(variance, 4))
    judged = verify(declared(PrivacyProfile(pairs), mechanism), {})
    mu = math.sqrt(4 / variance)
    kept = [gaussian_delta(mu, float(e)) - float(d) for e, d in pairs]
    if all(abs(k) > 1e-9 for k in kept):
        assert judged.verdict == ("holds" if max(kept) < 0 else "fails")


def test_total_variation_behind_a_shuffler_is_the_binomials():
    """(0, δ): fair bits of n users in one counter, Bin(N, ½) against Bin(N, ½) + 1, by enumeration."""
    shuffled = declared(
        ApproxDP(0, "1/2"), ShuffledBits(users=20, threshold=10), relation=ReplaceOne("trajectory"), model="shuffle"
    )
    verdict = verify(shuffled, {})
    mechanism = shuffled.releases[0].mechanism.at(shuffled.values())
    noise = mechanism.coordinates() if hasattr(mechanism, "coordinates") else mechanism
    m, p = noise.bits
    trials = 20 * m
    k = np.arange(trials + 2)
    one = np.abs(binom.pmf(k, trials, p) - binom.pmf(k - 1, trials, p)).sum() / 2
    # a replaced user moves two counters, one up and one down: at least one's, at most the sum
    assert one * (1 - 1e-6) <= verdict.lower_ratio / 2 <= 2 * one
    assert verdict.lower_ratio <= verdict.upper_ratio <= 2


@pytest.mark.parametrize(
    "guarantee",
    [GaussianDP("1/2"), RenyiDP("3/2", "3/16"), RenyiDP(6, "3/4"), PrivacyProfile([(1, "1/50"), (0, "1/4")])],
)
def test_what_a_claim_implies_is_above_every_mechanism_that_keeps_it(guarantee):
    """N(½, 1) keeps all of these."""
    assert verify(declared(guarantee, Gaussian(variance=4)), {}).verdict == "holds"
    for epsilon in np.linspace(0, 4, 21).tolist():
        assert gaussian_delta(0.5, epsilon) <= claim_delta(guarantee, {}, epsilon) * (1 + 1e-9)
    for delta in (1e-12, 1e-6, 1e-2, 0.1, 0.25):
        implied = claim_epsilon(guarantee, {}, delta)
        assert math.isinf(implied) or gaussian_delta(0.5, implied) <= delta * (1 + 1e-9)
    errors = pictures.trace_claim(guarantee, {})
    levels = pictures._GRID
    truth = norm.cdf(norm.ppf(1 - levels) - 0.5)
    assert (errors <= truth + 1e-9).all()
    assert errors.max() > 0.5


def test_a_renyi_claim_converts_as_proposition_12_says():
    orders = RenyiDP(6, "3/4")
    delta = claim_delta(orders, {}, 2.0)
    assert delta == pytest.approx(math.exp(5 * (0.75 - 2)) / 5 * (1 - 1 / 6) ** 6)
    assert claim_epsilon(orders, {}, delta) == pytest.approx(2.0)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 9), st.floats(-9, 0.5), st.floats(-12, -0.01), st.floats(0, 20))
@example(8.9, -1.0, -0.01, 1.0)
def test_what_a_renyi_claim_implies_is_rounded_up_at_any_order(exponent, size, log_delta, more):
    """In 60 digits: at an order of a billion the logarithm of 1 − 1/α had lost the digits that count."""
    order, bound = Fraction(10**exponent), Fraction(repr(10**size))
    claim, delta = RenyiDP(order, bound), 10**log_delta
    epsilon = float(bound) + more / float(order)
    with mp.workdps(60):
        a, d = mp.mpf(order.numerator) / order.denominator, mp.mpf(bound.numerator) / bound.denominator
        least = d + mp.log(1 - 1 / a) - (mp.log(mp.mpf(delta)) + mp.log(a)) / (a - 1)
        value = claim_epsilon(claim, {}, delta)
        sizes = d + mp.log1p(1 / (a - 1)) - (mp.log(mp.mpf(delta)) - mp.log(a)) / (a - 1)
        assert max(mp.mpf(0), least) <= value <= max(mp.mpf(0), least + sizes * mp.mpf("2e-14"))
        log_least = (a - 1) * (d - mp.mpf(epsilon)) + a * mp.log(1 - 1 / a) - mp.log(a - 1)
        implied = mp.log(claim_delta(claim, {}, epsilon))
        sizes = (a - 1) * (d + epsilon) + a * mp.log1p(1 / (a - 1)) + abs(mp.log(a - 1))
        assert min(mp.mpf(0), log_least) <= implied <= min(mp.mpf(0), log_least + sizes * mp.mpf("2e-14") + 1e-14)


@pytest.mark.parametrize("claim", [RenyiDP(2, exp(1000)), RenyiDP(1 + Fraction(1, 10**40), 1)])
def test_a_renyi_claim_beyond_the_floats_implies_nothing(claim):
    """A divergence above all floats, and an order that they cannot tell from 1."""
    assert claim_epsilon(claim, {}, 0.0) == claim_epsilon(claim, {}, 0.5) == math.inf
    assert claim_delta(claim, {}, 0.0) == claim_delta(claim, {}, 3.0) == 1.0


def test_renyi_claims_at_their_ends():
    assert claim_epsilon(RenyiDP(3, "1/10"), {}, 0.0) == math.inf
    assert claim_delta(RenyiDP(3, "1/10"), {}, math.inf) == 0.0
    assert claim_delta(RenyiDP(3, exp(1000)), {}, math.inf) == 1.0  # it may be above any ε
    assert claim_delta(RenyiDP(2, 0), {}, 1e-9) <= 0.25
    assert claim_delta(RenyiDP(2, 5), {}, 0.0) == claim_delta(ApproxDP(1000, "1/2"), {}, 0.0) == 1.0  # no more
    assert 0 < claim_delta(RenyiDP(2, 1), {}, 1000.0) < 1e-300  # underflow is rounded up


def test_each_claim_implies_what_its_own_conversion_says():
    small, large = {"rho": Fraction(1, 8)}, {"rho": Fraction(3, 8)}
    for values in (small, large):
        for number in (1e-12, 1e-3, 0.4):
            known = float(values["rho"])
            assert claim_epsilon(ZCDP(rho), values, number) == zcdp_to_epsilon(known, number).upper
            assert claim_delta(ZCDP(rho), values, number * 5) == zcdp_delta(known, number * 5).upper
            assert claim_epsilon(GaussianDP(rho), values, number) == gdp_epsilon(known, number).upper
            assert claim_delta(GaussianDP(rho), values, number * 5) == gdp_delta(known, number * 5).upper
            assert claim_delta(PureDP(rho), values, number) == pure_delta(known, number).upper
    for number in (0.0, 1e-9, 0.5):
        assert claim_epsilon(PureDP("1/2"), {}, number) == 0.5
        assert claim_epsilon(ApproxDP("1/2", "1/4"), {}, number) == (0.5 if number == 0.5 else math.inf)
    assert claim_epsilon(ApproxDP("1/2", "1/4"), {}, 0.25) == 0.5
    assert claim_epsilon(PureDP(sqrt(2)), {}, 0.0) >= Fraction(math.sqrt(2)) > claim_epsilon(PureDP("1.414"), {}, 0.0)


@given(st.fractions(0, 3, max_denominator=50), st.fractions(0, 1, max_denominator=10**6), st.floats(0, 4))
def test_what_an_approximate_claim_implies_is_rounded_up(epsilon, given_up, at):
    """δ is lost outright, and the rest is ε-DP: δ + (1 − δ)·δ'(at), in fractions."""
    if given_up == 1:
        return
    rest = Fraction(pure_delta(epsilon, at).upper)
    implied = Fraction(claim_delta(ApproxDP(epsilon, given_up), {}, at))
    assert given_up + (1 - given_up) * rest <= implied <= 1
    assert implied <= (given_up + (1 - given_up) * rest) * (1 + Fraction(1, 10**14))


def test_a_profile_implies_the_least_of_its_points():
    points = ((1, "1e-6"), (2, "1e-9"), ("1/2", "1e-3"))
    profile, alone = PrivacyProfile(points), [ApproxDP(*point) for point in points]
    for delta, epsilon in ((1e-10, math.inf), (1e-9, 2.0), (1e-6, 1.0), (1e-4, 1.0), (0.1, 0.5)):
        assert claim_epsilon(profile, {}, delta) == epsilon == min(claim_epsilon(one, {}, delta) for one in alone)
    for epsilon in (0.0, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0):
        each = [claim_delta(one, {}, epsilon) for one in alone]
        assert claim_delta(profile, {}, epsilon) == min(each) < max(each)


def test_claims_that_mean_nothing_are_refused():
    for points in ((), 3, ((1, 2, 3),), (1, "1e-6")):
        with pytest.raises(DeclarationError, match="pairs of ε and δ"):
            PrivacyProfile(points)
    with pytest.raises(DeclarationError, match="order of RenyiDP"):
        declared(RenyiDP(1, 1), Gaussian(variance=1))
    with pytest.raises(DeclarationError, match="mu, of GaussianDP"):
        declared(GaussianDP(-1), Gaussian(variance=1))
    with pytest.raises(DeclarationError, match="delta, of ApproxDP"):
        declared(PrivacyProfile(((1, 2),)), Gaussian(variance=1))
    with pytest.raises(DeclarationError):
        Release("r", VisitCounts(H, S, A), Gaussian(variance=1), budget=GaussianDP(1))
