"""Streams user by user: a tree's releases, the P-sums that hold a user, a dataset with another user in a place."""

import numpy as np

from privcheck.data.trajectories import concatenate, take
from privcheck.runtime.noise import TreeCounter, lowest_bit


def prefix_sums(increments, noise, rng):
    """Returns all noisy prefix sums of a stream, (T, …); entry t − 1 is that of the first t users."""
    counter = TreeCounter(increments.shape[1:], noise, leaves=len(increments))
    released = np.empty(increments.shape)
    for user, increment in enumerate(increments):
        released[user] = counter.release(increment, rng)
    return released


def psums_holding(user, leaves):
    """Returns the released P-sums that hold a user, both counted from 1, as (first, last) user, the shortest first."""
    psums = []
    last = user
    while last <= leaves:
        size = 1 << lowest_bit(last)
        psums.append((last - size + 1, last))
        last += size  # the next P-sum that contains this one whole
    return tuple(psums)


def replace_user(data, index, user):
    """Returns the dataset in which one user's trajectory is replaced by another."""
    before = [take(data, slice(0, index))] if index else []
    after = [take(data, slice(index + 1, None))] if index + 1 < data.users else []
    return concatenate([*before, user, *after])
