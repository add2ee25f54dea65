"""Fresh runs of a linear agent for the policy view: the declared noise, then the paper's post-processing.

In this order: the declared noise of many runs at a time, in all outputs of every release (`streams`); the audit
instance (`Ruler`), small, so that a violation would be visible; the runs (`LinearRuns`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Noise
from privcheck.declare.schedules import EveryEpisode, Once, Tree
from privcheck.declare.statistics import FeatureSums, GramMatrices
from privcheck.errors import ParameterError
from privcheck.runtime.offline import PolicyRuns
from privcheck.runtime.registry import AuditInstance

_MARGIN: Final = 6.0  # t, with which a noise matrix is above √v(2√d + t) with probability at most 2·exp(−t²/4)

Array = NDArray[np.float64]
Draws = Mapping[str, Array]  # by release, (runs, outputs, H, …)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The noise of one release in all its outputs, one after each user, on the sum over all users so far.

    Attributes:
        noise: Noise of one output, or of one node.
        shape: Shape of the statistic, (H, …).
        outputs: Number of outputs.
        kind: "fresh" for separate noise in every output; "one draw" for noise shared by all; "tree" for the sum over
            the nodes of a binary tree that cover the users so far.
    """

    noise: Noise
    shape: tuple[int, ...]
    outputs: int
    kind: Literal["fresh", "one draw", "tree"]

    @property
    def nodes(self) -> int:
        """Largest number of draws in one output."""
        return self.outputs.bit_length() if self.kind == "tree" else 1

    def draw(self, rng: np.random.Generator, runs: int) -> Array:
        """Noise of a number of runs, (runs, outputs, H, …)."""
        if self.kind == "one draw":
            one = self.noise.draw(rng, (runs, 1, *self.shape))
            return np.broadcast_to(one, (runs, self.outputs, *self.shape))
        drawn = self.noise.draw(rng, (runs, self.outputs, *self.shape))
        if self.kind == "tree":  # t users: the node that ends there, after those that cover t less its lowest bit
            for t in range(1, self.outputs + 1):
                before = t & (t - 1)
                if before:
                    drawn[:, t - 1] += drawn[:, before - 1]
        return drawn


def streams(declaration: Declaration, values: Mapping[str, Fraction], outputs: int) -> Mapping[str, Stream]:
    """Declared noise of every release.

    Args:
        declaration: The declaration.
        values: Values of its parameters.
        outputs: Number of outputs; 1 for an offline agent.

    Raises:
        ParameterError: A release's outputs are not sums over all users so far, or cells or releases share its noise.
    """
    for release in declaration.noisy:
        if not isinstance(release.schedule, Once | EveryEpisode | Tree):
            message = f"release {release.name!r}: expected sums over all users so far, got {release.schedule.words}"
            raise ParameterError(message, name="schedule", given=release.name)
        if release.draw.name or "cells" in release.draw.across:
            message = f"release {release.name!r}: noise shared by cells or releases is not drawn here"
            raise ParameterError(message, name="draw", given=release.name)
    return {
        release.name: Stream(
            noise=release.mechanism.at(values),
            shape=release.statistic.shape(values),
            outputs=outputs,
            kind=(
                "one draw"
                if "outputs" in release.draw.across
                else "tree"
                if isinstance(release.schedule, Tree)
                else "fresh"
            ),
        )
        for release in declaration.noisy
    }


def norm_bound(stream: Stream) -> float:
    """Bound on the norm of an output's noise matrix, which fails with probability at most 3·10⁻⁴.

    Of a GOE matrix with variance v above the diagonal the mean is at most 2√(vd), and ‖·‖ is a √(2v)-Lipschitz function
    of the independent normals in it: √v(2√d + t) fails with probability at most exp(−t²/4) on either side. Less
    variance on the diagonal makes it smaller.
    """
    d = stream.shape[-1]
    return float(stream.noise.scale * np.sqrt(stream.nodes) * (2 * np.sqrt(d) + _MARGIN))


EPISODES: Final = 4  # online: of a user each, and as many batches
INSTANCE: Final = AuditInstance(
    sizes={"H": 1, "d": 2, "d1": 2, "d2": 2, "K": EPISODES, "B": EPISODES, "N": EPISODES - 1}
)
_MIDDLE: Final = 0.25  # the length of the first action's feature on the ruler, in units of the longest one
_COARSE: Final = np.linspace(-0.44, 0.44, 16)  # how much longer the second one's is, for noise as it is declared
_FINE: Final = 0.016 * 4.0 ** -np.arange(5)  # and where it is so small that nothing moves the policy along those
_MARKS: Final = np.sort(np.concatenate([_COARSE, _FINE, -_FINE]))
PROBE: Final = _MARKS.size  # the state of the user who differs, after those that compare the two directions
CROWD: Final = PROBE + 1  # the state of the other users of an online agent
HOMES: Final = slice(PROBE, CROWD + 1)  # nobody is ever in another state
NUM_HOMES: Final = 2
STATES: Final = CROWD + 1
ACTIONS: Final = 2

Integers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ruler:
    """The public features, and the user who differs.

    A policy takes the largest of a few Q-values, so that it shows the regression only if two actions are nearly equal.
    The instance is a ruler: states in which the second action's feature has different lengths, so that the state from
    which on the first action is better shows how the weights of the two directions compare. The user who differs visits
    one more state, in which the two actions have orthogonal features of the largest length: in D with the first action,
    in D′ with the second. Online, all other users visit a last state with equal actions: their data do not depend on
    the policy, and favour neither direction. Episodes have one step: the values after it are 0, so that noise is
    smallest relative to a user's contribution, and no policy of more steps shows more.

    Every feature is e₁ or e₂, shortened, or their mean, so that there is a linear MDP with these features.

    Attributes:
        phi: (S, A, d) features.
        norm: Length of the longest feature.
        pair: The user in D and in D′.
        other: Any other user of an online agent.
    """

    phi: Array
    norm: float
    pair: tuple[Trajectories, Trajectories]
    other: Trajectories

    @property
    def homes(self) -> Array:
        """Features of the states that users visit, (2, A, d)."""
        return self.phi[HOMES]

    @property
    def horizon(self) -> int:
        """Number of steps H."""
        return self.other.horizon

    def user(self, second: NDArray[np.int64], *, differs: bool) -> tuple[Integers, Integers, Array]:
        """States of a user among the homes (runs, H + 1), actions (runs, H) and rewards (runs, H).

        Args:
            second: (runs,) 0 for runs on D, 1 for runs on D′.
            differs: Whether the user is the one who differs.
        """
        both = self.pair if differs else (self.other, self.other)
        states, actions, rewards = (
            np.concatenate([getattr(user, name) for user in both])[second] for name in ("states", "actions", "rewards")
        )
        return states - PROBE, actions, rewards


def make_ruler(*, horizon: int, dimension: int, norm: float) -> Ruler:
    """Build the instance.

    Args:
        horizon: H.
        dimension: d, at least 2; coordinates from the third on are 0.
        norm: Length of the longest feature.
    """
    phi = np.zeros((STATES, ACTIONS, dimension))
    phi[:PROBE, 0, 0] = _MIDDLE
    phi[:PROBE, 1, 1] = _MIDDLE * (1 + _MARKS)
    phi[PROBE, 0, 0] = phi[PROBE, 1, 1] = 1.0
    phi[CROWD, :, :2] = 0.5
    return Ruler(
        phi=norm * phi,
        norm=norm,
        pair=(_stays(horizon, state=PROBE, action=0), _stays(horizon, state=PROBE, action=1)),
        other=_stays(horizon, state=CROWD, action=0),
    )


def make_ruler_for(declaration: Declaration, values: Mapping[str, Fraction], release: str) -> Ruler:
    """Build the instance with features as long as a release allows at the first step.

    Args:
        declaration: The declaration.
        values: Values of its parameters, including H.
        release: Name of a release of Gram matrices or of feature sums.
    """
    statistic = declaration.release(release).statistic
    assert isinstance(statistic, GramMatrices | FeatureSums)
    bound = statistic.vector.bound.number({**values, "h": Fraction(1)}, rounding="down")
    return make_ruler(horizon=int(values["H"]), dimension=int(statistic.shape(values)[-1]), norm=bound)


def sum_next_values(visits: Array, value: Array) -> Array:
    """Sum Σ V(s′) by state and action, (runs, 2, A).

    Args:
        visits: (runs, 2, A, 2) visits by s, a, s′, over the states that users visit.
        value: (runs, S) values V.
    """
    total: Array = (visits * value[:, None, None, HOMES]).sum(axis=-1)
    return total


def _stays(horizon: int, *, state: int, action: int) -> Trajectories:
    return Trajectories(
        states=np.full((1, horizon + 1), state, dtype=np.int32),
        actions=np.full((1, horizon), action, dtype=np.int32),
        rewards=np.ones((1, horizon)),
        num_states=STATES,
        num_actions=ACTIONS,
    )


_CHUNK: Final = 512  # runs at a time
_INSTANCE: Final = "a ruler of features"
_LONGEST: Final = "their features are orthogonal, and as long as any"


class LinearAgent(Protocol):
    """Protocol of a linear agent's post-processing of noisy statistics."""

    def __call__(self, ruler: Ruler, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Observed policies, (runs, features).

        Args:
            ruler: The instance.
            noise: (runs, outputs, H, …) noise of every release.
            second: (runs,) 0 for runs on D, 1 for runs on D′.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearRuns:
    """Fresh runs of a linear agent; importable, so that blocks can run in any process.

    Attributes:
        ruler: The instance.
        streams: The noise of every release.
        agent: The paper's post-processing.
    """

    ruler: Ruler
    streams: Mapping[str, Stream]
    agent: LinearAgent

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Observed policies of each run, (runs, features); on D if `on_first`, else on D′."""
        rows = []
        for start in range(0, on_first.size, _CHUNK):
            second = 1 - on_first[start : start + _CHUNK].astype(np.int64)
            noise = {name: stream.draw(rng, second.size) for name, stream in self.streams.items()}
            rows.append(self.agent(self.ruler, noise, second))
        return np.concatenate(rows)


def offline_runs(runs: LinearRuns) -> PolicyRuns:
    """Runs of an agent that learns from a dataset, with descriptions of its output: the policy."""
    return PolicyRuns(
        draw=runs,
        pair=runs.ruler.pair,
        seen="the policy",
        told="the policy that was learned",
        instance=_INSTANCE,
        witness=_LONGEST,
    )


def online_runs(
    runs: LinearRuns, *, seen: str = f"the policies of users 2 to {EPISODES}", remark: str = ""
) -> PolicyRuns:
    """Runs of an agent that learns online, with descriptions of its output: the policies of other users.

    Args:
        runs: The agent, ready to run.
        seen: The observed policies, in words, if not those of all users but the first.
        remark: Remark to add to a result.
    """
    return PolicyRuns(
        draw=runs,
        pair=runs.ruler.pair,
        seen=seen,
        told="the actions recommended to the other users",
        instance=_INSTANCE,
        witness=_LONGEST,
        remark=remark,
    )
