"""Expressions as data: nested lists that another program reads without SymPy (`docs/certificates.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import sympy

from privcheck.errors import ParameterError
from privcheck.terms.symbols.expressions import Expr
from privcheck.terms.symbols.functions import _BitLength

_NAMED: Final = {
    sympy.Max: "max", sympy.Min: "min", sympy.exp: "exp", sympy.log: "log", _BitLength: "bit_length",
}  # fmt: skip
_LARGEST_POWER: Final = 64

Prefix = int | str | list[Any]


def prefix(of: Expr, values: Mapping[str, Fraction] | None = None) -> Prefix:
    """Write an expression in prefix notation: a number "p/q", a symbol's name, or [operation, argument, …].

    The operations are +, -, *, /, ^ with a multiple of ½ as exponent, max, min, exp, log and bit_length. Whether the
    step h is the last, H (`before`), is written as 1 − min(1, H − h), the same for every h in 1..H.

    Args:
        of: The expression.
        values: Parameters at which a part without a form is written as its number; None to refuse it.

    Raises:
        ParameterError: A function in it has no such form: rounding, a sum over steps, a computed value.

    >>> from privcheck.terms.symbols import H, rho
    >>> prefix(2 * H / rho)
    ['/', ['*', '2', 'H'], 'rho']
    """
    return _write(of.node, values)


Values = Mapping[str, Fraction] | None


def _write(node: Any, values: Values) -> Prefix:
    if node.is_Rational:
        return f"{node.p}" if node.q == 1 else f"{node.p}/{node.q}"
    if node.is_Symbol:
        return str(node.name)
    if node.is_Add:
        return ["+", *(_write(one, values) for one in node.as_ordered_terms())]
    if node.is_Mul or _is_inverse(node):
        factors = node.as_ordered_factors() if node.is_Mul else [node]
        below = [1 / factor for factor in factors if _is_inverse(factor)]
        top = _product([factor for factor in factors if not _is_inverse(factor)], values)
        return ["/", top, _product(below, values)] if below else top
    return _write_function(node, values)


def _write_function(node: Any, values: Values) -> Prefix:
    if node == sympy.E:
        return ["exp", "1"]
    if node.is_Pow and (2 * node.exp).is_Integer and abs(node.exp) <= _LARGEST_POWER:
        return ["^", _write(node.base, values), _write(node.exp, values)]
    if isinstance(node, sympy.KroneckerDelta) and node.args[1].name == "h":
        return ["-", "1", ["min", "1", ["-", _write(node.args[0], values), "h"]]]
    if type(node) in _NAMED:
        return [_NAMED[type(node)], *sorted((_write(one, values) for one in node.args), key=str)]
    if values is not None:
        if isinstance(node, sympy.Piecewise):
            at = {symbol: values[symbol.name] for symbol in node.free_symbols if symbol.name in values}
            for then, when in node.args:
                if when.subs(at) is sympy.true:
                    return _write(then, values)
        known = Expr(node).rational(values)
        if known is not None:
            return str(known)
    raise ParameterError(f"{node} has no form in a certificate: it contains {type(node).__name__}", given=node)


def _is_inverse(factor: Any) -> bool:
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp < 0)


def _product(factors: list[Any], values: Values) -> Prefix:
    written = [_write(factor, values) for factor in factors]
    return "1" if not written else written[0] if len(written) == 1 else ["*", *written]
