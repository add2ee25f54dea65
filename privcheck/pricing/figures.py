"""Figures of prices as plain values, which reports carry as they are: this module loads neither NumPy nor SymPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An ε at the requested δ, by one method.

    Attributes:
        name: Name of the method.
        epsilon: In nats, rounded up; ∞ where it gives none.
        direction: "exact" for the curve of the worst pair, "upper" for a bound.
    """

    name: str
    epsilon: float
    direction: Literal["exact", "upper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastNoise:
    """Noise needed by one release.

    Attributes:
        name: Name of the release.
        law: Law of the needed noise.
        published_std: Standard deviation of one coordinate as declared.
        needed_std: Standard deviation that the target needs.
        ratio: needed/published; below 1 the declared noise is more than is needed.
    """

    name: str
    law: str
    published_std: float
    needed_std: float
    ratio: float
