"""Mechanisms of bounded range: all likelihood ratios of two neighbours lie within a factor e^η of each other.

Few releases are charged by a pair above all of them (`BoundedRange`); many by one Gaussian, whose μ² is hardly above
Ση²/4, the limit for two equally likely losses (`gaussian_above`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from privcheck.accounting.engine.laws import (
    UNIT,
    Cells,
    Complex,
    Direction,
    Fading,
    Floats,
    Moments,
    Repeat,
    as_complex,
    as_floats,
    bound_by_variation,
    spread,
)
from privcheck.accounting.engine.trimmed import Trimmed, assemble, exponential_piece

_START: Final = 3.2  # variance of the Gaussian composed first, in units of the largest η²/4: about the best
_MOST: Final = 8.0  # of η²/4
_SMALL: Final = 0.02  # (z + ½)η below which K is a series: the closed form cancels


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """Pair that dominates every η-bounded-range mechanism (Dong, Durfee & Rogers 2020), e.g. the exponential one.

    Lemma bounded-range: Every η-bounded-range mechanism has δ(ε) ≤ (e^{η/2} − e^{ε/2})²/(e^η − 1) for |ε| ≤ η, the
    curve of a loss with the density e^{l/2}/(4 sinh(η/2)) on [−η, η], and that pair dominates in adaptive compositions.
    Source: Dong, Durfee & Rogers 2020. Proof: the losses lie in [t − η, t] for some t in [0, η]. Of all laws there, the
    law on both ends has the largest δ(ε), for every ε (hockey-sticks are convex): t with probability (e^η − e^t)/(e^η −
    1). The largest over t is at t = (η + ε)/2, and that curve belongs to a pair [lemma profile-pair].

    No single mechanism has that law, so a composition of several is a bound and not exact: the pair's losses have
    variance η²/3, those of one t at most η²/4.

    Attributes:
        span_of_losses: η.
    """

    span_of_losses: float

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
        """η."""
        return self.span_of_losses

    def largest(self, direction: Direction) -> float:
        """η."""
        return self.span_of_losses

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′ and K″ at c; where K is a series, it ends after a positive term, above K."""
        eta, half = self.span_of_losses, c + 0.5
        x = half * eta
        fade = np.exp(-2 * np.minimum(x, 370.0))
        gone = -np.expm1(-2 * x)
        second = np.maximum(1 / half**2 - 4 * eta * eta * fade / gone**2, 1e-300)
        small = x < _SMALL
        return (
            as_floats(self._cumulant(as_complex(c)).real),
            as_floats(np.where(small, half * (eta * eta / 3), eta * (1 + fade) / gone - 1 / half)),
            as_floats(np.where(small, eta * eta / 3, second)),
        )

    @property
    def rho(self) -> float:
        """η²/8, ρ of zCDP (Cesar & Rogers 2021), which the pair above all mechanisms exceeds.

        Lemma bounded-range-rho: A mechanism of bounded range η is η²/8-zCDP. Source: Cesar & Rogers 2021. Proof: κ(s) =
        ln E_Q[e^{sL}] has zeros at 0 and 1, and κ″ ≤ η²/4, the largest variance on an interval of length η: hence κ(1 +
        z) ≤ z(z + 1)η²/8.
        """
        return self.span_of_losses**2 / 8

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c) in closed form."""
        values = self._cumulant(as_complex(c + 1j * (step * np.arange(count))))
        return as_complex(values - values[0]), UNIT * (40 + 8 * self.span_of_losses * (c + step * count))

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Twice the largest value of the tilted density, at its upper end, over t (bound by total variation)."""
        half = c + 0.5
        return bound_by_variation(0.0, 2 * half / -math.expm1(-2 * half * self.span_of_losses) * (1 + 1e-14))

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of the closed form: 0 and 300."""
        return 0.0, 300.0

    def _cumulant(self, z: Complex) -> Complex:
        """K(z) = ln[sinh((z + ½)η)/((2z + 1) sinh(η/2))]."""
        eta, twice = self.span_of_losses, 2 * z + 1
        far = z * eta + np.log(-np.expm1(-twice * eta)) - np.log(twice) - math.log(-math.expm1(-eta))
        square = (z * z + z) * (eta * eta)  # (z + ½)²η² − η²/4
        # ln(sinh x/x) = x²/6 − x⁴/180 + x⁶/2835 − …, at (z + ½)η less at η/2
        near = square / 6 - square * (square + eta * eta / 2) / 180
        near += square * (square**2 + 0.75 * square * eta**2 + 3 * eta**4 / 16) / 2835
        return as_complex(np.where(np.abs(twice) * eta < 2 * _SMALL, near, far))

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build nodes of the law, nothing of it left out; see `trimmed`."""
        eta = self.span_of_losses
        made = exponential_piece(eta, 0.5 / -math.expm1(-eta), c=c, longest=longest)
        return None if made is None else assemble([made], c=c, p_out=0.0, q_out=0.0)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid, from the masses between grid points in closed form."""
        eta = self.span_of_losses
        low, high = math.floor(-eta / mesh), math.ceil(eta / mesh * (1 - 1e-15))
        grid = as_floats(np.arange(low, high + 1) * mesh)
        edges = np.clip(grid, -eta, eta)
        part = -np.expm1(-np.diff(edges) / 2) / -math.expm1(-eta)
        under_p, under_q = np.exp((edges[1:] - eta) / 2) * part, np.exp((-edges[:-1] - eta) / 2) * part
        return spread(low, grid, as_floats(under_p), as_floats(under_q), mesh=mesh, lowest=0.0, infinite=0.0)


def gaussian_above(ranges: Sequence[tuple[float, int]]) -> float:
    """μ² of a Gaussian that dominates adaptively composed releases of bounded range, rounded up.

    Lemma bounded-range-step: Let a = η/2, a² ≤ 8 and s ≥ 3.2a². A release of range η with a Gaussian of μ² = s after it
    has no larger δ(ε), at any ε, than a Gaussian of μ² = s²/(s − a²). Proof: the release has two losses τ ± a [lemma
    bounded-range]. Let g_s(y) = e^{−s/8} times the density of N(0, s) at y. E(xe^L − 1)₊ at x = e^y, over losses L
    under Q, grows by e^{y/2}·½∫₀^r g_{s+t}(y)dt where L gains a Gaussian of μ² = r, and by e^{y/2}·∫g_s(y + u)K(u)du
    where it gains the release, with K ≥ 0 and ∫e^{−bu}K(u)du = (e^{κ(b + ½)} − 1)/(b² − ¼), κ(z) = ln E_Q e^{zL}. That
    is at most ½∫₀^{a²} e^{(b² − ¼)t/2}dt at every real b, for κ(z) − z(z − 1)a²/2 is concave with zeros at 0 and 1
    [lemma bounded-range-rho]. With b = y/s the second gain, over g_s(y), is therefore at most that, and the first is,
    in t' = ts/(s + t), ½∫(1 − t'/s)^{−3/2}·e^{−t'²/8(s − t')}·e^{(b² − ¼)t'/2}dt' up to rs/(s + r), where the first two
    factors are together at least 1 if t' ≤ 12(1 − t'/s). So rs/(s + r) = a² is enough.

    Lemma bounded-range-limit: Releases of ranges η_i, adaptively composed with each other and with whatever else in any
    order, are dominated by a Gaussian of any s with s − m·ln s ≥ s₀ − m·ln s₀ + A + m²/(s₀ − 2m), A = Ση_i²/4, m the
    largest η_i²/4, s₀ ≥ 3.2m. Proof: a Gaussian of s₀ after all others makes no δ(ε) smaller. By backward induction and
    the last lemma, which holds for mixtures over y too, a release adds at most a²·f(s), f(s) = s/(s − m), to the s of
    what comes after it; whatever else is composed mixes over y or adds to s, and f falls. Φ(s) = s − m·ln s has Φ′ =
    1/f, and grows by at most a²f(s)/f(s + a²f(s)) ≤ a² + a²·m²/(s − m)²; the sum of the last terms is at most
    m²·∫(s₀ + t − m)^{−2}dt from −m on.

    Args:
        ranges: η and the number of releases of that range.

    Returns:
        μ² of all together; ∞ where a range is too large.
    """
    m = max(eta * eta for eta, _ in ranges) / 4 * (1 + 4 * UNIT)
    if not 0 < m <= _MOST:
        return math.inf
    total = math.fsum(count * eta * eta for eta, count in ranges) / 4 / m
    least = (_START - math.log(_START) + total + 1 / (_START - 2)) * (1 + 1e-14)
    s = least + math.log(least)
    for _ in range(60):
        s = least + math.log(s)
    while s - math.log(s) < least:
        s *= 1 + 4 * UNIT
    return m * s * (1 + 16 * UNIT)
