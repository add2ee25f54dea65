"""Random allocation: a user takes part in exactly one of t rounds with Gaussian noise, each being equally likely.

Lemma allocation-pair: With s = Δ/std, the rounds' outputs are dominated by t numbers, P the mean over i of N(s·eᵢ, I)
and Q = N(0, I). Source: Feldman & Shenfeld 2025; Chua et al. 2025. Proof: given the data of all others and the earlier
outputs, a round is a post-processing of one number N(s, 1) with the user and N(0, 1) without (its noise is Gaussian,
and the user moves it by at most Δ); the same post-processing applies for every i, so that it may be adaptive.

*One epoch.* dP/dQ = S/t, S the sum of t independent Y = e^{sx − s²/2}, x ~ N(0, 1) under Q, E[Y] = 1. So δ(ε) of
"remove" is E(S − e^ε·t)₊/t and that of "add" is E(1 − e^ε·S/t)₊. Both follow from G(d) = E(t + d − S)₊, since E(S − t −
d)₊ = G(d) − d. Laplace's transform of G is e^{tψ(z)}/z², with ψ(z) = ln E[e^{−z(Y − 1)}].

Lemma allocation-series: With D(d) = (1/T)·Σₖ e^{zₖd + tψ(zₖ)}/zₖ², zₖ = γ + 2πik/T, k over all integers, and r =
e^{−γT}, G(d) = D(d) − d·r/(1 − r) − T·r/(1 − r)² − E, E ≥ 0: leaving it out rounds G up. E is at most r/(1 − r)·E(S − t
− d − T)₊, plus rᵐ·G(d + mT) for m ≤ −1, bounded by G(d) ≤ e^{ηd + tψ(η) − 1}/η for every η > 0. Proof: Poisson's
summation formula, D(d) = Σₘ rᵐ·G(d + mT), m over all integers, where for m ≥ 1 G(d + mT) = d + mT + E(S − t − d − mT)₊.

*ψ* is E[κ(z(Y − 1))], κ(u) = e^{−u} − 1 + u, as log1p: for small z all digits are kept.

Lemma allocation-trapezoid: Moved to Im x = −a, 2as ≤ π/2, and taken by the trapezoid rule, E[κ(z(Y − 1))], κ(u) =
e^{−u} − 1 + u, errs by at most 2/(e^{2πa/dx} − 1)·e^{2a²}·(e^γ + 1 + 2|z|). Source: Trefethen & Weideman 2014, Theorem
5.1. Proof: it is an integral of an entire function of x, and within a of that line |e^{−zY}| ≤ 1.

Where the terms are heavy, their noise small or the rounds few, both bounds are those of sums of two on a geometric grid
instead [lemma excess-doubled], where the measure of S is a pair: its Q-masses, and S/t times these.

The sum over k is cut off where |E e^{−zY}| ≤ e^{b²/2}·E e^{−(γ cos sb + τ sin sb)Y}, the same integral on Im x = −b, sb
≤ π/2, is small: for all τ from there on. Rounding errors are bounded node by node.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.engine.allocated_below import GaussianRound, allocation_below, parts_atoms
from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.doubled import OCTAVES, Numbers, repeated
from privcheck.accounting.engine.gdp import gdp_log_delta
from privcheck.accounting.engine.laws import UNIT, Complex, Direction, Floats, as_complex, as_floats, root_up
from privcheck.accounting.engine.profiles import (
    Content,
    Point,
    convex_profile,
    exponential_up,
    mirror,
    profile_atoms,
    profile_content,
    tangent_profile,
)
from privcheck.accounting.engine.threads import one_thread

_EXPONENT: Final = 60.0  # 2πa/dx: the trapezoid rule errs by e^−60
_REACH: Final = 9.5  # standard deviations of x: e^{−45} lies beyond
_TERMS: Final = 16  # of κ's series, |u| < ½
_STEPS: Final = 24  # points in a standard deviation of the loss
_NEAR: Final = 5.0  # … over so many of them
_RATIO: Final = 1.03  # of neighbouring losses beyond
_PERIOD: Final = 6.0  # T in units of the largest d that is asked; or at least, far below the mean, of 12/γ …
_WIDE: Final = 12.0  # … and of σ/2
_MOST_WORK: Final = 1 << 21  # nodes of the sum over k times those of ψ
_BLOCK: Final = 1 << 14  # complex numbers at a time: what a cache holds
_STEEPEST: Final = 16.0  # largest γ, in units of 1/σ
_TABLE: Final = 160  # λ of a table of ψ
_CUT: Final = -38.0  # ln of what the sum over k leaves out, relative to its first term
_FAR: Final = 40.0  # standard deviations of x
_LEAST_JUMP: Final = 1e-9  # of δ, below which one large term is looked at as well
_NOTHING: Final = 1e-300  # where no bound is made any smaller
_SLACK: Final = 1e-12  # relative, of the normal distribution's values and of sums of them
_FURTHEST: Final = 600.0  # loss
_DEEPEST: Final = 30.0  # … below 0
_PART: Final = 30.0  # points of the geometric grid in a standard deviation of the loss
_FINEST: Final = 45  # … and in an octave, at most: with light terms series do as well
_FALLS: Final = 5.0  # … and while the curve falls to a part in e
_FAINTEST: Final = -120.0  # ln δ
_STRONGEST: Final = 6.0  # s, up to which …
_MOST_DOUBLED: Final = 1000  # … and rounds, up to which it is used
_LOWEST, _HIGHEST = 9.0, 12.0  # standard deviations of x below 0 and above s on that grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Nodes:
    """Trapezoid rule for E[f(Y − 1)].

    Attributes:
        weights: (n,) complex.
        moved: (n,) Y − 1 at the nodes.
        rounding: (n,) bounds on the relative rounding error of each term, times |weight|.
    """

    weights: Complex
    moved: Complex
    rounding: Floats


def _nodes(s: float, tilt: float) -> _Nodes:
    """Nodes for Re z up to `tilt`.

    On the strip ln|e^{−z(Y − 1)}| ≤ min(γ, γs|x| + γs²(½ + 2a²)), so that the integrand is at most e^`rise` times what
    it is at γ = 0: the rule is finer and reaches further by as much.
    """
    return _nodes_to(s, 2.0 ** (math.ceil(2 * math.log2(tilt)) / 2))


@functools.lru_cache(maxsize=64)
def _nodes_to(s: float, tilt: float) -> _Nodes:
    a = min(1.0, math.pi / (4 * s))
    moved, fixed = tilt * s, tilt * s * s * (0.5 + 2 * a * a)
    rise, reach = tilt, math.sqrt(_REACH**2 + 2 * tilt)
    if moved**2 / 2 + fixed < rise:
        rise, reach = moved**2 / 2 + fixed, moved + math.sqrt(moved**2 + _REACH**2 + 2 * fixed)
    dx = 2 * math.pi * a / (_EXPONENT + rise)
    x = np.arange(-math.ceil(reach / dx), math.ceil((reach + 2 * s) / dx) + 1) * dx - 1j * a
    weights = np.exp(-x * x / 2) * (dx / math.sqrt(2 * math.pi))
    each = UNIT * (32 + len(x) + 4 * np.abs(x) ** 2)
    return _Nodes(
        weights=as_complex(weights),
        moved=as_complex(np.expm1(s * x - s * s / 2)),
        rounding=as_floats(np.abs(weights) * each),
    )


def _psi(s: float, z: Complex) -> tuple[Complex, Floats, Floats]:
    """ψ(z), |E e^{−z(Y − 1)}|, and a bound on the absolute error of that expectation, (m,) each."""
    nodes = _nodes(s, float(z.real.max()))
    values, errors = np.empty(len(z), dtype=np.complex128), np.empty(len(z))
    block = max(1, _BLOCK // len(nodes.weights))
    with one_thread():
        for i in range(0, len(z), block):
            kappa, size = _kappa(np.multiply.outer(z[i : i + block], nodes.moved))
            values[i : i + block] = kappa @ nodes.weights
            errors[i : i + block] = size @ nodes.rounding
    # the rule's error, and the tails of |z(Y − 1)|²: far below rounding
    size = np.abs(z)
    errors += (
        2 * math.exp(2 - _EXPONENT) * (3 + 2 * size) + math.exp(1 - _REACH**2 / 2) * (1 + math.exp(s * s)) * size**2
    )
    a, b = values.real, values.imag
    modulus = np.maximum(np.hypot(1 + a, b), 1e-300)
    log = np.where(modulus < 0.5, np.log(modulus), 0.5 * np.log1p(np.maximum(2 * a + a * a + b * b, -0.9)))
    return as_complex(log + 1j * np.arctan2(b, 1 + a)), as_floats(modulus), as_floats(errors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Real:
    """Upper bounds on ψ at real λ, and on ln E e^{−λY}.

    Attributes:
        small: (n,) λ, from a hundredth of 1/σ.
        psi: (n,) bounds on ψ there; ψ is convex, so that its chords are bounds as well.
        large: (m,) λ beyond.
        log: (m,) bounds on ln E e^{−λY}, which falls in λ.
    """

    small: Floats
    psi: Floats
    large: Floats
    log: Floats

    def log_transform(self, at: Floats) -> Floats:
        """Bound on ln E e^{−λY}, at any λ > 0."""
        near = np.interp(at, self.small, self.psi) * (1 + 1e-14) - at
        far = self.log[np.maximum(np.searchsorted(self.large, at, side="right") - 1, 0)]
        near = np.where(at >= self.small[0], near, 0.0)
        return as_floats(np.where(at < self.small[-1], near, np.minimum(far, 0.0)))


@functools.lru_cache(maxsize=64)
def _real(s: float, std: float) -> _Real:
    from scipy.special import log_ndtr

    first = 1e-2 / std
    small = np.geomspace(first, max(_STEEPEST / std, min(64.0, 11 / s)), _TABLE)
    psi = np.empty(_TABLE)
    for part in np.array_split(np.arange(_TABLE), 8):  # each with the nodes that it needs
        found, modulus, off = _psi(s, as_complex(small[part] + 0j))
        psi[part] = found.real + np.log1p(off / modulus) + 8 * UNIT * np.abs(found)
    large = small[-1] * np.geomspace(1, 1e12, _TABLE)
    nodes = _nodes(s, 1.0)
    values = (
        np.exp(
            -np.minimum(np.multiply.outer(large, 1 + nodes.moved.real), 745.0)
            - 1j * np.multiply.outer(large, nodes.moved.imag)
        )
        @ nodes.weights
    ).real
    most = float(nodes.rounding.sum()) * 8 + 4 * math.exp(2 - _EXPONENT) + 2 * math.exp(1 - _REACH * _REACH / 2)
    # … and below what rounding leaves of it, P(Y ≤ y) + e^{−λy} at the best y
    x = np.linspace(-_FAR, 5, 400)
    simple = np.logaddexp(log_ndtr(x), -np.multiply.outer(large, np.exp(s * x - s * s / 2))).min(axis=1) + 1e-9
    log = as_floats(np.minimum(np.log(values + most), simple))
    return _Real(small=as_floats(small), psi=as_floats(psi), large=as_floats(large), log=log)


def _kappa(u: Complex) -> tuple[Complex, Floats]:
    """κ(u) = e^{−u} − 1 + u, and the size of the terms that it is made of."""
    size = np.abs(u)
    values, sizes = np.empty_like(u), np.empty(u.shape)
    small = size < 0.5
    v = u[small]
    series = np.ones_like(v)
    for k in range(_TERMS, 2, -1):
        series = 1 - v / k * series
    values[small], sizes[small] = v * v / 2 * series, size[small] ** 2
    v, n = u[~small], size[~small]
    with np.errstate(under="ignore"):
        away = np.exp(-v)
    values[~small], sizes[~small] = away - 1 + v, (np.abs(away) + 1) * (1 + n)
    return as_complex(values), as_floats(sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Sum S of the likelihood ratios of t rounds without the user.

    Attributes:
        shift: s = Δ/std of one round.
        rounds: t, 2 or more.
    """

    shift: float
    rounds: int

    @property
    def std(self) -> float:
        """Standard deviation of S."""
        return math.sqrt(self.rounds * math.expm1(self.shift**2))

    @property
    def octave(self) -> int | None:
        """Points from a number to its double on the grid of [lemma excess-doubled]; None where it takes too many."""
        wanted = _PART * math.log(2) / self.loss_std
        fine = [octave for octave in OCTAVES if wanted <= octave <= _FINEST]
        return fine[0] if fine and self.shift <= _STRONGEST and self.rounds <= _MOST_DOUBLED else None

    def one(self, octave: int) -> Numbers:
        """Y of one round, for that grid."""
        s, octaves = self.shift, octave / math.log(2)
        start, stop = (round((s * x - s * s / 2) * octaves) for x in (-_LOWEST, s + _HIGHEST))
        x = np.append(-np.inf, np.arange(start, stop + 1) / octaves / s + s / 2)
        blur = 8 * UNIT * (float(np.max(np.abs(x[1:]))) + s + 1 / s)
        return Numbers(start=start, octave=octave, x=as_floats(x[np.newaxis, :]), blur=blur, parts=((s, np.ones(1)),))

    @property
    def loss_std(self) -> float:
        """About the standard deviation of ln(S/t)."""
        return math.sqrt(math.log1p((self.std / self.rounds) ** 2))

    def shortfalls(self, d: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds on G(d) = E(t + d − S)₊ at (m,) increasing d; 0 and ∞ where they are not computed.

        Further out than the first d at which nothing is left of G, or of G − d above the mean, none is.
        """
        lower, upper = np.zeros(len(d)), np.full(len(d), np.inf)
        scale, std = _NEAR * self.std, self.loss_std
        losses = np.log1p(d / self.rounds)
        high, low = np.maximum(d / scale, 1.0), np.maximum(-losses / std, 1.0)
        places = np.where(losses < -std, -1 - np.floor(np.log2(low)), np.ceil(np.log2(high))).astype(np.int64)
        for way in (places[places >= 0], places[places < 0]):
            for place in sorted(set(way.tolist()), key=abs):
                part = places == place
                at = as_floats(d[part])
                if place >= 0:
                    bounds = self._group(at, 2 / (scale * 2.0**place), _PERIOD * scale * 2.0**place)
                else:
                    tilt = self._tilt(float(at.mean()))
                    reach = min(2 * _WIDE * self.std, float(self.rounds))  # S is not negative
                    bounds = self._group(at, tilt, max(reach, _PERIOD * _WIDE / tilt))
                if bounds is None:
                    break
                lower[part], upper[part] = bounds
                outer = -1 if place >= 0 else 0
                least, most = (float(bound[part][outer]) - max(float(at[outer]), 0.0) for bound in (lower, upper))
                if least < most / 2:  # further out there is rounding only
                    break
        return lower, upper

    def excesses(self, d: Floats, shortfalls: Floats) -> Floats:
        """Upper bounds on C(d) = E(S − t − d)₊ at (m,) increasing d, from those on G; far out by one large term.

        Lemma allocation-large-term: With a half of c = t + d and S_a the sum of terms cut off at a, C(d) = E(S − c)₊ ≤
        t·E[C(c − t + 1 − Y); Y > a] + E(S_a − c)₊, the second at most e^{−ηc − 1}·(E e^{η·min(Y, a)})^t/η. Proof: S > c
        takes a term above a, or is above c with all terms cut off at a: C(d) ≤ t·E[(Y + S′ − c)₊; Y > a] + E(S_a − c)₊.
        S′ is the sum of the others, and S′ + 1 is below S in the convex order: the first term is at most that of C
        nearer the mean.
        """
        t = self.rounds
        known = np.where(shortfalls < np.inf, np.maximum(shortfalls, d) - d + 4 * UNIT * np.abs(d), np.inf)
        known = np.minimum(known, self.std / 2 + np.maximum(-d, 0.0))
        first = int(np.searchsorted(d, 0.0, side="right"))
        for i in range(first, len(d)):
            known[i] = min(known[i], known[i - 1])
            if known[i] < _LEAST_JUMP * t or not shortfalls[i] < np.inf:
                c = t + float(d[i])
                known[i] = min(known[i], t * self._one_large(c, d[:i], known[:i]) + self._none_large(c))
            if known[i] < _NOTHING:
                known[i:] = known[i]
                break
        return known

    def _one_large(self, c: float, d: Floats, known: Floats) -> float:
        """Bound on E[C(c − t + 1 − Y); Y > c/2] from bounds on C, which falls, at (m,) increasing d."""
        least = c - self.rounds + 1 - c / 2
        inside = d < least
        # increasing Y: C is at most its value at the cell's upper end, and −d + σ/2 beyond the last
        y = np.append(c / 2, c - self.rounds + 1 - d[inside][::-1])
        most = known[inside][::-1]
        q, p = _tails(self.shift, as_floats(y))
        whole = float(np.maximum(q[:-1] - q[1:], 0.0) @ most) + _SLACK * float(q[:-1] @ most)
        rest = float(p[-1] + (self.std / 2 - (c - self.rounds + 1)) * q[-1])
        return (whole + max(rest, 0.0) + _SLACK * c * float(q[-1])) * (1 + _SLACK) + _NOTHING

    def _none_large(self, c: float) -> float:
        """Bound on E(S_a − c)₊, the terms cut off at a = c/2."""
        s, t, a = self.shift, self.rounds, c / 2
        edges = np.exp(
            s * np.append(np.arange(-_REACH, min(math.log(a) / s + s / 2, _FAR), 0.05), math.inf) - s * s / 2
        )
        y = np.append(np.minimum(edges[edges < a], a), a)
        q, p = _tails(s, y)
        below_q, below_p = np.append(1.0, q[:-1]) - q, np.append(1.0, p[:-1]) - p  # of each cell, the first from 0
        low = np.append(0.0, y[:-1])
        # e^{ηy} is below its chord on every cell, and so is its mean
        upper = np.clip((below_p - low * below_q) / (y - low), 0.0, below_q)
        at_y = upper + np.append((below_q - upper)[1:], 0.0)
        at_y[-1] += q[-1]
        at_0 = below_q[0] - upper[0]
        etas = np.geomspace(0.5, 200, 40) / a
        etas = np.concatenate([etas, np.geomspace(0.2, 40, 40) / self.std])
        etas = etas[etas * a < 600]
        rises = np.expm1(np.multiply.outer(etas, y - 1)) @ at_y + np.expm1(-etas) * at_0
        total = float(at_y.sum() + at_0) - 1
        logs = (
            t * np.log1p(rises + max(total, 0.0) + _SLACK * (np.abs(rises) + etas)) - etas * (c - t) - 1 - np.log(etas)
        )
        return math.exp(min(float(logs.min()), 700.0)) * (1 + 1e-9)

    def _tilt(self, d: float) -> float:
        """γ at the saddle point of G(d), far below the mean."""
        known = _real(self.shift, self.std)
        return float(known.small[int(np.argmin(known.small * d + self.rounds * known.psi - 2 * np.log(known.small)))])

    def _group(self, d: Floats, tilt: float, period: float) -> tuple[Floats, Floats] | None:
        """Bounds on G at d of about one size; None where they take too many nodes.

        Args:
            d: (m,) increasing.
            tilt: γ.
            period: T; where that takes too many nodes, a third of it.
        """
        t, s = self.rounds, self.shift
        cut = self._cut(tilt)
        if cut is None:
            return None
        last, left_out = cut
        most = _MOST_WORK // len(_nodes(s, tilt).weights)
        period = min(period, max(period / 3, 2 * math.pi * (most - 2) / last))
        step = 2 * math.pi / period
        count = math.ceil(last / step) + 1
        if count > most:
            return None
        z = as_complex(tilt + 1j * step * np.arange(count))
        psi, modulus, off = _psi(s, z)
        size = np.abs(z)
        logs = t * psi - 2 * np.log(z)
        logs[0] -= math.log(2)
        # |true|^t and |computed|^t are at most `most`; they differ by t·off·most/modulus, and by rounding
        bound = as_floats(t * np.log(modulus + off) - 2 * np.log(size))
        relative = t * off / (modulus + off) + UNIT * (64 + count + 16 * t * np.abs(psi))
        top = float(bound.max())
        weights = np.exp(bound - top)
        fixed, turning = float(weights @ relative), 8 * UNIT * float(weights @ size)
        sums = np.empty(len(d))
        block = max(1, _BLOCK // count)
        for i in range(0, len(d), block):
            sums[i : i + block] = np.exp(np.multiply.outer(d[i : i + block], z - tilt) + (logs - top)).real.sum(axis=1)
        unit = step / math.pi * np.exp(tilt * d + top)
        error = unit * (fixed + turning * np.abs(d)) + np.exp(tilt * d + left_out)
        r = math.exp(-tilt * period)
        known = d * (r / -math.expm1(-tilt * period)) + period * r / math.expm1(-tilt * period) ** 2
        error += 8 * UNIT * np.abs(known)
        values = unit * sums - known
        upper = np.maximum(values + error, np.maximum(d, 0.0))
        # C falls, and C(d) ≤ σ/2 + (−d)₊
        above = self.std / 2 + np.maximum(-d - period, 0.0)
        above = np.where(d + period >= d[-1], np.minimum(above, upper[-1] - d[-1]), above)
        above *= r / -math.expm1(-tilt * period)
        below = self._far_below(as_floats(d - period), tilt, period)
        return as_floats(np.maximum(values - error - above - below, np.maximum(d, 0.0))), as_floats(upper)

    def _cut(self, tilt: float) -> tuple[float, float] | None:
        """τ at which the sum is cut off, and ln of a bound on what it leaves out at d = 0."""
        s, t = self.shift, self.rounds
        known = _real(s, self.std)
        start = t * float(np.interp(tilt, known.small, known.psi)) - 2 * math.log(tilt)
        turns = np.unique(np.minimum(np.geomspace(0.05, 20, 24), math.pi / (2 * s)))
        taus = np.geomspace(0.5, 1e8, 400) / self.std
        real = np.multiply.outer(taus, np.sin(s * turns)) + tilt * np.cos(s * turns)
        logs = known.log_transform(as_floats(real.ravel())).reshape(real.shape)
        least = (logs + turns**2 / 2 + tilt + 8 * UNIT * real).min(axis=1)
        bounds = t * least - np.log(math.pi * taus)
        good = np.flatnonzero(bounds <= start + _CUT - math.log(self.std))
        return (float(taus[good[0]]), float(bounds[good[0]]) + 1e-9) if len(good) else None

    def _far_below(self, d: Floats, tilt: float, period: float) -> Floats:
        """(m,) bounds on Σ r^{−m}·G(d − (m − 1)·T), m = 1, 2, …, at d a period below what is asked."""
        result, possible = np.zeros(len(d)), d > -self.rounds
        known = _real(self.shift, self.std)
        steeper = known.small > tilt * (1 + 1e-9)
        if not steeper.any():
            result[possible] = np.inf
        elif possible.any():
            etas = known.small[steeper]
            rest = self.rounds * known.psi[steeper] - 1 - np.log(etas)
            rest += tilt * period - np.log(-np.expm1(-(etas - tilt) * period))
            logs = np.multiply.outer(d[possible], etas) + rest
            slack = 1e-9 + 1e-14 * (np.abs(d[possible]) * float(etas[-1]) + tilt * period)
            result[possible] = np.exp(np.minimum(logs.min(axis=1) + slack, 700.0))
        return result


def allocated_law(shift: float, rounds: int) -> AtomicLaw:
    """Law that dominates one epoch of t rounds, in one of which the user takes part, and hardly more than that.

    Args:
        shift: s = Δ/std of one round, above 0.
        rounds: t, 2 or more.
    """
    return AtomicLaw(
        build=_allocated,
        arguments=(shift, rounds),
        bound=math.inf,
        symmetric=False,
        rounded=True,
        repeat=_repeat,
        below=_allocated_below,
    )


def _repeat(times: int, shift: float, rounds: int) -> AtomicLaw:
    """Law of n releases in the drawn round: one of √n times the sensitivity."""
    return allocated_law(shift * root_up(times), rounds)


def _allocated(shift: float, rounds: int, direction: Direction) -> Atoms:
    return profile_atoms(_above(shift, rounds), direction)


def _allocated_below(shift: float, rounds: int, direction: Direction) -> Atoms:
    octave = Allocation(shift=shift, rounds=rounds).octave
    if octave is not None:
        return _doubled_below(shift, rounds, octave, direction)
    series = profile_atoms(_below(shift, rounds), direction)
    return allocation_below(GaussianRound(shift=shift, replaced=False), rounds, 1, direction, series)


@functools.lru_cache(maxsize=64)
def _above(shift: float, rounds: int) -> Content:
    """Knots of an upper bound on the profile of "remove", x ↦ E(S/t − x)₊."""
    of = Allocation(shift=shift, rounds=rounds)
    octave = of.octave
    points = list(_by_series(of) if octave is None else _by_doubling(of, octave))
    for loss in _losses(of).tolist():
        if loss >= 0:
            alone = known_round(shift, loss)
            points += [alone, *mirror([alone])]
    return profile_content(convex_profile(points))


@functools.lru_cache(maxsize=64)
def _below(shift: float, rounds: int) -> Content:
    """Knots of a lower bound."""
    known, highs = list[tuple[Fraction, Fraction, Fraction]](), _by_series(Allocation(shift=shift, rounds=rounds))
    d, lower, _, _ = _series(shift, rounds)
    for (x, high), at, least in zip(highs, d.tolist(), lower.tolist(), strict=True):
        low = (Fraction(least) - max(Fraction(at), Fraction(0))) / rounds
        base = max(-Fraction(at), Fraction(0)) / rounds
        if low > (high - base) / 2:
            known.append((x, base + low, high))
    return profile_content(tangent_profile(known))


@functools.lru_cache(maxsize=8)
def _series(shift: float, rounds: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Some d, lower and upper bounds on G there, and upper bounds on C."""
    of = Allocation(shift=shift, rounds=rounds)
    d = as_floats(rounds * np.expm1(_losses(of)))
    lower, upper = of.shortfalls(d)
    return d, lower, upper, of.excesses(d, upper)


def _by_series(of: Allocation) -> list[Point]:
    """Upper bounds at increasing x [lemma allocation-series]."""
    points = list[Point]()
    d, _, upper, above = _series(of.shift, of.rounds)
    for at, most, over in zip(d.tolist(), upper.tolist(), above.tolist(), strict=True):
        high = Fraction(over) / of.rounds if at >= 0 else Fraction(1)
        if at < 0 and most < math.inf:
            high = min(high, (Fraction(most) - Fraction(at)) / of.rounds)
        points.append((1 + Fraction(at) / of.rounds, high))
    return points


def _by_doubling(of: Allocation, octave: int) -> Iterator[Point]:
    """Upper bounds at increasing x [lemma excess-doubled]."""
    t, one = of.rounds, of.one(octave)
    summed, rest = repeated(one.on_points("both above"), t), float(one.beyond()[0])
    values, over, short = summed.points, summed.excesses()[0] / t + rest, summed.shortfalls()[0] / t
    # as many of the points as the curve needs
    losses = np.log(values[1:] / t)
    logs = np.log(np.where(losses < 0, short[1:], over[1:])) - np.minimum(losses, 0.0)
    steps = np.floor(losses / of.loss_std * _STEPS) - np.sign(losses) * np.floor(logs * _FALLS)
    kept = np.flatnonzero((losses > -_DEEPEST) & (losses < _FURTHEST) & (logs > _FAINTEST))
    places = kept[np.unique(steps[kept], return_index=True)[1]] + 1
    for value, most, missing in zip(*(each[places].tolist() for each in (values, over, short)), strict=True):
        x = Fraction(value) / t
        yield x, (1 - x + Fraction(missing) if x < 1 else Fraction(most)) * (1 + Fraction(8, 1 << 53))


def _doubled_below(shift: float, rounds: int, octave: int, direction: Direction) -> Atoms:
    """Loss of the pair of the sums' measures [lemma excess-doubled-below]."""
    one = Allocation(shift=shift, rounds=rounds).one(octave)
    summed = repeated(one.on_points("excess below" if direction == "remove" else "shortfall below"), rounds)
    without = summed.masses[0, 1:]
    kept = without > 0
    parts = as_floats((without * (summed.points[1:] / rounds))[kept]), as_floats(without[kept])
    return parts_atoms(*(parts if direction == "remove" else parts[::-1]))


def known_round(shift: float, loss: float) -> Point:
    """Bound on δ for a user who is known to take part in one given round: hockey-sticks are convex."""
    log_delta = gdp_log_delta(shift, loss)
    return exponential_up(loss), Fraction(max(math.exp(min(log_delta * (1 - _SLACK) + _SLACK, 0.0)), _NOTHING))


def _tails(s: float, y: Floats) -> tuple[Floats, Floats]:
    """Q(Y > y) and P(Y > y) = E[Y; Y > y]."""
    from scipy.special import ndtr

    x = np.log(y) / s
    return as_floats(ndtr(-x - s / 2)), as_floats(ndtr(s / 2 - x))


def _losses(of: Allocation) -> Floats:
    """Losses at which the profile is computed."""
    std = of.loss_std
    near = np.arange(1, math.ceil(_NEAR * _STEPS) + 1) * (std / _STEPS)
    last = min(_FURTHEST, of.shift**2 / 2 + 38 * of.shift)
    count = max(2, math.ceil(math.log(max(last / near[-1], 2.0)) / math.log(_RATIO)))
    beyond = np.geomspace(near[-1], max(last, 2 * near[-1]), count)[1:]
    above = np.concatenate([near, beyond])
    return as_floats(np.concatenate([-above[above < _DEEPEST][::-1], [0.0], above]))
