"""CALIBRATED-LSVI-UCB: the least regret of this package's algorithms in linear MDPs under ρ-zCDP.

This file has the audit world and the registration; beside it are `declaration`, `agent` and `kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP
from privcheck.runtime.registry import Algorithm, AuditInstance
from privcheck.runtime.results import World
from privcheck_algorithms.calibrated_lsvi_ucb.agent import OPTIONS, player
from privcheck_algorithms.calibrated_lsvi_ucb.declaration import FEATURES, GRAM, REWARDS, declare_calibrated

_DEFAULT: Final = {"H": 2, "A": 8, "d": 2}
_STATES: Final = 2  # with more, opposite features and equal successors are further apart, and no policy tells users so


def make_audit_world(sizes: Mapping[str, int]) -> World:
    """Build the compass.

    A user can change the tables by their full sensitivity, which two users with equal features and different successors
    attain. So both states have the same features, unit vectors in all directions, and users who stay in state 0 or in
    the last state differ in φ·x(s′) by the whole sensitivity of two states, for any policy. The last state has reward
    1: the next policy shows the direction in which the noisy sums point to it. All other users move by a fair coin, and
    favour no direction.

    Args:
        sizes: Sizes, of which H, A and d are used; missing ones have defaults, and A is at least 2. There are always
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
        description="a compass of features; the other users move by a fair coin",
        mdp=FiniteMDP(horizon=H, transition=coin, reward=reward, initial=np.eye(_STATES)[0]),
        features=FeatureMap(phi=phi[..., :d].copy()),
    )


CALIBRATED_LSVI_UCB = Algorithm(
    name="calibrated-lsvi-ucb",
    title="CALIBRATED-LSVI-UCB: posterior sampling from V-free sums of disjoint batches, with the least noise",
    source="this package; README of calibrated_lsvi_ucb",
    declare=declare_calibrated,
    readings=(GRAM, REWARDS, FEATURES),
    options=OPTIONS,
    online=player,
    twin="calibrated-lsvi-ucb",
    # small batches, hardly a prior and models that are not moved: policies follow the noisy tables closely
    instance=AuditInstance(
        sizes={"H": 2, "S": 2, "A": 8, "d": 2, "K": 8},
        options={
            "first_batch": Fraction(1, 10**9),
            "growth": Fraction(2),
            "turns": Fraction(1),
            "perturbation": Fraction(0),
            "prior": Fraction(1000),
        },
        world=make_audit_world,
    ),
)

__all__ = ["CALIBRATED_LSVI_UCB"]
