"""Laws known only by Rényi orders: no pair of outputs is given, so only Rényi orders compose them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

from privcheck.accounting.engine.laws import Floats, Repeat, as_floats
from privcheck.errors import ParameterError

_UP: Final = 1 + 4e-16  # what a product and a sum round
_INSIDE: Final = 1 - 2e-14  # a corner is not to be overshot by what a logarithm and an exponential round


class Bound(Protocol):
    """Bound on K(z) = z·D_{1+z}, z > 0, of both directions."""

    def __call__(self, z: Floats) -> Floats:
        """(m,) bounds on K at (m,) z, ∞ where nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class RenyiLaw:
    """Mechanism with only D_{1+z} ≤ K(z)/z known, in both directions.

    Attributes:
        bound: Bound K(z).
        largest: ε of pure DP, ∞ where none is known.
        drawn: Whether users are sampled inside; nothing is then known of releases that share the sample.
    """

    bound: Bound
    largest: float = math.inf
    drawn: bool = False

    @property
    def on_one_draw(self) -> Repeat | None:
        """Refusal where users are sampled inside, else None."""
        return _refuse_shared_draw if self.drawn else None

    @property
    def corners(self) -> tuple[float, ...]:
        """The z at which the bound bends or ends: one of them may be the best order."""
        return corners_of(self.bound)

    def cumulants(self, z: Floats) -> Floats:
        """(m,) bounds on K at (m,) z."""
        return self.bound(z)


def _refuse_shared_draw(times: int) -> NoReturn:
    message = f"only Rényi orders are known of a mechanism that samples users, not those of {times} releases that share"
    message += " the sample"
    raise ParameterError(f"{message}; sample outside: repeat_and_select of a tree, not a tree of it", given=times)


@dataclass(frozen=True, slots=True)
class Hull:
    """Table of orders: K is convex and K(0) = 0, so chords of the table with (0, 0) bound it between its orders.

    Attributes:
        knots: (z, K(z)) from (0, 0) upwards, convex.
        slope: Slope beyond the last knot: ε of pure DP, ∞ where none is known.
    """

    knots: tuple[tuple[float, float], ...]
    slope: float = math.inf

    def __call__(self, z: Floats) -> Floats:
        """Chords at (m,) z, rounded up; ∞ beyond the last order where no ε of pure DP is known."""
        return as_floats([self._at(x) for x in z.tolist()])

    def _at(self, z: float) -> float:
        right = bisect_left(self.knots, (z, -math.inf))
        if right == len(self.knots):
            return z * self.slope * _UP
        (z0, k0), (z1, k1) = self.knots[right - 1], self.knots[right]
        return k1 * _UP if z == z1 else (k0 + (k1 - k0) * ((z - z0) / (z1 - z0))) * _UP


@dataclass(frozen=True, slots=True)
class OrdersFunction:
    """Function from orders α to a bound on D_α, valid from one order to another.

    Attributes:
        divergence: The function.
        low: The first valid order; below it D_α ≤ D_low, because D grows with α.
        high: The last valid order.
        checked: Converts the function's result to a number, or refuses it.
    """

    divergence: Callable[[float], float]
    low: float
    high: float
    checked: Callable[[float, object], float] = field(compare=False, repr=False)

    def __call__(self, z: Floats) -> Floats:
        """z·D_{1+z} at (m,) z, rounded up; ∞ above the valid range."""
        return as_floats([self._at(x) for x in z.tolist()])

    def _at(self, z: float) -> float:
        order = 1 + z
        if order > self.high:
            return math.inf
        # 1 + z rounds: an order an ulp further up is a bound, because D grows with α
        order = min(max(math.nextafter(order, math.inf), self.low), self.high)
        return z * self.checked(order, self.divergence(order)) * _UP


def corners_of(bound: Bound) -> tuple[float, ...]:
    """The z just inside the points at which a bound bends or ends, as far as the bound reports them."""
    if isinstance(bound, Hull):
        return tuple(z * _INSIDE for z, _ in bound.knots[1:])
    if isinstance(bound, OrdersFunction) and math.isfinite(bound.high) and bound.high > 1:
        return ((bound.high - 1) * _INSIDE,)
    corners: tuple[float, ...] = getattr(bound, "corners", ())
    return corners


def lower_hull(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Lower convex hull of points with increasing first coordinates."""
    kept: list[tuple[float, float]] = []
    for x, y in points:
        while len(kept) >= 2:
            (x0, y0), (x1, y1) = kept[-2], kept[-1]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            kept.pop()
        kept.append((x, y))
    return tuple(kept)
