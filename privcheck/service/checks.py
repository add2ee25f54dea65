"""What reads the whole ledger, checks and exports: one after the other, each maybe longer than a request.

So each is asked for again until it is there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from privcheck.service.problems import ProblemError

_MOST: Final = 8  # under way
_PATIENCE: Final = 5.0  # seconds that a request waits
T = TypeVar("T")
_FRESH: Final = 30.0  # seconds in which who asked comes back for the answer


@dataclass(slots=True)
class _Check:
    answer: Future[Any]
    ended: float | None = None

    def end(self, _: Future[Any]) -> None:
        self.ended = time.monotonic()

    def is_old(self) -> bool:
        return self.ended is not None and time.monotonic() - self.ended > _FRESH


@dataclass(slots=True)
class Checks:
    """What is being read, by what was asked; each reads every row, so that they do not run at once."""

    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "privcheck-ledger-check"))
    _running: dict[str, _Check] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def ask(self, key: str, check: Callable[[], T]) -> T | None:
        """Returns what was read; None while it reads: it is to be asked for again.

        Raises:
            PrivcheckError: What the reading raises.
            ProblemError: Too many are under way: 429.
        """
        answer = self._begin(key, check)
        with suppress(Exception):  # what it raises is told below, the end of our patience is not
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(answer)), _PATIENCE)
        if not answer.done():
            return None
        with self._lock:
            self._running.pop(key, None)  # it is told now
        return answer.result()

    def close(self) -> None:
        """Waits for the one that runs; the others are not begun."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _begin(self, key: str, check: Callable[[], T]) -> Future[T]:
        with self._lock:
            for old in [name for name, one in self._running.items() if one.is_old()]:
                del self._running[old]  # nobody came back for it, and the ledger has gone on
            if key not in self._running:
                if len(self._running) >= _MOST:
                    raise ProblemError(429, f"{_MOST} checks of the ledger are under way: ask again")
                begun = _Check(self._thread.submit(check))
                begun.answer.add_done_callback(begun.end)
                self._running[key] = begun
            return self._running[key].answer
