"""Calibration: the least noise, or the most steps, users or sampling, for which a family of events keeps a target.

A family maps a number to an event or a curve. The point where its cost crosses the target is bracketed by
extrapolation, and no number is evaluated twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn, TypeVar

from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.events import Event
from privcheck.accounting.figures import Figure
from privcheck.accounting.reals import Real, real, whole
from privcheck.accounting.targets import FAR, EpsilonDelta, Target, TargetLike, target_of
from privcheck.errors import ParameterError

Seek = Literal["least", "largest"]
_WRONG: Final = 0.1  # of a miss, which is about straight in ln x: so much the wrong way is not looseness of a bound
_STEPS: Final = (math.log(1.2), math.log(16.0))  # ln of the least and the largest step while there is no bracket
_TOLERANCE: Final = 1e-9  # relative, on the scale
_RANGE: Final = (1e-12, 1e15)

N = TypeVar("N", int, float)


@dataclass(slots=True)
class Misses:
    """Distance of a family from its target, at every x evaluated so far.

    Attributes:
        target: The target.
        family: From x to an event or a curve.
        seek: "least" if the cost falls as x grows, "largest" if it grows.
        seen: The miss at each x, above 0 where the target is missed.
        refused: The last x that the family itself refused, with its reason: such an x counts as missing the target.
    """

    target: Target
    family: Callable[..., Event | Curve]
    seek: Seek
    seen: dict[float, float] = field(default_factory=dict)
    refused: ParameterError | None = None

    def __call__(self, x: float) -> float:
        """Compute the miss at x."""
        if x not in self.seen:
            try:
                miss = self.target.miss(self.curve(x))
            except ParameterError as error:
                miss, self.refused = math.inf, error
            self.seen[x] = FAR if math.isnan(miss) else max(-FAR, min(FAR, miss))
            _check_monotone(self.seen, self.seek)
        return self.seen[x]

    def curve(self, x: float) -> Curve:
        """Build the curve at x."""
        made = self.family(x)
        return made if isinstance(made, Curve) else compose(made)

    def figure(self, x: float) -> Figure:
        """Compute the target's figure at x."""
        return self.target.figure(self.curve(x))

    def step(self, x: float) -> float:
        """Logarithm of the next step from x: 1.2 × the distance that the last slope suggests, within limits."""
        least, most = _STEPS
        size = abs(self.seen[x])
        others = [y for y in self.seen if y != x and abs(self.seen[y]) < FAR]
        if others and size < FAR:
            near = min(others, key=lambda y: abs(math.log(y / x)))
            slope = abs((self.seen[near] - self.seen[x]) / math.log(near / x))
            size = size / slope if slope > 0.1 else most
        return min(max(1.2 * size, least), most)

    def refuse(self, low: float, high: float) -> NoReturn:
        """Raise the error that nothing in the range meets the target.

        Raises:
            ParameterError: Always.
        """
        message = f"no scale or count from {low:g} to {high:g} meets the target"
        if self.refused is not None:
            message += f"; the family refused some: {self.refused}"
        cheapest = high if self.seek == "least" else low
        if abs(self.seen.get(cheapest, FAR)) < FAR:
            message += f": at {cheapest:g}, where it costs least, the figure is {self.figure(cheapest).upper:.6g}"
            reason = "a part that does not depend on the argument, or a single release, exceeds the target alone"
            raise ParameterError(f"{message}; {reason}", name="family") from self.refused
        other = "largest" if self.seek == "least" else "least"
        message += f": does its cost {'fall' if self.seek == 'least' else 'grow'} as its argument grows?"
        raise ParameterError(f"{message} If not, seek the {other}", name="family") from self.refused


def bracket(misses: Misses, start: N, low: N, high: N, *, multiply: Callable[[N, float], N]) -> tuple[N | None, N]:
    """Find (an argument that misses, an argument that meets); None for the first where the whole range meets.

    Args:
        misses: Distance of an argument from the target.
        start: Where to begin.
        low: Lower end of the range.
        high: Upper end of the range.
        multiply: The argument times e to the power of the second number; always different from the argument, unless the
            range ends there.

    Raises:
        ParameterError: Nothing in the range meets the target.
    """
    x, sign = start, 1 if misses.seek == "least" else -1
    good = misses(x) <= 0
    while True:
        further = min(max(multiply(x, misses.step(x) * (-sign if good else sign)), low), high)
        if further == x:
            if good:
                misses(high if sign > 0 else low)  # the other end is not to cost more
                return None, x
            misses.refuse(low, high)
        if (misses(further) <= 0) != good:
            return (further, x) if good else (x, further)
        x = further


def _check_monotone(seen: Mapping[float, float], seek: Seek) -> None:
    order = sorted(seen)
    for i in range(len(order) - 1):
        rise = seen[order[i + 1]] - seen[order[i]]
        if (rise if seek == "least" else -rise) > _WRONG:
            what, other = ("more", "largest") if seek == "least" else ("less", "least")
            message = f"expected a family that costs {'less' if seek == 'least' else 'more'} as its argument grows"
            message += f", but at {order[i + 1]:.6g} it costs {what} than at {order[i]:.6g}"
            raise ParameterError(f"{message}; seek the {other}, or vary one parameter alone", name="family")


def seek_of(given: object) -> Seek:
    """Check a direction of search.

    Raises:
        ParameterError: The value is neither "least" nor "largest".
    """
    if given == "least":
        return "least"
    if given == "largest":
        return "largest"
    raise ParameterError(f"expected seek as 'least' or 'largest', got {given!r}", name="seek", given=given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The least (or largest) scale found, and its guarantee.

    Attributes:
        scale: The scale, in the unit of the family's argument.
        target: Target kept at the scale.
        figure: The accountant's answer there, certified to keep the target.
        tolerance: Relative distance within which a smaller (or larger) scale might still keep the target; beyond it the
            target is missed.
    """

    scale: float
    target: Target
    figure: Figure
    tolerance: float

    @property
    def epsilon(self) -> float:
        """Certified ε of the family at the scale, at most the target's.

        Raises:
            ParameterError: The target was not (ε, δ).
        """
        self._require_pair()
        return self.figure.upper

    @property
    def delta(self) -> float:
        """δ of the target.

        Raises:
            ParameterError: The target was not (ε, δ).
        """
        return self._require_pair().delta

    def _require_pair(self) -> EpsilonDelta:
        if isinstance(self.target, EpsilonDelta):
            return self.target
        message = f"expected a target (ε, δ) in order to tell its ε and δ, it was {self.target}; see figure"
        raise ParameterError(message, name="target", given=self.target)


def calibrate(
    target: TargetLike,
    family: Callable[[float], Event | Curve],
    *,
    start: Real = 1.0,
    seek: Seek = "least",
    within: tuple[Real, Real] = _RANGE,
) -> Calibrated:
    """Find the least (or largest) scale for which family(scale) keeps a target.

    The root is sought on the tight value of δ(ε), or of the attacker's success; at the returned scale the certified
    bound is within the target.

    Args:
        target: (ε, δ); `PureDP` or `ApproxDP` with known numbers; or a limit on an attacker's success: `Advantage`,
            `TruePositiveRate`, `Posterior`, `Reconstruction`, `BayesRisk`.
        family: Maps a scale to an event or a curve; a scale that it refuses misses the target.
        start: Where to begin.
        seek: "least" if the cost falls as the argument grows (noise), "largest" if it grows (sampling rate).
        within: The range of scales.

    Raises:
        ParameterError: The target is out of range, no scale meets it, or the cost goes the other way.

    >>> from privcheck import accounting as acc
    >>> answer = acc.calibrate((1.0, 1e-6), lambda s: acc.gaussian(std=s, count=1000))
    >>> round(answer.scale, 4), answer.epsilon <= 1.0
    (133.5961, True)
    >>> least = acc.calibrate(acc.Advantage(0.1), lambda s: acc.gaussian(std=s))
    >>> round(least.scale, 4), least.figure.upper <= 0.1
    (3.9789, True)
    """
    aim, way = target_of(target), seek_of(seek)
    low, high = real("within", within[0]), real("within", within[1])
    if not low < high:
        raise ParameterError(f"expected within as (low, high), got {within!r}", name="within", given=within)
    misses = Misses(target=aim, family=family, seek=way)
    first = min(max(real("start", start), low), high)
    bad, good = bracket(misses, first, low, high, multiply=lambda x, log_factor: x * math.exp(log_factor))
    scale = good if bad is None else _root(misses, bad, good)
    sign = 1 if way == "least" else -1
    # certified: step outwards, by as little as does, until the bound meets the target
    step, figure = 0.0, misses.figure(scale)
    while not aim.is_met(figure):
        step = max(2 * step, min(aim.excess(figure), 1.0), _TOLERANCE / 4)
        scale = min(max(scale * (1 + step) ** sign, low), high)
        figure = misses.figure(scale)
        if scale in (low, high) and not aim.is_met(figure):
            misses.refuse(low, high)
    return Calibrated(scale=scale, target=aim, figure=figure, tolerance=max(2 * step, _TOLERANCE))


def _root(misses: Misses, bad: float, good: float) -> float:
    """Find a scale that meets the target, within a tolerance of one that misses it, by bracketing on log scales."""
    from scipy.optimize import brentq

    low, high = math.log(bad), math.log(good)
    root = float(brentq(lambda t: misses(_inside(t, bad, good)), low, high, xtol=_TOLERANCE / 8, rtol=1e-15))
    x, step = _inside(root, bad, good), _TOLERANCE / 8
    while misses(x) > 0 and x != good:
        x, step = _inside(math.log(x) + math.copysign(step, high - low), bad, good), 2 * step
    return x


def _inside(t: float, bad: float, good: float) -> float:
    return min(max(math.exp(t), min(bad, good)), max(bad, good))


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedWhole:
    """The largest (or least) whole number found, and the figures at it and at its neighbour.

    Attributes:
        value: The number.
        target: Target kept at the value.
        figure: The accountant's answer there, certified to keep the target.
        beyond: The accountant's answer at the next number, which is not certified to keep the target; None at the end
            of the range, or where the family refuses that number.
    """

    value: int
    target: Target
    figure: Figure
    beyond: Figure | None


def calibrate_whole(
    target: TargetLike,
    family: Callable[[int], Event | Curve],
    *,
    seek: Seek = "largest",
    start: Real = 100,
    within: tuple[Real, Real] = (1, 10**9),
) -> CalibratedWhole:
    """Find the largest (or least) n for which family(n) keeps a target.

    Both n and the next number are evaluated: n is certified to keep the target, the other is not.

    Args:
        target: As for `calibrate`.
        family: Maps a whole number to an event or a curve; a number that it refuses misses the target.
        seek: "largest" if the cost grows with n (steps, batch size), "least" if it falls (users behind a shuffler).
        start: Where to begin.
        within: The range of n.

    Raises:
        ParameterError: The target is out of range, no n meets it, or the cost goes the other way.

    >>> from privcheck import accounting as acc
    >>> answer = acc.calibrate_whole((1.0, 1e-6), lambda n: acc.gaussian(std=133.6, count=n))
    >>> answer.value, answer.figure.upper <= 1.0 < answer.beyond.upper
    (1000, True)
    """
    aim, way = target_of(target), seek_of(seek)
    low, high = whole("within", within[0]), whole("within", within[1])
    if not low < high:
        raise ParameterError(f"expected within as (low, high), got {within!r}", name="within", given=within)
    misses = Misses(target=aim, family=lambda x: family(int(x)), seek=way)
    back = 1 if way == "least" else -1  # towards what costs less
    first = min(max(whole("start", start), low), high)
    bad, good = bracket(misses, first, low, high, multiply=_multiply)
    n = _between(misses, bad, good) if bad is not None else good
    # certified: back until the bound meets the target, then forth while the next number does too
    step, figure = 1, misses.figure(n)
    while not aim.is_met(figure):
        if n == (high if back > 0 else low):
            misses.refuse(low, high)
        n = min(max(n + back * step, low), high)
        step, figure = 2 * step, misses.figure(n)
    while (beyond := _figure(misses, n - back, low, high)) is not None and aim.is_met(beyond):
        n, figure = n - back, beyond
    return CalibratedWhole(value=n, target=aim, figure=figure, beyond=beyond)


def _figure(misses: Misses, n: int, low: int, high: int) -> Figure | None:
    if not low <= n <= high:
        return None
    try:
        return misses.figure(n)
    except ParameterError:
        return None


def _multiply(n: int, log_factor: float) -> int:
    further = round(n * math.exp(log_factor))
    return further if further != n else n + int(math.copysign(1, log_factor))


def _between(misses: Misses, bad: int, good: int) -> int:
    """Find the meeting number next to a missing one, by secants on a log scale, with bisection where they stall."""
    halve = False
    while abs(good - bad) > 1:
        low, high = min(bad, good), max(bad, good)
        if halve or abs(misses(bad) - misses(good)) == 0:
            guess = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        else:
            share = misses(bad) / (misses(bad) - misses(good))
            guess = round(math.exp(math.log(bad) + share * math.log(good / bad)))
        guess = min(max(guess, low + 1), high - 1)
        width = high - low
        bad, good = (bad, guess) if misses(guess) <= 0 else (guess, good)
        halve = abs(good - bad) > width / 2 and not halve
    return good
