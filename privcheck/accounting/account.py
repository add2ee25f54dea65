"""From a declaration to its cost: exact expressions with their derivation, then numbers rounded up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privcheck.accounting.conversions import pure_delta, zcdp_delta, zcdp_to_epsilon
from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.events import Event, gaussian, laplace, pure
from privcheck.accounting.gdp import gdp_delta, gdp_epsilon
from privcheck.declaration import Declaration, Release
from privcheck.runtime.ledger import Charge, charge
from privcheck.statistics import Sensitivity
from privcheck.symbols import Expr, total

_THEOREMS = {
    "gaussian": ("Gaussian mechanism", "Bun & Steinke 2016, Proposition 1.6: ρ = Δ₂²/(2σ²)", r"\sigma^2"),
    "laplace": ("Laplace mechanism", "Dwork, McSherry, Nissim & Smith 2006, Theorem 1: ε = Δ₁/b", "b"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a derivation.

    Attributes:
        rule: What is applied.
        theorem: Its source.
        where: The release, or "all releases".
        symbol: What is derived, in LaTeX.
        result: The exact expression.
        inputs: What it is computed from: (symbol in LaTeX, exact expression), in the theorem's order.
        note: The argument in words.
    """

    rule: str
    theorem: str
    where: str
    symbol: str
    result: Expr
    inputs: tuple[tuple[str, Expr], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCost:
    """What one release costs, exactly.

    Attributes:
        release: The release.
        sensitivity: The derived sensitivity that is charged.
        rho: In zCDP.
        pure: In pure DP; None where no finite ε holds.
        mu_squared: On the Gaussian curve; None where it is not Gaussian.
    """

    release: Release
    sensitivity: Sensitivity
    rho: Expr
    pure: Expr | None
    mu_squared: Expr | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The cost of a declaration for all parameters.

    Attributes:
        declaration: What was accounted.
        costs: One a release.
        rho: Their sum in zCDP (Bun & Steinke 2016, Lemma 1.7).
        pure: Their sum in pure DP (basic composition), None where a release is not pure.
        mu_squared: Their sum on the Gaussian curve, None where a release is not Gaussian.
        derivation: How the figures came about.
    """

    declaration: Declaration
    costs: tuple[ReleaseCost, ...]
    rho: Expr
    pure: Expr | None
    mu_squared: Expr | None
    derivation: tuple[Line, ...]

    def at(self, values: Mapping[str, Fraction]) -> NumericAccount:
        """Returns the cost at given parameters, every number rounded up."""
        return NumericAccount(
            rho=self.rho.number(values, rounding="up"),
            pure=math.inf if self.pure is None else self.pure.number(values, rounding="up"),
            mu=None if self.mu_squared is None else _root_up(self.mu_squared.number(values, rounding="up")),
            events=tuple(
                charged_event(
                    charge(cost.release, self.declaration.relation, values), stepwise=cost.sensitivity.stepwise
                )
                for cost in self.costs
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericAccount:
    """The cost of a declaration at given parameters.

    Attributes:
        rho: ρ of zCDP.
        pure: ε of pure DP, ∞ where none.
        mu: μ of the exact Gaussian curve, None where a release is not Gaussian.
        events: The releases as events for the numeric accountant, one a release.
    """

    rho: float
    pure: float
    mu: float | None
    events: tuple[Event, ...]

    @property
    def curve(self) -> Curve:
        """Returns the privacy curve of all releases together."""
        return compose(*self.events)

    def methods(self, delta: float) -> tuple[Method, ...]:
        """Returns ε at δ by every method that applies, the tightest first.

        Args:
            delta: In [0, 1).
        """
        found = [
            Method(name="zCDP, best order", epsilon=zcdp_to_epsilon(self.rho, delta), direction="upper"),
            Method(
                name="zCDP, the papers' formula",
                epsilon=zcdp_to_epsilon(self.rho, delta, method="classical"),
                direction="upper",
            ),
        ]
        if self.mu is not None:
            found.append(Method(name="Gaussian curve", epsilon=gdp_epsilon(self.mu, delta), direction="exact"))
        elif delta > 0:
            figure = self.curve.epsilon(delta=delta)
            found.append(Method(name=f"{figure.method}, certified", epsilon=figure.upper, direction="upper"))
        if math.isfinite(self.pure):
            found.append(Method(name="pure DP, summed", epsilon=self.pure, direction="upper"))
        return tuple(sorted(found, key=lambda m: m.epsilon))

    def epsilon(self, delta: float) -> float:
        """Returns the least ε known at δ, rounded up."""
        return self.methods(delta)[0].epsilon

    def delta(self, epsilon: float) -> float:
        """Returns the least δ known at ε, rounded up."""
        found = [zcdp_delta(self.rho, epsilon), pure_delta(self.pure, epsilon)]
        if self.mu is not None:
            found.append(gdp_delta(self.mu, epsilon))
        elif epsilon < self.pure:
            found.append(self.curve.delta(epsilon=epsilon).upper)
        return min(found)


def account(declaration: Declaration) -> Account:
    """Returns the cost of a declaration: each release at its derived sensitivity, all composed.

    Composition is adaptive: a release may depend on earlier outputs. What the paper states plays no part.
    """
    costs, lines = [], []
    for release in declaration.releases:
        sensitivity = release.statistic.sensitivity(declaration.relation)
        mechanism = release.mechanism
        cost = ReleaseCost(
            release=release,
            sensitivity=sensitivity,
            rho=mechanism.zcdp(sensitivity),
            pure=mechanism.pure(sensitivity),
            mu_squared=mechanism.gdp_squared(sensitivity),
        )
        costs.append(cost)
        lines += _release_lines(cost, declaration.relation.words)
    rho = total([c.rho for c in costs])
    pure = None if any(c.pure is None for c in costs) else total([c.pure for c in costs if c.pure is not None])
    gaussian = (
        None if any(c.mu_squared is None for c in costs) else total([c.mu_squared for c in costs if c.mu_squared])
    )
    return Account(
        declaration=declaration,
        costs=tuple(costs),
        rho=rho,
        pure=pure,
        mu_squared=gaussian,
        derivation=(*lines, *_total_lines(costs, rho, pure)),
    )


def charged_event(cost: Charge, *, stepwise: bool, factor: float = 1.0) -> Event:
    """Returns one release as an event: its derived sensitivity against the noise that is drawn.

    A Laplace release of a table whose cells move by 0 or ±Δ∞ is Δ₁/Δ∞ scalar releases. Where cells move by parts of Δ∞,
    no worst split is proved for the whole curve, and the release is charged as any (Δ₁/b)-DP mechanism.

    Args:
        cost: Law, scale and sensitivities.
        stepwise: Every cell moves by 0 or ±Δ∞.
        factor: By which the noise is multiplied.
    """
    scale = cost.scale * factor
    if cost.law == "gaussian":
        return gaussian(std=scale, sensitivity=cost.l2)
    if stepwise and cost.linf > 0:
        return laplace(scale=scale, sensitivity=cost.linf, count=max(1, math.ceil(cost.l1 / cost.linf)))
    return pure(epsilon=cost.l1 / scale * (1 + 1e-15))


def _release_lines(cost: ReleaseCost, relation: str) -> list[Line]:
    mechanism, name = cost.release.mechanism, cost.release.name
    norm, value = (r"\Delta_2", cost.sensitivity.l2) if cost.pure is None else (r"\Delta_1", cost.sensitivity.l1)
    rule, theorem, spread = _THEOREMS[mechanism.law]
    charged = Line(
        rule="sensitivity",
        theorem=f"derived for: {relation}",
        where=name,
        symbol=_indexed(norm, name),
        result=value,
        note=cost.sensitivity.reason,
    )
    price = Line(
        rule=rule,
        theorem=theorem,
        where=name,
        symbol=_indexed(r"\rho" if cost.pure is None else r"\varepsilon", name),
        result=cost.rho if cost.pure is None else cost.pure,
        inputs=((norm, value), (spread, mechanism.spread)),
        note=mechanism.words,
    )
    return [charged, price]


def _total_lines(costs: Sequence[ReleaseCost], rho: Expr, pure: Expr | None) -> list[Line]:
    symbol, result = (r"\rho", rho) if pure is None else (r"\varepsilon", pure)
    parts = [(c.release.name, c.rho if pure is None else c.pure) for c in costs]
    theorem = (
        "Bun & Steinke 2016, Lemma 1.7: ρ adds up, adaptively"
        if pure is None
        else "Dwork & Roth 2014, Theorem 3.16: ε adds up, adaptively"
    )
    return [
        Line(
            rule="composition",
            theorem=theorem,
            where="all releases",
            symbol=_indexed(symbol, "total"),
            result=result,
            inputs=tuple((_indexed(symbol, name), part) for name, part in parts if part is not None),
        )
    ]


def _indexed(symbol: str, name: str) -> str:
    return rf"{symbol}^{{\mathrm{{{name}}}}}"


def _root_up(square: float) -> float:
    return math.nextafter(math.sqrt(square), math.inf)
