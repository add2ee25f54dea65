"""The truth about a job: for every pair of neighbours that its events allow, two bounds on δ(ε) and their maximum."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from . import lattice
from .atoms import Atoms
from .dense import Dense, Gauss
from .normal import Long, gaussian_delta

LEVELS: Final = (2**12, 2**15)  # cells of a lattice, coarse first
_MOST_SHIFTS: Final = 20_000  # atoms over which a smooth curve is averaged
_FARTHEST: Final = 5000.0  # loss of a law on a lattice
NOTHING: Final = Atoms(np.zeros(1, dtype=Long), np.ones(1, dtype=Long))


@dataclass(frozen=True, slots=True)
class Rho:
    """Something of which only ρ-zCDP is known."""

    rho: Long


Law = Atoms | Dense | Rho


@dataclass(eq=False)
class World:
    """One composition of independent losses.

    Attributes:
        parts: Laws with their counts; a Gaussian with a count is one of √count μ.
    """

    parts: Sequence[tuple[Law, int]]
    mu: Long = field(init=False)

    def __post_init__(self) -> None:
        squares = [count * law.mu**2 for law, count in self.parts if isinstance(law, Gauss)]
        self.mu = np.sqrt(np.sum(np.array(squares, dtype=Long)))

    @functools.cached_property
    def _split(self) -> tuple[Atoms, list[tuple[Law, int]]]:
        """Returns the atoms, enumerated as far as possible, and all other laws but the Gaussian."""
        dense = [(law, n) for law, n in self.parts if not isinstance(law, Atoms | Gauss)]
        most = lattice_shifts = _MOST_SHIFTS if dense or self.mu > 0 else 10**9
        total, rest = NOTHING, list(dense)
        for law, count in sorted(
            ((a, n) for a, n in self.parts if isinstance(a, Atoms)), key=lambda p: len(p[0].losses)
        ):
            power = law.times(count)
            found = None if power is None or (rest and len(rest) > len(dense)) else total.plus(power)
            if found is None or len(found.losses) > most:
                rest.append((law, count))
                most = lattice_shifts = _MOST_SHIFTS
            else:
                total = found
        if len(total.losses) > lattice_shifts and rest:
            rest, total = [*rest, (total, 1)], NOTHING
        return total, rest

    def bounds(self, epsilon: float | Long, level: int = 0) -> tuple[Long, Long]:
        """Returns a lower and an upper bound on δ(ε), at any real ε.

        Args:
            epsilon: In nats.
            level: How fine the lattice is, where there is one: an index of `LEVELS`.
        """
        atoms, rest = self._split
        at = Long(epsilon)
        if len(rest) == 1 and rest[0][1] == 1 and self.mu == 0 and not isinstance(rest[0][0], Atoms | Rho):
            values, errors = rest[0][0].deltas(at - atoms.losses)
            value = np.sum(atoms.masses * values) + atoms.infinite
            error = np.sum(atoms.masses * errors) + atoms.error * (1 + value)
            return max(value - error, Long(0)), min(value + error, Long(1))
        if not rest:
            value, error = self._closed(atoms, at)
            return max(value - error, Long(0)), min(value + error, Long(1))
        if self._far:
            return Long(0), Long(1)
        return self._one(at, level, upwards=False), min(self._one(at, level, upwards=True), Long(1))

    @functools.cached_property
    def _far(self) -> bool:
        """Returns whether e^{loss} leaves even these floats' range: no lattice is made then."""
        laws = [*self._split[1], *([(Gauss(self.mu), 1)] if self.mu > 0 else [])]
        return any(max(abs(x) for x in _ends(law)) > _FARTHEST for law, _ in laws)

    def kinks(self, low: float, high: float) -> list[Long]:
        """Returns the ε between two at which the curve has a kink: values of losses, where nothing is smooth.

        With all their digits: a float below a loss is 1e-16 off it, and so is δ, which may be as small.
        """
        atoms, rest = self._split
        if rest or self.mu > 0:
            return []
        return [x for x in atoms.losses if low <= x <= high]

    @property
    def exact(self) -> bool:
        """Returns whether no lattice is needed."""
        return not self._split[1]

    def _closed(self, atoms: Atoms, epsilon: Long) -> tuple[Long, Long]:
        if self.mu == 0:
            return atoms.delta(epsilon)
        values, errors = gaussian_delta(self.mu, epsilon - atoms.losses)
        # its slope in ε is at most e^ε Φ(…) ≤ Φ(…)
        first = gaussian_delta(self.mu, epsilon - atoms.losses)[0] + errors
        total = np.sum(atoms.masses * values) + atoms.infinite
        slack = np.sum(atoms.masses * (errors + atoms.error * np.minimum(1, first + 1 / self.mu)))
        return total, slack + atoms.error * total + Long(1e-17) * total

    @functools.cache  # noqa: B019 - a world lives as long as its job
    def _sum(self, level: int, *, upwards: bool) -> lattice.Sum:
        _, rest = self._split
        laws = [*rest, *([(Gauss(self.mu), 1)] if self.mu > 0 else [])]
        if len(laws) == 1 and isinstance(laws[0][0], Atoms) and laws[0][0].spacing > 0:
            return lattice.Sum([(_on(law, law.spacing, upwards=upwards), n) for law, n in laws])
        coarse = lattice.Sum([(_on(law, self._coarse_step, upwards=True), n) for law, n in laws])
        step = Long(coarse.span() / LEVELS[level])
        longest = max(_reach(law) for law, _ in laws)
        step = max(step, longest / lattice.LONGEST)
        return lattice.Sum([(_on(law, step, upwards=upwards), n) for law, n in laws])

    @functools.cached_property
    def _coarse_step(self) -> Long:
        _, rest = self._split
        laws = [*rest, *([(Gauss(self.mu), 1)] if self.mu > 0 else [])]
        return max(_reach(law) for law, _ in laws) / 1000

    def _one(self, epsilon: Long, level: int, *, upwards: bool) -> Long:
        atoms, _ = self._split
        total = self._sum(level, upwards=upwards)

        logs, losses = np.log(atoms.masses).astype(float), atoms.losses.astype(float)

        def more(c: float) -> float:
            top = float(np.max(logs + c * losses))
            return top + float(np.log(np.sum(np.exp(logs + c * losses - top))))

        c = total.tilt_for(epsilon, more) if epsilon > 0 else 0.0
        values, errors = total.deltas(epsilon - atoms.losses, c)
        kept = np.sum(atoms.masses)
        value, error = np.sum(atoms.masses * values), np.sum(atoms.masses * errors) + atoms.error
        infinite = atoms.infinite + kept * total.infinite
        return value + infinite + error if upwards else max(value + infinite - error, Long(0))


def _on(law: Law, step: Long, *, upwards: bool) -> lattice.Lattice:
    if isinstance(law, Atoms):
        return lattice.of_atoms(law, step, upwards=upwards)
    assert not isinstance(law, Rho)
    return lattice.above(law, step) if upwards else lattice.under(law, step)


def _ends(law: Law) -> tuple[Long, Long]:
    """Returns the least and the largest loss that a lattice has to hold."""
    if isinstance(law, Atoms):
        return law.losses[0], law.losses[-1]
    assert not isinstance(law, Rho)
    return law.range()


def _reach(law: Law) -> Long:
    low, high = _ends(law)
    return max(high - low, Long(1e-300))
