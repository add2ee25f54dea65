"""Mutants of the running side: a noise source that repeats itself, and an agent that sees what it must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import Noise, Noiseless
from privcheck.runtime import SimulatedNoise
from privcheck.runtime.offline import PolicyRuns
from privcheck_algorithms.linear.runs import LinearRuns
from privcheck_audits.policy.online import OnlineRuns
from privcheck_audits.policy.view import WholeAgent


class SharedNoise:
    """A noise source that draws every release from one stream.

    The true loss is ∞: the difference of two releases of the same size is exact.

    Args:
        seed: Of the stream.
    """

    words = "simulated, one stream for all releases"
    as_declared, protects = True, False

    def __init__(self, seed: int) -> None:
        self._honest = SimulatedNoise(seed)

    def add(self, noise: Noise, value: NDArray[np.float64], *, release: int, part: int) -> NDArray[np.float64]:
        """Returns value + noise, the same whatever the release."""
        return self._honest.add(noise, value, release=0, part=part)


def peeking(whole: WholeAgent, release: str = "visits") -> WholeAgent:
    """Returns the agent that plans from the exact values of one release; the true loss is ∞ where they show."""
    return replace(whole, noise={**whole.noise, release: Noiseless()})


def peeking_online(whole: OnlineRuns) -> OnlineRuns:
    """Returns the online agent that plans from exact counts; the true loss is ∞ where they move a policy."""
    return replace(whole, noiseless=True)


def quieter(runs: PolicyRuns, factor: float) -> PolicyRuns:
    """Returns the linear agent whose releases draw `factor` times the declared noise; the agent knows nothing of it.

    Args:
        runs: The honest one.
        factor: 0 for an agent that peeks, whose true loss is ∞ where the policies show it.
    """
    quiet, honest = Noiseless(), runs.draw
    assert isinstance(honest, LinearRuns)
    streams = {
        name: replace(s, noise=replace(s.noise, scale=s.noise.scale * factor) if factor else quiet)
        for name, s in honest.streams.items()
    }
    return replace(runs, draw=replace(honest, streams=streams))
