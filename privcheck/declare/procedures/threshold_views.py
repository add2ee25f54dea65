"""What is looked at of a sparse vector's answers: a code for what was seen, and the exact law of the codes."""

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
    """What is looked at of the answers."""

    @property
    def words(self) -> str:
        """Returns it in words."""
        ...

    @property
    def codes(self) -> int:
        """Returns how many codes there are, from 0 on."""
        ...

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Returns (runs,) what was seen of the answers of `Comparisons.run`."""
        ...

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Returns ln P of every code that may be seen."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsSeen:
    """How many of the queries of either kind are below and above: sufficient, as the kinds' queries are alike.

    Attributes:
        lifted: Of the first kind, asked first.
        lowered: Of the second.
        positives: After how many answers above it stops; None where it never does.
    """

    lifted: int
    lowered: int
    positives: int | None

    @property
    def words(self) -> str:
        """Returns it in words."""
        return "how many of either kind are below and above"

    @property
    def codes(self) -> int:
        """Returns the product of the ranges."""
        size = (self.lifted + 1) * (self.lowered + 1)
        return size * size

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Returns the four counts as one number."""
        first, second = answers[:, : self.lifted], answers[:, self.lifted :]
        return self._code(*(count.sum(axis=1) for one in (first, second) for count in (one == -np.inf, one > -np.inf)))

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Returns one integral for every four counts, times how many patterns have them."""
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
        """Returns all four counts, each with how many orders of the answers have them; the last is above at the end."""
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
    """Which queries are the first, the second, … above.

    Attributes:
        queries: How many.
        times: How many answers above are looked at.
        redrawn: Whether the threshold is drawn afresh after each; else nothing but it is noisy.
    """

    queries: int
    times: int
    redrawn: bool

    @property
    def words(self) -> str:
        """Returns it in words."""
        return (
            "which query is the first above" if self.times == 1 else f"which queries are the first {self.times} above"
        )

    @property
    def codes(self) -> int:
        """Returns the number of answers, none being one of them, to the power of the times."""
        return int((self.queries + 1) ** self.times)

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Returns the places, 1 being the first and 0 none, as one number."""
        code = np.zeros(answers.shape[0], dtype=np.int64)
        above = answers > -np.inf
        rank = np.cumsum(above, axis=1)
        for time in range(self.times):
            here = above & (rank == time + 1)
            code = code * (self.queries + 1) + np.where(here.any(axis=1), here.argmax(axis=1) + 1, 0)
        return code

    def log_masses(self, threshold: NoisyThreshold, queries: Array) -> dict[int, float]:
        """Returns the product over the thresholds; of one without noise on the queries an interval of it."""
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
    """About which values are the first to leave, and how many queries are below until then.

    Attributes:
        queries: How many, all of one value.
        times: How many values are looked at, 1 or 2.
        scale: Of the queries' noise, the unit of what is told of the values.
    """

    queries: int
    times: int
    scale: float

    @property
    def words(self) -> str:
        """Returns it in words."""
        edges = ", ".join(f"{edge * self.scale:.4g}" for edge in _EDGES[1:-1])
        first = "value is" if self.times == 1 else f"{self.times} values are"
        return f"between which of {edges} the first {first}, and how many queries are below until then"

    @property
    def codes(self) -> int:
        """Returns how many may be below, times the intervals or none of each value."""
        return (self.queries + 1) * int(len(_EDGES) ** self.times)

    def code(self, answers: Array) -> NDArray[np.int64]:
        """Returns how many are below, and the intervals from 1 on, as one number."""
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
        """Returns one integral for every number below and set of intervals, times how many orders have them."""
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
