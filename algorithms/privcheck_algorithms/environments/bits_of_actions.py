"""Actions as bits, two states, and unknown signs: what `linear-signs` and `linear-hypercube` have in common.

At step h, P_h(1 | s, a) = (.35, .65)_s + .3·⟨signs(a), μ_h⟩/b for s ∈ {0, 1}; signs(a) ∈ {−1, 1}^b are the bits of a,
μ_h ∈ {−1, 1}^b is unknown, and r = 1{s = 1}. The reward says nothing about the action, so that myopic play and planning
without data are uniform play, and all b signs of a step have to be learned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privcheck.finite_mdp import FiniteMDP

Array = NDArray[np.float64]

BASE = (0.35, 0.65)  # P(1 | s) of an action with as many wrong signs as right ones
REACH = 0.3  # how far all signs together move it: probabilities lie in [.05, .95]


def make_signs(bits: int) -> Array:
    """Returns signs(a) of all actions, shape (2^bits, bits), the highest bit first; a bit 0 is −1.

    >>> make_signs(2).astype(int).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    actions = np.arange(2**bits)[:, np.newaxis]
    ones: NDArray[np.int64] = (actions >> np.arange(bits - 1, -1, -1)) & 1
    return np.where(ones == 1, 1.0, -1.0)


def draw_signs(*, H: int, bits: int, seed: int, stream: int) -> Array:
    """Returns unknown signs μ of shape (H, bits), fair and independent.

    Args:
        H: Steps.
        bits: Of an action.
        seed: Of the draw.
        stream: Of the environment, so that two with one seed have different signs.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))
    return np.where(rng.integers(0, 2, size=(H, bits)) == 1, 1.0, -1.0)


def make_model(signs: Array) -> FiniteMDP:
    """Returns the model whose unknown signs μ, (H, bits), these are; users start in state 0."""
    H, bits = signs.shape
    moved = REACH * (signs @ make_signs(bits).T) / bits  # (H, A)
    to_one = np.array(BASE)[np.newaxis, :, np.newaxis] + moved[:, np.newaxis, :]  # (H, S, A)
    reward = np.zeros((1, 2, 1, 1))
    reward[0, 1] = 1.0
    return FiniteMDP(
        horizon=H,
        transition=np.stack([1.0 - to_one, to_one], axis=-1),
        reward=reward,
        initial=np.array([1.0, 0.0]),
    )
