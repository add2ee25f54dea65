"""Validation and canonical form of exact numbers, names and texts of the ledger."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from privcheck.accounting.reals import decimal
from privcheck.errors import ParameterError
from privcheck.terms.symbols import exact, to_float

_LEAST: Final = Fraction(1, 10**30)
_MOST: Final = Fraction(10**30)
_LONGEST: Final = 64  # characters of a number, as it was given or as `write_number` writes it
_PLAIN: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|\d+/\d+", re.ASCII)  # no 1_000, no ١
_TURNS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NAME: Final = re.compile(r"[^\W_][\w.-]{0,63}")
_PLACES: Final = 60  # of a number that is written as a decimal
_BITS: Final = 128  # of a denominator that is kept
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def read_number(name: str, value: object) -> Fraction:
    """Read a number of at least 0: an int, a decimal string, a Decimal, or a float by its shortest decimal form.

    It has at most 15 significant digits, so that nothing is rounded where a law is computed from it in floats.

    Raises:
        ParameterError: The value is not such a number, or neither 0 nor between 1e-30 and 1e30.
    """
    number = read_fraction(name, value)
    if isinstance(value, str) and "/" in value:
        message = f"expected {name} as a decimal, got {value[:60]!r}: write {float(number):.15g}"
        raise ParameterError(message, name=name, given=value)
    if decimal(to_float(number, rounding="nearest")) != number:
        message = f"expected {name} as a decimal of at most 15 digits, got {str(value)[:60]}: longer ones are rounded"
        raise ParameterError(message, name=name, given=value)
    return number


def read_fraction(name: str, value: object) -> Fraction:
    """Read a number of at least 0, which may also be written as "1/3".

    Raises:
        ParameterError: The value is not such a number, or neither 0 nor between 1e-30 and 1e30.
    """
    wanted = f"expected {name} as a number that is 0 or from 1e-30 to 1e30, such as 0.01"
    text = str(value) if isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool) else value
    try:
        plain = isinstance(text, str) and len(text) <= _LONGEST and _PLAIN.fullmatch(text)
        number = exact(text if plain else "not a number")
    except ParameterError:
        raise ParameterError(f"{wanted}, got {str(value)[:60]!r}", name=name, given=value) from None
    if number != 0 and not _LEAST <= number <= _MOST:
        raise ParameterError(f"{wanted}, got {str(value)[:60]!r}", name=name, given=value)
    return number


def write_number(number: Fraction) -> str:
    """Exact text of a number: a decimal where there is one, p/q otherwise.

    >>> write_number(Fraction(1, 100)), write_number(Fraction(1, 3))
    ('0.01', '1/3')
    """
    return _write(number.numerator, number.denominator)


@lru_cache(maxsize=4096)
def _write(numerator: int, denominator: int) -> str:
    if denominator == 1:
        return str(numerator)
    rest, twos, fives = denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > _PLACES:
        return f"{numerator}/{denominator}"
    digits = str(abs(numerator) * 10**places // denominator).rjust(places + 1, "0")
    sign = "-" if numerator < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def round_up(number: Fraction) -> Fraction:
    """Round a number with a long denominator, such as an approximated irrational cost, up to 18 digits.

    >>> from fractions import Fraction
    >>> long = Fraction(1, 3**90)
    >>> round_up(Fraction(1, 900)), long < round_up(long) < long * (1 + Fraction(1, 10**17))
    (Fraction(1, 900), True)
    """
    if number.denominator.bit_length() <= _BITS:
        return number
    places = 18 + len(str(number.denominator)) - len(str(number.numerator))
    return Fraction(-(-number * 10**places // 1), 10**places)


def read_name(what: str, value: object) -> str:
    """Read the name of a dataset, a grant or a person.

    Raises:
        ParameterError: The value is not 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit
            first.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value) or unicodedata.normalize("NFKC", value) != value:
        message = f"expected {what} as 1 to 64 letters, digits, '.', '-' and '_', a letter or digit first"
        raise ParameterError(f"{message}; got {str(value)[:80]!r}", name=what, given=value)
    return value


def read_text(what: str, value: object, *, most: int = 200) -> str:
    """Read a text on one line.

    Raises:
        ParameterError: The text is empty, too long, or has a control character or one that changes the text's
            direction.
    """
    bad = not isinstance(value, str) or not 0 < len(value) <= most
    if bad or not is_plain(str(value)):
        message = f"expected {what} as 1 to {most} characters without control characters, got {str(value)[:80]!r}"
        raise ParameterError(message, name=what, given=value)
    return str(value)


def is_plain(text: str) -> bool:
    """Whether a text is one line without control characters and characters that change its direction.

    >>> is_plain("δ of José"), is_plain(f"a{chr(0x202E)}b")
    (True, False)
    """
    return not any(char in _TURNS or unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in text)


def write_time(moment: datetime) -> str:
    """Text of a moment in UTC; texts sort as the moments do."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def canonical(value: Any) -> str:
    """Canonical JSON of a value: the form that is stored and hashed."""
    return _ENCODER.encode(value)


def digest(*parts: str) -> str:
    """BLAKE2b-256 of texts, each prefixed with its length."""
    state = hashlib.blake2b(digest_size=32)
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()
