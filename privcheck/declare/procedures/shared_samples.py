"""Outputs of one sample of the users: selections on it, and all releases of a declaration that share it.

A noisy statistic with its own samples is a `Release`. Here whole selections use a sample, alone or together with noisy
statistics of the same users; all parts that refer to one `Sample` are priced, attacked and run as one output
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
_UNTOLD: Final = "the members of the sample are kept secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSample:
    """Pure selections, all on the same Poisson sample of the users.

    Attributes:
        name: Name, unique in the declaration.
        procedures: Selections on the sample: `NoisyMax`, `ScoredChoice`, `SparseVector` or `NoisyVotes`.
        sample: The sample that they use, in every one of its rounds; other selections and releases with the same
            `Sample` object use the same users.
        fresh: States that its sample is drawn independently of all other releases' samples with the same law.
        users: As in a `Release`.
        source: Reference in the paper.

    Raises:
        DeclarationError: There is no selection, or one of another kind; not exactly one of `sample` and `rate` is
            given; or selections are not priced on the sample.
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
        """Check the selections and their sample.

        Args:
            name: Name, unique in the declaration.
            procedures: Selections on the sample.
            sample: The sample, which others may share; or, instead of it,
            rate: the probability that a user is in one Poisson sample used only here.
            fresh: States that the sample is independent of all others.
            users: As in a `Release`.
            source: Reference in the paper.
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
            raise DeclarationError(
                f"{message}; give sample=Sample(Poisson(rate=…)) if other releases see the same users"
            )
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
        """Probability that a user is in the sample."""
        assert isinstance(self.sample.sampling, Poisson)
        return self.sample.sampling.rate

    @property
    def drawn(self) -> OneSample:
        """All outputs of the sample."""
        return OneSample(name=self.name, sampling=self.sample.sampling, selections=self.procedures)

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
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
                Condition(what="1 minus the rate of its sample", of=1 - self.rate, domain="nonnegative"),
            ),
            symbols=self.sample.symbols.union(*(one.symbols for one in each)),
            rounds=self.sample.times,
            schedule=f"{self.sample.words}; {'; '.join(one.schedule for one in each)}",
            preconditions=(*dict.fromkeys(words for one in each for words in one.preconditions), _UNTOLD),
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of the first part's noise, rounded up."""
        return self.procedures[0].std(values)

    def with_std(self, factor: Fraction) -> OnSample:
        """Copy with `factor` times the noise of all selections, on the same sample."""
        procedures = tuple(one.with_std(factor) for one in self.procedures)
        return OnSample(
            self.name, procedures=procedures, sample=self.sample, fresh=self.fresh, users=self.users, source=self.source
        )

    def cost(self, relation: Relation) -> Cost:
        """Amplified cost of all selections together.

        Raises:
            DeclarationError: As in `sampled_cost`.
        """
        return sampled_cost(self.drawn, relation)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """All rounds as events, the selections of each round as one ε-DP mechanism on the sample."""
        self.cost(relation)
        return sampled_events(self.drawn, relation, values)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Pairs of the selections, with the user in D or in D′, and in the sample or not."""
        return sampled_pairs(self.drawn, relation, values)


@dataclass(frozen=True, slots=True)
class SharedSample:
    """All outputs of one `Sample`: combines the releases and selections of a declaration that refer to it.

    Attributes:
        parts: Two or more releases or selections, in the order of the declaration.
    """

    parts: tuple[Release | OnSample, ...]

    @property
    def drawn(self) -> OneSample:
        """All outputs of the sample."""
        releases = tuple(one for one in self.parts if not isinstance(one, OnSample))
        selections = tuple(p for one in self.parts if isinstance(one, OnSample) for p in one.procedures)
        sampling = self.sample.sampling
        return OneSample(name=self.name, sampling=sampling, releases=releases, selections=selections)

    @property
    def sample(self) -> Sample:
        """The sample."""
        sample = sample_of(self.parts[0])
        assert sample is not None
        return sample

    @property
    def name(self) -> str:
        """Names of all parts, joined."""
        return SHARED.join(one.name for one in self.parts)

    @property
    def users(self) -> str:
        """Group from which users are sampled; empty for all users."""
        return self.parts[0].users

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
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
        """Standard deviation of the first part's noise, rounded up."""
        return self.parts[0].std(values)

    def with_std(self, factor: Fraction) -> SharedSample:
        """Copy with `factor` times the noise of all parts, on the same sample."""
        return replace(self, parts=tuple(one.with_std(factor) for one in self.parts))

    def cost(self, relation: Relation) -> Cost:
        """Cost of all rounds, where all parts of a round are one output.

        Raises:
            DeclarationError: As in `sampled_cost`.
        """
        return sampled_cost(self.drawn, relation)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """All rounds as events of the numeric accountant."""
        return sampled_events(self.drawn, relation, values)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Pairs distinguished by all outputs of a round together; if none is known, the pairs of each part alone."""
        own = (pair for one in self.parts for pair in one.pairs(relation, values))
        return sampled_pairs(self.drawn, relation, values) or tuple(own)


def sample_of(one: Release | OnSample) -> Sample | None:
    """Sample that a release refers to; None if its schedule is not shared."""
    drawn = one.sample if isinstance(one, OnSample) else one.schedule
    return drawn if isinstance(drawn, Sample) else None


def draw_together(parts: Sequence[Release | OnSample]) -> Iterator[Release | OnSample | SharedSample]:
    """Yield the parts, combining those that refer to the same `Sample` object at the place of the first."""
    groups: dict[int, list[Release | OnSample]] = {}
    for part in parts:
        sample = sample_of(part)
        groups.setdefault(id(part if sample is None else sample), []).append(part)
    yield from (group[0] if len(group) == 1 else SharedSample(tuple(group)) for group in groups.values())
