"""The privatizer half of DP-VAPVI: exact sums of users' features, with V and the weights from the billboard."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Release
from privcheck.regressors import Regressors
from privcheck.runtime import Billboard
from privcheck.runtime.channel import ReleaseChannel
from privcheck.setting import Setting
from privcheck.statistics import FeatureSums, GramMatrices
from privcheck.trajectories import Trajectories
from privcheck_algorithms.dp_vapvi.declaration import VALUE_HALF, VARIANCE_HALF
from privcheck_algorithms.dp_vapvi.steps import estimate_variance, plan, prepare
from privcheck_algorithms.linear.users import Visits, one_step, sum_over_users, visits_at

Array = NDArray[np.float64]

# users take turns (line 249), so that one who is replaced moves nobody else to the other half
HALVES = {"": slice(None), VALUE_HALF: slice(0, None, 2), VARIANCE_HALF: slice(1, None, 2)}


class VapviPrivatizer:
    """Releases the five statistics of a step; it reads the billboard, and only the channel writes there.

    Args:
        data: The users' trajectories.
        setting: Declaration, parameters, options and features.
        channel: Where releases go.
        billboard: Where they stand with their noise.

    Raises:
        ParameterError: The features are of other sizes than data or declaration.
    """

    def __init__(self, data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> None:
        self.__data = data
        self._public = prepare(setting)
        self._releases = setting.declared.releases
        self._channel, self._billboard = channel, billboard

    def publish(self, step: int) -> None:
        """Releases every declared statistic's slice at one step, counted from 0; the last step comes first."""
        public = self._public
        S, A, _ = public.phi.shape
        after = np.zeros(S)
        if step < public.horizon - 1:
            after = plan(self._billboard, step + 1, public).values
        self._release(step, after, np.ones((S, A)), weighted=False)  # steps 4 to 6
        self._release(step, after, estimate_variance(self._billboard, step, public), weighted=True)  # steps 9, 10

    def _release(self, step: int, after: Array, spread: Array, *, weighted: bool) -> None:
        phi = self._public.phi

        def columns(visits: Visits) -> Regressors:
            s, a, value = visits.states, visits.actions, after[visits.after]
            return one_step(
                vectors={"phi": phi[s, a]},
                targets={"V": value, "r+V": visits.rewards + value},
                weights={"1/variance": 1 / spread[s, a]},
            )

        for release in self._releases:
            statistic = _linear(release)
            if (statistic.weight is not None) == weighted:
                visits = visits_at(self.__data, step, HALVES[release.users])
                exact = sum_over_users(statistic, visits, columns, dimension=phi.shape[-1])
                self._channel.release(release.name, exact, part=step)


def _linear(release: Release) -> GramMatrices | FeatureSums:
    assert isinstance(release.statistic, GramMatrices | FeatureSums)
    return release.statistic
