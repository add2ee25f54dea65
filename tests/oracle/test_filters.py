"""Filters and odometers: against exact sums in fractions, costs against 30-digit arithmetic, soundness by integration.

Deterministic, or Hypothesis on inequalities that always hold.
"""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from privcheck import accounting as acc
from privcheck.accounting import odometers
from privcheck.accounting.currencies import Currency, cost_of, pure_to_mu, pure_to_rho
from privcheck.errors import BudgetError, ParameterError

PURE, ZCDP, GDP = Currency(name="pure"), Currency(name="zcdp"), Currency(name="gdp")


def renyi(order):
    return Currency(name="renyi", order=Fraction(order))


# --- the sums -------------------------------------------------------------------------------------------------------

EXACT = {
    # (currency, order) → an event of which the cost is n/d exactly, from n and d
    ("pure", None): lambda n, d: acc.laplace(scale=d, sensitivity=n),
    ("zcdp", None): lambda n, d: acc.zcdp(rho=n) if d == 1 else acc.gaussian(std=d, sensitivity=n),
    ("gdp", None): lambda n, d: acc.gaussian(std=d, sensitivity=n),
    ("renyi", 3): lambda n, d: acc.discrete_gaussian(std=d, sensitivity=n),
}


def model_cost(key, n, d):
    """Textbook formulas, in fractions."""
    r = Fraction(n, d)
    if key[0] == "pure":
        return r
    if key[0] == "zcdp":
        return Fraction(n) if d == 1 else r * r / 2
    return r * r if key[0] == "gdp" else 3 * r * r / 2


@given(
    st.sampled_from(sorted(EXACT, key=str)),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 40), st.integers(1, 3)), max_size=25),
    st.integers(1, 60).map(lambda n: Fraction(n, 7)),
)
def test_a_filter_is_the_sum_of_fractions(key, steps, cap):
    name, order = key
    budget, total = acc.Filter(name, cap=cap, order=order), Fraction(0)
    for n, d, count in steps:
        event = count * EXACT[key](n, d)
        cost = count * model_cost(key, n, d)
        fits = total + cost <= cap
        assert budget.can_afford(event) is fits
        if fits:
            assert budget.spend(event).amount == cost
            total += cost
        else:
            before = budget.spent
            with pytest.raises(BudgetError) as caught:
                budget.spend(event)
            assert budget.spent is before
            assert (caught.value.cost.amount, caught.value.remaining.amount) == (cost, cap - total)
        assert (budget.spent.amount, budget.remaining.amount) == (total, cap - total)


@pytest.mark.parametrize("n", [3, 7, 10, 49, 1000])
@pytest.mark.parametrize("cap", ["1", "0.3", 0.1, Fraction(1, 3)])
def test_the_nth_part_fits_n_times_and_not_once_more(n, cap):
    exact = Fraction(str(cap))
    budget = acc.Filter("zcdp", cap=cap)
    for _ in range(n):
        budget.spend(exact / n)
    assert budget.remaining.amount == 0
    assert not budget.can_afford("1e-300")
    with pytest.raises(BudgetError, match="is left"):
        budget.spend(Fraction(1, 10**400))


def test_decimals_are_what_they_look_like():
    """Ten tenths are one, although ten floats of a tenth are more."""
    for written in (0.1, "0.1", Fraction(1, 10), np.float64(0.1)):
        budget = acc.Filter("pure", cap=1.0)
        for _ in range(10):
            budget.spend(acc.pure(epsilon=written))
        assert budget.remaining.amount == 0


@given(st.lists(st.floats(0.5, 1e6), min_size=40, max_size=70))
def test_long_denominators_are_rounded_up_and_by_next_to_nothing(spreads):
    """O(1) a question: the sum's denominator stays short, and the sum is never below the exact one."""
    budget, total = acc.Filter("gdp", cap=1e6), Fraction(0)
    for std in spreads:
        budget.spend(acc.gaussian(std=std))
        total += 1 / Fraction(repr(std)) ** 2
        assert budget.spent.amount.denominator.bit_length() <= 513
    assert total <= budget.spent.amount <= total + Fraction(1, 2**300)


def test_a_sum_that_is_rounded_up_never_admits_more_than_the_cap():
    budget = acc.Filter("pure", cap="1e-200")
    for i in range(400):
        cost = Fraction(1, 10**200 * (1000 + 7 * i))
        if budget.can_afford(cost):
            budget.spend(cost)
    assert budget.spent.amount <= budget.cap.amount


@given(
    st.fractions(Fraction(1, 97), 9, max_denominator=97), st.fractions(0, 1, max_denominator=89), st.integers(-12, 12)
)
def test_what_can_be_afforded_is_what_can_be_spent_next_to_what_is_left(cap, share, exponent):
    """Also where the answer needs no long fractions: a billionth more than what is left is too much."""
    for currency in ("pure", "zcdp", "gdp"):
        budget = acc.Filter(currency, cap=cap)
        budget.spend(cap * share)
        left = budget.remaining.amount
        cost = left * (1 + Fraction(exponent, 10**11))
        assert budget.can_afford(cost) is (cost <= left)


UNIT, MIDDLE = Fraction(1, 2**402), Fraction(1, 4) + Fraction(1, 2**55)  # the second between two floats
LONG = Fraction(9 * 7**60 // 10, 7**60)


@pytest.mark.parametrize(("left", "cost"), [(UNIT, UNIT * LONG), (MIDDLE + UNIT / 8, MIDDLE - UNIT * LONG / 2**8)])
def test_a_cost_that_rounding_would_carry_beyond_the_cap_cannot_be_afforded(left, cost):
    """The sum goes up to the next multiple of 2⁻⁴⁰², and the cap of a third lies between two of them."""
    budget = acc.Filter("pure", cap=Fraction(1, 3))
    budget.spend(budget.cap.amount - left)
    assert cost < budget.remaining.amount == left
    assert not budget.can_afford(cost)
    with pytest.raises(BudgetError):
        budget.spend(cost)


@pytest.mark.parametrize(("lost", "fits"), [("1e-7", True), ("2e-7", True), ("3e-7", False)])
def test_delta_lost_outright_needs_its_allowance_however_small_the_rest(lost, fits):
    budget = acc.Filter("pure", cap=1, lost="2e-7")
    event = acc.approximate(epsilon="0.001", delta=lost)
    assert budget.can_afford(event) is fits
    if fits:
        assert budget.spend(event).lost == Fraction(lost)
        assert budget.remaining.lost == Fraction("2e-7") - Fraction(lost)
        assert not budget.can_afford(acc.approximate(epsilon="0.001", delta="2e-7"))
        assert budget.can_afford(acc.pure(epsilon="0.001"))
    else:
        with pytest.raises(BudgetError, match="and δ ="):
            budget.spend(event)


@pytest.mark.parametrize("make", [lambda: acc.Filter("gdp", cap=1), lambda: acc.Odometer("gdp", delta=1e-6)])
def test_the_relation_of_the_first_event_is_that_of_all(make):
    budget = make()
    budget.spend("0.1")
    assert budget.relation is None
    one, other = (acc.Cost(amount=Fraction(1, 10), relation=relation) for relation in ("replace-one", "add-remove"))
    assert budget.spend(one) == one
    assert budget.relation == "replace-one"
    assert budget.spend("0.1").relation is None
    assert budget.relation == "replace-one"
    before = budget.spent
    for ask in (budget.spend, getattr(budget, "can_afford", budget.spend)):
        with pytest.raises(ParameterError, match="relation"):
            ask(other)
    assert budget.spent is before


# --- what events cost -------------------------------------------------------------------------------------------------


def slow_divergence(event, order):
    """D_α of one release by direct integration or sums, both directions."""
    with mp.workdps(30 if event.kind == "poisson_gaussian" else 60):
        a = mp.mpf(order)

        def get(name):  # as it was written
            return mp.mpf(repr(event.parameter(name)))

        if event.kind == "laplace":
            t = get("sensitivity") / get("scale")
            inner = a / (2 * a - 1) * mp.exp((a - 1) * t) + (a - 1) / (2 * a - 1) * mp.exp(-a * t)
            return mp.log(inner) / (a - 1)
        if event.kind == "pure":
            e = get("epsilon")
            return mp.log((mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))) / (a - 1)
        if event.kind == "poisson_gaussian":
            s, q = get("sensitivity") / get("std"), get("rate")

            def mixed(x):
                return (1 - q) + q * mp.exp(s * x - s * s / 2)

            top = mp.quad(lambda x: mp.npdf(x) * mixed(x) ** a, mp.linspace(-12, 12 + a * s, 12))
            low = mp.quad(lambda x: mp.npdf(x) * mixed(x) ** (1 - a), mp.linspace(-12 - a * s, 12, 12))
            return mp.log(max(top, low)) / (a - 1)
        assert event.kind == "shuffled_bits"
        n, p = int(get("users")) * int(get("messages")), get("probability")
        pmf = [mp.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        one = mp.fsum(pmf[k] ** a * pmf[k - 1] ** (1 - a) for k in range(1, n + 1))
        two = mp.fsum(pmf[k - 1] ** a * pmf[k] ** (1 - a) for k in range(1, n + 1))
        return mp.log(max(one, two)) / (a - 1)


RENYI_EVENTS = [
    acc.laplace(scale=1),
    acc.laplace(scale=0.05),
    acc.laplace(scale=1e5),
    acc.laplace(scale=1e11),
    acc.pure(epsilon=1e-9),
    acc.pure(epsilon=0.5),
    acc.pure(epsilon=12),
    acc.poisson_gaussian(std=1, rate=0.01, relation="add-remove"),
    acc.poisson_gaussian(std=0.6, rate=0.3, relation="add-remove"),
    acc.poisson_gaussian(std=5, rate=1e-4, relation="add-remove"),
    acc.shuffled_bits(users=40, probability=0.5, moved="up"),
]


@pytest.mark.parametrize("order", ["1.25", "3", "24"])
@pytest.mark.parametrize("event", RENYI_EVENTS, ids=str)
def test_costs_at_an_order_are_never_below_the_divergence(event, order):
    found, truth = cost_of(event, renyi(order)).amount, slow_divergence(event, order)
    with mp.workdps(40):
        value = mp.mpf(found.numerator) / found.denominator
        assert truth <= value
        if event.parameters[0][1] != 1e11:
            assert value <= truth * (1 + mp.mpf("1e-4")) + mp.mpf("2e-14")


def test_mass_that_is_lost_outright_counts_as_delta():
    """An impossible message has loss ∞: its probability needs an allowance of δ, the rest a finite divergence."""
    event = acc.shuffled_bits(users=20, probability=0.5, moved="up")
    cost = cost_of(event, renyi(4))
    assert Fraction(1, 2**20) <= cost.lost <= Fraction(1, 2**20) * (1 + Fraction(1, 10**9))
    with pytest.raises(BudgetError, match="and δ ="):
        acc.Filter("renyi", cap=10, order=4).spend(event)
    assert acc.Filter("renyi", cap=10, order=4, lost=1e-5).spend(event) == cost


# [lemma pure-is-gaussian]
@pytest.mark.parametrize("exponent", range(-12, 4))
def test_rho_and_mu_of_pure_and_laplace_are_tight_and_not_below(exponent):
    epsilon = Fraction(13, 10) * Fraction(10) ** exponent
    with mp.workdps(60):
        e = mp.mpf(epsilon.numerator) / epsilon.denominator

        def ratio_of(divergence):  # the largest D_α/α over orders; it grows as α falls to 1
            return max(divergence(1 + mp.mpf(10) ** k) / (1 + mp.mpf(10) ** k) for k in range(-12, 4))

        response = ratio_of(lambda a: mp.log((mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))) / (a - 1))
        rho = pure_to_rho(epsilon)
        assert response <= mp.mpf(rho.numerator) / rho.denominator <= response * (1 + mp.mpf("1e-9"))
        if exponent < 3:
            noise = ratio_of(
                lambda a: (
                    mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)
                )
            )
            rho = cost_of(acc.laplace(scale=1 / float(epsilon)), ZCDP).amount
            assert noise * (1 - mp.mpf("1e-14")) <= mp.mpf(rho.numerator) / rho.denominator
            assert mp.mpf(rho.numerator) / rho.denominator <= noise * (1 + mp.mpf("1e-9"))
        mu = pure_to_mu(epsilon)
        m = mp.mpf(mu.numerator) / mu.denominator
        assert mp.erfc(m / (2 * mp.sqrt(2))) <= 2 / (1 + mp.exp(e))  # Φ(−μ/2) ≤ 1/(1 + e^ε)
        if e < 500:
            assert mp.erfc(m * (1 - mp.mpf("1e-12")) / (2 * mp.sqrt(2))) > 2 / (1 + mp.exp(e))


# [lemma pure-is-gaussian]
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 9.0])
def test_randomised_response_is_gaussian_dp_at_its_mu(epsilon):
    """Its whole curve is below the Gaussian one."""
    mu = float(pure_to_mu(Fraction(epsilon)))
    for at in np.linspace(0, epsilon * 1.2, 50).tolist():
        assert acc.pure_delta(epsilon, at).upper <= acc.gdp_delta(mu, at).upper * (1 + 1e-12)


def _responses(epsilon, categories):
    """Masses of one answer under two true values."""
    p, q = math.exp(epsilon) / (math.exp(epsilon) + categories - 1), 1 / (math.exp(epsilon) + categories - 1)
    return np.array([p, q, *[q] * (categories - 2)]), np.array([q, p, *[q] * (categories - 2)])


def _sampled_noise(epsilon, rate):
    """Masses of narrow cells: a sum's noise with and without a sampled user."""
    x = np.linspace(-40 / epsilon, 1 + 40 / epsilon, 100_001)
    p, q = (np.exp(-np.abs(x - moved) * epsilon) for moved in (1, 0))
    return (1 - rate) * q / q.sum() + rate * p / p.sum(), q / q.sum()


# [lemma least-rho]
@pytest.mark.parametrize(
    ("event", "pair"),
    [
        *((acc.randomized_response(epsilon=e, categories=k), _responses(e, k)) for e in (0.1, 1, 5) for k in (3, 900)),
        *(
            (acc.poisson(event=acc.laplace(scale=1 / e), rate=q, relation="add-remove"), _sampled_noise(e, q))
            for e, q in ((1.0, 0.1), (3.0, 0.01))
        ),
    ],
    ids=lambda of: str(of) if isinstance(of, acc.Event) else "",
)
def test_costs_of_bounded_losses_cover_them_and_are_the_least(event, pair):
    """ρ and μ² against divergences and hockey sticks summed here."""
    ratios = []
    for p, q in (pair, pair[::-1]):
        losses = np.log(p) - np.log(q)
        for order in 1 + np.geomspace(1e-3, 1e3, 400):
            top = ((order - 1) * losses).max()
            ratios.append((top + math.log(float(np.sum(p * np.exp((order - 1) * losses - top))))) / (order - 1) / order)
    rho = float(cost_of(event, ZCDP).amount)
    assert max(ratios) * (1 - 1e-7) <= rho <= max(ratios) * (1 + 2e-3)
    mu = math.sqrt(float(cost_of(event, GDP).amount))
    needed = 0.0
    for at in np.linspace(0, 5, 1001):
        delta = max(float(np.sum(np.maximum(p - math.exp(at) * q, 0))) for p, q in (pair, pair[::-1]))
        assert delta <= gaussian_profile(mu, at) * (1 + 1e-6) + 1e-12
        needed = max(needed, delta / gaussian_profile(mu, at) if delta > 1e-9 else 0.0)
    assert needed > 0.97


def test_costs_of_trees_curves_and_partitions_add_up():
    tree = acc.tree(node=acc.gaussian(std=10), leaves=8, participations=1)
    assert float(cost_of(tree, GDP).amount) == pytest.approx(0.04, rel=1e-12)
    one, two = acc.compose(acc.gaussian(std=2), acc.pure(epsilon=1)), acc.compose(acc.gaussian(std=1))
    assert cost_of(acc.parallel(one, two), GDP).amount == max(cost_of(one, GDP).amount, cost_of(two, GDP).amount)
    assert cost_of(one, ZCDP).amount == cost_of(acc.gaussian(std=2), ZCDP).amount + pure_to_rho(Fraction(1))
    assert cost_of(acc.approximate(epsilon="0.2", delta="1e-7", count=3), PURE) == acc.Cost(
        amount=Fraction(3, 5), lost=Fraction(3, 10**7)
    )
    assert cost_of(acc.zcdp(rho="0.1", xi="0.5"), renyi(4)).amount == Fraction(9, 10)
    assert cost_of(acc.zcdp(rho=0, xi="0.5"), PURE).amount == Fraction(1, 2)
    for moved in (3, "0.5", "1.5", "30.25"):  # a scalar, and vectors of which the curve is bounded
        noise = acc.discrete_gaussian(std=40, sensitivity=moved, count=2)
        assert cost_of(noise, ZCDP) == acc.Cost(amount=Fraction(moved) ** 2 / 1600)
        assert cost_of(noise, renyi(3)) == acc.Cost(amount=3 * Fraction(moved) ** 2 / 1600)
        with pytest.raises(ParameterError, match="not on the Gaussian curve"):
            cost_of(noise, GDP)
        with pytest.raises(ParameterError, match="no finite cost"):
            cost_of(acc.tree(node=acc.discrete_gaussian(std=40, sensitivity=30.25), leaves=4, participations=1), GDP)
    choice = acc.exponential_mechanism(epsilon=0.5, monotone=True)  # of range 1/4
    assert cost_of(choice, ZCDP).amount == Fraction(1, 128)
    assert cost_of(choice, PURE).amount == Fraction(1, 4)
    table = acc.renyi_curve({2: 0.2, 8: 0.8})
    assert 0.8 <= float(cost_of(table, renyi(8)).amount) <= 0.8 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("event", "currency", "remedy"),
    [
        (acc.gaussian(std=1), PURE, "'zcdp', 'gdp' or 'renyi'"),
        (acc.zcdp(rho=1), GDP, "'zcdp' or 'renyi'"),
        (acc.zcdp(rho=1, xi=1), ZCDP, "'renyi'"),
        (acc.discrete_gaussian(std=5), GDP, "not on the Gaussian curve"),
        (acc.poisson_gaussian(std=1, rate=0.01, relation="add-remove"), ZCDP, "'renyi' with an order"),
        (acc.poisson_gaussian(std=1, rate=0.01, relation="add-remove"), GDP, "as if all users were sampled"),
        (acc.shuffled_bits(users=20, probability=0.5), ZCDP, "'renyi'"),
        (acc.renyi_curve({2: 0.2, 8: 0.8}), renyi(9), "lower order"),
        (acc.renyi_curve({2: 0.2, 8: 0.8}), ZCDP, "'renyi'"),
    ],
    ids=str,
)
def test_what_has_no_finite_cost_is_refused_with_a_remedy(event, currency, remedy):
    budget = acc.Filter(currency.name, cap=1000, order=currency.order)
    for ask in (budget.can_afford, budget.spend):
        with pytest.raises(ParameterError, match="no finite cost") as caught:
            ask(event)
        assert remedy in str(caught.value)
    assert budget.spent.amount == 0


# --- what a cap means -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("currency", ["zcdp", "gdp", "renyi"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-5), (8, "1e-10"), ("12.5", 0.01)])
def test_the_cap_of_a_target_keeps_it_and_no_larger_one_does(currency, epsilon, delta):
    order = 1 + math.sqrt(math.log(1 / float(delta))) * 4 / min(float(epsilon), 1) if currency == "renyi" else None
    budget = acc.Filter.within(epsilon=epsilon, delta=delta, currency=currency, order=order)
    assert budget.epsilon(delta=delta).upper <= float(epsilon)
    assert budget.delta(epsilon=epsilon).upper <= float(delta) * (1 + 1e-12)
    larger = acc.Filter(currency, cap=budget.cap.amount * Fraction(1 + 10**-9), order=order)
    assert larger.epsilon(delta=delta).upper > float(epsilon)
    assert "filter" in budget.epsilon(delta=delta).method
    assert budget.theorem in budget.epsilon(delta=delta).method


# [lemma filter-lost]
def test_basic_composition_is_a_filter_with_delta_set_aside():
    budget = acc.Filter.within(epsilon=1, delta="1e-6", currency="pure")
    assert budget.cap == acc.Cost(amount=Fraction(1), lost=Fraction(1, 10**6))
    for _ in range(2):
        budget.spend(acc.approximate(epsilon="0.5", delta="5e-7"))
    assert budget.remaining == acc.Cost(amount=Fraction(0))
    assert budget.epsilon(delta="1e-6").value == 1.0
    assert budget.epsilon(delta="9e-7").value == math.inf
    assert budget.delta(epsilon=1).upper >= 1e-6


# [lemma filter-lost]
def test_lost_delta_is_taken_from_the_whole():
    plain = acc.Filter.within(epsilon=1, delta="1e-6", currency="zcdp")
    split = acc.Filter.within(epsilon=1, delta="1e-6", currency="zcdp", lost="4e-7")
    assert split.cap.amount < plain.cap.amount
    same = acc.Filter("zcdp", cap=split.cap.amount)
    assert split.epsilon(delta="1e-6").value == pytest.approx(same.epsilon(delta="6e-7").value, rel=1e-13)
    assert split.delta(epsilon=1).upper >= float(same.delta(epsilon=1)) + 4e-7
    assert split.epsilon(delta="4e-7").value == math.inf


def test_a_filter_within_pure_dp_has_exactly_its_epsilon_as_cap():
    assert acc.Filter.within(epsilon="0.1", delta=0, currency="pure").cap == acc.Cost(amount=Fraction(1, 10))
    with pytest.raises(ParameterError, match="expected lost at most delta") as caught:
        acc.Filter.within(epsilon=1, delta=1e-6, currency="pure", lost=1e-5)
    assert caught.value.name == "lost"


def test_a_filter_says_why_there_is_no_epsilon_and_only_then():
    budget = acc.Filter("zcdp", cap=1, lost="1e-6")
    assert budget.epsilon(delta="1e-5").reason == ""
    assert "not above the 1e-06 that may be lost outright" in budget.epsilon(delta="1e-6").reason
    assert acc.Filter("pure", cap=1000, lost="0.5").delta(epsilon=0).upper == 1.0  # a probability


def test_a_target_that_no_spending_keeps_is_refused_with_what_may_help():
    for more in ({"delta": 0, "currency": "zcdp"}, {"delta": 1e-6, "currency": "renyi", "order": 2}):
        with pytest.raises(ParameterError, match=r"no spending in .* keeps \(0\.1, .*a larger delta") as caught:
            acc.Filter.within(epsilon=0.1, **more)
        assert caught.value.name == "epsilon"


def test_a_cap_below_all_and_above_all_that_keeps_the_target_is_found():
    """At an order at which the conversion adds next to nothing to the divergence."""
    for exponent in (-5, -3, 0, 3, 20, 40, 200):
        order = 1 + Fraction(10) ** (20 - min(exponent, 0))
        cap = acc.Filter.within(
            epsilon=Fraction(10) ** exponent, delta="0.001", currency="renyi", order=order
        ).cap.amount
        assert float(cap) == pytest.approx(10.0**exponent, rel=1e-6)
        assert cap <= Fraction(10) ** exponent


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.Filter("zCDP", cap=1),
        lambda: acc.Filter("zcdp", cap=-1),
        lambda: acc.Filter("zcdp", cap="much"),
        lambda: acc.Filter("zcdp", cap=math.inf),
        lambda: acc.Filter("zcdp", cap=math.nan),
        lambda: acc.Filter("zcdp", cap=1, lost=1),
        lambda: acc.Filter("zcdp", cap=1, order=2),
        lambda: acc.Filter("renyi", cap=1),
        lambda: acc.Filter("renyi", cap=1, order=1),
        lambda: acc.Filter.within(epsilon=1, delta=0, currency="zcdp"),
        lambda: acc.Filter.within(epsilon=0, delta=0, currency="pure"),
        lambda: acc.Filter.within(epsilon=1, delta=1e-6, currency="gdp", lost=1e-5),
        lambda: acc.Filter.within(epsilon=0.1, delta=1e-6, currency="renyi", order=2),
        lambda: acc.Filter("zcdp", cap=1).spend("one"),
        lambda: acc.Filter("zcdp", cap=1).spend(-0.5),
        lambda: acc.Filter("zcdp", cap=1).spend([acc.gaussian(std=1)]),
        lambda: acc.Filter("zcdp", cap=1).epsilon(delta=1),
        lambda: acc.Odometer("zcdp", delta=1e-6, growth=1),
        lambda: acc.Odometer("zcdp", delta=1e-6, first=0),
        lambda: acc.Odometer("zcdp", delta=1e-6, lost=1e-5),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(ParameterError):
        make()


# --- adaptive spending, integrated out --------------------------------------------------------------------------------


def gaussian_profile(mu, epsilon):
    """δ(ε) at any real ε, elementwise."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def response_profile(of, epsilon):
    """δ(ε) of binary randomised response at any real ε, elementwise."""
    p = 1 / (1 + math.exp(-of))
    up, down = -np.expm1(np.minimum(epsilon - of, 0.0)), -np.expm1(np.minimum(epsilon + of, 0.0))
    return p * up + (1 - p) * down


def first_loss(mu):
    """The loss of N(0, 1) against N(μ, 1) with weights: mean μ²/2, standard deviation μ."""
    z = np.linspace(-13, 13, 200_001)
    return mu * mu / 2 + mu * z, np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])


def adaptive_delta(mu, epsilon, branches):
    """δ(ε) of a Gaussian and then, after seeing its output, the branch that leaks most there."""
    loss, weight = first_loss(mu)
    return float(np.sum(weight * np.maximum.reduce([branch(epsilon - loss) for branch in branches])))


# [lemma exact-is-no-filter]
@pytest.mark.parametrize(("std", "second", "response", "times"), [(2, 1, 2.9960, 1.97), (1, 0.5, 7.7087, 1.99)])
def test_composing_exactly_as_one_goes_is_not_a_filter(std, second, response, times):
    """Each branch composed exactly keeps (ε, δ); the whole is at nearly twice the δ. A filter refuses one branch."""
    delta = 1e-5 if std == 2 else 1e-6
    epsilon = acc.compose(acc.gaussian(std=std), acc.gaussian(std=second)).epsilon(delta=delta).upper
    for branch in (acc.gaussian(std=second), acc.pure(epsilon=response)):  # what the wrong check would admit
        assert acc.compose(acc.gaussian(std=std), branch).delta(epsilon=epsilon).upper <= delta * (1 + 1e-9)
    true = adaptive_delta(
        1 / std, epsilon, [lambda e: gaussian_profile(1 / second, e), lambda e: response_profile(response, e)]
    )
    assert times * delta < true < 2 * delta
    for currency, order in (("gdp", None), ("zcdp", None), ("renyi", 10)):
        budget = acc.Filter.within(epsilon=epsilon, delta=delta, currency=currency, order=order)
        budget.spend(acc.gaussian(std=std))
        admitted = [budget.can_afford(e) for e in (acc.gaussian(std=second), acc.pure(epsilon=response))]
        assert not all(admitted)
        assert not admitted[1]


# [lemma filter-sum]
@pytest.mark.parametrize("currency", ["gdp", "zcdp"])
@pytest.mark.parametrize("cap", [0.02, 0.5, 3.0])
def test_the_worst_adaptive_branch_within_a_filter_keeps_its_curve(currency, cap):
    """A Gaussian for a part of the cap, then the worse of a Gaussian and a response for exactly the rest."""
    budget = acc.Filter(currency, cap=cap)
    unit = 1 if currency == "gdp" else 2
    for share in (0.2, 0.5, 0.9):
        rest = Fraction(cap) * Fraction(1 - share)
        low, high = 0.0, 50.0
        for _ in range(60):  # the largest response that fits
            middle = (low + high) / 2
            cost = pure_to_mu(Fraction(middle)) ** 2 if currency == "gdp" else pure_to_rho(Fraction(middle))
            low, high = (middle, high) if cost <= rest else (low, middle)
        mu = math.sqrt(unit * float(rest))
        for epsilon in (0.0, 0.3, 1.0, 4.0, 9.0):
            true = adaptive_delta(
                math.sqrt(unit * cap * share),
                epsilon,
                [lambda e, mu=mu: gaussian_profile(mu, e), lambda e, low=low: response_profile(low, e)],
            )
            assert true <= budget.delta(epsilon=epsilon).upper * (1 + 1e-6) + 1e-13


# --- odometers --------------------------------------------------------------------------------------------------------


def test_an_odometer_reads_the_level_that_holds_the_sum():
    meter = acc.Odometer("gdp", delta=1e-6, first="0.25", growth=3)
    assert meter.epsilon().value == 0.0
    for total, level, caps in ((0.2, 1, 0.25), (0.25, 1, 0.25), (0.3, 2, 0.75), (5, 4, 6.75)):
        meter.spend(Fraction(str(total)) - meter.spent.amount)
        figure = meter.epsilon()
        assert f"level {level}" in figure.method
        share = 1e-6 / (level * (level + 1))
        assert figure.upper == pytest.approx(acc.gdp_epsilon(math.sqrt(caps), share).value, rel=1e-12)
        assert figure.upper >= acc.gdp_epsilon(math.sqrt(total), 1e-6).value  # dearer than a cap fixed in advance
    assert sum(Fraction(1, (j + 1) * (j + 2)) for j in range(1000)) < 1


# [lemma odometer-levels]
def test_stopping_where_one_likes_keeps_the_odometer_s_promise():
    """E[(1 − e^{ε_J − L})₊] ≤ δ for the worst decision after a Gaussian: stop, or go on to a second one."""
    for delta in (1e-2, 1e-5):
        for mu in (0.3, 1.0):
            meter = acc.Odometer("gdp", delta=delta, first=mu**2)
            meter.spend(acc.gaussian(std=1 / mu))
            early = meter.epsilon().upper
            meter.spend(acc.gaussian(std=1 / mu))
            late = meter.epsilon().upper
            assert late > early
            loss, weight = first_loss(mu)
            stop = -np.expm1(np.minimum(early - loss, 0.0))
            true = float(np.sum(weight * np.maximum(stop, gaussian_profile(mu, late - loss))))
            assert true <= delta


def test_an_odometer_of_pure_releases_is_their_sum():
    meter = acc.Odometer("pure", delta="1e-7", lost="1e-7")
    for _ in range(3):
        meter.spend(acc.approximate(epsilon="0.1", delta="3e-8"))
    assert meter.epsilon().upper == 0.30000000000000004  # the least float that is not below
    meter.spend(acc.approximate(epsilon="0.1", delta="3e-8"))
    assert meter.epsilon().value == math.inf
    assert "set aside" in meter.epsilon().reason


def test_an_odometer_ends_in_infinity_not_in_a_hang():
    meter = acc.Odometer("zcdp", delta=1e-6, first="1e-300", growth="1.1")
    meter.spend(1000)
    figure = meter.epsilon()
    assert figure.value == math.inf or figure.value > 1000


def test_an_odometer_beyond_its_levels_reads_infinity_and_says_so(monkeypatch):
    monkeypatch.setattr(odometers, "_LEVELS", 50)
    meter = acc.Odometer("zcdp", delta=1e-6, first=1)
    meter.spend(2**50)
    assert "level 51" in meter.epsilon().method
    assert 2**50 < meter.epsilon().upper < 2**51
    meter.spend("0.001")
    assert meter.epsilon().value == math.inf
    assert "beyond 50 levels" in meter.epsilon().reason


@pytest.mark.parametrize("currency", ["zcdp", "gdp"])
def test_what_an_odometer_sets_aside_is_not_shared_out(currency):
    meter, rest = acc.Odometer(currency, delta="1e-6", lost="4e-7"), acc.Odometer(currency, delta="6e-7")
    for one in (meter, rest):
        one.spend("0.3")
    assert meter.epsilon().upper == rest.epsilon().upper
    meter.spend(acc.Cost(amount=Fraction(0), lost=Fraction(4, 10**7)))
    assert meter.epsilon().upper == rest.epsilon().upper


def test_levels_are_twice_the_one_before_unless_told_and_at_least_a_hundredth_more():
    meters = [acc.Odometer("zcdp", delta=1e-6, **more) for more in ({}, {"growth": 2}, {"growth": "1.01"})]
    for meter in meters:
        meter.spend("0.0399")
    assert meters[0].epsilon() == meters[1].epsilon()
    assert "level 3" in meters[0].epsilon().method
    assert "level 141" in meters[2].epsilon().method
    with pytest.raises(ParameterError, match=r"growth at least 1\.01"):
        acc.Odometer("zcdp", delta=1e-6, growth="1.0099")


# [lemma bounded-range-rho]
@pytest.mark.parametrize("eta", [0.1, 1.0, 6.0])
def test_rho_of_bounded_range_holds_for_every_law_on_an_interval(eta):
    """Exponential mechanisms of range η on two ends, whatever the mass of each: D_α/α ≤ η²/8, and close for small η."""
    rho = float(cost_of(acc.bounded_range(epsilon=eta), ZCDP).amount)
    found = 0.0
    for t in np.linspace(0.001, 0.999, 200) * eta:
        q = (math.exp(eta) - math.exp(t)) / math.expm1(eta)  # P's mass at the loss that is larger by η
        low, high = t - eta, t  # losses of P against Q with E_Q[e^L] = 1
        p = np.array([1 - q, q])
        losses = np.array([low, high])
        assert float(np.sum(p * np.exp(-losses))) == pytest.approx(1, abs=1e-9)
        for order in np.geomspace(1.001, 100, 60):
            top = float(np.log(np.sum(p * np.exp((order - 1) * (losses - high))))) + (order - 1) * high
            found = max(found, top / (order - 1) / order)
    assert found <= rho * (1 + 1e-9)
    if eta <= 1:
        assert found >= 0.95 * rho
