"""Users with up to m trajectories: sensitivities against every choice of them at tiny sizes, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.data.trajectories import Regressors, take
from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace, ShuffledBits, SymmetricGaussian
from privcheck.declare.procedures import RandomisedResponse
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut, extreme_pairs
from privcheck.declare.schedules import Batches, EveryEpisode, PerUser, Poisson, Tree
from privcheck.declare.statistics import (
    ClippedSums,
    Column,
    CostSums,
    FeatureSums,
    GramMatrices,
    OneStepEach,
    PooledRewardSums,
    PooledVisitCounts,
    RewardBits,
    RewardSums,
    TransitionCounts,
    Vectors,
    VisitCounts,
    clip_users,
)
from privcheck.declare.statistics.sensitivities import is_derived
from privcheck.errors import DeclarationError, ParameterError, TrajectoryError
from privcheck.pricing import account
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, S, d, rho, same, sqrt, symbol
from privcheck.testing import all_users, assert_sensitivity, suprema
from privcheck.verification import verify
from privcheck.verification.neighbours import fault
from structures import over_registry

m = symbol("m", "count")
RELATIONS = [ReplaceOne("user", trajectories=m), AddRemoveOne("user", trajectories=m), ZeroOut("user", trajectories=m)]
TABLES = [f(H, S, A) for f in (VisitCounts, TransitionCounts, RewardSums, RewardBits, CostSums)]
TABLES += [PooledVisitCounts(H, S, A), PooledRewardSums(H, S, A)]
DEFAULTS = (("H", 3, "count"), ("S", 2, "count"), ("A", 2, "count"), ("m", 4, "count"), ("rho", 1, "positive"))
PARAMETERS = tuple(Parameter(name=name, default=default, kind=kind, meaning=name) for name, default, kind in DEFAULTS)
each_relation = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: type(r).__name__)
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)


def at(sizes, several):
    return {**dict(zip("HSA", map(Fraction, sizes), strict=True)), "m": Fraction(several)}


def declare(relation=RELATIONS[0], claim=None, **changed):
    release = Release("visits", VisitCounts(H, S, A), Gaussian(variance=H / rho))
    return Declaration(
        name="several", title="", source="a test", relation=relation,
        releases=(replace(release, **{k: v for k, v in changed.items() if k not in ("model", "parameters")}),),
        claim=claim or Claim(ZCDP(rho), source="a test"), parameters=changed.get("parameters", PARAMETERS),
        model=changed.get("model", "central"),
    )  # fmt: skip


def judge(declaration, given=None):
    return verify(declaration, declaration.values(given))


@each_relation
@each_table
@pytest.mark.parametrize(
    ("sizes", "several"), [((1, 2, 2), 2), ((2, 2, 1), 2), ((1, 2, 1), 3), ((1, 1, 2), 4)], ids=str
)
def test_the_sensitivity_is_the_supremum_over_every_choice_of_trajectories(table, relation, sizes, several):
    assert_sensitivity(table, relation, at(sizes, several))


def counted_by_hand(user):
    """Visits of all rows of a user, counted one by one."""
    cells = Counter()
    for states, actions in zip(user.states.tolist(), user.actions.tolist(), strict=True):
        cells.update((h, s, a) for h, (s, a) in enumerate(zip(states, actions, strict=False)))
    return cells


def test_the_enumeration_agrees_with_counts_by_hand():
    users = all_users(2, 2, 1)
    choices = [take(users, np.array(rows)) for rows in itertools.combinations(range(users.users), 2)]
    choices += [take(users, np.array([i])) for i in range(users.users)]
    choices += [take(users, np.array([i, i])) for i in range(users.users)]
    tables = [counted_by_hand(user) for user in choices]
    largest = 0
    for one, other in itertools.product(tables[::3], tables):
        largest = max(largest, sum((one[c] - other[c]) ** 2 for c in {**one, **other}))
    found = suprema(VisitCounts(H, S, A), RELATIONS[0], 2, 2, 1, values={"m": Fraction(2)})
    assert found.l2_squared >= largest
    assert found.l2_squared == 2 * 2 * 2**2  # H steps, two cells of each move by m


@each_relation
@each_table
@pytest.mark.parametrize("several", [1, 3, 7])
def test_extreme_pairs_attain_the_supremum(table, relation, several):
    values = at((4, 3, 2), several)
    stated = table.sensitivity(relation)
    changes = [table.difference(pair) for pair in extreme_pairs(relation, 4, 3, 2, trajectories=several)]
    assert max(c.l1 for c in changes) == stated.l1.rational(values)
    assert max(c.l2_squared for c in changes) == (stated.l2**2).rational(values)
    assert max(np.abs(c.change).max(initial=0) for c in changes) == stated.linf.rational(values)


@pytest.mark.parametrize("dimension", [1, 2])
@each_relation
def test_linear_statistics_against_every_choice_of_corners(relation, dimension):
    phi, y, w = Column("phi", 1, "x"), Column("y", 2, "y"), Column("w", 3, "w")
    corners = np.vstack([np.eye(dimension), -np.eye(dimension), np.full((1, dimension), dimension**-0.5)])
    one = list(itertools.product(corners, (0.0, 2.0), (0.0, 3.0)))
    users = []
    for rows in itertools.chain(*(itertools.combinations_with_replacement(one, k) for k in (1, 2))):
        x, targets, weights = (np.array([row[i] for row in rows])[:, np.newaxis] for i in range(3))
        users.append(Regressors(vectors={"phi": x}, targets={"y": targets}, weights={"w": weights}))
    statistics = (
        GramMatrices(name="gram", steps=1, dimension=dimension, vector=phi, weight=w),
        FeatureSums(name="sums", steps=1, dimension=dimension, vector=phi, target=y, weight=w),
    )
    for statistic in statistics:
        tables = np.array([statistic.compute(user).ravel() for user in users])
        others = tables if isinstance(relation, ReplaceOne) else np.zeros((1, tables.shape[1]))
        moved = max(np.linalg.norm(tables - other, axis=1).max() for other in others)
        assert moved == pytest.approx(statistic.sensitivity(relation).l2.number({"m": Fraction(2)}), rel=1e-12)


@each_relation
def test_clipping_records_costs_m_fold_and_clipping_users_does_not(relation):
    values = {"m": Fraction(5), "d": Fraction(4)}
    factor = 2 if isinstance(relation, ReplaceOne) else 1
    for per, expected in (("record", 5 * factor * 3), ("user", factor * 3)):
        statistic = ClippedSums(dimension=d, norm=3, per=per)
        assert statistic.sensitivity(relation).l2.rational(values) == expected
        changes = [statistic.difference(pair) for pair in statistic.extreme_pairs(relation, values)]
        assert max(c.l2_squared for c in changes) == pytest.approx(expected**2)
        assert max(c.l1 for c in changes) == pytest.approx(statistic.sensitivity(relation).l1.number(values))


def test_a_users_records_are_clipped_together():
    rng = np.random.default_rng(3)
    rows, owners = rng.standard_normal((40, 3)) * 2, rng.integers(0, 9, 40)
    clipped = clip_users(rows, owners, norm=1.5)
    statistic = ClippedSums(dimension=3, norm="3/2", per="user")
    naive = np.zeros(3)
    for user in set(owners.tolist()):
        total = sum(row for row, owner in zip(rows, owners, strict=True) if owner == user)
        naive += total * min(1.0, 1.5 / math.sqrt(float(total @ total)))
    assert statistic.compute(clipped)[0] == pytest.approx(naive, rel=1e-12)
    for kept in range(9):  # leaving one user out moves the sum by 1.5 at most, however many records there are
        without = clip_users(rows[owners != kept], owners[owners != kept], norm=1.5)
        assert np.linalg.norm(statistic.compute(clipped) - statistic.compute(without)) <= 1.5 * (1 + 1e-12)
    with pytest.raises(TrajectoryError, match="clip_users"):
        statistic.compute(Vectors(rows=rows, norm=1.5))
    with pytest.raises(TrajectoryError, match="one owner"):
        clip_users(rows, owners[:5], norm=1.5)


def test_charging_one_trajectory_undercharges_m_squared_fold_and_a_witness_says_so():
    one = declare(mechanism=Gaussian(variance=H / rho), stated=L2(sqrt(2 * H)))
    verdict = judge(one, {"m": 6})
    assert verdict.verdict == "fails"
    assert verdict.upper_ratio == 36
    assert verdict.lower_ratio == pytest.approx(36, rel=1e-12)
    assert "6 trajectories, each" in verdict.witness.words
    assert any(f.code == "wrong-relation" and "replace one user by any other" in f.message for f in verdict.findings)
    assert any("at most m trajectories" in ground.what for ground in verdict.rests_on)
    # m compositions of one trajectory, the natural detour, are still m-fold too little
    detour = declare(mechanism=Gaussian(variance=m * H / rho))
    assert judge(detour, {"m": 6}).lower_ratio == pytest.approx(6, rel=1e-12)
    enough = declare(mechanism=Gaussian(variance=m**2 * H / rho))
    assert (judge(enough).verdict, judge(enough).method, judge(enough).upper_ratio) == ("holds", "proved", 1.0)


def test_laplace_noise_of_m_times_the_scale_holds_with_equality_and_less_fails():
    claim = Claim(PureDP(rho), source="a test")
    enough = declare(mechanism=Laplace(scale=2 * H * m / rho), claim=claim)
    assert (judge(enough).verdict, judge(enough).lower_ratio) == ("holds", 1.0)
    less = declare(mechanism=Laplace(scale=Fraction(19, 10) * H * m / rho), claim=claim)
    assert judge(less).verdict == "fails"


def test_an_authors_statistic_that_forgets_the_other_trajectories_is_broken():
    true = VisitCounts(H, S, A)

    class Forgetful:
        name, latex, symbols, preconditions = "my visits", "n", frozenset("HSA"), ()
        shape, compute, difference = true.shape, true.compute, true.difference

        def sensitivity(self, relation):
            return true.sensitivity(type(relation)("user"))

    with pytest.raises(DeclarationError, match="moves further than its stated sensitivity"):
        judge(declare(statistic=Forgetful()))


# [lemma m-trajectories]
@pytest.mark.parametrize("kind", ["goe", "upper"])
def test_linear_releases_together_cost_m_squared_times_one(kind):
    phi, y = Column("phi", 1, "x"), Column("y", 1, "y")
    releases = (
        Release(
            "gram", GramMatrices(name="g", steps=H, dimension=2, vector=phi), SymmetricGaussian(variance=9, kind=kind)
        ),
        Release("sums", FeatureSums(name="s", steps=H, dimension=2, vector=phi, target=y), Gaussian(variance=30)),
    )
    several = replace(declare(), releases=releases)
    alone = replace(several, relation=ReplaceOne("user"), parameters=tuple(p for p in PARAMETERS if p.name != "m"))
    many, one = judge(several, {"m": 3}), judge(alone)
    assert many.upper_ratio == pytest.approx(9 * one.upper_ratio, rel=1e-9)
    assert many.lower_ratio == pytest.approx(9 * one.lower_ratio, rel=1e-9)
    assert many.lower_ratio > 0.999 * many.upper_ratio


def test_sampled_users_bring_all_that_they_have():
    claim = Claim(ApproxDP(1, "1/100000"), source="a test")
    schedule = Poisson(rate="1/20", rounds=10)
    for relation in (ZeroOut("user", trajectories=m), AddRemoveOne("user", trajectories=m)):
        several = declare(relation, claim, mechanism=Gaussian(variance=400), schedule=schedule)
        alone = declare(type(relation)("user"), claim, mechanism=Gaussian(variance=25), schedule=schedule)
        assert account(several).at(several.values()).epsilon(1e-5) == pytest.approx(
            account(alone).at(alone.values()).epsilon(1e-5), rel=1e-6
        )
        assert judge(several).lower_ratio == pytest.approx(judge(alone).lower_ratio, rel=1e-6)


def test_a_pair_may_have_one_to_m_rows_a_side():
    declaration = declare()
    users, values = all_users(3, 2, 1), {**at((3, 2, 1), 2), "rho": Fraction(1)}
    few, many = take(users, np.array([0, 5])), take(users, np.array([0, 5, 5]))
    assert fault(declaration.relation, declaration.releases, (few, users.user(1)), values) == ""
    assert "1 to 2 rows, got 3" in fault(declaration.relation, declaration.releases, (few, many), values)
    clipped = (Release("sums", ClippedSums(dimension=1, norm=1), Gaussian(variance=1)),)
    long, three = Vectors(rows=np.array([[2.0]]), norm=2), Vectors(rows=np.ones((3, 1)), norm=1)
    assert "norm 2" in fault(ZeroOut("user"), clipped, (long, None), {})
    assert "got 3" in fault(ZeroOut("user"), clipped, (three, None), {})
    together = (Release("sums", ClippedSums(dimension=1, norm=1, per="user"), Gaussian(variance=1)),)
    assert "row a user" in fault(ZeroOut("user"), together, (Vectors(rows=np.ones((1, 1)), norm=1), None), {})


@pytest.mark.parametrize(
    ("refused", "remedy"),
    [
        (lambda: ReplaceOne("trajectory", trajectories=2), "one of 'user', 'patient', 'person'"),
        (lambda: ReplaceOne("user", "fixed", trajectories=2), "declare initial='any'"),
        (lambda: ZeroOut("hospital", trajectories=2), "trajectories=m"),
        (lambda: declare(schedule=EveryEpisode(outputs=5)), r"declare Tree\(participations=…\), Batches"),
        (lambda: declare(schedule=Tree(leaves=5)), "a leaf of a tree holds one trajectory"),
        (lambda: declare(statistic=OneStepEach(table=VisitCounts(H, S, A))), "one trajectory each"),
        (
            lambda: declare(mechanism=ShuffledBits(users=50, threshold=20), model="shuffle"),
            "sends the messages of one trajectory",
        ),
        (lambda: declare(ReplaceOne("user", trajectories="1/2")), "a whole number, at least 1"),
        (lambda: declare(ReplaceOne("user", trajectories=0)), "a whole number, at least 1"),
        (lambda: declare(ReplaceOne("user", trajectories=m - 3)), "a whole number, at least 1"),
        (lambda: declare(ReplaceOne("user", trajectories=symbol("k", "count"))), "no Parameter is declared for k"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_or_no_bound_is_refused_with_a_remedy(refused, remedy):
    with pytest.raises((DeclarationError, ParameterError), match=remedy):
        refused()


def test_a_batch_and_a_users_own_release_hold_all_trajectories():
    for changed in ({"schedule": Batches(size="B")}, {"schedule": PerUser(), "model": "local"}):
        declaration = declare(mechanism=Gaussian(variance=m**2 * H / rho), **changed)
        assert (judge(declaration).verdict, judge(declaration).lower_ratio) == ("holds", 1.0)


def test_relations_say_how_many():
    assert ReplaceOne("user", trajectories=3).words == "replace one user with up to 3 trajectories by any other"
    assert AddRemoveOne("patient", trajectories=m).words == "add or remove one patient with up to m trajectories"
    assert ZeroOut("user", trajectories=1) == ZeroOut("user")
    assert hash(ReplaceOne("user", trajectories=2)) != hash(ReplaceOne("user"))


def test_what_is_priced_for_one_record_of_a_user_is_refused():
    one = RandomisedResponse("answer", categories=3, epsilon=1)
    with pytest.raises(DeclarationError, match="priced for one record"):
        Declaration(
            name="several", title="", source="a test", relation=ReplaceOne("user", trajectories=m), releases=(),
            procedures=(one,), claim=Claim(PureDP(1), source="a test"), parameters=(PARAMETERS[3],), model="local",
        )  # fmt: skip


@pytest.mark.parametrize("name", over_registry("declared"))
def test_every_derived_statistic_in_use_moves_m_times_as_far_or_refuses(name):
    declaration = resolve_setting(name, {}).declared
    for release in declaration.statistics_released:
        statistic = release.statistic
        if not is_derived(statistic):
            continue
        for kind in (ReplaceOne, AddRemoveOne, ZeroOut):
            try:
                one, many = statistic.sensitivity(kind("user")), statistic.sensitivity(kind("user", trajectories=3))
            except DeclarationError:
                continue
            factor = 1 if getattr(statistic, "per", "") == "user" else 3
            for norm in ("l1", "l2", "linf"):
                assert same(getattr(many, norm) ** 2, (factor * getattr(one, norm)) ** 2)


@pytest.mark.parametrize("name", ["noisy-max", "exponential-mechanism", "sparse-vector-1"])
def test_a_selection_costs_a_user_with_m_trajectories_m_times_as_much(name):
    setting = resolve_setting(name, {})
    several = replace(setting.declared, relation=ReplaceOne("user", trajectories=4))
    alone, many = verify(setting.declared, setting.values), verify(several, setting.values)
    assert (alone.verdict, many.verdict) == ("holds", "fails")
    assert many.upper_ratio == pytest.approx(4 * alone.upper_ratio, rel=1e-9)
    assert many.lower_ratio > 3.9
