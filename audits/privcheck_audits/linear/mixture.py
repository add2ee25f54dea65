"""What Private-LinOpt-VI and -PO do with their noisy statistics (paper 004, Algorithms 1 and 2), many runs at a time.

Algorithm 1 stands at lines 675 to 750, Algorithm 2 at 1014 to 1091; the lines of their pseudo-code are named below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.linear.instance import ACTIONS, CROWD, PROBE, STATES, Draws, LinearInstance
from privcheck_audits.linear.regression import best, inverted, lengths, predicted, solve

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinOpt:
    """Both algorithms with their constants.

    Attributes:
        episodes: K.
        ridges: γ of the transition and of the reward counter (line 1155).
        bonuses: β_p and β_r (lines 8 and 9 of Algorithm 1).
        mixed: Algorithm 2: policies are mixed, and follow the Q-values by multiplicative weights.
        rate: η of Algorithm 2.
    """

    episodes: int
    ridges: tuple[float, float]
    bonuses: tuple[float, float]
    mixed: bool
    rate: float

    def __call__(self, world: LinearInstance, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Returns what users 2 to K are shown: indicators of greedy actions, or log-odds of mixed ones.

        Args:
            world: The instance.
            noise: (runs, K − 1, H, …) of every release.
            second: (runs,) 0 where the run is on D, 1 where it is on D′.
        """
        runs, H = second.size, world.horizon
        exact = {name: np.zeros((runs, *each.shape[2:])) for name, each in noise.items()}
        logs = np.zeros((runs, H, STATES, ACTIONS))  # ln π but for a constant: uniform at first (line 2)
        shown = []
        for k in range(1, self.episodes + 1):
            statistics = {name: exact[name] + each[:, k - 2] for name, each in noise.items()} if k > 1 else exact
            q, values = self._plan(world, statistics, logs)
            if k > 1:
                policy = logs[..., 1:] - logs[..., :1] if self.mixed else best(q)[0]
                shown.append(policy.reshape(runs, -1))
            logs = logs + self.rate * q  # line 15 of Algorithm 2
            self._record(world, exact, values, second, differs=k == 1)
        return np.concatenate(shown, axis=1).astype(np.float64)

    def _plan(self, world: LinearInstance, statistics: Draws, logs: Array) -> tuple[Array, Array]:
        """Returns Q of every step (runs, H, S, A), and V of the step after each (runs, H, S); lines 4 to 12."""
        runs, H = logs.shape[0], world.horizon
        q, after = np.empty_like(logs), np.zeros((runs, H, STATES))
        for h in range(H - 1, -1, -1):
            phi = _integrated(after[:, h], statistics["transition values"].shape[-1])
            total = np.zeros((runs, STATES, ACTIONS))
            for features, kind, sums, ridge, bonus in (
                (phi, "transition gram", "transition values", self.ridges[0], self.bonuses[0]),
                (world.phi, "reward gram", "reward sums", self.ridges[1], self.bonuses[1]),
            ):
                gram = statistics[kind][:, h]
                inverse = inverted(gram + ridge * np.eye(gram.shape[-1]))
                theta = solve(inverse, statistics[sums][:, h])  # lines 5 and 6
                total += predicted(features, theta) + bonus * lengths(features, inverse)  # lines 8 to 10
            q[:, h] = np.clip(total, 0, H - h)  # H − h + 1
            if h > 0:
                after[:, h - 1] = (q[:, h] * _policy(logs[:, h])).sum(axis=-1) if self.mixed else best(q[:, h])[1]
        return q, after

    def _record(
        self, world: LinearInstance, exact: Draws, values: Array, second: NDArray[np.int64], *, differs: bool
    ) -> None:
        """Adds a user's data to the exact statistics: φ is that of the values at their own episode (line 7)."""
        states, actions, rewards = world.user(second, differs=differs)
        runs = np.arange(second.size)
        for h in range(world.horizon):
            phi = _integrated(values[:, h], exact["transition values"].shape[-1])[runs, 0, actions[:, h]]
            varphi = world.homes[states[:, h], actions[:, h]]
            exact["transition gram"][:, h] += phi[:, :, None] * phi[:, None, :]
            exact["transition values"][:, h] += phi * values[runs, h, PROBE + states[:, h + 1]][:, None]
            exact["reward gram"][:, h] += varphi[:, :, None] * varphi[:, None, :]
            exact["reward sums"][:, h] += varphi * rewards[:, h, None]


def _integrated(values: Array, dimension: int) -> Array:
    """Returns φ(s, a) = ∫ψ(s′|s, a)V(s′)ds′, (runs, 1, A, d₁): the same for all s.

    There are two kernels without chance: one goes to one state by the first action and to another by the second, the
    other kernel the other way round. Coordinates from the third on are 0.
    """
    phi = np.zeros((values.shape[0], 1, ACTIONS, dimension))
    phi[:, 0, 0, :2] = values[:, [PROBE, CROWD]]
    phi[:, 0, 1, :2] = values[:, [CROWD, PROBE]]
    return phi


def _policy(logs: Array) -> Array:
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    found: Array = weights / weights.sum(axis=-1, keepdims=True)
    return found
