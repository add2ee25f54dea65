"""What a charge says it is for: an event as it is, or a claim that was judged and holds, at the accountant's cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privcheck import __version__
from privcheck.ledger.exact import canonical, digest
from privcheck.service.calculator import Calculator
from privcheck.service.desk import Desk
from privcheck.service.ledger_models import ClaimBody, SpendBody
from privcheck.service.problems import ProblemError


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What is charged.

    Attributes:
        event: As JSON.
        claim: What it is charged for; None for an event as it is.
        unit: For whom it was priced.
    """

    event: dict[str, Any]
    claim: dict[str, Any] | None
    unit: str | dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims by the digest of algorithm, parameters and version; judged where calculations are.

    Attributes:
        calculator: Judges.
    """

    calculator: Calculator

    def judge(self, desk: Desk, body: ClaimBody) -> dict[str, Any]:
        """Returns how a claim stands, and begins to judge it where that has not been done."""
        asked = {"name": body.algorithm, "parameters": body.parameters, "version": __version__}
        name = digest(canonical(asked))
        found = self.calculator.run_later("claim", asked)
        desk.remember_claim(name, asked, judged=found is not None)
        told = {"claim": name, "algorithm": body.algorithm, "parameters": body.parameters}
        return {**told, "state": "running", "events": None} if found is None else {**told, **found}

    def spending(self, desk: Desk, body: SpendBody) -> Spent:
        """Returns what a body charges that names a claim.

        Raises:
            ProblemError: The claim is not known, not judged yet (503), or does not hold (409).
        """
        assert body.claim is not None
        asked = desk.recall_claim(body.claim)
        if asked is None:
            raise ProblemError(404, "no such claim: POST /v1/claims creates it, and always returns the same one")
        found = self.calculator.run_later("claim", asked)
        if found is None:
            raise ProblemError(503, "the claim is being judged: ask again with the same Idempotency-Key")
        if found["state"] != "holds":
            state = found["state"]
            more = {"state": "refused", "reason": f"the claim {state}", "remaining": None, "receipt": None}
            raise ProblemError(409, f"only a claim that holds may be charged; this one {state}", more=more)
        currency = desk.currency_of(body.grant)
        event = found["events"].get(currency)  # a plan counts events, and a claim is none of them
        if event is None:
            raise ProblemError(422, f"{asked['name']} has no finite cost in the grant's currency, {currency}")
        about = {name: value for name, value in found["about"].items() if name != "unit"}
        claim = {"claim": body.claim, **about, "version": asked["version"]}
        return Spent(event=event, claim=claim, unit=found["about"]["unit"])
