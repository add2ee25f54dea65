"""Events for callers with numbers only: the mechanism, its spread and sensitivity, and its count.

Every event is a pure value, checked where it is made. The neighbouring relation is applied once. Where the caller
applied it, in Δ/spread or in ε, the event holds for that relation and names none. Where the event applies it, because
the price depends on how neighbours differ (samples, shuffled users), `relation` is required, stays with the event and
with everything made of it, and prices under two relations cannot be added: a pair of data sets is a neighbour under
one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar

from privcheck.accounting.engine.laws import Law, LostLaw, ZcdpLaw
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.reals import Real, decimal, exactly, whole
from privcheck.errors import ParameterError
from privcheck.terms.unit import RelationName

if TYPE_CHECKING:
    from privcheck.accounting.curve import Curve
    from privcheck.accounting.figures import Figure

Piece = Law | ZcdpLaw | LostLaw | RenyiLaw
P = ParamSpec("P")
R = TypeVar("R")
_SHORT: Final = 24  # characters of a fraction that is shown as it was given
LEAST: Final = 1e-60  # a loss below it is rounded up to it
REPLACING: Final[tuple[RelationName, ...]] = ("replace-one", "replace-one-same-start")
PRESENT: Final[tuple[RelationName, ...]] = ("add-remove", "zero-out")  # the user contributes, or nothing does


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Releases of one mechanism, `count` times.

    Attributes:
        kind: Name of the function that made it.
        parameters: Its checked parameters.
        pieces: Laws of the loss of one release, with multiplicities.
        count: Number of releases, adaptively composed.
        note: Bounds or assumptions behind its figures, where they are not exact.
        relation: Neighbouring relation of the price; None where the caller applied one, in Δ or in ε.
        fractions: The parameters given exactly that are not the decimal of a float: a third is charged as a third.
    """

    kind: str
    parameters: tuple[tuple[str, float | int | str], ...]
    pieces: tuple[tuple[Piece, int], ...]
    count: int
    note: str
    relation: RelationName | None
    fractions: tuple[tuple[str, Fraction], ...] = ()

    def __str__(self) -> str:
        named = () if self.relation is None else (("relation", self.relation),)
        said = {name: str(value) for name, value in self.fractions if len(str(value)) <= _SHORT}
        inside = ", ".join(f"{name}={said.get(name, value)}" for name, value in (*self.parameters, *named))
        return f"{self.count} × {self.kind}({inside})" if self.count > 1 else f"{self.kind}({inside})"

    def __mul__(self, times: object) -> Event:
        """Multiply the count of the event.

        >>> from privcheck import accounting as acc
        >>> 3 * acc.gaussian(std=5, count=2) == acc.gaussian(std=5, count=6)
        True
        """
        return replace(self, count=whole("count", self.count * whole("count", times)))

    __rmul__ = __mul__

    def __add__(self, other: Event | Curve) -> Curve:
        """Compose both on the same data, as `compose` does."""
        from privcheck.accounting.curve import compose

        return compose(self, other)

    def __radd__(self, other: object) -> Curve:
        """Add the event to the 0 at which `sum` begins."""
        return _after_nothing(self, other)

    def epsilon(self, *, delta: Real) -> Figure:
        """Compute ε of the event alone at a δ, as its curve does.

        >>> from privcheck import accounting as acc
        >>> round(acc.gaussian(std=5).epsilon(delta=1e-6).value, 4)
        0.8341
        """
        from privcheck.accounting.curve import compose

        return compose(self).epsilon(delta=delta)

    def delta(self, *, epsilon: Real) -> Figure:
        """Compute δ of the event alone at an ε, as its curve does."""
        from privcheck.accounting.curve import compose

        return compose(self).delta(epsilon=epsilon)

    def parameter(self, name: str) -> float:
        """Look up a numeric parameter."""
        return float(dict(self.parameters)[name])

    def amount(self, name: str) -> Fraction:
        """Look up a numeric parameter exactly: the given fraction, or the decimal that its float prints as."""
        return next((value for known, value in self.fractions if known == name), None) or decimal(self.parameter(name))


def _after_nothing(what: Event, other: object) -> Curve:
    from privcheck.accounting.curve import compose

    if isinstance(other, int) and other == 0:
        return compose(what)
    raise ParameterError(f"expected events or curves on both sides of +, got {other!r}", name="other", given=other)


def event(
    kind: str,
    pieces: Sequence[tuple[Piece, int]],
    count: object,
    note: str = "",
    /,
    *,
    relation: RelationName | None,
    **given: float | str,
) -> Event:
    """Make an event from checked parameters; `count` is checked here."""
    return Event(
        kind=kind,
        parameters=tuple(given.items()),
        pieces=tuple(pieces),
        count=whole("count", count),
        note=note,
        relation=relation,
    )


def keep_fractions(made: Event, **said: object) -> Event:
    """Keep the exact values of parameters that no float holds, as the caller wrote them: a filter charges those.

    Args:
        made: The event, from checked parameters.
        **said: Parameters of the event as given by the caller.
    """
    known = [(name, exactly(name, value)) for name, value in said.items() if type(value) is not float]
    fractions = tuple((name, value) for name, value in known if value != decimal(made.parameter(name)))
    return replace(made, fractions=fractions) if fractions else made


def under(*known: RelationName, otherwise: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the relation of a price before anything else: every price that depends on a relation requires it.

    Args:
        known: Relations with a known price.
        otherwise: Reason why there is no price under the other relations.
    """

    def wrap(make: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(make)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            relation = given.get("relation")
            if not isinstance(relation, str) or relation not in known:
                message = f"{make.__name__}: expected relation= one of {', '.join(map(repr, known))}"
                got = f"got {relation!r:.80}" if "relation" in given else "got none"
                message += f": name the neighbouring relation of the price; {got}"
                message += f" ({otherwise})" if otherwise and "relation" in given else ""
                raise ParameterError(message, name="relation", given=relation)
            return make(*args, **given)

        return checked

    return wrap


def join_notes(*notes: str) -> str:
    """Join the notes of an event's parts, each once and in order: anything made of a bound is a bound."""
    return "; ".join(dict.fromkeys(part for note in notes for part in note.split("; ") if part))


class Priced(Protocol):
    """Value that holds under a neighbouring relation: an event, a curve, a cost."""

    @property
    def relation(self) -> RelationName | None:
        """Name of the relation; None where the caller applied one."""
        ...


def one_relation(parts: Iterable[Priced]) -> RelationName | None:
    """Find the one relation under which all parts hold; None where no part names one.

    Raises:
        ParameterError: Two parts name different relations.
    """
    first: Priced | None = None
    for part in parts:
        if part.relation is None:
            continue
        if first is None:
            first = part
        elif part.relation != first.relation:
            message = f"priced under {first.relation} and under {part.relation}: {first!s:.200} and {part!s:.200}"
            remedy = "they refer to different pairs of datasets; price all events under the relation of the data"
            raise ParameterError(f"{message}; {remedy}", name="relation", given=part.relation)
    return None if first is None else first.relation


def ratio(kind: str, top: float, bottom: float) -> float:
    """Δ/spread, which must not leave the floats' range; rounded up to 1e-60, so that its powers stay in range."""
    quotient = top / bottom
    if not math.isfinite(quotient) or (top > 0 and quotient == 0):
        message = f"{kind}: sensitivity/spread = {top:g}/{bottom:g} is out of range; expected between 1e-300 and 1e300"
        raise ParameterError(message, name="sensitivity", given=top)
    return max(quotient, LEAST) if quotient > 0 else 0.0
