"""Exact numbers and the field's symbols; this folder is the only importer of SymPy.

An `Expr` is an immutable exact expression in named parameters. It is built from integers, fractions, decimal strings
and the symbols below with ordinary operators; a float is refused, because 0.1 is not a tenth. SymPy has no type
information and its `sympify` evaluates strings, so nothing outside this folder touches it and SymPy never parses a
string.
"""

from privcheck.terms.symbols.exactness import Exact, Rounding, exact, to_float
from privcheck.terms.symbols.expressions import Expr, expression
from privcheck.terms.symbols.functions import (
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
    computed,
    d,
    delta,
    drop_last,
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
from privcheck.terms.symbols.proofs import Domain, Proof, Span, at_most, is_in, keeps, largest, prove_at_most, same

__all__ = [
    "COUNTS", "INFINITE", "A", "Domain", "Exact", "Expr", "H", "K", "Proof", "Rounding", "S", "Span", "at_most",
    "before", "beta", "ceil", "ceil_log2", "computed", "d", "delta", "drop_last", "epsilon", "exact", "exp",
    "expression", "failure", "floor", "h", "in_step", "is_in", "keeps", "largest", "log", "maximum", "minimum", "n",
    "prove_at_most", "rho", "same", "sqrt", "sum_over", "sum_steps", "symbol", "to_float", "total", "tree_levels",
]  # fmt: skip
