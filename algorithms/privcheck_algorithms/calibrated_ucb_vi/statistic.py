"""Counts pooled over steps, of each user's first m visits to a cell (s, a): a user moves a cell by at most m.

RiverSwim's dynamics do not change with the step, so all steps of a user tell about the same cells; but then a user who
stays in one cell moves it by H, and the noise has to hide that: ‖Δ‖₂ = H√2 (`PooledTransitionCounts`). Counting only a
user's first m visits to each cell leaves the law of what is counted as it is (whether a visit is counted depends on the
past alone), and bounds ‖Δ‖₂ by √(2·m·min(H, m·S·A)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import TrajectoryError
from privcheck.relations import Pair, Relation, ReplaceOne
from privcheck.statistics import Sensitivity, SparseDifference
from privcheck.symbols import A, H, S, minimum, sqrt
from privcheck.trajectories import Trajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstVisits:
    """A table (1, S, A, S) of transitions, or (1, S, A) of rewards, of each user's first m visits to each (s, a).

    Attributes:
        of: What is summed.
        cap: m, at least 1.
    """

    of: Literal["transitions", "rewards"]
    cap: int

    @property
    def name(self) -> str:
        """Returns the statistic's name in words."""
        what = "transition counts" if self.of == "transitions" else "reward sums"
        return f"{what} of each user's first {self.cap} visits to a pair, all steps together"

    @property
    def latex(self) -> str:
        """Returns the statistic as a formula."""
        return (
            rf"n^{{({self.cap})}}(s,a,s')" if self.of == "transitions" else rf"\textstyle\sum r^{{({self.cap})}}(s,a)"
        )

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that the statistic depends on."""
        return frozenset().union(H.symbols, S.symbols, A.symbols)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns what the data must satisfy, in words; `Trajectories` refuses data that does not."""
        return ("states and actions in range, every user has H steps", "rewards in [0, 1]")

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns upper bounds: a user adds at most m in all to the cells of a pair, and min(H, m·S·A) in all.

        So one user's table has ‖·‖₂² ≤ m·min(H, m·S·A). Two users' tables have no negative entry, so the squared norm
        of their difference is at most the sum of both. With a shared first pair the bounds are the same.
        """
        most, each = minimum(H, self.cap * S * A), minimum(self.cap, H)
        users = 2 if isinstance(relation, ReplaceOne) else 1
        return Sensitivity(
            l1=users * most,
            l2=sqrt(users * each * most),
            linf=each,
            reason=f"each of {users} users adds at most {self.cap} to a pair's cells, min(H, {self.cap}·S·A) in all",
        )

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns (1, S, A, S) or (1, S, A)."""
        states, actions = int(values["S"]), int(values["A"])
        return (1, states, actions, states) if self.of == "transitions" else (1, states, actions)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the table, or with step = 0 the same without its first axis.

        Raises:
            TrajectoryError: `step` is neither None nor 0.
        """
        if step not in {None, 0}:
            raise TrajectoryError(f"expected step 0 of a table whose steps are pooled, got {step}")
        table = self._table(data)
        return table[np.newaxis] if step is None else table

    def difference(self, pair: Pair) -> SparseDifference:
        """Returns the change between two users' data, over flat cells of the table."""
        change = np.zeros(0)
        for sign, user in zip((1.0, -1.0), pair, strict=True):
            if user is not None:
                table = sign * self._table(user).ravel()
                change = table if not change.size else change + table
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells, change=change[cells])

    def _table(self, data: Trajectories) -> NDArray[np.float64]:
        states, actions = data.num_states, data.num_actions
        shape = (states, actions, states) if self.of == "transitions" else (states, actions)
        table, rows = np.zeros(shape), np.arange(data.users)
        seen = np.zeros((data.users, states, actions), dtype=np.int64)
        for h in range(data.horizon):
            s, a, following = data.states[:, h], data.actions[:, h], data.states[:, h + 1]
            fresh = seen[rows, s, a] < self.cap
            seen[rows, s, a] += 1
            if self.of == "transitions":
                np.add.at(table, (s[fresh], a[fresh], following[fresh]), 1.0)
            else:
                np.add.at(table, (s[fresh], a[fresh]), data.rewards[fresh, h])
        return table
