"""Public features in the coordinates in which they fill the unit ball best: the same noise then hides least of them.

Noise on sums of φ is the same in every direction, and follows the longest feature. Where all features lie in a thin
ellipsoid its narrow directions drown. Any linear map of the features is public, and a linear MDP stays one: with the
map after which the smallest ellipsoid about 0 around all features is the unit ball, no direction is narrow any more.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MOST_STEPS: Final = 20_000
_NEAR: Final = 1e-3  # relative: the ellipsoid's volume is then within (1 + _NEAR)^d of the smallest one's
_SPANNED: Final = 1e-9  # relative: singular values below are 0 but for roundings
_INSIDE: Final = 1 + 1e-13  # norms are at most 1 after the map, roundings included


def round_features(phi: Array) -> Array:
    """Returns the features in rounded coordinates, (S, A, k): ‖φ‖ ≤ 1, with k ≤ d the dimension that they span.

    Khachiyan & Todd: of the smallest ellipsoid {x: xᵀM⁻¹x ≤ k} around the features, M = Σ w·φφᵀ is the D-optimal
    design's. Its weights are the fixed point of w ← w·φᵀM⁻¹φ/k (Titterington 1976), under which det M grows.

    Args:
        phi: (S, A, d), public. Nothing of any user enters.
    """
    S, A, d = phi.shape
    rounded: Array = _round(np.ascontiguousarray(phi, dtype=np.float64).tobytes(), d).reshape(S, A, -1)
    return rounded


@functools.lru_cache(maxsize=32)
def _round(data: bytes, d: int) -> Array:
    rows = np.frombuffer(data).reshape(-1, d)
    atoms = np.unique(rows, axis=0)
    _, sizes, axes = np.linalg.svd(atoms, full_matrices=False)
    k = max(1, int((sizes > _SPANNED * sizes[0]).sum()))
    spanned = atoms @ axes[:k].T
    weights = np.full(len(atoms), 1 / len(atoms))
    squares = np.full(len(atoms), float(k))
    design = np.eye(k)
    if sizes[0] > 0:
        for _ in range(_MOST_STEPS):
            design = (spanned * weights[:, np.newaxis]).T @ spanned
            squares = np.einsum("ni,ni->n", spanned @ np.linalg.inv(design), spanned)
            if squares.max() <= k * (1 + _NEAR):
                break
            weights *= squares / k
    root = np.linalg.cholesky(np.linalg.inv(design))
    rounded: Array = rows @ (axes[:k].T @ root)
    longest = np.linalg.norm(rounded, axis=1).max()
    rounded /= max(longest, np.finfo(float).tiny) * _INSIDE
    rounded.flags.writeable = False
    return rounded
