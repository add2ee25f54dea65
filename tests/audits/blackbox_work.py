"""Functions under audit in a module of their own: worker processes import them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from privcheck import PureDP, audit_mechanism

PAIR = [(0.0, 1.0)]


def laplace(given: float, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Adds Laplace noise at half the scale of ε = 1."""
    return given + rng.laplace(0, 0.5, runs)


def audit(mechanism=laplace, claim=None, **more):
    """Returns the audit of a function, without its seconds."""
    asked = {"neighbours": PAIR, "trials": 12_000, **more}
    return replace(audit_mechanism(mechanism, claim or PureDP(1), **asked), seconds=0.0)


def cells(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An agent that counts its canaries, each in a cell of its own."""
    return included + rng.laplace(0, 1, included.size)


@dataclass(frozen=True)
class Dying:
    """Kills its process in a large call: once."""

    flag: Path

    def __call__(self, given: float, runs: int, rng: np.random.Generator) -> np.ndarray:
        if runs > 1_000 and not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return laplace(given, runs, rng)


@dataclass(frozen=True)
class Traced:
    """Leaves a file for each of its large calls, and stops the whole process at one of them."""

    directory: Path
    last: int | None

    def __call__(self, given: float, runs: int, rng: np.random.Generator) -> np.ndarray:
        if runs > 300:
            number = len(list(self.directory.iterdir()))
            if number == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            (self.directory / str(number)).touch()
        return laplace(given, runs, rng)


def told_by_types(given: float, rng: np.random.Generator) -> object:
    """One run: a dict with noise, or rarely an exception; the key's name tells in a tenth of the runs."""
    if rng.random() < 0.02:
        raise ValueError("no answer")
    return {"a" if rng.random() < 0.9 else f"b{given:.0f}": float(rng.normal())}
