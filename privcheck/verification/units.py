"""In which unit a claim is compared with a cost, and the claim in that unit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from privcheck.declaration import Declaration
from privcheck.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.symbols import Expr

LossUnit = Literal["rho", "pure", "epsilon", "delta"]


def unit_of(declaration: Declaration, values: Mapping[str, Fraction]) -> LossUnit:
    """Returns ρ for zCDP, ε without δ for pure DP, ε at the claim's δ for (ε, δ)-DP, and δ at ε = 0 for (0, δ)-DP.

    (ε, 0)-DP is pure DP.
    """
    guarantee = declaration.claim.guarantee
    if isinstance(guarantee, ZCDP):
        return "rho"
    if isinstance(guarantee, PureDP) or guarantee.delta.rational(values) == 0:
        return "pure"
    return "delta" if guarantee.epsilon.rational(values) == 0 else "epsilon"


def claimed_in(unit: LossUnit, declaration: Declaration) -> Expr:
    """Returns the claim in its unit."""
    guarantee = declaration.claim.guarantee
    if isinstance(guarantee, ZCDP):
        return guarantee.rho
    if unit == "delta":
        assert isinstance(guarantee, ApproxDP)
        return guarantee.delta
    return guarantee.epsilon


def over(cost: float, claimed: float) -> float:
    """Returns cost/claim; of a claim of 0, which only what costs nothing keeps, 0 or ∞."""
    if claimed == 0:
        return math.inf if cost > 0 else 0.0
    return cost / claimed
