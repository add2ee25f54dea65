"""Groups of users against chains of laws on a few outcomes; the best of random runs against its exact law."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from privcheck import accounting as acc
from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.accounting.groups import GroupBound
from privcheck.accounting.repeating import truncated_mean
from privcheck.errors import ParameterError

EPSILONS = (0.0, 0.1, 0.7, 1.5, 3.0)


def chain(rng, k, outcomes, spread):
    """k + 1 mass functions, each next to the one before."""
    weights = rng.uniform(0.2, 1, outcomes)
    found = []
    for _ in range(k + 1):
        found.append([Fraction(float(w)) for w in weights / weights.sum()])
        found[-1][-1] = 1 - sum(found[-1][:-1])
        weights = weights * np.exp(rng.uniform(-spread, spread, outcomes))
    return found


def delta(p, q, epsilon):
    x = Fraction(math.exp(epsilon))
    return float(max(sum(max(a - x * b, 0) for a, b in zip(*pair, strict=True)) for pair in ((p, q), (q, p))))


def divergence(p, q, order):
    return max(
        math.log(sum(float(a) ** order * float(b) ** (1 - order) for a, b in zip(*pair, strict=True))) / (order - 1)
        for pair in ((p, q), (q, p))
    )


# [lemma group-profile]
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3, 5])
def test_profiles_of_groups_bound_every_chain(seed, k):
    rng = np.random.default_rng(seed)
    laws = chain(rng, k, 4, spread=0.5)
    grid = [i / 20 for i in range(30)]
    one = acc.privacy_profile(
        {e: min(1.0, max(delta(a, b, e) for a, b in itertools.pairwise(laws)) * (1 + 1e-15)) for e in grid}
    )
    found = acc.compose(acc.group(one, size=k))
    for e in EPSILONS:
        assert found.delta(epsilon=e).upper >= delta(laws[0], laws[-1], e) * (1 - 1e-15)


def naive_group_delta(power, k, epsilon):
    """sup over a fine grid of levels of the k-fold power minus e^ε times the level."""
    levels = np.concatenate([np.geomspace(1e-9, 0.5, 20_000), 1 - np.geomspace(1e-9, 0.5, 20_000)])
    found = levels
    for _ in range(k):
        found = power(found)
    return float(max(0.0, np.max(found - math.exp(epsilon) * levels), power(np.zeros(1))[0]))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_pure_group_is_the_iterated_test(k):
    """Dong, Roth & Su: 1 − f composed k times with itself, here of randomised response."""
    e0 = 0.4
    found = acc.compose(acc.group(acc.pure(epsilon=e0), size=k))
    for e in EPSILONS:
        truth = naive_group_delta(lambda x: np.minimum(math.exp(e0) * x, 1 - math.exp(-e0) * (1 - x)), k, e)
        assert found.delta(epsilon=e).value == pytest.approx(truth, rel=1e-3, abs=1e-9)
        assert found.delta(epsilon=e).upper >= truth * (1 - 1e-12)
        assert found.delta(epsilon=e).value <= acc.compose(acc.pure(epsilon=k * e0)).delta(epsilon=e).value * (1 + 1e-9)
    assert found.epsilon(delta=0).value == pytest.approx(k * e0)


def test_an_approximate_group_adds_its_deltas():
    """(kε, δ(1 + e^ε + … + e^{(k−1)ε}))-DP, and no more."""
    found = acc.compose(acc.group(acc.approximate(epsilon=0.3, delta=1e-6), size=3))
    truth = 1e-6 * (1 + math.exp(0.3) + math.exp(0.6))
    assert found.delta(epsilon=0.9).value <= truth * (1 + 1e-8)
    assert found.delta(epsilon=2.0).value >= 3e-6 * (1 - 1e-9)


@pytest.mark.parametrize("k", [2, 5])
def test_the_general_way_is_close_to_the_gaussian_one(k):
    mu = 0.3
    grid = np.linspace(0, 3, 120).tolist()
    one = acc.privacy_profile({e: gdp_delta(mu, e) for e in grid})
    found = acc.compose(acc.group(one, size=k))
    for e in (0.0, 0.5, 1.0, 2.0):
        truth = gdp_delta(k * mu, e, rounding="down")
        assert truth <= found.delta(epsilon=e).upper <= truth * 1.05


def test_groups_of_known_laws():
    same = [
        (acc.group(acc.gaussian(std=6, count=2), size=3), acc.gaussian(std=2, count=2)),
        (acc.group(acc.laplace(scale=6, count=2), size=3), acc.laplace(scale=2, count=2)),
        (
            acc.group(acc.discrete_laplace(scale=6, count=2), size=3),
            acc.discrete_laplace(scale=6, sensitivity=3, count=2),
        ),
        (acc.group(acc.discrete_gaussian(std=6), size=3), acc.discrete_gaussian(std=6, sensitivity=3)),
        (acc.group(acc.zcdp(rho=0.1, count=4), size=3), acc.zcdp(rho=0.9, count=4)),
        (acc.group(acc.zcdp(rho=0.1, xi=0.2), size=2), acc.zcdp(rho=0.4, xi=0.6)),
        (
            acc.group(acc.tree(node=acc.gaussian(std=6), leaves=8, participations=1), size=2),
            acc.tree(node=acc.gaussian(std=3), leaves=8, participations=1),
        ),
        (acc.group(acc.renyi_curve(lambda a: 0.1 * a), size=3), acc.zcdp(rho=0.9)),
    ]
    for one, other in same:
        for d in (1e-3, 1e-9):
            assert acc.compose(one).epsilon(delta=d).value == pytest.approx(
                acc.compose(other).epsilon(delta=d).value, rel=1e-6
            )
    assert acc.group(acc.gaussian(std=3), size=1) == acc.gaussian(std=3)
    curve = acc.gaussian(std=6) + acc.laplace(scale=6)
    together = acc.compose(acc.gaussian(std=2), acc.laplace(scale=2)).epsilon(delta=1e-6).value
    assert acc.group(curve, size=3).epsilon(delta=1e-6).value == pytest.approx(together)
    apart = acc.group(acc.parallel(acc.gaussian(std=6), acc.laplace(scale=6)), size=3)
    assert (
        apart.epsilon(delta=1e-6).value
        == acc.parallel(acc.gaussian(std=2), acc.laplace(scale=2)).epsilon(delta=1e-6).value
    )


@pytest.mark.parametrize("k", [2, 3, 7])
def test_a_group_moves_an_integer_vector_by_so_many_of_its_lengths(k):
    one = acc.discrete_gaussian(std=30, sensitivity=math.sqrt(2), count=2)
    several = acc.group(one, size=k)
    rho = acc.Filter("zcdp", cap=1).spend(several).amount
    assert 2 * Fraction(k) ** 2 / 900 <= rho <= 2 * Fraction(k) ** 2 / 900 * (1 + Fraction(1, 10**14))
    cubes = acc.discrete_gaussian(std=30, sensitivity=k, count=4)  # as far along each of two axes, twice
    assert several.epsilon(delta=1e-6).upper >= acc.compose(cubes).epsilon(delta=1e-6).value * (1 - 1e-9)


# [lemma group-renyi]
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3, 6])
def test_renyi_curves_of_groups_bound_every_chain(seed, k):
    laws = chain(np.random.default_rng(100 + seed), k, 4, spread=0.4)

    def one(z):
        return np.array([x * max(divergence(a, b, 1 + x) for a, b in itertools.pairwise(laws)) for x in z])

    orders = (1.1, 2.0, 5.0)
    bounds = GroupBound(one, k)(np.array(orders) - 1)
    for order, bound in zip(orders, bounds, strict=True):
        assert bound / (order - 1) >= divergence(laws[0], laws[-1], order) * (1 - 1e-12)


@pytest.mark.parametrize(
    "event",
    [
        acc.shuffled(local_epsilon=1, users=50, relation="replace-one"),
        acc.poisson_gaussian(std=2, rate=0.1, relation="add-remove"),
        acc.randomized_response(epsilon=0.5, categories=4),
    ],
    ids=str,
)
def test_other_events_are_bounded_by_their_curve(event):
    found, single = acc.compose(acc.group(event, size=2)), acc.compose(event)
    for e in (0.1, 0.5, 1.0):
        least = min(
            single.delta(epsilon=a).upper + math.exp(a) * single.delta(epsilon=e - a).upper
            for a in np.linspace(0, e, 30)
        )
        assert single.delta(epsilon=e).value <= found.delta(epsilon=e).upper <= least * 1.01
    assert "one user" in found.delta(epsilon=1).reason


def test_a_user_with_several_records():
    daily = acc.laplace(scale=10, count=365)
    assert acc.user_level(daily, records=4, releases=7) == acc.group(acc.laplace(scale=10, count=7), size=4)
    assert acc.user_level(daily, records=1) == daily
    assert acc.user_level(daily, records=2, releases=10**6).count == 365


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.group(3, size=2),
        lambda: acc.group(acc.gaussian(std=1), size=0),
        lambda: acc.group(acc.gaussian(std=1), size=1.5),
        lambda: acc.group(acc.approximate(epsilon=1, delta=0.5), size=3),
        lambda: acc.user_level(acc.compose(), records=2),
        lambda: acc.user_level(acc.gaussian(std=1), records=2, releases=0),
        lambda: acc.repeat_and_select(3, mean=2),
        lambda: acc.repeat_and_select(acc.gaussian(std=1), mean=1),
        lambda: acc.repeat_and_select(acc.gaussian(std=1), mean=2, law="fixed"),
        lambda: acc.repeat_and_select(acc.gaussian(std=1), mean=2, law="geometric", shape=1),
        lambda: acc.repeat_and_select(acc.gaussian(std=1), mean=2, law="negative binomial"),
        lambda: acc.repeat_and_select(acc.gaussian(std=1), mean=2, law="negative binomial", shape=-1),
        lambda: acc.repeat_and_select(acc.approximate(epsilon=1, delta=1e-9), mean=2),
    ],
)
def test_nonsense_is_refused_with_a_message(make):
    with pytest.raises(ParameterError, match="expected"):
        make()


def generating(law, eta, gamma, mean):
    """The generating function of the number of runs."""
    if law == "poisson":
        return lambda x: math.exp(mean * (x - 1))
    if eta == 0:
        return lambda x: math.log1p(-(1 - gamma) * x) / math.log(gamma)
    return lambda x: ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def selected(p, function):
    """The law of the best of K runs, outcomes in the order of their score; the first is what no run gives."""
    steps = np.concatenate([[0.0], np.cumsum(p)])
    steps[-1] = 1.0
    values = [function(x) for x in steps]
    return [values[0], *np.diff(values).tolist()]


LAWS = [
    ("geometric", 1.0),
    ("logarithmic", 0.0),
    ("negative binomial", 0.5),
    ("negative binomial", -0.5),
    ("negative binomial", 3.0),
    ("poisson", 0.0),
]


# [lemma repeat-and-select]
@pytest.mark.parametrize(("law", "eta"), LAWS)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_many_runs_costs_no_more_than_the_theorem_says(law, eta, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 1, 5)
    p, q = weights / weights.sum(), weights * np.exp(rng.uniform(-0.3, 0.3, 5))
    q = q / q.sum()
    for mean in (1.5, 8.0, 60.0) if law != "poisson" else (0.4, 3.0, 40.0):
        event = acc.repeat_and_select(
            acc.loss_distribution(p, q), mean=mean, law=law, shape=eta if law == "negative binomial" else None
        )
        gamma = 1.0
        if law != "poisson":
            low, high = 1e-12, 1.0
            for _ in range(200):
                gamma = math.sqrt(low * high)
                low, high = (gamma, high) if truncated_mean(gamma, eta) > mean else (low, gamma)
        function = generating(law, eta, gamma, mean)
        step = 1e-7
        assert (function(1.0) - function(1 - step)) / step == pytest.approx(mean, rel=0.02)  # E[K]
        one, other = (np.array(selected(x, function)) for x in (p, q))
        used = one > 0
        orders = (1.001, 1.05, 1.3, 2.0, 8.0, 40.0, 1e4)
        bounds = event.pieces[0][0].bound(np.array(orders) - 1)
        for order, bound in zip(orders, bounds, strict=True):
            exact = max(
                float(logsumexp(order * np.log(a[used]) + (1 - order) * np.log(b[used]))) / (order - 1)
                for a, b in ((one, other), (other, one))
            )
            assert bound / (order - 1) >= exact - 1e-12
        curve = acc.compose(event)
        for e in (0.1, 0.5, 1.0):
            exact = max(float(np.maximum(a - math.exp(e) * b, 0).sum()) for a, b in ((one, other), (other, one)))
            assert curve.delta(epsilon=e).upper >= exact
        if law != "poisson":
            largest = float(np.max(np.abs(np.log(one[used] / other[used]))))
            assert curve.epsilon(delta=0).value >= largest * (1 - 1e-12)


@pytest.mark.parametrize(("law", "eta"), LAWS)
@pytest.mark.parametrize("std", [0.5, 6, 200])
def test_the_divergence_of_the_best_run_grows_with_its_order(law, eta, std):
    """The theorem's term ln E[K]/(α − 1) has none at order 1; the divergence of any mechanism has one."""
    shape = eta if law == "negative binomial" else None
    event = acc.repeat_and_select(acc.gaussian(std=std), mean=15, law=law, shape=shape)
    z = np.geomspace(1e-12, 1e6, 400)
    divergences = event.pieces[0][0].bound(z) / z
    assert np.all(np.diff(divergences) >= -1e-9 * divergences[1:])
    if law == "poisson":
        return
    gamma = next(g for g in np.geomspace(1, 1e-9, 10**5) if truncated_mean(g, eta) > 15)
    mu, log_gamma = 1 / std, -math.log(gamma)
    orders = 1 + np.geomspace(1e-3, 1e5, 3000)
    second = min(log_gamma, np.min((1 - 1 / orders) * orders * mu**2 / 2 + log_gamma / orders))
    raw = orders * mu**2 / 2 + (1 + eta) * second + math.log(15) / (orders - 1)
    for order in (1.01, 2.0, 30.0):  # a plain scan of the theorem's formula
        assert np.interp(order - 1, z, divergences) == pytest.approx(np.min(raw[orders >= order]), rel=2e-3)


def test_repeating_is_pure_where_a_run_is():
    for law, times in (("geometric", 3), ("logarithmic", 2)):
        curve = acc.compose(acc.repeat_and_select(acc.pure(epsilon=0.2), mean=30, law=law))
        assert curve.epsilon(delta=0).value == pytest.approx(0.2 * times)
    composed = acc.repeat_and_select(acc.gaussian(std=10, count=5) + acc.zcdp(rho=1e-3), mean=10) + acc.laplace(scale=9)
    assert composed.epsilon(delta=1e-6).value > gdp_epsilon(math.sqrt(5) / 10, 1e-6)
