"""Does an expression stay in a domain (whole, positive, …) for all values its parameters may take? Decided, or None."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import sympy

from privcheck.errors import ParameterError
from privcheck.symbols.expressions import Expr, simplify
from privcheck.symbols.functions import h

Domain = Literal["count", "whole", "positive", "nonnegative", "part of one"]
_FEW = 64  # steps that are looked at one by one


@dataclass(frozen=True, slots=True)
class Span:
    """The values of one parameter: whole numbers from `least` on, all positive numbers, or those in (0, 1)."""

    kind: Literal["count", "positive", "probability"]
    least: int = 1


def keeps(of: Expr, domain: Domain, spans: Mapping[str, Span], *, steps: Expr | None = None) -> bool | None:
    """Returns whether the expression is in the domain for all values of the parameters, or None where undecided.

    False means that it is outside for every value, or no real number at all.

    Args:
        of: An exact expression.
        domain: "count" (whole, at least 1), "whole" (at least 0), "positive", "nonnegative", "part of one" (in [0, 1)).
        spans: The values of every parameter.
        steps: H, where the expression is a bound on step `h` = 1, …, H.
    """
    used = tuple(sorted((name, span) for name, span in spans.items() if name in of.symbols | _names(steps)))
    return _keeps(of.node, domain, used, None if steps is None else steps.node)


def _names(steps: Expr | None) -> frozenset[str]:
    return frozenset() if steps is None else steps.symbols


@functools.lru_cache(maxsize=4096)
def _keeps(node: Any, domain: Domain, spans: tuple[tuple[str, Span], ...], steps: Any) -> bool | None:
    if node.has(sympy.Sum):
        return None
    if node.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) or node.is_extended_real is False:
        return False
    if steps is not None and steps.is_Integer and node.has(h.node):
        if not 1 <= steps <= _FEW:
            return None
        answers = [_keeps(node.subs(h.node, step), domain, spans, None) for step in range(1, int(steps) + 1)]
        return False if False in answers else True if all(answers) else None
    ranged = _find_range(node, dict(spans), steps)
    if ranged is None:
        return None
    return _within(simplify(ranged), domain)


def _find_range(node: Any, spans: Mapping[str, Span], steps: Any) -> Any:
    """Returns the node in symbols that take all positive values, or whole ones from 1 on; None where it cannot be."""
    if steps is not None and node.has(h.node):
        if not steps.is_Symbol:
            return None
        node = node.subs(steps, h.node + sympy.Dummy("later", integer=True, nonnegative=True))
    changes = {}
    for symbol in node.free_symbols - {h.node}:
        span = spans.get(symbol.name)
        if isinstance(symbol, sympy.Dummy):
            continue
        if span is None or not symbol.is_positive:
            return None
        if span.kind == "probability":  # (0, 1) is 1/(1 + t), t > 0
            changes[symbol] = 1 / (1 + sympy.Dummy(symbol.name, positive=True))
        elif span.kind == "count" and span.least > 1:
            changes[symbol] = sympy.Dummy(symbol.name, integer=True, positive=True) + span.least - 1
    return node.subs(changes, simultaneous=True) if changes else node


def _within(node: Any, domain: Domain) -> bool | None:  # noqa: PLR0911 - one return a rule
    sign, opposite = _sign(node), _sign(-node)
    if opposite == 1 or (opposite == 0 and domain in ("positive", "count") and node.is_zero):
        return False
    if domain == "positive":
        return True if sign == 1 else None
    if domain == "nonnegative":
        return True if sign is not None else None
    if domain == "part of one":
        below = _sign(1 - node)
        if below != 1 and _sign(node - 1) is not None:
            return False
        return True if sign is not None and below == 1 else None
    if node.is_integer is False:
        return False
    enough = sign == 1 if domain == "count" else sign is not None
    return True if node.is_integer and enough else None


def _sign(node: Any) -> Literal[0, 1] | None:  # noqa: PLR0911 - one return a rule
    """Returns 1 where the node is proved to be above 0, 0 where it is proved to be at least 0, else None."""
    if node.is_positive:
        return 1
    deltas = list(node.atoms(sympy.KroneckerDelta))
    if deltas:  # it is 0 or 1
        return _least([_sign(simplify(node.subs(deltas[0], value))) for value in (0, 1)])
    if isinstance(node, sympy.Max):
        signs = [s for s in map(_sign, node.args) if s is not None]
        return max(signs, default=None)
    if isinstance(node, sympy.Min):
        return _least([_sign(part) for part in node.args])
    if isinstance(node, sympy.log):
        inside = node.args[0]
        if isinstance(inside, sympy.Max):
            return _sign(sympy.Max(*(sympy.log(part) for part in inside.args), evaluate=False))
        return _sign(simplify(inside - 1))
    if isinstance(node, sympy.ceiling):
        return _sign(node.args[0])
    if isinstance(node, sympy.Pow) and node.exp.is_real and (base := _sign(node.base)) is not None:
        return 1 if base == 1 else 0 if node.exp.is_nonnegative else None
    if isinstance(node, sympy.Mul) and (parts := _least([_sign(part) for part in node.args])) is not None:
        return parts
    if (whole := _coefficients(node)) is not None:
        return whole
    if isinstance(node, sympy.Add):
        terms = [_sign(part) for part in node.args]
        return None if None in terms else max(s for s in terms if s is not None)
    return 0 if node.is_nonnegative else None


def _least(signs: list[Literal[0, 1] | None]) -> Literal[0, 1] | None:
    return None if not signs or None in signs else min(s for s in signs if s is not None)


def _coefficients(node: Any) -> Literal[0, 1] | None:
    """Returns the sign of a quotient of polynomials none of whose coefficients is negative.

    With every count n written as 1 + m, m ≥ 0, and everything else positive: at least 0; above 0 if that is so where
    every m is 0, or if no coefficient is negative before that.
    """
    top, bottom = sympy.fraction(sympy.together(node))
    if _sign_of_polynomial(bottom) != 1:
        return None
    return _sign_of_polynomial(top)


def _sign_of_polynomial(node: Any) -> Literal[0, 1] | None:
    if node.is_positive:
        return 1
    symbols = sorted(node.free_symbols, key=str)
    counts = {s: s + 1 for s in symbols if s.is_integer and s.is_positive}
    if not symbols or not all(s.is_nonnegative for s in symbols):
        return None
    try:
        shifted = sympy.Poly(node.subs(counts, simultaneous=True), *symbols)
    except sympy.PolynomialError:
        return None
    if not all(c.is_nonnegative for c in shifted.coeffs()):
        return None
    at_least = sympy.Poly(shifted.as_expr().subs(dict.fromkeys((s for s in symbols if s.is_integer), 0)), *symbols)
    if not at_least.is_zero or (not counts and not shifted.is_zero and all(s.is_positive for s in symbols)):
        return 1
    return 0


def is_in(of: Expr, domain: Domain, values: Mapping[str, Fraction]) -> bool | None:
    """Returns whether the expression is in the domain at the given values; None where it is no finite real number.

    Irrational numbers are enclosed: what cannot be told from a bound of the domain is not in it.
    """
    try:
        node = of.at(values)
        if (number := node.rational()) is not None:
            return _holds(number, number, domain)
        low, high = (node.number(rounding=r) for r in ("down", "up"))
    except ParameterError:
        return None
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        return None
    return domain not in ("count", "whole") and _holds(Fraction(low), Fraction(high), domain)


def _holds(low: Fraction, high: Fraction, domain: Domain) -> bool:
    whole = low.denominator == 1
    return {
        "count": whole and low >= 1,
        "whole": whole and low >= 0,
        "positive": low > 0,
        "nonnegative": low >= 0,
        "part of one": low >= 0 and high < 1,
    }[domain]
