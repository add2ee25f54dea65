"""The verdict on a claim: an upper and a lower bound on the loss, in the claim's own unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privcheck.accounting import Account, account
from privcheck.declaration import Declaration
from privcheck.errors import DeclarationError
from privcheck.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.symbols import Expr, same
from privcheck.verification.deciding import decide
from privcheck.verification.findings import Finding
from privcheck.verification.sensitivity import stated_sensitivities
from privcheck.verification.witness import Witness, find_witness

# Ratios that are exactly 1 come out as 1 ± a few roundings when they are computed in floats; exact rationals decide
# first, and only an irrational ratio within this distance of 1 is left undecided.
_NEAR = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdict about the releases on which the proof rests.

    Attributes:
        algorithm: Whose.
        claim: In words.
        verdict: "holds" (upper ≤ claim), "fails" (a witness exceeds the claim), "undecided" (never a pass).
        method: "proved" for all parameters, "checked" at the given ones, "witness" where a pair refutes.
        joint: What follows for joint DP; None where the claim is not about it.
        upper_ratio: Composed cost over claim, rounded up; ∞ where the accountant has no finite bound.
        lower_ratio: The witness's loss over claim, rounded down; 0 without a witness.
        findings: Everything found, the gravest first.
        witness: The worst pair known.
        repair: The least change that makes a failing claim true or takes the slack out of a loose one, in words.
        account: The composed cost with its derivation.
    """

    algorithm: str
    claim: str
    verdict: Literal["holds", "fails", "undecided"]
    method: Literal["proved", "checked", "witness"]
    joint: Literal["follows", "unproved", "refuted"] | None
    upper_ratio: float
    lower_ratio: float
    findings: tuple[Finding, ...]
    witness: Witness | None
    repair: str
    account: Account


def verify(declaration: Declaration, values: Mapping[str, Fraction]) -> Verification:
    """Returns whether the declared releases satisfy the claim.

    Upper bound: the composed cost at the derived sensitivities. Lower bound: the exact loss of a pair of neighbours.
    Upper ≤ claim: holds, proved if SymPy decides it for all parameters, else checked at `values`. Lower > claim: fails.
    Otherwise undecided.

    Args:
        declaration: What is judged.
        values: Parameters, for the numeric ratios and the witness.

    Raises:
        DeclarationError: A witness loses more than the composed cost: the two contradict each other, and neither is
            reported.
    """
    composed = account(declaration)
    witness = find_witness(declaration, values)
    cost, claimed = _in_claims_unit(declaration, composed, values)
    decision = decide(cost, claimed, declaration.parameters) if isinstance(cost, Expr) else None
    proved = decision is not None and decision.method == "proved"
    upper = _upper(cost, claimed, values, proved=proved)
    target = claimed.number(values)
    lower = 0.0 if witness is None else _ratio_down(witness.loss, target)
    if lower > upper * (1 + _NEAR):
        message = (
            f"{declaration.name}: a witness loses {lower:.9g} of the claim, above the composed cost {upper:.9g}: a "
            "statistic moves further than its own sensitivity says"
        )
        raise DeclarationError(message)
    verdict: Literal["holds", "fails", "undecided"] = "undecided"
    method: Literal["proved", "checked", "witness"] = "checked"
    if upper <= 1:
        verdict, method = "holds", "proved" if proved else "checked"
    elif witness is not None and lower > 1 and witness.loss > claimed.number(values, rounding="up"):
        verdict, method = "fails", "witness"
    findings = [*stated_sensitivities(composed, values, witness), *_claim_findings(verdict, upper, lower, witness)]
    if verdict == "holds" and decision is not None and decision.counterexample is not None:
        findings.append(_elsewhere(decision.counterexample))
    order = ("critical", "theoretical", "negligible")
    return Verification(
        algorithm=declaration.name,
        claim=f"{declaration.claim.guarantee} ({declaration.claim.source})",
        verdict=verdict,
        method=method,
        joint=None,
        upper_ratio=upper,
        lower_ratio=lower,
        findings=tuple(sorted(findings, key=lambda f: order.index(f.severity))),
        witness=witness,
        repair=_repair(declaration, verdict, upper),
        account=composed,
    )


def _in_claims_unit(
    declaration: Declaration, composed: Account, values: Mapping[str, Fraction]
) -> tuple[Expr | float, Expr]:
    """Returns the composed cost and the claim in the same unit: ρ for zCDP, ε otherwise; ∞ where there is no bound."""
    claim = declaration.claim.guarantee
    if isinstance(claim, ZCDP):
        return composed.rho, claim.rho
    if isinstance(claim, PureDP):
        return (math.inf if composed.pure is None else composed.pure), claim.epsilon
    assert isinstance(claim, ApproxDP)
    return composed.at(values).epsilon(claim.delta.number(values, rounding="down")), claim.epsilon


def _upper(cost: Expr | float, claimed: Expr, values: Mapping[str, Fraction], *, proved: bool) -> float:
    """Returns cost/claim, rounded up except where it is exactly 1 or at most 1 is proved."""
    if isinstance(cost, float):
        return cost / claimed.number(values, rounding="down")
    if same(cost, claimed):
        return 1.0
    upper = (cost / claimed).simplified().number(values, rounding="up")
    return min(upper, 1.0) if proved else upper


def _ratio_down(loss: float, claimed: float) -> float:
    ratio = loss / claimed
    if math.isinf(ratio):
        return ratio
    if abs(ratio - 1) <= _NEAR:
        return 1.0
    return math.nextafter(ratio, 0.0)


def _claim_findings(verdict: str, upper: float, lower: float, witness: Witness | None) -> list[Finding]:
    figures = {"upper/claim": f"{upper:.9g}", "lower/claim": f"{lower:.9g}"}
    if verdict == "fails":
        message = f"a pair of neighbours loses {lower:.6g} times what is claimed"
        return [
            Finding(
                code="claim-refuted",
                severity="critical",
                where="claim",
                message=message,
                evidence=figures,
                witness=witness,
            )
        ]
    if verdict == "undecided":
        message = f"the composed cost is {upper:.6g} times the claim, the worst known pair loses {lower:.6g} times it"
        return [
            Finding(code="claim-unproved", severity="theoretical", where="claim", message=message, evidence=figures)
        ]
    if upper < 1 - _NEAR:
        message = f"the releases cost {upper:.6g} of the claim: less noise would do"
        return [Finding(code="claim-slack", severity="negligible", where="claim", message=message, evidence=figures)]
    return []


def _elsewhere(point: Mapping[str, Fraction]) -> Finding:
    at = ", ".join(f"{name} = {value}" for name, value in sorted(point.items()))
    message = f"the claim holds at these parameters, not for all: the composed cost exceeds it at {at}"
    evidence = {name: str(value) for name, value in point.items()}
    return Finding(
        code="claim-not-for-all-parameters", severity="theoretical", where="claim", message=message, evidence=evidence
    )


def _repair(declaration: Declaration, verdict: str, upper: float) -> str:
    claim = declaration.claim.guarantee
    if verdict == "holds" and upper > 1 - _NEAR:
        return "nothing to change: the claim holds with equality"
    if not math.isfinite(upper):
        return "no amount of this noise gives the claim: another mechanism is needed"
    if isinstance(claim, ApproxDP):
        return ""  # ε is not a power of the noise there: least noise is calibration's answer
    factor = math.sqrt(upper) if isinstance(claim, ZCDP) else upper
    if verdict == "holds":
        return f"every noise's standard deviation may be multiplied by {factor:.6g} and the claim still holds"
    return f"multiply every noise's standard deviation by {factor:.6g} and the claim holds"
