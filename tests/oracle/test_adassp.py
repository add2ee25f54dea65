"""AdaSSP's verdict against the Gaussian curve written out here, and the smallest eigenvalue against random matrices."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import mutants
from privcheck.commands.settings import resolve_setting
from privcheck.data.trajectories import Regressors
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import Column, SmallestEigenvalue
from privcheck.errors import PrivcheckError
from privcheck.verification import verify
from privcheck.verification.neighbours import fault
from privcheck_audits.releases.view import audit_releases
from small_declarations import request


def judged(**given):
    setting = resolve_setting("adassp", {key: str(value) for key, value in given.items()})
    return verify(setting.declared, setting.values)


def gaussian_epsilon(mu, delta):
    """ε at which N(0, 1) against N(μ, 1) has δ."""

    def over(e):
        return norm.cdf(mu / 2 - e / mu) - math.exp(e + norm.logcdf(-mu / 2 - e / mu)) - delta

    return brentq(over, 0.0, 1e3 * mu * mu + 100 * mu, xtol=1e-13, rtol=1e-13)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (1, 1e-2), (10, 1e-9), (20, 1e-6), (60, 1e-6)])
@pytest.mark.parametrize("d", [1, 2, 6])
def test_three_gaussians_that_one_row_moves_by_their_sensitivities(epsilon, delta, d):
    mu = math.sqrt(3) * (epsilon / 3) / math.sqrt(math.log(6 / delta))
    ratio = gaussian_epsilon(mu, delta) / epsilon
    found = judged(epsilon=epsilon, delta=f"{delta:.9f}", d=d)
    assert found.upper_ratio == pytest.approx(ratio, rel=1e-6)
    assert found.lower_ratio == pytest.approx(ratio, rel=1e-6)
    assert found.verdict == ("holds" if ratio < 1 else "fails")


@pytest.mark.parametrize("given", [{"X": "7/2", "Y": 20}, {"X": "1/10", "Y": "1/3", "d": 9}])
def test_units_do_not_matter(given):
    assert judged(**given).upper_ratio == pytest.approx(judged().upper_ratio, rel=1e-9)


def test_no_release_is_worth_its_third_of_the_budget():
    """Each alone has μ = (ε/3)/√ln(6/δ), which is (ε/3, δ/3)-DP for no ε: by 5.6 % at ε = 1, δ = 10⁻⁶."""
    codes = [finding for finding in judged().findings if finding.code == "budget-exceeded"]
    assert {finding.where for finding in codes} == {"eigenvalue", "gram", "moments"}
    alone = gaussian_epsilon((1 / 3) / math.sqrt(math.log(6e6)), 1e-6 / 3) * 3
    assert alone > 1.05
    assert f"{alone:.6g}" in codes[0].message


def test_replacing_a_row_moves_the_sums_further():
    found = judged(relation="replace-one")
    assert 0.75 < found.lower_ratio <= found.upper_ratio < 0.95
    assert judged(relation="replace-one", epsilon=25).verdict != "holds"


def test_a_twentieth_less_noise_is_seen():
    setting = resolve_setting("adassp", {"epsilon": "60"})
    less = tuple(
        replace(r, mechanism=r.mechanism.with_spread(r.mechanism.spread * Fraction(19, 20) ** 2))
        for r in setting.declared.releases
    )
    quieter = verify(replace(setting.declared, releases=less), setting.values)
    base = judged(epsilon=60)
    assert quieter.lower_ratio > base.lower_ratio * 1.03
    assert quieter.upper_ratio > base.upper_ratio * 1.03


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "consistent"), (0.5, "violation")])
def test_an_audit_of_its_releases_finds_half_of_the_noise(factor, verdict):
    """At confidence 1 − 1e-9, where the claim is nearly attained."""
    setting = resolve_setting("adassp", {"epsilon": "20"})
    declaration = mutants.rescaled_noise(setting.declared, factor)
    asked = {"sets": {"epsilon": 20}, "trials": 50_000, "confidence": 1 - 1e-9, "delta": 1e-6}
    assert audit_releases(request(declaration, **asked)).verdict == verdict


# [lemma least-eigenvalue]
@pytest.mark.parametrize("seed", range(30))
def test_no_row_moves_the_smallest_eigenvalue_further_than_its_square(seed):
    rng = np.random.default_rng(seed)
    d, users = int(rng.integers(1, 6)), int(rng.integers(0, 12))
    rows = rng.normal(size=(users, d)) * rng.choice([0.1, 1.0, 10.0], size=(users, 1))
    x, z = (v * rng.choice([1.0, 1.5]) / np.linalg.norm(v) for v in rng.normal(size=(2, d)))

    def least(*extra):
        together = np.vstack([rows, *(row[np.newaxis] for row in extra)])
        return np.linalg.eigvalsh(together.T @ together)[0]

    statistic = SmallestEigenvalue(dimension=d, vector=Column("x", "3/2", "x"))
    for relation, change in ((AddRemoveOne(), least(x) - least()), (ReplaceOne(), least(x) - least(z))):
        bound = statistic.sensitivity(relation)
        assert abs(change) <= bound.l2.number() + 1e-9
        assert bound.l1 == bound.l2 == bound.linf


def test_the_worst_others_attain_it_and_the_change_is_theirs():
    statistic = SmallestEigenvalue(dimension=3, vector=Column("x", 2, "x"))
    for x in ([2.0, 0, 0], [0, 2.0, 0], [1.0, 1.0, 0]):
        user = Regressors(vectors={"x": np.array([[x]])}, targets={}, weights={})
        (change,) = statistic.difference((user, None)).change.tolist() or (0.0,)
        most = 1 + 2 * float(np.square(x).sum())
        crowd = np.diag([0, most, most]) + np.outer(x, x)
        assert change == pytest.approx(np.linalg.eigvalsh(crowd)[0], abs=1e-12)
        assert statistic.compute(user).shape == (1, 1)
    first = Regressors(vectors={"x": np.array([[[2.0, 0, 0]]])}, targets={}, weights={})
    assert statistic.difference((first, None)).change.tolist() == pytest.approx([4])


def test_rows_beyond_the_bound_are_no_witness_and_nonsense_is_refused():
    from privcheck.declare.declaration import Release

    statistic = SmallestEigenvalue(dimension=2, vector=Column("x", 1, "x"))
    release = Release("eigenvalue", statistic, Gaussian(variance=1))
    far, steps = (
        Regressors(vectors={"x": np.full(shape, 0.9)}, targets={}, weights={}) for shape in ((1, 1, 2), (1, 2, 2))
    )
    assert "expected 0 to 1" in fault(AddRemoveOne(), (release,), (far, None), {})
    with pytest.raises(PrivcheckError, match="one vector per user, got 2 steps"):
        statistic.compute(steps)
    for given in ({"X": 0}, {"d": "1/2"}, {"delta": 2}, {"epsilon": -1}):
        with pytest.raises(PrivcheckError):
            judged(**given)
