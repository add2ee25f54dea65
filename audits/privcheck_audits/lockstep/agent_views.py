"""The white-box views of any algorithm: of its agent if it has one, else of its declaration."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from privcheck.declare.declaration import Declaration
from privcheck.runtime.registry import Algorithm, RegisteredView
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_audits.lockstep import regression, views
from privcheck_audits.lockstep.agents import watch
from privcheck_audits.lockstep.noise import OnlineDraws
from privcheck_audits.lockstep.online_agents import OnlinePairs
from privcheck_audits.lockstep.shuffler import hear_shuffler
from privcheck_audits.lockstep.training import replay_training
from privcheck_audits.lockstep.views import audit_draws, audit_pairs
from privcheck_audits.plan.requests import check
from privcheck_audits.releases.view import behind_a_shuffler, why_not

_INSTANCE: Final = (
    "a random model, the same at every step; half of the runs with the options of the audit instance, under which "
    "policies follow the noisy tables closely, half with the requested ones, where values are clipped and actions tie"
)


def replay_online(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Test whether one user changes a release of the running agent by more than its charge, or changes a policy.

    `trials` is the number of pairs, two runs of the agent each.

    Args:
        request: The request.
        algorithm: The algorithm; its online agent is run.

    Raises:
        ParameterError: A number of the request is out of range, or the agent has no audit adapter.
        AuditError: The agent plays a different policy without noise, behind the same billboard.
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
        method="lockstep replay of the running agent: compares the values before noise on D and, behind D's billboard, "
        "on D′, output by output with the charged sensitivity, and checks that both play the same policies, bit "
        "for bit; exact, without error probability",
        instance=_INSTANCE,
    )


def hear_online(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Test whether the running agent draws the declared noise; `trials` is the number of its runs.

    Args:
        request: The request.
        algorithm: The algorithm; its online agent is run.

    Raises:
        ParameterError: As for `replay_online`.
        AuditError: As for `replay_online`, or an output is not finite.
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


def lockstep(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Lockstep audit of the online agent, of a training, of both halves of an offline agent, or of declared releases.

    Raises:
        ParameterError: A number of the request is out of range, or the agent has no audit adapter.
        AuditError: The agent plays a different policy without noise, behind the same billboard.
    """
    if algorithm.online is not None:
        return replay_online(request, algorithm)
    if algorithm.trained is not None:
        return replay_training(request, algorithm)
    if _regresses(algorithm):
        return regression.lockstep(request, algorithm)
    return views.lockstep(request, agent=algorithm.offline)


def noise(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Noise audit of the online agent, of both halves of an offline one, or of the declared releases.

    Raises:
        ParameterError: As for `lockstep`.
        AuditError: As for `lockstep`, or an output is not finite.
    """
    if algorithm.online is not None:
        behind = behind_a_shuffler(request.declaration)
        return hear_shuffler(request, algorithm) if behind else hear_online(request, algorithm)
    if _regresses(algorithm):
        return regression.noise(request, algorithm)
    return views.noise(request, agent=algorithm.offline)


def _regresses(algorithm: Algorithm) -> bool:
    return algorithm.offline is not None and algorithm.instance.world is not None


def _lacks(view: str, algorithm: Algorithm, declaration: Declaration) -> str:
    why = why_not(declaration)
    if algorithm.online is not None and not (view == "noise" and declaration.shared_draws):
        return why
    if algorithm.trained is not None and view == "lockstep":
        return why
    return why or views.blind(declaration, view)


def _trials(online: int, offline: int, declared: int, algorithm: Algorithm, *, trained: int | None = None) -> int:
    if algorithm.online is not None:
        return online
    if algorithm.trained is not None and trained is not None:
        return trained
    return offline if algorithm.offline is not None else declared


LOCKSTEP = RegisteredView(
    name="lockstep",
    place=1,
    asks="Run on D, then on D′ behind D's billboard: do the exact values that reach the channel stay within the "
    "charged sensitivity?",
    leaves_open="Other pairs of neighbours may move a release further, and the noise is not tested; the view “noise” "
    "does that.",
    trials=partial(_trials, 40, 100, 16, trained=24),
    lacks=partial(_lacks, "lockstep"),
    run=lockstep,
)
NOISE = RegisteredView(
    name="noise",
    place=2,
    asks="Does the channel draw the declared law at the declared scale, independently?",
    leaves_open="A small error of the scale is not seen, as the intervals show, and the sensitivities are not tested; "
    "the view “lockstep” does that.",
    trials=partial(_trials, 8, 30, 8),
    lacks=partial(_lacks, "noise"),
    run=noise,
)
