"""The form of an output as a value: what stands where, when two are equal, and an exception as an output."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from privcheck_audits.blackbox.known_types import name_of

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]{4,}")


def without_addresses(text: str) -> str:
    """Returns a text without the places in memory that objects without a `repr` of their own tell."""
    return _ADDRESS.sub(" at …", text)


class Leaf(NamedTuple):
    """What stands at one place of an output.

    Attributes:
        path: The place: keys, fields and indices from the outside in.
        kind: The type, for arrays with the dtype.
        shape: Of an array, or the length of a container; None of single values.
        value: A number, a text, an array (numbers,), or the keys of a mapping in their order; None where there is none.
    """

    path: str
    kind: str
    shape: tuple[int, ...] | None
    value: Any


class Form(NamedTuple):
    """The canonical form of an output.

    Attributes:
        leaves: In the order of the output.
        opaque: Types of which nothing but the name could be seen.
    """

    leaves: tuple[Leaf, ...]
    opaque: frozenset[str]


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as the output of a run.

    Attributes:
        kind: Its type.
        message: What it says, without addresses.
    """

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Returns the exception as an output."""
        try:
            message = str(error)
        except Exception:  # noqa: BLE001 - an exception that cannot say what it is
            message = ""
        return cls(name_of(type(error)), without_addresses(message))


def digest(form: Form) -> bytes:
    """Returns 16 bytes that are equal for equal outputs; all NaN are equal, 0 and −0 are not."""
    parts = hashlib.blake2b(digest_size=16)
    for leaf in form.leaves:
        parts.update(repr((leaf.path, leaf.kind, leaf.shape)).encode())
        parts.update(exact(leaf.value))
    return parts.digest()


def exact(value: Any) -> bytes:
    """Returns a leaf's value as bytes, equal for equal values."""
    if isinstance(value, np.ndarray):
        clean = np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value
        return bytes(clean.dtype.str, "ascii") + np.ascontiguousarray(clean).tobytes()
    return repr(value).encode("utf-8", "surrogatepass")
