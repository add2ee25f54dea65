"""Fingerprints of functions and data by their content, so that the same audit is known again."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import hashlib
import types
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from privcheck.errors import ParameterError

_PLAIN: Final = (bool, int, float, complex, str, bytes)
_BY_REPR: Final = (fractions.Fraction, decimal.Decimal, dt.date, dt.time, dt.timedelta, PurePath)
_DEEPEST: Final = 100


def fingerprint(*values: Any) -> str:
    """Returns a text that is the same for values of the same content, in this process and in others.

    Functions are told by their code, their defaults and what they have captured.

    Raises:
        ParameterError: The content of a value cannot be seen.
    """
    return hashlib.blake2b(repr([_content(value, 0) for value in values]).encode(), digest_size=16).hexdigest()


def _content(value: Any, depth: int) -> Any:
    """Returns nested tuples of texts."""
    if depth > _DEEPEST:
        raise _unknown(value)
    if value is None or type(value) in _PLAIN:
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return (value.dtype.str, np.shape(value), hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest())
    if isinstance(value, _BY_REPR):
        return (_name(type(value)), repr(value))
    if isinstance(value, enum.Enum | type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return (_name(type(value)), _name(value), getattr(value, "name", ""))
    parts = _parts(value)
    return (_name(type(value)), *(_content(part, depth + 1) for part in parts))


def _parts(value: Any) -> Iterable[Any]:
    """Returns what a value is made of."""
    for kinds, parts in _MADE_OF:
        if isinstance(value, kinds):
            return parts(value)
    if type(value).__module__.partition(".")[0] == "pandas":
        return _frame(value)
    if dataclasses.is_dataclass(value):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    if type(value).__module__ not in ("builtins", "numpy.random._generator") and hasattr(value, "__dict__"):
        return [vars(value)]
    raise _unknown(value)


def _function(value: types.FunctionType) -> list[Any]:
    captured = [cell.cell_contents for cell in value.__closure__ or ()]
    return [value.__module__, value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, captured]


def _frame(value: Any) -> list[Any]:
    index = value.index if hasattr(value, "index") and not callable(value.index) else ()
    if hasattr(value, "columns"):
        columns = [[str(value.dtypes.iloc[i]), value.iloc[:, i].tolist()] for i in range(value.shape[1])]
        return [list(value.columns), list(index), columns]
    return [str(value.dtype), list(index), value.tolist()]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


def _unknown(value: Any) -> ParameterError:
    message = f"the content of a {type(value).__qualname__} cannot be seen, so a failing example could not be repeated"
    wanted = "under Hypothesis give functions, arrays, numbers, texts, lists, dicts, dataclasses or data frames"
    return ParameterError(f"{message}; {wanted}", name="mechanism", given=value)


_MADE_OF: Final[tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...]] = (
    (dict, lambda value: [part for item in value.items() for part in item]),
    ((set, frozenset), lambda value: sorted(repr(_content(each, 1)) for each in value)),
    ((list, tuple), list),
    (types.FunctionType, _function),
    (types.CodeType, lambda value: [value.co_code, value.co_names, value.co_consts]),
    (types.MethodType, lambda value: [value.__self__, value.__func__]),
    (functools.partial, lambda value: [value.func, value.args, value.keywords]),
)
