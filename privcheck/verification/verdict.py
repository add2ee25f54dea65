"""The verdict on a claim: an upper and a lower bound on the loss, in the claim's own unit."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal

from privcheck.declare.declaration import Declaration, check_declaration
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.releases import Release
from privcheck.declare.statements import JudgedStatement, judge_statements
from privcheck.declare.statistics.counts import CellSums, PooledSums
from privcheck.errors import DeclarationError, ParameterError, PrivcheckError
from privcheck.pricing import Account, Priced, once
from privcheck.pricing.calibration import needed_factor
from privcheck.support.display import Brief
from privcheck.terms.guarantees import ApproxDP, PrivacyProfile, check_range
from privcheck.terms.symbols import Expr, same, to_float
from privcheck.terms.unit import Unit
from privcheck.verification.comparisons import Decision, decide, refute
from privcheck.verification.findings import Finding, Ground, Witness
from privcheck.verification.grounds import Doubt, doubts, for_all_parameters, grounds, list_given
from privcheck.verification.joint_worst_case import cost_together
from privcheck.verification.rules import DATA_DEPENDENT_REMEDY, NEAR, RULES, Case, declare_once, written_alike
from privcheck.verification.stated_prices import try_prices
from privcheck.verification.stated_sensitivities import stated_statistics, try_stated
from privcheck.verification.units import claimed_in, cost_in, over, unit_of
from privcheck.verification.witness import worst_witness

_NO_BOUND: Final = "no finite bound is known for this noise at any scale"
_NO_MU: Final = "claim (ε, δ)-DP, at several points where need be: no μ is known that bounds the whole curve"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verification(Brief):
    """The verdict about the releases that the proof is about.

    Attributes:
        algorithm: Name of the algorithm.
        claim: In words.
        verdict: "holds" (upper ≤ claim), "fails" (a witness exceeds the claim), "undecided" (never a pass).
        method: "proved" for all parameters; "checked" at the given ones, or given the author's statements; "witness" if
            a pair refutes the claim.
        unit: Who is protected, with how much of the data, between which neighbours and in which model of trust.
        joint: Conclusion for joint DP; None if the claim is not about it.
        statements: The judgement of each statement that the paper prints.
        upper_ratio: Composed cost over claim, rounded up; ∞ if the accountant has no finite bound.
        lower_ratio: The witness's loss over claim, rounded down; 0 without a witness.
        given: Statistics and mechanisms with a sensitivity or cost stated by their author: the verdict is conditional
            on these statements, which were tested without a contradiction.
        rests_on: Every assumption and fact that the verdict depends on, the weakest first.
        findings: All findings, the most severe first.
        witness: The worst known pair.
        account: The composed cost with its derivation.
    """

    algorithm: str
    claim: str
    verdict: Literal["holds", "fails", "undecided"]
    method: Literal["proved", "checked", "witness"]
    joint: Literal["follows", "unproved", "refuted"] | None
    statements: tuple[JudgedStatement, ...]
    upper_ratio: float
    lower_ratio: float
    unit: Unit
    given: tuple[str, ...]
    rests_on: tuple[Ground, ...]
    findings: tuple[Finding, ...]
    witness: Witness | None
    account: Account
    _repair: Callable[[], str] = field(repr=False, compare=False)  # follows from the rest

    @property
    def repair(self) -> str:
        """Least change that makes a failing claim true or takes the slack out of a loose one, in words.

        Computed on first access: it may calibrate all noise.
        """
        return self._repair()


def verify(declaration: Declaration, values: Mapping[str, Fraction]) -> Verification:
    """Decide whether the declared releases satisfy the claim.

    Upper bound: the composed cost at the derived sensitivities, or the releases' joint worst case if that is derived
    (`cost_together`) and smaller. Lower bound: the exact loss of a pair of neighbours.

    Upper ≤ claim: holds, proved if SymPy decides it for all parameters and nothing is stated by an author, else
    checked. Lower > claim: fails. Otherwise undecided; the claim never holds if the cost depends on something that is
    broken, or that could not be tested (`doubts`).

    Args:
        declaration: The declaration to judge.
        values: Parameters, for the numeric ratios and the witness; defaults for those that are not given.

    Raises:
        UnknownNameError: A name is not a parameter.
        ParameterError: A value is not of its parameter's kind, or the declaration is not defined there.
        ProofError: A number contradicts a proof.
        DeclarationError: A statistic changes by more than its author states, a pair loses more than the stated cost of
            a mechanism, or a witness more than the composed cost: the two contradict each other, and neither is
            reported.
    """
    check_declaration("verify", declaration)
    return judge(Priced(declaration, values))


@once
def judge(priced: Priced) -> Verification:
    """Same as `verify`, for a declaration that is priced already."""
    declaration, values = priced.declaration, priced.values
    check_range(f"{declaration.name}: the claim", declaration.claim.guarantee, values)
    for one in declaration.releases:
        if isinstance(one, OwnMechanism):
            check_range(f"{one.name}: its price", one.guarantee, values)
    if isinstance(declaration.claim.guarantee, PrivacyProfile):
        return _at_every_point(priced, declaration.claim.guarantee.points)
    if priced.sizes:
        return _dearest(priced)
    composed = priced.account
    tried = tuple(try_stated(priced, release) for release in stated_statistics(declaration))
    tried += try_prices(declaration, values)
    doubted = doubts(declaration, tried, values)
    witness = worst_witness(priced, [one.furthest for one in tried if one.furthest is not None])
    unit = unit_of(declaration, values)
    cost, claimed = cost_in(unit, priced), claimed_in(unit, declaration)
    decision = decide(cost, claimed, declaration.parameters) if isinstance(cost, Expr) and not cost.infinite else None
    proved = decision is not None and decision.method == "proved" and for_all_parameters(declaration)
    apart = min(_upper(cost, claimed, values, decision), _upper_moving(priced))
    upper = min(apart, _upper_together(declaration, claimed, values))
    target = claimed.number(values)
    lower = 0.0 if witness is None else _ratio_down(witness.loss, target)
    if lower > upper * (1 + NEAR):
        message = (
            f"{declaration.name}: a witness loses {lower:.9g} of the claim, above the composed cost {upper:.9g}: a "
            "statistic moves further than its stated sensitivity"
        )
        raise DeclarationError(message)
    verdict: Literal["holds", "fails", "undecided"] = "undecided"
    method: Literal["proved", "checked", "witness"] = "checked"
    if upper <= 1 and not doubted:
        verdict, method = "holds", "proved" if proved and not tried else "checked"
    elif declaration.claim.data_dependent:
        verdict = "undecided"
    elif witness is not None and lower > 1 and witness.loss > claimed.number(values, rounding="up"):
        verdict, method = "fails", "witness"
    elsewhere = decision.counterexample if decision is not None and verdict == "holds" and apart <= 1 else None
    if elsewhere is not None and _upper_together(declaration, claimed, {**values, **elsewhere}) <= 1:
        elsewhere = None
    case = Case(
        priced=priced,
        witness=witness,
        verdict=verdict,
        upper=upper,
        lower=lower,
        elsewhere=elsewhere,
        doubts=doubted,
    )
    findings = [finding for rule in RULES for finding in rule(case)]
    joint, given = _joint(declaration, verdict), list_given(tried)
    order = ("critical", "theoretical", "negligible")
    return Verification(
        algorithm=declaration.name,
        claim=declaration.claim_and_source,
        verdict=verdict,
        method=method,
        joint=joint,
        statements=judge_statements(
            declaration.claim.statements, declaration.origin, verdict=verdict, joint=joint, given=given
        ),
        upper_ratio=upper,
        lower_ratio=lower,
        unit=declaration.unit(values),
        given=given,
        rests_on=grounds(declaration, tried, values, proved=proved and verdict == "holds", by_pair=method == "witness"),
        findings=tuple(sorted(findings, key=lambda f: order.index(f.severity))),
        witness=witness,
        account=composed,
        _repair=functools.cache(
            lambda: _least_change(priced, verdict=verdict, upper=upper, lower=lower, doubted=doubted)
        ),
    )


def _at_every_point(priced: Priced, points: Sequence[ApproxDP]) -> Verification:
    """The most severe verdict on the points of a profile: it fails if one fails and holds if all hold."""
    declaration = priced.declaration
    claims = [replace(declaration.claim, guarantee=point) for point in points]
    judged = [judge(priced.of(replace(declaration, claim=claim))) for claim in claims]
    order = ("fails", "undecided", "holds")
    worst = min(judged, key=lambda one: (order.index(one.verdict), -one.lower_ratio, -one.upper_ratio))
    at = f"; decided at {points[judged.index(worst)]}" if len(points) > 1 else ""
    checked = worst.verdict == "holds" and any(one.method != "proved" for one in judged)
    return replace(
        worst,
        claim=f"{declaration.claim_and_source}{at}",
        method="checked" if checked else worst.method,
        upper_ratio=max(one.upper_ratio for one in judged),
        account=priced.account,
    )


def _dearest(priced: Priced) -> Verification:
    """The most severe verdict over all batch sizes, with the highest cost among these; never "proved"."""
    order = ("fails", "undecided", "holds")
    worst = min(map(judge, priced.sizes), key=lambda one: (order.index(one.verdict), -one.upper_ratio))
    method = "checked" if worst.method == "proved" else worst.method
    return replace(worst, method=method, account=priced.account)


def _upper(
    cost: Expr | float, claimed: Expr, values: Mapping[str, Fraction], decision: Decision | None = None
) -> float:
    """Ratio cost/claim, rounded up unless it is exactly 1, or so close that a proof decides.

    Raises:
        ProofError: Cost ≤ claim is proved, and the numbers contradict it.
    """
    if isinstance(cost, float):
        return over(cost, claimed.number(values, rounding="down"))
    if cost.infinite:
        return math.inf
    if same(cost, claimed):
        return 1.0
    if claimed.rational(values) == 0:
        return over(cost.number(values, rounding="up"), 0.0)
    ratio = (cost / claimed).simplified()
    upper = ratio.number(values, rounding="up")
    if upper <= 1 or decision is None or decision.proof is None:
        return upper
    if ratio.number(values, rounding="down") > 1:
        refute(cost, claimed, values, decision.proof)
    return 1.0  # the number is 1 as far as it is known, and the proof says that it is not above


def _upper_moving(priced: Priced) -> float:
    """Cost over claim of the releases that some user can change at these parameters; ∞ if those are all releases.

    A release that is never output costs nothing, nor does one that no user changes, unless it shares a draw of noise
    with another. A table of one state and one action, or of one state, has a smaller sensitivity than others.
    """
    declaration, composed, values = priced.declaration, priced.account, priced.values
    names = [r.draw.name for r in declaration.noisy if r.draw.name]
    moving, settled = [], False
    for cost in composed.costs:
        leaves = bool(cost.release.settings(values)) and cost.release.schedule.times.rational(values) != 0
        shared = names.count(cost.release.draw.name) > 1
        if leaves and (shared or cost.charged.l1.rational(values) != 0):
            moving.append(_settled(cost.release, values))
            settled = settled or moving[-1] != cost.release
    if len(moving) == len(declaration.noisy) and not settled:
        return math.inf
    if not moving and not any(one.events(declaration.relation, values) for one in declaration.others):
        return 0.0
    try:
        fewer = replace(declaration.with_noisy(moving), candidates=None, assumptions=())
        unit = unit_of(fewer, values)
        cost_here, claimed = cost_in(unit, priced.of(fewer)), claimed_in(unit, fewer)
    except PrivcheckError:  # what is left is no declaration: everything is charged
        return math.inf
    return _upper(cost_here, claimed, values)


def _settled(release: Release, values: Mapping[str, Fraction]) -> Release:
    """The release with the sizes of its table replaced by the number 1 if they are 1 at these parameters."""
    table = release.statistic
    return replace(release, statistic=table.settled(values)) if isinstance(table, CellSums | PooledSums) else release


def _upper_together(declaration: Declaration, claimed: Expr, values: Mapping[str, Fraction]) -> float:
    """Joint worst case of the releases over the claim, rounded up; ∞ if it is not derived."""
    together = cost_together(declaration, values)
    if together is None:
        return math.inf
    known = claimed.rational(values)
    claim = Fraction(claimed.number(values, rounding="down")) if known is None else known
    return over(float(together > 0), 0.0) if claim == 0 else to_float(together / claim, rounding="up")


def _ratio_down(loss: float, claimed: float) -> float:
    ratio = over(loss, claimed)
    if math.isinf(ratio):
        return ratio
    if abs(ratio - 1) <= NEAR:
        return 1.0
    return math.nextafter(ratio, 0.0)


def _joint(declaration: Declaration, verdict: str) -> Literal["follows", "unproved", "refuted"] | None:
    """Conclusion of the billboard lemma for joint DP; its failure refutes nothing, only an audit of actions can."""
    if declaration.claim.joint is None:
        return None
    lemma = "others' data" not in declaration.claim.joint.sees
    return "follows" if verdict == "holds" and lemma else "unproved"


def _least_change(priced: Priced, *, verdict: str, upper: float, lower: float, doubted: Sequence[Doubt]) -> str:
    declaration, values = priced.declaration, priced.values
    if leaking := declaration.shared_draws:
        fresh = f"draw fresh noise for every output of {', '.join(leaking)}: no amount of reused noise is enough"
        copies = dict.fromkeys(written_alike(declaration, declaration.release(name)) for name in leaking)
        return "; ".join([*(declare_once(alike) for alike in copies if alike), fresh])
    if verdict != "holds" and any(r.mechanism.law.integers for r in declaration.noisy):
        return "send every bit as a separate message: the messages then reveal only the sum, which the proof analyses"
    remedies = [doubt.remedy for doubt in doubted]
    remedies += [DATA_DEPENDENT_REMEDY] if declaration.claim.data_dependent else []
    if verdict == "undecided" and remedies:
        return "; ".join(remedies)
    if verdict == "holds" and (upper > 1 - NEAR or upper == 0):
        why = "the claim holds with equality" if lower > 1 - NEAR else "the composed cost is exactly what is claimed"
        why = why if upper else "the releases cost nothing in the claim's unit at these parameters"
        return f"nothing to change: {why}"
    if not math.isfinite(upper):
        unknown = verdict == "undecided" and unit_of(declaration, values) == "mu"
        known = "no amount of this noise gives the claim" if math.isinf(lower) else _NO_BOUND
        return _NO_MU if unknown else f"{known}: another mechanism is needed"
    factor = _least_factor(priced, upper)
    words = {
        "holds": "every noise's standard deviation may be multiplied by {} and the claim still holds",
        "fails": "multiply every noise's standard deviation by {} and the claim holds",
        "undecided": "multiply every noise's standard deviation by {} and the claim holds, whether or not it holds now",
    }
    return "" if factor is None else words[verdict].format(_rounded_up(factor))


def _rounded_up(factor: float) -> str:
    """The factor with six digits, rounded up."""
    text = f"{factor:.6g}"
    return text if float(text) >= factor * (1 - NEAR) else f"{factor * (1 + 5e-6):.6g}"


def _least_factor(priced: Priced, upper: float) -> float | None:
    """Smallest noise multiplier that meets the claim with equality, or None if unknown."""
    declaration, values = priced.declaration, priced.values
    unit, claim = unit_of(declaration, values), declaration.claim.guarantee
    if unit != "epsilon" and (declaration.others or unit == "delta"):
        return None  # not every price of theirs is a power of the spread
    if unit in {"mu", "renyi"} and any(not r.mechanism.law.gaussian for r in declaration.noisy):
        return None
    if unit in {"rho", "renyi"}:
        return math.sqrt(upper)
    if unit in {"pure", "mu"}:
        return upper
    assert isinstance(claim, ApproxDP)
    epsilon, delta = claim.epsilon.number(values, rounding="down"), claim.delta.number(values, rounding="down")
    try:
        return needed_factor(priced, epsilon=epsilon, delta=delta)
    except ParameterError:
        return None
