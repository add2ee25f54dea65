"""Equation (3) against linear programming on its reformulation (4): the same objective, constraints, minimiser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total

# multiples of 1/64: numbers near the solver's tolerance of 1e-7 make it call feasible programmes infeasible
counts = st.one_of(st.integers(-40, 200).map(float), st.integers(-40 * 64, 200 * 64).map(lambda k: k / 64))
bounds = st.one_of(st.just(0.0), st.integers(0, 100 * 64).map(lambda k: k / 64))


def constraints(pair: float, following: np.ndarray, E: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows of eq. (4) in (x, t): |x − y| ≤ t in every entry, |Σx − m| ≤ E/2."""
    S = following.size
    y, m = np.maximum(following, 0), max(pair, 0.0)
    one, t = np.eye(S), -np.ones((S, 1))
    total = np.r_[np.ones(S), 0.0]
    return np.vstack([np.hstack([one, t]), np.hstack([-one, t]), total, -total]), np.r_[y, -y, m + E / 2, E / 2 - m]


def closed_form(pair: float, following: np.ndarray, E: float) -> np.ndarray:
    x = np.empty(following.size)
    private_counts(following, private_total(pair, following, E), x)
    return x


@given(counts, st.lists(counts, min_size=1, max_size=8).map(np.array), bounds)
@settings(max_examples=200, deadline=None)
def test_the_closed_form_solves_the_linear_programme(pair: float, following: np.ndarray, E: float) -> None:
    S = following.size
    A, b = constraints(pair, following, E)
    solved = linprog(np.r_[np.zeros(S), 1.0], A_ub=A, b_ub=b, bounds=[(0, None)] * (S + 1), method="highs")
    assert solved.status == 0
    x = closed_form(pair, following, E)
    objective = np.abs(x - np.maximum(following, 0)).max()
    assert objective == pytest.approx(solved.fun, abs=2e-6)
    assert (A @ np.r_[x, objective] <= b + 1e-9).all()
    assert x.min() >= 0
    assert x == pytest.approx(solved.x[:S], abs=1e-5)


@given(counts, st.lists(counts, min_size=2, max_size=4).map(np.array), bounds)
@settings(max_examples=40, deadline=None)
def test_the_minimiser_is_unique(pair: float, following: np.ndarray, E: float) -> None:
    """At the optimal objective each entry can be neither larger nor smaller, up to the solver's tolerance of 1e-7."""
    S = following.size
    A, b = constraints(pair, following, E)
    x = closed_form(pair, following, E)
    least = np.abs(x - np.maximum(following, 0)).max() + 1e-8
    limits = [(0, None)] * S + [(0, least)]
    for s in range(S):
        for sign in (1.0, -1.0):
            cost = np.zeros(S + 1)
            cost[s] = sign
            extreme = linprog(cost, A_ub=A, b_ub=b + 1e-8, bounds=limits, method="highs")
            assert extreme.status == 0
            assert extreme.x[s] == pytest.approx(x[s], abs=1e-5)
