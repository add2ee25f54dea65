"""A function with a claim that is known to be true or false: what auditors of black boxes are tested on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.auditors import MechanismClaim

Array = NDArray[np.float64]
Run = Callable[[Any, int, np.random.Generator], Any]
OneRun = Callable[[Any, np.random.Generator], Any]
ADJACENT = ((0.0, 1.0),)  # one number that one user moves by 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Specimen:
    """A function with a claim.

    Attributes:
        name: Short and unique.
        run: The function, of many runs in a call or of one.
        claim: What it says of itself.
        pairs: Neighbours between which a violation would show.
        broken: Whether the claim is false for one of the pairs.
        loss: The true loss on the pairs in the claim's unit, at the claim's δ; ∞ where some outputs are impossible for
            one neighbour, None where nobody has worked it out.
        loss_is: What `loss` is where it is no exact figure.
        why: How the loss is known.
        source: Where such a bug was reported.
    """

    name: str
    run: Run | OneRun
    claim: MechanismClaim
    pairs: tuple[tuple[Any, Any], ...] = ADJACENT
    broken: bool
    loss: float | None = None
    loss_is: Literal["exact", "at least", "at most"] = "exact"
    why: str = ""
    source: str = ""


def column(given: object, runs: int) -> Array:
    """Returns a dataset's numbers as one row a run: (runs, numbers)."""
    return np.tile(np.atleast_1d(np.asarray(given, dtype=np.float64)), (runs, 1))


def twins(
    name: str,
    claim: MechanismClaim,
    *pairs: tuple[Any, Any],
    broken: Run | OneRun,
    mended: Run | OneRun,
    losses: tuple[float, float],
    why: str,
    kinds: tuple[Literal["exact", "at least"], Literal["exact", "at most"]] = ("exact", "exact"),
    source: str = "",
) -> tuple[Specimen, Specimen]:
    """Returns a broken function and the same one without its bug.

    Args:
        name: Of the broken one; the other is “NAME, mended”.
        claim: What both say of themselves.
        pairs: Neighbours for both, (0, 1) where none are given.
        broken: With the bug.
        mended: Without.
        losses: Of both, on the pairs.
        why: How the losses are known.
        kinds: What the losses are.
        source: Where such a bug was reported.
    """
    made = pairs or ADJACENT
    return (
        Specimen(
            name=name, run=broken, claim=claim, pairs=made, broken=True, loss=losses[0], loss_is=kinds[0], why=why,
            source=source,
        ),
        Specimen(
            name=f"{name}, mended", run=mended, claim=claim, pairs=made, broken=False, loss=losses[1],
            loss_is=kinds[1], why=why, source=source,
        ),
    )  # fmt: skip
