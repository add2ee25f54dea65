"""The compiled regression of the linear agents against NumPy, over generated inputs; random tests are seeded."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from privcheck_algorithms.kernels import regression

SIZES = {"d": st.integers(1, 12), "seed": st.integers(0, 2**32 - 1)}


def drawn(rng, d, users):
    """Features of norm at most 1, some of them sparse."""
    x = rng.standard_normal((users, d)) * (rng.random((users, d)) < 0.7)
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))


@given(**SIZES, users=st.integers(0, 60))
def test_one_user_after_the_other_gives_the_inverse_and_the_determinant(d, seed, users):
    rng = np.random.default_rng(seed)
    x, weights, ridge = drawn(rng, d, users), rng.random(users) * 3, rng.uniform(0.1, 4)
    matrix, inverse, room, logarithm = ridge * np.eye(d), np.eye(d) / ridge, np.empty(d), d * math.log(ridge)
    for one, weight in zip(x, weights, strict=True):
        regression.add_outer(matrix, one, weight)
        logarithm += math.log(regression.update_inverse(inverse, one, weight, room))
    naive = ridge * np.eye(d) + sum(w * np.outer(one, one) for one, w in zip(x, weights, strict=True))
    np.testing.assert_allclose(matrix, naive, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(inverse, np.linalg.inv(naive), rtol=1e-9, atol=1e-9)
    assert np.array_equal(inverse, inverse.T)
    assert logarithm == pytest.approx(np.linalg.slogdet(naive)[1], rel=1e-9, abs=1e-9)


@given(**SIZES, pairs=st.integers(1, 70))
def test_a_plan_s_numbers_are_those_of_numpy(d, seed, pairs):
    rng = np.random.default_rng(seed)
    x, b = drawn(rng, d, pairs), rng.standard_normal(d)
    matrix = 0.5 * np.eye(d) + drawn(rng, d, 20).T @ drawn(rng, d, 20) ** 2 / 40
    matrix = matrix @ matrix.T
    root, inverse, w, columns = np.full((d, d), np.nan), np.empty((d, d)), np.empty(d), np.ascontiguousarray(x.T)
    logarithm = regression.invert_root(matrix, root)
    assert logarithm == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-9, abs=1e-9)
    regression.invert(root, inverse)
    regression.solve(root, b, w)
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(w, np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-9)
    found = np.empty(pairs)
    regression.lengths(columns, root, np.empty((2, pairs)), found)
    np.testing.assert_allclose(found, np.sqrt([one @ np.linalg.inv(matrix) @ one for one in x]), rtol=1e-9, atol=1e-9)
    regression.predict(columns, w, found)
    np.testing.assert_allclose(found, x @ w, rtol=1e-9, atol=1e-9)


@given(**SIZES, least=st.floats(-1, 2), shift=st.floats(-1, 3))
def test_no_eigenvalue_is_below_the_floor_and_the_others_stay(d, seed, least, shift):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((d, d))
    matrix = half + half.T + shift * np.eye(d)
    values, vectors = np.linalg.eigh(matrix)
    found = matrix.copy()
    changed = regression.raise_eigenvalues(found, least, np.empty((d, d)))
    naive = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
    np.testing.assert_allclose(found, naive, rtol=1e-9, atol=1e-9)
    assert np.allclose(found, found.T, rtol=0, atol=1e-12)
    if abs(values[0] - least) > 1e-9:
        assert changed == (values[0] < least)


@given(**SIZES, least=st.floats(0.01, 2), ridge=st.floats(0, 5))
def test_the_root_of_a_noisy_matrix_is_that_of_the_floored_one(d, seed, least, ridge):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((d, d))
    noisy = half + half.T
    values, vectors = np.linalg.eigh(noisy + ridge * np.eye(d))
    naive = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
    root, inverse, kept = np.empty((d, d)), np.empty((d, d)), noisy.copy()
    logarithm = regression.invert_floored(noisy, ridge, least, np.empty((d, d)), root)
    regression.invert(root, inverse)
    np.testing.assert_allclose(inverse, np.linalg.inv(naive), rtol=1e-9, atol=1e-9)
    assert logarithm == pytest.approx(np.linalg.slogdet(naive)[1], rel=1e-9, abs=1e-9)
    assert np.array_equal(noisy, kept)


@given(**SIZES, states=st.integers(1, 6), users=st.integers(0, 30))
def test_sums_of_any_values_come_from_the_sums_by_next_state(d, seed, states, users):
    rng = np.random.default_rng(seed)
    x, after, values = drawn(rng, d, users), rng.integers(0, states, users), rng.uniform(0, 20, states)
    nexts, sums = np.zeros((states, d)), np.empty(d)
    for one, s in zip(x, after, strict=True):
        nexts[s] += one
    regression.weigh_next(nexts, values, sums)
    naive = sum((values[s] * one for one, s in zip(x, after, strict=True)), np.zeros(d))
    np.testing.assert_allclose(sums, naive, rtol=1e-9, atol=1e-9)


def test_a_matrix_that_is_not_positive_definite_is_said_to_be():
    for matrix in (np.diag([1.0, -1.0]), np.zeros((3, 3)), np.ones((2, 2)), np.array([[np.nan]])):
        assert regression.invert_root(matrix, np.empty_like(matrix)) == -math.inf


@pytest.mark.parametrize(("diagonal", "kind"), [(math.sqrt(2), "goe"), (1.0, "upper")])
def test_symmetric_noise_has_the_declared_variances(diagonal, kind):
    """χ² of 10⁴ matrices, on and above the diagonal, two-sided at 1e-10 each."""
    rng, d, runs, std = np.random.default_rng(1), 4, 10_000, 0.7
    noise = np.zeros((runs, d, d))
    for one in noise:
        regression.add_symmetric_noise(rng, std, diagonal, one)
    assert np.array_equal(noise, noise.transpose(0, 2, 1))
    upper = noise[:, *np.triu_indices(d, 1)]
    on = noise[:, np.arange(d), np.arange(d)]
    for found, variance in ((upper, std**2), (on, std**2 * (2 if kind == "goe" else 1))):
        assert 5e-11 < chi2.cdf((found**2).sum() / variance, found.size) < 1 - 5e-11
    cross = np.corrcoef(np.concatenate([upper, on], axis=1).T)[np.triu_indices(10, 1)]
    assert np.abs(cross).max() < 7 / math.sqrt(runs)  # each beyond with probability 3e-12


def test_no_noise_draws_nothing():
    rng, still = (np.random.default_rng(1) for _ in range(2))
    regression.add_noise(rng, 0.0, np.zeros(3))
    regression.add_symmetric_noise(rng, 0.0, 1.0, np.zeros((3, 3)))
    assert rng.random() == still.random()
    vector, matrix = np.zeros(3), np.zeros((1, 1))
    regression.add_noise(rng, 2.0, vector)
    regression.add_symmetric_noise(rng, 2.0, 1.5, matrix)
    expected = still.standard_normal(4)
    np.testing.assert_array_equal(vector, 2 * expected[:3])
    assert matrix[0, 0] == 3 * expected[3]
