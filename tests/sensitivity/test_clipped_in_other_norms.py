"""Sums clipped in ℓ₁, ℓ₂ and ℓ∞: no pair of clipped vectors moves them further than derived, and some do as far."""

import itertools

import numpy as np
import pytest

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.declare.declaration import Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.schedules import Poisson
from privcheck.declare.statistics import ClippedSums, Vectors, clip_users
from privcheck.errors import PrivcheckError
from privcheck.terms.guarantees import ZCDP, PureDP
from privcheck.terms.symbols import epsilon, rho

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
PARAMETERS = tuple(Parameter(name=n, default=1, kind="positive", meaning=n) for n in ("epsilon", "rho"))


def norms(change):
    return [float(np.linalg.norm(change, order)) for order in (1, 2, np.inf)]


# [lemma norm-ball]
@pytest.mark.parametrize("ball", ORDERS)
@pytest.mark.parametrize("relation", [AddRemoveOne(), ReplaceOne()])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_sensitivities_are_those_of_the_corners_of_the_ball(ball, relation, d):
    statistic = ClippedSums(dimension=d, norm="3/2", ball=ball)
    derived = statistic.sensitivity(relation)
    bounds = [one.number() for one in (derived.l1, derived.l2, derived.linf)]
    corners = [*np.eye(d), *-np.eye(d)] + [np.array(signs) for signs in itertools.product((-1, 1), repeat=d)]
    rng = np.random.default_rng(d)
    rows = np.array([*corners, *rng.normal(size=(200, d))]) * 50  # clipped from far outside
    users = [Vectors(rows=row[np.newaxis], norm=1.5, ball=ball) for row in rows]
    assert all(np.linalg.norm(u.rows[0], ORDERS[ball]) <= 1.5 * (1 + 1e-12) for u in users)
    others = [None] if isinstance(relation, AddRemoveOne) else users
    found = np.zeros(3)
    for one, other in itertools.product(users, others):
        change = statistic.compute(one)[0] - (0 if other is None else statistic.compute(other)[0])
        found = np.maximum(found, norms(change))
    assert found == pytest.approx(bounds, rel=1e-9)
    moved = np.max([norms(statistic.difference(p).change) for p in statistic.extreme_pairs(relation, {})], axis=0)
    assert moved == pytest.approx(bounds, rel=1e-9)


@pytest.mark.parametrize("relation", [AddRemoveOne(), ReplaceOne()])
@pytest.mark.parametrize("schedule", [{}, {"schedule": Poisson(rate=1, rounds=1)}])
def test_laplace_noise_on_a_ball_of_l1_is_decided_from_both_sides(relation, schedule):
    for ball, noise, claim in (
        ("l1", lambda s: Laplace(scale=s.l1 / epsilon), PureDP(epsilon)),
        ("linf", lambda s: Gaussian(variance=s.l2**2 / (2 * rho)), ZCDP(rho)),
    ):
        statistic = ClippedSums(dimension=4, norm=2, ball=ball)
        declaration = Declaration(
            name="own", title="", source="", relation=relation, parameters=PARAMETERS,
            releases=(Release("sums", statistic, noise(statistic.sensitivity(relation)), **schedule),),
            claim=Claim(claim, source="here"),
        )  # fmt: skip
        if schedule and isinstance(relation, ReplaceOne):
            continue  # in ρ every user is in every sample
        found = verify(declaration, declaration.values())
        assert found.verdict == "holds"
        assert found.lower_ratio == pytest.approx(1, rel=1e-2 if schedule else 1e-9)


def test_other_balls_are_refused():
    with pytest.raises(PrivcheckError, match="ball"):
        ClippedSums(dimension=1, norm=1, ball="l3")
    with pytest.raises(PrivcheckError, match="ball"):
        Vectors(rows=np.ones((1, 1)), norm=1, ball="2")
    together = clip_users(np.array([[3.0, 1.0], [1.0, 0.0]]), np.array([4, 4]), norm=1, ball="linf")
    assert together.rows.tolist() == [[1.0, 0.25]]
    with pytest.raises(PrivcheckError, match="clipped in l2"):
        ClippedSums(dimension=2, norm=1, per="user").compute(together)
