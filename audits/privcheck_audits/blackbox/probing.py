"""The first calls of a function under audit: what its outputs are, whether a seed fixes them, what is odd about it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.calls import Caller, as_numbers
from privcheck_audits.blackbox.forms import Form, digest
from privcheck_audits.blackbox.inputs import NAMES, Law, RunSource, UnfitError, Where, forms_of
from privcheck_audits.blackbox.sketch import EXACT, odd

_FEW: Final = 5  # runs of the first call, which shows how wide outputs are
_PROBE: Final = 16  # runs of each other call that looks at the function
_PROBE_NUMBERS: Final = 4_000_000  # of the outputs of such a call
_TELLING: Final = 8  # equal runs of a call that cannot be chance
_SHOWN: Final = 300  # characters of what was raised
_MISTAKES: Final = ("TypeError", "NameError", "AttributeError", "ImportError", "ModuleNotFoundError", "SyntaxError")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a few calls show of a function.

    Attributes:
        source: Of runs on the pair, without schema and not narrowed yet.
        notes: What users should know.
        outputs: A digest of what it returned; empty where a seed does not fix that.
    """

    source: RunSource
    notes: tuple[str, ...]
    outputs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The first calls on one neighbour: a few runs, twice the same seed, and another seed."""

    runs: int
    found: tuple[Any, Any, Any, Any]
    keys: tuple[list[bytes], ...]

    @property
    def laws(self) -> set[Law | None]:
        return {None if given is None else given[1] for given in map(as_numbers, self.found)}

    @property
    def forms(self) -> list[Form]:
        return [form for part in self.found for form in forms_of(part)]

    @property
    def repeats(self) -> bool:
        return self.keys[1] == self.keys[2]

    @property
    def is_same(self) -> bool:
        return self.keys[1] == self.keys[3]

    def is_constant(self, part: int) -> bool:
        return len(set(self.keys[part])) == 1


def probe(caller: Caller, pair: tuple[Any, Any], *, number: int, seed: int) -> Probed:
    """Returns what a few calls show of the function on the pair.

    The same seed must give the same output, or the audit cannot be repeated; another seed should give another.

    Raises:
        MechanismError: What the function returned are not the runs that were asked for, it raised (whatever the run,
            or where exceptions are no outputs), or its runs of one call share their randomness.
    """
    source = RunSource(caller=caller, pair=pair, number=number, seed=seed, law=None, learning=True)
    try:
        looks = [_look(source, which) for which in (0, 1)]
    except UnfitError:
        source = replace(source, caller=replace(caller, single=True))
        looks = [_look(source, which) for which in (0, 1)]
    _refuse_mistakes(looks, source)
    notes: dict[str, str] = {}
    hashed = hashlib.sha256()
    for which, look in enumerate(looks):
        hashed.update(b"".join(look.keys[1]))
        notes.update(_notes(look, source, which))
        if look.runs >= _TELLING and not look.is_same and look.is_constant(1) and look.is_constant(3):
            raise Where(source=source, which=which, trials=None).error(
                f"returned {look.runs} equal rows, and with another seed {look.runs} other ones: the runs of a call "
                "share their randomness; expected independent runs, each with draws of its own: `rng.normal(size=size)`"
            )
    law = _common_law(*looks)
    told = _told(*looks)
    if told:
        notes["told"] = f"{told[0]} of an output tells the neighbours of pair {number} apart: {told[1]}, {told[2]}"
    arrays = [as_numbers(part) for look in looks for part in look.found] if law is not None else []
    numbers = [given[0] for given in arrays if given is not None]
    source = replace(
        source,
        law=law,
        numbers=numbers[0][0].size if law is not None else max(map(_size, looks[0].forms + looks[1].forms)),
        split=any(map(_is_large, numbers)),
        odd=any(part.dtype.kind == "f" and bool(odd(part).any()) for part in numbers),
    )
    return Probed(source=source, notes=tuple(notes.values()), outputs="" if "state" in notes else hashed.hexdigest())


def _look(source: RunSource, which: int) -> _Look:
    def call(size: int, word: int) -> Any:
        return source.found(np.random.default_rng((source.seed, source.number, word)), which, size, None)

    few = call(_FEW, 0)
    size = max(1, len(few[0].leaves) if type(few[0]) is Form else np.size(few[0]))
    runs = max(2, min(_PROBE, _PROBE_NUMBERS // size))
    found = (few, call(runs, 1), call(runs, 1), call(runs, 2))
    return _Look(runs=runs, found=found, keys=tuple(map(_keys, found)))


def _keys(found: Any) -> list[bytes]:
    """Returns bytes that are equal for equal outputs."""
    given = as_numbers(found)
    if given is not None:
        return [np.ascontiguousarray(row).tobytes() for row in given[0]]
    return [digest(form) for form in forms_of(found)]


def _size(form: Form) -> int:
    return sum(max(1, leaf.value.size) if isinstance(leaf.value, np.ndarray) else 1 for leaf in form.leaves)


def _notes(look: _Look, source: RunSource, which: int) -> dict[str, str]:
    """Returns what the first calls on one neighbour show, by what it is about."""
    notes: dict[str, str] = {}
    at = f"on {NAMES[which]} of pair {source.number}"
    own = "" if source.caller.seeded else "it takes no `rng`, so that "
    if not look.repeats:
        notes["state"] = (
            f"not repeatable: {at} {own}two calls with the same seed ({source.seed}) gave different outputs; the "
            "mechanism keeps state between calls, changes its dataset or has randomness of its own. Runs that depend "
            "on each other void the confidence: take all randomness from `rng`"
        )
    elif look.is_same and not look.is_constant(1):
        notes["unused"] = (
            f"`rng` is not used: {at} two seeds gave the same {look.runs} outputs, though not constant ones"
        )
    elif look.is_same:
        notes["constant"] = f"not random: every output of {3 * look.runs} runs {at} was the same"
    if look.laws - {None}:
        return notes
    raised = [_said(form) for form in look.forms]
    if None not in raised:
        notes["raised"] = f"every run {at} raised, the first {raised[0]}"
    opaque = sorted({kind for form in look.forms for kind in form.opaque})
    if opaque:
        notes["opaque"] = (
            f"of {', '.join(opaque)} only the type is compared: objects without fields tell nothing but their address "
            "in memory; return what others can read of them"
        )
    return notes


def _said(form: Form) -> str | None:
    """Returns what a run raised; None where it returned something."""
    first = form.leaves[0]
    if first.path or not first.kind.startswith("raised "):
        return None
    words = form.leaves[1].value
    return f"{first.kind.removeprefix('raised ')}: {words}"[:_SHOWN]


def _refuse_mistakes(looks: Sequence[_Look], source: RunSource) -> None:
    """Refuses what raises whatever the run: always the same, or what only a mistake in the program raises."""
    if any(look.laws - {None} for look in looks):
        return
    said = {_said(form) for look in looks for form in look.forms}
    kinds = {str(each).partition(":")[0] for each in said}
    if None in said or (len(said) > 1 and not kinds <= set(_MISTAKES)):
        return
    raise Where(source=source, which=0, trials=None).error(
        f"raised {next(iter(sorted(map(str, said))))} – as in every other of the first runs on both neighbours; an "
        "exception is an output like any other, but nothing was put out here: correct the function, its arguments or "
        "its dataset"
    )


def _common_law(one: _Look, other: _Look) -> Law | None:
    """Returns what all outputs are, if they are numbers of one kind and shape."""
    laws = one.laws | other.laws
    if None in laws or len({(law[0], law[2], law[1] if law[0] != "array" else "") for law in laws if law}) != 1:
        return None
    if one.laws != other.laws and len(one.laws) == len(other.laws) == 1:
        return None  # the dtype tells
    return min(law for law in laws if law)


def _told(one: _Look, other: _Look) -> tuple[str, str, str] | None:
    """Returns what tells the neighbours apart in every run, and what it is on D and on D′."""
    if None not in one.laws | other.laws and len(one.laws) == len(other.laws) == 1 and one.laws != other.laws:
        (first,), (second,) = one.laws, other.laws
        assert first is not None
        assert second is not None
        shapes = first[2] != second[2]
        return ("the shape", first[2], second[2]) if shapes else ("the type", first[1], second[1])
    kinds = [{form.leaves[0].kind for form in look.forms[: _FEW + 1]} for look in (one, other)]
    if len(kinds[0]) == len(kinds[1]) == 1 and kinds[0] != kinds[1]:
        return "the type", kinds[0].pop(), kinds[1].pop()
    return None


def _is_large(rows: NDArray[Any]) -> bool:
    whole = rows.dtype.kind in "iu" and rows.dtype.itemsize == 8
    return whole and float(np.abs(rows.astype(np.float64)).max()) >= EXACT
