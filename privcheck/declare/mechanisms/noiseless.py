"""No noise: what non-private twins and tests draw. No declaration holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privcheck.declare.mechanisms.base import Array, Noise
from privcheck.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Noiseless(Noise):
    """Adds nothing and protects nothing, whatever its scale."""

    name: ClassVar[str] = "none"

    scale: float = 0.0

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Returns zeros of the shape."""
        return np.zeros(shape)

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Refuses: there is nothing to score.

        Raises:
            ParameterError: Always.
        """
        raise ParameterError("without noise the likelihood ratio of two neighbours is 0 or ∞; nothing to score")
