"""Sums of bits: rewards that are 0 or 1, and tables in which a user counts at one step only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.domains import Condition
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.fields import instance, number
from privcheck.relations import AddRemoveOne, Pair, Relation, ReplaceOne
from privcheck.statistics.base import Sensitivity, SparseDifference
from privcheck.statistics.counts import CellSums, visited
from privcheck.symbols import Exact, Expr, expression, minimum, sqrt
from privcheck.trajectories import Trajectories, take


def RewardBits(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> CellSums:
    """Returns how many users in state s who take action a at step h get the reward 1; shape (H, S, A).

    A reward between 0 and 1 has to be made a bit by its user, 1 with that probability: what is true of all bits is true
    of a mixture of them.
    """
    return CellSums(
        name="reward bits",
        latex=r"\textstyle\sum r_h(s,a)",
        steps=number("H, of RewardBits", H),
        sizes=(number("S, of RewardBits", S), number("A, of RewardBits", A)),
        cells=visited,
        weight=_bits,
        changes_if_pair_fixed=1,  # both rewards go to the shared cell
        preconditions=("states and actions in range, every user has H steps", "rewards 0 or 1"),
        bits=True,
    )


def _bits(data: Trajectories, step: int) -> NDArray[np.float64]:
    rewards = data.rewards[:, step]
    if odd := rewards[(rewards != 0) & (rewards != 1)].tolist():
        message = f"expected rewards 0 or 1, got {odd[0]} at step {step + 1}; let each user round it to 1 with that "
        remedy = "probability: `rng.random(rewards.shape) < rewards` in the `contribute(user, rng)` of a PlainAgent"
        raise TrajectoryError(message + remedy)
    return rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepEach:
    """A table (H, …) whose step h counts only the users who are assigned to it: a user is in one slice.

    The users are dealt out in their order: the first n mod H steps have ⌈n/H⌉ of them, the others ⌊n/H⌋.

    Attributes:
        table: What is counted; each user adds at most 1 to one cell a step.
    """

    table: CellSums

    def __post_init__(self) -> None:
        instance("table, of OneStepEach", self.table, (CellSums,))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        return self.table.conditions

    @property
    def name(self) -> str:
        """Returns the statistic in words."""
        return f"{self.table.name} at one step a user"

    @property
    def latex(self) -> str:
        """Returns the statistic as a formula."""
        return self.table.latex

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that the statistic depends on."""
        return self.table.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns what the data must satisfy."""
        return self.table.preconditions

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns 2 unit changes under replacement, 1 where one user's data is zeroed out.

        Step 1's pair may be fixed, but a user may be assigned to a later step; with H = 1 there is none, and the
        table's own changes are fewer.

        Raises:
            DeclarationError: A user may be added or removed, or have several trajectories, so that all the others are
                dealt out anew.
        """
        if relation.trajectories != expression(1):
            message = f"users are dealt out over the steps one trajectory each, got {relation.words!r}"
            raise DeclarationError(f"{self.name}: {message}; declare the relation for one trajectory, or a whole table")
        if isinstance(relation, AddRemoveOne):
            message = "users are dealt out over the steps in their order: without one of them the others' steps change"
            raise DeclarationError(f"{self.name}: {message}; declare ReplaceOne or ZeroOut, not AddRemoveOne")
        changes = expression(2 if isinstance(relation, ReplaceOne) else 1)
        if isinstance(relation, ReplaceOne) and relation.initial == "fixed":
            changes = minimum(changes, self.table.sensitivity(relation).l1)
        return Sensitivity(
            l1=changes,
            l2=sqrt(changes),
            linf=expression(1),
            reason="a user is counted at one step, "
            + ("one cell loses and another gains" if isinstance(relation, ReplaceOne) else "in one cell")
            + ", by at most 1 each",
            stepwise=self.table.weight is None or self.table.bits,
        )

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns the table's shape (H, …)."""
        return self.table.shape(values)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the table (H, …), or its slice at one step counted from 0, of the users assigned to it.

        Raises:
            TrajectoryError: There is no such step.
        """
        if step is None:
            return np.stack([self.compute(data, step=h) for h in range(data.horizon)])
        if not 0 <= step < data.horizon:
            raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
        share, more = divmod(data.users, data.horizon)
        first, last = (h * share + min(h, more) for h in (step, step + 1))
        if first == last:
            return np.zeros_like(self.table.compute(data, step=step))
        return self.table.compute(take(data, slice(first, last)), step=step)

    def difference(self, pair: Pair) -> SparseDifference:
        """Returns the change between two users' data at step 1, to which the first user of all is assigned."""
        change = self.table.difference(pair)
        user = next(u for u in pair if u is not None)
        at = change.cells < self.table.compute(user, step=0).size
        return SparseDifference(cells=change.cells[at], change=change.change[at])
