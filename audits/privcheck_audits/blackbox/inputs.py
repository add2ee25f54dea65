"""Input of the black box: calls a function under audit and converts its outputs into rows of numbers.

`probe` makes the first calls: the kind of the outputs, repeatability with a seed, and irregularities. Then `RunSource`
makes blocks of runs. Every run of a block takes D or D′ by a fair hidden bit; the runs on each neighbour are made in
one call with a separate generator: equal noise in both would hide, or feign, a difference.

Numbers of one shape become rows unchanged. Other outputs go through a schema (`blackbox.structure`) made from separate
runs. Very wide outputs are narrowed here, call by call (`blackbox.width`), so that memory stays bounded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.auditors import MechanismError
from privcheck_audits.blackbox.calls import Caller, as_numbers
from privcheck_audits.blackbox.canonical import CallError, Form, canonical, digest
from privcheck_audits.blackbox.structure import EXACT, Schema, Sketch, odd, sketch
from privcheck_audits.blackbox.width import Narrow
from privcheck_audits.engine.scores import draw_hidden_bits

_LAST: Final = 0xFFFFFFFF
_CALL_NUMBERS: Final = 1_000_000  # of the outputs of one call, where outputs are narrowed
NAMES: Final = ("D", "D′")

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]
Law = tuple[str, ...]  # what numbers are: kind, dtype and shape


class UnfitError(Exception):
    """Training runs differ in kind from the first calls, so the rows need other columns.

    Attributes:
        reason: "raised" in a call for many runs, so that every run needs a separate call; "odd" numbers, NaN or −0;
            or another "kind" of outputs than before.
    """

    def __init__(self, reason: Literal["raised", "odd", "kind"]) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """A function with one pair of neighbours.

    Attributes:
        caller: The function and how to call it.
        pair: D and D′.
        number: Index of the pair.
        seed: Seed of the audit, for messages.
        law: Kind, dtype and shape, if the outputs are numbers of one kind and shape; None if they go through a schema.
        numbers: Number of numbers per run; for other outputs, the approximate number of values.
        odd: Whether NaN and −0 get their own columns.
        split: Whether the outputs include integers beyond 2⁵³, whose last 32 bits get their own columns.
        schema: Schema of outputs of other kinds, once it is made.
        narrow: Narrowing of very wide outputs; None for others.
        apart: Whether each run is made in a separate call with a separate generator.
        learning: Whether runs that differ in kind from the first calls may still change the schema.
    """

    caller: Caller
    pair: tuple[Any, Any]
    number: int
    seed: int
    law: Law | None
    numbers: int = 1
    odd: bool = False
    split: bool = False
    schema: Schema | None = None
    narrow: Narrow | None = None
    apart: bool = False
    learning: bool = False

    @property
    def whole(self) -> int:
        """Number of columns of whole outputs."""
        if self.law is None:
            assert self.schema is not None
            return self.schema.width
        return self.numbers * (1 + self.split + self.odd)

    @property
    def width(self) -> int:
        """Number of columns of `runs`."""
        return self.whole if self.narrow is None else self.narrow.width

    def runs(self, rng: np.random.Generator, number: int, first: int) -> tuple[Array, Bits]:
        """Outputs (number, width) of fresh runs, and whether each was on D.

        Args:
            rng: The block's generator.
            number: Number of runs.
            first: Index of the first run, for messages.

        Raises:
            MechanismError: The function raised, or its return value is not the requested runs.
            UnfitError: While learning: the runs differ in kind from the first ones.
        """
        secret = draw_hidden_bits(rng, number)
        rows = np.zeros((number, self.width))
        for own, which, mine in self._calls(rng, secret):
            rows[mine] = self.call(own, which, mine.size, trials=first + mine)
        return rows, secret

    def call(
        self, rng: np.random.Generator, which: int, size: int, *, trials: NDArray[np.int64] | None = None
    ) -> Array:
        """Outputs (size, width) of one call of the function.

        Args:
            rng: The call's generator.
            which: 0 on D, 1 on D′.
            size: Number of runs.
            trials: (size,) indices of the runs, for messages.

        Raises:
            MechanismError: The function raised, or its return value is not the requested runs.
            UnfitError: While learning: the runs differ in kind from the first ones.
        """
        found = self.found(rng, which, size, trials)
        if self.law is None:
            assert self.schema is not None
            rows = self.schema.rows(forms_of(found))
        else:
            rows = self._numbers(found)
        return rows if self.narrow is None else self.narrow(rows)

    def sketch(self, rng: np.random.Generator, number: int, first: int) -> Sketch:
        """Sketch of the outputs of fresh runs; the arguments and errors are those of `runs`."""
        secret = draw_hidden_bits(rng, number)
        found: list[Form] = []
        order: list[NDArray[np.int64]] = []
        for own, which, mine in self._calls(rng, secret):
            if mine.size:
                found += forms_of(self.found(own, which, mine.size, first + mine))
                order.append(mine)
        return sketch(found, secret[np.concatenate(order)])

    def found(
        self, rng: np.random.Generator, which: int, size: int, trials: NDArray[np.int64] | None
    ) -> NDArray[Any] | list[Any]:
        """Runs of one call as returned by `Caller.runs`; arguments and errors are those of `call`."""
        where = Where(source=self, which=which, trials=trials)
        try:
            found: NDArray[Any] | list[Any] = self.caller.runs(self.pair[which], size, rng)
        except CallError as error:
            raise where.error(str(error)) from error
        except MemoryError as error:
            raise where.error("ran out of memory") from error
        except Exception as error:
            if self.learning and self.caller.catch and not self.caller.single:
                raise UnfitError("raised") from error
            raise where.error(_raised(error, self.caller)) from error
        return found

    def _numbers(self, found: NDArray[Any] | list[Any]) -> Array:
        """Rows of numbers; an output of a kind not seen while learning becomes ∞, “something else”."""
        given = as_numbers(found)
        if given is not None and _alike(given[1], self.law):
            return self._columns(given[0])
        if self.learning:
            raise UnfitError("kind")
        rows = np.full((len(found), self.whole), np.inf)
        for row, each in zip(rows, found, strict=True):
            own = as_numbers([each])
            if own is not None and own[0].size == self.numbers:
                row[:] = self._columns(own[0])
        return rows

    def _columns(self, given: NDArray[Any]) -> Array:
        flat = given.reshape(given.shape[0], -1)
        rows = flat.astype(np.float64)
        parts = [rows]
        if self.split:
            last = flat.astype(np.uint64) & np.uint64(_LAST) if flat.dtype.kind in "iu" else np.zeros(flat.shape)
            parts.append(last.astype(np.float64))  # of negative numbers in two's complement
        if self.odd:
            parts.append(odd(rows).astype(np.float64))
            rows[np.isnan(rows)] = 0.0
        elif flat.dtype.kind == "f" and (self.learning or np.isnan(rows.sum())) and odd(rows).any():
            if self.learning:
                raise UnfitError("odd")
            rows[np.isnan(rows)] = np.inf
        return np.concatenate(parts, axis=1) if len(parts) > 1 else rows

    def _calls(
        self, rng: np.random.Generator, secret: Bits
    ) -> Iterator[tuple[np.random.Generator, int, NDArray[np.int64]]]:
        """Yield the generator, the neighbour and the runs of each call of a block."""
        for which, own in enumerate(rng.spawn(2)):
            runs = np.flatnonzero(secret == (which == 0))
            step = 1 if self.apart else max(1, runs.size if self.narrow is None else _CALL_NUMBERS // self.whole)
            for start in range(0, runs.size, step):
                yield own.spawn(1)[0] if self.apart else own, which, runs[start : start + step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A call, described in error messages."""

    source: RunSource
    which: int
    trials: NDArray[np.int64] | None

    def error(self, problem: str) -> MechanismError:
        """Error for a problem with the call."""
        at = f"on {NAMES[self.which]} of pair {self.source.number}, seed {self.source.seed}"
        if self.trials is None:
            return MechanismError(f"the mechanism, when first tried {at}, {problem}", trial=0, seed=self.source.seed)
        first, last = int(self.trials[0]), int(self.trials[-1])
        call = f"in run {first}" if first == last else f"in the call for runs {first} to {last}"
        return MechanismError(f"the mechanism, {call} {at}, {problem}", trial=first, seed=self.source.seed)


def together(parts: Sequence[tuple[Array, Bits]]) -> tuple[Array, Bits]:
    """Join the runs of several blocks."""
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([secret for _, secret in parts])


def forms_of(found: Any) -> list[Form]:
    """Canonical form of each run."""
    return [each if type(each) is Form else canonical(each) for each in found]


def _alike(law: Law, wanted: Law | None) -> bool:
    return wanted is not None and law[0] == wanted[0] and law[2] == wanted[2] and (law[0] == "array" or law == wanted)


def _raised(error: Exception, caller: Caller) -> str:
    said = f"raised {type(error).__name__}: {error}"
    if not caller.catch or caller.single:
        return said
    return (
        f"{said} – in a call for many runs, none of which had raised while scores were learned, so the output of the "
        "failing run is unknown; audit the function with one_at_a_time=True"
    )


_FEW: Final = 5  # runs of the first call, which shows how wide outputs are
_PROBE: Final = 16  # runs of each other call that looks at the function
_PROBE_NUMBERS: Final = 4_000_000  # of the outputs of such a call
_TELLING: Final = 8  # equal runs of a call that cannot be chance
_SHOWN: Final = 300  # characters of what was raised
_MISTAKES: Final = ("TypeError", "NameError", "AttributeError", "ImportError", "ModuleNotFoundError", "SyntaxError")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """Findings of a few calls of a function.

    Attributes:
        source: Source of runs on the pair, without schema and not yet narrowed.
        notes: Notes for users.
        outputs: Digest of the outputs; empty if they do not repeat with the seed.
    """

    source: RunSource
    notes: tuple[str, ...]
    outputs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """First calls on one neighbour: a few runs, two calls with the same seed, and one with another seed."""

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
    """Call the function on the pair a few times and describe its outputs.

    The same seed must give the same output, or the audit cannot be repeated; another seed should give a different one.

    Raises:
        MechanismError: The return value is not the requested runs, the function raised (in every run, or although
            exceptions are not outputs), or the runs of one call share their randomness.
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
                "share their randomness; expected independent runs, each with its own draws: `rng.normal(size=size)`"
            )
    law = _common_law(*looks)
    told = _told(*looks)
    if told:
        notes["told"] = f"{told[0]} of an output distinguishes the neighbours of pair {number}: {told[1]}, {told[2]}"
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
    """Keys of outputs: bytes that are equal for equal outputs."""
    given = as_numbers(found)
    if given is not None:
        return [np.ascontiguousarray(row).tobytes() for row in given[0]]
    return [digest(form) for form in forms_of(found)]


def _size(form: Form) -> int:
    return sum(max(1, leaf.value.size) if isinstance(leaf.value, np.ndarray) else 1 for leaf in form.leaves)


def _notes(look: _Look, source: RunSource, which: int) -> dict[str, str]:
    """Notes on the first calls on one neighbour, by topic."""
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
            f"of {', '.join(opaque)} only the type is compared: objects without fields show only their address in "
            "memory; return their readable content"
        )
    return notes


def _said(form: Form) -> str | None:
    """Exception of a run with its message; None if the run returned."""
    first = form.leaves[0]
    if first.path or not first.kind.startswith("raised "):
        return None
    words = form.leaves[1].value
    return f"{first.kind.removeprefix('raised ')}: {words}"[:_SHOWN]


def _refuse_mistakes(looks: Sequence[_Look], source: RunSource) -> None:
    """Raise an error for a function that raises in every run: always the same exception, or only programming errors."""
    if any(look.laws - {None} for look in looks):
        return
    said = {_said(form) for look in looks for form in look.forms}
    kinds = {str(each).partition(":")[0] for each in said}
    if None in said or (len(said) > 1 and not kinds <= set(_MISTAKES)):
        return
    raise Where(source=source, which=0, trials=None).error(
        f"raised {next(iter(sorted(map(str, said))))} – as in every other of the first runs on both neighbours; an "
        "exception is an output like any other, but no run returned a value: correct the function, its arguments or "
        "its dataset"
    )


def _common_law(one: _Look, other: _Look) -> Law | None:
    """Common law of all outputs, if they are numbers of one kind and shape; else None."""
    laws = one.laws | other.laws
    if None in laws or len({(law[0], law[2], law[1] if law[0] != "array" else "") for law in laws if law}) != 1:
        return None
    if one.laws != other.laws and len(one.laws) == len(other.laws) == 1:
        return None  # the dtype tells
    return min(law for law in laws if law)


def _told(one: _Look, other: _Look) -> tuple[str, str, str] | None:
    """Property that distinguishes the neighbours in every run, with its values on D and on D′; else None."""
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
