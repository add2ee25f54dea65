"""Canonical form of an output of any type: leaves with their paths, equality by digest, exceptions as outputs.

The form is a flat list that records types, keys and their order, lengths, dtypes, exceptions with their messages, NaN
and the sign of zero. Sets have no order, so none is recorded. Numbers in texts are taken out: a text becomes a pattern
and a list of numbers. Objects are read by their fields, never by their `repr`, which would include the memory address;
of an object without fields only the type is recorded. Types of Python's library and of well-known packages are read
without importing those packages.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import PrivcheckError

_MICROSECOND: Final = dt.timedelta(microseconds=1)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is kept beside it
_TIMES: Final = (dt.date, dt.time, dt.timedelta)
_NAMED: Final = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
_FRAMES: Final = ("pandas", "polars")


class CallError(PrivcheckError):
    """The return value of a call cannot be read as runs; callers add which call it was."""


class Walk(Protocol):
    """Protocol of the walk through an output; `blackbox.canonical` has the only implementation."""

    def add_parts(self, path: str, kind: str, *parts: tuple[str, Any]) -> None:
        """Add a value with named parts."""
        ...

    def add_array(self, x: NDArray[Any], path: str, kind: str) -> None:
        """Add an array."""
        ...

    def visit(self, x: Any, path: str) -> None:
        """Add the leaves of a value at a path."""
        ...


def add_known(walk: Walk, x: Any, path: str, kind: str) -> bool:
    """Add a value if its type is known, and return whether it is."""
    for belongs, add in _KNOWN:
        if belongs(x):
            add(walk, x, path, kind)
            return True
    return False


def array_of(given: Any) -> NDArray[Any]:
    """Array with the contents of a tensor of any library.

    Raises:
        CallError: The library's conversion fails.
    """
    try:
        return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except Exception as error:
        raise CallError(f"returned no array ({type(error).__name__}: {error})") from error


def name_of(kind: Any) -> str:
    """Name of a type or function, with its module."""
    room, name = getattr(kind, "__module__", ""), getattr(kind, "__qualname__", getattr(kind, "__name__", "?"))
    return name if room in ("builtins", None) else f"{room}.{name}"


def plain(x: Any) -> Any:
    """NumPy texts converted to Python's; other values unchanged."""
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


_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]{4,}")


def without_addresses(text: str) -> str:
    """Text without memory addresses, as in the default `repr` of objects."""
    return _ADDRESS.sub(" at …", text)


class Leaf(NamedTuple):
    """Value at one path of an output.

    Attributes:
        path: Keys, fields and indices from the outside in.
        kind: The type, with the dtype for arrays.
        shape: Shape of an array, or length of a container; None for single values.
        value: A number, a text, an array (numbers,), or the keys of a mapping in their order; None for leaves without a
            value.
    """

    path: str
    kind: str
    shape: tuple[int, ...] | None
    value: Any


class Form(NamedTuple):
    """The canonical form of an output.

    Attributes:
        leaves: Leaves in the order of the output.
        opaque: Types of which only the name is visible.
    """

    leaves: tuple[Leaf, ...]
    opaque: frozenset[str]


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as the output of a run.

    Attributes:
        kind: Type of the exception.
        message: Its message, without memory addresses.
    """

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Output for an exception."""
        try:
            message = str(error)
        except Exception:  # noqa: BLE001 - an exception that cannot say what it is
            message = ""
        return cls(name_of(type(error)), without_addresses(message))


def digest(form: Form) -> bytes:
    """16 bytes that are equal for equal outputs; all NaN are equal, 0 and −0 are not."""
    parts = hashlib.blake2b(digest_size=16)
    for leaf in form.leaves:
        parts.update(repr((leaf.path, leaf.kind, leaf.shape)).encode())
        parts.update(exact(leaf.value))
    return parts.digest()


def exact(value: Any) -> bytes:
    """Bytes of a leaf's value, equal for equal values."""
    if isinstance(value, np.ndarray):
        clean = np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value
        return bytes(clean.dtype.str, "ascii") + np.ascontiguousarray(clean).tobytes()
    return repr(value).encode("utf-8", "surrogatepass")


_DEEPEST: Final = 100  # containers in each other
_LONGEST: Final = 1_000_000  # items of a stream
_ITEMS: Final = 4_096  # of a container that are told apart; what follows is one digest
_LONG_TEXT: Final = 100_000  # characters; of a longer text length and digest are kept
_EXACT_DIGITS: Final = 15  # of a number in a text that a float surely holds
_DECIMALS: Final = 6
_BYTES: Final = 8  # of a number; longer ones have padding that means nothing
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]|\.\d)")


def canonical(given: Any, *, catch: bool = True) -> Form:
    """Canonical form of an output.

    Args:
        given: Any object. Iterators are consumed.
        catch: Whether an exception raised by an iterator is part of the output.

    Raises:
        CallError: The output contains itself, is nested too deeply, or is an endless stream.
    """
    walk = _Walk(catch=catch)
    walk.visit(given, "")
    return Form(tuple(walk.leaves), frozenset(walk.opaque))


class _Walk:
    """Walk through one output, collecting its leaves."""

    __slots__ = ("above", "catch", "leaves", "opaque")

    def __init__(self, *, catch: bool) -> None:
        self.leaves: list[Leaf] = []
        self.opaque: set[str] = set()
        self.above: list[int] = []
        self.catch = catch

    def visit(self, x: Any, path: str) -> None:
        """Add the leaves of a value at a path."""
        kind = type(x)
        if kind in (float, int, bool):
            self.leaves.append(Leaf(path, kind.__name__, None, x))
        elif x is None or x is Ellipsis or x is NotImplemented:
            self.leaves.append(Leaf(path, kind.__name__, None, None))
        elif kind is str:
            self.add_text(x, path, "str")
        else:
            if id(x) in self.above:
                raise CallError("returned something that contains itself; expected a finite output")
            if len(self.above) == _DEEPEST:
                raise CallError(f"returned more than {_DEEPEST} containers in each other; expected a flatter output")
            self.above.append(id(x))
            self._other(x, path, kind)
            self.above.pop()

    def _other(self, x: Any, path: str, kind: type) -> None:
        if kind is list or kind is tuple:
            self.add_items(x, path, kind.__name__)
        elif kind is dict:
            self.add_mapping(x.items(), path, "dict")
        elif isinstance(x, np.ndarray):
            self.add_array(x, path, name_of(kind) if kind is not np.ndarray else "array")
        elif isinstance(x, np.generic):
            self.add_scalar(x, path)
        else:
            self._more(x, path, name_of(kind))

    def _more(self, x: Any, path: str, kind: str) -> None:
        if isinstance(x, Raised):
            self.add_parts(path, f"raised {x.kind}", ("says", x.message))
        elif isinstance(x, str) and not isinstance(x, enum.Enum):
            self.add_text(str(x), path, kind)
        elif isinstance(x, bytes | bytearray | memoryview):
            self.add_bytes(bytes(x), path, kind)
        elif add_known(self, x, path, kind):
            return
        elif isinstance(x, tuple) and hasattr(x, "_fields"):
            self.add_object(x, path, kind)
        elif isinstance(x, Mapping):
            self.add_mapping(x.items(), path, kind)
        elif isinstance(x, AbstractSet):
            self.add_set(x, path, kind)
        elif isinstance(x, Iterator):
            self.add_stream(x, path, kind)
        elif isinstance(x, Sequence) or type(x).__module__ == "collections":
            self.add_items(list(x), path, kind)
        else:
            self.add_object(x, path, kind)

    def add_text(self, x: str, path: str, kind: str) -> None:
        """Add a text, with its numbers as a separate leaf."""
        clean = without_addresses(x) if " at 0x" in x else x
        if len(clean) > _LONG_TEXT:
            self.leaves.append(Leaf(path, f"long {kind}", (len(clean),), _hash(clean.encode("utf-8", "surrogatepass"))))
            return
        if clean.isalpha() or not any(map(str.isdigit, clean)):
            self.leaves.append(Leaf(path, kind, None, clean))
            return
        numbers: list[float] = []
        pattern = _NUMBER.sub(lambda match: _take_out(match[0], numbers), clean)
        self.leaves.append(Leaf(path, kind, None, pattern))
        if numbers:
            self.leaves.append(Leaf(f"{path}#", "numbers in text", (len(numbers),), np.array(numbers)))

    def add_items(self, x: Sequence[Any], path: str, kind: str) -> None:
        """Add a list: plain numbers as an array, other items one by one."""
        numbers = _numbers(x)
        if numbers is not None:
            self.leaves.append(Leaf(path, f"{kind} of {type(x[0]).__name__}", (len(x),), numbers))
            return
        self.leaves.append(Leaf(path, kind, (len(x),), None))
        for i, each in enumerate(islice(x, _ITEMS)):
            self.visit(each, f"{path}[{i}]")
        if len(x) > _ITEMS:
            rest = _Walk(catch=self.catch)
            rest.above = self.above
            for i, each in enumerate(islice(x, _ITEMS, None)):
                rest.visit(each, f"[{i}]")
            whole = digest(Form(tuple(rest.leaves), frozenset()))
            self.leaves.append(Leaf(f"{path}[{_ITEMS}…]", "rest", None, whole.hex()))

    def add_mapping(self, items: Iterable[tuple[Any, Any]], path: str, kind: str) -> None:
        """Add the keys and values of a mapping."""
        pairs = [(repr(key) if type(key) is str else _key(key), value) for key, value in items]
        self.leaves.append(Leaf(path, kind, (len(pairs),), tuple(key for key, _ in pairs)))
        for key, value in pairs:
            self.visit(value, f"{path}[{key}]")

    def add_set(self, x: AbstractSet[Any], path: str, kind: str) -> None:
        """Add the elements of a set in sorted order."""
        self.leaves.append(Leaf(path, kind, (len(x),), None))
        for key in sorted(map(_key, x)):
            self.leaves.append(Leaf(f"{path}{{{key}}}", "element", None, None))

    def add_array(self, x: NDArray[Any], path: str, kind: str) -> None:
        """Add an array."""
        letter = x.dtype.kind
        law = f"{kind} {x.dtype}"
        if isinstance(x, np.ma.MaskedArray):
            self.leaves.append(Leaf(path, law, x.shape, np.ma.getmaskarray(x).ravel().astype(np.float64)))
            self.add_array(
                np.asarray(np.where(np.ma.getmaskarray(x), np.zeros((), x.dtype), x.data)), f"{path}.data", "array"
            )
        elif x.dtype.names:
            self.leaves.append(Leaf(path, law, x.shape, None))
            for name in x.dtype.names:
                self.add_array(x[name], f"{path}.{name}", "field")
        elif letter in "biuf":
            long = x.dtype.itemsize > _BYTES
            self.leaves.append(Leaf(path, law, x.shape, x.ravel().astype(np.float64) if long else x.ravel().copy()))
        elif letter == "c":
            parts = np.stack([x.real.ravel(), x.imag.ravel()], axis=1).astype(np.float64)
            self.leaves.append(Leaf(path, law, x.shape, parts.ravel()))
        elif letter in "mM":
            self.leaves.append(Leaf(path, law, x.shape, x.ravel().astype(np.int64)))
        elif letter == "V" and hasattr(x.dtype.type, "__float__"):  # bfloat16 and its like
            self.leaves.append(Leaf(path, law, x.shape, x.ravel().astype(np.float64)))
        elif letter == "V":
            self.leaves.append(Leaf(path, law, x.shape, _hash(np.ascontiguousarray(x).tobytes())))
        else:
            self.leaves.append(Leaf(path, law if letter == "O" else f"{kind} of text", x.shape, None))
            self.add_items([plain(each) for each in x.ravel()], f"{path}.items", "items")

    def add_scalar(self, x: np.generic, path: str) -> None:
        """Add a NumPy scalar."""
        kind = f"numpy.{x.dtype}"
        if x.dtype.kind in "biuf":
            self.leaves.append(Leaf(path, kind, None, float(x) if x.dtype.kind == "f" else int(x)))
        elif isinstance(x, np.str_):
            self.add_text(str(x), path, "numpy.str_")
        elif isinstance(x, np.bytes_):
            self.add_bytes(bytes(x), path, "numpy.bytes_")
        else:
            self.add_array(np.asarray(x), path, kind)

    def add_bytes(self, x: bytes, path: str, kind: str) -> None:
        """Add bytes, as text if they are printable ASCII."""
        if x.isascii() and (not x or x.decode("ascii").isprintable()):
            self.add_text(x.decode("ascii"), path, kind)
        else:
            self.leaves.append(Leaf(path, kind, (len(x),), np.frombuffer(x, dtype=np.uint8)))

    def add_stream(self, x: Iterator[Any], path: str, kind: str) -> None:
        """Add the items of an iterator, read to its end."""
        found: list[Any] = []
        try:
            for each in islice(x, _LONGEST + 1):
                found.append(each)  # noqa: PERF402 - what was given before an exception is kept
        except MemoryError:
            raise
        except Exception as error:
            if not self.catch:
                raise
            self.add_items(found, path, kind)
            self.visit(Raised.of(error), f"{path}[then]")
            return
        if len(found) > _LONGEST:
            message = f"returned a {kind} of more than {_LONGEST:,} items; expected a finite output"
            raise CallError(f"{message}: cut a stream off after the time that others observe")
        self.add_items(found, path, kind)

    def add_object(self, x: Any, path: str, kind: str) -> None:
        """Add the fields of an object."""
        found = _fields(x)
        if found is None:
            self.opaque.add(kind)
            self.leaves.append(Leaf(path, kind, None, None))
        else:
            self.add_mapping(found, path, kind)

    def add_parts(self, path: str, kind: str, *parts: tuple[str, Any]) -> None:
        """Add a value with named parts."""
        self.leaves.append(Leaf(path, kind, None, None))
        for name, part in parts:
            self.visit(part, f"{path}.{name}")


def _fields(x: Any) -> list[tuple[str, Any]] | None:
    """Fields of an object in their order; None if it has no visible fields."""
    if isinstance(x, tuple):
        return list(zip(x._fields, x, strict=True))  # type: ignore[attr-defined] # named: plain ones are no objects
    if is_dataclass(x):
        return [(each.name, getattr(x, each.name, None)) for each in fields(x)]
    slots = [
        name
        for kind in reversed(type(x).__mro__)
        for name in (kind.__dict__.get("__slots__", ()) if not isinstance(kind.__dict__.get("__slots__"), str)
                     else (kind.__dict__["__slots__"],))
        if name not in ("__dict__", "__weakref__")
    ]  # fmt: skip
    found = [(name, getattr(x, name)) for name in slots if hasattr(x, name)]
    state = getattr(x, "__dict__", None)
    if state is None and not slots:
        return None
    return found + list((state or {}).items())


def _numbers(x: Sequence[Any]) -> NDArray[Any] | None:
    """Plain numbers of one type as an array, without rounding; None for other items."""
    if not x or type(x[0]) not in (float, int, bool) or len(set(map(type, x))) != 1:
        return None
    try:
        found = np.array(x)
    except OverflowError:
        return None
    return found if found.dtype in (np.float64, np.int64, np.bool_) else None


def _key(key: Any) -> str:
    """Unique text for a key of a mapping or an element of a set."""
    if isinstance(key, int | float | bool | bytes) and type(key) in (int, float, bool, bytes):
        return f"{type(key).__name__} {key!r}"
    if isinstance(key, tuple) and type(key) is tuple:
        return f"({', '.join(map(_key, key))})"
    if type(key) is str:
        return repr(key)
    leaves = canonical(key).leaves
    return "; ".join(f"{leaf.path} {leaf.kind} {exact(leaf.value).decode('utf-8', 'replace')}" for leaf in leaves)


def _take_out(number: str, numbers: list[float]) -> str:
    """Replace a number in a text by a placeholder and record its value; keep it if a float cannot represent it."""
    _, _, decimals = number.partition(".")
    if len(number) > _EXACT_DIGITS + _DECIMALS and not decimals:
        return number
    value = float(number)
    if "e" in number.lower():
        numbers.append(value)
        return "#e"
    if len(decimals) > _DECIMALS:
        numbers.append(value)
        return "#.…"
    if f"{value:.{len(decimals)}f}" != number:
        return number
    numbers.append(value)
    return f"#.{len(decimals)}" if decimals else "#"


def _hash(given: bytes) -> str:
    return hashlib.blake2b(given, digest_size=8).hexdigest()
