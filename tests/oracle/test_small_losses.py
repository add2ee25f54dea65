"""Small losses and huge counts: bounds by trimmed laws against exact sums, 40-digit integrals and rounded losses."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from privcheck import accounting as acc
from privcheck.accounting.combining import job_of
from privcheck.accounting.engine.bounded import BoundedRange
from privcheck.accounting.engine.brackets import bracket_epsilons, bracket_log_deltas
from privcheck.accounting.engine.discrete import DiscreteGaussian, response_law
from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.replaced import MirroredGaussian, ReplacedGaussian
from privcheck.accounting.engine.sampled import SampledGaussian
from privcheck.accounting.engine.trimmed import _second_order, _turned

NORMAL = norm()


def powers(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


sampled = st.one_of(
    st.builds(SampledGaussian, powers(-1.0, 0.5), powers(-4, -0.3)),
    st.builds(ReplacedGaussian, powers(-1.0, 0.5), powers(-4, -0.3)),
    st.builds(MirroredGaussian, powers(-1.0, 0.5), powers(-4, -0.3)),
)
laws = st.one_of(
    sampled,
    powers(-4, 0.5).map(LaplaceLaw),
    powers(-4, 0.5).map(BoundedRange),
    st.builds(response_law, powers(-4, 0.5), st.integers(2, 5)),
    st.builds(DiscreteGaussian, st.floats(0.5, 20), st.integers(1, 3)),
)
directions = st.sampled_from(["remove", "add"])


def job(law, count):
    return Job(laws=((law, count),), mu_squared=0.0, rho=0.0, lost=())


def at(law, count, epsilon, direction, near=0.0):
    """(upper, lower) bounds on δ."""
    found = bracket_log_deltas(job(law, count), np.array([epsilon]), np.array([near]), direction)
    assert found is not None
    return math.exp(found[0][0]), math.exp(found[1][0])


# exact sums -----------------------------------------------------------------------------------------------------


def responses(epsilon, count, at_epsilon):
    """δ of so many binary responses: the terms of a binomial sum near its heaviest, anchored by one of 40 digits."""
    with mp.workdps(40):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        first = int(mp.floor((mp.mpf(at_epsilon) / epsilon + count) / 2)) + 1  # 2k − n truths more than lies
        terms = min(count - first + 1, int(15 * math.sqrt(count) + 100))
        if terms <= 0:
            return 0.0
        log_first = mp.loggamma(count + 1) - mp.loggamma(first + 1) - mp.loggamma(count - first + 1)
        log_first = float(log_first + first * mp.log(p) + (count - first) * mp.log(1 - p))
        share = float(mp.log(p / (1 - p)))
    k = first + np.arange(terms)
    steps = np.log(count - k[:-1]) - np.log(k[:-1] + 1) + share
    logs = log_first + np.concatenate([[0.0], np.cumsum(steps)])
    return float(np.sum(np.exp(logs) * -np.expm1(at_epsilon - epsilon * (2.0 * k - count))))


# [lemma trimmed-laws] [lemma bracket-smoothing] [lemma bracket-aliasing]
@settings(max_examples=25)
@given(log_count=st.floats(0.5, 10), spread=st.floats(0.05, 3), place=st.floats(0, 4))
def test_randomised_responses_against_the_binomial_sum(log_count, spread, place):
    count = int(10**log_count)
    epsilon = min(spread / math.sqrt(count), 2.0)
    mean, std = count * epsilon * math.tanh(epsilon / 2), math.sqrt(count) * epsilon / math.cosh(epsilon / 2)
    asked = min(mean + place * std, 0.999 * count * epsilon)
    truth = responses(epsilon, count, asked)
    upper, lower = at(response_law(epsilon, 2), count, asked, "remove")
    assert lower * (1 - 1e-6) <= truth <= upper * (1 + 1e-6)
    if count > 10**4 and truth > 1e-9:
        assert upper <= truth * (1 + 2e-3)
        assert lower >= truth * (1 - 5e-2)


def laplaces(step, count, epsilon):
    """δ of so many Laplace releases: one contour integral in 40 digits, of the closed form of E[e^{zL}]."""
    with mp.workdps(40):
        a, n = mp.mpf(step), mp.mpf(count)
        k2 = n * a * a
        c = max(mp.mpf(epsilon) / k2 - mp.mpf(1) / 2, 1 / mp.sqrt(k2) / 2)

        def term(t):
            z = mp.mpc(c, t)
            grown = mp.expm1(-(2 * z + 1) * a)
            log_mean = z * a + mp.log1p(z * grown / (2 * z + 1))
            return (mp.exp(n * log_mean - z * epsilon) / (z * (z + 1))).real

        width = 12 / mp.sqrt(k2)
        return float(mp.quad(term, mp.linspace(0, width, 40)) / mp.pi)


@pytest.mark.parametrize(("count", "epsilon"), [(10**5, 0.9), (10**7, 0.4), (10**9, 1.3), (10**12, 2.0)])
def test_laplace_releases_against_40_digits(count, epsilon):
    step = math.sqrt(0.1 / count)
    truth = laplaces(step, count, epsilon)
    upper, lower = at(LaplaceLaw(step), count, epsilon, "remove")
    assert lower <= truth * (1 + 1e-9)
    assert truth <= upper * (1 + 1e-9)
    assert upper <= lower * 1.001


# rounded losses ---------------------------------------------------------------------------------------------------


def pieces(law, direction):
    """(edges of cells in x, P-mass of each, loss at each edge) of branches on which the loss is monotone."""
    s, q = law.shift, law.rate
    x = np.linspace(-9.5, 9.5 + s, 200_001)

    def user(at):
        return (1 - q) * NORMAL.cdf(at) + q * NORMAL.cdf(at - s)

    def loss(at):
        return np.logaddexp(math.log1p(-q), math.log(q) + s * at - s * s / 2)

    if isinstance(law, SampledGaussian):
        if direction == "remove":
            return [(np.diff(user(x)), loss(x))]
        return [(np.diff(NORMAL.cdf(x)), -loss(x))]
    if isinstance(law, ReplacedGaussian):
        return [(np.diff(user(x)), loss(x) - loss(-x))]
    x = np.linspace(s / 2, 9.5 + s, 100_001)
    middle = (1 - q) * math.erf(s / math.sqrt(8))
    return [(np.diff(user(x)), loss(x)), (np.diff(NORMAL.cdf(x)), -loss(x)), (np.array([middle]), np.zeros(2))]


def rounded(law, count, epsilon, direction, *, up):
    """δ with every loss rounded up, or down, to a grid: above, or below, the truth, but for what transforms round."""
    parts = pieces(law, direction)
    every = [end for masses, losses in parts for end in (losses[:-1], losses[1:])]
    low, high = min(float(end.min()) for end in every), max(float(end.max()) for end in every)
    single = math.sqrt(sum(float((masses * losses[1:] ** 2).sum()) for masses, losses in parts))
    size = 1 << 19
    mean = abs(sum(float((masses * losses[1:]).sum()) for masses, losses in parts))
    reach = 60 * single * math.sqrt(count) + 3 * count * mean
    mesh = max((high - low) / (size / 8), reach / size, 1e-12)
    law_on_grid = np.zeros(size)
    for masses, losses in parts:
        pick = np.maximum if up else np.minimum
        cells = (np.ceil if up else np.floor)(pick(losses[:-1], losses[1:]) / mesh).astype(np.int64)
        np.add.at(law_on_grid, cells % size, masses)
    composed = np.fft.irfft(np.fft.rfft(law_on_grid) ** count, size)
    places = np.arange(size)
    sums = np.where(places < size // 2, places, places - size) * mesh
    gained = float((np.maximum(composed, 0.0) * np.maximum(-np.expm1(np.minimum(epsilon - sums, 0.0)), 0.0)).sum())
    outside = count * 1e-19 + 1e-11
    return gained + outside if up else gained - outside


@settings(max_examples=15)
@given(law=sampled, log_count=st.floats(0, 4), direction=directions, place=st.floats(0.1, 4))
def test_sampled_gaussians_against_rounded_losses(law, log_count, direction, place):
    count = int(10**log_count)
    losses = pieces(law, direction)
    single = math.sqrt(sum(float((masses * ends[1:] ** 2).sum()) for masses, ends in losses))
    epsilon = place * single * math.sqrt(count)
    upper, lower = at(law, count, epsilon, direction)
    assert lower <= upper
    assert rounded(law, count, epsilon, direction, up=False) <= upper
    assert lower <= rounded(law, count, epsilon, direction, up=True)


# what they stand on -----------------------------------------------------------------------------------------------


# [lemma pairs-of-outcomes]
@settings(max_examples=60)
@given(law=laws, direction=directions, c=powers(-2, 2), log_time=st.floats(-1, 4), tail=powers(-12, -4))
def test_wave_and_its_bounds(law, direction, c, log_time, tail):
    """φ of the nodes against a plain sum, and the bounds on |φ| above it."""
    std = math.sqrt(max(float(law.moments(np.array([c]), direction)[2][0]), 1e-12))
    longest = 10.0**log_time / std
    made = law.trim(tail, direction, c=c, longest=longest)
    if made is None:
        return
    assert 0 <= made.p_out <= 2 * tail + 1e-12
    logs = made.logs + c * made.losses
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    count = 33
    step = longest / (count - 1)
    values, rough, unknown = made.wave(c, step, count, 1)
    times = step * np.arange(count)
    plain = np.array([np.sum(weights * np.exp(1j * t * made.losses)) for t in times])
    known = np.isfinite(values.real)
    assert np.all(np.abs(np.exp(values[known]) - plain[known]) <= rough[known] + 1e-12 * (1 + times[known]))
    assert np.all(np.abs(plain[~known]) <= unknown + 1e-12)
    moduli = np.abs(plain)
    bounds = made.bound_by_pairs(c, times[1:])
    assert np.all(np.log(np.maximum(moduli[1:-1], 1e-300)) <= bounds + 1e-9)
    assert np.all(moduli[1:] <= made.atoms + made.variation / times[1:] + 1e-9)


# [lemma trimmed-cumulant]
@settings(max_examples=60)
@given(law=laws, direction=directions, c=powers(-2, 1.5))
def test_moments_are_those_of_the_whole_law(law, direction, c):
    """Hardly anything is left out; the whole law's moments, of tiny losses bounds, are tested in `test_waves`."""
    made = law.trim(1e-30, direction, c=c, longest=0.0)
    k, k1, k2 = (float(x[0]) for x in made.moments(np.array([c])))
    whole, first, second = (float(x[0]) for x in law.moments(np.array([c]), direction))
    if math.isinf(k):  # beyond floats: no bounds are made there
        return
    assert k <= whole * (1 + 1e-7) + 1e-13
    if c <= 2:
        assert k == pytest.approx(whole, rel=1e-4, abs=1e-13)
        assert k1 == pytest.approx(first, rel=1e-4, abs=1e-12)
        assert k2 == pytest.approx(second, rel=1e-3)
    assert made.rounding(c) < 1e-9 * (1 + c * c)


@given(real=st.floats(-3, 3), imaginary=st.floats(-3, 3), scale=powers(-12, 1))
def test_second_order_of_the_exponential(real, imaginary, scale):
    a = complex(real * scale, imaginary * scale)
    with mp.workdps(400):
        truth = complex(mp.exp(mp.mpc(a)) - 1 - mp.mpc(a))
    assert abs(_second_order(np.array([a]))[0] - truth) <= 1e-13 * abs(truth) + 1e-70


def test_turned_sums_against_plain_ones():
    rng = np.random.default_rng(7)
    losses, weights = rng.normal(size=300) * 1e-3, rng.dirichlet(np.ones(300))
    found = _turned(losses, weights, step=7.0, count=1000)
    times = 7.0 * np.arange(1000)
    with mp.workdps(30):
        for i in (0, 1, 31, 32, 500, 999):
            terms = [w * (mp.expj(times[i] * x) - 1) for x, w in zip(losses, weights, strict=True)]
            assert abs(found[i] - complex(mp.fsum(terms))) < 1e-13


# what users see ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "delta", "peer", "least"),
    [  # dp-accounting 0.6, pessimistic and optimistic
        ("replace-one", 1.37e-4, 0.0142, 0.0140),
        ("replace-one", 1e-6, 0.0272, 0.0269),
        ("add-remove", 1e-6, 0.0157, 0.0153),
    ],
)
def test_rare_batches_as_tight_as_the_best_peer(relation, delta, peer, least):
    found = acc.compose(acc.poisson_gaussian(std=1.417, rate=2.52e-4, relation=relation, count=500))
    assert least <= found.epsilon(delta=delta).upper <= peer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_sampled_gaussians_between_the_bounds_of_dp_accounting(seed):
    """Its optimistic answer is a lower bound, and its pessimistic one hardly better than ours."""
    rng = np.random.default_rng(seed)
    std, rate, count = 10 ** rng.uniform(-0.3, 0.8), 10 ** rng.uniform(-4.5, -0.7), int(10 ** rng.uniform(0.5, 4))
    delta, relation = 10 ** rng.uniform(-9, -2), ("add-remove", "replace-one")[seed % 2]
    named = {"add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE, "replace-one": NeighboringRelation.REPLACE_ONE}
    least, most = (
        privacy_loss_distribution.from_gaussian_mechanism(
            std, sampling_prob=rate, pessimistic_estimate=pessimistic, neighboring_relation=named[relation],
            use_connect_dots=pessimistic,
        )
        .self_compose(count)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    )  # fmt: skip
    found = acc.compose(acc.poisson_gaussian(std=std, rate=rate, relation=relation, count=count)).epsilon(delta=delta)
    assert found.upper >= least * (1 - 1e-9)
    assert found.upper <= most * 1.05 + 1e-6


@settings(max_examples=20)
@given(law=laws, log_count=st.floats(0, 14), direction=directions, log_delta=st.floats(-30, -1))
def test_both_questions_agree_and_bounds_are_in_order(law, log_count, direction, log_delta):
    composed = job(law, int(10**log_count))
    epsilons, least = bracket_epsilons(composed, np.array([log_delta]), direction)
    if not (math.isfinite(epsilons[0]) and 0 < epsilons[0] < 1e3):
        return
    assert least[0] <= log_delta + 1e-9
    upper, lower = bracket_log_deltas(composed, epsilons, np.array([log_delta]), direction)
    assert lower[0] <= upper[0] + 1e-12
    assert lower[0] <= log_delta + 1e-9  # a bound on the same δ, from below
    if least[0] > log_delta - 1e-3:
        assert upper[0] <= log_delta + 2e-2


def test_huge_counts_meet_the_limit_law():
    """10⁹ releases of ε = 10⁻⁵ are a Gaussian of μ² = .1 but for some 10⁻⁵; 10¹⁵ sampled ones stay amplified."""
    limit = acc.compose(acc.gaussian(std=1 / math.sqrt(0.1))).epsilon(delta=1e-6).value
    for event in (
        acc.randomized_response(epsilon=1e-5, count=10**9),
        acc.discrete_laplace(scale=1e5, count=10**9),
        acc.pure(epsilon=1e-5, count=10**9),
    ):
        assert acc.compose(event).epsilon(delta=1e-6).upper == pytest.approx(limit, rel=2e-5)
    spread = math.sqrt(10**15 * 1e-22 * math.expm1(1.0))
    limit = acc.compose(acc.gaussian(std=1 / spread)).epsilon(delta=1e-6).value
    rare = acc.poisson_gaussian(std=1.0, rate=1e-11, relation="add-remove", count=10**15)
    assert acc.compose(rare).epsilon(delta=1e-6).upper == pytest.approx(limit, rel=1e-2)


def test_several_laws_and_a_gaussian_together():
    events = [acc.laplace(scale=1e4, count=10**6), acc.randomized_response(epsilon=1e-4, count=10**6)]
    events += [acc.gaussian(std=10.0), acc.poisson_gaussian(std=2.0, rate=1e-3, relation="add-remove", count=100)]
    epsilons, least = bracket_epsilons(job_of(events), np.log([1e-4, 1e-6, 1e-8]), "remove")
    assert np.all(np.isfinite(epsilons))
    assert np.all(least > np.log([1e-4, 1e-6, 1e-8]) - 1e-3)
    assert np.all(np.diff(epsilons) > 0)


# lower bounds of figures ------------------------------------------------------------------------------------------


# [lemma trimmed-laws] [lemma bracket-smoothing] [lemma bracket-aliasing]
@settings(max_examples=25)
@given(log_count=st.floats(0, 8), spread=st.floats(0.1, 3), place=st.floats(0, 3), log_delta=st.floats(-9, -1))
def test_lower_bounds_of_figures_against_the_binomial_sum(log_count, spread, place, log_delta):
    count = int(10**log_count)
    epsilon = min(spread / math.sqrt(count), 2.0)
    curve = acc.compose(acc.randomized_response(epsilon=epsilon, count=count))
    asked = place * math.sqrt(count) * epsilon
    found = curve.delta(epsilon=asked)
    truth = responses(epsilon, count, asked)
    assert found.lower <= truth * (1 + 1e-6) <= found.upper * (1 + 2e-6)
    delta = 10.0**log_delta
    at_delta = curve.epsilon(delta=delta)
    assert at_delta.lower <= at_delta.upper
    if at_delta.lower > 0:
        assert responses(epsilon, count, at_delta.lower * (1 - 1e-9)) >= delta * (1 - 1e-6)


@pytest.mark.parametrize(
    "event",
    [
        acc.poisson_gaussian(std=1.1, rate=0.01, relation="add-remove", count=10_000),
        acc.poisson_gaussian(std=1.417, rate=2.52e-4, relation="replace-one", count=500),
        acc.laplace(scale=20, count=500),
        acc.discrete_laplace(scale=20, count=5_000),
    ],
    ids=str,
)
def test_bounds_of_figures_are_close(event):
    for parts in ((event,), (event, acc.gaussian(std=30))):
        found = acc.compose(*parts).epsilon(delta=1e-6)
        assert found.bounded_below
        assert found.upper * 0.99 <= found.lower <= found.value


@pytest.mark.parametrize(
    "event",
    [
        acc.above_threshold(threshold_scale=4, query_scale=4),
        acc.bounded_range(epsilon=0.1),
        acc.group(acc.laplace(scale=20), size=2),
        acc.approximate(epsilon=0.1, delta=1e-6),
        acc.zcdp(rho=0.1),
    ],
    ids=lambda event: event.kind,
)
def test_what_only_bounds_a_mechanism_has_no_lower_bound(event):
    assert not acc.compose(acc.laplace(scale=9), event).epsilon(delta=1e-3).bounded_below
