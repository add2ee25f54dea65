"""Reading and checking of users' own files; all problems are reported at once, with row numbers."""

from privcheck.data.reading.observations import Bounds, ObservedEpisodes, read_observations, write_observations
from privcheck.data.reading.public_inputs import read_features, read_rewards
from privcheck.data.reading.trajectories import (
    ArrowTable,
    FileTrajectories,
    Held,
    hold_trajectories,
    read_trajectories,
    write_trajectories,
)
from privcheck.data.reading.users import NO_STATEMENT, Users

__all__ = [
    "NO_STATEMENT",
    "ArrowTable",
    "Bounds",
    "FileTrajectories",
    "Held",
    "ObservedEpisodes",
    "Users",
    "hold_trajectories",
    "read_features",
    "read_observations",
    "read_rewards",
    "read_trajectories",
    "write_observations",
    "write_trajectories",
]
