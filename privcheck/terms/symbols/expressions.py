"""Immutable exact expressions in named parameters, on top of SymPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy.core.evalf import PrecisionExhausted
from sympy.printing.mathml import mathml as _mathml

from privcheck.errors import ParameterError
from privcheck.terms.symbols.exactness import Exact, Rounding, exact, to_float

_DIGITS = 60  # working precision of the bridge to floats, which then rounds once, in the direction that is asked for
_SLACK = Fraction(1, 10 ** (_DIGITS - 5))  # relative; covers what `_DIGITS` digits of an irrational number leave out
_CANCELLED = 2000  # digits that may cancel before they are reached
_FEW = 12  # operations that SymPy simplifies at leisure
_MOST_BITS = 2**16  # of a power that is written out; fractions of longer numbers take minutes
_MOST_FACTORED = 512  # bits of a polynomial's coefficient
_MOST_WRITTEN = 4096  # bits of a number that is shown with all its digits
_MOST_TERMS = 20_000  # of a sum without a closed form
_FEW_TERMS = 50  # of one whose terms are irrational, which is hard to simplify
_FEW_LOGS = 4  # logarithms and exponentials in a number that is tried to be seen as a fraction
_BEYOND = 2000  # binary exponents outside ± this are out of a float's range whatever the digits


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expr:
    """Exact expression in the declaration's parameters.

    `==` and `hash` are structural; ask `same` or `at_most` whether two expressions are equal or ordered for all
    parameter values.

    Attributes:
        node: Expression of SymPy's numbers and functions, in symbols made by `privcheck.terms.symbols.symbol`: a proof
            is
            for all values that a symbol may take, and these are the values of a parameter of its kind.

    Raises:
        ParameterError: The node is not of SymPy, or contains a symbol with other assumptions (an even number), a
            function without a value, or a float.
    """

    node: Any

    def __post_init__(self) -> None:
        if not isinstance(self.node, sympy.Basic):
            message = f"expected a node of SymPy, got {self.node!r:.100} of type {type(self.node).__name__}"
            raise ParameterError(f"{message}; use `expression(…)`, which takes exact numbers", given=self.node)
        check_node(self.node)

    def __add__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node + node_of(other))

    def __sub__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node - node_of(other))

    def __mul__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node * node_of(other))

    def __truediv__(self, other: Expr | Exact) -> Expr:
        return Expr(self.node / node_of(other))

    def __pow__(self, other: Expr | Exact) -> Expr:
        return Expr(_power(self.node, node_of(other)))

    def __neg__(self) -> Expr:
        return Expr(-self.node)

    def __rpow__(self, other: Exact) -> Expr:
        return Expr(_power(node_of(other), self.node))

    def __radd__(self, other: Exact) -> Expr:
        return Expr(node_of(other) + self.node)

    def __rsub__(self, other: Exact) -> Expr:
        return Expr(node_of(other) - self.node)

    def __rmul__(self, other: Exact) -> Expr:
        return Expr(node_of(other) * self.node)

    def __rtruediv__(self, other: Exact) -> Expr:
        return Expr(node_of(other) / self.node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and bool(self.node == other.node)

    def __hash__(self) -> int:
        return hash(self.node)

    def __float__(self) -> float:
        message = f"{self} has no value of its own: give `number(values)` the parameters"
        raise ParameterError(
            f"{message}, or take sqrt, log, … of privcheck.terms.symbols, not of math or NumPy", given=self
        )

    def __lt__(self, other: object) -> bool:
        message = f"{self} and {other} are not ordered before the parameters have values: ask `at_most`"
        raise ParameterError(f"{message}, take maximum(…) or minimum(…), or give a Parameter a `least`", given=self)

    __le__ = __gt__ = __ge__ = __lt__

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __str__(self) -> str:
        return str(_legible(self.node))

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the parameters in the expression."""
        return _names(self.node)

    @property
    def counts(self) -> frozenset[str]:
        """Names of the parameters that stand for positive integers only."""
        return frozenset(s.name for s in self.node.free_symbols if s.is_integer)

    @property
    def infinite(self) -> bool:
        """Whether it is ∞ for all parameters."""
        return bool(self.node == sympy.oo)

    def latex(self) -> str:
        """Write the expression in LaTeX."""
        return str(sympy.latex(_legible(self.node)))

    def mathml(self) -> str:
        """Write the expression as presentation MathML, which browsers render without a network."""
        return str(_mathml(_legible(self.node), printer="presentation"))

    def simplified(self) -> Expr:
        """Equal expression in simplest form."""
        return Expr(simplify(self.node))

    def at(self, values: Mapping[str, Fraction]) -> Expr:
        """Replace all parameters by exact numbers.

        Raises:
            ParameterError: A parameter of the expression is not among `values`, the number has too many digits to
                write out (0.9 to the power of 10⁹), or a sum without a closed form has too many terms.
        """
        missing = sorted(self.symbols - values.keys())
        if missing:
            raise ParameterError(f"no value given for {', '.join(missing)} in {self}", name=missing[0])
        return Expr(_at(self.node, tuple((s, _rational(values[s.name])) for s in _free(self.node))))

    def fill(self, values: Mapping[str, Fraction]) -> Expr:
        """Replace some of the parameters by exact numbers."""
        known = {s: _rational(values[s.name]) for s in self.node.free_symbols if s.name in values}
        return Expr(self.node.xreplace(known))

    def rational(self, values: Mapping[str, Fraction] | None = None) -> Fraction | None:
        """Value as a fraction, or None where it is irrational or not recognised as rational."""
        node = self.at(values or {}).node
        if not node.is_Rational:
            if len(node.atoms(sympy.log, sympy.exp)) > _FEW_LOGS:  # a search for identities takes minutes
                return None
            node = sympy.expand(simplify(node))
        return Fraction(int(node.p), int(node.q)) if node.is_Rational else None

    def number(self, values: Mapping[str, Fraction] | None = None, *, rounding: Rounding = "nearest") -> float:
        """Value as a float, rounded in the requested direction.

        Args:
            values: Values of the parameters.
            rounding: "up" never returns less than the exact value, "down" never more.

        Raises:
            ParameterError: A parameter is missing, or the value is not a real number, or too close to 0 to be rounded
                safely.
        """
        node = self.at(values or {}).node
        if node.is_Rational:
            return to_float(Fraction(int(node.p), int(node.q)), rounding=rounding)
        if node == sympy.oo:
            return math.inf
        try:
            value = _evaluate(node)
        except PrecisionExhausted:  # it may be 0, or so near that nothing is known of its digits
            simple = simplify(node)
            if simple.is_Rational:
                return to_float(Fraction(int(simple.p), int(simple.q)), rounding=rounding)
            raise ParameterError(f"{self}{_where(values)} is too close to 0 to be rounded safely: {node}") from None
        if not value.is_Float:
            raise ParameterError(f"{self}{_where(values)} is not a real number: {node}")
        near = _from_float(value)
        slack = {"nearest": 0, "up": 1, "down": -1}[rounding] * abs(near) * _SLACK
        return to_float(near + slack, rounding=rounding)


# What a node may be made of, by the module of its class. Left out are placeholders (Dummy, Wild), what has assumptions
# of its own (undefined functions, indexed symbols, matrix elements, random symbols) and what is not evaluated by
# putting numbers in (Derivative, Subs, Lambda, Integral).
_KNOWN = (
    "sympy.core.add", "sympy.core.mul", "sympy.core.power", "sympy.core.numbers", "sympy.core.containers",
    "sympy.core.relational", "sympy.logic.boolalg", "sympy.functions.", "sympy.concrete.summations",
)  # fmt: skip
_OURS = "privcheck.terms.symbols."
_KINDS: tuple[dict[str, bool], ...] = ({"integer": True, "positive": True}, {"positive": True})


@functools.lru_cache(maxsize=65536)
def check_node(node: Any) -> Mapping[str, Any]:
    """Check that a node contains only known numbers, functions and parameters; for this folder only.

    Returns:
        The symbols by name.

    Raises:
        ParameterError: The node contains something else; the message names the part and the remedy.
    """
    if isinstance(node, sympy.Symbol):
        if type(node) is sympy.Symbol and any(node == sympy.Symbol(node.name, **kind) for kind in _KINDS):
            return {node.name: node}
        assumed = ", ".join(name for name, true in sorted(node.assumptions0.items()) if true and name != "commutative")
        message = f"the symbol {node.name} is a {type(node).__name__} assumed {assumed or 'nothing'}; a parameter is"
        message += " assumed a positive integer, or positive, and nothing more"
        remedy = f"write symbol({node.name!r}, 'count') or symbol({node.name!r}, 'positive') of privcheck.terms.symbols"
        raise ParameterError(f"{message}: {remedy}", name=node.name, given=node)
    kind = type(node).__module__ or ""
    undefined = isinstance(node, sympy.core.function.AppliedUndef | sympy.Float)
    if undefined or not kind.startswith((*_KNOWN, _OURS)):
        message = "expected exact numbers, parameters and functions of privcheck.terms.symbols"
        message += f", got {str(node)[:100]} ({type(node).__name__} of SymPy)"
        raise ParameterError(f"{message}; write it with exp, log, sqrt, maximum, … and exact numbers", given=node)
    named: dict[str, Any] = {}
    for part in node.args:
        for name, one in check_node(part).items():
            if named.setdefault(name, one) != one:
                message = f"{name} is a count in one place and a positive number in another: a parameter has one kind"
                raise ParameterError(f"{message}; write symbol({name!r}, …) once", name=name, given=node)
    if isinstance(node, sympy.exp) and not named:
        _refuse_height(node)
    return named


def _refuse_height(node: Any) -> None:
    """Check the numeric exponent of e: SymPy and mpmath write out as many digits as it has before the point."""
    size = node.args[0].evalf(5)
    if size.is_Float and int(size._mpf_[2]) + int(size._mpf_[3]) > _BEYOND:
        message = f"the number {str(_legible(node))[:100]} is too large, or too near 0, to be computed"
        raise ParameterError(f"{message}; give other parameters, or a smaller exponent", given=node)


def _legible(node: Any) -> Any:
    """Replace numbers too long for Python to write out by their powers of ten."""
    long = [r for r in node.atoms(sympy.Rational) if max(int(r.p).bit_length(), int(r.q).bit_length()) > _MOST_WRITTEN]
    return node.xreplace({number: sympy.Symbol(_in_tens(number)) for number in long}) if long else node


def _in_tens(number: Any) -> str:
    power = (abs(int(number.p)).bit_length() - int(number.q).bit_length()) * math.log10(2)
    return f"{'-' if number < 0 else ''}10^{power:.0f}"


@functools.lru_cache(maxsize=8192)
def _free(node: Any) -> tuple[Any, ...]:
    return tuple(sorted(node.free_symbols, key=lambda symbol: symbol.name))


@functools.lru_cache(maxsize=8192)
def _names(node: Any) -> frozenset[str]:
    return frozenset(symbol.name for symbol in _free(node))


@functools.lru_cache(maxsize=8192)  # the same few expressions are asked for at the same parameters again and again
def _at(node: Any, numbers: tuple[tuple[Any, Any], ...]) -> Any:
    known = dict(numbers)
    for power in _powers(node):
        _refuse_digits(power, known, Expr(node))
    return _without_sums(node.xreplace(known), Expr(node))


@functools.lru_cache(maxsize=8192)
def _evaluate(node: Any) -> Any:
    return node.evalf(_DIGITS, maxn=_CANCELLED, strict=True)


@functools.lru_cache(maxsize=4096)
def _powers(node: Any) -> tuple[Any, ...]:
    """Powers with an exponent that depends on parameters."""
    return tuple(power for power in node.atoms(sympy.Pow) if power.exp.free_symbols)


def _power(base: Any, exponent: Any) -> Any:
    _refuse_digits(sympy.Pow(base, exponent, evaluate=False), {}, None)
    return base**exponent


def _refuse_digits(power: Any, known: Mapping[Any, Any], of: Expr | None) -> None:
    base, exponent = (part.xreplace(known) for part in power.args)
    if base.is_Rational and exponent.is_Integer:
        bits = max(abs(int(base.p)).bit_length(), int(base.q).bit_length()) - 1
        if bits * abs(int(exponent)) > _MOST_BITS:
            where = "" if of is None else f"{of}: "
            raise ParameterError(f"{where}{base} to the power of {exponent} has too many digits to write out")


def _without_sums(node: Any, of: Expr) -> Any:
    """Add up the sums without a closed form that contain only numbers."""
    for sum_node in sorted(node.atoms(sympy.Sum), key=lambda s: s.count_ops()):
        term, (step, first, last) = sum_node.function, sum_node.limits[0]
        if sum_node.free_symbols or not (first.is_Integer and last.is_Integer):
            continue
        if last - first >= (_MOST_TERMS if _in_fractions(term) else _FEW_TERMS):
            raise ParameterError(
                f"{of} has {last - first + 1} terms and no closed form; at most {_MOST_TERMS} are added"
            )
        node = node.xreplace({sum_node: _add_terms(term, step, int(first), int(last))})
    return node


@functools.lru_cache(maxsize=256)
def _add_terms(term: Any, step: Any, first: int, last: int) -> Any:
    """Sum of all terms, in fractions where the term is made of them, which is a hundred times faster."""
    if _in_fractions(term):
        return _rational(sum((_fraction(term, step, Fraction(k)) for k in range(first, last + 1)), Fraction(0)))
    return sympy.Add(*(term.xreplace({step: sympy.Integer(k)}) for k in range(first, last + 1)))


def _in_fractions(node: Any) -> bool:
    """Whether a term of one step is made of rational functions, maxima and minima of small powers."""
    if node.is_Pow:
        return bool(node.exp.is_Integer) and _in_fractions(node.base)
    known = node.is_Symbol or node.is_Rational or node.is_Add or node.is_Mul or isinstance(node, sympy.Max | sympy.Min)
    return known and all(_in_fractions(part) for part in node.args)


def _fraction(node: Any, step: Any, value: Fraction) -> Fraction:
    """Value of a term of one step that is `_in_fractions`."""
    if node == step:
        return value
    if node.is_Rational:
        return Fraction(int(node.p), int(node.q))
    if node.is_Pow:
        return _fraction(node.base, step, value) ** int(node.exp)
    parts = [_fraction(part, step, value) for part in node.args]
    if node.is_Add:
        return sum(parts, Fraction(0))
    if node.is_Mul:
        return math.prod(parts, start=Fraction(1))
    return max(parts) if isinstance(node, sympy.Max) else min(parts)


def _where(values: Mapping[str, Fraction] | None) -> str:
    return " at " + ", ".join(f"{name} = {value}" for name, value in values.items()) if values else ""


def _from_float(value: Any) -> Fraction:
    sign, mantissa, power, bits = value._mpf_  # (−1)^sign · mantissa · 2^power
    power = min(max(int(power), -_BEYOND - int(bits)), _BEYOND)
    size = Fraction(int(mantissa)) * Fraction(2) ** power
    return -size if sign else size


def _rational(value: Fraction) -> Any:
    return sympy.Rational(value.numerator, value.denominator)


def node_of(value: Expr | Exact) -> Any:
    """SymPy node of a value; for this folder only."""
    return value.node if isinstance(value, Expr) else _rational(exact(value))


@functools.lru_cache(maxsize=4096)
def simplify(node: Any) -> Any:
    """Equal node in simple form; for this folder only.

    Functions (logarithms, tree levels, maxima, …) and sums are replaced by symbols, which leaves a quotient of
    polynomials and roots: SymPy's search for identities among the functions takes minutes on a declaration's cost.
    """
    functions = sorted(
        node.atoms(sympy.Function, sympy.Max, sympy.Min, sympy.Sum), key=lambda f: (-f.count_ops(), str(f))
    )
    if not functions and node.count_ops() <= _FEW:
        return sympy.simplify(node)
    hidden: dict[Any, Any] = {}
    for function in functions:
        if node.has(function):
            stand_in = sympy.Dummy(positive=function.is_positive, nonnegative=function.is_nonnegative)
            hidden[stand_in] = function
            node = node.xreplace({function: stand_in})
    simple = sympy.cancel(sympy.together(node))
    if not any(
        max(int(r.p).bit_length(), int(r.q).bit_length()) > _MOST_FACTORED for r in simple.atoms(sympy.Rational)
    ):
        simple = sympy.factor(simple)  # which looks for primes as long as the longest coefficient
    for stand_in, function in reversed(hidden.items()):
        simple = simple.xreplace({stand_in: function})
    return simple


def expression(value: Expr | Exact) -> Expr:
    """Convert the value to an expression; a float is refused."""
    return value if isinstance(value, Expr) else Expr(node_of(value))
