"""Guarantees: the statements of claims and bounds, as values.

Exact values in, exact values out; conversions to floats are in `privcheck.accounting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.parameters import LEAST, Condition, number
from privcheck.terms.symbols import Domain, Exact, Expr, Rounding, expression

_WAYS: Final[tuple[Rounding, ...]] = ("down", "up")


@dataclass(frozen=True, slots=True)
class PureDP:
    """ε-DP: P(M(D) ∈ E) ≤ e^ε P(M(D′) ∈ E) for all neighbours and events.

    Attributes:
        epsilon: ε in nats.
    """

    epsilon: Expr

    def __init__(self, epsilon: Exact | Expr) -> None:
        object.__setattr__(self, "epsilon", number("epsilon, of PureDP", epsilon))

    def __str__(self) -> str:
        return f"({self.epsilon})-DP"

    def latex(self) -> str:
        """The guarantee as a formula."""
        return rf"{self.epsilon.latex()}\text{{-DP}}"


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(ε, δ)-DP.

    Attributes:
        epsilon: ε in nats.
        delta: δ, a probability.
    """

    epsilon: Expr
    delta: Expr

    def __init__(self, epsilon: Exact | Expr, delta: Exact | Expr) -> None:
        object.__setattr__(self, "epsilon", number("epsilon, of ApproxDP", epsilon))
        object.__setattr__(self, "delta", number("delta, of ApproxDP", delta))

    def __str__(self) -> str:
        return f"({self.epsilon}, {self.delta})-DP"

    def latex(self) -> str:
        """The guarantee as a formula."""
        return rf"({self.epsilon.latex()},\,{self.delta.latex()})\text{{-DP}}"


@dataclass(frozen=True, slots=True)
class ZCDP:
    """ρ-zCDP: D_α(M(D)‖M(D′)) ≤ ρα for all α > 1 (Bun & Steinke 2016).

    Attributes:
        rho: ρ in nats.
    """

    rho: Expr

    def __init__(self, rho: Exact | Expr) -> None:
        object.__setattr__(self, "rho", number("rho, of ZCDP", rho))

    def __str__(self) -> str:
        return f"({self.rho})-zCDP"

    def latex(self) -> str:
        """The guarantee as a formula."""
        return rf"{self.rho.latex()}\text{{-zCDP}}"


@dataclass(frozen=True, slots=True)
class GaussianDP:
    """μ-GDP: no test distinguishes D from D′ better than N(0, 1) from N(μ, 1) (Dong, Roth & Su 2022, Definition 2.6).

    ρ-zCDP does not imply it; it implies (μ²/2)-zCDP, and (ε, δ)-DP at every point of its curve (`gdp_epsilon`).

    Attributes:
        mu: μ.
    """

    mu: Expr

    def __init__(self, mu: Exact | Expr) -> None:
        object.__setattr__(self, "mu", number("mu, of GaussianDP", mu))

    def __str__(self) -> str:
        return f"({self.mu})-GDP"

    def latex(self) -> str:
        """The guarantee as a formula."""
        return rf"{self.mu.latex()}\text{{-GDP}}"


@dataclass(frozen=True, slots=True)
class RenyiDP:
    """(α, ε)-Rényi DP: D_α(M(D)‖M(D′)) ≤ ε at one order α (Mironov 2017, Definition 4).

    Attributes:
        order: α, above 1.
        epsilon: ε in nats, of the Rényi divergence.
    """

    order: Expr
    epsilon: Expr

    def __init__(self, order: Exact | Expr, epsilon: Exact | Expr) -> None:
        object.__setattr__(self, "order", number("order, of RenyiDP", order))
        object.__setattr__(self, "epsilon", number("epsilon, of RenyiDP", epsilon))

    def __str__(self) -> str:
        return f"({self.order}, {self.epsilon})-RDP"

    def latex(self) -> str:
        """The guarantee as a formula."""
        return rf"({self.order.latex()},\,{self.epsilon.latex()})\text{{-RDP}}"


@dataclass(frozen=True, slots=True)
class PrivacyProfile:
    """(ε, δ)-DP at several points at once: f-DP for the piecewise linear f that they define.

    A mechanism is (εᵢ, δᵢ)-DP for every i if and only if it is f-DP for the largest of the f of Dong, Roth & Su 2022,
    Proposition 2.5.

    Attributes:
        points: Every (ε, δ).

    Raises:
        DeclarationError: The value is not a sequence of pairs, or it is empty.
    """

    points: tuple[ApproxDP, ...]

    def __init__(self, points: Iterable[tuple[Exact | Expr, Exact | Expr]]) -> None:
        given: object = points
        if not isinstance(given, tuple | list) or not given or any(not _is_pair(one) for one in given):
            message = f"points, of PrivacyProfile: expected pairs of ε and δ, one or more, got {given!r:.200}"
            raise DeclarationError(f"{message}; write PrivacyProfile(((1, '1e-6'), (2, '1e-9')))")
        object.__setattr__(self, "points", tuple(ApproxDP(epsilon, delta) for epsilon, delta in given))

    def __str__(self) -> str:
        return " and ".join(map(str, self.points))

    def latex(self) -> str:
        """The guarantee as a formula."""
        return r"\ \text{and}\ ".join(point.latex() for point in self.points)


Budget = PureDP | ApproxDP | ZCDP
Guarantee = Budget | GaussianDP | RenyiDP | PrivacyProfile


def guarantee_symbols(guarantee: Guarantee) -> frozenset[str]:
    """Parameters that occur in a guarantee."""
    if isinstance(guarantee, PrivacyProfile):
        return frozenset[str]().union(*map(guarantee_symbols, guarantee.points))
    return frozenset[str]().union(*(getattr(guarantee, slot).symbols for slot in guarantee.__slots__))


def guarantee_conditions(guarantee: Guarantee) -> tuple[Condition, ...]:
    """Numbers of a guarantee with the range required of each; ε of (ε, δ)-DP may be 0, for a bound on δ alone."""
    if isinstance(guarantee, PrivacyProfile):
        return tuple(condition for point in guarantee.points for condition in guarantee_conditions(point))
    if isinstance(guarantee, RenyiDP):
        return (
            Condition(what="the order of RenyiDP, less 1,", of=guarantee.order - 1, domain="positive"),
            Condition(what="epsilon, of RenyiDP,", of=guarantee.epsilon, domain="positive"),
        )
    name = type(guarantee).__name__
    domains: dict[str, Domain] = dict.fromkeys(guarantee.__slots__, "positive")
    if isinstance(guarantee, ApproxDP):
        domains = {"epsilon": "nonnegative", "delta": "part of one"}
    return tuple(
        Condition(what=f"{slot}, of {name},", of=getattr(guarantee, slot), domain=domain)
        for slot, domain in domains.items()
    )


def check_range(where: str, guarantee: Guarantee, values: Mapping[str, Fraction]) -> None:
    """Check that floats can represent the numbers of a guarantee, which are compared with computed ones.

    Args:
        where: Owner of the guarantee, for the message.
        guarantee: The guarantee.
        values: The parameters.

    Raises:
        ParameterError: A number is neither 0 nor between 1e-300 and 1e300.
    """
    for condition in guarantee_conditions(guarantee):
        low, high = (condition.of.number(values, rounding=way) for way in _WAYS)
        # 1e-300 itself is between floats: what may be inside is
        if not (low == high == 0 or (float(LEAST) <= high and low <= float(1 / LEAST))):
            at = ", ".join(f"{name} = {values[name]}" for name in sorted(condition.of.symbols & values.keys()))
            message = f"{where}: expected {condition.what} between 1e-300 and 1e300, got {high:.3g}"
            remedy = "claim a number that floats can be compared with, or give other parameters"
            raise ParameterError(f"{message}{' at ' if at else ''}{at}; {remedy}", given=str(condition.of)[:100])


def claimed_delta(guarantee: Guarantee) -> Expr | None:
    """The δ at which a guarantee is stated: 0 for pure DP, the first point's for a profile, None for a curve."""
    if isinstance(guarantee, PrivacyProfile):
        return guarantee.points[0].delta
    if isinstance(guarantee, PureDP):
        return expression(0)
    return guarantee.delta if isinstance(guarantee, ApproxDP) else None


def _is_pair(given: object) -> bool:
    return isinstance(given, tuple | list) and len(given) == 2
