"""The plots of runs: regret, value, switching cost and privacy over time, and the frontier of value against ε."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from privcheck.reports.comparisons import as_number, find_axis, group_points
from privcheck.reports.plots import INK, MUTED, RULE, Plot, both_widths, shorten
from privcheck.reports.values import Band, RanOnline, Standing, Sweep
from privcheck.reports.wording import figure, spell_out

_DOTTED: Final[Any] = (0, (1, 2))
_LEAST: Final = 0.064  # of the plot's height, between two names


@dataclass(frozen=True, slots=True, kw_only=True)
class LineName:
    """The name of a line.

    Attributes:
        text: The name.
        height: y at the line's end, in data coordinates; a line that leaves the plot is named at the edge.
        colour: Colour of the line.
        end: x at the line's end, if that is not the plot's right edge.
        strong: Whether the line is that of a private agent, not of a reference.
    """

    text: str
    height: float
    colour: str
    end: float | None = None
    strong: bool = False


def name_lines(axes: Axes, names: Sequence[LineName], *, wide: bool) -> None:
    """Write each line's name right of the plot; overlapping names are moved apart, with strokes to their lines.

    Args:
        axes: The axes, with limits set.
        names: Names of the lines.
        wide: Whether this is the wide drawing.
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
    """Move ascending heights apart by at least `least`, close to their positions and within the axes.

    Args:
        heights: Heights in ascending order.
        least: Minimum distance.
        low: Lowest allowed height, as long as all fit.
        high: Highest allowed height.

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


# told apart by every kind of eye, on light and on dark paper (Okabe & Ito 2008); dashes tell them apart on any paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a8a8a")
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_TRIVIAL: tuple[Any, ...] = ((0, (2, 2)), (0, (4, 2, 1, 2)), (0, (1, 3)))  # dashes of policies that learn nothing
_HEIGHTS = (330, 290)  # wide and narrow


def curve_plots(runs: Sequence[RanOnline]) -> list[Plot]:
    """The plots of online runs: regret, value, switching cost, and privacy if it is spent in several steps."""
    spends = any(_is_spent_bit_by_bit(run) for run in runs)
    return [*overlaid_plots(runs), *([_privacy(runs)] if spends else [])]


def _is_spent_bit_by_bit(run: RanOnline) -> bool:
    steps = run.odometer or ()
    return len({step.rho if step.pure_epsilon is None else step.pure_epsilon for step in steps}) > 1


def overlaid_plots(runs: Sequence[RanOnline]) -> list[Plot]:
    """The plots that compare runs independently of their unit of privacy: regret, value, switching cost."""
    drawn = (
        ("regret", "Cumulative regret", "cumulative regret"),
        ("value", "True expected return of the policy of each episode", "expected return"),
        ("switches", "How often the policy differed from the one before", "switches"),
    )
    return [_plot(runs, name, title, axis) for name, title, axis in drawn if not _is_constant(runs, name)]


def _is_constant(runs: Sequence[RanOnline], name: str) -> bool:
    """Whether a curve is constant for every agent; then a table is enough."""
    return all(len(set(band.mean)) == 1 and not any(band.std or ()) for band in (_band(run, name) for run in runs))


def _plot(runs: Sequence[RanOnline], name: str, title: str, axis: str) -> Plot:
    several = runs[0].replicates > 1
    caption = title + ("; bands are one standard deviation over replicates each way." if several else ".")
    last = "; ".join(f"{run.algorithm} {figure(_band(run, name).mean[-1])}" for run in runs)
    if name == "value":
        caption += " Dotted: the optimum."
    if name == "regret" and (lines := _trivial(runs)):
        caption += f" Grey: policies that learn nothing, {'; '.join(f'{who} {figure(at)}' for who, at in lines)}"
        caption += " at the end; a line may leave the plot."
    paint = partial(_paint, runs=runs, name=name, axis=axis)
    said = f"{title}, at the end: {last}"
    return both_widths(paint, name=f"run-{name}", height=_HEIGHTS, title=said, caption=caption)


def _band(run: RanOnline, name: str) -> Band:
    return {"regret": run.curves.regret, "value": run.curves.value, "switches": run.curves.switches}[name]


def _privacy(runs: Sequence[RanOnline]) -> Plot:
    title = "Privacy spent, by the ledger"
    caption = (
        f"{title}: spending on the most-charged user after each episode, in pure ε where there is one, else in "
        "ρ (zCDP). A budget at some height would have ended the run where its line crosses it; the guarantee is that "
        "of the whole run, even if it stops earlier."
    )
    paint = partial(_paint_spent, runs=runs)
    return both_widths(paint, name="run-spent", height=_HEIGHTS, title=title, caption=caption)


def _paint(axes: Axes, *, runs: Sequence[RanOnline], name: str, axis: str, wide: bool) -> None:
    names = list[LineName]()
    if name == "value":
        axes.axhline(runs[0].optimal_value, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)))
        names.append(LineName(text="optimum", height=runs[0].optimal_value, colour=MUTED))
    for place, run in enumerate(runs):
        x, band = [0, *run.curves.episodes], _band(run, name)
        start = [band.mean[0]] if name == "value" else [0.0]
        mean = [*start, *band.mean]
        line = _line(place)
        axes.plot(x, mean, **line)
        names.append(LineName(text=run.algorithm, height=mean[-1], colour=line["color"], strong=True))
        if band.std is not None:
            std = [0.0, *band.std] if name != "value" else [band.std[0], *band.std]
            top = run.optimal_value if name == "value" else float("inf")  # the band stays within what can be
            low = [max(m - s, 0.0) for m, s in zip(mean, std, strict=True)]
            high = [min(m + s, top) for m, s in zip(mean, std, strict=True)]
            axes.fill_between(x, low, high, color=line["color"], alpha=0.15, linewidth=0)
    if name == "regret":
        names += _paint_trivial(axes, runs)
    _dress(axes, axis, names, wide=wide)


def _trivial(runs: Sequence[RanOnline]) -> list[tuple[str, float]]:
    """Regret after all episodes of the policies that learn nothing; equal values are one line."""
    regret, lines = runs[0].regret, list[tuple[str, float]]()
    for name, value in (("uniform", regret.uniform), ("myopic", regret.myopic), ("prior-only", regret.prior_only)):
        if value is None:
            continue
        same = next((i for i, (_, at) in enumerate(lines) if math.isclose(at, value, rel_tol=1e-9)), None)
        if same is None:
            lines.append((name, value))
        else:
            lines[same] = (f"{lines[same][0]}, {name}", value)
    return lines


def _paint_trivial(axes: Axes, runs: Sequence[RanOnline]) -> list[LineName]:
    """Draw the regret of the policies that learn nothing, leaving at least half of the height to the agents.

    Returns:
        Names of these lines.
    """
    lines, (low, top) = _trivial(runs), axes.get_ylim()
    for (_, regret), dash in zip(lines, _TRIVIAL, strict=False):
        axes.plot([0, runs[0].episodes], [0.0, regret], color=MUTED, linewidth=1.1, linestyle=dash)
    axes.set_ylim(low, min(axes.get_ylim()[1], 2 * top))
    return [LineName(text=name, height=regret, colour=MUTED) for name, regret in lines]


def _paint_spent(axes: Axes, *, runs: Sequence[RanOnline], wide: bool) -> None:
    names = list[LineName]()
    for place, run in enumerate(runs):
        steps = run.odometer
        if not steps:
            continue
        unit = "pure_epsilon" if steps[-1].pure_epsilon is not None else "rho"
        if getattr(steps[-1], unit) is None:
            continue
        x = [0, *(step.episode for step in steps), run.episodes]
        y = [0.0, *(getattr(step, unit) for step in steps), getattr(steps[-1], unit)]
        label = f"{run.algorithm} ({'ε' if unit == 'pure_epsilon' else 'ρ'})"
        axes.plot(x, y, **_line(place), drawstyle="steps-post")
        names.append(LineName(text=label, height=y[-1], colour=_line(place)["color"], strong=True))
    _dress(axes, "spent", names, wide=wide)


def _line(place: int) -> dict[str, Any]:
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place // len(COLOURS) % len(DASHES)]}


def _dress(axes: Axes, axis: str, names: Sequence[LineName], *, wide: bool) -> None:
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("episode")
    axes.set_ylabel(axis)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlim(0, axes.dataLim.x1)
    axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4))
    for one in (axes.xaxis, axes.yaxis):
        one.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    name_lines(axes, names, wide=wide)


_DASHED: Final[Any] = (0, (6, 3))
_SAME: Final = 1e-9  # relative: reference lines that are closer are one line
_ZOOMED: Final = 0.2  # of the way from the optimum to uniform play: where all lies above, the plot leaves that out
_AS: Final = ", as "  # between a twin and the private agent whose constants it has
_JOINED: Final = " = "  # between the names of such lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A swept parameter as the x axis of the frontier, in place of ε.

    Attributes:
        name: Name of the parameter, in words.
        at: Its positive value for every standing.
    """

    name: str
    at: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The points of one algorithm, from left to right.

    Attributes:
        name: Name of the algorithm.
        colour: Colour of its line.
        plain: Whether the algorithm is not private.
        x: Position of each point on the axis.
        value: Value at each point.
        std: Standard deviation at each point; None for a single replicate.
    """

    name: str
    colour: str
    plain: bool
    x: tuple[float, ...]
    value: tuple[float, ...]
    std: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A reference value that is constant along the axis.

    Attributes:
        name: Name of the policy or algorithm.
        value: The expected return.
        learns: Whether it is a non-private learner; False for the optimum and uniformly random play.
        colour: Colour of its line.
    """

    name: str
    value: float
    learns: bool
    colour: str


def frontier_plot(
    standings: Sequence[Standing], *, delta: float, name: str = "frontier", over: Axis | None = None
) -> Plot | None:
    """Plot of value against ε at the common δ; None if no private algorithm has a value at a finite ε.

    Args:
        standings: Results in the same environment, with the same number of users unless that is the axis.
        delta: The common δ.
        name: Prefix of every id; unique in its page.
        over: The x axis in place of ε; None for ε.
    """
    tracks = _tracks(standings, over)
    if not tracks:
        return None
    levels = _levels(standings, learning=over is None)
    against = "ε" if over is None else over.name
    said = "; ".join(f"{one.name} {figure(one.value[-1])} at {figure(one.x[-1], rounding='up')}" for one in tracks)
    lines = len(tracks) + len(levels)
    return both_widths(
        partial(_paint_frontier, tracks=tracks, levels=levels, axis="ε at most" if over is None else over.name),
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
    """Name of a non-private twin that runs with the private algorithm's constants."""
    return twin if " " in twin else f"{twin}{_AS}{one.algorithm}"


def _levels(standings: Sequence[Standing], *, learning: bool) -> list[Level]:
    """The reference lines that are constant along the axis; equal ones are merged.

    Args:
        standings: All results of the plot.
        learning: Whether to include non-private learners, as along ε.
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
    """Name of a line that several share; a twin of several private agents is named once."""
    parts = names.split(_JOINED)
    twin = name.partition(_AS)[0] + _AS if _AS in name else None
    for place, part in enumerate(parts):
        if part == name:
            return names
        if twin is not None and part.startswith(twin):
            return _JOINED.join([*parts[:place], f"{twin}several", *parts[place + 1 :]])
    return f"{names}{_JOINED}{name}"


def _colours(standings: Sequence[Standing]) -> dict[str, str]:
    """Colour of each algorithm, the same as in the other plots of the page."""
    names = dict.fromkeys(one.algorithm for one in standings)
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)


def _paint_frontier(axes: Axes, *, tracks: Sequence[Track], levels: Sequence[Level], axis: str, wide: bool) -> None:
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
    _dress_frontier(axes, axis, wide=wide)


def _top(levels: Sequence[Level]) -> float:
    """The optimum, an upper limit of all values; ∞ if it is unknown."""
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


def _dress_frontier(axes: Axes, axis: str, *, wide: bool) -> None:
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
    """Round numbers on a logarithmic axis: 1, 2 and 5 times powers of ten, or fewer if there are too many."""
    decades = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    for steps in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        ticks = [step * 10.0**power for power in decades for step in steps if left <= step * 10.0**power <= right]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def frontiers(result: Sweep) -> list[tuple[str, Plot]]:
    """The plots of a sweep, each with its setting; empty if there are no values to draw."""
    axis = find_axis(result)
    if axis is not None:
        return _against(result, axis)
    plots = []
    for number, (setting, points) in enumerate(group_points(result), start=1):
        standings = [one.standing for one in points if one.standing is not None]
        plots.append((_say(setting), frontier_plot(standings, delta=result.delta, name=f"frontier-{number}")))
    return [(where, plot) for where, plot in plots if plot is not None]


def _say(setting: Mapping[str, str]) -> str:
    return ", ".join(f"{spell_out(name)} = {value}" for name, value in setting.items())


def _against(result: Sweep, axis: str) -> list[tuple[str, Plot]]:
    rest = {name: values for name, values in result.over.items() if name != axis}
    plots = []
    for number, (setting, points) in enumerate(group_points(replace(result, over=rest)), start=1):
        placed = [
            (one.standing, x)
            for one in points
            if one.standing is not None and (x := as_number(one.over.get(axis, ""))) is not None
        ]
        over = Axis(name=spell_out(axis), at=tuple(x for _, x in placed))
        drawn = frontier_plot([one for one, _ in placed], delta=result.delta, name=f"frontier-{number}", over=over)
        plots.append((_say(setting), drawn))
    return [(where, plot) for where, plot in plots if plot is not None]
