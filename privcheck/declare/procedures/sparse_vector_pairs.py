"""Neighbours that a sparse vector hides badly: exact laws of the observed answers, and runs of the algorithm itself.

The pairs have queries just above the threshold that one user raises, and queries just below it that the user lowers,
with the least likely answers: "below" for the former, "above" for the latter. All other queries are far below the
threshold and answered "below" in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, KnownPair, Outcomes
from privcheck.declare.procedures.threshold import NoisyThreshold
from privcheck.declare.procedures.threshold_views import CountsSeen, FirstAboveSeen, Seen, ValuesSeen

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
    """

    threshold_scale: float
    query_scale: float
    queries: int
    positives: int | None
    redrawn: bool
    values: bool

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
    seen: Seen
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

    Args:
        of: The algorithm.
        moved: Δ.
        monotone: Whether all queries change in one direction.
    """
    if not of.query_scale:
        return tuple(_order_shown(of, moved, monotone=monotone))
    if of.values:
        return (_value_shown(of, moved), *_values_run(of, moved))
    return (_all_odds(of, moved, monotone=monotone), *_answers_run(of, moved, monotone=monotone))


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


def _seen_of(of: Comparisons, lifted: NDArray[np.bool_], runs: int) -> Seen:
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


def _both_ways(of: Comparisons, queries: Array, seen: Seen) -> Iterator[KnownPair]:
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


def _all_odds(of: Comparisons, moved: float, *, monotone: bool) -> KnownPair:
    """Pair with one pattern of answers: queries far above answered "below", then queries far below answered "above".

    Its loss attains the smaller price in the limit of distant queries: if the threshold stays between them every
    changed query loses Δ/b₂, and if it is driven out the loss is Δ/b₁ plus that of the queries answered "above".
    """
    crossings = _choose_crossings(of, monotone=monotone)
    runs = max(1, crossings) if of.redrawn else 1
    crossings //= runs
    below = of.queries // runs - crossings
    far, down = _FAR * max(of.threshold_scale, of.query_scale), 0.0 if monotone else moved
    logs = [
        runs * of.threshold.log_pattern([(far + up, below, 0), (-far - low, 0, crossings)])
        for up, low in ((0.0, 0.0), (moved, down))
    ]
    again = f", {runs} times over" if runs > 1 else ""
    told = [f"{below} × {far + up:.6g}, then {crossings} × {-far - low:.6g}" for up, low in ((0, 0), (moved, down))]
    return _one_event(
        f"in D the queries are {told[0]} above the threshold{again}, in D′ {told[1]}{again}; distinguished by the "
        f"answers {below} × below, then {crossings} × above{again}",
        (told[0], told[1]),
        logs,
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


def _value_shown(of: Comparisons, moved: float) -> KnownPair:
    """Pair with one pattern: all queries but the last "below", then a value of at most the threshold.

    In D all queries are 0, in D′ all are Δ. The value reveals that the noisy threshold z is below it, thus below 0,
    where every query is below z with probability ½e^{(z − q)/b₂}: all m of them lose Δ/b₂, for every z. In closed form
    P = 2^{−m−1}/b₁ · (1/(1/b₁ + (m − 1)/b₂) − 1/(1/b₁ + m/b₂)), and P′ = P·e^{−mΔ/b₂}.
    """
    m, one, rate = of.queries, 1 / of.query_scale, 1 / of.threshold_scale
    log_p = math.log(rate * one) - (m + 1) * math.log(2) - math.log(rate + (m - 1) * one) - math.log(rate + m * one)
    told = (f"{m} × 0", f"{m} × {moved:.6g}")
    return _one_event(
        f"in D the queries are {told[0]} above the threshold, in D′ {told[1]}; distinguished by the answers {m - 1} × "
        "below, then a value of at most the threshold",
        told,
        [log_p, log_p - m * moved * one],
    )


def _one_event(words: str, data: tuple[str, str], logs: list[float]) -> KnownPair:
    laws = [np.array([one, math.log1p(-math.exp(one))]) for one in logs]
    shown = f"{words}, of probability e^{logs[0]:.6g} in D and e^{logs[1]:.6g} in D′"
    return KnownPair(words=shown, data=data, outcomes=Outcomes(log_p=laws[0], log_q=laws[1]))


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
