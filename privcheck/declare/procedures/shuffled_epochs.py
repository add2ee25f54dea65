"""One epoch with the user in exactly one batch, at a random position: outcomes that distinguish D from D′.

All batches' numbers are known except for the position of the user: x is noise alone in all but one of T positions.
Three post-processings of them have computable laws, and their losses are lower bounds on the epoch's loss:

* *the largest number*, P(max ≤ z) = F(z)^(T − 1)·F(z − shift): the dominant one if the noise is small;
* *the sum over the numbers of their likelihood ratio*, p(x − s)/p(x), rounded down to a grid. If the user contributes
  nothing in D′ the epoch's likelihood ratio is exactly that sum over T, so that only the rounding is lost. The rounded
  terms are independent nonnegative whole numbers, and all sums beyond the grid are one outcome: the law of the sum is a
  convolution of positive numbers without cancellation;
* *the sum of the numbers*, for Gaussian noise if the user contributes in both: N(shift, Tσ²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise, Noise
from privcheck.declare.procedures.base import Array, Outcomes
from privcheck.declare.procedures.mixtures import (
    Mixture,
    log_cdf,
    log_less,
    log_masses,
    log_moved,
    moves_of,
    normalised,
    spaced,
)

_CELLS: Final = 2**12
_NEAR: Final = 9.0  # standard deviations
_GAP: Final = 1e-3
_FAR: Final = 1e8
_RATIO: Final = 1.02
_GRID: Final = 4000  # values of the sum that are told apart
_SMALL: Final = -37.0  # ln of a number x for which ln(1 − x) is −x to the last digit
_LARGEST: Final = 700.0  # ln of what a double holds
_THIN: Final = 1e-290
_HELD: Final = 1e-200  # far above what thin masses, left out, can add up to
_STDS: Final = 12.0  # of the sum, above its mean, that the grid covers
_MOST: Final = 20_000  # batches up to which sums are convolved


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEpoch:
    """Numbers of the batches of one epoch, one of which, at a random position, contains the user.

    Attributes:
        noise: Noise of each number.
        batches: T, number of batches.
        shifts: Change of the number of the user's batch, in D and in D′.
    """

    noise: Noise
    batches: int
    shifts: tuple[float, float]

    def outcomes(self) -> Iterator[tuple[str, Outcomes]]:
        """Yield each observed quantity in words, with its laws in D and in D′."""
        yield "test on the largest number of an epoch", self._largest()
        summed = self._summed() if 1 < self.batches <= _MOST else None
        if summed is not None:
            yield "test on the summed likelihood ratio of an epoch", summed
        if isinstance(self.noise, GaussianNoise) and 0 not in self.shifts:
            wider = replace(self.noise, scale=self.noise.scale * math.sqrt(self.batches) * (1 + 1e-15))
            total = Mixture(noise=wider, weights=(0.0, 1.0), shifts=self.shifts)
            yield "test on the sum of an epoch's numbers", total.outcomes()

    def log_ratio(self, x: Array) -> Array:
        """Compute ln p(x | D) − ln p(x | D′) of epochs, (…, T)."""
        first, second = (self._log_against_noise(x, shift) for shift in self.shifts)
        return first - second

    def draw(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw the numbers of one epoch, (runs, T)."""
        drawn: Array = self.noise.draw(rng, (on_first.size, self.batches))
        places = rng.integers(0, self.batches, size=on_first.size)
        drawn[np.arange(on_first.size), places] += np.where(on_first, *self.shifts)
        return drawn

    def _log_against_noise(self, x: Array, shift: float) -> Array:
        """Compute ln of the mean over the positions of p(x − shift)/p(x)."""
        if shift == 0:
            return np.zeros(x.shape[:-1])
        mean: Array = np.logaddexp.reduce(log_moved(self.noise, x, shift), axis=-1) - math.log(self.batches)
        return mean

    def _upright(self) -> tuple[float, float]:
        """The shifts, negated if needed so that the longer is positive: the noise is symmetric."""
        first, second = self.shifts
        return (first, second) if max(first, second) >= -min(first, second) else (-first, -second)

    def _largest(self) -> Outcomes:
        """Laws of the cell that contains the largest number."""
        std, shifts = self.noise.std, self._upright()
        places = sorted({0.0, *shifts})
        inner = np.linspace(places[0] - _NEAR * std, places[-1] + _NEAR * std, _CELLS)
        about = np.linspace(-_NEAR * std, _NEAR * std, _CELLS)
        far = std * _NEAR * _RATIO ** np.arange(1, math.ceil(math.log(_FAR / _NEAR) / math.log(_RATIO)))
        parts = [inner, *(place + about for place in places), places[-1] + far]
        edges = spaced(np.concatenate(parts), np.array(places), _GAP * std)
        laws = [self._log_largest(edges, shift) for shift in shifts]
        return Outcomes(log_p=laws[0], log_q=laws[1])

    def _log_largest(self, edges: Array, shift: float) -> Array:
        """Compute ln P of the cells of the largest number; with m = ln(−ln P(max ≤ z)), above the median from 1 − P."""
        m = _log_minus_log_cdf(self.noise, edges - shift)
        if self.batches > 1:
            m = np.logaddexp(m, math.log(self.batches - 1) + _log_minus_log_cdf(self.noise, edges))
        near = -np.exp(np.minimum(m, 700.0))
        with np.errstate(divide="ignore"):
            above = np.where(m < _SMALL, m, np.log(-np.expm1(near)))
        lower, upper = np.concatenate([[-np.inf], near, [0.0]]), np.concatenate([[0.0], above, [-np.inf]])
        from_upper = log_less(upper[:-1], upper[1:])
        return normalised(np.where(lower[1:] < -math.log(2), log_less(lower[1:], lower[:-1]), from_upper))

    def _summed(self) -> Outcomes | None:
        """Laws of the rounded sum; the tails, where the masses are too small for doubles, are one outcome.

        None if all masses are too small: the largest number then distinguishes D from D′.
        """
        shifts = self._upright()
        step = self._step(max(shifts))
        alone, *moved = (self._rounded(max(shifts), step, shift) for shift in (0.0, *shifts))
        others = _power(alone, self.batches - 1)
        p, q = (_convolve(others, law) for law in moved)
        held = np.minimum(p, q) > _HELD
        if not held.any():
            return None
        rest = [float(one[~held].sum()) for one in (p, q)]
        p, q = p[held], q[held]
        p[0] += rest[0]
        q[0] += rest[1]
        return Outcomes(log_p=normalised(np.log(p)), log_q=normalised(np.log(q)))

    def _step(self, longest: float) -> float:
        """Width of the grid: it covers the bulk of the sum plus one large term."""
        std = self.noise.std
        edges = np.linspace(-_NEAR * std, _NEAR * std + longest, _GRID)
        ratios = np.exp(np.minimum(log_moved(self.noise, edges, longest), _LARGEST))
        masses = np.exp(log_masses(self.noise, edges))[1:]
        bulk = min(ratios[-1], self.batches * 10.0)
        spread = math.sqrt(float(masses @ np.minimum(ratios, bulk) ** 2))
        return float(self.batches + _STDS * math.sqrt(self.batches) * spread + bulk) / _GRID

    def _rounded(self, longest: float, step: float, shift: float) -> Array:
        """Law of one number's likelihood ratio, in whole steps, with all mass beyond the grid at its end."""
        logs = np.log(step * np.arange(1, _GRID + 1))
        b = self.noise.scale
        if self.noise.gaussian:
            edges = logs * b * b / longest + longest / 2
        else:  # constant below 0 and above the shift
            inner = (b * logs + longest) / 2
            edges = np.where(logs <= -longest / b, -_FAR * b, np.where(logs > longest / b, _FAR * b, inner))
        far = _FAR * b
        return _thick(np.exp(log_masses(self.noise, np.clip(edges - shift, -far, far))))


def _log_minus_log_cdf(noise: Noise, x: Array) -> Array:
    """Compute ln(−ln P(noise ≤ x)), which is ln P(noise > x) where that is small."""
    tail = log_cdf(noise, -x)
    with np.errstate(divide="ignore"):
        return np.where(tail < _SMALL, tail, np.log(-log_cdf(noise, x)))


def _power(law: Array, times: int) -> Array:
    """Law of the sum of `times` independent terms."""
    total = np.zeros_like(law)
    total[0] = 1.0
    while times:
        if times & 1:
            total = _convolve(total, law)
        times >>= 1
        if times:
            law = _convolve(law, law)
    return total


def _convolve(one: Array, other: Array) -> Array:
    """Law of a sum of whole numbers, with all mass beyond the grid at its end; computed without a transform."""
    summed = np.convolve(one, other)
    summed[_GRID] = summed[_GRID:].sum()
    return _thick(summed[: _GRID + 1])


def _thick(law: Array) -> Array:
    """Set masses at which doubles lose their digits to 0."""
    return np.where(law < _THIN, 0.0, law)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEpochRuns:
    """Runs of all epochs, scored by the exact likelihood ratio of all their numbers.

    Attributes:
        epoch: Law of one epoch.
        epochs: Number of epochs.
    """

    epoch: ShuffledEpoch
    epochs: int

    @property
    def numbers(self) -> int:
        """One per batch."""
        return self.epoch.batches * self.epochs

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them; compiled for Gaussian and Laplace noise."""
        scores, moves = np.zeros(on_first.size), moves_of(self.epoch.noise, self.epoch.shifts)
        if moves is None:
            for _ in range(self.epochs):
                scores += self.epoch.log_ratio(self.epoch.draw(rng, on_first))
            return scores
        from privcheck.declare.procedures.sampled_kernels import add_epochs

        add_epochs(rng, moves, (self.epochs, self.epoch.batches), on_first, scores)
        return scores
