"""Rows of numbers of one width from outputs of any kind, by a schema that was made from separate runs.

A row is a function of the output alone, given the schema: post-processing, so that a claim that covers the output
covers the row, whatever the schema is. Equal outputs have equal rows. Different outputs have different rows: parts
without their own columns go into one column as a digest of 53 bits, which is 0 if there are none. A schema is made from
a `Sketch`: counts of types, shapes and texts at each path under each neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.canonical import Form, Leaf, exact

EXACT: Final = 2.0**53  # integers beyond have more digits than a float, and are rounded to this or more
_PLACES: Final = 20_000  # that are counted
_WORDS: Final = 4_096  # of a place

Bits = NDArray[np.bool_]
Tally = dict[str, list[int]]  # how often on D and on D′


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlace:
    """Statistics of one path.

    Attributes:
        kinds: Counts of types.
        shapes: Counts of the shapes of arrays and containers.
        words: Counts of texts, and of the orders of keys.
        most: Largest number of values; 0 if there never was one.
        odd: Whether a value was NaN or −0.
        large: Whether an integer was beyond 2⁵³.
    """

    kinds: Tally
    shapes: Tally
    words: Tally
    most: int = 0
    odd: bool = False
    large: bool = False

    def __add__(self, other: OutputPlace) -> OutputPlace:
        return OutputPlace(
            kinds=_added(self.kinds, other.kinds),
            shapes=_added(self.shapes, other.shapes),
            words=_added(self.words, other.words),
            most=max(self.most, other.most),
            odd=self.odd or other.odd,
            large=self.large or other.large,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Statistics of all paths of the outputs.

    Attributes:
        runs: Number of runs on D and on D′.
        places: Statistics by path, in the order in which the paths were met.
        structures: Counts of structures, by digest.
    """

    runs: list[int]
    places: dict[str, OutputPlace] = field(default_factory=dict)
    structures: Tally = field(default_factory=dict)

    def __add__(self, other: Sketch) -> Sketch:
        places = dict(self.places)
        for path, place in other.places.items():
            if path in places:
                places[path] = places[path] + place
            elif len(places) < _PLACES:
                places[path] = place
        return Sketch(
            runs=[a + b for a, b in zip(self.runs, other.runs, strict=True)],
            places=places,
            structures=_added(self.structures, other.structures),
        )


def sketch(forms: Sequence[Form], secret: Bits) -> Sketch:
    """Sketch the outputs of some runs.

    Args:
        forms: Form of each run's output.
        secret: (runs,) whether each run was on D.
    """
    made = Sketch(runs=[int(secret.sum()), int((~secret).sum())])
    open_places: dict[str, dict[str, Any]] = {}
    for form, on_first in zip(forms, secret, strict=True):
        arm = 0 if on_first else 1
        _count(made.structures, structure(form), arm)
        for leaf in form.leaves:
            place = open_places.get(leaf.path)
            if place is None:
                if len(open_places) == _PLACES:
                    continue
                place = {"kinds": {}, "shapes": {}, "words": {}, "most": 0, "odd": False, "large": False}
                open_places[leaf.path] = place
            _note(place, leaf, arm)
    made.places.update({path: OutputPlace(**place) for path, place in open_places.items()})
    return made


def _note(place: dict[str, Any], leaf: Leaf, arm: int) -> None:
    _count(place["kinds"], leaf.kind, arm)
    if leaf.shape is not None:
        _count(place["shapes"], str(leaf.shape), arm)
    value = leaf.value
    word = word_of(value)
    if word is not None:
        if word in place["words"] or len(place["words"]) < _WORDS:
            _count(place["words"], word, arm)
    elif value is not None:
        numbers = np.atleast_1d(value) if not isinstance(value, int) else np.array([float_of(value)])
        place["most"] = max(place["most"], numbers.size)
        if numbers.dtype.kind == "f":
            place["odd"] = place["odd"] or bool(odd(numbers).any())
        if numbers.size:
            whole = isinstance(value, int) or numbers.dtype.kind in "iu"
            place["large"] = place["large"] or (whole and float(np.abs(numbers.astype(np.float64)).max()) >= EXACT)


def word_of(value: Any) -> str | None:
    """Text of a leaf's value, or the order of its keys; None for numbers and empty leaves."""
    return value if isinstance(value, str) else "\x1f".join(value) if isinstance(value, tuple) else None


def float_of(value: int) -> float:
    """Integer as a float, infinite if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def odd(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Flags of numbers: 1 for NaN, 2 for −0, else 0."""
    flags: NDArray[np.int64] = np.isnan(numbers) * 1 + ((numbers == 0) & np.signbit(numbers)) * 2
    return flags


def structure(form: Form) -> str:
    """Digest of an output without its values: paths, types, shapes and the order of keys."""
    return _digest_form(
        tuple((leaf.path, leaf.kind, leaf.shape, leaf.value if type(leaf.value) is tuple else None)
              for leaf in form.leaves)
    )  # fmt: skip


@lru_cache(maxsize=4_096)
def _digest_form(parts: tuple[Any, ...]) -> str:
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _count(tally: Tally, name: str, arm: int) -> None:
    tally.setdefault(name, [0, 0])[arm] += 1


def _added(one: Tally, other: Tally) -> Tally:
    found = {name: list(counts) for name, counts in one.items()}
    for name, (first, second) in other.items():
        counts = found.setdefault(name, [0, 0])
        counts[0] += first
        counts[1] += second
    return found


_WIDEST: Final = 20_000  # columns
_CODES: Final = 256  # words of a place that have a code; others are told apart by the digest
_STRUCTURES: Final = 64
_SELDOM: Final = 2  # times that a structure has to come to have a code
_ORDERED: Final = 64  # keys whose place among the others is a column
_LAST_BITS: Final = 0xFFFFFFFF
_SPLIT: Final = 1 << 84  # below, a float and the last 32 bits are the whole integer
_DIGEST_BITS: Final = 53

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Columns of one path; −1 for missing columns.

    Attributes:
        kinds: Codes of types, by name; 0 means that the path is absent.
        kind: Column of the type.
        shapes: Codes of shapes.
        shape: Column of the shape; the next column is the number of values.
        words: Codes of texts, or of orders of keys.
        word: Column of the text.
        keys: Keys whose position among the others has a column.
        order: First column of those positions.
        numbers: Number of values that have columns.
        value: First column of values.
        oddity: First column of the flags for NaN and −0.
        last: First column of the last 32 bits.
    """

    kinds: dict[str, int]
    kind: int = -1
    shapes: dict[str, int]
    shape: int = -1
    words: dict[str, int]
    word: int = -1
    keys: dict[str, int]
    order: int = -1
    numbers: int = 0
    value: int = -1
    oddity: int = -1
    last: int = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schema:
    """Map from outputs to rows; made by `make_schema`.

    Attributes:
        slots: Columns by path.
        structures: Codes of the most frequent structures; 0 is any other.
        width: Number of columns. The first is the structure's code, the second the digest of the parts without columns.
    """

    slots: dict[str, Slot]
    structures: dict[str, int]
    width: int

    def rows(self, forms: Sequence[Form]) -> Array:
        """Rows (runs, width) of outputs, also of outputs unlike those of the schema; no NaN in them."""
        found = np.zeros((len(forms), self.width))
        for row, form in zip(found, forms, strict=True):
            left: list[bytes] = []
            row[0] = self.structures.get(structure(form), 0)
            for leaf in form.leaves:
                slot = self.slots.get(leaf.path)
                if slot is None:
                    left.append(repr(leaf[:3]).encode("utf-8", "surrogatepass") + exact(leaf.value))
                else:
                    _fill(row, slot, leaf, left)
            if left:
                row[1] = _digest(left)
        return found


def make_schema(found: Sketch) -> Schema:
    """Make the schema for outputs like those of a sketch; the most distinguishing paths come first."""
    runs = sum(found.runs)
    width = 2
    slots: dict[str, Slot] = {}
    for path in _by_tale(found):
        slot, after = _slot(found.places[path], runs, width)
        if after > _WIDEST:
            room = _WIDEST - width
            if found.places[path].most <= room or room < _CODES:
                continue  # it is in the digest
            slot, after = _slot(found.places[path], runs, width, most=(room - _CODES) // 3)
        slots[path] = slot
        width = after
    often = {name: counts for name, counts in found.structures.items() if sum(counts) >= _SELDOM}
    return Schema(slots=slots, structures=_codes(often, _STRUCTURES), width=width)


def _by_tale(found: Sketch) -> list[str]:
    """Paths in the order in which they were met; if there are too many, the most distinguishing ones first."""
    paths = list(found.places)
    if sum(1 + place.most for place in found.places.values()) <= _WIDEST // 4:
        return paths
    share = {}
    for path, place in found.places.items():
        first = sum(a for a, _ in place.kinds.values()) / max(1, found.runs[0])
        other = sum(b for _, b in place.kinds.values()) / max(1, found.runs[1])
        share[path] = abs(first - other) + 1e-3 * (first + other)
    return sorted(paths, key=lambda path: -share[path])


def _slot(place: OutputPlace, runs: int, at: int, *, most: int | None = None) -> tuple[Slot, int]:
    """Slot that begins at a column, and the next free column."""
    columns: dict[str, Any] = {}

    def take(name: str, number: int) -> None:
        nonlocal at
        if number:
            columns[name] = at
            at += number

    seen = sum(map(sum, place.kinds.values()))
    numbers = place.most if most is None else min(most, place.most)
    keys = _keys(place.words) if len(place.words) > 1 and len(place.shapes) else {}
    take("kind", len(place.kinds) > 1 or seen < runs)
    take("shape", 2 * (len(place.shapes) > 1))
    take("word", len(place.words) > 1)
    take("order", len(keys))
    take("value", numbers)
    take("oddity", numbers * place.odd)
    take("last", numbers * place.large)
    slot = Slot(
        kinds=_codes(place.kinds, _CODES),
        shapes=_codes(place.shapes, _CODES),
        words=_codes(place.words, _CODES),
        keys=keys,
        numbers=numbers,
        **columns,
    )
    return slot, at


def _keys(words: Tally) -> dict[str, int]:
    """Keys of a mapping that get a column for their position; empty if their order never changes."""
    orders = [word.split("\x1f") for word in words]
    place: dict[str, int] = {}
    for order in sorted(orders, key=len, reverse=True):
        for key in order:
            place.setdefault(key, len(place))
    if all(all(place[a] < place[b] for a, b in pairwise(order)) for order in orders):
        return {}
    return {key: i for i, key in enumerate(list(place)[:_ORDERED])}


def _codes(tally: Tally, most: int) -> dict[str, int]:
    """Codes from 1 of the most frequent names, in the order of their likelihood ratio."""
    often = sorted(tally, key=lambda name: (-sum(tally[name]), name))[:most]
    ordered = sorted(often, key=lambda name: (math.log((tally[name][0] + 1) / (tally[name][1] + 1)), name))
    return {name: code for code, name in enumerate(ordered, 1)}


def _fill(row: Array, slot: Slot, leaf: Leaf, left: list[bytes]) -> None:
    path, kind, shape, value = leaf
    code = slot.kinds.get(kind)
    if slot.kind >= 0:
        row[slot.kind] = code or len(slot.kinds) + 1
    if code is None:
        left.append(f"{path} is {kind}".encode("utf-8", "surrogatepass"))
    if shape is not None:
        told = slot.shapes.get(str(shape))
        if slot.shape >= 0:
            row[slot.shape] = told or len(slot.shapes) + 1
            row[slot.shape + 1] = math.prod(shape)
        if told is None and not (slot.shape >= 0 and len(shape) == 1):
            left.append(f"{path} has {shape}".encode("utf-8", "surrogatepass"))
    if value is None:
        return
    word = word_of(value)
    if word is not None:
        _fill_word(row, slot, word, left, path)
    elif isinstance(value, np.ndarray):
        _fill_numbers(row, slot, value, left, path)
    elif value is not None:
        _fill_number(row, slot, value, left, path)


def _fill_word(row: Array, slot: Slot, word: str, left: list[bytes], path: str) -> None:
    code = slot.words.get(word)
    if slot.word >= 0:
        row[slot.word] = code or len(slot.words) + 1
    if code is None:
        left.append(f"{path} says {word}".encode("utf-8", "surrogatepass"))
    if slot.order >= 0:
        for i, key in enumerate(word.split("\x1f"), 1):
            column = slot.keys.get(key)
            if column is not None:
                row[slot.order + column] = i


def _fill_number(row: Array, slot: Slot, value: float, left: list[bytes], path: str) -> None:
    if slot.value < 0:
        left.append(f"{path} = {value!r}".encode())
        return
    if isinstance(value, int):
        row[slot.value] = float_of(value)
        if not -EXACT < value < EXACT:
            if slot.last >= 0:
                row[slot.last] = value & _LAST_BITS
            if slot.last < 0 or not -_SPLIT < value < _SPLIT:
                left.append(f"{path} = {hex(value)}".encode())
    elif math.isnan(value) or (value == 0 and math.copysign(1, value) < 0):
        flag = 1 if math.isnan(value) else 2
        if slot.oddity >= 0:
            row[slot.oddity] = flag
        else:
            left.append(f"{path} odd {flag}".encode())
    else:
        row[slot.value] = value


def _fill_numbers(row: Array, slot: Slot, value: NDArray[Any], left: list[bytes], path: str) -> None:
    size = min(value.size, slot.numbers)
    if value.size > size:
        left.append(f"{path} goes on ".encode("utf-8", "surrogatepass") + exact(value[size:]))
    if size == 0:
        return
    part = value[:size]
    numbers = part.astype(np.float64)
    if part.dtype.kind == "f":
        flags = odd(part)
        if flags.any():
            numbers[flags > 0] = 0.0
            if slot.oddity >= 0:
                row[slot.oddity : slot.oddity + size] = flags
            else:
                left.append(f"{path} odd ".encode("utf-8", "surrogatepass") + flags.tobytes())
    elif part.dtype.kind in "iu" and part.dtype.itemsize == 8 and float(np.abs(numbers).max()) >= EXACT:
        if slot.last >= 0:
            row[slot.last : slot.last + size] = part.astype(np.uint64) & np.uint64(_LAST_BITS)
        else:
            left.append(f"{path} = ".encode("utf-8", "surrogatepass") + part.tobytes())
    row[slot.value : slot.value + size] = numbers


def _digest(left: list[bytes]) -> float:
    """Digest as a whole number from 1 to 2⁵³."""
    found = blake2b(digest_size=8)
    for each in left:
        found.update(len(each).to_bytes(8, "big") + each)
    return float((int.from_bytes(found.digest(), "big") >> (64 - _DIGEST_BITS)) + 1)
