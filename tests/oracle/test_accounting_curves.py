"""Composed curves against 50-digit arithmetic, quadrature, dp-accounting and each other."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.combining import job_of
from privcheck.accounting.engine.brackets import bracket_log_deltas
from privcheck.accounting.engine.contour import contour_epsilon, contour_log_delta
from privcheck.accounting.engine.grid import grid_epsilons, grid_log_deltas
from privcheck.accounting.engine.laplace_sum import LaplaceSum, laplace_epsilon, laplace_log_delta
from privcheck.accounting.engine.renyi import renyi_epsilons

deltas = st.floats(-12, -1).map(lambda t: 10.0**t)


def laplace_by_residues(a, k, epsilon):
    """δ(ε) of k Laplace releases in closed form, with enough digits for its cancellation."""
    with mp.workdps(80 + k):
        a, e, half = mp.mpf(a), mp.mpf(epsilon), mp.mpf(1) / 2
        total = mp.mpf(0)
        for j in range(k + 1):
            x = (k - 2 * j) * a - e
            if x <= 0:
                break
            poly = [mp.mpf(0)] * (k + 1)
            for p in range(k - j + 1):
                for q in range(j + 1):
                    poly[p + q] += mp.binomial(k - j, p) * half ** (k - j - p) * mp.binomial(j, q) * (-half) ** (j - q)
            residue = mp.exp(x / 2) * mp.mpf(2) ** k if j == 0 else mp.mpf(0)
            residue -= mp.exp(-x / 2) * mp.mpf(2) ** k if j == k else 0
            for i in range(k):  # the pole of order k at 0 of e^{ux}(u + ½)^{k−j}(u − ½)^j/(u²−¼)/u^k
                n = k - 1 - i
                residue += poly[i] * sum(
                    -4 * mp.mpf(4) ** (m // 2) * x ** (n - m) / mp.factorial(n - m) for m in range(0, n + 1, 2)
                )
            total += mp.binomial(k, j) * residue
        return float(total * mp.exp(-k * a / 2 + e / 2) / mp.mpf(2) ** k)


# [lemma contour-integral] [lemma laplace-cumulant] [lemma laplace-terms]
@pytest.mark.parametrize(
    ("a", "k", "epsilon"),
    [(0.5, 1, 0.2), (0.5, 5, 0.7), (0.5, 8, 1.1), (0.5, 12, 5.9), (0.1, 20, 0.5), (1.0, 20, 8.0), (3.0, 12, 20.0)],
)
def test_laplace_alone_has_12_digits(a, k, epsilon):
    found = acc.compose(acc.laplace(scale=1 / a, count=k)).delta(epsilon=epsilon).value
    truth = laplace_by_residues(a, k, epsilon)
    assert truth * (1 - 2e-13) <= found <= truth * (1 + 1e-10)  # the oracle itself has 13 digits


# [lemma laplace-terms] [lemma laplace-truncation] [lemma contour-aliasing]
@settings(max_examples=40)
@given(
    st.floats(-4, 1.2).map(lambda x: 10.0**x),
    st.integers(1, 24),
    st.one_of(st.floats(0, 0.999), st.floats(-6, 0).map(lambda x: 10.0**x), st.integers(0, 24).map(lambda i: i / 24)),
)
def test_laplace_alone_is_never_below_and_hardly_above(a, k, share):
    """At all places, the losses of the atoms included, up to where ε has no digits left before the largest loss."""
    epsilon = min(share, 1 - 1e-4) * k * a
    with mp.workdps(40):
        truth = mp.mpf(laplace_by_residues(a, k, epsilon)) * (1 - mp.mpf(2) ** -52)
        found = laplace_log_delta(LaplaceSum(step=a, count=k), epsilon)
        assert truth <= mp.exp(found) <= truth * (1 + 1e-7)
    back = laplace_epsilon(LaplaceSum(step=a, count=k), found)
    assert found - 1e-7 <= laplace_log_delta(LaplaceSum(step=a, count=k), back) <= found + 1e-9


@pytest.mark.parametrize("count", [60, 700, 30_000])
@pytest.mark.parametrize("spread", [0.05, 1.0, 6.0])
def test_many_laplaces_lie_between_the_bounds_of_trimmed_laws(count, spread):
    """Another integral, with bounds from both sides, of nodes in place of closed forms."""
    one = LaplaceSum(step=spread / math.sqrt(count), count=count)
    for log_delta in (-7.0, -14.0, -28.0):
        epsilon = laplace_epsilon(one, log_delta)
        upper, lower = bracket_log_deltas(one.job, np.array([epsilon]), np.array([log_delta]), "remove")
        assert lower[0] - 1e-9 <= log_delta
        found = laplace_log_delta(one, epsilon)
        assert lower[0] <= found <= upper[0] + 1e-7
        assert log_delta - 1e-6 <= found <= log_delta + 1e-9


@pytest.mark.parametrize(("mu", "a", "epsilon"), [(0.5, 0.3, 0.4), (1.0, 2.0, 3.0), (0.2, 1.0, 1.5), (2.0, 0.1, 12.0)])
def test_one_gaussian_and_one_laplace_by_quadrature(mu, a, epsilon):
    """The Gaussian's curve, averaged over the Laplace loss: two atoms and a density."""
    with mp.workdps(40):
        m, step, e = mp.mpf(mu), mp.mpf(a), mp.mpf(epsilon)

        def gauss(at):  # also at negative ε
            return mp.ncdf(m / 2 - at / m) - mp.exp(at) * mp.ncdf(-m / 2 - at / m)

        density = mp.quad(lambda s: gauss(e - s) * mp.exp((s - step) / 2) / 4, mp.linspace(-step, step, 9))
        truth = gauss(e - step) / 2 + gauss(e + step) * mp.exp(-step) / 2 + density
    found = acc.compose(acc.gaussian(std=1 / mu), acc.laplace(scale=1 / a)).delta(epsilon=epsilon)
    assert found.value == pytest.approx(float(truth), rel=1e-12)
    assert found.value <= found.upper <= found.value * (1 + 1e-4)


# [lemma contour-integral] [lemma contour-aliasing] [lemma contour-truncation] [lemma gaussian-composition]
def test_the_contour_reaches_1e_60_and_gives_the_gaussian_curve_13_digits():
    for mu in (1e-3, 0.7, 5.0, 40.0):
        job = job_of([acc.gaussian(std=1 / mu)])
        for exponent in (-1, -6, -15, -60):
            exact = acc.gdp_epsilon(mu, 10.0**exponent, rounding="nearest").value
            if exact > 0:
                found = contour_epsilon(job, exponent * math.log(10), "remove")
                assert exact * (1 - 1e-15) <= found <= exact * (1 + 5e-13)


jobs = st.tuples(
    st.floats(0.3, 30),
    st.integers(0, 60),
    st.floats(0.5, 40),
    st.integers(0, 40),
    st.floats(0.01, 1),
    st.integers(0, 8),
).filter(lambda t: t[1] or t[3] or t[5])


def made(t):
    std, gaussians, scale, laplaces, epsilon, responses = t
    parts = [acc.gaussian(std=std * math.sqrt(max(gaussians, 1)), count=gaussians)] if gaussians else []
    parts += [acc.laplace(scale=scale, count=laplaces)] if laplaces else []
    return [*parts, *([acc.randomized_response(epsilon=epsilon, count=responses)] if responses else [])]


def theirs(t):
    std, gaussians, scale, laplaces, epsilon, responses = t
    laws = []
    if gaussians:
        laws.append(pld.from_gaussian_mechanism(float(std)))
    if laplaces:
        laws.append(pld.from_laplace_mechanism(float(scale)).self_compose(laplaces))
    if responses:
        p = 2 / (math.exp(epsilon) + 1)
        laws.append(pld.from_randomized_response(p, 2).self_compose(responses))
    total = laws[0]
    for law in laws[1:]:
        total = total.compose(law)
    return total


@pytest.mark.slow
@settings(max_examples=25)
@given(jobs, deltas)
def test_agrees_with_dp_accounting(t, delta):
    """Its pessimistic PLD lies above ours, within its grid of 1e-4 a law; our certified bound lies between."""
    found = acc.compose(*made(t)).epsilon(delta=delta)
    upper = theirs(t).get_epsilon_for_delta(delta)
    assert found.value <= found.upper * (1 + 1e-12)
    assert found.value <= upper + 1e-9
    if math.isfinite(upper):
        assert upper <= found.value + 2e-3 * (1 + found.value)
    assert found.upper <= found.value * (1 + 1e-3) + 1e-4


@settings(max_examples=40)
@given(jobs, deltas)
def test_curve_is_monotone_inverts_and_stays_below_the_pure_sum(t, delta):
    parts = made(t)
    curve = acc.compose(*parts)
    found = curve.epsilon(delta=delta)
    most = t[3] / t[2] + t[4] * t[5] if not t[1] else math.inf
    assert found.value <= most * (1 + 1e-12)
    if 0 < found.value < most * (1 - 1e-9):
        assert curve.delta(epsilon=found.value).value == pytest.approx(delta, rel=1e-6)
    assert curve.epsilon(delta=delta / 10).value >= found.value
    again = acc.compose(*parts, parts[0]).epsilon(delta=delta).value  # more releases cost more
    assert again >= found.value * (1 - 1e-9)


@settings(max_examples=25)
@given(jobs.filter(lambda t: t[1]), deltas)
def test_certified_bounds_lie_above_the_contour(t, delta):
    job, log_delta = job_of(made(t)), math.log(delta)
    value = contour_epsilon(job, log_delta, "remove")
    assert value is not None
    least, at, epsilon = value * (1 - 1e-9), np.array([log_delta]), np.array([value])
    assert renyi_epsilons(job, at, "remove")[0] >= least
    assert grid_epsilons(job, at, epsilon, "remove")[0][0] >= least
    assert grid_log_deltas(job, epsilon, at, "remove")[0][0] >= contour_log_delta(job, value, "remove") - 1e-9


@pytest.mark.parametrize(("std", "rate", "count"), [(1.0, 0.01, 1000), (0.8, 0.1, 50), (2.0, 0.5, 20)])
def test_poisson_sampling_in_both_directions(std, rate, count):
    found = acc.compose(acc.poisson_gaussian(std=std, rate=rate, count=count, relation="add-remove")).epsilon(
        delta=1e-6
    )
    fine = pld.from_gaussian_mechanism(std, sampling_prob=rate, value_discretization_interval=1e-4)
    upper = fine.self_compose(count).get_epsilon_for_delta(1e-6)
    assert found.value <= upper * (1 + 1e-9) + 1e-9
    assert upper <= found.value * (1 + 1e-3)
    assert found.value <= found.upper * (1 + 1e-12) <= found.value * (1 + 1e-3)


# [lemma sampled-gaussian] [lemma sampled-curve]
@pytest.mark.parametrize("direction", [1, -1])
def test_one_poisson_release_by_quadrature(direction):
    s, q, e = 1.0, 0.2, 0.1
    with mp.workdps(30):

        def p(x):
            return (1 - q) * mp.npdf(x) + q * mp.npdf(x - s)

        first, second = (p, mp.npdf) if direction == 1 else (mp.npdf, p)
        edge = mp.mpf(s) / 2 + mp.log((mp.exp(direction * e) - (1 - q)) / q) / s  # where the two are equal
        pieces = mp.linspace(edge, 14, 20) if direction == 1 else mp.linspace(-12, edge, 20)
        truth = mp.quad(lambda x: first(x) - mp.exp(e) * second(x), pieces, method="gauss-legendre")
    from privcheck.accounting.engine.sampled import SampledGaussian

    law = SampledGaussian(s, q)
    assert math.exp(law.log_delta(e, "remove" if direction == 1 else "add")) == pytest.approx(float(truth), rel=1e-6)


def test_many_at_once_are_the_same_as_one_by_one():
    for parts in (
        [acc.gaussian(std=30, count=1000), acc.laplace(scale=50, count=500)],
        [acc.gaussian(std=3)],
        [acc.randomized_response(epsilon=0.1, count=40)],
    ):
        curve = acc.compose(*parts)
        asked = np.geomspace(1e-12, 0.5, 500)
        found = curve.epsilons(asked)
        for i in range(0, 500, 83):
            assert found.values[i] == pytest.approx(curve.epsilon(delta=asked[i]).value, rel=1e-9, abs=1e-12)
        back = curve.deltas(np.linspace(0, 3, 500))
        for i in range(0, 500, 83):
            assert back.values[i] == pytest.approx(curve.delta(epsilon=3 * i / 499).value, rel=1e-9)


# [lemma connect-the-dots]
@pytest.mark.slow
def test_chords_never_lie_below():
    curve = acc.compose(acc.laplace(scale=5, count=3), acc.laplace(scale=7, count=3))
    asked = np.geomspace(1e-9, 0.3, 300)
    found = curve.epsilons(asked)
    assert found.direction == "upper"
    for i in range(0, 300, 60):
        one = curve.epsilon(delta=asked[i]).value
        # each is made on a grid of its own, which adds up to 3e-7 of ε
        assert one * (1 - 1e-6) <= found.values[i] <= one * (1 + 1e-2) + 1e-3


@given(st.floats(0.1, 4), st.floats(-6, -0.1).map(lambda t: 10.0**t))
@settings(max_examples=25)
def test_attack_terms_of_a_gaussian(mu, x):
    curve = acc.compose(acc.gaussian(std=1 / mu))
    truth = float(mp.ncdf(mp.sqrt(2) * mp.erfinv(2 * mp.mpf(x) - 1) + mu))
    assert curve.true_positive_rate(x).value == pytest.approx(truth, rel=1e-4)
    assert curve.advantage().value == pytest.approx(float(2 * mp.ncdf(mu / 2) - 1), rel=1e-10)
