"""Fresh runs of a linear agent: the declared noise in every one, then what the paper does with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.post_processing import PolicyRuns
from privcheck_algorithms.linear.noise import Draws, Stream
from privcheck_algorithms.linear.ruler import EPISODES, Ruler

_CHUNK: Final = 512  # runs at a time
_INSTANCE: Final = "a ruler of features"
_LONGEST: Final = "their features are orthogonal, and as long as any"

Array = NDArray[np.float64]


class LinearAgent(Protocol):
    """What is done with noisy statistics."""

    def __call__(self, ruler: Ruler, noise: Draws, second: NDArray[np.int64]) -> Array:
        """Returns what is seen of the policies, (runs, features).

        Args:
            ruler: The instance.
            noise: (runs, outputs, H, …) of every release.
            second: (runs,) 0 where the run is on D, 1 where it is on D′.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearRuns:
    """Fresh runs of a linear agent; importable, so that blocks can run in any process.

    Attributes:
        ruler: The instance.
        streams: The noise of every release.
        agent: The paper's post-processing.
    """

    ruler: Ruler
    streams: Mapping[str, Stream]
    agent: LinearAgent

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Returns what is seen of the policies of each run, (runs, features); on D where `on_first`, else on D′."""
        rows = []
        for start in range(0, on_first.size, _CHUNK):
            second = 1 - on_first[start : start + _CHUNK].astype(np.int64)
            noise = {name: stream.draw(rng, second.size) for name, stream in self.streams.items()}
            rows.append(self.agent(self.ruler, noise, second))
        return np.concatenate(rows)


def offline_runs(runs: LinearRuns) -> PolicyRuns:
    """Returns an agent that learns from a dataset, with the words for what is seen of it: its policy."""
    return PolicyRuns(
        draw=runs,
        pair=runs.ruler.pair,
        seen="the policy",
        told="the policy that was learned",
        instance=_INSTANCE,
        witness=_LONGEST,
    )


def online_runs(
    runs: LinearRuns, *, seen: str = f"the policies of users 2 to {EPISODES}", remark: str = ""
) -> PolicyRuns:
    """Returns an agent that learns as it acts, with the words for what is seen of it: what the others are told.

    Args:
        runs: The agent, ready to run.
        seen: Whose policies are seen, where that are not those of all users but the first.
        remark: What must be said with a result.
    """
    return PolicyRuns(
        draw=runs,
        pair=runs.ruler.pair,
        seen=seen,
        told="what the other users were told to do",
        instance=_INSTANCE,
        witness=_LONGEST,
        remark=remark,
    )
