"""What private LSVI-UCBs do with their noisy statistics, for many runs at a time.

DP-LSVI-UCB++ is paper 001's Algorithm 1 (line 152; its steps are named below). The private LSVI-UCBs with which it is
compared are LSVI-UCB (Jin et al. 2020, Algorithm 1) on the releases that `private_lsvi_ucb` declares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.linear.instance import ACTIONS, HOMES, STATES, Draws, LinearInstance
from privcheck_audits.linear.regression import best, gram, inverted, lengths, predicted, solve, sums

_HERE = 2  # states that users are in

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LsviUcbPlusPlus:
    """Algorithm 1 with its constants; E, D and the third term of step 25 are 0, and Q̂ is recomputed every episode.

    No claim rests on any of these: σ̄ ≥ H holds without them, and the statistics leave every episode either way. Q̌ is
    not computed, because nothing but D depends on it. Q̂ is clipped to [0, H] on both sides, as the declaration assumes
    (step 10 lacks it below). The reward is known, and 0 here.

    Attributes:
        episodes: K.
        place: The episode of the user who differs, from 1.
        ridge: 2λ̃, on the diagonal of the Gram matrices (step 1).
        bonus: β̂ (step 10).
        weighted: Whether σ̄ is estimated; else it is H throughout, as in the published code.
    """

    episodes: int
    place: int
    ridge: float
    bonus: float
    weighted: bool

    def __call__(self, world: LinearInstance, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Returns the greedy actions that users 2 to K are shown, less those of the one who differs, as indicators.

        Args:
            world: The instance.
            noise: (runs, K − 1, H, …) of every release.
            second: (runs,) 0 where the run is on D, 1 where it is on D′.
        """
        runs, H = second.size, world.horizon
        weighted = np.zeros((H, runs, _HERE, ACTIONS, _HERE))  # Σ σ̄⁻² of the users so far by s, a, s′
        high = np.full((H, runs, STATES, ACTIONS), float(H))  # Q̂₀ (step 2)
        greedy = np.zeros((H, runs, STATES), dtype=np.int64)
        spread = np.full((H, runs, _HERE, ACTIONS), float(H))  # σ̄ without data: max(√H, H)
        shown = []
        for k in range(1, self.episodes + 1):
            value = np.zeros((runs, STATES))  # V̂
            for h in range(H - 1, -1, -1) if k > 1 else ():
                drawn = {name: each[:, k - 2, h] for name, each in noise.items()}
                spread[h], target = self._regress(world, weighted[h], drawn, value)
                high[h] = np.clip(np.minimum(target, high[h]), 0, H)  # step 10
                greedy[h], value = best(high[h])  # steps 18 and 20
            if k not in {1, self.place}:  # joint DP is about what the others are told
                shown.append(greedy.copy())
            states, actions, _ = world.user(second, differs=k == self.place)
            for h in range(H):
                where = (np.arange(runs), states[:, h], actions[:, h])
                weighted[h][*where, states[:, h + 1]] += spread[h][where] ** -2  # step 26
        policies = np.stack(shown)  # (episodes, H, runs, S)
        return np.moveaxis(policies, 2, 0).reshape(runs, -1).astype(np.float64)

    def _regress(self, world: LinearInstance, weighted: Array, drawn: Draws, value: Array) -> tuple[Array, Array]:
        """Returns σ̄ of the pairs that users visit, and the Q-values of step 10 before they are clipped."""
        H, d = world.horizon, world.phi.shape[-1]
        inverse = inverted(gram(weighted.sum(axis=-1), world.homes) + self.ridge * np.eye(d) + drawn["gram"])
        mean, square = (
            solve(inverse, sums(_reached(weighted, power), world.homes) + drawn[name])
            for power, name in ((value, "optimistic values"), (value**2, "squared values"))  # steps 5 and 7
        )
        reach = H**2
        variance = np.clip(predicted(world.homes, square), 0, reach)
        variance -= np.clip(predicted(world.homes, mean), 0, reach) ** 2  # step 8
        spread = np.full_like(variance, H)
        if self.weighted:
            np.maximum(np.sqrt(np.maximum(variance + H, 0)), H, out=spread)  # steps 24 and 25
        return spread, predicted(world.phi, mean) + self.bonus * lengths(world.phi, inverse)


@dataclass(frozen=True, slots=True, kw_only=True)
class LsviUcb:
    """LSVI-UCB with an update after every release; values clipped at H − h + 1, as declared.

    Attributes:
        episodes: How many policies there are, the first before any data: K, or the number of batches, of a user each.
        ridge: λ with what keeps the noisy Gram matrices positive definite, on their diagonal.
        bonus: β.
    """

    episodes: int
    ridge: float
    bonus: float

    def __call__(self, world: LinearInstance, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Returns the greedy actions of all policies but the first, as indicators; arguments as above."""
        runs, H, d = second.size, world.horizon, world.phi.shape[-1]
        visits = np.zeros((H, runs, _HERE, ACTIONS, _HERE))
        rewards = np.zeros((H, runs, _HERE, ACTIONS))
        shown = []
        for k in range(1, self.episodes):
            states, actions, given = world.user(second, differs=k == 1)
            for h in range(H):
                where = (np.arange(runs), states[:, h], actions[:, h])
                visits[h][*where, states[:, h + 1]] += 1
                rewards[h][where] += given[:, h]
            value, greedy = np.zeros((runs, STATES)), np.empty((runs, H, STATES), dtype=np.int64)
            for h in range(H - 1, -1, -1):
                known = gram(visits[h].sum(axis=-1), world.homes) + self.ridge * np.eye(d)
                inverse = inverted(known + noise["gram"][:, k - 1, h])
                targets = rewards[h] + _reached(visits[h], value)
                w = solve(inverse, sums(targets, world.homes) + noise["gains"][:, k - 1, h])
                q = predicted(world.phi, w) + self.bonus * lengths(world.phi, inverse)
                q = np.clip(q, 0, H - h)  # H − h + 1
                greedy[:, h], value = best(q)
            shown.append(greedy)
        return np.stack(shown, axis=1).reshape(runs, -1).astype(np.float64)


def _reached(visits: Array, value: Array) -> Array:
    """Returns Σ V(s′) by state and action, (runs, 2, A), from visits (runs, 2, A, 2) by s, a, s′."""
    found: Array = (visits * value[:, None, None, HOMES]).sum(axis=-1)
    return found
