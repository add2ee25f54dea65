"""Rules on sensitivities: what the paper states against what is derived for the declared relation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from privcheck.pricing import ReleaseCost
from privcheck.relations import AddRemoveOne, Relation, ReplaceOne, of_one_trajectory
from privcheck.releases import L1, L2, Release
from privcheck.symbols import at_most, same
from privcheck.verification.candidates import candidate_pairs
from privcheck.verification.claim import NEAR, Case, over
from privcheck.verification.findings import Finding, Severity
from privcheck.verification.witness import Witness, describe


def stated_sensitivities(case: Case) -> Iterator[Finding]:
    """Yields a finding for every stated sensitivity that is not the derived one."""
    for cost in case.account.costs:
        stated = cost.release.stated
        if stated is None:
            continue
        derived = stated.true(cost.sensitivity)
        # squares: neither is negative, and a root often hides what SymPy could decide
        enough, loose = at_most(derived**2, stated.value**2), at_most(stated.value**2, derived**2)
        ratio = over(derived.number(case.values), stated.value.number(case.values))
        figures = {"stated": str(stated.value), "derived": str(derived), "derived/stated": f"{ratio:.6g}"}
        if enough is None:
            enough = ratio <= 1 + NEAR
            if enough and ratio != 1:  # where it fails here, a pair refutes it
                yield _report_undecided(cost, figures)
        if loose is None:
            loose = ratio >= 1 - NEAR
        if enough and loose:
            continue
        if enough:
            yield _slack(cost, figures, ratio)
        else:
            yield _report_refuted(case, cost, stated, figures, ratio)


def _norm(stated: L1 | L2) -> str:
    return "ℓ₁" if isinstance(stated, L1) else "ℓ₂"


def _report_refuted(case: Case, cost: ReleaseCost, stated: L1 | L2, figures: dict[str, str], ratio: float) -> Finding:
    witness = furthest(case, cost.release, stated)
    shown = "" if witness is None else f"; a pair of neighbours moves it by {witness.loss:.6g}"
    other = _other_relation(case, cost.release, stated)
    meant = f", the figure for: {other.words}," if other is not None else ""
    message = (
        f"stated {_norm(stated)} sensitivity {figures['stated']}{meant} is too small by a factor of {ratio:.6g}: "
        f"the derived one is {figures['derived']} ({cost.sensitivity.reason}){shown}. The derived one is charged"
        + case.paid_words
    )
    code = "stated-sensitivity-refuted" if other is None else "wrong-relation"
    return _finding(code, case.unpaid, cost, message, figures, witness=witness)


def _other_relation(case: Case, release: Release, stated: L1 | L2) -> Relation | None:
    """Returns another relation under which the stated sensitivity is exactly right."""
    declared = case.declaration.relation
    unit, several = declared.unit, declared.trajectories
    others = (AddRemoveOne(unit, trajectories=several), ReplaceOne(unit, trajectories=several))
    for relation in (*others, of_one_trajectory(declared), AddRemoveOne(unit), ReplaceOne(unit)):
        if relation == declared:
            continue
        if same(stated.true(release.contributed(relation)) ** 2, stated.value**2):
            return relation
    return None


def furthest(case: Case, release: Release, stated: L1 | L2) -> Witness | None:
    """Returns the candidate pair that moves one contribution to one release furthest in the stated norm.

    `loss` is how far; a pair that is chosen for all releases together may move this one less.
    """
    alone = case.priced.of(replace(case.declaration, releases=(release,)))
    best: Witness | None = None
    for pair in candidate_pairs(alone, release.users):
        change = release.statistic.difference(release.one_contribution(pair))
        moved = change.l1 if isinstance(stated, L1) else math.sqrt(change.l2_squared)
        if best is None or moved > best.loss:
            changes = {release.name: (change.l1, change.l2_squared)}
            best = Witness(pair=pair, loss=moved, changes=changes, words=describe(pair), group=release.users)
    return best


def _slack(cost: ReleaseCost, figures: dict[str, str], ratio: float) -> Finding:
    needed = f"{1 / ratio:.6g}" if ratio > 0 else "infinitely many"
    message = (
        f"stated sensitivity {figures['stated']} is larger than any pair of neighbours shows, {figures['derived']} "
        f"(derived/stated {ratio:.6g}): noise calibrated to it is {needed} times what is needed"
    )
    return _finding("stated-sensitivity-slack", "negligible", cost, message, figures)


def _report_undecided(cost: ReleaseCost, figures: dict[str, str]) -> Finding:
    message = f"whether {figures['stated']} bounds {figures['derived']} could be checked at these parameters only"
    return _finding("stated-sensitivity-undecided", "theoretical", cost, message, figures)


def _finding(
    code: str,
    severity: Severity,
    cost: ReleaseCost,
    message: str,
    figures: dict[str, str],
    *,
    witness: Witness | None = None,
) -> Finding:
    return Finding(
        code=code, severity=severity, where=cost.release.name, message=message, evidence=figures, witness=witness
    )
