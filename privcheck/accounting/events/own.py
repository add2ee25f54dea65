"""User-supplied curves: results of a paper, another library or an own computation about a mechanism, as an event.

Such an event composes with all others. Tables are checked on input; between their points the curve is bounded by
theory, never interpolated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import DIRECTIONS, Floats
from privcheck.accounting.engine.orders import Hull, OrdersFunction, RenyiLaw, lower_hull
from privcheck.accounting.engine.profiles import (
    Point,
    content,
    exponential_up,
    pair_law,
    profile_law,
    total_defect,
)
from privcheck.accounting.engine.trade_offs import (
    Knots,
    below_convex,
    below_function,
    below_lines,
    below_steps,
    profile_points,
)
from privcheck.accounting.events.base import Event, Piece, event
from privcheck.accounting.reals import Real, exactly, real
from privcheck.errors import ParameterError
from privcheck.terms.symbols import to_float

Tabulated = Mapping[Real, Real] | Iterable[tuple[Real, Real]]
_MOST_POINTS: Final = 20_000
_FARTHEST: Final = 600.0  # ε of a table: e^ε has to be a float
_LEAST_MASS: Final = Fraction(1, 10**300)
_OFF: Final = 1e-12  # what sums, and values on the edge of their range, may be off by


def renyi_curve(
    divergences: Tabulated | Callable[[float], float], *, orders: tuple[Real, Real] = (1, math.inf), count: Real = 1
) -> Event:
    """Mechanism known only by its Rényi curve: D_α ≤ D(α) in both directions.

    Rényi orders compose it, like zCDP. Of a table only its orders and their implications are used: (α − 1)D_α is convex
    in α and 0 at 1 (van Erven & Harremoës 2014, Corollary 2), so chords bound it; above the last order nothing is
    known.

    Args:
        divergences: {α: D(α)} or pairs (α, D(α)), α > 1, in nats, α = ∞ for ε of pure DP; or a function of α.
        orders: The range in which a function is valid; unused for a table.
        count: Number of releases.

    Raises:
        ParameterError: An order is not above 1, a divergence is negative, not a number or falls as its order grows.

    >>> from privcheck import accounting as acc
    >>> table = acc.renyi_curve({2: 0.2, 8: 0.8, 32: 3.2})
    >>> round(acc.compose(table, acc.gaussian(std=10)).epsilon(delta=1e-6).value, 3)
    2.383
    """
    if callable(divergences):
        return _renyi_function(divergences, orders, count)
    table = sorted(_pairs("divergences", divergences))
    for order, divergence in table:
        if not order > 1 or not divergence >= 0:
            message = f"expected divergences as {{order above 1: D at least 0}}, got D({order:g}) = {divergence:g}"
            raise ParameterError(message, name="divergences", given=divergence)
    _order("divergences", "an order", [a for a, _ in table])
    for (a, lower), (b, upper) in itertools.pairwise(table):
        if upper < lower:
            message = (
                f"expected divergences that grow with their order, got D({a:g}) = {lower:g} > D({b:g}) = {upper:g}"
            )
            raise ParameterError(
                f"{message}; D({b:g}) bounds both: leave the other out", name="divergences", given=lower
            )
    known = [(a - 1, (a - 1) * divergence) for a, divergence in table if math.isfinite(a) and math.isfinite(divergence)]
    pure = min((divergence for a, divergence in table if math.isinf(a)), default=math.inf)
    law = RenyiLaw(Hull(lower_hull([(0.0, 0.0), *known]), pure), pure)
    pieces: list[tuple[Piece, int]] = [(law, 1)] if any(divergence > 0 for _, divergence in table) else []
    digest = content(None, (x for pair in table for x in pair)).digest
    return event("renyi_curve", pieces, count, orders=f"{table[0][0]:g}..{table[-1][0]:g}", table=digest, relation=None)


def _renyi_function(function: Callable[[float], float], orders: tuple[Real, Real], count: object) -> Event:
    low = real("orders", orders[0], least=1, strict=False)
    high = math.inf if orders[1] == math.inf else real("orders", orders[1], least=low)
    first = math.nextafter(1.0, 2.0) if low == 1 else low
    bound = OrdersFunction(function, first, high, _divergence)
    top = min(high, 1e6)
    probes = [max(first, min(top, 1 + z)) for z in np.geomspace(max(first - 1, 1e-3), top - 1, 40).tolist()]
    divergences = [_divergence(a, function(a)) for a in probes]
    for i in range(len(divergences) - 1):
        if divergences[i + 1] < divergences[i] * (1 - 1e-6) - 1e-12:
            message = f"expected divergences that grow with their order, got D({probes[i]:g}) = {divergences[i]:g}"
            message += f" > D({probes[i + 1]:g}) = {divergences[i + 1]:g}; narrow orders to where the function is valid"
            raise ParameterError(message, name="divergences", given=divergences[i])
    name = f"{getattr(function, '__qualname__', type(function).__name__)} at {id(function):x}"
    return event(
        "renyi_curve", [(RenyiLaw(bound), 1)], count, orders=f"{low:g}..{high:g}", function=name, relation=None
    )


def _divergence(order: float, value: object) -> float:
    """Check a value of a user's function."""
    try:
        divergence = float(value)  # type: ignore[arg-type] # whatever it returns
    except (TypeError, ValueError):
        divergence = math.nan
    if not divergence >= 0:
        message = f"expected a divergence of at least 0 from the function at order {order!r}, got {value!r}"
        raise ParameterError(f"{message}; narrow orders to where it is valid", name="divergences", given=value)
    return divergence


def loss_distribution(p: ArrayLike, q: ArrayLike, *, count: Real = 1) -> Event:
    """Mechanism given by its two output laws under the worst neighbours, outcome by outcome; both directions.

    The loss ln p/q is exact, mass where q = 0 is lost outright. The rest of a truncated law is given as two more
    outcomes: p = rest, q = 0 and p = 0, q = rest. Fractions and decimal strings are taken exactly: two thirds against
    one third has loss ln 2, and a third against a third plus 1e-30 is not free.

    Args:
        p: (n,) probabilities with the user ("remove" is P against Q).
        q: (n,) probabilities without the user, of the same outcomes.
        count: Number of releases.

    Raises:
        ParameterError: p and q are not two mass functions on the same outcomes.

    >>> from privcheck import accounting as acc
    >>> event = acc.loss_distribution([0.5, 0.4, 0.1], [0.4, 0.5, 0.1], count=10)
    >>> round(acc.compose(event).epsilon(delta=0.01).value, 3)
    1.304
    """
    (one, p_exactly), (other, q_exactly) = _masses("p", p), _masses("q", q)
    if len(one) != len(other):
        message = (
            f"expected p and q on the same outcomes, got {len(one)} and {len(other)}; give 0 for a missing outcome"
        )
        raise ParameterError(message, name="q", given=len(other))
    missing = max(total_defect(one), total_defect(other))
    note = f"{missing:.1g} missing of a total counts as lost" if missing > 2.0**-50 else ""
    pairs = {
        i: (p_exactly.get(i, Fraction(one[i])), q_exactly.get(i, Fraction(other[i]))) for i in p_exactly | q_exactly
    }
    law = _law("q", pair_law(one, other, pairs))
    equal = np.array_equal(one, other) and all(a == b for a, b in pairs.values())
    pieces: list[tuple[Piece, int]] = [] if equal and not note else [(law, 1)]
    return event(
        "loss_distribution",
        pieces,
        count,
        note,
        outcomes=float(len(one)),
        masses=law.arguments[0].digest,
        relation=None,
    )


def _law(name: str, law: AtomicLaw) -> AtomicLaw:
    """Check that the law protects something: δ = 1 for every ε is refused."""
    if max(law.infinite(d) for d in DIRECTIONS) >= 1:
        message = f"expected {name} of a mechanism with some protection, got δ(ε) = 1 for all ε"
        raise ParameterError(message, name=name)
    return law


def _masses(name: str, given: ArrayLike) -> tuple[Floats, dict[int, Fraction]]:
    """(n,) masses as floats, and, by index, the exact masses that no float equals."""
    listed = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.dtype == object)
    rows: Sequence[object] = list(given) if listed and not isinstance(given, str) else ()  # type: ignore[arg-type]
    said = {i: exactly(name, x) for i, x in enumerate(rows) if isinstance(x, Fraction | str)}
    for mass in said.values():
        if 0 < mass < _LEAST_MASS:  # as a float it would lose its digits, or be no outcome at all
            message = f"expected {name} as probabilities of 0 or from 1e-300 on, got {mass!s:.80}; add smaller ones"
            raise ParameterError(f"{message} up as the rest of a truncated law", name=name, given=mass)
    nearest = {i: to_float(x, rounding="nearest") for i, x in said.items()}
    try:
        masses = np.array([nearest.get(i, x) for i, x in enumerate(rows)] if nearest else given, dtype=np.float64)
    except (TypeError, ValueError):
        masses = np.empty((0, 0))
    if masses.ndim != 1 or not len(masses) or not (masses >= 0).all() or not np.isfinite(masses).all():
        message = f"expected {name} as an array of probabilities, at least 0 each, got {given!r}"
        raise ParameterError(message, name=name, given=given)
    off = total_defect(masses)
    if abs(off) > _OFF:
        message = (
            f"expected {name} to add up to 1 within {_OFF:g}, got {math.fsum(masses.tolist())!r}; scale it, or give"
        )
        message += " the rest of a truncated law as separate outcomes: p = rest, q = 0 and p = 0, q = rest"
        raise ParameterError(message, name=name, given=off)
    return masses, {i: x for i, x in said.items() if x != Fraction(nearest[i])}


def privacy_profile(table: Tabulated, *, add: Tabulated | None = None, count: Real = 1) -> Event:
    """Mechanism known only to be (ε, δ)-DP at some ε: the pair that dominates every mechanism with these guarantees.

    Between its points the table is bounded by chords in e^ε, in which δ is convex, left of the first point by the chord
    to δ = 1 at ε = −∞, and right of the last point by its δ, which is lost outright (Zhu, Dong & Wang 2022, Proposition
    8 and Theorem 10). Both directions are used: δ(−ε) = 1 − e^{−ε}(1 − δ(ε)) with δ(ε) of the other direction.

    Args:
        table: {ε: δ} or pairs (ε, δ), ε of either sign; the mechanism is (ε, δ)-DP for all of them, in both directions
            unless `add` is given.
        add: The table of the direction "add" (without the user against with); `table` is then for "remove" only.
        count: Number of releases.

    Raises:
        ParameterError: A δ is not a probability, grows with ε, or is below 1 − e^ε.

    >>> from privcheck import accounting as acc
    >>> table = acc.privacy_profile({0: 0.2, 1: 0.01, 2: 1e-4, 4: 1e-8})
    >>> acc.compose(table).delta(epsilon=1).value <= 0.01 * (1 + 1e-9)
    True
    >>> round(acc.compose(5 * table).epsilon(delta=1e-4).value, 3)
    5.992
    """
    points = _profile("table", table)
    opposite = None if add is None else _profile("add", add)
    law = _law("table", profile_law(points, opposite))
    note = "chords between the table's points"
    return event(
        "privacy_profile",
        [(law, 1)],
        count,
        note,
        points=float(len(points)),
        table=law.arguments[0].digest,
        relation=None,
    )


def _profile(name: str, given: Tabulated) -> list[Point]:
    table = sorted(_pairs(name, given))
    _order(name, "an ε", [e for e, _ in table])
    points = []
    for e, d in table:
        if not abs(e) <= _FARTHEST or not 0 <= d <= 1:
            message = (
                f"expected {name} as {{ε: δ}} with |ε| at most {_FARTHEST:g} and δ in [0, 1], got δ({e:g}) = {d:g}"
            )
            raise ParameterError(message, name=name, given=d)
        x, least = exponential_up(e), -math.expm1(e) if e < 0 else 0.0
        if d < least - _OFF:
            message = f"expected δ(ε) of at least 1 − e^ε, got δ({e:g}) = {d:g} < {least:g}"
            raise ParameterError(f"{message}; is it the δ of −ε?", name=name, given=d)
        points.append((x, max(Fraction(d), 1 - x)))
    for (e, upper), (_, lower) in itertools.pairwise(table):
        if lower > upper:
            message = f"expected δ that falls as ε grows, got δ({e:g}) = {upper:g} and {lower:g} after it"
            raise ParameterError(f"{message}; the smaller one holds at all larger ε", name=name, given=lower)
    return points


def trade_off(
    curve: Tabulated | Callable[[float], float],
    *,
    between: Literal["linear", "convex", "steps"] | None = None,
    count: Real = 1,
) -> Event:
    """Mechanism that is f-DP: no test of level α has a type II error below f(α), in either direction.

    Lemma trade-off-profile: An f-DP mechanism has the profile δ(ε) = sup_α 1 − f(α) − e^ε α. Source: Dong, Roth & Su
    2022, Proposition 2.12.

    Args:
        curve: {α: f(α)} or pairs (α, f(α)); or the convex function f itself, accurate to 1e-15 and evaluated at 1 200
            levels.
        between: Knowledge of f between the points of a table: "linear", it is the straight line (also down to f(1) =
            0); "convex", it is convex, so neighbouring lines bound it from below; "steps", only that it falls.
        count: Number of releases.

    Raises:
        ParameterError: A value is out of range, above 1 − α, grows with α, or is not convex where `between` says so.

    >>> from privcheck import accounting as acc
    >>> one = acc.trade_off({0: 1, 0.1: 0.5, 0.5: 0.1, 1: 0}, between="linear")
    >>> round(acc.compose(one).advantage().value, 9)
    0.4
    """
    if callable(curve):
        if between not in (None, "convex"):
            message = f"expected between 'convex' or none for a function, got {between!r}; give a table of its values"
            raise ParameterError(message, name="between", given=between)
        knots, note = below_function(lambda a: _type_two(curve, a)), "lines below a convex function"
        name = f"{getattr(curve, '__qualname__', type(curve).__name__)} at {id(curve):x}"
    else:
        known = _trade_off_table(curve, between)
        below = {"linear": below_lines, "convex": below_convex, "steps": below_steps}[str(between)]
        knots = below(known)
        note, name = ("" if between == "linear" else f"{between} between the table's points"), f"{len(known)} points"
    law = _law("curve", profile_law(profile_points(knots)))
    return event("trade_off", [(law, 1)], count, note, curve=name, table=law.arguments[0].digest, relation=None)


def _trade_off_table(curve: Tabulated, between: str | None) -> Knots:
    if between not in ("linear", "convex", "steps"):
        message = "expected between as 'linear', 'convex' or 'steps': the knowledge about f between the table's points"
        raise ParameterError(f"{message}; got {between!r}", name="between", given=between)
    table = sorted(_pairs("curve", curve))
    _order("curve", "an α", [a for a, _ in table])
    for a, b in table:
        if not 0 <= a <= 1 or not 0 <= b <= 1 - a + _OFF:
            message = f"expected curve as {{α: f(α)}} with α in [0, 1] and f(α) from 0 to 1 − α, got f({a:g}) = {b:g}"
            raise ParameterError(message, name="curve", given=b)
    for (a, upper), (_, lower) in itertools.pairwise(table):
        if lower > upper:
            message = f"expected f that falls as α grows, got f({a:g}) = {upper:g} and {lower:g} after it"
            raise ParameterError(message, name="curve", given=lower)
    return [(Fraction(a), Fraction(b)) for a, b in table]


def _type_two(function: Callable[[float], float], alpha: float) -> float:
    try:
        error = float(function(alpha))
    except (TypeError, ValueError):
        error = math.nan
    if not 0 <= error <= 1 - alpha + _OFF:
        message = f"expected f(α) from 0 to 1 − α, got f({alpha!r}) = {error!r}"
        raise ParameterError(message, name="curve", given=error)
    return error


def _pairs(name: str, given: object) -> list[tuple[float, float]]:
    """Check and convert the points of a table."""
    message = f"expected {name} as a dict or as pairs of numbers, 1 to {_MOST_POINTS} of them"
    try:
        rows = list(given.items() if isinstance(given, Mapping) else given)  # type: ignore[call-overload] # refused below
    except TypeError:
        raise ParameterError(f"{message}, got {given!r}", name=name, given=given) from None
    if not 1 <= len(rows) <= _MOST_POINTS:
        raise ParameterError(f"{message}, got {len(rows)}", name=name, given=len(rows))
    pairs = []
    for row in rows:
        if not isinstance(row, Sequence | np.ndarray) or isinstance(row, str) or len(row) != 2:
            raise ParameterError(f"{message}, got {row!r} among them", name=name, given=row)
        pairs.append((_number(name, row[0]), _number(name, row[1])))
    return pairs


def _number(name: str, value: object) -> float:
    if isinstance(value, float | np.floating) and math.isinf(value):
        return float(value)
    return real(name, value, least=-math.inf, strict=False)


def _order(name: str, what: str, keys: list[float]) -> None:
    for one, other in itertools.pairwise(keys):
        if one == other:
            raise ParameterError(f"expected {what} once in {name}, got {one:g} twice", name=name, given=one)
