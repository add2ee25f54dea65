"""Exact laws of counts of shuffled messages where one user's record differs from all others'.

Let o(j) be the probability that a message of another user is j, r(j) the probability that the user's message is j, and
P_n the law of the counts c_j of n messages like the others'. Removing the user's message from the n in any order gives

    P(c) = Σ_j r(j)·P_{n−1}(c − e_j) = P_n(c)·Σ_j (c_j/n)·r(j)/o(j).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Outcomes

_CELLS: Final = 50_000  # of the loss that counts of two categories are merged into, where they are more
_MOST: Final = 2e7  # pairs of counts that are looked at; where they are more, one count alone
_WIDTH: Final = 20  # of an enumerated binomial law, in standard deviations of a fair coin's


class Counted(Protocol):
    """A count of shuffled messages."""

    def outcomes(self) -> Outcomes:
        """Laws of the count in D and in D′."""
        ...

    def log_ratios(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw counts in D or D′ and return their log-likelihood ratios."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedBits:
    """Number of messages that are ones: the user's with probability `first` in D, and all others as in D′.

    Attributes:
        users: n, number of users.
        first: Probability in D that the user's message is a one.
        others: Probability for all other users' messages, and for the user's in D′; in (0, 1).
    """

    users: int
    first: float
    others: float

    @property
    def words(self) -> str:
        """Description of the counts."""
        return (
            f"the statistic is the number of messages above a threshold, each with probability {self.others:.6g} "
            "except the user's"
        )

    def outcomes(self) -> Outcomes:
        """Bin(n − 1, o) + Bern(r) against Bin(n, o)."""
        from privcheck.accounting.shuffle.sums import binomial_window

        low, logs, _ = binomial_window(self.users, self.others)
        counts = low + np.arange(len(logs), dtype=np.float64)
        return Outcomes(log_p=logs + self._log_ratio(counts), log_q=logs)

    def log_ratios(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw counts and return their log-likelihood ratios."""
        own = rng.random(on_first.size) < np.where(on_first, self.first, self.others)
        return self._log_ratio(rng.binomial(self.users - 1, self.others, on_first.size) + own.astype(np.float64))

    def _log_ratio(self, counts: NDArray[Any]) -> Array:
        share = counts / self.users
        weight = share * (self.first / self.others) + (1 - share) * ((1 - self.first) / (1 - self.others))
        with np.errstate(divide="ignore"):
            ratios: Array = np.log(weight)
        return ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCategories:
    """Numbers of k-ary responses that are 1 and that are 2: a user holds 1 in D and 2 in D′, all others hold 0.

    Attributes:
        users: n, number of users.
        epsilon: ε₀ of the randomiser.
        categories: k, 3 or more.
    """

    users: int
    epsilon: float
    categories: int

    @property
    def words(self) -> str:
        """Description of the counts."""
        return "the statistic is the number of responses 1 and of responses 2"

    @property
    def other(self) -> float:
        """Probability of each response other than the user's own category."""
        return math.exp(-self.epsilon) / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    def outcomes(self) -> Outcomes:
        """Laws of the two counts, with outcomes of adjacent losses merged.

        Of n others' responses, the number that are 1 or 2 is Bin(n, 2o), and each of these is 1 with probability ½.
        """
        from privcheck.accounting.shuffle.sums import binomial_window

        low, logs, _ = binomial_window(self.users, 2 * self.other)
        sums = low + np.arange(len(logs))
        if len(logs) * _WIDTH * math.sqrt(float(sums[-1])) > _MOST:
            likelier = 1 - (self.categories - 1) * self.other
            return CountedBits(users=self.users, first=likelier, others=self.other).outcomes()
        edges = np.linspace(-self.epsilon, self.epsilon, _CELLS + 1)
        laws = np.zeros((2, _CELLS))
        for s, log_mass in zip(sums.tolist(), logs.tolist(), strict=True):
            first, coin = (0, np.zeros(1)) if s == 0 else binomial_window(s, 0.5)[:2]
            ones = first + np.arange(len(coin), dtype=np.float64)
            masses = np.exp(log_mass + coin)
            weights = self._weights(ones, s - ones)
            cell = np.clip(np.searchsorted(edges, np.log(weights[0] / weights[1])), 1, _CELLS) - 1
            for law, weight in zip(laws, weights, strict=True):
                np.add.at(law, cell, masses * weight)
        log_p, log_q = np.log(laws[:, (laws > 0).all(axis=0)])
        return Outcomes(log_p=log_p, log_q=log_q)

    def log_ratios(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw counts and return their log-likelihood ratios."""
        q = self.other
        counts = rng.multinomial(self.users - 1, [q, q, 1 - 2 * q], on_first.size)[:, :2].astype(np.float64)
        likelier = 1 - (self.categories - 1) * q
        own = np.searchsorted(np.cumsum([likelier, q]), rng.random(on_first.size), side="right")
        for i in (0, 1):  # the user's own category comes first: 1 in D, 2 in D′
            counts[:, i] += own == np.where(on_first, i, 1 - i)
        weights = self._weights(counts[:, 0], counts[:, 1])
        ratios: Array = np.log(weights[0] / weights[1])
        return ratios

    def _weights(self, ones: Array, twos: Array) -> tuple[Array, Array]:
        """P(c)/P_n(c) in D and in D′; r/o is (k − 2)/(e^ε₀ + k − 3) for the remaining responses."""
        n, grown = self.users, math.exp(self.epsilon)
        rest = (n - ones - twos) / n * ((self.categories - 2) / (grown + self.categories - 3))
        return (grown * ones + twos) / n + rest, (ones + grown * twos) / n + rest


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRounds:
    """Runs of all rounds, scored by the exact likelihood ratio of the counts.

    Attributes:
        counted: The count of one round.
        rounds: Number of rounds.
        swapped: Whether D and D′ are exchanged.
    """

    counted: Counted
    rounds: int
    swapped: bool = False

    @property
    def numbers(self) -> int:
        """About three per round."""
        return 3 * self.rounds

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        scores = np.zeros(on_first.size)
        for _ in range(self.rounds):
            scores += self.counted.log_ratios(rng, on_first != self.swapped)
        return -scores if self.swapped else scores
