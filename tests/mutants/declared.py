"""Mutants of a declaration: what is drawn, counted or charged is not what the rest of it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.mechanisms import Gaussian, Mechanism, Noise
from privcheck.declare.relations import Pair, Relation
from privcheck.declare.statistics import Sensitivity, SparseDifference, Statistic
from privcheck.terms.symbols import Exact, Expr, exact, sqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """A mechanism whose sampler draws noise of another scale than its expressions say.

    Attributes:
        declared: The honest mechanism.
        factor: Drawn scale over declared scale; the loss is 1/factor times the declared (μ or ε).
    """

    declared: Mechanism
    factor: float

    @property
    def law(self) -> type[Noise]:
        """Returns the declared law."""
        return self.declared.law

    @property
    def words(self) -> str:
        """Returns what the mechanism says of itself."""
        return self.declared.words

    @property
    def latex(self) -> str:
        """Returns what the mechanism says of itself."""
        return self.declared.latex

    @property
    def spread(self) -> Expr:
        """Returns the declared spread."""
        return self.declared.spread

    @property
    def std(self) -> Expr:
        """Returns the declared standard deviation."""
        return self.declared.std

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns what the declared mechanism makes of it."""
        return self.declared.whiten(sensitivity)

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Returns what the declared mechanism makes of it."""
        return self.declared.whitened(difference)

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Returns the declared ρ."""
        return self.declared.zcdp(sensitivity)

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns the declared ε."""
        return self.declared.pure(sensitivity)

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns the declared μ²."""
        return self.declared.gdp_squared(sensitivity)

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Returns noise of the wrong scale."""
        honest = self.declared.at(values)
        return replace(honest, scale=honest.scale * self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlooked:
    """A statistic that weighs some steps more than it says, or understates its sensitivity.

    Attributes:
        honest: The statistic it says it is.
        stated: Stated sensitivity over the honest one.
        weights: The factor on the slice of a step, by step; 1 where none is given.
    """

    honest: Statistic[Trajectories]
    stated: Fraction = Fraction(1)
    weights: tuple[tuple[int, float], ...] = ()

    @property
    def name(self) -> str:
        """Returns the honest name."""
        return self.honest.name

    @property
    def latex(self) -> str:
        """Returns the honest formula."""
        return self.honest.latex

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters."""
        return self.honest.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns the honest preconditions."""
        return self.honest.preconditions

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns what is charged."""
        true = self.honest.sensitivity(relation)
        return replace(true, l1=true.l1 * self.stated, l2=true.l2 * self.stated, linf=true.linf * self.stated)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns the honest shape."""
        return self.honest.shape(values)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the statistic with its wrong weights."""
        if step is None:
            return np.stack([self.compute(data, step=h) for h in range(data.horizon)])
        return self.honest.compute(data, step=step) * dict(self.weights).get(step, 1.0)

    def difference(self, pair: Pair) -> SparseDifference:
        """Returns the true change, wrong weights included."""
        honest = self.honest.difference(pair)
        user = pair[0] if pair[0] is not None else pair[1]
        assert user is not None
        slice_size = self.honest.compute(user, step=0).size
        factors = [dict(self.weights).get(int(cell) // slice_size, 1.0) for cell in honest.cells]
        return SparseDifference(cells=honest.cells, change=honest.change * np.array(factors))


def rescaled_noise(declaration: Declaration, factor: float) -> Declaration:
    """Returns the declaration whose releases draw `factor` times the declared noise; true μ or ε: 1/factor times."""
    return _each(declaration, lambda r: replace(r, mechanism=Rescaled(declared=r.mechanism, factor=factor)))


def short_sensitivity(declaration: Declaration, factor: Exact) -> Declaration:
    """Returns the declaration that charges `factor` times the true sensitivity; true μ or ε: 1/factor times charged."""
    stated = exact(factor)
    return _each(declaration, lambda r: replace(r, statistic=Overlooked(honest=r.statistic, stated=stated)))


def std_for_variance(declaration: Declaration) -> Declaration:
    """Returns the declaration whose variance is what ought to be the std; true ρ: σ times the claimed.

    Raises:
        TypeError: A release is not Gaussian.
    """

    def mistaken(release: Release) -> Release:
        if not isinstance(release.mechanism, Gaussian):
            raise TypeError(f"expected Gaussian releases, got {release.mechanism.words}")
        return replace(release, mechanism=Gaussian(variance=sqrt(release.mechanism.variance)))

    return _each(declaration, mistaken)


def counted_twice(declaration: Declaration, release: str = "visits") -> Declaration:
    """Returns the declaration in which one statistic counts every user's first step twice.

    True μ² of that release under replacement: (2H + 6)/(2H) times the charged; true ε: (2H + 2)/(2H) times.
    """

    def mistaken(given: Release) -> Release:
        if given.name != release:
            return given
        return replace(given, statistic=Overlooked(honest=given.statistic, weights=((0, 2.0),)))

    return _each(declaration, mistaken)


def _each(declaration: Declaration, change: Callable[[Release], Release]) -> Declaration:
    return replace(declaration, releases=tuple(change(release) for release in declaration.releases))
