"""Executors of blocks: threads, processes or others, with resubmission of blocks when a worker dies.

A dead worker loses its blocks, never the audit: a lost block is submitted again, to a new pool if the old one is
broken. It draws the same numbers again, because each block has its own seed.

A task that travels costs its sender, a scheduler and its worker some milliseconds, on a cluster as much as a short
block. So blocks elsewhere are sent in groups that take about half a second, once it is known how long one takes. No
result depends on the groups.
"""

from __future__ import annotations

import copy
import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, Generic, TypeVar

from privcheck.errors import AuditError, ParameterError

T = TypeVar("T")
MakeExecutor = Callable[[], Executor]

_TASK: Final = 0.5  # seconds of a task, about
_MOST: Final = 64  # blocks in a task
_SHARES: Final = 2  # tasks a worker, at least, into which what is left is cut
LOSSES: Final = 3  # times that one block may lose its worker before the block itself is suspected
_CLUSTER: Final = "distributed"  # the module whose exceptions say that a cluster lost a task


def threads(workers: int) -> MakeExecutor:
    """Factory of a pool of threads, which suffice since NumPy and Numba release the interpreter lock."""
    return lambda: ThreadPoolExecutor(max_workers=workers, thread_name_prefix="audit")


def processes(workers: int) -> MakeExecutor:
    """Factory of a pool of spawned processes: a forked copy of a threaded process may hang."""
    return lambda: ProcessPoolExecutor(max_workers=workers, mp_context=multiprocessing.get_context("spawn"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group(Generic[T]):
    """Result of a task of some blocks.

    Attributes:
        results: Of the blocks in order, up to one that failed: at least of the first.
        seconds: Time a block.
    """

    results: tuple[T, ...]
    seconds: float


@dataclass(slots=True, kw_only=True, eq=False)
class Flight(Generic[T]):
    """Blocks in flight on an executor.

    Attributes:
        task: Computes the block with an index; for processes it must be importable in the workers.
        given: The executor, or a function that makes one, and another if it breaks.
        name: Description of a block with its runs and seed, for messages.
        first: First run of a block.
        seed: The audit's seed.
        failed: Exceptions raised by blocks, by block.
    """

    task: Callable[[int], T]
    given: Executor | MakeExecutor
    name: Callable[[int], str]
    first: Callable[[int], int]
    seed: int
    failed: dict[int, BaseException] = field(default_factory=dict)
    _executor: Executor | None = None
    _owned: bool = False
    _waiting: dict[Future[Any], tuple[int, ...]] = field(default_factory=dict)
    _lost: Counter[int] = field(default_factory=Counter)
    _seconds: float | None = None  # of a block of the last group
    _spent: float = 0.0  # seconds of all blocks of groups
    _begun: float = field(default_factory=time.perf_counter)

    def size(self, left: int) -> int:
        """Number of blocks for the next task: of half a second, fewer where the last ones have to be shared out.

        Args:
            left: Blocks that have not been submitted.
        """
        if self._seconds is None:
            return 1
        busy = max(1.0, self._spent / max(time.perf_counter() - self._begun, 1e-9))  # workers, by what they computed
        return max(1, min(_MOST, int(_TASK / max(self._seconds, _TASK / _MOST)), int(left / (_SHARES * busy))))

    def submit(self, *numbers: int) -> None:
        """Submit some blocks as one task; for threads, one block.

        Raises:
            AuditError: The executor broke too often.
        """
        while True:
            try:
                pool = self._pool()
                if isinstance(pool, ThreadPoolExecutor):  # nothing travels
                    (number,) = numbers
                    self._waiting[pool.submit(self.task, number)] = numbers
                else:
                    self._waiting[pool.submit(_run_reporting, self.task, numbers)] = numbers
            except BrokenExecutor as error:
                for number in numbers:
                    self._count_loss(number, error)
                self._renew()
            else:
                return

    def collect(self) -> list[tuple[int, T]]:
        """Wait until a block has finished or failed, resubmit lost blocks, and return the finished ones.

        Exceptions of blocks go into `failed`, so that a caller that reads the blocks in order meets the first failure
        first, whichever block failed earliest. What is left of a task is submitted one by one: a block that raises, or
        ends its workers, is then known.

        Raises:
            AuditError: A block lost its worker too often.
        """
        finished: list[tuple[int, T]] = []
        failures = len(self.failed)
        while not finished and len(self.failed) == failures:
            done, _ = wait(self._waiting, return_when=FIRST_COMPLETED)
            broken = any(isinstance(_error(future), BrokenExecutor) for future in done)
            if broken:
                done, _ = wait(self._waiting)  # all of them have failed, or finished just before
            lost: list[tuple[int, BaseException]] = []
            again: list[int] = []
            for future in done:
                numbers = self._waiting.pop(future)
                error = _error(future)
                if error is None:
                    read = self._read(numbers, future.result())
                    finished += read
                    again += numbers[len(read) :]
                elif _is_loss(error):
                    lost += [(number, error) for number in numbers]
                else:
                    error.add_note(f"in {self.name(numbers[0])}")
                    self.failed[numbers[0]] = error
            if broken:
                self._renew()
            for number in sorted(again):
                self.submit(number)
            for number, error in sorted(lost, key=lambda pair: pair[0]):
                self._count_loss(number, error)
                self.submit(number)
        return sorted(finished, key=lambda pair: pair[0])

    def rest(self) -> list[tuple[int, T]]:
        """Cancel tasks that have not begun, wait for the others, and return the blocks that finished without error."""
        begun = [future for future in self._waiting if not future.cancel()]
        if self._owned and self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        begun = [future for future in begun if not future.cancelled()]
        wait(begun)
        finished: list[tuple[int, T]] = []
        for future in begun:
            if _error(future) is None:
                finished += self._read(self._waiting[future], future.result())
        self._waiting.clear()
        return finished

    def _read(self, numbers: tuple[int, ...], result: T | _Group[T]) -> list[tuple[int, T]]:
        """Blocks of a task that finished."""
        if not isinstance(result, _Group):
            return [(numbers[0], result)]
        self._seconds = result.seconds
        self._spent += result.seconds * len(result.results)
        return list(zip(numbers, result.results, strict=False))  # up to one that failed

    def _pool(self) -> Executor:
        if self._executor is None:
            self._owned = not isinstance(self.given, Executor)
            self._executor = self.given if isinstance(self.given, Executor) else self.given()
        return self._executor

    def _renew(self) -> None:
        """Make a new pool: by the given function, or of the same size as a given process pool."""
        old = self._pool()
        if self._owned:
            old.shutdown(wait=False)
        if not isinstance(self.given, Executor):
            self._executor = self.given()
        elif isinstance(old, ProcessPoolExecutor):
            self._executor = ProcessPoolExecutor(
                max_workers=getattr(old, "_max_workers", None), mp_context=getattr(old, "_mp_context", None)
            )
            self._owned = True

    def _count_loss(self, number: int, error: BaseException) -> None:
        self._lost[number] += 1
        if self._lost[number] > LOSSES:
            message = (
                f"{self.name(number)} lost its worker {self._lost[number]} times (last: {error!r}): the mechanism may "
                "end the process or need more memory than a worker has; finished blocks are kept"
            )
            raise AuditError(message, trial=self.first(number), seed=self.seed) from error


def refuse_unsendable(thing: object, given: Executor | MakeExecutor, *, name: str) -> None:
    """Raise an error for an object that cannot be sent to the executor's workers, before any work starts.

    Args:
        thing: A function under audit.
        given: The executor, or a function that makes it.
        name: Name of the function in the message.

    Raises:
        ParameterError: The object cannot be pickled, or cannot be imported by the workers.
    """
    if isinstance(given, ThreadPoolExecutor):
        return
    if not isinstance(given, Executor):
        with given() as made:
            refuse_unsendable(thing, made, name=name)
        return
    try:
        if isinstance(given, ProcessPoolExecutor):  # as bytes: a task that cannot be read would break the pool
            given.submit(_read, bytes(ForkingPickler.dumps(thing))).result()
        else:
            given.submit(callable, thing).result()
    except Exception as error:
        message = (
            f"{name}: {thing!r} cannot be sent to the workers of {type(given).__name__} ({error}): expected a function "
            "at the top level of a module that they can import, or a dataclass with `__call__` from there; or leave "
            "`executor` out and give the number of `workers`, which are threads"
        )
        raise ParameterError(message, name=name, given=thing) from error


def _read(written: bytes) -> None:
    ForkingPickler.loads(written)


def _run_reporting(task: Callable[[int], T], numbers: tuple[int, ...]) -> _Group[T]:
    """Run some blocks in the worker, up to one that fails: it raises once it comes first.

    An exception that cannot be copied is replaced, since it would break the pool.
    """
    began, results = time.perf_counter(), []
    for number in numbers:
        try:
            results.append(task(number))
        except Exception as error:
            if results:
                break
            try:
                copy.copy(error)
            except Exception:  # noqa: BLE001 - whatever its constructor does
                words = "".join(traceback.format_exception_only(error)).strip()
                raise RuntimeError(words) from None
            raise
    return _Group(results=tuple(results), seconds=(time.perf_counter() - began) / len(results))


def _error(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _is_loss(error: BaseException) -> bool:
    return isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__module__.partition(".")[0] == _CLUSTER
