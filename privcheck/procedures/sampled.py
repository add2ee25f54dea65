"""A noisy statistic of a random sample of the users, round after round.

The statistic, its sensitivity and its noise are those of the release; the sample is what makes it a procedure of its
own: a user is in a round's sum with a small probability, so that the output's law is a mixture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from privcheck.domains import Condition
from privcheck.errors import ParameterError
from privcheck.procedures.base import Cost, KnownPair
from privcheck.procedures.sampled_pairs import sampled_pairs
from privcheck.procedures.sampling_costs import alone, check_sampling, sampled_cost, sampled_events
from privcheck.relations import Relation
from privcheck.releases import Release
from privcheck.symbols import Expr

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_WORDS: Final = "of a random sample"


@dataclass(frozen=True, slots=True)
class SampledRelease:
    """A release whose schedule samples the users; what a declaration makes of it.

    Attributes:
        release: The statistic of one sample with its noise; its schedule says how the users are sampled.

    Raises:
        DeclarationError: Nobody knows a dominating pair for its noise on a sample, or its noise is shared.
    """

    release: Release

    def __post_init__(self) -> None:
        check_sampling(self.release)

    @property
    def name(self) -> str:
        """Returns the release's name."""
        return self.release.name

    @property
    def users(self) -> str:
        """Returns the group whose users are sampled; empty for everybody."""
        return self.release.users

    @property
    def source(self) -> str:
        """Returns where the paper says so."""
        return self.release.source

    @property
    def words(self) -> str:
        """Returns what is drawn, in words."""
        return f"{self.release.mechanism.words}, on the {self.release.statistic.name} {_WORDS}"

    @property
    def output(self) -> str:
        """Returns what leaves."""
        return f"noisy {self.release.statistic.name}"

    @property
    def latex(self) -> str:
        """Returns what leaves in one round."""
        return rf"{self.release.statistic.latex} + {self.release.mechanism.latex}"

    @property
    def schedule(self) -> str:
        """Returns how often it leaves."""
        return self.release.schedule.words

    @property
    def models(self) -> tuple[str, ...]:
        """Returns the central model: a curator holds the data of all users and draws the samples."""
        return ("central",)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns the statistic's, and that the samples stay secret."""
        return (*self.release.statistic.preconditions, "who is in a sample is not told")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        return self.release.conditions

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that occur in it."""
        return self.release.symbols

    @property
    def law(self) -> str:
        """Returns the law of its noise."""
        return self.release.mechanism.law.name

    @property
    def spread(self) -> Expr:
        """Returns the mechanism's spread."""
        return self.release.mechanism.spread

    @property
    def rounds(self) -> Expr:
        """Returns the number of rounds."""
        return self.release.schedule.times

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Returns the standard deviation of one coordinate, rounded up."""
        return self.release.mechanism.std.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> SampledRelease:
        """Returns the release with all noise of so many times the standard deviation."""
        mechanism = self.release.mechanism
        if not hasattr(mechanism, "with_spread"):
            message = f"{self.name}: no other spread can be set of {mechanism.words}"
            raise ParameterError(f"{message}; give {type(mechanism).__name__} the method `with_spread`", name="spread")
        power = 2 if mechanism.law.gaussian else 1
        return SampledRelease(replace(self.release, mechanism=mechanism.with_spread(self.spread * factor**power)))

    def cost(self, relation: Relation) -> Cost:
        """Returns the cost of all rounds (`sampling_costs`).

        Raises:
            DeclarationError: The relation means nothing for that sampling.
        """
        return sampled_cost(alone(self.release), relation)

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Returns all rounds as events."""
        return sampled_events(alone(self.release), relation, values)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Returns users whom one number tells apart, with its law in D and in D′."""
        return sampled_pairs(alone(self.release), relation, values)
