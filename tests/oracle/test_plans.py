"""Plans and their compression to μ: against δ computed from the events' own laws, at ε of the test's choosing.

The twin multiplies out the losses' values (quadrature nodes, for Laplace noise) and adds Gaussian noise in closed form:
no grid, no transform, nothing of the package's.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import erfcx, log_ndtr

from privcheck import accounting as acc
from privcheck.accounting.currencies import Currency, cost_of, pure_to_mu
from privcheck.errors import BudgetError, ParameterError

GDP = Currency(name="gdp")

# --- the twin ---------------------------------------------------------------------------------------------------------


def values_of(event):
    """Losses of one release with their probabilities; what is lost outright has none of them."""
    if event.kind in ("pure", "approximate"):
        e = event.parameter("epsilon")
        p = 1 / (1 + math.exp(-e))
        return [(e, p), (-e, 1 - p)]
    a = event.parameter("sensitivity") / event.parameter("scale")
    x, w = np.polynomial.legendre.leggauss(24)
    inner = [(a * t, a * v * math.exp((a * t - a) / 2) / 4) for t, v in zip(x.tolist(), w.tolist(), strict=True)]
    return [(a, 0.5), (-a, math.exp(-a) / 2), *inner]


def log_gaussian(mu, at):
    """ln δ of N(0, 1) against N(μ, 1) at any real ε, elementwise."""
    x, y = at / mu - mu / 2, at / mu + mu / 2
    far = x > 3
    gap = np.where(far, erfcx(x / math.sqrt(2)) - erfcx(np.maximum(y, 0) / math.sqrt(2)), 1.0)
    tail = -x * x / 2 + np.log(gap / 2)
    near = -np.expm1(np.where(far, -1.0, at + log_ndtr(-y) - log_ndtr(-x)))
    return np.where(far, tail, log_ndtr(-x) + np.log(near))


def log_delta(events, at):
    """ln δ(ε) of a composition, what is lost outright left aside."""
    losses, weights, square = np.zeros(1), np.ones(1), 0.0
    for event in events:
        for _ in range(event.count):
            if event.kind == "gaussian":
                square += (event.parameter("sensitivity") / event.parameter("std")) ** 2
                continue
            values = np.array(values_of(event))
            losses = (losses[:, None] + values[:, 0]).ravel()
            weights = (weights[:, None] * values[:, 1]).ravel()
    left = np.asarray(at)[:, None] - losses
    with np.errstate(divide="ignore"):
        one = log_gaussian(math.sqrt(square), left) if square else np.log(-np.expm1(np.minimum(left, 0.0)))
        one = one + np.log(weights)
        top = one.max(axis=1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        return np.log(np.exp(one - top).sum(axis=1)) + top[:, 0]


responses = st.builds(
    lambda e, n: acc.pure(epsilon=e, count=n), st.floats(0.05, 3).map(lambda x: round(x, 3)), st.integers(1, 2)
)
noises = st.builds(lambda s: acc.laplace(scale=s), st.floats(0.4, 8).map(lambda x: round(x, 2)))
bells = st.builds(
    lambda s, n: acc.gaussian(std=s, count=n), st.floats(0.4, 8).map(lambda x: round(x, 2)), st.integers(1, 4)
)
losing = st.builds(
    lambda e, d: acc.approximate(epsilon=e, delta=d), st.sampled_from([0.2, 1.0]), st.sampled_from([1e-9, 1e-3])
)
asides = st.sampled_from([0, 0, 1e-9, 1e-4])


# [lemma covering-between] [lemma covering-tail]
@settings(max_examples=50)
@given(
    bells,
    st.lists(responses | losing, max_size=3),
    st.lists(noises, max_size=1),
    asides,
    st.lists(st.floats(0, 1), min_size=30, max_size=30),
)
@example(acc.gaussian(std=1), [acc.pure(epsilon=0.05)], [], 0, np.linspace(0, 1, 200).tolist())
@example(acc.gaussian(std=8), [acc.pure(epsilon=3, count=3)], [], 0, np.linspace(0, 1, 200).tolist())
def test_a_plan_with_gaussian_noise_is_below_its_mu_everywhere(bell, some, noise, aside, shares):
    """At ε far beyond any grid too, where ln δ is −10⁴."""
    events = [bell, *some, *noise]
    whole = acc.compress_to_mu(events, lost=aside)
    outright = sum(Fraction(repr(e.parameter("delta"))) for e in some if e.kind == "approximate")
    used = Fraction(repr(aside)) if aside and whole.points else 0  # nothing is set aside where Σμ² is as good
    assert whole.lost == outright + used
    at = np.array([120 * share**3 for share in shares])
    truth = log_delta(events, at)
    with np.errstate(divide="ignore"):
        bound = np.logaddexp(log_gaussian(whole.mu, at), np.log(float(used)))
    assert (truth <= bound + 1e-9 * (1 + np.abs(truth))).all()
    ceiling = cost_of(acc.compose(events), GDP).amount
    assert whole.mu_squared <= ceiling
    if whole.mu_squared < ceiling * Fraction(99, 100):  # and it is the least, nearly
        look = np.linspace(0, 30, 601)
        less = log_gaussian(whole.mu * (1 - 1e-3), look)
        with np.errstate(divide="ignore"):
            less = np.logaddexp(less, np.log(float(used)))
        assert (log_delta(events, look) > less).any()


# [lemma covering-between]
@settings(max_examples=40)
@given(st.lists(responses, min_size=1, max_size=4), asides, st.lists(st.floats(0, 1), min_size=20, max_size=20))
def test_a_plan_of_bounded_losses_is_below_its_mu_everywhere(events, aside, shares):
    whole = acc.compress_to_mu(events, lost=aside)
    top = sum(e.parameter("epsilon") * e.count for e in events)
    at = np.array([1.1 * top * share for share in shares])
    truth = np.exp(log_delta(events, at))
    assert (truth <= np.exp(log_gaussian(whole.mu, at)) + float(whole.lost) + 1e-13).all()


# [lemma covering-tail]
@pytest.mark.parametrize("aside", [0, 1e-7])
def test_the_tail_in_forty_digits(aside):
    """A Gaussian beside a randomised response whose loss it hides only just: ε up to 400, δ down to 10⁻³⁰⁰⁰⁰."""
    mu, e = 1 / 1.3, 2.0
    whole = acc.compress_to_mu(acc.gaussian(std=1.3), acc.pure(epsilon=e), lost=aside)
    assert whole.mu_squared < cost_of(acc.compose(acc.gaussian(std=1.3), acc.pure(epsilon=e)), GDP).amount
    with mp.workdps(60):

        def profile(m, x):
            def upper(z):
                return mp.erfc(z / mp.sqrt(2)) / 2

            return upper(x / m - m / 2) - mp.exp(x) * upper(x / m + m / 2)

        p = 1 / (1 + mp.exp(-mp.mpf(e)))
        for x in [*range(60), *range(60, 420, 20)]:
            with mp.workdps(60 + x):
                truth = p * profile(mp.mpf(1) / mp.mpf("1.3"), x - e) + (1 - p) * profile(
                    mp.mpf(1) / mp.mpf("1.3"), x + e
                )
                least = mp.sqrt(mp.mpf(whole.mu_squared.numerator) / whole.mu_squared.denominator)
                assert truth <= profile(least, mp.mpf(x)) + mp.mpf(aside), x
    assert whole.mu > mu


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2, 7])
def test_one_release_is_never_above_what_a_filter_asks_for_it(epsilon):
    """Randomised response is its own worst case; Laplace noise of the same ε is less than that."""
    ceiling = pure_to_mu(Fraction(repr(epsilon))) ** 2
    response, noise = acc.compress_to_mu(acc.pure(epsilon=epsilon)), acc.compress_to_mu(acc.laplace(scale=1 / epsilon))
    assert Fraction(999, 1000) * ceiling <= response.mu_squared <= ceiling
    assert noise.mu_squared <= ceiling * (1 + Fraction(1, 10**9))
    x = np.linspace(0, epsilon * 0.999, 300)
    exact = -np.expm1((x - epsilon) / 2)  # of Laplace noise
    assert (exact <= np.exp(log_gaussian(noise.mu, x)) * (1 + 1e-9)).all()
    assert (exact > np.exp(log_gaussian(noise.mu * (1 - 1e-3), x))).any()


def test_gaussian_noise_alone_is_its_own_sum():
    whole = acc.compress_to_mu(acc.gaussian(std=5, count=10), acc.gaussian(std="0.5"))
    assert (whole.mu_squared, whole.lost, whole.points) == (Fraction(22, 5), 0, 0)
    assert whole.cost == acc.Cost(amount=Fraction(22, 5))


MIXES = {
    "1000 Gaussians, 500 Laplaces": [acc.gaussian(std=30, count=1000), acc.laplace(scale=50, count=500)],
    "100 responses, 5 Gaussians": [acc.pure(epsilon=0.1, count=100), acc.gaussian(std=5, count=5)],
    "30 Laplaces": [acc.laplace(scale=10, count=30)],
    "20 Laplaces, 20 responses": [acc.laplace(scale=10, count=20), acc.pure(epsilon=0.2, count=20)],
}


@pytest.mark.parametrize("mix", MIXES)
def test_the_price_of_one_number_for_a_plan(mix):
    plan = acc.Plan.of(MIXES[mix])
    exact, whole = plan.epsilon(delta=1e-6).upper, acc.compress_to_mu(plan.events)
    price = acc.gdp_epsilon(whole.mu, 1e-6).value / exact
    assert 1 - 1e-6 <= price <= 1.11
    assert price < acc.gdp_epsilon(math.sqrt(cost_of(plan.curve, GDP).amount), 1e-6).value / exact


SAMPLED = [
    [acc.poisson_gaussian(std=1, rate=0.01, count=1000, relation="add-remove")],
    [acc.discrete_gaussian(std=5, count=10)],
    [acc.zcdp(rho="0.05"), acc.laplace(scale=20, count=10)],
]


@pytest.mark.parametrize("events", SAMPLED, ids=["sampled", "integers", "zCDP"])
def test_what_has_no_known_tail_needs_delta_set_aside(events):
    """Then its μ holds against the package's own curve, at other points than it was made from."""
    with pytest.raises(ParameterError, match="set some δ aside"):
        acc.compress_to_mu(events)
    whole = acc.compress_to_mu(events, lost=1e-8)
    assert whole.lost == Fraction(1, 10**8)
    curve = acc.compose(events)
    at = np.linspace(0, curve.epsilon(delta=1e-8).upper * 1.2, 57)
    assert (curve.deltas(at).values <= np.exp(log_gaussian(whole.mu, at)) * (1 + 1e-9) + 1e-8).all()
    with pytest.raises(BudgetError, match="and δ ="):
        acc.Filter("gdp", cap=100).spend(whole.cost)
    budget = acc.Filter("gdp", cap=100, lost="1e-7")
    assert budget.spend(whole.cost) == whole.cost


def test_an_impossible_output_is_lost_outright_and_groups_pay_the_dearest():
    impossible = acc.compress_to_mu(acc.shuffled_bits(users=20, probability=0.5, moved="up"))
    assert Fraction(1, 2**20) <= impossible.lost <= Fraction(1, 2**20) * (1 + Fraction(1, 10**5))
    one, two = acc.compose(acc.gaussian(std=2), acc.pure(epsilon=1)), acc.compose(acc.gaussian(std=1))
    assert acc.compress_to_mu(acc.parallel(one, two)).mu_squared == max(
        acc.compress_to_mu(c).mu_squared for c in (one, two)
    )
    with pytest.raises(ParameterError, match="lost"):
        acc.compress_to_mu(acc.gaussian(std=2), lost=1)


# --- plans ------------------------------------------------------------------------------------------------------------

KINDS = [acc.gaussian(std=3), acc.gaussian(std="3.5"), acc.laplace(scale=2), acc.pure(epsilon="0.25")]
counted = st.lists(st.tuples(st.sampled_from(range(len(KINDS))), st.integers(1, 4)), min_size=1, max_size=8)


@given(counted, counted)
def test_a_plan_counts_down_like_a_table_of_numbers(planned, asked):
    plan = acc.Plan.of(KINDS[i] * n for i, n in planned)
    table = [sum(n for i, n in planned if i == k) for k in range(len(KINDS))]
    first = plan
    for i, n in asked:
        fits = n <= table[i]
        assert plan.can_afford(KINDS[i] * n) is fits
        if fits:
            table[i] -= n
            plan = plan.charge(KINDS[i] * n)
        else:
            with pytest.raises(BudgetError, match=r"is not (in|left in) the plan"):
                plan.charge(KINDS[i] * n)
        left = {str(replace(e, count=1)): e.count for e in plan.remaining}
        assert left == {str(KINDS[k]): n for k, n in enumerate(table) if n}
        assert plan.digest == first.digest
        assert plan.curve == first.curve


@given(counted, st.randoms(use_true_random=False))
def test_the_digest_is_of_what_is_planned_and_not_of_how_it_was_said(planned, rng):
    plan = acc.Plan.of([KINDS[i] * n for i, n in planned])
    apart = [KINDS[i] for i, n in planned for _ in range(n)]
    rng.shuffle(apart)
    assert acc.Plan.of(*apart) == plan
    assert acc.Plan.of(*apart).digest == plan.digest
    for k in range(len(KINDS)):
        assert acc.Plan.of(*apart, KINDS[k]).digest != plan.digest


def test_digests_tell_apart_what_parameters_leave_out():
    encoders = ([[1, 0], [0, 1]], [[1, 0], [0, 0.5]])  # of the same largest column
    matrices = [
        acc.matrix_poisson_gaussian(encoder=e, std=3, rate=0.1, separation=1, relation="add-remove") for e in encoders
    ]
    sampled = [acc.poisson(event=acc.laplace(scale=s), rate="0.1", relation="add-remove") for s in (1, 1.0000000001)]
    mixed = [
        acc.mixture_of_gaussians(std=1, sensitivities=[1, x], probabilities=["0.5", "0.5"], relation="add-remove")
        for x in (0.5, 0.5000000001)
    ]
    tables = [acc.renyi_curve({2: d}) for d in (0.2, 0.3)]
    for one, other in (matrices, sampled, mixed, tables):
        assert acc.Plan.of(one).digest != acc.Plan.of(other).digest
    assert acc.Plan.of(acc.gaussian(std=1)).digest == "6a67f58c3d73934f3c5e5acdd09a12031154dadebe7a3e479da2b31696dce596"
    with pytest.raises(ParameterError, match="no form to hash"):
        _ = acc.Plan.of(acc.renyi_curve(lambda order: order / 10)).digest


@pytest.mark.parametrize(
    "make",
    [
        acc.Plan.of,
        lambda: acc.Plan.of("gaussian"),
        lambda: acc.Plan.of([0.5]),
        lambda: acc.Plan.of(acc.compose(acc.gaussian(std=1))),
        lambda: acc.Plan(events=(KINDS[0], KINDS[0]), used=(0, 0)),
        lambda: acc.Plan(events=(KINDS[0],), used=(2,)),
        lambda: acc.Plan(events=(KINDS[0],), used=(-1,)),
        lambda: acc.Plan(events=(KINDS[0],), used=(0, 0)),
        lambda: acc.Plan(events=(KINDS[0],), used=(0.0,)),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(ParameterError):
        make()


# [lemma plan-any-order]
def test_whichever_order_is_chosen_a_plan_keeps_its_curve():
    """Every strategy that chooses the next event of {A, B, C} after seeing the loss so far, or stops: exact sums."""
    events = [acc.pure(epsilon=1), acc.pure(epsilon="0.3"), acc.pure(epsilon=2)]

    def worst(left, at):  # the largest δ that any strategy reaches
        best = max(0.0, 1 - math.exp(at))
        for i, event in enumerate(left):
            rest = left[:i] + left[i + 1 :]
            best = max(best, sum(p * worst(rest, at - loss) for loss, p in values_of(event)))
        return best

    for x in (0.0, 0.2, 0.9, 1.7, 2.8):
        assert worst(events, x) == pytest.approx(float(acc.Plan.of(events).delta(epsilon=x).value), rel=1e-9)
    assert all(a != b for a, b in itertools.combinations(events, 2))
