"""Findings: what is wrong, loose or worth knowing about a declaration, with stable codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from privcheck.verification.witness import Witness

Severity = Literal["critical", "theoretical", "negligible"]

CODES: Final[dict[str, str]] = {
    "claim-refuted": "two neighbouring datasets lose more than the claim allows",
    "claim-unproved": "the composed cost exceeds the claim, and no witness exceeds it",
    "claim-not-for-all-parameters": "the claim holds at the given parameters and fails at others",
    "noise-shared": "one draw of noise hides several values, whose difference is therefore exact",
    "claim-slack": "the releases cost less than the claim: noise could be saved",
    "stated-sensitivity-refuted": "a pair of neighbours moves the statistic further than the paper states",
    "stated-sensitivity-slack": "the paper states more than any pair of neighbours moves the statistic",
    "stated-sensitivity-undecided": "stated and derived sensitivity could not be compared for all parameters",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    Attributes:
        code: One of `CODES`; stable, with a section in the documentation.
        severity: "critical": a formal guarantee is void; "theoretical": a proof step or its economy is affected, not
            the guarantee; "negligible": good to know.
        where: The release, or "claim".
        message: What was found, with figures.
        evidence: The figures by name.
        witness: The pair of neighbours that shows it, where there is one.
    """

    code: str
    severity: Severity
    where: str
    message: str
    evidence: dict[str, str] = field(default_factory=dict)
    witness: Witness | None = None
