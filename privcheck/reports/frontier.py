"""The frontier: what was reached against the ε that it costs, beside what is reached without privacy or data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from privcheck.reports.drawing import INK, MUTED, RULE
from privcheck.reports.line_names import LineName, name_lines
from privcheck.reports.plots import Plot, both_widths
from privcheck.reports.run_plots import COLOURS
from privcheck.reports.values import Standing
from privcheck.reports.wording import figure

_DASHED: Final[Any] = (0, (6, 3))
_DOTTED: Final[Any] = (0, (1, 2))
_SAME: Final = 1e-9  # relative: reference lines that are closer are one line
_ZOOMED: Final = 0.2  # of the way from the optimum to uniform play: where all lies above, the plot leaves that out
_AS: Final = ", as "  # between a twin and the private agent whose constants it has
_JOINED: Final = " = "  # between the names of such lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What the frontier is drawn against where that is not ε: a swept parameter.

    Attributes:
        name: The parameter's, in words.
        at: Its value at every standing, above 0.
    """

    name: str
    at: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The points of one algorithm, from left to right.

    Attributes:
        name: The algorithm's.
        colour: Of its line.
        plain: Whether it is not private.
        x: Where each stands on the axis.
        value: What was reached at each.
        std: Likewise; None where a point has a single replicate.
    """

    name: str
    colour: str
    plain: bool
    x: tuple[float, ...]
    value: tuple[float, ...]
    std: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What is the same along the axis.

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
    standings: Sequence[Standing], *, delta: float, name: str = "frontier", over: Axis | None = None
) -> Plot | None:
    """Returns value against ε at the common δ; None where nothing private has a value at a finite ε.

    Args:
        standings: All in the same environment, with as many users unless that is what the axis is.
        delta: The common one.
        name: Prefix of every id; unique in its page.
        over: What they are drawn against in place of ε.
    """
    tracks = _tracks(standings, over)
    if not tracks:
        return None
    levels = _levels(standings, learning=over is None)
    against = "ε" if over is None else over.name
    said = "; ".join(f"{one.name} {figure(one.value[-1])} at {figure(one.x[-1], rounding='up')}" for one in tracks)
    lines = len(tracks) + len(levels)
    return both_widths(
        partial(_paint, tracks=tracks, levels=levels, axis="ε at most" if over is None else over.name),
        name=name,
        height=(max(340, 60 + 24 * lines), max(320, 60 + 20 * lines)),
        title=f"Value against {against}: {said}",
        caption=_caption(standings, tracks, levels, against=against, delta=delta),
    )


def _caption(
    standings: Sequence[Standing], tracks: Sequence[Track], levels: Sequence[Level], *, against: str, delta: float,
) -> str:  # fmt: skip
    caption = f"True expected return of the policy learned last, against {against}"
    if against == "ε":
        caption += f" at δ = {figure(delta)} (the accountant's bound on the declared releases, logarithmic axis)"
    parts = [f"{caption}."]
    if any(std is not None for track in tracks for std in track.std):
        parts.append("Bars and bands are one standard deviation each way.")
    if any(level.learns for level in levels) or any(track.plain for track in tracks):
        parts.append("Dashed: without privacy.")
    if any(not level.learns for level in levels):
        parts.append("Dotted: the optimum, and uniformly random play.")
    placed = {track.name for track in tracks} | {part for level in levels for part in level.name.split(_JOINED)}
    if left_out := sorted({one.algorithm for one in standings if one.value is not None} - placed):
        parts.append(f"Not drawn, because no ε is finite: {', '.join(left_out)}.")
    return " ".join(parts)


def _tracks(standings: Sequence[Standing], over: Axis | None) -> list[Track]:
    points: dict[tuple[str, bool, str], list[tuple[float, float, float | None]]] = {}
    colours = _colours(standings)
    for place, one in enumerate(standings):
        epsilon = None if one.guarantee is None else one.guarantee.epsilon
        x, colour = epsilon if over is None else over.at[place], colours[one.algorithm]
        if x and one.value is not None:
            points.setdefault((one.algorithm, one.guarantee is None, colour), []).append((x, one.value, one.std))
        if x and over is not None and one.twin is not None and one.twin_value is not None:
            points.setdefault((_name_twin(one, one.twin), True, colour), []).append((x, one.twin_value, None))
    tracks = []
    for (name, plain, colour), some in points.items():
        x_all, value, std = zip(*sorted(some, key=lambda point: point[0]), strict=True)
        tracks.append(Track(name=name, colour=colour, plain=plain, x=x_all, value=value, std=std))
    return tracks


def _name_twin(one: Standing, twin: str) -> str:
    """Returns what a non-private twin is called, which runs with the constants of the private algorithm."""
    return twin if " " in twin else f"{twin}{_AS}{one.algorithm}"


def _levels(standings: Sequence[Standing], *, learning: bool) -> list[Level]:
    """Returns the lines of what is the same along the axis; equal ones are one line.

    Args:
        standings: All of the plot.
        learning: Whether what learns without privacy is among them, as along ε.
    """
    colours, found = _colours(standings), list[Level]()
    drawn: list[tuple[str, float | None, str]] = []
    if learning:
        drawn += [(one.algorithm, one.value, colours[one.algorithm]) for one in standings if one.guarantee is None]
        drawn += [
            (_name_twin(one, one.twin), one.twin_value, colours[one.algorithm])
            for one in standings
            if one.guarantee is not None and one.twin is not None
        ]
    drawn += [("optimum", one.optimum, MUTED) for one in standings]
    drawn += [("uniform play", one.uniform, MUTED) for one in standings]
    for name, value, colour in drawn:
        if value is None:
            continue
        same = next((i for i, other in enumerate(found) if _is_close(other.value, value)), None)
        if same is None:
            found.append(Level(name=name, value=value, learns=colour != MUTED, colour=colour))
        else:
            found[same] = replace(found[same], name=_join_names(found[same].name, name))
    return found


def _join_names(names: str, name: str) -> str:
    """Returns the name of a line that several share; a twin of several private agents is named once."""
    parts = names.split(_JOINED)
    twin = name.partition(_AS)[0] + _AS if _AS in name else None
    for place, part in enumerate(parts):
        if part == name:
            return names
        if twin is not None and part.startswith(twin):
            return _JOINED.join([*parts[:place], f"{twin}several", *parts[place + 1 :]])
    return f"{names}{_JOINED}{name}"


def _colours(standings: Sequence[Standing]) -> dict[str, str]:
    """Returns each algorithm's colour: that of its runs in the other plots of the page."""
    names = dict.fromkeys(one.algorithm for one in standings)
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)


def _paint(axes: Axes, *, tracks: Sequence[Track], levels: Sequence[Level], axis: str, wide: bool) -> None:
    _span(axes, tracks, levels)
    names: list[LineName] = []
    for level in levels:
        if level.value < axes.get_ylim()[0]:
            names.append(LineName(text=f"{level.name} {figure(level.value)}, below", height=level.value, colour=MUTED))
            continue
        style = _DASHED if level.learns else _DOTTED
        axes.axhline(level.value, color=level.colour, linewidth=1.3, linestyle=style)
        names.append(LineName(text=level.name, height=level.value, colour=level.colour))
    top = _top(levels)
    for track in tracks:
        if all(std is not None for std in track.std):
            low = [value - (std or 0.0) for value, std in zip(track.value, track.std, strict=True)]
            high = [min(value + (std or 0.0), top) for value, std in zip(track.value, track.std, strict=True)]
            axes.fill_between(track.x, low, high, color=track.colour, alpha=0.13, linewidth=0)
            axes.vlines(track.x, low, high, color=track.colour, linewidth=1.4)
        style = _DASHED if track.plain else "solid"
        axes.plot(track.x, track.value, marker="o", color=track.colour, markersize=5, linewidth=1.8, linestyle=style)
        end = LineName(
            text=track.name, height=track.value[-1], colour=track.colour, end=track.x[-1], strong=not track.plain
        )
        names.append(end)
    name_lines(axes, names, wide=wide)
    _dress(axes, axis, wide=wide)


def _top(levels: Sequence[Level]) -> float:
    """Returns the optimum, above which no value can be; ∞ where it is not known."""
    return next((level.value for level in levels if "optimum" in level.name.split(_JOINED)), math.inf)


def _span(axes: Axes, tracks: Sequence[Track], levels: Sequence[Level]) -> None:
    x = [one for track in tracks for one in track.x]
    axes.set_xscale("log")
    room = max((max(x) / min(x)) ** 0.06, 1.25)
    axes.set_xlim(min(x) / room, max(x) * room)
    reach = [level.value for level in levels if level.learns]
    reach += [
        value + sign * (std or 0.0)
        for track in tracks
        for value, std in zip(track.value, track.std, strict=True)
        for sign in (-1, 1)
    ]
    top, bottom = _top(levels), min(level.value for level in levels) if levels else min(reach)
    low, high = min(reach), max(reach) if math.isinf(top) else top
    if high - low > _ZOOMED * (high - bottom):  # else what is nearly the optimum would be one line with it
        low = min(low, bottom)
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    axes.set_ylim(low - pad, high + pad)


def _dress(axes: Axes, axis: str, *, wide: bool) -> None:
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    left, right = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator(_ticks(left, right, 8 if wide else 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.set_xlabel(axis, color=INK)
    axes.set_ylabel("expected return", color=INK)


def _ticks(left: float, right: float, most: int) -> list[float]:
    """Returns round numbers on a logarithmic axis: 1, 2 and 5 times powers of ten, or fewer where these are many."""
    decades = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [step * 10.0**power for power in decades for step in steps if left <= step * 10.0**power <= right]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]
