"""Pairs of trajectories on which a stated sensitivity is tried, at one choice of (H, S, A)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.enumerated import every_user, how_many_users, may_replace
from privcheck.relations import LONGEST, Pair, Relation, ReplaceOne, ZeroOut, extreme_pairs, most_trajectories
from privcheck.releases import Release
from privcheck.rows import repeat_rows
from privcheck.statistics.searching import LARGE_CROWDS
from privcheck.trajectories import Trajectories
from privcheck.verification.allowed import Allowed, allow, check_slices
from privcheck.verification.neighbours import compute_one

_EVERY: Final = 600  # users of whom all pairs are compared
_CELLS: Final = 2_000_000  # of a table that is computed at the given sizes
_RANDOM: Final = 30  # pairs at a size
_ROWS: Final = 8  # trajectories of a random user, at most
_CLIMB: Final = 150  # changes of one step that are tried, each kept where the statistic moves further
_CLIMBED: Final = 5_000  # cells of a table that is computed so often


def try_sizes(
    relation: Relation, release: Release, sizes: tuple[int, int, int], values: Mapping[str, Fraction], *, crowded: bool
) -> tuple[int, Pair | None]:
    """Returns how many pairs were compared at these sizes, and which of them moved the statistic furthest."""
    cells = math.prod(release.statistic.shape(values))
    if max(cells, math.prod(sizes)) > _CELLS:
        return 0, None
    allowed, rng = allow(release, relation, values), np.random.default_rng(0)
    alone = _every_pair(relation, release, sizes, allowed) if how_many_users(*sizes) <= _EVERY else 0
    rows = most_trajectories(relation, values)
    if rows * sizes[0] > LONGEST:
        return 0, None
    pairs = [
        *extreme_pairs(relation, *sizes, trajectories=rows),
        *(_random_pair(relation, sizes, min(rows, _ROWS), rng) for _ in range(_RANDOM)),
    ]
    worst: tuple[float, Pair] = (-1.0, pairs[0])
    for pair in pairs:
        worst = max(worst, (allowed.check_pair(pair), pair), key=lambda largest: largest[0])
        if not isinstance(relation, ZeroOut):  # whose place the user keeps
            allowed.check_pair(pair, _random_users(sizes, int(rng.integers(1, 4)), rng))
    check_slices(release, next(user for user in pairs[0] if user is not None))
    among = 0
    if crowded and cells <= _CLIMBED and not isinstance(relation, ZeroOut):
        among = _check_crowds((worst[1], *pairs[:2]), sizes, allowed, rng)
    if cells <= _CLIMBED and not alone:
        worst, alone = _climb(relation, worst, allowed, rng), _CLIMB
    return alone + among + len(pairs) * (1 if isinstance(relation, ZeroOut) else 2), worst[1]


def _check_crowds(
    pairs: Sequence[Pair], sizes: tuple[int, int, int], allowed: Allowed, rng: np.random.Generator
) -> int:
    """Checks pairs among as many others as thresholds on the number of users usually are, and returns how often.

    The others are like the user, or random ones.
    """
    checked = 0
    for turn, others in enumerate(LARGE_CROWDS):
        for pair in pairs:
            like = next(user for user in pair if user is not None)
            alike = repeat_rows(like, -(-others // like.users))
            for crowd in (alike, _random_users(sizes, others, rng)):
                allowed.check_pair(pair, crowd, last=turn % 2 == 1)
                checked += 1
    return checked


def _every_pair(relation: Relation, release: Release, sizes: tuple[int, int, int], allowed: Allowed) -> int:
    users = every_user(*sizes)
    single = [users.user(i) for i in range(users.users)]
    tables = np.stack([compute_one(release.statistic, user).ravel() for user in single])
    if not isinstance(relation, ReplaceOne):
        for user, table in zip(single, tables, strict=True):
            allowed.check(table[np.newaxis], user, [None])
        return len(single)
    near = may_replace(relation, users)
    for row, table in enumerate(tables):
        others = np.flatnonzero(near[row])
        allowed.check(tables[others] - table, single[row], [single[i] for i in others])
    return int(near.sum())


def _climb(
    relation: Relation, start: tuple[float, Pair], allowed: Allowed, rng: np.random.Generator
) -> tuple[float, Pair]:
    """Returns a pair that moves the statistic further, changed a step at a time; all on the way are checked."""
    most, pair = start
    for _ in range(_CLIMB):
        side = int(rng.integers(0, 2))
        user = pair[side]
        if user is None:
            side, user = 1 - side, pair[1 - side]
        assert user is not None
        other = _one_step_else(user, rng, keep_first=isinstance(relation, ReplaceOne) and relation.initial == "fixed")
        trial = (other, pair[1]) if side == 0 else (pair[0], other)
        moved = allowed.check_pair(trial)
        if moved >= most:
            most, pair = moved, trial
    return most, pair


def _one_step_else(user: Trajectories, rng: np.random.Generator, *, keep_first: bool) -> Trajectories:
    states, actions, rewards = user.states.copy(), user.actions.copy(), user.rewards.copy()
    step = int(rng.integers(0, user.horizon))
    rewards[0, step] = rng.integers(0, 2)
    states[0, step + 1] = rng.integers(0, user.num_states)
    if step or not keep_first:
        states[0, step] = rng.integers(0, user.num_states)
        actions[0, step] = rng.integers(0, user.num_actions)
    return _trajectories(states, actions, rewards, user.num_states, user.num_actions)


def _random_pair(relation: Relation, sizes: tuple[int, int, int], rows: int, rng: np.random.Generator) -> Pair:
    first = _random_users(sizes, int(rng.integers(1, rows + 1)), rng)
    if not isinstance(relation, ReplaceOne):
        return (first, None) if rng.random() < 0.5 else (None, first)
    second = _random_users(sizes, int(rng.integers(1, rows + 1)), rng)
    if relation.initial == "fixed":
        states, actions = second.states.copy(), second.actions.copy()
        states[:, 0], actions[:, 0] = first.states[:, 0], first.actions[:, 0]
        second = _trajectories(states, actions, second.rewards, *sizes[1:])
    return first, second


def _random_users(sizes: tuple[int, int, int], number: int, rng: np.random.Generator) -> Trajectories:
    """Returns users who stay, alternate or wander, with rewards of 0 and 1 or, one in three, between."""
    horizon, states, actions = sizes
    where = rng.integers(0, states, (number, horizon + 1))
    does = rng.integers(0, actions, (number, horizon))
    kind = rng.random(number)
    where[kind < 0.25] = where[kind < 0.25, :1]
    flips = (kind >= 0.25) & (kind < 0.5)
    where[flips] = np.where(np.arange(horizon + 1) % 2, where[flips, :1], where[flips, -1:])
    rewards = rng.random((number, horizon))
    if rng.random() < 2 / 3:
        rewards = np.rint(rewards)
    return _trajectories(where, does, rewards, states, actions)


def _trajectories(
    states: NDArray[Any], actions: NDArray[Any], rewards: NDArray[np.float64], num_states: int, num_actions: int
) -> Trajectories:
    return Trajectories(states=states, actions=actions, rewards=rewards, num_states=num_states, num_actions=num_actions)
