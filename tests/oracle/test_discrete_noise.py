"""Noise on the integers against its masses, summed here: samplers, prices, bounds from below, verdicts."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mutants
import small_declarations as small
from privcheck import Claim, Declaration, Parameter, account, verify
from privcheck.declare.declaration import Release
from privcheck.declare.mechanisms import DiscreteGaussian, DiscreteGaussianNoise, DiscreteLaplace, DiscreteLaplaceNoise
from privcheck.declare.procedures import Outcomes
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.schedules import Poisson, Tree
from privcheck.declare.statistics import Column, GramMatrices, PooledVisitCounts, RewardSums, Stated, VisitCounts
from privcheck.errors import PrivcheckError
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, S, epsilon, expression, rho
from privcheck.verification.outcome_loss import pair_delta, pure_loss, rho_loss
from privcheck_audits.releases.view import audit_releases

SURE = 1 - 1e-9
EXPONENT = {"laplace": lambda x, s: abs(x) / s, "gaussian": lambda x, s: x * x / (2 * s * s)}
NOISE = {"laplace": DiscreteLaplaceNoise, "gaussian": DiscreteGaussianNoise}


def masses(kind, scale, reach):
    weights = [math.exp(-EXPONENT[kind](x, scale)) for x in range(-reach, reach + 1)]
    total = math.fsum(weights)
    return np.array([w / total for w in weights])


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 40.0])
def test_samplers_draw_their_masses(kind, scale):
    """The distribution functions of 2·10⁵ draws are within 0.009 but with probability below 1e-13 (DKW)."""
    reach = math.ceil(60 * scale)
    sample = NOISE[kind](scale=scale).draw(np.random.default_rng(4), (2, 100_000)).ravel()
    assert np.array_equal(sample, np.rint(sample))
    found = np.bincount((np.clip(sample, -reach, reach) + reach).astype(int), minlength=2 * reach + 1)
    true = masses(kind, scale, reach)
    assert np.abs(found.cumsum() / sample.size - true.cumsum()).max() < 0.009
    squares = float(true @ np.arange(-reach, reach + 1) ** 2)
    std = NOISE[kind](scale=scale).std
    assert std >= math.sqrt(squares) * (1 - 1e-9)
    assert kind == "gaussian" or std == pytest.approx(math.sqrt(squares), rel=1e-9)


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize(("scale", "change"), [(0.4, 1), (1.0, 1), (1.5, 3), (6.0, 2), (6.0, 11)])
def test_laws_of_a_move_lose_what_the_masses_say(kind, scale, change):
    reach = math.ceil(45 * scale) + change
    q = masses(kind, scale, reach)
    p = np.roll(q, change)  # what comes back at the other end is less than 1e-300, or e^-45 of Laplace's
    inside = slice(change, None)
    laws = NOISE[kind](scale=scale).moved_law(change)
    outcomes = Outcomes(log_p=laws[0], log_q=laws[1])
    for e in (0.0, 0.3, 1.0, 2.0):
        true = float(np.maximum(p[inside] - math.exp(e) * q[inside], 0).sum())
        assert true * (1 - 1e-6) - 1e-15 <= pair_delta(outcomes, 1, e) <= true * (1 + 1e-9) + 1e-15
    kept = (p > 0) & (q > 0)
    kept[:change] = False
    divergence = float(p[kept] @ np.log(p[kept] / q[kept]))
    changes, spread = [(Fraction(change), 1)], Fraction(scale) ** (2 if kind == "gaussian" else 1)
    assert float(NOISE[kind].loss(changes, spread, pure=False)) == pytest.approx(divergence, rel=1e-9)
    if kind == "laplace":
        assert pure_loss(outcomes, 1) == pytest.approx(change / scale, rel=1e-8)
        mechanism = DiscreteLaplace(scale=Fraction(scale))
        sensitivity = VisitCounts(1, 1, 1).sensitivity(AddRemoveOne())
        moved = replace(sensitivity, l1=expression(change), l2=expression(change), linf=expression(change))
        price = mechanism.zcdp(moved).number()
        assert rho_loss(outcomes, 1) <= price * (1 + 1e-12)
        if change == 1:
            assert price == pytest.approx(divergence, rel=1e-9)


def declared(mechanism, claim, relation=AddRemoveOne(), **more):  # noqa: B008 - a frozen value
    release = Release("visits", VisitCounts(H, S, A), mechanism, **more)
    parameters = (*small.SIZES, small.RHO, small.EPSILON)
    return Declaration(
        name="small", title="", source="", relation=relation, releases=(release,), claim=Claim(claim, source="here"),
        parameters=(*parameters, Parameter(name="K", default=9, kind="count", least=2, meaning="users")),
    )  # fmt: skip


def judged(*given, sets=None, **more):
    declaration = declared(*given, **more)
    return verify(declaration, declaration.values(sets or {}))


# [lemma discrete-laplace-rho]
@pytest.mark.parametrize("relation", [AddRemoveOne(), ReplaceOne()])
@pytest.mark.parametrize("more", [{}, {"schedule": Tree(leaves=8)}])
def test_claims_are_decided_from_both_sides(relation, more):
    if more and isinstance(relation, AddRemoveOne):
        relation = ReplaceOne()
    release = Release("visits", VisitCounts(H, S, A), DiscreteLaplace(scale=1), **more)
    charged = release.charged(relation)
    cases = [
        (DiscreteLaplace(scale=charged.l1 / epsilon), PureDP(epsilon)),
        (DiscreteGaussian(variance=charged.l2**2 / (2 * rho)), ZCDP(rho)),
    ]
    for mechanism, claim in cases:
        found = judged(mechanism, claim, relation=relation, **more)
        assert (found.verdict, found.upper_ratio) == ("holds", 1)
        assert found.lower_ratio == pytest.approx(1, rel=1e-9)
        power = 2 if isinstance(claim, ZCDP) else 1
        less = judged(
            mechanism.with_spread(mechanism.spread * Fraction(19, 20) ** power), claim, relation=relation, **more
        )
        assert less.verdict == "fails"
        assert less.lower_ratio == pytest.approx((20 / 19) ** power, rel=1e-9)


@pytest.mark.parametrize("kind", NOISE)
def test_epsilon_at_delta_is_that_of_the_masses_convolved(kind):
    """Replacing a user at H = 1 moves two cells by one each, in opposite directions."""
    scale, delta = 3.0, 1e-3
    q = masses(kind, scale, 140 if kind == "laplace" else 100)
    p = np.roll(q, 1)
    losses = [np.log(q[1:] / p[1:]), np.log(p[1:] / q[1:])]
    total = {}
    for (l1, m1), (l2, m2) in itertools.product(zip(losses[1], p[1:], strict=True), zip(losses[0], q[1:], strict=True)):
        key = round(float(l1 + l2), 9)
        total[key] = total.get(key, 0.0) + float(m1 * m2)

    def curve(e):
        return math.fsum(m * -math.expm1(e - loss) for loss, m in total.items() if loss > e)

    low, high = 0.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    mechanism = DiscreteLaplace(scale=3) if kind == "laplace" else DiscreteGaussian(variance=9)
    declaration = declared(mechanism, ApproxDP(epsilon, "1/1000"), relation=ReplaceOne())
    values = declaration.values({"epsilon": Fraction(1, 10)})
    cost = account(declaration).at(values).epsilon(delta)
    assert high * (1 - 1e-7) <= cost <= high * 1.001
    found = verify(declaration, values)
    assert found.verdict == "fails"
    assert high * 0.995 <= found.lower_ratio / 10 <= high * (1 + 1e-7)


def test_tables_pooled_over_steps_are_charged_as_vectors():
    """A user may move a cell by H: of a vector of integers only its length is known."""
    for mechanism in (DiscreteLaplace(scale=3), DiscreteGaussian(variance=9)):
        release = Release("visits", PooledVisitCounts(H, S, A), mechanism)
        declaration = small.declared(ApproxDP(epsilon, "1/1000"), (release,), small.EPSILON, ReplaceOne())
        values = declaration.values({"H": 4, "epsilon": Fraction(1, 100)})
        found = verify(declaration, values)
        assert found.verdict == "fails"
        assert found.lower_ratio <= found.upper_ratio


def test_audits_take_it_and_find_half_of_the_noise():
    for mechanism, claim in ((DiscreteLaplace(scale=1 / epsilon), PureDP(epsilon)),
                             (DiscreteGaussian(variance=1 / (2 * rho)), ZCDP(rho))):  # fmt: skip
        declaration = declared(mechanism, claim)
        honest = audit_releases(small.request(declaration, trials=50_000, confidence=SURE))
        assert honest.verdict == "consistent"
        broken = mutants.rescaled_noise(declaration, 0.5)
        assert audit_releases(small.request(broken, trials=50_000, confidence=SURE)).verdict == "violation"


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(scale=1), DiscreteGaussian(variance=1)])
def test_only_whole_numbers_are_hidden(mechanism):
    halves = Stated("halves", l1=1, compute=lambda rows: len(rows) / 2, records=lambda _values, _rng: 0)
    gram = GramMatrices(name="G", steps=H, dimension=S, vector=Column("x", 1, "x"))
    for statistic in (RewardSums(H, S, A), halves, gram):
        with pytest.raises(PrivcheckError, match="hides whole numbers"):
            Release("r", statistic, mechanism)
    Release("r", Stated("n", l1=1, compute=len, records=lambda _values, _rng: 0, whole=True), mechanism)
    with pytest.raises(PrivcheckError, match="no dominating pair"):
        declared(mechanism, PureDP(epsilon), schedule=Poisson(rate="1/10", rounds=2))
    with pytest.raises(PrivcheckError, match="above 0"):
        declared(mechanism.with_spread(expression(0)), PureDP(epsilon))
