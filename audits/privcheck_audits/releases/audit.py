"""The releases view: what is declared to leave, attacked at the witness of verification. No agent is run."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from privcheck.declaration import Declaration
from privcheck.registry import Algorithm, RegisteredView
from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.plan.common import size_note
from privcheck_audits.releases.instance_sizes import visible
from privcheck_audits.releases.samplers_said import hear_samplers
from privcheck_audits.releases.shared_noise import audit_differences
from privcheck_audits.releases.view import releases
from privcheck_audits.shuffled import view as shuffled

_FEWEST: Final = 10_000  # runs of a procedure under each neighbour
_ROUNDS: Final = 50_000_000  # of a procedure under each neighbour, in all


def audit_releases(request: AuditRequest) -> AuditResult:
    """Returns the audit of the releases; of outputs that share their noise, by their difference; of shuffled messages.

    What functions of its author's own say beside their outputs is part of what leaves.

    Raises:
        ParameterError: A number of the request is out of its range, or nothing can be attacked.
        AuditError: A trial's score is not finite.
    """
    if behind_a_shuffler(request.declaration):
        result = shuffled.releases(request)
    else:
        result = audit_differences(request) if request.declaration.shared_draws else releases(request)
    return _add_said(result, request)


def why_not(declaration: Declaration) -> str:
    """Returns why the releases cannot be audited; empty where they can."""
    return shuffled.declines(declaration) if behind_a_shuffler(declaration) else ""


def behind_a_shuffler(declaration: Declaration) -> bool:
    """Returns whether messages leave a shuffler."""
    return any(r.mechanism.law.shuffled for r in declaration.noisy)


def run(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Returns the audit of an algorithm's releases; of one whose releases show nothing at its sizes, at its instance's.

    Raises:
        ParameterError: A number of the request is out of its range, or nothing can be attacked.
        AuditError: A trial's score is not finite.
    """
    if algorithm.instance.world is not None or (algorithm.online is None and algorithm.policies is not None):
        asked = visible(request, algorithm)
        result = audit_releases(asked)
        return replace(result, evidence={**result.evidence, **size_note(request.values, asked.values)})
    return audit_releases(request)


def _add_said(result: AuditResult, request: AuditRequest) -> AuditResult:
    """Returns the result with what functions of its author's own say beside their outputs."""
    if (said := hear_samplers(request.declaration, request.values, request.seed)) is None:
        return result
    told = f"what {said.name} says beside its output"
    where = ", ".join(said.places)
    if said.words:
        why = f"{told} depends on data that no release covers: {where}"
        witness = f"{said.words}; {why}"
        return replace(result, verdict="violation", witness=witness, evidence={**result.evidence, "refuted": why})
    if result.verdict == "violation":
        return result
    doubt = f"{told} is not known to be a function of the output: {where}; let it say nothing, or public facts alone"
    return replace(result, verdict="undecided", evidence={**result.evidence, "doubt": doubt})


def _trials(algorithm: Algorithm) -> int:
    """Returns a million runs; fewer of procedures of many rounds, which are drawn one by one."""
    declaration = None if algorithm.declare is None else algorithm.declare({})
    if declaration is None or not declaration.others:
        return 1_000_000
    rounds = max(int(one.facts.rounds.number(declaration.values())) for one in declaration.others)
    return max(_FEWEST, min(100_000, _ROUNDS // max(1, rounds)))


VIEW = RegisteredView(
    name="releases",
    place=0,
    asks="What is released, on a worst-case pair of neighbours: how well does the likelihood ratio tell the two apart?",
    leaves_open="Other neighbours, another score or more runs may show a larger loss, and a bug that costs less than "
    "what lies between the bound and the claim is not seen.",
    trials=_trials,
    lacks=lambda _, declaration: why_not(declaration),
    run=run,
)
