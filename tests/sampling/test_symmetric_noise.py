"""Symmetric Gaussian matrices: the sampler has the declared law, entry by entry, and keeps the matrix symmetric.

Each Kolmogorov–Smirnov test fails by chance with probability below 1e-9; the seed is fixed, so that none does. The same
tests reject the law with its scale off by 5 %.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest

from privcheck.declare.mechanisms import SymmetricGaussian
from privcheck.errors import ParameterError
from privcheck.terms.symbols import H, exact

KINDS = ("goe", "upper")
DRAWS = 60_000
ALPHA = 1e-9


def drawn(kind, *, variance="9/4", seed=5) -> np.ndarray:
    noise = SymmetricGaussian(variance=exact(variance), kind=kind).at({})
    return noise.draw(np.random.default_rng(seed), (DRAWS, 3, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_has_its_law_and_not_one_five_percent_off(kind):
    matrices = drawn(kind)
    diagonal = math.sqrt(2) if kind == "goe" else 1.0
    for std, entries in (
        (1.5, matrices[:, [0, 0, 1], [1, 2, 2]].ravel()),
        (1.5 * diagonal, matrices[:, [0, 1, 2], [0, 1, 2]].ravel()),
    ):
        assert kstest(entries / std, "norm").pvalue > ALPHA
        for wrong in (0.95, 1.05):
            assert kstest(entries / (std * wrong), "norm").pvalue < ALPHA


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_are_symmetric_and_their_free_entries_uncorrelated(kind):
    matrices = drawn(kind)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    rows, columns = np.triu_indices(3)
    correlations = np.corrcoef(matrices[:, rows, columns].T)
    off = correlations[~np.eye(rows.size, dtype=bool)]
    assert np.abs(off).max() < 7 / math.sqrt(DRAWS)  # 15 pairs beyond 7 standard errors: below 1e-10


def test_goe_is_what_symmetrised_independent_noise_is():
    """(Z + Zᵀ)/√2 with Z of variance v, as the papers draw it: trace and a rotated entry have the same variances."""
    rng = np.random.default_rng(6)
    z = rng.normal(scale=1.5, size=(DRAWS, 3, 3))
    papers, ours = (z + z.transpose(0, 2, 1)) / math.sqrt(2), drawn("goe")
    u, w = np.array([2, -1, 2]) / 3, np.array([1, 2, 2]) / 3
    for a, b in ((u, u), (u, w), (w, w)):
        std = 1.5 * math.sqrt(1 + (a @ b) ** 2)  # Var aᵀGb = v(1 + ⟨a, b⟩²) for unit vectors: GOE is rotation invariant
        for matrices in (papers, ours):
            assert kstest(np.einsum("i,nij,j->n", a, matrices, b) / std, "norm").pvalue > ALPHA
    upper = np.einsum("i,nij,j->n", u, drawn("upper"), u)
    assert kstest(upper / (1.5 * math.sqrt(2)), "norm").pvalue < ALPHA  # the other law is another one


def test_leading_axes_are_so_many_independent_matrices_and_a_value_stays_as_it_is():
    noise = SymmetricGaussian(variance=1, kind="goe").at({})
    value = np.ones((2, 4, 5, 5))
    released = noise.add(value, np.random.default_rng(7))
    assert released.shape == value.shape
    assert (value == 1).all()
    assert np.unique(released).size == 2 * 4 * 15


def test_what_is_no_square_matrix_is_refused_and_the_spread_rounds_up():
    noise = SymmetricGaussian(variance=H / 3, kind="upper").at({"H": exact(2)})
    assert Fraction(2, 3) <= Fraction(noise.scale) ** 2 <= Fraction(2, 3) * (1 + Fraction(1, 10**15))
    for shape in (3, (3,), (2, 3)):
        with pytest.raises(ParameterError, match="expected square matrices for symmetric noise"):
            noise.draw(np.random.default_rng(8), shape)
