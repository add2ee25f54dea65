"""Steps 4 to 14 of Qiao & Wang's (2022) Algorithm 2: functions of the billboard and of what is public alone.

Both halves call them: the agent half for its policy, the privatizer half for the V of the step after and the weights
1/σ̃², which its exact sums are taken with. What they agree on needs no second billboard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.features import FeatureMap
from privcheck.runtime import Billboard
from privcheck.setting import Setting
from privcheck_algorithms.linear.regression import NoisyMatrix, choose

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Public:
    """What both halves know without any data.

    Attributes:
        phi: (S, A, d) features.
        horizon: H.
        noise_bound: E/2: no noise matrix of a run is longer, with probability at least 1 − failure.
        ridge: λ + E/2, with E/2 times the option `E_scale`: what stands on the diagonal of both Gram matrices.
        floor: λ: no eigenvalue is taken to be smaller.
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
    """What one step comes to.

    Attributes:
        q: (S, A) Q̂ (step 13).
        actions: (S,) greedy actions (step 14).
        values: (S,) V̂ (step 14).
    """

    q: Array
    actions: NDArray[np.int64]
    values: Array


def prepare(setting: Setting) -> Public:
    """Returns what is public, with the ridge that the declared noise asks for.

    Args:
        setting: Declaration, parameters, options and features.

    Raises:
        ParameterError: There are no features, or they have another dimension than the declaration.
    """
    features = declared_features(setting)
    H, d = int(setting.values["H"]), features.dimension
    regular, bound = float(setting.options["ridge"]), noise_bound(setting)
    return Public(
        phi=features.phi,
        horizon=H,
        noise_bound=bound,
        ridge=regular + float(setting.options["E_scale"]) * bound,
        floor=regular,
        pessimism=float(setting.options["C"]) * math.sqrt(d),
        offset=float(setting.options["offset"]),
    )


def declared_features(setting: Setting) -> FeatureMap:
    """Returns the features, of the dimension that is declared.

    Raises:
        ParameterError: There are none, or they have another dimension.
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
    """Returns E/2: with probability at least 1 − failure none of the 2H noise matrices of a run has a larger norm.

    (Z + Zᵀ)/√2 with variance v has mean norm at most 2√(vd), and its norm is a √(2v)-Lipschitz function of the normals
    in it, so that √v(2√d + t) fails with probability at most exp(−t²/4) on either side, 4H·exp(−t²/4) in all: Lemma
    E.2's bound with its constants.
    """
    gram = setting.declared.release("gram")
    H, _, d = gram.statistic.shape(setting.values)
    margin = 2 * math.sqrt(math.log(4 * H / float(setting.options["failure"])))
    return float(gram.mechanism.at(setting.values).scale) * (2 * math.sqrt(d) + margin)


def estimate_variance(billboard: Billboard, step: int, public: Public) -> Array:
    """Returns σ̃²(s, a), (S, A), of V at the step after (steps 4 to 8), from 1 to (H − h + 1)².

    Args:
        billboard: Where the statistics of D′ at the step stand.
        step: h − 1.
        public: What both halves know.
    """
    most = public.horizon - step  # H − h + 1
    matrix = NoisyMatrix(billboard.read("gram", part=step), ridge=public.ridge, floor=public.floor)  # step 4
    square = public.phi @ matrix.solve(billboard.read("squared values", part=step))  # step 5: ⟨φ, β̃⟩
    mean = public.phi @ matrix.solve(billboard.read("values", part=step))  # step 6: ⟨φ, θ̃⟩
    spread: Array = np.clip(square, 0.0, most**2) - np.clip(mean, 0.0, most) ** 2  # step 7
    return np.maximum(1.0, spread)  # step 8


def plan(billboard: Billboard, step: int, public: Public) -> Planned:
    """Returns policy and values of one step (steps 9 to 14); actions that tie up to rounding give way to the lowest.

    Args:
        billboard: Where the statistics of D at the step stand.
        step: h − 1.
        public: What both halves know.
    """
    most = public.horizon - step
    matrix = NoisyMatrix(billboard.read("weighted gram", part=step), ridge=public.ridge, floor=public.floor)  # step 9
    w = matrix.solve(billboard.read("gains", part=step))  # step 10
    penalty = public.pessimism * matrix.lengths(public.phi) + public.offset  # step 11
    q = np.clip(public.phi @ w - penalty, 0.0, most)  # steps 12 and 13
    actions, values = choose(q, public.horizon)  # step 14
    return Planned(q=q, actions=actions, values=values)
