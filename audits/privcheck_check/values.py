"""Strict reading of certificates: JSON without floats, duplicate keys or surprises, numbers as integers or "p/q".

Every reader raises `Rejected` with the rule's name and a reason. Sizes are bounded before any arithmetic, so that a
hostile document costs no more than its own length.
"""

import json
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NoReturn

FILE_BYTES = 1 << 20  # a certificate has a few kilobytes; a refuting pair of long trajectories some hundred
DEPTH = 24  # nesting of lists and objects
DIGITS = 400  # of any integer, numerator or denominator
ITEMS = 100_000  # entries of any list or object

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(/[1-9][0-9]*)?")


class Rejected(Exception):  # noqa: N818 - a verdict, not a fault of the program
    """The certificate does not prove its conclusion: the rule that failed and why."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule}: {reason}")
        self.rule = rule
        self.reason = reason


class UnknownKind(Exception):  # noqa: N818 - likewise
    """The document is of a version, kind or rule set that this checker does not know: neither accepted nor rejected."""


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise Rejected("format", f"the key {key[:40]!r} occurs twice")
        found[key] = value
    return found


def _no_float(text: str) -> NoReturn:
    raise Rejected("format", f"{text[:40]} is neither an integer nor a string p/q")


def _integer(text: str) -> int:
    if len(text) > DIGITS:
        raise Rejected("format", f"an integer has more than {DIGITS} digits")
    return int(text)


def parse(data: bytes) -> object:
    """The document in `data`, strictly read: at most `FILE_BYTES` of UTF-8, nested at most `DEPTH` deep.

    Raises:
        Rejected: too large, too deep, no JSON, a duplicate key, a float, NaN, an integer of more than `DIGITS` digits.
    """
    if len(data) > FILE_BYTES:
        raise Rejected("format", f"more than {FILE_BYTES} bytes")
    depth = deepest = 0
    quoted = escaped = False
    for byte in data:  # before json reads it: its own recursion is not ours to bound
        if quoted:
            quoted = escaped or byte != 0x22
            escaped = not escaped and byte == 0x5C
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    if deepest > DEPTH:
        raise Rejected("format", f"nested more than {DEPTH} deep")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_pairs,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_integer,
        )
    except (ValueError, RecursionError) as fault:
        raise Rejected("format", "no JSON document in UTF-8") from fault


def canonical(value: object) -> bytes:
    """Canonical JSON: keys sorted, no spaces, ASCII only; the bytes whose SHA-256 is a certificate's digest."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def read_object(
    value: object, rule: str, required: Iterable[str], optional: Iterable[str] = ()
) -> Mapping[str, object]:
    """`value` as an object that has all `required` keys and no key outside `required` and `optional`."""
    if not isinstance(value, dict):
        raise Rejected(rule, "expected an object")
    needed = set(required)
    missing, unknown = needed - value.keys(), value.keys() - needed - set(optional)
    if missing:
        raise Rejected(rule, f"without {min(missing)!r}")
    if unknown:
        raise Rejected(rule, f"unknown field {min(unknown)[:40]!r}")
    return value


def read_list(value: object, rule: str, *, least: int = 0, most: int = ITEMS) -> list[object]:
    """`value` as a list of `least` to `most` entries."""
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise Rejected(rule, f"expected a list of {least} to {most} entries")
    return value


def read_text(value: object, rule: str, *, most: int = 2_000) -> str:
    """`value` as a string of at most `most` characters."""
    if not isinstance(value, str) or len(value) > most:
        raise Rejected(rule, f"expected a string of at most {most} characters")
    return value


def read_choice(value: object, rule: str, choices: Iterable[str]) -> str:
    """`value` as one of `choices`."""
    known = sorted(choices)
    if not isinstance(value, str) or value not in known:
        raise Rejected(rule, f"expected one of {', '.join(known)}")
    return value


def read_integer(value: object, rule: str, *, least: int | None = None, most: int | None = None) -> int:
    """`value` as an integer in [`least`, `most`]; `true` is no integer.

    Raises:
        Rejected: another type, more than `DIGITS` digits, out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise Rejected(rule, "expected an integer")
    if abs(value).bit_length() > 4 * DIGITS:
        raise Rejected(rule, f"an integer has more than {DIGITS} digits")
    if (least is not None and value < least) or (most is not None and value > most):
        raise Rejected(rule, f"expected an integer from {least} to {most}, got {str(value)[:40]}")
    return value


def read_fraction(
    value: object,
    rule: str,
    *,
    least: Fraction | int | None = None,
    most: Fraction | int | None = None,
    above: Fraction | int | None = None,
) -> Fraction:
    """`value`, an integer or a string "p/q" or "p", as a fraction in [`least`, `most`], greater than `above`.

    Raises:
        Rejected: another type or text, more than `DIGITS` digits, out of range.
    """
    if isinstance(value, str):
        if len(value) > 2 * DIGITS + 2 or not _NUMBER.fullmatch(value):
            raise Rejected(rule, "expected an integer or a string p/q")
        top, _, bottom = value.partition("/")
        number = Fraction(_integer(top), _integer(bottom) if bottom else 1)
    else:
        number = Fraction(read_integer(value, rule))
    if (least is not None and number < least) or (most is not None and number > most):
        raise Rejected(rule, f"expected a number from {least} to {most}, got {str(number)[:40]}")
    if above is not None and number <= above:
        raise Rejected(rule, f"expected a number above {above}, got {str(number)[:40]}")
    return number
