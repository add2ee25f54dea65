"""Parameters: named numbers with a kind and a range, checked where they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

from privcheck.errors import DeclarationError, ParameterError, UnknownNameError
from privcheck.symbols import Exact, exact

Kind = Literal["count", "positive", "probability", "real"]
LEAST: Final = Fraction(1, 10**300)  # parameters end up as floats, which must neither vanish nor overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named number of a declaration or an agent.

    Attributes:
        name: As in the paper.
        default: Used where nothing is given, exact.
        kind: "count" (a positive integer), "positive", "probability" (in (0, 1)) or "real" (at least 0).
        meaning: What it is, with its unit.
        least: The least value of a count; 1 of everything else.
        follows: Where it is not given, its value from those of all parameters, in which it has its default: noise that
            follows from what is claimed. None: the default.

    Raises:
        DeclarationError: A field is of another type, the kind is unknown, `least` is no whole number from 1 on, or
            `follows` is no function.
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
        """Returns the value exactly.

        Raises:
            ParameterError: It is not a number of this kind.
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
    """Returns the parameters' values: the given ones, checked, and defaults, or what follows, for the rest.

    Raises:
        UnknownNameError: A name is not among the parameters.
        ParameterError: A value is not of its parameter's kind, or they are no mapping.
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
