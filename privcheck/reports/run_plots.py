"""The plots of online runs: regret, value, switching cost and privacy over time, several agents in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from privcheck.reports.drawing import MUTED, RULE
from privcheck.reports.line_names import LineName, name_lines
from privcheck.reports.plots import Plot, both_widths
from privcheck.reports.values import Band, RanOnline
from privcheck.reports.wording import figure

# told apart by every kind of eye, on light and on dark paper (Okabe & Ito 2008); dashes tell them apart on any paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a8a8a")
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_TRIVIAL: tuple[Any, ...] = ((0, (2, 2)), (0, (4, 2, 1, 2)), (0, (1, 3)))  # dashes of policies that learn nothing
_HEIGHTS = (330, 290)  # wide and narrow


def curve_plots(runs: Sequence[RanOnline]) -> list[Plot]:
    """Returns the plots of runs with curves: regret, value, switching cost, and privacy spent bit by bit."""
    spends = any(_is_spent_bit_by_bit(run) for run in runs)
    return [*overlaid_plots(runs), *([_privacy(runs)] if spends else [])]


def _is_spent_bit_by_bit(run: RanOnline) -> bool:
    steps = run.odometer or ()
    return len({step.rho if step.pure_epsilon is None else step.pure_epsilon for step in steps}) > 1


def overlaid_plots(runs: Sequence[RanOnline]) -> list[Plot]:
    """Returns the plots that compare runs whatever their privacy is told in: regret, value, switching cost."""
    drawn = (
        ("regret", "Cumulative regret", "cumulative regret"),
        ("value", "True expected return of the policy of each episode", "expected return"),
        ("switches", "How often the policy differed from the one before", "switches"),
    )
    return [_plot(runs, name, title, axis) for name, title, axis in drawn if not _is_constant(runs, name)]


def _is_constant(runs: Sequence[RanOnline], name: str) -> bool:
    """Returns whether a curve says the same number throughout, of every agent; a table has it."""
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
        f"{title}: what the user who has paid most has paid after each episode, in pure ε where there is one, else in "
        "ρ (zCDP). A budget at some height would have ended the run where its line crosses it; the guarantee is "
        "that of the whole run, also where one stops before."
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
    """Returns the regret of the policies that learn nothing after all episodes; equal ones are one line."""
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
    """Draws the regret of the policies that learn nothing, without giving the agents less than half of the plot.

    Returns:
        Their names.
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
