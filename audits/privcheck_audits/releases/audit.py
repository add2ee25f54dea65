"""The releases view: what is declared to leave, attacked at the witness of verification. No agent is run."""

from __future__ import annotations

from privcheck.accounting.account import shared_draws
from privcheck.declaration import Declaration
from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.releases.shared_noise import audit_differences
from privcheck_audits.releases.view import releases
from privcheck_audits.shuffled import view as shuffled


def audit_releases(request: AuditRequest) -> AuditResult:
    """Returns the audit of the releases; of outputs that share their noise, by their difference; of shuffled messages.

    Raises:
        ParameterError: A number of the request is out of its range, or nothing can be attacked.
        AuditError: A trial's score is not finite.
    """
    if behind_a_shuffler(request.declaration):
        return shuffled.releases(request)
    return audit_differences(request) if shared_draws(request.declaration) else releases(request)


def why_not(declaration: Declaration) -> str:
    """Returns why the releases cannot be audited; empty where they can."""
    return shuffled.declines(declaration) if behind_a_shuffler(declaration) else ""


def behind_a_shuffler(declaration: Declaration) -> bool:
    """Returns whether messages leave a shuffler."""
    return any(r.mechanism.law.shuffled for r in declaration.releases)
