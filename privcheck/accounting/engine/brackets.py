"""Bounds on δ(ε) from both sides for small losses and huge counts: a contour integral over trimmed laws.

It is the integral of `contour`, in places where that has no line: because rare large losses hide the bulk from the
cumulants (`trimmed` leaves them out), because the characteristic function of the loss is not known to fall, as for
atoms, or because a count would multiply the rounding of a cumulant. What is added here:

1. *Trimmed laws.* δ′(ε) ≤ δ(ε) ≤ δ′(ε) + τ, with τ the mass of P left out [lemma trimmed-laws].
2. *A bound on φ beyond every node.* Up to π over the bulk's range of losses from pairs of outcomes ([lemma
   pairs-of-outcomes], about e^{−σ²t²/5} for a sum of variance σ²), from there on by the density's variation.
3. Lemma bracket-smoothing: With G ~ N(v/2, v), the loss of a Gaussian mechanism of μ² = v, δ(ε) ≤ E δ(ε − G), and for
   every η and c > 0 E δ(ε + η − G) ≤ δ(ε) + κ·e^{K(c) − c(ε+η) + c(c+1)v/2}·Φ(−(η − (c + ½)v)/√v), κ = c^c/(1 +
   c)^{1+c}. Proof: composed with the job the mechanism only adds to the loss; where G > η, Chernoff's bound is δ(x) ≤
   e^{K(c) − cx}κ. Where φ is not known to fall far enough, such a mechanism of small v, whose φ is e^{−vt²/2}, is
   composed with the job.
4. Lemma bracket-aliasing: The period at a distance of kR adds e^{ckR}δ(ε + kR) ≤ κ(θ)e^{K(θ) − θε − (θ − c)kR} for
   every θ > c, and the same for k < 0 and θ < c; also δ ≤ 1. Proof: Chernoff's bound, as in 3. Aliasing only adds
   [lemma contour-aliasing], so that the upper bound needs no more; from the lower bound this is taken.

A central limit theorem would give the limit law with an error of the order of 1/√n. Here the characteristic function is
computed, not expanded, so the error is that of the bounds above: at 10⁹ releases of ε = 10⁻⁵ some 10⁻⁸ of δ.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from privcheck.accounting.engine.contour import Line, period, raise_roots
from privcheck.accounting.engine.gdp import SMALLEST
from privcheck.accounting.engine.grid import from_the_middle
from privcheck.accounting.engine.job import Job, saddle_at, saddle_for
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, Moments, as_complex, as_floats
from privcheck.accounting.engine.trimmed import Trimmable, Trimmed

T = TypeVar("T", float, Floats)
_TAIL: Final = 1e-6  # of δ, left out
_FALLEN: Final = 16.0  # −ln of what truncation may leave, relative to the result
_SMOOTHED: Final = 1e-5  # of ln δ, that smoothing may add where longer sums cost more
_MOST_WORK: Final = 1e8  # products of nodes and times
_MOST_TIMES: Final = 2e5
_FIRST: Final = 3.0  # t of the first candidate, in units of 1/σ
_OCTAVES: Final = 45
_PARTS: Final = 2  # of an octave
_LOOKS: Final = (8, _OCTAVES)  # octaves looked at, more where these leave too much
_HALVES: Final = 10  # of the interval in which the variance of the smoothing is sought, in its logarithm …
_DEEP: Final = 50  # … in octaves
_USELESS: Final = 2.0  # of ln δ, that smoothing would add
_MOVED: Final = 6.0  # standard deviations by which smoothing moves ε of the lower bound
_NOWHERE: Final = 1e-100  # a period below it, or above its inverse: Chernoff says nothing
_BEYOND: Final = 4.0
_FAINTEST: Final = -34.0  # ln of the result relative to the largest term of its sum
_CHEAP: Final = 3e6  # products, for which no other line is looked for …
_CHEAP_ENOUGH: Final = 1e7  # … and no third
_NEARER: Final = (1.0, 0.65, 0.5, 0.8)
_TILTS: Final = 3  # octaves of tilts that share nodes
_FACTORS: Final = np.array([0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0])
GAP: Final = 1e-2  # of ln δ, between the bounds, above which the grid is asked too
_SAME: Final = 4 * _TAIL  # of ln δ: a gap for which no other line is looked for
_CLOSE: Final = 1e-3  # of ln δ: a gap between the bounds that counts as none
_TURNS: Final = 6  # of a search for the place of a line
_REACH: Final = 3.0  # widths on both sides of a line, where it is looked at
_TABLE: Final = 129  # points
_LEAST_TABLE: Final = 9
_MOST_REFINED: Final = 2e6  # sines and cosines of one step of Newton's method
_VISIBLE: Final = 1e-5  # of δ: what may be left out
_DEEPER: Final = 2.0  # by which ln δ is taken to be less than what was found
_MOST_LINES: Final = 16  # for vectorised questions, each of which gets the best bound that one of them gives …
_MOST_LOOSE: Final = 2  # … and as many of them as may leave a gap, before the rest is left to the grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrimmedJob:
    """Composition of trimmed laws.

    Attributes:
        laws: The laws with their counts.
        mu_squared: μ² of all Gaussians together.
        tail: Mass of one law that may be left out.
        direction: Direction of the pairs.
    """

    laws: tuple[tuple[Trimmable, int], ...]
    mu_squared: float
    tail: float
    direction: Direction
    _known: dict[tuple[float, float], list[tuple[Trimmed, int]] | None] = field(default_factory=dict, repr=False)

    def nodes(self, c: float, longest: float) -> list[tuple[Trimmed, int]] | None:
        """The laws' nodes, accurate up to a tilt and a time; None where there are too many."""
        key = (c, longest)
        if key not in self._known:
            made = list[tuple[Trimmed, int]]()
            for law, count in self.laws:
                one = law.trim(self.tail, self.direction, c=c, longest=longest)
                if one is None:
                    break
                made.append((one, count))
            self._known[key] = made if len(made) == len(self.laws) else None
        return self._known[key]

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ of the composition at (m,) real c; those of a c share nodes with those up to 8 times as large."""
        v = self.mu_squared
        sums = [c * (c + 1) * (v / 2), (c + 0.5) * v, np.full(len(c), v)]
        tilts = _octave(c)
        for tilt in np.unique(tilts).tolist():
            part = tilts == tilt
            made = self.nodes(tilt, 0.0)
            for law, count in made or ():
                for total, own in zip(sums, law.moments(c[part]), strict=True):
                    total[part] += count * own
            if made is None:
                for total in sums:
                    total[part] = np.inf
        return sums[0], sums[1], sums[2]


def _octave(c: T) -> T:
    """Largest tilt of those that share nodes with c, at least 1."""
    tilt: T = 2.0 ** (np.maximum(np.ceil(np.log2(c) / _TILTS), 0) * _TILTS)
    return tilt


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bracket:
    """Bounds on ln δ(ε) from both sides, tight near one ε.

    Attributes:
        line: The integrand, with truncation and rounding in its error.
        lost: P-mass of all releases that is left out, rounded up.
        moved: η, by which ε is moved for the lower bound, for smoothing adds to the loss.
        slack: Bound on the rounding of the line's scale.
        alias: (θ, ln of a bound at ε = 0) of the periods above, and of those below; they fall as e^{−θε}.
        above_moved: ln of a bound on what losses of the smoothing above η add at ε = −η; it falls as e^{−cε}.
    """

    line: Line
    lost: float
    moved: float
    slack: float
    alias: tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
    above_moved: float

    @property
    def width(self) -> float:
        """Width of the neighbourhood."""
        return self.line.width

    def log_deltas(self, epsilons: Floats) -> Floats:
        """(m,) upper bounds on ln δ."""
        logs = self.line.log_deltas(epsilons)
        if self.lost > 0:
            logs = np.logaddexp(logs, math.log(self.lost)) * (1 - 1e-15)
        return as_floats(np.minimum(logs, 0.0))

    def least(self, epsilons: Floats) -> Floats:
        """(m,) lower bounds on ln δ; −∞ where none is known."""
        at = epsilons + self.moved
        totals, errors = self.line.sums(at)
        base = self.line.scale - self.line.c * at
        more = [(consts - np.multiply.outer(at, thetas)).min(axis=1) for thetas, consts in self.alias]
        more.append(np.full(len(at), self.above_moved) - self.line.c * at)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            excess = sum(np.exp(np.minimum(log - base + 1e-9, 700.0)) for log in more)
            rest = np.log(np.maximum(totals - errors - excess, 0.0))
        return as_floats(base + rest - self.slack - 1e-12 * (1 + np.abs(base)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A line, before it is computed.

    Attributes:
        c: Real part of the line.
        k: K(c).
        curvature: Second derivative of the exponent at c.
        apart: R, the period.
        cut: Where the integral ends.
    """

    c: float
    k: float
    curvature: float
    apart: float
    cut: Cut


def _plan(job: TrimmedJob, epsilon: float, log_delta: float, c: float, look: int) -> Plan | None:
    k, _, k2 = (float(x[0]) for x in job.moments(np.array([c]), job.direction))
    curvature = k2 + 1 / c**2 + 1 / (c + 1) ** 2
    if not (math.isfinite(k) and math.isfinite(curvature)):
        return None
    apart = period(job, epsilon, c, job.direction)
    if not _NOWHERE < apart < 1 / _NOWHERE:
        return None
    leading = -math.log(c) - math.log1p(c) - 0.5 * math.log(2 * math.pi * curvature)
    aim = min(leading, log_delta - k + c * epsilon)
    if not aim > _FAINTEST:
        return None
    cut = _cut(job, c, 2 * math.pi / apart, math.sqrt(k2), target=aim - _FALLEN, look=look)
    if cut is None or cut.variance * c * (c + 1) > 2 * _USELESS:
        return None
    return Plan(c=c, k=k, curvature=curvature, apart=apart, cut=cut)


def _best_plan(job: TrimmedJob, epsilon: float, log_delta: float, c: float) -> Plan | None:
    """The line through c, or one nearer 0 with less work: under a large tilt large losses make the period long."""
    plans = list[Plan]()

    def order(plan: Plan) -> tuple[float, float]:
        added = plan.c * (plan.c + 1) * plan.cut.variance / 2
        return (added if added > _SMOOTHED else 0.0, plan.cut.work)

    for look in _LOOKS:
        for factor in _NEARER:
            plan = _plan(job, epsilon, log_delta, c * factor, look)
            if plan is not None:
                plans.append(plan)
                if plan.cut.variance == 0 and plan.cut.work <= (_CHEAP if factor == 1 else _CHEAP_ENOUGH):
                    return plan
        if plans and order(best := min(plans, key=order))[0] == 0:
            return best
    return min(plans, key=order, default=None)


def bracket(job: TrimmedJob, epsilon: float, log_delta: float, c: float) -> Bracket | None:
    """Build the bounds near an ε; None where nothing useful is known.

    Args:
        job: The composition.
        epsilon: ε.
        log_delta: An estimate of ln δ there.
        c: The saddle point.
    """
    plan = _best_plan(job, epsilon, log_delta, c)
    made = job.nodes(plan.c, plan.cut.time) if plan is not None else None
    if plan is None or made is None:
        return None
    c, k, cut, curvature, apart = plan.c, plan.k, plan.cut, plan.curvature, plan.apart
    step = 2 * math.pi / apart
    smoothed = replace(job, mu_squared=job.mu_squared + cut.variance)
    count = math.ceil(cut.time / step) + 1
    times = as_floats(step * np.arange(count))
    v = smoothed.mu_squared
    squares = (times * math.sqrt(v)) ** 2
    exponents = as_complex(1j * times * ((c + 0.5) * v) - squares / 2)
    rough = 8 * UNIT * (times * ((c + 0.5) * v) + squares)
    error, off = 0.0, 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for law, repeats in made:
            wave, relative, unknown = law.wave(c, step, count, repeats)
            exponents = exponents + repeats * wave
            rough = rough + repeats * relative + UNIT * repeats * np.abs(np.where(wave.real > -1e3, wave, 0.0)) * 4
            error += unknown
            off += repeats * law.rounding(c)
    gone = ~(exponents.real > -745)
    exponents = as_complex(np.where(gone, -800.0, exponents))
    rough = np.where(gone, 0.0, rough + UNIT * (16 + 4 * len(made)))
    z = c + 1j * times
    poles = as_complex(step / math.pi / (z * (z + 1)))
    weights = as_complex(np.exp(exponents) * poles)
    weights[0] /= 2
    moduli = np.abs(weights)
    if not moduli[0] > 0:  # its rounding is all that is known
        return None
    rounded = float((moduli * (np.expm1(np.minimum(rough, 700.0)) + UNIT * (40 + count / 8))).sum())
    # what is gone may be as large as its error allows
    rounded += error * float(np.abs(poles).sum()) + 1e-300
    kept = 1 + int(np.flatnonzero(moduli > 1e-20 * moduli[0])[-1])
    scale = k + c * (c + 1) * cut.variance / 2
    slack = off + 1e-13 * abs(scale) + 1e-15
    line = Line(
        c=c,
        epsilon=epsilon,
        scale=scale + slack,
        times=as_floats(times[:kept]),
        weights=weights[:kept],
        width=math.sqrt(curvature),
        error=(math.exp(cut.left) + rounded + float(moduli[kept:].sum())) * (1 + 1e-9),
        turning=8 * UNIT * float((moduli * times).sum()),
    )
    lost = sum(repeats * law.p_out for law, repeats in made) * (1 + 1e-9)
    moved = (c + 0.5) * cut.variance + _MOVED * math.sqrt(cut.variance)
    return Bracket(
        line=line,
        lost=lost + SMALLEST if lost > 0 else 0.0,
        moved=moved if cut.variance > 0 else 0.0,
        slack=2 * slack,
        alias=_alias(smoothed, c, apart, curvature),
        above_moved=_chernoff(c) + scale + slack + math.log(math.erfc(_MOVED / math.sqrt(2)) / 2)
        if cut.variance > 0
        else -math.inf,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where the integral ends.

    Attributes:
        time: t of the last node, at least.
        variance: v of the smoothing, 0 where none is needed.
        left: ln of a bound on what is left out.
        work: Products of nodes and times.
    """

    time: float
    variance: float
    left: float
    work: float


def _cut(job: TrimmedJob, c: float, step: float, std: float, *, target: float, look: int) -> Cut | None:
    """The first end that leaves out little enough, with hardly any smoothing; or that with the least of it.

    Args:
        job: The composition.
        c: Tilt.
        step: Between the nodes in t.
        std: Standard deviation of the tilted loss.
        target: ln of what may be left out.
        look: Octaves of ends that are looked at.

    Returns:
        None where there are too many nodes.
    """
    base = job.nodes(_octave(c), 0.0)
    if base is None:
        return None
    first = max(_FIRST / max(std, 1e-150), 2 * step)
    # beyond it no law's φ is known to fall any further, or it has fallen
    last = max([_BEYOND * max(law.variation, math.pi / law.narrowest) for law, _ in base], default=0.0)
    octaves = min(_OCTAVES, max(1, math.ceil(math.log2(max(last / first, 2.0)))) + 2)
    times = as_floats(first * 2.0 ** (np.arange(_PARTS * octaves + 1) / _PARTS))
    sizes = [(len(law.losses), 16 / 12 * float(law.highs[-1] - law.lows[0]), law.variation > 0) for law, _ in base]
    nodes = sum((size + (width * times if smooth else 0.0) for size, width, smooth in sizes), start=np.ones(len(times)))
    work = nodes * (times / step + 1)
    affordable = int(np.count_nonzero((work <= _MOST_WORK) & (times <= _MOST_TIMES * step)))
    shares = np.log(1 / (times - step) - np.append(1 / times[1:], 0.0)) - math.log(math.pi)
    possible = min(affordable, look * _PARTS)
    made = job.nodes(c, float(times[possible - 1])) if possible else None
    if made is None:
        return None
    logs = -job.mu_squared * times**2 / 2
    for law, repeats in made:
        fallen = np.log(np.minimum(1.0, law.atoms + law.variation / times))
        fallen[:-1] = np.minimum(fallen[:-1], law.bound_by_pairs(c, times))
        logs += repeats * fallen
    found = _least_smoothing(as_floats(logs + shares), times, as_floats(work[:possible]), target)
    added = c * (c + 1) * np.array([cut.variance for cut in found]) / 2
    good = np.flatnonzero(added <= _SMOOTHED)
    return found[int(good[0]) if len(good) else int(np.argmin(added))]


def _least_smoothing(logs: Floats, times: Floats, work: Floats, target: float) -> list[Cut]:
    """The least variance of smoothing for every possible end, from ln of what every part of the integral is at most."""
    index, possible = np.arange(len(times)), len(work)
    tails = np.where(index >= index[:possible, None], logs, -np.inf)
    squares = times**2 / 2

    def left(variance: Floats) -> Floats:
        terms = tails - np.multiply.outer(variance, squares)
        top = terms.max(axis=1)
        return as_floats(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))

    # e^{−vT²/2} of the first part, and less of the others
    needed = np.maximum(0.0, left(np.zeros(possible)) - target) / squares[:possible]
    low = needed * 2.0**-_DEEP
    for _ in range(_HALVES):
        middle = np.sqrt(low * needed)
        good = left(as_floats(middle)) <= target
        needed, low = np.where(good, middle, needed), np.where(good, low, middle)
    rest = left(as_floats(needed)) + 1e-9
    rows = zip(times[:possible].tolist(), needed.tolist(), rest.tolist(), work.tolist(), strict=True)
    return [Cut(time=t, variance=v, left=x, work=w) for t, v, x, w in rows]


def _chernoff(z: float) -> float:
    """Logarithm of z^z/(z + 1)^{z + 1}."""
    return -z * math.log1p(1 / z) - math.log1p(z) if z > 0 else 0.0


def _alias(
    job: TrimmedJob, c: float, apart: float, curvature: float
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """What the periods above and below add to δ(ε): (θ, ln at ε = 0), each θ giving a bound."""
    away = _FACTORS * math.sqrt(80 / curvature)
    below = np.append(np.minimum(away, c * (1 - 1e-3)), c)
    thetas = np.concatenate([c + away, c - below[:-1]])
    logs = job.moments(thetas, job.direction)[0] * (1 + 1e-12) + 1e-12
    logs = np.append(np.where(np.isfinite(logs), logs, np.inf), 0.0)
    thetas = np.append(thetas, 0.0)
    logs += np.array([_chernoff(theta) for theta in thetas.tolist()])
    each = np.concatenate([away, below]) * apart
    logs += -each - np.log(-np.expm1(-each))
    split = len(away)
    return (as_floats(thetas[:split]), as_floats(logs[:split])), (as_floats(thetas[split:]), as_floats(logs[split:]))


def bracket_epsilons(job: Job, log_deltas: Floats, direction: Direction) -> tuple[Floats, Floats] | None:
    """Compute (m,) certified ε with δ(ε) ≤ δ, and (m,) lower bounds on ln δ there; ∞ and −∞ where there are none.

    Args:
        job: The composition.
        log_deltas: (m,) ln δ.
        direction: Direction of the asymmetric pairs.

    Returns:
        None where some law cannot be trimmed.
    """
    values, least = np.full(len(log_deltas), np.inf), np.full(len(log_deltas), -np.inf)
    if _trimmable(job) is None:
        return None
    tight, made, loose = np.zeros(len(log_deltas), dtype=bool), 0, 0
    for i in from_the_middle(log_deltas):
        if tight[i] or (made >= _MOST_LINES and math.isfinite(values[i])):
            continue
        if loose >= _MOST_LOOSE:
            break
        made += 1
        tight[i] = True
        near = _bracket_for(job, float(log_deltas[i]), direction)
        if near is None:
            loose += 1
            continue
        roots = _roots(near, log_deltas)
        known = np.isfinite(roots)
        below = np.full(len(roots), -np.inf)
        below[known] = near.least(roots[known])
        better = roots < values
        values, least = np.where(better, roots, values), np.where(better, below, least)
        loose += not least[i] > log_deltas[i] - GAP
        tight |= least > log_deltas - _CLOSE
    return values, least


def bracket_log_deltas(job: Job, epsilons: Floats, near: Floats, direction: Direction) -> tuple[Floats, Floats] | None:
    """Compute (m,) certified upper and lower bounds on ln δ(ε); 0 and −∞ where there are none.

    Args:
        job: The composition.
        epsilons: (m,) ε.
        near: (m,) upper bounds on ln δ.
        direction: Direction of the asymmetric pairs.

    Returns:
        None where some law cannot be trimmed.
    """
    values, least = np.zeros(len(epsilons)), np.full(len(epsilons), -np.inf)
    if _trimmable(job) is None:
        return None
    tight, made, loose = np.zeros(len(epsilons), dtype=bool), 0, 0
    for i in from_the_middle(epsilons):
        if tight[i] or (made >= _MOST_LINES and values[i] < 0):
            continue
        if loose >= _MOST_LOOSE:
            break
        made += 1
        tight[i] = True
        roughly, at = float(min(near[i], values[i])), float(epsilons[i])
        for _ in range(_TURNS):
            trimmed = _trim(job, roughly, direction)
            one = bracket(trimmed, at, roughly, saddle_at(trimmed, at, direction))
            if one is None:
                break
            there = np.abs(epsilons - at) <= _REACH * one.width
            upper, lower = one.log_deltas(epsilons[there]), one.least(epsilons[there])
            values[there], least[there] = np.minimum(values[there], upper), np.maximum(least[there], lower)
            if not one.lost > _VISIBLE * math.exp(max(float(values[i]), -740.0)):
                break
            roughly = float(values[i]) - _DEEPER
        loose += not least[i] > values[i] - GAP
        tight |= least > values - _CLOSE
    return values, least


def trimmed_tilt(job: Job, epsilon: float, log_delta: float, direction: Direction) -> float:
    """Saddle point of the trimmed laws at ε; 0 where no large loss is trimmed, or where some law cannot be trimmed."""
    if job.mu_squared == 0 and math.isfinite(job.largest(direction)):
        return 0.0
    sketch = job.sketch(direction)
    return 0.0 if _trimmable(sketch) is None else saddle_at(_trim(sketch, log_delta, direction), epsilon, direction)


def _trimmable(job: Job) -> tuple[tuple[Trimmable, int], ...] | None:
    laws = tuple((law, count) for law, count in job.laws if isinstance(law, Trimmable))
    return laws if len(laws) == len(job.laws) and not job.orders_only else None


@functools.lru_cache(maxsize=16)
def _trim(job: Job, log_delta: float, direction: Direction) -> TrimmedJob:
    """The trimmed laws, whose nodes one question needs several times."""
    laws = _trimmable(job)
    assert laws is not None
    tail = _TAIL * math.exp(max(log_delta, -650.0)) / sum(count for _, count in laws)
    return TrimmedJob(laws=laws, mu_squared=job.mu_squared, tail=tail, direction=direction)


def _bracket_for(job: Job, log_delta: float, direction: Direction) -> Bracket | None:
    """Bounds made for the ε at which ln δ has the given value, or for 0."""
    trimmed = _trim(job, log_delta, direction)
    c, epsilon = saddle_for(trimmed, log_delta, direction)
    target = np.array([log_delta])
    found: Bracket | None = None
    for _ in range(_TURNS):
        if epsilon <= 0:
            epsilon, c = 0.0, saddle_at(trimmed, 0.0, direction)
        made = bracket(trimmed, epsilon, log_delta, c)
        if made is None:
            return found
        found = made
        root = float(_roots(made, target)[0])
        if root == epsilon or (math.isfinite(root) and abs(root - epsilon) <= made.width):
            return made
        if math.isfinite(root) and float(made.least(np.array([root]))[0]) > log_delta - _SAME:
            return made
        # δ above the target on all of the neighbourhood: further up
        root = root if math.isfinite(root) else epsilon + _REACH * made.width
        epsilon, c = root, saddle_at(trimmed, root, direction)
    return found


def _roots(made: Bracket, log_deltas: Floats) -> Floats:
    """(m,) ε in the neighbourhood at which the upper bound is not above (m,) ln δ, rounded up; ∞ where there are none.

    Between two points of a table δ is below the chord, for δ is convex in e^ε; where there are not very many
    questions, Newton's method goes on from there.
    """
    low = max(0.0, made.line.epsilon - _REACH * made.width)
    points = min(_TABLE, max(_LEAST_TABLE, int(_MOST_REFINED / len(made.line.times))))
    table = np.linspace(low, made.line.epsilon + _REACH * made.width, points)
    logs = np.minimum.accumulate(made.log_deltas(table))
    right = len(table) - np.searchsorted(logs[::-1], log_deltas, side="right")
    inside = (right > 0) & (right < len(table))
    roots = np.where(right == 0, table[0], np.inf)
    at = right[inside]
    upper, lower, aimed = logs[at - 1], logs[at], log_deltas[inside]
    # the share of the way, in e^ε, at which the chord meets the target
    share = np.expm1(aimed - upper) / np.minimum(np.expm1(lower - upper), -1e-300)
    gap = table[at] - table[at - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        chord = table[at - 1] + np.log1p(np.clip(share, 0.0, 1.0) * np.expm1(gap)) * (1 + 1e-12)
    chord = np.fmin(chord, table[at])
    if len(aimed) and len(aimed) * len(made.line.times) <= _MOST_REFINED:
        roots_ = chord.copy()
        slopes = gap / (upper - lower)
        for _ in range(3):
            roots_ = np.clip(roots_ + slopes * (made.log_deltas(roots_) - aimed), table[at - 1], table[at])
        roots_ = np.maximum(roots_, 0.0)
        chord = np.minimum(chord, raise_roots(made, as_floats(roots_), as_floats(aimed)))
    roots[inside] = chord
    return as_floats(roots)
