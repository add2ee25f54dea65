"""What leaves of one sample of the users: selections on it, and all that a declaration's releases share it for.

A noisy statistic of samples of its own is a `Release`. Here whole selections see a sample, alone or beside noisy
statistics of the same users; what refers to one `Sample` is priced, attacked and run as one output
(`privcheck.declare.procedures.sampling_costs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from privcheck.declare.procedures.base import Cost, Facts, KnownPair, set_words
from privcheck.declare.procedures.sampled_pairs import sampled_pairs
from privcheck.declare.procedures.sampling_costs import OneSample, sampled_cost, sampled_events
from privcheck.declare.procedures.scored_choice import ScoredChoice
from privcheck.declare.procedures.selection import NoisyMax
from privcheck.declare.procedures.sparse_vector import SparseVector
from privcheck.declare.procedures.votes import NoisyVotes
from privcheck.declare.relations import Relation
from privcheck.declare.schedules import Poisson, Sample
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, instance, number, truth
from privcheck.terms.symbols import Exact, Expr

if TYPE_CHECKING:
    from privcheck.accounting.events import Event
    from privcheck.declare.releases import Release

Selection = NoisyMax | ScoredChoice | SparseVector | NoisyVotes
SHARED = " + "  # joins the names of what leaves of one sample
_UNTOLD: Final = "who is in the sample is not told"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSample:
    """Pure selections, all on the same Poisson sample of the users.

    Attributes:
        name: Unique in the declaration.
        procedures: What sees the sample: `NoisyMax`, `ScoredChoice`, `SparseVector` or `NoisyVotes`.
        sample: What they see, in every one of its rounds; other selections and releases that are given the same
            `Sample` see the same users.
        fresh: That its sample is drawn independently of all others', where others are drawn alike.
        users: As of a `Release`.
        source: Where the paper says so.

    Raises:
        DeclarationError: There is none, or one of another kind; or a sample that selections are not priced on.
    """

    name: str
    procedures: tuple[Selection, ...]
    sample: Sample
    fresh: bool
    users: str
    source: str

    def __init__(
        self,
        name: str,
        *,
        procedures: tuple[Selection, ...],
        sample: Sample | None = None,
        rate: Exact | Expr | None = None,
        fresh: bool = False,
        users: str = "",
        source: str = "",
    ) -> None:
        """Checks the selections and their sample.

        Args:
            name: Unique in the declaration.
            procedures: What sees the sample.
            sample: The sample, to be shared with others; or else
            rate: of one Poisson sample of its own, the probability with which each user is in it.
            fresh: That the sample is independent of all others'.
            users: As of a `Release`.
            source: Where the paper says so.
        """
        set_words(self, name=name, users=users, source=source)
        given: object = procedures
        if not isinstance(given, tuple | list) or not given or not all(isinstance(one, Selection) for one in given):
            message = (
                f"procedures, of OnSample: expected a tuple of selections, NoisyMax(…) and such, got {given!r:.99}"
            )
            remedy = "a noisy statistic of the same sample is declared beside it: batch = Sample(Poisson(rate=…)), "
            raise DeclarationError(f"{message}; {remedy}Release(…, schedule=batch) and OnSample(…, sample=batch)")
        if (sample is None) == (rate is None):
            message = f"OnSample: expected sample= or rate=, got {'neither' if sample is None else 'both'}"
            raise DeclarationError(f"{message}; give sample=Sample(Poisson(rate=…)) where others see the same users")
        if rate is not None:
            sample = Sample(Poisson(rate=number("rate, of OnSample", rate)))
        instance("sample, of OnSample", sample, (Sample,))
        truth("fresh, of OnSample", fresh)
        assert sample is not None
        if not isinstance(sample.sampling, Poisson) or sample.sampling.most is not None:
            message = f"sample, of OnSample: selections are priced on Poisson samples, got {sample.words!r}"
            raise DeclarationError(f"{message}; declare Sample(Poisson(rate=…)), without most")
        for key, value in {"procedures": tuple(procedures), "sample": sample, "fresh": fresh}.items():
            object.__setattr__(self, key, value)

    @property
    def rate(self) -> Expr:
        """Returns the probability with which each user is in the sample."""
        assert isinstance(self.sample.sampling, Poisson)
        return self.sample.sampling.rate

    @property
    def drawn(self) -> OneSample:
        """Returns all that leaves of the sample."""
        return OneSample(name=self.name, sampling=self.sample.sampling, selections=self.procedures)

    @property
    def facts(self) -> Facts:
        """What reports say of it, and the numbers that it depends on."""
        each = [one.facts for one in self.procedures]
        return Facts(
            words=f"on one Poisson sample of the users at rate {self.rate}: {'; '.join(one.words for one in each)}",
            output="; ".join(one.output for one in each),
            latex=r",\ ".join(one.latex for one in each),
            law=each[0].law,
            spread=each[0].spread,
            conditions=(
                *(condition for one in each for condition in one.conditions),
                Condition(what="the rounds of its sample", of=self.sample.times, domain="whole"),
                Condition(what="the rate of its sample", of=self.rate, domain="nonnegative"),
                Condition(what="what the rate of its sample leaves of 1", of=1 - self.rate, domain="nonnegative"),
            ),
            symbols=self.sample.symbols.union(*(one.symbols for one in each)),
            rounds=self.sample.times,
            schedule=f"{self.sample.words}; {'; '.join(one.schedule for one in each)}",
            preconditions=(*dict.fromkeys(words for one in each for words in one.preconditions), _UNTOLD),
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Returns the standard deviation of the first one's noise, rounded up."""
        return self.procedures[0].std(values)

    def with_std(self, factor: Fraction) -> OnSample:
        """Returns all selections with so many times the noise, on the same sample."""
        procedures = tuple(one.with_std(factor) for one in self.procedures)
        return OnSample(
            self.name, procedures=procedures, sample=self.sample, fresh=self.fresh, users=self.users, source=self.source
        )

    def cost(self, relation: Relation) -> Cost:
        """Returns the amplified cost of all selections together.

        Raises:
            DeclarationError: As `sampled_cost`.
        """
        return sampled_cost(self.drawn, relation)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Returns all rounds as events, the selections of each as one ε-DP mechanism on the sample."""
        self.cost(relation)
        return sampled_events(self.drawn, relation, values)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Returns the selections' pairs, the user being in D or in D′, and in its sample or not."""
        return sampled_pairs(self.drawn, relation, values)


@dataclass(frozen=True, slots=True)
class SharedSample:
    """All that leaves of one `Sample`: what a declaration makes of releases and selections that refer to it.

    Attributes:
        parts: What leaves, two or more, in the order of the declaration.
    """

    parts: tuple[Release | OnSample, ...]

    @property
    def drawn(self) -> OneSample:
        """All that leaves of the sample."""
        releases = tuple(one for one in self.parts if not isinstance(one, OnSample))
        selections = tuple(p for one in self.parts if isinstance(one, OnSample) for p in one.procedures)
        sampling = self.sample.sampling
        return OneSample(name=self.name, sampling=sampling, releases=releases, selections=selections)

    @property
    def sample(self) -> Sample:
        """Returns the sample."""
        sample = sample_of(self.parts[0])
        assert sample is not None
        return sample

    @property
    def name(self) -> str:
        """Returns the names of all parts."""
        return SHARED.join(one.name for one in self.parts)

    @property
    def users(self) -> str:
        """Returns the group whose users are sampled; empty for everybody."""
        return self.parts[0].users

    @property
    def facts(self) -> Facts:
        """What reports say of it, and the numbers that it depends on."""
        each = [one.facts for one in self.parts]
        return Facts(
            words=f"{'; '.join(self._words())}; all of one random sample",
            output="; ".join(one.output for one in each),
            latex=r",\ ".join(one.latex for one in each),
            law=each[0].law,
            spread=each[0].spread,
            conditions=tuple(
                condition if condition.where else condition.at(f"release {part.name!r}")
                for part, one in zip(self.parts, each, strict=True)
                for condition in one.conditions
            ),
            symbols=frozenset[str]().union(*(one.symbols for one in each)),
            rounds=self.sample.times,
            schedule=f"{self.sample.words}, drawn once for {SHARED.join(repr(one.name) for one in self.parts)}",
            preconditions=tuple(dict.fromkeys(words for one in each for words in one.preconditions)),
            source="; ".join(dict.fromkeys(one.source for one in self.parts if one.source)),
        )

    def _words(self) -> Iterator[str]:
        for one in self.parts:
            if isinstance(one, OnSample):
                yield "; ".join(selection.facts.words for selection in one.procedures)
            else:
                yield f"{one.mechanism.words}, on the {one.statistic.name}"

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Returns the standard deviation of the first one's noise, rounded up."""
        return self.parts[0].std(values)

    def with_std(self, factor: Fraction) -> SharedSample:
        """Returns all parts with so many times the noise, on the same sample."""
        return replace(self, parts=tuple(one.with_std(factor) for one in self.parts))

    def cost(self, relation: Relation) -> Cost:
        """Returns the cost of all rounds, all parts of a round being one output.

        Raises:
            DeclarationError: As `sampled_cost`.
        """
        return sampled_cost(self.drawn, relation)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Returns all rounds as one event."""
        return sampled_events(self.drawn, relation, values)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Returns users whom all outputs of a round tell apart together; where none is known, whom each does alone."""
        own = (pair for one in self.parts for pair in one.pairs(relation, values))
        return sampled_pairs(self.drawn, relation, values) or tuple(own)


def sample_of(one: Release | OnSample) -> Sample | None:
    """Return the sample that a release refers to; None of one whose schedule is its own."""
    drawn = one.sample if isinstance(one, OnSample) else one.schedule
    return drawn if isinstance(drawn, Sample) else None


def draw_together(parts: Sequence[Release | OnSample]) -> Iterator[Release | OnSample | SharedSample]:
    """Yield what refers to one sample as one, in the place of the first: the object counts, not its numbers."""
    groups: dict[int, list[Release | OnSample]] = {}
    for part in parts:
        sample = sample_of(part)
        groups.setdefault(id(part if sample is None else sample), []).append(part)
    yield from (group[0] if len(group) == 1 else SharedSample(tuple(group)) for group in groups.values())
