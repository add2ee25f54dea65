"""The door of the black box: calls a function under audit and turns whatever its runs put out into rows of numbers.

Numbers of one shape are rows as they are. Everything else goes through a schema (`blackbox.structure`) that is made
from runs of their own. Very wide outputs are narrowed here, call by call (`blackbox.narrowing`), so that memory does
not grow with them.

Every run of a block takes D or D′ by a fair hidden bit. The two neighbours' runs are made in one call each, with
generators of their own: equal noise in both would hide, or feign, a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.auditors import MechanismError
from privcheck_audits.blackbox.calls import Caller, as_numbers
from privcheck_audits.blackbox.canonical import canonical
from privcheck_audits.blackbox.forms import Form
from privcheck_audits.blackbox.known_types import CallError
from privcheck_audits.blackbox.narrowing import Narrow
from privcheck_audits.blackbox.sketch import Sketch, odd, sketch
from privcheck_audits.blackbox.structure import Schema
from privcheck_audits.engine.scores import draw_hidden_bits

_LAST: Final = 0xFFFFFFFF
_CALL_NUMBERS: Final = 1_000_000  # of the outputs of one call, where outputs are narrowed
NAMES: Final = ("D", "D′")

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]
Law = tuple[str, ...]  # what numbers are: kind, dtype and shape


class UnfitError(Exception):
    """Runs that scores are learned on are not what the first calls gave: rows need other columns.

    Attributes:
        reason: "raised" in a call for many runs, so that every run needs a call of its own; "odd" numbers, NaN or −0;
            or another "kind" of outputs than those before.
    """

    def __init__(self, reason: Literal["raised", "odd", "kind"]) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """A function with one pair of neighbours.

    Attributes:
        caller: The function, and how it is called.
        pair: D and D′.
        number: The pair's index.
        seed: The audit's, for messages.
        law: What the numbers of a run are, where all outputs are numbers of one kind and shape; None where they go
            through a schema.
        numbers: How many numbers such a run has; of other outputs, about how many values.
        odd: NaN and −0 among them are told by columns of their own.
        split: They are integers beyond 2⁵³: their last 32 bits are columns of their own.
        schema: Of all other outputs, once it was made.
        narrow: What very wide outputs become; None for all other ones.
        apart: Every run is made in a call of its own, with a generator of its own.
        learning: Runs that are not what the first calls gave may still change the schema.
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
        """Returns the number of columns of whole outputs."""
        if self.law is None:
            assert self.schema is not None
            return self.schema.width
        return self.numbers * (1 + self.split + self.odd)

    @property
    def width(self) -> int:
        """Returns the number of columns of `runs`."""
        return self.whole if self.narrow is None else self.narrow.width

    def runs(self, rng: np.random.Generator, number: int, first: int) -> tuple[Array, Bits]:
        """Returns the outputs (number, width) of fresh runs and whether each was on D.

        Args:
            rng: The block's generator.
            number: How many runs.
            first: The first run's number, for messages.

        Raises:
            MechanismError: The function raised, or what it returned are not the runs that were asked for.
            UnfitError: While learning: the runs are not what they were at first.
        """
        secret = draw_hidden_bits(rng, number)
        rows = np.zeros((number, self.width))
        for own, which, mine in self._calls(rng, secret):
            rows[mine] = self.call(own, which, mine.size, trials=first + mine)
        return rows, secret

    def call(
        self, rng: np.random.Generator, which: int, size: int, *, trials: NDArray[np.int64] | None = None
    ) -> Array:
        """Returns the outputs (size, width) of one call of the function.

        Args:
            rng: The call's generator.
            which: 0 on D, 1 on D′.
            size: How many runs.
            trials: (size,) their numbers, for messages.

        Raises:
            MechanismError: The function raised, or what it returned are not the runs that were asked for.
            UnfitError: While learning: the runs are not what they were at first.
        """
        found = self.found(rng, which, size, trials)
        if self.law is None:
            assert self.schema is not None
            rows = self.schema.rows(forms_of(found))
        else:
            rows = self._numbers(found)
        return rows if self.narrow is None else self.narrow(rows)

    def sketch(self, rng: np.random.Generator, number: int, first: int) -> Sketch:
        """Returns what stood where in the outputs of fresh runs; the arguments and errors are those of `runs`."""
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
        """Returns the runs of one call as `Caller.runs` gives them; arguments and errors are those of `call`."""
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
        """Returns numbers as they are; what is none, and was not seen while learning, is ∞, “something else”."""
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
        """Yields the generator, the neighbour and the runs of each call of a block."""
        for which, own in enumerate(rng.spawn(2)):
            runs = np.flatnonzero(secret == (which == 0))
            step = 1 if self.apart else max(1, runs.size if self.narrow is None else _CALL_NUMBERS // self.whole)
            for start in range(0, runs.size, step):
                yield own.spawn(1)[0] if self.apart else own, which, runs[start : start + step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A call, for messages."""

    source: RunSource
    which: int
    trials: NDArray[np.int64] | None

    def error(self, problem: str) -> MechanismError:
        """Returns what is raised."""
        at = f"on {NAMES[self.which]} of pair {self.source.number}, seed {self.source.seed}"
        if self.trials is None:
            return MechanismError(f"the mechanism, when first tried {at}, {problem}", trial=0, seed=self.source.seed)
        first, last = int(self.trials[0]), int(self.trials[-1])
        call = f"in run {first}" if first == last else f"in the call for runs {first} to {last}"
        return MechanismError(f"the mechanism, {call} {at}, {problem}", trial=first, seed=self.source.seed)


def together(parts: Sequence[tuple[Array, Bits]]) -> tuple[Array, Bits]:
    """Returns the runs of several blocks as one."""
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([secret for _, secret in parts])


def forms_of(found: Any) -> list[Form]:
    """Returns the canonical form of each run."""
    return [each if type(each) is Form else canonical(each) for each in found]


def _alike(law: Law, wanted: Law | None) -> bool:
    return wanted is not None and law[0] == wanted[0] and law[2] == wanted[2] and (law[0] == "array" or law == wanted)


def _raised(error: Exception, caller: Caller) -> str:
    said = f"raised {type(error).__name__}: {error}"
    if not caller.catch or caller.single:
        return said
    return (
        f"{said} – in a call for many runs, none of which had raised while scores were learned, so that it cannot be "
        "told whose output it is; audit the function with one_at_a_time=True"
    )
