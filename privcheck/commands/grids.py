"""From `--over NAME=VALUE,VALUE,…` to the points of a grid, each of which every algorithm runs once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from privcheck.commands.setting import parse_pairs
from privcheck.errors import ParameterError
from privcheck.symbols import exact

_MOST: Final = 10_000  # points of a grid
_EXAMPLE: Final = "epsilon=0.1,1,10"

Grid = dict[str, tuple[str, ...]]


def parse_over(texts: Iterable[str], given: Mapping[str, str]) -> Grid:
    """Returns the values by parameter, in the order in which they were given.

    Args:
        texts: As NAME=VALUE,VALUE,….
        given: What was set besides, whose names cannot be swept too.

    Raises:
        ParameterError: One is not of this form; a name or a value is given twice, or a name is set besides; there is
            nothing to sweep over, or the grid has more than 10 000 points.
    """
    return check_grid({name: values.split(",") for name, values in _split(texts).items()}, given)


def _split(texts: Iterable[str]) -> dict[str, str]:
    return parse_pairs(texts, option="--over", example=_EXAMPLE)


def check_grid(over: Mapping[str, Sequence[str]], given: Mapping[str, str]) -> Grid:
    """Returns the grid, checked; as `parse_over`.

    Args:
        over: Values as texts by parameter.
        given: What was set besides.
    """
    if not over:
        raise ParameterError(f"--over expects a parameter with its values, such as {_EXAMPLE}; got none", name="over")
    grid = {name: tuple(value.strip() for value in values) for name, values in over.items()}
    for name, values in grid.items():
        shown = f"--over {name}={','.join(values)}"
        if name in given:
            message = f"{shown} and --set {name}={given[name]}: a parameter is swept or set, not both"
            raise ParameterError(message, name=name, given=given[name])
        if not values or not all(values):
            raise ParameterError(f"{shown}: expected a value before and after every comma", name=name, given=values)
        numbers = [number(value) for value in values]
        for place, one in enumerate(numbers):
            if one in numbers[:place]:
                first = values[numbers.index(one)]
                message = f"{shown}: {values[place]} is given twice" + (
                    "" if first == values[place] else f", as {first} too"
                )
                raise ParameterError(message, name=name, given=values[place])
    points = 1
    for values in grid.values():
        points *= len(values)
    if points > _MOST:
        raise ParameterError(f"--over: a grid of {points:,} points; expected at most {_MOST:,}", name="over")
    return grid


def number(text: str) -> Fraction | str:
    """Returns the exact number that a text is; the text itself where it is none, as of readings."""
    try:
        return exact(text)
    except ParameterError:
        return text


def list_points(grid: Grid) -> list[dict[str, str]]:
    """Returns every combination of values; the last parameter moves first.

    >>> list_points({"K": ("10", "20"), "epsilon": ("1", "2")})[:2]
    [{'K': '10', 'epsilon': '1'}, {'K': '10', 'epsilon': '2'}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
