"""Contributions of random size: a mixture of Gaussians against one Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.accounting.engine.laws import (
    UNIT,
    Cells,
    Complex,
    Direction,
    Fading,
    Floats,
    Moments,
    Repeat,
    as_floats,
    bound_by_variation,
    root_up,
    spread,
)
from privcheck.accounting.engine.mass import MassError
from privcheck.accounting.engine.waves import atoms_moments, wave_of

_REACH: Final = 9.5  # standard deviations on both sides: e^{−45}
_FAR: Final = 300.0  # c·largest shift beyond which the cumulant is bounded instead of integrated
_ROUNDED: Final = 4e-15  # of K(c), the logarithm of a sum of some hundred positive terms
_BLOCK: Final = 1 << 21  # numbers held at once
_FINE: Final = 0.05  # between the nodes of a total variation, in units of the shortest bend
_STEPS: Final = 60  # of Newton's method, which needs about eight


@dataclass(frozen=True, slots=True)
class MixtureLaw:
    """Law of Σpᵢ N(sᵢ, 1) against N(0, 1), sᵢ ≥ 0 (Choquette-Choo, Ganesh, Steinke & Thakurta 2024).

    With r(x) = Σpᵢ e^{sᵢx − sᵢ²/2}, which grows with x, the loss is ln r under the mixture ("remove": P has the user),
    −ln r under N(0, 1) ("add").

    Attributes:
        shifts: s, increasing, in units of the noise.
        weights: p, positive, with sum 1.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def on_one_draw(self) -> Repeat | None:
        """Law of n releases of a contribution with size drawn once: one release of √n times the size."""
        return lambda times: replace(self, shifts=tuple(s * root_up(times) for s in self.shifts))

    @property
    def symmetric(self) -> bool:
        """Always False."""
        return False

    @property
    def _absent(self) -> float:
        """Probability that the user contributes nothing."""
        return self.weights[0] if self.shifts[0] == 0 else 0.0

    def infinite(self, direction: Direction) -> float:
        """Always 0."""
        return 0.0

    def span(self, direction: Direction) -> float:
        """Loss 40 standard deviations out."""
        return self.shifts[-1] * (40 + self.shifts[-1])

    def largest(self, direction: Direction) -> float:
        """∞ for "remove"; for "add" −ln of the probability of no contribution, ∞ where that is 0."""
        return -math.log(self._absent) if direction == "add" and self._absent > 0 else math.inf

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, rounded up, K′ and K″ at c; far out a bound from the convexity of r ↦ r^{c+1} and r ↦ r^{−c}."""
        k, k1, k2 = np.empty(len(c)), np.empty(len(c)), np.empty(len(c))
        far = c * self.shifts[-1] > _FAR
        if far.any():
            k[far], k1[far], k2[far] = self._bound(c[far], direction)
        if not far.all():
            near = c[~far]
            x = self._nodes(float(near.max()), 0.0, direction)
            losses = self._losses(x, direction)[0]
            powers = near + 1 if direction == "remove" else near
            moments = atoms_moments(losses, as_floats(-x * x / 2), powers)
            k[~far] = moments[0] + (math.log(float(x[1] - x[0]) / math.sqrt(2 * math.pi)) + _ROUNDED)
            k1[~far], k2[~far] = moments[1:]
        return k, k1, k2

    def _bound(self, c: Floats, direction: Direction) -> Moments:
        s, p = as_floats(self.shifts), as_floats(self.weights)
        squares = np.multiply.outer(c * (c + 1) / 2, s * s) + np.log(p)
        bound = np.logaddexp.reduce(squares, axis=1) * (1 + 1e-14)
        slope, bend = (c + 0.5) * self.shifts[-1] ** 2, np.full(len(c), self.shifts[-1] ** 2)
        most = self.largest(direction)
        if math.isinf(most):
            return as_floats(bound), slope, bend
        level = c * (most * (1 + 1e-14)) < bound
        return (
            as_floats(np.where(level, c * (most * (1 + 1e-14)), bound)),
            as_floats(np.where(level, most, slope)),
            as_floats(np.where(level, 1e-300, bend)),
        )

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c), the integral by the trapezoid rule.

        The error of the rule (`_step`) is below e^{−39} of the whole, the tails beyond the nodes below e^{−45}.
        """
        longest = step * count
        x = self._nodes(c, longest, direction)
        losses, off = self._losses(x, direction)
        logs = as_floats((c + 1 if direction == "remove" else c) * losses - x * x / 2)
        values, error = wave_of(losses, logs, step=step, count=count)
        weights = np.exp(logs - float(logs.max()))
        mean = float(np.sum(weights * off)) / float(weights.sum())
        return values, error + UNIT * 100 + 2 * (c + 1 + longest) * mean + 1e-16

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Logarithm ln V/t, V a bound on the total variation of the tilted density of the loss; None far out.

        Lemma mixture-variation: With m the mean of the shifts sᵢ given x, the tilted density of the loss is h =
        φ·r^p/m, p = c + 1 or −c, and around a node, as far as dx/2, |h′| is at most h·e^{|g|dx/2 + G·dx²/8}(|g| +
        G·dx/2) with g = (ln h)′ and G = 1 + |p|s²/4 + 2s². Proof: with v the variance of the shifts, g = −x + pm − v/m;
        as v ≤ s²/4 and v/m ≤ s, |g′| ≤ G. Beyond the nodes h falls.
        """
        s = self.shifts[-1]
        if c * s > _FAR:
            return None
        low, high = (-s - 10.0, (c + 2) * s + 10) if direction == "remove" else (-(c + 1) * s - 10.0, 10.0)
        p = c + 1 if direction == "remove" else -c
        bend = 1 + abs(p) * s * s / 4 + 2 * s * s
        dx = min(_FINE / math.sqrt(bend), self._step(c, 0.0, direction))
        x = as_floats(low + dx * np.arange(math.ceil((high - low) / dx) + 2))
        mean, variance = self._shift_given(x)
        losses = self._losses(x, direction)[0]
        logs = abs(p) * losses - x * x / 2
        top = float(logs.max())
        total = float(np.exp(logs - top).sum()) * dx
        slopes = np.abs(-x + p * mean - variance / mean)
        rises = logs - top - np.log(mean) + slopes * (dx / 2) + bend * dx * dx / 8
        varied = float((np.exp(rises) * (slopes + bend * dx / 2)).sum()) * dx
        ends = float(np.exp(rises[[0, -1]]).sum())
        return bound_by_variation(0.0, (varied + ends) / total * (1 + 1e-9))

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of the nodes of the integral."""
        nodes = ((c + 1) * self.shifts[-1] + 20) / self._step(c, longest, "add")
        return (3000 + 60 * len(self.shifts)) * nodes, 1.5 * nodes

    def _step(self, c: float, longest: float, direction: Direction) -> float:
        """Largest dx at which the trapezoid rule errs by e^{−39} of ∫φ·r^{c+1} or ∫φ·r^{−c}, for |t| up to `longest`.

        Lemma mixture-trapezoid: On Im x = a, for sa ≤ π/2 with s the largest shift, φ·r^{c+1+it} is at most e^{a²/2 +
        tsa} times as large as at Re x, for r^{−c} another factor cos(sa/2)^{−c}, and the rule errs by 2/(e^{2πa/dx} −
        1) of that. Source: Trefethen & Weideman 2014, Theorem 5.1. Proof: all terms of r have phases between 0 and sa,
        so |r| lies between cos(sa/2) times its value at Re x and that value, and its own phase is at most sa.
        """
        s = self.shifts[-1]
        a = min(math.pi / (2 * s), 9.0)
        if direction == "add":
            a = min(a, math.sqrt(80 / max(c, 1e-300)) / s)
        turned = -c * math.log(math.cos(s * a / 2)) if direction == "add" else 0.0
        return 2 * math.pi * a / (a * a / 2 + longest * s * a + turned + 40)

    def _nodes(self, c: float, longest: float, direction: Direction) -> Floats:
        """Nodes x: the tilted density is concentrated between 0 and (c + 1)s, or −cs and 0."""
        s = self.shifts[-1]
        first, last = (0.0, (c + 1) * s) if direction == "remove" else (-c * s, 0.0)
        step = self._step(c, longest, direction)
        return as_floats(first - _REACH + step * np.arange(math.ceil((last - first + 2 * _REACH) / step) + 2))

    def _losses(self, x: Floats, direction: Direction) -> tuple[Floats, Floats]:
        """Loss at x, accurate for small losses too, and a bound on its error."""
        terms = [(p, s * x - s * s / 2) for s, p in zip(self.shifts, self.weights, strict=True)]
        most = np.maximum.reduce([exponents for _, exponents in terms])
        gained, moved, total = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
        for p, exponents in terms:
            part = p * np.expm1(np.minimum(exponents, 30.0))
            gained, moved = gained + part, moved + np.abs(part)
            total += p * np.exp(exponents - most)
        near = np.abs(gained) < 0.5
        log_ratio = np.where(near, np.log1p(np.where(near, gained, 0.0)), most + np.log(total))
        off = UNIT * (12 + len(terms)) * np.where(near, 2 * moved, 1 + np.abs(most) + np.abs(log_ratio))
        return as_floats(log_ratio if direction == "remove" else -log_ratio), as_floats(off)

    def _shift_given(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the shift given x, the variance rounded up."""
        exponents = [math.log(p) + s * x - s * s / 2 for s, p in zip(self.shifts, self.weights, strict=True)]
        most = np.maximum.reduce(exponents)
        zeroth, first, second = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
        for s, logs in zip(self.shifts, exponents, strict=True):
            weight = np.exp(logs - most)
            zeroth, first, second = zeroth + weight, first + s * weight, second + s * s * weight
        mean = np.maximum(first / zeroth, 1e-300)
        return as_floats(mean), as_floats(np.maximum(second / zeroth - mean * mean, 0.0) + 1e-14 * mean * mean)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid, from masses between the points at which the loss is on it."""
        from scipy.special import ndtr, ndtri

        s = self.shifts[-1]
        reach = -float(ndtri(max(tail, 1e-300))) if tail < 0.5 else 1.0
        ends = self._losses(np.array([-reach, reach + s]), "remove")[0]
        low, high = math.floor(float(ends[0]) / mesh), math.ceil(float(ends[1]) / mesh)
        edges = as_floats(np.arange(low, high + 1) * mesh)
        x = self._inverse(edges)
        plain, mixed = np.zeros(len(x) - 1), np.zeros(len(x) - 1)
        below = above = 0.0
        for shift, weight in ((0.0, 0.0), *zip(self.shifts, self.weights, strict=True)):
            y = x - shift
            under, over = ndtr(y), ndtr(-y)
            between = np.where(y[:-1] > 0, over[:-1] - over[1:], under[1:] - under[:-1])
            if weight == 0:
                plain = as_floats(between)
                lowest, highest = float(under[0]), float(over[-1])
            mixed += weight * between
            below, above = below + weight * float(under[0]), above + weight * float(over[-1])
        # x is good to some ulps, so that a loss is to s times as many: what that opens goes up a grid point
        share = min(1.0, 4e-15 * (1 + s * (reach + s)) / mesh)
        if direction == "remove":
            return _lift(spread(low, edges, mixed, plain, mesh=mesh, lowest=below, infinite=above), share)
        # the loss falls in x: what lies above in x is at the lowest loss
        down, under_p, under_q = -edges[::-1], plain[::-1], mixed[::-1]
        return _lift(spread(-high, down, under_p, under_q, mesh=mesh, lowest=highest, infinite=lowest), share)

    def _inverse(self, losses: Floats) -> Floats:
        """Point x at which ln r has a given value, −∞ where it is never so small.

        Without the constant part, ln(r(x) − p₀) is convex in x with a slope between the least and the largest
        shift: Newton's method from the right converges monotonically.
        """
        start = 1 if self._absent > 0 else 0
        s, log_p = as_floats(self.shifts[start:]), np.log(as_floats(self.weights[start:]))
        targets = losses
        if start:
            base = math.log(self._absent)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                over = np.maximum(losses - base, 0.0)
                targets = np.where(over > 40, losses, base + np.log(np.expm1(np.minimum(over, 50.0))))
        x = np.full(len(losses), -np.inf)
        usable = np.flatnonzero(np.isfinite(targets))
        for i in range(0, len(usable), max(1, _BLOCK // len(s))):
            block = usable[i : i + max(1, _BLOCK // len(s))]
            x[block] = _solve(s, log_p - s * s / 2, as_floats(targets[block]))
        return x


def _solve(slopes: Floats, constants: Floats, targets: Floats) -> Floats:
    """Solve ln Σ e^{slope·x + constant} = target for x, for each of (m,) targets."""
    x = as_floats(((targets[:, None] - constants) / slopes).min(axis=1))  # one term alone is there: all of them above
    near = False
    for _ in range(_STEPS):
        exponents = np.multiply.outer(x, slopes) + constants
        top = exponents.max(axis=1)
        parts = np.exp(exponents - top[:, None])
        total = parts.sum(axis=1)
        over = np.log(total) + top - targets
        move = over * total / (parts * slopes).sum(axis=1)
        x = as_floats(x - move)
        if near:  # … and so was the step before: each squares the error
            return x
        rounding = np.abs(over) <= 1e-15 * (1 + np.abs(targets) + np.abs(top))  # all there is where slopes are tiny
        near = bool(np.all(rounding | (np.abs(move) <= 1e-8 * (1 + np.abs(x)))))
    raise MassError(f"no root for slopes {slopes!r} after {_STEPS} steps")


def _lift(cells: Cells, share: float) -> Cells:
    """Move a share of every mass one grid point up."""
    masses = np.append(cells.masses * (1 - share), 0.0)
    masses[1:] += cells.masses * share
    return Cells(start=cells.start, masses=masses, infinite=cells.infinite)
