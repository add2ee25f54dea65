"""The policy view of any agent: what later users, or everybody, are told, and what that tells of one user."""

from __future__ import annotations

from privcheck.declare.declaration import Declaration
from privcheck.runtime.registry import Algorithm, RegisteredView
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_audits.policy import offline, online, post_processing, regression
from privcheck_audits.releases.view import why_not


def run(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Returns the lower bound on ε from policies alone: of the online agent, the offline one, or its step.

    Raises:
        ParameterError: A number of the request is out of its range, or there is nothing that makes policies.
        AuditError: A trial's score is not finite.
    """
    if algorithm.online is not None:
        return online.audit_policies(request, algorithm)
    if algorithm.offline is not None and algorithm.instance.world is not None:
        return regression.audit_policies(request, algorithm)
    if algorithm.offline is not None:
        return offline.audit_policies(request, algorithm)
    return post_processing.audit_policies(request, algorithm)


def _trials(algorithm: Algorithm) -> int:
    """Returns what an honest agent's audit takes less than a minute for, and a peeking one is found with."""
    if algorithm.online is not None:
        return 2_000
    if algorithm.offline is not None and algorithm.offline.regressing is not None and algorithm.offline.batch is None:
        return 10_000
    return 100_000 if algorithm.offline is not None else 50_000


def _lacks(algorithm: Algorithm, declaration: Declaration) -> str:
    if algorithm.online is None and algorithm.offline is None and algorithm.policies is None:
        return (
            "neither an agent nor a step from releases to policies is registered, so there are no policies to look at"
        )
    return why_not(declaration)


VIEW = RegisteredView(
    name="policy",
    place=3,
    asks="The whole agent, seen only through the policies it plays.",
    leaves_open="The view sees policies alone and is weak: a learned score may miss what leaks, and another instance "
    "may show more. The view “releases” sees everything that leaves the curator.",
    trials=_trials,
    lacks=_lacks,
    run=run,
)
