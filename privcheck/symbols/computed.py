"""Exact functions of numbers that no formula is needed of: computed where all arguments are numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from privcheck.symbols.exactness import Exact
from privcheck.symbols.expressions import Expr, node_of


def computed(name: str, of: Callable[..., Fraction | int], *arguments: Expr | Exact, whole: bool = True) -> Expr:
    """Returns a function of the arguments that is at least 0 and is computed wherever all of them are numbers.

    Two of them are structurally equal where name, function and arguments are.

    Args:
        name: How it is written.
        of: From whole numbers, or fractions, to the exact value, rounded outward by whoever needs it rounded; a
            `ParameterError` where it cannot be computed.
        *arguments: Expressions whose values are whole numbers, or fractions.
        whole: The arguments are whole numbers; otherwise `of` is handed fractions.

    >>> from privcheck.symbols import H
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
