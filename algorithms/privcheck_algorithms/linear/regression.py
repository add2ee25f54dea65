"""Ridge regression on noisy statistics: of one run, and of many at a time."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_TIES: Final = 1e-10

Array = NDArray[np.float64]


class NoisyMatrix:
    """A noisy Gram matrix with its ridge, decomposed; no eigenvalue is taken to be below a public floor.

    Without the floor a direction in which the noise is below −ridge has a negative length, and weights of any size.

    Args:
        released: (d, d) the noisy sum, symmetric.
        ridge: What is added to the diagonal.
        floor: The least eigenvalue; above 0.

    Attributes:
        raised: How many eigenvalues were below the floor.
    """

    def __init__(self, released: Array, *, ridge: float, floor: float) -> None:
        values, self._directions = np.linalg.eigh(released + ridge * np.eye(released.shape[0]))
        self.raised = int((values < floor).sum())
        self._values = np.maximum(values, floor)

    def solve(self, vector: Array) -> Array:
        """Returns matrix⁻¹·vector, (d,)."""
        weights: Array = self._directions @ ((vector @ self._directions) / self._values)
        return weights

    def lengths(self, phi: Array) -> Array:
        """Returns ‖φ‖ in the norm of the inverse, (…,) of (…, d)."""
        norms: Array = np.sqrt(np.square(phi @ self._directions) @ (1 / self._values))
        return norms


def choose(q: Array, scale: float) -> tuple[NDArray[np.int64], Array]:
    """Returns the lowest of the best actions up to rounding, and its value: (S,) of (S, A) each.

    Args:
        q: (S, A).
        scale: The largest that an entry may be; differences below 10⁻¹⁰ of it are rounding.
    """
    actions = (q.max(axis=1, keepdims=True) - q <= _TIES * scale).argmax(axis=1)
    return actions, np.take_along_axis(q, actions[:, None], axis=1)[:, 0]


def gram(weights: Array, phi: Array) -> Array:
    """Returns Σ w·φφᵀ over state-action pairs, (runs, d, d).

    Args:
        weights: (runs, S, A).
        phi: (S, A, d).
    """
    d = phi.shape[-1]
    products = (phi[..., :, None] * phi[..., None, :]).reshape(-1, d * d)
    total: Array = weights.reshape(weights.shape[0], -1) @ products
    return total.reshape(-1, d, d)


def sums(targets: Array, phi: Array) -> Array:
    """Returns Σ y·φ over state-action pairs, (runs, d).

    Args:
        targets: (runs, S, A).
        phi: (S, A, d).
    """
    total: Array = targets.reshape(targets.shape[0], -1) @ phi.reshape(-1, phi.shape[-1])
    return total


def predict(phi: Array, weights: Array) -> Array:
    """Returns φ(s, a)ᵀw, (runs, S, A).

    Args:
        phi: (S, A, d), or (runs, S, A, d).
        weights: (runs, d).
    """
    rows = phi.reshape(*phi.shape[:-3], -1, phi.shape[-1])
    values: Array = weights @ rows.T if phi.ndim == 3 else (rows @ weights[..., None])[..., 0]
    return values.reshape(-1, *phi.shape[-3:-1])


def lengths(phi: Array, inverse: Array) -> Array:
    """Returns ‖φ(s, a)‖ in the norm of an inverse, (runs, S, A); 0 where noise has made the square negative.

    Args:
        phi: (S, A, d), or (runs, S, A, d).
        inverse: (runs, d, d).
    """
    rows = phi.reshape(*phi.shape[:-3], -1, phi.shape[-1])
    squares = np.einsum("...nd,...nd->...n", rows @ inverse, rows)
    norms: Array = np.sqrt(np.maximum(squares, 0.0))
    return norms.reshape(-1, *phi.shape[-3:-1])


def invert(matrices: Array) -> Array:
    """Returns the inverses, (runs, d, d)."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def solve(inverse: Array, vectors: Array) -> Array:
    """Returns inverse·vector of every run, (runs, d)."""
    products: Array = np.einsum("bij,bj->bi", inverse, vectors)
    return products


def best(q: Array) -> tuple[NDArray[np.int64], Array]:
    """Returns the first of the largest entries on the last axis, and its value: (…, S) of (…, S, A) each.

    A loop over few actions, which NumPy's `argmax` and `max` over a short axis take several times as long for.
    """
    value = q[..., 0].copy()
    greedy = np.zeros(value.shape, dtype=np.int64)
    for action in range(1, q.shape[-1]):
        greedy[q[..., action] > value] = action
        np.maximum(value, q[..., action], out=value)
    return greedy, value
