"""Neighbouring relations: the pairs of datasets that a guarantee covers, the unit under each, all pairs at tiny sizes.

A relation decides every sensitivity. `initial="fixed"` is the reading of a user as a response function (Chowdhury &
Zhou, section 2.2): the initial state is fixed and the first action has the same law for both neighbours, so the pair of
step 1 is common to both; the state after it is not.

A user has one trajectory, or up to m of them (`trajectories=m`): all of them are then replaced, added or zeroed out at
once, and if each is protected at ρ, all together are protected at m²·ρ, since they may all be equal.

Rewards are 0 or 1 in the pairs at tiny sizes: if a statistic is linear in them, a supremum over [0, 1] is attained at
its ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, repeat
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.parameters import number, one_of
from privcheck.terms.symbols import Exact, Expr, expression
from privcheck.terms.unit import RelationName, TrustModel, Unit

Initial = Literal["any", "fixed"]
Noun = Literal[
    "trajectory", "user", "patient", "person", "episode"
]  # each of them one trajectory, whatever it is called, unless the relation says how many
_PEOPLE: Final = ("user", "patient", "person")  # who may have several
_ONE: Final = expression(1)
LONGEST = 1_000_000  # steps of a pair that is written out: audits and witnesses hold it in memory
LARGEST = 2**31 - 1  # states and actions are 32-bit integers
Pair = tuple[Trajectories | None, Trajectories | None]


@dataclass(frozen=True, slots=True)
class ReplaceOne:
    """Two datasets with the same number of users that differ in one user's data.

    Attributes:
        unit: Name of the one trajectory of a user, or of the person with several.
        initial: "fixed" if step 1's state–action pair is the same in both.
        trajectories: m, the largest number of trajectories of a user, in D and in D′.
    """

    unit: Noun
    initial: Initial
    trajectories: Expr

    def __init__(
        self, unit: Noun = "trajectory", initial: Initial = "any", *, trajectories: Exact | Expr = _ONE
    ) -> None:
        one_of("initial, of ReplaceOne", initial, get_args(Initial))
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "initial", initial)
        object.__setattr__(self, "trajectories", number("trajectories, of ReplaceOne", trajectories))
        _check_unit(self)
        if initial == "fixed" and self.trajectories != _ONE:
            message = (
                f"ReplaceOne(initial='fixed', trajectories={self.trajectories}): no derivation is known for which of a "
                "user's"
            )
            raise DeclarationError(f"{message} trajectories share their first step; declare initial='any'")

    @property
    def words(self) -> str:
        """The relation in words."""
        fixed = ", step 1's state and action in common" if self.initial == "fixed" else ""
        return f"replace one {self.unit}{_having(self)} by any other{fixed}"


@dataclass(frozen=True, slots=True)
class AddRemoveOne:
    """One dataset is the other without one user's data.

    Attributes:
        unit: Name of the one trajectory of a user, or of the person with several.
        trajectories: m, the largest number of trajectories of a user.
    """

    unit: Noun
    trajectories: Expr

    def __init__(self, unit: Noun = "trajectory", *, trajectories: Exact | Expr = _ONE) -> None:
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "trajectories", number("trajectories, of AddRemoveOne", trajectories))
        _check_unit(self)

    @property
    def words(self) -> str:
        """The relation in words."""
        return f"add or remove one {self.unit}{_having(self)}"


@dataclass(frozen=True, slots=True)
class ZeroOut:
    """One user's contribution is removed; the number of users is public and stays.

    Attributes:
        unit: Name of the one trajectory of a user, or of the person with several.
        trajectories: m, the largest number of trajectories of a user.
    """

    unit: Noun
    trajectories: Expr

    def __init__(self, unit: Noun = "trajectory", *, trajectories: Exact | Expr = _ONE) -> None:
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "trajectories", number("trajectories, of ZeroOut", trajectories))
        _check_unit(self)

    @property
    def words(self) -> str:
        """The relation in words."""
        return f"zero out one {self.unit}{_having(self)}"


Relation = ReplaceOne | AddRemoveOne | ZeroOut


def of_one_trajectory(relation: Relation) -> Relation:
    """The relation of the same kind for a user with one trajectory."""
    return replace(relation, trajectories=_ONE)


def zeroed_out(relation: Relation) -> ZeroOut:
    """The relation under which the same user's contribution is removed."""
    return ZeroOut(relation.unit, trajectories=relation.trajectories)


def replaced(relation: Relation) -> ReplaceOne:
    """The relation under which the same user is replaced by any other."""
    return ReplaceOne(relation.unit, trajectories=relation.trajectories)


def most_trajectories(relation: Relation, values: Mapping[str, Fraction]) -> int:
    """Largest number of trajectories of a user.

    Raises:
        ParameterError: It is not a whole number of at least 1 at these parameters.
    """
    most = relation.trajectories.rational(values)
    if most is None or most.denominator != 1 or most < 1:
        message = f"expected how many trajectories a user has as a whole number, at least 1, got {most}"
        raise ParameterError(f"{message} ({relation.words})", name="trajectories", given=most)
    return int(most)


def name_relation(relation: Relation) -> RelationName:
    """The name of a declared relation."""
    if isinstance(relation, ReplaceOne):
        return "replace-one-same-start" if relation.initial == "fixed" else "replace-one"
    return "add-remove" if isinstance(relation, AddRemoveOne) else "zero-out"


def declared_unit(
    relation: Relation, model: TrustModel, values: Mapping[str, Fraction], *, name: str, steps: int | None = None
) -> Unit:
    """The unit that a declaration states before any table is known.

    Args:
        relation: The declaration's relation.
        model: Where its noise is drawn; "joint" for a claim of joint DP.
        values: Its parameters.
        name: Its name.
        steps: H, if it has one.

    Raises:
        ParameterError: The number of trajectories is not whole at these parameters.
    """
    return Unit(
        who=relation.unit,
        trajectories=most_trajectories(relation, values),
        steps=steps,
        relation=name_relation(relation),
        model=model,
        basis="declaration",
        stated_by=f"declaration of {name}",
    )


def cover_users(table: Unit, relation: Relation, model: TrustModel, values: Mapping[str, Fraction]) -> Unit:
    """The unit of a guarantee that a declaration gives to the users of a table.

    Args:
        table: The unit of its users.
        relation: The declaration's relation.
        model: Where the declaration's noise is drawn.
        values: The declaration's parameters, for the number of trajectories that it covers.

    Raises:
        ParameterError: The declaration covers fewer trajectories than a user has.
    """
    covered = most_trajectories(relation, values)
    if covered < table.trajectories:
        message = (
            f"the declaration covers {covered} trajectories of a user ({relation.words}), and a {table.who} has up "
            f"to {table.trajectories}"
        )
        raise ParameterError(message, name="trajectories", given=table.trajectories)
    return replace(table, relation=name_relation(relation), model=model)


def _having(relation: Relation) -> str:
    return "" if relation.trajectories == _ONE else f" with up to {relation.trajectories} trajectories"


def _check_unit(relation: Relation) -> None:
    """Check that the unit is one trajectory, or a person who may have several.

    Raises:
        DeclarationError: The unit is neither.
    """
    unit = relation.unit
    if not isinstance(unit, str) or unit not in get_args(Noun):
        units = ", ".join(map(repr, get_args(Noun)))
        message = f"unit of the relation: expected one of {units}, each of which is one trajectory, got {unit!r}"
        raise DeclarationError(f"{message}; for a user with up to m of them declare `trajectories=m`")
    if relation.trajectories != _ONE and unit not in _PEOPLE:
        message = f"unit of the relation: one {unit} has no {relation.trajectories} trajectories; expected"
        raise DeclarationError(f"{message} one of {', '.join(map(repr, _PEOPLE))} with `trajectories=`")


def extreme_pairs(
    relation: Relation, horizon: int, num_states: int, num_actions: int, *, trajectories: int = 1
) -> Iterator[Pair]:
    """Yield pairs of one user's data with the largest change of tabular statistics under the relation.

    The two trajectories differ in every state–action pair and every transition in which the relation lets them: the
    second plays another action throughout (or, with one action, stays in another state). Rewards are 1 where the cells
    differ (a reward of 0 would leave a reward sum unchanged) and 1 against 0 where the relation makes them share a
    cell; a second pair has 0 against 1 throughout, a third 0 where the first has 1, for sums of costs 1 − r. These are
    candidates for a witness, with a loss that is then computed exactly; that no pair does worse is stated by
    `Statistic.sensitivity` and checked by the enumeration tests. Several trajectories of a user are all equal.

    Args:
        relation: The neighbouring relation.
        horizon: H.
        num_states: S.
        num_actions: A.
        trajectories: Number of trajectories of each user, `most_trajectories`.

    Raises:
        ParameterError: The trajectories would be longer than `LONGEST` in all, or S or A larger than `LARGEST`.
    """
    for pair in _of_one_trajectory(relation, horizon * trajectories, (horizon, num_states, num_actions)):
        first, second = (None if user is None else repeat(user, trajectories) for user in pair)
        yield first, second


def _of_one_trajectory(relation: Relation, written: int, sizes: tuple[int, int, int]) -> Iterator[Pair]:
    horizon, num_states, num_actions = sizes
    if max(num_states, num_actions) > LARGEST:
        message = (
            f"S = {num_states}, A = {num_actions}: trajectories hold numbers up to {LARGEST}; set them to at most that"
        )
        raise ParameterError(message, name="S", given=max(num_states, num_actions))
    if written > LONGEST:
        message = f"H = {written}" if written == horizon else f"{written // horizon} trajectories of H = {horizon}"
        message += f": a pair of users is written out up to {LONGEST} steps"
        raise ParameterError(f"{message}; set H to at most that", name="H", given=horizon)
    if isinstance(relation, ReplaceOne):
        fixed = relation.initial == "fixed"
        for reward, against in ((1.0, 1.0), (0.0, 1.0), (0.0, 0.0)):
            first = _constant(horizon, num_states, num_actions, state=0, action=0, reward=reward)
            last = {"state": num_states - 1, "action": num_actions - 1}
            other = _constant(horizon, num_states, num_actions, **last, reward=against)
            if fixed:  # the first may stay in the shared cell: one reward throughout, so that sums over steps add up
                other = _first_step(other, reward=1.0 - reward)
            yield first, other
            yield other, first
    else:
        for reward in (1.0, 0.0):
            alone = _constant(horizon, num_states, num_actions, state=0, action=0, reward=reward)
            yield alone, None
            yield None, alone


def _constant(
    horizon: int, num_states: int, num_actions: int, *, state: int, action: int, reward: float
) -> Trajectories:
    return Trajectories(
        states=np.full((1, horizon + 1), state, dtype=np.int32),
        actions=np.full((1, horizon), action, dtype=np.int32),
        rewards=np.full((1, horizon), reward),
        num_states=num_states,
        num_actions=num_actions,
    )


def _first_step(user: Trajectories, *, reward: float) -> Trajectories:
    states, actions, rewards = user.states.copy(), user.actions.copy(), user.rewards.copy()
    states[:, 0], actions[:, 0], rewards[:, 0] = 0, 0, reward
    return Trajectories(
        states=states,
        actions=actions,
        rewards=rewards,
        num_states=user.num_states,
        num_actions=user.num_actions,
    )


MOST = 5_000  # users whose pairs are still compared in a second or two


def how_many_users(horizon: int, num_states: int, num_actions: int) -> int:
    """S^(H+1)·A^H·2^H, the number of trajectories with rewards 0 or 1."""
    return int(num_states ** (horizon + 1) * (2 * num_actions) ** horizon)


def every_user(horizon: int, num_states: int, num_actions: int) -> Trajectories:
    """Every trajectory of one user with rewards 0 or 1, as one dataset; meant for at most `MOST` of them."""
    axes = [range(num_states)] * (horizon + 1) + [range(num_actions)] * horizon + [range(2)] * horizon
    rows = np.array(list(itertools.product(*axes)), dtype=np.int32)
    return Trajectories(
        states=rows[:, : horizon + 1],
        actions=rows[:, horizon + 1 : 2 * horizon + 1],
        rewards=rows[:, 2 * horizon + 1 :].astype(np.float64),
        num_states=num_states,
        num_actions=num_actions,
    )


def may_replace(relation: ReplaceOne, users: Trajectories) -> NDArray[np.bool_]:
    """For every two users, whether one may replace the other; shape (users, users)."""
    if relation.initial == "any":
        return np.ones((users.users, users.users), dtype=np.bool_)
    start = users.states[:, 0].astype(np.int64) * users.num_actions + users.actions[:, 0]
    same: NDArray[np.bool_] = start[:, np.newaxis] == start
    return same
