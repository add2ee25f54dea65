"""Enumeration of all trajectories and pairs of neighbours at tiny sizes: sensitivities are compared for equality.

Rewards are 0 or 1: the statistics are linear in the rewards, so a supremum over [0, 1] is attained at its ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, take
from privcheck.declare.relations import (
    MOST,
    Pair,
    Relation,
    ReplaceOne,
    every_user,
    how_many_users,
    may_replace,
    most_trajectories,
)
from privcheck.declare.statistics import Statistic
from privcheck.errors import ParameterError

_MOST_OWN: Final = 1_000  # users of one's own whose pairs are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Suprema:
    """The largest changes by one user, over all pairs of neighbours.

    Attributes:
        l1: max ‖f(D) − f(D′)‖₁.
        l2_squared: max ‖f(D) − f(D′)‖₂².
        linf: max ‖f(D) − f(D′)‖∞.
        pair: The pair that attains l2_squared.
    """

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction
    pair: tuple[Any, Any]


def all_users(horizon: int, num_states: int, num_actions: int) -> Trajectories:
    """Every trajectory of one user with rewards 0 or 1, S^(H+1)·A^H·2^H in number, as one dataset.

    Raises:
        ValueError: There are too many trajectories for a test.
    """
    how_many = how_many_users(horizon, num_states, num_actions)
    if how_many > MOST:
        message = f"{how_many:,} trajectories at H, S, A = {horizon}, {num_states}, {num_actions}: expected {MOST:,}"
        raise ValueError(f"{message} at most; enumerate smaller sizes and search larger ones with Hypothesis")
    return every_user(horizon, num_states, num_actions)


def all_pairs(relation: Relation, horizon: int, num_states: int, num_actions: int) -> Iterator[Pair]:
    """Yield every neighbouring pair of one user's data under the relation, in both orders."""
    single, near = _everybody(relation, horizon, num_states, num_actions, values={})
    if near is None:
        for user in single:
            yield user, None
            yield None, user
        return
    for first, second in zip(*np.nonzero(near), strict=True):
        yield single[first], single[second]


def _everybody(
    relation: Relation, horizon: int, num_states: int, num_actions: int, *, values: Mapping[str, Fraction]
) -> tuple[list[Trajectories], NDArray[np.bool_] | None]:
    """All possible data of one user, 1 to m trajectories in any order, and the matrix of allowed replacements.

    Raises:
        ValueError: There are too many users for a test.
    """
    users, most = all_users(horizon, num_states, num_actions), most_trajectories(relation, values)
    chosen: list[tuple[int, ...]] = []
    for rows in range(1, most + 1):
        chosen += itertools.islice(itertools.combinations_with_replacement(range(users.users), rows), MOST + 1)
        if len(chosen) > MOST:
            raise ValueError(f"more than {MOST:,} users with up to {most} trajectories: enumerate smaller sizes")
    near = None
    if isinstance(relation, ReplaceOne):
        several = np.ones((len(chosen), len(chosen)), dtype=np.bool_)
        near = may_replace(relation, users) if most == 1 else several
    return [take(users, np.array(rows)) for rows in chosen], near


def suprema(
    statistic: Statistic[Trajectories],
    relation: Relation,
    horizon: int,
    num_states: int,
    num_actions: int,
    *,
    values: Mapping[str, Fraction] | None = None,
) -> Suprema:
    """Exact sensitivity of the statistic, by computing it for every user and subtracting.

    It uses only `compute`, never `difference` or `sensitivity`, so that it is independent of them.

    Args:
        statistic: The statistic.
        relation: The neighbouring relation; users with several trajectories have every combination of them.
        horizon: H.
        num_states: S.
        num_actions: A.
        values: The parameters, if the relation depends on them.
    """
    return _suprema(statistic, *_everybody(relation, horizon, num_states, num_actions, values=values or {}))


def _suprema(statistic: Statistic[Any], users: Sequence[Any], near: NDArray[np.bool_] | None) -> Suprema:
    """The same for any users; `near` says which two are neighbours, None that each is a neighbour of no user."""
    tables: NDArray[np.float64] = np.stack([statistic.compute(user).ravel() for user in users])
    if near is not None:
        left, right = np.nonzero(near)
        others = tables[right]
    else:
        left, right = np.arange(len(users)), None
        others = np.zeros_like(tables)
    change = np.abs(tables[left] - others)
    squares = np.square(change).sum(axis=1)
    worst = int(squares.argmax())
    return Suprema(
        l1=Fraction(float(change.sum(axis=1).max())),
        l2_squared=Fraction(float(squares[worst])),
        linf=Fraction(float(change.max())),
        pair=(users[int(left[worst])], None if right is None else users[int(right[worst])]),
    )


def assert_sensitivity(
    statistic: Statistic[Any],
    relation: Relation,
    values: Mapping[str, Fraction],
    *,
    users: Sequence[Any] | None = None,
) -> None:
    """Assert that the statistic's sensitivity equals the supremum over all neighbours.

    Args:
        statistic: The checked statistic.
        relation: The neighbouring relation.
        values: The parameters; "H", "S" and "A" size the trajectories and must be tiny.
        users: Custom data in place of all trajectories: every possible user, at most 1 000; under a relation for
            several trajectories, each with all of theirs.

    Raises:
        AssertionError: A norm differs; the message has both values and the pair.
        ParameterError: Neither sizes nor users are given, or the number of users is not 1 to 1 000, or the relation
            cannot be used with custom data.
    """
    if users is not None:
        enumerated = _suprema_of_own(statistic, relation, users)
    elif missing := [name for name in ("H", "S", "A") if name not in values]:
        message = f"no {', '.join(missing)} among the values: trajectories need sizes; for custom data give `users`"
        raise ParameterError(message, name=missing[0])
    else:
        enumerated = suprema(statistic, relation, *(int(values[name]) for name in ("H", "S", "A")), values=values)
    stated = statistic.sensitivity(relation)
    norms = {
        "l1": (stated.l1, enumerated.l1),
        "l2 squared": (stated.l2**2, enumerated.l2_squared),
        "linf": (stated.linf, enumerated.linf),
    }
    wrong = [
        f"{norm} is stated as {expr.at(values)}, the largest change is {true}"
        for norm, (expr, true) in norms.items()
        if expr.rational(values) != true
    ]
    if wrong:
        at = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise AssertionError(
            f"{statistic.name} under {relation.words}, {at}: {'; '.join(wrong)}; pair {enumerated.pair}"
        )


def _suprema_of_own(statistic: Statistic[Any], relation: Relation, users: Sequence[Any]) -> Suprema:
    if not 1 <= len(users) <= _MOST_OWN:
        raise ParameterError(f"expected 1 to {_MOST_OWN} users, got {len(users)}", name="users", given=len(users))
    if not isinstance(relation, ReplaceOne):
        return _suprema(statistic, users, None)
    if relation.initial == "fixed":
        message = "custom data do not show who shares step 1's state and action: expected initial='any'"
        raise ParameterError(message, name="relation", given=relation)
    return _suprema(statistic, users, np.ones((len(users), len(users)), dtype=np.bool_))
