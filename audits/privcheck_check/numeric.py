"""Numeric compositions: an upper bound on delta at epsilon, in integers; docs/certificates-numeric.md has the proofs.

An event is a pair of laws (P, Q), given by its curve D(t) = sup over S of P(S) - t Q(S), t >= 0. On the grid
t_i = (1 + 1/H)^i the polygon through the exact points of D is the curve of a pair with likelihood ratios t_i only,
split from (P, Q). Its masses are rounded up, convolved exactly, and rounded up again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Inexact, InvalidOperation, Rounded
from fractions import Fraction

from privcheck_check.enclosures import BITS, ONE, Interval, divide, enclose, exp, log, multiply, normal, sqrt
from privcheck_check.values import Rejected, read_choice, read_fraction, read_integer, read_list, read_object

RULE = "numeric"
MOST_EVENTS = 32
MOST_OUTCOMES = 64
MOST_COUNT = 10**9
MOST_EPSILON = 64
MOST_CELLS = 1 << 17  # of one event's grid
MOST_DIGITS = 1 << 24  # of one product: about 200 MB
MOST_WORK = 150_000_000  # digits of all products; fifteen million take about a second
MOST_COINS = 10**7
MOST_NEWTON = 5_000_000  # terms of a mixture's ratio in all steps to its roots
CURVE_WORK = 600  # a point of a curve with two terms, in the same currency
KNOTS = 256  # about as many points of a curve that is bounded by a polygon; at most twice as many
LEFT = 1 << BITS - 83  # D at its last knot
ONE_BY_ONE = 16  # queries of a stopped run that are counted singly, before they are taken together
TOGETHER = 1 << BITS - 12  # D of all queries left, below which they are taken together

Curve = Callable[[Interval], Interval]
Event = Mapping[str, object]
Parts = list[tuple[Interval, Interval]]


@dataclass(slots=True, kw_only=True)
class Grid:
    """Ratio 1 + 1/H with H = steps, units in the mass one, the mass cut per event and product, work left."""

    steps: Fraction
    unit: int
    trim: Fraction
    work: int = MOST_WORK

    def spend(self, work: int) -> None:
        """Pay before allocating; Rejected when nothing is left."""
        self.work -= work
        if self.work < 0:
            raise Rejected(RULE, "the composition is larger than this checker's limit")

    def power(self, index: int) -> Interval:
        """t_index, by repeated squaring, rounded outward."""
        ratio = 1 + 1 / self.steps
        base = enclose(ratio if index >= 0 else 1 / ratio)
        result = (ONE, ONE)
        for bit in f"{abs(index):b}":
            result = multiply(result, result)
            if bit == "1":
                result = multiply(result, base)
        return result

    def ladder(self, low: int, high: int) -> list[Interval]:
        """t_low..t_high, low <= 0 <= high, by steps from t_0 = 1, rounded outward."""
        ratio, sides = 1 + 1 / self.steps, []
        for count, side in ((-low, 1 / ratio), (high, ratio)):
            n, d = side.as_integer_ratio()
            rungs = [(ONE, ONE)]
            for _ in range(count):
                rungs.append((rungs[-1][0] * n // d, _up(rungs[-1][1] * n, d)))
            sides.append(rungs)
        return sides[0][:0:-1] + sides[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Units of mass at losses (start + i stride) log(1 + 1/H) and at infinity; the number of events behind it."""

    start: int  # a multiple of the stride
    stride: int = 1
    masses: list[int]
    infinite: int
    count: int


def _up(value: int, by: int) -> int:
    """Quotient, rounded up."""
    return -(-value // by)


# ── Curves: D(t) of each pair, an interval for every t > 0 in an interval ──


def _gaussian(event: Event) -> Curve:
    return gaussian(_squared(event))


def _squared(event: Event) -> Fraction:
    return read_fraction(event["squared_ratio"], RULE, above=0, most=4096)


def gaussian(squared: Fraction) -> Curve:
    """N(mu, 1) against N(0, 1): Phi(mu/2 - log t / mu) - t Phi(-mu/2 - log t / mu)."""
    mu = sqrt(enclose(squared))

    def curve(t: Interval) -> Interval:
        return _above(t, divide(log(t), mu), [((ONE, ONE), _half(mu))], [((ONE, ONE), _half(_minus(mu)))])

    return curve


def _minus(x: Interval) -> Interval:
    return -x[1], -x[0]


def _half(x: Interval) -> Interval:
    return x[0] >> 1, (x[1] + 1) >> 1


def _above(t: Interval, x: Interval, top: Parts, bottom: Parts) -> Interval:
    """P(X > x) - t Q(X > x) for mixtures (weight, mean) of normal laws of spread one."""

    def tail(parts: Parts) -> Interval:
        terms = [multiply(weight, normal((mean[0] - x[1], mean[1] - x[0]))) for weight, mean in parts]
        return sum(low for low, _ in terms), sum(high for _, high in terms)

    gain, loss = tail(top), multiply(t, tail(bottom))
    return gain[0] - loss[1], gain[1] - loss[0]


def _opposite(event: Event) -> Curve:
    """(1-q) N(0, 1) + q N(m, 1) against (1-q) N(0, 1) + q N(-m, 1).

    P/Q = t where a z - a t / z = (1-q) (t-1), z = exp(m x), a = q exp(-m m / 2): a quadratic equation in z.
    """
    squared, share = _squared(event), read_fraction(event["share"], RULE, above=0, most=1)
    m, q, rest = sqrt(enclose(squared)), enclose(share), enclose(1 - share)
    a = multiply(q, exp(enclose(-squared / 2)))

    def curve(t: Interval) -> Interval:
        b = _half(multiply(rest, (t[0] - ONE, t[1] - ONE)))
        square = multiply(b, b)
        root = sqrt(_plus((max(0, square[0]), square[1]), multiply(multiply(a, a), t)))
        # the same root twice: the form without cancellation
        z = divide(_plus(b, root), a) if b[1] > 0 else divide(multiply(a, t), _plus(_minus(b), root))
        return _above(t, divide(log(z), m), [(rest, (0, 0)), (q, m)], [(rest, (0, 0)), (q, _minus(m))])

    return curve


def _plus(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def _polynomial(coefficients: list[Interval], z: int) -> Interval:
    """The sum of c_k z^k, c_k >= 0 and z >= 0, by Horner's rule."""
    low = high = 0
    for c in reversed(coefficients):
        low, high = c[0] + (low * z >> BITS), c[1] - (-high * z >> BITS)
    return low, high


def _mixture(event: Event) -> Curve:
    """The mixture of N(k m, 1) with weights w_k, k >= 0, against N(0, 1).

    P/Q = sum of c_k z^k, c_k = w_k exp(k (K - k) m m / 2), z = exp(m (x - K m / 2)), K the last k, increases in z.
    Newton's method from the last root proposes a root, and the signs at both ends of an interval about it prove it.
    """
    squared, weights = _squared(event), _probabilities(event["weights"])
    last, m = len(weights) - 1, sqrt(enclose(squared))
    if weights[0] == 1:
        raise Rejected(RULE, "a mixture has all its weight at zero")
    coefficients = [multiply(enclose(w), exp(enclose(k * (last - k) * squared / 2))) for k, w in enumerate(weights)]
    parts = [(enclose(w), (k * m[0], k * m[1])) for k, w in enumerate(weights) if w]
    centre = _half((last * m[0], last * m[1]))
    iterations = iter(range(MOST_NEWTON // (last + 1)))
    guess = ONE

    def curve(t: Interval) -> Interval:
        nonlocal guess
        if t[0] <= coefficients[0][1]:  # P/Q >= w_0, so D(t) = 1 - t up to w_0 and less beyond
            return ONE - t[1], ONE - min(t[0], coefficients[0][0])
        z = guess
        for _ in iterations:
            total = slope = 0
            for c, _ in reversed(coefficients):
                slope = total + (slope * z >> BITS)
                total = c + (total * z >> BITS)
            step = (total - t[0] << BITS) // max(1, slope)
            z = max(1, z - step)
            if abs(step) <= z >> 100:
                break
        guess = z
        margin = (z >> 120) + 4 * z * (t[1] - t[0]) // t[0] + 1  # the root moves with t
        low, high = z - margin, z + margin
        if low < 1 or _polynomial(coefficients, low)[1] > t[0] or _polynomial(coefficients, high)[0] < t[1]:
            raise ValueError("no root of a mixture's ratio is found")
        return _above(t, _plus(centre, divide(log((low, high)), m)), parts, [((ONE, ONE), (0, 0))])

    return curve


def _laplace(event: Event) -> Curve:
    """Laplace laws of scale 1 at distance e: 1 - sqrt(t exp(-e)) where positive and above 1 - t."""
    factor = exp(enclose(-read_fraction(event["ratio"], RULE, above=0, most=MOST_EPSILON)))

    def curve(t: Interval) -> Interval:
        low, high = sqrt(multiply(t, factor))
        return ONE - high, max(0, ONE - t[0], ONE - low)

    return curve


def _finite(outcomes: Parts) -> Curve:
    """Finitely many outcomes: the sum of (p - t q) where positive."""

    def curve(t: Interval) -> Interval:
        low = high = 0
        for p, q in outcomes:
            low += max(0, p[0] - (t[1] * q[1] >> BITS) - 1)
            high += max(0, p[1] - (t[0] * q[0] >> BITS))
        return low, high

    return curve


def _randomised_response(event: Event) -> Curve:
    """The true value with probability e^epsilon r, each other with r, between two of the values."""
    times = exp(enclose(read_fraction(event["epsilon"], RULE, above=0, most=MOST_EPSILON)))
    values = read_integer(event["values"], RULE, least=2, most=MOST_COUNT)
    other = divide((ONE, ONE), (times[0] + (values - 1) * ONE, times[1] + (values - 1) * ONE))
    true = multiply(times, other)
    rest = ((values - 2) * other[0], (values - 2) * other[1])
    return _finite([(true, other), (other, true), (rest, rest)])


def _approximate(event: Event) -> Curve:
    """The pair that dominates every (epsilon, delta)-private event: delta open, else randomised response of a bit."""
    delta = read_fraction(event["lost"], RULE, least=0, most=1)
    binary, closed = _randomised_response({**event, "values": 2}), enclose(1 - delta)
    return lambda t: _plus(enclose(delta), multiply(closed, _bounded(binary, t)))


def _geometric(event: Event) -> Curve:
    """Two-sided geometric laws, masses in proportion to e^(-epsilon |x|), at an integer distance."""
    factor = exp(enclose(-read_fraction(event["epsilon"], RULE, above=0, most=MOST_EPSILON)))
    distance = read_integer(event["distance"], RULE, least=1, most=MOST_OUTCOMES)
    powers = [(ONE, ONE)]
    for _ in range(distance):
        powers.append(multiply(powers[-1], factor))
    above = (ONE + factor[0], ONE + factor[1])
    inner = [multiply(power, (ONE - factor[1], ONE - factor[0])) for power in powers]
    masses = [divide(x, above) for x in (powers[0], *inner[1:-1], powers[-1])]
    return _finite(list(zip(masses, reversed(masses), strict=True)))


def _discrete(event: Event) -> Curve:
    """Outcomes with the probabilities listed."""
    p, q = _probabilities(event["p"]), _probabilities(event["q"])
    if len(p) != len(q):
        raise Rejected(RULE, "the two laws do not list the same outcomes")
    return _finite([(enclose(a), enclose(b)) for a, b in zip(p, q, strict=True)])


def _probabilities(value: object) -> list[Fraction]:
    found = [read_fraction(p, RULE, least=0, most=1) for p in read_list(value, RULE, least=1, most=MOST_OUTCOMES)]
    if sum(found) != 1:
        raise Rejected(RULE, "probabilities do not sum to one")
    return found


def _polygon(bound: Callable[[int], int]) -> Curve:
    """The lower hull of (0, 1) and of points above D, level after the last: a convex curve above D.

    Knots t = 1, g, g^2, ... with g = 1 + 2^-k, in units exactly, until the bound is at most LEFT, or t is e^64.
    """
    reach, end = Fraction(1, 1 << 16), exp(enclose(Fraction(MOST_EPSILON)))[1]
    while reach < MOST_EPSILON and bound(exp(enclose(reach))[1]) > LEFT:
        reach *= 2
    shift = max(0, int(KNOTS / reach).bit_length() - 1)
    knots, least, t = [(0, ONE)], ONE, ONE
    while least > LEFT and t < end:
        least = min(least, bound(t))
        while len(knots) > 1:
            (t0, d0), (t1, d1) = knots[-2:]
            if (d1 - d0) * (t - t0) < (least - d0) * (t1 - t0):
                break
            knots.pop()
        knots.append((t, least))
        t += max(1, t >> shift)
    places = [t for t, _ in knots]

    def at(t: int) -> Interval:
        i = bisect_right(places, t) - 1
        if i + 1 == len(knots):
            return knots[i][1], knots[i][1]
        (t0, d0), (t1, d1) = knots[i : i + 2]
        return d0 - _up((d0 - d1) * (t - t0), t1 - t0), d0 - (d0 - d1) * (t - t0) // (t1 - t0)

    return lambda t: (at(t[1])[0], at(t[0])[1])


def _shift(event: Event) -> Fraction:
    return read_fraction(event["squared_shift"], RULE, above=0, most=4096)


def _stopped(event: Event) -> Curve:
    """A run that stops at the first of m queries above: 1 - W, which falls by W D(t / W) a query, D of a Gaussian."""
    queries, one = read_integer(event["queries"], RULE, least=1, most=MOST_COUNT), gaussian(_shift(event))

    def bound(t: int) -> int:
        left, done, block = ONE, 0, 1
        while done < queries and left > 0:
            ratio = t << BITS
            lost = max(0, one((ratio // left, _up(ratio, left)))[1])
            rest = queries - done
            if done >= ONE_BY_ONE:
                block += block + 3 >> 2
            steps = rest if rest * lost <= TOGETHER else min(rest, block)
            left -= _up(left * min(ONE, steps * lost), ONE)
            done += steps
        return ONE - max(0, left)

    return _polygon(bound)


def _largest(event: Event) -> Curve:
    """The index of the largest of m normal scores: m (P(X > s) - t P(X > s + a)) at the best s with P(X > s) <= 1/m."""
    most, squared = read_integer(event["candidates"], RULE, least=2, most=MOST_COUNT), _shift(event)
    one, a = gaussian(squared), sqrt(enclose(squared))
    low, high, place = 0, 8 << 40, BITS - 40
    while high - low > 1:  # P(X > level) >= 1/m is kept at the lower end
        middle = (low + high) // 2
        enough = normal((-middle << place, -middle << place))[0] * most >= ONE
        low, high = (middle, high) if enough else (low, middle)
    level = low << place
    top, bottom = normal((-level, -level))[1], normal((-level - a[1], -level - a[0]))[0]

    def bound(t: int) -> int:
        free = _plus(divide(log((t, t)), a), _minus(_half(a)))
        value = top - (t * bottom >> BITS) if level >= free[1] else one((t, t))[1]
        return min(ONE, most * max(0, value))

    return _polygon(bound)


def _sampled(curve: Curve, rate: Fraction) -> Curve:
    """((1 - q) Q + q P, Q): D'(t) = q D((t - 1 + q) / q), where D(s) = 1 - s for s <= 0."""
    q, without = enclose(rate), enclose(1 - rate)

    def sampled(t: Interval) -> Interval:
        return multiply(q, _bounded(curve, divide((t[0] - without[1], t[1] - without[0]), q)))

    return sampled


def _bounded(curve: Curve, t: Interval) -> Interval:
    """D on an interval of any sign, cut to max(0, 1 - t) <= D(t) <= max(1, 1 - t)."""
    floor, ceiling = max(0, ONE - t[1]), max(ONE, ONE - t[0])
    if t[0] <= 0:
        return floor, ceiling
    low, high = curve(t)
    return max(floor, low), min(ceiling, high)


# ── One event on the grid ──


def _first(small: Callable[[int], bool], most: int) -> int:
    """The first index in 1..most at which a monotone test holds, else ``most``."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if small(middle) else (middle + 1, high)
    return high


def _points(curve: Curve, grid: Grid, terms: int) -> tuple[int, list[Interval]]:
    """D at t_low..t_high, and low; outside lies no more than the grid's trim, unless losses are too large."""
    cut, most = int(grid.trim * ONE), int(MOST_EPSILON * grid.steps)

    def at(index: int) -> Interval:
        return _bounded(curve, grid.power(index))

    high = _first(lambda index: at(index)[1] <= cut, most)
    low = -_first(lambda index: _unexplained(at(-index), grid.power(index)) <= cut, most)
    if high - low > MOST_CELLS:
        raise Rejected(RULE, "an event has more cells than this checker's limit")
    grid.spend(CURVE_WORK // 2 * terms * (high - low + 1))
    return low, [_bounded(curve, t) for t in grid.ladder(low, high)]


def _unexplained(point: Interval, inverse: Interval) -> int:
    """At most 1 - (1 - D(t)) / t: Q's mass that the polygon puts at t = 0, given D(t) and 1 / t."""
    return ONE - ((ONE - point[1]) * inverse[0] >> BITS)


def discretise(curve: Curve, grid: Grid, *, terms: int) -> tuple[Loss, Loss]:
    """The masses of the polygon's pair, and those of the pair turned round; each at least the exact one.

    p_i = H d_(i+1) - (2H + 1) d_i + (H + 1) d_(i-1), with d_(high+1) = d_high, and 1 - d_low + H (d_(low+1) - d_low)
    at the lowest point; q_i = p_i / t_i. Infinite losses: d_high, and Q's mass at t = 0.
    """
    low, points = _points(curve, grid, terms)
    size, (n, d) = len(points), grid.steps.as_integer_ratio()
    forward, backward = [], []
    for i, (inverse, (least, _)) in enumerate(zip(grid.ladder(1 - low - size, -low)[::-1], points, strict=True)):
        rise = n * (points[i + 1][1] - least) if i + 1 < size else 0
        fall = (n + d) * (points[i - 1][1] - least) if i else d * (ONE - least)
        mass = max(0, rise + fall) * grid.unit
        forward.append(_up(mass, d * ONE))
        backward.append(_up(mass * inverse[1], d * ONE * ONE))
    lost = _unexplained(points[0], grid.power(-low))
    return (
        Loss(start=low, masses=forward, infinite=_up(points[-1][1] * grid.unit, ONE), count=1),
        Loss(start=1 - low - size, masses=backward[::-1], infinite=_up(lost * grid.unit, ONE), count=1),
    )


# ── Composition ──


def _product(left: list[int], right: list[int], grid: Grid) -> list[int]:
    """The exact convolution: both lists written with as many decimal digits an entry as no sum can exceed.

    ``decimal`` multiplies integers of any length exactly; a context that traps every rounding says so if not.
    """
    width = len(str(max(1, sum(left)) * max(1, sum(right))))  # a sum of zero must not narrow the other's entries
    size = len(left) + len(right) - 1
    if width * size > MOST_DIGITS:
        raise Rejected(RULE, "a product is larger than this checker's limit")
    grid.spend((width + 20) * size)
    exact = Context(prec=(size + 1) * width, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, Rounded, InvalidOperation])
    numbers = [
        exact.create_decimal("".join(f"{mass:0{width}d}" for mass in reversed(masses)))
        for masses in ([left] if left is right else [left, right])
    ]
    text = f"{exact.multiply(numbers[0], numbers[-1]):f}".zfill(size * width)
    return [int(text[end - width : end]) for end in range(len(text), len(text) - size * width, -width)]


def coarsen(loss: Loss, grid: Grid) -> Loss:
    """The same on every other point: a mass between two of them is split so that neither P nor Q loses any.

    With G the ratio of neighbours: 1 / (1 + G) of it goes down and G / (1 + G) up, each rounded up.
    """
    odd, (low, high) = loss.start // loss.stride % 2, grid.power(loss.stride)
    sparse = [0] * ((len(loss.masses) + odd) // 2 + 1)
    for i, mass in enumerate(loss.masses, start=odd):
        if i % 2:
            sparse[i // 2] += _up(mass * ONE, ONE + low)
            sparse[i // 2 + 1] += _up(mass * high, ONE + high)
        else:
            sparse[i // 2] += mass
    return replace(loss, start=loss.start - odd * loss.stride, stride=2 * loss.stride, masses=sparse)


def compose(left: Loss, right: Loss, grid: Grid) -> Loss:
    """The law of the sum of two losses: masses rounded up, the top cut to infinity, the bottom raised to the cut."""
    while left.stride < right.stride:
        left = coarsen(left, grid)
    while right.stride < left.stride:
        right = coarsen(right, grid)
    count = left.count + right.count
    unit, allowed = grid.unit, int(grid.trim * count * grid.unit)
    if abs(left.start + right.start) > 16 * MOST_EPSILON * grid.steps:
        raise Rejected(RULE, "losses beyond this checker's limit")
    masses = [_up(mass, unit) for mass in _product(left.masses, right.masses, grid)]
    total, other = sum(left.masses), sum(right.masses)
    infinite = _up(left.infinite * (other + right.infinite) + total * right.infinite, unit)
    end, cut = len(masses), 0
    while end > 1 and cut + masses[end - 1] <= allowed:
        end -= 1
        cut += masses[end]
    first, raised = 0, 0
    while first < end - 1 and raised + masses[first] <= allowed:
        raised += masses[first]
        first += 1
    masses = masses[first:end]
    masses[0] += raised
    start = left.start + right.start + first * left.stride
    result = Loss(start=start, stride=left.stride, masses=masses, infinite=infinite + cut, count=count)
    # cells widen with the root of the count: each widening adds as much variance as 1/20 of the first grid
    while 64 * result.stride**2 <= count:
        result = coarsen(result, grid)
    return result


def repeat(event: Loss, count: int, grid: Grid) -> Loss:
    """``count`` times the same event, by squaring."""
    result = event
    for bit in f"{count:b}"[1:]:
        result = compose(result, result, grid)
        if bit == "1":
            result = compose(result, event, grid)
    return result


def delta_at(loss: Loss, epsilon: Fraction, grid: Grid) -> Fraction:
    """Infinite mass plus the sum of mass (1 - exp(epsilon) / t_i) where positive, rounded up."""
    ratio = multiply(exp(enclose(epsilon)), grid.power(-loss.start))[0]
    down = grid.power(-loss.stride)[0]
    total = loss.infinite * ONE
    for mass in loss.masses:
        total += mass * max(0, ONE - ratio)
        ratio = ratio * down >> BITS
    return Fraction(total, grid.unit * ONE)


# ── The certificate ──


def _tails(m: int) -> tuple[list[Interval], Interval]:
    """Weights of half + i ones and more among m coins, i = 0, 1, ..., over that of half = ceil(m / 2), and of all."""
    half, low, high = (m + 1) // 2, [ONE], [ONE]  # weights of half, half + 1, ..., over that of half, the largest
    while high[-1] > 1 and half + len(low) <= m:
        k = half + len(low)  # C(m, k) = C(m, k - 1) (m - k + 1) / k
        low.append(low[-1] * (m - k + 1) // k)
        high.append(_up(high[-1] * (m - k + 1), k))
    last = half + len(low) - 1  # beyond: a geometric series of the ratio (m - last) / (last + 1)
    tails = [(0, _up(high[-1] * (m - last), 2 * last + 1 - m))]
    for least, most in zip(reversed(low), reversed(high), strict=True):
        tails.append((tails[-1][0] + least, tails[-1][1] + most))
    tails.reverse()
    even = ONE if m % 2 == 0 else 0  # the middle of an odd number of weights is counted once
    return tails, (2 * tails[0][0] - even, 2 * tails[0][1] - even)


def _binomial(event: Event) -> Curve:
    """X + 1 against X, X of m fair coins: the ratio x / (m - x + 1) rises, so the best sets are x >= k."""
    m = read_integer(event["trials"], RULE, least=1, most=MOST_COINS)
    half, (tails, total) = (m + 1) // 2, _tails(m)

    def above(k: int) -> Interval:
        """P(X >= k)."""
        if k < half:
            least, most = above(m - k + 1)
            return ONE - most, ONE - least
        least, most = tails[min(k - half, len(tails) - 1)] if k <= m else (0, 0)
        return (least << BITS) // total[1], _up(most << BITS, total[0])

    def at(t: int) -> Interval:
        """D(t) at t in units: x t' >= t (m - x + 1) with t' one in units."""
        k = _up(t * (m + 1), t + ONE)
        (low_p, high_p), (low_q, high_q) = above(k - 1), above(k)
        return low_p - _up(t * high_q, ONE), high_p - (t * low_q >> BITS)

    return lambda t: (at(t[1])[0], at(t[0])[1])


# law: builder of its curve, fields, terms of its curve, and whether one curve is that of both directions
LAWS: dict[str, tuple[Callable[[Event], Curve], set[str], int, bool]] = {
    "gaussian": (_gaussian, {"squared_ratio"}, 2, True),
    "opposite gaussians": (_opposite, {"squared_ratio", "share"}, 4, True),
    "gaussian mixture": (_mixture, {"squared_ratio", "weights"}, 2, False),
    "laplace": (_laplace, {"ratio"}, 2, True),
    "geometric": (_geometric, {"epsilon", "distance"}, 8, True),
    "randomised response": (_randomised_response, {"epsilon", "values"}, 2, True),
    "approximate": (_approximate, {"epsilon", "lost"}, 2, True),
    "discrete": (_discrete, {"p", "q"}, 2, False),
    "binomial": (_binomial, {"trials"}, 2, True),
    "stopped run": (_stopped, {"squared_shift", "queries"}, 2, True),
    "largest normal": (_largest, {"squared_shift", "candidates"}, 2, True),
}
HULLS = ("stopped run", "largest normal")  # the polygon bounds both orders of neighbours, and is never turned round
BODY = {"events", "grid", "epsilon", "delta"}
FIELDS = {"rate"}.union(*(fields for _, fields, _, _ in LAWS.values()))


def _is_hull(value: object) -> bool:
    return isinstance(value, dict) and value.get("law") in HULLS


def _hull_work(value: object) -> int:
    """Work for the knots of a polygon: points of a Gaussian's curve, one, or one for each of many queries."""
    if not _is_hull(value):
        return 0
    event = read_object(value, RULE, {"law", "count"}, FIELDS)
    rounds = 2  # singly, and then in blocks that grow by a quarter
    if "queries" in event:
        rounds = ONE_BY_ONE + 4 * read_integer(event["queries"], RULE, least=1, most=MOST_COUNT).bit_length()
    return 2 * KNOTS * rounds * CURVE_WORK


def _read_event(value: object) -> tuple[Fraction, Curve, int, int, bool]:
    """(squared ratio of a Gaussian that is not sampled, else 0; curve; count; work a point; symmetric)."""
    event = read_object(value, RULE, {"law", "count"}, FIELDS)
    build, fields, terms, symmetric = LAWS[read_choice(event["law"], RULE, LAWS)]
    read_object(event, RULE, {"law", "count", *fields}, set() if _is_hull(event) else {"rate"})
    count, curve = read_integer(event["count"], RULE, least=1, most=MOST_COUNT), build(event)
    terms = max([terms, *(len(part) for part in event.values() if isinstance(part, list))])
    if "rate" in event:
        rate = read_fraction(event["rate"], RULE, above=0, most=1)
        return Fraction(0), _sampled(curve, rate), count, terms, False
    return _squared(event) * count if build is _gaussian else Fraction(0), curve, count, terms, symmetric


def upper_delta(document: object) -> Fraction:
    """An upper bound on delta at the document's epsilon, the greater of both directions.

    Raises:
        Rejected: a field is missing, unknown or out of range, or the work exceeds the limit.
    """
    body = read_object(document, RULE, BODY)
    hints = read_object(body["grid"], RULE, {"steps", "digits", "trim"})
    grid = Grid(
        steps=read_fraction(hints["steps"], RULE, least=1, most=1 << 17),
        unit=int(10 ** read_integer(hints["digits"], RULE, least=4, most=50)),
        trim=read_fraction(hints["trim"], RULE, least=0, most=1),
    )
    epsilon = read_fraction(body["epsilon"], RULE, least=0, most=MOST_EPSILON)
    listed = read_list(body["events"], RULE, least=1, most=MOST_EVENTS)
    grid.spend(sum(map(_hull_work, listed)))
    events = [_read_event(event) for event in listed]
    # Gaussians compose exactly: their squared ratios add
    squared = sum((squared for squared, *_ in events), Fraction(0))
    curves = [(gaussian(squared), 1, 2)] if squared else []
    hulls = [False] * len(curves) + [
        _is_hull(x) for x, (squared, *_) in zip(listed, events, strict=True) if not squared
    ]
    curves += [(curve, count, terms) for squared, curve, count, terms, _ in events if not squared]
    pairs = [(discretise(curve, grid, terms=terms), count) for curve, count, terms in curves]
    pairs = [((there, there if hull else back), n) for ((there, back), n), hull in zip(pairs, hulls, strict=True)]
    one_way = all(symmetric for *_, symmetric in events)
    worst = Fraction(0)
    for direction in (0,) if one_way else (0, 1):
        losses = [repeat(pair[direction], count, grid) for pair, count in pairs]
        losses.sort(key=lambda loss: len(loss.masses))
        whole = losses[0]
        for loss in losses[1:]:
            whole = compose(whole, loss, grid)
        worst = max(worst, delta_at(whole, epsilon, grid))
    return worst


def check_numeric(document: object) -> None:
    """Accept the statement "these events together are (epsilon, delta)-private", or raise Rejected."""
    delta = read_fraction(read_object(document, RULE, BODY)["delta"], RULE, above=0, most=1)
    try:
        bound = upper_delta(document)
    except ValueError as fault:  # an enclosure that does not fit: a hint or a size out of its range
        raise Rejected(RULE, str(fault)) from fault
    if bound > delta:
        raise Rejected(RULE, "delta is not proved at this epsilon on this grid")
