"""Randomised response and unary codes against enumeration: all inputs, all outputs, probabilities written out here."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from privcheck import Claim, PureDP
from privcheck.accounting import compose
from privcheck.commands.settings import resolve_setting
from privcheck.declare.procedures import (
    RandomisedResponse,
    UnaryEncoding,
    optimised_unary,
    permanent_response,
    symmetric_unary,
)
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import PrivcheckError
from privcheck.verification import verify
from privcheck.verification.outcome_loss import pair_delta, pure_loss, rho_loss
from privcheck_algorithms.gallery.rappor import rappor
from privcheck_audits.releases.view import audit_releases
from small_declarations import request

REPLACED = ReplaceOne("user")


def response(categories, epsilon):
    """Rows of probabilities of the answers, one for each true category."""
    others = 1 / (math.exp(epsilon) + categories - 1)
    return [[math.exp(epsilon) * others if i == j else others for j in range(categories)] for i in range(categories)]


def codes(bits, ones, keep, flip):
    """The same of all codes with so many ones, and all answers."""
    inputs = [code for code in itertools.product((0, 1), repeat=bits) if sum(code) == ones]
    chance = {(1, 1): keep, (1, 0): 1 - keep, (0, 1): flip, (0, 0): 1 - flip}
    answers = list(itertools.product((0, 1), repeat=bits))
    return [[math.prod(chance[pair] for pair in zip(code, said, strict=True)) for said in answers] for code in inputs]


def worst(rows, epsilon):
    """The largest δ(ε) over all pairs of inputs."""
    return max(
        math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(one, other, strict=True))
        for one, other in itertools.permutations(rows, 2)
    )


def worst_ratio(rows):
    return max(
        math.log(p / q) for one, other in itertools.permutations(rows, 2) for p, q in zip(one, other, strict=True)
    )


def worst_rho(rows):
    """The largest D_α/α over orders and pairs."""
    found = 0.0
    for one, other in itertools.permutations([np.array(row) for row in rows], 2):
        found = max(found, float(one @ np.log(one / other)))
        for order in np.geomspace(1.001, 100, 150).tolist():
            moment = float(logsumexp(order * np.log(one) + (1 - order) * np.log(other)))
            found = max(found, moment / (order - 1) / order)
    return found


CASES = [
    (RandomisedResponse("r", categories=2, epsilon="1/100"), response(2, 0.01)),
    (RandomisedResponse("r", categories=3, epsilon=1), response(3, 1.0)),
    (RandomisedResponse("r", categories=9, epsilon="7/2"), response(9, 3.5)),
    (RandomisedResponse("r", categories=5, epsilon=12), response(5, 12.0)),
    (UnaryEncoding("u", bits=5, ones=2, keep="4/5", flip="1/3"), codes(5, 2, 0.8, 1 / 3)),
    (UnaryEncoding("u", bits=6, ones=3, keep="1/2", flip="1/1000"), codes(6, 3, 0.5, 1e-3)),
    (symmetric_unary("u", bits=4, epsilon=2), codes(4, 1, 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)))),
    (optimised_unary("u", bits=4, epsilon=2), codes(4, 1, 0.5, 1 / (1 + math.exp(2)))),
    (permanent_response("u", bits=4, ones=2, f="1/2"), codes(4, 2, 0.75, 0.25)),
]


# [lemma unary-code]
@pytest.mark.slow
@pytest.mark.parametrize(("one", "rows"), CASES, ids=lambda x: getattr(x, "name", ""))
def test_prices_and_pairs_are_those_of_all_inputs(one, rows):
    cost, (pair,) = one.cost(REPLACED), one.pairs(REPLACED, {})
    pure, rho = cost.pure.number(rounding="up"), cost.rho.number(rounding="up")
    true, true_rho = worst_ratio(rows), worst_rho(rows)
    assert true * (1 - 1e-12) <= pure <= true * (1 + 1e-12)
    assert true_rho <= rho * (1 + 1e-12)
    assert rho <= true_rho * 2.2  # exact for two categories and for bits turned alike either way
    lost = pure_loss(pair.outcomes, pair.rounds)
    assert true * (1 - 1e-6) - 1e-10 <= lost <= true * (1 + 1e-12)
    assert rho_loss(pair.outcomes, pair.rounds) <= true_rho * (1 + 1e-3)
    curve = compose(*one.events(REPLACED, {}))
    for epsilon in (0.0, 0.4 * true, 0.8 * true):
        delta = worst(rows, epsilon)
        assert delta * (1 - 1e-9) <= curve.delta(epsilon=epsilon).upper <= delta * (1 + 1e-6) + 1e-12
        assert delta * 0.99 - 1e-6 <= pair_delta(pair.outcomes, pair.rounds, epsilon) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("one", [case[0] for case in CASES if case[1]])
def test_runs_follow_the_law_that_scores_them(one):
    """Of 10⁵ runs each score's share lies within 6 standard errors, but with probability 2e-9 each."""
    (pair,), rng, runs = one.pairs(REPLACED, {}), np.random.default_rng(5), 100_000
    losses = pair.outcomes.log_p - pair.outcomes.log_q
    for on_first, logs in ((True, pair.outcomes.log_p), (False, pair.outcomes.log_q)):
        law = {0.0: 1.0}
        for _ in range(pair.rounds):
            law_next: dict[float, float] = {}
            for (at, mass), (loss, p) in itertools.product(law.items(), zip(losses, np.exp(logs), strict=True)):
                key = round(at + loss, 9)
                law_next[key] = law_next.get(key, 0.0) + mass * p
            law = law_next
        scores = np.round(pair.sampler(rng, np.full(runs, on_first)), 9)
        for loss, p in law.items():
            share = float((np.abs(scores - loss) < 1e-6).mean())
            assert abs(share - p) < 6 * math.sqrt(p * (1 - p) / runs) + 1e-12
    assert pair.sampler.numbers >= 2


def test_rappor_loses_what_its_paper_says():
    """Erlingsson et al. 2014: h = 2, f = 1/2, q = 3/4, p = 1/2 are ε∞ = 4 ln 3 and ε₁ = 1.0743."""
    for given, figure in (({}, 4 * math.log(3)), ({"reports": "one"}, 1.0743)):
        setting = resolve_setting("rappor", given)
        assert setting.declared.claim.guarantee.epsilon.number(setting.values) == pytest.approx(figure, abs=5e-5)
        found = verify(setting.declared, setting.values)
        assert (found.verdict, found.upper_ratio) == ("holds", 1)
        assert found.lower_ratio == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"reports": "one", "f": "1/10"}, {"hashes": "7", "f": "99/100"}])
def test_a_twentieth_less_noise_is_refuted(given):
    setting = resolve_setting("rappor", given)
    quieter = tuple(one.with_std(Fraction(19, 20)) for one in setting.declared.releases)
    found = verify(replace(setting.declared, releases=quieter), setting.values)
    assert found.verdict == "fails"
    assert found.lower_ratio == pytest.approx(20 / 19, rel=1e-6)


@pytest.mark.parametrize("one", [RandomisedResponse("r", categories=4, epsilon=1), rappor({}).releases[0]])
def test_audits_find_half_of_the_noise_and_accept_the_declared_one(one):
    """At confidence 1 − 1e-9."""
    claimed = one.cost(REPLACED).pure
    for factor, verdict in ((1, "consistent"), (Fraction(1, 2), "violation")):
        declaration = replace(rappor({}), releases=(one.with_std(factor),), claim=Claim(PureDP(claimed), source="here"))
        assert audit_releases(request(declaration, trials=50_000, confidence=1 - 1e-9)).verdict == verdict


@pytest.mark.parametrize("relation", [AddRemoveOne("user"), ZeroOut("user"), ReplaceOne("user", trajectories=2)])
def test_only_the_replacement_of_one_record_makes_sense(relation):
    for one, _ in CASES[:5:4]:
        with pytest.raises(PrivcheckError, match="a user answers once"):
            one.cost(relation)


@pytest.mark.parametrize(
    "given",
    [{"hashes": 65}, {"f": 2}, {"f": 0}, {"reports": "one", "p": "4/5"}, {"bits": 3}],
)
def test_codes_that_mean_nothing_are_refused(given):
    with pytest.raises(PrivcheckError):
        resolve_setting("rappor", {key: str(value) for key, value in given.items()})
