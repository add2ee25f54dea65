"""From a declaration to its cost: exact expressions with their derivation, then numbers rounded up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privcheck.accounting.costs import ProcedureCost, ReleaseCost
from privcheck.accounting.curve import Curve, compose, parallel
from privcheck.accounting.derivation import DerivationLine, procedure_lines, release_lines, total_lines
from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.accounting.engine.zcdp import classical_epsilon, pure_delta, zcdp_delta, zcdp_epsilon
from privcheck.accounting.events import Event
from privcheck.accounting.release_events import declared_branches
from privcheck.batch_sizes import settle_sizes
from privcheck.brief import Brief
from privcheck.declaration import Declaration, Release, check_declaration
from privcheck.errors import DeclarationError, ParameterError
from privcheck.procedures import Cost
from privcheck.relations import Relation
from privcheck.symbols import INFINITE, Expr, largest, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An ε at the asked δ, by one method.

    Attributes:
        name: The method.
        epsilon: In nats, rounded up; ∞ where it gives none.
        direction: "exact" for the curve of the worst pair, "upper" for a bound.
    """

    name: str
    epsilon: float
    direction: Literal["exact", "upper"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Account(Brief):
    """The cost of a declaration for all parameters.

    Attributes:
        declaration: Whose.
        costs: Release by release.
        rho: Their sum in zCDP, adaptively composed (Bun & Steinke 2016, Lemma 1.7); the largest over a partition.
        pure: Their sum in pure DP (basic composition), None where a release is not pure.
        mu_squared: Their sum on the Gaussian curve, None where a release is not Gaussian.
        derivation: How the figures came about.
        procedures: What leaves that is no value plus noise, one by one.
    """

    declaration: Declaration
    costs: tuple[ReleaseCost, ...]
    rho: Expr
    pure: Expr | None
    mu_squared: Expr | None
    derivation: tuple[DerivationLine, ...]
    procedures: tuple[ProcedureCost, ...] = ()

    def at(self, values: Mapping[str, Fraction]) -> NumericAccount:
        """Returns the cost at given parameters, every number rounded up.

        Raises:
            ParameterError: A value is not of its parameter's kind, or the declaration means nothing there.
        """
        values = self.declaration.values(values)
        if sized := settle_sizes(self.declaration, values):
            return _dearest([account(one).at(values) for one in sized])
        leaking = shared_draws(self.declaration)
        charged = {c.release.name: c.charged for c in self.costs}
        branches = declared_branches(self.declaration, charged, values)
        return NumericAccount(
            rho=self.rho.number(values, rounding="up"),
            pure=math.inf if self.pure is None else self.pure.number(values, rounding="up"),
            mu=None if self.mu_squared is None else _root_up(self.mu_squared.number(values, rounding="up")),
            branches=branches or ((),),  # nobody is in any batch
            unbounded=_why_unbounded(leaking, self.procedures, self.declaration.relation, values),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NumericAccount(Brief):
    """The cost of a declaration at given parameters.

    Attributes:
        rho: ρ of zCDP.
        pure: ε of pure DP, ∞ where none.
        mu: μ of the exact Gaussian curve, None where a release is not Gaussian.
        branches: The releases as events for the numeric accountant, for every group of a partition of the users.
        unbounded: Why no ε is finite; empty where that is not so.
    """

    rho: float
    pure: float
    mu: float | None
    branches: tuple[tuple[Event, ...], ...]
    unbounded: str = ""

    @property
    def events(self) -> tuple[Event, ...]:
        """Returns all events, whoever sees them."""
        return tuple(dict.fromkeys(event for branch in self.branches for event in branch))

    @property
    def curve(self) -> Curve:
        """Returns the privacy curve of all releases together, the largest over a partition of the users.

        Raises:
            ParameterError: No finite ε holds at any δ below 1.
        """
        if self.unbounded:
            raise ParameterError(f"there is no privacy curve: {self.unbounded}", name="draw")
        return parallel(*(compose(*branch) for branch in self.branches))

    def methods(self, delta: float) -> tuple[Method, ...]:
        """Returns ε at δ by every method that applies, the tightest first.

        Args:
            delta: In [0, 1).
        """
        if self.unbounded:
            return (Method(name=f"none: {self.unbounded}", epsilon=math.inf, direction="exact"),)
        methods = [
            Method(name="zCDP, best order", epsilon=zcdp_epsilon(self.rho, delta), direction="upper"),
            Method(
                name="zCDP, the papers' formula",
                epsilon=classical_epsilon(self.rho, delta),
                direction="upper",
            ),
        ]
        if self.mu is not None:
            methods.append(Method(name="Gaussian curve", epsilon=gdp_epsilon(self.mu, delta), direction="exact"))
        elif delta > 0:
            figure = self.curve.epsilon(delta=delta)
            methods.append(Method(name=f"{figure.method}, certified", epsilon=figure.upper, direction="upper"))
        if math.isfinite(self.pure):
            methods.append(Method(name="pure DP, summed", epsilon=self.pure, direction="upper"))
        return tuple(sorted(methods, key=lambda m: m.epsilon))

    def epsilon(self, delta: float) -> float:
        """Returns the least ε known at δ, rounded up."""
        return self.methods(delta)[0].epsilon

    def delta(self, epsilon: float) -> float:
        """Returns the least δ known at ε, rounded up."""
        if self.unbounded:
            return 1.0
        deltas = [zcdp_delta(self.rho, epsilon), pure_delta(self.pure, epsilon)]
        if self.mu is not None:
            deltas.append(gdp_delta(self.mu, epsilon))
        elif epsilon < self.pure:
            deltas.append(self.curve.delta(epsilon=epsilon).upper)
        return min(deltas)


def account(declaration: Declaration) -> Account:
    """Returns the cost of a declaration: each release at its derived sensitivity, all composed.

    Composition is adaptive: a release may depend on earlier outputs. Over a partition of the users the dearest group
    counts (McSherry 2009). What the paper states plays no part.

    Raises:
        DeclarationError: A symbol that stands for whole numbers has a parameter that may be between them, or what is
            asked about is no declaration.
    """
    check_declaration("account", declaration)
    relation, leaking = declaration.relation, shared_draws(declaration)
    costs = tuple(_cost(release, relation, unbounded=release.name in leaking) for release in declaration.noisy)
    _check_counts(declaration, costs)
    procedures = tuple(ProcedureCost(procedure=p, cost=p.cost(relation)) for p in declaration.others)
    lines = [line for cost in costs for line in release_lines(cost, relation.words)]
    lines += [line for one in procedures for line in procedure_lines(one, relation.words)]
    parts = {c.release.name: c for c in costs} | {one.procedure.name: one.cost for one in procedures}
    rho, pure, mu_squared = (_compose(declaration, parts, unit) for unit in ("rho", "pure", "mu_squared"))
    assert rho is not None
    return Account(
        declaration=declaration,
        costs=costs,
        rho=rho,
        pure=pure,
        mu_squared=mu_squared,
        derivation=(*lines, *total_lines(declaration, costs, procedures, rho, pure)),
        procedures=procedures,
    )


def _why_unbounded(
    leaking: Sequence[str], procedures: Sequence[ProcedureCost], relation: Relation, values: Mapping[str, Fraction]
) -> str:
    if leaking:
        return f"{', '.join(leaking)}: the same noise is added to different values"
    infinite = [one.procedure for one in procedures if one.cost.rho.infinite and one.cost.pure is None]
    without = [p.name for p in infinite if any(e.kind == "non_private" for e in p.events(relation, values))]
    return f"{', '.join(without)}: some outputs are impossible for one of two neighbours" if without else ""


def _dearest(numbers: Sequence[NumericAccount]) -> NumericAccount:
    """Returns the largest cost of a user who is in one of several batches."""
    mus = [one.mu for one in numbers if one.mu is not None]
    return NumericAccount(
        rho=max(one.rho for one in numbers),
        pure=max(one.pure for one in numbers),
        mu=max(mus) if len(mus) == len(numbers) else None,
        branches=tuple(dict.fromkeys(branch for one in numbers for branch in one.branches)),
        unbounded=numbers[0].unbounded,
    )


def shared_draws(declaration: Declaration) -> tuple[str, ...]:
    """Returns the releases whose noise is not fresh: outputs that share a draw differ by exact data.

    Seen from the declared noise identities alone; what has a single output, or a single cell, shares nothing over them.
    """
    names = [r.draw.name for r in declaration.noisy if r.draw.name]
    return tuple(r.name for r in declaration.noisy if (r.draw.name and names.count(r.draw.name) > 1) or r.reuses_noise)


def _cost(release: Release, relation: Relation, *, unbounded: bool) -> ReleaseCost:
    sensitivity, charged = release.contributed(relation), release.charged(relation)
    return ReleaseCost(
        release=release,
        sensitivity=sensitivity,
        charged=charged,
        rho=INFINITE if unbounded else release.mechanism.zcdp(charged),
        pure=None if unbounded else release.mechanism.pure(charged),
        mu_squared=None if unbounded else release.mechanism.gdp_squared(charged),
    )


def _check_counts(declaration: Declaration, costs: Sequence[ReleaseCost]) -> None:
    """Checks that a proof for all whole numbers covers every value that the parameter takes."""
    parameters = frozenset[str]().union(
        *(c.sensitivity.l1.counts | c.sensitivity.l2.counts | c.sensitivity.linf.counts for c in costs),
        *(c.release.mechanism.spread.counts | c.release.schedule.times.counts for c in costs),
    )
    for parameter in declaration.parameters:
        if parameter.name in parameters and parameter.kind != "count":
            message = f"{declaration.name}: {parameter.name} stands for whole numbers in the releases"
            raise DeclarationError(f"{message}; its Parameter is of kind {parameter.kind}, expected count")


def _compose(
    declaration: Declaration,
    costs: Mapping[str, ReleaseCost | Cost],
    unit: Literal["rho", "pure", "mu_squared"],
) -> Expr | None:
    """Returns the sum over the releases that hold a user, the largest over the groups; None where one has no figure."""
    parts = {name: getattr(cost, unit) for name, cost in costs.items()}
    if any(part is None for part in parts.values()):
        return None
    sums = [total([parts[one.name] for one in declaration.joined_for(group)]) for group in declaration.groups]
    return sums[0] if len(sums) == 1 else largest(*sums)


def _root_up(square: float) -> float:
    return math.nextafter(math.sqrt(square), math.inf)
