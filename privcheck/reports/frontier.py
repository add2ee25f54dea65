"""The frontier: what was reached against the ε that it costs, beside what is reached without privacy or data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from privcheck.reports.drawing import INK, MUTED, RULE
from privcheck.reports.line_names import LineName, name_lines
from privcheck.reports.plots import Plot, both_widths
from privcheck.reports.run_plots import COLOURS
from privcheck.reports.values import Standing
from privcheck.reports.wording import figure

_DASHED: Any = (0, (6, 3))
_DOTTED: Any = (0, (1, 2))
_SAME = 1e-9  # relative: reference lines that are closer are one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The points of one private algorithm.

    Attributes:
        name: The algorithm's.
        x: ε, ascending, or another parameter's values.
        value: At each.
        std: Likewise; None where a point has a single replicate.
        colour: Of its line.
    """

    name: str
    colour: str
    x: tuple[float, ...]
    value: tuple[float, ...]
    std: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What is reached whatever ε is.

    Attributes:
        name: Whose.
        value: The expected return.
        learns: Whether it learns, without privacy; the optimum and uniformly random play do not.
        colour: Of its line.
    """

    name: str
    value: float
    learns: bool
    colour: str


def frontier_plot(
    standings: Sequence[Standing], *, delta: float, name: str = "frontier", where: str = "", std_of: str = "seeds"
) -> Plot | None:
    """Returns value against ε at the common δ; None where no private algorithm has a value and a finite ε.

    Args:
        standings: All in the same environment with as many users.
        delta: The common one.
        name: Prefix of every id; unique in its page.
        where: What these standings have in common, for the caption.
        std_of: What the bars are the spread of.
    """
    tracks = _tracks(standings)
    if not tracks:
        return None
    levels = _levels(standings)
    unplaced = sorted({
        one.algorithm for one in standings
        if one.guarantee is not None and one.value is not None and one.guarantee.epsilon is None
    })  # fmt: skip
    caption = f"{where}{'' if not where else ': '}true expected return of the policy learned last, against ε at "
    caption += f"δ = {figure(delta)} (the accountant's bound on the declared releases, logarithmic axis)."
    if any(std is not None for track in tracks for std in track.std):
        caption += f" Bars and bands are one standard deviation over {std_of} each way."
    if any(level.learns for level in levels):
        caption += " Dashed: without privacy. Dotted: the optimum, and uniformly random play."
    else:
        caption += " Dotted: the optimum, and uniformly random play."
    if unplaced:
        caption += f" Not drawn, because no ε is finite: {', '.join(unplaced)}."
    caption = caption[0].upper() + caption[1:]
    paint = partial(_paint, tracks=tracks, levels=levels)
    last = "; ".join(f"{one.name} {figure(one.value[-1])} at ε = {figure(one.x[-1], rounding='up')}" for one in tracks)
    lines = len(tracks) + len(levels)
    heights = (max(340, 60 + 24 * lines), max(320, 60 + 20 * lines))
    return both_widths(paint, name=name, height=heights, title=f"Value against ε: {last}", caption=caption)


def _tracks(standings: Sequence[Standing]) -> list[Track]:
    points: dict[str, list[tuple[float, float, float | None]]] = {}
    colours = _colours(standings)
    for one in standings:
        if one.guarantee is None or one.value is None or not one.guarantee.epsilon:
            continue
        points.setdefault(one.algorithm, []).append((one.guarantee.epsilon, one.value, one.std))
    tracks = []
    for name, some in points.items():
        x, value, std = zip(*sorted(some, key=lambda point: point[0]), strict=True)
        tracks.append(Track(name=name, colour=colours[name], x=x, value=value, std=std))
    return tracks


def _levels(standings: Sequence[Standing]) -> list[Level]:
    """Returns the lines of what does not depend on ε; equal ones are one line."""
    colours = _colours(standings)
    lines: list[tuple[str, float | None, str]] = [
        (one.algorithm, one.value, colours[one.algorithm]) for one in standings if one.guarantee is None
    ]
    lines += [
        (one.twin if " " in one.twin else f"{one.twin}, as {one.algorithm}", one.twin_value, colours[one.algorithm])
        for one in standings
        if one.guarantee is not None and one.twin is not None
    ]
    lines += [("optimum", one.optimum, MUTED) for one in standings]
    lines += [("uniform play", one.uniform, MUTED) for one in standings]
    found: list[Level] = []
    for name, value, colour in lines:
        if value is None:
            continue
        same = next((i for i, other in enumerate(found) if _is_close(other.value, value)), None)
        if same is None:
            found.append(Level(name=name, value=value, learns=colour != MUTED, colour=colour))
        elif name != found[same].name and not found[same].name.endswith(f" = {name}"):
            found[same] = replace(found[same], name=f"{found[same].name} = {name}")
    return found


def _colours(standings: Sequence[Standing]) -> dict[str, str]:
    """Returns each algorithm's colour: that of its runs in the other plots of the page."""
    names = dict.fromkeys(one.algorithm for one in standings)
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)


def _paint(axes: Axes, *, tracks: Sequence[Track], levels: Sequence[Level], wide: bool) -> None:
    _span(axes, tracks, levels)
    names: list[LineName] = []
    for level in levels:
        style = _DASHED if level.learns else _DOTTED
        axes.axhline(level.value, color=level.colour, linewidth=1.3, linestyle=style)
        names.append(LineName(text=level.name, height=level.value, colour=level.colour))
    top = next((level.value for level in levels if "optimum" in level.name.split(" = ")), math.inf)
    for track in tracks:
        colour = track.colour
        if all(std is not None for std in track.std):
            low = [value - (std or 0.0) for value, std in zip(track.value, track.std, strict=True)]
            high = [min(value + (std or 0.0), top) for value, std in zip(track.value, track.std, strict=True)]
            axes.fill_between(track.x, low, high, color=colour, alpha=0.13, linewidth=0)
            axes.vlines(track.x, low, high, color=colour, linewidth=1.4)
        axes.plot(track.x, track.value, "o-", color=colour, markersize=5, linewidth=1.8)
        names.append(LineName(text=track.name, height=track.value[-1], colour=colour, end=track.x[-1], strong=True))
    name_lines(axes, names, wide=wide)
    _dress(axes, wide=wide)


def _span(axes: Axes, tracks: Sequence[Track], levels: Sequence[Level]) -> None:
    x = [one for track in tracks for one in track.x]
    axes.set_xscale("log")
    room = max((max(x) / min(x)) ** 0.06, 1.25)
    axes.set_xlim(min(x) / room, max(x) * room)
    reach = [level.value for level in levels]
    reach += [
        value + sign * (std or 0.0)
        for track in tracks
        for value, std in zip(track.value, track.std, strict=True)
        for sign in (-1, 1)
    ]
    top = max([level.value for level in levels if "optimum" in level.name.split(" = ")] or [max(reach)])
    low, high = min(*reach, top), min(max(reach), top)
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    axes.set_ylim(min(low, 0.0) - pad if low < 0.35 * high else low - pad, high + pad)


def _dress(axes: Axes, *, wide: bool) -> None:
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    left, right = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator(_ticks(left, right, 8 if wide else 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.set_xlabel("ε at most", color=INK)
    axes.set_ylabel("expected return", color=INK)


def _ticks(left: float, right: float, most: int) -> list[float]:
    """Returns round numbers on a logarithmic axis: 1, 2 and 5 times powers of ten, or fewer where these are many."""
    decades = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [step * 10.0**power for power in decades for step in steps if left <= step * 10.0**power <= right]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]
