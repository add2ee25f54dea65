"""Findings, grounds and witnesses of a verdict as plain values, which reports carry as they are.

This module loads neither NumPy nor SymPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from privcheck.support.display import Brief

Severity = Literal["critical", "theoretical", "negligible"]
Basis = Literal["proved", "checked", "stated", "assumed"]
Kind = Literal["derived", "stated by the author", "assumed about data", "public fact", "modelling", ""]

CODES: Final[dict[str, str]] = {
    "claim-refuted": "two neighbouring datasets lose more than the claim allows",
    "claim-unproved": "the composed cost exceeds the claim, and no witness exceeds it",
    "claim-not-for-all-parameters": "the claim holds at the given parameters and fails at others",
    "claim-data-dependent": "the claimed numbers are computed from the data and do not cover its neighbours",
    "claim-order-only": "the claim is stated up to an unstated constant",
    "wrong-relation": "the stated sensitivity belongs to another neighbouring relation",
    "noise-shared": "several values share one draw of noise, so their difference is exact",
    "message-as-sum": "the shuffler releases each message, but the proof analyses only their sum",
    "tree-levels": "the proof counts fewer tree nodes for a user than there are",
    "tree-levels-slack": "the proof counts more tree nodes for a user than there are",
    "release-uncounted": "the proof does not charge a release",
    "release-repeated": "a release happens more often than the proof charges it",
    "release-missing": "the proof charges outputs that are never released",
    "budget-exceeded": "a release costs more than the paper allots to it",
    "epsilon-sum": "the releases' budgets add up to more than the claim",
    "delta-sum": "the releases' failure probabilities add up to more than the claim's",
    "basic-composition": "composing the same releases exactly costs less, for free",
    "assumption-violated": "the paper's own setting breaks a bound that the sensitivities assume",
    "assumption-unenforced": "the algorithm as printed does not enforce a bound that the sensitivities assume",
    "candidate-refused": "a declared witness is not a pair of neighbours",
    "joint-precondition": "actions depend on others' data not only through the billboard, so joint DP does not follow",
    "claim-slack": "the releases cost less than the claim: noise could be saved",
    "stated-sensitivity-refuted": "a pair of neighbours moves the statistic further than the paper states",
    "stated-sensitivity-slack": "the paper states more than any pair of neighbours moves the statistic",
    "stated-sensitivity-undecided": "stated and derived sensitivity could not be compared for all parameters",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """One fact or assumption that a verdict depends on.

    Attributes:
        basis: "proved" here, for all parameters; "checked" at some parameters or on some pairs; "stated" by the
            declaration's author and not proved; "assumed" of the data or of the algorithm.
        where: The release, or "all releases".
        what: The fact.
        by: The theorem, the tests made, or the person responsible for it.
        kind: Kind of fact: "derived" here; "stated by the author" of a statistic, a mechanism or a pair; "assumed about
            data"; a "public fact", which neighbours share; or "modelling": who is protected, who is sampled, how draws
            depend on one another, and the order of the outputs; empty in documents of earlier versions.
        checked_where: The check on input that refuses data that contradicts it; None if there is none.
    """

    basis: Basis
    where: str
    what: str
    by: str
    kind: Kind = ""
    checked_where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Witness(Brief):
    """Two neighbouring datasets, given by the one user in which they differ, and how well they can be distinguished.

    Attributes:
        pair: That user's data in D and in D′; None if the user is absent.
        loss: The exact loss in the claim's own unit (ρ of zCDP, μ of Gaussian DP, δ of (0, δ)-DP, else ε), rounded
            down; ∞ if outputs reveal an exact difference.
        changes: For each release that holds the user, for one contribution, ‖f(D) − f(D′)‖₁ and ‖f(D) − f(D′)‖₂².
        words: The pair in words.
        by: Names of the procedures and releases that distinguish the two, if not everything does; empty for all noisy
            statistics together.
        group: The user's group in a partition of the users; empty without one.
    """

    pair: tuple[Any, Any]
    loss: float
    changes: Mapping[str, tuple[float, float]]
    words: str
    group: str = ""
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Distance of one release between a pair of neighbours: ℓ₁, and ℓ₂ squared."""

    l1: float
    l2_squared: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlainWitness(Brief):
    """A witness in plain values, as reports carry it.

    Attributes:
        words: Description of the pair.
        loss: Exact loss in the claim's unit.
        changes: Distances by release.
        group: The user's group in a partition of the users; None without one.
        pair: The user in D and in D′: columns by name, None for a missing user. The whole field is None if the
            trajectories are too long.
    """

    words: str
    loss: float
    changes: Mapping[str, Change]
    group: str | None = None
    pair: tuple[Mapping[str, Any] | str | None, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Finding(Brief):
    """One finding.

    Attributes:
        code: One of `CODES`; stable, with a section in the documentation.
        severity: "critical": a formal guarantee is void; "theoretical": a proof step or its economy is affected, not
            the guarantee; "negligible": good to know.
        where: The release, or "claim".
        message: The finding in words, with figures.
        evidence: The figures by name.
        witness: The pair of neighbours that shows it, if there is one; in plain values in a report.
    """

    code: str
    severity: Severity
    where: str
    message: str
    evidence: Mapping[str, str] = field(default_factory=dict)
    witness: Witness | PlainWitness | None = None
