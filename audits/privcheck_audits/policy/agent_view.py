"""The policy view of any agent: the policies shown to later users, or to everybody, and their leak about one user."""

from __future__ import annotations

from privcheck.declare.declaration import Declaration
from privcheck.runtime.registry import Algorithm, RegisteredView
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_audits.policy import offline, online, post_processing, regression
from privcheck_audits.releases.view import why_not


def run(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Lower bound on ε from policies alone: of the online agent, the offline agent, or the step to policies.

    Raises:
        ParameterError: A number of the request is out of range, or no part of the algorithm makes policies.
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
    """Default number of trials: under a minute for an honest agent, and enough to detect one that reads the data."""
    if algorithm.online is not None:
        return 2_000
    if algorithm.offline is not None and algorithm.offline.regressing is not None and algorithm.offline.batch is None:
        return 10_000
    return 100_000 if algorithm.offline is not None else 50_000


def _lacks(algorithm: Algorithm, declaration: Declaration) -> str:
    if algorithm.trained is not None:
        return "a policy with parameters has no table of probabilities: the view lockstep compares its parameters"
    if algorithm.online is None and algorithm.offline is None and algorithm.policies is None:
        return "neither an agent nor a step from releases to policies is registered, so there are no policies to audit"
    return why_not(declaration)


VIEW = RegisteredView(
    name="policy",
    place=3,
    asks="The whole agent, seen only through the policies it plays.",
    leaves_open="The view sees only policies and is weak: a learned score may miss a leak, and another instance may "
    "show more. The view “releases” sees all releases.",
    trials=_trials,
    lacks=_lacks,
    run=run,
)
