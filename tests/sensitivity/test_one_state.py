"""Tables of one state: what nobody can move costs nothing, as enumeration says, at sizes and at parameters of 1."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from privcheck import verify
from privcheck.declare import statistics
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import S

TABLES = {
    "visits": (statistics.VisitCounts, statistics.PooledVisitCounts),
    "transitions": (statistics.TransitionCounts, statistics.PooledTransitionCounts),
    "rewards": (statistics.RewardSums, statistics.PooledRewardSums),
}
RELATIONS = {"any": ReplaceOne(), "fixed": ReplaceOne(initial="fixed"), "added": AddRemoveOne()}


def count(table, pooled, user):
    """The user's table by cell, as a dictionary."""
    states, actions, rewards = user
    cells = {}
    for h, (state, action, reward) in enumerate(zip(states, actions, rewards, strict=False)):
        key = (0 if pooled else h, state, action, states[h + 1] if table == "transitions" else 0)
        cells[key] = cells.get(key, 0) + (reward if table == "rewards" else 1)
    return cells


def largest_rho(table, pooled, horizon, sizes, relation):
    """ρ of unit Gaussian noise at the worst pair of all users."""
    states, actions = sizes
    users = list(
        itertools.product(
            itertools.product(range(states), repeat=horizon + 1),
            itertools.product(range(actions), repeat=horizon),
            itertools.product((0, 1), repeat=horizon) if table == "rewards" else [(1,) * horizon],
        )
    )
    pairs = itertools.product(users, users) if relation != "added" else ((user, ((), (), ())) for user in users)
    worst = 0
    for one, other in pairs:
        if relation == "fixed" and (one[0][0], one[1][0]) != (other[0][0], other[1][0]):
            continue
        first, second = count(table, pooled, one), count(table, pooled, other)
        worst = max(worst, sum((first.get(k, 0) - second.get(k, 0)) ** 2 for k in first.keys() | second.keys()))
    return Fraction(worst, 2)


def judged(table, pooled, horizon, sizes, *, relation, claimed):
    statistic = TABLES[table][pooled](horizon, *sizes)
    declaration = Declaration(
        name="small", title="one state", source="a test", relation=RELATIONS[relation],
        releases=(Release("table", statistic, Gaussian(variance=1)),), claim=Claim(ZCDP(claimed), source="a test"),
        parameters=(Parameter(name="S", default=1, kind="count", meaning="states"),),
    )  # fmt: skip
    return verify(declaration, {})


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_table_of_one_state_costs_what_enumeration_says(table, relation):
    """The tables of one state and one action were charged like all others: 2H changes where nobody moves anything."""
    for pooled, horizon, sizes in itertools.product((False, True), (1, 2, 3), ((1, 1), (1, 2), (2, 1))):
        if sizes == (2, 1) and horizon == 3:
            continue
        true = largest_rho(table, pooled, horizon, sizes, relation)
        found = judged(table, pooled, horizon, sizes, relation=relation, claimed=true or Fraction(1, 10**6))
        assert found.verdict == "holds", (pooled, horizon, sizes)
        assert (found.upper_ratio, found.lower_ratio) == ((1, 1) if true else (0, 0)), (pooled, horizon, sizes)
        if true:
            less = judged(table, pooled, horizon, sizes, relation=relation, claimed=true * Fraction(98, 100))
            assert less.verdict == "fails", (pooled, horizon, sizes)


@pytest.mark.parametrize("table", TABLES)
def test_a_parameter_of_one_state_is_one_state_there_and_nothing_is_proved_of_others(table):
    true = largest_rho(table, False, 2, (1, 1), "any")
    found = judged(table, False, 2, (S, 1), relation="any", claimed=true or Fraction(1, 10**6))
    assert (found.verdict, found.method) == ("holds", "checked")
