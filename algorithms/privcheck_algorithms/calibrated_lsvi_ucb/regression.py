"""What the billboard says of the model: Bayes' linear rule with the exact noise, one step after the other.

A batch's table is y = G·M + chance + noise, with G its Gram matrix, chance of covariance χG in every column (χ = 1/S is
the variance of a coordinate of x(s′) under the uniform law) and noise of variance ν in every entry. Under a prior of
independent entries of M with variance τ²,

    J = I/τ² + Σ_b G(χG + νI)⁻¹G,    mean = J⁻¹ Σ_b G(χG + νI)⁻¹y,    covariance of each column J⁻¹.

Large batches therefore weigh more than small ones, and directions that no batch looked at keep the prior.

Gram matrices need no noise and no budget where policies are public: at step 1 the law of the state is public, so G is
the sum of φφᵀ over public actions; the regression at step 1 gives the law of the state at step 2 under every policy of
every batch, and so on. What is wrong in such a G is the chance of who was where, and what is wrong in the model so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck_algorithms.calibrated_lsvi_ucb.kernels import Model, advance, count_visits, project
from privcheck_algorithms.linear.steps import Tables, Weights, simplex, unpack

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How far a table is trusted.

    Attributes:
        chance: χ, the variance of what one user adds, in units of φφᵀ.
        noise: ν, the variance of the noise on every entry; above 0.
        prior: τ², the variance of what is unknown.
    """

    chance: float
    noise: float
    prior: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Public:
    """What everybody knows before there are users.

    Attributes:
        phi: (S, A, d) features, as they are mapped.
        steps: T: steps of which something leaves.
        horizon: H.
        weights: Squared weights of Gram matrix, successors and rewards in the tables.
        sigma: Standard deviation of the noise on every entry of the tables.
        prior: Standard deviation of the unknown, in units of what a deterministic law needs.
    """

    phi: Array
    steps: int
    horizon: int
    weights: Weights
    sigma: float
    prior: float

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Returns S, A and d."""
        S, A, d = self.phi.shape
        return S, A, d

    @property
    def even(self) -> float:
        """Returns how many users make chance as large as noise, where they are spread over all directions alike."""
        S, _, d = self.sizes
        return d * S * self.trust(self.weights[1], 1 / S).noise

    def trust(self, weight: float, chance: float) -> Trust:
        """Returns how far a table is trusted.

        Its noise is its own, and with released Gram matrices that of δG·M: the sum over k of δG_ik·M_kj has variance
        σ²/2g·(d + 1)·τ² on average.

        Args:
            weight: Squared, of the table.
            chance: χ, which is also what a deterministic law needs: the variance of a coordinate.
        """
        d, g, variance = self.phi.shape[2], self.weights[0], self.prior**2 * chance
        other = (d + 1) * variance / (2 * g) if g > 0 else 0.0
        return Trust(chance=chance, noise=self.sigma**2 * (1 / weight + other), prior=variance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Past:
    """The billboard: what has left of the batches so far, and the policies they were told.

    Attributes:
        tables: (B, T, numbers) noisy tables.
        played: (B, G, H, S) the policies.
        users: (B, G) how many users acted by each.
        initial: (S,) the public law of the first state.
        reward: (H, S·A) public mean rewards; of no steps where they are learned.
    """

    tables: Array
    played: Indices
    users: Array
    initial: Array
    reward: Array


def learn(past: Past, public: Public) -> Model:
    """Returns the model of every step, from what is on the billboard alone."""
    S, A, d = public.sizes
    T, rewards = public.steps, public.weights[2] > 0
    columns = public.phi.reshape(-1, d)
    noisy = unpack(past.tables, dimension=d, states=S, weights=public.weights)
    law = np.broadcast_to(past.initial, (*past.users.shape, S)).copy()
    effect, root = np.zeros((T, d, S)), np.zeros((T, d, d))
    theta, spread = np.zeros((T * rewards, d)), np.zeros((T * rewards, d, d))
    for h in range(T):
        visits, actions = np.zeros((len(past.users), S, A)), np.ascontiguousarray(past.played[:, :, h])
        if noisy.gram is None:
            count_visits(law, actions, past.users, visits)
        axes = find_axes(noisy, visits.reshape(-1, S * A), columns, h)
        mean, root[h] = regress(*axes, noisy.successors[:, h], public.trust(public.weights[1], 1 / S))
        effect[h] = mean @ simplex(S).T
        if noisy.rewards is not None:  # r − ½ has variance ¼ at most
            found, spread[h] = regress(*axes, noisy.rewards[:, h, :, None], public.trust(public.weights[2], 1 / 4))
            theta[h] = found[:, 0]
        if noisy.gram is None:
            advance(law, actions, predict_laws(effect[h], public))
    return Model(effect, root, past.reward, theta, spread)


def find_axes(noisy: Tables, visits: Array, rows: Array, step: int) -> tuple[Array, Array]:
    """Returns eigenvalues (B, d), at least 0, and eigenvectors (B, d, d) of the batches' Gram matrices at a step.

    Args:
        noisy: The tables; their Gram matrices are taken where they have some.
        visits: (B, S·A) expected visits otherwise.
        rows: (S·A, d) the features.
        step: h, counted from 0.
    """
    gram = noisy.gram[:, step] if noisy.gram is not None else weigh_outer(rows, visits)
    lengths, axes = np.linalg.eigh(gram)
    return np.maximum(lengths, 0.0), axes


def weigh_outer(rows: Array, weights: Array) -> Array:
    """Returns Σ w·φφᵀ over features (pairs, d) for every row of weights (rows, pairs), in shape (rows, d, d)."""
    gram = np.empty((len(weights), rows.shape[1], rows.shape[1]))
    for number, row in enumerate(weights):
        gram[number] = (rows.T * row) @ rows
    return gram


def regress(lengths: Array, axes: Array, sums: Array, trust: Trust) -> tuple[Array, Array]:
    """Returns the mean (d, columns) of M and a root (d, d) of the covariance of each column.

    Args:
        lengths: (B, d) eigenvalues of the batches' Gram matrices.
        axes: (B, d, d) their eigenvectors, as columns.
        sums: (B, d, columns) noisy sums.
        trust: How far they are trusted.
    """
    weights = lengths / (trust.chance * lengths + trust.noise)
    precision = np.eye(axes.shape[1]) / trust.prior
    total = np.zeros(sums.shape[1:])
    for weight, length, axis, table in zip(weights, lengths, axes, sums, strict=True):
        precision += (axis * (weight * length)) @ axis.T
        total += (axis * weight) @ (axis.T @ table)
    values, vectors = np.linalg.eigh(precision)
    return (vectors / values) @ (vectors.T @ total), vectors / np.sqrt(values)


def predict_laws(effect: Array, public: Public) -> Array:
    """Returns P(· | s, a) of the mean model at one step, (S, A, S): the nearest probability vectors.

    Args:
        effect: (d, S).
        public: What everybody knows.
    """
    S, A, d = public.sizes
    rows = public.phi.reshape(-1, d) @ effect + 1 / S
    project(rows)
    return rows.reshape(S, A, S)


def perturb(model: Model, factor: float, turns: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Returns draws for the sampled models of a batch: (G, T, d) for the laws and for rewards; public randomness."""
    T, d, _ = model.effect.shape
    draws = factor * rng.standard_normal((turns, T, d))
    return draws, factor * rng.standard_normal((turns, len(model.theta), d))
