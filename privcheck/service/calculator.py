"""Calculations in separate processes: limited in time by killing the process, in number by a queue."""

from __future__ import annotations

import json
import logging
import multiprocessing
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from privcheck.service.problems import FieldProblem, ProblemError, join_hint
from privcheck.service.worker import serve

Json = dict[str, Any]
_READY: Final = 60.0  # seconds that a process may take to start
_KEPT: Final = 512  # answers
_TASKS: Final = "privcheck.commands.calculations"  # by name: a process imports it, the service does not
_LOG: Final = logging.getLogger("privcheck.service")


@dataclass(slots=True)
class _Process:
    """Worker process, started on first use, and again after it was killed."""

    process: SpawnProcess | None = None
    pipe: Connection | None = None
    ready: bool = False
    ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_up(self) -> bool:
        """Whether the process is ready, or has sent its first message."""
        with self.lock:
            try:
                return self.ready or (self.pipe is not None and self.pipe.poll(0))
            except OSError:  # it has just ended
                return False

    def end(self) -> None:
        """Kill the process permanently, from any thread; pending requests get no answer."""
        with self.lock:
            self.ended = True
            if self.process is not None:
                self.process.kill()

    def start(self) -> None:
        if self.process is not None and self.process.is_alive():
            return
        self.stop()
        with self.lock:
            if not self.ended:
                self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, _TASKS), daemon=True, name="privcheck-calculations")
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        with self.lock:
            if self.process is not None:
                self.process.kill()
                self.process.join()
                self.process.close()
            if self.pipe is not None:
                self.pipe.close()
            self.process, self.pipe, self.ready = None, None, False

    def ask(self, message: bytes, *, seconds: float, begin: float) -> bytes | None:
        """Send a task and return its answer; None without an answer in time, after which the process is killed.

        Args:
            message: The task.
            seconds: Time limit of the task.
            begin: Time limit of the process's start, in seconds, if it is not ready.

        Raises:
            ProblemError: The process is not ready within that time: 503.
        """
        self.start()
        if self.pipe is None:
            return None
        try:
            if not self.ready:
                if not self.pipe.poll(begin):  # it goes on starting, for the next one
                    raise ProblemError(503, "calculations are not ready yet: ask again", public=True)
                self.pipe.recv_bytes()
                self.ready = True
            self.pipe.send_bytes(message)
            if self.pipe.poll(seconds):
                return self.pipe.recv_bytes()
        except (EOFError, OSError):
            if not self.ended:
                _LOG.warning("a calculation process has died")
        self.stop()
        return None


@dataclass(slots=True, kw_only=True)
class Calculator:
    """Runs the tasks of `privcheck.commands.calculations`, and caches the answers.

    Attributes:
        processes: Number of worker processes.
        waiting: Maximum number of waiting requests.
        seconds: Time limit of one calculation.
        long_seconds: Time limit of one calculation of `run_later`.
        patience: Seconds that a request waits for a process, or for the answer of `run_later`.
    """

    processes: int = 2
    waiting: int = 16
    seconds: float = 5.0
    long_seconds: float = 120.0
    patience: float = 3.0
    _idle: queue.LifoQueue[_Process] = field(default_factory=queue.LifoQueue)
    _places: threading.BoundedSemaphore = field(init=False)
    _first: _Process = field(default_factory=_Process)
    _apart: _Process = field(default_factory=_Process)
    _up: bool = False
    _later: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "privcheck-verify"))
    _running: dict[str, Future[Json]] = field(default_factory=dict)
    _kept: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._places = threading.BoundedSemaphore(self.processes + self.waiting)
        for _ in range(self.processes - 1):
            self._idle.put(_Process())
        self._idle.put(self._first)  # last in, first out

    def start(self) -> None:
        """Start one process, so that the first request does not wait for it, and list the algorithms."""
        self._first.start()
        self._submit(_key("algorithms", {}))

    def is_up(self) -> bool:
        """Whether the started processes can calculate; stays true, since killed ones are restarted."""
        if not self._up:
            self._up = self._first.is_up() and self._apart.is_up()
        return self._up

    def close(self) -> None:
        """Kill all processes."""
        self._apart.end()
        self._later.shutdown(wait=True, cancel_futures=True)
        self._apart.stop()
        for _ in range(self.processes):
            try:
                self._idle.get(timeout=self.seconds).stop()
            except queue.Empty:
                return

    def run(self, task: str, body: Mapping[str, Any]) -> Json:
        """Run a short task.

        Raises:
            ProblemError: The task is refused (422), takes too long (422), or too many are under way (429).
        """
        key = _key(task, body)
        if (known := self._recall(key)) is not None:
            return known
        if not self._places.acquire(blocking=False):
            raise ProblemError(429, f"{self.processes + self.waiting} calculations are running: ask again")
        try:
            process = self._idle.get(timeout=self.patience)
        except queue.Empty:
            self._places.release()
            raise ProblemError(429, "all processes are busy: ask again") from None
        try:
            said = process.ask(key.encode(), seconds=self.seconds, begin=self.patience)
        finally:
            self._idle.put(process)
            self._places.release()
        return self._keep(key, _read(said, self.seconds))

    def run_later(self, task: str, body: Mapping[str, Any]) -> Json | None:
        """Run a task that may be long; None while it is in progress: ask again.

        Raises:
            ProblemError: As `run`.
        """
        key = _key(task, body)
        if (known := self._recall(key)) is not None:
            return known
        future = self._submit(key)
        try:
            answer = future.result(timeout=self.patience)
        except TimeoutError:
            return None
        except BaseException:
            self._forget(key)
            raise
        return answer

    def _submit(self, key: str) -> Future[Json]:
        with self._lock:
            if key not in self._running:
                finished = [one for one, future in self._running.items() if future.done()]  # failures not yet asked for
                if len(self._running) - len(finished) >= self.waiting:
                    raise ProblemError(429, f"{self.waiting} long calculations are running: ask again")
                for one in finished[self.waiting :]:
                    del self._running[one]
                self._running[key] = self._later.submit(self._calculate, key)
            return self._running[key]

    def _calculate(self, key: str) -> Json:
        began = time.monotonic()
        said = self._apart.ask(key.encode(), seconds=self.long_seconds, begin=_READY)
        _LOG.info("a long calculation took %.1f s", time.monotonic() - began)
        answer = self._keep(key, _read(said, self.long_seconds))
        self._forget(key)  # the client may never ask again, and its place is free for others
        return answer

    def _forget(self, key: str) -> None:
        with self._lock:
            self._running.pop(key, None)

    def _recall(self, key: str) -> Json | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: str, answer: Json) -> Json:
        with self._lock:
            self._kept[key] = answer
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculators:
    """Separate calculators for token holders and for strangers, who can exhaust only their own.

    Attributes:
        holders: For holders of a token of the ledger.
        strangers: For all others.
    """

    holders: Calculator
    strangers: Calculator

    def of(self, role: str | None) -> Calculator:
        """Calculator for the role of the caller's token."""
        return self.strangers if role is None else self.holders


def _key(task: str, body: Mapping[str, Any]) -> str:
    return json.dumps([task, body], sort_keys=True)


def _read(said: bytes | None, seconds: float) -> Json:
    """Parse a worker's answer.

    Raises:
        ProblemError: The task was refused, or exceeded its time limit.
        RuntimeError: The task crashed.
    """
    if said is None:
        detail = f"the calculation takes more than {seconds:g} s or too much memory here"
        raise ProblemError(422, f"{detail}: give fewer distinct events or smaller sizes, or use the Python package")
    answer: Json = json.loads(said)
    if "result" in answer:
        result: Json = answer["result"]
        return result
    if "crashed" in answer:
        _LOG.error("a calculation failed:\n%s", answer["crashed"])
        raise RuntimeError("a calculation failed")
    refused = answer["refused"]
    errors = [FieldProblem(field=refused["name"][:100], message=refused["message"])] if refused["name"] else []
    raise ProblemError(422, join_hint(refused["message"], refused["hint"]), errors=errors)
