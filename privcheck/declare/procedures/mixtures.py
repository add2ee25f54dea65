"""One number of a sampled round, with a mixture law over how often the user is in it, and runs of all rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noise
from privcheck.declare.procedures.base import Array, Outcomes

if TYPE_CHECKING:
    from privcheck.declare.procedures.sampled_kernels import Moves

_CELLS: Final = 2**12  # about every value that the number has but for the noise, and as many between them all
_NEAR: Final = 9.0  # standard deviations beyond the outermost values that cells of one width cover
_FAR: Final = 1e8  # … that cells in a geometric progression cover: high orders of Rényi divergence live there
_RATIO: Final = 1.02
_GAP: Final = 1e-3  # standard deviations, at least, that a cell is wide
_BULK: Final = 1e-18  # probability of copies below which no cells are made about their place


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Law of one number of a round: noise, shifted once for each time the user is in the round.

    The part that is the same in D and in D′, whoever is drawn, is subtracted.

    Attributes:
        noise: Noise of the number.
        weights: Probabilities that the user is in the round 0, 1, … times.
        shifts: Change of the number by one copy of the user, in D and in D′.
    """

    noise: Noise
    weights: tuple[float, ...]
    shifts: tuple[float, float]

    def outcomes(self) -> Outcomes:
        """Laws of the cell that contains the number, computed in logarithms: accurate in the tails too."""
        edges = self._edges()
        laws = []
        for shift in self.shifts:
            mixed = np.full(edges.size + 1, -np.inf)
            for copies, weight in enumerate(self.weights):
                if weight > 0:
                    part = log_masses(self.noise, edges - copies * shift)
                    mixed = np.logaddexp(mixed, math.log(weight) + part)
            laws.append(normalised(mixed))
        return Outcomes(log_p=laws[0], log_q=laws[1])

    def log_ratio(self, x: Array) -> Array:
        """Compute ln p(x | D) − ln p(x | D′)."""
        first, second = (self._log_against_noise(x, shift) for shift in self.shifts)
        return first - second

    def draw(self, rng: np.random.Generator, on_first: NDArray[np.bool_], rounds: int) -> Array:
        """Draw the number of every round, (runs, rounds)."""
        shift = np.where(on_first, *self.shifts)[:, np.newaxis]
        copies = rng.choice(len(self.weights), size=(on_first.size, rounds), p=np.array(self.weights))
        drawn: Array = self.noise.draw(rng, copies.shape)
        drawn += shift * copies
        return drawn

    def _edges(self) -> Array:
        """Inner edges of the cells, ascending."""
        std = self.noise.std
        most = max(copies for copies, weight in enumerate(self.weights) if weight > _BULK)
        places = {0.0, *(copies * shift for shift in self.shifts for copies in range(1, most + 1))}
        low, high = min(places) - _NEAR * std, max(places) + _NEAR * std
        about = np.linspace(-_NEAR * std, _NEAR * std, max(64, _CELLS // len(places)))
        far = std * _NEAR * _RATIO ** np.arange(1, math.ceil(math.log(_FAR / _NEAR) / math.log(_RATIO)))
        parts = [np.linspace(low, high, _CELLS), low - far, high + far, *(place + about for place in places)]
        return spaced(np.concatenate(parts), np.array(sorted(places)), _GAP * std)

    def _log_against_noise(self, x: Array, shift: float) -> Array:
        """Compute ln Σ wₖ·p(x − k·shift)/p(x)."""
        if shift == 0:
            return np.zeros_like(x)
        mixed = np.full_like(x, math.log(self.weights[0]) if self.weights[0] > 0 else -np.inf)
        for copies, weight in enumerate(self.weights[1:], start=1):
            if weight > 0:
                mixed = np.logaddexp(mixed, math.log(weight) + log_moved(self.noise, x, copies * shift))
        return mixed


def spaced(edges: Array, places: Array, gap: float) -> Array:
    """Merge the places with the edges that keep `gap` to them and to the next edge: narrower cells lose all digits.

    Of places that are closer together than the gap only the largest is kept.
    """
    places = places[np.append(np.diff(places) > gap, True)]
    ordered = np.sort(edges)
    right = np.minimum(np.searchsorted(places, ordered), places.size - 1)
    nearest = np.minimum(np.abs(ordered - places[right]), np.abs(ordered - places[np.maximum(right - 1, 0)]))
    ordered = ordered[nearest > gap]
    kept = ordered[np.append(np.diff(ordered) > gap, True)]
    every: Array = np.sort(np.concatenate([kept, places]))
    return every


def log_moved(noise: Noise, x: Array, shift: float) -> Array:
    """Compute ln p(x − shift)/p(x)."""
    moved: Array = -noise.log_ratio(x[..., np.newaxis], np.array([-shift]))
    return moved


def log_masses(noise: Noise, edges: Array) -> Array:
    """Compute ln P of the cells between ascending edges and beyond both ends, each from the tail that contains it.

    The law must be symmetric: Gaussian or Laplace.
    """
    low, high = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    right = low + high > 0
    right[0], right[-1] = False, True
    upper, lower = log_cdf(noise, np.where(right, -low, high)), log_cdf(noise, np.where(right, -high, low))
    return log_less(upper, lower)


def log_less(larger: Array, smaller: Array) -> Array:
    """Compute ln(e^larger − e^smaller); −∞ if they are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(larger), 0.0, np.minimum(smaller - larger, 0.0))
        less: Array = larger + np.log(-np.expm1(gap))
    return less


def normalised(logs: Array) -> Array:
    """Normalise logarithms of masses so that the masses add up to 1."""
    top = float(logs.max())
    scaled: Array = logs - (top + math.log(float(np.exp(logs - top).sum())))
    return scaled


def log_cdf(noise: Noise, x: Array) -> Array:
    """Compute ln P(noise ≤ x), with full precision in the lower tail; for other laws as precise as their `cdf`."""
    if noise.gaussian:
        from scipy.special import log_ndtr

        gaussian: Array = log_ndtr(x / noise.scale)
        return gaussian
    if not isinstance(noise, LaplaceNoise):
        with np.errstate(divide="ignore"):
            other: Array = np.log(noise.cdf(x))
        return other
    tail = -np.abs(x) / noise.scale - math.log(2)
    return np.where(x < 0, tail, np.log1p(-np.exp(tail)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRounds:
    """Runs of all rounds, scored by the exact likelihood ratio of the observed number.

    Attributes:
        mixture: Law of one round.
        rounds: Number of rounds.
    """

    mixture: Mixture
    rounds: int

    @property
    def numbers(self) -> int:
        """One per round, and one for the number of rounds that contain the user."""
        return self.rounds + 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them; compiled if a round contains the user at most once."""
        moves = moves_of(self.mixture.noise, self.mixture.shifts)
        if moves is None or len(self.mixture.weights) > 2:
            return self._interpreted(rng, on_first)
        from privcheck.declare.procedures.sampled_kernels import add_certain, add_rounds

        scores, rate = np.zeros(on_first.size), self.mixture.weights[1]
        if rate < 1:
            held = (on_first, rng.binomial(self.rounds, rate, size=on_first.size))
            add_rounds(rng, moves, (self.rounds, rate), held, scores)
        else:
            add_certain(rng, moves, self.rounds, on_first, scores)
        return scores

    def _interpreted(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them, for any noise and any number of copies."""
        summed: Array = self.mixture.log_ratio(self.mixture.draw(rng, on_first, self.rounds)).sum(axis=1)
        return summed


def moves_of(noise: Noise, shifts: tuple[float, float]) -> Moves | None:
    """Shifts in units of the noise, for the kernels; None for a law that no kernel draws."""
    from privcheck.declare.procedures.sampled_kernels import Moves

    if type(noise) not in {GaussianNoise, LaplaceNoise}:
        return None
    first, second = (shift / noise.scale for shift in shifts)
    return Moves(first=first, second=second, laplace=type(noise) is LaplaceNoise)
