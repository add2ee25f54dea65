"""Procedures on one Poisson sample of the users, drawn before all of them and kept secret.

A noisy statistic of fresh samples is a release with a schedule that samples (`SampledRelease`); here whole selections,
or several of them, see the same sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.domains import Condition
from privcheck.errors import DeclarationError
from privcheck.fields import number
from privcheck.procedures.base import (
    Array,
    Cost,
    KnownPair,
    Outcomes,
    Sampler,
    check_one_record,
    set_words,
)
from privcheck.procedures.scored_choice import ScoredChoice
from privcheck.procedures.selection import NoisyMax
from privcheck.procedures.sparse_vector import SparseVector
from privcheck.procedures.votes import NoisyVotes
from privcheck.relations import Relation, ReplaceOne
from privcheck.symbols import Exact, Expr, exp, expression, log, minimum, total
from privcheck.unit import name_relation

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Selection = NoisyMax | ScoredChoice | SparseVector | NoisyVotes
_THEOREM: Final = "Balle, Barthe & Gaboardi 2018, Theorem 8: on a Poisson sample of rate q ε is ln(1 + q(e^ε − 1))"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSample:
    """Pure selections, all on the same Poisson sample of the users.

    Attributes:
        name: Unique in the declaration.
        procedures: What sees the sample: `NoisyMax`, `ScoredChoice`, `SparseVector` or `NoisyVotes`.
        rate: The probability with which each user is in the sample.
        users: As of a `Release`.
        source: Where the paper says so.

    Raises:
        DeclarationError: There is none, or one of another kind.
    """

    name: str
    procedures: tuple[Selection, ...]
    rate: Expr
    users: str
    source: str

    def __init__(
        self, name: str, *, procedures: tuple[Selection, ...], rate: Exact | Expr, users: str = "", source: str = ""
    ) -> None:
        set_words(self, name=name, users=users, source=source)
        given: object = procedures
        if not isinstance(given, tuple | list) or not given or not all(isinstance(one, Selection) for one in given):
            message = (
                f"procedures, of OnSample: expected a tuple of selections, NoisyMax(…) and such, got {given!r:.99}"
            )
            raise DeclarationError(f"{message}; a noisy statistic is declared as Release(…, schedule=Poisson(…))")
        object.__setattr__(self, "procedures", tuple(procedures))
        object.__setattr__(self, "rate", number("rate, of OnSample", rate))

    @property
    def words(self) -> str:
        """Returns what is done, in words."""
        return f"on one Poisson sample of the users at rate {self.rate}: {'; '.join(p.words for p in self.procedures)}"

    @property
    def output(self) -> str:
        """Returns what leaves."""
        return "; ".join(one.output for one in self.procedures)

    @property
    def latex(self) -> str:
        """Returns what leaves as a formula."""
        return r",\ ".join(one.latex for one in self.procedures)

    @property
    def schedule(self) -> str:
        """Returns how often it leaves."""
        return f"one sample; {'; '.join(one.schedule for one in self.procedures)}"

    @property
    def models(self) -> tuple[str, ...]:
        """Returns the central model: a curator draws the sample."""
        return ("central",)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns the selections', and that the sample stays secret."""
        inner = (words for one in self.procedures for words in one.preconditions)
        return (*dict.fromkeys(inner), "who is in the sample is not told")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        return (
            *(condition for one in self.procedures for condition in one.conditions),
            Condition(what="the rate of its sample", of=self.rate, domain="nonnegative"),
            Condition(what="what the rate of its sample leaves of 1", of=1 - self.rate, domain="nonnegative"),
        )

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that occur in it."""
        return self.rate.symbols.union(*(one.symbols for one in self.procedures))

    @property
    def law(self) -> str:
        """Returns the law of the first one's noise."""
        return self.procedures[0].law

    @property
    def spread(self) -> Expr:
        """Returns the spread of the first one's noise."""
        return self.procedures[0].spread

    @property
    def rounds(self) -> Expr:
        """Returns 1: one sample."""
        return expression(1)

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Returns the standard deviation of one draw of the first one's noise, rounded up."""
        return self.procedures[0].std(values)

    def with_std(self, factor: Fraction) -> OnSample:
        """Returns it with all noise of so many times the standard deviation."""
        return replace(self, procedures=tuple(one.with_std(factor) for one in self.procedures))

    def cost(self, relation: Relation) -> Cost:
        """Returns ln(1 + q(e^ε − 1)), ε the sum of the selections'; ρ is the least of ε, ε²/2 and the selections' own.

        Raises:
            DeclarationError: A user is replaced, for whom nothing is proved here of selections: the price is of users
                who are in the sample or not. Or users have several trajectories. Or a selection is not ε-DP.
        """
        check_one_record(self.name, relation, why="the records of a user might be sampled one by one")
        if isinstance(relation, ReplaceOne):
            message = f"{self.name}: selections on a sample are priced for a user who is in it or not"
            raise DeclarationError(f"{message}, got {relation.words!r}; declare AddRemoveOne or ZeroOut")
        costs = [one.cost(relation) for one in self.procedures]
        if none := [p.name for p, one in zip(self.procedures, costs, strict=True) if one.pure is None]:
            message = f"{self.name}: {none[0]!r} is not ε-DP for any ε"
            raise DeclarationError(f"{message}; leave it outside of the sample, where it is charged in full")
        whole = total([one.pure for one in costs if one.pure is not None])
        pure = log(1 + self.rate * (exp(whole) - 1))
        return Cost(
            sensitivity=costs[0].sensitivity,
            charged=costs[0].charged,
            rho=minimum(pure, pure**2 / 2, total([one.rho for one in costs])),
            pure=pure,
            mu_squared=None,
            theorem=_THEOREM,
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Returns all selections as one ε-DP mechanism on the sample."""
        from privcheck.accounting.events import poisson, pure

        self.cost(relation)
        q = min(1.0, self.rate.number(values, rounding="up"))
        costs = [one.cost(relation).pure for one in self.procedures]
        whole = total([one for one in costs if one is not None]).number(values, rounding="up")
        if q == 0 or whole == 0:
            return ()
        return (poisson(event=pure(epsilon=whole), rate=q, relation=name_relation(relation)),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Returns the pairs of each selection's first round, the user of D being in the sample or not.

        Of a selection's neighbours either may be the one with the user.
        """
        q = self.rate.number(values)
        if q == 0:
            return ()
        pairs = []
        for one in self.procedures:
            for pair in one.pairs(relation, values):
                if pair.outcomes is None:
                    continue
                law = mix_outcomes(pair.outcomes, q)
                alone = pair.rounds == 1 and pair.sampler is not None
                for swapped in (False, True):
                    sampler = None
                    if alone and pair.sampler is not None:
                        sampler = SampledRuns(sampler=pair.sampler, rate=q, swapped=swapped)
                    here = "D′" if swapped else "D"
                    pairs.append(
                        KnownPair(
                            words=f"{pair.words}; the user is in {here} and in its sample with probability {q:.6g}",
                            data=pair.data[::-1] if swapped else pair.data,
                            outcomes=Outcomes(log_p=law.log_q, log_q=law.log_p) if swapped else law,
                            sampler=sampler,
                        )
                    )
        return tuple(pairs)


def mix_outcomes(outcomes: Outcomes, rate: float) -> Outcomes:
    """Returns (1 − q)Q + qP against Q."""
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(np.log1p(-rate) + outcomes.log_q, np.log(rate) + outcomes.log_p)
    return Outcomes(log_p=mixed, log_q=outcomes.log_q)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRuns:
    """Runs of a selection whose user is sampled.

    Attributes:
        sampler: Its runs with the user, on D, and without.
        rate: The probability of being in the sample.
        swapped: Whether the user is in D′ instead of D.
    """

    sampler: Sampler
    rate: float
    swapped: bool

    @property
    def numbers(self) -> int:
        """Returns one more than the selection's own."""
        return self.sampler.numbers + 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Returns the scores of fresh runs."""
        has_user = on_first != self.swapped
        ratios = self.sampler(rng, has_user & (rng.random(on_first.size) < self.rate))
        with np.errstate(divide="ignore"):
            mixed: Array = np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + ratios)
        return -mixed if self.swapped else mixed
