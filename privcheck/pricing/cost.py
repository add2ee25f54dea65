"""From a declaration to its cost: exact expressions with their derivation, then numbers rounded up.

For Gaussian compositions there is a second opinion from dp-accounting. Sensitivities are computed for the declared
relation before the conversion; the library sees only Δ/std, as an add/remove event on a multiplier that is a Python
float (in 0.6.0 its accountants disagree under REPLACE_ONE, and other number types can drop a composition count). Its
result is never used for a verdict; it is only checked not to lie below ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from privcheck.accounting.curve import Curve, compose, parallel
from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.accounting.engine.zcdp import classical_epsilon, pure_delta, zcdp_delta, zcdp_epsilon
from privcheck.accounting.events import Event
from privcheck.declare.declaration import Declaration, Release, check_declaration
from privcheck.declare.procedures import Cost
from privcheck.declare.relations import Relation
from privcheck.errors import DeclarationError, ParameterError, PrivcheckError
from privcheck.pricing.derivation import (
    DerivationLine,
    ProcedureCost,
    ReleaseCost,
    procedure_lines,
    release_lines,
    total_lines,
)
from privcheck.pricing.events import declared_branches, settle_sizes
from privcheck.pricing.figures import Method
from privcheck.support.display import Brief
from privcheck.terms.symbols import INFINITE, Expr, largest, total

_SLACK: Final = 1e-6  # relative; its pessimistic PLD of one Gaussian lies above the exact curve by less than this


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Account(Brief):
    """Cost of a declaration for all parameters.

    Attributes:
        declaration: The declaration.
        costs: Costs by release.
        rho: Sum of the costs in zCDP, adaptively composed (Bun & Steinke 2016, Lemma 1.7); the largest over a
            partition.
        pure: Sum of the costs in pure DP (basic composition), None where a release is not pure.
        mu_squared: Sum of the costs on the Gaussian curve, None where a release is not Gaussian.
        derivation: Derivation of the figures.
        procedures: Costs of the releases that are not a value plus noise, one by one.
    """

    declaration: Declaration
    costs: tuple[ReleaseCost, ...]
    rho: Expr
    pure: Expr | None
    mu_squared: Expr | None
    derivation: tuple[DerivationLine, ...]
    procedures: tuple[ProcedureCost, ...] = ()

    def at(self, values: Mapping[str, Fraction]) -> NumericAccount:
        """Compute the cost at given parameters, every number rounded up.

        Raises:
            ParameterError: A value is not of its parameter's kind, or the declaration is invalid there.
        """
        values = self.declaration.values(values)
        sizes = settle_sizes(self.declaration, values)
        return compose_numbers(self, values, [account(one).at(values) for one in sizes])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NumericAccount(Brief):
    """Cost of a declaration at given parameters.

    Attributes:
        rho: ρ of zCDP.
        pure: ε of pure DP, ∞ where none.
        mu: μ of the exact Gaussian curve, None where a release is not Gaussian.
        branches: The releases as events for the numeric accountant, for every group of a partition of the users.
        unbounded: Reason why no ε is finite; empty where one is.
    """

    rho: float
    pure: float
    mu: float | None
    branches: tuple[tuple[Event, ...], ...]
    unbounded: str = ""

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, over all groups."""
        return tuple(dict.fromkeys(event for branch in self.branches for event in branch))

    @property
    def curve(self) -> Curve:
        """Privacy curve of all releases together, the largest over a partition of the users.

        Raises:
            ParameterError: No finite ε holds at any δ below 1.
        """
        if self.unbounded:
            raise ParameterError(f"there is no privacy curve: {self.unbounded}", name="draw")
        return parallel(*(compose(*branch) for branch in self.branches))

    def methods(self, delta: float) -> tuple[Method, ...]:
        """Compute ε at δ by every applicable method, the tightest first.

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
        """Least ε known at δ, rounded up."""
        return self.methods(delta)[0].epsilon

    def delta(self, epsilon: float) -> float:
        """Least δ known at ε, rounded up."""
        if self.unbounded:
            return 1.0
        deltas = [zcdp_delta(self.rho, epsilon), pure_delta(self.pure, epsilon)]
        if self.mu is not None:
            deltas.append(gdp_delta(self.mu, epsilon))
        elif epsilon < self.pure:
            deltas.append(self.curve.delta(epsilon=epsilon).upper)
        return min(deltas)


def account(declaration: Declaration) -> Account:
    """Compute the cost of a declaration: each release at its derived sensitivity, all composed.

    Composition is adaptive: a release may depend on earlier outputs. Over a partition of the users the dearest group
    counts (McSherry 2009). Figures stated by the paper are not used.

    Raises:
        DeclarationError: A symbol for whole numbers has a parameter of another kind, or the argument is not a
            declaration.
    """
    check_declaration("account", declaration)
    relation, leaking = declaration.relation, declaration.shared_draws
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


def second_opinion(numbers: NumericAccount, delta: float) -> Method | None:
    """Compute dp-accounting's ε for the same Gaussian releases; None unless all are Gaussian, 0 < μ < 50 and δ > 0.

    Args:
        numbers: The account at given parameters.
        delta: In [0, 1).

    Raises:
        PrivcheckError: Its upper bound lies below our exact curve: one of the two is wrong, and neither should be used.
    """
    if numbers.mu is None or delta == 0 or not 0 < numbers.mu < 50:
        return None
    from dp_accounting import GaussianDpEvent, NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    epsilon = float(accountant.compose(GaussianDpEvent(float(1.0 / numbers.mu))).get_epsilon(delta))
    if math.isnan(epsilon) or epsilon < numbers.epsilon(delta) * (1 - _SLACK):
        message = (
            f"two accountants contradict each other at δ = {delta:g}: ours says ε = {numbers.epsilon(delta):.9g}, "
            f"dp-accounting's upper bound is {epsilon:.9g}; please report this with the parameters"
        )
        raise PrivcheckError(message)
    return Method(name="dp-accounting, PLD", epsilon=epsilon, direction="upper")


def compose_numbers(
    composed: Account, values: Mapping[str, Fraction], sizes: Sequence[NumericAccount]
) -> NumericAccount:
    """Compute the cost at given parameters, every number rounded up.

    Args:
        composed: The cost for all parameters.
        values: All parameters, checked.
        sizes: The cost at each size of a batch, where additive noise depends on the size; the dearest counts.

    Raises:
        ParameterError: The releases are in batches of different sizes.
    """
    if sizes:
        return _dearest(sizes)
    declaration = composed.declaration
    charged = {c.release.name: c.charged for c in composed.costs}
    branches = declared_branches(declaration, charged, values)
    return NumericAccount(
        rho=composed.rho.number(values, rounding="up"),
        pure=math.inf if composed.pure is None else composed.pure.number(values, rounding="up"),
        mu=None if composed.mu_squared is None else _root_up(composed.mu_squared.number(values, rounding="up")),
        branches=branches or ((),),  # nobody is in any batch
        unbounded=_why_unbounded(declaration.shared_draws, composed.procedures, declaration.relation, values),
    )


def _why_unbounded(
    leaking: Sequence[str], procedures: Sequence[ProcedureCost], relation: Relation, values: Mapping[str, Fraction]
) -> str:
    if leaking:
        return f"{', '.join(leaking)}: the same noise is added to different values"
    infinite = [one for one in procedures if one.cost.rho.infinite and one.cost.pure is None]
    without = [
        f"{one.procedure.name}: {one.cost.theorem}"
        for one in infinite
        if any(e.kind == "non_private" for e in one.procedure.events(relation, values))
    ]
    return "; ".join(without)


def _dearest(numbers: Sequence[NumericAccount]) -> NumericAccount:
    """Largest cost of a user who is in one of several batches."""
    mus = [one.mu for one in numbers if one.mu is not None]
    return NumericAccount(
        rho=max(one.rho for one in numbers),
        pure=max(one.pure for one in numbers),
        mu=max(mus) if len(mus) == len(numbers) else None,
        branches=tuple(dict.fromkeys(branch for one in numbers for branch in one.branches)),
        unbounded=numbers[0].unbounded,
    )


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
    """Check that a proof for all whole numbers covers every value of the parameter."""
    parameters = frozenset[str]().union(
        *(c.sensitivity.l1.counts | c.sensitivity.l2.counts | c.sensitivity.linf.counts for c in costs),
        *(c.release.mechanism.spread.counts | c.release.schedule.times.counts for c in costs),
    )
    for parameter in declaration.parameters:
        if parameter.name in parameters and parameter.kind != "count":
            message = f"{declaration.name}: {parameter.name} means whole numbers in the releases"
            raise DeclarationError(f"{message}; its Parameter is of kind {parameter.kind}, expected count")


def _compose(
    declaration: Declaration,
    costs: Mapping[str, ReleaseCost | Cost],
    unit: Literal["rho", "pure", "mu_squared"],
) -> Expr | None:
    """Sum over the releases that hold a user, the largest over the groups; None where a release has no figure."""
    parts = {name: getattr(cost, unit) for name, cost in costs.items()}
    if any(part is None for part in parts.values()):
        return None
    sums = [total([parts[one.name] for one in declaration.joined_for(group)]) for group in declaration.groups]
    return sums[0] if len(sums) == 1 else largest(*sums)


def _root_up(square: float) -> float:
    return math.nextafter(math.sqrt(square), math.inf)
