"""What a verdict rests on: broken bounds are charged, stated sensitivities are tried, every witness is a neighbour."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.declare.declaration import Assumption, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import AddRemoveOne, Relation, ReplaceOne, ZeroOut
from privcheck.declare.statistics import Column, FeatureSums, Sensitivity, SparseDifference, VisitCounts
from privcheck.declare.statistics.sensitivities import is_derived
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import A, Expr, H, S, d, exact, expression, h, rho
from privcheck.verification import verify
from privcheck.verification.neighbours import dense, fault

SIZES = tuple(Parameter(name=n, default=v, kind="count", meaning=n) for n, v in (("H", 3), ("S", 3), ("A", 2)))
DIMENSION = Parameter(name="d", default=3, kind="count", meaning="d")
BUDGET = Parameter(name="rho", default=1, kind="positive", meaning="budget")


def declared(release: Release, **changes: Any) -> Declaration:
    given = {
        "name": "x",
        "title": "a test",
        "source": "a test",
        "relation": ReplaceOne(),
        "releases": (release,),
        "claim": Claim(ZCDP(rho), source="a test"),
        "parameters": (*SIZES, DIMENSION, BUDGET),
    }
    return Declaration(**{**given, **changes})


def judged(declaration: Declaration, **values: object) -> Any:
    return verify(declaration, declaration.values(values))


# A bound that the paper's own setting breaks


def values_sum(bounds: str, attained: Expr | None, bound: Expr | int = 1) -> Declaration:
    sums = FeatureSums(name="sums", steps=H, dimension=d, vector=Column("phi", 1, "x"), target=Column("V", bound, "V"))
    broken = Assumption(
        what="V", assumed=expression(bound), attained=attained, repair="clip V", source="a test", bounds=bounds
    )
    release = Release("sums", sums, Gaussian(variance=2 * H / rho))
    return declared(release, assumptions=(broken,), parameters=(SIZES[0], DIMENSION, BUDGET))


@pytest.mark.parametrize("horizon", [2, 3, 7])
def test_what_is_attained_is_charged(horizon):
    found = judged(values_sum("V", H), H=horizon)
    assert (found.verdict, found.method) == ("fails", "witness")
    assert found.upper_ratio == pytest.approx(horizon**2, rel=1e-12)  # the ℓ₂ sensitivity is 2H√H, not 2√H
    assert found.lower_ratio == pytest.approx(horizon**2, rel=1e-12)
    message = next(f.message for f in found.findings if f.code == "assumption-violated")
    assert message.endswith("The attained value is charged")


def test_a_broken_bound_that_nothing_charges_never_holds():
    found = judged(values_sum("", H))
    assert (found.verdict, found.upper_ratio) == ("undecided", 1.0)
    assert "clip V" in found.repair
    assert "bounds=" in found.repair
    assert "The attained value is charged" not in "".join(f.message for f in found.findings)


def test_a_bound_that_is_broken_elsewhere_only_is_checked_and_not_proved():
    here = values_sum("", H / 3)
    assert (judged(here, H=3).verdict, judged(here, H=3).method) == ("holds", "checked")
    assert judged(here, H=6).verdict == "undecided"


def test_a_bound_that_is_kept_or_that_nothing_bounds_changes_nothing():
    for attained in (None, expression(1), Fraction(1, 2) * expression(1)):
        found = judged(values_sum("V", attained))
        assert (found.verdict, found.method, found.upper_ratio) == ("holds", "proved", 1.0)


def test_a_bound_of_a_step_is_raised_where_it_is_smaller():
    shorter = Column("V", H - h, "V")
    first = values_sum("V", 2 * H)
    release = replace(first.releases[0], statistic=replace(first.releases[0].statistic, target=shorter))
    assert replace(first, releases=(release,)).releases[0].statistic.target.bound == 2 * H


def test_an_assumption_names_a_column_that_there_is():
    with pytest.raises(DeclarationError, match="bounds the column 'U', which is in no release; expected one of V, phi"):
        values_sum("U", H)


# Witnesses


def trajectory(states, actions=None, rewards=None, sizes=(3, 2)) -> Trajectories:
    steps = len(states) - 1
    return Trajectories(
        states=np.array([states]),
        actions=np.array([actions or [0] * steps]),
        rewards=np.array([rewards or [1.0] * steps]),
        num_states=sizes[0],
        num_actions=sizes[1],
    )


def regressors(vector, value=1.0, steps=3) -> Regressors:
    return Regressors(
        vectors={"phi": np.tile(np.array(vector, dtype=float), (1, steps, 1))},
        targets={"V": np.full((1, steps), float(value))},
        weights={},
    )


STAY, MOVE = trajectory([0, 0, 0, 0]), trajectory([0, 1, 2, 1])
COUNTS = Release("counts", VisitCounts(H, S, A), Gaussian(variance=2 * H / rho))
SUMS = values_sum("", None).releases[0]
BAD = [
    (COUNTS, ReplaceOne(), (STAY, None), "1 of the two hold"),
    (COUNTS, AddRemoveOne(), (STAY, MOVE), "2 of the two hold"),
    (COUNTS, ZeroOut(), (None, None), "0 of the two hold"),
    (COUNTS, ReplaceOne(initial="fixed"), (STAY, trajectory([1, 0, 0, 0])), "step 1's state and action differ"),
    (COUNTS, ReplaceOne(), (STAY, trajectory([0, 0, 0, 0], sizes=(4, 2))), r"expected a trajectory with \(H, S, A\)"),
    (COUNTS, ReplaceOne(), (STAY, trajectory([0, 0, 0])), r"expected a trajectory with \(H, S, A\)"),
    (COUNTS, ReplaceOne(), (regressors([1, 0, 0]),) * 2, "expected a trajectory, got Regressors"),
    (SUMS, ReplaceOne(), (regressors([1, 0, 0]), regressors([2, 0, 0])), "the norm of phi is 2 at step 1"),
    (SUMS, ReplaceOne(), (regressors([1, 0, 0]), regressors([-1, 0, 0], value=1.5)), "V is 1.5 at step 1"),
    (SUMS, ReplaceOne(), (regressors([1, 0, 0]), regressors([-1, 0, 0], value=-1)), "V is -1 at step 1"),
    (SUMS, ReplaceOne(), (regressors([1, 0, 0]), regressors([1, 0])), "2 dimensions, expected 3"),
    (SUMS, ReplaceOne(), (regressors([1, 0, 0]), regressors([1, 0, 0], steps=4)), "4 steps, expected 3"),
    (SUMS, ReplaceOne(initial="fixed"), (regressors([1, 0, 0]), regressors([0, 1, 0])), "phi differs at step 1"),
    (SUMS, ReplaceOne(), (STAY, MOVE), "expected regressors, got Trajectories"),
]


@pytest.mark.parametrize(("release", "relation", "pair", "why"), BAD)
def test_a_pair_that_is_none_of_neighbours_refutes_nothing(release, relation, pair, why):
    cheap = replace(release, mechanism=Gaussian(variance=1000 * H**3 / rho))
    declaration = declared(cheap, relation=relation, candidates=lambda _: [pair])
    values = declaration.values({})
    assert re.search(why, fault(relation, (release,), pair, values))
    found = verify(declaration, values)
    assert found.witness is None
    assert found.verdict == "holds"
    [refused] = [f for f in found.findings if f.code == "candidate-refused"]
    assert found.lower_ratio == 0
    assert re.search(why, refused.message)


def test_candidates_that_cannot_be_made_are_the_declarations_fault():
    with pytest.raises(DeclarationError, match="its candidates raised KeyError"):
        judged(declared(COUNTS, candidates=lambda values: [values["no such"]]))
    with pytest.raises(DeclarationError, match="its candidates raised"):
        judged(declared(COUNTS, candidates=lambda _: [STAY]))


def test_tables_of_other_trajectories_are_refused():
    other = Release("more", VisitCounts(2 * H, S, A), Gaussian(variance=4 * H / rho))
    with pytest.raises(ParameterError, match="of one size in all releases"):
        declared(COUNTS, releases=(COUNTS, other))


# Sensitivities that an author states


@dataclass(frozen=True)
class Stated:
    """Any function of one user's data, with any stated sensitivity: a statistic of one's own."""

    of: Any
    l1: Expr
    l2: Expr
    linf: Expr
    stepwise: bool = False
    lie: float = 1.0
    name: str = "own"
    latex: str = "f"
    symbols: frozenset[str] = frozenset()
    preconditions: tuple[str, ...] = ()

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return Sensitivity(l1=self.l1, l2=self.l2, linf=self.linf, reason="I say so", stepwise=self.stepwise)

    def shape(self, values) -> tuple[int, ...]:
        return (1, 2)

    def compute(self, data, *, step=None):
        found = np.asarray([self.of(data)], dtype=float)
        return found if step is None else found[step]

    def difference(self, pair) -> SparseDifference:
        parts = [s * self.compute(u).ravel() for s, u in zip((1, -1), pair, strict=True) if u is not None]
        change = self.lie * np.sum(parts, axis=0)
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells, change=change[cells])


def switches(data: Trajectories) -> tuple[float, float]:
    return float((np.diff(data.states[:, :-1], axis=1) != 0).sum()), 0.0


def own(of, size: Expr | int | str, *, l1=None, linf=None, **changes: Any) -> Release:
    bound = expression(size)
    statistic = Stated(of=of, l1=expression(l1 or size), l2=bound, linf=expression(linf or size), **changes)
    return Release("own", statistic, Gaussian(variance=bound**2 / (2 * rho)))


def test_a_false_sensitivity_is_broken():
    with pytest.raises(DeclarationError, match=r"own moves further than its stated sensitivity: by 2 in ℓ₁"):
        judged(declared(own(switches, 1)))


@pytest.mark.parametrize(
    ("release", "why"),
    [
        (own(lambda u: (u.rewards.sum(), 0), H / 2), "ℓ₁"),
        (own(lambda u: (u.rewards[:, 0].sum(), u.actions[:, 0].sum()), 1, l1=2), "ℓ₂"),
        (own(lambda u: (u.rewards[:, 0].sum(), 0), 1, linf="1/2"), "ℓ∞"),
        (own(lambda u: (u.rewards[:, 0].sum(), 0), 1, stepwise=True), "a part of its ℓ∞"),
        # moves by 1 alone and by 3 among others: the largest of all users' sums
        (own(lambda u: (float((u.users - 1) * u.rewards[0, 0]), 0), 1), "ℓ₁"),
        # only seen beyond the sizes at which all pairs are compared
        (own(lambda u: (float(u.horizon >= 8) * 3 * u.rewards[:, 0].sum(), 0), 1), "ℓ₁"),
    ],
)
def test_each_norm_is_tried(release, why):
    with pytest.raises(DeclarationError, match=why):
        judged(declared(release))


def test_a_true_sensitivity_holds_given_what_is_stated():
    least = (replace(SIZES[0], least=2), *SIZES[1:], DIMENSION, BUDGET)  # nobody switches in one step
    found = judged(declared(own(switches, H - 1), parameters=least))
    assert (found.verdict, found.method, found.upper_ratio, found.given) == ("holds", "checked", 1.0, ("own",))
    assert found.lower_ratio == 1.0  # by the pair that the climb found: no constant trajectory switches
    assert found.rests_on[0].basis == "stated"
    assert "did not violate it" in found.rests_on[0].by


def test_a_difference_that_is_none_refutes_nothing():
    found = judged(declared(own(switches, H - 1, lie=3.0)))
    assert (found.verdict, found.lower_ratio) == ("holds", 0.0)


RECORD = own(lambda u: (u[0], u[1]), "1.5", l1=2, linf=1)


def test_own_data_needs_records():
    alone = declared(RECORD, parameters=(BUDGET,))
    found = judged(alone)
    assert (found.verdict, found.upper_ratio) == ("undecided", 1.0)
    assert "records" in found.repair
    assert "could not be tested" in next(f.message for f in found.findings if f.code == "claim-unproved")
    tried = replace(alone, records=lambda _, rng: rng.uniform(size=2).round())
    found = judged(tried)
    assert (found.verdict, found.method, found.given) == ("holds", "checked", ("own",))
    assert found.lower_ratio == pytest.approx(2 / 1.5**2)
    with pytest.raises(DeclarationError, match="moves further than its stated sensitivity"):
        judged(replace(alone, records=lambda _, rng: 2 * rng.uniform(size=2).round()))
    with pytest.raises(DeclarationError, match="its records raised ZeroDivisionError"):
        judged(replace(alone, records=lambda *_: 1 / 0))


def test_a_claim_that_the_authors_candidates_refute_says_on_whose_word_they_are_data():
    less = replace(RECORD, mechanism=Gaussian(variance="1/4"))
    pair = (np.zeros(2), np.array([1.0, 1.0]))
    failing = declared(
        less, parameters=(BUDGET,), candidates=lambda _: [pair], records=lambda _, rng: rng.uniform(size=2).round()
    )
    found = judged(failing)
    assert (found.verdict, found.method) == ("fails", "witness")
    whose = [one for one in found.rests_on if "candidates" in one.what]
    assert [one.kind for one in whose] == ["stated by the author"]
    holding = judged(replace(failing, releases=(RECORD,)))
    assert holding.verdict == "holds"
    assert not [one for one in holding.rests_on if "candidates" in one.what]


def test_who_shares_step_1_nobody_knows_in_own_data():
    fixed = declared(RECORD, parameters=(BUDGET,), relation=ReplaceOne(initial="fixed"))
    records = replace(fixed, records=lambda _, rng: rng.uniform(size=2).round())
    assert judged(records).verdict == "undecided"


def test_slices_that_are_not_the_tables_are_refused():
    @dataclass(frozen=True)
    class Sliced(Stated):
        def compute(self, data, *, step=None):
            found = np.asarray([self.of(data)], dtype=float)
            return found if step is None else 2 * found[step] + 1

    bound = H - 1
    statistic = Sliced(of=switches, l1=bound, l2=bound, linf=bound)
    with pytest.raises(DeclarationError, match="is not the table's slice"):
        judged(declared(replace(own(switches, H - 1), statistic=statistic)))


def test_tables_with_weights_of_ones_own_are_not_ours():
    ours = VisitCounts(H, S, A)
    assert is_derived(ours)
    triple = replace(ours, weight=lambda data, _: np.full(data.users, 3.0))
    assert not is_derived(triple)
    with pytest.raises(DeclarationError, match="moves further than its stated sensitivity"):
        judged(declared(Release("counts", triple, Gaussian(variance=2 * H / rho))))


def test_a_price_of_noise_of_ones_own_that_a_pair_contradicts_is_refused():
    @dataclass(frozen=True)
    class Free(Gaussian):
        def zcdp(self, sensitivity):
            return expression(0)

    with pytest.raises(DeclarationError, match=r"\(ρ\), but its author states 0"):
        judged(declared(replace(COUNTS, mechanism=Free(variance=exact("0.001") * rho))))


# An oracle of its own: the largest change over every pair of users, by two loops


def largest_change(of, horizon: int, states: int) -> float:
    users = [
        of(trajectory(list(s), None, list(map(float, r)), sizes=(states, 1)))[0]
        for s in itertools.product(range(states), repeat=horizon + 1)
        for r in itertools.product((0, 1), repeat=horizon)
    ]
    return max(abs(one - other) for one in users for other in users)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(-2, 2), min_size=4, max_size=4),
    st.lists(st.integers(-2, 2), min_size=3, max_size=3),
    st.sampled_from(["9/10", "1", "11/10"]),
)
def test_a_stated_sensitivity_survives_if_and_only_if_it_is_true(on_states, on_rewards, factor):
    """f = Σ a_h 1(s_h = 1) + Σ b_h r_h at H = 3, S = 2: the truth is a maximum over all users, whose pairs are few."""

    def of(data: Trajectories) -> tuple[float, float]:
        if data.horizon != 3:
            return 0.0, 0.0
        return float(((data.states == 1) @ on_states + data.rewards @ on_rewards).sum()), 0.0

    true = largest_change(of, 3, 2)
    if not true:
        return
    stated = Fraction(int(true)) * exact(factor)
    made = declared(
        own(of, str(stated)),
        parameters=(*[replace(p, default=v) for p, v in zip(SIZES, (3, 2, 1), strict=True)], BUDGET),
    )
    if stated < true:
        with pytest.raises(DeclarationError, match="moves further"):
            judged(made)
    else:
        found = judged(made)
        assert (found.verdict, found.given) == ("holds", ("own",))
        assert found.lower_ratio <= 1


def test_a_sparse_change_is_a_dense_one():
    change = SparseDifference(
        cells=np.array([0, 5, 9]), change=np.array([1.0, 2.0, 3.0]), mirrored=np.array([False, True, False])
    )
    expected = np.zeros((2, 3, 3))
    expected[0, 0, 0], expected[0, 1, 2], expected[0, 2, 1], expected[1, 0, 0] = 1, 2, 2, 3
    np.testing.assert_array_equal(dense(change, (2, 3, 3)), expected)
