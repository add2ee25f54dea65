"""What a statistic is: a function of trajectories that knows its own sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.relations import Relation
from privcheck.declare.schedules import Load
from privcheck.errors import TrajectoryError
from privcheck.terms.parameters import number, text, truth
from privcheck.terms.symbols import Expr, expression, sqrt

Data_contra = TypeVar("Data_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far one user moves a statistic: suprema over all neighbouring pairs.

    ℓ∞ ≤ ℓ₂ ≤ ℓ₁ in every pair, and none is 0 unless all are: a declaration refuses what says otherwise.

    Attributes:
        l1: sup ‖f(D) − f(D′)‖₁.
        l2: sup ‖f(D) − f(D′)‖₂; of a symmetric matrix the Frobenius norm.
        linf: sup ‖f(D) − f(D′)‖∞, or a bound on it where no worst split is derived (matrices and vectors).
        reason: The argument, in one sentence.
        stepwise: Every coordinate moves by 0 or ±Δ∞, never by a part of it, so the worst pair moves Δ₁/Δ∞ of them.
    """

    l1: Expr
    l2: Expr
    linf: Expr
    reason: str
    stepwise: bool = False

    def __post_init__(self) -> None:
        for norm in ("l1", "l2", "linf"):
            object.__setattr__(self, norm, number(f"{norm}, of Sensitivity", getattr(self, norm)))
        text("reason, of Sensitivity", self.reason)
        truth("stepwise, of Sensitivity", self.stepwise)

    def of_several(self, relation: Relation) -> Sensitivity:
        """Returns the sensitivity of a user with up to m trajectories, from that of one of them.

        The statistic is a sum over trajectories, so that m of them move it m times as far in every norm, and those
        who are all alike do (the triangle inequality, attained). A coordinate may then move by a part of Δ∞.
        """
        m = relation.trajectories
        if m == expression(1):
            return self
        reason = f"{self.reason}; {m} trajectories of a user may be alike, and move it {m} times as far"
        return Sensitivity(l1=self.l1 * m, l2=self.l2 * m, linf=self.linf * m, reason=reason)

    def repeated(self, load: Load) -> Sensitivity:
        """Returns the sensitivity of all outputs together, output v moved c_v times as far, with noise of its own."""
        return replace(
            self, l1=self.l1 * load.total, l2=self.l2 * sqrt(load.squares), linf=self.linf * load.most,
            stepwise=self.stepwise and load.most == expression(1),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseDifference:
    """f(D) − f(D′) of two neighbours, only where it is not zero.

    Attributes:
        cells: Flat indices into the statistic, ascending.
        change: The change at those cells, the same shape.
        times: In how many outputs, each with noise of its own, the same change occurs.
        mirrored: Which cells stand for two equal entries (i, j) and (j, i) of a symmetric matrix; None where none does.
    """

    cells: NDArray[np.int64]
    change: NDArray[np.float64]
    times: int = 1
    mirrored: NDArray[np.bool_] | None = None

    @property
    def l1(self) -> float:
        """Returns ‖f(D) − f(D′)‖₁ of one output."""
        return float((np.abs(self.change) * self._weight).sum())

    @property
    def l2_squared(self) -> float:
        """Returns ‖f(D) − f(D′)‖₂² of one output; exact for integer changes."""
        return float((np.square(self.change) * self._weight).sum())

    @property
    def _weight(self) -> NDArray[np.int64] | int:
        return 1 if self.mirrored is None else 1 + self.mirrored.astype(np.int64)

    def every_entry(self) -> SparseDifference:
        """Returns the change with both entries of every mirrored pair, for noise that is independent in them."""
        if self.mirrored is None:
            return self
        twice = np.repeat(np.arange(self.cells.size), 1 + self.mirrored.astype(np.int64))
        return replace(self, cells=self.cells[twice], change=self.change[twice], mirrored=None)


def expect_data(name: str, data: object, kind: type, remedy: str) -> None:
    """Checks that a statistic is handed the data that it knows.

    Args:
        name: The statistic's.
        data: What it was handed.
        kind: What it knows.
        remedy: Where such data come from.

    Raises:
        TrajectoryError: It is of another kind.
    """
    if not isinstance(data, kind):
        raise TrajectoryError(f"{name}: expected {kind.__name__}, got {type(data).__name__}; {remedy}")


class Statistic(Protocol[Data_contra]):
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

    def compute(self, data: Data_contra, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the statistic, or its slice at one step (counted from 0)."""
        ...

    def difference(self, pair: tuple[Data_contra | None, Data_contra | None]) -> SparseDifference:
        """Returns f(first) − f(second), where a missing user contributes nothing."""
        ...
