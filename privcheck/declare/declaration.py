"""Declarations: what an algorithm releases, with which noise, and what its paper claims.

One object from which the noise is drawn (`privcheck.runtime`), the cost is charged (`privcheck.accounting`), the claim
is judged (`privcheck.verification`) and the auditors know where to attack (`audits`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

from privcheck.declare.procedures import OnSample, Procedure, check_releases, draw_together
from privcheck.declare.relations import Relation, cover_users, declared_unit
from privcheck.declare.releases import L1, L2, Assumption, Draw, Release, is_additive
from privcheck.declare.schedules import Sampled
from privcheck.declare.statements import Origin, PublicFact, Statement
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.declare.wellformed import (
    AND,
    check_draws,
    check_facts,
    check_fields,
    check_model,
    check_order,
    check_partitions,
    check_samples,
    check_symbols,
    check_trajectories,
    check_values,
    conditions,
)
from privcheck.errors import DeclarationError, UnknownNameError
from privcheck.terms.guarantees import Guarantee
from privcheck.terms.parameters import (
    Condition,
    Kind,
    Parameter,
    instance,
    is_proved,
    one_of,
    resolve,
    several,
    text,
    truth,
    words_of,
)
from privcheck.terms.symbols import Exact, Expr, at_most, maximum
from privcheck.terms.unit import LARGEST, TrustModel, Unit

if TYPE_CHECKING:
    from numpy.random import Generator


_COLUMNS = ("vector", "target", "weight")


def attained_releases(releases: Sequence[Release], assumptions: Sequence[Assumption]) -> tuple[Release, ...]:
    """The releases with every column at the attained bound, if that is larger than declared.

    An assumption that is met for all parameters, that nothing bounds, or that bounds no column changes nothing.

    Args:
        releases: As declared.
        assumptions: With `bounds` naming a column.

    Raises:
        DeclarationError: `bounds` does not name a column of any release.
    """
    known = sorted({c.name for r in releases for c in _columns(r.statistic).values()})
    widened = list(releases)
    for assumption in assumptions:
        if not assumption.bounds:
            continue
        if assumption.bounds not in known:
            message = (
                f"the assumption on {assumption.what} bounds the column {assumption.bounds!r}, which no release has"
            )
            raise DeclarationError(f"{message}; expected one of {', '.join(known) or '(none)'}")
        if assumption.attained is None or at_most(assumption.attained, assumption.assumed) is True:
            continue
        widened = [_widen(release, assumption.bounds, assumption.attained) for release in widened]
    return tuple(widened)


def _columns(statistic: Any) -> dict[str, Column]:
    if not isinstance(statistic, GramMatrices | FeatureSums):
        return {}
    columns = {field: getattr(statistic, field, None) for field in _COLUMNS}
    return {field: column for field, column in columns.items() if column is not None}


def _widen(release: Release, name: str, attained: Expr) -> Release:
    """The release with the column's bound raised to the attained one, or unchanged if that is not larger."""
    short: dict[str, Any] = {
        field: Column(name, _larger(column.bound, attained), column.latex)
        for field, column in _columns(release.statistic).items()
        if column.name == name and at_most(attained, column.bound) is not True
    }
    if not short:
        return release
    assert isinstance(release.statistic, GramMatrices | FeatureSums)
    return replace(release, statistic=replace(release.statistic, **short))


def _larger(bound: Expr, attained: Expr) -> Expr:
    return attained if at_most(bound, attained) is True else maximum(bound, attained)


__all__ = [
    "L1", "L2", "Assumption", "Claim", "Declaration", "Draw", "Joint", "Kind", "Model", "Parameter", "Release",
    "resolve",
]  # fmt: skip

Model = Literal["central", "local", "shuffle"]
Sees = Literal["billboard", "own data", "others' data"]
Composition = Literal["basic", "advanced", "zcdp"]


def check_declaration(asking: str, given: object) -> None:
    """Checks that what is asked about is a declaration.

    Args:
        asking: What asks, for the message.
        given: What it was given.

    Raises:
        DeclarationError: It is none.
    """
    if isinstance(given, Declaration):
        return
    remedy = "give it a `Declaration`"
    if isinstance(given, str):
        remedy = f"of a registered name give registry.algorithm({given!r}).declare({{}})"
    elif callable(getattr(given, "declare", None)):
        remedy = "give what its `declare({})` returns"
    elif callable(given) and not isinstance(given, type):
        remedy = "call it, and give what it returns"
    shown = f"the class {given.__name__}" if isinstance(given, type) else f"{given!r:.100}"
    raise DeclarationError(f"{asking}: expected a Declaration, got {shown}; {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A claim of joint DP by the billboard lemma (Hsu, Huang, Roth, Roughgarden & Wu 2014).

    Attributes:
        sees: What each user's actions are computed from, as the algorithm is written: "billboard", "own data", or
            "others' data", which breaks the lemma's precondition.
    """

    sees: tuple[Sees, ...] = ("billboard", "own data")

    def __post_init__(self) -> None:
        words_of("sees, of Joint", self.sees, get_args(Sees))


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper claims of all releases together.

    Attributes:
        guarantee: The guarantee of the releases, in the declaration's parameters.
        source: The theorem.
        joint: Set where the paper claims the guarantee as joint DP of the users' actions.
        order_only: The paper claims it up to an unstated constant, as in O(ε).
        composition: How the paper's proof composes the releases' budgets; None where it does not say.
        data_dependent: What of the data the claimed numbers were computed from; empty where they are for all data. Such
            a claim says nothing of neighbours: it holds where the releases cost no more on any data, else it is
            undecided, never refuted.
        statements: What the paper prints of it, one statement at a time; empty where nobody has transcribed them.
    """

    guarantee: Guarantee
    source: str = field(kw_only=True)
    joint: Joint | None = field(default=None, kw_only=True)
    order_only: bool = field(default=False, kw_only=True)
    composition: Composition | None = field(default=None, kw_only=True)
    data_dependent: str = field(default="", kw_only=True)
    statements: tuple[Statement, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        instance("guarantee, of Claim", self.guarantee, get_args(Guarantee))
        text("source, of Claim", self.source, empty=True)
        instance("joint, of Claim", self.joint, (Joint,), none=True)
        truth("order_only, of Claim", self.order_only)
        text("data_dependent, of Claim", self.data_dependent, empty=True)
        several("statements, of Claim", self.statements, Statement)
        if self.composition is not None:
            one_of("composition, of Claim", self.composition, get_args(Composition))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Declaration:
    """What an algorithm releases about its users, and what is claimed of it.

    Attributes:
        name: The name users type.
        title: One line in words.
        source: Paper, algorithm, equation.
        relation: Which datasets are neighbours.
        releases: Everything that leaves: noisy statistics, at the bounds that are attained where an assumption is
            broken, selections, mechanisms of one's own. `procedures=` adds to it; there is no other list.
        claim: What the paper says of it.
        parameters: Every symbol that occurs, with default and range.
        model: Where the channel stands.
        assumptions: What the sensitivities presuppose beyond the statistics' own preconditions.
        partitions: Of the users, each as the names of its groups: disjoint and public, so that one user is in one group
            of each. A name is a text, or `public(…, why=…)` with the rule that says who is in the group; what is
            computed from data is refused. Two partitions cross: a user may be in any group of the one and any of the
            other.
        open_conditions: What is not proved of its numbers for all parameters, and therefore checked at all values that
            it is used at. Made, not given.
        shared_draws: The releases whose noise is not fresh: outputs that share a draw differ by exact data. Seen from
            the declared noise identities alone; a single output, or a single cell, shares nothing. Made, not given.
        candidates: Pairs of one user's data to try as witnesses, for statistics whose data the search does not know.
        records: From the parameters and a source of randomness to one user's data, corners preferred: neighbours among
            them are tried on the sensitivities that the statistics' authors state. Needed for data of one's own.
        origin: Whose text it is; None where its author does not say.

    Raises:
        DeclarationError: A field means nothing (`privcheck.declare.wellformed`): it is of another type or no word of
        its closed
            vocabulary, the model contradicts relation, schedules or noise, a group is in no partition, a symbol has no
            parameter or one of a wider range, a count is not whole, a spread not positive, a bound negative. The
            message names the release, the value and what to do.
        ParameterError: One of these numbers is fine for some parameters, not for the defaults.
    """

    name: str
    title: str
    source: str
    relation: Relation
    releases: tuple[Procedure, ...]
    claim: Claim
    parameters: tuple[Parameter, ...]
    model: Model
    assumptions: tuple[Assumption, ...]
    partitions: tuple[tuple[str | PublicFact, ...], ...]
    candidates: Callable[[Mapping[str, Fraction]], Iterable[tuple[Any, Any]]] | None
    records: Callable[[Mapping[str, Fraction], Generator], Any] | None
    origin: Origin | None

    open_conditions: tuple[Condition, ...] = field(init=False, repr=False, compare=False)
    shared_draws: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self, *, name: str, title: str, source: str, relation: Relation, claim: Claim,
        parameters: tuple[Parameter, ...], releases: tuple[Procedure, ...] = (), procedures: tuple[Procedure, ...] = (),
        model: Model = "central", assumptions: tuple[Assumption, ...] = (),
        partitions: tuple[tuple[str | PublicFact, ...], ...] = (),
        candidates: Callable[[Mapping[str, Fraction]], Iterable[tuple[Any, Any]]] | None = None,
        records: Callable[[Mapping[str, Fraction], Generator], Any] | None = None, origin: Origin | None = None,
    ) -> None:  # fmt: skip
        for what, given in (("releases", releases), ("procedures", procedures)):
            check_releases(f"{name}, {what}", given)
        fields = {
            "name": name, "title": title, "source": source, "relation": relation, "claim": claim,
            "parameters": parameters, "releases": (*releases, *procedures), "model": model, "assumptions": assumptions,
            "partitions": partitions, "candidates": candidates, "records": records, "origin": origin,
        }  # fmt: skip
        for key, value in fields.items():
            object.__setattr__(self, key, value)
        check_fields(self)
        for key in ("parameters", "assumptions", "partitions"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        check_partitions(self)
        check_facts(self)
        check_model(self)
        check_order(self)
        check_trajectories(self)
        check_draws(self)
        check_samples(self)
        attained = iter(attained_releases(self.statistics_released, self.assumptions))
        at_bounds = tuple(next(attained) if isinstance(one, Release) else one for one in self.releases)
        object.__setattr__(self, "releases", at_bounds)
        check_symbols(self)
        object.__setattr__(self, "shared_draws", _shared_draws(self.noisy))
        object.__setattr__(
            self, "open_conditions", tuple(c for c in conditions(self) if not is_proved(c, self.parameters))
        )
        self.values()

    @property
    def noisy(self) -> tuple[Release, ...]:
        """The statistics of all users with the declared noise, whose changes are looked at together."""
        return tuple(one for one in self.releases if is_additive(one))

    @property
    def statistics_released(self) -> tuple[Release, ...]:
        """Every noisy statistic, those of a sample of the users and those of varying noise too."""
        return tuple(one for one in self.releases if isinstance(one, Release))

    @property
    def joined(self) -> tuple[Procedure, ...]:
        """What has a price of its own: the releases, all that refer to one `Sample` as one."""
        sampled = [one for one in self.releases if _sees_sample(one)]
        others = [one for one in self.releases if not is_additive(one) and not _sees_sample(one)]
        others.sort(key=lambda one: not isinstance(one, Release))
        return (*self.noisy, *draw_together(sampled), *others)

    @property
    def others(self) -> tuple[Procedure, ...]:
        """What is priced by itself, beside the `noisy` statistics."""
        return self.joined[len(self.noisy) :]

    def with_noisy(self, noisy: Sequence[Release]) -> Declaration:
        """Return the declaration with these in place of the `noisy` statistics."""
        return replace(self, releases=(*noisy, *(one for one in self.releases if not is_additive(one))))

    @property
    def claim_words(self) -> str:
        """Returns the claim in words: of whose view, whether it has a constant, and of which data it is."""
        view = {"central": "", "local": "local ", "shuffle": "shuffle "}[self.model]
        view = view if self.claim.joint is None else "joint "
        order = "up to a constant, " if self.claim.order_only else ""
        given = f", given {self.claim.data_dependent}" if self.claim.data_dependent else ""
        return f"{order}{view}{self.claim.guarantee}{given}"

    @property
    def claim_and_source(self) -> str:
        """Returns the claim in words with where it stands, and whether what is judged is that text."""
        mended = self.origin is not None and self.origin.kind in {"repaired", "reconstructed"}
        source = f"{self.origin.kind}, after {self.claim.source}" if self.origin and mended else self.claim.source
        return f"{self.claim_words} ({source})"

    @property
    def groups(self) -> tuple[str, ...]:
        """Returns whose data one user's can be: a group of every partition that a release is about, joined by "and".

        Without a partition that is a single empty name.
        """
        return tuple(AND.join(groups) for groups in self._combinations)

    @property
    def _combinations(self) -> tuple[tuple[str, ...], ...]:
        used = {one.users for one in self.releases}
        parted = [[str(group) for group in partition if str(group) in used] for partition in self.partitions]
        return tuple(itertools.product(*(groups for groups in parted if groups)))

    def among(self, group: str) -> tuple[str, ...]:
        """Returns the groups that a user of the group, or of the groups joined by "and", is in; "" is everybody's."""
        joined = (groups for groups in self._combinations if AND.join(groups) == group)
        return ("", *next(joined, (group,)))

    def seen_by(self, group: str) -> tuple[Release, ...]:
        """Return the `noisy` statistics that hold a user of the group, or of the groups joined by "and"."""
        among = self.among(group)
        return tuple(one for one in self.noisy if one.users in among)

    def joined_for(self, group: str) -> tuple[Procedure, ...]:
        """Return what is `joined` and holds a user of the group, or of the groups joined by "and"."""
        among = self.among(group)
        return tuple(one for one in self.joined if one.users in among)

    def release(self, name: str) -> Release:
        """Returns the release of that name.

        Raises:
            UnknownNameError: There is none.
        """
        for release in self.noisy:
            if release.name == name:
                return release
        raise UnknownNameError(f"release of {self.name}", name, [r.name for r in self.noisy])

    def unit(self, values: Mapping[str, Fraction], table: Unit | None = None) -> Unit:
        """The unit of privacy that the declaration states: of the users of a table, or before any table was seen.

        Raises:
            ParameterError: A user of the table has more trajectories than the declaration covers.
        """
        model: TrustModel = self.model if self.claim.joint is None else "joint"
        if table is not None:
            return cover_users(table, self.relation, model, values)
        H = values.get("H")
        steps = int(H) if H is not None and 1 <= H <= LARGEST else None
        return declared_unit(self.relation, model, values, name=self.name, steps=steps)

    def values(self, given: Mapping[str, Exact] | None = None) -> dict[str, Fraction]:
        """Returns a value for every parameter: the given ones, checked, and defaults for the rest.

        Raises:
            UnknownNameError: A name is not a parameter.
            ParameterError: A value is not of its parameter's kind, or a number of the declaration means nothing there:
                a count that is not whole, a spread that is not positive, a batch of no users.
        """
        resolved = resolve(self.parameters, given or {}, owner=self.name)
        check_values(self, resolved)
        return resolved


def _sees_sample(one: Procedure) -> TypeGuard[Release | OnSample]:
    return isinstance(one, OnSample) or (isinstance(one, Release) and isinstance(one.schedule, Sampled))


def _shared_draws(releases: tuple[Release, ...]) -> tuple[str, ...]:
    names = [r.draw.name for r in releases if r.draw.name]
    return tuple(r.name for r in releases if (r.draw.name and names.count(r.draw.name) > 1) or r.reuses_noise)
