"""Episodes from users' own data: `privcheck.data.reading.read_observations`, as agents take them.

The task is the data's public side: how observations are scaled, the actions, the bounds of rewards, the time limit.
Bounds of observations are stated beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privcheck.data.reading import NO_STATEMENT, ArrowTable, Bounds, Users, read_observations
from privcheck.errors import ParameterError
from privcheck.terms.unit import Unit
from privcheck_algorithms.trained.tasks import Episodes, Task


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoggedEpisodes:
    """Episodes of users, with who is protected.

    Attributes:
        episodes: One episode a user, scaled as the task says; users are numbered by the order of episodes' names.
        unit: Who the users are, and on whose word.
        facts: Facts about the file, for a report.
    """

    episodes: Episodes
    unit: Unit
    facts: dict[str, str | int]


def read_episodes(
    given: Path | str | ArrowTable,
    task: Task,
    *,
    low: tuple[float, ...],
    high: tuple[float, ...],
    users: Users = NO_STATEMENT,
) -> LoggedEpisodes:
    """Read episodes with observations, and check every row against the public facts.

    Args:
        given: A .parquet file, or a table in memory, with the columns that `read_observations` names. Actions are the
            places in `task.actions`.
        task: The task; the bounds of rewards and the longest episode are its own.
        low: Least value of each coordinate of an unscaled observation …
        high: … and the largest: public facts.
        users: Statement about the users.

    Raises:
        ParameterError: The bounds are not those of the task's inputs, or a user may have several episodes.
        PrivcheckError: As `read_observations` raises.
    """
    if len(low) != task.inputs:
        message = f"expected bounds of the {task.inputs} numbers that the task observes, got {len(low)}"
        raise ParameterError(message, name="low", given=len(low))
    bounds = Bounds(low=low, high=high, actions=len(task.actions), rewards=task.rewards, limit=task.limit)
    read = read_observations(given, bounds=bounds, users=users)
    if read.unit.trajectories > 1:
        message = f"one {read.unit.who} may have {read.unit.trajectories} episodes, and trainings take one of each"
        raise ParameterError(f"{message}: keep one, and leave --max-trajectories out", name="max_trajectories")
    live = np.arange(read.actions.shape[1]) < read.lengths[:, np.newaxis]
    scaled = (read.observations - np.array(task.centre)) / np.array(task.scale)
    episodes = Episodes(
        observations=np.where(live[..., np.newaxis], scaled, 0.0),
        actions=read.actions,
        rewards=read.rewards,
        users=np.arange(len(read.lengths)),
        lengths=read.lengths,
        terminated=read.terminated,
    )
    return LoggedEpisodes(episodes=episodes, unit=read.unit, facts=dict(read.facts))
