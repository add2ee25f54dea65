"""Numbers of a declaration, and the domain each must keep: counts whole, spreads positive, bounds not negative.

Asked twice: when the declaration is made, for every value its parameters may take (decided symbolically, else refuted
at a corner of their range or left open), and for what is open again at the values it is used at.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from privcheck.errors import DeclarationError, ParameterError
from privcheck.parameters import Parameter
from privcheck.symbols import Domain, Expr, Span, is_in, keeps

WORDS: Final[Mapping[Domain, str]] = {
    "count": "a whole number, at least 1",
    "whole": "a whole number, at least 0",
    "positive": "above 0 and finite",
    "nonnegative": "at least 0 and finite",
    "part of one": "at least 0 and below 1",
}
_REMEDIES: Final[Mapping[Domain, str]] = {
    "count": "round it with ceil or floor, or keep it up with maximum(1, …)",
    "whole": "round it with ceil or floor, or keep it up with maximum(0, …)",
    "positive": "keep it up with maximum(…)",
    "nonnegative": "keep it up with maximum(0, …)",
    "part of one": "a probability of 1 or more claims nothing",
}
_LONGEST: Final = 10_000  # steps at which a bound is evaluated one by one
_CORNERS: Final = 3  # values from the least on that are tried for every count

Sizes = Callable[[Mapping[str, Fraction]], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A number and its domain.

    Attributes:
        what: The number in words: "the leaves of its tree".
        of: The number.
        domain: What it must be.
        steps: H, where the number is a bound on every step `h`; None elsewhere.
        where: Whose it is: "release 'visits'".
        sizes: The sizes `n` of a batch, where the number may depend on them.
        outputs: How often it leaves, where it is a spread: of no outputs a spread of 0 is none.
    """

    what: str
    of: Expr
    domain: Domain
    steps: Expr | None = None
    where: str = ""
    sizes: Sizes | None = None
    outputs: Expr | None = None

    def at(self, where: str, sizes: Sizes | None = None, outputs: Expr | None = None) -> Condition:
        """Returns the condition with whose it is."""
        return replace(self, where=where, sizes=sizes, outputs=outputs)


def is_proved(condition: Condition, parameters: Sequence[Parameter]) -> bool:
    """Returns whether the condition is proved for all values of the parameters; False where it is left open.

    Raises:
        DeclarationError: It is broken, for all parameters, or at a corner of their range. A spread of exactly 0 at a
            corner, or a number that is infinite there, leaves it open: the cost is then infinite, never too small.
    """
    spans = {p.name: Span(p.kind, p.least) for p in parameters if p.kind != "real"}
    if condition.sizes is not None:
        spans["n"] = Span("count")
    decided = keeps(condition.of, condition.domain, spans, steps=condition.steps)
    if decided is False:
        raise DeclarationError(_message(condition, str(condition.of)))
    if decided is True:
        return True
    for point in _corners(condition, parameters):
        for step in _steps(condition, point, most=_CORNERS):
            node = condition.of.at(step).simplified()
            if is_in(condition.of, condition.domain, step) is False and not _zero_spread(condition, step):
                shown = f"{condition.of} = {node}{_where(condition, step)}"
                raise DeclarationError(_message(condition, shown, _find_least(condition, point, parameters)))
    return False


def check_at(condition: Condition, values: Mapping[str, Fraction]) -> None:
    """Checks a condition at values of the parameters.

    Raises:
        ParameterError: It is broken there.
    """
    for size in (None,) if condition.sizes is None else condition.sizes(values):
        setting = values if size is None else {**values, "n": Fraction(size)}
        for step in _steps(condition, setting, most=_LONGEST):
            none = condition.outputs is not None and condition.outputs.rational(values) == 0
            if not (is_in(condition.of, condition.domain, step) or (none and _zero_spread(condition, step))):
                message = _message(condition, f"{condition.of}{_where(condition, step)}")
                raise ParameterError(message, name=min(condition.of.symbols, default=""), given=str(condition.of))


def _zero_spread(condition: Condition, values: Mapping[str, Fraction]) -> bool:
    return condition.domain == "positive" and is_in(condition.of, "nonnegative", values) is True


def _corners(condition: Condition, parameters: Sequence[Parameter]) -> Iterator[dict[str, Fraction]]:
    """Yields the defaults, with each count at its least values, and with all counts at their least."""
    used = condition.of.symbols | (condition.steps.symbols if condition.steps is not None else frozenset())
    defaults = {p.name: p.check(p.default) for p in parameters if p.name in used}
    if condition.sizes is not None and "n" in used:
        defaults["n"] = Fraction(1)
    counts = {p.name: Fraction(p.least) for p in parameters if p.kind == "count" and p.name in used}
    yield defaults
    for name, more in itertools.product(counts, range(_CORNERS)):
        yield {**defaults, name: counts[name] + more}
    if len(counts) > 1:
        yield {**defaults, **counts}


def _steps(condition: Condition, values: Mapping[str, Fraction], *, most: int) -> Iterator[Mapping[str, Fraction]]:
    """Yields the values, once for every step `h` of a bound; the first and the last ones where there are more."""
    if condition.steps is None or "h" not in condition.of.symbols:
        yield values
        return
    last = condition.steps.rational(values)
    if last is None or last.denominator != 1 or last < 1:
        return  # a condition of its own
    if most == _LONGEST and last > most:
        message = f"its bound is evaluated at up to {most} steps, got {last}; write it so that its sign can be seen"
        raise ParameterError(f"{condition.where}: {condition.what}: {message}", name="h", given=last)
    whole = int(last)
    for step in (
        range(1, whole + 1) if whole <= 2 * most else (*range(1, most + 1), *range(whole - most + 1, whole + 1))
    ):
        yield {**values, "h": Fraction(step)}


def _where(condition: Condition, values: Mapping[str, Fraction]) -> str:
    used = sorted(condition.of.symbols & values.keys())
    return " at " + ", ".join(f"{name} = {values[name]}" for name in used) if used else ""


def _find_least(condition: Condition, point: Mapping[str, Fraction], parameters: Sequence[Parameter]) -> str:
    """Returns which `least` of a count would do, in words, where a slightly larger one keeps the condition."""
    counts = [p.name for p in parameters if p.kind == "count" and p.name in condition.of.symbols & point.keys()]
    for name, more in itertools.product(counts, range(1, _CORNERS + 1)):
        later = {**point, name: point[name] + more}
        if all(is_in(condition.of, condition.domain, step) for step in _steps(condition, later, most=_CORNERS)):
            return f", or give the Parameter {name} `least={later[name]}`"
    return "" if condition.domain == "part of one" else ", or give the Parameter a `least`"


def _message(condition: Condition, given: str, least: str = "") -> str:
    remedy = _REMEDIES[condition.domain] + least
    return f"{condition.where}: expected {condition.what} {WORDS[condition.domain]}, got {given}; {remedy}"
