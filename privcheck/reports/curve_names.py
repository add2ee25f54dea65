"""Names beside falling curves, in place of a legend: right of the outermost, left of the others, where nothing is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes

_RIGHT: Final = 0.3  # of the height, from above: where the outermost curve is named
_LEFT: Final = (0.7, 0.84)  # where the others are, below most reports' line at δ
_GAP: Final = 0.015  # of the width, between a curve and its name
_ROOM: Final = 0.3  # of the width: less of it left of a curve is too little for a name


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveName:
    """A curve that falls, and its name.

    Attributes:
        text: The name.
        colour: Of both.
        x: Of the curve's points, ascending.
        y: Of the same, positive and never rising.
    """

    text: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]


def name_curves(axes: Axes, curves: Sequence[CurveName], *, size: float) -> None:
    """Writes each curve's name beside it.

    Args:
        axes: With its limits set and a logarithmic y axis.
        curves: Of its curves; the outermost of them at half height is named on its right.
        size: Of the text.
    """
    left, right = axes.get_xlim()
    wide = right - left
    style: dict[str, Any] = {"fontsize": size}
    ordered = sorted(curves, key=lambda curve: _cross(curve, _level(axes, 0.5)), reverse=True)
    levels = iter(_LEFT)
    for place, curve in enumerate(ordered):
        outermost = place == 0
        level = _level(axes, _RIGHT if outermost else next(levels, _LEFT[-1]))
        level = min(level, max(curve.y) / 3)
        x = _cross(curve, level)
        inner = min((_cross(other, level) for other in ordered[place:]), default=x)
        if x >= right:  # flat: below its end
            end = max(axes.get_ylim()[0], _height(curve, right))
            axes.text(right - wide * _GAP, end / 1.6, curve.text, color=curve.colour, ha="right", va="top", **style)
        elif outermost or inner - left < _ROOM * wide:
            axes.text(x + wide * _GAP, level, curve.text, color=curve.colour, ha="left", va="bottom", **style)
        else:
            stroke: dict[str, Any] = {"color": curve.colour, "linewidth": 0.8, "linestyle": (0, (1, 2))}
            axes.plot([inner - wide * _GAP, x], [level, level], **stroke)
            axes.text(
                inner - wide * 1.3 * _GAP, level, curve.text, color=curve.colour, ha="right", va="center", **style
            )


def _level(axes: Axes, share: float) -> float:
    """Returns the y that lies at a share of the height, from above."""
    low, high = (math.log(limit) for limit in axes.get_ylim())
    return math.exp(high - share * (high - low))


def _cross(curve: CurveName, level: float) -> float:
    """Returns the least x at which the curve is not above a level; ∞ where it is above it everywhere."""
    if curve.y[0] <= level:
        return curve.x[0]
    for (x0, y0), (x1, y1) in itertools.pairwise(zip(curve.x, curve.y, strict=True)):
        if y1 <= level:
            share = (math.log(y0) - math.log(level)) / (math.log(y0) - math.log(y1))
            return x0 + share * (x1 - x0)
    return math.inf


def _height(curve: CurveName, x: float) -> float:
    """Returns the curve's y at the last of its points that is not right of x."""
    return next((y for at, y in zip(reversed(curve.x), reversed(curve.y), strict=True) if at <= x), curve.y[0])
