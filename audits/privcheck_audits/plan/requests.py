"""Audit requests: refusal or division, placement of blocks, choice of the test, and meaning of a result.

Common parts of the plans: check a request, divide it, place its blocks, compare a bound with the limits. Then which
statistical test fits which audit, with the error for one that does not fit, and the meaning of a result in words that
need no statistics.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, cast, get_args

from privcheck.accounting import claim_epsilon
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Once
from privcheck.declare.statistics import ClippedSums, FeatureSums, GramMatrices, Stated
from privcheck.errors import ParameterError
from privcheck.runtime.results import AuditMethod, AuditRequest, AuditResult
from privcheck.support.display import Progress
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import expression
from privcheck_audits.engine.checkpoints import Checkpoint

_AUTO: Final[tuple[AuditMethod, ...]] = ("auto",)

Evidence = dict[str, float | int | str | Mapping[str, list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that a lower bound is compared with, at one δ.

    Attributes:
        upper: The accountant's ε; None if infinite.
        claimed: The claim's ε; None if the claim implies no finite ε.
    """

    upper: float | None
    claimed: float | None

    @property
    def least(self) -> float:
        """The smaller limit, ∞ if there is none."""
        return min((limit for limit in (self.upper, self.claimed) if limit is not None), default=math.inf)

    def name_refuted(self, lower: float) -> str:
        """Names of the limits that a lower bound refutes: "claim", "declaration", both, or "nothing"."""
        refuted = [
            name
            for name, limit in (("claim", self.claimed), ("declaration", self.upper))
            if limit is not None and lower > limit
        ]
        return " and ".join(refuted) or "nothing"


def check(request: AuditRequest, methods: Collection[AuditMethod] = _AUTO) -> None:
    """Raise an error for a request that cannot be carried out, before any run.

    Args:
        request: The request.
        methods: The statistical tests of this plan for the view.

    Raises:
        ParameterError: A number is out of range, or the plan does not have the test.
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
    """The accountant's and the claim's ε at the request's δ."""
    upper = request.priced.at(values).epsilon(request.delta)
    claimed = claim_epsilon(request.declaration.claim.guarantee, values, request.delta)
    return Limits(upper=finite(upper), claimed=finite(claimed))


def shares(request: AuditRequest, instances: Sequence[Mapping[str, Fraction]]) -> list[AuditRequest]:
    """Requests for the instances: runs and α are divided among them, and progress is reported jointly.

    Args:
        request: The request.
        instances: Parameters of each instance, at most as many as there are runs.
    """
    parts = len(instances)
    return [
        replace(
            request,
            setting=request.setting.at(values),
            trials=request.trials // parts,
            confidence=1 - (1 - request.confidence) / parts,
            progress=partial(_report, request.progress, number, parts),
        )
        for number, values in enumerate(instances)
    ]


def _report(progress: Progress, number: int, parts: int, done: int, of: int) -> None:
    progress(number * of + done, parts * of)


def place_blocks(request: AuditRequest, *kinds: type, keep: bool = True) -> dict[str, Any]:
    """Arguments of `privcheck_audits.engine.blocks.blocks` for a request: seed, workers, executor and so on.

    Args:
        request: The request.
        kinds: The dataclasses that blocks return.
        keep: Whether finished blocks may be stored.
    """
    return {
        "seed": request.seed,
        "workers": request.workers,
        "executor": request.executor,
        "checkpoint": checkpoint(request, *kinds) if keep else None,
        "progress": request.progress,
    }


def checkpoint(request: AuditRequest, *kinds: type) -> Checkpoint | None:
    """Checkpoint of the request, with everything that its blocks' results depend on; None without a directory.

    Args:
        request: The request, with or without a directory.
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
    """The value, or None if it is infinite."""
    return value if math.isfinite(value) else None


def elsewhere(violation: AuditResult, at: str) -> dict[str, float | int | str | Mapping[str, list[float]]]:
    """Evidence of a violation at parameters other than the requested ones."""
    lower = violation.epsilon_lower
    return {
        "violation_at": at,
        "violation_epsilon_lower": "inf" if lower is None or math.isinf(lower) else lower,
        "violation_witness": violation.witness,
        "violation_meaning": str(violation.evidence.get("meaning", "")),
    }


def says_nothing(request: AuditRequest) -> bool:
    """Whether no outcome of this number of runs could refute anything.

    For a mechanism that reveals nothing, all 2N hidden bits are guessed right with probability 4^−N. If that exceeds α,
    no test of N runs under each neighbour can refute any ε, and the absence of a refutation is uninformative.

    Args:
        request: Request with N and 1 − α; tests of one run with many canaries, or in groups, have more bits than runs.
    """
    if request.method in ("one-run", "group") or request.view not in ("releases", "policy"):
        return False
    return 2 * request.trials * math.log(2) < -math.log(1 - request.confidence)


def size_note(asked: Mapping[str, Fraction], used: Mapping[str, Fraction]) -> Evidence:
    """Evidence of parameters other than the requested ones; empty if they are the same."""
    other = [f"{name} = {used[name]} (asked: {asked[name]})" for name in asked if asked[name] != used[name]]
    return {"audited_at": ", ".join(other)} if other else {}


METHODS: Final = cast("tuple[AuditMethod, ...]", get_args(AuditMethod))
_SMALL: Final = 1.0  # ε, from which on moving several users at once says no more about one


def unfit(request: AuditRequest, bound: Limits) -> Mapping[AuditMethod, str]:
    """Reasons why methods do not fit the releases view of this declaration, by method; fitting methods are absent."""
    declaration = request.declaration
    reasons = {
        "curve": _no_curve(request),
        "divergence": ""
        if isinstance(declaration.claim.guarantee, ZCDP)
        else f"it bounds ρ, but the claim is {declaration.claim_words}",
        "sequential": why_no_claim(request, bound),
        "one-run": _no_crowd(declaration, request),
        "group": _no_group(declaration, bound),
    }
    return {cast("AuditMethod", name): why for name, why in reasons.items() if why}


def why_no_claim(request: AuditRequest, bound: Limits) -> str:
    """Reason why an audit that stops at a refutation has no claim to refute; empty if it has one."""
    return "" if bound.least < math.inf else f"at δ = {request.delta:g} there is no claimed ε to refute"


def on_curve(request: AuditRequest) -> bool:
    """Whether the declared releases lie on the Gaussian curve and δ > 0, so that the curve has a finite ε."""
    return not _no_curve(request)


def refuse_unfit(
    request: AuditRequest, reasons: Mapping[AuditMethod, str], methods: Sequence[AuditMethod] = METHODS
) -> None:
    """Raise an error for a method that does not fit.

    Args:
        request: The request.
        reasons: Reasons why methods do not fit, by method.
        methods: All methods of the plan for the view.

    Raises:
        ParameterError: The method does not fit; the message gives the reason and the methods that fit.
    """
    if request.method in reasons:
        fit = ", ".join(name for name in methods if name not in reasons)
        message = f"--method {request.method} does not fit this audit: {reasons[request.method]}; these fit: {fit}"
        raise ParameterError(message, name="method", given=request.method)


def _no_curve(request: AuditRequest) -> str:
    if request.declaration.others:
        return f"it is for Gaussian releases only, and {_others(request.declaration)} is not Gaussian"
    other = sorted({r.mechanism.law.name for r in request.declaration.noisy if not r.mechanism.law.gaussian})
    if other:
        return f"it is for Gaussian releases only, but here some noise is {', '.join(other)}"
    return "" if request.delta > 0 else "at δ = 0 a Gaussian release has no finite ε; give --delta"


def _others(declaration: Declaration) -> str:
    return ", ".join(f"{one.name} ({one.facts.output})" for one in declaration.others)


def _no_crowd(declaration: Declaration, request: AuditRequest) -> str:
    if declaration.others:
        return f"it needs noisy tables with cells for many users, and {_others(declaration)} is not one"
    if not all(isinstance(r.schedule, Once) for r in declaration.noisy):
        return "it needs releases that are made once, about all users together"
    data = GramMatrices | FeatureSums | ClippedSums | Stated  # of other data than trajectories
    other = declaration.records is not None or any(isinstance(r.statistic, data) for r in declaration.noisy)
    tabular = {"H", "S", "A"} <= request.values.keys() and declaration.candidates is None and not other
    if not tabular or declaration.groups != ("",):
        return "it gives many users a table cell each, and these are not tables of states and actions"
    if declaration.relation.trajectories != expression(1):
        return "it gives every canary one trajectory, but a user here has several"
    if isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed":
        return "step 1 is common to both neighbours, so no two canaries have separate cells"
    return ""


def _no_group(declaration: Declaration, bound: Limits) -> str:
    if declaration.others:
        return f"it moves several users at once, but the effect on {_others(declaration)} is not stated"
    if not all(isinstance(r.schedule, Once) for r in declaration.noisy):
        return "it moves several users at once, which adds up only if releases are made once, about all users"
    if bound.least >= _SMALL:
        return f"it is for small ε, below {_SMALL:g}, and here it is {bound.least:.3g}"
    return ""


_NO_PROOF = "that is not a proof of privacy"


def policy_meaning(refuted: str, told: str, *, whose: str = "one user's") -> str:
    """Meaning of a result of the policy view.

    Args:
        refuted: Result of `Limits.name_refuted`.
        told: Description of the audited output: "what the later users were told to do".
        whose: Owner of the data, in words.
    """
    if refuted == "nothing":
        return (
            f"as far as this test sees, {told} leaks no more of {whose} data than claimed; {_NO_PROOF}, and the "
            "releases view sees more"
        )
    return f"{told} leaks {whose} data: more than the {refuted} allows"


def releases_meaning(refuted: str, declaration: Declaration, *, reachable: float | None) -> str:
    """Meaning of a result of the releases view.

    Args:
        refuted: Result of `Limits.name_refuted`.
        declaration: The audited declaration.
        reachable: Bound that the best test could have reached with this number of runs; None if unknown.
    """
    if refuted != "nothing":
        meaning = f"the noisy statistics leak one user's data: more than the {refuted} allows"
        if declaration.claim.joint is None:
            return meaning
        return f"{meaning}. Joint DP is about the other users' actions: it is then unproved, but not refuted"
    meaning = f"as far as this test sees, the noisy statistics leak no more than claimed; {_NO_PROOF}"
    if reachable is None:
        return meaning
    if reachable <= 0:
        return f"{meaning}. With these parameters and so few runs no test could have shown the declared loss"
    return (
        f"{meaning}. Were the loss as declared, the best test could have shown ε ≥ {_down(reachable)} with as many runs"
    )


def _down(epsilon: float) -> str:
    """Lower bound to four digits, rounded down, as tables show it."""
    digits = 3 - math.floor(math.log10(epsilon))
    return f"{math.floor(epsilon * 10.0**digits * (1 + 1e-13)) / 10.0**digits:.4g}"
