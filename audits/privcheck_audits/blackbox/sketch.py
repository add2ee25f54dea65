"""What stands where in the outputs of some runs, counted under each neighbour: what a schema is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.forms import Form, Leaf

EXACT: Final = 2.0**53  # integers beyond have more digits than a float, and are rounded to this or more
_PLACES: Final = 20_000  # that are counted
_WORDS: Final = 4_096  # of a place

Bits = NDArray[np.bool_]
Tally = dict[str, list[int]]  # how often on D and on D′


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What stood at one place.

    Attributes:
        kinds: Types.
        shapes: Of arrays and containers.
        words: Texts, and the orders of keys.
        most: The largest number of values; 0 where there never was one.
        odd: Whether a value was NaN or −0.
        large: Whether an integer was beyond 2⁵³.
    """

    kinds: Tally
    shapes: Tally
    words: Tally
    most: int = 0
    odd: bool = False
    large: bool = False

    def __add__(self, other: Place) -> Place:
        return Place(
            kinds=_added(self.kinds, other.kinds),
            shapes=_added(self.shapes, other.shapes),
            words=_added(self.words, other.words),
            most=max(self.most, other.most),
            odd=self.odd or other.odd,
            large=self.large or other.large,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """What stood where.

    Attributes:
        runs: On D and on D′.
        places: By path, in the order in which they were met.
        structures: How often each structure came, by its digest.
    """

    runs: list[int]
    places: dict[str, Place] = field(default_factory=dict)
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
    """Returns what stood where in the outputs.

    Args:
        forms: Of each run.
        secret: (runs,) whether it was on D.
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
    made.places.update({path: Place(**place) for path, place in open_places.items()})
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
    """Returns a leaf's text, or the order of its keys; None of numbers and nothing."""
    return value if isinstance(value, str) else "\x1f".join(value) if isinstance(value, tuple) else None


def float_of(value: int) -> float:
    """Returns the integer as a float, infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def odd(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Returns 1 where a number is NaN, 2 where it is −0, else 0."""
    flags: NDArray[np.int64] = np.isnan(numbers) * 1 + ((numbers == 0) & np.signbit(numbers)) * 2
    return flags


def structure(form: Form) -> str:
    """Returns a digest of what stands where, without the values: places, types, shapes and the order of keys."""
    return _digest(
        tuple((leaf.path, leaf.kind, leaf.shape, leaf.value if type(leaf.value) is tuple else None)
              for leaf in form.leaves)
    )  # fmt: skip


@lru_cache(maxsize=4_096)
def _digest(parts: tuple[Any, ...]) -> str:
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
