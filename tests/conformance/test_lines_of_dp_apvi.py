"""DP-APVI as Qiao & Wang 2022 print it, line by line, beside the agent with `preset=paper`; (3) is solved as (4)."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from privcheck.commands.settings import resolve_setting
from privcheck_algorithms.dp_apvi.agent import NO_REWARDS, plan, prepare
from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total, step
from transcribed import transcribes

H, S, A, DELTA = 3, 3, 2, 0.1
SEEDS = range(10)


def equation_4(pair, following, E):
    """ñ(s, a, ·) of (3) as the linear programme (4), after (2)'s clip; (t, x₁, …, x_S)."""
    m, y = max(pair, 0.0), np.maximum(following, 0.0)
    one = np.eye(S)
    rows = [*np.hstack([-np.ones((S, 1)), one]), *np.hstack([-np.ones((S, 1)), -one])]
    rows += [np.r_[0.0, np.ones(S)], np.r_[0.0, -np.ones(S)]]
    limits = [*y, *-y, m + E / 2, E / 2 - m]
    found = linprog(np.r_[1.0, np.zeros(S)], A_ub=np.array(rows), b_ub=limits, bounds=[(0, None)] * (S + 1))
    assert found.status == 0
    return found.x[1:]


def counts(seed, E):
    """Noisy counts of one step, so that some cells are known and some are not, with sums that fit and do not."""
    rng = np.random.default_rng(seed)
    following = rng.normal(E / 2, E, (S, A, S))
    return following.sum(axis=2) + rng.choice([0.0, -2 * E, 2 * E], (S, A)) + rng.normal(0, E / 8, (S, A)), following


def given(name, **sets):
    setting = resolve_setting(name, {"H": str(H), "S": str(S), "A": str(A), "preset": "paper", **sets}).setting
    reward = np.random.default_rng(1).random((S, A))
    inputs = prepare(setting.declared, setting.values, setting.options, reward=reward[:, :, None].repeat(S, axis=2))
    return inputs, reward


@transcribes("dp_apvi", "Algorithm 1, 1", "Algorithm 1, 2")
@pytest.mark.parametrize(("name", "budget"), [("dp-apvi", {"rho": "3"}), ("dp-apvi-laplace", {"epsilon": "3"})])
def test_constants_are_printed(name, budget):
    inputs, _ = given(name, **budget)
    c = inputs.constants
    E = 4 * math.sqrt(H * math.log(4 * H * S**2 * A / DELTA) / 3)
    if name == "dp-apvi-laplace":
        E = 2 * (4 * H / 3) * math.log(2 * H * S**2 * A / DELTA)
    assert (c.C1, c.C2, c.C, c.scale) == (pytest.approx(math.sqrt(2)), 16, 2, 1)
    assert pytest.approx(E) == c.E
    assert c.iota == pytest.approx(math.log(H * S * A / DELTA))


@transcribes("dp_apvi", "equation (2)", "equation (3)")
@pytest.mark.parametrize("seed", SEEDS)
def test_private_counts_solve_the_linear_programme(seed):
    E = 5.0
    visits, following = counts(seed, E)
    for s in range(S):
        for a in range(A):
            x = np.empty(S)
            total = private_total(visits[s, a], following[s, a], E)
            private_counts(following[s, a], total, x)
            expected = equation_4(visits[s, a], following[s, a], E)
            off = [np.abs(one - np.maximum(following[s, a], 0)).max() for one in (x, expected)]
            assert off[0] == pytest.approx(off[1], abs=1e-7)
            assert abs(x.sum() - max(visits[s, a], 0)) <= E / 2 + 1e-9
            assert x.min() >= 0
            if total < np.maximum(following[s, a], 0).sum() or off[1] > 1e-9:
                assert x.sum() == pytest.approx(total)


def planned(c, visits, following, reward, after, left):  # noqa: PLR0917 - as the kernel takes them
    """Lines 4 to 8 at one step, of eq. (5)'s P̃; Q̄, known cells and Γ."""
    Q, known = np.zeros((S, A)), np.zeros((S, A), bool)
    for s in range(S):
        for a in range(A):
            x = np.empty(S)
            n = private_total(visits[s, a], following[s, a], c.E)
            private_counts(following[s, a], n, x)
            known[s, a] = n > c.E
            P = x / n if known[s, a] else np.full(S, 1 / S)  # equation (5)
            value = reward[s, a] + P @ after  # line 4
            variance = P @ (after - P @ after) ** 2
            if known[s, a]:  # line 5
                penalty = c.C1 * math.sqrt(variance * c.iota / (n - c.E)) + c.C2 * S * H * c.E * c.iota / n
            else:
                penalty = c.C * H
            Q[s, a] = max(min(value - penalty, left), 0)  # lines 6 and 7
    return Q, known


@transcribes(
    "dp_apvi", "equation (5)", "Algorithm 1, 4", "Algorithm 1, 5", "Algorithm 1, 6", "Algorithm 1, 7", "Algorithm 1, 8"
)
@pytest.mark.parametrize("faint", [{}, {"C1": 0.1, "C2": 1e-4}], ids=["printed", "faint"])
@pytest.mark.parametrize("E", [5.0, 1e-4])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_is_planned_from_private_counts(seed, E, faint):
    """At E = 10⁻⁴, or with smaller constants, the penalty of known cells is no larger than what can be earned."""
    inputs, reward = given("dp-apvi")
    c = inputs.constants._replace(E=E, **faint)
    visits, following = counts(seed, 5.0)
    visits, following = (20 * visits, 20 * following) if E < 1 else (visits, following)
    after = np.random.default_rng(seed).uniform(0, 2, S)
    actions, value = np.empty(S, np.int64), np.empty(S)
    step(visits, following, NO_REWARDS, inputs.reward, after, H - 1, c, actions, value)
    Q, known = planned(c, visits, following, reward, after, H - 1)
    assert known.any()
    np.testing.assert_allclose(value, Q.max(axis=1), atol=1e-9)
    assert Q[np.arange(S), actions] == pytest.approx(Q.max(axis=1), abs=1e-9)
    assert Q[known].max() > 0 or (E > 1 and not faint)


class Board:
    """Noisy counts by step, in the place of a billboard."""

    def __init__(self, tables):
        self.tables, self.asked = tables, []

    def read(self, name, part):
        return self.tables[name][part]

    def retire(self, part):
        del part


@transcribes("dp_apvi", "Algorithm 1, 3, 9", "Algorithm 1, 10")
@pytest.mark.parametrize("seed", range(3))
def test_the_policy_is_planned_from_the_last_step_to_the_first(seed):
    inputs, reward = given("dp-apvi", rho="100000000")
    rng = np.random.default_rng(seed)
    following = rng.uniform(0, 4e5, (H, S, A, S))
    board, order = Board({"visits": following.sum(axis=3), "transitions": following}), []
    learnt = plan(board, order.append, inputs)
    after = np.zeros(S)
    for h in reversed(range(H)):
        Q, known = planned(inputs.constants, board.tables["visits"][h], following[h], reward, after, H - h)
        assert known.any()
        after = Q.max(axis=1)
        np.testing.assert_allclose(learnt.values[h], after, atol=1e-9)
        assert learnt.policy[h].argmax(axis=1).tolist() == Q.argmax(axis=1).tolist()
    assert order == [2, 1, 0]
    assert (learnt.policy.sum(axis=2) == 1).all()
