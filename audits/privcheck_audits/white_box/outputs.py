"""Everything that an agent hands back, field by field as bytes, so that two runs are compared to the last bit.

A field is compared because it is there: an object's fields are walked as the object has them, a subclass's and those of
no declaration too, and a field that is added is compared from then on. A value of a type that cannot be read exactly
counts as different from everything, also from itself, so that it is never taken for private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

Read = Mapping[str, bytes | None]  # what stands at each place; None where it cannot be read
_EXACT: Final = (bool, int, float, complex, str, bytes, type(None))  # whose `repr` says them bit for bit
_DEEPEST: Final = 20  # containers in each other; one that contains itself is deeper


def read_outputs(value: object) -> Read:
    """Read what stands at each place of an output.

    Args:
        value: Dataclasses, mappings, lists, tuples, arrays and plain values, in each other.

    Returns:
        By place, such as `diagnostics['visits']`, type and content; the order of keys and the sign of zero count.
    """
    return dict(_walk(value, "", 0))


def find_differences(one: Read, other: Read) -> frozenset[str]:
    """Find the places at which two outputs differ, or cannot be read."""
    return frozenset(
        place for place in one.keys() | other.keys() if one.get(place) is None or one.get(place) != other.get(place)
    )


def list_fields(read: Read) -> tuple[str, ...]:
    """List the fields that were read, each once, without what stands inside of them."""
    names = (place.partition("[")[0].partition(".")[0] for place in read)
    return tuple(dict.fromkeys(name for name in names if name))


def _walk(value: Any, place: str, depth: int) -> Iterator[tuple[str, bytes | None]]:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    if depth > _DEEPEST:
        yield place, None
    elif kind in _EXACT:
        yield place, name + b" " + repr(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        said = f" {array.dtype.str} {array.shape} ".encode()
        yield place, None if array.dtype.hasobject else name + said + array.tobytes()
    elif isinstance(value, Mapping):
        yield place, name + repr(list(value)).encode("utf-8", "surrogatepass")
        for key in value:
            inside = f"{place}[{key!r}]" if place or type(key) is not str else key
            yield from _walk(value[key], inside, depth + 1)
    elif isinstance(value, tuple | list):
        yield place, name + b" %d" % len(value)
        for index, item in enumerate(value):
            yield from _walk(item, f"{place}[{index}]", depth + 1)
    elif is_dataclass(value):
        yield place, name
        for field in _attributes(value):
            yield from _walk(getattr(value, field, None), f"{place}.{field}" if place else field, depth + 1)
    else:
        yield place, None


def _attributes(value: Any) -> list[str]:
    """List a dataclass's fields, and what was put beside them."""
    slots = (slot for kind in type(value).__mro__ for slot in _slots(kind))
    declared = (field.name for field in fields(value))
    return list(dict.fromkeys((*declared, *slots, *getattr(value, "__dict__", ()))))


def _slots(kind: type) -> tuple[str, ...]:
    named = kind.__dict__.get("__slots__", ())
    return tuple(slot for slot in ((named,) if isinstance(named, str) else named) if not slot.startswith("__"))
