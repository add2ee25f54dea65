"""CALIBRATED-VAPVI: pessimistic value iteration from H down, on noisy tables that hold for every V.

The privatizer half sums up users' rounded features; the agent half is the loop over `planning.plan`, which sees a
billboard and never data. `AGENT` is what is registered, run (`privcheck.offline`) and audited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.offline import Learnt, OfflineAgent
from privcheck.planning import one_hot
from privcheck.results import Remark, RunRequest
from privcheck.runtime import Billboard
from privcheck.runtime.channel import ReleaseChannel
from privcheck.setting import Setting
from privcheck.trajectories import Trajectories
from privcheck_algorithms.calibrated_vapvi.declaration import RELEASE
from privcheck_algorithms.calibrated_vapvi.planning import Public, plan, prepare
from privcheck_algorithms.linear.steps import LinearSteps

Array = NDArray[np.float64]

OPTIONS = (
    Parameter(name="C", default="0.3", kind="real", meaning="pessimism, in standard deviations of Q"),
    Parameter(
        name="ridge", default=2, kind="real", meaning="ridge, in units of the norm that the noise on Gram matrices has"
    ),
)
_MOSTLY = 0.5  # below this share of directions above the noise, a policy was learned from noise more than from data


class TablesPrivatizer:
    """Releases the vector of each step.

    Args:
        data: The users' trajectories.
        setting: Declaration, parameters, options and features.
        channel: Where releases go.
        billboard: Not read: the tables depend on no value function.

    Raises:
        ParameterError: The features are of other sizes than data or declaration, or keep no κ as is declared.
    """

    def __init__(self, data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> None:
        self.__data, self._channel = data, channel
        self._public = prepare(setting, reward=np.zeros(1))
        self._tables = setting.released.release(RELEASE).statistic

    def publish(self, step: int) -> None:
        """Releases the vector of one step, counted from 0."""
        self._channel.release(RELEASE, self._tables.compute(self._steps(step), step=0), part=step)

    def _steps(self, step: int) -> LinearSteps:
        """Returns what users did at one step, with as many coordinates as are declared."""
        data, public, here = self.__data, self._public, slice(step, step + 1)
        phi = public.phi[data.states[:, here], data.actions[:, here]]
        missing = public.dimension - phi.shape[-1]
        return LinearSteps(
            phi=np.pad(phi, ((0, 0), (0, 0), (0, missing))),
            following=data.states[:, step + 1 : step + 2].astype(np.int64),
            rewards=data.rewards[:, here],
            states=public.states,
            weights=public.weights,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablesPass:
    """The agent half as it is registered: importable, so that audits can run it in any process.

    Attributes:
        public: What it plans with.
    """

    public: Public

    def __call__(
        self, billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = lambda: None
    ) -> Learnt:
        """Returns policy and values from what is on the billboard alone.

        Args:
            billboard: Where the noisy vectors appear.
            publish: Asks for the noisy vector of one step, counted from 0; what it returns is ignored.
            done: Called after each step.
        """
        public = self.public
        S, A, k = public.phi.shape
        actions, values = np.empty((public.horizon, S), dtype=np.int64), np.empty((public.horizon, S))
        after, seen = np.zeros((1, S)), 0.0
        for step in reversed(range(public.horizon)):
            publish(step)
            planned = plan(billboard.read(RELEASE, part=step)[np.newaxis], after, step, public)
            actions[step], values[step] = planned.actions[0], planned.values[0]
            after = planned.values
            seen += float(planned.seen[0]) / public.horizon
            billboard.retire(step)
            done()
        return Learnt(
            policy=one_hot(actions, A),
            values=values,
            claimed=float(values[0].min()),  # of the first states nothing is released
            diagnostics={
                "noise_std": public.std,
                "ridge": public.ridge,
                "directions": k,
                "share_of_directions_above_noise": seen,
            },
            remarks=remark(seen),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablesBatch:
    """Many passes in one call.

    Attributes:
        public: What they plan with.
    """

    public: Public

    def __call__(self, noisy: Mapping[str, Array]) -> tuple[NDArray[np.int64], Array]:
        """Returns greedy actions and V̂, (B, H, S) each, from noisy vectors (B, H, numbers)."""
        public, vectors = self.public, noisy[RELEASE]
        shape = (len(vectors), public.horizon, public.states)
        actions, values = np.empty(shape, dtype=np.int64), np.empty(shape)
        after = np.zeros((len(vectors), public.states))
        for step in reversed(range(public.horizon)):
            planned = plan(vectors[:, step], after, step, public)
            actions[:, step], values[:, step] = planned.actions, planned.values
            after = planned.values
        return actions, values


def make_pass(setting: Setting, *, reward: Array | None) -> TablesPass:
    """Returns the agent half.

    Raises:
        ParameterError: As for `prepare`.
    """
    return TablesPass(public=prepare(setting, reward=reward))


def make_batch(setting: Setting, reward: Array) -> TablesBatch:
    """Returns many passes in one call.

    Raises:
        ParameterError: As for `prepare`.
    """
    return TablesBatch(public=prepare(setting, reward=reward))


def remark(seen: float) -> tuple[Remark, ...]:
    """Returns what there is to say about a share of directions in which the data lie above the noise."""
    if seen >= _MOSTLY:
        return ()
    text = (
        f"In {100 * seen:.3g} % of the directions of the features the data lie above the noise on their Gram matrix. "
        "The policy was learned from noise and ridge more than from data; it takes more users, or a larger rho."
    )
    return (Remark(title="Learned mostly from noise", text=text),)


def baseline(request: RunRequest) -> float:
    """Returns the true return of the policy that the agent learns from the same tables without noise."""
    data = request.data
    setting = replace(request.setting, features=data.feature_map)
    assert data.evaluate is not None
    silent = _Exact()
    public = prepare(setting, reward=data.reward, noisy=False)
    privatizer = TablesPrivatizer(data.trajectories, setting, silent, silent.billboard)
    return data.evaluate(TablesPass(public=public)(silent.billboard, privatizer.publish).policy)


class _Exact:
    """A channel that draws nothing, for the twin."""

    def __init__(self) -> None:
        self.billboard = Billboard()

    def release(self, name: str, value: Array, *, part: int) -> Array:
        """Returns the exact value, which is now on the twin's own billboard."""
        self.billboard.publish(name, part, value)
        return value


AGENT = OfflineAgent(make=make_pass, regressing=TablesPrivatizer, batch=make_batch, baseline=baseline)
