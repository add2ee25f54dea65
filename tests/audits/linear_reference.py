"""The papers' linear agents, one run at a time, with the declared statistics: the naive twin of `linear`.

Exact values come from the statistics' own `compute`, on regressors that are checked against the declared bounds first;
noise is handed in.
"""

from __future__ import annotations

import math

import numpy as np

from privcheck.regressors import Regressors
from privcheck.statistics.linear import check_bounds
from privcheck.trajectories import concatenate


class Released:
    """Adds the given noise to what the declared statistics make of the users' columns."""

    def __init__(self, declaration, values, noise):
        self.declaration, self.values, self.noise = declaration, values, noise
        self.largest = {}  # of each column, over its bound

    def __call__(self, name, users, output, step):
        """users: columns (kind, name) -> (users, …) at that step; the other steps are filled with 0."""
        statistic = self.declaration.release(name).statistic
        horizon = statistic.shape(self.values)[0]
        data = {"vectors": {}, "targets": {}, "weights": {}}
        for (kind, column), found in users.items():
            whole = np.zeros((found.shape[0], horizon, *found.shape[1:]))
            whole[:, step] = found
            data[kind][column] = whole
        regressors = Regressors(**data)
        check_bounds(regressors, statistic, self.values)
        return statistic.compute(regressors, step=step) + self.noise[name][output, step]


def length(x, matrix):
    return math.sqrt(max(0.0, x @ np.linalg.inv(matrix) @ x))


def solved(matrix, vector):
    return np.linalg.inv(matrix) @ vector


def lsvi_plus_plus(agent, ruler, released, arm):
    """Paper 001, Algorithm 1, line 152, with E = D = 0 and an update in every episode; Q̌ moves nothing then."""
    phi, (S, A, d), H = ruler.phi, ruler.phi.shape, ruler.horizon
    users, weights, shown = [], [], []
    high, low = np.full((H, S, A), float(H)), np.zeros((H, S, A))
    for k in range(1, agent.episodes + 1):
        spread = np.full((H, S, A), float(H))
        tops = {"V optimistic": np.zeros(S), "V pessimistic": np.zeros(S)}
        for h in range(H, 0, -1) if k > 1 else ():
            s, a, after = (np.array([u[i][h - 1 + j] for u in users]) for i, j in ((0, 0), (1, 0), (0, 1)))
            columns = {("vectors", "phi"): phi[s, a], ("weights", "1/variance"): np.array([w[h - 1] for w in weights])}
            columns |= {("targets", name): value[after] for name, value in tops.items()}
            gram = released("gram", columns, k - 2, h - 1) + agent.ridge * np.eye(d)
            up = solved(gram, released("optimistic values", columns, k - 2, h - 1))
            down = solved(gram, released("pessimistic values", columns, k - 2, h - 1))
            square = solved(gram, released("squared values", columns, k - 2, h - 1))
            for i in range(S):
                for j in range(A):
                    x = phi[i, j]
                    bonus = agent.bonus * length(x, gram)
                    high[h - 1, i, j] = max(0, min(x @ up + bonus, high[h - 1, i, j], H))
                    low[h - 1, i, j] = min(H, max(x @ down - bonus, low[h - 1, i, j], 0))
                    estimate = min(max(x @ square, 0), H**2) - min(max(x @ up, 0), H**2) ** 2
                    spread[h - 1, i, j] = max(math.sqrt(max(0, estimate + H)), H) if agent.weighted else H
            tops = {"V optimistic": high[h - 1].max(axis=1), "V pessimistic": low[h - 1].max(axis=1)}
        if k not in {1, agent.place}:
            shown.append(high.argmax(axis=2))
        user = ruler.pair[arm] if k == agent.place else ruler.other
        users.append((user.states[0], user.actions[0]))
        weights.append([spread[h, user.states[0, h], user.actions[0, h]] ** -2 for h in range(H)])
    return np.stack(shown).ravel().astype(float)


def lsvi(agent, ruler, released, arm):
    """LSVI-UCB (Jin et al. 2020, Algorithm 1), values clipped at H − h + 1."""
    phi, (S, _, d), H = ruler.phi, ruler.phi.shape, ruler.horizon
    shown = []
    for k in range(1, agent.episodes):
        users = concatenate([ruler.pair[arm], *[ruler.other] * (k - 1)])
        after, greedy = np.zeros(S), []
        for h in range(H, 0, -1):
            s, a, s_next = users.states[:, h - 1], users.actions[:, h - 1], users.states[:, h]
            columns = {("vectors", "phi"): phi[s, a], ("targets", "r+V"): users.rewards[:, h - 1] + after[s_next]}
            gram = released("gram", columns, k - 1, h - 1) + agent.ridge * np.eye(d)
            w = solved(gram, released("gains", columns, k - 1, h - 1))
            q = np.array([
                [min(max(x @ w + agent.bonus * length(x, gram), 0), H - h + 1) for x in row] for row in phi
            ])  # fmt: skip
            greedy.insert(0, q.argmax(axis=1))
            after = q.max(axis=1)
        shown.append(greedy)
    return np.array(shown).ravel().astype(float)
