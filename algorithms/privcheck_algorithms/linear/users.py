"""Users' data at one step as regressors, and sums of them: the privatizer half of agents that regress on features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Release
from privcheck.regressors import Regressors
from privcheck.statistics import FeatureSums, GramMatrices
from privcheck.statistics.on_grid import OnGrid
from privcheck.trajectories import Trajectories

_NUMBERS: Final = 1 << 22  # of vectors at a time, so that memory does not grow with the number of users

Array = NDArray[np.float64]
Integers = NDArray[np.int32]
LinearStatistic = GramMatrices | FeatureSums | OnGrid
MakeColumns = Callable[["Visits"], Regressors]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visits:
    """What users did at one step, (users,) each.

    Attributes:
        states: s.
        actions: a.
        rewards: r.
        after: s′.
    """

    states: Integers
    actions: Integers
    rewards: Array
    after: Integers

    def parts(self, rows: int) -> Iterator[Visits]:
        """Yields so many users at a time; once where there are none."""
        for start in range(0, max(1, self.states.size), rows):
            part = slice(start, start + rows)
            yield Visits(
                states=self.states[part],
                actions=self.actions[part],
                rewards=self.rewards[part],
                after=self.after[part],
            )


def linear(release: Release) -> LinearStatistic:
    """Returns a release's statistic, which is one of vectors, or one of them on a grid."""
    assert isinstance(release.statistic, GramMatrices | FeatureSums | OnGrid)
    return release.statistic


def is_weighted(statistic: LinearStatistic) -> bool:
    """Returns whether its users carry weights from past releases."""
    weighed = statistic.of if isinstance(statistic, OnGrid) else statistic
    assert isinstance(weighed, GramMatrices | FeatureSums)
    return weighed.weight is not None


def visits_at(data: Trajectories, step: int, users: slice = slice(None)) -> Visits:
    """Returns what users did at one step, counted from 0.

    Args:
        data: All users.
        step: h − 1.
        users: Which of them; they may be none.
    """
    return Visits(
        states=data.states[users, step],
        actions=data.actions[users, step],
        rewards=data.rewards[users, step],
        after=data.states[users, step + 1],
    )


def sum_over_users(
    statistics: Mapping[str, LinearStatistic],
    visits: Visits,
    columns: MakeColumns,
    *,
    dimension: int,
) -> dict[str, Array]:
    """Returns declared statistics of the same users at one step by name, by their own `compute`.

    Args:
        statistics: By name, as they are declared.
        visits: The users at the step.
        columns: Makes the regressors of users at one step: (users, 1, d) vectors, (users, 1) targets and weights.
        dimension: d.
    """
    totals: dict[str, Array] = {}
    for part in visits.parts(max(1, _NUMBERS // dimension)):
        data = columns(part)
        for name, statistic in statistics.items():
            exact = statistic.compute(data, step=0)
            totals[name] = totals[name] + exact if name in totals else exact
    return totals


def one_step(
    *, vectors: Mapping[str, Array], targets: Mapping[str, Array], weights: Mapping[str, Array] | None = None
) -> Regressors:
    """Returns regressors of a single step.

    Args:
        vectors: By name, (users, d).
        targets: By name, (users,).
        weights: By name, (users,).
    """
    return Regressors(
        vectors={name: column[:, np.newaxis] for name, column in vectors.items()},
        targets={name: column[:, np.newaxis] for name, column in targets.items()},
        weights={name: column[:, np.newaxis] for name, column in (weights or {}).items()},
    )
