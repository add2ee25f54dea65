"""Selections on a Poisson sample of the users, against laws that are mixed by hand."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small_declarations as small
from privcheck import account, verify
from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import NoisyMax, NoisyVotes, OnSample, SparseVector
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import DeclarationError
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck.terms.symbols import epsilon, exp, log, symbol
from privcheck.verification.outcome_loss import pair_delta
from privcheck_audits.releases.view import audit_releases

Q = symbol("q", "positive")


def declared(claim, *procedures, rate=Q, relation=None, e=1, q="1/10"):
    return Declaration(
        name="sampled",
        title="selections on a sample",
        source="a test",
        relation=relation or AddRemoveOne("user"),
        releases=(),
        procedures=(OnSample("winners", procedures=procedures, rate=rate),),
        claim=Claim(claim, source="a test"),
        parameters=(
            Parameter(name="epsilon", default=e, kind="positive", meaning="ε of what sees the sample"),
            Parameter(name="q", default=q, kind="positive", meaning="rate of the sample"),
        ),
    )


def gumbel(scale=None):
    return NoisyMax("winner", noise="gumbel", scale=2 / epsilon if scale is None else scale, candidates=2)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 40), st.integers(1, 20))
def test_both_bounds_enclose_a_mixture_made_by_hand(tenths, twentieths):
    e, q = tenths / 10, twentieths / 20
    judged = declared(PureDP(epsilon), gumbel(), e=Fraction(tenths, 10), q=Fraction(twentieths, 20))
    truth = math.log1p(q * math.expm1(e))
    assert verify(judged, {}).upper_ratio * e == pytest.approx(truth, rel=1e-9)
    assert verify(judged, {}).lower_ratio * e == pytest.approx(truth, rel=1e-3)
    # of two candidates with Gumbel noise the first wins with a logistic probability, of which the user moves the logit
    logits = np.linspace(-12, 12, 4001)
    one, other = (np.stack([1 / (1 + np.exp(-t)), 1 / (1 + np.exp(t))]) for t in (logits + e / 2, logits - e / 2))
    for at in (0.0, truth / 3):
        worst = 0.0
        for with_user, without in ((one, other), (other, one)):
            mixed = (1 - q) * without + q * with_user
            for p, r in ((mixed, without), (without, mixed)):
                worst = max(worst, float(np.maximum(p - math.exp(at) * r, 0).sum(axis=0).max()))
        upper = account(judged).at(judged.values()).delta(at)
        pairs = judged.releases[0].pairs(judged.relation, judged.values())
        lower = max(pair_delta(pair.outcomes, 1, at) for pair in pairs)
        assert lower <= worst * (1 + 1e-4) <= upper * (1 + 2e-4) + 1e-12
        assert lower >= 0.5 * worst or at > 0


def test_the_amplified_claim_is_proved_and_a_little_less_noise_refutes_it():
    exact = declared(PureDP(log(1 + Q * (exp(epsilon) - 1))), gumbel())
    verdict = verify(exact, {})
    assert (verdict.verdict, verdict.upper_ratio) == ("holds", 1)
    short = replace(exact, releases=(exact.releases[0].with_std(Fraction(95, 100)),))
    assert verify(short, {}).verdict == "fails"
    zeroed = replace(exact, relation=ZeroOut("user"))
    assert verify(zeroed, {}).verdict == "holds"


def test_several_selections_see_the_same_sample():
    sparse = SparseVector("answers", threshold_scale=2 / epsilon, query_scale=4 / epsilon, queries=3, positives=1)
    both = declared(PureDP(epsilon), gumbel(), sparse)
    alone = [declared(PureDP(epsilon), one) for one in (gumbel(), sparse)]
    pures = [account(one).at(one.values()).pure for one in (*alone, both)]
    inner = [one.cost(both.relation).pure.number(both.values()) for one in (gumbel(), sparse)]
    assert pures == pytest.approx([math.log1p(0.1 * math.expm1(e)) for e in (*inner, sum(inner))])
    assert pures[2] > pures[0] + pures[1]  # one sample: more than two samples of their own


def test_the_audit_finds_half_the_noise_and_accuses_nobody_else():
    """At confidence 1 − 1e-9, seeded."""
    honest = declared(ApproxDP(log(1 + Q * (exp(epsilon) - 1)), "1/1000"), gumbel(), e=2, q="1/2")
    broken = replace(honest, releases=(honest.releases[0].with_std(Fraction(1, 4)),))
    asked = {"trials": 100_000, "confidence": 1 - 1e-9, "delta": 1e-3}
    assert audit_releases(small.request(honest, **asked)).verdict == "consistent"
    assert audit_releases(small.request(broken, **asked)).verdict == "violation"


def test_nonsense_is_refused_when_it_is_made():
    gaussian = NoisyVotes("labels", noise="gaussian", spread=3, queries=2)
    for make, words in (
        (lambda: OnSample("x", procedures=(), rate=1), "expected a tuple of selections"),
        (
            lambda: OnSample("x", procedures=(OnSample("y", procedures=(gumbel(),), rate=1),), rate=1),
            "expected a tuple",
        ),
        (lambda: declared(PureDP(1), gumbel(), rate=2), "minus the rate of its sample"),
        (lambda: declared(PureDP(1), gumbel(), relation=ReplaceOne("user")), "declare AddRemoveOne or ZeroOut"),
        (lambda: declared(PureDP(1), gaussian), "not ε-DP"),
    ):
        with pytest.raises(DeclarationError, match=words):
            make()
