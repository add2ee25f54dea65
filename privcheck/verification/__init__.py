"""Verification: is the claim true of the releases? An upper bound, a lower bound with a witness, and findings."""

from privcheck.verification.findings import CODES, Finding, Severity
from privcheck.verification.grounds import Ground
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
