"""Types of Python's library and of well-known packages, taken apart without importing any of them."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import PrivcheckError

_MICROSECOND: Final = dt.timedelta(microseconds=1)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is kept beside it
_TIMES: Final = (dt.date, dt.time, dt.timedelta)
_NAMED: Final = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
_FRAMES: Final = ("pandas", "polars")


class CallError(PrivcheckError):
    """What a call gave cannot be taken as runs; the door says where."""


class Walk(Protocol):
    """Goes through an output; `blackbox.canonical` has the only one."""

    def add_parts(self, path: str, kind: str, *parts: tuple[str, Any]) -> None:
        """Adds something of which the parts are known by name."""
        ...

    def add_array(self, x: NDArray[Any], path: str, kind: str) -> None:
        """Adds an array."""
        ...

    def visit(self, x: Any, path: str) -> None:
        """Adds what stands at a place."""
        ...


def add_known(walk: Walk, x: Any, path: str, kind: str) -> bool:
    """Adds what is of a known type; returns whether it is."""
    for belongs, add in _KNOWN:
        if belongs(x):
            add(walk, x, path, kind)
            return True
    return False


def array_of(given: Any) -> NDArray[Any]:
    """Returns a tensor of any library as an array.

    Raises:
        CallError: Its own conversion fails.
    """
    try:
        return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except Exception as error:
        raise CallError(f"returned no array ({type(error).__name__}: {error})") from error


def name_of(kind: Any) -> str:
    """Returns the name of a type or function, with its module."""
    room, name = getattr(kind, "__module__", ""), getattr(kind, "__qualname__", getattr(kind, "__name__", "?"))
    return name if room in ("builtins", None) else f"{room}.{name}"


def plain(x: Any) -> Any:
    """Returns NumPy's texts as Python's."""
    return x.item() if isinstance(x, np.str_ | np.bytes_) else x


def _is_from(x: Any, rooms: tuple[str, ...], method: str) -> bool:
    return type(x).__module__.partition(".")[0] in rooms and hasattr(x, method)


def _add_enum(walk: Walk, x: enum.Enum, path: str, kind: str) -> None:
    walk.add_parts(path, kind, ("name", x.name))


def _add_number(walk: Walk, x: Any, path: str, kind: str) -> None:  # of a type derived from Python's
    walk.add_parts(path, kind, ("value", float(x) if isinstance(x, float) else int(x)))


def _add_complex(walk: Walk, x: complex, path: str, kind: str) -> None:
    walk.add_array(np.asarray(x), path, kind)


def _add_decimal(walk: Walk, x: Decimal, path: str, kind: str) -> None:
    sign, digits, exponent = x.as_tuple()
    value = float("nan") if x.is_nan() else float(x)
    walk.add_parts(path, kind, ("value", value), ("exponent", exponent), ("digits", (sign, *digits)))


def _add_fraction(walk: Walk, x: Fraction, path: str, kind: str) -> None:
    try:
        value = float(x)
    except OverflowError:
        value = float("inf") if x > 0 else float("-inf")
    walk.add_parts(path, kind, ("value", value), ("numerator", x.numerator), ("denominator", x.denominator))


def _add_time(walk: Walk, x: Any, path: str, kind: str) -> None:
    if isinstance(x, dt.datetime):
        since = (x.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
        walk.add_parts(path, kind, ("microseconds", since), ("zone", str(x.tzinfo)), ("fold", x.fold))
    elif isinstance(x, dt.date):
        walk.add_parts(path, kind, ("day", x.toordinal()))
    elif isinstance(x, dt.time):
        since = ((x.hour * 60 + x.minute) * 60 + x.second) * 1_000_000 + x.microsecond
        walk.add_parts(path, kind, ("microseconds", since), ("zone", str(x.tzinfo)), ("fold", x.fold))
    else:
        walk.add_parts(path, kind, ("microseconds", x // _MICROSECOND))


def _add_error(walk: Walk, x: BaseException, path: str, kind: str) -> None:
    walk.add_parts(path, f"exception {kind}", ("says", str(x)))


def _add_named(walk: Walk, x: Any, path: str, kind: str) -> None:
    walk.add_parts(path, kind, ("name", name_of(x)))


def _add_sparse(walk: Walk, x: Any, path: str, kind: str) -> None:
    flat = x.tocoo()  # zeros that are stored stay
    shown = [flat.row, flat.col] if hasattr(flat, "row") else list(flat.coords)
    axes = [(f"axis {i}", np.asarray(part)) for i, part in enumerate(shown)]
    walk.add_parts(path, f"{kind} {x.shape}", *axes, ("values", np.asarray(flat.data)))


def _add_frame(walk: Walk, x: Any, path: str, kind: str) -> None:
    columns = {str(name): _values(x.iloc[:, i] if hasattr(x, "iloc") else x[:, i]) for i, name in enumerate(x.columns)}
    index = [("index", _values(x.index))] if hasattr(x, "index") else []
    walk.add_parts(path, kind, ("columns", columns), *index)


def _add_series(walk: Walk, x: Any, path: str, kind: str) -> None:
    index = [("index", _values(x.index))] if hasattr(x, "index") and not callable(x.index) else []
    walk.add_parts(path, kind, ("name", str(getattr(x, "name", None))), ("values", _values(x)), *index)


def _add_arrow(walk: Walk, x: Any, path: str, kind: str) -> None:
    law = str(x.schema) if hasattr(x, "schema") else str(x.type)
    walk.add_parts(path, kind, ("schema", law), ("rows", x.to_pylist()))


def _add_tensor(walk: Walk, x: Any, path: str, kind: str) -> None:
    walk.add_array(array_of(x), path, kind)


def _values(x: Any) -> Any:
    found = np.asarray(x.to_numpy())
    return [plain(each) for each in found] if found.dtype.kind == "O" else found


_Belongs = Callable[[Any], bool]
_Add = Callable[[Walk, Any, str, str], None]
_KNOWN: Final[tuple[tuple[_Belongs, _Add], ...]] = (
    (lambda x: isinstance(x, enum.Enum), _add_enum),
    (lambda x: isinstance(x, float | int), _add_number),
    (lambda x: isinstance(x, complex), _add_complex),
    (lambda x: isinstance(x, Decimal), _add_decimal),
    (lambda x: isinstance(x, Fraction), _add_fraction),
    (lambda x: isinstance(x, _TIMES), _add_time),
    (lambda x: isinstance(x, BaseException), _add_error),
    (lambda x: isinstance(x, _NAMED), _add_named),
    (lambda x: _is_from(x, ("scipy",), "tocoo"), _add_sparse),
    (lambda x: _is_from(x, _FRAMES, "columns"), _add_frame),
    (lambda x: _is_from(x, _FRAMES, "to_numpy"), _add_series),
    (lambda x: _is_from(x, ("pyarrow",), "to_pylist"), _add_arrow),
    (lambda x: hasattr(type(x), "__array__"), _add_tensor),
)
