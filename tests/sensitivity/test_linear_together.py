"""Linear releases: no feasible pair found numerically moves them further than is charged, and the witness is as bad.

Random restarts of a local search over feasible points only (vectors up to their bound, targets and weights in range),
with the loss computed by loops that share nothing with the package. Seeded: the tests cannot fail by chance.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from privcheck.data.trajectories import Regressors
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace, SymmetricGaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import H, d, exact, expression, h, rho
from privcheck.verification import find_witness, verify
from privcheck.verification.joint_worst_case import cost_together, rho_together
from privcheck_algorithms.dp_lsvi_ucb import declare_fresh
from privcheck_algorithms.dp_vapvi.declaration import declare_split, declare_unsplit
from privcheck_algorithms.private_lsvi_ucb import luyo, ngo

pytestmark = pytest.mark.slow

PHI = Column("phi", 2, "x")
WEIGHT, OTHER = Column("w", expression(1) / 3, "w"), Column("v", 1, "v")
TARGET = Column("y", H - h + 1, "y")
PARAMETERS = (
    Parameter(name="H", default=2, kind="count", meaning="steps"),
    Parameter(name="d", default=2, kind="count", meaning="dimension"),
    Parameter(name="rho", default="1", kind="positive", meaning="budget"),
)


def made(gram_variance, sum_variance, *, kind="goe", gram_weight=None, sum_weight=None, power=1) -> Declaration:
    """Returns a declaration of one Gram matrix and one feature sum; the variances decide which of them rules."""
    gram = GramMatrices(name="gram", steps=H, dimension=d, vector=PHI, weight=gram_weight)
    sums = FeatureSums(name="sums", steps=H, dimension=d, vector=PHI, target=TARGET, power=power, weight=sum_weight)
    return Declaration(
        name="made",
        title="made",
        source="here",
        relation=ReplaceOne("trajectory"),
        releases=(
            Release("gram", gram, SymmetricGaussian(variance=exact(gram_variance), kind=kind)),
            Release("sums", sums, Gaussian(variance=exact(sum_variance))),
        ),
        claim=Claim(ZCDP(rho), source="here"),
        parameters=PARAMETERS,
    )


SYSTEMS = {
    "dp-vapvi": declare_split({}),
    "dp-vapvi-unsplit": declare_unsplit({}),
    "dp-lsvi-ucb-pp": declare_fresh({}),
    "luyo": luyo({}),
    "luyo-cumulative": luyo({"gram": "cumulative"}),
    "ngo": ngo({}),
    "gram rules": made("1", "5"),
    "sums rule, opposite vectors": made("100", "1", kind="upper", power=2),
    "one weight, balanced": made("4", "4", gram_weight=WEIGHT, sum_weight=WEIGHT),
    "weights differ": made("1", "900", gram_weight=WEIGHT, sum_weight=OTHER),
}


def sizes(declaration: Declaration, horizon: int, dimension: int) -> dict:
    given = {"H": horizon, "d": dimension, "K": 3, "B": 3, "N": 2}
    return declaration.values({p.name: given[p.name] for p in declaration.parameters if p.name in given})


def plain(releases, values) -> list[tuple]:
    """Returns the releases as plain numbers: the search below computes their losses many thousand times."""
    return [
        (
            r.statistic.vector.name,
            r.statistic.weight.name if r.statistic.weight else None,
            (r.statistic.target.name, r.statistic.power) if isinstance(r.statistic, FeatureSums) else None,
            getattr(r.mechanism, "kind", ""),
            r.mechanism.spread.number(values),
            r.schedule.times.number(values),
        )
        for r in releases
    ]


def naive_loss(releases, one, other) -> float:
    """Returns ρ of one step by loops over entries; `one` and `other` are (vectors, targets, weights) by name."""
    total = 0.0
    for vector, weight, target, kind, spread, times in releases:
        parts = []
        for vectors, targets, weights in (one, other):
            w = weights[weight] if weight else 1.0
            x = [float(a) for a in vectors[vector]]
            if target is None:
                parts.append([[w * a * b for a in x] for b in x])
            else:
                parts.append([w * targets[target[0]] ** target[1] * a for a in x])
        if target is None:
            for i in range(len(parts[0])):
                for j in range(i, len(parts[0])):
                    variance = 2 * spread if kind == "goe" and i == j else spread
                    total += times * (parts[0][i][j] - parts[1][i][j]) ** 2 / (2 * variance)
        else:
            total += sum(times * (a - b) ** 2 / (2 * spread) for a, b in zip(*parts, strict=True))
    return total


def bounds(releases, values, step):
    """Returns the bound of every vector, target and weight at a step, by name."""
    found = ({}, {}, {})
    for r in releases:
        columns = (r.statistic.vector, getattr(r.statistic, "target", None), r.statistic.weight)
        for kind, column in zip(found, columns, strict=True):
            if column is not None:
                kind[column.name] = column.bound.number({**values, "h": exact(step)})
    return found


def feasible(most, dimension, free):
    """Returns a user from free numbers: directions and lengths of vectors, targets and weights as sin² of an angle."""
    free = iter(free)
    vectors = {}
    for name, bound in most[0].items():
        raw = np.array([next(free) for _ in range(dimension)])
        vectors[name] = raw / max(np.linalg.norm(raw), 1e-12) * math.sin(next(free)) ** 2 * bound
    inside = [{name: math.sin(next(free)) ** 2 * bound for name, bound in kind.items()} for kind in most[1:]]
    return vectors, *inside


def searched(releases, values, step, dimension, *, restarts=10, shared=False) -> float:
    """Returns the largest loss of one step that a local search finds; with vectors and weights shared if so."""
    most, numbers = bounds(releases, values, step), plain(releases, values)
    half = len(most[0]) * (dimension + 1) + len(most[1]) + len(most[2])
    rng = np.random.default_rng(20_251_121 + step)

    def loss(free):
        one, other = (feasible(most, dimension, part) for part in (free[:half], free[half:]))
        return naive_loss(numbers, one, (one[0], other[1], one[2]) if shared else other)

    starts = rng.normal(size=(restarts, 2 * half))
    scale = max(loss(start) for start in starts)
    found = [minimize(lambda free: -loss(free) / scale, start, options={"gtol": 1e-9}).fun for start in starts]
    return -min(found) * scale


# [lemma linear-together]
@pytest.mark.parametrize(("horizon", "dimension"), [(1, 2), pytest.param(2, 3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_nothing_feasible_loses_more_than_the_joint_bound_and_the_witness_loses_as_much(name, horizon, dimension):
    declaration = SYSTEMS[name]
    values = sizes(declaration, horizon, dimension)
    found = max(
        sum(searched(declaration.seen_by(group), values, step, dimension) for step in range(1, horizon + 1))
        for group in declaration.groups
    )
    upper = rho_together(declaration, values)
    assert upper is not None
    assert found <= upper * (1 + 1e-9)
    witness = find_witness(declaration, values)
    assert witness is not None
    assert witness.loss <= upper
    assert witness.loss >= max(found, upper) * (1 - 1e-6)


ONE_COLUMN = {
    "gram alone": ("1", "1000000"),
    "both, gram rules": ("1", "20"),
    "both, balanced": ("1", "3"),
    "sums alone": ("1000000", "1"),
}


# [lemma linear-in-one-dimension]
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("name", ONE_COLUMN)
def test_in_one_dimension_the_joint_bound_is_attained(name, weight):
    declaration = made(*ONE_COLUMN[name], gram_weight=weight, sum_weight=weight)
    values = sizes(declaration, 2, 1)
    found = sum(searched(declaration.releases, values, step, 1, restarts=20) for step in (1, 2))
    upper, witness = float(rho_together(declaration, values)), find_witness(declaration, values)
    assert upper * (1 - 1e-6) <= found <= upper * (1 + 1e-9)
    assert upper * (1 - 1e-9) <= witness.loss <= upper


def test_in_one_dimension_different_weights_are_bounded_apart():
    declaration = made("1", "20", gram_weight=WEIGHT, sum_weight=OTHER)
    values = sizes(declaration, 1, 1)
    assert searched(declaration.releases, values, 1, 1, restarts=20) <= float(rho_together(declaration, values))


# [lemma shared-first-step]
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("variances", [("1", "5"), ("100", "1")])
def test_with_a_shared_first_step_nothing_feasible_loses_more(variances, weight, dimension):
    made_any = made(*variances, gram_weight=weight, sum_weight=weight)
    declaration = dataclasses.replace(made_any, relation=ReplaceOne("trajectory", initial="fixed"))
    values = sizes(declaration, 2, dimension)
    found = searched(declaration.releases, values, 1, dimension, shared=True)
    found += searched(declaration.releases, values, 2, dimension)
    upper, witness = float(rho_together(declaration, values)), find_witness(declaration, values)
    composed = verify(declaration, values).account.rho.number(values, rounding="up")
    assert found <= min(upper, composed) * (1 + 1e-9)
    assert found * (1 - 1e-6) <= witness.loss <= upper
    if weight is None:  # otherwise the weights might differ, as far as the bound knows
        assert witness.loss >= upper * (1 - 1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_no_gram_matrix_moves_further_in_the_first_norm(dimension):
    number = dimension if dimension == 1 else d  # in one dimension the sharper figure is that of the number 1
    statistic = GramMatrices(name="g", steps=expression(1), dimension=expression(number), vector=PHI)
    values = {"H": exact(1), "d": exact(dimension)}
    stated = statistic.sensitivity(ReplaceOne()).l1.number(values)

    def moved(free):
        x, z = (2 * part / max(1.0, float(np.linalg.norm(part))) for part in (free[:dimension], free[dimension:]))
        return np.abs(np.outer(x, x) - np.outer(z, z)).sum()

    rng = np.random.default_rng(20_251_123)
    starts = rng.normal(size=(40, 2 * dimension))
    found = max(
        -minimize(lambda free: -moved(free), start, method="Nelder-Mead", options={"maxiter": 4000}).fun
        for start in starts
    )
    assert found <= stated * (1 + 1e-9)
    if dimension == 3:
        return  # 3 % below the bound, which odd dimensions do not attain
    assert found >= stated * (1 - 1e-3)
    declaration = made("1", "1")
    flat = dataclasses.replace(declaration.releases[0], statistic=statistic, mechanism=Laplace(scale=1))
    alone = dataclasses.replace(declaration, releases=(flat,), claim=Claim(PureDP(rho), source="here"))
    values = alone.values({"H": 1, "d": dimension})
    assert find_witness(alone, values).loss >= found * (1 - 1e-2)


# [lemma linear-together]
@pytest.mark.parametrize(
    ("gram_variance", "sum_variance", "weights"),
    [
        ("4", "1", (WEIGHT, None)),
        ("1", "1", (WEIGHT, OTHER)),
        ("1", "40", (WEIGHT, OTHER)),
        ("1/9", "4", (None, OTHER)),
        ("1/9", "1", (WEIGHT, OTHER)),
    ],
)
def test_with_weights_of_their_own_the_worst_users_may_drop_some(gram_variance, sum_variance, weights):
    """With c = −1 forced by the sums, unequal weights beat equal ones. It was bounded apart, 1.2 against .9."""
    declaration = made(gram_variance, sum_variance, gram_weight=weights[0], sum_weight=weights[1])
    values = sizes(declaration, 1, 2)
    upper, witness = float(rho_together(declaration, values)), find_witness(declaration, values)
    found = searched(declaration.releases, values, 1, 2)
    assert found <= upper * (1 + 1e-9)
    assert max(found, upper * (1 - 1e-6)) <= witness.loss * (1 + 1e-6) <= upper * (1 + 1e-5)


def test_no_joint_bound_where_it_is_not_derived():
    declaration = made("1", "1")
    values = sizes(declaration, 1, 2)
    for relation in (AddRemoveOne("trajectory"), ZeroOut("trajectory")):
        assert rho_together(dataclasses.replace(declaration, relation=relation), values) is None
    longer = dataclasses.replace(PHI, name="phi", bound=expression(3), latex="x")
    first, second = declaration.releases
    moved = dataclasses.replace(second, statistic=dataclasses.replace(second.statistic, vector=longer))
    assert rho_together(dataclasses.replace(declaration, releases=(first, moved)), values) is None


def test_an_approximate_claim_is_judged_by_the_curve_of_the_joint_bound():
    declaration = dataclasses.replace(made("16", "16"), claim=Claim(ApproxDP(rho, exact("1/1000")), source="here"))
    values = sizes(declaration, 2, 2)
    found = verify(declaration, values)
    assert found.upper_ratio == pytest.approx(cost_together(declaration, values), rel=1e-12)
    assert found.lower_ratio == pytest.approx(found.upper_ratio, rel=1e-6)
    assert found.upper_ratio < found.account.at(values).epsilon(1e-3)


STATISTICS = {
    "gram": GramMatrices(name="g", steps=H, dimension=d, vector=Column("phi", H - h + 1, "x")),
    "weighted gram": GramMatrices(name="g", steps=H, dimension=d, vector=PHI, weight=WEIGHT),
    "sums": FeatureSums(name="s", steps=H, dimension=d, vector=PHI, target=TARGET),
    "weighted squares": FeatureSums(name="s", steps=H, dimension=d, vector=PHI, target=TARGET, power=2, weight=WEIGHT),
}


# [lemma gram-change]
@pytest.mark.parametrize("relation", [ReplaceOne("user"), AddRemoveOne("user"), ZeroOut("user")], ids=lambda r: r.words)
@pytest.mark.parametrize("name", STATISTICS)
def test_sensitivities_are_the_largest_change_that_is_found(name, relation):
    statistic, values, dimension, horizon = STATISTICS[name], {"H": exact(2), "d": exact(3)}, 3, 2
    release = (Release("r", statistic, Gaussian(variance=1)),)
    most = [bounds(release, values, step) for step in (1, 2)]
    half = dimension + 1 + len(most[0][1]) + len(most[0][2])
    alone = not isinstance(relation, ReplaceOne)

    def user(free, at) -> Regressors:
        empty = feasible(most[at], dimension, np.zeros(half))
        steps = [feasible(most[at], dimension, free) if step == at else empty for step in range(horizon)]
        stacked = [{n: np.array([[s[kind][n] for s in steps]]) for n in steps[0][kind]} for kind in range(3)]
        return Regressors(vectors=stacked[0], targets=stacked[1], weights=stacked[2])

    def moved(free, at) -> float:
        pair = (user(free[:half], at), None if alone else user(free[half:], at))
        return statistic.difference(pair).every_entry().l2_squared

    rng = np.random.default_rng(20_251_122)
    starts = rng.normal(size=(8, half if alone else 2 * half))
    found = sum(  # the squares of the steps add up, and their data is free of one another
        max(-minimize(lambda free, at=at: -moved(free, at), start, options={"gtol": 1e-9}).fun for start in starts)
        for at in range(horizon)
    )
    charged = statistic.sensitivity(relation).l2.number(values) ** 2
    assert found <= charged * (1 + 1e-9)
    assert found >= charged * (1 - 1e-6)
