"""Observations of a sparse vector's answers: a code for each observation, and the exact law of the codes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array
from privcheck.declare.procedures.threshold import NoisyThreshold

_EDGES: Final = (-math.inf, -1.0, 0.0, 1.0, 2.0, 4.0, math.inf)  # in scales of the queries' noise


class Seen(Protocol):
    """An observation of the answers."""

    @property
    def words(self) -> str:
        """Description of the observation."""
        ...

    @property
    def codes(self) -> int:
        """Number of codes, which start at 0."""
        ...

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Code of the observation, (runs,), from the answers of `Comparisons.run`."""
        ...

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Compute ln P of every possible code."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsSeen:
    """Numbers of queries of either kind below and above: sufficient, as queries of one kind are alike.

    Attributes:
        lifted: Number of queries of the first kind, asked first.
        lowered: Number of queries of the second kind.
        positives: Number of answers "above" after which it stops; None if it never stops.
    """

    lifted: int
    lowered: int
    positives: int | None

    @property
    def words(self) -> str:
        """Description of the observation."""
        return "the numbers of either kind below and above"

    @property
    def codes(self) -> int:
        """Product of the ranges."""
        size = (self.lifted + 1) * (self.lowered + 1)
        return size * size

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Encode the four counts as one number."""
        first, second = answers[:, : self.lifted], answers[:, self.lifted :]
        return self._code(*(count.sum(axis=1) for one in (first, second) for count in (one == -np.inf, one > -np.inf)))

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Compute ln P of every four counts: one integral each, times the number of patterns with these counts."""
        levels = (float(queries[0]), float(queries[-1]))
        patterns = [*self._patterns()]
        counts = np.array([counts for counts, _ in patterns])
        logs = threshold.log_counts(levels, counts) + np.log([float(ways) for _, ways in patterns])
        return dict(zip(self._code(*counts.T).tolist(), logs.tolist(), strict=True))

    def _code(self, *counts: NDArray[np.int64]) -> NDArray[np.int64]:
        size, more = self.lifted + 1, self.lowered + 1
        one, two, three, four = counts
        code: NDArray[np.int64] = ((one * size + two) * more + three) * more + four
        return code

    def _patterns(self) -> list[tuple[tuple[int, int, int, int], int]]:
        """All four counts, each with the number of orders of answers that have them; a stop ends with "above"."""
        a, b = self.lifted, self.lowered
        most = a + b + 1 if self.positives is None else self.positives
        patterns = [((asked - most, most, 0, 0), math.comb(asked - 1, most - 1)) for asked in range(most, a + 1)]
        for up in range(min(most, a + 1)):
            ways, left = math.comb(a, up), most - up
            patterns += [
                ((a - up, up, asked - left, left), ways * math.comb(asked - 1, left - 1))
                for asked in range(left, b + 1)
            ]
            patterns += [((a - up, up, b - more, more), ways * math.comb(b, more)) for more in range(min(left, b + 1))]
        return patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAboveSeen:
    """Indices of the first, the second, … query above.

    Attributes:
        queries: Number of queries.
        times: Number of answers "above" that are observed.
        redrawn: Whether the threshold's noise is drawn afresh after each; if not, only the threshold is noisy.
    """

    queries: int
    times: int
    redrawn: bool

    @property
    def words(self) -> str:
        """Description of the observation."""
        return "the first query above" if self.times == 1 else f"the first {self.times} queries above"

    @property
    def codes(self) -> int:
        """Number of queries plus one for "none", to the power of `times`."""
        return int((self.queries + 1) ** self.times)

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Encode the positions, 1 for the first query and 0 for none, as one number."""
        code = np.zeros(answers.shape[0], dtype=np.int64)
        above = answers > -np.inf
        rank = np.cumsum(above, axis=1)
        for time in range(self.times):
            here = above & (rank == time + 1)
            code = code * (self.queries + 1) + np.where(here.any(axis=1), here.argmax(axis=1) + 1, 0)
        return code

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Compute ln P of the positions: a product over redrawn thresholds, or an interval of one threshold."""
        levels = queries.tolist()
        first, none = threshold.log_runs(levels)
        masses: dict[int, float] = {}
        for number in range(self.times + 1):
            for places in itertools.combinations(range(self.queries), number):
                if self.redrawn:
                    starts = (0, *(place + 1 for place in places))
                    log = sum(float(first[i, j]) for i, j in zip(starts, places, strict=False))
                    log += float(none[starts[-1]]) if number < self.times else 0.0
                else:
                    until = places[-1] + 1 if number == self.times else self.queries
                    above = min((levels[place] for place in places), default=math.inf)
                    below = [levels[i] for i in range(until) if i not in places]
                    log = threshold.log_between(below, above)
                code = 0
                for place in (*places, *(-1,) * (self.times - number)):
                    code = code * (self.queries + 1) + place + 1
                masses[code] = log
        return masses


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesSeen:
    """Approximate first released values, and the number of queries below before them.

    Attributes:
        queries: Number of queries, all of one value.
        times: Number of observed values, 1 or 2.
        scale: Scale of the queries' noise, the unit of the observed intervals.
    """

    queries: int
    times: int
    scale: float

    @property
    def words(self) -> str:
        """Description of the observation."""
        edges = ", ".join(f"{edge * self.scale:.4g}" for edge in _EDGES[1:-1])
        first = "value is" if self.times == 1 else f"{self.times} values are"
        return f"between which of {edges} the first {first}, and how many queries are below until then"

    @property
    def codes(self) -> int:
        """Range of the number below, times the intervals or none for each value."""
        return (self.queries + 1) * int(len(_EDGES) ** self.times)

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Encode the number below and the intervals, from 1 on, as one number."""
        above = answers > -np.inf
        rank = np.cumsum(above, axis=1)
        code: NDArray[np.int64] = ((answers == -np.inf) & (rank < self.times)).sum(axis=1)
        for time in range(self.times):
            here = above & (rank == time + 1)
            value = np.where(here, answers, 0.0).sum(axis=1)
            interval = np.searchsorted(np.array(_EDGES[1:-1]) * self.scale, value, side="left") + 1
            code = code * len(_EDGES) + np.where(here.any(axis=1), interval, 0)
        return code

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Compute ln P of every number below and list of intervals: one integral each, times the number of orders."""
        m, intervals = self.queries, range(1, len(_EDGES))
        patterns: list[tuple[int, tuple[int, ...], int]] = []  # below, intervals of the values, orders
        for number in range(self.times + 1):
            ended = number == self.times
            for values in itertools.product(intervals, repeat=number):
                for below in range(m - number + 1) if ended else [m - number]:
                    ways = math.comb(below + number - 1, max(number - 1, 0)) if ended else math.comb(m, number)
                    patterns.append((below, values, ways))
        counts = np.array([(below, *(values.count(i) for i in intervals)) for below, values, _ in patterns])
        edges = [edge * self.scale for edge in _EDGES]
        logs = threshold.log_values(float(queries[0]), edges, counts)
        masses = {}
        for (below, values, ways), log in zip(patterns, logs.tolist(), strict=True):
            code = below
            for value in (*values, *(0,) * (self.times - len(values))):
                code = code * len(_EDGES) + value
            masses[code] = log + math.log(ways)
        return masses
