"""Report values: what is encoded is decoded to the same, and what is no such document is refused by name."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privcheck.declare.statements import Origin, Statement
from privcheck.errors import ParameterError
from privcheck.reports import values
from privcheck.terms.unit import Unit

KINDS = [kind for name in values.__all__ if dataclasses.is_dataclass(kind := getattr(values, name))]
NUMBERS = st.floats(allow_nan=False) | st.integers()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
COUNTS, WORDS = st.integers(1, 10**9), st.text("abc é", min_size=1, max_size=5).filter(str.strip)
PLAIN = {
    str: st.text(max_size=4),
    int: st.integers(),
    float: NUMBERS,
    bool: st.booleans(),
    type(None): st.none(),
    Any: ANYTHING,
    Unit: st.builds(
        Unit, who=WORDS, stated_by=WORDS, trajectories=COUNTS, steps=st.none() | COUNTS
    ),  # checked when made, as are those of the next two
    Origin: st.builds(
        Origin, kind=st.sampled_from(("printed", "published code", "own")), text=WORDS, changed=st.just("")
    ),
    Statement: st.builds(Statement, name=WORDS, quotation=WORDS, where=WORDS, neighbours=WORDS),
}


@cache
def drawn(kind):
    """A strategy for the values of a type, written apart from the decoder."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return st.one_of(*map(drawn, inner))
    if dataclasses.is_dataclass(kind) and kind not in PLAIN:
        hints = get_type_hints(kind).items()
        return st.builds(kind, **{name: drawn(hint) for name, hint in hints if not name.startswith("_")})
    if origin is tuple and ... not in inner:
        return st.tuples(*map(drawn, inner))
    if origin is tuple:
        return st.lists(drawn(inner[0]), max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=3), drawn(inner[1]), max_size=2)
    return st.sampled_from(inner) if origin is Literal else PLAIN[kind]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_what_is_encoded_is_decoded_to_the_same(kind, data):
    value = data.draw(drawn(kind))
    text = json.dumps(values.to_json(value), allow_nan=False)
    assert values.from_json(kind, json.loads(text)) == value
    names = {"schema", *(field.name for field in dataclasses.fields(kind) if not field.name.startswith("_"))}
    document = values.document(value)
    assert {name for name in document if name.removesuffix("_infinite") not in names} == set()
    assert names <= document.keys()
    again = json.loads(json.dumps(document, allow_nan=False))
    assert values.from_json(kind, again) == value


def test_infinite_numbers_are_null_beside_a_text():
    given_numbers = {"at": [1.0, math.inf, [2, -math.inf]], "none": None, "low": -math.inf, "parts": [{"x": math.inf}]}
    document = values.document(given_numbers)
    assert document == {
        "schema": values.SCHEMA,
        "at": [1.0, None, [2, None]], "at_infinite": {"1": "inf", "2.1": "-inf"},
        "none": None, "low": None, "low_infinite": "-inf", "parts": [{"x": None, "x_infinite": "inf"}],
    }  # fmt: skip


def test_a_text_about_no_number_is_refused():
    with pytest.raises(ParameterError, match=r"an infinite number cannot be written at 3"):
        values.from_json(values.CalibrationTarget, {"epsilon": [1], "epsilon_infinite": {"3": "inf"}, "delta": 1})


def test_every_exported_class_is_tried():
    assert {values.Report, values.Shown, values.Audits, values.RanOnline, values.CalibratedNoise} <= set(KINDS)


def test_other_forms_are_made_plain():
    given_forms = {
        "exact": Fraction(1, 2), "path": Path("a/b"), "number": np.float64(0.5), "flag": np.bool_(True),
        "curve": np.array([0.0, math.inf]), "pair": (1, -math.inf),
    }  # fmt: skip
    assert values.to_json(given_forms) == {
        "exact": "1/2", "path": "a/b", "number": 0.5, "flag": True, "curve": [0.0, "inf"], "pair": [1, "-inf"],
    }  # fmt: skip


TARGET = {"epsilon": 1.0, "delta": "inf", "unknown": [1]}


def test_fields_that_are_unknown_are_ignored_and_infinities_are_numbers():
    assert values.from_json(values.CalibrationTarget, TARGET) == values.CalibrationTarget(epsilon=1.0, delta=math.inf)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"delta": None}, r"report\.delta: expected a number, got NoneType"),
        ({"delta": "small"}, r"report\.delta: expected a number, got 'small'"),
        ({"delta": True}, r"report\.delta: expected a number, got True"),
        ({"delta": [1]}, r"report\.delta: expected a number, got list"),
        ({"delta": math.nan}, r"report\.delta is NaN"),
        ({"unknown": math.nan}, r"report\.unknown is NaN"),
    ],
)
def test_a_field_of_another_type_is_named(change, says):
    with pytest.raises(ParameterError, match=says):
        values.from_json(values.CalibrationTarget, TARGET | change)


def test_what_is_missing_or_no_object_or_not_among_the_names_is_named():
    with pytest.raises(ParameterError, match=r"report\.delta is missing"):
        values.from_json(values.CalibrationTarget, {"epsilon": 1})
    with pytest.raises(ParameterError, match="report: expected an object, got list"):
        values.from_json(values.CalibrationTarget, [])
    with pytest.raises(ParameterError, match=r"report\.epsilon: expected a list, got 3"):
        values.from_json(values.DeltaCurve, {"epsilon": 3, "delta_upper": [], "delta_claim": []})
    with pytest.raises(ParameterError, match=r"report\.verdict: expected one of holds, fails, undecided, got 'passed'"):
        values.from_json(values.VerdictBrief, {"verdict": "passed", "method": "proved", "sentence": ""})
    broken = {"trade_off": {"runs": [1]}}
    with pytest.raises(ParameterError, match=r"report\.trade_off\.runs: expected 2 items, got 1"):
        values.from_json(values.Audited, _audited() | broken)


def _audited():
    return {
        "view": "releases", "trials": 1, "confidence": 0.9, "delta": 0, "epsilon_lower": None, "epsilon_upper": None,
        "epsilon_claimed": None, "verdict": "consistent", "reachable": None, "method": "", "witness": "",
        "evidence": {}, "seconds": 0, "trials_per_second": 0,
    }  # fmt: skip


def test_audits_of_several_views_carry_the_first_ones_fields():
    one = values.from_json(values.Audited, _audited())
    both = values.together({"releases": one, "noise": dataclasses.replace(one, view="noise")})
    assert both.view == "releases"
    assert list(both.views) == ["releases", "noise"]
    assert values.together({}) is None
