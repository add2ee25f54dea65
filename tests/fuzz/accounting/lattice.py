"""A certified privacy loss distribution: two lattices between which the composed loss lies, summed by FFT.

Above: a cell's P- and Q-mass are moved to its two ends so that both are kept. That is a mean-preserving spread of
the likelihood ratio under Q, of which every hockey-stick is a convex function, so that the result dominates. Below: a
cell's outcomes are joined (post-processing), and the loss of the joined outcome is rounded down to the lattice.
Sums are circular convolutions of exponentially tilted masses; what is wrapped around is bounded by Chernoff, what the
FFT rounds by its error bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from .atoms import Atoms, either
from .dense import Dense
from .normal import ROUNDING, Long, Longs

CELLS: Final = 2**15  # of a composition
LONGEST: Final = 2**19  # cells of one law
_TAIL: Final = 70.0  # −ln of what may be wrapped around


@dataclass(frozen=True)
class Lattice:
    """Masses under P at losses base + j·step, and at ∞."""

    base: Long
    step: Long
    masses: Longs
    infinite: Long

    @functools.cached_property
    def logs(self) -> NDArray[np.float64]:
        """Returns ln p."""
        with np.errstate(divide="ignore"):
            return np.log(self.masses).astype(np.float64)

    @functools.cached_property
    def losses(self) -> Longs:
        """Returns where the masses are."""
        return self.base + self.step * np.arange(len(self.masses), dtype=Long)

    def cumulant(self, c: float) -> float:
        """Returns ln Σ p e^{cl}, to the digits of a float."""
        logs = self.logs + c * self.losses.astype(np.float64)
        top = float(np.max(logs))
        return top + float(np.log(np.sum(np.exp(logs - top))))


def _edges(law: Dense, step: Long) -> Longs:
    low, high = law.range()
    number = int(np.ceil((high - low) / step)) + 1
    return high - step * np.arange(number - 1, -2, -1, dtype=Long)  # a lattice through the top end, one cell above it


def above(law: Dense, step: Long) -> Lattice:
    """Returns a dominating law on a lattice."""
    edges = _edges(law, step)
    p, p_error, q, q_error = law.cells(edges)
    p, q = p + p_error, np.maximum(q - q_error, 0)
    lower, upper = law.outside()
    # p_low + p_high = p and p_low e^{−low} + p_high e^{−high} = q, of which the sum grows with p and falls with q
    # beyond e^11000 q is zero or lost: a smaller factor leaves more at the high end, which dominates
    ratios = np.exp(np.minimum(edges[:-1], Long(11_000)))
    high = np.clip((p - q * ratios * (1 - Long(1e-17))) / -np.expm1(-step), 0, p)
    masses = np.zeros(len(edges), dtype=Long)
    masses[:-1] += p - high
    masses[1:] += high
    masses[0] += lower
    return Lattice(edges[0], step, masses * (1 + Long(1e-17)), upper)


def under(law: Dense, step: Long) -> Lattice:
    """Returns a dominated law on a lattice of its own offset."""
    edges = _edges(law, step)
    p, p_error, q, q_error = law.cells(edges)
    p, q = np.maximum(p - p_error, 0), q + q_error
    with np.errstate(divide="ignore", invalid="ignore"):
        offsets = np.log(p / q) - edges[:-1] * (1 + Long(1e-18) * np.sign(edges[:-1])) - Long(1e-18)
    offsets = np.where(np.isfinite(offsets), np.clip(offsets, 0, step), 0)
    # one offset s for all: cells whose loss is at least s above their edge stay, the others go one cell down
    usable = offsets[p > np.max(p) * Long(1e-15)].astype(float)
    tried = [Long(0), *(Long(x) * (1 - Long(1e-15)) for x in np.quantile(usable, np.linspace(0, 1, 41)))]
    costs = [float(np.sum(p * np.where(offsets >= s, offsets - s, offsets - s + step))) for s in tried]
    s = tried[int(np.argmin(costs))]
    stays = offsets >= s
    masses = np.zeros(len(edges), dtype=Long)  # the first is one cell below the first edge
    masses[1:][stays] += p[stays]
    masses[:-1][~stays] += p[~stays]
    return Lattice(edges[0] - step + s, step, masses, Long(0))


def of_atoms(atoms: Atoms, step: Long, *, upwards: bool) -> Lattice:
    """Returns atoms on a lattice: spread above, rounded down below; as they are where it is their own."""
    first = atoms.losses[0]
    if step == atoms.spacing:
        shift = (1 + np.max(np.abs(atoms.losses))) * Long(1e-17) * (1 if upwards else -1)
        masses = atoms.masses * (1 + (atoms.error if upwards else -atoms.error))
        return Lattice(first + shift, step, masses, atoms.infinite)
    place = np.floor((atoms.losses - first) / step).astype(np.int64)
    rest = atoms.losses - (first + place * step)
    masses = np.zeros(int(place[-1]) + 2, dtype=Long)
    if upwards:
        share = np.clip(-np.expm1(-rest) / -np.expm1(-step) + 1e-17 / step, 0, 1)
        np.add.at(masses, place, atoms.masses * (1 - share))
        np.add.at(masses, place + 1, atoms.masses * share)
        return Lattice(first, step, masses * (1 + Long(1e-16)), atoms.infinite)
    np.add.at(masses, place, atoms.masses)
    return Lattice(first - Long(1e-18) * (1 + np.abs(first)), step, masses * (1 - Long(1e-16)), atoms.infinite)


class Sum:
    """The composition of lattices of one step."""

    def __init__(self, parts: Sequence[tuple[Lattice, int]]) -> None:
        self.parts = list(parts)
        self.step = self.parts[0][0].step
        self.infinite = Long(0)
        for law, count in self.parts:
            self.infinite = either(self.infinite, law.infinite, count)
        self._cumulants: dict[float, float] = {}
        self._tables: dict[float, tuple[Longs, Longs, Longs, Long]] = {}

    def cumulant(self, c: float) -> float:
        """Returns K(c)."""
        if c not in self._cumulants:
            self._cumulants[c] = sum(count * law.cumulant(c) for law, count in self.parts)
        return self._cumulants[c]

    def _tail(self, c: float, sign: int) -> float:
        """Returns how far the tilted sum goes on one side but for e^{−_TAIL}: the least (K(c ± t) − K(c) + T)/t."""
        here, found = self.cumulant(c), np.inf
        for t in np.geomspace(0.02, 200, 14) * self._speed:
            value = (self.cumulant(c + sign * float(t)) - here + _TAIL) / float(t)
            if value > found:  # convex in 1/t
                break
            found = value
        return found

    @functools.cached_property
    def _speed(self) -> float:
        """Returns 1/standard deviation."""
        variance = Long(0)
        for law, count in self.parts:
            p = law.masses / np.sum(law.masses)
            mean = np.sum(p * law.losses)
            variance += count * np.sum(p * (law.losses - mean) ** 2)
        return float(1 / np.sqrt(variance + self.step**2))

    def tilt_for(self, epsilon: Long, more: Callable[[float], float]) -> float:
        """Returns the tilt on a coarse scale at which K(c) − cε is least: 0 or a power of 2; `more` is added to K."""
        best, least = 0.0, 0.0
        for k in range(-6, 16):
            c = self._speed * 2.0**k
            value = self.cumulant(c) + more(c) - c * float(epsilon)
            if value >= least:
                break
            best, least = c, value
        return best

    def span(self) -> float:
        """Returns how long the part of the sum is that matters, about."""
        low, high = -self._tail(0.0, -1), self._tail(0.0, 1)
        reach = sum(count * float(law.losses[-1] - law.losses[0]) for law, count in self.parts)
        return min(high - low, reach)

    def table(self, c: float) -> tuple[Longs, Longs, Longs, Long]:
        """Returns losses, suffix sums of p and of p e^{−l} from each on, and the error in units of e^{K − cε}."""
        if c not in self._tables:
            self._tables[c] = self._made(c)
        return self._tables[c]

    def _made(self, c: float) -> tuple[Longs, Longs, Longs, Long]:
        start = sum((count * law.base for law, count in self.parts), Long(0))
        longest = sum(count * (len(law.masses) - 1) for law, count in self.parts) + 1
        first, size = 0, longest
        wrapped = Long(0)
        if longest > 4096:
            low, high = -self._tail(c, -1), self._tail(c, 1)
            first = max(0, int(np.floor((low - start) / self.step)))
            last = min(longest - 1, int(np.ceil((high - start) / self.step)))
            size = last - first + 1
            wrapped = 3 * np.exp(Long(-_TAIL))
        size = scipy.fft.next_fast_len(max(size, 2), real=True)
        total: Any = None
        most = sum((count for _, count in self.parts), 0)
        logs = Long(0)
        for law, count in self.parts:
            k = Long(law.cumulant(c))
            logs += count * k
            with np.errstate(divide="ignore"):
                tilted = np.exp(np.log(law.masses) + Long(c) * law.losses - k)
            folded = np.zeros(-(-len(tilted) // size) * size, dtype=Long)
            folded[: len(tilted)] = tilted
            spectrum = scipy.fft.rfft(folded.reshape(-1, size).sum(axis=0)) ** count
            total = spectrum if total is None else total * spectrum
        sums = np.roll(scipy.fft.irfft(total, size), -(first % size))
        losses = start + self.step * (first + np.arange(size, dtype=Long))
        noise = ROUNDING * (10 * np.log2(size) + 4 * most)  # of one cell, the tilted masses' sum being 1
        with np.errstate(over="ignore"):
            p = np.maximum(sums, 0) * np.exp(np.minimum(logs - Long(c) * losses, Long(11000)))
        from_here = np.cumsum(p[::-1])[::-1]
        under_q = np.cumsum((p * np.exp(np.minimum(-losses, Long(300))))[::-1])[::-1]
        error = wrapped + noise * (1 / (c * self.step) + 1 if c > 0 else size)
        return losses, from_here, under_q, error

    def deltas(self, epsilons: Longs, c: float) -> tuple[Longs, Longs]:
        """Returns δ(ε) without the mass at ∞ at every ε, and a bound on its error, by the table of one tilt."""
        losses, p, q, error = self.table(c)
        j = np.searchsorted(losses, epsilons, side="right")
        p, q = np.append(p, Long(0))[j], np.append(q, Long(0))[j]
        lift = np.exp(np.minimum(epsilons, Long(11000)))
        scale = np.exp(np.minimum(Long(self.cumulant(c)) - Long(c) * epsilons, Long(11000)))
        far = epsilons > 11000  # e^ε leaves these floats' range too
        values = np.where(far, 0, np.maximum(p - lift * q, 0))
        return values, np.where(far, p, 64 * ROUNDING * (p + lift * q)) + error * scale
