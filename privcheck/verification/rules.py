"""Findings and the rules that make them: on the claim, composition, schedules, sensitivities, messages, assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal

from privcheck.accounting import compose
from privcheck.accounting.billboard_lemma import PRECONDITIONS
from privcheck.declare.declaration import Assumption, Declaration
from privcheck.declare.mechanisms import ShuffledNoise, shuffled_noise
from privcheck.declare.procedures import MatrixMechanism
from privcheck.declare.procedures.charges import release_branches
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne, of_one_trajectory
from privcheck.declare.releases import L1, L2, Release
from privcheck.declare.schedules import Poisson, Sampled, Tree
from privcheck.pricing import Account, Priced, ReleaseCost
from privcheck.terms.guarantees import ZCDP, ApproxDP, Budget, PureDP
from privcheck.terms.symbols import Expr, at_most, same
from privcheck.verification.candidates import candidate_pairs, refused_candidates
from privcheck.verification.findings import Finding, Severity, Witness
from privcheck.verification.grounds import Doubt
from privcheck.verification.witness import describe

# Ratios that are exactly 1 come out as 1 ± a few roundings when they are computed in floats; exact rationals decide
# first, and only an irrational ratio within this distance of 1 is left undecided.
NEAR: Final = 1e-12
DATA_DEPENDENT_REMEDY: Final = (
    "claim what holds for all data, or release the data's own bound privately too, with noise on a smooth sensitivity"
    " of it (Nissim, Raskhodnikova & Smith 2007), and charge that release"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Input of the rules: the declaration with its cost, the worst known pair, and the verdict on the claim.

    Attributes:
        priced: The declaration at its parameters, with its cost.
        witness: The worst known pair.
        verdict: "holds", "fails" or "undecided".
        upper: Composed cost over claim.
        lower: The witness's loss over claim.
        elsewhere: Parameters at which a claim that holds here does not.
        doubts: Reasons why the claim does not hold even if the composed cost is within it.
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
        """The declaration that is judged."""
        return self.priced.declaration

    @property
    def values(self) -> Mapping[str, Fraction]:
        """The parameters."""
        return self.priced.values

    @property
    def account(self) -> Account:
        """Composed cost for all parameters."""
        return self.priced.account

    @property
    def unpaid(self) -> Severity:
        """Severity of a step that charges too little: critical, but theoretical if the claim holds all the same."""
        return "theoretical" if self.verdict == "holds" else "critical"

    @property
    def paid_words(self) -> str:
        """Remark on such a step if the claim holds all the same; else empty."""
        return "; the claim still holds: other steps are loose enough to compensate" if self.paid else ""

    @property
    def paid(self) -> bool:
        """Whether the claim holds."""
        return self.verdict == "holds"


def over(size: float, given: float) -> float:
    """Ratio size/given; for a given 0, 1 if the size is 0 too and ∞ otherwise."""
    if given == 0:
        return 1.0 if size == 0 else math.inf
    return size / given


def claim_findings(case: Case) -> Iterator[Finding]:
    """Yield whether the claim is refuted, unproved, loose, or true at these parameters only."""
    upper, lower = case.upper, case.lower
    figures = {"upper/claim": f"{upper:.9g}", "lower/claim": f"{lower:.9g}"}
    if case.verdict == "fails":
        lost = f"loses {lower:.6g} times the claim" if math.isfinite(lower) else "is distinguished with certainty"
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
    """Yield the theorems missing for a verdict, for outputs with bounds that are known not to meet."""
    for one in declaration.joined:
        if isinstance(one, MatrixMechanism) and one.bins is not None:
            yield f"{one.name}: a tight price of bins whose steps share rows of the encoder is not known"
        elif isinstance(one, MatrixMechanism):
            yield f"{one.name}: the worst set of a user's steps is not known for an encoder with both signs"
        if not isinstance(one, Release):
            continue
        law, schedule = one.mechanism.law, one.schedule
        if isinstance(schedule, Sampled) and not law.gaussian:
            yield (
                f"{one.name}: the joint law of all numbers of a sampled table with {law.name} noise is not known; its "
                "pairs are distinguished by one number a round"
            )
        if isinstance(schedule, Poisson) and schedule.most is not None:
            yield f"{one.name}: a tight price of a truncated Poisson sample of few users is not known"
        if law.shuffled:
            yield f"{one.name}: the joint law of all counters' messages behind the shuffler is not known"


def order_only(case: Case) -> Iterator[Finding]:
    """Yield a finding on a claim up to an unstated constant, with the figure up to which it holds."""
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
    """Yield a finding on a claim that is computed from the data."""
    claim = case.declaration.claim
    if not claim.data_dependent:
        return
    figures = {"upper/claim": f"{case.upper:.9g}", "lower/claim": f"{case.lower:.9g}"}
    kept = "; the releases cost no more on any data" if case.paid else ""
    message = (
        f"the claimed numbers are computed from {claim.data_dependent}: they describe one dataset, not its neighbours, "
        f"and publishing them leaks about the data{kept}"
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


def check_budgets(case: Case) -> Iterator[Finding]:
    """Yield a finding for every release that costs more than the budget that the paper assigns to it."""
    for cost in case.account.costs:
        budget = cost.release.budget
        if budget is None:
            continue
        spent, given = _cost(case, cost.release), _size(case, budget)
        if spent > given * (1 + NEAR):
            times = over(spent, given)
            figures = {"budget": str(budget), "cost/budget": f"{times:.6g}"}
            message = f"this release costs {times:.6g} times the {budget} that the paper allots to it"
            yield Finding(
                code="budget-exceeded",
                severity=case.unpaid,
                where=cost.release.name,
                message=message + case.paid_words,
                evidence=figures,
            )


def budgets_add_up(case: Case) -> Iterator[Finding]:
    """Yield a finding if the releases' budgets add up to more than the claim, in ε (or ρ), or in δ."""
    claim = case.declaration.claim.guarantee
    if not isinstance(claim, Budget):
        return
    sums = [_sum(case, case.declaration.seen_by(group)) for group in case.declaration.groups]
    if any(s is None for s in sums) or case.declaration.claim.composition == "advanced":
        return
    size, delta = (max(s[i] for s in sums if s is not None) for i in (0, 1))
    claimed = _size(case, claim)
    claimed_delta = claim.delta.number(case.values) if isinstance(claim, ApproxDP) else 0.0
    unit = "ρ" if isinstance(claim, ZCDP) else "ε"
    for code, name, total, allowed in (
        ("epsilon-sum", unit, size, claimed),
        ("delta-sum", "δ", delta, claimed_delta),
    ):
        if total > allowed * (1 + NEAR):
            message = f"the releases' budgets add up to {name} = {total:.6g}, the claim says {allowed:.6g}"
            yield Finding(
                code=code,
                severity=case.unpaid,
                where="claim",
                message=message + case.paid_words,
                evidence={"sum": f"{total:.9g}", "claim": f"{allowed:.9g}"},
            )


def tighter_composition(case: Case) -> Iterator[Finding]:
    """Yield the saving by exact composition of the same releases, if the paper's is basic or advanced."""
    claim = case.declaration.claim
    if claim.composition not in ("basic", "advanced") or not isinstance(claim.guarantee, ApproxDP | PureDP):
        return
    delta = claim.guarantee.delta.number(case.values) if isinstance(claim.guarantee, ApproxDP) else 0.0
    if delta == 0.0:
        return
    together = case.priced.epsilon(delta)
    alone = [_summed_costs(case, case.declaration.seen_by(group), delta) for group in case.declaration.groups]
    apart = max(alone)
    if math.isfinite(apart) and together < apart * (1 - NEAR):
        message = (
            f"{claim.composition} composition of the releases gives ε = {apart:.6g} at δ = {delta:g}; composed exactly "
            f"they cost {together:.6g}, {together / apart:.4g} of it, for free"
        )
        yield Finding(
            code="basic-composition",
            severity="negligible",
            where="claim",
            message=message,
            evidence={"basic": f"{apart:.9g}", "exact": f"{together:.9g}"},
        )


def _sum(case: Case, releases: tuple[Release, ...]) -> tuple[float, float] | None:
    """Σε (or Σρ) and Σδ of the budgets; None if one is missing or of another kind than the claim."""
    kind = ZCDP if isinstance(case.declaration.claim.guarantee, ZCDP) else PureDP | ApproxDP
    if not all(isinstance(r.budget, kind) for r in releases):
        return None
    budgets = [r.budget for r in releases if r.budget is not None]
    deltas = [b.delta.number(case.values) for b in budgets if isinstance(b, ApproxDP)]
    return math.fsum(_size(case, b) for b in budgets), math.fsum(deltas)


def _summed_costs(case: Case, releases: tuple[Release, ...], delta: float) -> float:
    """Σε of the releases, each at an equal share of δ."""
    return math.fsum(_epsilon(case, r, delta / len(releases)) for r in releases)


def _cost(case: Case, release: Release) -> float:
    """Cost of a release in its budget's unit."""
    cost = next(c for c in case.account.costs if c.release is release)
    if isinstance(release.budget, ZCDP):
        return cost.rho.number(case.values)
    if isinstance(release.budget, ApproxDP):
        return _epsilon(case, release, release.budget.delta.number(case.values))
    return math.inf if cost.pure is None else cost.pure.number(case.values)


def _epsilon(case: Case, release: Release, delta: float) -> float:
    cost = next(c for c in case.account.costs if c.release is release)
    if cost.rho.infinite and cost.mu_squared is None and case.priced.numbers.unbounded:
        return math.inf
    branches = release_branches([(release, cost.charged)], case.values)
    return max((compose(*branch).epsilon(delta=delta).value for branch in branches), default=0.0)


def _size(case: Case, guarantee: Budget) -> float:
    return (guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon).number(case.values)


def check_tree_levels(case: Case) -> Iterator[Finding]:
    """Yield a finding for every binary tree for which the proof's count of a user's nodes is not exact."""
    for release in case.declaration.noisy:
        if isinstance(release.schedule, Tree) and release.schedule.counted is not None:
            yield from _compare(case, release, release.schedule.counted, ("tree-levels", "tree-levels-slack"))


def check_outputs(case: Case) -> Iterator[Finding]:
    """Yield a finding for every release that is output more or less often than the proof charges."""
    for release in case.declaration.noisy:
        if release.counted is None:
            continue
        never = release.counted.rational(case.values) == 0
        yield from _compare(
            case, release, release.counted, ("release-uncounted" if never else "release-repeated", "release-missing")
        )


def _compare(case: Case, release: Release, counted: Expr, codes: tuple[str, str]) -> Iterator[Finding]:
    times = release.schedule.times
    enough, loose = at_most(times, counted), at_most(counted, times)
    high, low = counted.number(case.values), times.number(case.values)
    enough = low <= high * (1 + NEAR) if enough is None else enough
    loose = high <= low * (1 + NEAR) if loose is None else loose
    if enough and loose:
        return
    severity: Severity = "negligible" if enough else case.unpaid
    figures = {"counted": str(counted), "outputs": str(times), "counted here": f"{high:g}", "outputs here": f"{low:g}"}
    words = f"one user is in up to {low:g} outputs ({release.schedule.words}: {times}), the proof charges {high:g}"
    yield Finding(
        code=codes[1] if enough else codes[0],
        severity=severity,
        where=release.name,
        message=f"{words} ({counted})" + ("" if enough else case.paid_words),
        evidence=figures,
    )


def message_as_sum(case: Case) -> Iterator[Finding]:
    """Yield a finding for every release of integer messages, from the mechanism alone, for any algorithm."""
    for cost in case.account.costs:
        release = cost.release
        if not release.mechanism.law.integers:
            continue
        shown = [
            _probability_of_showing(shuffled_noise(release.mechanism.at(at))) for at in release.settings(case.values)
        ]
        if not shown:
            continue
        probability, users, m = max(shown)
        message = (
            "every user sends one integer, and the shuffler releases the multiset of integers, but the proof analyses "
            f"only their sum: among {users} users a message {m + 1} shows a bit 1 among others' bits 0, or a message "
            f"0 a bit 0 among others' bits 1, with probability up to {probability:.4g} a counter. With a separate "
            "message for each bit, only the sum would be revealed"
        )
        yield Finding(
            code="message-as-sum",
            severity=case.unpaid,
            where=release.name,
            message=message + case.paid_words,
            evidence={"users": str(users), "noise bits": str(m), "probability": f"{probability:.9g}"},
            witness=case.witness if case.verdict == "fails" else None,
        )


def _probability_of_showing(noise: ShuffledNoise) -> tuple[float, int, int]:
    """Probability that one counter reveals its user, with the number of users and of noise bits of each."""
    m, p = noise.bits
    return (1 - p) ** m, noise.senders, m


def check_assumptions(case: Case) -> Iterator[Finding]:
    """Yield a finding for every bound that nothing enforces, or that the paper's own setting breaks."""
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
        return "The attained value is charged"
    return "The assumed bound is charged, so no claim holds: say which column it bounds"


def check_candidates(case: Case) -> Iterator[Finding]:
    """Yield a finding if the declaration's own candidates are not pairs of neighbours; those refute nothing."""
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
    """Yield a finding if a user's actions are computed from others' data, past the billboard."""
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


def stated_sensitivities(case: Case) -> Iterator[Finding]:
    """Yield a finding for every stated sensitivity that differs from the derived one."""
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
    meant = f" is that of another relation ({other.words}); it" if other is not None else ""
    message = (
        f"stated {_norm(stated)} sensitivity {figures['stated']}{meant} is too small by a factor of {ratio:.6g}: "
        f"the derived one is {figures['derived']} ({cost.sensitivity.reason}){shown}. The derived one is charged"
        + case.paid_words
    )
    code = "stated-sensitivity-refuted" if other is None else "wrong-relation"
    return _release_finding(code, case.unpaid, cost, message, figures, witness=witness)


def _other_relation(case: Case, release: Release, stated: L1 | L2) -> Relation | None:
    """Another relation for which the stated sensitivity is exactly right; None if there is none."""
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
    """Find the candidate pair with the largest change of one contribution to one release in the stated norm.

    Its `loss` is the size of the change; a pair that is chosen for all releases together may change this one less.
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
    return _release_finding("stated-sensitivity-slack", "negligible", cost, message, figures)


def _report_undecided(cost: ReleaseCost, figures: dict[str, str]) -> Finding:
    message = f"whether {figures['stated']} bounds {figures['derived']} could be checked at these parameters only"
    return _release_finding("stated-sensitivity-undecided", "theoretical", cost, message, figures)


def _release_finding(
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


def shared_noise(case: Case) -> Iterator[Finding]:
    """Yield a finding for every release without fresh noise, from the declared noise identities alone."""
    leaking = case.declaration.shared_draws
    for name in leaking:
        release = case.declaration.release(name)
        exposed = f"{_how(release)}: the difference is exact, and no amount of noise protects it"
        copies = written_alike(case.declaration, release)
        yield Finding(
            code="noise-shared",
            severity="critical",
            where=name,
            message=f"{_same(copies)}; if they are not, {exposed}" if copies else exposed,
            evidence={"draw": release.draw.name or "its own", "across": ", ".join(release.draw.across) or "releases"},
            witness=case.witness,
        )


def written_alike(declaration: Declaration, release: Release) -> tuple[str, ...]:
    """Releases that share a draw with this one, itself included, if all are declared in the same words.

    Empty if one differs, in its statistic, its noise, its schedule or its users, or if the draw is shared over cells or
    outputs too. The same words do not prove the same table: two clipped sums may be sums of two functions.
    """
    if not release.draw.name or release.draw.across:
        return ()
    sharing = [one for one in declaration.noisy if one.draw.name == release.draw.name]
    words = [(one.statistic, one.mechanism, one.schedule, one.users, one.draw) for one in sharing]
    return tuple(one.name for one in sharing) if all(one == words[0] for one in words) else ()


def declare_once(copies: Sequence[str]) -> str:
    """Remedy for releases of one table that share one draw, in words."""
    return (
        f"if {' and '.join(map(repr, copies))} are one table, it is one release: declare it once; post-processing of "
        "an output costs nothing more"
    )


def _same(copies: Sequence[str]) -> str:
    theorem = "that two statistics are equal on all data is not derived from their declarations"
    return f"{declare_once(copies)} ({theorem})"


def _how(release: Release) -> str:
    if "outputs" in release.draw.across:
        return f"one draw is added to every output ({release.schedule.words}), so that two outputs differ by exact data"
    if "cells" in release.draw.across:
        return "one draw is added to all cells of the table, so that two cells differ by exact data"
    return (
        f"the draw {release.draw.name!r} is added to other releases as well, so that two releases differ by exact data"
    )


Rule = Callable[[Case], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    stated_sensitivities,
    shared_noise,
    message_as_sum,
    check_tree_levels,
    check_outputs,
    check_budgets,
    budgets_add_up,
    tighter_composition,
    check_assumptions,
    check_candidates,
    joint_preconditions,
    order_only,
    data_dependent,
    claim_findings,
)
