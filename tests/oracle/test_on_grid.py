"""Statistics on a grid against a naive twin in fractions, and their sensitivities against pairs of neighbours.

The twin rounds what each user adds, as a fraction of the unit, and sums up whole numbers; it shares no code with what
is shipped. Sensitivities of rounded contributions are upper bounds, tried on random and extreme users; of rounded
rewards they are compared with all neighbours for equality.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.commands.settings import settle
from privcheck.data.trajectories import Regressors, Trajectories, take
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import Column, CostSums, FeatureSums, GramMatrices, RewardSums, VisitCounts
from privcheck.declare.statistics.grid import OnGrid
from privcheck.errors import TrajectoryError
from privcheck.pricing import account
from privcheck.runtime.discretisation import FACTOR, as_drawn
from privcheck.runtime.registry import algorithm
from privcheck.terms.symbols import expression
from privcheck.verification import verify
from privcheck_algorithms.linear.tables import LinearSteps, LinearTables

PHI, V, W = Column("phi", 1, "x"), Column("V", 3, "V"), Column("w", 1, "w")
UNIT = Fraction(1, 64)  # coarse, so that rounding is most of what is seen


def regressors(rng, users, d, H=2):
    """Users whose vectors have norm 1 or less, corners preferred."""
    x = rng.normal(size=(users, H, d)) * (rng.random((users, H, d)) < 0.7)
    x /= np.maximum(np.linalg.norm(x, axis=2, keepdims=True), 1e-9) * (1 + 1e-12)
    return Regressors(
        vectors={"phi": x * rng.choice([0.3, 1.0], (users, H, 1))},
        targets={"V": rng.choice([0.0, 3.0, 1.7], (users, H))},
        weights={"w": rng.choice([1.0, 0.37], (users, H))},
    )


def gram(d, symmetric):
    statistic = GramMatrices(name="g", steps=expression(2), dimension=expression(d), vector=PHI, weight=W)
    m = 2 * (d * (d + 1) // 2 if symmetric else d * d)
    return OnGrid(of=statistic, unit=UNIT, rounding="contributions", symmetric=symmetric, coordinates=m)


def sums(d):
    statistic = FeatureSums(
        name="s", steps=expression(2), dimension=expression(d), vector=PHI, target=V, weight=W, power=2
    )
    return OnGrid(of=statistic, unit=UNIT, rounding="contributions", coordinates=2 * d)


def naive(grid, data, h):
    """Sums of each user's numbers, rounded as fractions of the unit, half to even."""
    total = None
    for u in range(data.users):
        x, w = data.vectors["phi"][u, h], data.weights["w"][u, h]
        if isinstance(grid.of, FeatureSums):
            numbers = [w * data.targets["V"][u, h] ** 2 * xi for xi in x]
        elif grid.symmetric:
            half = math.sqrt(2) if grid.symmetric == "goe" else 1.0
            numbers = [x[i] * x[j] * w / (half if i == j else 1) for i in range(len(x)) for j in range(i, len(x))]
        else:
            numbers = [x[i] * x[j] * w for i in range(len(x)) for j in range(len(x))]
        whole = [Fraction(float(n)) / grid.unit for n in numbers]
        near = [n.denominator == 2 or abs(n - round(n)) > Fraction(1, 2) - Fraction(1, 10**9) for n in whole]
        assert not any(near)  # so that the order of a product does not matter
        total = (
            [round(n) for n in whole] if total is None else [t + round(n) for t, n in zip(total, whole, strict=True)]
        )
    return np.array(total, dtype=np.float64)


GRIDS = [gram(3, "goe"), gram(3, "upper"), gram(2, ""), sums(3)]


@pytest.mark.parametrize("grid", GRIDS)
def test_sums_are_those_of_rounded_contributions(grid):
    rng, d = np.random.default_rng(5), int(grid.of.dimension.number({}))
    for users in (1, 2, 17):
        data = regressors(rng, users, d)
        for h in range(2):
            assert np.array_equal(grid.compute(data, step=h).ravel(), naive(grid, data, h))
        assert np.array_equal(grid.compute(data), np.stack([grid.compute(data, step=h) for h in range(2)]))


# [lemma rounded-contributions]
@pytest.mark.parametrize("grid", GRIDS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_pair_of_users_moves_a_statistic_further_than_is_charged(grid, seed):
    rng, d = np.random.default_rng(seed), int(grid.of.dimension.number({}))
    pair = (regressors(rng, 1, d), regressors(rng, 1, d))
    if rng.random() < 0.5:  # opposite vectors and full targets, nearly the worst pair
        x = pair[0].vectors["phi"]
        pair = tuple(
            Regressors(vectors={"phi": v}, targets={"V": np.full((1, 2), 3.0)}, weights={"w": np.ones((1, 2))})
            for v in (x, -x)
        )
    for relation, users in ((ReplaceOne(), pair), (AddRemoveOne(), (pair[0], None))):
        moved, charged = grid.difference(users), grid.sensitivity(relation)
        for norm, most in ((1, charged.l1), (2, charged.l2), (np.inf, charged.linf)):
            assert np.linalg.norm(moved.change, ord=norm) <= most.number({}) if moved.change.size else True


@pytest.mark.parametrize("symmetric", ["goe", "upper"])
def test_matrices_come_back_in_their_own_unit(symmetric):
    grid, rng = gram(4, symmetric), np.random.default_rng(1)
    whole = np.rint(rng.normal(size=10) * 50)
    matrix = grid.shown(whole)
    assert np.array_equal(matrix, matrix.T)
    rows, columns = np.triu_indices(4)
    entries = matrix[rows, columns] / float(UNIT)
    assert entries[rows != columns].tolist() == whole[rows != columns].tolist()
    on = entries[rows == columns] / (math.sqrt(2) if symmetric == "goe" else 1)
    assert on == pytest.approx(whole[rows == columns], rel=1e-15)
    if symmetric == "goe":  # in these coordinates the Frobenius norm is √2 times the Euclidean one
        assert np.linalg.norm(matrix) == pytest.approx(math.sqrt(2) * float(UNIT) * np.linalg.norm(whole), rel=1e-14)


def users_of(H, S, A, rewards):
    """Every user there can be with these rewards."""
    for path in itertools.product(range(S), repeat=H + 1):
        for actions in itertools.product(range(A), repeat=H):
            for gained in itertools.product(rewards, repeat=H):
                yield Trajectories(
                    states=np.array([path]), actions=np.array([actions]), rewards=np.array([gained]),
                    num_states=S, num_actions=A,
                )  # fmt: skip


# [lemma rounded-rewards]
@pytest.mark.parametrize("table", [RewardSums, CostSums])
def test_rounded_rewards_move_a_table_exactly_as_far_as_rewards_do(table):
    grid = OnGrid(of=table(2, 2, 1), unit=Fraction(1, 8), rounding="rewards")
    every = list(users_of(2, 2, 1, (0.0, 0.33, 1.0)))
    tables = np.stack([grid.compute(user).ravel() for user in every])
    change = tables[:, np.newaxis] - tables
    charged = grid.sensitivity(ReplaceOne())
    assert np.abs(change).sum(axis=-1).max() == charged.l1.number({}) == 8 * 4
    assert np.linalg.norm(change, axis=-1).max() == pytest.approx(charged.l2.number({}), rel=1e-15)
    assert np.abs(change).max() == charged.linf.number({}) == 8
    for first, second in itertools.islice(itertools.product(every[::7], every[::5]), 60):
        moved, dense = grid.difference((first, second)), np.zeros(tables.shape[1])
        dense[moved.cells] = moved.change
        assert np.array_equal(dense, (grid.compute(first) - grid.compute(second)).ravel())


def test_sums_do_not_depend_on_the_order_of_the_users():
    rng = np.random.default_rng(3)
    data = Trajectories(
        states=rng.integers(0, 3, (500, 4)), actions=rng.integers(0, 2, (500, 3)), rewards=rng.random((500, 3)),
        num_states=3, num_actions=2,
    )  # fmt: skip
    grid, order = OnGrid(of=RewardSums(3, 3, 2), unit=Fraction(1, 2**24), rounding="rewards"), rng.permutation(500)
    assert np.array_equal(grid.compute(data), grid.compute(take(data, order)))
    assert not np.array_equal(grid.of.compute(data), grid.of.compute(take(data, order)))  # as floats they do
    rounded = grid.compute(data) * float(grid.unit)
    assert np.abs(rounded - grid.of.compute(data)).max() < 500 * 2**-25 + 1e-12


def test_what_is_not_on_the_grid_is_refused():
    class Squares(type(RewardSums(1, 1, 1))):
        """Sums of squared rewards, which are finer than the grid of the rewards."""

    table = RewardSums(1, 2, 1)
    squares = Squares(
        **{name: getattr(table, name) for name in table.__slots__} | {"weight": lambda d, h: d.rewards[:, h] ** 2}
    )
    data = next(users_of(1, 2, 1, (0.3,)))
    with pytest.raises(TrajectoryError, match="is not on it itself: give it `contributions`"):
        OnGrid(of=squares, unit=Fraction(1, 8), rounding="rewards").compute(data)


def test_linear_tables_tell_what_each_user_adds():
    rng = np.random.default_rng(2)
    tables = LinearTables(2, 3, 4, gram=1, successors=2, rewards=3)
    phi = rng.normal(size=(30, 2, 3))
    data = LinearSteps(
        phi=phi / np.linalg.norm(phi, axis=2, keepdims=True) / (1 + 1e-12), following=rng.integers(0, 4, (30, 2)),
        rewards=rng.random((30, 2)), states=4, weights=tables.weights_at({}),
    )  # fmt: skip
    each = tables.contributions(data, step=1, rows=slice(4, 20))
    for row, user in zip(each, range(4, 20), strict=True):
        alone = LinearSteps(
            phi=data.phi[[user]], following=data.following[[user]], rewards=data.rewards[[user]], states=4,
            weights=data.weights,
        )  # fmt: skip
        assert row == pytest.approx(tables.compute(alone, step=1), abs=1e-15)


@pytest.mark.parametrize("name", ["dp-apvi", "dp-apvi-laplace", "calibrated-ucb-vi", "dp-vapvi", "calibrated-vapvi"])
def test_what_is_drawn_costs_what_is_declared_or_a_millionth_less(name):
    setting = settle(algorithm(name), {"H": "4"})
    drawn = as_drawn(setting.declared, setting.values)
    before, after = (account(one).at(setting.values) for one in (setting.declared, drawn))
    if name == "dp-apvi-laplace":
        assert after.pure == before.pure
    else:
        assert before.rho * (1 - 4e-6) <= after.rho <= before.rho * (1 + 1e-12)
    for old, new in zip(setting.declared.releases, drawn.releases, strict=True):
        unit = float(getattr(new.statistic, "unit", 1))
        larger = new.mechanism.at(setting.values).scale * unit / old.mechanism.at(setting.values).scale
        assert 1 - 1e-15 <= larger <= float(FACTOR) * (1 + 1e-14)
    if name == "calibrated-ucb-vi":  # (1, 10⁻⁵)-DP by the discrete curve, not by the continuous one
        assert after.mu is None
        assert before.epsilon(1e-5) * (1 - 1e-5) <= after.epsilon(1e-5) <= 1
    if name in {"dp-apvi", "dp-apvi-laplace", "calibrated-ucb-vi"}:
        assert verify(drawn, setting.values).verdict == "holds"


def test_whole_numbers_under_zcdp_keep_their_spread_on_a_grid():
    setting = settle(algorithm("dp-apvi"), {})
    drawn = as_drawn(setting.declared, setting.values)
    for before, after in zip(setting.declared.releases, drawn.releases, strict=True):
        assert (after.statistic.of, after.statistic.rounding) == (before.statistic, "none")
        units = 1 / after.statistic.unit
        assert after.mechanism.variance == before.mechanism.variance * units**2
    assert OnGrid(of=VisitCounts(2, 2, 2), unit=Fraction(1, 4), rounding="none").sensitivity(
        ReplaceOne()
    ).l1 == expression(16)
