"""Reading users' own files: checked at the door, and what is wrong is said with row numbers, all of it at once."""

from privcheck.reading.features import read_features
from privcheck.reading.held import ArrowTable, Held, hold_trajectories
from privcheck.reading.rewards import read_rewards
from privcheck.reading.trajectories import FileTrajectories, read_trajectories
from privcheck.reading.users import NO_STATEMENT, Users
from privcheck.reading.writing import write_trajectories

__all__ = [
    "NO_STATEMENT",
    "ArrowTable",
    "FileTrajectories",
    "Held",
    "Users",
    "hold_trajectories",
    "read_features",
    "read_rewards",
    "read_trajectories",
    "write_trajectories",
]
