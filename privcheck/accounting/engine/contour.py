"""δ(ε) of a composition with a smooth part, by one contour integral with a bound on its error.

Lemma contour-integral: With K the sum of the cumulants of the loss and any c > 0 at which it is finite,
δ(ε) = (1/2πi) ∫ exp(K(z) − zε)/(z(z + 1)) dz along Re z = c. Proof: E[(1 − e^{ε−L})₊] has the two-sided Laplace
transform e^{K(z)}/(z(z + 1)) in ε.

On the line through the saddle point the integrand is one bump, and the trapezoid rule gives about 13 digits, at δ =
1e-60 too. The remaining errors are bounded:

1. Lemma contour-aliasing: With step h the infinite sum is Σ_k e^{2πkc/h}·δ(ε + 2πk/h) over all integers k, every term
   of it positive, the one with k = 0 being δ(ε): aliasing only adds. Proof: Poisson's summation formula. The step, from
   Chernoff bounds, keeps the others below e^{−34} of it; no certified bound depends on that.
2. Lemma contour-truncation: Beyond t = T the sum leaves out at most e^{K(c) − cε}·D(T)/πT, φ the characteristic
   function of the tilted loss and D(T) ≥ |φ(t)| for all t ≥ T. Proof: there the integrand is at most e^{K(c) −
   cε}·sup|φ|/t². D comes from the laws (`Law.bound_decay`): a density of bounded variation falls as V/t, a Gaussian
   part as e^{−μ²t²/2}.
3. *Rounding.* Every law bounds the error of its φ; counts multiply it (all moduli are at most 1). The rounding of
   exponents, of the rotation and of the sum is counted in units of 2⁻⁵³, with an assumed error of 4 units for NumPy's
   elementary functions.

Where T is out of reach, or a count multiplies the rounding of K too far, there is no line; see `brackets`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.job import Cumulants, Job, saddle_at, saddle_for
from privcheck.accounting.engine.laws import UNIT, Complex, Direction, Fading, Floats, as_complex, as_floats

_DIGITS: Final = 34.0  # −ln of what aliasing leaves, relative to the result
_TIGHT: Final = 1e-5  # of ln δ: what a bound may lie above what was computed
_MOST_OFF: Final = 1e-2  # of K(c): the rounding that a count may make of it
_NOWHERE: Final = 1e-100  # a period below it, or above its inverse: Chernoff says nothing
_CUT: Final = 30.0  # −ln of what truncation leaves, relative to the result
_MOST_NODES: Final = 400_000
_MOST_FAILED: Final = 4  # neighbouring questions, after which the rest is not tried
_MOST_WORK: Final = 1.5e8  # nanoseconds, about
_FACTORS: Final = np.array([0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """Integrand on a vertical line, without its dependence on ε.

    Attributes:
        c: Real part of the line.
        epsilon: The ε for which the line was made; the line is tight in its neighbourhood.
        scale: K(c), taken out, rounded up.
        times: (n,) t of the nodes c + it on the upper half of the line.
        weights: (n,) e^{K(z) − K(c)}/(z(z + 1))·step/π, the first halved.
        width: Width of the neighbourhood: the std of the tilted loss.
        error: A bound on the error of the sum of the weights, truncation included.
        turning: Increase of that error per unit of ε.
    """

    c: float
    epsilon: float
    scale: float
    times: Floats
    weights: Complex
    width: float
    error: float
    turning: float

    def log_deltas(self, epsilons: Floats) -> Floats:
        """Compute (m,) ln δ at (m,) ε, rounded up; tight in the line's neighbourhood, a bound everywhere."""
        return self.bounds(epsilons)[0]

    def bounds(self, epsilons: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Compute (m,) ln δ at (m,) ε, rounded up, and whether each is tight."""
        totals, errors = self.sums(epsilons)
        tight = errors <= _TIGHT * totals
        totals = np.maximum(totals, 0.0) + errors
        log_deltas = self.scale - self.c * epsilons + np.log(totals)
        return as_floats(log_deltas + 8 * UNIT * (1 + abs(self.scale) + self.c * epsilons)), tight

    def sums(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Compute (m,) δ at (m,) ε, divided by e^{K(c) − cε}, and bounds on the errors."""
        totals = np.empty(len(epsilons))
        block = max(1, (1 << 20) // len(self.times))
        for i in range(0, len(epsilons), block):
            angles = np.multiply.outer(epsilons[i : i + block], self.times)
            # no BLAS for few: its threads cost more than they bring here
            turned = np.cos(angles) * self.weights.real + np.sin(angles) * self.weights.imag
            totals[i : i + block] = turned.sum(axis=1)
        return totals, as_floats(self.error + self.turning * epsilons)

    def log_delta(self, epsilon: float) -> float:
        """Compute ln δ(ε), rounded up."""
        return float(self.log_deltas(np.array([epsilon]))[0])


def line(job: Job, epsilon: float, c: float, direction: Direction) -> Line | None:
    """Build the integrand on the line through c; None where it falls too slowly."""
    sketch = job.sketch(direction)
    fading, roughly = job.bound_decay(c, direction), sketch.bound_decay(c, direction)
    if fading is None or roughly is None:
        return None
    k, _, k2 = (float(x[0]) for x in job.moments(np.array([c]), direction))
    curvature = k2 + 1 / c**2 + 1 / (c + 1) ** 2
    apart = period(sketch, epsilon, c, direction)
    off = float(job.bound_rounding(np.array([c]), direction)[0])
    if not (math.isfinite(k) and math.isfinite(curvature) and _NOWHERE < apart < 1 / _NOWHERE and off <= _MOST_OFF):
        return None
    step = 2 * math.pi / apart
    # to leading order the sum of the weights is 1/(c(c + 1)√(2π·curvature))
    leading = -math.log(c) - math.log1p(c) - 0.5 * math.log(2 * math.pi * curvature)
    count = _nodes(roughly, step, leading - _CUT)
    if count is None or not _affordable(job, c, step, count):
        return None
    times = as_floats(step * np.arange(count))
    exponents, error, rough = _exponents(job, c, times, step, direction)
    z = c + 1j * times
    poles = as_complex(step / math.pi / (z * (z + 1)))
    weights = as_complex(np.exp(exponents) * poles)
    weights[0] /= 2
    moduli = np.abs(weights)
    last = float(times[-1])
    left = math.exp(fading(last)) / (math.pi * last)
    rounded = float((moduli * (rough + UNIT * (40 + count / 8))).sum()) + error * float(np.abs(poles).sum())
    kept = 1 + int(np.flatnonzero(moduli > 1e-20 * moduli[0])[-1])
    return Line(
        c=c,
        epsilon=epsilon,
        scale=k + off + 4 * UNIT * abs(k),
        times=as_floats(times[:kept]),
        weights=weights[:kept],
        width=math.sqrt(curvature),
        error=(left + rounded + float(moduli[kept:].sum())) * (1 + 1e-9),
        turning=8 * UNIT * float((moduli * times).sum()),
    )


def _nodes(fading: Fading, step: float, target: float) -> int | None:
    """Number of nodes that leaves out less than e^target, None where it is too large."""

    def bound_rest(count: int) -> float:
        t = (count - 1) * step
        return fading(t) - math.log(math.pi * t)

    high = 16
    while bound_rest(high) > target:
        high *= 2
        if high > 2 * _MOST_NODES:
            return None
    low = high // 2
    while high - low > max(8, high // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if bound_rest(middle) > target else (low, middle)
    return high


def _affordable(job: Job, c: float, step: float, count: int) -> bool:
    costs = [law.work(c, step * count) for law, _ in job.laws]
    return count <= _MOST_NODES and sum(fixed + each * count for fixed, each in costs) + 200 * count <= _MOST_WORK


def _exponents(job: Job, c: float, times: Floats, step: float, direction: Direction) -> tuple[Complex, float, Floats]:
    """K(c + it) − K(c) of all laws, the absolute error of its exponential, and the error of the exponent."""
    v = job.mu_squared
    squares = (times * math.sqrt(v)) ** 2  # t²μ², whose factors may leave the floats' range
    exponents = as_complex(1j * times * ((c + 0.5) * v) - squares / 2)
    rough = 8 * UNIT * (times * ((c + 0.5) * v) + squares)
    error, turns = 0.0, 0
    with np.errstate(invalid="ignore", over="ignore"):  # −∞ where a law's φ is 0 in every digit: so is the product
        for law, count in job.laws:
            wave, off = law.wave(c, step, len(times), direction)
            exponents = exponents + count * wave
            error += count * off
            turns += count
    gone = ~(exponents.real > -745)
    exponents = as_complex(np.where(gone, -800.0, exponents))
    # a logarithm's imaginary part is at most π, its real part at most 745; both are multiplied by the count
    rough = rough + UNIT * (16 + 16 * turns + 4 * np.abs(exponents.real))
    return exponents, min(2.0, error * math.exp(min(error, 1.0))), as_floats(rough)


def period(job: Cumulants, epsilon: float, c: float, direction: Direction) -> float:
    """2π/step at which the neighbouring periods of δ(x)e^{cx} are below e^{−34} of the middle.

    For 0 < θ, δ(x) ≤ e^{K(θ) − θx}; with θ = c ± η the period R leaves at most exp(K(c ± η) − K(c) ∓ ηε − ηR).
    """
    k, _, k2 = (float(x[0]) for x in job.moments(np.array([c]), direction))
    curvature = k2 + 1 / c**2 + 1 / (c + 1) ** 2
    prefactor = math.log(c) + math.log1p(c) + 0.5 * math.log(2 * math.pi * curvature)
    need = _DIGITS + max(0.0, prefactor) + 2.0
    up = _FACTORS * math.sqrt(2 * need / curvature)
    down = np.minimum(up, c * (1 - 1e-3))
    with np.errstate(over="ignore", invalid="ignore"):
        others = job.moments(np.concatenate([c + up, c - down]), direction)[0]
        above = (others[: len(up)] - k - up * epsilon + need) / up
        below = (others[len(up) :] - k + down * epsilon + need) / down
    return max(float(np.fmin.reduce(above)), float(np.fmin.reduce(below)), 1e-300)


def contour_log_delta(job: Job, epsilon: float, direction: Direction) -> float | None:
    """Compute ln δ(ε), rounded up; None where the contour does not converge in time."""
    value = float(contour_log_deltas(job, np.array([epsilon]), direction)[0])
    return None if math.isnan(value) else value


def contour_epsilon(job: Job, log_delta: float, direction: Direction) -> float | None:
    """Compute the ε at which ln δ has the given value, rounded up; 0 where δ(0) is smaller.

    The root is checked: δ(ε) is not above the target on a line that was made for its neighbourhood.

    Returns:
        None where the contour does not converge in time.
    """
    sketch = job.sketch(direction)
    c, epsilon = saddle_for(sketch, log_delta, direction)
    if epsilon <= 0:
        at_zero = contour_log_delta(job, 0.0, direction)
        if at_zero is None or at_zero <= log_delta:
            return None if at_zero is None else 0.0
        epsilon, c = 0.0, saddle_at(sketch, 0.0, direction)
    low, high = 0.0, math.inf  # where ln δ was seen above, and not above, the target
    for turn in range(40):
        made = line(job, epsilon, c, direction)
        if made is None:
            return None
        root = _root_on(made, log_delta, low, high)
        if root is not None and abs(root - made.epsilon) <= made.width:
            return root if made.bounds(np.array([root]))[1][0] else None
        if made.log_delta(epsilon) > log_delta:
            low = epsilon
        else:
            high = epsilon
        if root is not None and low < root < high and (turn < 3 or math.isinf(high)):
            epsilon = root
        else:  # where rare large losses meet a bulk of small ones a line sees no further than itself
            epsilon = math.sqrt(max(low, 1e-3 * high) * high) if math.isfinite(high) else 2 * low + made.width
        c = saddle_at(sketch, epsilon, direction)
    return None


def _root_on(made: Line, log_delta: float, low: float, high: float) -> float | None:
    """Find the ε on one line at which ln δ falls to the target, rounded up; or the end beyond which it lies."""
    from scipy.optimize import brentq

    left, right = max(low, made.epsilon - 2 * made.width, 0.0), min(high, made.epsilon + 2 * made.width)
    if not left < right:
        return None
    if made.log_delta(left) <= log_delta:
        return left
    if made.log_delta(right) > log_delta:
        return right
    root = float(brentq(lambda e: made.log_delta(e) - log_delta, left, right, xtol=1e-300, rtol=1e-15))
    return float(raise_roots(made, np.array([root]), np.array([log_delta]))[0])


class Falling(Protocol):
    """Bound on ln δ(ε) near one ε."""

    @property
    def width(self) -> float:
        """Width of the neighbourhood."""
        ...

    def log_deltas(self, epsilons: Floats) -> Floats:
        """Compute (m,) bounds at (m,) ε."""
        ...


def raise_roots(made: Falling, roots: Floats, targets: Floats) -> Floats:
    """Move each root up by a small step, doubled until ln δ is not above its target."""
    nudge = 1e-15 * (roots + 0.01 * made.width)
    todo = np.flatnonzero(made.log_deltas(roots) > targets)
    roots = roots.copy()
    while len(todo):
        roots[todo] += nudge[todo]
        nudge[todo] *= 2
        todo = todo[made.log_deltas(roots[todo]) > targets[todo]]
    return roots


def contour_log_deltas(job: Job, epsilons: Floats, direction: Direction) -> Floats:
    """Compute (m,) ln δ at (m,) increasing ε, rounded up; NaN where the contour does not converge in time.

    A line serves half a width on both sides of its point.
    """
    values = np.full(len(epsilons), np.nan)
    start, failed, sketch = 0, 0, job.sketch(direction)
    while start < len(epsilons):
        first = float(epsilons[start])
        made = line(job, first, saddle_at(sketch, first, direction), direction)
        if made is not None and len(epsilons) > start + 1 and epsilons[start + 1] < first + made.width:
            centre = first + 0.5 * made.width
            made = line(job, centre, saddle_at(sketch, centre, direction), direction) or made
        failed = failed + 1 if made is None else 0
        if failed == _MOST_FAILED:
            break
        if made is None:
            start += 1
            continue
        stop = max(start + 1, int(np.searchsorted(epsilons, first + made.width, side="right")))
        logs, tight = made.bounds(epsilons[start:stop])
        values[start:stop] = np.where(tight, np.minimum(logs, 0.0), np.nan)
        start = stop
    return values


def contour_epsilons(job: Job, log_deltas: Floats, direction: Direction) -> Floats:
    """Compute (m,) ε at (m,) decreasing ln δ, rounded up; NaN where the contour does not converge in time.

    The roots of neighbouring targets are found on one line: in a table, then by Newton's method.
    """
    values = np.full(len(log_deltas), np.nan)
    start, failed, sketch = 0, 0, job.sketch(direction)
    while start < len(log_deltas):
        root = contour_epsilon(job, float(log_deltas[start]), direction)
        start, failed = start + 1, failed + 1 if root is None else 0
        if root is None and failed == _MOST_FAILED:
            break
        if root is None:
            continue
        values[start - 1] = root
        if start == len(log_deltas) or (root == 0 and log_deltas[start] >= log_deltas[start - 1]):
            continue
        made = line(job, root, saddle_at(sketch, root, direction), direction)
        if made is None:
            continue
        made = (
            line(job, root + 0.5 * made.width, saddle_at(sketch, root + 0.5 * made.width, direction), direction) or made
        )
        table = np.linspace(root, root + made.width, 257)
        falling = -made.log_deltas(table)
        if not np.all(np.diff(falling) > 0):
            continue
        stop = start + int(np.searchsorted(-log_deltas[start:], falling[-1], side="right"))
        targets = log_deltas[start:stop]
        roots = np.interp(-targets, falling, table)
        slopes = np.interp(-targets, falling, np.gradient(table, falling))
        for _ in range(3):
            roots = np.clip(roots + slopes * (made.log_deltas(roots) - targets), root, table[-1])
        roots = raise_roots(made, as_floats(roots), targets)
        values[start:stop] = np.where(made.bounds(roots)[1], roots, np.nan)
        start = stop
    return values
