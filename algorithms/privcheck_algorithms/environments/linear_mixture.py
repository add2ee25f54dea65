"""RiverSwim as a linear mixture: three known kernels, θ = (.35, .6, .05) at every step, known to no agent.

Right at an inner state: up, stay, down. At the bank the first and the third stay and the second goes up, .4 and .6; at
the far end the second stays and the others go down. Left is certain in all three. The prior θ = ⅓ and the true rewards
plan optimally at the usual sizes: structure alone solves it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.features import FeatureMap
from privcheck.registry import Environment
from privcheck.results import Dataset, World
from privcheck_algorithms.environments.riverswim import LEFT, RIGHT, riverswim
from privcheck_algorithms.environments.simulated import make_world, sample_dataset


def make_kernels(states: int) -> NDArray[np.float64]:
    """Returns ψ_i(s′ | s, a), shape (3, S, 2, S), probabilities all."""
    last = states - 1
    kernels = np.zeros((3, states, 2, states))
    for s in range(states):
        kernels[:, s, LEFT, max(0, s - 1)] = 1.0
        targets = (s + 1, s, s - 1)
        if s == 0:
            targets = (0, 1, 0)
        elif s == last:
            targets = (last - 1, last, last - 1)
        kernels[np.arange(3), s, RIGHT, targets] = 1.0
    return kernels


def make_reward_features(states: int) -> NDArray[np.float64]:
    """Returns φ(s, a), shape (S, 2, 3): one-hot in (0, left), (S − 1, right) and everything else, where r = 0."""
    phi = np.zeros((states, 2, 3))
    phi[..., 2] = 1.0
    phi[0, LEFT], phi[states - 1, RIGHT] = np.eye(3)[0], np.eye(3)[1]
    return phi


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
    H, states = values["H"], values["S"]
    mdp = riverswim(states, H=H)
    return make_world(
        name="linear-mixture",
        description=f"RiverSwim with {states} states and {H} steps, as a mixture of three known kernels (simulated)",
        mdp=mdp,
        features=FeatureMap(phi=make_reward_features(states), kernels=make_kernels(states)),
    )


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    return sample_dataset(_model, values, seed=seed, public_reward=True)


LINEAR_MIXTURE = Environment(
    name="linear-mixture",
    title="RiverSwim as a mixture of three known kernels",
    source="Strehl & Littman 2008, with the numbers of Chowdhury & Zhou's experiments; the kernels are ours",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="S", default=6, kind="count", meaning="length of the chain, at least 2"),
    ),
    sample=_sample,
    model=_model,
)
