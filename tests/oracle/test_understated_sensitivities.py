"""Statistics whose true sensitivity is known by hand: 5 % less never holds, and what is true is never accused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.declare.declaration import Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statistics import Sensitivity, SparseDifference, Stated
from privcheck.declare.statistics.records import CornerGenerator, corner_records
from privcheck.errors import PrivcheckError
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import A, H, S, rho

REPLACE, ADD = ReplaceOne("user"), AddRemoveOne("user")
SHARES = (Fraction(4, 5), Fraction(19, 20), Fraction(1), Fraction(11, 10))
RHO = Parameter(name="rho", default=1, kind="positive", meaning="ρ")


def total(rows):
    return float(sum(rows))


def from_rows(count):
    """Nothing is released of fewer rows."""
    return lambda rows: total(rows) if len(rows) >= count else 0.0


def vectors(size):
    return lambda rows: np.sum(rows, axis=0) if rows else np.zeros(size)


def unit(size):
    def draw(_, rng):
        x = rng.normal(size=size)
        return x / np.linalg.norm(x)

    return draw


def in_ball(_, rng):
    """A vector of norm at most 1, by rejection: corners of the cube never are."""
    while True:
        x = rng.uniform(-1, 1, 2)
        if np.linalg.norm(x) <= 1:
            return x


def histogram(rows):
    return np.sum([np.bincount(row, minlength=6) for row in rows], axis=0).astype(float) if rows else np.zeros(6)


def share(_, rng):
    return float(rng.random())


def bit(_, rng):
    return int(rng.choice([0, 1]))


def rest_of(compute, empty=0.0):
    return lambda rows: float(compute(rows)) if rows else empty


CASES = {  # what is computed, of which records, under which relation, and ℓ₁, ℓ₂, ℓ∞ by hand
    "a sum of shares": (total, share, REPLACE, 1, 1, 1),
    "a sum of shares, added": (total, share, ADD, 1, 1, 1),
    "whole numbers": (total, lambda _, rng: int(rng.integers(0, 101)), REPLACE, 100, 100, 100),
    "clipped normal": (lambda r: sum(float(np.clip(x, -1, 1)) for x in r), lambda _, g: g.normal(), REPLACE, 2, 2, 2),
    "unit vectors": (vectors(50), unit(50), REPLACE, 2 * math.sqrt(50), 2, 2),
    "a cube": (vectors(8), lambda _, rng: rng.random(8), REPLACE, 8, math.sqrt(8), 1),
    "a disc": (vectors(2), in_ball, REPLACE, 2 * math.sqrt(2), 2, 2),
    "ten steps": (histogram, lambda _, g: g.integers(0, 6, 10), REPLACE, 20, math.sqrt(200), 10),
    "from ten users": (from_rows(10), bit, ADD, 10, 10, 10),
    "from a hundred": (from_rows(100), bit, ADD, 100, 100, 100),
    "a mean of unknown n": (rest_of(np.mean), share, ADD, 1, 1, 1),
    "a median": (rest_of(np.median), share, REPLACE, 1, 1, 1),
    "the first row": (rest_of(lambda rows: rows[0]), share, REPLACE, 1, 1, 1),
    "changes from row to row": (rest_of(lambda rows: np.abs(np.diff(rows)).sum()), share, REPLACE, 2, 2, 2),
    "a variance": (rest_of(np.var), share, ADD, 0.25, 0.25, 0.25),
    "rare values": (total, lambda _, rng: int(rng.choice([1, 100], p=[0.999, 0.001])), REPLACE, 99, 99, 99),
    "beta": (total, lambda _, rng: float(rng.beta(5, 5)), REPLACE, 1, 1, 1),
    "fields": (
        lambda rows: float(sum(row["a"] * row["b"] for row in rows)),
        lambda _, rng: {"a": rng.random(), "b": int(rng.integers(1, 5))},
        REPLACE, 4, 4, 4,
    ),
}  # fmt: skip


def rounded(true, share):
    exact = Fraction(true) * share * 10**9
    return Fraction(math.ceil(exact) if share >= 1 else math.floor(exact), 10**9)


def judge(declared):
    try:
        return verify(declared, declared.values({})).verdict
    except PrivcheckError as error:
        return "refused" if "moves further" in str(error) else str(error)


def declare(statistic, relation, parameters=(), **more):
    release = Release("own", statistic, Gaussian(variance=statistic.l2**2 / (2 * rho)))
    return Declaration(
        name="own", title="", source="", relation=relation, releases=(release,), claim=Claim(ZCDP(rho), source=""),
        parameters=(RHO, *parameters), **more,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_stated_sensitivity_that_is_too_small_does_not_hold(case):
    compute, records, relation, *norms = CASES[case]
    shape = np.shape(np.atleast_1d(compute((records({}, np.random.default_rng(0)),))))
    for factor in SHARES:
        l1, l2, linf = (rounded(norm, factor) for norm in norms)
        made = Stated("own", l1=l1, l2=l2, linf=linf, compute=compute, records=records, shape=shape)
        assert judge(declare(made, relation)) == ("holds" if factor >= 1 else "refused"), factor


@dataclass(frozen=True)
class Own:
    """A statistic of one user's data, or of trajectories."""

    of: Any
    cells: Any
    l1: Any
    l2: Any
    linf: Any
    name: str = "own"
    latex: str = "x"
    symbols: frozenset[str] = frozenset()
    preconditions: tuple[str, ...] = ()

    def sensitivity(self, relation):
        return Sensitivity(l1=self.l1, l2=self.l2, linf=self.linf, reason="by hand")

    def shape(self, values):
        return (1, self.cells(values))

    def compute(self, data, *, step=None):
        value = np.atleast_1d(np.asarray(self.of(data), dtype=float))
        return value[np.newaxis] if step is None else value

    def difference(self, pair):
        known = [0.0 if data is None else self.compute(data).ravel() for data in pair]
        change = np.asarray(known[0] - known[1])
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])


OWN = {
    "unit vectors": (lambda x: x, 20, unit(20), REPLACE, 2 * math.sqrt(20), 2, 2),
    "outer products": (lambda x: np.outer(x, x).ravel(), 16, unit(4), REPLACE, 4 * math.sqrt(2), math.sqrt(2), 1),
    "ten steps": (
        lambda x: np.bincount(x, minlength=6), 6, lambda _, g: g.integers(0, 6, 10), REPLACE, 20, math.sqrt(200), 10
    ),
    "returns": (lambda x: x.sum(), 1, lambda _, rng: rng.uniform(0, 1, 20), ADD, 20, 20, 20),
}  # fmt: skip


@pytest.mark.parametrize("case", OWN)
def test_neither_does_that_of_a_class_of_ones_own(case):
    of, cells, records, relation, *norms = OWN[case]
    for factor in SHARES:
        made = Own(of, lambda _, n=cells: n, *(rounded(norm, factor) for norm in norms))
        assert judge(declare(made, relation, records=records)) == ("holds" if factor >= 1 else "refused"), factor


def visits(data):
    table = np.zeros((data.num_states, data.num_actions))
    np.add.at(table, (data.states[:, :-1].ravel(), data.actions.ravel()), 1)
    return table.ravel()


@pytest.mark.parametrize("threshold", [5, 50])
def test_nor_that_of_trajectories_which_leave_from_so_many_users_on(threshold):
    sizes = [Parameter(name=n, default=d, kind="count", meaning=n) for n, d in {"H": 4, "S": 3, "A": 2}.items()]
    for factor in SHARES:
        moved = H * threshold * factor
        made = Own(
            lambda data: visits(data) * (data.users >= threshold), lambda at: int(at["S"] * at["A"]), moved, moved,
            moved, symbols=frozenset(H.symbols | S.symbols | A.symbols),
        )  # fmt: skip
        declared = declare(made, AddRemoveOne("trajectory"), sizes)
        assert judge(declared) == ("holds" if factor >= 1 else "refused"), factor


DRAWS = [
    lambda rng: (rng.random(), 0, 1),
    lambda rng: (rng.random(4, dtype=np.float32), 0, 1 - 2.0**-24),
    lambda rng: (rng.uniform(-3, [5, 2]), -3, [5, 2]),
    lambda rng: (rng.integers(7), 0, 6),
    lambda rng: (rng.integers(-2, 7, size=(2, 3), endpoint=True), -2, 7),
    lambda rng: (rng.choice([3, 9, 4], p=[0.5, 0, 0.5]), 3, 4),
    lambda rng: (rng.choice(10, size=3, replace=False), 0, 9),
    lambda rng: (rng.beta(2, 3, 5), 0, 1),
    lambda rng: (rng.binomial(9, [0, 0.5, 1]), [0, 0, 9], [0, 9, 9]),
    lambda rng: (rng.exponential(2.0, 3), 0, 80),
    lambda rng: (rng.gamma(2.0, 3.0), 0, 240),
    lambda rng: (rng.geometric(0.5, 4), 1, 80),
    lambda rng: (rng.poisson([0, 4]), [0, 0], [0, 40]),
    lambda rng: (rng.normal(1, 2, 3), -11, 13),
    lambda rng: (rng.standard_normal(), -6, 6),
    lambda rng: (rng.lognormal(0, 0.1), 0, 2),
    lambda rng: (rng.laplace(), -6, 6),
    lambda rng: (rng.triangular(1, 2, 3), 1, 3),
    lambda rng: (rng.dirichlet([1, 1, 1]).sum(), 1 - 1e-12, 1 + 1e-12),
    lambda rng: (rng.multinomial(5, [0.5, 0.5, 0]), [0, 0, 0], [5, 5, 0]),
    lambda rng: (rng.permutation(5), 0, 4),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_corner_is_where_the_law_has_mass_and_of_the_shape_that_numpy_gives(draw):
    plain = draw(np.random.default_rng(0))[0]
    for value, low, high in corner_records(draw):
        assert np.shape(value) == np.shape(plain)
        assert np.asarray(value).dtype.kind == np.asarray(plain).dtype.kind
        assert np.all(np.asarray(low) <= value)
        assert np.all(value <= np.asarray(high))


def test_a_mirror_image_is_at_the_opposite_place_and_who_asks_for_ever_is_answered():
    for manner in ("either end", "one at an end", "some at an end"):
        one, other = (CornerGenerator(3, manner, mirrored=m).normal(size=30) for m in (False, True))
        assert np.allclose(one, -other, atol=3e-3)
    assert np.linalg.norm(in_ball({}, CornerGenerator(0, "either end", mirrored=False))) <= 1
