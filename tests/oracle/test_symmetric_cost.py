"""What symmetric Gaussian noise costs, against the exact likelihood of the vector of its free entries.

The oracle knows the covariance of the entries on and above the diagonal (for GOE noise from the definition
(Z + Zᵀ)/√2, entry by entry) and nothing of norms or whitening: ρ = ½ δᵀ Σ⁻¹ δ for the pair's change δ.
"""

import numpy as np
import pytest

from privcheck.data.trajectories import Regressors
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.errors import DeclarationError
from privcheck.pricing import account
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import H, d, exact, rho
from privcheck.verification import find_witness
from privcheck.verification.pair_loss import pair_loss

GRAM = GramMatrices(name="gram", steps=H, dimension=d, vector=Column("phi", 1, "x"))
VALUES = {"H": exact(1), "d": exact(3), "rho": exact(1)}
VARIANCE = 0.75


def declared(mechanism, relation=None) -> Declaration:
    return Declaration(
        name="one gram",
        title="one gram",
        source="here",
        relation=relation or ReplaceOne("trajectory"),
        releases=(Release("gram", GRAM, mechanism),),
        claim=Claim(ZCDP(rho), source="here"),
        parameters=tuple(
            Parameter(name=n, default=1, kind=k, meaning=n)
            for n, k in (("H", "count"), ("d", "count"), ("rho", "positive"))
        ),
    )


def covariance(kind: str) -> np.ndarray:
    """Returns the covariance of the free entries, from how the noise is made out of independent normals."""
    rows, columns = np.triu_indices(3)
    made = np.zeros((rows.size, 9))  # each free entry as a combination of the nine Z_ij
    for entry, (i, j) in enumerate(zip(rows, columns, strict=True)):
        if kind == "goe":
            made[entry, 3 * i + j] += 1 / np.sqrt(2)
            made[entry, 3 * j + i] += 1 / np.sqrt(2)
        else:
            made[entry, 3 * i + j] = 1
    return VARIANCE * made @ made.T


def users(rng) -> tuple[Regressors, Regressors]:
    found = []
    for _ in range(2):
        x = rng.normal(size=(1, 1, 3))
        found.append(Regressors(vectors={"phi": x / np.linalg.norm(x) * rng.uniform()}, targets={}, weights={}))
    return found[0], found[1]


# [lemma symmetric-noise]
@pytest.mark.parametrize("kind", ["goe", "upper"])
def test_a_pairs_loss_is_that_of_the_exact_likelihood(kind):
    declaration = declared(SymmetricGaussian(variance=exact("3/4"), kind=kind))
    rng = np.random.default_rng(3)
    for _ in range(50):
        pair = users(rng)
        change = (GRAM.compute(pair[0]) - GRAM.compute(pair[1]))[0][np.triu_indices(3)]
        exactly = 0.5 * change @ np.linalg.solve(covariance(kind), change)
        loss = pair_loss(declaration, {"gram": declaration.releases[0].moved(pair, VALUES)}, VALUES)
        assert loss == pytest.approx(exactly, rel=1e-10)
        assert loss <= exactly * (1 + 1e-14)
        assert loss <= float(account(declaration).rho.number(VALUES)) * (1 + 1e-14)


# [lemma symmetric-noise]
@pytest.mark.parametrize(
    ("kind", "relation", "worst"),
    [  # ‖D‖_F² ≤ 2 under replacement, 1 under add/remove; GOE: ‖D‖²/4v, upper: ‖D‖²/2v, attained by diagonal D
        ("goe", ReplaceOne("trajectory"), 2 / (4 * VARIANCE)),
        ("upper", ReplaceOne("trajectory"), 2 / (2 * VARIANCE)),
        ("goe", AddRemoveOne("trajectory"), 1 / (4 * VARIANCE)),
        ("upper", AddRemoveOne("trajectory"), 1 / (2 * VARIANCE)),
    ],
)
def test_the_charge_is_the_worst_pairs_loss(kind, relation, worst):
    declaration = declared(SymmetricGaussian(variance=exact("3/4"), kind=kind), relation)
    assert account(declaration).rho.number(VALUES) == pytest.approx(worst, rel=1e-12)
    assert account(declaration).mu_squared.number(VALUES) == pytest.approx(2 * worst, rel=1e-12)
    witness = find_witness(declaration, VALUES)
    assert witness is not None
    assert worst * (1 - 1e-9) <= witness.loss <= worst


def test_a_matrix_with_its_own_noise_in_every_entry_is_charged_all_entries():
    """Independent noise at (i, j) and at (j, i): averaging them halves the variance off the diagonal."""
    declaration = declared(Gaussian(variance=exact("3/4")))
    pair = users(np.random.default_rng(4))
    change = GRAM.compute(pair[0]) - GRAM.compute(pair[1])
    loss = pair_loss(declaration, {"gram": declaration.releases[0].moved(pair, VALUES)}, VALUES)
    assert loss == pytest.approx(float((change**2).sum()) / (2 * VARIANCE), rel=1e-10)


def test_symmetric_noise_on_a_vector_is_refused():
    sums = FeatureSums(name="s", steps=H, dimension=d, vector=Column("phi", 1, "x"), target=Column("y", 1, "y"))
    noise = SymmetricGaussian(variance=1, kind="goe")
    with pytest.raises(DeclarationError, match="protects symmetric matrices; s is not one"):
        Release("sums", sums, noise)
    user = Regressors(vectors={"phi": np.ones((1, 1, 3)) / 2}, targets={"y": np.ones((1, 1))}, weights={})
    with pytest.raises(DeclarationError, match="protects symmetric matrices; this statistic is not one"):
        noise.whitened(sums.difference((user, None)))
