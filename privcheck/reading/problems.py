"""What is wrong with a file, collected: one line a kind of problem, the first places of each, and how many more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

SHOWN = 5  # places of one kind that a message lists


class Problems:
    """A list of problems that grows while a file is looked through.

    Attributes:
        lines: One line a kind of problem.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, what: str, bad: NDArray[np.bool_] | NDArray[np.intp], show: Callable[[int], str]) -> None:
        """Adds one kind of problem, unless it does not occur.

        Args:
            what: What is wrong, what was expected and what to do.
            bad: A mask, or the indices, of where it is wrong.
            show: The place of an index in the file, with what stands there.
        """
        where = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        if not len(where):
            return
        shown = "; ".join(show(int(i)) for i in where[:SHOWN])
        more = f"; and {len(where) - SHOWN:,} more" if len(where) > SHOWN else ""
        self.lines.append(f"{what}: {shown}{more}")

    def say(self, line: str) -> None:
        """Adds a problem that has no place."""
        self.lines.append(line)
