"""The unit in which a claim is compared with a cost, and both in that unit; μ-GDP of curves that are not Gaussian.

Lemma gaussian-by-profile: A mechanism is μ-GDP if and only if δ(ε) ≤ δ_μ(ε) at every ε ≥ 0, with δ_μ the curve of N(0,
1) against N(μ, 1). Source: Dong, Roth & Su 2022, Corollary 2.13.

Lemma mu-between-knots: Between two knots δ(ε) ≤ δ_μ(ε) if at both ends it is, with the amount added by which the point
where the two tangents of δ_μ meet is below its chord. Proof: both curves are convex in x = e^ε, as suprema of lines in
x; so the first is below the line through its values there, and the second above that point.

Beyond the last knot δ(ε) = ∫ e^(ε−l) P(L > l) dl over l > ε decides, which grows with the tail P(L > l) of the loss.
That of an ε₀-DP mechanism is 0 from ε₀ on.

Lemma mu-tail: The loss of an m-GDP and an ε₀-DP mechanism together, m < μ, has a smaller tail than that of N(0, 1)
against N(μ, 1) from E = (ε₀/m + (m − μ)/2)/(1/m − 1/μ) on. Proof: the tail is at most Φ̄((l − ε₀)/m − m/2), where that
argument is the larger one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.answers import deltas_at
from privcheck.accounting.engine.gdp import gdp_delta
from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import Cost, OwnMechanism
from privcheck.pricing import Account, NumericAccount, Priced
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
from privcheck.terms.symbols import INFINITE, Expr, Rounding, largest, same, sqrt, total

_KNOTS: Final = 801
_LEAST: Final = 1e-150  # δ to which the curve is followed; below it only a bound on its tail helps
_MOST: Final = 1e3  # μ that is looked at: δ(0) is 1 in floats long before
_HALVINGS: Final = 50
_TIGHT: Final = 1e-9  # relative, at which the search for μ ends
_ASKED: Final = 17  # points of a pair's curve that are compared with Gaussian ones …
_LOOKS: Final = 3  # … and again around the best
_SLACK: Final = 1e-12  # relative, of sums and products of a few positive floats

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPart:
    """Parts that dominate a composition: an m-GDP part and an ε₀-DP part.

    Attributes:
        mu: m, rounded up.
        pure: ε₀, rounded up; ∞ if some part is neither.
    """

    mu: float
    pure: float

    def decided_from(self, mu: float) -> float:
        """Smallest ε known from which on the composition is certainly below δ_μ; ∞ if there is none."""
        if self.mu == 0 or math.isinf(self.pure):
            return self.pure
        if self.mu * (1 + _SLACK) >= mu:
            return math.inf
        gap = 1 / self.mu - 1 / mu
        return max(0.0, (self.pure / self.mu + (self.mu - mu) / 2) / gap) * (1 + _SLACK / (gap * self.mu)) + _SLACK


def dominating_mu(numbers: NumericAccount, part: GaussianPart) -> float:
    """Least μ found for which the composition is certainly μ-GDP; ∞ if none is certain.

    Args:
        numbers: The composition.
        part: Its dominating parts, which bound its tail.
    """
    if numbers.unbounded:
        return math.inf
    last = min(part.pure, 1e4) if part.mu == 0 else numbers.epsilon(_LEAST)
    if not math.isfinite(last) or math.isinf(part.pure):
        return math.inf
    if last == 0:
        return 0.0
    knots = np.linspace(0.0, last, _KNOTS)
    curve = _Curve(knots=knots, deltas=_deltas(numbers, knots))
    low, high = part.mu, max(2 * part.mu, 1.0)
    while not curve.below(high, part.decided_from(high)):
        low, high = high, 2 * high
        if high > _MOST:
            return math.inf
    for _ in range(_HALVINGS):
        if high - low <= _TIGHT * high:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if curve.below(middle, part.decided_from(middle)) else (middle, high)
    return high


def gaussian_part(composed: Account, values: Mapping[str, Fraction]) -> GaussianPart:
    """Parts that dominate a declaration's releases and procedures, the largest over the groups of users."""
    declaration = composed.declaration
    costs = {c.release.name: (c.mu_squared, c.pure) for c in composed.costs}
    costs |= {one.procedure.name: (_squared(one.cost), one.cost.pure) for one in composed.procedures}
    squares, pures = [0.0], [0.0]
    for group in declaration.groups:
        seen = [costs[one.name] for one in declaration.joined_for(group)]
        squares.append(math.fsum(m.number(values, rounding="up") for m, _ in seen if m is not None))
        rest = [math.inf if p is None else p.number(values, rounding="up") for m, p in seen if m is None]
        pures.append(math.fsum(rest) * (1 + _SLACK))
    return GaussianPart(mu=math.sqrt(max(squares)) * (1 + _SLACK), pure=max(pures))


def dominating_square(composed: Account) -> Expr | None:
    """μ² of a Gaussian mechanism that dominates all outputs, exactly; None if some part has none."""
    squares = {c.release.name: c.mu_squared for c in composed.costs}
    squares |= {one.procedure.name: _squared(one.cost) for one in composed.procedures}
    if None in squares.values():
        return None
    declaration, sums = composed.declaration, []
    for group in declaration.groups:
        parts = [squares[one.name] for one in declaration.joined_for(group)]
        sums.append(total([part for part in parts if part is not None]))
    return sums[0] if len(sums) == 1 else largest(*sums)


def _squared(cost: Cost) -> Expr | None:
    return cost.dominating_mu_squared if cost.mu_squared is None else cost.mu_squared


def refuted_mu(delta: Callable[[float], float], last: float) -> float:
    """A μ with δ_μ(ε) < δ(ε) at some ε, so that no smaller μ holds; 0 if none is known.

    Args:
        delta: δ(ε) of a pair of neighbours, rounded down.
        last: The largest ε that is evaluated; above it little is left.
    """
    best, low, high = 0.0, 0.0, last
    for _ in range(_LOOKS):
        asked = np.linspace(low, high, _ASKED).tolist()
        found = 0
        for i, epsilon in enumerate(asked):
            better = _raise_mu(best, epsilon, delta(epsilon))
            best, found = (better, i) if better > best else (best, found)
        low, high = asked[max(0, found - 1)], asked[min(found + 1, _ASKED - 1)]
    return best


def _raise_mu(mu: float, epsilon: float, delta: float) -> float:
    """Largest μ found with δ_μ(ε) < δ; the given one if that is not below δ."""
    if delta <= 0 or gdp_delta(mu, epsilon) >= delta:
        return mu
    low, high = mu, max(2 * mu, 1.0)
    while gdp_delta(high, epsilon) < delta and high < _MOST:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gdp_delta(middle, epsilon) < delta else (low, middle)
    return low


def _deltas(numbers: NumericAccount, knots: Floats) -> Floats:
    """δ at the knots, rounded up, the largest over the groups of users."""
    deltas = np.max([deltas_at(branch, knots).values for branch in numbers.branches], axis=0)
    return np.where(knots >= numbers.pure, 0.0, deltas)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Curve:
    """δ at knots, rounded up."""

    knots: Floats
    deltas: Floats

    def below(self, mu: float, until: float) -> bool:
        """Whether the curve is certainly below δ_μ up to the ε `until`."""
        if until > self.knots[-1]:
            return False
        used = min(len(self.knots), int(np.searchsorted(self.knots, until)) + 1)
        x, delta = self.knots[:used], self.deltas[:used]
        if delta[0] > gdp_delta(mu, 0.0, rounding="down"):
            return False
        above = np.array([gdp_delta(mu, float(e), rounding="down") for e in x])
        if used > 1:
            sag = _sag(x, mu)
            above = np.minimum(above - np.append(sag, 0.0), above - np.append(0.0, sag))
        return bool((delta * (1 + _SLACK) <= above).all())


def _sag(x: Floats, mu: float) -> Floats:
    """Upper bound on how far δ_μ may be below the line through its values at two knots.

    Two tangents meet at most a quarter of their slopes' difference times the width below it [lemma mu-between-knots].
    In units of e^ε at the left knot the width is e^(Δε) − 1, and the slope −Φ(−μ/2 − ε/μ) is multiplied by e^ε there.
    """
    from scipy.special import log_ndtr

    left, right = (np.exp(x[:-1] + log_ndtr(-mu / 2 - at / mu)) for at in (x[:-1], x[1:]))
    sag: Floats = np.expm1(np.diff(x)) * (left * (1 + _SLACK) - right * (1 - _SLACK)) / 4
    return sag


LossUnit = Literal["rho", "pure", "epsilon", "delta", "mu", "renyi"]
_SAME: Final = 1e-6  # relative: a number that is less by no more is what the exact bound is, after roundings


def unit_of(declaration: Declaration, values: Mapping[str, Fraction]) -> LossUnit:
    """Unit of a claim: ρ for zCDP, ε without δ for pure DP, ε at the claim's δ for (ε, δ)-DP, δ at ε = 0 for (0, δ)-DP.

    μ for Gaussian DP, and the divergence ε at the claim's order for Rényi DP; (ε, 0)-DP is pure DP. A profile has one
    unit for each of its points, which are judged one by one.
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
    """The claim in its unit."""
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
    """Composed cost in the claim's unit: exact, or a number rounded up; ∞ if there is no bound."""
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
    """Order α of a claim of Rényi DP; divergences increase with it."""
    guarantee = declaration.claim.guarantee
    assert isinstance(guarantee, RenyiDP)
    return guarantee.order.number(values, rounding=rounding)


def over(cost: float, claimed: float) -> float:
    """Ratio cost/claim; for a claim of 0, which only a cost of 0 meets, 0 or ∞."""
    if claimed == 0:
        return math.inf if cost > 0 else 0.0
    return cost / claimed


def _at_delta(unit: LossUnit, priced: Priced, claim: ApproxDP) -> Expr | float:
    """ε at the claim's δ, or δ at ε = 0."""
    if unit == "delta":
        return priced.numbers.delta(0.0)
    if (stated := _stated_at(priced.declaration, claim.delta)) is not None:
        return stated
    return priced.epsilon(claim.delta.number(priced.values, rounding="down"))


def _stated_at(declaration: Declaration, delta: Expr) -> Expr | None:
    """ε, exactly, if the only release is one mechanism with (ε, δ)-DP stated at this very δ; else None."""
    if len(declaration.releases) != 1:
        return None
    only = declaration.releases[0]
    stated = only.guarantee if isinstance(only, OwnMechanism) else None
    return stated.epsilon if isinstance(stated, ApproxDP) and same(stated.delta, delta) else None


def _renyi(order: Expr, priced: Priced) -> Expr | float:
    """D_α: αμ²/2 for Gaussian noise, else the smaller of the accountant's sum of divergences and αρ."""
    composed, values = priced.account, priced.values
    if composed.mu_squared is not None:
        return (order * composed.mu_squared / 2).simplified()
    if priced.numbers.unbounded:
        return math.inf
    least = priced.curve.renyi_divergence(order.number(values, rounding="up")).upper
    return _unless(least, (order * composed.rho).simplified(), values)


def _unless(number: float, exact: Expr | None, values: Mapping[str, Fraction]) -> Expr | float:
    """The exact bound, unless there is none or the computed number is smaller by more than rounding."""
    if exact is None or exact.infinite or number < exact.number(values, rounding="down") * (1 - _SAME):
        return number
    return exact
