"""Progress on standard error: what is running, for how long, and about how long it still takes."""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

import click

from privcheck.support.display import silent

if TYPE_CHECKING:
    from privcheck.support.display import Progress

_DELAY: Final = 1.0  # seconds before anything is shown: most commands have ended by then
_TICK: Final = 0.5
_LEAST: Final = 0.1  # seconds between two drawings
_UNCOUNTED: Final = "{desc}  {elapsed}"
_COUNTED: Final = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class ProgressBars:
    """Progress bars, one after the other; none unless standard error is a terminal.

    A bar appears with its name as soon as its work has run for a second, ticks while nothing is reported, and estimates
    the time that is left from its second report on, at the mean rate since the first: what comes before the first
    (compiling, reading, choosing a pair) is done once.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, name: str) -> Progress:
        """The callback of a new bar, which replaces the one before."""
        self._close()
        if not sys.stderr.isatty():
            return silent
        running = self._running = _Running(name, time.monotonic(), sys.stderr)
        threading.Thread(target=self._tick, args=(running,), daemon=True).start()

        def progress(done: int, total: int) -> None:
            with self._lock:
                if running is self._running:
                    running.count(done, total)
                    running.draw()

        return progress

    def print(self, line: str) -> None:
        """Print a line of the result above the bar, at once."""
        with self._lock:
            if self._running is not None and self._running.bar is not None:
                self._running.bar.clear()
            click.echo(line)  # which flushes: the first verdict is there long before the last

    def _tick(self, running: _Running) -> None:
        """Redraw a bar until it is closed, so that its clock does not stand still between two reports."""
        while not running.ended.wait(_TICK):
            with self._lock:
                if running is self._running:
                    running.draw()

    def _close(self) -> None:
        with self._lock:
            if self._running is not None:
                self._running.close()
                self._running = None


class _Running:
    """Work that is running, with its bar once there is one."""

    def __init__(self, name: str, began: float, stream: TextIO) -> None:
        self.name, self.began, self.ended = name, began, threading.Event()
        # the stream of the command, not of the moment: a bar that ticks while an audit captures what an agent prints
        # would be taken for the agent's output
        self.stream = stream
        self.bar: Any = None
        self._first: tuple[float, int] | None = None  # the time of the first report, and how much was done then
        self._done = self._total = 0
        self._drawn = -math.inf

    def count(self, done: int, total: int) -> None:
        """Take a report."""
        self._first = self._first or (time.monotonic(), done)
        self._done, self._total = done, total

    def draw(self) -> None:
        """Draw the bar, once the work has run for a second; an estimate grows while nothing is reported."""
        now = time.monotonic()
        if now - self.began < _DELAY or now - self._drawn < _LEAST:
            return
        if self.bar is None:
            from tqdm import tqdm

            self.bar = tqdm(desc=self.name, file=self.stream, bar_format=_UNCOUNTED, leave=False, dynamic_ncols=True)
            self.bar.start_t -= now - self.began
        if self._first is not None:
            self.bar.bar_format, self.bar.n, self.bar.total = _COUNTED, self._done, self._total
            if self._done > self._first[1]:
                left = (now - self._first[0]) * (self._total - self._done) / (self._done - self._first[1])
                self.bar.set_postfix_str(f"about {self.bar.format_interval(left)} left", refresh=False)
        self._drawn = now
        self.bar.refresh()

    def close(self) -> None:
        """Remove the bar."""
        self.ended.set()
        if self.bar is not None:
            self.bar.close()
