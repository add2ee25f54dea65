"""Failing audits as code: what is written makes an equal value, and equal values have one fingerprint."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError
from privcheck.testing import neighbouring_datasets
from privcheck.testing.assertions import fingerprint
from privcheck.testing.failure_report import UnwritableError, Writer, write_witness
from privcheck_algorithms.dp_apvi import LAPLACE


@dataclass(frozen=True)
class Point:
    x: float
    tag: str = "a"


class Colour(enum.Enum):
    RED = 1


def made(expression, writer):
    """Returns what an expression makes."""
    room = {}
    for line in writer.imports:
        exec(line, room)  # noqa: S102 - our own line
    return eval(expression, room)  # noqa: S307 - our own expression


def alike(one, other):
    """Returns whether two values are of one type and equal to the bit, NaN included: a naive walk."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return alike(list(one), list(other)) and alike(list(one.values()), list(other.values()))
    if isinstance(one, float):
        return np.float64(one).tobytes() == np.float64(other).tobytes() or bool(np.isnan(one) and np.isnan(other))
    return one == other


NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=5), st.binary(max_size=3))


def one_nan(array):
    """Returns an array whose NaN are all the same bits: `nan` has no others."""
    return np.where(np.isnan(array), np.nan, array).astype(array.dtype) if array.dtype.kind == "f" else array


ARRAYS = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int8, np.int64, np.bool_, np.dtype("<U3")]),
    arrays.array_shapes(max_dims=2, max_side=4, min_side=0),
).map(one_nan)
VALUES = st.recursive(
    st.one_of(NUMBERS, ARRAYS, st.fractions(), st.builds(Point, st.floats(allow_nan=False)), st.just(Colour.RED)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.tuples(inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_an_expression_makes_an_equal_value(value):
    writer = Writer(directory=None)
    assert alike(made(writer.write(value), writer), value)


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES)
def test_fingerprints_tell_values_apart_and_know_them_again(one, other):
    writer = Writer(directory=None)
    assert fingerprint(one) == fingerprint(made(writer.write(one), writer))
    if not alike(one, other):
        assert (fingerprint(one) == fingerprint(other)) == (repr(one) == repr(other) and "nan" in repr(one))


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset([3]),
        Decimal("0.10"),
        complex(1, -0.0),
        np.float32(0.1),
        np.bool_(1),
        np.zeros((0, 3), dtype=np.int32),
        np.array([1.0, np.nan, -np.inf]),
        partial(Point, 1.0, tag="b"),
        Point,
        np.full(4, -0.0),
    ],
    ids=repr,
)
def test_other_kinds_of_values(value):
    writer = Writer(directory=None)
    found = made(writer.write(value), writer)
    assert fingerprint(found) == fingerprint(value)
    assert type(found) is type(value)


def test_data_frames_come_back():
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", "y"]}, index=[3, 5])
    writer = Writer(directory=None)
    found = made(writer.write(frame), writer)
    pd.testing.assert_frame_equal(found, frame)
    assert fingerprint(found) == fingerprint(frame) != fingerprint(frame.rename(columns={"a": "z"}))


def test_trajectories_come_back():
    @settings(max_examples=10, deadline=None)
    @given(neighbouring_datasets(ReplaceOne(), 2, 2, 2, others=1))
    def check(pair):
        writer = Writer(directory=None)
        found = made(writer.write(pair), writer)
        for one, other in zip(found, pair, strict=True):
            assert all(alike(getattr(one, name), getattr(other, name)) for name in ("states", "actions", "rewards"))
        assert fingerprint(found) == fingerprint(pair)

    check()


def test_large_data_go_into_files(tmp_path):
    numbers, plain = np.arange(1_000.0), [{"user": i, "reward": 0.5} for i in range(300)]
    witness = write_witness(np.sum, PureDP(1), {"neighbours": [(numbers, plain)], "seed": 0}, directory=tmp_path)
    witness.save(tmp_path)
    assert len(witness.code) < 700
    assert {path.name for path in tmp_path.iterdir()} == {"witness.npz", "witness-0.json", "witness.py"}
    called = []
    asserts = "from privcheck.testing import assert_private"
    assert asserts in witness.code
    room = {"assert_private": lambda *given, **more: called.append((given, more))}
    exec(witness.code.replace(asserts, ""), room)  # noqa: S102 - our own code
    room["test_witness"]()
    ((function, claim), more) = called[0]
    assert function is np.sum
    assert claim == PureDP(1)
    assert alike(more["neighbours"], [(numbers, plain)])


@pytest.mark.parametrize("claim", [PureDP("1/3"), ApproxDP(1, "0.00001"), ZCDP("1/8"), GaussianDP(2)])
def test_claims_are_exact(claim):
    code = write_witness(np.sum, claim, {}, directory=None).code
    line = next(line for line in code.splitlines() if type(claim).__name__ + "(" in line).strip().removesuffix(",")
    assert eval(line, {each.__name__: each for each in (PureDP, ApproxDP, ZCDP, GaussianDP)}) == claim  # noqa: S307


def test_what_cannot_be_written_is_named_and_what_cannot_be_seen_is_refused():
    code = write_witness(lambda _: 0, PureDP(1), {"neighbours": [(object(), 1)]}, directory=None).code
    assert "# mechanism: value of the failing test" in code
    assert "# neighbours: value of the failing test, a object" in code
    with pytest.raises(UnwritableError):
        Writer(directory=None).write(np.array([object()]))
    with pytest.raises(ParameterError, match="the content of object objects is not visible"):
        fingerprint(object())
    with pytest.raises(ParameterError, match="Generator"):
        fingerprint(np.random.default_rng(0))
    deep = []
    deep.append(deep)
    with pytest.raises(ParameterError, match="is not visible"):
        fingerprint(deep)


def test_functions_are_told_by_code_and_what_they_captured():
    def make(scale):
        return lambda given: given * scale

    class Own:
        def __init__(self, x):
            self.x = x

        def method(self):
            return self.x

    assert fingerprint(make(1)) == fingerprint(make(1)) != fingerprint(make(2))
    assert fingerprint(lambda given: given) != fingerprint(lambda given: -given)
    assert fingerprint(Own(1).method) == fingerprint(Own(1).method) != fingerprint(Own(2).method)
    assert fingerprint(partial(make, 1)) != fingerprint(partial(make, 2))
    assert fingerprint(Point(1.0)) != fingerprint((1.0, "a"))
    assert fingerprint(LAPLACE.declare) == fingerprint(LAPLACE.declare)
    assert fingerprint({1, 2, 3}) == fingerprint({3, 2, 1})
    assert fingerprint(Fraction(1, 2), Decimal(1)) != fingerprint(Decimal(1), Fraction(1, 2))
