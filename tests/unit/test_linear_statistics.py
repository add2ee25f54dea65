"""Gram matrices and feature sums: computed as loops say, and data beyond the bounds is refused at the door."""

from fractions import Fraction

import numpy as np
import pytest

from privcheck.data.trajectories import Regressors
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.declare.statistics.linear import check_bounds, step_bounds
from privcheck.errors import TrajectoryError
from privcheck.terms.symbols import H, before, d, exact, h, sqrt, sum_steps
from privcheck_algorithms.dp_vapvi.declaration import declare_split, make_printed_features, yield_printed_pairs

PHI, TARGET, WEIGHT = Column("phi", 1, "x"), Column("y", H - h, "y"), Column("w", 1, "w")
VALUES = {"H": exact(3), "d": exact(4)}


def data(users=5, seed=0) -> Regressors:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(users, 3, 4))
    vectors /= 1.01 * np.linalg.norm(vectors, axis=2, keepdims=True)
    targets = rng.uniform(size=(users, 3)) * [2, 1, 0]
    return Regressors(vectors={"phi": vectors}, targets={"y": targets}, weights={"w": rng.uniform(size=(users, 3))})


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_gram_matrices_are_what_loops_say(weight):
    statistic = GramMatrices(name="g", steps=H, dimension=d, vector=PHI, weight=weight)
    given = data()
    naive = np.zeros((3, 4, 4))
    for user in range(5):
        for step in range(3):
            w = given.weights["w"][user, step] if weight else 1.0
            x = given.vectors["phi"][user, step]
            for i in range(4):
                for j in range(4):
                    naive[step, i, j] += w * x[i] * x[j]
    np.testing.assert_allclose(statistic.compute(given), naive, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(statistic.compute(given, step=1), statistic.compute(given)[1])
    assert statistic.shape(VALUES) == naive.shape


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_feature_sums_are_what_loops_say(weight, power):
    statistic = FeatureSums(name="s", steps=H, dimension=d, vector=PHI, target=TARGET, power=power, weight=weight)
    given = data()
    naive = np.zeros((3, 4))
    for user in range(5):
        for step in range(3):
            w = given.weights["w"][user, step] if weight else 1.0
            for i in range(4):
                naive[step, i] += w * given.targets["y"][user, step] ** power * given.vectors["phi"][user, step, i]
    np.testing.assert_allclose(statistic.compute(given), naive, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(statistic.compute(given, step=2), statistic.compute(given)[2])


def test_a_difference_is_one_sum_less_the_other_with_each_pair_of_mirrored_entries_once():
    statistic = GramMatrices(name="g", steps=H, dimension=d, vector=PHI)
    one, other = data(1, seed=1), data(1, seed=2)
    whole = (statistic.compute(one) - statistic.compute(other)).ravel()
    sparse = statistic.difference((one, other))
    assert sparse.mirrored is not None
    assert sparse.cells.size == 3 * 10
    np.testing.assert_allclose(sparse.change, whole[sparse.cells])
    assert sparse.l2_squared == pytest.approx(float(whole @ whole), rel=1e-12)
    assert sparse.l1 == pytest.approx(float(np.abs(whole).sum()), rel=1e-12)
    assert sparse.every_entry().change.size == whole.size
    assert sparse.every_entry().l2_squared == pytest.approx(sparse.l2_squared, rel=1e-12)


def changed(kind: str, name: str, value) -> Regressors:
    given = data()
    columns = {k: {n: c.copy() for n, c in getattr(given, k).items()} for k in ("vectors", "targets", "weights")}
    columns[kind][name][3, 1] = value
    return Regressors(**columns)


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ("vectors", "phi", [0.8, 0.7, 0, 0], r"the norm of phi is 1\.06301 for user 3 at step 2, expected 0 to 1"),
        ("targets", "y", 1.001, r"y is 1\.001 for user 3 at step 2, expected 0 to 1 \(H - h\)"),
        ("targets", "y", -0.01, r"y is -0\.01 for user 3"),
        ("weights", "w", 1.5, r"w is 1\.5 for user 3 at step 2, expected 0 to 1"),
    ],
)
def test_data_beyond_a_bound_is_refused_with_user_step_and_value(kind, name, value, message):
    statistic = FeatureSums(name="s", steps=H, dimension=d, vector=PHI, target=TARGET, weight=WEIGHT)
    check_bounds(data(), statistic, VALUES)
    with pytest.raises(TrajectoryError, match=message):
        check_bounds(changed(kind, name, value), statistic, VALUES)


def test_the_printed_features_are_refused_until_they_are_divided_by_the_root_of_seven():
    phi = make_printed_features()
    assert phi.shape == (2, 100, 10)
    assert float((phi**2).sum(axis=2).max()) == 7.0
    _, one = next(iter(yield_printed_pairs({"H": exact(2)})))
    values = {"H": exact(2), "d": exact(10), "rho": exact(1)}
    statistic = declare_split({}).releases[2].statistic
    with pytest.raises(TrajectoryError, match=r"the norm of phi is 2\.64575 for user 0 at step 1, expected 0 to 1"):
        check_bounds(one, statistic, values)
    scaled = {"phi": one.vectors["phi"] / np.sqrt(7)}
    check_bounds(Regressors(vectors=scaled, targets=one.targets, weights=one.weights), statistic, values)
    check_bounds(one, declare_split({"features": "printed"}).releases[2].statistic, values)


def test_missing_steps_and_columns_are_refused():
    statistic = FeatureSums(name="s", steps=H, dimension=d, vector=PHI, target=Column("z", 1, "z"))
    with pytest.raises(TrajectoryError, match="no targets called 'z'; expected one of y"):
        statistic.compute(data())
    with pytest.raises(TrajectoryError, match=r"expected a step in 0\.\.2, got 3"):
        GramMatrices(name="g", steps=H, dimension=d, vector=PHI).compute(data(), step=3)


@pytest.mark.parametrize("power", [1, 2, 4])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_bound_that_is_zero_at_the_last_step_only(power, steps):
    value = sum_steps(H, (3 * H * before(H)) ** power).at({"H": exact(steps)}).rational()
    assert value == (steps - 1) * (3 * steps) ** power


@pytest.mark.parametrize(
    "bound",
    [H - h, H - h + 1, H * before(H), (H - h) ** 2 * d, H / 2 - h / 2, sqrt(d) * (H - h), H * before(H - 1) - h],
)
def test_bounds_at_all_steps_are_those_at_each(bound):
    values = {"H": Fraction(7), "d": Fraction(3)}
    for rounding in ("down", "up"):
        each = [bound.number({**values, "h": Fraction(s)}, rounding=rounding) for s in range(1, 8)]
        assert step_bounds(bound, values, 7, rounding=rounding).tolist() == each
