"""Sampled Gaussians under replacing a user: Poisson sampling, and batches of a fixed size without replacement.

Lemma replaced-contributions: Given the others in the sample, let outputs be N(u, 1) if the user of D is in it, N(v, 1)
if the user of D′ is, and N(y, 1) if neither is, in any dimension. For α ≥ 1 H_α of P = (1 − q)N(y) + qN(u) against Q =
(1 − q)N(y) + qN(v) grows with |v − u|², |y − u|² and <v − u, y − u>. Source: Kahane 1986. Proof: H_α = q·E[(1 − Σ wᵢ
e^{Gᵢ − Var Gᵢ/2})₊] under N(u, 1), with w ≥ 0 and Gᵢ the Gaussians <X, v − u> and <X, y − u>. By Kahane's inequality
the expectation of a convex function of such a sum grows with every entry of their covariance.

For α < 1 the roles of P and Q change, H_α(P, Q) = 1 − α + α·H_{1/α}(Q, P), and for a mixture over the others H_α is
convex.

* Lemma replaced-poisson: In a Poisson sample, one pair dominates every replacement of a user with contributions of norm
  at most s, that of u = −v, |u| = s; two users with opposite contributions attain it in every composition. Proof: y = 0
  (the others alone), and all three entries of [lemma replaced-contributions] are largest there, for every α.
* Lemma replaced-batch: In a fixed batch, where y is another user's contribution, |y| ≤ s, the curve of the mixture with
  N(2s, 1) against N(0, 1) for α ≥ 1, and of the reversed pair for α < 1, dominates. Source: Zhu, Dong & Wang 2022,
  Theorem 11. Proof: for α ≥ 1 all three entries are largest at v = y = −u, for α < 1 at u = y = −v. No single pair of
  data sets attains both, so a composition of it is a bound; the worst data set of one round is not the worst of several
  (Lebeda, Regehr, Kamath & Steinke 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

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
from privcheck.accounting.engine.laws import (
    UNIT,
    Cells,
    Complex,
    Direction,
    Fading,
    Floats,
    Moments,
    Repeat,
    as_complex,
    as_floats,
    bound_by_variation,
    merge,
    root_up,
    spread,
)
from privcheck.accounting.engine.quadrature import REACH, Nodes, Shape, moments_near, nodes_for, scan
from privcheck.accounting.engine.sampled import SampledGaussian, piece_between
from privcheck.accounting.engine.trimmed import Density, Trimmed, assemble, atoms_piece
from privcheck.accounting.engine.waves import wave_of

_FAR: Final = 300.0  # c·s beyond which moments are bounded instead of integrated
_HOPELESS: Final = 20.0  # Δ/std above which those who are not sampled are all but an atom: no contour converges


@dataclass(frozen=True, slots=True)
class ReplacedGaussian:
    """Poisson sample with one user replaced: (1 − q)N(0, 1) + qN(s, 1) against (1 − q)N(0, 1) + qN(−s, 1).

    With r(x) = 1 − q + q·e^{sx − s²/2} the loss is ln r(x) − ln r(−x), which grows with x.

    Attributes:
        shift: s = Δ/std, with Δ the norm of one user's contribution.
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
        """Always True: x ↦ −x exchanges the directions."""
        return True

    def infinite(self, direction: Direction) -> float:
        """Always 0."""
        return 0.0

    def span(self, direction: Direction) -> float:
        """Bound on the loss 40 standard deviations out."""
        return 2 * self.shift * (40 + self.shift)

    def largest(self, direction: Direction) -> float:
        """Always ∞."""
        return math.inf

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c; far out a bound on K: r(−x) ≥ 1 − q, the rest as in "remove"."""
        moments = moments_near(self, as_floats(np.minimum(c, _FAR / self.shift)), "remove")
        v, kept = self.shift**2, -math.log1p(-self.rate)
        bounds = (far_bound(self.shift, self.rate, c) + c * kept, (c + 0.5) * v + kept, np.full(len(c), v))
        far = c * self.shift > _FAR
        k, k1, k2 = (as_floats(np.where(far, x, y)) for x, y in zip(bounds, moments, strict=True))
        return k, k1, k2

    def panels(self, tilts: tuple[float, float], direction: Direction) -> Nodes:
        """Build nodes that are accurate for a range of tilts, see `quadrature`."""
        s, q, c = self.shift, self.rate, tilts[1]

        def density(x: Floats) -> tuple[Floats, Floats]:
            return log_mix(s, q, x), self._losses(x)

        (middle, height), far = branch(s, q), self._farthest(c)
        branches = ((middle, height), (-middle, height))
        points = scan(-REACH, far + REACH, bumps((tilts[0] + 1) * s, far), branches)
        right, left = slope(s, q, points), slope(s, q, as_floats(-points))
        curvature = 1 + (c + 1) * s * s * (right * (1 - right) + left * (1 - left))
        return nodes_for(Shape(density, points, branches, as_floats(curvature), as_floats(s * (right + left))), tilts)

    def _losses(self, x: Floats) -> Floats:
        return log_mixture(self.shift, self.rate, x) - log_mixture(self.shift, self.rate, as_floats(-x))

    def _farthest(self, c: float) -> float:
        """Largest possible centre of a bump of the tilted density.

        Near 0, where r(x) and r(−x) are both exponential, that is (2c + 1)s, else (c + 1)s.
        """
        return max((c + 1) * self.shift, min((2 * c + 1) * self.shift, -branch(self.shift, self.rate)[0]))

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c), the integral by the trapezoid rule, with an error below e^{−39} of the whole."""
        x, losses = self._nodes(c, step * count)
        logs = as_floats(c * losses + log_mix(self.shift, self.rate, x))
        values, error = wave_of(losses, logs, step=step, count=count)
        weights = np.exp(logs - float(logs.max()))
        mean = float(np.sum(weights * np.abs(losses))) / float(weights.sum())
        return values, error + UNIT * (100 + 8 * (c + 1 + step * count) * (mean + 1)) + 1e-16

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Bound from the total variation of the tilted density of the loss; None far out.

        Lemma replaced-variation: With f the tilted density of x, the tilted density of the loss is h = f/l′, and ∫h|(ln
        h)′| dl, |(ln h)′| ≤ |x| + (2c + 2)s, bounds its variation. Proof: l′ = s(σ(x) + σ(−x)) changes by at most sl′.
        """
        s, q = self.shift, self.rate
        if c * s > _FAR or s > _HOPELESS:
            return None
        x, losses = self._nodes(c, 0.0)
        logs = c * losses + log_mix(s, q, x)
        weights = np.exp(logs - float(logs.max()))
        slopes = s * (slope(s, q, x) + slope(s, q, as_floats(-x)))
        turns = (np.abs(x) + (2 * c + 2) * s) / slopes
        return bound_by_variation(0.0, float((weights * turns).sum()) / float(weights.sum()) * (1 + 1e-6))

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Cost of the nodes of the integral."""
        nodes = (20 + 2 * (c + 1) * self.shift) / self._step(c, longest)
        return 3000 * nodes, 1.5 * nodes

    def _step(self, c: float, longest: float) -> float:
        """Largest dx at which the trapezoid rule errs by e^{−39} of the whole, for |t| up to `longest`.

        Lemma replaced-trapezoid: On Im x = a, sa ≤ π/2, the integrand is at most e^{a²/2 + 2tsa}cos(sa/2)^{−c} times as
        large, and the rule errs by 2/(e^{2πa/dx} − 1) of that. Source: Trefethen & Weideman 2014, Theorem 5.1. Proof:
        the phases of r(x) and r(−x) have opposite signs.
        """
        s = self.shift
        a = min(math.pi / (2 * s), 9.0, math.sqrt(80 / max(c, 1e-300)) / s)
        turned = -c * math.log(math.cos(s * a / 2))
        return 2 * math.pi * a / (a * a / 2 + 2 * longest * s * a + turned + 40)

    def _nodes(self, c: float, longest: float) -> tuple[Floats, Floats]:
        """Points x and the loss at x, over the range of the tilted density."""
        step = self._step(c, longest)
        x = as_floats(-REACH + step * np.arange(math.ceil((self._farthest(c) + 2 * REACH) / step) + 2))
        return x, self._losses(x)

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build the law without its tails in x, see `trimmed`."""
        s, q, far = self.shift, self.rate, reach(tail / 2)
        ends = as_floats([-far, far + s])
        p, other = mix(ends, s, q), mix(as_floats(-ends[::-1]), s, q)

        def density(x: Floats) -> tuple[Floats, Floats]:
            return log_mix(s, q, x), self._losses(x)

        def steepness(x: Floats) -> Floats:
            return as_floats(s * (slope(s, q, x) + slope(s, q, as_floats(-x))))

        def turn(x: Floats) -> Floats:
            right, left = slope(s, q, x), slope(s, q, as_floats(-x))
            bent = s * (right * (1 - right) - left * (1 - left)) / (right + left)
            return as_floats(-x + s * right + c * steepness(x) - bent)

        middle, height = branch(s, q)
        branches = ((middle, height), (-middle, height))
        points = scan(float(ends[0]), float(ends[1]), ((float(ends[0]), float(ends[1])),), branches)
        right, left = slope(s, q, points), slope(s, q, as_floats(-points))
        curvature = as_floats(1 + (c + 1) * s * s * (right * (1 - right) + left * (1 - left)))
        made = Density(
            shape=Shape(density, points, branches, curvature, steepness(points)),
            turn=turn,
            # |(l″/l′)′| ≤ |l‴/l′| + (l″/l′)² ≤ 2s², for the shares σ fall off with slopes of at most s
            bend=1 + s * s * (2.25 + c / 4),
            slope=steepness,
        ).piece(c=c, longest=longest)
        if made is None:
            return None
        return assemble([made], c=c, p_out=p.under + p.over, q_out=other.under + other.over)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid, from closed-form masses between grid points."""
        s, q = self.shift, self.rate
        ends = np.array([-reach(tail), reach(tail) + s])
        losses = log_mixture(s, q, ends) - log_mixture(s, q, as_floats(-ends))
        low, high = math.floor(float(losses[0]) / mesh), math.ceil(float(losses[1]) / mesh)
        edges = as_floats(np.arange(low, high + 1) * mesh)
        x = invert_replaced(s, q, edges)
        p, turned = mix(x, s, q), mix(as_floats(-x[::-1]), s, q)
        masses = (p.inside, as_floats(turned.inside[::-1]))
        cells = spread(low, edges, *masses, mesh=mesh, lowest=p.under, infinite=p.over)
        return raise_cells(cells, 2 * s, x, mesh)


def invert_replaced(shift: float, rate: float, losses: Floats) -> Floats:
    """Point x with r(x) = e^l·r(−x): a quadratic in e^{sx}, solved for l ≥ 0; x changes its sign with l.

    With k = (1 − q)e^{s²/2}/q and R = e^l it is y² − k(R − 1)y − R = 0, or y = e^{l/2}(h + √(h² + 1)) with
    h = k·sinh(l/2).
    """
    half = np.abs(losses) / 2
    log_k = math.log1p(-rate) - math.log(rate) + shift * shift / 2
    with np.errstate(divide="ignore"):
        log_sinh = np.where(half > 1, half + np.log(-np.expm1(-2 * np.maximum(half, 1))) - math.log(2), 0.0)
        log_h = log_k + np.where(half > 1, log_sinh, np.log(np.sinh(np.minimum(half, 1))))
    grown = np.where(log_h > 20, log_h + math.log(2), np.arcsinh(np.exp(np.minimum(log_h, 20))))
    return as_floats(np.sign(losses) * (half + grown) / shift)


@dataclass(frozen=True, slots=True)
class MirroredGaussian:
    """Law of (1 − q)N(0, 1) + qN(s, 1) against N(0, 1) for ε ≥ 0, and of the reversed pair for ε < 0.

    Losses l > 0 are those of the sampled Gaussian where x > s/2, with their mirror images −l of mass p·e^{−l}, and a
    mass (1 − q)(1 − 2Φ(−s/2)) at 0.

    Attributes:
        shift: s, twice the norm of one user's contribution over the std.
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
        """Always True."""
        return True

    def infinite(self, direction: Direction) -> float:
        """Always 0."""
        return 0.0

    def span(self, direction: Direction) -> float:
        """Loss 40 standard deviations out."""
        return self.shift * (40 + self.shift)

    def largest(self, direction: Direction) -> float:
        """Always ∞."""
        return math.inf

    def log_delta(self, epsilon: float, direction: Direction) -> float:
        """Logarithm ln δ(ε) of one release, ε ≥ 0, in closed form."""
        return SampledGaussian(self.shift, self.rate).log_delta(epsilon, "remove")

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c; far out a bound on K, since the losses up to 0 are at most 0."""
        moments = moments_near(self, as_floats(np.minimum(c, _FAR / self.shift)), "remove")
        v = self.shift**2
        bounds = (np.logaddexp(0.0, far_bound(self.shift, self.rate, c)), (c + 0.5) * v, np.full(len(c), v))
        far = c * self.shift > _FAR
        k, k1, k2 = (as_floats(np.where(far, x, y)) for x, y in zip(bounds, moments, strict=True))
        return k, k1, k2

    def panels(self, tilts: tuple[float, float], direction: Direction) -> Nodes:
        """Build nodes that are accurate for a range of tilts, see `quadrature`: for losses above 0, below 0, and 0."""
        s, q, c = self.shift, self.rate, tilts[1]
        start, branches = s / 2, (branch(s, q),)
        parts = []
        for sign, near, far in ((1, (tilts[0] + 1) * s, (c + 1) * s), (-1, start, start)):

            def density(x: Floats, sign: int = sign) -> tuple[Floats, Floats]:
                return (log_mix(s, q, x) if sign > 0 else plain(x)), as_floats(sign * log_mixture(s, q, x))

            places = tuple((max(a, start), max(b, start)) for a, b in bumps(near, far))
            points = scan(start, far + REACH, places, branches)
            part = slope(s, q, points)
            curvature = as_floats(1 + (c + 1) * s * s * part * (1 - part))
            parts.append(nodes_for(Shape(density, points, branches, curvature, as_floats(s * part)), tilts))
        middle = math.log(self._middle)
        return Nodes(
            losses=np.concatenate([[0.0], *(nodes.losses for nodes in parts)]),
            logs=np.concatenate([[middle], *(nodes.logs for nodes in parts)]),
        )

    @property
    def _middle(self) -> float:
        """Mass at loss 0."""
        return (1 - self.rate) * math.erf(self.shift / math.sqrt(8))

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """Trivial wave, from |φ| ≤ 1 only: `bound_decay` and `work` exclude contours."""
        return as_complex(np.zeros(count)), 2.0

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """None: the unsampled part is an atom, and a contour is not worthwhile."""
        return None

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Always ∞: only grids are used."""
        return math.inf, 0.0

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build the law without the largest and the least losses, see `trimmed`."""
        s, q = self.shift, self.rate
        ends = as_floats([s / 2, reach(tail / 2) + s])
        images, above = (piece_between(ends, s, q, sign, c=c, longest=longest) for sign in (-1, 1))
        if images is None or above is None:
            return None
        middle = atoms_piece(np.zeros(1), as_floats([math.log(self._middle)]))
        out = mix(ends, s, q).over + below(ends, 0.0).over
        return assemble([images, middle, above], c=c, p_out=out, q_out=out)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid, from closed-form masses between grid points."""
        s, q = self.shift, self.rate
        top = float(log_mixture(s, q, np.array([reach(tail) + s]))[0])
        edges = as_floats(np.arange(math.ceil(top / mesh) + 1) * mesh)
        x = inverse(s, q, edges)
        x[0] = s / 2
        without, user = below(x, 0.0), mix(x, s, q)
        above = spread(0, edges, user.inside, without.inside, mesh=mesh, lowest=0.0, infinite=user.over)
        middle = Cells(start=0, masses=np.array([self._middle * (1 + 1e-15)]), infinite=0.0)
        # the images: what is Q above is P below; what lies above the last edge is moved up to its image
        p, other = as_floats(without.inside[::-1]), as_floats(user.inside[::-1])
        first, down = 1 - len(edges), as_floats(-edges[::-1])
        images = spread(first, down, p, other, mesh=mesh, lowest=without.over, infinite=0.0)
        return merge(merge(raise_cells(above, s, x, mesh), middle), raise_cells(images, s, as_floats(x[::-1]), mesh))
