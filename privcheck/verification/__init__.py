"""Verification of a claim about the releases: an upper bound, a lower bound with a witness, and findings.

Imports `declare`, `pricing`, `accounting` and the rooms below them; knows neither agents, reports nor commands.
Promises: upper bounds are never below the truth, lower bounds never above it, and a claim that neither bound decides
is undecided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privcheck.support.lazy import load_lazily

if TYPE_CHECKING:
    from privcheck.verification.findings import CODES, Finding, Ground, PlainWitness, Severity, Witness
    from privcheck.verification.verdict import Verification, judge, verify
    from privcheck.verification.witness import find_witness, worst_witness

# loaded when first used: reports that are read need the findings of this room, and neither NumPy nor SymPy
_HOMES = (
    ("privcheck.verification.findings", ("CODES", "Finding", "Ground", "PlainWitness", "Severity", "Witness")),
    ("privcheck.verification.verdict", ("Verification", "judge", "verify")),
    ("privcheck.verification.witness", ("find_witness", "worst_witness")),
)

__all__ = [
    "CODES",
    "Finding",
    "Ground",
    "PlainWitness",
    "Severity",
    "Verification",
    "Witness",
    "find_witness",
    "judge",
    "verify",
    "worst_witness",
]

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
