"""The grid of a sweep: every combination once, in order, and what is no grid is refused before anything runs."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.commands.settings import check_grid, list_points, parse_over
from privcheck.errors import ParameterError

NAMES = st.sampled_from(["epsilon", "rho", "K", "S", "log", "preset"])
NUMBERS = st.one_of(
    st.integers(1, 10**6).map(str),
    st.fractions(min_value=Fraction(1, 100), max_value=100).map(str),
    st.decimals(min_value="0.01", max_value=100, places=2).map(str),
    st.integers(-9, 9).map(lambda power: f"1e{power}"),
)
WORDS = st.sampled_from(["ln", "log2", "paper", "practical"])
SPACE = st.sampled_from(["", " "])


def exact(text):
    """Returns what a text stands for, without the package's own reading."""
    if text[0].isalpha():
        return text
    mantissa, _, power = text.partition("e")
    return Fraction(mantissa) * Fraction(10) ** int(power or 0)


@st.composite
def grids(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    return {
        name: tuple(draw(st.lists(st.one_of(NUMBERS, WORDS), min_size=1, max_size=4, unique_by=exact)))
        for name in names
    }


@given(grids(), SPACE)
def test_a_grid_is_read_as_it_is_written(grid, space):
    texts = [f"{name}{space}={space}{f'{space},{space}'.join(values)}" for name, values in grid.items()]
    assert parse_over(texts, {}) == grid


@given(grids())
def test_points_are_all_combinations_the_last_parameter_first(grid):
    points = list_points(grid)
    counters = [range(len(values)) for values in grid.values()]
    assert points == [
        {name: values[k] for (name, values), k in zip(grid.items(), place, strict=True)}
        for place in itertools.product(*counters)
    ]
    assert len({tuple(point.items()) for point in points}) == len(points)


@given(grids(), st.data())
def test_a_value_that_comes_twice_is_refused_however_it_is_written(grid, data):
    name = data.draw(st.sampled_from(list(grid)))
    again = data.draw(st.sampled_from(grid[name]))
    value = exact(again)
    written = again if isinstance(value, str) else data.draw(st.sampled_from([again, str(value), f"{again} "]))
    with pytest.raises(ParameterError, match="is given twice"):
        check_grid({**grid, name: (*grid[name], written)}, {})


@given(grids(), st.data())
def test_a_parameter_is_swept_or_set(grid, data):
    name = data.draw(st.sampled_from(list(grid)))
    with pytest.raises(ParameterError, match="swept or set, not both"):
        check_grid(grid, {name: "1"})


@pytest.mark.parametrize(("texts", "match"), [
    (["epsilon"], "NAME=VALUE"), (["=1"], "NAME=VALUE"), (["epsilon="], "NAME=VALUE"),
    (["epsilon=1", "epsilon=2"], "gives epsilon twice"), (["epsilon=1,,2"], "before and after every comma"),
    (["epsilon=,1"], "before and after every comma"), ([], "expects a parameter"),
    (["K=" + ",".join(map(str, range(1, 102))), "S=" + ",".join(map(str, range(1, 102)))], "10,201 points"),
])  # fmt: skip
def test_what_is_no_grid_is_refused(texts, match):
    with pytest.raises(ParameterError, match=match):
        parse_over(texts, {})
