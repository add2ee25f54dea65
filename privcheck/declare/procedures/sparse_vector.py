"""The sparse vector technique: which of many queries exceed a noisy threshold, in its published variants.

A proof needs a noisy threshold, query noise that grows with the number of answers "above", and a stop after that many
of them. A variant without one of these costs more with every query, or has no finite cost at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

from privcheck.declare.procedures.base import Cost, Facts, KnownPair, moved_by_a_user
from privcheck.declare.procedures.sparse_vector_pairs import Comparisons, known_pairs
from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number, one_of, text, truth
from privcheck.terms.symbols import INFINITE, Exact, Expr, exp, expression, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Answers = Literal["above or below", "gaps", "fresh values", "noisy values"]
_COMPOSED: Final = "the answers are a post-processing of all noisy queries: mΔ/b (Dwork & Roth 2014, Theorem 3.16)"
_ONCE: Final = "Lyu, Su & Li 2017, Theorems 4 and 5: Δ/b₁ + 2cΔ/b₂ (cΔ/b₂ for monotone queries)"
_REDRAWN: Final = "Dwork & Roth 2014, Theorems 3.23 and 3.16: c thresholds one after the other, each Δ/b₁ + 2Δ/b₂"
_ONE_WAY: Final = "one way, n₀ below and n₁ above: min(n₀Δ/b₂, Δ/b₁ + n₁Δ/b₂) ≤ (Δ/b₁ + mΔ/b₂)/2"
_FRESH: Final = "Δ/b₃ for each value with fresh noise"
_WITHOUT: Final = "none: without separate noise, two queries show an order that a neighbour's data makes impossible"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Queries compared with a noisy threshold, one after the other; the output is the answer to each.

    Attributes:
        name: Name, unique in the declaration.
        threshold_scale: b₁, Laplace scale of the threshold's noise.
        query_scale: b₂, Laplace scale of the fresh noise on every query; None for queries without noise.
        queries: m, largest number of queries.
        positives: c, number of answers "above" after which it stops; None if it never stops.
        redrawn: Whether the threshold's noise is drawn afresh after every answer "above".
        answers: Output for a query above the threshold: that it is above, the gap between both noisy numbers, its value
            with fresh noise, or the noisy value that was compared.
        value_scale: b₃, Laplace scale of the fresh noise on a value; None unless fresh values are released.
        sensitivity: Δ, the largest change of one query by one trajectory of a user; all queries may change at once. A
            user with up to m trajectories changes it by m·Δ, which is charged.
        monotone: Whether the queries of two neighbours differ in one direction only.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: Values would be released without noise, or `value_scale` is given without fresh values.
    """

    name: str
    threshold_scale: Expr
    query_scale: Expr | None
    queries: Expr
    positives: Expr | None
    redrawn: bool
    answers: Answers
    value_scale: Expr | None
    sensitivity: Expr
    monotone: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, threshold_scale: Exact | Expr, query_scale: Exact | Expr | None, queries: Exact | Expr,
        positives: Exact | Expr | None, redrawn: bool = False, answers: Answers = "above or below",
        value_scale: Exact | Expr | None = None, sensitivity: Exact | Expr = 1, monotone: bool = False,
        users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        text("name, of SparseVector", name)
        one_of("answers, of SparseVector", answers, get_args(Answers))
        for key, flag in {"redrawn": redrawn, "monotone": monotone}.items():
            truth(f"{key}, of SparseVector", flag)
            object.__setattr__(self, key, flag)
        for key, words in {"users": users, "source": source}.items():
            text(f"{key}, of SparseVector", words, empty=True)
            object.__setattr__(self, key, words)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "answers", answers)
        numbers = {"threshold_scale": threshold_scale, "queries": queries, "sensitivity": sensitivity}
        for key, amount in numbers.items():
            object.__setattr__(self, key, number(f"{key}, of SparseVector", amount))
        fresh = {"query_scale": query_scale, "positives": positives, "value_scale": value_scale}
        for key, optional in fresh.items():
            given = None if optional is None else number(f"{key}, of SparseVector", optional)
            object.__setattr__(self, key, given)
        if (value_scale is None) != (answers != "fresh values"):
            message = f"sparse vector {name!r}: expected value_scale with answers='fresh values' and only then"
            raise DeclarationError(f"{message}, got answers={answers!r} and value_scale={value_scale!r}")
        if query_scale is None and answers in ("noisy values", "gaps"):
            message = (
                f"sparse vector {name!r}: expected noise on queries whose values are released, got query_scale=None"
            )
            raise DeclarationError(
                f"{message}: the data itself would be released; give a scale, or answers='above or below'"
            )

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output=self._output(),
            latex=self._latex(),
            law="laplace",
            spread=self.spread,
            conditions=self._conditions(),
            symbols=self._symbols(),
            preconditions=self._preconditions(),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        noise = "no noise" if self.query_scale is None else f"Laplace noise of scale {self.query_scale}"
        again = ", drawn afresh after every answer above," if self.redrawn else ""
        end = "never stops" if self.positives is None else f"stops after {self.positives} answers above"
        moves = f"each moved by at most {self.sensitivity}" + (", all one way" if self.monotone else "")
        return (
            f"{self.queries} queries, {moves}, with {noise} against a threshold with Laplace noise of scale "
            f"{self.threshold_scale}{again} and {end}{self._shown()}"
        )

    def _shown(self) -> str:
        """Description of the number that is shown with an answer "above"."""
        if self.answers == "gaps":
            return ", releases the gap between the noisy query and the noisy threshold"
        return "" if self.value_scale is None else f", releases values with fresh noise of scale {self.value_scale}"

    def _output(self) -> str:
        """Description of the output."""
        if self.answers == "noisy values":
            return "the noisy queries that are above a noisy threshold"
        if self.answers == "gaps":
            return "which queries are above a noisy threshold, and by how much"
        if self.answers == "fresh values":
            return "which queries are above a noisy threshold, and their values with fresh noise"
        return "which queries are above a noisy threshold"

    def _latex(self) -> str:
        """Output as a formula."""
        noisy = "q_i" if self.query_scale is None else rf"q_i + \mathrm{{Lap}}\left({self.query_scale.latex()}\right)"
        index = "_k" if self.redrawn else ""
        compared = (
            rf"{noisy} \ge T + z{index},\ z{index} \sim \mathrm{{Lap}}\left({self.threshold_scale.latex()}\right)"
        )
        return rf"\left({noisy}\right)_{{i :\ {compared}}}" if self.answers == "noisy values" else compared

    def _preconditions(self) -> tuple[str, ...]:
        """Preconditions on the queries."""
        one_way = ("between neighbours all queries move one way",) if self.monotone else ()
        return (f"one trajectory of a user moves each query by at most {self.sensitivity}", *one_way)

    def _conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        asked = Condition(what="the number of queries", of=self.queries, domain="count")
        if self.query_scale is None:
            several = "the number of queries without noise, less one (for one query, the threshold's noise is its own),"
            asked = Condition(what=several, of=self.queries - 1, domain="count")
        conditions = [
            Condition(what="the scale of its threshold's noise", of=self.threshold_scale, domain="positive"),
            asked,
            Condition(what="the sensitivity of its queries", of=self.sensitivity, domain="nonnegative"),
        ]
        if self.query_scale is not None:
            conditions.append(Condition(what="the scale of its queries' noise", of=self.query_scale, domain="positive"))
        if self.value_scale is not None:
            conditions.append(Condition(what="the scale of its values' noise", of=self.value_scale, domain="positive"))
        if self.positives is not None:
            conditions.append(
                Condition(what="the number of answers after which it stops", of=self.positives, domain="count")
            )
        return tuple(conditions)

    def _symbols(self) -> frozenset[str]:
        """Names of the parameters that occur in it."""
        given = (
            self.threshold_scale, self.query_scale, self.queries, self.positives, self.value_scale, self.sensitivity,
        )  # fmt: skip
        return frozenset[str]().union(*(one.symbols for one in given if one is not None))

    @property
    def spread(self) -> Expr:
        """Scale of the queries' noise, or of the threshold's noise if the queries have none."""
        return self.threshold_scale if self.query_scale is None else self.query_scale

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw of noise with scale `spread`, rounded up."""
        return math.nextafter(self.spread.number(values, rounding="up") * math.sqrt(2), math.inf)

    def with_std(self, factor: Fraction) -> SparseVector:
        """Copy with `factor` times the standard deviation of all noise."""
        query = None if self.query_scale is None else self.query_scale * factor
        fresh = None if self.value_scale is None else self.value_scale * factor
        return replace(self, threshold_scale=self.threshold_scale * factor, query_scale=query, value_scale=fresh)

    def cost(self, relation: Relation) -> Cost:
        """The smaller of two prices in pure DP, and the smallest known ρ of zCDP.

        The first is the price of releasing all m noisy queries, mΔ/b₂. The second, for answers without values that stop
        after c, shifts the threshold instead of the queries below it: Δ/b₁ + 2cΔ/b₂, and for a redrawn threshold
        c·(Δ/b₁ + 2Δ/b₂); without the factor 2 for monotone queries. A noisy value reveals that the threshold is below
        it, so the threshold cannot be shifted: such answers have the first price only, and attain it.

        Lemma monotone-queries: m monotone queries that never stop cost (Δ/b₁ + mΔ/b₂)/2. Proof: n₀ answers below and n₁
        above lose n₀Δ/b₂ if the threshold stays and Δ/b₁ + n₁Δ/b₂ if it shifts along (for queries that increase; for
        decreasing ones vice versa), and the smaller of the two is at most their mean.

        Lemma free-gaps: The gap between the noisy query and the noisy threshold adds nothing to the price of an answer
        "above". Source: Ding, Wang, Zhang & Kifer 2019. Proof: if the threshold shifts by Δ, or not at all for queries
        that decrease, the density of the gap given the threshold is that of the query's noise at a place at most 2Δ
        (for monotone queries Δ) away: it loses 2Δ/b₂ (Δ/b₂) like the answer itself. Released values with fresh noise
        add Δ/b₃ each, to both prices, for at most min(c, m) values.

        The first price grows without bound in m. The smallest price is attained by the worst pair, unless c is above
        m/2 or nothing stops the algorithm: then the true cost may be smaller for an odd number of queries, and for
        monotone queries. ε-DP is min(ε²/2, ε)-zCDP (Bun & Steinke 2016, Proposition 1.4); Laplace noise is (ε + e^(−ε)
        − 1)-zCDP.
        """
        moved, m = moved_by_a_user(self.sensitivity, relation), self.queries
        reason = f"each of {m} queries moves by at most {moved}" + (", one way only" if self.monotone else "")
        pure, rho, theorem = self._price(moved)
        return Cost(
            sensitivity=Sensitivity(l1=m * moved, l2=sqrt(m) * moved, linf=moved, reason=reason),
            charged=moved,
            rho=rho,
            pure=pure,
            mu_squared=None,
            theorem=theorem,
        )

    def _price(self, moved: Expr) -> tuple[Expr | None, Expr, str]:
        """ε, ρ and the theorem."""
        if self.query_scale is None:
            return None, INFINITE, _WITHOUT
        one = (moved / self.query_scale).simplified()
        all_of_them = (self.queries * one).simplified()
        rho = self.queries * (one + exp(-one) - 1)
        stops = self._price_of_answers(moved)
        shown, shown_rho = self._price_of_values(moved)
        rho = rho + shown_rho
        if stops is None:
            return (all_of_them + shown).simplified(), rho, _COMPOSED
        runs, epsilon = stops
        theorem = _ONE_WAY if self.positives is None else _REDRAWN if self.redrawn else _ONCE
        pure = (minimum((runs * epsilon).simplified(), all_of_them) + shown).simplified()
        if self.value_scale is not None:
            return pure, minimum(pure**2 / 2, pure, rho), f"{theorem}, and {_FRESH}; or {_COMPOSED}, and {_FRESH}"
        return pure, minimum(runs * epsilon**2 / 2, runs * epsilon, rho), f"{theorem}; or {_COMPOSED}"

    def _price_of_values(self, moved: Expr) -> tuple[Expr, Expr]:
        """ε and ρ of the values with fresh noise that are released."""
        if self.value_scale is None:
            return expression(0), expression(0)
        count = self.queries if self.positives is None else minimum(self.positives, self.queries)
        one = (moved / self.value_scale).simplified()
        return (count * one).simplified(), count * (one + exp(-one) - 1)

    def _price_of_answers(self, moved: Expr) -> tuple[Expr, Expr] | None:
        """Number of thresholds drawn, and the ε of each; None if no theorem applies."""
        if self.query_scale is None or self.answers == "noisy values":
            return None
        if self.positives is None:
            if self.redrawn or not self.monotone or self.answers != "above or below":
                return None
            both = moved / self.threshold_scale + self.queries * moved / self.query_scale
            return expression(1), (both / 2).simplified()
        runs = self.positives if self.redrawn else expression(1)
        crossings = self.positives / runs * (1 if self.monotone else 2)
        epsilon = moved / self.threshold_scale + crossings * moved / self.query_scale
        return runs, epsilon.simplified()

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The accountant's `above_threshold` event, or Laplace queries where these cost less."""
        from privcheck.accounting.events import above_threshold, laplace, non_private, pure

        by_a_user = moved_by_a_user(self.sensitivity, relation)
        moved = by_a_user.number(values, rounding="up")
        if moved == 0:
            return ()
        if self.query_scale is None:
            return (non_private(),)
        queries, query_scale = int(self.queries.number(values)), self.query_scale.number(values, rounding="down")
        stops = self._price_of_answers(by_a_user)
        if stops is None or (stops[0] * stops[1]).number(values) >= queries * moved / query_scale:
            fresh = () if self.value_scale is None else (self._fresh_values(moved, queries, values),)
            return (laplace(scale=query_scale, sensitivity=moved, count=queries), *fresh)
        if self.value_scale is not None:  # answers and values alternate: one run, charged as a whole
            whole = self.cost(relation).pure
            assert whole is not None
            return (pure(epsilon=whole.number(values, rounding="up")),)
        if self.positives is None:
            return (pure(epsilon=stops[1].number(values, rounding="up")),)
        c = int(self.positives.number(values))
        return (
            above_threshold(
                threshold_scale=self.threshold_scale.number(values, rounding="down"), query_scale=query_scale,
                sensitivity=moved, positives=1 if self.redrawn else c, monotone=self.monotone,
                count=c if self.redrawn else 1,
            ),
        )  # fmt: skip

    def _fresh_values(self, moved: float, queries: int, values: Mapping[str, Fraction]) -> Event:
        """Event of the values with fresh noise."""
        from privcheck.accounting.events import laplace

        assert self.value_scale is not None
        count = queries if self.positives is None else min(queries, int(self.positives.number(values)))
        return laplace(scale=self.value_scale.number(values, rounding="down"), sensitivity=moved, count=count)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Queries near the threshold: one user raises some and, unless monotone, lowers others."""
        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="down")
        if moved == 0:
            return ()
        of = Comparisons(
            threshold_scale=self.threshold_scale.number(values, rounding="up"),
            query_scale=0.0 if self.query_scale is None else self.query_scale.number(values, rounding="up"),
            queries=int(self.queries.number(values)),
            positives=None if self.positives is None else int(self.positives.number(values)),
            redrawn=self.redrawn,
            values=self.answers == "noisy values",
            fresh_scale=0.0 if self.value_scale is None else self.value_scale.number(values, rounding="up"),
        )
        return known_pairs(of, moved, monotone=self.monotone)
