"""Poisson-subsampled Gaussian: each user takes part with probability q, independently; both directions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.bells import (
    below,
    branch,
    bumps,
    far_bound,
    inverse,
    log_mix,
    log_mixture,
    mix,
    plain,
    raise_cells,
    reach,
    slope,
)
from privcheck.accounting.engine.gdp import gdp_log_delta
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
from privcheck.accounting.engine.quadrature import REACH, Nodes, Shape, moments_near, nodes_for, scan
from privcheck.accounting.engine.trimmed import Density, Piece, Trimmed, assemble
from privcheck.accounting.engine.waves import atoms_moments, wave_of

_REACH: Final = 9.5  # standard deviations on both sides: e^{−45}
_UNDERFLOW: Final = 1e-300  # a bound on sums that no double holds
_FAR: Final = 300.0  # standard deviations beyond which a tilted density's cumulant is bounded, not integrated
_NARROW: Final = 1e5  # cΔ²/std² beyond which r^{−c} turns too fast in the complex plane
_STEEP: Final = 6.0  # Δ/std above which moments are integrated by panels, for the trapezoid rule takes many nodes
_HOPELESS: Final = 20.0  # Δ/std above which those who are not sampled are all but an atom: no contour converges


@dataclass(frozen=True, slots=True)
class SampledGaussian:
    """Law of (1 − q)N(0, 1) + qN(s, 1) against N(0, 1), s = Δ/std, under adding or removing one user.

    Lemma sampled-gaussian: (1 − q)N(0, 1) + qN(s, 1) against N(0, 1) dominates Gaussian noise on a Poisson sample where
    a user is added or removed, in both directions. Source: Mironov, Talwar & Zhang 2019 for "remove"; Zhu, Dong & Wang
    2022 for both directions.

    With r(x) = 1 − q + q·e^{sx − s²/2}, the loss is ln r under the mixture ("remove"), −ln r under N(0, 1) ("add").

    Attributes:
        shift: s.
        rate: q, in (0, 1).
    """

    shift: float
    rate: float

    @property
    def on_one_draw(self) -> Repeat | None:
        """Law of n releases on one sample: one release of √n times the sensitivity."""
        return lambda times: replace(self, shift=self.shift * root_up(times))

    @property
    def symmetric(self) -> bool:
        """Always False."""
        return False

    def infinite(self, direction: Direction) -> float:
        """Always 0."""
        return 0.0

    def span(self, direction: Direction) -> float:
        """Loss 40 standard deviations out."""
        return self.shift * (40 + self.shift)

    def largest(self, direction: Direction) -> float:
        """∞ for "remove", −ln(1 − q) for "add"."""
        return math.inf if direction == "remove" else -math.log1p(-self.rate)

    def log_delta(self, epsilon: float, direction: Direction) -> float:
        """Logarithm ln δ(ε) of one release in closed form, through the curve of the Gaussian without sampling.

        Lemma sampled-curve: With δ_G the curve of the Gaussian, one release has δ(ε) = q·δ_G(ln(1 + (e^ε − 1)/q)) in
        the direction "remove", and (1 − e^ε(1 − q))₊·δ_G(ln(e^ε q/(1 − e^ε(1 − q)))) in "add". Proof: with X the law of
        a sampled user and Z that of others, (1 − q)Z + qX − e^ε·Z = q(X − (1 + (e^ε − 1)/q)Z), and Z − e^ε((1 − q)Z +
        qX) = (1 − e^ε(1 − q))Z − e^ε q·X.
        """
        q = self.rate
        if direction == "remove":
            inner = math.log1p(math.expm1(epsilon) / q) if epsilon < 600 else epsilon - math.log(q)
            return math.log(q) + gdp_log_delta(self.shift, inner)
        left = -math.expm1(epsilon + math.log1p(-q)) if epsilon < 1e3 else -1.0
        if left <= 0:
            return -math.inf
        return math.log(left) + gdp_log_delta(self.shift, max(0.0, epsilon + math.log(q) - math.log(left)))

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c; far out a bound on K from the convexity of r ↦ r^{c+1} and r ↦ r^{−c}."""
        k, k1, k2 = np.empty(len(c)), np.empty(len(c)), np.empty(len(c))
        far = self._is_far(c, direction)
        if far.any():
            k[far], k1[far], k2[far] = self._bound(c[far], direction)
        near = ~far
        if near.any() and self.shift > _STEEP:
            k[near], k1[near], k2[near] = moments_near(self, c[near], direction)
            return k, k1, k2
        # larger c take more nodes: those of a size go together
        sizes = np.maximum(np.ceil(np.log2(np.maximum(c * self.shift, 1e-300)) / 3), 2.0)
        for size in np.unique(sizes[near]).tolist():
            part = near & (sizes == size)
            k[part], k1[part], k2[part] = self._integrate(c[part], direction)
        return k, k1, k2

    def _integrate(self, c: Floats, direction: Direction) -> Moments:
        x, losses = self._nodes(float(c.max()), 0.0, direction)
        logs = (losses if direction == "remove" else 0.0) - x * x / 2
        k, k1, k2 = atoms_moments(losses, as_floats(logs), c)
        return as_floats(k + math.log(float(x[1] - x[0]) / math.sqrt(2 * math.pi))), k1, k2

    def _bound(self, c: Floats, direction: Direction) -> Moments:
        v = self.shift**2
        if direction == "add":
            most = -math.log1p(-self.rate)
            return c * most, np.full(len(c), most), np.full(len(c), 1e-300)
        return far_bound(self.shift, self.rate, c), (c + 0.5) * v, np.full(len(c), v)

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c), the integral by the trapezoid rule.

        The error of the rule (`_step`) is below e^{−39} of the whole, the tails beyond the nodes below e^{−45}.
        """
        longest = step * count
        x, losses = self._nodes(c, longest, direction)
        logs = (c + 1 if direction == "remove" else c) * losses - x * x / 2
        values, error = wave_of(losses, logs, step=step, count=count)
        weights = np.exp(logs - float(logs.max()))
        mean = float(np.sum(weights * np.abs(losses))) / float(weights.sum())
        return values, error + UNIT * (100 + 8 * (c + 1 + longest) * mean) + 1e-16

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Lesser of two bounds, on the density's variation and on shifted integrals; None far out."""
        if self.shift > _HOPELESS or self._is_far(np.array([c]), direction)[0]:
            return None
        variation, shifted = bound_by_variation(0.0, self._variation(c, direction)), self._shift(c, direction)
        return lambda t: min(variation(t), shifted(t))

    def _shift(self, c: float, direction: Direction) -> Fading:
        """Minimum over a of ln ∫|φ(x + ia)||r(x + ia)|^{c+1} e^{−t·arg r(x + ia)} dx, less K(c).

        Lemma sampled-shift: The integral of φ·r^{c+1+it} is the same over any line Im x = a, 0 < a < π/s, on which arg
        r grows with x and is positive; for r^{−c−it} the line is at −ia. Proof: the integrand is analytic where |Im x|
        < π/s.

        The trapezoid rule errs as in `_step`: at x + ib the integrand is at most e^{(a² + b²)/2} times φ·r^{c+1}, or
        cos(s(a + b)/2)^{−c} as much of φ·r^{−c}, as long as s(a + b) ≤ π/2; all b up to π/4s are.
        """
        s, q, power = self.shift, self.rate, c + 1 if direction == "remove" else -c
        b = min(math.pi / (4 * s), 6.0)
        if direction == "add":
            b = min(b, math.sqrt(20 / max(c, 1e-300)) / s)
        turned = -c * math.log(math.cos(s * b)) if direction == "add" else 0.0
        step = 2 * math.pi * b / (b * b + turned + 40)
        far = _REACH + 1.5 * (c + 1) * self._pull(direction)  # there |(ln|φ·r^{c+1}|)′| ≥ 9, at all a
        x = step * np.arange(-math.ceil(far / step), math.ceil(far / step) + 1)
        a = b * 0.5 ** np.arange(15.0)
        y = s * x - s * s / 2
        log_ratio = log_mixture(s, q, as_floats(x))
        # r(x + ia)/r(x) = 1 + σ(e^{ia s} − 1), σ the share of the second term
        share = np.exp(np.minimum(math.log(q) + y - log_ratio, 0.0))
        turns = np.exp(1j * s * a)[:, None] - 1
        ratio = 1 + share * turns
        weights = power * (log_ratio + np.log(np.abs(ratio))) + (a * a / 2)[:, None] - x * x / 2
        angles = np.angle(ratio)
        top = float(weights.max())
        whole = math.log(float(np.exp(power * log_ratio - x * x / 2 - top).sum()))

        def at(t: float) -> float:
            sums = np.exp(weights - t * angles - top).sum(axis=1)
            return min(0.0, math.log(max(float(sums.min()), _UNDERFLOW)) - whole + 1e-13)

        return at

    def _variation(self, c: float, direction: Direction) -> float:
        """Bound on the total variation of the tilted density of the loss.

        Lemma sampled-variation: With σ(x) = q·e^y/r, y = sx − s²/2, the tilted density of the loss is h = φ·r^{c+1}/sσ
        or φ·r^{−c}/sσ, and its total variation is at most 4·max h. Proof: (ln h)′ = −x − s + (c + 2)sσ or −x − s − (c −
        1)sσ has at most three zeros: two maxima.

        Between nodes a maximum rises by at most dx²/8·max|(ln h)″|, in the logarithm.
        """
        s, q = self.shift, self.rate
        low, high = (
            (-s - 10.0, (c + 2) * s + 10) if direction == "remove" else (-c * self._pull(direction) - s - 10.0, 10.0)
        )
        x, losses = self._nodes(c, 0.0, direction, low=low, high=high)
        power, signed = (c + 1, losses) if direction == "remove" else (c, -losses)
        exponents = power * losses - x * x / 2
        log_share = math.log(q) + s * x - s * s / 2 - signed  # ln σ
        dx = float(x[1] - x[0])
        top = float(exponents.max())
        total = float(np.exp(exponents - top).sum()) * dx
        bend = dx * dx / 8 * (1 + (c + 2) * s * s / 4)
        return 4 * math.exp(float((exponents - log_share).max()) - top + bend) / (s * total) * (1 + 1e-9)

    def _is_far(self, c: Floats, direction: Direction) -> NDArray[np.bool_]:
        """Whether the tilted density is too far out, or too narrow, for the nodes of an integral."""
        far: NDArray[np.bool_] = c * self._pull(direction) > _FAR
        return far | (c * self.shift**2 > _NARROW) if direction == "add" else far

    def _pull(self, direction: Direction) -> float:
        """Largest shift of the tilted density per unit of c: s, or sσ(0) down from 0 for r^{−c}.

        Its maximum is at x = (c + 1)sσ(x), or at x = −csσ(x) < 0, where σ(x) < σ(0) and the second derivative of its
        logarithm is at most −1.
        """
        if direction == "remove" or self.shift > _STEEP:
            return self.shift
        share = self.rate * math.exp(-(self.shift**2) / 2)
        return self.shift * share / (1 - self.rate + share)

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of the nodes of the integral."""
        nodes = 20 / self._step(c, longest, "add")
        return 1000 * nodes, 1.5 * nodes

    def _step(self, c: float, longest: float, direction: Direction) -> float:
        """Largest dx at which the trapezoid rule errs by e^{−39} of ∫φ·r^{c+1} or ∫φ·r^{−c}, for |t| up to `longest`.

        On Im x = a the integrand is at most e^{a²/2 + tsa} times as large, for r^{−c} another factor cos(sa/2)^{−c}, as
        long as sa ≤ π/2; the rule errs by 2/(e^{2πa/dx} − 1) of that, as for every mixture [lemma mixture-trapezoid].
        """
        s = self.shift
        a = min(math.pi / (2 * s), 9.0)
        if direction == "add":
            a = min(a, math.sqrt(80 / max(c, 1e-300)) / s)
        turned = -c * math.log(math.cos(s * a / 2)) if direction == "add" else 0.0
        return 2 * math.pi * a / (a * a / 2 + longest * s * a + turned + 40)

    def _nodes(
        self, c: float, longest: float, direction: Direction, *, low: float | None = None, high: float | None = None
    ) -> tuple[Floats, Floats]:
        """Points x and the loss there; the tilted density is concentrated in [0, (c + 1)s], or [−c·`_pull`, 0]."""
        s = self.shift
        first, last = (0.0, (c + 1) * s) if direction == "remove" else (-c * self._pull(direction), 0.0)
        step = self._step(c, longest, direction)
        first, last = first - _REACH if low is None else low, last + _REACH if high is None else high
        x = first + step * np.arange(math.ceil((last - first) / step) + 2)
        log_ratio = log_mixture(s, self.rate, as_floats(x))
        return as_floats(x), as_floats(log_ratio if direction == "remove" else -log_ratio)

    def panels(self, tilts: tuple[float, float], direction: Direction) -> Nodes:
        """Build nodes that are accurate for a range of tilts, see `quadrature`."""
        s, q, sign = self.shift, self.rate, 1 if direction == "remove" else -1

        def density(x: Floats) -> tuple[Floats, Floats]:
            return (log_mix(s, q, x) if sign > 0 else plain(x)), as_floats(sign * log_mixture(s, q, x))

        near, far = ((c + 1) * s if sign > 0 else -c * s for c in tilts)
        branches = (branch(s, q),)
        points = scan(min(0.0, far) - REACH, max(0.0, far) + REACH, bumps(near, far), branches)
        part = slope(s, q, points)
        curvature = 1 + (tilts[1] + 1) * s * s * part * (1 - part)
        return nodes_for(Shape(density, points, branches, as_floats(curvature), as_floats(s * part)), tilts)

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build the law without its tails in x, see `trimmed`."""
        s, q, far = self.shift, self.rate, reach(tail / 2)
        ends = as_floats([-far, far + s if direction == "remove" else far])
        with_user, without = mix(ends, s, q), below(ends, 0.0)
        p, other = (with_user, without) if direction == "remove" else (without, with_user)
        made = piece_between(ends, s, q, 1 if direction == "remove" else -1, c=c, longest=longest)
        if made is None:
            return None
        return assemble([made], c=c, p_out=p.under + p.over, q_out=other.under + other.over)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid, from closed-form masses between grid points."""
        s, q = self.shift, self.rate
        ends = log_mixture(s, q, np.array([-reach(tail), reach(tail) + s]))
        low, high = math.floor(float(ends[0]) / mesh), math.ceil(float(ends[1]) / mesh)
        edges = as_floats(np.arange(low, high + 1) * mesh)
        x = inverse(s, q, edges)
        without, user = below(x, 0.0), mix(x, s, q)
        if direction == "remove":
            masses = (user.inside, without.inside)
            cells = spread(low, edges, *masses, mesh=mesh, lowest=user.under, infinite=user.over)
            return raise_cells(cells, s, x, mesh)
        # the loss falls in x: what lies above in x is at the lowest loss
        masses = (as_floats(without.inside[::-1]), as_floats(user.inside[::-1]))
        down = as_floats(-edges[::-1])
        cells = spread(-high, down, *masses, mesh=mesh, lowest=without.over, infinite=without.under)
        return raise_cells(cells, s, as_floats(x[::-1]), mesh)


def piece_between(ends: Floats, s: float, q: float, sign: int, *, c: float, longest: float) -> Piece | None:
    """Losses ±ln r(x) between two points x, r = (1 − q) + q·e^{sx − s²/2}; None where there are too many nodes.

    With h the tilted density of the loss, (ln h)′ = −x − s + (c + 2)sσ for losses ln r of (1 − q)N(0, 1) + qN(s, 1),
    and −x − s + (1 − c)sσ for losses −ln r of N(0, 1): σ, the sampled share, has a slope of at most s/4.

    Args:
        ends: (2,) the points.
        s: Shift.
        q: Rate.
        sign: 1 or −1, that of the losses.
        c: Largest tilt.
        longest: Largest |t|.
    """
    place = branch(s, q)

    def density(x: Floats) -> tuple[Floats, Floats]:
        return (log_mix(s, q, x) if sign > 0 else plain(x)), as_floats(sign * log_mixture(s, q, x))

    def turn(x: Floats) -> Floats:
        return as_floats(-x - s + (c + 2 if sign > 0 else 1 - c) * s * slope(s, q, x))

    points = scan(float(ends[0]), float(ends[1]), ((float(ends[0]), float(ends[1])),), (place,))
    part = slope(s, q, points)
    curvature = as_floats(1 + (c + 1) * s * s * part * (1 - part))
    return Density(
        shape=Shape(density, points, (place,), curvature, as_floats(s * part)),
        turn=turn,
        bend=1 + (c + 2 if sign > 0 else c + 1) * s * s / 4,
        slope=lambda x: as_floats(s * slope(s, q, x)),
    ).piece(c=c, longest=longest)
