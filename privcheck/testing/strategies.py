"""Hypothesis strategies for users' data. Rewards prefer the corners 0 and 1, where the worst neighbours are."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, concatenate
from privcheck.declare.relations import Pair, Relation, ReplaceOne, most_trajectories


def rewards() -> st.SearchStrategy[float]:
    """Rewards in [0, 1], two of three times a corner: uniform floats alone miss a 5 % understatement."""
    corners = st.sampled_from([0.0, 1.0])
    return st.one_of(corners, corners, st.floats(0, 1))


def trajectories(
    horizon: int, num_states: int, num_actions: int, *, users: int | st.SearchStrategy[int] = 1
) -> st.SearchStrategy[Trajectories]:
    """Datasets of users with H steps each.

    Args:
        horizon: H.
        num_states: S.
        num_actions: A.
        users: Number of users, or a strategy for it.
    """

    def of(how_many: int) -> st.SearchStrategy[Trajectories]:
        return st.builds(
            lambda states, actions, reward: Trajectories(
                states=states, actions=actions, rewards=reward, num_states=num_states, num_actions=num_actions
            ),
            arrays.arrays(np.int32, (how_many, horizon + 1), elements=st.integers(0, num_states - 1)),
            arrays.arrays(np.int32, (how_many, horizon), elements=st.integers(0, num_actions - 1)),
            # fill: cells that Hypothesis leaves to a common value take a corner too
            arrays.arrays(np.float64, (how_many, horizon), elements=rewards(), fill=st.sampled_from([0.0, 1.0])),
        )

    return of(users) if isinstance(users, int) else users.flatmap(of)


def neighbouring_pairs(relation: Relation, horizon: int, num_states: int, num_actions: int) -> st.SearchStrategy[Pair]:
    """Neighbouring pairs of one user's data under the relation; None is an absent user."""
    one = trajectories(horizon, num_states, num_actions, users=st.integers(1, most_trajectories(relation, {})))
    if not isinstance(relation, ReplaceOne):
        return st.one_of(one.map(lambda user: (user, None)), one.map(lambda user: (None, user)))
    if relation.initial == "any":
        return st.tuples(one, one)
    return st.tuples(one, one).map(lambda pair: (pair[0], _share_start(pair[0], pair[1])))


def neighbouring_datasets(
    relation: Relation, horizon: int, num_states: int, num_actions: int, *, others: int | st.SearchStrategy[int] = 3
) -> st.SearchStrategy[tuple[Trajectories, Trajectories]]:
    """Two datasets that differ in their first user; an absent user leaves a dataset shorter.

    Args:
        relation: The neighbouring relation.
        horizon: H.
        num_states: S.
        num_actions: A.
        others: Number of common users, or a strategy for it.
    """
    common = trajectories(horizon, num_states, num_actions, users=others)
    pairs = neighbouring_pairs(relation, horizon, num_states, num_actions)

    def whole(rest: Trajectories, pair: Pair) -> tuple[Trajectories, Trajectories]:
        first, other = (rest if user is None else concatenate([user, rest]) for user in pair)
        return first, other

    return st.builds(whole, common, pairs)


def neighbouring_records(
    *, size: int = 10, low: float = 0.0, high: float = 1.0, columns: int = 0
) -> st.SearchStrategy[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Two arrays that differ in one record, for mechanisms on data other than trajectories.

    Args:
        size: Number of records in each.
        low: Lower bound of every number.
        high: Upper bound of every number; half of the numbers are one of the two bounds.
        columns: Numbers per record, for arrays of shape (size, columns); 0 for shape (size,).
    """
    number = st.one_of(st.sampled_from([low, high]), st.floats(low, high))
    shape = (size, columns) if columns else (size,)
    corner = st.sampled_from([low, high])
    data = arrays.arrays(np.float64, shape, elements=number, fill=corner)
    record = arrays.arrays(np.float64, shape[1:], elements=number, fill=corner)

    def change_record(given: NDArray[np.float64], which: int, by: NDArray[np.float64]) -> tuple[Any, Any]:
        other = given.copy()
        other[which] = by
        return given, other

    return st.builds(change_record, data, st.integers(0, size - 1), record)


def _share_start(first: Trajectories, other: Trajectories) -> Trajectories:
    states, actions = other.states.copy(), other.actions.copy()
    states[:, 0], actions[:, 0] = first.states[:, 0], first.actions[:, 0]
    return Trajectories(
        states=states,
        actions=actions,
        rewards=other.rewards,
        num_states=other.num_states,
        num_actions=other.num_actions,
    )
