"""Rewards and costs together: the verdict against every pair of users at tiny sizes, by loops of their own."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import CostSums, RewardBits, RewardSums, VisitCounts
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, S
from privcheck.verification import verify

SIZES = tuple(Parameter(name=n, default=2, kind="count", meaning=n) for n in "HSA")
TABLES = {"visits": VisitCounts, "rewards": RewardSums, "bits": RewardBits, "costs": CostSums}
RELATIONS = (ReplaceOne(), ReplaceOne(initial="fixed"), AddRemoveOne())
MIXTURES = [
    {"rewards": 2, "costs": 2},
    {"rewards": 2, "costs": 3},
    {"bits": 5, "costs": 1},
    {"visits": 2, "rewards": 3, "costs": 3},
    {"visits": 1, "rewards": 4, "bits": 4, "costs": 3},
]


def cells(user, table):
    """Returns what a user adds to each cell (h, s, a)."""
    found = {}
    for step, (state, action, reward) in enumerate(user):
        found[step, state, action] = {"visits": 1, "rewards": reward, "bits": reward, "costs": 1 - reward}[table]
    return found


def worst(mixture, relation, loss):
    """Returns the largest Σ loss(|Δ|, spread) over all pairs of neighbours with rewards 0 or 1, H = S = A = 2."""
    users = list(itertools.product(itertools.product(range(2), range(2), range(2)), repeat=2))
    alone = isinstance(relation, AddRemoveOne)
    pairs = [(user, ()) for user in users] if alone else itertools.product(users, users)
    most: Fraction | float = 0
    for one, other in pairs:
        if isinstance(relation, ReplaceOne) and relation.initial == "fixed" and one[0][:2] != other[0][:2]:
            continue
        total: Fraction | float = 0
        for table, spread in mixture.items():
            first, second = cells(one, table), cells(other, table)
            for cell in first.keys() | second.keys():
                total += loss(abs(first.get(cell, 0) - second.get(cell, 0)), spread)
        most = max(most, total)
    return most


def judged(mixture, relation, noise, guarantee):
    releases = tuple(Release(name, TABLES[name](H, S, A), noise(spread)) for name, spread in mixture.items())
    declaration = Declaration(
        name="x", title="x", source="a test", relation=relation, releases=releases,
        claim=Claim(guarantee, source="a test"), parameters=SIZES,
    )  # fmt: skip
    return verify(declaration, declaration.values())


# [lemma rewards-and-costs]
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.words)
@pytest.mark.parametrize("mixture", MIXTURES, ids=lambda m: "-".join(f"{k}{v}" for k, v in m.items()))
@pytest.mark.parametrize("law", ["pure", "rho", "laplace rho", "delta"])
def test_the_joint_worst_case_is_that_of_all_pairs(mixture, relation, law):
    if law == "pure":
        noise, made = (lambda b: Laplace(scale=b)), PureDP
        true = worst(mixture, relation, lambda move, b: Fraction(move, b) if move else 0)
    elif law == "laplace rho":
        noise, made = (lambda b: Laplace(scale=b)), ZCDP
        true = worst(mixture, relation, lambda move, b: move / b + math.exp(-move / b) - 1)
    else:
        noise, made = (lambda v: Gaussian(variance=v)), ZCDP
        true = worst(mixture, relation, lambda move, v: Fraction(move**2, 2 * v) if move else 0)
    if law == "delta":
        found = judged(mixture, relation, noise, ApproxDP(1, "1e-3"))
        assert found.lower_ratio == pytest.approx(found.upper_ratio, rel=1e-9)
        return
    exact_claim = true if law != "laplace rho" else Fraction(true) * Fraction(1_000_001, 1_000_000)
    holds = judged(mixture, relation, noise, made(Fraction(exact_claim)))
    assert holds.verdict == "holds"
    short = judged(mixture, relation, noise, made(Fraction(true) * Fraction(999, 1000)))
    assert short.verdict == "fails"
