"""Terms of a declaration: read from JSON, evaluated to rational enclosures at the parameters' values.

A term is a fraction, a symbol or a tuple (operation, arguments). The only way to a value is interval arithmetic on
fractions; irrational operations go through `enclosures`, rounded outward.
"""

import re
from collections.abc import Container, Mapping
from fractions import Fraction
from math import isqrt
from typing import TypeAlias, Union

from privcheck_check import enclosures
from privcheck_check.values import Rejected, read_fraction, read_list

Term: TypeAlias = Union[Fraction, str, tuple["Term", ...]]  # noqa: UP007 - mypy wants a recursive alias this way
Ends: TypeAlias = tuple[Fraction, Fraction]

BITS = 20_000  # of a numerator or denominator on the way
WORK = 500_000  # steps of arithmetic that one certificate may take, some 10 µs each
POWER = 64  # largest exponent
STEPS = 4_000  # summands of a sum over steps
ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)
_MANY = {"+": 64, "*": 64, "max": 8, "min": 8}
_COUNT = {"-": 2, "/": 2, "^": 2, "sqrt": 1, "log": 1, "exp": 1, "bit_length": 1}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


_left = [WORK]


def allow() -> None:
    """Begin a certificate: the whole of `WORK` is left again."""
    _left[0] = WORK


def spend(steps: int) -> None:
    """Take `steps` of the work left, so that a hostile certificate is refused before it takes minutes."""
    _left[0] -= steps
    if _left[0] < 0:
        raise Rejected("work", f"more than {WORK} steps of arithmetic")


def read_term(value: object, rule: str, symbols: Container[str]) -> Term:
    """A term over `symbols`: an integer, "p/q", a symbol's name or [operation, argument, …].

    Raises:
        Rejected: an unknown operation or symbol, a wrong number of arguments, an exponent that is no multiple of 1/2.
    """
    if isinstance(value, list):
        operation, *rest = read_list(value, rule, least=2, most=65)
        if not isinstance(operation, str) or operation not in (_MANY | _COUNT):
            raise Rejected(rule, f"unknown operation {str(operation)[:20]!r}")
        if not 0 < len(rest) <= _MANY.get(operation, 0) and len(rest) != _COUNT.get(operation):
            raise Rejected(rule, f"{operation} with {len(rest)} arguments")
        arguments = tuple(read_term(each, rule, symbols) for each in rest)
        if operation == "^":
            exponent = arguments[1]
            if not isinstance(exponent, Fraction) or abs(exponent) > POWER or exponent.denominator > 2:
                raise Rejected(rule, f"an exponent is a multiple of 1/2, at most {POWER}")
        return (operation, *arguments)
    if isinstance(value, str) and NAME.fullmatch(value):
        if value not in symbols:
            raise Rejected(rule, f"unknown symbol {value!r}")
        return value
    return read_fraction(value, rule)


def bounded(value: Fraction) -> Fraction:
    """`value`, if it has at most `BITS` bits above and below the line; work in proportion to its length."""
    size = value.numerator.bit_length() + value.denominator.bit_length()
    if size > BITS:
        raise Rejected("evaluate", "numbers grow too large")
    spend(1 + size // 200)
    return value


def _root(value: Fraction, *, up: bool) -> Fraction:
    """√value rounded to at least 192 significant bits, exact for squares of fractions."""
    scaled = value.numerator * value.denominator << 384
    root = isqrt(scaled)
    return Fraction(root + (up and root * root != scaled), value.denominator << 192)


def square_root(ends: Ends) -> Ends:
    """Enclosure of the square root."""
    if ends[0] < 0:
        raise Rejected("evaluate", "a square root of a negative number")
    return _root(ends[0], up=False), _root(ends[1], up=True)


def exponential(ends: Ends) -> Ends:
    """Enclosure of the exponential, with small relative error for negative arguments too."""

    def one(x: Fraction) -> Ends:
        if abs(x) > enclosures.LARGEST:
            raise Rejected("evaluate", f"an exponent beyond {enclosures.LARGEST}")
        low, high = enclosures.fractions(enclosures.exp(enclosures.enclose(abs(x))))
        return (low, high) if x >= 0 else (1 / high, 1 / low)

    return one(ends[0])[0], one(ends[1])[1]


def logarithm(ends: Ends) -> Ends:
    """Enclosure of the natural logarithm: log p − log q, each in absolute error."""

    def one(x: Fraction) -> Ends:
        if x <= 0:
            raise Rejected("evaluate", "a logarithm of a number that is not positive")
        if x == 1:
            return ZERO, ZERO  # exactly: an end below 0 would forbid the root of it
        top, bottom = (enclosures.log((part << enclosures.BITS,) * 2) for part in (x.numerator, x.denominator))
        return enclosures.fractions((top[0] - bottom[1], top[1] - bottom[0]))

    return one(ends[0])[0], one(ends[1])[1]


def add(*terms: Ends) -> Ends:
    """Enclosure of a sum."""
    low = high = ZERO
    for each in terms:
        low, high = bounded(low + each[0]), bounded(high + each[1])
    return low, high


def multiply(left: Ends, right: Ends) -> Ends:
    """Enclosure of a product."""
    products = [a * b for a in left for b in right]
    return bounded(min(products)), bounded(max(products))


def invert(ends: Ends) -> Ends:
    """Enclosure of 1/x, x away from zero."""
    if ends[0] <= 0 <= ends[1]:
        raise Rejected("evaluate", "a division by zero")
    return 1 / ends[1], 1 / ends[0]


def _power(base: Ends, exponent: Fraction) -> Ends:
    if exponent.denominator == 2:
        return _power(square_root(base), 2 * exponent)
    if exponent < 0:
        return invert(_power(base, -exponent))
    times = int(exponent)
    if times * max(end.numerator.bit_length() + end.denominator.bit_length() for end in base) > BITS:
        raise Rejected("evaluate", "numbers grow too large")
    low, high = sorted(bounded(end**times) for end in base)
    return (ZERO if times and times % 2 == 0 and base[0] < 0 < base[1] else low), high


def whole(ends: Ends) -> int:
    """The integer that `ends` encloses exactly, not negative."""
    if ends[0] != ends[1] or ends[0].denominator != 1 or ends[0] < 0:
        raise Rejected("evaluate", "expected a whole number, not negative")
    return int(ends[0])


def evaluate(term: Term, at: Mapping[str, Fraction]) -> Ends:
    """Rational enclosure of `term` at the values `at`.

    Raises:
        Rejected: a division by zero, a root or logarithm out of its domain, numbers of more than `BITS` bits.
    """
    if isinstance(term, Fraction):
        return term, term
    if isinstance(term, str):
        return at[term], at[term]
    operation = term[0]
    if operation == "sum":  # made by sensitivities only: ("sum", count, body), body in the step h
        count = whole(evaluate(term[1], at))
        if count > STEPS:
            raise Rejected("evaluate", f"more than {STEPS} steps")
        return add(*(evaluate(term[2], {**at, "h": Fraction(h)}) for h in range(1, count + 1)))
    ends = [evaluate(each, at) for each in term[1:]]
    match operation:
        case "+":
            return add(*ends)
        case "-":
            return add(ends[0], (-ends[1][1], -ends[1][0]))
        case "*":
            value = ends[0]
            for each in ends[1:]:
                value = multiply(value, each)
            return value
        case "/":
            return multiply(ends[0], invert(ends[1]))
        case "^":
            inner, exponent = term[1], ends[1][0]
            if isinstance(inner, tuple) and inner[0] == "^" and exponent == 2 and inner[2] == HALF:  # (√x)² = x
                base = evaluate(inner[1], at)
                return base if base[0] >= 0 else _power(ends[0], exponent)
            return _power(ends[0], exponent)
        case "sqrt":
            return square_root(ends[0])
        case "log":
            return logarithm(ends[0])
        case "exp":
            return exponential(ends[0])
        case "bit_length":
            size = whole(ends[0]).bit_length()
            return Fraction(size), Fraction(size)
        case _:
            pick = max if operation == "max" else min
            return pick(low for low, _ in ends), pick(high for _, high in ends)
