"""Users' data: what is no trajectory is refused when the value is made."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from privcheck.data.trajectories import Trajectories, concatenate, take
from privcheck.errors import TrajectoryError


def _with(data, **changes):
    fields = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    return Trajectories(**{**fields, **changes})


def _changed(array, where, value):
    copy = array.copy()
    copy[where] = value
    return copy


def test_sizes(data):
    assert (data.users, data.horizon, data.num_states, data.num_actions) == (7, 2, 3, 2)
    assert (data.states.dtype, data.actions.dtype, data.rewards.dtype) == (np.int32, np.int32, np.float64)


@pytest.mark.parametrize("name", ["states", "actions", "rewards"])
def test_the_arrays_are_frozen(data, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(data, name)[0, 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.num_states = 9


def test_what_was_checked_cannot_be_changed_afterwards(data):
    rewards = data.rewards.copy()
    made = _with(data, rewards=rewards)
    rewards[0, 0] = 7.0
    assert np.array_equal(made.rewards, data.rewards)
    assert np.shares_memory(made.states, data.states)  # frozen arrays are not copied again
    assert np.shares_memory(take(data, slice(2, 5)).states, data.states)


@pytest.mark.parametrize("value", [-1, 3, 10**6])
def test_states_out_of_range_are_refused_with_their_place(data, value):
    with pytest.raises(TrajectoryError, match=r"states in \[0, 3\)") as caught:
        _with(data, states=_changed(data.states, (4, 2), value))
    assert caught.value.problems == ("user 4, step 3",)  # the value is private, and an error may reach a log


def test_actions_out_of_range_are_refused(data):
    with pytest.raises(TrajectoryError, match=r"actions in \[0, 2\)"):
        _with(data, actions=_changed(data.actions, (0, 0), 2))


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, np.nan, np.inf, -np.inf])
def test_rewards_outside_the_unit_interval_are_refused(data, value):
    with pytest.raises(TrajectoryError, match=r"rewards in \[0, 1\]: map them by public bounds"):
        _with(data, rewards=_changed(data.rewards, (6, 1), value))


def test_many_problems_are_counted_not_listed(data):
    with pytest.raises(TrajectoryError) as caught:
        _with(data, rewards=np.full((7, 2), 2.0))
    assert len(caught.value.problems) == 6
    assert caught.value.problems[-1] == "and 9 more"


@pytest.mark.parametrize(
    "changes",
    [
        {"states": np.zeros((7, 2), dtype=np.int32)},
        {"states": np.zeros((6, 3), dtype=np.int32)},
        {"rewards": np.zeros((7, 3))},
        {"rewards": np.zeros(14)},
        {"actions": np.zeros((7, 0), dtype=np.int32)},
        {"actions": np.zeros((0, 2), dtype=np.int32)},
        {"states": np.zeros((7, 3))},  # floats
        {"actions": np.zeros((7, 2), dtype=np.bool_)},
        {"states": [[0, 0, 0]] * 7},
    ],
)
def test_other_shapes_and_types_are_refused(data, changes):
    with pytest.raises(TrajectoryError, match="expected"):
        _with(data, **changes)


def test_datasets_of_other_sizes_are_not_joined(data):
    with pytest.raises(TrajectoryError, match=r"one \(H, S, A\)"):
        concatenate([data, _with(data.user(0), num_states=4)])
    with pytest.raises(TrajectoryError, match=r"one \(H, S, A\)"):
        concatenate([])


def test_taking_and_concatenating_are_inverse(data):
    parts = [take(data, slice(0, 3)), take(data, np.array([3, 4])), data.user(5), data.user(6)]
    whole = concatenate(parts)
    assert np.array_equal(whole.states, data.states)
    assert np.array_equal(whole.actions, data.actions)
    assert np.array_equal(whole.rewards, data.rewards)
