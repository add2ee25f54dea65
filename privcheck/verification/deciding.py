"""Is one expression at most another, for all parameters? Proved where SymPy decides it, else checked on a box."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from privcheck.declaration import Kind, Parameter
from privcheck.errors import ParameterError
from privcheck.symbols import Expr, at_most

# Where bounds that are not provable break first: the smallest sizes, powers of two and their neighbours (tree levels),
# sizes in use, and far out.
BOX: Final[Mapping[Kind, tuple[Fraction, ...]]] = {
    "count": tuple(Fraction(v) for v in (1, 2, 3, 7, 8, 9, 100, 20_000, 10**9)),
    "positive": tuple(Fraction(v) for v in ("1/1000000", "1/10", "1", "10", "1000")),
    "probability": tuple(Fraction(v) for v in ("1/1000000000", "1/1000", "1/2", "9/10")),
    "real": tuple(Fraction(v) for v in ("0", "1/1000", "1", "1000")),
}
_MOST: Final = 2_000  # points; a stride that is coprime to the axes thins out larger boxes
_TOUCHING: Final = Fraction(1, 10**13)  # relative; equal irrational expressions differ by rounding only


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether left ≤ right.

    Attributes:
        holds: Everywhere that was looked at.
        method: "proved" for all parameters, or "checked" on a box of them.
        points: How many points of the box were compared; 0 where it is proved.
        counterexample: Parameters at which it fails, where it does and a point was found.
    """

    holds: bool
    method: Literal["proved", "checked"]
    points: int
    counterexample: Mapping[str, Fraction] | None


def decide(left: Expr, right: Expr, parameters: Sequence[Parameter]) -> Decision:
    """Returns whether left ≤ right for all values of the parameters.

    Args:
        left: An exact expression.
        right: Another.
        parameters: The range of every symbol in them.

    Raises:
        ParameterError: A symbol has no parameter.
    """
    proved = at_most(left, right)
    if proved is True:
        return Decision(holds=True, method="proved", points=0, counterexample=None)
    used = left.symbols | right.symbols
    axes = [p for p in parameters if p.name in used]
    if missing := used - {p.name for p in axes}:
        raise ParameterError(f"no parameter is declared for {', '.join(sorted(missing))}", name=min(missing))
    points = 0
    for point in _box(axes):
        points += 1
        if not _at_most_at(left, right, point):
            return Decision(holds=False, method="checked", points=points, counterexample=point)
    return Decision(holds=proved is None, method="checked", points=points, counterexample=None)


def _box(axes: Sequence[Parameter]) -> list[dict[str, Fraction]]:
    whole = list(itertools.product(*(BOX[p.kind] for p in axes)))
    stride = max(1, -(-len(whole) // _MOST)) | 1
    return [{p.name: v for p, v in zip(axes, values, strict=True)} for values in whole[::stride]]


def _at_most_at(left: Expr, right: Expr, point: Mapping[str, Fraction]) -> bool:
    low, high = left.at(point), right.at(point)
    exact_low, exact_high = low.rational(), high.rational()
    if exact_low is not None and exact_high is not None:
        return exact_low <= exact_high
    bound = Fraction(high.number(rounding="up"))
    return Fraction(low.number(rounding="down")) <= bound + abs(bound) * _TOUCHING
