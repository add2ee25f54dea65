"""Encoders of matrix mechanisms: C in A·G ≈ B(C·G + Z), one column per step: the change by one contribution."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.parameters import Condition, function, number, several, text
from privcheck.terms.symbols import Exact, Expr
from privcheck.terms.symbols.functions import computed

if TYPE_CHECKING:
    from privcheck.accounting.engine.encoders import EncoderSensitivity, Order

MOST_STEPS: Final = 5_000  # as many as the accountant's matrix events take
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A matrix C computed from whole numbers.

    Attributes:
        words: Description of the matrix.
        of: Function from the arguments' values to C, (rows, steps), finite; it must be deterministic.
        arguments: Number of steps, of bands, …; empty for a matrix that depends on no parameter.

    Raises:
        DeclarationError: A field has the wrong type.
    """

    words: str
    of: Callable[..., ArrayLike]
    arguments: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        text("words, of Encoder", self.words)
        function("of, of Encoder", self.of, "write of=lambda steps: …, a matrix with a column a step")
        if self.of is None:
            raise DeclarationError("of, of Encoder: expected a function, got None; write of=lambda steps: …")
        several("arguments, of Encoder", self.arguments, Expr)
        object.__setattr__(self, "arguments", tuple(self.arguments))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions on its arguments, which are counts."""
        return tuple(Condition(what=f"an argument of the {self.words}", of=a, domain="count") for a in self.arguments)

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that its arguments depend on."""
        return frozenset[str]().union(*(argument.symbols for argument in self.arguments))

    def matrix(self, values: Mapping[str, Fraction]) -> Matrix:
        """Compute C.

        Raises:
            ParameterError: The matrix cannot be computed, or is not finite with 1 to 5 000 columns.
        """
        return _matrix(self.of, tuple(int(argument.number(values)) for argument in self.arguments))

    @property
    def rows(self) -> Expr:
        """Number of rows."""
        return computed("rows", _count_rows(self.of), *self.arguments)

    def squares(self, participations: Expr, separation: Expr, order: Order) -> Expr:
        """Square of its sensitivity for contributions of norm 1; exact, or rounded up."""
        return computed("encoder", _squares(self.of, order), participations, separation, *self.arguments)

    def sensitivity(
        self, participations: Expr, separation: Expr, order: Order, values: Mapping[str, Fraction]
    ) -> EncoderSensitivity:
        """Sensitivity for contributions of norm 1, with the steps that attain it."""
        k, apart, *arguments = (int(of.number(values)) for of in (participations, separation, *self.arguments))
        return _sensitivity(self.of, order, k, apart, tuple(arguments))


def prefix_sums(steps: Exact | Expr) -> Encoder:
    """C = A, the matrix of all prefix sums: independent noise on every one of them."""
    return Encoder(words="encoder of prefix sums", of=_ones, arguments=(number("steps", steps),))


def square_root(steps: Exact | Expr) -> Encoder:
    """C = A^½ for the matrix A of prefix sums: Toeplitz, with coefficients binom(2i, i)/4^i.

    The factorisation of Fichtenberger, Henzinger & Upadhyay (2023) and Henzinger, Upadhyay & Upadhyay (2023), B = C.
    """
    return Encoder(words="square root of prefix sums", of=_root, arguments=(number("steps", steps),))


def banded_square_root(steps: Exact | Expr, bands: Exact | Expr) -> Encoder:
    """The encoder `square_root` truncated to `bands` bands (Kalinin & Lampert 2024)."""
    arguments = (number("steps", steps), number("bands", bands))
    return Encoder(words=f"square root of prefix sums with {arguments[1]} bands", of=_banded_root, arguments=arguments)


def binary_tree(steps: Exact | Expr) -> Encoder:
    """Complete nodes of a binary tree over the steps, one row each, level by level."""
    return Encoder(words="binary tree", of=_nodes, arguments=(number("steps", steps),))


def _ones(steps: int) -> Matrix:
    return np.tril(np.ones((steps, steps)))


def _root(steps: int) -> Matrix:
    return _banded_root(steps, steps)


def _banded_root(steps: int, bands: int) -> Matrix:
    i = np.arange(1, steps)
    coefficients = np.concatenate([[1.0], np.cumprod((2 * i - 1) / (2 * i))])
    coefficients[bands:] = 0.0
    below = np.subtract.outer(np.arange(steps), np.arange(steps))
    matrix: Matrix = np.where(below >= 0, coefficients[np.maximum(below, 0)], 0.0)
    return matrix


def _nodes(steps: int) -> Matrix:
    levels = []
    for level in range(steps.bit_length()):
        nodes = steps >> level
        rows = np.zeros((nodes, steps))
        columns = np.arange(nodes << level)
        rows[columns >> level, columns] = 1.0
        levels.append(rows)
    return np.concatenate(levels)


@functools.lru_cache(maxsize=16)
def _matrix(of: Callable[..., ArrayLike], arguments: tuple[int, ...]) -> Matrix:
    shown = ", ".join(map(str, arguments))
    if any(argument > MOST_STEPS for argument in arguments):
        message = f"an encoder of ({shown}): expected up to {MOST_STEPS} steps"
        raise ParameterError(f"{message}; declare fewer", name="steps", given=shown)
    try:
        matrix = np.array(of(*arguments), dtype=np.float64)
    except Exception as error:  # the author's own code
        message = f"the encoder of ({shown}) raised {type(error).__name__}: {error}"
        raise ParameterError(f"{message}; expected a matrix with a column a step", name="encoder") from error
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.shape[1] > MOST_STEPS or not np.isfinite(matrix).all():
        message = f"the encoder of ({shown}): expected a finite matrix with 1 to {MOST_STEPS} columns"
        raise ParameterError(f"{message}, got shape {matrix.shape}", name="encoder", given=matrix.shape)
    matrix.flags.writeable = False
    return matrix


@functools.lru_cache(maxsize=256)
def _sensitivity(
    of: Callable[..., ArrayLike], order: Order, participations: int, separation: int, arguments: tuple[int, ...]
) -> EncoderSensitivity:
    from privcheck.accounting.events import matrix_sensitivity

    matrix = _matrix(of, arguments)
    return matrix_sensitivity(matrix, participations=participations, separation=separation, order=order)


@functools.lru_cache(maxsize=256)
def _count_rows(of: Callable[..., ArrayLike]) -> Callable[..., int]:
    def rows(*arguments: int) -> int:
        return int(_matrix(of, arguments).shape[0])

    return rows


@functools.lru_cache(maxsize=256)
def _squares(of: Callable[..., ArrayLike], order: Order) -> Callable[..., Fraction]:
    def squares(participations: int, separation: int, *arguments: int) -> Fraction:
        """Exact square of the sensitivity, which is rounded up."""
        return Fraction(_sensitivity(of, order, participations, separation, arguments).value) ** 2

    return squares
