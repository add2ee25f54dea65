"""Which statistical test fits which audit, and one message where one does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, cast, get_args

from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.guarantees import ZCDP
from privcheck.relations import ReplaceOne
from privcheck.results import AuditMethod, AuditRequest
from privcheck.schedules import Once
from privcheck.statistics import ClippedSums, FeatureSums, GramMatrices, Stated
from privcheck.symbols import expression
from privcheck_audits.plan.common import Limits

METHODS: Final = cast("tuple[AuditMethod, ...]", get_args(AuditMethod))
_SMALL: Final = 1.0  # ε, from which on moving several users at once says no more about one


def unfit(request: AuditRequest, bound: Limits) -> Mapping[AuditMethod, str]:
    """Returns why a method does not fit the releases view of this declaration; nothing of those that do."""
    declaration = request.declaration
    reasons = {
        "curve": _no_curve(request),
        "divergence": ""
        if isinstance(declaration.claim.guarantee, ZCDP)
        else f"it bounds ρ, and the claim is {declaration.claim_words}",
        "sequential": why_no_claim(request, bound),
        "one-run": _no_crowd(declaration, request),
        "group": _no_group(declaration, bound),
    }
    return {cast("AuditMethod", name): why for name, why in reasons.items() if why}


def why_no_claim(request: AuditRequest, bound: Limits) -> str:
    """Returns why an audit that stops at a refutation has nothing to refute; empty where it has."""
    return "" if bound.least < math.inf else f"at δ = {request.delta:g} no ε is claimed that could be refuted"


def on_curve(request: AuditRequest) -> bool:
    """Returns whether the declared releases lie on the Gaussian curve, and δ is one at which it has a finite ε."""
    return not _no_curve(request)


def refuse_unfit(
    request: AuditRequest, reasons: Mapping[AuditMethod, str], methods: Sequence[AuditMethod] = METHODS
) -> None:
    """Refuses a method that does not fit.

    Args:
        request: What is asked.
        reasons: Why a method does not fit, by method.
        methods: All that the plan has for the view.

    Raises:
        ParameterError: It does not; the message says why, and which do.
    """
    if request.method in reasons:
        fit = ", ".join(name for name in methods if name not in reasons)
        message = f"--method {request.method} does not fit this audit: {reasons[request.method]}; these fit: {fit}"
        raise ParameterError(message, name="method", given=request.method)


def _no_curve(request: AuditRequest) -> str:
    if request.declaration.others:
        return f"it is about Gaussian releases only, and {_others(request.declaration)} is none"
    other = sorted({r.mechanism.law.name for r in request.declaration.noisy if not r.mechanism.law.gaussian})
    if other:
        return f"it is about Gaussian releases only, and here some noise is {', '.join(other)}"
    return "" if request.delta > 0 else "at δ = 0 a Gaussian release has no finite ε; give --delta"


def _others(declaration: Declaration) -> str:
    return ", ".join(f"{one.name} ({one.facts.output})" for one in declaration.others)


def _no_crowd(declaration: Declaration, request: AuditRequest) -> str:
    if declaration.others:
        return f"it needs noisy tables in which many users have cells, and {_others(declaration)} is none"
    if not all(isinstance(r.schedule, Once) for r in declaration.noisy):
        return "it needs releases that are made once, about all users together"
    data = GramMatrices | FeatureSums | ClippedSums | Stated  # of other data than trajectories
    other = declaration.records is not None or any(isinstance(r.statistic, data) for r in declaration.noisy)
    tabular = {"H", "S", "A"} <= request.values.keys() and declaration.candidates is None and not other
    if not tabular or declaration.groups != ("",):
        return "it gives many users a table cell each, and these are not tables of states and actions"
    if declaration.relation.trajectories != expression(1):
        return "it gives every canary one trajectory, and a user here has several"
    if isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed":
        return "step 1 is common to both neighbours, so no two canaries have cells of their own"
    return ""


def _no_group(declaration: Declaration, bound: Limits) -> str:
    if declaration.others:
        return f"it moves several users at once, and nobody says how {_others(declaration)} then moves"
    if not all(isinstance(r.schedule, Once) for r in declaration.noisy):
        return "it moves several users at once, which adds up only where releases are made once, about all users"
    if bound.least >= _SMALL:
        return f"it is for small ε, below {_SMALL:g}, and here it is {bound.least:.3g}"
    return ""
