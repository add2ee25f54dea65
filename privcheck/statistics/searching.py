"""A search for the neighbours among a statistic's own records that move it furthest.

One user among others: alone, among few, and among as many as thresholds on the number of users usually are; the others
typical, all alike, or in corners; the user last, first and in the middle, as statistics may depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Rows = tuple[Any, ...]
Measure = Callable[[Rows], NDArray[np.float64]]
_SMALL: Final = (0, 1, 2, 3)  # others, beside whom all users are compared
LARGE_CROWDS: Final = (  # others, among whom few users are compared: one less than a threshold, or as many
    4, 5, 7, 8, 9, 10, 14, 15, 16, 19, 20, 24, 25, 29, 30, 31, 32, 49, 50, 63, 64, 99, 100, 199, 200, 499, 500, 999,
    1000,
)  # fmt: skip
_FEW: Final = 6  # users who are compared among many others
_CELLS: Final = 2_000_000  # of all tables of one crowd
_FURTHER: Final = 1 + 1e-9
_MOST_WORK: Final = 5_000_000  # cells and rows that are gone through among many others


def furthest_pairs(
    measure: Measure, typical: Sequence[Any], corners: Sequence[Any], *, replaced: bool, stepwise: bool = False
) -> Iterator[tuple[Rows, Rows]]:
    """Yields neighbours, each of which moves the statistic further than all before it in one of three norms.

    Args:
        measure: The statistic of so many records, flat; data of which it raises, or is not finite, is passed over.
        typical: Records as their author draws them.
        corners: Records from corners, and their mirror images.
        replaced: Whether neighbours differ by a replaced record; by one that is there or not, otherwise.
        stepwise: Whether pairs that move an entry by less than all before them are yielded too.
    """
    search = _Search(measure, replaced=replaced, stepwise=stepwise)
    users = [*corners, *typical]
    for size in _SMALL:
        for others in _crowds(size, typical, corners):
            for place in sorted({0, size // 2, size}):
                yield from search.among(others, place, users)
    few = [*search.worst, *users][:_FEW]
    for turn, size in enumerate(LARGE_CROWDS):
        if (size + search.cells) * len(few) * len(LARGE_CROWDS) > _MOST_WORK:
            continue
        for others in _crowds(size, typical, corners):
            yield from search.among(others, (size, size // 2, 0)[turn % 3], few)


def _crowds(size: int, typical: Sequence[Any], corners: Sequence[Any]) -> Iterator[Rows]:
    """Yields the others: typical ones, ones in corners, all like one, and half like one and half like another."""
    yield tuple(typical[i % len(typical)] for i in range(size))
    if size == 0 or not corners:
        return
    yield tuple(corners[i % len(corners)] for i in range(size))
    for alike in corners[:2]:
        yield (alike,) * size
    yield tuple(corners[i * len(corners[:2]) // size] for i in range(size))


class _Search:
    """What has moved it furthest so far."""

    def __init__(self, measure: Measure, *, replaced: bool, stepwise: bool) -> None:
        self._measure, self._replaced, self._stepwise = measure, replaced, stepwise
        self._most = np.zeros(3)  # in ℓ₁, ℓ₂, ℓ∞
        self._least = np.inf  # move of an entry
        self.cells = 1
        self.worst: list[Any] = []

    def among(self, others: Rows, place: int, users: Sequence[Any]) -> Iterator[tuple[Rows, Rows]]:
        """Yields pairs among the same others that beat all before them."""
        sets = [(*others[:place], user, *others[place:]) for user in users]
        known = [
            (rows, user, table) for rows, user in zip(sets, users, strict=True) if (table := self._of(rows)) is not None
        ]
        if not known:
            return
        known = [one for one in known if one[2].shape == known[0][2].shape]
        self.cells = known[0][2].size
        known = known[: max(2, _CELLS // max(1, self.cells * len(known)))]
        tables = np.stack([table for _, _, table in known])
        if self._replaced:
            for i in range(len(known) - 1):
                found = self._best(np.abs(tables[i + 1 :] - tables[i]))
                for j in found:
                    self.worst = [known[i][1], known[i + 1 + j][1], *self.worst[:2]]
                    yield known[i][0], known[i + 1 + j][0]
            return
        without = self._of(others)
        if without is None or without.shape != tables[0].shape:
            return
        for j in self._best(np.abs(tables - without)):
            self.worst = [known[j][1], *self.worst[:3]]
            yield known[j][0], others
            yield others, known[j][0]

    def _of(self, rows: Rows) -> NDArray[np.float64] | None:
        try:
            with np.errstate(all="ignore"):
                table = self._measure(rows)
        except Exception:  # noqa: BLE001 - the author's own code may not know such data; typical records tell
            return None
        return table if np.isfinite(table).all() else None

    def _best(self, moved: NDArray[np.float64]) -> list[int]:
        """Returns which rows of (pairs, cells) moves beat all before them, and remembers how far they go."""
        if not moved.size:
            return []
        sizes = np.stack([moved.sum(axis=1), np.sqrt(np.square(moved).sum(axis=1)), moved.max(axis=1)])
        found = {int(row.argmax()) for row, most in zip(sizes, self._most, strict=True) if row.max() > most * _FURTHER}
        self._most = np.maximum(self._most, sizes.max(axis=1))
        if self._stepwise:
            parts = np.where(moved > 0, moved, np.inf)
            if parts.min() < self._least / _FURTHER:
                found.add(int(parts.min(axis=1).argmin()))
                self._least = float(parts.min())
        return sorted(found)
