"""Local randomisers behind a shuffler: the output is the multiset of the users' messages.

Each user sends one message per round, through their own ε₀-DP randomiser; the senders of the messages are hidden.

In the pairs that it hides badly, all other users' records are alike.

Lemma shuffled-counts: Let o(j) be the probability that a message of another user is j, r(j) the probability that the
user's message is j, and P_n the law of the counts c_j of n messages like the others'. Then P(c) = Σ_j r(j)·P_{n−1}(c −
e_j) = P_n(c)·Σ_j (c_j/n)·r(j)/o(j). Proof: remove the user's message from the n in any order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, check_one_record, set_words
from privcheck.declare.relations import AddRemoveOne, Relation, name_relation
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number, one_of
from privcheck.terms.symbols import Exact, Expr, exp, expression, log, minimum, sqrt

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Randomizer = Literal["binary response", "k-ary response", "laplace", "any"]
_MESSAGES: Final[Mapping[str, str]] = {
    "binary response": "the own bit, turned over with probability 1/(1 + e^ε₀)",
    "k-ary response": "the own category with probability e^ε₀/(e^ε₀ + k − 1), else one of the others",
    "laplace": "the own number in [0, 1] plus Laplace noise of scale 1/ε₀",
    "any": "the output of an ε₀-DP randomiser on the user's own data",
}
_CLONES: Final = "Feldman, McMillan & Talwar 2021, Theorem 3.2: any ε₀-DP randomiser hides among its clones"
_COUNT: Final = "number of ones in n binary responses, at the others' worst values (Feldman, McMillan & Talwar 2021)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledRandomizer:
    """A local randomiser behind a shuffler, once or over several rounds.

    The question of a round may depend on the outputs of earlier rounds.

    Attributes:
        name: Name, unique in the declaration.
        randomizer: "binary response", "k-ary response", "laplace" (a number in [0, 1]) or "any".
        epsilon0: ε₀ of one message in pure DP.
        senders: Number of users who send a message in every round.
        categories: k for a k-ary response, 3 or more; 2 for other randomisers.
        rounds: Number of rounds in which every user sends a message.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: `randomizer` is unknown, a number is invalid, or categories are given for a randomiser without
            any.
    """

    name: str
    randomizer: Randomizer
    epsilon0: Expr
    senders: Expr
    categories: Expr
    rounds: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, randomizer: Randomizer, epsilon0: Exact | Expr, senders: Exact | Expr,
        categories: Exact | Expr = 2, rounds: Exact | Expr = 1, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        one_of("randomizer, of ShuffledRandomizer", randomizer, get_args(Randomizer))
        object.__setattr__(self, "randomizer", randomizer)
        amounts = {"epsilon0": epsilon0, "senders": senders, "categories": categories, "rounds": rounds}
        for key, amount in amounts.items():
            object.__setattr__(self, key, number(f"{key}, of ShuffledRandomizer", amount))
        if randomizer != "k-ary response" and self.categories != expression(2):
            message = f"categories, of ShuffledRandomizer {name!r}: {randomizer} has none, got {self.categories}"
            raise DeclarationError(f"{message}; declare randomizer='k-ary response'")

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        return Facts(
            words=self._words(),
            output=f"the shuffled messages: {_MESSAGES[self.randomizer]}",
            latex=rf"\mathrm{{shuffle}}\left(R(x_1), \ldots, R(x_{{{self.senders.latex()}}})\right)",
            law=self.randomizer,
            spread=1 / self.epsilon0,
            conditions=self._conditions(),
            symbols=self.epsilon0.symbols | self.senders.symbols | self.categories.symbols | self.rounds.symbols,
            rounds=self.rounds,
            schedule="released once" if self.rounds == expression(1) else f"{self.rounds} rounds, all users in each",
            models=("shuffle",),
            preconditions=self._preconditions(),
            source=self.source,
        )

    def _words(self) -> str:
        """Description of the messages in words."""
        kind = f"{self.categories}-ary response" if self.randomizer == "k-ary response" else self.randomizer
        kind = {"any": "any local randomiser", "laplace": "local Laplace noise"}.get(kind, kind)
        return f"{kind} of ε₀ = {self.epsilon0} of {self.senders} users behind a shuffler"

    def _preconditions(self) -> tuple[str, ...]:
        """Assumptions on the users and the shuffler."""
        own = {
            "laplace": "each number is in [0, 1]",
            "any": f"each message is ({self.epsilon0})-DP, whatever earlier rounds showed",
        }.get(self.randomizer)
        told = "the senders of messages are kept secret, and the declared number of users randomise as declared"
        return (told,) if own is None else (own, told)

    def _conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        many = Condition(what="the number of categories, less two,", of=self.categories - 2, domain="count")
        return (
            Condition(what="the ε₀ of its messages", of=self.epsilon0, domain="positive"),
            Condition(what="the number of users who send messages", of=self.senders, domain="count"),
            Condition(what="its rounds", of=self.rounds, domain="whole"),
            *((many,) if self.randomizer == "k-ary response" else ()),
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one message's noise, rounded up.

        √2/ε₀ for Laplace noise; for a response √(e^ε₀ + k − 2)/(e^ε₀ − 1), that of a user who holds 0 in the unbiased
        estimate of the number who hold 1. For any other randomiser, that of Laplace noise with its ε₀.
        """
        return math.nextafter(self._std.number(values, rounding="up"), math.inf)

    @property
    def _std(self) -> Expr:
        if self.randomizer in {"laplace", "any"}:
            return sqrt(2) / self.epsilon0
        return sqrt(exp(self.epsilon0) + self.categories - 2) / (exp(self.epsilon0) - 1)

    def with_std(self, factor: Fraction) -> ShuffledRandomizer:
        """Copy with `factor` times the standard deviation of every message's noise.

        With y = e^ε₀ − 1 a response has (std)² = (y + k − 1)/y², which is a quadratic equation in y.
        """
        if self.randomizer in {"laplace", "any"}:
            return replace(self, epsilon0=self.epsilon0 / factor)
        square = (self._std * factor) ** 2
        return replace(self, epsilon0=log(1 + (1 + sqrt(1 + 4 * square * (self.categories - 1))) / (2 * square)))

    def cost(self, relation: Relation) -> Cost:
        """Cost of a user's own message, ε₀ per round; the accountant computes the amplification by the others.

        Raises:
            DeclarationError: The relation adds or removes a user, although the number of messages is public; or a user
                has several trajectories, and sends one message.
        """
        check_one_record(self.name, relation, why="a user sends one message a round")
        if isinstance(relation, AddRemoveOne):
            message = f"{self.name}: the number of messages that leave a shuffler is public"
            raise DeclarationError(f"{message}: declare ReplaceOne or ZeroOut, not AddRemoveOne")
        pure = (self.rounds * self.epsilon0).simplified()
        one = expression(1)
        return Cost(
            sensitivity=Sensitivity(l1=one, l2=one, linf=one, reason="a user is one message"),
            charged=one,
            rho=self.rounds * minimum(self.epsilon0**2 / 2, self.epsilon0),
            pure=pure,
            mu_squared=None,
            theorem=f"{_COUNT if self.randomizer == 'binary response' else _CLONES}; this line is a message's own ε₀",
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """All rounds as the clones pair; for binary responses as the law of their count."""
        from privcheck.accounting.events.shuffled import shuffled, shuffled_randomized_response

        self.cost(relation)
        rounds, users = int(self.rounds.number(values)), int(self.senders.number(values))
        local, name = self.epsilon0.number(values, rounding="up"), name_relation(relation)
        if not rounds:
            return ()
        if self.randomizer == "binary response":
            return (shuffled_randomized_response(epsilon=local, users=users, relation=name, count=rounds),)
        return (shuffled(local_epsilon=local, users=users, relation=name, count=rounds),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Users among others who all hold the same value, with the exact law of counts of messages.

        For Laplace noise the number of messages above ½, and above 1, is observed: a post-processing of the messages.
        """
        rounds, users = int(self.rounds.number(values)), int(self.senders.number(values))
        local = self.epsilon0.number(values, rounding="down")
        if not rounds or local == 0 or self.randomizer == "any":
            return ()
        if self.randomizer == "k-ary response":
            categories = int(self.categories.number(values))
            among = CountedCategories(users=users, epsilon=local, categories=categories)
            response = CountedBits(users=users, first=math.exp(local) * among.other, others=among.other)
            names = ("category 1", "category 2", "category 0")
            return (*_pairs(names, among, rounds)[:1], *_pairs(("category 1", *names[2:] * 2), response, rounds))
        if self.randomizer == "binary response":
            flipped = 1 / (1 + math.exp(local))
            bits = CountedBits(users=users, first=1 - flipped, others=flipped)
            return _pairs(("the bit 1", "the bit 0", "the bit 0"), bits, rounds)
        above = ((-math.expm1(-local / 2) + 1) / 2, math.exp(-local / 2) / 2), (0.5, math.exp(-local) / 2)
        counted = (CountedBits(users=users, first=one, others=zero) for one, zero in above)
        return tuple(pair for bits in counted for pair in _pairs(("1", "0", "0"), bits, rounds))


def _pairs(held: tuple[str, str, str], counted: CountedBits | CountedCategories, rounds: int) -> tuple[KnownPair, ...]:
    """The pair in both orders, from the values of the user in D and in D′, and of everybody else."""
    law = counted.outcomes()
    pairs = []
    for swapped in (False, True):
        first, second = held[:2][::-1] if swapped else held[:2]
        pairs.append(
            KnownPair(
                words=f"in D the user holds {first}; in D′ {second}; everybody else holds {held[2]}; {counted.words}",
                data=(first, second),
                outcomes=Outcomes(log_p=law.log_q, log_q=law.log_p) if swapped else law,
                rounds=rounds,
                sampler=CountedRounds(counted=counted, rounds=rounds, swapped=swapped),
            )
        )
    return tuple(pairs)


_CELLS: Final = 50_000  # of the loss that counts of two categories are merged into, where they are more
_MOST: Final = 2e7  # pairs of counts that are looked at; where they are more, one count alone
_WIDTH: Final = 20  # of an enumerated binomial law, in standard deviations of a fair coin's


class MessageCount(Protocol):
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

    counted: MessageCount
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
