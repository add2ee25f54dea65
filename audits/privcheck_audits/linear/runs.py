"""Whole linear agents under audit: the declared noise in every run, then what the paper does with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.engine.scores import hidden_bits
from privcheck_audits.linear.instance import Draws, LinearInstance, Stream
from privcheck_audits.policy.runs import Outputs

_CHUNK: Final = 512  # runs at a time

Array = NDArray[np.float64]


class LinearAgent(Protocol):
    """What is done with noisy statistics."""

    def __call__(self, world: LinearInstance, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Returns what is shown of the policies, (runs, features), for noise (runs, outputs, H, …) and the arms."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearRuns:
    """Fresh runs of a whole linear agent; importable, so that blocks can run in any process.

    Attributes:
        world: The instance.
        streams: The noise of every release.
        agent: The paper's post-processing.
    """

    world: LinearInstance
    streams: Mapping[str, Stream]
    agent: LinearAgent

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Returns the policies of so many runs, each on D or D′ by a hidden bit."""
        secret = hidden_bits(rng, runs)
        rows = []
        for start in range(0, runs, _CHUNK):
            second = 1 - secret[start : start + _CHUNK].astype(np.int64)
            noise = {name: stream.draw(rng, second.size) for name, stream in self.streams.items()}
            rows.append(self.agent(self.world, noise, second))
        return Outputs(features=np.concatenate(rows), secret=secret)
