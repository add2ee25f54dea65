"""Trees in whose leaves one user is several times: charges against every pattern of leaves, nodes summed one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcheck.accounting import events as acc
from privcheck.accounting.curve import compose
from privcheck.data.trajectories import take
from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Once, Tree
from privcheck.declare.statistics import ClippedSums, VisitCounts
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, S, expression, rho, symbol
from privcheck.testing import all_users
from privcheck.verification import verify

T, p, b = (symbol(name, "count") for name in ("T", "p", "b"))
DEFAULTS = (("H", 2, "count"), ("S", 2, "count"), ("A", 1, "count"), ("T", 8, "count"), ("p", 2, "count"))
DEFAULTS += (("b", 1, "count"), ("rho", 1, "positive"))
PARAMETERS = tuple(Parameter(name=name, default=default, kind=kind, meaning=name) for name, default, kind in DEFAULTS)


def declare(relation=None, claim=None, **changed):
    tree = Tree(leaves=T, participations=p, separation=b)
    release = Release("visits", VisitCounts(H, S, A), Gaussian(variance=20), schedule=tree)
    return Declaration(
        name="tree", title="", source="a test", relation=relation or ReplaceOne("user", trajectories=p),
        releases=(replace(release, **changed),), claim=claim or Claim(ZCDP(rho), source="a test"),
        parameters=PARAMETERS,
    )  # fmt: skip


def held(leaves, pattern):
    """How many of a pattern's leaves are below every complete node, block by block."""
    size = 1
    while size <= leaves:
        for start in range(0, leaves - size + 1, size):
            yield sum(start <= leaf < start + size for leaf in pattern)
        size *= 2


def every_pattern(leaves, most, apart):
    for k in range(1, most + 1):
        for pattern in itertools.combinations(range(leaves), k):
            if all(later - earlier >= apart for earlier, later in itertools.pairwise(pattern)):
                yield pattern


@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 7, 8, 11])
@pytest.mark.parametrize(("most", "apart"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 1), (3, 4)])
def test_the_load_is_the_worst_pattern_of_leaves(leaves, most, apart):
    values = {"T": Fraction(leaves), "p": Fraction(most), "b": Fraction(apart)}
    load = Tree(leaves=T, participations=p, separation=b).load
    counts = [list(held(leaves, pattern)) for pattern in every_pattern(leaves, most, apart)]
    assert load.total.rational(values) == max(sum(c) for c in counts)
    assert load.squares.rational(values) == max(sum(x * x for x in c) for c in counts)
    assert load.most.rational(values) >= max(max(c) for c in counts)


@pytest.mark.parametrize(("leaves", "most", "apart"), [(8, 2, 1), (8, 2, 4), (7, 3, 2), (5, 4, 1), (3, 4, 1)])
def test_a_pair_moves_the_nodes_as_a_sum_over_leaves_does(leaves, most, apart):
    """Users with rows that differ: every node's table is computed of the rows below it, and subtracted."""
    users, rng = all_users(2, 2, 1), np.random.default_rng(1)
    declaration = declare()
    values = declaration.values({"T": leaves, "p": most, "b": apart})
    for _ in range(20):
        rows = [rng.integers(0, users.users, int(rng.integers(1, most + 1))) for _ in range(2)]
        moved = declaration.releases[0].moved((take(users, rows[0]), take(users, rows[1])), values)
        squares = absolute = 0.0
        size = 1
        while size <= leaves:
            for start in range(0, leaves - size + 1, size):
                node = np.zeros((2, 2, 1))
                for sign, side in zip((1, -1), rows, strict=True):
                    for position, row in enumerate(side):
                        if start <= position * apart < start + size and position * apart < leaves:
                            node += sign * VisitCounts(H, S, A).compute(users.user(int(row)))
                squares, absolute = squares + float((node**2).sum()), absolute + float(np.abs(node).sum())
            size *= 2
        assert (moved.l2_squared * moved.times, moved.l1 * moved.times) == (squares, absolute)


@pytest.mark.parametrize(("leaves", "most", "apart"), [(8, 2, 1), (1000, 3, 1), (1024, 4, 256), (16, 16, 1)])
def test_gaussian_trees_cost_what_the_event_says_and_a_witness_attains_it(leaves, most, apart):
    declaration = declare(claim=Claim(ApproxDP(1, "1/1000000"), source="a test"))
    values = declaration.values({"T": leaves, "p": most, "b": apart})
    node = acc.gaussian(std=20**0.5, sensitivity=4**0.5)  # 2H cells of one trajectory
    event = acc.tree(node=node, leaves=leaves, participations=most, separation=apart)
    theirs = compose(event).epsilon(delta=1e-6).value
    ours = account(declaration).at(values).epsilon(1e-6)
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert verify(declaration, values).lower_ratio == pytest.approx(theirs, rel=1e-9)


def test_eight_leaves_and_two_participations_cost_fourteen():
    declaration = declare(relation=ZeroOut("user", trajectories=p), statistic=ClippedSums(dimension=1, norm=1),
                          mechanism=Gaussian(variance=7 / rho), stated=L2(1))  # fmt: skip
    verdict = verify(declaration, declaration.values())
    assert (verdict.verdict, verdict.upper_ratio, verdict.lower_ratio) == ("holds", 1.0, 1.0)
    assert not [f for f in verdict.findings if f.code.startswith("stated")]  # one contribution, as the paper states it
    less = replace(declaration, releases=(replace(declaration.releases[0], mechanism=Gaussian(variance=6 / rho)),))
    assert verify(less, less.values()).verdict == "fails"


def test_laplace_trees_add_up():
    claim = Claim(PureDP(rho), source="a test")
    declaration = declare(claim=claim, mechanism=Laplace(scale=100))
    values = declaration.values({"T": 8, "p": 2})
    verdict = verify(declaration, values)  # 2H cells, Σ c_v = 8 nodes of two leaves
    assert verdict.upper_ratio == pytest.approx(4 * 8 / 100, rel=1e-12)
    assert verdict.lower_ratio == pytest.approx(4 * 8 / 100, rel=1e-12)


@pytest.mark.parametrize(
    ("refused", "remedy"),
    [
        (lambda: declare(schedule=Tree(leaves=T)), "of one number"),
        (lambda: declare(schedule=Tree(leaves=T, trees=p + 1)), "of one number"),
        (lambda: Tree(leaves=T, trees=p, participations=p), "one leaf of each"),
        (lambda: declare(relation=ReplaceOne("user")), "of one number"),
        (lambda: declare(relation=ReplaceOne("user", trajectories=3)), "of one number"),
        (lambda: declare(relation=AddRemoveOne("user", trajectories=p)), "declare ZeroOut or ReplaceOne"),
        (lambda: declare(schedule=Tree(leaves=T, participations=p, separation=0)), "at least 1"),
        (lambda: Tree(leaves=T, participations=1.5), "participations, of Tree"),
    ],
)
def test_a_tree_says_as_many_participations_as_the_relation_says_trajectories(refused, remedy):
    with pytest.raises((DeclarationError, ParameterError), match=remedy):
        refused()


@pytest.mark.parametrize(("leaves", "trees"), [(1, 3), (5, 2), (8, 3)])
def test_trees_that_are_started_anew_hold_one_trajectory_each(leaves, trees):
    """Every tree has a row of its own: each of its ⌊log₂ T⌋ + 1 nodes above the first leaf moves by that row."""
    users, rng = all_users(2, 2, 1), np.random.default_rng(2)
    declaration = declare(schedule=Tree(leaves=T, trees=p))
    values = declaration.values({"T": leaves, "p": trees})
    for _ in range(10):
        rows = [rng.integers(0, users.users, int(rng.integers(1, trees + 1))) for _ in range(2)]
        moved = declaration.releases[0].moved((take(users, rows[0]), take(users, rows[1])), values)
        squares = 0.0
        for tree in range(trees):
            change = np.zeros((2, 2, 1))
            for sign, side in zip((1, -1), rows, strict=True):
                if tree < len(side):
                    change += sign * VisitCounts(H, S, A).compute(users.user(int(side[tree])))
            squares += len([c for c in held(leaves, [0]) if c]) * float((change**2).sum())
        assert moved.l2_squared * moved.times == squares
    verdict = verify(declaration, values)
    assert verdict.upper_ratio == pytest.approx(trees * leaves.bit_length() * 4 / 40, rel=1e-12)
    assert verdict.lower_ratio == pytest.approx(verdict.upper_ratio, rel=1e-12)


def test_one_participation_is_the_tree_as_before():
    assert Tree(leaves=T, participations=1) == Tree(leaves=T)
    assert Tree(leaves=T).load.total == Tree(leaves=T).times
    alone = declare(relation=ReplaceOne("user"), schedule=Tree(leaves=T))
    once = declare(relation=ReplaceOne("user"), schedule=Once())
    several = verify(alone, alone.values()).upper_ratio / verify(once, once.values()).upper_ratio
    assert several == pytest.approx(4)


def test_what_one_leaf_moves_is_what_a_paper_states_and_an_author_too():
    """A stated sensitivity is of one contribution: a pair shows it of one leaf, and an author's is tried on one."""
    declaration = declare(mechanism=Gaussian(variance=20), stated=L2("3/2"))
    values = declaration.values({"p": 3})
    (finding,) = (f for f in verify(declaration, values).findings if f.code == "stated-sensitivity-refuted")
    assert "moves it by 2" in finding.message  # √(2H) of one trajectory, not three times that
    assert finding.witness.loss == 2
    true = VisitCounts(H, S, A)

    class OfOne:
        """Right for several trajectories, and too small for one."""

        name, latex, symbols, preconditions = "my visits", "n", frozenset("HSA"), ()
        shape, compute, difference = true.shape, true.compute, true.difference

        def sensitivity(self, relation):
            derived = true.sensitivity(relation)
            wrong = relation.trajectories == expression(1)
            return replace(derived, l1=derived.l1 / 2, l2=derived.l2 / 2, linf=derived.linf / 2) if wrong else derived

    with pytest.raises(DeclarationError, match="moves further than its stated sensitivity"):
        verify(declare(statistic=OfOne()), values)
