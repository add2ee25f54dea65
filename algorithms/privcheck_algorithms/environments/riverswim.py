"""RiverSwim: a chain against a current (Strehl & Littman 2008), as in Chowdhury & Zhou's experiments.

The reward is small and certain at the bank, 1 at the far end, and only long persistence reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privcheck.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import Environment
from privcheck.results import Dataset, World
from privcheck_algorithms.environments.simulated import make_world, sample_dataset

LEFT, RIGHT = 0, 1


def riverswim(states: int, *, H: int) -> FiniteMDP:
    """Returns the chain of S states, two actions and H steps; users start at s = 0.

    Left is certain: s → max(0, s − 1). Right: at s = 0 stay .4, up .6; between, up .35, stay .6, down .05; at S − 1
    stay .6, down .4. Rewards .005 at (0, left) and 1 at (S − 1, right).

    Raises:
        ParameterError: Fewer than 2 states, or no step.
    """
    if states < 2:
        raise ParameterError(f"S: a river has at least 2 states, got {states}", name="S", given=states)
    last = states - 1
    transition = np.zeros((states, 2, states))
    for s in range(states):
        transition[s, LEFT, max(0, s - 1)] = 1.0
    transition[0, RIGHT, [0, 1]] = 0.4, 0.6
    for s in range(1, last):
        transition[s, RIGHT, [s - 1, s, s + 1]] = 0.05, 0.6, 0.35
    transition[last, RIGHT, [last - 1, last]] = 0.4, 0.6
    reward = np.zeros((states, 2, 1))
    reward[0, LEFT], reward[last, RIGHT] = 0.005, 1.0
    return FiniteMDP(horizon=H, transition=transition[None], reward=reward[None], initial=np.eye(states)[0])


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
    """Returns the chain for online agents; the seed is not used, the model is one."""
    H, states = values["H"], values["S"]
    return make_world(
        name="riverswim",
        description=f"RiverSwim with {states} states and {H} steps; users start at the bank (simulated)",
        mdp=riverswim(states, H=H),
    )


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    """Returns users who act uniformly at random; exact values of random, myopic and optimum at this H."""
    return sample_dataset(_model, values, seed=seed, public_reward=True)


RIVERSWIM = Environment(
    name="riverswim",
    title="RiverSwim: a chain against the current",
    source="Strehl & Littman 2008, with the numbers of Chowdhury & Zhou's experiments",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="S", default=6, kind="count", meaning="length of the chain, at least 2"),
    ),
    sample=_sample,
    model=_model,
    usual_for=("online",),
)
