"""Lockstep replay: run on D, then on D′ behind D's billboard, and compare what reached the channel.

Only auditors and tests use these channels: unlike `Channel` they let exact values out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ChannelError
from privcheck.runtime.billboard import Billboard
from privcheck.runtime.channel import ReleaseChannel


class RecordingChannel:
    """Passes releases on and keeps the exact values.

    Args:
        channel: The channel that releases.

    Attributes:
        exact: The exact value of every slice by (release, part), in the order of release.
    """

    def __init__(self, channel: ReleaseChannel) -> None:
        self._channel = channel
        self.exact: dict[tuple[str, int], NDArray[np.float64]] = {}

    def release(self, name: str, value: NDArray[np.float64], *, part: int) -> NDArray[np.float64]:
        """Returns the noisy value; keeps the exact one."""
        noisy = self._channel.release(name, value, part=part)
        self.exact[name, part] = value.copy()
        return noisy


class ReplayChannel:
    """Answers every release with what stands on a recorded billboard, and keeps the exact values.

    Args:
        billboard: The billboard of the run on D.

    Attributes:
        exact: The exact value of every slice by (release, part), in the order of release.
    """

    def __init__(self, billboard: Billboard) -> None:
        self._billboard = billboard
        self.exact: dict[tuple[str, int], NDArray[np.float64]] = {}

    def release(self, name: str, value: NDArray[np.float64], *, part: int) -> NDArray[np.float64]:
        """Returns D's noisy value; keeps the exact one of D′.

        Raises:
            ChannelError: The slice was asked for twice.
        """
        if (name, part) in self.exact:
            raise ChannelError(f"{name}: slice {part} was released already; each slice is released once", release=name)
        self.exact[name, part] = value.copy()
        return self._billboard.read(name, part=part)
