"""Equation (3) in closed form: against exact rational arithmetic, and the lemma that the paper proves of it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total


def closed_form(pair: float, following: np.ndarray, E: float) -> tuple[float, np.ndarray]:
    x = np.empty(following.size)
    total = private_total(pair, following, E)
    private_counts(following, total, x)
    return total, x


def exact_minimiser(pair: float, following: np.ndarray, E: float) -> tuple[Fraction, list[Fraction]]:
    """The naive twin: sorts, and counts how many entries stay positive, in rational arithmetic."""
    y = [max(Fraction(v), Fraction(0)) for v in following.tolist()]
    m, e, T = max(Fraction(pair), Fraction(0)), Fraction(E) / 2, sum(y, Fraction(0))
    total = min(max(T, m - e), m + e)
    if total >= T:
        return total, [v + (total - T) / len(y) for v in y]
    ordered = sorted(y, reverse=True)
    for kept in range(1, len(y) + 1):
        t = (sum(ordered[:kept], Fraction(0)) - total) / kept
        if kept == len(y) or ordered[kept] <= t:
            return total, [max(v - t, Fraction(0)) for v in y]
    raise AssertionError("unreachable")


counts = st.one_of(st.integers(-60, 300).map(float), st.floats(-60, 300))
rows = st.lists(counts, min_size=1, max_size=9).map(np.array)
bounds = st.one_of(st.just(0.0), st.floats(0, 120))


@given(counts, rows, bounds)
@example(0.0, np.array([5.0, 5.0]), 0.0)
@example(3.0, np.array([0.0, 0.0, 0.0]), 0.0)
@example(1.0, np.array([7.0, 7.0, 7.0]), 0.0)
@example(5.0, np.array([5.0]), 0.0)
@settings(max_examples=500, deadline=None)
def test_the_closed_form_is_the_exact_minimiser(pair: float, following: np.ndarray, E: float) -> None:
    total, x = closed_form(pair, following, E)
    exact_total, exact = exact_minimiser(pair, following, E)
    tolerance = 1e-13 * (1 + np.abs(following).sum() + abs(pair) + E)
    assert total == pytest.approx(float(exact_total), abs=tolerance)
    assert x == pytest.approx(np.array([float(v) for v in exact]), abs=tolerance)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(total, abs=tolerance)


@pytest.mark.parametrize("following", [2.0 ** np.arange(40), 1.7 ** np.arange(200) / 1e20, np.r_[1e9, np.ones(715)]])
def test_it_ends_and_is_exact_where_few_entries_drop_at_a_time(following: np.ndarray) -> None:
    for pair in (0.3, 5.0, 0.9 * following.sum()):
        total, x = closed_form(pair, following, 0.0)
        exact_total, exact = exact_minimiser(pair, following, 0.0)
        tolerance = 1e-14 * following.size * following.sum()
        assert total == pytest.approx(float(exact_total), abs=tolerance)
        assert x == pytest.approx(np.array([float(v) for v in exact]), abs=tolerance)


def test_it_is_exact_on_716_noisy_counts() -> None:
    rng = np.random.default_rng(0)
    following = np.where(rng.random(716) < 0.02, 200.0, 0.0) + rng.normal(0, 6.3, 716)
    total, x = closed_form(2_900.0, following, 72.0)
    exact_total, exact = exact_minimiser(2_900.0, following, 72.0)
    assert total == pytest.approx(float(exact_total), rel=1e-14)
    assert x == pytest.approx(np.array([float(v) for v in exact]), abs=1e-10)
    assert total < np.maximum(following, 0).sum()  # the case with a threshold


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=8),
    st.floats(0.01, 60),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=300, deadline=None)
def test_lemma_d3_where_no_noise_exceeds_half_E(true: list[int], E: float, seed: int) -> None:
    """|ñ(s,a) − n(s,a)| ≤ E and |ñ(s,a,s′) − n(s,a,s′)| ≤ E."""
    rng = np.random.default_rng(seed)
    exact = np.array(true, dtype=float)
    following = exact + E / 2 * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], exact.size)
    total, x = closed_form(exact.sum() + E / 2 * rng.choice([-1.0, 1.0]), following, E)
    assert abs(total - exact.sum()) <= E * (1 + 1e-9) + 1e-9
    assert np.abs(x - exact).max() <= E * (1 + 1e-9) + 1e-9


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_exact_counts_stay_exactly_as_they_are(true: list[int]) -> None:
    exact = np.array(true, dtype=float)
    total, x = closed_form(exact.sum(), exact, 0.0)
    assert total == exact.sum()
    assert (x == exact).all()
