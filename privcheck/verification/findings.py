"""Findings: what is wrong, loose or worth knowing about a declaration, with stable codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from privcheck.brief import Brief
from privcheck.verification.witness import Witness

Severity = Literal["critical", "theoretical", "negligible"]

CODES: Final[dict[str, str]] = {
    "claim-refuted": "two neighbouring datasets lose more than the claim allows",
    "claim-unproved": "the composed cost exceeds the claim, and no witness exceeds it",
    "claim-not-for-all-parameters": "the claim holds at the given parameters and fails at others",
    "claim-data-dependent": "the claimed numbers are computed from the data, and say nothing of its neighbours",
    "claim-order-only": "the claim is stated up to an unstated constant",
    "wrong-relation": "the stated sensitivity is the one of another neighbouring relation",
    "noise-shared": "one draw of noise hides several values, whose difference is therefore exact",
    "message-as-sum": "each message leaves the shuffler, where the proof analyses their sum",
    "tree-levels": "the proof counts fewer tree nodes for a user than there are",
    "tree-levels-slack": "the proof counts more tree nodes for a user than there are",
    "release-uncounted": "the proof never charges something that leaves",
    "release-repeated": "something leaves more often than the proof charges it",
    "release-missing": "the proof charges outputs that never leave",
    "budget-exceeded": "a release costs more than the paper gives it",
    "epsilon-sum": "the releases' budgets add up to more than the claim",
    "delta-sum": "the releases' failure probabilities add up to more than the claim's",
    "basic-composition": "composing the same releases exactly costs less, for free",
    "assumption-violated": "the paper's own setting breaks a bound that the sensitivities rest on",
    "assumption-unenforced": "nothing in the algorithm as printed enforces a bound that the sensitivities rest on",
    "candidate-refused": "a pair that the declaration gives as a witness is not a pair of neighbours",
    "joint-precondition": "actions depend on others' data past the billboard, so that joint DP does not follow",
    "claim-slack": "the releases cost less than the claim: noise could be saved",
    "stated-sensitivity-refuted": "a pair of neighbours moves the statistic further than the paper states",
    "stated-sensitivity-slack": "the paper states more than any pair of neighbours moves the statistic",
    "stated-sensitivity-undecided": "stated and derived sensitivity could not be compared for all parameters",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Finding(Brief):
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
