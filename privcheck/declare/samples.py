"""Schedules that sample: a round uses a random part of the users, and its members stay secret.

Outputs computed from the same users share a `Sample`: it is drawn once per round, and they are priced together. Given
that the user is in it, all of them hold the user; two separate samples would have to include the user twice.

The kind of sampling decides the cost: the same rate costs differently as a Poisson sample, as a batch of a fixed size,
and as one batch of a shuffled epoch (Chua et al. 2024; Lebeda, Regehr, Kamath & Steinke 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from privcheck.declare.statements import PublicFact, take_public
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, instance, number, one_of
from privcheck.terms.symbols import Exact, Expr

Known = Exact | Expr | PublicFact  # a number that is public
Facts = tuple[tuple[str, PublicFact], ...]  # by the name of a schedule's number
_SOUND: Final = "give a number known beforehand, such as public(…, why=…), a bound on it from the safe side"
_CHOSEN: Final = "the sample would depend on earlier losses, but its price assumes one fixed number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """Every round, each user is in the sample with the same probability, independently of all others.

    The output is the statistic of the sample. Its members stay secret.

    Attributes:
        rate: The probability with which each user is in a round's sample.
        rounds: Number of rounds, sampled afresh.
        most: Number of users at which a sample is cut off, every subset of that size being equally likely; None if it
            never is.
        users: Largest number of users; needed with `most`.
        facts: Why each of these numbers is public, as `public(…, why=…)` said it. Made, not given.
    """

    rate: Expr
    rounds: Expr
    most: Expr | None
    users: Expr | None
    facts: Facts = field(compare=False, repr=False)

    def __init__(
        self,
        *,
        rate: Known,
        rounds: Known = 1,
        most: Known | None = None,
        users: Known | None = None,
        facts: Facts = (),
    ) -> None:
        if (most is None) != (users is None):
            given, missing = ("most", "users") if users is None else ("users", "most")
            message = f"Poisson: expected most and users together, got {given} alone"
            raise DeclarationError(f"{message}; a truncated sample is priced by both, give {missing} too")
        set_public(self, facts, optional=("most", "users"), rate=rate, rounds=rounds, most=most, users=users)

    @property
    def times(self) -> Expr:
        """The number of rounds: a user may be in each of them."""
        return self.rounds

    @property
    def words(self) -> str:
        """The schedule in words."""
        cut = "" if self.most is None else f", cut off at {self.most}"
        return f"{self.rounds} rounds, each about a Poisson sample of the users at rate {self.rate}{cut}"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that occur in it."""
        return _symbols(self.rate, self.rounds, self.most, self.users)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The schedule's numbers with the range required of each."""
        cut = () if self.most is None or self.users is None else (self.most, self.users)
        return (
            Condition(what="the rounds of Poisson", of=self.rounds, domain="whole"),
            Condition(what="the rate of Poisson", of=self.rate, domain="nonnegative"),
            Condition(what="1 minus the rate of Poisson", of=1 - self.rate, domain="nonnegative"),
            *(
                Condition(what=f"the {name} of Poisson", of=of, domain="count")
                for name, of in zip(("most", "users"), cut, strict=False)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacement:
    """Every round, a batch of a fixed size, every subset of users of that size being equally likely.

    Attributes:
        users: Number of users; that of the larger dataset if one is added or removed.
        batch: Number of them in a round's batch.
        rounds: Number of rounds, drawn afresh.
        facts: Why each of these numbers is public, as `public(…, why=…)` said it. Made, not given.
    """

    users: Expr
    batch: Expr
    rounds: Expr
    facts: Facts = field(compare=False, repr=False)

    def __init__(self, *, users: Known, batch: Known, rounds: Known = 1, facts: Facts = ()) -> None:
        set_public(self, facts, users=users, batch=batch, rounds=rounds)

    @property
    def times(self) -> Expr:
        """The number of rounds: a user may be in each of them."""
        return self.rounds

    @property
    def words(self) -> str:
        """The schedule in words."""
        return f"{self.rounds} rounds, each about {self.batch} of {self.users} users, drawn without replacement"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that occur in it."""
        return _symbols(self.users, self.batch, self.rounds)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The schedule's numbers with the range required of each."""
        left = self.users - self.batch
        return (
            Condition(what="the rounds of WithoutReplacement", of=self.rounds, domain="whole"),
            Condition(what="the users of WithoutReplacement", of=self.users, domain="count"),
            Condition(what="the batch of WithoutReplacement", of=self.batch, domain="count"),
            Condition(what="the users of WithoutReplacement minus its batch", of=left, domain="nonnegative"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithReplacement:
    """Every round, a batch of independent uniform draws of users: a user who is drawn twice counts twice.

    Attributes:
        users: Number of users, 2 or more; that of the larger dataset if one is added or removed.
        draws: Number of draws in a round.
        rounds: Number of rounds, drawn afresh.
        facts: Why each of these numbers is public, as `public(…, why=…)` said it. Made, not given.
    """

    users: Expr
    draws: Expr
    rounds: Expr
    facts: Facts = field(compare=False, repr=False)

    def __init__(self, *, users: Known, draws: Known, rounds: Known = 1, facts: Facts = ()) -> None:
        set_public(self, facts, users=users, draws=draws, rounds=rounds)

    @property
    def times(self) -> Expr:
        """The number of rounds: a user may be in each of them."""
        return self.rounds

    @property
    def words(self) -> str:
        """The schedule in words."""
        return f"{self.rounds} rounds, each about {self.draws} draws of the {self.users} users, with replacement"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that occur in it."""
        return _symbols(self.users, self.draws, self.rounds)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The schedule's numbers with the range required of each."""
        return (
            Condition(what="the rounds of WithReplacement", of=self.rounds, domain="whole"),
            Condition(what="the users of WithReplacement, less one,", of=self.users - 1, domain="count"),
            Condition(what="the draws of WithReplacement", of=self.draws, domain="count"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEpochs:
    """Every epoch the users are put in a fresh random order and cut into batches of one size; each batch has an output.

    Attributes:
        batches: Number of batches in an epoch; a user is in exactly one of them, in each with the same probability.
        epochs: Number of epochs, shuffled afresh.
        facts: Why each of these numbers is public, as `public(…, why=…)` said it. Made, not given.
    """

    batches: Expr
    epochs: Expr
    facts: Facts = field(compare=False, repr=False)

    def __init__(self, *, batches: Known, epochs: Known = 1, facts: Facts = ()) -> None:
        set_public(self, facts, batches=batches, epochs=epochs)

    @property
    def times(self) -> Expr:
        """The number of epochs: a user is in one batch of each of them."""
        return self.epochs

    @property
    def words(self) -> str:
        """The schedule in words."""
        return f"{self.epochs} epochs, each a random order of the users cut into {self.batches} batches of one size"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that occur in it."""
        return _symbols(self.batches, self.epochs)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The schedule's numbers with the range required of each."""
        return (
            Condition(what="the epochs of ShuffledEpochs", of=self.epochs, domain="whole"),
            Condition(what="the batches of ShuffledEpochs", of=self.batches, domain="count"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BallsInBins:
    """Every epoch each user goes into one uniformly drawn bin, independently of all others; each bin has an output.

    Attributes:
        bins: Number of bins in an epoch.
        epochs: Number of epochs, drawn afresh.
        facts: Why each of these numbers is public, as `public(…, why=…)` said it. Made, not given.
    """

    bins: Expr
    epochs: Expr
    facts: Facts = field(compare=False, repr=False)

    def __init__(self, *, bins: Known, epochs: Known = 1, facts: Facts = ()) -> None:
        set_public(self, facts, bins=bins, epochs=epochs)

    @property
    def batches(self) -> Expr:
        """The number of bins."""
        return self.bins

    @property
    def times(self) -> Expr:
        """The number of epochs: a user is in one bin of each of them."""
        return self.epochs

    @property
    def words(self) -> str:
        """The schedule in words."""
        return f"{self.epochs} epochs, in each of which every user goes into one of {self.bins} bins at random"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that occur in it."""
        return _symbols(self.bins, self.epochs)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The schedule's numbers with the range required of each."""
        return (
            Condition(what="the epochs of BallsInBins", of=self.epochs, domain="whole"),
            Condition(what="the bins of BallsInBins", of=self.bins, domain="count"),
        )


Placed = ShuffledEpochs | BallsInBins  # a user is in exactly one batch of every epoch
Sampling = Poisson | WithoutReplacement | WithReplacement | Placed
SampledOf = Literal["user", "trajectory"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A random part of the users, drawn once per round, which all outputs computed from it refer to.

    The identity of this object is that of the sample: releases and selections that are given the same object see the
    same users in every round. Another object with the same numbers is another sample.

    Attributes:
        sampling: How it is drawn, and the number of rounds.
        of: The unit drawn: each "user" with all their data, or each "trajectory" by itself, which is the same if a user
            has one.

    >>> from privcheck.declare.schedules import Poisson, Sample
    >>> batch = Sample(Poisson(rate="1/10", rounds=100), of="user")
    >>> batch.words
    '100 rounds, each about a Poisson sample of the users at rate 1/10'
    """

    sampling: Sampling
    of: SampledOf = field(default="user", kw_only=True)

    def __post_init__(self) -> None:
        instance("sampling, of Sample", self.sampling, get_args(Sampling))
        one_of("of, of Sample", self.of, get_args(SampledOf))

    @property
    def times(self) -> Expr:
        """The number of rounds, or of epochs."""
        return self.sampling.times

    @property
    def words(self) -> str:
        """The schedule in words."""
        return self.sampling.words

    @property
    def facts(self) -> Facts:
        """Why each of its numbers is public."""
        return self.sampling.facts

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that occur in it."""
        return self.sampling.symbols

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The schedule's numbers with the range required of each."""
        return self.sampling.conditions


Sampled = Sampling | Sample


def _symbols(*given: Expr | None) -> frozenset[str]:
    return frozenset[str]().union(*(one.symbols for one in given if one is not None))


def set_public(one: object, facts: Facts, *, optional: tuple[str, ...] = (), **given: Any) -> None:
    """Set a schedule's numbers, each with the reason why it is public.

    Args:
        one: The schedule.
        facts: Reasons that are known already, for a copy of a schedule.
        optional: Which numbers may be None.
        given: Its numbers by name.
    """
    known = dict(facts)
    for name, amount in given.items():
        where = f"{name}, of {type(one).__name__}"
        fact = take_public(where, amount, sound=_SOUND, billboard=_CHOSEN)
        value = None if amount is None and name in optional else number(where, fact.value)
        object.__setattr__(one, name, value)
        if value is not None and (fact.why or name not in known or known[name].value != value):
            known[name] = PublicFact(value, why=fact.why)
    object.__setattr__(one, "facts", tuple(known.items()))
