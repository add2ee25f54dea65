"""Random allocation with several participations: k of t rounds, all choices equally likely.

Lemma allocation-blocks: For k > 1 of t rounds, k epochs of ⌊t/k⌋ rounds, or one more, are an upper bound. Source:
Feldman & Shenfeld 2025. Proof: cut the t rounds at random into k blocks of ⌊t/k⌋ or one more, and draw one round of
each: these are k of the t rounds, all subsets being equally likely, and to know the blocks only helps an attacker
(hockey-sticks are jointly convex).

Lemma allocation-complement: With Gaussian noise k > t/2 of t rounds cost exactly what t − k random rounds and 2k − t
known ones cost together. Proof: turn the t numbers so that one of them is their sum over √t. Every choice moves it by
ks/√t, so that it is a Gaussian mechanism beside the others, which a choice A moves by s(1_A − k/t): minus what its
complement moves them by. So with the others' signs changed they are those of t − k rounds, also where a user is
replaced, and the first has (ks)²/t = ((t − k)s)²/t + (2k − t)s².

Lemma allocation-heads: If a round has two outcomes, heads with probability p with the user and q without, k of t rounds
cost exactly what the number of heads does, Bin(k, p) + Bin(t − k, q) against Bin(t, q). Proof: given their number all
orders of heads and tails are equally likely, with the user and without.

Where the noise is small the blocks leak more than the epoch does: a Poisson sample is nearer to it.

Lemma allocation-count: Let Y be the rounds' likelihood ratios, r a rate, p = rY/(1 − r + rY), V = Σp(1 − p), m ≥ t/2,
and M(V) the mean of (1 − (2V/m)·sin²(θ/2))^m over all angles θ. The likelihood ratio of k of t rounds is at most Π(1 −
r + rY)·M(V)/P(Bin(t, r) = k). Proof: given its number K of rounds, a Poisson sample at rate r is uniform; so the epoch
is the sample given K = k, and by Bayes its ratio is Π(1 − r + rY)·P(K = k | Y)/P(K = k). Given Y, K is a sum of
independent indicators, with a characteristic function of size Π√(1 − 4p(1 − p)sin²(θ/2)), whose mean over θ bounds P(K
= k | Y). ln(1 − x) is concave: with their mean V/t in place of all p(1 − p) it is at most (1 − (4V/t)sin²(θ/2))^{t/2},
which grows with t.

Lemma allocation-nodes: The mean over equidistant θ, 0 among them, is not below M(V). Proof: 1 − x·sin²(θ/2), x ≤ 1, is
1 − x/2 + (x/2)cos θ; so the power has no negative Fourier coefficient, and aliasing adds these.

Lemma allocation-chord: M falls. With ln M(V) ≤ α − bV between V₁ and V₂ δ(ε) of "remove" is at most E(U − e^ε)₊ + P(L >
ε, V < V₁ or V > V₂) + P(some Y > a), U = Π1{Y ≤ a}(1 − r + rY)e^{−bp(1 − p)}·e^α/P(Bin(t, r) = k), L the epoch's loss
and P of k rounds with the user and t − k without. U is a product: E(U − e^ε)₊ is convex in each factor, and grows if
the mass of a cell is split over two points of a grid on both sides of its factors, with their mean kept. For η ≥ 0 P(L
> ε, v₀ ≤ V < v) ≤ E[Π(1 − r + rY)^η·e^{ζ(v − V)}]·(M(v₀)/(e^ε·P(Bin(t, r) = k)))^η, and so for V > v₀. Proof: of δ(ε) =
E(dP/dQ − e^ε)₊ the outcomes outside count whole; Chernoff.

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

from privcheck.accounting.engine.allocated_below import GaussianRound, PairRound, allocation_below, parts_atoms
from privcheck.accounting.engine.atoms import Atoms, binomial_logs, convolve_masses, tidy
from privcheck.accounting.engine.bells import between, inverse, log_mixture, slope
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.excesses import OnGrid, add_up
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats, repeat_on_one_draw, root_up
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
_CHORD: Final = 513  # points of it
_NODES: Final = 16  # of M, in units of 1/√V
_UNLIKELY: Final = 7.0  # −ln of the share of δ that lies outside V₁ and V₂, about
_FURTHEST: Final = 700.0  # −ln of a δ
_LARGEST: Final = 2e4  # loss of a point
_FAR: Final = 38.0  # standard deviations of the loss, beyond which nothing is asked
_SLACK: Final = 1e-9  # relative, of a sum of t logarithms
_MOST_HEADS: Final = 10**8  # products …
_MOST_ROUNDS: Final = 10**5  # … and rounds, where heads are counted
_LEAST_MASS: Final = 1e-290
_SEEN: Final = 600  # points of the blocks' curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch, in some rounds of which the user takes part.

    Attributes:
        one: A round.
        rounds: t.
        participations: k, from 2 to t − 1, for Gaussian noise to t/2; or 1 where a round has two outcomes.
        blocks: Laws of the blocks of rounds, with their counts.
    """

    one: GaussianRound | PairRound
    rounds: int
    participations: int
    blocks: Base


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Outcomes of one round, in cells.

    Attributes:
        q: (n,) masses without the user.
        p: (n,) with the user.
        off: Bounds on the errors of both, (n,) each.
        factors: Least and largest ln(1 − r + rY) in each, (n,) each.
        shares: p = rY/(1 − r + rY) at these, (n,) each.
        beyond: Masses of the outcomes above all cells, without and with the user.
    """

    q: Floats
    p: Floats
    off: tuple[Floats, Floats]
    factors: tuple[Floats, Floats]
    shares: tuple[Floats, Floats]
    beyond: tuple[float, float]


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
    if (heads := _heads(epoch, direction)) is not None:
        over, under, off = heads
        return parts_atoms(as_floats(np.exp(over - off)), as_floats(np.exp(under + off) + 2 * _LEAST_MASS))
    return allocation_below(epoch.one, epoch.rounds, epoch.participations, direction)


def counts_heads(law: LaplaceLaw | AtomicLaw, rounds: int, participations: int) -> bool:
    """Whether a round with that law has two outcomes, and there are not too many rounds to count heads."""
    few = rounds <= _MOST_ROUNDS and participations * (rounds - participations) <= _MOST_HEADS
    return few and isinstance(law, AtomicLaw) and len(law.atoms("remove").losses) == 2


def _heads(epoch: Epoch, direction: Direction) -> tuple[Floats, Floats, float] | None:
    """Logarithms of the masses of the number of heads, and a bound on their errors [lemma allocation-heads].

    What is hardly above the floats' range is left out. None where heads are not counted.
    """
    t, k = epoch.rounds, epoch.participations
    law = epoch.one.law if isinstance(epoch.one, PairRound) else None
    if not isinstance(law, AtomicLaw) or not counts_heads(law, t, k):
        return None
    atoms = law.atoms("remove")
    odds = float(np.diff(atoms.logs)[0])
    without = odds - float(np.diff(atoms.losses)[0])
    heads, with_user = np.arange(t + 1), np.full(t + 1, -np.inf)
    # tilted, as a number of heads that is likely without the user may be beyond the floats' range with the user
    for tilt in (0.0, (without - odds) * k / t):
        parts = [binomial_logs(n, of + tilt) for n, of in ((k, odds), (t - k, without))]
        scale = sum(n * (np.logaddexp(0, of + tilt) - np.logaddexp(0, of)) for n, of in ((k, odds), (t - k, without)))
        masses = convolve_masses(*(np.exp(part) for part in parts))
        good = masses > _LEAST_MASS
        with_user[good] = np.maximum(with_user[good], np.log(masses[good]) + scale - tilt * heads[good])
    # of logarithms above −750 that are made of t ratios each, their exponentials and sums of at most k + 1 of these
    off = UNIT * (t + 64) * (800 + 8 * math.log(t) + 4 * abs(odds) + 4 * abs(without))
    both = (as_floats(with_user), binomial_logs(t, without))
    return (*(both if direction == "remove" else both[::-1]), off)


def _several(epoch: Epoch, direction: Direction) -> Atoms:
    if (heads := _heads(epoch, direction)) is not None:
        over, under, off = heads
        known = np.isfinite(over) & np.isfinite(under)
        losses = over[known] - under[known] + 2 * off + 4 * UNIT * np.abs(over[known] - under[known])
        infinite = float(np.exp(over[~known]).sum()) * (1 + 2 * off) + len(over) * 2 * _LEAST_MASS
        return tidy(as_floats(losses), as_floats(np.minimum(over[known] + off, 0.0)), infinite)
    one, t, k = epoch.one, epoch.rounds, epoch.participations
    if not isinstance(one, GaussianRound) or one.replaced or k < _FEWEST or t > _MOST:
        return base_atoms(epoch.blocks, direction)
    if k / t * math.expm1(min(one.shift**2, 600.0)) <= _SMALL:
        return base_atoms(epoch.blocks, direction)
    knots = _profile(epoch.blocks, one.shift, t, k)
    return base_atoms(epoch.blocks, direction) if knots is None else profile_atoms(knots, direction)


@functools.lru_cache(maxsize=16)
def _profile(blocks: Base, s: float, t: int, k: int) -> Content | None:
    """Knots of a bound on the profile of "remove": blocks, and below them a sample's; None if e^ε is too large."""
    points = list[Point]()
    for direction in ("remove", "add"):
        atoms = base_atoms(blocks, direction)
        masses = np.exp(atoms.logs)
        mean = float(masses @ atoms.losses)
        std = math.sqrt(max(float(masses @ (atoms.losses - mean) ** 2), 1e-300))
        last = min(float(atoms.losses[-1]), _LARGEST)
        if mean + _FAR * std > _LARGEST:
            return None
        near = np.linspace(0.0, max(mean, 0.0) + _BEYOND * std, _SEEN)
        beyond = np.geomspace(near[-1], max(last, 1.1 * near[-1]), _SEEN // 6)
        losses = as_floats(np.concatenate([near, beyond[1:]]))
        logs = atoms.log_deltas(losses)
        its = [
            (exponential_up(loss), Fraction(max(math.exp(log), 1e-300)) * (1 + Fraction(1, 1 << 50)))
            for loss, log in zip(losses.tolist(), logs.tolist(), strict=True)
        ]
        points += its if direction == "remove" else mirror(its)
        if direction == "remove":
            points += _counted(s, t, k, atoms, std)
    return profile_content(convex_profile(points))


def _counted(s: float, t: int, k: int, blocks: Atoms, std: float) -> Iterator[Point]:
    """Points of the bound by a sample's ratio [lemma allocation-count], where the loss is above 0."""
    tilts = {max(_LEAST_TILT, 1 + z / std) for z in np.arange(_BEFORE, _BEYOND, _APART).tolist()}
    known = [
        _Counted(shift=s, rounds=t, participations=k, rate=_rate(s, t, k, tilt), tilt=tilt) for tilt in sorted(tilts)
    ]
    at = [one.loss for one in known]
    for i, one in enumerate(known):
        low, high = at[max(i - 1, 0)], at[min(i + 1, len(at) - 1)]
        losses = as_floats(np.linspace((low + at[i]) / 2, (high + at[i]) / 2, _EACH + 1)[:-1])
        losses = as_floats(losses[(losses > 0) & (losses < _LARGEST)])
        if not len(losses):
            continue
        log = float(blocks.log_deltas(losses[-1:])[0])
        if log < -_FURTHEST:
            break
        for loss, bound in zip(losses.tolist(), one.bounds(losses, log), strict=True):
            if bound < 1:
                yield exponential_up(loss), Fraction(bound)


def _rate(s: float, t: int, k: int, tilt: float) -> float:
    """Rate at which the mean of Σp is about k, under the likelihood ratio to the power `tilt`."""
    low, high = k / t * 1e-3, (1 + k / t) / 2
    for _ in range(16):
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
        """Logarithm ln P(Bin(t, r) = k), rounded down."""
        t, k, r = self.rounds, self.participations, self.rate
        terms = [math.lgamma(t + 1), -math.lgamma(k + 1), -math.lgamma(t - k + 1)]
        terms += [k * math.log(r), (t - k) * math.log1p(-r)]
        return math.fsum(terms) - 1e-14 * math.fsum(abs(term) for term in terms) - 1e-13

    @property
    def loss(self) -> float:
        """Loss that is about the mean of the tilted law."""
        t, k = self.rounds, self.participations
        mean, _, _ = _tilted(self.shift, self.rate, self.tilt)
        return t * mean - self.log_probability - math.log(2 * math.pi * k * (1 - k / t)) / 2

    def bounds(self, losses: Floats, log: float) -> list[float]:
        """Upper bounds on δ at (m,) losses.

        Args:
            losses: (m,) ε, increasing.
            log: About ln δ at the last.
        """
        t, k, r, tilt = self.rounds, self.participations, self.rate, max(self.tilt, 1.0)
        std = _tilted(self.shift, r, tilt)[2]
        # δ is about that much less than Chernoff's bound on P(L > ε)
        step, less = std / _FINE, tilt * (tilt - 1) * std * math.sqrt(2 * math.pi * t)
        unlikely = _UNLIKELY + math.log(max(1.0, less))
        cells = _cells(self.shift, r, step / _PARTS, 2 * _UNLIKELY + math.log(t) - log)
        q, p, (q_off, p_off), (least, most), beyond = cells.q, cells.p, cells.off, cells.factors, cells.beyond
        varied = [share * (1 - share) for share in cells.shares]
        lows = np.minimum(*varied) * (1 - 1e-9)
        highs = np.where((cells.shares[0] < 0.5) & (cells.shares[1] > 0.5), 0.25, np.maximum(*varied) * (1 + 1e-9))
        laws = ((p + p_off, k), (q + q_off, t - k))
        eta, tilts = tilt - 1, as_floats((tilt - 1) * most)
        size = 0.5 * math.log1p(2 * math.pi * k)  # about −ln M(V)
        lowest, log_seen = _least(laws, tilts, as_floats(lows), unlikely + eta * size)
        low, _ = _least(laws, tilts, as_floats(lows), unlikely)
        high = -_least(laws, tilts, as_floats(-highs), unlikely)[0]
        lowest, low, high = max(lowest, 0.0), max(low, lowest, 0.0), min(high, t / 4)
        if not low < high:
            return [1.0] * len(losses)
        least_log, *logs = log_most_likely(np.append(lowest, np.linspace(low, high, _CHORD)), t).tolist()
        # −ln of the three shares that are beyond V₁ or V₂
        shares = (unlikely + eta * size, unlikely - eta * (least_log + 1e-11), unlikely - eta * (logs[-1] + 1e-11))
        b = max(logs[0] - logs[-1], 0.0) / (high - low)
        constant = float(np.max(logs[:-1] + b * np.linspace(low, high, _CHORD)[1:])) + 1e-11 - self.log_probability
        # a cell's mass under Q, and its mean factor times that
        damped = np.exp(-b * lows)
        raised, raised_off = ((1 - r) * q + r * p) * damped, (1 - r) * q_off + r * p_off
        first = np.floor((least - b * lows) / step - 1e-6).astype(np.int64)
        last = np.maximum(np.ceil((most - b * lows) / step + 1e-6).astype(np.int64), first + 1)
        with np.errstate(over="ignore"):
            under, over = np.exp(first * step), np.exp(last * step)
            off = (raised_off + q_off * under + 1e-14 * (raised + q * under)) / (over - under)
            up = np.clip((raised - q * under) / (over - under), 0.0, q)
        start = int(first.min())
        masses = np.bincount(first - start, weights=q - up + q_off + 1e-15 * q)
        above = np.bincount(last - start, weights=up + off)
        masses = np.pad(masses, (0, len(above) - len(masses))) + above
        summed = add_up(OnGrid(first=start * step, step=step, masses=as_floats(masses)), t, tilt * step)
        if summed is None:
            return [1.0] * len(losses)
        found = list[float]()
        for loss in losses.tolist():
            inside = loss + summed.log_exponential_excess(loss - constant)
            seen = log_seen - eta * (loss + self.log_probability)
            terms = [inside, *(seen - share for share in shares)]
            whole = math.fsum(math.exp(min(term + _SLACK, 1.0)) for term in terms)
            found.append(min(1.0, whole + k * beyond[1] + (t - k) * beyond[0]))
        return found


def log_most_likely(variances: Floats, rounds: int) -> Floats:
    """Bounds on ln M(V), ln of the largest probability that so many indicators have a given sum, at (n,) V ≤ t/4."""
    m = (rounds + 1) // 2
    count = min(m + 1, math.ceil(_NODES * math.sqrt(float(variances.max()))) + 2 * _NODES)  # exact with m + 1 of them
    sines = np.sin(math.pi / count * np.arange(count)) ** 2
    powers = np.multiply.outer(np.minimum(variances * (2 / m), 1.0), -sines)
    with np.errstate(divide="ignore"):
        return as_floats(np.log(np.exp(m * np.log1p(powers)).mean(axis=1)) + m * 1e-15 + 1e-13)


def _cells(s: float, rate: float, part: float, unlikely: float) -> _Cells:
    """Cells of that width of ln(1 − r + rY), up to where the user's x is with probability e^−unlikely."""
    from scipy.special import ndtr

    end = s + math.sqrt(2 * unlikely)
    least, most = math.log1p(-rate), float(log_mixture(s, rate, as_floats([end]))[0])
    edges = as_floats(np.arange(math.floor(least / part) + 1, math.ceil(most / part) + 1) * part)
    x = inverse(s, rate, edges)
    edges, x = edges[np.isfinite(x)], x[np.isfinite(x)]
    ends, factors = as_floats(np.append(-np.inf, x)), as_floats(np.append(least, edges))
    shares = as_floats(np.append(0.0, slope(s, rate, x)))
    (q, q_off, _), (p, p_off, _) = (between(ends, centre) for centre in (0.0, s))
    return _Cells(
        q=q,
        p=p,
        off=(q_off, p_off),
        factors=(factors[:-1], factors[1:]),
        shares=(shares[:-1], shares[1:]),
        beyond=(float(ndtr(-x[-1])), float(ndtr(s - x[-1]))),
    )


def _tilted(s: float, rate: float, tilt: float) -> tuple[float, float, float]:
    """About the means of ln(1 − r + rY) and of p, and the std of the former, under (1 − r + rY)^tilt."""
    x = as_floats(np.linspace(-9.0, (1 + max(tilt, 1.0)) * s + 9.0, 2001))
    h = log_mixture(s, rate, x)
    exponents = tilt * h - x * x / 2
    weights = np.exp(exponents - float(exponents.max()))
    weights /= float(weights.sum())
    mean = float(weights @ h)
    share = float(weights @ slope(s, rate, x))
    return mean, share, math.sqrt(max(float(weights @ (h - mean) ** 2), 1e-300))


def _least(laws: tuple[tuple[Floats, int], ...], tilts: Floats, values: Floats, unlikely: float) -> tuple[float, float]:
    """A number v and ln A, with E[Πe^tilt; ΣV < v] ≤ A·e^−unlikely and A = E[Πe^tilt] (Chernoff).

    Args:
        laws: Masses of the cells, and the number of rounds with this law.
        tilts: (n,) exponents of the cells, rounded up.
        values: (n,) V in the cells, rounded down.
        unlikely: −ln of the probability.
    """
    etas = np.geomspace(1e-2, 1e2, 40)
    moved = np.exp(np.multiply.outer(-etas, values) + tilts)
    logs, log_seen = np.zeros(len(etas)), 0.0
    for masses, count in laws:
        log_seen += count * math.log(float(masses @ np.exp(tilts)))
        logs += count * np.log(moved @ masses)
    slack = 1e-12 * sum(count for _, count in laws) * (1 + float(np.max(np.abs(tilts))))
    return float(np.max((log_seen - logs - unlikely - slack) / etas)), log_seen + slack
