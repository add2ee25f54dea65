"""Events for people who only have numbers: what was released, at which spread and sensitivity, how often.

Every event is a pure value, checked where it is made. Sensitivities are those of the declared neighbouring relation,
computed before anything gets here: the relation is applied once, and the accountant sees Δ/spread only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from privcheck.accounting.engine.laws import Law, LostLaw, ZcdpLaw
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.reals import whole
from privcheck.errors import ParameterError

if TYPE_CHECKING:
    from privcheck.accounting.curve import Curve

Piece = Law | ZcdpLaw | LostLaw | RenyiLaw
LEAST: Final = 1e-60  # a loss below it is rounded up to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What one mechanism releases, `count` times.

    Attributes:
        kind: The function that made it.
        parameters: Its checked parameters.
        pieces: Laws of the loss of one release, with multiplicities.
        count: How often, adaptively.
        note: What its figures rest on, where that is not exact.
    """

    kind: str
    parameters: tuple[tuple[str, float | int | str], ...]
    pieces: tuple[tuple[Piece, int], ...]
    count: int
    note: str = ""

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.count} × {self.kind}({inside})" if self.count > 1 else f"{self.kind}({inside})"

    def __mul__(self, times: object) -> Event:
        """Returns the event so many times as often.

        >>> from privcheck import accounting as acc
        >>> 3 * acc.gaussian(std=5, count=2) == acc.gaussian(std=5, count=6)
        True
        """
        return replace(self, count=whole("count", self.count * whole("count", times)))

    __rmul__ = __mul__

    def __add__(self, other: Event | Curve) -> Curve:
        """Returns the curve of both on the same data, as `compose` does."""
        from privcheck.accounting.curve import compose

        return compose(self, other)

    def __radd__(self, other: object) -> Curve:
        """Returns the curve of an event after the 0 at which `sum` begins."""
        return _after_nothing(self, other)

    def parameter(self, name: str) -> float:
        """Returns a numeric parameter."""
        return float(dict(self.parameters)[name])


def _after_nothing(what: Event, other: object) -> Curve:
    from privcheck.accounting.curve import compose

    if isinstance(other, int) and other == 0:
        return compose(what)
    raise ParameterError(f"expected events or curves on both sides of +, got {other!r}", name="other", given=other)


def event(
    kind: str, pieces: Sequence[tuple[Piece, int]], count: object, note: str = "", /, **given: float | str
) -> Event:
    """Returns an event from checked parameters; `count` is checked here."""
    parameters = tuple(given.items())
    return Event(kind=kind, parameters=parameters, pieces=tuple(pieces), count=whole("count", count), note=note)


def ratio(kind: str, top: float, bottom: float) -> float:
    """Returns Δ/spread, which must not leave the floats' range; rounded up to 1e-60, so that powers of it do not."""
    quotient = top / bottom
    if not math.isfinite(quotient) or (top > 0 and quotient == 0):
        message = f"{kind}: sensitivity/spread = {top:g}/{bottom:g} is out of range; expected between 1e-300 and 1e300"
        raise ParameterError(message, name="sensitivity", given=top)
    return max(quotient, LEAST) if quotient > 0 else 0.0
