"""A linear mixture that neither its structure nor its prior solves: 2 states, 16 actions of 4 bits, unknown signs.

P_h(· | s, a) = ψ_0(· | s, a) + Σ_i μ_{h,i}·ψ_i(· | s, a): a base kernel of probabilities, ψ_0(1 | s, a) = (.35, .65)_s,
and four perturbations, ψ_i(1 | s, a) = −ψ_i(0 | s, a) = .3·signs(a)_i/4. So d₁ = 5 and θ_h = (1, μ_h), μ_h ∈ {−1, 1}⁴.
Assumption 1 of Zhou 2022: ‖θ_h‖ = √5 = √d₁, and for V in [0, H] ‖Σ_s′ ψ(s′ | s, a)·V(s′)‖ is at most
H·√(1 + 4·.075²), which is less than √d₁·H. The prior that knows no sign has θ = (1, 0, 0, 0, 0).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.features import FeatureMap
from privcheck.registry import Environment
from privcheck.results import Dataset, World
from privcheck_algorithms.environments.bits_of_actions import BASE, REACH, draw_signs, make_model, make_signs
from privcheck_algorithms.environments.simulated import make_world, sample_dataset

BITS = 4
_STREAM = 0xC0BE  # of the draw of the signs


def make_kernels() -> NDArray[np.float64]:
    """Returns ψ_i(s′ | s, a), shape (5, 2, 16, 2): the base kernel, then one perturbation a bit."""
    signs = make_signs(BITS)
    kernels = np.empty((1 + BITS, 2, len(signs), 2))
    kernels[0, ..., 1] = np.array(BASE)[:, np.newaxis]
    kernels[0, ..., 0] = 1.0 - kernels[0, ..., 1]
    kernels[1:, ..., 1] = REACH * signs.T[:, np.newaxis] / BITS
    kernels[1:, ..., 0] = -kernels[1:, ..., 1]
    return kernels


def make_reward_features() -> NDArray[np.float64]:
    """Returns φ(s, a) = (1{s = 1}, signs(a)/2)/√2, shape (2, 16, 5), of norm at most 1: r = √2·φ_0 is linear in it."""
    signs = make_signs(BITS)
    phi = np.empty((2, len(signs), 1 + BITS))
    phi[..., 0] = np.arange(2.0)[:, np.newaxis]
    phi[..., 1:] = signs / np.sqrt(BITS)
    phi /= np.sqrt(2.0)
    return phi


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the parameter `model` is the seed
    H, number = values["H"], values["model"]
    return make_world(
        name="linear-hypercube",
        description=f"a linear mixture of 2 states, 16 actions and {H} steps with unknown signs, number {number}",
        mdp=make_model(draw_signs(H=H, bits=BITS, seed=number, stream=_STREAM)),
        features=FeatureMap(phi=make_reward_features(), kernels=make_kernels()),
        facts={"model seed": number},
    )


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    return sample_dataset(_model, values, seed=seed, public_reward=True)


LINEAR_HYPERCUBE = Environment(
    name="linear-hypercube",
    title="A linear mixture with unknown signs, which its prior does not solve",
    source="ours, for the agents of Zhou 2022",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=6, kind="count", meaning="steps of an episode"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its signs"),
    ),
    sample=_sample,
    model=_model,
)
