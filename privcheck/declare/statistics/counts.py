"""Sums of cells and of bits: visits, transitions, rewards and costs, by step or with the steps pooled.

Each of them adds a weight of at most 1 to one cell per step for each user, so one class computes them and one argument
bounds them.

Lemma cell-sums: Under replacement 2H cells change by at most 1 each, under add/remove H. Proof: two cells per step
change by at most 1 each, and at different steps the cells differ because the table has an axis for h.

Lemma pooled-cells: Of pooled tables, with this step axis summed out, the ℓ₁ sensitivity is that of the tables by step,
the ℓ₂ one is larger (H, not √H). Proof: a user who stays in one cell adds up to H to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, take
from privcheck.declare.relations import AddRemoveOne, Pair, Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity, SparseDifference, expect_data
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.terms.parameters import Condition, instance, number
from privcheck.terms.symbols import Exact, Expr, expression, largest, minimum, sqrt, total

Cells = Callable[[Trajectories, int], NDArray[np.int64]]  # the flat cell of each user's weight at a step
Weights = Callable[[Trajectories, int], NDArray[np.float64]]  # each user's weight at a step, in [0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSums:
    """A table (H, …) to which each user adds a weight in [0, 1] in one cell per step.

    Attributes:
        name: The statistic in words.
        latex: The statistic as a formula.
        steps: H.
        sizes: The axes of one step's table.
        cells: The cell that a user's weight is added to.
        weight: Each user's weight at a step; None if it is 1.
        bits: Whether every weight is 0 or 1.
        changes_if_pair_fixed: Number of unit changes at step 1 when both neighbours share its state and action.
        preconditions: Conditions on the data, in words; `Trajectories` refuses data that violates them.
    """

    name: str
    latex: str
    steps: Expr
    sizes: tuple[Expr, ...]
    cells: Cells
    weight: Weights | None
    changes_if_pair_fixed: int
    preconditions: tuple[str, ...]
    bits: bool = False

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return frozenset().union(self.steps.symbols, *(size.symbols for size in self.sizes))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        sizes = (Condition(what=f"axes of {self.name}", of=size, domain="count") for size in self.sizes)
        return (Condition(what=f"the steps of {self.name}", of=self.steps, domain="count"), *sizes)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """2H unit changes under replacement, H under add/remove; step 1 is counted separately if its pair is fixed.

        Attained whenever S·A ≥ 2 (for the transitions of a fixed pair: S ≥ 2), an upper bound otherwise. If sizes are
        the number 1 the remaining changes are counted: a user who replaces another in the only cell is counted there
        too. The enumeration tests compare with all neighbours for equality.
        """
        first, linf = self.first_changes, expression(1)
        if not isinstance(relation, ReplaceOne):
            changes, reason = self.steps, "one cell at each step"
        elif self.one_cell:
            changes = expression(0) if self.weight is None else self.steps
            reason = "both users are in the only cell"
            linf = linf if self.weight is not None else changes
        elif relation.initial == "any":
            changes, reason = 2 * self.steps, "one cell loses and another gains at each step"
        else:
            changes = 2 * (self.steps - 1) + first
            reason = f"two cells at each step after the first, {first} at the first, whose pair is shared"
        one = Sensitivity(
            l1=changes,
            l2=sqrt(changes),
            linf=linf,
            reason=reason + ", by at most 1 each",
            stepwise=self.weight is None or self.bits,
        )
        return one.of_several(relation)

    @property
    def one_cell(self) -> bool:
        """Whether a step has one cell, whatever the parameters are."""
        return all(size == expression(1) for size in self.sizes)

    @property
    def first_changes(self) -> int:
        """Number of unit changes at step 1 with a shared pair; 0 for transitions to a single state."""
        alike = self.cells is passed and self.sizes[-1] == expression(1)
        return 0 if alike else self.changes_if_pair_fixed

    def settled(self, values: Mapping[str, Fraction]) -> CellSums:
        """The table with its sizes replaced by the number 1 if they are 1 at these parameters."""
        return replace(self, sizes=tuple(expression(1) if one.rational(values) == 1 else one for one in self.sizes))

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """The table's shape (H, …)."""
        return tuple(int(size.number(values)) for size in (self.steps, *self.sizes))

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the table (H, …), or its slice at one step counted from 0.

        Raises:
            TrajectoryError: There is no such step.
        """
        if step is None:
            expect_data(self.name, data, Trajectories, "make them with Trajectories(…) or read_trajectories(…)")
            return np.stack([self.compute(data, step=h) for h in range(data.horizon)])
        if not 0 <= step < data.horizon:
            raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
        shape = self.step_shape(data)
        weights = self.weight(data, step) if self.weight else None
        table = np.bincount(self.cells(data, step), weights=weights, minlength=int(np.prod(shape)))
        return table.astype(np.float64, copy=False).reshape(shape)

    def difference(self, pair: Pair) -> SparseDifference:
        """Change between two users' data, over flat cells of the table (H, …)."""
        where, change = [], []
        for sign, user in zip((1.0, -1.0), pair, strict=True):
            if user is None:
                continue
            for step in self._steps(user.horizon):
                where.append((self.cells(user, step) + step * int(np.prod(self.step_shape(user)))).ravel())
                weights = self.weight(user, step) if self.weight else np.ones(where[-1].shape)
                change.append(sign * weights.ravel())
        cells, inverse = np.unique(np.concatenate(where), return_inverse=True)
        sums = np.bincount(inverse, weights=np.concatenate(change))
        return SparseDifference(cells=cells[sums != 0], change=sums[sums != 0])

    def _steps(self, horizon: int) -> Iterable[Any]:
        """The steps one at a time, or all in one array if cells and weights are ours, which accept one."""
        ours = {None, rewarded, _cost}
        return (np.arange(horizon),) if self.cells in (visited, passed) and self.weight in ours else range(horizon)

    def step_shape(self, data: Trajectories) -> tuple[int, ...]:
        """Shape of one step's table for such data."""
        pair = (data.num_states, data.num_actions)
        return pair if len(self.sizes) == 2 else (*pair, data.num_states)


def VisitCounts(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> CellSums:
    """n_h(s, a): number of users in state s who take action a at step h; shape (H, S, A)."""
    return CellSums(
        name="visit counts",
        latex="n_h(s,a)",
        steps=number("H, of VisitCounts", H),
        sizes=(number("S, of VisitCounts", S), number("A, of VisitCounts", A)),
        cells=visited,
        weight=None,
        changes_if_pair_fixed=0,
        preconditions=("states and actions in range, every user has H steps",),
    )


def TransitionCounts(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> CellSums:
    """n_h(s, a, s′): number of users who go from (s, a) to s′ at step h; shape (H, S, A, S)."""
    return CellSums(
        name="transition counts",
        latex="n_h(s,a,s')",
        steps=number("H, of TransitionCounts", H),
        sizes=(
            number("S, of TransitionCounts", S),
            number("A, of TransitionCounts", A),
            number("S, of TransitionCounts", S),
        ),
        cells=passed,
        weight=None,
        changes_if_pair_fixed=2,  # the pair is shared, the state after it is not
        preconditions=("states and actions in range, every user has H steps",),
    )


def RewardSums(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> CellSums:
    """Rewards r_h(s, a) summed over the users in state s who take action a at step h; shape (H, S, A)."""
    return CellSums(
        name="reward sums",
        latex=r"\textstyle\sum r_h(s,a)",
        steps=number("H, of RewardSums", H),
        sizes=(number("S, of RewardSums", S), number("A, of RewardSums", A)),
        cells=visited,
        weight=rewarded,
        changes_if_pair_fixed=1,  # both rewards go to the shared cell
        preconditions=("states and actions in range, every user has H steps", "rewards in [0, 1]"),
    )


def CostSums(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> CellSums:
    """Costs 1 − r_h(s, a), summed like the rewards of `RewardSums`; shape (H, S, A)."""
    return CellSums(
        name="cost sums",
        latex=r"\textstyle\sum c_h(s,a)",
        steps=number("H, of CostSums", H),
        sizes=(number("S, of CostSums", S), number("A, of CostSums", A)),
        cells=visited,
        weight=_cost,
        changes_if_pair_fixed=1,  # both costs go to the shared cell
        preconditions=("states and actions in range, every user has H steps", "rewards in [0, 1], costs 1 − reward"),
    )


def visited(data: Trajectories, step: int) -> NDArray[np.int64]:
    """Each user's flat cell (s, a) at a step."""
    return data.states[:, step].astype(np.int64) * data.num_actions + data.actions[:, step]


def passed(data: Trajectories, step: int) -> NDArray[np.int64]:
    """Each user's flat cell (s, a, s′) at a step."""
    return visited(data, step) * data.num_states + data.states[:, step + 1]


def rewarded(data: Trajectories, step: int) -> NDArray[np.float64]:
    """Each user's reward at a step."""
    return data.rewards[:, step]


def _cost(data: Trajectories, step: int) -> NDArray[np.float64]:
    cost: NDArray[np.float64] = 1.0 - data.rewards[:, step]
    return cost


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSums:
    """A table (1, …): that of `by_step` summed over the steps, released in one part.

    Attributes:
        by_step: The table with an axis for the step.
    """

    by_step: CellSums

    def __post_init__(self) -> None:
        instance("by_step, of PooledSums", self.by_step, (CellSums,))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        return self.by_step.conditions

    @property
    def name(self) -> str:
        """The statistic's name in words."""
        return f"{self.by_step.name}, all steps together"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        return rf"\textstyle\sum_h {self.by_step.latex}"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return self.by_step.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data, in words; `Trajectories` refuses data that violates them."""
        return self.by_step.preconditions

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """H out of one cell and H into another under replacement, H in one cell under add/remove.

        If step 1's pair is shared, H − 1 later steps still change from cell to cell. The changes at step 1 depend on
        the table (`changes_if_pair_fixed`): none for a visit; a reward of 1 against 0 in the shared cell, in which the
        first user may stay, so that the cell changes by H; two transitions, of which one may be repeated H times.
        Attained for S ≥ 2 as long as each user can stay in the same cell; the enumeration tests compare for equality.
        If all sizes are the number 1, counts do not change at all under replacement: both users are in the only cell.
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
        """The table with its sizes replaced by the number 1 if they are 1 at these parameters."""
        return replace(self, by_step=self.by_step.settled(values))

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """(1, …)."""
        return (1, *self.by_step.shape(values)[1:])

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the table (1, …), or with step = 0 the same without its first axis.

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
        """Change between two users' data, over flat cells of the table (1, …)."""
        change = self.by_step.difference(pair)
        user = next(user for user in pair if user is not None)
        size = math.prod(self.by_step.step_shape(user))
        cells, inverse = np.unique(change.cells % size, return_inverse=True)
        sums = np.bincount(inverse, weights=change.change, minlength=cells.size)
        return SparseDifference(cells=cells[sums != 0], change=sums[sums != 0])


def PooledVisitCounts(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> PooledSums:
    """n(s, a): number of visits of users to state s with action a, at any step; shape (1, S, A)."""
    return PooledSums(by_step=VisitCounts(H, S, A))


def PooledTransitionCounts(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> PooledSums:
    """n(s, a, s′): number of transitions of users from (s, a) to s′, at any step; shape (1, S, A, S)."""
    return PooledSums(by_step=TransitionCounts(H, S, A))


def PooledRewardSums(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> PooledSums:
    """Rewards summed over all visits of (s, a), at any step; shape (1, S, A)."""
    return PooledSums(by_step=RewardSums(H, S, A))


def RewardBits(H: Exact | Expr, S: Exact | Expr, A: Exact | Expr) -> CellSums:
    """Number of users in state s who take action a at step h and get the reward 1; shape (H, S, A).

    A reward between 0 and 1 has to be rounded to a bit by its user, to 1 with that probability: a statement about all
    bits also holds for a mixture of them.
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
    """A table (H, …) in which step h counts only the users who are assigned to it: a user is in one slice.

    Users are assigned in their order: the first n mod H steps have ⌈n/H⌉ of them, the others ⌊n/H⌋.

    Attributes:
        table: The counted table; each user adds at most 1 to one cell per step.
    """

    table: CellSums

    def __post_init__(self) -> None:
        instance("table, of OneStepEach", self.table, (CellSums,))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        return self.table.conditions

    @property
    def name(self) -> str:
        """The statistic in words."""
        return f"{self.table.name} at one step a user"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        return self.table.latex

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return self.table.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data."""
        return self.table.preconditions

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """2 unit changes under replacement, 1 if one user's data is zeroed out.

        Step 1's pair may be fixed, but a user may be assigned to a later step; with H = 1 there is none, and the
        table's own changes are fewer.

        Raises:
            DeclarationError: A user may be added or removed, or have several trajectories, so that the other users'
                steps change.
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
        """The table's shape (H, …)."""
        return self.table.shape(values)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the table (H, …), or its slice at one step counted from 0, of the users assigned to it.

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
        """Change between two users' data at step 1, to which the first user of all is assigned."""
        change = self.table.difference(pair)
        user = next(u for u in pair if u is not None)
        at = change.cells < self.table.compute(user, step=0).size
        return SparseDifference(cells=change.cells[at], change=change.change[at])
