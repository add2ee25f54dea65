"""How numbers and exact expressions are written for readers, in pages and in terminals alike."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

from privcheck.reports.roots import EXACT, join_roots

Rounding = Literal["nearest", "up", "down"]

NOTHING = "–"
_MODES = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
_DUST = Decimal("1e-12")  # relative: 1.9999999999999998 is written as 2, and 1.0000000000004, a sum of roundings, as 1
_LONGEST = 48  # characters of the names that a verdict is given
_RAISED = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
_LETTERS = {
    "rho": "ρ", "epsilon": "ε", "delta": "δ", "beta": "β", "mu": "μ", "sigma": "σ", "alpha": "α", "oo": "∞",
    "l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞", "pure_epsilon": "pure ε", "inf": "∞", "Max": "max", "Min": "min",
}  # fmt: skip
_WORD = re.compile(r"(?<![A-Za-z0-9_])(" + "|".join(sorted(_LETTERS, key=len, reverse=True)) + r")(?![A-Za-z0-9_])")

_BITS_BELOW = re.compile(r"(?<!\w)bit_length\(([\w*/]+) - 1\)")
_BITS = re.compile(r"(?<!\w)bit_length\(([^()]+)\)")
_COEFFICIENT = re.compile(r"(?<![\w.^])(\d+(?:\.\d+)?)·(?!max|min|log|exp)(?=[^\W\d]|[(√⌈⌊])")  # 2·H is 2H, 2·10 stays
_MINUS = re.compile(r"(?<=[0-9A-Z)⌉⌋]) - (?=[0-9A-Za-z(√⌈⌊])")
_POWER_OF_TEN = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]\d{2,3})(?!\w)")


def words(part: Mapping[str, Any], name: str) -> str:
    """Returns a figure of an audit's evidence in words, empty where there is none."""
    value = part.get(name)
    return value if isinstance(value, str) else "" if value is None else show_value(value)


def value_of(value: object) -> float | None:
    """Returns a number, ±∞ included, or None where it is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str):
        return {"inf": math.inf, "-inf": -math.inf}.get(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def figure(value: object, *, digits: int = 4, rounding: Rounding = "nearest") -> str:
    """Returns a number in at most `digits` significant digits, rounded the way a bound errs.

    Args:
        value: A number, "inf", or anything else, which is written as it is.
        digits: Significant digits; whole numbers keep all of theirs.
        rounding: "up" for upper bounds, "down" for lower bounds.

    >>> figure(4.00012, rounding="up"), figure(4.99999, rounding="down"), figure(1e-5), figure(20000), figure("inf")
    ('4.001', '4.999', '10⁻⁵', '20\u202f000', '∞')
    """
    number = value_of(value)
    if number is not None:
        whole = isinstance(value, int) and abs(value) < 10**12
        return _group(str(value)) if whole else _number(number, digits, rounding)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if value is None else spell_out(str(value))


def ratio(value: float, *, rounding: Rounding) -> str:
    """Returns a ratio to a claim; never "1" unless it is exactly 1, because at 1 the verdict turns.

    >>> ratio(1.0, rounding="up"), ratio(1.00000012, rounding="down"), ratio(0.99999, rounding="up")
    ('1', '1.0000001', '0.99999')
    """
    texts = (figure(value, digits=digits, rounding=rounding) for digits in range(4, 13))
    close = f"{'just above' if value > 1 else 'just below'} 1"
    return next((text for text in texts if text != "1" or value == 1), close)


def percent(value: float, *, rounding: Rounding = "nearest") -> str:
    """Returns a share in per cent."""
    return f"{figure(value * 100, digits=3, rounding=rounding)} %"


def spell_out(text: str) -> str:
    """Returns an exact expression as people write it: Greek letters, roots, raised exponents, products without dots.

    >>> spell_out("(rho)-zCDP"), spell_out("sqrt(2)*sqrt(H)"), spell_out("2*H**2/rho"), spell_out("H**(5/2)")
    ('ρ-zCDP', '√(2H)', '2H²/ρ', 'H^(5/2)')
    >>> spell_out("3*H*Max(1, bit_length(K - 1))/epsilon"), spell_out("at δ = 3e-05")
    ('3H·max(1, ⌈log₂ K⌉)/ε', 'at δ = 3 × 10⁻⁵')
    """
    text = join_roots(text, EXACT)
    text = re.sub(r"(?<![A-Za-z0-9_])sqrt\((\w+)\)", r"√\1", text).replace("sqrt(", "√(")
    text = _BITS_BELOW.sub(r"⌈log₂ \1⌉", text)  # the bits of K − 1
    text = _BITS.sub(r"(⌊log₂ \1⌋ + 1)", text)
    text = re.sub(r"\*\*\((\d+/\d+)\)", r"^(\1)", text)
    text = re.sub(r"\*\*(?:\((-?\d+)\)|(\d+)(?![\w.]))", lambda power: superscript(int(power[1] or power[2])), text)
    text = text.replace("**", "^").replace("*", "·")
    text = _WORD.sub(lambda name: _LETTERS[name[1]], text)
    text = _COEFFICIENT.sub(r"\1", text)
    text = _MINUS.sub(" − ", text)
    text = _POWER_OF_TEN.sub(_raise_ten, text)
    return re.sub(r"(?<!\w)\((\w+)\)-(?=[A-Za-z])", r"\1-", text)


def _raise_ten(written: re.Match[str]) -> str:
    """Returns 3e-05 as 3 × 10⁻⁵."""
    power = "10" + superscript(int(written[2]))
    return power if written[1] == "1" else f"{written[1]} × {power}"


def rounding_of(name: str) -> Rounding:
    """Returns which way a figure of an audit or a ledger errs, by its name: bounds outward, else to the nearest."""
    parts = set(name.split("_"))
    if "over" in parts:  # a measured ratio
        return "nearest"
    if parts & {"lower", "reachable"}:
        return "down"
    return "up" if parts & {"upper", "claimed", "declared", "charged", "rho", "mu", "epsilon"} else "nearest"


def show_value(value: object, *, digits: int = 4, rounding: Rounding = "nearest") -> str:
    """Returns any JSON value in a line: numbers rounded, expressions spelled out, objects as "name = value"."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{spell_out(str(key))} = {show_value(item, digits=digits, rounding=rounding)}"
            for key, item in value.items()
        )
    if isinstance(value, list):
        return ", ".join(show_value(item, digits=digits, rounding=rounding) for item in value)
    return figure(value, digits=digits, rounding=rounding)


def keep_together(text: str) -> str:
    """Returns a text in which no line breaks within a share or a guarantee.

    >>> keep_together("84 % at (1, 10⁻⁵)-DP, δ = 0").split(" ")[-1].split()
    ['δ', '=', '0']
    """
    return re.sub(r" (?=%)|(?<=\d,) (?=10⁻)|(?<=[εδ]) (?=[=≤])|(?<=[=≤]) (?=\d)", "\u00a0", text)


def capitalise(text: str) -> str:
    """Returns the text with a capital letter in front, as after a full stop."""
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    """Returns the text with a capital letter and a full stop, where it has none."""
    return capitalise(text) + "." if text and not text.endswith(".") else capitalise(text)


def label(name: str) -> str:
    """Returns a field's name in words: `noise_bound` is "noise bound"."""
    return spell_out(name.replace("_", " ")) if name not in _LETTERS else _LETTERS[name]


def say_holds(method: str, given: Sequence[str]) -> str:
    """The words for a claim that holds: proved or checked, or only the names that it is given.

    >>> say_holds("proved", ()), say_holds("checked", ("own", "a law", "counts"))
    ('holds, proved', 'holds, given own, a law and 1 more')
    """
    return f"holds, {say_given(given)}" if given else f"holds, {method}"


def say_given(given: Sequence[str]) -> str:
    """Returns whose sensitivity or price a verdict is given, shortly: the first clause of each name, and how many more.

    >>> say_given(("counts and sums of the clusters, points in [−1, 1]²",)), say_given(("own",) * 3)
    ('given counts and sums of the clusters', 'given own, own and 1 more')
    """
    named: list[str] = []
    for name in given:
        clause = name.split(", ")[0]
        short = clause if len(clause) <= _LONGEST else f"{clause[: _LONGEST - 1].rstrip()}…"
        if named and len(", ".join([*named, short])) > _LONGEST:
            break
        named.append(short)
        if len(named) == 2:
            break
    more = len(given) - len(named)
    return "given " + ", ".join(named) + (f" and {more} more" if more else "")


def superscript(number: int) -> str:
    """Returns a whole number in raised digits."""
    return str(number).translate(_RAISED)


def strip_controls(text: str) -> str:
    """Returns a text without control characters, which could drive a terminal or break a drawing."""
    return "".join(" " if character in "\t\r\n" else character for character in text if _harmless(character))


def _harmless(character: str) -> bool:
    # Cc, Cf, Cs, Co, Cn: controls, direction marks, halves of pairs, private and unassigned code points
    return character in "\t\r\n" or not unicodedata.category(character).startswith("C")


def _number(number: float, digits: int, rounding: Rounding) -> str:
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if not number:
        return "0"
    short = _significant(Decimal(repr(number)), digits, rounding)
    exponent = short.adjusted()
    if -4 < exponent < 9:
        return _group(_trim(short))
    mantissa = _trim(short.scaleb(-exponent))
    power = "10" + superscript(exponent)
    return {"1": power, "-1": "−" + power}.get(mantissa, f"{_group(mantissa)} × {power}")


def _significant(number: Decimal, digits: int, rounding: Rounding) -> Decimal:
    last = number.adjusted() - digits + 1
    if number.adjusted() < 9:
        last = min(last, 0)  # whole numbers keep their digits until they are written with a power of ten
    nearest = number.quantize(Decimal(1).scaleb(last), rounding=ROUND_HALF_EVEN)
    if abs(nearest - number) <= abs(number) * _DUST:
        return nearest
    return number.quantize(Decimal(1).scaleb(last), rounding=_MODES[rounding])


def _trim(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _group(text: str) -> str:
    sign, digits = ("−", text[1:]) if text.startswith("-") else ("", text)
    whole, point, decimals = digits.partition(".")
    if len(whole) > 4:
        whole = f"{int(whole):,}".replace(",", "\u202f")
    return sign + whole + point + decimals
