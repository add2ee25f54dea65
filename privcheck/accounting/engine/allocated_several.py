"""Random allocation with several participations: k of t rounds, all choices equally likely.

Lemma allocation-blocks: For k > 1 of t rounds, k epochs of ⌊t/k⌋ rounds, or one more, are an upper bound. Source:
Feldman & Shenfeld 2025. Proof: cut the t rounds at random into k blocks of ⌊t/k⌋ or one more, and draw one round of
each: these are k of the t rounds, all subsets being equally likely, and to know the blocks only helps an attacker
(hockey-sticks are jointly convex).

Where the noise is small the blocks leak more than the epoch does: a Poisson sample is nearer to it.

Lemma allocation-count: Let Y be the rounds' likelihood ratios, r a rate, p = rY/(1 − r + rY), V = Σp(1 − p), and M(V) =
e^{−V}I₀(V). The likelihood ratio of k of t rounds is at most Π(1 − r + rY)·M(V)/P(Bin(t, r) = k). Proof: given its
number K of rounds, a Poisson sample at rate r is uniform; so the epoch is the sample given K = k, and by Bayes its
ratio is Π(1 − r + rY)·P(K = k | Y)/P(K = k). Given Y, K is a sum of independent indicators, with a characteristic
function of size Π√(1 − 4p(1 − p)sin²(θ/2)) ≤ e^{−2V·sin²(θ/2)}, whose mean over θ bounds P(K = k | Y); it is M(V).

Lemma allocation-chord: ln M is convex (a mean of exponentials: Hölder), so that with its chord α − bV between V₁ and V₂
δ(ε) of "remove" is at most E(U − e^ε)₊ + P(V < V₁) + P(V > V₂) + P(some x > a), U = Π1{x ≤ a}(1 − r + rY)e^{−bp(1 −
p)}·e^α/P(Bin(t, r) = k), P of k rounds with the user and t − k without. U is a product: E(U − e^ε)₊ is convex in each
factor, and grows if the mass of a cell is split over two points of a grid on both sides of its factors, with their mean
kept. Proof: of δ(ε) = E(dP/dQ − e^ε)₊ the outcomes outside count whole.

r is such that Σp is about k where the loss is about ε: there P(K = k | Y) is near M(V).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.engine.allocated_below import GaussianRound, PairRound, allocation_below
from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.bells import inverse, log_mixture, slope
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.excesses import OnGrid, Summed, add_up
from privcheck.accounting.engine.laws import Direction, Floats, as_floats, repeat_on_one_draw, root_up
from privcheck.accounting.engine.profiles import (
    Content,
    Point,
    convex_profile,
    exponential_up,
    mirror,
    profile_atoms,
    profile_content,
)
from privcheck.accounting.engine.subsampled import Base, base_atoms, largest_loss

_SMALL: Final = 0.02  # k/t·(e^{s²} − 1), up to which blocks are within a percent
_FEWEST: Final = 4  # participations, below which they are as well
_MOST: Final = 10**6  # rounds
_FINE: Final = 16  # grid points in a standard deviation of a factor's logarithm
_PARTS: Final = 12  # cells between neighbouring grid points
_BEFORE, _BEYOND = -4.5, 9.0  # standard deviations of the loss, in which the bound is looked at, …
_APART: Final = 0.5  # … with a rate for every half of one …
_EACH: Final = 4  # … and so many points
_LEAST_TILT: Final = 0.1
_UNLIKELY: Final = 9.0  # −ln of the share of δ that lies outside V₁ and V₂
_FURTHEST: Final = 700.0  # −ln of a δ
_TAIL: Final = 1e-13  # relative error of the normal distribution's values
_SLACK: Final = 1e-9  # relative, of a sum of t logarithms
_SEEN: Final = 600  # points of the blocks' curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch, in some rounds of which the user takes part.

    Attributes:
        one: A round.
        rounds: t.
        participations: k, from 2 to t − 1.
        blocks: Laws of the blocks of rounds, with their counts.
    """

    one: GaussianRound | PairRound
    rounds: int
    participations: int
    blocks: Base


def several_allocation_law(epoch: Epoch) -> AtomicLaw:
    """Law that dominates one epoch."""
    gaussian = isinstance(epoch.one, GaussianRound)
    return AtomicLaw(
        build=_several,
        arguments=(epoch,),
        bound=largest_loss(epoch.blocks),
        symmetric=isinstance(epoch.one, GaussianRound) and epoch.one.replaced,
        rounded=True,
        repeat=_repeat if gaussian else _repeat_blocks,
        below=_several_below,
    )


def _repeat(times: int, epoch: Epoch) -> AtomicLaw:
    """Law of n releases in the drawn rounds: one of √n times the sensitivity."""
    assert isinstance(epoch.one, GaussianRound)
    one = replace(epoch.one, shift=epoch.one.shift * root_up(times))
    return several_allocation_law(replace(epoch, one=one, blocks=repeat_on_one_draw(epoch.blocks, times)))


def _repeat_blocks(times: int, epoch: Epoch) -> AtomicLaw:
    """Law of n releases in the drawn rounds, of which only the blocks are known."""
    blocks = repeat_on_one_draw(epoch.blocks, times)
    return AtomicLaw(build=_blocks, arguments=(blocks,), bound=largest_loss(blocks), symmetric=False, rounded=True)


def _blocks(blocks: Base, direction: Direction) -> Atoms:
    return base_atoms(blocks, direction)


def _several_below(epoch: Epoch, direction: Direction) -> Atoms:
    return allocation_below(epoch.one, epoch.rounds, epoch.participations, direction)


def _several(epoch: Epoch, direction: Direction) -> Atoms:
    one, t, k = epoch.one, epoch.rounds, epoch.participations
    if not isinstance(one, GaussianRound) or one.replaced or not _FEWEST <= k <= t - 2 or t > _MOST:
        return base_atoms(epoch.blocks, direction)
    if k / t * math.expm1(min(one.shift**2, 600.0)) <= _SMALL:
        return base_atoms(epoch.blocks, direction)
    return profile_atoms(_profile(epoch), direction)


@functools.lru_cache(maxsize=16)
def _profile(epoch: Epoch) -> Content:
    """Knots of an upper bound on the profile of "remove": blocks, and below them a sample's."""
    assert isinstance(epoch.one, GaussianRound)
    points = list[Point]()
    for direction in ("remove", "add"):
        atoms = base_atoms(epoch.blocks, direction)
        masses = np.exp(atoms.logs)
        mean = float(masses @ atoms.losses)
        std = math.sqrt(max(float(masses @ (atoms.losses - mean) ** 2), 1e-300))
        last = float(atoms.losses[-1])
        near = np.linspace(0.0, max(mean, 0.0) + _BEYOND * std, _SEEN)
        beyond = np.geomspace(near[-1], max(last, 2 * near[-1]), _SEEN // 6)
        losses = as_floats(np.concatenate([near, beyond[1:]]))
        logs = atoms.log_deltas(losses)
        its = [
            (exponential_up(loss), Fraction(max(math.exp(log), 1e-300)) * (1 + Fraction(1, 1 << 50)))
            for loss, log in zip(losses.tolist(), logs.tolist(), strict=True)
        ]
        points += its if direction == "remove" else mirror(its)
        if direction == "remove":
            points += _counted(epoch.one.shift, epoch.rounds, epoch.participations, atoms, std)
    return profile_content(convex_profile(points))


def _counted(s: float, t: int, k: int, blocks: Atoms, std: float) -> Iterator[Point]:
    """Points of the bound by a sample's ratio [lemma allocation-count], where the loss is above 0."""
    tilts = [max(_LEAST_TILT, 1 + z / std) for z in np.arange(_BEFORE, _BEYOND, _APART).tolist()]
    known = [_Counted(shift=s, rounds=t, participations=k, rate=_rate(s, t, k, tilt), tilt=tilt) for tilt in sorted(set(tilts))]
    at = [one.loss for one in known]
    for i, one in enumerate(known):
        low, high = at[max(i - 1, 0)], at[min(i + 1, len(at) - 1)]
        losses = as_floats(np.linspace((low + at[i]) / 2, (high + at[i]) / 2, _EACH + 1)[:-1])
        losses = as_floats(losses[losses > 0])
        if not len(losses):
            continue
        log = float(blocks.log_deltas(losses[-1:])[0])
        if log < -_FURTHEST:
            break
        for loss, bound in zip(losses.tolist(), one.bounds(losses, _UNLIKELY - log), strict=True):
            if bound < 1:
                yield exponential_up(loss), Fraction(bound)


def _tilted(s: float, rate: float, tilt: float) -> tuple[float, float, float]:
    """About the means of ln(1 − r + rY) and of p, and the standard deviation of the former, under (1 − r + rY)^tilt."""
    x = as_floats(np.linspace(-9.0, (1 + max(tilt, 1.0)) * s + 9.0, 2001))
    h = log_mixture(s, rate, x)
    weights = np.exp(tilt * h - x * x / 2 - float((tilt * h - x * x / 2).max()))
    weights /= float(weights.sum())
    mean = float(weights @ h)
    return mean, float(weights @ slope(s, rate, x)), math.sqrt(float(weights @ (h - mean) ** 2))


def _rate(s: float, t: int, k: int, tilt: float) -> float:
    """Rate at which the mean of Σp is about k, under the likelihood ratio to the power `tilt`."""
    low, high = k / t * 1e-3, (1 + k / t) / 2
    for _ in range(20):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if t * _tilted(s, middle, tilt)[1] > k else (middle, high)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Bound on δ by a Poisson sample's likelihood ratio, and by the size of its sample given the outcomes.

    Attributes:
        shift: s = Δ/std.
        rounds: t.
        participations: k.
        rate: r.
        tilt: Power of the likelihood ratio, which says where the bound is looked at.
    """

    shift: float
    rounds: int
    participations: int
    rate: float
    tilt: float

    @property
    def log_probability(self) -> float:
        """ln P(Bin(t, r) = k), rounded down."""
        t, k, r = self.rounds, self.participations, self.rate
        terms = [math.lgamma(t + 1), -math.lgamma(k + 1), -math.lgamma(t - k + 1)]
        terms += [k * math.log(r), (t - k) * math.log1p(-r)]
        return math.fsum(terms) - 1e-14 * math.fsum(abs(term) for term in terms) - 1e-13

    @property
    def loss(self) -> float:
        """Loss that is about the mean of the tilted law."""
        t, k, r = self.rounds, self.participations, self.rate
        mean, _, _ = _tilted(self.shift, r, self.tilt)
        return t * mean - self.log_probability - math.log(2 * math.pi * k * (1 - k / t)) / 2

    def bounds(self, losses: Floats, unlikely: float) -> list[float]:
        """Upper bounds on δ at (m,) losses.

        Args:
            losses: (m,) ε.
            unlikely: −ln of the probability of the outcomes that count whole.
        """
        from scipy.special import ive, ndtr

        s, t, k, r = self.shift, self.rounds, self.participations, self.rate
        step = _tilted(s, r, max(self.tilt, 1.0))[2] / _FINE
        part, end = step / _PARTS, s + math.sqrt(2 * unlikely + 2 * math.log(t)) + 1
        least, most = math.log1p(-r), float(log_mixture(s, r, as_floats([end]))[0])
        edges = as_floats(np.arange(math.floor(least / part) + 1, math.ceil(most / part) + 1) * part)
        x = inverse(s, r, edges)
        edges, x = edges[np.isfinite(x)], x[np.isfinite(x)]
        ends, factors = np.append(-np.inf, x), np.append(least, edges)
        (q, q_off), (p, p_off) = (_cells(as_floats(ends), centre) for centre in (0.0, s))
        beyond = (float(ndtr(-x[-1])), float(ndtr(s - x[-1])))
        share = np.append(0.0, slope(s, r, x))
        varied = share * (1 - share)
        lows = np.minimum(varied[:-1], varied[1:]) * (1 - 1e-9)
        highs = np.where((share[:-1] < 0.5) & (share[1:] > 0.5), 0.25, np.maximum(varied[:-1], varied[1:]) * (1 + 1e-9))
        laws = ((p + p_off, beyond[1], k), (q + q_off, beyond[0], t - k))
        low, high = _between(laws, as_floats(lows), as_floats(highs), unlikely)
        if not low < high:
            return [1.0] * len(losses)
        logs = [math.log(float(ive(0, v))) for v in (low, high)]
        b = (logs[0] - logs[1]) / (high - low)
        alpha = max(logs[0] + b * low, logs[1] + b * high) + 1e-11
        constant = alpha - self.log_probability
        # a cell's mass under Q, and its mean factor times that
        damped = np.exp(-b * lows)
        raised, raised_off = ((1 - r) * q + r * p) * damped, (1 - r) * q_off + r * p_off
        first = np.floor((factors[:-1] - b * lows) / step - 1e-6).astype(np.int64)
        last = np.maximum(np.ceil((factors[1:] - b * lows) / step + 1e-6).astype(np.int64), first + 1)
        with np.errstate(over="ignore"):
            under, over = np.exp(first * step), np.exp(last * step)
            off = (raised_off + q_off * under + 1e-14 * (raised + q * under)) / (over - under)
            up = np.clip((raised - q * under) / (over - under), 0.0, q)
        start = int(first.min())
        masses = np.bincount(first - start, weights=q - up + q_off + 1e-15 * q)
        above = np.bincount(last - start, weights=up + off)
        masses = np.pad(masses, (0, len(above) - len(masses))) + above
        grid = OnGrid(first=start * step, step=step, masses=as_floats(masses))
        summed = add_up(grid, t, max(self.tilt, 1.0) * step)
        lost = 2 * math.exp(-unlikely) + k * beyond[1] + (t - k) * beyond[0]
        if summed is None:
            return [1.0] * len(losses)
        return [min(1.0, _exceeded(summed, constant, loss) + lost * (1 + 1e-9)) for loss in losses.tolist()]


def _exceeded(summed: Summed, constant: float, loss: float) -> float:
    """Bound on E(e^{ΣV + constant} − e^ε)₊."""
    log = loss + summed.log_exponential_excess(loss - constant)
    return math.exp(min(log + _SLACK * (1 + abs(loss) * 1e-3), 1.0))


def _cells(ends: Floats, centre: float) -> tuple[Floats, Floats]:
    """Masses of N(m, 1) between points, and bounds on their errors."""
    from scipy.special import ndtr

    y = ends - centre
    tails = ndtr(-np.abs(y))
    masses = np.where(y[:-1] > 0, tails[:-1] - tails[1:], tails[1:] - tails[:-1])
    masses = np.where((y[:-1] <= 0) & (y[1:] > 0), 1 - tails[:-1] - tails[1:], masses)
    return as_floats(np.maximum(masses, 0.0)), as_floats(_TAIL * np.maximum(tails[:-1], tails[1:]))


def _between(
    laws: tuple[tuple[Floats, float, int], ...], lows: Floats, highs: Floats, unlikely: float
) -> tuple[float, float]:
    """V₁ and V₂, each of which V is beyond with a probability of at most e^−unlikely (Chernoff).

    Args:
        laws: Masses of the cells, the mass beyond them, and the number of rounds with this law.
        lows: Lower bounds on p(1 − p) in the cells.
        highs: Upper bounds.
        unlikely: −ln of the probability.
    """
    total = sum(count for *_, count in laws)
    low, high = 1e-6, total / 4
    etas = np.geomspace(1e-2, 1e2, 40)
    below, above = (np.exp(np.multiply.outer(etas, values)) for values in (-lows, highs))
    logs_below, logs_above = np.zeros(len(etas)), np.zeros(len(etas))
    for masses, beyond, count in laws:
        logs_below += count * np.log(below @ masses + beyond)
        logs_above += count * np.log(above @ masses + beyond * np.exp(etas / 4))
    slack = 1e-12 * total
    low = max(low, float(np.max(-(logs_below + unlikely + slack) / etas)))
    high = min(high, float(np.min((logs_above + unlikely + slack) / etas)))
    return low, high
