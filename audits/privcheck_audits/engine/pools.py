"""Executors of blocks: threads, processes or others, with resubmission of blocks when a worker dies.

A dead worker loses its blocks, never the audit: a lost block is submitted again, to a new pool if the old one is
broken. It draws the same numbers again, because each block has its own seed.
"""

from __future__ import annotations

import copy
import multiprocessing
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
from typing import Final, Generic, TypeVar

from privcheck.errors import AuditError, ParameterError

T = TypeVar("T")
MakeExecutor = Callable[[], Executor]

LOSSES: Final = 3  # times that one block may lose its worker before the block itself is suspected
_CLUSTER: Final = "distributed"  # the module whose exceptions say that a cluster lost a task


def threads(workers: int) -> MakeExecutor:
    """Factory of a pool of threads, which suffice since NumPy and Numba release the interpreter lock."""
    return lambda: ThreadPoolExecutor(max_workers=workers, thread_name_prefix="audit")


def processes(workers: int) -> MakeExecutor:
    """Factory of a pool of spawned processes: a forked copy of a threaded process may hang."""
    return lambda: ProcessPoolExecutor(max_workers=workers, mp_context=multiprocessing.get_context("spawn"))


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
    _waiting: dict[Future[T], int] = field(default_factory=dict)
    _lost: Counter[int] = field(default_factory=Counter)

    def submit(self, number: int) -> None:
        """Submit a block.

        Raises:
            AuditError: The executor broke too often.
        """
        while True:
            try:
                pool = self._pool()
                alike = isinstance(pool, ThreadPoolExecutor)  # nothing travels
                future = pool.submit(self.task, number) if alike else pool.submit(_run_reporting, self.task, number)
            except BrokenExecutor as error:
                self._count_loss(number, error)
                self._renew()
            else:
                self._waiting[future] = number
                return

    def collect(self) -> list[tuple[int, T]]:
        """Wait until a block has finished or failed, resubmit lost blocks, and return the finished ones.

        Exceptions of blocks go into `failed`, so that a caller that reads the blocks in order meets the first failure
        first, whichever block failed earliest.

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
            lost = []
            for future in done:
                number = self._waiting.pop(future)
                error = _error(future)
                if error is None:
                    finished.append((number, future.result()))
                elif _is_loss(error):
                    lost.append((number, error))
                else:
                    error.add_note(f"in {self.name(number)}")
                    self.failed[number] = error
            if broken:
                self._renew()
            for number, error in sorted(lost, key=lambda pair: pair[0]):
                self._count_loss(number, error)
                self.submit(number)
        return sorted(finished, key=lambda pair: pair[0])

    def rest(self) -> list[tuple[int, T]]:
        """Cancel blocks that have not begun, wait for the others, and return those finished without an error."""
        begun = [future for future in self._waiting if not future.cancel()]
        if self._owned and self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        begun = [future for future in begun if not future.cancelled()]
        wait(begun)
        finished = [(self._waiting[future], future.result()) for future in begun if _error(future) is None]
        self._waiting.clear()
        return finished

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


def _run_reporting(task: Callable[[int], T], number: int) -> T:
    """Run a task in the worker; an exception that cannot be copied is replaced, since it would break the pool."""
    try:
        return task(number)
    except Exception as error:
        try:
            copy.copy(error)
        except Exception:  # noqa: BLE001 - whatever its constructor does
            words = "".join(traceback.format_exception_only(error)).strip()
            raise RuntimeError(words) from None
        raise


def _error(future: Future[T]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _is_loss(error: BaseException) -> bool:
    return isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__module__.partition(".")[0] == _CLUSTER
