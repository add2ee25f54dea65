"""Statistics on a grid: whole numbers of a public unit, so that discrete noise protects them and their sums are exact.

There are three ways to get there, each with its own effect on the sensitivity:

* *none*: the statistic has whole numbers already. Only the unit changes.
* Lemma rounded-rewards: If every reward is rounded to the grid before anything is computed, no pair has a larger change
  than before. Proof: a user's rounded data are valid data of a user, rewards in [0, 1] included, and neighbours stay
  neighbours.
* Lemma rounded-contributions: If each user's contribution, computed in floats, is rounded to the nearest point of the
  grid before it is summed, the sensitivity to replacement grows by at most a unit in ℓ∞, to one contribution by ½, by
  √m times as much in ℓ₂ and by m times as much in ℓ₁, with m the coordinates of a contribution. Proof: rounding changes
  each by at most ½ in every coordinate (triangle inequality). For the roundings of floats and for the input checks,
  which accept a norm of 1 up to 1 + 10⁻⁹, it also grows by 2⁻²⁴ of itself.

Symmetric matrices are output as their entries on and above the diagonal, in the coordinates in which their noise is
independent (`privcheck.declare.mechanisms.SymmetricGaussian`): for GOE noise the diagonal over √2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity, SparseDifference, Statistic, expect_data
from privcheck.errors import ParameterError, TrajectoryError
from privcheck.terms.parameters import Condition
from privcheck.terms.symbols import expression, sqrt

Array = NDArray[np.float64]
Rounding = Literal["none", "rewards", "contributions"]

IN_FLOATS: Final = Fraction(1, 2**24)  # by which norms of contributions may exceed their bounds, relative
_MOST: Final = 2.0**51  # of a sum, in units: sums of whole numbers up to it are exact in floats
_NUMBERS: Final = 1 << 22  # of contributions at a time, so that memory does not grow with the number of users


@runtime_checkable
class Contributes(Protocol):
    """A statistic that is a sum over the rows of its data, with access to each row's contribution."""

    def contributions(self, data: Any, *, step: int, rows: slice) -> Array:
        """Contributions of some rows at a step counted from 0, (rows, …) of the slice's shape.

        Matrices are symmetric to the last bit if the statistic is.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGrid:
    """A statistic in whole numbers of a unit. Made by `privcheck.runtime.discretisation.as_drawn`.

    Attributes:
        of: The statistic.
        unit: A power of two.
        rounding: How it is put on the grid.
        symmetric: How its matrices are mapped to independent coordinates; empty if it has none, or they are unchanged.
        coordinates: m, the number of coordinates in which a contribution may be off the grid; 0 unless contributions
            are rounded.
    """

    of: Statistic[Any]
    unit: Fraction
    rounding: Rounding
    symmetric: Literal["", "goe", "upper"] = ""
    coordinates: int = 0

    @property
    def name(self) -> str:
        """The statistic in words."""
        return self.of.name if self.unit == 1 else f"{self.of.name}, in units of {self.unit}"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        return self.of.latex

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return self.of.symbols

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        own: tuple[Condition, ...] = getattr(self.of, "conditions", ())
        return own

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data."""
        return self.of.preconditions

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """The statistic's sensitivity in units, increased by the effect of rounding."""
        base, units = self.of.sensitivity(relation), 1 / self.unit
        counted = "" if self.unit == 1 else f"; in units of {self.unit}"
        if self.symmetric == "goe":  # D_ij² counts twice in ‖D‖_F², and the diagonal is taken over √2
            base = replace(base, l2=base.l2 / sqrt(2), linf=base.l2 / sqrt(2))
        if self.rounding != "contributions":
            reason = base.reason + counted
            return replace(base, l1=base.l1 * units, l2=base.l2 * units, linf=base.linf * units, reason=reason)
        most = (2 if isinstance(relation, ReplaceOne) else 1) * relation.trajectories / 2  # in units, a coordinate
        wide, m = (1 + IN_FLOATS) * units, expression(self.coordinates)
        return Sensitivity(
            l1=base.l1 * wide + most * m,
            l2=base.l2 * wide + most * sqrt(m),
            linf=base.linf * wide + (most if self.coordinates else 0),
            reason=f"{base.reason}; each contribution is rounded in {self.coordinates} coordinates{counted}",
        )

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """The shape, the step axis first.

        Raises:
            ParameterError: The grid was made for other sizes.
        """
        shape = self.of.shape(values)
        if self.symmetric:
            shape = (*shape[:-2], shape[-1] * (shape[-1] + 1) // 2)
        if self.coordinates not in {0, math.prod(shape)}:
            message = f"{self.name}: made for {self.coordinates} coordinates, there are {math.prod(shape)}"
            raise ParameterError(f"{message}: make the drawn declaration at these values", name="values")
        return shape

    def compute(self, data: Any, *, step: int | None = None) -> Array:
        """Compute the statistic in units, or its slice at one step counted from 0; whole numbers.

        Raises:
            TrajectoryError: A value is not on the grid, or the sum may be too large to be exact.
        """
        if self.rounding == "contributions":
            summed = self._sum(data, step)
        else:
            summed = self.of.compute(self._rounded(data), step=step) / float(self.unit)
        if not (np.rint(summed) == summed).all():
            message = f"{self.name}: the statistic of rewards on the grid is not on it itself"
            raise TrajectoryError(f"{message}: give it `contributions`, which are rounded one by one")
        if summed.size and np.abs(summed).max() > _MOST:
            raise TrajectoryError(f"{self.name}: a sum of more than 2⁵¹ units is not exact in floats: fewer users")
        return summed

    def shown(self, noisy: Array) -> Array:
        """Convert a slice from whole numbers of units to the statistic's own unit and shape."""
        value = noisy * float(self.unit)
        if not self.symmetric:
            return value
        d = math.isqrt(2 * value.shape[-1])
        rows, columns = np.triu_indices(d)
        value = value * _diagonal(d, math.sqrt(2) if self.symmetric == "goe" else 1.0)
        matrix = np.empty((*value.shape[:-1], d, d))
        matrix[..., rows, columns] = value
        matrix[..., columns, rows] = value
        return matrix

    def difference(self, pair: tuple[Any, Any]) -> SparseDifference:
        """Change between two users' data, in units, over flat cells."""
        if self.rounding != "contributions":
            first, second = (None if user is None else self._rounded(user) for user in pair)
            moved = self.of.difference((first, second))
            return replace(moved, change=moved.change / float(self.unit))
        parts = [sign * self.compute(user) for sign, user in zip((1.0, -1.0), pair, strict=True) if user is not None]
        change = np.sum(parts, axis=0).ravel()
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def _rounded(self, data: Any) -> Any:
        if self.rounding == "none":
            return data
        expect_data(self.name, data, Trajectories, "what rewards are rounded of are trajectories")
        unit = float(self.unit)
        if data.users * data.horizon / unit > _MOST:
            raise TrajectoryError(f"{self.name}: more than 2⁵¹ units of reward are not summed exactly: fewer users")
        return replace(data, rewards=np.rint(data.rewards / unit) * unit)

    def _sum(self, data: Any, step: int | None) -> Array:
        if step is None:
            return np.stack([self._sum(data, h) for h in range(data.horizon)])
        assert isinstance(self.of, Contributes)
        users = data.users if hasattr(data, "users") else len(data.phi)
        first = self._whole(self.of.contributions(data, step=step, rows=slice(0, 1)))
        summed, rows = np.zeros(first.shape[1:]), max(1, _NUMBERS // max(1, math.prod(first.shape[1:])))
        for start in range(0, users, rows):
            summed += self._whole(self.of.contributions(data, step=step, rows=slice(start, start + rows))).sum(axis=0)
        return summed

    def _whole(self, contributions: Array) -> Array:
        """Convert contributions to the noise's coordinates, rounded to whole units."""
        if self.symmetric:
            d = contributions.shape[-1]
            rows, columns = np.triu_indices(d)
            contributions = contributions[..., rows, columns]
            contributions /= _diagonal(d, math.sqrt(2) if self.symmetric == "goe" else 1.0)
        whole: Array = np.rint(contributions / float(self.unit))
        return whole


def _diagonal(d: int, factor: float) -> Array:
    """Factors for the entries on and above the diagonal: 1 above it."""
    rows, columns = np.triu_indices(d)
    return np.where(rows == columns, factor, 1.0)
