"""Joint laws of several outputs computed from one sample, and runs of them.

Given who is in the sample the outputs are independent. So their joint law is (1 − q)∏Zᵢ + q∏Xᵢ in D and (1 − q)∏Zᵢ +
q∏Yᵢ in D′, with Zᵢ, Xᵢ, Yᵢ the laws of output i without the user, with the user of D and with that of D′. Outcomes are
observed up to cells of each output, and merged if their likelihood ratios are nearly equal: merging can only reduce the
loss, so the loss of these laws is a lower bound on the loss of the outputs.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import Noise
from privcheck.declare.procedures.base import Array, Outcomes, Sampler
from privcheck.declare.procedures.mixtures import log_masses, log_moved, normalised

_REACH: Final = 10.0  # standard deviations beyond the outermost values that the cells of a Gaussian number cover
_CELLS: Final = 500  # of a Gaussian number
_DOUBLED: Final = 23  # times that the reach is doubled, by one cell each: no ε bounds the loss of a Gaussian number
_INNER: Final = 24  # cells between two values of a Laplace number
_LINE: Final = 4096  # cells of one ratio, where one of two neighbours tells nothing
_PLANE: Final = 256  # … of either ratio, where both do
_PAIRS: Final = 2**19  # of outcomes of two outputs that are multiplied out
_MERGED: Final = 2**13  # losses that are told apart in the end
_SEEN: Final = -90.0  # ln of a probability below which a cell counts as the outermost one that is more likely
_NOTHING: Final = np.zeros((3, 1))  # the laws of an output that tells nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledNumbers:
    """Noisy numbers, all alike, that a sampled user changes.

    Attributes:
        noise: Noise of each number.
        shifts: Change of the number by the user of D, and by the user of D′, relative to its value without either.
        count: Number of them, with independent noise.
    """

    noise: Noise
    shifts: tuple[float, float]
    count: int = 1

    def laws(self) -> Array:
        """Compute ln of the masses of their cells, (3, cells): without the user, with that of D, with that of D′."""
        return _power(self._laws_of_one(), self.count)

    def _laws_of_one(self) -> Array:
        places = np.array(sorted({0.0, *self.shifts}))
        if self.noise.gaussian:
            reach = _REACH * self.noise.std
            far = reach * 2.0 ** np.arange(1, _DOUBLED)
            near = np.linspace(places[0] - reach, places[-1] + reach, _CELLS)
            edges = np.concatenate([places[0] - far[::-1], near, places[-1] + far])
        else:  # beyond all values the ratios stay as they are
            parts = [np.linspace(*ends, _INNER + 1) for ends in itertools.pairwise(places)]
            edges = np.unique(np.concatenate([places, *parts]))
        laws: Array = np.stack([log_masses(self.noise, edges - shift) for shift in (0.0, *self.shifts)])
        return laws


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledSelection:
    """A selection on the sample, with the user in one of D and D′.

    Attributes:
        words: Description of the scores.
        data: Data with the user and without.
        outcomes: Laws of one query, with the user and without.
        queries: Number of queries, independent given the data.
        sampler: Runs of all queries, with the user on the first data set; None if runs are not supported.
        in_first: Whether the user is in D.
    """

    words: str
    data: tuple[Any, Any]
    outcomes: Outcomes
    queries: int
    sampler: Sampler | None
    in_first: bool

    def laws(self) -> Array:
        """Compute ln of the masses of its outcomes, in the form of `SampledNumbers.laws`."""
        present, absent = self.outcomes.log_p, self.outcomes.log_q
        one = np.stack([absent, present, absent] if self.in_first else [absent, absent, present])
        return _power(one, self.queries)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneSampleRounds:
    """Runs of all rounds, one sample per round, scored by the exact likelihood ratio of all outputs.

    Attributes:
        rate: Probability that a round contains the user.
        moved: The observed noisy numbers.
        chosen: The selections.
        rounds: Number of rounds, each with a fresh sample.
    """

    rate: float
    moved: tuple[SampledNumbers, ...]
    chosen: tuple[SampledSelection, ...]
    rounds: int

    @property
    def numbers(self) -> int:
        """Approximate number of random numbers that one run draws."""
        chosen = sum(one.sampler.numbers for one in self.chosen if one.sampler is not None)
        return self.rounds * (1 + sum(one.count for one in self.moved) + chosen)

    def outcomes(self) -> Outcomes:
        """Laws of one round."""
        each = [*(one.laws() for one in self.moved), *(one.laws() for one in self.chosen)]
        each.sort(key=_directions)  # what tells of the same user alone is merged by one ratio
        laws = functools.reduce(_product, each[:-1], _NOTHING)
        laws = _multiply(laws, each[-1])  # merged by its loss, below
        mixed = np.stack([self._mix(laws[row] - laws[0]) + laws[0] for row in (1, 2)])
        return merge_by_loss(mixed)

    def _mix(self, ratio: Array) -> Array:
        """Compute ln(1 − q + q·e^ratio)."""
        with np.errstate(divide="ignore"):
            mixed: Array = np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + ratio)
        return mixed

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        scores = np.zeros(on_first.size)
        for _ in range(self.rounds):
            held = rng.random(on_first.size) < self.rate  # once, for all that is computed from the sample
            with_first, with_second = np.zeros(on_first.size), np.zeros(on_first.size)
            for one in self.moved:
                mean = np.where(held, np.where(on_first, *one.shifts), 0.0)
                for _ in range(one.count):
                    x = one.noise.draw(rng, on_first.size) + mean
                    with_first += log_moved(one.noise, x, one.shifts[0])
                    with_second += log_moved(one.noise, x, one.shifts[1])
            for selected in self.chosen:
                assert selected.sampler is not None
                ratio = selected.sampler(rng, held & (on_first == selected.in_first))
                if selected.in_first:
                    with_first += ratio
                else:
                    with_second += ratio
            scores += self._mix(with_first) - self._mix(with_second)
        return scores


def merge_by_loss(laws: Array) -> Outcomes:
    """Merge outcomes with nearly equal losses, from ln of their laws, (2, outcomes)."""
    both = np.isfinite(laws).all(axis=0)
    shared, only_one = laws[:, both], laws[:, ~both & np.isfinite(laws).any(axis=0)]
    merged = np.concatenate([_merge(shared, shared[0] - shared[1], _MERGED), only_one], axis=1)
    return Outcomes(log_p=normalised(merged[0]), log_q=normalised(merged[1]))


def _power(one: Array, times: int) -> Array:
    """Joint laws of `times` outputs of one sample with the same laws, by squaring."""
    laws = _NOTHING
    while times:
        laws = _product(laws, one) if times & 1 else laws
        times >>= 1
        one = _product(one, one) if times else one
    return laws


def _product(one: Array, other: Array) -> Array:
    """Joint laws of two outputs of one sample, with outcomes of nearly equal ratios merged."""
    return _merge_alike(_multiply(one, other), _LINE, _PLANE)


def _multiply(one: Array, other: Array) -> Array:
    """Laws of all pairs of outcomes; if there are too many pairs, the outcomes of each output are merged first."""
    if one.shape[1] * other.shape[1] > _PAIRS:
        most = max(math.isqrt(_PAIRS), _PAIRS // min(one.shape[1], other.shape[1]))
        one, other = (_merge_alike(laws, most, math.isqrt(most)) for laws in (one, other))
    return (one[:, :, np.newaxis] + other[:, np.newaxis, :]).reshape(3, -1)


def _directions(laws: Array) -> int:
    """0 if the laws depend only on the user of D, 1 if only on that of D′, 2 if equally on both, otherwise 3."""
    first, second = laws[1] - laws[0], laws[2] - laws[0]
    kinds = (not second.any(), not first.any(), np.array_equal(first, second), True)
    return kinds.index(True)


def _merge_alike(laws: Array, line: int, plane: int) -> Array:
    """Merge outcomes by their ratios: into `line` bins of one ratio, or `plane` bins of each of two."""
    first, second = laws[1] - laws[0], laws[2] - laws[0]
    direction = _directions(laws)
    if direction < 3:
        return _merge(laws, second if direction == 1 else first, line)
    return _merge(laws, first, plane, second)


def _merge(laws: Array, ratio: Array, bins: int, other: Array | None = None) -> Array:
    """Merge outcomes into bins of a ratio, or of two; those with an extreme value of either stay separate."""
    ratios: Sequence[Array] = (ratio,) if other is None else (ratio, other)
    if laws.shape[1] <= bins ** len(ratios):
        return laws
    ends = sorted({int(at) for one in ratios for at in (one.argmin(), one.argmax())})
    apart, laws = laws[:, ends], np.delete(laws, ends, axis=1)
    ratios = [np.delete(one, ends) for one in ratios]
    likely = laws.max(axis=0) > _SEEN
    at = np.zeros(laws.shape[1], np.int64)
    for one in ratios:
        low, high = float(one[likely].min()), float(one[likely].max())
        scaled = (np.clip(one, low, high) - low) * (bins / max(high - low, math.ulp(1.0)))
        at = at * bins + np.minimum(scaled.astype(np.int64), bins - 1)
    at = at.astype(np.uint16)  # at most 2^16 bins: sorted by radix
    order = np.argsort(at, kind="stable")
    starts = np.flatnonzero(np.diff(at[order].astype(np.int64), prepend=-1))
    laws = laws[:, order]
    tops = np.maximum.reduceat(laws, starts, axis=1)
    tops[np.isneginf(tops)] = 0.0
    laws -= np.repeat(tops, np.diff(starts, append=laws.shape[1]), axis=1)
    with np.errstate(divide="ignore", under="ignore"):
        merged = tops + np.log(np.add.reduceat(np.exp(laws, out=laws), starts, axis=1))
    return np.concatenate([apart, merged], axis=1)
