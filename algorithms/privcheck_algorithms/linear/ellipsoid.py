"""The smallest ellipsoid about public features, and the linear map that makes a ball of it.

Noise that protects sums of φ has to hide the longest feature, in every direction alike. Where features are long in some
directions and short in others, a public linear map φ ↦ Tφ with ‖Tφ‖ ≤ 1 lengthens the short ones at no cost: the model
stays linear in Tφ, the sensitivity stays 1, and signals grow beside the noise. The T of the ellipsoid of least volume
about ±φ has the largest determinant of all; by the equivalence theorem of optimal design (Kiefer & Wolfowitz 1960) it
is T = (rM)^(−1/2) with M = Σ_x u(x)·xxᵀ the second moments of a D-optimal design u and r the rank.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDS: Final = 1000  # of the multiplicative algorithm at most
_CLOSE: Final = 1e-3  # relative: how far beyond r the largest ‖φ‖² in the norm of M⁻¹ may be
_FLAT: Final = 1e-9  # relative: directions with less of the second moments are none
_BELOW: Final = 1e-12  # relative: so that no norm is rounded to more than 1


def fit_ball(phi: Array) -> Array:
    """Returns Tφ for all features: in the unit ball, and as spread as a linear map can make them.

    The design is found by the multiplicative algorithm (Titterington 1976), u ← u·‖x‖²_{M⁻¹}/r; where it has not
    converged the map is only not the best one. Orthonormal features stay as they are, up to rounding.

    Args:
        phi: (S, A, d), public.

    >>> flat = np.array([[[1.0, 0.0], [0.6, 0.1]], [[-1.0, 0.0], [0.6, -0.1]]])
    >>> np.linalg.norm(fit_ball(flat), axis=-1).round(2).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    rows = np.unique(phi.reshape(-1, phi.shape[-1]), axis=0)
    rows = rows[(rows != 0).any(axis=1)]
    if not len(rows):
        return phi.copy()
    design = np.full(len(rows), 1.0 / len(rows))
    for _ in range(_ROUNDS):
        lengths, moments = np.linalg.eigh((rows * design[:, None]).T @ rows)
        kept = lengths > _FLAT * lengths[-1]
        inverse_root = moments[:, kept] / np.sqrt(lengths[kept])
        squares = np.square(rows @ inverse_root).sum(axis=1)
        rank = int(kept.sum())
        if squares.max() <= rank * (1 + _CLOSE):
            break
        design *= squares / rank
    mapped = phi @ (inverse_root @ moments[:, kept].T)
    return shorten(mapped / np.linalg.norm(mapped, axis=-1).max())


def shorten(phi: Array) -> Array:
    """Returns features, divided by the longest norm where that is rounded to more than 1."""
    longest = float(np.linalg.norm(phi, axis=-1).max())
    return phi / (longest * (1 + _BELOW)) if longest > 1 - _BELOW else phi.copy()
