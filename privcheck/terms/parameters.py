"""Parameters and the fields of a declaration: kinds, ranges and domains, checked where the value is made.

Domains are checked twice: when the declaration is made, for every value its parameters may take (decided symbolically,
else refuted at a corner of their range or left open), and again, for those left open, at the values in use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from privcheck.errors import DeclarationError, ParameterError, UnknownNameError
from privcheck.terms.symbols import Domain, Exact, Expr, Span, exact, expression, is_in, keeps

Kind = Literal["count", "positive", "probability", "real"]
LEAST: Final = Fraction(1, 10**300)  # parameters end up as floats, which must neither vanish nor overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named number of a declaration or an agent.

    Attributes:
        name: As in the paper.
        default: Used if no value is given, exact.
        kind: "count" (a positive integer), "positive", "probability" (in (0, 1)) or "real" (at least 0).
        meaning: Its meaning, with its unit.
        least: The least value of a count; 1 for all other kinds.
        follows: If it is not given, computes its value from those of all parameters, in which it has its default: noise
            that follows from the claim. None: the default.

    Raises:
        DeclarationError: A field is of another type, the kind is unknown, `least` is not a whole number of at least 1,
            or `follows` is not a function.
        ParameterError: The default is not of the kind.
    """

    name: str
    default: Exact
    kind: Kind
    meaning: str
    least: int = 1
    follows: Callable[[Mapping[str, Fraction]], Fraction] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise DeclarationError(f"expected an identifier as a parameter's name, got {self.name!r}")
        if self.kind not in get_args(Kind):
            kinds = ", ".join(get_args(Kind))
            raise DeclarationError(f"parameter {self.name}: expected a kind of {kinds}, got {self.kind!r}")
        if not isinstance(self.meaning, str):
            raise DeclarationError(f"parameter {self.name}: expected its meaning in words, got {self.meaning!r}")
        if isinstance(self.least, bool) or not isinstance(self.least, int) or self.least < 1:
            raise DeclarationError(f"parameter {self.name}: expected `least` as a whole number, got {self.least!r}")
        if self.least > 1 and self.kind != "count":
            raise DeclarationError(f"parameter {self.name}: only a count has a `least`, this one is {self.kind}")
        follows: object = self.follows
        if follows is not None and not callable(follows):
            message = f"parameter {self.name}: expected `follows` as a function of all values, got {follows!r:.60}"
            raise DeclarationError(message)
        self.check(self.default)

    def check(self, given: Exact) -> Fraction:
        """Check a value and convert it to an exact number.

        Raises:
            ParameterError: The value is not a number of this kind.
        """
        try:
            value = exact(given)
        except ParameterError as error:
            raise type(error)(f"{self.name}: {error}", name=self.name, given=given) from None
        allowed = {
            "count": value.denominator == 1 and value >= self.least,
            "positive": value > 0,
            "probability": 0 < value < 1,
            "real": value >= 0,
        }[self.kind]
        if allowed and not (value == 0 or LEAST <= abs(value) <= 1 / LEAST):
            message = f"{self.name} ({self.meaning}): expected between 1e-300 and 1e300, got {str(given)[:40]}"
            raise ParameterError(message, name=self.name, given=given)
        if not allowed:
            wanted = {
                "count": f"a whole number, at least {self.least}",
                "positive": "a number above 0",
                "probability": "a number strictly between 0 and 1",
                "real": "a number, at least 0",
            }[self.kind]
            message = f"{self.name} ({self.meaning}): expected {wanted}, got {given}"
            raise ParameterError(message, name=self.name, given=given)
        return value


def resolve(parameters: tuple[Parameter, ...], given: Mapping[str, Exact], *, owner: str) -> dict[str, Fraction]:
    """Values of the parameters: the given ones, checked, and for the rest the defaults or the values that follow.

    Raises:
        UnknownNameError: A name is not among the parameters.
        ParameterError: A value is not of its parameter's kind, or the values are not a mapping.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(f"{owner}: expected values by name, got {given!r}", given=given)
    known = {p.name: p for p in parameters}
    if others := [name for name in given if not isinstance(name, str)]:
        message = f"{owner}: expected parameters by name, got {others[0]!r:.60}"
        raise ParameterError(f"{message}; write a text, {str(others[0])[:60]!r}", given=others[0])
    for name in given:
        if name not in known:
            raise UnknownNameError(f"parameter of {owner}", name, sorted(known))
    values = {name: p.check(given.get(name, p.default)) for name, p in known.items()}
    following = {name: p.follows for name, p in known.items() if p.follows is not None and name not in given}
    return values | {name: known[name].check(follows(values)) for name, follows in following.items()}


WORDS: Final[Mapping[Domain, str]] = {
    "count": "a whole number, at least 1",
    "whole": "a whole number, at least 0",
    "positive": "above 0 and finite",
    "nonnegative": "at least 0 and finite",
    "part of one": "at least 0 and below 1",
}
_REMEDIES: Final[Mapping[Domain, str]] = {
    "count": "round it with ceil or floor, or bound it below with maximum(1, …)",
    "whole": "round it with ceil or floor, or bound it below with maximum(0, …)",
    "positive": "bound it below with maximum(…)",
    "nonnegative": "bound it below with maximum(0, …)",
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
        domain: Its required domain.
        steps: H, if the number is a bound on every step `h`; None otherwise.
        where: Its owner: "release 'visits'".
        sizes: The sizes `n` of a batch, if the number may depend on them.
        outputs: Number of outputs, if it is a spread: with no outputs a spread of 0 is allowed.
    """

    what: str
    of: Expr
    domain: Domain
    steps: Expr | None = None
    where: str = ""
    sizes: Sizes | None = None
    outputs: Expr | None = None

    def at(self, where: str, sizes: Sizes | None = None, outputs: Expr | None = None) -> Condition:
        """Copy of the condition labelled with its owner."""
        return replace(self, where=where, sizes=sizes, outputs=outputs)


def is_proved(condition: Condition, parameters: Sequence[Parameter]) -> bool:
    """Whether the condition is proved for all values of the parameters; False if it is left open.

    Raises:
        DeclarationError: The condition is violated, for all parameters, or at a corner of their range. A spread of
            exactly 0 at a corner, or a number that is infinite there, leaves it open: the cost is then infinite, never
            too small.
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
    """Check a condition at values of the parameters.

    Raises:
        ParameterError: The condition is violated there.
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
    """Yield the defaults, with each count at its least values, and with all counts at their least."""
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
    """Yield the values, once for every step `h` of a bound; the first and the last ones if there are more."""
    if condition.steps is None or "h" not in condition.of.symbols:
        yield values
        return
    last = condition.steps.rational(values)
    if last is None or last.denominator != 1 or last < 1:
        return  # a condition of its own
    if most == _LONGEST and last > most:
        message = (
            f"its bound is evaluated at up to {most} steps, got {last}; write it so that its sign can be determined"
        )
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
    """The `least` of a count that would meet the condition, in words, if a slightly larger value does."""
    counts = [p.name for p in parameters if p.kind == "count" and p.name in condition.of.symbols & point.keys()]
    for name, more in itertools.product(counts, range(1, _CORNERS + 1)):
        later = {**point, name: point[name] + more}
        if all(is_in(condition.of, condition.domain, step) for step in _steps(condition, later, most=_CORNERS)):
            return f", or give the Parameter {name} `least={later[name]}`"
    return "" if condition.domain == "part of one" else ", or give the Parameter a `least`"


def _message(condition: Condition, given: str, least: str = "") -> str:
    remedy = _REMEDIES[condition.domain] + least
    return f"{condition.where}: expected {condition.what} {WORDS[condition.domain]}, got {given}; {remedy}"


def one_of(what: str, given: object, names: Iterable[str]) -> None:
    """Check that a word is one of a closed vocabulary.

    Raises:
        DeclarationError: The word is not in the vocabulary.
    """
    known = tuple(names)
    if not isinstance(given, str) or given not in known:
        raise DeclarationError(f"{what}: expected one of {', '.join(map(repr, known))}, got {given!r}")


def words_of(what: str, given: object, names: Iterable[str]) -> None:
    """Check a tuple of words of a closed vocabulary, without repetitions.

    Raises:
        DeclarationError: The value is not a tuple, or a word is unknown or repeated.
    """
    known = tuple(names)
    if not isinstance(given, tuple) or len(set(map(repr, given))) != len(given):
        message = f"{what}: expected a tuple of different words, such as ({known[0]!r},), got {given!r}"
        raise DeclarationError(message)
    for word in given:
        one_of(what, word, known)


def text(what: str, given: object, *, empty: bool = False) -> None:
    """Check a text.

    Raises:
        DeclarationError: The value is not a text, or it is empty although it must not be.
    """
    if not isinstance(given, str) or not (given.strip() or empty):
        raise DeclarationError(f"{what}: expected a text{'' if empty else ' that is not empty'}, got {given!r}")


def instance(what: str, given: object, kinds: tuple[type, ...], *, none: bool = False) -> None:
    """Check that a value is of exactly one of these types: the accountant does not know subclasses.

    Raises:
        DeclarationError: The value is of another type.
    """
    if not (type(given) in kinds or (none and given is None)):
        expected = ", ".join(kind.__name__ for kind in kinds)
        shown = f"the class {given.__name__}" if isinstance(given, type) else f"{given!r:.200}"
        raise DeclarationError(f"{what}: expected {expected}{' or None' if none else ''}, got {shown}")


def truth(what: str, given: object) -> None:
    """Check that a value is True or False.

    Raises:
        DeclarationError: The value is neither.
    """
    if not isinstance(given, bool):
        raise DeclarationError(f"{what}: expected True or False, got {given!r}")


def function(what: str, given: object, remedy: str) -> None:
    """Check that a value is callable, or None.

    Raises:
        DeclarationError: The value is not callable.
    """
    if given is not None and not callable(given):
        raise DeclarationError(f"{what}: expected a function or None, got {given!r}; {remedy}")


def several(what: str, given: object, kind: type) -> None:
    """Check a tuple (or list) of values of one type.

    Raises:
        DeclarationError: The value is not a tuple or list, or contains a value of another type.
    """
    if not isinstance(given, tuple | list):
        raise DeclarationError(
            f"{what}: expected a tuple of {kind.__name__}, got {given!r:.200}; mind the comma in (a,)"
        )
    for one in given:
        instance(what, one, (kind,))


def number(what: str, given: Any) -> Expr:
    """Convert to an exact number, or an expression in the parameters.

    Raises:
        ParameterError: The value is neither.
    """
    try:
        return expression(given)
    except ParameterError as error:
        named = isinstance(given, str) and given.isidentifier()
        hint = "; a parameter is not a string: import its symbol from privcheck.terms.symbols" if named else ""
        raise type(error)(f"{what}: {error}{hint}", name=what, given=given) from None
