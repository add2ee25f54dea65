"""Random allocation of any mechanism with a known dominating pair: one of t rounds, each equally likely.

Lemma allocation-any-pair: If (P, Q) dominates every round, with the user in it and without, then the rounds' outputs
are dominated by t outcomes, the mean over i of P at i and Q elsewhere, against Q everywhere. Proof: given the data of
all others and the earlier outputs, a round is a post-processing of one outcome of the pair (Blackwell), which may
depend on the past but not on i.

With Y = dP/dQ under Q, S the sum of t independent Y and p the mass of P where Q has none, δ(ε) of "remove" is p +
E(S/t − e^ε)₊ = 1 − e^ε + E(e^ε − S/t)₊. Both follow from `excesses`, of Y and of −Y.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.engine.allocated_below import merged_laplace
from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.excesses import Binned, OnGrid, add_up, best_tilt, grid_above, grid_below
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import UNIT, Direction, Floats, as_floats, repeat_on_one_draw
from privcheck.accounting.engine.profiles import (
    Content,
    Point,
    convex_profile,
    exponential_up,
    profile_atoms,
    profile_content,
    tangent_profile,
)
from privcheck.accounting.engine.subsampled import Base, base_atoms, largest_loss

_CELLS: Final = 64  # of Y, at least
_FINE: Final = 32  # … in one of its standard deviations
_MOST_ACROSS: Final = 4096.0  # … and about in one of the sum's, at most
_FEW: Final = 1 << 14  # … of all rounds together, at least
_MOST_CELLS: Final = 1 << 15
_SEEN: Final = 1e-9  # mass of a likelihood ratio, from which on losses as large are looked at
_ROUNDED: Final = 2e-12  # relative, of a likelihood ratio
_LARGEST: Final = 60.0  # loss of one round; what lies above counts as lost …
_CUT: Final = 1e-17  # … as does what is above 1 and has no more mass
_NEAR: Final = 5.0  # standard deviations of the loss, each with …
_STEPS: Final = 16  # … so many knots
_RATIO: Final = 1.05  # of neighbouring losses beyond
_NOTHING: Final = 1e-20  # of δ, below which only the bound for a known round is used
_MOST_SUMMED: Final = 10**6  # rounds; more of them cost no more


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ratios:
    """Likelihood ratios Y of one round.

    Attributes:
        values: (n,) increasing.
        masses: (n,) their Q-masses.
        infinite: P-mass where Q has none.
    """

    values: Floats
    masses: Floats
    infinite: float

    @property
    def std(self) -> float:
        """Standard deviation of Y under Q."""
        return math.sqrt(max(float(self.masses @ (self.values - 1) ** 2), 1e-300))

    def binned(self, rounds: int) -> Binned:
        """Their law on a grid that ends at the least and at the largest of them, for a sum over t rounds."""
        low, high = float(self.values[0]), float(self.values[-1])
        fine = min(_FINE, _MOST_ACROSS / math.sqrt(rounds))
        count = min(max(_CELLS, _FEW // rounds, math.ceil(fine * (high - low) / self.std)), _MOST_CELLS)
        step = (high - low) / count
        place = (self.values - low) / step
        cell = np.minimum(np.floor(place).astype(np.int64), count - 1)
        ends = np.isin(np.arange(len(place)), (0, len(place) - 1))
        inner, masses = cell[~ends], self.masses[~ends]
        raised = np.bincount(inner, weights=masses * (place[~ends] - inner), minlength=count)
        inside = np.bincount(inner, weights=masses, minlength=count)
        atoms = np.zeros(count + 1)
        atoms[0], atoms[-1] = self.masses[0], self.masses[-1]
        return Binned(
            first=low,
            step=step,
            inside=as_floats(inside),
            raised=as_floats(raised),
            off=as_floats(inside * (16 * UNIT * count)),
            lacking=np.zeros(count),
            atoms=atoms,
            under=0.0,
        )


def _turned(binned: Binned) -> Binned:
    """Law of the numbers with their signs changed."""
    last = binned.first + binned.step * len(binned.inside)
    return Binned(
        first=-last,
        step=binned.step,
        inside=binned.inside[::-1],
        raised=(binned.inside - binned.raised)[::-1],
        off=binned.off[::-1],
        lacking=binned.lacking[::-1],
        atoms=binned.atoms[::-1],
        under=0.0,
    )


def _ratios(atoms: Atoms, *, up: bool) -> _Ratios:
    """Likelihood ratios under Q; the Q-mass that is missing has no P-mass, up to rounding.

    Losses that are hardly ever as large count as lost in the upper bound, and are left out of the lower one.
    """
    p = np.exp(atoms.logs)
    above = np.cumsum(p[::-1])[::-1]
    kept = (p > 0) & ((above > _CUT) | (atoms.losses <= 1.0)) & (atoms.losses <= _LARGEST)
    losses, logs = atoms.losses[kept], atoms.logs[kept]
    infinite = atoms.infinite + (float(p[~kept].sum()) if up else 0.0)
    masses, values = np.exp(logs - losses), np.exp(losses)
    off = 64 * UNIT * (1 + float(np.max(np.abs(losses))))
    missing = 1 - math.fsum(masses.tolist()) + (off if up else -off)
    if missing > (0.0 if up else _SEEN):
        values, masses = np.append(0.0, values), np.append(missing, masses)
    return _Ratios(values=as_floats(values), masses=as_floats(masses), infinite=infinite)


def pair_allocation_law(base: Base, rounds: int, *, exact: bool) -> AtomicLaw:
    """Law that dominates one epoch of t rounds, in one of which the user takes part.

    Args:
        base: The mechanism's laws of the loss in one round, with and without the user, with their counts.
        rounds: t, 2 or more.
        exact: Whether the mechanism has two outputs with exactly these laws, so that there is a lower bound.
    """
    known = exact and known_law(base) is not None
    return AtomicLaw(
        build=_pair_allocation,
        arguments=(base, rounds),
        bound=largest_loss(base),
        symmetric=False,
        rounded=True,
        repeat=_repeat_exact if known else _repeat,
        below=_pair_allocation_below if known else None,
    )


def _repeat(times: int, base: Base, rounds: int) -> AtomicLaw:
    """Law of n releases in the drawn round: the mechanism is repeated, not the draw."""
    return pair_allocation_law(repeat_on_one_draw(base, times), rounds, exact=False)


def _repeat_exact(times: int, base: Base, rounds: int) -> AtomicLaw:
    return pair_allocation_law(repeat_on_one_draw(base, times), rounds, exact=True)


def known_law(base: Base) -> LaplaceLaw | AtomicLaw | None:
    """The mechanism's law if two outputs have it exactly; None otherwise."""
    if len(base) != 1 or base[0][1] != 1:
        return None
    law = base[0][0]
    return law if isinstance(law, LaplaceLaw) or (isinstance(law, AtomicLaw) and law.whole) else None


def _pair_allocation(base: Base, rounds: int, direction: Direction) -> Atoms:
    return profile_atoms(profile_content(convex_profile(_uppers(base, rounds))), direction)


def _pair_allocation_below(base: Base, rounds: int, direction: Direction) -> Atoms:
    return profile_atoms(_knots_below(base, rounds), direction)


@functools.lru_cache(maxsize=64)
def _knots_below(base: Base, rounds: int) -> Content:
    """Knots of a lower bound on the profile of "remove"."""
    law = base[0][0]
    atoms = merged_laplace(law) if isinstance(law, LaplaceLaw) else base_atoms(base, "remove")
    ratios = _ratios(atoms, up=False)
    binned = ratios.binned(rounds)
    grids = (grid_below(_turned(binned)), grid_below(binned))
    known = list[tuple[Fraction, Fraction, Fraction]]()
    for x, most in sorted(_uppers(base, rounds)):
        base_line, grid = max(1 - x, Fraction(0)), grids[1 if x >= 1 else 0]
        low = Fraction(0 if grid is None else _beyond(grid, rounds, float(x), up=False))
        if low > (most - base_line) / 2 and most > base_line:
            known.append((x, base_line + low, most))
    return profile_content(tangent_profile(known))


def _beyond(grid: OnGrid, rounds: int, x: float, *, up: bool) -> float:
    """Bound on E(S/t − x)₊, or on E(x − S/t)₊ where the grid's numbers have their signs changed."""
    t, turned = rounds, grid.first < 0
    c = -t * x if turned else t * x
    # S(1 ± κ) instead of S
    moved = c + (-1 if up else 1) * abs(c) * _ROUNDED
    summed = add_up(grid, t, best_tilt(grid, t, moved))
    if summed is None:
        return (max(x, 1.0) if turned else 1.0) if up else 0.0
    lower, upper = summed.excess(moved)
    return upper / t * (1 + 2 * _ROUNDED) if up else lower / t * (1 - 2 * _ROUNDED)


@functools.lru_cache(maxsize=64)
def _uppers(base: Base, rounds: int) -> list[Point]:
    """Points above the profile of "remove"."""
    atoms = base_atoms(base, "remove")
    ratios = _ratios(atoms, up=True)
    summed = min(rounds, _MOST_SUMMED)
    binned = ratios.binned(summed)
    points, most = list[Point](), largest_loss(base)
    if most < _LARGEST:  # no ratio is above e^a or below e^−a
        end = exponential_up(most)
        points += [(end, Fraction(0)), (1 / end, 1 - 1 / end)]
    for sign, grid in ((-1, grid_above(_turned(binned))), (1, grid_above(binned))):
        open_ = True
        for loss in _losses(ratios, rounds):
            if sign < 0 and loss == 0:
                continue
            x = exponential_up(sign * loss)
            alone = math.exp(min(float(atoms.log_deltas(np.array([sign * loss]))[0]), 0.0))
            high = Fraction(max(alone * (1 + 4 * UNIT), 1e-300))
            if open_:
                over = _beyond(grid, summed, float(x), up=True)
                open_ = over > _NOTHING
                start = Fraction(ratios.infinite) if sign > 0 else 1 - x
                high = min(high, start + Fraction(max(over, 1e-300)))
            points.append((x, min(high, Fraction(1))))
    return points


def _losses(ratios: _Ratios, rounds: int) -> list[float]:
    """Losses from 0 at which the profile is computed, in both directions."""
    std = math.sqrt(math.log1p(ratios.std**2 / rounds))
    seen = ratios.values[ratios.masses > _SEEN]
    last = max(float(np.log(seen[-1])), -float(np.log(max(float(seen[0]), 1e-9))), 1e-12)
    near = np.arange(math.ceil(_NEAR * _STEPS) + 1) * (std / _STEPS)
    near = near[near < last]
    count = max(2, math.ceil(math.log(max(last / max(float(near[-1]), 1e-300), 1.0)) / math.log(_RATIO)))
    beyond = np.geomspace(near[-1], last * 1.2, count)[1:] if near[-1] > 0 else np.array([last])
    return [*near.tolist(), *beyond.tolist()]
