"""A composition, reduced to the accountant's inputs: laws of the loss with their counts, ρ and δ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from privcheck.accounting.engine.bounded import BoundedRange, gaussian_above
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import DIRECTIONS, UNIT, Direction, Fading, Floats, GaussianLaw, Law, Moments
from privcheck.accounting.engine.orders import RenyiLaw

_HOPELESS: Final = 1e100
_MANY: Final = 16  # laws of a sketch
_LOOK: Final = 9  # points of one look for a saddle point
_CLOSE: Final = 0.3  # … on log₂ c, that are close enough
_WIDEST: Final = 90  # of |log₂ c|


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Composition of events on the same data.

    Attributes:
        mu_squared: Σ(Δ/std)² of all Gaussian events: they are one Gaussian (Dong, Roth & Su 2022, Corollary 3.3).
        laws: All other laws with their counts, in a fixed order.
        rho: Σρ of events with only a known zCDP bound.
        lost: ln ∏(1 − δᵢ), at most 0, of the (ε, δ)-DP events, in floating point.
        losts: (δᵢ, count) of these events.
        xi: Σξ of (ξ, ρ)-zCDP events.
        bounds: Laws with only known Rényi bounds, with their counts.
        joined: Whether some laws replace others that they dominate.
    """

    mu_squared: float
    laws: tuple[tuple[Law, int], ...]
    rho: float
    lost: float
    losts: tuple[tuple[float, int], ...] = ()
    xi: float = 0.0
    bounds: tuple[tuple[RenyiLaw, int], ...] = ()
    joined: bool = False

    @property
    def orders_only(self) -> bool:
        """Whether it composes by Rényi orders only: no pair dominates some of its events."""
        return self.rho > 0 or self.xi > 0 or bool(self.bounds)

    @property
    def gaussian(self) -> bool:
        """Whether it is one Gaussian and nothing else."""
        return 0 < self.mu_squared <= _HOPELESS and not self.laws and self.lost == 0 and not self.orders_only

    @property
    def all_laws(self) -> tuple[tuple[Law, int], ...]:
        """All laws, including the Gaussian one."""
        return ((GaussianLaw(self.mu_squared), 1), *self.laws) if self.mu_squared > 0 else self.laws

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions to compute: one where all pairs are symmetric."""
        return DIRECTIONS[:1] if all(law.symmetric for law, _ in self.laws) else DIRECTIONS

    @property
    def hopeless(self) -> bool:
        """Whether there is so little noise that squares of the loss would overflow: only a sum bounds ε."""
        finite = [law.largest(d) for law, _ in self.laws for d in self.directions]
        largest = max([self.mu_squared, self.rho, *(x for x in finite if math.isfinite(x))])
        return largest > _HOPELESS

    def infinite(self, direction: Direction) -> float:
        """P-mass at loss ∞ of all laws together."""
        masses = [(law.infinite(direction), count) for law, count in self.laws]
        if any(mass >= 1 for mass, _ in masses):
            return 1.0
        return -math.expm1(math.fsum(count * math.log1p(-mass) for mass, count in masses))

    def largest(self, direction: Direction | None = None) -> float:
        """Sum of the largest losses: ε of pure DP after basic composition, rounded up; ∞ where there is none.

        Args:
            direction: Direction of the asymmetric pairs; both if None.
        """
        if self.rho > 0 or self.xi > 0:
            return math.inf
        if direction is None:
            return max(self.largest(d) for d in self.directions)
        terms = [law.largest(direction) * count for law, count in self.all_laws]
        terms += [law.largest * count for law, count in self.bounds]
        return math.fsum(terms) * (1 + 1e-15) if all(math.isfinite(t) for t in terms) else math.inf

    def sketch(self, direction: Direction) -> Job:
        """Similar job of few laws with few values, for starting points of searches only, never for results."""
        if len(self.laws) <= _MANY:
            laws = tuple((law.sketch if isinstance(law, AtomicLaw) else law, count) for law, count in self.laws)
            return self if laws == self.laws else replace(self, laws=laws)
        ordered = sorted(self.laws, key=lambda pair: pair[0].span(direction))
        groups = np.array_split(np.arange(len(ordered)), _MANY)
        laws = tuple((ordered[int(g[-1])][0], sum(ordered[i][1] for i in g.tolist())) for g in groups)
        return replace(self, laws=laws)

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """ΣK, ΣK′, ΣK″, (m,) each, at (m,) real c > 0, with z(ξ + ρ(z + 1)) for the zCDP part.

        The derivatives leave out `bounds`: only Rényi orders are used for such a composition.
        """
        k, k1 = c * (self.xi + self.rho * (c + 1)), self.xi + self.rho * (2 * c + 1)
        k2 = np.full(len(c), 2 * self.rho)
        for bound, count in self.bounds:
            k = k + count * bound.cumulants(c)
        for law, count in self.all_laws:
            parts = law.moments(c, direction)
            k, k1, k2 = k + count * parts[0], k1 + count * parts[1], k2 + count * parts[2]
        return k, k1, k2

    def divergences(self, c: Floats, direction: Direction) -> Floats:
        """(m,) bounds on the least K known at (m,) real c: mechanisms of bounded range are η²/8-zCDP."""
        k = self.moments(c, direction)[0]
        for law, count in self.laws:
            if isinstance(law, BoundedRange):
                own = law.moments(c, direction)[0]
                k = k + count * (np.minimum(own, law.rho * c * (c + 1) * (1 + 4 * UNIT)) - own)
        return k

    @property
    def ranged(self) -> bool:
        """Whether Rényi orders may be tighter than the pairs, as for several mechanisms of bounded range."""
        return any(isinstance(law, BoundedRange) for law, _ in self.laws)

    @property
    def with_gaussian_ranges(self) -> Job | None:
        """Job with a Gaussian in place of all laws of bounded range; None where these are better, or there are none."""
        ranges = [(law.span_of_losses, count) for law, count in self.laws if isinstance(law, BoundedRange)]
        above = gaussian_above(ranges) if ranges else math.inf
        # μ² of the limit law of the pairs
        if not above < math.fsum(count * eta * eta / 3 for eta, count in ranges):
            return None
        others = tuple((law, count) for law, count in self.laws if not isinstance(law, BoundedRange))
        return replace(self, mu_squared=(self.mu_squared + above) * (1 + UNIT), laws=others)

    def bound_rounding(self, c: Floats, direction: Direction) -> Floats:
        """(m,) bounds on the rounding error of K(c), which a count multiplies, at (m,) values of c."""
        turns = sum(count for _, count in self.laws)
        spans = math.fsum(count * law.span(direction) for law, count in self.laws)
        return 4e-15 * (turns + c * spans)

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Bound on ln|φ| of the tilted composition at all t from a given one on, None where none is known."""
        known = [(law.bound_decay(c, direction), count) for law, count in self.laws]
        parts = [(bound, count) for bound, count in known if bound is not None]
        if self.mu_squared == 0 and not parts:
            return None

        def at(t: float) -> float:
            return math.fsum(count * bound(t) for bound, count in parts) - self.mu_squared * t * t / 2

        return at


class Cumulants(Protocol):
    """Law of a loss that has cumulants."""

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′ and K″, (m,) each, at (m,) real c > 0."""
        ...


def saddle_at(job: Cumulants, epsilon: float, direction: Direction) -> float:
    """Saddle point c > 0 with the least K(c) − cε − ln c − ln(c + 1): the contour for δ(ε) goes through it."""

    def slopes(c: Floats) -> Floats:
        return job.moments(c, direction)[1] - epsilon - 1 / c - 1 / (c + 1)

    return _root(slopes)


def saddle_for(job: Cumulants, log_delta: float, direction: Direction) -> tuple[float, float]:
    """(c, ε) of the saddle point at which δ(ε), to leading order, has the given value."""

    def excess(c: Floats) -> Floats:
        k, k1, k2 = job.moments(c, direction)
        epsilon = k1 - 1 / c - 1 / (c + 1)
        curvature = k2 + 1 / c**2 + 1 / (c + 1) ** 2
        leading = k - c * epsilon - np.log(c * (c + 1)) - 0.5 * np.log(2 * math.pi * curvature)
        difference: Floats = log_delta - leading  # grows with c
        return difference

    c = _root(excess)
    return c, float(job.moments(np.array([c]), direction)[1][0]) - 1 / c - 1 / (c + 1)


def _root(rising: Callable[[Floats], Floats]) -> float:
    """Find the root of a rising function of c > 0 to 2 %, or an end of the range where there is none.

    The search first goes in one direction, up or down, until the root is between two of its points; it never turns
    back, since rounding may give either sign at the edge between two ranges.
    """

    def look(low: float, high: float) -> tuple[Floats, int]:
        at = np.linspace(low, high, _LOOK)  # log₂ c
        below = rising(2.0**at) < 0  # what overflowed counts as beyond the root
        return at, _LOOK if below.all() else int(np.argmin(below))

    with np.errstate(over="ignore", invalid="ignore"):
        at, first = look(-6.0, 10.0)
        step = 16.0 if first == _LOOK else -16.0
        beyond = first if first in (0, _LOOK) else None
        while first == beyond and at[0] > -_WIDEST and at[-1] < _WIDEST:
            at, first = look(at[0] + step, at[-1] + step)
        while 0 < first < _LOOK and at[-1] - at[0] >= _CLOSE:
            at, first = look(at[first - 1], at[first])
    return float(2.0 ** at[min(first, _LOOK - 1)])
