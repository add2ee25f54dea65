"""The neighbouring relation of an event: said where the price depends on it, and carried by all that is made of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import dp_accounting as dp
import numpy as np
import pytest

from privcheck import accounting as acc
from privcheck.accounting import events
from privcheck.accounting.currencies import Currency, cost_of
from privcheck.declare.declaration import Claim, Declaration, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Once, Poisson, WithoutReplacement, WithReplacement
from privcheck.declare.statistics import ClippedSums
from privcheck.errors import BudgetError, ParameterError
from privcheck.pricing import account
from privcheck.terms.guarantees import ApproxDP

NAMES = ("add-remove", "zero-out", "replace-one", "replace-one-same-start")
PRESENT, REPLACING = NAMES[:2], NAMES[2:]
GAUSSIAN = acc.gaussian(std=4)
ENCODER = [[1, 0], [0.5, 1]]

# each builder whose price depends on the relation, and the relations under which it has one
BUILDERS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "poisson_gaussian": (lambda **r: acc.poisson_gaussian(std=1, rate=0.5, **r), NAMES),
    "poisson": (lambda **r: acc.poisson(event=GAUSSIAN, rate=0.5, **r), NAMES),
    "without_replacement": (lambda **r: acc.without_replacement(event=GAUSSIAN, users=9, batch=3, **r), NAMES),
    "with_replacement": (lambda **r: acc.with_replacement(std=4, users=9, draws=3, **r), NAMES),
    "truncated_poisson_gaussian": (
        lambda **r: acc.truncated_poisson_gaussian(std=4, rate=0.2, users=9, most=3, **r),
        NAMES,
    ),
    "matrix_poisson_gaussian": (
        lambda **r: acc.matrix_poisson_gaussian(encoder=ENCODER, std=4, rate=0.2, separation=2, **r),
        PRESENT,
    ),
    "matrix_random_allocation": (
        lambda **r: acc.matrix_random_allocation(encoder=ENCODER, std=4, bins=2, **r),
        PRESENT,
    ),
    "mixture_of_gaussians": (
        lambda **r: acc.mixture_of_gaussians(std=4, sensitivities=[0, 1], probabilities=[0.5, 0.5], **r),
        PRESENT,
    ),
    "random_allocation": (lambda **r: acc.random_allocation(std=4, rounds=9, **r), NAMES),
    "allocated": (lambda **r: acc.allocated(event=acc.laplace(scale=4), rounds=9, **r), PRESENT),
    "shuffled": (lambda **r: acc.shuffled(local_epsilon=1, users=9, **r), NAMES[1:]),
    "shuffled_randomized_response": (
        lambda **r: acc.shuffled_randomized_response(epsilon=1, users=9, **r),
        NAMES[1:],
    ),
    "from_dp_event": (lambda **r: acc.from_dp_event(dp.GaussianDpEvent(4.0), **r), NAMES),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_price_that_depends_on_the_relation_asks_for_it(name):
    make, known = BUILDERS[name]
    with pytest.raises(ParameterError, match=rf"^{name}: expected relation= one of .*name the neighbouring.*got none"):
        make()
    for wrong in (None, "", "replace", "neighbours", 1, ["add-remove"], *(r for r in NAMES if r not in known)):
        with pytest.raises(ParameterError, match=rf"^{name}: expected relation= one of "):
            make(relation=wrong)
    for relation in known:
        assert make(relation=relation).relation == relation


def test_each_event_of_the_library_is_looked_at():
    """A new builder either takes the relation of its price or is one of these, whose caller has applied one."""
    stated = {"gaussian", "laplace", "discrete_gaussian", "discrete_laplace", "symmetric_gaussian", "pure", "zcdp"}
    stated |= {"approximate", "non_private", "randomized_response", "bounded_range", "exponential_mechanism"}
    stated |= {"permute_and_flip", "noisy_max", "above_threshold", "laplace_histogram", "gaussian_histogram"}
    stated |= {"matrix_gaussian", "shuffled_bits", "renyi_curve", "privacy_profile", "trade_off", "loss_distribution"}
    others = {"Event", "Piece", "tree", "matrix_sensitivity"}
    assert set(events.__all__) == stated | others | (set(BUILDERS) - {"from_dp_event"})


def test_a_sampled_gaussian_costs_more_where_a_user_is_replaced():
    """Issue 28: a plan within (2.28, 10⁻³) under add-remove is (2.9495, 10⁻³)-DP where users are replaced."""
    replaced = acc.compose(acc.poisson_gaussian(std=1, rate=0.5, relation="replace-one"))
    removed = acc.compose(acc.poisson_gaussian(std=1, rate=0.5, relation="add-remove"))
    assert replaced.delta(epsilon=2.28).upper == pytest.approx(0.00655, abs=5e-6)
    assert replaced.epsilon(delta=1e-3).upper == pytest.approx(2.9495, abs=5e-5)
    assert removed.epsilon(delta=1e-3).upper == pytest.approx(2.272, abs=5e-4)


def test_the_same_noise_under_another_relation_is_another_event():
    one, other = (acc.poisson_gaussian(std=1, rate=0.5, relation=r) for r in PRESENT)
    assert one.pieces == other.pieces  # one price, two statements
    assert one != other
    assert len({one, other}) == 2
    assert "relation=add-remove" in str(one)
    plans = [acc.Plan.of(event) for event in (one, other)]
    assert plans[0] != plans[1]
    assert plans[0].digest != plans[1].digest
    assert not plans[0].can_afford(other)
    with pytest.raises(BudgetError, match="not in the plan"):
        plans[0].charge(other)
    made = acc.tree(node=one, leaves=8, participations=1), acc.tree(node=other, leaves=8, participations=1)
    assert made[0] != made[1]


def test_a_batch_of_zeroed_out_users_costs_as_much_as_one_of_replaced_ones():
    made = {r: BUILDERS["without_replacement"][0](relation=r) for r in NAMES}
    assert made["zero-out"].pieces == made["replace-one"].pieces == made["replace-one-same-start"].pieces
    assert made["add-remove"].pieces != made["zero-out"].pieces


# --- random nestings ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nested:
    """How an event is made, the relations that are named inside, and whether each sample's inside is priced for it."""

    make: Callable[[], acc.Event]
    names: frozenset[str]
    sound: bool = True
    pair: bool = True  # a dominating pair is known: it can be sampled
    single: bool = True  # released once


def leaf(rng: np.random.Generator) -> Nested:
    name = str(rng.choice(["", *NAMES], p=[0.4, 0.15, 0.15, 0.15, 0.15]))
    if not name:
        return Nested(lambda: GAUSSIAN, frozenset())
    return Nested(lambda: acc.poisson_gaussian(std=4, rate=0.1, relation=name), frozenset({name}))


def event(rng: np.random.Generator, depth: int) -> Nested:  # noqa: PLR0911 - one return a combinator
    if depth == 0:
        return leaf(rng)
    inner, name = event(rng, depth - 1), str(rng.choice(NAMES))
    kind = str(rng.choice(["times", "tree", "group", "user_level", "poisson", "batch", "best"]))
    if kind == "tree" and inner.single and (inner.pair or not inner.names):  # of repeated sampled runs it is refused
        return Nested(lambda: acc.tree(node=inner.make(), leaves=4, participations=1), *_rest(inner, pair=inner.pair))
    if kind == "group" and depth == 1:  # of what is nested, its profile takes seconds
        return Nested(lambda: acc.group(inner.make(), size=2), *_rest(inner, pair=inner.pair), inner.single)
    if kind == "user_level" and depth == 1:
        return Nested(lambda: acc.user_level(inner.make(), records=2, releases=1), *_rest(inner, pair=inner.pair))
    names = inner.names | {name}
    if kind == "poisson" and inner.pair:
        sound = inner.sound and not (inner.names and name in REPLACING)
        return Nested(lambda: acc.poisson(event=inner.make(), rate=0.2, relation=name), names, sound)
    if kind == "batch" and inner.pair:
        sound = inner.sound and not (inner.names and name not in REPLACING)
        return Nested(
            lambda: acc.without_replacement(event=inner.make(), users=9, batch=2, relation=name), names, sound
        )
    if kind == "best" and depth == 1:
        return Nested(lambda: _best(inner.make()), *_rest(inner, pair=False))
    return Nested(lambda: 2 * inner.make(), *_rest(inner, pair=inner.pair), single=False)


@functools.cache
def _best(run: acc.Event) -> acc.Event:
    return acc.repeat_and_select(run, mean=3)


def _rest(inner: Nested, *, pair: bool) -> tuple[frozenset[str], bool, bool]:
    return inner.names, inner.sound, pair


def spend(budget, parts):
    for part in parts:
        budget.spend(part)
    return budget


TOGETHER = {
    "compose": acc.compose,
    "list": lambda *parts: acc.compose(list(parts)),
    "sum": lambda *parts: sum(parts[1:], acc.compose(parts[0])),
    "parallel": acc.parallel,
    "curves": lambda *parts: acc.compose(acc.parallel(parts[0]), *map(acc.compose, parts[1:])),
    "group": lambda *parts: acc.group(acc.compose(*parts), size=2),
    "twice": lambda *parts: 2 * acc.compose(*parts),
    "Plan": acc.Plan.of,
    "Filter": lambda *parts: spend(acc.Filter("renyi", cap=10**6, order=2, lost="0.9"), parts),
    "Odometer": lambda *parts: spend(acc.Odometer("renyi", delta="0.95", lost="0.9", order=2), parts),
    "costs": lambda *parts: spend(
        acc.Filter("renyi", cap=10**6, order=2, lost="0.9"),
        [cost_of(part, Currency(name="renyi", order=Fraction(2))) for part in parts],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", TOGETHER)
def test_a_nesting_is_accepted_where_it_names_at_most_one_relation(how):
    rng = np.random.default_rng([28, sorted(TOGETHER).index(how)])
    outcomes = set()
    for _ in range(25):
        parts = [event(rng, int(rng.integers(0, 4))) for _ in range(int(rng.integers(1, 4)))]
        names = frozenset().union(*(part.names for part in parts))
        if len(names) <= 1 and all(part.sound for part in parts):
            made = TOGETHER[how](*(part.make() for part in parts))
            assert made.relation == next(iter(names), None)
            outcomes.add(made.relation)
            continue
        outcomes.add("refused")
        with pytest.raises(ParameterError, match="priced under"):
            TOGETHER[how](*(part.make() for part in parts))
    assert {"refused", None} < outcomes


# --- what is answered -----------------------------------------------------------------------------------------------


def test_an_answer_says_for_which_relation_it_is():
    sampled = acc.poisson_gaussian(std=2, rate=0.1, relation="zero-out")
    for curve, relation in ((acc.compose(sampled, GAUSSIAN), "zero-out"), (acc.compose(GAUSSIAN), None)):
        asked = [curve.epsilon(delta=1e-5), curve.delta(epsilon=1), curve.epsilons([1e-5]), curve.deltas([1])]
        asked += [curve.advantage(), curve.true_positive_rate(0.1), curve.trade_off(0.1), curve.bayes_risk(0.5)]
        asked += [curve.posterior(0.5, false_positive_rate=0.1), curve.reconstruction_rate(0.1)]
        asked += [curve.renyi_divergence(3), acc.Plan.of(*curve.branches[0]).epsilon(delta=1e-5)]
        assert {figure.relation for figure in asked} == {relation}
    for budget in (acc.Filter("renyi", cap=1, order=2), acc.Odometer("renyi", delta=1e-5, order=2)):
        assert budget.relation is None
        budget.spend(sampled)
        budget.spend("0.01")  # an amount names none
        assert budget.relation == budget.spent.relation == "zero-out"
    assert budget.epsilon().relation == "zero-out"


def test_a_refused_release_changes_nothing_of_a_filter():
    budget = acc.Filter("renyi", cap="0.5", order=2)
    removed, replaced = (acc.poisson_gaussian(std=2, rate=0.1, relation=r) for r in ("add-remove", "replace-one"))
    with pytest.raises(BudgetError):
        budget.spend(10_000 * replaced)
    assert budget.relation is None
    budget.spend(removed)
    spent = budget.spent
    for ask in (budget.spend, budget.can_afford):
        with pytest.raises(ParameterError, match="priced under add-remove and under replace-one"):
            ask(replaced)
    assert budget.spent == spent


def test_a_compressed_plan_keeps_its_relation():
    plan = acc.without_replacement(event=acc.pure(epsilon=0.1), users=9, batch=3, relation="replace-one")
    whole = acc.compress_to_mu(plan)
    assert whole.relation == whole.cost.relation == "replace-one"
    budget = acc.Filter("gdp", cap=2)
    budget.spend(whole.cost)
    assert budget.relation == "replace-one"
    with pytest.raises(ParameterError, match="priced under"):
        budget.spend(acc.compress_to_mu(acc.without_replacement(
            event=acc.pure(epsilon=0.1), users=9, batch=3, relation="add-remove"
        )).cost)  # fmt: skip


# --- dp-accounting ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "theirs"), [("add-remove", "ADD_OR_REMOVE_ONE"), ("zero-out", "REPLACE_SPECIAL")])
def test_an_event_for_dp_accounting_comes_with_its_neighbouring_relation(relation, theirs):
    curve = acc.compose(acc.poisson_gaussian(std=2, rate=0.1, relation=relation, count=20), GAUSSIAN)
    named = acc.to_dp_relation(curve)
    assert named == dp.NeighboringRelation[theirs]
    pld = dp.pld.PLDAccountant(named, value_discretization_interval=1e-3)
    found = pld.compose(acc.to_dp_event(curve)).get_epsilon(1e-5)
    assert found == pytest.approx(curve.epsilon(delta=1e-5).value, rel=1e-2)
    back = acc.from_dp_event(acc.to_dp_event(curve), relation=relation)
    assert back.relation == relation
    assert back.epsilon(delta=1e-5).value == pytest.approx(curve.epsilon(delta=1e-5).value, rel=1e-9)


@pytest.mark.parametrize("relation", REPLACING)
def test_a_price_for_a_replaced_user_is_not_said_to_dp_accounting(relation):
    for what in (
        acc.poisson_gaussian(std=2, rate=1, relation=relation),
        acc.with_replacement(std=2, users=9, draws=3, relation=relation),
    ):
        for say in (acc.to_dp_event, acc.to_dp_relation):
            with pytest.raises(ParameterError, match=f"priced under {relation}"):
                say(acc.compose(what, GAUSSIAN))


def test_what_is_read_from_dp_accounting_is_priced_for_the_relation_that_is_named():
    noise = dp.GaussianDpEvent(4.0)
    for relation, moved in (("add-remove", 1), ("zero-out", 1), ("replace-one", 2), ("replace-one-same-start", 2)):
        found = acc.from_dp_event(noise, relation=relation).epsilon(delta=1e-5)
        plain = acc.compose(acc.gaussian(std=4, sensitivity=moved)).epsilon(delta=1e-5)
        assert (found.value, found.relation) == (plain.value, relation)
        sampled = acc.from_dp_event(dp.PoissonSampledDpEvent(0.2, noise), relation=relation)
        own = acc.compose(acc.poisson_gaussian(std=4, rate=0.2, relation=relation))
        assert sampled.epsilon(delta=1e-5).value == pytest.approx(own.epsilon(delta=1e-5).value, rel=1e-9)


# --- declarations ----------------------------------------------------------------------------------------------------

RELATIONS = {
    "add-remove": AddRemoveOne("user"),
    "zero-out": ZeroOut("user"),
    "replace-one": ReplaceOne("user"),
    "replace-one-same-start": ReplaceOne("user", "fixed"),
}
SCHEDULES = {
    "once": Once(),
    "poisson": Poisson(rate="0.1", rounds=3),
    "batch": WithoutReplacement(batch=2, users=9, rounds=3),
    "drawn": WithReplacement(draws=2, users=9, rounds=3),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_curve_of_a_declaration_is_named_as_its_relation(relation, schedule):
    releases = tuple(
        Release(
            name,
            ClippedSums(dimension=1, norm=1),
            Gaussian(variance=4),
            schedule=how,
            fresh=name == "second" and schedule == "poisson",
        )
        for name, how in (("first", SCHEDULES[schedule]), ("second", SCHEDULES["poisson"]), ("third", Once()))
    )
    declaration = Declaration(
        name="x", title="", source="", relation=RELATIONS[relation], releases=releases, parameters=(),
        claim=Claim(ApproxDP(20, "1e-5"), source="Theorem 1"),
    )  # fmt: skip
    curve = account(declaration).at({}).curve
    assert curve.relation == curve.epsilon(delta=1e-5).relation == relation
    assert {event.relation for branch in curve.branches for event in branch} == {relation}
