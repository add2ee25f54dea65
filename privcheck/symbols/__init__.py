"""Exact numbers and the field's symbols; this folder is the only importer of SymPy.

An `Expr` is an immutable exact expression in named parameters. It is built from integers, fractions, decimal strings
and the symbols below with ordinary operators; a float is refused, because 0.1 is not a tenth. SymPy has no type
information and its `sympify` evaluates strings, so nothing outside this folder touches it and no string is ever parsed
by it.
"""

from privcheck.symbols.computed import computed
from privcheck.symbols.exactness import Exact, Rounding, exact, to_float
from privcheck.symbols.expressions import Expr, expression
from privcheck.symbols.functions import (
    COUNTS,
    INFINITE,
    A,
    H,
    K,
    S,
    before,
    beta,
    ceil,
    ceil_log2,
    d,
    delta,
    epsilon,
    exp,
    failure,
    floor,
    h,
    in_step,
    log,
    maximum,
    minimum,
    n,
    rho,
    sqrt,
    sum_over,
    sum_steps,
    symbol,
    total,
    tree_levels,
)
from privcheck.symbols.ordering import Proof, at_most, largest, prove_at_most, same
from privcheck.symbols.ranges import Domain, Span, is_in, keeps

__all__ = [
    "COUNTS", "INFINITE", "A", "Domain", "Exact", "Expr", "H", "K", "Proof", "Rounding", "S", "Span", "at_most",
    "before", "beta", "ceil", "ceil_log2", "computed", "d", "delta", "epsilon", "exact", "exp", "expression",
    "failure", "floor", "h", "in_step", "is_in", "keeps", "largest", "log", "maximum", "minimum", "n", "prove_at_most",
    "rho", "same", "sqrt", "sum_over", "sum_steps", "symbol", "to_float", "total", "tree_levels",
]  # fmt: skip
