"""All specimens for auditors of black boxes: functions with claims that are known to be true or false."""

from __future__ import annotations

from mutants.additive import ADDITIVE
from mutants.aggregates import AGGREGATES
from mutants.budgets import BUDGETS
from mutants.counting import COUNTING
from mutants.hidden import HIDDEN
from mutants.published import AS_PUBLISHED
from mutants.released import RELEASED
from mutants.selection import SELECTION
from mutants.specimen import Specimen
from mutants.training import TRAINING

CLASSIC: tuple[Specimen, ...] = (*ADDITIVE, *SELECTION, *COUNTING, *HIDDEN)
REPORTED: tuple[Specimen, ...] = (*TRAINING, *AGGREGATES, *BUDGETS, *AS_PUBLISHED, *RELEASED)  # each with a twin
CATALOGUE: tuple[Specimen, ...] = (*CLASSIC, *REPORTED)


def specimen(name: str) -> Specimen:
    """Returns the specimen of that name.

    Raises:
        KeyError: There is none.
    """
    return {each.name: each for each in CATALOGUE}[name]
