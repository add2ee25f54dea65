"""Columns as NumPy arrays: numbers, whole numbers and identifiers. What is none of it is reported with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.reading.problems import Problems
from privcheck.reading.tables import Table

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:nan|inf|infinity)$"  # what Arrow's own parser takes
_LARGEST = 2**53  # whole numbers up to here are exact as floats

Show = Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """A column of whole numbers.

    Attributes:
        values: (rows,) the numbers; 0 where `valid` is False.
        valid: (rows,) whether there is a whole number, at least 0.
    """

    values: NDArray[np.int64]
    valid: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Identifiers:
    """A column of names: of episodes, of users.

    Attributes:
        codes: (rows,) the position of each row's name in `names`; −1 where there is none.
        names: The distinct names in ascending order.
    """

    codes: NDArray[np.int64]
    names: NDArray[Any]


def real_numbers(table: Table, name: str, problems: Problems) -> NDArray[np.float64]:
    """Returns a column as floats; NaN, and a problem with its place, where there is no finite number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decode(table.columns.pop(name))
    kind = column.type
    if pa.types.is_string(kind) and table.format == "CSV":
        text = pc.utf8_trim_whitespace(column)
        column, broken = _parse(pc.if_else(pc.equal(text, ""), None, text))
        problems.add(f"{name}: expected a number", broken, _quote(table, text))
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        if not pa.types.is_null(kind):
            problems.say(f"{name}: expected a column of numbers, got one of type {kind}")
            return np.full(table.rows, np.nan)
        broken = np.zeros(table.rows, dtype=np.bool_)
    else:
        broken = np.zeros(table.rows, dtype=np.bool_)
    empty = column.is_null().to_numpy() & ~broken
    values: NDArray[np.float64] = np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    problems.add(f"{name}: empty", empty, table.place)
    problems.add(
        f"{name}: not finite", ~(np.isfinite(values) | empty | broken), lambda i: f"{table.place(i)} ({values[i]})"
    )
    values[~np.isfinite(values)] = np.nan
    return values


def whole_numbers(table: Table, name: str, problems: Problems) -> Whole:
    """Returns a column of ids or steps; a problem with its place where there is no whole number, at least 0."""
    return as_whole(name, real_numbers(table, name, problems), table.place, problems)


def as_whole(name: str, values: NDArray[np.float64], place: Show, problems: Problems) -> Whole:
    """Returns finite floats as whole numbers (3.0 is one, 3.5 is not); NaN is invalid without another word."""
    valid = np.isfinite(values)
    fraction = valid & (values != np.floor(values))
    problems.add(f"{name}: expected a whole number", fraction, lambda i: f"{place(i)} ({values[i]:.17g})")
    negative = valid & ~fraction & (values < 0)
    problems.add(f"{name}: expected a number of at least 0", negative, lambda i: f"{place(i)} ({values[i]:.17g})")
    valid &= ~fraction & ~negative
    # a float above 2⁵³ may have been another number; cut to 2⁶², it is out of every range that follows
    exact = np.minimum(np.where(valid, values, 0.0), 2.0**62).astype(np.int64)
    return Whole(values=exact, valid=valid)


def check_range(name: str, column: Whole, size: int, place: Show, problems: Problems) -> NDArray[np.bool_]:
    """Returns which ids are in [0, size); the others are a problem."""
    beyond = column.valid & (column.values >= size)
    problems.add(f"{name}: expected an id in 0..{size - 1}", beyond, lambda i: f"{place(i)} ({column.values[i]})")
    return column.valid & ~beyond


def check_unit_interval(name: str, values: NDArray[np.float64], place: Show, problems: Problems) -> None:
    """Reports finite values outside [0, 1]."""
    outside = np.isfinite(values) & ~((values >= 0) & (values <= 1))
    what = f"{name}: expected a value in [0, 1] (rescale by bounds that are publicly known, not by the data's own)"
    problems.add(what, outside, lambda i: f"{place(i)} ({float(values[i])!r})")


def identifiers(table: Table, name: str, problems: Problems) -> Identifiers:
    """Returns a column of names, whole numbers (sorted as such) or text; a problem where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decode(table.columns.pop(name))
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        problems.say(f"{name}: expected a column of whole numbers or text, got one of type {kind}")
        return Identifiers(codes=np.full(table.rows, -1), names=np.empty(0, dtype=np.int64))
    if pa.types.is_string(kind):
        text = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(text, ""), None, text)
    elif pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)
    problems.add(f"{name}: empty", column.is_null().to_numpy(), table.place)
    if pa.types.is_integer(kind):
        return _number(column, name, table, problems)
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    names = _as_integers(encoded.dictionary)
    if names is None and pa.types.is_floating(kind):
        problems.say(f"{name}: expected whole numbers or text, got numbers with a fraction")
        return Identifiers(codes=np.full(table.rows, -1), names=np.empty(0, dtype=np.int64))
    if names is None:
        names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    ordered, position = np.unique(names, return_inverse=True)
    codes = np.where(codes < 0, -1, np.append(position, -1)[codes])
    return _without_negative(codes, ordered, name, table, problems)


def _number(column: Any, name: str, table: Table, problems: Problems) -> Identifiers:
    import pyarrow.compute as pc

    empty = column.is_null().to_numpy()
    values = pc.fill_null(column, 0).to_numpy()
    steps = values[1:] != values[:-1]
    if len(values) and bool(np.all(values[1:] >= values[:-1])):  # sorted already, as most files are: no second sort
        codes = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
        names = values[np.concatenate([[True], steps])]
    else:
        names, codes = np.unique(values, return_inverse=True)
    return _without_negative(np.where(empty, -1, codes), names, name, table, problems)


def _without_negative(
    codes: NDArray[np.int64], names: NDArray[Any], name: str, table: Table, problems: Problems
) -> Identifiers:
    if np.issubdtype(names.dtype, np.signedinteger) and len(names) and names[0] < 0:
        negative = (codes >= 0) & (names[codes] < 0)
        what = f"{name}: expected a number of at least 0 (−1 often stands for a missing one)"
        problems.add(what, negative, lambda i: f"{table.place(i)} ({names[codes[i]]})")
        codes = np.where(negative, -1, codes)
    return Identifiers(codes=codes, names=names)


def _as_integers(distinct: Any) -> NDArray[np.int64] | None:
    import pyarrow as pa

    if pa.types.is_string(distinct.type):
        parsed, broken = _parse(pa.chunked_array([distinct]))
        values = np.array(parsed.to_numpy(), dtype=np.float64)
    else:
        values = np.array(distinct.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        broken = np.zeros(len(values), dtype=np.bool_)
    whole = ~broken & np.isfinite(values) & (np.abs(values) < _LARGEST) & (values == np.floor(values))
    return values.astype(np.int64) if bool(whole.all()) else None


def _parse(text: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Returns a column of text as floats, null where it is none, and where it is none although there is text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(text, pa.float64()), np.zeros(len(text), dtype=np.bool_)
    except pa.ArrowInvalid:
        number = pc.match_substring_regex(text, _NUMBER)
        broken = pc.fill_null(pc.invert(number), False).to_numpy()
        return pc.cast(pc.if_else(number, text, None), pa.float64()), broken


def _decode(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or str(column.type) == "string_view":
        column = column.cast(pa.string())
    return column


def _quote(table: Table, text: Any) -> Show:
    return lambda i: f"{table.place(i)} ({text[i].as_py()[:40]!r})"
