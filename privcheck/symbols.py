"""Exact numbers and the field's symbols; the only importer of SymPy.

An `Expr` is an immutable exact expression in named parameters. It is built from integers, fractions, decimal strings
and the symbols below with ordinary operators; a float is refused, because 0.1 is not a tenth. SymPy has no type
information and its `sympify` evaluates strings, so nothing outside this file touches it and no string is ever parsed
by it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import sympy
from sympy.core.evalf import PrecisionExhausted
from sympy.printing.mathml import mathml as _mathml

from privcheck.errors import InexactNumberError, ParameterError

Exact = int | Fraction | str
Rounding = Literal["nearest", "up", "down"]

_DIGITS = 60  # working precision of the bridge to floats, which then rounds once, in the direction that is asked for
_SLACK = Fraction(1, 10 ** (_DIGITS - 5))  # relative; covers what `_DIGITS` digits of an irrational number leave out
_CANCELLED = 2000  # digits that may cancel before they are reached
_POWER = re.compile(r"[eE]([+-]?[0-9]+)")
_LARGEST_POWER = 5000  # of ten in a decimal string (a float ends at 308): 1e999999999 would fill the memory
_BEYOND = 2000  # binary exponents outside ± this are out of a float's range whatever the digits


def exact(value: object) -> Fraction:
    """Returns a number exactly: integers, fractions, `"0.5"`, `"1/2"`, `"1e-5"`.

    Args:
        value: An int, a Fraction or a string. Integral NumPy scalars count as ints.

    Raises:
        InexactNumberError: A float was given; the message shows the string to write instead.
        ParameterError: The string is not a number.

    >>> exact("0.1")
    Fraction(1, 10)
    """
    if isinstance(value, bool) or value is None:
        raise ParameterError(f"expected a number, got {value!r}", given=value)
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, float):
        message = (
            f"a float ({value!r}) where an exact number is needed: write it as a string, {str(value)!r}, or as a "
            "Fraction; binary floats are not the decimals they look like"
        )
        raise InexactNumberError(message, given=value)
    raise ParameterError(f"expected an exact number, got {value!r} of type {type(value).__name__}", given=value)


def _from_text(text: str) -> Fraction:
    power = _POWER.search(text.replace("_", ""))
    if power is None or (len(power[1]) < 8 and abs(int(power[1])) <= _LARGEST_POWER):
        try:
            return Fraction(text.strip())
        except (ValueError, ZeroDivisionError):
            pass
    raise ParameterError(f"expected an exact number such as 20, 1/2, 0.5 or 1e-5, got {text[:60]!r}", given=text)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expr:
    """An exact expression in the declaration's parameters.

    `==` and `hash` are structural; ask `same` or `at_most` whether two expressions are equal or ordered for all
    parameter values.
    """

    node: Any

    def __add__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node + _node(other))

    def __sub__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node - _node(other))

    def __mul__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node * _node(other))

    def __truediv__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node / _node(other))

    def __pow__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node ** _node(other))

    def __radd__(self, other: Exact) -> Expr:
        return Expr(_node(other) + self.node)

    def __rsub__(self, other: Exact) -> Expr:
        return Expr(_node(other) - self.node)

    def __rmul__(self, other: Exact) -> Expr:
        return Expr(_node(other) * self.node)

    def __rtruediv__(self, other: Exact) -> Expr:
        return Expr(_node(other) / self.node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and bool(self.node == other.node)

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __str__(self) -> str:
        return str(self.node)

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the names of the parameters in the expression."""
        return frozenset(s.name for s in self.node.free_symbols)

    def latex(self) -> str:
        """Returns the expression in LaTeX."""
        return str(sympy.latex(self.node))

    def mathml(self) -> str:
        """Returns the expression as presentation MathML, which browsers render without a network."""
        return str(_mathml(self.node, printer="presentation"))

    def simplified(self) -> Expr:
        """Returns an equal expression in simplest form."""
        return Expr(_simplify(self.node))

    def at(self, values: Mapping[str, Fraction]) -> Expr:
        """Returns the expression with parameters replaced by exact numbers.

        Raises:
            ParameterError: A parameter of the expression is not among `values`.
        """
        missing = sorted(self.symbols - values.keys())
        if missing:
            raise ParameterError(f"no value given for {', '.join(missing)} in {self}", name=missing[0])
        return Expr(self.node.xreplace({s: _rational(values[s.name]) for s in self.node.free_symbols}))

    def rational(self, values: Mapping[str, Fraction] | None = None) -> Fraction | None:
        """Returns the value as a fraction, or None where it is irrational."""
        node = self.at(values or {}).node
        if not node.is_Rational:
            node = sympy.nsimplify(node, rational=False) if node.is_Float else sympy.simplify(node)
        return Fraction(int(node.p), int(node.q)) if node.is_Rational else None

    def number(self, values: Mapping[str, Fraction] | None = None, *, rounding: Rounding = "nearest") -> float:
        """Returns the value as a float, rounded in the direction that is safe where it is used.

        Args:
            values: The parameters.
            rounding: "up" never returns less than the exact value, "down" never more.

        Raises:
            ParameterError: A parameter is missing, or the value is not a real number.
        """
        node = self.at(values or {}).node
        if node.is_Rational:
            return to_float(Fraction(int(node.p), int(node.q)), rounding=rounding)
        if node == sympy.oo:
            return math.inf
        try:
            value = node.evalf(_DIGITS, maxn=_CANCELLED, strict=True)
        except PrecisionExhausted:  # it may be 0, or so near that nothing is known of its digits
            simple = _simplify(node)
            if simple.is_Rational:
                return to_float(Fraction(int(simple.p), int(simple.q)), rounding=rounding)
            raise ParameterError(f"{self}{_where(values)} is too close to 0 to be rounded safely: {node}") from None
        if not value.is_Float:
            raise ParameterError(f"{self}{_where(values)} is not a real number: {node}")
        near = _from_float(value)
        slack = {"nearest": 0, "up": 1, "down": -1}[rounding] * abs(near) * _SLACK
        return to_float(near + slack, rounding=rounding)


def _where(values: Mapping[str, Fraction] | None) -> str:
    return " at " + ", ".join(f"{name} = {value}" for name, value in values.items()) if values else ""


def _from_float(value: Any) -> Fraction:
    sign, mantissa, power, bits = value._mpf_  # (−1)^sign · mantissa · 2^power
    power = min(max(int(power), -_BEYOND - int(bits)), _BEYOND)
    size = Fraction(int(mantissa)) * Fraction(2) ** power
    return -size if sign else size


def _rational(value: Fraction) -> Any:
    return sympy.Rational(value.numerator, value.denominator)


def _node(value: Expr | Exact) -> Any:
    return value.node if isinstance(value, Expr) else _rational(exact(value))


@functools.lru_cache(maxsize=4096)
def _simplify(node: Any) -> Any:
    return sympy.simplify(node)


def to_float(value: Fraction, *, rounding: Rounding) -> float:
    """Returns the nearest float, or the nearest one that is not below ("up") or not above ("down") the fraction.

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


def expression(value: Expr | Exact) -> Expr:
    """Returns the value as an expression; a float is refused."""
    return value if isinstance(value, Expr) else Expr(_node(value))


def sqrt(value: Expr | Exact) -> Expr:
    """Returns the exact square root."""
    return Expr(sympy.sqrt(_node(value)))


def log(value: Expr | Exact) -> Expr:
    """Returns the exact natural logarithm."""
    return Expr(sympy.log(_node(value)))


def exp(value: Expr | Exact) -> Expr:
    """Returns the exact exponential."""
    return Expr(sympy.exp(_node(value)))


def maximum(*values: Expr | Exact) -> Expr:
    """Returns the exact maximum."""
    return Expr(sympy.Max(*map(_node, values)))


class _BitLength(sympy.Function):  # type: ignore[misc] # SymPy has no types
    """The number of binary digits of ⌊x⌋, x ≥ 0: ⌊log₂ x⌋ + 1, and 0 for x < 1."""

    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, argument: Any) -> Any:
        if argument.is_Rational:
            if argument < 0:
                raise ParameterError(f"expected a number of leaves, at least 0, got {argument}", given=argument)
            return sympy.Integer(int(argument).bit_length())
        return None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"\left(\left\lfloor \log_2 {printer._print(self.args[0])} \right\rfloor + 1\right)"  # noqa: SLF001
        return text if exp is None else f"{text}^{{{exp}}}"


def tree_levels(leaves: Expr | Exact) -> Expr:
    """Returns ⌊log₂ T⌋ + 1: in so many complete nodes of a binary tree over T leaves a leaf lies at most; 0 for T = 0.

    >>> str(tree_levels(8)), str(tree_levels(7))
    ('4', '3')
    """
    return Expr(_BitLength(_node(leaves)))


def ceil_log2(value: Expr | Exact) -> Expr:
    """Returns ⌈log₂ x⌉ for a whole number x ≥ 1, exactly.

    >>> str(ceil_log2(8)), str(ceil_log2(9))
    ('3', '4')
    """
    return Expr(_BitLength(_node(value) - 1))


def sum_over(steps: Expr | Exact, term: Callable[[Expr], Expr]) -> Expr:
    """Returns Σ over h = 1, …, H of term(h), in closed form where SymPy has one.

    Args:
        steps: H.
        term: From h, a positive integer symbol, to the summand.

    >>> str(sum_over(H, lambda h: (H - h + 1) ** 2).at({"H": Fraction(3)}))
    '14'
    """
    h = sympy.Dummy("h", integer=True, positive=True)
    return Expr(sympy.factor(sympy.summation(term(Expr(h)).node, (h, 1, _node(steps)))))


def total(values: list[Expr]) -> Expr:
    """Returns the exact sum; 0 of an empty list."""
    return Expr(_simplify(sympy.Add(*(v.node for v in values))))


def at_most(left: Expr, right: Expr) -> bool | None:
    """Returns whether left ≤ right for all admissible parameters (True, False), or None where SymPy cannot decide.

    False means that it fails for at least some parameters, never "not found".
    """
    difference = _simplify(right.node - left.node)
    if difference.is_nonnegative:
        return True
    if difference.is_negative:
        return False
    ratio = _simplify(left.node / right.node) if right.node != 0 else sympy.nan
    if ratio.is_Rational and right.node.is_positive:
        return bool(ratio <= 1)
    return None


def same(left: Expr, right: Expr) -> bool | None:
    """Returns whether the two are equal for all admissible parameters, or None where SymPy cannot decide."""
    difference = _simplify(left.node - right.node)
    if difference.is_zero:
        return True
    return False if difference.is_zero is False or difference.is_Number else None


def _count(name: str) -> Expr:
    return Expr(sympy.Symbol(name, integer=True, positive=True))


def _positive(name: str) -> Expr:
    return Expr(sympy.Symbol(name, positive=True))


COUNTS = ("S", "A", "H", "K", "n", "d")
S, A, H, K, n, d = (_count(name) for name in COUNTS)
rho, epsilon, delta, beta, failure = (_positive(name) for name in ("rho", "epsilon", "delta", "beta", "failure"))
