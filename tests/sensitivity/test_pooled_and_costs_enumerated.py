"""Sums pooled over steps, and cost sums, against every neighbour at tiny sizes: equality, for slack is a finding."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut, extreme_pairs
from privcheck.declare.statistics import (
    CostSums,
    PooledRewardSums,
    PooledTransitionCounts,
    PooledVisitCounts,
    RewardSums,
    TransitionCounts,
    VisitCounts,
)
from privcheck.errors import TrajectoryError
from privcheck.terms.symbols import A, H, S
from privcheck.testing import all_pairs, all_users, assert_sensitivity, suprema

SIZES = [(1, 2, 2), (2, 2, 2), (3, 2, 1)]
RELATIONS = [ReplaceOne(), ReplaceOne(initial="fixed"), AddRemoveOne(), ZeroOut()]
POOLED = [PooledVisitCounts(H, S, A), PooledTransitionCounts(H, S, A), PooledRewardSums(H, S, A)]
BY_STEP = [VisitCounts(H, S, A), TransitionCounts(H, S, A), RewardSums(H, S, A)]

each_statistic = pytest.mark.parametrize(
    "statistic", [*POOLED, CostSums(H, S, A)], ids=lambda s: s.name.replace(" ", "-").replace(",", "")
)
each_relation = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.words.replace(" ", "-")[:40])


def _values(sizes):
    return dict(zip("HSA", map(Fraction, sizes), strict=True))


# [lemma pooled-cells]
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@each_relation
@each_statistic
def test_the_sensitivity_is_the_supremum(statistic, relation, sizes):
    assert_sensitivity(statistic, relation, _values(sizes))


@pytest.mark.parametrize(
    ("relation", "l1", "l2_squared"),
    [
        # visits, transitions, rewards at H = 3, counted by hand: a user may stay in one cell all the time. With step
        # 1's pair in common, two later visits against two; of the transitions (0,0,0) thrice against (0,0,1) and twice
        # (1,0,1); of the rewards thrice 1 in the cell of step 1 against 0 there and twice 1 elsewhere
        (ReplaceOne(), (6, 6, 6), (18, 18, 18)),
        (ReplaceOne(initial="fixed"), (4, 6, 5), (8, 14, 13)),
        (AddRemoveOne(), (3, 3, 3), (9, 9, 9)),
    ],
)
def test_the_enumeration_itself_against_counts_by_hand(relation, l1, l2_squared):
    found = [suprema(statistic, relation, 3, 2, 1) for statistic in POOLED]
    assert tuple(f.l1 for f in found) == l1
    assert tuple(f.l2_squared for f in found) == l2_squared


@pytest.mark.parametrize("sizes", [*SIZES, (5, 3, 4), (20, 6, 2)], ids=str)
@each_relation
@each_statistic
def test_extreme_pairs_attain_the_supremum(statistic, relation, sizes):
    stated = statistic.sensitivity(relation)
    changes = [statistic.difference(pair) for pair in extreme_pairs(relation, *sizes)]
    assert max(c.l1 for c in changes) == stated.l1.rational(_values(sizes))
    assert max(c.l2_squared for c in changes) == (stated.l2**2).rational(_values(sizes))
    assert max(np.abs(c.change).max(initial=0) for c in changes) == stated.linf.rational(_values(sizes))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    "tables", [POOLED, [VisitCounts(H, S, A), CostSums(H, S, A), TransitionCounts(H, S, A)]], ids=["pooled", "costs"]
)
@each_relation
def test_one_extreme_pair_is_worst_for_all_tables_at_once(relation, tables, sizes):
    # what makes a witness for a declaration of three releases: the pair's losses add up
    attained = [
        all(s.difference(pair).l1 == s.sensitivity(relation).l1.rational(_values(sizes)) for s in tables)
        for pair in extreme_pairs(relation, *sizes)
    ]
    assert any(attained)


@each_relation
@each_statistic
def test_a_difference_is_the_subtraction_of_two_computed_tables(statistic, relation):
    pairs = list(all_pairs(relation, 3, 2, 1))
    for first, second in pairs[:: max(1, len(pairs) // 200)]:
        tables = [statistic.compute(user) if user else 0.0 for user in (first, second)]
        dense = np.ravel(tables[0] - tables[1])
        sparse = statistic.difference((first, second))
        rebuilt = np.zeros_like(dense)
        rebuilt[sparse.cells] = sparse.change
        assert np.array_equal(rebuilt, dense)
        assert (sparse.change != 0).all()


@pytest.mark.parametrize(
    ("pooled", "by_step"), list(zip(POOLED, BY_STEP, strict=True)), ids=["visits", "transitions", "r"]
)
def test_a_pooled_table_is_the_table_by_step_summed(pooled, by_step):
    users = all_users(2, 2, 2)
    expected = by_step.compute(users).sum(axis=0)
    assert np.array_equal(pooled.compute(users)[0], expected)
    assert np.array_equal(pooled.compute(users, step=0), expected)
    assert pooled.compute(users).shape == pooled.shape(_values((2, 2, 2)))
    with pytest.raises(TrajectoryError, match="expected step 0 of a table whose steps are pooled, got 1"):
        pooled.compute(users, step=1)


def test_costs_and_rewards_are_the_visits():
    users = all_users(2, 2, 2)
    costs, rewards, visits = (f(H, S, A).compute(users) for f in (CostSums, RewardSums, VisitCounts))
    assert np.array_equal(costs + rewards, visits)


@each_relation
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("factor", ["0.95", "1.05"])
def test_a_sensitivity_off_by_five_percent_is_caught(relation, norm, factor):
    true = PooledRewardSums(H, S, A)

    class Mutant:
        name = "mutant"
        compute = true.compute

        def sensitivity(self, relation):
            stated = true.sensitivity(relation)
            return dataclasses.replace(stated, **{norm: getattr(stated, norm) * factor})

    with pytest.raises(AssertionError, match=f"{norm}( squared)? is stated as .*, the largest change is"):
        assert_sensitivity(Mutant(), relation, _values((3, 2, 1)))
