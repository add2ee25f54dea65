"""A whole plan as one number: the least μ for which μ-GDP covers the plan's curve, certified.

A plan is a composition whose events are fixed in advance, and its exact curve is valid. Adaptively chosen spending
needs a totally ordered currency. Both meet in Σμ²: where δ_plan(ε) ≤ δ_μ(ε) + δ₀ for *every* ε ≥ 0, in both directions,
the plan's trade-off function is at least f_μ − δ₀, the trade-off function of N(0, 1) against N(μ, 1) with a mass δ₀
revealed. The plan is then post-processing of that pair (Blackwell), and costs (μ², δ₀) in a filter for Σμ², like one
release. δ₀ contains the mass that the plan loses outright and, on request, a part of the tail.

It is a proof rather than a check on a grid:

* **between points** δ_plan is convex in e^ε, so a chord bounds it from above; a tangent bounds δ_μ from below, and the
  chord of an interval lies below the tangent if its two ends do;
* **beyond the last point** the plan's loss is bounded and δ is 0, or δ is below δ₀, or the plan is Gaussian noise
  beside losses of at most b: its loss is at most N(μ_G²/2 + b, μ_G²), and from the larger root of a quadratic on the
  density of that law is below that of N(μ²/2, μ²); so is δ, its integral against (1 − e^(ε − l))₊;
* every δ_plan is rounded up and every δ_μ down.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.combining import job_of
from privcheck.accounting.currencies import Cost, Currency, cost_of
from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.engine.gdp import gdp_log_delta, gdp_tangent
from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laws import Floats, LostLaw
from privcheck.accounting.engine.methods import epsilons_of, log_deltas_of, upper_epsilons, upper_log_deltas
from privcheck.accounting.events import Event
from privcheck.accounting.reals import Real
from privcheck.accounting.sums import probability
from privcheck.errors import ParameterError
from privcheck.terms.symbols import to_float
from privcheck.terms.unit import RelationName

_GDP: Final = Currency(name="gdp")
_STEP: Final = 1e-4  # by which μ is raised where it does not hold: its distance from the least
_FIRST: Final = 129  # points of the first look
_FAR: Final = -45.0  # ln δ, up to which the first look goes
_SLACK: Final = 1e-11  # of ln δ_μ and its slope, relative to 1 + |ln δ|: they are known to 1e-14
_NARROW: Final = 1e-3  # fall of ln δ over an interval that is not halved again
_MOST: Final = 20_000  # points, for one branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Cost of a plan in Σμ², as one release.

    Attributes:
        mu_squared: μ², rounded up.
        lost: δ₀: the mass lost outright and the δ set aside.
        method: Origin of μ.
        points: Number of ε at which the plan's curve was computed.
        relation: Relation under which the plan is priced; None where no event of it names one.
    """

    mu_squared: Fraction
    lost: Fraction
    method: str
    points: int
    relation: RelationName | None

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return math.nextafter(math.sqrt(to_float(self.mu_squared, rounding="up")), math.inf)

    @property
    def cost(self) -> Cost:
        """Cost to spend in a filter or odometer for "gdp"."""
        return Cost(amount=self.mu_squared, lost=self.lost, relation=self.relation)


def compress_to_mu(*parts: Event | Curve | Iterable[Event | Curve], lost: Real = 0) -> Compressed:
    """Find the least μ², to about 1e-4, for which a composition fixed in advance is μ-GDP up to a δ₀; certified.

    Never above Σμ² of the single events, where that is finite. For sampled noise, discrete Gaussian noise and zCDP no
    tail bound is known that Gaussian noise of a smaller spread than theirs would cover: they need `lost`.

    Args:
        parts: Events and curves, as in `compose`; fixed in advance.
        lost: δ set aside for the tail, in addition to the mass lost outright.

    Raises:
        ParameterError: No finite μ is known, or lost is out of range.

    >>> from privcheck import accounting as acc
    >>> plan = [acc.gaussian(std=30, count=1000), acc.laplace(scale=50, count=500)]
    >>> whole = compress_to_mu(plan)
    >>> round(acc.gdp_epsilon(whole.mu, 1e-6).value, 2), round(acc.compose(plan).epsilon(delta=1e-6).value, 2)
    (5.7, 5.7)
    >>> acc.Filter("gdp", cap=2).spend(whole.cost).amount == whole.mu_squared
    True
    """
    aside = probability("lost", lost)
    curve = compose(*parts)
    branches = [replace(_compress(branch, aside), relation=curve.relation) for branch in curve.branches]
    worst = max(branches, key=lambda c: c.mu_squared)
    return replace(worst, lost=max(c.lost for c in branches), points=sum(c.points for c in branches))


def _compress(branch: tuple[Event, ...], aside: Fraction) -> Compressed:
    """Cost of the events that one group of users sees, whatever their relation."""
    outright = _lost_outright(branch)
    job = replace(job_of(branch), lost=0.0, losts=())
    ceiling = _sum_of_squares(branch)
    summed = Compressed(
        mu_squared=ceiling or Fraction(0), lost=outright, method="Σμ² of its events", points=0, relation=None
    )
    if ceiling is not None and float(ceiling) <= job.mu_squared * (1 + _STEP):
        return summed
    if job.hopeless:
        return summed if ceiling is not None else _refuse(branch)
    infinite = max(job.infinite(d) for d in job.directions) * (
        1 + 1e-6
    )  # a little more, so that there is an ε from which on it is enough
    allowed = infinite + to_float(aside, rounding="down")
    rest = _Rest(job=job, allowed=allowed)
    if not math.isfinite(rest.tail) and not rest.gaussian:
        return summed if ceiling is not None else _refuse(branch)
    most = math.inf if ceiling is None else math.sqrt(float(ceiling))
    mu = _certify(rest, most)
    if mu is None or mu >= most:
        return summed if ceiling is not None else _refuse(branch)
    return Compressed(
        mu_squared=Fraction(mu) ** 2,
        lost=outright + max(Fraction(infinite) + aside, Fraction(allowed)),
        method="least μ of the composed curve",
        points=len(rest.known),
        relation=None,
    )


def _refuse(branch: tuple[Event, ...]) -> Compressed:
    message = f"no finite μ is known for {', '.join(map(str, branch))}: nothing bounds the far tail of its loss"
    raise ParameterError(f"{message}; set some δ aside for it, such as lost=1e-9", name="lost", given=0)


def _lost_outright(branch: tuple[Event, ...]) -> Fraction:
    """Σδ lost outright, with the δ of `approximate` events taken exactly as written."""
    total = Fraction(0)
    for event in branch:
        for piece, times in event.pieces:
            if isinstance(piece, LostLaw):
                one = event.amount("delta") if event.kind == "approximate" else Fraction(piece.delta)
                total += one * times * event.count
    return total


def _sum_of_squares(branch: tuple[Event, ...]) -> Fraction | None:
    try:
        return sum((cost_of(event, _GDP).amount for event in branch), Fraction(0))
    except ParameterError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    """A composition whose δ, minus the allowance δ₀, has to lie below the δ of μ.

    Attributes:
        job: The composition without the mass lost outright.
        allowed: δ₀.
        known: ln(δ − δ₀), rounded up, at each ε evaluated so far; −∞ where nothing is left.
    """

    job: Job
    allowed: float
    known: dict[float, float] = field(default_factory=dict)

    @property
    def gaussian(self) -> bool:
        """Whether the composition is Gaussian noise with otherwise bounded losses."""
        return self.job.mu_squared > 0 and not self.job.orders_only and math.isfinite(self._beside)

    @property
    def _beside(self) -> float:
        return replace(self.job, mu_squared=0.0).largest()

    @property
    def tail(self) -> float:
        """An ε from which on δ ≤ δ₀; ∞ if none is known."""
        largest = self.job.largest()
        return largest if self.allowed == 0 else min(largest, self.epsilon(math.log(self.allowed)))

    def epsilon(self, log_delta: float) -> float:
        """ε at ln δ, rounded up."""
        at = np.array([log_delta])
        return max(float(upper_epsilons(self.job, at, epsilons_of(self.job, at, d), d)[0]) for d in self.job.directions)

    def end(self, mu: float) -> float:
        """An ε from which on the δ of μ is certainly above."""
        if math.isfinite(tail := self.tail):
            return tail
        # ln of both densities of the loss at l, of the means m and variances v: their difference is al² + bl + c
        v, w = self.job.mu_squared, mu * mu
        m, n = v / 2 + self._beside, w / 2
        a, b = (1 / v - 1 / w) / 2, -self._beside / v
        c = m * (m / v) / 2 - n / 4 + math.log(v / w) / 2
        inside = b * b - 4 * a * c
        return (math.sqrt(inside) - b) / (2 * a) * (1 + 1e-6) if inside > 0 else 0.0

    def ask(self, epsilons: Iterable[float]) -> None:
        """Compute the curve at the ε that are not known yet."""
        new = sorted(set(epsilons) - self.known.keys())
        if new:
            self.known.update(zip(new, self._logs(np.array(new)).tolist(), strict=True))

    def _logs(self, at: Floats) -> Floats:
        ways = [upper_log_deltas(self.job, at, log_deltas_of(self.job, at, d), d) for d in self.job.directions]
        logs: Floats = np.minimum(np.maximum.reduce(ways), 0.0)
        if self.allowed == 0:
            return logs
        left = np.exp(logs) * (1 + 1e-15 * (2 - logs.clip(-745))) - self.allowed
        return np.where(left > 0, np.log(np.maximum(left, 5e-324)) + 1e-15, -np.inf)


def _certify(rest: _Rest, most: float) -> float | None:
    """Find a μ, close to the least, with its curve above at every ε; None where none below `most` was found."""
    last = tail if math.isfinite(tail := rest.tail) else rest.epsilon(_FAR)
    rest.ask(np.linspace(0.0, last, _FIRST).tolist())
    mu = max(math.sqrt(rest.job.mu_squared), *(_needed(e, log) for e, log in rest.known.items())) * (1 + _STEP)
    pending: list[tuple[float, float]] = []
    reached = 0.0
    while mu < most and len(rest.known) <= _MOST:
        if not pending:
            if (end := rest.end(mu)) <= reached:
                return mu
            rest.ask([end])
            points = [e for e in sorted(rest.known) if reached <= e < end]
            pending, reached = list(itertools.pairwise([*points, end])), end
        open_ = [pair for pair in pending if not _covers(mu, *((e, rest.known[e]) for e in pair))]
        narrow = [pair for pair in open_ if gdp_tangent(mu, pair[1])[1] * (pair[1] - pair[0]) < _NARROW]
        wide = [(a, (a + b) / 2, b) for a, b in set(open_) - set(narrow)]
        rest.ask(middle for _, middle, _ in wide)
        if narrow:
            mu *= 1 + _STEP
        for _, middle, _ in wide:
            if gdp_log_delta(mu, middle) < rest.known[middle] + _margin(rest.known[middle]):
                mu = max(mu, _needed(middle, rest.known[middle]) * (1 + _STEP))
        pending = [*narrow, *((a, m) for a, m, _ in wide), *((m, b) for _, m, b in wide)]
    return None


def _needed(epsilon: float, log_delta: float) -> float:
    """The approximately least μ with that δ at ε; ∞ where δ is too close to 1."""
    if log_delta == -math.inf:
        return 0.0
    low, high = 1e-12, 1e3
    if gdp_log_delta(high, epsilon) < log_delta + _margin(log_delta):
        return math.inf
    while high > low * (1 + _STEP / 8):
        middle = math.sqrt(low * high)
        low, high = (
            (low, middle) if gdp_log_delta(middle, epsilon) >= log_delta + _margin(log_delta) else (middle, high)
        )
    return high


def _covers(mu: float, left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether the δ of μ is certainly above on an interval: one of its tangents is above at both ends.

    Args:
        mu: μ.
        left: ε, and ln δ to cover, at the left end.
        right: The same at the right end.
    """
    (a, log_a), (b, log_b) = left, right
    if log_a == -math.inf:
        return True
    return any(_above(mu, at, a, log_a) and _above(mu, at, b, log_b) for at in ((a + b) / 2, b, a))


def _above(mu: float, at: float, epsilon: float, log_delta: float) -> bool:
    """Whether the tangent at a point is above δ at an ε: δ(t)·(1 − s·(e^(ε − t) − 1)), linear in e^ε."""
    if epsilon - at > 1:
        return False
    log_there, slope = gdp_tangent(mu, at)
    grown = 1 - slope * math.expm1(epsilon - at)
    return grown > 0.01 and log_there + math.log(grown) >= log_delta + _margin(log_there) + 1e-13 * slope


def _margin(log_delta: float) -> float:
    return _SLACK * (1 + abs(log_delta)) if log_delta > -math.inf else 0.0
