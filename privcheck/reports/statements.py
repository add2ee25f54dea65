"""How a report says whose text was judged, and what the verdict says of each statement that the text prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from privcheck.reports.wording import as_sentence, capitalise
from privcheck.statements import JudgedStatement, Origin

_ORDER: Final = ("refuted", "undecided", "unproved", "holds, given", "holds", "not applicable")
_SAID: Final = {"holds": "holds", "holds, given": "holds, given what is stated"}
_MEANING: Final = {
    "printed": "Judged as printed: {}.",
    "published code": "What was judged is published code: {}.",
    "repaired": "What was judged is a repair of a text, and the verdict says nothing of the text itself: {}.",
    "reconstructed": "What was judged is a reconstruction, and the verdict says nothing of the paper: {}.",
    "own": "An algorithm of its declaration's author: {}.",
}


def say_statements(statements: Sequence[JudgedStatement]) -> str:
    """Returns what becomes of each statement, the refuted first; empty where none is about this system.

    "Lemma 5.1 is refuted; Corollary 5.2 is unproved".
    """
    about = sorted((one for one in statements if one.standing != "not applicable"), key=lambda s: rank(s.standing))
    return "; ".join(f"{one.statement.name} {_SAID.get(one.standing, f'is {one.standing}')}" for one in about)


def rank(standing: str) -> int:
    """Returns the place of a verdict on a statement, the gravest first."""
    return _ORDER.index(standing)


def say_origin(origin: Origin) -> str:
    """Returns whose text was judged, in a sentence or two."""
    said = _MEANING[origin.kind].format(origin.text)
    return f"{said} {as_sentence(capitalise(origin.changed))}" if origin.changed else said
