"""Symbols of the field, functions for exact expressions, and exact functions of plain numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Literal

import sympy

from privcheck.errors import ParameterError
from privcheck.terms.symbols.exactness import Exact
from privcheck.terms.symbols.expressions import Expr, expression, node_of, simplify

_FEW = 8  # terms of a sum that are written out


def sqrt(value: Expr | Exact) -> Expr:
    """Exact square root."""
    return Expr(sympy.sqrt(node_of(value)))


def log(value: Expr | Exact) -> Expr:
    """Exact natural logarithm."""
    return Expr(sympy.log(node_of(value)))


def exp(value: Expr | Exact) -> Expr:
    """Exact exponential."""
    return Expr(sympy.exp(node_of(value)))


def maximum(*values: Expr | Exact) -> Expr:
    """Exact maximum."""
    return Expr(_compare(sympy.Max, values))


def minimum(*values: Expr | Exact) -> Expr:
    """Exact minimum."""
    return Expr(_compare(sympy.Min, values))


def _compare(of: Any, values: tuple[Expr | Exact, ...]) -> Any:
    try:
        return of(*map(node_of, values))
    except (ValueError, OverflowError) as error:  # zoo, NaN, a complex number, or one too large for SymPy to compare
        shown = ", ".join(map(str, values))[:200]
        raise ParameterError(f"expected real numbers to compare, got {shown}", given=shown) from error


class _BitLength(sympy.Function):  # type: ignore[misc] # SymPy has no types
    """Number of binary digits of ⌊x⌋, x ≥ 0: ⌊log₂ x⌋ + 1, and 0 for x < 1."""

    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, argument: Any) -> Any:
        if argument.is_Rational:
            if argument < 0:
                raise ParameterError(f"expected a number of leaves, at least 0, got {argument}", given=argument)
            return sympy.Integer(int(argument).bit_length())
        return None

    def _sympystr(self, printer: Any) -> str:
        return f"bit_length({printer._print(self.args[0])})"  # noqa: SLF001 - as SymPy's own printing asks

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        above = self.args[0] + 1  # ⌊log₂ (K − 1)⌋ + 1 = ⌈log₂ K⌉, of whole numbers K ≥ 1
        whole = above.is_integer and not above.is_Add
        argument = above if whole else self.args[0]
        inside = printer._print(argument)  # noqa: SLF001 - as SymPy's own printing asks
        inside = rf"\left({inside}\right)" if argument.is_Add else inside
        text = rf"\left\lceil \log_2 {inside} \right\rceil"
        if not whole:
            text = rf"\left(\left\lfloor \log_2 {inside} \right\rfloor + 1\right)"
        return text if exp is None else f"{text}^{{{exp}}}"


def tree_levels(leaves: Expr | Exact) -> Expr:
    """⌊log₂ T⌋ + 1: a leaf is in at most that many complete nodes of a binary tree over T leaves; 0 for T = 0.

    >>> str(tree_levels(8)), str(tree_levels(7))
    ('4', '3')
    """
    return Expr(_BitLength(node_of(leaves)))


def ceil_log2(value: Expr | Exact) -> Expr:
    """⌈log₂ x⌉ for a whole number x ≥ 1, exactly.

    >>> str(ceil_log2(8)), str(ceil_log2(9))
    ('3', '4')
    """
    return Expr(_BitLength(node_of(value) - 1))


def ceil(value: Expr | Exact) -> Expr:
    """Least whole number not below the value, exactly.

    >>> str(ceil(log(3)))
    '2'
    """
    return Expr(sympy.ceiling(node_of(value)))


def floor(value: Expr | Exact) -> Expr:
    """Largest whole number not above the value, exactly.

    >>> str(floor("7/2"))
    '3'
    """
    return Expr(sympy.floor(node_of(value)))


def sum_over(steps: Expr | Exact, term: Callable[[Expr], Expr]) -> Expr:
    """Σ over h = 1, …, H of term(h), in closed form where one is known.

    Args:
        steps: H.
        term: Maps h, a positive integer symbol, to the summand.

    >>> from fractions import Fraction
    >>> str(sum_over(H, lambda h: (H - h + 1) ** 2).at({"H": Fraction(3)}))
    '14'
    """
    return Expr(_sum(node_of(steps), term(h).node))


def sum_steps(steps: Expr | Exact, term: Expr | Exact) -> Expr:
    """Σ over h = 1, …, H of a term in which the step is the symbol `h`.

    >>> from fractions import Fraction
    >>> str(sum_steps(H, (H - h) ** 2).at({"H": Fraction(3)}))
    '5'
    """
    return Expr(_sum(node_of(steps), expression(term).node))


@functools.lru_cache(maxsize=1024)
def _sum(steps: Any, term: Any) -> Any:
    """Closed form where the term is a sum of powers of h or of r^h, else the unevaluated sum.

    SymPy's own search takes minutes, or finds functions that take as long to evaluate at a large H.
    """
    if steps.is_Integer and steps <= _FEW:
        return sympy.factor(sympy.Add(*(term.subs(h.node, step) for step in range(1, int(steps) + 1))))
    if term.has(sympy.KroneckerDelta):  # powers of 1 − δ hide from the summation
        term = sympy.expand(term)
        if all(isinstance(f, sympy.KroneckerDelta) for f in term.atoms(sympy.Function)):
            return sympy.factor(sympy.summation(term, (h.node, 1, steps)))
    if term.is_polynomial(h.node):
        powers = sympy.Poly(term, h.node).terms()
        return sympy.factor(sympy.Add(*(coefficient * _power_sum(steps, k) for (k,), coefficient in powers)))
    parts = [_geometric(steps, part) for part in sympy.Add.make_args(sympy.expand(term))]
    return sympy.Sum(term, (h.node, 1, steps)) if None in parts else sympy.Add(*parts)


def _geometric(steps: Any, term: Any) -> Any:
    """Σ c·r^h over h = 1, …, H, or None where the term is not such a multiple of a power."""
    constant, rest = term.as_independent(h.node)
    ratio = sympy.simplify(rest.subs(h.node, h.node + 1) / rest) if rest != 1 else sympy.Integer(1)
    if ratio.has(h.node):
        return None
    first = constant * rest.subs(h.node, 1)
    if ratio == 1:
        return first * steps
    closed = first * (1 - ratio**steps) / (1 - ratio)
    return closed if ratio.is_number else sympy.Piecewise((first * steps, sympy.Eq(ratio, 1)), (closed, True))


@functools.lru_cache(maxsize=64)
def _power_sum(steps: Any, power: int) -> Any:
    return sympy.summation(h.node**power, (h.node, 1, steps))


def in_step(of: Expr, values: Mapping[str, Fraction]) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]] | None:
    """Expression in the step `h` as the coefficients of its powers, and the exceptional steps with another value.

    Args:
        of: An exact expression.
        values: All its parameters except `h`.

    Returns:
        Coefficients from h⁰ on and the exceptions; None where it is not a polynomial with rational coefficients.

    >>> from fractions import Fraction
    >>> in_step(H - h, {"H": Fraction(5)})
    ((Fraction(5, 1), Fraction(-1, 1)), ())
    """
    node = of.fill(values).node
    deltas = node.atoms(sympy.KroneckerDelta)  # 0 but at one step
    special = [set(delta.args) - {h.node} for delta in deltas]
    if any(len(steps) != 1 or not next(iter(steps)).is_Rational for steps in special):
        return None
    node = node.subs(dict.fromkeys(deltas, 0))
    if not node.is_polynomial(h.node) or not node.free_symbols <= {h.node}:
        return None
    coefficients = sympy.Poly(node, h.node).all_coeffs()[::-1]
    if not all(c.is_Rational for c in coefficients):
        return None
    rationals = (*coefficients, *(next(iter(steps)) for steps in special))
    exact_ones = [Fraction(int(c.p), int(c.q)) for c in rationals]
    return tuple(exact_ones[: len(coefficients)]), tuple(exact_ones[len(coefficients) :])


def before(last: Expr | Exact) -> Expr:
    """1 at every step `h` except 0 at the last: for bounds on V of step h + 1 where V of step H + 1 is 0.

    >>> from fractions import Fraction
    >>> str(sum_steps(H, 5 * before(H))), str(before(H).at({"H": Fraction(3), "h": Fraction(3)}))
    ('5*(H - 1)', '0')
    """
    return Expr(1 - sympy.KroneckerDelta(h.node, node_of(last)))


def drop_last(of: Expr, last: Expr | Exact) -> Expr | None:
    """The bound at the steps before the last, if `before` makes it 0 at the last; None if not.

    >>> str(drop_last((H - h) * before(H), H)), drop_last(H - h, H)
    ('H - h', None)
    """
    final = sympy.KroneckerDelta(h.node, node_of(last))
    if not of.node.has(final) or simplify(of.node.xreplace({final: sympy.Integer(1)})) != 0:
        return None
    return Expr(simplify(of.node.xreplace({final: sympy.Integer(0)})))


def total(values: list[Expr]) -> Expr:
    """Exact sum; 0 for an empty list."""
    return Expr(simplify(sympy.Add(*(v.node for v in values))))


def _count(name: str) -> Expr:
    return Expr(sympy.Symbol(name, integer=True, positive=True))


def _positive(name: str) -> Expr:
    return Expr(sympy.Symbol(name, positive=True))


def symbol(name: str, kind: Literal["count", "positive"]) -> Expr:
    """Make a parameter symbol: "count" for a positive integer, "positive" for a positive real number.

    Raises:
        ParameterError: The name is not an identifier, or is `h`, which is a step; or the kind is unknown.
    """
    if not isinstance(name, str) or not name.isidentifier() or name == "h":
        raise ParameterError(f"expected an identifier other than h as a symbol's name, got {name!r}", given=name)
    if kind not in ("count", "positive"):
        raise ParameterError(f"symbol {name}: expected the kind 'count' or 'positive', got {kind!r}", given=kind)
    return _count(name) if kind == "count" else _positive(name)


COUNTS = ("S", "A", "H", "K", "n", "d")
S, A, H, K, n, d = (_count(name) for name in COUNTS)
h = _count("h")  # a step, 1 to H, in terms that depend on it; never a parameter
INFINITE = Expr(sympy.oo)
rho, epsilon, delta, beta, failure = (_positive(name) for name in ("rho", "epsilon", "delta", "beta", "failure"))


def computed(name: str, of: Callable[..., Fraction | int], *arguments: Expr | Exact, whole: bool = True) -> Expr:
    """Make a nonnegative function of the arguments, computed wherever all of them are numbers.

    Two such functions are structurally equal where name, function and arguments are.

    Args:
        name: Printed name.
        of: Maps whole numbers, or fractions, to the exact value, which callers round outward where needed; raises
            `ParameterError` where it cannot be computed.
        *arguments: Expressions with whole numbers, or fractions, as values.
        whole: Whether the arguments are whole numbers; otherwise `of` gets fractions.

    >>> from privcheck.terms.symbols import H
    >>> moved = computed("moved", lambda steps: 2 * steps, H + 1)
    >>> str(moved), str(moved.at({"H": Fraction(3)}))
    ('moved(H + 1)', '8')
    """
    return Expr(_function(name, of, whole)(*map(node_of, arguments)))


@functools.lru_cache(maxsize=1024)
def _function(name: str, of: Callable[..., Fraction | int], whole: bool) -> Any:  # noqa: FBT001 - one of ours
    def evaluate(_: Any, *arguments: Any) -> Any:
        if not all(argument.is_Integer if whole else argument.is_Rational for argument in arguments):
            return None
        value = Fraction(of(*(int(x) if whole else Fraction(int(x.p), int(x.q)) for x in arguments)))
        return sympy.Rational(value.numerator, value.denominator)

    def write(self: Any, printer: Any, exp: str | None = None) -> str:
        inside = ", ".join(printer._print(argument) for argument in self.args)  # noqa: SLF001 - as SymPy's own printing asks
        text = rf"\mathrm{{{shown}}}\left({inside}\right)" if inside else rf"\mathrm{{{shown}}}"
        return text if exp is None else f"{text}^{{{exp}}}"

    def reduce(self: Any, _: int) -> Any:  # pickles find no class that is made here: what makes it again is pickled
        return _apply, (name, of, whole, self.args)

    shown = name.replace("_", "-")
    known = {"is_nonnegative": True, "is_real": True}
    own = {"eval": classmethod(evaluate), "_latex": write, "__reduce_ex__": reduce, **known}
    return type(name, (sympy.Function,), own)


def _apply(name: str, of: Callable[..., Fraction | int], whole: bool, arguments: tuple[Any, ...]) -> Any:  # noqa: FBT001 - as above
    return _function(name, of, whole)(*arguments)
