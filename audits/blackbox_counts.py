"""What is kept of the tested runs: how often each score fell between its edges under each neighbour, and a few sums.

The edges come from the training runs; the tested runs are counted block by block and forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_TAILS: Final = 18  # edges from either end of a score
_FEWEST: Final = 8  # training runs beyond the outermost edge
_HALF_STEP: Final = 2.0**-21  # scores are multiples of 2⁻²⁰: no score is on an edge
CLIPS: Final = (0.5, 1.0, 2.0, 4.0)  # nats, of the score that bounds a Kullback–Leibler divergence

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges:
    """Where each score is cut, ascending.

    Attributes:
        cuts: Of each score.
    """

    cuts: tuple[Array, ...]

    def count(self, scores: Array, secret: Bits, *, moments: bool) -> Counts:
        """Returns the counts of some runs from their scores (scores, runs)."""
        number = max(cut.size for cut in self.cuts) + 1
        inside = np.zeros((len(self.cuts), 2, number), dtype=np.int64)
        for which, (cut, values) in enumerate(zip(self.cuts, scores, strict=True)):
            place = np.searchsorted(cut, values)
            for arm, mine in enumerate((secret, ~secret)):
                inside[which, arm] = np.bincount(place[mine], minlength=number)
        sums = np.zeros((len(self.cuts), len(CLIPS), 2, 6))
        if moments:
            for arm, mine in enumerate((secret, ~secret)):
                for clip, most in enumerate(CLIPS):
                    s = np.clip(scores[:, mine], -most, most)
                    powers = (s, s**2, np.exp(s), np.exp(2 * s), np.exp(-s), np.exp(-2 * s))
                    sums[:, clip, arm] = np.stack([power.sum(axis=1) for power in powers], axis=1)
        return Counts(inside=inside, sums=sums, totals=np.array([secret.sum(), (~secret).sum()]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Counts of runs.

    Attributes:
        inside: (scores, 2, edges + 1) runs on D and on D′ with a score below the first edge, between the first and the
            second, …
        sums: (scores, clips, 2, 6) of s, s², e^s, e^(2s), e^(−s), e^(−2s) over the runs on D and on D′, s clipped; 0
            where they are not wanted.
        totals: (2,) runs on D and on D′.
    """

    inside: NDArray[np.int64]
    sums: Array
    totals: NDArray[np.int64]

    def __add__(self, other: Counts) -> Counts:
        return Counts(inside=self.inside + other.inside, sums=self.sums + other.sums, totals=self.totals + other.totals)

    def none(self) -> Counts:
        """Returns counts of no runs, of the same sizes."""
        return Counts(
            inside=np.zeros_like(self.inside), sums=np.zeros_like(self.sums), totals=np.zeros_like(self.totals)
        )

    @property
    def runs(self) -> int:
        """Returns the number of runs."""
        return int(self.totals.sum())

    def above(self, score: int, edge: int) -> tuple[int, int]:
        """Returns the runs on D and on D′ with a score above the edge."""
        first, other = self.inside[score, :, edge + 1 :].sum(axis=1)
        return int(first), int(other)


def edges(held_out: Array) -> Edges:
    """Returns cuts at equal steps of the logarithm of either tail's mass, and at 0, from training scores."""
    return Edges(cuts=tuple(_cuts(values) for values in held_out))


def _cuts(values: Array) -> Array:
    ordered = np.sort(values)
    n = ordered.size
    ranks = np.unique(np.round(np.geomspace(min(_FEWEST, n), max(1, n // 2), _TAILS)).astype(np.int64))
    ranks = ranks[ranks <= n]
    found = np.concatenate([ordered[ranks - 1] + _HALF_STEP, ordered[n - ranks] - _HALF_STEP, [_HALF_STEP]])
    return np.unique(found)
