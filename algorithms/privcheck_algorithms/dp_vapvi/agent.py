"""The agent of DP-VAPVI (Qiao & Wang 2022, Algorithm 2): pessimistic value iteration on noisy regressions, from H down.

Steps 4 to 14 of the algorithm, `estimate_variance` and `plan`, are functions of the billboard and public inputs alone.
Both halves call them: the agent half (`VapviPass`) for its policy, the privatizer half (`VapviPrivatizer`) for the next
step's V and the weights 1/σ̃² of its exact sums, so that no second billboard is needed. Only the privatizer half reads
data. `AGENT` is the agent that is registered, run (`privcheck.runtime.offline`) and audited. The README beside this
file maps theorems to lines and lists the deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import one_hot
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime import Billboard
from privcheck.runtime.channel import ReleaseChannel
from privcheck.runtime.offline import Learnt, OfflineAgent
from privcheck.runtime.results import Remark, RunRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.baselines.vapvi import OPTIONS as TWIN_OPTIONS
from privcheck_algorithms.baselines.vapvi import vapvi
from privcheck_algorithms.dp_vapvi.declaration import VALUE_HALF, VARIANCE_HALF
from privcheck_algorithms.linear.regression import (
    LinearStatistic,
    NoisyMatrix,
    Visits,
    choose,
    is_weighted,
    linear,
    one_step,
    remark_features,
    sum_over_users,
    visits_at,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicInputs:
    """Public inputs of both halves.

    Attributes:
        phi: (S, A, d) features.
        horizon: H.
        noise_bound: E/2, bound on the norm of all noise matrices of a run, with probability at least 1 − failure.
        ridge: λ + E/2, with E/2 times the option `E_scale`: the ridge of both Gram matrices.
        floor: λ, the floor of eigenvalues.
        pessimism: C√d (step 11).
        offset: D/K (step 11).
    """

    phi: Array
    horizon: int
    noise_bound: float
    ridge: float
    floor: float
    pessimism: float
    offset: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """Result of one step.

    Attributes:
        q: (S, A) Q̂ (step 13).
        actions: (S,) greedy actions (step 14).
        values: (S,) V̂ (step 14).
    """

    q: Array
    actions: NDArray[np.int64]
    values: Array


def prepare(setting: Setting) -> PublicInputs:
    """Public inputs, with the ridge for the declared noise.

    Args:
        setting: Declaration, parameters, options and features.

    Raises:
        ParameterError: Features are missing, or differ in dimension from the declaration.
    """
    features = declared_features(setting)
    H, d = int(setting.values["H"]), features.dimension
    regular, bound = float(setting.options["ridge"]), noise_bound(setting)
    return PublicInputs(
        phi=features.phi,
        horizon=H,
        noise_bound=bound,
        ridge=regular + float(setting.options["E_scale"]) * bound,
        floor=regular,
        pessimism=float(setting.options["C"]) * math.sqrt(d),
        offset=float(setting.options["offset"]),
    )


def declared_features(setting: Setting) -> FeatureMap:
    """Features of the declared dimension.

    Raises:
        ParameterError: Features are missing, or have another dimension.
    """
    features, declared = setting.features, setting.declared
    if features is None:
        message = f"{declared.name} regresses on public features of states and actions: give them with --features FILE"
        raise ParameterError(message, name="features")
    d = int(declared.release("gram").statistic.shape(setting.values)[-1])
    if features.dimension != d:
        message = f"{declared.name} is declared with d = {d}, the features have d = {features.dimension}: set d to that"
        raise ParameterError(message, name="d", given=features.dimension)
    return features


def noise_bound(setting: Setting) -> float:
    """Bound E/2: with probability at least 1 − failure none of the 2H noise matrices of a run has a larger norm.

    (Z + Zᵀ)/√2 with variance v has mean norm at most 2√(vd), and its norm is a √(2v)-Lipschitz function of the normals
    in it, so that √v(2√d + t) fails with probability at most exp(−t²/4) on either side, 4H·exp(−t²/4) in all: Lemma
    E.2's bound with its constants.
    """
    gram = setting.declared.release("gram")
    H, _, d = gram.statistic.shape(setting.values)
    margin = 2 * math.sqrt(math.log(4 * H / float(setting.options["failure"])))
    return float(gram.mechanism.at(setting.values).scale) * (2 * math.sqrt(d) + margin)


def estimate_variance(billboard: Billboard, step: int, public: PublicInputs) -> Array:
    """Variance σ̃²(s, a), (S, A), of V at the next step (steps 4 to 8), from 1 to (H − h + 1)².

    Args:
        billboard: Billboard with the step's statistics of D′.
        step: h − 1.
        public: Public inputs.
    """
    most = public.horizon - step  # H − h + 1
    matrix = NoisyMatrix(billboard.read("gram", part=step), ridge=public.ridge, floor=public.floor)  # step 4
    square = public.phi @ matrix.solve(billboard.read("squared values", part=step))  # step 5: ⟨φ, β̃⟩
    mean = public.phi @ matrix.solve(billboard.read("values", part=step))  # step 6: ⟨φ, θ̃⟩
    spread: Array = np.clip(square, 0.0, most**2) - np.clip(mean, 0.0, most) ** 2  # step 7
    return np.maximum(1.0, spread)  # step 8


def plan(billboard: Billboard, step: int, public: PublicInputs) -> Planned:
    """Policy and values of one step (steps 9 to 14); ties up to rounding go to the lowest action.

    Args:
        billboard: Billboard with the step's statistics of D.
        step: h − 1.
        public: Public inputs.
    """
    most = public.horizon - step
    matrix = NoisyMatrix(billboard.read("weighted gram", part=step), ridge=public.ridge, floor=public.floor)  # step 9
    w = matrix.solve(billboard.read("gains", part=step))  # step 10
    penalty = public.pessimism * matrix.lengths(public.phi) + public.offset  # step 11
    q = np.clip(public.phi @ w - penalty, 0.0, most)  # steps 12 and 13
    actions, values = choose(q, public.horizon)  # step 14
    return Planned(q=q, actions=actions, values=values)


# users take turns (section 4), so that one who is replaced moves nobody else to the other half
HALVES = {"": slice(None), VALUE_HALF: slice(0, None, 2), VARIANCE_HALF: slice(1, None, 2)}


class VapviPrivatizer:
    """Releases the five statistics of a step; it reads the billboard, and only the channel writes there.

    Args:
        data: The users' trajectories.
        setting: Declaration, parameters, options and features.
        channel: Channel for the releases.
        billboard: Billboard with the noisy releases.

    Raises:
        ParameterError: The features differ in size from the data or declaration.
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
        """Release every declared statistic's slice at one step, from 0; the last step comes first."""
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


OPTIONS: Final = (
    *TWIN_OPTIONS,
    Parameter(name="failure", default="0.1", kind="probability", meaning="failure probability of the bound E/2"),
    Parameter(
        name="E_scale", default=9, kind="real", meaning="factor of E/2, the bound on noise matrices; the paper's: 1"
    ),
    Parameter(name="offset", default=0, kind="real", meaning="D/K, taken off every Q; the paper's is not bounded"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VapviPass:
    """The registered agent half; importable, so that audits can run it in any process.

    Attributes:
        public: Public inputs of planning.
        remarks: Remarks on the features.
    """

    public: PublicInputs
    remarks: tuple[Remark, ...] = ()

    def __call__(
        self, billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = lambda: None
    ) -> Learnt:
        """Policy and values from the billboard alone.

        Args:
            billboard: Billboard with the noisy statistics.
            publish: Requests the noisy statistics of one step, from 0; its return value is ignored.
            done: Called after each step.
        """
        public = self.public
        S, A, _ = public.phi.shape
        actions, values = np.empty((public.horizon, S), dtype=np.int64), np.empty((public.horizon, S))
        worthless = raised = 0
        for step in reversed(range(public.horizon)):  # step 3
            publish(step)
            planned = plan(billboard, step, public)
            actions[step], values[step] = planned.actions, planned.values
            worthless += int((planned.q == 0).sum())
            raised += int((estimate_variance(billboard, step, public) > 1).sum())
            done()
        cells = public.horizon * S * A
        return Learnt(
            policy=one_hot(actions, A),
            values=values,
            claimed=float(values[0].min()),  # of the first states nothing is released
            diagnostics={
                "noise_bound": public.noise_bound,
                "ridge": public.ridge,
                "share_of_pairs_worth_nothing": worthless / cells,
                "share_of_pairs_with_variance_above_1": raised / cells,
            },
            remarks=(*self.remarks, *remark(worthless / cells)),
        )


def make_pass(setting: Setting, *, reward: Array | None) -> VapviPass:  # noqa: ARG001 - it regresses on rewards too
    """Make the agent half.

    Raises:
        ParameterError: As for `prepare`.
    """
    return VapviPass(public=prepare(setting), remarks=remark_features(declared_features(setting)))


def remark(worthless: float) -> tuple[Remark, ...]:
    """Remark on the share of all steps, states and actions with Q̂ = 0."""
    if worthless < 1:
        return ()
    text = (
        "The penalty is at least as large as every estimate, so that every Q is 0 and the policy takes the first "
        "action throughout: nothing was learned. Use a smaller C or offset, a larger rho, or more users."
    )
    return (Remark(title="Every Q is 0", text=text),)


def baseline(request: RunRequest) -> float:
    """True return of VAPVI's policy on the same data, in the same halves."""
    setting, data = request.setting, request.data
    assert data.evaluate is not None
    rows = [HALVES[setting.declared.release(name).users] for name in ("gram", "gains")]
    learnt = vapvi(data.trajectories, data.feature_map.phi, setting.options, variance=rows[0], values=rows[1])
    return data.evaluate(learnt.policy)


AGENT = OfflineAgent(make=make_pass, regressing=VapviPrivatizer, baseline=baseline)
