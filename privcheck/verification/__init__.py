"""Verification of a claim about the releases: an upper bound, a lower bound with a witness, and findings.

Imports `declare`, `pricing`, `accounting` and the rooms below them; knows neither agents, reports nor commands.
Promises: upper bounds are never below the truth, lower bounds never above it, and a claim that neither bound decides
is undecided.
"""

from __future__ import annotations

from privcheck.verification.grounds import Ground
from privcheck.verification.rules import CODES, Finding, Severity
from privcheck.verification.verdict import Verification, judge, verify
from privcheck.verification.witness import Witness, find_witness, worst_witness

__all__ = [
    "CODES",
    "Finding",
    "Ground",
    "Severity",
    "Verification",
    "Witness",
    "find_witness",
    "judge",
    "verify",
    "worst_witness",
]
