"""No noise: used by non-private counterparts of agents and by tests. No declaration contains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privcheck.declare.mechanisms.base import Array, Noise
from privcheck.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Noiseless(Noise):
    """Adds no noise and gives no privacy, whatever its scale."""

    name: ClassVar[str] = "none"

    scale: float = 0.0

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Return zeros of the shape."""
        return np.zeros(shape)

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Refuse: without noise the log-likelihood ratio is 0 or ∞.

        Raises:
            ParameterError: Always.
        """
        raise ParameterError("without noise the likelihood ratio of two neighbours is 0 or ∞; nothing to score")
