"""Losses with finitely many values: their curve in closed form, their powers and products.

All sums are of positive terms, so small δ keep their digits; masses are kept as logarithms.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.laws import UNIT, Cells, Floats, as_floats, atoms_to_cells, without_light_end
from privcheck.accounting.engine.mass import MassError

MOST: Final = 1 << 20  # atoms that a product may have
_BLOCK: Final = 2048  # of sums that are accumulated relative to one largest
_SPREAD: Final = 600.0  # … as long as their logarithms are this close
_SCALE: Final = 500  # power of two by which masses are scaled where they are multiplied
_NEGLIGIBLE: Final = -660.0  # ln of masses that are moved up to a neighbour


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Atoms:
    """Law of a loss with finitely many values.

    Attributes:
        losses: (n,) increasing.
        logs: (n,) ln of the P-masses.
        infinite: P-mass at loss ∞.
        error: A bound on the relative error of the masses from composing many laws, in addition to that of one law.
    """

    losses: Floats
    logs: Floats
    infinite: float = 0.0
    error: float = 0.0

    def slack(self) -> float:
        """Bound on the relative rounding error of masses and of their sums, in addition to that of ln δ itself."""
        span = max(abs(float(self.losses[0])), abs(float(self.losses[-1])))
        return self.error + UNIT * (4 * len(self.losses) + 300 + 8 * span)

    def log_q_above(self) -> Floats:
        """(n,) ln Q(l ≤ L < ∞) at every loss l."""
        return _tails(self)[1]

    def log_deltas(self, epsilons: Floats) -> Floats:
        """Compute (m,) ln δ at (m,) values of ε, rounded up."""
        at_atoms, q_above = _tails(self)
        span = max(abs(float(self.losses[0])), abs(float(self.losses[-1])))
        epsilons = epsilons - 4 * UNIT * span  # losses are rounded; δ falls in ε
        index = np.searchsorted(self.losses, epsilons, side="left")  # the first loss ≥ ε
        inside = np.minimum(index, len(self.losses) - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = (
                q_above[inside] + self.losses[inside] + np.log(-np.expm1(np.minimum(epsilons - self.losses[inside], 0)))
            )
            log_deltas = np.where(index < len(self.losses), np.logaddexp(at_atoms[inside], part), -np.inf)
            log_deltas = np.logaddexp(log_deltas, math.log(self.infinite) if self.infinite > 0 else -np.inf)
            result: Floats = np.where(
                log_deltas == -np.inf, log_deltas, log_deltas + self.slack() + 8 * UNIT * np.abs(log_deltas)
            )
        return np.minimum(result, 0.0)

    def epsilons(self, log_deltas: Floats) -> Floats:
        """Compute (m,) the least ε ≥ 0 with δ(ε) ≤ δ, rounded up; ∞ where δ is below the mass at ∞."""
        at_atoms, q_above = _tails(self)
        safe = log_deltas - (self.slack() + 8 * UNIT * np.abs(log_deltas))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # what may be lost above the mass at ∞
            log_infinite = math.log(self.infinite) if self.infinite > 0 else -math.inf
            targets = safe + np.log(-np.expm1(np.minimum(log_infinite - safe, 0)))
            impossible = log_infinite > safe
            index = len(self.losses) - np.searchsorted(at_atoms[::-1], targets, side="right")
            inside = np.minimum(index, len(self.losses) - 1)  # δ(l) > target just below losses[inside]
            # target = δ(lᵢ) + Q(L ≥ lᵢ)(e^{lᵢ} − e^ε)
            missing = targets + np.log(-np.expm1(np.minimum(at_atoms[inside] - targets, 0)))
            share = np.exp(np.minimum(missing - q_above[inside] - self.losses[inside], 0))
            epsilons = self.losses[inside] + np.log1p(-np.minimum(share, 1))
        largest = max(0.0, float(self.losses[-1]))
        epsilons[targets == -np.inf] = largest
        epsilons = epsilons + 4 * UNIT * max(largest, abs(float(self.losses[0])))
        # at the largest loss δ is the mass at ∞: more is never needed
        result: Floats = np.where(impossible, np.inf, np.minimum(np.maximum(epsilons, 0.0), largest * (1 + 4 * UNIT)))
        return result

    def cells(self, mesh: float, tail: float) -> Cells:
        """Build a dominating law on the grid {i·mesh}; the largest losses, of a mass of at most `tail`, count as ∞."""
        masses = np.exp(self.logs)
        kept = without_light_end(masses, tail)
        lost = float(masses[kept:].sum()) * (1 + UNIT * (len(masses) - kept + 4))
        return atoms_to_cells(self.losses[:kept], masses[:kept], mesh=mesh, infinite=self.infinite + lost)


@functools.lru_cache(maxsize=8)
def _tails(atoms: Atoms) -> tuple[Floats, Floats]:
    """(n,) ln of δ(l) − infinite at every loss l, −∞ at the last, and (n,) ln Q(l ≤ L < ∞).

    δ(lᵢ₋₁) = δ(lᵢ) + Q(L ≥ lᵢ)(e^{lᵢ} − e^{lᵢ₋₁}): between neighbouring losses the curve is linear in e^ε.
    """
    q_above = _accumulate((atoms.logs - atoms.losses)[::-1])[::-1]
    with np.errstate(divide="ignore"):
        gaps = np.log(-np.expm1(-np.diff(atoms.losses)))
    steps = q_above[1:] + atoms.losses[1:] + gaps
    sums = _accumulate(steps[::-1])[::-1] if len(steps) else steps
    return np.append(sums, -np.inf), as_floats(q_above)


def _accumulate(logs: Floats) -> Floats:
    """Logarithm of the sums of the first 1, 2, … of exp(logs): in blocks, each relative to its largest sum."""
    result = np.empty(len(logs))
    before = -math.inf
    for i in range(0, len(logs), _BLOCK):
        part = logs[i : i + _BLOCK]
        top = max(before, float(part.max()))
        # where early sums would underflow beside late ones, the slow way
        if top == -math.inf or top - max(before, float(part[0])) > _SPREAD:
            sums = np.logaddexp.accumulate(np.append(before, part))[1:]
        else:
            with np.errstate(under="ignore", divide="ignore"):
                sums = np.log(np.cumsum(np.exp(part - top)) + math.exp(before - top)) + top
        result[i : i + _BLOCK] = sums
        before = float(sums[-1])
    return result


def tidy(losses: Floats, logs: Floats, infinite: float = 0.0) -> Atoms:
    """Build a law from atoms in any order: sorted, equal losses joined, negligible masses moved up.

    Losses that agree to 14 digits of the largest loss count as equal and join at the upper one, never below.
    """
    if np.isnan(logs).any() or (logs == np.inf).any() or not np.isfinite(losses[logs > -np.inf]).all():
        raise MassError("a mass or a loss is not a number; no figure can be given, please report it")
    keep = logs > -np.inf
    losses, logs = losses[keep], logs[keep]
    order = np.argsort(losses, kind="stable")
    losses, logs = losses[order], logs[order]
    near = 2e-14 * max(float(np.max(np.abs(losses))), 1e-300)
    losses, logs, _ = _join(losses, logs, np.append(np.diff(losses) > near, True))
    heavy = logs >= _NEGLIGIBLE  # looked at after equal losses have joined: a light one may sit on a heavy one
    if not heavy.any():
        heavy[-1] = True
    losses, logs, above = _join(losses, logs, heavy)
    return Atoms(losses=losses, logs=logs, infinite=infinite + above)


def _join(losses: Floats, logs: Floats, last: NDArray[np.bool_]) -> tuple[Floats, Floats, float]:
    """Join each atom with the next marked atom at or above it, and sum the mass that has none."""
    if last.all():
        return losses, logs, 0.0
    group = np.cumsum(np.append(0, last[:-1]))
    kept = int(last.sum())
    above = group >= kept
    top = float(logs.max())
    sums = np.bincount(group[~above], weights=np.exp(np.maximum(logs[~above] - top, -745)), minlength=kept)
    alone = np.diff(np.flatnonzero(last), prepend=-1) == 1
    with np.errstate(divide="ignore"):
        added = np.log(sums) + top
    return losses[last], np.where(alone, logs[last], added), float(np.exp(logs[above]).sum())


def product(one: Atoms, other: Atoms) -> Atoms | None:
    """Law of the sum of two independent losses, exactly; None where it has too many atoms."""
    if len(one.losses) * len(other.losses) > 16 * MOST:
        return None
    losses = np.add.outer(one.losses, other.losses).ravel()
    logs = np.add.outer(one.logs, other.logs).ravel()
    atoms = tidy(losses, logs, one.infinite + (1 - one.infinite) * other.infinite)
    if len(atoms.losses) > MOST:
        return None
    return replace(atoms, error=one.error + other.error + 8 * UNIT)


def power(atoms: Atoms, count: int) -> Atoms | None:
    """Law of the sum of `count` independent losses, exactly; None where it has too many atoms."""
    raised = _power(atoms, count)
    return None if raised is None else replace(raised, error=count * (atoms.error + 16 * UNIT))


def _power(atoms: Atoms, count: int) -> Atoms | None:
    step = _lattice(atoms.losses)
    if len(atoms.losses) == 2:
        return _binomial_power(atoms, count)
    if step is not None and len(atoms.losses) * count <= 1 << 15:
        return _lattice_power(atoms, count, step)
    if count > 1 and (step is not None or _sums(len(atoms.losses), count) > MOST):
        return None  # without a lattice hardly any two sums agree
    raised: Atoms | None = None
    square: Atoms | None = atoms
    while count and square is not None:
        if count & 1:
            raised = square if raised is None else product(raised, square)
            if raised is None:
                return None
        count >>= 1
        square = product(square, square) if count else square
    return raised if square is not None else None


def _sums(values: int, count: int) -> float:
    """Number of sums of `count` terms from `values` values, in any order; ∞ where they are too many anyway."""
    return math.inf if min(values - 1, count) > 60 else math.comb(count + values - 1, min(values - 1, count))


def _lattice(losses: Floats) -> float | None:
    """Step of which all gaps are small multiples, or None."""
    if len(losses) < 2:
        return None
    gaps = np.diff(losses)
    step = float(gaps.min())
    ratios = gaps / step
    whole = np.round(ratios)
    return step if np.max(np.abs(ratios - whole)) < 1e-9 and whole.sum() < 1 << 15 else None


def _lattice_power(atoms: Atoms, count: int, step: float) -> Atoms:
    """Compute the power by direct convolution of positive numbers: every mass keeps its relative accuracy."""
    places = np.round((atoms.losses - atoms.losses[0]) / step).astype(np.int64)
    # what is not quite on the lattice goes up
    stretch = float(atoms.losses[-1] - atoms.losses[0]) / float(places[-1])
    off = max(0.0, float(np.max(atoms.losses - atoms.losses[0] - places * stretch)))
    size = int(places[-1]) + 1
    base = np.zeros(size)
    base[places] = np.exp(atoms.logs)
    masses, square, left = np.ones(1), base, count
    while left:
        if left & 1:
            masses = convolve_masses(masses, square)
        left >>= 1
        if left:
            square = convolve_masses(square, square)
    # losses from the exact ends, so that no step adds up its rounding
    losses = np.linspace(count * float(atoms.losses[0]), count * float(atoms.losses[-1]), len(masses)) + count * off
    with np.errstate(divide="ignore"):
        logs = np.log(masses)
    return tidy(losses, logs, -math.expm1(count * math.log1p(-atoms.infinite)))


def convolve_masses(one: Floats, other: Floats) -> Floats:
    """Convolve two laws by sums of products, without subnormal numbers on the way.

    Masses fall below 1e-308 in the tails; products there keep no digits, and processors take some twenty times as long
    for them. Powers of two change no digit of the others; no sum of masses overflows.
    """
    return as_floats(np.ldexp(np.convolve(np.ldexp(one, _SCALE), np.ldexp(other, _SCALE)), -2 * _SCALE))


def _binomial_power(atoms: Atoms, count: int) -> Atoms | None:
    if count >= 4 * MOST:
        return None
    total = float(np.logaddexp(*atoms.logs))
    logs = binomial_logs(count, float(atoms.logs[1] - atoms.logs[0])) + count * total
    m = np.arange(count + 1)
    losses = m * float(atoms.losses[1]) + (count - m) * float(atoms.losses[0])
    return tidy(losses, logs, -math.expm1(count * math.log1p(-atoms.infinite)))


def binomial_logs(trials: int, log_odds: float) -> Floats:
    """(trials + 1,) ln of the binomial probabilities, from ratios summed outwards from the mode."""
    if trials == 0:
        return np.zeros(1)
    k = np.arange(trials)
    ratios = np.log(trials - k) - np.log(k + 1) + log_odds  # of k + 1 to k
    mode = int(np.searchsorted(-ratios, 0.0))  # ratios fall
    logs = np.zeros(trials + 1)
    logs[mode + 1 :] = np.cumsum(ratios[mode:])
    logs[:mode] = -np.cumsum(ratios[:mode][::-1])[::-1]
    return logs - math.log(float(np.sum(np.exp(logs))))


def fair_binomial(trials: int, *, reach: float) -> tuple[Floats, Floats]:
    """Outcomes of Bin(n, ½) around n/2, and ln of their probabilities.

    Args:
        trials: n.
        reach: Distance from n/2, in units of √n; the outcomes beyond have probability at most 2e^{−2·reach²}
            (Hoeffding).
    """
    width = math.ceil(reach * math.sqrt(trials)) + 2
    low, high = max(0, trials // 2 - width), min(trials, (trials + 1) // 2 + width)
    # from the middle outwards, so that no probability is rounded by more than its distance from the middle makes it
    k = np.arange((trials + 1) // 2, high)
    falls = np.append(0.0, np.cumsum(np.log1p((trials - 2 * k - 1) / (k + 1))))
    logs = np.concatenate([falls[:0:-1] if trials % 2 == 0 else falls[::-1], falls])
    return np.arange(low, high + 1, dtype=np.float64), logs - math.log(float(np.exp(logs).sum()))


def coarsen(atoms: Atoms, most: int) -> Atoms:
    """Build a dominating law with at most about `most` values."""
    if len(atoms.losses) <= most:
        return atoms
    mesh = float(atoms.losses[-1] - atoms.losses[0]) / most
    cells = atoms.cells(mesh, 0.0)
    return tidy(as_floats((cells.start + np.arange(len(cells.masses))) * mesh), _log(cells.masses), cells.infinite)


def thin(atoms: Atoms, most: int) -> Atoms:
    """Build a similar law of at most about `most` values, neighbours joined at their mean loss: for searches only."""
    each = -(-len(atoms.losses) // most)
    if each == 1:
        return atoms
    starts = np.arange(0, len(atoms.losses), each)
    tops = np.maximum.reduceat(atoms.logs, starts)
    masses = np.exp(atoms.logs - np.repeat(tops, each)[: len(atoms.logs)])
    sums = np.add.reduceat(masses, starts)
    means = np.add.reduceat(masses * atoms.losses, starts) / sums
    return Atoms(losses=as_floats(means), logs=as_floats(tops + np.log(sums)), infinite=atoms.infinite)


def _log(masses: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(masses)
    return logs
