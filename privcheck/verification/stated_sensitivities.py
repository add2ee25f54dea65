"""Attempts to refute a sensitivity that the author of a statistic states; surviving them does not prove it.

A verdict on such a statistic takes its stated sensitivity as given, and says so; if it could not be tested at all, no
claim holds. Tested are, with `compute` alone: every pair of trajectories at tiny sizes, extreme and random pairs at the
given and at other sizes, alone and among others, of users with as many trajectories as the relation allows if it allows
several, and a climb from the worst of them; for other data all pairs of the declaration's `records`, typical ones and
ones in corners of what it may draw, and its candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, concatenate
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import (
    LONGEST,
    Pair,
    Relation,
    ReplaceOne,
    ZeroOut,
    every_user,
    extreme_pairs,
    how_many_users,
    may_replace,
    most_trajectories,
)
from privcheck.declare.releases import Release, repeat_rows
from privcheck.declare.statistics import Stated
from privcheck.declare.statistics.records import LARGE_CROWDS
from privcheck.declare.statistics.sensitivities import is_derived, shape_of
from privcheck.errors import DeclarationError, ParameterError, TrajectoryError
from privcheck.pricing import Priced
from privcheck.verification.candidates import candidate_pairs, corner_pairs, recorded_pairs, trajectory_sizes
from privcheck.verification.neighbours import compute_one, not_a_difference

_NEAR: Final = 1 + 1e-9  # floats that were summed in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Sensitivity of a statistic as its author states it."""

    release: Release
    relation: Relation
    norms: tuple[float, float, float]  # ℓ₁, ℓ₂, ℓ∞, rounded up
    stepwise: bool
    at: str

    def check(self, changes: NDArray[np.float64], first: Any, others: Sequence[Any]) -> None:
        """Check the changes between one user's data and others', one per row.

        Raises:
            DeclarationError: A change is larger than is stated, or only part of the ℓ∞ sensitivity of a `stepwise`
                statistic.
        """
        moved = np.abs(changes)
        norms = (moved.sum(axis=1), np.sqrt(np.square(moved).sum(axis=1)), moved.max(axis=1, initial=0.0))
        who = f"{self.release.name}: {self.release.statistic.name}"
        for norm, sizes, most in zip(("ℓ₁", "ℓ₂", "ℓ∞"), norms, self.norms, strict=True):
            worst = int(sizes.argmax())
            if not sizes[worst] <= most * _NEAR:
                message = (
                    f"{who} moves further than its stated sensitivity: by {sizes[worst]:.6g} in {norm}, and "
                    f"{most:.6g} is stated ({self.relation.words}{self.at}). In D the user has {_tell(first)}, in D′ "
                    f"{_tell(others[worst])}. State the distance that it moves"
                )
                raise DeclarationError(message)
        parts = (moved > 0) & (np.abs(moved - self.norms[2]) > (_NEAR - 1) * self.norms[2])
        if self.stepwise and parts.any():
            message = f"{who} moves a cell by {moved[parts][0]:.6g}, a part of its ℓ∞ sensitivity {self.norms[2]:.6g}"
            raise DeclarationError(f"{message}: it is not `stepwise`")

    def check_pair(self, pair: tuple[Any, Any], crowd: Any = None, *, last: bool = False) -> float:
        """Check one pair, alone or with other users after it or, if `last`, before it; returns ‖f(D) − f(D′)‖₂²."""
        first, second = pair
        if crowd is not None:
            first, second = (
                crowd if user is None else concatenate([crowd, user] if last else [user, crowd]) for user in pair
            )
        change = change_of(self.release, (first, second))
        self.check(change[np.newaxis], pair[0], [pair[1]])
        return float(np.square(change).sum())


def allow(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Allowed:
    """Sensitivity of a release's statistic at these parameters, as its author states it."""
    stated = release.statistic.sensitivity(relation)
    l1, l2, linf = (x.number(values, rounding="up") for x in (stated.l1, stated.l2, stated.linf))
    at = "".join(f", {name} = {values[name]}" for name in "HSAd" if name in values)
    return Allowed(release=release, relation=relation, norms=(l1, l2, linf), stepwise=stated.stepwise, at=at)


def change_of(release: Release, pair: tuple[Any, Any]) -> NDArray[np.float64]:
    """f(first) − f(second), flat; the statistic of an absent user is 0 throughout."""
    first, second = (0.0 if data is None else compute_one(release.statistic, data) for data in pair)
    return np.ravel(np.asarray(first) - np.asarray(second))


def check_slices(release: Release, user: Any) -> None:
    """Check that the slices released step by step are those of the table.

    Raises:
        DeclarationError: A slice is not that of the table.
    """
    whole = compute_one(release.statistic, user)
    for step, part in enumerate(whole):
        if not np.array_equal(np.asarray(release.statistic.compute(user, step=step)), part):
            message = f"{release.name}: {release.statistic.name}: compute(data, step={step}) is not the table's slice"
            raise DeclarationError(f"{message} {step}, and the slices are what leaves")


def _tell(user: Any) -> str:
    if user is None:
        return "nothing"
    if isinstance(user, Trajectories):
        rows = (user.states[0].tolist(), user.actions[0].tolist(), np.round(user.rewards[0], 3).tolist())
        more = f", the first of {user.users} trajectories" if user.users > 1 else ""
        return "states {}, actions {}, rewards {}".format(*(str(row)[:60] for row in rows)) + more
    return str(user)[:120]


_EVERY: Final = 600  # users of whom all pairs are compared
_CELLS: Final = 2_000_000  # of a table that is computed at the given sizes
_RANDOM: Final = 30  # pairs at a size
_ROWS: Final = 8  # trajectories of a random user, at most
_CLIMB: Final = 150  # changes of one step that are tried, each kept where the statistic moves further
_CLIMBED: Final = 5_000  # cells of a table that is computed so often


def try_sizes(
    relation: Relation, release: Release, sizes: tuple[int, int, int], values: Mapping[str, Fraction], *, crowded: bool
) -> tuple[int, Pair | None]:
    """Number of pairs compared at these sizes, and the pair with the largest change of the statistic."""
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
    """Check pairs among as many others as common thresholds on the number of users; returns the number of checks.

    The others are like the user, or random.
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
    """Search for a pair with a larger change, altering one step at a time; all pairs on the way are checked."""
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
    """Random users who stay, alternate or wander, with rewards 0 and 1 or, one time in three, in between."""
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


_SIZES: Final = ((1, 1, 2), (1, 2, 1), (1, 2, 2), (2, 2, 2), (3, 2, 1), (4, 2, 1), (2, 3, 1), (5, 3, 2), (8, 2, 3))
_CROWDED: Final = (2, 2, 2)  # of them, at which the others are many, if the declaration has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Tests of what an author states about one release, none of which contradicted it.

    Attributes:
        release: Its name.
        statistic: The statistic's name, or the mechanism's words.
        pairs: Number of pairs of neighbours compared; 0 if nothing could be tested.
        how: The sizes or data, in words; the reason, if nothing could be tested.
        furthest: The pair with the largest change at the parameters of the verdict, if trajectories were tested.
        of: The kind of statement.
    """

    release: str
    statistic: str
    pairs: int
    how: str
    furthest: Pair | None = None
    of: Literal["sensitivity", "price"] = "sensitivity"


def stated_statistics(declaration: Declaration) -> tuple[Release, ...]:
    """The releases with a sensitivity stated by the statistic's author; one of those that share a statistic."""
    stated: list[Release] = []
    for release in declaration.statistics_released:
        known = any(release.statistic is other.statistic for other in stated)
        if not is_derived(release.statistic) and not known:
            stated.append(release)
    return tuple(stated)


def try_stated(priced: Priced, release: Release) -> Tried:
    """Test a release's stated sensitivity, and return the tests made.

    Args:
        priced: The declaration at the parameters of the verdict; sizes among them are varied.
        release: A release of a statistic with a sensitivity stated by its author.

    Raises:
        DeclarationError: A pair of neighbours changes the statistic by more than the stated sensitivity.
    """
    declaration, values = priced.declaration, priced.values
    pairs, sizes_tried, why = 0, [], ""
    furthest: Pair | None = None
    possible = list(_sizes(declaration, release, values))
    crowded = min((sizes for sizes, _ in possible), key=lambda sizes: (sizes != _CROWDED, math.prod(sizes)), default=())
    for sizes, at in possible:
        try:
            relation = release.contribution(declaration.relation)
            count, pair = try_sizes(relation, release, sizes, at, crowded=sizes == crowded)
            furthest = pair if all(at[name] == values[name] for name in at) else furthest
        except DeclarationError:
            raise
        except Exception as error:  # noqa: BLE001 - the author's own code may know other data or other sizes only
            why = f"at (H, S, A) = {sizes} it raised {type(error).__name__}: {error}"
            continue
        pairs += count
        sizes_tried += ["×".join(map(str, sizes))] if count else []
    words = [f"trajectories of H×S×A = {', '.join(sizes_tried)}"] if sizes_tried else []
    own, problem = _on_own_data(priced, release)
    if own:
        words.append("the declaration's own records and candidates")
    if not pairs + own:
        why = problem or why or "its data is unknown: give the declaration `records`, which draw one user's data"
    name = release.statistic.name
    said = "; ".join(words) or why
    return Tried(release=release.name, statistic=name, pairs=pairs + own, how=said, furthest=furthest)


def _sizes(
    declaration: Declaration, release: Release, values: Mapping[str, Fraction]
) -> Iterator[tuple[tuple[int, int, int], Mapping[str, Fraction]]]:
    """Yield sizes of trajectories that the parameters allow, tiny ones first; none for other kinds of data."""
    if declaration.records is not None or isinstance(release.statistic, Stated):
        return
    seen = set()
    for wanted in (*_SIZES, None):
        drawn = dict(zip("HSA", wanted, strict=True)) if wanted else {}
        at = {**values, **{name: Fraction(size) for name, size in drawn.items() if name in values}}
        try:
            sizes = trajectory_sizes(declaration, declaration.values(at))
        except (DeclarationError, ParameterError):  # the declaration says nothing there
            continue
        if sizes is not None and sizes not in seen and min(sizes) >= 1:
            seen.add(sizes)
            yield sizes, at


def _check_difference(release: Release, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> None:
    """Check that the computed value has the declared shape, and that `difference` matches it.

    Raises:
        DeclarationError: It does not: noise is drawn in that shape, and audits and witnesses use the difference.
    """
    statistic, where = release.statistic, f"{release.name}: {release.statistic.name}"
    computed = next(compute_one(statistic, user).shape for user in pair if user is not None)
    if computed != (shape := shape_of(f"release {release.name!r}", statistic, values)):
        message = f"{where}: expected what it computes of the shape {shape}, as its shape(values) says, got {computed}"
        raise DeclarationError(f"{message}; the steps come first, (1, …) where it leaves at once")
    if why := not_a_difference(release, pair, values):
        message = f"{where}: {why}; return SparseDifference(cells=…, change=…) of compute(first) − compute(second)"
        raise DeclarationError(f"{message}, flat and only where it is not 0, None counting as 0")


def _on_own_data(priced: Priced, release: Release) -> tuple[int, str]:
    """Number of pairs of the declaration's own data that were compared, and the reason if there were none."""
    declaration, values = priced.declaration, priced.values
    pairs = []
    if declaration.candidates is not None:
        groups = [group for group in declaration.groups if release.users in ("", group)]
        pairs += [pair for group in groups for pair in candidate_pairs(priced, group)]
    if isinstance(release.statistic, Stated):
        pairs += list(release.statistic.extreme_pairs(release.contribution(declaration.relation), values))
    elif declaration.records is not None:
        pairs += recorded_pairs(declaration, values)
    if not pairs:
        return 0, ""
    try:
        allowed = allow(release, release.contribution(declaration.relation), values)
        for pair in map(release.one_contribution, pairs):
            allowed.check_pair(pair)
        _check_difference(release, pairs[0], values)
        check_slices(release, next(user for user in pairs[0] if user is not None))
    except DeclarationError:
        raise
    except TrajectoryError as error:
        raise DeclarationError(f"{release.name}: {error}") from error
    except Exception as error:  # noqa: BLE001 - the author's own code
        return 0, f"on its own records it raised {type(error).__name__}: {error}"
    if declaration.records is not None and not isinstance(release.statistic, Stated):
        pairs += _try_corners(declaration, release, values, allowed)
    return len(pairs), ""


def _try_corners(
    declaration: Declaration, release: Release, values: Mapping[str, Fraction], allowed: Allowed
) -> list[Any]:
    """The pairs at corners that the release accepts, none of which exceeds the stated sensitivity."""
    tried = []
    for pair in map(release.one_contribution, corner_pairs(declaration, values)):
        try:
            with np.errstate(all="ignore"):
                change = change_of(release, pair)
        except Exception:  # noqa: BLE001, S112 - the author's own code: typical records tell what is wrong with it
            continue
        allowed.check(change[np.newaxis], pair[0], [pair[1]])
        tried.append(pair)
    return tried
