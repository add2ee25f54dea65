"""The protocol of a statistic: a function of trajectories that knows its own sensitivity."""

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
    """Sensitivity of a statistic to one user: suprema over all neighbouring pairs.

    ℓ∞ ≤ ℓ₂ ≤ ℓ₁ in every pair, and none is 0 unless all are: a declaration refuses values that contradict this.

    Attributes:
        l1: sup ‖f(D) − f(D′)‖₁.
        l2: sup ‖f(D) − f(D′)‖₂; of a symmetric matrix the Frobenius norm.
        linf: sup ‖f(D) − f(D′)‖∞, or a bound on it if no worst split is derived (matrices and vectors).
        reason: The argument, in one sentence.
        stepwise: Every coordinate changes by 0 or ±Δ∞, never by a part of it, so the worst pair changes Δ₁/Δ∞ of them.
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
        """Sensitivity to a user with up to m trajectories, from that to one of them.

        The statistic is a sum over trajectories, so that m of them change it by m times as much in every norm, which is
        attained if they are all equal (the triangle inequality). A coordinate may then change by a part of Δ∞.
        """
        m = relation.trajectories
        if m == expression(1):
            return self
        reason = f"{self.reason}; {m} trajectories of a user may be alike, and move it {m} times as far"
        return Sensitivity(l1=self.l1 * m, l2=self.l2 * m, linf=self.linf * m, reason=reason)

    def repeated(self, load: Load) -> Sensitivity:
        """Sensitivity of all outputs together, output v changed c_v times as much, with independent noise in each."""
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
        times: Number of outputs, each with independent noise, in which the same change occurs.
        mirrored: Which cells represent two equal entries (i, j) and (j, i) of a symmetric matrix; None if none does.
    """

    cells: NDArray[np.int64]
    change: NDArray[np.float64]
    times: int = 1
    mirrored: NDArray[np.bool_] | None = None

    @property
    def l1(self) -> float:
        """‖f(D) − f(D′)‖₁ of one output."""
        return float((np.abs(self.change) * self._weight).sum())

    @property
    def l2_squared(self) -> float:
        """‖f(D) − f(D′)‖₂² of one output; exact for integer changes."""
        return float((np.square(self.change) * self._weight).sum())

    @property
    def _weight(self) -> NDArray[np.int64] | int:
        return 1 if self.mirrored is None else 1 + self.mirrored.astype(np.int64)

    def every_entry(self) -> SparseDifference:
        """The change with both entries of every mirrored pair, for noise that is independent in them."""
        if self.mirrored is None:
            return self
        twice = np.repeat(np.arange(self.cells.size), 1 + self.mirrored.astype(np.int64))
        return replace(self, cells=self.cells[twice], change=self.change[twice], mirrored=None)


def expect_data(name: str, data: object, kind: type, remedy: str) -> None:
    """Check that a statistic is given the kind of data that it accepts.

    Args:
        name: Name of the statistic.
        data: The given data.
        kind: The accepted type.
        remedy: How to make such data.

    Raises:
        TrajectoryError: The data is of another type.
    """
    if not isinstance(data, kind):
        raise TrajectoryError(f"{name}: expected {kind.__name__}, got {type(data).__name__}; {remedy}")


class Statistic(Protocol[Data_contra]):
    """A statistic whose first axis is the step h, so that it can be computed and released step by step."""

    @property
    def name(self) -> str:
        """The statistic's name in words."""
        ...

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        ...

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        ...

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data for the sensitivity to hold, in words; `compute` checks each."""
        ...

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Exact sensitivity under the relation, for all parameters."""
        ...

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """The statistic's shape, the step axis first."""
        ...

    def compute(self, data: Data_contra, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the statistic, or its slice at one step (counted from 0)."""
        ...

    def difference(self, pair: tuple[Data_contra | None, Data_contra | None]) -> SparseDifference:
        """f(first) − f(second), where a missing user contributes nothing."""
        ...
