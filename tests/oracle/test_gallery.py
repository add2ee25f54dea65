"""The gallery's verdicts against figures from elsewhere: another accountant, the literature, or integrals done here."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.integrate import quad
from scipy.stats import norm

from privcheck.accounting import compose
from privcheck.commands.settings import resolve_setting
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.procedures import NoisyMax, Outcomes
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.releases import Release
from privcheck.declare.schedules import Poisson
from privcheck.declare.statistics import ClippedSums
from privcheck.pricing import account
from privcheck.verification import verify
from privcheck.verification.outcome_loss import pair_delta, pair_epsilon, pure_loss, rho_loss


def judge(name, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values), setting


@pytest.mark.parametrize(
    ("rate", "noise_multiplier", "rounds"), [("0.01", "1.1", 1000), ("0.2", "3", 50), ("1", "8", 9)]
)
def test_dp_sgd_costs_what_another_accountant_says(rate, noise_multiplier, rounds):
    verdict, setting = judge("dp-sgd", rate=rate, noise_multiplier=noise_multiplier, rounds=rounds)
    peer = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-4)
    one = dp_accounting.GaussianDpEvent(float(noise_multiplier))
    peer.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(float(rate), one), rounds))
    theirs = peer.get_epsilon(1e-5)
    ours = account(setting.declared).at(setting.values).epsilon(1e-5)
    assert ours <= theirs * (1 + 1e-9)  # theirs is an upper bound on a grid
    assert ours == pytest.approx(theirs, rel=0.01)
    claimed = float(setting.values["epsilon"])
    assert verdict.lower_ratio * claimed <= ours
    assert verdict.lower_ratio * claimed >= 0.99 * ours


def test_dp_sgd_holds_under_one_relation_and_fails_under_the_other():
    assert judge("dp-sgd")[0].verdict == "holds"
    verdict = judge("dp-sgd", relation="replace-one")[0]
    assert verdict.verdict == "fails"
    assert 1.5 < verdict.lower_ratio <= verdict.upper_ratio


def laplace_wins_by_integral(scores, scale):
    """P(i has the largest noisy score) of Laplace noise, by integrating over its own noise."""

    def density(x):
        return math.exp(-abs(x) / scale) / (2 * scale)

    def below(x):
        return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

    def wins(i):
        rest = [score for j, score in enumerate(scores) if j != i]

        def at(x):
            return density(x) * math.prod(below(scores[i] + x - score) for score in rest)

        kinks = sorted({0.0, *(score - scores[i] for score in rest)})
        edges = [-60 * scale, *kinks, 60 * scale]
        return sum(quad(at, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in itertools.pairwise(edges))

    return [wins(i) for i in range(len(scores))]


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
@pytest.mark.parametrize("monotone", [False, True])
def test_noisy_max_never_loses_more_than_it_costs_and_attains_it(noise, monotone):
    for scale in ("1/3", "2", "40"):
        one = NoisyMax("winner", noise=noise, scale=scale, candidates=7, monotone=monotone)
        cost = one.cost(ReplaceOne()).pure.number()
        losses = [pure_loss(pair.outcomes, 1) for pair in one.pairs(ReplaceOne(), {})]
        assert max(losses) <= cost
        assert max(losses) >= 0.998 * cost


def test_the_laws_of_noisy_max_are_its_integrals():
    one = NoisyMax("winner", noise="laplace", scale="2", candidates=2)
    for pair in one.pairs(ReplaceOne(), {})[:6]:
        for scores, logs in zip(pair.data, (pair.outcomes.log_p, pair.outcomes.log_q), strict=True):
            values = [float(x) for x in scores.strip("()").split(",")]
            assert np.exp(logs) == pytest.approx(laplace_wins_by_integral(values, 2.0), abs=1e-9)


def test_runs_of_noisy_max_follow_its_law():
    """At 10⁵ runs an index's share lies within 6 standard errors but with probability 2e-9, six times over."""
    rng, runs = np.random.default_rng(7), 100_000
    for noise in ("laplace", "exponential", "gumbel"):
        pair = NoisyMax("winner", noise=noise, scale="2", candidates=2).pairs(ReplaceOne(), {})[2]
        for on_first, logs in ((True, pair.outcomes.log_p), (False, pair.outcomes.log_q)):
            scores = pair.sampler(rng, np.full(runs, on_first))
            ratios = pair.outcomes.log_p - pair.outcomes.log_q
            share = float((np.abs(scores - ratios[0]) < 1e-12).mean())
            p = math.exp(logs[0])
            assert abs(share - p) < 6 * math.sqrt(p * (1 - p) / runs)


def enumerated(outcomes, rounds):
    """Every sequence of outcomes with its probabilities on D and on D′: exact, for few."""
    p, q = np.exp(outcomes.log_p), np.exp(outcomes.log_q)
    for sequence in itertools.product(range(p.size), repeat=rounds):
        yield math.prod(p[i] for i in sequence), math.prod(q[i] for i in sequence)


@pytest.mark.parametrize("seed", range(12))
def test_what_outcomes_lose_is_below_and_near_the_enumerated_loss(seed):
    rng = np.random.default_rng(seed)
    size, rounds = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    p, q = rng.dirichlet(np.full(size, 0.7)), rng.dirichlet(np.full(size, 0.7))
    if seed % 3 == 0:
        q[0], q[1] = 0.0, q[0] + q[1]
    with np.errstate(divide="ignore"):
        outcomes = Outcomes(log_p=np.log(p), log_q=np.log(q))
    pairs = list(enumerated(outcomes, rounds))
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        true = math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in pairs)
        assert true * 0.999 - 1e-8 <= pair_delta(outcomes, rounds, epsilon) <= true
    for delta in (1e-3, 0.05, 0.3):
        epsilon = pair_epsilon(outcomes, rounds, delta)
        if 0 < epsilon < math.inf:
            assert math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in pairs) > delta
    if (q > 0).all():
        largest = max(abs(math.log(a / b)) for a, b in pairs)
        assert 0.999 * largest <= pure_loss(outcomes, rounds) <= largest
        divergence = math.fsum(a * math.log(a / b) for a, b in pairs)
        assert rho_loss(outcomes, rounds) >= divergence * 0.999
    else:
        assert pure_loss(outcomes, rounds) == rho_loss(outcomes, rounds) == math.inf


def test_noise_five_per_cent_too_small_is_refuted():
    setting = resolve_setting("noisy-max", {})
    quieter = tuple(procedure.with_std(Fraction(19, 20)) for procedure in setting.declared.releases)
    verdict = verify(replace(setting.declared, releases=quieter), setting.values)
    assert verdict.verdict == "fails"
    assert verdict.lower_ratio == pytest.approx(20 / 19, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [AddRemoveOne(), ZeroOut(), ReplaceOne()])
@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 9])
def test_laplace_noise_on_several_entries_of_a_sample_is_charged_together(relation, dimension):
    """ℓ₁ is √d·ℓ∞ here: moves of two sizes, of one sample; at most what the amplified ε of them all is."""
    sums = ClippedSums(dimension=dimension, norm=1)
    one = Release("sums", sums, Laplace(scale=2), schedule=Poisson(rate="1/10", rounds=3))
    curve = compose(*one.events(relation, {}))
    pure = one.cost(relation).pure.number(rounding="up")
    for delta in (1e-9, 1e-4, 1e-2):
        upper = curve.epsilon(delta=delta).upper
        lower = max(pair_epsilon(pair.outcomes, pair.rounds, delta) for pair in one.pairs(relation, {}))
        assert lower <= upper <= pure * (1 + 1e-9)


@pytest.mark.parametrize("candidates", [2, 20, 100])
def test_a_gaussian_noisy_max_priced_as_one_score_fails_where_there_are_many(candidates):
    """Two groups of equal scores, one of which gains on the other: the index is at least its μ of Gaussian DP."""
    std = 5.0

    def first_wins(ahead, n, k):  # the second group leads by that many standard deviations
        law = quad(
            lambda x: n * norm.pdf(x) * norm.cdf(x) ** (n - 1) * norm.cdf(x - ahead) ** k,
            -9, 9, points=(ahead, 0), limit=200,
        )  # fmt: skip
        return law[0]

    half = candidates // 2
    least = max(
        norm.ppf(first_wins(ahead - 2 / std, n, k)) - norm.ppf(first_wins(ahead, n, k))
        for ahead in np.linspace(-4, 6, 21)
        for n, k in ((half, candidates - half), (1, candidates - 1))
    )
    verdict, setting = judge("gaussian-noisy-max", priced="one-score", std=5, candidates=candidates)
    claimed = setting.declared.claim.guarantee.mu.number(setting.values)
    assert claimed == pytest.approx(2 / std)
    assert verdict.verdict == ("holds" if candidates == 2 else "fails")
    assert (least > claimed) == (candidates != 2)
    assert 0.9 <= verdict.lower_ratio * claimed / least <= 1.03  # its pairs are chosen at a few ε, those here on a grid
    assert judge("gaussian-noisy-max", std=5, candidates=candidates, epsilon=3)[0].verdict == "holds"


def test_a_gaussian_sparse_vector_priced_without_its_threshold_fails_where_there_are_many_queries():
    """One query costs less than was charged: the answer is that of a Gaussian with both noises."""
    one = judge("gaussian-sparse-vector", priced="threshold-free", queries=1)[0]
    assert (one.verdict, one.upper_ratio) == ("holds", pytest.approx(1 / 2))
    assert one.lower_ratio == pytest.approx(8 / math.hypot(4, 8) / 2, rel=0.01)
    assert judge("gaussian-sparse-vector", queries=1)[0].verdict == "holds"
    many = judge("gaussian-sparse-vector", priced="threshold-free")[0]
    assert many.verdict == "fails"
    assert many.lower_ratio > 1.2


@pytest.mark.parametrize(("k", "w"), [(1, 2), (2, "1/2"), (4, 2)])
def test_an_adaptive_sparse_vector_that_stops_late_gives_one_answer_too_many(k, w):
    kept = judge("adaptive-sparse-vector", k=k, w=w)[0]
    assert kept.verdict == "holds"
    assert kept.lower_ratio == pytest.approx(1, rel=1e-6)
    late = judge("adaptive-sparse-vector", k=k, w=w, stops="late")[0]
    weight = float(Fraction(w))
    assert late.verdict == "fails"
    assert late.lower_ratio == pytest.approx(1 + weight / (1 + weight) / k, rel=1e-6)
