"""A statistic of any records with a sensitivity stated by hand: tried on neighbours, alone and among others."""

import math

import numpy as np
import pytest

from privcheck import Claim, Declaration, Parameter, verify
from privcheck.declare.declaration import Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.declare.schedules import Poisson
from privcheck.declare.statistics import ClippedSums, Records, Stated, VisitCounts
from privcheck.declare.statistics.records import not_neighbours
from privcheck.errors import DeclarationError, PrivcheckError
from privcheck.terms.guarantees import ZCDP, PureDP
from privcheck.terms.symbols import epsilon, rho, symbol
from privcheck.verification.neighbours import fault

SPENT = {
    "l1": symbol("most", "positive"),
    "compute": lambda rows: sum(min(row, 50) for row in rows),
    "records": lambda values, rng: rng.choice([0, float(values["most"]), 1000]),
}
PARAMETERS = (
    Parameter(name="most", default=50, kind="positive", meaning="of one user"),
    Parameter(name="epsilon", default=1, kind="positive", meaning="ε"),
    Parameter(name="rho", default=1, kind="positive", meaning="ρ"),
)


def spent(**changes):
    return Stated("spendings", **{**SPENT, **changes})


def declared(statistic, *, claim=PureDP(epsilon), relation=AddRemoveOne("user"), mechanism=None, **more):  # noqa: B008 - a frozen value
    noise = mechanism or Laplace(scale=statistic.l1 / epsilon)
    return Declaration(
        name="own", title="", source="", relation=relation, releases=(Release("own", statistic, noise, **more),),
        claim=Claim(claim, source="here"), parameters=PARAMETERS,
    )  # fmt: skip


def judged(statistic, sets=None, **more):
    declaration = declared(statistic, **more)
    return verify(declaration, declaration.values(sets or {}))


@pytest.mark.parametrize("relation", [AddRemoveOne("user"), ReplaceOne("user"), ZeroOut("user")])
def test_what_no_neighbours_break_holds_given_it_and_is_attained(relation):
    found = judged(spent(), relation=relation)
    assert (found.verdict, found.method, found.given) == ("holds", "checked", ("spendings",))
    assert found.upper_ratio == 1
    assert found.lower_ratio == pytest.approx(1, rel=1e-9)
    assert found.witness.changes["own"][0] == 50


def test_an_understatement_is_refused_and_an_underpaid_claim_fails():
    with pytest.raises(DeclarationError, match=r"moves further than its stated sensitivity: by 50 in ℓ₁, and 47\.5"):
        judged(spent(l1="95/2"))
    assert judged(spent(), claim=PureDP(epsilon / 2)).verdict == "fails"


def test_what_only_moves_among_others_is_seen():
    """A largest gap between users: nothing moves it alone."""
    gap = spent(compute=lambda rows: max(rows) - min(rows) if len(rows) > 1 else 0.0, l1=50)
    with pytest.raises(DeclarationError, match="beside"):
        judged(gap)


@pytest.mark.parametrize(
    ("norms", "refused"),
    [({"l1": 3, "l2": 2, "linf": 1}, "ℓ₁"), ({"l1": 4, "l2": "9/5", "linf": 1}, "ℓ₂"), ({"l1": 4, "l2": 2}, "")],
)
def test_arrays_are_tried_in_every_norm(norms, refused):
    four = spent(compute=lambda rows: np.ones((2, 2)) * len(rows), shape=(2, 2), **norms)
    noise = {"claim": ZCDP(rho), "mechanism": Gaussian(variance=four.l2**2 / (2 * rho))}
    if refused:
        with pytest.raises(DeclarationError, match=refused):
            judged(four, **noise)
        return
    found = judged(four, **noise)
    assert found.verdict == "holds"
    assert found.lower_ratio == pytest.approx(1, rel=1e-9)


def test_a_function_that_cannot_do_without_users_is_tried_among_others():
    mean = spent(compute=lambda rows: sum(min(row, 50) for row in rows) / len(rows), l1=50)
    assert judged(mean).verdict == "holds"
    assert judged(mean, relation=ReplaceOne("user")).verdict == "holds"


def test_what_nobody_can_compute_is_undecided():
    broken = spent(compute=lambda rows: rows["no such"])
    found = judged(broken)
    assert found.verdict == "undecided"
    assert "TypeError" in found.findings[0].message


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"records": lambda _values, rng: rng.no_such}, "records raised AttributeError"),
        ({"records": None}, "expected a function"),
        ({"compute": 3}, "expected a function"),
        ({"l1": 0.5}, "float"),
        ({"l1": -1}, "above 0 and finite, got -1/epsilon"),
        ({"l1": 1, "l2": 2}, "ℓ₂"),
        ({"shape": ("1/2",)}, "whole"),
        ({"whole": True, "compute": lambda rows: len(rows) / 2}, "expected whole numbers"),
        ({"whole": 1}, "True or False"),
    ],
)
def test_nonsense_is_refused(changes, why):
    with pytest.raises(PrivcheckError, match=why):
        judged(spent(**changes))


def test_a_record_is_all_of_a_user():
    with pytest.raises(DeclarationError, match="a user has only one record"):
        judged(spent(), relation=AddRemoveOne("user", trajectories=3))


def test_samples_of_users_are_witnessed():
    found = judged(spent(), schedule=Poisson(rate="1/10", rounds=3), claim=PureDP(3 * epsilon))
    assert found.verdict == "holds"
    assert found.lower_ratio == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=0.01)


def test_clipped_sums_have_a_witness_without_sampling():
    found = judged(ClippedSums(dimension=3, norm=2), claim=ZCDP(rho), mechanism=Gaussian(variance=2 / rho))
    assert found.lower_ratio == pytest.approx(1, rel=1e-9)


def test_records_are_neighbours_where_they_differ_in_one():
    a, b, c = object(), object(), object()
    one, two, three = Records(rows=(a, b)), Records(rows=(a, c)), Records(rows=(a, b, c))
    assert not not_neighbours(ReplaceOne(), one, two)
    assert not not_neighbours(AddRemoveOne(), one, three)
    assert not not_neighbours(AddRemoveOne(), three, Records(rows=(b, c)))
    assert not_neighbours(AddRemoveOne(), one, two)
    assert not_neighbours(ReplaceOne(), one, three)
    assert not_neighbours(AddRemoveOne(), three, Records(rows=(c, b)))
    assert not_neighbours(ReplaceOne(), one, Records(rows=(b, c)))
    release = Release("own", spent(), Laplace(scale=1))
    assert fault(AddRemoveOne(), (release,), (Records(rows=(1,)), None), {"most": 50}) == ""
    tables = Release("tables", VisitCounts(1, 1, 1), Laplace(scale=1))
    assert fault(AddRemoveOne(), (tables,), (Records(rows=(1,)), None), {})
