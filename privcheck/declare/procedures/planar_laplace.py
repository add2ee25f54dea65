"""A user's location in the plane with planar Laplace noise (Andrés et al. 2013), in a domain of bounded diameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, set_words
from privcheck.declare.procedures.cells import integrate_cells
from privcheck.declare.procedures.randomised_response import check_local, pure_rho
from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import Exact, Expr, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_THEOREM: Final = "Andrés, Bordenabe, Chatzikokolakis & Palamidessi 2013: ratios of at most e^(distance/b)"
_CELLS: Final = 1025  # edges of the angle in which the loss is told


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarLaplace:
    """A location plus noise of density exp(−|x|/b)/2πb² in the plane.

    Geo-indistinguishability bounds the ratio of densities by e^(distance/b) at every distance. It implies ε-DP if
    locations are at most a diameter apart, and no ε-DP if they are unbounded.

    Attributes:
        name: Name, unique in the declaration.
        spread: b, in the unit of distance: 1/b is the ε of geo-indistinguishability.
        diameter: Δ, the largest distance between two locations, in the same unit.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: No diameter is given.
    """

    name: str
    spread: Expr
    diameter: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, scale: Exact | Expr, diameter: Exact | Expr | None = None, users: str = "", source: str = ""
    ) -> None:
        set_words(self, name=name, users=users, source=source)
        if diameter is None:
            message = "PlanarLaplace: expected the diameter of the places: geo-indistinguishability bounds the loss by"
            raise DeclarationError(f"{message} distance/scale, so without a largest distance there is no ε")
        object.__setattr__(self, "spread", number("scale, of PlanarLaplace", scale))
        object.__setattr__(self, "diameter", number("diameter, of PlanarLaplace", diameter))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=f"planar Laplace noise of scale {self.spread} on a place, in a domain of diameter {self.diameter}",
            output="a noisy place",
            latex=rf"x + \mathrm{{Lap}}_2\left({self.spread.latex()}\right)",
            law="planar laplace",
            spread=self.spread,
            conditions=(
                Condition(what="the scale of the noise", of=self.spread, domain="positive"),
                Condition(what="the diameter of the places", of=self.diameter, domain="positive"),
            ),
            symbols=self.spread.symbols | self.diameter.symbols,
            schedule="once for every user",
            models=("local",),
            preconditions=(f"any two places are at most {self.diameter} apart",),
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """√3·b, the standard deviation of a coordinate, rounded up: E|x|² = 6b² over both coordinates."""
        return self.spread.number(values, rounding="up") * math.sqrt(3) * (1 + 1e-15)

    def with_std(self, factor: Fraction) -> PlanarLaplace:
        """Copy with `factor` times the scale."""
        return PlanarLaplace(
            self.name, scale=self.spread * factor, diameter=self.diameter, users=self.users, source=self.source
        )

    def cost(self, relation: Relation) -> Cost:
        """Cost Δ/b, approached but not attained, and ε·tanh(ε/2) in zCDP, as for any ε-DP mechanism.

        Raises:
            DeclarationError: Users are added or removed, or have several records.
        """
        check_local(self.name, relation)
        epsilon = (self.diameter / self.spread).simplified()
        moved = Sensitivity(
            l1=sqrt(2) * self.diameter, l2=self.diameter, linf=self.diameter, reason="two places a diameter apart"
        )
        return Cost(
            sensitivity=moved, charged=self.diameter, rho=pure_rho(epsilon), pure=epsilon, mu_squared=None,
            theorem=_THEOREM,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Event of any (Δ/b)-DP mechanism: that locations a diameter apart dominate all others is not proved here."""
        from privcheck.accounting.events import pure

        return (pure(epsilon=(self.diameter / self.spread).number(values, rounding="up")),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Two locations a diameter apart, with the law of their loss.

        Lemma planar-loss: Of two locations Δ apart the loss is (Δ/b)·sin θ, θ in [−π/2, π/2], and with k = Δ/2b its
        density under D is (k²/π)·e^(k sin θ)·(K₀(k)cos²θ + K₁(k)/k). Proof: in elliptic coordinates about the two
        locations it is that of θ alone, and the sum of the distances integrates to Bessel's K.
        """
        from scipy.special import k0e, k1e

        k = (self.diameter / self.spread / 2).number(values, rounding="down")
        constant = 2 * math.log(k) - math.log(math.pi) - k

        def log_density(theta: Array, sign: int) -> Array:
            shape: Array = np.log(k0e(k) * np.cos(theta) ** 2 + k1e(k) / k)
            return constant + sign * k * np.sin(theta) + shape

        edges = np.linspace(-math.pi / 2, math.pi / 2, _CELLS)
        p, q = integrate_cells(self.name, [lambda t: log_density(t, 1), lambda t: log_density(t, -1)], edges)
        return (
            KnownPair(
                words="in D the user is at one place; in D′ at another, a diameter apart",
                data=("at one place", "at another, a diameter apart"),
                outcomes=Outcomes(log_p=p, log_q=q),
                sampler=PlaneRuns(apart=2 * k),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneRuns:
    """Noisy locations, scored by the difference of their distances to D′'s and D's; in units of the scale."""

    apart: float

    @property
    def numbers(self) -> int:
        """Two: radius and angle."""
        return 2

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them: the radius is Gamma(2), the angle uniform."""
        radius, angle = rng.gamma(2.0, 1.0, on_first.size), rng.uniform(0.0, 2 * math.pi, on_first.size)
        x, y = radius * np.cos(angle) + np.where(on_first, 0.0, self.apart), radius * np.sin(angle)
        scores: Array = np.hypot(x - self.apart, y) - np.hypot(x, y)
        return scores
