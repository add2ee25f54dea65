"""Verdicts on users with several trajectories against the truth: every choice of rows, and of leaves, of both users."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import ReplaceOne, ZeroOut
from privcheck.declare.schedules import Once, Tree
from privcheck.declare.statistics import PooledVisitCounts, RewardSums, TransitionCounts, VisitCounts
from privcheck.pricing import account
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, S, rho
from privcheck.verification import verify

TABLES = (VisitCounts, TransitionCounts, RewardSums, PooledVisitCounts)
PARAMETERS = tuple(
    Parameter(name=name, default=default, kind=kind, meaning=name)
    for name, default, kind in (("H", 1, "count"), ("S", 2, "count"), ("A", 1, "count"), ("rho", 1, "positive"))
)


def rows_of(horizon, states, actions):
    """Every trajectory with rewards 0 or 1, as (states, actions, rewards)."""
    for s in itertools.product(range(states), repeat=horizon + 1):
        for a in itertools.product(range(actions), repeat=horizon):
            for r in itertools.product((0, 1), repeat=horizon):
                yield s, a, r


def table_of(kind, row):
    """What one trajectory adds to a table, cell by cell."""
    cells = {}
    for h, (s, a, r) in enumerate(zip(row[0], row[1], row[2], strict=False)):
        where = {VisitCounts: (h, s, a), TransitionCounts: (h, s, a, row[0][h + 1]), RewardSums: (h, s, a)}.get(
            kind, (s, a)
        )
        cells[where] = cells.get(where, 0) + (r if kind is RewardSums else 1)
    return cells


def vectors(kinds, rows):
    """One vector a trajectory, all tables side by side, and which release each coordinate is of."""
    names = sorted(
        {(i, cell) for i, kind in enumerate(kinds) for row in rows for cell in table_of(kind, row)}, key=repr
    )
    matrix = np.array([[table_of(kinds[i], row).get(cell, 0) for i, cell in names] for row in rows], dtype=float)
    return matrix, np.array([i for i, _ in names])


def nodes(leaves, pattern):
    """Which of a user's rows are below each complete node of the tree."""
    size = 1
    while size <= leaves:
        for start in range(0, leaves - size + 1, size):
            yield [start <= leaf < start + size for leaf in pattern]
        size *= 2


def truth(kinds, spreads, sizes, most, leaves, *, replaced, laplace):
    """The largest ρ (or ε of pure DP) over all users with up to `most` rows, at every place of their leaves."""
    rows = list(rows_of(*sizes))
    matrix, owner = vectors(kinds, rows)
    weight = np.array([1 / spreads[i] if laplace else 1 / (2 * spreads[i]) for i in owner])
    nothing = np.zeros((1, matrix.shape[1]))
    padded = np.vstack([matrix, nothing])  # a row that is not there adds nothing
    best = 0.0
    patterns = [tuple(range(most))] if leaves is None else list(itertools.combinations(range(leaves), most))
    choices = np.array(list(itertools.product(range(len(padded)), repeat=most)))
    for pattern in patterns:
        held = [[True] * most] if leaves is None else list(nodes(leaves, pattern))
        sums = [padded[choices][:, np.array(below)].sum(axis=1) for below in held if any(below)]
        others = [part if replaced else part[-1:] for part in sums]  # the last choice: nothing at all
        for index in range(len(others[0])):
            moved = [np.abs(part - other[index]) for part, other in zip(sums, others, strict=True)]
            losses = sum((m if laplace else m**2) @ weight for m in moved)
            best = max(best, float(losses.max()))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_bounds_enclose_and_attain_the_worst_of_all_users(seed):
    rng = np.random.default_rng(seed)

    def choose(from_these):
        return from_these[int(rng.integers(len(from_these)))]

    sizes = choose([(1, 2, 1), (1, 1, 2), (1, 2, 1), (2, 2, 1)])
    most = choose([1, 2, 2, 3]) if sizes[0] == 1 else choose([1, 2])
    leaves = choose([None, 3, 4, 5]) if sizes[0] == 1 and most < 3 else None
    kinds = [TABLES[i] for i in rng.permutation(len(TABLES))[: choose([1, 2])]]
    laplace, replaced = rng.random() < 0.4, rng.random() < 0.6
    spreads = [Fraction(int(rng.integers(1, 41)), int(rng.integers(1, 6))) for _ in kinds]
    schedule = Once() if leaves is None else Tree(leaves=leaves, participations=most)
    releases = tuple(
        Release(f"r{i}", kind(H, S, A), Laplace(scale=v) if laplace else Gaussian(variance=v), schedule=schedule)
        for i, (kind, v) in enumerate(zip(kinds, spreads, strict=True))
    )
    declaration = Declaration(
        name="random", title="", source="a test", releases=releases, parameters=PARAMETERS,
        relation=ReplaceOne("user", trajectories=most) if replaced else ZeroOut("user", trajectories=most),
        claim=Claim(PureDP(rho) if laplace else ZCDP(rho), source="a test"),
    )  # fmt: skip
    values = declaration.values(dict(zip("HSA", sizes, strict=True)))
    verdict = verify(declaration, values)
    true = truth(kinds, [float(v) for v in spreads], sizes, most, leaves, replaced=replaced, laplace=laplace)
    assert verdict.lower_ratio <= true * (1 + 1e-9)
    assert verdict.upper_ratio >= true * (1 - 1e-9)
    assert verdict.lower_ratio == pytest.approx(true, rel=1e-9)
    assert verdict.upper_ratio == pytest.approx(true, rel=1e-9)


@pytest.mark.parametrize("several", [1, 2, 5])
def test_laplace_tables_of_several_trajectories_cost_no_more_than_the_pure_sum(several):
    declaration = Declaration(
        name="laplace", title="", source="a test", relation=ReplaceOne("user", trajectories=several),
        releases=(Release("visits", VisitCounts(H, S, A), Laplace(scale=10 * several)),),
        claim=Claim(ApproxDP(1, "1/100000"), source="a test"), parameters=PARAMETERS,
    )  # fmt: skip
    values = declaration.values({"H": 20})
    numbers = account(declaration).at(values)
    assert numbers.pure == pytest.approx(40 / 10, rel=1e-12)
    assert verify(declaration, values).lower_ratio <= numbers.epsilon(1e-5) <= numbers.pure
