"""Selection events against the probabilities of their outputs, over neighbours on a grid."""

import itertools
import math
from collections import Counter

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from privcheck import accounting as acc
from privcheck.accounting.engine.bounded import BoundedRange, gaussian_above
from privcheck.declare.procedures import NoisyMax
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError

SCORES = list(itertools.product(range(-1, 3), repeat=3))


def shifts(*, monotone, size):
    """All ways in which scores of sensitivity 1 move, at their corners."""
    return itertools.product((0, 1) if monotone else (-1, 1), repeat=size)


def exponential(scores, epsilon):
    weights = np.exp(epsilon * np.array(scores) / 2)
    return weights / weights.sum()


def flipped(scores, epsilon):
    """Permute-and-flip: over all orders, the first whose coin comes up; the coin of the best always does."""
    chances, result = np.exp(epsilon * (np.array(scores) - max(scores)) / 2), np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            result[i] += left * chances[i] / len(orders)
            left *= 1 - chances[i]
    return result


def noisy_winner(scores, cdf, pdf, low):
    """Report-noisy-max, by integration over the winner's noisy score."""
    found = []
    for i, s in enumerate(scores):
        others = [t for j, t in enumerate(scores) if j != i]
        kinks = sorted({float(t) for t in scores})
        value, _ = quad(
            lambda x, s=s, others=others: pdf(x - s) * math.prod(cdf(x - t) for t in others),
            max(low + s, -40.0),
            60,
            points=kinks,
            limit=400,
        )
        found.append(value)
    return np.array(found)


def laplace_winner(scores, scale):
    def cdf(x):
        return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

    return noisy_winner(scores, cdf, lambda x: math.exp(-abs(x) / scale) / (2 * scale), -math.inf)


def exponential_winner(scores, scale):
    def cdf(x):
        return max(0.0, 1 - math.exp(-x / scale)) if x > 0 else 0.0

    return noisy_winner(scores, cdf, lambda x: math.exp(-x / scale) / scale if x >= 0 else 0.0, 0.0)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def worst(law, *, monotone, epsilons):
    """The largest δ at every ε, over scores and shifts, both ways."""
    found = np.zeros(len(epsilons))
    for scores in SCORES:
        p = law(scores)
        for shift in shifts(monotone=monotone, size=3):
            q = law([s + d for s, d in zip(scores, shift, strict=True)])
            for i, e in enumerate(epsilons):
                found[i] = max(found[i], hockey_stick(p, q, e), hockey_stick(q, p, e))
    return found


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("make", "law"), [(acc.exponential_mechanism, exponential), (acc.permute_and_flip, flipped)])
def test_no_neighbours_cost_more(make, law, monotone):
    epsilons = np.array([0.0, 0.1, 0.3, 0.5, 0.71, 0.9])
    truth = worst(lambda s: law(s, 1.4), monotone=monotone, epsilons=epsilons)
    curve = acc.compose(make(epsilon=1.4, monotone=monotone))
    found = np.array([curve.delta(epsilon=e).upper for e in epsilons])
    assert np.all(found >= truth - 1e-15)
    assert found[0] <= truth[0] * 1.6


# [lemma bounded-range]
def test_the_range_of_the_exponential_mechanism_is_attained():
    """Two scores far apart in number: 10⁶ candidates move up while one moves down."""
    many, epsilon = 10**6, 1.0
    for monotone, down in ((False, -1.0), (True, 0.0)):
        low, high = math.exp(epsilon * down / 2), math.exp(epsilon / 2)
        eta = epsilon / 2 if monotone else epsilon
        best = 0.0
        for weight in np.geomspace(0.1, 10, 41):  # of the one against all others
            p = np.array([weight * many, many])
            q = np.array([weight * many * low, many * high])
            p, q = p / p.sum(), q / q.sum()
            best = max(best, hockey_stick(p, q, 0.3), hockey_stick(q, p, 0.3))
        found = acc.compose(acc.exponential_mechanism(epsilon=epsilon, monotone=monotone)).delta(epsilon=0.3).upper
        formula = (math.exp(eta / 2) - math.exp(0.15)) ** 2 / math.expm1(eta)
        assert best <= found <= best * 1.01
        assert found == pytest.approx(formula, rel=1e-6)


# [lemma bounded-range]
@pytest.mark.parametrize("monotone", [False, True])
def test_two_adaptive_choices_of_bounded_range(monotone):
    """Over a second mechanism that is chosen after the first one's output; more than any fixed choice (Dong et al.)."""
    eta = 1.0
    curve = acc.compose(acc.exponential_mechanism(epsilon=2 * eta if monotone else eta, monotone=monotone, count=2))
    grid = np.linspace(0, eta, 201)
    chance = (math.exp(eta) - np.exp(grid)) / math.expm1(eta)

    def once(epsilon):
        inside = (math.exp(eta / 2) - np.exp(np.clip(epsilon, -eta, eta) / 2)) ** 2 / math.expm1(eta)
        return np.where(epsilon <= -eta, 1 - np.exp(np.minimum(epsilon, 0)), np.where(epsilon >= eta, 0.0, inside))

    for epsilon in (0.0, 0.5, 1.2, 1.8):
        truth = float(np.max(chance * once(epsilon - grid) + (1 - chance) * once(epsilon - grid + eta)))
        assert truth <= curve.delta(epsilon=epsilon).upper <= truth * 1.35


def gaussian_call(variance, y):
    """E(e^{y + L} − 1)₊ for the loss L of a Gaussian of that μ², under Q."""
    root = mp.sqrt(variance)
    return mp.exp(y) * mp.ncdf(y / root + root / 2) - mp.ncdf(y / root - root / 2)


# [lemma bounded-range-step]
@given(st.floats(-4, 0.45), st.floats(math.log10(3.2), 3), st.floats(-1, 1), st.floats(-9, 0))
def test_a_release_of_bounded_range_before_a_gaussian_costs_no_more_than_a_larger_gaussian(log_a, ratio, place, at):
    """At y ≤ 0: y > 0 with τ is, times e^y and up to a constant, −y with −τ."""
    with mp.workdps(50):
        a = mp.mpf(10) ** log_a
        s = a * a * mp.mpf(10) ** ratio
        tau, y = place * a, at * mp.sqrt(s)
        high = mp.expm1(a - tau) / mp.expm1(2 * a)  # Q's mass at the larger loss
        one = high * gaussian_call(s, y + tau + a) + (1 - high) * gaussian_call(s, y + tau - a)
        larger = gaussian_call(s * s / (s - a * a), y)
        assert one <= larger


def adaptive_deltas(eta, count, parts):
    """(ε, δ) of releases of range η, each chosen after the outputs before: losses on a lattice of η/parts, exactly.

    For the losses t and t − η of a release with t on the lattice: V(y) = E over P of (1 − e^{−(y + rest)})₊.
    """
    t = eta * np.arange(1, parts) / parts
    high = np.expm1(eta - t) / -np.expm1(-eta) * np.exp(t - eta)  # P's mass at t
    reach = count * parts
    y = eta / parts * np.arange(-2 * reach, 2 * reach + 1)
    values = np.maximum(-np.expm1(-y), 0.0)
    for _ in range(count):
        up = np.append(values, np.full(parts, 1.0))
        down = np.append(np.zeros(parts), values)
        best = np.zeros_like(values)
        for i, p in enumerate(high.tolist(), start=1):
            best = np.maximum(best, p * up[i : i + len(y)] + (1 - p) * down[i : i + len(y)])
        values = best
    inside = np.abs(y) <= reach * eta / parts
    return -y[inside], values[inside]


# [lemma bounded-range-limit]
@pytest.mark.parametrize(("eta", "count"), [(0.02, 25), (0.4, 25), (0.4, 60), (1.5, 40)])
def test_adaptive_choices_of_bounded_range_stay_below_their_gaussian(eta, count):
    """All strategies over a lattice of positions, by dynamic programming: never above, and close."""
    epsilons, deltas = adaptive_deltas(eta, count, 16)
    mu_squared = gaussian_above([(eta, count)])
    curve = acc.compose(acc.bounded_range(epsilon=eta, count=count))
    for epsilon, delta in zip(epsilons.tolist(), deltas.tolist(), strict=True):
        if epsilon >= 0 and delta > 1e-9:
            assert delta <= acc.gdp_delta(math.sqrt(mu_squared), epsilon).value * (1 + 1e-9)
    for epsilon, delta in list(zip(epsilons.tolist(), deltas.tolist(), strict=True))[:: count * 4]:
        if epsilon >= 0 and delta > 1e-9:
            assert delta * (1 - 1e-9) <= curve.delta(epsilon=epsilon).upper
    assert mu_squared <= count * eta**2 / 4 * (1 + 8 / count)


# [lemma bounded-range-limit]
def test_releases_of_different_ranges_share_one_gaussian_in_any_order():
    few, many = gaussian_above([(0.3, 10)]), gaussian_above([(0.3, 10), (0.1, 90)])
    assert many == gaussian_above([(0.1, 90), (0.3, 10)])
    assert few + 90 * 0.1**2 / 4 <= many <= few + gaussian_above([(0.3, 10)])
    assert math.isinf(gaussian_above([(6.0, 3)]))
    curve = acc.compose(acc.bounded_range(epsilon=0.1, count=500), acc.laplace(scale=3))
    alone = acc.compose(acc.bounded_range(epsilon=0.1, count=500))
    assert alone.epsilon(delta=1e-6).value < curve.epsilon(delta=1e-6).value
    assert curve.epsilon(delta=1e-6).direction == "upper"


# [lemma bounded-range-limit]
@pytest.mark.parametrize(("eta", "count"), [(1e-5, 10**9), (1e-3, 10**6), (0.05, 10**4)])
def test_many_exponential_mechanisms_cost_hardly_more_than_two_equally_likely_losses(eta, count):
    """Two candidates whose scores move apart: binary randomised response of η/2, a mechanism of range η."""
    found = acc.compose(acc.exponential_mechanism(epsilon=eta, count=count)).epsilon(delta=1e-6)
    least = acc.compose(acc.randomized_response(epsilon=eta / 2, count=count)).epsilon(delta=1e-6)
    assert least.lower <= found.value <= least.value * (1 + 20 / count + 1e-5)


@pytest.mark.parametrize("eta", [1e-6, 0.01, 0.5, 3.0, 40.0])
def test_the_cumulant_of_bounded_range(eta):
    law = BoundedRange(eta)
    with mp.workdps(50):
        for c in (0.01, 0.5, 3.0, 40.0):
            z, e = mp.mpf(c), mp.mpf(eta)
            exact = mp.log(mp.sinh((z + 0.5) * e) / ((2 * z + 1) * mp.sinh(e / 2)))
            density = mp.quad(lambda x, z=z, e=e: mp.exp((z + 0.5) * x) / (4 * mp.sinh(e / 2)), [-e, 0, e])
            assert float(mp.log(density)) == pytest.approx(float(exact), rel=1e-9)
            assert law.moments(np.array([c]), "remove")[0][0] == pytest.approx(float(exact), rel=1e-11, abs=1e-15)
            logs, error = law.wave(c, 2.0, 2, "remove")
            value = mp.sinh((z + 2j + 0.5) * e) / ((2 * z + 4j + 1) * mp.sinh(e / 2)) / mp.exp(exact)
            assert abs(complex(mp.exp(complex(logs[1])) - value)) <= error <= 1e-9
            assert math.log(abs(complex(value))) <= law.bound_decay(c, "remove")(2.0)


# [lemma noisy-max]
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("noise", "law"), [("laplace", laplace_winner), ("exponential", exponential_winner)])
def test_noisy_max_by_integration(noise, law, monotone):
    scale = 1.7
    epsilon = acc.compose(acc.noisy_max(noise=noise, scale=scale, monotone=monotone)).epsilon(delta=0).upper
    assert epsilon == pytest.approx((1 if monotone else 2) / scale)
    largest = 0.0
    for scores in ([0, 0, 0], [5, 0, 0], [0, 1, 8], [3, 0, 2]):
        p = law(scores, scale)
        for shift in shifts(monotone=monotone, size=3):
            q = law([s + d for s, d in zip(scores, shift, strict=True)], scale)
            largest = max(largest, float(np.max(np.abs(np.log(p) - np.log(q)))))
    assert 0.9 * epsilon <= largest <= epsilon * (1 + 1e-6)


# [lemma noisy-max-laplace]
@pytest.mark.parametrize(("law", "size"), [(flipped, 4), (flipped, 2), (laplace_winner, 3), (laplace_winner, 2)])
def test_the_largest_noisy_score_costs_what_one_laplace_value_does(law, size):
    """Over real scores and all ways to move them, by formulas of the winner; of two candidates it is attained."""
    epsilon, rng = 1.4, np.random.default_rng(size)
    given = epsilon if law is flipped else 2 / epsilon
    noise = "exponential" if law is flipped else "laplace"
    curve = acc.compose(acc.noisy_max(noise=noise, scale=2 / epsilon))
    if law is flipped:
        choice = acc.compose(acc.permute_and_flip(epsilon=epsilon))
        assert choice.delta(epsilon=0.3).upper == pytest.approx(curve.delta(epsilon=0.3).upper, rel=1e-12)
    at = np.array([0.0, 0.2, 0.7, 1.2, 1.39])
    charged = np.array([curve.delta(epsilon=e).upper for e in at])
    assert charged == pytest.approx(-np.expm1((at - epsilon) / 2), rel=1e-9)
    gaps = np.arange(-3, 1.01, 0.05) if size == 2 else rng.normal(0, 2, 12)
    found = np.zeros(len(at))
    for gap in gaps:
        scores = [0.0, gap] if size == 2 else list(gap * rng.normal(0, 1, size))
        p = law(scores, given)
        for shift in shifts(monotone=False, size=size):
            q = law([s + d for s, d in zip(scores, shift, strict=True)], given)
            found = np.maximum(found, [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in at])
    assert np.all(found <= charged + 1e-9)
    if size == 2 and law is flipped:
        assert np.all(found >= charged - 2e-3)


def test_a_gap_beside_the_index_is_charged_as_pure():
    for monotone, epsilon in ((False, 0.2), (True, 0.1)):
        one = NoisyMax("best", noise="laplace", scale=10, candidates=5, monotone=monotone, gap=True)
        (event,) = one.events(ReplaceOne(), {})
        pure = acc.compose(acc.pure(epsilon=epsilon, count=20)).epsilon(delta=1e-6).upper
        assert acc.compose(20 * event).epsilon(delta=1e-6).upper == pytest.approx(pure, rel=1e-9)


def test_exponential_noise_is_permute_and_flip_and_gumbel_noise_the_exponential_mechanism():
    for scores in SCORES[::9]:
        assert exponential_winner(scores, 2 / 1.4) == pytest.approx(flipped(scores, 1.4), abs=1e-6)
    a = acc.compose(acc.noisy_max(noise="gumbel", scale=2, count=3)).delta(epsilon=0.7)
    assert a.value == acc.compose(acc.exponential_mechanism(epsilon=1, count=3)).delta(epsilon=0.7).value


def sparse(queries, threshold_scale, query_scale, answers):
    """P(answers) of one noisy threshold at 0, by Gauss and Legendre's rule between all kinks of its noise."""
    edges = np.unique(np.concatenate([np.linspace(-60, 60, 481) * threshold_scale, [0.0], queries]))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2
    r = (edges[:-1, None] + half) + half * nodes
    chance = np.exp(-np.abs(r) / threshold_scale) / (2 * threshold_scale) * half * weights
    for (q, above), times in Counter(zip(queries, answers, strict=True)).items():
        x = (q - r if above else r - q) / query_scale
        chance = chance * np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x))) ** times
    return float(chance.sum())


# [lemma above-threshold]
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("c", [1, 2])
def test_sparse_vector_by_integration(c, monotone):
    first, second = 2.0, 4.0 * c
    event = acc.above_threshold(threshold_scale=first, query_scale=second, positives=c, monotone=monotone)
    epsilon = acc.compose(event).epsilon(delta=0).upper
    assert epsilon == pytest.approx(1 / first + (1 if monotone else 2) * c / second)
    largest = 0.0
    for negatives in (1, 60, 4000):
        answers = [False] * negatives + [True] * c
        for down, up in ((1, -1), (-1, 1), (1, 0), (0, 1), (-1, 0), (0, -1)):
            if monotone and down * up < 0:
                continue
            for level in (-2.0, 0.0):
                queries = [level] * negatives + [level - 6 * second] * c
                moved = [q + (up if a else down) for q, a in zip(queries, answers, strict=True)]
                p, q = (sparse(given, first, second, answers) for given in (queries, moved))
                largest = max(largest, abs(math.log(p / q)))
    assert 0.8 * epsilon <= largest <= epsilon * (1 + 1e-6)


# [lemma unknown-keys]
@pytest.mark.parametrize(("keys", "threshold"), [(1, 12.0), (3, 9.0), (3, 0.5)])
def test_thresholds_by_their_two_parts(keys, threshold):
    """What a user's own keys show, and what the shared ones cost: at most the sum, at least either."""
    for noise, chance, shared in (
        ("laplace", 0.5 * math.exp(1 - threshold) if threshold > 1 else 1 - 0.5 * math.exp(threshold - 1), acc.laplace),
        ("gaussian", ndtr((1 - threshold) / 2), acc.gaussian),
    ):
        make = acc.laplace_histogram if noise == "laplace" else acc.gaussian_histogram
        spread = {"scale": 1} if noise == "laplace" else {"std": 2}
        shown = 1 - (1 - chance) ** keys
        if shown >= 0.5:
            with pytest.raises(ParameterError, match="raise it"):
                make(**spread, threshold=threshold, contribution=1, keys=keys)
            continue
        found = acc.compose(make(**spread, threshold=threshold, contribution=1, keys=keys)).delta(epsilon=1.0)
        other = acc.compose(shared(**spread, count=keys)).delta(epsilon=1.0)
        assert found.direction == "upper"
        assert max(shown, other.value) <= found.upper <= (shown + other.upper) * (1 + 1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.exponential_mechanism(epsilon=-1),
        lambda: acc.exponential_mechanism(epsilon=1, monotone="no"),
        lambda: acc.permute_and_flip(epsilon=1e5),
        lambda: acc.noisy_max(noise="gaussian", scale=1),
        lambda: acc.noisy_max(noise="laplace", scale=0),
        lambda: acc.above_threshold(threshold_scale=1, query_scale=1, positives=0),
        lambda: acc.above_threshold(threshold_scale=1e-9, query_scale=1),
        lambda: acc.gaussian_histogram(std=1, threshold=1, contribution=1, keys=1),
        lambda: acc.laplace_histogram(scale=1, threshold=5, keys=0, contribution=1),
    ],
)
def test_bad_input_is_refused(make):
    with pytest.raises(ParameterError, match="expected"):
        make()


def test_a_choice_beside_other_noise_is_bounded_and_says_so():
    choice = acc.exponential_mechanism(epsilon=0.5, count=3)
    found = acc.compose(choice, acc.gaussian(std=2)).epsilon(delta=1e-5)
    assert found.direction == "upper"
    assert "bounded range" in found.method


def test_nothing_moves_nothing_costs():
    for event in (
        acc.exponential_mechanism(epsilon=0),
        acc.noisy_max(noise="laplace", scale=1, sensitivity=0),
        acc.above_threshold(threshold_scale=1, query_scale=1, sensitivity=0),
    ):
        assert acc.compose(event).epsilon(delta=0).upper == 0


def test_selection_composes_with_everything():
    others = [
        acc.gaussian(std=3),
        acc.laplace(scale=4),
        acc.poisson_gaussian(std=1, rate=0.1, relation="add-remove"),
        acc.zcdp(rho=0.01),
    ]
    for event in (
        acc.exponential_mechanism(epsilon=0.3, count=4),
        acc.above_threshold(threshold_scale=9, query_scale=9),
    ):
        alone = acc.compose(event).epsilon(delta=1e-5).upper
        for other in others:
            both = acc.compose(event, other).epsilon(delta=1e-5).upper
            apart = alone + acc.compose(other).epsilon(delta=1e-5).upper
            assert max(alone, acc.compose(other).epsilon(delta=2e-5).value) * (1 - 1e-9) <= both <= apart + 1.0
