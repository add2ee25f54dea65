"""The declared noise of many runs at a time, in all outputs of every release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.mechanisms import Noise
from privcheck.schedules import EveryEpisode, Once, Tree

_MARGIN: Final = 6.0  # t, with which a noise matrix is above √v(2√d + t) with probability at most 2·exp(−t²/4)

Array = NDArray[np.float64]
Draws = Mapping[str, Array]  # by release, (runs, outputs, H, …)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The noise of one release in all its outputs, one after each user, on the sum over all users so far.

    Attributes:
        noise: Of one output, or of one node.
        shape: Of the statistic, (H, …).
        outputs: How many.
        kind: "fresh" for every output; "one draw" that all of them share; "tree": that of the nodes of a binary tree
            which cover the users so far.
    """

    noise: Noise
    shape: tuple[int, ...]
    outputs: int
    kind: Literal["fresh", "one draw", "tree"]

    @property
    def nodes(self) -> int:
        """Returns how many draws are in one output, at most."""
        return self.outputs.bit_length() if self.kind == "tree" else 1

    def draw(self, rng: np.random.Generator, runs: int) -> Array:
        """Returns the noise of so many runs, (runs, outputs, H, …)."""
        if self.kind == "one draw":
            one = self.noise.draw(rng, (runs, 1, *self.shape))
            return np.broadcast_to(one, (runs, self.outputs, *self.shape))
        drawn = self.noise.draw(rng, (runs, self.outputs, *self.shape))
        if self.kind == "tree":  # t users: the node that ends there, after those that cover t less its lowest bit
            for t in range(1, self.outputs + 1):
                before = t & (t - 1)
                if before:
                    drawn[:, t - 1] += drawn[:, before - 1]
        return drawn


def streams(declaration: Declaration, values: Mapping[str, Fraction], outputs: int) -> Mapping[str, Stream]:
    """Returns the declared noise of every release.

    Args:
        declaration: What is released.
        values: Its parameters.
        outputs: How many there are; 1 for an offline agent.

    Raises:
        ParameterError: A release's outputs are no sums over all users so far, or cells or releases share its noise.
    """
    for release in declaration.noisy:
        if not isinstance(release.schedule, Once | EveryEpisode | Tree):
            message = f"release {release.name!r}: expected sums over all users so far, got {release.schedule.words}"
            raise ParameterError(message, name="schedule", given=release.name)
        if release.draw.name or "cells" in release.draw.across:
            message = f"release {release.name!r}: noise that cells or releases share is not drawn here"
            raise ParameterError(message, name="draw", given=release.name)
    return {
        release.name: Stream(
            noise=release.mechanism.at(values),
            shape=release.statistic.shape(values),
            outputs=outputs,
            kind=(
                "one draw"
                if "outputs" in release.draw.across
                else "tree"
                if isinstance(release.schedule, Tree)
                else "fresh"
            ),
        )
        for release in declaration.noisy
    }


def norm_bound(stream: Stream) -> float:
    """Returns a bound on the norm of an output's noise matrix, which fails with probability 3·10⁻⁴ at most.

    Of a GOE matrix with variance v above the diagonal the mean is at most 2√(vd), and ‖·‖ is a √(2v)-Lipschitz function
    of the independent normals in it: √v(2√d + t) fails with probability at most exp(−t²/4) on either side. Less
    variance on the diagonal makes it smaller.
    """
    d = stream.shape[-1]
    return float(stream.noise.scale * np.sqrt(stream.nodes) * (2 * np.sqrt(d) + _MARGIN))
