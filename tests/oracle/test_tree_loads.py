"""Trees with many participations against all subsets of leaves, and the order in which Laplace moves are charged."""

import itertools
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.engine.trees import _level_bound, pattern_moves, tree_load
from privcheck.errors import ParameterError


def slow_moves(leaves, chosen):
    """The naive twin: every complete block of a power of two, one by one."""
    loads, size = [], 1
    while size <= leaves:
        loads += [sum(start <= x < start + size for x in chosen) for start in range(0, leaves - size + 1, size)]
        size *= 2
    return loads


def patterns(leaves, participations, separation):
    for chosen in itertools.combinations(range(leaves), participations):
        if all(b - a >= separation for a, b in itertools.pairwise(chosen)):
            yield slow_moves(leaves, chosen)


def over(moves, t):
    return sum(max(c - t, 0) for c in moves)


# [lemma tree-shifts]
@given(st.integers(1, 13), st.integers(1, 6), st.integers(1, 5))
@example(8, 2, 1)
@example(13, 4, 3)
@settings(max_examples=80)
def test_loads_by_brute_force_over_all_patterns(leaves, participations, separation):
    if (participations - 1) * separation >= leaves:
        return
    load = tree_load(leaves, participations, separation)
    found = list(patterns(leaves, participations, separation))
    assert load.exact
    assert load.least
    assert load.squares == max(sum(c * c for c in moves) for moves in found)
    assert load.total == max(map(sum, found))
    charged = [c for c, n in load.moves for _ in range(n)]
    for t in range(participations + 1):
        assert over(charged, t) == max(over(moves, t) for moves in found)
    assert load.attained == any(sorted(filter(None, moves)) == sorted(charged) for moves in found)


# [lemma tree-shifts]
@pytest.mark.parametrize("leaves", range(1, 11))
def test_every_small_tree(leaves):
    for separation, participations in itertools.product(range(1, 6), range(1, leaves + 1)):
        if (participations - 1) * separation >= leaves:
            continue
        load = tree_load(leaves, participations, separation)
        found = list(patterns(leaves, participations, separation))
        assert load.squares == max(sum(c * c for c in moves) for moves in found)
        assert load.total == max(map(sum, found))
        bound = _level_bound(leaves, participations, separation)
        assert load.squares <= sum(n * c * c for c, n in bound)
        assert load.total <= sum(n * c for c, n in bound)


@given(st.integers(1, 200), st.lists(st.integers(0, 199), max_size=8, unique=True))
def test_moves_of_a_pattern_by_the_naive_twin(leaves, chosen):
    chosen = [x for x in chosen if x < leaves]
    fast = [c for c, n in pattern_moves(leaves, chosen) for _ in range(n)]
    assert fast == sorted(filter(None, slow_moves(leaves, chosen)))


def test_the_published_points():
    assert tree_load(8, 2, 1).squares == 14
    for leaves in (1, 2, 3, 4, 1000, 1023, 1024, 10**6):
        assert tree_load(leaves, 1, 1).total == math.floor(math.log2(leaves)) + 1
    assert tree_load(1 << 20, 1024, 1).exact
    many = acc.compose(acc.tree(node=acc.gaussian(std=10), leaves=8, participations=2)).epsilon(delta=1e-6)
    assert many.value == pytest.approx(acc.gdp_epsilon(math.sqrt(14) / 10, 1e-6).value, rel=1e-11)


@pytest.mark.parametrize("leaves", [100, 1000, 10**6])
def test_without_separation_the_first_leaves_are_worst(leaves):
    for participations in (1, 2, 3, 7, 64, 100):
        load = tree_load(leaves, participations, 1)
        assert load.attained
        assert load.moves == pattern_moves(leaves, range(participations))


# [lemma tree-levels]
def test_large_trees_are_searched_where_tractable_and_bounded_level_by_level_elsewhere():
    searched = tree_load(1000, 10, 7)  # 10¹⁵ patterns or so
    assert (searched.exact, searched.least) == (True, True)
    assert searched.squares < sum(n * c * c for c, n in _level_bound(1000, 10, 7))
    half = tree_load(1000, 100, 10)  # the squares are affordable, all of (c − t)₊ are not
    assert (half.exact, half.least) == (True, False)
    bounded = tree_load(10**6, 30, 1000)
    assert (bounded.exact, bounded.least) == (False, False)


@pytest.mark.parametrize("node", [acc.gaussian(std=10), acc.laplace(scale=30)])
def test_a_bounded_tree_says_so(node):
    searched = acc.compose(acc.tree(node=node, leaves=37, participations=5, separation=4))
    bounded = acc.compose(acc.tree(node=node, leaves=10**6, participations=30, separation=1000))
    assert "bounded" not in searched.epsilon(delta=1e-5).method
    for figure in (bounded.epsilon(delta=1e-5), bounded.delta(epsilon=0.1)):
        assert figure.direction != "exact"
        assert "bounded level by level" in figure.method
        assert "bounded level by level" in figure.reason
        assert figure.upper >= figure.value
    with pytest.raises(ParameterError, match="do not fit"):
        tree_load(10, 4, 4)


# [lemma laplace-majorisation]
@given(st.floats(0.05, 4), st.floats(0.05, 4), st.floats(0, 1), st.floats(0, 1.5))
@settings(max_examples=60)
def test_concentrated_laplace_moves_cost_more_by_the_closed_form(first, second, share, at):
    """dδ/dθ = ½e^{(ε − s)/2} where w₁ − w₂ > ε, else 0, along w₁ + w₂ = s: δ is piecewise linear in the move."""
    total, epsilon = first + second, at * (first + second) / 1.5
    low, high = max(first, second), max(first, second) + share * min(first, second)

    def delta(w):
        parts = [acc.laplace(scale=1, sensitivity=w)] + ([acc.laplace(scale=1, sensitivity=total - w)] * (w < total))
        return acc.compose(*parts).delta(epsilon=epsilon)

    since = (total + epsilon) / 2  # w₁ − w₂ = ε
    grown = 0.5 * math.exp((epsilon - total) / 2) * (max(high, since) - max(low, since))
    spread, concentrated = delta(low), delta(high)
    assert concentrated.upper >= (spread.value + grown) * (1 - 1e-3) - 1e-4
    assert concentrated.value <= (spread.upper + grown) * (1 + 1e-3) + 1e-4
