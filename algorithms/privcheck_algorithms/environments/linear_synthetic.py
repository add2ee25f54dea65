"""The synthetic linear MDP of Qiao & Wang's (2022) Appendix G, the benchmark of 001 too, with ‖φ‖ ≤ 1.

Two states, 100 actions, d = 10: φ(s, a) = (bits of a, δ(s, a), 1 − δ(s, a)) with δ = 1 where 1{s = 0} = 1{a = 0}. As
printed, φ is as long as √7 (at most six bits below 100, and one of the last two); φ/√7 with √7·ν_h and √7·θ_h is the
same model. P_h(0 | s, a) is α_{h,1} where δ = 1 and α_{h,2} elsewhere; α and r_h are uniform on [0, 1], drawn from the
seed `model`. The reward of a step is its mean ⟨φ, θ_h⟩, without noise: it lies in [0, 1] as printed, at most
½ + max(r_h, 1 − r_h)/2. It changes with the step and is not public. The first state is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.features import FeatureMap
from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import Environment
from privcheck.results import Dataset, World
from privcheck_algorithms.dp_vapvi.features import ACTIONS, DIMENSION, STATES, make_printed_features
from privcheck_algorithms.environments.simulated import make_world, sample_dataset

_LONGEST = np.sqrt(7.0)  # of the printed features
_STREAM = 0x61  # of the draw of α and r_h
_FIRST = 0.6  # p, the printed behaviour's probability of action 0 (Appendix G)
UNIFORM, PRINTED = 1, 2  # behaviours


def make_features() -> NDArray[np.float64]:
    """Returns φ/√7, shape (2, 100, 10), of norm at most 1."""
    phi = make_printed_features()
    phi /= _LONGEST
    return phi


def draw_model(*, H: int, seed: int) -> FiniteMDP:
    """Returns the model of H steps; per step α_{h,1}, α_{h,2} and r_h are drawn uniformly."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    alpha, r = rng.random((H, 2)), rng.random(H)
    measures = np.zeros((H, DIMENSION, STATES))  # ν_h(s′), Appendix G
    measures[:, 8:, 0], measures[:, 8:, 1] = alpha, 1.0 - alpha
    none, half = np.zeros(H), 0.5 - r / 2  # θ_h, Appendix G
    theta = np.stack([r / 8, none, r / 8, half, r / 8, none, r / 8, none, r / 2, half], axis=-1)
    phi = make_printed_features()
    return FiniteMDP(
        horizon=H,
        transition=np.einsum("sad,hdt->hsat", phi, measures),
        reward=np.einsum("sad,hd->hsa", phi, theta)[..., np.newaxis],
        initial=np.full(STATES, 1.0 / STATES),
    )


def make_behaviour(number: int, H: int) -> NDArray[np.float64] | None:
    """Returns the behaviour policy: 1 the uniform one, None; 2 the printed one (Appendix G), (H, 2, 100).

    Raises:
        ParameterError: There is no behaviour of that number.
    """
    if number not in {UNIFORM, PRINTED}:
        message = (
            f"behaviour: expected {UNIFORM} (every action equally often) or {PRINTED} (action 0 six times in ten, the "
            f"others equally often, as printed), got {number}"
        )
        raise ParameterError(message, name="behaviour", given=number)
    if number == UNIFORM:
        return None
    policy = np.full((H, STATES, ACTIONS), (1 - _FIRST) / (ACTIONS - 1))
    policy[..., 0] = _FIRST
    return policy


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the parameter `model` is the seed
    H, number = values["H"], values["model"]
    return make_world(
        name="linear-synthetic",
        description=f"the synthetic linear MDP of 2 states, 100 actions and {H} steps, number {number} (features / √7)",
        mdp=draw_model(H=H, seed=number),
        features=FeatureMap(phi=make_features()),
        facts={"model seed": number},
    )


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    behaviour = make_behaviour(values["behaviour"], values["H"])
    return sample_dataset(_model, values, seed=seed, public_reward=False, behaviour=behaviour)


LINEAR_SYNTHETIC = Environment(
    name="linear-synthetic",
    title="The papers' synthetic linear MDP, features scaled to norm 1",
    source="Qiao & Wang 2022, Appendix G, after Min et al. 2021 and Yin et al. 2022; the benchmark of Sahu 2025 too",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its draw"),
        Parameter(
            name="behaviour",
            default=UNIFORM,
            kind="count",
            meaning="1 acts uniformly, 2 as printed: action 0 six times in ten; of datasets",
        ),
    ),
    sample=_sample,
    model=_model,
    usual_for=("features",),
)
