"""Terminals that cannot show ε: what a character set lacks is spelt in ASCII instead of ending in a traceback."""

from __future__ import annotations

import codecs
import sys
import unicodedata
from typing import Final

_SPELT: Final = {
    "Σ": "Sum", "λ": "lambda", "Λ": "Lambda", "ϕ": "phi", "←": "<-", "⟨": "<", "⟩": ">", "≤": "<=", "≥": ">=",
    "≠": "!=", "≈": "~", "∞": "inf", "√": "sqrt", "∈": "in", "±": "+-", "∥": "||", "‖": "||", "×": "x",
    "·": "*", "−": "-", "–": "-", "—": "-", "′": "'", "″": "''", "…": "...", "⌈": "ceil(", "⌉": ")",
    "⌊": "floor(", "⌋": ")", "→": "->", "↔": "<->", "⇒": "=>", "“": '"', "”": '"', "„": '"', "’": "'", "‘": "'",
    "⊤": "T", "⋅": "*", "∼": "~", "∝": "prop. to", "ˇ": "",
    "½": "1/2", "⅛": "1/8", "¼": "1/4", "ℓ": "l", "ℝ": "R", "∑": "sum", "∏": "prod", "ü": "ue", "ä": "ae",
    "ö": "oe", "█": "#", "▌": "#", "│": "|", "─": "-", "✓": "yes", "✗": "no",
}  # fmt: skip
_POWERS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_INDICES: Final = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋₊", "0123456789-+")
_NAME: Final = "privcheck.spelt"


def spell(text: str) -> str:
    """Returns the text in ASCII.

    >>> spell("ε ≤ 0.5 at δ = 10⁻⁵")
    'epsilon <= 0.5 at delta = 10^-5'
    """
    made = ""
    raised = False
    for char in text:
        up = char in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺"
        if up:
            made += ("" if raised else "^") + char.translate(_POWERS)
        else:
            made += _spell_one(char)
        raised = up
    return made


def spell_what_is_missing() -> None:
    """Lets standard output and error spell what their character sets lack."""
    codecs.register_error(_NAME, _spell_error)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and getattr(stream, "errors", "") in (
            "strict",
            "surrogateescape",
            "backslashreplace",
        ):
            reconfigure(errors=_NAME)


def _spell_error(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spell(error.object[error.start : error.end]), error.end


def _spell_one(char: str) -> str:
    if char.isascii():
        return char
    if char in _SPELT:
        return _SPELT[char]
    lowered = char.translate(_INDICES)
    if lowered.isascii():
        return lowered
    if unicodedata.combining(char):
        return ""
    name = unicodedata.name(char, "")
    if name.startswith("GREEK") and " LETTER " in name:
        letter = name.split(" LETTER ")[1].split(" ")[0].lower()
        return letter.capitalize() if "CAPITAL" in name else letter
    return unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode() or "?"
