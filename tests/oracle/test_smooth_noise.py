"""Noise on a smooth sensitivity, against maxima and integrals of the densities themselves."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import cauchy

import small_declarations as small
from privcheck import account, verify
from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import SmoothNoise
from privcheck.declare.procedures.smooth_noise import CauchyRuns, cauchy_outcomes
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck.terms.symbols import epsilon, exp
from privcheck.verification.outcome_loss import pair_delta
from privcheck_audits.releases.view import audit_releases


def declared(claim, *, smoothness, scale, data_dependent=""):
    return Declaration(
        name="median",
        title="a median with noise on its smooth sensitivity",
        source="a test",
        relation=ReplaceOne("user"),
        releases=(),
        procedures=(SmoothNoise("median", smoothness=smoothness, scale=scale),),
        claim=Claim(claim, source="a test", data_dependent=data_dependent),
        parameters=(Parameter(name="epsilon", default=1, kind="positive", meaning="ε"),),
    )


# [lemma smooth-cauchy]
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 30), st.integers(1, 60))
def test_the_price_bounds_the_largest_ratio_of_the_densities(twentieths, tenths):
    beta, s = twentieths / 20, tenths / 10
    judged = declared(PureDP(1), smoothness=Fraction(twentieths, 20), scale=Fraction(tenths, 10))
    price = account(judged).at(judged.values()).pure
    assert price == pytest.approx(beta + 2 * math.asinh(1 / (2 * s)))
    y = np.concatenate([np.linspace(-40, 40, 200_001), np.geomspace(40, 1e9, 2001), -np.geomspace(40, 1e9, 2001)])
    largest = 0.0
    for factor in (math.exp(-beta), 1.0, math.exp(beta)):
        for shift in (0.0, 0.5, 1.0):
            moved = shift * min(1.0, factor)  # both local sensitivities bound the move
            loss = np.abs(cauchy.logpdf(y, 0, s) - cauchy.logpdf(y, moved, s * factor))
            largest = max(largest, float(loss.max()))
    assert largest <= price * (1 + 1e-9)
    verdict = verify(judged, {})
    assert verdict.lower_ratio <= largest * (1 + 1e-6)
    assert verdict.lower_ratio >= 0.98 * largest - 1e-3
    if beta == 0:
        assert verdict.lower_ratio == pytest.approx(price, rel=1e-2)


@pytest.mark.parametrize(("s", "factor"), [(1.0, 1.0), (0.3, 1.5), (4.0, 1.1)])
def test_the_law_of_the_cells_by_integration(s, factor):
    outcomes = cauchy_outcomes((0.0, s), (1.0, s * factor))
    for at in (0.0, 0.2):

        def more(y, at=at):
            return max(0.0, cauchy.pdf(y, 0, s) - math.exp(at) * cauchy.pdf(y, 1, s * factor))

        truth = quad(more, -np.inf, 0.5, limit=500)[0] + quad(more, 0.5, np.inf, limit=500)[0]
        assert pair_delta(outcomes, 1, at) == pytest.approx(truth, rel=1e-4, abs=1e-7)


def test_runs_have_the_law_of_the_outputs():
    """Under D′ the ratio e^score has mean 1, under D e^−score: a test at 8 standard errors, seeded."""
    runs = CauchyRuns(first=(0.0, 1.0), second=(1.0, 1.3))
    for on_first in (True, False):
        scores = runs(np.random.default_rng(9), np.full(60_000, on_first))
        ratios = np.exp(-scores if on_first else scores)
        assert abs(ratios.mean() - 1) < 8 * ratios.std() / math.sqrt(60_000)


def test_it_holds_where_it_is_charged_and_is_undecided_where_its_price_is_of_the_data():
    half = (exp(epsilon / 4) - exp(-epsilon / 4)) / 2  # sinh(ε/4): 2·arsinh of it is ε/2
    charged = declared(PureDP(epsilon), smoothness=epsilon / 2, scale=Fraction(1_000_001, 1_000_000) / (2 * half))
    verdict = verify(charged, {})
    assert verdict.verdict == "holds"
    assert verdict.upper_ratio == pytest.approx(1, abs=1e-6)
    short = replace(charged, releases=(SmoothNoise("median", smoothness=0, scale=Fraction(95, 100)),))
    fails = replace(short, claim=Claim(PureDP("0.9624"), source="a test"))  # 2·arsinh(1/2)
    assert verify(fails, {}).verdict == "fails"
    of_data = replace(fails, claim=replace(fails.claim, data_dependent="the local sensitivity of this median"))
    assert verify(of_data, {}).verdict == "undecided"


def test_the_audit_finds_half_the_noise_and_accuses_nobody_else():
    """At confidence 1 − 1e-9, seeded."""
    honest = declared(ApproxDP("0.9625", "1/1000"), smoothness=0, scale=1)
    broken = replace(honest, releases=(honest.releases[0].with_std(Fraction(1, 2)),))
    asked = {"trials": 100_000, "confidence": 1 - 1e-9, "delta": 1e-3}
    assert audit_releases(small.request(honest, **asked)).verdict == "consistent"
    assert audit_releases(small.request(broken, **asked)).verdict == "violation"


def test_nonsense_is_refused_when_it_is_made():
    for given_, words in (({"smoothness": -1, "scale": 1}, "smoothness"), ({"smoothness": 1, "scale": 0}, "scale")):
        with pytest.raises((DeclarationError, ParameterError), match=words):
            declared(PureDP(1), **given_)
