"""The world in which audits run CALIBRATED-LINOPT: a user can move every sum as far as it is charged, at every step.

One kernel leads to every state alike, the others push between state 0 and the last one, as the bits of an action say.
So features are equally long at every state and action, and values are least in state 0 and largest in the last one,
which alone is rewarded: two users who always go to one and to the other are at the two ends of the span throughout.
Features of rewards are opposite there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from privcheck.errors import ParameterError
from privcheck.features import FeatureMap
from privcheck.finite_mdp import FiniteMDP
from privcheck.results import World

_DEFAULT: Final = {"H": 4, "S": 3, "A": 4, "d1": 3, "d2": 1}


def audit_world(sizes: Mapping[str, int]) -> World:
    """Returns the world.

    Args:
        sizes: Of it H, S, A, d1 and d2 are used; those that are missing have a size of ours.

    Raises:
        ParameterError: Fewer than two states or kernels.

    >>> audit_world({"H": 3, "S": 2}).sizes
    {'H': 3, 'S': 2, 'A': 4, 'd': 1, 'd2': 1, 'd1': 3}
    """
    at = {name: sizes.get(name, size) for name, size in _DEFAULT.items()}
    for name in ("S", "d1"):
        if at[name] < 2:
            message = f"{name}: the world in which linear mixtures are audited needs at least 2, got {at[name]}"
            raise ParameterError(message, name=name, given=at[name])
    H, S, A, d1, d2 = at.values()
    pushes = d1 - 1
    signs = 1.0 - 2.0 * ((np.arange(A)[:, None] >> (np.arange(pushes) % 8)) & 1)  # (A, d₁ − 1)
    kernels = np.zeros((d1, S, A, S))
    kernels[0] = 1 / S
    kernels[1:, :, :, -1] = signs.T[:, None, :] / (2 * S * pushes)
    kernels[1:, :, :, 0] = -kernels[1:, :, :, -1]
    weights = np.ones(d1)
    weights[2::2] = -1.0
    phi = np.zeros((S, A, d2))
    phi[:-1, :, 0], phi[-1, :, 0] = -1.0, 1.0
    reward = np.zeros((1, S, A, 1))
    reward[:, -1] = 1.0
    transition = np.einsum("i,isat->sat", weights, kernels)[None]
    return World(
        name="pushes",
        description="a linear mixture of pushes between the first state and the last one",
        mdp=FiniteMDP(horizon=H, transition=transition, reward=reward, initial=np.eye(S)[0]),
        features=FeatureMap(phi=phi, kernels=kernels),
    )
