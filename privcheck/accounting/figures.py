"""Figures about a privacy curve, with their method and direction of error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.mass import MassError
from privcheck.accounting.engine.methods import Errs
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Number about a privacy curve, with its method and direction of error.

    Attributes:
        value: The tight value, rounded up: never below the truth where it is "exact" (up to rounding) or "upper",
            within 1e-9 or so where it is an "estimate".
        method: Method that gave the value.
        direction: Direction of the error of `value`: "exact", "estimate" or "upper"; "lower" for an attacker's error.
        reason: Reason why the value is ∞, if it is; or the bound behind it, where an event is bounded rather than
            known.
        relation: Relation of the neighbours, where an event of the curve names one; None where the caller applied one.
    """

    value: float
    method: str
    direction: Errs
    reason: str = ""
    relation: RelationName | None = None  # of a number that no event is behind, as of gdp_epsilon, there is none
    _certify: Callable[[], float] = field(repr=False, compare=False)
    _below: bool = field(default=False, repr=False)  # bounded from below: an attacker's error
    _refute: Callable[[], float] | None = field(default=None, repr=False, compare=False)  # the lower of both bounds

    def __post_init__(self) -> None:
        if math.isnan(self.value):
            raise MassError(f"{self.method}: a figure that is not a number; please report it with the parameters")

    @property
    def upper(self) -> float:
        """Certified bound, never below the truth or `value`; computed on first use."""
        if self._below:
            message = "expected a figure with an upper bound; this one has a lower bound"
            raise ParameterError(f"{message}: ask for its lower", name="upper", given=self.value)
        return max(self._certify(), self.value)

    @property
    def bounded_below(self) -> bool:
        """Whether `lower` is known."""
        return self._below or self._refute is not None

    @property
    def lower(self) -> float:
        """Certified bound, never above the truth or `value`; computed on first use, where one is known.

        It is known of figures that are bounded from below, and of ε and δ of compositions whose laws are those of some
        mechanism's outputs: Laplace, randomised response, samples with Gaussian noise, random allocations, beside
        Gaussians.
        """
        if self._below:
            return min(self._certify(), self.value)
        if self._refute is None:
            message = "expected a figure with a lower bound; this one has an upper bound"
            raise ParameterError(f"{message}: ask for its upper", name="lower", given=self.value)
        return min(self._refute(), self.value)

    def __float__(self) -> float:
        """Return the certified bound: a bare number no longer states its direction of error, so it has to be safe."""
        return self.lower if self._below else self.upper


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figures:
    """Many numbers about one curve.

    Attributes:
        values: Tight values, in the shape of the argument.
        method: Methods that gave the values.
        direction: Direction of the errors: that of the worst value.
        methods: Method of each value, in the same shape.
        directions: Direction of each error, in the same shape.
        relation: Relation of the neighbours, where an event of the curve names one; None where the caller applied one.
    """

    values: NDArray[np.float64]
    method: str
    direction: Errs
    methods: NDArray[np.str_] = field(repr=False)
    directions: NDArray[np.str_] = field(repr=False)
    relation: RelationName | None
