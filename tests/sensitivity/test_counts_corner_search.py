"""At sizes that cannot be enumerated Hypothesis searches for a pair that moves a table further than stated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from privcheck.data.trajectories import concatenate
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.statistics import RewardSums, TransitionCounts, VisitCounts
from privcheck.terms.symbols import A, H, S
from privcheck.testing import neighbouring_pairs, trajectories
from twins.streams import replace_user

RELATIONS = [ReplaceOne(), ReplaceOne(initial="fixed"), AddRemoveOne(), ZeroOut()]
STATISTICS = [VisitCounts(H, S, A), TransitionCounts(H, S, A), RewardSums(H, S, A)]
ROUNDING = 1e-12  # sums of a few rewards in [0, 1]

sizes = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.words.replace(" ", "-")[:40])
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: s.name.replace(" ", "-"))
def test_no_pair_moves_a_table_further_than_stated(statistic, relation):
    stated = statistic.sensitivity(relation)

    @given(sizes.flatmap(lambda hsa: st.tuples(st.just(hsa), neighbouring_pairs(relation, *hsa))))
    def search(found):
        hsa, pair = found
        values = dict(zip("HSA", map(Fraction, hsa), strict=True))
        change = statistic.difference(pair)
        assert change.l1 <= stated.l1.number(values) + ROUNDING
        assert change.l2_squared <= (stated.l2**2).number(values) + ROUNDING
        assert np.abs(change.change).max(initial=0) <= stated.linf.number(values)

    search()


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.words.replace(" ", "-")[:40])
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: s.name.replace(" ", "-"))
def test_the_search_finds_a_five_percent_understatement(statistic, relation):
    true = statistic.sensitivity(relation).l1.number({"H": Fraction(2), "S": Fraction(3), "A": Fraction(2)})
    pair = find(
        neighbouring_pairs(relation, 2, 3, 2),
        lambda pair: statistic.difference(pair).l1 > 0.95 * true,
        settings=settings(max_examples=20_000, derandomize=True, database=None, deadline=None, phases=[Phase.generate]),
    )
    assert 0.95 * true < statistic.difference(pair).l1 <= true + ROUNDING


@given(
    trajectories(3, 4, 2, users=st.integers(1, 6)),
    trajectories(3, 4, 2),
    st.integers(0, 5),
    st.sampled_from(STATISTICS),
)
def test_a_user_moves_a_dataset_as_far_as_alone(data, other, index, statistic):
    index %= data.users
    change = statistic.compute(data) - statistic.compute(replace_user(data, index, other))
    alone = statistic.difference((data.user(index), other))
    dense = np.zeros(change.size)
    dense[alone.cells] = alone.change
    assert np.allclose(change.ravel(), dense, rtol=0, atol=ROUNDING)
    added = statistic.compute(concatenate([data, other])) - statistic.compute(data)
    assert np.allclose(added, statistic.compute(other), rtol=0, atol=ROUNDING)


@given(trajectories(3, 4, 2, users=st.integers(1, 6)))
def test_the_tables_against_plain_loops(data):
    visits, passed, rewarded = np.zeros((3, 4, 2)), np.zeros((3, 4, 2, 4)), np.zeros((3, 4, 2))
    for user in range(data.users):
        for h in range(3):
            state, action = data.states[user, h], data.actions[user, h]
            visits[h, state, action] += 1
            passed[h, state, action, data.states[user, h + 1]] += 1
            rewarded[h, state, action] += data.rewards[user, h]
    for statistic, naive in zip(STATISTICS, (visits, passed, rewarded), strict=True):
        table = statistic.compute(data)
        assert table.shape == statistic.shape({"H": Fraction(3), "S": Fraction(4), "A": Fraction(2)})
        assert np.allclose(table, naive, rtol=0, atol=ROUNDING)
        assert all(np.array_equal(statistic.compute(data, step=h), table[h]) for h in range(3))
