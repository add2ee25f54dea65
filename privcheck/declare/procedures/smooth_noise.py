"""Noise on a smooth sensitivity (Nissim, Raskhodnikova & Smith 2007), with a price for all data.

The noise is proportional to a bound S(D) on the change of the statistic from D by one user, and S itself changes by at
most a factor e^β between neighbours.

Lemma smooth-cauchy: With Cauchy noise of scale s·S(D), S(D) being at least the change of the statistic from D and
itself changing by at most a factor e^β, it is (2 arsinh(1/2s) + β)-DP. Proof: between neighbours the centre of the
noise changes by at most S and S′, and its scale by at most a factor e^β. With c = s·S and a = 1/s, changing first the
centre and then the scale,

    |ln p/p′| ≤ sup_z ln (1 + (z + a)²)/(1 + z²) + sup_z |ln r(1 + z²/r²)/(1 + z²)| = 2 arsinh(a/2) + β,   r = c′/c,

because the first ratio has the maximum ((a + √(a² + 4))/2)², and the second logarithm lies between ln r and −ln r.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, check_one_record, set_words
from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import Exact, Expr, expression, log, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_EDGES: Final = 4001
_FAR: Final = 1e7  # scales to which cells reach


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothNoise:
    """A number with Cauchy noise proportional to a smooth bound on its local sensitivity.

    Attributes:
        name: Name, unique in the declaration.
        smoothness: β: the bounds S of neighbours differ by a factor of at most e^β.
        scale: s, scale of the noise in units of S.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: A value is not a number, or the scale is not above 0.
    """

    name: str
    smoothness: Expr
    scale: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, smoothness: Exact | Expr, scale: Exact | Expr, users: str = "", source: str = ""
    ) -> None:
        set_words(self, name=name, users=users, source=source)
        object.__setattr__(self, "smoothness", number("smoothness, of SmoothNoise", smoothness))
        object.__setattr__(self, "scale", number("scale, of SmoothNoise", scale))
        known = None if self.scale.symbols else self.scale.rational()
        if known is not None and known <= 0:
            raise DeclarationError(f"scale, of SmoothNoise {name!r}: expected a number above 0, got {scale!r}")

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=f"Cauchy noise of scale {self.scale} times an ({self.smoothness})-smooth bound on the local "
            "sensitivity",
            output="a number with noise on its smooth sensitivity",
            latex=rf"f(D) + {self.scale.latex()}\cdot S(D)\cdot\mathrm{{Cauchy}}",
            law="cauchy",
            spread=self.scale,
            conditions=(
                Condition(what="the smoothness of its bound", of=self.smoothness, domain="nonnegative"),
                Condition(what="the scale of its noise", of=self.scale, domain="positive"),
            ),
            symbols=self.smoothness.symbols | self.scale.symbols,
            preconditions=(
                "S(D) is at least the distance by which any neighbour of D moves the number",
                f"the bounds S of neighbours differ by a factor of at most exp({self.smoothness})",
                "S itself is not released",
            ),
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """The scale, rounded up: half of all draws are within it; Cauchy noise has no standard deviation."""
        return self.scale.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> SmoothNoise:
        """Copy with `factor` times the scale; the smoothness is unchanged."""
        return replace(self, scale=self.scale * factor)

    def cost(self, relation: Relation) -> Cost:
        """Cost ε = β + 2 arsinh(1/2s), and ρ = min(ε²/2, ε) (Bun & Steinke 2016, Proposition 1.4).

        Raises:
            DeclarationError: A user has several trajectories: S(D) bounds the change by one of them.
        """
        check_one_record(self.name, relation, why="S(D) bounds the change by one record")
        half = 1 / (2 * self.scale)
        pure = self.smoothness + 2 * log(half + sqrt(1 + half**2))
        one = expression(1)
        return Cost(
            sensitivity=Sensitivity(l1=one, l2=one, linf=one, reason="in units of S(D), which bounds it"),
            charged=one,
            rho=minimum(pure**2 / 2, pure),
            pure=pure,
            mu_squared=None,
            theorem="Nissim, Raskhodnikova & Smith 2007, Lemma 2.5; Cauchy: β + 2·arsinh(1/2s)",
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Event of an ε-DP mechanism."""
        from privcheck.accounting.events import pure

        price = self.cost(relation).pure
        assert price is not None
        return (pure(epsilon=price.number(values, rounding="up")),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Data where the number changes by S = 1, and the bound is the same, or e^β times larger at one end."""
        s, beta = self.scale.number(values, rounding="up"), self.smoothness.number(values, rounding="down")
        pairs = []
        for larger in dict.fromkeys((1.0, math.exp(beta))):
            for swapped in (False, True):
                ends = ((0.0, s), (1.0, s * larger))
                first, second = ends[::-1] if swapped else ends
                shown = [f"{centre:g} with S = {scale / s:.6g}" for centre, scale in (first, second)]
                pairs.append(
                    KnownPair(
                        words=f"the number is {shown[0]} in D and {shown[1]} in D′: its smooth bound allows it",
                        data=(shown[0], shown[1]),
                        outcomes=cauchy_outcomes(first, second),
                        sampler=CauchyRuns(first=first, second=second),
                    )
                )
        return tuple(pairs)


def cauchy_outcomes(first: tuple[float, float], second: tuple[float, float]) -> Outcomes:
    """Laws of the cell that contains a number, for Cauchy laws with these centres and scales."""
    spacing = math.asinh(_FAR) * np.linspace(-1, 1, _EDGES)
    edges = np.sort(np.concatenate([centre + scale * np.sinh(spacing) for centre, scale in (first, second)]))
    edges = edges[np.append(True, np.diff(edges) > 0)]
    log_p, log_q = (_log_cells((edges - centre) / scale) for centre, scale in (first, second))
    return Outcomes(log_p=log_p, log_q=log_q)


def _log_cells(at: Array) -> Array:
    """Compute ln of the masses between the points and beyond: arctan b − arctan a is the angle of (1 + ab, b − a)."""
    inner = np.arctan2(np.diff(at), 1 + at[:-1] * at[1:])
    ends = np.arctan2(1.0, np.array([-at[0], at[-1]]))
    logs: Array = np.log(np.concatenate([ends[:1], inner, ends[1:]]) / math.pi)
    return logs


@dataclass(frozen=True, slots=True, kw_only=True)
class CauchyRuns:
    """Runs, scored by the exact likelihood ratio.

    Attributes:
        first: Centre and scale in D.
        second: Centre and scale in D′.
    """

    first: tuple[float, float]
    second: tuple[float, float]

    @property
    def numbers(self) -> int:
        """One."""
        return 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        centre, scale = (np.where(on_first, a, b) for a, b in zip(self.first, self.second, strict=True))
        seen = centre + scale * rng.standard_cauchy(on_first.size)
        one, other = (-np.log(s) - np.log1p(((seen - c) / s) ** 2) for c, s in (self.first, self.second))
        ratios: Array = one - other
        return ratios
