"""Cumulants of losses that are functions of one Gaussian variable, however steep: nodes for a whole range of tilts.

Under P a node x carries its weight w and ln p(x) of the density, and the loss l(x), so that K(c) = ln Σ w p e^{cl}.
Panels with 16 Gauss–Legendre nodes each lie where the tilted density is above e^{−44} of its largest value; a panel is
no wider than 1.2 standard deviations of a bump and four tenths as wide as its centre is away from the next branch point
of l. Each of these has errors below 1e-16 (Trefethen 2008: ρ^{−2n} for an ellipse inside the singularity); the tests
check this against 40 digits, and the bounds allow a hundred times as much.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.laws import Direction, Floats, Moments, as_floats
from privcheck.accounting.engine.waves import atoms_moments

REACH: Final = 10.0  # standard deviations on both sides: e^{−50}
_KEPT: Final = 44.0  # −ln of what a node has to weigh, relative to the heaviest
NODES: Final = 16  # of every panel
_X, _W = np.polynomial.legendre.leggauss(NODES)
_SPACING: Final = 0.4  # of the scan that finds where the density lives, in standard deviations
_MOVED: Final = 8.0  # standard deviations by which bumps of neighbouring tilts may be apart
_LEAST_TILT: Final = -20  # log₂ of c below which all share their nodes
_OPEN: Final = 1e-14  # of K: what the rule leaves out, a hundred times


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """Loss under P, as a weighted sum that is accurate for a range of tilts.

    Attributes:
        losses: (n,) l.
        logs: (n,) ln of weight times density.
    """

    losses: Floats
    logs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Density and loss that nodes have to follow.

    Attributes:
        log_density: ln p(x) under P, and l(x).
        points: Points at which the density is scanned, increasing; close enough that no bump lies unseen between two of
            them.
        branches: (x, y) of the singularities x ± iy.
        curvature: (n,) bounds over all tilts on |d² ln of the tilted density/dx²| at those points.
        slopes: (n,) |dl/dx| at those points.
    """

    log_density: Callable[[Floats], tuple[Floats, Floats]]
    points: Floats
    branches: tuple[tuple[float, float], ...]
    curvature: Floats
    slopes: Floats


class Panelled(Hashable, Protocol):
    """Law that is integrated by panels."""

    def panels(self, tilts: tuple[float, float], direction: Direction) -> Nodes:
        """Build nodes that are accurate for a range of tilts."""
        ...


def moments_near(law: Panelled, c: Floats, direction: Direction) -> Moments:
    """K, rounded up, K′ and K″, (m,) each, at (m,) real c > 0; c within a factor of 2 share their nodes."""
    k, k1, k2 = np.empty(len(c)), np.empty(len(c)), np.empty(len(c))
    tilts = np.maximum(np.ceil(np.log2(c)), _LEAST_TILT).astype(np.int64)
    for tilt in np.unique(tilts).tolist():
        here = tilts == tilt
        nodes = nodes_near(law, tilt, direction)
        k[here], k1[here], k2[here] = atoms_moments(nodes.losses, nodes.logs, as_floats(c[here]))
    return k + _OPEN, k1, k2


@functools.lru_cache(maxsize=1024)
def nodes_near(law: Panelled, tilt: int, direction: Direction) -> Nodes:
    """Nodes for tilts from 2^{tilt − 1} to 2^tilt; for the least `tilt`, from 0."""
    return law.panels((2.0 ** (tilt - 1) if tilt > _LEAST_TILT else 0.0, 2.0**tilt), direction)


def nodes_for(shape: Shape, tilts: tuple[float, float]) -> Nodes:
    """Build nodes that are accurate for all c between two tilts."""
    density, losses = shape.log_density(shape.points)
    kept = np.zeros(len(shape.points), dtype=np.bool_)
    moved = (tilts[1] - tilts[0]) * float(shape.slopes.max())
    for c in np.linspace(*tilts, 3 + math.ceil(moved / _MOVED)):
        tilted = density + c * losses
        kept |= tilted > float(tilted.max()) - _KEPT
    wide = kept.copy()  # a neighbour more on both sides
    wide[1:] |= kept[:-1]
    wide[:-1] |= kept[1:]
    half = 1.2 / np.sqrt(np.maximum(shape.curvature, 1.0))
    for place, height in shape.branches:
        half = np.minimum(half, 0.4 * np.hypot(shape.points - place, height))
    centres, halves = _panels(shape.points, as_floats(0.5 / half), wide)
    x = as_floats((centres[:, None] + halves[:, None] * _X).ravel())
    density, losses = shape.log_density(x)
    return Nodes(losses=losses, logs=as_floats(density + np.log((halves[:, None] * _W).ravel())))


def panels_between(shape: Shape, *, longest: float, most: int) -> tuple[Floats, Floats, Floats] | None:
    """Panels over all points of a shape on which e^{(c + it)l} is integrated accurately, for |t| up to `longest`.

    The phase turns by at most 12 on a panel, which 16 nodes integrate to (12e/128)^32 < 1e-19 (Trefethen 2008).

    Args:
        shape: The density and the loss; its curvature is that of the largest tilt.
        longest: Largest |t|.
        most: Number of nodes, beyond which there is no answer.

    Returns:
        (k + 1,) edges, and (16k,) nodes and weights; None where there would be too many.
    """
    half = 1.2 / np.sqrt(np.maximum(shape.curvature, 1.0))
    half = np.minimum(half, 6 / np.maximum(longest * shape.slopes, 1e-300))
    for place, height in shape.branches:
        half = np.minimum(half, 0.4 * np.hypot(shape.points - place, height))
    steps = 0.5 / half
    if float((np.maximum(steps[1:], steps[:-1]) * np.diff(shape.points)).sum()) * NODES > most:
        return None
    centres, halves = _panels(shape.points, as_floats(steps), np.ones(len(shape.points), dtype=np.bool_))
    x, weights = (centres[:, None] + halves[:, None] * _X).ravel(), (halves[:, None] * _W).ravel()
    return as_floats(np.append(centres - halves, centres[-1] + halves[-1])), as_floats(x), as_floats(weights)


def _panels(points: Floats, per_length: Floats, kept: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Centres and half-widths of panels over the runs of kept points, with a given number per unit of length."""
    steps = np.maximum(per_length[1:], per_length[:-1]) * np.diff(points)
    centres, halves = [], []
    ends = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(np.int8), [0]])))
    for first, last in ends.reshape(-1, 2).tolist():
        if last - first < 2:
            continue
        grown = np.append(0.0, np.cumsum(steps[first : last - 1]))
        number = math.ceil(float(grown[-1]))
        edges = np.interp(np.linspace(0.0, float(grown[-1]), number + 1), grown, points[first:last])
        centres.append((edges[1:] + edges[:-1]) / 2)
        halves.append(np.diff(edges) / 2)
    return as_floats(np.concatenate(centres)), as_floats(np.concatenate(halves))


Places = tuple[tuple[float, float], ...]


def scan(low: float, high: float, bumps: Places, branches: Places) -> Floats:
    """Points at which a density is scanned: fine near bumps, ever finer towards branch points.

    Args:
        low: First point.
        high: Last point.
        bumps: (from, to): intervals with the centres of bumps of width 1.
        branches: (x, y) of the singularities x ± iy.
    """
    parts = [np.linspace(low, high, 65)]
    parts += [np.arange(start - REACH, end + REACH + _SPACING, _SPACING) for start, end in bumps]
    for x, y in branches:
        reach = math.asinh(max(high - low, 1.0) / y)
        parts.append(x + y * np.sinh(np.linspace(-reach, reach, 8 * math.ceil(reach) + 17)))
    return as_floats(np.unique(np.clip(np.concatenate(parts), low, high)))
