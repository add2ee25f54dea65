"""Rules on what the analysis presupposes: bounds on the data and on the algorithm's own values, the billboard lemma."""

from __future__ import annotations

from collections.abc import Iterator

from privcheck.accounting.billboard_lemma import PRECONDITIONS
from privcheck.declaration import Assumption
from privcheck.symbols import at_most
from privcheck.verification.candidates import refused_candidates
from privcheck.verification.claim import Case
from privcheck.verification.findings import Finding


def check_assumptions(case: Case) -> Iterator[Finding]:
    """Yields a finding for every bound that nothing enforces, or that the paper's own setting breaks."""
    for assumption in case.declaration.assumptions:
        if assumption.attained is None:
            yield _report_unenforced(assumption)
        elif _report_broken(case, assumption):
            figures = {"assumed": str(assumption.assumed), "attained": str(assumption.attained)}
            message = (
                f"{assumption.what}, presupposed to be at most {assumption.assumed}, attains {assumption.attained} "
                f"({assumption.source}): {assumption.repair}. {_what_is_charged(assumption)}"
            )
            yield Finding(
                code="assumption-violated",
                severity=case.unpaid,
                where=assumption.what,
                message=message + case.paid_words,
                evidence=figures,
            )


def _what_is_charged(assumption: Assumption) -> str:
    if assumption.bounds:
        return "Charged is what is attained"
    return "What is charged is the assumed bound, so that no claim holds: say which column it bounds"


def check_candidates(case: Case) -> Iterator[Finding]:
    """Yields a finding where the declaration's own candidates are no pairs of neighbours; they refute nothing."""
    refused = refused_candidates(case.declaration, case.values)
    if refused:
        shown = "; ".join(refused[:3]) + (f"; and {len(refused) - 3} more" if len(refused) > 3 else "")
        yield Finding(
            code="candidate-refused",
            severity="theoretical",
            where="claim",
            message=f"{len(refused)} of the declaration's own candidates are not neighbours and are left out: {shown}",
            evidence={"refused": str(len(refused))},
        )


def joint_preconditions(case: Case) -> Iterator[Finding]:
    """Yields a finding where a user's actions are computed from others' data, past the billboard."""
    joint = case.declaration.claim.joint
    if joint is not None and "others' data" in joint.sees:
        message = (
            f"joint DP does not follow: the billboard lemma needs that {PRECONDITIONS['outputs']}, and here they are "
            f"computed from {', '.join(joint.sees)}"
        )
        yield Finding(
            code="joint-precondition",
            severity="critical",
            where="claim",
            message=message,
            evidence={"sees": ", ".join(joint.sees)},
        )


def _report_unenforced(assumption: Assumption) -> Finding:
    message = (
        f"the sensitivities presuppose that {assumption.what} is at most {assumption.assumed}, and nothing in the "
        f"algorithm as printed ensures it ({assumption.source}): {assumption.repair}. The verdict is about the "
        "algorithm with that repair"
    )
    return Finding(
        code="assumption-unenforced",
        severity="theoretical",
        where=assumption.what,
        message=message,
        evidence={"assumed": str(assumption.assumed)},
    )


def _report_broken(case: Case, assumption: Assumption) -> bool:
    assert assumption.attained is not None
    kept = at_most(assumption.attained, assumption.assumed)
    if kept is None:
        return assumption.attained.number(case.values) > assumption.assumed.number(case.values) * (1 + 1e-12)
    return not kept
