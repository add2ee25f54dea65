"""Randomised response of one user on a category, and helpers shared by all local randomisers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, set_words
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import Exact, Expr, exp, expression, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_Local = TypeVar("_Local")
_RESPONSE: Final = "Kairouz, Oh & Viswanath 2016: ratios of at most e^ε; ρ = ε·tanh(ε/2), as of any ε-DP mechanism"


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse:
    """The user's category with probability e^ε/(e^ε + k − 1), otherwise one of the k − 1 others.

    Attributes:
        name: Name, unique in the declaration.
        categories: k, number of categories, at least 2.
        epsilon: ε in nats; 1/ε is taken as the spread of its noise.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    categories: Expr
    epsilon: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, categories: Exact | Expr, epsilon: Exact | Expr, users: str = "", source: str = ""
    ) -> None:
        set_words(self, name=name, users=users, source=source)
        object.__setattr__(self, "categories", number("categories, of RandomisedResponse", categories))
        object.__setattr__(self, "epsilon", number("epsilon, of RandomisedResponse", epsilon))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=f"randomised response over {self.categories} categories with ε = {self.epsilon}",
            output="a category",
            latex=rf"\mathrm{{RR}}_{{{self.categories.latex()}}}\left({self.epsilon.latex()}\right)",
            law="randomised response",
            spread=self.spread,
            conditions=(
                Condition(what="the number of categories, less one,", of=self.categories - 1, domain="count"),
                Condition(what="ε of its answers", of=self.epsilon, domain="positive"),
            ),
            symbols=self.categories.symbols | self.epsilon.symbols,
            schedule="once for every user",
            models=("local",),
            preconditions=(f"a user has one of {self.categories} categories",),
            source=self.source,
        )

    @property
    def spread(self) -> Expr:
        """1/ε."""
        return 1 / self.epsilon

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Its spread, rounded up."""
        return self.spread.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> RandomisedResponse:
        """Copy with `factor` times the spread, that is with ε divided by the factor."""
        return with_fields(self, epsilon=self.epsilon / factor)

    def cost(self, relation: Relation) -> Cost:
        """Cost ε, attained by two answers, and ε·tanh(ε/2) in zCDP, as for any ε-DP mechanism.

        Binary randomised response dominates every ε-DP mechanism, and its D_α/α is largest at α = 1.

        Raises:
            DeclarationError: Users are added or removed, or have several records.
        """
        check_local(self.name, relation)
        return Cost(
            sensitivity=turned_bits(expression(1), "one category instead of another"), charged=expression(1),
            rho=pure_rho(self.epsilon), pure=self.epsilon, mu_squared=None, theorem=_RESPONSE,
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """The accountant's `randomized_response` event."""
        from privcheck.accounting.events import randomized_response

        epsilon, k = self.epsilon.number(values, rounding="up"), int(self.categories.number(values))
        return (randomized_response(epsilon=epsilon, categories=k),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Two users of different categories, with the law of the answer: one of the two, or another one."""
        epsilon, k = self.epsilon.number(values, rounding="down"), int(self.categories.number(values))
        other = -float(np.logaddexp(epsilon, math.log(k - 1)))  # ln of the probability of one other category
        logs = np.array([epsilon + other, other, *([other + math.log(k - 2)] if k > 2 else [])])
        swapped = logs[[1, 0, *range(2, logs.size)]]
        runs = ResponseRuns(categories=k, truth=math.exp(epsilon + other), epsilon=epsilon)
        return (
            KnownPair(
                words="in D the user has the first category; in D′ the second",
                data=("the first category", "the second category"),
                outcomes=Outcomes(log_p=logs, log_q=swapped),
                sampler=runs,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRuns:
    """Answers of a user of the first or the second category, scored by the ratio of their probabilities."""

    categories: int
    truth: float
    epsilon: float

    @property
    def numbers(self) -> int:
        """Two per run."""
        return 2

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        own = np.where(on_first, 0, 1)
        shift = rng.integers(1, self.categories, size=on_first.size)
        answers = np.where(rng.random(on_first.size) < self.truth, own, (own + shift) % self.categories)
        scores: Array = self.epsilon * ((answers == 0).astype(np.float64) - (answers == 1))
        return scores


def with_fields(one: _Local, **changes: Expr) -> _Local:
    """Copy with other fields."""
    other = copy(one)
    for key, value in changes.items():
        object.__setattr__(other, key, value)
    return other


def pure_rho(epsilon: Expr) -> Expr:
    """ε·tanh(ε/2)."""
    return epsilon * (1 - exp(-epsilon)) / (1 + exp(-epsilon))


def turned_bits(cells: Expr, reason: str) -> Sensitivity:
    """Sensitivity if `cells` bits change from 0 to 1, and as many from 1 to 0."""
    return Sensitivity(l1=2 * cells, l2=sqrt(2 * cells), linf=expression(1), reason=reason)


def check_local(name: str, relation: Relation) -> None:
    """Check that the relation compares any two records of one user.

    Raises:
        DeclarationError: The relation is another one, or has several records per user.
    """
    if not isinstance(relation, ReplaceOne) or relation.trajectories != expression(1):
        message = f"{name}: a user answers once, about one record, got the relation {relation.words!r}"
        raise DeclarationError(f"{message}; declare ReplaceOne, with a user's records as one")
