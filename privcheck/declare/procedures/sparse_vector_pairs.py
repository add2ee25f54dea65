"""Neighbours that a sparse vector hides badly: exact laws of the observed answers, and runs of the algorithm itself.

The pairs have queries just above the threshold that one user raises, and queries just below it that the user lowers,
with the least likely answers: "below" for the former, "above" for the latter. All other queries are far below the
threshold and answered "below" in both. The answers are observed as codes with an exact law (`AnswerCodes`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, KnownPair, Outcomes
from privcheck.declare.procedures.threshold import NoisyThreshold

_LOOKED_AT: Final = 16  # queries near the threshold in pairs that are run
_RUNS_SEEN: Final = 2  # thresholds that are redrawn of which the answers are looked at
_VALUES_SEEN: Final = 2  # values that leave that are looked at
_LEVELS: Final = ((0.0, 0.0), (-1.0, 0.0), (-0.5, 0.5))  # in scales: of the queries that go up, and down
_FAR: Final = 200.0  # scales beyond the threshold, where tails are exponential and an answer all but impossible


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """Parameters of the algorithm as numbers.

    Attributes:
        threshold_scale: Laplace scale of the noise on the threshold.
        query_scale: Laplace scale of the noise on every query; 0 for queries without noise.
        queries: Largest number of queries.
        positives: Number of answers "above" after which it stops; None if it never stops.
        redrawn: Whether the threshold's noise is drawn afresh after each answer "above".
        values: Whether the noisy values above the threshold are released.
        fresh_scale: Laplace scale of the fresh noise on values above the threshold; 0 if none are released.
    """

    threshold_scale: float
    query_scale: float
    queries: int
    positives: int | None
    redrawn: bool
    values: bool
    fresh_scale: float = 0.0

    @property
    def threshold(self) -> NoisyThreshold:
        """The noisy threshold."""
        return NoisyThreshold(threshold_scale=self.threshold_scale, query_scale=self.query_scale)

    def run(self, rng: np.random.Generator, queries: Array) -> Array:
        """Draw the answers of runs against a threshold at 0.

        Args:
            rng: Source of randomness.
            queries: (runs, m) exact values of the queries.

        Returns:
            (runs, m) answers: −∞ for "below", ∞ or the noisy value for "above", NaN after the end.
        """
        runs, size = queries.shape
        answers = np.empty(queries.shape)
        threshold = rng.laplace(0.0, self.threshold_scale, (runs,))
        count = np.zeros(runs, dtype=np.int64)
        for i in range(size):
            noisy = queries[:, i].copy()
            if self.query_scale:
                noisy += rng.laplace(0.0, self.query_scale, runs)
            going = np.full(runs, fill_value=True) if self.positives is None else count < self.positives
            above = going & (noisy >= threshold)
            answers[:, i] = np.where(going, -np.inf, np.nan)
            answers[above, i] = noisy[above] if self.values else np.inf
            count += above
            if self.redrawn:
                threshold = np.where(above, rng.laplace(0.0, self.threshold_scale, (runs,)), threshold)
        return answers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseVectorRuns:
    """Runs of the algorithm on two neighbours, scored by the ratio of the probabilities of the observation.

    Attributes:
        of: The algorithm.
        queries: (2, m) queries on D and on D′.
        seen: The observation.
        log_ratios: Log-likelihood ratios by code of the observation.
    """

    of: Comparisons
    queries: Array
    seen: AnswerCodes
    log_ratios: Array

    @property
    def numbers(self) -> int:
        """One per query and one for the threshold."""
        return int(self.queries.shape[1]) + 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        answers = self.of.run(rng, self.queries[np.where(on_first, 0, 1)])
        scores: Array = self.log_ratios[self.seen.code(answers)]
        return scores


def known_pairs(of: Comparisons, moved: float, *, monotone: bool) -> tuple[KnownPair, ...]:
    """Pairs for an algorithm with queries that one user changes by `moved` each.

    Every pair is listed both ways, so that the queries of monotone variants rise and fall in turn, in all of them:
    several such procedures are given the same pair by its place.

    Args:
        of: The algorithm.
        moved: Δ.
        monotone: Whether all queries change in one direction.
    """
    if not of.query_scale:
        return tuple(_order_shown(of, moved, monotone=monotone))
    if of.values:
        return (*_value_shown(of, moved), *_values_run(of, moved))
    return (*_all_odds(of, moved, monotone=monotone), *_answers_run(of, moved, monotone=monotone))


def _order_shown(of: Comparisons, moved: float, *, monotone: bool) -> Iterator[KnownPair]:
    """Yield a pair where only one side can answer "below, above": one threshold, no other noise."""
    size = min(of.queries, 2)
    first, second = (0.0, moved), ((moved, moved) if monotone else (moved, 0.0))
    yield from _both_ways(
        of, np.array([first[:size], second[:size]]), _seen_of(of, np.ones(size, dtype=np.bool_), size)
    )


def _answers_run(of: Comparisons, moved: float, *, monotone: bool) -> Iterator[KnownPair]:
    """Yield queries near the threshold: half increase, half decrease; if it is redrawn, each run's last decreases."""
    runs = min(of.positives or 1, _RUNS_SEEN) if of.redrawn else 1
    size = max(1, min(of.queries, _LOOKED_AT) // runs)
    up = max(1, size - 1) if of.redrawn else (size + 1) // 2
    lifted = np.tile(np.arange(size) < up, runs)[: of.queries]
    for level_up, level_down in _LEVELS:
        first = np.where(lifted, level_up, level_down) * of.query_scale
        second = first + np.where(lifted, moved, 0.0 if monotone else -moved)
        yield from _both_ways(of, np.array([first, second]), _seen_of(of, lifted, runs))


def _seen_of(of: Comparisons, lifted: NDArray[np.bool_], runs: int) -> AnswerCodes:
    if of.redrawn or not of.query_scale:
        return FirstAboveSeen(queries=lifted.size, times=min(runs, of.positives or runs), redrawn=of.redrawn)
    return CountsSeen(lifted=int(lifted.sum()), lowered=int((~lifted).sum()), positives=of.positives)


def _values_run(of: Comparisons, moved: float) -> Iterator[KnownPair]:
    """Yield queries near the threshold that all increase: number below before values appear, and the values."""
    size = min(of.queries, _LOOKED_AT)
    times = 1 if of.redrawn else min(size, of.positives or _VALUES_SEEN, _VALUES_SEEN)
    seen = ValuesSeen(queries=size, times=times, scale=of.query_scale)
    for level in (0.0, -1.0):
        first = np.full(size, level * of.query_scale)
        yield from _both_ways(of, np.array([first, first + moved]), seen)


def _both_ways(of: Comparisons, queries: Array, seen: AnswerCodes) -> Iterator[KnownPair]:
    logs = [seen.log_masses(of.threshold, one) for one in queries]
    codes = np.array(sorted(logs[0]))
    p, q = (_normalise(np.array([law[code] for code in codes.tolist()])) for law in logs)
    for i, j, log_p, log_q in ((0, 1, p, q), (1, 0, q, p)):
        ratios = np.zeros(seen.codes)
        with np.errstate(invalid="ignore"):
            ratios[codes] = np.nan_to_num(log_p - log_q, nan=0.0, posinf=math.inf, neginf=-math.inf)
        yield KnownPair(
            words=f"in D the queries are {_tell(queries[i])} above the threshold; in D′ {_tell(queries[j])}"
            f"{_tell_rest(of, queries.shape[1])}; seen: {seen.words}",
            data=(_tell(queries[i]), _tell(queries[j])),
            outcomes=Outcomes(log_p=log_p, log_q=log_q),
            sampler=SparseVectorRuns(of=of, queries=queries[[i, j]], seen=seen, log_ratios=ratios),
        )


def _all_odds(of: Comparisons, moved: float, *, monotone: bool) -> Iterator[KnownPair]:
    """Yield a pair with one pattern of answers: queries far above answered "below", then far below answered "above".

    Its loss attains the smaller price in the limit of distant queries: if the threshold stays between them every
    changed query loses Δ/b₂, and if it is driven out the loss is Δ/b₁ plus that of the queries answered "above".
    """
    crossings = _choose_crossings(of, monotone=monotone)
    runs = max(1, crossings) if of.redrawn else 1
    crossings //= runs
    below = of.queries // runs - crossings
    # a value with fresh noise in the tail away from where the user moves it loses Δ/b₃ more
    lost = runs * crossings * moved / of.fresh_scale if of.fresh_scale and not monotone else 0.0
    values = runs * crossings * math.log(2) if lost else 0.0
    far, down = _FAR * max(of.threshold_scale, of.query_scale), 0.0 if monotone else moved
    logs = [
        runs * of.threshold.log_pattern([(far + up, below, 0), (-far - low, 0, crossings)]) - values - away
        for up, low, away in ((0.0, 0.0, 0.0), (moved, down, lost))
    ]
    again = f", {runs} times over" if runs > 1 else ""
    values_seen = ", each with a value of at least the higher of its two queries" if lost else ""
    told = [f"{below} × {far + up:.6g}, then {crossings} × {-far - low:.6g}" for up, low in ((0, 0), (moved, down))]
    yield from _one_event(
        told, logs, again, f"the answers {below} × below, then {crossings} × above{again}{values_seen}"
    )


def _choose_crossings(of: Comparisons, *, monotone: bool) -> int:
    """Number of answers "above" with the largest loss: half, or, if only those below change, where both losses tie.

    With n answers "above" the two losses are (m − n)Δ/b₂ and Δ/b₁ + nΔ/b₂.
    """
    most = min(of.positives or of.queries, of.queries)
    if of.redrawn or not monotone:
        return max(1, min(most, of.queries // 2))
    apart = of.query_scale / of.threshold_scale
    tie = min(max((of.queries - apart) / 2, 0.0), float(most))
    return max((math.floor(tie), math.ceil(tie)), key=lambda n: min(of.queries - n, apart + n))


def _value_shown(of: Comparisons, moved: float) -> Iterator[KnownPair]:
    """Yield a pair with one pattern: all queries but the last "below", then a value of at most the threshold.

    In D all queries are 0, in D′ all are Δ.

    Lemma value-shown: If all but the last of m queries are below, and a value of at most the threshold is shown, all
    lose Δ/b₂: P = 2^{−m−1}/b₁ · (1/(1/b₁ + (m − 1)/b₂) − 1/(1/b₁ + m/b₂)), and P′ = P·e^{−mΔ/b₂}. Proof: the value
    reveals that the noisy threshold z is below it, thus below 0, where every query is below z with probability ½e^{(z −
    q)/b₂}.
    """
    m, one, rate = of.queries, 1 / of.query_scale, 1 / of.threshold_scale
    log_p = math.log(rate * one) - (m + 1) * math.log(2) - math.log(rate + (m - 1) * one) - math.log(rate + m * one)
    told = [f"{m} × 0", f"{m} × {moved:.6g}"]
    seen = f"the answers {m - 1} × below, then a value of at most the threshold"
    yield from _one_event(told, [log_p, log_p - m * moved * one], "", seen)


def _one_event(told: list[str], logs: list[float], again: str, seen: str) -> Iterator[KnownPair]:
    """Yield a pair distinguished by one event, both ways."""
    laws = [np.array([one, math.log1p(-math.exp(one))]) for one in logs]
    for i, j in ((0, 1), (1, 0)):
        yield KnownPair(
            words=f"in D the queries are {told[i]} above the threshold{again}, in D′ {told[j]}{again}; distinguished "
            f"by {seen}, of probability e^{logs[i]:.6g} in D and e^{logs[j]:.6g} in D′",
            data=(told[i], told[j]),
            outcomes=Outcomes(log_p=laws[i], log_q=laws[j]),
        )


def _normalise(logs: Array) -> Array:
    """Normalise logarithms of probabilities so that they add up to 1, up to rounding."""
    result: Array = logs - math.log(float(np.exp(logs).sum()))
    return result


def _tell(queries: Array) -> str:
    """Values of the queries as text, run-length encoded."""
    parts: list[tuple[float, int]] = []
    for value in queries.tolist():
        again = parts and parts[-1][0] == value
        parts[-1:] = [(value, parts[-1][1] + 1)] if again else [*parts[-1:], (value, 1)]
    return ", ".join(f"{times} × {value:.6g}" if times > 1 else f"{value:.6g}" for value, times in parts)


def _tell_rest(of: Comparisons, asked: int) -> str:
    rest = of.queries - asked
    return f"; the other {rest} are far below it" if rest else ""


_EDGES: Final = (-math.inf, -1.0, 0.0, 1.0, 2.0, 4.0, math.inf)  # in scales of the queries' noise


class CountsLaw(Protocol):
    """Law of the answers to queries of two values, given a noisy threshold of any kind."""

    def log_counts(self, levels: tuple[float, float], counts: NDArray[np.int64]) -> Array:
        """Compute ln P of patterns of answers; see `NoisyThreshold.log_counts`."""
        ...


class AnswerCodes(Protocol):
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

    def log_masses(self, threshold: CountsLaw, queries: Array) -> dict[int, float]:
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
