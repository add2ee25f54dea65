"""A candidate drawn by its score: the exponential mechanism, and permute-and-flip.

Both equal report-noisy-max in law, with Gumbel and with exponential noise of scale 2Δ/ε; their price and the laws of
their pairs are taken from there. The runs use the mechanism itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, moved_by_a_user, set_words
from privcheck.declare.procedures.selection import MaxNoise, NoisyMax, SelectionRuns
from privcheck.declare.relations import Relation
from privcheck.terms.parameters import Condition, number, one_of, truth
from privcheck.terms.symbols import Exact, Expr

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Way = Literal["exponential mechanism", "permute-and-flip"]
_NOISE: Final[Mapping[Way, MaxNoise]] = {"exponential mechanism": "gumbel", "permute-and-flip": "exponential"}
_LATEX: Final[Mapping[Way, str]] = {
    "exponential mechanism": r"\Pr[i] \propto \exp\left({epsilon} u_i / 2 \Delta\right)",
    "permute-and-flip": r"\Pr[\text{{i is taken}}] = \exp\left({epsilon} (u_i - \max_j u_j) / 2 \Delta\right)",
}
_THEOREMS: Final[Mapping[Way, str]] = {
    "exponential mechanism": "McSherry & Talwar 2007, Theorem 6: ε; of range ε (Dong, Durfee & Rogers 2020); ε/2 for "
    "monotone scores",
    "permute-and-flip": "McKenna & Sheldon 2020, Theorem 1: ε; ε/2 for monotone scores",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredChoice:
    """A candidate drawn with probability increasing in its score; only its index is released.

    Attributes:
        name: Name, unique in the declaration.
        by: "exponential mechanism" (probability ∝ exp(εu/2Δ)), or "permute-and-flip" (candidates in random order, each
            taken with probability exp(ε(u − max u)/2Δ)).
        epsilon: ε in the formula, above 0; for monotone scores the price is half as large.
        candidates: Number of candidates, 2 or more.
        sensitivity: Δ, the largest change of one score by one trajectory of a user, above 0; all scores may change at
            once. A user with up to m trajectories changes it by m·Δ: the price is m-fold.
        monotone: Whether the scores of two neighbours differ in one direction only.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    by: Way
    epsilon: Expr
    candidates: Expr
    sensitivity: Expr
    monotone: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, by: Way, epsilon: Exact | Expr, candidates: Exact | Expr, sensitivity: Exact | Expr = 1,
        monotone: bool = False, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        one_of("by, of ScoredChoice", by, get_args(Way))
        chance, moved = number("epsilon, of ScoredChoice", epsilon), number("sensitivity, of ScoredChoice", sensitivity)
        truth("monotone, of ScoredChoice", monotone)
        for key, words in {"by": by, "monotone": monotone}.items():
            object.__setattr__(self, key, words)
        counted = number("candidates, of ScoredChoice", candidates)
        for key, amount in {"epsilon": chance, "sensitivity": moved, "candidates": counted}.items():
            object.__setattr__(self, key, amount)

    @property
    def noisy_max(self) -> NoisyMax:
        """Report-noisy-max with the same law: Gumbel noise, or exponential noise (Ding et al. 2021)."""
        return NoisyMax(
            self.name, noise=_NOISE[self.by], scale=self.spread, candidates=self.candidates,
            sensitivity=self.sensitivity, monotone=self.monotone, users=self.users, source=self.source,
        )  # fmt: skip

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output="the index of a candidate",
            latex=_LATEX[self.by].format(epsilon=rf"\left({self.epsilon.latex()}\right)"),
            law=_NOISE[self.by],
            spread=self.spread,
            conditions=(
                Condition(what="its ε", of=self.epsilon, domain="positive"),
                Condition(what="the number of candidates, less one,", of=self.candidates - 1, domain="count"),
                Condition(what="the sensitivity of its scores", of=self.sensitivity, domain="positive"),
            ),
            symbols=self.epsilon.symbols | self.candidates.symbols | self.sensitivity.symbols,
            preconditions=self.noisy_max.facts.preconditions,
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the procedure in words."""
        moves = f"each moved by at most {self.sensitivity}" + (", all one way" if self.monotone else "")
        return f"{self.by} with ε = {self.epsilon} over {self.candidates} scores, {moves}"

    @property
    def spread(self) -> Expr:
        """Scale of the noise of `noisy_max`, 2Δ/ε."""
        return (2 * self.sensitivity / self.epsilon).simplified()

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of the noise of `noisy_max`, rounded up."""
        return self.noisy_max.std(values)

    def with_std(self, factor: Fraction) -> ScoredChoice:
        """Copy with `factor` times the standard deviation of that noise, that is with ε divided by it."""
        return replace(self, epsilon=self.epsilon / factor)

    def cost(self, relation: Relation) -> Cost:
        """Cost mε, half for monotone scores; ρ = (mε)²/8 if the range is bounded by mε, else as for ε-DP."""
        return replace(self.noisy_max.cost(relation), theorem=_THEOREMS[self.by])

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The accountant's event of the same name."""
        from privcheck.accounting.events import exponential_mechanism, permute_and_flip

        make = exponential_mechanism if self.by == "exponential mechanism" else permute_and_flip
        epsilon = moved_by_a_user(self.epsilon, relation)
        return (make(epsilon=epsilon.number(values, rounding="up"), monotone=self.monotone),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """The pairs of `NoisyMax`, with runs of the mechanism itself."""
        rate = 1 / self.spread.number(values, rounding="up")
        pairs = []
        for pair in self.noisy_max.pairs(relation, values):
            assert isinstance(pair.sampler, SelectionRuns)
            runs = ChoiceRuns(by=self.by, rate=rate, scores=pair.sampler.scores, log_ratios=pair.sampler.log_ratios)
            pairs.append(replace(pair, sampler=runs))
        return tuple(pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRuns:
    """Runs of the mechanism, scored by the ratio of the probabilities of the chosen candidate.

    Attributes:
        by: The mechanism.
        rate: ε/2Δ.
        scores: Scores of the candidates, in D and in D′.
        log_ratios: Log-likelihood ratio of every candidate.
    """

    by: Way
    rate: float
    scores: tuple[tuple[float, ...], tuple[float, ...]]
    log_ratios: tuple[float, ...]

    @property
    def numbers(self) -> int:
        """At most two per candidate: its place in the order and its coin."""
        return 2 * len(self.log_ratios)

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        held = np.where(on_first[:, np.newaxis], *(np.array(scores) for scores in self.scores))
        weights = np.exp(self.rate * (held - held.max(axis=1, keepdims=True)))
        draw = draw_by_weight if self.by == "exponential mechanism" else permute_and_flip_coins
        ratios: Array = np.array(self.log_ratios)[draw(rng, weights)]
        return ratios


def draw_by_weight(rng: np.random.Generator, weights: Array) -> NDArray[np.int64]:
    """Draw from every row a candidate with probability ∝ its weight."""
    sums = weights.cumsum(axis=1)
    places: NDArray[np.int64] = (rng.random((len(weights), 1)) * sums[:, -1:] >= sums).sum(axis=1)
    places[places == weights.shape[1]] -= 1  # a draw that rounds up to the sum
    return places


def permute_and_flip_coins(rng: np.random.Generator, weights: Array) -> NDArray[np.int64]:
    """Take from every row the first candidate, in random order, with a successful coin; the best always succeeds."""
    runs, size = weights.shape
    order = rng.permuted(np.tile(np.arange(size), (runs, 1)), axis=1)
    taken = np.full(runs, -1)
    for place in range(size):
        candidate = order[:, place]
        flipped = rng.random(runs) < weights[np.arange(runs), candidate]
        taken = np.where((taken < 0) & flipped, candidate, taken)
    return taken
