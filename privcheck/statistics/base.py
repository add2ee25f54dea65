"""What a statistic is: a function of trajectories that knows its own sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.relations import Pair, Relation
from privcheck.symbols import Expr
from privcheck.trajectories import Trajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far one user moves a statistic, exactly: suprema over all neighbouring pairs.

    Attributes:
        l1: sup ‖f(D) − f(D′)‖₁.
        l2: sup ‖f(D) − f(D′)‖₂.
        linf: sup ‖f(D) − f(D′)‖∞.
        reason: The argument, in one sentence.
        stepwise: Every coordinate moves by 0 or ±Δ∞, never by a part of it, so the worst pair moves Δ₁/Δ∞ of them.
    """

    l1: Expr
    l2: Expr
    linf: Expr
    reason: str
    stepwise: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseDifference:
    """f(D) − f(D′) of two neighbours, only where it is not zero.

    Attributes:
        cells: Flat indices into the statistic, ascending.
        change: The change at those cells, the same shape.
    """

    cells: NDArray[np.int64]
    change: NDArray[np.float64]

    @property
    def l1(self) -> float:
        """Returns ‖f(D) − f(D′)‖₁."""
        return float(np.abs(self.change).sum())

    @property
    def l2_squared(self) -> float:
        """Returns ‖f(D) − f(D′)‖₂²; exact for integer changes."""
        return float(np.square(self.change).sum())


class Statistic(Protocol):
    """A statistic whose first axis is the step h, so that it can be computed and released step by step."""

    @property
    def name(self) -> str:
        """Returns the statistic's name in words."""
        ...

    @property
    def latex(self) -> str:
        """Returns the statistic as a formula."""
        ...

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that the statistic depends on."""
        ...

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns what the data must satisfy for the sensitivity to hold, in words; `compute` checks each."""
        ...

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns the exact sensitivity under the relation, for all parameters."""
        ...

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns the statistic's shape, the step axis first."""
        ...

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the statistic, or its slice at one step (counted from 0)."""
        ...

    def difference(self, pair: Pair) -> SparseDifference:
        """Returns f(first) − f(second), where a missing user contributes nothing."""
        ...
