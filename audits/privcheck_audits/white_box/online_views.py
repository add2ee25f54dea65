"""The views that look inside, for running online agents: lockstep replay, and noise as declared."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.plan.common import check
from privcheck_audits.policy.online import MakePlayer
from privcheck_audits.white_box.online_lockstep import OnlinePairs
from privcheck_audits.white_box.online_noise import OnlineDraws
from privcheck_audits.white_box.views import heard, replayed
from privcheck_audits.white_box.watching import watched

_INSTANCE: Final = "a random model, the same at every step; small bonuses, so that policies follow the noisy tables"


def lockstep(request: AuditRequest, make: MakePlayer, readings: Mapping[str, str]) -> AuditResult:
    """Returns whether one user moves a release of the running agent further than it is charged, or moves a policy.

    `trials` is the number of pairs, two runs of the agent each.

    Args:
        request: What is asked.
        make: Makes the agent.
        readings: Those that the agent asks for.

    Raises:
        ParameterError: A number of the request is out of its range, or the agent keeps no known tables.
        AuditError: The agent plays another policy without noise, behind the same billboard.
    """
    check(request)
    began = time.perf_counter()
    agent, values = watched(request.declaration, request.values, request.options, make=make, readings=readings)
    return replayed(
        request,
        OnlinePairs(agent=agent),
        began=began,
        values=values,
        method="lockstep replay of the running agent: what its privatizer added noise to on D and, behind D's "
        "billboard, on D′, output by output against the sensitivity charged; and that both play the same policies, bit "
        "for bit; exact, without error probability",
        instance=_INSTANCE,
    )


def noise(request: AuditRequest, make: MakePlayer, readings: Mapping[str, str]) -> AuditResult:
    """Returns whether the running agent draws the declared noise; `trials` is the number of its runs.

    Args:
        request: What is asked.
        make: Makes the agent.
        readings: Those that the agent asks for.

    Raises:
        ParameterError: As for `lockstep`.
        AuditError: As for `lockstep`, or an output is not finite.
    """
    check(request)
    began = time.perf_counter()
    agent, values = watched(request.declaration, request.values, request.options, make=make, readings=readings)
    return heard(
        request,
        OnlineDraws(agent=agent, seed=request.seed),
        began=began,
        values=values,
        who="what the running agent's privatizer added",
        instance=_INSTANCE,
    )
