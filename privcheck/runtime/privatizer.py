"""The privatizer: holds the raw data, and hands nothing on but what goes into the channel."""

from __future__ import annotations

from privcheck.declaration import Declaration
from privcheck.runtime.channel import ReleaseChannel
from privcheck.trajectories import Trajectories


class Privatizer:
    """Computes the declared statistics of its data and releases them through a channel.

    It has no method that returns data or exact statistics, and it draws no noise.

    Args:
        data: The users' trajectories.
        declaration: Which statistics are released.
        channel: Where they go.
    """

    def __init__(self, data: Trajectories, declaration: Declaration, channel: ReleaseChannel) -> None:
        self.__data = data
        self._declaration = declaration
        self._channel = channel

    def publish(self, step: int) -> None:
        """Releases every declared statistic's slice at one step, counted from 0."""
        for release in self._declaration.noisy:
            self._channel.release(release.name, release.statistic.compute(self.__data, step=step), part=step)
