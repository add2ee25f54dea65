"""What linear algorithms regress on: vectors, targets and weights by name, one row a user, one entry a step.

Features φ(s, a) are public functions of a user's own state and action; targets such as V(s′) and weights such as 1/σ²
are functions of the user's own data and of the billboard. Conditional on the billboard, one user's row is all that
differs between neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privcheck.brief import Brief
from privcheck.errors import TrajectoryError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Regressors(Brief):
    """Columns of floats, frozen.

    Attributes:
        vectors: By name, (users, H, d).
        targets: By name, (users, H).
        weights: By name, (users, H), at least 0.

    Raises:
        TrajectoryError: Shapes disagree, there is no vector, a value is not finite or a weight is negative.
    """

    vectors: Mapping[str, NDArray[np.float64]]
    targets: Mapping[str, NDArray[np.float64]]
    weights: Mapping[str, NDArray[np.float64]]

    def __post_init__(self) -> None:
        if not self.vectors:
            raise TrajectoryError("expected at least one column of vectors, got none")
        shape = next(iter(self.vectors.values())).shape[:2]
        for kind, dimensions in (("vectors", 3), ("targets", 2), ("weights", 2)):
            columns = {}
            for name, column in getattr(self, kind).items():
                columns[name] = _freeze(f"{kind} {name!r}", column, dimensions, shape)
                if kind == "weights" and (columns[name] < 0).any():
                    raise TrajectoryError(f"weights {name!r}: expected at least 0, got {columns[name].min():g}")
            object.__setattr__(self, kind, columns)

    @property
    def users(self) -> int:
        """Returns the number of users."""
        return int(next(iter(self.vectors.values())).shape[0])

    @property
    def horizon(self) -> int:
        """Returns the number of steps H."""
        return int(next(iter(self.vectors.values())).shape[1])

    def column(self, kind: str, name: str) -> NDArray[np.float64]:
        """Returns the column of that kind and name.

        Raises:
            TrajectoryError: There is none; the message names those there are.
        """
        columns: Mapping[str, NDArray[np.float64]] = getattr(self, kind)
        if name not in columns:
            raise TrajectoryError(f"no {kind} called {name!r}; expected one of {', '.join(columns) or '(none)'}")
        return columns[name]


def choose_rows(user: Regressors, rows: NDArray[np.intp]) -> Regressors:
    """Returns the chosen rows, in that order."""
    kinds = ("vectors", "targets", "weights")
    return replace(user, **{kind: {n: c[rows] for n, c in getattr(user, kind).items()} for kind in kinds})


def _freeze(name: str, column: NDArray[np.float64], dimensions: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.array(column, dtype=np.float64)
    if array.ndim != dimensions or array.shape[:2] != shape:
        wanted = "(users, H, d)" if dimensions == 3 else "(users, H)"
        raise TrajectoryError(f"{name}: expected shape {wanted} with (users, H) = {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise TrajectoryError(f"{name}: a value is not finite")
    array.flags.writeable = False
    return array
