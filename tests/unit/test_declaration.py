"""Declarations: what contradicts itself is refused when it is made, and parameters are checked before they are used."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from privcheck.declare.declaration import L1, L2, Claim, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import DeclarationError, InexactNumberError, ParameterError, UnknownNameError
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.terms.symbols import A, H, K, S, delta, epsilon, rho, sqrt


def test_defaults_and_given_values(tiny):
    assert tiny.values() == {"H": 2, "S": 3, "A": 2, "rho": Fraction(1, 2)}
    assert tiny.values({"H": "20", "rho": "0.1"}) == {"H": 20, "S": 3, "A": 2, "rho": Fraction(1, 10)}


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("H", 0, "a whole number, at least 1"),
        ("H", -3, "a whole number, at least 1"),
        ("H", "2.5", "a whole number, at least 1"),
        ("rho", 0, "a number above 0"),
        ("rho", "-1/2", "a number above 0"),
        ("rho", "much", "an exact number"),
        ("rho", 0.5, "write it as a string, '0.5'"),
        ("H", None, "expected a number"),
    ],
)
def test_a_value_of_another_kind_is_refused(tiny, name, given, expected):
    with pytest.raises(ParameterError) as caught:
        tiny.values({name: given})
    assert expected in str(caught.value)
    assert name in str(caught.value)
    assert caught.value.name == name
    assert caught.value.given == given


@pytest.mark.parametrize(
    ("kind", "fine", "refused"),
    [
        ("count", [1, "7", 10**9], [0, "1/2"]),
        ("positive", ["1e-9", 5], [0, -1]),
        ("probability", ["1e-5", "0.99"], [0, 1, "3/2"]),
        ("real", [0, "1/3"], ["-1e-9"]),
    ],
)
def test_kinds(kind, fine, refused):
    parameter = Parameter(name="x", default=fine[0], kind=kind, meaning="a number")
    assert [parameter.check(v) for v in fine] == [Fraction(v) for v in fine]
    for value in refused:
        with pytest.raises(ParameterError, match=r"x \(a number\)"):
            parameter.check(value)


def test_unknown_names_are_refused_with_the_known_ones(tiny):
    with pytest.raises(UnknownNameError, match=r"tiny 'Rho'; did you mean rho\? Expected one of: A, H, S, rho"):
        tiny.values({"Rho": 1})
    with pytest.raises(UnknownNameError, match="expected one of: visits, transitions"):
        tiny.release("rewards")
    assert tiny.release("visits").name == "visits"


def test_releases_need_distinct_names(tiny):
    visits = tiny.releases[0]
    for releases in ((), (visits, visits)):
        with pytest.raises(DeclarationError, match="distinct names"):
            dataclasses.replace(tiny, releases=releases)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"releases": (Release("visits", VisitCounts(K, S, A), Gaussian(variance=rho)),)}, "K"),
        ({"releases": (Release("visits", VisitCounts(H, S, A), Gaussian(variance=epsilon)),)}, "epsilon"),
        ({"releases": (Release("visits", VisitCounts(H, S, A), Laplace(scale=rho), stated=L1(2 * K)),)}, "K"),
        ({"claim": Claim(ApproxDP(rho, delta), source="a test")}, "delta"),
        ({"claim": Claim(PureDP(epsilon), source="a test")}, "epsilon"),
    ],
)
def test_every_symbol_needs_a_parameter(tiny, change, missing):
    with pytest.raises(DeclarationError, match=f"no Parameter is declared for {missing}$"):
        dataclasses.replace(tiny, **change)


def test_a_float_cannot_enter_a_declaration():
    for build in (
        lambda: Gaussian(variance=0.1),
        lambda: Laplace(scale=0.1),
        lambda: ZCDP(0.5),
        lambda: PureDP(1.0),
        lambda: ApproxDP(1, 1e-5),
        lambda: L1(2.0),
        lambda: L2(1.4142),
        lambda: VisitCounts(2.0, 3, 4),
    ):
        with pytest.raises(InexactNumberError):
            build()


def test_stated_sensitivities_are_compared_in_their_own_norm(tiny):
    true = tiny.releases[0].statistic.sensitivity(tiny.relation)
    assert L1(2 * H).true(true) == true.l1 == 2 * H
    assert L2(sqrt(2 * H)).true(true) == true.l2 == sqrt(2 * H)
    halved = tiny.releases[0].statistic.sensitivity(AddRemoveOne())
    assert halved.l1 == H


def test_a_declaration_is_frozen(tiny):
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny.name = "other"
