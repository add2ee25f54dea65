"""The frontiers of a sweep: a plot for every setting of what is no part of a guarantee, or one against a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privcheck.reports.frontier import Axis, frontier_plot
from privcheck.reports.plots import Plot
from privcheck.reports.swept import as_number, find_axis, group_points
from privcheck.reports.values import Sweep
from privcheck.reports.wording import spell_out


def frontiers(result: Sweep) -> list[tuple[str, Plot]]:
    """Returns the plots of a sweep, each with the setting that it is at; none where there is no value to draw."""
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
