"""Local randomisers behind a shuffler, against laws that are enumerated here message by message."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, laplace

import small_declarations as small
from privcheck import account, verify
from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import ShuffledRandomizer
from privcheck.declare.procedures.shuffle import CountedBits, CountedCategories, CountedRounds
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing.calibration import least_noise
from privcheck.terms.guarantees import ApproxDP, PureDP
from privcheck.terms.symbols import epsilon, n
from privcheck.verification.outcome_loss import pair_delta
from privcheck_audits.releases.view import audit_releases


def declared(randomizer, *, claim, relation=None, model="shuffle", e0=1, users=10, **more):
    return Declaration(
        name="messages",
        title="shuffled messages",
        source="a test",
        relation=relation or ReplaceOne("user"),
        releases=(),
        procedures=(ShuffledRandomizer("messages", randomizer=randomizer, epsilon0=epsilon, senders=n, **more),),
        claim=Claim(claim, source="a test"),
        parameters=(
            Parameter(name="epsilon", default=e0, kind="positive", meaning="ε₀"),
            Parameter(name="n", default=users, kind="count", meaning="users"),
        ),
        model=model,
    )


def response(k, e0, held):
    """The law of one k-ary response."""
    total = math.exp(e0) + k - 1
    return [(math.exp(e0) if j == held else 1.0) / total for j in range(k)]


def multisets(laws):
    """The law of the multiset of messages, by every sequence of them."""
    seen = Counter()
    for messages in itertools.product(*(range(len(law)) for law in laws)):
        seen[tuple(sorted(messages))] += math.prod(law[m] for law, m in zip(laws, messages, strict=True))
    return seen


def hockey_stick(p, q, e):
    return sum(max(0.0, p[o] - math.exp(e) * q[o]) for o in p.keys() | q.keys())


def worst(k, e0, users, e):
    """δ(ε) over all values of the others and of the user."""
    return max(
        hockey_stick(
            multisets([response(k, e0, x) for x in (first, *others)]),
            multisets([response(k, e0, x) for x in (second, *others)]),
            e,
        )
        for others in itertools.combinations_with_replacement(range(k), users - 1)
        for first, second in itertools.permutations(range(k), 2)
    )


# [lemma clones]
@pytest.mark.parametrize(("k", "e0", "users"), [(2, 1.0, 2), (2, 2.0, 5), (3, 1.0, 4), (3, 3.0, 3), (4, 0.5, 3)])
def test_both_bounds_enclose_the_worst_case_over_all_data(k, e0, users):
    kind = {"randomizer": "binary response"} if k == 2 else {"randomizer": "k-ary response", "categories": k}
    for e in (0.0, 0.1 * e0, 0.5 * e0):
        truth = worst(k, e0, users, e)
        judged = declared(claim=ApproxDP(0, "1/2"), e0=Fraction(e0), users=users, **kind)
        upper = account(judged).at(judged.values()).delta(e)
        lower = max(pair_delta(p.outcomes, 1, e) for p in judged.releases[0].pairs(judged.relation, judged.values()))
        assert lower <= truth * (1 + 1e-12) <= upper * (1 + 1e-9) + 1e-15
        if k == 2:
            assert lower >= 0.9 * truth  # of few users others who differ are worst
            assert upper == pytest.approx(truth, rel=1e-2)
        else:
            assert lower >= 0.4 * truth


# [lemma shuffled-counts]
@pytest.mark.parametrize(("k", "e0", "users"), [(3, 1.0, 4), (5, 2.0, 3), (3, 0.01, 5)])
def test_the_law_of_two_counted_categories_is_the_enumerated_one(k, e0, users):
    laws = []
    for held in (1, 2):
        law = Counter()
        for messages, mass in multisets([response(k, e0, held), *[response(k, e0, 0)] * (users - 1)]).items():
            law[messages.count(1), messages.count(2)] += mass
        laws.append(law)
    outcomes = CountedCategories(users=users, epsilon=e0, categories=k).outcomes()
    for e in (0.0, e0 / 10, e0 / 2):
        assert pair_delta(outcomes, 1, e) == pytest.approx(hockey_stick(*laws, e), rel=1e-4, abs=1e-12)
        assert pair_delta(outcomes, 1, e) <= hockey_stick(*laws, e) + 1e-14


# [lemma shuffled-counts]
@pytest.mark.parametrize(("users", "first", "others"), [(1, 0.9, 0.1), (7, 0.5, 0.01), (3000, 0.7, 0.3)])
def test_the_law_of_counted_bits_is_a_binomials(users, first, others):
    k = np.arange(users + 1)
    q = binom.pmf(k, users, others)
    p = first * binom.pmf(k - 1, users - 1, others) + (1 - first) * binom.pmf(k, users - 1, others)
    outcomes = CountedBits(users=users, first=first, others=others).outcomes()
    for e in (0.0, 0.05, 1.0):
        truth = float(np.maximum(p - math.exp(e) * q, 0).sum())
        assert pair_delta(outcomes, 1, e) == pytest.approx(truth, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(
    "counted", [CountedBits(users=40, first=0.8, others=0.2), CountedCategories(users=40, epsilon=2.0, categories=5)]
)
@pytest.mark.parametrize("swapped", [False, True])
def test_runs_have_the_law_of_the_counts(counted, swapped):
    """Under D′ the ratio e^score has mean 1, under D e^−score: a test at 8 standard errors, seeded."""
    runs = CountedRounds(counted=counted, rounds=2, swapped=swapped)
    for on_first in (True, False):
        scores = runs(np.random.default_rng(7), np.full(40_000, on_first))
        ratios = np.exp(-scores if on_first else scores)
        assert abs(ratios.mean() - 1) < 8 * ratios.std() / 200
        assert scores.mean() > 0 if on_first else scores.mean() < 0


def test_laplace_messages_are_counted_above_a_threshold():
    e0, users = 2.0, 30
    judged = declared("laplace", claim=PureDP(epsilon), e0=2, users=users)
    pairs = judged.releases[0].pairs(judged.relation, judged.values())
    truth = []
    for threshold in (0.5, 1.0):
        one, zero = (laplace.sf(threshold, loc=x, scale=1 / e0) for x in (1.0, 0.0))
        k = np.arange(users + 1)
        q = binom.pmf(k, users, zero)
        p = one * binom.pmf(k - 1, users - 1, zero) + (1 - one) * binom.pmf(k, users - 1, zero)
        truth += [np.maximum(p - q, 0).sum(), np.maximum(q - p, 0).sum()]
    assert [pair_delta(pair.outcomes, 1, 0.0) for pair in pairs] == pytest.approx(truth)
    assert verify(judged, {}).verdict == "holds"


def test_a_claim_that_is_5_percent_short_of_noise_is_refuted():
    judged = declared("binary response", claim=ApproxDP("0.95", "1e-6"), e0=2, users=200)
    assert judged.releases[0].std(judged.values()) == pytest.approx(math.exp(1) / math.expm1(2))
    needed = least_noise(judged, judged.values(), epsilon=0.95, delta=1e-6).releases[0]
    enough = replace(judged, releases=(judged.releases[0].with_std(Fraction(needed.ratio * 1.001)),))
    short = replace(judged, releases=(judged.releases[0].with_std(Fraction(needed.ratio * 0.95)),))
    assert [verify(one, {}).verdict for one in (enough, short)] == ["holds", "fails"]


@pytest.mark.parametrize(
    ("randomizer", "more"), [("binary response", {}), ("k-ary response", {"categories": 4}), ("laplace", {})]
)
def test_other_noise_is_other_noise(randomizer, more):
    procedure = ShuffledRandomizer("messages", randomizer=randomizer, epsilon0=2, senders=10, **more)
    for factor in (Fraction(1, 3), Fraction(1), Fraction(5)):
        assert procedure.with_std(factor).std({}) == pytest.approx(float(factor) * procedure.std({}))


def test_the_audit_finds_half_the_noise_and_accuses_nobody_else():
    """At confidence 1 − 1e-9, seeded."""
    honest = declared("binary response", claim=ApproxDP("0.23", "1/100"), e0=2, users=200)
    assert 0.22 < account(honest).at(honest.values()).epsilon(0.01) < 0.23
    broken = replace(honest, releases=(honest.releases[0].with_std(Fraction(1, 2)),))
    asked = {"trials": 50_000, "confidence": 1 - 1e-9, "delta": 0.01}
    assert audit_releases(small.request(honest, **asked)).verdict == "consistent"
    assert audit_releases(small.request(broken, **asked)).verdict == "violation"


def test_rounds_compose_and_any_randomizer_has_no_witness():
    many = declared("binary response", claim=ApproxDP(1, "1e-6"), users=200, rounds=5)
    one = declared("binary response", claim=ApproxDP(1, "1e-6"), users=200)
    epsilons = [account(judged).at(judged.values()).epsilon(1e-6) for judged in (one, many)]
    assert epsilons[0] < epsilons[1] < 5 * epsilons[0]
    assert verify(many, {}).lower_ratio == pytest.approx(epsilons[1], rel=0.02)
    assert verify(declared("any", claim=ApproxDP("1/100", "1e-6")), {}).verdict == "undecided"


def test_nonsense_is_refused_when_it_is_made():
    for more, words in (
        ({"relation": AddRemoveOne("user")}, "declare ReplaceOne or ZeroOut"),
        ({"relation": ReplaceOne("user", trajectories=2)}, "declare the relation for one"),
        ({"model": "central"}, "model 'shuffle'"),
        ({"randomizer": "coin"}, "randomizer"),
        ({"categories": 3}, "declare randomizer='k-ary response'"),
        ({"randomizer": "k-ary response", "categories": 2}, "the number of categories"),
        ({"rounds": Fraction(1, 2)}, "rounds"),
    ):
        given = {"randomizer": "binary response", "claim": PureDP(epsilon), **more}
        with pytest.raises((DeclarationError, ParameterError), match=words):
            declared(given.pop("randomizer"), **given)
    assert verify(declared("binary response", claim=PureDP(epsilon), relation=ZeroOut("user")), {}).method == "proved"
