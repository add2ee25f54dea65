"""Names beside lines, each at the end of a stroke in its line's colour, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes

from privcheck.reports.drawing import INK, MUTED
from privcheck.reports.plots import shorten

_DOTTED: Final[Any] = (0, (1, 2))
_LEAST: Final = 0.064  # of the plot's height, between two names


@dataclass(frozen=True, slots=True, kw_only=True)
class LineName:
    """A line's name.

    Attributes:
        text: The name.
        height: Where the line ends, in data coordinates; a line that leaves the plot is named at its edge.
        colour: The line's.
        end: Where the line ends, if that is not the plot's right edge.
        strong: Whether it is about an agent of the comparison, and not about what it is compared with.
    """

    text: str
    height: float
    colour: str
    end: float | None = None
    strong: bool = False


def name_lines(axes: Axes, names: Sequence[LineName], *, wide: bool) -> None:
    """Writes each line's name right of the plot; names that would overlap are moved apart, with a stroke to their line.

    Args:
        axes: With its limits set.
        names: Of its lines.
        wide: Whether the drawing is the wide one.
    """
    low, high = axes.get_ylim()
    right, across = axes.get_xlim()[1], axes.get_yaxis_transform()
    ordered = sorted(names, key=lambda name: name.height)
    ends = [min(max(name.height, low), high) for name in ordered]
    for height, at, name in zip(part(ends, (high - low) * _LEAST, low, high), ends, ordered, strict=True):
        if name.end is not None:
            axes.plot([name.end, right], [at, at], color=name.colour, linewidth=0.8, linestyle=_DOTTED)
        axes.plot([1.0, 1.025], [at, height], transform=across, color=name.colour, linewidth=1.8, clip_on=False)
        style: dict[str, Any] = {"color": INK, "weight": "bold"} if name.strong else {"color": MUTED}
        said = shorten(name.text, 40 if wide else 24)
        axes.text(1.035, height, said, transform=across, va="center", fontsize=10.5 if wide else 8.5, **style)


def part(heights: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Returns ascending heights moved apart by at least `least`, about where they were, within the axes.

    Args:
        heights: Ascending.
        least: The least distance.
        low: The lowest height there may be, as long as all fit.
        high: The highest.

    >>> [round(height, 3) for height in part([1.0, 1.0, 3.0], 0.5, 0.0, 4.0)]
    [0.75, 1.25, 3.0]
    """
    centres = [(height, 1) for height in heights]  # and the number of names that are moved together
    at = 1
    while at < len(centres):
        (before, few), (after, more) = centres[at - 1], centres[at]
        if after - before < least * (few + more) / 2:
            centres[at - 1 : at + 1] = [((before * few + after * more) / (few + more), few + more)]
            at = max(at - 1, 1)
        else:
            at += 1
    placed = [centre + least * (k - (number - 1) / 2) for centre, number in centres for k in range(number)]
    for place, height in enumerate(placed):  # from below, then from above where they do not fit
        placed[place] = max(height, low if place == 0 else placed[place - 1] + least)
    for place in reversed(range(len(placed))):
        above = high if place == len(placed) - 1 else placed[place + 1] - least
        placed[place] = min(placed[place], above)
    return placed
