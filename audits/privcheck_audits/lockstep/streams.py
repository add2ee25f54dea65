"""Users in order, and the outputs of a release that depend on them: the runs of the white-box views."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np

from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.releases import take_rows
from privcheck.declare.schedules import EveryEpisode, PerUser, Tree
from privcheck.declare.statistics import FeatureSums, GramMatrices, OneStepEach, Stated
from privcheck.errors import DeclarationError, ParameterError, PrivcheckError
from privcheck.pricing import Priced, once
from privcheck.runtime.noise import lowest_bit
from privcheck.terms.symbols import expression
from privcheck.verification.candidates import UserPair, candidate_pairs
from privcheck_audits.lockstep.users import Array, Users, join

OUTPUTS: Final = 8  # users or outputs of a stream that is run
_USERS: Final = 50  # of what leaves once
_CELLS: Final = 60_000  # of one step's statistics, above which fewer states or dimensions are taken
_SIZES: Final = ("S", "A", "d", "d1", "d2")  # parameters that may be made smaller for that, one after the other


class Counter(Protocol):
    """Protocol of counters of contributions that return noisy sums, such as `privcheck.runtime.TreeCounter`."""

    def release(self, increment: Array, rng: np.random.Generator) -> Array:
        """Noisy sum over all users so far."""
        ...


MakeCounter = Callable[..., Counter]  # from shape and noise, and leaves by name


def tractable(declaration: Declaration, values: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Shrink parameters until all outputs of all releases run in seconds, changing as few as possible.

    Streams get at most `OUTPUTS` outputs, and tables that are too large fewer states or dimensions. Sensitivities and
    noise are formulas in the parameters, so an error at one size is an error at others.

    Raises:
        ParameterError: A statistic is too large, and no known parameter makes it smaller.
    """
    at = dict(values)
    for release in declaration.noisy:
        if isinstance(release.schedule, Tree | EveryEpisode):
            for name in release.schedule.times.symbols - release.statistic.symbols:
                at[name] = min(at[name], Fraction(OUTPUTS))
    while (most := _cells(declaration, at)) > _CELLS:
        larger = [name for name in _SIZES if at.get(name, 0) > 4]
        if not larger:
            message = f"{declaration.name}: a step has {most} cells, at most {_CELLS} are run: set smaller sizes"
            raise ParameterError(message, name=declaration.name, given=most)
        name = max(larger, key=lambda each: at[each])
        at[name] = Fraction(max(4, int(at[name]) * 3 // 4))
    return at


def outputs(release: Release, values: Mapping[str, Fraction]) -> int:
    """Number of outputs of a release to run: all of a stream, or one per user for `OUTPUTS` users, or one."""
    if isinstance(release.schedule, Tree):
        return int(release.schedule.leaves.number(values))
    if isinstance(release.schedule, EveryEpisode):
        return int(release.schedule.outputs.number(values))
    return OUTPUTS if isinstance(release.schedule, PerUser) else 1


def audience(declaration: Declaration, values: Mapping[str, Fraction]) -> int:
    """Number of users: as many as the longest stream has outputs, or 50 without streams."""
    streams = [outputs(r, values) for r in declaration.noisy if isinstance(r.schedule, Tree | EveryEpisode | PerUser)]
    return max(1, *streams) if streams else _USERS


@once
def canaries(priced: Priced) -> tuple[tuple[Declaration, UserPair], ...]:
    """Pairs that verification tries as witnesses, each with the releases that it applies to.

    Pairs for all releases of a group of users together come first. A pair with the largest joint change of Gram
    matrices and feature sums does not change any of them as much as possible, so separate pairs for each of these
    follow.
    """
    declaration, pairs = priced.declaration, list[tuple[Declaration, UserPair]]()
    for group in declaration.groups:
        seen = only(declaration, declaration.seen_by(group))
        known = candidate_pairs(priced, group)
        drawn = declaration.records is not None or isinstance(seen.noisy[0].statistic, Stated)
        pairs += [(seen, pair) for pair in (_furthest_first(seen, known) if drawn else known)]
    if declaration.candidates is None:
        alone = [only(declaration, [release]) for release in _linear(declaration)]
        pairs += [(one, pair) for one in alone if len(alone) > 1 for pair in candidate_pairs(priced.of(one), "")]
    if any(isinstance(r.schedule, Tree) and r.schedule.leaves_of_a_user != expression(1) for r in declaration.noisy):
        one = slice(0, 1)  # a leaf holds one trajectory: users are run with the first of theirs
        pairs = [(seen, (take_rows(first, one), take_rows(second, one))) for seen, (first, second) in pairs]
    return tuple(pairs)


def _furthest_first(declaration: Declaration, pairs: Sequence[UserPair]) -> list[UserPair]:
    """Pairs, with those that change a release most in one of the norms first."""
    first: dict[int, None] = {}
    for release in declaration.noisy if pairs else ():
        moved = [release.statistic.difference(pair) for pair in pairs]
        for sizes in (
            [change.l1 for change in moved],
            [change.l2_squared for change in moved],
            [float(np.abs(change.change).max(initial=0.0)) for change in moved],
        ):
            first[int(np.argmax(sizes))] = None
    return [pairs[i] for i in (*first, *(i for i in range(len(pairs)) if i not in first))]


def only(declaration: Declaration, releases: Sequence[Release]) -> Declaration:
    """Declaration with some of the releases only, about all users."""
    return replace(declaration, releases=tuple(replace(release, users="") for release in releases))


def insert_user(users: Users, user: Any, position: int) -> Users:
    """Users with one more inserted, at a position from 0."""
    return [*users[:position], user, *users[position:]]


class Seats:
    """Users in their order, with their joint data, which are computed once per output.

    Args:
        users: Users in their order.
        values: The declaration's parameters.
    """

    def __init__(self, users: Users, values: Mapping[str, Fraction]) -> None:
        self._users, self._values = users, values
        self._output = 0  # of which it is kept what some users hold together
        self._kept: dict[tuple[int, int], Any] = {}

    def exact(self, release: Release, output: int, *, step: int | None = None) -> Array:
        """Exact value of an output, or its slice at one step; zeros without users.

        Args:
            release: The release.
            output: Number of the output, from 1; for a tree, the value of that one user.
            step: Index of the step, from 0; None for all.
        """
        data = self.find_data([release], output)
        if data is not None:
            with name_own_errors(release.name):
                return np.asarray(release.statistic.compute(data, step=step), dtype=np.float64)
        shape = release.statistic.shape(self._values)
        return np.zeros(shape if step is None else shape[1:])

    def find_data(self, releases: Sequence[Release], output: int) -> Any:
        """Data of an output of each of these releases; None without users, or if the releases' users differ."""
        if output != self._output:
            self._output, self._kept = output, {}
        whose = {_due(release, output, len(self._users)) for release in releases}
        if len(whose) != 1:
            return None
        who = whose.pop()
        if who not in self._kept:
            present = [user for user in self._users[slice(*who)] if user is not None]
            self._kept[who] = join(present) if present else None
        return self._kept[who]


@contextmanager
def name_own_errors(name: str) -> Iterator[None]:
    """Name the statistic in errors raised by its author's own code.

    Args:
        name: Name of the release, or of several.

    Raises:
        DeclarationError: An error other than a `PrivcheckError` was raised.
    """
    try:
        yield
    except PrivcheckError:
        raise
    except Exception as error:
        message = (
            f"{name}: the statistic's compute raised {type(error).__name__}: {error}; it must accept all data that"
        )
        raise DeclarationError(
            f"{message} is drawn, for one user and for several: correct it, or the records"
        ) from error


def _due(release: Release, output: int, users: int) -> tuple[int, int]:
    """Users of an output: first and past-the-last index, from 0."""
    if isinstance(release.schedule, Tree | PerUser):
        return output - 1, output
    return 0, output if isinstance(release.schedule, EveryEpisode) else users


def refuse_absence(declaration: Declaration) -> str:
    """Reason why one user cannot be left out of the data; empty if one can."""
    if isinstance(declaration.relation, ReplaceOne):
        return ""
    dealt = [r.name for r in declaration.noisy if isinstance(r.statistic, OneStepEach)]
    return f"{', '.join(dealt)}: users are assigned in order, so none can be left out" if dealt else ""


class TreeNodes:
    """Recovers the P-sums of a tree from its prefix sums.

    The prefix of t is that of t without its lowest bit, and the P-sum that closes with t. Only the prefixes of t's own
    bits are kept, as in the counter itself.
    """

    def __init__(self) -> None:
        self._open: list[tuple[int, Array]] = []

    def close(self, user: int, prefix: Array) -> Array:
        """The P-sum that closes with this user, from 1; users come one after the other.

        Args:
            user: t.
            prefix: Sum over users 1 to t; it is kept and must not change.
        """
        before = user - (user & -user)
        while self._open and self._open[-1][0] > before:
            self._open.pop()
        node: Array = prefix - self._open[-1][1] if before else prefix
        self._open.append((user, prefix))
        return node


def list_related_nodes(user: int) -> dict[str, int]:
    """P-sums that one is compared with, by their relation to it, given by the user that they close with.

    >>> list_related_nodes(4)
    {'successive P-sums': 3, 'a P-sum and its left half': 2}
    >>> list_related_nodes(6)
    {'successive P-sums': 5, 'P-sums of one length': 2, 'a P-sum and its left half': 5}
    """
    size = user & -user
    nodes = {
        "successive P-sums": user - 1,
        "P-sums of one length": user - 2 * size,
        "a P-sum and its left half": user - size // 2 if size > 1 else 0,
    }
    return {kind: other for kind, other in nodes.items() if other > 0}


def level(user: int) -> int:
    """Level in the tree of the P-sum that closes with this user: 0 for a P-sum of one user."""
    return lowest_bit(user)


def _cells(declaration: Declaration, values: Mapping[str, Fraction]) -> int:
    return sum(math.prod(release.statistic.shape(values)[1:]) for release in declaration.noisy)


def _linear(declaration: Declaration) -> list[Release]:
    return [r for r in declaration.noisy if isinstance(r.statistic, GramMatrices | FeatureSums)]
