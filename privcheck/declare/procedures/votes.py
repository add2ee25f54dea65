"""Votes of teachers: for every query, only the candidate with the most noisy votes is released.

The teachers use data of disjoint groups of users, so one user changes one teacher and thus at most one vote per query:
one count falls by 1 and another rises by 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, check_one_record, set_words
from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.terms.parameters import Condition, number, one_of
from privcheck.terms.symbols import Exact, Expr, expression, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

VoteNoise = Literal["laplace", "gaussian"]
# By how many spreads the candidate that gains is ahead in D, beside 0 and 1 vote. The loss rises with it: of Laplace
# noise to 2/b, which it misses by a millionth at a million scales, of Gaussian noise without bound.
_SPREADS: Final = (1, 3, 100, 10**6)
_THEOREMS: Final[Mapping[str, str]] = {
    "laplace": "Dwork & Roth 2014, Claim 3.9: 2/b a query (PATE, Papernot et al. 2017); ρ ≤ ε²/2 (Bun & Steinke 2016)",
    "gaussian": "Papernot et al. 2018, Proposition 8: the noisy counts, of ℓ₂ sensitivity √2, are 1/σ²-zCDP a query",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyVotes:
    """PATE aggregation: the winner of a noisy vote of teachers, query after query.

    Attributes:
        name: Name, unique in the declaration.
        noise: Law of the noise on each count: "laplace" of scale b or "gaussian" of standard deviation σ.
        spread: b or σ, in votes.
        queries: Number of queries; each may depend on earlier winners.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    noise: VoteNoise
    spread: Expr
    queries: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, noise: VoteNoise, spread: Exact | Expr, queries: Exact | Expr, users: str = "",
        source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        one_of("noise, of NoisyVotes", noise, get_args(VoteNoise))
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "spread", number("spread, of NoisyVotes", spread))
        object.__setattr__(self, "queries", number("queries, of NoisyVotes", queries))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="the candidate with the most noisy votes",
            latex=self._latex(),
            law=self.noise,
            spread=self.spread,
            conditions=(
                Condition(what="the spread of its noise", of=self.spread, domain="positive"),
                Condition(what="the number of queries", of=self.queries, domain="whole"),
            ),
            symbols=self.spread.symbols | self.queries.symbols,
            rounds=self.queries,
            schedule=f"{self.queries} queries",
            preconditions=("each user's data is with one teacher, who has one vote in every query",),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        unit = "scale" if self.noise == "laplace" else "standard deviation"
        return f"{self.noise} noise of {unit} {self.spread} on the teachers' votes for each candidate"

    def _latex(self) -> str:
        """Output as a formula."""
        law = {"laplace": r"\mathrm{Lap}", "gaussian": r"\mathcal{N}_\sigma"}[self.noise]
        return rf"\mathrm{{argmax}}_i\ \left(n_i + {law}\left({self.spread.latex()}\right)\right)"

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw, rounded up."""
        spread = self.spread.number(values, rounding="up")
        return math.nextafter(spread * (math.sqrt(2) if self.noise == "laplace" else 1.0), math.inf)

    def with_std(self, factor: Fraction) -> NoisyVotes:
        """Copy with `factor` times the standard deviation of all noise."""
        return replace(self, spread=self.spread * factor)

    def cost(self, relation: Relation) -> Cost:
        """Cost ε = 2/b per query for Laplace noise, ρ = 1/σ² for Gaussian noise, under every relation.

        A replaced, added or removed user changes one teacher, who votes in either case.

        Raises:
            DeclarationError: A user has several trajectories, which may belong to as many teachers.
        """
        check_one_record(self.name, relation, why="all of a user's data is with one teacher, who has one vote")
        one = expression(1)
        moved = Sensitivity(l1=2 * one, l2=sqrt(2), linf=one, reason="one vote changes sides")
        if self.noise == "gaussian":
            rho = (self.queries / self.spread**2).simplified()
            return Cost(
                sensitivity=moved, charged=moved.l2, rho=rho, pure=None, mu_squared=None, dominating_mu_squared=2 * rho,
                theorem=_THEOREMS["gaussian"],
            )  # fmt: skip
        each = 2 / self.spread
        return Cost(
            sensitivity=moved,
            charged=moved.linf,
            rho=(self.queries * minimum(each**2 / 2, each)).simplified(),
            pure=(self.queries * each).simplified(),
            mu_squared=None,
            theorem=_THEOREMS["laplace"],
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """All queries as `noisy_max`, or as Gaussian counts, which determine the winner."""
        from privcheck.accounting.events import gaussian, noisy_max

        queries, spread = int(self.queries.number(values)), self.spread.number(values, rounding="down")
        if not queries:
            return ()
        if self.noise == "laplace":
            return (noisy_max(noise="laplace", scale=spread, count=queries),)
        return (gaussian(std=spread, sensitivity=math.nextafter(math.sqrt(2), 2), count=queries),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Two candidates far ahead of all others, one of which loses a vote to the other, at several margins.

        The margin is the same in every query: earlier winners do not change it.
        """
        queries, spread = int(self.queries.number(values)), self.spread.number(values, rounding="up")
        if not queries:
            return ()
        pairs = []
        for margin in dict.fromkeys((0, 1, *(round(k * spread) for k in _SPREADS))):
            ahead = (margin, margin + 2)
            logs = [log_wins(self.noise, one / spread) for one in ahead]
            pairs.append(
                KnownPair(
                    words=f"in every query candidate 1 is ahead of candidate 2 by {ahead[0]} votes in D and by"
                    f" {ahead[1]} in D′; all others have none",
                    data=(f"{ahead[0]} votes ahead", f"{ahead[1]} votes ahead"),
                    outcomes=Outcomes(log_p=logs[0], log_q=logs[1]),
                    rounds=queries,
                    sampler=VoteRuns(noise=self.noise, spread=spread, ahead=ahead, queries=queries),
                )
            )
        return tuple(pairs)


def log_wins(noise: VoteNoise, ahead: float) -> Array:
    """Compute ln P that the first or the second candidate wins, with the first ahead by `ahead` spreads.

    A difference of two Laplace draws exceeds t ≥ 0 with probability e^(−t)(2 + t)/4, one of two Gaussian ones with
    Φ(−t/√2).
    """
    from scipy.special import log_ndtr

    if noise == "gaussian":
        wins: Array = log_ndtr(np.array([ahead, -ahead]) / math.sqrt(2))
        return wins
    t = abs(ahead)
    behind = -t + math.log((2 + t) / 4)
    logs = [math.log1p(-math.exp(behind)), behind]
    return np.array(logs if ahead >= 0 else logs[::-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRuns:
    """Runs of all queries on two candidates, scored by the ratio of the winners' probabilities.

    Attributes:
        noise: Noise on each count.
        spread: b or σ.
        ahead: Number of votes by which candidate 1 leads, in D and in D′.
        queries: Number of queries.
    """

    noise: VoteNoise
    spread: float
    ahead: tuple[int, int]
    queries: int

    @property
    def numbers(self) -> int:
        """Two per query."""
        return 2 * self.queries

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        first, second = (log_wins(self.noise, one / self.spread) for one in self.ahead)
        draw = rng.laplace if self.noise == "laplace" else rng.normal
        margin = np.where(on_first, *self.ahead)[:, np.newaxis]
        noise = draw(0.0, self.spread, (2, on_first.size, self.queries))
        lost = (margin + noise[0] - noise[1] < 0).sum(axis=1)
        ratios = first - second
        scores: Array = (self.queries - lost) * ratios[0] + lost * ratios[1]
        return scores
