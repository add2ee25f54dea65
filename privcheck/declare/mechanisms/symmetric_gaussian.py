"""Gaussian noise that keeps a symmetric matrix symmetric: GOE, or one variance on and above the diagonal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from privcheck.declare.mechanisms.base import Array, Charge, Noise, Symmetry, positive_scale
from privcheck.declare.mechanisms.gaussian import Gaussian, GaussianNoise
from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.parameters import number, one_of
from privcheck.terms.symbols import Exact, Expr, sqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricGaussianNoise(GaussianNoise):
    """Gaussian noise with symmetric matrices in the last two axes, independent on and above the diagonal.

    Attributes:
        kind: "goe": standard deviation `scale` off the diagonal and √2·`scale` on it; "upper": `scale` everywhere.
    """

    kind: Literal["goe", "upper"]

    @property
    def symmetric(self) -> Symmetry:
        """The kind."""
        return self.kind

    def coordinates(self) -> Noise:
        """Gaussian noise of the entries on and above the diagonal."""
        return GaussianNoise(scale=self.scale)

    @classmethod
    def of(cls, cost: Charge) -> Noise:
        """Gaussian noise of a charge."""
        return GaussianNoise(scale=cost.scale)

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw noise of the shape.

        Raises:
            ParameterError: The last two axes are not square matrices.
        """
        if isinstance(shape, int) or len(shape) < 2 or shape[-1] != shape[-2]:
            raise ParameterError(f"expected square matrices for symmetric noise, got shape {shape}", given=shape)
        rows, columns = np.triu_indices(shape[-1])
        drawn = self.coordinates().draw(rng, (*shape[:-2], rows.size))
        if self.kind == "goe":
            drawn[..., rows == columns] *= math.sqrt(2)
        noise = np.empty(shape)
        noise[..., rows, columns] = drawn
        noise[..., columns, rows] = drawn
        return noise


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricGaussian:
    """Symmetric matrix of Gaussian noise with independent entries on and above the diagonal.

    Attributes:
        variance: v, the exact variance of the entries above the diagonal.
        kind: "goe": the diagonal has variance 2v, as (Z + Zᵀ)/√2 with Z of variance v; "upper": it has v.
    """

    variance: Expr
    kind: Literal["goe", "upper"]

    law = SymmetricGaussianNoise  # a ClassVar is not the protocol's property to every type checker

    def __init__(self, *, variance: Exact | Expr, kind: Literal["goe", "upper"]) -> None:
        object.__setattr__(self, "variance", number("variance, of SymmetricGaussian", variance))
        one_of("kind, of SymmetricGaussian", kind, ("goe", "upper"))
        object.__setattr__(self, "kind", kind)

    @property
    def words(self) -> str:
        """The mechanism in words with its spread."""
        diagonal = f"{(2 * self.variance).simplified()} on it" if self.kind == "goe" else "the same on it"
        return f"symmetric Gaussian matrix, variance {self.variance} above the diagonal, {diagonal}"

    @property
    def latex(self) -> str:
        """Law of the noise as a formula."""
        return rf"\mathrm{{{self.kind.upper()}}}\left({self.variance.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """Variance above the diagonal."""
        return self.variance

    def with_spread(self, spread: Expr) -> SymmetricGaussian:
        """Copy with another variance."""
        return replace(self, variance=spread)

    @property
    def std(self) -> Expr:
        """Standard deviation of an entry above the diagonal."""
        return sqrt(self.variance)

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Return ‖D‖_F/√2 for GOE noise, where it is exact, and ‖D‖_F for "upper", attained by diagonal D.

        Lemma symmetric-noise: A change D costs ‖D‖_F²/2v of μ² under GOE noise, of variance v above the diagonal and 2v
        on it, and at most ‖D‖_F²/v, attained by diagonal D, under variance v on and above it. Proof: D_ij² over v above
        the diagonal and D_ii² over 2v on it sum to ‖D‖_F²/2v; Σ_{i≤j} D_ij²/v ≤ ‖D‖_F²/v.
        """
        return replace(sensitivity, l2=sensitivity.l2 / sqrt(2)) if self.kind == "goe" else sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Change on and above the diagonal; for GOE noise the diagonal is in units of √2.

        Raises:
            DeclarationError: The change is not of a symmetric matrix.
        """
        if difference.mirrored is None:
            raise DeclarationError("a symmetric Gaussian matrix protects symmetric matrices; this statistic is not one")
        scale = np.where(difference.mirrored | (self.kind == "upper"), 1.0, np.sqrt(0.5))
        return replace(difference, change=difference.change * scale, mirrored=None)

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Δ²/2v in whitened coordinates: ‖D‖_F²/4v for GOE noise (the Gaussian mechanism's ρ)."""
        return Gaussian(variance=self.variance).zcdp(sensitivity)

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Return None: Gaussian noise is not ε-DP for any ε."""
        return None

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Δ²/v in whitened coordinates."""
        return Gaussian(variance=self.variance).gdp_squared(sensitivity)

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Symmetric Gaussian noise with its standard deviation rounded up."""
        return SymmetricGaussianNoise(scale=positive_scale(self.std, values), kind=self.kind)
