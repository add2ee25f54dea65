"""Blocks of trials: one seed per block, results that do not depend on the workers, memory independent of N.

Block i draws from its own spawned seed, so its result depends only on its index: not on the worker, the number of
workers, the order in which blocks finish, an interrupt or a dead worker. Results are yielded in the order of the
blocks; a stopping rule sees them in that order too.

NumPy's generators, its arithmetic and Numba's compiled functions release the interpreter lock, so threads suffice on
one machine. A block is reduced to a few counts where it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar

import numpy as np

from privcheck.errors import AuditError, ParameterError
from privcheck.support.display import Progress, silent
from privcheck_audits.bounds import GuessPlan
from privcheck_audits.engine.checkpoints import Checkpoint, Kept
from privcheck_audits.engine.kernels import count_errors_by_rank, threshold_errors
from privcheck_audits.engine.pools import Flight, MakeExecutor, threads
from privcheck_audits.engine.scores import Scored

BLOCK: Final = 65_536  # runs; scores of a block are ranked among themselves
_TAG: Final = 0xA0D17  # first word of an auditor's spawn keys, so that no noise source has the same stream
_AHEAD: Final = 4  # tasks in flight a worker
_ELSEWHERE: Final = 32  # at least so many tasks in flight where the number of workers is somebody else's
_GROWTH: Final = 8  # a growing block is an eighth of the runs before it

T = TypeVar("T")
Work = Callable[[np.random.Generator, int, int], T]


class Addable(Protocol):
    """Results of blocks, which can be added."""

    def __add__(self, other: Self, /) -> Self:
        """Sum of two results."""
        ...


A = TypeVar("A", bound=Addable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of one block, or of all blocks.

    Attributes:
        runs: Number of runs.
        errors: Wrong guesses if every run is guessed by the sign of its score.
        ranked_errors: Wrong guesses of each attempt of the guess plan.
        ranked_guesses: Guesses of each attempt.
        on_first: Runs on D.
        on_second: Runs on D′.
        false_second: Number of runs on D with a score of at most each threshold.
        false_first: Number of runs on D′ with a score above it.
    """

    runs: int
    errors: int
    ranked_errors: tuple[int, ...]
    ranked_guesses: tuple[int, ...]
    on_first: int = 0
    on_second: int = 0
    false_second: tuple[int, ...] = ()
    false_first: tuple[int, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            runs=self.runs + other.runs,
            errors=self.errors + other.errors,
            ranked_errors=_sums(self.ranked_errors, other.ranked_errors),
            ranked_guesses=_sums(self.ranked_guesses, other.ranked_guesses),
            on_first=self.on_first + other.on_first,
            on_second=self.on_second + other.on_second,
            false_second=_sums(self.false_second, other.false_second),
            false_first=_sums(self.false_first, other.false_first),
        )


def _sums(some: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(some, other, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(Generic[A]):
    """The sum of the first blocks of an audit.

    Attributes:
        total: The sum.
        runs: Number of runs in the sum.
        ended: "done" with all runs; "stopped" by the rule; or "interrupted", after which only anytime-valid bounds
            apply.
    """

    total: A
    runs: int
    ended: Literal["done", "stopped", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """Division of runs into blocks: growing blocks first, given by their first runs, then equal ones."""

    runs: int
    block: int
    growing: tuple[int, ...]  # first run of each, and of the first equal one
    number: int

    @classmethod
    def of(cls, runs: int, block: int, grow: int) -> _Cut:
        starts = [0]
        while grow and starts[-1] < runs and (size := max(grow, starts[-1] // _GROWTH)) < block:
            starts.append(min(runs, starts[-1] + size))
        equal = -(-(runs - starts[-1]) // block)
        return cls(runs=runs, block=block, growing=tuple(starts), number=len(starts) - 1 + equal)

    def first(self, number: int) -> int:
        beyond = number - (len(self.growing) - 1)
        return self.growing[number] if beyond < 0 else min(self.runs, self.growing[-1] + beyond * self.block)

    def name(self, number: int, seed: int) -> str:
        return f"block {number} (runs {self.first(number)} to {self.first(number + 1) - 1}) of the audit, seed {seed}"


def blocks(
    work: Work[T],
    runs: int,
    *,
    seed: int,
    stream: int = 0,
    block: int = BLOCK,
    grow: int = 0,
    workers: int = 1,
    executor: Executor | MakeExecutor | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress = silent,
) -> Generator[T, None, None]:
    """Yield the result of each block of runs, in order.

    Block i draws from SeedSequence(seed, spawn_key=(tag, stream, i)) whichever worker has it. At an interrupt, or if a
    block raises, blocks that have not begun are dropped, running blocks are waited for, and all finished blocks are in
    the checkpoint. The blocks of a dead worker are drawn again, each at most three more times.

    Args:
        work: Called with the block's generator, its number of runs and the number of its first run. For processes it
            must be importable there: a function of a module, or a dataclass with `__call__`.
        runs: Number of runs in all blocks together.
        seed: The audit's seed.
        stream: Index of the random stream, different for each part of an audit.
        block: Number of runs per block; the result depends on it.
        grow: Number of runs of the first block if blocks begin small and grow, each by an eighth of the runs before it,
            up to `block`, for audits that may stop early; 0 for equal blocks. The result depends on it.
        workers: Number of threads; the result does not depend on it. 1 is the calling thread itself.
        executor: Executor used in place of threads, which is left open, or a function that makes one.
        checkpoint: Store of finished blocks.
        progress: Called with (runs done, runs) after each block.

    Raises:
        ParameterError: A number is not positive, or the checkpoint belongs to another audit.
        AuditError: A block lost its worker too often.
    """
    if min(runs, block, workers) < 1 or grow < 0:
        raise ParameterError(f"expected at least one run, block and worker, got {runs}, {block} and {workers}")
    cut = _Cut.of(runs, block, grow)
    kept = None
    if checkpoint is not None:
        kept = checkpoint.stream(stream, {"seed": seed, "runs": runs, "block": block, "grow": grow})
    task = partial(_block, work, cut, seed, stream)
    if executor is None and workers == 1:
        results = _here(task, cut, kept, seed)
    else:
        flight = Flight(
            task=task,
            given=executor if executor is not None else threads(min(workers, cut.number)),
            name=partial(cut.name, seed=seed),
            first=cut.first,
            seed=seed,
        )
        ahead = _AHEAD * workers if executor is None else max(_ELSEWHERE, _AHEAD * workers)
        results = _elsewhere(flight, cut, kept, ahead)
    with closing(results):
        for number, result in enumerate(results):
            progress(cut.first(number + 1), runs)
            yield result


def gather(work: Work[A], runs: int, *, stop: Callable[[A], bool] | None = None, **how: Any) -> Gathered[A]:
    """Sum the blocks, all of them or until a rule stops the audit.

    The rule sees the sum after each block in the order of the blocks, whatever order they finish in, so the result does
    not depend on where they run. Its decision is valid if it uses an anytime-valid bound (`bounds.e_process`).

    Args:
        work: As in `blocks`.
        runs: Largest number of runs.
        stop: Rule called with the sum so far; None to run all blocks.
        how: As in `blocks`.

    Raises:
        KeyboardInterrupt: No block had finished yet.
    """
    counted: A | None = None
    number = 0
    parts = blocks(work, runs, **how)
    ended: Literal["done", "stopped", "interrupted"] = "done"
    with closing(parts):
        try:
            for part in parts:
                counted = part if counted is None else counted + part
                number += 1
                if stop is not None and stop(counted):
                    ended = "stopped"
                    break
        except KeyboardInterrupt:
            if counted is None:
                raise
            ended = "interrupted"
    assert counted is not None
    cut = _Cut.of(runs, how.get("block", BLOCK), how.get("grow", 0))
    return Gathered(total=counted, runs=cut.first(number), ended=ended)


def _block(work: Work[T], cut: _Cut, seed: int, stream: int, number: int) -> T:
    first = cut.first(number)
    sequence = np.random.SeedSequence(seed, spawn_key=(_TAG, stream, number))
    return work(np.random.default_rng(sequence), cut.first(number + 1) - first, first)


def _here(task: Callable[[int], T], cut: _Cut, kept: Kept | None, seed: int) -> Generator[T, None, None]:
    for number in range(cut.number):
        known = kept.load(number) if kept is not None else None
        if known is None:
            try:
                known = (task(number),)
            except Exception as error:
                error.add_note(f"in {cut.name(number, seed)}")
                raise
            if kept is not None:
                kept.store(number, known[0])
        yield known[0]


def _elsewhere(flight: Flight[T], cut: _Cut, kept: Kept | None, ahead: int) -> Generator[T, None, None]:
    ready: dict[int, T] = {}
    stored: set[int] = set()
    following = 0

    def keep(finished: list[tuple[int, T]]) -> None:
        for number, result in finished:
            if kept is not None:
                kept.store(number, result)
            ready[number] = result

    try:
        for number in range(cut.number):
            while not flight.failed and following < cut.number:
                size = flight.size(cut.number - following)
                if following >= number + ahead * size:
                    break
                group = range(following, min(cut.number, following + size))
                mine = {place for place in group if kept is not None and kept.holds(place)}
                stored |= mine
                following = group.stop
                if len(mine) < len(group):
                    flight.submit(*(place for place in group if place not in mine))
            if kept is not None and number in stored:
                stored.discard(number)
                known = kept.load(number)
                if known is not None:
                    ready[number] = known[0]
                else:
                    flight.submit(number)  # its file had been cut short
            while number not in ready:
                if number in flight.failed:
                    raise flight.failed[number]
                keep(flight.collect())
            yield ready.pop(number)
    finally:  # an interrupt, an error and an abandoned iteration come here too
        keep(flight.rest())


def tally(
    scored: Scored, plan: GuessPlan | None, *, first: int, seed: int, thresholds: tuple[float, ...] = ()
) -> Tally:
    """Counts of one block.

    Args:
        scored: The block's runs.
        plan: Numbers of runs to guess on; None to count the sign of every score only.
        first: Index of the block's first run.
        seed: The audit's seed, for error messages.
        thresholds: Thresholds for counting both kinds of error, ascending, fixed before the block is drawn: for one
            event or for the trade-off curve (`privcheck_audits.plan.pictures`).

    Raises:
        AuditError: A score is not finite.
    """
    finite = np.isfinite(scored.score)
    if not finite.all():
        trial = first + int(np.argmin(finite))
        score = scored.score[trial - first]
        message = f"run {trial} of the audit with seed {seed} has the score {score}: outputs and scores must be finite"
        raise AuditError(message, trial=trial, seed=seed)
    wrong = (scored.score > 0) != scored.secret
    ranks = plan.ranks(wrong.size) if plan is not None else ()
    on_first = int(scored.secret.sum())
    false_second, false_first = threshold_errors(scored.score, scored.secret, thresholds)
    return Tally(
        runs=wrong.size,
        errors=int(wrong.sum()),
        ranked_errors=count_errors_by_rank(np.abs(scored.score), wrong, ranks) if ranks else (),
        ranked_guesses=ranks,
        on_first=on_first,
        on_second=wrong.size - on_first,
        false_second=false_second,
        false_first=false_first,
    )


def total(parts: Iterator[A]) -> A:
    """Sum of all blocks' counts."""
    counted = next(parts)
    for part in parts:
        counted += part
    return counted
