"""The world in which audits run agents of linear mixtures: that of linear agents, with kernels without chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from privcheck.features import FeatureMap
from privcheck.results import World
from privcheck_algorithms.linear.audit_world import audit_world

_DIMENSION: Final = 2


def mixture_audit_world(sizes: Mapping[str, int]) -> World:
    """Returns `audit_world` with kernels under which users in the first and in the last state are far from each other.

    In the first state all kernels lead to it, in the last one half of them lead there and half to there with a minus:
    both ∫ψV are √d₁·V long, and orthogonal (with an odd d₁ nearly so), which moves Gram matrices as far as any two. In
    the other states kernels lead to either by turns, and the other way round under the second action. The model itself
    is no mixture: privacy presupposes nothing of it.

    Args:
        sizes: As there; d1 and d2 may stand for d.

    >>> mixture_audit_world({"H": 3, "d1": 4, "d2": 2}).sizes
    {'H': 3, 'S': 24, 'A': 2, 'd': 2, 'd2': 2, 'd1': 4}
    """
    d1, d2 = (sizes.get(name, sizes.get("d", _DIMENSION)) for name in ("d1", "d2"))
    world = audit_world({**{name: size for name, size in sizes.items() if name != "d"}, "d2": d2})
    S, A = world.mdp.states, world.mdp.actions
    turns = np.broadcast_to(np.arange(d1)[:, None, None] + np.arange(A), (d1, S, A))
    ends = np.array([0, S - 1])[turns % 2]
    kernels = np.eye(S)[ends]
    kernels[:, 0] = np.eye(S)[0]
    kernels[:, S - 1] = np.where(np.arange(d1) < (d1 + 1) // 2, 1.0, -1.0)[:, None, None] * np.eye(S)[S - 1]
    return replace(
        world,
        name="ruler-mixture",
        features=FeatureMap(phi=world.feature_map.phi, kernels=kernels),
    )
