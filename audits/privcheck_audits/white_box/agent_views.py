"""The white-box views of running agents: lockstep replay, and noise as declared."""

from __future__ import annotations

import time
from typing import Final

from privcheck.registry import Algorithm
from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.plan.common import check
from privcheck_audits.white_box.agents import watch
from privcheck_audits.white_box.online_lockstep import OnlinePairs
from privcheck_audits.white_box.online_noise import OnlineDraws
from privcheck_audits.white_box.views import audit_draws, audit_pairs

_INSTANCE: Final = (
    "a random model, the same at every step; half of the runs with the options of the audit instance, under which "
    "policies follow the noisy tables closely, half with those asked for, where values are clipped and actions tie"
)


def lockstep(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Returns whether one user moves a release of the running agent further than it is charged, or moves a policy.

    `trials` is the number of pairs, two runs of the agent each.

    Args:
        request: What is asked.
        algorithm: Whose online agent is run.

    Raises:
        ParameterError: A number of the request is out of its range, or the agent shows auditors nothing.
        AuditError: The agent plays another policy without noise, behind the same billboard.
    """
    check(request)
    began = time.perf_counter()
    agents, values = watch(algorithm, request.setting)
    return audit_pairs(
        request,
        OnlinePairs(agents=agents),
        began=began,
        values=values,
        agent_ran=True,
        method="lockstep replay of the running agent: what its privatizer added noise to on D and, behind D's "
        "billboard, on D′, output by output against the sensitivity charged; and that both play the same policies, bit "
        "for bit; exact, without error probability",
        instance=_INSTANCE,
    )


def noise(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Returns whether the running agent draws the declared noise; `trials` is the number of its runs.

    Args:
        request: What is asked.
        algorithm: Whose online agent is run.

    Raises:
        ParameterError: As for `lockstep`.
        AuditError: As for `lockstep`, or an output is not finite.
    """
    check(request)
    began = time.perf_counter()
    agents, values = watch(algorithm, request.setting)
    return audit_draws(
        request,
        OnlineDraws(agents=agents, seed=request.seed),
        began=began,
        values=values,
        agent_ran=True,
        who="what the running agent's privatizer added",
        instance=_INSTANCE,
    )
