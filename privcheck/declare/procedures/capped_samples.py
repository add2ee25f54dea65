"""Gaussian noise on a capped Poisson sample: the law of its sum if all other users are alike.

K ~ Bin(n − 1, q) of the others are sampled, each of whom adds y. If the user is not sampled, the sum is min(K, B)·y. If
the user is sampled, the sum is K·y + u where K < B; otherwise the user is kept with probability B/(K + 1), in place of
another, so that the sum is (B − 1)·y + u, and is left out with the remaining probability, so that it is B·y. An absent
user never takes a place; a user who contributes nothing does. All these values lie in the plane spanned by both users'
contributions and y, in which the noise is observed up to cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise
from privcheck.declare.procedures.base import Array, Outcomes
from privcheck.declare.procedures.mixtures import log_masses
from privcheck.declare.procedures.sample_laws import merge_by_loss

_REACH: Final = 9.0  # standard deviations beyond the outermost values that cells cover
_LINE: Final = 4000  # cells of one coordinate
_PLANE: Final = 400  # … of each of two
_FLAT: Final = 1e-9  # relative, across a line on which values are taken to lie
_HELD: Final = 1e-200  # probability of a cell, below which it is one outcome with others: doubles have no digits there
_AT_ONCE: Final = 4096  # runs that are scored
MOST_KEPT: Final = 200  # B, beyond which no law is written out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CappedRounds:
    """Runs of all rounds of a capped sample, scored by the exact likelihood ratio of the observed coordinates.

    Attributes:
        rate: q.
        users: n, number of users in the larger data set.
        most: B, below n.
        contributions: (3, coordinates) contributions of the user in D, of the user in D′, and of every other user, over
            the noise's standard deviation.
        present: Whether there is a user in D, and in D′.
        rounds: Number of rounds, each with a fresh sample.
    """

    rate: float
    users: int
    most: int
    contributions: Array
    present: tuple[bool, bool]
    rounds: int

    @property
    def numbers(self) -> int:
        """Approximate number of random numbers that one run draws."""
        return self.rounds * 3

    def outcomes(self) -> Outcomes:
        """Laws of one round."""
        weights, means = self._components()
        noise = GaussianNoise(scale=1.0)
        cells = _LINE if means.shape[2] == 1 else _PLANE
        masses = []
        for axis in np.moveaxis(means, 2, 0):
            edges = np.linspace(axis.min() - _REACH, axis.max() + _REACH, cells)
            masses.append([np.exp([log_masses(noise, edges - mean) for mean in side]) for side in axis])
        laws = []
        for side, weight in enumerate(weights):
            first = masses[0][side] * weight[:, np.newaxis]
            laws.append(first.sum(axis=0) if len(masses) == 1 else (first.T @ masses[1][side]).ravel())
        p, q = laws
        held = np.minimum(p, q) > _HELD
        p, q = (np.append(law[held], max(float(law[~held].sum()), _HELD)) for law in (p, q))
        return merge_by_loss(np.log(np.stack([p, q])))

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        weights, means = self._components()
        scores = np.zeros(on_first.size)
        for _ in range(self.rounds):
            drawn = np.empty((on_first.size, means.shape[2]))
            for side, here in enumerate((on_first, ~on_first)):
                chosen = rng.choice(len(weights[side]), size=int(here.sum()), p=weights[side])
                drawn[here] = means[side][chosen]
            drawn += rng.standard_normal(drawn.shape)
            for start in range(0, len(drawn), _AT_ONCE):
                some = slice(start, start + _AT_ONCE)
                first, second = (_log_density(drawn[some], *side) for side in zip(weights, means, strict=True))
                scores[some] += first - second
        return scores

    def _components(self) -> tuple[Array, Array]:
        """Probabilities of all noiseless values, (2, values), in D and in D′, and the values in the plane."""
        from scipy.special import bdtrc
        from scipy.stats import binom

        others, b, q = self.users - 1, self.most, self.rate
        few = binom.pmf(np.arange(b), others, q)  # K < B
        full = float(bdtrc(b - 1, others, q))
        kept = b / self.users * float(bdtrc(b, self.users, q))  # q·E[B/(K + 1); K ≥ B]
        counts = np.arange(b + 1)
        axes = self._axes()
        weights, means = [], []
        for user, present in zip(self.contributions[:2], self.present, strict=True):
            added, alone = (q, kept) if present else (0.0, 0.0)
            without = np.append(few * (1 - added), full - alone)
            among = np.append(few * added, 0.0)
            among[b - 1] += alone
            weight = np.concatenate([without, among]).clip(0.0)
            weights.append(weight / weight.sum())
            value = counts[:, np.newaxis] * self.contributions[2]
            means.append(np.concatenate([value, value + user]) @ axes.T)
        return np.stack(weights), np.stack(means)

    def _axes(self) -> Array:
        """One or two orthonormal directions spanning all values, or, of three, the two with the largest variation."""
        _, sizes, directions = np.linalg.svd(self.contributions, full_matrices=False)
        axes: Array = directions[: 2 if sizes.size > 1 and sizes[1] > _FLAT * sizes[0] else 1]
        return axes


def _log_density(x: Array, weights: Array, means: Array) -> Array:
    """Compute ln of a mixture's density, up to the constant of the noise."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights) - ((x[:, np.newaxis] - means) ** 2).sum(axis=2) / 2
    density: Array = np.logaddexp.reduce(logs, axis=1)
    return density
