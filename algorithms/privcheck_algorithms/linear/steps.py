"""What users of a linear model did, step by step, and the vector a step in which `LinearTables` sum it up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import TrajectoryError

Array = NDArray[np.float64]
Weights = tuple[float, float, float]

SLACK: Final = 1e-12  # relative: a norm of 1 comes out as 1 + a few roundings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearSteps:
    """What users did, step by step, as `LinearTables` sum it up.

    Attributes:
        phi: (users, H, d) features, of norm at most 1.
        following: (users, H) the states reached, counted from 0.
        rewards: (users, H) in [0, 1].
        states: S, of the states reached.
        weights: Squared weights of Gram matrix, successors and rewards, as `LinearTables.weights_at` has them; 0 of
            what is not summed.

    Raises:
        TrajectoryError: A shape is wrong or a value out of its range; the message names the first user and step.
    """

    phi: Array
    following: NDArray[np.int64]
    rewards: Array
    states: int
    weights: Weights

    def __post_init__(self) -> None:
        if self.phi.ndim != 3 or not self.following.shape == self.rewards.shape == self.phi.shape[:2]:
            got = f"phi {self.phi.shape}, following {self.following.shape}, rewards {self.rewards.shape}"
            raise TrajectoryError(f"expected phi (users, H, d), following and rewards (users, H), got {got}")
        norms = np.sqrt(np.einsum("uhi,uhi->uh", self.phi, self.phi))
        _within("the norm of phi", norms, 1 + SLACK, "divide all features by a public bound on their length")
        _within("the state reached", self.following, self.states - 1, "states are counted from 0 to S − 1")
        _within("the reward", self.rewards, 1, "scale rewards to [0, 1] by a public bound")
        if len(self.weights) != 3 or not all(0 <= w < math.inf for w in self.weights):
            raise TrajectoryError(f"expected three squared weights, at least 0, got {self.weights}")

    @property
    def horizon(self) -> int:
        """Returns H."""
        return int(self.phi.shape[1])

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.phi[0, 0, :2])
        first = f"phi = ({shown}{', …' if self.phi.shape[2] > 2 else ''}), next state {self.following[0, 0]}"
        return f"{first}, reward {self.rewards[0, 0]:.4g} at step 1, and so on for {self.horizon} steps"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The tables of one or many vectors, in their own units.

    Attributes:
        gram: (…, d, d) Σφφᵀ, symmetric; None where they are not summed.
        successors: (…, d, S − 1) Σφ·x(s′)ᵀ.
        rewards: (…, d) Σφ·(r − ½); None where they are not summed.
    """

    gram: Array | None
    successors: Array
    rewards: Array | None


def unpack(vectors: Array, *, dimension: int, states: int, weights: Weights) -> Tables:
    """Returns the tables that vectors (…, numbers) hold, exact or noisy: noise of variance σ² is σ²/g in units of φφᵀ.

    Args:
        vectors: As `LinearTables.compute` returns them.
        dimension: d.
        states: S.
        weights: `LinearTables.weights_at`.
    """
    d, (g, b, w) = dimension, weights
    rows, columns = np.triu_indices(d)
    triangle, moves, gram = rows.size if g > 0 else 0, d * (states - 1), None
    if g > 0:
        entries = vectors[..., :triangle] / np.where(rows == columns, 1.0, math.sqrt(2)) / math.sqrt(g)
        gram = np.empty((*vectors.shape[:-1], d, d))
        gram[..., rows, columns] = entries
        gram[..., columns, rows] = entries
    successors = vectors[..., triangle : triangle + moves].reshape(*vectors.shape[:-1], d, states - 1) / math.sqrt(b)
    rewards = vectors[..., triangle + moves :] / math.sqrt(w) if w > 0 else None
    return Tables(gram=gram, successors=successors, rewards=rewards)


def simplex(states: int) -> Array:
    """Returns the vertices x(s) of a regular simplex about 0, (S, S − 1): XᵀX = I and XXᵀ = I − 11ᵀ/S.

    >>> simplex(2).round(4).tolist()
    [[0.7071], [-0.7071]]
    """
    vertices = np.zeros((states, states - 1))
    for k in range(1, states):  # Helmert's contrasts
        vertices[:k, k - 1] = 1 / math.sqrt(k * (k + 1))
        vertices[k, k - 1] = -k / math.sqrt(k * (k + 1))
    return vertices


def sum_up(data: LinearSteps, step: int) -> Array:
    """Returns the vector of one step counted from 0, (numbers,)."""
    phi, following = data.phi[:, step], data.following[:, step]
    reached = np.zeros((data.states, phi.shape[1]))
    np.add.at(reached, following, phi)
    return pack(phi.T @ phi, reached.T, (data.rewards[:, step] - 0.5) @ phi, weights=data.weights)


def add_each(data: LinearSteps, step: int, rows: slice) -> Array:
    """Returns what some users add to the vector of one step, (rows, numbers)."""
    phi, following = data.phi[rows, step], data.following[rows, step]
    reached = np.zeros((*phi.shape, data.states))
    reached[np.arange(len(phi)), :, following] = phi
    gains = (data.rewards[rows, step] - 0.5)[:, np.newaxis] * phi
    return pack(phi[:, :, np.newaxis] * phi[:, np.newaxis], reached, gains, weights=data.weights)


def pack(gram: Array, reached: Array, gains: Array, *, weights: Weights) -> Array:
    """Returns the vectors (…, numbers) of sums over users; `unpack` reads them.

    Args:
        gram: (…, d, d) Σφφᵀ; not read where its weight is 0.
        reached: (…, d, S) Σφ·1{s′}.
        gains: (…, d) Σφ·(r − ½); not read where their weight is 0.
        weights: As `LinearSteps.weights`.
    """
    g, b, w = np.sqrt(weights)
    parts = [(reached @ simplex(reached.shape[-1]) * b).reshape(*reached.shape[:-2], -1)]
    if g > 0:
        rows, columns = np.triu_indices(reached.shape[-2])
        parts.insert(0, gram[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2)) * g)
    if w > 0:
        parts.append(gains * w)
    return np.concatenate(parts, axis=-1)


def _within(what: str, numbers: NDArray[np.float64] | NDArray[np.int64], most: float, remedy: str) -> None:
    wrong = ~((numbers >= 0) & (numbers <= most))
    if wrong.any():
        user, step = (int(i) for i in np.argwhere(wrong)[0])
        message = f"{what} is {numbers[user, step]:.6g} for user {user} at step {step + 1}, expected 0 to {most:.6g}"
        raise TrajectoryError(f"{message}; {int(wrong.sum())} break that: {remedy}")
