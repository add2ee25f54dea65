"""Sensitivities of tabular sums against every neighbour at tiny sizes: equality, for slack is a finding too."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut, extreme_pairs
from privcheck.declare.statistics import RewardSums, TransitionCounts, VisitCounts
from privcheck.declare.statistics.base import Sensitivity
from privcheck.terms.symbols import A, H, S, expression
from privcheck.testing import all_pairs, all_users, assert_sensitivity, suprema

SIZES = [(1, 2, 2), (2, 2, 2), (3, 2, 1)]
RELATIONS = [ReplaceOne(), ReplaceOne(initial="fixed"), AddRemoveOne(), ZeroOut()]
STATISTICS = [VisitCounts(H, S, A), TransitionCounts(H, S, A), RewardSums(H, S, A)]

each_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: s.name.replace(" ", "-"))
each_relation = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.words.replace(" ", "-")[:40])
each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)


def _values(sizes):
    return dict(zip("HSA", map(Fraction, sizes), strict=True))


def _nothing_changes(statistic, relation, sizes):
    """At H = 1 a fixed first pair leaves the visits alone: all changes are 0, and linf = 1 is an upper bound only."""
    return statistic.name == "visit counts" and relation == ReplaceOne(initial="fixed") and sizes[0] == 1


# [lemma cell-sums]
@each_size
@each_relation
@each_statistic
def test_the_sensitivity_is_the_supremum(statistic, relation, sizes):
    if _nothing_changes(statistic, relation, sizes):
        stated = statistic.sensitivity(relation)
        found = suprema(statistic, relation, *sizes)
        assert (found.l1, found.l2_squared, found.linf) == (0, 0, 0)
        assert stated.l1.rational(_values(sizes)) == stated.l2.rational(_values(sizes)) == 0
    else:
        assert_sensitivity(statistic, relation, _values(sizes))


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        # (l1 of visits, of transitions, of reward sums) at H = 3, counted by hand
        (ReplaceOne(), (6, 6, 6)),
        (ReplaceOne(initial="fixed"), (4, 6, 5)),
        (AddRemoveOne(), (3, 3, 3)),
        (ZeroOut(), (3, 3, 3)),
    ],
)
def test_the_enumeration_itself_against_counts_by_hand(relation, expected):
    found = [suprema(statistic, relation, 3, 2, 1) for statistic in STATISTICS]
    assert tuple(f.l1 for f in found) == expected
    assert tuple(f.l2_squared for f in found) == expected  # unit changes: ‖Δ‖₂² = ‖Δ‖₁


@each_size
@each_relation
@each_statistic
def test_a_difference_is_the_subtraction_of_two_computed_tables(statistic, relation, sizes):
    if sizes == (2, 2, 2) and isinstance(relation, ReplaceOne):
        pairs = list(all_pairs(relation, *sizes))[::29]  # of 16 384 and 4 096; 29 is prime to their patterns
    else:
        pairs = list(all_pairs(relation, *sizes))
    for first, second in pairs[:: max(1, len(pairs) // 600)]:
        tables = [statistic.compute(user) if user else 0.0 for user in (first, second)]
        dense = np.ravel(tables[0] - tables[1])
        sparse = statistic.difference((first, second))
        rebuilt = np.zeros_like(dense)
        rebuilt[sparse.cells] = sparse.change
        assert np.array_equal(rebuilt, dense)
        assert (np.diff(sparse.cells) > 0).all()
        assert (sparse.change != 0).all()
        assert (sparse.l1, sparse.l2_squared) == (np.abs(dense).sum(), np.square(dense).sum())


@pytest.mark.parametrize("sizes", [*SIZES, (5, 3, 4), (20, 24, 25)], ids=str)
@each_relation
@each_statistic
def test_extreme_pairs_attain_the_supremum(statistic, relation, sizes):
    stated = statistic.sensitivity(relation)
    changes = [statistic.difference(pair) for pair in extreme_pairs(relation, *sizes)]
    assert max(c.l1 for c in changes) == stated.l1.rational(_values(sizes))
    assert max(c.l2_squared for c in changes) == (stated.l2**2).rational(_values(sizes))
    if not _nothing_changes(statistic, relation, sizes):
        assert max(np.abs(c.change).max(initial=0) for c in changes) == stated.linf.rational(_values(sizes))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@each_relation
def test_one_extreme_pair_is_worst_for_all_tables_at_once(relation, sizes):
    # what makes a witness for a declaration of three releases: the pair's losses add up
    attained = [
        all(s.difference(pair).l1 == s.sensitivity(relation).l1.rational(_values(sizes)) for s in STATISTICS)
        for pair in extreme_pairs(relation, *sizes)
    ]
    assert any(attained)


@each_relation
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("factor", ["0.95", "1.05"])
def test_a_sensitivity_off_by_five_percent_is_caught(relation, norm, factor):
    true = RewardSums(H, S, A)

    class Mutant:
        name = "mutant"
        compute = true.compute

        def sensitivity(self, relation) -> Sensitivity:
            stated = true.sensitivity(relation)
            return dataclasses.replace(stated, **{norm: getattr(stated, norm) * factor})

    assert_sensitivity(true, relation, _values((2, 2, 2)))
    with pytest.raises(AssertionError, match=f"{norm}( squared)? is stated as .*, the largest change is"):
        assert_sensitivity(Mutant(), relation, _values((2, 2, 2)))


def test_all_users_are_there_once():
    users = all_users(2, 2, 2)
    rows = np.hstack([users.states, users.actions, users.rewards.astype(int)])
    assert len(np.unique(rows, axis=0)) == users.users == 2**3 * 2**2 * 2**2
    with pytest.raises(ValueError, match="enumerate smaller sizes"):
        all_users(20, 24, 25)


@pytest.mark.parametrize(
    ("relation", "how_many"),
    # 16 trajectories at (1, 2, 2); the first pair (s, a) takes 4 values, 4 trajectories each
    [(ReplaceOne(), 16**2), (ReplaceOne(initial="fixed"), 4 * 4**2), (AddRemoveOne(), 2 * 16), (ZeroOut(), 2 * 16)],
)
def test_all_pairs_are_counted(relation, how_many):
    assert len(list(all_pairs(relation, 1, 2, 2))) == how_many


@each_relation
@each_statistic
def test_with_a_single_cell_the_bound_stays_a_bound(statistic, relation):
    # S·A = 1: replacing moves nothing between cells; documented as an upper bound there
    values = _values((2, 1, 1))
    found, stated = suprema(statistic, relation, 2, 1, 1), statistic.sensitivity(relation)
    assert found.l1 <= stated.l1.rational(values)
    assert found.l2_squared <= (stated.l2**2).rational(values)
    assert found.linf <= stated.linf.rational(values) == expression(1).rational()
