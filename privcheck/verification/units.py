"""In which unit a claim is compared with a cost, and both in that unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, Literal

from privcheck.declaration import Declaration
from privcheck.guarantees import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
from privcheck.pricing import Priced
from privcheck.procedures import OwnMechanism
from privcheck.symbols import INFINITE, Expr, Rounding, same, sqrt
from privcheck.verification.gaussian_order import dominating_mu, dominating_square, gaussian_part

LossUnit = Literal["rho", "pure", "epsilon", "delta", "mu", "renyi"]
_SAME: Final = 1e-6  # relative: a number that is less by no more is what the exact bound is, after roundings


def unit_of(declaration: Declaration, values: Mapping[str, Fraction]) -> LossUnit:
    """Returns ρ for zCDP, ε without δ for pure DP, ε at the claim's δ for (ε, δ)-DP, and δ at ε = 0 for (0, δ)-DP.

    μ for Gaussian DP, and the divergence ε at the claim's order for Rényi DP; (ε, 0)-DP is pure DP. A profile has one
    for each of its points, which are judged one by one.
    """
    guarantee = declaration.claim.guarantee
    assert not isinstance(guarantee, PrivacyProfile)
    if isinstance(guarantee, ZCDP):
        return "rho"
    if isinstance(guarantee, GaussianDP):
        return "mu"
    if isinstance(guarantee, RenyiDP):
        return "renyi"
    if isinstance(guarantee, PureDP) or guarantee.delta.rational(values) == 0:
        return "pure"
    return "delta" if guarantee.epsilon.rational(values) == 0 else "epsilon"


def claimed_in(unit: LossUnit, declaration: Declaration) -> Expr:
    """Returns the claim in its unit."""
    guarantee = declaration.claim.guarantee
    assert not isinstance(guarantee, PrivacyProfile)
    if isinstance(guarantee, ZCDP):
        return guarantee.rho
    if isinstance(guarantee, GaussianDP):
        return guarantee.mu
    if unit == "delta":
        assert isinstance(guarantee, ApproxDP)
        return guarantee.delta
    return guarantee.epsilon


def cost_in(unit: LossUnit, priced: Priced) -> Expr | float:
    """Returns the composed cost in the claim's unit: exact, or a number rounded up; ∞ where there is no bound."""
    claim, composed, values = priced.declaration.claim.guarantee, priced.account, priced.values
    if isinstance(claim, RenyiDP):
        return _renyi(claim.order, priced)
    if isinstance(claim, ApproxDP) and unit != "pure":
        return _at_delta(unit, priced, claim)
    if unit == "rho":
        return composed.rho
    if unit == "pure":
        return INFINITE if composed.pure is None else composed.pure
    if composed.mu_squared is not None:
        return sqrt(composed.mu_squared)
    square = dominating_square(composed)
    least = dominating_mu(priced.numbers, gaussian_part(composed, values))
    return _unless(least, None if square is None else sqrt(square), values)


def order_of(declaration: Declaration, values: Mapping[str, Fraction], *, rounding: Rounding = "down") -> float:
    """Returns the order α of a claim of Rényi DP: divergences rise with it."""
    guarantee = declaration.claim.guarantee
    assert isinstance(guarantee, RenyiDP)
    return guarantee.order.number(values, rounding=rounding)


def over(cost: float, claimed: float) -> float:
    """Returns cost/claim; of a claim of 0, which only what costs nothing keeps, 0 or ∞."""
    if claimed == 0:
        return math.inf if cost > 0 else 0.0
    return cost / claimed


def _at_delta(unit: LossUnit, priced: Priced, claim: ApproxDP) -> Expr | float:
    """Returns ε at the claim's δ, or δ at ε = 0."""
    if unit == "delta":
        return priced.numbers.delta(0.0)
    if (stated := _stated_at(priced.declaration, claim.delta)) is not None:
        return stated
    return priced.epsilon(claim.delta.number(priced.values, rounding="down"))


def _stated_at(declaration: Declaration, delta: Expr) -> Expr | None:
    """Returns ε, exactly, where all that leaves is one mechanism of which (ε, δ)-DP is stated at this very δ."""
    if len(declaration.releases) != 1:
        return None
    only = declaration.releases[0]
    stated = only.guarantee if isinstance(only, OwnMechanism) else None
    return stated.epsilon if isinstance(stated, ApproxDP) and same(stated.delta, delta) else None


def _renyi(order: Expr, priced: Priced) -> Expr | float:
    """Returns D_α: αμ²/2 of Gaussian noise, else the least of the accountant's sum of divergences and αρ."""
    composed, values = priced.account, priced.values
    if composed.mu_squared is not None:
        return (order * composed.mu_squared / 2).simplified()
    if priced.numbers.unbounded:
        return math.inf
    least = priced.curve.renyi_divergence(order.number(values, rounding="up")).upper
    return _unless(least, (order * composed.rho).simplified(), values)


def _unless(number: float, exact: Expr | None, values: Mapping[str, Fraction]) -> Expr | float:
    """Returns the exact bound, unless there is none or the number that was computed is less by more than roundings."""
    if exact is None or exact.infinite or number < exact.number(values, rounding="down") * (1 - _SAME):
        return number
    return exact
