"""Spending fixed in advance: a plan of events with counts, from which each release is counted down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from privcheck.accounting.combining import combine
from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.events import Event
from privcheck.accounting.events.base import one_relation
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real
from privcheck.errors import BudgetError, ParameterError
from privcheck.terms.unit import RelationName

_SCHEMA: Final = 1  # of what is hashed
_SHORTENED: Final = (
    "mixture_of_gaussians",
    "matrix_poisson_gaussian",
    "matrix_random_allocation",
)  # their parameters leave something out


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Events with counts, fixed in advance: the guarantee is their exact curve, for any part of them that is released.

    Lemma plan-any-order: The choice of the next event, and the decision to stop, may depend on every earlier answer;
    parameters and counts may not. With S the remaining events, δ of the rest is then at most that of all of S composed.
    Proof: after an event X of S it is E_X[δ_{S∖X}(ε − L_X)], which is δ_S(ε) by induction for every choice of X, and
    stopping leaves less.

    So a plan has a curve where adaptively chosen spending has only a sum (`privcheck.accounting.filters`).

    Attributes:
        events: Events that may be released, every event once with its count, in a fixed order; made by `of`.
        used: Number of releases used of each event.
        relation: Relation under which all events are priced; None where no event names one.

    >>> from privcheck import accounting as acc
    >>> plan = acc.Plan.of(acc.gaussian(std=30, count=1000), acc.laplace(scale=50, count=500))
    >>> round(plan.epsilon(delta=1e-6).value, 4)
    5.7011
    >>> after = plan.charge(acc.laplace(scale=50, count=499))
    >>> [event.count for event in after.remaining], after.digest == plan.digest
    ([1000, 1], True)
    >>> after.charge(acc.laplace(scale=50, count=2))
    Traceback (most recent call last):
      ...
    privcheck.errors.BudgetError: 2 × laplace(scale=50.0, sensitivity=1.0) is not left in the plan: 1 of 500 are
    """

    events: tuple[Event, ...]
    used: tuple[int, ...]
    relation: RelationName | None = field(init=False, repr=False, compare=False)
    _places: dict[Event, int] | None = field(init=False, repr=False, compare=False, default=None)  # once asked for

    def __post_init__(self) -> None:
        """Check that the events are as made by `of`, under one relation, and that no more are used than planned."""
        if not self.events or self.events != combine(self.events):
            message = "expected a plan's events as made by Plan.of(…): at least one, each once, in a fixed order"
            raise ParameterError(message, name="events", given=self.events)
        object.__setattr__(self, "relation", one_relation(self.events))
        if any(type(n) is not int for n in self.used) or len(self.used) != len(self.events):
            message = f"expected a whole number used of each of {len(self.events)} events, got {self.used!r}"
            raise ParameterError(message, name="used", given=self.used)
        for event, n in zip(self.events, self.used, strict=True):
            if not 0 <= n <= event.count:
                raise ParameterError(f"expected 0 to {event.count} used of {event}, got {n}", name="used", given=n)

    @classmethod
    def of(cls, *parts: object) -> Plan:
        """Make an unused plan; neither order nor grouping of its events matters.

        Args:
            parts: Events, one by one or in lists.

        Raises:
            ParameterError: A part is not an event, there are no events, or two events name different relations.
        """
        events: list[Event] = []
        for part in parts:
            given = [part] if isinstance(part, Event) or not isinstance(part, Iterable) else list(part)
            for event in given:
                if not isinstance(event, Event):
                    message = f"expected events such as gaussian(std=30, count=10), got {event!r}"
                    raise ParameterError(message, name="parts", given=event)
                events.append(event)
        joined = combine(events)
        return cls(events=joined, used=(0,) * len(joined))

    @property
    def curve(self) -> Curve:
        """Curve of all events: the guarantee, independent of how much is used."""
        return compose(*self.events)

    def epsilon(self, *, delta: Real) -> Figure:
        """ε at δ of all events.

        Raises:
            ParameterError: δ is out of range.
        """
        return self.curve.epsilon(delta=delta)

    def delta(self, *, epsilon: Real) -> Figure:
        """δ at ε of all events.

        Raises:
            ParameterError: ε is out of range.
        """
        return self.curve.delta(epsilon=epsilon)

    @property
    def digest(self) -> str:
        """SHA-256 of the events and their counts, in hexadecimal, independent of the use.

        Raises:
            ParameterError: An event is given by a function, which cannot be hashed.
        """
        given = [[*map(list, e.parameters), *_named(e), *_fractions(e)] for e in self.events]
        lines = [[e.kind, said, e.count, *_rest(e)] for e, said in zip(self.events, given, strict=True)]
        text = json.dumps([_SCHEMA, lines], ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def remaining(self) -> tuple[Event, ...]:
        """Events that may still be released."""
        pairs = zip(self.events, self.used, strict=True)
        return tuple(replace(e, count=e.count - n) for e, n in pairs if n < e.count)

    def place(self, event: object) -> int:
        """Index of an event in the plan, for any count.

        Raises:
            BudgetError: The event is not in the plan.
        """
        if not isinstance(event, Event):
            message = f"expected an event such as gaussian(std=30, count=10), got {event!r}"
            raise ParameterError(message, name="event", given=event)
        places = self._places
        if places is None:
            places = {replace(e, count=1): i for i, e in enumerate(self.events)}
            object.__setattr__(self, "_places", places)
        place = places.get(replace(event, count=1))
        if place is None:
            known = ", ".join(map(str, self.events[:5])) + (", …" if len(self.events) > 5 else "")
            message = f"{event} is not in the plan; expected one of {known}, with exactly these parameters"
            raise BudgetError(message, cost=event, remaining=self.remaining)
        return place

    def can_afford(self, event: Event) -> bool:
        """Whether `charge` would admit the event."""
        try:
            place = self.place(event)
        except BudgetError:
            return False
        return self.used[place] + event.count <= self.events[place].count

    def charge(self, event: Event) -> Plan:
        """Count an event down, by its count.

        Charge first, release afterwards.

        Raises:
            BudgetError: The event is not in the plan, or too few of it are left.
        """
        place = self.place(event)
        whole, used = self.events[place].count, self.used[place]
        if used + event.count > whole:
            message = f"{event} is not left in the plan: {whole - used} of {whole} are"
            raise BudgetError(message, cost=event, remaining=self.remaining)
        return replace(self, used=(*self.used[:place], used + event.count, *self.used[place + 1 :]))


def _named(event: Event) -> list[list[str]]:
    """Relation of an event as one more parameter, so that the same noise under another relation is another event."""
    return [] if event.relation is None else [["relation", event.relation]]


def _fractions(event: Event) -> list[list[str]]:
    """Parameters that no float holds, exactly: a third is not a decimal of sixteen digits."""
    return [[name, str(value)] for name, value in event.fractions]


def _rest(event: Event) -> list[str]:
    """Pieces of an event that its parameters do not determine; empty for nearly all events."""
    told = " ".join(f"{name}={value}" for name, value in event.parameters)
    if "function=" in told:
        message = f"{event} is given by a function, which has no form to hash; give a table of its values"
        raise ParameterError(message, name="events", given=event)
    if not any(kind in event.kind or kind in told for kind in _SHORTENED):
        return []
    return sorted(f"{times} {piece!r}" for piece, times in event.pieces)
