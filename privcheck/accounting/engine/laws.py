"""Laws of the privacy loss: the components of an event with known numbers.

A law is one pair (P, Q) of output laws under two neighbours and the loss L = ln dP/dQ under P. It offers its cumulant
K(z) = ln E[e^{zL}] = z·D_{1+z}(P‖Q), on the real axis with two derivatives for saddle points and Rényi orders, on
vertical lines for the contour. Everything else (ε, δ, attack terms) follows from sums of them. A pair that is not
symmetric has two directions. In "remove" P is the law of the outputs *with* the user, or with the user's contribution,
and Q without; "add" is (Q, P). Every law says which of its two laws has the user. A composition has one direction as a
whole, because all its events see the same two neighbours, and the larger of the two results is reported. A law with an
unknown direction relative to others has to dominate both, and is symmetric. Some laws are mixtures over a draw made
once per user, such as a sample. Releases that share that draw are not a composition of the law with itself: every law
states the law of such releases (`on_one_draw`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.mass import check_masses

Direction = Literal["remove", "add"]
DIRECTIONS: Final[tuple[Direction, Direction]] = ("remove", "add")
Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]
Fading = Callable[[float], float]
Repeat = Callable[[int], "Law"]
UNIT: Final = 2.0**-53  # NumPy's elementary functions are taken to err by 4 of it at most, relatively
_OPEN: Final = 2e-14  # relative error of a mass between grid points; a loss goes up by this much, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Law of the loss on a grid, never below the true one: every probability sits at its own loss or above.

    Attributes:
        start: Index of the first grid point; its loss is start·mesh.
        masses: P-masses of consecutive grid points.
        infinite: P-mass at loss ∞.
    """

    start: int
    masses: Floats
    infinite: float

    def __post_init__(self) -> None:
        """Check that no mass is negative or not a number."""
        check_masses(self.masses, self.infinite, "a law on the grid")


class Law(Protocol):
    """Pair of output laws under two neighbours."""

    @property
    def on_one_draw(self) -> Repeat | None:
        """Law of n releases that share one draw of the sample, from n; None where nothing is drawn for a user.

        Without such a draw, n releases are n times the law. Where no law is known for a shared draw, the function
        refuses.
        """
        ...

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same loss law."""
        ...

    def largest(self, direction: Direction) -> float:
        """Essential supremum of the loss: ε of pure DP, ∞ where there is none."""
        ...

    def infinite(self, direction: Direction) -> float:
        """P-mass at loss ∞; cumulants leave it out."""
        ...

    def span(self, direction: Direction) -> float:
        """Approximate largest finite loss that a grid has to hold, in absolute terms."""
        ...

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′ and K″, (m,) each, at (m,) real c > 0; K may be rounded up."""
        ...

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c) at `count` values t = 0, step, 2·step, …, up to multiples of 2πi.

        It is the logarithm of the characteristic function φ(t) of the loss tilted by e^{cL}. The second value is a
        bound on the absolute error of every φ(t), where |φ| ≤ 1.
        """
        ...

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Bound on ln|φ| at all t from a given one on; None where nothing is known, as for atoms."""
        ...

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of a wave up to t = `longest`: a fixed number of operations, and a number for every t."""
        ...

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law of the loss on the grid {i·mesh}; at most `tail` of its mass is moved to ∞."""
        ...


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """N(0, 1) against N(μ, 1): the loss is N(μ²/2, μ²) under P, K(z) = (z + z²)μ²/2.

    Attributes:
        mu_squared: (Δ/std)².
    """

    mu_squared: float

    @property
    def on_one_draw(self) -> Repeat | None:
        """None: every release draws its own noise."""
        return None

    @property
    def symmetric(self) -> bool:
        """Always True."""
        return True

    def infinite(self, direction: Direction) -> float:
        """Always 0."""
        return 0.0

    def span(self, direction: Direction) -> float:
        """Mean plus 40 standard deviations."""
        return self.mu_squared / 2 + 40 * math.sqrt(self.mu_squared)

    def largest(self, direction: Direction) -> float:
        """∞: Gaussian noise is not pure DP."""
        return math.inf

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c."""
        v = self.mu_squared
        return c * (c + 1) * (v / 2), (c + 0.5) * v, np.full(len(c), v)

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """it(c + ½)μ² − t²μ²/2."""
        v, t = self.mu_squared, step * np.arange(count)
        error = 4 * UNIT * (2 + (c + 0.5) * math.sqrt(v))  # t·e^{−vt²/2} ≤ 0.61/√v
        return as_complex(1j * t * ((c + 0.5) * v) - t * t * (v / 2)), error

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """−t²μ²/2."""
        return lambda t: -t * t * self.mu_squared / 2

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of the closed form: 0 and 1."""
        return 0.0, 1.0

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law of the loss N(μ²/2, μ²) on the grid."""
        from scipy.special import ndtr, ndtri

        mu = math.sqrt(self.mu_squared)
        reach = -float(ndtri(max(tail, 1e-300))) if tail < 0.5 else 1.0
        low = math.floor((mu * mu / 2 - mu * reach) / mesh)
        high = math.ceil((mu * mu / 2 + mu * reach) / mesh)
        edges = as_floats(np.arange(low, high + 1) * mesh)

        def between(centre: float) -> Floats:  # differences taken in the tail where they keep their digits
            x = (edges - centre) / mu
            below, above = ndtr(x), ndtr(-x)
            return as_floats(np.where(x[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1]))

        under_p, under_q = between(mu * mu / 2), between(-mu * mu / 2)
        infinite = float(ndtr(-(edges[-1] - mu * mu / 2) / mu))
        lowest = float(ndtr((edges[0] - mu * mu / 2) / mu))
        return spread(low, edges, under_p, under_q, mesh=mesh, lowest=lowest, infinite=infinite)


@dataclass(frozen=True, slots=True)
class ZcdpLaw:
    """Some (ξ, ρ)-zCDP mechanism: only K(z) ≤ z(ξ + ρ(z + 1)) is known; only Rényi orders compose it.

    Attributes:
        rho: ρ in nats.
        xi: ξ in nats.
    """

    rho: float
    xi: float = 0.0

    @property
    def on_one_draw(self) -> Repeat | None:
        """None: every release draws its own noise."""
        return None


@dataclass(frozen=True, slots=True)
class LostLaw:
    """Everything is lost with probability δ, otherwise nothing: the δ of an (ε, δ)-DP event.

    Attributes:
        delta: In [0, 1].
    """

    delta: float

    @property
    def on_one_draw(self) -> Repeat | None:
        """None: independent losses are at least as large as simultaneous ones."""
        return None


class Repeatable(Protocol):
    """Any law, also one with only known Rényi bounds, that states the law of releases sharing a draw."""

    @property
    def on_one_draw(self) -> Repeat | None:
        """Law of n releases that share one draw, from n; None where nothing is drawn for a user."""
        ...


Part = TypeVar("Part", bound=Repeatable)


def repeat_on_one_draw(parts: Iterable[tuple[Part, int]], times: int) -> tuple[tuple[Part | Law, int], ...]:
    """Laws, with counts, of a mechanism released `times` times, each of its draws shared by all releases.

    Args:
        parts: The mechanism's laws with their counts; counts are separate draws.
        times: Number of releases.

    Raises:
        ParameterError: No law is known for a shared draw of one of the parts.
    """
    repeated: list[tuple[Part | Law, int]] = []
    for law, count in parts:
        again = law.on_one_draw
        repeated.append((law, count * times) if again is None else (again(times), count))
    return tuple(repeated)


def spread(
    start: int, edges: Floats, under_p: Floats, under_q: Floats, *, mesh: float, lowest: float, infinite: float
) -> Cells:
    """Build a law on the grid that dominates a law given by its P- and Q-masses between grid points.

    Lemma connect-the-dots: If a mass between two grid points is split over both so that P and Q keep their totals, the
    curve δ(ε), convex in e^ε, is replaced by its chords: no δ(ε) is smaller. Source: Doroshenko et al. 2022, "connect
    the dots".

    Rounding errors are charged upwards.

    Args:
        start: Index of the first edge.
        edges: (n + 1,) grid points.
        under_p: (n,) P-masses between them.
        under_q: (n,) Q-masses between them.
        mesh: The grid's step.
        lowest: P-mass below the first edge, moved up to it.
        infinite: P-mass above the last edge, moved to ∞.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        upper = (under_p - under_q * np.exp(edges[:-1])) / -math.expm1(-mesh) + under_p * (_OPEN / mesh)
    upper = np.clip(np.where(np.isfinite(upper), upper, under_p), 0.0, under_p)
    masses = np.zeros(len(edges))
    masses[1:] += upper
    masses[:-1] += under_p - upper
    masses[0] += lowest
    return Cells(start=start, masses=masses, infinite=infinite)


def atoms_to_cells(losses: Floats, masses: Floats, *, mesh: float, infinite: float) -> Cells:
    """Build a law on the grid that dominates a law of atoms: each atom is split over its two neighbours."""
    place = losses / mesh
    left = np.floor(place + 1e-9).astype(np.int64)  # an atom a hair below a grid point counts as on it …
    rest = np.maximum(losses - left * mesh, 0.0)
    share = np.minimum(-np.expm1(-rest) / -math.expm1(-mesh) + _OPEN / mesh, 1.0)
    share[place > left + 1e-9] += 1e-12  # … and what rounding leaves open goes up
    share = np.minimum(share, 1.0)
    start = int(left.min())
    grid = as_floats(np.bincount(left - start + 1, weights=masses * share, minlength=int(left.max()) - start + 2))
    grid += np.bincount(left - start, weights=masses * (1 - share), minlength=len(grid))
    return Cells(start=start, masses=grid, infinite=infinite)


def without_light_end(masses: Floats, tail: float) -> int:
    """Number of masses that remain, at least one, if the last ones, at most `tail` together, are left out."""
    return len(masses) - int(np.searchsorted(np.cumsum(masses[:0:-1]), tail, side="right"))


def merge(one: Cells, other: Cells) -> Cells:
    """Sum of two sub-laws on the same grid."""
    start = min(one.start, other.start)
    size = max(one.start + len(one.masses), other.start + len(other.masses)) - start
    masses = np.zeros(size)
    for cells in (one, other):
        masses[cells.start - start : cells.start - start + len(cells.masses)] += cells.masses
    return Cells(start=start, masses=masses, infinite=one.infinite + other.infinite)


def root_up(times: int) -> float:
    """√n, rounded up: factor on the sensitivity of n Gaussian releases of the same contribution."""
    return math.sqrt(times) * (1 + 2**-51)


def as_floats(values: Any) -> Floats:
    """Convert to an array of floats."""
    return np.asarray(values, dtype=np.float64)


def as_complex(values: Any) -> Complex:
    """Convert to an array of complex numbers."""
    return np.asarray(values, dtype=np.complex128)


def bound_by_variation(atoms: float, variation: float) -> Fading:
    """Logarithm ln(w + V/t), a bound on ln|φ(t)| of atoms of mass w and a density of total variation V."""
    return lambda t: math.log(min(1.0, atoms + variation / t))
