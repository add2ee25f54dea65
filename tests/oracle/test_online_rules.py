"""How PUCB, LDP-OBI and DP-UCBVI plan, against their formulas in NumPy."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from privcheck_algorithms.dp_ucbvi.agent import BERNSTEIN, OBI, PUCB, Agent, PlanningRule, plan, quality
from privcheck_algorithms.kernels.sparse_mdp import Walk
from privcheck_algorithms.kernels.tables import Counters, Layout, count

H, S, A = 4, 3, 2


def tables(T, seed=0, scale=40.0):
    rng = np.random.default_rng(seed)
    M = rng.integers(0, 60, (T, S, S * A)).astype(float)
    visits = M.sum(axis=1) + rng.laplace(0, 2, (T, S * A))
    return visits, M.sum(axis=1) * rng.random((T, S * A)), M + rng.laplace(0, 2, M.shape)


def by_formula(kind, rule, visits, sums, M, after, top):  # noqa: PLR0917
    """Returns Q of all pairs at one step, (SA,)."""
    n = visits
    if kind == OBI:
        n = np.maximum(1, n + rule.E1)
        return np.clip((sums + after @ M) / n + rule.root / np.sqrt(n) + rule.linear / n, 0, top)
    if kind == PUCB:
        phi = np.sqrt(2 * rule.log / np.maximum(n - rule.E1, 1))
        psi = (1 + S * H) * (3 * rule.E1 / n + 2 * rule.E1**2 / n**2)
        q = np.clip((sums + after @ M) / n + rule.scale * ((H + 1) * phi + psi), 0, top)
        return np.where(n >= max(2 * rule.E1, 1), q, top)
    found = []
    for cell in range(S * A):
        x = least(n[cell], M[:, cell], rule.E1 / 4)
        total = x.sum() + rule.E1 / 2
        p = (x + rule.E1 / (2 * S)) / total
        spread = p @ after**2 - (p @ after) ** 2
        bonus = 2 * math.sqrt(max(spread, 0) * rule.log / total) + math.sqrt(2 * rule.log / total)
        bonus += 20 * S * H * rule.E1 * rule.log / total
        q = np.clip(sums[cell] / total + p @ after + rule.scale * bonus, 0, top)
        found.append(q if total > rule.E1 else top)
    return np.array(found)


def least(n, m, slack):
    """Returns argmin of max|x − m| over x ≥ 0 with |Σx − n| ≤ slack, m clipped at 0 first; by linear programming."""
    m, n = np.maximum(m, 0), max(n, 0)
    away = np.hstack([np.vstack([np.eye(S), -np.eye(S)]), -np.ones((2 * S, 1))])
    total = np.hstack([np.vstack([np.ones(S), -np.ones(S)]), np.zeros((2, 1))])
    solved = linprog(
        np.r_[np.zeros(S), 1.0], A_ub=np.vstack([away, total]), b_ub=np.r_[m, -m, n + slack, slack - n],
        bounds=[(0, None)] * (S + 1),
    )  # fmt: skip
    return solved.x[:S]


@pytest.mark.parametrize("kind", [PUCB, OBI, BERNSTEIN])
@pytest.mark.parametrize("E", [0.0, 5.0, 80.0])
@pytest.mark.parametrize("T", [1, H])
def test_planning_is_the_formula(kind, E, T):
    rule = PlanningRule(kind=kind, E1=E, log=3.0, root=0.7, linear=E, scale=0.02)
    visits, sums, M = tables(T)
    values, actions = np.zeros((H + 1, S)), np.zeros((H, S), np.int64)
    plan(Agent(rule, actions, values, np.zeros(S)), Counters(visits, sums, M))
    after = np.zeros(S)
    for h in reversed(range(H)):
        t = h if T > 1 else 0
        q = by_formula(kind, rule, visits[t], sums[t], M[t], after, H - h).reshape(S, A)
        assert values[h] == pytest.approx(q.max(axis=1), rel=1e-7, abs=1e-9)
        assert np.take_along_axis(q, actions[h][:, None], axis=1)[:, 0] == pytest.approx(q.max(axis=1), rel=1e-7)
        after = values[h]


@pytest.mark.parametrize("kind", [PUCB, OBI, BERNSTEIN])
def test_what_nobody_visited_is_worth_the_most(kind):
    rule = PlanningRule(kind=kind, E1=10.0, log=3.0, root=9.0, linear=90.0, scale=1.0)
    zero = np.zeros((1, S * A))
    agent = Agent(rule, np.zeros((H, S), np.int64), np.zeros((H + 1, S)), np.zeros(S))
    assert quality(agent, Counters(zero, zero, np.zeros((1, S, S * A))), H - 3, 1) == 3.0


def test_pooled_counters_add_up_the_steps():
    walk = Walk(np.array([0, 2, 2, 1]), np.array([1, 0, 0]), np.array([0.0, 0.25, 0.5]))
    by_step, pooled = np.zeros(3 * S * A * (S + 2)), np.zeros(S * A * (S + 2))
    count(by_step, Layout(3, S, A, True), walk)
    count(pooled, Layout(1, S, A, True), walk)
    for first, last in ((0, 1), (1, 2), (2, 2 + S)):
        steps = by_step[first * 3 * S * A : last * 3 * S * A].reshape(3, -1)
        assert np.array_equal(steps.sum(axis=0), pooled[first * S * A : last * S * A])
    assert pooled[: S * A].tolist() == [0, 1, 0, 0, 2, 0]
    assert pooled[S * A : 2 * S * A].tolist() == [0, 1, 0, 0, 1.25, 0]
