"""The sparse vector technique with Gaussian noise: which of many queries exceed a noisy threshold.

With Gaussian noise the ratio of two tails has no bound, so that the price depends on the number m of queries: the
theorem and its proof are in `docs/programs.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, moved_by_a_user, set_words
from privcheck.declare.procedures.gaussian_threshold import (
    MOST_EPSILON,
    GaussianThreshold,
    cost_of_all,
    epsilon_at,
    events_of,
    larger_delta,
    log_interval,
    outcomes_of,
)
from privcheck.declare.procedures.sparse_vector_pairs import CountsSeen
from privcheck.declare.relations import Relation
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number, one_of, truth
from privcheck.terms.symbols import Exact, Expr, minimum

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

GaussianAnswers = Literal["above or below", "gaps", "fresh values"]
_THEOREM: Final = "docs/programs.md, lemma gaussian-sparse-vector; or all noisy queries: Gaussian with μ = √m·Δ/s₂"
_MOST_SEEN: Final = 64  # queries near the threshold in pairs
_COUNTED: Final = 12  # of them where several answers above are observed
_GAPS: Final = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  # edges of the cells of a gap, in standard deviations of the queries
_VALUE_CELLS: Final = np.linspace(-4.0, 4.0, 17)  # edges of the cells of a fresh value, in its standard deviations
_TARGETS: Final = (1e-2, 1e-5, 1e-9)  # δ of the upper bound at which pairs are chosen, …
_PART: Final = 0.6  # … at this part of its ε
_COARSE: Final = (-3.0, -1.0, 1.0, 3.0)
_AROUND: Final = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
_STEPS: Final = 8
_HALVINGS: Final = 40
_WORK: Final = 300_000  # nodes times queries of a pair; larger ones are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSparseVector:
    """Queries compared with a noisy threshold, one after the other, until c of them are above; all noise is Gaussian.

    Attributes:
        name: Name, unique in the declaration.
        threshold_std: s₁, standard deviation of the threshold's noise, which is drawn once.
        query_std: s₂, standard deviation of the fresh noise on every query.
        queries: m, largest number of queries; the price grows with it.
        positives: c, number of answers "above" after which it stops.
        answers: Output for a query above the threshold: that it is above, the gap between both noisy numbers, or its
            value with fresh noise.
        value_std: s₃, standard deviation of the fresh noise on a value; None unless values are released.
        sensitivity: Δ, the largest change of one query by one trajectory of a user; all queries may change at once. A
            user with up to m trajectories changes it by m·Δ, which is charged.
        monotone: Whether the queries of two neighbours differ in one direction only.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: `value_std` is missing, or given without fresh values.
    """

    name: str
    threshold_std: Expr
    query_std: Expr
    queries: Expr
    positives: Expr
    answers: GaussianAnswers
    value_std: Expr | None
    sensitivity: Expr
    monotone: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, threshold_std: Exact | Expr, query_std: Exact | Expr, queries: Exact | Expr,
        positives: Exact | Expr, answers: GaussianAnswers = "above or below", value_std: Exact | Expr | None = None,
        sensitivity: Exact | Expr = 1, monotone: bool = False, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        one_of("answers, of GaussianSparseVector", answers, get_args(GaussianAnswers))
        truth("monotone, of GaussianSparseVector", monotone)
        if (value_std is None) != (answers != "fresh values"):
            message = f"sparse vector {name!r}: expected value_std with answers='fresh values' and only then"
            raise DeclarationError(f"{message}, got answers={answers!r} and value_std={value_std!r}")
        object.__setattr__(self, "answers", answers)
        object.__setattr__(self, "monotone", monotone)
        numbers = {
            "threshold_std": threshold_std, "query_std": query_std, "queries": queries, "positives": positives,
            "sensitivity": sensitivity,
        }  # fmt: skip
        for key, amount in numbers.items():
            object.__setattr__(self, key, number(f"{key}, of GaussianSparseVector", amount))
        fresh = None if value_std is None else number("value_std, of GaussianSparseVector", value_std)
        object.__setattr__(self, "value_std", fresh)

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output={
                "above or below": "which queries are above a noisy threshold",
                "gaps": "which queries are above a noisy threshold, and by how much",
                "fresh values": "which queries are above a noisy threshold, and their values with fresh noise",
            }[self.answers],
            latex=(
                rf"q_i + \mathcal{{N}}\left(0, ({self.query_std.latex()})^2\right) \ge T + z,\ "
                rf"z \sim \mathcal{{N}}\left(0, ({self.threshold_std.latex()})^2\right)"
            ),
            law="gaussian",
            spread=self.query_std,
            conditions=self._conditions(),
            symbols=frozenset[str]().union(*(one.symbols for one in self._numbers())),
            preconditions=self._preconditions(),
            source=self.source,
        )

    def _words(self) -> str:
        moves = f"each moved by at most {self.sensitivity}" + (", all one way" if self.monotone else "")
        values = "" if self.value_std is None else f" and releases their values with fresh noise of {self.value_std}"
        return (
            f"{self.queries} queries, {moves}, with Gaussian noise of standard deviation {self.query_std} against a "
            f"threshold with Gaussian noise of standard deviation {self.threshold_std}, stops after {self.positives} "
            f"answers above{values}"
        )

    def _preconditions(self) -> tuple[str, ...]:
        one_way = ("between neighbours all queries move one way",) if self.monotone else ()
        return (f"one trajectory of a user moves each query by at most {self.sensitivity}", *one_way)

    def _numbers(self) -> tuple[Expr, ...]:
        fresh = () if self.value_std is None else (self.value_std,)
        return (self.threshold_std, self.query_std, self.queries, self.positives, self.sensitivity, *fresh)

    def _conditions(self) -> tuple[Condition, ...]:
        conditions = [
            Condition(what="the standard deviation of its threshold's noise", of=self.threshold_std, domain="positive"),
            Condition(what="the standard deviation of its queries' noise", of=self.query_std, domain="positive"),
            Condition(what="the number of queries", of=self.queries, domain="count"),
            Condition(what="the number of answers after which it stops", of=self.positives, domain="count"),
            Condition(what="the sensitivity of its queries", of=self.sensitivity, domain="nonnegative"),
        ]
        if self.value_std is not None:
            conditions.append(
                Condition(what="the standard deviation of its values' noise", of=self.value_std, domain="positive")
            )
        return tuple(conditions)

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw of the queries' noise, rounded up."""
        return self.query_std.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> GaussianSparseVector:
        """Copy with `factor` times the standard deviation of all noise."""
        fresh = None if self.value_std is None else self.value_std * factor
        return replace(
            self, threshold_std=self.threshold_std * factor, query_std=self.query_std * factor, value_std=fresh
        )

    def cost(self, relation: Relation) -> Cost:
        """Price as a post-processing of all noisy queries: exact, for every number of answers above.

        The sharper price of the numeric accountant, which has no closed form, is in `events`.
        """
        moved, m = moved_by_a_user(self.sensitivity, relation), self.queries
        squared = m * (moved / self.query_std) ** 2
        if self.value_std is not None:
            squared = squared + minimum(self.positives, m) * (moved / self.value_std) ** 2
        return cost_of_all("queries", m, moved, squared.simplified(), monotone=self.monotone, theorem=_THEOREM)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Curve of lemma `gaussian-sparse-vector`, or of all noisy queries where that is lower, at many ε."""
        return events_of(self._points(relation, values))

    def _points(self, relation: Relation, values: Mapping[str, Fraction]) -> Mapping[float, float]:
        """Points (ε, δ) of the upper bound; empty if no user changes a query."""
        from privcheck.accounting.engine.stopped import sparse_vector_profile

        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="up")
        if moved == 0:
            return {}

        def over(std: Expr) -> float:
            return math.nextafter(moved / std.number(values, rounding="down"), math.inf)

        squared = self.cost(relation).dominating_mu_squared
        assert squared is not None
        return sparse_vector_profile(
            threshold=over(self.threshold_std),
            shift=over(self.query_std) * (1 if self.monotone else 2),
            queries=int(self.queries.number(values)),
            positives=int(self.positives.number(values)),
            values=0.0 if self.value_std is None else over(self.value_std),
            all_noisy=math.nextafter(math.sqrt(squared.number(values, rounding="up")), math.inf),
        )

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Queries near the threshold: one user raises the first and, unless monotone, lowers the others."""
        points = self._points(relation, values)
        if not points:
            return ()
        of = GaussianComparisons(
            threshold_std=self.threshold_std.number(values, rounding="up"),
            query_std=self.query_std.number(values, rounding="up"),
            queries=int(self.queries.number(values)),
            positives=int(self.positives.number(values)),
            answers=self.answers,
            value_std=0.0 if self.value_std is None else self.value_std.number(values, rounding="up"),
        )
        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="down")
        return tuple(_pairs(of, moved, points, monotone=self.monotone))


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianComparisons:
    """Parameters of the algorithm as numbers.

    Attributes:
        threshold_std: s₁.
        query_std: s₂.
        queries: m.
        positives: c.
        answers: What is released for a query above.
        value_std: s₃; 0 unless values are released.
    """

    threshold_std: float
    query_std: float
    queries: int
    positives: int
    answers: GaussianAnswers
    value_std: float

    def run(self, rng: np.random.Generator, queries: Array) -> Array:
        """Draw the answers of runs against a threshold at 0.

        Args:
            rng: Source of randomness.
            queries: (runs, m) exact values of the queries.

        Returns:
            (runs, m) answers: −∞ for "below", for "above" ∞, the gap or the fresh value, NaN after the end.
        """
        threshold = rng.normal(0.0, self.threshold_std, (queries.shape[0], 1))
        gaps = queries + rng.normal(0.0, self.query_std, queries.shape) - threshold
        above = gaps >= 0
        if self.answers == "gaps":
            shown = gaps
        elif self.answers == "fresh values":
            shown = queries + rng.normal(0.0, self.value_std, queries.shape)
        else:
            shown = np.full(queries.shape, np.inf)
        over = np.cumsum(above, axis=1) - above >= self.positives
        return np.where(over, np.nan, np.where(above, shown, -np.inf))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstSeen:
    """Index of the first query above, with the cell of the number that is shown with it.

    Attributes:
        of: The algorithm.
        edges: (k − 1,) inner edges of the cells, in units of the number; for a fresh value relative to the query on D.
    """

    of: GaussianComparisons
    edges: Array

    @property
    def words(self) -> str:
        """Description of the observation."""
        shown = {"above or below": "", "gaps": " and the cell of its gap", "fresh values": " and the cell of its value"}
        return f"the first query above{shown[self.of.answers]}"

    def code(self, answers: Array, centres: Array) -> NDArray[np.int64]:
        """Code of the observation, (runs,): 0 for no query above.

        Args:
            answers: (runs, m) as `GaussianComparisons.run` returns them.
            centres: (m,) queries on D.
        """
        above = answers > -np.inf
        first = above.argmax(axis=1)
        shown = np.take_along_axis(answers, first[:, np.newaxis], axis=1)[:, 0]
        shown = shown - centres[first] if self.of.answers == "fresh values" else shown
        cell = np.searchsorted(self.edges, np.where(np.isfinite(shown), shown, 0.0), side="right")
        code: NDArray[np.int64] = np.where(above.any(axis=1), 1 + first * (self.edges.size + 1) + cell, 0)
        return code

    def log_masses(self, queries: Array, centres: Array) -> Array:
        """Compute ln P of every code for these queries."""
        law = GaussianThreshold(threshold_std=self.of.threshold_std, query_std=self.of.query_std)
        gap = self.of.answers == "gaps"
        logs, none = law.log_first(queries, self.edges if gap else np.zeros(0), gap=gap)
        if self.of.answers == "fresh values":
            ends = np.concatenate([[-np.inf], self.edges, [np.inf]]) / self.of.value_std
            away = ((queries - centres) / self.of.value_std)[:, np.newaxis]
            logs = logs + log_interval(ends[:-1] - away, ends[1:] - away)
        return np.append(none, logs.ravel())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianRuns:
    """Runs of the algorithm on two neighbours, scored by the ratio of the probabilities of the observation.

    Attributes:
        of: The algorithm.
        queries: (2, m) queries on D and on D′.
        seen: The observation.
        log_ratios: Log-likelihood ratios by code of the observation.
    """

    of: GaussianComparisons
    queries: Array
    seen: FirstSeen | CountsSeen
    log_ratios: Array

    @property
    def numbers(self) -> int:
        """One per query and one for the threshold."""
        return int(self.queries.shape[1]) + 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        answers = self.of.run(rng, self.queries[np.where(on_first, 0, 1)])
        if isinstance(self.seen, CountsSeen):
            codes = self.seen.code(np.where(answers > -np.inf, np.where(np.isnan(answers), np.nan, np.inf), answers))
        else:
            codes = self.seen.code(answers, self.queries.min(axis=0))
        scores: Array = self.log_ratios[codes]
        return scores


def _pairs(
    of: GaussianComparisons, moved: float, points: Mapping[float, float], *, monotone: bool
) -> Iterator[KnownPair]:
    """Yield pairs of `n` queries that rise and then `k` that fall, at the levels with the largest δ(ε) at some ε.

    Args:
        of: The algorithm.
        moved: Δ.
        points: Points (ε, δ) of the upper bound, from which the ε are chosen.
        monotone: Whether all queries rise.
    """
    most, bare = min(of.queries, _MOST_SEEN), replace(of, answers="above or below")
    sizes = {(most, 0), (1, 0)} | ({(most - 1, 1), ((most + 1) // 2, most // 2)} if most > 1 else set())
    seen: list[tuple[int, int, FirstSeen | CountsSeen]] = [(n, k, FirstSeen(of=of, edges=_edges(of))) for n, k in sizes]
    if of.positives > 1 and of.queries > 1:
        n, k = (min(of.queries, _COUNTED) + 1) // 2, min(of.queries, _COUNTED) // 2
        seen.append((n, k, CountsSeen(lifted=n, lowered=k, positives=of.positives)))
    law_of = GaussianThreshold(threshold_std=of.threshold_std, query_std=of.query_std)
    for n, k, one in sorted(seen, key=lambda of_size: of_size[:2]):
        if law_of.nodes_for(n + k) * (n + k) > _WORK:
            continue  # much more noise on the threshold than on queries
        law = _Levels(of=of, moved=moved, n=n, k=k, monotone=monotone, seen=one)
        # levels are chosen by the index alone, which is faster, and at an ε that its pair attains
        search = law if isinstance(one, CountsSeen) else replace(law, seen=FirstSeen(of=bare, edges=np.zeros(0)))
        for target in _TARGETS:
            epsilon = epsilon_at(points, target, _PART)
            first = _climb(search, epsilon, [(x, y) for x in _COARSE for y in (_COARSE if k else (0.0,))])
            yield from law.pairs(_climb(search, search.epsilon(first, target), [first]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Levels:
    """Pairs of one size and observation, by the levels of both kinds of queries.

    Attributes:
        of: The algorithm.
        moved: Δ.
        n: Number of queries that rise, asked first.
        k: Number of queries that fall, or rise too if monotone.
        monotone: Whether all queries rise.
        seen: The observation.
    """

    of: GaussianComparisons
    moved: float
    n: int
    k: int
    monotone: bool
    seen: FirstSeen | CountsSeen

    def queries(self, levels: tuple[float, float]) -> Array:
        """Build the (2, n + k) queries of both neighbours.

        Args:
            levels: Of either kind, in standard deviations of the noise in all, from where the largest noisy query of
                its kind is near the threshold.
        """
        noise = math.hypot(self.of.threshold_std, self.of.query_std / math.sqrt(1 + math.log(self.n + self.k)))
        first, second = (
            level * noise - self.of.query_std * _top(size) for level, size in zip(levels, (self.n, self.k), strict=True)
        )
        low = np.repeat([first, second if self.monotone else second + self.moved], [self.n, self.k])
        high = np.repeat([first + self.moved, second + self.moved if self.monotone else second], [self.n, self.k])
        return np.stack([low, high])

    def logs(self, queries: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """Compute ln P of the outcomes under both, and their codes."""
        if isinstance(self.seen, FirstSeen):
            one, other = (self.seen.log_masses(row, queries.min(axis=0)) for row in queries)
            return one, other, np.arange(one.size)
        law = GaussianThreshold(threshold_std=self.of.threshold_std, query_std=self.of.query_std)
        masses = [self.seen.log_masses(law, row) for row in queries]
        codes = np.array(sorted(masses[0]))
        one, other = (np.array([of[code] for code in codes.tolist()]) for of in masses)
        return one, other, codes

    def delta(self, levels: tuple[float, float], epsilon: float) -> float:
        """Approximate δ(ε), the larger of both directions."""
        one, other, _ = self.logs(self.queries(levels))
        return larger_delta(np.exp(one), np.exp(other), epsilon)

    def epsilon(self, levels: tuple[float, float], delta: float) -> float:
        """Approximate ε at which δ(ε) of these levels is `delta`, the larger of both directions; at least 0."""
        one, other, _ = self.logs(self.queries(levels))
        p, q = np.exp(one), np.exp(other)
        low, high = 0.0, min(MOST_EPSILON, float(np.abs(one - other).max()))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if larger_delta(p, q, middle) > delta else (low, middle)
        return low

    def pairs(self, levels: tuple[float, float]) -> Iterator[KnownPair]:
        """Yield the pair in both directions."""
        queries = self.queries(levels)
        one, other, codes = self.logs(queries)
        told = [_tell(row, self.n) for row in queries]
        rest = self.of.queries - queries.shape[1]
        others = f"; the other {rest} are far below it" if rest else ""
        for i, j, log_p, log_q in ((0, 1, one, other), (1, 0, other, one)):
            outcomes = outcomes_of(log_p, log_q)
            ratios = np.zeros(self.seen.codes if isinstance(self.seen, CountsSeen) else codes.size)
            ratios[codes] = outcomes.log_p - outcomes.log_q
            yield KnownPair(
                words=f"in D the queries are {told[i]} above the threshold; in D′ {told[j]}{others}; "
                f"seen: {self.seen.words}",
                data=(told[i], told[j]),
                outcomes=outcomes,
                sampler=GaussianRuns(of=self.of, queries=queries[[i, j]], seen=self.seen, log_ratios=ratios),
            )


def _climb(law: _Levels, epsilon: float, starts: list[tuple[float, float]]) -> tuple[float, float]:
    """Levels with a large δ(ε): the best of the starts, then ever smaller steps."""
    best = max(starts, key=lambda at: law.delta(at, epsilon))
    most, step = law.delta(best, epsilon), 1.0
    for _ in range(_STEPS):
        around = [(best[0] + x * step, best[1] + y * step) for x, y in _AROUND[: 4 if law.k else 2]]
        found, at = max((law.delta(one, epsilon), one) for one in around)
        if found > most:
            most, best = found, at
        else:
            step /= 2
    return best


def _edges(of: GaussianComparisons) -> Array:
    if of.answers == "gaps":
        return np.array(_GAPS) * of.query_std
    return _VALUE_CELLS * of.value_std if of.answers == "fresh values" else np.zeros(0)


def _top(size: int) -> float:
    """Approximate expected maximum of `size` standard normal draws."""
    from scipy.special import ndtri

    return float(ndtri(1 - 0.6 / (size + 0.2))) if size > 1 else 0.0


def _tell(queries: Array, n: int) -> str:
    parts = [(n, queries[0]), (queries.size - n, queries[-1])]
    return ", ".join(f"{times} × {value:.6g}" for times, value in parts if times)
