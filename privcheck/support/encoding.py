"""Report values to JSON and back: the only encoder, and the only decoder, which reports where a document is wrong.

In a document a number is a number or null; an infinite number is null, with a text beside it: `{"epsilon": null,
"epsilon_infinite": "inf"}`, and in a list by position, `{"curve": [0, null], "curve_infinite": {"1": "inf"}}`. Parts of
documents contain the strings "inf" and "-inf" instead. NaN is refused in writing and in reading. Fields that are
missing or null take their default, and unknown fields are ignored: documents may grow.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from privcheck.errors import ParameterError

T = TypeVar("T")

SCHEMA = 2  # of every JSON document

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_INFINITE_TEXTS = tuple(_INFINITE)
_BESIDE = "_infinite"  # the end of the name of the text beside a number
_CALLED = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


def to_json(value: Any, where: str = "report") -> Any:
    """Encode a value as plain JSON: dataclasses as objects, tuples and arrays as lists, fractions and paths as texts.

    Args:
        value: A report value, or any part of one.
        where: Name of the value in messages.

    Raises:
        ParameterError: The value contains a NaN, or a type that JSON cannot express; the message says where.
    """
    plain: Any = value
    if isinstance(value, str):
        plain = _text(value, where)
    elif isinstance(value, float):
        plain = _float(value, where)
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in _list_fields(cast("Any", type(value)))]
        plain = {name: to_json(getattr(value, name), f"{where}.{name}") for name in names}
    elif isinstance(value, Mapping):
        plain = {_text(str(key), where): to_json(item, f"{where}.{key}") for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        plain = [to_json(item, f"{where}[{index}]") for index, item in enumerate(value)]
    elif isinstance(value, (Fraction, Path)):
        plain = str(value)
    elif hasattr(value, "tolist"):  # NumPy scalars and arrays
        plain = to_json(value.tolist(), where)
    elif value is not None and not isinstance(value, (bool, int)):
        message = f"{where}: a value of type {type(value).__name__} cannot be written to a report"
        raise ParameterError(message, name=where, given=value)
    return plain


def document(value: Any) -> dict[str, Any]:
    """A whole JSON document: the schema number, followed by the value's fields.

    Raises:
        ParameterError: As `to_json`.
    """
    return {"schema": SCHEMA, **_part_infinite(to_json(value))}


def from_json(kind: type[T], data: Any, where: str = "report") -> T:
    """Decode a JSON document as a value of a class.

    Args:
        kind: A dataclass of report values.
        data: As `json.loads` returns it; tuples and NumPy arrays are taken too.
        where: Name of the value in messages.

    Raises:
        ParameterError: A field without a default is missing, or a field has another type; the message says which, with
            the expected and the given value.
    """
    return cast("T", _read(kind, _join_infinite(to_json(data, where)), where))


def _part_infinite(plain: Any) -> Any:
    """Plain JSON with infinite numbers replaced by null, and texts for them in fields beside."""
    if isinstance(plain, list):
        return [_part_infinite(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    parted: dict[str, Any] = {}
    for key, item in plain.items():
        if item in _INFINITE_TEXTS:
            parted |= {key: None, key + _BESIDE: item}
        elif isinstance(item, list) and (places := dict(_find_infinite(item))):
            parted |= {key: _part_infinite(_without(item)), key + _BESIDE: places}
        else:
            parted[key] = _part_infinite(item)
    return parted


def _find_infinite(items: list[Any], before: str = "") -> Iterator[tuple[str, str]]:
    for index, item in enumerate(items):
        if isinstance(item, list):
            yield from _find_infinite(item, f"{before}{index}.")
        elif item in _INFINITE_TEXTS:
            yield f"{before}{index}", item


def _without(items: list[Any]) -> list[Any]:
    return [_without(i) if isinstance(i, list) else None if i in _INFINITE_TEXTS else i for i in items]


def _join_infinite(plain: Any) -> Any:
    """Plain JSON with its infinite numbers put back in their places."""
    if isinstance(plain, list):
        return [_join_infinite(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    joined = {key: _join_infinite(item) for key, item in plain.items()}
    for key in [key for key in joined if key.endswith(_BESIDE) and key.removesuffix(_BESIDE) in joined]:
        places, owner = joined.pop(key), key.removesuffix(_BESIDE)
        if isinstance(places, dict):
            for path, text in places.items():
                _put(joined[owner], path, text)
        else:
            joined[owner] = places
    return joined


def _put(items: Any, path: str, text: str) -> None:
    first, _, rest = path.partition(".")
    if not isinstance(items, list) or not first.isdecimal() or int(first) >= len(items):
        raise ParameterError(f"an infinite number cannot be written at {path}", name=path, given=text)
    if rest:
        _put(items[int(first)], rest, text)
    else:
        items[int(first)] = text


def _read(kind: Any, data: Any, where: str) -> Any:
    """Decode plain JSON as a value of a type: dataclass, mapping, tuple, union, literal or plain type."""
    if get_origin(kind) in {Union, types.UnionType}:
        kind = _member(get_args(kind), data)
    origin, given, read = get_origin(kind), get_args(kind), data
    if origin is Literal:
        if not isinstance(data, str) or data not in given:
            raise _refusal(where, f"one of {', '.join(given)}", data)
    elif origin is tuple:
        read = tuple(_read(one, item, f"{where}[{k}]") for k, (one, item) in enumerate(_pair_up(given, data, where)))
    elif origin is Mapping:
        read = {key: _read(given[1], item, f"{where}.{key}") for key, item in _object(data, where).items()}
    elif dataclasses.is_dataclass(kind):
        read = _read_fields(cast("type", kind), _object(data, where), where)
    elif kind is not Any:
        read = _read_plain(kind, data, where)
    return read


def _read_fields(kind: type, data: dict[str, Any], where: str) -> Any:
    hints, read = _hints(kind), {}
    for field in _list_fields(kind):
        if data.get(field.name) is None and field.name not in _list_required(kind):  # null is as good as missing
            continue
        if field.name not in data:
            raise ParameterError(f"{where}.{field.name} is missing", name=f"{where}.{field.name}")
        read[field.name] = _read(hints[field.name], data[field.name], f"{where}.{field.name}")
    return kind(**read)


def _object(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _refusal(where, "an object", data)
    return data


def _read_plain(kind: type, data: Any, where: str) -> Any:
    if kind is float and isinstance(data, str) and data in _INFINITE:
        return _INFINITE[data]
    accepted = (int, float) if kind is float else kind
    if isinstance(data, accepted) and (kind is bool or not isinstance(data, bool)):
        return data
    raise _refusal(where, _CALLED[kind], data)


def _member(kinds: tuple[Any, ...], data: Any) -> Any:
    """The member of a union that fits plain JSON: by its type, and for classes by the present fields."""
    if data is None and type(None) in kinds:
        return type(None)
    left = [kind for kind in kinds if kind is not type(None)]
    if isinstance(data, dict):
        classes = [kind for kind in left if dataclasses.is_dataclass(kind)]
        whole = [kind for kind in classes if data.keys() >= _list_required(cast("type", kind))]
        left = whole or classes or [kind for kind in left if get_origin(kind) is Mapping] or left
    else:
        fitting = [kind for kind in left if kind in _CALLED and isinstance(data, kind)]
        left = fitting or [kind for kind in left if isinstance(data, list) and get_origin(kind) is tuple] or left
    return left[0]


def _pair_up(kinds: tuple[Any, ...], data: Any, where: str) -> list[tuple[Any, Any]]:
    """The items of a list with the type of each, from `tuple[int, ...]` or `tuple[int, int]`."""
    if not isinstance(data, list):
        raise _refusal(where, "a list", data)
    if kinds[-1] is Ellipsis:
        return [(kinds[0], item) for item in data]
    if len(kinds) != len(data):
        raise ParameterError(f"{where}: expected {len(kinds)} items, got {len(data)}", name=where, given=data)
    return list(zip(kinds, data, strict=True))


@cache
def _list_fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    """The fields of a class that documents contain: all that are not private."""
    return tuple(field for field in dataclasses.fields(kind) if not field.name.startswith("_"))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _list_required(kind: type) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(f.name for f in dataclasses.fields(kind) if f.default is missing and f.default_factory is missing)


def _refusal(where: str, expected: str, data: Any) -> ParameterError:
    shown = repr(data) if isinstance(data, (str, int, float)) and len(repr(data)) < 40 else type(data).__name__
    return ParameterError(f"{where}: expected {expected}, got {shown}", name=where, given=data)


def _float(value: float, where: str) -> float | str:
    if math.isnan(value):
        raise ParameterError(f"{where} is NaN; expected a number, or null if there is none", name=where)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


def _text(value: str, where: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ParameterError(f"{where}: not a text that can be written: {error}", name=where, given=value) from None
    return str(value)
