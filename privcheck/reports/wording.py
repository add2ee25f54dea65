"""Wording of numbers, exact expressions and statements, for pages and terminals.

Verification writes its findings with six digits, rounded to the nearest; tables and headlines have four, rounded in the
bound's safe direction. Side by side, 0.805 and 0.804834 look like two numbers, 7.077 and 7.078 like an error: here a
six-digit number in a sentence that is also a value of the report is replaced by the report's text for it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Final, Literal

from privcheck.declare.statements import JudgedStatement, Origin
from privcheck.reports.values import CertificateBrief, Report, Verified


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """Notation of roots and products in a language.

    Attributes:
        root: Opening of a root, including its bracket.
        opening: Opening brackets.
        closing: Closing brackets.
        times: Text between factors.
        group: Format of a sum as a factor, with "{}" for the sum.
    """

    root: str
    opening: str
    closing: str
    times: str
    group: str


EXACT = Notation(root="sqrt(", opening="(", closing=")", times="*", group="({})")
LATEX = Notation(root=r"\sqrt{", opening="{(", closing="})", times=" ", group=r"\left({}\right)")
_SUM = re.compile(r" [+-] ")


def join_roots(text: str, notation: Notation) -> str:
    r"""Join adjacent, multiplied roots into one; the rest of the text is unchanged.

    >>> join_roots("2*sqrt(2)*sqrt(H)*sqrt(H - 1)/3", EXACT), join_roots(r"\sqrt{2} \sqrt{H}", LATEX)
    ('2*sqrt(2*H*(H - 1))/3', '\\sqrt{2 H}')
    """
    done, start = "", text.find(notation.root)
    while start >= 0:
        factors, end = _factors(text, start, notation)
        if not factors:  # a bracket is never closed
            break
        inside = factors[0] if len(factors) == 1 else notation.times.join(_factor(part, notation) for part in factors)
        done += f"{text[:start]}{notation.root}{join_roots(inside, notation)}{text[end - 1]}"
        text = text[end:]
        start = text.find(notation.root)
    return done + text


def _factors(text: str, start: int, notation: Notation) -> tuple[list[str], int]:
    """The radicands of the product that begins here, and its end."""
    found: list[str] = []
    place = end = start
    while text.startswith(notation.root, place):
        inner = place + len(notation.root)
        closed = _closed(text, inner, notation)
        if closed is None or text.startswith(("**", "^"), closed):  # a power of a root is not its factor's
            break
        found.append(text[inner : closed - 1])
        end = closed
        place = end + len(notation.times) if text.startswith(notation.times, end) else len(text)
    return found, end


def _closed(text: str, inner: int, notation: Notation) -> int | None:
    """Position after the bracket that closes the one opened before `inner`; None if it is not closed."""
    depth = 1
    for place in range(inner, len(text)):
        depth += (text[place] in notation.opening) - (text[place] in notation.closing)
        if not depth:
            return place + 1
    return None


def _factor(part: str, notation: Notation) -> str:
    """A factor of a product: a sum is put in brackets."""
    level, sum_at_top = 0, False
    for place, letter in enumerate(part):
        level += (letter in notation.opening) - (letter in notation.closing)
        sum_at_top |= level == 0 and _SUM.match(part, place) is not None
    return notation.group.format(part) if sum_at_top else part


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
    """A value of an audit's evidence as text; empty if it is missing."""
    value = part.get(name)
    return value if isinstance(value, str) else "" if value is None else show_value(value)


def value_of(value: object) -> float | None:
    """The value as a number, including ±∞, or None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str):
        return {"inf": math.inf, "-inf": -math.inf}.get(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def figure(value: object, *, digits: int = 4, rounding: Rounding = "nearest") -> str:
    """A number with at most `digits` significant digits, rounded in the given direction.

    Args:
        value: A number, "inf", or any other value, which is written as text.
        digits: Significant digits; whole numbers keep all of their digits.
        rounding: "up" for upper bounds, "down" for lower bounds.

    >>> figure(4.00012, rounding="up"), figure(4.99999, rounding="down"), figure(1e-5), figure(20000), figure("inf")
    ('4.001', '4.999', '10⁻⁵', '20 000', '∞')
    """
    number = value_of(value)
    if number is not None:
        whole = isinstance(value, int) and abs(value) < 10**12
        return _group(str(value)) if whole else _number(number, digits, rounding)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if value is None else spell_out(str(value))


def ratio(value: float, *, rounding: Rounding) -> str:
    """A ratio to a claim; "1" only if it is exactly 1, because the verdict changes at 1.

    >>> ratio(1.0, rounding="up"), ratio(1.00000012, rounding="down"), ratio(0.99999, rounding="up")
    ('1', '1.0000001', '0.99999')
    """
    texts = (figure(value, digits=digits, rounding=rounding) for digits in range(4, 13))
    close = f"{'just above' if value > 1 else 'just below'} 1"
    return next((text for text in texts if text != "1" or value == 1), close)


def percent(value: float, *, rounding: Rounding = "nearest") -> str:
    """A share in per cent."""
    return f"{figure(value * 100, digits=3, rounding=rounding)} %"


def spell_out(text: str) -> str:
    """An exact expression in mathematical notation: Greek letters, roots, raised exponents, products without dots.

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
    """Rewrite 3e-05 as 3 × 10⁻⁵."""
    power = "10" + superscript(int(written[2]))
    return power if written[1] == "1" else f"{written[1]} × {power}"


def rounding_of(name: str) -> Rounding:
    """The rounding direction of a value of an audit or a ledger, by its name: bounds outward, others to the nearest."""
    parts = set(name.split("_"))
    if "over" in parts:  # a measured ratio
        return "nearest"
    if parts & {"lower", "reachable"}:
        return "down"
    return "up" if parts & {"upper", "claimed", "declared", "charged", "rho", "mu", "epsilon"} else "nearest"


def show_value(value: object, *, digits: int = 4, rounding: Rounding = "nearest") -> str:
    """Any JSON value in a line: numbers rounded, expressions spelled out, objects as "name = value"."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{spell_out(str(key))} = {show_value(item, digits=digits, rounding=rounding)}"
            for key, item in value.items()
        )
    if isinstance(value, list):
        return ", ".join(show_value(item, digits=digits, rounding=rounding) for item in value)
    return figure(value, digits=digits, rounding=rounding)


def keep_together(text: str) -> str:
    """The text with no-break spaces inside shares and guarantees.

    >>> keep_together("84 % at (1, 10⁻⁵)-DP, δ = 0").split(" ")[-1].split()
    ['δ', '=', '0']
    """
    return re.sub(r" (?=%)|(?<=\d,) (?=10⁻)|(?<=[εδ]) (?=[=≤])|(?<=[=≤]) (?=\d)", "\u00a0", text)


def capitalise(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    """The text with a capital first letter and a full stop."""
    return capitalise(text) + "." if text and not text.endswith(".") else capitalise(text)


def label(name: str) -> str:
    """A field's name in words: `noise_bound` is "noise bound"."""
    return spell_out(name.replace("_", " ")) if name not in _LETTERS else _LETTERS[name]


def say_holds(method: str, given: Sequence[str]) -> str:
    """Text of a claim that holds: proved or checked, or the names of the statements it assumes.

    >>> say_holds("proved", ()), say_holds("checked", ("own", "a law", "counts"))
    ('holds, proved', 'holds, given own, a law and 1 more')
    """
    return f"holds, {say_given(given)}" if given else f"holds, {method}"


def say_given(given: Sequence[str]) -> str:
    """The assumed author statements in short: the first clause of up to two names, and the number of others.

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
    """A whole number in raised digits."""
    return str(number).translate(_RAISED)


def strip_controls(text: str) -> str:
    """The text without control characters, which could drive a terminal or break a drawing."""
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


_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)")
_SAME = 1e-6  # relative: two bounds this close are one figure to a reader


def are_one(verify: Verified) -> bool:
    """Whether the upper and the lower ratio to the claim agree within a relative 1e-6."""
    upper, lower = verify.upper_ratio, verify.lower_ratio
    return math.isfinite(upper) and lower > 0 and upper - lower <= _SAME * upper


def say_ratios(verify: Verified) -> tuple[str, str]:
    """Upper and lower bound on cost over claim; if the two agree, the upper one twice."""
    above = ratio(verify.upper_ratio, rounding="up")
    return above, above if are_one(verify) else ratio(verify.lower_ratio, rounding="down")


def agree(report: Report, text: str) -> str:
    """Rewrite the numbers in a sentence of verification as elsewhere in the report."""
    texts = {f"{value:.6g}": said for value, said in _figures(report)}
    return _NUMBER.sub(lambda found: texts.get(found[0], found[0]), text)


def _figures(report: Report) -> Iterator[tuple[float, str]]:
    """Yield the values that a sentence may contain, with their texts; later ones take precedence."""
    for one in report.budget.releases if report.budget else ():
        for bound in (one.sensitivity.l1, one.sensitivity.l2):
            yield bound, figure(bound, rounding="up")
    for needed in report.calibrate.releases if report.calibrate else ():
        yield needed.ratio, ratio(needed.ratio, rounding="up")
    for method in report.budget.methods if report.budget else ():
        yield (
            method.epsilon,
            figure(method.epsilon, rounding="down" if method.direction.split(" ")[0] == "lower" else "up"),
        )
    if report.budget is not None:
        total = report.budget.guarantee
        for cost in (total.mu, total.rho, total.pure_epsilon, total.epsilon):
            if cost is not None:
                yield cost, figure(cost, rounding="up")
    if report.verify is not None:
        above, below = say_ratios(report.verify)
        yield report.verify.lower_ratio, below
        yield report.verify.upper_ratio, above


_ORDER: Final = ("refuted", "undecided", "unproved", "holds, given", "holds", "not applicable")
_SAID: Final = {"holds": "holds", "holds, given": "holds, given its stated facts"}
_MEANING: Final = {
    "printed": "Judged as printed: {}.",
    "published code": "The verdict is about published code: {}.",
    "repaired": "The verdict is about a repaired text, not the text itself: {}.",
    "reconstructed": "The verdict is about a reconstruction, not the paper: {}.",
    "own": "An algorithm of its declaration's author: {}.",
}


def say_statements(statements: Sequence[JudgedStatement]) -> str:
    """The verdict on each statement as text, the refuted first; empty if no statement applies to this system.

    "Lemma 5.1 is refuted; Corollary 5.2 is unproved".
    """
    about = sorted((one for one in statements if one.standing != "not applicable"), key=lambda s: rank(s.standing))
    return "; ".join(f"{one.statement.name} {_SAID.get(one.standing, f'is {one.standing}')}" for one in about)


def rank(standing: str) -> int:
    """Rank of a verdict on a statement, the gravest first."""
    return _ORDER.index(standing)


def say_certificate(brief: CertificateBrief, *, name: str = "") -> str:
    """What the independent checker said of a certificate, in a sentence.

    Args:
        brief: The checker's answer.
        name: Name of what was judged, where the reader knows it already: it is not said again.
    """
    if not brief.accepted:
        return as_sentence(brief.says)
    said = brief.says.removeprefix("accepted: ").removeprefix(f"{name}: ")
    return as_sentence(f"Checked independently, by a program that shares no code with privcheck: {said}")


def say_origin(origin: Origin) -> str:
    """The origin of the judged text, in a sentence or two."""
    said = _MEANING[origin.kind].format(origin.text)
    return f"{said} {as_sentence(capitalise(origin.changed))}" if origin.changed else said
