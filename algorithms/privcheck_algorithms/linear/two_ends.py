"""The world in which auditors run linear agents: two states at the ends, as far from each other as a user can be moved.

A user who stays in state 0 and one who stays in the last state have orthogonal features with action 0, the pair that
Gram matrices are most sensitive to, and opposite ones with action 1, as feature sums are. The state between them has
both directions at once, so that its policy tells how their weights compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from privcheck.features import FeatureMap
from privcheck.finite_mdp import FiniteMDP
from privcheck.results import World

STATES: Final = 3
ACTIONS: Final = 2
_MIDDLE: Final = 0.5


def two_ends(sizes: Mapping[str, int]) -> World:
    """Returns the world, with unit features of dimension d; states follow one another at random.

    Args:
        sizes: H and d.
    """
    horizon, d = sizes["H"], sizes["d"]
    one, other = np.zeros(d), np.zeros(d)
    one[0] = 1.0
    if d > 1:
        other[1] = 1.0
    phi = np.empty((STATES, ACTIONS, d))
    phi[0] = one
    phi[1, 0], phi[1, 1] = _MIDDLE * (one + other), _MIDDLE * (one - other)
    phi[2, 0], phi[2, 1] = other, -one
    anywhere = np.full((1, STATES, ACTIONS, STATES), 1 / STATES)
    return World(
        name="two ends",
        description="two states whose features are as far apart as a user can be moved, and one between them",
        mdp=FiniteMDP(
            horizon=horizon,
            transition=anywhere,
            reward=np.full(anywhere.shape, 0.5),
            initial=np.full(STATES, 1 / STATES),
        ),
        features=FeatureMap(phi=phi),
    )
