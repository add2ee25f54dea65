"""Laws of cells for densities on the real line: the view of an attacker who sees the output at that resolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array
from privcheck.errors import DeclarationError

_NODES: Final = (12, 20)  # of the two Gauss–Legendre rules that are compared
_SMOOTH: Final = 1e-11  # by which these may differ, relative to a cell's mass; a cell beyond it joins the others
_LEAST: Final = 1e-250  # mass of a cell of its own
_RESOLVED: Final = 1e-13  # mass of the joined cell, which is found by subtraction, below which it has too few digits
_TOTAL: Final = 1e-6  # by which a density may miss 1 between the edges


def integrate_cells(name: str, log_densities: Sequence[Callable[[Array], Array]], edges: Array) -> list[Array]:
    """Integrate densities over cells and return ln of the cells' masses under each.

    A cell with mass not known to eleven digits is joined to the most probable cell, and so is the region beyond the
    edges: fewer cells reveal less, so a loss computed from these laws is never above the true loss.

    Args:
        name: Owner of the densities, for messages.
        log_densities: Functions from points to ln of the density.
        edges: Ascending numbers; the densities are smooth between two adjacent ones.

    Raises:
        DeclarationError: The edges are not ascending numbers, or a density does not add up to 1 between them.
    """
    if edges.ndim != 1 or edges.size < 3 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        message = f"{name}: expected edges as three or more ascending numbers, got an array of shape {edges.shape}"
        raise DeclarationError(f"{message}; np.linspace(low, high, 2001) gives some")
    laws, known = [], np.ones(edges.size - 1, dtype=bool)
    for log_density in log_densities:
        (coarse, _), (fine, impossible) = (_masses(log_density, edges, nodes) for nodes in _NODES)
        if not abs(fine.sum() - 1) <= _TOTAL:
            message = f"{name}: its log_density adds up to {fine.sum():.9g} between its edges, expected 1"
            raise DeclarationError(f"{message}; normalise it, widen the edges, put edges at its jumps and kinks")
        known &= (np.abs(fine - coarse) <= _SMOOTH * fine) & ((fine >= _LEAST) | impossible)
        laws.append(fine)
    largest = int(np.argmax(np.minimum(*laws)))
    known[largest] = False
    if min(float(law[largest]) for law in laws) < _RESOLVED:  # of neighbours far apart no cell is probable under both
        known[[int(np.argmax(law)) for law in laws]] = False
    masses = [np.append(law[known], 1 - law[known].sum()) for law in laws]
    with np.errstate(divide="ignore"):
        return [np.log(np.maximum(mass, 0.0)) for mass in masses]


def _masses(log_density: Callable[[Array], Array], edges: Array, nodes: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the cells' masses, and which are 0 because no output there is possible rather than by underflow."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, np.newaxis] + half[:, np.newaxis] * points
    logs = log_density(x.ravel()).reshape(x.shape)
    masses: Array = (np.exp(logs) @ weights) * half
    impossible: NDArray[np.bool_] = np.all(np.isneginf(logs), axis=1)
    return masses, impossible
