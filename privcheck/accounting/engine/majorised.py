"""Replacement of very many Laplace releases of different scales by fewer that dominate them.

Lemma joined-scales: Shifts of Laplace noise, in its units, between two edges l < h are dominated by h, …, h, l, …, l of
the same number and sum, with as many h as the sum needs, rounded up. Proof: these majorise them, and shifts that
majorise others dominate them [lemma laplace-majorisation].

With close edges the error is small: the variance of the loss grows by at most ((h − l)/2)² per release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

MOST: Final = 128  # different scales that are kept apart
_RATIO: Final = 1.01  # of neighbouring edges
_EDGES: Final = 400  # below the last there is 0: what moves by so little counts as nothing or as that


def majorise(steps: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """(a, count) of Laplace releases that dominate the given ones, with at most about 2·400 different a.

    Args:
        steps: (a, count), a > 0.
    """
    largest = max(a for a, _ in steps)
    edges = [largest * _RATIO**-i for i in range(_EDGES)]
    groups: dict[int, list[tuple[float, int]]] = {}
    for a, count in steps:
        place = min(_EDGES - 1, math.floor(math.log(largest / a) / math.log(_RATIO)))
        while place > 0 and edges[place] < a:  # rounding: never above its upper edge
            place -= 1
        groups.setdefault(place, []).append((a, count))
    counts: dict[float, int] = {}
    for place, members in groups.items():
        high, low = edges[place], edges[place + 1] if place + 1 < _EDGES else 0.0
        if any(a < low for a, _ in members):
            low = min(a for a, _ in members)
        number = sum(count for _, count in members)
        total = sum((Fraction(a) * count for a, count in members), start=Fraction(0))
        above = total - number * Fraction(low)
        tops = math.ceil(above / (Fraction(high) - Fraction(low))) if high > low else number
        counts[high] = counts.get(high, 0) + tops
        if low > 0 and number > tops:
            counts[low] = counts.get(low, 0) + number - tops
    return tuple(sorted(counts.items()))
