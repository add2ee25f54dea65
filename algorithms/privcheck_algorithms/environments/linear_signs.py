"""A linear MDP that only learning solves: two states, 256 actions of 8 bits, unknown signs at every step.

P_h(1 | s, a) = (.35, .65)_s + .3·⟨signs(a), μ_h⟩/8 and r = 1{s = 1} are linear in φ(s, a) = (e_s, signs(a)/√8)/√2, of
norm 1 and dimension 10. Made beside the papers' benchmark, `linear-synthetic`, which myopic play nearly solves.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.features import FeatureMap
from privcheck.registry import Environment
from privcheck.results import Dataset, World
from privcheck_algorithms.environments.bits_of_actions import draw_signs, make_model, make_signs
from privcheck_algorithms.environments.simulated import make_world, sample_dataset

BITS = 8
_STREAM = 0x51  # of the draw of the signs


def make_features() -> NDArray[np.float64]:
    """Returns φ(s, a) = (e_s, signs(a)/√8)/√2, shape (2, 256, 10), of norm 1."""
    signs = make_signs(BITS)
    phi = np.empty((2, len(signs), 2 + BITS))
    phi[..., :2] = np.eye(2)[:, np.newaxis]
    phi[..., 2:] = signs / np.sqrt(BITS)
    phi /= np.sqrt(2.0)
    return phi


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the parameter `model` is the seed
    H, number = values["H"], values["model"]
    return make_world(
        name="linear-signs",
        description=f"a linear MDP of 2 states, 256 actions and {H} steps with unknown signs, number {number}",
        mdp=make_model(draw_signs(H=H, bits=BITS, seed=number, stream=_STREAM)),
        features=FeatureMap(phi=make_features()),
        facts={"model seed": number},
    )


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    return sample_dataset(_model, values, seed=seed, public_reward=True)


LINEAR_SIGNS = Environment(
    name="linear-signs",
    title="A linear MDP with unknown signs, which myopic play does not solve",
    source="ours, for the linear agents of Qiao & Wang 2022 and Sahu 2025",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its signs"),
    ),
    sample=_sample,
    model=_model,
)
