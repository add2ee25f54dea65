"""The loss of one Laplace release."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    atoms_to_cells,
    bound_by_variation,
    merge,
    spread,
)
from privcheck.accounting.engine.trimmed import Trimmed, assemble, atoms_piece, exponential_piece


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """Laplace noise of scale b on a scalar of sensitivity Δ; a = Δ/b.

    Lemma laplace-cumulant: The loss of noise of a = Δ/b is a with probability ½, −a with probability ½e^{−a}, and has
    the density ¼e^{(l−a)/2} in between, so K(z) = ln[((z + 1)e^{za} + z e^{−(z+1)a})/(2z + 1)]. Source: Mironov 2017,
    Proposition 6.

    Attributes:
        step: a, the ε of one release.
    """

    step: float

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
        """Always a."""
        return self.step

    def largest(self, direction: Direction) -> float:
        """Always a."""
        return self.step

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c; for losses where the closed forms would cancel, their series, with K rounded up."""
        a, twice = self.step, 2 * c + 1
        v = a * a - a**3 / 3 + a**4 / 12  # K ≤ c(c + 1)(a + e^{−a} − 1) always, and by little where (2c + 1)a is small
        small = twice * a < 1e-4
        few = np.where(small, c, 0.0)  # the square of another c may be beyond floats
        fade = np.exp(-np.minimum(twice * a, 745.0))
        n, n1, n2 = c + 1 + c * fade, 1 + fade - 2 * a * c * fade, 4 * a * fade * (a * c - 1)
        k = c * a + np.log1p(c * np.expm1(-twice * a) / twice)
        second = np.maximum(n2 / n - (n1 / n) ** 2 + 4 / twice**2, 1e-300)
        return (
            as_floats(np.where(small, few * (few + 1) * (v / 2), k)),
            as_floats(np.where(small, (few + 0.5) * v, a + n1 / n - 2 / twice)),
            as_floats(np.where(small, v, second)),
        )

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c) in closed form."""
        a, t = self.step, step * np.arange(count)
        twice = 2 * (c + 1j * t) + 1
        away = np.expm1(-twice * a)  # ln(1 + z·away/(2z + 1)); log1p keeps the digits of small a
        values = 1j * t * a + np.log1p((c + 1j * t) * away / twice)
        return as_complex(values - values[0]), UNIT * (24 + 4 * a * (c + step * count))

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Tilted mass of the two atoms, plus twice the density's largest value, at a, over t, as a bound on ln|φ|."""
        a, k = self.step, float(self.moments(np.array([c]), direction)[0][0])
        atoms = 0.5 * math.exp(c * a - k) + 0.5 * math.exp(-(c + 1) * a - k)
        return bound_by_variation(atoms * (1 + 1e-14) + 1e-15, 0.5 * math.exp(c * a - k) * (1 + 1e-14))

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of the closed form: 0 and 3."""
        return 0.0, 3.0

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build nodes of the law, nothing of it left out; see `trimmed`."""
        a = self.step
        inner = exponential_piece(a, 0.25, c=c, longest=longest)
        if inner is None:
            return None
        ends = [(-a, math.log(0.5) - a), (a, math.log(0.5))]
        low, high = (atoms_piece(as_floats([loss]), as_floats([log])) for loss, log in ends)
        return assemble([low, inner, high], c=c, p_out=0.0, q_out=0.0)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build the loss on the grid; the atom at a sits on its own loss if mesh divides a, above it otherwise."""
        a = self.step
        low, high = math.floor(-a / mesh), math.ceil(a / mesh * (1 - 1e-15))
        edges = np.clip(np.arange(low, high + 1) * mesh, -a, a)
        width = np.diff(edges)
        under_p = 0.5 * np.exp((edges[1:] - a) / 2) * -np.expm1(-width / 2)
        under_q = 0.5 * np.exp((-edges[:-1] - a) / 2) * -np.expm1(-width / 2)
        inner = spread(
            low, as_floats(np.arange(low, high + 1) * mesh), under_p, under_q, mesh=mesh, lowest=0.0, infinite=0.0
        )
        atoms = atoms_to_cells(np.array([-a, a]), np.array([0.5 * math.exp(-a), 0.5]), mesh=mesh, infinite=0.0)
        return merge(inner, atoms)
