"""Histograms with a threshold against the mechanism itself: censored noise on every count, integrated here."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.accounting import compose
from privcheck.declare.procedures import StabilityHistogram
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import PrivcheckError
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import delta, epsilon, log
from privcheck.verification.outcome_loss import pair_delta
from privcheck_audits.releases.view import audit_releases
from small_declarations import request

SURE = 1 - 1e-9
ADDED, REPLACED = AddRemoveOne("user"), ReplaceOne("user")


def one_key(law, threshold, counts, e):
    """δ(ε) between two counts of one key: nothing is shown where the noisy count is below τ, and nothing of count 0."""
    first, second = (law(loc=count) if count else None for count in counts)
    hidden = [one.cdf(threshold) if one else 1.0 for one in (first, second)]
    lost = max(0.0, hidden[0] - math.exp(e) * hidden[1])
    if first is None:
        return lost
    if second is None:
        return lost + float(first.sf(threshold))
    kinks = sorted({threshold, *(count for count in counts if count > threshold), max(threshold, *counts) + 60})
    return lost + math.fsum(
        quad(lambda x: max(0.0, first.pdf(x) - math.exp(e) * second.pdf(x)), a, b, epsabs=1e-13, limit=200)[0]
        for a, b in itertools.pairwise(kinks)
    )


LAWS = {
    "scale": lambda spread: lambda loc: stats.laplace(loc=loc, scale=spread),
    "std": lambda spread: lambda loc: stats.norm(loc=loc, scale=spread),
}


# [lemma unknown-keys]
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize(("spread", "threshold"), [(1.0, 5.0), (2.0, 4.0), (0.5, 9.0)])
def test_the_price_is_above_and_the_pairs_below_what_every_count_loses(kind, spread, threshold):
    one = StabilityHistogram("h", threshold=Fraction(threshold), **{kind: Fraction(spread)})
    curve, law = compose(*one.events(ADDED, {})), LAWS[kind](spread)
    counts = [(n + 1, n) for n in (0, 1, 2, int(threshold), 60)]
    for e in (0.0, 0.3, 1.0, 2.5):
        true = max(one_key(law, threshold, pair[::way], e) for pair in counts for way in (1, -1))
        known = max(pair_delta(pair.outcomes, pair.rounds, e) for pair in one.pairs(ADDED, {}))
        assert curve.delta(epsilon=e).upper >= true * (1 - 1e-7)
        assert known <= true * (1 + 1e-6) + 1e-9
        assert known >= 0.99 * true - 1e-7


def test_keys_multiply_and_replacing_moves_both():
    one = StabilityHistogram("h", threshold=20, scale=2, keys=3)
    own = 1 - (1 - math.exp(-9.5) / 2) ** 3
    for relation, keys in ((ADDED, 3), (ZeroOut("user"), 3), (REPLACED, 6)):
        assert compose(*one.events(relation, {})).delta(epsilon=keys / 2).value >= own
        deltas = [pair_delta(pair.outcomes, pair.rounds, keys / 2 - 1e-6) for pair in one.pairs(relation, {})]
        assert max(deltas) >= own * (1 - 1e-6)
        assert one.cost(relation).charged.number() == keys
    gaussian = StabilityHistogram("h", threshold=20, std=2, keys=3)
    assert gaussian.cost(REPLACED).charged.number() == pytest.approx(math.sqrt(6))


def declared(relation=ADDED, factor=1):
    """Scale and threshold of Korolova et al.'s kind, for (ε, δ)-DP under adding or removing a user with one key."""
    one = StabilityHistogram("words", scale=1 / epsilon, threshold=1 + log(1 / (2 * delta)) / epsilon + "1/1000")
    return Declaration(
        name="words", title="", source="", relation=relation, releases=(),
        procedures=(one if factor == 1 else one.with_std(Fraction(factor)),),
        claim=Claim(ApproxDP(epsilon, delta), source="here"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε"),
            Parameter(name="delta", default="1/100000", kind="probability", meaning="δ"),
        ),
    )  # fmt: skip


def judged(*given, **more):
    declaration = declared(*given, **more)
    return verify(declaration, declaration.values())


def test_the_published_threshold_is_private_and_no_smaller_one_is():
    found = judged()
    assert (found.verdict, found.lower_ratio >= 0.99) == ("holds", True)
    assert judged(factor="6/5").verdict == "holds"
    quieter = judged(factor="19/20")
    assert (quieter.verdict, quieter.lower_ratio > 1.02) == ("fails", True)
    assert judged(REPLACED).verdict == "fails"
    low = declared()
    low = replace(low, releases=(StabilityHistogram("words", scale=1 / epsilon, threshold=log(1 / delta) / 2),))
    found = verify(low, low.values())
    assert (found.verdict, math.isinf(found.lower_ratio)) == ("fails", True)
    assert "held by no other user" in found.witness.words


@pytest.mark.parametrize("relation", [ADDED, REPLACED])
def test_runs_follow_the_laws(relation):
    """Of 10⁵ runs the share of a certain score lies within 6 standard errors, but with probability 2e-9."""
    one, rng, runs = StabilityHistogram("h", threshold=4, scale=2, keys=2), np.random.default_rng(3), 100_000
    p = 1 - (1 - math.exp(-1.5) / 2) ** 2
    for pair in one.pairs(relation, {})[1:]:
        for on_first in (True, False):
            scores = pair.sampler(rng, np.full(runs, on_first))
            share, expected = float(np.isinf(scores).mean()), p
            if relation is ADDED and ("none" in pair.data[0]) == on_first:
                expected = 0.0
            assert abs(share - expected) <= 6 * math.sqrt(expected * (1 - expected) / runs)
            assert (scores[np.isinf(scores)] > 0).all() == on_first or not np.isinf(scores).any()


def test_audits_find_half_of_the_noise():
    honest = audit_releases(request(declared(), trials=100_000, confidence=SURE))
    assert honest.verdict == "consistent"
    assert audit_releases(request(declared(factor="1/2"), trials=100_000, confidence=SURE)).verdict == "violation"


@pytest.mark.parametrize(
    "given",
    [
        {"threshold": 5}, {"threshold": 5, "scale": 1, "std": 1}, {"threshold": 1, "scale": 1},
        {"threshold": 5, "scale": 0}, {"threshold": 5, "scale": 1, "keys": "1/2"},
        {"threshold": 5, "scale": 1, "contribution": 0},
    ],
)  # fmt: skip
def test_nonsense_is_refused(given):
    with pytest.raises(PrivcheckError):
        replace(declared(), releases=(StabilityHistogram("words", **given),))
    several = AddRemoveOne("user", trajectories=2)
    with pytest.raises(PrivcheckError, match="bound all data of a user"):
        StabilityHistogram("words", scale=1, threshold=5).cost(several)
