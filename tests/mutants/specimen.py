"""A function with a claim that is known to be true or false: what auditors of black boxes are tested on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.auditors import MechanismClaim

Array = NDArray[np.float64]
Run = Callable[[Any, int, np.random.Generator], Any]
ADJACENT = ((0.0, 1.0),)  # one number that one user moves by 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Specimen:
    """A function with a claim.

    Attributes:
        name: Short and unique.
        run: The function.
        claim: What it says of itself.
        pairs: Neighbours between which a violation would show.
        broken: Whether the claim is false for one of the pairs.
        loss: The true loss on the pairs in the claim's unit, at the claim's δ; ∞ where some outputs are impossible for
            one neighbour, None where nobody has worked it out.
    """

    name: str
    run: Run
    claim: MechanismClaim
    pairs: tuple[tuple[Any, Any], ...] = ADJACENT
    broken: bool
    loss: float | None = None


def column(given: object, runs: int) -> Array:
    """Returns a dataset's numbers as one row a run: (runs, numbers)."""
    return np.tile(np.atleast_1d(np.asarray(given, dtype=np.float64)), (runs, 1))
