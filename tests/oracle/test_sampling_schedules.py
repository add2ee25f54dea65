"""Sampling schedules against enumeration: every batch, order or place written out, outputs integrated on a grid."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import laplace, norm

from privcheck.accounting import compose
from privcheck.accounting.engine.below import merge_outcomes
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim, Declaration, Release
from privcheck.declare.mechanisms import Gaussian, GaussianNoise, Laplace, LaplaceNoise
from privcheck.declare.procedures.mixtures import Mixture, SampledRounds
from privcheck.declare.procedures.shuffled_epochs import ShuffledEpoch, ShuffledEpochRuns
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import BallsInBins, Poisson, ShuffledEpochs, WithoutReplacement, WithReplacement
from privcheck.declare.statistics import ClippedSums
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.verification import verify
from privcheck.verification.outcome_loss import pair_delta, pure_loss, rho_loss

ADD, ZERO, SWAP = AddRemoveOne("user"), ZeroOut("user"), ReplaceOne("user")
RELATIONS = [ADD, ZERO, SWAP]
EPSILONS = (0.0, 0.3, 1.0, 2.5)


def declared(schedule, relation, noise=None, claim=None):
    release = Release("g", ClippedSums(dimension=1, norm=1), noise or Gaussian(variance="1.21"), schedule=schedule)
    claim = Claim(claim or ApproxDP(2, "1e-5"), source="Theorem 1")
    return Declaration(
        name="x", title="", source="", relation=relation, releases=(release,), claim=claim, parameters=()
    )


def procedure(schedule, relation, noise=None):
    return declared(schedule, relation, noise).releases[0]


def upper(schedule, relation, epsilon, noise=None):
    events = procedure(schedule, relation, noise).events(relation, {})
    return compose(*events).delta(epsilon=epsilon).upper


def lower(schedule, relation, epsilon, noise=None):
    pairs = procedure(schedule, relation, noise).pairs(relation, {})
    return max(pair_delta(pair.outcomes, pair.rounds, epsilon) for pair in pairs)


# --- one round or epoch, written out ---------------------------------------------------------------------------------


def summed(means, density, grid):
    """The mean over equally likely vectors of means of the density of independent numbers on a grid."""
    total = 0.0
    for mean in means:
        total = total + functools.reduce(np.multiply.outer, [density(grid - m) for m in mean])
    return total / len(means)


def batches_of(users, batch):
    return [(sum(chosen),) for chosen in itertools.combinations(users, batch)]


def draws_of(users, draws):
    return [(sum(chosen),) for chosen in itertools.product(users, repeat=draws)]


def samples_of(users, _):
    return [(sum(u for u, kept in zip(users, bits, strict=True) if kept),)
            for bits in itertools.product((0, 1), repeat=len(users))]  # fmt: skip


def orders_of(users, batches):
    size = len(users) // batches
    return [tuple(sum(order[i * size : (i + 1) * size]) for i in range(batches))
            for order in itertools.permutations(users)]  # fmt: skip


def bins_of(users, bins):
    return [tuple(sum(u for u, place in zip(users, places, strict=True) if place == i) for i in range(bins))
            for places in itertools.product(range(bins), repeat=len(users))]  # fmt: skip


SCHEMES = {
    "poisson": (Poisson(rate="1/2"), samples_of, 0),
    "fixed-size": (WithoutReplacement(users=4, batch=2), batches_of, 2),
    "all of them": (WithoutReplacement(users=4, batch=4), batches_of, 4),
    "with replacement": (WithReplacement(users=4, draws=2), draws_of, 2),
    "shuffled": (ShuffledEpochs(batches=2), orders_of, 2),
    "bins": (BallsInBins(bins=2), bins_of, 2),
}
LAWS = {
    "gaussian": (Gaussian(variance="0.49"), norm(scale=0.7).pdf),
    "laplace": (Laplace(scale="0.8"), laplace(scale=0.8).pdf),
}
CASES = [
    (scheme, relation, law)
    for scheme in SCHEMES
    for relation in RELATIONS
    for law in LAWS
    if not (scheme in {"shuffled", "all of them"} and relation is ADD)
    and not (scheme == "with replacement" and law == "laplace")
]


def neighbours(relation, rng):
    """Four users of contributions in [−1, 1], corners preferred, and the neighbouring data set."""
    users = [float(x) for x in np.where(rng.random(4) < 0.7, rng.choice([-1.0, 1.0], 4), rng.uniform(-1, 1, 4))]
    if relation is ADD:
        return users, users[1:]
    return users, [0.0 if relation is ZERO else -users[0], *users[1:]]


# [lemma sampled-rho] [lemma sampled-pure] [lemma one-batch-an-epoch]
@pytest.mark.parametrize(("scheme", "relation", "law"), CASES, ids=str)
def test_no_data_set_loses_more_than_is_charged(scheme, relation, law):
    schedule, outcomes_of, size = SCHEMES[scheme]
    noise, density = LAWS[law]
    rng = np.random.default_rng(3)
    two = scheme in {"shuffled", "bins"}
    grid = np.linspace(-12, 12, 601 if two else 20_001)
    cell = (grid[1] - grid[0]) ** (2 if two else 1)
    charged = [upper(schedule, relation, epsilon, noise) for epsilon in EPSILONS]
    for _ in range(6):
        p, q = (summed(outcomes_of(users, size), density, grid) for users in neighbours(relation, rng))
        for epsilon, most in zip(EPSILONS, charged, strict=True):
            for one, other in ((p, q), (q, p)):
                # a Laplace density's kinks cost the grid a little
                assert float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) * cell <= most * 1.001 + 2e-4


@pytest.mark.parametrize(("scheme", "relation", "law"), CASES, ids=str)
def test_the_pairs_that_are_known_lose_what_they_say(scheme, relation, law):
    """The lower bound lies below the largest loss of corners written out, and of one number near it."""
    schedule, outcomes_of, size = SCHEMES[scheme]
    noise, density = LAWS[law]
    two = scheme in {"shuffled", "bins"}
    grid = np.linspace(-12, 12, 601 if two else 20_001)
    cell = (grid[1] - grid[0]) ** (2 if two else 1)
    most = np.zeros(len(EPSILONS))
    others = (0.0,) if scheme in {"poisson", "bins"} else (-1.0, 1.0)
    for other in others:
        rest = [other] * 3 if other else []  # nobody else is in a Poisson sample or a bin
        first = [1.0, *rest]
        second = rest if relation is ADD else [0.0 if relation is ZERO else -1.0, *rest]
        p, q = (summed(outcomes_of(users, size), density, grid) for users in (first, second))
        found = [
            max(float(np.maximum(one - math.exp(e) * two_, 0).sum()) * cell for one, two_ in ((p, q), (q, p)))
            for e in EPSILONS
        ]
        most = np.maximum(most, found)
    for epsilon, true in zip(EPSILONS, most, strict=True):
        known = lower(schedule, relation, epsilon, noise)
        assert known <= true * 1.001 + 2e-4
        assert known >= (0.7 if two else 0.998) * true - 3e-4


def test_where_the_accountant_is_tight_both_bounds_meet():
    many = {"rounds": 400}
    for schedule, relation in [
        (Poisson(rate="0.02", **many), ADD),
        (Poisson(rate="0.02", **many), ZERO),
        (Poisson(rate="0.02", **many), SWAP),
        (WithoutReplacement(users=500, batch=10, **many), ADD),
        (WithoutReplacement(users=50, batch=1), SWAP),
    ]:
        verdict = verify(declared(schedule, relation), {})
        assert 0.9995 * verdict.upper_ratio <= verdict.lower_ratio <= verdict.upper_ratio


def test_dp_sgd_at_its_defaults_is_known_to_a_thousandth():
    setting = resolve_setting("dp-sgd", {})
    verdict = verify(setting.declared, setting.values)
    assert 0.999 * verdict.upper_ratio <= verdict.lower_ratio <= verdict.upper_ratio


# --- ρ and ε of pure DP ----------------------------------------------------------------------------------------------


# [lemma sampled-rho]
@pytest.mark.parametrize("variance", ["1/100", "1", "10000"])
@pytest.mark.parametrize(
    ("schedule", "relation", "near"),
    [
        (Poisson(rate="0.01", rounds=50), ADD, 0.99),
        (Poisson(rate="1e-6", rounds=50), ZERO, 0.99),
        (WithoutReplacement(users=100, batch=1, rounds=7), SWAP, 0.99),
        (WithoutReplacement(users=100, batch=1, rounds=7), ZERO, 0.99),
        (ShuffledEpochs(batches=100, epochs=3), SWAP, 0.99),
        (ShuffledEpochs(batches=1000, epochs=3), ZERO, 0.99),
        (BallsInBins(bins=30, epochs=3), ADD, 0.99),
    ],
)
def test_sampling_saves_nothing_in_zcdp(schedule, relation, near, variance):
    one = procedure(schedule, relation, Gaussian(variance=variance))
    charged = one.cost(relation).rho.number()
    found = max(rho_loss(pair.outcomes, pair.rounds) for pair in one.pairs(relation, {}))
    assert near * charged <= found <= charged


# [lemma replaced-rho]
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.8, 0.999])
@pytest.mark.parametrize("std", [0.4, 1.0, 3.0])
def test_rho_of_replacing_a_user_of_a_poisson_sample(rate, std):
    """Rényi divergences by integration, against ρ₀ − ln(1 − q) and ρ₁."""
    x = np.linspace(-60, 60, 240_001)
    s = 1 / std

    def log_density(sign):
        return np.logaddexp(math.log1p(-rate) - x * x / 2, math.log(rate) - (x - sign * s) ** 2 / 2)

    p, q = log_density(1), log_density(-1)
    divergences = []
    for order in (1.01, 1.5, 2.0, 4.0, 8.0, 12.0):
        logs = order * p + (1 - order) * q - math.log(math.sqrt(2 * math.pi)) + math.log(x[1] - x[0])
        divergences.append(float(np.logaddexp.reduce(logs)) / (order - 1) / order)
    charged = procedure(Poisson(rate=str(rate)), SWAP, Gaussian(variance=f"{std * std:g}")).cost(SWAP).rho.number()
    assert max(divergences) <= charged * (1 + 1e-9)
    pairs = procedure(Poisson(rate=str(rate)), SWAP, Gaussian(variance=f"{std * std:g}")).pairs(SWAP, {})
    found = max(rho_loss(pair.outcomes, 1) for pair in pairs)
    assert 0.99 * max(divergences) - 1e-9 <= found <= charged
    assert procedure(Poisson(rate=1), SWAP).cost(SWAP).rho.number() == pytest.approx(2 / 1.21)


# [lemma sampled-pure]
@pytest.mark.parametrize("scale", ["1/5", "1", "1e6"])
@pytest.mark.parametrize("schedule", [Poisson(rate="1/50", rounds=9), WithoutReplacement(users=50, batch=1, rounds=9)])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_pure_losses_are_attained(schedule, relation, scale):
    one = procedure(schedule, relation, Laplace(scale=scale))
    charged = one.cost(relation).pure.number()
    found = max(pure_loss(pair.outcomes, pair.rounds) for pair in one.pairs(relation, {}))
    assert found <= charged
    assert found >= charged * (1 - 1e-6) - 9 * 2e-11


class Offset:
    """A scalar in [50, 51]: two users differ by 1, a user and nobody by 51."""

    name, latex, symbols, preconditions, conditions = "offset", "x", frozenset(), (), ()

    def sensitivity(self, relation):
        from privcheck.declare.statistics import Sensitivity

        most = 1 if isinstance(relation, ReplaceOne) else 51
        return Sensitivity(l1=most, l2=most, linf=most, reason="between 50 and 51", stepwise=True)

    def shape(self, values):
        return (1, 1)

    def compute(self, data, *, step=None):
        raise NotImplementedError

    def difference(self, pair):
        raise NotImplementedError


def test_a_user_who_is_far_from_nobody_is_hardly_amplified_when_replaced():
    """Where nobody is far away, whoever is sampled is seen: ε is that of two users, not q times it."""
    release = Release("g", Offset(), Laplace(scale=1), schedule=Poisson(rate="1/2"))
    claim = Claim(PureDP(1), source="Theorem 1")
    one = Declaration(name="x", title="", source="", relation=SWAP, releases=(release,), claim=claim, parameters=())
    x, q = np.linspace(-5, 60, 6501), 0.5
    density = laplace.pdf
    first, second = (((1 - q) * density(x) + q * density(x - place)) for place in (51.0, 50.0))
    true = float(np.abs(np.log(first / second)).max())
    charged = one.releases[0].cost(SWAP).pure.number()
    assert true <= charged * (1 + 1e-12)
    assert charged == pytest.approx(1.0, abs=1e-6)
    assert math.log(1 + q * (math.e - 1)) < true  # what the formula for batches would have charged


# --- what makes no sense is refused when it is declared --------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: declared(ShuffledEpochs(batches=4), ADD), "move up"),
        (lambda: declared(WithoutReplacement(users=4, batch=4), ADD), "no batch of that size"),
        (lambda: declared(WithReplacement(users=9, draws=3), SWAP, Laplace(scale=1)), "declare Gaussian noise"),
        (lambda: declared(Poisson(rate="0.1", most=3, users=9), SWAP, Laplace(scale=1)), "declare Gaussian noise"),
        (lambda: declared(Poisson(rate="1.01"), SWAP), "1 minus the rate"),
        (lambda: declared(Poisson(rate="-0.1"), SWAP), "the rate of Poisson"),
        (lambda: declared(Poisson(rate="0.1", rounds="1/2"), SWAP), "the rounds of Poisson"),
        (lambda: declared(WithoutReplacement(users=10, batch=11), SWAP), "minus its batch"),
        (lambda: declared(WithoutReplacement(users=10, batch=0), SWAP), "the batch of"),
        (lambda: declared(WithReplacement(users=1, draws=1), SWAP), "less one"),
        (lambda: declared(BallsInBins(bins="5/2"), SWAP), "the bins of"),
        (lambda: Poisson(rate="0.1", most=3), "give users too"),
        (lambda: Poisson(rate=math.nan), "rate, of Poisson: expected a finite number"),
    ],
)
def test_nonsense_is_refused_at_the_door(make, words):
    with pytest.raises((DeclarationError, ParameterError, ValueError), match=words):
        make()


# [lemma replaced-sample]
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_vectors_with_laplace_noise_are_priced_under_every_relation(relation):
    release = Release("g", ClippedSums(dimension=3, norm=1), Laplace(scale=9), schedule=Poisson(rate="0.1", rounds=3))
    claim = Claim(ApproxDP(1, "1e-5"), source="Theorem 1")
    one = Declaration(name="x", title="", source="", relation=relation, releases=(release,), claim=claim, parameters=())
    verdict = verify(one, {})
    assert 0 < verdict.lower_ratio <= verdict.upper_ratio < 1


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(
    ("schedule", "variance"),
    [
        (Poisson(rate=0, rounds=5), 1),
        (Poisson(rate=1, rounds=5), 1),
        (Poisson(rate="0.9999999", rounds=5), 1),
        (Poisson(rate="0.0001", rounds=10**7), 1),
        (Poisson(rate="0.01", rounds=0), 1),
        (Poisson(rate="0.01", rounds=100), "1e-12"),
        (Poisson(rate="0.01", rounds=100), "1e24"),
        (Poisson(rate="0.5", rounds=5, most=1, users=3), 1),
        (Poisson(rate="0.5", rounds=5, most=9, users=3), 1),
        (WithoutReplacement(users=2, batch=1, rounds=2), 1),
        (WithoutReplacement(users=100, batch=1, rounds=20), "1e-12"),
        (WithReplacement(users=2, draws=1, rounds=2), 1),
        (WithReplacement(users=20, draws=30, rounds=2), "1e6"),
        (BallsInBins(bins=1, epochs=3), 1),
        (BallsInBins(bins=10**6, epochs=3), 1),
        (BallsInBins(bins=10, epochs=3), "1e-20"),
        (BallsInBins(bins=10, epochs=0), 1),
    ],
)
def test_extremes_are_judged_and_the_bounds_keep_their_order(schedule, variance, relation):
    for claim in (ApproxDP(1, "1e-5"), ZCDP(1)):
        verdict = verify(declared(schedule, relation, Gaussian(variance=variance), claim), {})
        assert 0 <= verdict.lower_ratio <= verdict.upper_ratio


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "zero-out"])
@pytest.mark.parametrize("sampling", ["poisson", "fixed-size", "shuffled"])
def test_less_noise_costs_more_under_every_reading_of_dp_sgd(relation, sampling):
    setting = resolve_setting("dp-sgd", {"relation": relation, "sampling": sampling, "rounds": "200"})
    quieter = {**setting.values, "noise_multiplier": setting.values["noise_multiplier"] * 19 / 20}
    before, after = (verify(setting.declared, values) for values in (setting.values, quieter))
    assert after.lower_ratio > before.lower_ratio
    assert after.upper_ratio > before.upper_ratio


def test_relations_and_samplings_are_told_apart():
    """ε of one noise and rate, at 200 rounds: the figures that a swapped relation would confuse."""
    found = {}
    for relation, sampling in itertools.product(["add-remove", "replace-one"], ["poisson", "fixed-size"]):
        setting = resolve_setting("dp-sgd", {"relation": relation, "sampling": sampling, "rounds": "200"})
        found[relation, sampling] = verify(setting.declared, setting.values).lower_ratio
    assert found["replace-one", "poisson"] > 1.3 * found["add-remove", "poisson"]
    assert found["add-remove", "fixed-size"] > 3 * found["add-remove", "poisson"]


def test_full_batch_adam_is_one_gaussian():
    setting = resolve_setting("dp-adam", {})
    verdict = verify(setting.declared, setting.values)
    mu, epsilon = 10 / 50, float(setting.values["epsilon"]) * verdict.upper_ratio
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert verdict.verdict == "holds"
    assert delta == pytest.approx(1e-5, rel=1e-6)
    assert verdict.lower_ratio >= 0.999 * verdict.upper_ratio
    quieter = {**setting.values, "noise_multiplier": setting.values["noise_multiplier"] * 3 / 4}
    assert verify(setting.declared, quieter).verdict == "fails"


# --- lower bounds of many rounds -------------------------------------------------------------------------------------


# [lemma merged-outcomes]
@pytest.mark.parametrize("seed", range(20))
def test_merged_outcomes_lose_no_more_and_hardly_less(seed):
    rng = np.random.default_rng(seed)
    p, q = (np.sort(rng.dirichlet(np.full(200, 0.3)) + 1e-12) for _ in range(2))
    p, q = p / p.sum(), rng.permutation(q) / q.sum()
    losses, step = np.log(p / q), 10.0 ** rng.uniform(-4, -0.5)
    points, masses = merge_outcomes(losses, p, step)
    merged = points * step
    assert float(masses.sum()) == pytest.approx(1.0)
    assert float((masses * np.exp(-merged)).sum()) >= float(q.sum()) * (1 - 1e-12)  # never less than D′ has
    for epsilon in np.linspace(-4, 4, 41):
        before = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        after = float(np.maximum(masses * -np.expm1(epsilon - merged), 0).sum())
        assert after <= before + 1e-12
        assert after >= before - 2 * step


def test_ten_million_rounds_are_bounded_from_both_sides():
    verdict = verify(declared(Poisson(rate="0.0001", rounds=10**7), ADD), {})
    assert 0.995 * verdict.upper_ratio <= verdict.lower_ratio <= verdict.upper_ratio


# --- runs ------------------------------------------------------------------------------------------------------------

NOISES = [GaussianNoise(scale=1.3), LaplaceNoise(scale=0.9)]
RUNS = 40_000


def share_above(scores, at):
    return float((scores > at).mean())


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("shifts", [(1.0, 0.0), (0.0, -2.0), (1.5, -1.5)])
@pytest.mark.parametrize("rate", [0.05, 0.6, 1.0])
def test_compiled_rounds_have_the_law_of_interpreted_ones(noise, shifts, rate):
    """Shares of 4·10⁴ runs each differ by 6 standard errors with probability 2e-9, 18 × 2 × 5 times: below 4e-7."""
    one = SampledRounds(mixture=Mixture(noise=noise, weights=(1 - rate, rate), shifts=shifts), rounds=9)
    rng = np.random.default_rng(11)
    for on_first in (True, False):
        bits = np.full(RUNS, on_first)
        drawn = rng.choice(2, size=(RUNS, 9), p=[1 - rate, rate]) * shifts[0 if on_first else 1]
        x = drawn + noise.draw(rng, (RUNS, 9))
        density = (norm(scale=1.3) if noise.gaussian else laplace(scale=0.9)).pdf
        laws = [(1 - rate) * density(x) + rate * density(x - shift) for shift in shifts]
        naive, compiled = np.log(laws[0] / laws[1]).sum(axis=1), one(rng, bits)
        for at in np.quantile(naive, [0.02, 0.25, 0.5, 0.75, 0.98]) + 1e-9:
            p = (share_above(naive, at) + share_above(compiled, at)) / 2
            assert abs(share_above(naive, at) - share_above(compiled, at)) <= 6 * math.sqrt(2 * p * (1 - p) / RUNS)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("shifts", [(1.0, 0.0), (2.0, 1.0), (1.5, -1.5)])
def test_compiled_epochs_have_the_law_of_naive_ones(noise, shifts):
    """As above, 6 × 2 × 5 times: below 2e-7."""
    one = ShuffledEpochRuns(epoch=ShuffledEpoch(noise=noise, batches=4, shifts=shifts), epochs=2)
    rng = np.random.default_rng(12)
    for on_first in (True, False):
        x = noise.draw(rng, (RUNS * 2, 4))
        x[np.arange(RUNS * 2), rng.integers(0, 4, RUNS * 2)] += shifts[0 if on_first else 1]
        density = (norm(scale=1.3) if noise.gaussian else laplace(scale=0.9)).pdf
        sums = [(density(x - shift) / density(x)).mean(axis=1) for shift in shifts]
        naive = np.log(sums[0] / sums[1]).reshape(RUNS, 2).sum(axis=1)
        compiled = one(rng, np.full(RUNS, on_first))
        for at in np.quantile(naive, [0.02, 0.25, 0.5, 0.75, 0.98]) + 1e-9:
            p = (share_above(naive, at) + share_above(compiled, at)) / 2
            assert abs(share_above(naive, at) - share_above(compiled, at)) <= 6 * math.sqrt(2 * p * (1 - p) / RUNS)


def test_extreme_noise_gives_no_run_without_a_score():
    rng = np.random.default_rng(13)
    bits = np.arange(200) % 2 == 0
    for scale in (1e-5, 1e8):
        mixture = Mixture(noise=GaussianNoise(scale=scale), weights=(0.5, 0.5), shifts=(1.0, -1.0))
        epoch = ShuffledEpoch(noise=GaussianNoise(scale=scale), batches=5, shifts=(1.0, -1.0))
        for runs in (SampledRounds(mixture=mixture, rounds=20), ShuffledEpochRuns(epoch=epoch, epochs=4)):
            assert np.isfinite(runs(rng, bits)).all()


@pytest.mark.parametrize("rate", ["1/100", "1/10", "1/2", "99/100", 1])
@pytest.mark.parametrize("scale", ["1/3", 1, 8])
def test_sampled_laplace_noise_is_amplified_in_zcdp(rate, scale):
    """ρ was that of the whole data, sixty times what the worst pair loses at q = 1/10; by integration of one number."""
    rho = procedure(Poisson(rate=rate), ZERO, Laplace(scale=scale)).cost(ZERO).rho.number()
    q, step = float(Fraction(rate)), 1 / float(Fraction(scale))
    edges = np.linspace(-60 / step, 60 / step, 400_001)
    x = (edges[1:] + edges[:-1]) / 2 * step
    without, with_user = np.exp(-np.abs(x)), np.exp(-np.abs(x - step))
    p, z = (1 - q) * without + q * with_user, without  # not normalised: both by the same
    for first, second in ((p, z), (z, p)):
        logs, mass = np.log(first / second), first / first.sum()
        found = [np.log(np.sum(mass * np.exp((a - 1) * logs))) / (a - 1) / a for a in (1 + 1e-3, 1.5, 2, 8, 32)]
        assert rho >= max(found)
    amplified = math.log1p(q * math.expm1(step))
    assert rho == pytest.approx(min(amplified, amplified**2 / 2, step + math.expm1(-step)), rel=1e-9)


def test_bins_amplify_where_a_user_is_replaced():
    bins, known = BallsInBins(bins=50, epochs=2), ShuffledEpochs(batches=50, epochs=2)
    low, high = lower(bins, SWAP, 1.0), upper(bins, SWAP, 1.0)
    assert upper(bins, ZERO, 1.0) < high < 0.2 * upper(known, SWAP, 1.0)
    assert low <= high
