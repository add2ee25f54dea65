"""What is kept of the tested runs: how often each score fell between its edges under each neighbour, and a few sums.

The edges come from the training runs; the tested runs are counted block by block and forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.bounds import DivergencePlan, Moments, moments

_TAILS: Final = 24  # edges from either end of a score
_FEWEST: Final = 8  # training runs beyond the outermost edge
_HALF_STEP: Final = 2.0**-21  # scores are multiples of 2⁻²⁰: no score is on an edge

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges:
    """Where each score is cut, ascending.

    Attributes:
        cuts: Of each score.
    """

    cuts: tuple[Array, ...]

    def count(self, scores: Array, secret: Bits, divergences: Sequence[DivergencePlan] = ()) -> Counts:
        """Returns the counts of some runs from their scores (scores, runs).

        Args:
            scores: Of each score and run.
            secret: (runs,) whether the run was on D.
            divergences: What is summed for bounds on a divergence; nothing where none is wanted.
        """
        number = max(cut.size for cut in self.cuts) + 1
        inside = np.zeros((len(self.cuts), 2, number), dtype=np.int64)
        for which, (cut, values) in enumerate(zip(self.cuts, scores, strict=True)):
            place = np.searchsorted(cut, values)
            for arm, mine in enumerate((secret, ~secret)):
                inside[which, arm] = np.bincount(place[mine], minlength=number)
        sums = tuple(moments(values, secret, plan) for values in scores for plan in divergences)
        return Counts(inside=inside, sums=sums, totals=np.array([secret.sum(), (~secret).sum()]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Counts of runs.

    Attributes:
        inside: (scores, 2, edges + 1) runs on D and on D′ with a score below the first edge, between the first and the
            second, …
        sums: What each score gives each divergence plan, score by score; empty where none is wanted.
        totals: (2,) runs on D and on D′.
    """

    inside: NDArray[np.int64]
    sums: tuple[Moments, ...]
    totals: NDArray[np.int64]

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            inside=self.inside + other.inside,
            sums=tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            totals=self.totals + other.totals,
        )

    def none(self) -> Counts:
        """Returns counts of no runs, of the same sizes."""
        nothing = tuple(
            Moments(pairs=0, sums=(0.0,) * len(each.sums), squares=(0.0,) * len(each.sums)) for each in self.sums
        )
        return Counts(inside=np.zeros_like(self.inside), sums=nothing, totals=np.zeros_like(self.totals))

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
    cuts = np.concatenate([ordered[ranks - 1] + _HALF_STEP, ordered[n - ranks] - _HALF_STEP, [_HALF_STEP]])
    return np.unique(cuts)
