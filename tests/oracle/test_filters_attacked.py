"""Filters, odometers and plans under whatever may be given to them: against sums in fractions that share no code."""

import copy
import math
import pickle  # noqa: TID251 - budgets travel to worker processes
import threading
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import BudgetError, ParameterError

NAMES = ("pure", "zcdp", "gdp")
# how a number may be written → what it is, exactly
WRITTEN = st.one_of(
    st.integers(0, 10**12).map(lambda n: (n, Fraction(n))),
    st.decimals(0, 10**6, places=6).map(lambda d: (str(d), Fraction(d))),
    st.floats(0, 1e12).map(lambda x: (x, Fraction(repr(x)))),
    st.floats(0, 1e-300).map(lambda x: (x, Fraction(repr(x)))),
    st.floats(0, 1e6).map(lambda x: (np.float64(x), Fraction(repr(x)))),
    st.fractions(0, 100, max_denominator=997).map(lambda f: (f, f)),
    st.integers(1, 400).map(lambda n: (f"1e-{n}", Fraction(1, 10**n))),
)
CAPS = WRITTEN.filter(lambda pair: pair[1] > 0)


def travelled(budget):
    """The budget after a journey to another process."""
    return pickle.loads(pickle.dumps(budget))  # noqa: S301 - our own


@given(st.sampled_from(NAMES), CAPS, st.lists(WRITTEN, max_size=20), st.randoms(use_true_random=False))
def test_a_filter_admits_what_fits_and_is_never_below_the_sum(name, cap, amounts, random):
    """What is rounded up, where denominators are long, is next to nothing of the cap, and never in the wrong way."""
    slack = cap[1] / 2**380
    budget, total = acc.Filter(name, cap=cap[0]), Fraction(0)
    assert budget.cap.amount == cap[1]
    for given_as, amount in amounts:
        before = budget.spent
        if random.random() < 0.3:
            budget.can_afford(given_as)
            assert budget.spent is before
        if random.random() < 0.1:
            budget = travelled(budget)
            before = budget.spent
        told = budget.can_afford(given_as)
        if not told:
            with pytest.raises(BudgetError) as caught:
                budget.spend(given_as)
            assert budget.spent is before
            assert caught.value.remaining == budget.remaining
            assert total + amount + slack > cap[1]
            continue
        assert budget.spend(given_as).amount == amount
        total += amount
        assert total <= cap[1]
        assert total <= budget.spent.amount <= total + slack
        assert cap[1] - total - slack <= budget.remaining.amount <= cap[1] - total


@given(st.sampled_from(NAMES), st.lists(WRITTEN, max_size=8), st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_matters(name, amounts, random):
    def spend(pairs):
        budget = acc.Filter(name, cap=10**15)
        for given_as, _ in pairs:
            budget.spend(given_as)
        return budget.spent.amount

    other = list(amounts)
    random.shuffle(other)
    total = sum((amount for _, amount in amounts), Fraction(0))
    assert total <= spend(amounts) <= total + Fraction(1, 2**300)
    assert abs(spend(amounts) - spend(other)) <= Fraction(1, 2**300)
    if total.denominator.bit_length() < 400:
        assert spend(amounts) == spend(other) == spend([(total, total)])


NONSENSE = [
    True, False, np.bool_(True), math.nan, -math.nan, math.inf, -math.inf, -1, -1e-300, -5e-324, "-0.1", "nan", "inf",
    "1e400", 10**400, None, b"1", 1j, [1], "", "0x1", "one", Decimal("NaN"), Decimal(-1), np.float32(np.nan),
    np.array([1.0, 2.0]), Fraction(-1, 3), acc.Cost(amount=Fraction(-1)),
    acc.Cost(amount=Fraction(1, 9), lost=Fraction(-1, 9)), acc.Cost(amount=math.nan), acc.Cost(amount=0.1),
    acc.Cost(amount=True), acc.Cost(amount=Fraction(0), lost=math.inf),
]  # fmt: skip


@pytest.mark.parametrize("what", NONSENSE, ids=repr)
def test_nonsense_is_refused_by_every_door_and_changes_nothing(what):
    """A negative cost above all: it would give back what was spent."""
    budget, meter = acc.Filter("zcdp", cap=1, lost="0.1"), acc.Odometer("zcdp", delta=1e-6, lost="1e-7")
    budget.spend("0.25")
    meter.spend("0.25")
    plan = acc.Plan.of(acc.gaussian(std=3, count=2))
    asked = [budget.spend, budget.can_afford, meter.spend, plan.charge, plan.can_afford]
    if not isinstance(what, acc.Cost):
        asked += [lambda x: acc.Filter("pure", cap=x), lambda x: acc.Odometer("zcdp", delta=x)]
    for door in asked:
        with pytest.raises(ParameterError, match="expected"):
            door(what)
    assert budget.spent == meter.spent == acc.Cost(amount=Fraction(1, 4))
    assert budget.remaining == acc.Cost(amount=Fraction(3, 4), lost=Fraction(1, 10))


def test_a_billion_releases_cost_a_billion_times_one():
    budget = acc.Filter("zcdp", cap="0.5")
    assert budget.spend(acc.gaussian(std=10**5, count=10**9)).amount == Fraction(1, 20)
    for _ in range(9):
        budget.spend(acc.gaussian(std="1e5", count=10**9))
    assert budget.remaining.amount == 0
    assert not budget.can_afford(acc.gaussian(std=1e150))
    plan = acc.Plan.of([acc.gaussian(std=10**5)] * 3, acc.gaussian(std=1e5, count=10**9))
    assert [event.count for event in plan.charge(acc.gaussian(std="1e5", count=10**9)).remaining] == [3]


def test_threads_that_spend_at_once_fill_the_cap_and_no_more():
    budget, meter = acc.Filter("pure", cap=100), acc.Odometer("pure", delta=0.1)
    start, done = threading.Barrier(8), []

    def client():
        start.wait()
        for _ in range(40):
            meter.spend("1/3")
            try:
                budget.spend("1/3")
            except BudgetError:
                continue
            done.append(1)

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), budget.remaining.amount) == (300, 0)
    assert meter.spent.amount == Fraction(320, 3)


def test_a_copy_is_a_budget_of_its_own():
    meter = acc.Odometer("zcdp", delta=1e-6)
    meter.spend("0.3")
    for one in (acc.Filter("gdp", cap=1), meter, acc.Plan.of(acc.gaussian(std=3, count=2))):
        for other in (travelled(one), copy.deepcopy(one)):
            assert repr(other) == repr(one)
    other = copy.deepcopy(meter)
    other.spend(1)
    assert (other.spent.amount, meter.spent.amount) == (Fraction(13, 10), Fraction(3, 10))
    assert meter.epsilon().value < other.epsilon().value


def gaussian_tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def delta_of_mu(mu, epsilon):
    """δ(ε) of μ-GDP, from its definition in many digits."""
    return gaussian_tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * gaussian_tail(epsilon / mu + mu / 2)


@settings(max_examples=40)
@given(st.lists(st.floats(1e-6, 3), min_size=1, max_size=6), st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_what_an_odometer_reads_holds_for_what_was_spent(squares, delta):
    """The reading is never below the ε of the true sum at the whole δ, which has no price for stopping."""
    meter, last = acc.Odometer("gdp", delta=delta), 0.0
    for i, square in enumerate(squares):
        meter.spend(square)
        reading = meter.epsilon().value
        with mp.workdps(60):
            mu = mp.sqrt(mp.mpf(0) + sum(mp.mpf(repr(one)) for one in squares[: i + 1]))
            assert delta_of_mu(mu, mp.mpf(reading)) <= mp.mpf(repr(delta))
        assert reading >= last
        last = reading


EVENTS = [acc.gaussian(std=3), acc.gaussian(std="3.5"), acc.laplace(scale=2), acc.pure(epsilon="0.1")]


@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 10**9)), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 10**9)), max_size=8),
)
def test_a_plan_is_a_table_of_counts_and_a_refusal_leaves_it(planned, asked):
    table = {str(event): 0 for event, _ in planned}
    for event, count in planned:
        table[str(event)] += count
    whole = plan = acc.Plan.of(*(event * count for event, count in planned))
    for event, count in asked:
        fits = table.get(str(event), 0) >= count
        assert plan.can_afford(event * count) is fits
        if fits:
            plan, before = plan.charge(event * count), plan
            table[str(event)] -= count
            assert before != plan
        else:
            with pytest.raises(BudgetError):
                plan.charge(event * count)
    left = {(event.kind, event.parameters): event.count for event in plan.remaining}
    assert left == {(event.kind, event.parameters): table[str(event)] for event in EVENTS if table.get(str(event))}
    assert plan.digest == whole.digest
    assert plan.events == whole.events
