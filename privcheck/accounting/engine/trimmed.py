"""A law of the loss without its tails, as a weighted sum over nodes: its cumulant, and how fast φ falls.

Lemma trimmed-laws: Let the outputs of every release be restricted to a range, δ′ be that of the remaining measures and
τ the mass of P left out of all releases together. Then δ′(ε) ≤ δ(ε) ≤ δ′(ε) + τ. Proof: with the mass of P outside
counted as lost the law dominates; without that mass the remaining measures are dominated by the law, (P, Q) restricted
to the outputs that are kept, also in compositions.

So one sum bounds δ(ε) from both sides. Rare large losses, which hide the bulk from the cumulant of the whole law, are
left out.

Lemma trimmed-cumulant: With Q(all) = P(all) = 1, E[e^{zL}] − 1 over what is kept is A(z) = Σ q·g(l, z) − Q_out + (1 +
z)(Q_out − P_out), g(l, z) = e^{(1+z)l} − 1 − (1 + z)(e^l − 1). Proof: over what is kept Σ q = 1 − Q_out and Σ q·e^l = 1
− P_out.

As g is about z(z + 1)l²/2 for small losses, nothing cancels, so a count of 10¹⁵ may multiply ln(1 + A).

Lemma pairs-of-outcomes: With weights w of the tilted law on a set I of outputs whose losses lie within d of each other,
and |t|d ≤ π, |φ(t)|² ≤ 1 − (2t²/π²)·Σ_I wᵢwⱼ(lᵢ − lⱼ)². Proof: |φ(t)|² = Σ wᵢwⱼ cos t(lᵢ − lⱼ), and 1 − cos x ≥ 2x²/π²
for |x| ≤ π (`bound_by_pairs`).

For larger t a density of bounded variation falls as V/t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.laws import (
    UNIT,
    Complex,
    Direction,
    Floats,
    Moments,
    as_complex,
    as_floats,
    without_light_end,
)
from privcheck.accounting.engine.quadrature import NODES, Shape, panels_between
from privcheck.accounting.engine.threads import one_thread

T = TypeVar("T", np.float64, np.complex128)
_SERIES: Final = 0.1  # of the exponent, below which e^a − 1 − a is a series: the terms after the 12th are below 1e-19
_TERMS: Final = [1 / math.factorial(k) for k in range(13, 1, -1)]
_RULE: Final = 1e-14  # of the integral of |g|: what panels leave out, a hundred times
_BLOCK: Final = 1 << 19
_MOST_NODES: Final = 20_000
_PRECISE: Final = 1e-7  # of ln φⁿ: the error up to which φ − 1 is summed by products of matrices …
_MOST_DIRECT: Final = 5e6  # … and beyond so many terms always
_FAR: Final = 10.0  # standard deviations of t, from which on φⁿ no longer counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trimmed:
    """Law without its tails.

    Attributes:
        losses: (n,) losses at the nodes, increasing from panel to panel.
        logs: (n,) ln of their P-masses.
        starts: (k,) index of the first node of each panel.
        lows: (k,) least loss on each panel.
        highs: (k,) largest loss on each panel.
        p_out: P-mass outside, rounded up.
        q_out: Q-mass outside.
        atoms: Tilted mass of the atoms, relative to the whole: what of φ does not fall.
        variation: Total variation of the tilted density of the loss, relative to the whole.
        loose: Error of ΣP, ΣQ and of the masses outside; 0 where they are known to all their digits.
    """

    losses: Floats
    logs: Floats
    starts: NDArray[np.intp]
    lows: Floats
    highs: Floats
    p_out: float
    q_out: float
    atoms: float
    variation: float
    loose: float = 0.0

    @property
    def narrowest(self) -> float:
        """Least range of losses over which pairs of outcomes are looked at."""
        ranges = np.append(self.highs - self.lows, np.diff(self.lows))
        return float(ranges[ranges > 0].min(initial=math.inf))

    def _masses(self) -> Floats:
        """(n,) Q-masses of the nodes."""
        return np.exp(self.logs - self.losses)

    def _outside(self, z: Complex) -> Complex:
        return as_complex((1 + z) * (self.q_out - self.p_out) - self.q_out)

    def moments(self, c: Floats) -> Moments:
        """K, K′ and K″, (m,) each, at (m,) real c."""
        q, losses = self._masses(), self.losses
        exponents = np.multiply.outer(1 + c, losses)
        own = _second_order(losses)
        with np.errstate(over="ignore", invalid="ignore"):
            gains = _second_order(exponents) - np.multiply.outer(1 + c, own)
            grown = np.expm1(exponents)
            whole = np.maximum(gains @ q + self._outside(as_complex(c)).real, -1 + 1e-16)
            first = (losses * grown - own) @ q + (self.q_out - self.p_out)
            second = (losses * losses * (grown + 1)) @ q
            k1 = first / (1 + whole)
            k2 = second / (1 + whole) - k1 * k1
        k = np.log1p(whole)
        known = np.isfinite(k + k1 + k2)
        k, k1, k2 = (as_floats(np.where(known, x, np.inf)) for x in (k, k1, np.maximum(k2, 1e-300)))
        return k, k1, k2

    def rounding(self, c: float) -> float:
        """Bound on the error of K(c)."""
        q, a = self._masses(), 1 + c
        with np.errstate(over="ignore"):
            size = np.maximum(1.0, np.exp(a * self.losses)) * (a * self.losses) ** 2
        off = (64 * UNIT + _RULE) * float((q * size).sum()) + self.loose * (1 + a)
        return off / math.exp(float(self.moments(np.array([c]))[0][0]))

    def tilted(self, c: float) -> Floats:
        """(n,) weights of the law tilted by e^{cl}, with sum 1."""
        logs = self.logs + c * self.losses
        weights = np.exp(logs - float(logs.max()))
        return as_floats(weights / weights.sum())

    def wave(self, c: float, step: float, count: int, times: int) -> tuple[Complex, Floats, float]:
        """K(c + it) − K(c) at `count` values of t, for a sum of so many losses.

        Returns:
            (count,) logarithms of φ, −∞ where no digit of φ is known; (count,) bounds on their errors; and a bound on
            the power of |φ| where none is known.
        """
        weights = self.tilted(c)
        t = step * np.arange(count)
        one_std = math.sqrt(float((weights * self.losses**2).sum()))
        far = min(float(t[-1]), _FAR / max(one_std * math.sqrt(times), 1e-150))
        unit = 2 * UNIT * (len(weights) + 40) + _RULE
        mean = float((weights * np.abs(self.losses)).sum()) * (1 + 1e-12)
        if times * unit * far * mean <= _PRECISE or len(weights) * count > _MOST_DIRECT:
            sums = _turned(self.losses, weights, step=step, count=count)
            off = unit * np.minimum(2.0, t * mean) + UNIT * t * mean * 112 + 4e-19  # the last for weights left out
        else:
            sums, off = self._second_orders(c, as_floats(t))
        with np.errstate(divide="ignore"):
            modulus = np.abs(1 + sums)
            known = off < 0.5 * modulus
            # |ln(1 + A)| of a small complex A keeps its digits through its two parts
            real = np.log1p(np.maximum(2 * sums.real + np.abs(sums) ** 2, -1 + 1e-16)) / 2
            logs = np.where(known, real + 1j * np.arctan2(sums.imag, 1 + sums.real), -np.inf)
            rough = np.where(
                known, 1.4 * off / np.maximum(modulus, 1e-300) + 4 * UNIT * np.minimum(np.abs(logs), 1e3), 0.0
            )
        unknown = float(off[~known].max(initial=0.0))
        return as_complex(logs), as_floats(rough), min(1.0, 3 * unknown) ** times

    def _second_orders(self, c: float, t: Floats) -> tuple[Complex, Floats]:
        """φ(t) − 1 from A(c + it), and bounds on its errors: relative to the second order in l."""
        q = self._masses()
        size = np.maximum(1.0, np.exp((1 + c) * self.losses)) * self.losses * self.losses
        whole = float((q * size).sum())
        heavy = q * size > 1e-22 * whole
        q, losses = q[heavy], self.losses[heavy]
        own = _second_order(losses)
        sums, z = np.empty(len(t), dtype=np.complex128), as_complex(c + 1j * t)
        block = max(1, _BLOCK // len(losses))
        for i in range(0, len(t), block):
            a = 1 + z[i : i + block, None]
            sums[i : i + block] = (_second_order(a * losses) - a * own) @ q
        sums += self._outside(z)
        first = float(sums[0].real)
        off = (64 * UNIT + _RULE) * (np.abs(1 + z) ** 2 * whole) + self.loose * (1 + np.abs(1 + z))
        return as_complex((sums - first) / (1 + first)), as_floats(
            (off + off[0]) / (1 + first) + 4 * UNIT * np.abs(sums)
        )

    def bound_by_pairs(self, c: float, times: Floats) -> Floats:
        """(m,) bounds on ln|φ(t)| for all t from each of (m + 1,) increasing times up to the next."""
        weights = self.tilted(c)
        mass = np.add.reduceat(weights, self.starts)
        centre = float((weights * self.losses).sum())
        away = self.losses - centre
        mean = np.add.reduceat(weights * away, self.starts)
        square = np.add.reduceat(weights * away * away, self.starts)
        sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (mass, mean, square)]
        first = np.arange(len(mass))
        later = times[1:, None]
        last = np.searchsorted(self.highs, self.lows + math.pi / later, side="right")
        last = np.maximum(last, first)
        m, a, s = (part[last] - part[first] for part in sums)
        # what prefix sums round is taken off
        rounded = 1e-14 * (sums[2][-1] + np.abs(sums[1]).max() ** 2 + sums[2][-1] * m)
        spread = (2 * (m * s - a * a) - 8 * rounded).max(axis=1)
        fallen = 2 / math.pi**2 * times[:-1] ** 2 * np.maximum(spread, 0.0) * (1 - 1e-6)
        return as_floats(0.5 * np.log1p(-np.minimum(fallen, 1 - 1e-16)))


@runtime_checkable
class Trimmable(Protocol):
    """Law that can be trimmed."""

    def trim(self, tail: float, direction: Direction, *, c: float, longest: float) -> Trimmed | None:
        """Build the law without a mass of P of about `tail`.

        Args:
            tail: Mass that may be lost.
            direction: Direction of the pair.
            c: Largest tilt at which the nodes are accurate.
            longest: Largest |t| at which e^{(c + it)l} is integrated accurately.

        Returns:
            None where there are too many nodes.
        """
        ...


def _second_order(a: NDArray[T]) -> NDArray[T]:
    """e^a − 1 − a, with its digits, of real or complex a."""
    near = np.abs(a) < _SERIES
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.expm1(a) - a
    small = a[near]
    if small.size:
        series = np.full(small.shape, _TERMS[0], dtype=a.dtype)
        for term in _TERMS[1:]:
            series = series * small + term
        result[near] = series * small * small
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """Part of a law: atoms, or one monotone branch of a density, with losses increasing from panel to panel.

    Attributes:
        losses: (n,) losses at the nodes.
        logs: (n,) ln of their P-masses.
        each: Number of nodes of every panel.
        lows: (k,) least loss on each panel.
        highs: (k,) largest loss on each panel.
        log_variation: ln of the total variation of the tilted density; −∞ for atoms.
    """

    losses: Floats
    logs: Floats
    each: int
    lows: Floats
    highs: Floats
    log_variation: float = -math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Density:
    """Density of P along an axis x, with a monotone loss.

    Attributes:
        shape: ln p and l at points x, and the points between which they are integrated; the curvature is that of the
            largest tilt.
        turn: (ln h)′ at points x, h = p·e^{cl}/|l′| being the tilted density of the loss.
        bend: Bound on |(ln h)″|.
        slope: |l′| at points x.
    """

    shape: Shape
    turn: Callable[[Floats], Floats]
    bend: float
    slope: Callable[[Floats], Floats]

    def piece(self, *, c: float, longest: float) -> Piece | None:
        """Nodes and variation; None where there are too many nodes."""
        made = panels_between(self.shape, longest=longest, most=_MOST_NODES)
        if made is None:
            return None
        edges, x, weights = made
        logs, losses = self.shape.log_density(x)
        ends = self.shape.log_density(edges)[1]
        known = as_floats(np.concatenate([edges[:1], x, edges[-1:]]))
        at, there = self.shape.log_density(known)
        steep = self.slope(known)
        log_variation = math.inf  # where the loss hardly moves, as if it were an atom
        if float(steep.min()) > 0:
            heights = as_floats(at + c * there - np.log(steep))
            top = float(heights.max())
            log_variation = top + math.log(
                bound_variation(known, as_floats(heights - top), self.turn(known), self.bend)
            )
        way = 1 if ends[-1] >= ends[0] else -1
        ends, weighed = ends[::way], as_floats(logs + np.log(weights))
        return Piece(
            losses=losses[::way],
            logs=weighed[::way],
            each=NODES,
            lows=as_floats(ends[:-1]),
            highs=as_floats(ends[1:]),
            log_variation=log_variation,
        )


def exponential_piece(end: float, height: float, *, c: float, longest: float) -> Piece | None:
    """Losses in [−a, a] with the density h·e^{(l − a)/2}.

    Args:
        end: a.
        height: h.
        c: Tilt.
        longest: Largest |t|.
    """
    points = as_floats([-end, 0.0, end])
    ones = np.ones(3)
    return Density(
        shape=Shape(
            lambda x: (as_floats(math.log(height) + (x - end) / 2), x),
            points,
            (),
            as_floats(ones * (c + 1) ** 2 / 16),
            ones,
        ),
        turn=lambda x: np.full(len(x), c + 0.5),
        bend=0.0,
        slope=lambda x: np.ones(len(x)),
    ).piece(c=c, longest=longest)


def atoms_piece(losses: Floats, logs: Floats) -> Piece:
    """Atoms at increasing losses."""
    return Piece(losses=losses, logs=logs, each=1, lows=losses, highs=losses)


def assemble(pieces: Sequence[Piece], *, c: float, p_out: float, q_out: float, loose: float = 0.0) -> Trimmed:
    """Build a trimmed law from its pieces, by increasing loss.

    Args:
        pieces: The pieces.
        c: Tilt, relative to which masses of atoms and variations are given.
        p_out: P-mass outside.
        q_out: Q-mass outside.
        loose: Error of these and of ΣP, ΣQ.
    """
    sizes = np.concatenate([np.full(len(piece.lows), piece.each, dtype=np.intp) for piece in pieces])
    losses, logs = (as_floats(np.concatenate(part)) for part in zip(*((p.losses, p.logs) for p in pieces), strict=True))
    tilted = logs + c * losses
    top = float(tilted.max())
    whole = top + math.log(float(np.exp(tilted - top).sum()))
    atoms = [float(np.exp(p.logs + c * p.losses - whole).sum()) for p in pieces if p.each == 1]
    variations = [math.exp(min(p.log_variation - whole, 700.0)) for p in pieces if p.each > 1]
    return Trimmed(
        losses=losses,
        logs=logs,
        starts=np.cumsum(sizes) - sizes,
        lows=as_floats(np.concatenate([piece.lows for piece in pieces])),
        highs=as_floats(np.concatenate([piece.highs for piece in pieces])),
        p_out=p_out,
        q_out=q_out,
        atoms=math.fsum(atoms) * (1 + 1e-11),
        variation=math.fsum(variations) * (1 + 1e-9),
        loose=loose,
    )


def _turned(losses: Floats, weights: Floats, *, step: float, count: int) -> Complex:
    """Σ wᵢ(e^{itlᵢ} − 1) at `count` values of t, the multiples of a step from 0.

    With t = a + b, a a multiple of √count steps, e^{itl} − 1 = (e^{ial} − 1)e^{ibl} + (e^{ibl} − 1): two factors of
    √count columns each, and one product of matrices, in terms no larger than t|l|.
    """
    inner = max(1, math.isqrt(count))
    outer = -(-count // inner)
    block = max(1, (1 << 21) // (inner + outer))
    heavy = weights > 1e-19 / len(weights)
    losses, weights = losses[heavy], weights[heavy]
    sums = np.zeros((outer, inner), dtype=np.complex128)
    for i in range(0, len(losses), block):
        part, own = losses[i : i + block], weights[i : i + block]
        fine = _turns(part * step, inner)
        rough = _turns(part * (step * inner), outer) * own
        with one_thread():
            sums += rough @ (fine + 1).T
        sums += fine @ own
    return as_complex(sums.ravel()[:count])


def _turns(angles: Floats, count: int) -> Complex:
    """e^{ijx} − 1 for j = 0, …, count − 1 and (n,) angles x, as (count, n): each from two of half as many turns.

    With E and F two of them, that of the sum is E + F + EF: in nine rounds, for up to 512 of them, it errs by at most
    48u·j|x|.
    """
    turns = np.zeros((count, len(angles)), dtype=np.complex128)
    known = 1
    while known < count:
        half = np.sin(angles * (known / 2)), np.cos(angles * (known / 2))
        last = -2 * half[0] ** 2 + 2j * half[0] * half[1]
        more = min(known, count - known)
        before = turns[:more]
        turns[known : known + more] = last + before + last * before
        known += more
    return turns


def trimmed_atoms(
    losses: Floats, logs: Floats, *, infinite: float, whole: bool, c: float, tail: float
) -> Trimmed | None:
    """Law of atoms without the largest losses; None where there are very many.

    Args:
        losses: (n,) increasing losses.
        logs: (n,) ln of their P-masses.
        infinite: P-mass at loss ∞.
        whole: Whether P and Q have no other mass than these.
        c: Tilt.
        tail: Mass that may be left out.
    """
    if len(losses) > _MOST_NODES:
        return None
    p = np.exp(logs)
    q = np.exp(logs - losses)
    kept = without_light_end(p, tail)
    left_out = len(losses) - kept
    p_out, q_out = (float(masses[kept:].sum()) * (1 + UNIT * (left_out + 4)) for masses in (p, q))
    off = UNIT * (left_out + 20) * (p_out + q_out)
    if not whole:
        p_out, q_out = infinite + p_out, 1 - float(q[:kept].sum())
        off = abs(1 - p_out - float(p[:kept].sum())) + UNIT * (len(losses) + 20)
    return assemble([atoms_piece(losses[:kept], logs[:kept])], c=c, p_out=p_out, q_out=q_out, loose=off)


def bound_variation(x: Floats, logs: Floats, slopes: Floats, bend: float) -> float:
    """Bound on the total variation of a density, jumps at both ends included, from points on all of its range.

    Args:
        x: (n,) increasing points, the ends among them.
        logs: (n,) ln h there, h the density.
        slopes: (n,) (ln h)′ there.
        bend: Bound on |(ln h)″|.
    """
    h, gaps = np.exp(logs), np.diff(x)
    # between two points |(ln h)′| is at most D, and h at most e^{D·gap/2} times the larger of its ends' …
    steepest = np.maximum(np.abs(slopes[:-1]), np.abs(slopes[1:])) + gaps * bend / 2
    # … and its variation at most the product of these and the gap, or the ends' difference where it is monotone
    with np.errstate(over="ignore"):
        inside = steepest * gaps * np.exp(np.maximum(logs[:-1], logs[1:]) + steepest * gaps / 2)
    monotone = np.minimum(np.abs(slopes[:-1]), np.abs(slopes[1:])) > gaps * bend
    monotone &= np.sign(slopes[:-1]) == np.sign(slopes[1:])
    inside = np.where(monotone, np.abs(np.diff(h)), inside)
    with np.errstate(over="ignore"):
        return float(inside.sum() + h[0] + h[-1]) * (1 + 1e-9)
