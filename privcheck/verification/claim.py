"""Rules on the claim itself: refuted, unproved, loose, or true at the given parameters only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from privcheck.declaration import Declaration
from privcheck.guarantees import ApproxDP
from privcheck.pricing import Account, Priced
from privcheck.procedures import MatrixMechanism
from privcheck.releases import Release
from privcheck.schedules import Poisson, Sampled
from privcheck.verification.findings import Finding, Severity
from privcheck.verification.grounds import Doubt
from privcheck.verification.witness import Witness

# Ratios that are exactly 1 come out as 1 ± a few roundings when they are computed in floats; exact rationals decide
# first, and only an irrational ratio within this distance of 1 is left undecided.
NEAR: Final = 1e-12
DATA_DEPENDENT_REMEDY: Final = (
    "claim what holds for all data, or release the data's own bound privately too, with noise on a smooth sensitivity"
    " of it (Nissim, Raskhodnikova & Smith 2007), and charge that release"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the rules look at: the declaration with its cost, the worst pair known, and the verdict on the claim.

    Attributes:
        priced: The declaration at its parameters, with its cost.
        witness: The worst pair known.
        verdict: "holds", "fails" or "undecided".
        upper: Composed cost over claim.
        lower: The witness's loss over claim.
        elsewhere: Parameters at which a claim that holds here does not.
        doubts: Why the claim does not hold even where the composed cost is within it.
    """

    priced: Priced
    witness: Witness | None
    verdict: Literal["holds", "fails", "undecided"]
    upper: float
    lower: float
    elsewhere: Mapping[str, Fraction] | None
    doubts: tuple[Doubt, ...] = ()

    @property
    def declaration(self) -> Declaration:
        """Returns what is judged."""
        return self.priced.declaration

    @property
    def values(self) -> Mapping[str, Fraction]:
        """Returns the parameters."""
        return self.priced.values

    @property
    def account(self) -> Account:
        """Returns the composed cost for all parameters."""
        return self.priced.account

    @property
    def unpaid(self) -> Severity:
        """Returns how grave a step is that charges too little: critical, unless other steps pay for it."""
        return "theoretical" if self.verdict == "holds" else "critical"

    @property
    def paid_words(self) -> str:
        """Returns what is said of such a step where the claim holds all the same."""
        return "; the claim holds all the same: other steps are loose enough to pay for it" if self.paid else ""

    @property
    def paid(self) -> bool:
        """Returns whether the claim holds."""
        return self.verdict == "holds"


def over(size: float, given: float) -> float:
    """Returns size/given; ∞ of nothing given, and 1 where nothing is taken of it."""
    if given == 0:
        return 1.0 if size == 0 else math.inf
    return size / given


def claim_findings(case: Case) -> Iterator[Finding]:
    """Yields whether the claim is refuted, unproved, loose, or true at these parameters only."""
    upper, lower = case.upper, case.lower
    figures = {"upper/claim": f"{upper:.9g}", "lower/claim": f"{lower:.9g}"}
    if case.verdict == "fails":
        lost = f"loses {lower:.6g} times what is claimed" if math.isfinite(lower) else "is told apart for certain"
        message = f"a pair of neighbours {lost}"
        yield _finding("claim-refuted", "critical", message, figures, case.witness)
    elif case.verdict == "undecided":
        message = f"the composed cost is {upper:.6g} times the claim, the worst known pair loses {lower:.6g} times it"
        message += "".join(f"; {doubt.why}" for doubt in case.doubts)
        message += "".join(f"; {words}" for words in _missing_theorems(case.declaration))
        yield _finding("claim-unproved", "theoretical", message, figures)
    elif upper < 1 - NEAR:
        message = f"the releases cost {upper:.6g} of the claim: less noise would do"
        yield _finding("claim-slack", "negligible", message, figures)
    if case.elsewhere is not None:
        yield _elsewhere(case.elsewhere)


def _missing_theorems(declaration: Declaration) -> Iterator[str]:
    """Yields what would have to be proved for a verdict, of outputs whose bounds are known not to meet."""
    for one in declaration.joined:
        if isinstance(one, MatrixMechanism):
            yield f"{one.name}: missing is the worst set of steps of a user of an encoder with both signs"
        if not isinstance(one, Release):
            continue
        law, schedule = one.mechanism.law, one.schedule
        if isinstance(schedule, Sampled) and not law.gaussian:
            yield (
                f"{one.name}: missing is the joint law of all numbers of a sampled table with {law.name} noise; its "
                "pairs are told apart by one number a round"
            )
        if isinstance(schedule, Poisson) and schedule.most is not None:
            yield f"{one.name}: missing is a tight price of a Poisson sample of few users that is cut off"
        if law.shuffled:
            yield f"{one.name}: missing is the joint law of all counters' messages behind the shuffler"


def order_only(case: Case) -> Iterator[Finding]:
    """Yields what a claim up to an unstated constant leaves open, and the figure up to which it holds."""
    if not case.declaration.claim.order_only:
        return
    guarantee = case.declaration.claim.guarantee
    message = f"the claim is O(·) of {guarantee}, which is not a guarantee; it is judged with the constant 1"
    figures = {}
    if isinstance(guarantee, ApproxDP):
        delta = guarantee.delta.number(case.values, rounding="down")
        holds_to = case.priced.epsilon(delta)
        figures = {"epsilon": f"{holds_to:.9g}", "delta": f"{delta:g}"}
        times = holds_to / guarantee.epsilon.number(case.values)
        message += f". The releases are ({holds_to:.6g}, {delta:g})-DP, {times:.6g} times the ε"
    yield _finding("claim-order-only", "theoretical", message, figures)


def data_dependent(case: Case) -> Iterator[Finding]:
    """Yields what a claim computed from the data leaves open."""
    claim = case.declaration.claim
    if not claim.data_dependent:
        return
    figures = {"upper/claim": f"{case.upper:.9g}", "lower/claim": f"{case.lower:.9g}"}
    kept = "; the releases cost no more on any data" if case.paid else ""
    message = (
        f"the claimed numbers are computed from {claim.data_dependent}: they are about one dataset, not its neighbours,"
        f" and telling them tells of the data{kept}"
    )
    message += "" if case.paid else f". On the worst data the cost is {case.upper:.6g} times the claim"
    severity: Severity = "negligible" if case.paid else "theoretical"
    yield _finding("claim-data-dependent", severity, message, figures)


def _finding(
    code: str, severity: Severity, message: str, evidence: dict[str, str], witness: Witness | None = None
) -> Finding:
    return Finding(code=code, severity=severity, where="claim", message=message, evidence=evidence, witness=witness)


def _elsewhere(point: Mapping[str, Fraction]) -> Finding:
    at = ", ".join(f"{name} = {value}" for name, value in sorted(point.items()))
    message = f"the claim holds at these parameters, not for all: the composed cost exceeds it at {at}"
    evidence = {name: str(value) for name, value in point.items()}
    return Finding(
        code="claim-not-for-all-parameters", severity="theoretical", where="claim", message=message, evidence=evidence
    )
