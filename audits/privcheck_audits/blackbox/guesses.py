"""How many guesses of each attempt are right and wrong: all attempts of a pair at once.

Where δ > 0 the number of guesses has to be fixed before (`bounds.CoinFlip`). The runs between two cuts are tied for
that: of the bin in which the last guesses fall, as many are taken as are wanted, whichever they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.counts import Counts

if TYPE_CHECKING:
    from privcheck_audits.blackbox.verdict import Attempt

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guesses:
    """Guesses of attempts on one pair of neighbours.

    Attributes:
        right: Of each attempt (attempts,).
        wrong: Of each attempt.
    """

    right: Numbers
    wrong: Numbers


def beyond_cuts(tried: Sequence[Attempt], counts: Counts) -> Guesses:
    """Returns the runs beyond the attempts' cuts, however many they are."""
    right, wrong = np.zeros((2, len(tried)), dtype=np.int64)
    if not len(tried):
        return Guesses(right=right, wrong=wrong)
    above = _above(counts)
    first, other = counts.totals
    score = np.array([attempt.score for attempt in tried])
    upper = np.array([-1 if attempt.upper is None else attempt.upper for attempt in tried])
    lower = np.array([-1 if attempt.lower is None else attempt.lower for attempt in tried])
    up, down = upper >= 0, lower >= 0
    right[up], wrong[up] = above[score[up], :, upper[up]].T
    right[down] += other - above[score[down], 1, lower[down]]
    wrong[down] += first - above[score[down], 0, lower[down]]
    return Guesses(right=right, wrong=wrong)


def fixed_number(tried: Sequence[Attempt], training: Counts, tested: Counts, rng: np.random.Generator) -> Guesses:
    """Returns guesses of which only their outputs decide which they are, and only the training runs how many.

    Each attempt guesses as large a share of the tested runs as lay beyond its cuts in the training runs: the outermost
    bins, and part of the next one.

    Args:
        tried: All attempts of one pair: above every edge, below it, and both at edges equally far from the ends.
        training: Counts of the training runs.
        tested: Counts of the tested runs.
        rng: Picks the part; the bits have no say in it.
    """
    seen = beyond_cuts(tried, training)
    shares = (seen.right + seen.wrong) / max(1, training.runs)
    numbers = np.minimum(tested.runs, np.maximum(1, np.rint(shares * tested.runs))).astype(np.int64)
    right = np.zeros(len(tried), dtype=np.int64)
    above = _above(tested)
    cuts: dict[int, int] = {}
    for attempt in tried:
        last = max(-1 if edge is None else edge for edge in (attempt.upper, attempt.lower))
        cuts[attempt.score] = max(cuts.get(attempt.score, 0), last + 1)
    for members, score, way in _families(tried):
        for_first, for_other = _rings(above[score, :, : cuts[score]], tested.totals, way)
        reached = np.concatenate([[0], np.cumsum(for_first + for_other)])
        wanted = numbers[members]
        ring = np.minimum(np.searchsorted(reached, wanted, "right") - 1, for_first.size - 1)
        before = np.concatenate([[0], np.cumsum(for_first)])[ring]
        rest = wanted - reached[ring]
        right[members] = before + rng.hypergeometric(for_first[ring], for_other[ring], rest)
    return Guesses(right=right, wrong=numbers - right)


def _above(counts: Counts) -> Numbers:
    """Returns the runs above each edge: (scores, 2, edges)."""
    return np.cumsum(counts.inside[:, :, :0:-1], axis=2)[:, :, ::-1]


def _families(tried: Sequence[Attempt]) -> Iterator[tuple[Numbers, int, tuple[bool, bool]]]:
    """Yields the attempts that guess the same way by the same score: indices, score, whether above and below."""
    ways: dict[tuple[int, tuple[bool, bool]], list[int]] = {}
    for i, attempt in enumerate(tried):
        way = (attempt.upper is not None, attempt.lower is not None)
        ways.setdefault((attempt.score, way), []).append(i)
    for (score, way), members in ways.items():
        yield np.array(members), score, way


def _rings(above: Numbers, totals: Numbers, way: tuple[bool, bool]) -> tuple[Numbers, Numbers]:
    """Returns the right and the wrong guesses of each bin, the outermost first; all runs are in one of them."""
    first, other = np.diff(np.concatenate([totals[:, None], above, np.zeros((2, 1), dtype=np.int64)], axis=1)) * -1
    if way == (True, False):
        return first[::-1], other[::-1]
    if way == (False, True):
        return other, first
    half = first.size // 2
    right = np.concatenate([first[::-1][:half] + other[:half], first[half : first.size - half]])
    wrong = np.concatenate([other[::-1][:half] + first[:half], other[half : first.size - half]])
    return right, wrong
