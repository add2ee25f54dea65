"""One audit plan for every registered algorithm: which views there are, and which of them run its agent.

Whatever is registered under a name is what is audited: where there is an agent, lockstep, noise and policy views drive
its face. Where there is a declaration only, they run the declared statistics through a channel of ours, and say so; so
does the policy view of an agent of which only the step from releases to policies is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.registry import Algorithm, AuditPlan
from privcheck.results import AuditRequest, AuditResult, AuditView
from privcheck_audits.policy import offline, online, post_processing
from privcheck_audits.releases.audit import audit_releases, why_not
from privcheck_audits.white_box import agent_views, views

RunView = Callable[[AuditRequest], AuditResult]
# what each view finds with so many is in benchmarks/audit_plans.md
_DECLARED: Final[Mapping[str, int]] = {"releases": 1_000_000, "lockstep": 16, "noise": 8}
_ONLINE: Final[Mapping[str, int]] = {"lockstep": 40, "noise": 8, "policy": 2_000}
_OFFLINE: Final[Mapping[str, int]] = {"lockstep": 100, "noise": 30, "policy": 100_000}
_POST_PROCESSING: Final[Mapping[str, int]] = {"policy": 50_000}


def plan_for(algorithm: Algorithm) -> AuditPlan:
    """Returns the audit plan of an algorithm.

    Args:
        algorithm: As it is registered.
    """
    by_view: dict[AuditView, RunView] = {
        "releases": audit_releases,
        "lockstep": views.lockstep,
        "noise": views.noise,
    }
    trials: dict[str, int] = {**_DECLARED}
    if algorithm.online is not None:
        by_view |= {
            "lockstep": partial(agent_views.lockstep, algorithm=algorithm),
            "noise": partial(agent_views.noise, algorithm=algorithm),
            "policy": partial(online.audit_policies, algorithm=algorithm),
        }
        trials |= _ONLINE
    elif algorithm.offline is not None:
        by_view |= {
            "lockstep": partial(views.lockstep, agent=algorithm.offline),
            "noise": partial(views.noise, agent=algorithm.offline),
            "policy": partial(offline.audit_policies, algorithm=algorithm),
        }
        trials |= _OFFLINE
    elif algorithm.policies is not None:
        by_view |= {
            "releases": partial(post_processing.audit_where_it_shows, algorithm=algorithm),
            "policy": partial(post_processing.audit_policies, algorithm=algorithm),
        }
        trials |= _POST_PROCESSING
    return AuditPlan(
        name=algorithm.name,
        views=tuple(by_view),
        trials=trials,
        audit=partial(_audit, by_view),
        lacks=partial(_lacks, algorithm),
    )


def _audit(by_view: Mapping[AuditView, RunView], request: AuditRequest) -> AuditResult:
    if request.view not in by_view:
        message = f"expected a view out of {', '.join(by_view)}, got {request.view!r}"
        raise ParameterError(message, name="view", given=request.view)
    return by_view[request.view](request)


def _lacks(algorithm: Algorithm, declaration: Declaration, view: AuditView) -> str:
    """Returns why a declaration cannot be audited from a view; empty where it can."""
    why = why_not(declaration)
    return why or ("" if algorithm.online is not None else views.blind(declaration, view))
