"""CALIBRATED-VAPVI: pessimistic value iteration from H down, on noisy tables that serve every V.

The privatizer half (`TablesPrivatizer`) sums up users' rounded features. The agent half (`TablesPass`) is a loop over
`plan`: ridge regression from a step's noisy vector with the public noise level, and pessimism. `plan` uses the
billboard and public inputs, never data, and plans many runs at a time, as audits need. `AGENT` is the agent that is
registered, run (`privcheck.runtime.offline`) and audited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import one_hot, reward_table
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime import Billboard
from privcheck.runtime.channel import ReleaseChannel
from privcheck.runtime.offline import Learnt, OfflineAgent
from privcheck.runtime.results import Remark, RunRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.calibrated_vapvi.declaration import RELEASE
from privcheck_algorithms.linear.tables import (
    LinearSteps,
    LinearTables,
    Weights,
    refuse_angles,
    round_features,
    simplex,
    unpack,
)

Array = NDArray[np.float64]

_LEAST_RIDGE: Final = 1.0  # λ of LSVI, in users; all that is left where no noise is drawn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicInputs:
    """Public inputs of both halves.

    Attributes:
        phi: (S, A, k) features in rounded coordinates, k the dimension that they span.
        dimension: d ≥ k, the declared dimension; sums of coordinates from k on are pure noise, and are not read.
        horizon: H.
        weights: Squared weights of the tables.
        std: Standard deviation of the noise on every entry of a vector; 0 for the noiseless twin.
        ridge: Ridge on the diagonal of every Gram matrix, in users.
        pessimism: C, in standard deviations of Q̂.
        reward: (S, A, S) public rewards, which are then not in the tables; None if they are in the tables.
    """

    phi: Array
    dimension: int
    horizon: int
    weights: Weights
    std: float
    ridge: float
    pessimism: float
    reward: Array | None

    @property
    def states(self) -> int:
        """Number of states S."""
        return int(self.phi.shape[0])

    @property
    def gram_std(self) -> float:
        """Standard deviation of the noise off the diagonal of a Gram matrix; on it, it is √2 times that."""
        return self.std / math.sqrt(2 * self.weights[0])

    @property
    def gram_noise(self) -> float:
        """Approximate norm of a noise matrix in the k directions, 2√k·`gram_std` (Wigner)."""
        return 2 * math.sqrt(self.phi.shape[-1]) * self.gram_std


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """Result of one step, in every run.

    Attributes:
        actions: (runs, S) greedy actions.
        values: (runs, S) V̂.
        seen: (runs,) share of the k directions with an eigenvalue above the noise.
    """

    actions: NDArray[np.int64]
    values: Array
    seen: Array


def prepare(setting: Setting, *, reward: Array | None, noisy: bool = True) -> PublicInputs:
    """Public inputs, with the ridge for the declared noise.

    Args:
        setting: Declaration, parameters, options and features.
        reward: r(s, a, s′), public; not read if reward sums are released.
        noisy: Whether the declared noise is drawn.

    Raises:
        ParameterError: Features are missing, differ in size from the declaration or violate the declared κ, or the
            reward function is neither public nor released.
    """
    release, values = setting.declared.release(RELEASE), setting.values
    tables = tables_of(setting)
    features = _declared_features(setting)
    phi = round_features(features.phi)
    refuse_angles(phi, tables.least.number(values, rounding="up"))
    if tables.rewards is None and reward is None:
        message = "the reward function of these data is not public, and rewards=known needs one"
        remedy = "release noisy reward sums with --set rewards=released, or give a public one with --rewards FILE"
        raise ParameterError(f"{message}: {remedy}", name="rewards")
    S, A, _ = phi.shape
    weights = tables.weights_at(values)
    public = PublicInputs(
        phi=phi,
        dimension=features.dimension,
        horizon=int(values["H"]),
        weights=weights,
        std=float(release.mechanism.at(values).scale) if noisy else 0.0,
        ridge=_LEAST_RIDGE,
        pessimism=float(setting.options["C"]),
        reward=None if tables.rewards is not None or reward is None else reward_table(reward, S, A),
    )
    return replace(public, ridge=_LEAST_RIDGE + float(setting.options["ridge"]) * public.gram_noise)


def tables_of(setting: Setting) -> LinearTables:
    """The declared tables."""
    tables = setting.declared.release(RELEASE).statistic
    assert isinstance(tables, LinearTables)
    return tables


def plan(vectors: Array, after: Array, step: int, public: PublicInputs) -> Planned:
    """Greedy policy and values of one step, in every run.

    E[V(s′) | s, a] = mean(V) + φᵀM·(XᵀV), with M = Λ⁻¹Σφ·x(s′)ᵀ and Λ the noisy Gram matrix plus ridge. The eigenvalues
    of Λ are raised to at least half the ridge. The penalty is C standard deviations of Q̂, from the noise on sums and
    from sampling.

    Args:
        vectors: (runs, numbers) noisy vectors of the step.
        after: (runs, S) V̂ of the next step.
        step: h − 1.
        public: Public inputs.
    """
    S, A, k = public.phi.shape
    tables = unpack(vectors, dimension=public.dimension, states=S, weights=public.weights)
    assert tables.gram is not None
    eigenvalues, axes = np.linalg.eigh(tables.gram[:, :k, :k])
    damped = np.maximum(eigenvalues + public.ridge, public.ridge / 2)
    loads = (public.phi.reshape(-1, k) @ axes) / damped[:, np.newaxis]  # Λ⁻¹φ of every pair, (runs, S·A, k)
    x = simplex(S)
    successors = _turn(axes, tables.successors[:, :k])  # (runs, k, S − 1)
    if public.reward is None:
        assert tables.rewards is not None
        ahead = after @ x
        targets = _turn(axes, tables.rewards[:, :k, np.newaxis]) + successors @ ahead[..., np.newaxis]
        known = 0.5 + after.mean(axis=1)[:, np.newaxis]
        learned = (loads @ targets)[..., 0]
        moves, rewarded = np.square(ahead).sum(axis=1), 1 / public.weights[2]
        span = 1 + np.ptp(after, axis=1)
    else:
        gains = public.reward.reshape(-1, S) + after[:, np.newaxis]  # r(s, a, s′) + V(s′), (runs, S·A, S)
        ahead = gains @ x
        known = gains.mean(axis=-1)
        learned = np.einsum("bnj,bnj->bn", loads @ successors, ahead)
        moves, rewarded = np.square(ahead).sum(axis=-1).max(axis=1), 0.0
        span = np.ptp(gains, axis=-1).max(axis=1)
    noise = public.std**2 * (rewarded + moves / public.weights[1])
    sampled = np.einsum("bnk,bk->bn", np.square(loads), np.maximum(eigenvalues, 0.0))
    variance = np.square(loads).sum(axis=-1) * noise[:, np.newaxis] + sampled * (span**2)[:, np.newaxis] / 4
    quality = (known + learned - public.pessimism * np.sqrt(variance)).reshape(-1, S, A)
    return Planned(
        actions=quality.argmax(axis=-1),
        values=np.clip(quality.max(axis=-1), 0.0, public.horizon - step),
        seen=(eigenvalues > public.gram_noise).mean(axis=-1),
    )


def _turn(axes: Array, columns: Array) -> Array:
    """Columns (runs, k, …) in the coordinates of the axes."""
    turned: Array = np.swapaxes(axes, -1, -2) @ columns
    return turned


def _declared_features(setting: Setting) -> FeatureMap:
    features, values, name = setting.features, setting.values, setting.declared.name
    if features is None:
        message = f"{name} regresses on public features of states and actions, but none were given"
        raise ParameterError(f"{message}: give them with --features FILE", name="features")
    for size, given in (("S", features.phi.shape[0]), ("d", features.dimension)):
        if int(values[size]) != given:
            message = f"{name} is declared with {size} = {values[size]}, the features are of {size} = {given}"
            raise ParameterError(f"{message}: set {size} to that", name=size, given=given)
    return features


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
        channel: Channel for the releases.
        billboard: Not read: the tables do not depend on a value function.

    Raises:
        ParameterError: The features differ in size from the data or declaration, or violate the declared κ.
    """

    def __init__(self, data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> None:
        self.__data, self._channel = data, channel
        self._public = prepare(setting, reward=np.zeros(1))
        self._tables = setting.released.release(RELEASE).statistic

    def publish(self, step: int) -> None:
        """Release the vector of one step, from 0."""
        self._channel.release(RELEASE, self._tables.compute(self._steps(step), step=0), part=step)

    def _steps(self, step: int) -> LinearSteps:
        """Users' data at one step, padded to the declared number of coordinates."""
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
    """The registered agent half; importable, so that audits can run it in any process.

    Attributes:
        public: Public inputs of planning.
    """

    public: PublicInputs

    def __call__(
        self, billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = lambda: None
    ) -> Learnt:
        """Policy and values from the billboard alone.

        Args:
            billboard: Billboard with the noisy vectors.
            publish: Requests the noisy vector of one step, from 0; its return value is ignored.
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
        public: Public inputs of planning.
    """

    public: PublicInputs

    def __call__(self, noisy: Mapping[str, Array]) -> tuple[NDArray[np.int64], Array]:
        """Greedy actions and V̂, (B, H, S) each, from noisy vectors (B, H, numbers)."""
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
    """Make the agent half.

    Raises:
        ParameterError: As for `prepare`.
    """
    return TablesPass(public=prepare(setting, reward=reward))


def make_batch(setting: Setting, reward: Array) -> TablesBatch:
    """Make an agent half for many passes in one call.

    Raises:
        ParameterError: As for `prepare`.
    """
    return TablesBatch(public=prepare(setting, reward=reward))


def remark(seen: float) -> tuple[Remark, ...]:
    """Remark on the share of directions in which the data exceed the noise."""
    if seen >= _MOSTLY:
        return ()
    text = (
        f"In {100 * seen:.3g} % of the directions of the features the data lie above the noise on their Gram matrix. "
        "The policy was learned more from noise and ridge than from data; use more users or a larger rho."
    )
    return (Remark(title="Learned mostly from noise", text=text),)


def baseline(request: RunRequest) -> float:
    """True return of the policy learned from the same tables without noise."""
    data = request.data
    setting = replace(request.setting, features=data.feature_map)
    assert data.evaluate is not None
    silent = _Exact()
    public = prepare(setting, reward=data.reward, noisy=False)
    privatizer = TablesPrivatizer(data.trajectories, setting, silent, silent.billboard)
    return data.evaluate(TablesPass(public=public)(silent.billboard, privatizer.publish).policy)


class _Exact:
    """A channel without noise, for the twin."""

    def __init__(self) -> None:
        self.billboard = Billboard()

    def release(self, name: str, value: Array, *, part: int) -> Array:
        """Post the exact value on the twin's billboard and return it."""
        self.billboard.publish(name, part, value)
        return value


AGENT = OfflineAgent(make=make_pass, regressing=TablesPrivatizer, batch=make_batch, baseline=baseline)
