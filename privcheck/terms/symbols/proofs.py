"""Proofs for all admissible values of all parameters: order of two expressions, range of one, trend in a parameter."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import sympy

from privcheck.errors import ParameterError
from privcheck.terms.symbols.expressions import Expr, expression, simplify
from privcheck.terms.symbols.functions import _BitLength, h, maximum

Fact = tuple[str, tuple[Any, ...]]  # a step in words, with braces where its nodes are written


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether left ≤ right, and the steps of the decision.

    Attributes:
        holds: True for all admissible parameters, False not for all, None where undecided.
        facts: The steps, the last one first, written on demand; empty where nothing was decided.
    """

    holds: bool | None
    facts: tuple[Fact, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """Steps in words."""
        return tuple(words.format(*(Expr(node) for node in nodes)) for words, nodes in self.facts)


def at_most(left: Expr, right: Expr) -> bool | None:
    """Whether left ≤ right for all admissible parameters (True, False), or None where it is not decided.

    False means that it fails for at least some parameters, never "not found".
    """
    return prove_at_most(left, right).holds


def prove_at_most(left: Expr, right: Expr) -> Proof:
    """Decide as `at_most`, with the steps of the proof."""
    if isinstance(left.node, sympy.Max):
        parts = [prove_at_most(Expr(part), right) for part in left.node.args]
        if any(part.holds is False for part in parts):
            return next(part for part in parts if part.holds is False)
        if any(part.holds is None for part in parts):
            return Proof(holds=None)
        facts = tuple(fact for part in parts for fact in part.facts)
        return Proof(holds=True, facts=(("a maximum is at most {} if all its parts are", (right.node,)), *facts))
    for part in right.node.args if isinstance(right.node, sympy.Max) else ():
        if (one := prove_at_most(left, Expr(part))).holds:
            why = ("{} is at most a maximum if it is at most one part", (left.node,))
            return Proof(holds=True, facts=(why, *one.facts))
    for part in left.node.args if isinstance(left.node, sympy.Min) else ():
        if (one := prove_at_most(Expr(part), right)).holds:
            why = ("a minimum is at most {} if one part is", (right.node,))
            return Proof(holds=True, facts=(why, *one.facts))
    return _decide(left, right)


def _decide(left: Expr, right: Expr) -> Proof:
    difference = simplify(right.node - left.node)
    of = ("{} − ({}) = {}", (right.node, left.node, difference))
    if why := _nonnegative(difference):
        return Proof(holds=True, facts=(of, (why, ())))
    if difference.is_negative:
        return Proof(holds=False, facts=(of, ("the difference is negative for all parameters", ())))
    ratio = simplify(left.node / right.node) if right.node != 0 else sympy.nan
    if ratio.is_Rational and right.node.is_positive:
        why_not = ("{} is {} times {}, which is positive", (left.node, ratio, right.node))
        return Proof(holds=bool(ratio <= 1), facts=(why_not,))
    return Proof(holds=None)


def same(left: Expr, right: Expr) -> bool | None:
    """Whether the two are equal for all admissible parameters, or None where SymPy cannot decide."""
    difference = simplify(left.node - right.node)
    if difference.has(sympy.log):
        difference = simplify(sympy.expand_log(difference))
    if difference.is_zero:
        return True
    return False if difference.is_zero is False else None


def largest(*values: Expr) -> Expr:
    """One of the values that is at least all others for all parameters, else their exact maximum."""
    for value in values:
        if all(at_most(other, value) for other in values):
            return value
    return maximum(*values)


def _nonnegative(node: Any) -> str:
    """Reason why the expression is at least 0; empty where that is not proved.

    Lemma no-negative-coefficient: A quotient of polynomials is at least 0 if, with every count n written as 1 + m, m ≥
    0, no coefficient of either is negative. Proof: every term is then at least 0.
    """
    if node.is_nonnegative:
        return "the difference is not negative, by the signs of its parts"
    top, bottom = sympy.fraction(sympy.together(node))
    if _positive_coefficients(top) and _positive_coefficients(bottom):
        return "with every count n written as 1 + m, m ≥ 0, no coefficient above or below the line is negative"
    return ""


@functools.lru_cache(maxsize=4096)
def _positive_coefficients(node: Any) -> bool:
    symbols = sorted(node.free_symbols, key=str)
    if not symbols or not all(s.is_positive for s in symbols):
        return bool(node.is_nonnegative)
    shifted = node.subs({s: s + 1 for s in symbols if s.is_integer}, simultaneous=True)
    try:
        return all(c.is_nonnegative for c in sympy.Poly(shifted, *symbols).coeffs())
    except sympy.PolynomialError:
        return False


Domain = Literal["count", "whole", "positive", "nonnegative", "part of one"]
_FEW = 64  # steps that are looked at one by one


@dataclass(frozen=True, slots=True)
class Span:
    """Values of one parameter: whole numbers from `least` on, all positive numbers, or the numbers in (0, 1)."""

    kind: Literal["count", "positive", "probability"]
    least: int = 1


def keeps(of: Expr, domain: Domain, spans: Mapping[str, Span], *, steps: Expr | None = None) -> bool | None:
    """Whether the expression is in the domain for all values of the parameters, or None where undecided.

    False means that it is outside for every value, or not a real number at all.

    Args:
        of: An exact expression.
        domain: "count" (whole, at least 1), "whole" (at least 0), "positive", "nonnegative", "part of one" (in [0, 1)).
        spans: Admissible values of every parameter.
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
    ranged = _find_range(node, spans, steps)
    return None if ranged is None else _within(ranged, domain)


@functools.lru_cache(maxsize=4096)  # it makes symbols: cached, SymPy knows the node again at the next domain
def _find_range(node: Any, spans: tuple[tuple[str, Span], ...], steps: Any) -> Any:
    """Rewrite the node in symbols that take all positive values, or whole values from 1 on; None where impossible."""
    known = dict(spans)
    if steps is not None and node.has(h.node):
        if not steps.is_Symbol:
            return None
        node = node.subs(steps, h.node + sympy.Dummy("later", integer=True, nonnegative=True))
    changes = {}
    for symbol in node.free_symbols - {h.node}:
        span = known.get(symbol.name)
        if isinstance(symbol, sympy.Dummy):
            continue
        if span is None or not symbol.is_positive:
            return None
        if span.kind == "probability":  # (0, 1) is 1/(1 + t), t > 0
            changes[symbol] = 1 / (1 + sympy.Dummy(symbol.name, positive=True))
        elif span.kind == "count" and span.least > 1:
            changes[symbol] = sympy.Dummy(symbol.name, integer=True, positive=True) + span.least - 1
    return simplify(node.subs(changes, simultaneous=True))


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
    """1 where the node is proved to be above 0, 0 where it is proved to be at least 0, else None."""
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
    """Sign of a quotient of polynomials without negative coefficients: 1, 0 or None, as in `_sign`.

    With every count n written as 1 + m, m ≥ 0, and everything else positive: at least 0; above 0 if the numerator with
    every m at 0 is not zero.
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
    return 0 if at_least.is_zero else 1


def is_in(of: Expr, domain: Domain, values: Mapping[str, Fraction]) -> bool | None:
    """Whether the expression is in the domain at the given values; None where it is not a finite real number.

    Irrational numbers are enclosed: a number that cannot be separated from a bound of the domain is not in it.
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


Trend = Literal["constant", "nondecreasing", "nonincreasing"]


@functools.lru_cache(maxsize=1024)
def trend(of: Expr, name: str) -> Trend | None:
    """Direction in which an expression changes with a parameter, or None where it is not decided.

    First by rules: sums, products of nonnegative factors, powers, exp, ln, maxima, minima and tree levels inherit the
    direction of their parts. Then in a count n from f(n) ≤ f(n + 1), in a positive parameter from the sign of the
    derivative.

    Args:
        of: An exact expression.
        name: Name of the parameter.

    >>> from privcheck.terms.symbols import H, K, rho, sqrt, tree_levels
    >>> trend(H**2 - H, "H"), trend(sqrt(H / rho), "rho"), trend(H * tree_levels(K), "K")
    ('nondecreasing', 'nonincreasing', 'nondecreasing')
    """
    symbol = next((s for s in of.node.free_symbols if s.name == name), None)
    if symbol is None:
        return "constant"
    if (direction := _by_rules(of.node, symbol)) is not None:
        return {0: "constant", 1: "nondecreasing", -1: "nonincreasing"}[direction]  # type: ignore[return-value] # by key
    return _by_difference(of, symbol)


def shift(of: Expr, name: str) -> Expr:
    """Replace a count by the count plus 1.

    Raises:
        ParameterError: The expression has no such parameter, or the parameter is not a count.
    """
    symbol = next((s for s in of.node.free_symbols if s.name == name), None)
    if symbol is None or not symbol.is_integer:
        raise ParameterError(f"expected {name} to be a count in {of}", name=name)
    return Expr(of.node.subs(symbol, symbol + 1))


def _by_difference(of: Expr, symbol: Any) -> Trend | None:
    if symbol.is_integer:
        before, after = of, shift(of, symbol.name)
    else:
        slope = of.node.diff(symbol)
        if slope.has(sympy.Derivative):
            return None
        before, after = expression(0), Expr(slope)
        if _by_rules(slope, symbol) == 1 and slope.subs(symbol, 0).is_nonnegative:
            return "nondecreasing"  # a convex function that does not fall at 0
    if at_most(before, after) is True:
        return "nondecreasing"
    return "nonincreasing" if at_most(after, before) is True else None


def _by_rules(node: Any, symbol: Any) -> int | None:  # noqa: PLR0911 - one return a rule
    """1 where the node never falls in the symbol, −1 where it never rises, 0 where it does not depend on it."""
    if not node.has(symbol):
        return 0
    if node == symbol:
        return 1
    if isinstance(node, sympy.Add | sympy.Max | sympy.Min):
        return _same(node.args, symbol)
    if isinstance(node, sympy.exp | sympy.log | _BitLength):
        return _by_rules(node.args[0], symbol)
    if isinstance(node, sympy.Pow):
        base, power = node.args
        inner = _by_rules(base, symbol)
        if power.has(symbol) or inner is None or not base.is_nonnegative or power.is_nonnegative is None:
            return None
        return inner if power.is_nonnegative else -inner
    if isinstance(node, sympy.Mul):
        number, rest = node.as_coeff_Mul()
        if number.is_negative:
            inner = _by_rules(rest, symbol)
            return None if inner is None else -inner
        return _same(node.args, symbol) if all(part.is_nonnegative for part in node.args) else None
    return None


def _same(parts: tuple[Any, ...], symbol: Any) -> int | None:
    directions = {_by_rules(part, symbol) for part in parts} - {0}
    return directions.pop() if len(directions) == 1 else None
