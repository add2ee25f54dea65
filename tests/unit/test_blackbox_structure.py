"""Outputs of any kind as rows: equal rows for equal outputs and only for them, against a naive twin.

The twin writes an output down as a text, type by type, and shares no code with the encoder. Digests of 53 bits collide
with probability 2⁻⁵³ a pair: all comparisons here together fail a correct encoder with probability below 10⁻¹⁰.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import math
import struct
import types
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck_audits.blackbox.canonical import CallError, Raised, canonical, digest
from privcheck_audits.blackbox.structure import make_schema, sketch

words = st.sampled_from(["", "a", "b", "no answer", "nan", "ünï", "x" * 300])
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.5]),
    st.floats(),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 2**53 + 2, -(2**63), 2**64, 10**40, 10**40 + 1, 10**400, -(10**400)]),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, words, st.binary(max_size=3))
outputs = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.floats(), max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.sampled_from("abc"), st.integers(0, 2), st.booleans()), inner, max_size=3),
        st.sets(st.one_of(st.integers(0, 2), st.sampled_from("ab")), max_size=3),
    ),
    max_leaves=8,
)


def written(x: object) -> str:
    """Returns the output as a text: types, order of keys, no order in sets, one NaN, two zeros."""
    match x:
        case float():
            return "float NaN" if math.isnan(x) else f"float {struct.pack('>d', x).hex()}"
        case None | bool() | int() | str() | bytes():
            return f"{type(x).__name__} {x!r}"
        case dict():
            return "dict {" + ", ".join(f"{written(key)}: {written(value)}" for key, value in x.items()) + "}"
        case set():
            return "set {" + ", ".join(sorted(map(written, x))) + "}"
        case list() | tuple():
            return type(x).__name__ + " [" + ", ".join(map(written, x)) + "]"
    raise AssertionError(type(x))


def schema_for(examples):
    forms = [canonical(each) for each in examples]
    return make_schema(sketch(forms, np.arange(len(forms)) % 2 == 0))


@settings(max_examples=150, deadline=None)
@given(st.lists(outputs, min_size=1, max_size=6), st.lists(outputs, min_size=2, max_size=6))
def test_rows_are_equal_where_outputs_are_and_only_there(known, fresh):
    schema = schema_for(known)
    every = known + fresh
    rows = schema.rows([canonical(each) for each in every])
    assert not np.isnan(rows).any()
    for i, one in enumerate(every):
        for j, other in enumerate(every[:i]):
            same = written(one) == written(other)
            assert (rows[i] == rows[j]).all() == same, (one, other)
            assert (digest(canonical(one)) == digest(canonical(other))) == same


@settings(max_examples=60, deadline=None)
@given(outputs)
def test_what_the_schema_knows_leaves_nothing_over(given):
    row = schema_for([given, given, given]).rows([canonical(given)])[0]
    beyond = "100000" in written(given)  # integers of more than 84 bits are left over
    assert beyond or row[1] == 0


class Kind(enum.Enum):
    GOOD = 1
    BAD = 2


class Number(enum.IntEnum):
    ONE = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Record:
    x: float
    y: object = None


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Plain:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def masked(mask):
    return np.ma.array([1.0, 2.0], mask=mask)


def failing():
    yield 1.0
    raise ValueError("half way")


ALL_DIFFERENT = [
    0, False, 0.0, -0.0, None, "0", b"0", "", [], (), {}, set(), [[]], [0], [0.0], [False], (0.0,), [None], [0, None],
    2**53, 2**53 + 1, float(2**53), 2**64, 2**64 + 1, 10**30, "nan", math.nan, math.inf, "1.5", "1.50", "01.5",
    "x 1.5", np.float64(0), np.float32(0), np.float16(0), np.int64(0), np.int32(0), np.uint64(2**64 - 1),
    np.bool_(False),
    np.str_("0"), np.zeros(0), np.zeros((2, 0)), np.zeros((0, 2)), np.zeros(1), np.zeros((1, 1)),
    np.zeros(1, np.float32),
    np.zeros((), np.float64), np.zeros(2), np.array([0.0, -0.0]), np.array([0.0, np.nan]), np.array([np.nan, 0.0]),
    np.array(["a"]), np.array(["a"], dtype=object), np.array([1j]), 1j, np.array(["2020"], "datetime64[Y]"),
    np.array(["NaT"], "datetime64[Y]"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
    np.zeros(1, [("a", float)]), np.zeros(1, [("b", float)]), masked([0, 0]), masked([0, 1]),
    masked([1, 1]),    Kind.GOOD, Kind.BAD, Number.ONE, 1, Point(1, 2), Point(2, 1), (1, 2), [1, 2], Record(1.0),
    Record(1),
    Record(1.0, 2),    Slotted(1), Slotted(2), Plain(x=1), Plain(y=1), Plain(x=1, y=2), Plain(y=2, x=1),
    {"x": 1, "y": 2}, {"y": 2, "x": 1},
    {1: "a"}, {"1": "a"}, {True: "a"}, {1.0: "a"}, {(1, 2): "a"}, {None: "a"}, collections.OrderedDict(x=1), {"x": 1},
    collections.Counter("a"), collections.deque([1]), {1, 2}, frozenset({1, 2}), {1}, {"1"}, range(3),
    bytearray(b"a"),
    decimal.Decimal("1.0"), decimal.Decimal("1.00"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), 1 / 3,
    fractions.Fraction(10**400), dt.date(2020, 1, 1), dt.datetime(2020, 1, 1),  # noqa: DTZ001
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.time(1), dt.timedelta(1), ValueError("a"), ValueError("b"), KeyError("a"), Raised("ValueError", "a"),
    ValueError,
    sp.csr_array(np.eye(2)), sp.csc_array(np.eye(2)), sp.csr_array(np.zeros((2, 2))),
    pd.Series([1.0]), pd.Series([1.0], name="a"), pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}),
    pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0], "b": [1.0]}), pd.DataFrame({"b": [1.0], "a": [1.0]}),
    pd.DataFrame({"a": ["t"]}), pa.table({"a": [1.0]}), pa.table({"a": [1]}), pa.array([1.0]),
    types.SimpleNamespace(x=1), "a\x1fb", "x" * 200_000, "x" * 199_999 + "y", list(range(5_000)), [*range(4_999), 0],
    [None] * 5_000, [*[None] * 4_999, 1], {"a": {"b": 1}}, {"a": {"c": 1}}, {"a": [{"b": 1}]}, print, len,
]  # fmt: skip


@pytest.mark.parametrize("known", [ALL_DIFFERENT[:1], ALL_DIFFERENT[::3], ALL_DIFFERENT], ids=["one", "some", "all"])
def test_every_difference_of_structure_is_visible(known):
    rows = schema_for(known).rows([canonical(each) for each in ALL_DIFFERENT])
    seen = {}
    for row, each in zip(rows, ALL_DIFFERENT, strict=True):
        same = seen.setdefault(row.tobytes(), each)
        assert same is each, (same, each)


def test_what_does_not_differ_is_equal():
    pairs = [
        (np.frombuffer(struct.pack("<Q", 0x7FF8000000000001))[0], math.nan),
        (-math.nan, math.nan),
        (np.array([-np.nan]), np.array([np.nan])),
        ({3, 1, 2}, {1, 2, 3}),
        (object(), object()),
        (ValueError(f"bad {object()}"), ValueError(f"bad {object()}")),
        (Plain(x=object()), Plain(x=object())),
        (np.random.default_rng(1), np.random.default_rng(2)),
    ]
    for one, other in pairs:
        if isinstance(one, float):
            one = float(one)  # noqa: PLW2901
        assert digest(canonical(one)) == digest(canonical(other)), one
    assert canonical([object()]).opaque == {"object"}
    assert canonical(Plain(x=1)).opaque == frozenset()


def test_what_cannot_say_what_it_is_is_its_type():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    assert Raised.of(MuteError()).message == ""
    long = np.zeros(4, np.longdouble)
    long.view(np.uint8)[10:16] = 7  # padding
    assert digest(canonical(long)) == digest(canonical(np.zeros(4, np.longdouble)))


def test_a_view_of_the_dataset_is_copied():
    data = np.zeros(3)
    forms = [canonical({"view": data[1:]})]
    data += 1
    assert digest(forms[0]) == digest(canonical({"view": np.zeros(2)}))


def test_a_stream_is_read_to_its_end_and_what_it_raises_belongs_to_it():
    read = canonical(float(i) for i in range(3))
    assert read.leaves[0].kind.startswith("generator")
    assert read.leaves[0].value.tolist() == [0, 1, 2]
    assert [leaf.value for leaf in canonical(failing()).leaves][-1] == "half way"
    with pytest.raises(ValueError, match="half way"):
        canonical(failing(), catch=False)


def test_a_million_numbers_take_a_moment_and_what_has_no_column_is_in_the_digest():
    long = [0.5] * 1_000_000
    schema = schema_for([long])
    assert schema.width < 25_000
    other = [*long[:-1], 0.25]
    one, two = schema.rows([canonical(long), canonical(other)])
    assert one[1] != two[1]


def test_what_goes_round_in_circles_or_too_deep_is_refused():
    circle = {}
    circle["me"] = [circle]
    with pytest.raises(CallError, match="contains itself"):
        canonical(circle)
    deep = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(CallError, match="more than 100 containers"):
        canonical(deep)
    shared = [1]
    assert canonical([shared, shared]).leaves[1].value.tolist() == [1]


def test_numbers_in_texts_are_numbers():
    schema = schema_for(["count 3.25", "count 4.75", "count 1e6 or so"])
    rows = schema.rows([canonical("count 7.50"), canonical("count 8.50"), canonical("count eight")])
    assert {7.5, 8.5} <= set(rows[:2].ravel())
    assert rows[0, 1] == rows[1, 1] == 0
    assert rows[2, 1] > 0


def test_the_places_of_keys_are_columns_where_their_order_varies_and_subsets_in_order_are_none():
    orders = [dict.fromkeys(order, 1.0) for order in ("abcd", "bacd", "dcba", "cdab")]
    subsets = [dict.fromkeys(order, 1.0) for order in ("abcd", "acd", "bd", "ab")]
    varying, fixed = schema_for(orders), schema_for(subsets)
    assert any(slot.order >= 0 for slot in varying.slots.values())
    assert not any(slot.order >= 0 for slot in fixed.slots.values())
