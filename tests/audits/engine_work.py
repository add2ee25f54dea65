"""Blocks for the engine's tests, in a module of their own: worker processes import them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privcheck.errors import AuditError
from privcheck_audits.engine.blocks import Tally


def guesses(rng: np.random.Generator, runs: int, first: int) -> Tally:
    """Returns guesses that are wrong with probability 0.3."""
    wrong = rng.random(runs) < 0.3
    return Tally(
        runs=runs, errors=int(wrong.sum()), ranked_errors=(int(wrong[: runs // 2].sum()),), ranked_guesses=(runs // 2,)
    )


def numbers(rng: np.random.Generator, runs: int, first: int) -> tuple[int, int, np.ndarray]:
    """Returns where a block began, its size and its first numbers."""
    return first, runs, rng.random(3)


@dataclass(frozen=True)
class Slow:
    """Takes a while and says so in a file a block."""

    seconds: float
    traces: Path | None = None

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        if self.traces is not None:
            (self.traces / f"{first}-{time.monotonic_ns()}").touch()
        time.sleep(self.seconds)
        return guesses(rng, runs, first)


@dataclass(frozen=True)
class Dying:
    """Kills its process at one block: once if a file is given, else every time."""

    at: int
    flag: Path | None

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        if first == self.at and (self.flag is None or not self.flag.exists()):
            if self.flag is not None:
                self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return guesses(rng, runs, first)


class AwkwardError(Exception):
    """Cannot be pickled and restored: its constructor takes two arguments and passes on one."""

    def __init__(self, what: str, where: int) -> None:
        super().__init__(f"{what} at {where}")


@dataclass(frozen=True)
class Raising:
    """Raises at one block."""

    at: int
    kind: str

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        if first == self.at:
            if self.kind == "audit":
                raise AuditError(f"run {first} is not a number", trial=first, seed=7)
            raise AwkwardError("broken", first)
        return guesses(rng, runs, first)
