"""The features of Qiao & Wang's (2022) synthetic linear MDP (Appendix G), and the pair that moves most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.regressors import Regressors

STATES, ACTIONS, DIMENSION = 2, 100, 10
_LONGEST = 1_000_000  # steps of a pair that is written out


def make_printed_features() -> NDArray[np.float64]:
    """Returns φ(s, a) as printed, of norm up to √7: eight bits of the action, δ and 1 − δ; shape (2, 100, 10)."""
    actions = np.arange(ACTIONS)
    bits = (actions[:, np.newaxis] >> np.arange(7, -1, -1)) & 1
    matches = (np.arange(STATES)[:, np.newaxis] == 0) == (actions == 0)  # δ(s, a), Appendix G
    phi = np.empty((STATES, ACTIONS, DIMENSION))
    phi[..., :8] = bits
    phi[..., 8], phi[..., 9] = matches, ~matches
    return phi


def yield_printed_pairs(values: Mapping[str, Fraction]) -> Iterator[tuple[Regressors, Regressors]]:
    """Yields two users who visit the printed features whose outer products differ most, everything else at its bound.

    No printed feature has a negative entry, so that none is opposite to another: the ball ‖φ‖ ≤ √7, which the charge
    is for, holds worse pairs than the benchmark itself.
    """
    steps = int(values["H"])
    if steps > _LONGEST:
        return
    phi = make_printed_features().reshape(-1, DIMENSION)
    products = phi @ phi.T
    squares = np.diag(products)
    apart = squares[:, np.newaxis] ** 2 + squares**2 - 2 * products**2  # ‖xxᵀ − zzᵀ‖_F²
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    value = np.arange(steps - 1, -1, -1, dtype=np.float64)[np.newaxis]  # V_{h+1} at H − h
    columns = {"targets": {"V": value, "r+V": value + 1}, "weights": {"1/variance": np.ones((1, steps))}}
    one, other = (
        Regressors(vectors={"phi": np.broadcast_to(phi[row], (1, steps, DIMENSION))}, **columns)
        for row in (first, second)
    )
    yield one, other
