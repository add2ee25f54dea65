"""Curves of one's own against enumeration in rational arithmetic: never below the truth, exact where theory is."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck import accounting as acc
from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.errors import ParameterError

EPSILONS = (0.0, 0.05, 0.4, 1.0, 2.5)
CASES = range(40)


def masses(rng, n, zeros):
    """Two rational mass functions on n outcomes, some of them impossible under one of the two."""
    p, q = (rng.integers(1, 60, n).tolist() for _ in range(2))
    if zeros and n > 2:
        p[0] = q[-1] = 0
    return [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]


def naive_delta(p, q, epsilon):
    """max over both directions of Σ(P − e^ε Q)₊."""
    x = Fraction(math.exp(epsilon))
    return float(max(sum(max(a - x * b, 0) for a, b in zip(*pair, strict=True)) for pair in ((p, q), (q, p))))


def joint(one, other):
    """The product of two pairs of mass functions."""
    return tuple([a * b for a, b in itertools.product(one[i], other[i])] for i in (0, 1))


@pytest.mark.parametrize("seed", CASES)
def test_two_mass_functions_are_their_own_curve(seed):
    rng = np.random.default_rng(seed)
    one, other = (masses(rng, int(rng.integers(2, 7)), zeros=seed % 3 == 0) for _ in range(2))
    for (p, q), event in (
        (one, acc.loss_distribution(*one)),
        (joint(one, one), acc.loss_distribution(*one, count=2)),
        (joint(one, other), acc.loss_distribution(*one) + acc.loss_distribution(*other)),
    ):
        curve = acc.compose(event)
        for e in EPSILONS:
            truth, found = naive_delta(p, q, e), curve.delta(epsilon=e)
            assert found.value == pytest.approx(truth, rel=1e-9, abs=1e-15)
            assert found.upper >= truth * (1 - 1e-15)
            if truth > 1e-12 and truth > naive_delta(p, q, 40.0) * (1 + 1e-9):  # above what is lost outright
                at = curve.epsilon(delta=truth)
                assert at.value == pytest.approx(e, abs=1e-8) or naive_delta(p, q, at.value) <= truth * (1 + 1e-9)


def test_the_two_directions_stay_apart_in_compositions():
    """One event leaks with the user, the other without: each direction has one of them, never both."""
    leaks, hides = ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]), ([0.9, 0.1], [0.1, 0.9])
    up, down = [0.25, 0.75], [0.5, 0.5]
    for one, other in ((leaks, hides), ((up, down), (down, up)), ((up, down), (up, down))):
        curve = acc.loss_distribution(*one) + acc.loss_distribution(*other)
        exact = joint(*([[Fraction(x) for x in side] for side in pair] for pair in (one, other)))
        for e in EPSILONS:
            assert curve.delta(epsilon=e).value == pytest.approx(naive_delta(*exact, e), rel=1e-9, abs=1e-15)


# [lemma profile-pair]
@pytest.mark.parametrize("seed", CASES)
def test_a_profile_known_at_points_bounds_its_mechanism_and_compositions(seed):
    rng = np.random.default_rng(1000 + seed)
    p, q = masses(rng, int(rng.integers(2, 6)), zeros=seed % 4 == 0)
    other = masses(rng, 3, zeros=False)
    points = np.unique(rng.uniform(0, 3, int(rng.integers(1, 6))))
    table = {float(e): min(1.0, naive_delta(p, q, float(e)) * (1 + 1e-15)) for e in points}
    event = acc.privacy_profile(table)
    both, more = acc.compose(2 * event), event + acc.loss_distribution(*other)
    for e in EPSILONS:
        assert acc.compose(event).delta(epsilon=e).upper >= naive_delta(p, q, e) * (1 - 1e-15)
        assert both.delta(epsilon=e).upper >= naive_delta(*joint((p, q), (p, q)), e) * (1 - 1e-15)
        assert more.delta(epsilon=e).upper >= naive_delta(*joint((p, q), other), e) * (1 - 1e-15)


def naive_hull(points, x):
    """The least of all chords over x, of points that include (0, 1) and the mirror images, level to the right."""
    known = [(Fraction(0), Fraction(1)), *points, *((1 / a, 1 - (1 - h) / a) for a, h in points)]
    found = [h for a, h in known if a <= x]
    for (a, h), (b, k) in itertools.permutations(known, 2):
        if a <= x <= b and a < b:
            found.append(h + (k - h) * (x - a) / (b - a))
    return float(min(found))


# [lemma hull-of-points]
@pytest.mark.parametrize("seed", CASES)
def test_a_profile_is_the_least_of_all_chords(seed):
    rng = np.random.default_rng(2000 + seed)
    n = int(rng.integers(1, 7))
    es = np.sort(rng.uniform(-1, 4, n))
    ds = np.sort(rng.uniform(0, 1, n) ** 3)[::-1]
    ds = np.minimum(np.maximum(ds, np.maximum(0, -np.expm1(es))), 1)
    ds = np.maximum.accumulate(ds[::-1])[::-1]
    curve = acc.compose(acc.privacy_profile(list(zip(es.tolist(), ds.tolist(), strict=True))))
    points = [(Fraction(math.exp(e)), Fraction(d)) for e, d in zip(es.tolist(), ds.tolist(), strict=True)]
    for e in (*EPSILONS, *es[es >= 0].tolist()):
        assert curve.delta(epsilon=e).value == pytest.approx(
            naive_hull(points, Fraction(math.exp(e))), rel=1e-9, abs=1e-14
        )


def test_each_direction_may_have_a_table_of_its_own():
    p, q = [Fraction(1, 4), Fraction(3, 4)], [Fraction(1, 2), Fraction(1, 2)]

    def side(one, other, e):
        return float(sum(max(a - Fraction(math.exp(e)) * b, 0) for a, b in zip(one, other, strict=True)))

    grid = [e / 500 for e in range(400)]
    own = acc.privacy_profile({e: side(p, q, e) for e in grid}, add={e: side(q, p, e) for e in grid})
    flipped = acc.loss_distribution(q, p)
    pair = acc.loss_distribution(p, q)
    for e in (0.0, 0.1, 0.37, 0.6):
        for found, exact in ((own, pair), (own + flipped, pair + flipped), (own + pair, pair + pair)):
            value, truth = (acc.compose(x).delta(epsilon=e).value for x in (found, exact))
            assert truth * (1 - 1e-13) <= value <= truth * 1.002 + 1e-6


def symmetric(p, q):
    """A pair whose trade-off function is its own inverse: which of two orders is drawn with a fair coin, and told."""
    half = Fraction(1, 2)
    return [half * x for x in (*p, *q)], [half * x for x in (*q, *p)]


def trade_off_knots(p, q):
    """(α, β) of the likelihood-ratio tests between H0 = q and H1 = p."""
    ratios = sorted(
        ((a, b) for a, b in zip(p, q, strict=True) if a or b), key=lambda x: -(x[0] / x[1] if x[1] else 10**9)
    )
    alpha, beta, knots = Fraction(0), Fraction(1), {}
    for a, b in ratios:
        alpha, beta = alpha + b, beta - a
        knots[alpha] = beta
    return {Fraction(0): knots.pop(Fraction(0), Fraction(1)), **knots}


def between_knots(knots, a):
    known = sorted(knots.items())
    for (a0, b0), (a1, b1) in itertools.pairwise(known):
        if a0 <= a <= a1:
            return b0 + (b1 - b0) * (a - a0) / (a1 - a0)
    raise AssertionError(a)


# [lemma trade-off-profile]
@pytest.mark.parametrize("seed", CASES)
def test_trade_off_functions_are_profiles(seed):
    rng = np.random.default_rng(3000 + seed)
    p, q = symmetric(*masses(rng, int(rng.integers(2, 5)), zeros=seed % 3 == 0))
    knots = trade_off_knots(p, q)
    exact = acc.compose(acc.trade_off(knots, between="linear"))
    levels = {Fraction(0), Fraction(1, 100)} | {
        Fraction(x).limit_denominator(1000) for x in rng.uniform(0, 1, 12).tolist()
    }
    known = {a: between_knots(knots, a) for a in levels}
    convex = acc.compose(acc.trade_off(known, between="convex"))
    steps = acc.compose(acc.trade_off(known, between="steps"))
    for e in EPSILONS:
        truth = naive_delta(p, q, e)
        assert exact.delta(epsilon=e).value == pytest.approx(truth, rel=1e-9, abs=1e-14)
        for known_of in (exact, convex, steps):  # its table was rounded to floats, either way
            assert known_of.delta(epsilon=e).upper >= truth * (1 - 1e-14) - 1e-14
        assert steps.delta(epsilon=e).upper >= convex.delta(epsilon=e).value * (1 - 1e-9)


# [lemma convex-from-below]
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_a_smooth_trade_off_function_is_bounded_closely(mu):
    from scipy.special import ndtr, ndtri

    event = acc.trade_off(lambda a: float(ndtr(-ndtri(a) - mu)) if 0 < a < 1 else 1.0 - a)
    for e in (0.0, 0.5, 1.5, 3.0):
        truth = gdp_delta(mu, e, rounding="down")
        if truth > 1e-12:
            assert truth <= acc.compose(event).delta(epsilon=e).upper <= truth * 1.005
    assert acc.compose(3 * event).epsilon(delta=1e-5).upper >= gdp_epsilon(mu * math.sqrt(3), 1e-5)


def divergence(p, q, order):
    """The larger of both Rényi divergences."""
    return max(
        math.log(sum(float(a) ** order * float(b) ** (1 - order) for a, b in zip(*pair, strict=True))) / (order - 1)
        for pair in ((p, q), (q, p))
    )


@pytest.mark.parametrize("seed", CASES)
def test_renyi_curves_bound_their_mechanism(seed):
    rng = np.random.default_rng(4000 + seed)
    p, q = masses(rng, int(rng.integers(2, 6)), zeros=False)
    orders = sorted(1 + 10 ** rng.uniform(-1, 2, 6))
    table = acc.renyi_curve({float(a): divergence(p, q, a) * (1 + 1e-12) for a in orders})
    function = acc.renyi_curve(lambda a: divergence(p, q, a) * (1 + 1e-12), orders=(1.01, 60))
    for event in (table, function):
        for count, pair in ((1, (p, q)), (2, joint((p, q), (p, q)))):
            curve = acc.compose(count * event)
            for e in EPSILONS:
                assert curve.delta(epsilon=e).upper >= naive_delta(*pair, e) * (1 - 1e-15)
            assert naive_delta(*pair, min(curve.epsilon(delta=1e-3).value, 50.0)) <= 1e-3
    # between its orders the table is above the function, by what chords are above a convex curve
    assert (
        acc.compose(table).epsilon(delta=1e-4).value
        >= 0.999
        * acc.compose(acc.renyi_curve(lambda a: divergence(p, q, a), orders=(1.001, float(orders[-1]))))
        .epsilon(delta=1e-4)
        .value
    )


def naive_table_epsilon(table, count, delta):
    """The least over a fine grid of orders of the conversion, chords between the table's orders by hand."""
    known = [(0.0, 0.0), *((a - 1, (a - 1) * d) for a, d in sorted(table.items()))]
    best = math.inf
    for z in [*np.geomspace(1e-3, known[-1][0], 4000).tolist(), *(z for z, _ in known[1:])]:
        k = min(
            k0 + (k1 - k0) * (z - z0) / (z1 - z0)
            for (z0, k0), (z1, k1) in itertools.combinations(known, 2)
            if z0 <= z <= z1 * (1 + 1e-12)
        )
        best = min(best, (count * k - math.log(delta) + z * math.log(z) - (z + 1) * math.log1p(z)) / z)
    return best


@pytest.mark.parametrize("count", [1, 30])
def test_a_table_of_orders_uses_chords_and_nothing_else(count):
    table = {1.5: 0.03, 2.0: 0.05, 4.0: 0.11, 8.0: 0.25, 32.0: 1.4, 64.0: 2.9}
    for delta in (1e-3, 1e-6, 1e-12):
        found = acc.compose(acc.renyi_curve(table, count=count)).epsilon(delta=delta).value
        assert found == pytest.approx(naive_table_epsilon(table, count, delta), rel=1e-5)


def test_renyi_curves_compose_with_all_events():
    curve = acc.renyi_curve(lambda a: 0.1 * a, count=3)
    others = [
        acc.gaussian(std=9),
        acc.laplace(scale=8),
        acc.poisson_gaussian(std=2, rate=0.1, relation="add-remove"),
        acc.approximate(epsilon=0.1, delta=1e-9),
    ]
    for chosen in itertools.chain(itertools.combinations(others, 1), itertools.combinations(others, 2), [others]):
        found, same = (acc.compose(*chosen, x) for x in (curve, acc.zcdp(rho=0.1, count=3)))
        assert found.epsilon(delta=1e-6).value == pytest.approx(same.epsilon(delta=1e-6).value, rel=1e-6)
        assert found.epsilon(delta=1e-6).direction == "upper"
        assert found.delta(epsilon=2).value == pytest.approx(same.delta(epsilon=2).value, rel=1e-5)


def test_many_questions_are_answered_like_one():
    for event in (
        acc.renyi_curve({2: 0.1, 8: 0.5, 64: 4.0}),
        acc.renyi_curve(lambda a: 0.01 * a, orders=(1, 64)),
        acc.privacy_profile({0: 0.2, 1: 0.01, 2: 1e-4, 4: 1e-8}),
        acc.loss_distribution([1 - 1e-300, 1e-300], [1.0, 5e-324]),
    ):
        curve = acc.compose(event)
        deltas, epsilons = np.geomspace(1e-7, 0.1, 100), np.linspace(0, 3, 100)
        many = curve.epsilons(deltas).values, curve.deltas(epsilons).values
        for i in (0, 40, 99):
            assert many[0][i] == pytest.approx(curve.epsilon(delta=float(deltas[i])).value, rel=5e-5)
            assert many[1][i] == pytest.approx(curve.delta(epsilon=float(epsilons[i])).value, rel=5e-5)


def test_nothing_known_to_leak_costs_nothing():
    assert acc.compose(acc.privacy_profile({0: 0})).epsilon(delta=0).value == 0
    assert acc.compose(acc.loss_distribution([0.3, 0.7], [0.3, 0.7])).delta(epsilon=0).value == 0


def test_an_infinite_order_is_pure_dp():
    event = acc.renyi_curve({2: 0.1, math.inf: 0.7}, count=2)
    assert acc.compose(event).epsilon(delta=0).value == pytest.approx(1.4)
    assert acc.compose(event).delta(epsilon=1.5).value == 0
    assert acc.compose(event).epsilon(delta=1e-9).value <= 1.4 * (1 + 1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.renyi_curve({1: 0.1}),
        lambda: acc.renyi_curve({2: 0.3, 4: 0.2}),
        lambda: acc.renyi_curve({2: -0.1}),
        lambda: acc.renyi_curve({2: math.nan}),
        lambda: acc.renyi_curve({}),
        lambda: acc.renyi_curve([(2, 0.1), (2, 0.2)]),
        lambda: acc.renyi_curve([2, 0.1]),
        lambda: acc.renyi_curve(3),
        lambda: acc.renyi_curve(lambda a: 1 / a),
        lambda: acc.renyi_curve(lambda a: -a),
        lambda: acc.renyi_curve(lambda _: "x"),
        lambda: acc.renyi_curve(lambda a: a, orders=(0.5, 8)),
        lambda: acc.loss_distribution([0.5, 0.5], [1.0]),
        lambda: acc.loss_distribution([0.5, 0.4], [0.5, 0.5]),
        lambda: acc.loss_distribution([1.5, -0.5], [0.5, 0.5]),
        lambda: acc.loss_distribution([1.0, 0.0], [0.0, 1.0]),
        lambda: acc.loss_distribution([[1.0]], [[1.0]]),
        lambda: acc.loss_distribution(["a"], [1.0]),
        lambda: acc.loss_distribution([math.nan], [1.0]),
        lambda: acc.loss_distribution([], []),
        lambda: acc.privacy_profile({0: 0.1, 1: 0.2}),
        lambda: acc.privacy_profile({0: 1.1}),
        lambda: acc.privacy_profile({0: 1}),
        lambda: acc.privacy_profile({-1: 0.5}),
        lambda: acc.privacy_profile({1e6: 0.5}),
        lambda: acc.privacy_profile({0: True}),
        lambda: acc.trade_off({0: 1, 1: 0}),
        lambda: acc.trade_off({0.2: 0.9}, between="linear"),
        lambda: acc.trade_off({0.1: 0.3, 0.2: 0.4}, between="steps"),
        lambda: acc.trade_off({0.1: 0.8, 0.2: 0.79, 0.3: 0.1}, between="convex"),
        lambda: acc.trade_off({0: 0}, between="linear"),
        lambda: acc.trade_off(lambda _: 2.0),
        lambda: acc.trade_off(lambda a: 1 - a, between="steps"),
    ],
)
def test_nonsense_is_refused_with_a_message(make):
    with pytest.raises(ParameterError, match="expected"):
        make()


def test_what_is_missing_of_a_total_counts_as_lost():
    event = acc.loss_distribution([0.5, 0.5 - 5e-13], [0.5, 0.5])
    found = acc.compose(event).delta(epsilon=1)
    assert found.value == pytest.approx(5e-13, rel=1e-3)
    assert "missing" in found.reason
    truncated = acc.loss_distribution([0.6, 0.4 - 1e-9, 1e-9, 0], [0.4, 0.6 - 1e-9, 0, 1e-9])
    assert acc.compose(truncated).delta(epsilon=2).value == pytest.approx(1e-9, rel=1e-6)


def test_own_events_are_values():
    for make in (
        lambda: acc.renyi_curve({2: 0.1, 4: 0.2}),
        lambda: acc.loss_distribution([0.5, 0.5], [0.4, 0.6]),
        lambda: acc.privacy_profile({0: 0.1, 1: 1e-3}),
        lambda: acc.trade_off({0: 1, 0.2: 0.6, 0.6: 0.2, 1: 0}, between="linear"),
    ):
        assert make() == make()
        assert hash(make()) == hash(make())
        a, b = make(), acc.renyi_curve({2: 0.1, 4: 0.3})
        assert a + b == b + a
        assert acc.compose(a, a) == acc.compose(2 * a)
