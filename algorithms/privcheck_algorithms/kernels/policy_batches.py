"""Learning from noisy tables of batches that each follow one public deterministic policy, compiled by Numba.

Such a batch is informative, for every step h and state x, about the pair (x, π_h(x)) only. The number of users who
arrive at (h, x) need not be counted: the batch's size and the law of the first state are public, and the estimated
model carries them from
step to step. So every table Y of a batch is m·P + noise with a known m: P is estimated by weighted least squares over
the batches with weights m/(σ² + c·m), for a batch's noise and sampling variance, and then projected onto the simplex.
The flow of users is consistent by construction: users who leave (h, x) arrive at step h + 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Heard(NamedTuple):
    """Releases of the batches so far, and their policies.

    Attributes:
        transitions: (B, H′, S, S) noisy counts of (x, x′), H′ = max(H − 1, 1).
        rewards: (B, H, S) noisy reward sums.
        played: (B, H, S) the policies.
        sizes: (B,) the batches' users.
        initial: (S,) the law of the first state.
    """

    transitions: Array
    rewards: Array
    played: Indices
    sizes: Array
    initial: Array


class Tuning(NamedTuple):
    """Parameters of the learner.

    Attributes:
        sigma: Standard deviation of a transition count's noise.
        sigma_rewards: Standard deviation of a reward sum's noise.
        centre: Value subtracted from every reward before summing.
        prior: Precision of the prior 1/S of a transition probability.
        prior_rewards: Precision of the prior of a mean reward.
        guess: The prior mean reward.
        shared: Precision with which the other steps' data count as a prior for a step; 0 to ignore them.
        chance: c, the variance of one user's entry.
        thin: Number of standard deviations below which a probability counts as noise.
        bonus: Number of standard deviations of V at the next state to add.
        bonus_rewards: Number of standard deviations of the mean reward to add.
        sweeps: Number of times that arrivals are carried through the shrunk model.
    """

    sigma: float
    sigma_rewards: float
    centre: float
    prior: float
    prior_rewards: float
    guess: float
    shared: float
    chance: float
    thin: float
    bonus: float
    bonus_rewards: float
    sweeps: int


class Model(NamedTuple):
    """The learned model, overwritten by `learn`.

    Attributes:
        P: (H, S, A, S) transition probabilities; the last step's are the prior's.
        precision: (H, S, A) precision of each of these probabilities.
        reward: (H, S, A) mean rewards.
        precision_rewards: (H, S, A) precision of the mean rewards.
    """

    P: Array
    precision: Array
    reward: Array
    precision_rewards: Array


class _Sums(NamedTuple):
    """Weighted sums over the batches: Σ w·Y (H, S, A, S) and Σ w·m (H, S, A), and the same for rewards."""

    counts: Array
    weights: Array
    gains: Array
    weights_rewards: Array


def blank_model(H: int, S: int, A: int) -> Model:
    """Model with zeroed arrays."""
    return Model(np.zeros((H, S, A, S)), np.zeros((H, S, A)), np.zeros((H, S, A)), np.zeros((H, S, A)))


@njit(cache=True, nogil=True)
def learn(heard: Heard, tuning: Tuning, model: Model) -> None:
    """Estimate the model from the batches so far.

    Args:
        heard: The billboard.
        tuning: The learner's numbers.
        model: Overwritten.
    """
    B, H, S = heard.rewards.shape
    A = model.reward.shape[2]
    arrivals = np.zeros((B, H, S))
    sums = _Sums(np.zeros((H, S, A, S)), np.zeros((H, S, A)), np.zeros((H, S, A)), np.zeros((H, S, A)))
    for b in range(B):
        for s in range(S):
            arrivals[b, 0, s] = heard.sizes[b] * heard.initial[s]
    for sweep in range(max(1, tuning.sweeps)):
        for h in range(H):
            _gather(heard, tuning, arrivals, h, sums)
            for s in range(S):
                for a in range(A):
                    _settle(tuning, sums.counts[h, s, a], sums.weights[h, s, a], model.P[h, s, a])
            if sweep == 0 and h + 1 < H:
                _carry(heard, arrivals, h, model.P[h])
        _finish(tuning, sums, model)
        for h in range(H - 1):
            _carry(heard, arrivals, h, model.P[h])


@njit(cache=True, nogil=True)
def _gather(heard: Heard, tuning: Tuning, arrivals: Array, h: int, sums: _Sums) -> None:
    """Compute the weighted sums of step h."""
    B, H, S = heard.rewards.shape
    sums.weights[h], sums.weights_rewards[h], sums.gains[h], sums.counts[h] = 0.0, 0.0, 0.0, 0.0
    for b in range(B):
        for s in range(S):
            a, m = heard.played[b, h, s], arrivals[b, h, s]
            if m <= 0.0:
                continue
            w = m / (tuning.sigma_rewards**2 + tuning.chance * m)
            sums.weights_rewards[h, s, a] += w * m
            sums.gains[h, s, a] += w * (heard.rewards[b, h, s] + tuning.centre * m)
            if h + 1 < H:
                w = m / (tuning.sigma**2 + tuning.chance * m)
                sums.weights[h, s, a] += w * m
                for after in range(S):
                    sums.counts[h, s, a, after] += w * heard.transitions[b, h, s, after]


@njit(cache=True, nogil=True)
def _carry(heard: Heard, arrivals: Array, h: int, P: Array) -> None:
    """Compute the number of users of each batch who arrive at step h + 1."""
    B, _, S = heard.rewards.shape
    for b in range(B):
        for s in range(S):
            arrivals[b, h + 1, s] = 0.0
        for s in range(S):
            a = heard.played[b, h, s]
            for after in range(S):
                arrivals[b, h + 1, after] += arrivals[b, h, s] * P[s, a, after]


@njit(cache=True, nogil=True)
def _settle(tuning: Tuning, sums: Array, weight: float, law: Array) -> None:
    """Estimate a law from its own step's data and the prior alone."""
    precision = weight + tuning.prior
    for after in range(law.size):
        law[after] = (sums[after] + tuning.prior / law.size) / precision
    onto_simplex(law, tuning.thin / math.sqrt(precision))


@njit(cache=True, nogil=True)
def _finish(tuning: Tuning, sums: _Sums, model: Model) -> None:
    """Write model and precisions; with `shared`, the other steps' data act as a prior of at most their strength."""
    H, S, A = sums.weights.shape
    for s in range(S):
        for a in range(A):
            total, total_rewards, gain = 0.0, 0.0, 0.0
            whole = np.zeros(S)
            for h in range(H):
                total += sums.weights[h, s, a]
                total_rewards += sums.weights_rewards[h, s, a]
                gain += sums.gains[h, s, a]
                for after in range(S):
                    whole[after] += sums.counts[h, s, a, after]
            for h in range(H):
                others, own = total - sums.weights[h, s, a], sums.weights[h, s, a] + tuning.prior
                k = _lent(tuning.shared, others)
                for after in range(S):
                    lent = k * (whole[after] - sums.counts[h, s, a, after]) / others if k > 0.0 else 0.0
                    model.P[h, s, a, after] = (sums.counts[h, s, a, after] + tuning.prior / S + lent) / (own + k)
                model.precision[h, s, a] = own + k
                onto_simplex(model.P[h, s, a], tuning.thin / math.sqrt(own + k))
                others = total_rewards - sums.weights_rewards[h, s, a]
                own, k = sums.weights_rewards[h, s, a] + tuning.prior_rewards, _lent(tuning.shared, others)
                lent = k * (gain - sums.gains[h, s, a]) / others if k > 0.0 else 0.0
                mean = (sums.gains[h, s, a] + tuning.prior_rewards * tuning.guess + lent) / (own + k)
                model.reward[h, s, a] = min(1.0, max(0.0, mean))
                model.precision_rewards[h, s, a] = own + k


@njit(cache=True, nogil=True)
def _lent(shared: float, others: float) -> float:
    """Precision of the other steps' data as a prior: theirs in series with the precision of the steps' similarity."""
    return shared * others / (shared + others) if shared > 0.0 and others > 1e-12 else 0.0


@njit(cache=True, nogil=True)
def onto_simplex(law: Array, least: float) -> None:
    """Project a vector onto the simplex; entries below `least` (at most ½) become 0."""
    for i in range(law.size):
        if law[i] < min(least, 0.5):
            law[i] = -1.0
    ordered = np.sort(law)
    total, shift = 0.0, 0.0
    for i in range(law.size):
        total += ordered[law.size - 1 - i]
        if ordered[law.size - 1 - i] > (total - 1.0) / (i + 1):
            shift = (total - 1.0) / (i + 1)
    for i in range(law.size):
        law[i] = max(0.0, law[i] - shift)


@njit(cache=True, nogil=True)
def plan(model: Model, tuning: Tuning, order: Array, actions: Indices) -> None:
    """Compute the optimistic policy: mean rewards and values as large as their standard deviations allow.

    The estimated law's error is equally large in every direction: its effect on V is its standard deviation times the
    norm
    of V less its mean, since an error of a law sums to 0.

    Args:
        model: The learned model.
        tuning: The learner's numbers.
        order: (H, S, A) priorities among tied actions, largest first.
        actions: (H, S) the policy; overwritten.
    """
    H, S, A = model.reward.shape
    after, value = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        mean, square, top = after.mean(), 0.0, after.max()
        for s in range(S):
            square += (after[s] - mean) ** 2
        for s in range(S):
            best, which = -1.0, 0
            for a in range(A):
                reward = model.reward[h, s, a] + tuning.bonus_rewards / math.sqrt(model.precision_rewards[h, s, a])
                later = tuning.bonus * math.sqrt(square / model.precision[h, s, a])
                for following in range(S):
                    later += model.P[h, s, a, following] * after[following]
                quality = min(1.0, reward) + max(0.0, min(later, top))
                if quality > best or (quality == best and order[h, s, a] > order[h, s, which]):
                    best, which = quality, a
            actions[h, s], value[s] = which, best
        for s in range(S):
            after[s] = value[s]
