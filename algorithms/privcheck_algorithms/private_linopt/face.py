"""What auditors see of LinOpt: its four counters in their declared shapes, and what a user adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.online.player import Replicate, Tables
from privcheck.regressors import Regressors
from privcheck.trajectories import Trajectories
from privcheck_algorithms.linear.mixtures import Mixture, regressors

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureFace:
    """Counters of a linear mixture; of a symmetric matrix the entries on and above the diagonal are kept.

    Attributes:
        shapes: The declared shape of each release, (H, d, d) or (H, d), in the order of `privatizer.Layout`.
        known: The mixture.
        episodes: K, after which nothing leaves.
        policy: As in `Face`.
    """

    shapes: Mapping[str, tuple[int, ...]]
    known: Mixture
    episodes: int
    policy: tuple[str, ...]
    board: tuple[str, ...] = ("noisy",)

    def output(self, episode: int) -> int | None:
        """Returns the episode's number; None for the last, which nobody comes after."""
        return episode if episode < self.episodes else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Returns the exact sums over all users so far."""
        return self.tables(one.arrays["exact"])

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the noisy sums."""
        return self.tables(one.arrays["noisy"])

    def undeclared(self, one: Replicate) -> int:
        """Returns by how many numbers the noisy counters are more than what is declared, a matrix counted once."""
        return int(one.arrays["noisy"].size) - sum(numbers(shape) for shape in self.shapes.values())

    def regressors(self, one: Replicate, user: Trajectories) -> Regressors:
        """Returns what the declared statistics take for a user, under V of the episode that was played last."""
        return regressors(self.known, one.arrays["values"], user)

    def tables(self, flat: Array) -> dict[str, Array]:
        """Returns the releases' tables, in their declared shapes."""
        ends = np.cumsum([numbers(shape) for shape in self.shapes.values()])
        parts = np.split(flat[: ends[-1]], ends[:-1])
        return {name: as_table(part, self.shapes[name]) for name, part in zip(self.shapes, parts, strict=True)}


def numbers(shape: tuple[int, ...]) -> int:
    """Returns how many numbers a release of that shape has: of symmetric matrices those on and above the diagonal.

    >>> numbers((3, 4, 4)), numbers((3, 4))
    (30, 12)
    """
    steps, d = shape[:2]
    return steps * (d * (d + 1) // 2 if len(shape) == 3 else d)


def as_table(flat: Array, shape: tuple[int, ...]) -> Array:
    """Returns a copy of a counter in its declared shape.

    >>> as_table(np.arange(3.0), (1, 2, 2)).tolist()
    [[[0.0, 1.0], [1.0, 2.0]]]
    """
    if len(shape) == 2:
        return flat.reshape(shape).copy()
    rows, columns = np.triu_indices(shape[-1])
    table = np.empty(shape)
    table[:, rows, columns] = table[:, columns, rows] = flat.reshape(shape[0], rows.size)
    return table
