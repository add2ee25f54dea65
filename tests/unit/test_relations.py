"""Neighbouring relations and the pairs that are their candidates for a witness."""

from __future__ import annotations

import pytest

from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut, extreme_pairs

SIZES = [(1, 2, 2), (4, 3, 5), (3, 2, 1), (3, 1, 2)]


def test_words_say_what_is_in_common():
    assert ReplaceOne("patient").words == "replace one patient by any other"
    assert "step 1" in ReplaceOne(initial="fixed").words
    assert AddRemoveOne().words == "add or remove one trajectory"
    assert ZeroOut().words == "zero out one trajectory"
    assert ReplaceOne() != ReplaceOne(initial="fixed")


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("relation", [ReplaceOne(), ReplaceOne(initial="fixed"), AddRemoveOne(), ZeroOut()])
def test_extreme_pairs_are_neighbours_in_both_orders(relation, sizes):
    pairs = list(extreme_pairs(relation, *sizes))
    assert len(pairs) >= 2
    for first, second in pairs:
        users = [user for user in (first, second) if user is not None]
        assert all((u.users, u.horizon, u.num_states, u.num_actions) == (1, *sizes) for u in users)
        assert len(users) == (2 if isinstance(relation, ReplaceOne) else 1)
        if relation == ReplaceOne(initial="fixed"):
            assert (first.states[0, 0], first.actions[0, 0]) == (second.states[0, 0], second.actions[0, 0])
        assert any(one is second and other is first for one, other in pairs) or None in {first, second}
    if not isinstance(relation, ReplaceOne):
        assert {first is None for first, _ in pairs} == {True, False}
