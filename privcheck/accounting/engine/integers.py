"""Discrete Gaussian noise on an integer vector with a shift d, |d|² ≤ Δ²; the worst d is not known.

Lemma integer-gaussian: For 0 < κ < σ² the δ(ε) of discrete Gaussian noise of parameter σ is at most 1 + 2Σ_{n ≥ 1}
e^{−2π²κn²}, once for every coordinate that changes, times the δ(ε) of Gaussian noise of variance σ² − κ, after adaptive
composition too. Proof: let τ² = σ² − κ and Θ(y) = Σ_x e^{−(x − y)²/2κ} over the integers: period 1. Draw y with the
density φ_τ(y − d)Θ(y)/c, then the integer x with probability e^{−(x − y)²/2κ}/Θ(y): x is discrete Gaussian of parameter
σ around the integer d, exactly, and c does not depend on d. For two d the densities of y have the likelihood ratio of
N(0, τ²) and N(d, τ²), and exceed these by a factor of at most max Θ/c ≤ 1 + 2Σ_{n ≥ 1} e^{−2π²κn²} (Poisson summation).
That factor comes out of δ(ε), and in adaptive composition all factors come out of the sum.

Lemma integer-vectors: The law above the curves of all d with |d|² = ⌊Δ²⌋, up to order and sign, whose losses are (|d|²
− 2⟨d, x⟩)/2σ², dominates every d with |d|² ≤ Δ². Proof: after shifting one more coordinate by 1, they dominate any
other d (used for small Δ²).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, tidy
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.hulls import law_above
from privcheck.accounting.engine.laws import Direction, Floats, GaussianLaw, Law, as_floats
from privcheck.accounting.engine.mass import MassError

_FACTOR: Final = 1e-9  # by which δ may be exceeded, once for all coordinates of one release
_REACH: Final = 38.0  # standard deviations: beyond them lies less than 1e-313
_ROUNDING: Final = 1e-11  # relative, of a mass that is a sum of some ten thousand products
_MOST_SQUARE: Final = 30  # of Δ that is enumerated
_MOST_STD: Final = 12.0  # … and σ: from here on the other way is within half a percent
_LEAST_STD: Final = 0.3
_LEAST_MU: Final = 1e-60  # a loss below it is rounded up to it
_BROAD: Final = 8.0  # σ²/κ from which on a continuous Gaussian is better than zCDP


def integer_vector_laws(sigma: float, moved: float) -> tuple[Law, ...] | None:
    """Laws that together dominate one release; None where zCDP is better.

    Args:
        sigma: σ, the parameter of the noise.
        moved: Δ, the ℓ2 sensitivity.
    """
    whole = math.floor(moved * moved * (1 + 1e-12))
    if 1 <= whole <= _MOST_SQUARE and _LEAST_STD <= sigma < _MOST_STD:
        law = AtomicLaw(build=_vector, arguments=(sigma, whole), bound=math.inf, symmetric=True, rounded=True)
        return (law,)
    kappa = math.log(2.001 * max(1, whole) / _FACTOR) / (2 * math.pi**2)
    if sigma < math.sqrt(_BROAD * kappa):
        return None
    factor = AtomicLaw(build=_factor, arguments=(_FACTOR,), bound=0.0, symmetric=True, rounded=True)
    mu = max(moved / sigma, _LEAST_MU)
    return (GaussianLaw(mu * mu / (1 - kappa / sigma / sigma) * (1 + 1e-14)), factor)


def _factor(log_factor: float, _: Direction) -> Atoms:
    """A loss of 0 with a mass above 1: it multiplies the δ of the composition by that factor."""
    return Atoms(losses=np.zeros(1), logs=np.array([log_factor]))


def _vector(sigma: float, square: int, _: Direction) -> Atoms:
    candidates = [_loss(sigma, square, parts) for parts in squares(square)]
    if len(candidates) == 1:
        return candidates[0]
    knots = as_floats(functools.reduce(np.union1d, [atoms.losses for atoms in candidates]))
    worst = np.maximum.reduce([atoms.log_deltas(knots) for atoms in candidates])
    infinite = max(atoms.infinite for atoms in candidates)
    law = law_above(knots, worst + _ROUNDING, infinite=infinite)
    short = worst[:-1] - law.log_deltas(knots[:-1])
    if not np.all(short[~np.isneginf(worst[:-1])] <= _ROUNDING):
        raise MassError(f"discrete Gaussian of σ = {sigma!r} on a vector, Δ² = {square}: a curve leaves its bound")
    return law


def squares(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield all non-increasing sequences of positive integers with that sum of squares."""
    if total == 0:
        yield ()
        return
    for first in range(min(math.isqrt(total), largest or total), 0, -1):
        for rest in squares(total - first * first, first):
            yield (first, *rest)


def _loss(sigma: float, square: int, parts: tuple[int, ...]) -> Atoms:
    """Loss for one d: ⟨d, x⟩ by direct convolution of positive numbers, which keeps every mass's digits."""
    reach = math.ceil(_REACH * sigma * math.sqrt(square))
    masses = np.ones(1)
    for step, times in Counter(parts).items():
        own = _sums(sigma, times)
        spread = np.zeros((len(own) - 1) * step + 1)
        spread[::step] = own
        masses = _cut(np.convolve(masses, spread), reach)
    y = np.arange(len(masses), dtype=np.float64) - len(masses) // 2
    present = masses > 0
    losses = (square - 2 * y[present]) / (2 * sigma**2)
    return tidy(losses[::-1], np.log(masses[present])[::-1])


@functools.lru_cache(maxsize=64)
def _sums(sigma: float, times: int) -> Floats:
    """Law of the sum of `times` discrete Gaussians, around its middle."""
    reach = math.ceil(_REACH * sigma)
    logs = -(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * sigma**2)
    one = as_floats(np.exp(logs) / math.fsum(np.exp(logs).tolist()))
    most = math.ceil(_REACH * sigma * math.sqrt(times))
    return list(itertools.accumulate([one] * times, lambda a, b: _cut(np.convolve(a, b), most)))[-1]


def _cut(masses: Floats, reach: int) -> Floats:
    """Middle of a law; the mass cut off on both sides, below 1e-300, joins the outermost values."""
    half = len(masses) // 2
    if half <= reach:
        return as_floats(masses)
    kept = masses[half - reach : half + reach + 1].copy()
    kept[0] += masses[: half - reach].sum()
    kept[-1] += masses[half + reach + 1 :].sum()
    return as_floats(kept)
