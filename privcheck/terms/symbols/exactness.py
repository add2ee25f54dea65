"""Exact numbers in, floats out in the safe direction: the bridge between fractions and floats."""

from __future__ import annotations

import math
import numbers
import re
from fractions import Fraction
from typing import Literal

from privcheck.errors import InexactNumberError, ParameterError

Exact = int | Fraction | str
Rounding = Literal["nearest", "up", "down"]

_POWER = re.compile(r"[eE]([+-]?[0-9]+)")
_LARGEST_POWER = 5000  # of ten in a decimal string (a float ends at 308): 1e999999999 would fill the memory


_GIVE = "give an int, a Fraction or a text such as '0.5'"


def exact(value: object) -> Fraction:
    """Convert a number exactly: integers, fractions, `"0.5"`, `"1/2"`, `"1e-5"`.

    Args:
        value: An int, a Fraction or a string; integers of NumPy and rational numbers of SymPy.

    Raises:
        InexactNumberError: The value is a float; the message shows the string to write instead, if the float is finite.
        ParameterError: The value is not a number of these kinds, or the string is not a number.

    >>> exact("0.1")
    Fraction(1, 10)
    """
    if isinstance(value, bool) or value is None:
        raise ParameterError(f"expected a number, got {value!r}; {_GIVE}", given=value)
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, numbers.Rational):  # NumPy's integers, SymPy's integers and rationals
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float) and not math.isfinite(value):
        raise InexactNumberError(f"expected a finite number, got {value!r}; {_GIVE}", given=value)
    if isinstance(value, float):
        message = (
            f"a float ({value!r}) where an exact number is needed: write it as a string, {str(value)!r}, or as a "
            "Fraction; binary floats are not the decimals they look like"
        )
        raise InexactNumberError(message, given=value)
    message = f"expected an exact number, got {value!r:.100} of type {type(value).__name__}"
    raise ParameterError(f"{message}; {_GIVE}", given=value)


def _from_text(text: str) -> Fraction:
    power = _POWER.search(text.replace("_", ""))
    if power is None or (len(power[1]) < 8 and abs(int(power[1])) <= _LARGEST_POWER):
        try:
            return Fraction(text.strip())
        except (ValueError, ZeroDivisionError):
            pass
    message = f"expected an exact number such as 20, 1/2, 0.5 or 1e-5, got {text[:60]!r}"
    raise ParameterError(message, given=text)


def to_float(value: Fraction, *, rounding: Rounding) -> float:
    """Nearest float, or the nearest float not below ("up") or not above ("down") the fraction.

    >>> to_float(Fraction(1, 3), rounding="down") < Fraction(1, 3) < to_float(Fraction(1, 3), rounding="up")
    True
    """
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    if rounding == "nearest" or (math.isfinite(nearest) and Fraction(nearest) == value):
        return nearest
    above = nearest == math.inf or (nearest != -math.inf and Fraction(nearest) > value)
    if rounding == "up":
        return nearest if above else math.nextafter(nearest, math.inf)
    return math.nextafter(nearest, -math.inf) if above else nearest
