"""Declarations: an algorithm's releases, their noise, and the claim of its paper.

The same object decides the drawn noise (`privcheck.runtime`), the charged cost (`privcheck.pricing`), the verdict on
the claim (`privcheck.verification`) and the auditors' attacks (`privcheck_audits`).
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
    """Raise the bound of every column to the attained bound, where that is larger than declared.

    An assumption has no effect if it holds for all parameters, if its quantity is unbounded, or if it bounds no column.

    Args:
        releases: The releases as declared.
        assumptions: The assumptions; `bounds` names a column.

    Raises:
        DeclarationError: `bounds` names no column of any release.
    """
    known = sorted({c.name for r in releases for c in _columns(r.statistic).values()})
    widened = list(releases)
    for assumption in assumptions:
        if not assumption.bounds:
            continue
        if assumption.bounds not in known:
            message = (
                f"the assumption on {assumption.what} bounds the column {assumption.bounds!r}, which is in no release"
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
    """Copy of the release with the column's bound raised to the attained bound; unchanged if that is no larger."""
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
    """Check that a value is a declaration.

    Args:
        asking: Name of the calling function, for the message.
        given: The value.

    Raises:
        DeclarationError: The value is not a `Declaration`.
    """
    if isinstance(given, Declaration):
        return
    remedy = "give it a `Declaration`"
    if isinstance(given, str):
        remedy = f"of a registered name give registry.algorithm({given!r}).declare({{}})"
    elif callable(getattr(given, "declare", None)):
        remedy = "give the result of its `declare({})`"
    elif callable(given) and not isinstance(given, type):
        remedy = "call it, and give its result"
    shown = f"the class {given.__name__}" if isinstance(given, type) else f"{given!r:.100}"
    raise DeclarationError(f"{asking}: expected a Declaration, got {shown}; {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A claim of joint DP by the billboard lemma (Hsu, Huang, Roth, Roughgarden & Wu 2014).

    Attributes:
        sees: Inputs that each user's actions are computed from in the algorithm as written: "billboard", "own data", or
            "others' data", which breaks the lemma's precondition.
    """

    sees: tuple[Sees, ...] = ("billboard", "own data")

    def __post_init__(self) -> None:
        words_of("sees, of Joint", self.sees, get_args(Sees))


@dataclass(frozen=True, slots=True)
class Claim:
    """The paper's claim about all releases together.

    Attributes:
        guarantee: The guarantee of the releases, in the declaration's parameters.
        source: Theorem of the paper.
        joint: Set if the paper claims the guarantee as joint DP of the users' actions.
        order_only: Whether the paper claims the guarantee only up to an unstated constant, as in O(ε).
        composition: How the paper's proof composes the releases' budgets; None if the paper does not say.
        data_dependent: Part of the data that the claimed numbers were computed from; empty if they hold for all data.
            Such a claim says nothing about neighbours: it holds if the releases cost no more on any data; otherwise it
            is undecided, never refuted.
        statements: Statements of the claim as printed in the paper; empty if they are not transcribed.
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
    """The releases of an algorithm about its users, and the claim about them.

    Attributes:
        name: Name that users type.
        title: One-line description.
        source: Paper, algorithm, equation.
        relation: Neighbouring relation between datasets.
        releases: All releases: noisy statistics (at the attained bounds where an assumption is broken), selections and
            custom mechanisms. `procedures=` adds to them; there is no other list.
        claim: The paper's claim.
        parameters: All symbols that occur, with defaults and ranges.
        model: Trust model: "central", "local" or "shuffle".
        assumptions: Assumptions of the sensitivities beyond the statistics' own preconditions.
        partitions: Partitions of the users, each as the names of its groups: disjoint and public, so that one user is
            in one group of each. A name is a text, or `public(…, why=…)` with the rule that determines the members;
            names computed from data are refused. Two partitions cross: a user may be in any group of the one and any of
            the other.
        open_conditions: Conditions on its numbers that are not proved for all parameters, and are therefore checked at
            all values that it is used with. Computed, not given.
        shared_draws: Names of the releases without fresh noise: outputs that share a draw differ by exact data.
            Determined from the declared noise identities alone; a single output, or a single cell, shares nothing.
            Computed, not given.
        candidates: Function from the parameters to pairs of one user's data to try as witnesses, for statistics on data
            that the search does not know.
        records: Function from the parameters and a source of randomness to one user's data, preferably extreme:
            neighbours among them are tried on the sensitivities that the statistics' authors state. Required for custom
            data.
        origin: Origin of the declaration's text; None if its author does not say.

    Raises:
        DeclarationError: A field is invalid (`privcheck.declare.wellformed`): it has the wrong type or a word outside
            its closed vocabulary, the model contradicts relation, schedules or noise, a group is in no partition, a
            symbol has no parameter or one of a wider range, a count is not whole, a spread not positive, a bound
            negative. The message names the release, the value and the remedy.
        ParameterError: One of these numbers is valid for some parameters, but not for the defaults.
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
        instance(f"{self.name}, claim", self.claim, (Claim,))
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
        """Statistics of all users with the declared noise, which are priced and attacked together."""
        return tuple(one for one in self.releases if is_additive(one))

    @property
    def statistics_released(self) -> tuple[Release, ...]:
        """All noisy statistics, including those of a sample of the users and those with varying noise."""
        return tuple(one for one in self.releases if isinstance(one, Release))

    @property
    def joined(self) -> tuple[Procedure, ...]:
        """All separately priced units: the releases, with all that refer to one `Sample` combined."""
        sampled = [one for one in self.releases if _sees_sample(one)]
        others = [one for one in self.releases if not is_additive(one) and not _sees_sample(one)]
        others.sort(key=lambda one: not isinstance(one, Release))
        return (*self.noisy, *draw_together(sampled), *others)

    @property
    def others(self) -> tuple[Procedure, ...]:
        """Releases that are priced separately, excluding the `noisy` statistics."""
        return self.joined[len(self.noisy) :]

    def with_noisy(self, noisy: Sequence[Release]) -> Declaration:
        """Copy with other `noisy` statistics."""
        return replace(self, releases=(*noisy, *(one for one in self.releases if not is_additive(one))))

    @property
    def claim_words(self) -> str:
        """The claim in words: its view, whether it is up to a constant, and the data it depends on."""
        view = {"central": "", "local": "local ", "shuffle": "shuffle "}[self.model]
        view = view if self.claim.joint is None else "joint "
        order = "up to a constant, " if self.claim.order_only else ""
        given = f", given {self.claim.data_dependent}" if self.claim.data_dependent else ""
        return f"{order}{view}{self.claim.guarantee}{given}"

    @property
    def claim_and_source(self) -> str:
        """The claim in words with its source, marked if the judged text is repaired or reconstructed."""
        mended = self.origin is not None and self.origin.kind in {"repaired", "reconstructed"}
        source = f"{self.origin.kind}, after {self.claim.source}" if self.origin and mended else self.claim.source
        return f"{self.claim_words} ({source})"

    @property
    def groups(self) -> tuple[str, ...]:
        """Possible groups of one user: one group of every partition that a release uses, joined by "and".

        Without a partition this is a single empty name.
        """
        return tuple(AND.join(groups) for groups in self._combinations)

    @property
    def _combinations(self) -> tuple[tuple[str, ...], ...]:
        used = {one.users for one in self.releases}
        parted = [[str(group) for group in partition if str(group) in used] for partition in self.partitions]
        return tuple(itertools.product(*(groups for groups in parted if groups)))

    def among(self, group: str) -> tuple[str, ...]:
        """Groups of a user of the group, or of the groups joined by "and"; "" stands for all users."""
        joined = (groups for groups in self._combinations if AND.join(groups) == group)
        return ("", *next(joined, (group,)))

    def seen_by(self, group: str) -> tuple[Release, ...]:
        """The `noisy` statistics that contain a user of the group, or of the groups joined by "and"."""
        among = self.among(group)
        return tuple(one for one in self.noisy if one.users in among)

    def joined_for(self, group: str) -> tuple[Procedure, ...]:
        """The `joined` units that contain a user of the group, or of the groups joined by "and"."""
        among = self.among(group)
        return tuple(one for one in self.joined if one.users in among)

    def release(self, name: str) -> Release:
        """Get the `noisy` statistic of that name.

        Raises:
            UnknownNameError: No `noisy` statistic has that name.
        """
        for release in self.noisy:
            if release.name == name:
                return release
        raise UnknownNameError(f"release of {self.name}", name, [r.name for r in self.noisy])

    def unit(self, values: Mapping[str, Fraction], table: Unit | None = None) -> Unit:
        """Unit of privacy that the declaration states: for the users of a table, or before any table is known.

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
        """Resolve a value for every parameter: the given ones, checked, and defaults for the rest.

        Raises:
            UnknownNameError: A name is not a parameter.
            ParameterError: A value is not of its parameter's kind, or makes a number of the declaration invalid: a
                count that is not whole, a spread that is not positive, a batch of no users.
        """
        resolved = resolve(self.parameters, given or {}, owner=self.name)
        check_values(self, resolved)
        return resolved


def _sees_sample(one: Procedure) -> TypeGuard[Release | OnSample]:
    return isinstance(one, OnSample) or (isinstance(one, Release) and isinstance(one.schedule, Sampled))


def _shared_draws(releases: tuple[Release, ...]) -> tuple[str, ...]:
    names = [r.draw.name for r in releases if r.draw.name]
    return tuple(r.name for r in releases if (r.draw.name and names.count(r.draw.name) > 1) or r.reuses_noise)
