"""Trials in blocks: one seed a block, the same result for any number of workers, memory that does not grow with N.

NumPy's generators, its arithmetic and Numba's compiled functions let go of the interpreter lock, so threads suffice. A
block is reduced to a handful of counts where it was drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from audits.bounds import GuessPlan
from audits.scores import Scored
from privcheck.errors import AuditError, ParameterError
from privcheck.results import Progress, silent

BLOCK: Final = 16_384  # runs; scores of a block are ranked among themselves
_TAG: Final = 0xA0D17  # first word of an auditor's spawn keys, so that no noise source has the same stream
_AHEAD: Final = 4  # blocks in flight a worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a block, or all of them, came to.

    Attributes:
        runs: Runs.
        errors: Wrong guesses if every run is guessed by the sign of its score.
        ranked_errors: Wrong guesses of each attempt of the guess plan.
        ranked_guesses: Guesses of each attempt.
    """

    runs: int
    errors: int
    ranked_errors: tuple[int, ...]
    ranked_guesses: tuple[int, ...]

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            runs=self.runs + other.runs,
            errors=self.errors + other.errors,
            ranked_errors=tuple(a + b for a, b in zip(self.ranked_errors, other.ranked_errors, strict=True)),
            ranked_guesses=tuple(a + b for a, b in zip(self.ranked_guesses, other.ranked_guesses, strict=True)),
        )


def blocks(
    work: Callable[[np.random.Generator, int, int], T],
    runs: int,
    *,
    seed: int,
    stream: int = 0,
    block: int = BLOCK,
    workers: int = 1,
    progress: Progress = silent,
) -> Iterator[T]:
    """Yields the result of each block of runs, in order.

    Block i draws from SeedSequence(seed, spawn_key=(tag, stream, i)) whichever worker has it. At an interrupt, or if a
    block raises, blocks that have not begun are dropped and those under way are waited for.

    Args:
        work: Called with the block's generator, its number of runs and the number of its first run.
        runs: In all blocks together.
        seed: The audit's seed.
        stream: Keeps the parts of one audit apart.
        block: Runs a block; part of what decides the result.
        workers: Threads; not part of it.
        progress: Called with (runs done, runs) after each block.

    Raises:
        ParameterError: A number is not positive.
    """
    if min(runs, block, workers) < 1:
        raise ParameterError(f"expected at least one run, block and worker, got {runs}, {block} and {workers}")
    starts = range(0, runs, block)
    pending: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(max_workers=min(workers, len(starts)), thread_name_prefix="audit")

    def submit(number: int) -> None:
        start = starts[number]
        sequence = np.random.SeedSequence(seed, spawn_key=(_TAG, stream, number))
        pending.append(pool.submit(work, np.random.default_rng(sequence), min(block, runs - start), start))

    try:
        following = 0
        for number, start in enumerate(starts):
            while following < len(starts) and following < number + _AHEAD * workers:
                submit(following)
                following += 1
            yield pending.popleft().result()
            progress(min(start + block, runs), runs)
    finally:  # an interrupt, an error and an abandoned iteration come here too
        pool.shutdown(wait=True, cancel_futures=True)


def tally(scored: Scored, plan: GuessPlan | None, *, first: int, seed: int) -> Tally:
    """Returns the counts of one block.

    Args:
        scored: The block's runs.
        plan: On how many runs to guess; None where only the sign of every score is wanted.
        first: The number of the block's first run.
        seed: The audit's seed, for the message.

    Raises:
        AuditError: A score is not finite; it is never compared.
    """
    finite = np.isfinite(scored.score)
    if not finite.all():
        trial = first + int(np.argmin(finite))
        score = scored.score[trial - first]
        message = f"run {trial} of the audit with seed {seed} has the score {score}: outputs and scores must be finite"
        raise AuditError(message, trial=trial, seed=seed)
    wrong = (scored.score > 0) != scored.secret
    if plan is None:
        return Tally(runs=wrong.size, errors=int(wrong.sum()), ranked_errors=(), ranked_guesses=())
    order = np.argsort(-np.abs(scored.score), kind="stable")
    missed = np.cumsum(wrong[order])
    ranks = plan.ranks(wrong.size)
    return Tally(
        runs=wrong.size,
        errors=int(missed[-1]),
        ranked_errors=tuple(int(missed[rank - 1]) for rank in ranks),
        ranked_guesses=ranks,
    )


def total(parts: Iterator[Tally]) -> Tally:
    """Returns the sum of all blocks' counts."""
    found = next(parts)
    for part in parts:
        found += part
    return found
