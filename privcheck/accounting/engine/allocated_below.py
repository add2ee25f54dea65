"""Lower bounds for random allocation: pairs that an epoch dominates, and the greatest of them.

Lemma allocation-statistic: With h a function of one round's outcome with whole values, the law of Σh over the t rounds,
the convolution of k of h under P and t − k of h without the user, and that for the neighbour, are a pair that the epoch
dominates. Proof: data processing, and the t outcomes are independent given the k rounds; all choices of these give Σh
the same law.

h is a Poisson sample's loss at some rate, on a lattice. At the rate k/t Σh is about the epoch's own loss; where single
outcomes outweigh all others a smaller rate says more: at a rate near 0 h is the likelihood ratio itself, which for k =
1 is all there is to know. The masses of Σh follow from two transforms for every one of some tilts, with the bounds of
`convolution`; every value has the best of them: P rounded down and Q up. The tilted laws of both have their means at
the same places, from where Q is to far out in P's tail.

Lemma allocation-one-large: With k = 1 and Gaussian noise, let r, p, q be the laws of one round's number x without
either user, with the user and for the neighbour, and C a class of outcomes of the other t − 1 rounds, all at most a.
For all disjoint classes and cells of x above a, δ(ε) ≥ Σ(P − e^ε·Q)₊, P = r(C)·p + E[Σdp/dr; C]·r of the cell, the sum
being over the other rounds; Q is the same of q, or, where the neighbour is absent, t·r(C)·r. Proof: dP/dR and dQ/dR are
the means over the rounds of dp/dr and dq/dr. Count only the outcomes with one x above a, and put both at their means
in every cell and class (Jensen): the t choices of the round have the same share.

Classes are those with the least of the other numbers in some interval: where it is small, the neighbour is likely.

Lemma greatest-profile: If pairs of measures have Σ(P − x·Q)₊ at most the profile h(x) of a pair, for all x > 0, so has
the pair whose Σ(P − x·Q)₊ is the largest of theirs, and the first dominates it, in every composition. What is missing
of P may have a Q-mass of 1. Proof: a composition with masses A and B of other releases is Σ A·f(x·B/A), f(x) = Σ(P −
x·Q)₊: it grows with f, and one release is exchanged after the other. A largest of convex functions is convex: its Q
has the slopes' differences as masses. With m missing, f ≤ 1 − m, so that f + (m − x)₊ is at most h(x) ≥ 1 − x.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, tidy
from privcheck.accounting.engine.bells import between, inverse, log_mixture
from privcheck.accounting.engine.convolution import convolve
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats
from privcheck.accounting.engine.replaced import invert_replaced

_FINE: Final = 12  # lattice points in a standard deviation of h
_STRETCH: Final = 16.0  # standard deviations of the sum, beyond which h grows as a logarithm only
_LINEAR: Final = float(1 << 13)  # … or so many points of the lattice
_LARGE: Final = 1 << 18  # values of the sum; …
_LARGEST: Final = 1 << 20  # … or of the most likely ones alone
_EXPONENTS: Final = ((0.0, 10.0, -12.0, 24.0, 45.0), (0.0, -12.0, 12.0))  # −ln of how likely sums are looked at
_NEXT: Final = 3.0  # standard deviations of a sum, at least, from one to the next
_OUTSIDE: Final = 32.0  # −ln of the mass that the window may leave out at either end
_ATOMS: Final = 4096
_FAR: Final = 9.0  # standard deviations
_FACTORS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_GRID: Final = 16  # sizes of a tilt
_STEEPEST: Final = 60.0  # ln by which a tilt may raise the mass of the largest outcome beside the least
_RATES: Final = (1.0, 0.5, 0.2, 0.05)  # of k/t, where single outcomes may outweigh the others …
_HEAVY: Final = 0.8  # … as they may from this shift on
_CUTS: Final = 12  # points a beyond which one number is alone
_HARDLY: Final = 1e-200  # probability that all others are below a
_CELLS: Final = 300
_CLASSES: Final = 24  # of the other numbers
_ALIKE: Final = 800  # parts left where ratios that are next to each other are merged
_SLACK: Final = 1e-8  # relative, of powers of masses of the normal distribution, and of their differences
_BINS: Final = 4096  # of a loss of Laplace or Gaussian noise
_STEEPER: Final = 1e-9  # relative, by which the next of some tangents is steeper
_ROUNDED: Final = 1e-12  # relative, of sums of masses

Parts = tuple[Floats, Floats]  # P rounded down and Q rounded up: δ(ε) ≥ Σ(P − e^ε·Q)₊


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Law of h in one round.

    Attributes:
        masses: (n,) masses of 0, 1, …, n − 1.
        off: Bound on their relative errors.
    """

    masses: Floats
    off: float


Triple = tuple[Outcomes, Outcomes, Outcomes]  # with the user, with the other or without, without either
_Sum = tuple[tuple[Outcomes, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianRound:
    """One round with Gaussian noise.

    Attributes:
        shift: s = Δ/std.
        replaced: Whether the user is replaced by another, or in one data set only.
    """

    shift: float
    replaced: bool

    @property
    def heavy(self) -> bool:
        """Whether single outcomes may outweigh all others."""
        return self.shift >= _HEAVY

    def outcomes(self, rate: float, rounds: int) -> Triple:
        """Law of h, the loss of a sample at that rate on a lattice.

        Args:
            rate: Of the sample.
            rounds: t.
        """
        shift, replaced = self.shift, self.replaced
        x = np.linspace(-_FAR - shift, _FAR + shift, 2001)
        losses = log_mixture(shift, rate, as_floats(x))
        if replaced:
            losses = as_floats(losses - log_mixture(shift, rate, as_floats(-x)))
        weights = np.exp(-x * x / 2)
        mean = float(weights @ losses) / float(weights.sum())
        step = math.sqrt(float(weights @ (losses - mean) ** 2) / float(weights.sum())) / _FINE
        linear = min(_STRETCH * _FINE * math.sqrt(rounds), _LINEAR) * step
        first, last = (_stretch(float(losses[i]), linear) / step for i in (0, -1))
        edges = _unstretch(as_floats((np.arange(math.ceil(first), math.floor(last) + 1) + 0.5) * step), linear)
        inside = invert_replaced(shift, rate, edges) if replaced else inverse(shift, rate, edges)
        inside = np.unique(inside[np.isfinite(inside)])
        ends, found = np.concatenate([[-np.inf], inside, [np.inf]]), list[Outcomes]()
        for centre in (shift, -shift if replaced else 0.0, 0.0):
            masses, off, _ = between(as_floats(ends), centre)
            found.append(Outcomes(masses=masses, off=float(np.max(off / np.maximum(masses, 1e-300)))))
        return found[0], found[1], found[2]

    def one_large(self, rounds: int, direction: Direction) -> list[Parts]:
        """Shares of δ of the outcomes with one large number, for several a [lemma allocation-one-large]."""
        from scipy.special import ndtr, ndtri

        s, others, found = self.shift, rounds - 1, list[Parts]()
        for a in np.linspace(0.0, s + 5.0, _CUTS).tolist():
            x = a + np.linspace(0, s + _FAR, _CELLS)
            tails = [as_floats(ndtr(centre - x)) for centre in (0.0, s, -s)]
            r, p, q = (np.append(tail[:-1] - tail[1:], tail[-1]) for tail in tails)
            # b falls; all others are between b and a with a share of the probability that they are below a
            whole = math.exp(others * math.log1p(-float(ndtr(-a)) * (1 + _SLACK)))
            if whole < _HARDLY:
                continue
            shares = np.linspace(0, 1, _CLASSES + 1)[1:-1] if self.replaced else np.zeros(0)
            b = np.append(np.minimum(ndtri(-np.expm1(np.log(shares * whole) / others)), a), -np.inf)
            inside = [ndtr(a - centre) - ndtr(b - centre) for centre in (0.0, s, -s)]
            log = np.log1p(-np.minimum(ndtr(-a) + ndtr(b), 1 - 1e-16))
            powers = [np.exp((others - i) * log) for i in range(2)]
            w, with_others, without_others = (
                np.diff(each, prepend=0.0)[:, np.newaxis]
                for each in (powers[0], others * inside[1] * powers[1], others * inside[2] * powers[1])
            )
            with_user = (w * p + with_others * r).ravel()
            without = (w * q + without_others * r if self.replaced else rounds * w * r).ravel()
            over, under = (with_user, without) if direction == "remove" else (without, with_user)
            found.append(_merge_alike(as_floats(over * (1 - _SLACK)), as_floats(under * (1 + _SLACK))))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRound:
    """One round of a mechanism that has two outputs with exactly known laws.

    Attributes:
        law: Law of its loss, with and without the user.
    """

    law: LaplaceLaw | AtomicLaw

    @property
    def heavy(self) -> bool:
        """Whether single outcomes may outweigh all others."""
        return self.law.largest("remove") >= 2 * _HEAVY

    def outcomes(self, rate: float, rounds: int) -> Triple:
        """Law of h, the loss of a sample at that rate on a lattice.

        Args:
            rate: Of the sample.
            rounds: t.
        """
        atoms = merged_laplace(self.law) if isinstance(self.law, LaplaceLaw) else self.law.atoms("remove")
        p, q = np.exp(atoms.logs), np.exp(atoms.logs - atoms.losses)
        h = np.logaddexp(math.log1p(-rate), math.log(rate) + atoms.losses)
        mean = float(q @ h) / float(q.sum())
        step = max(math.sqrt(float(q @ (h - mean) ** 2) / float(q.sum())), 1e-12) / _FINE
        linear = min(_STRETCH * _FINE * math.sqrt(rounds), _LINEAR) * step
        far = np.where(np.abs(h) > linear, np.sign(h) * linear * (1 + np.log(np.maximum(np.abs(h) / linear, 1.0))), h)
        place = np.rint(far / step).astype(np.int64)
        place -= int(place.min())
        span = float(np.max(np.abs(atoms.losses)))
        off = UNIT * (64 + len(p) + 8 * span + 8 * float(np.max(np.abs(atoms.logs))))
        with_user, without = (
            Outcomes(masses=as_floats(np.bincount(place, weights=masses)), off=off) for masses in (p, q)
        )
        return with_user, without, without

    def one_large(self, rounds: int, direction: Direction) -> list[Parts]:
        """None: losses are bounded or light."""
        return []


Round = GaussianRound | PairRound


def allocation_below(
    one: Round, rounds: int, participations: int, direction: Direction, known: Atoms | None = None
) -> Atoms:
    """Law of a pair that an epoch dominates: the greatest of those above.

    Args:
        one: A round.
        rounds: t.
        participations: k, from 1 to t − 1.
        direction: Of the two data sets.
        known: Loss of another such pair, which says as much as sums at small rates.
    """
    rate, laws = participations / rounds, list[Parts]()
    if known is not None:
        masses = np.exp(known.logs)
        laws.append((as_floats(masses), as_floats(np.exp(known.logs - known.losses))))
    for share in _RATES if one.heavy and known is None else _RATES[:1]:
        (p_low, p_high), (q_low, q_high) = _sums(one, rounds, participations, share * rate)
        laws.append(_merge(p_low, q_high) if direction == "remove" else _merge(q_low, p_high))
    if participations == 1 and one.heavy:
        laws += one.one_large(rounds, direction)
    return parts_atoms(*(greatest(laws) if len(laws) > 1 else laws[0]))


def parts_atoms(over: Floats, under: Floats) -> Atoms:
    """Loss of a pair of measures; what is missing of P has a Q-mass of 1 [lemma greatest-profile]."""
    kept = over > 1e-280
    masses = over[kept] * (1 - _ROUNDED)
    rest = max(1 - math.fsum(masses.tolist()), 1e-300)
    beside = np.maximum(under[kept], 1e-300) * (1 + _ROUNDED)  # what underflowed is less
    losses = np.append(np.log(masses) - np.log(beside), math.log(rest))
    losses -= 16 * UNIT * (1 + np.abs(losses))
    losses -= 4e-14 * float(np.max(np.abs(losses)))  # equal ones join at the upper
    return tidy(as_floats(losses), as_floats(np.log(np.append(masses, rest))))


def _merge(over: Floats, under: Floats) -> Parts:
    """Merge neighbouring values where there are very many."""
    sums = np.cumsum(over)
    levels = np.searchsorted(sums, np.linspace(0.0, float(sums[-1]), _ATOMS // 2))
    even = np.arange(0, len(over), math.ceil(2 * len(over) / _ATOMS))
    starts = np.unique(np.concatenate([[0], even, np.minimum(levels, len(over) - 1)]))
    merged, beside = np.add.reduceat(over, starts), np.add.reduceat(under, starts)
    return as_floats(merged * (1 - _ROUNDED)), as_floats(beside * (1 + _ROUNDED))


def _merge_alike(over: Floats, under: Floats) -> Parts:
    """Merge parts of about one ratio."""
    kept = (over > 1e-290) & (under > 1e-290)
    over, under = over[kept], under[kept]
    if len(over) <= _ALIKE:
        return over, under
    losses = np.log(over) - np.log(under)
    order = np.argsort(losses)
    losses = losses[order]
    starts = np.unique(np.searchsorted(losses, np.linspace(losses[0], losses[-1], _ALIKE + 1)[:-1]))
    merged, beside = np.add.reduceat(over[order], starts), np.add.reduceat(under[order], starts)
    return as_floats(merged * (1 - _ROUNDED)), as_floats(beside * (1 + _ROUNDED))


def greatest(laws: list[Parts]) -> Parts:
    """Pair of measures with about the largest profile of several [lemma greatest-profile].

    At every x the tangent of the law that is largest there: the largest of all these tangents is below the largest law.
    """
    known = []
    for over, under in laws:
        kept = (over > 1e-290) & (under > 1e-290)
        p, q = over[kept], under[kept]
        order = np.argsort(p / q)
        known.append((p[order], q[order], (p / q)[order]))
    x = np.unique(np.concatenate([ratios for _, _, ratios in known]))
    if not len(x):
        return np.zeros(1), np.ones(1)
    x = x[:: math.ceil(len(x) / _ATOMS)]
    most, above_p, above_q = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
    for p, q, ratios in known:
        index = np.searchsorted(ratios, x, side="right")
        its_p = np.append(np.cumsum(p[::-1])[::-1], 0.0)[index] * (1 - _ROUNDED)
        its_q = np.append(np.cumsum(q[::-1])[::-1], 0.0)[index] * (1 + _ROUNDED)
        its = its_p - x * its_q
        better = its > most
        most, above_p, above_q = (np.where(better, *each) for each in ((its, most), (its_p, above_p), (its_q, above_q)))
    # from the largest x down the tangents are steeper; their differences are the masses
    above_p, above_q = above_p[::-1], above_q[::-1]
    steeper = np.flatnonzero(above_q > np.append(0.0, np.maximum.accumulate(above_q)[:-1]) * (1 + _STEEPER))
    over, under = (np.diff(each[steeper], prepend=0.0) for each in (above_p, above_q))
    return as_floats(over[over > 0]), as_floats(under[over > 0])


def merged_laplace(law: LaplaceLaw) -> Atoms:
    """Laplace loss with neighbouring outcomes merged: what it dominates [lemma merged-outcomes]."""
    edges = law.step * np.linspace(-1, 1, _BINS + 1)
    width = np.diff(edges)
    p = 0.5 * np.exp((edges[1:] - law.step) / 2) * -np.expm1(-width / 2)
    q = 0.5 * np.exp((-edges[:-1] - law.step) / 2) * -np.expm1(-width / 2)
    ends = as_floats([-law.step, law.step]), np.log(0.5) + as_floats([-law.step, 0.0])
    return tidy(as_floats(np.append(np.log(p / q), ends[0])), as_floats(np.append(np.log(p), ends[1])))


def merged_gaussian(mu: float) -> tuple[Floats, Floats]:
    """Losses of N(μ, 1) against N(0, 1) with neighbouring outcomes merged, and their masses [lemma merged-outcomes].

    Both are rounded down; the least likely outcomes are left out.
    """
    from scipy.special import log_ndtr

    x = as_floats(np.linspace(-_FAR, mu + _FAR, _BINS + 1))
    p, off, _ = between(x, mu)
    masses = np.maximum(p - off, 0.0)
    above = log_ndtr(-x)
    logs = above[:-1] + np.log(-np.expm1(np.diff(above)))  # of N(0, 1), where x is not far below 0
    kept = masses > 0
    losses = np.log(masses[kept]) - logs[kept]
    return as_floats(losses - 1e-11 * (1 + np.abs(losses))), as_floats(masses[kept])


@functools.lru_cache(maxsize=16)
def _sums(one: Round, rounds: int, participations: int, rate: float) -> tuple[Parts, Parts]:
    """Lower and upper bounds on the masses of Σh at consecutive values, with the user and for the neighbour."""
    nothing = (np.zeros(1), np.ones(1))
    if _STRETCH * _FINE * math.sqrt(rounds) > _LARGEST:  # more values than are looked at
        return nothing, nothing
    with_user, with_other, without = one.outcomes(rate, rounds)
    k, rest = participations, rounds - participations
    pair: tuple[_Sum, _Sum] = (((with_user, k), (without, rest)), ((with_other, k), (without, rest)))
    wanted = _tilts(pair)
    kept, low, high = [list[float](), list[float]()], math.inf, -math.inf
    for both in wanted:
        ends = [_ends(parts, tilt) for parts, tilt in zip(pair, both, strict=True)]
        first, last = min(low, *(end[0] for end in ends)), max(high, *(end[1] for end in ends))
        if last - first < (_LARGEST if low > high else _LARGE) - 2:
            low, high = first, last
            for tilts, tilt in zip(kept, both, strict=True):
                tilts.append(tilt)
    if not (kept[0] and kept[1]):  # what is known of the window says nothing
        return nothing, nothing
    size = 1 << max(4, math.ceil(math.log2(high - low + 2)))
    found = []
    for parts, tilts in zip(pair, kept, strict=True):
        bounds = [_bounds(parts, tilt, int(low), size) for tilt in sorted(set(tilts))]
        least, most = (np.stack(each) for each in zip(*bounds, strict=True))
        found.append((as_floats(least.max(axis=0)), as_floats(most.min(axis=0))))
    return found[0], found[1]


def _stretch(loss: float, linear: float) -> float:
    """The loss, compressed beyond ± `linear`: a rare large one need not be known to many digits."""
    return loss if abs(loss) <= linear else math.copysign(linear * (1 + math.log(abs(loss) / linear)), loss)


def _unstretch(values: Floats, linear: float) -> Floats:
    with np.errstate(over="ignore"):
        grown = linear * np.exp(np.minimum(np.abs(values) / linear - 1, 600.0))
    return as_floats(np.where(np.abs(values) <= linear, values, np.sign(values) * grown))


def _tilted(law: Outcomes, tilt: float) -> tuple[Floats, float]:
    """Tilted masses, and ln of the factor that they were normed by."""
    exponents = np.log(np.maximum(law.masses, 1e-300)) + tilt * np.arange(len(law.masses))
    top = float(exponents.max())
    masses = np.exp(exponents - top)
    total = float(masses.sum())
    return as_floats(masses / total), top + math.log(total)


def _tilts(pair: tuple[_Sum, _Sum]) -> list[tuple[float, float]]:
    """Tilts of both sums with about the same means, the most likely ones first."""
    means, exponents = list[Floats](), list[Floats]()
    size = max(len(law.masses) for parts in pair for law, _ in parts)
    half = np.geomspace(1e-4, 1.0, _GRID) * (_STEEPEST / size)
    thetas = as_floats(np.concatenate([-half[::-1], [0.0], half]))
    for parts in pair:
        mean, log = np.zeros(len(thetas)), np.zeros(len(thetas))
        for law, count in parts:
            points = np.arange(len(law.masses))
            weights = np.multiply.outer(thetas, points) + np.log(np.maximum(law.masses, 1e-300))
            top = weights.max(axis=1)
            weights = np.exp(weights - top[:, np.newaxis])
            total = weights.sum(axis=1)
            mean += count * (weights @ points) / total
            log += count * (top + np.log(total))
        means.append(as_floats(mean))
        exponents.append(as_floats(np.maximum(thetas * mean - log, 0.0) * np.sign(thetas)))
    found = list[tuple[float, float]]()
    places = list[tuple[float, float]]()
    for i, wanted in enumerate(_EXPONENTS):
        for exponent in wanted:
            place = float(np.interp(exponent, exponents[i], means[i]))
            both = [float(np.interp(place, mean, thetas)) for mean in means]
            std = math.sqrt(max(min(_moments(parts, tilt)[1] for parts, tilt in zip(pair, both, strict=True)), 1e-9))
            if all(abs(place - other) > _NEXT * min(std, its) for other, its in places):
                places.append((place, std))
                found.append((both[0], both[1]))
    return found


def _moments(parts: _Sum, tilt: float) -> tuple[float, float]:
    """Mean and variance of the tilted sum."""
    mean = variance = 0.0
    for law, count in parts:
        masses, points = _tilted(law, tilt)[0], np.arange(len(law.masses))
        own = float(masses @ points)
        mean, variance = mean + count * own, variance + count * float(masses @ (points - own) ** 2)
    return mean, variance


def _ends(parts: _Sum, tilt: float) -> tuple[int, int]:
    """Interval that the tilted sum leaves with a probability of at most e^−32 at either end (Chernoff)."""
    mean, variance = _moments(parts, tilt)
    widths = []
    for sign in (-1, 1):
        best = math.inf
        for factor in _FACTORS:
            eta, total = factor * math.sqrt(2 * _OUTSIDE / max(variance, 1e-9)), 0.0
            for law, count in parts:
                masses, points = _tilted(law, tilt)[0], sign * np.arange(len(law.masses))
                top = float(max(points[0], points[-1]))
                total += count * (math.log(float(masses @ np.exp(eta * (points - top))) + 1e-300) + eta * top)
            best = min(best, (_OUTSIDE + total - sign * eta * mean) / eta * (1 + 1e-9))
        widths.append(best)
    most = sum(count * (len(law.masses) - 1) for law, count in parts)
    return max(0, math.floor(mean - widths[0]) - 2), min(most, math.ceil(mean + widths[1]) + 2)


def _bounds(parts: _Sum, tilt: float, low: int, size: int) -> tuple[Floats, Floats]:
    """Lower and upper bounds on the masses of the sum at low, low + 1, …, from one transform."""
    laws, scale, off = list[tuple[Floats, int]](), 0.0, 0.0
    for law, count in parts:
        masses, log = _tilted(law, tilt)
        points = np.arange(len(masses))
        laws.append((as_floats(np.bincount(points % size, weights=masses, minlength=size)), count))
        scale += count * log
        off += count * (law.off + UNIT * (8 * abs(tilt) * len(masses) + 8 * abs(log) + 6000 + len(masses)))
    masses, floor = convolve(laws, size)
    masses, floor = np.roll(masses, -(low % size)), floor + 3 * math.exp(-_OUTSIDE)
    exponents = scale - tilt * (low + np.arange(size))
    off += 8 * UNIT * (abs(scale) + abs(tilt) * (low + size)) + 1e-12
    with np.errstate(under="ignore", over="ignore"):
        least = np.maximum(masses - floor, 0.0) * np.exp(np.minimum(exponents - off, 700.0))
        most = (masses + floor) * np.exp(np.minimum(exponents + off, 700.0))
    return as_floats(np.minimum(least, 1.0)), as_floats(np.minimum(most, 1.0))
