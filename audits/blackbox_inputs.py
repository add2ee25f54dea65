"""The door of the black box: calls a function under audit and refuses what is not an array of numbers.

Every run of a block takes D or D′ by a fair hidden bit. The two neighbours' runs are made in one call each, with
generators of their own: equal noise in both would hide, or feign, a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from audits.scores import hidden_bits
from privcheck.auditors import Mechanism, MechanismError

_PROBE: Final = 16  # runs of each call that looks at the function
_NAMES: Final = ("D", "D′")

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A function with one pair of neighbours.

    Attributes:
        mechanism: The function.
        pair: D and D′.
        number: The pair's index.
        seed: The audit's, for messages.
        shapes: Of one run's output on D and on D′.
    """

    mechanism: Mechanism
    pair: tuple[Any, Any]
    number: int
    seed: int
    shapes: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def width(self) -> int:
        """Returns the number of columns of `runs`."""
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in self.shapes]
        return max(sizes) + (self.shapes[0] != self.shapes[1])

    def runs(self, rng: np.random.Generator, number: int, first: int) -> tuple[Array, Bits]:
        """Returns the outputs (number, width) of fresh runs and whether each was on D.

        Where outputs on D and D′ have different shapes, the shape tells them apart: it is the last column, and shorter
        outputs are filled with zeros.

        Args:
            rng: The block's generator.
            number: How many runs.
            first: The first run's number, for messages.

        Raises:
            MechanismError: The function raised or returned something else than rows of numbers.
        """
        secret = hidden_bits(rng, number)
        rows = np.zeros((number, self.width))
        for which, own in enumerate(rng.spawn(2)):
            mine = np.flatnonzero(secret == (which == 0))
            if mine.size == 0:
                continue
            where = _Where(source=self, which=which, trials=first + mine)
            found = _called(self.mechanism, self.pair[which], mine.size, own, where=where)
            if found.shape[1:] != self.shapes[which]:
                raise where.error(
                    f"returned outputs of shape {found.shape[1:]} where it returned {self.shapes[which]} before; "
                    "expected outputs of one size: pad them to the longest"
                )
            flat = found.reshape(mine.size, -1)
            rows[mine, : flat.shape[1]] = flat
            if self.shapes[0] != self.shapes[1]:
                rows[mine, -1] = which
        return rows, secret


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    source: Source
    which: int
    trials: NDArray[np.int64] | None

    def error(self, problem: str, *, row: int | None = None) -> MechanismError:
        at = f"on {_NAMES[self.which]} of pair {self.source.number}, seed {self.source.seed}"
        if self.trials is None:
            return MechanismError(f"the mechanism, when first tried {at}, {problem}", trial=0, seed=self.source.seed)
        trial = int(self.trials[row if row is not None else 0])
        which = f"in run {trial}" if row is not None else f"in the call for runs {trial} to {int(self.trials[-1])}"
        return MechanismError(f"the mechanism, {which} {at}, {problem}", trial=trial, seed=self.source.seed)


def probe(mechanism: Mechanism, pair: tuple[Any, Any], *, number: int, seed: int) -> tuple[Source, tuple[str, ...]]:
    """Returns the source of runs on the pair, with what a few calls show of the function.

    The same seed must give the same output, or the audit cannot be repeated; another seed should give another.

    Raises:
        MechanismError: The function raised or returned something else than rows of numbers.
    """
    source = Source(mechanism=mechanism, pair=pair, number=number, seed=seed, shapes=((), ()))
    shapes: list[tuple[int, ...]] = []
    notes: dict[str, str] = {}
    for which in (0, 1):
        where = _Where(source=source, which=which, trials=None)
        once, again, other = (
            _called(mechanism, pair[which], _PROBE, np.random.default_rng((seed, number, word)), where=where)
            for word in (1, 1, 2)
        )
        if not once.shape == again.shape == other.shape:
            raise where.error(
                f"returned outputs of shapes {once.shape[1:]}, {again.shape[1:]} and {other.shape[1:]}; expected "
                "outputs of one size: pad them to the longest"
            )
        shapes.append(once.shape[1:])
        at = f"on {_NAMES[which]} of pair {number}"
        if not np.array_equal(once, again):
            notes["state"] = (
                f"not repeatable: {at} two calls with the same seed ({seed}) gave different outputs; the mechanism "
                "keeps state between calls or has randomness of its own. Runs that depend on each other void the "
                "confidence: take all randomness from `rng`"
            )
        elif np.array_equal(once, other) and not _constant(once):
            notes["unused"] = (
                f"`rng` is not used: {at} two seeds gave the same {_PROBE} outputs, though not constant ones"
            )
        elif np.array_equal(once, other):
            notes["constant"] = f"not random: every output of {3 * _PROBE} runs {at} was the same"
    if shapes[0] != shapes[1]:
        notes["shape"] = f"the shape of an output tells the neighbours of pair {number} apart: {shapes[0]}, {shapes[1]}"
    made = Source(mechanism=mechanism, pair=pair, number=number, seed=seed, shapes=(shapes[0], shapes[1]))
    return made, tuple(notes.values())


def together(parts: Sequence[tuple[Array, Bits]]) -> tuple[Array, Bits]:
    """Returns the runs of several blocks as one."""
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([secret for _, secret in parts])


def _constant(rows: Array) -> bool:
    return bool((rows == rows[:1]).all())


def _called(mechanism: Mechanism, dataset: Any, size: int, rng: np.random.Generator, *, where: _Where) -> Array:
    try:
        given = mechanism(dataset, size, rng)
    except Exception as error:
        raise where.error(f"raised {type(error).__name__}: {error}") from error
    try:
        found = np.asarray(given)
    except ValueError as error:  # lists of different lengths
        raise where.error(
            f"returned no array ({error}); expected outputs of one size: pad them to the longest"
        ) from None
    if found.dtype.kind not in "biuf":
        raise where.error(
            f"returned {found.dtype} values of shape {found.shape}; expected numbers: bool, integer or float"
        )
    if found.ndim == 0 or found.shape[0] != size or found.size == 0:
        raise where.error(
            f"returned an array of shape {found.shape}; expected ({size},) or ({size}, …), a row for each of the "
            f"{size} runs that were asked for"
        )
    numbers: Array = found.astype(np.float64)
    bad = np.isnan(numbers.reshape(size, -1)).any(axis=1)
    if bad.any():
        raise where.error(
            "returned NaN; expected numbers: having no answer is an answer too and needs a number of its own",
            row=int(bad.argmax()),
        )
    return numbers
