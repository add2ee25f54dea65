"""Readers and the declared part: limits of every size, every field of the right type, every refusal by its rule."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from certificate_verdicts import edited, refused, verdict
from privcheck_check.check import check
from privcheck_check.declared import read_declared
from privcheck_check.terms import read_term
from privcheck_check.values import (
    DEPTH,
    DIGITS,
    FILE_BYTES,
    Rejected,
    canonical,
    parse,
    read_choice,
    read_fraction,
    read_integer,
    read_list,
    read_object,
    read_text,
)

# ── Readers ──


def test_documents_have_at_most_a_mebibyte_and_lists_a_hundred_thousand_entries() -> None:
    assert parse(b" " * (2**20 - 1) + b"1") == 1
    assert refused(parse, b" " * 2**20 + b"1")
    assert len(read_list([0] * 100_000, "r")) == 100_000
    assert refused(read_list, [0] * 100_001, "r")


def test_documents_are_nested_at_most_24_deep_and_integers_have_at_most_400_digits() -> None:
    assert parse(b"[" * 24 + b"]" * 24) is not None
    assert refused(parse, b"[" * 25 + b"]" * 25)
    closed = b"[" + b"[]," * 30
    assert parse(closed + b"[" * 23 + b"]" * 24) is not None
    assert refused(parse, closed + b"[" * 24 + b"]" * 25)
    assert read_fraction("9" * 400, "r") == 10**400 - 1
    assert refused(read_fraction, "9" * 401, "r")


def test_documents_have_a_size_and_a_depth() -> None:
    assert parse(b" " * (FILE_BYTES - 1) + b"1") == 1
    assert refused(parse, b" " * FILE_BYTES + b"1")
    for depth, bad in ((DEPTH, False), (DEPTH + 1, True)):
        assert refused(parse, b"[" * depth + b"]" * depth) == bad
        assert refused(parse, b'{"a":' * depth + b"1" + b"}" * depth) == bad
    flat = b"[" + b",".join([b"[]", b"{}"] * 50) + b"]"
    assert parse(flat) == [[], {}] * 50
    assert parse(b'["\\\\", [' + b"[" * (DEPTH - 2) + b"]" * (DEPTH - 2) + b"]]") is not None
    assert refused(parse, b'["\\\\", ' + b"[" * DEPTH + b"]" * DEPTH + b"]")
    assert parse(b'"\\"[[[["') == '"[[[['
    escaped = b'["' + b'\\"[' * 30 + b'"]'  # brackets after an escaped quotation mark are text
    assert parse(escaped) == ['"[' * 30]
    assert parse(b'"' + b"[" * 30 + b'"') == "[" * 30
    assert refused(parse, b'{"a": 1, "a": 1}')


def test_integers_have_a_length() -> None:
    for number, bad in (("9" * DIGITS, False), ("9" * (DIGITS + 1), True), ("-" + "9" * (DIGITS - 1), False)):
        assert refused(parse, number.encode()) == bad
        assert refused(read_fraction, number, "r") == bad
        assert refused(read_fraction, f"1/{number.lstrip('-')}", "r") == bad
    assert read_fraction("9" * DIGITS + "/" + "7" * DIGITS, "r") == Fraction(int("9" * DIGITS), int("7" * DIGITS))
    assert read_integer((1 << 4 * DIGITS) - 1, "r") > 0
    assert refused(read_integer, 1 << 4 * DIGITS, "r")
    assert refused(read_integer, -(1 << 4 * DIGITS), "r")


def test_ranges_include_their_ends() -> None:
    for value, bad in ((1, True), (2, False), (3, False), (4, True)):
        assert refused(read_integer, value, "r", least=2, most=3) == bad
        assert refused(read_fraction, value, "r", least=2, most=3) == bad
        assert refused(read_fraction, f"{value}", "r", least=2, most=3) == bad
        assert refused(read_list, [0] * value, "r", least=2, most=3) == bad
        assert refused(read_text, "x" * value, "r", most=3) == (value > 3)
    for value, bad in ((2, True), ("5/2", False), (1, True)):
        assert refused(read_fraction, value, "r", above=2) == bad
    for value in (True, False, None, [], {}, 1.0, "1.0", "x"):
        assert refused(read_integer, value, "r")
        assert refused(read_fraction, value, "r")
    assert refused(read_list, (1, 2), "r")
    assert refused(read_list, {"a": 1}, "r", most=9)
    assert refused(read_text, 5, "r")
    assert refused(read_text, "x" * 2001, "r")
    assert read_text("x" * 2000, "r") == "x" * 2000


def test_objects_have_their_fields() -> None:
    for value, bad in (
        ({"a": 1}, False),
        ({"a": 1, "b": 2}, False),
        ({"b": 2}, True),
        ({"a": 1, "c": 3}, True),
        ({}, True),
        ([("a", 1)], True),
        ("a", True),
    ):
        assert refused(read_object, value, "r", ("a",), ("b",)) == bad
    for value, bad in (("a", False), ("c", True), (1, True), (["a"], True)):
        assert refused(read_choice, value, "r", ("a", "b")) == bad


def test_canonical_text() -> None:
    assert canonical({"b": [1, "é"], "a": {"d": None, "c": True}}) == b'{"a":{"c":true,"d":null},"b":[1,"\\u00e9"]}'


# ── Terms ──


@pytest.mark.parametrize(
    ("operation", "least", "most"),
    [
        ("+", 1, 64),
        ("*", 1, 64),
        ("max", 1, 8),
        ("min", 1, 8),
        ("-", 2, 2),
        ("/", 2, 2),
        ("sqrt", 1, 1),
        ("log", 1, 1),
        ("exp", 1, 1),
        ("bit_length", 1, 1),
    ],
)
def test_operations_have_their_numbers_of_arguments(operation: str, least: int, most: int) -> None:
    for number in range(1, 67):
        bad = not least <= number <= most
        assert refused(read_term, [operation, *["x"] * number], "r", {"x"}) == bad, number
    assert refused(read_term, [operation], "r", {"x"})


def test_exponents_are_multiples_of_a_half() -> None:
    for exponent, bad in (
        (64, False),
        (-64, False),
        (65, True),
        (-65, True),
        ("1/2", False),
        ("127/2", False),
        ("129/2", True),
        ("1/3", True),
        ("1/4", True),
        ("x", True),
        (["+", 1, 1], True),
    ):
        assert refused(read_term, ["^", "x", exponent], "r", {"x"}) == bad, exponent
    assert refused(read_term, ["^", "x"], "r", {"x"})
    assert refused(read_term, ["^", "x", 2, 2], "r", {"x"})


def test_symbols_are_declared() -> None:
    assert read_term("x", "r", {"x"}) == "x"
    for value in ("y", "", "x ", "x" * 41, ["x", 1], [[], 1], [], None, True, {"x": 1}):
        assert refused(read_term, value, "r", {"x"}), value


# ── The declared part ──

BASE = samples.DP_APVI["declared"]
VISITS = BASE["releases"][0]
BITS = {"kind": "bits", "bits": 2, "ones": 1}
LAPLACE = {"law": "laplace", "scale": 1}


def release(**changed: Any) -> dict[str, Any]:
    return {"name": "r", "statistic": BITS, "mechanism": LAPLACE, "schedule": {"kind": "once"}} | changed


def bad(declared: dict[str, Any]) -> bool:
    return refused(read_declared, declared)


@pytest.mark.parametrize(
    ("parameter", "wrong"),
    [
        ({"kind": "integer", "least": 1, "value": 1}, False),
        ({"kind": "integer", "least": 1, "value": 0}, True),
        ({"kind": "integer", "least": 0, "value": 0}, False),
        ({"kind": "integer", "least": -1, "value": 0}, True),
        ({"kind": "integer", "least": 1, "value": "3/2"}, True),
        ({"kind": "integer", "least": "1/2", "value": 1}, True),
        ({"kind": "real", "least": 0, "value": 0}, True),
        ({"kind": "real", "least": 0, "value": "1/9"}, False),
        ({"kind": "real", "least": "1/2", "value": "1/3"}, True),
        ({"kind": "real", "least": "1/2", "value": "1/2"}, False),
        ({"kind": "real", "least": 0, "value": 1, "most": 1}, False),
        ({"kind": "real", "least": 0, "value": 2, "most": 1}, True),
        ({"kind": "real", "least": 0, "value": 1, "most": 0}, True),
        ({"kind": "complex", "least": 0, "value": 1}, True),
        ({"kind": "real", "value": 1}, True),
        ({"kind": "real", "least": 0}, True),
        ({"least": 0, "value": 1}, True),
        ({"kind": "real", "least": 0, "value": 1, "more": 1}, True),
        ({"kind": "integer", "least": 2, "value": 2, "most": 2}, False),
        (7, True),
    ],
)
def test_parameters(parameter: Any, wrong: bool) -> None:
    assert bad(BASE | {"parameters": BASE["parameters"] | {"x": parameter}}) == wrong
    assert refused(read_declared, BASE | {"parameters": BASE["parameters"] | {"x": parameter}}) == wrong


def test_parameters_are_read_as_they_are() -> None:
    given = {
        "a": {"kind": "integer", "least": 2, "value": 5, "most": 9},
        "b": {"kind": "real", "least": 0, "value": "1/2"},
    }
    found = read_declared(BASE | {"parameters": BASE["parameters"] | given})
    a, b = found.parameters["a"], found.parameters["b"]
    assert (a.integer, a.least, a.most, a.value) == (True, 2, 9, 5)
    assert (b.integer, b.least, b.most, b.value) == (False, 0, None, Fraction(1, 2))
    assert found.values["b"] == Fraction(1, 2)


def test_names_of_parameters() -> None:
    more = {f"x{i}": samples.integer(1) for i in range(36)}
    assert not bad(BASE | {"parameters": BASE["parameters"] | more})
    assert bad(BASE | {"parameters": BASE["parameters"] | more | {"y": samples.integer(1)}})
    for name in ("h", "", "1x", "x y", "x" * 41, "é"):
        assert bad(BASE | {"parameters": BASE["parameters"] | {name: samples.integer(1)}}), name
    assert bad(BASE | {"parameters": []})


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, False),
        ({"part": "a"}, False),
        ({"part": "x" * 80}, False),
        ({"part": "x" * 81}, True),
        ({"part": 1}, True),
        ({"name": "x" * 80}, False),
        ({"name": "x" * 81}, True),
        ({"name": 1}, True),
        ({"more": 1}, True),
        ({"shared": "cells"}, False),
        ({"shared": True}, True),
        ({"sample": "s"}, True),
        ({"schedule": {"kind": "sampled", "times": 1, "rate": "1/2"}, "sample": "s"}, False),
        ({"schedule": {"kind": "sampled", "times": 1, "rate": "1/2"}, "sample": "x" * 80}, False),
        ({"schedule": {"kind": "sampled", "times": 1, "rate": "1/2"}, "sample": "x" * 81}, True),
        ({"schedule": {"kind": "sampled", "times": 1, "rate": "1/2"}, "sample": 1}, True),
        ({"schedule": {"kind": "sampled", "times": 1}}, True),
        ({"schedule": {"kind": "daily"}}, True),
        ({"schedule": {"kind": "repeat", "times": 2, "noise": "fresh"}}, False),
        ({"schedule": {"kind": "repeat", "times": 2, "noise": "shared"}}, False),
        ({"schedule": {"kind": "repeat", "times": 2, "noise": "old"}}, True),
        ({"schedule": {"kind": "repeat", "times": "h", "noise": "fresh"}}, True),
        ({"schedule": {}}, True),
        ({"mechanism": {"law": "laplace", "scale": "h"}}, True),
        ({"mechanism": {"law": "laplace"}}, True),
        ({"mechanism": {"law": "cauchy", "scale": 1}}, True),
        ({"mechanism": {"kind": "laplace", "scale": 1}}, True),
        ({"mechanism": {"law": "gaussian-matrix", "variance": 1, "diagonal": 0}}, True),
        ({"mechanism": {"law": "gaussian-matrix", "variance": 1, "diagonal": "1/2"}}, False),
        ({"mechanism": {"law": "gaussian-matrix", "variance": 1, "diagonal": -1}}, True),
        ({"mechanism": {"law": "theorem", "cost": 1, "currency": "pure", "theorem": 1}}, True),
        ({"mechanism": {"law": "theorem", "cost": 1, "currency": "pure", "theorem": "x"}}, False),
        ({"mechanism": {"law": "theorem", "cost": 1, "currency": "approx", "theorem": "x"}}, True),
        ({"mechanism": {"law": "noisy-max", "scale": 1, "noise": "cauchy", "one_sided": True}}, True),
        ({"mechanism": {"law": "noisy-max", "scale": 1, "noise": "laplace", "one_sided": 1}}, True),
        ({"mechanism": {"law": "noisy-max", "scale": 1, "noise": "laplace", "one_sided": True}}, False),
        ({"shared": "outputs"}, True),
        ({"shared": "outputs", "schedule": {"kind": "tree", "leaves": 2}}, False),
        ({"shared": "outputs", "schedule": {"kind": "disjoint"}}, False),
        ({"shared": "all", "schedule": {"kind": "disjoint"}}, True),
        (
            {
                "mechanism": {
                    "law": "sparse-vector",
                    "threshold_scale": 1,
                    "query_scale": 1,
                    "positives": 1,
                    "queries": 1,
                    "one_sided": 1,
                }
            },
            True,
        ),
        (
            {
                "mechanism": {
                    "law": "sparse-vector",
                    "threshold_scale": 1,
                    "query_scale": 1,
                    "positives": 1,
                    "queries": 1,
                    "one_sided": True,
                }
            },
            False,
        ),
        ({"mechanism": 7}, True),
        ({"statistic": {"kind": "bits", "bits": 2}}, True),
        ({"statistic": {"kind": "other"}}, True),
        ({"statistic": BITS | {"more": 1}}, True),
        ({"statistic": {"kind": "bits", "bits": "h", "ones": 1}}, True),
    ],
)
def test_releases(changed: dict[str, Any], wrong: bool) -> None:
    assert bad(BASE | {"releases": [release(**changed)]}) == wrong


TABLE = samples.table(["state", "action"])
LINEAR = samples.linear("sum", "h", "h", "h")


@pytest.mark.parametrize(
    ("statistic", "wrong"),
    [
        (TABLE, False),
        (TABLE | {"cells": []}, True),
        (TABLE | {"cells": ["state", "state"]}, True),
        (TABLE | {"cells": ["state", "action", "next"]}, False),
        (TABLE | {"cells": ["reward"]}, True),
        (TABLE | {"cells": "state"}, True),
        (TABLE | {"cells": ["state", "action", "next", "next"]}, True),
        (TABLE | {"weight": "two"}, True),
        (TABLE | {"weight": "cost"}, False),
        (TABLE | {"pooled": 1}, True),
        (TABLE | {"pooled": True}, False),
        (TABLE | {"steps": "h"}, True),
        (LINEAR, False),
        (LINEAR | {"features": 1}, True),
        (LINEAR | {"features": "x" * 80}, False),
        (LINEAR | {"features": "x" * 81}, True),
        (LINEAR | {"part": "inner"}, True),
        (LINEAR | {"part": "outer"}, False),
        (LINEAR | {"signed": 0}, True),
        (LINEAR | {"signed": True}, False),
        (LINEAR | {"steps": "h"}, True),
    ],
)
def test_statistics(statistic: dict[str, Any], wrong: bool) -> None:
    assert bad(BASE | {"releases": [release(statistic=statistic)]}) == wrong


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, False),
        ({"name": "x" * 200}, False),
        ({"name": "x" * 201}, True),
        ({"source": 1}, True),
        ({"relation": "any"}, True),
        ({"model": "any"}, True),
        ({"unit": {"who": "user"}}, True),
        ({"unit": {"who": 1, "trajectories": 1}}, True),
        ({"unit": {"who": "x" * 80, "trajectories": "H"}}, False),
        ({"unit": {"who": "x" * 81, "trajectories": "H"}}, True),
        ({"unit": {"who": "user", "trajectories": "h"}}, True),
        ({"releases": []}, True),
        ({"releases": [VISITS, VISITS]}, True),
        ({"releases": [release(name=str(i)) for i in range(200)]}, False),
        ({"releases": [release(name=str(i)) for i in range(201)]}, True),
        ({"claim": 1}, True),
        ({"claim": {"currency": "zcdp", "rho": 1}}, True),
        ({"claim": {"currency": "zcdp", "source": ""}}, True),
        ({"claim": {"currency": "zcdp", "rho": 1, "source": "x" * 200}}, False),
        ({"claim": {"currency": "zcdp", "rho": 1, "source": "x" * 201}}, True),
        ({"more": 1}, True),
        ({"claim": {"currency": "rdp", "rho": 1, "source": ""}}, True),
        ({"claim": {"currency": "approx", "epsilon": 1, "source": ""}}, True),
        ({"claim": {"currency": "approx", "epsilon": 1, "delta": "h", "source": ""}}, True),
    ],
)
def test_declarations(changed: dict[str, Any], wrong: bool) -> None:
    assert bad(BASE | changed) == wrong


def test_every_field_of_a_declaration_is_needed() -> None:
    for field in BASE:
        assert bad({name: value for name, value in BASE.items() if name != field})
    for field in VISITS:
        assert bad(BASE | {"releases": [{name: value for name, value in VISITS.items() if name != field}]})


# ── The document ──


@pytest.mark.parametrize("name", ["apvi", "ucb-vi", "apvi for all", "numeric", "audit", "ledger"])
def test_every_field_of_a_document_is_needed(name: str) -> None:
    document = samples.sealed(samples.ALL[name])
    for field in document:
        if field in ("format", "kind"):
            continue
        text = json.dumps({key: value for key, value in document.items() if key != field})
        with pytest.raises(Rejected):
            check(text.encode())
    for field in ("verdict", "scope", "about"):
        assert verdict(edited(document, "conclusion", field, to="other")) == "conclusion"
        assert verdict(edited(document, "conclusion", field, to=None)) == "conclusion"
        conclusion = {key: value for key, value in document["conclusion"].items() if key != field}
        assert verdict(document | {"conclusion": conclusion}) == "conclusion"
    assert verdict(document | {"conclusion": document["conclusion"] | {"more": 1}}) == "conclusion"


ONE = {"code": "data-in-range", "what": "x", "by": "y"}


@pytest.mark.parametrize(
    ("listed", "rule"),
    [
        ([], "accepted"),
        ([ONE] * 397, "accepted"),
        ([ONE] * 398, "assumed"),
        ([ONE | {"code": "x" * 200}], "accepted"),
        ([ONE | {"code": "x" * 201}], "assumed"),
        ([ONE | {"code": 1}], "assumed"),
        ([ONE | {"what": 1}], "assumed"),
        ([ONE | {"by": 1}], "assumed"),
        ([ONE | {"more": 1}], "assumed"),
        ([{"code": "x", "what": "x"}], "assumed"),
        (["x"], "assumed"),
    ],
)
def test_assumptions_are_texts(listed: list[Any], rule: str) -> None:
    assert verdict(edited(samples.DP_APVI, "assumed", to=samples.DP_APVI["assumed"] + listed)) == rule


def codes(changed: dict[str, Any], releases: int = 1) -> set[str]:
    """The assumptions without which a certificate with this release is rejected: one by one."""
    from privcheck_check.check import needed

    many = [release(name=f"r{i}", **changed) for i in range(releases)]
    return needed(read_declared(BASE | {"releases": many}), "holds-at") - {"data-in-range", "unit"}


def test_every_rule_asks_for_its_assumptions() -> None:
    sampled = {"kind": "sampled", "times": 1, "rate": "1/2"}
    theorem = {"law": "theorem", "cost": 1, "currency": "pure", "theorem": "x"}
    assert codes({}) == set()
    assert codes({}, 2) == {"sequential"}
    assert codes({"schedule": {"kind": "local"}}) == set()
    assert codes({"schedule": {"kind": "disjoint"}}) == {"public-schedule: r0"}
    assert codes({"schedule": {"kind": "tree", "leaves": 2}}) == {"public-schedule: r0", "sequential"}
    assert codes({"schedule": {"kind": "repeat", "times": 2, "noise": "fresh"}}) == {"sequential"}
    assert codes({"schedule": sampled}) == {"secret-sample: r0", "sequential"}
    assert codes({"part": "a"}) == {"public-schedule: r0"}
    assert codes({"mechanism": theorem}) == {"theorem: r0"}
    assert codes({"statistic": {"kind": "stated", "l1": 1, "l2": 1}}) == {"stated-sensitivity: r0"}
    assert codes({"statistic": {"kind": "selection", "moves": 1}}) == {"stated-sensitivity: r0"}


@pytest.mark.parametrize(
    ("joint", "rule"),
    [
        ({"outputs": "construction", "by": "x"}, "accepted"),
        ({"outputs": "stated", "by": "x" * 400}, "accepted"),
        ({"outputs": "stated", "by": "x" * 401}, "J-BILLBOARD"),
        ({"outputs": "hope", "by": "x"}, "J-BILLBOARD"),
        ({"outputs": "stated"}, "J-BILLBOARD"),
        ({"outputs": "stated", "by": 1}, "J-BILLBOARD"),
        ({"outputs": "stated", "by": "x", "more": 1}, "J-BILLBOARD"),
    ],
)
def test_premises_of_joint_dp(joint: Any, rule: str) -> None:
    document = edited(samples.UCBVI, "joint", to=joint)
    assert verdict(edited(document, "conclusion", "about", to="outputs")) == rule
    if rule == "accepted":
        assert verdict(edited(document, "conclusion", "about", to="releases")) == "conclusion"


def test_a_sentence_says_what_was_proved() -> None:
    for name, words in (
        ("apvi", ["dp-apvi", "zcdp claim (Theorem 3.4)", "replace-one of a trajectory", "these numbers", "C-ZCDP"]),
        ("apvi for all", ["all parameters", "C-ZCDP"]),
        ("ucb-vi", ["visits, costs, transitions", "pure claim"]),
        ("numeric", ["ten Laplaces", "(1/2, 1/10)-DP"]),
        ("audit", ["1/100", "epsilon = 9/10"]),
        ("ledger", ["6 rows"]),
        ("sgd", ["given secret-sample: gradients; stated-sensitivity: choice", "C-NUMERIC"]),
    ):
        line = check(mutations.data(samples.sealed(samples.ALL[name])))
        assert all(word in line for word in words), line
