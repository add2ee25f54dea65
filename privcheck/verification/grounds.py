"""Evidence and assumptions of a verdict: proved here, checked by enumeration, stated by the author, assumed, or public.

Also the reasons why a claim does not hold although the composed cost is within it: something that the cost depends on
is broken, or could not be tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import PRICED
from privcheck.declare.procedures import (
    OURS,
    AdaptiveSparseVector,
    GaussianSparseVector,
    MatrixMechanism,
    NoisyVotes,
    OnSample,
    Procedure,
    SharedSample,
    ShuffledRandomizer,
    SparseVector,
)
from privcheck.declare.relations import AddRemoveOne, Relation
from privcheck.declare.releases import Release, is_additive
from privcheck.declare.schedules import Once, PerUser, Sampled, public_facts
from privcheck.declare.statements import PublicFact
from privcheck.declare.statistics import ClippedSums, FeatureSums, GramMatrices, SmallestEigenvalue, Statistic
from privcheck.declare.statistics.sensitivities import is_derived
from privcheck.terms.symbols import at_most, expression
from privcheck.verification.findings import Ground
from privcheck.verification.stated_sensitivities import Tried

_READER: Final = "the reader of tables, where users are named (`user` column)"
_DOORS: Final = "the reader of tables and the ledger, which compare units (`privcheck.Unit`)"
_RUNS: Final = "the operator"
_EVERYWHERE: Final = "all releases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Reason why a claim does not hold although the composed cost is within it.

    Attributes:
        why: In words.
        remedy: What to do.
    """

    why: str
    remedy: str


def grounds(
    declaration: Declaration, tried: Sequence[Tried], values: Mapping[str, Fraction], *, proved: bool, by_pair: bool
) -> tuple[Ground, ...]:
    """Facts and assumptions that the verdict on a declaration depends on, the weakest first.

    Args:
        declaration: The declaration that is judged.
        tried: Tests of the sensitivities and costs that authors state.
        values: The parameters, for the unit of privacy.
        proved: Whether cost ≤ claim is decided for all parameters.
        by_pair: Whether the verdict depends on a pair of neighbours, such as one of the author's candidates.
    """
    rests_on = [_from_stated(one) for one in tried]
    tried_prices = {one.release for one in tried if one.of == "price"}
    rests_on += [
        _stated(r.name, f"the price of {r.mechanism.words}", "nothing: not a built-in noise")
        for r in declaration.noisy
        if not _has_price(r) and r.name not in tried_prices
    ]
    rests_on += [_from_price(one) for one in declaration.others if one.name not in tried_prices]
    if by_pair and declaration.candidates is not None and not all(map(is_derived, _statistics(declaration))):
        what = "the candidates of the declaration are possible data of two users"
        rests_on.append(
            _stated(_EVERYWHERE, what, "its author; sizes, bounds and relation were checked for every pair")
        )
    rests_on += [
        _assumed(
            _EVERYWHERE,
            f"{a.what} at most {a.assumed if a.attained is None else a.attained}",
            "nothing: the algorithm as printed does not enforce it" if a.attained is None else a.source,
        )
        for a in declaration.assumptions
    ]
    rests_on += _preconditions(declaration)
    has, protected = unit_grounds(declaration, values)
    rests_on += [has, *_public_facts(declaration), protected]
    rests_on += _modelling(declaration)
    rests_on += [
        Ground(
            kind="derived",
            basis="proved",
            where=r.name,
            what=f"the sensitivity of {r.statistic.name}",
            by=f"{r.statistic.sensitivity(declaration.relation).reason}; compared with neighbours in the tests",
        )
        for r in declaration.statistics_released
        if is_derived(r.statistic)
    ]
    rests_on.append(_from_comparison(proved=proved))
    order = ("stated", "assumed", "checked", "proved")
    return tuple(sorted(dict.fromkeys(rests_on), key=lambda ground: order.index(ground.basis)))


def unit_grounds(declaration: Declaration, values: Mapping[str, Fraction]) -> tuple[Ground, Ground]:
    """How many trajectories a user has, and who is protected."""
    unit = declaration.unit(values)
    return (
        _assumed(_EVERYWHERE, _what_a_user_has(declaration.relation), _READER, door=_READER),
        _modelled(_EVERYWHERE, f"who is protected: {unit.words}", unit.stated_by, door=_DOORS),
    )


def list_given(tried: Sequence[Tried]) -> tuple[str, ...]:
    """Statistics and mechanisms for which the verdict takes the author's stated sensitivity or cost as given."""
    return tuple(dict.fromkeys(one.statistic for one in tried))


def doubts(declaration: Declaration, tried: Sequence[Tried], values: Mapping[str, Fraction]) -> tuple[Doubt, ...]:
    """Reasons why the claim does not hold whatever the composed cost is.

    Args:
        declaration: The declaration that is judged.
        tried: Tests of the sensitivities and costs that authors state.
        values: The parameters.
    """
    doubts = [
        Doubt(
            why=f"{one.release}: the stated {one.of} of {one.statistic} could not be tested ({one.how})",
            remedy="give the declaration `records`, which draw one user's data, so that its sensitivity can be tested"
            if one.of == "sensitivity"
            else f"{one.how}, so that the price of {one.statistic} can be tested",
        )
        for one in tried
        if not one.pairs
    ]
    tried_prices = {one.release for one in tried if one.of == "price"}
    *ours, last = (kind.__name__ for kind in PRICED)
    noise, procedure = f"declare {', '.join(ours)} or {last} noise", "declare it by a built-in procedure, or audit it"
    doubts += [
        Doubt(
            why=f"{one.name}: no theorem here bounds the cost of {one.facts.words}",
            remedy=noise if isinstance(one, Release) else procedure,
        )
        for one in declaration.joined
        if not _has_price(one) and one.name not in tried_prices
    ]
    for assumption in declaration.assumptions:
        if assumption.bounds or assumption.attained is None or at_most(assumption.attained, assumption.assumed):
            continue
        if assumption.attained.number(values, rounding="up") > assumption.assumed.number(values, rounding="down"):
            broken = f"{assumption.what} attains {assumption.attained}, and the cost is that of {assumption.assumed}"
            remedy = "say which column it bounds (`Assumption(bounds=…)`), so that the attained value is charged"
            doubts.append(Doubt(why=broken, remedy=f"{assumption.repair}, or {remedy}"))
    return tuple(doubts)


def for_all_parameters(declaration: Declaration) -> bool:
    """Whether all numbers are valid for all parameters, and assumptions that bound no column are met."""
    if declaration.open_conditions:
        return False
    loose = [a for a in declaration.assumptions if a.attained is not None and not a.bounds]
    return all(at_most(a.attained, a.assumed) is True for a in loose if a.attained is not None)


def _what_a_user_has(relation: Relation) -> str:
    if relation.trajectories == expression(1):
        what = "trajectory" if relation.unit == "user" else relation.unit
        return f"a user has only one {what} ({relation.words})"
    return f"a {relation.unit} has at most {relation.trajectories} trajectories ({relation.words})"


def _from_stated(one: Tried) -> Ground:
    if not one.pairs:
        return _stated(one.release, f"the {one.of} of {one.statistic}, which could not be tested", one.how)
    by = f"its author; {one.pairs:,} pairs of neighbours did not violate it ({one.how})"
    return _stated(one.release, f"the {one.of} of {one.statistic}", by)


def _from_price(procedure: Procedure) -> Ground:
    what = f"the price of {procedure.facts.words}"
    if not _has_price(procedure):
        return _stated(procedure.name, what, "its author: not a built-in procedure")
    by = "the theorem in its line of the derivation"
    return Ground(kind="derived", basis="proved", where=procedure.name, what=what, by=by)


def _has_price(one: Procedure) -> bool:
    return not is_additive(one) or type(one.mechanism) in PRICED if isinstance(one, Release) else type(one) in OURS


def _preconditions(declaration: Declaration) -> list[Ground]:
    preconditions = []
    for one in declaration.releases:
        kept = set(one.statistic.preconditions) if isinstance(one, Release) else set()
        by = "nothing here: the operator has to comply"
        preconditions += [_assumed(one.name, words, by) for words in one.facts.preconditions if words not in kept]
    for release in declaration.statistics_released:
        door: str | None = None
        linear = type(release.statistic) in {GramMatrices, FeatureSums, SmallestEigenvalue}
        if linear:
            by = door = "`check_bounds`, which refuses other data"
        elif type(release.statistic) is ClippedSums:
            by = door = "`Vectors`, which clip them"
        elif is_derived(release.statistic):
            by = door = "`Trajectories` and the reader of tables, which refuse other data"
        else:
            by = "the statistic's `compute`, according to its author"
        preconditions += [_assumed(_EVERYWHERE, words, by, door=door) for words in release.statistic.preconditions]
    return preconditions


def _public_facts(declaration: Declaration) -> list[Ground]:
    """Facts that neighbours share: members of groups, ends of batches, the number of users."""
    facts = []
    used = {one.users for one in declaration.releases}
    for partition in declaration.partitions:
        for group in partition:
            if str(group) in used:
                names = ", ".join(one.name for one in declaration.releases if one.users == str(group))
                fact = group if isinstance(group, PublicFact) else PublicFact(group)
                facts.append(_public(names, f"which users are in the group {str(group)!r}", fact.by))
    for release in declaration.statistics_released:
        facts += [_public(release.name, what, fact.by) for what, fact in public_facts(release.schedule)]
    for procedure in declaration.releases:
        if isinstance(procedure, OnSample):
            facts += [_public(procedure.name, what, fact.by) for what, fact in public_facts(procedure.sample)]
        if isinstance(procedure, MatrixMechanism) and procedure.rate is not None:
            facts.append(_public(procedure.name, f"rate = {procedure.rate} of the sampling", PublicFact(None).by))
        if isinstance(procedure, MatrixMechanism) and procedure.bins is not None:
            facts.append(_public(procedure.name, f"bins = {procedure.bins} of the sampling", PublicFact(None).by))
        if isinstance(procedure, MatrixMechanism):
            what = f"in which steps a user may contribute, and how many there are ({procedure.encoder.words})"
            facts.append(_public(procedure.name, what, PublicFact(None).by))
        if isinstance(procedure, ShuffledRandomizer):
            facts.append(_public(procedure.name, f"how many users send messages ({procedure.senders})", _RUNS))
    if not isinstance(declaration.relation, AddRemoveOne) and declaration.model != "local":
        facts.append(
            _public(_EVERYWHERE, "how many users there are: neighbours have as many", declaration.relation.words)
        )
    return facts


def _modelling(declaration: Declaration) -> list[Ground]:
    """Facts about the units of samples, independence of draws, and the order of outputs."""
    facts = list[Ground]()
    sampling = [one.name for one in declaration.joined if _samples(one)]
    for shared in (one for one in declaration.joined if isinstance(one, SharedSample)):
        names = ", ".join(repr(one.name) for one in shared.parts)
        what = f"{names} are computed from one sample, which is drawn once a round ({shared.sample.words})"
        facts.append(_modelled(shared.name, what, _RUNS))
    for name in sampling:
        several = "" if declaration.relation.trajectories == expression(1) else ", each with all of its trajectories"
        what = f"users are sampled{several}, not trajectories or steps; the members of a sample are kept secret"
        facts.append(_modelled(name, what, _RUNS))
    if sampling:
        apart = f" of {', '.join(sampling)}" if len(sampling) > 1 else ""
        what = f"the samples{apart} are drawn independently of one another and of all data, afresh in every round"
        facts.append(_modelled(", ".join(sampling), what, _RUNS))
    adaptive = [one.name for one in declaration.releases] if _is_adaptive(declaration) else []
    if adaptive:
        what = (
            "outputs are released one after another: the next query and its users may depend on earlier outputs and on "
            "public facts, and no interaction begins before the previous one has ended"
        )
        facts.append(_modelled(", ".join(adaptive), what, "adaptive composition; the operator keeps the order"))
    return facts


def _samples(procedure: Procedure) -> bool:
    of_matrix = isinstance(procedure, MatrixMechanism) and procedure.sampled
    of_release = isinstance(procedure, Release) and isinstance(procedure.schedule, Sampled)
    return of_release or isinstance(procedure, OnSample | SharedSample) or of_matrix


def _is_adaptive(declaration: Declaration) -> bool:
    """Whether there is more than one output, so that a later one may depend on an earlier one."""
    if len(declaration.releases) > 1:
        return True
    (only,) = declaration.releases
    if is_additive(only):
        return not isinstance(only.schedule, Once | PerUser)
    answers = isinstance(
        only, SparseVector | AdaptiveSparseVector | GaussianSparseVector | NoisyVotes | MatrixMechanism
    )
    return answers or only.facts.rounds != expression(1)


def _from_comparison(*, proved: bool) -> Ground:
    if proved:
        what, by = "cost at most claim, for all parameters", "exact expressions"
        return Ground(kind="derived", basis="proved", where=_EVERYWHERE, what=what, by=by)
    what, by = "cost against claim, at the given parameters", "numbers, the cost rounded up"
    return Ground(kind="derived", basis="checked", where=_EVERYWHERE, what=what, by=by)


def _statistics(declaration: Declaration) -> list[Statistic[Any]]:
    return [release.statistic for release in declaration.statistics_released]


def _stated(where: str, what: str, by: str) -> Ground:
    return Ground(kind="stated by the author", basis="stated", where=where, what=what, by=by)


def _assumed(where: str, what: str, by: str, *, door: str | None = None) -> Ground:
    return Ground(kind="assumed about data", basis="assumed", where=where, what=what, by=by, checked_where=door)


def _public(where: str, what: str, by: str) -> Ground:
    return Ground(kind="public fact", basis="assumed", where=where, what=what, by=by)


def _modelled(where: str, what: str, by: str, *, door: str | None = None) -> Ground:
    return Ground(kind="modelling", basis="assumed", where=where, what=what, by=by, checked_where=door)
