"""The adaptive sparse vector technique (Ding, Wang, Zhang & Kifer 2019): queries far above the threshold cost less.

Every query is compared twice, first with much noise and a margin, then with less noise. An answer is charged by the
noise of the comparison that it passed, and the run goes on while the budget for answers lasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, moved_by_a_user, set_words
from privcheck.declare.procedures.threshold import NoisyThreshold, log_cdf, log_sum
from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.terms.parameters import Condition, number, truth
from privcheck.terms.symbols import Exact, Expr, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_THEOREM: Final = "Ding, Wang, Zhang & Kifer 2019: Δ/b₁ for the threshold, and the budget of the answers above"
_LOOKED_AT: Final = 16  # queries near the threshold in pairs that are run
_LEVELS: Final = (-2.0, -0.5, 1.0)  # of the queries, in scales of the second comparison's noise
_FAR: Final = 200.0  # scales beyond the threshold, where an answer is all but impossible


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSparseVector:
    """Queries compared with one noisy threshold, twice each, until the budget for answers "above" is used up.

    A query with noise of scale b₂ that is above the threshold by the margin is a top answer and costs 2Δ/b₂ of the
    budget (Δ/b₂ for monotone queries); else, if with fresh noise of scale b₃ it is above, it is a middle answer and
    costs 2Δ/b₃ (Δ/b₃); else it is below and costs nothing. The run goes on while the larger of the two costs is left.

    Attributes:
        name: Name, unique in the declaration.
        threshold_scale: b₁, Laplace scale of the threshold's noise.
        top_scale: b₂, Laplace scale of the noise on every query in the first comparison.
        middle_scale: b₃, Laplace scale of the noise in the second.
        margin: σ, by how much a top answer is above the threshold, at least 0.
        queries: m, largest number of queries.
        budget: ε of all answers "above" together.
        gaps: Whether the gap between the noisy query and the noisy threshold is released with an answer "above".
        sensitivity: Δ, the largest change of one query by one trajectory of a user; all queries may change at once. A
            user with up to m trajectories changes it by m·Δ, which is charged.
        monotone: Whether the queries of two neighbours differ in one direction only.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    threshold_scale: Expr
    top_scale: Expr
    middle_scale: Expr
    margin: Expr
    queries: Expr
    budget: Expr
    gaps: bool
    sensitivity: Expr
    monotone: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, threshold_scale: Exact | Expr, top_scale: Exact | Expr, middle_scale: Exact | Expr,
        margin: Exact | Expr, queries: Exact | Expr, budget: Exact | Expr, gaps: bool, sensitivity: Exact | Expr = 1,
        monotone: bool = False, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        for key, flag in {"gaps": gaps, "monotone": monotone}.items():
            truth(f"{key}, of AdaptiveSparseVector", flag)
            object.__setattr__(self, key, flag)
        numbers = {
            "threshold_scale": threshold_scale, "top_scale": top_scale, "middle_scale": middle_scale, "margin": margin,
            "queries": queries, "budget": budget, "sensitivity": sensitivity,
        }  # fmt: skip
        for key, amount in numbers.items():
            object.__setattr__(self, key, number(f"{key}, of AdaptiveSparseVector", amount))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        moves = f"each moved by at most {self.sensitivity}" + (", all one way" if self.monotone else "")
        gaps = ", and by how much" if self.gaps else ""
        one_way = ("between neighbours all queries move one way",) if self.monotone else ()
        scales = {"threshold's": self.threshold_scale, "first": self.top_scale, "second": self.middle_scale}
        positive = (
            Condition(what=f"the scale of its {key} noise", of=one, domain="positive") for key, one in scales.items()
        )
        return Facts(
            words=f"{self.queries} queries, {moves}, compared with a threshold with Laplace noise of scale "
            f"{self.threshold_scale}, first with noise of scale {self.top_scale} and a margin of {self.margin}, then "
            f"with noise of scale {self.middle_scale}, until the answers above have used up {self.budget}",
            output=f"which queries are far above, above or below a noisy threshold{gaps}",
            latex=(
                rf"q_i + \mathrm{{Lap}}\left({self.top_scale.latex()}\right) \ge T + z + {self.margin.latex()},\ "
                rf"q_i + \mathrm{{Lap}}\left({self.middle_scale.latex()}\right) \ge T + z"
            ),
            law="laplace",
            spread=self.middle_scale,
            conditions=(
                *positive,
                Condition(what="its margin", of=self.margin, domain="nonnegative"),
                Condition(what="the number of queries", of=self.queries, domain="count"),
                Condition(what="the budget of its answers", of=self.budget, domain="positive"),
                Condition(what="the sensitivity of its queries", of=self.sensitivity, domain="nonnegative"),
            ),
            symbols=frozenset[str]().union(
                *(one.symbols for one in (*scales.values(), self.margin, self.queries, self.budget, self.sensitivity))
            ),
            preconditions=(f"one trajectory of a user moves each query by at most {self.sensitivity}", *one_way),
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw of the second comparison's noise, rounded up."""
        return math.nextafter(self.middle_scale.number(values, rounding="up") * math.sqrt(2), math.inf)

    def with_std(self, factor: Fraction) -> AdaptiveSparseVector:
        """Copy with `factor` times all noise, and the budget for as many answers as before."""
        return replace(
            self, threshold_scale=self.threshold_scale * factor, top_scale=self.top_scale * factor,
            middle_scale=self.middle_scale * factor, budget=self.budget / factor,
        )  # fmt: skip

    def cost(self, relation: Relation) -> Cost:
        """Price Δ/b₁ + budget, or that of all noisy queries, mΔ(1/b₂ + 1/b₃), if that is less.

        Lemma adaptive-sparse-vector: It is (Δ/b₁ + budget)-DP. Source: Ding, Wang, Zhang & Kifer 2019. Proof: shift the
        threshold by Δ, at Δ/b₁. Every comparison that failed fails at least as often, given the threshold, so that
        answers below cost nothing, and a middle answer nothing for its first comparison. A comparison that passed,
        with or without its gap, is moved by at most 2Δ (by Δ for monotone queries, whose threshold shifts only if they
        increase), which is the cost of the answer. The costs of a run never exceed the budget.
        """
        moved, m = moved_by_a_user(self.sensitivity, relation), self.queries
        reason = f"each of {m} queries moves by at most {moved}" + (", one way only" if self.monotone else "")
        every = (m * (moved / self.top_scale + moved / self.middle_scale)).simplified()
        pure = minimum((moved / self.threshold_scale + self.budget).simplified(), every)
        return Cost(
            sensitivity=Sensitivity(l1=2 * m * moved, l2=sqrt(2 * m) * moved, linf=moved, reason=reason),
            charged=moved,
            rho=minimum(pure**2 / 2, pure),
            pure=pure,
            mu_squared=None,
            theorem=_THEOREM,
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Event of an ε-DP mechanism."""
        from privcheck.accounting.events import pure

        if moved_by_a_user(self.sensitivity, relation).number(values, rounding="up") == 0:
            return ()
        price = self.cost(relation).pure
        assert price is not None
        return (pure(epsilon=price.number(values, rounding="up")),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Pairs with one unlikely pattern of answers, and pairs with the law of the first answer above, for runs."""
        exactly = moved_by_a_user(self.sensitivity, relation)
        moved = exactly.number(values, rounding="down")
        if moved == 0:
            return ()
        of = AdaptiveComparisons(
            threshold_scale=self.threshold_scale.number(values, rounding="up"),
            top_scale=self.top_scale.number(values, rounding="up"),
            middle_scale=self.middle_scale.number(values, rounding="up"),
            margin=self.margin.number(values),
        )
        size = min(int(self.queries.number(values)), _LOOKED_AT)
        seen = () if not self._answers_once(exactly, values) else _first_above(of, moved, size, monotone=self.monotone)
        return (*self._unlikely(moved, exactly, values), *seen)

    def _answers_once(self, moved: Expr, values: Mapping[str, Fraction]) -> bool:
        """Whether the budget is enough for an answer above."""
        ways = 1 if self.monotone else 2
        costs = [(ways * moved / one).rational(values) for one in (self.top_scale, self.middle_scale)]
        budget = self.budget.rational(values)
        known = [one for one in costs if one is not None]
        return budget is not None and len(known) == len(costs) and max(known) <= budget

    def _unlikely(self, moved: float, exactly: Expr, values: Mapping[str, Fraction]) -> Iterator[KnownPair]:
        """Yield pairs with one pattern of answers of exact probability, in the limit of distant queries."""
        scales = [one.number(values, rounding="up") for one in (self.top_scale, self.middle_scale)]
        law = NoisyThreshold(threshold_scale=self.threshold_scale.number(values, rounding="up"), query_scale=scales[1])
        margin, m = self.margin.number(values), int(self.queries.number(values))
        ways = 1 if self.monotone else 2
        costs = [(ways * exactly / one).rational(values) for one in (self.top_scale, self.middle_scale)]
        budget = self.budget.rational(values)
        if budget is None or costs[0] is None or costs[1] is None:
            return
        for kind in (0, 1):
            cost, most = costs[kind], max(costs[0], costs[1])
            assert cost is not None
            above = min(m, max(0, (budget - most) // cost + 1) if budget >= most else 0)
            below = m - above
            if above == 0 or (self.monotone and below == 0):  # of monotone ones only those below are moved
                continue
            far, down = margin + _FAR * max(law.threshold_scale, *scales), 0.0 if self.monotone else moved
            logs = []
            for up, low in ((0.0, 0.0), (moved, down)):
                high, deep = far + up, -far - low
                groups = [(high - margin, scales[0], below, 0), (high, scales[1], below, 0)]
                passed = (deep - margin, scales[0], 0, above), (deep, scales[1], 0, above)
                failed = (deep - margin, scales[0], above, 0)
                chosen = [passed[0]] if kind == 0 else [failed, passed[1]]
                logs.append(law.log_mixed_pattern([*groups, *chosen]))
            name = ("far above", "above")[kind]
            told = [f"{below} × {far + up:.6g}, then {above} × {-far - low:.6g}" for up, low in ((0, 0), (moved, down))]
            laws = [np.array([one, math.log1p(-math.exp(one))]) for one in logs]
            for i, j in ((0, 1), (1, 0)):  # both ways, so that monotone pairs alternate in direction
                yield KnownPair(
                    words=f"in D the queries are {told[i]} above the threshold, in D′ {told[j]}; distinguished by the "
                    f"answers {below} × below, then {above} × {name}, of probability e^{logs[i]:.6g} in D and "
                    f"e^{logs[j]:.6g} in D′",
                    data=(told[i], told[j]),
                    outcomes=Outcomes(log_p=laws[i], log_q=laws[j]),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveComparisons:
    """Parameters of the comparisons as numbers.

    Attributes:
        threshold_scale: b₁.
        top_scale: b₂.
        middle_scale: b₃.
        margin: σ.
    """

    threshold_scale: float
    top_scale: float
    middle_scale: float
    margin: float

    def log_first(self, queries: Array) -> Array:
        """Compute ln P of the first answer above: none, top answers of each query, middle answers of each query."""
        finest = min(self.top_scale, self.middle_scale)
        law = NoisyThreshold(threshold_scale=self.threshold_scale, query_scale=finest)
        z, weights = law.nodes([*queries.tolist(), *(queries - self.margin).tolist()], 2 * queries.size)
        far = (z + self.margin - queries[:, np.newaxis]) / self.top_scale
        near = (z - queries[:, np.newaxis]) / self.middle_scale
        below = log_cdf(far) + log_cdf(near)
        until = np.concatenate([np.zeros((1, z.size)), np.cumsum(below, axis=0)]) + weights
        rows = [until[-1:], until[:-1] + log_cdf(-far), until[:-1] + log_cdf(far) + log_cdf(-near)]
        return log_sum(np.concatenate(rows))

    def run(self, rng: np.random.Generator, queries: Array) -> NDArray[np.int64]:
        """Draw the place of the first answer above, as `log_first` counts them, (runs,) from (runs, m) queries."""
        threshold = rng.laplace(0.0, self.threshold_scale, (queries.shape[0], 1))
        far = queries + rng.laplace(0.0, self.top_scale, queries.shape) - threshold >= self.margin
        near = queries + rng.laplace(0.0, self.middle_scale, queries.shape) - threshold >= 0
        above, rows = far | near, np.arange(queries.shape[0])
        first = above.argmax(axis=1)
        place = 1 + first + np.where(far[rows, first], 0, queries.shape[1])
        code: NDArray[np.int64] = np.where(above.any(axis=1), place, 0)
        return code


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveRuns:
    """Runs up to the first answer above, scored by the ratio of its probabilities.

    Attributes:
        of: The comparisons.
        queries: (2, m) queries on D and on D′.
        log_ratios: Log-likelihood ratios by place of the answer.
    """

    of: AdaptiveComparisons
    queries: Array
    log_ratios: Array

    @property
    def numbers(self) -> int:
        """Two per query and one for the threshold."""
        return 2 * int(self.queries.shape[1]) + 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        scores: Array = self.log_ratios[self.of.run(rng, self.queries[np.where(on_first, 0, 1)])]
        return scores


def _first_above(of: AdaptiveComparisons, moved: float, size: int, *, monotone: bool) -> Iterator[KnownPair]:
    """Yield queries near the threshold, all but the last raised and the last lowered, with the first answer above."""
    for level in _LEVELS:
        low = np.full(size, level * of.middle_scale)
        high = low + moved
        if not monotone and size > 1:
            low[-1], high[-1] = high[-1], low[-1]
        logs = [of.log_first(one) for one in (low, high)]
        told = [f"{size - 1} × {one[0]:.6g}, then {one[-1]:.6g}" for one in (low, high)]
        others = "the others are far below it; seen: the first answer above and its kind"
        for i, j in ((0, 1), (1, 0)):
            queries = np.stack([(low, high)[i], (low, high)[j]])
            yield KnownPair(
                words=f"in D the queries are {told[i]} above the threshold; in D′ {told[j]}; {others}",
                data=(told[i], told[j]),
                outcomes=Outcomes(log_p=logs[i], log_q=logs[j]),
                sampler=AdaptiveRuns(of=of, queries=queries, log_ratios=logs[i] - logs[j]),
            )
