"""Whole agents from outside: pairs that are searched for, parts that are dropped under joint DP, refusals.

Agents that keep their claim are audited at confidence 1 − 10⁻⁹, so that all tests here together accuse one with
probability below 10⁻⁷.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_of_their_own import TreeBandit, add_own_rewards, own_rewards, rewards_of_the_one_before
from privcheck import PureDP, audit_agent
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismError
from privcheck_audits.blackbox.agents import drop_own_part
from privcheck_audits.blackbox.canonical import CallError
from privcheck_audits.blackbox.inputs import forms_of
from privcheck_audits.blackbox.neighbours import find_user, flatten, largest_gap, list_changes, pick_positions

SURE = 1 - 1e-9
USERS = np.zeros((8, 2))  # state and reward
RECORDS = [(0.0, 1.0), (1.0, 1.0)]
ONCE = {"trials": 100, "stop": False, "finalists": 1, "screening": 20}


def audit(agent, **more):
    asked = {"dataset": USERS, "candidates": RECORDS, "relation": "replace-one", "trials": 150, **more}
    return audit_agent(agent, PureDP(1), **asked)


def test_a_forgotten_node_is_found_by_the_search_and_not_with_the_first_user_alone():
    broken = TreeBandit(forgotten=(0, 2))
    found = audit(broken, finalists=1)
    assert found.verdict == "violation"
    assert found.evidence["position"] == 2
    assert "user 3 of 8 (position 2)" in found.notes[0]
    assert "the best of 21 pairs" in str(found)
    first, other = found.neighbours[found.pair]
    assert np.flatnonzero((first != other).any(axis=1)).tolist() == [2]
    assert audit(broken, positions=[0], confidence=SURE, **ONCE).verdict == "consistent"


def test_its_twin_is_spared_and_the_result_depends_on_the_seed_alone():
    found = audit(TreeBandit(), confidence=SURE, **ONCE)
    assert found.verdict == "consistent"
    few = [audit(TreeBandit(), positions=[2], confidence=SURE, workers=workers, **ONCE) for workers in (1, 2)]
    one, other = ((each.lower, each.method, each.notes, dict(each.evidence)) for each in few)
    assert one == other


def test_too_few_runs_for_a_claim_are_said():
    found = audit_agent(
        own_rewards, PureDP(5), dataset=[0.0, 1.0], relation="replace-one", confidence=SURE, joint=True, **ONCE
    )
    assert found.visible == float("inf")
    assert "no bound above" in found.notes[-1]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove", "zero-out"])
def test_what_the_protected_user_alone_sees_is_no_leak_under_joint_dp(relation):
    asked = {"dataset": np.array([0.0, 1.0, 1.0, 0.0]), "relation": relation, **ONCE}
    for agent in (own_rewards, lambda users, rng: dict(enumerate(own_rewards(users, rng)))):
        assert audit_agent(agent, PureDP(1), joint=True, confidence=SURE, **asked).verdict == "consistent"
    assert audit_agent(own_rewards, PureDP(1), **asked).verdict == "violation"
    assert audit_agent(rewards_of_the_one_before, PureDP(1), joint=True, **asked).verdict == "violation"


def test_a_function_drops_what_the_protected_user_sees():
    def drop(output, user):
        others = output["of each"] if user is None else np.delete(output["of each"], user)
        return np.append(others, output["for all"])

    asked = {"dataset": np.array([0.0, 1.0, 1.0]), "relation": "replace-one", "joint": drop, **ONCE}
    assert audit_agent(add_own_rewards, PureDP(1), confidence=SURE, **asked).verdict == "consistent"
    with pytest.raises(ParameterError, match="or a function as `joint`"):
        audit_agent(add_own_rewards, PureDP(1), **{**asked, "joint": True})


def test_supplied_neighbours_tell_whose_part_is_dropped():
    pair = ([0.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    asked = {"neighbours": [pair], "joint": True, **ONCE}
    assert audit_agent(own_rewards, PureDP(1), confidence=SURE, **asked).verdict == "consistent"
    wrong = audit_agent(own_rewards, PureDP(1), positions=[0], **asked)
    assert wrong.verdict == "violation"  # the user in whom they differ was kept
    assert wrong.neighbours == (pair,)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=9),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.sampled_from(["replace-one", "add-remove", "zero-out"]),
    st.booleans(),
)
def test_every_pair_of_the_search_differs_in_the_one_user_that_it_names(users, candidates, relation, arrays):
    dataset = np.array(users) if arrays else users
    try:
        cases, pairs = list_changes(
            dataset, candidates=candidates, change=None, relation=relation, positions=None, seed=0
        )
    except ParameterError as error:
        assert "equals the present record" in str(error)  # noqa: PT017 - the only refusal there may be
        assert relation != "add-remove"
        assert set(candidates) <= set(users)
        return
    for pair in pairs:
        first, other = (cases[i] for i in pair.cases)
        rest = [np.delete(case.dataset, [] if case.user is None else case.user).tolist() for case in (first, other)]
        assert rest[0] == rest[1]
        assert list(first.dataset) != list(other.dataset)
        assert type(first.dataset) is type(other.dataset) is type(dataset)
        assert (len(first.dataset) == len(other.dataset)) == (relation != "add-remove")
        seen = find_user(first.dataset, other.dataset)
        assert [user is None for user in seen] == [case.user is None for case in (first, other)]
        if relation != "add-remove":
            assert seen == (first.user, other.user)


def test_positions_are_those_where_trees_have_their_nodes():
    assert pick_positions(1) == (0,)
    assert pick_positions(3) == (0, 1, 2)
    assert set(pick_positions(8)) == {0, 1, 2, 3, 4, 6, 7}
    for users in (5, 100, 10_000):
        found = pick_positions(users)
        assert len(set(found)) == len(found) <= 12
        assert {0, 1, 2, users - 1, (users - 1) // 2} <= set(found)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=2, max_size=30), st.data())
def test_the_largest_gap_is_that_of_kolmogorov_and_smirnov(table, data):
    rows = np.array(table, dtype=float)
    ours = data.draw(st.integers(1, len(rows) - 1))
    secret = np.arange(len(rows)) < ours
    shares = [[(part[:, i] <= x).mean() for part in (rows[secret], rows[~secret])] for i in (0, 1) for x in rows[:, i]]
    slow = max(abs(first - other) for first, other in shares)
    assert largest_gap(rows, secret) == pytest.approx(slow)


def test_outputs_of_any_kind_become_rows():
    kinds = [None, "text", 3, [1, [2.0, None]], {"a": 1, "b": "x"}, np.full((2, 2), np.nan), {1, 2}, ("E", "message")]
    rows = flatten(forms_of(kinds), np.arange(len(kinds)) < 4)
    assert np.isfinite(rows).all()
    assert len({tuple(row) for row in rows}) == len(kinds)
    wide = flatten(forms_of([np.zeros(3_000)] * 4), np.arange(4) < 2)
    assert wide.shape[1] < 600


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"dataset": None}, "got neither"),
        ({"neighbours": [(1, 2)]}, "got both"),
        ({"dataset": None, "neighbours": [(1, 2)]}, "belong to a dataset"),
        ({"dataset": None, "candidates": None, "neighbours": [(1, 2)], "joint": True}, "give `positions`"),
        ({"dataset": None, "candidates": None, "neighbours": [([0], [1])], "positions": [0]}, "none if nothing"),
        ({"screening": 5}, "screening: expected at least 20"),
        ({"finalists": 0}, "finalists"),
        ({"candidates": []}, "candidates: expected at least one"),
        ({"candidates": [0.0]}, "equals the present record"),
        ({"dataset": np.zeros(3, dtype=int), "candidates": [0.5]}, "that int64 holds exactly"),
        ({"dataset": {}}, "give `change` and `positions`"),
        ({"dataset": []}, "at least one user"),
        ({"positions": [8]}, "from 0 to 7"),
        ({"relation": "move"}, "expected 'replace-one' or 'add-remove' or 'zero-out', the neighbouring relation"),
        ({"relation": None}, "the neighbouring relation of the claim; got None"),
        ({"candidates": None, "change": lambda *_: 0}, "relation: expected none with `change`"),
        ({"change": lambda *_: 0}, "got both"),
        ({"joint": True}, "got 2 parts"),
        ({"trials": 10}, "trials"),
    ],
)
def test_what_means_nothing_is_refused(wrong, said):
    def agent(users, rng):
        return np.zeros(2)

    asked = {"dataset": np.zeros(8), "candidates": [0.0, 1.0], "relation": "replace-one", **wrong}
    with pytest.raises(ParameterError, match=said):
        audit_agent(agent, PureDP(1), **asked)


def test_exceptions_and_missing_answers_are_outputs():
    def refuses(users, rng):
        if np.sum(users) > 0 and rng.random() < 0.5:
            raise ValueError("too many")
        return None if rng.random() < 0.5 else {"answer": rng.laplace(0, 1)}

    asked = {"dataset": np.zeros(2), "candidates": [1.0], "relation": "replace-one", **ONCE, "trials": 400}
    assert audit_agent(refuses, PureDP(1), **asked).verdict == "violation"
    with pytest.raises(MechanismError, match=r"in run \d+ of the search, seed 0, raised ValueError: too many"):
        audit_agent(refuses, PureDP(1), exceptions="raise", **asked)


def test_an_agent_that_cannot_be_judged_says_so():
    def sometimes(users, rng):
        return users if rng.random() < 0.9 else 3

    asked = {"dataset": np.zeros(2), "candidates": [1.0], "relation": "replace-one", "joint": True, **ONCE}
    with pytest.raises(MechanismError, match="returned a int; expected a part for each user"):
        audit_agent(sometimes, PureDP(1), seed=1, **asked)
    assert drop_own_part(None, 3) is None
    with pytest.raises(CallError, match="expected 0 to 0"):
        drop_own_part({"a": 1}, 0)


def test_datasets_of_any_kind_are_changed_by_a_function():
    def flip(dataset, position, rng):
        return {**dataset, "bits": dataset["bits"] ^ (1 << position)}

    def agent(dataset, rng):
        return dataset["bits"] & 4  # the third user's bit

    found = audit_agent(agent, PureDP(1), dataset={"bits": 0}, change=flip, positions=[0, 2], **ONCE)
    assert found.verdict == "violation"
    assert found.evidence["position"] == 2
