"""The world in which audits run CALIBRATED-LSVI-UCB: a compass, where a user moves tables as far as is charged.

What is charged is attained by two users with equal features and other successors. So both states have the same
features, unit vectors all round, and a user who stays in state 0 and one who stays in the last state move φ·x(s′) by
the whole sensitivity of two states, whatever they are told. The last state pays 1: what users are told next is the
direction in which the noisy sums point to it. Everybody else moves by a fair coin, and leans nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from privcheck.features import FeatureMap
from privcheck.finite_mdp import FiniteMDP
from privcheck.results import World

_DEFAULT: Final = {"H": 2, "A": 8, "d": 2}
_STATES: Final = 2  # with more, opposite features and equal successors are further apart, and no policy tells users so


def make_audit_world(sizes: Mapping[str, int]) -> World:
    """Returns the compass.

    Args:
        sizes: Of it H, A and d are used; those that are missing have a size of ours, A is at least 2. There are always
            two states; coordinates from the third on are 0.

    >>> make_audit_world({"H": 3, "A": 4, "S": 9}).sizes
    {'H': 3, 'S': 2, 'A': 4, 'd': 2, 'd2': 2}
    """
    H, A, d = ({**_DEFAULT, **sizes}[name] for name in _DEFAULT)
    A = max(A, 2)
    angles = 2 * np.pi * np.arange(A) / A
    phi = np.zeros((_STATES, A, max(d, 2)))
    phi[..., 0], phi[..., 1] = np.cos(angles), np.sin(angles)
    reward = np.zeros((1, _STATES, 1, 1))
    reward[0, -1] = 1.0
    coin = np.full((1, _STATES, A, _STATES), 1 / _STATES)
    return World(
        name="compass",
        description="a compass of features; the users who do not differ move by a fair coin",
        mdp=FiniteMDP(horizon=H, transition=coin, reward=reward, initial=np.eye(_STATES)[0]),
        features=FeatureMap(phi=phi[..., :d].copy()),
    )
