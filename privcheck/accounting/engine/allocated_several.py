"""Random allocation with several participations: k of t rounds, all choices equally likely.

Lemma allocation-blocks: For k > 1 of t rounds, k epochs of ⌊t/k⌋ rounds, or one more, are an upper bound. Source:
Feldman & Shenfeld 2025. Proof: cut the t rounds at random into k blocks of ⌊t/k⌋ or one more, and draw one round of
each: these are k of the t rounds, all subsets being equally likely, and to know the blocks only helps an attacker
(hockey-sticks are jointly convex).

Lemma allocation-statistic: With h a function of one round's outcome with whole values, the law of Σh over the t rounds,
the convolution of k of h under P and t − k of h without the user, and that for the neighbour, are a pair that the epoch
dominates. Proof: data processing, and the t outcomes are independent given the k rounds; all choices of these give Σh
the same law.

h is a Poisson sample's loss at the rate k/t, on a lattice. Its masses follow from two transforms for every one of some
tilts, with the bounds of `convolution`; every value of Σh has the best of them: P rounded down and Q up. What is
missing of P joins one value with a Q-mass of 1.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, tidy
from privcheck.accounting.engine.bells import inverse, log_mixture
from privcheck.accounting.engine.convolution import convolve
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats, repeat_on_one_draw, root_up
from privcheck.accounting.engine.replaced import invert_replaced
from privcheck.accounting.engine.subsampled import Base, base_atoms, largest_loss

_FINE: Final = 8  # lattice points in a standard deviation of h
_STRETCH: Final = 16.0  # standard deviations of the sum, beyond which h grows as a logarithm only
_LARGEST: Final = 1 << 20
_TILTS: Final = (-6.0, -3.0, 0.0, 3.0, 6.0)  # in standard deviations of the sum
_OUTSIDE: Final = 32.0  # −ln of the mass that the window may leave out at either end
_ATOMS: Final = 4096
_TAIL: Final = 1e-13  # relative error of the normal distribution's values
_FAR: Final = 9.0  # standard deviations
_FACTORS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_STEEPEST: Final = 20.0  # ln by which a tilt may raise the mass of the largest outcome beside the least


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Outcomes:
    """Law of h in one round.

    Attributes:
        masses: (n,) masses of 0, 1, …, n − 1.
        off: Bound on their relative errors.
    """

    masses: Floats
    off: float


_Parts = tuple[tuple[_Outcomes, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch with Gaussian noise, in some rounds of which the user takes part.

    Attributes:
        shift: s = Δ/std of one round.
        rounds: t.
        participations: k, from 2 to t − 1.
        replaced: Whether the user is replaced by another, or in one data set only.
        blocks: Laws of the blocks of rounds, with their counts.
    """

    shift: float
    rounds: int
    participations: int
    replaced: bool
    blocks: Base


def several_allocation_law(epoch: Epoch) -> AtomicLaw:
    """Law that dominates one epoch."""
    return AtomicLaw(
        build=_blocks,
        arguments=(epoch,),
        bound=largest_loss(epoch.blocks),
        symmetric=epoch.replaced,
        rounded=True,
        repeat=_repeat,
        below=_statistic,
    )


def _repeat(times: int, epoch: Epoch) -> AtomicLaw:
    """Law of n releases in the drawn rounds: one of √n times the sensitivity."""
    blocks = repeat_on_one_draw(epoch.blocks, times)
    return several_allocation_law(replace(epoch, shift=epoch.shift * root_up(times), blocks=blocks))


def _blocks(epoch: Epoch, direction: Direction) -> Atoms:
    return base_atoms(epoch.blocks, direction)


def _statistic(epoch: Epoch, direction: Direction) -> Atoms:
    (p_low, p_high), (q_low, q_high) = _sums(epoch)
    over, under = (p_low, q_high) if direction == "remove" else (q_low, p_high)
    # neighbouring values are merged where there are very many
    sums = np.cumsum(over)
    levels = np.searchsorted(sums, np.linspace(0.0, float(sums[-1]), _ATOMS // 2))
    even = np.arange(0, len(over), math.ceil(2 * len(over) / _ATOMS))
    starts = np.unique(np.concatenate([[0], even, np.minimum(levels, len(over) - 1)]))
    over, under = np.add.reduceat(over, starts), np.add.reduceat(under, starts) * (1 + 1e-12)
    kept = over > 1e-280
    masses = over[kept] * (1 - 1e-12)
    rest = max(1 - math.fsum(masses.tolist()), 1e-300)
    losses = np.append(np.log(masses) - np.log(under[kept]), math.log(rest))
    losses -= 16 * UNIT * (1 + np.abs(losses))
    losses -= 4e-14 * float(np.max(np.abs(losses)))  # equal ones join at the upper
    return tidy(as_floats(losses), as_floats(np.log(np.append(masses, rest))))


@functools.lru_cache(maxsize=16)
def _sums(epoch: Epoch) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Lower and upper bounds on the masses of Σh at consecutive values, with the user and for the neighbour."""
    with_user, with_other, without = _outcomes(epoch)
    k, rest = epoch.participations, epoch.rounds - epoch.participations
    pair: tuple[_Parts, _Parts] = (((with_user, k), (without, rest)), ((with_other, k), (without, rest)))
    std = math.sqrt(max(_moments(pair[1], 0.0)[1], 1e-9))
    steepest = _STEEPEST / len(without.masses)
    tilts = [math.copysign(min(abs(tilt) / std, steepest), tilt) for tilt in _TILTS]
    while True:
        ends = [_ends(parts, tilt) for parts in pair for tilt in tilts]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        size = 1 << max(4, math.ceil(math.log2(high - low + 2)))
        if size <= _LARGEST or len(tilts) == 1:
            break
        tilts = tilts[1:-1]
    found = []
    for parts in pair:
        bounds = [_bounds(parts, tilt, low, min(size, _LARGEST)) for tilt in tilts]
        least, most = (np.stack(each) for each in zip(*bounds, strict=True))
        found.append((as_floats(least.max(axis=0)), as_floats(most.min(axis=0))))
    if size > _LARGEST:  # what is known of the window says nothing
        nothing = (np.zeros(1), np.ones(1))
        return nothing, nothing
    return found[0], found[1]


def _outcomes(epoch: Epoch) -> tuple[_Outcomes, _Outcomes, _Outcomes]:
    """Law of h with the user, with the other or without, and without either: the loss of a sample, on a lattice."""
    from scipy.special import ndtr

    shift, replaced, rate = epoch.shift, epoch.replaced, epoch.participations / epoch.rounds
    x = np.linspace(-_FAR - shift, _FAR + shift, 2001)
    losses = log_mixture(shift, rate, as_floats(x))
    if replaced:
        losses = as_floats(losses - log_mixture(shift, rate, as_floats(-x)))
    weights = np.exp(-x * x / 2)
    mean = float(weights @ losses) / float(weights.sum())
    step = math.sqrt(float(weights @ (losses - mean) ** 2) / float(weights.sum())) / _FINE
    linear = _STRETCH * _FINE * math.sqrt(epoch.rounds) * step
    first, last = (_stretch(float(losses[i]), linear) / step for i in (0, -1))
    edges = _unstretch(as_floats((np.arange(math.ceil(first), math.floor(last) + 1) + 0.5) * step), linear)
    inside = invert_replaced(shift, rate, edges) if replaced else inverse(shift, rate, edges)
    inside = np.unique(inside[np.isfinite(inside)])
    ends, found = np.concatenate([[-np.inf], inside, [np.inf]]), list[_Outcomes]()
    for centre in (shift, -shift if replaced else 0.0, 0.0):
        y = ends - centre
        tails = ndtr(-np.abs(y))
        masses = np.where(y[:-1] > 0, tails[:-1] - tails[1:], tails[1:] - tails[:-1])
        masses = np.where((y[:-1] <= 0) & (y[1:] > 0), 1 - tails[:-1] - tails[1:], masses)
        off = _TAIL * float(np.max(np.maximum(tails[:-1], tails[1:]) / np.maximum(masses, 1e-300)))
        found.append(_Outcomes(masses=as_floats(masses), off=off))
    return found[0], found[1], found[2]


def _stretch(loss: float, linear: float) -> float:
    """The loss, compressed beyond ± `linear`: a rare large one need not be known to many digits."""
    return loss if abs(loss) <= linear else math.copysign(linear * (1 + math.log(abs(loss) / linear)), loss)


def _unstretch(values: Floats, linear: float) -> Floats:
    with np.errstate(over="ignore"):
        grown = linear * np.exp(np.minimum(np.abs(values) / linear - 1, 600.0))
    return as_floats(np.where(np.abs(values) <= linear, values, np.sign(values) * grown))


def _tilted(law: _Outcomes, tilt: float) -> tuple[Floats, float]:
    """Tilted masses, and ln of the factor that they were normed by."""
    exponents = np.log(np.maximum(law.masses, 1e-300)) + tilt * np.arange(len(law.masses))
    top = float(exponents.max())
    masses = np.exp(exponents - top)
    total = float(masses.sum())
    return as_floats(masses / total), top + math.log(total)


def _moments(parts: _Parts, tilt: float) -> tuple[float, float]:
    """Mean and variance of the tilted sum."""
    mean = variance = 0.0
    for law, count in parts:
        masses, points = _tilted(law, tilt)[0], np.arange(len(law.masses))
        own = float(masses @ points)
        mean, variance = mean + count * own, variance + count * float(masses @ (points - own) ** 2)
    return mean, variance


def _ends(parts: _Parts, tilt: float) -> tuple[int, int]:
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


def _bounds(parts: _Parts, tilt: float, low: int, size: int) -> tuple[Floats, Floats]:
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
