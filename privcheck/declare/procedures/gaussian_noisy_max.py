"""Report-noisy-max with Gaussian noise: the index of the largest noisy score, and on request its gap to the next.

The theorem and its proof are in `docs/programs.md`: the price grows with the number of candidates, and never exceeds
that of all noisy scores together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, moved_by_a_user, set_words
from privcheck.declare.procedures.gaussian_threshold import (
    cost_of_all,
    epsilon_at,
    events_of,
    larger_delta,
    log_winner,
    outcomes_of,
)
from privcheck.declare.relations import Relation
from privcheck.terms.parameters import Condition, number, truth
from privcheck.terms.symbols import Exact, Expr

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_THEOREM: Final = "docs/programs.md, lemma gaussian-noisy-max; or all noisy scores: Gaussian with μ = √m·Δ/s"
_MOST_SEEN: Final = 256  # candidates near the maximum in pairs
_TARGETS: Final = (1e-2, 1e-5, 1e-9)  # δ of the upper bound at which pairs are chosen, …
_PARTS: Final = (0.7, 0.85, 1.0)  # … at these parts of its ε
_AHEAD: Final = np.linspace(-9.0, 9.0, 121)  # by how many standard deviations the second group leads


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoisyMax:
    """Every score gets fresh Gaussian noise, and the index of the largest noisy score is released.

    Attributes:
        name: Name, unique in the declaration.
        std: s, standard deviation of one draw.
        candidates: m, number of candidates, 2 or more; the price grows with it.
        sensitivity: Δ, the largest change of one score by one trajectory of a user; all scores may change at once. A
            user with up to m trajectories changes it by m·Δ, which is charged.
        monotone: Whether the scores of two neighbours differ in one direction only.
        gap: Whether the gap between the two largest noisy scores is released too.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    std_of_noise: Expr
    candidates: Expr
    sensitivity: Expr
    monotone: bool
    gap: bool
    users: str
    source: str

    def __init__(
        self, name: str, *, std: Exact | Expr, candidates: Exact | Expr, sensitivity: Exact | Expr = 1,
        monotone: bool = False, gap: bool = False, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        for key, flag in {"monotone": monotone, "gap": gap}.items():
            truth(f"{key}, of GaussianNoisyMax", flag)
            object.__setattr__(self, key, flag)
        object.__setattr__(self, "std_of_noise", number("std, of GaussianNoisyMax", std))
        for key, amount in {"candidates": candidates, "sensitivity": sensitivity}.items():
            object.__setattr__(self, key, number(f"{key}, of GaussianNoisyMax", amount))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        moves = f"each moved by at most {self.sensitivity}" + (", all one way" if self.monotone else "")
        shown = "; the gap to the next is released" if self.gap else ""
        one_way = ("between neighbours all scores move one way",) if self.monotone else ()
        noise = rf"\mathcal{{N}}\left(0, ({self.std_of_noise.latex()})^2\right)"
        return Facts(
            words=f"Gaussian noise of standard deviation {self.std_of_noise} on {self.candidates} scores, {moves}"
            f"{shown}",
            output="the index of the largest noisy score" + (", and its gap to the next" if self.gap else ""),
            latex=rf"\mathrm{{argmax}}_i\ \left(u_i + {noise}\right)",
            law="gaussian",
            spread=self.std_of_noise,
            conditions=(
                Condition(what="the standard deviation of its noise", of=self.std_of_noise, domain="positive"),
                Condition(what="the number of candidates, less one,", of=self.candidates - 1, domain="count"),
                Condition(what="the sensitivity of its scores", of=self.sensitivity, domain="nonnegative"),
            ),
            symbols=self.std_of_noise.symbols | self.candidates.symbols | self.sensitivity.symbols,
            preconditions=(f"one trajectory of a user moves each score by at most {self.sensitivity}", *one_way),
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one draw, rounded up."""
        return self.std_of_noise.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> GaussianNoisyMax:
        """Copy with `factor` times the standard deviation of all noise."""
        kept = {key: getattr(self, key) for key in self.__slots__ if key != "std_of_noise"}
        return GaussianNoisyMax(std=self.std_of_noise * factor, **kept)

    def cost(self, relation: Relation) -> Cost:
        """Price as a post-processing of all noisy scores, exact; the sharper price is in `events`."""
        moved, m = moved_by_a_user(self.sensitivity, relation), self.candidates
        squared = (m * (moved / self.std_of_noise) ** 2).simplified()
        return cost_of_all("scores", m, moved, squared, monotone=self.monotone, theorem=_THEOREM)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Curve of lemma `gaussian-noisy-max`, or of all noisy scores where that is lower, at many ε."""
        return events_of(self._points(relation, values))

    def _points(self, relation: Relation, values: Mapping[str, Fraction]) -> Mapping[float, float]:
        """Points (ε, δ) of the upper bound; empty if no user changes a score."""
        from privcheck.accounting.engine.stopped import noisy_max_profile

        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="up")
        if moved == 0:
            return {}
        over = math.nextafter(moved / self.std_of_noise.number(values, rounding="down"), math.inf)
        ways = 1 if self.monotone else 2
        return noisy_max_profile(
            shift=ways * over, candidates=int(self.candidates.number(values)), monotone=self.monotone
        )

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Two groups of equal candidates, one of which gains on the other; all others are far behind."""
        points = self._points(relation, values)
        if not points:
            return ()
        moved = moved_by_a_user(self.sensitivity, relation).number(values, rounding="down")
        std = self.std_of_noise.number(values, rounding="up")
        return tuple(_pairs(std, int(self.candidates.number(values)), moved, points, monotone=self.monotone))


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianWinnerRuns:
    """Runs of the selection on two groups of candidates, scored by the ratio of the group's probabilities.

    Attributes:
        std: s.
        sizes: Number of candidates of each group.
        scores: Scores of both groups in D and in D′.
        log_ratios: Log-likelihood ratios by the winner's group.
    """

    std: float
    sizes: tuple[int, int]
    scores: tuple[tuple[float, float], tuple[float, float]]
    log_ratios: tuple[float, float]

    @property
    def numbers(self) -> int:
        """One per candidate."""
        return sum(self.sizes)

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        on, off = (np.repeat(scores, self.sizes) for scores in self.scores)
        held = np.where(on_first[:, np.newaxis], on, off)
        winner = (held + rng.normal(0.0, self.std, held.shape)).argmax(axis=1)
        ratios: Array = np.array(self.log_ratios)[(winner >= self.sizes[0]).astype(np.int64)]
        return ratios


def _pairs(
    std: float, candidates: int, moved: float, points: Mapping[float, float], *, monotone: bool
) -> Iterator[KnownPair]:
    """Yield pairs of groups of n and k candidates, by how far the second leads where δ(ε) is largest at some ε."""
    most = min(candidates, _MOST_SEEN)
    targets = [epsilon_at(points, target, part) for target in _TARGETS for part in _PARTS]
    for n, k in sorted({(1, 1), (1, most - 1), (most - 1, 1), ((most + 1) // 2, most // 2)}):
        groups = _Groups(std=std, n=n, k=k, rest=candidates - n - k, moved=moved, monotone=monotone)
        laws = [(ahead, *groups.logs(ahead)) for ahead in _AHEAD.tolist()]
        for ahead in sorted({_worst(laws, epsilon) for epsilon in targets}):
            yield from groups.pairs(ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """Pairs of two groups of equal candidates, the first of which gains on the second.

    Attributes:
        std: s.
        n: Number of candidates of the first group.
        k: Number of candidates of the second.
        rest: Number of other candidates, far behind.
        moved: Δ.
        monotone: Whether only the first group's scores change.
    """

    std: float
    n: int
    k: int
    rest: int
    moved: float
    monotone: bool

    def scores(self, ahead: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Scores of both groups in D and in D′; the second leads by `ahead` standard deviations in D."""
        second = ahead * self.std
        return (0.0, second), (self.moved, second if self.monotone else second - self.moved)

    def logs(self, ahead: float) -> tuple[Array, Array]:
        """Compute ln P of the winner's group in D and in D′."""
        one, other = (log_winner((a - b) / self.std, self.n, self.k) for a, b in self.scores(ahead))
        return one, other

    def pairs(self, ahead: float) -> Iterator[KnownPair]:
        """Yield the pair in both directions."""
        scores, logs = self.scores(ahead), self.logs(ahead)
        told = [f"{self.n} × {one[0]:.6g} and {self.k} × {one[1]:.6g}" for one in scores]
        others = f"; the other {self.rest} are far behind" if self.rest else ""
        for i, j in ((0, 1), (1, 0)):
            outcomes = outcomes_of(logs[i], logs[j])
            first, second = (outcomes.log_p - outcomes.log_q).tolist()
            yield KnownPair(
                words=f"in D the best scores are {told[i]}; in D′ {told[j]}{others}; seen: the winner's group",
                data=(told[i], told[j]),
                outcomes=outcomes,
                sampler=GaussianWinnerRuns(
                    std=self.std, sizes=(self.n, self.k), scores=(scores[i], scores[j]), log_ratios=(first, second)
                ),
            )


def _worst(laws: Sequence[tuple[float, Array, Array]], epsilon: float) -> float:
    """Lead with the largest δ(ε), approximately, in either direction."""
    return max(laws, key=lambda law: larger_delta(np.exp(law[1]), np.exp(law[2]), epsilon))[0]
