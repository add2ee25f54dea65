"""Discrete substitute of a declaration for release noise: discrete laws on grids, at the same cost or less.

Release noise is exact: discrete Gaussian and discrete Laplace numbers on the integers (`privcheck.runtime.noise`).
`as_drawn` returns the declaration of it, and that declaration, not its continuous twin, is the one that a release run
charges, writes into its ledger and checks the ledger against.

Every statistic gets a grid (`privcheck.declare.statistics.grid`), a power of two far below the noise. Whole numbers get
one too, although privacy does not need it: on the integers noisy counts tie, and an agent's choice between two actions
that look the same costs value (on ICU-Sepsis a thousandth, three standard errors of 30 runs).

* Whole numbers and rounded rewards under a claim in zCDP or pure DP get noise at the declared spread: ρ = Δ₂²/2σ²
  (Canonne, Kamath & Steinke 2020, Theorem 4) and ε = Δ₁/b (Ghosh, Roughgarden & Sundararajan 2009), as for the
  continuous laws.
* All others get a spread that is larger by κ = 1 + 2⁻²⁰ than the declared one. That covers the rounding, and under
  other claims the excess of the discrete curve over the continuous one, which on a fine grid is smaller still
  (`accounting.engine.integers`).

That it costs no more than the declaration is computed, not assumed; if it does, the run is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, SymmetricGaussian
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.grid import IN_FLOATS, Contributes, OnGrid
from privcheck.declare.statistics.sensitivities import is_whole
from privcheck.errors import ParameterError
from privcheck.pricing import Prices
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP

FACTOR: Final = 1 + Fraction(1, 2**20)  # κ, by which the standard deviation of noise on a grid is larger
_CONTINUOUS: Final[tuple[type, ...]] = (Gaussian, SymmetricGaussian, Laplace)
_FINE: Final = 24  # the grid of whole numbers and of rewards is 2⁻²⁴ …
_UNITS: Final = 29  # … or coarser, so that a sensitivity is below 2²⁹ units: the numeric accountant takes 10⁹
_ROUNDING: Final = 1 + 1e-9  # of two figures that are each rounded up


def as_drawn(declaration: Declaration, values: Mapping[str, Fraction], *, prices: Prices | None = None) -> Declaration:
    """Declaration of the release noise drawn at the given parameters, which costs no more.

    Its releases have the same names, schedules and users. Sensitivities and spreads of statistics on a grid are in
    units of it, and the paper's statements about them are left out. Its parameters have these values as their defaults.

    Args:
        declaration: With Gaussian, symmetric Gaussian or Laplace noise, or discrete noise, which stays.
        values: Its parameters. The grids are made for them.
        prices: Cache in which both are priced, for later use.

    Raises:
        ParameterError: A release has noise of another law, or a statistic that cannot be put on a grid; or the discrete
            noise costs more than is declared.
    """
    values = declaration.values(values)
    if shared := declaration.shared_draws:
        message = f"{declaration.name}: {', '.join(shared)}: declared to add the same noise to different values"
        raise ParameterError(f"{message}, which release noise never does", name="noise", given="release")
    if declaration.others:
        name = declaration.others[0].name
        message = f"{declaration.name}: {name} is not a value plus noise, and release noise covers only these"
        raise ParameterError(message, name="noise", given="release")
    plain = isinstance(declaration.claim.guarantee, ZCDP | PureDP)
    drawn = replace(
        declaration,
        releases=tuple(_drawn(r, declaration.relation, values, plain=plain) for r in declaration.noisy),
        parameters=tuple(replace(p, default=values[p.name], follows=None) for p in declaration.parameters),
        assumptions=tuple(replace(one, bounds="") for one in declaration.assumptions),  # the bounds are raised already
    )
    _refuse_dearer(declaration, drawn, values, prices or Prices())
    return drawn


def _drawn(release: Release, relation: Relation, values: Mapping[str, Fraction], *, plain: bool) -> Release:
    mechanism: Any = release.mechanism
    if isinstance(mechanism, DiscreteGaussian | DiscreteLaplace):
        return release
    if type(mechanism) not in _CONTINUOUS:
        message = f"{release.name}: release noise is discrete Gaussian or Laplace, declared is {mechanism.words}"
        raise ParameterError(message, name="noise", given="release")
    statistic = _put_on_grid(release, relation, values)
    factor = Fraction(1) if plain and statistic.rounding != "contributions" else FACTOR
    return replace(release, statistic=statistic, mechanism=_discrete(mechanism, statistic.unit, factor), stated=None)


def _discrete(
    mechanism: Gaussian | SymmetricGaussian | Laplace, unit: Fraction, factor: Fraction
) -> DiscreteGaussian | DiscreteLaplace:
    """The discrete law with `factor` times the declared standard deviation, in units."""
    if isinstance(mechanism, Laplace):
        return DiscreteLaplace(scale=mechanism.scale * (factor / unit))
    return DiscreteGaussian(variance=mechanism.variance * (factor / unit) ** 2)


def _put_on_grid(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> OnGrid:
    statistic = release.statistic
    contributes = isinstance(statistic, Contributes)
    symmetric = release.mechanism.kind if isinstance(release.mechanism, SymmetricGaussian) else ""
    if symmetric and not contributes:
        message = f"{release.name}: {statistic.name} has no `contributions`, which are needed to round matrices"
        raise ParameterError(message, name="noise", given="release")
    base = release.mechanism.whiten(statistic.sensitivity(release.contribution(relation)))
    l1, l2, linf = (norm.number(values, rounding="down") for norm in (base.l1, base.l2, base.linf))
    if not contributes:
        finest = _UNITS - math.ceil(math.log2(l2)) if l2 > 0 else _FINE
        rounding: Any = "none" if is_whole(statistic) else "rewards"
        return OnGrid(of=statistic, unit=Fraction(1, 2 ** max(0, min(_FINE, finest))), rounding=rounding)
    shape = statistic.shape(values)
    m = math.prod(shape) if not symmetric else shape[0] * shape[-1] * (shape[-1] + 1) // 2
    if l2 == 0:  # nobody moves anything, and every contribution is 0
        return OnGrid(of=statistic, unit=Fraction(1, 2**_FINE), rounding="contributions", symmetric=symmetric)
    most = (2 if isinstance(relation, ReplaceOne) else 1) * float(relation.trajectories.number(values)) / 2
    room = float(FACTOR - 1 - IN_FLOATS) * min(l1 / m, l2 / math.sqrt(m), linf) / most
    unit = Fraction(2) ** math.floor(math.log2(room) - 1e-9)
    return OnGrid(of=statistic, unit=unit, rounding="contributions", symmetric=symmetric, coordinates=m)


def _refuse_dearer(declared: Declaration, drawn: Declaration, values: Mapping[str, Fraction], prices: Prices) -> None:
    """Refuse a discrete substitute that costs more than the declaration in the currency of its claim."""
    before, after = (prices.of(one, values).numbers for one in (declared, drawn))
    guarantee = declared.claim.guarantee
    if isinstance(guarantee, ZCDP):
        currency, was, now = "ρ", before.rho, after.rho
    elif isinstance(guarantee, PureDP):
        currency, was, now = "ε", before.pure, after.pure
    elif isinstance(guarantee, ApproxDP):
        at = guarantee.delta.number(values, rounding="down")
        currency, was, now = f"ε at δ = {at:g}", before.epsilon(at), after.epsilon(at)
    else:
        message = f"{declared.name}: release noise is for claims in zCDP, pure and (ε, δ)-DP, claimed is {guarantee}"
        raise ParameterError(message, name="noise", given="release")
    if not now <= was * _ROUNDING:
        message = f"{declared.name}: {currency} of the discrete noise is {now:.9g}, declared is {was:.9g}"
        raise ParameterError(f"{message}: nothing is drawn; declare more noise", name="noise", given="release")
