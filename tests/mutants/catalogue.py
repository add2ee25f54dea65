"""All specimens for auditors of black boxes: functions with claims that are known to be true or false."""

from __future__ import annotations

from mutants.additive import ADDITIVE
from mutants.counting import COUNTING
from mutants.hidden import HIDDEN
from mutants.selection import SELECTION
from mutants.specimen import Specimen

CATALOGUE: tuple[Specimen, ...] = (*ADDITIVE, *SELECTION, *COUNTING, *HIDDEN)


def specimen(name: str) -> Specimen:
    """Returns the specimen of that name.

    Raises:
        KeyError: There is none.
    """
    return {each.name: each for each in CATALOGUE}[name]
