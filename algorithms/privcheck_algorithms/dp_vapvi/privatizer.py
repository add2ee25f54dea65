"""The privatizer half of DP-VAPVI: exact sums of users' features, with V and the weights from the billboard."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.regressors import Regressors
from privcheck.runtime import Billboard
from privcheck.runtime.channel import ReleaseChannel
from privcheck.setting import Setting
from privcheck.trajectories import Trajectories
from privcheck_algorithms.dp_vapvi.declaration import VALUE_HALF, VARIANCE_HALF
from privcheck_algorithms.dp_vapvi.steps import estimate_variance, plan, prepare
from privcheck_algorithms.linear.users import (
    LinearStatistic,
    Visits,
    is_weighted,
    linear,
    one_step,
    sum_over_users,
    visits_at,
)

Array = NDArray[np.float64]

# users take turns (section 4), so that one who is replaced moves nobody else to the other half
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
        self._channel, self._billboard = channel, billboard
        released = setting.released.noisy
        self._spreads = {r.name: linear(r) for r in released if not is_weighted(linear(r))}
        self._weighted = {r.name: linear(r) for r in released if is_weighted(linear(r))}
        self._users = {r.name: r.users for r in released}

    def publish(self, step: int) -> None:
        """Releases every declared statistic's slice at one step, counted from 0; the last step comes first."""
        public = self._public
        S, A, _ = public.phi.shape
        after = np.zeros(S)
        if step < public.horizon - 1:
            after = plan(self._billboard, step + 1, public).values
        self._release(self._spreads, step, after, np.ones((S, A)))  # steps 4 to 6
        self._release(self._weighted, step, after, estimate_variance(self._billboard, step, public))  # steps 9 and 10

    def _release(self, statistics: Mapping[str, LinearStatistic], step: int, after: Array, spread: Array) -> None:
        phi, half = self._public.phi, HALVES[self._users[next(iter(statistics))]]

        def columns(visits: Visits) -> Regressors:
            s, a, value = visits.states, visits.actions, after[visits.after]
            return one_step(
                vectors={"phi": phi[s, a]},
                targets={"V": value, "r+V": visits.rewards + value},
                weights={"1/variance": 1 / spread[s, a]},
            )

        exact = sum_over_users(statistics, visits_at(self.__data, step, half), columns, dimension=phi.shape[-1])
        for name, value in exact.items():
            self._channel.release(name, value, part=step)
