"""Sums of cells with the steps pooled: stationary models count (s, a) whatever the step, so one user moves a cell by H.

The tables of `privcheck.statistics.counts` with their step axis summed out. A user who stays in one cell adds up to H
to it: the ℓ₁ sensitivity is that of the tables by step, the ℓ₂ one is larger (H, not √H).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.domains import Condition
from privcheck.errors import TrajectoryError
from privcheck.fields import instance
from privcheck.relations import Pair, Relation, ReplaceOne
from privcheck.statistics.base import Sensitivity, SparseDifference
from privcheck.statistics.counts import CellSums, RewardSums, TransitionCounts, VisitCounts
from privcheck.symbols import Exact, Expr, expression, largest, sqrt, total
from privcheck.trajectories import Trajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSums:
    """A table (1, …): that of `by_step` summed over the steps, so that it leaves in one part.

    Attributes:
        by_step: The table with an axis for the step.
    """

    by_step: CellSums

    def __post_init__(self) -> None:
        instance("by_step, of PooledSums", self.by_step, (CellSums,))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        return self.by_step.conditions

    @property
    def name(self) -> str:
        """Returns the statistic's name in words."""
        return f"{self.by_step.name}, all steps together"

    @property
    def latex(self) -> str:
        """Returns the statistic as a formula."""
        return rf"\textstyle\sum_h {self.by_step.latex}"

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that the statistic depends on."""
        return self.by_step.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns what the data must satisfy, in words; `Trajectories` refuses data that does not."""
        return self.by_step.preconditions

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns H out of one cell and H into another under replacement, H in one cell under add/remove.

        With step 1's pair in common, H − 1 later steps still move from cell to cell. What step 1 leaves depends on the
        table (`changes_if_pair_fixed`): nothing of a visit; a reward of 1 against 0 in the shared cell, in which the
        first user may stay, so that the cell moves by H; two transitions, of which one may be repeated H times.
        Attained for S ≥ 2 as long as each user can stay where it is; the enumeration tests compare for equality. In the
        only cell of sizes that are the number 1 nobody is counted instead of another.
        """
        steps, first = self.by_step.steps, self.by_step.first_changes
        changes: tuple[Expr, ...]
        if not isinstance(relation, ReplaceOne):
            changes, reason = (steps,), "one cell gains at every step"
        elif self.by_step.one_cell:
            changes = (expression(0) if self.by_step.weight is None else steps,)
            reason = "both users are in the only cell"
        elif relation.initial == "any":
            changes, reason = (steps, steps), "one cell loses and another gains at every step"
        else:
            later = steps - 1
            changes = ((later, later), (later + 1, later), (later + 1, later, expression(1)))[first]
            reason = f"one cell loses and another gains at every later step, {first} changes at the first"
        one = Sensitivity(
            l1=total(list(changes)),
            l2=sqrt(total([c**2 for c in changes])),
            linf=largest(*changes),
            reason=reason + ", by at most 1 each",
        )
        return one.of_several(relation)

    def settled(self, values: Mapping[str, Fraction]) -> PooledSums:
        """Returns the table whose sizes are the number 1 where they are 1 at these parameters."""
        return replace(self, by_step=self.by_step.settled(values))

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns (1, …)."""
        return (1, *self.by_step.shape(values)[1:])

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the table (1, …), or with step = 0 the same without its first axis.

        Raises:
            TrajectoryError: `step` is neither None nor 0.
        """
        if step not in {None, 0}:
            raise TrajectoryError(f"expected step 0 of a table whose steps are pooled, got {step}")
        table = self.by_step.compute(data, step=0)
        for h in range(1, data.horizon):
            table = table + self.by_step.compute(data, step=h)
        return table[np.newaxis] if step is None else table

    def difference(self, pair: Pair) -> SparseDifference:
        """Returns the change between two users' data, over flat cells of the table (1, …)."""
        change = self.by_step.difference(pair)
        user = next(user for user in pair if user is not None)
        size = math.prod(self.by_step.step_shape(user))
        cells, inverse = np.unique(change.cells % size, return_inverse=True)
        sums = np.bincount(inverse, weights=change.change, minlength=cells.size)
        return SparseDifference(cells=cells[sums != 0], change=sums[sums != 0])


def PooledVisitCounts(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> PooledSums:
    """Returns n(s, a): how often users are in state s and take action a, at any step; shape (1, S, A)."""
    return PooledSums(by_step=VisitCounts(H, S, A))


def PooledTransitionCounts(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> PooledSums:
    """Returns n(s, a, s′): how often users go from (s, a) to s′, at any step; shape (1, S, A, S)."""
    return PooledSums(by_step=TransitionCounts(H, S, A))


def PooledRewardSums(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> PooledSums:
    """Returns the rewards summed over all visits of (s, a), at any step; shape (1, S, A)."""
    return PooledSums(by_step=RewardSums(H, S, A))
