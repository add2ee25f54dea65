"""LSVI-UCB and LSVI-UCB++ in NumPy, from lists of users and noisy sums: they share nothing with the compiled agents."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


def floored(matrix, least):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(np.maximum(values, least)) @ vectors.T


def lengths(phi, matrix):
    return np.sqrt(np.einsum("sai,ij,saj->sa", phi, np.linalg.inv(matrix), phi))


@dataclass
class Lsvi:
    """Jin et al. 2020, Algorithm 1: a plan from all users and what the board says of them.

    `users` are (path, actions, rewards); `noisy(name, h, exact)` is what leaves for an exact sum.
    """

    phi: np.ndarray
    H: int
    ridge: float
    least: float = 0.0
    bonus: float = 0.0
    noise_bonus: float = 0.0
    centred: bool = False
    users: list = field(default_factory=list)

    def gram(self, h):
        d = self.phi.shape[-1]
        total = np.zeros((d, d))
        for path, actions, _ in self.users:
            x = self.phi[path[h], actions[h]]
            total += np.outer(x, x)
        return total

    def matrix(self, noisy, h):
        return floored(noisy("gram", h, self.gram(h)) + self.ridge * np.eye(self.phi.shape[-1]), self.least)

    def log_determinants(self, noisy):
        return np.array([np.linalg.slogdet(self.matrix(noisy, h))[1] for h in range(self.H)])

    def plan(self, noisy):
        S = len(self.phi)
        value, actions = np.zeros(S), np.zeros((self.H, S), int)
        for h in reversed(range(self.H)):
            span = value.max() - value.min()
            middle, unit = ((value.max() + value.min() + 1) / 2, 1 + span) if self.centred else (0.0, 1.0)
            gains = sum(
                (r[h] + value[p[h + 1]] - middle) / unit * self.phi[p[h], a[h]] for p, a, r in self.users
            )  # fmt: skip
            matrix = self.matrix(noisy, h)
            w = np.linalg.solve(matrix, noisy("gains", h, gains))
            beta = self.bonus * (unit if self.centred else self.H - h) + self.noise_bonus * unit
            quality = np.clip(unit * self.phi @ w + middle + beta * lengths(self.phi, matrix), 0, self.H - h)
            actions[h], value = quality.argmax(axis=1), quality.max(axis=1)
        return actions


@dataclass
class Weighted:
    """Sahu 2025, Algorithm 1, with E = D = 0; `users` are (path, actions, weights)."""

    phi: np.ndarray
    H: int
    reward: np.ndarray
    ridge: float
    least: float = 0.0
    bonus: float = 0.0
    doubt: float = 0.0
    weighted: bool = True
    centred: bool = False
    growth: float = 2.0
    users: list = field(default_factory=list)

    def __post_init__(self):
        H, (S, A, d) = self.H, self.phi.shape
        self.high, self.low = np.full((H, S, A), float(H)), np.zeros((H, S, A))
        self.mean, self.square = np.zeros((H, d)), np.zeros((H, d))
        self.matrices = [self.ridge * np.eye(d) for _ in range(H)]
        self.last = np.full(H, d * np.log(self.ridge))
        self.plans = 0

    def take(self, path, actions):
        """Steps 24 to 26: the user's own weights, from what was on the board before them."""
        weights = []
        for h in range(self.H):
            x, H = self.phi[path[h], actions[h]], self.H
            spread = H
            if self.weighted:
                first = x @ self.mean[h] if self.centred else np.clip(x @ self.mean[h], 0, H**2)
                variance = np.clip(x @ self.square[h], 0, H**2) - first**2
                length = np.sqrt(x @ np.linalg.inv(self.matrices[h]) @ x)
                spread = max(H, np.sqrt(max(0, variance + H)), self.doubt * 2 * len(x) ** 3 * H**2 * np.sqrt(length))
            weights.append(spread**-2.0)
        self.users.append((path, actions, weights))

    def sums(self, h, of):
        start = np.zeros(self.phi.shape[-1])
        return sum((w[h] * of[p[h + 1]] * self.phi[p[h], a[h]] for p, a, w in self.users), start)

    def advance(self, noisy):
        """Steps 4 to 21 after the users so far."""
        d = self.phi.shape[-1]
        for h in range(self.H):
            total = np.zeros((d, d))
            for p, a, w in self.users:
                x = self.phi[p[h], a[h]]
                total += w[h] * np.outer(x, x)
            self.matrices[h] = floored(noisy("gram", h, total) + self.ridge * np.eye(d), self.least)
        logs = np.array([np.linalg.slogdet(m)[1] for m in self.matrices])
        renew = (logs >= self.last + np.log(self.growth)).any()
        above = np.zeros(len(self.phi)), np.zeros(len(self.phi))
        for h in reversed(range(self.H)):
            (value, lower), matrix = above, self.matrices[h]
            middle = (value.max() + value.min()) / 2 if self.centred else 0.0
            scale = (value.max() - value.min()) / self.H if self.centred else 1.0
            self.mean[h] = np.linalg.solve(matrix, noisy("optimistic values", h, self.sums(h, value - middle)))
            down = np.linalg.solve(matrix, noisy("pessimistic values", h, self.sums(h, lower)))
            self.square[h] = np.linalg.solve(matrix, noisy("squared values", h, self.sums(h, (value - middle) ** 2)))
            if renew:
                bonus = self.bonus * lengths(self.phi, matrix)
                up = self.reward[h] + self.phi @ self.mean[h] + middle + scale * bonus
                self.high[h] = np.maximum(0, np.minimum(np.minimum(up, self.high[h]), self.H))
                under = self.reward[h] + self.phi @ down - bonus
                self.low[h] = np.minimum(self.H, np.maximum(np.maximum(under, self.low[h]), 0))
            above = self.high[h].max(axis=1), self.low[h].max(axis=1)
        if renew:
            self.last, self.plans = logs, self.plans + 1
        return self.high.argmax(axis=2)
