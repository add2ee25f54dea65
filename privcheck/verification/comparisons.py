"""Decides whether one expression is at most another for all parameters, or monotone: proved, else checked on a box."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NoReturn

from privcheck.declare.declaration import Kind, Parameter
from privcheck.errors import ParameterError, ProofError
from privcheck.terms.symbols import Expr, Proof, prove_at_most
from privcheck.terms.symbols.proofs import Trend, trend

# Where bounds that are not provable break first: the smallest sizes, powers of two and their neighbours (tree levels),
# sizes in use, and far out.
BOX: Final[Mapping[Kind, tuple[Fraction, ...]]] = {
    "count": tuple(Fraction(v) for v in (1, 2, 3, 7, 8, 9, 100, 20_000, 10**9)),
    "positive": tuple(Fraction(v) for v in ("1/1000000", "1/10", "1", "10", "1000")),
    "probability": tuple(Fraction(v) for v in ("1/1000000000", "1/1000", "1/2", "9/10")),
    "real": tuple(Fraction(v) for v in ("0", "1/1000", "1", "1000")),
}
_MOST: Final = 2_000  # points; a stride that is coprime to the axes thins out larger boxes
_LOOKS: Final = 24  # points at which a proof is compared with numbers
_TOUCHING: Final = Fraction(1, 10**13)  # relative; equal irrational expressions differ by rounding only


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Result of deciding left ≤ right.

    Attributes:
        holds: Whether it holds at every point considered.
        method: "proved" for all parameters, or "checked" on a box of them.
        points: Number of points of the box that were compared; 0 if it is proved.
        counterexample: Parameters at which it fails, if it does and a point was found.
        proof: The proof that decided it; None if it is checked.
    """

    holds: bool
    method: Literal["proved", "checked"]
    points: int
    counterexample: Mapping[str, Fraction] | None
    proof: Proof | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Monotone:
    """Monotonicity of an expression in one parameter, with all others held fixed.

    Attributes:
        trend: "nondecreasing", "nonincreasing", "constant", or "neither": then there are both a rise and a fall.
        method: "proved" for all parameters, or "checked" on a box of them.
        points: Number of pairs of points that were compared; 0 if it is proved.
        rise: Two points, different in the parameter only, between which the expression rises; None if none was found.
        fall: Two points between which it falls.
    """

    trend: Trend | Literal["neither"]
    method: Literal["proved", "checked"]
    points: int
    rise: tuple[Mapping[str, Fraction], Mapping[str, Fraction]] | None
    fall: tuple[Mapping[str, Fraction], Mapping[str, Fraction]] | None

    def holds(self, wanted: Trend) -> bool:
        """Whether the expression has the wanted trend; a constant has both."""
        return self.trend in {wanted, "constant"}


def monotone(of: Expr, name: str, parameters: Sequence[Parameter], *, most: int = _MOST) -> Monotone:
    """Decide whether an expression rises or falls in a parameter, whatever the others are.

    Proved by forward differences in counts, by derivatives in others (`privcheck.terms.symbols.proofs`); else compared
    between neighbouring values of the box, for counts also between n and n + 1.

    Args:
        of: An exact expression.
        name: The parameter.
        parameters: The range of every symbol in the expression, `name` among them.
        most: Number of points of the other parameters that are compared if nothing is proved.

    Raises:
        ParameterError: A symbol has no parameter, or `name` has none.
        ProofError: A trend is proved, and two numbers contradict it.
    """
    axes = _axes(of.symbols | {name}, parameters)
    proved = trend(of, name)
    rise = fall = None
    points = 0
    for point in _box([p for p in axes if p.name != name], most if proved is None else _LOOKS):
        for low, high in itertools.pairwise(_steps(next(p for p in axes if p.name == name))):
            before, after = {**point, name: low}, {**point, name: high}
            up, down = _at_most_between(of, before, after), _at_most_between(of, after, before)
            if up is None or down is None:
                continue
            points += 1
            rise = rise or ((before, after) if up and not down else None)
            fall = fall or ((before, after) if down and not up else None)
            if (rise and proved in {"nonincreasing", "constant"}) or (fall and proved in {"nondecreasing", "constant"}):
                _refute_trend(of, proved, before, after)
            if rise and fall:
                return Monotone(trend="neither", method="checked", points=points, rise=rise, fall=fall)
    if proved is not None:
        return Monotone(trend=proved, method="proved", points=0, rise=None, fall=None)
    shape: Trend = "nondecreasing" if rise else "nonincreasing" if fall else "constant"
    return Monotone(trend=shape, method="checked", points=points, rise=rise, fall=fall)


def decide(left: Expr, right: Expr, parameters: Sequence[Parameter]) -> Decision:
    """Decide whether left ≤ right for all values of the parameters.

    Args:
        left: An exact expression.
        right: Another.
        parameters: The range of every symbol in them.

    Raises:
        ParameterError: A symbol has no parameter.
        ProofError: It is proved, and numbers at a point of the box contradict it.
    """
    proof = prove_at_most(left, right)
    axes = _axes(left.symbols | right.symbols, parameters)
    points = 0
    for point in _box(axes, _LOOKS if proof.holds else _MOST):
        kept = _at_most_at(left, right, point)
        if kept is None:
            continue
        points += 1
        if kept:
            continue
        if proof.holds:
            refute(left, right, point, proof)
        return Decision(holds=False, method="checked", points=points, counterexample=point)
    if proof.holds:
        return Decision(holds=True, method="proved", points=0, counterexample=None, proof=proof)
    return Decision(holds=proof.holds is None, method="checked", points=points, counterexample=None)


def refute(left: Expr, right: Expr, point: Mapping[str, Fraction], proof: Proof) -> NoReturn:
    """Raise the error for a proof of left ≤ right that numbers contradict.

    Raises:
        ProofError: Always; it shows both.
    """
    at = ", ".join(f"{name} = {value}" for name, value in sorted(point.items())) or "every parameter"
    low, high = left.number(point, rounding="down"), right.number(point, rounding="up")
    message = f"{left} ≤ {right} is proved for all parameters, and at {at} the numbers are {low:.9g} and {high:.9g}"
    raise ProofError(message, steps=proof.steps)


def _refute_trend(of: Expr, proved: str, before: Mapping[str, Fraction], after: Mapping[str, Fraction]) -> NoReturn:
    at = [", ".join(f"{name} = {value}" for name, value in sorted(point.items())) for point in (before, after)]
    numbers = [of.number(point) for point in (before, after)]
    message = f"{of} is proved to be {proved}, and it is {numbers[0]:.9g} at {at[0]} and {numbers[1]:.9g} at {at[1]}"
    raise ProofError(message, steps=("by rules on its parts, a difference or a derivative",))


def _axes(used: frozenset[str], parameters: Sequence[Parameter]) -> list[Parameter]:
    axes = [p for p in parameters if p.name in used]
    if missing := used - {p.name for p in axes}:
        raise ParameterError(f"no parameter is declared for {', '.join(sorted(missing))}", name=min(missing))
    return axes


def _steps(axis: Parameter) -> list[Fraction]:
    values = set(_values(axis))
    return sorted(values | {v + 1 for v in values}) if axis.kind == "count" else sorted(values)


def _values(axis: Parameter) -> tuple[Fraction, ...]:
    return tuple(v for v in BOX[axis.kind] if axis.kind != "count" or v >= axis.least) or (Fraction(axis.least),)


def _at_most_between(of: Expr, one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> bool | None:
    try:
        return _at_most_at(of.at(one), of.at(other), {})
    except ParameterError:  # as in `_at_most_at`
        return None


def _box(axes: Sequence[Parameter], most: int = _MOST) -> list[dict[str, Fraction]]:
    whole = list(itertools.product(*(_values(p) for p in axes)))
    stride = max(1, -(-len(whole) // most)) | 1
    return [{p.name: v for p, v in zip(axes, values, strict=True)} for values in whole[::stride]]


def _at_most_at(left: Expr, right: Expr, point: Mapping[str, Fraction]) -> bool | None:
    """Whether left ≤ right at a point; None if a side is undefined there or both are beyond all floats."""
    try:
        low, high = left.at(point), right.at(point)
        exact_low, exact_high = low.rational(), high.rational()
        if exact_low is not None and exact_high is not None:
            return exact_low <= exact_high
        least, most = low.number(rounding="down"), high.number(rounding="up")
    except ParameterError:  # 0/0 or 1/0 at a corner of the box, or too many digits, as of large encoders
        return None
    if math.isinf(least) or math.isinf(most):
        return _at_most_beyond(low, high)
    bound = Fraction(most)
    return Fraction(least) <= bound + abs(bound) * _TOUCHING


def _at_most_beyond(low: Expr, high: Expr) -> bool | None:
    """Whether low ≤ high if one of them is beyond all floats; None if both are, on the same side."""
    if high.infinite or low.infinite:
        return high.infinite
    if math.isinf(high.number(rounding="up")):
        return None if math.isinf(low.number(rounding="up")) else True
    return None if math.isinf(high.number(rounding="down")) else True
