"""Input numbers of the numeric accountant: any kind of real number in, a checked float out.

An int, a float, a NumPy scalar, a Fraction and a decimal string of the same value give the same float, so the figures
do not depend on how a caller wrote a parameter.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privcheck.errors import ParameterError
from privcheck.terms.symbols import exact, to_float

Real = int | float | Fraction | str | np.integer | np.floating


def real(name: str, value: object, *, least: float = 0.0, strict: bool = True, most: float = math.inf) -> float:
    """Convert a number to a checked, finite float.

    Args:
        name: Name of the parameter, for the message.
        value: An int, float, Fraction, NumPy scalar or decimal string.
        least: Lower end of the range.
        strict: Whether the lower end is excluded.
        most: Upper end, included.

    Raises:
        ParameterError: The value is not a number, not finite, out of range, or not 0 but below the smallest float.
    """
    if type(value) is float and least < value <= most and value < math.inf:
        return value
    wanted = f"expected {name} {'above' if strict else 'at least'} {least:g}"
    wanted += f" and at most {most:g}" if math.isfinite(most) else " and finite"
    try:
        number = float(value) if isinstance(value, (float, np.floating)) else to_float(exact(value), rounding="nearest")
    except ParameterError:
        known = isinstance(value, int | float | str | Fraction)
        how = "" if known else f", of type {type(value).__name__}: give a float, a Fraction or a decimal string"
        raise ParameterError(f"{wanted}, got {value!r:.100}{how}", name=name, given=value) from None
    if not math.isfinite(number) or not least <= number <= most or (strict and number == least):
        raise ParameterError(f"{wanted}, got {value!r}", name=name, given=value)
    if number == 0 and _is_not_zero(value):  # as a float it would cost nothing
        message = f"expected {name} as 0 or a number from 1e-300 on, got {value!r}: no float is so small"
        raise ParameterError(f"{message}; round it up to 1e-300", name=name, given=value)
    return number


def _is_not_zero(value: object) -> bool:
    return bool(value != 0) if isinstance(value, (float, np.floating)) else exact(value) != 0


def decimal(value: float) -> Fraction:
    """Shortest decimal that names a float, exactly."""
    return Fraction(*Decimal(repr(float(value))).as_integer_ratio())


def exactly(name: str, value: object) -> Fraction:
    """Convert a number of at least 0 exactly; a float is the decimal it prints as.

    Args:
        name: Name of the parameter, for the message.
        value: An int, float, Fraction, NumPy scalar or decimal string; a NumPy number that no float equals is taken
            exactly.

    Raises:
        ParameterError: The value is not a number, not finite, or negative.
    """
    if isinstance(value, (float, np.floating)):
        near = real(name, value, strict=False)
        return decimal(near) if near == value else Fraction(*value.as_integer_ratio())
    try:
        number = exact(value)
    except ParameterError:
        number = Fraction(-1)
    if number < 0 or math.isinf(to_float(number, rounding="nearest")):
        raise ParameterError(f"expected {name} at least 0 and finite, got {value!r}", name=name, given=value)
    return number


def whole(name: str, value: object, *, least: int = 1, most: int = 10**15) -> int:
    """Convert a number of integral value to a checked int; floats and strings are accepted.

    Args:
        name: Name of the parameter, for the message.
        value: A number of integral value.
        least: Lower end, included.
        most: Upper end, included.

    Raises:
        ParameterError: The value is not an integer, or out of range.
    """
    message = f"expected {name} as an integer from {least} to {most:.0e}, got {value!r}"
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value) or value != int(value):
            raise ParameterError(message, name=name, given=value)
        value = int(value)
    try:
        number = exact(value)
    except ParameterError:
        raise ParameterError(message, name=name, given=value) from None
    if number.denominator != 1 or not least <= number <= most:
        raise ParameterError(message, name=name, given=value)
    return int(number)


def reals(name: str, values: ArrayLike, *, below: float) -> NDArray[np.float64]:
    """Convert an array to floats in [0, below).

    Raises:
        ParameterError: A value is out of range or not a number.
    """
    try:
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"expected {name} as an array of numbers, got {values!r}", name=name, given=values
        ) from None
    bad = ~((given >= 0) & (given < below))
    if bad.any():
        message = f"expected {name} in [0, {below:g}), got {given[bad].ravel()[0]!r}"
        raise ParameterError(message, name=name, given=float(given[bad].ravel()[0]))
    return given


def probability(name: str, value: object) -> Fraction:
    """Convert a number in [0, 1) exactly; others are refused."""
    amount = exactly(name, value)
    if not amount < 1:
        raise ParameterError(f"expected {name} at least 0 and below 1, got {value!r}", name=name, given=value)
    return amount
