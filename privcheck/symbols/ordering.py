"""Is one expression at most, or equal to, another for all parameters? Decided, or None."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import sympy

from privcheck.symbols.expressions import Expr, simplify
from privcheck.symbols.functions import maximum

Fact = tuple[str, tuple[Any, ...]]  # a step in words, with braces where its nodes are written


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether left ≤ right, and by which steps that was decided.

    Attributes:
        holds: For all admissible parameters (True), not for all (False), or None where it is not decided.
        facts: The steps, the last one first, written when they are asked for; empty where nothing was decided.
    """

    holds: bool | None
    facts: tuple[Fact, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """Returns the steps in words."""
        return tuple(words.format(*(Expr(node) for node in nodes)) for words, nodes in self.facts)


def at_most(left: Expr, right: Expr) -> bool | None:
    """Returns whether left ≤ right for all admissible parameters (True, False), or None where it is not decided.

    False means that it fails for at least some parameters, never "not found".
    """
    return prove_at_most(left, right).holds


def prove_at_most(left: Expr, right: Expr) -> Proof:
    """Returns what `at_most` does, with the steps of the proof."""
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
    """Returns whether the two are equal for all admissible parameters, or None where SymPy cannot decide."""
    difference = simplify(left.node - right.node)
    if difference.has(sympy.log):
        difference = simplify(sympy.expand_log(difference))
    if difference.is_zero:
        return True
    return False if difference.is_zero is False or difference.is_Number else None


def largest(*values: Expr) -> Expr:
    """Returns one of the values that is at least all others for all parameters, else their exact maximum."""
    for value in values:
        if all(at_most(other, value) for other in values):
            return value
    return maximum(*values)


def _nonnegative(node: Any) -> str:
    """Returns why the expression is at least 0; empty where that is not proved.

    A quotient of polynomials is, if with every count n written as 1 + m, m ≥ 0, no coefficient of either is negative.
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
