"""What every plan does: refuse a bad request, and compare a bound with the accountant and the claim."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from audits.checkpoints import Checkpoint
from privcheck.accounting import account, claim_epsilon
from privcheck.errors import ParameterError
from privcheck.results import AuditMethod, AuditRequest

_AUTO: Final[tuple[AuditMethod, ...]] = ("auto",)

Evidence = dict[str, float | int | str | Mapping[str, list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a lower bound is compared with, at one δ.

    Attributes:
        upper: The accountant's ε; None where there is none.
        claimed: The claim's ε; None where it implies none.
    """

    upper: float | None
    claimed: float | None

    @property
    def least(self) -> float:
        """Returns the smaller of the two, ∞ where there is neither."""
        return min((limit for limit in (self.upper, self.claimed) if limit is not None), default=math.inf)

    def refuted(self, lower: float) -> str:
        """Returns what a lower bound refutes: "claim", "declaration", both, or "nothing"."""
        found = [
            name
            for name, limit in (("claim", self.claimed), ("declaration", self.upper))
            if limit is not None and lower > limit
        ]
        return " and ".join(found) or "nothing"


def check(request: AuditRequest, methods: Collection[AuditMethod] = _AUTO) -> None:
    """Refuses a request that cannot be carried out, before anything is drawn.

    Args:
        request: What is asked.
        methods: The statistical tests that this plan has for the view.

    Raises:
        ParameterError: A number is out of its range, or the plan has no such test.
    """
    if request.method not in methods:
        message = f"--method expects one of {', '.join(methods)} for this audit's view {request.view}"
        raise ParameterError(f"{message}; got {request.method!r}", name="method", given=request.method)
    for name, good, wanted in (
        ("trials", request.trials >= 1, "at least 1"),
        ("workers", request.workers >= 1, "at least 1"),
        ("seed", request.seed >= 0, "at least 0"),
        ("confidence", 0 < request.confidence < 1, "strictly between 0 and 1"),
        ("delta", 0 <= request.delta < 1, "at least 0 and below 1"),
    ):
        if not good:
            given = getattr(request, name)
            raise ParameterError(f"{name}: expected {wanted}, got {given!r}", name=name, given=given)


def limits(request: AuditRequest, values: Mapping[str, Fraction]) -> Limits:
    """Returns the accountant's and the claim's ε at the request's δ."""
    upper = account(request.declaration).at(values).epsilon(request.delta)
    claimed = claim_epsilon(request.declaration.claim.guarantee, values, request.delta)
    return Limits(upper=finite(upper), claimed=finite(claimed))


def checkpoint(request: AuditRequest, *kinds: type) -> Checkpoint | None:
    """Returns where the request's finished blocks are kept, with everything that decides what they come to.

    Args:
        request: With its directory, or without.
        kinds: The dataclasses that blocks return.
    """
    if request.directory is None:
        return None
    declared = re.sub(r" at 0x[0-9a-f]+", "", repr(request.declaration))  # functions say where in memory they are
    plan: dict[str, str | int | float] = {
        "declaration": request.declaration.name,
        "digest": hashlib.sha256(declared.encode()).hexdigest(),
        "view": request.view,
        "method": request.method,
        "trials": request.trials,
        "confidence": request.confidence,
        "delta": request.delta,
        **{name: str(value) for name, value in sorted({**request.values, **request.options}.items())},
    }
    return Checkpoint(directory=request.directory, plan=plan, kinds=kinds)


def finite(value: float) -> float | None:
    """Returns the value, or None where it is infinite."""
    return value if math.isfinite(value) else None


def size_note(asked: Mapping[str, Fraction], used: Mapping[str, Fraction]) -> Evidence:
    """Returns evidence of other parameters than those asked for; none where they are the same."""
    other = [f"{name} = {used[name]} (asked: {asked[name]})" for name in asked if asked[name] != used[name]]
    return {"audited_at": ", ".join(other)} if other else {}
