"""The least μ whose trade-off function covers that of a composition, and the least ρ of a bounded loss; certified.

Where δ(ε) ≤ δ_μ(ε) + δ₀ for *every* ε ≥ 0, in both directions, the composition's trade-off function is at least
f_μ − δ₀, the trade-off function of N(0, 1) against N(μ, 1) with a mass δ₀ revealed. The composition is then
post-processing of that pair (Blackwell).

It is a proof rather than a check on a grid:

* Lemma covering-between: Between two points δ is below δ_μ if at both ends it is below one tangent of δ_μ over e^ε.
  Proof: δ is convex in e^ε, so a chord bounds it from above; a tangent bounds δ_μ from below, and the chord of an
  interval lies below the tangent if its two ends do.
* Lemma covering-tail: Gaussian noise of μ_G < μ beside losses of at most b has δ below δ_μ from the larger root of a
  quadratic on, that at which the densities of N(μ_G²/2 + b, μ_G²) and N(μ²/2, μ²) are equal. Proof: its loss is at most
  the former; from that root on its density is below the latter, and so is δ, its integral against (1 − e^(ε − l))₊.
  Otherwise, beyond the last point the loss is bounded and δ is 0, or δ is below δ₀.
* Every δ is rounded up and every δ_μ down.

Lemma least-rho: The least ρ is sup D_α/α; on an interval of orders D of its end over its beginning bounds the ratio,
and from the largest loss over the best ratio known on, no ratio is larger. Proof: D_α rises with α, and D_α ≤ max L.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from privcheck.accounting.engine.gdp import gdp_log_delta, gdp_tangent
from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laws import Floats
from privcheck.accounting.engine.methods import epsilons_of, log_deltas_of

STEP: Final = 1e-4  # by which μ is raised where it does not hold: its distance from the least
_FIRST: Final = 129  # points of the first look
_FAR: Final = -45.0  # ln δ, up to which the first look goes
_SLACK: Final = 1e-11  # of ln δ_μ and its slope, relative to 1 + |ln δ|: they are known to 1e-14
_NARROW: Final = 1e-3  # fall of ln δ over an interval that is not halved again
_MOST: Final = 20_000  # points, for one branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
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
        return max(float(epsilons_of(self.job, at, d).values[0]) for d in self.job.directions)

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
        ways = [log_deltas_of(self.job, at, d).values for d in self.job.directions]
        logs: Floats = np.minimum(np.maximum.reduce(ways), 0.0)
        if self.allowed == 0:
            return logs
        left = np.exp(logs) * (1 + 1e-15 * (2 - logs.clip(-745))) - self.allowed
        return np.where(left > 0, np.log(np.maximum(left, 5e-324)) + 1e-15, -np.inf)


def least_mu(rest: Composition, most: float) -> float | None:
    """Find a μ, close to the least, with its curve above at every ε; None where none below `most` was found."""
    last = tail if math.isfinite(tail := rest.tail) else rest.epsilon(_FAR)
    rest.ask(np.linspace(0.0, last, _FIRST).tolist())
    mu = max(math.sqrt(rest.job.mu_squared), *(_needed(e, log) for e, log in rest.known.items())) * (1 + STEP)
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
            mu *= 1 + STEP
        for _, middle, _ in wide:
            if gdp_log_delta(mu, middle) < rest.known[middle] + _margin(rest.known[middle]):
                mu = max(mu, _needed(middle, rest.known[middle]) * (1 + STEP))
        pending = [*narrow, *((a, m) for a, m, _ in wide), *((m, b) for _, m, b in wide)]
    return None


def _needed(epsilon: float, log_delta: float) -> float:
    """The approximately least μ with that δ at ε; ∞ where δ is too close to 1."""
    if log_delta == -math.inf:
        return 0.0
    low, high = 1e-12, 1e3
    if gdp_log_delta(high, epsilon) < log_delta + _margin(log_delta):
        return math.inf
    while high > low * (1 + STEP / 8):
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


def least_rho(divergence: Callable[[float], float], largest: float) -> float:
    """ρ, to about 1e-4, for which D_α ≤ ρα at every α > 1; certified.

    Args:
        divergence: D_{1+z}, rounded up, for z > 0; rises with z.
        largest: The largest loss, finite.
    """
    first = divergence(STEP)
    if first <= 0 or not math.isfinite(first):
        return largest
    last = max(largest / first, 2.0)
    orders: list[float] = [1.0, 1 + STEP, *np.geomspace(1.1, 1.1 * last, 100).tolist()]
    known = {order: divergence(order - 1) for order in orders[1:]}
    pending, rho = list(itertools.pairwise(orders)), largest / orders[-1]
    best = max(d / order for order, d in known.items())
    while pending:
        loose = [(a, b) for a, b in pending if known[b] / a > best * (1 + STEP)]
        done = [(a, b) for a, b in loose if b <= a * (1 + STEP)]
        rho = max(rho, *(known[b] / a for a, b in {*pending} - {*loose} | {*done}), 0.0)
        pending = []
        for a, b in {*loose} - {*done}:
            middle = math.sqrt(a * b)
            known[middle] = divergence(middle - 1)
            best = max(best, known[middle] / middle)
            pending += [(a, middle), (middle, b)]
    return rho
