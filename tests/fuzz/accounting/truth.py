"""Two bounds on the true curve of a job: the largest over all that its neighbours may do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from .kinds import KINDS
from .normal import Long
from .parts import Part
from .renyi import Renyi
from .truths import DIRECTIONS, Composition
from .worlds import LEVELS, Rho, World

_MOST_WORLDS: Final = 24
_SECTIONS: Final = 45  # golden ones: beside a kink a small power is off by as much as ε is
_MOST_LATTICES: Final = 4  # worlds that are looked at where each needs a lattice


@dataclass(eq=False)
class Judge:
    """The true curve of a job, between two bounds.

    Attributes:
        parts: The job's events.
        finest: How many levels of lattices are used.
        bounded: Whether the upper bound is one: all ways of the neighbours were looked at.
    """

    parts: Sequence[Part]
    finest: int = len(LEVELS)
    bounded: bool = field(init=False, default=True)
    documented: str = field(init=False, default="")

    def __post_init__(self) -> None:
        truths = [KINDS[part.kind].truth(part.parameters, part.count) for part in self.parts]
        self.documented = "; ".join(sorted({t.documented for t in truths if t.documented}))
        self.worlds: list[World] = []
        self.bounds_: list[World | Renyi] = []
        seen: set[str] = set()
        for direction in DIRECTIONS:
            ways, all_of_them = _chosen([t.ways[direction] for t in truths])
            self.bounded &= all_of_them
            for way in ways:
                if (name := _name(way)) not in seen:
                    seen.add(name)
                    self.worlds.append(World(way))
        if any(t.bound for t in truths):
            self.bounded, known = True, set()
            for direction in DIRECTIONS:
                ways, all_of_them = _chosen([(t.bound or t.ways)[direction] for t in truths])
                self.bounded &= all_of_them
                for way in ways:
                    if _name(way) not in known:
                        known.add(_name(way))
                        self.bounds_.append(Renyi(way) if any(isinstance(law, Rho) for law, _ in way) else World(way))
        else:
            self.bounds_ = self.worlds
        self.bounded &= all(t.bounded for t in truths)
        if len(self.worlds) > _MOST_LATTICES and not all(world.exact for world in self.worlds):
            chosen = np.linspace(0, len(self.worlds) - 1, _MOST_LATTICES).astype(int)
            self.bounded &= self.bounds_ is not self.worlds
            self.worlds = [self.worlds[int(i)] for i in chosen]
            self.bounds_ = self.bounds_ if self.bounded else self.worlds

    def least(self, epsilon: float | Long, level: int = 0) -> Long:
        """Returns a lower bound on δ(ε)."""
        return self._largest(self.worlds, epsilon, level, 0)

    def most(self, epsilon: float | Long, level: int = 0) -> Long:
        """Returns an upper bound on δ(ε)."""
        return self._largest(self.bounds_, epsilon, level, 1)

    @staticmethod
    def _largest(worlds: Sequence[World | Renyi], epsilon: float | Long, level: int, which: int) -> Long:
        with np.errstate(all="ignore"):  # what overflows is an error bound; what is no number is refused
            found = [world.bounds(epsilon, level)[which] for world in worlds]
        assert not any(np.isnan(x) for x in found), (worlds, epsilon)
        return max(found)

    def power(self, rate: float) -> tuple[float, float]:
        """Returns the largest power of a test of this level, by the lower and by the upper bound.

        Of one pair it is the least of δ(ε) + e^ε x over all real ε, a convex function of e^ε: golden section on the
        lower bound; the upper bound holds at any ε, so at that one too.
        """
        found = [self._power(world, rate) for world in self.worlds]
        if self.bounds_ is self.worlds:
            return min(max(low for low, _ in found), 1.0), min(max(high for _, high in found), 1.0)
        above = [self._power(world, rate) for world in self.bounds_]
        return min(max(low for low, _ in found), 1.0), min(max(high for _, high in above), 1.0)

    def _power(self, world: World | Renyi, rate: float) -> tuple[float, float]:
        def total(epsilon: float | Long, which: int = 0) -> float:
            return float(self._largest([world], epsilon, 0, which) + np.exp(Long(epsilon)) * Long(rate))

        far = np.geomspace(1e-13, 45, 24)
        points = np.concatenate([-far[::-1], [0.0], far[far < -np.log(rate)], [-np.log(rate)]])  # beyond, e^ε x > 1
        values = [total(float(e)) for e in points]
        best = int(np.argmin(values))
        low, high = float(points[max(best - 1, 0)]), float(points[min(best + 1, len(points) - 1)])
        kinks = [] if isinstance(world, Renyi) else world.kinks(low, high)
        for _ in range(_SECTIONS):
            first, second = high - (high - low) * 0.6180339887, low + (high - low) * 0.6180339887
            if total(first) < total(second):
                high = second
            else:
                low = first
        tried: list[float | Long] = [
            *map(float, points),
            *sorted(kinks, key=lambda e: abs(e - low))[:40],
            (low + high) / 2,
        ]
        values += [total(e) for e in tried[len(points) :]]
        best = int(np.argmin(values))
        return values[best], total(tried[best], 1)

    @property
    def levels(self) -> int:
        """Returns how many levels of lattices there are: one where none is needed."""
        return 1 if all(isinstance(w, World) and w.exact for w in (*self.worlds, *self.bounds_)) else self.finest

    def least_epsilon(self, delta: float, level: int = 0) -> float:
        """Returns the ε at which the lower bound is δ, by bisection; for reports."""
        low, high = Long(0), Long(1)
        if self.least(low, level) <= delta:
            return 0.0
        while self.least(high, level) > delta:
            low, high = high, 4 * high
            if high > 1e9:
                return float("inf")
        for _ in range(36):
            middle = (low + high) / 2 if low == 0 or high / low < 4 else np.sqrt(low * high)
            low, high = (middle, high) if self.least(middle, level) > delta else (low, middle)
        return float(low)


def _chosen(ways: Sequence[list[Composition]]) -> tuple[list[Composition], bool]:
    """Returns compositions of one way each, all of them where they are few, else some."""
    number = int(np.prod([len(w) for w in ways]))
    everything = itertools.product(*ways)
    if number <= _MOST_WORLDS:
        return [[part for way in chosen for part in way] for chosen in everything], True
    rng = np.random.default_rng(number)
    picked = [
        [w[int(i)] for w, i in zip(ways, rng.integers(0, [len(w) for w in ways]), strict=True)]
        for _ in range(_MOST_WORLDS)
    ]
    picked += [[w[0] for w in ways], [w[-1] for w in ways]]
    return [[part for way in chosen for part in way] for chosen in picked], False


def _name(way: Composition) -> str:
    return repr([(repr(law), count) for law, count in way])
