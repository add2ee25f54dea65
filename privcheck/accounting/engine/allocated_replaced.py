"""Random allocation with Gaussian noise where one user is replaced by another: one of t rounds, equally likely.

Lemma allocation-replaced: With s = Δ/std, the rounds' outputs are dominated by t numbers, P the mean over i of N(s·eᵢ,
I) and Q that of N(−s·eᵢ, I); two users with opposite contributions attain it. Proof: let R be the law of the outputs
without either user. Given the others' data and the earlier outputs, the users would move round i by u and v, |u|, |v| ≤
s, so that P − e^ε·Q has the density (1/t)Σᵢ Wᵢ relative to R, Wᵢ = dN(u)/dN(0) − e^ε·dN(v)/dN(0), where u and v depend
on the earlier outputs. δ(ε) is E_R(ΣWᵢ)₊/t. Go from the last round to the first: let the later ones have the opposite
pair, whatever the past; given the past, the expectation is that of a convex function of Wᵢ. E[Wᵢ] = 1 − e^ε, so it is
enough to compare E(Wᵢ − c)₊ for every c. For c ≥ 0 that is E[(1 − e^ε·e^{G} − c·e^{H})₊] under N(u, 1), G and H the
Gaussians of [lemma replaced-contributions] with their means, of weights at least 0: by Kahane's inequality it grows
with |v − u|², |u|² and <v − u, −u>, all of which are largest at u = −v, |u| = s. For c < 0 it is a constant plus e^ε
times the same of the exchanged pair, weights e^{−ε} and −e^{−ε}c.

*One epoch.* x ↦ −x exchanges P and Q: the curve is symmetric, and ε ≥ 0 is enough. W = e^{sx − s²/2} − e^{ε − sx −
s²/2} = 2e^{ε/2 − s²/2}·sinh(sx − ε/2) grows with x: its law on a grid has closed-form masses and means, and E(ΣW)₊
follows, for one ε after the other: from `excesses`, or, in few rounds of little noise, from `doubled`.

Lemma allocation-replaced-large: Cut off at a point a of x, E(ΣW)₊ is at most A + t·E[F; x > a], F the lesser of ½(m +
√(m² + τ²)) and W₊ + t − 1, with A = E[(ΣW)₊; all x ≤ a], m = W + (t − 1)(1 − e^ε) and τ² = (t − 1)·Var W. Proof: beyond
A some x is above a, and E(m + Z)₊ ≤ ½(m + √(m² + τ²)) for every Z of mean 0 and variance τ² (Scarf 1958), and each of
the others adds 1 at most to E(·)₊.

The lower bound is that of `allocated_below`, and of tangents to a curve between bounds by `doubled` if it is greater.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.engine.allocated import known_round
from privcheck.accounting.engine.allocated_below import GaussianRound, allocation_below
from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.bells import between
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.doubled import (
    Bounds,
    Numbers,
    excess_of_both,
    plus,
    points,
    repeated,
)
from privcheck.accounting.engine.excesses import Binned, add_up, best_tilt, bulk_std, grid_above
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats, root_up
from privcheck.accounting.engine.profiles import (
    Point,
    convex_profile,
    exponential_up,
    mirror,
    profile_atoms,
    profile_content,
    tangent_profile,
)

_FIRST: Final = 12  # points in a standard deviation of W
_FINE: Final = 10.0  # … at least, in one of the bulk of the tilted law
_LOOKS: Final = 6
_MOST_CELLS: Final = 1 << 15
_MOST_ACROSS: Final = 4096  # points in a standard deviation of the sum
_MOST_SUMMED: Final = 10**6  # rounds; more of them cost no more
_UP: Final = 4.0  # standard deviations of the sum, above 0, to which one term alone may take it on the grid
_DOWN: Final = 4.0
_FAR: Final = 9.0  # standard deviations of x
_BEYOND: Final = 200  # cells of x of one large term
_TAIL: Final = 7e-14  # relative error of the normal distribution's values
_SLACK: Final = 1e-11  # relative, of sums of them
_NEAR: Final = 5.0  # standard deviations of the loss, each with …
_STEPS: Final = 12  # … so many knots
_BETWEEN: Final = 4  # points for each at which a known round is looked at
_RATIO: Final = 1.07  # of neighbouring losses beyond
_NOTHING: Final = 1e-20  # of δ, below which only the bound for a known round is used
_FURTHEST: Final = 600.0  # loss
_LATER: Final = 10.0  # knots in a standard deviation of the loss after the first few, …
_FALLS: Final = 0.4  # … or as many as ln δ falls by so much from one to the next, …
_FAINT: Final = 1e-13  # … down to where it may fall by 1
_OCTAVE: Final = 16  # points of the geometric grid in an octave, …
_LEAST_STD: Final = 0.4  # … for a standard deviation of the loss from here on, …
_LEAST_BELOW: Final = 0.13  # … or for lower bounds from here on, …
_STRONGEST: Final = 6.0  # … s up to here …
_MOST_DOUBLED: Final = 128  # … and so many rounds
_HIGHEST: Final = 6.0  # standard deviations of x, where it ends
_LEAST_PART: Final = 8  # of a point's distance there, that the least point is from 0
_AT_ONCE: Final = 16  # losses


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """Terms W of one ε.

    Attributes:
        shift: s.
        rounds: t.
        epsilon: ε, at least 0.
    """

    shift: float
    rounds: int
    epsilon: float

    @property
    def mean(self) -> float:
        """E[W]."""
        return -math.expm1(self.epsilon)

    @property
    def std(self) -> float:
        """Standard deviation of W, rounded up."""
        grown, v = math.exp(self.epsilon), self.shift**2
        return math.sqrt(math.expm1(v) * (1 + grown * grown) - 2 * grown * math.expm1(-v)) * (1 + 1e-12)

    @property
    def half(self) -> float:
        """Factor of sinh(sx − ε/2), halved."""
        return math.exp(self.epsilon / 2 - self.shift**2 / 2)

    def at(self, x: Floats) -> Floats:
        """W at x."""
        return as_floats(2 * self.half * np.sinh(self.shift * x - self.epsilon / 2))

    def binned(self, step: float) -> tuple[Binned, float, float]:
        """Law of W on a grid, the point of x where it ends, and a bound η on the rounding of its points."""
        from scipy.special import ndtr

        spread = self.std * math.sqrt(self.rounds)
        least, most = self.at(as_floats([-self.shift - _FAR, self.shift + _FAR])).tolist()
        low = max(least, self.mean - _DOWN * spread)
        high = min(most, -self.rounds * self.mean + _UP * spread)
        count = max(8, math.ceil((high - low) / step))
        points = low + step * np.arange(count + 1)
        turned = np.arcsinh(points / (2 * self.half))
        x = as_floats((turned + self.epsilon / 2) / self.shift)
        moved = float(np.max(np.abs(points))) + 2 * self.half
        moved *= 64 * UNIT * (float(np.max(np.abs(turned))) + self.epsilon + 1)
        (masses, off, _), (p, p_off, _), (q, q_off, _) = (between(x, c) for c in (0.0, self.shift, -self.shift))
        grown = math.exp(self.epsilon)
        raised = (p - grown * q - points[:-1] * masses) / step
        wrong = p_off + grown * q_off + np.abs(points[:-1]) * off + 8 * UNIT * (p + grown * q) + moved * masses
        made = Binned(
            first=low,
            step=step,
            inside=masses,
            raised=as_floats(raised),
            off=as_floats(wrong / step),
            lacking=off,
            atoms=np.zeros(count + 1),
            under=float(ndtr(x[0])),
        )
        return made, float(x[-1]), moved

    def one_large(self, end: float) -> float:
        """Bound on the share of E(ΣW)₊ of the terms with x > a [lemma allocation-replaced-large]."""
        from scipy.special import ndtr

        s, t, grown = self.shift, self.rounds, math.exp(self.epsilon)
        x = end + np.linspace(0, s + 12, _BEYOND)
        tails = [as_floats(ndtr(c - x)) for c in (0.0, s, -s)]
        r, p, q = (as_floats(np.append(tail[:-1] - tail[1:], tail[-1])) for tail in tails)
        w = self.at(x) + (t - 1) * self.mean
        spread = math.sqrt(t - 1) * self.std
        root = np.hypot(w, spread)
        over = np.where(w > 0, (w + root) / 2, spread**2 / 2 / (root + np.abs(w)))
        above = np.maximum(p - grown * q + ((t - 1) * self.mean - w) * r, 0.0)  # E[m − w; the cell]
        above += _TAIL * (tails[1] + grown * tails[2] + (np.abs(w) + t * abs(self.mean)) * tails[0])
        # Scarf's bound is convex, below its chord on every cell, and grows by at most 1
        rises, cells = np.append(np.clip(np.diff(over) / np.diff(w), 0.0, 1.0), 1.0), r + _TAIL * tails[0]
        without = p * (1 + _SLACK) + _TAIL * tails[1] + (t - 1) * cells
        upper = float(np.minimum(over * cells + rises * above, without).sum()) * (1 + _SLACK)
        return t * upper

    def bound(self, *, rough: bool = False) -> float:
        """Upper bound on δ(ε) of one epoch.

        Args:
            rough: Whether half the usual number of points will do.
        """
        t, spread = self.rounds, self.std * math.sqrt(self.rounds)
        fine, widest = _FINE / (2 if rough else 1), spread / _MOST_ACROSS
        step = max(self.std / _FIRST, widest)
        for _ in range(_LOOKS // (2 if rough else 1)):
            binned, end, moved = self.binned(step)
            most = self.one_large(end)
            above = grid_above(binned)
            tilt = best_tilt(above, t, 0.0)
            wanted = max(bulk_std(above, tilt) / fine, widest, len(binned.inside) * step / _MOST_CELLS)
            if step <= wanted * 1.01:
                break
            step = max(wanted * 0.9, step / 6)
        summed = add_up(above, t, tilt)
        return 1.0 if summed is None else min(1.0, (summed.excess(-t * moved)[1] + most) / t * (1 + 4 * UNIT))


def replaced_allocation_law(shift: float, rounds: int) -> AtomicLaw:
    """Law that dominates one epoch of t rounds, in one of which the user takes part, under replacing the user.

    Args:
        shift: s = Δ/std of one round, above 0, Δ the norm of one user's contribution.
        rounds: t, 2 or more.
    """
    return AtomicLaw(
        build=_replaced_allocation,
        arguments=(shift, rounds),
        bound=math.inf,
        symmetric=True,
        rounded=True,
        repeat=_repeat,
        below=_replaced_allocation_below,
    )


def _repeat(times: int, shift: float, rounds: int) -> AtomicLaw:
    """Law of n releases in the drawn round: one of √n times the sensitivity."""
    return replaced_allocation_law(shift * root_up(times), rounds)


def _replaced_allocation(shift: float, rounds: int, _: Direction) -> Atoms:
    points, known = list[Point](), _uppers(shift, rounds)
    for (loss, bound), (after, *_rest) in zip(known, [*known[1:], known[-1]], strict=True):
        points.append((exponential_up(loss), Fraction(bound)))
        # a known round costs next to nothing to compute
        points += [known_round(2 * shift, at) for at in np.linspace(loss, after, _BETWEEN, endpoint=False).tolist()]
    return profile_atoms(profile_content(convex_profile([*points, *mirror(points)])), "remove")


def _replaced_allocation_below(shift: float, rounds: int, _: Direction) -> Atoms:
    one = GaussianRound(shift=shift, replaced=True)
    if not _few(shift, rounds, _LEAST_BELOW):
        return allocation_below(one, rounds, 1, "remove")
    known, above = list[tuple[Fraction, Fraction, Fraction]](), _known(shift, rounds)
    for some in (above[i : i + _AT_ONCE] for i in range(0, len(above), _AT_ONCE)):
        lowers = _doubled(shift, rounds, as_floats([loss for loss, _ in some]), "excess below")
        for (loss, high), low in zip(some, lowers, strict=True):
            if 2 * low > high:
                known.append((exponential_up(loss), Fraction(low), Fraction(high)))
    both = [(1 / x, 1 - (1 - low) / x, 1 - (1 - high) / x) for x, low, high in reversed(known) if x > 1]
    knots = profile_content(tangent_profile([*both, *known]))
    return allocation_below(one, rounds, 1, "remove", profile_atoms(knots, "remove"))


def _loss_std(shift: float, rounds: int) -> float:
    """About the standard deviation of the loss of one epoch."""
    return math.sqrt(math.log1p(_Terms(shift=shift, rounds=rounds, epsilon=0.0).std ** 2 / rounds))


def _uppers(shift: float, rounds: int) -> tuple[tuple[float, float], ...]:
    """Losses from 0, and upper bounds on δ there; 1 where there is none."""
    known = _known(shift, rounds)
    first = known[-1][0]
    last = max(min(_FURTHEST, 2 * shift * (shift + 38)), 2 * first)
    count = math.ceil(math.log(last / first) / math.log(_RATIO))
    return (*known, *((loss, 1.0) for loss in np.geomspace(first, last, count)[1:].tolist()))


@functools.lru_cache(maxsize=64)
def _known(shift: float, rounds: int) -> tuple[tuple[float, float], ...]:
    """Losses from 0, and upper bounds on δ there."""
    return tuple((_by_doubling if _few(shift, rounds, _LEAST_STD) else _by_sums)(shift, rounds))


def _few(shift: float, rounds: int, least: float) -> bool:
    """Whether the geometric grid does for such rounds, and a standard deviation of the loss from `least` on."""
    return rounds <= _MOST_DOUBLED and shift <= _STRONGEST and _loss_std(shift, rounds) >= least


def _by_sums(shift: float, rounds: int) -> Iterator[tuple[float, float]]:
    """Losses from 0, and upper bounds on δ there, one by one."""
    std, rounds = _loss_std(shift, rounds), min(rounds, _MOST_SUMMED)
    near, loss, last, step = _NEAR * std * (1 + 1e-9), 0.0, 1.0, std / _STEPS
    while loss <= _FURTHEST:
        bound = _Terms(shift=shift, rounds=rounds, epsilon=loss).bound(rough=loss > near)
        yield loss, bound
        if loss and bound < _NOTHING:
            break
        if loss + step > near:
            most = (_RATIO - 1) * loss
            step = min(most, _FALLS * step / math.log(last / bound)) if last > bound > _FAINT else most
        loss, last = loss + step, bound


def _by_doubling(shift: float, rounds: int) -> Iterator[tuple[float, float]]:
    """Losses from 0, and upper bounds on δ there, several at once [lemma excess-doubled]."""
    std, loss = _loss_std(shift, rounds), 0.0
    step = std / _STEPS
    while loss <= _FURTHEST:
        losses = as_floats(loss + step * np.arange(_AT_ONCE))
        bounds = _doubled(shift, rounds, losses, "both above")
        yield from zip(losses.tolist(), bounds, strict=True)
        if bounds[-1] < _NOTHING:
            break
        slope = math.log(bounds[-2] / bounds[-1]) / step
        loss += step * _AT_ONCE
        step = min(std / _LATER, (_FALLS if bounds[-1] > _FAINT else 1.0) / max(slope, 1e-9))


def _doubled(shift: float, rounds: int, losses: Floats, bounds: Bounds) -> list[float]:
    """Bounds on δ of one epoch at (e,) increasing losses, or within a few roundings of these [lemma excess-doubled].

    The terms are W/2h = sinh(sx − ε/2), h = e^{ε/2 − s²/2}.
    """
    s, octaves = shift, _OCTAVE / math.log(2)
    reach = float(losses[-1]) / 2 + _HIGHEST * s
    start = round(math.log(min(1.0, s) / _OCTAVE / _LEAST_PART) * octaves)
    stop = math.ceil((reach - math.log(2)) * octaves)  # sinh is half of e^reach
    x = (np.arcsinh(points(start, stop - start + 1, _OCTAVE, signed=True)) + losses[:, np.newaxis] / 2) / s
    numbers = Numbers(
        start=start,
        octave=_OCTAVE,
        x=as_floats(x),
        blur=8 * UNIT * (1 + reach + float(losses[-1])) / s,
        parts=tuple((sign * s, as_floats(sign * np.exp((s * s - sign * losses) / 2) / 2)) for sign in (1, -1)),
    )
    one = numbers.on_points(bounds)
    half = repeated(one, rounds // 2)
    summed = excess_of_both(half, plus(half, one) if rounds % 2 else half) / rounds
    scale, slack = 2 * np.exp((losses - s * s) / 2), 64 * UNIT * (1 + reach)
    if bounds == "both above":
        found = np.minimum((summed + numbers.beyond()) * scale * (1 + slack), 1.0)
    else:
        found = summed * scale * (1 - slack)
    return [float(bound) for bound in found]
