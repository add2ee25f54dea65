"""The agent of CALIBRATED-LINOPT: what it makes of noisy sums, and the policies and values of its next batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck_algorithms.calibrated_linopt.kernels import follow, mean_visits, plan
from privcheck_algorithms.calibrated_linopt.mixture import Mixture, design, transitions

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

OPTIONS = (
    Parameter(name="first_batch", default=300, kind="count", meaning="users of the first batch"),
    Parameter(name="growth", default="1.25", kind="positive", meaning="each batch is so much larger; at least 1"),
    Parameter(name="turns", default=32, kind="count", meaning="policies that take turns within a batch"),
    Parameter(name="spread", default="0.5", kind="real", meaning="draws deviate by so many posterior deviations"),
    Parameter(name="reach", default=1, kind="positive", meaning="V is clipped at so many deviations of likely states"),
    Parameter(name="prior", default=1, kind="positive", meaning="prior deviation of each unknown weight"),
)
_CHANCE: Final = 0.25  # no number in an interval of length 1 has a larger variance
_FLAT: Final = 1e-9  # values that differ by less, in units of H, are alike


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Normal:
    """A normal law a step, of n unknown numbers each.

    Attributes:
        mean: (H, n).
        root: (H, n, n) lower triangular L with covariance LLᵀ.
    """

    mean: Array
    root: Array

    def draw(self, rng: np.random.Generator, number: int, spread: float) -> Array:
        """Returns so many draws, (number, H, n), with `spread` times the standard deviation."""
        z = rng.standard_normal((number, *self.mean.shape))
        return np.asarray(self.mean + spread * np.einsum("hij,ghj->ghi", self.root, z))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """What is public and stays the same.

    Attributes:
        H: Steps.
        known: The mixture.
        phi: (S, A, d₂) features of rewards.
        public: (H, S, A) mean rewards where they are known; else None.
        sigma: Standard deviation of the noise on sums of values.
        sigma_rewards: On sums of rewards; 0 where rewards are known.
        option: The agent's options as floats.
    """

    H: int
    known: Mixture
    phi: Array
    public: Array | None
    sigma: float
    sigma_rewards: float
    option: Mapping[str, float]

    @property
    def deviation(self) -> float:
        """Returns the prior's standard deviation of each unknown."""
        return self.option["prior"]

    def prior(self, n: int) -> Normal:
        """Returns the prior of n unknowns a step: mean 0 and one deviation for all."""
        return Normal(mean=np.zeros((self.H, n)), root=np.tile(self.deviation * np.eye(n), (self.H, 1, 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Past:
    """The billboard: what has left of the batches so far, and what was public while they came.

    Attributes:
        values: (B, H − 1, d₁) noisy sums of x·y.
        rewards: (B, H, d₂) noisy sums of φ·(r − ½), or (B, 0, d₂).
        bases: (B, H + 1, S) the values V that were public.
        played: (B, G, H, S) the policies.
        sizes: (B,) the batches' users.
    """

    values: Array
    rewards: Array
    bases: Array
    played: Indices
    sizes: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belief:
    """What the agent believes.

    Attributes:
        weights: Of η; that of the last step, about which nothing is learned, is the prior.
        rewards: Of the weights of rewards; None where they are known.
    """

    weights: Normal
    rewards: Normal | None


def believe(past: Past, c: Numbers) -> Belief:
    """Returns the normal posterior of all weights, from noisy sums.

    A batch's Gram matrices are not released: under policies that are public they are n·Σ P(s_h = s)·xxᵀ. The law of s_h
    follows from the weights of the steps before h alone, so that one pass over the steps suffices.
    """
    (S, A, d2), q = c.phi.shape, c.known.open.shape[0]
    weights, rewards = c.prior(q), None if c.public is not None else c.prior(d2)
    B, sums = len(past.sizes), past.values @ c.known.basis
    if B == 0:
        return Belief(weights=weights, rewards=rewards)
    designs = [design(c.known, basis) for basis in past.bases]
    laws = np.broadcast_to(c.known.initial, (*past.played.shape[:2], S)).copy()
    for h in range(c.H):
        told = np.ascontiguousarray(past.played[:, :, h])
        visits = past.sizes[:, None, None] * mean_visits(laws, told, A)
        if rewards is not None:
            flat = Regression(
                x=np.broadcast_to(c.phi, (B, S, A, d2)), known=np.full((B, S, A), -0.5), length=np.ones(B)
            )
            rewards.mean[h], rewards.root[h] = regress(past.rewards[:, h], flat, visits, c.sigma_rewards, c.deviation)
        if h + 1 < c.H:
            on_values = Regression(
                x=np.stack([one.x[h] for one in designs]),
                known=np.stack([one.known[h] for one in designs]),
                length=np.array([one.length[h] for one in designs]),
            )
            weights.mean[h], weights.root[h] = regress(sums[:, h], on_values, visits, c.sigma, c.deviation)
            laws = follow(transitions(c.known, weights.mean[h]), told, laws)
    return Belief(weights=weights, rewards=rewards)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regression:
    """What the sums of B batches are about, at one step: E[y | s, a] = known + length·⟨x, u⟩.

    Attributes:
        x: (B, S, A, n).
        known: (B, S, A).
        length: (B,).
    """

    x: Array
    known: Array
    length: Array


def regress(sums: Array, about: Regression, visits: Array, sigma: float, deviation: float) -> tuple[Array, Array]:
    """Returns the posterior of u, mean and root, from batches of sums z = Σx·y + noise.

    With the expected Gram matrix G = Σ visits·xxᵀ of a batch, z has mean length·G·u + Σ visits·known·x, and variance at
    most σ²I + G/4, as y stays within an interval of length 1. The prior is normal about 0.

    Args:
        sums: (B, n) z.
        about: What they are about.
        visits: (B, S, A) expected ones.
        sigma: Standard deviation of the noise.
        deviation: Of each unknown in the prior.
    """
    (B, n), cells = sums.shape, visits[0].size
    x, each = about.x.reshape(B, cells, n), visits.reshape(B, cells)
    grams = x.swapaxes(-1, -2) @ (each[..., None] * x)
    offsets = np.einsum("bc,bc,bcn->bn", each, about.known.reshape(B, cells), x)
    slopes = about.length[:, None, None] * grams
    spread = sigma**2 * np.eye(n) + _CHANCE * grams
    told = np.linalg.solve(spread, np.concatenate([slopes, (sums - offsets)[..., None]], axis=-1))
    products = (slopes @ told).sum(axis=0)  # slopes are symmetric
    precision = (products[:, :-1] + products[:, :-1].T) / 2 + np.eye(n) / deviation**2
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky((covariance + covariance.T) / 2)
    return np.asarray(covariance @ products[:, -1], dtype=np.float64), np.asarray(root, dtype=np.float64)


def choose(belief: Belief, c: Numbers, draws: np.random.Generator) -> tuple[Indices, Array]:
    """Returns the next batch's policies (G, H, S), each the best of a drawn model, and the V (H + 1, S) made public.

    V is that of the mean model, clipped to what is likely (`clip_values`).

    Args:
        belief: What is believed.
        c: The agent's numbers.
        draws: Randomness that is public.
    """
    G, spread, (S, A) = int(c.option["turns"]), c.option["spread"], c.phi.shape[:2]
    weights = belief.weights.draw(draws, G, spread)
    if belief.rewards is None:
        assert c.public is not None
        mean, rewards = c.public, np.broadcast_to(c.public, (G, c.H, S, A))
    else:
        mean = mean_rewards(belief.rewards.mean, c)
        rewards = mean_rewards(belief.rewards.draw(draws, G, spread), c)
    chosen, values = np.zeros((G, c.H, S), dtype=np.int64), np.zeros((G, c.H + 1, S))
    for turn in range(G):
        plan(c.known, weights[turn], rewards[turn], chosen[turn], values[turn])
    greedy, basis = np.zeros((c.H, S), dtype=np.int64), np.zeros((c.H + 1, S))
    plan(c.known, belief.weights.mean, mean, greedy, basis)
    flat = np.ptp(basis, axis=1) <= _FLAT * c.H  # tells nothing: take the first draw's, whose rewards differ
    basis[flat] = values[0, flat]
    return chosen, clip_values(basis, chosen, belief.weights.mean, c)


def clip_values(values: Array, chosen: Indices, weights: Array, c: Numbers) -> Array:
    """Returns V (H + 1, S) within so many standard deviations of its mean over the states that are likely.

    Noise hides the whole span of what is regressed. Where states that nobody reaches are worth most, V tells nothing of
    those that are reached; clipped it does, and any function of the next state identifies the weights as well as V.

    Args:
        values: (H + 1, S).
        chosen: (G, H, S) the batch's policies.
        weights: (H, q) the mean of η.
        c: The agent's numbers.
    """
    clipped = values.copy()
    laws = np.broadcast_to(c.known.initial, (1, len(chosen), values.shape[1])).copy()
    for h in range(c.H - 1):
        laws = follow(transitions(c.known, weights[h]), np.ascontiguousarray(chosen[None, :, h]), laws)
        law = laws.mean(axis=(0, 1))
        mean = law @ values[h + 1]
        reach = c.option["reach"] * np.sqrt(law @ (values[h + 1] - mean) ** 2)
        if reach > _FLAT * c.H:
            clipped[h + 1] = np.clip(values[h + 1], mean - reach, mean + reach)
    return clipped


def mean_rewards(weights: Array, c: Numbers) -> Array:
    """Returns mean rewards (…, S, A) in [0, 1] under weights (…, d₂)."""
    return np.asarray(np.clip(np.einsum("sai,...i->...sa", c.phi, weights), 0.0, 1.0))
