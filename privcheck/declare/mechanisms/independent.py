"""Independent noise of one law in every coordinate: shared base of the Gaussian and Laplace mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import ClassVar, Self

from privcheck.declare.mechanisms.base import Noise, positive_scale
from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.terms.parameters import number
from privcheck.terms.symbols import Exact, Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Mechanism with one field, its spread: the exact expression that its law's `symbol` denotes.

    A subclass defines `law`, the text of its spread (`title`, `formula`), its standard deviation and its price.
    """

    law = Noise  # a ClassVar is not the protocol's property to every type checker
    title: ClassVar[str]
    formula: ClassVar[str]

    @property
    def words(self) -> str:
        """The mechanism in words with its spread."""
        return f"{self.title} {self.spread}"

    @property
    def latex(self) -> str:
        """The noise's law as a formula."""
        return rf"{self.formula}{self.spread.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """The declared spread."""
        spread: Expr = getattr(self, fields(self)[0].name)
        return spread

    def with_spread(self, spread: Expr) -> Self:
        """Return the mechanism with another spread."""
        return replace(self, **{fields(self)[0].name: spread})

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Return the sensitivity unchanged: the noise is independent in every coordinate."""
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Return the change with every entry of a symmetric matrix as a coordinate."""
        return difference.every_entry()

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Return None: not on the Gaussian curve."""
        return None

    def _set_spread(self, given: Exact | Expr) -> None:
        (field,) = fields(self)
        object.__setattr__(self, field.name, number(f"{field.name}, of {type(self).__name__}", given))

    def _noise(self, scale: Expr, values: Mapping[str, Fraction]) -> Noise:
        return self.law(scale=positive_scale(scale, values))
