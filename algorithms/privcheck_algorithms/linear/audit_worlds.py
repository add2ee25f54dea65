"""Audit worlds of linear agents: small, and such that a violation would be visible in policies.

* `audit_world`, a ruler: the policy at its marks shows how the regression weights of two directions compare.
* `mixture_audit_world`: the same for agents of linear mixtures, with deterministic kernels.
* `two_ends`: two states at the ends, as far apart as one user's data can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import FiniteMDP
from privcheck.errors import ParameterError
from privcheck.runtime.results import World

ACTIONS: Final = 2
_DEFAULT: Final = {"H": 2, "S": 24, "A": ACTIONS, "d": 2}
_MIDDLE: Final = 0.25  # the length of the first action's feature on the ruler
_COARSE: Final = 0.44  # the second one's is up to so much longer or shorter, relative to it
_FINE: Final = 0.25  # and closer to it by this factor, for every second mark from the outside in
_CROWD: Final = 0.5  # both coordinates of the others' feature
_PAID: Final = 0.5  # the others' reward


def audit_world(sizes: Mapping[str, int]) -> World:
    """Build the world of the ruler.

    A policy takes the largest of a few Q-values, so that it shows the regression only if two actions are nearly equal.
    Between the first state and the last one are the marks of a ruler: states in which the second action's feature has
    different lengths, so that the mark from which on the first action is better shows how the weights of two directions
    compare. A user who differs is in the first state, with φ = e₁ for every action, or in the last one, with φ = e₂:
    orthogonal features of the largest length, which change Gram matrices as much as any two. One more state has φ =
    −e₁: with the first one it changes sums of features as much as any two. All other users stay in a separate state
    with equal actions: their data favour neither direction.

    The features are those of a linear MDP (every one is in the span of two); the others' model is one of its kind.

    Args:
        sizes: Sizes, of which H, S, A and d (or d2) are used; missing ones have defaults. States are the first,
            S − 4 marks, the opposite of the first (from S = 4 on), the others' and the last; coordinates from the third
            on are 0.

    Raises:
        ParameterError: Fewer than three states, fewer than two actions or no step, or dimension 0.

    >>> world = audit_world({"H": 3, "d": 4})
    >>> world.sizes
    {'H': 3, 'S': 24, 'A': 2, 'd': 4, 'd2': 4}
    """
    at = {**_DEFAULT, "d": sizes.get("d2", _DEFAULT["d"])} | {n: v for n, v in sizes.items() if n in _DEFAULT}
    H, S, A, d = (at[name] for name in _DEFAULT)
    for name, least in (("S", 3), ("A", ACTIONS), ("d", 1)):
        if at[name] < least:
            message = f"{name}: the world in which linear agents are audited needs at least {least}, got {at[name]}"
            raise ParameterError(message, name=name, given=at[name])
    phi = np.zeros((S, A, max(d, 2)))
    marks = phi[1 : max(S - 3, 1)]
    marks[:, 0, 0] = _MIDDLE
    marks[:, 1:, 1] = _MIDDLE * (1 + ruler_marks(len(marks)))[:, None]
    if S > 3:
        phi[S - 3, :, 0] = -1.0
    phi[0, :, 0] = phi[S - 1, :, 1] = 1.0
    phi[S - 2, :, :2] = _CROWD
    stay = np.broadcast_to(np.eye(S)[None, :, None, :], (1, S, A, S))
    model = FiniteMDP(horizon=H, transition=stay.copy(), reward=np.full((1, 1, 1, 1), _PAID), initial=np.eye(S)[S - 2])
    return World(
        name="ruler",
        description="a ruler of features; the other users stay in a separate state",
        mdp=model,
        features=FeatureMap(phi=phi[..., :d].copy()),
    )


def ruler_marks(marks: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Relative excess length of the second action's feature over the first one's at each mark, ascending.

    Half of the marks are evenly spaced, for the declared noise; the others approach 0 from either side, for noise too
    small to change a policy at the even ones.

    >>> [round(float(x), 3) for x in ruler_marks(6)]
    [-0.44, -0.147, -0.11, 0.11, 0.147, 0.44]
    """
    if marks == 1:
        return np.zeros(1)
    fine = marks // 4
    even = np.linspace(-_COARSE, _COARSE, marks - 2 * fine)
    close = _COARSE * _FINE ** np.arange(1, fine + 1)
    return np.sort(np.concatenate([even, close, -close]))


_DIMENSION: Final = 2


def mixture_audit_world(sizes: Mapping[str, int]) -> World:
    """Build `audit_world` with kernels that separate users in the first state from users in the last state.

    In the first state all kernels lead to it; in the last one half of them lead to it and half to it with a minus sign:
    both ∫ψV have length √d₁·V and are orthogonal (nearly so for odd d₁), the largest possible change of Gram matrices.
    In the other states kernels lead to either end in turn, and the other way round under the second action. The model
    itself is not a mixture: privacy does not depend on it.

    Args:
        sizes: As for `audit_world`; d1 and d2 may replace d.

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


STATES: Final = 3
_HALF: Final = 0.5


def two_ends(sizes: Mapping[str, int]) -> World:
    """Build the world, with unit features of dimension d; states follow one another at random.

    A user who stays in state 0 and one who stays in the last state have orthogonal features with action 0, the pair
    that Gram matrices are most sensitive to, and opposite ones with action 1, as feature sums are. The state between
    them has both directions at once, so that its policy shows how their weights compare.

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
    phi[1, 0], phi[1, 1] = _HALF * (one + other), _HALF * (one - other)
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
